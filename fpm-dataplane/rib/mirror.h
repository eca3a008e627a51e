/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks that write the checkpoint. Without a checkpoint they do nothing. [rib]. */
#ifndef RIB_MIRROR_H
#define RIB_MIRROR_H

#include <stdint.h>

struct rib;
struct route;
struct nh_list;

void mirror_route(struct rib *rib, const struct route *r); /* it has a new slot or type */
void mirror_route_gone(struct rib *rib, const struct route *r);
void mirror_kernel(struct rib *rib, uint32_t number); /* a new or changed record */
void mirror_kernel_gone(struct rib *rib, uint32_t number);
void mirror_slot(struct rib *rib, uint32_t slot, const struct nh_list *hops);
void mirror_slot_gone(struct rib *rib, uint32_t slot);
void mirror_zebra(struct rib *rib, uint32_t nl_pid, uint32_t held_until_s);
void mirror_alive(struct rib *rib);

#endif
