/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake device of a port for test programs of neigh/. The test sets its answers and reads
 * the calls that it got. With all fields 0 the link is up and the device accepts all
 * changes, but does not insert tags.
 */
#ifndef DEVICE_FAKE_H
#define DEVICE_FAKE_H

#include <stdatomic.h>
#include <string.h>

#include "fib/fib.h"
#include "port/port.h"

static struct {
	_Atomic bool link_down;
	_Atomic unsigned int mbit_per_s; /* 0: unknown */
	_Atomic bool takes_tags;
	_Atomic int set_mtu_rc, set_link_rc;

	_Atomic bool is_taken_down;     /* last value that was set, of any port */
	_Atomic unsigned int mtu_bytes; /* last value that was set */
	/* last value that was set, as adj_hop_make(mac, 0) */
	_Atomic uint64_t mac;
	unsigned int n_asked_tags;
	unsigned int n_added_macs, n_removed_macs;
	uint8_t added_mac[6]; /* last address that was added */
} device;

struct port_link
port_link(const struct port *port)
{
	return (struct port_link){.up = !atomic_load(&device.link_down),
				  .mbit_per_s = atomic_load(&device.mbit_per_s),
				  .full_duplex = true};
}

int
port_quiet_kernel(const struct port *port, char *why, unsigned int why_size)
{
	return 0;
}

int
port_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	atomic_store(&device.mtu_bytes, mtu_bytes);
	return atomic_load(&device.set_mtu_rc);
}

int
port_set_mac(const struct port *port, const uint8_t mac[6])
{
	atomic_store(&device.mac, adj_hop_make(mac, 0));
	return 0;
}

int
port_set_link(const struct port *port, bool up)
{
	atomic_store(&device.is_taken_down, !up);
	return atomic_load(&device.set_link_rc);
}

bool
port_take_tags(const struct port *port)
{
	device.n_asked_tags++;
	return atomic_load(&device.takes_tags);
}

int
port_add_mac(const struct port *port, const uint8_t mac[6])
{
	memcpy(device.added_mac, mac, sizeof(device.added_mac));
	device.n_added_macs++;
	return 0;
}

void
port_remove_mac(const struct port *port, const uint8_t mac[6])
{
	device.n_removed_macs++;
}

#endif
