/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl audit reads the output of vtysh. A script takes the place of vtysh.
 *
 * link: fpm-dataplane/ctl/hop_push.c
 * link: fpm-dataplane/ctl/zebra.c fpm-dataplane/ctl/hops_text.c fpm-dataplane/ctl/run.c
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/doctor/parse.c
 * link: fpm-dataplane/ctl/frr_version.c
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/hops_text.h"
#include "ctl/zebra.h"

/*
 * Make a command that prints `text` for any arguments. The script of the command removes
 * itself when it runs.
 */
static const char *
vtysh_that_says(const char *text)
{
	static char command[64];
	char path[] = "/tmp/fdp-vtysh-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	dprintf(fd, "rm %s; cat <<'END'\n%s\nEND\n", path, text);
	close(fd);
	snprintf(command, sizeof(command), "sh %s", path);
	return command;
}

static void
keep_hops(const char *vrf, const struct prefix *p, struct hops_text *w, void *ctx)
{
	char **hops = ctx;

	free(*hops);
	*hops = hops_join(w);
}

static unsigned int many_seen;

/* Assert that the last two octets of the gateway are the number of the prefix. */
static void
each_of_many(const char *vrf, const struct prefix *p, struct hops_text *w, void *ctx)
{
	char want[64], *hops = hops_join(w);

	snprintf(want, sizeof(want), "via 192.0.%u.%u dev wan0 weight 1", many_seen >> 8,
		 many_seen & 255);
	assert_string_equal(hops, want);
	free(hops);
	many_seen++;
}

/* Return the next hops of a route whose table line has `words` behind the interface. */
static char *
hops_of_table(const char *dev, const char *words)
{
	char text[512], *hops = NULL;

	snprintf(text, sizeof(text),
		 "Codes: K - kernel route\n\n"
		 "B>* 198.51.100.0/24 [20/0] via 192.0.2.2, %s%s, weight 1, 00:00:06",
		 dev, words);
	assert_int_equal(zebra_table(vtysh_that_says(text), true, 4, keep_hops, &hops), 0);
	return hops;
}

/* Return the next hops of a route whose next hop has these further members in JSON. */
static char *
hops_of_prefix(const char *dev, const char *members)
{
	struct prefix p;
	char text[512], *hops = NULL;

	assert_int_equal(prefix_parse("198.51.100.0/24", &p, NULL), 0);
	snprintf(text, sizeof(text),
		 "{\"198.51.100.0/24\":[{\"protocol\":\"bgp\",\"selected\":true,"
		 "\"installed\":true,\"nexthops\":[{\"fib\":true,\"ip\":\"192.0.2.2\","
		 "\"interfaceName\":\"%s\",\"weight\":1%s%s}]}]}",
		 dev, members[0] == '\0' ? "" : ",", members);
	assert_int_equal(zebra_prefix(vtysh_that_says(text), NULL, &p, true, &hops), 0);
	return hops;
}

/*
 * The names are as FRR prints them: in text it escapes nothing; in JSON it escapes control
 * characters but no other octets.
 */
static void
names_are_for_a_terminal_and_the_same_in_text_and_json(void **state)
{
	static const struct {
		const char *text, *json, *shown;
	} name[] = {
		{"wan0", "wan0", "wan0"},
		{"caf\xc3\xa9", "caf\xc3\xa9", "caf\xc3\xa9"},
		{"\x1b[2Jx\x07", "\\u001b[2Jx\\u0007", "?[2Jx?"},
		{"a\xc2\x9b"
		 "2J",
		 "a\xc2\x9b"
		 "2J",
		 "a??2J"},
		{"\x1b]0;\x9b"
		 "by",
		 "\\u001b]0;\x9b"
		 "by",
		 "?]0;?by"},
	};

	for (unsigned int i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		char *table = hops_of_table(name[i].text, "");
		char *prefix = hops_of_prefix(name[i].json, ""), expected[80];

		snprintf(expected, sizeof(expected), "via 192.0.2.2 dev %s weight 1",
			 name[i].shown);
		assert_non_null(table);
		assert_non_null(prefix);
		assert_string_equal(table, expected);
		assert_string_equal(prefix, expected);
		free(table);
		free(prefix);
	}
}

/*
 * The gateway of an IPv6 route of EVPN is an IPv4-mapped address, which has two spellings.
 */
static void
a_mapped_gateway_has_one_spelling(void **state)
{
	static const char *const via[] = {"::ffff:c000:284", "::ffff:192.0.2.132"};

	for (unsigned int i = 0; i < 2; i++) {
		struct hops_text w = {0};
		char *text;

		hops_add(&w, via[i], "br1", NULL, 1);
		text = hops_join(&w);
		assert_string_equal(text, "via ::ffff:192.0.2.132 dev br1 weight 1");
		free(text);
		hops_free(&w);
	}
}

/* FRR marks each route that drops as unreachable, and names two of the three kinds. */
static void
a_route_that_drops_has_its_kind(void **state)
{
	static const struct {
		const char *fields, *kind;
	} of[] = {{",\"blackhole\":true", "blackhole"},
		  {",\"adminProhibited\":true", "prohibit"},
		  {"", "unreachable"}};
	struct prefix p;

	assert_int_equal(prefix_parse("198.51.100.0/24", &p, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		char text[512], *hops = NULL;

		snprintf(text, sizeof(text),
			 "{\"198.51.100.0/24\":[{\"protocol\":\"static\",\"selected\":true,"
			 "\"installed\":true,\"nexthops\":[{\"fib\":true,"
			 "\"unreachable\":true%s}]}]}",
			 of[i].fields);
		zebra_prefix(vtysh_that_says(text), NULL, &p, true, &hops);
		assert_non_null(hops);
		assert_string_equal(hops, of[i].kind);
		free(hops);
	}
}

/*
 * The parser has a cache of next hops by their words. Here are more kinds of words than the
 * cache has places, so they replace each other.
 */
static void
each_of_many_next_hops_is_read(void **state)
{
	enum { N = 3000 };
	char *text = malloc(N * 80), *at = text, *hops = NULL;

	assert_non_null(text);
	at += sprintf(at, "Codes: B - BGP\n");
	for (unsigned int i = 0; i < N; i++)
		at += sprintf(at,
			      "B>* 10.%u.%u.0/24 [20/0] via 192.0.%u.%u, wan0, weight 1, "
			      "00:00:06\n",
			      i >> 8, i & 255, i >> 8, i & 255);
	many_seen = 0;
	assert_int_equal(zebra_table(vtysh_that_says(text), true, 4, each_of_many, &hops),
			 0);
	assert_int_equal(many_seen, N);
	free(text);
}

/* The second line has the words of the first line, with another age. */
static void
a_line_that_names_no_next_hop_adds_none(void **state)
{
	char *hops = NULL;

	assert_int_equal(
		zebra_table(vtysh_that_says(
				    "Codes: B - BGP\n"
				    "B>* 10.0.0.0/24 [20/0] somehow, weight 1, 00:00:06\n"
				    "B>* 10.0.1.0/24 [20/0] somehow, weight 1, 00:00:07\n"),
			    true, 4, keep_hops, &hops),
		0);
	assert_true(hops == NULL || hops[0] == '\0');
	free(hops);
}

/* The lines and members are as FRR 8.4 and 10.7 print them. */
static void
labels_and_segments_are_those_of_the_row(void **state)
{
	static const struct {
		const char *words, *members, *push;
	} of[] = {
		{", label 17/30", "\"labels\":[17,30]", " label 17/30"},
		{", label 300/implicit-null", "\"labels\":[300,3]", " label 300"},
		{", label implicit-null", "\"labels\":[3]", ""},
		{", label IPv4 Explicit Null/Reserved (9)/IPv6 Explicit Null",
		 "\"labels\":[0,9,2]", " label 0/9/2"},
		{", seg6local unspec unspec, seg6 fd00:1::7",
		 "\"seg6local\":{\"action\":\"unspec\"},\"seg6\":{\"segs\":\"fd00:1::7\"}",
		 " H.Encaps fd00:1::7"},
		{", seg6local End.DT4 table 100, seg6 ::", "\"seg6\":{\"segs\":\"::\"}",
		 ""},
		{", seg6 fd00:1::7,fd00:2::",
		 "\"srv6EncapBehavior\":\"H.Encaps\","
		 "\"seg6\":[\"fd00:1::7\",\"fd00:2::\",\"6162::\"]",
		 " H.Encaps fd00:1::7 fd00:2::"},
		{", seg6 fd00:1::7, encap behavior H.Encaps.Red, encap source fd00::9",
		 "\"srv6EncapBehavior\":\"H.Encaps.Red\",\"srv6EncapSource\":\"fd00::9\","
		 "\"seg6\":{\"segs\":\"fd00:1::7\"}",
		 " H.Encaps.Red fd00:1::7 source fd00::9"},
		{", seg6 fd00:1::7, encap behavior H.Insert",
		 "\"srv6EncapBehavior\":\"H.Insert\",\"seg6\":{\"segs\":\"fd00:1::7\"}",
		 " SRv6 refused"},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		char want[128], *table = hops_of_table("wan0", of[i].words),
				*prefix = hops_of_prefix("wan0", of[i].members);

		snprintf(want, sizeof(want), "via 192.0.2.2 dev wan0%s weight 1",
			 of[i].push);
		assert_string_equal(table, want);
		assert_string_equal(prefix, want);
		free(table);
		free(prefix);
	}
}

static bool
is_wan0(const char *dev, void *ctx)
{
	return strcmp(dev, "wan0") == 0;
}

static void
a_vni_is_no_label(void **state)
{
	char *table, *prefix;

	zebra_set_overlay(is_wan0, NULL);
	table = hops_of_table("wan0", ", label 1000");
	prefix = hops_of_prefix("wan0", "\"labels\":[1000]");
	zebra_set_overlay(NULL, NULL);
	assert_string_equal(table, "via 192.0.2.2 dev wan0 weight 1");
	assert_string_equal(prefix, table);
	free(table);
	free(prefix);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_many_next_hops_is_read),
		cmocka_unit_test(a_line_that_names_no_next_hop_adds_none),
		cmocka_unit_test(a_route_that_drops_has_its_kind),
		cmocka_unit_test(labels_and_segments_are_those_of_the_row),
		cmocka_unit_test(a_vni_is_no_label),
		cmocka_unit_test(a_mapped_gateway_has_one_spelling),
		cmocka_unit_test(names_are_for_a_terminal_and_the_same_in_text_and_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
