/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor for MPLS. The test makes the messages as the module mpls_router sends
 * them, because most kernels of developers do not have this module.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tap-bridge/kmon_impl.h"

static struct {
	char said[256]; /* reports, in order */
} t;

static void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
	size_t n = strlen(t.said);

	snprintf(t.said + n, sizeof(t.said) - n, " link%u%s", link->ifindex,
		 gone ? "-gone" : "");
}

static void
on_mpls(void *ctx, const struct kmon_mpls *mpls, bool gone)
{
	size_t n = strlen(t.said);

	snprintf(t.said + n, sizeof(t.said) - n, " mpls%u%s", mpls->ifindex,
		 gone          ? "-gone"
		 : mpls->input ? "-on"
			       : "-off");
}

static const struct kmon_ops ops = {.on_link = on_link, .on_mpls = on_mpls};

/* Return the reports since the last call. */
static const char *
said(void)
{
	static char text[sizeof(t.said)];

	memcpy(text, t.said, sizeof(text));
	t.said[0] = '\0';
	return text;
}

static void
link_is(struct kmon *km, unsigned int ifindex, bool gone)
{
	struct kmon_change change = {
		.kind = KMON_LINK, .gone = gone, .item.link.ifindex = ifindex};

	assert_int_equal(kmon_apply(km, &change), 0);
}

/* Parse a netconf message. A negative number: the message lacks this attribute. */
static bool
parsed(struct kmon_change *change, int type, uint8_t family, int ifindex, int input)
{
	struct netconfmsg body = {.ncm_family = family};
	struct nl_msg *msg = nlmsg_alloc_simple(type, 0);
	bool ok;

	assert_non_null(msg);
	assert_int_equal(nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
	if (ifindex != 0)
		nla_put_s32(msg, NETCONFA_IFINDEX, ifindex);
	if (input >= 0)
		nla_put_s32(msg, NETCONFA_INPUT, input);
	ok = kmon_parse(msg, change);
	nlmsg_free(msg);
	return ok;
}

static void
told(struct kmon *km, int type, int ifindex, int input)
{
	struct kmon_change change;

	assert_true(parsed(&change, type, AF_MPLS, ifindex, input));
	assert_int_equal(change.kind, KMON_MPLS);
	assert_int_equal(kmon_apply(km, &change), 0);
}

static void
end(struct kmon *km)
{
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km->mirror[kind]);
}

static void
input_of_a_link_is_followed(void **state)
{
	struct kmon km = {.ops = ops};

	link_is(&km, 7, false);
	told(&km, RTM_NEWNETCONF, 7, 0);
	told(&km, RTM_NEWNETCONF, 7, 0);
	assert_string_equal(said(), " link7 mpls7-off");
	told(&km, RTM_NEWNETCONF, 7, 1);
	told(&km, RTM_NEWNETCONF, 7, 1);
	told(&km, RTM_NEWNETCONF, 7, 0);
	assert_string_equal(said(), " mpls7-on mpls7-off");
	/* The module is unloaded, and loaded again. */
	told(&km, RTM_DELNETCONF, 7, -1);
	told(&km, RTM_DELNETCONF, 7, -1);
	assert_string_equal(said(), " mpls7-gone");
	told(&km, RTM_NEWNETCONF, 7, 1);
	assert_string_equal(said(), " mpls7-on");
	link_is(&km, 7, true);
	assert_string_equal(said(), " mpls7-gone link7-gone");
	end(&km);
}

/* The kernel reports the settings of a new link before the link. */
static void
input_before_its_link_is_reported_after_it(void **state)
{
	struct kmon km = {.ops = ops};

	told(&km, RTM_NEWNETCONF, 8, 0);
	told(&km, RTM_NEWNETCONF, 8, 1);
	told(&km, RTM_NEWNETCONF, 9, 0);
	told(&km, RTM_DELNETCONF, 9, -1);
	assert_string_equal(said(), "");
	link_is(&km, 8, false);
	link_is(&km, 9, false);
	assert_string_equal(said(), " link8 mpls8-on link9");
	end(&km);
}

static void
messages_without_their_fields_are_ignored(void **state)
{
	struct kmon_change change;

	assert_false(parsed(&change, RTM_NEWNETCONF, AF_MPLS, 0, 1));
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_MPLS, 7, -1));
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_MPLS, NETCONFA_IFINDEX_ALL, 1));
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_MPLS, NETCONFA_IFINDEX_DEFAULT, 1));
	assert_false(parsed(&change, RTM_DELNETCONF, AF_MPLS, 0, -1));
	/*
	 * The families IPv4 and IPv6 have no such setting, and other families are not
	 * watched.
	 */
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_INET, 7, 1));
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_INET6, 7, 1));
	assert_false(parsed(&change, RTM_NEWNETCONF, AF_BRIDGE, 7, 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_of_a_link_is_followed),
		cmocka_unit_test(input_before_its_link_is_reported_after_it),
		cmocka_unit_test(messages_without_their_fields_are_ignored),
	};

	return cmocka_run_group_tests_name("tap-bridge: MPLS", tests, NULL, NULL);
}
