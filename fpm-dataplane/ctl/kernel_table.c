/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the routes of the kernel. Linux ends a dump, without an error, at a route that does
 * not fit in a message, and it dumps table local last. So a dump without a route of table
 * local is incomplete if another dump, of table local alone, has routes.
 */
#include "ctl/kernel_table.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/kernel_dump.h"
#include "ctl/kernel_rules.h"

struct table_read {
	const struct prefix *only; /* NULL: all prefixes */
	const struct route_reader *to;
	struct route_decoder *decoder;
	bool local_shown; /* the answer has a route of table local */
};

static void
table_on_begin(void *ctx)
{
	struct table_read *t = ctx;

	t->local_shown = false;
	if (t->to->on_begin != NULL)
		t->to->on_begin(t->to->ctx);
}

/* Return true if the message is a route of table local. */
static bool
message_is_local(const struct nlmsghdr *h)
{
	const struct rtmsg *rtm = NLMSG_DATA(h);

	return h->nlmsg_type == RTM_NEWROUTE &&
	       h->nlmsg_len >= NLMSG_LENGTH(sizeof(*rtm)) &&
	       rtm->rtm_table == RT_TABLE_LOCAL;
}

static int
local_on_message(const struct nlmsghdr *h, void *ctx)
{
	*(bool *)ctx |= message_is_local(h);
	return 0;
}

static int
table_on_message(const struct nlmsghdr *h, void *ctx)
{
	struct table_read *t = ctx;
	int rc = 0;
	struct kernel_route *r =
		h->nlmsg_type == RTM_NEWROUTE ? route_decode(t->decoder, h, &rc) : NULL;

	t->local_shown |= message_is_local(h);
	if (r != NULL && (t->only == NULL || prefix_equal(t->only, &r->prefix)))
		t->to->on_route(r, t->to->ctx);
	return rc;
}

/*
 * Judge a dump without a route of table local. Returns 0 if that table has none; -EMSGSIZE:
 * the dump is incomplete; or another error.
 */
static int
table_cut(uint8_t af)
{
	bool has = false;
	int rc = kernel_dump_table(
		af, RT_TABLE_LOCAL,
		&(struct dump_reader){.on_message = local_on_message, .ctx = &has});

	if (rc == -ENOENT) /* a table that has never had a route */
		return 0;
	return rc == 0 && has ? -EMSGSIZE : rc;
}

static int
lookup_on_message(const struct nlmsghdr *h, void *ctx)
{
	*(bool *)ctx |= message_is_local(h);
	return 0;
}

/* Counters that show if the rules of IPv4 are those with which Linux begins. */
struct first_rules {
	uint32_t n;       /* all rules */
	uint32_t n_other; /* rules with another preference than the standard rules */
};

static void
first_on_rule(const struct kernel_rule *r, void *ctx)
{
	struct first_rules *rules = ctx;

	rules->n++;
	rules->n_other += r->pref != 0 && r->pref != 32766 && r->pref != 32767;
}

/*
 * Set *split to true if Linux looks up table local and then table main for IPv4. Until the
 * rules of IPv4 are changed for the first time, Linux uses both as one table, and its
 * answer to a lookup of 127.0.0.1 names table main (fib_lookup()). Returns 0, or -1 after
 * printing an error.
 */
static int
tables_are_split4(bool *split)
{
	struct first_rules rules = {0};
	int rc;

	*split = false;
	/* If lo is down, the lookup fails, and only the list of rules decides. */
	(void)kernel_lookup4(
		INADDR_LOOPBACK,
		&(struct dump_reader){.on_message = lookup_on_message, .ctx = split});
	rc = kernel_rules(4, first_on_rule, &rules);
	if (rc < 0)
		return -1;
	*split |= rc != KERNEL_RULES_ABSENT && (rules.n != 3 || rules.n_other > 0);
	return 0;
}

int
kernel_table(uint8_t family, const struct prefix *p, const struct route_reader *to)
{
	struct table_read t = {.only = p, .to = to};
	struct kernel_nexthops nexthops = {0};
	struct kernel_link *links = NULL;
	bool split4 = false;
	int rc;

	if (family == 4 && tables_are_split4(&split4) < 0)
		return -1;
	rc = kernel_nexthops_read(&nexthops);
	if (rc == 0)
		rc = kernel_links(&links);
	if (rc >= 0) {
		t.decoder = route_decoder_new(links, rc);
		route_decoder_set_nexthops(t.decoder, &nexthops);
		route_decoder_set_split4(t.decoder, split4);
		rc = kernel_dump(RTM_GETROUTE, family == 4 ? AF_INET : AF_INET6,
				 sizeof(struct rtmsg),
				 &(struct dump_reader){.on_begin = table_on_begin,
						       .on_message = table_on_message,
						       .ctx = &t});
		route_decoder_free(t.decoder);
		if (rc == 0 && !t.local_shown)
			rc = table_cut(family == 4 ? AF_INET : AF_INET6);
		free(links);
	}
	kernel_nexthops_free(&nexthops);
	if (rc < 0)
		fprintf(stderr, "fpmctl: the kernel's IPv%u routes cannot be read: %s\n",
			family == 4 ? 4u : 6u,
			rc == -EINTR      ? "they change too fast"
			: rc == -EMSGSIZE ? "Linux ends its list at a route with too many "
					    "next hops"
					  : strerror(-rc));
	return rc < 0 ? -1 : 0;
}
