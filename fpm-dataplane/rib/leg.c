/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Legs: the next hops of slots, tied to the link and the adjacency that each needs. [rib]
 *
 * zebra sends nothing when an interface goes down (doc/fpm.md, rule 8). Therefore a leg is
 * down while its interface is missing or not up, and returns with it. A change of a link
 * marks the slots of the legs on it, never a prefix. A leg may name an interface that the
 * kernel has not reported (yet); link.c then keeps a stub of the link.
 */
#include "rib/leg.h"

#include "base/srv6_words.h"
#include "fib/rules.h"
#include "rib/adj.h"
#include "rib/encap.h"
#include "rib/index.h"
#include "rib/link.h"
#include "rib/kroute.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/sid.h"
#include "rib/slot.h"
#include "rib/nh_list.h"

static bool
leg_has_labels(const struct leg *leg)
{
	return leg->hop.encap == HOP_MPLS && leg->hop.stack != 0;
}

/* Return true if a next hop adds an outer header of SRv6 to packets. */
static bool
hop_is_headend(const struct rib *rib, const struct next_hop *hop)
{
	return hop->kind == PATH_NONE && hop->encap == HOP_SEG6 && hop->stack != 0 &&
	       (*stack_labels(stack_at(rib, hop->stack)) & SRV6_HEADEND) != 0;
}

/*
 * Take an entry for a headend or an end point. Neither its gateway nor its interface
 * matters.
 */
static void
leg_seg6_get(struct rib *rib, struct leg *leg)
{
	if (hop_is_headend(rib, &leg->hop))
		leg->encap = encap_get(rib, ENCAP_HEADEND, leg->hop.stack);
	else if (hop_is_end_point(rib, &leg->hop))
		leg->sid = sid_get(rib, &leg->hop);
	else
		return;
	leg->lacks_adj = leg->encap == 0 && leg->sid == 0;
	if (leg->lacks_adj)
		cds_list_add_tail(&leg->on_adj, &rib->legs.without_adj);
}

static void
leg_seg6_put(struct rib *rib, struct leg *leg)
{
	if (leg->hop.encap != HOP_SEG6)
		return;
	if (leg->lacks_adj)
		cds_list_del(&leg->on_adj);
	leg->lacks_adj = false;
	if (leg->encap != 0)
		vec32_push(&reclaim_open(rib)->encaps, leg->encap);
	if (leg->sid != 0)
		vec32_push(&reclaim_open(rib)->end_points, leg->sid);
	leg->encap = leg->sid = 0;
}

/* Return true if a leg pushes labels, and its packets go into a tunnel that takes them. */
static bool
leg_is_labels_in_tunnel(const struct leg *leg)
{
	return leg_has_labels(leg) && leg->link != NULL && leg->link->gre;
}

/* Take an entry for the labels of a leg over a tunnel, whether or not it has a gateway. */
static void
leg_tunnel_get(struct rib *rib, struct leg *leg)
{
	leg->encap = encap_get(rib, PATH(PATH_ONLINK, leg->link->ifidx), leg->hop.stack);
	leg->lacks_adj = leg->encap == 0;
	if (leg->lacks_adj)
		cds_list_add_tail(&leg->on_adj, &rib->legs.without_adj);
}

/*
 * Take an adjacency if the leg has a gateway on a port of the dataplane, and an entry for
 * its labels over that adjacency. A tunnel has one far end, and no neighbors: a leg over it
 * needs only an entry for its labels.
 */
static void
leg_adj_get(struct rib *rib, struct leg *leg)
{
	const struct next_hop *hop = &leg->hop;

	if (leg_is_labels_in_tunnel(leg)) {
		leg_tunnel_get(rib, leg);
		return;
	}
	if (leg->link == NULL || leg->link->ifidx == 0 || leg->link->tunnel ||
	    hop->gw_family == 0 ||
	    !(hop->encap == HOP_PLAIN || hop->encap == HOP_POP || leg_has_labels(leg)))
		return;
	leg->adj = adj_get(rib, leg->link, hop->gw_family, &hop->gw);
	if (leg->adj != 0 && leg_has_labels(leg)) {
		leg->encap = encap_get(rib, PATH(PATH_ADJ, leg->adj), hop->stack);
		if (leg->encap == 0) {
			vec32_push(&reclaim_open(rib)->adjs, leg->adj);
			leg->adj = 0;
		}
	}
	leg->lacks_adj = leg->adj == 0;
	if (leg->lacks_adj)
		cds_list_add_tail(&leg->on_adj, &rib->legs.without_adj);
	else
		cds_list_add(&leg->on_adj, &rib->adjs.v[leg->adj].legs);
}

static void
leg_adj_put(struct rib *rib, struct leg *leg)
{
	if (leg->hop.encap == HOP_SEG6)
		return; /* see leg_seg6_put() */
	if (leg->lacks_adj)
		cds_list_del(&leg->on_adj);
	leg->lacks_adj = false;
	if (leg->adj != 0)
		cds_list_del(&leg->on_adj);
	/*
	 * The entries are released after the grace period, because forwarders may still use
	 * them.
	 */
	if (leg->encap != 0)
		vec32_push(&reclaim_open(rib)->encaps, leg->encap);
	if (leg->adj != 0)
		vec32_push(&reclaim_open(rib)->adjs, leg->adj);
	leg->adj = leg->encap = 0;
}

static void
leg_tie(struct rib *rib, struct leg *leg, uint32_t ifindex)
{
	if (ifindex == 0)
		return;
	leg->link = rib_link_get(&rib->links, ifindex);
	cds_list_add(&leg->on_link, &leg->link->legs);
	leg_adj_get(rib, leg);
}

static void
leg_untie(struct rib *rib, struct leg *leg)
{
	struct link *link = leg->link;

	leg_adj_put(rib, leg);
	if (link == NULL)
		return;
	cds_list_del(&leg->on_link);
	leg->link = NULL;
	rib_link_maybe_free(&rib->links, link);
}

void
legs_renew_adjs(struct rib *rib, struct link *link)
{
	struct leg *leg;

	cds_list_for_each_entry (leg, &link->legs, on_link) {
		leg_adj_put(rib, leg);
		leg_adj_get(rib, leg);
	}
}

/* Return true if a leg with labels, a headend or an end point would get an entry now. */
static bool
entry_is_available(const struct rib *rib, const struct leg *leg)
{
	const struct next_hop *hop = &leg->hop;
	uint32_t adj;

	if (hop_is_end_point(rib, hop))
		return sid_is_available(rib, hop);
	if (!encaps_are_full(rib))
		return true;
	if (hop->encap == HOP_SEG6)
		return encap_find(rib, ENCAP_HEADEND, hop->stack) != 0;
	if (leg_is_labels_in_tunnel(leg))
		return encap_find(rib, PATH(PATH_ONLINK, leg->link->ifidx), hop->stack) !=
		       0;
	adj = adj_number(rib, leg->link, hop->gw_family, &hop->gw);
	return adj != 0 && encap_find(rib, PATH(PATH_ADJ, adj), hop->stack) != 0;
}

void
legs_retry_adjs(struct rib *rib)
{
	struct leg *leg, *next;
	CDS_LIST_HEAD(waiting);

	rib->adjs.freed = false;
	if (cds_list_empty(&rib->legs.without_adj))
		return;
	cds_list_splice(&rib->legs.without_adj, &waiting);
	CDS_INIT_LIST_HEAD(&rib->legs.without_adj);
	cds_list_for_each_entry_safe (leg, next, &waiting, on_adj) {
		bool seg6 = leg->hop.encap == HOP_SEG6;

		cds_list_del(&leg->on_adj);
		if (!seg6 && !leg_is_labels_in_tunnel(leg) &&
		    !adj_is_available(rib, leg->link, leg->hop.gw_family, &leg->hop.gw)) {
			cds_list_add_tail(&leg->on_adj, &rib->legs.without_adj);
			continue;
		}
		if ((seg6 || leg_has_labels(leg)) && !entry_is_available(rib, leg)) {
			cds_list_add_tail(&leg->on_adj, &rib->legs.without_adj);
			/* This leg gets the next free entry. */
			rib->encaps.refused = rib->sids.refused = true;
			continue;
		}
		if (seg6)
			leg_seg6_get(rib, leg);
		else
			leg_adj_get(rib, leg);
		slot_note_end_point(rib, leg->slot);
		slot_dirty(rib, leg->slot, SLOT_PATHS);
	}
	/* zebra has reports that routes over these legs failed: correct them. */
	if (cds_list_empty(&rib->legs.without_adj) && rib->conf.feedback)
		rib->feedback.resend_at = 1;
}

static bool
leg_floats(const struct leg *leg)
{
	const struct next_hop *hop = &leg->hop;

	return hop->kind == PATH_NONE && hop->ifindex == 0 && hop->gw_family != 0;
}

void
leg_attach(struct rib *rib, struct leg *leg)
{
	const struct next_hop *hop = &leg->hop;

	leg_seg6_get(rib, leg);
	if (leg_floats(leg)) {
		cds_list_add(&leg->floating, &rib->legs.floating);
		leg_tie(rib, leg,
			kroute_ifindex_of(&rib->kroutes, hop->gw_family, &hop->gw));
	} else if (hop->kind == PATH_NONE) {
		leg_tie(rib, leg, hop->ifindex);
	}
}

void
leg_detach(struct rib *rib, struct leg *leg)
{
	leg_seg6_put(rib, leg);
	if (leg_floats(leg))
		cds_list_del(&leg->floating);
	leg_untie(rib, leg);
}

void
legs_rebind_floating(struct rib *rib)
{
	struct leg *leg;

	cds_list_for_each_entry (leg, &rib->legs.floating, floating) {
		uint32_t now =
			kroute_ifindex_of(&rib->kroutes, leg->hop.gw_family, &leg->hop.gw);
		uint32_t was = leg->link == NULL ? 0 : leg->link->ifindex;

		if (now == was)
			continue;
		leg_untie(rib, leg);
		leg_tie(rib, leg, now);
		slot_dirty(rib, leg->slot, SLOT_PATHS);
	}
}

/*
 * The loopback device is excluded, because the kernel would forward a packet there again
 * and again until its TTL is used up. The device of a VRF (link->vrf) is excluded, because
 * a route by it leads to a lookup in the VRF.
 */
bool
link_is_kernels(const struct rib *rib, const struct link *link)
{
	return rib->conf.through_kernel && link->ifidx == 0 && link->vrf == 0 &&
	       link->ifindex != LOOPBACK_IFINDEX;
}

/*
 * Return true if the kernel has to serve a next hop. This is so if the encapsulation is one
 * that only the kernel has (HOP_LWTUNNEL), for a headend of SRv6 that forwarders cannot
 * serve, and for an end point without an entry. A restored headend with more segments than
 * a record of the checkpoint holds counts, too: it has neither segments nor a refusal.
 */
bool
leg_is_for_kernel(const struct rib *rib, const struct next_hop *hop)
{
	if (hop->encap == HOP_LWTUNNEL)
		return rib->conf.through_kernel;
	return hop->encap == HOP_SEG6 && rib->conf.through_kernel &&
	       (hop->stack != 0 || hop->refusal == SRV6_TAKEN ||
		srv6_refusal_is_of_headend(hop->refusal));
}

/*
 * Return the class of a leg that has no adjacency and whose link is up. If only IPv6 routes
 * have the slot and IPv6 is off on the link, other next hops carry the flows. If there are
 * none, forwarders drop the packets (ipv6_off).
 */
static enum leg_class
leg_without_neighbor(const struct leg *leg)
{
	const struct slot *s = leg->slot; /* NULL: made for `show nexthops` */
	bool only_ipv6 = s != NULL && s->of_ipv6 && !s->of_others;

	return leg->link->ipv6_off && only_ipv6 ? LEG_FAILED : LEG_ALIVE;
}

/*
 * Return the class and the path of a leg with an encapsulation that needs no link: SRv6, or
 * an encapsulation that forwarders do not have.
 */
static enum leg_class
path_without_link(const struct rib *rib, const struct leg *leg, fib_path *path)
{
	const struct next_hop *hop = &leg->hop;

	/* The interface of an end point has no effect: its action decides. */
	if (leg->sid != 0) {
		*path = PATH(PATH_LOCAL, leg->sid);
		return LEG_ALIVE;
	}
	/* The first segment is looked up. The gateway is not used, so it cannot be down. */
	if (hop->encap == HOP_SEG6 && leg->encap != 0) {
		*path = path_with_mtu(PATH(PATH_ENCAP, leg->encap), hop->mtu_class);
		return LEG_ALIVE;
	}
	/* The kernel has the route, too. */
	if (leg_is_for_kernel(rib, hop)) {
		/* hop's interface may be in another VRF: it is not the egress interface. */
		*path = PATH(PATH_KERNEL, 0);
		return LEG_ALIVE;
	}
	*path = PATH(PATH_ENCAP, 0);
	return LEG_ENCAP;
}

/* Return the class and the path of a leg that removes the last label and has no gateway. */
static enum leg_class
path_after_label(const struct leg *leg, fib_path *path)
{
	const struct link *link = leg->link;

	if (link->tunnel) { /* as in Linux, it needs no gateway */
		*path = path_with_mtu(PATH(PATH_ONLINK, link->ifidx), leg->hop.mtu_class);
		return LEG_ALIVE;
	}
	/* The packet after the label is looked up in the table of the interface. */
	if (link->vrf == 0 && link->ifindex != LOOPBACK_IFINDEX) {
		*path = PATH(PATH_ENCAP, 0);
		return LEG_ENCAP;
	}
	*path = PATH(PATH_VRF, link->vrf);
	return LEG_ALIVE;
}

/* Return the class and the path of a leg to a gateway on a port of the dataplane. */
static enum leg_class
path_to_gateway(const struct rib *rib, const struct leg *leg, fib_path *path)
{
	if (leg->adj == 0) {
		*path = PATH(PATH_DOWN, 0);
		return LEG_DOWN; /* no adjacency was left */
	}
	*path = path_with_mtu(leg->encap != 0 ? PATH(PATH_ENCAP, leg->encap)
					      : PATH(PATH_ADJ, leg->adj),
			      leg->hop.mtu_class);
	if (!adj_is_usable(rib, leg->adj))
		return LEG_FAILED;
	return rib->adjs.v[leg->adj].resolved ? LEG_ALIVE : LEG_RESOLVING;
}

/* Return the class and the path of a leg over a link that is up. */
static enum leg_class
path_over_link(const struct rib *rib, const struct leg *leg, fib_path *path)
{
	const struct next_hop *hop = &leg->hop;
	const struct link *link = leg->link;

	if (hop->encap == HOP_POP && hop->gw_family == 0)
		return path_after_label(leg, path);
	if (link->vrf != 0 && !hop->vrf_subnet && !leg_has_labels(leg)) {
		/*
		 * The gateway is not used: as in Linux, the destination is looked up in the
		 * VRF.
		 */
		*path = path_with_mtu(PATH(PATH_VRF, link->vrf), hop->mtu_class);
		return LEG_ALIVE;
	}
	if (link_is_kernels(rib, link)) {
		*path = PATH(PATH_KERNEL, link->ifindex & PATH_INDEX_MASK);
		return leg_without_neighbor(leg);
	}
	if (link->tunnel && leg_has_labels(leg) && leg->encap == 0 &&
	    rib->conf.through_kernel) {
		/*
		 * Forwarders write labels into tunnels of GRE only, or no entry was left.
		 */
		*path = PATH(PATH_KERNEL, link->ifindex & PATH_INDEX_MASK);
		return LEG_ALIVE;
	}
	if (link->ifidx == 0) {
		*path = PATH(PATH_FOREIGN, 0);
		return LEG_FOREIGN;
	}
	if (leg_has_labels(leg) && leg->encap == 0) {
		/* The leg has no gateway, or limits.encaps is reached. */
		*path = PATH(PATH_ENCAP, 0);
		return LEG_ENCAP;
	}
	if (leg_is_labels_in_tunnel(leg)) {
		*path = path_with_mtu(PATH(PATH_ENCAP, leg->encap), hop->mtu_class);
		return LEG_ALIVE;
	}
	if (hop->gw_family == 0 || link->tunnel) {
		*path = path_with_mtu(PATH(PATH_ONLINK, link->ifidx), hop->mtu_class);
		return leg_without_neighbor(leg);
	}
	return path_to_gateway(rib, leg, path);
}

/* Return the path of a route that has no next hops. It tells whether table local has it. */
static fib_path
path_of_type(const struct next_hop *hop)
{
	if (!hop->vrf_subnet)
		return PATH(hop->kind, 0);
	return path_refuses((enum path_kind)hop->kind)
		       ? PATH(hop->kind, PATH_REFUSES_IN_LOCAL)
		       : path_with_mtu(PATH(hop->kind, 0), PATH_CLASS_NOT_OF_LOCAL);
}

enum leg_class
leg_path(const struct rib *rib, const struct leg *leg, fib_path *path)
{
	const struct next_hop *hop = &leg->hop;

	if (hop->kind != PATH_NONE) {
		*path = path_of_type(hop);
		return hop->kind == PATH_UNRESOLVED ? LEG_UNRESOLVED : LEG_SPECIAL;
	}
	if (leg_is_dead(leg)) {
		*path = PATH(PATH_DOWN, 0);
		return LEG_DOWN;
	}
	if (hop->encap != HOP_PLAIN && hop->encap != HOP_POP && !leg_has_labels(leg))
		return path_without_link(rib, leg, path);
	if (leg->link == NULL) {
		*path = PATH(PATH_UNRESOLVED, 0);
		return LEG_UNRESOLVED;
	}
	if (!leg->link->known || !leg->link->up) {
		*path = PATH(PATH_DOWN, 0);
		return LEG_DOWN;
	}
	return path_over_link(rib, leg, path);
}
