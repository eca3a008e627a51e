/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note: write the path, the rule and the verdict of a packet into a record, for sessions
 * (watch.c) and for sFlow (sample.c).                                           [fwd-n]
 */
#include "fwd/note.h"

#include <string.h>

#include "fib/headend.h"
#include "fib/rules.h"
#include "fib/vxlan.h"
#include "fwd/sid.h"

/* Note the labels before an outer header. */
static void
note_labels(const struct fib *fib, const struct fib_encap *labels, struct watch_record *rec)
{
	rec->outer_labels = labels == NULL ? 0 : (uint32_t)(labels - fib->encap);
}

/* Note the first segment of a headend, and return the path to it. */
static fib_path
note_headend(const struct burst *b, unsigned int i, fib_path headend,
	     struct watch_record *rec)
{
	struct fib_headend_outer outer;

	if (b->family[i] == 0) /* no IP packet behind labels: the kernel takes it */
		return PATH(PATH_NONE, 0);
	fib_headend_resolve(b->fwd->fib, headend, b->family[i], burst_l3(b, i),
			    burst_l3_room(b, i), &outer);
	rec->via_family = 6;
	memcpy(rec->via.octet, outer.headend->head + 24, 16);
	note_labels(b->fwd->fib, outer.labels, rec);
	return outer.reason == N_REASON ? outer.path : PATH(PATH_NONE, 0);
}

/*
 * Return the path, as far as it is decided. If an end point has chosen the path, return that
 * path, because the path of the destination is not used.
 */
static fib_path
packet_path(const struct burst *b, unsigned int i)
{
	return burst_has_sid_path(b) ? b->sid_path : b->path[i];
}

void
fwd_note_next_hop(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib *fib = b->fwd->fib;
	fib_path next = packet_path(b, i);
	const struct fib_vxlan_hop *hop = path_vxlan(fib, next);
	bool labels = b->family[i] == 0;
	struct fib_tunnel_outer outer;

	rec->path = next;
	if (hop != NULL) {
		rec->tunnel = hop->ifidx;
		rec->via_family = hop->t.family;
		rec->via = hop->t.remote;
		return;
	}
	if (path_is_headend(fib, next)) {
		next = note_headend(b, i, next, rec);
	} else if (path_kind(next) == PATH_ENCAP && !path_is_unsupported(next)) {
		next = encap_next(fib_encap(fib, next));
		labels = true;
	}
	if (path_tunnel(fib, next) != NULL) {
		rec->tunnel = (uint16_t)path_index(next);
		fib_tunnel_resolve(fib, rec->tunnel,
				   labels ? 0 : ip_dsfield(burst_l3(b, i), b->family[i]),
				   &outer);
		rec->via_family = outer.n == 0 ? 0 : outer.family;
		rec->via = outer.dst;
		note_labels(fib, outer.labels, rec);
		next = outer.reason == N_REASON ? outer.path : PATH(PATH_NONE, 0);
	}
	if (path_kind(next) == PATH_ADJ) {
		const struct fib_adj *adj = &fib->adj[path_index(next)];

		rec->via_family = adj->family;
		rec->via = adj->addr;
	}
}

void
fwd_note_path(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_vxlan_hop *hop = path_vxlan(fib, packet_path(b, i));
	struct fib_vxlan_outer outer;

	fwd_note_next_hop(b, i, rec);
	if (hop == NULL || b->family[i] == 0)
		return;
	fib_vxlan_resolve(fib, hop, b->family[i], burst_l3(b, i), burst_l3_room(b, i),
			  &outer);
	note_labels(fib, outer.labels, rec);
}

/* Note the rule that decided, if rules concern the packet. */
void
fwd_note_rule(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib_rules *rules = fib_rules(b->fwd->fib, b->family[i]);
	struct fib_rules_hit hit;

	if (rules == NULL || !fwd_rules_ask(b, i, &hit))
		return;
	rec->rule = hit.at < rules->n ? 1 : 2;
	if (hit.at == rules->n)
		return;
	rec->rule_pref = rules->rule[hit.at].pref;
	rec->vrf = hit.number;
	if (rules->rule[hit.at].action != FIB_RULE_PATH)
		rec->rule_table = rules->rule[hit.at].table;
}

/* Note the first octets of the frame that is sent, without tags. */
static void
note_rewritten(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const unsigned int macs = 12;

	const uint8_t *frame = rte_pktmbuf_mtod(b->m[i], const uint8_t *);
	const uint8_t *from = burst_l2(b, i) + macs;
	size_t room = (size_t)(frame + rte_pktmbuf_data_len(b->m[i]) - from);

	/* A frame with labels may be shorter than the shortest IP packet. */
	if (room > sizeof(rec->rewritten) - macs)
		room = sizeof(rec->rewritten) - macs;
	memset(rec->rewritten, 0, sizeof(rec->rewritten));
	memcpy(rec->rewritten, frame, macs);
	memcpy(rec->rewritten + macs, from, room);
}

/* Return the tunnel, or the interface over VXLAN, that a packet leaves by; NULL: none. */
static const struct fib_iface *
packet_enters(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	fib_path path = b->path[i];

	if (path_kind(path) == PATH_ENCAP)
		path = encap_next(fib_encap(fib, path));
	return path_enters(fib, path);
}

/*
 * Return the interface of the neighbor that a packet waits for. The record has this
 * interface, because the number of the adjacency may belong to another neighbor when the
 * record is read. 0: the packet gets labels or an outer header.
 */
static uint16_t
note_waits_on(const struct fib *fib, fib_path path)
{
	if (path_kind(path) == PATH_ADJ)
		return fib->adj[path_index(path)].ifidx;
	return path_kind(path) == PATH_ONLINK ? (uint16_t)path_index(path) : 0;
}

/* Note the egress of a packet that has reached the adjacency stage. */
static void
note_egress(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib_iface *out;

	/*
	 * A packet that was dropped or punted in the adjacency stage may have the hop of an
	 * earlier packet.
	 */
	if (rec->stage >= STAGE_REWRITE)
		rec->hop = b->hop[i];
	rec->out_ifidx = rec->hop & 0xffff;
	out = packet_enters(b, i);
	if (out == NULL || rec->hop == 0)
		out = fib_iface(b->fwd->fib, rec->out_ifidx);
	if (out != NULL)
		rec->mtu_bytes =
			fib_mtu(b->fwd->fib, b->path[i], out, b->family[i] == 6 ? 6 : 4);
	if (rec->verdict == VERDICT_GO)
		note_rewritten(b, i, rec);
}

void
fwd_note_verdict(struct burst *b, unsigned int i, struct watch_record *rec)
{
	rec->verdict = b->verdict[i];
	rec->family = b->family[i];
	if (b->inside)
		rec->outer_ifidx = packet_meta(b->m[i])->outer_ifidx;
	if (rec->verdict == WATCH_DECAPSULATED) {
		rec->tunnel = (b->hop[i] & DECAP_BY_SID) != 0 ? 0 : b->hop[i] & 0xffff;
		rec->l3_bytes = b->l3_len[i];
		return;
	}
	if (rec->verdict >= N_DROP && rec->verdict != VERDICT_GO)
		rec->class = (uint8_t)fwd_class(b, i, rec->verdict);
	if (rec->verdict == PUNT_ttl_expired || rec->verdict == PUNT_unreach) {
		rec->icmp = true;
		rec->cause = b->cause[i];
	} else if (rec->verdict == PUNT_too_big && rec->class != CLASS_cut) {
		rec->icmp = true;
		rec->cause = DROP_mtu;
	}
	rec->icmp_vrf = b->in == NULL ? 0 : burst_icmp_vrf(b);
	if (rec->family != 0)
		rec->l3_bytes = b->l3_len[i];
	if (rec->stage >= STAGE_ADJACENCY)
		note_egress(b, i, rec);
	if (rec->verdict == PUNT_unresolved)
		rec->out_ifidx = note_waits_on(b->fwd->fib, rec->path);
}
