/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A printed configuration loads as the same configuration. Differences are named. Errors
 * have their columns.
 *
 * link: fpm-dataplane/config/ fpm-dataplane/pci/devargs.c
 * link: fpm-dataplane/base/ tap-bridge/netns.c tests/unit/config_said.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "config_said.h"

/* Return the text of config_show() for `conf`. The caller frees it. */
static char *
shown(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	config_show(&conf, f);
	fclose(f);
	return text;
}

/* Return a copy of the configuration without the places in the file. */
static struct config
bare(struct config c)
{
	memset(c.file, 0, sizeof(c.file));
	for (unsigned int i = 0; i < c.n_port; i++)
		c.port[i].pos = c.port[i].tap_pos = c.port[i].cores_pos =
			(struct config_pos){0, 0};
	return c;
}

static void
reads_back(void)
{
	struct config before = bare(conf), after;
	char *text = shown();

	assert_int_equal(load(text), 0);
	assert_string_equal(said, "");
	after = bare(conf);
	assert_memory_equal(&before, &after, sizeof(before));
	free(text);
}

static void
a_printed_configuration_reads_back_as_the_same(void **state)
{
	cpu_set_t set;
	unsigned int cpu = 0;
	char text[2048], *yaml;

	load(PORT);
	reads_back();
	assert_int_equal(
		config_load("fpm-dataplane/dist/fpm-dataplane.yaml", &conf, stderr), 0);
	reads_back();
	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	snprintf(text, sizeof(text),
		 "ports:\n  - {tap: a, device: \"net_af_packet,iface=lo\", mtu: 9000, "
		 "queues: 4}\n  - {tap: \"-x'\\\"y#\", device: net_null2}\n"
		 "cores: [%u]\nroutes: {from: kernel}\nfpm: {listen: \"[::1]:2621\", "
		 "feedback: true, "
		 "queue-limit-mib: 64, sweep-quiet-s: 1, sweep-max-s: 2, "
		 "sweep-restart-s: 3}\npolicers: {icmp: {rate: unlimited, burst: 1, "
		 "source-rate: 0}}\ncheckpoint-max-age-s: 0\n"
		 "control-socket: \"/tmp/a b\\\\\\\"#: c.sock\"\nmetrics: off\n"
		 "memory: {hugepages: true, size-mib: 1024}\nidle: poll\nlog-level: "
		 "debug\n",
		 cpu);
	assert_int_equal(load(text), 0);
	reads_back();
	load(PORT "metrics: \"[::]:9\"\n");
	reads_back();
	/* Names that would be null or a number without quotes. */
	assert_int_equal(load("ports:\n  - {tap: \"null\", device: net_null}\n"
			      "  - {tap: \"Off\", device: net_null1}\n"
			      "  - {tap: \"1e3\", device: net_null2}\n"),
			 0);
	reads_back();
	yaml = shown();
	assert_non_null(strstr(yaml, "\"null\""));
	assert_non_null(strstr(yaml, "\"Off\""));
	assert_non_null(strstr(yaml, "\"1e3\""));
	free(yaml);
}

/* A list of the longest names in which each octet is escaped is not cut. */
static void
a_long_list_of_tables_is_printed_whole(void **state)
{
	char name[1000], text[2048];

	memset(name, '\\', sizeof(name));
	for (unsigned int n = 100; n <= 249; n += 149) {
		snprintf(text, sizeof(text),
			 PORT "filter: {table: [\"inet %.*s\", \"ip %.*s\"]}\n", 2 * (int)n,
			 name, 2 * (int)n, name);
		assert_int_equal(load(text), 0);
		assert_int_equal(strlen(conf.filter_table), 2 * n + 10);
		reads_back();
	}
}

/* True for paths that the machine decides or that other tests cover. */
static bool
is_elsewhere(const char *path)
{
	return strcmp(path, "ports[].tap") == 0 || strcmp(path, "control-netns") == 0 ||
	       strcmp(path, "keep-nics") == 0;
}

struct compared {
	char told[16384]; /* " ports[].mtu fpm.listen ..." */
	unsigned int n_key;
};

static void
note(void *ctx, const struct config_change *change)
{
	struct compared *c = ctx;
	bool port = strncmp(change->path, "ports[a]", 8) == 0;

	sprintf(c->told + strlen(c->told), " %s%s ", port ? "ports[]" : "",
		change->path + (port ? 8 : 0));
}

static void
differs_in(void *ctx, const struct config_key *key)
{
	struct compared *c = ctx;
	char word[128];

	snprintf(word, sizeof(word), " %s ", key->path);
	if (strstr(c->told, word) == NULL && !is_elsewhere(key->path))
		fail_msg("this test leaves %s at its default", key->path);
	c->n_key++;
}

static void
every_key_there_is_reads_back(void **state)
{
	static struct compared c;
	static char text[8192];
	char *self = realpath("/proc/self/exe", NULL); /* a plugin must be of this CPU */
	struct config standard;
	unsigned int cpu = 0, n;
	cpu_set_t set;

	assert_non_null(self);
	assert_int_equal(load("ports: [{tap: a, device: net_null}]\n"), 0);
	standard = conf;
	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	n = (unsigned int)snprintf(
		text, sizeof(text),
		"ports: [{tap: a, device: net_null1, mtu: 9000, queues: 2, cores: [%u, "
		"%u], vlan-offload: off, checksum-offload: off}]\n"
		"cores: [%u]\nroutes: {from: fpm, through-kernel: false}\nmpls: {input: "
		"all}\n"
		"rp-filter: ignore\n"
		"filter: {table: [\"inet x\", ip y], on-error: pass}\n"
		"sflow: {collectors: [\"192.0.2.9:6343\", \"[2001:db8::9]:1 vrf red\"], "
		"rate: 2, agent: 192.0.2.1, source: \"2001:db8::1\", counters-s: 3, "
		"drops: true, header: 64, psample: 5}\n"
		"bfd: {dplane: \"[::1]:50701\"}\n"
		"fpm: {listen: "
		"\"[::1]:2621\", peer: "
		"192.0.2.9, users: "
		"[\"0\", root], feedback: true, "
		"queue-limit-mib: 65, sweep-quiet-s: 6, sweep-max-s: 7, sweep-restart-s: "
		"8}\n"
		"checkpoint-max-age-s: 9\ncontrol-socket: /tmp/x.sock\nmetrics: "
		"\"[::]:9\"\n"
		"memory: {hugepages: true, size-mib: 65, fib-copies: per-node}\n"
		"plugins: [\"%s\"]\nidle: poll\ninstructions: avx2\nrx-burst: "
		"10\ntx-burst: 11\n"
		"log-level: debug\n"
		"limits: {routes: 100, groups: 101, adjacencies: 102, encaps: 112, hosts: "
		"103, neighbors: 104, vlans: 105, vrfs: 106, asked: 107, waited-for: 108, "
		"waiting: 109, clients: 110, http-clients: 111}\npolicers:\n",
		cpu, cpu, cpu, self);
	free(self);
	for (unsigned int i = 0; i < N_PUNT_CLASS; i++)
		n += (unsigned int)snprintf(
			text + n, sizeof(text) - n,
			"  %s: {rate: 12, burst: 13, source-rate: 14, source-burst: 15}\n",
			punt_class_info[i].name);
	assert_int_equal(load(text), 0);
	config_diff(&standard, &conf, note, &c);
	assert_non_null(strstr(c.told, " limits.hosts "));
	config_keys(differs_in, &c);
	assert_true(c.n_key > 100);
	reads_back();
}

static void
the_example_has_every_key_that_is_shown(void **state)
{
	char *text, *example = NULL, *line;
	size_t size;
	FILE *f = fopen("fpm-dataplane/dist/fpm-dataplane.yaml", "r");

	assert_non_null(f);
	assert_true(getdelim(&example, &size, '\0', f) > 0);
	fclose(f);
	load(PORT);
	text = shown();
	for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s:", (int)strcspn(line, ":"),
			 line + strspn(line, " -"));
		key[strcspn(key, ":") + 1] = '\0';
		if (strstr(example, key) == NULL)
			fail_msg("the example does not have %s", key);
	}
	free(text);
	free(example);
}

static char told[4096];

static void
tell(void *ctx, const struct config_change *c)
{
	size_t n = strlen(told);

	snprintf(told + n, sizeof(told) - n, "%s %s -> %s%s\n", c->path,
		 c->from != NULL ? c->from : "none", c->to != NULL ? c->to : "none",
		 c->live ? "" : " (restart)");
}

static void
differs(const char *from, const char *to, const char *lines)
{
	struct config was;
	unsigned int n;

	assert_int_equal(load(from), 0);
	was = conf;
	assert_int_equal(load(to), 0);
	told[0] = '\0';
	n = config_diff(&was, &conf, tell, NULL);
	assert_string_equal(told, lines);
	for (const char *p = lines; (p = strchr(p, '\n')) != NULL; p++)
		n--;
	assert_int_equal(n, 0);
}

static void
differences_are_named_with_what_a_reload_can_apply(void **state)
{
	differs(PORT, "# the same, otherwise written\n" PORT "idle: adaptive\n", "");
	differs(PORT, PORT "idle: poll\nlog-level: warn\npolicers: {icmp: {burst: 7}}\n",
		"policers.icmp.burst 1000 -> 7\n"
		"idle adaptive -> poll (restart)\nlog-level info -> warn\n");
	differs("ports: [{tap: a, device: net_null}, {tap: b, device: net_null}]\n",
		"ports: [{tap: b, device: net_null, queues: 2, mtu: 1400}, "
		"{tap: c, device: net_null}]\nplugins: []\n",
		"ports[a] net_null -> none\nports[b].mtu 1500 -> 1400\n"
		"ports[b].queues none -> 2\nports[c] none -> net_null\n");
}

static void
errors_have_their_column(void **state)
{
	load("ports: [{tap: wan0, device: net_null, mtu: 5}]\n"
	     "fpm:\n    listem: x\ncores: [0, 99999]\nidle: never\n");
	assert_string_equal(
		placed,
		"1:39: ports[wan0].mtu: 5 is out of range; expected a number from 68 to "
		"9216\n"
		"3:5: fpm.listem: unknown key; expected a known key, such as listen\n"
		"4:12: cores[1]: 99999 is out of range; expected the number of a CPU\n"
		"5:1: idle: 'never' is unknown; expected adaptive or poll\n");
	load("ports: [\n  }\n");
	assert_int_equal(strncmp(placed, "2:3: syntax: ", 13), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_printed_configuration_reads_back_as_the_same),
		cmocka_unit_test(a_long_list_of_tables_is_printed_whole),
		cmocka_unit_test(every_key_there_is_reads_back),
		cmocka_unit_test(the_example_has_every_key_that_is_shown),
		cmocka_unit_test(differences_are_named_with_what_a_reload_can_apply),
		cmocka_unit_test(errors_have_their_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
