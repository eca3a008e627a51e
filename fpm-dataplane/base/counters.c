/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registry of counter blocks, the table of reasons, and the state of the FPM channel and of
 * thread rtnl.
 */
#include "base/counters.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fpm_event.h"
#include "base/kernel_event.h"

struct fpm_status fpm_status;
struct kernel_status kernel_status;

const struct reason_info reason_info[N_REASON] = {
#define DROP(n, t) [DROP_##n] = {.name = #n, .text = t},
#define PUNT(n, t) [PUNT_##n] = {.name = #n, .text = t},
#include "base/reason.def"
#undef DROP
#undef PUNT
};

const char *const cycles_name[N_CYCLES] = {
	[CYCLES_RECEIVE] = "receive",     [CYCLES_PARSE] = "parse",
	[CYCLES_HOOK] = "hook",           [CYCLES_LOOKUP] = "lookup",
	[CYCLES_ADJACENCY] = "adjacency", [CYCLES_REWRITE] = "rewrite",
	[CYCLES_DISPATCH] = "dispatch",   [CYCLES_SEND] = "send"};

static struct counters *block[COUNTERS_MAX];
static atomic_uint n_block;

struct counters *
counters_register(const char *name)
{
	/*
	 * The kernel allocates a page when it is first written to. So the counters of
	 * interfaces, VRFs and SIDs that do not exist cost no memory.
	 */
	struct counters *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int slot = atomic_load(&n_block);

	if (c == MAP_FAILED || slot >= COUNTERS_MAX)
		abort();
	snprintf(c->name, sizeof(c->name), "%s", name);
	block[slot] = c;
	/* Release: a thread that reads the new count also sees the block. */
	atomic_store_explicit(&n_block, slot + 1, memory_order_release);
	return c;
}

unsigned int
counters_blocks(struct counters *const **blocks)
{
	*blocks = block;
	return atomic_load_explicit(&n_block, memory_order_acquire);
}

uint64_t
counters_reason(enum reason reason)
{
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += counter_read(&b[i]->reason[reason]);
	return sum;
}

void
counters_port(unsigned int ifidx, struct if_counters *sum)
{
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; i < n; i++) {
		const struct if_counters *c = &b[i]->port[ifidx];

		sum->rx_packets += counter_read(&c->rx_packets);
		sum->rx_bytes += counter_read(&c->rx_bytes);
		sum->tx_packets += counter_read(&c->tx_packets);
		sum->tx_bytes += counter_read(&c->tx_bytes);
	}
}

/*
 * W:neigh  R:any, relaxed. For each interface number, its counts at the time when its
 * present interface got the number.
 */
static struct {
	struct if_counters packets;
	uint64_t urpf;
} begin_of[IFIDX_MAX];

static uint64_t
urpf_sum(unsigned int ifidx)
{
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += counter_read(&b[i]->urpf[ifidx]);
	return sum;
}

static void
begin_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void
counters_interface_begin(unsigned int ifidx)
{
	struct if_counters *begin = &begin_of[ifidx].packets, sum;

	counters_port(ifidx, &sum);
	begin_store(&begin->rx_packets, sum.rx_packets);
	begin_store(&begin->rx_bytes, sum.rx_bytes);
	begin_store(&begin->tx_packets, sum.tx_packets);
	begin_store(&begin->tx_bytes, sum.tx_bytes);
	begin_store(&begin_of[ifidx].urpf, urpf_sum(ifidx));
}

void
counters_interface(unsigned int ifidx, struct if_counters *sum)
{
	const struct if_counters *begin = &begin_of[ifidx].packets;

	counters_port(ifidx, sum);
	sum->rx_packets -= counter_read(&begin->rx_packets);
	sum->rx_bytes -= counter_read(&begin->rx_bytes);
	sum->tx_packets -= counter_read(&begin->tx_packets);
	sum->tx_bytes -= counter_read(&begin->tx_bytes);
}

uint64_t
counters_urpf(unsigned int ifidx)
{
	return urpf_sum(ifidx) - counter_read(&begin_of[ifidx].urpf);
}

void
counters_vrf(unsigned int vrf, const struct vrf_counters *base, struct vrf_counters *sum)
{
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);

	*sum = (struct vrf_counters){.rx_packets = -base->rx_packets,
				     .rx_bytes = -base->rx_bytes,
				     .dropped = -base->dropped};
	/*
	 * Read drops before receptions: the sum then never shows more drops than packets.
	 */
	for (unsigned int i = 0; i < n; i++)
		sum->dropped += counter_read(&b[i]->vrf[vrf].dropped);
	for (unsigned int i = 0; i < n; i++) {
		const struct vrf_counters *c = &b[i]->vrf[vrf];

		sum->rx_packets += counter_read(&c->rx_packets);
		sum->rx_bytes += counter_read(&c->rx_bytes);
	}
}

void
counters_sid(unsigned int sid, const struct sid_counters *base, struct sid_counters *sum)
{
	struct sid_counters to = {
		.packets = -base->packets, .bytes = -base->bytes, .errors = -base->errors};
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);

	for (unsigned int i = 0; i < n; i++) {
		const struct sid_counters *c = &b[i]->sid[sid];

		to.packets += counter_read(&c->packets);
		to.bytes += counter_read(&c->bytes);
		to.errors += counter_read(&c->errors);
	}
	*sum = to;
}

void
counters_class(enum punt_class class, struct class_counters *sum)
{
	struct counters *const *b;
	unsigned int n = counters_blocks(&b);

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; i < n; i++) {
		const struct class_counters *c = &b[i]->class[class];

		sum->policed += counter_read(&c->policed);
		sum->over_share += counter_read(&c->over_share);
		sum->ring_full += counter_read(&c->ring_full);
		/*
		 * Read `taken` before `passed`: the sum then never shows more taken than
		 * passed.
		 */
		sum->taken += counter_read(&c->taken);
	}
	for (unsigned int i = 0; i < n; i++)
		sum->passed += counter_read(&b[i]->class[class].passed);
}
