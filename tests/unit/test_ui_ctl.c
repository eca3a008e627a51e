/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program fpmctl with a ui worker: words, tables, JSON, exit codes. The tests are
 * skipped if the program was not built beside them.
 *
 * link: fpm-dataplane/ui/ fpm-dataplane/base/ fpm-dataplane/pci/devargs.c tap-bridge/netns.c
 * link: fpm-dataplane/fib/sid_number.c
 */
#include "test_ui.h"

#include <libgen.h>
#include <sys/wait.h>

static char fpmctl[512];
static char out[1 << 20]; /* stdout and stderr of the last run */

/*
 * Start `fpmctl ARGS` in a shell with $FPMCTL_SOCKET set, by the emulator $RUN_BY if there is
 * one (run.sh).
 */
static FILE *
ctl_start(const char *args)
{
	const char *by = getenv("RUN_BY");
	char command[1024];
	FILE *f;

	snprintf(command, sizeof(command), "exec 2>&1; FPMCTL_SOCKET=%s %s %s %s", t.socket,
		 by == NULL ? "" : by, fpmctl, args);
	f = popen(command, "r");
	assert_non_null(f);
	return f;
}

/* Run `fpmctl ARGS`. Return the exit code. */
static int
ctl(const char *args)
{
	size_t len;
	FILE *f;

	if (access(fpmctl, X_OK) < 0) {
		print_message("skipped: %s is not built\n", fpmctl);
		skip();
	}
	f = ctl_start(args);
	len = fread(out, 1, sizeof(out) - 1, f);
	out[len] = '\0';
	return WEXITSTATUS(pclose(f));
}

#define has(text) assert_non_null(strstr(out, text))

static void
tables_are_for_people(void **state)
{
	t.n_routes = 2;
	assert_int_equal(ctl("show routes"), 0);
	assert_string_equal(out,
			    "PREFIX              SOURCE    NEXT HOPS\n"
			    "10.0.0.0/32         bgp       via 10.0.1.2 dev wan0\n"
			    "                              dev wan1 weight 2 (dead)\n"
			    "10.0.0.1/32         bgp       via 10.0.1.2 dev wan0\n"
			    "                              dev wan1 weight 2 (dead)\n");
	assert_int_equal(ctl("show counters"), 0);
	has("drop  ttl                            17  time to live expired (an ICMP error "
	    "is\n"
	    "                                         sent within its rate)\n");
	assert_null(strstr(out, "no_route"));
	assert_int_equal(ctl("show counters all"), 0);
	has("no_route");
	assert_int_equal(ctl("show ports"), 0);
	has("wan0            up    1400 ");
	assert_int_equal(ctl("show neighbors -4"), 0);
	has("10.0.1.2                  wan0        -                 stale      host\n");
	assert_int_equal(ctl("show fpm"), 0);
	has("Table IPv4 42 prefixes");
	assert_int_equal(ctl("show memory"), 0);
	has("Process ");
	assert_int_equal(ctl("show version"), 0);
	has("fpm-dataplane 1.0-test");
	assert_int_equal(ctl("show nexthops"), 0);
	has("ID STATE          GROUPS   ROUTES NEXT HOP\n");
	assert_int_equal(ctl("show groups"), 0);
	has("GROUP      ID   ROUTES BUCKETS STATE       NEXT HOPS\n");
	for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
}

static void
json_is_one_array_of_the_rows(void **state)
{
	static const char *const words[] = {"routes",   "nexthops", "neighbors", "ports",
					    "counters", "fpm",      "memory",    "version"};

	t.n_routes = 600;
	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char args[64];
		json_t *rows;

		snprintf(args, sizeof(args), "--json show %s", words[i]);
		assert_int_equal(ctl(args), 0);
		rows = json_loads(out, 0, NULL);
		assert_true(json_is_array(rows));
		assert_int_equal(json_array_size(rows), i < 2    ? 600
							: i == 3 ? 2
							: i == 4 ? N_REASON + 10
								 : 1);
		json_decref(rows);
	}
	t.n_routes = 0;
	assert_int_equal(ctl("--json show routes"), 0);
	assert_string_equal(out, "[]\n");
	assert_int_equal(ctl("show routes"), 0);
	assert_string_equal(out, "no routes\n");
}

static void
a_route_not_found_is_code_3(void **state)
{
	assert_int_equal(ctl("show routes 10.0.0.1"), 0);
	assert_int_equal(ctl("show routes 192.0.2.1"), 3);
	assert_string_equal(out, "no route to 192.0.2.1\n");
	assert_int_equal(ctl("show routes 192.0.2.0/24 longest"), 3);
	assert_int_equal(ctl("show routes 192.0.2.9 exact"), 3);
	has("no prefix 192.0.2.9; `longest` finds the prefix that covers it\n");
	assert_int_equal(ctl("--json show routes 192.0.2.1 exact"), 3);
	assert_string_equal(out, "[]\n");
}

static void
wrong_words_are_code_2_with_a_usage_line(void **state)
{
	static const char *const wrong[] = {"",
					    "show",
					    "shew ports",
					    "show prts",
					    "show version all",
					    "show routes bgp",
					    "show routes longest",
					    "show routes 10.0.0.0/33",
					    "show routes 10.0.0.0/8 -6",
					    "show ports -4",
					    "show counters all ttl more"};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(ctl(wrong[i]), 2);
		has("usage: fpmctl [OPTIONS] ");
	}
}

static void
a_wrong_option_is_code_2_with_one_sentence(void **state)
{
	assert_int_equal(ctl("--jsn show ports"), 2);
	assert_string_equal(out, "fpmctl: unknown option --jsn (words take no dashes; see "
				 "`fpmctl help`)\n");
	assert_int_equal(ctl("-s"), 2);
	assert_string_equal(out, "fpmctl: -s needs a value\n");
}

static void
the_seconds_of_a_watch_stand_behind_a_sign(void **state)
{
	assert_int_equal(ctl("show ports --watch 5"), 2);
	assert_string_equal(
		out, "fpmctl: --watch takes its seconds after a '=', as in --watch=5\n");
	assert_int_equal(ctl("--rates 0.5s show ports"), 2);
	has("--rates=5");
	/* A word behind --rates that is no time belongs to the command. */
	assert_int_equal(ctl("show ports --rates wan0"), 0);
	has("now rx ");
}

static void
a_watch_of_nothing_ends(void **state)
{
	assert_int_equal(ctl("show ports --watch=0.1 foo | head -9"), 0);
	assert_string_equal(out, "no row foo in ports; `fpmctl show ports` lists all\n");
	assert_int_equal(ctl("show ports --watch=0.1 foo"), 3);
	assert_int_equal(ctl("show routes 192.0.2.1 --watch=0.1 --json"), 3);
	assert_string_equal(out, "[]\n");
}

static void
an_option_twice_with_two_values_is_code_2(void **state)
{
	static const char *const wrong[] = {
		"show routes -4 -6",
		"-6 show neighbors -4",
		"show ports --watch=1 --watch=2",
		"-s /tmp/a -s /tmp/b show ports",
		"audit --vtysh vtysh --vtysh 'vtysh -N r1'",
		"capture -w /dev/null -w /nowhere",
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(ctl(wrong[i]), 2);
		assert_non_null(strstr(out, i < 2 ? "exclude each other" : "given twice"));
		assert_ptr_equal(strchr(out, '\n') + 1, out + strlen(out));
	}
	assert_int_equal(ctl("show routes -4 -4"), 0);
}

static void
help_behind_a_command_is_of_that_command(void **state)
{
	assert_int_equal(ctl("hold --help"), 0);
	has("usage: fpmctl [OPTIONS] hold [SECONDS]\n");
	assert_int_equal(ctl("--help"), 0);
	has("usage: fpmctl [OPTIONS] COMMAND ...\n");
	assert_int_equal(ctl("--json help"), 2);
	assert_int_equal(ctl("--socket '' show ports"), 2);
	has("fpmctl: -s needs a value\n");
}

static void
a_word_that_chooses_is_one_of_its_list(void **state)
{
	assert_int_equal(ctl("show neighbors state FOO"), 2);
	assert_string_equal(out, "fpmctl: state 'FOO' is none of reachable, stale, delay, "
				 "probe, permanent, incomplete, failed, noarp, none\n");
	assert_int_equal(ctl("show routes state stale"), 2);
	has("is none of forwarding, local, ");
	assert_int_equal(ctl("show nexthops state local"), 2);
	has("is none of forwarding, failed, ");
	assert_int_equal(ctl("show groups state FOO"), 2);
	assert_int_equal(ctl("show log level loud"), 2);
	has("none of error, warn, info, debug\n");
	assert_int_equal(ctl("show routes proto bpg"), 2);
	has("bgp, isis, ospf, ");
	has(", connected, local, nor a number below 256\n");
	assert_int_equal(ctl("show routes proto 256"), 2);
	/* Valid values that match no row: nothing is found. */
	assert_int_equal(ctl("show neighbors state failed"), 3);
	assert_int_equal(ctl("show routes proto rip"), 3);
	assert_int_equal(ctl("show routes proto 99"), 3);
	t.n_routes = 1;
	assert_int_equal(ctl("show routes proto 186 state forwarding"), 0);
	t.n_routes = 600; /* three slices, without a match */
	assert_int_equal(ctl("show routes proto rip"), 3);
	assert_string_equal(out, "no rows of routes match proto rip\n");
}

static void
wrong_words_of_routes_are_refused(void **state)
{
	t.n_routes = 1;
	assert_int_equal(ctl("show routes vrf"), 2);
	has("fpmctl: vrf needs NAME");
	assert_int_equal(ctl("show routes vrf red vrf red"), 2);
	assert_string_equal(out, "fpmctl: vrf is given twice\n");
	assert_int_equal(ctl("show routes longest"), 2);
	has("fpmctl: longest needs an ADDRESS or a PREFIX\n");
	assert_int_equal(ctl("show routes 10.0.0.0/8 longest exact"), 2);
	assert_string_equal(
		out,
		"fpmctl: longest and exact exclude each other: give one of them, once\n");
	assert_int_equal(ctl("show counters all all"), 2);
	assert_string_equal(out, "fpmctl: all is given twice\n");
	/* The words may come in any order. */
	assert_int_equal(ctl("show routes vrf red longest 10.0.0.0/8 via 10.0.1.2"), 0);
	assert_int_equal(ctl("show routes dev wan1 10.0.0.0"), 0);
}

static void
an_unknown_vrf_is_answered_with_the_known_ones(void **state)
{
	static struct fib_vrf strange[9];

	assert_int_equal(ctl("show routes vrf blue"), 2);
	has("fpmctl: no VRF 'blue' has a FIB; VRFs with a FIB: red "
	    "(`fpmctl show vrfs`)\n");
	assert_int_equal(ctl("show routes vrf default"), 2);
	has("fpmctl: table main is no VRF: `fpmctl show routes` shows its routes ");
	/* The longest possible names. Each octet is printed as four. */
	for (unsigned int i = 0; i < 9; i++) {
		memset(strange[i].name, 1, sizeof(strange[i].name) - 1);
		t.fib.vrf[8 + i] = &strange[i];
	}
	assert_int_equal(ctl("show routes vrf blue"), 2);
	has("\\x01, ...");
	memset(&t.fib.vrf[8], 0, 9 * sizeof(t.fib.vrf[8]));
	t.fib.vrf[7] = NULL;
	assert_int_equal(ctl("show routes vrf red"), 2);
	has("fpmctl: no VRF 'red' has a FIB, and no other VRF has one: `ip link add ");
}

static void
a_search_without_result_names_the_searched_table(void **state)
{
	assert_int_equal(ctl("show routes vrf red 192.0.2.1"), 3);
	assert_string_equal(out, "no route to 192.0.2.1 in VRF red\n");
}

static void
a_group_is_shown_by_its_number(void **state)
{
	json_t *rows;

	t.n_routes = 300; /* and as many groups */
	assert_int_equal(ctl("--json show groups 042"), 0);
	rows = json_loads(out, 0, NULL);
	assert_int_equal(json_array_size(rows), 1);
	assert_int_equal(int_of(json_array_get(rows, 0), "group"), 42);
	json_decref(rows);
	assert_int_equal(ctl("show nexthops 299"), 0);
	assert_int_equal(ctl("show groups 300"), 3);
	assert_string_equal(out, "no row 300 in groups; `fpmctl show groups` lists all\n");
	assert_int_equal(ctl("show groups 00"), 0);
	assert_int_equal(ctl("show groups 99999999999999999999999"), 3);
	has("no row 99999999999999999999999 in groups; ");
	assert_int_equal(ctl("show groups nine"), 2);
	has("fpmctl: 'nine' is not a number\n");
	assert_int_equal(ctl("--complete=groups"), 0);
	has("0 1 2 3 ");
}

static void
words_of_a_packet_that_come_to_nothing_are_refused(void **state)
{
	static const struct {
		const char *words, *said;
	} wrong[] = {
		{"explain dst 10.0.0.1 proto icmp sport 5",
		 "only tcp, udp and sctp have sport"},
		{"explain dst 10.0.0.1 label 100", "label is for IPv6"},
		{"explain dst 2001:db8::1 df", "df is for IPv4"},
		{"explain hex 00 dst 10.0.0.1", "hex is the whole frame"},
		{"explain hex 00 ttl 5", "hex is the whole frame"},
		{"explain hex 0000 len 1", "less than the 2 octets of hex"},
		{"explain hex 000", "an even number of hexadecimal digits"},
		{"explain hex ''", "an even number of hexadecimal digits"},
		{"explain", "explain needs dst ADDRESS"},
		{"explain dst 10.0.0.1 src 2001:db8::1", "of different families"},
		{"explain dst 10.0.0.1 port ''", "port needs NAME"},
		{"trace dst 10.0.0.1 host 2001:db8::/32", "of different families"},
		{"trace proto 1 dport 5", "only tcp, udp and sctp have sport"},
		{"trace proto icmp dst 2001:db8::1", "use icmp6"},
		{"trace forwarded reason no_route", "forwarded packets have no reason"},
		{"capture proto ospf sport 89", "only tcp, udp and sctp have sport"},
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char args[256];

		/* The answer needs no daemon. */
		snprintf(args, sizeof(args), "-s /nowhere %s", wrong[i].words);
		assert_int_equal(ctl(args), 2);
		has(wrong[i].said);
		assert_ptr_equal(strchr(out, '\n') + 1, out + strlen(out));
	}
	assert_int_equal(ctl("-s /nowhere trace proto tcp sport 5"), 1);
	assert_int_equal(ctl("-s /nowhere explain dst 2001:db8::1 proto icmp label 5"), 1);
	assert_int_equal(ctl("-s /nowhere explain hex 0000 len 60 port wan0"), 1);
}

static void
a_capture_that_is_refused_leaves_the_file_as_it_was(void **state)
{
	char args[128], old[128], path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/old.pcapng", t.dir);
	f = fopen(path, "w");
	assert_true(f != NULL && fputs("kept", f) >= 0);
	fclose(f);
	snprintf(args, sizeof(args), "capture -w %s port nosuch", path);
	assert_int_equal(ctl(args), 2);
	f = fopen(path, "r");
	assert_non_null(fgets(old, sizeof(old), f));
	assert_string_equal(old, "kept");
	fclose(f);
	unlink(path);
	assert_int_equal(ctl(args), 2);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(args, sizeof(args), "--json capture -w %s", path);
	assert_int_equal(ctl(args), 2);
	has("fpmctl: --json is for commands with rows");
}

static void
errors_of_a_file_are_rows_whatever_its_name(void **state)
{
	json_t *rows, *row;
	char file[128], args[160];
	size_t i;
	FILE *f;

	snprintf(file, sizeof(file), "%s/a\xff\nb.yaml", t.dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fputs("prts: 1\n", f);
	fclose(f);
	snprintf(args, sizeof(args), "config check --json '%s'", file);
	assert_int_equal(ctl(args), 2);
	rows = json_loads(out, 0, NULL);
	snprintf(args, sizeof(args), "config reload '%s'", file);
	assert_int_equal(ctl(args), 2); /* the file's path is no UTF-8 */
	has("fpmctl: the path of the file is not UTF-8, but a request to the daemon must "
	    "be");
	unlink(file);
	assert_int_equal(json_array_size(rows), 2);
	json_array_foreach (rows, i, row) {
		assert_non_null(strstr(str_of(row, "wrong"), "/a\\xff\\x0ab.yaml:1:1: p"));
		assert_int_equal(int_of(row, "line"), 1);
		assert_int_equal(int_of(row, "column"), 1);
	}
	json_decref(rows);
}

/*
 * The numbers have a sign, a fraction, a unit, an exponent, blanks or another base, or are
 * empty or too large.
 */
static void
an_invalid_number_gets_one_sentence_with_the_allowed_values(void **state)
{
	static const char *const none[] = {"+5",
					   "1.5",
					   "10k",
					   "1e3",
					   " 5",
					   "5 ",
					   "0x10",
					   "\u0665",
					   "",
					   "many",
					   "1,5",
					   "inf",
					   "99999999999999999999"};
	static const struct {
		const char *words, *name, *want;
	} number[] = {
		{"set policer icmp rate", "rate",
		 "a whole number of packets a second from 0 to 10000000, nor unlimited"},
		{"set policer icmp burst 7 source-rate", "source-rate",
		 "a whole number of packets a second from 0 to 10000000, nor unlimited"},
		{"set policer icmp burst", "burst",
		 "a whole number of packets from 1 to 1000000"},
		{"set policer icmp source-burst", "source-burst",
		 "a whole number of packets from 1 to 1000000"},
		{"port set wan0 mtu", "mtu", "a whole number from 68 to 9216"},
		{"port set wan0 queues", "queues", "a whole number from 1 to 64"},
		{"hold", "hold", "a whole number of seconds from 0 to 3600"},
		{"trace count", "count", "a whole number from 1 to 1000000000"},
		{"capture -w - snap", "snap", "a whole number from 14 to 1920"},
		{"trace for", "for", "a number of seconds above 0, 86400 at most"},
		{"explain dst 192.0.2.1 ttl", "ttl", "a whole number from 0 to 255"},
		{"explain dst 192.0.2.1 len", "len", "a whole number from 1 to 65500"},
		{"trace sport", "sport", "a whole number from 1 to 65535"},
		{"trace proto", "proto",
		 "one of icmp, igmp, tcp, udp, rsvp, gre, esp, icmp6, eigrp, ospf, pim, "
		 "vrrp, sctp, nor a whole number from 0 to 255"},
	};
	char args[160], want[256];

	for (unsigned int i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		for (unsigned int k = 0; k < sizeof(none) / sizeof(none[0]); k++) {
			if (strcmp(number[i].name, "for") == 0 &&
			    strcmp(none[k], "1.5") == 0)
				continue;
			snprintf(args, sizeof(args), "%s '%s'", number[i].words, none[k]);
			snprintf(want, sizeof(want), "fpmctl: %s '%s' is not %s\n",
				 number[i].name, none[k], number[i].want);
			assert_int_equal(ctl(args), 2);
			assert_string_equal(out, want);
		}
	for (unsigned int k = 0; k < sizeof(none) / sizeof(none[0]); k++) {
		if (strcmp(none[k], "1.5") == 0)
			continue;
		snprintf(args, sizeof(args), "show ports --watch='%s'", none[k]);
		snprintf(want, sizeof(want),
			 "fpmctl: --watch '%s' is not a number of seconds from 0.1 to "
			 "86400\n",
			 none[k]);
		assert_int_equal(ctl(args), 2);
		assert_string_equal(out, want);
	}
	assert_int_equal(ctl("port set wan0 cores 1,-2"), 2);
	assert_string_equal(out,
			    "fpmctl: cores '1,-2' is not a list of CPUs by number such "
			    "as 1,2, nor auto\n");
	assert_int_equal(ctl("port set wan0 cores 1,,2"), 2);
	assert_int_equal(ctl("port set wan0 cores 1,"), 2);
	assert_int_equal(ctl("port set wan0 cores 1.5"), 2);
	assert_int_equal(ctl("hold -- -18446744073709551615"), 2);
}

static void
bad_words_of_changes_are_one_sentence(void **state)
{
	static const struct {
		const char *words, *said;
	} wrong[] = {
		{"port add x device", "fpmctl: device needs a value\nusage:"},
		{"port del x y", "fpmctl: port del takes only a NAME\nusage:"},
		{"set policer icmp rate", "fpmctl: rate needs a value\nusage:"},
		{"set policer icmp rate 5 burst", "fpmctl: burst needs a value\nusage:"},
		{"hold 5 6", "fpmctl: unexpected word '6'\nusage:"},
		{"doctor list extra", "fpmctl: unexpected word 'extra'\nusage:"},
		{"doctor numa list",
		 "fpmctl: no check 'list'; `fpmctl doctor list` lists them"},
		{"device bind", "fpmctl: device bind needs a DEVICE\nusage:"},
		{"device bind eth77", "fpmctl: 'eth77' is neither a PCI address"},
		{"device bind ''", "fpmctl: '' is neither a PCI address"},
		{"device unbind ffff:1f:1f.7",
		 "fpmctl: there is no PCI device ffff:1f:1f.7"},
		{"device", "fpmctl: device needs list, bind or unbind\nusage:"},
		{"config check ''", "fpmctl: config check needs a FILE\nusage:"},
		{"config check a b", "fpmctl: unexpected word 'b'\nusage:"},
		{"config reload ''", "fpmctl: file '': No such file or directory\n"},
		{"port set wan0 device ''", "fpmctl: device is an empty word\n"},
		{"port add x device ''", "fpmctl: device is an empty word\n"},
		{"port set wan0 mtu 0",
		 "fpmctl: mtu '0' is not a whole number from 68 to 9216\n"},
		{"config reload \"$(printf '/tmp/../\\377/..')\"",
		 "fpmctl: file '/tmp/../\\xff/..': No such file or directory\n"},
		{"port add \"$(printf 'a\\377')\" device net_null",
		 "fpmctl: word 2 after port is not UTF-8\n"},
		{"hook load \"$(printf '/none\\377.o')\" dev wan0",
		 "fpmctl: /none\\xff.o: No such file or directory\n"},
		{"hook load x dev \"$(printf 'a\\377')\"",
		 "fpmctl: word 4 after hook is not UTF-8\n"},
		{"hook unload \"$(printf '\\377')\" wan0",
		 "fpmctl: unexpected word '\\xff'\nusage:"},
		{"trace port \"$(printf '\\377')\" for 1",
		 "fpmctl: word 2 after trace is not UTF-8\n"},
		{"port add x device \"$(printf %05000d 0)\"",
		 "fpmctl: the request is longer than the daemon accepts (4096 octets)\n"},
		{"show ports \"$(printf %0100000d 0)\"",
		 "fpmctl: the request is longer than the daemon accepts (4096 octets)\n"},
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (strncmp(wrong[i].words, "device", 6) == 0 && geteuid() != 0)
			continue;
		assert_int_equal(ctl(wrong[i].words), 2);
		if (strncmp(out, wrong[i].said, strlen(wrong[i].said)) != 0)
			assert_string_equal(out, wrong[i].said);
	}
	/* Nothing was done, so no array is printed. */
	assert_int_equal(ctl("--json -s /nowhere config reload 2>/dev/null"), 1);
	assert_string_equal(out, "");
}

static void
no_daemon_is_code_1_with_one_sentence(void **state)
{
	assert_int_equal(ctl("-s /nonexistent/x.sock show ports"), 1);
	assert_string_equal(
		out, "fpmctl: no daemon answers on /nonexistent/x.sock: No such file "
		     "or directory; start fpm-dataplane, or give another socket with -s "
		     "SOCKET\n");
}

static void
a_daemon_that_ends_in_the_middle_is_code_1(void **state)
{
	FILE *f;

	assert_true(ctl("--version") == 0);
	rib_hold(true);
	f = ctl_start("show routes");
	wait_until(t.n_asked == 1);
	worker_stop(&t.ui);
	out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
	assert_int_equal(WEXITSTATUS(pclose(f)), 1);
	has("was lost before the answer was complete");
}

static void
a_million_rows_into_head_and_nowhere(void **state)
{
	t.n_routes = 1000000;
	assert_int_equal(ctl("show routes | head -2"), 0);
	has("10.0.0.0/32");
	assert_int_equal(ctl("show routes >/dev/full"), 1);
	assert_string_equal(out, "fpmctl: cannot write: No space left on device\n");
	assert_int_equal(ctl("show routes >&-"), 1);
	t.n_routes = 1;
	assert_int_equal(ctl("help >/dev/full"), 1);
	assert_int_equal(ctl("help"), 0);
	assert_int_equal(ctl("--help"), 0);
	assert_int_equal(ctl("--version"), 0);
}

#define ui_test(name) cmocka_unit_test_setup_teardown(name, house_up, house_down)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ui_test(tables_are_for_people),
		ui_test(json_is_one_array_of_the_rows),
		ui_test(a_route_not_found_is_code_3),
		ui_test(wrong_words_are_code_2_with_a_usage_line),
		ui_test(a_wrong_option_is_code_2_with_one_sentence),
		ui_test(the_seconds_of_a_watch_stand_behind_a_sign),
		ui_test(a_watch_of_nothing_ends),
		ui_test(an_option_twice_with_two_values_is_code_2),
		ui_test(help_behind_a_command_is_of_that_command),
		ui_test(a_word_that_chooses_is_one_of_its_list),
		ui_test(wrong_words_of_routes_are_refused),
		ui_test(an_unknown_vrf_is_answered_with_the_known_ones),
		ui_test(a_search_without_result_names_the_searched_table),
		ui_test(a_group_is_shown_by_its_number),
		ui_test(words_of_a_packet_that_come_to_nothing_are_refused),
		ui_test(a_capture_that_is_refused_leaves_the_file_as_it_was),
		ui_test(errors_of_a_file_are_rows_whatever_its_name),
		ui_test(an_invalid_number_gets_one_sentence_with_the_allowed_values),
		ui_test(bad_words_of_changes_are_one_sentence),
		ui_test(no_daemon_is_code_1_with_one_sentence),
		ui_test(a_daemon_that_ends_in_the_middle_is_code_1),
		ui_test(a_million_rows_into_head_and_nowhere),
	};
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	/* build/VARIANT/tests/unit/test_ui_ctl -> build/VARIANT/fpmctl */
	self[n > 0 ? n : 0] = '\0';
	snprintf(fpmctl, sizeof(fpmctl), "%s/fpmctl", dirname(dirname(dirname(self))));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
