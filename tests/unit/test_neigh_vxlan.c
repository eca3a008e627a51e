/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bridges over vxlan devices as the kernel reports them: which are interfaces of the
 * dataplane, the headers of their neighbors, and how forwarders find the interface of a
 * received packet. The test plays the kernel.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include <jansson.h>
#include "fib/vxlan.h"
#include "log_said.h"
#include "neigh_bed.h"

#define BRIDGE 30 /* ifindex */
#define VXLAN  31
#define VNI    5001

#define LOCAL   0xcb007101u /* 203.0.113.1 */
#define GATEWAY 0xcb007142u

static const uint8_t rmac[6] = {0x02, 0, 0x5e, 0, 0x53, 0x99};

static struct kmon_link
bridge_of(uint32_t ifindex)
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "br%u", ifindex);
	l = link_of(ifindex, name);
	l.bridge = true;
	l.mtu_bytes = 1450;
	memcpy(l.mac, mac_b, sizeof(mac_b));
	return l;
}

static struct kmon_link
vxlan_of(uint32_t ifindex, uint32_t master, uint32_t vni)
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "vx%u", ifindex);
	l = link_of(ifindex, name);
	l.master = master;
	l.tunnel = (struct kmon_tunnel){.kind = KMON_VXLAN,
					.family = 4,
					.vni = vni,
					.port = 4789,
					.ignore_df = true};
	put_be32(l.tunnel.local, LOCAL);
	return l;
}

/* Return the interface of the dataplane with this ifindex, or NULL. */
static const struct fib_iface *
iface_at(uint32_t ifindex)
{
	for (uint16_t i = PORT_MAX; i < IFIDX_MAX; i++)
		if (fib_iface(fib, i) != NULL && fib_iface(fib, i)->ifindex == ifindex)
			return fib_iface(fib, i);
	return NULL;
}

/* Report a neighbor. It has no MAC if `mac` is NULL. */
static void
neighbor_on(uint32_t ifindex, uint8_t family, const uint8_t *addr, const uint8_t *mac,
	    uint16_t nud, bool gone)
{
	struct kmon_neigh kn = {
		.ifindex = ifindex, .family = family, .has_mac = mac != NULL, .nud = nud};

	memcpy(kn.addr, addr, family == 4 ? 4 : 16);
	if (mac != NULL)
		memcpy(kn.mac, mac, sizeof(kn.mac));
	monitor.ops.on_neigh(monitor.ctx, &kn, gone);
}

/* Report a neighbor of the bridge. */
static void
neighbor(uint8_t family, const uint8_t *addr, const uint8_t *mac, uint16_t nud, bool gone)
{
	neighbor_on(BRIDGE, family, addr, mac, nud, gone);
}

/* Return an entry of the forwarding database: frames to `rmac` go to this VTEP. */
static struct kmon_fdb
entry_of(uint32_t vtep)
{
	struct kmon_fdb e = {.ifindex = VXLAN, .family = 4};

	memcpy(e.mac, rmac, sizeof(rmac));
	put_be32(e.remote, vtep);
	return e;
}

static void
entry(struct kmon_fdb e)
{
	fdb.row[0] = e;
	fdb.n = 1;
	monitor.ops.on_fdb(monitor.ctx, &e, false);
	round_over();
}

/* Return the headers for packets to a host of the bridge. NULL: there is no such host. */
static const struct fib_vxlan_hop *
hop_of(uint8_t family, const uint8_t *octets)
{
	struct ipaddr addr = {{0}};
	uint32_t adj;

	memcpy(addr.octet, octets, family == 4 ? 4 : 16);
	adj = fib_host_adj(fib, iface_at(BRIDGE)->ifidx, family, &addr);
	if (adj == 0)
		return NULL;
	assert_int_equal(fib->adj[adj].hop, 0); /* the fast path sends nothing there */
	return fib_vxlan_hop(fib, adj);
}

static uint8_t gateway4[4];

static const struct fib_vxlan_hop *
gateway_hop(void)
{
	return hop_of(4, gateway4);
}

static int
vxlan_up(void **state)
{
	memset(&fdb, 0, sizeof(fdb));
	put_be32(gateway4, GATEWAY);
	if (up(state) < 0)
		return -1;
	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	return 0;
}

static void
a_bridge_over_a_vxlan_device_is_an_interface_until_it_goes(void **state)
{
	struct kmon_link bridge = bridge_of(BRIDGE), vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	const struct fib_iface *i;

	add(bridge);
	round_over();
	assert_null(iface_at(BRIDGE));
	add(vxlan);
	round_over();
	i = iface_at(BRIDGE);
	assert_non_null(i);
	assert_true(i->up && i->port == 0 && i->mtu_bytes == 1450);
	assert_memory_equal(i->mac, mac_b, 6);
	assert_int_equal(i->tunnel.family, 0);
	assert_int_equal(i->vxlan.family, 4);
	assert_int_equal(i->vxlan.vni, VNI);
	assert_int_equal(i->vxlan.port, 4789);
	assert_int_equal(i->vxlan.ttl, 64);
	assert_int_equal(i->vxlan.from_low, 49152);
	assert_int_equal(i->vxlan.from_high, 65535);
	assert_int_equal(fib->vxlans->one_end, i->ifidx);
	/* After `ip link set type vxlan` the interface has the number that it had. */
	vxlan.tunnel.ttl = 7;
	tell(&vxlan, false);
	round_over();
	assert_int_equal(iface_at(BRIDGE)->vxlan.ttl, 7);
	assert_int_equal(iface_at(BRIDGE)->ifidx, fib->vxlans->one_end);
	vxlan.tunnel.ttl = 0;
	vxlan.tunnel.ttl_inherit = true;
	tell(&vxlan, false);
	round_over();
	assert_int_equal(iface_at(BRIDGE)->vxlan.ttl, 0);
	/* The bridge loses its carrier with the device. */
	bridge.carrier = false;
	tell(&bridge, false);
	round_over();
	assert_false(iface_at(BRIDGE)->up);
	assert_int_equal(fib->vxlans->one_end, 0);
	bridge.carrier = true;
	tell(&bridge, false);
	round_over();
	assert_true(iface_at(BRIDGE)->up);
	del(vxlan);
	round_over();
	assert_null(iface_at(BRIDGE));
	assert_null(fib->vxlans);
	/* The devices come and go in the other order. */
	del(bridge);
	add(vxlan);
	add(bridge);
	round_over();
	assert_non_null(iface_at(BRIDGE));
	del(bridge);
	round_over();
	assert_null(iface_at(BRIDGE));
}

/*
 * Check that forwarders do not serve the bridge, and that the log has said why `n` times.
 */
static void
is_the_kernels(const char *reason, unsigned int n)
{
	char line[96];

	round_over();
	snprintf(line, sizeof(line),
		 "neigh: tunnel left to the kernel dev=vx%u kind=vxlan reason=%s", VXLAN,
		 reason);
	assert_int_equal(log_said(line), n);
	assert_null(iface_at(BRIDGE));
}

static void
is_ours(void)
{
	round_over();
	assert_non_null(iface_at(BRIDGE));
}

static void
what_forwarders_cannot_do_stays_with_the_kernel(void **state)
{
	struct kmon_link bridge = bridge_of(BRIDGE), vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	struct kmon_link more = link_of(40, "x40"), upper = vlan_of(41, BRIDGE, 0x8100, 7);

	add(bridge);
	add(vxlan);
	is_ours();
	more.master = BRIDGE;
	add(more);
	tell(&more, false);
	is_the_kernels("ports", 1);
	del(more);
	is_ours();
	more.master = 0; /* a link that joins the bridge, and leaves it */
	add(more);
	more.master = BRIDGE;
	tell(&more, false);
	is_the_kernels("ports", 2);
	more.master = 0;
	tell(&more, false);
	is_ours();
	add(upper);
	is_the_kernels("vlan-or-macvlan", 1);
	del(upper);
	is_ours();
	bridge.vlan_filtering = true;
	tell(&bridge, false);
	is_the_kernels("vlan-filtering", 1);
	bridge.vlan_filtering = false;
	tell(&bridge, false);
	is_ours();
	vxlan.tunnel.cannot = KMON_TUNNEL_LEARNING;
	tell(&vxlan, false);
	tell(&vxlan, false);
	is_the_kernels("learning", 1);
	vxlan.tunnel.cannot = KMON_TUNNEL_CAN;
	tell(&vxlan, false);
	is_ours();
	/*
	 * The vxlan device leaves the bridge. Then the bridge is no interface of the
	 * dataplane.
	 */
	vxlan.master = 0;
	tell(&vxlan, false);
	round_over();
	assert_null(iface_at(BRIDGE));
	vxlan.master = BRIDGE;
	tell(&vxlan, false);
	is_ours();
	put_be32(vxlan.tunnel.local, 0);
	put_be32(vxlan.tunnel.remote, GATEWAY);
	tell(&vxlan, false);
	is_the_kernels("no-local", 1);
}

static void
a_neighbor_has_all_headers(void **state)
{
	const struct fib_vxlan_hop *h;

	add(bridge_of(BRIDGE));
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	entry(entry_of(0x0a000001));
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	h = gateway_hop();
	assert_non_null(h);
	assert_int_equal(h->ifidx, iface_at(BRIDGE)->ifidx);
	assert_int_equal(h->t.bytes, 50);
	assert_int_equal(h->t.proto_at, 48);
	assert_int_equal(h->from_low, 49152);
	assert_int_equal(h->n_from, 16384);
	assert_false(h->csum || h->t.df);
	assert_true(h->t.ignore_df && h->t.gre && h->t.ttl == 64 && !h->df6);
	assert_int_equal(h->t.head[0], 0x45);
	assert_int_equal(h->t.head[9], 17);
	assert_int_equal(get_be32(h->t.head + 12), LOCAL);
	assert_int_equal(get_be32(h->t.head + 16), 0x0a000001);
	assert_int_equal(get_be16(h->t.head + 22), 4789);
	assert_int_equal(get_be32(h->t.head + 28), 0x08000000);
	assert_int_equal(get_be32(h->t.head + 32), VNI << 8);
	assert_memory_equal(h->t.head + 36, rmac, 6);
	assert_memory_equal(h->t.head + 42, mac_b, 6);
}

/*
 * zebra writes hosts of the bridge, too, as neighbors in state NOARP. With multihoming, the
 * entries of these hosts have a next hop in place of a VTEP. The address of a host is not
 * that of a VTEP.
 */
static void
a_host_of_the_subnet_is_no_vtep(void **state)
{
	struct kmon_addr subnet = {.ifindex = BRIDGE, .family = 4, .plen = 24};
	struct kmon_fdb e = entry_of(0);

	put_be32(subnet.addr, GATEWAY + 1);
	put_be32(subnet.peer, GATEWAY + 1);
	add(bridge_of(BRIDGE));
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	assert_int_equal(gateway_hop()->t.family, 4);
	monitor.ops.on_addr(monitor.ctx, &subnet, false);
	round_over();
	assert_int_equal(gateway_hop()->t.family, 0);
	/* A multicast address, or no address, is no VTEP. */
	put_be32(e.remote, 0xe0000005);
	entry(e);
	assert_int_equal(gateway_hop()->t.family, 0);
	put_be32(e.remote, 0);
	entry(e);
	assert_int_equal(gateway_hop()->t.family, 0);
	put_be32(e.remote, 0x0a000001);
	entry(e);
	assert_int_equal(gateway_hop()->t.family, 4);
}

/*
 * Each change makes new headers. Without an entry that names a VTEP, the gateway itself is
 * the VTEP, or only the kernel knows it.
 */
static void
headers_follow_each_change(void **state)
{
	static const uint8_t other[6] = {0x02, 0, 0x5e, 0, 0x53, 0x77};
	struct kmon_link bridge = bridge_of(BRIDGE), vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	struct kmon_fdb e = entry_of(0x0a000001);

	add(bridge);
	add(vxlan);
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	assert_int_equal(get_be32(gateway_hop()->t.remote.octet), GATEWAY);
	entry(e);
	assert_int_equal(get_be32(gateway_hop()->t.remote.octet), 0x0a000001);
	e.vni = 77;
	e.port = 8472;
	e.link = TAP;
	entry(e);
	assert_int_equal(get_be32(gateway_hop()->t.head + 32), 77 << 8);
	assert_int_equal(get_be16(gateway_hop()->t.head + 22), 8472);
	assert_int_equal(gateway_hop()->t.link, TAP);
	neighbor(4, gateway4, other, NUD_NOARP, false);
	round_over();
	assert_memory_equal(gateway_hop()->t.head + 36, other, 6);
	assert_int_equal(get_be32(gateway_hop()->t.remote.octet), GATEWAY);
	memcpy(bridge.mac, mac_a, 6);
	tell(&bridge, false);
	round_over();
	assert_memory_equal(gateway_hop()->t.head + 42, mac_a, 6);
	put_be32(vxlan.tunnel.local, LOCAL + 1);
	vxlan.tunnel.csum = true;
	vxlan.tunnel.ignore_df = false; /* df inherit */
	vxlan.tunnel.from_low = 1000;
	vxlan.tunnel.from_high = 1003;
	tell(&vxlan, false);
	round_over();
	assert_int_equal(get_be32(gateway_hop()->t.head + 12), LOCAL + 1);
	assert_true(gateway_hop()->csum && gateway_hop()->df6);
	assert_false(gateway_hop()->t.ignore_df);
	assert_int_equal(gateway_hop()->n_from, 4);
	/*
	 * ARP has resolved the gateway to a MAC that has no entry in the forwarding
	 * database: the kernel floods.
	 */
	neighbor(4, gateway4, other, NUD_REACHABLE, false);
	round_over();
	assert_int_equal(gateway_hop()->t.bytes, 0);
	neighbor(4, gateway4, NULL, 0, true);
	round_over();
	assert_null(gateway_hop());
}

static void
a_gateway_of_ipv6_is_a_vtep_of_its_family(void **state)
{
	struct kmon_link vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff},
		six[16] = {0x20, 1, 0xd, 0xb8, [15] = 9};
	const struct fib_vxlan_hop *h;

	put_be32(mapped + 12, GATEWAY);
	add(bridge_of(BRIDGE));
	add(vxlan);
	neighbor(6, mapped, rmac, NUD_NOARP, false);
	neighbor(6, six, rmac, NUD_NOARP, false);
	round_over();
	assert_int_equal(get_be32(hop_of(6, mapped)->t.head + 16), GATEWAY);
	assert_int_equal(hop_of(6, six)->t.bytes, 0); /* the device is over IPv4 */
	vxlan.tunnel.family = 6;
	memset(vxlan.tunnel.local, 0, 16);
	memcpy(vxlan.tunnel.local, six, 15);
	vxlan.tunnel.flow_label = 0x12345;
	tell(&vxlan, false);
	round_over();
	assert_int_equal(hop_of(6, mapped)->t.bytes, 0);
	h = hop_of(6, six);
	assert_int_equal(h->t.bytes, 70);
	assert_int_equal(h->t.proto_at, 68);
	assert_int_equal(get_be32(h->t.head), 0x60012345);
	assert_int_equal(h->t.head[6], 17);
	assert_memory_equal(h->t.head + 24, six, 16);
	assert_int_equal(get_be32(h->t.head + 52), VNI << 8);
}

/*
 * Two watched next hops and a host have the same headers. The headers are removed with the
 * interface.
 */
static void
adjacencies_of_next_hops_have_them_too(void **state)
{
	struct kmon_link vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	struct msg_adj *m = msg_new(MSG_ADJ_WATCH, sizeof(*m));

	add(bridge_of(BRIDGE));
	add(vxlan);
	round_over();
	m->adj = 3;
	m->ifidx = iface_at(BRIDGE)->ifidx;
	m->family = 4;
	m->addr = ipaddr_from_v4(GATEWAY);
	neigh.ops->on_msg(&neigh, &m->m);
	round_over();
	assert_null(fib_vxlan_hop(fib, 3));
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	assert_non_null(fib_vxlan_hop(fib, 3));
	assert_ptr_equal(fib_vxlan_hop(fib, 3), gateway_hop());
	assert_int_equal(fib->adj[3].hop, 0);
	vxlan.admin_up = false;
	del(vxlan);
	round_over();
	assert_null(fib_vxlan_hop(fib, 3));
}

/*
 * The kernel decides about VNIs that no interface has if it has vxlan devices without a
 * bridge or with another port.
 */
static void
unknown_vnis_are_the_kernels_unless_all_is_ours(void **state)
{
	struct kmon_link bridge2 = bridge_of(50), vxlan2 = vxlan_of(51, 50, 7);
	struct kmon_link alone = vxlan_of(60, 0, 8);

	add(bridge_of(BRIDGE));
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	add(bridge2);
	add(vxlan2);
	round_over();
	assert_int_not_equal(fib->vxlans->one_end, 0);
	add(alone);
	round_over();
	assert_int_equal(fib->vxlans->one_end, 0);
	del(alone);
	round_over();
	assert_int_not_equal(fib->vxlans->one_end, 0);
	vxlan2.tunnel.port = 8472;
	tell(&vxlan2, false);
	round_over();
	assert_int_equal(fib->vxlans->one_end, 0);
}

/* Return the VRF of the bridge's outer packets in `show interfaces`, "": null. */
static const char *
outer_vrf_shown(void)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	static char vrf[32];
	json_t *row;
	size_t i;

	q->kind = QUERY_INTERFACES;
	q->from = &rib;
	q->max = 100;
	empty(&rib);
	neigh.ops->on_msg(&neigh, &q->m);
	assert_ptr_equal(worker_take(&rib), &q->m);
	snprintf(vrf, sizeof(vrf), "no row");
	json_array_foreach (q->rows, i, row) {
		const char *name = json_string_value(json_object_get(row, "outer_vrf"));

		if (json_object_get(row, "vxlan") != NULL)
			snprintf(vrf, sizeof(vrf), "%s", name == NULL ? "" : name);
	}
	json_decref(q->rows);
	msg_free(&q->m);
	return vrf;
}

/* `dev` of the device is a VRF, or a member of one. The bridge is in a VRF of its own. */
static void
outer_packets_are_in_the_vrf_of_the_link_below(void **state)
{
	struct kmon_link red = link_of(60, "red"), blue = link_of(61, "blue");
	struct kmon_link bridge = bridge_of(BRIDGE), vxlan = vxlan_of(VXLAN, BRIDGE, VNI);
	struct kmon_link tap = link_of(TAP, "wan0");

	red.vrf_table = 100;
	blue.vrf_table = 101;
	add(red);
	add(blue);
	bridge.master = 61;
	vxlan.tunnel.link = 60;
	add(bridge);
	add(vxlan);
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	assert_int_equal(iface_at(BRIDGE)->vrf, 2);
	assert_int_equal(gateway_hop()->t.vrf, 1);
	assert_int_equal(gateway_hop()->t.link, 0);
	fib_vrf_publish(fib, 1, fib_vrf_new(fib, 100, "red"));
	assert_string_equal(outer_vrf_shown(), "red");
	vxlan.tunnel.link = TAP;
	tell(&vxlan, false);
	round_over();
	assert_int_equal(gateway_hop()->t.vrf, 0);
	assert_int_equal(gateway_hop()->t.link, TAP);
	assert_string_equal(outer_vrf_shown(), "");
	tap.master = 60;
	tell(&tap, false);
	round_over();
	assert_int_equal(gateway_hop()->t.vrf, 1);
}

/* The sysctls of a bridge are known before it is an interface of the dataplane. */
static void
forwarding_that_was_off_before_stays_off(void **state)
{
	struct kmon_conf conf = {.ifindex = BRIDGE, .family = 4};

	add(bridge_of(BRIDGE));
	monitor.ops.on_conf(monitor.ctx, &conf, false);
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	round_over();
	assert_false(iface_at(BRIDGE)->forward4);
	conf.forwarding = true;
	monitor.ops.on_conf(monitor.ctx, &conf, false);
	assert_true(iface_at(BRIDGE)->forward4);
}

/* Only the SVI that an event concerns is published, however many SVIs there are. */
static void
an_event_of_another_link_publishes_nothing(void **state)
{
	struct kmon_link bridge = bridge_of(BRIDGE), eth = link_of(OTHER, "eth0");
	const struct neigh *n = neigh.ctx;
	const struct fib_vxlans *table;
	uint64_t before;

	add(bridge);
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	add(bridge_of(50));
	add(vxlan_of(51, 50, 7));
	round_over();
	table = fib->vxlans;
	before = n->n_publishes;
	for (unsigned int k = 0; k < 10; k++) {
		eth.mtu_bytes++;
		tell(&eth, false);
		round_over();
	}
	assert_int_equal(n->n_publishes, before);
	assert_ptr_equal(fib->vxlans, table);
	bridge.mtu_bytes--;
	tell(&bridge, false);
	round_over();
	assert_int_equal(n->n_publishes, before + 1);
	assert_int_equal(iface_at(BRIDGE)->mtu_bytes, bridge.mtu_bytes);
	assert_ptr_equal(fib->vxlans, table);
}

/*
 * neigh keeps no entries of devices that forwarders do not serve. When forwarders begin to
 * serve a device, neigh reads the entries of this device.
 */
static void
forwarding_databases_of_other_devices_are_not_kept(void **state)
{
	struct kmon_link vxlan = vxlan_of(VXLAN, BRIDGE, VNI);

	fdb.row[0] = entry_of(0x0a000001);
	fdb.n = 1;
	add(vxlan);
	round_over();
	assert_false(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
	assert_int_equal(fdb.n_reads, 0);
	add(bridge_of(BRIDGE));
	assert_true(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
	assert_false(monitor.ops.wants_fdb(monitor.ctx, OTHER));
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	assert_int_equal(fdb.n_reads, 1);
	assert_int_equal(get_be32(gateway_hop()->t.remote.octet), 0x0a000001);
	round_over();
	assert_int_equal(fdb.n_reads, 1);
	assert_int_equal(fdb.n_drops, 0);
	vxlan.master = 0;
	tell(&vxlan, false);
	round_over();
	assert_false(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
	assert_int_equal(fdb.n_drops, 1);
	vxlan.master = BRIDGE;
	tell(&vxlan, false);
	round_over();
	assert_true(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
	assert_int_equal(fdb.n_reads, 2);
	del(vxlan);
	assert_false(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
}

/*
 * At the start: while the monitor reads the forwarding databases, an event shows that the
 * device, whose entries were refused, has joined the bridge.
 */
static void
entries_refused_during_the_first_dump_are_read_later(void **state)
{
	struct kmon_link vxlan = vxlan_of(VXLAN, 0, VNI);
	struct neigh *n = neigh.ctx;
	struct kmon *control = n->control;

	fdb.row[0] = entry_of(0x0a000001);
	fdb.n = 1;
	n->control = NULL; /* kmon_open() has not returned */
	add(bridge_of(BRIDGE));
	add(vxlan);
	assert_false(monitor.ops.wants_fdb(monitor.ctx, VXLAN));
	vxlan.master = BRIDGE;
	tell(&vxlan, false);
	neighbor(4, gateway4, rmac, NUD_NOARP, false);
	n->control = control;
	round_over();
	assert_int_equal(fdb.n_reads, 1);
	assert_int_equal(get_be32(gateway_hop()->t.remote.octet), 0x0a000001);
	round_over();
	assert_int_equal(fdb.n_reads, 1);
}

static void
delete_device(void)
{
	struct kmon_link vxlan = vxlan_of(VXLAN, BRIDGE, VNI);

	del(vxlan);
}

/* An event that comes while the database is read deletes the device. */
static void
a_device_may_go_while_its_entries_are_read(void **state)
{
	add(bridge_of(BRIDGE));
	add(vxlan_of(VXLAN, BRIDGE, VNI));
	fdb.during_read = delete_device;
	fdb.rc = -EAGAIN;
	round_over();
	assert_int_equal(fdb.n_reads, 1);
	assert_null(iface_at(BRIDGE));
	assert_int_equal(log_said("forwarding database not read dev=vx31"), 1);
}

static void
vni_of(uint16_t vlan, uint32_t vni, bool gone)
{
	struct kmon_vni kv = {.ifindex = VXLAN, .vlan = vlan, .vni = vni};

	monitor.ops.on_vni(monitor.ctx, &kv, gone);
	round_over();
}

/* On a bridge with a single vxlan device, each VLAN that has a VNI is an interface. */
static void
vlans_of_a_bridge_have_vnis(void **state)
{
	struct kmon_link bridge = bridge_of(BRIDGE), vxlan = vxlan_of(VXLAN, BRIDGE, 0);
	struct kmon_link seven = vlan_of(41, BRIDGE, 0x8100, 7), more = link_of(44, "x44");
	struct kmon_link eight = vlan_of(42, BRIDGE, 0x8100, 8);
	struct kmon_fdb e = entry_of(0x0a000001);
	const struct fib_vxlan_hop *h;
	struct ipaddr gateway = ipaddr_from_v4(GATEWAY);
	uint32_t adj;

	bridge.vlan_filtering = vxlan.tunnel.external = true;
	add(bridge);
	add(vxlan);
	add(seven);
	round_over();
	assert_null(iface_at(41));
	vni_of(7, VNI, false);
	assert_non_null(iface_at(41));
	assert_null(iface_at(BRIDGE));
	assert_int_equal(iface_at(41)->vxlan.vni, VNI);
	assert_int_equal(iface_at(41)->n_tags, 0);
	assert_int_equal(fib->vxlans->one_end, 0); /* the kernel may have other VNIs */
	vni_of(8, VNI + 1, false);
	add(eight);
	round_over();
	assert_int_equal(iface_at(42)->vxlan.vni, VNI + 1);
	assert_int_equal(fdb.n_reads, 1); /* one read for both VLANs */
	/* Each entry of the forwarding database belongs to a VNI. */
	neighbor_on(41, 4, gateway4, rmac, NUD_NOARP, false);
	e.from_vni = e.vni = VNI;
	entry(e);
	adj = fib_host_adj(fib, iface_at(41)->ifidx, 4, &gateway);
	h = fib_vxlan_hop(fib, adj);
	assert_int_equal(get_be32(h->t.remote.octet), 0x0a000001);
	assert_int_equal(get_be32(h->t.head + 32), VNI << 8);
	e.from_vni = VNI + 1; /* the VNI of the other VLAN */
	put_be32(e.remote, 0x0a000002);
	entry(e);
	neighbor_on(41, 4, gateway4, rmac, NUD_NOARP, false);
	round_over();
	h = fib_vxlan_hop(fib, fib_host_adj(fib, iface_at(41)->ifidx, 4, &gateway));
	assert_int_equal(get_be32(h->t.remote.octet), GATEWAY);
	vni_of(7, VNI + 7, false);
	assert_int_equal(iface_at(41)->vxlan.vni, VNI + 7);
	vni_of(7, VNI + 7, true);
	assert_null(iface_at(41));
	assert_non_null(iface_at(42));
	more.master = BRIDGE;
	add(more);
	round_over();
	assert_null(iface_at(42));
	del(more);
	round_over();
	assert_non_null(iface_at(42));
	bridge.vlan_filtering = false;
	tell(&bridge, false);
	round_over();
	assert_null(iface_at(42));
	assert_int_equal(log_said("dev=vx31 kind=vxlan reason=external"), 1);
	bridge.vlan_filtering = true;
	tell(&bridge, false);
	round_over();
	assert_non_null(iface_at(42));
	del(vxlan);
	round_over();
	assert_null(iface_at(42));
}

/* The VNIs are still there when the thread ends. asan finds the VNIs that are not freed. */
static void
the_end_frees_the_vnis_of_each_chain(void **state)
{
	struct neigh *n = neigh.ctx;
	struct kmon_vni kv = {.ifindex = VXLAN};

	add(bridge_of(BRIDGE));
	add(vxlan_of(VXLAN, BRIDGE, 0));
	while (n->vni[0].next == NULL || n->vni[LINK_CHAINS - 1].next == NULL) {
		kv.vni = kv.vlan = kv.vlan % 4000 + 1u;
		kv.ifindex += kv.vlan == 1;
		monitor.ops.on_vni(monitor.ctx, &kv, false);
	}
	round_over();
}

#define vxlan_test(f) cmocka_unit_test_setup_teardown(f, vxlan_up, down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		vxlan_test(a_bridge_over_a_vxlan_device_is_an_interface_until_it_goes),
		vxlan_test(what_forwarders_cannot_do_stays_with_the_kernel),
		vxlan_test(a_neighbor_has_all_headers),
		vxlan_test(a_host_of_the_subnet_is_no_vtep),
		vxlan_test(headers_follow_each_change),
		vxlan_test(a_gateway_of_ipv6_is_a_vtep_of_its_family),
		vxlan_test(adjacencies_of_next_hops_have_them_too),
		vxlan_test(unknown_vnis_are_the_kernels_unless_all_is_ours),
		vxlan_test(outer_packets_are_in_the_vrf_of_the_link_below),
		vxlan_test(forwarding_that_was_off_before_stays_off),
		vxlan_test(an_event_of_another_link_publishes_nothing),
		vxlan_test(forwarding_databases_of_other_devices_are_not_kept),
		vxlan_test(entries_refused_during_the_first_dump_are_read_later),
		vxlan_test(a_device_may_go_while_its_entries_are_read),
		vxlan_test(vlans_of_a_bridge_have_vnis),
		vxlan_test(the_end_frees_the_vnis_of_each_chain),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
