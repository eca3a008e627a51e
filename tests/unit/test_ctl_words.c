/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of explain, trace and capture: their bounds, the words that exclude each other,
 * and the sentence for each mistake.
 *
 * link: fpm-dataplane/ctl/words.c fpm-dataplane/ctl/cli.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli.h"
#include "ctl/words.h"

static struct words w;
static char said[8192]; /* the text on standard error, or of a help */

/* Return the exit code for words that blanks separate. A word '' is empty. */
static int
taken(enum words_of of, const char *text)
{
	FILE *was = stderr, *to = fmemopen(said, sizeof(said), "w");
	static char copy[256]; /* struct words points into it */
	char *word[32], *rest;
	int n = 0, rc;

	assert_non_null(to);
	said[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = strtok_r(copy, " ", &rest); at != NULL;
	     at = strtok_r(NULL, " ", &rest))
		word[n++] = strcmp(at, "''") == 0 ? at + 2 : at;
	stderr = to;
	rc = words_take(&w, of, n, word);
	stderr = was;
	fclose(to);
	return rc;
}

static void
refused(enum words_of of, const char *text, const char *why)
{
	char line[512];

	assert_int_equal(taken(of, text), CTL_USAGE);
	snprintf(line, sizeof(line), "fpmctl: %s\n", why);
	assert_string_equal(said, line);
}

static void
each_word_sets_its_field(void **state)
{
	assert_int_equal(taken(WORDS_EXPLAIN, ""), CTL_OK);
	assert_int_equal(w.proto, -1);
	assert_int_equal(w.ttl, -1);
	assert_int_equal(w.label, -1);
	assert_int_equal(w.sport, 0);
	assert_null(w.port);
	assert_int_equal(taken(WORDS_EXPLAIN,
			       "port wan0 src 192.0.2.1 dst 192.0.2.2 proto udp "
			       "sport 1 dport 65535 ttl 0 len 65500 df"),
			 CTL_OK);
	assert_string_equal(w.port, "wan0");
	assert_string_equal(w.src, "192.0.2.1");
	assert_string_equal(w.dst, "192.0.2.2");
	assert_int_equal(w.proto, 17);
	assert_int_equal(w.sport, 1);
	assert_int_equal(w.dport, 65535);
	assert_int_equal(w.ttl, 0);
	assert_int_equal(w.len, 65500);
	assert_true(w.df);
	assert_int_equal(
		taken(WORDS_EXPLAIN, "dst 2001:db8::1 label 1048575 ttl 255 proto 255"),
		CTL_OK);
	assert_int_equal(w.label, 0xfffff);
	assert_int_equal(w.ttl, 255);
	assert_int_equal(w.proto, 255);
	assert_int_equal(taken(WORDS_EXPLAIN, "hex 00fF port a len 14"), CTL_OK);
	assert_string_equal(w.hex, "00fF");
	assert_int_equal(taken(WORDS_TRACE,
			       "host 192.0.2.0/24 dropped reason ttl count 1 for "
			       "0.5"),
			 CTL_OK);
	assert_string_equal(w.host, "192.0.2.0/24");
	assert_string_equal(w.verdict, "dropped");
	assert_string_equal(w.reason, "ttl");
	assert_int_equal(w.count, 1);
	assert_true(w.for_s == 0.5);
	assert_int_equal(
		taken(WORDS_CAPTURE, "rx tx drop snap 1920 count 1000000000 for 86400"),
		CTL_OK);
	assert_true(w.rx && w.tx && w.drop);
	assert_int_equal(w.snap, 1920);
	assert_int_equal(w.count, 1000000000);
	assert_true(w.for_s == 86400);
	assert_int_equal(taken(WORDS_CAPTURE, "rx snap 14"), CTL_OK);
	assert_true(w.rx && !w.tx && !w.drop);
}

static void
values_beyond_their_bounds_are_refused(void **state)
{
	static const char *const explain[] = {
		"sport 0",      "sport 65536", "dport 0",
		"dport 65536",  "ttl -1",      "ttl 256",
		"len 0",        "len 65501",   "label 1048576",
		"label -1",     "proto 256",   "proto -1",
		"proto nope",   "sport 1x",    "src 192.0.2.0/24",
		"dst nonsense", "hex 0",       "hex 0g",
		"hex 000",      "hex ''",      "port ''",
	};
	static const char *const capture[] = {
		"snap 13", "snap 1921", "count 0",   "count 1000000001",  "count 1.5",
		"for 0",   "for -1",    "for 86401", "host 192.0.2.0/33",
	};

	for (unsigned int i = 0; i < sizeof(explain) / sizeof(explain[0]); i++)
		if (taken(WORDS_EXPLAIN, explain[i]) != CTL_USAGE)
			fail_msg("explain accepts %s", explain[i]);
	for (unsigned int i = 0; i < sizeof(capture) / sizeof(capture[0]); i++)
		if (taken(WORDS_CAPTURE, capture[i]) != CTL_USAGE)
			fail_msg("capture accepts %s", capture[i]);
}

static void
words_that_contradict_each_other_are_refused(void **state)
{
	static const char *const with_hex[] = {
		"src 192.0.2.1", "dst 192.0.2.1", "proto 0", "sport 1",
		"dport 1",       "ttl 0",         "df",      "label 0",
	};
	char text[64];

	for (unsigned int i = 0; i < sizeof(with_hex) / sizeof(with_hex[0]); i++) {
		snprintf(text, sizeof(text), "hex 00 %s", with_hex[i]);
		refused(WORDS_EXPLAIN, text,
			"hex is the whole frame: it may be combined with port and len "
			"only");
	}
	refused(WORDS_EXPLAIN, "src 192.0.2.1 dst 2001:db8::1",
		"src, dst and host are of different families");
	refused(WORDS_TRACE, "host 192.0.2.1 dst 2001:db8::/32",
		"src, dst and host are of different families");
	assert_int_equal(taken(WORDS_TRACE, "host 192.0.2.1 src 192.0.2.2"), CTL_OK);
	for (unsigned int i = 0; i < 2; i++) {
		refused(WORDS_EXPLAIN, i == 0 ? "proto ospf sport 1" : "proto 1 dport 1",
			"only tcp, udp and sctp have sport and dport");
	}
	refused(WORDS_EXPLAIN, "proto 0 sport 1",
		"only tcp, udp and sctp have sport and dport");
	assert_int_equal(taken(WORDS_EXPLAIN, "proto sctp sport 1"), CTL_OK);
	assert_int_equal(taken(WORDS_EXPLAIN, "sport 1"), CTL_OK);
	refused(WORDS_EXPLAIN, "src 192.0.2.1 label 0",
		"label is for IPv6, but the addresses are IPv4");
	refused(WORDS_EXPLAIN, "dst 2001:db8::1 df",
		"df is for IPv4, but the addresses are IPv6");
	refused(WORDS_TRACE, "dst 2001:db8::1 proto icmp",
		"proto icmp is for IPv4, but the addresses are IPv6: use icmp6");
	assert_int_equal(taken(WORDS_EXPLAIN, "dst 2001:db8::1 proto icmp"), CTL_OK);
	assert_int_equal(taken(WORDS_TRACE, "dst 2001:db8::1 proto icmp6"), CTL_OK);
	assert_int_equal(taken(WORDS_TRACE, "dst 192.0.2.1 proto icmp"), CTL_OK);
	refused(WORDS_TRACE, "forwarded reason ttl",
		"forwarded packets have no reason: give dropped or punted, or neither");
	assert_int_equal(taken(WORDS_TRACE, "punted reason ttl"), CTL_OK);
	assert_int_equal(taken(WORDS_TRACE, "dropped reason forwarded"), CTL_OK);
	assert_int_equal(taken(WORDS_TRACE, "reason forwarded"), CTL_OK);
	assert_int_equal(taken(WORDS_TRACE, "forwarded"), CTL_OK);
	assert_int_equal(taken(WORDS_CAPTURE, "reason ttl"), CTL_OK);
}

static void
a_word_is_given_once_with_its_value(void **state)
{
	refused(WORDS_TRACE, "dropped punted",
		"punted after dropped: give one of them, once");
	refused(WORDS_EXPLAIN, "ttl 1 ttl 2", "ttl after ttl: give one of them, once");
	refused(WORDS_EXPLAIN, "df ttl", "ttl needs N");
	assert_int_equal(taken(WORDS_EXPLAIN, "proto nope"), CTL_USAGE);
	assert_non_null(strstr(said, "one of icmp, igmp, tcp, "));
	assert_non_null(strstr(said, ", sctp, nor a whole number from 0 to 255"));
	assert_int_equal(taken(WORDS_EXPLAIN, "count 1"), CTL_USAGE);
	assert_non_null(
		strstr(said, "unexpected word 'count'; the words are\n      port "));
	assert_null(strstr(said, "snap"));
	assert_non_null(strstr(said, "label"));
	assert_int_equal(taken(WORDS_CAPTURE, "ttl 1"), CTL_USAGE);
	assert_non_null(strstr(said, "unexpected word 'ttl'"));
	assert_non_null(strstr(said, "snap"));
	assert_null(strstr(said, "forwarded packets"));
	assert_int_equal(taken(WORDS_TRACE, "rx"), CTL_USAGE);
	assert_non_null(strstr(said, "only forwarded packets"));
}

/* Return the line of the completion behind `last`. */
static const char *
completion(enum words_of of, const char *last)
{
	FILE *to = fmemopen(said, sizeof(said), "w");
	char *word[] = {(char *)(uintptr_t)last};

	words_complete(to, of, last != NULL, word);
	fclose(to);
	return said;
}

static void
the_completion_has_the_words_that_may_follow(void **state)
{
	static const char protocols[] =
		"icmp igmp tcp udp rsvp gre esp icmp6 eigrp ospf pim "
		"vrrp sctp \n",
			  capture[] =
				  "port src dst host proto sport dport reason rx tx drop "
				  "snap count for \n";

	assert_string_equal(completion(WORDS_CAPTURE, NULL), capture);
	assert_string_equal(completion(WORDS_CAPTURE, "rx"), capture);
	assert_string_equal(completion(WORDS_EXPLAIN, "proto"), protocols);
	assert_string_equal(completion(WORDS_EXPLAIN, "ttl"), "\n");
	assert_string_equal(completion(WORDS_EXPLAIN, "df"),
			    "port src dst proto sport dport ttl len df label hex \n");
}

static void
a_protocol_has_a_name_or_a_number(void **state)
{
	char buf[16];

	assert_string_equal(proto_name(1, buf), "icmp");
	assert_string_equal(proto_name(17, buf), "udp");
	assert_string_equal(proto_name(132, buf), "sctp");
	assert_string_equal(proto_name(133, buf), "proto 133");
}

/* Return the text that cli_usage() prints. */
static const char *
usage_of(const struct command *c)
{
	FILE *was = stderr;

	stderr = fmemopen(said, sizeof(said), "w");
	assert_int_equal(cli_usage(c), CTL_USAGE);
	fclose(stderr);
	stderr = was;
	return said;
}

static void
the_usage_names_the_command_and_its_help(void **state)
{
	assert_string_equal(usage_of(NULL), "usage: fpmctl [OPTIONS] COMMAND ...\n"
					    "`fpmctl help` lists commands and options\n");
	assert_string_equal(usage_of(&(struct command){.name = "ask", .words = "[WORD]"}),
			    "usage: fpmctl [OPTIONS] ask [WORD]\nsee `fpmctl help ask`\n");
}

static void
numbers_have_digits_only(void **state)
{
	static const char *const bad[] = {"",  "-1", "+1",  " 1",  "1 ", "1e3",
					  "x", ".",  "1.x", "1..", "0x1"};
	long long whole = 7;
	double decimal = 7;

	assert_true(number_whole("9223372036854775807", &whole));
	assert_true(whole == 9223372036854775807LL);
	assert_false(number_whole("9223372036854775808", &whole));
	assert_false(number_whole("1.5", &whole));
	assert_true(number_decimal("1.", &decimal) && decimal == 1);
	assert_true(number_decimal(".5", &decimal) && decimal == .5);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(number_whole(bad[i], &whole));
		assert_false(number_decimal(bad[i], &decimal));
	}
	assert_true(decimal == .5);
}

/* A word is near if one letter in four is wrong, or if it is the first three letters. */
static void
a_word_is_near_by_its_beginning_or_most_letters(void **state)
{
	assert_true(word_is_near("int", "interfaces"));
	assert_false(word_is_near("in", "interfaces"));
	assert_true(word_is_near("pott", "port"));
	assert_false(word_is_near("prot", "port"));
	assert_false(word_is_near("por", "pot"));
	assert_true(word_is_near("abcdefghijklmnop", "abcdefghijklmnop"));
	assert_false(word_is_near("abcdefghijklmnopq", "abcdefghijklmnopq"));
	assert_false(word_is_near("abcdefghijklmnop", "abcdefghijklmnopq"));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_usage_names_the_command_and_its_help),
		cmocka_unit_test(numbers_have_digits_only),
		cmocka_unit_test(a_word_is_near_by_its_beginning_or_most_letters),
		cmocka_unit_test(each_word_sets_its_field),
		cmocka_unit_test(values_beyond_their_bounds_are_refused),
		cmocka_unit_test(words_that_contradict_each_other_are_refused),
		cmocka_unit_test(a_word_is_given_once_with_its_value),
		cmocka_unit_test(the_completion_has_the_words_that_may_follow),
		cmocka_unit_test(a_protocol_has_a_name_or_a_number),
	};

	return cmocka_run_group_tests_name("ctl_words", tests, NULL, NULL);
}
