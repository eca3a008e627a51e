/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * audit_read: read the sides that `fpmctl audit` compares: the RIB from the daemon, zebra
 * by vtysh, the kernel by rtnetlink. A whole side is read to a table; one prefix is read to
 * a->one and a->theirs.
 */
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel_event.h"
#include "base/log.h"
#include "base/rtproto.h"
#include "ctl/audit_state.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/kernel_rules.h"
#include "ctl/kernel_table.h"
#include "ctl/zebra.h"

static const struct prefix all_sources = {.family = 6};

bool
audit_hops_undecided(const char *hops)
{
	return hops != NULL && strcmp(hops, ZEBRA_UNDECIDED) == 0;
}

static void
audit_on_zebra(const char *vrf, const struct prefix *p, struct hops_text *w, void *ctx)
{
	struct audit *a = ctx;
	char *text;

	/* The daemon ignores these routes of zebra: each link has link-local addresses. */
	if (prefix_is_linklocal6(p))
		return;
	text = hops_join(w);
	table_add(&a->other, vrf == NULL ? 0 : places_find_vrf(&a->places, vrf), p,
		  audit_hops_undecided(text) ? HOPS_UNDECIDED : hops_hash(text));
	free(text);
}

/* --- the kernel's side ---------------------------------------------------------------- */

/*
 * Return true if the kernel's route must agree with the RIB. The daemon takes zebra's
 * routes from zebra, but they are in the kernel as well, where Linux uses them.
 */
static bool
kernel_route_counts(struct audit *a, const struct kernel_route *r, const struct place *at)
{
	bool of_zebra = rtproto_is_copy(r->protocol, r->metric);
	bool ruled = at->ruled[r->prefix.family == 6];

	if (at->src.len > 0)
		return true; /* read from the kernel with every value of routes.from */
	if (strcmp(a->from, "fpm") == 0) {
		if (r->protocol == RTPROT_KERNEL)
			return true;
		of_zebra |= r->protocol == RTPROT_FRR_PBR;
		/* zebra does not relay routes of the kernel in such tables. */
		a->with[PEER_KERNEL].n_not_obeyed += ruled && !of_zebra;
		return ruled && of_zebra;
	}
	/* zebra may have routes in unused tables, which it does not replay. */
	return place_is_zebras(at) || ruled || !of_zebra || strcmp(a->from, "kernel") == 0;
}

static uint64_t
kernel_route_rank(const struct audit *a, const struct kernel_route *r)
{
	/* The first route of equal metrics counts; `n` grows with each route. */
	return (r->is_local ? 0 : 1ull << 63) | (uint64_t)r->metric << 31 |
	       (uint64_t)r->preference << 29 | (a->other.n & 0x1fffffff);
}

static uint32_t
kernel_route_place(struct audit *a, struct kernel_route *r)
{
	return r->table == 254 && r->src.len == 0
		       ? 0
		       : places_find(&a->places, r->table,
				     r->src.len == 0 ? &all_sources : &r->src);
}

/*
 * Return the text of the next hops of a kernel's route, for a comparison with a route of
 * zebra whose copy it may be. The caller frees the text.
 */
static char *
copy_join(const struct kernel_route *r)
{
	struct hops_text copy = {.mtu_bytes = r->hops.mtu_bytes};
	char *text;

	for (unsigned int i = 0; i < r->hops.n; i++)
		hops_add_kind(&copy, r->hops.hop[i]);
	hops_drop_dead(&copy); /* zebra decides which next hops of its routes are used */
	if (r->prefix.family == 6)
		hops_drop_bare_push(&copy);
	text = hops_join(&copy);
	hops_free(&copy);
	return text;
}

static void
audit_on_kernel(struct kernel_route *r, void *ctx)
{
	struct audit *a = ctx;
	struct entry *e;
	char *text;

	if (r->noted == 0) {
		text = hops_join(&r->hops);
		r->noted = hops_hash(text);
		free(text);
		text = copy_join(r);
		r->noted_copy = hops_hash(text);
		free(text);
		r->noted_place = kernel_route_place(a, r);
	}
	if (!kernel_route_counts(a, r, &a->places.v[r->noted_place]))
		return;
	e = table_add(&a->other, r->noted_place, &r->prefix,
		      r->is_down ? HOPS_UNDECIDED : r->noted);
	e->copy = r->noted_copy;
	e->rank = kernel_route_rank(a, r);
}

/* Discard the routes of an answer that changes interrupted. */
static void
audit_on_kernel_begin(void *ctx)
{
	struct audit *a = ctx;

	a->other.n = a->other_kept;
	a->with[PEER_KERNEL].n_not_obeyed = a->not_obeyed_kept;
}

static void
theirs_free(struct audit *a)
{
	free(a->theirs);
	free(a->theirs_copy);
	a->theirs = a->theirs_copy = NULL;
}

static void
audit_on_kernel_one_begin(void *ctx)
{
	theirs_free(ctx);
}

/* Keep the best route of the queried place. */
static void
audit_on_kernel_one(struct kernel_route *r, void *ctx)
{
	struct audit *a = ctx;
	uint64_t rank = kernel_route_rank(a, r);
	uint32_t place = kernel_route_place(a, r);

	if (place != a->asking || !kernel_route_counts(a, r, &a->places.v[place]) ||
	    (a->theirs != NULL && rank >= a->theirs_rank))
		return;
	theirs_free(a);
	a->theirs = r->is_down ? strdup(ZEBRA_UNDECIDED) : hops_join(&r->hops);
	a->theirs_copy = copy_join(r);
	a->theirs_rank = rank;
	a->theirs_of_zebra = rtproto_is_copy(r->protocol, r->metric);
}

/* --- the RIB's side ------------------------------------------------------------------- */

/* Return the place of a row of `show routes`. */
static uint32_t
row_place(struct audit *a, const json_t *row)
{
	struct prefix src = all_sources;

	if (row_has(row, "from") && prefix_parse(row_str(row, "from"), &src, NULL) < 0)
		src = all_sources;
	if (row_has(row, "tos"))
		src = tos_condition((uint8_t)strtoul(row_str(row, "tos"), NULL, 16));
	return places_find(&a->places, (uint32_t)row_int(row, "table"), &src);
}

static bool
row_is_zebras(const json_t *row)
{
	return strcmp(row_str(row, "source"), "zebra") == 0;
}

/* Add the routes of a row, which has many prefixes. */
static bool
audit_on_rib(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	uint32_t place = row_place(a, row);
	const struct place *at = &a->places.v[place];
	bool of_zebra = row_is_zebras(row), hidden = row_true(row, "hidden");
	const json_t *prefix;
	bool is_noted[2] = {false, false};
	struct prefix p;
	uint64_t hash[2], copy[2];
	size_t i;

	json_array_foreach (json_object_get(row, "prefixes"), i, prefix) {
		struct entry *e;
		bool ip6;

		if (prefix_parse(item_str(prefix), &p, NULL) < 0)
			continue;
		ip6 = p.family == 6;
		if (!is_noted[ip6]) {
			hash[ip6] = audit_row_hash(at, row, ip6, AS_TOLD);
			copy[ip6] =
				audit_row_hash(at, row, ip6, ip6 ? AS_COPY6 : AS_KERNEL);
			is_noted[ip6] = true;
		}
		e = table_add(&a->rib, place, &p, hash[ip6]);
		e->copy = copy[ip6];
		e->of_zebra = of_zebra;
		e->hidden = hidden;
	}
	return true;
}

static bool
audit_on_route(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	const struct place *at = &a->places.v[a->asking];
	bool is_ipv6 = strchr(row_str(row, "prefix"), ':') != NULL;

	if (row_place(a, row) != a->asking)
		return true;
	free(a->one);
	free(a->one_copy);
	a->one = audit_row_text(at, row, is_ipv6, AS_TOLD);
	a->one_copy = audit_row_text(at, row, is_ipv6, is_ipv6 ? AS_COPY6 : AS_KERNEL);
	a->one_of_zebra = row_is_zebras(row);
	return true;
}

/* --- questions to the daemon ---------------------------------------------------------- */

int
audit_ask(struct audit *a, json_t *request,
	  bool (*on_row)(const json_t *row, const char *text, void *ctx))
{
	int rc = conn_ask(a->socket, request, on_row, a);

	json_decref(request);
	return rc;
}

static bool
audit_on_vrf(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	/*
	 * Names in `row` were made safe for a terminal, but a request needs the original.
	 */
	json_t *as_it_came = json_loads(text, 0, NULL);

	places_add_vrf(&a->places, row_str(as_it_came, "name"),
		       (uint32_t)row_int(row, "table"));
	json_decref(as_it_came);
	return true;
}

/* Make a request for a prefix in the queried place. */
static json_t *
route_request(const struct audit *a, const struct prefix *p)
{
	const struct place *at = &a->places.v[a->asking];
	char text[PREFIX_STRLEN];
	bool in_vrf = at->vrf != NULL && at->src.len == 0;
	json_t *request = json_pack("{s:s, s:s, s:b}", "show", "routes", "prefix",
				    prefix_str(p, text), "longest", 0);

	if (in_vrf)
		json_object_set_new(request, "vrf", json_string(at->vrf));
	else
		json_object_set_new(request, "all_tables",
				    json_boolean(!place_is_zebras(at)));
	if (a->peer == PEER_ZEBRA)
		json_object_set_new(request, "of", json_string("zebra"));
	return request;
}

bool
audit_kernels_by_zebra(const struct audit *a)
{
	return strcmp(a->from, "fpm") == 0;
}

static const struct kernel_link *
link_by_name(const struct audit *a, const char *dev)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < a->n_links; i++) {
		memcpy(name, a->links[i].name, sizeof(name));
		log_harmless(name);
		if (strcmp(name, dev) == 0)
			return &a->links[i];
	}
	return NULL;
}

/* Return true if the interface is a bridge, or a VLAN of a bridge. */
static bool
dev_is_of_bridge(const char *dev, void *ctx)
{
	const struct audit *a = ctx;
	const struct kernel_link *link = link_by_name(a, dev);

	if (link == NULL || strcmp(link->kind, "vlan") != 0)
		return link != NULL && strcmp(link->kind, "bridge") == 0;
	for (int i = 0; i < a->n_links; i++)
		if (a->links[i].ifindex == link->below)
			return strcmp(a->links[i].kind, "bridge") == 0;
	return false;
}

int
audit_ask_zebra(struct audit *a)
{
	long long least, most;

	if (a->links == NULL && (a->n_links = kernel_links(&a->links)) < 0) {
		fprintf(stderr, "fpmctl: cannot read the kernel's interfaces: %s\n",
			strerror(-a->n_links));
		return CTL_NO_DAEMON;
	}
	zebra_set_overlay(dev_is_of_bridge, a);
	/*
	 * A short query detects a zebra that hangs. The query for the whole table may take
	 * long.
	 */
	if (zebra_count(a->vtysh, 4, true, &least, &most) < 0)
		return CTL_NO_DAEMON;
	for (uint8_t family = 4; family <= 6; family += 2)
		if (zebra_table(a->vtysh, audit_kernels_by_zebra(a), family, audit_on_zebra,
				a) < 0)
			return CTL_NO_DAEMON;
	a->n_vrfs = 0;
	for (uint32_t i = 0; i < a->places.n; i++)
		a->n_vrfs += a->places.v[i].vrf != NULL && a->places.v[i].src.len == 0;
	return CTL_OK;
}

int
audit_ask_kernel(struct audit *a)
{
	struct route_reader to = {
		.on_begin = audit_on_kernel_begin, .on_route = audit_on_kernel, .ctx = a};

	for (uint8_t family = 4; family <= 6; family += 2) {
		a->other_kept = a->other.n;
		a->not_obeyed_kept = a->with[PEER_KERNEL].n_not_obeyed;
		if (kernel_table(family, NULL, &to) < 0)
			return CTL_NO_DAEMON;
	}
	return CTL_OK;
}

static void
audit_on_ruled(uint8_t family, uint32_t table, void *ctx)
{
	places_add_ruled(&((struct audit *)ctx)->places, family == 6, table);
}

int
audit_ask_rib(struct audit *a)
{
	int rc;

	places_find(&a->places, 254, &all_sources);
	if (kernel_rule_tables(4, audit_on_ruled, a) < 0 ||
	    kernel_rule_tables(6, audit_on_ruled, a) < 0)
		return CTL_NO_DAEMON;
	rc = audit_ask(a, json_pack("{s:s}", "show", "vrfs"), audit_on_vrf);
	if (rc == CTL_OK)
		rc = audit_ask(a, json_pack("{s:s, s:s}", "show", "routes", "of", "each"),
			       audit_on_rib);
	table_sort(&a->rib);
	return rc;
}

/* --- one prefix ----------------------------------------------------------------------- */

int
audit_ask_theirs(struct audit *a, const struct prefix *p)
{
	unsigned long long counted = a->with[PEER_KERNEL].n_not_obeyed;
	int rc;

	theirs_free(a);
	if (a->peer == PEER_ZEBRA)
		return zebra_prefix(a->vtysh, a->places.v[a->asking].vrf, p,
				    audit_kernels_by_zebra(a), &a->theirs);
	rc = kernel_table(p->family, p,
			  &(struct route_reader){.on_begin = audit_on_kernel_one_begin,
						 .on_route = audit_on_kernel_one,
						 .ctx = a});
	a->with[PEER_KERNEL].n_not_obeyed = counted;
	return rc;
}

int
audit_ask_one(struct audit *a, const struct prefix *p)
{
	free(a->one);
	free(a->one_copy);
	a->one = a->one_copy = NULL;
	a->one_of_zebra = false;
	if (a->places.v[a->asking].table == 0)
		return CTL_OK; /* a VRF that only zebra has */
	return audit_ask(a, route_request(a, p), audit_on_route);
}
