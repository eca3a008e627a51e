/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * classify: choose the punt class (base/punt_class.def) of a packet for the host, and ask
 * its policer. The protected classes take only packets that the host is known to expect:
 * packets of protocols that no router forwards, packets of peers that the host speaks with,
 * and packets of neighbors that it asks for (base/peers.h). A field that an attacker can
 * forge never gives access to a protected class. The packets of tunnels that end in the
 * kernel have a class of their own (base/kernel_outer.h).
 *
 * The policer decides before a packet enters a ring, so a refused packet costs the
 * forwarder two loads and the host nothing. [fwd-n]
 */
#include "base/inet.h"
#include "base/kernel_outer.h"
#include "base/peers.h"
#include "fwd/burst.h"

/* The packet that is classified. */
struct view {
	const struct burst *b;
	const uint8_t *l3;
	unsigned int room; /* bytes of the packet in the first segment */
	uint64_t seed;     /* hash seed of its VRF */
	uint8_t family;
	bool group; /* destination is multicast or broadcast */
	bool link;  /* destination is of link scope: no router has forwarded it */
	uint32_t now_s;
};

static const uint8_t *
view_source(const struct view *v)
{
	return v->family == 4 ? v->l3 + 12 : v->l3 + 8;
}

static bool
view_peer_known(const struct view *v, enum peer_kind kind, uint32_t what)
{
	return peers_know(kind, peer_addr_key(view_source(v), v->family, what, v->seed),
			  v->now_s);
}

/*
 * Return true if the kernel asks or has asked for this neighbor, or if a peer of the host
 * is behind its MAC. An entry in the neighbor table is no proof, because a request from any
 * host creates one.
 */
static bool
sender_is_neighbor(const struct burst *b, unsigned int i, uint8_t family,
		   const uint8_t *addr, uint32_t now_s)
{
	uint64_t seed = b->fwd->fib->seed;

	return peers_know(PEER_ASKED, peer_addr_key(addr, family, b->ifidx, seed), now_s) ||
	       peers_know(PEER_LINK, peer_mac_key(burst_frame(b, i) + 6, b->ifidx, seed),
			  now_s);
}

static enum punt_class
class_of_l2(const struct burst *b, unsigned int i, uint32_t now_s)
{
	const uint8_t *l3 = burst_l3(b, i);
	unsigned int room = rte_pktmbuf_data_len(b->m[i]) - L2_LEN;
	uint16_t type = get_be16(burst_l2(b, i) + 12);

	if (type == 0x0806) /* RFC 826: the sender's protocol address */
		return room >= 28 && sender_is_neighbor(b, i, 4, l3 + 14, now_s)
			       ? CLASS_arp
			       : CLASS_arp_new;
	/*
	 * The LLC header of IS-IS (ISO 10589, 8.4.8). EtherType 0x8870 stands for the
	 * length of a frame above 1500 octets (IEEE 802.1AC, 12).
	 */
	if ((type < 0x0600 || type == 0x8870) && room >= 2 && l3[0] == 0xfe &&
	    l3[1] == 0xfe)
		return CLASS_igp;
	return CLASS_l2;
}

/* Return the class of a frame that is neither IP nor ARP nor a frame of class_of_l2(). */
static enum punt_class
class_of_foreign(const struct burst *b, unsigned int i)
{
	bool session = get_be16(burst_l2(b, i) + 12) == 0x8864; /* RFC 2516, 4 */

	return session && (burst_frame(b, i)[0] & 1) == 0 && kernel_outer_has_pppoe()
		       ? CLASS_kernel_tunnel
		       : CLASS_group;
}

/* Return the class of a packet that belongs to no protocol and no known session. */
static enum punt_class
class_rest(const struct view *v)
{
	return v->group ? CLASS_group : CLASS_local;
}

/* Return the class of a packet; `known`: a tunnel of the kernel has such outer headers. */
static enum punt_class
class_of_tunnel(const struct view *v, bool known)
{
	return known && !v->group ? CLASS_kernel_tunnel : class_rest(v);
}

/*
 * Return `class` if the destination has link scope or the source is a known peer, else
 * control-new.
 */
static enum punt_class
class_if_trusted(const struct view *v, enum punt_class class, uint32_t what)
{
	return v->link || view_peer_known(v, PEER_CONTROL, what) ? class
								 : CLASS_control_new;
}

static enum punt_class
class_of_tcp(const struct view *v, unsigned int off)
{
	const uint8_t *tcp = v->l3 + off;
	uint16_t from, to;
	bool bgp, known;
	uint64_t key;

	if (v->room < off + 14)
		return class_rest(v);
	from = get_be16(tcp);
	to = get_be16(tcp + 2);
	bgp = from == 179 || to == 179;
	key = peer_tcp_key(view_source(v), view_source(v) + family_octets(v->family),
			   v->family, from, to, v->seed);
	/*
	 * A SYN without ACK begins a session, even if its addresses and ports match a known
	 * session.
	 */
	known = (tcp[13] & 0x12) != 0x02 &&
		peers_know(bgp ? PEER_BGP : PEER_TCP, key, v->now_s);
	if (bgp)
		return known ? CLASS_bgp : CLASS_bgp_new;
	if (from == 646 || to == 646)
		return known ? CLASS_signalling : CLASS_control_new;
	return known ? CLASS_tcp : class_rest(v);
}

/*
 * Check that the sender is one hop away: TTL 255 (RFC 5881, 5). The peer loops an echo
 * packet back (RFC 5881, 4), so 254 is valid there.
 */
static bool
bfd_ttl_ok(const struct view *v, uint16_t port)
{
	uint8_t ttl = v->family == 4 ? v->l3[8] : v->l3[7];

	return port == 3784 ? ttl == 255 : port == 3785 ? ttl >= 254 : true;
}

static enum punt_class
class_of_udp(const struct view *v, unsigned int off)
{
	uint16_t from, to;

	if (v->room < off + 8)
		return class_rest(v);
	from = get_be16(v->l3 + off);
	to = get_be16(v->l3 + off + 2);
	/* A reflector of S-BFD replies from its own port (RFC 7881, 2). */
	if (to == 3784 || to == 3785 || to == 4784 || to == 7784 || from == 7784)
		return bfd_ttl_ok(v, to) && view_peer_known(v, PEER_BFD, 0)
			       ? CLASS_bfd
			       : CLASS_control_new;
	if (to == 646)
		return class_if_trusted(v, CLASS_signalling, 646u << 8);
	if (to == 520 || to == 521 || to == 6696)
		return class_if_trusted(v, CLASS_igp, (uint32_t)to << 8);
	if (to == 67 || to == 68 || to == 546 || to == 547)
		return CLASS_dhcp;
	return class_of_tunnel(v, kernel_outer_has_udp(to));
}

static enum punt_class
class_of_icmp6(const struct view *v, unsigned int i, unsigned int off)
{
	uint8_t type;

	if (v->room < off + 8)
		return class_rest(v);
	type = v->l3[off];
	if ((type >= 130 && type <= 132) || type == 143)
		return CLASS_membership;
	if (type < 133 || type > 137)
		return CLASS_icmp;
	/*
	 * Hop limit 255 proves that no router has forwarded the packet (RFC 4861, 6.1 and
	 * 7.1). The kernel ignores the packet otherwise.
	 */
	if (v->l3[7] != 255)
		return class_rest(v);
	/* An advertisement is about its target, every other message about its source. */
	if (type == 136 && v->room < off + 24)
		return CLASS_nd_new;
	return sender_is_neighbor(v->b, i, 6,
				  type == 136 ? v->l3 + off + 8 : view_source(v), v->now_s)
		       ? CLASS_nd
		       : CLASS_nd_new;
}

static enum punt_class
class_of_ip(const struct view *v, unsigned int i)
{
	unsigned int off = v->family == 4 ? (v->l3[0] & 15u) * 4 : 40;
	uint8_t proto = v->family == 4 ? v->l3[9] : v->l3[6];
	bool piece = v->family == 4 ? (get_be16(v->l3 + 6) & 0x3fff) != 0 : proto == 44;

	/*
	 * An MLD message is behind a router alert option, in hop-by-hop options (RFC 3810,
	 * 5). Other chains of extension headers are not followed.
	 */
	if (v->family == 6 && proto == 0 && v->room >= 48) {
		proto = v->l3[40];
		off = 48 + v->l3[41] * 8u;
		if (proto != 58)
			return class_rest(v);
	}
	/* Linux writes an encapsulation limit into its outer packets (RFC 2473, 5.1). */
	if (v->family == 6 && proto == 60 && v->room >= 48)
		return class_of_tunnel(v, kernel_outer_has_protocol(v->l3[40]));
	switch (proto) {
	case 2: /* IGMP */
		return CLASS_membership;
	case 88: /* EIGRP */
	case 89: /* OSPF, fragments too: RFC 2328, A.1 */
		return class_if_trusted(v, CLASS_igp, proto);
	case 46:  /* RSVP */
	case 103: /* PIM */
	case 112: /* VRRP */
		return class_if_trusted(v, CLASS_signalling, proto);
	}
	if (piece)
		return CLASS_fragment;
	switch (proto) {
	case 1:
		return v->family == 4 ? CLASS_icmp : class_rest(v);
	case 58:
		return v->family == 6 ? class_of_icmp6(v, i, off) : class_rest(v);
	case 6:
		return class_of_tcp(v, off);
	case 17:
		return class_of_udp(v, off);
	default:
		return class_of_tunnel(v, kernel_outer_has_protocol(proto));
	}
}

static enum punt_class
class_for_host(const struct burst *b, unsigned int i, uint32_t now_s)
{
	const uint8_t *l3 = burst_l3(b, i);
	struct view v = {.b = b,
			 .l3 = l3,
			 .room = burst_l3_room(b, i),
			 .seed = seed_of(b->fwd->fib->seed, b->in->vrf),
			 .family = b->family[i],
			 .now_s = now_s};

	if (v.family == 4) {
		v.group = l3[16] >= 224 || (burst_frame(b, i)[0] & 1) != 0;
		v.link = get_be32(l3 + 16) >> 8 == 0xe00000 ||
			 get_be32(l3 + 16) == 0xffffffff;
	} else {
		v.group = l3[24] == 0xff;
		v.link = v.group ? (l3[25] & 15) <= 2
				 : l3[24] == 0xfe && (l3[25] & 0xc0) == 0x80;
	}
	return class_of_ip(&v, i);
}

/*
 * Return the class of the ICMP error that a packet causes, by the type of the error.
 * CLASS_cut: the packet is too big and must be fragmented.
 */
static enum punt_class
class_of_error(const struct burst *b, unsigned int i, enum reason reason)
{
	bool six = b->family[i] == 6;

	if (reason == PUNT_ttl_expired)
		return six ? CLASS_icmp6_ttl : CLASS_icmp4_ttl;
	if (reason == PUNT_unreach)
		return six ? CLASS_icmp6_unreach : CLASS_icmp4_unreach;
	if (six)
		return CLASS_icmp6_too_big;
	return (burst_l3(b, i)[6] & 0x40) != 0 ? CLASS_icmp4_too_big : CLASS_cut;
}

enum punt_class
fwd_class(struct burst *b, unsigned int i, enum reason reason)
{
	switch (reason) {
	case PUNT_l2_control:
		return class_of_l2(b, i, policer_seconds(burst_now(b)));
	case PUNT_not_ip:
		return class_of_foreign(b, i);
	case PUNT_unresolved:
		return CLASS_glean;
	case PUNT_kernel_route:
		return CLASS_kernel_route;
	case PUNT_ttl_expired:
	case PUNT_unreach:
	case PUNT_too_big:
		return class_of_error(b, i, reason);
	default:
		return class_for_host(b, i, policer_seconds(burst_now(b)));
	}
}

/*
 * Return the policer key of the packet's source. A MAC address is combined with the
 * interface, because a switch has one MAC in all VLANs of a trunk but is a separate
 * neighbor in each. An IP address is combined with the VRF, because VRFs may use the same
 * addresses.
 */
static uint32_t
policer_source_of(const struct burst *b, unsigned int i, enum punt_key key)
{
	uint64_t seed = b->fwd->fib->seed;

	if (key == KEY_MAC || b->family[i] == 0)
		return policer_source(seed_of(seed, b->ifidx), burst_frame(b, i) + 6, 6);
	seed = seed_of(seed, b->in->vrf);
	if (b->family[i] == 4)
		return policer_source(seed, burst_l3(b, i) + 12, 4);
	return policer_source(seed, burst_l3(b, i) + 8, key == KEY_NET ? 8 : 16);
}

/*
 * Return the policer key of the neighbor that a packet waits for: the next hop of the
 * packet or of its SRv6 headend, or its destination on the link.
 */
static uint32_t
policer_neighbor_of(const struct burst *b, unsigned int i)
{
	uint32_t index = path_index(b->path[i]);
	uint64_t seed = b->fwd->fib->seed;

	if (path_kind(b->path[i]) == PATH_ADJ)
		return policer_source(seed, (const uint8_t *)&index, sizeof(index));
	/*
	 * A packet with labels that goes into a tunnel waits for the neighbor of the
	 * tunnel. It has no destination.
	 */
	if (path_kind(b->path[i]) == PATH_ENCAP || b->family[i] == 0)
		return policer_source(seed_of(seed, PATH_ENCAP), (const uint8_t *)&index,
				      sizeof(index));
	seed = seed_of(seed, index);
	return b->family[i] == 4 ? policer_source(seed, burst_l3(b, i) + 16, 4)
				 : policer_source(seed, burst_l3(b, i) + 24, 16);
}

bool
fwd_police(struct burst *b, unsigned int i, enum punt_class class)
{
	struct class_counters *count = &b->fwd->count->class[class];
	uint32_t key = policer_source_of(b, i, punt_class_info[class].key);

	/* A sender or a target may use only a share of the room for waiting packets. */
	if (class == CLASS_glean &&
	    !policer_share_take(class, policer_neighbor_of(b, i), burst_now(b))) {
		counter_add(&count->over_share, 1);
		return false;
	}
	switch (policer_take(class, key, burst_now(b))) {
	case POLICER_PASS:
		return true;
	case POLICER_SOURCE:
		counter_add(&count->over_share, 1);
		return false;
	default:
		counter_add(&count->policed, 1);
		return false;
	}
}
