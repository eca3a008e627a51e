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
 * Keep of all capabilities those of the bits `kept`, and let what is executed inherit those of
 * `inherited` without being root. What goes is out of the bounding set, too: root that is
 * executed has no more. Returns 0 or -errno: there are more than there should be.       [main]
 */
int caps_keep(uint64_t kept, uint64_t inherited);

#endif
