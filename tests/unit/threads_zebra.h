/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A zebra that changes routes, and checks that the FIB shows these changes and the events
 * of the kernel. It runs in main, which is a reader of the FIB.
 */
#ifndef THREADS_ZEBRA_H
#define THREADS_ZEBRA_H

#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "base/fpm_event.h"
#include "fib/fib.h"
#include "fib/label.h"
#include "threads_kernel.h"

static struct worker rib;
static struct fib *fib;

/* --- zebra ---------------------------------------------------------------------------- */

static struct msg_fpm_batch *batch;

static inline struct fpm_event *
event(enum fpm_event_kind kind, unsigned int n_hops)
{
	struct fpm_event *ev;

	if (batch != NULL && batch->n == FPM_BATCH_MAX) {
		worker_send(&rib, &batch->m);
		batch = NULL;
	}
	if (batch == NULL)
		batch = msg_new(MSG_FPM_BATCH, sizeof(*batch));
	ev = &batch->ev[batch->n++];
	ev->kind = (uint8_t)kind;
	ev->rtm_type = RTN_UNICAST;
	ev->protocol = RTPROT_BGP;
	ev->table = RT_TABLE_MAIN;
	ev->n_hops = (uint16_t)n_hops;
	if (n_hops > 0)
		ev->hops = calloc(n_hops, sizeof(*ev->hops));
	return ev;
}

#define NH_GATEWAY 100
#define NH_GROUP   200 /* a group of gateways, which never changes */
#define NH_ROUTE   300 /* the group of one route */

static inline void
gateway_say(unsigned int n)
{
	struct fpm_event *ev = event(FPM_NEXTHOP, 1);

	ev->nhid = NH_GATEWAY + n;
	ev->hops[0] = (struct fpm_hop){.ifindex = TAP_IFINDEX(nbr[n].port),
				       .weight = 1,
				       .gw_family = nbr[n].family,
				       .gw = nbr_addr(n)};
}

static inline void
group_say(uint32_t nhid, uint32_t hops)
{
	struct fpm_event *ev = event(FPM_NEXTHOP, (unsigned int)__builtin_popcount(hops));

	ev->nhid = nhid;
	ev->is_group = true;
	for (unsigned int i = 0; hops != 0; hops &= hops - 1, i++)
		ev->hops[i] = (struct fpm_hop){
			.id = NH_GATEWAY + (uint32_t)__builtin_ctz(hops), .weight = 1};
}

static inline void
route_say(unsigned int k, uint32_t table, uint32_t nhid)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct fpm_event *ev = event(nhid == 0 ? FPM_ROUTE_DEL : FPM_ROUTE, 0);

		ev->table = table;
		ev->prefix = route_prefix(k, family);
		ev->nhid = nhid;
	}
}

/*
 * Change a route. Even routes name another group each time; odd routes have a group of
 * their own that changes. Every fourth route is replaced as in FRR 8.4, with a DEL in the
 * same batch.
 */
static inline void
route_change(unsigned int fact, uint32_t version)
{
	uint32_t hops = route_gateways(fact, version), table = RT_TABLE_MAIN;
	unsigned int k = fact - FACT_ROUTE;

	if (fact >= FACT_VRF_ROUTE) {
		k = fact - FACT_VRF_ROUTE;
		table = VRF_TABLE;
	}
	if (hops == 0) {
		route_say(k, table, 0);
	} else if (k % 2 == 0) {
		if (k % 4 == 0)
			route_say(k, table, 0);
		group_say(NH_GROUP + hops, hops);
		route_say(k, table, NH_GROUP + hops);
	} else {
		group_say(NH_ROUTE + fact, hops);
		route_say(k, table, NH_ROUTE + fact);
	}
}

/* Write next hops inline, with the labels of label `k` in this version. */
static inline void
labelled_hops_say(struct fpm_event *ev, uint32_t hops, unsigned int k, uint32_t version)
{
	uint8_t no_label = ev->prefix.family == FAMILY_LABEL ? HOP_POP : HOP_PLAIN;

	for (unsigned int i = 0; hops != 0; hops &= hops - 1, i++) {
		unsigned int gw = (unsigned int)__builtin_ctz(hops);

		ev->hops[i] = (struct fpm_hop){
			.ifindex = TAP_IFINDEX(nbr[gw].port),
			.weight = 1,
			.gw_family = nbr[gw].family,
			.gw = nbr_addr(gw),
			.encap = LABELS_PUSHED(version) == 0 ? no_label : HOP_MPLS,
			.n_labels = LABELS_PUSHED(version),
			.label = {LABEL_OUT(k, version), LABEL_BEHIND}};
	}
}

/* Change a label, and the routes that push the labels of its next hops. */
static inline void
label_change(unsigned int fact, uint32_t version)
{
	uint32_t hops = route_gateways(fact, version);
	unsigned int k = fact - FACT_LABEL, n = (unsigned int)__builtin_popcount(hops);
	struct prefix prefix[] = {{.family = FAMILY_LABEL, .len = 32},
				  route_prefix(PUSH_ROUTE(k), 4),
				  route_prefix(PUSH_ROUTE(k), 6)};

	put_be32(prefix[0].addr.octet, LABEL_IN(k));
	for (unsigned int i = 0; i < 3; i++) {
		struct fpm_event *ev = event(hops == 0 ? FPM_ROUTE_DEL : FPM_ROUTE, n);

		ev->prefix = prefix[i];
		ev->table = i == 0 ? FPM_TABLE_NONE : RT_TABLE_MAIN;
		labelled_hops_say(ev, hops, k, version);
	}
}

/*
 * The FIB may show the expected next hops by chance, because they were the same before.
 * Therefore a route changes its gateway with each batch and shows that rib has handled the
 * batch. Another route by port 4 shows that rib has handled a change of the link.
 */
#define MARK_OF_BATCH (N_ROUTE + 1)
#define MARK_OF_LINK  (N_ROUTE + 2)
static bool mark;

static inline void
batch_send(void)
{
	if (batch == NULL)
		return;
	mark = !mark;
	route_say(MARK_OF_BATCH, RT_TABLE_MAIN, NH_GATEWAY + (mark ? 2 : 0));
	worker_send(&rib, &batch->m);
	batch = NULL;
}

/* --- checks of the FIB ---------------------------------------------------------------- */

/* Return the gateway of a path as a bit. 0: none. */
static inline uint32_t
gateway_seen(fib_path path)
{
	const struct fib_adj *adj = &fib->adj[path_index(path)];

	if (path_kind(path) != PATH_ADJ)
		return 0;
	for (unsigned int n = 0; n < HOSTS; n++) {
		struct ipaddr addr = nbr_addr(n);

		if (ipaddr_equal(&addr, &adj->addr))
			return 1u << n;
	}
	must(!"a gateway of ours");
	return 0;
}

static inline uint32_t
group_seen(const struct poptrie *pt4, const struct poptrie *pt6, const struct prefix *p)
{
	if (pt4 == NULL || pt6 == NULL)
		return 0;
	return p->family == 4 ? poptrie4_lookup(pt4, ipaddr_v4(&p->addr))
			      : poptrie6_lookup(pt6, p->addr.octet);
}

/* Return the next hops of route `k` in table main, or in the VRF of port 2. */
static inline uint32_t
gateways_seen(unsigned int k, uint8_t family, bool of_vrf)
{
	uint16_t vrf = of_vrf ? fib_vrf_of(fib, 2) : 0;
	struct prefix p = route_prefix(k, family);
	uint32_t group =
		of_vrf ? group_seen(fib_vrf_pt4(fib, vrf), fib_vrf_pt6(fib, vrf), &p)
		       : group_seen(fib->copy[0].pt4, fib->copy[0].pt6, &p);
	uint64_t w = atomic_load_explicit(&fib->group[group], memory_order_acquire);
	uint32_t hops = 0;

	if (!group_word_is_block(w))
		return gateway_seen((fib_path)w);
	for (unsigned int i = 0; i < 1u << group_word_log2(w); i++)
		hops |= gateway_seen(group_word_buckets(w)[i]);
	return hops;
}

static inline bool
route_is(unsigned int fact, uint32_t version)
{
	bool of_vrf = fact >= FACT_VRF_ROUTE;
	unsigned int k = fact - (of_vrf ? FACT_VRF_ROUTE : FACT_ROUTE);
	uint32_t hops = route_gateways(fact, version);

	if (atomic_load(&begun[FACT_LINK]) % 2 != 0)
		hops &= ~GATEWAYS_DOWN;
	return gateways_seen(k, 4, of_vrf) == hops && gateways_seen(k, 6, of_vrf) == hops;
}

/*
 * Return the gateway of the path of label `k` as a bit. 0: none, or labels of another
 * version.
 */
static inline uint32_t
label_path_seen(fib_path path, unsigned int k, uint32_t version)
{
	const struct fib_encap *e;

	if (path_kind(path) != PATH_ENCAP)
		return LABELS_PUSHED(version) == 0 ? gateway_seen(path) : 0;
	e = fib_encap(fib, path);
	return e->n == LABELS_PUSHED(version) && label_of(__builtin_bswap32(e->entry[0])) ==
							 LABEL_OUT(k, version)
		       ? gateway_seen(e->next)
		       : 0;
}

/* True if a group has the next hops of label `k` in this version. */
static inline bool
labelled_group_is(uint32_t group, unsigned int k, uint32_t version)
{
	uint64_t w = atomic_load_explicit(&fib->group[group], memory_order_acquire);
	uint32_t want = route_gateways(FACT_LABEL + k, version), hops = 0;

	if (want == 0 || group == 0)
		return want == 0 && group == 0;
	if (atomic_load(&begun[FACT_LINK]) % 2 != 0)
		want &= ~GATEWAYS_DOWN;
	if (!group_word_is_block(w))
		return label_path_seen((fib_path)w, k, version) == want;
	for (unsigned int i = 0; i < 1u << group_word_log2(w); i++)
		hops |= label_path_seen(group_word_buckets(w)[i], k, version);
	return hops == want;
}

static inline bool
label_is(unsigned int fact, uint32_t version)
{
	unsigned int k = fact - FACT_LABEL;
	struct prefix p4 = route_prefix(PUSH_ROUTE(k), 4),
		      p6 = route_prefix(PUSH_ROUTE(k), 6);
	const struct poptrie *pt4 = fib->copy[0].pt4, *pt6 = fib->copy[0].pt6;

	return labelled_group_is(
		       atomic_load_explicit(&fib->label[LABEL_IN(k)], memory_order_acquire),
		       k, version) &&
	       labelled_group_is(group_seen(pt4, pt6, &p4), k, version) &&
	       labelled_group_is(group_seen(pt4, pt6, &p6), k, version);
}

static inline bool
labels_are(void)
{
	for (unsigned int fact = FACT_LABEL; fact < FACT_LABEL + N_LABEL; fact++)
		if (!label_is(fact, atomic_load(&begun[fact])))
			return false;
	return true;
}

/* True if all routes of a table are as expected. */
static inline bool
routes_are(unsigned int first)
{
	for (unsigned int fact = first; fact < first + N_ROUTE; fact++)
		if (!route_is(fact, atomic_load(&begun[fact])))
			return false;
	return true;
}

/* True if the VRF of port 2 has its routes. `there` false: true if port 2 has no VRF. */
static inline bool
vrf_is(bool there)
{
	uint16_t vrf = fib_vrf_of(fib, 2);

	if (!there)
		return vrf == 0 && fib_vrf_named(fib, "red") == 0;
	return vrf != 0 && fib_vrf(fib, vrf) != NULL && routes_are(FACT_VRF_ROUTE);
}

static inline bool
link_is(bool up)
{
	const struct fib_iface *i = fib_iface(fib, 4);

	return i != NULL && i->up == up &&
	       gateways_seen(MARK_OF_LINK, 4, false) == (up ? 2u : 0) &&
	       routes_are(FACT_ROUTE) && labels_are() &&
	       (atomic_load(&begun[FACT_VRF]) % 2 == 0 || routes_are(FACT_VRF_ROUTE));
}

static inline bool
iface_is(unsigned int ifidx, uint32_t version)
{
	const struct fib_iface *i = fib_iface(fib, ifidx);

	return i != NULL && i->mtu_bytes == versioned_mtu(version) &&
	       (ifidx <= 2 || get_be32(i->mac + 2) == version);
}

static inline bool
neighbor_is(unsigned int n, uint32_t version)
{
	struct ipaddr addr = nbr_addr(n);
	uint32_t slot = fib_host_adj(fib, nbr[n].port, nbr[n].family, &addr);
	uint8_t mac[6];

	versioned_mac(mac, (uint8_t)n, version);
	/* A link that is down has no adjacency. */
	if (nbr[n].port == 4 && atomic_load(&begun[FACT_LINK]) % 2 != 0)
		return slot == 0;
	return slot != 0 &&
	       atomic_load_explicit(&fib->adj[slot].hop, memory_order_acquire) ==
		       adj_hop_make(mac, nbr[n].port);
}

static inline bool
batch_is_heard(void)
{
	return gateways_seen(MARK_OF_BATCH, 4, false) == (mark ? 4u : 1u);
}

static inline bool
is_so(unsigned int fact, uint32_t version)
{
	if (fact >= FACT_LABEL)
		return label_is(fact, version);
	if (fact < FACT_NBR || fact >= FACT_VRF_ROUTE)
		return route_is(fact, version);
	if (fact < FACT_IFACE)
		return neighbor_is(fact - FACT_NBR, version);
	if (fact < FACT_LINK)
		return iface_is(fact - FACT_IFACE, version);
	return fact == FACT_LINK ? link_is(version % 2 == 0) : vrf_is(version % 2 != 0);
}

#endif
