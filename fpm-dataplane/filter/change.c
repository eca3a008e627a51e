/* SPDX-License-Identifier: BSD-3-Clause */
/* Change sets of a ruleset by the elements that the kernel announces. [filter] */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"
#include "netlink/attributes.h"

struct change {
	const struct filter_build_conf *conf;
	struct ruleset *r;
	const struct filter_table *table;
	unsigned int n_table;
	struct ruleset_set *set; /* NULL: no message was about a set of the ruleset yet */
	bool leaves;             /* the present message removes elements */
	bool published, failed;
	struct ruleset_change *list;
	uint32_t n, room;
};

static int
on_element(const struct nlattr *elem, void *ctx)
{
	struct change *c = ctx;
	struct ruleset_change one = {.leaves = c->leaves};

	if (filter_element_read(elem, c->set, c->conf->now, c->conf->ticks_s, &one.m) !=
		    NULL ||
	    one.m.key == NULL)
		return -1;
	c->list = build_room(c->list, c->n, &c->room, sizeof(*c->list));
	c->list[c->n++] = one;
	return 0;
}

/* Find the set of a message; NULL: no rule uses it. */
static struct ruleset_set *
set_of(const struct change *c, const struct nlmsghdr *nlh)
{
	const struct filter_table *table =
		filter_table_of(c->table, c->n_table, nlh, NFTA_SET_ELEM_LIST_TABLE);
	const struct ruleset *r = c->r;
	char name[FILTER_NAME];

	attr_text(message_attr(nlh, NFTA_SET_ELEM_LIST_SET), name, sizeof(name));
	for (uint32_t i = 0; i < r->n_set; i++)
		if (table != NULL && r->set[i].table == table->number &&
		    strcmp(r->set[i].name, name) == 0)
			return &r->set[i];
	return NULL;
}

/* Make the collected changes of the present set. */
static void
changes_make(struct change *c)
{
	if (c->n > 0 && ruleset_members_change(c->set, c->list, c->n, c->conf->now,
					       c->conf->reclaim) < 0)
		c->failed = true;
	c->n = 0;
}

static void
on_message(const struct nlmsghdr *nlh, void *ctx)
{
	struct change *c = ctx;
	struct ruleset_set *set = set_of(c, nlh);

	if (set == NULL || c->failed)
		return;
	if (c->set != NULL && c->set != set && !c->published)
		changes_make(c);
	/*
	 * Forwarders read a published ruleset, and would see the change of one set before
	 * the change of another set. So the tables are read again instead.
	 */
	if (!set->changes || (c->published && c->set != NULL && c->set != set)) {
		c->failed = true;
		return;
	}
	c->set = set;
	c->leaves = (nlh->nlmsg_type & 0xff) == NFT_MSG_DELSETELEM;
	if (filter_elements_each(nlh, on_element, c) < 0)
		c->failed = true;
}

int
filter_change(struct ruleset *r, const struct filter_table *table, unsigned int n_table,
	      const struct filter_dump *messages, const struct filter_build_conf *conf,
	      bool published)
{
	struct change c = {.conf = conf,
			   .r = r,
			   .table = table,
			   .n_table = n_table,
			   .published = published};

	filter_dump_each(messages, on_message, &c);
	if (!c.failed)
		changes_make(&c);
	free(c.list);
	return c.failed ? -EOPNOTSUPP : 0;
}
