/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * few: all stages of a short burst whose packets all take the fast path from one port to
 * others. Each stage has a cost per burst, which is high if the burst has few packets. Here
 * all checks come first, packet by packet. If one of them fails, the burst is unchanged and
 * passes the stages. The result is that of the stages; test_fwd_few.c compares the two.
 * [fwd-n]
 */
#include "fwd/few.h"

#include "fib/hook_list.h"
#include "fwd/cycles.h"
#include "fwd/fast.h"
#include "fwd/frame_header.h"
#include "fwd/tx.h"

/* With fewer packets it takes less time to look up, or to check, each of them alone. */
#define LOOKUP4_BULK_MIN  4 /* all IPv4 */
#define LOOKUP_BULK_MIN   8
#define PARSE_VECTORS_MIN 5

/* Return true if the interface and the router need no stage that this file leaves out. */
static inline bool
burst_is_usual(struct burst *b)
{
	struct fwd *f = b->fwd;
	const struct fib_iface *in = fib_iface(f->fib, b->ifidx);

	f->hook_moved = 0; /* no program runs here */

	b->in = in;
	return in != NULL && in->ifindex != 0 && in->up && in->vrf == 0 &&
	       !iface_checks_sources(in) && !in->unnumbered4 && !b->inside &&
	       b->tag_bytes == 0 && !fib_iface_is_hooked(f->hooks, in) && !fwd_filters(f) &&
	       !fwd_watched(f) &&
	       atomic_load_explicit(&f->fib->out_special, memory_order_relaxed) == 0;
}

/*
 * Parse. Returns the number of IPv4 packets; above b->n: a packet is not on the fast path.
 */
static inline unsigned int
few_parse(struct burst *b)
{
	unsigned int n4 = 0;

	if (b->n >= PARSE_VECTORS_MIN) {
		fwd_fast(b);
		return (b->fast4 | b->fast6) == burst_all(b)
			       ? (unsigned int)__builtin_popcountll(b->fast4)
			       : UINT32_MAX;
	}
	b->padded = 0;
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t family = fwd_fast_one(b, i);

		if (family == 0)
			return UINT32_MAX;
		n4 += family == 4;
	}
	return n4;
}

/* Look up each packet alone. */
static inline void
few_lookup_alone(struct burst *b, uint32_t *group)
{
	const struct fib_copy *tries = b->fwd->tries;

	for (unsigned int i = 0, n = b->n; i < n; i++)
		group[i] = b->family[i] == 4
				   ? poptrie4_lookup(tries->pt4, b->dst4[i])
				   : poptrie6_lookup(tries->pt6, burst_l3(b, i) + 24);
}

/* Look up the packets of each family together. */
static inline void
few_lookup_families(struct burst *b, uint32_t *group)
{
	const struct fib_copy *tries = b->fwd->tries;
	uint32_t key4[FWD_FEW_MAX], found[FWD_FEW_MAX];
	const uint8_t *key6[FWD_FEW_MAX];
	uint8_t of4[FWD_FEW_MAX], of6[FWD_FEW_MAX];
	unsigned int n4 = 0, n6 = 0;

	/* Avoid a branch on the family, because the CPU would mispredict it. */
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		key4[n4] = b->dst4[i];
		of4[n4] = (uint8_t)i;
		key6[n6] = burst_l3(b, i) + 24;
		of6[n6] = (uint8_t)i;
		n4 += b->family[i] == 4;
		n6 += b->family[i] != 4;
	}
	poptrie6_lookup_bulk(tries->pt6, key6, found, n6);
	for (unsigned int k = 0; k < n6; k++)
		group[of6[k]] = found[k];
	poptrie4_lookup_bulk(tries->pt4, key4, found, n4);
	for (unsigned int k = 0; k < n4; k++)
		group[of4[k]] = found[k];
}

static inline void
few_lookup(struct burst *b, unsigned int n4, uint32_t *group)
{
	if (n4 == b->n && n4 >= LOOKUP4_BULK_MIN)
		poptrie4_lookup_bulk(b->fwd->tries->pt4, b->dst4, group, b->n);
	else if (b->n >= LOOKUP_BULK_MIN)
		few_lookup_families(b, group);
	else
		few_lookup_alone(b, group);
}

/*
 * Find the neighbors and the egress interfaces. Returns false if a packet needs another
 * stage, for example because its neighbor has no MAC, or because the packet is too long.
 */
static inline bool
few_adjacency(struct burst *b, const uint32_t *group, const struct fib_iface **out)
{
	const struct fib *fib = b->fwd->fib;

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint64_t w =
			atomic_load_explicit(&fib->group[group[i]], memory_order_consume);
		uint8_t family = b->family[i];
		fib_path path = (fib_path)w;

		if (group_word_is_block(w))
			path = group_word_path(w, flow_hash(burst_l3(b, i),
							    burst_l3_room(b, i), family,
							    fib->seed));
		if (path_kind(path) != PATH_ADJ)
			return false;
		b->hop[i] = atomic_load_explicit(&fib->adj[path_index(path)].hop,
						 memory_order_acquire);
		if (b->hop[i] == 0 || !fib_adj_touch(b->fwd->adj_used, path_index(path)))
			return false;
		out[i] = fib_iface(fib, b->hop[i] & 0xffff);
		if (out[i] == NULL || !out[i]->up || out[i]->n_tags != 0 ||
		    b->l3_len[i] > fib_mtu(fib, path, out[i], family))
			return false;
	}
	return true;
}

static inline void
few_rewrite(struct burst *b, const struct fib_iface *const *out)
{
	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *l2 = burst_l2(b, i);

		frame_write_macs(l2, b->hop[i], out[i]);
		memcpy(l2 + L2_LEN + burst_hop_at(b->family[i]), &b->hop_octets[i], 4);
	}
	for (uint64_t rest = b->padded; rest != 0; rest &= rest - 1)
		frame_trim(b, (unsigned int)__builtin_ctzll(rest));
}

static inline __attribute__((always_inline)) bool
few_walk(struct burst *b, bool timed)
{
	const struct fib_iface *out[FWD_FEW_MAX];
	uint32_t group[FWD_FEW_MAX];
	struct fwd *f = b->fwd;
	unsigned int n4;

	if (timed)
		cycles_mark(f, CYCLES_RECEIVE);
	if (!burst_is_usual(b))
		return false;
	n4 = few_parse(b);
	if (timed)
		cycles_mark(f, CYCLES_PARSE);
	if (n4 > b->n)
		return false;
	few_lookup(b, n4, group);
	if (timed)
		cycles_mark(f, CYCLES_LOOKUP);
	if (!few_adjacency(b, group, out))
		return false;
	if (timed)
		cycles_mark(f, CYCLES_ADJACENCY);
	few_rewrite(b, out);
	if (timed)
		cycles_mark(f, CYCLES_REWRITE);
	for (unsigned int i = 0, n = b->n; i < n; i++)
		fwd_tx_put(f, b->hop[i] & 0xffff, b->m[i]);
	counter_add(&f->count->forwarded[0], n4);
	counter_add(&f->count->forwarded[1], b->n - n4);
	if (timed) {
		cycles_mark(f, CYCLES_DISPATCH);
		counter_add(&f->count->timed_packets, b->n);
		counter_add(&f->count->timed_bursts, 1);
	}
	return true;
}

bool
fwd_few(struct burst *b)
{
	return b->fwd->timed ? few_walk(b, true) : few_walk(b, false);
}
