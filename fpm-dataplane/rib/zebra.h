/* SPDX-License-Identifier: BSD-3-Clause */
/* Apply events of zebra. [rib] */
#ifndef RIB_ZEBRA_H
#define RIB_ZEBRA_H

struct msg_fpm_batch;
struct rib;
struct route;

void zebra_batch(struct rib *rib, const struct msg_fpm_batch *b);
void zebra_withdraw(struct rib *rib, struct route *r);

#endif
