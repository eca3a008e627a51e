/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP over VXLAN. Runs in neigh. A bridge of the kernel whose only port is a vxlan device is an
 * interface of the dataplane (the SVI of an L3VNI of EVPN). If the bridge has VLANs and the device is
 * external (a single vxlan device), each VLAN on the bridge that has a VNI is an interface.
 *
 * vxlan_hop.c makes the headers of its neighbors. This file makes the table by which received
 * packets find their interface.
 *
 * A bridge with more ports stays with the kernel, and so does a vxlan device that
 * forwarders cannot serve.
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "fib/vxlan.h"

#define ENTRIES_MIN 16u

/* --- which bridges ---------------------------------------------------------------------- */

static bool
link_is_port_of(const struct link *l, const struct link *bridge)
{
	return l->known && l->kernel.master == bridge->ifindex;
}

/* Note why the kernel keeps the vxlan devices of a bridge, and log it once for each. */
static void
vxlans_refuse(struct neigh *n, const struct link *bridge, const char *reason)
{
	struct link *l;

	cds_hlist_for_each_entry_2 (l, &n->member[bridge->ifindex % LINK_CHAINS], member)
		if (link_is_port_of(l, bridge) && l->kernel.tunnel.kind == KMON_VXLAN)
			tunnel_refuse(l, reason);
}

/* Return true if another link is on this one. */
static bool
link_carries(const struct neigh *n, unsigned int ifindex)
{
	const struct link *l;

	cds_hlist_for_each_entry_2 (l, &n->above[ifindex % LINK_CHAINS], above)
		if (l->kernel.on == ifindex)
			return true;
	return false;
}

/* The ports of a bridge. `upper`: devices are on the bridge. */
struct ports {
	struct link *vxlan; /* one of them; NULL: none is a vxlan device */
	unsigned int n;
	bool upper;
};

static struct ports
ports_of(struct neigh *n, const struct link *bridge)
{
	struct ports p = {.upper = link_carries(n, bridge->ifindex)};
	struct link *l;

	cds_hlist_for_each_entry_2 (l, &n->member[bridge->ifindex % LINK_CHAINS], member) {
		if (!link_is_port_of(l, bridge))
			continue;
		p.n++;
		if (l->kernel.tunnel.kind == KMON_VXLAN)
			p.vxlan = l;
	}
	return p;
}

/*
 * Return the vxlan device below a bridge if forwarders serve the bridge, or those of its VLANs that
 * have a VNI. NULL: forwarders serve neither, or there is no vxlan device.
 */
static struct link *
bridge_vxlan(struct neigh *n, const struct link *bridge)
{
	const char *reason = NULL;
	struct ports p;
	bool external;

	if (!bridge->known || !bridge->kernel.bridge)
		return NULL;
	p = ports_of(n, bridge);
	if (p.vxlan == NULL)
		return NULL;
	external = p.vxlan->kernel.tunnel.external;
	if (p.n > 1)
		reason = "ports";
	else if (external && !bridge->kernel.vlan_filtering)
		reason = "external";
	else if (!external && bridge->kernel.vlan_filtering)
		reason = "vlan-filtering";
	else if (!external && p.upper)
		reason = "vlan-or-macvlan";
	else
		reason = tunnel_refusal(&p.vxlan->kernel);
	vxlans_refuse(n, bridge, reason);
	return reason == NULL ? p.vxlan : NULL;
}

/* Return the VNI of a VLAN at a port; NULL: it has none. */
static struct kmon_vni *
vni_find(const struct neigh *n, unsigned int ifindex, uint16_t vlan)
{
	for (unsigned int i = 0; i < n->n_vnis; i++)
		if (n->vni[i].ifindex == ifindex && n->vni[i].vlan == vlan)
			return &n->vni[i];
	return NULL;
}

/* Return the vxlan device below a link, and its VNI; NULL: the link is no interface over VXLAN. */
static struct link *
svi_vxlan(struct neigh *n, const struct link *l, uint32_t *vni)
{
	const struct link *bridge = l->kernel.on == 0 ? NULL : link_find(n, l->kernel.on);
	const struct kmon_vni *of;
	struct link *vxlan;

	if (l->kernel.bridge) {
		vxlan = bridge_vxlan(n, l);
		if (vxlan == NULL || vxlan->kernel.tunnel.external)
			return NULL;
		*vni = vxlan->kernel.tunnel.vni;
		return vxlan;
	}
	/*
	 * Frames to the MAC of a device on the VLAN, or with a second tag, go to the
	 * kernel.
	 */
	if (n->n_vnis == 0 || bridge == NULL || l->kernel.vlan_type != VLAN_C_TYPE ||
	    link_carries(n, l->ifindex))
		return NULL;
	vxlan = bridge_vxlan(n, bridge);
	of = vxlan == NULL ? NULL : vni_find(n, vxlan->ifindex, l->kernel.vlan_id);
	if (of == NULL || !vxlan->kernel.tunnel.external)
		return NULL;
	*vni = of->vni;
	return vxlan;
}

void
vxlan_note(struct neigh *n, struct link *l)
{
	const struct link *bridge =
		l->kernel.master == 0 ? NULL : link_find(n, l->kernel.master);

	n->tunnels_due = true; /* the kernel may now have VNIs of its own */
	/* Not logged, because a device joins its bridge only after it was created. */
	if (bridge == NULL || !bridge->known || !bridge->kernel.bridge)
		l->tunnel_refused = "no-bridge";
}

/* --- numbers ---------------------------------------------------------------------------- */

uint16_t
svi_add(struct neigh *n, struct link *l)
{
	uint32_t vni;
	struct link *vxlan = svi_vxlan(n, l, &vni);
	struct iface *ifc;
	uint16_t ifidx;

	if (vxlan == NULL)
		return 0;
	ifidx = tunnel_take_number(n, l);
	if (ifidx == 0) {
		vxlan->tunnel_refused = "limit";
		return 0;
	}
	ifc = &n->iface[ifidx];
	ifc->svi = true;
	ifc->vxlan = vxlan->ifindex;
	ifc->vni = vni;
	n->n_svis++;
	n->svis_due = n->svi_came = true;
	/* The first dump includes the database of the device. */
	if (vxlan->n_svis++ == 0)
		vxlan->fdb_due = n->control != NULL;
	iface_publish(n, ifidx);
	log_info("neigh: interface over vxlan added dev=%s vxlan=%s vni=%u", l->kernel.name,
		 vxlan->kernel.name, vni);
	return ifidx;
}

bool
svi_is_same(struct neigh *n, const struct link *l)
{
	const struct iface *ifc = &n->iface[l->ifidx];
	uint32_t vni;
	const struct link *vxlan = svi_vxlan(n, l, &vni);

	return vxlan != NULL && vxlan->ifindex == ifc->vxlan && vni == ifc->vni;
}

void
svi_remove(struct neigh *n, uint16_t ifidx)
{
	struct link *vxlan = link_find(n, n->iface[ifidx].vxlan);

	log_info("neigh: interface over vxlan removed dev=%s", n->iface[ifidx].kernel.name);
	n->n_svis--;
	n->svi_went = true;
	if (vxlan != NULL && vxlan->n_svis > 0) /* the device may have been replaced */
		vxlan->n_svis--;
	tunnel_drop_number(n, ifidx);
}

/* --- the forwarding database ------------------------------------------------------------ */

/*
 * Return true if a device's forwarding database is needed. Other devices may have the MACs
 * of a whole data center.
 */
bool
fdb_wanted(void *ctx, unsigned int ifindex)
{
	const struct link *l = link_find(ctx, ifindex);

	return l != NULL && l->n_svis > 0;
}

void
fdb_event(void *ctx, const struct kmon_fdb *kf, bool gone)
{
	struct neigh *n = ctx;

	for (uint16_t i = PORT_MAX; n->n_svis > 0 && i < n->iface_end; i++) {
		struct iface *ifc = &n->iface[i];

		if (ifc->svi && ifc->vxlan == kf->ifindex &&
		    (kf->from_vni == 0 || kf->from_vni == ifc->vni))
			ifc->svi_due = n->svis_due = true;
	}
}

/* --- VLANs with a VNI ------------------------------------------------------------------- */

static void
vni_set(struct neigh *n, const struct kmon_vni *kv)
{
	struct kmon_vni *v = vni_find(n, kv->ifindex, kv->vlan);

	if (v == NULL && n->n_vnis == n->room_vnis) {
		n->room_vnis = n->room_vnis == 0 ? 64 : 2 * n->room_vnis;
		n->vni = realloc(n->vni, n->room_vnis * sizeof(*n->vni));
		if (n->vni == NULL)
			abort(); /* out of memory for 12 octets a VLAN */
	}
	if (v == NULL)
		v = &n->vni[n->n_vnis++];
	*v = *kv;
}

void
vni_update(struct neigh *n, const struct kmon_vni *kv, bool gone)
{
	struct kmon_vni *v = vni_find(n, kv->ifindex, kv->vlan);

	if (!gone)
		vni_set(n, kv);
	else if (v != NULL)
		*v = n->vni[--n->n_vnis];
}

/* --- once per round --------------------------------------------------------------------- */

/* Read the forwarding databases of devices that were not served before. */
static void
fdbs_read(struct neigh *n)
{
	static struct log_limit limit;
	unsigned int missed;

	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		struct link *vxlan =
			n->iface[i].svi ? link_find(n, n->iface[i].vxlan) : NULL;
		int rc;

		if (vxlan == NULL || !vxlan->fdb_due)
			continue;
		vxlan->fdb_due = false;
		rc = kmon_read_fdb(n->control, vxlan->ifindex);
		if (rc == 0)
			continue;
		n->resync = true; /* a resync within a second reads the VNIs, too */
		if (log_allowed(&limit, &missed))
			log_warn("neigh: forwarding database not read dev=%s error=\"%s\" "
				 "missed=%u",
				 vxlan->kernel.name, strerror(-rc), missed);
	}
}

void
svis_apply(struct neigh *n)
{
	if (n->svi_came && n->control != NULL) {
		n->svi_came = false;
		fdbs_read(n);
		/*
		 * The kernel reported the neighbors before the bridge was an interface of
		 * ours.
		 */
		kmon_report_neighbors(n->control);
	}
	if (n->svi_went && n->control != NULL) {
		n->svi_went = false;
		kmon_drop_fdb(n->control);
	}
	if (!n->svis_due)
		return;
	n->svis_due = false;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++)
		if (n->iface[i].svi && n->iface[i].svi_due) {
			n->iface[i].svi_due = false;
			nb_apply_iface(n, i);
		}
}

/* Return true if the kernel has VNIs that forwarders do not serve, or may have them. */
static bool
kernel_has_vxlan(const struct neigh *n)
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (const struct link *l = n->link[i]; l != NULL; l = l->next)
			if (l->known && l->kernel.tunnel.kind == KMON_VXLAN &&
			    (l->tunnel_refused != NULL || l->kernel.tunnel.external))
				return true;
	return false;
}

static bool
end_is_same(const struct fib_vxlan *a, const struct fib_vxlan *b)
{
	return a->family == b->family && a->vrf == b->vrf && a->port == b->port &&
	       ipaddr_equal(&a->local, &b->local);
}

/*
 * Put an interface into the table, and note whether it has the VRF, local address and port
 * of the others.
 */
static void
entry_put(const struct neigh *n, struct fib_vxlans *vxlans, const struct fib_iface *fi,
	  const struct fib_iface **first)
{
	uint32_t i = fib_vxlan_hash(n->fib, fi->vxlan.vrf, fi->vxlan.port, fi->vxlan.vni);

	while (vxlans->entry[i & vxlans->mask] != 0)
		i++;
	vxlans->entry[i & vxlans->mask] = fi->ifidx;
	if (*first == NULL) {
		*first = fi;
		vxlans->one_end = fi->ifidx;
	} else if (!end_is_same(&(*first)->vxlan, &fi->vxlan)) {
		vxlans->one_end = 0;
	}
}

static struct fib_vxlans *
vxlans_make(const struct neigh *n)
{
	const struct fib_iface *first = NULL;
	uint32_t n_entries = ENTRIES_MIN;
	struct fib_vxlans *vxlans;

	while (n_entries < 2u * n->n_svis)
		n_entries *= 2;
	vxlans = calloc(1, sizeof(*vxlans) + n_entries * sizeof(vxlans->entry[0]));
	if (vxlans == NULL)
		abort(); /* out of memory for 4 octets an interface, or a few more */
	vxlans->mask = n_entries - 1;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		const struct fib_iface *fi = n->iface[i].svi ? fib_iface(n->fib, i) : NULL;

		if (fi != NULL && fi->up)
			entry_put(n, vxlans, fi, &first);
	}
	if (kernel_has_vxlan(n))
		vxlans->one_end = 0;
	return vxlans;
}

/* Return true if the VRF of an interface's outer packets has changed, or their link. */
static bool
below_changed(struct neigh *n, uint16_t ifidx)
{
	const struct link *vxlan = link_find(n, n->iface[ifidx].vxlan);
	const struct fib_vxlan *v = &fib_iface(n->fib, ifidx)->vxlan;

	return vxlan != NULL && vxlan->known &&
	       tunnel_below_changed(n, vxlan->kernel.tunnel.link, v->vrf, v->link);
}

static bool
vxlans_equal(const struct fib_vxlans *a, const struct fib_vxlans *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->mask == b->mask && a->one_end == b->one_end &&
	       memcmp(a->entry, b->entry, (a->mask + 1u) * sizeof(a->entry[0])) == 0;
}

void
vxlans_publish(struct neigh *n)
{
	struct fib_vxlans *old = atomic_load_explicit(&n->fib->vxlans,
						      memory_order_relaxed),
			  *vxlans;

	for (uint16_t i = PORT_MAX; n->n_svis > 0 && i < n->iface_end; i++)
		if (n->iface[i].svi && below_changed(n, i))
			iface_publish(n, i);
	vxlans = n->n_svis == 0 ? NULL : vxlans_make(n);
	if (vxlans_equal(old, vxlans)) {
		free(vxlans);
		return;
	}
	/* Release: a forwarder that finds the table finds its entries and interfaces. */
	atomic_store_explicit(&n->fib->vxlans, vxlans, memory_order_release);
	if (old != NULL)
		neigh_retire_memory(n, old);
}
