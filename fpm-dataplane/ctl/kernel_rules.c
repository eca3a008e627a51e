/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the kernel's rules of policy routing, and the tables that they look up. */
#include "ctl/kernel_rules.h"

#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/kernel_dump.h"

/* Attributes that the headers of older systems lack. */
#define RULE_DSCP       25
#define RULE_LABEL      26
#define RULE_LABEL_MASK 27
#define RULE_SPORT_MASK 28
#define RULE_DPORT_MASK 29
#define RULE_DSCP_MASK  30

/* The rules of one answer. */
struct answer {
	struct kernel_rule *v;
	size_t n;
};

/* Values of a message that struct kernel_rule has in another form. */
struct raw {
	uint64_t tunnel;   /* network order */
	uint32_t label[2]; /* network order */
	struct fib_rule_port_range sport, dport;
	uint8_t l3mdev;
	bool has_mask; /* FRA_FWMASK */
	bool bad;      /* a value has a wrong length */
};

static void
value_take(struct raw *raw, const struct nlattr *a, void *out, size_t size)
{
	if (mnl_attr_get_payload_len(a) != size)
		raw->bad = true;
	else
		memcpy(out, mnl_attr_get_payload(a), size);
}

static void
address_take(struct raw *raw, const struct nlattr *a, struct prefix *p)
{
	value_take(raw, a, p->addr.octet, p->family == 4 ? 4 : 16);
}

static void
name_take(struct raw *raw, const struct nlattr *a, char name[16])
{
	size_t n = mnl_attr_get_payload_len(a);

	if (n > 16)
		raw->bad = true;
	else
		memcpy(name, mnl_attr_get_payload(a), n);
	name[15] = '\0';
}

/* Take an attribute that selects packets. Returns false if it is none. */
static bool
selector_take(const struct nlattr *a, struct kernel_rule *r, struct raw *raw)
{
	switch (mnl_attr_get_type(a)) {
	case FRA_FWMARK:
		value_take(raw, a, &r->fwmark[0], sizeof(r->fwmark[0]));
		return true;
	case FRA_FWMASK:
		raw->has_mask = true;
		value_take(raw, a, &r->fwmark[1], sizeof(r->fwmark[1]));
		return true;
	case FRA_TUN_ID:
		value_take(raw, a, &raw->tunnel, sizeof(raw->tunnel));
		return true;
	case FRA_UID_RANGE:
		r->has_uid_range = true;
		value_take(raw, a, r->uid_range, sizeof(r->uid_range));
		return true;
	case FRA_SRC:
		address_take(raw, a, &r->src);
		return true;
	case FRA_DST:
		address_take(raw, a, &r->dst);
		return true;
	case FRA_IIFNAME:
		name_take(raw, a, r->iif);
		return true;
	case FRA_IP_PROTO:
		value_take(raw, a, &r->ip_protocol, sizeof(r->ip_protocol));
		return true;
	case FRA_SPORT_RANGE:
		value_take(raw, a, &raw->sport, sizeof(raw->sport));
		return true;
	case FRA_DPORT_RANGE:
		value_take(raw, a, &raw->dport, sizeof(raw->dport));
		return true;
	case RULE_SPORT_MASK:
		value_take(raw, a, &r->sport_mask, sizeof(r->sport_mask));
		return true;
	case RULE_DPORT_MASK:
		value_take(raw, a, &r->dport_mask, sizeof(r->dport_mask));
		return true;
	case RULE_DSCP:
		r->has_dscp = true;
		value_take(raw, a, &r->dscp[0], sizeof(r->dscp[0]));
		return true;
	case RULE_DSCP_MASK:
		value_take(raw, a, &r->dscp[1], sizeof(r->dscp[1]));
		return true;
	case RULE_LABEL:
		r->has_flowlabel = true;
		value_take(raw, a, &raw->label[0], sizeof(raw->label[0]));
		return true;
	case RULE_LABEL_MASK:
		value_take(raw, a, &raw->label[1], sizeof(raw->label[1]));
		return true;
	case FRA_OIFNAME:
		name_take(raw, a, r->oif);
		return true;
	default:
		return false;
	}
}

static void
attribute_take(const struct nlattr *a, struct kernel_rule *r, struct raw *raw)
{
	uint16_t type = mnl_attr_get_type(a);

	if (selector_take(a, r, raw))
		return;
	switch (type) {
	case FRA_TABLE:
		value_take(raw, a, &r->table, sizeof(r->table));
		break;
	case FRA_PRIORITY:
		value_take(raw, a, &r->pref, sizeof(r->pref));
		break;
	case FRA_GOTO:
		value_take(raw, a, &r->target, sizeof(r->target));
		break;
	case FRA_L3MDEV:
		value_take(raw, a, &raw->l3mdev, sizeof(raw->l3mdev));
		break;
	case FRA_SUPPRESS_PREFIXLEN:
		value_take(raw, a, &r->suppress_length, sizeof(r->suppress_length));
		break;
	case FRA_SUPPRESS_IFGROUP:
		value_take(raw, a, &r->suppress_group, sizeof(r->suppress_group));
		break;
	case FRA_FLOW:
		value_take(raw, a, &r->realms, sizeof(r->realms));
		break;
	case FRA_PROTOCOL:
		value_take(raw, a, &r->protocol, sizeof(r->protocol));
		break;
	case FRA_PAD:
		break;
	default:
		r->unknown = true;
		break;
	}
}

/* Read the attributes of a rule. Returns false if they are malformed. */
static bool
attributes_take(const struct nlmsghdr *h, struct kernel_rule *r, struct raw *raw)
{
	const char *end = mnl_nlmsg_get_payload_tail(h);
	const struct nlattr *a =
		mnl_nlmsg_get_payload_offset(h, sizeof(struct fib_rule_hdr));

	for (; mnl_attr_ok(a, (int)(end - (const char *)a)); a = mnl_attr_next(a))
		attribute_take(a, r, raw);
	return (const char *)a >= end && !raw->bad;
}

static void
answer_on_begin(void *ctx)
{
	((struct answer *)ctx)->n = 0;
}

/* Decode a message. Returns 0 or -EBADMSG. */
static int
rule_decode(const struct nlmsghdr *h, struct kernel_rule *r)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(h);
	struct raw raw = {0};
	uint8_t family, most;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*header)))
		return -EBADMSG;
	family = header->family == AF_INET ? 4 : 6;
	most = family == 4 ? 32 : 128;
	*r = (struct kernel_rule){
		.table = header->table,
		.suppress_length = KERNEL_RULE_NONE,
		.suppress_group = KERNEL_RULE_NONE,
		.dscp[1] = 0x3f,
		.src = {.family = family, .len = header->src_len},
		.dst = {.family = family, .len = header->dst_len},
		.action = header->action,
		.tos = header->tos,
		.invert = (header->flags & FIB_RULE_INVERT) != 0,
		.unresolved = (header->flags & FIB_RULE_UNRESOLVED) != 0,
		.oif_detached = (header->flags & FIB_RULE_OIF_DETACHED) != 0,
		.iif_detached = (header->flags & FIB_RULE_IIF_DETACHED) != 0,
	};
	if (header->src_len > most || header->dst_len > most ||
	    !attributes_take(h, r, &raw))
		return -EBADMSG;
	prefix_mask(&r->src);
	prefix_mask(&r->dst);
	r->sport[0] = raw.sport.start;
	r->sport[1] = raw.sport.end;
	r->dport[0] = raw.dport.start;
	r->dport[1] = raw.dport.end;
	r->l3mdev = raw.l3mdev != 0;
	r->tun_id = be64toh(raw.tunnel);
	r->flowlabel[0] = be32toh(raw.label[0]);
	r->flowlabel[1] = be32toh(raw.label[1]);
	if (!raw.has_mask && r->fwmark[0] != 0)
		r->fwmark[1] = UINT32_MAX;
	/*
	 * Received packets have the mark 0, come from no tunnel, and belong to the
	 * superuser.
	 */
	r->mark = (r->fwmark[0] & r->fwmark[1]) != 0;
	r->uid = r->has_uid_range && r->uid_range[0] != 0;
	r->tunnel = raw.tunnel != 0;
	return 0;
}

static int
answer_on_message(const struct nlmsghdr *h, void *ctx)
{
	struct answer *answer = ctx;

	if (h->nlmsg_type != RTM_NEWRULE)
		return 0;
	answer->v = realloc(answer->v, (answer->n + 1) * sizeof(*answer->v));
	if (answer->v == NULL)
		abort();
	return rule_decode(h, &answer->v[answer->n++]);
}

int
kernel_rules(uint8_t family, void (*on_rule)(const struct kernel_rule *rule, void *ctx),
	     void *ctx)
{
	struct answer answer = {0};
	int rc = kernel_dump(RTM_GETRULE, family == 4 ? AF_INET : AF_INET6,
			     sizeof(struct fib_rule_hdr),
			     &(struct dump_reader){.on_begin = answer_on_begin,
						   .on_message = answer_on_message,
						   .ctx = &answer});

	if (rc == -EOPNOTSUPP || rc == -EAFNOSUPPORT)
		return KERNEL_RULES_ABSENT;
	for (size_t i = 0; rc == 0 && i < answer.n; i++)
		on_rule(&answer.v[i], ctx);
	free(answer.v);
	if (rc < 0)
		fprintf(stderr, "fpmctl: the kernel's IPv%u rules cannot be read: %s\n",
			family == 4 ? 4u : 6u,
			rc == -EINTR ? "they change too fast" : strerror(-rc));
	return rc < 0 ? -1 : 0;
}

/* The function of the caller, and its argument. */
struct on_table {
	void (*call)(uint8_t family, uint32_t table, void *ctx);
	void *ctx;
};

static void
table_on_rule(const struct kernel_rule *r, void *ctx)
{
	const struct on_table *to = ctx;
	bool never = r->mark || r->uid || r->tunnel || r->oif[0] != '\0' || r->unknown;

	if (r->action == FR_ACT_TO_TBL && r->table != RT_TABLE_UNSPEC &&
	    (!never || r->invert))
		to->call(r->src.family, r->table, to->ctx);
}

int
kernel_rule_tables(uint8_t family,
		   void (*on_table)(uint8_t family, uint32_t table, void *ctx), void *ctx)
{
	struct on_table to = {.call = on_table, .ctx = ctx};

	return kernel_rules(family, table_on_rule, &to) < 0 ? -1 : 0;
}
