/* SPDX-License-Identifier: BSD-3-Clause */
/* Apply events of the kernel: routes, next-hop objects. [rib] */
#ifndef RIB_KERNEL_H
#define RIB_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct kroute;
struct msg_kernel_batch;
struct prefix;
struct rib;
struct route;

void rib_kernel_batch(struct rib *rib, const struct msg_kernel_batch *b);
/*
 * Decide again which route of the kernel is in force for `r`, if any, after zebra's route
 * was added or removed. The caller stages the route.
 */
void kernel_choose(struct rib *rib, struct route *r);
/* Call kernel_choose(). Then stage the route, or remove it if it has no source left. */
void kernel_settle(struct rib *rib, struct route *r);
/*
 * Record that from now on Linux looks up table local of IPv4 before table main: a change of
 * the rules splits the trie that both tables shared (fib_unmerge()). They stay split as
 * long as the network namespace exists.
 */
void kernel_split_tables(struct rib *rib);
/*
 * Ask rtnl to read all tables: a record may be of a route that Linux has replaced, or may
 * have another place, or the kernel has changed marks of next hops without an event. rtnl
 * limits how often it reads the tables.
 */
void kernel_read_again(struct rib *rib);
/* For tests of the audit: forget the routes of the kernel for the prefix. */
void kernel_forget(struct rib *rib, struct route *r);
/*
 * Return the route of a prefix. If it is absent, insert it for a route of this protocol.
 * Return NULL if there is no room.
 */
struct route *kernel_route_get(struct rib *rib, uint32_t table, const struct prefix *p,
			       uint8_t protocol, uint64_t hash);
/*
 * Add a kernel route of a checkpoint to `r`, the route of its prefix. It is in force at
 * once. Return false if another kernel route has the same place in the order, which does
 * not happen with a valid checkpoint.
 */
bool kernel_route_restore(struct rib *rib, struct route *r, const struct kroute *was);
/* If connected subnets have changed, bind the gateways again that have no interface. */
void kernel_rebind(struct rib *rib);
/*
 * Continue the removal of routes that the last dump did not show. Return true if there is
 * more to do.
 */
bool kernel_sweep_round(struct rib *rib);
/*
 * Continue the walk that decides again which routes of the kernel count, because the kernel
 * may have begun or ceased to ignore some (kroute_is_ignored()). Return true if there is
 * more to do.
 */
bool kernel_review_round(struct rib *rib);

#endif
