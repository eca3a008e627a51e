/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the interface of a VXLAN packet, and the path of packets to VTEPs. Any reader; no
 * state.
 */
#include "fib/vxlan.h"

#include "fib/path_mtu.h"
#include "fib/rules.h"

uint32_t
fib_vxlan_hash(const struct fib *fib, uint16_t vrf, uint16_t port, uint32_t vni)
{
	return (uint32_t)(mix64(fib->seed ^
				((uint64_t)vni << 32 | (uint32_t)port << 16 | vrf)) >>
			  32);
}

/* --- received packets ----------------------------------------------------------------- */

/* The outer header of a packet. */
struct outer {
	const uint8_t *ip, *udp, *vxlan;
	uint16_t vrf, port;
	uint8_t family;
};

/*
 * Return true if the packet is to the address. Compares in registers, because this runs for
 * each packet.
 */
static inline bool
dst_is(const struct ipaddr *addr, const struct outer *o)
{
	uint64_t a[2], d[2];
	uint32_t a4, d4;

	if (o->family == 4) {
		memcpy(&a4, addr->octet, sizeof(a4));
		memcpy(&d4, o->ip + 16, sizeof(d4));
		return a4 == d4;
	}
	memcpy(a, addr->octet, sizeof(a));
	memcpy(d, o->ip + 24, sizeof(d));
	return a[0] == d[0] && a[1] == d[1];
}

static inline bool
end_is(const struct fib_vxlan *v, const struct outer *o)
{
	return v->family == o->family && v->vrf == o->vrf && v->port == o->port &&
	       dst_is(&v->local, o);
}

static inline bool
iface_takes(const struct fib_iface *iface, uint32_t vni, const struct outer *o)
{
	return iface != NULL && iface->vxlan.vni == vni && end_is(&iface->vxlan, o);
}

/*
 * Return the interface that has the VNI, and the VRF, local address and port of the packet;
 * NULL: there is none that is up. *gone: such an interface is down or was just removed, so
 * the kernel decides about the packet.
 */
static inline const struct fib_iface *
iface_of(const struct fib *fib, const struct fib_vxlans *vxlans, const struct outer *o,
	 const struct fib_iface **last, bool *gone)
{
	uint32_t vni = get_be32(o->vxlan + 4) >> 8;

	if (iface_takes(*last, vni, o))
		return *last;
	for (uint32_t i = fib_vxlan_hash(fib, o->vrf, o->port, vni);; i++) {
		/* Consume: the interface of the entry was published before the entry. */
		uint16_t ifidx = atomic_load_explicit(&vxlans->entry[i & vxlans->mask],
						      memory_order_consume);
		const struct fib_iface *iface = fib_iface(fib, ifidx);

		if (ifidx == 0)
			return NULL;
		if (!iface_takes(iface, vni, o))
			continue;
		if (iface->ifindex != 0 && iface->up) {
			*last = iface;
			return iface;
		}
		*gone = true;
	}
}

/*
 * Return the drop reason of a packet to an unknown VNI; N_REASON: the kernel may know it.
 */
static uint16_t
vni_refusal(const struct fib *fib, const struct fib_vxlans *vxlans, const struct outer *o)
{
	uint16_t ifidx = atomic_load_explicit(&vxlans->one_end, memory_order_relaxed);
	const struct fib_iface *one = ifidx == 0 ? NULL : fib_iface(fib, ifidx);

	if (one == NULL || !end_is(&one->vxlan, o))
		return N_REASON;
	return (o->vxlan[0] & VXLAN_VNI_FLAG) == 0 ? DROP_vxlan_flags : DROP_vxlan_vni;
}

/* Return the length of the packet at `ip`, whose version is `family`; 0: there is none. */
static unsigned int
inner_bytes(const uint8_t *ip, uint8_t family)
{
	if (ip[0] >> 4 != family)
		return 0;
	return family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
}

/* Read the inner frame. It has `len` octets, of which `room` may be read. */
static void
frame_read(const struct fib_iface *iface, const uint8_t *eth, unsigned int room,
	   unsigned int len, struct fib_vxlan_found *found)
{
	uint16_t type = get_be16(eth + 12);
	unsigned int bytes;

	if ((eth[0] & 1) != 0)
		return; /* to a group: the kernel replies, for example to ARP */
	if (memcmp(eth, iface->mac, sizeof(iface->mac)) != 0)
		found->reason = DROP_l2_foreign;
	else if ((eth[6] & 1) != 0)
		found->reason = DROP_l2_group_source;
	else if (vlan_type_is_tag(type))
		found->reason = DROP_vlan_unknown;
	found->family = type == 0x0800 ? 4 : type == 0x86dd ? 6 : 0;
	if (found->reason != N_REASON || found->family == 0 ||
	    room < ETH_BYTES + (found->family == 4 ? 20u : 40u))
		return;
	bytes = inner_bytes(eth + ETH_BYTES, found->family);
	if (bytes != 0 && bytes <= len - ETH_BYTES)
		found->ifidx = iface->ifidx;
}

struct fib_vxlan_found
fib_vxlan_find(const struct fib *fib, uint16_t vrf, uint8_t family, const uint8_t *ip,
	       unsigned int room, const struct fib_iface **last)
{
	const struct fib_vxlans *vxlans =
		atomic_load_explicit(&fib->vxlans, memory_order_consume);
	unsigned int at = family == 4 ? (ip[0] & 15u) * 4 : 40;
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	struct outer o = {.ip = ip, .udp = ip + at, .vrf = vrf, .family = family};
	struct fib_vxlan_found found = {.reason = N_REASON};
	const struct fib_iface *iface;
	bool gone = false;

	if (vxlans == NULL || !fib_tunnels_allowed(fib) ||
	    room < at + VXLAN_HEAD_BYTES + 20 || ip[family == 4 ? 9 : 6] != PROTO_UDP ||
	    (family == 4 && (get_be16(ip + 6) & 0x3fff) != 0) ||
	    get_be16(o.udp + 4) != len - at)
		return found;
	o.vxlan = o.udp + UDP_BYTES;
	o.port = get_be16(o.udp + 2);
	iface = iface_of(fib, vxlans, &o, last, &gone);
	if (iface == NULL) {
		found.reason = gone ? N_REASON : vni_refusal(fib, vxlans, &o);
		return found;
	}
	if ((o.vxlan[0] & VXLAN_VNI_FLAG) == 0) {
		found.reason = DROP_vxlan_flags;
		return found;
	}
	if (family == 6 && get_be16(o.udp + 6) == 0 && !iface->vxlan.zero_csum6) {
		found.reason = DROP_udp_checksum;
		return found;
	}
	found.udp_at = (uint16_t)at;
	found.at = (uint16_t)(at + VXLAN_HEAD_BYTES);
	at += UDP_BYTES + VXLAN_BYTES;
	frame_read(iface, ip + at, room - at, len - at, &found);
	return found;
}

/* --- sent packets --------------------------------------------------------------------- */

void
fib_vxlan_resolve(const struct fib *fib, const struct fib_vxlan_hop *hop, uint8_t family,
		  const uint8_t *ip, unsigned int room, struct fib_vxlan_outer *outer)
{
	const struct fib_iface *iface = fib_iface(fib, hop->ifidx), *out;
	const struct fib_tunnel *t = &hop->t;
	uint8_t head[FIB_TUNNEL_HEAD_MAX];

	outer->path = PATH(PATH_NONE, 0);
	outer->labels = NULL;
	outer->hash = flow_hash(ip, room, family, fib->seed);
	if (iface->ifindex == 0 || !iface->up) {
		outer->reason = DROP_egress_down;
		return;
	}
	if (!fib_tunnels_allowed(fib) || t->bytes == 0) {
		outer->reason = PUNT_kernel_route;
		return;
	}
	if (path_kind(fib_resolve(fib, t->vrf, t->family, &t->local, 0)) != PATH_LOCAL) {
		outer->reason = DROP_egress_down;
		return;
	}
	/* The UDP ports of the outer packet choose among equal paths. */
	memcpy(head, t->head, sizeof(head));
	put_be16(head + t->bytes - VXLAN_HEAD_BYTES, vxlan_source_port(hop, outer->hash));
	outer->path =
		outer_below(fib,
			    outer_look_up(fib, t, head,
					  t->tos_inherit ? ip_dsfield(ip, family) : t->tos),
			    &outer->labels);
	out = path_out(fib, outer->path);
	outer->reason = outer_refusal(outer->path, out, t->link);
	if (out != NULL && out->up && out->ifidx == hop->ifidx)
		outer->reason = DROP_encap_loop;
}

bool
fib_vxlan_begin(const struct fib *fib, const struct fib_vxlan_hop *hop, uint64_t *route)
{
	const struct fib_iface *iface = fib_iface(fib, hop->ifidx);
	const struct fib_tunnel *t = &hop->t;

	if (!fib_tunnels_allowed(fib) || t->bytes == 0 || iface->ifindex == 0 ||
	    !iface->up || fib_rules(fib, t->family) != NULL ||
	    path_kind(fib_resolve(fib, t->vrf, t->family, &t->local, 0)) != PATH_LOCAL)
		return false;
	*route = fib_route_word(fib, t->vrf, t->family, &t->remote);
	return true;
}

unsigned int
fib_vxlan_mtu(const struct fib *fib, const struct fib_vxlan_hop *hop,
	      const struct fib_vxlan_outer *outer, const struct fib_iface *out)
{
	unsigned int mtu = outer_mtu(fib, outer->path, outer->labels, out, hop->t.family);
	unsigned int path = fib_pmtu(fib, hop->t.vrf, hop->t.family, &hop->t.remote);

	if (path < mtu)
		mtu = path;
	return mtu <= hop->t.bytes ? 0 : mtu - hop->t.bytes;
}
