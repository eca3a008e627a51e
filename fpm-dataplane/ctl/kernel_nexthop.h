/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_nexthop: the kernel's next-hop objects (linux/nexthop.h), for the audit. If the
 * sysctl net.ipv4.nexthop_compat_mode is 0, a route has the id of its object, and no next
 * hops.
 */
#ifndef CTL_KERNEL_NEXTHOP_H
#define CTL_KERNEL_NEXTHOP_H

#include <linux/nexthop.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_nexthop {
	uint32_t id, ifindex;
	uint8_t flags;              /* RTNH_F_* */
	char via[INET6_ADDRSTRLEN]; /* "": it has no gateway */
	char *push;                 /* as hop_push.h writes it; NULL: it pushes nothing */
	struct nexthop_grp *member; /* members of a group; NULL: it is no group */
	size_t n_members;
};

struct kernel_nexthops {
	struct kernel_nexthop *v; /* by ascending id */
	size_t n;
};

/*
 * Read the objects of the present network namespace. Returns 0 or -errno. A kernel without
 * such objects has none.
 */
int kernel_nexthops_read(struct kernel_nexthops *all);
/* Return the object, or NULL. */
const struct kernel_nexthop *kernel_nexthop_find(const struct kernel_nexthops *all,
						 uint32_t id);
void kernel_nexthops_free(struct kernel_nexthops *all);

#endif
