/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rib without its thread: the test is the rib thread (registered with QSBR), speaks for
 * fpm and neigh, and looks at the result through fib_resolve() as a forwarder does.
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
#include "rib/rib_impl.h"

struct rig {
	struct worker w, neigh, ui, fpm;
	struct fib *fib;
	struct rib *rib;
	struct msg_fpm_batch *batch;
	uint32_t gen;
	unsigned int n_watch, n_unwatch;
	bool hold_ready; /* do not answer MSG_ADJ_WATCH by itself */
	bool hold_freed; /* do not answer MSG_ADJ_UNWATCH by itself */
};

extern uint64_t rig_now_ms;             /* the clock of all rigs */
extern struct table_limits *rig_limits; /* of the next ones; NULL: the usual */

/* Set rig_limits to the defaults, but for `table`, which has room for `max`. */
void rig_limit(enum table table, unsigned int max);

struct rig *rig_new(void);
/* One that begins as a daemon does, with the checkpoint `fd` or -1; two links, addresses. */
struct rig *rig_begun(int fd, uint64_t netns);
void rig_free(struct rig *g);

/* The i-th of 65536 prefixes: "10.0.0.0/24", "10.0.1.0/24", ...; valid until the next call. */
const char *rig_net(unsigned int i);

/* fpm: queued in order, given to rib by rig_go() (or when a batch is full). */
struct fpm_event *rig_event(struct rig *g, enum fpm_event_kind kind);
void rig_session(struct rig *g, uint32_t nl_pid); /* FPM_SESSION_UP, next generation */
void rig_session_down(struct rig *g);
void rig_route(struct rig *g, const char *prefix, uint32_t nhid);
void rig_route_in(struct rig *g, uint32_t table, const char *prefix, const char *gw,
		  uint32_t ifindex);
void rig_route_inline(struct rig *g, const char *prefix, const char *gw, uint32_t ifindex);
void rig_route_type(struct rig *g, const char *prefix, uint8_t rtm_type);
/* The first `n` prefixes of rig_net(). */
void rig_routes(struct rig *g, unsigned int n, uint32_t nhid);
void rig_del(struct rig *g, const char *prefix);
void rig_sentinel(struct rig *g);
void rig_hop(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex); /* gw NULL */
void rig_group(struct rig *g, uint32_t id, unsigned int n, ...); /* n times (id, weight) */
void rig_nh_del(struct rig *g, uint32_t id);
void rig_flush_batch(struct rig *g); /* applied, not committed */
void rig_go(struct rig *g);          /* applied, rounds until nothing is left, no grace */

/* neigh: at once. */
void rig_link(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up);
void rig_link_of_vrf(struct rig *g, uint32_t ifindex, uint16_t vrf, bool up); /* its own */
void rig_link_gone(struct rig *g, uint32_t ifindex);
void rig_addr(struct rig *g, uint32_t ifindex, const char *addr_len, bool gone);
void rig_addr_in(struct rig *g, uint32_t table, uint32_t ifindex, const char *addr_len,
		 bool gone);
void rig_vrf(struct rig *g, uint16_t number, uint32_t table,
	     const char *name); /* or gone */
void rig_alive(struct rig *g, const char *gw, uint32_t ifindex, bool alive);
void rig_ready(struct rig *g, const char *gw, uint32_t ifindex);   /* neigh's answer */
uint32_t rig_adj(struct rig *g, const char *gw, uint32_t ifindex); /* 0: none */
void rig_neigh_serve(struct rig *g); /* count watches, answer unwatches */

/* Grace periods over, reclaims done, neigh has answered; again until it is quiet. */
void rig_settle(struct rig *g);
/* The same, `s` seconds later. */
void rig_later(struct rig *g, unsigned int s);

/* Two ports (ifindex 11, 12; ifidx 1, 2) with 192.0.2.126/25 and 192.0.2.254/25, v6 too. */
struct rig *rig_two_ports(void);

#define RIG_RED  1, 100 /* number and table */
#define RIG_BLUE 2, 2000
/* VRFs red and blue with a port each (11, 12), both 192.0.2.1/24; port 13 in none. */
struct rig *rig_two_vrfs(void);

/*
 * One with a copy of the tries for each of `n_nodes` nodes, of which the last one's for IPv4
 * gets no memory while rig_no_memory is set; with ports 11 and 12 without
 * addresses and the next hops 7 (192.0.2.1) and 8 (192.0.2.129).
 */
struct rig *rig_poor(unsigned int n_nodes);
extern bool rig_no_memory;

/* "192.0.2.1@1", "onlink@2", "local", ... */
void rig_path_text(const struct rig *g, fib_path path, char *out, size_t size);

/*
 * What happens to packets for `dst`, over all flow hashes: "192.0.2.1@1", "onlink@2",
 * "local", "none"; of several ways "192.0.2.1@1*2048 192.0.2.129@2*2048" (of 4096, sorted).
 * Valid until the next call.
 */
const char *rig_seen(const struct rig *g, const char *dst);
const char *rig_seen_in(const struct rig *g, uint16_t vrf, const char *dst);
uint32_t rig_group_of(const struct rig *g, const char *dst);

#define assert_seen(g, dst, want) assert_string_equal(rig_seen(g, dst), want)
#define assert_seen_in(g, vrf, dst, want) \
	assert_string_equal(rig_seen_in(g, vrf, dst), want)

/* One query to its end, in slices of `max`; the caller decrefs. */
json_t *rig_ask(struct rig *g, const struct msg_query *proto, unsigned int *slices);
json_t *rig_summary(struct rig *g);
json_int_t rig_summary_int(struct rig *g, const char *key);

#endif
