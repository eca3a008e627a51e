/* SPDX-License-Identifier: BSD-3-Clause */
/* Apply events of zebra. [rib] */
#ifndef RIB_ZEBRA_H
#define RIB_ZEBRA_H

struct msg_fpm_batch;
struct rib;

void zebra_batch(struct rib *rib, const struct msg_fpm_batch *b);

#endif
