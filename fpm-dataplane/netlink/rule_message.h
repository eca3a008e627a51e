/* SPDX-License-Identifier: BSD-3-Clause */
/* rule_message: decode one rtnetlink message of the kernel about a rule (`ip rule`). */
#ifndef NETLINK_RULE_MESSAGE_H
#define NETLINK_RULE_MESSAGE_H

#include <libmnl/libmnl.h>

#include "base/rule.h"

/*
 * Decode RTM_NEWRULE into the zeroed `rule`. `nlh` is 4-aligned and complete. Returns 0,
 * -EBADMSG, or -EAFNOSUPPORT for a rule of another family than IPv4 and IPv6.
 *                                                                             [any thread]
 */
int rule_message_decode(const struct nlmsghdr *nlh, struct rule *rule);

#endif
