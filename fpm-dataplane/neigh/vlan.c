/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VLANs and macvlans that the kernel has on a port's TAP, or on such a VLAN. Each becomes
 * an interface of the dataplane with a number of its own when it is reported. Runs in
 * neigh. Its state, MTU, MAC, addresses and neighbors are handled like those of a port.
 * This file handles its tag and its number only; macvlan.c publishes the MACs of macvlans.
 */
#include "neigh/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/limits.h"

static unsigned int
vlan_depth(const struct neigh *n, uint16_t ifidx)
{
	const struct iface *ifc = &n->iface[ifidx];

	return ifc->on == 0 ? 0 : 1 + vlan_depth(n, ifc->on);
}

static const char *
vlan_type_name(uint16_t type)
{
	return type == VLAN_S_TYPE ? "802.1ad" : "802.1Q";
}

/* Return the entry of a VLAN in the table. */
static _Atomic uint16_t *
vlan_entry(struct fib_vlans *table, const struct kmon_link *kl)
{
	return &table->ifidx[kl->vlan_type == VLAN_S_TYPE][kl->vlan_id];
}

bool
vlan_is_same(const struct neigh *n, uint16_t ifidx, const struct kmon_link *kl)
{
	const struct kmon_link *was = &n->iface[ifidx].kernel;

	return kl->on == was->on && kl->macvlan == was->macvlan &&
	       kl->vlan_type == was->vlan_type && kl->vlan_id == was->vlan_id;
}

/* Return why a VLAN or macvlan on interface `on` is not forwarded; NULL: it is. */
static const char *
vlan_refusal(const struct neigh *n, const struct kmon_link *kl, uint16_t on)
{
	if (kl->macvlan == KMON_MACVLAN_BY_SOURCE)
		return "mode-source";
	if (kl->macvlan != KMON_NO_MACVLAN)
		return NULL;
	if (kl->vlan_id == 0)
		return "priority-tag";
	if (n->iface[on].kernel.macvlan != KMON_NO_MACVLAN)
		return "on-macvlan";
	return vlan_depth(n, on) == VLAN_TAGS ? "third-tag" : NULL;
}

/* Add the interface to the list of the interface below. */
static void
vlan_list(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx], *below = &n->iface[ifc->on];

	ifc->prev_on = below->last_on;
	*(ifc->prev_on == 0 ? &below->first_on : &n->iface[ifc->prev_on].next_on) = ifidx;
	below->last_on = ifidx;
}

/*
 * Remove the interface from the list of the interface below, and empty the list of the
 * interfaces above it. Those interfaces exist until the kernel reports their deletion.
 */
static void
vlan_unlist(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx], *below = &n->iface[ifc->on];
	uint16_t next;

	for (uint16_t i = ifc->first_on; i != 0; i = next) {
		next = n->iface[i].next_on;
		n->iface[i].next_on = n->iface[i].prev_on = 0;
	}
	if (ifc->prev_on != 0)
		n->iface[ifc->prev_on].next_on = ifc->next_on;
	else if (below->first_on == ifidx)
		below->first_on = ifc->next_on;
	if (ifc->next_on != 0)
		n->iface[ifc->next_on].prev_on = ifc->prev_on;
	else if (below->last_on == ifidx)
		below->last_on = ifc->prev_on;
}

uint16_t
vlan_add(struct neigh *n, const struct link *l)
{
	const struct kmon_link *kl = &l->kernel;
	uint16_t on = kl->on == 0 ? 0 : iface_by_ifindex(n, kl->on), ifidx;
	struct fib_vlans *table;
	const char *reason;

	if (on == 0 || n->iface[on].tunnel) /* a tunnel or an SVI */
		return 0;
	reason = vlan_refusal(n, kl, on);
	if (reason == NULL && (table = vlan_table(n, on)) == NULL)
		reason = "no-memory";
	if (reason != NULL) {
		if (kl->macvlan != KMON_NO_MACVLAN)
			log_warn("neigh: macvlan not forwarded dev=%s reason=%s", kl->name,
				 reason);
		else
			log_warn("neigh: vlan not forwarded dev=%s id=%u reason=%s",
				 kl->name, kl->vlan_id, reason);
		return 0;
	}
	/*
	 * Enable the offload after the table exists, so that a forwarder that receives a
	 * frame without its tag finds the table. Ask the device once, because n_written of
	 * a VLAN must not change.
	 */
	if (kl->macvlan == KMON_NO_MACVLAN && n->iface[on].on == 0 &&
	    !n->iface[on].tags_asked) {
		n->iface[on].tags_asked = true;
		n->iface[on].takes_tags = port_take_tags(n->iface[on].port);
	}
	ifidx = vlan_take_number(n);
	if (ifidx == 0) {
		table_refuse(TABLE_vlans);
		n->vlan_left_out = true;
		return 0;
	}
	table_used(TABLE_vlans, ++n->n_vlans);
	n->iface[ifidx] = (struct iface){.port = n->iface[on].port,
					 .on = on,
					 .forward4 = !l->forward4_off,
					 .kernel = *kl,
					 .present = true};
	vlan_list(n, ifidx);
	counters_interface_begin(ifidx);
	if (ifidx >= n->iface_end)
		n->iface_end = ifidx + 1;
	iface_publish(n, ifidx);
	if (kl->macvlan != KMON_NO_MACVLAN) {
		log_info("neigh: macvlan added dev=%s on=%s", kl->name,
			 n->iface[on].kernel.name);
		return ifidx; /* link_changed() makes its MAC known */
	}
	/* Release: a forwarder that finds the number finds the interface. */
	atomic_store_explicit(vlan_entry(table, kl), ifidx, memory_order_release);
	log_info("neigh: vlan added dev=%s port=%s tag=%s id=%u", kl->name,
		 n->iface[ifidx].port->name, vlan_type_name(kl->vlan_type), kl->vlan_id);
	return ifidx;
}

void
vlan_remove(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];
	_Atomic uint16_t *entry = vlan_entry(vlan_table(n, ifc->on), &ifc->kernel);
	bool macvlan = ifc->kernel.macvlan != KMON_NO_MACVLAN;

	if (macvlan)
		log_info("neigh: macvlan removed dev=%s port=%s", ifc->kernel.name,
			 ifc->port->name);
	else
		log_info("neigh: vlan removed dev=%s port=%s", ifc->kernel.name,
			 ifc->port->name);
	/*
	 * After missed events additions are reported first: another VLAN may have the tag.
	 */
	/* Release, as where a number is stored. The entry 0 leads to no further data. */
	if (!macvlan && atomic_load_explicit(entry, memory_order_relaxed) == ifidx)
		atomic_store_explicit(entry, 0, memory_order_release);
	nb_forget_iface(n, ifidx);
	ifc->present = false;
	/*
	 * Publish the interface as down, because a forwarder that is between two stages may
	 * still read it. The forwarder then sends nothing.
	 */
	iface_refresh(n, ifidx);
	iface_lends_no_more(n, ifidx);
	mac_release(ifc);
	if (macvlan)
		macvlan_forget_mac(n, ifidx);
	vlan_unlist(n, ifidx);
	vlan_retire_number(n, ifidx);
}
