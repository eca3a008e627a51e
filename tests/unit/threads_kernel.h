/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel, kmon and rtnl as tables for the real neigh thread and the real rib thread.
 * The tables belong to neigh, except before it starts. The test sends events of the kernel
 * to the mailbox of neigh; the answers of neighbors also come this way.
 */
#ifndef THREADS_KERNEL_H
#define THREADS_KERNEL_H

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/kernel_event.h"
#include "base/msg.h"
#include "base/worker.h"
#include "device_fake.h"
#include "kmon_fake.h"
#include "port/port.h"
#include "threads_traffic.h"

#define TAP_IFINDEX(port) (10u + (port))
#define VRF_IFINDEX       30u
#define VRF_TABLE         1001u

enum news {
	NBR_MAC,
	NBR_FAILED,
	NBR_GONE,
	NBR_ANSWERS,
	LINK_CHANGES,
	LINK_UP,
	LINK_DOWN,
	VRF_COMES,
	VRF_GOES
};

/*
 * An event of a neighbor or a port. It has the type MSG_REPLY, which the daemon never sends
 * to neigh.
 */
struct msg_news {
	struct msg m;
	enum news news;
	unsigned int which;
	uint32_t version; /* version of the MAC and MTU from now on */
};

static struct {
	struct worker *neigh, *rib;
	const struct worker_ops *own; /* operations of neigh */
	struct worker_ops ops;        /* the same with kernel_on_msg() */
	struct kmon_link link[N_PORT + 1];
	uint32_t version[N_NBR];
} kernel;

static inline void
tell_neighbor(unsigned int n, uint16_t nud)
{
	struct ipaddr addr = nbr_addr(n);
	struct kmon_neigh kn = {
		.ifindex = TAP_IFINDEX(nbr[n].port), .family = nbr[n].family, .nud = nud};

	memcpy(kn.addr, addr.octet, sizeof(kn.addr));
	kn.has_mac = nud == NUD_REACHABLE;
	versioned_mac(kn.mac, (uint8_t)n, kernel.version[n]);
	monitor.ops.on_neigh(monitor.ctx, &kn, nud == NUD_NONE);
}

static inline void
tell_addr(uint16_t port, uint8_t family)
{
	struct ipaddr addr = addr_on(port, family, 1);
	struct kmon_addr ka = {.ifindex = TAP_IFINDEX(port),
			       .family = family,
			       .plen = family == 4 ? 27 : 64};

	memcpy(ka.addr, addr.octet, sizeof(ka.addr));
	memcpy(ka.peer, addr.octet, sizeof(ka.peer));
	monitor.ops.on_addr(monitor.ctx, &ka, false);
}

/* Add to a batch a route that the kernel makes of an address. `gone`: delete the route. */
static inline void
batch_add_route(struct msg_kernel_batch *b, uint16_t port, struct prefix p, uint8_t type,
		bool gone)
{
	struct kernel_event *ev = &b->ev[b->n++];
	struct fpm_event *r = &ev->route;
	bool in_vrf = kernel.link[port].master != 0;

	ev->kind = gone ? KERNEL_ROUTE_DEL : KERNEL_ROUTE;
	ev->order = KERNEL_LAST;
	ev->is_local = !in_vrf && type != RTN_UNICAST;
	ev->metric = p.family == 6 && type == RTN_UNICAST ? 256 : 0;
	ev->scope = p.family == 6 ? RT_SCOPE_UNIVERSE
				  : (type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK);
	ev->ifindex = TAP_IFINDEX(port);
	r->kind = gone ? FPM_ROUTE_DEL : FPM_ROUTE;
	r->rtm_type = type;
	r->protocol = RTPROT_KERNEL;
	r->table = in_vrf ? VRF_TABLE : RT_TABLE_MAIN;
	r->prefix = p;
	if (type != RTN_UNICAST)
		return;
	r->hops = calloc(1, sizeof(*r->hops));
	if (r->hops == NULL)
		abort();
	r->n_hops = 1;
	r->hops[0] = (struct fpm_hop){.ifindex = TAP_IFINDEX(port), .weight = 1};
}

/*
 * Tell rib the connected and local routes of a port, in the table that the port uses now.
 */
static inline void
tell_routes(uint16_t port, bool gone)
{
	struct msg_kernel_batch *b = msg_new(MSG_KERNEL_BATCH, sizeof(*b));

	for (uint8_t family = 4; family <= 6; family += 2) {
		struct prefix p = {.addr = addr_on(port, family, 1), .family = family};

		p.len = (uint8_t)family_bits(family);
		batch_add_route(b, port, p, RTN_LOCAL, gone);
		p.len = family == 4 ? 27 : 64;
		prefix_mask(&p);
		batch_add_route(b, port, p, RTN_UNICAST, gone);
	}
	worker_send(kernel.rib, &b->m);
}

static inline void
tell_link(uint16_t port)
{
	monitor.ops.on_link(monitor.ctx, &kernel.link[port], false);
}

static inline void
news_send(enum news news, unsigned int which, uint32_t version)
{
	struct msg_news *m = msg_new(MSG_REPLY, sizeof(*m));

	m->news = news;
	m->which = which;
	m->version = version;
	worker_send(kernel.neigh, &m->m);
}

/*
 * Add a VRF with port 2 in it, or remove it. The port leaves the VRF before the VRF is
 * removed. The routes of its addresses move to the table of the VRF and back.
 */
static inline void
tell_vrf(bool comes)
{
	struct kmon_link vrf = {.ifindex = VRF_IFINDEX,
				.name = "red",
				.mtu_bytes = 65575,
				.admin_up = true,
				.carrier = true,
				.vrf_table = VRF_TABLE};

	if (comes)
		monitor.ops.on_link(monitor.ctx, &vrf, false);
	tell_routes(2, true);
	kernel.link[2].master = comes ? VRF_IFINDEX : 0;
	tell_link(2);
	tell_routes(2, false);
	if (!comes)
		monitor.ops.on_link(monitor.ctx, &vrf, true);
}

static inline void
link_news(uint16_t port, enum news news, uint32_t version)
{
	struct kmon_link *link = &kernel.link[port];

	if (news == LINK_CHANGES) {
		/*
		 * The ports that receive keep their MAC, because their packets are made
		 * with it.
		 */
		if (port > 2)
			versioned_mac(link->mac, OUR_MAC(port), version);
		link->mtu_bytes = versioned_mtu(version);
	} else {
		link->admin_up = news == LINK_UP;
	}
	tell_link(port);
}

static inline void
neighbor_news(unsigned int n, enum news news, uint32_t version)
{
	if (news != NBR_ANSWERS)
		kernel.version[n] = version;
	tell_neighbor(n, news == NBR_GONE     ? NUD_NONE
			 : news == NBR_FAILED ? NUD_FAILED
					      : NUD_REACHABLE);
	/*
	 * The kernel resolves the neighbor whether neigh asks or not, because it has
	 * traffic of its own.
	 */
	if (news == NBR_GONE)
		news_send(NBR_ANSWERS, n, 0);
}

static inline void
kernel_news(const struct msg_news *m)
{
	switch (m->news) {
	case LINK_CHANGES:
	case LINK_UP:
	case LINK_DOWN:
		link_news((uint16_t)m->which, m->news, m->version);
		break;
	case VRF_COMES:
	case VRF_GOES:
		tell_vrf(m->news == VRF_COMES);
		break;
	default:
		neighbor_news(m->which, m->news, m->version);
	}
}

static inline void
kernel_on_msg(struct worker *w, struct msg *m)
{
	if (m->type != MSG_REPLY) {
		kernel.own->on_msg(w, m);
		return;
	}
	kernel_news(caa_container_of(m, struct msg_news, m));
	msg_free(m);
}

/* Put the fake kernel between neigh and its mailbox. neigh is set up and not started. */
static inline void
kernel_make(struct worker *neigh, struct worker *rib)
{
	kernel.neigh = neigh;
	kernel.rib = rib;
	kernel.own = neigh->ops;
	kernel.ops = *neigh->ops;
	kernel.ops.on_msg = kernel_on_msg;
	neigh->ops = &kernel.ops;
	memset(kernel.version, 0, sizeof(kernel.version));
	for (uint16_t p = 1; p <= N_PORT; p++) {
		struct kmon_link *l = &kernel.link[p];

		*l = (struct kmon_link){.ifindex = TAP_IFINDEX(p),
					.mtu_bytes = 1500,
					.admin_up = true,
					.carrier = true};
		snprintf(l->name, sizeof(l->name), "p%u", p);
		versioned_mac(l->mac, OUR_MAC(p), 0);
	}
}

/* --- the kernel's end of the TAPs, in main -------------------------------------------- */

static int kernel_end[N_PORT + 1];
static uint32_t n_sent_of_kernel, kernel_seq[N_PORT + 1];

static inline void
tap_pump(uint16_t p)
{
	uint8_t frame[256];
	ssize_t n;

	while ((n = read(kernel_end[p], frame, sizeof(frame))) > 0) {
		/*
		 * The frame is as it was received, because packets to the host are not
		 * changed.
		 */
		must(frame[1] == OUR_MAC(p) && frame[7] >= SENDERS && frame[7] < N_NBR);
		atomic_fetch_add(&n_read_to_us, 1);
	}
	must(n < 0 && errno == EAGAIN);
}

static inline void
kernel_sends(uint16_t p)
{
	struct ipaddr own = addr_on(p, 4, 1), to = addr_on(p, 4, 30);
	uint8_t frame[256];
	unsigned int n;

	if (n_sent_of_kernel - (uint32_t)atomic_load(&n_of_kernel) >= 32)
		return;
	n = frame_make(frame, 4, &own, &to, 1024);
	frame[0] = frame[6] = 2;
	put_be32(frame + 14 + 24, ++kernel_seq[p]);
	must(write(kernel_end[p], frame, n) == (ssize_t)n);
	n_sent_of_kernel++;
}

/* --- functions of kmon that neigh calls ----------------------------------------------- */

int
kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx)
{
	struct kmon_conf conf = {.ifindex = KMON_CONF_ALL, .family = 6, .forwarding = true};

	monitor_open(out, ops, ctx);
	for (uint16_t p = 1; p <= N_PORT; p++)
		tell_link(p);
	ops->on_conf(ctx, &conf, false);
	for (uint16_t p = 1; p <= N_PORT; p++)
		for (uint8_t family = 4; family <= 6; family += 2) {
			conf.ifindex = TAP_IFINDEX(p);
			conf.family = family;
			ops->on_conf(ctx, &conf, false);
			tell_addr(p, family);
		}
	for (uint16_t p = 1; p <= N_PORT; p++)
		tell_routes(p, false);
	for (unsigned int n = 0; n < N_NBR; n++)
		tell_neighbor(n, NUD_REACHABLE);
	return 0;
}

int
kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	for (unsigned int n = 0; n < N_NBR; n++) {
		struct ipaddr its = nbr_addr(n);

		if (nbr[n].family == family &&
		    memcmp(its.octet, addr, family_octets(family)) == 0)
			news_send(NBR_ANSWERS, n, 0);
	}
	return 0;
}

/* No failure is final: neigh asks again, and the neighbor answers. */
bool
kmon_has_failed(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return false;
}

int
kmon_resync(struct kmon *km)
{
	return 0;
}

int
kmon_reset_link(struct kmon *km, unsigned int ifindex, bool again)
{
	return 0;
}

int
kmon_operstate(struct kmon *km, unsigned int ifindex, bool up)
{
	return 0;
}

#endif
