/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `show fpm`, `show kernel`, `show memory`, `show version` and the bonds of `show ports`,
 * as fpmctl prints a row that the daemon sends: each sentence for each state.
 *
 * link: fpm-dataplane/ctl/print_status.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/print_rows.h"

/* Paragraphs continue below the text of the first line. */
#define CONTINUED "\n           "

/* The output has no colors and no width of a terminal. */
int
isatty(int fd)
{
	return 0;
}

/* Parse a row that is written with ' in place of ". */
static json_t *
row_of(const char *text)
{
	char *json = strdup(text);
	json_t *row;

	for (char *p = json; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	row = json_loads(json, 0, NULL);
	assert_non_null(row);
	free(json);
	return row;
}

static char *said;

static int
release(void **state)
{
	free(said);
	said = NULL;
	return 0;
}

/* Return the text that a function prints about a row, with each paragraph on one line. */
static const char *
printed(void (*print)(const json_t *row), const char *text)
{
	json_t *row = row_of(text);
	FILE *terminal = stdout;
	size_t n;

	release(NULL);
	stdout = open_memstream(&said, &n);
	print(row);
	fclose(stdout);
	stdout = terminal;
	json_decref(row);
	for (char *p; (p = strstr(said, CONTINUED)) != NULL;) {
		*p = ' ';
		memmove(p + 1, p + strlen(CONTINUED), strlen(p + strlen(CONTINUED)) + 1);
	}
	return said;
}

/* Assert that the text has exactly these lines at its end. */
static void
ends_with(const char *text, const char *want)
{
	size_t n = strlen(text), m = strlen(want);

	if (n < m)
		assert_string_equal(text, want);
	assert_string_equal(text + n - m, want);
}

/* Return the line that begins with a subject, without its newline; "": there is none. */
static const char *
line_of(const char *text, const char *subject)
{
	static char line[600];
	size_t n = strlen(subject);

	for (const char *p = text; *p != '\0'; p += strcspn(p, "\n") + 1)
		if (strncmp(p, subject, n) == 0 && (p[n] == ' ' || n > 10)) {
			snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
			return line;
		}
	return "";
}

static void
fpm_line(const char *row, const char *subject, const char *want)
{
	assert_string_equal(line_of(printed(status_fpm, row), subject), want);
}

/* --- show fpm ------------------------------------------------------------------------- */

static void
the_session_has_its_state_in_words(void **state)
{
	static const char *const rest[][2] = {
		{"in-step", "; in step"},
		{"replaying", "; a replay is running"},
		{"holding", "; replay over, zebra was restarted: waiting for its peers"},
		{"sweeping", "; replay over, removing stale routes"},
		{"refusing", ""},
	};
	char row[200], want[200];

	fpm_line("{'state': 'never-connected', 'connected': false}", "Session",
		 "Session    zebra has never connected; it needs the option "
		 "`-M dplane_fpm_nl`");
	fpm_line("{'state': 'away', 'connected': false, 'generation': 0}", "Session",
		 "Session    zebra has not connected since the start; its routes of the "
		 "checkpoint stay in force");
	fpm_line("{'state': 'held', 'generation': 4}", "Session",
		 "Session    a hold refuses zebra while FRR is restarted (generation 4); "
		 "its "
		 "routes stay in force");
	fpm_line("{'state': 'in-step', 'connected': false, 'generation': 4}", "Session",
		 "Session    zebra is disconnected (generation 4); its routes stay in "
		 "force");
	for (unsigned int i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		snprintf(row, sizeof(row),
			 "{'state': '%s', 'connected': true, 'generation': 5, "
			 "'uptime_s': 61.5}",
			 rest[i][0]);
		snprintf(want, sizeof(want),
			 "Session    zebra is connected, generation 5, up 1 min 01 s%s",
			 rest[i][1]);
		fpm_line(row, "Session", want);
	}
}

static void
counters_have_their_nouns(void **state)
{
	const char *text = printed(
		status_fpm,
		"{'state': 'in-step', 'connected': true, 'uptime_s': 1.0, 'messages': 1, "
		"'frames': 2, 'bytes': 2048, 'last_rx_age_s': 3.0, 'routes': 4, "
		"'route_dels': 5, 'nexthops': 6, 'nexthop_dels': 7, 'skipped_type': 1, "
		"'skipped_route': 0, 'malformed': 8, 'bad_frames': 1, 'accepts': 9, "
		"'replaced': 10, 'closes': 11, 'overflows': 12, 'queue_bytes': 1023, "
		"'queue_high_bytes': 1024, 'queue_limit_bytes': 536870912, 'lag_ms': 13, "
		"'lag_high_ms': 14}");

	assert_string_equal(
		text,
		"Session    zebra is connected, generation 0, up 1.0 s; in step\n"
		"Received   1 message in 2 frames, 2.0 KiB; the last 3.0 s ago\n"
		"Routes     4 added, 5 withdrawn\n"
		"Next hops  6 added, 7 withdrawn\n"
		"Ignored    1 unused message, 0 unsupported routes, 8 malformed, 1 bad "
		"frame\n"
		"Sessions   9 accepted, 10 replaced, 11 ended, 12 over the queue limit\n"
		"Queue      1023 B now, 1.0 KiB at most, limit 512.0 MiB\n"
		"Lag        13 ms now, 14 ms at most, from zebra's update to the FIB\n");
	/* Nothing was received yet: no time of the last message. */
	fpm_line("{'last_rx_age_s': null}", "Received",
		 "Received   0 messages in 0 frames, 0 B");
}

static void
the_first_cause_for_a_warning_is_shown(void **state)
{
#define CAUSES "'strangers': 2, 'queue_warning': true, 'listening': false"
	fpm_line("{'state': 'refusing', " CAUSES "}", "WARNING",
		 "WARNING    the RIB is too far behind: the session was closed, and zebra "
		 "is "
		 "refused until the queue is down to half of its limit; zebra then replays "
		 "all routes");
	fpm_line("{" CAUSES "}", "WARNING",
		 "WARNING    the address fpm.listen is not available, perhaps another "
		 "program "
		 "has it (ss -tlnp): zebra cannot connect; the daemon tries again");
	fpm_line("{'strangers': 2, 'queue_warning': true, 'listening': true}", "WARNING",
		 "WARNING    the RIB is behind, the queue is above 75 % of its limit "
		 "(fpm.queue-limit-mib); at the limit the session is closed, and zebra "
		 "replays all routes");
	fpm_line("{'strangers': 2}", "WARNING",
		 "WARNING    2 connections were refused, perhaps zebra's: the log has the "
		 "source; fpm.users and fpm.peer say which connections are accepted");
	fpm_line("{'strangers': 1}", "WARNING",
		 "WARNING    1 connection was refused, perhaps zebra's: the log has the "
		 "source; fpm.users and fpm.peer say which connections are accepted");
	fpm_line("{'strangers': 2, 'connected': true}", "WARNING", "");
	fpm_line("{'strangers': 0, 'queue_warning': false}", "WARNING", "");
}

static void
times_are_those_of_half_and_of_all_but_a_hundredth(void **state)
{
	/* 49 of 100 entries are below 8 us, 50 below 16 us, 99 below 32 us; 1 is above. */
	fpm_line("{'commit_time': {'count': 100, 'max_us': 1000000, 'below_us': "
		 "[[8, 49], [16, 1], [32, 49], [null, 1]]}}",
		 "Commits",
		 "Commits    100; half below 0.016 ms, 99 % below 0.032 ms, longest 1000 "
		 "ms");
	fpm_line(
		"{'commit_time': {'count': 100, 'max_us': 70, 'below_us': "
		"[[8, 50], [16, 0], [32, 48], [null, 2]]}}",
		"Commits",
		"Commits    100; half below 0.008 ms, 99 % below 0.07 ms, longest 0.07 ms");
	fpm_line("{'grace_time': {'count': 1, 'max_us': 1500, 'below_us': [[2000, 1]]}}",
		 "Grace", "Grace      1; half below 2 ms, 99 % below 2 ms, longest 1.5 ms");
	fpm_line("{'grace_time': {'count': 1, 'max_us': 51060000, 'below_us': [[8, 0], "
		 "[null, 1]]}}",
		 "Grace",
		 "Grace      1; half below 51.1 s, 99 % below 51.1 s, longest 51.1 s");
	fpm_line("{'commit_time': {'count': 0, 'max_us': 0, 'below_us': []}}", "Commits",
		 "");
}

static void
a_replay_is_told_with_its_sweeps(void **state)
{
#define TIMERS "'sweep_quiet_s': 5, 'sweep_max_s': 120, 'sweep_restart_s': 60"
	ends_with(
		printed(status_fpm,
			"{'replaying': true, 'replay_s': 2.5, 'replay_confirmed': 3, "
			"'replay_before': 1, 'stale': 4, 'sweep_in_s': 90.0, 'sweeps': 1, "
			"'swept_routes': 5, 'feedback_enabled': false, " TIMERS "}"),
		"Replay     running for 2.5 s: 3 of 1 earlier route confirmed, 4 stale, "
		"sweep in 1 min 30 s; 1 sweep removed 5\n"
		"Timers     stale routes are removed at the end of the replay (sentinel), "
		"or after 5 s without updates, at most 120 s; after a restart of zebra not "
		"before 60 s\n"
		"Feedback   off (fpm.feedback)\n");
	ends_with(
		printed(status_fpm,
			"{'replaying': false, 'replay_s': 0.4, 'replay_before': 2, "
			"'sweep_in_s': null, 'sweeps': 2, 'feedback_enabled': true, "
			"'feedback': 1, 'feedback_failed': 6, " TIMERS "}"),
		"Replay     took 0.4 s: 0 of 2 earlier routes confirmed, 0 stale; 2 sweeps "
		"removed 0\n"
		"Timers     stale routes are removed at the end of the replay (sentinel), "
		"or after 5 s without updates, at most 120 s; after a restart of zebra not "
		"before 60 s\n"
		"Feedback   1 route acknowledged, 6 of them as failed\n");
	fpm_line("{'state': 'holding', 'replaying': true, 'replay_s': 2.5, 'stale': 4}",
		 "Replay",
		 "Replay     began 2.5 s ago: 0 of 0 earlier routes confirmed, 4 stale; 0 "
		 "sweeps removed 0");
	fpm_line("{'replaying': true, 'sweeps': 0, 'sweep_in_s': 1.0, 'swept_routes': 7}",
		 "Replay", "Replay     none yet, sweep in 1.0 s; 0 sweeps removed 7");
	fpm_line("{'replay_s': 1.0}", "Replay", "");
}

static void
vrfs_have_a_replay_of_their_own(void **state)
{
#define REPLAY "'replaying': false, "
	fpm_line(
		"{" REPLAY "'vrfs': 1, 'vrf_phase': 'replaying', 'vrf_stale': 1, "
		"'vrf_sweep_in_s': 2.0}",
		"VRFs",
		"VRFs       replaying (ends after silence): 1 route stale, sweep in 2.0 s");
	fpm_line("{" REPLAY "'vrfs': 0, 'vrf_stale': 3}", "VRFs", "");
	fpm_line("{" REPLAY "'no_vrf_routes': 2}", "Tables",
		 "Tables     2 routes in tables without a VRF: not in the FIB, and zebra "
		 "does "
		 "not replay them");
	fpm_line("{" REPLAY "'no_vrf_routes': 0}", "Tables", "");
	fpm_line("{" REPLAY "'vrfs_not_replayed': 1}", "WARNING",
		 "WARNING    zebra has not replayed 1 VRF; the old routes stay in force "
		 "(`fpmctl show vrfs` lists them)");
	fpm_line("{" REPLAY "'vrfs_not_replayed': 0}", "WARNING", "");
}

static void
tables_and_objects_of_the_rib(void **state)
{
	ends_with(
		printed(status_fpm,
			"{'routes4': 1, 'zebra4': 2, 'routes6': 3, 'zebra6': 4, 'groups': "
			"1, "
			"'nexthop_ids': 2, 'nexthop_ids_absent': 5, 'adjacencies': 1, "
			"'unresolved': 1, 'unsupported': 6, 'checkpoint': {'routes': 1, "
			"'other_tables': 7, 'kernel_routes': 8, 'groups': 2, 'bytes': "
			"1536, "
			"'restored': 0, 'restored_kernel': 9, 'restore_lost': 10, "
			"'discarded': 1}}"),
		"Table IPv4 1 prefix, 2 of them from zebra\n"
		"Table IPv6 3 prefixes, 4 of them from zebra\n"
		"Objects    1 group, 2 next-hop ids (5 deleted while in use), 1 adjacency, "
		"1 route unresolved, 6 unsupported\n"
		"Checkpoint 1 route and 7 of other tables, 8 of the kernel, 2 groups, 1.5 "
		"KiB; this start restored 0 routes and 9 of the kernel, lost 10; the old "
		"checkpoint was discarded\n");
	ends_with(printed(status_fpm, "{'routes4': 0, 'adjacencies': 2, 'checkpoint': "
				      "{'discarded': 0}}"),
		  "2 adjacencies, 0 routes unresolved, 0 unsupported\n"
		  "Checkpoint 0 routes and 0 of other tables, 0 of the kernel, 0 groups, 0 "
		  "B; "
		  "this start restored 0 routes and 0 of the kernel, lost 0\n");
	fpm_line("{'routes4': 0, 'checkpoint': null}", "Checkpoint",
		 "Checkpoint none: it is off, or no supervisor (fpm-supervise, systemd) "
		 "stores it");
	fpm_line("{'checkpoint': null}", "Checkpoint", "");
}

static void
limits_that_were_hit_are_in_one_line(void **state)
{
	fpm_line("{'routes4': 0, 'out_of_memory': 1, 'routes_full': 2, 'groups_full': 3, "
		 "'adjacencies_full': 4, 'mtus_full': 5, 'flows_moved': 6}",
		 "Limits hit",
		 "Limits hit 1 out of memory, 2 beyond limits.routes, 3 beyond "
		 "limits.groups, "
		 "4 gateways beyond limits.adjacencies, 5 MTUs beyond the maximum, "
		 "6 route changes that moved flows of next hops that stay");
	fpm_line("{'routes4': 0, 'groups_full': 3}", "Limits hit",
		 "Limits hit 3 beyond limits.groups");
	fpm_line("{'routes4': 0, 'groups_full': 0}", "Limits hit", "");
}

/* --- the other commands --------------------------------------------------------------- */

static void
the_kernel_is_shown_as_a_source(void **state)
{
	assert_string_equal(
		printed(status_kernel,
			"{'routes_from': 'both', 'in_step': true, 'paused': false, "
			"'kernel_routes': 1, 'messages': 2, 'routes': 3, 'nexthops': 1, "
			"'route_dels': 4, 'nexthop_dels': 5, 'of_zebra': 6, 'skipped': 7, "
			"'malformed': 8, 'tos_now': 1, 'dumps': 9, 'interrupted': 10, "
			"'overruns': 1, 'queue_bytes': 1024, 'kernel_swept': 2}"),
		"Source     all routes but those of zebra's protocols (routes.from: both)\n"
		"State      in step with the kernel\n"
		"Table      1 route, in force or hidden by better ones\n"
		"Received   2 messages: 3 routes and 1 next-hop object added, 4 and 5 "
		"deleted\n"
		"Left out   6 of zebra's protocols, 7 in no FIB, 8 malformed\n"
		"By TOS     1 route\n"
		"Dumps      9 ended, 10 started again, 1 overrun\n"
		"Queue      1.0 KiB\n"
		"Swept      2 routes that the kernel deleted without an event\n");
	assert_string_equal(
		printed(status_kernel, "{'routes_from': 'fpm', 'paused': true}"),
		"Source     own addresses and connected subnets (routes.from: fpm)\n"
		"State      reading all tables again; paused until the RIB has caught up\n"
		"Received   0 messages: 0 routes and 0 next-hop objects added, 0 and 0 "
		"deleted\n"
		"Left out   0 of zebra's protocols, 0 in no FIB, 0 malformed\n"
		"Dumps      0 ended, 0 started again, 0 overruns\n"
		"Queue      0 B\n");
	assert_string_equal(
		line_of(printed(status_kernel, "{'routes_from': 'kernel'}"), "Source"),
		"Source     all routes come from the kernel (routes.from: kernel)");
}

static void
memory_is_shown_by_part_and_by_table(void **state)
{
	assert_string_equal(
		printed(status_memory,
			"{'rss_bytes': 1048576, 'peak_rss_bytes': 2097152, 'fib4': "
			"{'routes': "
			"1, 'bytes': 1024, 'free_bytes': 512, 'radix_bytes': 2048}, "
			"'fib6': "
			"{'routes': 2, 'bytes': 3072, 'free_bytes': 0, 'radix_bytes': "
			"4096}, "
			"'rib_bytes': 5120, 'queue_bytes': 6, 'packet_buffers': 100, "
			"'packet_buffers_free': 40, 'tables': ["
			"{'table': 'routes', 'used': 7, 'max': 0, 'refused': 0, 'key': "
			"'limits.routes'},"
			"{'table': 'nexthops', 'used': 8, 'max': 0, 'refused': 0, 'key': "
			"''},"
			"{'table': 'mtus', 'used': 9, 'max': 1021, 'refused': 10, 'key': "
			"''}]}"),
		"Process    1.0 MiB, at most 2.0 MiB\n"
		"FIB IPv4   1 prefix; forwarders read 1.0 KiB, of which 512 B free; "
		"writer's "
		"tree 2.0 KiB\n"
		"FIB IPv6   2 prefixes; forwarders read 3.0 KiB, of which 0 B free; "
		"writer's "
		"tree 4.0 KiB\n"
		"RIB        5.0 KiB\n"
		"FPM queue  6 B\n"
		"Packets    60 of 100 buffers in use\n"
		"\n"
		"Table                used         of    refused  set by\n"
		"routes                  7   no limit          0  limits.routes\n"
		"nexthops                8   no limit          0  grows\n"
		"mtus                    9       1021         10  fixed\n");
	/* rib did not answer. */
	assert_string_equal(printed(status_memory, "{'packet_buffers': 1}"),
			    "Process    0 B, at most 0 B\n"
			    "FPM queue  0 B\n"
			    "Packets    1 of 1 buffer in use\n"
			    "\n"
			    "Table                used         of    refused  set by\n");
}

static void
copies_of_the_fib_are_shown_by_node(void **state)
{
	const char *text = printed(
		status_memory,
		"{'fib_copies': [{'node': null, 'fib4': {'bytes': 1}}, {'node': 0, "
		"'placed': "
		"true, 'fib4': {'bytes': 1000, 'radix_bytes': 1}, 'fib6': {'bytes': 24, "
		"'radix_bytes': 2}}, {'node': 1, 'placed': false, 'fib4': {'bytes': 2}, "
		"'fib6': {'bytes': 3}}]}");

	assert_string_equal(
		text, "Process    0 B, at most 0 B\n"
		      "FIB node 0 copy of both tables: forwarders on it read 1.0 KiB; "
		      "writer's trees 3 B\n"
		      "FIB node 1 copy of both tables: forwarders on it read 5 B; writer's "
		      "trees 0 B; the kernel refused to place the memory\n"
		      "FPM queue  0 B\n"
		      "Packets    0 of 0 buffers in use\n"
		      "\n"
		      "Table                used         of    refused  set by\n");
}

static void
the_version_has_lines_for_that_it_knows(void **state)
{
	assert_string_equal(
		printed(status_version,
			"{'version': '0.3', 'dpdk': 'DPDK 22.11', 'pid': 7, 'uptime_s': "
			"60, "
			"'config': '/etc/c.yaml', 'instructions': 'AVX-512', "
			"'instructions_best': 'AVX-512', 'lookup_instructions': 'AVX2', "
			"'lookup_instructions_best': 'AVX2', "
			"'restart_refused': 'no memory'}"),
		"fpm-dataplane 0.3, DPDK 22.11, pid 7, up 1 min 00 s\n"
		"    /etc/c.yaml\n"
		"    forwarding uses AVX-512, at most AVX-512 on this CPU\n"
		"    lookups use AVX2, at most AVX2 on this CPU\n"
		"    restart refused: no memory\n");
	assert_string_equal(printed(status_version, "{'version': '0.3', 'dpdk': ''}"),
			    "fpm-dataplane 0.3, pid 0, up 0.0 s\n");
}

static void
bond_print(const json_t *row)
{
	status_bond(stdout, row);
}

static void
the_members_of_a_bond_have_their_state(void **state)
{
	assert_string_equal(printed(bond_print, "{'mode': 'lacp', 'members': [{'device': "
						"'a', 'link': 'up', 'active': "
						"true, 'partner': '02:00:00:00:00:01'}, "
						"{'device': 'b', 'link': 'up', "
						"'active': false, 'partner': null}, "
						"{'device': 'c', 'link': 'down', "
						"'active': true}]}"),
			    ", lacp, a active with 02:00:00:00:00:01, b idle, c down");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, release)
	static const struct CMUnitTest tests[] = {
		TEST(the_session_has_its_state_in_words),
		TEST(counters_have_their_nouns),
		TEST(the_first_cause_for_a_warning_is_shown),
		TEST(times_are_those_of_half_and_of_all_but_a_hundredth),
		TEST(a_replay_is_told_with_its_sweeps),
		TEST(vrfs_have_a_replay_of_their_own),
		TEST(tables_and_objects_of_the_rib),
		TEST(limits_that_were_hit_are_in_one_line),
		TEST(the_kernel_is_shown_as_a_source),
		TEST(memory_is_shown_by_part_and_by_table),
		TEST(copies_of_the_fib_are_shown_by_node),
		TEST(the_version_has_lines_for_that_it_knows),
		TEST(the_members_of_a_bond_have_their_state),
	};

	return cmocka_run_group_tests_name("ctl_status", tests, NULL, NULL);
}
