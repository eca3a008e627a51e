/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caps: drop capabilities permanently (capabilities(7)). The process must still have a
 * single thread.
 */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <linux/capability.h>
#include <stdint.h>

#define CAP_BIT(cap) (1ull << (cap))

/*
 * The capabilities that the daemon keeps. The systemd unit has the same list. This list is
 * for a daemon that runs without the unit. security.md, "Privileges", gives the reason for
 * each.
 */
#define CAPS_DAEMON                                                               \
	(CAP_BIT(CAP_NET_ADMIN) | CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_SYS_ADMIN) | \
	 CAP_BIT(CAP_IPC_LOCK) | CAP_BIT(CAP_SYS_RAWIO))

/*
 * Keep only the capabilities in the bit set `kept`. Programs that this process executes
 * inherit the capabilities in `inherited` even if they do not run as root. All other
 * capabilities also leave the bounding set, so that an executed root program cannot get
 * them. Returns 0, or -errno when the process may still have more than `kept`.      [main]
 */
int caps_keep(uint64_t kept, uint64_t inherited);

#endif
