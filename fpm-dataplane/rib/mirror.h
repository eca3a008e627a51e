/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hooks that write the checkpoint. Without a checkpoint they do nothing. While it is
 * quiesced they note the numbers of the changed objects. [rib]
 */
#ifndef RIB_MIRROR_H
#define RIB_MIRROR_H

#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;
struct nh_list;

/* Objects that changed while the checkpoint was quiesced, by number. */
struct mirror_missed {
	struct vec32 main, other; /* routes of zebra: of table main, of the other tables */
	struct vec32 kernel, slots;
};

void mirror_route(struct rib *rib, const struct route *r); /* it has a new slot or type */
void mirror_route_gone(struct rib *rib, const struct route *r);
void mirror_kernel(struct rib *rib, uint32_t number); /* a new or changed record */
void mirror_kernel_gone(struct rib *rib, uint32_t number);
void mirror_slot(struct rib *rib, uint32_t slot, const struct nh_list *hops);
void mirror_slot_gone(struct rib *rib, uint32_t slot);
void mirror_zebra(struct rib *rib, uint32_t nl_pid, uint32_t held_until_s);
void mirror_alive(struct rib *rib);
/* The checkpoint is no longer quiesced: write the changes that it misses. */
void mirror_resume(struct rib *rib);
void mirror_missed_free(struct rib *rib);

#endif
