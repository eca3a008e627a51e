/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of links that cause a dump, see rtnl/new_link.c.
 * link: fpm-dataplane/rtnl/new_link.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "rtnl/impl.h"

/* Give the code of rtnl an event of a link. Return true if the event causes a dump. */
static bool
link_causes(struct rtnl *r, int type, unsigned int flags, unsigned int change)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg info;
	} m = {.h = {.nlmsg_len = sizeof(m), .nlmsg_type = (uint16_t)type},
	       .info = {.ifi_index = 7, .ifi_flags = flags, .ifi_change = change}};

	return link_may_have_lost(r, &m.h) || link_may_have_revived(r, &m.h);
}

#define LINK_UP      1u
#define LINK_CARRIER (LINK_UP | 1u << 16)
#define LINK_NEW     UINT32_MAX

/* No routes can go with a link that was never up. */
static void
only_links_that_may_have_routes_cause_a_dump(void **state)
{
	struct rtnl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_true(link_causes(r, RTM_NEWLINK, 0, 0)); /* the link is not known as new */
	assert_true(link_causes(r, RTM_DELLINK, 0, LINK_NEW));
	assert_false(link_causes(r, RTM_NEWLINK, 0, LINK_NEW));
	assert_false(link_causes(r, RTM_NEWLINK, 0, 0));
	assert_false(link_causes(r, RTM_DELLINK, 0, LINK_NEW));
	assert_true(link_causes(r, RTM_DELLINK, 0, LINK_NEW)); /* r forgot the link */
	/* Up without carrier: it may have routes, and no next-hop object. */
	assert_false(link_causes(r, RTM_NEWLINK, LINK_UP, LINK_NEW));
	assert_false(link_causes(r, RTM_NEWLINK, LINK_UP, 0));
	assert_true(link_causes(r, RTM_NEWLINK, 0, LINK_UP));
	assert_true(link_causes(r, RTM_DELLINK, 0, LINK_NEW));
	/* With carrier it is a link as any other. */
	assert_false(link_causes(r, RTM_NEWLINK, LINK_UP, LINK_NEW));
	assert_false(link_causes(r, RTM_NEWLINK, LINK_CARRIER, 0));
	assert_true(link_causes(r, RTM_NEWLINK, LINK_UP, 0));
	/* A next-hop object may be on it, although its carrier was not announced. */
	assert_false(link_causes(r, RTM_NEWLINK, LINK_UP, LINK_NEW));
	new_links_forget(r);
	assert_true(link_causes(r, RTM_NEWLINK, LINK_UP, 0));
	free(r);
}

/* A link that comes up may revive next hops that the last dump showed as dead. */
static void
a_link_that_is_up_causes_a_dump_while_next_hops_are_dead(void **state)
{
	struct rtnl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_false(link_causes(r, RTM_NEWLINK, LINK_CARRIER, LINK_UP));
	r->has_dead = true;
	assert_true(link_causes(r, RTM_NEWLINK, LINK_CARRIER, LINK_UP));
	assert_false(link_causes(r, RTM_NEWLINK, 0, LINK_NEW));
	free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_links_that_may_have_routes_cause_a_dump),
		cmocka_unit_test(a_link_that_is_up_causes_a_dump_while_next_hops_are_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
