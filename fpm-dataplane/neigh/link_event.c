/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces and addresses of the control namespace. Links are reported to rib and punt.
 * Addresses serve as the sources of ICMP errors and neighbor solicitations; their routes
 * come from the kernel's tables (rtnl). Runs in neigh.
 */
#include "neigh/internal.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"

/* --- addresses ------------------------------------------------------------------------ */

/*
 * Let interfaces choose again which addresses they borrow, if the link lends some, because
 * the link is in another VRF now.
 */
static void
link_lends_elsewhere(struct neigh *n, const struct link *l)
{
	const struct local *a;

	cds_list_for_each_entry (a, &l->locals, list)
		if (addr_is_lent(&a->addr))
			n->borrow_due[a->addr.family == 4 ? V4 : V6] = true;
}

/* Follow a link that entered, changed or left a VRF. */
static void
link_update_table(struct neigh *n, struct link *l)
{
	uint32_t table = link_table(n, l);

	if (table == l->table)
		return;
	l->table = table;
	link_lends_elsewhere(n, l);
	if (l->ifidx != 0)
		log_info("neigh: vrf of interface changed dev=%s table=%u", l->kernel.name,
			 table == 0 ? RT_TABLE_MAIN : table);
}

/*
 * Store and log the bond, bridge or team that the link is a member of. Routes then name
 * this owner, which is no interface of ours, so the kernel forwards.
 */
static void
link_update_owner(struct neigh *n, struct link *l)
{
	const struct link *owner = link_owner(n, l);
	uint32_t ifindex = owner != NULL ? owner->ifindex : 0;

	if (ifindex == l->owner)
		return;
	l->owner = ifindex;
	if (l->ifidx != 0)
		(void)iface_publish(n, l->ifidx);
	if (owner != NULL)
		log_warn("neigh: interface has a master dev=%s part_of=%s", l->kernel.name,
			 owner->kernel.name);
	else
		log_info("neigh: interface left its master dev=%s", l->kernel.name);
}

void
addr_event(void *ctx, const struct kmon_addr *ka, bool gone)
{
	struct neigh *n = ctx;
	struct link *l = gone ? link_find(n, ka->ifindex) : link_get(n, ka->ifindex);
	struct local *a;
	bool lent, no_ipv4;

	if (l == NULL)
		return;
	no_ipv4 = l->n_addr4 == 0;
	a = local_find(n, l, ka);
	lent = a != NULL && addr_is_lent(&a->addr);
	if (!gone)
		local_set(n, l, a, ka);
	else if (a != NULL)
		local_remove(n, l, a);
	if (no_ipv4 != (l->n_addr4 == 0))
		link_tell_settings(n, l);
	if (l->ifidx != 0)
		iface_publish(n, l->ifidx);
	if (lent || (!gone && addr_is_lent(ka)))
		iface_address_changed(n, l, ka->family);
	if (l->vrf != 0 && l->vrf != FIB_VRF_NONE)
		vrf_device_publish(n, l->vrf);
	if (l->ifidx != 0 &&
	    n->iface[l->ifidx].svi) /* the subnets of the svi may have neighbors now */
		svi_note_due(n, l->ifidx);
	if (!l->known && l->ifidx == 0 && cds_list_empty(&l->locals))
		link_free(n, l);
}

/* --- links ---------------------------------------------------------------------------- */

static void
link_warn_same_name(const struct neigh *n, const struct kmon_link *kl)
{
	for (uint16_t i = 1; i < PORT_MAX; i++)
		if (n->iface[i].port != NULL &&
		    strcmp(n->iface[i].port->name, kl->name) == 0)
			log_warn("neigh: port name in use name=%s ifindex=%u", kl->name,
				 kl->ifindex);
}

/*
 * Note a change of a link that tunnels may name: outer packets may be in another VRF now.
 */
static void
link_note_below(struct neigh *n, const struct link *l)
{
	n->below_due |= n->n_bound[l->ifindex % LINK_CHAINS] > 0;
}

/* Withdraw a link that became ours, or is no longer ours, so that it is reported as new. */
static void
link_withdraw(struct neigh *n, struct link *l)
{
	if (l->told)
		link_tell(n, l, true);
	l->told = false;
}

/* Call `fn` for each VLAN of the kernel on a link, ours or not. */
static void
link_each_vlan(struct neigh *n, unsigned int ifindex,
	       void (*fn)(struct neigh *n, struct link *l))
{
	struct link *l;

	cds_hlist_for_each_entry_2 (l, &n->above[ifindex % LINK_CHAINS], above)
		if (l->kernel.on == ifindex)
			fn(n, l);
}

static void link_changed(struct neigh *n, struct link *l);

/* Remove an interface that is no port. */
static void
iface_remove(struct neigh *n, uint16_t ifidx)
{
	if (n->iface[ifidx].svi)
		svi_remove(n, ifidx);
	else if (n->iface[ifidx].tunnel)
		tunnel_remove(n, ifidx);
	else
		vlan_remove(n, ifidx);
}

/* Handle a VLAN whose lower interface is gone or no longer ours. */
static void
vlan_detach(struct neigh *n, struct link *l)
{
	uint16_t ifidx = l->ifidx;

	if (ifidx == 0)
		return;
	l->ifidx = 0;
	link_each_vlan(n, l->ifindex, vlan_detach);
	iface_remove(n, ifidx);
	link_withdraw(n, l);
	link_changed(n, l);
}

static void
link_gone(struct neigh *n, struct link *l)
{
	uint16_t ifidx = l->ifidx;

	link_note_below(n, l);
	/* Clear the number first, or the VLANs on the link would become ours again. */
	l->ifidx = 0;
	if (ifidx != 0)
		link_each_vlan(n, l->ifindex, vlan_detach);
	l->ifidx = ifidx;
	if (ifidx >= PORT_MAX)
		iface_remove(n, ifidx);
	else if (ifidx != 0)
		iface_tap_gone(n, ifidx);
	if (l->known)
		link_tell(n, l, true);
	link_free(n, l);
}

static void
link_forget(struct neigh *n, struct link *l)
{
	uint32_t ifindex = l->ifindex;

	link_forget_vlans(n, ifindex);
	kmon_reset_link(n->control, ifindex, false);
	/*
	 * Normally kmon_reset_link() has removed the link. If not, remove it so that the
	 * walk ends.
	 */
	if (link_find(n, ifindex) != NULL)
		link_gone(n, link_find(n, ifindex));
}

static void
link_forget_where(struct neigh *n, unsigned int ifindex,
		  bool (*want)(struct neigh *n, const struct link *l, unsigned int ifindex))
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (struct link *l = n->link[i], *next; l != NULL; l = next) {
			next = l->next;
			if (l->known && want(n, l, ifindex)) {
				link_forget(n, l);
				next = n->link[i]; /* others may be freed as well */
			}
		}
}

static bool
link_is_on(struct neigh *n, const struct link *l, unsigned int ifindex)
{
	return l->kernel.on == ifindex;
}

void
link_forget_vlans(struct neigh *n, unsigned int ifindex)
{
	link_forget_where(n, ifindex, link_is_on);
}

static bool
link_is_on_bridge(struct neigh *n, const struct link *l)
{
	const struct link *on = l->kernel.on == 0 ? NULL : link_find(n, l->kernel.on);

	return on != NULL && on->known && on->kernel.bridge;
}

static bool
link_is_left_out(struct neigh *n, const struct link *l, unsigned int ifindex)
{
	/* The bridge, or the VLAN on a bridge, may be an interface over VXLAN. */
	if (l->ifidx == 0 && (l->kernel.bridge || link_is_on_bridge(n, l)))
		return true;
	if (l->ifidx == 0 && l->kernel.tunnel.kind != KMON_NO_TUNNEL)
		return tunnel_refusal(&l->kernel) == NULL;
	return l->ifidx == 0 && l->kernel.on != 0 && iface_by_ifindex(n, l->kernel.on) != 0;
}

/* Return the number of a link that is ours, or 0. */
static uint16_t
link_number(struct neigh *n, struct link *l)
{
	uint16_t ifidx = iface_of_tap(n, &l->kernel);

	if (ifidx == 0 && l->kernel.tunnel.kind == KMON_VXLAN)
		vxlan_note(n, l); /* the bridge above it is the interface */
	else if (ifidx == 0)
		ifidx = tunnel_add(n, l);
	if (ifidx == 0)
		ifidx = svi_add(n, l);
	return ifidx != 0 ? ifidx : vlan_add(n, l);
}

/* Return true if an interface that is no port is the same as when it was added. */
static bool
iface_is_same(struct neigh *n, const struct link *l)
{
	const struct kmon_link *kl = &l->kernel;

	if (n->iface[l->ifidx].svi)
		return svi_is_same(n, l);
	if (n->iface[l->ifidx].tunnel)
		return kl->tunnel.kind != KMON_NO_TUNNEL && tunnel_refusal(kl) == NULL;
	return vlan_is_same(n, l->ifidx, kl);
}

/*
 * Note a VLAN or macvlan that the router begins to serve some time after its first report,
 * for example because `ip link set type macvlan mode` changed its mode. Its neighbors were
 * ignored until now.
 */
static void
link_note_came(struct neigh *n, const struct link *l)
{
	struct iface *ifc = &n->iface[l->ifidx];

	if (l->name[0] != '\0' && n->control != NULL && !ifc->tunnel)
		ifc->came = n->came = true;
}

void
link_catch_up(struct neigh *n)
{
	for (uint16_t i = 1; n->came && i < n->iface_end; i++) {
		struct iface *ifc = &n->iface[i];

		if (ifc->came && ifc->present)
			kmon_report_neighbors_on(n->control, ifc->kernel.ifindex);
		ifc->came = false;
	}
	n->came = false;
}

static void
link_changed(struct neigh *n, struct link *l)
{
	const struct kmon_link *kl = &l->kernel;
	bool was_ours = l->ifidx != 0;

	link_note_below(n, l);
	/*
	 * A VLAN never changes its interface below or its tag, so a difference means missed
	 * events. A tunnel or an SVI may change.
	 */
	if (l->ifidx >= PORT_MAX && !iface_is_same(n, l)) {
		vlan_detach(n, l);
		return;
	}
	if (l->ifidx == 0) {
		l->ifidx = link_number(n, l);
		if (l->ifidx != 0) {
			link_withdraw(n, l);
			link_note_came(n, l);
		} else if (l->name[0] == '\0') {
			link_warn_same_name(n, kl);
		}
	}
	link_update_table(n, l);
	link_update_owner(n, l);
	if (strcmp(l->name, kl->name) != 0) {
		snprintf(l->name, sizeof(l->name), "%s", kl->name);
		l->told = false;
	}
	if (l->ifidx != 0)
		iface_changed(n, l->ifidx, kl);
	else
		link_tell_up(n, l, kl->admin_up);
	if (!was_ours && l->ifidx != 0)
		link_each_vlan(n, l->ifindex, link_changed);
}

/*
 * Update the members of a master, which may be reported after its members, and may be
 * removed before them.
 */
static void
link_members_changed(struct neigh *n, unsigned int ifindex)
{
	struct link *l;

	cds_hlist_for_each_entry_2 (l, &n->member[ifindex % LINK_CHAINS], member)
		if (l->kernel.master == ifindex)
			link_changed(n, l);
}

/* Retry VRFs without a number, and then their members, because a number may be free. */
static void
link_retry_vrfs(struct neigh *n)
{
	n->vrf_left_out = false;
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (struct link *l = n->link[i]; l != NULL; l = l->next) {
			if (l->vrf != FIB_VRF_NONE)
				continue;
			vrf_update(n, l);
			link_changed(n, l); /* routes may lead to it */
			link_members_changed(n, l->ifindex);
		}
}

/* Update a bridge whose port was added, removed or changed. */
static void
link_bridge_changed(struct neigh *n, unsigned int ifindex)
{
	struct link *l = ifindex == 0 ? NULL : link_find(n, ifindex);

	if (l == NULL || !l->known || !l->kernel.bridge)
		return;
	link_changed(n, l);
	if (n->n_vnis > 0)
		link_each_vlan(n, ifindex, link_changed);
}

/*
 * Update a bridge, or a VLAN of a bridge, above which a device was added, removed or
 * changed. Other VLANs of the bridge do not change.
 */
static void
link_below_changed(struct neigh *n, unsigned int ifindex)
{
	struct link *l = ifindex == 0 ? NULL : link_find(n, ifindex);
	const struct link *below;

	if (l == NULL || !l->known)
		return;
	below = l->kernel.on == 0 ? NULL : link_find(n, l->kernel.on);
	if (l->kernel.bridge || (n->n_vnis > 0 && below != NULL && below->kernel.bridge))
		link_changed(n, l);
}

/* Update the VLAN on a bridge whose VNI has changed. */
static void
link_vlan_changed(struct neigh *n, unsigned int bridge, uint16_t vlan)
{
	struct link *l;

	cds_hlist_for_each_entry_2 (l, link_tagged(n, bridge, vlan), tagged) {
		n->n_steps++;
		if (l->kernel.on == bridge && l->kernel.vlan_id == vlan)
			link_changed(n, l);
	}
}

void
vni_event(void *ctx, const struct kmon_vni *kv, bool gone)
{
	struct neigh *n = ctx;
	const struct link *l = link_find(n, kv->ifindex);

	vni_update(n, kv, gone);
	if (l != NULL && l->kernel.master != 0)
		link_vlan_changed(n, l->kernel.master, kv->vlan);
}

void
link_retry_vlans(struct neigh *n)
{
	if (!n->vlan_left_out || n->n_vlans > table_capacity(n->max_vlans))
		return;
	n->vlan_left_out = false;
	link_forget_where(n, 0, link_is_left_out);
	n->resync = true;
}

void
link_event(void *ctx, const struct kmon_link *kl, bool gone)
{
	struct neigh *n = ctx;
	struct link *l = gone ? link_find(n, kl->ifindex) : link_get(n, kl->ifindex);
	bool news = kl->vrf_table != 0;
	unsigned int master, on;
	uint16_t vrf;

	if (l == NULL)
		return;
	master = l->kernel.master;
	on = l->kernel.on;
	vrf = l->vrf;
	/* the members of the link may be in another VRF now */
	news |= !gone && (!l->known || master != kl->master);
	if (gone) {
		link_gone(n, l);
	} else {
		link_set(n, l, kl);
		vrf_update(n, l);
		link_changed(n, l);
	}
	if (news)
		link_members_changed(n, kl->ifindex);
	if (kl->bridge && n->n_vnis > 0)
		link_each_vlan(n, kl->ifindex, link_changed);
	link_bridge_changed(n, kl->master);
	link_below_changed(n, kl->on);
	if (master != kl->master)
		link_bridge_changed(n, master);
	if (on != kl->on)
		link_below_changed(n, on);
	if (gone)
		vrf_release(n, vrf);
	if (gone && vrf != 0 && n->vrf_left_out)
		link_retry_vrfs(n);
}
