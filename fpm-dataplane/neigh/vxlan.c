/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP over VXLAN. Runs in neigh. A bridge of the kernel whose only port is a vxlan device is an
 * interface of the dataplane (the SVI of an L3VNI of EVPN). If the bridge has VLANs and the device is
 * external (a single vxlan device), each VLAN on the bridge that has a VNI is an interface.
 *
 * Each neighbor of such an interface has headers that forwarders copy: the router MAC is from the
 * neighbor table, the VTEP from the forwarding database of the vxlan device, all else from the
 * settings of the device. This file makes these headers, and the table by which received packets
 * find their interface.
 *
 * A bridge with more ports stays with the kernel, and so does a vxlan device that
 * forwarders cannot serve. This file calls link_event.c back only by link_vlan_changed().
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "fib/vxlan.h"

#define ENTRIES_MIN 16u

#define TTL_DEFAULT 64u
/* Source ports, if the device has none: RFC 7348, 4.1; RFC 6335, 6. */
#define FROM_LOW  49152u
#define FROM_HIGH 65535u

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
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (struct link *l = n->link[i]; l != NULL; l = l->next)
			if (link_is_port_of(l, bridge) &&
			    l->kernel.tunnel.kind == KMON_VXLAN)
				tunnel_refuse(l, reason);
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
	struct ports p = {0};

	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (struct link *l = n->link[i]; l != NULL; l = l->next) {
			p.upper |= l->known && l->kernel.on == bridge->ifindex;
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

/* Return true if another link is on this one. */
static bool
link_carries(const struct neigh *n, unsigned int ifindex)
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (const struct link *l = n->link[i]; l != NULL; l = l->next)
			if (l->known && l->kernel.on == ifindex)
				return true;
	return false;
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

/* --- the copy for forwarders ------------------------------------------------------------ */

void
svi_copy(struct neigh *n, const struct iface *ifc, struct fib_iface *fi)
{
	const struct link *vxlan = link_find(n, ifc->vxlan);
	struct fib_vxlan *v = &fi->vxlan;
	const struct kmon_tunnel *k;

	if (vxlan == NULL ||
	    !vxlan->known) /* it is gone, and the interface will be removed */
		return;
	k = &vxlan->kernel.tunnel;
	v->family = k->family;
	v->ttl = k->ttl != 0 || k->ttl_inherit ? k->ttl : TTL_DEFAULT;
	v->tos = k->tos;
	v->tos_inherit = k->tos_inherit;
	/* As in Linux: on a bridge with VNIs of VLANs, frames do not request DF. */
	v->df = k->df && !k->external;
	v->ignore_df = k->ignore_df || k->external;
	v->csum = k->csum;
	v->zero_csum6 = k->zero_csum6;
	v->port = k->port;
	v->from_low = k->from_low != 0 ? k->from_low : FROM_LOW;
	v->from_high = k->from_low != 0 ? k->from_high : FROM_HIGH;
	v->vni = ifc->vni;
	v->flow_label = k->flow_label;
	memcpy(v->local.octet, k->local, family_octets(k->family));
	tunnel_below(n, k->link, &v->vrf, &v->link);
}

void
svi_note(struct neigh *n, uint16_t ifidx, const struct fib_iface *old,
	 const struct fib_iface *fi)
{
	if (old != NULL && memcmp(&old->vxlan, &fi->vxlan, sizeof(fi->vxlan)) == 0 &&
	    memcmp(old->mac, fi->mac, sizeof(fi->mac)) == 0)
		return;
	n->iface[ifidx].svi_due = n->svis_due = true;
}

/* --- neighbors -------------------------------------------------------------------------- */

struct hop_copy {
	struct fib_vxlan_hop fib;
	struct retired retired;
};

static void
hop_free(struct neigh *n, struct retired *r)
{
	free(caa_container_of(r, struct hop_copy, retired));
}

/* Return true if a connected subnet of the interface has the neighbor. */
static bool
subnet_has(struct neigh *n, const struct nb *nb)
{
	const struct link *l = link_find(n, fib_iface(n->fib, nb->ifidx)->ifindex);
	const struct local *a;

	if (l == NULL)
		return false;
	cds_list_for_each_entry (a, &l->locals, list) {
		struct prefix subnet = {.family = a->addr.family, .len = a->addr.plen};

		if (a->addr.family != nb->family)
			continue;
		memcpy(subnet.addr.octet, a->addr.peer, family_octets(nb->family));
		prefix_mask(&subnet);
		if (prefix_covers(&subnet, &nb->addr))
			return true;
	}
	return false;
}

/* Return true if the address may be that of a single VTEP. */
static bool
vtep_is_one(const struct kmon_fdb *vtep)
{
	static const uint8_t zero[16];
	const uint8_t *a = vtep->remote;

	if (memcmp(a, zero, family_octets(vtep->family)) == 0)
		return false;
	return vtep->family == 4 ? a[0] < 224
				 : a[0] != 0xff && !(a[0] == 0xfe && (a[1] & 0xc0) == 0x80);
}

/*
 * Return the VTEP to which frames to the MAC of a neighbor go. Without an entry of the
 * forwarding database the VTEP is the gateway itself, which zebra writes as a neighbor
 * without ARP, outside of all subnets of the bridge. For any other neighbor only the kernel
 * knows the VTEP: it floods the frame, or its entry names a next hop. Family 0: no VTEP.
 */
static struct kmon_fdb
vtep_of(struct neigh *n, const struct nb *nb)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct iface *ifc = &n->iface[nb->ifidx];
	const struct link *vxlan = link_find(n, ifc->vxlan);
	bool external = vxlan != NULL && vxlan->kernel.tunnel.external;
	const struct kmon_fdb *found =
		n->control == NULL ? NULL
				   : kmon_fdb_find(n->control, ifc->vxlan, nb->mac,
						   external ? ifc->vni : 0);
	struct kmon_fdb vtep = {0};

	if (found != NULL)
		return vtep_is_one(found) ? *found : vtep;
	if ((nb->nud & NUD_NOARP) == 0 || subnet_has(n, nb))
		return vtep;
	vtep.family = nb->family;
	memcpy(vtep.remote, nb->addr.octet, family_octets(nb->family));
	if (nb->family == 6 && memcmp(nb->addr.octet, mapped, sizeof(mapped)) == 0) {
		vtep.family = 4;
		memset(vtep.remote, 0, sizeof(vtep.remote));
		memcpy(vtep.remote, nb->addr.octet + 12, 4);
	}
	return vtep;
}

/*
 * Write all headers: IP, UDP, VXLAN, Ethernet. Fields that differ for each packet are zero.
 */
static void
head_make(const struct fib_iface *fi, const struct nb *nb, const struct kmon_fdb *vtep,
	  struct fib_tunnel *t)
{
	const struct fib_vxlan *v = &fi->vxlan;
	uint8_t *p = t->head;

	if (v->family == 4) {
		p[0] = 0x45;
		p[9] = PROTO_UDP;
		memcpy(p + 12, v->local.octet, 4);
		memcpy(p + 16, vtep->remote, 4);
		p += 20;
	} else {
		put_be32(p, 6u << 28 | v->flow_label);
		p[6] = PROTO_UDP;
		memcpy(p + 8, v->local.octet, 16);
		memcpy(p + 24, vtep->remote, 16);
		p += 40;
	}
	put_be16(p + 2, vtep->port != 0 ? vtep->port : v->port);
	p += UDP_BYTES;
	p[0] = VXLAN_VNI_FLAG;
	put_be32(p + 4, (vtep->vni != 0 ? vtep->vni : v->vni) << 8);
	p += VXLAN_BYTES;
	memcpy(p, nb->mac, sizeof(nb->mac));
	memcpy(p + 6, fi->mac, sizeof(fi->mac));
	t->bytes = (uint8_t)(p + ETH_BYTES - t->head);
	t->proto_at = t->bytes - 2;
}

/* Write the headers for a neighbor. Without a VTEP that forwarders can serve they are empty. */
static void
hop_make(struct neigh *n, const struct nb *nb, struct fib_vxlan_hop *h)
{
	const struct fib_iface *fi = fib_iface(n->fib, nb->ifidx);
	const struct fib_vxlan *v = &fi->vxlan;
	struct kmon_fdb vtep = vtep_of(n, nb);
	struct fib_tunnel *t = &h->t;

	h->ifidx = nb->ifidx;
	if (vtep.family != v->family)
		return;
	h->csum = v->csum;
	h->df6 = !v->ignore_df; /* as `df inherit` in Linux: no router fragments IPv6 */
	h->from_low = v->from_low;
	h->n_from = (uint16_t)(v->from_high - v->from_low + 1);
	t->family = v->family;
	t->gre = t->inner4 = t->inner6 = true;
	t->tos_inherit = v->tos_inherit;
	t->df = v->df;
	t->ignore_df = v->ignore_df;
	t->ttl = v->ttl;
	t->tos = v->tos;
	t->vrf = v->vrf;
	t->link = vtep.link != 0 ? vtep.link : v->link;
	t->local = v->local;
	memcpy(t->remote.octet, vtep.remote, sizeof(t->remote.octet));
	head_make(fi, nb, &vtep, t);
}

void
nb_renew_hop(struct neigh *n, struct nb *nb, bool usable)
{
	struct hop_copy *old = nb->vxlan == NULL
				       ? NULL
				       : caa_container_of(nb->vxlan, struct hop_copy, fib);
	struct hop_copy *copy = NULL;

	if (usable) {
		copy = calloc(1, sizeof(*copy));
		if (copy == NULL)
			abort(); /* a few hundred octets */
		hop_make(n, nb, &copy->fib);
		if (old != NULL && memcmp(&old->fib, &copy->fib, sizeof(old->fib)) == 0) {
			free(copy);
			return;
		}
	}
	nb->vxlan = copy == NULL ? NULL : &copy->fib;
	/*
	 * The caller stores the new headers in place of the old ones before the round ends.
	 */
	if (old != NULL)
		neigh_retire(n, &old->retired, hop_free);
}

void
nb_free_hop(struct nb *nb)
{
	if (nb->vxlan != NULL)
		free(caa_container_of(nb->vxlan, struct hop_copy, fib));
	nb->vxlan = NULL;
}

void
nb_publish(struct neigh *n, const struct nb *nb, uint32_t adj, uint64_t hop)
{
	/*
	 * Release: a forwarder that reads the headers or the MAC sees the interface
	 * published before. Without a VXLAN nothing is stored, because pages that were
	 * never written need no memory.
	 */
	if (n->iface[nb->ifidx].svi ||
	    atomic_load_explicit(&n->fib->vxlan_hop[adj], memory_order_relaxed) != NULL)
		atomic_store_explicit(&n->fib->vxlan_hop[adj], hop == 0 ? NULL : nb->vxlan,
				      memory_order_release);
	if (n->iface[nb->ifidx].svi)
		hop = 0; /* the loops for plain packets must skip it */
	atomic_store_explicit(&n->fib->adj[adj].hop, hop, memory_order_release);
}

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
			abort(); /* 12 octets a VLAN */
	}
	if (v == NULL)
		v = &n->vni[n->n_vnis++];
	*v = *kv;
}

void
vni_event(void *ctx, const struct kmon_vni *kv, bool gone)
{
	struct neigh *n = ctx;
	struct kmon_vni *v = vni_find(n, kv->ifindex, kv->vlan);
	const struct link *l = link_find(n, kv->ifindex);

	if (!gone)
		vni_set(n, kv);
	else if (v != NULL)
		*v = n->vni[--n->n_vnis];
	if (l != NULL && l->kernel.master != 0)
		link_vlan_changed(n, l->kernel.master, kv->vlan);
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
		n->resync = true; /* in a second; this reads them, too */
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
		abort(); /* 4 octets an interface, or a few more */
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

struct retired_vxlans {
	struct retired retired;
	struct fib_vxlans *vxlans;
};

static void
vxlans_free(struct neigh *n, struct retired *r)
{
	struct retired_vxlans *old = caa_container_of(r, struct retired_vxlans, retired);

	free(old->vxlans);
	free(old);
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
	struct retired_vxlans *retired;

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
	if (old == NULL)
		return;
	retired = calloc(1, sizeof(*retired));
	if (retired == NULL)
		abort(); /* a few octets */
	retired->vxlans = old;
	neigh_retire(n, &retired->retired, vxlans_free);
}
