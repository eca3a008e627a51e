/* SPDX-License-Identifier: BSD-3-Clause */
/* withdraw: remove a route of zebra. [rib] */
#ifndef RIB_WITHDRAW_H
#define RIB_WITHDRAW_H

struct rib;
struct route;

/*
 * Remove zebra's route of a prefix. The kernel's route of the prefix, if there is one, is
 * in force then.
 */
void zebra_withdraw(struct rib *rib, struct route *r);

#endif
