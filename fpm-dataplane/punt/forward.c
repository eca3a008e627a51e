/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward: forward one packet in the punt thread: a packet that waited for its neighbor, an
 * ICMP error of our own, a fragment. The rules are those of the forwarders, for one packet
 * at a time. [punt]
 *
 * A packet larger than the egress MTU: IPv4 without DF is fragmented (librte_ip_frag), any
 * other gets an ICMP error with the MTU.
 *
 * An ICMP error or a fragment that is made here is forwarded in the same way, so
 * punt_forward() calls itself. neigh_queue.c, icmp.c, tapio.c and out.c, which it calls,
 * never call it.
 */
#include <errno.h>
#include <string.h>

#include <rte_ip_frag.h>

#include "base/inet.h"
#include "fib/rules.h"
#include "port/vlan.h"
#include "punt/internal.h"

/* 1500 octets with a header of 60 at an MTU of 68 make 180 fragments. */
#define PIECES_MAX 256

/* Forward an ICMP error of our own; NULL: no error. */
static void
error_send(struct punt *p, struct rte_mbuf *e)
{
	if (e != NULL)
		punt_forward(p, e, packet_meta(e)->family, true, true);
}

/*
 * Drop a packet that cannot be forwarded. Send its sender an ICMP error unless we
 * originated it.
 */
static void
packet_give_up(struct punt *p, struct rte_mbuf *m, bool originated, enum reason reason)
{
	punt_lost(p, m, reason);
	if (!originated)
		error_send(p, icmp_make_for_drop(p, m, reason));
	rte_pktmbuf_free(m);
}

static void
packet_send_by(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	       fib_path path, uint64_t hop)
{
	const struct fib_iface *out = fib_iface(p->fib, hop & 0xffff);
	uint8_t *eth, *ip = l3_of(m);
	unsigned int len = family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	uint64_t mac = __builtin_bswap64(hop);
	uint8_t *ttl = family == 4 ? ip + 8 : ip + 7;

	if (!originated && *ttl <= 1) {
		packet_give_up(p, m, originated, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		packet_give_up(p, m, originated, DROP_egress_down);
		return;
	}
	if (len > fib_mtu(p->fib, path, out, family)) {
		punt_fragment(p, m, fib_mtu(p->fib, path, out, family));
		return;
	}
	if (!originated) {
		if (family == 4)
			ip4_ttl_dec(ip);
		else
			(*ttl)--;
		counter_add(&p->count->forwarded[family == 6], 1);
	}
	put_be16(ip - 2, family == 4 ? 0x0800 : 0x86dd);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	eth = vlan_push(m, out);
	memcpy(eth, &mac, 6);
	memcpy(eth + 6, out->mac, 6);
	punt_inject(p, m, out->ifidx);
}

void
punt_forward(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
	     bool may_wait)
{
	const uint8_t *ip = l3_of(m);
	struct packet_meta *meta = packet_meta(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	struct ipaddr dst = {0};
	uint64_t hop = 0;
	fib_path path;
	enum path_kind kind;
	struct neigh_key key;

	memcpy(dst.octet, family == 4 ? ip + 16 : ip + 24, family_octets(family));
	if (originated && family == 6 && ipaddr_is_linklocal6(&dst))
		path = fib_onlink(p->fib, meta->out_ifidx, 6, &dst);
	else
		path = fib_resolve_packet(
			p->fib, originated ? NULL : fib_iface(p->fib, meta->in_ifidx),
			meta->vrf, family, ip, room);
	kind = path_kind(path);
	if (kind == PATH_ADJ) {
		hop = atomic_load_explicit(&p->fib->adj[path_index(path)].hop,
					   memory_order_acquire);
		fib_adj_touch(p->fib->adj_used, path_index(path));
	}
	if (hop != 0) {
		packet_send_by(p, m, family, originated, path, hop);
		return;
	}
	if ((kind == PATH_LOCAL || kind == PATH_KERNEL) && !originated) {
		tap_deliver(p, m);
		return;
	}
	if (kind == PATH_KERNEL) {
		punt_originate(p, m, family, path);
		return;
	}
	if (kind != PATH_ADJ && kind != PATH_ONLINK) {
		packet_give_up(p, m, originated,
			       originated ? DROP_no_route : path_cause(kind));
		return;
	}
	if (fib_ipv6_is_off(p->fib, family,
			    kind == PATH_ADJ ? p->fib->adj[path_index(path)].ifidx
					     : path_index(path))) {
		packet_give_up(p, m, originated, DROP_ipv6_off);
		return;
	}
	if (!may_wait) {
		packet_give_up(p, m, originated, DROP_neigh_failed);
		return;
	}
	meta->family = family;
	if (originated)
		meta->in_ifidx = 0;
	key = neigh_key_of(p, path, family, ip);
	neigh_queue_add(p, m, &key);
}

void
punt_tell_sender(struct punt *p, struct rte_mbuf *m, enum reason cause)
{
	error_send(p, icmp_make_for_drop(p, m, cause));
	rte_pktmbuf_free(m);
}

/* --- packets larger than the MTU: RFC 791 2.3, RFC 1191, RFC 8200 5 ----------------------- */

void
punt_fragment(struct punt *p, struct rte_mbuf *m, uint16_t mtu)
{
	struct packet_meta meta = *packet_meta(m);
	struct rte_mbuf *piece[PIECES_MAX];
	uint8_t l2[L2_LEN], *ip = l3_of(m);
	unsigned int len;
	int n;

	if (meta.family == 6 || (get_be16(ip + 6) & 0x4000) != 0) {
		punt_lost(p, m, DROP_mtu);
		if (meta.family == 6)
			error_send(p, icmp_make(p, m, 2, 0, mtu));
		else
			error_send(p, icmp_make(p, m, 3, 4, mtu));
		rte_pktmbuf_free(m);
		return;
	}
	len = get_be16(ip + 2);
	if (rte_pktmbuf_pkt_len(m) > L2_LEN + len)
		packet_cut(m, L2_LEN + len);
	memcpy(l2, rte_pktmbuf_mtod(m, const uint8_t *), L2_LEN);
	rte_pktmbuf_adj(m, L2_LEN);
	n = rte_ipv4_fragment_copy_nonseg_packet(m, piece, PIECES_MAX, mtu, p->conf.pool);
	if (n < 0) {
		rte_pktmbuf_prepend(m, L2_LEN); /* whole, for captures */
		punt_drop(p, m, n == -ENOMEM ? DROP_no_mbuf : DROP_mtu);
		return;
	}
	for (int i = 0; i < n; i++) {
		uint8_t *eth = (uint8_t *)rte_pktmbuf_prepend(piece[i], L2_LEN);

		memcpy(eth, l2, L2_LEN); /* if it is dropped, or is for the kernel */
		ip = eth + L2_LEN;
		put_be16(ip + 10, 0); /* the library leaves the checksum to the device */
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, (ip[0] & 15u) * 4, 0)));
		*packet_meta(piece[i]) = meta;
		vlan_inherit(piece[i], m);
		punt_forward(p, piece[i], 4, false, true);
	}
	rte_pktmbuf_free(m);
}

/* --- packets that waited ------------------------------------------------------------------ */

/*
 * Forward the packets of an entry, each by its present route, or answer with the ICMP error
 * if it has no route any longer. `ip neigh flush` deletes a neighbor that has just
 * answered, in several rounds. Then the packets wait for the next answer.
 */
static void
neigh_queue_release(struct punt *p, const struct neigh_queue *waited, bool resolved)
{
	struct neigh_key key = {waited->ifidx, waited->family, waited->addr, waited->adj};
	bool may_wait = resolved && waited->again < QUEUE_AGAIN_MAX;

	for (unsigned int i = 0; i < waited->n; i++) {
		struct rte_mbuf *m = waited->m[i];
		unsigned int n_waiting = p->n_waiting;

		if (may_wait && neigh_queue_exists(p, &key)) {
			neigh_queue_add(p, m, &key); /* behind the packets before it */
			continue;
		}
		punt_forward(p, m, packet_meta(m)->family, packet_meta(m)->in_ifidx == 0,
			     may_wait);
		counter_add(&p->count->held, resolved && p->n_waiting == n_waiting);
	}
	neigh_queue_again(p, waited);
}

void
punt_release_answered(struct punt *p, const struct msg_neigh *answer)
{
	struct neigh_queue waited;

	if (neigh_queue_take_answered(p, answer, &waited))
		neigh_queue_release(p, &waited, answer->resolved);
}

void
punt_release_expired(struct punt *p, double now)
{
	struct neigh_queue waited;

	for (unsigned int place = 0; neigh_queue_take_expired(p, now, &place, &waited);)
		neigh_queue_release(p, &waited, false);
}
