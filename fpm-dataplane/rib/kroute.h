/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes of the kernel's tables. A prefix may have several in one table; the kernel uses
 * the route with the lowest metric, and among equal metrics the first route. [rib]. This
 * file does not use struct rib.
 */
#ifndef RIB_KROUTE_H
#define RIB_KROUTE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/kernel_event.h"
#include "base/prefix.h"
#include "base/rtproto.h"
#include "rib/index.h"

struct rib_links;
struct route;
struct slot;

struct kroute {
	struct route *route; /* of its prefix and table; NULL: entry is free */
	uint32_t slot;       /* a reference */
	uint32_t metric;
	uint32_t order;   /* among equal metrics of its prefix; the lowest counts */
	uint32_t dump;    /* the last dump that showed it, or during which it was added */
	uint32_t ifindex; /* its interface; 0: none, or several */
	uint32_t source4; /* IPv4: its preferred source; 0: none */
	uint32_t details; /* IPv4: as in struct kernel_event; 0: not known (restart) */
	/* index in rib_kroutes.connected if `connected`, else in .local if `listed` */
	uint32_t on_list;
	uint8_t protocol, rtm_type, scope;
	uint8_t preference; /* among equal metrics, before `order`; the lowest counts */
	/* RTN_* of a record in table local that decides for longer prefixes, too; else 0 */
	uint8_t wide;
	bool is_local : 1;  /* of table local, which the kernel looks up before main */
	bool connected : 1; /* on link, made by the kernel for an address */
	/*
	 * A record of table local with a next hop: in Linux it hides the routes of longer
	 * prefixes, here it does not.
	 */
	bool short_local : 1;
	bool ignored : 1; /* kroute_is_ignored() at the last check: it does not count */
	bool listed : 1;  /* in rib_kroutes.local */
	bool joins : 1;   /* IPv6: the kernel joins it with routes of the same metric */
	/*
	 * Its next hops may be of several protocols. The kernel shows it only in dumps of
	 * one of these protocols. Which one is not known.
	 */
	bool mixed : 1;
	/*
	 * IPv4: a dump of one protocol has added it, so its place among the routes of other
	 * protocols is not known.
	 */
	bool unplaced : 1;
	bool by_event : 1;  /* an event has added it, and no dump has shown it since */
	bool of_advert : 1; /* IPv6: may be of a router advertisement */
	/*
	 * IPv6: for packets that come by its interface, Linux uses this record instead of
	 * the first record of its metric. Forwarders use the first record.
	 */
	bool by_ingress : 1;
	/* IPv6: one of its next hops was appended with another MTU than the others have. */
	bool several_mtus : 1;
};
static_assert(sizeof(struct kroute) == 48, "a million routes of the kernel");

struct rib_kroutes {
	struct kroute *v; /* by number, from 1 */
	uint32_t high, cap, n;
	struct vec32 unused;
	struct hidx by_route;
	struct vec32 connected;    /* numbers of the connected records */
	struct vec32 wide;         /* records with `wide`, and all of type throw; few */
	uint32_t n_throws;         /* records in `wide` that are of type throw */
	struct vec32 local;        /* records of table local; few */
	uint64_t n_list_steps;     /* entries of `local` that removals passed, for tests */
	uint32_t n_local[2][129];  /* size of `local` by family (IPv4, IPv6) and length */
	uint32_t dump;             /* number of the last dump */
	struct kernel_scope scope; /* of that dump */
	bool sweeping;      /* the dump has ended: remove records that it did not show */
	uint32_t sweep_at;  /* ... from this number on */
	bool reviewing;     /* Linux began or ceased to ignore a slot: check ... */
	uint32_t review_at; /* ... the records from this number on */
	bool refused;       /* limits.routes left no room for some */
	/*
	 * true: the rules of IPv4 were changed once, so Linux looks up table local, then
	 * main. Before, both are one table in Linux.
	 */
	bool split4;
	/* Connected subnets changed: bind gateways without an interface again. */
	bool rebind;
};

/*
 * Return the first or the next number of the records of `r`, which are in no order; 0:
 * there is none left.
 */
uint32_t kroute_first(const struct rib_kroutes *k, const struct route *r);
uint32_t kroute_next(const struct rib_kroutes *k, uint32_t number);
/* Return true if a dump of a protocol (0: of all protocols) shows the record. */
static inline bool
kroute_is_of_protocol(const struct kroute *kr, uint8_t protocol)
{
	return protocol == 0 || (protocol == kr->protocol && !kr->mixed);
}

/* Return true if the record has the metric of the event, and is of the same table. */
bool kroute_has_key(const struct kroute *kr, const struct kernel_event *ev);
/*
 * Return the first record with the event's metric; 0: none. If `joins` is not -1, look only
 * at records with this value of `joins`.
 */
uint32_t kroute_of_metric(const struct rib_kroutes *k, const struct route *r,
			  const struct kernel_event *ev, int joins);
/*
 * Return true if an event that may be older than the last dump has added another record
 * with the event's metric, which the kernel does not join.
 */
bool kroute_has_newcomer(const struct rib_kroutes *k, uint32_t number,
			 const struct kernel_event *ev);
/* Return true if the route has no other record of the kernel. */
bool kroute_is_alone(const struct rib_kroutes *k, uint32_t number);
/*
 * Return true if the record equals the event in all fields that are not in the slot. The
 * interface of a next-hop object may have changed since.
 */
bool kroute_has_members(const struct kroute *kr, const struct kernel_event *ev);
/* Return true if the record and the event may be one route, as far as `details` show. */
bool kroute_details_agree(const struct kroute *kr, const struct kernel_event *ev);
/*
 * Return true if the kernel may have the route although the last dump does not show it. In
 * a dump Linux goes from the first next hop of a joined IPv6 route to the last one, and
 * passes over other routes of the metric between them (fib6_dump_node()). It does so in a
 * dump of one protocol, too, which may not show the joined route. A route that is passed
 * over is behind the joined route, so it is not in force. Return false for a route that the
 * kernel made of a router advertisement, because no dump shows such a route after it has
 * expired, and for a route of a checkpoint, because it may be old.
 */
bool kroute_may_be_passed_over(const struct rib_kroutes *k, uint32_t number);
/*
 * Set the protocol of a new or changed record. A route that the kernel joins keeps the
 * protocol of its first next hop. The event of a further next hop has the protocol of that
 * next hop.
 */
void kroute_set_protocol(struct kroute *kr, const struct kernel_event *ev, bool joins);
/*
 * Note that an event has deleted some next hops of a joined route. The remaining next hops
 * may be of other protocols, because a dump shows only the protocol of the first next hop.
 */
static inline void
kroute_lost_hops(struct kroute *kr, const struct kernel_event *ev)
{
	kr->mixed |= !kr->by_event || kr->protocol != ev->route.protocol;
}

/*
 * Return true if a joined IPv6 route may have another place after it has lost a next hop.
 * Linux keeps each next hop in a list with the other routes of the metric, and obeys the
 * first entry of the list. So if the first next hop of the joined route was deleted,
 * another route may be the first now. Only a dump shows the order.
 */
bool kroute_place_is_unknown(const struct rib_kroutes *k, uint32_t number);
/*
 * Move a record, which the present dump shows now, behind all records of its metric that
 * this dump has shown before. The other records keep their order.
 */
void kroute_move_behind_shown(struct rib_kroutes *k, uint32_t number);
/*
 * Update kernel_status.by_ingress for the records of an IPv6 route. Among routes of one
 * metric and preference, Linux prefers the route by the interface on which the packet came
 * (rt6_score_route()). Records that no packet takes, because a route of zebra or another
 * record precedes them, are not counted.
 */
void kroutes_count_by_ingress(struct rib_kroutes *k, const struct rib_links *links,
			      const struct route *r);
/* Set whether kernel_status.several_mtus counts the record. */
void kroute_set_several_mtus(struct kroute *kr, bool several_mtus);
/* Add a record, whose members the caller fills. It is in none of the lists yet. */
uint32_t kroute_add(struct rib_kroutes *k, struct route *r);
void kroute_remove(struct rib_kroutes *k, uint32_t number);
void kroute_set_connected(struct rib_kroutes *k, uint32_t number, bool connected);
/*
 * Decide whether the record hides routes: it is in table local, shorter than a host, and
 * has no next hop. A route of type throw ends the effect of a shorter prefix. Return true
 * if that has changed: the caller then stages all routes inside the prefix again. In Linux
 * routes by a next hop in table local hide routes, too; here they do not, and
 * kernel_status.short_local counts them.
 */
bool kroute_set_wide(struct rib_kroutes *k, uint32_t number);
/*
 * Return true if Linux looks up main only for the packets for which table local has no
 * route. Until the rules of IPv4 change, it keeps both tables of IPv4 in one trie, in which
 * the longest prefix counts (`split4`).
 */
bool kroutes_are_split(const struct rib_kroutes *k, uint8_t family);
/*
 * Return true if Linux ignores the route, whose slot is `s`, because its next hops are dead,
 * or their links have no carrier and the sysctl ignore_routes_with_linkdown is set for
 * them. Linux ignores IPv4 broadcast addresses of such links, too. It ignores neither own
 * addresses nor IPv4 routes with `scope host` (fib_sync_down_dev()).
 */
bool kroute_is_ignored(const struct kroute *kr, const struct slot *s,
		       const struct rib_links *links);
/* Check all records again: Linux may have begun or ceased to ignore some. */
void kroutes_review(struct rib_kroutes *k);
/* Record that Linux has split the tables of IPv4. */
void kroutes_split4(struct rib_kroutes *k);
/*
 * Return the type (RTN_*) of the route in table local, shorter than `p`, by which the
 * kernel decides for the packets of `p`; RTN_UNSPEC: none. `plain` is the route for `p` in
 * table main and local, or NULL.
 */
uint8_t kroute_hider(const struct rib_kroutes *k, const struct rib_links *links,
		     const struct prefix *p, const struct route *plain);
/* As kroute_hider(), for the prefix of `r`, which may be in any table. */
uint8_t kroute_hider_of(const struct rib_kroutes *k, const struct rib_links *links,
			const struct route *r);
/*
 * Return true if the kernel uses `r`, a route of table main, because of a route of type
 * throw in table local. Without that route, a shorter prefix of table local would take the
 * packets.
 */
bool kroute_is_thrown(const struct rib_kroutes *k, const struct route *r);
/*
 * Give the record its place among equal metrics: before all, or after all. The number
 * kroute.order is relative to the other records of the prefix, so that it does not wrap
 * around: a router may get more than 2^31 routes in its lifetime, but not for one prefix.
 */
void kroute_set_order(struct rib_kroutes *k, uint32_t number, enum kernel_order order);

/* Return true if the kernel prefers `a` to `b`, which has the same prefix. */
bool kroute_precedes(const struct kroute *a, const struct kroute *b);
/*
 * Return true unless the route is ignored, is connected and its link is not up, or is of
 * type throw in table local and leads to main. Linux keeps a connected route while only the
 * carrier is lost; a router should then use a route through another router.
 */
bool kroute_is_usable(const struct rib_kroutes *k, const struct kroute *kr,
		      const struct rib_links *links);
/*
 * Return the first usable record of `r` in the kernel's order, or with links NULL the first
 * of all; 0: none.
 */
uint32_t kroute_best(const struct rib_kroutes *k, const struct rib_links *links,
		     const struct route *r);
/*
 * Return the slot of the kernel's route that precedes zebra's route; 0: zebra's route
 * counts.
 */
uint32_t kroute_slot(const struct rib_kroutes *k, const struct rib_links *links,
		     const struct route *r);
/* Return the slot of `r` by table main alone, without table local; 0: none. */
uint32_t kroute_main_slot(const struct rib_kroutes *k, const struct rib_links *links,
			  const struct route *r);
/*
 * Return the only interface whose connected subnet in table main covers `addr` best; 0:
 * none or several.
 */
uint32_t kroute_ifindex_of(const struct rib_kroutes *k, uint8_t family,
			   const struct ipaddr *addr);
size_t kroutes_bytes(const struct rib_kroutes *k);
void kroutes_free(struct rib_kroutes *k);

#endif
