/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parsers of fpmctl doctor: configuration spaces of PCI devices, lists of CPUs, limits,
 * command lines, zebra's summary. Each also gets broken input.
 *
 * link: fpm-dataplane/ctl/doctor/pci.c fpm-dataplane/ctl/doctor/parse.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/parse.h"
#include "ctl/doctor/pci.h"

/* --- PCI ------------------------------------------------------------------------------ */

#define CAP 0xa0 /* offset of the PCI Express capability of a 40GbE card */

/*
 * Make a configuration space with three capabilities: power management, MSI-X, PCI Express.
 * The device is capable of x8 at 8 GT/s and runs with x4 at 5 GT/s.
 */
static void
space_make(uint8_t c[PCI_CONFIG_BYTES])
{
	static const uint8_t express[0x14] = {
		0x10, 0x00, 0x02, 0x00, /* endpoint, version 2 */
		0xe3, 0x8c, 0x00, 0x10, /* Device Capabilities: Extended Tag */
		0x10, 0x21, 0x00, 0x00, /* Device Control: tag on, reads of 512 octets */
		0x83, 0x04, 0x40, 0x00, /* Link Capabilities: 8 GT/s, x8 */
		0x00, 0x00, 0x42, 0x10, /* Link Status: 5 GT/s, x4 */
	};

	memset(c, 0, PCI_CONFIG_BYTES);
	c[0] = 0x86;
	c[1] = 0x80;
	c[0x06] = 0x10;
	c[0x34] = 0x40;
	c[0x40] = 0x01;
	c[0x41] = 0x70;
	c[0x70] = 0x11;
	c[0x71] = CAP;
	memcpy(c + CAP, express, sizeof(express));
}

static void
a_card_tells_link_tag_and_read_size(void **state)
{
	uint8_t c[PCI_CONFIG_BYTES];
	struct pci_express x;

	space_make(c);

	assert_int_equal(pci_express_parse(c, sizeof(c), &x), 0);
	assert_int_equal(x.speed, 2);
	assert_int_equal(x.speed_max, 3);
	assert_int_equal(x.width, 4);
	assert_int_equal(x.width_max, 8);
	assert_true(x.tag_able && x.tag_on);
	assert_int_equal(x.read_bytes, 512);
	c[CAP + 9] = 0x50;
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), 0);
	assert_false(x.tag_on);
	assert_int_equal(x.read_bytes, 4096);
}

static void
values_that_only_root_can_read_are_not_guessed(void **state)
{
	uint8_t c[PCI_CONFIG_BYTES];
	struct pci_express x;

	space_make(c);

	assert_int_equal(pci_express_parse(c, 0, &x), -ENODATA);
	assert_int_equal(pci_express_parse(c, 63, &x), -ENODATA);
	assert_int_equal(pci_express_parse(c, 64, &x), -ENODATA);
	assert_int_equal(pci_express_parse(c, CAP + 0x13, &x), -ENODATA);
	assert_int_equal(pci_express_parse(c, CAP + 0x14, &x), 0);
}

static void
a_device_without_the_capability_has_none(void **state)
{
	uint8_t c[PCI_CONFIG_BYTES];
	struct pci_express x;

	space_make(c);
	c[0x71] = 0;
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -ENOENT);
	space_make(c);
	c[0x06] = 0;
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -ENOENT);
}

static void
a_broken_list_ends(void **state)
{
	uint8_t c[PCI_CONFIG_BYTES];
	struct pci_express x;

	space_make(c);
	c[0x71] = 0x40; /* a loop */
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -EPROTO);
	c[0x71] = 0x10; /* points into the header */
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -EPROTO);
	space_make(c);
	c[0x71] = 0xfc; /* reaches beyond the end */
	c[0xfc] = 0x10;
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -EPROTO);
	memset(c, 0xff, sizeof(c));
	assert_int_equal(pci_express_parse(c, sizeof(c), &x), -ENODEV);
}

static void
no_octets_lead_it_out_of_its_buffer(void **state)
{
	/*
	 * An allocation of the exact size: the sanitizer sees a read of one octet too many.
	 */
	for (unsigned int i = 0; i < 20000; i++) {
		size_t len = (size_t)rand() % (PCI_CONFIG_BYTES + 1);
		uint8_t *c = malloc(len + (len == 0));
		struct pci_express x = {0};

		for (size_t k = 0; k < len; k++)
			c[k] = (uint8_t)rand();
		if (len > 6)
			c[6] |= 0x10;
		if (pci_express_parse(c, len, &x) == 0)
			assert_in_range(x.read_bytes, 128, 16384);
		free(c);
	}
}

static void
a_link_carries_what_line_coding_leaves(void **state)
{
	assert_int_equal((int)pci_gbit_per_s(2, 4), 16);
	assert_int_equal((int)pci_gbit_per_s(3, 8), 63);
	assert_int_equal((int)pci_gbit_per_s(0, 8), 0);
	assert_int_equal((int)pci_gbit_per_s(15, 8), 0);
}

/* --- texts ---------------------------------------------------------------------------- */

static void
lists_of_cpus_come_and_go(void **state)
{
	static const char *const same[] = {"", "0", "0-3", "1,3,5-7,1000-1023"};
	static const char *const bad[] = {"a",    "1-",  "-1",   "3-1",
					  "1,,2", "1 2", "1024", ","};
	char text[256];
	cpu_set_t cpus;

	for (unsigned int i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(cpulist_parse(same[i], &cpus), 0);
		assert_string_equal(cpulist_text(&cpus, text, sizeof(text)), same[i]);
	}
	assert_int_equal(cpulist_parse("(null)", &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 0);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (cpulist_parse(bad[i], &cpus) != -EINVAL)
			fail_msg("'%s' is no list of CPUs", bad[i]);
		assert_int_equal(CPU_COUNT(&cpus), 0);
	}
	assert_int_equal(cpulist_parse("10,12,14", &cpus), 0);
	assert_string_equal(cpulist_text(&cpus, text, 6), "10,12");
}

static void
a_word_is_a_whole_word(void **state)
{
	assert_true(has_word("flags\t: tsc constant_tsc", "constant_tsc"));
	assert_true(has_word("ip", "ip"));
	assert_false(has_word("sctp l2", "tcp"));
	assert_false(has_word("tcpx xtcp", "tcp"));
	assert_false(has_word("tcp", ""));
}

static void
limits_are_read_by_row(void **state)
{
	static const char text[] = "Limit                     Soft Limit           Hard "
				   "Limit           Units\n"
				   "Max open files            1024                 524288  "
				   "             files\n"
				   "Max locked memory         unlimited            "
				   "unlimited            bytes\n"
				   "Max nothing               \n";
	unsigned long long soft;

	assert_int_equal(limit_parse(text, "Max open files", &soft), 0);
	assert_int_equal(soft, 1024);
	assert_int_equal(limit_parse(text, "Max locked memory", &soft), 0);
	assert_true(soft == UINT64_MAX);
	assert_int_equal(limit_parse(text, "Max nothing", &soft), -ENOENT);
	assert_int_equal(limit_parse(text, "Max cpu time", &soft), -ENOENT);
	assert_int_equal(limit_parse("", "Max open files", &soft), -ENOENT);
}

static void
status_has_numbers(void **state)
{
	static const char text[] = "VmRSS:\t  12 kB\nCapEff:\t000001ffffffffff\nName:\tx\n";
	unsigned long long value;

	assert_int_equal(status_parse(text, "VmRSS", &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(status_parse_hex(text, "CapEff", &value), 0);
	assert_true(value == 0x1ffffffffffull);
	assert_int_equal(status_parse(text, "Name", &value), -ENOENT);
	assert_int_equal(status_parse(text, "Vm", &value), -ENOENT);
}

#define LINE(text) text, sizeof(text)

static void
zebra_is_known_by_its_words(void **state)
{
	assert_true(cmdline_is(LINE("/usr/lib/frr/zebra\0-d"), "zebra"));
	assert_true(cmdline_is(LINE("zebra"), "zebra"));
	assert_false(cmdline_is(LINE("vi\0zebra"), "zebra"));
	assert_false(cmdline_is(LINE("/usr/bin/zebra2"), "zebra"));
	assert_false(cmdline_is("", 0, "zebra"));
	assert_true(cmdline_loads(LINE("z\0-M\0dplane_fpm_nl"), "dplane_fpm_nl"));
	assert_true(
		cmdline_loads(LINE("z\0-M\0snmp\0-M\0dplane_fpm_nl:a"), "dplane_fpm_nl"));
	assert_true(cmdline_loads(LINE("z\0-Mdplane_fpm_nl"), "dplane_fpm_nl"));
	assert_true(cmdline_loads(LINE("z\0--module=dplane_fpm_nl"), "dplane_fpm_nl"));
	assert_true(cmdline_loads(LINE("z\0--module\0dplane_fpm_nl"), "dplane_fpm_nl"));
	assert_false(cmdline_loads(LINE("z\0-M\0fpm"), "dplane_fpm_nl"));
	assert_false(cmdline_loads(LINE("z\0dplane_fpm_nl"), "dplane_fpm_nl"));
	assert_false(cmdline_loads(LINE("z\0-M\0dplane_fpm_nl2"), "dplane_fpm_nl"));
	assert_false(cmdline_loads(LINE("z\0-M"), "dplane_fpm_nl"));
	/* The command line is truncated. */
	assert_false(cmdline_loads("z\0-Mdplane_fpm_nl", 17, "dplane_fpm_nl"));
	assert_true(cmdline_has(LINE("z\0-d\0--x=y"), "--x=y"));
	assert_false(cmdline_has(LINE("z\0-d\0--x=yz\0x=y"), "--x=y"));
	assert_false(cmdline_has("z\0--x=y", 7, "--x=y"));
}

static void
an_option_has_the_value_behind_it(void **state)
{
	static const char option[] = "--dplaneaddr";

	assert_string_equal(cmdline_value(LINE("b\0-d\0--dplaneaddr\0ipv4:1"), option),
			    "ipv4:1");
	assert_string_equal(cmdline_value(LINE("b\0--dplaneaddr=ipv4:2"), option),
			    "ipv4:2");
	assert_null(cmdline_value(LINE("b\0--dplaneaddr"), option));
	assert_null(cmdline_value(LINE("b\0--dplaneaddress=x\0-d"), option));
	assert_null(cmdline_value("b\0--dplaneaddr=x", 16, option));
}

static void
bfdd_listens(const char *value, const char *where)
{
	char at[BFDD_AT_STRLEN];

	assert_int_equal(bfdd_option_parse(value, at), BFDD_LISTENS);
	assert_string_equal(at, where);
}

static void
bfdd_tells_where_it_listens(void **state)
{
	static const char *const bad[] = {"",
					  "ipv4",
					  "127.0.0.1:1",
					  "ipv4:127.0.0.1:",
					  "ipv4:1.2.3",
					  "ipv6:::1",
					  "ipv6:[::1",
					  "ipv6:[::1]50700",
					  "ipv4:[::1]",
					  "ipv4:1.2.3.4:65536",
					  "ipv4:1.2.3.4:x",
					  "tcp:1.2.3.4"};
	char at[BFDD_AT_STRLEN];

	bfdd_listens("ipv4:127.0.0.1", "127.0.0.1:50700");
	bfdd_listens("ipv4:127.0.0.1:1", "127.0.0.1:1");
	bfdd_listens("ipv6:[0:0::1]", "[::1]:50700");
	bfdd_listens("ipv6:[2001:DB8::1]:65535", "[2001:db8::1]:65535");
	assert_int_equal(bfdd_option_parse("unix:/run/x", at), BFDD_LISTENS_UNIX);
	assert_int_equal(bfdd_option_parse("ipv4c:127.0.0.1:1", at), BFDD_CONNECTS);
	assert_string_equal(at, "");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bfdd_option_parse(bad[i], at) != BFDD_INVALID || at[0] != '\0')
			fail_msg("%s is no address of bfdd", bad[i]);
	assert_true(bfdd_hears_at("127.0.0.1:1", "127.0.0.1:1"));
	assert_true(bfdd_hears_at("0.0.0.0:1", "192.0.2.1:1"));
	assert_true(bfdd_hears_at("[::]:1", "[::1]:1"));
	assert_false(bfdd_hears_at("0.0.0.0:1", "192.0.2.1:2"));
	assert_false(bfdd_hears_at("0.0.0.0:1", "[::1]:1"));
	assert_false(bfdd_hears_at("127.0.0.1:1", "127.0.0.2:1"));
}

static int
sum(const char *text, long long *least, long long *most)
{
	json_t *root = json_loads(text, 0, NULL);
	int rc = summary_parse(root, least, most);

	json_decref(root);
	return rc;
}

static void
the_kernels_own_routes_are_not_counted(void **state)
{
	long long least, most;

	assert_int_equal(sum("{\"routes\": [{\"fib\": 4, \"type\": \"connected\"},"
			     "{\"fib\": 2, \"type\": \"local\"},"
			     "{\"fib\": 1, \"type\": \"kernel\"},"
			     "{\"fib\": 100, \"rib\": 120, \"type\": \"ebgp\"},"
			     "{\"fib\": 7, \"type\": \"static\"}]}",
			     &least, &most),
			 0);
	assert_int_equal(least, 107);
	assert_int_equal(most, 108);
	assert_int_equal(sum("{\"routes\": []}", &least, &most), 0);
	assert_int_equal(most, 0);
}

static void
another_summary_is_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"routes\": 3}",
		"x",
		"{\"routes\": [3]}",
		"{\"routes\": [{\"fib\": \"1\", \"type\": \"static\"}]}",
		"{\"routes\": [{\"fib\": 1}]}"};
	long long least, most;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (sum(bad[i], &least, &most) != -EPROTO)
			fail_msg("%s is no summary", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_tells_link_tag_and_read_size),
		cmocka_unit_test(values_that_only_root_can_read_are_not_guessed),
		cmocka_unit_test(a_device_without_the_capability_has_none),
		cmocka_unit_test(a_broken_list_ends),
		cmocka_unit_test(no_octets_lead_it_out_of_its_buffer),
		cmocka_unit_test(a_link_carries_what_line_coding_leaves),
		cmocka_unit_test(lists_of_cpus_come_and_go),
		cmocka_unit_test(a_word_is_a_whole_word),
		cmocka_unit_test(limits_are_read_by_row),
		cmocka_unit_test(status_has_numbers),
		cmocka_unit_test(zebra_is_known_by_its_words),
		cmocka_unit_test(an_option_has_the_value_behind_it),
		cmocka_unit_test(bfdd_tells_where_it_listens),
		cmocka_unit_test(the_kernels_own_routes_are_not_counted),
		cmocka_unit_test(another_summary_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
