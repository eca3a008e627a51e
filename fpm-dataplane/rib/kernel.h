/* SPDX-License-Identifier: BSD-3-Clause */
/* Apply events of the kernel: links and own addresses. [rib] */
#ifndef RIB_KERNEL_H
#define RIB_KERNEL_H

struct msg_addr;
struct msg_link;
struct rib;

void rib_addr_event(struct rib *rib, const struct msg_addr *m);
void rib_link_event(struct rib *rib, const struct msg_link *m);

#endif
