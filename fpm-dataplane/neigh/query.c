/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers queries of neighbors (`show neighbors`, in slices), interfaces and tunnels. The
 * keys are described in dist/openapi.yaml. Runs in neigh. The cursor is the number of the
 * next slot. Records never change slots, so a record that exists all the time is shown
 * exactly once.
 */
#include "base/log.h"
#include "neigh/internal.h"

#include <jansson.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <string.h>

#include "fib/urpf.h"
#include "fib/vxlan.h"

#define SLOTS_PER_SLICE 65536 /* slots that a slice examines, matching or not */

static const struct {
	uint16_t nud;
	const char *name;
} states[] = {
	{NUD_PERMANENT, "permanent"},
	{NUD_NOARP, "noarp"},
	{NUD_REACHABLE, "reachable"},
	{NUD_STALE, "stale"},
	{NUD_DELAY, "delay"},
	{NUD_PROBE, "probe"},
	{NUD_FAILED, "failed"},
	{NUD_INCOMPLETE, "incomplete"},
	{0, "none"},
};
#define N_STATES (sizeof(states) / sizeof(states[0]))

/* Return the index into states[]. */
static unsigned int
nb_state(struct nb *nb)
{
	for (unsigned int i = 0; i < N_STATES - 1; i++)
		if (nb->nud & states[i].nud)
			return i;
	return nb_is_watched(nb) || nb_is_waited_for(nb) ? N_STATES - 2 : N_STATES - 1;
}

static json_t *
nb_mac_json(const struct nb *nb)
{
	char mac[MAC_STRLEN];

	return nb->has_mac || nb->grace ? json_string(mac_str(nb->mac, mac)) : json_null();
}

/* Return the VTEP of a neighbor behind a VXLAN; null: only the kernel knows it. */
static json_t *
nb_vtep_json(const struct nb *nb)
{
	const struct fib_tunnel *t = &nb->vxlan->t;
	char text[PREFIX_STRLEN];

	return t->bytes == 0 ? json_null()
			     : json_string(ipaddr_str(&t->remote, t->family, text));
}

static json_t *
nb_row(const struct neigh *n, struct nb *nb)
{
	json_t *row;
	const struct iface *ifc = &n->iface[nb->ifidx];
	const char *dev = ifc->present ? ifc->kernel.name
			  : ifc->port  ? ifc->port->name
				       : "";
	char addr[PREFIX_STRLEN], shown[IFNAMSIZ];
	json_int_t adj = 0;

	if (nb_is_watched(nb))
		adj = cds_list_first_entry(&nb->watches, struct watch, list)->adj;
	else if (nb->host != NULL)
		adj = nb->host->fib.adj;
	row = json_pack("{s:s, s:s, s:o, s:s, s:I, s:s}", "address",
			ipaddr_str(&nb->addr, nb->family, addr), "dev",
			log_utf8(dev, shown, sizeof(shown)), "mac", nb_mac_json(nb),
			"state", states[nb_state(nb)].name, "adj", adj, "use",
			nb_is_watched(nb) ? "nexthop" : "host");
	if (nb->vxlan != NULL)
		json_object_set_new(row, "vtep", nb_vtep_json(nb));
	return row;
}

static bool
nb_matches(const struct msg_query *q, const struct nb *nb)
{
	if (q->family != 0 && q->family != nb->family)
		return false;
	return !q->has_prefix ||
	       (q->prefix.family == nb->family && prefix_covers(&q->prefix, &nb->addr));
}

static void
row_set(json_t *row, const char *key, json_t *value)
{
	json_object_set_new(row, key, value);
}

static void
row_set_count(json_t *row, const char *key, uint64_t count)
{
	row_set(row, key, json_integer((json_int_t)count));
}

/* Return null for an address of zeroes. */
static json_t *
source_json(uint8_t family, const struct ipaddr *addr)
{
	static const struct ipaddr none;
	char text[PREFIX_STRLEN];

	return ipaddr_equal(addr, &none) ? json_null()
					 : json_string(ipaddr_str(addr, family, text));
}

/*
 * Add the fields that a port has in `show ports` to the row of a VLAN, macvlan or tunnel.
 */
static void
row_add_vlan(json_t *row, const struct neigh *n, const struct fib_iface *fi)
{
	const struct iface *ifc = &n->iface[fi->ifidx];
	bool macvlan = ifc->kernel.macvlan != KMON_NO_MACVLAN, tunnel = ifc->tunnel;
	struct ipaddr src4 = ipaddr_from_v4(fi->src4);
	struct if_counters c;
	char text[16], mac[MAC_STRLEN], shown[IFNAMSIZ];

	/* The outermost tag is first. */
	if (fi->n_tags == 1)
		snprintf(text, sizeof(text), "%u", fi->tag[0].id);
	else
		snprintf(text, sizeof(text), "%u.%u", fi->tag[0].id, fi->tag[1].id);
	counters_interface(fi->ifidx, &c);
	if (!tunnel) {
		row_set(row, "vlan", macvlan ? json_null() : json_string(text));
		row_set(row, "macvlan", json_boolean(macvlan));
		row_set(row, "on",
			json_string(macvlan ? log_utf8(n->iface[ifc->on].kernel.name, shown,
						       sizeof(shown))
					    : ifc->port->name));
		row_set(row, "mac", json_string(mac_str(fi->mac, mac)));
	}
	row_set(row, "mtu", json_integer(fi->mtu_bytes));
	row_set(row, "addresses4", source_json(4, &src4));
	row_set(row, "addresses6", source_json(6, &fi->src6));
	row_set_count(row, "rx_packets", c.rx_packets);
	row_set_count(row, "rx_bytes", c.rx_bytes);
	row_set_count(row, "tx_packets", c.tx_packets);
	row_set_count(row, "tx_bytes", c.tx_bytes);
}

/* Return the name of the VRF of outer packets, or null. */
static json_t *
outer_vrf_json(const struct neigh *n, unsigned int number)
{
	const struct fib_vrf *vrf = number == 0 ? NULL : fib_vrf(n->fib, number);

	return vrf == NULL ? json_null() : json_string(vrf->name);
}

/* Add the kernel's settings of a tunnel, and the reason if the kernel itself serves it. */
static void
row_add_tunnel(json_t *row, struct neigh *n, const struct link *l)
{
	const struct kmon_tunnel *t = &l->kernel.tunnel;
	const struct fib_iface *fi = l->ifidx == 0 ? NULL : fib_iface(n->fib, l->ifidx);
	uint8_t state = atomic_load_explicit(&n->fib->tunnels_state, memory_order_relaxed);
	const char *by_kernel = l->tunnel_refused;
	struct ipaddr local, remote;

	if (by_kernel == NULL && state != FIB_TUNNELS_ALLOWED)
		by_kernel = state == FIB_TUNNELS_IPSEC ? "ipsec" : "starting";
	memcpy(local.octet, t->local, sizeof(local.octet));
	memcpy(remote.octet, t->remote, sizeof(remote.octet));
	row_set(row, "tunnel", json_string(tunnel_kind(&l->kernel)));
	if (t->kind == KMON_VXLAN && !t->external)
		row_set(row, "vni", json_integer(t->vni));
	row_set(row, "local", source_json(t->family, &local));
	row_set(row, "remote", source_json(t->family, &remote));
	row_set(row, "outer_vrf",
		fi == NULL ? json_null() : outer_vrf_json(n, fi->tunnel.vrf));
	if (fi != NULL) {
		row_set(row, "inner",
			json_string(!fi->tunnel.inner6   ? "ipv4"
				    : !fi->tunnel.inner4 ? "ipv6"
							 : "any"));
		row_set(row, "overhead", json_integer(fi->tunnel.bytes));
	}
	row_set(row, "by_kernel", by_kernel == NULL ? json_null() : json_string(by_kernel));
}

/* Add the vxlan device below a bridge, and the router MAC. */
static void
row_add_svi(json_t *row, struct neigh *n, const struct link *l)
{
	const struct link *vxlan = link_find(n, n->iface[l->ifidx].vxlan);
	char mac[MAC_STRLEN], shown[IFNAMSIZ];

	if (vxlan == NULL)
		return;
	row_set(row, "mac", json_string(mac_str(l->kernel.mac, mac)));
	row_set(row, "vxlan", json_string(log_utf8(vxlan->name, shown, sizeof(shown))));
	row_set(row, "vni", json_integer(n->iface[l->ifidx].vni));
	row_set(row, "outer_vrf",
		outer_vrf_json(n, fib_iface(n->fib, l->ifidx)->vxlan.vrf));
	row_set(row, "overhead",
		json_integer(vxlan->kernel.tunnel.family == 6 ? FIB_VXLAN6_BYTES
							      : FIB_VXLAN4_BYTES));
}

/* Add the check of the sources of an interface's packets. */
static void
row_add_urpf(json_t *row, const struct fib_iface *fi)
{
	static const char *const mode[] = {[FIB_URPF_OFF] = "off",
					   [FIB_URPF_STRICT] = "strict",
					   [FIB_URPF_LOOSE] = "loose"};

	row_set(row, "urpf", json_string(mode[fi->urpf4]));
	row_set_count(row, "urpf_dropped", counters_urpf(fi->ifidx));
}

/*
 * Add the settings that forwarders obey. `fpmctl audit` compares them with the kernel's.
 *
 * mtu_max     of a port, VLAN or macvlan: the largest MTU that the device allows
 * speed_mbit  of a port: the speed that its TAP was given; null: none, or refused
 * link        of a port over an interface of the kernel: that interface has a link
 */
static void
row_add_forwarders(json_t *row, const struct neigh *n, const struct fib_iface *fi)
{
	const struct iface *ifc = &n->iface[fi->ifidx];
	uint32_t mbit = ifc->speed_refused ? 0 : ifc->speed.mbit_per_s;
	char mac[MAC_STRLEN];
	json_t *o = json_pack(
		"{s:s, s:b, s:i, s:i, s:b, s:b, s:b}", "mac", mac_str(fi->mac, mac), "up",
		fi->up, "mtu", (int)fi->mtu_bytes, "mtu6", (int)fi->mtu6_bytes, "ipv6",
		!fi->ipv6_off, "forwarding4", fi->forward4, "forwarding6", fi->forward6);

	if (!ifc->tunnel)
		row_set(o, "mtu_max",
			json_integer(iface_dev_mtu(&n->iface[ifc->port->ifidx])));
	if (fi->ifidx < PORT_MAX) {
		row_set(o, "speed_mbit", mbit == 0 ? json_null() : json_integer(mbit));
		if (ifc->port->kernel_if[0] != '\0')
			row_set(o, "link", json_boolean(ifc->carrier));
	}
	row_set(row, "forwarders", o);
}

/* Return the name of a VRF as its FIB has it (struct fib_vrf). */
static json_t *
vrf_name_json(const struct link *vrf)
{
	return log_is_utf8(vrf->name) ? json_string(vrf->name)
				      : json_sprintf("table%u", vrf->kernel.vrf_table);
}

/* Return the class of an address: 0: IPv4; 1: IPv6; 2: link-local IPv6. */
static unsigned int
address_class(const struct kmon_addr *ka)
{
	bool link_local = ka->addr[0] == 0xfe && (ka->addr[1] & 0xc0) == 0x80;

	return ka->family == 4 ? 0 : link_local ? 2 : 1;
}

/*
 * Return the addresses of a link. The order of the list depends on whether an address was
 * there when the daemon started, so the classes are shown one after the other.
 */
static json_t *
addresses_json(const struct link *l)
{
	json_t *addresses = json_array();
	char text[PREFIX_STRLEN + 4], plain[PREFIX_STRLEN];
	struct local *a;

	for (unsigned int k = 0; k < 3; k++)
		cds_list_for_each_entry (a, &l->locals, list) {
			struct ipaddr addr;

			if (address_class(&a->addr) != k)
				continue;
			memcpy(addr.octet, a->addr.addr, sizeof(addr.octet));
			snprintf(text, sizeof(text), "%s/%u",
				 ipaddr_str(&addr, a->addr.family, plain), a->addr.plen);
			json_array_append_new(addresses, json_string(text));
		}
	return addresses;
}

static json_t *
interface_row(struct neigh *n, const struct link *l)
{
	const struct link *vrf = link_vrf(n, l->kernel.master), *owner = link_owner(n, l);
	char shown[IFNAMSIZ];
	json_t *row;

	row = json_pack("{s:s, s:I, s:b, s:b, s:o, s:n, s:b}", "name",
			log_utf8(l->name, shown, sizeof(shown)), "ifindex",
			(json_int_t)l->ifindex, "port",
			l->ifidx != 0 && l->ifidx < PORT_MAX, "up", l->told && l->told_up,
			"addresses", addresses_json(l), "vlan", "macvlan", false);
	row_set(row, "vrf", vrf == NULL ? json_null() : vrf_name_json(vrf));
	row_set(row, "part_of",
		owner == NULL
			? json_null()
			: json_string(log_utf8(owner->kernel.name, shown, sizeof(shown))));
	if (n->n_mpls > 0 || n->conf.mpls_all)
		row_set(row, "mpls",
			json_boolean(l->mpls || (n->conf.mpls_all && l->ifidx != 0)));
	if (l->ifidx != 0) {
		row_add_urpf(row, fib_iface(n->fib, l->ifidx));
		row_add_forwarders(row, n, fib_iface(n->fib, l->ifidx));
	}
	if (l->ifidx >= PORT_MAX)
		row_add_vlan(row, n, fib_iface(n->fib, l->ifidx));
	if (tunnel_kind(&l->kernel) != NULL)
		row_add_tunnel(row, n, l);
	if (n->iface[l->ifidx].svi)
		row_add_svi(row, n, l);
	return row;
}

/* List all links: some thousand at most. */
static void
query_list_interfaces(struct neigh *n, struct msg_query *q)
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (const struct link *l = n->link[i]; l != NULL; l = l->next)
			if (l->known)
				json_array_append_new(q->rows, interface_row(n, l));
}

/* Return true for the tunnel without addresses that each tunnel module makes by itself. */
static bool
tunnel_is_fallback(const struct link *l)
{
	static const uint8_t any[16];
	const struct kmon_tunnel *t = &l->kernel.tunnel;

	return !l->kernel.admin_up && memcmp(t->local, any, sizeof(any)) == 0 &&
	       memcmp(t->remote, any, sizeof(any)) == 0;
}

/* Add {name, kind, reason} for a tunnel; `reason` is a constant, or NULL: null. */
static void
tunnel_row_add(struct msg_query *q, const struct link *l, const char *reason)
{
	char shown[IFNAMSIZ];

	json_array_append_new(q->rows,
			      json_pack("{s:s, s:s, s:s?}", "name",
					log_utf8(l->name, shown, sizeof(shown)), "kind",
					tunnel_kind(&l->kernel), "reason", reason));
}

/*
 * List the tunnels that the kernel serves, with the reason, and vxlan devices with a filter
 * of VNIs, with reason null. Other tunnels need no row, so a router with thousands of
 * tunnels has few rows.
 */
static void
query_list_tunnels(struct neigh *n, struct msg_query *q)
{
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (const struct link *l = n->link[i]; l != NULL; l = l->next) {
			if (!l->known || tunnel_kind(&l->kernel) == NULL)
				continue;
			if (l->tunnel_refused != NULL && !tunnel_is_fallback(l))
				tunnel_row_add(q, l, l->tunnel_refused);
			else if (l->kernel.tunnel.vnifilter && l->tunnel_refused == NULL)
				tunnel_row_add(q, l, NULL);
		}
}

/*
 * Add one row: the number of neighbors by family and state, and the number of neighbors for
 * which packets wait.
 */
static void
query_summarize(const struct neigh *n, struct msg_query *q)
{
	unsigned int count[2][N_STATES] = {{0}};
	json_t *family[2] = {json_object(), json_object()};

	for (uint32_t slot = 0; slot < n->n_slot; slot++)
		if (n->nb_slot[slot] != NULL)
			count[n->nb_slot[slot]->family == 6][nb_state(n->nb_slot[slot])]++;
	for (unsigned int f = 0; f < 2; f++)
		for (unsigned int i = 0; i < N_STATES; i++)
			json_object_set_new(family[f], states[i].name,
					    json_integer(count[f][i]));
	json_array_append_new(q->rows,
			      json_pack("{s:o, s:o, s:i}", "ipv4", family[0], "ipv6",
					family[1], "waited_for", (int)n->n_gleans));
}

void
query_answer(struct neigh *n, struct msg_query *q)
{
	uint64_t slot = q->cursor[0];
	uint64_t end = slot + SLOTS_PER_SLICE;
	unsigned int n_rows = 0;

	if (q->rows == NULL)
		q->rows = json_array();
	if (end > n->n_slot)
		end = n->n_slot;
	if (q->kind == QUERY_INTERFACES)
		query_list_interfaces(n, q);
	if (q->kind == QUERY_TUNNELS)
		query_list_tunnels(n, q);
	if (q->kind == QUERY_NEIGH_SUMMARY)
		query_summarize(n, q);
	if (q->kind != QUERY_NEIGHBORS)
		end = 0;
	for (; slot < end && n_rows < q->max; slot++) {
		struct nb *nb = n->nb_slot[slot];

		if (nb == NULL || !nb_matches(q, nb))
			continue;
		json_array_append_new(q->rows, nb_row(n, nb));
		n_rows++;
	}
	q->cursor[0] = slot;
	q->done = q->kind != QUERY_NEIGHBORS || slot >= n->n_slot;
	q->m.type = MSG_REPLY;
	worker_send(q->from, &q->m);
}
