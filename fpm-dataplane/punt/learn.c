/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * learn: learn the peers of the kernel from the frames that it sends: TCP connections, BFD
 * and other unicast control protocols, and the neighbors that it asks for. Replies that an
 * unknown host can provoke (RST, SYN-ACK, echo and ARP replies) are no proof. Packets that
 * the kernel forwards are not learned: their source is not an address of this host, or, in
 * solicitations, their hop limit is not 255. [punt]
 */
#include "base/inet.h"
#include "base/peers.h"
#include "port/vlan_tags.h"
#include "punt/internal.h"

struct frame {
	const struct punt *p;
	const uint8_t *l2, *l3, *l4, *own, *remote;
	unsigned int room; /* bytes from l4 on, without padding */
	uint64_t seed;     /* hash seed of the VRF of its egress interface */
	uint16_t ifidx;
	uint8_t family, proto;
	uint32_t now_s;
};

/* Learn the MAC address of the peer, or of its gateway. */
static void
learn_link(const struct frame *f, bool proof)
{
	if ((f->l2[0] & 1) == 0)
		peers_learn(PEER_LINK, peer_mac_key(f->l2, f->ifidx, f->p->fib->seed),
			    proof, f->now_s);
}

static void
learn_addr(const struct frame *f, enum peer_kind kind, uint32_t what)
{
	peers_learn(kind, peer_addr_key(f->remote, f->family, what, f->seed), true,
		    f->now_s);
	learn_link(f, true);
}

/*
 * Learn a neighbor that the kernel asks for. A scan of a subnet by some host makes our
 * kernel ask for many addresses by broadcast. The kernel sends a unicast request only to a
 * neighbor that it has found before, so only a unicast request is proof.
 */
static void
learn_asked(const struct frame *f, const uint8_t *target, bool direct)
{
	uint64_t key = peer_addr_key(target, f->family, f->ifidx, f->p->fib->seed);

	peers_learn(PEER_ASKED, key, direct, f->now_s);
}

static void
learn_tcp(const struct frame *f)
{
	uint16_t own, remote;
	enum peer_kind kind;
	uint64_t key;
	uint8_t flags;
	bool proof;

	if (f->room < 20)
		return;
	own = get_be16(f->l4);
	remote = get_be16(f->l4 + 2);
	kind = own == 179 || remote == 179 ? PEER_BGP : PEER_TCP;
	key = peer_tcp_key(f->remote, f->own, f->family, remote, own, f->seed);
	flags = f->l4[13];
	if ((flags & 0x05) != 0) { /* FIN, RST */
		peers_forget(kind, key);
		return;
	}
	/*
	 * A SYN without ACK shows that this host opens a connection. Data shows that an
	 * application sends. Both are proof. TCP itself sends the other segments.
	 */
	proof = (flags & 0x12) == 0x02 || f->room > (f->l4[12] >> 4) * 4u;
	if ((flags & 0x12) == 0x12)
		return;
	peers_learn(kind, key, proof, f->now_s);
	if (kind == PEER_BGP || own == 646 || remote == 646)
		learn_link(f, proof);
}

static void
learn_udp(const struct frame *f)
{
	uint16_t to;

	if (f->room < 8)
		return;
	to = get_be16(f->l4 + 2);
	if (to == 3784 || to == 3785 || to == 4784 || to == 7784)
		learn_addr(f, PEER_BFD, 0);
	else if (to == 646 || to == 520 || to == 521 || to == 6696)
		learn_addr(f, PEER_CONTROL, (uint32_t)to << 8);
}

/* Return true if the kernel made the packet and does not forward it. */
static bool
source_is_own(const struct frame *f)
{
	struct ipaddr own = {0};

	memcpy(own.octet, f->own, family_octets(f->family));
	if (f->family == 6 && ipaddr_is_linklocal6(&own))
		return true; /* never forwarded: RFC 4291, 2.5.6 */
	return path_kind(fib_resolve(f->p->fib, fib_vrf_of(f->p->fib, f->ifidx), f->family,
				     &own, 0)) == PATH_LOCAL;
}

static void
learn_ip(const struct frame *f)
{
	/*
	 * The kernel asks for the target, whatever the destination address is (RFC 4861,
	 * 4.3). A hop limit of 255 proves that this host made the solicitation.
	 */
	if (f->family == 6 && f->proto == 58) {
		if (f->room >= 24 && f->l4[0] == 135 && f->l3[7] == 255)
			learn_asked(f, f->l4 + 8, f->remote[0] != 0xff);
		return;
	}
	if (f->family == 4 ? f->remote[0] >= 224 : f->remote[0] == 0xff)
		return; /* a multicast group is no peer */
	if (!source_is_own(f))
		return;
	switch (f->proto) {
	case 6:
		learn_tcp(f);
		break;
	case 17:
		learn_udp(f);
		break;
	case 46:
	case 88:
	case 89:
	case 103:
	case 112:
		learn_addr(f, PEER_CONTROL, f->proto);
		break;
	}
}

/* Learn from a frame of interface `ifidx`. Its EtherType is at offset `at`. */
static void
learn_frame(struct punt *p, const uint8_t *frame, uint32_t len, uint16_t ifidx,
	    unsigned int at)
{
	struct frame f = {.p = p, .l2 = frame, .l3 = frame + at + 2, .ifidx = ifidx};
	uint16_t type;
	unsigned int head, total;

	len -= at + 2;
	type = get_be16(frame + at);
	f.now_s = policer_seconds(policer_ticks());
	f.seed = seed_of(p->fib->seed, fib_vrf_of(p->fib, ifidx));
	if (type == 0x0806) {
		/* A request names the address that it asks for (RFC 826). */
		f.family = 4;
		if (get_be16(f.l3 + 6) == 1)
			learn_asked(&f, f.l3 + 24, (frame[0] & 1) == 0);
		return;
	}
	if (type == 0x0800) {
		f.family = 4;
		head = (f.l3[0] & 15u) * 4;
		total = get_be16(f.l3 + 2);
		f.proto = f.l3[9];
		f.own = f.l3 + 12;
		f.remote = f.l3 + 16;
		if ((get_be16(f.l3 + 6) & 0x1fff) != 0)
			return; /* a later fragment has no ports */
	} else if (type == 0x86dd && len >= 40) {
		f.family = 6;
		head = 40;
		total = 40u + get_be16(f.l3 + 4);
		f.proto = f.l3[6];
		f.own = f.l3 + 8;
		f.remote = f.l3 + 24;
	} else {
		return;
	}
	if (total > len)
		total = len;
	if (head < 20 || head > total)
		return;
	f.l4 = f.l3 + head;
	f.room = total - head;
	learn_ip(&f);
}

uint16_t
learn_peer(struct punt *p, const uint8_t *frame, uint32_t len, uint16_t ifidx)
{
	unsigned int at;

	ifidx = vlan_find(p->fib, ifidx, frame, len, &at);
	if (len >= at) /* a frame of a macvlan has its MAC as source */
		ifidx = fib_macvlan(p->fib, ifidx, frame + 6);
	if (len >= at + 2 + 28)
		learn_frame(p, frame, len, ifidx, at);
	return ifidx;
}
