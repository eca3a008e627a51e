/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets that the punt thread forwards and the ruleset judges: which packets are
 * judged, the fields that the ruleset gets, and the result. The test plays the ruleset.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "punt/filter.c"

#define IN     3
#define OUT    4
#define L2_LEN 14

static struct {
	struct rte_mbuf m;
	struct packet_meta meta; /* the private area of `m` */
	uint8_t frame[128];
} t;

static struct fib fib;
static _Atomic uint64_t egress[1] = {77}; /* all sources have group 0 */
static struct {
	struct punt p;
	struct fib_iface in, out;
	struct ruleset rules;
	enum ruleset_verdict verdict;
	struct ruleset_packet judged; /* as the ruleset got it */
	struct fib_back_key back_key;
	unsigned int n_judged, n_dropped, n_lost;
	enum reason reason;
} u;

/* --- functions that this program replaces --------------------------------------------- */

enum ruleset_verdict
ruleset_judge(const struct ruleset *r, struct ruleset_packet *packet)
{
	assert_ptr_equal(r, &u.rules);
	u.judged = *packet;
	u.n_judged++;
	packet->icmp_type = 3;
	packet->icmp_code = 13;
	return u.verdict;
}

void
punt_drop(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	assert_ptr_equal(m, &t.m);
	u.n_dropped++;
	u.reason = reason;
}

void
punt_lost(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	u.n_lost++;
	u.reason = reason;
}

uint32_t
fib_back_group(const struct fib *f, const struct fib_back_key *key)
{
	u.back_key = *key;
	return 0;
}

enum fib_back
fib_egress_judge(const struct fib *f, const struct fib_iface *in, uint64_t egress_,
		 bool by_vrf)
{
	assert_ptr_equal(f, &fib);
	assert_ptr_equal(in, &u.in);
	assert_int_equal(egress_, 77);
	assert_true(by_vrf);
	return (enum fib_back)2;
}

/* --- tests ---------------------------------------------------------------------------- */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&u, 0, sizeof(u));
	u.in = (struct fib_iface){.ifidx = IN, .ifindex = 30, .hook_ifindex = 31};
	u.out = (struct fib_iface){.ifidx = OUT, .ifindex = 40};
	strcpy(u.in.name, "wan0");
	strcpy(u.in.hook_name, "red");
	strcpy(u.out.name, "lan0");
	fib.iface[IN] = &u.in;
	fib.iface[OUT] = &u.out;
	fib.filter = &u.rules;
	fib.egress = egress;
	u.p.fib = &fib;
	u.p.conf.n_fwd = 5;
	t.m.priv_size = sizeof(t.meta);
	t.m.buf_addr = t.frame;
	t.m.data_len = L2_LEN + 60;
	packet_meta(&t.m)->in_ifidx = IN;
	return 0;
}

static enum punt_judgment
judged(uint8_t family)
{
	return punt_filter(&u.p, &t.m, t.frame + L2_LEN, family, &u.out);
}

static void
the_ruleset_gets_the_packet_and_its_interfaces(void **state)
{
	t.frame[L2_LEN + 3] = 50; /* octets of the IPv4 packet, before its padding */
	assert_int_equal(judged(4), PUNT_PASSES);
	assert_int_equal(u.n_judged, 1);
	assert_ptr_equal(u.judged.ip, t.frame + L2_LEN);
	assert_int_equal(u.judged.l3_bytes, 50);
	assert_int_equal(u.judged.room, 50);
	assert_int_equal(u.judged.family, 4);
	assert_int_equal(u.judged.iif, 31);
	assert_int_equal(u.judged.oif, 40);
	assert_string_equal(u.judged.iifname, "red");
	assert_string_equal(u.judged.oifname, "lan0");
	assert_int_equal(u.judged.thread, 5);
	assert_null(u.judged.back);
	/* The packet now counts as judged for this egress interface only. */
	assert_int_equal(packet_meta(&t.m)->judged_ifidx, OUT);
	assert_int_equal(judged(4), PUNT_PASSES);
	assert_int_equal(u.n_judged, 1);
	packet_meta(&t.m)->judged_ifidx = IN;
	t.frame[L2_LEN + 4] = 1; /* payload of IPv6; more than the first segment has */
	assert_int_equal(judged(6), PUNT_PASSES);
	assert_int_equal(u.n_judged, 2);
	assert_int_equal(u.judged.l3_bytes, 296);
	assert_int_equal(u.judged.room, 60);
	assert_int_equal(u.n_dropped + u.n_lost, 0);
}

static void
packets_without_a_ruleset_or_not_of_ip_pass(void **state)
{
	u.verdict = RULESET_DROP;
	assert_int_equal(judged(0), PUNT_PASSES);
	fib.filter = NULL;
	assert_int_equal(judged(4), PUNT_PASSES);
	assert_int_equal(u.n_judged, 0);
}

static void
a_refused_packet_has_its_reason(void **state)
{
	u.verdict = RULESET_DROP;
	assert_int_equal(judged(4), PUNT_DROPPED);
	assert_int_equal(u.reason, DROP_filter);
	assert_int_equal(u.n_dropped, 1);
	u.rules.absent = true;
	packet_meta(&t.m)->judged_ifidx = 0;
	assert_int_equal(judged(4), PUNT_DROPPED);
	assert_int_equal(u.reason, DROP_filter_absent);
	assert_int_equal(u.n_dropped, 2);
	/* The caller sends the ICMP error, so the packet stays. */
	u.verdict = RULESET_REJECT;
	packet_meta(&t.m)->judged_ifidx = 0;
	assert_int_equal(judged(4), PUNT_REJECTED);
	assert_int_equal(u.reason, DROP_filter);
	assert_int_equal(u.n_dropped, 2);
	assert_int_equal(u.n_lost, 1);
	assert_int_equal(packet_meta(&t.m)->reject_type, 3);
	assert_int_equal(packet_meta(&t.m)->reject_code, 13);
	/* The interface that received the packet is deleted. */
	fib.iface[IN] = NULL;
	packet_meta(&t.m)->judged_ifidx = 0;
	u.n_judged = 0;
	assert_int_equal(judged(4), PUNT_DROPPED);
	assert_int_equal(u.reason, DROP_filter);
	assert_int_equal(u.n_dropped, 3);
	assert_int_equal(u.n_judged, 0);
}

static void
the_reverse_path_is_that_of_the_vrf(void **state)
{
	t.frame[L2_LEN + 3] = 50;
	u.rules.asks_back = true;
	assert_int_equal(judged(4), PUNT_PASSES);
	assert_non_null(u.judged.back);
	u.judged.back_of = &(struct back_of){&fib, &u.in};
	assert_int_equal(u.judged.back(&u.judged, true), 2);
	assert_int_equal(u.back_key.oif, 40);
	assert_ptr_equal(u.back_key.in, &u.in);
	assert_ptr_equal(u.back_key.main, &fib.copy[0]);
	assert_ptr_equal(u.back_key.ip, t.frame + L2_LEN);
	assert_int_equal(u.back_key.room, 50);
	assert_int_equal(u.back_key.family, 4);
	assert_true(u.back_key.by_vrf && u.back_key.no_ports);
	assert_int_equal(u.back_key.proto, t.frame[L2_LEN + 9]);
	(void)u.judged.back(&u.judged, false);
	assert_int_equal(u.back_key.oif, FIB_BACK_LOOPBACK);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(the_ruleset_gets_the_packet_and_its_interfaces),
		TEST(packets_without_a_ruleset_or_not_of_ip_pass),
		TEST(a_refused_packet_has_its_reason),
		TEST(the_reverse_path_is_that_of_the_vrf),
	};

	return cmocka_run_group_tests_name("punt_filter", tests, NULL, NULL);
}
