/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of the links of the control namespace, which are found by ifindex and reported
 * to rib and punt. Runs in neigh. The other files of neigh/ call this file, which calls
 * none of them.
 */
#include "neigh/internal.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"

static struct link **
link_chain(struct neigh *n, uint32_t ifindex)
{
	return &n->link[ifindex % LINK_CHAINS];
}

struct link *
link_find(struct neigh *n, uint32_t ifindex)
{
	struct link *l = *link_chain(n, ifindex);

	while (l != NULL && l->ifindex != ifindex)
		l = l->next;
	return l;
}

struct cds_hlist_head *
link_tagged(struct neigh *n, unsigned int on, uint16_t vlan)
{
	return &n->tagged[mix64((uint64_t)on << 16 | vlan) % LINK_CHAINS];
}

#define MASTERS_MAX 4 /* a bond in a bridge in a VRF, and one more */

const struct link *
link_vrf(struct neigh *n, unsigned int ifindex)
{
	const struct link *l = ifindex == 0 ? NULL : link_find(n, ifindex);

	/* A member of a bond, team or bridge is in the VRF of that device. */
	for (unsigned int i = 0; i < MASTERS_MAX && l != NULL && l->known; i++) {
		if (l->kernel.vrf_table != 0)
			return l;
		l = l->kernel.master == 0 ? NULL : link_find(n, l->kernel.master);
	}
	return NULL;
}

const struct link *
link_owner(struct neigh *n, const struct link *l)
{
	const struct link *m = l->ifidx == 0 || l->kernel.master == 0
				       ? NULL
				       : link_find(n, l->kernel.master);

	return m != NULL && m->known && m->kernel.vrf_table == 0 ? m : NULL;
}

uint32_t
link_table(struct neigh *n, const struct link *l)
{
	const struct link *vrf =
		l->kernel.vrf_table != 0 ? l : link_vrf(n, l->kernel.master);

	return vrf == NULL || vrf->kernel.vrf_table == RT_TABLE_MAIN
		       ? 0
		       : vrf->kernel.vrf_table;
}

struct link *
link_get(struct neigh *n, uint32_t ifindex)
{
	struct link *l = link_find(n, ifindex), **to = link_chain(n, ifindex);

	if (l != NULL)
		return l;
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		log_error("neigh: interface ignored reason=no-memory ifindex=%u", ifindex);
		return NULL;
	}
	l->ifindex = ifindex;
	CDS_INIT_LIST_HEAD(&l->locals);
	l->next = *to;
	*to = l;
	return l;
}

/*
 * Take a link out of the chains of the link below it and of its master, and out of counts.
 */
static void
link_untie(struct neigh *n, struct link *l)
{
	if (!l->known)
		return;
	cds_hlist_del(&l->above);
	cds_hlist_del(&l->member);
	cds_hlist_del(&l->tagged);
	if (l->kernel.tunnel.link != 0)
		n->n_bound[l->kernel.tunnel.link % LINK_CHAINS]--;
	l->known = false;
	link_count_vxlan(n, l);
}

void
link_set(struct neigh *n, struct link *l, const struct kmon_link *kl)
{
	link_untie(n, l);
	l->known = true;
	l->kernel = *kl;
	link_count_vxlan(n, l);
	if (kl->tunnel.link != 0)
		n->n_bound[kl->tunnel.link % LINK_CHAINS]++;
	cds_hlist_add_head(&l->above, &n->above[kl->on % LINK_CHAINS]);
	cds_hlist_add_head(&l->member, &n->member[kl->master % LINK_CHAINS]);
	cds_hlist_add_head(&l->tagged, link_tagged(n, kl->on, kl->vlan_id));
}

void
link_free(struct neigh *n, struct link *l)
{
	struct link **p = link_chain(n, l->ifindex);
	struct local *a, *next;

	link_untie(n, l);
	while (*p != l)
		p = &(*p)->next;
	*p = l->next;
	cds_list_for_each_entry_safe (a, next, &l->locals, list)
		free(a);
	free(l);
}

void
link_free_all(struct neigh *n)
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		while (n->link[i] != NULL)
			link_free(n, n->link[i]);
}

uint16_t
iface_by_ifindex(struct neigh *n, uint32_t ifindex)
{
	const struct link *l = link_find(n, ifindex);

	return l == NULL ? 0 : l->ifidx;
}

/* --- reports to rib and punt ---------------------------------------------------------- */

static void
link_send(struct neigh *n, struct worker *to, const struct link *l, bool gone)
{
	struct msg_link *m = msg_new(MSG_LINK, sizeof(*m));

	m->ifindex = l->ifindex;
	m->ifidx = l->ifidx;
	m->gone = gone;
	m->up = !gone && l->told_up;
	m->ignore_linkdown[0] = l->ignore_linkdown[0] || n->ignore_linkdown4_all;
	m->ignore_linkdown[1] = l->ignore_linkdown[1];
	m->ipv6_off = l->ipv6_off;
	m->no_ipv4 = l->n_addr4 == 0;
	m->vrf = l->vrf == FIB_VRF_NONE ? 0 : l->vrf;
	m->tunnel = l->ifidx != 0 && n->iface[l->ifidx].tunnel && !n->iface[l->ifidx].svi;
	m->gre = m->tunnel && tunnel_is_gre(&l->kernel.tunnel);
	memcpy(m->name, l->name, sizeof(m->name));
	worker_send(to, &m->m);
}

void
link_tell(struct neigh *n, const struct link *l, bool gone)
{
	link_send(n, n->conf.rib, l, gone);
	link_send(n, n->conf.punt, l, gone);
}

void
link_tell_settings(struct neigh *n, const struct link *l)
{
	if (l->told)
		link_send(n, n->conf.rib, l, false);
}

void
link_tell_up(struct neigh *n, struct link *l, bool up)
{
	if (l->told && l->told_up == up)
		return;
	l->told = true;
	l->told_up = up;
	link_tell(n, l, false);
}

enum fib_urpf
link_urpf4(const struct neigh *n, const struct link *l)
{
	uint8_t mode = l->rp_filter > n->rp_filter_all ? l->rp_filter : n->rp_filter_all;

	if (n->conf.rp_filter_ignored || mode == 0)
		return FIB_URPF_OFF;
	return mode == 1 || l->n_addr4 == 0 ? FIB_URPF_STRICT : FIB_URPF_LOOSE;
}

/*
 * Follow ignore_routes_with_linkdown. IPv4: it is on if the interface's value or the value
 * for all interfaces is on. IPv6: the kernel writes the value for all to each interface
 * (ip-sysctl.rst).
 */
void
link_conf_event(struct neigh *n, const struct kmon_conf *kc)
{
	bool of_all = kc->ifindex == KMON_CONF_ALL, *set;
	struct link *l = of_all ? NULL : link_find(n, kc->ifindex);

	if (l != NULL && kc->family == 4)
		l->forward4_off = !kc->forwarding;
	if (of_all && kc->family == 4)
		set = &n->ignore_linkdown4_all;
	else if (l != NULL)
		set = &l->ignore_linkdown[kc->family == 6];
	else
		return;
	if (*set == kc->ignore_linkdown)
		return;
	*set = kc->ignore_linkdown;
	if (l != NULL) {
		link_tell_settings(n, l);
		return;
	}
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (l = n->link[i]; l != NULL; l = l->next)
			link_tell_settings(n, l);
}
