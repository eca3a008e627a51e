/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Path MTUs from ICMP errors: which errors count, and that forged ones cannot fill the table.
 * link: fpm-dataplane/punt/pmtu.c fpm-dataplane/punt/vteps.c
 * link: fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/inet.h"
#include "fib/headend.h"
#include "fib/path_mtu.h"
#include "fib/vxlan.h"
#include "punt/internal.h"
#include "punt/pmtu.h"

#define GRE_IF  PORT_MAX
#define SVI     (PORT_MAX + 1)
#define ROUTER  0xc0000209u /* the router that sends the errors */
#define LOCAL   0xc0000201u
#define REMOTE  0xc0000202u
#define VTEP    0xc0000203u
#define ADJ     5
#define OWN     1
#define VNI     5001u
#define PORT    4789u
#define ROOM    512
#define ICMP_AT 20u
#define QUOTED  (ICMP_AT + 8)
#define QUOTED6 (40u + 8)

static struct fib *fib;
static struct worker worker;
static struct punt punt;
static struct fib_iface gre, svi;
static struct fib_vxlan_hop hop;
static struct {
	struct rte_mbuf m;
	struct packet_meta meta;
	uint8_t octet[ROOM];
} frame;

static const uint8_t own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};

static int
set_up(void **state)
{
	static const struct worker_ops ops = {.name = "punt", .on_msg = worker_reclaim};
	static struct fib_seg6 seg6;
	struct prefix own = {.family = 6, .len = 128};

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	worker_init(&worker, &ops, NULL);
	assert_int_equal(worker_prepare(&worker), 0);
	punt = (struct punt){.fib = fib, .worker = &worker};
	gre = (struct fib_iface){.ifidx = GRE_IF};
	gre.tunnel = (struct fib_tunnel){.family = 4, .gre = true};
	gre.tunnel.local = ipaddr_from_v4(LOCAL);
	gre.tunnel.remote = ipaddr_from_v4(REMOTE);
	svi = (struct fib_iface){.ifidx = SVI};
	svi.vxlan = (struct fib_vxlan){.family = 4, .df = true, .port = PORT, .vni = VNI};
	svi.vxlan.local = ipaddr_from_v4(LOCAL);
	hop = (struct fib_vxlan_hop){.ifidx = SVI, .t = {.family = 4}};
	hop.t.remote = ipaddr_from_v4(VTEP);
	atomic_store(&fib->iface[GRE_IF], &gre);
	atomic_store(&fib->iface[SVI], &svi);
	atomic_store(&fib->vxlan_hop[ADJ], &hop);
	atomic_store(&fib->seg6, &seg6);
	memcpy(own.addr.octet, own6, 16);
	fib->group[OWN] = group_word_single(PATH(PATH_LOCAL, 0));
	assert_int_equal(poptrie_add(fib->copy[0].pt6, own.addr.octet, 128, OWN), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
	return 0;
}

static int
down(void **state)
{
	struct fib_pmtus *last = atomic_load(&fib->pmtus);

	urcu_qsbr_barrier();
	worker_free(&worker);
	free(last);
	punt_vteps_free(&punt.vteps);
	atomic_store(&fib->pmtus, NULL);
	atomic_store(&fib->iface[GRE_IF], NULL);
	atomic_store(&fib->iface[SVI], NULL);
	atomic_store(&fib->seg6, NULL);
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* Begin a frame. Returns its IP header. */
static uint8_t *
begin(uint8_t family, unsigned int len)
{
	memset(&frame, 0, sizeof(frame));
	frame.m.buf_addr = frame.octet;
	frame.m.buf_len = ROOM;
	frame.m.nb_segs = 1;
	frame.m.data_len = frame.m.pkt_len = L2_LEN + len;
	frame.meta.family = family;
	return frame.octet + L2_LEN;
}

/* Write the checksum of the error, and give it to the code under test. */
static void
look4(uint8_t *ip, unsigned int len)
{
	put_be16(ip + ICMP_AT + 2, 0);
	put_be16(ip + ICMP_AT + 2,
		 (uint16_t)~inet_fold(inet_sum(ip + ICMP_AT, len - ICMP_AT, 0)));
	punt_pmtu_look(&punt, &frame.m);
}

/*
 * Write "fragmentation needed" about a packet from LOCAL to `dst`. Returns the IP header.
 */
static uint8_t *
error4(uint32_t dst, uint8_t proto, uint16_t mtu)
{
	uint8_t *ip = begin(4, QUOTED + 36), *in = ip + QUOTED;

	ip[0] = 0x45;
	put_be16(ip + 2, QUOTED + 36);
	ip[9] = 1;
	put_be32(ip + 12, ROUTER);
	put_be32(ip + 16, LOCAL);
	ip[ICMP_AT] = 3;
	ip[ICMP_AT + 1] = 4;
	put_be16(ip + ICMP_AT + 6, mtu);
	in[0] = 0x45;
	put_be16(in + 2, 1400);
	in[6] = 0x40;
	in[9] = proto;
	put_be32(in + 12, LOCAL);
	put_be32(in + 16, dst);
	if (proto == PROTO_UDP) {
		put_be16(in + 22, PORT);
		put_be32(in + 32, VNI << 8);
	}
	return ip;
}

static unsigned int
mtu_to(uint32_t dst)
{
	struct ipaddr to = ipaddr_from_v4(dst);

	return fib_pmtu(fib, 0, 4, &to);
}

static void
an_error_about_a_packet_of_a_tunnel_counts(void **state)
{
	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	assert_int_equal(mtu_to(REMOTE), 1300);
	look4(error4(REMOTE, 47, 1400), QUOTED + 36); /* a larger one may be late */
	assert_int_equal(mtu_to(REMOTE), 1300);
	look4(error4(REMOTE, 47, 68), QUOTED + 36);
	assert_int_equal(mtu_to(REMOTE), FIB_PMTU_LEAST);
}

static void
other_errors_do_not_count(void **state)
{
	uint8_t *ip;

	look4(error4(VTEP, 47, 1300), QUOTED + 36); /* no tunnel has this far end */
	look4(error4(REMOTE, 6, 1300), QUOTED + 36);
	ip = error4(REMOTE, 47, 1300);
	ip[QUOTED + 6] = 0; /* without DF */
	look4(ip, QUOTED + 36);
	ip = error4(REMOTE, 47, 1300);
	put_be32(ip + QUOTED + 12, REMOTE); /* another sender */
	look4(ip, QUOTED + 36);
	ip = error4(REMOTE, 47, 1300);
	ip[ICMP_AT + 1] = 1; /* host unreachable */
	look4(ip, QUOTED + 36);
	ip = error4(REMOTE, 47, 1300);
	put_be16(ip + 6, 0x2000); /* a fragment */
	look4(ip, QUOTED + 36);
	error4(REMOTE, 47, 1300); /* without a checksum */
	punt_pmtu_look(&punt, &frame.m);
	ip = error4(REMOTE, 47, 1300);
	frame.meta.inner_at = 50; /* out of a tunnel */
	look4(ip, QUOTED + 36);
	assert_null(atomic_load(&fib->pmtus));
}

/*
 * The code reads no octet behind the end of the frame; valgrind or ASan would report one.
 */
static void
a_cut_error_does_not_count(void **state)
{
	for (unsigned int len = 20; len < QUOTED + 20; len++) {
		uint8_t *ip = error4(REMOTE, 47, 1300);

		put_be16(ip + 2, (uint16_t)len);
		frame.m.data_len = frame.m.pkt_len = (uint16_t)(L2_LEN + len);
		look4(ip, len < ICMP_AT + 8 ? ICMP_AT + 8 : len);
	}
	assert_null(atomic_load(&fib->pmtus));
}

static void
a_vtep_must_be_that_of_a_neighbor(void **state)
{
	look4(error4(VTEP + 1, PROTO_UDP, 1300), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP + 1), FIB_PMTU_NONE);
	look4(error4(VTEP, PROTO_UDP, 1300), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP), 1300);
}

/* Let neighbors have the `n` VTEPs from VTEP on. */
static void
vteps(struct fib_vxlan_hop *more, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		more[i] = hop;
		more[i].t.remote = ipaddr_from_v4(VTEP + i);
		atomic_store(&fib->vxlan_hop[ADJ + i], &more[i]);
	}
}

/*
 * Forged errors use all scans before and after errors about VTEPs. The errors about VTEPs
 * count nevertheless.
 */
static void
forged_errors_do_not_stop_the_discovery(void **state)
{
	static struct fib_vxlan_hop more[40];

	vteps(more, 40);
	for (uint32_t i = 100; i < 200; i++)
		look4(error4(VTEP + i, PROTO_UDP, 1300), QUOTED + 36);
	assert_int_equal(punt.vteps.n_scans, VTEP_SCANS_MAX);
	for (uint32_t i = 0; i < 40; i++) {
		look4(error4(VTEP + i, PROTO_UDP, 1300), QUOTED + 36);
		look4(error4(VTEP + 100 + i, PROTO_UDP, 1300), QUOTED + 36);
		assert_int_equal(mtu_to(VTEP + i), 1300);
		assert_int_equal(mtu_to(VTEP + 100 + i), FIB_PMTU_NONE);
	}
	assert_int_equal(punt.vteps.n_scans, VTEP_SCANS_MAX);
	look4(error4(VTEP, PROTO_UDP, 1200), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP), 1200);
	for (uint32_t i = 1; i < 40; i++)
		atomic_store(&fib->vxlan_hop[ADJ + i], NULL);
}

/*
 * If forged errors have used all scans, a new or a removed VTEP is noticed after a second.
 */
static void
vteps_come_and_go(void **state)
{
	struct fib_vxlan_hop more[2];

	look4(error4(VTEP + 1, PROTO_UDP, 1300), QUOTED + 36);
	vteps(more, 2);
	look4(error4(VTEP + 1, PROTO_UDP, 1300), QUOTED + 36); /* a scan is left */
	assert_int_equal(mtu_to(VTEP + 1), 1300);
	atomic_store(&fib->vxlan_hop[ADJ + 1], NULL);
	punt_pmtu_expire(&punt);
	look4(error4(VTEP + 1, PROTO_UDP, 1200), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP + 1), 1300);
	while (punt.vteps.n_scans < VTEP_SCANS_MAX)
		look4(error4(VTEP + 2, PROTO_UDP, 1300), QUOTED + 36);
	vteps(more, 2);
	look4(error4(VTEP + 1, PROTO_UDP, 1200), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP + 1), 1300);
	punt_pmtu_expire(&punt);
	look4(error4(VTEP + 1, PROTO_UDP, 1200), QUOTED + 36);
	assert_int_equal(mtu_to(VTEP + 1), 1200);
	atomic_store(&fib->vxlan_hop[ADJ + 1], NULL);
	atomic_store(&fib->vxlan_hop[ADJ], NULL);
}

/* Report an error of a type and code about a packet of a tunnel to `dst`. */
static void
failed(uint8_t type, uint8_t code, uint32_t dst)
{
	uint8_t *ip = error4(dst, PROTO_GRE, 0);

	ip[ICMP_AT] = type;
	ip[ICMP_AT + 1] = code;
	ip[QUOTED + 6] = 0; /* it need not have DF */
	look4(ip, QUOTED + 36);
}

static unsigned int
told(void)
{
	return atomic_load(&fib->tunnel_told[GRE_IF]);
}

/* As in Linux: for each noted error, the sender of the next packet gets an ICMP error. */
static void
an_error_about_a_lost_packet_of_a_tunnel_is_noted(void **state)
{
	static const uint8_t not_such[][2] = {{3, 3}, {3, 5}, {11, 1}, {12, 0}, {5, 1}};

	for (unsigned int i = 0; i < sizeof(not_such) / 2; i++)
		failed(not_such[i][0], not_such[i][1], REMOTE);
	failed(3, 1, REMOTE + 1);
	assert_int_equal(told(), 0);
	failed(3, 1, REMOTE);
	assert_int_equal(told(), 1);
	failed(11, 0, REMOTE);
	assert_int_equal(told(), 2);
	assert_int_equal(mtu_to(REMOTE), FIB_PMTU_NONE);
	for (unsigned int i = 0; i < 100; i++)
		failed(3, 13, REMOTE);
	assert_int_equal(told(), FIB_TUNNEL_TOLD_MAX);
	/*
	 * Forwarders have given those packets to the kernel. More errors are noted only in
	 * the next second.
	 */
	atomic_store(&fib->tunnel_told[GRE_IF], 0);
	failed(3, 1, REMOTE);
	assert_int_equal(told(), 0);
	punt_pmtu_expire(&punt);
	failed(3, 1, REMOTE);
	assert_int_equal(told(), 1);
}

/* The outer packets of this tunnel leave by another tunnel, and the errors arrive by it. */
static void
an_error_that_came_in_a_tunnel_counts(void **state)
{
	uint8_t *ip = error4(REMOTE, PROTO_GRE, 1300);

	memmove(ip + 24, ip, QUOTED + 36);
	memset(ip, 0, 24); /* the outer headers */
	ip += 24;
	put_be16(ip + ICMP_AT + 2, 0);
	put_be16(ip + ICMP_AT + 2, (uint16_t)~inet_fold(inet_sum(ip + ICMP_AT, 44, 0)));
	frame.m.data_len = frame.m.pkt_len += 24;
	frame.meta.inner_at = 24;
	punt_pmtu_look(&punt, &frame.m);
	assert_int_equal(mtu_to(REMOTE), 1300);
}

/*
 * Write "packet too big" about a packet of a headend to segment `n`, with `len` octets in
 * all. Returns the IP header.
 */
static uint8_t *
error6(uint32_t n, uint32_t mtu, unsigned int len)
{
	uint8_t *ip = begin(6, len), *in = ip + QUOTED6;

	ip[0] = in[0] = 0x60;
	put_be16(ip + 4, (uint16_t)(len - 40));
	ip[6] = 58;
	ip[8] = 0x20;
	memcpy(ip + 24, own6, 16);
	ip[40] = 2;
	put_be32(ip + 44, mtu);
	in[6] = 43;
	memcpy(in + 8, own6, 16);
	in[24] = 0xfc;
	put_be32(in + 36, n);
	return ip;
}

static void
give6(uint8_t *ip, unsigned int len)
{
	put_be16(ip + 42, 0);
	put_be16(ip + 42, (uint16_t)~inet_fold(inet_sum(
				  ip + 40, len - 40, inet_sum(ip + 8, 32, len - 40 + 58))));
	punt_pmtu_look(&punt, &frame.m);
}

static void
look6(uint32_t n)
{
	give6(error6(n, 1400, QUOTED6 + 48), QUOTED6 + 48);
}

static unsigned int
mtu_to6(uint32_t n)
{
	struct ipaddr to = {{0xfc}};

	put_be32(to.octet + 12, n);
	return fib_pmtu(fib, 0, 6, &to);
}

/* Return the table, to change the time of an entry. */
static struct fib_pmtus *
table_of(void)
{
	return (struct fib_pmtus *)(uintptr_t)atomic_load(&fib->pmtus);
}

/*
 * RFC 8200, 5: each link of IPv6 carries 1280 octets. An MTU that needs 17 bits lowers no
 * path MTU.
 */
static void
no_ipv6_path_has_less_than_1280_octets(void **state)
{
	static const uint32_t mtu[][2] = {{0, 1280},
					  {552, 1280},
					  {1279, 1280},
					  {1280, 1280},
					  {1281, 1281},
					  {65534, 65534},
					  {65535, FIB_PMTU_NONE},
					  {UINT32_MAX, FIB_PMTU_NONE}};

	for (uint32_t i = 0; i < sizeof(mtu) / sizeof(mtu[0]); i++) {
		give6(error6(i, mtu[i][0], QUOTED6 + 48), QUOTED6 + 48);
		assert_int_equal(mtu_to6(i), mtu[i][1]);
	}
}

/*
 * The quoted packet ends within its IPv6 header, or behind it. An option of RFC 2473 need
 * not be quoted, but its next header counts if it is.
 */
static void
a_cut_error_of_ipv6_does_not_count(void **state)
{
	gre.tunnel = (struct fib_tunnel){.family = 6, .gre = true};
	memcpy(gre.tunnel.local.octet, own6, 16);
	gre.tunnel.remote = (struct ipaddr){{0xfc, [15] = 7}};
	atomic_store(&fib->seg6, NULL); /* no headend can have sent it */
	for (unsigned int len = QUOTED6; len <= QUOTED6 + 48; len++) {
		uint8_t *ip = error6(7, 1400, QUOTED6 + 48);

		ip[QUOTED6 + 6] = PROTO_IP6_OPTS;
		ip[QUOTED6 + 40] = 6;
		put_be16(ip + 4, (uint16_t)(len - 40));
		frame.m.data_len = frame.m.pkt_len = (uint16_t)(L2_LEN + len);
		give6(ip, len);
		assert_int_equal(mtu_to6(7), len < QUOTED6 + 40 || len == QUOTED6 + 48
						     ? FIB_PMTU_NONE
						     : 1400);
		free(table_of());
		atomic_store(&fib->pmtus, NULL);
	}
}

static void
path_mtus_expire(void **state)
{
	uint32_t now = (uint32_t)monotonic_s();

	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	look6(1);
	punt_pmtu_expire(&punt);
	assert_int_equal(table_of()->n, 2);
	assert_in_range(table_of()->entry[0].until_s, now + 600, now + 602);
	table_of()->entry[0].until_s = now;
	punt_pmtu_expire(&punt);
	assert_int_equal(table_of()->n, 1);
	assert_int_equal(mtu_to(REMOTE), FIB_PMTU_NONE);
	assert_int_equal(mtu_to6(1), 1400);
	look4(error4(REMOTE, 47, 1400), QUOTED + 36); /* a larger one counts now */
	assert_int_equal(mtu_to(REMOTE), 1400);
	for (uint32_t i = 0; i < 2; i++)
		table_of()->entry[i].until_s = now;
	punt_pmtu_expire(&punt);
	assert_null(table_of());
}

/* As in Linux: the same MTU renews an entry only in the second half of its lifetime. */
static void
an_old_entry_is_renewed(void **state)
{
	uint32_t now = (uint32_t)monotonic_s();
	const struct fib_pmtus *table;

	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	table_of()->entry[0].until_s = now + 400;
	table = table_of();
	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	assert_ptr_equal(table_of(), table);
	table_of()->entry[0].until_s = now + 200;
	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	assert_int_equal(table_of()->n, 1);
	assert_true(table_of()->entry[0].until_s >= now + 600);
}

/* A new tunnel gets the place of the entry that expires first. */
static void
a_full_table_forgets_the_oldest_entry(void **state)
{
	const uint32_t oldest = 77;

	for (uint32_t i = 0; i <= FIB_PMTUS_MAX; i++) {
		gre.tunnel.remote = ipaddr_from_v4(REMOTE + i);
		if (i == FIB_PMTUS_MAX)
			table_of()->entry[oldest].until_s -= 5;
		look4(error4(REMOTE + i, 47, 1300), QUOTED + 36);
	}
	assert_int_equal(table_of()->n, FIB_PMTUS_MAX);
	for (uint32_t i = 0; i <= FIB_PMTUS_MAX; i++)
		assert_int_equal(mtu_to(REMOTE + i), i == oldest ? FIB_PMTU_NONE : 1300);
}

/* Made-up segments have half of the table, and never the place of a tunnel. */
static void
made_up_destinations_do_not_fill_the_table(void **state)
{
	const struct fib_pmtus *table;
	unsigned int n_sure = 0;

	look4(error4(REMOTE, 47, 1300), QUOTED + 36);
	for (uint32_t i = 0; i < 2 * FIB_PMTUS_MAX; i++)
		look6(i);
	table = atomic_load(&fib->pmtus);
	assert_int_equal(table->n, FIB_PMTUS_HALF + 1);
	for (uint32_t i = 0; i < FIB_PMTUS_MAX; i++) {
		gre.tunnel.remote = ipaddr_from_v4(REMOTE + i);
		look4(error4(REMOTE + i, 47, 1300), QUOTED + 36);
		assert_int_equal(mtu_to(REMOTE + i), 1300);
	}
	look6(1u << 20);
	table = atomic_load(&fib->pmtus);
	assert_int_equal(table->n, FIB_PMTUS_MAX);
	for (uint32_t i = 0; i < table->n; i++)
		n_sure += table->entry[i].sure;
	assert_int_equal(n_sure, FIB_PMTUS_MAX);
	assert_int_equal(mtu_to(REMOTE), 1300);
}

/*
 * An error that looks like an error about a headend does not clear `sure` of a tunnel's
 * entry.
 */
static void
a_sure_entry_stays_sure(void **state)
{
	struct fib_pmtus *table;

	look6(5);
	table = (struct fib_pmtus *)(uintptr_t)atomic_load(&fib->pmtus);
	assert_false(table->entry[0].sure);
	table->entry[0].sure = true; /* as if a tunnel of IPv6 led there */
	table->entry[0].mtu_bytes = 1450;
	look6(5);
	table = (struct fib_pmtus *)(uintptr_t)atomic_load(&fib->pmtus);
	assert_int_equal(table->n, 1);
	assert_int_equal(table->entry[0].mtu_bytes, 1400);
	assert_true(table->entry[0].sure);
}

#define pmtu_test(f) cmocka_unit_test_setup_teardown(f, set_up, down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		pmtu_test(an_error_about_a_packet_of_a_tunnel_counts),
		pmtu_test(other_errors_do_not_count),
		pmtu_test(a_cut_error_does_not_count),
		pmtu_test(an_error_about_a_lost_packet_of_a_tunnel_is_noted),
		pmtu_test(an_error_that_came_in_a_tunnel_counts),
		pmtu_test(a_vtep_must_be_that_of_a_neighbor),
		pmtu_test(forged_errors_do_not_stop_the_discovery),
		pmtu_test(vteps_come_and_go),
		pmtu_test(made_up_destinations_do_not_fill_the_table),
		pmtu_test(a_sure_entry_stays_sure),
		pmtu_test(no_ipv6_path_has_less_than_1280_octets),
		pmtu_test(a_cut_error_of_ipv6_does_not_count),
		pmtu_test(path_mtus_expire),
		pmtu_test(an_old_entry_is_renewed),
		pmtu_test(a_full_table_forgets_the_oldest_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
