/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fwd_few() forwards a short burst with the same result as the stages: the same frames, in
 * the same order in the same buffers, with the same counters. It does not change a burst
 * that it leaves to the stages. The bursts are random, with a fixed seed.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <rte_ring.h>

#include "fib/hook_list.h" /* before `fib` of fwd_sides.h */
#include "fib/urpf.h"
#include "fwd/few.h"
#include "fwd/tx.h"

#include "fwd_sides.h"

#define ROUNDS 20000

/* Two paths, by the hash of the flow. */
static const fib_path bucket[2] = {PATH(PATH_ADJ, 1), PATH(PATH_ADJ, 2)};

static void
frame_write(unsigned int i)
{
	uint8_t *ip = fast.packet[i].buffer + HEADROOM + 14;
	uint8_t family = below(3) == 0 ? 6 : 4;
	unsigned int len;

	memset(fast.packet[i].buffer, 0, HEADROOM + 64);
	len = packet_write(ip, below(2) == 0, family);
	if (below(40) == 0)
		put_be16(ip + 2, (uint16_t)(len + 1)); /* IPv4: longer than the frame */
	frame_give(i, LAN, family, len);
	if (below(60) == 0)
		fast.packet[i].buffer[HEADROOM] ^= 4; /* another station */
	memcpy(slow.packet[i].buffer, fast.packet[i].buffer, BUFFER);
}

/* Return a path to a neighbor, most of the time. */
static fib_path
path_random(void)
{
	switch (below(40)) {
	case 0:
		return PATH(PATH_LOCAL, 0);
	case 1:
		return PATH(PATH_BLACKHOLE, 0);
	case 2:
		return PATH(PATH_ONLINK, WAN);
	case 3:
	case 4:
	case 5:
		return path_with_mtu(PATH(PATH_ADJ, 2), 1);
	default:
		return PATH(PATH_ADJ, 1 + below(2));
	}
}

/* Change the tables. Most of the time all packets can be forwarded. */
static void
tables_change(void)
{
	struct fib_iface *in = fib->iface[LAN], *out = fib->iface[WAN];

	for (unsigned int g = 10; g <= 14; g++)
		fib->group[g] = below(6) == 0 ? group_word_block(bucket, 1)
					      : group_word_single(path_random());
	fib->mtu_bytes[1] = 1450;
	fib->adj[2].hop = below(40) == 0 ? 0 : adj_hop_make(wan_peer, WAN);
	fib->out_special = below(40) == 0 ? FIB_OUT_MACVLAN : 0;
	out->mtu_bytes = out->mtu6_bytes = below(4) == 0 ? 1440 : 1500;
	out->up = below(60) != 0;
	out->n_tags = out->n_written = below(60) == 0;
	out->tag[0] = (struct fib_tag){.type = 0x8100, .id = 7};
	in->up = below(60) != 0;
	in->ifindex = below(60) == 0 ? 0 : LAN + 10;
	in->vrf = below(60) == 0 ? FIB_VRF_NONE : 0;
	in->urpf4 = below(60) == 0 ? FIB_URPF_STRICT : FIB_URPF_OFF;
	in->unnumbered4 = below(60) == 0;
	for (unsigned int a = 1; a <= 2; a++)
		fib->adj_used[a] = below(60) == 0 ? ADJ_BEHIND : (uint8_t)below(2);
}

/* Make a burst, with empty transmit buffers. */
static void
side_begin(struct side *s, unsigned int n)
{
	side_burst(s, n, LAN);
	memset(s->fwd.tx, 0, 4 * sizeof(s->fwd.tx[0]));
	s->fwd.n_tx_used = 0;
	s->fwd.tx_burst = TX_BURST_MAX;
}

static void
packets_are_alike(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf a = fast.packet[i].m, c = slow.packet[i].m;

		a.buf_addr = c.buf_addr = NULL;
		assert_memory_equal(&a, &c, sizeof(a));
		assert_memory_equal(fast.packet[i].buffer, slow.packet[i].buffer, BUFFER);
	}
}

static void
buffers_are_alike(void)
{
	assert_int_equal(fast.fwd.n_tx_used, slow.fwd.n_tx_used);
	for (unsigned int port = 0; port < 4; port++) {
		const struct tx_buffer *a = &fast.fwd.tx[port], *c = &slow.fwd.tx[port];

		assert_int_equal(a->n, c->n);
		assert_int_equal(a->listed, c->listed);
		assert_int_equal(a->has_vlans, c->has_vlans);
		for (unsigned int k = 0; k < a->n; k++)
			assert_int_equal((const char *)a->m[k] - (const char *)fast.packet,
					 (const char *)c->m[k] - (const char *)slow.packet);
	}
}

static void
short_bursts_leave_as_by_the_stages(void **state)
{
	unsigned int n_forwarded = 0, n_left = 0;

	srandom(43);
	memset(&fast.count, 0, sizeof(fast.count));
	memset(&slow.count, 0, sizeof(slow.count));
	fast_path_set(true);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int n = 1 + below(FWD_FEW_MAX);
		uint8_t used[3];

		tables_change();
		memcpy(used, (void *)fib->adj_used, sizeof(used));
		for (unsigned int i = 0; i < n; i++)
			frame_write(i);
		side_begin(&fast, n);
		if (!fwd_few(&fast.burst)) {
			packets_are_alike(n);
			assert_int_equal(fast.fwd.n_tx_used, 0);
			n_left++;
			continue;
		}
		memcpy((void *)fib->adj_used, used, sizeof(used));
		side_begin(&slow, n);
		fwd_walk(&slow.burst, NULL);
		assert_true((slow.burst.fast4 | slow.burst.fast6) ==
			    burst_all(&slow.burst));
		fwd_dispatch(&slow.burst);
		packets_are_alike(n);
		buffers_are_alike();
		/* assert_memory_equal() would take most of the test's time for so much memory. */
		assert_true(memcmp(&fast.count, &slow.count, sizeof(fast.count)) == 0);
		n_forwarded++;
	}
	print_message("%u forwarded, %u left to the stages\n", n_forwarded, n_left);
	assert_true(n_forwarded > ROUNDS / 10);
	assert_true(n_left > ROUNDS / 10);
}

/* Make a burst of `n` packets, all of which fwd_few() can forward. */
static void
usual_give(unsigned int n)
{
	fast_path_set(true);
	for (unsigned int g = 10; g <= 14; g++)
		fib->group[g] = group_word_single(PATH(PATH_ADJ, 2));
	for (unsigned int i = 0; i < n; i++) {
		uint8_t family = i % 2 == 0 ? 4 : 6;
		uint8_t *ip = fast.packet[i].buffer + HEADROOM + 14;

		do {
			frame_give(i, LAN, family, inner_write(ip, family, 100, false));
		} while (fast.packet[i].m.data_off != HEADROOM);
	}
	side_begin(&fast, n);
}

/* Without a reason to refuse, fwd_few() forwards all lengths of bursts. */
static void
usual_bursts_are_forwarded(void **state)
{
	for (unsigned int n = 1; n <= FWD_FEW_MAX; n++) {
		usual_give(n);
		fast.fwd.timed = n % 2 == 0;
		fast.count.forwarded[0] = fast.count.forwarded[1] = 0;
		assert_true(fwd_few(&fast.burst));
		assert_int_equal(fast.fwd.tx[WAN].n, n);
		assert_int_equal(fast.count.forwarded[0], (n + 1) / 2);
		assert_int_equal(fast.count.forwarded[1], n / 2);
	}
}

/*
 * A burst needs the stages if there is a filter, a program or a session that watches
 * packets.
 */
static void
a_filter_or_a_program_needs_the_stages(void **state)
{
	static struct fib_hook hook = {.dev = "lan0"};
	static const struct fib_hooks hooks = {.n = 1, .hook = {&hook}};
	static const uint64_t any[8];

	strcpy(fib->iface[LAN]->name, "lan0");
	for (unsigned int what = 0; what < 3; what++) {
		usual_give(1);
		if (what == 0)
			fast.fwd.filter = (const void *)any;
		else if (what == 1)
			fast.fwd.hooks = &hooks;
		else
			fast.fwd.watch = (const void *)any;
		assert_false(fwd_few(&fast.burst));
		assert_int_equal(fast.fwd.n_tx_used, 0);
	}
}

/*
 * The program of an interface does not slow down another interface. A table that it chose
 * for packets of an earlier burst has no effect.
 */
static void
a_program_of_another_interface_does_not(void **state)
{
	static struct fib_hook hook = {.dev = "lan00"};
	static const struct fib_hooks hooks = {.n = 1, .hook = {&hook}};

	strcpy(fib->iface[LAN]->name, "lan0");
	usual_give(1);
	fast.fwd.hooks = &hooks;
	fast.fwd.hook_moved = 1;
	assert_true(fwd_few(&fast.burst));
	assert_int_equal(fast.fwd.hook_moved, 0);
	assert_int_equal(fast.fwd.n_tx_used, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(usual_bursts_are_forwarded, up_with_isa,
						down),
		cmocka_unit_test_setup_teardown(short_bursts_leave_as_by_the_stages,
						up_with_isa, down),
		cmocka_unit_test_setup_teardown(a_filter_or_a_program_needs_the_stages,
						up_with_isa, down),
		cmocka_unit_test_setup_teardown(a_program_of_another_interface_does_not,
						up_with_isa, down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
