/* SPDX-License-Identifier: BSD-3-Clause */
/* Legs: the next hops of a slot, tied to links and adjacencies. [rib] */
#ifndef RIB_LEG_H
#define RIB_LEG_H

#include <urcu/list.h>

#include "fib/fib.h"

struct leg;
struct link;
struct next_hop;
struct rib;

struct rib_legs {
	struct cds_list_head floating;    /* legs with a gateway but no given interface */
	struct cds_list_head without_adj; /* legs that found no free adjacency or entry */
};

void leg_attach(struct rib *rib, struct leg *leg);
void leg_detach(struct rib *rib, struct leg *leg);
void legs_rebind_floating(struct rib *rib); /* after connected subnets changed */
void legs_retry_adjs(struct rib *rib);      /* after adjacencies or entries were freed */
/* Give all legs of the link other adjacencies, because the link is another port now. */
void legs_renew_adjs(struct rib *rib, struct link *link);

/* Classes in order of preference. A slot uses the best class among its legs. */
enum leg_class {
	LEG_ALIVE,
	/* The kernel is resolving the neighbor. If no leg is alive, packets wait for it. */
	LEG_RESOLVING,
	/*
	 * The neighbor does not answer, and packets cause the kernel to ask again; or BFD
	 * has found the neighbor dead; or IPv6 is off on the link.
	 */
	LEG_FAILED,
	LEG_SPECIAL, /* a type without a next hop, for example a blackhole */
	LEG_FOREIGN, /* the link is no port, and the kernel does not get the packets */
	LEG_ENCAP,   /* forwarders do not have the encapsulation, or no entry for it */
	/* The link is down; or no adjacency was left; or Linux has marked it as dead. */
	LEG_DOWN,
	LEG_UNRESOLVED, /* the next hop or its interface is not known */
};
/*
 * Return true if the kernel forwards the packets that leave by this link, because the link
 * is no port.
 */
bool link_is_kernels(const struct rib *rib, const struct link *link);
/* Return true if only the kernel can serve a next hop, and rib may let it do so. */
bool leg_is_for_kernel(const struct rib *rib, const struct next_hop *hop);
/* Return the class of a leg, and the path of its packets in *path.  [rib] */
enum leg_class leg_path(const struct rib *rib, const struct leg *leg, fib_path *path);

#endif
