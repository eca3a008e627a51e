/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig for the tests of neigh/: the real thread on a real TAP in its own namespace. Rib
 * and punt are mailboxes that the test reads. The device is that of device_fake.h. `pump`
 * is the far end of the wire and answers ARP and ND.
 */
#ifndef TEST_NEIGH_H
#define TEST_NEIGH_H

#include "test_tap_bridge.h"

#include <linux/neighbour.h>
#include <stdatomic.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/worker.h"
#include "device_fake.h"
#include "fib/fib.h"
#include "neigh/neigh.h"
#include "port/port.h"

#define IFIDX    1
#define MSGS_MAX 8192

struct inbox {
	struct worker w; /* prepared, but not started */
	struct msg *m[MSGS_MAX];
	unsigned int n;
};

struct rig {
	const struct table_limits *limits; /* NULL: the defaults */
	struct bed *bed;
	struct port port;
	struct fib *fib;
	struct worker neigh;
	struct inbox rib, punt, manage, ui;
	/* far end */
	bool answers;
	uint8_t peer_mac[6];
	unsigned int n_asked, n_asked_unicast; /* solicitations received */
	uint8_t asked_from[6];
};

/* --- far end -------------------------------------------------------------------------- */

static inline void
answer_arp(struct rig *r, const uint8_t *f)
{
	uint8_t out[42];

	memcpy(out, f, sizeof(out));
	memcpy(out, f + 6, 6);
	memcpy(out + 6, r->peer_mac, 6);
	put_be16(out + 20, 2);
	memcpy(out + 22, r->peer_mac, 6);
	memcpy(out + 28, f + 38, 4);
	memcpy(out + 32, f + 22, 10);
	tap_write(&r->port.tap, out, sizeof(out));
}

static inline void
answer_ns(struct rig *r, const uint8_t *f)
{
	uint8_t out[86];

	memcpy(out, f, sizeof(out));
	memcpy(out, f + 6, 6);
	memcpy(out + 6, r->peer_mac, 6);
	memcpy(out + 22, f + 62, 16); /* the source is the target of the solicitation */
	memcpy(out + 38, f + 22, 16);
	out[54] = 136;
	put_be32(out + 58, 0x60000000); /* solicited, override */
	out[78] = 2;
	memcpy(out + 80, r->peer_mac, 6);
	put_be16(out + 56, 0);
	put_be16(out + 56, (uint16_t)~inet_fold(inet_sum(out + 22, 64, 32 + 58)));
	tap_write(&r->port.tap, out, sizeof(out));
}

static inline bool
is_arp_request(const uint8_t *f, ssize_t n)
{
	/* Leave out the kernel's announcements. */
	return n >= 42 && get_be16(f + 12) == 0x0806 && f[21] == 1 &&
	       memcmp(f + 28, f + 38, 4) != 0;
}

static inline bool
is_ns(const uint8_t *f, ssize_t n)
{
	static const uint8_t unspecified[16];

	return n >= 86 && get_be16(f + 12) == 0x86dd && f[20] == 58 && f[54] == 135 &&
	       memcmp(f + 22, unspecified, 16) != 0;
}

static inline void
inbox_drain(struct inbox *in)
{
	struct msg *m;

	while ((m = worker_take(&in->w)) != NULL) {
		assert_true(in->n < MSGS_MAX);
		in->m[in->n++] = m;
	}
}

/* Handle frames of the kernel and messages of neigh. */
static inline void
pump(struct rig *r)
{
	struct pollfd pfd = {.fd = r->port.tap.fd, .events = POLLIN};
	uint8_t f[2048];
	ssize_t n;

	poll(&pfd, 1, 2);
	while ((n = tap_read(&r->port.tap, f, sizeof(f))) > 0) {
		bool arp = is_arp_request(f, n);

		if (!arp && !is_ns(f, n))
			continue;
		r->n_asked++;
		r->n_asked_unicast += (f[0] & 1) == 0;
		memcpy(r->asked_from, f + 6, 6);
		if (r->answers && arp)
			answer_arp(r, f);
		else if (r->answers)
			answer_ns(r, f);
	}
	inbox_drain(&r->rib);
	inbox_drain(&r->punt);
	inbox_drain(&r->manage);
	inbox_drain(&r->ui);
}

#define wait_for(r, condition)                                              \
	do {                                                                \
		int64_t end_ = now_ms() + PATIENCE_MS;                      \
		while (!(condition)) {                                      \
			if (now_ms() > end_)                                \
				fail_msg("did not happen: %s", #condition); \
			pump(r);                                            \
		}                                                           \
	} while (0)

/* --- state that forwarders see -------------------------------------------------------- */

static inline struct fib_iface
iface_now(struct rig *r)
{
	struct fib_iface copy = {0};
	const struct fib_iface *fi;

	urcu_qsbr_thread_online();
	fi = fib_iface(r->fib, IFIDX);
	if (fi != NULL)
		copy = *fi;
	urcu_qsbr_thread_offline();
	return copy;
}

static inline uint64_t
hop_of(struct rig *r, uint32_t adj)
{
	return atomic_load_explicit(&r->fib->adj[adj].hop, memory_order_acquire);
}

static inline struct ipaddr
addr_of(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	return p.addr;
}

static inline uint8_t
family_of(const char *text)
{
	return strchr(text, ':') != NULL ? 6 : 4;
}

static inline uint32_t
host_adj(struct rig *r, const char *text)
{
	struct ipaddr addr = addr_of(text);
	uint32_t adj;

	urcu_qsbr_thread_online();
	adj = fib_host_adj(r->fib, IFIDX, family_of(text), &addr);
	urcu_qsbr_thread_offline();
	return adj;
}

/* --- messages ------------------------------------------------------------------------- */

/* Return the last message about an interface, or NULL. */
static inline const struct msg_link *
link_said(const struct inbox *in, const char *name)
{
	for (unsigned int i = in->n; i-- > 0;) {
		const struct msg_link *m = caa_container_of(in->m[i], struct msg_link, m);

		if (in->m[i]->type == MSG_LINK && strcmp(m->name, name) == 0)
			return m;
	}
	return NULL;
}

static inline bool
said_up(const struct inbox *in, const char *name, bool up)
{
	const struct msg_link *m = link_said(in, name);

	return m != NULL && !m->gone && m->up == up;
}

static inline bool
said_gone(const struct inbox *in, const char *name)
{
	const struct msg_link *m = link_said(in, name);

	return m != NULL && m->gone;
}

static inline const struct msg_adj *
adj_said(const struct inbox *in, enum msg_type type, uint32_t adj)
{
	for (unsigned int i = in->n; i-- > 0;) {
		const struct msg_adj *m = caa_container_of(in->m[i], struct msg_adj, m);

		if (in->m[i]->type == type && m->adj == adj)
			return m;
	}
	return NULL;
}

static inline bool
said_alive(const struct inbox *in, uint32_t adj, bool alive)
{
	const struct msg_adj *m = adj_said(in, MSG_ADJ_STATE, adj);

	return m != NULL && m->alive == alive;
}

/* Return the number of answers that punt got about an address; NULL: about all. */
static inline unsigned int
n_answers(const struct inbox *in, const char *text, bool resolved)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < in->n; i++) {
		const struct msg_neigh *m = caa_container_of(in->m[i], struct msg_neigh, m);
		struct ipaddr addr = text != NULL ? addr_of(text) : m->addr;

		if (in->m[i]->type == MSG_NEIGH)
			n += m->resolved == resolved && ipaddr_equal(&m->addr, &addr);
	}
	return n;
}

static inline void
send_watch(struct rig *r, enum msg_type type, uint32_t adj, const char *text)
{
	struct msg_adj *m = msg_new(type, sizeof(*m));

	m->adj = adj;
	m->ifindex = r->port.tap.ifindex;
	m->ifidx = IFIDX;
	m->family = family_of(text);
	m->addr = addr_of(text);
	worker_send(&r->neigh, &m->m);
}

static inline void
send_glean(struct rig *r, const struct ipaddr *addr, uint8_t family)
{
	struct msg_neigh *m = msg_new(MSG_GLEAN, sizeof(*m));

	m->ifidx = IFIDX;
	m->family = family;
	m->addr = *addr;
	worker_send(&r->neigh, &m->m);
}

static inline void
glean(struct rig *r, const char *text)
{
	struct ipaddr addr = addr_of(text);

	send_glean(r, &addr, family_of(text));
}

/* --- set up, tear down ---------------------------------------------------------------- */

/*
 * Shorten the time limits of the kernel: a neighbor fails after 3 x 100 ms instead of 3 s.
 */
static inline void
hurry(struct bed *bed)
{
	bed_sysctl(bed, "ipv4/neigh/t0/retrans_time_ms", "100");
	bed_sysctl(bed, "ipv6/neigh/t0/retrans_time_ms", "100");
	bed_sysctl(bed, "ipv4/neigh/t0/delay_first_probe_time", "1");
	bed_sysctl(bed, "ipv4/neigh/t0/locktime", "0");
	bed_sysctl(bed, "ipv6/conf/t0/accept_dad", "0");
	bed_sysctl(bed, "ipv6/conf/all/forwarding", "1");
	bed_sysctl(bed, "ipv4/conf/t0/forwarding", "1");
	bed_sysctl(bed, "ipv6/conf/t0/forwarding", "1");
}

/* Make TAP t0 with 192.0.2.1/24 and 2001:db8::1/64. neigh is not started. */
static inline struct rig *
rig_of(void **state)
{
	struct bed *bed = bed_of(state);
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->bed = bed;
	r->port = (struct port){.ifidx = IFIDX,
				.port_id = 7,
				.mtu_bytes = 1500,
				.mtu_max_bytes = 1600,
				.name = "t0"};
	memcpy(r->port.mac, mac_a, 6);
	memcpy(r->peer_mac, mac_b, 6);
	r->answers = true;
	assert_int_equal(tap_open(&r->port.tap, "t0", bed->netns, mac_a, 1500, NULL), 0);
	hurry(bed);
	ip(bed, "link set lo up");
	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "addr add 2001:db8::1/64 dev t0");
	atomic_store(&device.link_down, false);
	atomic_store(&device.mtu_bytes, 0);
	atomic_store(&device.mac, 0);
	atomic_store(&device.set_mtu_rc, -ENOTSUP);
	atomic_store(&device.set_link_rc, 0);
	atomic_store(&device.is_taken_down, false);
	return r;
}

static inline void
rig_start(struct rig *r)
{
	/* Set once, because a test that fails does not call rig_stop(). */
	static bool registered;
	static struct counters count;
	struct neigh_conf conf = {.count = &count,
				  .rib = &r->rib.w,
				  .punt = &r->punt.w,
				  .manage = &r->manage.w,
				  .netns = r->bed->netns,
				  .port = &r->port,
				  .n_port = 1,
				  .limits = r->limits};
	const struct fib_conf fib = {.n_nodes = 0, .limits = r->limits};

	assert_int_equal(fib_create(&r->fib, &fib), 0);
	conf.fib = r->fib;
	assert_int_equal(worker_prepare(&r->rib.w), 0);
	assert_int_equal(worker_prepare(&r->punt.w), 0);
	assert_int_equal(worker_prepare(&r->manage.w), 0);
	assert_int_equal(worker_prepare(&r->ui.w), 0);
	assert_int_equal(neigh_setup(&r->neigh, &conf), 0);
	assert_int_equal(worker_prepare(&r->neigh), 0);
	if (!registered)
		urcu_qsbr_register_thread();
	registered = true;
	urcu_qsbr_thread_offline();
	assert_int_equal(worker_start(&r->neigh), 0);
}

static inline void
inbox_free(struct inbox *in)
{
	inbox_drain(in);
	for (unsigned int i = 0; i < in->n; i++)
		msg_free(in->m[i]);
	worker_free(&in->w);
}

static inline void
rig_stop(struct rig *r)
{
	worker_stop(&r->neigh);
	urcu_qsbr_barrier();
	worker_free(&r->neigh);
	neigh_teardown(&r->neigh);
	inbox_free(&r->rib);
	inbox_free(&r->punt);
	inbox_free(&r->manage);
	inbox_free(&r->ui);
	fib_destroy(r->fib);
	tap_close(&r->port.tap);
	free(r);
}

/*
 * Return true if the kernel sends packets to the TAP. It drops them until its linkwatch,
 * which may take more than a second, has seen the carrier; a neighbor fails before that.
 */
static inline bool
tap_sends(const struct rig *r)
{
	return run("ip -n %s link show dev t0 | grep -q 'state UP'", r->bed->netns) == 0;
}

/* Start neigh and wait until the TAP is up in the FIB and in the kernel. */
static inline struct rig *
rig_up(void **state)
{
	struct rig *r = rig_of(state);

	rig_start(r);
	wait_for(r, said_up(&r->rib, "t0", true) && said_up(&r->punt, "t0", true));
	wait_for(r, tap_sends(r));
	return r;
}

#endif
