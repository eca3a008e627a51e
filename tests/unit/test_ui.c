/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: answers, hostile and slow clients, clients that disconnect.
 *
 * link: fpm-dataplane/ui/ fpm-dataplane/base/ fpm-dataplane/pci/devargs.c tap-bridge/netns.c
 * link: fpm-dataplane/fib/sid_number.c
 */
#include "base/clock.h"
#include "base/filter_status.h"
#include "base/limits.h"
#include "test_ui.h"

#include <ctype.h>

static void
every_show_is_answered_with_its_keys(void **state)
{
	struct peer p = peer_open();
	json_t *rows = peer_ask(&p, "{\"show\": \"ports\"}");
	json_t *row = json_array_get(rows, 0);

	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(str_of(row, "name"), "wan0");
	assert_string_equal(str_of(row, "link"), "up");
	assert_int_equal(int_of(row, "ifindex"), 33);
	assert_int_equal(int_of(row, "mtu"), 1400);
	assert_int_equal(int_of(row, "rx_packets"), 1234);
	assert_int_equal(int_of(row, "rx_missed"), 8);
	assert_string_equal(str_of(row, "addresses4"), "10.0.1.1");
	assert_true(json_is_null(json_object_get(row, "addresses6")));
	json_decref(rows);
	rows = peer_ask(&p, "{\"show\": \"counters\"}");
	row = json_array_get(rows, DROP_ttl);
	assert_int_equal(json_array_size(rows), N_REASON + 10);
	assert_string_equal(str_of(row, "name"), "ttl");
	assert_string_equal(str_of(row, "kind"), "drop");
	assert_int_equal(int_of(row, "value"), 17);
	assert_string_equal(str_of(row, "text"), reason_info[DROP_ttl].text);
	json_decref(rows);
	rows = peer_ask(&p, "{\"show\": \"version\"}");
	assert_int_equal(int_of(json_array_get(rows, 0), "pid"), getpid());
	json_decref(rows);
	rows = peer_ask(&p, "{\"show\": \"neighbors\"}");
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	rows = peer_ask(&p, "{\"show\": \"memory\"}");
	assert_true(int_of(json_array_get(rows, 0), "rss_bytes") > 1 << 20);
	assert_int_equal(int_of(json_object_get(json_array_get(rows, 0), "fib6"), "bytes"),
			 2000);
	json_decref(rows);
	peer_close(&p);
}

/*
 * The rows of a long listing, and the rows (several slices) for each of many clients. With
 * sanitizers there are a sixth of them, because each row costs much more.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LISTED    5000
#define ROWS_EACH 500
#else
#define LISTED    30000
#define ROWS_EACH 3000
#endif

static void
a_listing_comes_whole_in_order_a_slice_at_a_time(void **state)
{
	struct peer p = peer_open();
	json_t *row;
	uint64_t n = 0;

	t.n_routes = LISTED;
	peer_say(&p, "{\"show\": \"routes\"}\n");
	while ((row = peer_row(&p)) != NULL && json_object_get(row, "end") == NULL) {
		json_t *want = fake_route(n++);

		assert_true(t.n_travelling <= 1);
		assert_true(json_equal(row, want));
		json_decref(want);
		json_decref(row);
	}
	assert_int_equal(int_of(row, "rows"), LISTED);
	assert_int_equal(n, LISTED);
	assert_int_equal(t.max_asked, 256);
	json_decref(row);
	peer_close(&p);
}

static void
a_client_that_does_not_read_delays_no_other(void **state)
{
	struct peer stopped = peer_open(), p = peer_open();

	peer_stall(&stopped, "{\"show\": \"routes\"}\n", &p);
	for (int i = 0; i < 200; i++) {
		json_t *rows = peer_ask(&p, "{\"show\": \"counters\"}");

		assert_int_equal(json_array_size(rows), N_REASON + 10);
		json_decref(rows);
	}
	assert_true(t.n_asked < 1100);
	/* The client goes on reading and gets the rest of the rows. */
	for (uint64_t n = 0; n < LISTED; n++) {
		json_t *row = peer_row(&stopped), *want = fake_route(n);

		assert_true(json_equal(row, want));
		json_decref(row);
		json_decref(want);
	}
	peer_close(&stopped);
	peer_close(&p);
}

static void
a_long_build_of_the_filter_is_told(void **state)
{
	struct peer p = peer_open();
	json_t *row;

	filter_status.generation = 7;
	filter_status.rules = 3;
	filter_status.busy_since_ms = monotonic_ms() - 5100;
	peer_say(&p, "{\"show\": \"filter\"}\n");
	row = peer_row(&p);
	assert_string_equal(str_of(row, "error"),
			    "a ruleset is being read and built for 5.1 s; until it is in "
			    "force, generation 7 with 3 rules filters the packets");
	json_decref(row);
	filter_status.busy_since_ms = 0;
	peer_close(&p);
}

/* The build begins while the query travels. The late reply is for no client. */
static void
a_client_does_not_wait_for_the_end_of_a_build(void **state)
{
	static const char said[] = "a ruleset is being read and built for 0.";
	struct peer p = peer_open();
	json_t *row;

	t.n_routes = 3;
	rib_hold(true);
	peer_say(&p, "{\"show\": \"filter\"}\n");
	wait_until(t.n_asked == 1);
	filter_status.busy_since_ms = monotonic_ms();
	row = peer_row(&p);
	assert_memory_equal(str_of(row, "error"), said, strlen(said));
	json_decref(row);
	filter_status.busy_since_ms = 0;
	rib_hold(false);
	peer_say(&p, "{\"show\": \"filter\"}\n");
	row = peer_rows(&p);
	assert_int_equal(json_array_size(row), 3);
	json_decref(row);
	peer_close(&p);
}

/* The build begins between two parts of a long answer. */
static void
the_rest_of_a_list_does_not_wait_for_a_build(void **state)
{
	static const char said[] = "a ruleset is being read and built for 0.";
	struct peer p = peer_open();
	const char *error = NULL;
	json_t *row;

	t.n_routes = 1000;
	t.hold_from = 2;
	rib_hold(true);
	peer_say(&p, "{\"show\": \"filter\"}\n");
	wait_until(t.n_asked == 2);
	filter_status.busy_since_ms = monotonic_ms();
	do {
		row = peer_row(&p);
		error = json_string_value(json_object_get(row, "error"));
		if (error != NULL)
			assert_memory_equal(error, said, strlen(said));
		json_decref(row);
	} while (error == NULL);
	filter_status.busy_since_ms = 0;
	rib_hold(false);
	t.hold_from = 0;
	peer_close(&p);
}

static void
a_client_may_leave_while_its_query_travels(void **state)
{
	struct peer p;

	t.n_routes = 1000;
	rib_hold(true);
	for (unsigned int i = 0; i < 20; i++) {
		p = peer_open();
		peer_say(&p, "{\"show\": \"routes\"}\n");
		wait_until(t.n_asked == i + 1);
		peer_close(&p);
	}
	/* One client stays and gets its own answer among those of the others. */
	p = peer_open();
	peer_say(&p, "{\"show\": \"nexthops\"}\n");
	wait_until(t.n_asked == 21);
	rib_hold(false);
	json_decref(peer_rows(&p));
	peer_close(&p);
}

static void
a_client_may_leave_between_two_slices(void **state)
{
	struct peer p;

	t.n_routes = 1u << 24;
	for (unsigned int i = 0; i < 20; i++) {
		p = peer_open();
		peer_say(&p, "{\"show\": \"routes\"}\n");
		json_decref(peer_row(&p));
		peer_close(&p);
	}
	p = peer_open();
	json_decref(peer_ask(&p, "{\"show\": \"version\"}"));
	peer_close(&p);
}

static void
the_end_may_come_while_queries_travel(void **state)
{
	struct peer p = peer_open();

	rib_hold(true);
	peer_say(&p, "{\"show\": \"routes\"}\n{\"show\": \"fpm\"}\n");
	wait_until(t.n_asked == 1);
	peer_close(&p); /* house_down() stops all threads now; nothing may leak */
}

static void
an_invalid_request_gets_a_sentence(void **state)
{
	static const char *const bad[][2] = {
		{"hello", "not a JSON object, such as {\"show\": \"ports\"}"},
		{"[]", "not a JSON object, such as {\"show\": \"ports\"}"},
		{"{}", "the key show is missing"},
		{"{\"show\": 1}", "show is not a string"},
		{"{\"show\": \"x\\u001b[1m\"}",
		 "cannot show 'x\\x1b[1m'; known are routes, nexthops, neighbors, ports, "
		 "counters, fpm, memory, version, audit, punt, cycles, interfaces, fib, "
		 "vrfs, threads, log, drops, groups, kernel, rules, warnings, filter, "
		 "sflow, bfd, labels, encaps, sids, hooks, flowspec"},
		{"{\"show\": \"routes\", \"prefix\": \"10.0.0.0/33\"}",
		 "'10.0.0.0/33' is not an address or prefix"},
		{"{\"show\": \"routes\", \"prefix\": \"10.0.0.1/8\"}",
		 "'10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8"},
		{"{\"show\": \"routes\", \"prefix\": 10}",
		 "'?' is not an address or prefix"},
		{"{\"show\": \"routes\", \"longest\": true}",
		 "longest needs a prefix or address"},
		{"{\"show\": \"routes\", \"family\": 5}", "family is not 4, 6 or 0"},
		{"{\"show\": \"routes\", \"family\": 6, \"prefix\": \"10.0.0.0/8\"}",
		 "the prefix is not of family 6"},
		{"{\"show\": \"routes\", \"longest\": 1}", "longest is not true or false"},
		{"{\"show\": \"ports\", \"prefix\": \"10.0.0.0/8\"}",
		 "ports are not found by prefix"},
		{"{\"show\": \"ports\", \"who\": 1}",
		 "unknown key 'who'; known are show, prefix, longest, family, all_tables, "
		 "vrf, of, via, dev, proto, state, level, name, repair, do, seconds, "
		 "config, port, hook, trace, capture, explain, set, class, rate, burst, "
		 "source_rate, source_burst"},
		{"{\"show\": \"ports\", \"via\": \"10.0.0.1\"}",
		 "via does not go with ports"},
		{"{\"do\": \"replay\", \"dev\": \"wan0\"}",
		 "dev does not go with a request without show"},
		{"{\"show\": \"routes\", \"state\": 1}", "state is not a string"},
		{"{\"show\": \"ports\", \"name\": \"\"}",
		 "name is a string of 1 to 63 octets"},
		{"{\"show\": \"version\", \"name\": \"x\"}",
		 "version are not found by name"},
		{"{\"config\": 1}",
		 "config takes an object: do (show, keys, reload), file, dry_run"},
		{"{\"config\": {\"do\": \"reload\", \"dry_run\": \"no\"}}",
		 "dry_run is not true or false"},
		{"{\"config\": {\"do\": \"reload\", \"file\": 7}}", "file is not a string"},
		{"{\"config\": {\"do\": \"show\"}, \"port\": {}}",
		 "one request at a time: show, do, set, config, port, hook, trace, "
		 "capture or explain"},
		{"{\"port\": {\"do\": \"add\", \"name\": \"a\"}}", "a port needs a device"},
		{"{\"port\": {\"do\": \"set\", \"name\": \"a\"}}",
		 "set needs device, mtu, queues or cores"},
		{"{\"port\": {\"do\": \"del\", \"name\": \"a\", \"mtu\": 1}}",
		 "del takes a name, and nothing else"},
		{"{\"port\": {\"do\": \"del\", \"name\": \"a\", \"who\": 1}}",
		 "unknown key 'who'; a port has name, device, mtu, queues and cores"},
		{"{\"port\": {\"do\": \"set\", \"name\": \"a\", \"mtu\": 1e99}}",
		 "mtu is not a whole number from 68 to 9216"},
		{"{\"port\": {\"do\": \"set\", \"name\": \"a\", \"queues\": 1.5}}",
		 "queues is not a whole number from 1 to 64"},
		{"{\"port\": {\"do\": \"set\", \"name\": \"a\", \"cores\": \"1,2\"}}",
		 "cores takes one CPU number per queue, or auto"},
		{"{\"port\": {\"do\": \"set\", \"name\": \"a\", \"cores\": true}}",
		 "cores is not a list of CPU numbers, nor auto"},
		{"{\"port\": {\"do\": \"set\", \"name\": 7}}", "name is not a string"},
		{"{\"port\": {\"name\": \"a\"}}",
		 "port takes an object: do (add, set, del), name, device, mtu, queues, "
		 "cores"},
		{"{\"hook\": 1}", "hook takes an object: do (load, unload), dev; and for "
				  "load: file, id, at, of, "
				  "program"},
		{"{\"hook\": {\"do\": \"unload\", \"dev\": \"a\", \"file\": \"f\"}}",
		 "hook takes an object: do (load, unload), dev; and for load: file, id, "
		 "at, of, program"},
		{"{\"hook\": {\"do\": \"unload\", \"dev\": "
		 "\"0123456789012345678901234567890123456789012345678901234567890123\"}}",
		 "dev has 1 to 63 octets"},
		{"{\"port\": {\"do\": \"add\", \"name\": \"interface-of-16-\", \"device\": "
		 "\"x\"}}",
		 "a port's name has 1 to 15 characters"},
		{"{\"port\": {\"do\": \"del\", \"name\": "
		 "\"0123456789012345678901234567890123456789012345678901234567890123\"}}",
		 "a port's name has 1 to 63 octets"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"id\": 4294967296}}",
		 "id '4294967296' is not a whole number from 0 to 4294967295"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\"}}",
		 "load needs file, of and program"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"file\": \"\", \"of\": 1, "
		 "\"program\": \"\"}}",
		 "file has 1 to 63 octets"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"file\": \"f\", \"of\": "
		 "4097, \"program\": \"\"}}",
		 "of '4097' is not a whole number from 1 to 4096"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"file\": \"f\", \"of\": "
		 "2, \"at\": 2, \"program\": \"\"}}",
		 "at '2' is not a whole number from 0 below of"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"file\": \"f\", \"of\": "
		 "1, \"program\": \"AAA\"}}",
		 "program is no base64 of at most 256 instructions"},
		{"{\"hook\": {\"do\": \"load\", \"dev\": \"a\", \"file\": \"f\", \"of\": "
		 "1, \"program\": \"AAAA\"}}",
		 "program is no base64 of 1 to 256 instructions of 8 octets"},
		{"{\"trace\": 1}", "trace, capture and explain take an object"},
		{"{\"trace\": {}, \"show\": \"ports\"}",
		 "one request at a time: show, do, set, config, port, hook, trace, "
		 "capture or explain"},
		{"{\"trace\": {}, \"capture\": {}}",
		 "one request at a time: show, do, set, config, port, hook, trace, "
		 "capture or explain"},
		{"{\"trace\": {\"src\": \"10.0.0.0/33\"}}",
		 "src, dst and host are addresses or prefixes"},
		{"{\"trace\": {\"sport\": 65536}}", "sport and dport are 1 to 65535"},
		{"{\"trace\": {\"proto\": -1}}", "proto is 0 to 255"},
		{"{\"trace\": {\"verdict\": \"lost\"}}",
		 "verdict is forwarded, punted or dropped"},
		{"{\"trace\": {\"reason\": \"x\"}}",
		 "no such reason 'x'; `fpmctl show counters all` lists them"},
		{"{\"trace\": {\"port\": \"eth9\"}}",
		 "no port or VLAN 'eth9': `fpmctl show interfaces` lists them"},
		{"{\"trace\": {\"src\": \"10.0.0.1\", \"dst\": \"::1\"}}",
		 "src, dst and host are of different families"},
		{"{\"trace\": {\"proto\": 1, \"sport\": 5}}",
		 "sport and dport are of TCP, UDP and SCTP: that proto has none"},
		{"{\"trace\": {\"verdict\": \"forwarded\", \"reason\": \"ttl\"}}",
		 "a forwarded packet has no reason"},
		{"{\"capture\": {\"points\": [\"up\"]}}", "points are rx, tx and drop"},
		{"{\"capture\": {\"points\": [\"tx\"], \"reason\": \"ttl\"}}",
		 "a sent packet has no reason; points rx and drop have one"},
		{"{\"explain\": {}}", "explain needs a port"},
		{"{\"explain\": {\"port\": \"wan0\", \"frame\": \"0g\"}}",
		 "frame is not an even number of hexadecimal digits"},
		{"{\"explain\": {\"port\": \"wan0\", \"count\": 1}}",
		 "unknown key 'count'; explain has port, frame and frame_bytes"},
		{"{\"trace\": {\"points\": [\"rx\"]}}",
		 "unknown key 'points'; trace has port, src, dst, host, proto, sport, "
		 "dport, verdict, reason, count and for_s"},
		{"{\"capture\": {\"verdict\\u001b\": \"dropped\"}}",
		 "unknown key 'verdict\\x1b'; capture has port, src, dst, host, proto, "
		 "sport, dport, points, reason, snap, count and for_s"},
		{"{\"trace\": {\"count\": -1}}",
		 "count is a whole number from 0 to 1000000000"},
		{"{\"trace\": {\"for_s\": \"1\"}}",
		 "for_s is a number of seconds from 0 to 86400"},
		{"{\"trace\": {\"for_s\": 86401}}",
		 "for_s is a number of seconds from 0 to 86400"},
		{"{\"capture\": {\"snap\": 13}}", "snap is a whole number from 14 to 1920"},
		{"{\"explain\": {\"port\": \"wan0\", \"frame_bytes\": 65521}}",
		 "frame_bytes is a whole number from 0 to 65520"},
		{"{\"set\": \"mtu\"}", "set takes 'policer' only"},
		{"{\"set\": \"policer\"}",
		 "set needs a class, and a rate, burst, source_rate or source_burst"},
		{"{\"set\": \"policer\", \"class\": \"icmp\"}",
		 "set needs a class, and a rate, burst, source_rate or source_burst"},
		{"{\"set\": \"policer\", \"rate\": 1}",
		 "set needs a class, and a rate, burst, source_rate or source_burst"},
		{"{\"set\": \"policer\", \"class\": \"icmq\", \"rate\": 1}",
		 "no class 'icmq'; `fpmctl show punt` lists them"},
		{"{\"set\": \"policer\", \"class\": 7, \"rate\": 1}",
		 "no class ''; `fpmctl show punt` lists them"},
		{"{\"rate\": -1}",
		 "rate is not a whole number from 0 to 10000000, nor unlimited"},
		{"{\"burst\": \"unlimited\"}",
		 "burst is not a whole number from 1 to 1000000"},
		{"{\"show\": \"punt\", \"rate\": 1}", "class and rates go with set"},
		{"{\"show\": \"ports\", \"show\": \"fpm\"}",
		 "not a JSON object, such as {\"show\": \"ports\"}"},
	};
	struct peer p = peer_open();
	char line[256];

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *row;

		snprintf(line, sizeof(line), "%s\n", bad[i][0]);
		row = peer_error(&p, line);
		assert_string_equal(str_of(row, "error"), bad[i][1]);
		assert_int_equal(int_of(row, "code"), 2);
		json_decref(row);
	}
	/* The connection is still served. */
	json_decref(peer_ask(&p, "{\"show\": \"ports\"}"));
	peer_close(&p);
}

/* Without zebra a replay is refused, and reads no tables of the kernel either. */
static void
a_refused_replay_reads_nothing(void **state)
{
	struct peer p = peer_open();
	json_t *row;
	struct msg *m;

	row = peer_error(&p, "{\"do\": \"replay\"}\n");
	peer_close(&p);
	assert_string_equal(str_of(row, "error"),
			    "zebra is not connected; it replays when it connects");
	json_decref(row);
	assert_null(worker_take(&t.rtnl));
	assert_int_equal(house_down(state), 0);
	assert_int_equal(house_begin("kernel"), 0); /* no zebra is expected */
	p = peer_open();
	json_decref(peer_ask(&p, "{\"do\": \"replay\"}"));
	peer_close(&p);
	m = worker_take(&t.rtnl);
	assert_non_null(m);
	assert_int_equal(m->type, MSG_REPLAY);
	msg_free(m);
}

static void
a_line_without_end_is_cut_at_4_kib(void **state)
{
	struct peer p = peer_open();
	char flood[8192];
	json_t *row;

	memset(flood, ' ', sizeof(flood));
	flood[sizeof(flood) - 1] = '\0';
	row = peer_error(&p, flood);
	assert_string_equal(str_of(row, "error"), "request longer than 4096 octets");
	json_decref(row);
	assert_null(peer_row(&p));
	peer_close(&p);
}

static void
random_octets_never_crash(void **state)
{
	static const char good[] = "{\"show\": \"routes\", \"prefix\": \"10.0.0.0/8\"}\n";
	unsigned int seed = (unsigned int)time(NULL) ^ (unsigned int)getpid();
	struct peer p;

	printf("seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 500; i++) {
		char text[sizeof(good)];
		ssize_t n;

		memcpy(text, good, sizeof(text));
		for (int k = rand() % 8; k >= 0; k--)
			text[(size_t)rand() % (sizeof(text) - 1)] = (char)rand();
		if (isupper((unsigned char)text[0])) /* a method of HTTP: test_ui_api.c */
			text[0] = '{';
		p = peer_open();
		n = send(p.fd, text, (size_t)rand() % sizeof(text), MSG_NOSIGNAL);
		assert_true(n >= 0);
		if (rand() % 2 != 0) {
			shutdown(p.fd, SHUT_WR);
			for (json_t *row; (row = peer_row(&p)) != NULL;)
				json_decref(row);
		}
		peer_close(&p);
	}
	p = peer_open();
	json_decref(peer_ask(&p, good));
	peer_close(&p);
}

static void
requests_in_one_write_are_answered_in_order(void **state)
{
	struct peer p = peer_open();
	json_t *rows;

	t.n_routes = 600;
	peer_say(&p, "{\"show\": \"routes\"}\n\n{\"show\": \"ports\"}\r\n{\"show\": "
		     "\"version\"}");
	shutdown(p.fd, SHUT_WR); /* the last line needs no newline */
	rows = peer_rows(&p);
	assert_int_equal(json_array_size(rows), 600);
	json_decref(rows);
	rows = peer_rows(&p);
	assert_int_equal(json_array_size(rows), 2);
	json_decref(rows);
	rows = peer_rows(&p);
	assert_string_equal(str_of(json_array_get(rows, 0), "version"), "1.0-test");
	json_decref(rows);
	assert_null(peer_row(&p));
	peer_close(&p);
}

static void
a_hundred_clients_are_served_at_once(void **state)
{
	struct peer p[100];

	t.n_routes = ROWS_EACH;
	for (int i = 0; i < 100; i++)
		p[i] = peer_open();
	for (int i = 0; i < 100; i++)
		peer_say(&p[i], "{\"show\": \"routes\"}\n");
	for (int i = 99; i >= 0; i--) {
		json_t *rows = peer_rows(&p[i]);

		assert_int_equal(json_array_size(rows), ROWS_EACH);
		json_decref(rows);
		peer_close(&p[i]);
	}
}

static void
too_many_clients_are_refused_and_room_comes_back(void **state)
{
	struct peer p[256], one_more;
	json_t *row;

	for (int i = 0; i < 256; i++) {
		p[i] = peer_open();
		json_decref(peer_ask(&p[i], "{\"show\": \"version\"}"));
	}
	one_more = peer_open();
	peer_say(&one_more, "{");
	row = peer_row(&one_more);
	assert_string_equal(str_of(row, "error"),
			    "too many clients: limits.clients is 256");
	assert_int_equal(int_of(row, "code"), 1);
	json_decref(row);
	assert_null(peer_row(&one_more));
	peer_close(&one_more);
	for (int i = 0; i < 256; i++)
		peer_close(&p[i]);
	for (bool served = false; !served;) {
		one_more = peer_open();
		peer_say(&one_more, "{\"show\": \"version\"}\n");
		row = peer_row(&one_more);
		served = row != NULL && json_object_get(row, "version") != NULL;
		json_decref(row);
		peer_close(&one_more);
	}
}

static void
a_silent_client_beyond_the_limit_is_refused_or_served_later(void **state)
{
	struct peer p[256], silent[WAITING_MAX + 1];
	json_t *row, *rows;

	for (int i = 0; i < 256; i++) {
		p[i] = peer_open();
		json_decref(peer_ask(&p[i], "{\"show\": \"version\"}"));
	}
	for (int i = 0; i <= WAITING_MAX; i++)
		silent[i] = peer_open();
	row = peer_row(&silent[0]);
	assert_string_equal(str_of(row, "error"),
			    "too many clients: limits.clients is 256");
	json_decref(row);
	assert_null(peer_row(&silent[0]));
	for (int i = 0; i < 256; i++)
		peer_close(&p[i]);
	/* When another connection is accepted, the closed connections have ended. */
	for (bool served = false; !served;) {
		struct peer one_more = peer_open();

		peer_say(&one_more, "{\"show\": \"version\"}\n");
		row = peer_row(&one_more);
		served = row != NULL && json_object_get(row, "version") != NULL;
		json_decref(row);
		peer_close(&one_more);
	}
	rows = peer_ask(&silent[WAITING_MAX], "{\"show\": \"version\"}");
	assert_non_null(json_object_get(json_array_get(rows, 0), "version"));
	json_decref(rows);
	for (int i = 0; i <= WAITING_MAX; i++)
		peer_close(&silent[i]);
}

static void
the_channel_is_shown_with_ribs_summary_and_fpm_wins(void **state)
{
	struct peer p = peer_open();
	json_t *rows, *row;

	fpm_status.connected = 1;
	fpm_status.gen = 3;
	fpm_status.queue_bytes_in = 1000;
	fpm_status.queue_bytes_out = 400;
	rows = peer_ask(&p, "{\"show\": \"fpm\"}");
	row = json_array_get(rows, 0);
	assert_true(json_is_true(json_object_get(row, "connected")));
	assert_int_equal(int_of(row, "generation"), 3);
	assert_int_equal(int_of(row, "queue_bytes"), 600);
	assert_int_equal(int_of(row, "routes4"), 42);
	assert_int_equal(int_of(row, "stale"), 5);
	json_decref(rows);
	peer_close(&p);
}

static void
a_rib_that_does_not_answer_leaves_the_last_summary(void **state)
{
	struct peer p = peer_open();
	json_t *rows = peer_ask(&p, "{\"show\": \"fpm\"}");

	json_decref(rows);
	rib_hold(true);
	for (int i = 0; i < 3; i++) {
		rows = peer_ask(&p, "{\"show\": \"fpm\"}");
		assert_int_equal(int_of(json_array_get(rows, 0), "routes4"), 42);
		json_decref(rows);
	}
	assert_true(t.n_held <= 1); /* rib is asked once for any number of clients */
	rib_hold(false);
	peer_close(&p);
}

static void
the_socket_is_for_owner_and_group_only(void **state)
{
	struct stat st;

	assert_int_equal(stat(t.socket, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void
a_second_daemon_is_refused_and_the_first_goes_on(void **state)
{
	struct ui_conf conf = ui_conf_make();
	struct worker second;
	struct peer p;

	conf.metrics_on = false;
	assert_int_equal(ui_start(&second, &conf), -EADDRINUSE);
	ui_end(&second);
	p = peer_open();
	json_decref(peer_ask(&p, "{\"show\": \"version\"}"));
	peer_close(&p);
}

static void
a_busy_metrics_address_is_refused_and_leaves_no_socket(void **state)
{
	struct ui_conf conf = ui_conf_make();
	struct worker second;
	char path[64];

	snprintf(path, sizeof(path), "%s/second.sock", t.dir);
	conf.control_socket = path;
	assert_int_equal(ui_start(&second, &conf), -EADDRINUSE);
	ui_end(&second);
	assert_int_equal(access(path, F_OK), -1);
}

static void
a_stale_socket_is_replaced_a_file_is_not(void **state)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ui_conf conf = ui_conf_make();
	struct worker second;
	FILE *f;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/stale.sock", t.dir);
	conf.control_socket = sun.sun_path;
	conf.metrics_on = false;
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	assert_int_equal(ui_start(&second, &conf), 0);
	worker_stop(&second);
	/*
	 * Stop rib before the mailbox of `second` is freed, because rib may be sending an
	 * answer to it.
	 */
	worker_stop(&t.rib);
	ui_end(&second);
	assert_int_equal(access(sun.sun_path, F_OK), -1);
	f = fopen(sun.sun_path, "w");
	fclose(f);
	assert_int_equal(ui_start(&second, &conf), -EEXIST);
	ui_end(&second);
	assert_int_equal(unlink(sun.sun_path), 0);
}

#define ui_test(name) cmocka_unit_test_setup_teardown(name, house_up, house_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ui_test(every_show_is_answered_with_its_keys),
		ui_test(a_listing_comes_whole_in_order_a_slice_at_a_time),
		ui_test(a_client_that_does_not_read_delays_no_other),
		ui_test(a_long_build_of_the_filter_is_told),
		ui_test(a_client_does_not_wait_for_the_end_of_a_build),
		ui_test(the_rest_of_a_list_does_not_wait_for_a_build),
		ui_test(a_client_may_leave_while_its_query_travels),
		ui_test(a_client_may_leave_between_two_slices),
		ui_test(the_end_may_come_while_queries_travel),
		ui_test(an_invalid_request_gets_a_sentence),
		ui_test(a_refused_replay_reads_nothing),
		ui_test(a_line_without_end_is_cut_at_4_kib),
		ui_test(random_octets_never_crash),
		ui_test(requests_in_one_write_are_answered_in_order),
		ui_test(a_hundred_clients_are_served_at_once),
		ui_test(too_many_clients_are_refused_and_room_comes_back),
		ui_test(a_silent_client_beyond_the_limit_is_refused_or_served_later),
		ui_test(the_channel_is_shown_with_ribs_summary_and_fpm_wins),
		ui_test(a_rib_that_does_not_answer_leaves_the_last_summary),
		ui_test(the_socket_is_for_owner_and_group_only),
		ui_test(a_second_daemon_is_refused_and_the_first_goes_on),
		ui_test(a_busy_metrics_address_is_refused_and_leaves_no_socket),
		ui_test(a_stale_socket_is_replaced_a_file_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
