/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rib without its thread: the test is the rib thread (registered with QSBR), speaks for
 * fpm, rtnl and neigh, and looks at the result through fib_resolve() as a forwarder does.
 */
#ifndef RIB_RIG_H
#define RIB_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rib/impl.h"

/* An address, or a route that Linux makes of addresses. */
struct rig_entry {
	struct prefix prefix;
	uint32_t table, ifindex, refs; /* table 0: main and local */
	uint8_t type;
};

struct rig {
	struct worker w, neigh, ui, fpm, rtnl;
	struct fib *fib;
	struct rib *rib;
	struct msg_fpm_batch *batch;
	struct msg_kernel_batch *kernel_batch;
	struct rig_entry *entry; /* by number, from 1 */
	uint32_t entry_high, entry_cap;
	struct vec32 entry_unused;
	struct hidx by_prefix;
	uint32_t gen;
	unsigned int n_watch, n_unwatch;
	bool unresolved; /* neighbors do not answer at once */
	bool hold_ready; /* do not answer MSG_ADJ_WATCH automatically */
	bool hold_freed; /* do not answer MSG_ADJ_UNWATCH automatically */
	struct msg_rule_ifaces *rule_ifaces; /* last message about rules; NULL: none */
};

extern uint64_t rig_now_ms;             /* the clock of all rigs */
extern struct table_limits *rig_limits; /* limits of the next rigs; NULL: the defaults */

/* Set rig_limits to the defaults, except for `table`, which has room for `max`. */
void rig_limit(enum table table, unsigned int max);

struct rig *rig_new(void);
/*
 * Make a rig that starts like a daemon, with the checkpoint `fd` or -1; it has two links
 * with addresses.
 */
struct rig *rig_begun(int fd, uint64_t netns);
void rig_free(struct rig *g);

/*
 * Return prefix `i` of 65536: "10.0.0.0/24", "10.0.1.0/24", ...; valid until the next call.
 */
const char *rig_net(unsigned int i);

/* Events of fpm. They are queued in order; rig_go() or a full batch sends them to rib. */
struct fpm_event *rig_event(struct rig *g, enum fpm_event_kind kind);
void rig_session(struct rig *g, uint32_t nl_pid); /* FPM_SESSION_UP, next generation */
void rig_session_down(struct rig *g);
void rig_route(struct rig *g, const char *prefix, uint32_t nhid);
void rig_route_in(struct rig *g, uint32_t table, const char *prefix, const char *gw,
		  uint32_t ifindex);
void rig_route_inline(struct rig *g, const char *prefix, const char *gw, uint32_t ifindex);
void rig_route_type(struct rig *g, const char *prefix, uint8_t rtm_type);
/* Add the first `n` prefixes of rig_net(). */
void rig_routes(struct rig *g, unsigned int n, uint32_t nhid);
void rig_del(struct rig *g, const char *prefix);
void rig_sentinel(struct rig *g);
/* `gw` may be NULL */
void rig_hop(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex);
void rig_group(struct rig *g, uint32_t id, unsigned int n, ...); /* n times (id, weight) */
void rig_nh_del(struct rig *g, uint32_t id);
void rig_flush_batch(struct rig *g); /* apply, but do not commit */
void rig_go(struct rig *g);          /* apply, and run all rounds; no grace period ends */

/* Messages of neigh. They take effect at once. */
void rig_link(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up);
/* As rig_link() of a link that is up, with IPv6 on or off. */
void rig_link_ipv6(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool off);
/* As rig_link() of a link that is up, with or without an IPv4 address. */
void rig_link_ipv4(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool has_address);
/*
 * As rig_link(); rib ignores the routes of `family` (4, 6) on the link while it is not up.
 */
void rig_link_ignoring(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up,
		       uint8_t family);
/* As rig_link(), of a tunnel. */
void rig_tunnel(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up); /* of GRE */
void rig_tunnel_of_ip(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up);
/* As rig_link(), of the VRF's own interface. */
void rig_link_of_vrf(struct rig *g, uint32_t ifindex, uint16_t vrf, bool up);
void rig_link_gone(struct rig *g, uint32_t ifindex);
void rig_vrf(struct rig *g, uint16_t number, uint32_t table,
	     const char *name); /* `name` NULL: the VRF is removed */
void rig_alive(struct rig *g, const char *gw, uint32_t ifindex, bool alive);
/* The neighbor is resolved with this MAC address, mac_word(). */
void rig_mac(struct rig *g, const char *gw, uint32_t ifindex, uint64_t mac);
/* neigh answers MSG_ADJ_WATCH: the neighbor is resolved */
void rig_ready(struct rig *g, const char *gw, uint32_t ifindex);
uint32_t rig_adj(struct rig *g, const char *gw, uint32_t ifindex); /* 0: none */
void rig_neigh_serve(struct rig *g); /* count and answer watches and unwatches */

/*
 * Add or remove an address of the kernel, with the routes that Linux makes of it: one for
 * each interface and subnet. It takes effect at once. `table` 0: main and local.
 */
void rig_addr(struct rig *g, uint32_t ifindex, const char *addr_len, bool gone);
void rig_addr_in(struct rig *g, uint32_t table, uint32_t ifindex, const char *addr_len,
		 bool gone);
/* Remove all addresses of an interface. */
void rig_addrs_gone(struct rig *g, uint32_t ifindex);
void rig_addr_peer(struct rig *g, uint32_t table, uint32_t ifindex, const char *addr,
		   const char *subnet, bool gone);
/*
 * Queue an event of the kernel, in order with the events of fpm. A route is of table main
 * and protocol static, and is added before all others of its metric (IPv6: after them); the
 * test changes the event that is returned, which is valid until the next one.
 */
struct kernel_event *rig_kernel(struct rig *g, enum kernel_event_kind kind);
struct kernel_event *rig_kernel_route(struct rig *g, enum kernel_event_kind kind,
				      const char *prefix, uint32_t metric, const char *gw,
				      uint32_t ifindex);
struct kernel_event *rig_kernel_type(struct rig *g, enum kernel_event_kind kind,
				     const char *prefix, uint32_t metric, uint8_t rtm_type);
struct kernel_event *rig_kernel_by_id(struct rig *g, enum kernel_event_kind kind,
				      const char *prefix, uint32_t metric, uint32_t nhid);
void rig_kernel_hop(struct kernel_event *ev, const char *gw,
		    uint32_t ifindex); /* add a next hop to the event */
void rig_kernel_nexthop(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex);
void rig_kernel_group(struct rig *g, uint32_t id, uint32_t one, uint32_t other);
void rig_kernel_nexthop_del(struct rig *g, uint32_t id);
void rig_kernel_dump(struct rig *g, bool begin, uint8_t family, uint8_t protocol);

struct prefix rig_prefix(const char *text);
void rig_set_hop(struct fpm_hop *h, const char *gw, uint32_t ifindex); /* gw NULL: none */

/* End grace periods, run reclaims and let neigh answer, until rib is quiet. */
void rig_settle(struct rig *g);
/* Advance the time by `s` seconds, then settle. */
void rig_later(struct rig *g, unsigned int s);

/*
 * Two ports (ifindex 11, 12; ifidx 1, 2) with 192.0.2.126/25 and 192.0.2.254/25, and with
 * IPv6 addresses.
 */
struct rig *rig_two_ports(void);

#define RIG_RED  1, 100 /* number and table */
#define RIG_BLUE 2, 2000
/*
 * VRFs red and blue with one port each (11, 12), both with 192.0.2.1/24. Port 13 is in no
 * VRF.
 */
struct rig *rig_two_vrfs(void);

/*
 * A rig with a copy of the tries for each of `n_nodes` NUMA nodes. While rig_no_memory is
 * set, the IPv4 trie of the last node gets no memory. It has ports 11 and 12 without
 * addresses and the next hops 7 (192.0.2.1) and 8 (192.0.2.129).
 */
struct rig *rig_poor(unsigned int n_nodes);
/*
 * Add a VRF whose IPv4 trie gets no memory while rig_no_memory is set. The next commit
 * fills it.
 */
void rig_vrf_poor(struct rig *g, uint16_t number, uint32_t table, const char *name);
extern bool rig_no_memory;

/* Write a path as text: "192.0.2.1@1", "onlink@2", "local", ... */
void rig_path_text(const struct rig *g, fib_path path, char *out, size_t size);

/*
 * Return the paths of packets to `dst` over all flow hashes: "192.0.2.1@1", "onlink@2",
 * "local", "none". Several next hops are "192.0.2.1@1*2048 192.0.2.129@2*2048" (of 4096,
 * sorted). Valid until the next call.
 */
const char *rig_seen(const struct rig *g, const char *dst);
const char *rig_seen_in(const struct rig *g, uint16_t vrf, const char *dst);
uint32_t rig_group_of(const struct rig *g, const char *dst);

#define assert_seen(g, dst, want) assert_string_equal(rig_seen(g, dst), want)
#define assert_seen_in(g, vrf, dst, want) \
	assert_string_equal(rig_seen_in(g, vrf, dst), want)

/* Run a query to its end, in slices of `max`. The caller decrefs the result. */
json_t *rig_ask(struct rig *g, const struct msg_query *proto, unsigned int *slices);
json_t *rig_summary(struct rig *g);
json_int_t rig_summary_int(struct rig *g, const char *key);

#endif
