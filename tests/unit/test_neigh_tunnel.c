/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tunnels as the kernel reports them: which become interfaces of the dataplane, with which
 * outer header, in which VRF, and how forwarders find the tunnel of a received packet. The
 * test plays the kernel, because the kernel of this machine may have no tunnels.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include <jansson.h>

#include "fib/tunnel.h"
#include "log_said.h"
#include "neigh_bed.h"

#define LOCAL  0xc0000201u /* 192.0.2.1 */
#define REMOTE 0xc0000202u

/* Return a GRE tunnel over IPv4. It has no key if `key` is 0. */
static struct kmon_link
gre_of(uint32_t ifindex, uint32_t remote, uint32_t key)
{
	struct kmon_link l = link_of(ifindex, "t0");

	snprintf(l.name, sizeof(l.name), "t%u", ifindex);
	memset(l.mac, 0, sizeof(l.mac));
	l.mtu_bytes = 1476;
	l.tunnel = (struct kmon_tunnel){.kind = KMON_GRE,
					.family = 4,
					.df = true,
					.has_in_key = key != 0,
					.has_out_key = key != 0,
					.in_key = key,
					.out_key = key + 1};
	put_be32(l.tunnel.local, LOCAL);
	put_be32(l.tunnel.remote, remote);
	return l;
}

static struct kmon_link
ip6tnl_of(uint32_t ifindex, uint8_t proto, bool limit)
{
	struct kmon_link l = gre_of(ifindex, REMOTE, 0);

	l.tunnel = (struct kmon_tunnel){.kind = KMON_IP6TNL,
					.family = 6,
					.proto = proto,
					.ttl = 64,
					.has_encap_limit = limit,
					.encap_limit = 4,
					.flow_label = 0x12345};
	l.tunnel.local[15] = 1;
	l.tunnel.remote[15] = 2;
	return l;
}

/* Return the interface of the dataplane with this ifindex, or NULL. */
static const struct fib_iface *
tunnel_at(uint32_t ifindex)
{
	for (uint16_t i = PORT_MAX; i < IFIDX_MAX; i++)
		if (fib_iface(fib, i) != NULL && fib_iface(fib, i)->ifindex == ifindex)
			return fib_iface(fib, i);
	return NULL;
}

static uint32_t came_by = TAP; /* ifindex of the interface of received packets */

/* Return the ifindex of the tunnel that a received packet belongs to; 0: none. */
static uint32_t
tunnel_for(uint16_t vrf, uint32_t remote, uint8_t proto, uint32_t key)
{
	uint8_t packet[100] = {0x45};
	struct fib_tunnel_last last = {.ifidx = 0};
	struct fib_tunnel_found found;
	unsigned int at = 20;

	put_be16(packet + 2, sizeof(packet));
	packet[9] = proto;
	put_be32(packet + 12, remote);
	put_be32(packet + 16, LOCAL);
	if (proto == PROTO_GRE) {
		put_be16(packet + 22, 0x0800);
		packet[20] = key != 0 ? 0x20 : 0;
		put_be32(packet + 24, key);
		at = key != 0 ? 28 : 24;
	}
	packet[at] = proto == PROTO_IP6 ? 0x60 : 0x45;
	put_be16(packet + at + 2, proto == PROTO_IP6 ? 0 : 40);
	return fib_tunnel_find(fib, vrf, came_by, 4, packet, sizeof(packet), &last, &found)
		       ? fib_iface(fib, found.ifidx)->ifindex
		       : 0;
}

static void
a_tunnel_is_an_interface_until_it_goes(void **state)
{
	struct kmon_link t = gre_of(20, REMOTE, 0);
	const struct fib_iface *i;
	struct kmon_tunnel *k = &t.tunnel;

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	add(t);
	round_over();
	i = tunnel_at(20);
	assert_non_null(i);
	assert_true(i->up && i->port == 0 && i->mtu_bytes == 1476);
	assert_string_equal(i->name, "t20");
	assert_true(i->tunnel.gre && i->tunnel.family == 4 && i->tunnel.df);
	assert_int_equal(i->tunnel.bytes, 24);
	assert_int_equal(i->tunnel.proto_at, 22);
	assert_int_equal(i->tunnel.head[9], PROTO_GRE);
	assert_int_equal(get_be32(i->tunnel.head + 16), REMOTE);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 20);
	assert_int_equal(tunnel_for(0, REMOTE + 1, PROTO_GRE, 0), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 9), 0);
	assert_int_equal(tunnel_for(3, REMOTE, PROTO_GRE, 0), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP4, 0), 0);

	/* After `ip link change` the interface has the number that it had. */
	k->has_in_key = k->has_out_key = true;
	k->in_key = 7;
	k->out_key = 8;
	tell(&t, false);
	round_over();
	assert_int_equal(tunnel_at(20)->tunnel.bytes, 28);
	assert_int_equal(get_be32(tunnel_at(20)->tunnel.head + 24), 8);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 7), 20);
	t.admin_up = false;
	tell(&t, false);
	round_over();
	assert_false(tunnel_at(20)->up);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 7), 0);
	t.admin_up = true;
	tell(&t, false);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 7), 20);
	del(t);
	round_over();
	assert_null(tunnel_at(20));
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 7), 0);
	assert_null(fib->tunnels);
}

static void
headers_over_ipv6_have_the_limit(void **state)
{
	const struct fib_tunnel *t;

	add(ip6tnl_of(20, 0, true));
	add(ip6tnl_of(21, 41, false));
	round_over();
	t = &tunnel_at(20)->tunnel;
	assert_true(t->inner4 && t->inner6 && t->has_limit && !t->gre);
	assert_int_equal(t->bytes, 48);
	assert_int_equal(t->proto_at, 40);
	assert_int_equal(t->head[6], PROTO_IP6_OPTS);
	assert_memory_equal(t->head + 41, "\x00\x04\x01\x04\x01\x01\x00", 7);
	assert_int_equal(get_be32(t->head), 0x60012345);
	t = &tunnel_at(21)->tunnel;
	assert_true(!t->inner4 && t->inner6 && !t->has_limit);
	assert_int_equal(t->bytes, 40);
	assert_int_equal(t->proto_at, 6);
}

/* Tunnels of one local and one remote address differ by key, protocol and VRF. */
static void
received_packets_find_their_tunnel(void **state)
{
	struct kmon_link ip = gre_of(23, REMOTE, 0), sit = ip, red = gre_of(25, REMOTE, 0);
	struct kmon_link vrf = link_of(50, "red");

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	vrf.vrf_table = 100;
	add(vrf);
	add(gre_of(20, REMOTE, 0));
	add(gre_of(21, REMOTE, 1));
	add(gre_of(22, REMOTE, 2));
	ip.tunnel.kind = KMON_IPIP;
	ip.tunnel.proto = 4;
	add(ip);
	sit.ifindex = 24;
	sit.tunnel.kind = KMON_SIT;
	sit.tunnel.proto = 41;
	add(sit);
	red.tunnel.link = 50;
	add(red);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 20);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 1), 21);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 2), 22);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 3), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP4, 0), 23);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP6, 0), 24);
	assert_int_equal(tunnel_for(1, REMOTE, PROTO_GRE, 0), 25);
	assert_int_equal(tunnel_for(1, REMOTE, PROTO_GRE, 1), 0);
	/* An ipip tunnel for any protocol takes no IPv6 packets from the sit tunnel. */
	ip.tunnel.proto = 0;
	tell(&ip, false);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP4, 0), 23);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP6, 0), 24);
	assert_false(tunnel_at(23)->tunnel.inner6);
	/* Only for sit, Linux requires that packets come by the link of the tunnel. */
	assert_true(tunnel_at(24)->tunnel.only_link);
	assert_false(tunnel_at(20)->tunnel.only_link || tunnel_at(23)->tunnel.only_link);
	ip.tunnel.link = sit.tunnel.link = TAP;
	tell(&ip, false);
	tell(&sit, false);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP6, 0), 24);
	came_by = TAP + 1;
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP6, 0), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_IP4, 0), 23);
	came_by = TAP;
	fib->tunnels_state = FIB_TUNNELS_IPSEC;
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 0);
}

/* Leave the choice between tunnels that differ by `dev` only to the kernel. */
static void
tunnels_that_differ_by_their_link_receive_by_the_kernel(void **state)
{
	struct kmon_link one = gre_of(20, REMOTE, 0), two = gre_of(21, REMOTE, 0);
	struct kmon_link three = gre_of(22, REMOTE, 0);

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	one.tunnel.link = TAP;
	add(one);
	add(gre_of(23, REMOTE, 5));
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 20);
	two.tunnel.link = TAP + 1;
	three.tunnel.link = TAP + 2;
	add(two);
	add(three);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 0);
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 5), 23);
	del(two);
	del(three);
	round_over();
	assert_int_equal(tunnel_for(0, REMOTE, PROTO_GRE, 0), 20);
}

/*
 * A tunnel without GRE has two entries in the hash table. For some of these addresses both
 * are in the same place.
 */
static void
a_tunnel_of_both_families_is_no_other_tunnel(void **state)
{
	struct kmon_link t = gre_of(20, REMOTE, 0);

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	t.tunnel.kind = KMON_SIT;
	t.tunnel.proto = 0;
	add(t);
	for (uint32_t k = 0; k < 200; k++) {
		put_be32(t.tunnel.remote, REMOTE + k);
		tell(&t, false);
		round_over();
		assert_int_equal(tunnel_for(0, REMOTE + k, PROTO_IP4, 0), 20);
		assert_int_equal(tunnel_for(0, REMOTE + k, PROTO_IP6, 0), 20);
	}
}

static void
tunnels_between_link_local_addresses_stay_with_the_kernel(void **state)
{
	struct kmon_link t = ip6tnl_of(20, 0, false);

	put_be16(t.tunnel.local, 0xfe80);
	add(t);
	round_over();
	assert_null(tunnel_at(20));
	put_be16(t.tunnel.local, 0x2001);
	put_be16(t.tunnel.remote, 0xfebf);
	tell(&t, false);
	round_over();
	assert_null(tunnel_at(20));
	put_be16(t.tunnel.remote, 0x2001);
	tell(&t, false);
	round_over();
	assert_non_null(tunnel_at(20));
}

/*
 * `dev` of a tunnel is a VRF, a member of a VRF, or an interface. A member may change its
 * VRF.
 */
static void
outer_packets_are_in_the_vrf_of_the_link_below(void **state)
{
	struct kmon_link vrf = link_of(50, "red"), tap = link_of(TAP, "wan0");
	struct kmon_link t = gre_of(20, REMOTE, 0);

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	t.tunnel.link = TAP;
	add(t);
	round_over();
	assert_int_equal(tunnel_at(20)->tunnel.vrf, 0);
	assert_int_equal(tunnel_at(20)->tunnel.link, TAP);
	vrf.vrf_table = 100;
	add(vrf);
	tap.master = 50;
	tell(&tap, false);
	round_over();
	assert_int_equal(tunnel_at(20)->tunnel.vrf, 1);
	assert_int_equal(tunnel_for(1, REMOTE, PROTO_GRE, 0), 20);
	t.tunnel.link = 50;
	tell(&t, false);
	round_over();
	assert_int_equal(tunnel_at(20)->tunnel.vrf, 1);
	assert_int_equal(tunnel_at(20)->tunnel.link, 0);
	/* The VRF of inner packets is that of the tunnel's master. */
	assert_int_equal(tunnel_at(20)->vrf, 0);
	t.master = 50;
	tell(&t, false);
	round_over();
	assert_int_equal(tunnel_at(20)->vrf, 1);
}

static void
what_forwarders_cannot_do_stays_with_the_kernel(void **state)
{
	static const char *const reason[KMON_TUNNEL_N_CANNOT] = {
		[KMON_TUNNEL_CHECKSUM] = "checksum",
		[KMON_TUNNEL_SEQUENCE] = "sequence",
		[KMON_TUNNEL_EXTERNAL] = "external",
		[KMON_TUNNEL_ENCAP] = "udp",
		[KMON_TUNNEL_FWMARK] = "fwmark",
		[KMON_TUNNEL_ISATAP] = "isatap",
		[KMON_TUNNEL_MIP6] = "mobile-ipv6",
		[KMON_TUNNEL_DSCP_COPY] = "dscp-copy",
		[KMON_TUNNEL_NAMESPACE] = "namespace",
		[KMON_TUNNEL_MPLS] = "mpls",
		[KMON_TUNNEL_LEARNING] = "learning",
		[KMON_TUNNEL_GBP] = "gbp",
		[KMON_TUNNEL_GPE] = "gpe",
		[KMON_TUNNEL_REMCSUM] = "remcsum"};
	struct kmon_link t = gre_of(20, REMOTE, 0);

	for (unsigned int c = 1; c < KMON_TUNNEL_N_CANNOT; c++) {
		char line[96];

		t.tunnel.cannot = (enum kmon_tunnel_cannot)c;
		add(t);
		tell(&t, false); /* it is logged once */
		round_over();
		snprintf(line, sizeof(line),
			 "neigh: tunnel left to the kernel dev=t20 kind=gre reason=%s",
			 reason[c]);
		assert_int_equal(log_said(line), 1);
		assert_null(tunnel_at(20));
		del(t);
		round_over();
	}
	t.tunnel.cannot = KMON_TUNNEL_CAN;
	put_be32(t.tunnel.remote, 0);
	assert_string_equal(tunnel_refusal(&t), "no-remote");
	put_be32(t.tunnel.remote, 0xe0000105);
	assert_string_equal(tunnel_refusal(&t), "group-remote");
	put_be32(t.tunnel.remote, REMOTE);
	put_be32(t.tunnel.local, 0);
	assert_string_equal(tunnel_refusal(&t), "no-local");
	put_be32(t.tunnel.local, LOCAL);
	assert_null(tunnel_refusal(&t));

	/* A tunnel that forwarders serve gets the checksum option, and loses it again. */
	add(t);
	round_over();
	assert_non_null(tunnel_at(20));
	t.tunnel.cannot = KMON_TUNNEL_CHECKSUM;
	tell(&t, false);
	round_over();
	assert_null(tunnel_at(20));
	t.tunnel.cannot = KMON_TUNNEL_CAN;
	tell(&t, false);
	round_over();
	assert_non_null(tunnel_at(20));
}

/* Take the messages to rib. Store MSG_LINK about interface 20. Return their number. */
static unsigned int
rib_heard(struct msg_link heard[2])
{
	struct msg *m;
	unsigned int n = 0;

	while ((m = worker_take(&rib)) != NULL) {
		const struct msg_link *l = (const struct msg_link *)m;

		if (m->type == MSG_LINK && l->ifindex == 20) {
			assert_true(n < 2);
			heard[n++] = *l;
		}
		msg_free(m);
	}
	return n;
}

/*
 * rib gets one message about a new tunnel: the interface is a tunnel, is up, and has a
 * number. It gets one message when the tunnel is deleted. If the tunnel is left to the
 * kernel, or no longer, rib loses the interface and gets it again, without or with a
 * number.
 */
static void
rib_hears_of_tunnels(void **state)
{
	struct kmon_link t = gre_of(20, REMOTE, 0);
	struct msg_link heard[2];

	add(t);
	assert_int_equal(rib_heard(heard), 1);
	assert_true(heard[0].tunnel && heard[0].up && heard[0].ifidx >= PORT_MAX);
	assert_false(heard[0].gone);

	t.tunnel.cannot = KMON_TUNNEL_CHECKSUM;
	tell(&t, false);
	assert_int_equal(rib_heard(heard), 2);
	assert_true(heard[0].gone && !heard[1].gone);
	assert_true(!heard[1].tunnel && heard[1].up && heard[1].ifidx == 0);

	t.tunnel.cannot = KMON_TUNNEL_CAN;
	tell(&t, false);
	assert_int_equal(rib_heard(heard), 2);
	assert_true(heard[0].gone && !heard[1].gone);
	assert_true(heard[1].tunnel && heard[1].up && heard[1].ifidx >= PORT_MAX);

	del(t);
	assert_int_equal(rib_heard(heard), 1);
	assert_true(heard[0].gone && !heard[0].up);
}

/* Return the rows of neigh's answer to a query. */
static json_t *
answer_to(enum query_kind kind)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	json_t *rows;

	q->kind = kind;
	q->from = &rib;
	q->max = 100;
	empty(&rib);
	neigh.ops->on_msg(&neigh, &q->m);
	assert_ptr_equal(worker_take(&rib), &q->m);
	rows = q->rows;
	msg_free(&q->m);
	return rows;
}

/* Return the number of rows in neigh's answer to a query. */
static size_t
rows_of(enum query_kind kind)
{
	json_t *rows = answer_to(kind);
	size_t n = json_array_size(rows);

	json_decref(rows);
	return n;
}

/* Assert that the row of the only tunnel has these families of inner packets. */
static void
inner_is(const char *families)
{
	json_t *rows = answer_to(QUERY_INTERFACES);
	const json_t *row, *inner = NULL;
	size_t i;

	json_array_foreach (rows, i, row)
		if (inner == NULL)
			inner = json_object_get(row, "inner");
	assert_non_null(inner);
	assert_string_equal(json_string_value(inner), families);
	json_decref(rows);
}

static void
the_families_that_a_tunnel_takes_are_told(void **state)
{
	struct kmon_link t = gre_of(20, REMOTE, 0);

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	add(t);
	round_over();
	inner_is("any");
	t.tunnel.kind = KMON_SIT;
	t.tunnel.proto = PROTO_IP6;
	tell(&t, false);
	round_over();
	inner_is("ipv6");
	t.tunnel.proto = PROTO_IP4;
	tell(&t, false);
	round_over();
	inner_is("ipv4");
}

/* The rows name tunnels that the kernel serves. No other answer has them. */
static void
a_question_about_tunnels_has_the_tunnels_alone(void **state)
{
	struct kmon_link t = gre_of(20, REMOTE, 0);
	size_t interfaces = rows_of(QUERY_INTERFACES);

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	assert_int_equal(rows_of(QUERY_TUNNELS), 0);
	t.tunnel.cannot = KMON_TUNNEL_SEQUENCE;
	add(t);
	round_over();
	assert_int_equal(rows_of(QUERY_TUNNELS), 1);
	assert_int_equal(rows_of(QUERY_NEIGHBORS), 0);
	assert_int_equal(rows_of(QUERY_NEIGH_SUMMARY), 1);
	assert_int_equal(rows_of(QUERY_INTERFACES), interfaces + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_tunnel_is_an_interface_until_it_goes),
		bed_test(headers_over_ipv6_have_the_limit),
		bed_test(received_packets_find_their_tunnel),
		bed_test(tunnels_that_differ_by_their_link_receive_by_the_kernel),
		bed_test(a_tunnel_of_both_families_is_no_other_tunnel),
		bed_test(tunnels_between_link_local_addresses_stay_with_the_kernel),
		bed_test(outer_packets_are_in_the_vrf_of_the_link_below),
		bed_test(what_forwarders_cannot_do_stays_with_the_kernel),
		bed_test(rib_hears_of_tunnels),
		bed_test(a_question_about_tunnels_has_the_tunnels_alone),
		bed_test(the_families_that_a_tunnel_takes_are_told),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
