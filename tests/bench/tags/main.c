/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tags: measure the cost of tags and VRFs. This thread runs the daemon's forwarding
 * loop, linked from its object files. Rows take turns of milliseconds. Prints a line for
 * each row for bench_tags.py: the cycles a packet of each turn.
 *
 *   bench_tags CPU ROUTES FRAMES ROUNDS TURN_US      (files of bench_frames)
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <urcu/urcu-qsbr.h>

#include "base/instructions.h"
#include "base/worker.h"
#include "fib/urpf.h"
#include "fwd/cpu.h"
#include "port/rxq.h"
#include "port/watch.h"
#include "tags.h"

#define NONE    "no tag"
#define SOURCES "no tag, many sources"
#define BURST   64

const struct row rows[] = {
	{.name = "ports alone", .n = 1, .no_walk = true},
	{.name = NONE, .n = 1},
	{.name = "no tag, on a port with VLANs", .base = NONE, .n = 1, .vlans = true},
	{.name = "one tag in", .base = NONE, .n = 1, .tags_in = 1},
	{.name = "one tag out", .base = NONE, .n = 1, .tags_out = 1},
	{.name = "one tag in and out", .base = NONE, .n = 1, .tags_in = 1, .tags_out = 1},
	{.name = "two tags in and out", .base = NONE, .n = 1, .tags_in = 2, .tags_out = 2},
	{.name = "16 VLANs, mixed", .base = NONE, .n = 16, .tags_in = 1, .mixed = true},
	{.name = "16 VLANs, mixed, one tag out",
	 .base = NONE,
	 .n = 16,
	 .tags_in = 1,
	 .tags_out = 1,
	 .mixed = true},
	{.name = "255 macvlans, to the port", .base = NONE, .n = 1, .macvlans = N_VRRP},
	{.name = "255 macvlans, to one a burst",
	 .base = NONE,
	 .n = N_VRRP,
	 .macvlans = N_VRRP,
	 .to_macvlans = true},
	{.name = "255 macvlans, mixed",
	 .base = NONE,
	 .n = N_VRRP,
	 .macvlans = N_VRRP,
	 .to_macvlans = true,
	 .mixed = true},
	{.name = SOURCES, .n = 1, .sources = true},
	{.name = "rp_filter strict",
	 .base = SOURCES,
	 .n = 1,
	 .sources = true,
	 .urpf = FIB_URPF_STRICT},
	{.name = "rp_filter loose",
	 .base = SOURCES,
	 .n = 1,
	 .sources = true,
	 .urpf = FIB_URPF_LOOSE},
	{.name = "with policy rules of other interfaces",
	 .base = NONE,
	 .n = 1,
	 .ip_rules = true},
	{.name = "10 rules of a filter", .base = NONE, .n = 1, .rules = FEW_RULES},
	{.name = "1,000 rules of a filter", .base = NONE, .n = 1, .rules = MANY_RULES},
	{.name = "a program on another interface",
	 .base = NONE,
	 .n = 1,
	 .hook = "drop_payload",
	 .hook_elsewhere = true},
#define PROGRAM(text, example)                                      \
	{                                                           \
		.name = text, .base = NONE, .n = 1, .hook = example \
	}
	PROGRAM("program: drop by payload", "drop_payload"),
	PROGRAM("program: DSCP by port", "dscp_by_port"),
	PROGRAM("program: sampling counter", "sample"),
	PROGRAM("program: TTL floor", "ttl_floor"),
	PROGRAM("program: VRF by source", "vrf_by_source"),
	{.name = "one label pushed", .base = NONE, .n = 1, .push = 1},
	{.name = "label swapped", .base = NONE, .n = 1, .label = true, .push = 1},
	{.name = "label popped, to a neighbor", .base = NONE, .n = 1, .label = true},
	{.name = "into a tunnel of GRE", .base = NONE, .n = 1, .into = GRE},
	{.name = "out of a tunnel of GRE", .base = NONE, .n = 1, .out_of = GRE},
	{.name = "out of 16 tunnels of GRE, mixed",
	 .base = NONE,
	 .n = N_ADJ,
	 .out_of = GRE,
	 .mixed = true},
	{.name = "into a tunnel of IPIP", .base = NONE, .n = 1, .into = IPIP},
	{.name = "out of a tunnel of IPIP", .base = NONE, .n = 1, .out_of = IPIP},
	{.name = "into a VXLAN", .base = NONE, .n = 1, .into = VXLAN},
	{.name = "out of a VXLAN", .base = NONE, .n = 1, .out_of = VXLAN},
	{.name = "out of 256 VNIs, mixed",
	 .base = NONE,
	 .n = MANY,
	 .out_of = VXLAN,
	 .mixed = true},
	{.name = "into SRv6 (H.Encaps)", .base = NONE, .n = 1, .into = SRV6},
	{.name = "into SRv6 (H.Encaps.Red)", .base = NONE, .n = 1, .into = SRV6_RED},
	{.name = "through an end point (End)", .base = NONE, .n = 1, .out_of = SRV6_TWO},
	{.name = "out of an end point (End.DT46)", .base = NONE, .n = 1, .out_of = SRV6},
	{.name = "with unused tunnels, VNIs and SIDs",
	 .base = NONE,
	 .n = 1,
	 .unused = true},
	{.name = "BFD without sessions", .base = NONE, .n = 1, .bfd = true},
	{.name = "1,000 BFD sessions of 300 ms",
	 .base = NONE,
	 .n = 1,
	 .bfd = true,
	 .session_ms = 300},
	{.name = "1,000 BFD sessions of 50 ms",
	 .base = NONE,
	 .n = 1,
	 .bfd = true,
	 .session_ms = 50},
#define VRFS(count, text, more)                                                     \
	{.name = text ", no VRF", .n = (count), .ten = true, more},                 \
	{                                                                           \
		.name = text ", a VRF each", .base = text ", no VRF", .n = (count), \
		.ten = true, .vrf = true, more                                      \
	}
	VRFS(1, "1 port", .tags_in = 0),
	{.name = "VPN ingress: VRF and two labels",
	 .base = "1 port, no VRF",
	 .n = 1,
	 .ten = true,
	 .vrf = true,
	 .push = 2},
	{.name = "VPN egress: label popped and VRF",
	 .base = "1 port, no VRF",
	 .n = 1,
	 .ten = true,
	 .label_vrf = true},
	VRFS(16, "16 ports", .tags_in = 0),
	VRFS(256, "256 ports", .tags_in = 0),
	VRFS(256, "256 VLANs, one a burst", .tags_in = 1),
#define MIXED .tags_in = 1, .mixed = true
	VRFS(16, "16 VLANs, mixed, ten routes", MIXED),
	VRFS(256, "256 VLANs, mixed, ten routes", MIXED),
};
const unsigned int n_rows = RTE_DIM(rows);
static char **patterns; /* ends with NULL; none: all rows are measured */

bool
row_is_asked(const struct row *row)
{
	if (patterns == NULL || patterns[0] == NULL)
		return true;
	for (char **p = patterns; *p != NULL; p++)
		if (fnmatch(*p, row->name, 0) == 0)
			return true;
	return false;
}

static int
fail(const char *what, int rc)
{
	fprintf(stderr, "bench_tags: %s: %s\n", what, strerror(-rc));
	return 1;
}

/*
 * Use the instructions that the variable ISA names, by a word of the configuration, or the
 * widest of this CPU. Returns 0 or -errno.
 */
static int
instructions_choose(void)
{
	const char *isa = getenv("ISA");

	if (isa == NULL || isa[0] == '\0')
		return fwd_cpu_choose(INSTRUCTIONS_AUTO);
	for (enum instructions i = INSTRUCTIONS_SCALAR; i <= INSTRUCTIONS_AVX512; i++)
		if (strcmp(isa, instructions_name(i)) == 0)
			return fwd_cpu_choose(i);
	return -EINVAL;
}

static int
eal(const char *cpu)
{
	char cores[32];
	char *argv[] = {"bench_tags",
			"--lcores",
			cores,
			"--in-memory",
			"--no-pci",
			"--no-telemetry",
			"--log-level=error",
			fwd_isa == FWD_AVX512 ? "--force-max-simd-bitwidth=512"
					      : "--force-max-simd-bitwidth=256"};

	snprintf(cores, sizeof(cores), "0@%s", cpu);
	return rte_eal_init((int)RTE_DIM(argv), argv);
}

static void
print(const double *cycles, unsigned int rounds)
{
	for (unsigned int r = 0; r < n_rows; r++) {
		if (!row_is_asked(&rows[r]))
			continue;
		printf("{\"row\": \"%s\", \"base\": ", rows[r].name);
		printf(rows[r].base == NULL ? "null" : "\"%s\"", rows[r].base);
		printf(", \"turns\": [");
		for (unsigned int i = 0; i < rounds; i++) {
			const double *c = &cycles[(i * n_rows + r) * N_TURN];

			printf("%s[%.3f, %.3f, %.3f, %.3f]", i == 0 ? "" : ", ", c[0], c[1],
			       c[2], c[3]);
		}
		printf("]}\n");
	}
}

/*
 * Return the number of packets that were dropped or given to the kernel, plus one if BFD
 * sessions went wrong. Packets of these sessions do not count, because they end here.
 */
static uint64_t
not_sent(const struct counters *c)
{
	uint64_t n = sessions_right(c) ? 0 : 1;

	for (unsigned int i = 0; i < N_REASON; i++)
		n += i == PUNT_local_control ? 0 : c->reason[i];
	return n;
}

static int
measure(struct fwd_conf *conf, struct world *w, atomic_bool *stop)
{
	struct rxq q = {.ifidx = IN, .fd = -1};
	struct counters *count = counters_register("fwd-0");
	_Atomic uint32_t n_gleaned = 0;
	struct serving serving;
	struct worker punt = {0};
	int rc;

	*conf = (struct fwd_conf){.fib = w->fib,
				  .tries = &w->tries,
				  .punt = &punt,
				  .count = count,
				  .watch = watch_create(),
				  .sampler = watch_create(),
				  .rx_burst = BURST,
				  .tx_burst = BURST,
				  .serving = &serving,
				  .stop = stop};
	rc = serving_open(&serving, true, &count->sleeps);

	if (rc == 0)
		rc = serving_add(&serving, &q);
	if (rc == 0)
		rc = fwd_rings_make(&conf->rings, 0, 0, &n_gleaned);
	if (rc < 0)
		return fail("rings and queues", rc);
	ports_begin();
	fwd_main(conf);
	printf("{\"wrong\": %llu}\n",
	       (unsigned long long)(ports_wrong() + not_sent(count)));
	fwd_rings_free(&conf->rings);
	serving_close(&serving);
	watch_free((struct watch *)conf->watch);
	watch_free((struct watch *)conf->sampler);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc >= 6 ? (unsigned int)atoi(argv[4]) : 0;
	atomic_bool stop = false;
	struct fwd_conf conf;
	double *cycles;
	struct world w;
	int rc;

	if (rounds == 0) {
		fprintf(stderr,
			"usage: bench_tags CPU ROUTES FRAMES ROUNDS TURN_US [ROW ...]\n");
		return 2;
	}
	patterns = argv + 6;
	rc = instructions_choose();
	if (rc < 0)
		return fail("ISA", rc);
	rc = eal(argv[1]);
	if (rc < 0)
		return fail("EAL", rc);
	rc = world_make(&w, argv[2]);
	if (rc < 0)
		return fail(argv[2], rc);
	cycles = calloc((size_t)rounds * n_rows * N_TURN, sizeof(*cycles));
	rc = ports_make(&w, &conf, argv[3], rounds, (unsigned int)atoi(argv[5]), cycles,
			&stop);
	if (rc < 0)
		return fail(argv[3], rc);
	rc = measure(&conf, &w, &stop);
	if (rc == 0)
		print(cycles, rounds);
	free(cycles);
	return rc;
}
