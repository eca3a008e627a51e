/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that `fpmctl audit` counts as tables of rules. The table of a rule that
 * matches no received packet does not count. The test takes the place of the kernel:
 * kernel_dump() shows its messages.
 *
 * link: fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl/kernel_rules.c"

static uint64_t room[256];
static struct nlmsghdr *h;
static struct fib_rule_hdr *rule;
static int dump_rc; /* result of kernel_dump() if the reader takes all messages */
static unsigned int n_answers;
static uint32_t told;
static unsigned int n_told;

int
kernel_dump(uint16_t type, uint8_t af, unsigned int header_bytes,
	    const struct dump_reader *to)
{
	int rc = 0;

	assert_int_equal(type, RTM_GETRULE);
	assert_int_equal(af, AF_INET6);
	assert_int_equal(header_bytes, sizeof(struct fib_rule_hdr));
	for (unsigned int i = 0; i < n_answers && rc == 0; i++) {
		void *copy = malloc(h->nlmsg_len);

		memcpy(copy, h, h->nlmsg_len);
		to->on_begin(to->ctx);
		rc = to->on_message(copy, to->ctx);
		free(copy);
	}
	return rc < 0 ? rc : dump_rc;
}

static void
note_table(uint8_t family, uint32_t table, void *ctx)
{
	assert_int_equal(family, 6);
	told = table;
	n_told++;
}

/* Begin a rule that looks up table 100. */
static void
begin(void)
{
	h = mnl_nlmsg_put_header(room);
	h->nlmsg_type = RTM_NEWRULE;
	rule = mnl_nlmsg_put_extra_header(h, sizeof(*rule));
	*rule = (struct fib_rule_hdr){
		.family = AF_INET6, .table = 100, .action = FR_ACT_TO_TBL};
}

/* Return the table of the rule; 0: none. */
static uint32_t
table_of_rule(void)
{
	told = n_told = 0;
	assert_int_equal(kernel_rule_tables(6, note_table, NULL), 0);
	assert_in_range(n_told, 0, 1);
	return told;
}

static void
assert_bad(void)
{
	told = n_told = 0;
	assert_int_equal(kernel_rule_tables(6, note_table, NULL), -1);
	assert_int_equal(n_told, 0);
}

static int
setup(void **state)
{
	dump_rc = 0;
	n_answers = 1;
	begin();
	return 0;
}

static void
the_attribute_of_a_large_table_counts(void **state)
{
	assert_int_equal(table_of_rule(), 100);
	mnl_attr_put_u32(h, FRA_TABLE, 70000);
	assert_int_equal(table_of_rule(), 70000);
}

static void
an_interrupted_answer_is_discarded(void **state)
{
	n_answers = 3;
	assert_int_equal(table_of_rule(), 100);
	assert_int_equal(n_told, 1);
}

static void
rules_without_a_lookup_have_no_table(void **state)
{
	static const uint8_t action[] = {FR_ACT_GOTO, FR_ACT_NOP, FR_ACT_BLACKHOLE,
					 FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT};

	for (size_t i = 0; i < sizeof(action); i++) {
		rule->action = action[i];
		assert_int_equal(table_of_rule(), 0);
	}
	begin();
	rule->table = RT_TABLE_UNSPEC; /* l3mdev */
	mnl_attr_put_u8(h, FRA_L3MDEV, 1);
	assert_int_equal(table_of_rule(), 0);
}

/* Assert that the rule has a table if `any`, and that the inverse rule has a table. */
static void
assert_selects(bool any)
{
	assert_int_equal(table_of_rule(), any ? 100 : 0);
	rule->flags = FIB_RULE_INVERT;
	assert_int_equal(table_of_rule(), 100);
	begin();
}

static void
selectors_that_received_packets_match(void **state)
{
	static const uint16_t ports[2] = {1000, 2000};
	static const struct fib_rule_uid_range all = {0, 5}, others = {1, 5};

	mnl_attr_put_strz(h, FRA_IIFNAME, "lan0");
	mnl_attr_put_u8(h, FRA_IP_PROTO, 17);
	mnl_attr_put(h, FRA_SPORT_RANGE, sizeof(ports), ports);
	mnl_attr_put_u8(h, RULE_DSCP, 5);
	mnl_attr_put_u16(h, RULE_SPORT_MASK, 0xff);
	mnl_attr_put_u32(h, FRA_FLOW, 7);
	mnl_attr_put_u64(h, FRA_TUN_ID, 0);
	assert_selects(true);
	mnl_attr_put_u32(h, FRA_FWMARK, 7);
	assert_selects(false);
	mnl_attr_put_u32(h, FRA_FWMASK, 0xff); /* fwmark 0/0xff */
	assert_selects(true);
	mnl_attr_put_u32(h, FRA_FWMARK, 7);
	mnl_attr_put_u32(h, FRA_FWMASK, 8);
	assert_selects(true);
	mnl_attr_put(h, FRA_UID_RANGE, sizeof(all), &all);
	assert_selects(true);
	mnl_attr_put(h, FRA_UID_RANGE, sizeof(others), &others);
	assert_selects(false);
	mnl_attr_put_u64(h, FRA_TUN_ID, 7);
	assert_selects(false);
	mnl_attr_put_strz(h, FRA_OIFNAME, "wan0");
	assert_selects(false);
	mnl_attr_put_u32(h, 26, 7); /* FRA_FLOWLABEL, Linux 6.14 */
	assert_selects(true);
	mnl_attr_put_u32(h, 60, 7); /* unknown */
	assert_selects(false);
}

static void
bad_messages_are_errors(void **state)
{
	static const uint16_t type[] = {FRA_TABLE, FRA_FWMARK, FRA_FWMASK, FRA_UID_RANGE,
					FRA_TUN_ID};

	for (size_t i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
		begin();
		mnl_attr_put_u16(h, type[i], 1);
		assert_bad();
	}
	begin();
	h->nlmsg_len--;
	assert_bad();
	begin();
	mnl_attr_put_u32(h, FRA_TABLE, 100);
	((struct nlattr *)(rule + 1))->nla_len = 3;
	assert_bad();
	((struct nlattr *)(rule + 1))->nla_len = 9;
	assert_bad();
}

static void
a_kernel_without_rules_has_no_table(void **state)
{
	n_answers = 0;
	dump_rc = -EOPNOTSUPP;
	assert_int_equal(table_of_rule(), 0);
	dump_rc = -EAFNOSUPPORT;
	assert_int_equal(table_of_rule(), 0);
	dump_rc = -ENODATA;
	n_answers = 1;
	assert_bad();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_attribute_of_a_large_table_counts, setup),
		cmocka_unit_test_setup(an_interrupted_answer_is_discarded, setup),
		cmocka_unit_test_setup(rules_without_a_lookup_have_no_table, setup),
		cmocka_unit_test_setup(selectors_that_received_packets_match, setup),
		cmocka_unit_test_setup(bad_messages_are_errors, setup),
		cmocka_unit_test_setup(a_kernel_without_rules_has_no_table, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
