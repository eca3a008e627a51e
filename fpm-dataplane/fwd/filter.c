/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: judge packets by the ruleset of nft, as Linux does in its hook forward: after the
 * route and the MTU, before the wait for a neighbor and before fragmentation. A packet that
 * is changed or does not pass leaves the fast path.                             [fwd-n]
 */
#include "fwd/filter.h"

#include <string.h>

#include "base/inet.h"
#include "fib/urpf.h"
#include "fwd/label.h"
#include "fwd/vlan.h"
#include "ruleset/acl.h"

/*
 * Return true if Linux drops the packet or sends an ICMP error before its hook forward. The
 * rewrite stage finds the same error.
 */
static bool
packet_fails_first(const struct burst *b, unsigned int i, const struct fib_iface *out)
{
	const uint8_t *ip = burst_l3(b, i);
	bool six = b->family[i] == 6;

	if (out == NULL || !out->up)
		return true;
	/* Labels have a TTL of their own. */
	if (burst_has_labels(b, i) || (b->switched >> i & 1) != 0)
		return false;
	if (ip[six ? 7 : 8] <= 1)
		return true;
	/* If the packet gets labels, the slow path checks the MTU later. */
	return path_kind(b->path[i]) != PATH_ENCAP &&
	       b->l3_len[i] > fib_mtu(b->fwd->fib, b->path[i], out, b->family[i]) &&
	       (six || (get_be16(ip + 6) & 0x4000) != 0);
}

/* Move a packet to the slow path. */
static void
packet_to_slow(struct burst *b, unsigned int i)
{
	uint64_t bit = 1ull << i;

	if ((b->switched & bit) != 0) {
		b->switched &= ~bit;
		fwd_label_keep_path(b, i);
	}
	b->push &= ~bit;
	b->into &= ~bit;
	burst_to_slow(b, bit);
}

/*
 * Drop a packet, and ask for the ICMP error about it. Linux decrements the hop count before
 * the hook forward, and the error quotes the decremented packet.
 */
static void
packet_reject(struct burst *b, unsigned int i, const struct ruleset_packet *p)
{
	struct packet_meta *meta = packet_meta(b->m[i]);
	uint8_t *ip = burst_l3(b, i);

	meta->reject_type = p->icmp_type;
	meta->reject_code = p->icmp_code;
	if (burst_has_labels(b, i)) {
		fwd_label_refuse(b, i, PUNT_unreach, DROP_filter);
		return;
	}
	if (b->family[i] == 4)
		ip4_ttl_dec(ip);
	else
		ip[7]--;
	burst_icmp(b, i, PUNT_unreach, DROP_filter);
}

/* Copy a text, cut to `size` - 1 octets; the octets behind it are zero already. */
static void
text_copy(char *out, const char *text, unsigned int size)
{
	for (unsigned int i = 0; i + 1 < size && text[i] != '\0'; i++)
		out[i] = text[i];
}

/* Note the deciding rule in the record for a session that watches. */
static void
packet_note(struct burst *b, unsigned int i, const struct ruleset *r,
	    const struct ruleset_packet *p, enum ruleset_verdict verdict)
{
	struct watch_record *rec = b->rec[i];
	const char *chain, *comment = NULL;

	rec->filter = verdict == RULESET_PASS   ? WATCH_FILTER_PASS
		      : verdict == RULESET_DROP ? WATCH_FILTER_DROP
						: WATCH_FILTER_REJECT;
	if (p->chain == RULESET_NONE)
		return;
	chain = r->chain[p->chain].name;
	if (p->rule != RULESET_NONE) {
		rec->filter_handle = r->rule[p->rule].handle;
		comment = r->rule[p->rule].comment;
	}
	text_copy(rec->filter_chain, chain, sizeof(rec->filter_chain));
	if (comment != NULL)
		text_copy(rec->filter_comment, comment, sizeof(rec->filter_comment));
}

static_assert((int)RULESET_BACK_NONE == FIB_BACK_NONE &&
		      (int)RULESET_BACK_OTHER == FIB_BACK_OTHER &&
		      (int)RULESET_BACK_HERE == FIB_BACK_HERE,
	      "ruleset/ has the numbers of fib/");

/* Look up the source of a packet of the burst `p->back_of`. */
static enum ruleset_back
packet_back(const struct ruleset_packet *p, bool iif)
{
	const struct burst *b = p->back_of;
	struct fib_back_key key = {
		.main = b->fwd->tries,
		.in = b->in,
		.oif = iif ? p->oif : FIB_BACK_LOOPBACK,
		.ip = p->ip,
		.room = p->room,
		.family = p->family,
		/* Linux checks the reverse path at the hook forward for the VRF device. */
		.by_vrf = true,
		.no_ports = true,
		.proto = p->has_transport ? p->l4proto : 0};

	return (enum ruleset_back)fib_back(b->fwd->fib, &key);
}

/* Describe a packet to the ruleset. Return false if the ruleset does not apply to it. */
static bool
packet_describe(struct burst *b, unsigned int i, struct ruleset_packet *p)
{
	const struct fwd *f = b->fwd;
	const struct fib_iface *out = fib_iface(f->fib, fwd_packet_egress(b, i));

	if (packet_fails_first(b, i, out))
		return false;
	/*
	 * Set each field, because clearing the whole struct first would take longer than
	 * all of this.
	 */
	p->ip = burst_l3(b, i);
	p->room = burst_l3_room(b, i);
	p->l3_bytes = b->l3_len[i];
	p->family = b->family[i];
	p->dry = f->conf == NULL; /* explain */
	p->iif = b->in->hook_ifindex;
	p->oif = out->ifindex;
	p->iifname = b->in->hook_name;
	p->oifname = out->name;
	p->now = burst_now(b);
	p->thread = f->conf == NULL ? 0 : f->conf->index;
	p->back = f->filter->asks_back ? packet_back : NULL;
	p->back_of = b;
	ruleset_look(p);
	return true;
}

static void
packet_judge(struct burst *b, unsigned int i, struct ruleset_packet *p)
{
	const struct ruleset *r = b->fwd->filter;
	enum ruleset_verdict verdict = ruleset_judge(r, p);

	if (b->noted && b->rec[i] != NULL)
		packet_note(b, i, r, p, verdict);
	if (verdict == RULESET_PASS)
		b->judged |= 1ull << i;
	if (verdict == RULESET_PASS && !p->marked)
		return;
	packet_to_slow(b, i);
	if (verdict == RULESET_DROP)
		burst_leave(b, i, r->absent ? DROP_filter_absent : DROP_filter);
	else if (verdict == RULESET_REJECT)
		packet_reject(b, i, p);
}

/* Classify the packets of a family together by the first chain. */
static void
family_classify(const struct ruleset *r, uint8_t family, struct ruleset_packet *p,
		unsigned int n, uint32_t *begins)
{
	const struct ruleset_acl *acl =
		r->n_base == 0 ? NULL : r->chain[r->base[0]].acl[family == 6];
	struct ruleset_packet *of[BURST_MAX];
	unsigned int n_of = 0;

	if (acl == NULL)
		return;
	for (unsigned int k = 0; k < n; k++) {
		if (p[k].family != family || p[k].begins != NULL)
			continue;
		p[k].begins = begins + n_of * acl->n_category;
		of[n_of++] = &p[k];
	}
	if (n_of > 0)
		ruleset_acl_classify(acl, of, n_of, begins);
}

/* The first matching rules of classified packets, by entry of the burst. */
struct begins {
	const uint32_t *of[BURST_MAX]; /* NULL: not classified */
	uint32_t rule[BURST_MAX * ACL_SEGMENTS_MAX];
};

/*
 * Return true if an IPv4 packet of the fast path is plain: its header and ports are enough
 * for the classifier.
 */
static inline bool
packet_is_plain(const struct burst *b, unsigned int i)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_iface *out = fib_iface(fib, b->hop[i] & 0xffff);
	const uint8_t *ip = burst_l3(b, i);

	return out != NULL && out->up && path_kind(b->path[i]) != PATH_ENCAP &&
	       b->l3_len[i] <= fib_mtu(fib, b->path[i], out, 4) &&
	       (get_be16(ip + 6) & 0x1fff) == 0 && burst_l3_room(b, i) >= 24;
}

/*
 * Judge the plain packets of a burst of IPv4 fast-path packets: by the policy, if no rule
 * matches, or by a rule that has only a verdict. This decides most packets of an edge
 * router. Returns a bit for each decided packet; *begins has the first matching rules of
 * the other plain packets.
 */
static uint64_t
plain_judge(struct burst *b, struct begins *begins)
{
	const struct ruleset *r = b->fwd->filter;
	const struct ruleset_acl *acl = r->n_base == 1 ? r->chain[r->base[0]].acl[0] : NULL;
	const uint8_t *ip[BURST_MAX];
	uint64_t done = 0;
	uint8_t at[BURST_MAX];
	unsigned int n = 0;

	memset(begins->of, 0, b->n * sizeof(begins->of[0]));
	if (acl == NULL || b->fast4 != burst_all(b) ||
	    (b->labels | b->switched | b->push | b->into) != 0 || b->noted ||
	    b->fwd->conf == NULL)
		return 0;
	for (unsigned int i = 0; i < b->n; i++)
		if (packet_is_plain(b, i)) {
			ip[n] = burst_l3(b, i);
			at[n++] = (uint8_t)i;
		}
	if (n == 0)
		return 0;
	ruleset_acl_classify4(acl, ip, n, burst_now(b), begins->rule);
	for (unsigned int k = 0; k < n; k++) {
		const uint32_t *begin = begins->rule + k * acl->n_category;
		unsigned int i = at[k];
		bool passes;

		begins->of[i] = begin;
		if (ruleset_acl_is_silent(acl, begin))
			passes = !r->chain[r->base[0]].drops;
		else if (begin[0] != 0 && (r->rule[begin[0] - 1].sure & 1) != 0)
			passes = ruleset_decide(&r->rule[begin[0] - 1], b->fwd->conf->index,
						b->l3_len[i]);
		else
			continue;
		done |= 1ull << i;
		if (passes) {
			b->judged |= 1ull << i;
		} else {
			packet_to_slow(b, i);
			burst_leave(b, i, DROP_filter);
		}
	}
	return done;
}

void
fwd_filter(struct burst *b)
{
	uint64_t fast = b->fast4 | b->fast6 | b->switched, done;
	struct begins plain;
	struct ruleset_packet p[BURST_MAX];
	uint32_t begins[2][BURST_MAX * ACL_SEGMENTS_MAX];
	uint8_t at[BURST_MAX];
	unsigned int n = 0;

	b->judged = 0;
	done = plain_judge(b, &plain);
	if (done == burst_all(b))
		return;
	for (unsigned int i = 0; i < b->n; i++) {
		if ((done >> i & 1) != 0)
			continue;
		if ((fast >> i & 1) == 0 && b->verdict[i] != VERDICT_GO &&
		    b->verdict[i] != PUNT_unresolved)
			continue;
		/*
		 * A packet without a family keeps labels; the ruleset does not apply to it.
		 */
		p[n].begins = plain.of[i];
		if (b->family[i] != 0 && packet_describe(b, i, &p[n]))
			at[n++] = (uint8_t)i;
	}
	if (!b->fwd->filter->absent) {
		family_classify(b->fwd->filter, 4, p, n, begins[0]);
		family_classify(b->fwd->filter, 6, p, n, begins[1]);
	}
	for (unsigned int k = 0; k < n; k++)
		packet_judge(b, at[k], &p[k]);
}
