/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the kernel's rules (linux/fib_rules.h), and return the tables that they look up. The daemon
 * decodes the same messages; this file shares no code with it.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/kernel_dump.h"
#include "ctl/kernel_table.h"

/* Newer than the headers of some systems. */
#define RULE_DSCP       25
#define RULE_SPORT_MASK 28
#define RULE_DSCP_MASK  30

struct rule_seen {
	uint32_t table, mark, mask;
	uint64_t tunnel;
	struct fib_rule_uid_range uid;
	bool lacks; /* a selector that matches no received packet, or is unknown */
	bool bad;   /* a value has a wrong length */
};

struct tables {
	uint32_t *v;
	size_t n;
};

static void
value_take(struct rule_seen *seen, const struct nlattr *a, void *out, size_t size)
{
	if (mnl_attr_get_payload_len(a) != size)
		seen->bad = true;
	else
		memcpy(out, mnl_attr_get_payload(a), size);
}

static void
attribute_take(const struct nlattr *a, struct rule_seen *seen)
{
	uint16_t type = mnl_attr_get_type(a);

	switch (type) {
	case FRA_TABLE:
		value_take(seen, a, &seen->table, sizeof(seen->table));
		break;
	case FRA_FWMARK:
		value_take(seen, a, &seen->mark, sizeof(seen->mark));
		break;
	case FRA_FWMASK:
		value_take(seen, a, &seen->mask, sizeof(seen->mask));
		break;
	case FRA_TUN_ID:
		value_take(seen, a, &seen->tunnel, sizeof(seen->tunnel));
		break;
	case FRA_UID_RANGE:
		value_take(seen, a, &seen->uid, sizeof(seen->uid));
		break;
	case FRA_DST:
	case FRA_SRC:
	case FRA_IIFNAME:
	case FRA_PRIORITY:
	case FRA_FLOW:
	case FRA_SUPPRESS_IFGROUP:
	case FRA_SUPPRESS_PREFIXLEN:
	case FRA_PAD:
	case FRA_PROTOCOL:
	case FRA_IP_PROTO:
	case FRA_SPORT_RANGE:
	case FRA_DPORT_RANGE:
	case RULE_DSCP:
		break;
	default: /* of the interface by which the packets of a process leave, for example */
		seen->lacks |= type < RULE_SPORT_MASK || type > RULE_DSCP_MASK;
		break;
	}
}

/* Read the attributes of a rule. Returns false if they are malformed. */
static bool
attributes_take(const struct nlmsghdr *h, struct rule_seen *seen)
{
	const char *end = mnl_nlmsg_get_payload_tail(h);
	const struct nlattr *a =
		mnl_nlmsg_get_payload_offset(h, sizeof(struct fib_rule_hdr));

	for (; mnl_attr_ok(a, (int)(end - (const char *)a)); a = mnl_attr_next(a))
		attribute_take(a, seen);
	return (const char *)a >= end && !seen->bad;
}

static void
tables_on_begin(void *ctx)
{
	((struct tables *)ctx)->n = 0;
}

/* Received packets have the mark 0, come from no tunnel, and belong to the superuser. */
static int
tables_on_message(const struct nlmsghdr *h, void *ctx)
{
	const struct fib_rule_hdr *rule = mnl_nlmsg_get_payload(h);
	struct rule_seen seen = {.mask = UINT32_MAX};
	struct tables *t = ctx;
	bool invert;

	if (h->nlmsg_type != RTM_NEWRULE)
		return 0;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*rule)))
		return -EBADMSG;
	seen.table = rule->table;
	if (!attributes_take(h, &seen))
		return -EBADMSG;
	invert = (rule->flags & FIB_RULE_INVERT) != 0;
	seen.lacks |=
		(seen.mark & seen.mask) != 0 || seen.tunnel != 0 || seen.uid.start != 0;
	if (rule->action != FR_ACT_TO_TBL || seen.table == RT_TABLE_UNSPEC ||
	    (seen.lacks && !invert))
		return 0;
	t->v = realloc(t->v, (t->n + 1) * sizeof(*t->v));
	if (t->v == NULL)
		abort();
	t->v[t->n++] = seen.table;
	return 0;
}

int
kernel_rule_tables(uint8_t family, void (*on_table)(uint32_t table, void *ctx), void *ctx)
{
	struct tables t = {0};
	int rc = kernel_dump(RTM_GETRULE, family == 4 ? AF_INET : AF_INET6,
			     sizeof(struct fib_rule_hdr),
			     &(struct dump_reader){.on_begin = tables_on_begin,
						   .on_message = tables_on_message,
						   .ctx = &t});

	if (rc == -EOPNOTSUPP || rc == -EAFNOSUPPORT)
		rc = 0; /* a kernel without rules */
	for (size_t i = 0; rc == 0 && i < t.n; i++)
		on_table(t.v[i], ctx);
	free(t.v);
	if (rc < 0)
		fprintf(stderr, "fpmctl: the kernel's IPv%u rules cannot be read: %s\n",
			family == 4 ? 4u : 6u,
			rc == -EINTR ? "they change too fast" : strerror(-rc));
	return rc < 0 ? -1 : 0;
}
