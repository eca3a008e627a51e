/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the stages and the transmit call while a session watches packets. Frames that a
 * filter wants are copied to this forwarder's ring, with their verdict. Other frames are
 * handled as without a session. A full ring loses the record, never the packet. [fwd-n]
 */
#include "fwd/watch.h"

#include <string.h>

#include "base/inet.h"
#include "fib/headend.h"
#include "fib/label.h"
#include "fib/rules.h"
#include "fib/vxlan.h"
#include "fwd/label.h"
#include "fwd/tunnel.h"
#include "fwd/walk.h"
#include "port/vlan.h"

static_assert(WATCH_GO == VERDICT_GO && WATCH_DECAPSULATED == VERDICT_DECAPSULATED,
	      "a record has the verdicts of a burst");

/* Note the first segment, and return the path to it. */
static fib_path
note_headend(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	struct fib_headend_outer outer;

	if (b->family[i] == 0) /* labels only: the kernel takes it */
		return PATH(PATH_NONE, 0);
	fib_headend_resolve(b->fwd->fib, b->path[i], b->family[i], burst_l3(b, i),
			    burst_l3_room(b, i), &outer);
	rec->via_family = 6;
	memcpy(rec->via.octet, outer.headend->head + 24, 16);
	return outer.reason == N_REASON ? outer.path : PATH(PATH_NONE, 0);
}

/* Note the path, as far as it is decided. */
void
fwd_note_path(const struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib *fib = b->fwd->fib;
	fib_path next = b->path[i];
	const struct fib_vxlan_hop *hop = path_vxlan(fib, next);
	struct fib_tunnel_outer outer;

	rec->path = next;
	if (hop != NULL) {
		rec->tunnel = hop->ifidx;
		rec->via_family = hop->t.family;
		rec->via = hop->t.remote;
		return;
	}
	if (path_tunnel(fib, next) != NULL) {
		rec->tunnel = (uint16_t)path_index(next);
		fib_tunnel_resolve(fib, rec->tunnel, &outer);
		rec->via_family = outer.n == 0 ? 0 : outer.family;
		rec->via = outer.dst;
		next = outer.reason == N_REASON ? outer.path : PATH(PATH_NONE, 0);
	}
	if (path_is_headend(fib, next))
		next = note_headend(b, i, rec);
	else if (path_kind(next) == PATH_ENCAP && !path_is_unsupported(next))
		next = fib_encap(fib, next)->next;
	if (path_kind(next) == PATH_ADJ) {
		const struct fib_adj *adj = &fib->adj[path_index(next)];

		rec->via_family = adj->family;
		rec->via = adj->addr;
	}
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

static void
note_group(struct burst *b, struct watch_record *rec, uint32_t group)
{
	rec->group = group;
	rec->log2_buckets = (uint8_t)group_word_log2(
		atomic_load_explicit(&b->fwd->fib->group[group], memory_order_consume));
}

/*
 * Note group, hash and path from the lookup, before the adjacency stage changes the path.
 */
static void
note_found(struct burst *b, const struct fwd_found *found)
{
	const struct fib *fib = b->fwd->fib;

	for (unsigned int k = 0; k < found->n; k++) {
		unsigned int i = found->at[k];
		struct watch_record *rec = b->rec[i];

		if (rec == NULL)
			continue;
		fwd_note_path(b, i, rec);
		rec->looked_up = true;
		rec->vrf = b->in->vrf;
		note_group(b, rec, found->group[k]);
		rec->flow_hash = flow_hash(burst_l3(b, i), burst_l3_room(b, i),
					   b->family[i], fib->seed);
		fwd_note_rule(b, i, rec);
	}
}

static uint32_t
group_in_main(const struct burst *b, unsigned int i)
{
	const struct fib_copy *main = b->fwd->tries;
	const uint8_t *ip = burst_l3(b, i);

	return b->family[i] == 4 ? poptrie4_lookup(main->pt4, get_be32(ip + 16))
				 : poptrie6_lookup(main->pt6, ip + 24);
}

/*
 * Note the second lookup: in the VRF that the route led to, or in table main if the VRF has
 * no route.
 */
static void
note_vrfs(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct watch_record *rec = b->rec[i];

		if (rec == NULL || !rec->looked_up)
			continue;
		if (path_kind(rec->path) == PATH_VRF) {
			rec->to_vrf = (uint16_t)path_index(rec->path);
			fwd_note_path(b, i, rec);
		} else if (rec->vrf != 0 && rec->rule == 0 && path_is_no_route(rec->path)) {
			rec->to_main = path_kind(b->path[i]) != PATH_NO_FIB;
			if (rec->to_main)
				note_group(b, rec, group_in_main(b, i));
			fwd_note_path(b, i, rec);
		}
	}
}

/* Note where labels lead. They were looked up when the headers were read. */
static void
note_labels(struct burst *b)
{
	for (uint64_t rest = b->labels | b->switched; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->rec[i] == NULL)
			continue;
		b->rec[i]->pops = burst_has_labels(b, i) ? b->label[i].pops : 1;
		fwd_note_path(b, i, b->rec[i]);
	}
}

/* Note how the source was checked. */
static void
note_source(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct watch_record *rec = b->rec[i];

		if (rec != NULL && (b->switched >> i & 1) == 0 &&
		    fwd_urpf_ask(b, i, &rec->back))
			rec->urpf = b->in->urpf4;
	}
}

static void
note_stage(struct burst *b, enum watch_stage stage)
{
	if (stage == STAGE_PARSE)
		note_labels(b);
	if (stage == STAGE_LOOKUP) {
		note_found(b, &b->found[0]);
		note_found(b, &b->found[1]);
	}
	if (stage == STAGE_ADJACENCY)
		note_vrfs(b);
	if (stage == STAGE_URPF)
		note_source(b);
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL && b->rec[i]->stage == STAGE_SEND &&
		    b->verdict[i] != VERDICT_GO)
			b->rec[i]->stage = (uint8_t)stage;
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

void
fwd_note_verdict(struct burst *b, unsigned int i, struct watch_record *rec)
{
	const struct fib_iface *out;

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
	if (rec->family != 0)
		rec->l3_bytes = b->l3_len[i];
	if (rec->stage < STAGE_ADJACENCY)
		return;
	/*
	 * A packet that was dropped or punted in the adjacency stage may have the hop of an
	 * earlier packet.
	 */
	if (rec->stage >= STAGE_REWRITE)
		rec->hop = b->hop[i];
	rec->out_ifidx = rec->hop & 0xffff;
	out = path_enters(b->fwd->fib, b->path[i]);
	if (out == NULL || rec->hop == 0)
		out = fib_iface(b->fwd->fib, rec->out_ifidx);
	if (out != NULL)
		rec->mtu_bytes =
			fib_mtu(b->fwd->fib, b->path[i], out, b->family[i] == 6 ? 6 : 4);
	if (rec->verdict == VERDICT_GO)
		note_rewritten(b, i, rec);
}

void
fwd_walk_noted(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL) {
			b->rec[i]->stage = STAGE_SEND;
			b->rec[i]->in_ifidx = b->ifidx;
		}
	b->noted = true;
	fwd_walk(b, note_stage);
	b->noted = false;
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL)
			fwd_note_verdict(b, i, b->rec[i]);
}

void
fwd_walk_watched(struct burst *b)
{
	struct fwd *f = b->fwd;
	uint64_t now_ns = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		uint8_t was[L2_LEN];

		if (b->inside)
			fwd_tunnel_show(b, i, was);
		b->rec[i] = watch_note(f->conf->watch_ring, f->watch, WATCH_WALK, b->ifidx,
				       b->m[i], &now_ns);
		if (b->inside)
			fwd_tunnel_hide(b, i, was);
	}
	fwd_walk_noted(b);
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL)
			b->rec[i]->sessions = watch_wanted_verdict(f->watch, b->rec[i]);
	watch_publish(f->conf->watch_ring);
}

uint16_t
fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx)
{
	struct watch_ring *ring = f->conf->watch_ring;
	struct watch_record *rec[TX_BURST_MAX];
	uint64_t now_ns = 0;
	uint16_t sent;

	/*
	 * Make the records before the transmit call, because a sent frame is no longer
	 * ours. The record has the frame with its tag.
	 */
	for (unsigned int i = 0; i < tx->n; i++) {
		if ((tx->m[i]->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
			vlan_insert(tx->m[i]);
		rec[i] = watch_note(ring, f->watch, WATCH_SENT, tx_ifidx(tx->m[i], ifidx),
				    tx->m[i], &now_ns);
		if (rec[i] != NULL) {
			rec[i]->out_ifidx = tx_ifidx(tx->m[i], ifidx);
			rec[i]->verdict = VERDICT_GO;
		}
	}
	sent = fwd_send(f, tx);
	for (unsigned int i = sent; i < tx->n; i++)
		if (rec[i] != NULL)
			rec[i]->sessions = 0; /* not sent: skip the record */
	for (unsigned int i = sent; i < tx->n; i++)
		watch_lost(ring, f->watch, tx_ifidx(tx->m[i], ifidx), tx->m[i],
			   DROP_tx_full);
	watch_publish(ring);
	return sent;
}
