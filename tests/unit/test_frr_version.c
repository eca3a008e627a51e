/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FRR's version and its faults: the parser, and the check frr-version of fpmctl doctor. A
 * script takes the place of vtysh.
 *
 * link: fpm-dataplane/ctl/hop_push.c
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/frr_version.c fpm-dataplane/ctl/doctor/frr_faults.c
 * link: fpm-dataplane/ctl/doctor/frr.c fpm-dataplane/ctl/doctor/exam.c
 * link: fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/zebra.c fpm-dataplane/ctl/zebra_find.c fpm-dataplane/ctl/run.c
 * link: fpm-dataplane/ctl/hops_text.c fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/conn.c fpm-dataplane/ctl/cli.c
 * link: fpm-dataplane/base/edit_distance.c fpm-dataplane/base/prefix.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/doctor/exam.h"
#include "ctl/frr_version.h"
#include "ctl/json_row.h"

/* --- the parser ----------------------------------------------------------------------- */

static void
versions_are_parsed(void **state)
{
	static const struct {
		const char *text;
		unsigned int major, minor, patch;
	} good[] = {
		{"8.4.4", 8, 4, 4},
		{"10.2.1", 10, 2, 1},
		{"10.3", 10, 3, 0},
		{"10.3.1", 10, 3, 1},
		{"10.5-dev", 10, 5, 0},
		{"10.3-3+deb13u1", 10, 3, 0},
		{"10.3.2-0~deb12u1", 10, 3, 2},
		{"10.4.1_git", 10, 4, 1},
	};
	static const char *const bad[] = {"",        "10",      ".",       "10.",
					  "v10.3",   "10.x",    "10.3.",   "10.3.x",
					  "garbage", "-1.2",    "10.3 ",   "10..3",
					  "99999.1", "1.99999", "10.8dev", "10.3.1.2"};
	struct frr_version v;

	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(frr_version_parse(good[i].text, &v), 0);
		assert_int_equal(v.major, good[i].major);
		assert_int_equal(v.minor, good[i].minor);
		assert_int_equal(v.patch, good[i].patch);
	}
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (frr_version_parse(bad[i], &v) != -EINVAL || v.major != 0)
			fail_msg("'%s' is no version", bad[i]);
}

/*
 * Return the letters of the faults of a version: s(tatic), k(ernel), e(vpn), o(ther SIDs),
 * d(enied routes).
 */
static const char *
faults_of(const char *text)
{
	static char letters[6];
	struct frr_version v;

	assert_int_equal(frr_version_parse(text, &v), 0);
	snprintf(letters, sizeof(letters), "%s%s%s%s%s",
		 frr_keeps_dead_statics(&v) ? "s" : "",
		 frr_hides_kernel_routes(&v) ? "k" : "", frr_crashes_by_evpn(&v) ? "e" : "",
		 frr_announces_other_sids(&v) ? "o" : "",
		 frr_replays_denied_routes(&v) ? "d" : "");
	return letters;
}

static void
faults_have_first_and_last_versions(void **state)
{
	static const struct {
		const char *version, *letters;
	} known[] = {
		{"8.4.4", "eod"}, {"8.5", "e"},      {"9.1", "e"},    {"10.1.9", "e"},
		{"10.2", ""},     {"10.2.1", ""},    {"10.3", "sk"},  {"10.3.1", "sk"},
		{"10.3.2", "sk"}, {"10.3.3", "k"},   {"10.4", "sk"},  {"10.4.1", "sk"},
		{"10.4.2", "k"},  {"10.5-dev", "k"}, {"10.7.1", "k"}, {"11.0", "k"},
	};

	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_string_equal(faults_of(known[i].version), known[i].letters);
}

static void
next_hops_that_the_kernel_does_not_have_are_announced_since_10(void **state)
{
	struct frr_version v;

	assert_int_equal(frr_version_parse("9.1.3", &v), 0);
	assert_true(frr_needs_kernel_next_hops(&v));
	assert_int_equal(frr_version_parse("10.0", &v), 0);
	assert_false(frr_needs_kernel_next_hops(&v));
}

static void
sessions_of_bfd_are_lost_at_connect_before_10_8(void **state)
{
	struct frr_version v;

	assert_int_equal(frr_version_parse("10.7.9", &v), 0);
	assert_true(frr_gives_bfd_in_parts(&v));
	assert_int_equal(frr_version_parse("10.8", &v), 0);
	assert_false(frr_gives_bfd_in_parts(&v));
}

static void
the_row_of_zebra_has_the_version(void **state)
{
	char version[FRR_VERSION_STRLEN] = "none";

	assert_false(frr_module_line("Module information for zebra:", version));
	assert_false(frr_module_line("Module Name  Version   Description", version));
	assert_false(frr_module_line("libfrr       8.4.4     libfrr core module", version));
	assert_false(frr_module_line("zebra", version));
	assert_false(frr_module_line("zebra hangs", version));
	assert_false(frr_module_line("", version));
	assert_string_equal(version, "none");
	assert_true(frr_module_line("zebra        10.3-3+deb13u1   zebra daemon", version));
	assert_string_equal(version, "10.3-3+deb13u1");
}

static void
a_static_route_lacks_an_interface_behind_its_gateway(void **state)
{
	static const struct {
		/* `rest`: the text behind the gateway; NULL: the line is no such route */
		const char *line, *rest;
	} lines[] = {
		{"ip route 10.9.0.0/16 192.0.2.1", ""},
		{" ip route 10.9.0.0/16 192.0.2.1 200", " 200"},
		{"ip route 0.0.0.0/0 192.0.2.1 tag 5 200", " tag 5 200"},
		{"ip route 0.0.0.0/0 192.0.2.1 200 nexthop-vrf red",
		 " 200 nexthop-vrf red"},
		{"ip route 0.0.0.0/0 192.0.2.1 nexthop-vrf red", " nexthop-vrf red"},
		{"ipv6 route ::/0 2001:db8:1::2", ""},
		{"ipv6 route ::/0 from 2001:db8::/32 2001:db8:1::2 label 17", " label 17"},
		{"ip route 10.9.0.0/16 192.0.2.1 wan0", NULL},
		{"ip route 10.9.0.0/16 192.0.2.1 wan0 onlink 200", NULL},
		{"ip route 10.9.0.0/16 192.0.2.1 tagged", NULL},
		{"ip route 10.9.0.0/16 192.0.2.1 100.eth1", NULL},
		{"ipv6 route ::/0 2001:db8:1::2 wan0", NULL},
		{"ip route 10.9.0.0/16 wan0", NULL},
		{"ip route 10.9.0.0/16 Null0", NULL},
		{"ip route 10.9.0.0/16 blackhole", NULL},
		{"ip route 10.9.0.0/16 reject 200", NULL},
		{"ip route 10.9.0.0/16", NULL},
		{"ip route", NULL},
		{"ipv6 route ::/0 from", NULL},
		{"ipv6 route ::/0 from 2001:db8::/32", NULL},
		{"ip router isis lab", NULL},
		{"ip mroute 10.9.0.0/16 192.0.2.1", NULL},
		{"no ip route 10.9.0.0/16 192.0.2.1", NULL},
		{"", NULL},
	};

	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *gap = frr_static_gap(lines[i].line);

		if ((gap == NULL) != (lines[i].rest == NULL))
			fail_msg("'%s' is misread", lines[i].line);
		if (gap != NULL)
			assert_string_equal(gap, lines[i].rest);
	}
}

/* --- the check ------------------------------------------------------------------------ */

#define MODULES                                                                  \
	"Module information for zebra:\nModule Name  Version                   " \
	"Description\n"                                                          \
	"\nlibfrr       %s                     libfrr core module\n"             \
	"zebra        %s                     zebra daemon\npid: 11028"
#define CONFIG_NAMED "ip route 0.0.0.0/0 192.0.2.2 wan0\nip route 10.0.0.0/8 Null0"
#define CONFIG_BARE                                                                   \
	"frr version 10.3\nip route 0.0.0.0/0 192.0.2.2 wan0\n!\nvrf red\n vni 100\n" \
	" ip route 10.8.0.0/16 10.0.0.1 200\nexit-vrf\n!\nipv6 route ::/0 2001:db8::1"
#define VNIS                                                      \
	"VNI        Type VxLAN IF              # MACs   # ARPs\n" \
	"55         L3   vxlan55               0        0"
#define VNIS_L2                                                   \
	"VNI        Type VxLAN IF              # MACs   # ARPs\n" \
	"55         L2   vxlan55               0        0"

/* The answer to `show bgp segment-routing srv6`. */
#define SIDS(ipv4)                                                  \
	"locator_name: main\nlocator_chunks:\n- 2001:db8:f1::/48\n" \
	"functions:\n- sid: " ipv4 "\n  locator: main\nbgps:\n"     \
	"- name: default\n  vpn_policy[AFI_IP].tovpn_sid: none\n"   \
	"- name: red\n  vpn_policy[AFI_IP].tovpn_sid: " ipv4 "\n"

static struct {
	struct exam e;
	char script[32], vtysh[48];
	const char *sids;
} t;

static int
setup(void **state)
{
	t.e = (struct exam){.root = "/nonexistent", .in = "", .check = "x", .about = "y"};
	t.e.rows = json_array();
	t.sids = "";
	snprintf(t.script, sizeof(t.script), "/tmp/fdp-vtysh-XXXXXX");
	close(mkstemp(t.script));
	snprintf(t.vtysh, sizeof(t.vtysh), "sh %s", t.script);
	t.e.vtysh = t.vtysh;
	return 0;
}

static int
teardown(void **state)
{
	json_decref(t.e.rows);
	json_decref(t.e.version);
	return unlink(t.script);
}

/* Run the check with an FRR that gives these answers. Return the number of findings. */
static size_t
examine(const char *version, const char *routes_from, const char *config, const char *vnis)
{
	FILE *f = fopen(t.script, "w");

	assert_non_null(f);
	fputs("case $2 in\n'show modules') cat <<'END'\n", f);
	fprintf(f, MODULES, version, version);
	fprintf(f, "\nEND\n;;\n'show running-config') cat <<'END'\n%s\nEND\n;;\n", config);
	fprintf(f, "'show evpn vni') cat <<'END'\n%s\nEND\n;;\n", vnis);
	fprintf(f, "'show bgp segment-routing srv6') cat <<'END'\n%s\nEND\n;;\nesac\n",
		t.sids);
	fclose(f);
	json_decref(t.e.version);
	t.e.version =
		json_pack("{s:s, s:s}", "routes_from", routes_from, "config", "c.yaml");
	json_array_clear(t.e.rows);
	check_frr_version(&t.e);
	return json_array_size(t.e.rows);
}

/*
 * Assert that finding `i` has this status and subject, and that its text contains `word`.
 */
static const json_t *
finding_is(size_t i, const char *status, const char *subject, const char *word)
{
	const json_t *row = json_array_get(t.e.rows, i);

	assert_string_equal(row_str(row, "status"), status);
	assert_string_equal(row_str(row, "subject"), subject);
	if (strstr(row_str(row, "text"), word) == NULL)
		fail_msg("'%s' is not in '%s'", word, row_str(row, "text"));
	return row;
}

static const char *
fix_of(const json_t *row)
{
	return json_string_value(json_array_get(json_object_get(row, "fix"), 0));
}

static void
a_version_without_a_fault_that_matters_is_ok(void **state)
{
	assert_int_equal(examine("8.4.4", "both", CONFIG_BARE, ""), 1);
	finding_is(0, "ok", "", "FRR 8.4.4");
	assert_int_equal(examine("8.4.4", "fpm", CONFIG_BARE, VNIS_L2), 1);
	finding_is(0, "ok", "", "FRR 8.4.4");
	assert_int_equal(examine("10.2.1", "fpm", CONFIG_BARE, VNIS), 1);
	finding_is(0, "ok", "", "FRR 10.2.1");
	assert_int_equal(examine("10.3", "both", CONFIG_NAMED, VNIS), 1);
	finding_is(0, "ok", "", "FRR 10.3");
	assert_int_equal(examine("10.5-dev", "both", CONFIG_BARE, VNIS), 1);
	finding_is(0, "ok", "", "FRR 10.5-dev");
}

static void
a_static_route_without_interface_is_warned_of(void **state)
{
	const json_t *row;

	assert_int_equal(examine("10.3.1", "both", CONFIG_BARE, VNIS), 1);
	row = finding_is(0, "warn", "static-routes", "2 static routes");
	assert_non_null(strstr(row_str(row, "cost"), "FRR 10.3.1 keeps the route"));
	assert_string_equal(
		fix_of(row),
		"vtysh -c 'conf t' -c 'vrf red' -c 'no ip route 10.8.0.0/16 "
		"10.0.0.1 200' -c 'ip route 10.8.0.0/16 10.0.0.1 INTERFACE 200' "
		"-c end -c write");
	assert_int_equal(examine("10.4.1", "both", "ipv6 route ::/0 2001:db8::1", ""), 1);
	row = finding_is(0, "warn", "static-routes", "1 static route without");
	assert_string_equal(fix_of(row),
			    "vtysh -c 'conf t' -c 'no ipv6 route ::/0 2001:db8::1' "
			    "-c 'ipv6 route ::/0 2001:db8::1 INTERFACE' -c end -c write");
	assert_int_equal(examine("10.4.2", "both", CONFIG_BARE, VNIS), 1);
	finding_is(0, "ok", "", "FRR 10.4.2");
}

static void
routes_of_the_kernel_by_fpm_are_warned_of(void **state)
{
	const json_t *row;

	assert_int_equal(examine("10.3", "fpm", CONFIG_NAMED, ""), 1);
	row = finding_is(0, "warn", "kernel-routes", "FRR 10.3");
	assert_non_null(strstr(row_str(row, "cost"), "from: both"));
	assert_string_equal(fix_of(row), "fpmctl restart");
	assert_int_equal(examine("10.5-dev", "fpm", CONFIG_BARE, ""), 1);
	finding_is(0, "warn", "kernel-routes", "FRR 10.5-dev");
	assert_int_equal(examine("10.3", "fpm", CONFIG_BARE, ""), 2);
}

static void
a_vni_of_a_vrf_is_warned_of(void **state)
{
	assert_int_equal(examine("8.4.4", "both", CONFIG_BARE, VNIS), 1);
	finding_is(0, "warn", "evpn", "zebra 8.4.4");
	assert_int_equal(examine("10.1.3", "both", CONFIG_BARE, VNIS), 1);
	finding_is(0, "warn", "evpn", "zebra 10.1.3");
}

static void
a_locator_of_another_length_is_warned_of(void **state)
{
	t.sids = SIDS("2001:db8:f1:100::");
	assert_int_equal(examine("8.4.4", "both", CONFIG_BARE, ""), 1);
	finding_is(0, "warn", "srv6", "bgpd 8.4.4 announces 1 wrong SID");
	assert_int_equal(examine("8.5", "both", CONFIG_BARE, ""), 1);
	finding_is(0, "ok", "", "FRR 8.5");
	t.sids = SIDS("2001:db8:f1:0:100::");
	assert_int_equal(examine("8.4.4", "both", CONFIG_BARE, ""), 1);
	finding_is(0, "ok", "", "FRR 8.4.4");
}

static void
a_route_map_of_a_protocol_is_warned_of(void **state)
{
	static const char *const denies[] = {
		"ip protocol bgp route-map DENY",
		"!\nvrf red\n ipv6 protocol static route-map DENY\nexit-vrf",
	};
	static const char *const others[] = {
		"ip nht route-map DENY",
		"route-map protocol permit 10",
		"router bgp 65000\n redistribute kernel route-map ip",
		" description ip protocol bgp route-map DENY",
	};

	for (unsigned int i = 0; i < sizeof(denies) / sizeof(denies[0]); i++) {
		const json_t *row;

		assert_int_equal(examine("8.4.4", "both", denies[i], ""), 1);
		row = finding_is(0, "warn", "denied-routes", "zebra 8.4.4 may send");
		assert_string_equal(fix_of(row), "fpmctl audit");
		assert_int_equal(examine("8.5", "both", denies[i], ""), 1);
		finding_is(0, "ok", "", "FRR 8.5");
	}
	for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(examine("8.4.4", "both", others[i], ""), 1);
		finding_is(0, "ok", "", "FRR 8.4.4");
	}
}

static void
an_unknown_version_is_not_judged(void **state)
{
	assert_int_equal(examine("4garbage", "fpm", CONFIG_BARE, VNIS), 1);
	finding_is(0, "n/a", "", "4garbage");
	assert_int_equal(examine("garbage", "fpm", CONFIG_BARE, VNIS), 1);
	finding_is(0, "n/a", "", "no zebra reports");
	t.e.vtysh = "false";
	check_frr_version(&t.e);
	finding_is(1, "n/a", "", "no zebra reports");
}

static void
without_zebra_nothing_is_asked(void **state)
{
	assert_int_equal(examine("10.3", "kernel", CONFIG_BARE, VNIS), 1);
	finding_is(0, "n/a", "", "routes.from: kernel");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_parsed),
		cmocka_unit_test(faults_have_first_and_last_versions),
		cmocka_unit_test(
			next_hops_that_the_kernel_does_not_have_are_announced_since_10),
		cmocka_unit_test(sessions_of_bfd_are_lost_at_connect_before_10_8),
		cmocka_unit_test(the_row_of_zebra_has_the_version),
		cmocka_unit_test(a_static_route_lacks_an_interface_behind_its_gateway),
		cmocka_unit_test_setup_teardown(
			a_version_without_a_fault_that_matters_is_ok, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_static_route_without_interface_is_warned_of, setup, teardown),
		cmocka_unit_test_setup_teardown(routes_of_the_kernel_by_fpm_are_warned_of,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_locator_of_another_length_is_warned_of,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_vni_of_a_vrf_is_warned_of, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_route_map_of_a_protocol_is_warned_of,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_unknown_version_is_not_judged, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_zebra_nothing_is_asked, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
