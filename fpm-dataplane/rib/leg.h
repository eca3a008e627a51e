/* SPDX-License-Identifier: BSD-3-Clause */
/* Legs: a slot's ways out, tied to links and adjacencies. [rib]. */
#ifndef RIB_LEG_H
#define RIB_LEG_H

#include <urcu/list.h>

#include "fib/fib.h"

struct leg;
struct link;
struct rib;

struct rib_legs {
	struct cds_list_head floating;
	struct cds_list_head without_adj; /* legs without an adjacency for want of room */
};

void leg_attach(struct rib *rib, struct leg *leg);
void leg_detach(struct rib *rib, struct leg *leg);
void legs_rebind_floating(struct rib *rib); /* connected subnets changed */
void legs_retry_adjs(struct rib *rib); /* there are adjacencies again for who had none */
/* The link is another port: all its legs need other adjacencies. */
void legs_renew_adjs(struct rib *rib, struct link *link);

/* In the order of preference: a slot uses the best class that it has. */
enum leg_class {
	LEG_ALIVE,
	LEG_FAILED, /* the neighbor does not answer; packets make the kernel try again */
	LEG_SPECIAL,
	LEG_FOREIGN,
	LEG_ENCAP,
	LEG_DOWN,
	LEG_UNRESOLVED,
};
enum leg_class leg_path(const struct rib *rib, const struct leg *leg, fib_path *path);

#endif
