/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file: texts that load, and the exact messages for texts that do not.
 *
 * link: fpm-dataplane/config/ fpm-dataplane/pci/devargs.c
 * link: fpm-dataplane/base/ tap-bridge/netns.c tests/unit/config_said.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config_said.h"

static uint16_t
listen_port(const struct sockaddr_storage *ss)
{
	/* The port is at the same place for IPv6. */
	return ntohs(((const struct sockaddr_in *)ss)->sin_port);
}

static void
one_port_is_enough_and_all_else_has_defaults(void **state)
{
	assert_int_equal(load(PORT), 0);
	assert_string_equal(said, "");
	assert_int_equal(conf.n_port, 1);
	assert_string_equal(conf.port[0].tap, "wan0");
	assert_string_equal(conf.port[0].device, "net_null");
	assert_int_equal(conf.port[0].mtu_bytes, 1500);
	assert_int_equal(conf.port[0].n_rxq, 0);
	assert_int_equal(conf.n_core, 0);
	assert_string_equal(conf.control_netns, "");
	assert_int_equal(conf.fpm_listen.ss_family, AF_INET);
	assert_int_equal(listen_port(&conf.fpm_listen), 2620);
	assert_int_equal(conf.fpm_queue_limit_bytes, 512u << 20);
	assert_int_equal(conf.sweep_quiet_s, 5);
	assert_int_equal(conf.sweep_max_s, 120);
	assert_int_equal(conf.sweep_restart_s, 120);
	assert_int_equal(conf.checkpoint_max_age_s, 60);
	assert_string_equal(conf.control_socket, "/run/fpm-dataplane/control.sock");
	assert_true(conf.metrics_on);
	assert_int_equal(listen_port(&conf.metrics_listen), 9620);
	assert_false(conf.hugepages);
	assert_int_equal(conf.memory_mib, 256);
	assert_false(conf.fib_per_node);
	assert_false(conf.poll_always);
	assert_int_equal(conf.log_level, LOG_LEVEL_INFO);
}

static void
every_key_is_taken(void **state)
{
	cpu_set_t set;
	unsigned int cpu = 0;
	char text[1024];

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	snprintf(text, sizeof(text),
		 "ports:\n  - {tap: a, device: \"net_af_packet,iface=lo\", mtu: 9000, "
		 "queues: 4, vlan-offload: off, checksum-offload: off}\n"
		 "cores: [%u]\nfpm:\n  listen: \"[::1]:2621\"\n  feedback: true\n  "
		 "queue-limit-mib: 65536\n"
		 "  sweep-quiet-s: 1\n  sweep-max-s: 2\n  sweep-restart-s: 3\n"
		 "checkpoint-max-age-s: 0\n"
		 "control-socket: /tmp/x.sock\nmetrics: off\n"
		 "memory: {hugepages: true, size-mib: 1024, fib-copies: per-node}\n"
		 "idle: poll\nlog-level: debug\n",
		 cpu);
	load(text);
	assert_string_equal(said, "");
	assert_string_equal(conf.port[0].device, "net_af_packet,iface=lo");
	assert_int_equal(conf.port[0].mtu_bytes, 9000);
	assert_int_equal(conf.port[0].n_rxq, 4);
	assert_true(conf.port[0].options.vlan_off);
	assert_true(conf.port[0].options.cksum_off);
	assert_int_equal(conf.port[0].pos.line, 2);
	assert_int_equal(conf.n_core, 1);
	assert_int_equal(conf.core[0], cpu);
	assert_int_equal(conf.fpm_listen.ss_family, AF_INET6);
	assert_int_equal(listen_port(&conf.fpm_listen), 2621);
	assert_true(conf.fpm_feedback);
	assert_true(conf.fpm_queue_limit_bytes == 65536ull << 20);
	assert_int_equal(conf.sweep_restart_s, 3);
	assert_int_equal(conf.checkpoint_max_age_s, 0);
	assert_string_equal(conf.control_socket, "/tmp/x.sock");
	assert_false(conf.metrics_on);
	assert_true(conf.hugepages);
	assert_int_equal(conf.memory_mib, 1024);
	assert_true(conf.fib_per_node);
	assert_true(conf.poll_always);
	assert_int_equal(conf.log_level, LOG_LEVEL_DEBUG);
}

static void
the_example_loads_anywhere_and_shows_the_defaults(void **state)
{
	struct config plain;
	FILE *err = fopen("/dev/null", "w");

	load(PORT);
	plain = conf;
	assert_int_equal(config_load("fpm-dataplane/dist/fpm-dataplane.yaml", &conf, err),
			 0);
	fclose(err);
	assert_int_equal(conf.n_port, 2);
	assert_string_equal(conf.port[1].tap, "lan0");
	memcpy(conf.file, plain.file, sizeof(conf.file));
	memcpy(conf.port, plain.port, sizeof(conf.port));
	conf.n_port = plain.n_port;
	assert_memory_equal(&conf, &plain, sizeof(conf));
}

static void
the_example_has_every_key_of_the_comment_in_config_h(void **state)
{
	static const char *const key[] = {"ports:",
					  "- tap:",
					  "device:",
					  "mtu:",
					  "queues:",
					  "cores:",
					  "vlan-offload:",
					  "checksum-offload:",
					  "control-netns:",
					  "fpm:",
					  "listen:",
					  "feedback:",
					  "queue-limit-mib:",
					  "sweep-quiet-s:",
					  "sweep-max-s:",
					  "sweep-restart-s:",
					  "control-socket:",
					  "metrics:",
					  "memory:",
					  "hugepages:",
					  "size-mib:",
					  "fib-copies:",
					  "plugins:",
					  "idle:",
					  "log-level:",
					  "policers:",
					  "rate:",
					  "burst:",
					  "source-rate:",
					  "source-burst:",
					  "checkpoint-max-age-s:"};
	static char text[65536];
	FILE *f = fopen("fpm-dataplane/dist/fpm-dataplane.yaml", "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (unsigned int i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		assert_non_null(strstr(text, key[i]));
}

static void
the_example_has_every_class(void **state)
{
	char *text = NULL, line[64];
	size_t size;
	FILE *f = fopen("fpm-dataplane/dist/fpm-dataplane.yaml", "r");

	assert_non_null(f);
	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
		snprintf(line, sizeof(line), "\n  %s: ", punt_class_info[c].name);
		assert_non_null(strstr(text, line));
	}
	free(text);
}

static void
policers_are_taken_key_by_key(void **state)
{
	load(PORT "policers:\n  icmp: {rate: 7}\n  bgp:\n    rate: unlimited\n    "
		  "source-rate: 0\n  arp-new: {burst: 9, source-burst: 1}\n  tcp:\n");
	assert_string_equal(said, "");
	assert_int_equal(conf.policer[CLASS_icmp].rate, 7);
	assert_int_equal(conf.policer[CLASS_icmp].burst, policer_default[CLASS_icmp].burst);
	assert_int_equal(conf.policer[CLASS_bgp].rate, POLICER_UNLIMITED);
	assert_int_equal(conf.policer[CLASS_bgp].source_rate, 0);
	assert_int_equal(conf.policer[CLASS_arp_new].burst, 9);
	assert_int_equal(conf.policer[CLASS_arp_new].source_burst, 1);
	assert_memory_equal(&conf.policer[CLASS_tcp], &policer_default[CLASS_tcp],
			    sizeof(conf.policer[0]));
}

static void
wrong_policers_are_reported(void **state)
{
	says("policers:\n  icmp: {rate: 10000001}\n",
	     "3: policers.icmp.rate: 10000001 is out of range; expected a number from 0 to "
	     "10000000, or unlimited\n");
	says("policers:\n  icmp: {rate: -1, burst: 0}\n",
	     "3: policers.icmp.rate: '-1' is not a plain number; expected a number from 0 "
	     "to 10000000, or unlimited\n"
	     "3: policers.icmp.burst: 0 is out of range; expected a number from 1 to "
	     "1000000\n");
	says("policers:\n  icmp: {burst: unlimited}\n",
	     "3: policers.icmp.burst: 'unlimited' is not a plain number; expected a number "
	     "from 1 to 1000000\n");
	says("policers:\n  icnp: {rate: 1}\n",
	     "3: policers.icnp: unknown key; expected a known key, such as icmp\n");
	says("policers:\n  icmp: 100\n",
	     "3: policers.icmp: is a single value; expected keys such as `rate:`\n");
}

static void
a_file_that_cannot_be_read_is_named(void **state)
{
	char *err = NULL;
	size_t size;
	FILE *f = open_memstream(&err, &size);

	assert_int_equal(config_load("/nonexistent.yaml", &conf, f), 1);
	assert_int_equal(config_load("/", &conf, f), 1);
	fclose(f);
	assert_string_equal(err,
			    "/nonexistent.yaml: cannot be read: No such file or directory; "
			    "expected a YAML file of at most 64 KiB\n"
			    "/: cannot be read: Is a directory; "
			    "expected a YAML file of at most 64 KiB\n");
	free(err);
}

static void
a_file_may_have_any_name_and_messages_show_it_in_one_line_of_utf8(void **state)
{
	static const char name[] = "/tmp/test_config.\xff\n\u00fc.yaml";
	char *err = NULL;
	size_t size;
	FILE *f = open_memstream(&err, &size), *file = fopen(name, "w");

	assert_non_null(file);
	fputs("ports: []\n", file);
	fclose(file);
	assert_int_equal(config_load(name, &conf, f), 1);
	assert_string_equal(conf.file, name);
	unlink(name);
	assert_int_equal(config_load(name, &conf, f), 1);
	fclose(f);
	assert_string_equal(
		err,
		"/tmp/test_config.\\xff\\x0a\u00fc.yaml:1:1: ports: is not a list, or is "
		"empty; expected a list of ports, each with tap and device\n"
		"/tmp/test_config.\\xff\\x0a\u00fc.yaml: cannot be read: No such file or "
		"directory; expected a YAML file of at most 64 KiB\n");
	free(err);
}

static void
no_ports_is_reported(void **state)
{
	says_alone("", "1: ports: the file is empty; expected at least one port\n");
	says_alone("# nothing\n\n",
		   "1: ports: the file is empty; expected at least one port\n");
	says_alone("idle: poll\n",
		   "1: ports: is missing; expected a list of ports, each with "
		   "tap and device\n");
	says_alone("\nports:\n", "2: ports: is not a list, or is empty; expected a list of "
				 "ports, each with tap and device\n");
	says_alone("ports: {tap: a}\n",
		   "1: ports: is not a list, or is empty; expected a list "
		   "of ports, each with tap and device\n");
	says_alone("just words\n",
		   "1: top: is not a mapping; expected keys such as `ports:`\n");
	says_alone("ports:\n  - wan0\n",
		   "2: ports[0]: is a single value; expected keys such as `tap:`\n");
	says_alone(
		"ports:\n  -\n  - tap: b\n",
		"2: ports[0]: is a single value; expected keys such as `tap:`\n"
		"3: ports[b].device: is missing; expected a PCI address (0000:03:00.0) or "
		"DPDK devargs (net_af_packet,iface=veth-wan)\n");
}

static void
a_port_without_a_name_is_reported_by_its_device_or_index(void **state)
{
	says_alone(
		"ports:\n  - {tap: a, device: net_null}\n  - device: net_null0,x=1\n",
		"3: ports[net_null0,x=1].tap: is missing; expected 1 to 15 characters, no "
		"slash, blank, colon or percent, such as wan0\n");
	says_alone(
		"ports:\n  - {tap: a, device: net_null}\n  - {tap: ~, device: [], mtu: "
		"1}\n",
		"3: ports[1].tap: has no value; expected 1 to 15 characters, no slash, "
		"blank, colon or percent, such as wan0\n"
		"3: ports[1].device: is a list; expected a PCI address (0000:03:00.0) or "
		"DPDK devargs (net_af_packet,iface=veth-wan)\n"
		"3: ports[1].mtu: 1 is out of range; expected a number from 68 to 9216\n");
}

static void
the_address_of_bfdd_may_lack_its_port(void **state)
{
	static const char *const good[][2] = {
		{"127.0.0.1", "127.0.0.1:50700"},    {"127.0.0.1:1", "127.0.0.1:1"},
		{"\"::1\"", "[::1]:50700"},          {"\"[::1]\"", "[::1]:50700"},
		{"\"[0::1]:65535\"", "[::1]:65535"},
	};
	char text[128];

	assert_int_equal(load("ports: [{tap: a, device: net_null}]\n"), 0);
	assert_false(conf.bfd.on);
	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text),
			 "ports: [{tap: a, device: net_null}]\nbfd: {dplane: %s}\n",
			 good[i][0]);
		assert_int_equal(load(text), 0);
		assert_true(conf.bfd.on);
		assert_string_equal(conf.bfd.name, good[i][1]);
	}
	says("bfd: {dplane: localhost}\n",
	     "2: bfd.dplane: 'localhost' is not the address of bfdd; expected ADDRESS or "
	     "ADDRESS:PORT, such as 127.0.0.1:50700 or \"[::1]:50700\"\n");
	says("bfd: {dplane: 0.0.0.0}\n",
	     "2: bfd.dplane: '0.0.0.0' is not the address of bfdd; expected ADDRESS or "
	     "ADDRESS:PORT, such as 127.0.0.1:50700 or \"[::1]:50700\"\n");
}

static void
an_unknown_key_gets_the_nearest_known_one(void **state)
{
	says("core: auto\n", "2: core: unknown key; expected a known key, such as cores\n");
	says("fpm:\n  sweep_quiet_s: 5\n", "3: fpm.sweep_quiet_s: unknown key; expected a "
					   "known key, such as sweep-quiet-s\n");
	says("memory: {zzz: 1}\n",
	     "2: memory.zzz: unknown key; expected one of hugepages, size-mib, "
	     "fib-copies\n");
	says("\"\\e[31mx\": 1\n",
	     "2: \\x1b[31mx: unknown key; expected one of ports, cores, control-netns, "
	     "routes, mpls, rp-filter, filter, sflow, bfd, fpm, policers, control-socket, "
	     "metrics, checkpoint-max-age-s, keep-nics, memory, limits, plugins, idle, "
	     "instructions, rx-burst, tx-burst, log-level\n");
	says("? [1]\n: 2\n", "2: top: key is a list; expected a word\n");
}

static void
each_limit_of_keep_nics_is_reported(void **state)
{
	says("keep-nics: maybe\n",
	     "2: keep-nics: 'maybe' is no boolean; expected true or false\n");
	says_alone(
		"ports:\n  - tap: a\n    device: net_null0\nkeep-nics: true\nmemory: "
		"{hugepages: true}\n",
		"3: ports[a].device: 'net_null0' cannot be kept over a restart; expected "
		"a NIC's PCI address, or keep-nics: false\n");
	load("ports:\n  - tap: a\n    device: \"0000:03:00.0\"\nkeep-nics: true\n");
	assert_non_null(strstr(said,
			       "4: keep-nics: two processes can share only hugepages; "
			       "expected memory.hugepages: true\n"));
	assert_null(strstr(said, "cannot be kept"));
}

static void
a_wrong_type_or_range_is_reported(void **state)
{
	says_alone("ports:\n  - tap: a\n    device: net_null\n    mtu: big\n    queues: "
		   "\"2\"\n",
		   "4: ports[a].mtu: 'big' is not a plain number; expected a number from "
		   "68 to "
		   "9216\n5: ports[a].queues: '2' is a string; expected a number from 1 to "
		   "64\n");
	says_alone(
		"ports:\n  - tap: a\n    device: net_null\n    mtu: 67\n    queues: 65\n",
		"4: ports[a].mtu: 67 is out of range; expected a number from 68 to 9216\n"
		"5: ports[a].queues: 65 is out of range; expected a number from 1 to 64\n");
	says("memory:\n  hugepages: 1\n  size-mib: 0100\n",
	     "3: memory.hugepages: '1' is no boolean; expected true or false\n"
	     "4: memory.size-mib: '0100' is not a plain number; expected a number from 64 "
	     "to 16384\n");
	says("memory: {fib-copies: 2}\n",
	     "2: memory.fib-copies: '2' is unknown; expected one or per-node\n");
	says("memory: 512\n", "2: memory: is a single value; expected keys such as "
			      "`hugepages:`\n");
	says("memory: {size-mib: 99999999999999999999999}\n",
	     "2: memory.size-mib: 99999999999999999999999 is out of range; expected a "
	     "number from 64 to 16384\n");
	says_alone("ports: [{tap: a, device: net_null, vlan-offload: true}]\n",
		   "1: ports[a].vlan-offload: 'true' is unknown; expected auto or "
		   "off\n");
	says("idle: never\nlog-level:\n  - info\n",
	     "2: idle: 'never' is unknown; expected adaptive or poll\n"
	     "3: log-level: is a list; expected error, warn, info or debug\n");
	says("idle:\n", "2: idle: has no value; expected adaptive or poll\n");
	says("idle: \"poll\\0\"\n",
	     "2: idle: has a zero octet inside; expected adaptive or "
	     "poll\n");
	says("fpm:\n", "");
	says("fpm:\n  sweep-quiet-s: 9\n  sweep-max-s: 3\n",
	     "2: fpm.sweep-max-s: 3 is less than sweep-quiet-s; expected at least 9\n");
	says("control-socket: run/x\n",
	     "2: control-socket: 'run/x' is not usable; expected an "
	     "absolute path of at most 107 characters\n");
}

static void
a_repeated_key_is_reported(void **state)
{
	says("idle: poll\nidle: poll\n",
	     "3: idle: given twice, first on line 2; expected once\n");
}

static void
a_repeated_name_or_device_is_reported(void **state)
{
	says_alone("ports:\n  - tap: a\n    device: net_null\n  - device: net_null\n    "
		   "tap: a\n",
		   "5: ports[a].tap: 'a' is the name of the port on line 2 too; expected "
		   "another name\n");
	says_alone(
		"ports:\n  - tap: a\n    device: net_null0\n"
		"  - tap: b\n    device: net_null0,size=64\n",
		"5: ports[b].device: net_null0 belongs to ports[a] too (line 3); expected "
		"another device\n");
	says_alone(
		"ports:\n  - tap: a\n    device: net_af_packet,iface=lo\n"
		"  - tap: b\n    device: net_af_xdp,x=1,iface=lo,y=2\n",
		"5: ports[b].device: iface lo belongs to ports[a] too (line 3); expected "
		"another device\n");
}

static void
an_address_has_a_port(void **state)
{
	static const char *const bad[] = {
		"127.0.0.1",    "127.0.0.1:0",  "127.0.0.1:65536",
		"localhost:80", "::1:2620",     "[::1]",
		"1.2.3.4:+1",   "[1.2.3.4]:80", ":80",
		"256.0.0.1:80", "[]:1",         "1.2.3.4:99999999999"};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[128], want[256];

		snprintf(text, sizeof(text), "metrics: \"%s\"\n", bad[i]);
		snprintf(want, sizeof(want),
			 "2: metrics: '%s' is not an address and port; expected "
			 "ADDRESS:PORT, such as 127.0.0.1:2620 or \"[::1]:2620\", or off\n",
			 bad[i]);
		says(text, want);
	}
}

static void
broken_yaml_has_its_line(void **state)
{
	says("fpm:\n\tlisten: 1\n",
	     "3: syntax: while scanning for the next token, found character that cannot "
	     "start any token; expected spaces, not tabs, at the start of a line\n");
	assert_true(load(PORT "metrics: [::1]:9620\n") > 0);
	assert_non_null(strstr(said, "2: syntax: "));
	assert_non_null(strstr(said, "expected quotes around an IPv6 address"));
	assert_true(load(PORT "idle: \"poll\n") > 0);
	assert_non_null(strstr(said, ": syntax: while scanning a quoted scalar"));
	says("---\nidle: poll\n", "2: ---: starts a second document; expected one\n");
	assert_int_equal(load_octets("ports:\n\xff\xfe\n", 10), 1);
	assert_int_equal(strncmp(said, "2: syntax: ", 11), 0);
}

/* fpm.sweep-max-s and duplicate ports are found when the whole file has been read. */
static void
errors_are_sorted_by_line(void **state)
{
	int line = 0, n = 0, next;

	load("memory: 1\nports:\n  - {tap: a, device: net_null}\n  - {tap: a, mtu: 1, "
	     "device: net_null}\nfpm: {sweep-quiet-s: 9, sweep-max-s: 2}\nidle: never\n");
	for (const char *p = said; *p != '\0'; p = strchr(p, '\n') + 1, n++) {
		assert_int_equal(sscanf(p, "%d: ", &next), 1);
		assert_true(next >= line);
		line = next;
	}
	assert_int_equal(line, 6);
	assert_true(n >= 5);
}

static void
all_errors_are_reported_and_thousands_are_counted(void **state)
{
	static char text[32 << 10] = PORT;
	char *told = NULL;
	unsigned int lines = 0;
	size_t n = strlen(text), size;
	FILE *err = open_memstream(&told, &size);

	for (int i = 0; i < 1010; i++)
		n += (size_t)sprintf(text + n, "k%d: 1\n", i);
	assert_int_equal(config_parse("x", text, n, &conf, err), 1010);
	fclose(err);
	for (const char *p = told; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	assert_int_equal(lines, 1001);
	assert_non_null(strstr(told, "x: 10 more errors not shown\n"));
	free(told);
}

static void
limits_hold(void **state)
{
	static char text[300 << 10];
	int n = sprintf(text, "ports:\n");

	for (int i = 0; i < 65; i++)
		n += sprintf(text + n, "  - {tap: t%d, device: net_null}\n", i);
	says_alone(text, "66: ports[t64]: is one too many; expected at most 64\n");
	memset(text, '#', sizeof(text));
	assert_int_equal(load_octets(text, sizeof(text)), 1);
	says("fpm: &a\n  listen: *a\n",
	     "3: fpm.listen: is a mapping; expected ADDRESS:PORT, such as "
	     "127.0.0.1:2620 or "
	     "\"[::1]:2620\"\n");
}

/* Return the CPU seconds of this process. */
static double
cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void
deep_nesting_is_refused_where_it_begins_and_costs_nothing(void **state)
{
	static const char *const opening[] = {"[", "{a: ", "- ", "? ", "[? "};
	static char text[64 << 10];

	for (unsigned int i = 0; i < sizeof(opening) / sizeof(opening[0]); i++) {
		size_t n = (size_t)sprintf(text, "idle:\n ");
		double begin = cpu_s();

		while (n + 8 < sizeof(text))
			n += (size_t)sprintf(text + n, "%s", opening[i]);
		assert_int_equal(load_octets(text, n), 1);
		assert_string_equal(said, "2: syntax: lists and mappings are nested "
					  "more than 8 deep; expected at most 3\n");
		assert_true(cpu_s() - begin < 1);
	}
	/* Nesting that is deep but allowed gets the message of the key. */
	says("idle: [[[[[[poll]]]]]]\n", "2: idle: is a list; expected adaptive or poll\n");
}

static void
a_queue_that_no_table_fits_is_refused(void **state)
{
	says("fpm: {queue-limit-mib: 63}\n",
	     "2: fpm.queue-limit-mib: 63 is out of range; expected a number from 64 to "
	     "65536\n");
	says("fpm: {queue-limit-mib: 64}\n", "");
}

static void
random_octets_never_crash(void **state)
{
	static const char seedtext[] =
		PORT "cores: [0]\nfpm:\n  listen: \"[::1]:1\"\nidle: poll\n";
	unsigned int seed = (unsigned int)getpid();
	char text[sizeof(seedtext)];

	printf("seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 2000; i++) {
		memcpy(text, seedtext, sizeof(text));
		for (int k = rand() % 6; k >= 0; k--)
			text[(size_t)rand() % (sizeof(text) - 1)] = (char)rand();
		load_octets(text, (size_t)rand() % sizeof(text));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_port_is_enough_and_all_else_has_defaults),
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(the_example_loads_anywhere_and_shows_the_defaults),
		cmocka_unit_test(the_example_has_every_key_of_the_comment_in_config_h),
		cmocka_unit_test(the_example_has_every_class),
		cmocka_unit_test(policers_are_taken_key_by_key),
		cmocka_unit_test(wrong_policers_are_reported),
		cmocka_unit_test(a_file_that_cannot_be_read_is_named),
		cmocka_unit_test(
			a_file_may_have_any_name_and_messages_show_it_in_one_line_of_utf8),
		cmocka_unit_test(no_ports_is_reported),
		cmocka_unit_test(a_port_without_a_name_is_reported_by_its_device_or_index),
		cmocka_unit_test(the_address_of_bfdd_may_lack_its_port),
		cmocka_unit_test(an_unknown_key_gets_the_nearest_known_one),
		cmocka_unit_test(each_limit_of_keep_nics_is_reported),
		cmocka_unit_test(a_wrong_type_or_range_is_reported),
		cmocka_unit_test(a_repeated_key_is_reported),
		cmocka_unit_test(a_repeated_name_or_device_is_reported),
		cmocka_unit_test(an_address_has_a_port),
		cmocka_unit_test(broken_yaml_has_its_line),
		cmocka_unit_test(errors_are_sorted_by_line),
		cmocka_unit_test(all_errors_are_reported_and_thousands_are_counted),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(deep_nesting_is_refused_where_it_begins_and_costs_nothing),
		cmocka_unit_test(a_queue_that_no_table_fits_is_refused),
		cmocka_unit_test(random_octets_never_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
