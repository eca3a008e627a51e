/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the time and the memory that many tunnels, and many VNIs, take from the kernel's
 * reports until forwarders have all of them. A VNI is a bridge over a vxlan device. Each
 * test with all objects follows a test with a tenth of them. Nothing is judged here;
 * test_neigh_many shows that the work for each object does not grow with the number of
 * objects. The test plays the kernel.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include <malloc.h>

#include "base/clock.h"
#include "fib/tunnel.h"
#include "fib/urpf.h"
#include "fib/vxlan.h"
#include "neigh_bed.h"

#define TUNNELS 4000u
#define VNIS    1000u
#define BATCH   32u /* links that a read of netlink reports */

static struct kmon_link
tunnel_of(uint32_t i)
{
	struct kmon_link l = link_of(1000 + i, "");

	snprintf(l.name, sizeof(l.name), "t%u", i);
	memset(l.mac, 0, sizeof(l.mac));
	l.mtu_bytes = 1476;
	l.tunnel = (struct kmon_tunnel){.kind = KMON_GRE, .family = 4, .df = true};
	put_be32(l.tunnel.local, 0xc0000201u);
	put_be32(l.tunnel.remote, 0x0a000000u + i);
	return l;
}

static void
one_tunnel(uint32_t i)
{
	add(tunnel_of(i));
}

static void
one_vni(uint32_t i)
{
	struct kmon_link bridge = link_of(1000 + 2 * i, ""),
			 vxlan = link_of(1001 + 2 * i, "");

	snprintf(bridge.name, sizeof(bridge.name), "br%u", i);
	snprintf(vxlan.name, sizeof(vxlan.name), "vx%u", i);
	bridge.bridge = true;
	bridge.mtu_bytes = 1450;
	memcpy(bridge.mac, mac_b, sizeof(mac_b));
	vxlan.master = bridge.ifindex;
	vxlan.tunnel = (struct kmon_tunnel){.kind = KMON_VXLAN,
					    .family = 4,
					    .vni = 5000 + i,
					    .port = 4789,
					    .ignore_df = true};
	put_be32(vxlan.tunnel.local, 0xcb007101u);
	add(bridge);
	add(vxlan);
}

/* Return the number of the forwarders' interfaces that are no ports. */
static uint32_t
n_ifaces(void)
{
	uint32_t n = 0;

	for (unsigned int i = PORT_MAX; i < IFIDX_MAX; i++)
		n += fib_iface(fib, i) != NULL;
	return n;
}

static uint64_t
heap_kib(void)
{
	return mallinfo2().uordblks / 1024;
}

/* Report `n` objects to neigh, BATCH objects in each round. */
static void
measure(const char *what, uint32_t n, void (*one)(uint32_t i))
{
	uint64_t before = heap_kib(), begin = monotonic_ns(), us;

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	for (uint32_t i = 0; i < n; i++) {
		one(i);
		if ((i + 1) % BATCH == 0)
			round_over();
	}
	round_over();
	us = (monotonic_ns() - begin) / 1000;
	assert_int_equal(n_ifaces(), n);
	printf("%5u %s: %llu us in force, %.1f us each, %llu KiB\n", n, what,
	       (unsigned long long)us, (double)us / n,
	       (unsigned long long)(heap_kib() - before));
}

static void
a_tenth_of_the_tunnels(void **state)
{
	measure("tunnels", TUNNELS / 10, one_tunnel);
}

static void
all_tunnels(void **state)
{
	measure("tunnels", TUNNELS, one_tunnel);
}

static void
a_tenth_of_the_vnis(void **state)
{
	measure("VNIs", VNIS / 10, one_vni);
}

static void
all_vnis(void **state)
{
	measure("VNIs", VNIS, one_vni);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_tenth_of_the_tunnels),
		bed_test(all_tunnels),
		bed_test(a_tenth_of_the_vnis),
		bed_test(all_vnis),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
