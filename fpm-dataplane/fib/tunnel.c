/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the tunnel of a packet, and the path of packets into tunnels. Any reader; no state.
 */
#include "fib/tunnel.h"

#include "base/mpls_entry.h"
#include "fib/path_mtu.h"
#include "fib/rules.h"

#define GRE_KEY      0x2000u
#define GRE_CHECKSUM 0x8000u

#define LIMIT_OPTION 4u /* RFC 2473, 4.1.1: tunnel encapsulation limit */
#define PADN_OPTION  1u

/*
 * One good mixing is enough, because the operator has chosen the addresses in the table.
 * Each word has an odd factor of its own.
 */
uint32_t
fib_tunnel_hash(const struct fib *fib, const struct fib_tunnel_key *key)
{
	uint64_t local[2], remote[2];
	uint64_t h = (uint64_t)key->key << 32 | (uint32_t)key->vrf << 16 |
		     (uint32_t)key->proto << 8 | key->has_key;

	memcpy(local, key->local.octet, sizeof(local));
	memcpy(remote, key->remote.octet, sizeof(remote));
	h = mix64(fib->seed ^ h ^ local[0] * 0x9e3779b97f4a7c15u ^
		  local[1] * 0xc2b2ae3d27d4eb4fu ^ remote[0] * 0x165667b19e3779f9u ^
		  remote[1] * 0xd6e8feb86659fd93u);
	return (uint32_t)(h >> 32);
}

bool
fib_tunnel_is(const struct fib_tunnel *t, const struct fib_tunnel_key *key)
{
	bool takes = key->proto == PROTO_GRE
			     ? t->gre && t->has_key == key->has_key && t->key == key->key
			     : !t->gre && (key->proto == PROTO_IP4 ? t->inner4 : t->inner6);

	return takes && t->family == key->family && t->vrf == key->vrf &&
	       ipaddr_equal(&t->local, &key->local) &&
	       ipaddr_equal(&t->remote, &key->remote);
}

/*
 * Return the tunnel of an outer packet, or 0. A tunnel that is down receives none, as in
 * Linux.
 */
static uint16_t
tunnel_of(const struct fib *fib, const struct fib_tunnels *tunnels,
	  const struct fib_tunnel_key *key)
{
	for (uint32_t i = fib_tunnel_hash(fib, key);; i++) {
		/* Consume: the interface of the entry was published before the entry. */
		uint16_t entry = atomic_load_explicit(&tunnels->entry[i & tunnels->mask],
						      memory_order_consume);
		uint16_t ifidx = entry & (uint16_t)~FIB_TUNNEL_SHARED;
		const struct fib_iface *iface = fib_iface(fib, ifidx);

		if (ifidx == 0)
			return 0;
		if (iface != NULL && iface->ifindex != 0 && iface->up &&
		    fib_tunnel_is(&iface->tunnel, key))
			return (entry & FIB_TUNNEL_SHARED) != 0 ? 0 : ifidx;
	}
}

/*
 * Set the family of the packet behind a GRE header, 0 for MPLS labels. Return false if only
 * the kernel can handle a packet of this type.
 */
static bool
gre_family(const struct fib *fib, uint16_t type, uint8_t *family)
{
	*family = type == 0x0800 ? 4 : type == 0x86dd ? 6 : 0;
	return *family != 0 ||
	       (type == MPLS_TYPE &&
		atomic_load_explicit(&fib->mpls_known, memory_order_relaxed));
}

/*
 * Read the GRE header at ip + *at, and set the key, if any, and the family of the packet
 * behind it. Return false if there is no header that forwarders handle.
 */
static bool
gre_read(const struct fib *fib, const uint8_t *ip, unsigned int room, unsigned int *at,
	 bool *has_key, uint32_t *key, uint8_t *family)
{
	uint16_t flags;

	if (room < *at + 4)
		return false;
	flags = get_be16(ip + *at);
	/*
	 * Forwarders handle only version 0 and no flag except the flag of a key: RFC 2784,
	 * 2.3.
	 */
	if ((flags & ~GRE_KEY) != 0 || !gre_family(fib, get_be16(ip + *at + 2), family))
		return false;
	*at += 4;
	*has_key = flags != 0;
	if (!*has_key)
		return true;
	if (room < *at + 4)
		return false;
	*key = get_be32(ip + *at);
	*at += 4;
	return true;
}

/*
 * Return the length of the packet at `ip`, whose version is `family`; 0: there is none.
 * Labels (family 0) have no length field, so return `room` for them.
 */
static unsigned int
inner_bytes(const uint8_t *ip, unsigned int room, uint8_t family)
{
	if (family == 0)
		return room;
	if (room < (family == 4 ? 20u : 40u) || ip[0] >> 4 != family)
		return 0;
	return family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
}

/* Skip a header of IPv6 options that has an encapsulation limit only. */
static void
limit_skip(const uint8_t *ip, unsigned int room, unsigned int *at, uint8_t *proto)
{
	const uint8_t *opt = ip + *at;

	if (*proto != PROTO_IP6_OPTS || room < *at + 8 || opt[1] != 0 ||
	    opt[2] != LIMIT_OPTION || opt[3] != 1 || opt[5] != PADN_OPTION || opt[6] != 1)
		return;
	*proto = opt[0];
	*at += 8;
}

/* Read the address at `at` of an IP header as two words. */
static inline uint64_t
addr_low(const uint8_t *at, uint8_t family)
{
	uint64_t word = 0;

	if (family == 4)
		memcpy(&word, at, 4);
	else
		memcpy(&word, at, 8);
	return word;
}

static inline uint64_t
addr_high(const uint8_t *at, uint8_t family)
{
	uint64_t word = 0;

	if (family == 6)
		memcpy(&word, at + 8, 8);
	return word;
}

/* Find the tunnel of a packet that differs from the last one, and store it in `last`. */
static __attribute__((noinline)) void
last_set(const struct fib *fib, const struct fib_tunnels *tunnels,
	 struct fib_tunnel_last *last, struct fib_tunnel_key *key,
	 struct fib_tunnel_words words)
{
	const struct fib_iface *tunnel;

	memcpy(key->remote.octet, words.remote, 16);
	memcpy(key->local.octet, words.local, 16);
	last->words = words;
	last->ifidx = tunnel_of(fib, tunnels, key);
	tunnel = last->ifidx != 0 ? fib_iface(fib, last->ifidx) : NULL;
	last->link = tunnel != NULL && tunnel->tunnel.only_link ? tunnel->tunnel.link : 0;
}

/*
 * The key of a packet is compared in words. The octets are not put together in memory,
 * because the loads would wait for the stores.
 */
bool
fib_tunnel_find(const struct fib *fib, uint16_t vrf, uint32_t ifindex, uint8_t family,
		const uint8_t *ip, unsigned int room, struct fib_tunnel_last *last,
		struct fib_tunnel_found *found)
{
	const struct fib_tunnels *tunnels =
		atomic_load_explicit(&fib->tunnels, memory_order_consume);
	unsigned int at = family == 4 ? (ip[0] & 15u) * 4 : 40;
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4), inner;
	uint8_t proto = family == 4 ? ip[9] : ip[6], inside;
	const struct fib_tunnel_words *w = &last->words;
	uint64_t r0, r1, l0, l1, rest;
	const uint8_t *from, *to;
	uint32_t gre_key = 0;
	bool has_key = false;

	if (tunnels == NULL || !fib_tunnels_allowed(fib) || room < at ||
	    (family == 4 && (get_be16(ip + 6) & 0x3fff) != 0))
		return false;
	if (family == 6)
		limit_skip(ip, room, &at, &proto);
	if (proto == PROTO_GRE) {
		if (!gre_read(fib, ip, room, &at, &has_key, &gre_key, &inside))
			return false;
	} else if (proto == PROTO_IP4 || proto == PROTO_IP6) {
		inside = proto == PROTO_IP4 ? 4 : 6;
	} else {
		return false;
	}
	inner = room < at ? 0 : inner_bytes(ip + at, room - at, inside);
	if (inner == 0 || inner > len - at)
		return false;
	from = ip + (family == 4 ? 12 : 8);
	to = ip + (family == 4 ? 16 : 24);
	r0 = addr_low(from, family);
	r1 = addr_high(from, family);
	l0 = addr_low(to, family);
	l1 = addr_high(to, family);
	rest = (uint64_t)gre_key << 32 | (uint32_t)vrf << 16 | (uint32_t)proto << 8 |
	       (uint32_t)family << 1 | has_key;
	if (last->ifidx == 0 || w->remote[0] != r0 || w->remote[1] != r1 ||
	    w->local[0] != l0 || w->local[1] != l1 || w->rest != rest)
		last_set(fib, tunnels, last,
			 &(struct fib_tunnel_key){.key = gre_key,
						  .vrf = vrf,
						  .family = family,
						  .proto = proto,
						  .has_key = has_key},
			 (struct fib_tunnel_words){{r0, r1}, {l0, l1}, rest});
	found->ifidx = last->ifidx;
	found->at = (uint16_t)at;
	found->family = inside;
	found->ecn = ip_dsfield(ip, family) & ECN_MASK;
	return found->ifidx != 0 && (last->link == 0 || last->link == ifindex);
}

bool
fib_tunnel_ecn(uint8_t *ip, uint8_t family, uint8_t outer)
{
	uint8_t inner = ip_dsfield(ip, family) & ECN_MASK, now = inner;
	uint32_t sum;

	if (inner == 0)
		return outer != ECN_CE;
	if (outer == ECN_CE || (outer == ECN_ECT1 && inner != ECN_CE))
		now = outer;
	if (now == inner)
		return true;
	if (family == 6) {
		ip[1] = (uint8_t)((ip[1] & ~(ECN_MASK << 4)) | now << 4);
		return true;
	}
	sum = (uint16_t)~get_be16(ip + 10); /* RFC 1624, eqn. 3 */
	sum += (uint16_t)~get_be16(ip);
	ip[1] = (uint8_t)((ip[1] & ~ECN_MASK) | now);
	sum += get_be16(ip);
	put_be16(ip + 10, (uint16_t)~inet_fold(sum));
	return true;
}

/* Return true if the path has the tunnel already. */
static bool
outer_has(const struct fib_tunnel_outer *outer, uint16_t ifidx)
{
	for (unsigned int i = 0; i < outer->n; i++)
		if (outer->tunnel[i]->ifidx == ifidx)
			return true;
	return false;
}

/*
 * Return false if only the kernel can send outer packets of `t` into the tunnel `next`. The
 * reasons are: `next` is not the link that they must take; `next` does not accept their
 * family; or an encapsulation limit has to be decremented.
 */
static bool
tunnel_enters(const struct fib_tunnel *t, const struct fib_iface *next)
{
	const struct fib_tunnel *n = &next->tunnel;

	return (t->link == 0 || t->link == next->ifindex) &&
	       (t->family == 4 ? n->inner4 : n->inner6) &&
	       !(t->has_limit && n->family == 6);
}

fib_path
outer_look_up(const struct fib *fib, const struct fib_tunnel *t, const uint8_t *head,
	      uint8_t ds)
{
	uint8_t copy[FIB_TUNNEL_HEAD_MAX];

	memcpy(copy, head, sizeof(copy));
	ds &= (uint8_t)~ECN_MASK;
	if (t->family == 4)
		copy[1] = ds;
	else
		put_be32(copy, get_be32(copy) | (uint32_t)ds << 20);
	return fib_resolve_packet(fib, NULL, t->vrf, t->family, copy, t->bytes);
}

/*
 * Return the DS field by which an outer packet is looked up. Linux looks up an outer IPv6
 * packet with the class of the device's settings; a class that is inherited does not count.
 */
static uint8_t
lookup_ds(const struct fib *fib, const struct fib_tunnel *t, uint8_t ds,
	  struct fib_tunnel_outer *outer)
{
	if (!t->tos_inherit)
		return t->tos;
	if (t->family == 6)
		return 0;
	outer->by_ds |= fib_rules(fib, 4) != NULL;
	return ds;
}

void
fib_tunnel_resolve(const struct fib *fib, uint16_t ifidx, uint8_t ds,
		   struct fib_tunnel_outer *outer)
{
	outer->n = outer->bytes = 0;
	outer->any6 = outer->by_ds = false;
	outer->labels = NULL;
	outer->reason = fib_tunnels_allowed(fib) ? N_REASON : PUNT_kernel_route;
	while (outer->reason == N_REASON) {
		const struct fib_iface *iface = fib_iface(fib, ifidx), *next;
		const struct fib_tunnel *t = &iface->tunnel;

		if (outer->n == FIB_TUNNELS_DEEP || outer_has(outer, ifidx)) {
			outer->reason = DROP_encap_loop;
			return;
		}
		outer->tunnel[outer->n++] = iface;
		outer->bytes += t->bytes;
		outer->family = t->family;
		outer->any6 |= t->family == 6;
		outer->dst = t->remote;
		if (iface->ifindex == 0 || !iface->up ||
		    path_kind(fib_resolve(fib, t->vrf, t->family, &t->local, 0)) !=
			    PATH_LOCAL) {
			outer->reason = DROP_egress_down;
			return;
		}
		outer->path = outer_below(
			fib, outer_look_up(fib, t, t->head, lookup_ds(fib, t, ds, outer)),
			&outer->labels);
		ds = t->tos_inherit ? ds : t->tos;
		next = path_tunnel(fib, outer->path);
		if (next == NULL) {
			outer->reason = outer_refusal(outer->path,
						      path_out(fib, outer->path), t->link);
			return;
		}
		if (!outer_has(outer, next->ifidx) && !tunnel_enters(t, next))
			outer->reason = PUNT_kernel_route;
		ifidx = next->ifidx;
	}
}

void
fib_tunnel_tell(const struct fib *fib, uint16_t ifidx)
{
	_Atomic uint8_t *told = &fib->tunnel_told[ifidx];

	/* Only forwarders decrement it meanwhile. */
	if (atomic_load_explicit(told, memory_order_relaxed) < FIB_TUNNEL_TOLD_MAX)
		atomic_fetch_add_explicit(told, 1, memory_order_relaxed);
}

/* Decrement the count of a tunnel, unless it is 0. */
static bool
told_take(_Atomic uint8_t *told)
{
	uint8_t n = atomic_load_explicit(told, memory_order_relaxed);

	while (n != 0)
		if (atomic_compare_exchange_weak_explicit(
			    told, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

bool
fib_tunnel_is_told(const struct fib *fib, const struct fib_tunnel_outer *outer)
{
	for (unsigned int i = 0; i < outer->n; i++)
		if (atomic_load_explicit(&fib->tunnel_told[outer->tunnel[i]->ifidx],
					 memory_order_relaxed) != 0)
			return true;
	return false;
}

bool
fib_tunnel_take_told(const struct fib *fib, const struct fib_tunnel_outer *outer)
{
	for (unsigned int i = 0; i < outer->n; i++)
		if (told_take(&fib->tunnel_told[outer->tunnel[i]->ifidx]))
			return true;
	return false;
}

unsigned int
fib_tunnel_mtu(const struct fib *fib, const struct fib_tunnel_outer *outer,
	       const struct fib_iface *out)
{
	unsigned int mtu = outer_mtu(fib, outer->path, outer->labels, out, outer->family);

	for (unsigned int i = outer->n; i > 0; i--) {
		const struct fib_iface *tunnel = outer->tunnel[i - 1];
		const struct fib_tunnel *t = &tunnel->tunnel;
		unsigned int path = fib_pmtu(fib, t->vrf, t->family, &t->remote);

		if (path < mtu)
			mtu = path;
		if (mtu <= tunnel->tunnel.bytes)
			return 0;
		mtu -= tunnel->tunnel.bytes;
		/* The MTU of this tunnel limits the outer packets that enter it. */
		if (i > 1 && tunnel->mtu_bytes < mtu)
			mtu = tunnel->mtu_bytes;
	}
	return mtu;
}
