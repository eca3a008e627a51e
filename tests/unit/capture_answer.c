/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of the model of a capture: the next hops of packets, the rows of listings. See
 * capture_model.h.
 */
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture_model.h"

/* --- text ----------------------------------------------------------------------------- */

void
lines_add(struct lines *l, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	l->v = realloc(l->v, (l->n + 1) * sizeof(*l->v));
	if (l->v == NULL)
		abort();
	l->v[l->n++] = text;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *
lines_join(struct lines *l, const char *separator)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	if (f == NULL)
		abort();
	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), by_text);
	for (uint32_t i = 0; i < l->n; i++) {
		fprintf(f, "%s%s", i == 0 ? "" : separator, l->v[i]);
		free(l->v[i]);
	}
	fclose(f);
	free(l->v);
	*l = (struct lines){0};
	return out;
}

/* --- next hops ------------------------------------------------------------------------ */

/*
 * The ranks of next hops, the best first. A slot uses the members of the best rank that it
 * has (doc/fpm.md, rule 8; design.md, 4).
 */
enum rank { ALIVE, SPECIAL, FOREIGN, ENCAP, DOWN, UNRESOLVED };

static const struct cm_link *
link_of(const struct model *m, const struct cm_path *path)
{
	for (uint32_t i = 0; i < m->n_link; i++)
		if (m->link[i].ifindex == path->ifindex)
			return &m->link[i];
	return NULL;
}

static enum rank
rank_of(const struct model *m, const struct cm_path *path, char text[80])
{
	static const char *const special[] = {
		[CM_BLACKHOLE] = "blackhole",
		[CM_UNREACHABLE] = "unreachable",
		[CM_PROHIBIT] = "prohibit",
		[CM_UNRESOLVED] = "unresolved",
	};
	const struct cm_link *link = link_of(m, path);
	char gw[PREFIX_STRLEN];

	if (path->kind != CM_HOP) {
		snprintf(text, 80, "%s", special[path->kind]);
		return path->kind == CM_UNRESOLVED ? UNRESOLVED : SPECIAL;
	}
	snprintf(text, 80, "local");
	if (path->sid)
		return ALIVE;
	snprintf(text, 80, "headend %s", path->headend);
	if (path->headend[0] != '\0') /* whatever its gateway is */
		return ALIVE;
	snprintf(text, 80, "encap");
	if (path->encap)
		return ENCAP;
	snprintf(text, 80, "unresolved");
	if (path->ifindex == 0)
		return UNRESOLVED; /* no capture has a gateway without an interface */
	snprintf(text, 80, "down");
	if (link == NULL || !link->up)
		return DOWN;
	snprintf(text, 80, "foreign");
	if (link->ifidx == 0)
		return FOREIGN;
	if (path->gw_family == 0)
		snprintf(text, 80, "onlink@%u", link->ifidx);
	else
		snprintf(text, 80, "%s@%u%s%s", ipaddr_str(&path->gw, path->gw_family, gw),
			 link->ifidx, path->labels[0] != '\0' ? " push " : "",
			 path->labels);
	return ALIVE;
}

static void
answer_add(struct cm_answer *out, const char *text, uint64_t weight)
{
	uint32_t i = 0;

	while (i < out->n && strcmp(out->path[i].text, text) != 0)
		i++;
	if (i == out->n) {
		if (i == sizeof(out->path) / sizeof(out->path[0]))
			abort();
		snprintf(out->path[i].text, sizeof(out->path[i].text), "%s", text);
		out->path[i].weight = 0;
		out->n++;
	}
	out->path[i].weight += weight;
}

static void
answer_of_route(const struct model *m, const struct cm_route *r, struct cm_answer *out)
{
	struct cm_paths paths = model_paths(m, r);
	enum rank best = UNRESOLVED;
	char text[80];

	for (uint32_t i = 0; i < paths.n; i++)
		if (rank_of(m, &paths.v[i], text) < best)
			best = rank_of(m, &paths.v[i], text);
	for (uint32_t i = 0; i < paths.n; i++)
		if (rank_of(m, &paths.v[i], text) == best)
			answer_add(out, text, paths.v[i].weight);
	free(paths.v);
}

/* --- the kernel's own prefixes -------------------------------------------------------- */

struct own {
	struct prefix prefix;
	char text[80];
	const char *type;
	bool is_subnet;
	uint32_t ifindex;
};

static void
own_host(struct own *o, const struct prefix *subnet, uint32_t bits, const char *text,
	 const char *type)
{
	*o = (struct own){.prefix = *subnet, .type = type};
	o->prefix.len = subnet->family == 4 ? 32 : 128;
	o->prefix.addr.octet[3] |= (uint8_t)bits;
	snprintf(o->text, sizeof(o->text), "%s", text);
}

/*
 * List the kernel's own prefixes: for each address of this router its host route and its
 * broadcast or anycast address, and the subnets of links that are up. All subnets are /24
 * or /64. Return the number of prefixes.
 */
static uint32_t
owns_of(const struct model *m, struct own out[64])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_link; i++)
		for (unsigned int v = 0; v < 2; v++) {
			const char *text = m->link[i].addr[v];
			struct prefix p, host;
			char addr[64];

			if (text == NULL)
				continue;
			snprintf(addr, sizeof(addr), "%.*s", (int)strcspn(text, "/"), text);
			if (prefix_parse(text, &p, NULL) < 0 ||
			    prefix_parse(addr, &host, NULL) < 0)
				abort();
			out[n] = (struct own){.prefix = host, .type = "local"};
			strcpy(out[n++].text, "local");
			/*
			 * The broadcast address, and the subnet-router anycast address of
			 * IPv6 (RFC 4291, 2.6.1). Both stay when the carrier is lost.
			 */
			if (v == 0)
				own_host(&out[n++], &p, 255, "bcast", "broadcast");
			else
				own_host(&out[n++], &p, 0, "local", "anycast");
			if (!m->link[i].up)
				continue;
			out[n] = (struct own){.prefix = p,
					      .type = "unicast",
					      .is_subnet = true,
					      .ifindex = m->link[i].ifindex};
			snprintf(out[n++].text, 80, "onlink@%u", m->link[i].ifidx);
		}
	return n;
}

/*
 * Answer with the longest prefix. If zebra and the kernel have it, the kernel's prefix
 * wins.
 */
void
model_answer(const struct model *m, uint8_t family, const struct ipaddr *dst,
	     struct cm_answer *out)
{
	const struct cm_route *best = NULL;
	const struct own *mine = NULL;
	struct own own[64];
	uint32_t n = owns_of(m, own);

	out->n = 0;
	for (uint32_t i = 0; i < m->n_route; i++) {
		const struct cm_route *r = &m->route[i];

		if (r->table == RT_TABLE_MAIN && r->prefix.family == family &&
		    prefix_covers(&r->prefix, dst) &&
		    (best == NULL || r->prefix.len > best->prefix.len))
			best = r;
	}
	for (uint32_t i = 0; i < n; i++)
		if (own[i].prefix.family == family && prefix_covers(&own[i].prefix, dst) &&
		    (mine == NULL || own[i].prefix.len > mine->prefix.len))
			mine = &own[i];
	if (mine != NULL && (best == NULL || mine->prefix.len >= best->prefix.len))
		answer_add(out, mine->text, 1);
	else if (best != NULL)
		answer_of_route(m, best, out);
	else
		answer_add(out, "none", 1);
}

/* --- rows of listings ----------------------------------------------------------------- */

static const char *
type_name(uint32_t type)
{
	return type == RTN_BLACKHOLE     ? "blackhole"
	       : type == RTN_UNREACHABLE ? "unreachable"
	       : type == RTN_PROHIBIT    ? "prohibit"
					 : "unicast";
}

static const char *
protocol_name(uint32_t protocol)
{
	static const struct {
		uint32_t protocol;
		const char *name;
	} names[] = {{2, "kernel"}, {11, "zebra"},  {186, "bgp"},   {187, "isis"},
		     {188, "ospf"}, {194, "sharp"}, {196, "static"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].protocol == protocol)
			return names[i].name;
	return "?";
}

/* Return the state of a route from the answer that packets get. */
static const char *
state_of(const struct cm_answer *a)
{
	const char *text = a->path[0].text;

	if (strchr(text, '@') == NULL)
		return strcmp(text, "encap") == 0          ? "unsupported"
		       : strcmp(text, "bcast") == 0        ? "broadcast"
		       : strncmp(text, "headend ", 8) == 0 ? "forwarding"
							   : text;
	return strncmp(text, "onlink", 6) == 0 ? "onlink" : "forwarding";
}

static char *
paths_text(const struct model *m, const struct cm_paths *paths)
{
	struct lines l = {0};
	char gw[PREFIX_STRLEN], text[80];

	for (uint32_t i = 0; i < paths->n; i++) {
		const struct cm_path *w = &paths->v[i];

		if (w->kind != CM_HOP)
			continue;
		lines_add(&l, "[%s %s%u w%u%s]",
			  w->gw_family == 0 ? "-" : ipaddr_str(&w->gw, w->gw_family, gw),
			  link_of(m, w) != NULL ? "p" : "if", w->ifindex, w->weight,
			  rank_of(m, w, text) == ALIVE ? " alive" : "");
	}
	return lines_join(&l, " ");
}

static void
own_line(const struct model *m, struct lines *l, const struct own *o)
{
	char buf[PREFIX_STRLEN];
	bool local = strcmp(o->text, "local") == 0;

	lines_add(l, "route %s t254 %s kernel %s nh0 %s", prefix_str(&o->prefix, buf),
		  local ? "local" : "connected", o->type,
		  local          ? "local "
		  : o->is_subnet ? ""
				 : "broadcast ");
	if (o->is_subnet) {
		struct cm_paths paths = {
			.v = &(struct cm_path){.ifindex = o->ifindex, .weight = 1}, .n = 1};
		char *more = paths_text(m, &paths), *line = l->v[l->n - 1];

		l->n--;
		lines_add(l, "%s%s %s", line,
			  strncmp(o->text, "foreign", 7) ? "onlink" : o->text, more);
		free(line);
		free(more);
	}
}

static void
route_line(const struct model *m, struct lines *l, const struct cm_route *r)
{
	struct cm_paths paths = model_paths(m, r);
	bool is_main = r->table == RT_TABLE_MAIN;
	char buf[PREFIX_STRLEN], *text = paths_text(m, &paths);
	struct cm_answer a = {0};

	answer_of_route(m, r, &a);
	lines_add(l, "route %s t%u zebra %s %s nh%u %s %s", prefix_str(&r->prefix, buf),
		  r->table, protocol_name(r->protocol), type_name(r->type),
		  is_main && !r->frozen ? r->nhid : 0,
		  is_main ? state_of(&a) : "not-installed", text);
	free(text);
	free(paths.v);
}

static void
nh_line(struct lines *l, const struct cm_nh *nh)
{
	struct lines members = {0};
	char gw[PREFIX_STRLEN], *text;
	const struct cm_path *w = &nh->path;

	for (uint32_t i = 0; i < nh->n_member; i++)
		lines_add(&members, "id%u*%u", nh->member[i].id, nh->member[i].weight);
	text = lines_join(&members, " ");
	if (!nh->known)
		lines_add(l, "id %u unknown", nh->id);
	else if (nh->group)
		lines_add(l, "id %u%s group %s", nh->id, nh->absent ? " absent" : "", text);
	else if (w->kind != CM_HOP)
		lines_add(l, "id %u%s blackhole", nh->id, nh->absent ? " absent" : "");
	else
		lines_add(l, "id %u%s %s if%u%s", nh->id, nh->absent ? " absent" : "",
			  w->gw_family == 0 ? "-" : ipaddr_str(&w->gw, w->gw_family, gw),
			  w->ifindex,
			  w->encap || w->sid || w->labels[0] != '\0' ||
					  w->headend[0] != '\0'
				  ? " encap"
				  : "");
	free(text);
}

char *
model_text(const struct model *m)
{
	struct own own[64];
	uint32_t n = owns_of(m, own);
	struct lines l = {0};

	for (uint32_t i = 0; i < m->n_nh; i++)
		if (model_nh_exists(m, &m->nh[i]))
			nh_line(&l, &m->nh[i]);
	for (uint32_t i = 0; i < n; i++)
		own_line(m, &l, &own[i]);
	for (uint32_t i = 0; i < m->n_route; i++) {
		bool hidden = false;

		for (uint32_t j = 0; j < n; j++)
			hidden |= m->route[i].table == RT_TABLE_MAIN &&
				  prefix_equal(&own[j].prefix, &m->route[i].prefix);
		if (!hidden)
			route_line(m, &l, &m->route[i]);
	}
	return lines_join(&l, "\n");
}
