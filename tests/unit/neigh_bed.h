/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh over the kernel of neigh_kernel.h: one port with its TAP, and an interface without
 * a port. All runs in the test's thread; the test ends rounds and grace periods.
 */
#ifndef NEIGH_BED_H
#define NEIGH_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/limits.h"
#include "device_fake.h"
#include "grace.h"
#include "neigh/internal.h"
#include "neigh_kernel.h"
#include "tap-bridge/tap.h"

#define PORT  1
#define TAP   10 /* ifindex */
#define OTHER 11 /* ifindex of an interface without a port */

static const uint8_t mac_a[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0a};
static const uint8_t mac_b[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0b};

/* --- port ----------------------------------------------------------------------------- */

int
tap_open(struct tap *tap, const char *name, const char *netns, const uint8_t mac[6],
	 unsigned int mtu_bytes, bool *created)
{
	return -ENODEV;
}

int
tap_move(struct tap *tap, int fd)
{
	return 0;
}

void
tap_close(struct tap *tap)
{
}

int
tap_carrier(struct tap *tap, bool up)
{
	return 0;
}

int
tap_speed(const struct tap *tap, unsigned int mbit_per_s, bool full_duplex)
{
	return 0;
}

/* --- set up, tear down ---------------------------------------------------------------- */

static struct fib *fib;
static struct port port;
static struct worker neigh, rib, punt;
static struct counters count;

static inline struct kmon_link
link_of(uint32_t ifindex, const char *name)
{
	struct kmon_link l = {
		.ifindex = ifindex, .mtu_bytes = 1500, .admin_up = true, .carrier = true};

	memcpy(l.mac, mac_a, sizeof(mac_a));
	snprintf(l.name, sizeof(l.name), "%s", name);
	return l;
}

static inline struct kmon_link
vlan_of(uint32_t ifindex, unsigned int on, uint16_t type, uint16_t id)
{
	char name[16];
	struct kmon_link l;

	snprintf(name, sizeof(name), "v%u", ifindex);
	l = link_of(ifindex, name);
	l.on = on;
	l.vlan_type = type;
	l.vlan_id = id;
	return l;
}

/* Add a link and report it. */
static inline void
add(struct kmon_link link)
{
	assert_true(kernel.n < LINKS_MAX);
	kernel.row[kernel.n].link = link;
	kernel.row[kernel.n++].told = true;
	tell(&link, false);
}

/* Delete the link and report it. */
static inline void
del(struct kmon_link link)
{
	for (unsigned int i = 0; i < kernel.n; i++)
		if (kernel.row[i].link.ifindex == link.ifindex)
			kernel.row[i--] = kernel.row[--kernel.n];
	tell(&link, true);
}

static inline void
empty(struct worker *inbox)
{
	struct msg *m;

	while ((m = worker_take(inbox)) != NULL)
		msg_free(m);
}

/* End the round and a grace period, and handle the messages to neigh. */
static inline void
round_over(void)
{
	struct msg *m;

	neigh.ops->on_round(&neigh);
	grace_over();
	while ((m = worker_take(&neigh)) != NULL)
		neigh.ops->on_msg(&neigh, m);
	empty(&rib);
	empty(&punt);
}

static inline int
up(void **state)
{
	struct neigh_conf conf = {
		.count = &count, .rib = &rib, .punt = &punt, .port = &port, .n_port = 1};

	port = (struct port){.ifidx = PORT, .mtu_bytes = 1500, .mtu_max_bytes = 1500};
	port.tap.ifindex = TAP;
	memcpy(port.mac, mac_a, sizeof(mac_a));
	snprintf(port.name, sizeof(port.name), "wan0");
	memset(&kernel, 0, sizeof(kernel));
	kernel.row[kernel.n++].link = link_of(TAP, "wan0");
	kernel.row[kernel.n++].link = link_of(OTHER, "eth0");
	n_resolves = n_states = 0;
	arp_off = false;
	device.n_added_macs = 0;
	device.link_down = false;
	if (fib_create(&fib, &(struct fib_conf){.n_nodes = 0}) < 0)
		return -1;
	conf.fib = fib;
	if (worker_prepare(&rib) < 0 || worker_prepare(&punt) < 0 ||
	    neigh_setup(&neigh, &conf) < 0 || worker_prepare(&neigh) < 0)
		return -1;
	return neigh.ops->init(&neigh);
}

static inline int
down(void **state)
{
	neigh.ops->fini(&neigh);
	round_over();
	worker_free(&neigh);
	neigh_teardown(&neigh);
	worker_free(&rib);
	worker_free(&punt);
	fib_destroy(fib);
	return 0;
}

/* Return the interface of frames with this tag on the port. */
static inline const struct fib_iface *
iface_of(uint16_t type, uint16_t id)
{
	uint8_t tag[VLAN_BYTES];
	uint16_t ifidx;

	put_be16(tag, type);
	put_be16(tag + 2, id);
	ifidx = fib_vlan(fib, PORT, tag);
	return ifidx == 0 ? NULL : fib_iface(fib, ifidx);
}

#define bed_test(f) cmocka_unit_test_setup_teardown(f, up, down)

#endif
