/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vlan: separate the frames of a port that has VLANs or macvlans. The stages handle packets
 * of one interface. So the frames are grouped by interface, and lose the tags that lead to
 * it. loop.c calls fwd_look() and fwd_split() only for a port that has or had VLANs or
 * macvlans. Tags select first, then the destination MAC selects a macvlan.      [fwd-n]
 */
#include "fwd/vlan.h"

#include <stddef.h>

#include "fib/hook_list.h"
#include "fwd/fast.h"
#include "port/vlan_tags.h"

/* Return the VLAN of a frame whose tag the NIC stripped, by the tag's TCI; 0: no VLAN. */
static uint16_t
tci_find_vlan(const struct fib *fib, uint16_t ifidx, uint16_t tci)
{
	uint8_t tag[VLAN_BYTES];

	put_be16(tag, VLAN_C_TYPE);
	put_be16(tag + 2, tci);
	return fib_vlan(fib, ifidx, tag);
}

/*
 * Return the interface of a frame as the NIC delivers it; *at as in vlan_find(). A stripped
 * tag stays off if it alone selects the interface, which is nearly always so. Otherwise it
 * is put back, and the frame is as it was on the wire.
 */
static uint16_t
frame_find_vlan(const struct fib *fib, uint16_t ifidx, struct rte_mbuf *m, unsigned int *at)
{
	unsigned int stripped = vlan_stripped(m);

	if (stripped != 0) {
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		uint16_t of = tci_find_vlan(fib, ifidx, m->vlan_tci);

		*at = VLAN_AT;
		if (of != 0 && stripped == 1 && rte_pktmbuf_data_len(m) >= L2_LEN &&
		    !vlan_type_is_tag(get_be16(frame + VLAN_AT)))
			return of;
		vlan_restore(m, NULL);
	}
	return vlan_find(fib, ifidx, rte_pktmbuf_mtod(m, uint8_t *),
			 rte_pktmbuf_data_len(m), at);
}

uint16_t
fwd_enter(const struct fib *fib, uint16_t ifidx, struct rte_mbuf *m)
{
	unsigned int at;
	uint16_t in = frame_find_vlan(fib, ifidx, m, &at);

	if (at > VLAN_AT)
		vlan_strip(m, (at - VLAN_AT) / VLAN_BYTES);
	return fib_macvlan(fib, in, rte_pktmbuf_mtod(m, const uint8_t *));
}

void
fwd_untag(struct burst *b, unsigned int i)
{
	if (rte_pktmbuf_data_len(b->m[i]) >= L2_LEN + b->tag_bytes)
		vlan_strip(b->m[i], b->tag_bytes / VLAN_BYTES);
	else /* the frame ends within its tags, which lead to no interface */
		b->l2[i] -= b->tag_bytes;
}

/*
 * The most kinds of interfaces per burst whose packets are tried on the fast path.
 * Interfaces of one kind have the same conditions for the fast path, see ifaces_alike().
 */
#define ALIKE_MAX 4

/*
 * Return true if a frame may have a tag, or had a tag that the NIC stripped. This may be
 * true although no frame has a tag, because the octets behind the end of a short frame are
 * those of an earlier frame.
 */
static bool
burst_any_tagged(const struct burst *b)
{
	bool any = false;

	for (unsigned int i = 0; i < b->n; i++)
		any |= vlan_type_is_tag(get_be16(burst_l2(b, i) + VLAN_AT));
	return any || (b->any_flags & VLAN_STRIPPED) != 0;
}

/*
 * Return the bits of burst_tags() that decide which interface a frame belongs to: `n` tags
 * without their priorities, and the octets that show whether another tag follows. `more`:
 * another tag could lead to a VLAN, because the interface has VLANs.
 */
static uint64_t
tags_mask(unsigned int n, bool more, const uint8_t *frame)
{
	const uint64_t tag = __builtin_bswap32(~VLAN_PRIORITY);
	uint16_t type = get_be16(frame + VLAN_AT + n * VLAN_BYTES);
	uint64_t mask = n == 0 ? 0 : n == 1 ? tag : tag | tag << 32;

	if (n < VLAN_TAGS && more) /* if no tag follows, only the EtherType matters */
		mask |= (vlan_type_is_tag(type) ? tag : 0xffff) << n * 32;
	return mask;
}

/* The octets up to the end of all tags that select an interface, and of one more tag. */
#define LONG_ENOUGH (VLAN_AT + (VLAN_TAGS + 1) * VLAN_BYTES)

/* Add the octets of stripped tags, because they were received, too. */
static void
bytes_add_stripped(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		b->bytes += vlan_stripped(b->m[i]) * VLAN_BYTES;
}

/* fwd_look() for a burst whose first frame has a stripped tag. */
static __attribute__((noinline)) uint16_t
burst_look_stripped(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	const struct rte_mbuf *m = b->m[0];
	const uint8_t *first = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t of = tci_find_vlan(fib, b->ifidx, m->vlan_tci), differ = 0;
	uint64_t more = fwd_look_tags(b, 0);

	bytes_add_stripped(b);
	for (unsigned int i = 0; i < b->n; i++)
		differ |= b->m[i]->vlan_tci ^ m->vlan_tci;
	/*
	 * All frames had the same tag, and no frame has another tag that selects an
	 * interface.
	 */
	if (of != 0 && (differ & ~VLAN_PRIORITY) == 0 &&
	    (b->all_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 &&
	    (b->any_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) == 0 &&
	    rte_pktmbuf_data_len(m) >= LONG_ENOUGH &&
	    !vlan_type_is_tag(get_be16(first + VLAN_AT)) &&
	    (more & tags_mask(0, fib_vlans(fib, of) != NULL, first)) == 0 &&
	    !fwd_watched(b->fwd))
		return of;
	return 0;
}

/*
 * Read the buffers of a burst. Returns the interface whose tags all frames have; 0: they
 * have to be separated.
 */
static uint16_t
burst_look_vlan(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	const uint8_t *first = rte_pktmbuf_mtod(b->m[0], const uint8_t *);
	unsigned int at, n;
	uint16_t of = vlan_find(fib, b->ifidx, first, rte_pktmbuf_data_len(b->m[0]), &at);
	uint64_t differ;

	if (vlan_stripped(b->m[0]) != 0)
		return burst_look_stripped(b);
	n = (at - VLAN_AT) / VLAN_BYTES;
	differ = fwd_look_tags(b, (uint8_t)(n * VLAN_BYTES)) &
		 tags_mask(n, fib_vlans(fib, of) != NULL, first);
	/*
	 * Separate the frames also in these cases. A session watches packets, and must see
	 * whole frames. The NIC has stripped a tag from another frame of the burst; that
	 * tag comes before the tags in the frames. The first frame is short, so it has not
	 * all octets to compare. The first frame has a tag with id 0, behind which another
	 * frame may have the tag of a VLAN.
	 */
	if (differ == 0 && rte_pktmbuf_data_len(b->m[0]) >= LONG_ENOUGH &&
	    !fwd_watched(b->fwd) && (b->any_flags & VLAN_STRIPPED) == 0 &&
	    !vlan_is_priority(first + at))
		return of;
	burst_look(b);
	if ((b->any_flags & VLAN_STRIPPED) != 0)
		bytes_add_stripped(b);
	return 0;
}

/*
 * The destination MAC in the first eight octets of a frame, read as a little-endian word.
 */
#define MAC_BITS 0xffffffffffffu

/*
 * Return the interface of a burst whose frames all have the tags of `of`: a macvlan on it,
 * or `of`. 0: the frames have different MACs, and have to be separated.
 */
static uint16_t
burst_look_macs(struct burst *b, uint16_t of)
{
	const uint8_t *first = burst_macs(b, 0);
	uint64_t head, next, differ = 0, bytes = b->bytes;

	if (fib_macs(b->fwd->fib, of) == NULL)
		return of;
	memcpy(&head, first, sizeof(head));
	if ((b->heads_differ & MAC_BITS) != 0) {
		for (unsigned int i = 1; i < b->n; i++) {
			memcpy(&next, burst_macs(b, i), sizeof(next));
			differ |= next ^ head;
		}
	}
	if ((differ & MAC_BITS) == 0)
		return fib_macvlan(b->fwd->fib, of, first);
	burst_look(b); /* fwd_split() expects frames with their tags */
	b->bytes = bytes;
	return 0;
}

/* Return true if the port of a received burst has macvlans, also on its VLANs. */
static bool
burst_may_have_macvlans(const struct burst *b)
{
	const struct fib_vlans *vlans = fib_vlans(b->fwd->fib, b->ifidx);

	return atomic_load_explicit(&vlans->any_macs, memory_order_relaxed);
}

uint16_t
fwd_look(struct burst *b)
{
	uint16_t of = burst_look_vlan(b);

	return of != 0 && burst_may_have_macvlans(b) ? burst_look_macs(b, of) : of;
}

/* A burst separated by interface. */
struct split {
	struct rte_mbuf *m[BURST_MAX];
	const struct fib_iface *iface[BURST_MAX]; /* NULL: the interface is gone */
	uint16_t of[BURST_MAX];
	uint32_t bytes[BURST_MAX]; /* as received */
	uint8_t tags[BURST_MAX];   /* tags in the frame that select its interface */
	uint64_t left;             /* entries still to be handled */
};

/* Count `n` received frames of a VLAN or macvlan. The caller counts them for the port. */
static void
iface_count_rx(const struct burst *b, uint16_t ifidx, uint64_t n, uint64_t bytes)
{
	struct if_counters *c = &b->fwd->count->port[ifidx];

	if (ifidx < PORT_MAX)
		return;
	counter_add(&c->rx_packets, n);
	counter_add(&c->rx_bytes, bytes);
}

static inline void
vrf_count_rx(const struct burst *b, const struct fib_iface *in, uint64_t bytes)
{
	struct vrf_counters *c;

	if (in == NULL || in->vrf == 0)
		return;
	c = &b->fwd->count->vrf[in->vrf];
	counter_add(&c->rx_packets, 1);
	counter_add(&c->rx_bytes, bytes);
}

/*
 * Find the interface of each packet and count the packet for it. `stripped`: the NIC
 * stripped tags. `macs`: the port has macvlans. The compiler makes a separate loop for
 * bursts with neither.
 */
static inline __attribute__((always_inline)) void
burst_split(struct burst *b, struct split *t, bool stripped, bool macs)
{
	const struct fib *fib = b->fwd->fib;

	t->left = burst_all(b);
	for (unsigned int i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->m[i];
		unsigned int at;
		uint16_t of = stripped ? frame_find_vlan(fib, b->ifidx, m, &at)
				       : vlan_find(fib, b->ifidx, b->l2[i],
						   rte_pktmbuf_data_len(m), &at);

		if (macs)
			of = fib_macvlan(fib, of, rte_pktmbuf_mtod(m, const uint8_t *));
		t->m[i] = m;
		t->bytes[i] = rte_pktmbuf_pkt_len(m);
		t->of[i] = of;
		t->iface[i] = fib_iface(fib, of);
		t->tags[i] = (uint8_t)((at - VLAN_AT) / VLAN_BYTES);
		if (stripped)
			t->bytes[i] += vlan_stripped(m) * VLAN_BYTES;
	}
	/*
	 * Count in a separate loop, because the CPU cannot load a counter before it knows
	 * the addresses of all earlier stores.
	 */
	for (unsigned int i = 0; i < b->n; i++) {
		iface_count_rx(b, t->of[i], 1, t->bytes[i]);
		vrf_count_rx(b, t->iface[i], t->bytes[i]);
	}
	b->vrf_counted = true;
}

/*
 * Return true if the conditions of the fast path are the same on both interfaces, tags
 * aside. `macs`: each frame is for the MAC of its interface, so the MACs need not be the
 * same.
 */
static inline bool
ifaces_alike(const struct fib_iface *a, const struct fib_iface *b, bool macs)
{
	static_assert(offsetof(struct fib_iface, urpf4) ==
			      offsetof(struct fib_iface, fast4) + 3,
		      "fast4, fast6, unnumbered4 and urpf4 are one word");
	return (macs || memcmp(a->mac, b->mac, sizeof(a->mac)) == 0) &&
	       memcmp(&a->fast4, &b->fast4, 4) == 0 && a->up == b->up &&
	       (a->ifindex == 0) == (b->ifindex == 0);
}

/* Return a bit mask of the packets whose frames are for the MAC of their interface. */
static uint64_t
split_for_own_macs(const struct burst *b, const struct split *t)
{
	uint64_t own = 0;

	for (unsigned int i = 0; i < b->n; i++)
		own |= (uint64_t)(t->iface[i] != NULL &&
				  memcmp(rte_pktmbuf_mtod(t->m[i], const uint8_t *),
					 t->iface[i]->mac, sizeof(t->iface[i]->mac)) == 0)
		       << i;
	return own;
}

/*
 * Pass packets of `untried` through the fast path: those from the interface of `like`, and
 * from interfaces that are alike. `macs` as in ifaces_alike().
 */
static void
split_walk_alike(struct burst *b, struct split *t, unsigned int like, uint64_t *untried,
		 bool macs, uint64_t (*walk_fast)(struct burst *b))
{
	const struct fib_iface *in = t->iface[like];
	uint8_t from[BURST_MAX], tags = t->tags[like];
	uint16_t differ = 0;

	b->n = 0;
	for (uint64_t rest = *untried; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (t->iface[i] == NULL || t->tags[i] != tags ||
		    !ifaces_alike(t->iface[i], in, macs) ||
		    fib_iface_is_hooked(b->fwd->hooks, t->iface[i]))
			continue;
		*untried &= ~(1ull << i);
		t->left &= ~(1ull << i);
		from[b->n] = (uint8_t)i;
		b->vrf[b->n] = t->iface[i]->vrf;
		differ |= t->iface[i]->vrf ^ in->vrf;
		b->m[b->n++] = t->m[i];
	}
	(void)fwd_look_tags(b, (uint8_t)(tags * VLAN_BYTES));
	b->ifidx = in->ifidx;
	b->in = in;
	b->vrfs_differ = differ != 0;
	b->macs_known = macs;
	b->fwd->hook_moved = 0; /* no program runs here */
	for (uint64_t rest = walk_fast(b); rest != 0; rest &= rest - 1) {
		unsigned int i = from[__builtin_ctzll(rest)];

		t->left |= 1ull << i;
		t->tags[i] = 0;
	}
	b->macs_known = false;
}

/* Pass the packets that are left through the stages, one interface at a time. */
static void
split_walk_left(struct burst *b, struct split *t, void (*walk)(struct burst *b))
{
	while (t->left != 0) {
		uint16_t ifidx = t->of[__builtin_ctzll(t->left)];

		b->n = 0;
		b->ifidx = ifidx;
		for (uint64_t rest = t->left; rest != 0; rest &= rest - 1) {
			unsigned int i = (unsigned int)__builtin_ctzll(rest);

			if (t->of[i] != ifidx)
				continue;
			if (t->tags[i] != 0)
				vlan_strip(t->m[i], t->tags[i]);
			b->m[b->n++] = t->m[i];
			t->left &= ~(1ull << i);
		}
		burst_look(b); /* the burst now has other frames, without their tags */
		walk(b);
	}
}

void
fwd_split(struct burst *b, uint16_t of_all, void (*walk)(struct burst *b),
	  uint64_t (*walk_fast)(struct burst *b))
{
	bool macs = burst_may_have_macvlans(b);
	uint64_t untried;
	struct split t;

	if (of_all != 0) {
		b->ifidx = of_all;
		iface_count_rx(b, of_all, b->n, b->bytes);
		walk(b);
		return;
	}
	if (!macs && !burst_any_tagged(b)) {
		walk(b);
		return;
	}
	if (macs)
		burst_split(b, &t, (b->any_flags & VLAN_STRIPPED) != 0, true);
	else if ((b->any_flags & VLAN_STRIPPED) != 0)
		burst_split(b, &t, true, false);
	else
		burst_split(b, &t, false, false);
	untried = fwd_watched(b->fwd) || fwd_filters(b->fwd) || walk_fast == NULL ? 0
										  : t.left;
	if (macs) /* the slow path drops frames to other stations */
		untried &= split_for_own_macs(b, &t);
	for (unsigned int k = 0; k < ALIKE_MAX && untried != 0; k++) {
		unsigned int like = (unsigned int)__builtin_ctzll(untried);

		/* The check of sources (uRPF) and programs handle one interface at a time. */
		if (t.iface[like] != NULL && t.iface[like]->up &&
		    t.iface[like]->ifindex != 0 && !iface_checks_sources(t.iface[like]) &&
		    !fib_iface_is_hooked(b->fwd->hooks, t.iface[like]))
			split_walk_alike(b, &t, like, &untried, macs, walk_fast);
		else
			untried &= untried - 1;
	}
	split_walk_left(b, &t, walk);
}

bool
fwd_priority_tag(struct burst *b, unsigned int i)
{
	const uint8_t *eth = burst_l2(b, i);
	bool is = rte_pktmbuf_data_len(b->m[i]) >= L2_LEN + VLAN_BYTES &&
		  vlan_is_priority(eth + VLAN_AT) && vlan_stripped(b->m[i]) < VLAN_TAGS;

	if (is) {
		vlan_strip(b->m[i], 1);
		b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);
	}
	return is;
}
