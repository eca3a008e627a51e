/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make interfaces, VLANs, VRFs, next hops and routes as the daemon's threads do, all at
 * once before the forwarder runs. At the turn of a row, choose the objects that the
 * forwarder uses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <string.h>

#include "base/inet.h"
#include "fib/label.h"
#include "fib/rules.h"
#include "fib/tunnel.h"
#include "tags.h"

#define VLAN_IN  PORT_MAX           /* MANY VLANs on the ingress port */
#define S_VLAN   (VLAN_IN + MANY)   /* the service VLAN */
#define TWO_IN   (S_VLAN + 1)       /* the VLAN inside the service VLAN */
#define VLAN_OUT (TWO_IN + 1)       /* N_ADJ */
#define TWO_OUT  (VLAN_OUT + N_ADJ) /* N_ADJ */
#define TUNNEL   (TWO_OUT + N_ADJ)  /* N_ADJ */
#define SVI      (TUNNEL + N_ADJ)   /* MANY over VXLAN */
#define MACVLAN  (SVI + MANY)       /* N_VRRP on the ingress port */

/* Ingress interfaces, once in table main and once in VRFs. */
static struct fib_iface *plain[2][MANY], *vlan[2][MANY];
static struct fib_vlans *vlans, *macvlans;
static struct poptrie *all, *ten;

struct fib_iface *
world_iface(uint16_t ifidx, uint16_t port)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	*i = (struct fib_iface){.ifidx = ifidx,
				.port = port,
				.port_id = (uint16_t)(port - IN),
				.mtu_bytes = 1500,
				.mtu6_bytes = 1500,
				.mac = {2, 0, 0, 0, (uint8_t)(port - IN), 1},
				.up = true,
				.mpls = true,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.ifindex = ifidx + 10u};
	return i;
}

static struct fib_iface *
tagged(struct fib_iface *i, uint16_t type, unsigned int id)
{
	i->tag[i->n_tags++] = (struct fib_tag){.type = type, .id = (uint16_t)id};
	i->n_written = i->n_tags;
	return i;
}

static void
ifaces_in(struct fib *fib)
{
	vlans = calloc(1, sizeof(*vlans));
	for (unsigned int k = 0; k < MANY; k++) {
		for (int v = 0; v < 2; v++) {
			plain[v][k] = world_iface(IN, IN);
			vlan[v][k] = tagged(world_iface((uint16_t)(VLAN_IN + k), IN),
					    VLAN_C_TYPE, C_FIRST + k);
			plain[v][k]->vrf = vlan[v][k]->vrf = v == 1 ? (uint16_t)(k + 1) : 0;
		}
		vlans->ifidx[0][C_FIRST + k] = (uint16_t)(VLAN_IN + k);
	}
	vlans->ifidx[1][S_TAG] = S_VLAN;
	fib->iface[S_VLAN] = tagged(world_iface(S_VLAN, IN), VLAN_S_TYPE, S_TAG);
	fib->vlans[S_VLAN] = calloc(1, sizeof(struct fib_vlans));
	fib->vlans[S_VLAN]->ifidx[0][C_FIRST] = TWO_IN;
	fib->iface[TWO_IN] = tagged(tagged(world_iface(TWO_IN, IN), VLAN_S_TYPE, S_TAG),
				    VLAN_C_TYPE, C_FIRST);
}

static void
macvlans_make(struct fib *fib)
{
	const uint32_t n_entries = 4 * 256; /* as neigh makes the table: macs_make() */
	struct fib_macs *macs =
		calloc(1, sizeof(*macs) + n_entries * sizeof(macs->entry[0]));

	macvlans = calloc(1, sizeof(*macvlans));
	macs->mask = n_entries - 1;
	macvlans->macs = macs;
	macvlans->any_macs = true;
	for (unsigned int k = 0; k < N_VRRP; k++) {
		struct fib_iface *i = world_iface((uint16_t)(MACVLAN + k), IN);
		uint32_t at;

		world_mac(k, i->mac);
		fib->iface[MACVLAN + k] = i;
		for (at = mac_hash(mac_word(i->mac)); macs->entry[at & macs->mask] != 0;
		     at++)
			;
		macs->entry[at & macs->mask] = adj_hop_make(i->mac, i->ifidx);
	}
}

static void
ifaces_out(struct fib *fib)
{
	for (uint16_t p = 1; p <= N_OUT; p++)
		fib->iface[IN + p] = world_iface(IN + p, IN + p);
	for (unsigned int a = 0; a < N_ADJ; a++) {
		uint16_t port = (uint16_t)(IN + world_port(a));
		uint16_t one = (uint16_t)(VLAN_OUT + a), two = (uint16_t)(TWO_OUT + a);

		fib->iface[one] = tagged(world_iface(one, port), VLAN_C_TYPE, C_OUT + a);
		fib->iface[two] = tagged(tagged(world_iface(two, port), VLAN_S_TYPE, S_TAG),
					 VLAN_C_TYPE, C_OUT + a);
		fib->group[1 + a] = group_word_single(PATH(PATH_ADJ, 1 + a));
		fib->egress[1 + a] = IN; /* all sources are behind IN */
	}
}

#define LABEL_GROUP (1 + N_ADJ) /* plus the egress port: the group of a label */

static void
labels_make(struct fib *fib)
{
	for (unsigned int a = 0; a < N_ADJ; a++) {
		struct fib_encap *e = &fib->encap[1 + a];

		e->next = PATH(PATH_ADJ, 1 + a);
		for (unsigned int i = 0; i < LABEL_WORDS; i++)
			e->entry[i] = htonl((PUSHED + i) << 12);
	}
	for (unsigned int port = 1; port <= N_OUT; port++)
		fib->label[LABEL + port] = LABEL_GROUP + port;
	fib->label[VPN] = LABEL_GROUP;
	fib->group[LABEL_GROUP] = group_word_single(PATH(PATH_VRF, 1));
}

/* Let routes and labels push `push` labels, or none. */
static void
labels_turn(struct fib *fib, unsigned int push)
{
	enum path_kind kind = push > 0 ? PATH_ENCAP : PATH_ADJ;

	for (unsigned int a = 0; a < N_ADJ; a++) {
		fib->encap[1 + a].n = (uint8_t)push;
		fib->group[1 + a] = group_word_single(PATH(kind, 1 + a));
	}
	for (unsigned int port = 1; port <= N_OUT; port++)
		fib->group[LABEL_GROUP + port] = group_word_single(PATH(kind, port));
}

/* --- tunnels -------------------------------------------------------------------------- */

#define TUNNEL_GROUP \
	(LABEL_GROUP + 1 + N_OUT) /* plus the index of the next hop: routes to far ends */
#define HERE_GROUP (TUNNEL_GROUP + N_ADJ) /* and the next group: the end point */

static struct fib_tunnels *received;

/* Make the routes to the far ends and to this host, and the interfaces of tunnels. */
static int
tunnels_make(struct fib *fib, struct poptrie *pt)
{
	uint8_t net[4];
	int rc;

	fib->tunnels_state = FIB_TUNNELS_ALLOWED;
	received = calloc(1, sizeof(*received) + 2 * N_ADJ * sizeof(received->entry[0]));
	received->mask = 2 * N_ADJ - 1;
	put_be32(net, HERE);
	fib->group[HERE_GROUP] = group_word_single(PATH(PATH_LOCAL, 0));
	rc = poptrie_add(pt, net, 32, HERE_GROUP);
	for (unsigned int a = 0; a < N_ADJ && rc == 0; a++) {
		struct fib_iface *i = world_iface((uint16_t)(TUNNEL + a), IN);

		i->port = 0;
		fib->iface[TUNNEL + a] = i;
		fib->group[TUNNEL_GROUP + a] = group_word_single(PATH(PATH_ADJ, 1 + a));
		put_be32(net, THERE + a);
		rc = poptrie_add(pt, net, 32, TUNNEL_GROUP + a);
	}
	return rc == 0 ? poptrie_commit(pt) : rc;
}

/* Enter a tunnel in the table by which received packets find their tunnel. */
static void
tunnel_receive(struct fib *fib, uint16_t ifidx)
{
	const struct fib_tunnel *t = &fib->iface[ifidx]->tunnel;
	struct fib_tunnel_key key = {.local = t->local,
				     .remote = t->remote,
				     .family = 4,
				     .proto = t->gre ? PROTO_GRE : PROTO_IP4};
	uint32_t at = fib_tunnel_hash(fib, &key);

	while (received->entry[at & received->mask] != 0)
		at++;
	received->entry[at & received->mask] = ifidx;
}

/*
 * If the row has tunnels of GRE or IPIP, set the tunnels to its kind. If packets go into
 * tunnels, let all routes lead there.
 */
static void
tunnels_turn(struct fib *fib, const struct row *row)
{
	enum tunnelled how = row->unused         ? GRE
			     : row->into != BARE ? row->into
						 : row->out_of;
	bool out_of = row->out_of == GRE || row->out_of == IPIP;

	fib->tunnels = out_of || row->unused ? received : NULL;
	outer_turn(fib, row);
	if (how != GRE && how != IPIP)
		return;
	memset(received->entry, 0, 2 * N_ADJ * sizeof(received->entry[0]));
	for (unsigned int a = 0; a < N_ADJ; a++) {
		struct fib_tunnel *t = &fib->iface[TUNNEL + a]->tunnel;

		if (row->into != BARE)
			fib->group[1 + a] =
				group_word_single(PATH(PATH_ONLINK, TUNNEL + a));
		*t = (struct fib_tunnel){.family = 4,
					 .gre = how == GRE,
					 .inner4 = true,
					 .df = true,
					 .ttl = 64,
					 .bytes = (uint8_t)tunnel_bytes(how),
					 .proto_at = how == GRE ? 22 : 9,
					 .local = ipaddr_from_v4(HERE),
					 .remote = ipaddr_from_v4(THERE + a)};
		outer_write(t->head, how, HERE, THERE + a, 0);
		memset(t->head + 2, 0, 2);
		memset(t->head + 8, 0, 1);
		memset(t->head + 10, 0, 2);
		tunnel_receive(fib, (uint16_t)(TUNNEL + a));
	}
}

/* Add the ten routes with the next hops that interface `k` uses. */
static int
ten_add(struct poptrie *pt, const struct row *row, unsigned int k)
{
	int rc = 0;

	for (unsigned int i = 0; i < N_TEN && rc == 0; i++) {
		const uint8_t net[4] = {20, (uint8_t)i};

		rc = poptrie_add(pt, net, 16, 1 + world_ten(row, i, k));
	}
	return rc == 0 ? poptrie_commit(pt) : rc;
}

static int
vrfs_make(struct fib *fib)
{
	static const struct row in_vrf = {.ten = true, .vrf = true};

	for (unsigned int k = 0; k < MANY; k++) {
		struct fib_vrf *v = fib_vrf_new(fib, 1000 + k, "vrf");
		int rc = v == NULL ? -ENOMEM : ten_add(v->tries.pt4, &in_vrf, k);

		if (rc < 0)
			return rc;
		fib_vrf_publish(fib, k + 1, v);
	}
	return 0;
}

/*
 * Read the routes of a file. A port has as many next hops as VLANs. The address of a prefix
 * selects one of them.
 */
static int
routes_read(struct poptrie *pt, const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned int len, port;
	char text[64];
	int rc = f == NULL ? -errno : 0;

	while (rc == 0 && fscanf(f, "%63[^/]/%u %u\n", text, &len, &port) == 3) {
		uint8_t a[4];
		unsigned int which;

		if (inet_pton(AF_INET, text, a) != 1 || port == 0 || port > N_OUT)
			rc = -EINVAL;
		which = (a[0] * 7u + a[1] * 5u + a[2] * 3u + a[3]) % (N_ADJ / N_OUT);
		if (rc == 0)
			rc = poptrie_add(pt, a, len, 1 + (port - 1) + which * N_OUT);
	}
	if (f != NULL)
		fclose(f);
	return rc == 0 ? poptrie_commit(pt) : rc;
}

unsigned int
world_ten(const struct row *row, unsigned int route, unsigned int k)
{
	return (route + (row->vrf ? k : 0)) % N_ADJ;
}

int
world_make(struct world *w, const char *routes)
{
	static const struct row main_row = {.ten = true};
	int rc = fib_create(&w->fib, &(struct fib_conf){0});

	if (rc < 0)
		return rc;
	ifaces_in(w->fib);
	macvlans_make(w->fib);
	ifaces_out(w->fib);
	labels_make(w->fib);
	all = w->fib->copy[0].pt4;
	rc = fib_trie_large(w->fib, 4, &ten);
	if (rc == 0)
		rc = ten_add(ten, &main_row, 0);
	if (rc == 0)
		rc = vrfs_make(w->fib);
	if (rc == 0)
		rc = routes_read(all, routes);
	if (rc == 0)
		rc = tunnels_make(w->fib, all);
	if (rc == 0)
		rc = outer_make(w->fib, SVI, TUNNEL_GROUP, HERE_GROUP + 1);
	w->tries = w->fib->copy[0];
	w->few = filter_make(FEW_RULES);
	w->many = filter_make(MANY_RULES);
	if (w->few == NULL || w->many == NULL || hooks_make(plain[0][0]->name) < 0)
		rc = -EINVAL;
	return rc;
}

void
world_turn(struct world *w, const struct row *row)
{
	static struct fib_rules no_rule; /* no rule concerns packets of port IN */
	struct fib *fib = w->fib;

	w->tries.pt4 = row->ten ? ten : all;
	labels_turn(fib, row->push);
	tunnels_turn(fib, row);
	fib->filter = row->rules == MANY_RULES  ? w->many
		      : row->rules == FEW_RULES ? w->few
						: NULL;
	hooks_turn(fib, row);
	fib->rules[0] = row->ip_rules ? &no_rule : NULL;
	plain[0][0]->urpf4 = row->urpf;
	fib->iface[IN] = plain[0][0];
	fib->vlans[IN] = row->macvlans > 0                ? macvlans
			 : row->tags_in > 0 || row->vlans ? vlans
							  : NULL;
	for (unsigned int k = 0; k < MANY; k++)
		fib->iface[VLAN_IN + k] = vlan[row->vrf][k];
	for (unsigned int a = 0; a < N_ADJ; a++) {
		uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)world_port(a), 2};
		unsigned int vlan_of =
			row->mixed ? a : a % N_OUT; /* one VLAN on a port, or four */
		unsigned int ifidx = row->tags_out == 0   ? IN + world_port(a)
				     : row->tags_out == 1 ? VLAN_OUT + vlan_of
							  : TWO_OUT + vlan_of;

		fib->adj[1 + a].ifidx = (uint16_t)ifidx;
		fib->adj[1 + a].hop = adj_hop_make(mac, (uint16_t)ifidx);
	}
}

void
world_in(struct world *w, const struct row *row, unsigned int k)
{
	if (row->tags_in == 0 && row->macvlans == 0)
		w->fib->iface[IN] = plain[row->vrf][k];
}
