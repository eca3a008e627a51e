/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * macvlan: gives an interface the MACs of its macvlans. VRRP (FRR's vrrpd, keepalived)
 * makes a macvlan for each virtual router. Forwarders find a macvlan by the destination MAC
 * of a frame, in a table for each interface below. Thousands of macvlans may be reported
 * one by one, so a macvlan is added and removed in place, and a table is made again only if
 * it is full. This file also adds the MACs to the filter of the device. Runs in neigh.
 */
#include "neigh/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"

#define MACS_MIN 16u /* entries of the smallest table */

/* Return true if a macvlan must have an entry. The kernel gives no macvlan the MAC 0. */
static bool
entry_is_due(const struct fib_iface *fi)
{
	return fi->up && mac_word(fi->mac) != 0;
}

/*
 * Put a macvlan into the table. If two macvlans have the same MAC, only the first gets an
 * entry.
 */
static void
entry_put(struct neigh *n, struct fib_macs *macs, const struct fib_iface *fi)
{
	uint64_t word = mac_word(fi->mac), was;
	uint32_t i = mac_hash(word);

	for (;; i++) {
		was = atomic_load_explicit(&macs->entry[i & macs->mask],
					   memory_order_relaxed);
		n->n_steps++;
		if (was == 0 || was >> 16 == word)
			break;
	}
	if ((uint16_t)was != 0) {
		macs->shared = true;
		return;
	}
	macs->n_used += was == 0;
	macs->n_up++;
	/* Release: a forwarder that finds the entry finds its interface. */
	atomic_store_explicit(&macs->entry[i & macs->mask],
			      adj_hop_make(fi->mac, fi->ifidx), memory_order_release);
}

/* Remove a macvlan. Its MAC stays in the entry, so that entries behind it are found. */
static void
entry_remove(struct neigh *n, struct fib_macs *macs, const struct fib_iface *fi)
{
	uint64_t word = mac_word(fi->mac), hop = adj_hop_make(fi->mac, fi->ifidx), was;

	for (uint32_t i = mac_hash(word);; i++) {
		was = atomic_load_explicit(&macs->entry[i & macs->mask],
					   memory_order_relaxed);
		n->n_steps++;
		assert(was != 0);
		if (was == hop) {
			atomic_store_explicit(&macs->entry[i & macs->mask], word << 16,
					      memory_order_relaxed);
			macs->n_up--;
			return;
		}
	}
}

/* Note that the table of an interface must be made again at the end of the round. */
static void
macs_note(struct neigh *n, uint16_t on)
{
	if (n->macs_renew_on[on])
		return;
	n->macs_renew_on[on] = true;
	n->macs_renew[n->n_macs_renew++] = on;
}

void
macvlan_enter(struct neigh *n, uint16_t on, const struct fib_iface *old,
	      const struct fib_iface *fi)
{
	struct fib_macs *macs =
		atomic_load_explicit(&vlan_table(n, on)->macs, memory_order_relaxed);
	bool was_due = old != NULL && entry_is_due(old), is_due = entry_is_due(fi);

	if (was_due == is_due &&
	    (!is_due || memcmp(old->mac, fi->mac, sizeof(fi->mac)) == 0))
		return;
	if (macs == NULL || macs->shared)
		macs_note(n, on);
	if (n->macs_renew_on[on])
		return;
	if (was_due)
		entry_remove(n, macs, old);
	if (is_due && 2 * (macs->n_used + 1) <= macs->mask + 1)
		entry_put(n, macs, fi);
	else if (is_due || macs->n_up == 0)
		macs_note(n, on);
}

/* Return a new table of the macvlans on `on` that are up. NULL: no macvlan is up. */
static struct fib_macs *
macs_make(struct neigh *n, uint16_t on)
{
	uint32_t n_up = 0, n_entries = MACS_MIN;
	struct fib_macs *macs;

	for (uint16_t i = iface_first_on(n, on); i != 0; i = iface_next_on(n, i))
		n_up += n->iface[i].kernel.macvlan != KMON_NO_MACVLAN && n->iface[i].up;
	if (n_up == 0)
		return NULL;
	while (n_entries < 4 * n_up) /* half of the entries are for later changes */
		n_entries *= 2;
	macs = calloc(1, sizeof(*macs) + n_entries * sizeof(macs->entry[0]));
	if (macs == NULL)
		abort(); /* out of memory: 32 to 64 octets a macvlan, or 128 for a few */
	macs->mask = n_entries - 1;
	for (uint16_t i = iface_first_on(n, on); i != 0; i = iface_next_on(n, i))
		if (n->iface[i].kernel.macvlan != KMON_NO_MACVLAN &&
		    entry_is_due(fib_iface(n->fib, i)))
			entry_put(n, macs, fib_iface(n->fib, i));
	return macs;
}

static void
macs_publish(struct neigh *n, uint16_t on)
{
	struct fib_vlans *table = vlan_table(n, on);
	struct fib_macs *macs = macs_make(n, on), *old;

	old = atomic_load_explicit(&table->macs, memory_order_relaxed);
	if (macs != NULL)
		atomic_store_explicit(&vlan_table(n, n->iface[on].port->ifidx)->any_macs,
				      true, memory_order_relaxed);
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&table->macs, macs, memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}

void
macvlan_publish(struct neigh *n)
{
	for (uint16_t k = 0; k < n->n_macs_renew; k++) {
		uint16_t on = n->macs_renew[k];

		n->n_steps++;
		n->macs_renew_on[on] = false;
		macs_publish(n, on);
	}
	n->n_macs_renew = 0;
}

/* --- in the device -------------------------------------------------------------------- */

/* A MAC that interfaces of a port have: the TAP, VLANs and macvlans. */
struct mac_of {
	struct cds_hlist_node chain; /* n->mac_of */
	const struct port *port;
	uint64_t word;     /* mac_word() */
	uint32_t n_ifaces; /* with this MAC */
};

static struct cds_hlist_head *
mac_chain(struct neigh *n, const struct port *port, uint64_t word)
{
	return &n->mac_of[mix64(word << 16 | port->ifidx) % LINK_CHAINS];
}

static struct mac_of *
mac_find(struct neigh *n, const struct port *port, uint64_t word)
{
	struct mac_of *m;

	cds_hlist_for_each_entry_2 (m, mac_chain(n, port, word), chain) {
		n->n_steps++;
		if (m->port == port && m->word == word)
			return m;
	}
	return NULL;
}

void
mac_hold(struct neigh *n, struct iface *ifc)
{
	uint64_t word = mac_word(ifc->kernel.mac);

	if (ifc->mac != NULL && ifc->mac->word == word)
		return;
	mac_release(ifc);
	ifc->mac = mac_find(n, ifc->port, word);
	if (ifc->mac == NULL) {
		ifc->mac = calloc(1, sizeof(*ifc->mac));
		if (ifc->mac == NULL)
			abort(); /* out of memory for some octets an interface */
		ifc->mac->port = ifc->port;
		ifc->mac->word = word;
		cds_hlist_add_head(&ifc->mac->chain, mac_chain(n, ifc->port, word));
	}
	ifc->mac->n_ifaces++;
}

void
mac_release(struct iface *ifc)
{
	if (ifc->mac != NULL && --ifc->mac->n_ifaces == 0) {
		cds_hlist_del(&ifc->mac->chain);
		free(ifc->mac);
	}
	ifc->mac = NULL;
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
	rc = device_result(&n->iface[ifc->port->ifidx],
			   port_add_mac(ifc->port, ifc->dev_mac));
	if (rc < 0)
		log_warn("neigh: macvlan mac refused by device dev=%s port=%s error=\"%s\"",
			 ifc->kernel.name, ifc->port->name, strerror(-rc));
}

/*
 * Virtual routers of several VLANs often have the same MAC, so the device accepts it as
 * long as another interface has it. A device that receives all frames, because it had no
 * room for a MAC, does so until it is closed.
 */
void
macvlan_forget_mac(struct neigh *n, uint16_t ifidx)
{
	static const uint8_t none[6];
	struct iface *ifc = &n->iface[ifidx];

	if (memcmp(ifc->dev_mac, none, sizeof(none)) != 0 &&
	    mac_find(n, ifc->port, mac_word(ifc->dev_mac)) == NULL)
		port_remove_mac(ifc->port, ifc->dev_mac);
	memset(ifc->dev_mac, 0, sizeof(ifc->dev_mac));
}
