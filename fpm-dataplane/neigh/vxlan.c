/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP over VXLAN. Runs in neigh. A bridge of the kernel whose only port is a vxlan device is
 * an interface of the dataplane (the SVI of an L3VNI of EVPN). If the bridge has VLANs and
 * the device is external (a single vxlan device), each VLAN on the bridge that has a VNI is
 * an interface.
 *
 * vxlan_hop.c makes the headers of the neighbors of such an interface. vxlan_table.c has
 * the table by which received packets find their interface.
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

/* --- which bridges -------------------------------------------------------------------- */

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
			tunnel_refuse(n, l, reason);
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
	struct link *vxlan; /* a port that is a vxlan device; NULL: none is */
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
 * Return the vxlan device below a bridge if forwarders serve the bridge, or those of its
 * VLANs that have a VNI. NULL: forwarders serve neither, or there is no vxlan device.
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

/* Return the number of the chain for a pair of numbers. */
static uint32_t
chain_of(uint32_t a, uint32_t b)
{
	return (uint32_t)(mix64((uint64_t)a << 32 | b) >> 32) % LINK_CHAINS;
}

/* Return the VNI of a VLAN at a port; NULL: it has none. */
static struct vni *
vni_find(struct neigh *n, unsigned int ifindex, uint16_t vlan)
{
	struct vni *v;

	cds_hlist_for_each_entry_2 (v, &n->vni[chain_of(ifindex, vlan)], chain) {
		n->n_steps++;
		if (v->kernel.ifindex == ifindex && v->kernel.vlan == vlan)
			return v;
	}
	return NULL;
}

/*
 * Return the vxlan device below a link, and its VNI; NULL: the link is no interface over
 * VXLAN.
 */
static struct link *
svi_vxlan(struct neigh *n, const struct link *l, uint32_t *vni)
{
	const struct link *bridge = l->kernel.on == 0 ? NULL : link_find(n, l->kernel.on);
	const struct vni *of;
	struct link *vxlan;

	if (l->kernel.bridge) {
		vxlan = bridge_vxlan(n, l);
		if (vxlan == NULL || vxlan->kernel.tunnel.external)
			return NULL;
		*vni = vxlan->kernel.tunnel.vni;
		return vxlan;
	}
	/*
	 * A VLAN that carries other links stays with the kernel, because frames to the MAC
	 * of such a link, or with a second tag, must go to the kernel.
	 */
	if (n->n_vnis == 0 || bridge == NULL || l->kernel.vlan_type != VLAN_C_TYPE ||
	    link_carries(n, l->ifindex))
		return NULL;
	vxlan = bridge_vxlan(n, bridge);
	of = vxlan == NULL ? NULL : vni_find(n, vxlan->ifindex, l->kernel.vlan_id);
	if (of == NULL || !vxlan->kernel.tunnel.external)
		return NULL;
	*vni = of->kernel.vni;
	return vxlan;
}

void
vxlan_note(struct neigh *n, struct link *l)
{
	const struct link *bridge =
		l->kernel.master == 0 ? NULL : link_find(n, l->kernel.master);

	/* Not logged, because a device joins its bridge only after it was created. */
	if (bridge == NULL || !bridge->known || !bridge->kernel.bridge)
		l->tunnel_refused = "no-bridge";
	link_count_vxlan(n, l);
}

/* --- numbers -------------------------------------------------------------------------- */

/* Return the SVI with this vxlan device and VNI; 0: none. */
static uint16_t
svi_find(struct neigh *n, unsigned int vxlan, uint32_t vni)
{
	uint16_t i = n->svi_at[chain_of(vxlan, vni)];

	while (i != 0 && (n->iface[i].vxlan != vxlan || n->iface[i].vni != vni))
		i = n->iface[i].next_svi;
	return i;
}

static void
svi_chain(struct neigh *n, uint16_t ifidx)
{
	uint16_t *at = &n->svi_at[chain_of(n->iface[ifidx].vxlan, n->iface[ifidx].vni)];

	n->iface[ifidx].next_svi = *at;
	*at = ifidx;
}

static void
svi_unchain(struct neigh *n, uint16_t ifidx)
{
	uint16_t *at = &n->svi_at[chain_of(n->iface[ifidx].vxlan, n->iface[ifidx].vni)];

	while (*at != ifidx)
		at = &n->iface[*at].next_svi;
	*at = n->iface[ifidx].next_svi;
}

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
		link_count_vxlan(n, vxlan);
		return 0;
	}
	ifc = &n->iface[ifidx];
	ifc->svi = true;
	ifc->vxlan = vxlan->ifindex;
	ifc->vni = vni;
	svi_chain(n, ifidx);
	n->n_svis++;
	svi_note_due(n, ifidx);
	/*
	 * The first dump includes the neighbors, and the database of the device, unless an
	 * event made this interface after the dump had passed over the database.
	 */
	if (vxlan->n_svis++ == 0)
		vxlan->fdb_due = n->control != NULL || vxlan->fdb_refused;
	ifc->svi_came = n->control != NULL || vxlan->fdb_due;
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
	svi_unchain(n, ifidx);
	/* The device may have been replaced. */
	if (vxlan != NULL && vxlan->n_svis > 0 && --vxlan->n_svis == 0 &&
	    n->control != NULL)
		kmon_drop_fdb(n->control, vxlan->ifindex);
	tunnel_drop_number(n, ifidx);
}

/* --- the forwarding database ---------------------------------------------------------- */

/*
 * Return true if a device's forwarding database is needed. Other devices may have the MACs
 * of a whole data center.
 */
bool
fdb_wanted(void *ctx, unsigned int ifindex)
{
	struct link *l = link_find(ctx, ifindex);

	if (l != NULL && l->n_svis == 0)
		l->fdb_refused = true;
	return l != NULL && l->n_svis > 0;
}

void
fdb_event(void *ctx, const struct kmon_fdb *kf, bool gone)
{
	struct neigh *n = ctx;
	const struct link *l = link_find(n, kf->ifindex);
	uint32_t vni = kf->from_vni;

	if (l == NULL || l->n_svis == 0)
		return;
	if (vni == 0 && !l->kernel.tunnel.external)
		vni = l->kernel.tunnel.vni;
	if (vni != 0 && svi_find(n, kf->ifindex, vni) != 0) {
		svi_note_due(n, svi_find(n, kf->ifindex, vni));
		return;
	}
	for (uint16_t i = PORT_MAX; vni == 0 && i < n->iface_end; i++)
		if (n->iface[i].svi && n->iface[i].vxlan == kf->ifindex)
			svi_note_due(n, i);
}

/* --- VLANs with a VNI ----------------------------------------------------------------- */

void
vni_update(struct neigh *n, const struct kmon_vni *kv, bool gone)
{
	struct vni *v = vni_find(n, kv->ifindex, kv->vlan);

	if (gone && v != NULL) {
		cds_hlist_del(&v->chain);
		n->n_vnis--;
		free(v);
	}
	if (gone)
		return;
	if (v == NULL) {
		v = calloc(1, sizeof(*v));
		if (v == NULL)
			abort(); /* out of memory for some octets a VLAN */
		cds_hlist_add_head(&v->chain, &n->vni[chain_of(kv->ifindex, kv->vlan)]);
		n->n_vnis++;
	}
	v->kernel = *kv;
}

void
vnis_free(struct neigh *n)
{
	struct cds_hlist_node *next;

	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (struct cds_hlist_node *at = n->vni[i].next; at != NULL; at = next) {
			next = at->next;
			free(caa_container_of(at, struct vni, chain));
		}
}

/* --- once per round ------------------------------------------------------------------- */

/* Read the forwarding database of an SVI's vxlan device, if this is still to be done. */
static void
fdb_read(struct neigh *n, uint16_t ifidx)
{
	static struct log_limit limit;
	struct link *vxlan = link_find(n, n->iface[ifidx].vxlan);
	char name[sizeof(vxlan->name)];
	unsigned int missed;
	int rc;

	if (vxlan == NULL || !vxlan->fdb_due)
		return;
	vxlan->fdb_due = false;
	/* Events that come during the reading may delete the device, and free `vxlan`. */
	memcpy(name, vxlan->name, sizeof(name));
	rc = kmon_read_fdb(n->control, vxlan->ifindex);
	if (rc == 0)
		return;
	n->resync = true; /* a resync within a second reads the VNIs, too */
	if (log_allowed(&limit, &missed))
		log_warn(
			"neigh: forwarding database not read dev=%s error=\"%s\" missed=%u",
			name, strerror(-rc), missed);
}

/*
 * Ask for all that the kernel reported before the bridge was an interface of ours: the
 * forwarding database of its device, and its neighbors.
 */
static void
svi_catch_up(struct neigh *n, uint16_t ifidx)
{
	fdb_read(n, ifidx);
	kmon_report_neighbors_on(n->control, n->iface[ifidx].kernel.ifindex);
}

/*
 * The first loop may append SVIs to the list: when it reads the forwarding database of a
 * device, entries of other SVIs over this device are reported, too.
 */
void
svis_apply(struct neigh *n)
{
	for (uint16_t k = 0; k < n->n_svis_due; k++) {
		struct iface *ifc = &n->iface[n->svi_due[k]];

		n->n_steps++;
		if (ifc->svi && ifc->svi_came && n->control != NULL) {
			ifc->svi_came = false;
			svi_catch_up(n, n->svi_due[k]);
		}
	}
	for (uint16_t k = 0; k < n->n_svis_due; k++) {
		struct iface *ifc = &n->iface[n->svi_due[k]];

		if (ifc->svi && ifc->svi_due) {
			ifc->svi_due = false;
			nb_apply_iface(n, n->svi_due[k]);
		}
	}
	n->n_svis_due = 0;
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

void
vxlans_publish(struct neigh *n)
{
	for (uint16_t i = PORT_MAX; n->below_due && n->n_svis > 0 && i < n->iface_end;
	     i++) {
		n->n_steps++;
		if (n->iface[i].svi && below_changed(n, i))
			iface_publish(n, i);
	}
	vxlans_renew(n);
}
