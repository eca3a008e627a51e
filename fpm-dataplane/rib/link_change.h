/* SPDX-License-Identifier: BSD-3-Clause */
/* Apply changes of the kernel's links to the routes that use them. [rib] */
#ifndef RIB_LINK_CHANGE_H
#define RIB_LINK_CHANGE_H

#include <stdbool.h>

struct msg_link;
struct rib;

void rib_link_event(struct rib *rib, const struct msg_link *m);
/* `on`: let the kernel forward packets to interfaces that are no ports. Else drop them. */
void links_set_through_kernel(struct rib *rib, bool on);

#endif
