/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of neighbors behind a VXLAN. Runs in neigh. Each neighbor of an interface
 * over a vxlan device has headers that forwarders copy: the router MAC is from the neighbor
 * table, the VTEP from the forwarding database of the device, all else from the settings of
 * the device.
 */
#include "neigh/internal.h"

#include <stdlib.h>
#include <string.h>

#include "fib/vxlan.h"

#define TTL_DEFAULT 64u
/* Source ports, if the device has none: RFC 7348, 4.1; RFC 6335, 6. */
#define FROM_LOW  49152u
#define FROM_HIGH 65535u

/* --- the copy for forwarders ---------------------------------------------------------- */

void
svi_copy(struct neigh *n, const struct iface *ifc, struct fib_iface *fi)
{
	const struct link *vxlan = link_find(n, ifc->vxlan);
	struct fib_vxlan *v = &fi->vxlan;
	const struct kmon_tunnel *k;

	if (vxlan == NULL ||
	    !vxlan->known) /* the device is gone; the interface will be removed */
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
	svi_note_due(n, ifidx);
}

/* --- neighbors ------------------------------------------------------------------------ */

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

/*
 * Write the headers for a neighbor. Without a VTEP that forwarders can serve they are
 * empty.
 */
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
			abort(); /* out of memory for a few hundred octets */
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
