/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rule: rules of policy routing as the kernel has them (`ip rule`). Thread rtnl sends rib
 * the whole list of a family whenever it has changed.
 */
#ifndef BASE_RULE_H
#define BASE_RULE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/msg.h"
#include "base/prefix.h"

/*
 * Bits of rule.lacks. A rule with one of the first four bits matches no packet; with `not`,
 * it matches each packet. The reason is that a forwarded packet has mark 0, user 0 and no
 * tunnel, and that an unknown selector counts as not matched.
 */
#define RULE_LACKS_MARK    1u /* fwmark that is not 0 */
#define RULE_LACKS_UID     2u /* uidrange without 0, the user of a forwarded packet */
#define RULE_LACKS_TUNNEL  4u /* tun_id */
#define RULE_LACKS_UNKNOWN 8u /* a selector or an action that this version does not know */
/*
 * suppress_ifgroup or suppress_prefixlength, in a rule for table local or for the tables of
 * VRFs. Forwarders ignore it there.
 */
#define RULE_LACKS_IFGROUP  16u
#define RULE_LACKS_SUPPRESS 32u
#define RULE_LACKS_TABLE \
	128u /* a lookup in a table whose routes are skipped (table_is_reserved()) */
/* iif: an alternative name that the interface has lost before this daemon read the rule */
#define RULE_LACKS_IIF 64u
#define RULE_NO_GROUP  UINT32_MAX

/*
 * An inclusive range of ports; last 0: any. With a mask, a port matches if the port AND the
 * mask is `first`.
 */
struct rule_ports {
	uint16_t first, last;
	uint16_t mask;
};

/* A value, and the bits of it that are compared; both 0: not given. */
struct rule_bits {
	uint32_t value, mask;
};

struct rule {
	uint32_t pref;           /* the kernel evaluates low numbers first */
	uint32_t table;          /* FR_ACT_TO_TBL */
	uint32_t target;         /* FR_ACT_GOTO: pref of the rule at which to continue */
	int32_t suppress;        /* suppress_prefixlength; -1: not given */
	uint32_t suppress_group; /* suppress_ifgroup; RULE_NO_GROUP: not given */
	uint8_t family;          /* 4 or 6 */
	uint8_t action;          /* FR_ACT_* of linux/fib_rules.h */
	uint8_t protocol;        /* RTPROT_* of the program that made the rule */
	uint8_t lacks;           /* RULE_LACKS_* */
	bool invert;             /* `not` */
	bool l3mdev;             /* the table is that of the packet's VRF */
	uint8_t tos, tos_mask;   /* for the TOS octet of the IP header */
	struct rule_ports sport, dport;
	struct prefix src, dst; /* length 0: any */
	uint8_t ip_proto;       /* 0: any */
	bool has_uid;           /* only for display, as the last fields */
	bool by_dscp;           /* only for display: `tos` is the six bits of `dscp` */
	uint8_t zero[5];        /* in place of padding, because memcmp() compares rules */
	uint32_t realms; /* FRA_FLOW: realm of the source in the upper 16 bits; 0: none */
	struct rule_bits label; /* flowlabel, IPv6 */
	char iif[16];           /* "": any */
	char oif[16]; /* for packets of sockets that are bound to this interface; "": any */
	/*
	 * The interface if the name was an alternative one (ip link property) when the rule
	 * was added; 0: the interface with this primary name, if there is one.
	 */
	uint32_t iif_index, oif_index;
	/* The fields below are only for display. Forwarding uses `lacks` and `tos`. */
	struct rule_bits mark; /* fwmark */
	uint32_t uid[2];       /* uidrange, if has_uid is set */
	uint64_t tunnel;       /* tun_id; 0: none */
};
static_assert(sizeof(struct rule) == 160, "no padding");

/* Return true if the rule has a selector that matches no received packet. */
static inline bool
rule_is_never(const struct rule *rule)
{
	return rule->oif[0] != '\0' ||
	       (rule->lacks & (RULE_LACKS_MARK | RULE_LACKS_UID | RULE_LACKS_TUNNEL |
			       RULE_LACKS_UNKNOWN)) != 0;
}

/*
 * MSG_RULES: the rules of one family that Linux obeys, in its order. If there is no rule,
 * no packet has a route. A kernel without policy routing (CONFIG_IP_MULTIPLE_TABLES is off)
 * causes no message.
 */
struct msg_rules {
	struct msg m;
	uint8_t family;
	/* IPv4: Linux has split table local from table main, and looks up both in turn. */
	bool split;
	uint32_t n;
	struct rule rule[];
};

#define RULE_IFACES_MAX 1024 /* interfaces named by rules; with more, all are affected */

/* Interfaces whose packets are affected by the rules of one family. */
struct rule_ifaces {
	bool all;
	uint32_t n;
	uint32_t ifindex[RULE_IFACES_MAX];
};

/* MSG_RULE_IFACES: for IPv4 and IPv6. */
struct msg_rule_ifaces {
	struct msg m;
	struct rule_ifaces of[2];
};

#endif
