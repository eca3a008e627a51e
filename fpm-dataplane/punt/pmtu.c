/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmtu: read ICMP errors about outer packets that forwarders wrote. Learn the path MTU from
 * "fragmentation needed" (RFC 1191) and "packet too big" (RFC 8201). After other errors,
 * let the kernel tell the senders of the next packets (RFC 2003, 5). The kernel gets all
 * these errors, too.
 *
 * An error counts only if it quotes a packet that one of our tunnels, VXLANs or headends
 * may have sent, and goes to the source of that packet. "Fragmentation needed" counts only
 * if the quoted packet has DF. As in Linux, a forged error cannot lower the MTU below the
 * least value, and its effect ends after PMTU_S.
 *
 * Forged errors cannot fill the table with made-up destinations, because a destination must
 * be the far end of a tunnel, or the VTEP of a neighbor (vteps.c). Only destinations of
 * headends are not checked. They have at most half of the table, and do not replace the
 * others. [punt]
 */
#include "punt/pmtu.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "fib/headend.h"
#include "fib/path_mtu.h"
#include "fib/tunnel.h"
#include "fib/vxlan.h"
#include "punt/internal.h"

#define PMTU_S        600u /* net.ipv4.route.mtu_expires, net.ipv6.route.mtu_expires */
#define ICMP_BYTES    8u   /* in front of the quoted packet */
#define PROTO_ROUTING 43u

/* A received ICMP error about a packet of this host. */
struct told {
	const uint8_t *quoted; /* IP header of the quoted packet */
	unsigned int room;     /* octets from `quoted` on */
	uint32_t mtu;
	uint16_t vrf;
	uint8_t family;
	bool too_big; /* true: the packet was too big; false: it did not arrive */
};

/* Return true if the checksum of an ICMP message of `n` octets is right. */
static bool
icmp_is_whole(const uint8_t *ip, uint8_t family, const uint8_t *icmp, unsigned int n)
{
	uint32_t sum = family == 4 ? 0 : inet_sum(ip + 8, 32, n + 58);

	return inet_fold(inet_sum(icmp, n, sum)) == 0xffff;
}

/*
 * Read the type of an ICMP error. Returns true for the types that Linux obeys for GRE:
 * packet too big, unreachable (except port unreachable and source route failed), and time
 * exceeded in transit.
 */
static bool
type_read(const uint8_t *icmp, struct told *t)
{
	uint8_t type = icmp[0], code = icmp[1];

	if (t->family == 4) {
		t->too_big = type == 3 && code == 4;
		return (type == 3 && code != 3 && code != 5) || (type == 11 && code == 0);
	}
	t->too_big = type == 2;
	return type == 2 || (type == 1 && code != 4) || (type == 3 && code == 0);
}

/*
 * Read an ICMP error. Returns false if the packet is not a valid error of a type that
 * type_read() accepts.
 */
static bool
told_read(const uint8_t *ip, unsigned int room, struct told *t)
{
	unsigned int head = t->family == 4 ? (ip[0] & 15u) * 4 : 40, len;
	const uint8_t *icmp = ip + head;

	if (room < head + ICMP_BYTES ||
	    ip[t->family == 4 ? 9 : 6] != (t->family == 4 ? 1 : 58))
		return false;
	len = t->family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	if (len > room || len < head + ICMP_BYTES ||
	    (t->family == 4 && (get_be16(ip + 6) & 0x3fff) != 0))
		return false;
	if (!type_read(icmp, t))
		return false;
	t->mtu = t->family == 4 ? get_be16(icmp + 6) : get_be32(icmp + 4);
	t->quoted = icmp + ICMP_BYTES;
	t->room = len - head - ICMP_BYTES;
	if (t->room < (t->family == 4 ? 20u : 40u) || t->quoted[0] >> 4 != t->family ||
	    (t->family == 4 && t->too_big && (t->quoted[6] & 0x40) == 0))
		return false;
	/* The error must go to the source of the quoted packet. */
	return (t->family == 4 ? memcmp(ip + 16, t->quoted + 12, 4) == 0
			       : memcmp(ip + 24, t->quoted + 8, 16) == 0) &&
	       icmp_is_whole(ip, t->family, icmp, len - head);
}

/* The outer header of the quoted packet. */
struct outer {
	struct ipaddr src, dst;
	/* the header behind the IP header; `room` octets can be read */
	const uint8_t *upper;
	unsigned int room;
	uint8_t proto; /* of `upper` */
};

static void
outer_read(const struct told *t, struct outer *o)
{
	unsigned int octets = family_octets(t->family);
	unsigned int head = t->family == 4 ? (t->quoted[0] & 15u) * 4 : 40;

	*o = (struct outer){.proto = t->quoted[t->family == 4 ? 9 : 6]};
	/* An encapsulation limit (RFC 2473, 4.1.1) is in a destination options header. */
	if (t->family == 6 && o->proto == PROTO_IP6_OPTS && t->room >= 48) {
		o->proto = t->quoted[40];
		head = 48;
	}
	memcpy(o->src.octet, t->quoted + (t->family == 4 ? 12 : 8), octets);
	memcpy(o->dst.octet, t->quoted + (t->family == 4 ? 16 : 24), octets);
	o->upper = t->quoted + head;
	o->room = t->room < head ? 0 : t->room - head;
}

/* Return true if a VXLAN that may set DF can have sent the quoted packet. */
static bool
vxlan_sent(const struct fib_vxlan *v, const struct told *t, const struct outer *o)
{
	if (v->family != t->family || v->vrf != t->vrf || o->proto != PROTO_UDP ||
	    o->room < 8 || get_be16(o->upper + 2) != v->port ||
	    !ipaddr_equal(&v->local, &o->src) || (t->family == 4 && !v->df && v->ignore_df))
		return false;
	/* A router may quote only 8 octets of UDP (RFC 792). Then the VNI is unknown. */
	return o->room < 16 || get_be32(o->upper + 12) >> 8 == v->vni;
}

/* Return the entry of a destination; NULL: there is none. */
static struct fib_pmtu *
entry_find(struct fib_pmtus *table, const struct told *t, const struct ipaddr *dst)
{
	for (uint32_t i = 0; table != NULL && i < table->n; i++) {
		struct fib_pmtu *e = &table->entry[i];

		if (e->vrf == t->vrf && e->family == t->family &&
		    ipaddr_equal(&e->dst, dst))
			return e;
	}
	return NULL;
}

static struct fib_pmtus *
table_now(const struct punt *p)
{
	return atomic_load_explicit(&p->fib->pmtus, memory_order_relaxed);
}

/* Return true if a neighbor behind VXLAN has this VTEP. */
static bool
vtep_is_known(struct punt *p, const struct told *t, const struct ipaddr *dst)
{
	struct punt_vtep vtep = {*dst, t->vrf, t->family};

	return punt_vtep_is_known(&p->vteps, p->fib, &vtep);
}

/* Return true if a tunnel of the FIB may have sent the quoted packet. */
static bool
tunnel_sent(const struct fib_tunnel *tunnel, const struct told *t, const struct outer *o)
{
	return tunnel->family == t->family && tunnel->vrf == t->vrf &&
	       tunnel_proto(o->proto) && ipaddr_equal(&tunnel->local, &o->src) &&
	       ipaddr_equal(&tunnel->remote, &o->dst);
}

/*
 * Find the tunnels that may have sent the quoted packet. Let the kernel send errors to the
 * senders of the next packets that enter them. An attacker may forge errors, so each tunnel
 * has a limit of a few errors per second.
 */
static void
tunnels_tell(struct punt *p, const struct told *t, const struct outer *o)
{
	for (uint16_t i = PORT_MAX; tunnel_proto(o->proto) && i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(p->fib, i);

		if (iface == NULL || !tunnel_sent(&iface->tunnel, t, o) ||
		    p->n_told[i] == FIB_TUNNEL_TOLD_MAX)
			continue;
		p->n_told[i]++;
		p->any_told = true;
		fib_tunnel_tell(p->fib, i);
	}
}

/* The part of the router that may have sent the quoted packet. */
enum sender { SENDER_NONE, SENDER_HEADEND, SENDER_TUNNEL };

static enum sender
sender_of(struct punt *p, const struct told *t, const struct outer *o)
{
	const struct fib *fib = p->fib;

	if (!tunnel_proto(o->proto) && o->proto != PROTO_UDP && o->proto != PROTO_ROUTING)
		return SENDER_NONE;
	for (uint16_t i = PORT_MAX; o->proto != PROTO_ROUTING && i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(fib, i);

		if (iface == NULL)
			continue;
		if (tunnel_sent(&iface->tunnel, t, o))
			return SENDER_TUNNEL;
		if (vxlan_sent(&iface->vxlan, t, o))
			return vtep_is_known(p, t, &o->dst) ? SENDER_TUNNEL : SENDER_NONE;
	}
	/* A headend of SRv6: its source may be any address of this host. */
	if (t->family == 6 && t->vrf == 0 && o->proto != PROTO_UDP &&
	    atomic_load_explicit(&fib->seg6, memory_order_consume) != NULL &&
	    path_kind(fib_resolve(fib, 0, 6, &o->src, 0)) == PATH_LOCAL)
		return SENDER_HEADEND;
	return SENDER_NONE;
}

static void
table_free(void *owner, void *memory)
{
	free(memory);
}

/* Publish a table; NULL: none. The old table is freed after a grace period. */
static void
table_publish(struct punt *p, struct fib_pmtus *table)
{
	struct fib_pmtus *old = atomic_load_explicit(&p->fib->pmtus, memory_order_relaxed);

	/*
	 * Release: a reader that gets the table by consume (path_mtu.h) sees its entries.
	 */
	atomic_store_explicit(&p->fib->pmtus, table, memory_order_release);
	if (old != NULL)
		worker_defer(p->worker, table_free, old);
}

static struct fib_pmtus *
table_copy(const struct punt *p)
{
	const struct fib_pmtus *old = table_now(p);
	struct fib_pmtus *new = calloc(1, sizeof(*new));

	if (new != NULL && old != NULL)
		*new = *old;
	return new;
}

/* Return the entry that expires first. Either may be NULL. */
static struct fib_pmtu *
entry_older(struct fib_pmtu *a, struct fib_pmtu *b)
{
	return a == NULL || (b != NULL && b->until_s < a->until_s) ? b : a;
}

/*
 * Return a place for a new destination; NULL: there is none. `sure`: the destination was
 * checked, because it is the far end of a tunnel or a VTEP. A sure destination gets a free
 * place, else the place of the unsure entry that expires first, else that of the sure entry
 * that expires first. An unsure destination gets a free place while less than half of the
 * table is unsure, else the place of the unsure entry that expires first.
 */
static struct fib_pmtu *
place_for(struct fib_pmtus *table, bool sure)
{
	struct fib_pmtu *first[2] = {NULL, NULL};
	uint32_t n[2] = {0, 0};

	for (uint32_t i = 0; i < table->n; i++) {
		struct fib_pmtu *e = &table->entry[i];

		n[e->sure]++;
		first[e->sure] = entry_older(first[e->sure], e);
	}
	if (table->n < FIB_PMTUS_MAX && (sure || n[false] < FIB_PMTUS_HALF))
		return &table->entry[table->n++];
	return first[false] != NULL || !sure ? first[false] : first[true];
}

/*
 * Return true if half of the time of an entry is over, or if there is no entry. As in
 * Linux, an equal MTU renews such an entry.
 */
static bool
entry_is_old(const struct fib_pmtu *e)
{
	return e == NULL || e->until_s < (uint32_t)monotonic_s() + PMTU_S / 2;
}

static void
pmtu_learn(struct punt *p, const struct told *t, const struct ipaddr *dst, bool sure)
{
	uint32_t least = t->family == 4 ? FIB_PMTU_LEAST : 1280;
	uint32_t mtu = t->mtu < least ? least : t->mtu;
	unsigned int known = fib_pmtu(p->fib, t->vrf, t->family, dst), missed;
	static struct log_limit limit;
	struct fib_pmtus *table;
	struct fib_pmtu *e;
	char text[PREFIX_STRLEN];
	bool was_sure;

	/*
	 * An error with a larger MTU may be late. As in Linux, the smaller MTU stays until
	 * it expires.
	 */
	if (mtu >= FIB_PMTU_NONE || mtu > known ||
	    (mtu == known && !entry_is_old(entry_find(table_now(p), t, dst))))
		return;
	table = table_copy(p);
	if (table == NULL)
		return;
	e = entry_find(table, t, dst);
	/*
	 * An error about a packet of a headend is not sure. It may lower the MTU of a sure
	 * entry, but does not clear e->sure.
	 */
	was_sure = e != NULL && e->sure;
	if (e == NULL)
		e = place_for(table, sure);
	if (e == NULL) {
		free(table);
		return;
	}
	*e = (struct fib_pmtu){.dst = *dst,
			       .vrf = t->vrf,
			       .mtu_bytes = (uint16_t)mtu,
			       .family = t->family,
			       .sure = sure || was_sure,
			       .until_s = (uint32_t)monotonic_s() + PMTU_S};
	table_publish(p, table);
	if (mtu < known && log_allowed(&limit, &missed))
		log_info("punt: path mtu learned dst=%s mtu=%u missed=%u",
			 ipaddr_str(dst, t->family, text), mtu, missed);
}

void
punt_pmtu_look(struct punt *p, struct rte_mbuf *m)
{
	const struct packet_meta *meta = packet_meta(m);
	struct told t = {.vrf = meta->vrf, .family = meta->family};
	/* An inner packet of a tunnel is behind the outer headers. */
	unsigned int at = meta->inner_at + L2_LEN;
	enum sender sender;
	struct outer o;

	if (meta->family == 0 || meta->has_labels ||
	    rte_pktmbuf_data_len(m) < at + (meta->family == 4 ? 20 : 40) ||
	    !told_read(rte_pktmbuf_mtod_offset(m, const uint8_t *, at),
		       rte_pktmbuf_data_len(m) - at, &t))
		return;
	outer_read(&t, &o);
	if (!t.too_big) {
		tunnels_tell(p, &t, &o);
		return;
	}
	sender = sender_of(p, &t, &o);
	if (sender != SENDER_NONE)
		pmtu_learn(p, &t, &o.dst, sender == SENDER_TUNNEL);
}

void
punt_pmtu_expire(struct punt *p)
{
	const struct fib_pmtus *old = table_now(p);
	uint32_t now = (uint32_t)monotonic_s(), n = 0;
	struct fib_pmtus *table;

	punt_vteps_age(&p->vteps);
	if (p->any_told)
		memset(p->n_told, 0, sizeof(p->n_told));
	p->any_told = false;
	for (uint32_t i = 0; old != NULL && i < old->n; i++)
		n += old->entry[i].until_s > now;
	if (old == NULL || n == old->n)
		return;
	if (n == 0) {
		table_publish(p, NULL);
		return;
	}
	table = table_copy(p);
	if (table == NULL)
		return;
	table->n = 0;
	for (uint32_t i = 0; i < old->n; i++)
		if (old->entry[i].until_s > now)
			table->entry[table->n++] = old->entry[i];
	table_publish(p, table);
}
