/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place: find the interface, VRF and local address for the packets of a session. bfdd's
 * message has no VRF, an interface only if the session names one, and no local address if
 * the configuration has none. The missing facts follow from the interfaces and the FIB.
 *                                                                                    [bfd]
 */
#include <string.h>

#include "bfd/impl.h"
#include "fib/tunnel.h"
#include "fib/fib.h"

static bool
addr_is_zero(const struct ipaddr *a)
{
	static const struct ipaddr zero;

	return memcmp(a, &zero, sizeof(zero)) == 0;
}

/*
 * Return the interface of the dataplane that bfdd names; 0: there is none. The kernel
 * serves sessions over tunnels and VXLAN, because it gets all packets to this host that
 * arrive through them.
 */
static uint16_t
iface_named(const struct fib *fib, const struct bfd_dplane_session *told)
{
	uint16_t by_name = 0;

	for (uint16_t i = 1; i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(fib, i);

		if (iface == NULL || iface->ifindex == 0 || iface->tunnel.family != 0 ||
		    iface->vxlan.family != 0)
			continue;
		if (iface->ifindex == told->ifindex)
			return i;
		if (told->ifname[0] != '\0' &&
		    strncmp(iface->name, told->ifname, sizeof(iface->name)) == 0)
			by_name = i;
	}
	return by_name; /* the interface may have been created again with another index */
}

/* Return how many VRFs (with table main) have the address; *vrf is the first of them. */
static unsigned int
vrfs_of(const struct fib *fib, uint8_t family, const struct ipaddr *addr, uint16_t *vrf)
{
	unsigned int n = 0;

	for (uint16_t v = 0; v < FIB_VRF_NONE; v++) {
		fib_path path;

		if (v != 0 && fib_vrf(fib, v) == NULL)
			continue;
		path = fib_resolve(fib, v, family, addr, 0);
		/* A VRF without the address may find it in table main: count it once. */
		if (path_kind(path) != PATH_LOCAL || (v != 0 && n > 0 && *vrf == 0))
			continue;
		if (n++ == 0)
			*vrf = v;
	}
	return n;
}

static void
place_refuse(struct place *place, const char *reason)
{
	place->by = BY_NONE;
	place->reason = reason;
}

/*
 * Return true for a member of a bridge, bond or team. As in Linux, packets of one hop that
 * it receives come from the device above, so no session has it as its interface.
 */
static bool
iface_is_member(const struct fib *fib, uint16_t ifidx)
{
	const struct fib_iface *iface = ifidx == 0 ? NULL : fib_iface(fib, ifidx);

	return iface != NULL && iface->member;
}

/* Find the place of a session that names an interface. */
static void
place_named(const struct bfd *b, const struct bfd_dplane_session *told, struct place *place)
{
	uint16_t ifidx = iface_named(b->fib, told);
	const struct fib_iface *iface = ifidx == 0 ? NULL : fib_iface(b->fib, ifidx);
	bool multihop = (told->flags & BFD_DPLANE_MULTIHOP) != 0;

	if (iface == NULL) {
		place->ifindex = netif_index(b, told->ifindex, told->ifname);
		place->by = BY_KERNEL;
		if (place->ifindex == 0)
			place_refuse(place, "the interface does not exist");
		return;
	}
	place->by = BY_FORWARDERS;
	place->ifidx = multihop ? 0 : ifidx;
	place->ifindex = iface->ifindex;
	place->vrf = iface->vrf;
	if (addr_is_zero(&place->local))
		place->local = netif_source(b, told->family, iface->ifindex, &told->dst);
}

/* Return the interface on which a path has its neighbor; 0: none. */
static uint16_t
path_iface(const struct fib *fib, fib_path path)
{
	if (path_kind(path) == PATH_ONLINK)
		return (uint16_t)path_index(path);
	if (path_kind(path) == PATH_ADJ)
		return fib->adj[path_index(path)].ifidx;
	return 0;
}

/* Return the path to the peer; PATH_KERNEL if it leaves by a tunnel or by VXLAN. */
static fib_path
path_of(const struct fib *fib, uint16_t vrf, const struct bfd_dplane_session *told)
{
	fib_path path = fib_resolve(fib, vrf, told->family, &told->dst, 0);
	const struct fib_iface *iface = fib_iface(fib, path_iface(fib, path));

	return path_tunnel(fib, path) != NULL || (iface != NULL && iface->vxlan.family != 0)
		       ? PATH(PATH_KERNEL, 0)
		       : path;
}

/*
 * Return the interface whose subnet has the peer, in a VRF; 0: none. A route through a
 * gateway, perhaps the default route, does not count.
 */
static uint16_t
subnet_iface(const struct fib *fib, uint16_t vrf, const struct bfd_dplane_session *told)
{
	fib_path path = path_of(fib, vrf, told);
	const struct fib_adj *adj = &fib->adj[path_index(path)];

	if (path_kind(path) == PATH_ADJ &&
	    (adj->family != told->family || !ipaddr_equal(&adj->addr, &told->dst)))
		return 0;
	return path_iface(fib, path);
}

/*
 * Return how many VRFs (with table main) have the peer of a session of one hop in a subnet;
 * *vrf is the first of them.
 */
static unsigned int
vrfs_with_peer(const struct fib *fib, const struct bfd_dplane_session *told, uint16_t *vrf)
{
	unsigned int n = 0;

	for (uint16_t v = 0; v < FIB_VRF_NONE; v++) {
		uint16_t ifidx;

		if (v != 0 && fib_vrf(fib, v) == NULL)
			continue;
		ifidx = subnet_iface(fib, v, told);
		/* A VRF without a route finds the route of table main. */
		if (ifidx == 0 || fib_iface(fib, ifidx) == NULL ||
		    fib_iface(fib, ifidx)->vrf != v)
			continue;
		if (n++ == 0)
			*vrf = v;
	}
	return n;
}

/* Find the place of a session by the route to the peer. */
static void
place_routed(const struct bfd *b, const struct bfd_dplane_session *told,
	     struct place *place)
{
	bool multihop = (told->flags & BFD_DPLANE_MULTIHOP) != 0;
	fib_path path = path_of(b->fib, place->vrf, told);
	uint16_t ifidx = multihop ? path_iface(b->fib, path)
				  : subnet_iface(b->fib, place->vrf, told);
	const struct fib_iface *iface = ifidx == 0 ? NULL : fib_iface(b->fib, ifidx);

	if (path_kind(path) == PATH_KERNEL && place->vrf == 0) {
		place->by = BY_KERNEL;
		return;
	}
	if (path_kind(path) == PATH_KERNEL || path_kind(path) == PATH_LOCAL) {
		place_refuse(
			place,
			path_kind(path) == PATH_LOCAL
				? "the peer's address is one of this router"
				: "in this VRF, the route to the peer leaves by no port");
		return;
	}
	if (iface != NULL && addr_is_zero(&place->local))
		place->local = netif_source(b, told->family, iface->ifindex, &told->dst);
	if (multihop) {
		/* The packets follow the current route, so no interface is stored. */
		place->by = BY_FORWARDERS;
		return;
	}
	if (iface == NULL) {
		place_refuse(place, "no connected subnet has the peer");
		return;
	}
	place->by = BY_FORWARDERS;
	place->ifidx = ifidx;
	place->ifindex = iface->ifindex;
}

void
place_find(const struct bfd *b, const struct bfd_dplane_session *told, struct place *place)
{
	unsigned int n = 1;

	*place = (struct place){.local = told->src};
	/* Some versions of bfdd send a global source for a link-local peer: ignore it. */
	if (told->family == 6 && ipaddr_is_linklocal6(&told->dst) &&
	    !ipaddr_is_linklocal6(&told->src))
		place->local = (struct ipaddr){{0}};
	if (told->ifindex != 0 || told->ifname[0] != '\0') {
		place_named(b, told, place);
	} else {
		if (!addr_is_zero(&told->src)) {
			n = vrfs_of(b->fib, told->family, &told->src, &place->vrf);
			if (n > 1) {
				place_refuse(place, "several VRFs have the local address: "
						    "name the interface");
				return;
			}
		} else if ((told->flags & BFD_DPLANE_MULTIHOP) == 0 &&
			   vrfs_with_peer(b->fib, told, &place->vrf) > 1) {
			place_refuse(place, "subnets of several VRFs have the peer: "
					    "name the interface");
			return;
		}
		place_routed(b, told, place);
		/* The FIB has no addresses of interfaces that are no ports. */
		if (n == 0 && place->by != BY_KERNEL)
			place_refuse(place, "no interface has the local address");
	}
	if (place->by == BY_FORWARDERS && iface_is_member(b->fib, place->ifidx))
		place_refuse(place, "the interface is a member of a bridge, bond or team");
	else if (place->by == BY_FORWARDERS && addr_is_zero(&place->local))
		place_refuse(place, "the kernel has no source address for the peer");
}

/*
 * Return false if the kernel chose the local address, and chooses another address now. A
 * session that is Up keeps its address as long as the router has it.
 */
static bool
local_holds(const struct bfd *b, const struct bfd_dplane_session *told,
	    const struct place *place, bool up)
{
	struct ipaddr now;

	if (ipaddr_equal(&told->src, &place->local) ||
	    (up && path_kind(fib_resolve(b->fib, place->vrf, told->family, &place->local,
					 0)) == PATH_LOCAL))
		return true;
	now = netif_source(b, told->family, place->ifindex, &told->dst);
	return addr_is_zero(&now) || ipaddr_equal(&now, &place->local);
}

/* Return false if the route chose the interface, and now leads to a different one. */
static bool
route_holds(const struct bfd *b, const struct bfd_dplane_session *told,
	    const struct place *place)
{
	uint16_t ifidx;

	if (told->ifindex != 0 || told->ifname[0] != '\0')
		return true;
	/* While a link is down, another route may cover its subnet: the session stays. */
	ifidx = subnet_iface(b->fib, place->vrf, told);
	return ifidx == 0 || ifidx == place->ifidx;
}

bool
place_holds(const struct bfd *b, const struct bfd_dplane_session *told,
	    const struct place *place, bool up)
{
	const struct fib_iface *iface;

	/* An interface may become a port, and a route or an address may be added. */
	if (place->by != BY_FORWARDERS)
		return false;
	if (place->ifidx == 0)
		return addr_is_zero(&told->src) ||
		       path_kind(fib_resolve(b->fib, place->vrf, told->family, &told->src,
					     0)) == PATH_LOCAL;
	iface = fib_iface(b->fib, place->ifidx);
	return iface != NULL && !iface->member && iface->ifindex == place->ifindex &&
	       iface->vrf == place->vrf && local_holds(b, told, place, up) &&
	       route_holds(b, told, place);
}
