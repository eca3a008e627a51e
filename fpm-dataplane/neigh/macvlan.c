/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * macvlan: gives an interface the MACs of its macvlans. VRRP (FRR's vrrpd,
 * keepalived) makes a macvlan for each virtual router. Forwarders find a macvlan by the
 * destination MAC of a frame, in a table for each interface below. This file makes the
 * tables, once per round, because hundreds of macvlans may be reported one by one. It also
 * adds the MACs to the filter of the device. Runs in neigh.
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define MACS_MIN 16u /* entries of the smallest table */

static bool
iface_is_active_macvlan(const struct iface *ifc)
{
	return ifc->kernel.macvlan != KMON_NO_MACVLAN && ifc->up;
}

/* Put a MAC into the table. Of two macvlans with the same MAC the first is found. */
static void
macs_put(struct fib_macs *macs, const uint8_t mac[6], uint16_t ifidx)
{
	uint64_t word = mac_word(mac);
	uint32_t i = mac_hash(word) & macs->mask;

	while (macs->entry[i] != 0)
		i = (i + 1) & macs->mask;
	macs->entry[i] = adj_hop_make(mac, ifidx);
}

static size_t
macs_bytes(uint32_t n_entries)
{
	return sizeof(struct fib_macs) + n_entries * sizeof(uint64_t);
}

/* Make the table of the macvlans on `on` that are up. NULL: none is. */
static struct fib_macs *
macs_make(struct neigh *n, uint16_t on)
{
	uint32_t n_up = 0, n_entries = MACS_MIN;
	struct fib_macs *macs;

	for (uint16_t i = iface_first_on(n, on); i != 0; i = iface_next_on(n, i))
		n_up += iface_is_active_macvlan(&n->iface[i]);
	if (n_up == 0)
		return NULL;
	while (n_entries < 2 * n_up)
		n_entries *= 2;
	macs = calloc(1, macs_bytes(n_entries));
	if (macs == NULL)
		abort(); /* out of memory for 16 octets for each macvlan, or a few more */
	macs->mask = n_entries - 1;
	for (uint16_t i = iface_first_on(n, on); i != 0; i = iface_next_on(n, i))
		if (iface_is_active_macvlan(&n->iface[i]))
			macs_put(macs, n->iface[i].kernel.mac, i);
	return macs;
}

static bool
macs_equal(const struct fib_macs *a, const struct fib_macs *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->mask == b->mask && memcmp(a, b, macs_bytes(a->mask + 1)) == 0;
}

static void
macs_publish(struct neigh *n, uint16_t on)
{
	struct fib_vlans *table =
		atomic_load_explicit(&n->fib->vlans[on], memory_order_relaxed);
	struct fib_macs *macs = macs_make(n, on), *old;

	old = atomic_load_explicit(&table->macs, memory_order_relaxed);
	if (macs_equal(macs, old)) {
		free(macs);
		return;
	}
	if (macs != NULL)
		atomic_store_explicit(&vlan_table(n, n->iface[on].port->ifidx)->any_macs,
				      true, memory_order_relaxed);
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&table->macs, macs, memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}

void
macvlan_changed(struct neigh *n, uint16_t on)
{
	n->macvlans_due = n->macvlans_due_on[on] = true;
}

void
macvlan_publish(struct neigh *n)
{
	for (uint16_t i = 1; n->macvlans_due && i < n->iface_end; i++, n->n_steps++)
		if (n->macvlans_due_on[i]) {
			n->macvlans_due_on[i] = false;
			macs_publish(n, i);
		}
	n->macvlans_due = false;
}

/* --- in the device -------------------------------------------------------------------- */

/* Return true if another interface of the port has this MAC. */
static bool
mac_is_of_another(const struct neigh *n, uint16_t ifidx, const uint8_t mac[6])
{
	const struct port *port = n->iface[ifidx].port;

	for (uint16_t i = 1; i < n->iface_end; i++)
		if (i != ifidx && n->iface[i].port == port &&
		    memcmp(n->iface[i].kernel.mac, mac, 6) == 0)
			return true;
	return false;
}

void
macvlan_set_mac(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];
	int rc;

	if (memcmp(ifc->dev_mac, ifc->kernel.mac, sizeof(ifc->dev_mac)) == 0)
		return;
	macvlan_forget_mac(n, ifidx);
	memcpy(ifc->dev_mac, ifc->kernel.mac, sizeof(ifc->dev_mac));
	rc = port_add_mac(ifc->port, ifc->dev_mac);
	if (rc < 0)
		log_warn("neigh: macvlan mac refused by device dev=%s port=%s error=\"%s\"",
			 ifc->kernel.name, ifc->port->name, strerror(-rc));
}

/*
 * Virtual routers of several VLANs often have the same MAC. A device that receives all
 * frames, because it had no room for a MAC, does so until it is closed.
 */
void
macvlan_forget_mac(struct neigh *n, uint16_t ifidx)
{
	static const uint8_t none[6];
	struct iface *ifc = &n->iface[ifidx];

	if (memcmp(ifc->dev_mac, none, sizeof(none)) != 0 &&
	    !mac_is_of_another(n, ifidx, ifc->dev_mac))
		port_remove_mac(ifc->port, ifc->dev_mac);
	memset(ifc->dev_mac, 0, sizeof(ifc->dev_mac));
}
