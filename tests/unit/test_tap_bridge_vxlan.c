/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor for VXLAN: messages about vxlan devices, bridges and forwarding
 * databases, as Linux sends them.
 *
 * link: tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

static const uint8_t mac[6] = {2, 0, 0x5e, 0, 0x53, 0x99};

/* --- links ---------------------------------------------------------------------------- */

/*
 * An RTM_NEWLINK of a link of `kind`. Its IFLA_INFO_DATA is open: attributes can be added.
 */
struct link_msg {
	struct nl_msg *msg;
	struct nlattr *info, *data;
};

static struct link_msg
link_begin(const char *kind)
{
	struct ifinfomsg body = {
		.ifi_family = AF_UNSPEC, .ifi_index = 9, .ifi_flags = IFF_UP};
	struct link_msg m = {.msg = nlmsg_alloc_simple(RTM_NEWLINK, 0)};

	assert_non_null(m.msg);
	nlmsg_set_proto(m.msg, NETLINK_ROUTE);
	assert_int_equal(nlmsg_append(m.msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
	nla_put_string(m.msg, IFLA_IFNAME, "vx1");
	nla_put_u32(m.msg, IFLA_MASTER, 8);
	m.info = nla_nest_start(m.msg, IFLA_LINKINFO);
	nla_put_string(m.msg, IFLA_INFO_KIND, kind);
	m.data = nla_nest_start(m.msg, IFLA_INFO_DATA);
	return m;
}

static struct kmon_link
link_end(struct link_msg *m)
{
	struct kmon_change change;

	nla_nest_end(m->msg, m->data);
	nla_nest_end(m->msg, m->info);
	assert_true(kmon_parse(m->msg, &change));
	assert_int_equal(change.kind, KMON_LINK);
	nlmsg_free(m->msg);
	return change.item.link;
}

/*
 * Begin the message about `ip link add vx1 type vxlan id 5001 local 192.0.2.1 nolearning`.
 */
static struct link_msg
vxlan_begin(void)
{
	struct link_msg m = link_begin("vxlan");

	nla_put_u32(m.msg, IFLA_VXLAN_ID, 5001);
	nla_put_u32(m.msg, IFLA_VXLAN_LOCAL, htonl(0xc0000201));
	nla_put_u8(m.msg, IFLA_VXLAN_TTL, 0);
	nla_put_u8(m.msg, IFLA_VXLAN_TTL_INHERIT, 0);
	nla_put_u8(m.msg, IFLA_VXLAN_TOS, 0);
	nla_put_u8(m.msg, IFLA_VXLAN_DF, VXLAN_DF_UNSET);
	nla_put_u32(m.msg, IFLA_VXLAN_LABEL, 0);
	nla_put_u8(m.msg, IFLA_VXLAN_COLLECT_METADATA, 0);
	nla_put_u16(m.msg, IFLA_VXLAN_PORT, htons(4789));
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_CSUM, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_ZERO_CSUM6_TX, 0);
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_ZERO_CSUM6_RX, 0);
	return m;
}

static void
test_a_vxlan_device(void **state)
{
	struct link_msg m = vxlan_begin();
	struct kmon_link l = link_end(&m);
	const struct kmon_tunnel *t = &l.tunnel;

	assert_int_equal(l.master, 8);
	assert_false(l.bridge);
	assert_int_equal(t->kind, KMON_VXLAN);
	assert_int_equal(t->cannot, KMON_TUNNEL_CAN);
	assert_true(t->family == 4 && t->vni == 5001 && t->port == 4789);
	assert_memory_equal(t->local, "\xc0\x00\x02\x01", 4);
	assert_true(t->csum && !t->zero_csum6 && !t->df && t->ignore_df);
	assert_true(t->ttl == 0 && !t->ttl_inherit && !t->tos_inherit);
	assert_true(t->from_low == 0 && t->link == 0 && t->flow_label == 0);
}

static void
test_all_settings(void **state)
{
	struct ifla_vxlan_port_range range = {htons(6000), htons(6003)};
	struct link_msg m = link_begin("vxlan");
	struct in6_addr local = {.s6_addr = {0x20, 1, 0xd, 0xb8, [15] = 1}};
	struct kmon_tunnel t;

	nla_put_u32(m.msg, IFLA_VXLAN_ID, 0xffffff);
	nla_put(m.msg, IFLA_VXLAN_LOCAL6, sizeof(local), &local);
	nla_put_u32(m.msg, IFLA_VXLAN_LINK, 5);
	nla_put_u8(m.msg, IFLA_VXLAN_TTL, 17);
	nla_put_u8(m.msg, IFLA_VXLAN_TOS, 0x23);
	nla_put_u8(m.msg, IFLA_VXLAN_DF, VXLAN_DF_INHERIT);
	nla_put_u32(m.msg, IFLA_VXLAN_LABEL, htonl(0x12345));
	nla_put(m.msg, IFLA_VXLAN_PORT_RANGE, sizeof(range), &range);
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_CSUM, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_ZERO_CSUM6_TX, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_UDP_ZERO_CSUM6_RX, 1);
	t = link_end(&m).tunnel;
	assert_true(t.family == 6 && t.vni == 0xffffff && t.link == 5 && t.ttl == 17);
	assert_memory_equal(t.local, &local, 16);
	assert_true(t.tos == 0x20 && !t.tos_inherit && !t.df && !t.ignore_df);
	assert_true(t.flow_label == 0x12345 && t.from_low == 6000 && t.from_high == 6003);
	assert_true(!t.csum && t.zero_csum6);
	m = vxlan_begin();
	nla_put_u8(m.msg, IFLA_VXLAN_TTL_INHERIT, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_TOS, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_DF, VXLAN_DF_SET);
	t = link_end(&m).tunnel;
	assert_true(t.ttl_inherit && t.tos_inherit && t.tos == 0 && t.df);
}

/* Each setting that forwarders do not obey leaves the device to the kernel. */
static void
test_devices_of_the_kernel(void **state)
{
	static const struct {
		int attr;
		enum kmon_tunnel_cannot cannot;
	} row[] = {{IFLA_VXLAN_LEARNING, KMON_TUNNEL_LEARNING},
		   {IFLA_VXLAN_GBP, KMON_TUNNEL_GBP},
		   {IFLA_VXLAN_GPE, KMON_TUNNEL_GPE},
		   {IFLA_VXLAN_REMCSUM_TX, KMON_TUNNEL_REMCSUM},
		   {IFLA_VXLAN_REMCSUM_RX, KMON_TUNNEL_REMCSUM}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct link_msg m = vxlan_begin();

		if (row[i].attr == IFLA_VXLAN_GBP || row[i].attr == IFLA_VXLAN_GPE)
			nla_put_flag(m.msg, row[i].attr);
		else
			nla_put_u8(m.msg, row[i].attr, 1);
		assert_int_equal(link_end(&m).tunnel.cannot, row[i].cannot);
	}
}

/* An external vxlan device has no VNI of its own. Its bridge has a VNI for each VLAN. */
static void
test_an_external_device(void **state)
{
	struct link_msg m = vxlan_begin();
	struct kmon_tunnel t;

	nla_put_u8(m.msg, IFLA_VXLAN_COLLECT_METADATA, 1);
	t = link_end(&m).tunnel;
	assert_true(t.external && t.vni == 0 && t.cannot == KMON_TUNNEL_CAN);
	assert_false(t.vnifilter);
	m = vxlan_begin();
	nla_put_u8(m.msg, IFLA_VXLAN_COLLECT_METADATA, 1);
	nla_put_u8(m.msg, IFLA_VXLAN_VNIFILTER, 1);
	assert_true(link_end(&m).tunnel.vnifilter);
}

static void
test_a_bridge(void **state)
{
	struct link_msg m = link_begin("bridge");
	struct kmon_link l;

	nla_put_u8(m.msg, IFLA_BR_VLAN_FILTERING, 0);
	l = link_end(&m);
	assert_true(l.bridge && !l.vlan_filtering);
	assert_int_equal(l.tunnel.kind, KMON_NO_TUNNEL);
	m = link_begin("bridge");
	nla_put_u8(m.msg, IFLA_BR_VLAN_FILTERING, 1);
	assert_true(link_end(&m).vlan_filtering);
	m = link_begin("bridg");
	assert_false(link_end(&m).bridge);
}

/* --- forwarding databases ------------------------------------------------------------- */

static struct nl_msg *
fdb_begin(int type, uint8_t family, const uint8_t *lladdr)
{
	struct ndmsg body = {.ndm_family = family, .ndm_ifindex = 9, .ndm_flags = NTF_SELF};
	struct nl_msg *msg = nlmsg_alloc_simple(type, 0);

	assert_non_null(msg);
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	assert_int_equal(nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
	if (lladdr != NULL)
		nla_put(msg, NDA_LLADDR, 6, lladdr);
	return msg;
}

static bool
fdb_end(struct nl_msg *msg, struct kmon_change *change)
{
	bool ok = kmon_parse(msg, change);

	nlmsg_free(msg);
	return ok;
}

static void
test_an_entry_names_a_vtep(void **state)
{
	struct nl_msg *msg = fdb_begin(RTM_NEWNEIGH, AF_BRIDGE, mac);
	struct in6_addr six = {.s6_addr = {0x20, 1, 0xd, 0xb8, [15] = 9}};
	struct kmon_change c;

	nla_put_u32(msg, NDA_DST, htonl(0xc0000202));
	assert_true(fdb_end(msg, &c));
	assert_int_equal(c.kind, KMON_FDB);
	assert_false(c.gone);
	assert_int_equal(c.item.fdb.ifindex, 9);
	assert_memory_equal(c.item.fdb.mac, mac, 6);
	assert_int_equal(c.item.fdb.family, 4);
	assert_memory_equal(c.item.fdb.remote, "\xc0\x00\x02\x02", 4);
	assert_true(c.item.fdb.vni == 0 && c.item.fdb.port == 0 && c.item.fdb.link == 0);
	msg = fdb_begin(RTM_DELNEIGH, AF_BRIDGE, mac);
	nla_put(msg, NDA_DST, 16, &six);
	nla_put_u32(msg, NDA_VNI, 77);
	nla_put_u32(msg, NDA_SRC_VNI, 78);
	nla_put_u16(msg, NDA_PORT, htons(8472));
	nla_put_u32(msg, NDA_IFINDEX, 4);
	assert_true(fdb_end(msg, &c));
	assert_true(c.gone && c.item.fdb.family == 6 && c.item.fdb.vni == 77 &&
		    c.item.fdb.from_vni == 78 && c.item.fdb.port == 8472 &&
		    c.item.fdb.link == 4);
}

static void
test_other_entries_name_none(void **state)
{
	static const uint8_t zero[6], group[6] = {1, 0, 0x5e, 0, 0, 1};
	struct kmon_change c;
	struct nl_msg *msg = fdb_begin(RTM_NEWNEIGH, AF_BRIDGE, mac);

	assert_false(fdb_end(msg, &c)); /* without a VTEP */
	for (unsigned int i = 0; i < 3; i++) {
		msg = fdb_begin(RTM_NEWNEIGH, AF_BRIDGE,
				i == 0   ? zero
				: i == 1 ? group
					 : NULL);
		nla_put_u32(msg, NDA_DST, htonl(0xc0000202));
		assert_false(fdb_end(msg, &c));
	}
	msg = fdb_begin(RTM_NEWNEIGH, AF_MPLS, mac);
	nla_put_u32(msg, NDA_DST, htonl(0xc0000202));
	assert_false(fdb_end(msg, &c));
}

static unsigned int n_reports, n_gone;

static void
on_fdb(void *ctx, const struct kmon_fdb *fdb, bool gone)
{
	n_reports++;
	n_gone += gone;
}

static void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
}

/*
 * An entry is reported once for each change, and can be looked up during the report. It
 * goes with its device.
 */
static void
test_entries_are_found_until_they_go(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link, .on_fdb = on_fdb};
	struct kmon km = {.ops = ops};
	struct kmon_change link = {.kind = KMON_LINK, .item.link.ifindex = 9};
	struct kmon_change c = {
		.kind = KMON_FDB,
		.item.fdb = {.ifindex = 9, .family = 4, .remote = {192, 0, 2, 2}}};

	memcpy(c.item.fdb.mac, mac, 6);
	assert_int_equal(kmon_apply(&km, &c), 0); /* its device is not known yet */
	assert_int_equal(n_reports, 0);
	assert_int_equal(kmon_apply(&km, &link), 0);
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_int_equal(n_reports, 1);
	assert_int_equal(kmon_fdb_find(&km, 9, mac, 0)->remote[3], 2);
	assert_null(kmon_fdb_find(&km, 9, mac, 7));
	assert_null(kmon_fdb_find(&km, 8, mac, 0));
	c.item.fdb.remote[3] = 3;
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_int_equal(kmon_fdb_find(&km, 9, mac, 0)->remote[3], 3);
	c.item.fdb.from_vni = 7; /* another entry */
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_int_equal(n_reports, 3);
	c.gone = true;
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_int_equal(n_gone, 1);
	assert_null(kmon_fdb_find(&km, 9, mac, 7));
	link.gone = true;
	assert_int_equal(kmon_apply(&km, &link), 0);
	assert_int_equal(n_gone, 2);
	assert_null(kmon_fdb_find(&km, 9, mac, 0));
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km.mirror[kind]);
}

static unsigned int wanted; /* ifindex */

static bool
on_wanted(void *ctx, unsigned int ifindex)
{
	return ifindex == wanted;
}

/*
 * The monitor keeps no entries of a device that its owner does not want. It removes them
 * when the owner no longer wants the device.
 */
static void
test_entries_of_other_devices_are_not_kept(void **state)
{
	static const struct kmon_ops ops = {
		.on_link = on_link, .on_fdb = on_fdb, .wants_fdb = on_wanted};
	struct kmon km = {.ops = ops};
	struct kmon_change c = {.kind = KMON_FDB,
				.item.fdb = {.family = 4, .remote = {192, 0, 2, 2}}};

	memcpy(c.item.fdb.mac, mac, 6);
	n_reports = n_gone = 0;
	wanted = 9;
	for (unsigned int ifindex = 9; ifindex <= 10; ifindex++) {
		struct kmon_change link = {.kind = KMON_LINK, .item.link.ifindex = ifindex};

		assert_int_equal(kmon_apply(&km, &link), 0);
		c.item.fdb.ifindex = ifindex;
		assert_int_equal(kmon_apply(&km, &c), 0);
	}
	assert_int_equal(n_reports, 1);
	assert_int_equal(km.mirror[KMON_FDB].n_entries, 1);
	assert_non_null(kmon_fdb_find(&km, 9, mac, 0));
	assert_null(kmon_fdb_find(&km, 10, mac, 0));
	kmon_drop_fdb(&km, 10);
	assert_int_equal(km.mirror[KMON_FDB].n_entries, 1);
	wanted = 10;
	kmon_drop_fdb(&km, 9);
	assert_int_equal(km.mirror[KMON_FDB].n_entries, 0);
	assert_int_equal(kmon_apply(&km, &c), 0);
	assert_non_null(kmon_fdb_find(&km, 10, mac, 0));
	assert_int_equal(n_gone, 0);
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km.mirror[kind]);
}

/* --- VNIs of VLANs -------------------------------------------------------------------- */

static struct kmon_vni vni[8];
static unsigned int n_vni, n_vni_gone;

static void
on_vni(void *ctx, const struct kmon_vni *kv, bool gone)
{
	n_vni_gone += gone;
	vni[n_vni++ % 8] = *kv;
}

/*
 * Let the kernel report a port of a bridge. `n` VLANs from `vlan` on have VNIs from `id`
 * on.
 */
static void
vnis_told(struct kmon *km, int type, int flags, unsigned int ifindex, uint16_t vlan,
	  uint16_t n, uint32_t id)
{
	struct ifinfomsg body = {.ifi_family = AF_BRIDGE, .ifi_index = (int)ifindex};
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags);
	struct nlattr *spec, *one;

	assert_int_equal(nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
	spec = nla_nest_start(msg, IFLA_AF_SPEC);
	for (unsigned int end = 0; end < (n == 0 ? 0u : n == 1 ? 1u : 2u); end++) {
		uint16_t range = n == 1     ? 0
				 : end == 0 ? BRIDGE_VLAN_INFO_RANGE_BEGIN
					    : BRIDGE_VLAN_INFO_RANGE_END;
		uint16_t more = end == 0 ? 0 : (uint16_t)(n - 1);

		one = nla_nest_start(msg, IFLA_BRIDGE_VLAN_TUNNEL_INFO);
		nla_put_u32(msg, IFLA_BRIDGE_VLAN_TUNNEL_ID, id + more);
		nla_put_u16(msg, IFLA_BRIDGE_VLAN_TUNNEL_VID, (uint16_t)(vlan + more));
		nla_put_u16(msg, IFLA_BRIDGE_VLAN_TUNNEL_FLAGS, range);
		nla_nest_end(msg, one);
	}
	nla_nest_end(msg, spec);
	n_vni = n_vni_gone = 0;
	assert_true(kmon_apply_vnis(km, nlmsg_hdr(msg)));
	nlmsg_free(msg);
}

/*
 * A port with many VLANs, each with a VNI that does not follow the VNI before. The length of
 * the attribute wraps, as in Linux.
 */
static void
test_thousands_of_vlans_have_vnis(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link, .on_vni = on_vni};
	static const uint16_t n_vlan[] = {900, 1820, 1821, 4094};
	struct ifinfomsg body = {.ifi_family = AF_BRIDGE, .ifi_index = 9};
	struct kmon_change link = {.kind = KMON_LINK, .item.link.ifindex = 9};
	struct kmon km = {.ops = ops};

	assert_int_equal(kmon_apply(&km, &link), 0);
	for (unsigned int i = 0; i < 4; i++) {
		struct nl_msg *msg = nlmsg_alloc_size(256 << 10);
		struct nlattr *spec;

		assert_non_null(nlmsg_put(msg, 0, 0, RTM_NEWLINK, 0, 0));
		assert_int_equal(nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO), 0);
		nla_put_string(msg, IFLA_IFNAME, "vx1");
		spec = nla_nest_start(msg, IFLA_AF_SPEC);
		for (uint16_t v = 1; v <= n_vlan[i]; v++) {
			const struct bridge_vlan_info info = {.vid = v};

			assert_int_equal(
				nla_put(msg, IFLA_BRIDGE_VLAN_INFO, sizeof(info), &info),
				0);
		}
		for (uint16_t v = 1; v <= n_vlan[i]; v++) {
			struct nlattr *one =
				nla_nest_start(msg, IFLA_BRIDGE_VLAN_TUNNEL_INFO);

			nla_put_u32(msg, IFLA_BRIDGE_VLAN_TUNNEL_ID, 10000u + 2u * v);
			nla_put_u16(msg, IFLA_BRIDGE_VLAN_TUNNEL_VID, v);
			assert_int_equal(nla_put_u16(msg, IFLA_BRIDGE_VLAN_TUNNEL_FLAGS, 0),
					 0);
			nla_nest_end(msg, one);
		}
		spec->nla_len =
			(uint16_t)((char *)nlmsg_tail(nlmsg_hdr(msg)) - (char *)spec);
		n_vni = n_vni_gone = 0;
		assert_true(kmon_apply_vnis(&km, nlmsg_hdr(msg)));
		nlmsg_free(msg);
		/* The VLANs of the previous message have kept their VNIs. */
		assert_int_equal(n_vni, n_vlan[i] - (i == 0 ? 0 : n_vlan[i - 1]));
		assert_int_equal(n_vni_gone, 0);
		assert_true(vni[(n_vni - 1) % 8].vlan == n_vlan[i] &&
			    vni[(n_vni - 1) % 8].vni == 10000u + 2u * n_vlan[i]);
	}
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km.mirror[kind]);
}

static void
test_vlans_have_vnis(void **state)
{
	static const struct kmon_ops ops = {.on_link = on_link, .on_vni = on_vni};
	struct kmon km = {.ops = ops};
	struct kmon_change link = {.kind = KMON_LINK, .item.link.ifindex = 9};
	struct link_msg other = vxlan_begin();

	assert_false(kmon_apply_vnis(&km, nlmsg_hdr(other.msg)));
	nlmsg_free(other.msg);
	assert_int_equal(kmon_apply(&km, &link), 0);
	link.item.link.ifindex = 10;
	assert_int_equal(kmon_apply(&km, &link), 0);
	vnis_told(&km, RTM_NEWLINK, 0, 9, 7, 1, 5001);
	assert_int_equal(n_vni, 1);
	assert_true(vni[0].ifindex == 9 && vni[0].vlan == 7 && vni[0].vni == 5001);
	vnis_told(&km, RTM_NEWLINK, 0, 9, 7, 1, 5001);
	assert_int_equal(n_vni, 0);
	vnis_told(&km, RTM_NEWLINK, 0, 10, 7, 1, 6001); /* another port */
	assert_int_equal(n_vni, 1);
	vnis_told(&km, RTM_NEWLINK, 0, 9, 7, 3, 5001); /* two more VLANs */
	assert_int_equal(n_vni, 2);
	assert_true(vni[1].vlan == 9 && vni[1].vni == 5003);
	vnis_told(&km, RTM_NEWLINK, 0, 9, 8, 1, 5009); /* one VNI changed, two are gone */
	assert_int_equal(n_vni, 3);
	assert_int_equal(n_vni_gone, 2);
	/* In a dump, a message says nothing about the VNIs in other messages. */
	km.gen++;
	vnis_told(&km, RTM_NEWLINK, NLM_F_MULTI, 9, 20, 1, 70);
	assert_int_equal(n_vni, 1);
	vnis_told(&km, RTM_DELLINK, 0, 9, 8, 1, 5009); /* the port has left the bridge */
	assert_int_equal(n_vni_gone, 2);
	vnis_told(&km, RTM_NEWLINK, 0, 10, 0, 0, 0);
	assert_int_equal(n_vni_gone, 1);
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km.mirror[kind]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_vxlan_device),
		cmocka_unit_test(test_all_settings),
		cmocka_unit_test(test_devices_of_the_kernel),
		cmocka_unit_test(test_an_external_device),
		cmocka_unit_test(test_a_bridge),
		cmocka_unit_test(test_an_entry_names_a_vtep),
		cmocka_unit_test(test_other_entries_name_none),
		cmocka_unit_test(test_entries_are_found_until_they_go),
		cmocka_unit_test(test_entries_of_other_devices_are_not_kept),
		cmocka_unit_test(test_vlans_have_vnis),
		cmocka_unit_test(test_thousands_of_vlans_have_vnis),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
