/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare a RIB with the model of a capture, see rib_seen.h.
 */
#include "rib_seen.h"

#include <stdio.h>

#define N_HASH 4096u /* the largest block of buckets */

/* --- listings ------------------------------------------------------------------------- */

static const char *
text_of(json_t *row, const char *key)
{
	json_t *v = json_object_get(row, key);

	return json_is_string(v) ? json_string_value(v) : "-";
}

static unsigned int
int_of(json_t *row, const char *key)
{
	return (unsigned int)json_integer_value(json_object_get(row, key));
}

static void
row_line(struct lines *l, json_t *row)
{
	json_t *hops = json_object_get(row, "nexthops"), *hop;
	bool is_main = int_of(row, "table") == RIB_TABLE_MAIN;
	struct lines members = {0};
	size_t i;
	char *text;

	json_array_foreach (hops, i, hop)
		lines_add(&members, "[%s %s w%u%s]", text_of(hop, "via"),
			  text_of(hop, "dev"), int_of(hop, "weight"),
			  json_is_true(json_object_get(hop, "alive")) ? " alive" : "");
	text = lines_join(&members, " ");
	lines_add(l, "route %s t%u %s %s %s nh%u %s %s", text_of(row, "prefix"),
		  int_of(row, "table"), text_of(row, "source"), text_of(row, "protocol"),
		  text_of(row, "type"), is_main ? int_of(row, "nexthop_id") : 0,
		  text_of(row, "state"), text);
	free(text);
}

static void
nh_line(struct lines *l, const struct nh *nh)
{
	const char *absent = nh->absent ? " absent" : "";
	const struct next_hop *w = &nh->hop;
	struct lines members = {0};
	char gw[PREFIX_STRLEN], *text;
	uint32_t id = (uint32_t)nh->id;

	for (uint32_t i = 0; i < nh->n_member; i++)
		lines_add(&members, "id%u*%u", (uint32_t)nh->member[i].nh->id,
			  nh->member[i].weight);
	text = lines_join(&members, " ");
	if (!nh->known)
		lines_add(l, "id %u unknown", id);
	else if (nh->is_group)
		lines_add(l, "id %u%s group %s", id, absent, text);
	else if (w->kind != PATH_NONE)
		lines_add(l, "id %u%s %s", id, absent,
			  w->kind == PATH_BLACKHOLE ? "blackhole" : "special");
	else
		lines_add(l, "id %u%s %s if%u%s", id, absent,
			  w->gw_family == 0 ? "-" : ipaddr_str(&w->gw, w->gw_family, gw),
			  w->ifindex, w->encap != HOP_PLAIN ? " encap" : "");
	free(text);
}

static char *
rig_text(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_ROUTES, .max = 100, .all_tables = true};
	json_t *rows = rig_ask(g, &q, NULL), *row;
	struct lines l = {0};
	size_t i;

	for (uint32_t n = 1; n <= g->rib->nhs.high; n++)
		if (g->rib->nhs.v[n] != NULL)
			nh_line(&l, g->rib->nhs.v[n]);
	/* labels and MACs are not part of the model */
	json_array_foreach (rows, i, row)
		if (int_of(row, "table") != 0)
			row_line(&l, row);
	json_decref(rows);
	return lines_join(&l, "\n");
}

/* --- packets -------------------------------------------------------------------------- */

/*
 * Assert that each expected next hop has its share within 2 %, and that there is no other.
 */
static void
assert_answer(struct rig *g, const struct model *m, uint8_t family,
	      const struct ipaddr *dst, const char *what)
{
	struct cm_answer want;
	uint64_t total = 0;
	unsigned int count[300] = {0};
	fib_path last = 0;
	uint32_t at = 0;
	char text[80], addr[PREFIX_STRLEN];

	model_answer(m, family, dst, &want);
	for (unsigned int i = 0; i < N_HASH; i++) {
		fib_path path = fib_resolve(g->fib, 0, family, dst, i << 20);

		if (i == 0 || path != last) {
			rig_path_text(g, path, text, 80);
			for (at = 0; at < want.n && strcmp(want.path[at].text, text) != 0;)
				at++;
			if (at == want.n)
				fail_msg("%s: %s goes to %s, expected %s (1 of %u)", what,
					 ipaddr_str(dst, family, addr), text,
					 want.path[0].text, want.n);
		}
		last = path;
		count[at]++;
	}
	for (uint32_t i = 0; i < want.n; i++)
		total += want.path[i].weight;
	for (uint32_t i = 0; i < want.n && want.n > 1; i++) {
		uint64_t share = want.path[i].weight * N_HASH / total;
		uint64_t off = count[i] > share ? count[i] - share : share - count[i];

		if (off * 50 > share + 50)
			fail_msg("%s: %s by %s has %u of 4096, expected %u", what,
				 ipaddr_str(dst, family, addr), want.path[i].text, count[i],
				 (unsigned int)share);
	}
}

/*
 * Check the first and the last address of a prefix, the address before the first, and the
 * address after the last.
 */
static void
assert_answers(struct rig *g, const struct model *m, const struct prefix *p,
	       const char *what)
{
	struct ipaddr a = p->addr;
	unsigned int octets = family_octets(p->family);

	assert_answer(g, m, p->family, &a, what);
	for (unsigned int i = octets; i-- > 0 && a.octet[i]-- == 0;)
		;
	assert_answer(g, m, p->family, &a, what);
	a = p->addr;
	for (unsigned int bit = p->len; bit < octets * 8; bit++)
		a.octet[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
	assert_answer(g, m, p->family, &a, what);
	for (unsigned int i = octets; i-- > 0 && ++a.octet[i] == 0;)
		;
	assert_answer(g, m, p->family, &a, what);
}

/* Return true if `line` is a whole line of `text`. */
static bool
text_has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || at[len] == '\0'))
			return true;
	return false;
}

/* Print the lines of `a` that `b` lacks. */
static void
print_missing(const char *a, const char *b, const char *title)
{
	char *copy = strdup(a), *save = NULL;

	assert_non_null(copy);
	for (char *l = strtok_r(copy, "\n", &save); l != NULL;
	     l = strtok_r(NULL, "\n", &save))
		if (!text_has_line(b, l))
			print_message("%s: %s\n", title, l);
	free(copy);
}

void
assert_rig_is(struct rig *g, const struct model *m, const char *what)
{
	char *want = model_text(m), *got = rig_text(g);
	uint32_t n_zebra[2] = {0}, n_other = 0;

	if (strcmp(want, got) != 0) {
		print_missing(want, got, "only in the decode");
		print_missing(got, want, "only in the rib");
		fail_msg("%s differs", what);
	}
	free(want);
	free(got);
	for (uint32_t i = 0; i < m->n_route; i++) {
		const struct cm_route *r = &m->route[i];

		assert_answers(g, m, &r->prefix, what);
		if (r->table == RIB_TABLE_MAIN)
			n_zebra[r->prefix.family == 6]++;
		else
			n_other++;
	}
	assert_int_equal(g->rib->table_counts.n_zebra[0], n_zebra[0]);
	assert_int_equal(g->rib->table_counts.n_zebra[1], n_zebra[1]);
	assert_int_equal(g->rib->tables.other.n - g->rib->tables.n_not_ip, n_other);
	assert_int_equal(g->rib->table_counts.stale, 0);
	assert_int_equal(g->rib->early.n, 0);
}
