/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply the decode of a capture by the rules of doc/fpm.md; see capture_model.h.
 */
#include "capture_model.h"

#include <assert.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more element behind `n` elements of `size` octets. */
static void *
grow(void *v, uint32_t n, size_t size)
{
	uint8_t *p = realloc(v, (n + 1) * size);

	if (p == NULL)
		abort();
	memset(p + n * size, 0, size);
	return p;
}

static struct prefix
parsed(const char *text)
{
	struct prefix p;

	if (prefix_parse(text, &p, NULL) < 0) {
		fprintf(stderr, "no prefix: %s\n", text);
		abort();
	}
	return p;
}

/* --- state --------------------------------------------------------------------------- */

static struct cm_nh *
nh_find(const struct model *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n_nh; i++)
		if (m->nh[i].id == id)
			return &m->nh[i];
	return NULL;
}

static struct cm_nh *
nh_get(struct model *m, uint32_t id)
{
	struct cm_nh *nh = nh_find(m, id);

	if (nh != NULL)
		return nh;
	m->nh = grow(m->nh, m->n_nh, sizeof(*nh));
	nh = &m->nh[m->n_nh++];
	nh->id = id;
	return nh;
}

static bool
named_by_a_route(const struct model *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n_route; i++)
		if (m->route[i].nhid == id && !m->route[i].frozen)
			return true;
	return false;
}

/* True if zebra has announced the id, or a route or a group names it. */
bool
model_nh_exists(const struct model *m, const struct cm_nh *nh)
{
	if ((nh->known && !nh->absent) || named_by_a_route(m, nh->id))
		return true;
	for (uint32_t i = 0; i < m->n_nh; i++)
		for (uint32_t j = 0; j < m->nh[i].n_member; j++)
			if (m->nh[i].member[j].id == nh->id && &m->nh[i] != nh &&
			    model_nh_exists(m, &m->nh[i]))
				return true;
	return false;
}

static void
forget_unused(struct model *m)
{
	for (uint32_t i = 0; i < m->n_nh; i++) {
		struct cm_nh *nh = &m->nh[i];

		if (!nh->absent || model_nh_exists(m, nh))
			continue;
		free(nh->member);
		*nh = (struct cm_nh){.id = nh->id};
	}
}

static void
paths_add(struct cm_paths *paths, struct cm_path path)
{
	paths->v = grow(paths->v, paths->n, sizeof(path));
	paths->v[paths->n++] = path;
}

/*
 * Add the path of a member, with its weight times `factor`. A member that is a group is
 * unresolved here: paths_of_nh() follows groups for one level.
 */
static void
member_add_path(const struct model *m, const struct cm_member *member, uint32_t factor,
		struct cm_paths *out)
{
	static const struct cm_path unresolved = {.kind = CM_UNRESOLVED};
	const struct cm_nh *one = nh_find(m, member->id);

	if (one == NULL || !one->known || one->group) {
		paths_add(out, unresolved);
		return;
	}
	paths_add(out, one->path);
	out->v[out->n - 1].weight = member->weight * factor;
}

static void
paths_of_nh(const struct model *m, uint32_t id, struct cm_paths *out)
{
	const struct cm_nh *nh = nh_find(m, id), *one;
	static const struct cm_path unresolved = {.kind = CM_UNRESOLVED};

	if (nh == NULL || !nh->known) {
		paths_add(out, unresolved);
		return;
	}
	if (!nh->group) {
		paths_add(out, nh->path);
		return;
	}
	for (uint32_t i = 0; i < nh->n_member; i++) {
		uint32_t weight = nh->member[i].weight;

		one = nh_find(m, nh->member[i].id);
		if (one != NULL && one->known && one->group && one->n_member > 0)
			for (uint32_t k = 0; k < one->n_member; k++)
				member_add_path(m, &one->member[k], weight, out);
		else
			member_add_path(m, &nh->member[i], 1, out);
	}
}

struct cm_paths
model_paths(const struct model *m, const struct cm_route *r)
{
	struct cm_paths paths = {0};

	if (r->type == RTN_BLACKHOLE)
		paths_add(&paths, (struct cm_path){.kind = CM_BLACKHOLE});
	else if (r->type == RTN_UNREACHABLE)
		paths_add(&paths, (struct cm_path){.kind = CM_UNREACHABLE});
	else if (r->type == RTN_PROHIBIT)
		paths_add(&paths, (struct cm_path){.kind = CM_PROHIBIT});
	else if (r->nhid != 0 && !r->frozen)
		paths_of_nh(m, r->nhid, &paths);
	else
		for (uint32_t i = 0; i < r->paths.n; i++)
			paths_add(&paths, r->paths.v[i]);
	if (paths.n == 0)
		paths_add(&paths, (struct cm_path){.kind = CM_UNRESOLVED});
	return paths;
}

static void
route_drop(struct model *m, struct cm_route *r)
{
	free(r->paths.v);
	*r = m->route[--m->n_route];
}

/* --- text ----------------------------------------------------------------------------- */

/* Return the value behind " KEY=", or NULL. */
static const char *
value(const char *attrs, const char *key)
{
	char with[32];
	const char *at;

	snprintf(with, sizeof(with), " %s=", key);
	at = strstr(attrs, with);
	return at == NULL ? NULL : at + strlen(with);
}

static uint32_t
number(const char *attrs, const char *key)
{
	const char *v = value(attrs, key);

	return v == NULL ? 0 : (uint32_t)strtoul(v, NULL, 0);
}

static uint32_t
number_in_brackets(const char *attrs, const char *key)
{
	const char *v = value(attrs, key);

	return v == NULL ? 0 : (uint32_t)strtoul(strchr(v, '(') + 1, NULL, 0);
}

/*
 * Replace "{DST=16/ttl0/exp0/17S/ttl0/exp0}" by " LABELS=16/17", filled up with blanks. The
 * text gets shorter.
 */
static void
labels_rewrite(char *braces)
{
	char text[128] = " LABELS=";
	size_t n = strlen(text), all = strcspn(braces, "}") + 1;

	for (char *at = strchr(braces, '=') + 1; at < braces + all;) {
		unsigned long label = strtoul(at, &at, 10);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%lu/", label);
		at = strstr(at, "/exp0") + strlen("/exp0") + 1;
	}
	text[--n] = ' '; /* the last slash */
	if (n >= all)
		abort();
	memset(braces, ' ', all);
	memcpy(braces, text, n);
}

/*
 * Replace "{SRH mode=encap ... segs=[fc00::1]}" by " HEADEND=fc00::1", filled up with
 * blanks.
 */
static void
segment_rewrite(char *braces)
{
	char text[128];
	size_t all = strcspn(braces, "}") + 1;
	const char *segments = strstr(braces, "segs=[") + strlen("segs=[");
	int n = snprintf(text, sizeof(text), " HEADEND=%.*s", (int)strcspn(segments, ", ]"),
			 segments);

	memset(braces, ' ', all);
	memcpy(braces, text, (size_t)n);
}

/*
 * Replace the text in the braces of an ENCAP, because it has keys of its own: by the labels
 * of MPLS, by the segment of SRv6, or by a text that is no key. No capture has more than
 * one segment.
 */
static void
blank_encaps(char *attrs)
{
	while ((attrs = strstr(attrs, " ENCAP(")) != NULL) {
		bool mpls = strstr(attrs, "=mpls{") == strchr(attrs, '=');
		bool seg6 = strstr(attrs, "=seg6{") == strchr(attrs, '=');

		attrs = strchr(attrs, '{');
		if (mpls) {
			labels_rewrite(attrs);
			continue;
		}
		if (seg6) {
			segment_rewrite(attrs);
			continue;
		}
		while (*attrs != '}')
			*attrs++ = '_';
		*attrs = '_';
	}
}

/*
 * Parse a next hop: the attributes of a next-hop object, of a route, or of an entry of
 * MULTIPATH.
 */
static struct cm_path
path_of(const char *attrs)
{
	const char *labels = value(attrs, "LABELS"), *encap = value(attrs, "ENCAP_TYPE");
	const char *headend = value(attrs, "HEADEND");
	bool sid = encap != NULL && strncmp(encap, "seg6local", 9) == 0;
	struct cm_path path = {.weight = 1,
			       .sid = sid,
			       .encap = encap != NULL && labels == NULL &&
					headend == NULL && !sid};
	const char *gw = value(attrs, "GATEWAY"), *via = value(attrs, "VIA");
	char text[64];
	struct prefix p;

	if (gw == NULL && via != NULL)
		gw = strchr(via, ':') + 1; /* for example INET6:2001:db8::1 */
	if (gw != NULL) {
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(gw, " ]"), gw);
		p = parsed(text);
		path.gw = p.addr;
		path.gw_family = p.family;
	}
	if (labels != NULL)
		snprintf(path.labels, sizeof(path.labels), "%.*s",
			 (int)strcspn(labels, " ]"), labels);
	if (headend != NULL)
		snprintf(path.headend, sizeof(path.headend), "%.*s",
			 (int)strcspn(headend, " ]"), headend);
	path.ifindex = number(attrs, "OIF");
	return path;
}

static void
multipath(struct cm_paths *out, char *attrs)
{
	char *save = NULL;

	for (char *s = strtok_r(strstr(attrs, "MULTIPATH"), "[", &save);
	     (s = strtok_r(NULL, "[", &save)) != NULL;) {
		struct cm_path path;

		s[strcspn(s, "]")] = '\0';
		path = path_of(s);
		path.weight = (uint32_t)strtoul(s + strlen("hops="), NULL, 10) + 1;
		path.ifindex = number(s, "oif");
		paths_add(out, path);
	}
}

static bool
is_link_local(const struct prefix *p)
{
	return p->family == 6 && p->len >= 10 && p->addr.octet[0] == 0xfe &&
	       p->addr.octet[1] >> 6 == 2;
}

static void
read_route(struct model *m, bool del, const char *rtm, char *attrs)
{
	static const struct {
		const char *name;
		uint32_t type;
	} types[] = {{"unicast", RTN_UNICAST},
		     {"BLACKHOLE", RTN_BLACKHOLE},
		     {"UNREACHABLE", RTN_UNREACHABLE},
		     {"PROHIBIT", RTN_PROHIBIT}};
	struct cm_route r = {.session = m->session}, *old = NULL;
	const char *dst = value(attrs, "DST");
	char text[80];

	if (strstr(rtm, "fam=MPLS") != NULL)
		return;
	snprintf(text, sizeof(text), "%.*s/%u", dst == NULL ? 2 : (int)strcspn(dst, " "),
		 dst == NULL ? (strstr(rtm, "INET6") ? "::" : "0.0.0.0") : dst,
		 number(rtm, "dst_len"));
	r.prefix = parsed(text);
	if (is_link_local(&r.prefix))
		return;
	r.table = value(attrs, "TABLE") != NULL ? number(attrs, "TABLE")
						: number(rtm, "table");
	r.protocol = number_in_brackets(rtm, "proto");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(value(rtm, "type"), types[i].name, strlen(types[i].name)) == 0)
			r.type = types[i].type;
	for (uint32_t i = 0; i < m->n_route; i++)
		if (m->route[i].table == r.table &&
		    prefix_equal(&m->route[i].prefix, &r.prefix))
			old = &m->route[i];
	if (old != NULL)
		route_drop(m, old);
	/* Rule 9: routes of protocol kernel come from the kernel itself. */
	if (del || r.protocol == RTPROT_KERNEL)
		return;
	r.nhid = r.type == RTN_UNICAST ? number(attrs, "NH_ID") : 0;
	if (r.nhid != 0)
		nh_get(m, r.nhid); /* the id may never be announced */
	if (strstr(attrs, "MULTIPATH") != NULL)
		multipath(&r.paths, attrs);
	else if (r.nhid == 0 && (value(attrs, "OIF") || value(attrs, "GATEWAY")))
		paths_add(&r.paths, path_of(attrs));
	m->route = grow(m->route, m->n_route, sizeof(r));
	m->route[m->n_route++] = r;
}

static void
read_nexthop(struct model *m, bool del, const char *attrs)
{
	struct cm_nh *nh = nh_get(m, number(attrs, "ID"));
	const char *group = strstr(attrs, "GROUP=[");
	uint32_t id = nh->id;

	if (del) {
		nh->absent = nh->known;
		return;
	}
	free(nh->member);
	*nh = (struct cm_nh){.id = nh->id, .known = true, .group = group != NULL};
	if (strstr(attrs, " BLACKHOLE") != NULL)
		nh->path.kind = CM_BLACKHOLE;
	else
		nh->path = path_of(attrs);
	/* for example id23/w1(raw 0)/000000 */
	while (group != NULL && (group = strstr(group, "id")) != NULL) {
		struct cm_member one = {0};

		if (sscanf(group, "id%u/w%u(", &one.id, &one.weight) != 2)
			abort();
		nh_get(m, one.id);
		nh = nh_find(m, id); /* nh_get() may have moved the array */
		nh->member = grow(nh->member, nh->n_member, sizeof(one));
		nh->member[nh->n_member++] = one;
		group += 2;
	}
}

/* Apply messages. A message has three lines: head, fixed fields, attributes. */
void
model_read(struct model *m, char *text)
{
	char *save = NULL, *head, *fixed, *attrs;

	for (char *l = strtok_r(text, "\n", &save); l != NULL;
	     l = strtok_r(NULL, "\n", &save)) {
		if (strncmp(l, "  +", 3) != 0)
			continue;
		head = l;
		fixed = strtok_r(NULL, "\n", &save);
		attrs = strtok_r(NULL, "\n", &save);
		blank_encaps(attrs);
		if (strstr(head, " NEWROUTE ") || strstr(head, " DELROUTE "))
			read_route(m, strstr(head, " DELROUTE ") != NULL, fixed, attrs);
		else if (strstr(head, " NEWNEXTHOP ") || strstr(head, " DELNEXTHOP "))
			read_nexthop(m, strstr(head, " DELNEXTHOP ") != NULL, attrs);
		forget_unused(m);
	}
}

void
model_session(struct model *m)
{
	for (uint32_t i = 0; i < m->n_route; i++) {
		struct cm_route *r = &m->route[i];
		struct cm_paths paths = model_paths(m, r);

		free(r->paths.v);
		r->paths = paths;
		r->frozen = true;
	}
	for (uint32_t i = 0; i < m->n_nh; i++)
		free(m->nh[i].member);
	m->n_nh = 0;
	m->session++;
}

void
model_replay_over(struct model *m)
{
	/* Routes of other tables, too, because rules get them from the kernel. */
	for (uint32_t i = m->n_route; i-- > 0;)
		if (m->route[i].session != m->session)
			route_drop(m, &m->route[i]);
	forget_unused(m);
}

void
model_free(struct model *m)
{
	for (uint32_t i = 0; i < m->n_route; i++)
		free(m->route[i].paths.v);
	for (uint32_t i = 0; i < m->n_nh; i++)
		free(m->nh[i].member);
	free(m->route);
	free(m->nh);
	memset(m, 0, sizeof(*m));
}
