/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets to end points of SRv6, octet by octet: RFC 8754, 4.3, RFC 8986, 4, RFC 9800, 4.1.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <linux/rtnetlink.h>

#include "fib/rules.h"
#include "fib/sid_number.h"
#include "fib/urpf.h"
#include "port/watch.h"
#include "sid_bed.h"

/* S11: the outer header comes off, and the inner packet is looked up in the VRF. */
static void
decapsulates_into_the_vrf(void **state)
{
	static const struct {
		uint8_t action, family;
		bool taken;
	} want[] = {
		{SRV6_END_DT4, 4, true},  {SRV6_END_DT4, 6, false},
		{SRV6_END_DT6, 6, true},  {SRV6_END_DT6, 4, false},
		{SRV6_END_DT46, 4, true}, {SRV6_END_DT46, 6, true},
	};

	for (unsigned int k = 0; k < sizeof(want) / sizeof(want[0]); k++)
		for (unsigned int n = 0; n < 3; n++) {
			sid(want[k].action, 0, RED);
			build(n, 0, want[k].family);
			if (!want[k].taken) { /* RFC 8986, 4.6 to 4.8: see 4.1.1 */
				refuses(DROP_srv6_upper,
					n == 0 ? OUTER : OUTER + 8 + 16 * n);
				continue;
			}
			assert_int_equal(pass(), VERDICT_GO);
			leaves(100, want[k].family == 4 ? 0x0800 : 0x86dd, LAN);
			assert_int_equal(sent()[want[k].family == 4 ? 8 : 7], 8);
			assert_int_equal(sent()[99], 0x77);
			if (want[k].family == 4)
				assert_true(ip4_checksum_ok(sent(), 20));
		}
	/* The table of the end point decides. */
	sid(SRV6_END_DT46, 0, 0);
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, WAN);
}

/* Pass an inner IPv4 packet into RED. `egress`: interfaces of the route to its source. */
static uint8_t
pass_from(uint64_t egress)
{
	fib->egress[24] = egress;
	sid(SRV6_END_DT46, 0, RED);
	build(0, 0, 4);
	return pass();
}

/*
 * As in Linux (end_dt_vrf_rcv()), the inner packet comes by the device of the VRF: its
 * rp_filter counts, and each member of the VRF is a reverse path. The hook forward of nft
 * sees this device.
 */
static void
sources_are_checked_by_the_device_of_the_vrf(void **state)
{
	struct fib_vrf *red = fib->vrf[RED];
	uint8_t net[4];

	put_be32(net, HOST4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 24), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	fib->iface[WAN]->urpf4 = FIB_URPF_STRICT; /* only for packets of the port */
	fib->vrf_device[RED] = fib_vrf_device_make(77, FIB_URPF_OFF);
	assert_int_equal(pass_from(0), VERDICT_GO);
	assert_int_equal(b.in->hook_ifindex, 77);
	assert_string_equal(b.in->hook_name, "red");

	fib->vrf_device[RED] = fib_vrf_device_make(77, FIB_URPF_STRICT);
	assert_int_equal(pass_from(0), DROP_urpf);
	assert_int_equal(pass_from(FIB_EGRESS_VRF | RED), VERDICT_GO);
	assert_int_equal(pass_from(FIB_EGRESS_VRF | (RED + 1)), DROP_urpf);
	assert_int_equal(pass_from(LAN), DROP_urpf); /* LAN is in table main */
	assert_int_equal(pass_from(WAN), DROP_urpf); /* the port of the outer packet, too */
	fib->iface[LAN]->vrf = RED;
	assert_int_equal(pass_from(LAN), VERDICT_GO);
	assert_int_equal(pass_from(WAN | (uint64_t)LAN << 16), VERDICT_GO);

	fib->vrf_device[RED] = fib_vrf_device_make(77, FIB_URPF_LOOSE);
	assert_int_equal(pass_from(WAN), VERDICT_GO);
	assert_int_equal(pass_from(0), DROP_urpf);

	fib->iface[LAN]->vrf = 0;
	fib->iface[WAN]->urpf4 = FIB_URPF_OFF;
	fib->vrf_device[RED] = 0;
}

static void
what_the_end_point_does_not_take_goes_to_the_kernel(void **state)
{
	uint8_t *ip;

	sid(SRV6_END_DT46, 0, RED);
	ip = build(0, 0, 4);
	ip[6] = 58; /* ping of a SID, RFC 9259 */
	assert_int_equal(pass(), PUNT_local);
	assert_memory_equal(sent(), ip, 48);
	ip = build(0, 0, 4);
	ip[6] = 44; /* a fragment */
	assert_int_equal(pass(), PUNT_local);
	ip = build(1, 0, 4);
	ip[OUTER + 2] = 0; /* another type */
	assert_int_equal(pass(), PUNT_local);
	ip = build(0, 0, 4);
	put_be16(ip + OUTER + 2, 101); /* longer than the outer packet */
	assert_int_equal(pass(), PUNT_local);
	sid(SRV6_END_DT46, 0, FIB_VRF_NONE); /* a table that no VRF has */
	build(0, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	sid(SRV6_END_DT46, 0, RED);
	fib->iface[WAN]->forward6 = false;
	build(0, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	fib->iface[WAN]->forward6 = true;
}

/* S5, S6, S11: RFC 8754, 4.3.1.1; RFC 8986, 4.1.1. */
static void
wrong_headers_are_answered(void **state)
{
	uint8_t *ip;

	sid(SRV6_END_DT46, 0, RED);
	build(1, 1, 4); /* segments are left: RFC 8986, 4.8 */
	refuses(DROP_srv6_segments, OUTER + 3);
	build(0, 0, 0); /* no inner packet */
	refuses(DROP_srv6_upper, OUTER);
	build(1, 0, 0);
	refuses(DROP_srv6_upper, OUTER + 24);
	ip = build(1, 0, 4);
	ip[OUTER + 4] = 1; /* more entries than octets, but nothing reads them: 4.1, S02 */
	assert_int_equal(pass(), VERDICT_GO);
	ip = build(2, 0, 4);
	ip[OUTER] = 59; /* nothing follows */
	refuses(DROP_srv6_upper, OUTER + 40);
	sid(SRV6_END, 0, 0);
	build(1, 2, 4); /* more segments left than there are */
	refuses(DROP_srv6_segments, OUTER + 3);
	ip = build(2, 1, 4);
	ip[OUTER + 4] = 2; /* more entries than octets */
	refuses(DROP_srv6_segments, OUTER + 3);
	build(2, 0, 4); /* no segment left, and no flavor that decapsulates */
	refuses(DROP_srv6_upper, OUTER + 40);
	sid(SRV6_END, SRV6_USD, 0);
	build(2, 0, 0);
	refuses(DROP_srv6_upper, OUTER + 40);
}

/* S12: the kernel gets the unchanged frame of an inner packet to an address of the VRF. */
static void
packets_inside_for_this_host_are_the_kernels(void **state)
{
	sid(SRV6_END_DT46, 0, RED);
	fib->group[23] = group_word_single(PATH(PATH_LOCAL, 0));
	build(1, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	assert_true(b.inside);
	assert_int_equal(packet.m.data_len, 14 + len);
	assert_memory_equal(sent() + 24, sid6, 16);
	fib->group[23] = group_word_single(PATH(PATH_ADJ, 1));
}

/* RFC 6040, 4.2: CE is copied to the inner packet; without ECT, the packet is dropped. */
static void
congestion_outside_is_told_inside(void **state)
{
	sid(SRV6_END_DT46, 0, RED);
	tclass = 3;
	build(0, 0, 4);
	assert_int_equal(pass(), DROP_ecn_ce);
	build(0, 0, 4)[OUTER + 1] |= 2;
	put_be16(packet.buffer + 128 + 14 + OUTER + 10, 0);
	put_be16(packet.buffer + 128 + 14 + OUTER + 10,
		 (uint16_t)~inet_fold(inet_sum(packet.buffer + 128 + 14 + OUTER, 20, 0)));
	assert_int_equal(pass(), VERDICT_GO);
	assert_int_equal(sent()[1] & 3, 3);
	assert_true(ip4_checksum_ok(sent(), 20));
	tclass = 0;
}

/* S5: the next segment becomes the destination. Tag, flags and TLVs stay. */
static void
end_goes_on_to_the_next_segment(void **state)
{
	sid(SRV6_END, 0, 0);
	build(3, 2, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, WAN);
	assert_memory_equal(sent() + 24, next6, 16);
	assert_int_equal(sent()[7], 63);
	assert_int_equal(sent()[OUTER + 3], 1);
	assert_int_equal(sent()[OUTER + 5], 0x55);
	assert_int_equal(sent()[OUTER + 7], 0x66);
	build(3, 1, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, LAN);
	assert_memory_equal(sent() + 24, last6, 16);
	/* A reduced header: the first segment was in the destination only. */
	build(1, 1, 4);
	assert_int_equal(pass(), VERDICT_GO);
	assert_memory_equal(sent() + 24, last6, 16);
}

/* S7: the routing header comes off with the last segment. */
static void
psp_takes_the_routing_header_off(void **state)
{
	unsigned int full;

	sid(SRV6_END, SRV6_PSP, 0);
	build(2, 1, 4);
	full = len;
	assert_int_equal(pass(), VERDICT_GO);
	leaves(full - 40, 0x86dd, LAN);
	assert_int_equal(sent()[6], 4);
	assert_int_equal(get_be16(sent() + 4), 100);
	assert_memory_equal(sent() + 8, remote6, 16);
	assert_memory_equal(sent() + 24, last6, 16);
	assert_int_equal(sent()[OUTER], 0x45);
	assert_int_equal(sent()[OUTER + 99], 0x77);
	build(2, 2, 4); /* segments are left: the header stays */
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, WAN);
}

/* S6: with USD, End decapsulates a packet without a segment left. */
static void
usd_opens_the_last_segment(void **state)
{
	sid(SRV6_END, SRV6_USD, 0);
	build(2, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, WAN);
	build(0, 0, 6);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x86dd, WAN);
}

/*
 * RFC 8986, 4.16.2: USP concerns only packets without a segment left. Their next header is
 * processed as if there were no routing header. All other packets go on as without USP.
 */
static void
usp_changes_no_packet_that_goes_on(void **state)
{
	uint8_t *ip;

	sid(SRV6_END, SRV6_USP, 0);
	build(2, 2, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, WAN);
	assert_int_equal(sent()[OUTER + 3], 1);
	build(2, 1, 4); /* the last segment: only PSP removes the header */
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, LAN);
	assert_int_equal(sent()[OUTER + 3], 0);
	build(2, 0, 4);
	refuses(DROP_srv6_upper, OUTER + 40);
	ip = build(2, 0, 0);
	ip[OUTER] = 58; /* ICMPv6 is processed by the kernel */
	assert_int_equal(pass(), PUNT_local);
	sid(SRV6_END, SRV6_USP | SRV6_PSP, 0);
	build(2, 1, 4);
	assert_int_equal(pass(), VERDICT_GO);
	assert_int_equal(sent()[6], 4);
	sid(SRV6_END, SRV6_USP | SRV6_USD, 0);
	build(2, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, WAN);
}

/* S8: an end point that passes a packet on takes one hop. Decapsulation takes no hop. */
static void
hop_limit_is_used_up_once(void **state)
{
	sid(SRV6_END, 0, 0);
	hop_limit = 1;
	build(2, 1, 4);
	assert_int_equal(pass(), PUNT_ttl_expired);
	assert_memory_equal(sent() + 24, sid6, 16); /* the error quotes it unchanged */
	sid(SRV6_END_DT46, 0, RED);                 /* the outer header ends here */
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	hop_limit = 64;
}

/* S9, S11: the end point chooses the neighbor or the table, whatever table main says. */
static void
cross_connects_choose_the_neighbor(void **state)
{
	struct fib_sid *e = sid(SRV6_END_X, 0, 0);

	e->family = 6;
	memcpy(e->hop.octet, last6, 16);
	build(3, 2, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, LAN);
	assert_memory_equal(sent() + 24, next6, 16);
	e = sid(SRV6_END_DX6, 0, 0);
	e->family = 6;
	memcpy(e->hop.octet, last6, 16);
	build(0, 0, 6);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x86dd, LAN);
	e = sid(SRV6_END_DX4, 0, 0);
	e->family = 4;
	put_be32(e->hop.octet, REMOTE4);
	build(1, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, WAN);
	/* The neighbor is not known: the kernel asks for it. */
	put_be32(e->hop.octet, 0x0a0a0a0a);
	build(1, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	/* The MAC address is not known, packets wait for it, or the packet is too big. */
	put_be32(e->hop.octet, REMOTE4);
	fib->adj[2].hop = 0;
	build(1, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	fib->adj[2].hop = adj_hop_make(wan_peer, WAN);
	fib->adj_used[2] = ADJ_BEHIND;
	build(1, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	fib->adj_used[2] = ADJ_UNUSED;
	fib->iface[WAN]->mtu_bytes = fib->iface[WAN]->mtu6_bytes = 150;
	build(1, 0, 4);
	assert_int_equal(pass(), PUNT_local);
	fib->iface[WAN]->mtu_bytes = fib->iface[WAN]->mtu6_bytes = 1500;
	build(1, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	/* The neighbor is looked up in the VRF of the ingress interface, as in Linux. */
	atomic_store(&fib->vrfs_told, true);
	fib->iface[WAN]->vrf = RED;
	put_be32(e->hop.octet, BACK4 + 1); /* table main has it behind WAN */
	build(1, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, LAN);
	fib->iface[WAN]->vrf = 0;
	build(1, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(100, 0x0800, WAN);
	/* The next segment is a host of the VRF only. */
	sid(SRV6_END_T, 0, RED);
	build(2, 1, 4);
	memcpy(packet.buffer + 128 + 14 + OUTER + 8, back6, 16);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, LAN);
}

/* S9: the record for `trace` and `explain` has the path by which the packet leaves. */
static void
the_record_has_the_neighbor_of_the_end_point(void **state)
{
	struct fib_sid *e = sid(SRV6_END_X, 0, 0);
	struct watch_record rec;

	e->family = 6;
	memcpy(e->hop.octet, last6, 16); /* behind LAN; the next segment is behind WAN */
	build(3, 2, 4);
	fwd_explain(fib, WAN, packet.buffer + 128, (uint16_t)(14 + len), 14 + len, &rec);
	assert_int_equal(rec.verdict, WATCH_GO);
	assert_int_equal(rec.out_ifidx, LAN);
	assert_int_equal(rec.path, PATH(PATH_ADJ, 1));
}

/* `explain` reports the drop of a packet that passes too many end points of this router. */
static void
explain_tells_that_a_packet_passes_too_many_end_points(void **state)
{
	static const uint8_t sids[16] = {0xfc, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
	struct fib_sid *e = sid(SRV6_END, SRV6_NEXT_CSID, 0);
	struct watch_record rec;

	e->block_bits = 32;
	e->node_bits = 16;
	route6(sid6, 48, 20, PATH(PATH_LOCAL, 1));
	memcpy(build(0, 0, 4) + 24, sids, 16);
	fwd_explain(fib, WAN, packet.buffer + 128, (uint16_t)(14 + len), 14 + len, &rec);
	assert_int_equal(rec.verdict, DROP_encap_loop);
}

static const uint8_t link_local6[16] = {0xfe, 0x80, [15] = 9};

/* Make or remove the link-local neighbor of LAN or WAN, as neigh does. */
static void
link_local(uint16_t ifidx, bool there)
{
	static struct fib_host host[3];
	struct fib_host *h = &host[ifidx];
	uint32_t adj = fib->adj_hosts + ifidx;
	struct fib_host_key key = {.ifidx = ifidx, .family = 6};

	memcpy(key.addr.octet, link_local6, 16);
	if (there == (h->adj != 0))
		return;
	if (!there) {
		cds_lfht_del(fib->hosts, &h->node);
		h->adj = 0;
		return;
	}
	*h = (struct fib_host){.ifidx = ifidx, .family = 6, .addr = key.addr, .adj = adj};
	fib->adj[adj].ifidx = ifidx;
	fib->adj[adj].family = 6;
	fib->adj[adj].addr = key.addr;
	fib->adj[adj].hop = adj_hop_make(ifidx == LAN ? lan_peer : wan_peer, ifidx);
	cds_lfht_node_init(&h->node);
	cds_lfht_add(fib->hosts, fib_host_hash(fib, &key), &h->node);
}

/*
 * Return the interface by which Linux (seg6_lookup_any_nexthop(), l3mdev) forwards a packet
 * from WAN to a neighbor; 0: it does not forward the packet.
 */
static uint16_t
linux_out(bool is_link_local, uint16_t named, bool in_red, bool on_lan, bool on_wan)
{
	uint16_t on = named == 0 ? WAN : named;

	if (named == SID_NO_IFACE)
		return 0;
	/* last6 is behind LAN in main. RED has no route to it, so main decides for RED. */
	if (!is_link_local)
		return named == 0 || named == LAN ? LAN : 0;
	if (named == 0 && in_red) /* the strict lookup is on the VRF's device */
		return 0;
	return (on == LAN && on_lan) || (on == WAN && on_wan) ? on : 0;
}

/*
 * S9, S11: a link-local neighbor is on the interface that the end point names, else on the
 * ingress interface. The kernel gets each packet that forwarders cannot handle.
 */
static void
link_local_neighbors_are_on_their_interface(void **state)
{
	static const uint16_t named[] = {0, LAN, WAN, SID_NO_IFACE};
	unsigned int n_sent = 0;

	atomic_store(&fib->vrfs_told, true);
	for (unsigned int k = 0; k < 4 * 32; k++) {
		bool x = k & 1, ll = k & 2, in_red = k & 4, on_lan = k & 8, on_wan = k & 16;
		struct fib_sid *e = sid(x ? SRV6_END_X : SRV6_END_DX6, 0, 0);
		uint16_t want = linux_out(ll, named[k / 32], in_red, on_lan, on_wan);

		e->family = 6;
		memcpy(e->hop.octet, ll ? link_local6 : last6, 16);
		e->ifidx = named[k / 32];
		fib->iface[WAN]->vrf = in_red ? RED : 0;
		link_local(LAN, on_lan);
		link_local(WAN, on_wan);
		build(x ? 3 : 0, x ? 2 : 0, 6);
		n_sent += want != 0;
		if (want == 0) {
			assert_int_equal(pass(), PUNT_local);
			assert_memory_equal(sent() + 24, sid6, 16);
			continue;
		}
		assert_int_equal(pass(), VERDICT_GO);
		leaves(x ? len : 100, 0x86dd, want);
		if (x)
			assert_memory_equal(sent() + 24, next6, 16);
	}
	assert_true(n_sent > 40);

	/* The neighbor is not resolved yet. */
	link_local(LAN, true);
	sid(SRV6_END_X, 0, 0)->family = 6;
	memcpy(fib->sid[1].hop.octet, link_local6, 16);
	fib->sid[1].ifidx = LAN;
	fib->adj[fib->adj_hosts + LAN].hop = 0;
	build(3, 2, 4);
	assert_int_equal(pass(), PUNT_local);
	fib->iface[WAN]->vrf = 0;
	link_local(LAN, false);
	link_local(WAN, false);
}

/* S10: RFC 9800, 4.1: fc00:0:1:2:3:: becomes fc00:0:2:3::. */
static void
next_csid_shifts_the_destination(void **state)
{
	struct fib_sid *e = sid(SRV6_END, SRV6_NEXT_CSID, 0);
	static const uint8_t dst[16] = {0xfc, 0, 0, 0, 0, 1, 0, 2, 0, 3};
	uint8_t *ip;

	e->block_bits = 32;
	e->node_bits = 16;
	route6(dst, 48, 20, PATH(PATH_LOCAL, 1));
	ip = build(0, 0, 4);
	memcpy(ip + 24, dst, 16);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, WAN);
	assert_memory_equal(sent() + 24, "\xfc\0\0\0\0\2\0\3\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(sent()[7], 63);
	/* Only the last of these segments needs correct headers, because it reads them. */
	ip = build(1, 2, 4);
	memcpy(ip + 24, dst, 16);
	assert_int_equal(pass(), VERDICT_GO);
	assert_memory_equal(sent() + 24, "\xfc\0\0\0\0\2\0\3\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(sent()[OUTER + 3], 2);
	hop_limit = 1;
	ip = build(0, 0, 4);
	memcpy(ip + 24, dst, 16);
	assert_int_equal(pass(), PUNT_ttl_expired);
	assert_memory_equal(ip + 24, dst, 16);
	hop_limit = 64;
	/* Without an argument, NEXT-C-SID works as End. */
	ip = build(2, 1, 4);
	memset(ip + 30, 0, 10);
	assert_int_equal(pass(), VERDICT_GO);
	assert_memory_equal(sent() + 24, last6, 16);
}

/* Give a number to the SID with the first `bits` bits of an address, as rib does. */
static void
number_give(uint32_t number, uint32_t table, const uint8_t addr[16], uint8_t bits)
{
	struct fib_sid_numbers *t = fib->sid_numbers;
	struct fib_sid_number *of = &t->of[number];
	struct prefix p = {.family = 6, .len = bits};

	memcpy(p.addr.octet, addr, 16);
	prefix_mask(&p);
	of->addr = p.addr;
	of->table = table;
	of->len = bits;
	of->next = t->first[sid_bucket(fib->seed, table, &p.addr, bits)];
	t->first[sid_bucket(fib->seed, table, &p.addr, bits)] = number;
	t->n_not_main += table != RT_TABLE_MAIN;
	t->lens[(bits - 1) / 64] |= 1ull << (bits - 1) % 64;
	count.sid[number] = (struct sid_counters){0};
}

static void
counts(uint32_t number, uint64_t packets, uint64_t bytes, uint64_t errors)
{
	const struct sid_counters *c = &count.sid[number];

	assert_int_equal(c->packets, packets);
	assert_int_equal(c->bytes, bytes);
	assert_int_equal(c->errors, errors);
}

/* As seg6local in Linux: octets count from the outer header on; errors count separately. */
static void
packets_are_counted_for_their_sid(void **state)
{
	static const uint8_t other6[16] = {0xfc, 0, 0, 0, 0, 1, [15] = 0x0a};
	uint8_t *ip;

	number_give(1, RT_TABLE_MAIN, sid6, 128);
	number_give(2, RT_TABLE_MAIN, other6, 128);
	number_give(3, RT_TABLE_MAIN, sid6, 48);
	route6(other6, 128, 20, PATH(PATH_LOCAL, 1)); /* shares the entry of sid6 */
	route6(sid6, 48, 20, PATH(PATH_LOCAL, 1));
	sid(SRV6_END_DT46, 0, RED);
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(1, 1, OUTER + 100, 0);
	ip = build(2, 0, 6);
	memcpy(ip + 24, other6, 16);
	assert_int_equal(pass(), VERDICT_GO);
	counts(2, 1, OUTER + 8 + 32 + 100, 0);
	ip = build(0, 0, 4);
	memcpy(ip + 32, "anything", 8); /* only the shorter prefix covers it */
	assert_int_equal(pass(), VERDICT_GO);
	counts(3, 1, OUTER + 100, 0);
	counts(1, 1, OUTER + 100, 0);

	build(2, 1, 4); /* a segment is left */
	refuses(DROP_srv6_segments, OUTER + 3);
	counts(1, 1, OUTER + 100, 1);
	ip = build(0, 0, 4);
	ip[6] = 58; /* the kernel answers a ping of the SID */
	assert_int_equal(pass(), PUNT_local);
	counts(1, 1, OUTER + 100, 1);

	sid(SRV6_END, SRV6_PSP, 0); /* the end point changes the length */
	build(2, 1, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(1, 2, 2 * OUTER + 8 + 32 + 200, 1);
	hop_limit = 1;
	build(2, 1, 4);
	assert_int_equal(pass(), PUNT_ttl_expired);
	hop_limit = 64;
	counts(1, 2, 2 * OUTER + 8 + 32 + 200, 2);

	assert_int_equal(poptrie_del(fib->copy[0].pt6, other6, 128), 0);
	assert_int_equal(poptrie_del(fib->copy[0].pt6, sid6, 48), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
}

/*
 * The SID of a VRF counts packets that are looked up in this VRF: because they come in by
 * the VRF, because a route of another VRF leads there, or because of a rule, which may use
 * a view of the table. The SID of table main counts packets for which the VRF has no route.
 */
static void
packets_are_counted_in_the_vrf_whose_route_they_obey(void **state)
{
	static struct {
		struct fib_rules rules;
		struct fib_rule rule[1];
	} rules = {.rules = {.n = 1},
		   .rule = {{.action = FIB_RULE_TABLE,
			     .number = RED,
			     .suppress_group = RULE_NO_GROUP}}};
	struct poptrie *red = fib_vrf(fib, RED)->tries.pt6, *main = fib->copy[0].pt6;
	struct fib_vrf *view;
	unsigned int n = OUTER + 100;

	number_give(1, RT_TABLE_MAIN, sid6, 128);
	number_give(4, RED_TABLE, sid6, 64);
	sid(SRV6_END_DT4, 0, RED);
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(1, 1, n, 0);
	counts(4, 0, 0, 0);

	atomic_store(&fib->vrfs_told, true);
	fib->iface[WAN]->vrf = RED; /* RED has no route to the SID: main decides */
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(1, 2, 2 * n, 0);
	route6_of(red, sid6, 64, 20);
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(4, 1, n, 0);
	build(0, 0, 6); /* End.DT4 */
	refuses(DROP_srv6_upper, OUTER);
	counts(4, 1, n, 1);

	fib->iface[WAN]->vrf = 0;
	fib->group[24] = group_word_single(PATH(PATH_VRF, RED));
	route6_of(main, sid6, 128, 24); /* a leak */
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(4, 2, 2 * n, 1);
	route6_of(main, sid6, 128, 20);

	fib->iface[WAN]->rules6 = true;
	fib->rules[1] = &rules.rules;
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(4, 3, 3 * n, 1);
	counts(1, 2, 2 * n, 0);
	view = fib_vrf_new(fib, RED_TABLE, "");
	assert_non_null(view);
	route6_of(view->tries.pt6, sid6, 64, 20);
	fib_vrf_publish(fib, FIB_VRF_MAX, view);
	rules.rule[0].number = FIB_VRF_MAX;
	build(0, 0, 4);
	assert_int_equal(pass(), VERDICT_GO);
	counts(4, 4, 4 * n, 1);
	counts(1, 2, 2 * n, 0);
	fib->iface[WAN]->rules6 = false;
	fib->rules[1] = NULL;
	route6_of(red, sid6, 64, 0);
	fib->sid_numbers->n_not_main = 0;
}

/* S13: RFC 8986, 4.13: take the next segment, then put the header of the policy before. */
static void
b6_puts_the_packet_behind_its_policy(void **state)
{
	static struct fib_seg6 seg6 = {.source = {{0xfd, [15] = 1}}};
	struct fib_sid *e = sid(SRV6_END_B6_ENCAPS, 0, 0);
	uint8_t segments[32] = {0xfd, [15] = 5};
	uint32_t word[SRV6_WORDS_MAX];
	unsigned int inside = OUTER + 8 + 32;
	const uint8_t *out;

	memcpy(segments + 16, next6, 16); /* the first segment to visit */
	fib->encap[1] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
	assert_true(fib_headend_write(&fib->headend[1], word,
				      srv6_headend_pack(SRV6_ENCAP, segments, 2, word)));
	fib->seg6 = &seg6;
	e->policy = PATH(PATH_ENCAP, 1);
	build(3, 2, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len + inside, 0x86dd, WAN);
	out = sent();
	assert_memory_equal(out + 8, seg6.source.octet, 16);
	assert_memory_equal(out + 24, next6, 16);
	assert_int_equal(out[6], 43);
	assert_int_equal(out[7], 64);
	assert_int_equal(out[OUTER], 41);
	assert_int_equal(out[OUTER + 3], 1);
	out += inside;
	assert_memory_equal(out + 24, next6, 16); /* destination of the inner packet */
	assert_int_equal(out[7], 63);
	assert_int_equal(out[OUTER + 3], 1);
	build(3, 0, 4); /* the last segment */
	refuses(DROP_srv6_upper, OUTER + 8 + 48);
	/* The kernel gets the packet unchanged if forwarders cannot write the header. */
	fib->adj[2].hop = 0;
	build(3, 2, 4);
	assert_int_equal(pass(), PUNT_local);
	assert_memory_equal(sent() + 24, sid6, 16);
	fib->adj[2].hop = adj_hop_make(wan_peer, WAN);
	fib->seg6 = NULL;
	build(3, 2, 4);
	assert_int_equal(pass(), PUNT_local);
	assert_memory_equal(sent() + 24, sid6, 16);
}

/* The kernel gets a packet of End.T unchanged, because it uses the table of the port. */
static void
end_t_leaves_packets_of_the_kernel_as_they_came(void **state)
{
	uint8_t was[300];

	sid(SRV6_END_T, 0, RED);
	assert_int_equal(poptrie_add(fib_vrf(fib, RED)->tries.pt6, last6, 64, 24), 0);
	assert_int_equal(poptrie_commit(fib_vrf(fib, RED)->tries.pt6), 0);
	fib->group[24] = group_word_single(PATH(PATH_KERNEL, 0));
	build(2, 1, 4);
	memcpy(was, packet.buffer + 128, 14 + len);
	assert_int_equal(pass(), PUNT_local);
	assert_memory_equal(packet.buffer + 128, was, 14 + len);
	fib->group[24] = group_word_single(PATH(PATH_ADJ, 1));
	build(2, 1, 4);
	assert_int_equal(pass(), VERDICT_GO);
	leaves(len, 0x86dd, LAN);
	assert_memory_equal(sent() + 24, last6, 16);
	route6_of(fib_vrf(fib, RED)->tries.pt6, last6, 64, 0);
}

/*
 * For End.T, and for End.DT6 with SEG6_LOCAL_TABLE, Linux looks up only the table that is
 * named. It uses neither table main if this table has no route, nor rules. The port is the
 * ingress interface.
 */
static void
a_table_that_is_named_is_looked_up_alone(void **state)
{
	static struct {
		struct fib_rules rules;
		struct fib_rule rule[2];
	} rules = {.rules = {.n = 2},
		   .rule = {{.action = FIB_RULE_PATH, .path = PATH_BLACKHOLE},
			    {.action = FIB_RULE_TABLE,
			     .number = RED,
			     .suppress_group = RULE_NO_GROUP}}};
	struct poptrie *red = fib_vrf(fib, RED)->tries.pt6;

	rules.rule[0].dst = (struct prefix){.family = 6, .len = 48};
	memcpy(rules.rule[0].dst.addr.octet, back6, 6);
	atomic_store(&fib->vrfs_told, true);
	route6_of(red, sid6, 128, 20);
	for (unsigned int member = 0; member < 2; member++) {
		fib->iface[WAN]->vrf = member ? RED : 0;
		fib->iface[WAN]->rules6 = member != 0;
		fib->rules[1] = member ? &rules.rules : NULL;
		sid(SRV6_END_DT6, SRV6_TABLE_ALONE, RED);
		build(1, 0, 6);
		assert_int_equal(pass(), VERDICT_GO);
		leaves(100, 0x86dd, LAN);
		assert_int_equal(b.in->ifidx, WAN);
		assert_int_equal(b.in->vrf, RED);
	}
	fib->iface[WAN]->vrf = 0;
	fib->iface[WAN]->rules6 = false;
	fib->rules[1] = NULL;
	route6_of(red, sid6, 128, 0);
	route6_of(red, back6, 48, 0);
	for (unsigned int alone = 0; alone < 2; alone++) {
		sid(SRV6_END_DT6, alone ? SRV6_TABLE_ALONE : 0, RED);
		build(1, 0, 6);
		assert_int_equal(pass(), alone ? PUNT_unreach : VERDICT_GO);
		if (alone)
			assert_int_equal(b.cause[0], DROP_no_route);
		else
			leaves(100, 0x86dd, WAN); /* by table main */
	}
	sid(SRV6_END_T, 0, RED);
	build(2, 1, 4);
	assert_int_equal(pass(), PUNT_unreach);
	assert_int_equal(b.cause[0], DROP_no_route);
	/* The routes of the VRF may still come. */
	atomic_store(&fib->vrfs_told, false);
	build(2, 1, 4);
	assert_int_equal(pass(), DROP_vrf_no_fib);
	route6_of(red, back6, 48, 23);
}

/* A packet whose next segment is the same SID passes the end point twice, then leaves. */
static void
loops_end(void **state)
{
	sid(SRV6_END, 0, 0);
	build(3, 2, 4);
	memcpy(packet.buffer + 128 + 14 + OUTER + 24, sid6, 16);
	assert_int_equal(pass(),
			 VERDICT_GO); /* two segments of this host, then another host */
	assert_int_equal(sent()[OUTER + 3], 0);
	assert_int_equal(sent()[7], 63);
}

/*
 * With random octets and lengths, nothing behind the frame is read. A sanitizer checks
 * this, because the memory ends where the frame ends.
 */
static void
no_packet_is_read_beyond_its_end(void **state)
{
	static const uint8_t action[] = {SRV6_END,     SRV6_END_T,   SRV6_END_X,
					 SRV6_END_DT4, SRV6_END_DT6, SRV6_END_DT46};
	unsigned int n_sent = 0, n_other = 0;

	srandom(37);
	for (unsigned int round = 0; round < 60000; round++) {
		unsigned int n = (unsigned int)random() % 4, cut = 0;
		struct fib_sid *e = sid(action[random() % 6], (uint8_t)random() & 0x1e,
					random() % 2 == 0 ? RED : 0);
		uint8_t *ip, *memory;

		e->block_bits = 32;
		e->node_bits = 16;
		if (e->action == SRV6_END_X) {
			e->family = 6;
			memcpy(e->hop.octet, last6, 16);
		}
		ip = build(n, (uint8_t)(random() % (n + 2)), random() % 2 == 0 ? 4 : 6);
		for (unsigned int k = (unsigned int)random() % 4; k > 0; k--)
			ip[random() % 4 == 0 ? (unsigned int)random() % len
					     : OUTER + (unsigned int)random() % 8] =
				(uint8_t)random();
		if (random() % 3 == 0)
			cut = (unsigned int)random() % (len - OUTER - 10);
		len -= cut;
		put_be16(ip + 4, (uint16_t)(len - OUTER));
		memory = malloc(128 + 14 + len);
		assert_non_null(memory);
		memcpy(memory, packet.buffer, 128 + 14 + len);
		packet.m.buf_addr = memory;
		packet.m.buf_len = (uint16_t)(128 + 14 + len);
		if (pass() == VERDICT_GO)
			n_sent++;
		else
			n_other++;
		assert_true(packet.m.data_len == packet.m.pkt_len &&
			    packet.m.data_off + packet.m.data_len <= 128 + 14 + len);
		free(memory);
	}
	assert_true(n_sent > 5000 && n_other > 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decapsulates_into_the_vrf),
		cmocka_unit_test(sources_are_checked_by_the_device_of_the_vrf),
		cmocka_unit_test(what_the_end_point_does_not_take_goes_to_the_kernel),
		cmocka_unit_test(wrong_headers_are_answered),
		cmocka_unit_test(packets_inside_for_this_host_are_the_kernels),
		cmocka_unit_test(congestion_outside_is_told_inside),
		cmocka_unit_test(end_goes_on_to_the_next_segment),
		cmocka_unit_test(psp_takes_the_routing_header_off),
		cmocka_unit_test(usd_opens_the_last_segment),
		cmocka_unit_test(usp_changes_no_packet_that_goes_on),
		cmocka_unit_test(hop_limit_is_used_up_once),
		cmocka_unit_test(cross_connects_choose_the_neighbor),
		cmocka_unit_test(link_local_neighbors_are_on_their_interface),
		cmocka_unit_test(b6_puts_the_packet_behind_its_policy),
		cmocka_unit_test(end_t_leaves_packets_of_the_kernel_as_they_came),
		cmocka_unit_test(a_table_that_is_named_is_looked_up_alone),
		cmocka_unit_test(loops_end),
		cmocka_unit_test(no_packet_is_read_beyond_its_end),
		cmocka_unit_test(explain_tells_that_a_packet_passes_too_many_end_points),
		cmocka_unit_test(the_record_has_the_neighbor_of_the_end_point),
		cmocka_unit_test(next_csid_shifts_the_destination),
		cmocka_unit_test(packets_are_counted_for_their_sid),
		cmocka_unit_test(packets_are_counted_in_the_vrf_whose_route_they_obey),
	};

	return cmocka_run_group_tests(tests, sids_up, down);
}
