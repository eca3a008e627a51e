/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports without devices: the receive function makes packets, the send function judges them.
 * A packet may leave as any state of the tables says that was in force between the two
 * calls, and in no other way. Each packet leaves once. A packet may be dropped only if it
 * had no next hop at some time.
 *
 * All of this runs in forwarders and in threads that free a buffer. The state of a queue
 * belongs to the forwarder that serves it, the state of a packet to the thread that holds
 * it. Both are without atomics, so that ThreadSanitizer reports a thread that uses them
 * before they were handed over.
 */
#ifndef THREADS_TRAFFIC_H
#define THREADS_TRAFFIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "base/prefix.h"
#include "port/packet_meta.h"

#define N_PORT     4  /* packets come by ports 1 and 2, and leave by ports 3 and 4 */
#define FIRST_PORT 10 /* DPDK's port of interface 0, if it existed */
#define N_QUEUE    4  /* two for each port that receives */
#define N_FWD      2
#define N_ROUTE    16
#define N_LABEL    8
#define N_BUFFER   2048
/* As many as a neighbor's queue of waiting packets (QUEUE_PACKETS_MAX) has room for. */
#define IN_FLIGHT_MAX 60

/* Neighbors: gateways of routes, the gateway of the steady route, hosts, senders. */
enum { GATEWAYS = 4, STEADY = GATEWAYS, HOSTS, SENDERS = HOSTS + 4, N_NBR = SENDERS + 4 };

static const struct nbr {
	uint16_t port;
	uint8_t family;
} nbr[N_NBR] = {
	{3, 6}, {4, 6}, {3, 6}, {4, 6}, /* GATEWAYS */
	{3, 6},                         /* STEADY */
	{3, 4}, {3, 4}, {3, 6}, {3, 6}, /* HOSTS */
	{1, 4}, {1, 6}, {2, 4}, {2, 6}, /* SENDERS */
};

/*
 * Facts that change in versions. `begun` counts a version when the test starts the change,
 * `settled` when the test sees it in the FIB.
 */
enum {
	FACT_ROUTE,
	FACT_NBR = FACT_ROUTE + N_ROUTE,     /* MAC of the neighbor */
	FACT_IFACE = FACT_NBR + N_NBR,       /* by port: our MAC and MTU */
	FACT_LINK = FACT_IFACE + N_PORT + 1, /* link of port 4; odd: down */
	FACT_VRF,                            /* odd: the VRF exists and port 2 is in it */
	FACT_VRF_ROUTE,                      /* in the table of the VRF */
	FACT_LABEL = FACT_VRF_ROUTE + N_ROUTE,
	N_FACT = FACT_LABEL + N_LABEL
};
static _Atomic uint32_t begun[N_FACT], settled[N_FACT];

static atomic_bool wrong;

/* An assertion for any thread. The first failure is printed. */
#define must(what)                                                                         \
	do {                                                                               \
		if (!(what) && !atomic_exchange(&wrong, true))                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
	} while (0)

/* TO_US: also for packets that the router itself sends. */
/* TO_PUSH: an IP packet of a route with the next hops of a label. */
enum kind { TO_US, TO_ROUTE, TO_STEADY, TO_HOST, TO_LABEL, TO_PUSH };

/* State of a packet, in its buffer behind the daemon's data. */
struct ride {
	bool in_transit;
	uint8_t kind; /* enum kind */
	uint8_t family;
	uint8_t which; /* number of the route, neighbor or label */
	uint8_t queue;
	uint32_t seq;             /* its number in the queue */
	uint32_t inner;           /* TO_LABEL: the second label, which stays */
	uint32_t settled[N_FACT]; /* versions when the packet was made */
};

static inline struct ride *
ride_of(struct rte_mbuf *m)
{
	return (struct ride *)((uint8_t *)rte_mbuf_to_priv(m) + PACKET_PRIV_BYTES);
}

struct queue {
	uint16_t port;
	uint32_t random, seq, steady_last;
};
static struct queue queue[N_QUEUE];
static uint32_t kernel_last[N_PORT + 1]; /* by port: last number sent by the kernel */

static atomic_bool quiet; /* the ports receive nothing from now on */
static atomic_int in_flight;
static _Atomic uint64_t n_came, n_left, n_dropped, n_to_us, n_read_to_us, n_of_kernel,
	n_icmp, n_swapped, n_popped, n_pushed;

/* --- addresses ------------------------------------------------------------------------ */

static inline uint32_t
net4(unsigned int port)
{
	/* 192.0.2.0/24, a /27 for each port; our address is .1. */
	return 0xc0000200u + 32 * port;
}

static inline struct ipaddr
addr_on(unsigned int port, uint8_t family, uint8_t host)
{
	struct ipaddr a = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, (uint8_t)port}};

	if (family == 4)
		return ipaddr_from_v4(net4(port) + host);
	a.octet[15] = host;
	return a;
}

static inline struct ipaddr
nbr_addr(unsigned int n)
{
	return addr_on(nbr[n].port, nbr[n].family, (uint8_t)(2 + n));
}

/*
 * Return the prefix of route `k`. N_ROUTE is the steady route. N_ROUTE + 1 and + 2 are the
 * marks of threads_zebra.h, which get no packets. PUSH_ROUTE() has the routes behind them.
 */
static inline struct prefix
route_prefix(unsigned int k, uint8_t family)
{
	struct prefix p = {.family = family, .len = family == 4 ? 24 : 48};

	p.addr = family == 4 ? ipaddr_from_v4(0xc6120000u + (k << 8))
			     : (struct ipaddr){{0x20, 0x01, 0x0d, 0xb8, 1, (uint8_t)k}};
	return p;
}

static inline void
versioned_mac(uint8_t mac[6], uint8_t whose, uint32_t version)
{
	mac[0] = 2;
	mac[1] = whose;
	put_be32(mac + 2, version);
}

#define OUR_MAC(port) ((uint8_t)(0xf0 + (port)))

/* Return an MTU that is larger than any packet. */
static inline uint16_t
versioned_mtu(uint32_t version)
{
	return (uint16_t)(1500 - 100 * (version % 2));
}

/* --- correct answers ------------------------------------------------------------------ */

/* Return the gateways of a route (its fact) as bits. 0: the route is withdrawn. */
static inline uint32_t
route_gateways(unsigned int fact, uint32_t version)
{
	static const uint8_t hops[] = {0, 1, 2, 4, 8, 3, 5, 9, 6, 10, 12};

	if (version == 0)
		return 3;
	return hops[((version * 2654435761u) ^ (fact * 40503u)) % 4093 % sizeof(hops)];
}

#define GATEWAYS_DOWN 0xau /* gateways of port 4, whose link goes up and down */

/*
 * Label `k` has gateways that change as those of a route do. By its version it is popped
 * (no label is pushed), swapped for LABEL_OUT(), which shows `k` and the version, or
 * swapped for two labels: LABEL_OUT() and LABEL_BEHIND.
 */
#define LABEL_IN(k)          (100u + (k))
#define LABEL_OUT(k, v)      ((1u + (k)) << 16 | ((v)&0xffff))
#define LABEL_BEHIND         90u
#define PUSH_ROUTE(k)        (N_ROUTE + 4 + (k)) /* pushes the labels of label `k` */
#define LABELS_PUSHED(v)     ((v) % 3)
#define LABEL_INNER          1000u
#define LABEL_INNER_VARIANTS 1000u

static inline bool
was_in_force(const struct ride *r, unsigned int fact, uint32_t version)
{
	uint32_t now = atomic_load_explicit(&begun[fact], memory_order_acquire);

	return version - r->settled[fact] <= now - r->settled[fact];
}

/* True if the fact had an odd (or even) version at some time since the packet was made. */
static inline bool
could_be(const struct ride *r, unsigned int fact, bool odd)
{
	return r->settled[fact] != atomic_load(&begun[fact]) ||
	       (r->settled[fact] % 2 != 0) == odd;
}

/* True if the packet may have been looked up in the table of the VRF, or in main. */
static inline bool
could_be_in(const struct ride *r, bool vrf)
{
	return queue[r->queue].port == 2 ? could_be(r, FACT_VRF, vrf) : !vrf;
}

/*
 * Return the next hops of the packet's route in one of the tables. Set *none if there may
 * have been no next hop.
 */
static inline uint32_t
gateways_in(const struct ride *r, unsigned int fact, bool *none)
{
	uint32_t end = atomic_load(&begun[fact]) + 1, hops = 0;
	bool up = could_be(r, FACT_LINK, false), down = could_be(r, FACT_LINK, true);

	for (uint32_t v = r->settled[fact]; v != end; v++) {
		uint32_t all = route_gateways(fact, v), left = all & ~GATEWAYS_DOWN;

		hops |= (up ? all : 0) | (down ? left : 0);
		*none |= all == 0 || (down && left == 0) || (up && down && all != left);
	}
	return hops;
}

/*
 * Return the gateways by which a packet may leave. Set *none if there may have been no next
 * hop.
 */
static inline uint32_t
gateways_of(const struct ride *r, bool *none)
{
	bool main_table = could_be_in(r, false), vrf = could_be_in(r, true);
	uint32_t hops = 0;

	*none = false;
	if (r->kind == TO_LABEL) /* labels have no VRF */
		return gateways_in(r, FACT_LABEL + r->which, none);
	/*
	 * While a VRF is added or removed its members are in no table. A VRF has no other
	 * routes.
	 */
	*none = vrf && (main_table || r->kind != TO_ROUTE);
	if (main_table && r->kind == TO_ROUTE)
		hops |= gateways_in(r, FACT_ROUTE + r->which, none);
	if (main_table && r->kind == TO_PUSH)
		hops |= gateways_in(r, FACT_LABEL + r->which, none);
	if (vrf && r->kind == TO_ROUTE)
		hops |= gateways_in(r, FACT_VRF_ROUTE + r->which, none);
	return hops;
}

static inline void
judge_gateway(const struct ride *r, unsigned int n)
{
	struct queue *q = &queue[r->queue];
	bool none;

	must(r->kind == TO_ROUTE || r->kind == TO_LABEL || could_be_in(r, false));
	switch (r->kind) {
	case TO_ROUTE:
	case TO_LABEL:
	case TO_PUSH:
		must(n < GATEWAYS && (gateways_of(r, &none) >> n & 1) != 0);
		break;
	case TO_STEADY:
		must(n == STEADY);
		/* Packets of the steady route leave in their order. */
		must(r->seq - q->steady_last < INT32_MAX);
		q->steady_last = r->seq;
		break;
	default:
		must(r->kind == TO_HOST && n == r->which);
	}
}

/* Check a packet that leaves by gateway `n` without a label of its next hop. */
static inline void
judge_no_label(const struct ride *r, unsigned int n)
{
	unsigned int fact = FACT_LABEL + r->which;
	uint32_t end = atomic_load(&begun[fact]) + 1;
	bool found = false;

	for (uint32_t v = r->settled[fact]; v != end; v++)
		found |= LABELS_PUSHED(v) == 0 && (route_gateways(fact, v) >> n & 1) != 0;
	must(found);
}

/*
 * Check the labels at `p` of a packet that leaves by gateway `n`: all are of one version.
 * Return the place behind them.
 */
static inline const uint8_t *
judge_labels(const struct ride *r, const uint8_t *p, unsigned int n, uint8_t tc,
	     bool bottom)
{
	unsigned int fact = FACT_LABEL + r->which;
	uint32_t version = label_of(get_be32(p)) & 0xffff;
	bool two = LABELS_PUSHED(version) == 2;

	must(was_in_force(r, fact, version));
	must((route_gateways(fact, version) >> n & 1) != 0 && LABELS_PUSHED(version) != 0);
	must(get_be32(p) ==
	     label_entry(LABEL_OUT(r->which, version), tc, bottom && !two, 63));
	p += LABEL_BYTES;
	if (!two)
		return p;
	must(get_be32(p) == label_entry(LABEL_BEHIND, tc, bottom, 63));
	return p + LABEL_BYTES;
}

/* Check a packet that came with two labels. */
static inline void
judge_switched(const struct ride *r, const uint8_t *p, unsigned int n)
{
	bool popped = label_of(get_be32(p)) == r->inner;

	atomic_fetch_add(popped ? &n_popped : &n_swapped, 1);
	if (popped)
		judge_no_label(r, n);
	else
		p = judge_labels(r, p, n, 5, false);
	must(get_be32(p) == label_entry(r->inner, 3, true, popped ? 63 : 64));
}

/* Check a received packet that leaves by `port`. */
static inline void
judge(struct ride *r, uint16_t port, const uint8_t *frame)
{
	const uint8_t *ip = frame + 14;
	unsigned int n = frame[1];

	must(r->in_transit);
	r->in_transit = false;
	atomic_fetch_add(&n_left, 1);
	atomic_fetch_sub(&in_flight, 1);
	must(n < N_NBR && nbr[n].port == port);
	if (n >= N_NBR)
		return;
	must(was_in_force(r, FACT_NBR + n, get_be32(frame + 2)));
	must(frame[7] == OUR_MAC(port));
	must(was_in_force(r, FACT_IFACE + port, get_be32(frame + 8)));
	judge_gateway(r, n);
	if (r->kind == TO_LABEL) {
		must(get_be16(frame + 12) == MPLS_TYPE);
		judge_switched(r, ip, n);
		return;
	}
	if (r->kind == TO_PUSH && get_be16(frame + 12) == MPLS_TYPE) {
		ip = judge_labels(r, ip, n, 0, true);
		atomic_fetch_add(&n_pushed, 1);
		must(ip[0] >> 4 == r->family);
	} else {
		must(get_be16(frame + 12) == (r->family == 4 ? 0x0800 : 0x86dd));
		if (r->kind == TO_PUSH)
			judge_no_label(r, n);
	}
	must((r->family == 4 ? ip[8] : ip[7]) == 63);
	must(r->family == 6 || inet_fold(inet_sum(ip, 20, 0)) == 0xffff);
}

/* Check a packet of the kernel or an ICMP error of the punt thread. */
static inline void
judge_other(uint16_t port, const uint8_t *frame)
{
	const uint8_t *ip = frame + 14;
	uint8_t proto = get_be16(frame + 12) == 0x0800 ? ip[9] : ip[6];

	if (proto != 6) {
		must(proto == 1 || proto == 58);
		atomic_fetch_add(&n_icmp, 1);
		return;
	}
	must(get_be32(ip + 24) == kernel_last[port] + 1);
	kernel_last[port] = get_be32(ip + 24);
	atomic_fetch_add(&n_of_kernel, 1);
}

static inline uint16_t
transmit(void *q, struct rte_mbuf **m, uint16_t n)
{
	uint16_t port = *(uint16_t *)q;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(m[i], const uint8_t *);

		if (ride_of(m[i])->kind == TO_US)
			judge_other(port, frame);
		else
			judge(ride_of(m[i]), port, frame);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

/* --- packets received ----------------------------------------------------------------- */

static inline uint32_t
below(struct queue *q, uint32_t n)
{
	q->random = q->random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)q->random * n >> 32);
}

static inline struct ipaddr
destination(struct queue *q, struct ride *r)
{
	struct ipaddr dst;
	/*
	 * Own addresses are local in table main only. A TAP has room for a few hundred
	 * frames.
	 */
	bool to_us =
		q->port == 1 && atomic_load(&n_to_us) - atomic_load(&n_read_to_us) < 50;
	uint32_t k = below(q, to_us ? 20 : 19);

	r->kind = k < 9    ? TO_ROUTE
		  : k < 11 ? TO_STEADY
		  : k < 15 ? TO_HOST
		  : k < 17 ? TO_LABEL
		  : k < 19 ? TO_PUSH
			   : TO_US;
	r->family = below(q, 2) ? 6 : 4;
	if (r->kind == TO_LABEL) {
		r->which = (uint8_t)below(q, N_LABEL);
		r->inner = LABEL_INNER + below(q, LABEL_INNER_VARIANTS);
		return nbr_addr(HOSTS);
	}
	if (r->kind == TO_PUSH) {
		r->which = (uint8_t)below(q, N_LABEL);
		dst = route_prefix(PUSH_ROUTE(r->which), r->family).addr;
		dst.octet[r->family == 4 ? 3 : 15] = (uint8_t)(1 + below(q, 250));
		return dst;
	}
	if (r->kind == TO_US)
		return addr_on(3, r->family, 1);
	if (r->kind == TO_HOST) {
		r->which = (uint8_t)(HOSTS + below(q, SENDERS - HOSTS));
		r->family = nbr[r->which].family;
		return nbr_addr(r->which);
	}
	r->which = (uint8_t)(r->kind == TO_STEADY ? N_ROUTE : below(q, N_ROUTE));
	dst = route_prefix(r->which, r->family).addr;
	dst.octet[r->family == 4 ? 3 : 15] = (uint8_t)(1 + below(q, 250));
	return dst;
}

static inline unsigned int
frame_make(uint8_t *f, uint8_t family, const struct ipaddr *src, const struct ipaddr *dst,
	   uint16_t sport)
{
	unsigned int head = family == 4 ? 20 : 40;
	uint8_t *ip = f + 14, *l4 = ip + head;

	memset(f, 0, 14 + head + 26);
	put_be16(f + 12, family == 4 ? 0x0800 : 0x86dd);
	if (family == 4) {
		ip[0] = 0x45;
		put_be16(ip + 2, 46);
		ip[8] = 64;
		ip[9] = 6;
		memcpy(ip + 12, src->octet, 4);
		memcpy(ip + 16, dst->octet, 4);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	} else {
		ip[0] = 0x60;
		put_be16(ip + 4, 26);
		ip[6] = 6;
		ip[7] = 64;
		memcpy(ip + 8, src->octet, 16);
		memcpy(ip + 24, dst->octet, 16);
	}
	put_be16(l4, sport);
	put_be16(l4 + 2, 179);
	l4[12] = 5 << 4;
	l4[13] = 0x10;
	return 14 + head + 26;
}

/*
 * Turn a frame of `n` octets into one with two labels. No IP packet follows them, so that
 * no ICMP error is sent about it. Return the length.
 */
static inline unsigned int
frame_label(uint8_t *f, unsigned int n, const struct ride *r)
{
	put_be16(f + 12, MPLS_TYPE);
	put_be32(f + 14, label_entry(LABEL_IN(r->which), 5, false, 64));
	put_be32(f + 18, label_entry(r->inner, 3, true, 64));
	memset(f + 22, 0, n - 22);
	return n;
}

static inline void
packet_make(struct queue *q, struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	struct ride *r = ride_of(m);
	struct ipaddr dst, src;
	unsigned int n;

	*r = (struct ride){
		.in_transit = true, .queue = (uint8_t)(q - queue), .seq = ++q->seq};
	/*
	 * Read the versions before the packet is received: the forwarder can see only these
	 * or newer ones.
	 */
	for (unsigned int i = 0; i < N_FACT; i++)
		r->settled[i] = atomic_load_explicit(&settled[i], memory_order_acquire);
	dst = destination(q, r);
	n = SENDERS + (q->port == 1 ? 0u : 2u) + (r->family == 6);
	src = nbr_addr(n);
	m->data_len = (uint16_t)frame_make(f, r->family, &src, &dst,
					   (uint16_t)(1024 + below(q, 4096)));
	if (r->kind == TO_LABEL)
		m->data_len = (uint16_t)frame_label(f, m->data_len, r);
	m->pkt_len = m->data_len;
	versioned_mac(f, OUR_MAC(q->port), 0);
	versioned_mac(f + 6, (uint8_t)n, 0);
	m->port = FIRST_PORT + q->port;
}

static struct rte_mempool *pool;

static inline uint16_t
receive(void *data, struct rte_mbuf **m, uint16_t most)
{
	struct queue *q = data;
	int n = 1 + (int)below(q, most < 32 ? most : 32);

	if (atomic_load(&quiet))
		return 0;
	if (atomic_fetch_add(&in_flight, n) + n > IN_FLIGHT_MAX ||
	    rte_pktmbuf_alloc_bulk(pool, m, (unsigned int)n) < 0) {
		atomic_fetch_sub(&in_flight, n);
		return 0;
	}
	for (int i = 0; i < n; i++)
		packet_make(q, m[i]);
	atomic_fetch_add(&n_came, (uint64_t)n);
	return (uint16_t)n;
}

/* --- buffers: a stack with a lock, which ThreadSanitizer understands ------------------ */

static struct {
	pthread_mutex_t lock;
	void *buffer[N_BUFFER];
	unsigned int n;
} stack = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
stack_alloc(struct rte_mempool *mp)
{
	return 0;
}

static void
stack_free(struct rte_mempool *mp)
{
}

/* A buffer is freed: assert that its packet has left or may be dropped. */
static inline void
judge_end(struct ride *r)
{
	bool none = false;

	if (r->in_transit && r->kind == TO_US) {
		/* Its frame is in the ring to the kernel. */
		atomic_fetch_add(&n_to_us, 1);
		atomic_fetch_sub(&in_flight, 1);
	} else if (r->in_transit) {
		(void)gateways_of(r, &none);
		must(none);
		atomic_fetch_add(&n_dropped, 1);
		atomic_fetch_sub(&in_flight, 1);
	}
	/*
	 * If receive() is not the next user of the buffer, the router sends a packet in it.
	 */
	*r = (struct ride){.kind = TO_US};
}

static int
stack_push(struct rte_mempool *mp, void *const *buffer, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		judge_end(ride_of(buffer[i]));
	pthread_mutex_lock(&stack.lock);
	must(stack.n + n <= N_BUFFER);
	memcpy(stack.buffer + stack.n, buffer, n * sizeof(*buffer));
	stack.n += n;
	pthread_mutex_unlock(&stack.lock);
	return 0;
}

static int
stack_pop(struct rte_mempool *mp, void **buffer, unsigned int n)
{
	bool enough;

	pthread_mutex_lock(&stack.lock);
	enough = n <= stack.n;
	if (enough) {
		stack.n -= n;
		memcpy(buffer, stack.buffer + stack.n, n * sizeof(*buffer));
	}
	pthread_mutex_unlock(&stack.lock);
	return enough ? 0 : -ENOBUFS;
}

static unsigned int
stack_count(const struct rte_mempool *mp)
{
	unsigned int n;

	pthread_mutex_lock(&stack.lock);
	n = stack.n;
	pthread_mutex_unlock(&stack.lock);
	return n;
}

static const struct rte_mempool_ops stack_ops = {
	.name = "locked",
	.alloc = stack_alloc,
	.free = stack_free,
	.enqueue = stack_push,
	.dequeue = stack_pop,
	.get_count = stack_count,
};
RTE_MEMPOOL_REGISTER_OPS(stack_ops)

static inline void
ports_make(void)
{
	static uint16_t number[N_PORT + 1];
	static void *txq[N_PORT + 1][N_FWD], *rxq[N_PORT + 1][2], *no_callback[N_FWD];

	pool = rte_pktmbuf_pool_create_by_ops(
		"threads", N_BUFFER, 0,
		PACKET_PRIV_BYTES + RTE_ALIGN(sizeof(struct ride), 8),
		RTE_PKTMBUF_HEADROOM + 256, SOCKET_ID_ANY, "locked");
	for (uint16_t p = 1; p <= N_PORT; p++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[FIRST_PORT + p];

		number[p] = p;
		ops->tx_pkt_burst = transmit;
		ops->txq.data = txq[p];
		ops->txq.clbk = no_callback;
		ops->rx_pkt_burst = receive;
		ops->rxq.data = rxq[p];
		ops->rxq.clbk = no_callback;
		for (unsigned int i = 0; i < N_FWD; i++)
			txq[p][i] = &number[p];
	}
	for (unsigned int i = 0; i < N_QUEUE; i++) {
		queue[i].port = (uint16_t)(1 + i / 2);
		rxq[queue[i].port][i % 2] = &queue[i];
	}
}

#endif
