/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caps: capabilities given up for good (capabilities(7)), by a process that still has one
 * thread.
 */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <linux/capability.h>
#include <stdint.h>

#define CAP_BIT(cap) (1ull << (cap))

/*
 * What the daemon may do of all that root may. The same list as that of the unit, for
 * where nobody else draws the line. Why each: SECURITY.md, "What it may do".
 */
#define CAPS_DAEMON                                                               \
	(CAP_BIT(CAP_NET_ADMIN) | CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_SYS_ADMIN) | \
	 CAP_BIT(CAP_IPC_LOCK) | CAP_BIT(CAP_SYS_RAWIO))

/*
 * Keep of all capabilities those of the bits `kept`, and let what is executed inherit those of
 * `inherited` without being root. What goes is out of the bounding set, too: root that is
 * executed has no more. Returns 0 or -errno: there are more than there should be.       [main]
 */
int caps_keep(uint64_t kept, uint64_t inherited);

#endif
