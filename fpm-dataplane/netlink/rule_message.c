/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the kernel, see linux/fib_rules.h. Any thread, no state, no log. */
#include "netlink/rule_message.h"

#include <endian.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/fpm_event.h"
#include "netlink/hops.h"
#include "netlink/message.h"

/* Attributes that the headers of some systems do not have yet. */
#define RULE_DSCP       25 /* FRA_DSCP, Linux 6.13: the six bits of the DSCP, IPv4 too */
#define RULE_LABEL      26 /* FRA_FLOWLABEL, Linux 6.14, as is the next one */
#define RULE_LABEL_MASK 27
#define RULE_SPORT_MASK 28 /* FRA_SPORT_MASK, Linux 6.15, as are the next two */
#define RULE_DPORT_MASK 29
#define RULE_DSCP_MASK  30

#define IP4_TOS_BITS 0x1c /* bits of the octet that the kernel compares with `tos` */
#define IP6_TOS_BITS 0xfc

/* Attributes that this file reads, or that select nothing. Others: RULE_LACKS_UNKNOWN. */
static const uint32_t known_attributes =
	1u << FRA_DST | 1u << FRA_SRC | 1u << FRA_IIFNAME | 1u << FRA_GOTO |
	1u << FRA_PRIORITY | 1u << FRA_FWMARK | 1u << FRA_FLOW | 1u << FRA_TUN_ID |
	1u << FRA_SUPPRESS_IFGROUP | 1u << FRA_SUPPRESS_PREFIXLEN | 1u << FRA_TABLE |
	1u << FRA_FWMASK | 1u << FRA_OIFNAME | 1u << FRA_PAD | 1u << FRA_L3MDEV |
	1u << FRA_UID_RANGE | 1u << FRA_PROTOCOL | 1u << FRA_IP_PROTO |
	1u << FRA_SPORT_RANGE | 1u << FRA_DPORT_RANGE | 1u << RULE_DSCP | 1u << RULE_LABEL |
	1u << RULE_LABEL_MASK | 1u << RULE_SPORT_MASK | 1u << RULE_DPORT_MASK |
	1u << RULE_DSCP_MASK;

static int
rule_prefix(struct prefix *p, const struct attrs *attrs, unsigned int type, uint8_t family,
	    uint8_t len)
{
	unsigned int octets = family_octets(family);

	if (len > octets * 8)
		return -EBADMSG;
	p->family = family;
	p->len = len;
	if (attrs_copy(attrs, type, p->addr.octet, octets) < 0)
		return -EBADMSG;
	prefix_mask(p);
	return 0;
}

static int
rule_ports(struct rule_ports *ports, const struct attrs *attrs, unsigned int type,
	   unsigned int mask_type)
{
	struct fib_rule_port_range range = {0, 0};

	if (attrs_copy(attrs, type, &range, sizeof(range)) < 0 ||
	    attrs_copy(attrs, mask_type, &ports->mask, sizeof(ports->mask)) < 0)
		return -EBADMSG;
	ports->first = range.start;
	ports->last = range.end;
	return 0;
}

/* Read the selectors that compare fields of the IP header, and the ports. */
static int
rule_header_selectors(struct rule *rule, const struct attrs *attrs,
		      const struct fib_rule_hdr *frh)
{
	uint8_t dscp = 0;

	if (rule_prefix(&rule->src, attrs, FRA_SRC, rule->family, frh->src_len) < 0 ||
	    rule_prefix(&rule->dst, attrs, FRA_DST, rule->family, frh->dst_len) < 0)
		return -EBADMSG;
	if (frh->tos != 0) {
		rule->tos = frh->tos;
		rule->tos_mask = rule->family == 4 ? IP4_TOS_BITS : IP6_TOS_BITS;
	}
	if (attrs_have(attrs, RULE_DSCP)) {
		uint8_t mask = 0x3f;

		if (attrs_copy(attrs, RULE_DSCP, &dscp, sizeof(dscp)) < 0 ||
		    attrs_copy(attrs, RULE_DSCP_MASK, &mask, sizeof(mask)) < 0)
			return -EBADMSG;
		rule->by_dscp = true;
		rule->tos = (uint8_t)(dscp << 2);
		rule->tos_mask = (uint8_t)(mask << 2);
	}
	if (attrs_copy(attrs, FRA_IP_PROTO, &rule->ip_proto, sizeof(rule->ip_proto)) < 0 ||
	    rule_ports(&rule->sport, attrs, FRA_SPORT_RANGE, RULE_SPORT_MASK) < 0 ||
	    rule_ports(&rule->dport, attrs, FRA_DPORT_RANGE, RULE_DPORT_MASK) < 0)
		return -EBADMSG;
	return 0;
}

/* Read a number and its mask. Without a mask, all bits of a number above 0 are compared. */
static int
rule_bits(struct rule_bits *bits, const struct attrs *attrs, unsigned int type,
	  unsigned int mask_type)
{
	if (attrs_copy(attrs, type, &bits->value, sizeof(bits->value)) < 0)
		return -EBADMSG;
	bits->mask = bits->value != 0 ? UINT32_MAX : 0;
	return attrs_copy(attrs, mask_type, &bits->mask, sizeof(bits->mask));
}

/*
 * Read the flow label, the selectors that no received packet has (mark, user, tunnel), and
 * the realms, which have no effect.
 */
static int
rule_other_selectors(struct rule *rule, const struct attrs *attrs)
{
	struct fib_rule_uid_range uid = {0, 0};

	if (rule_bits(&rule->mark, attrs, FRA_FWMARK, FRA_FWMASK) < 0 ||
	    rule_bits(&rule->label, attrs, RULE_LABEL, RULE_LABEL_MASK) < 0 ||
	    attrs_copy(attrs, FRA_UID_RANGE, &uid, sizeof(uid)) < 0 ||
	    attrs_copy(attrs, FRA_TUN_ID, &rule->tunnel, sizeof(rule->tunnel)) < 0 ||
	    attrs_copy(attrs, FRA_FLOW, &rule->realms, sizeof(rule->realms)) < 0)
		return -EBADMSG;
	rule->has_uid = attrs_have(attrs, FRA_UID_RANGE);
	rule->uid[0] = uid.start;
	rule->uid[1] = uid.end;
	rule->tunnel = be64toh(rule->tunnel);
	rule->label.value = be32toh(rule->label.value);
	rule->label.mask = be32toh(rule->label.mask) & 0xfffff;
	return 0;
}

/*
 * Set the bits of rule->lacks: selectors that no forwarded packet matches, parts without
 * effect, tables whose routes are skipped, and unknown attributes.
 */
static void
rule_note_lacks(struct rule *rule, const struct attrs *attrs)
{
	bool no_suppress = rule->l3mdev || rule->table == RT_TABLE_LOCAL;

	if ((rule->mark.value & rule->mark.mask) != 0)
		rule->lacks |= RULE_LACKS_MARK;
	if (rule->uid[0] != 0)
		rule->lacks |= RULE_LACKS_UID;
	if (rule->tunnel != 0)
		rule->lacks |= RULE_LACKS_TUNNEL;
	if (rule->suppress >= 0 && no_suppress)
		rule->lacks |= RULE_LACKS_SUPPRESS;
	if (rule->suppress_group != RULE_NO_GROUP && no_suppress)
		rule->lacks |= RULE_LACKS_IFGROUP;
	if (rule->action == FR_ACT_TO_TBL && !rule->l3mdev &&
	    table_is_reserved(rule->table))
		rule->lacks |= RULE_LACKS_TABLE;
	if ((attrs->have & ~known_attributes) != 0)
		rule->lacks |= RULE_LACKS_UNKNOWN;
}

static int
rule_action(struct rule *rule, const struct attrs *attrs, const struct fib_rule_hdr *frh)
{
	uint32_t suppress = UINT32_MAX;
	uint8_t l3mdev = 0;

	rule->suppress_group = RULE_NO_GROUP;
	rule->action = frh->action;
	rule->invert = (frh->flags & FIB_RULE_INVERT) != 0;
	rule->table = frh->table;
	if (attrs_copy(attrs, FRA_PRIORITY, &rule->pref, sizeof(rule->pref)) < 0 ||
	    attrs_copy(attrs, FRA_TABLE, &rule->table, sizeof(rule->table)) < 0 ||
	    attrs_copy(attrs, FRA_GOTO, &rule->target, sizeof(rule->target)) < 0 ||
	    attrs_copy(attrs, FRA_L3MDEV, &l3mdev, sizeof(l3mdev)) < 0 ||
	    attrs_copy(attrs, FRA_PROTOCOL, &rule->protocol, sizeof(rule->protocol)) < 0 ||
	    attrs_copy(attrs, FRA_SUPPRESS_PREFIXLEN, &suppress, sizeof(suppress)) < 0 ||
	    attrs_copy(attrs, FRA_SUPPRESS_IFGROUP, &rule->suppress_group,
		       sizeof(rule->suppress_group)) < 0)
		return -EBADMSG;
	rule->l3mdev = l3mdev != 0;
	/* Linux takes any number, and compares it as a signed one. */
	rule->suppress = suppress > INT32_MAX ? -1 : (int32_t)suppress;
	switch (frh->action) {
	case FR_ACT_TO_TBL:
	case FR_ACT_GOTO:
	case FR_ACT_NOP:
	case FR_ACT_BLACKHOLE:
	case FR_ACT_UNREACHABLE:
	case FR_ACT_PROHIBIT:
		break;
	default:
		rule->lacks |= RULE_LACKS_UNKNOWN;
		break;
	}
	return 0;
}

static int
rule_interface(char name[16], const struct nlattr *a)
{
	if (a == NULL)
		return 0;
	if (a->nla_len - MNL_ATTR_HDRLEN > 16)
		return -EBADMSG;
	attr_text(a, name, 16);
	return 0;
}

int
rule_message_decode(const struct nlmsghdr *nlh, struct rule *rule)
{
	const struct fib_rule_hdr *frh = mnl_nlmsg_get_payload(nlh);
	struct attrs attrs;

	if (message_attrs(nlh, sizeof(*frh), &attrs) < 0)
		return -EBADMSG;
	rule->family = family_of_af(frh->family);
	if (rule->family == 0)
		return -EAFNOSUPPORT;
	if (rule_action(rule, &attrs, frh) < 0 ||
	    rule_interface(rule->iif, attr_of(&attrs, FRA_IIFNAME)) < 0 ||
	    rule_interface(rule->oif, attr_of(&attrs, FRA_OIFNAME)) < 0 ||
	    rule_header_selectors(rule, &attrs, frh) < 0)
		return -EBADMSG;
	if (rule_other_selectors(rule, &attrs) < 0)
		return -EBADMSG;
	rule_note_lacks(rule, &attrs);
	return 0;
}
