/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The comparison of the rules of policy routing in `fpmctl audit`. The test takes the place
 * of the kernel and of the daemon.
 *
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/rule_words.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl/audit_rules.c"

#define RULES_MAX 4

static struct kernel_rule of_kernel[2][RULES_MAX];
static unsigned int n_of_kernel[2];
static json_t *of_rib; /* rows of `show rules` */
static int kernel_rc, rib_rc;
static bool is_absent[2]; /* the kernel knows no rules of the family */
static unsigned int n_asked;
static struct rule_audit audit;

int
conn_ask(const char *path, const json_t *request,
	 bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	json_t *row;
	size_t i;

	assert_string_equal(row_str(request, "show"), "rules");
	n_asked++;
	json_array_foreach (of_rib, i, row)
		assert_true(on_row(row, "", ctx));
	return rib_rc;
}

int
kernel_rules(uint8_t family, void (*on_rule)(const struct kernel_rule *rule, void *ctx),
	     void *ctx)
{
	for (unsigned int i = 0; i < n_of_kernel[family == 6]; i++)
		on_rule(&of_kernel[family == 6][i], ctx);
	return kernel_rc == 0 && is_absent[family == 6] ? KERNEL_RULES_ABSENT : kernel_rc;
}

/* Add a rule to the kernel that looks up a table. */
static struct kernel_rule *
put_kernel(unsigned int family, uint32_t pref, uint32_t table)
{
	struct kernel_rule *r = &of_kernel[family == 6][n_of_kernel[family == 6]++];

	*r = (struct kernel_rule){.pref = pref,
				  .table = table,
				  .action = FR_ACT_TO_TBL,
				  .suppress_length = KERNEL_RULE_NONE,
				  .suppress_group = KERNEL_RULE_NONE,
				  .src.family = (uint8_t)family,
				  .dst.family = (uint8_t)family};
	return r;
}

/* Add a row of the daemon for such a rule. */
static json_t *
put_rib(unsigned int family, unsigned int pref, unsigned int table)
{
	json_t *row = json_pack(
		"{s:s, s:i, s:b, s:s, s:s, s:n, s:n, s:n, s:n, s:n, s:s, s:i, "
		"s:n, s:n, s:n, s:b, s:n}",
		"family", family == 6 ? "ipv6" : "ipv4", "pref", pref, "not", 0, "from",
		"all", "to", "all", "iif", "tos", "ip_protocol", "sport", "dport", "action",
		"lookup", "table", table, "target", "suppress_prefixlength",
		"suppress_ifgroup", "obeyed", 1, "lacks");

	json_array_append_new(of_rib, row);
	return row;
}

static int
setup(void **state)
{
	n_of_kernel[0] = n_of_kernel[1] = n_asked = 0;
	kernel_rc = rib_rc = 0;
	is_absent[0] = is_absent[1] = false;
	of_rib = json_array();
	return 0;
}

static int
teardown(void **state)
{
	json_decref(of_rib);
	audit_rules_free(&audit);
	return 0;
}

/* Compare the rules. Return "RULE: KERNEL | RIB" for the first difference, or "equal". */
static const char *
compared(void)
{
	static char text[512];
	const json_t *row;

	assert_int_equal(audit_rules("", &audit), CTL_OK);
	assert_int_equal(audit.n_found, json_array_size(audit.differences));
	if (audit.n_found == 0)
		return "equal";
	row = json_array_get(audit.differences, 0);
	snprintf(text, sizeof(text), "%s: %s | %s", row_str(row, "prefix"),
		 row_str(row, "kernel"), row_str(row, "rib"));
	return text;
}

static void
equal_rules_are_read_once(void **state)
{
	put_kernel(4, 0, 255);
	put_kernel(4, 32766, 254);
	put_kernel(6, 0, 255);
	put_rib(4, 0, 255);
	put_rib(4, 32766, 254);
	put_rib(6, 0, 255);

	assert_string_equal(compared(), "equal");
	assert_int_equal(n_asked, 1);
	assert_int_equal(audit.n_kernel, 3);
	assert_int_equal(audit.n_rib, 3);
}

static void
a_rule_of_one_side_differs_after_three_rounds(void **state)
{
	put_kernel(4, 0, 255);
	put_kernel(4, 100, 7);
	put_rib(4, 0, 255);

	assert_string_equal(compared(), "ipv4 rule: 100: from all lookup 7 | ");
	assert_int_equal(n_asked, ROUNDS);
	put_rib(4, 100, 8);
	audit_rules_free(&audit);
	assert_string_equal(compared(), "ipv4 rule: 100: from all lookup 7 | ");
	assert_int_equal(audit.n_found, 2);
	assert_string_equal(row_str(json_array_get(audit.differences, 1), "rib"),
			    "100: from all lookup 8");
}

static void
the_order_of_equal_numbers_counts(void **state)
{
	put_kernel(6, 100, 7);
	put_kernel(6, 100, 8);
	put_rib(6, 100, 8);
	put_rib(6, 100, 7);

	assert_string_equal(compared(), "ipv6 rule: 100: from all lookup 7 | "
					"100: from all lookup 8");
	assert_int_equal(audit.n_found, 1);
}

static void
each_part_of_a_rule_counts(void **state)
{
	struct kernel_rule *r = put_kernel(4, 100, 7);

	r->invert = true;
	assert_int_equal(prefix_parse("192.0.2.0/24", &r->src, NULL), 0);
	assert_int_equal(prefix_parse("198.51.100.0/24", &r->dst, NULL), 0);
	strcpy(r->iif, "lan0");
	r->tos = 0x10;
	r->ip_protocol = 6;
	r->sport[0] = r->sport[1] = 179;
	r->dport[0] = 1024;
	r->dport[1] = 2048;
	r->suppress_length = 0;
	r->suppress_group = 3;
	assert_string_equal(
		compared(),
		"ipv4 rule: 100: not from 192.0.2.0/24 to 198.51.100.0/24 iif lan0 tos "
		"0x10 "
		"ipproto 6 sport 179 dport 1024-2048 lookup 7 suppress_prefixlength 0 "
		"suppress_ifgroup 3 | ");
}

static void
parts_without_effect_count_too(void **state)
{
	struct kernel_rule *r = put_kernel(6, 100, RT_TABLE_MAIN);

	strcpy(r->iif, "office");
	r->iif_detached = r->has_dscp = r->has_uid_range = r->has_flowlabel = r->tunnel =
		true;
	strcpy(r->oif, "wan0");
	r->dscp[0] = 40;
	r->dscp[1] = 0x38;
	r->tos = 160;
	r->fwmark[1] = 0xff;
	r->uid_range[1] = 9;
	r->sport[0] = r->sport[1] = 256;
	r->sport_mask = 0xff00;
	r->dport[0] = r->dport[1] = 80;
	r->dport_mask = 0xffff;
	r->flowlabel[0] = 5;
	r->flowlabel[1] = 0xfffff;
	r->tun_id = UINT64_MAX;
	r->realms = 3 << 16 | 4;
	r->protocol = 99;
	assert_string_equal(compared(),
			    "ipv6 rule: 100: from all iif office [detached] dscp 40/0x38 "
			    "oif wan0 fwmark 0x0/0xff uidrange 0-9 sport 256/0xff00 "
			    "dport 80 flowlabel 0x5 tun_id 18446744073709551615 lookup "
			    "main realms 3/4 proto 99 with tun_id | ");
}

/*
 * The daemon also shows the interface that it found by an alternative name. A rule of the
 * kernel does not have this interface.
 */
static void
an_interface_with_an_alternative_name_is_not_compared(void **state)
{
	json_t *row = put_rib(4, 100, 7);

	strcpy(put_kernel(4, 100, 7)->iif, "office");
	json_object_set_new(row, "iif", json_string("office"));
	json_object_set_new(row, "iif_interface", json_string("lan0"));
	assert_string_equal(compared(), "equal");
	audit_rules_free(&audit);
	json_object_set_new(row, "lacks", json_string("iif"));
	assert_string_equal(compared(), "equal");
	audit_rules_free(&audit);
	json_object_set_new(row, "iif_detached", json_true());
	assert_string_equal(compared(), "ipv4 rule: 100: from all iif office lookup 7 | ");
}

static void
actions_are_told_apart(void **state)
{
	static const struct {
		uint8_t action;
		bool l3mdev;
		const char *text;
	} c[] = {
		{FR_ACT_TO_TBL, true, "ipv4 rule: 100: from all l3mdev | "},
		{FR_ACT_GOTO, false, "ipv4 rule: 100: from all goto 200 | "},
		{FR_ACT_NOP, false, "ipv4 rule: 100: from all nop | "},
		{FR_ACT_BLACKHOLE, false, "ipv4 rule: 100: from all blackhole | "},
		{FR_ACT_UNREACHABLE, false, "ipv4 rule: 100: from all unreachable | "},
		{FR_ACT_PROHIBIT, false, "ipv4 rule: 100: from all prohibit | "},
		{77, false, "ipv4 rule: 100: from all unknown with unknown | "},
	};

	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct kernel_rule *r = put_kernel(4, 100, 0);

		r->action = c[i].action;
		r->l3mdev = c[i].l3mdev;
		r->target = 200;
		assert_string_equal(compared(), c[i].text);
		audit_rules_free(&audit);
		n_of_kernel[0] = 0;
	}
	audit.differences = NULL;
}

/* The daemon names only the first part that it lacks, so only this part is compared. */
static void
selectors_of_no_received_packet_count(void **state)
{
	struct kernel_rule *r = put_kernel(4, 100, 7);
	json_t *row = put_rib(4, 100, 7);

	r->mark = r->unknown = true;
	json_object_set_new(row, "lacks", json_string("fwmark"));
	assert_string_equal(compared(), "equal");
	audit_rules_free(&audit);
	r->mark = false;
	assert_string_equal(compared(),
			    "ipv4 rule: 100: from all lookup 7 with unknown | ");
	audit_rules_free(&audit);
	r->unknown = false;
	/* The daemon has no FIB for the table: the rule is the same. */
	json_object_set_new(row, "lacks", json_string("lookup"));
	assert_string_equal(compared(), "equal");
}

static void
a_family_without_rules_in_the_kernel_is_not_compared(void **state)
{
	put_kernel(4, 0, 255);
	put_rib(4, 0, 255);
	put_rib(6, 0, 255);
	put_rib(6, 32766, 254);
	is_absent[1] = true;

	assert_string_equal(compared(), "equal");
}

/* Without any rule Linux forwards no IPv4 packet. */
static void
a_family_whose_rules_were_all_deleted_is_compared(void **state)
{
	put_rib(4, 0, 255);
	put_rib(4, 32766, 254);

	assert_string_equal(compared(), "ipv4 rule:  | 0: from all lookup local");
	assert_int_equal(audit.n_found, 2);
}

/* Linux obeys standard rules of IPv6 that were deleted, and so does the daemon. */
static void
deleted_standard_rules_of_ipv6_are_no_difference(void **state)
{
	put_rib(6, 0, 255);
	put_rib(6, 32766, 254);
	assert_string_equal(compared(), "equal");
	audit_rules_free(&audit);
	put_kernel(6, 32766, 254);
	assert_string_equal(compared(), "equal");
	audit_rules_free(&audit);
	put_rib(6, 32767, 253);
	assert_string_equal(compared(), "ipv6 rule:  | 0: from all lookup local");
	assert_int_equal(audit.n_found, 2);
}

static void
a_side_that_does_not_answer_ends_the_audit(void **state)
{
	kernel_rc = -1;
	assert_int_equal(audit_rules("", &audit), CTL_NO_DAEMON);
	audit_rules_free(&audit);
	kernel_rc = 0;
	rib_rc = CTL_NO_DAEMON;
	assert_int_equal(audit_rules("", &audit), CTL_NO_DAEMON);
}

#define RULES_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULES_TEST(equal_rules_are_read_once),
		RULES_TEST(a_rule_of_one_side_differs_after_three_rounds),
		RULES_TEST(the_order_of_equal_numbers_counts),
		RULES_TEST(each_part_of_a_rule_counts),
		RULES_TEST(parts_without_effect_count_too),
		RULES_TEST(an_interface_with_an_alternative_name_is_not_compared),
		RULES_TEST(actions_are_told_apart),
		RULES_TEST(selectors_of_no_received_packet_count),
		RULES_TEST(a_family_without_rules_in_the_kernel_is_not_compared),
		RULES_TEST(a_family_whose_rules_were_all_deleted_is_compared),
		RULES_TEST(deleted_standard_rules_of_ipv6_are_no_difference),
		RULES_TEST(a_side_that_does_not_answer_ends_the_audit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
