/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * receive: handle the packets that forwarders did not note themselves, because they change a
 * session or belong to none, and the packets of the kernel's sockets.                 [bfd]
 */
#include <rte_ring.h>

#include "base/inet.h"
#include "bfd/impl.h"
#include "fib/fib.h"
#include "port/label_write.h"
#include "port/packet_meta.h"

#define BURST   64
#define PACKETS 64u /* read from one socket in one round */
#define L2_LEN  14

static void
packet_refuse(struct bfd *b, enum reason reason)
{
	counter_add(&b->count->reason[reason], 1);
}

/* Return true if a session has the addresses, the VRF and the interface of a packet. */
static bool
packet_is_of(const struct received *r, const struct session *s)
{
	static const struct ipaddr any;
	const struct place *at = &s->place;

	if (at->by == BY_NONE || s->k->fsm.conf.multihop != r->multihop ||
	    s->k->told.family != r->family || at->vrf != r->vrf ||
	    !ipaddr_equal(&s->k->told.dst, &r->remote))
		return false;
	/* A packet over several hops may arrive by any interface. */
	if (!r->multihop && at->ifindex != 0 && at->ifindex != r->ifindex)
		return false;
	/* The kernel chose the local address of some sessions. */
	return (at->by == BY_KERNEL && ipaddr_equal(&at->local, &any)) ||
	       ipaddr_equal(&at->local, &r->local);
}

/* Find the session of a packet without your_discr: RFC 5881, 3. NULL: there is none. */
static struct session *
session_by_address(struct bfd *b, const struct received *r)
{
	for (uint32_t i = 1; i < b->high; i++)
		if (b->session[i].k != NULL && packet_is_of(r, &b->session[i]))
			return &b->session[i];
	return NULL;
}

static void
packet_take(struct bfd *b, const struct received *r)
{
	struct bfd_packet p;
	struct session *s;
	unsigned int act;

	if (bfd_packet_read(&p, r->octets, r->n) != BFD_PACKET_OK) {
		packet_refuse(b, DROP_bfd_bad);
		return;
	}
	s = p.your_discr != 0 ? session_by_discr(b, p.your_discr)
			      : session_by_address(b, r);
	/* A discriminator alone is no proof: it may be guessed (RFC 5880, 9). */
	if (s == NULL || !packet_is_of(r, s)) {
		packet_refuse(b, DROP_bfd_no_session);
		return;
	}
	/*
	 * RFC 5881, 5: no router may have forwarded the packet. RFC 5883, 4: not too many
	 * may have.
	 */
	if (r->ttl < (r->multihop ? s->k->told.ttl : 255)) {
		packet_refuse(b, DROP_bfd_bad);
		return;
	}
	session_hear(b, s);
	kept_open(s->k);
	s->k->n_rx++;
	act = bfd_fsm_receive(&s->k->fsm, &p, monotonic_ns());
	kept_close(s->k);
	session_obey(b, s, act);
	/*
	 * If there was no action, publish the beat here, because forwarders may now expect
	 * the same packet again. After an action, session_obey() has published a beat.
	 */
	if ((act & ~(unsigned int)BFD_ACT_FOREIGN) == 0)
		beat_publish(b, s, false, false);
}

/*
 * Return false if the checksum of UDP is wrong. The UDP header is `off` octets after `ip`.
 * `bytes` is the length of header and payload.
 */
static bool
udp_is_whole(const uint8_t *ip, uint8_t family, unsigned int off, unsigned int bytes)
{
	const uint8_t *src = family == 4 ? ip + 12 : ip + 8;
	uint32_t sum = inet_sum(src, 2 * family_octets(family), 17 + bytes);

	if (family == 4 && get_be16(ip + off + 6) == 0)
		return true; /* RFC 768: the packet has no checksum */
	return inet_fold(inet_sum(ip + off, bytes, sum)) == 0xffff;
}

static void
frame_take(struct bfd *b, struct rte_mbuf *m)
{
	const struct packet_meta *meta = packet_meta(m);
	const struct fib_iface *in = fib_iface(b->fib, meta->in_ifidx);
	unsigned int n_labels, room, off, bytes;
	uint16_t ip_bytes, port;
	const uint8_t *ip = meta->has_labels
				    ? label_ip_find(m, 0, &n_labels, &ip_bytes)
				    : rte_pktmbuf_mtod_offset(m, uint8_t *, L2_LEN);
	struct received r = {.family = meta->family,
			     .vrf = meta->vrf,
			     .ifindex = in == NULL ? 0 : in->ifindex};

	if (ip == NULL) {
		packet_refuse(b, DROP_bfd_bad);
		return;
	}
	room = rte_pktmbuf_data_len(m) -
	       (unsigned int)(ip - rte_pktmbuf_mtod(m, const uint8_t *));
	off = meta->family == 4 ? (ip[0] & 15u) * 4 : 40;
	r.ttl = meta->family == 4 ? ip[8] : ip[7];
	bytes = room < off + 8 ? 0 : get_be16(ip + off + 4);
	if (bytes < 8 || off + bytes > room ||
	    !udp_is_whole(ip, meta->family, off, bytes)) {
		packet_refuse(b, DROP_bfd_bad);
		return;
	}
	port = get_be16(ip + off + 2);
	if (port != BFD_PORT && port != BFD_PORT_MULTI) {
		/* A late echo packet, or an echo packet that this router never sent. */
		packet_refuse(b, DROP_bfd_no_session);
		return;
	}
	r.multihop = port == BFD_PORT_MULTI;
	memcpy(r.remote.octet, meta->family == 4 ? ip + 12 : ip + 8,
	       family_octets(meta->family));
	memcpy(r.local.octet, meta->family == 4 ? ip + 16 : ip + 24,
	       family_octets(meta->family));
	r.octets = ip + off + 8;
	r.n = bytes - 8;
	packet_take(b, &r);
}

void
rings_take(struct bfd *b)
{
	for (unsigned int f = 0; f < b->setup.n_fwd; f++) {
		struct rte_ring *ring = b->setup.rings[f].punt[CLASS_bfd];
		/*
		 * Take only the present packets, because others may arrive as fast as this
		 * loop takes them.
		 */
		unsigned int left = rte_ring_count(ring);

		while (left > 0) {
			struct rte_mbuf *m[BURST];
			unsigned int n = rte_ring_sc_dequeue_burst(
				ring, (void **)m, left < BURST ? left : BURST, NULL);

			for (unsigned int i = 0; i < n; i++) {
				frame_take(b, m[i]);
				rte_pktmbuf_free(m[i]);
			}
			counter_add(&b->count->class[CLASS_bfd].taken, n);
			left = n == 0 ? 0 : left - n;
		}
	}
}

void
sockets_take(struct bfd *b)
{
	uint8_t octets[BFD_KERNEL_OCTETS];
	struct received r;
	int rc;

	b->kernel_ready = false;
	for (unsigned int kind = 0; kind < BFD_KERNEL_SOCKETS; kind++)
		for (unsigned int i = 0;
		     i < PACKETS && (rc = kernel_read(b, kind, octets, &r)) != 0; i++)
			if (rc > 0)
				packet_take(b, &r);
}
