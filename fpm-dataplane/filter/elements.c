/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of nf_tables and their elements. [filter] */
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"
#include "netlink/attributes.h"

#ifndef NFT_SET_ELEM_CATCHALL
#define NFT_SET_ELEM_CATCHALL 2
#endif
#define TYPE_IPV4_ADDR 7 /* numbers that nft uses for the types of keys */
#define TYPE_IPV6_ADDR 8

struct raw_list {
	struct ruleset_member *m;
	uint32_t n, room;
};

static const char *
text_of(const struct nlattr *a)
{
	const char *text = a == NULL ? NULL : (const char *)a + MNL_ATTR_HDRLEN;

	return text == NULL || a->nla_len == MNL_ATTR_HDRLEN ||
			       text[a->nla_len - MNL_ATTR_HDRLEN - 1] != '\0'
		       ? NULL
		       : text;
}

/* Read the lengths of the fields of a concatenation. Returns 0 or -1. */
static int
fields_read(struct raw_set *s, const struct nlattr *concat)
{
	const uint8_t *at = (const uint8_t *)concat + MNL_ATTR_HDRLEN;
	size_t left = concat->nla_len - MNL_ATTR_HDRLEN;
	uint32_t len, sum = 0;

	while (left >= MNL_ATTR_HDRLEN) {
		const struct nlattr *field = (const struct nlattr *)at;
		size_t step = MNL_ALIGN(field->nla_len);

		if (field->nla_len < MNL_ATTR_HDRLEN || field->nla_len > left ||
		    s->n_field == RULESET_FIELDS_MAX ||
		    attr_be32(attr_find_in(field, NFTA_SET_FIELD_LEN), &len) < 0 ||
		    len == 0 || len > RULESET_KEY_MAX)
			return -1;
		s->field[s->n_field++] = (uint8_t)len;
		sum += (len + 3) & ~3u;
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return sum == s->key_len ? 0 : -1;
}

int
build_set_note(struct build *b, const struct nlmsghdr *nlh)
{
	struct raw_set s = {.first = RULESET_NONE, .number = RULESET_NONE};
	const struct nlattr *concat =
		attr_find_in(message_attr(nlh, NFTA_SET_DESC), NFTA_SET_DESC_CONCAT);

	s.name = text_of(message_attr(nlh, NFTA_SET_NAME));
	if (s.name == NULL ||
	    attr_be32(message_attr(nlh, NFTA_SET_KEY_LEN), &s.key_len) < 0 ||
	    s.key_len == 0 || s.key_len > RULESET_KEY_MAX)
		return build_fail(b, "a set of the kernel is malformed");
	(void)attr_be32(message_attr(nlh, NFTA_SET_FLAGS), &s.flags);
	(void)attr_be32(message_attr(nlh, NFTA_SET_KEY_TYPE), &s.key_type);
	(void)attr_be32(message_attr(nlh, NFTA_SET_DATA_TYPE), &s.data_type);
	(void)attr_be32(message_attr(nlh, NFTA_SET_DATA_LEN), &s.data_len);
	if (concat != NULL && fields_read(&s, concat) < 0)
		return build_fail(b, "set %.64s is malformed", s.name);
	b->set = build_room(b->set, b->n_set, &b->room_set, sizeof(*b->set));
	b->set[b->n_set++] = s;
	return 0;
}

/* Return the ticks at which an element expires; 0: never. */
static uint64_t
expiry_of(const struct nlattr *elem, uint64_t now, double ticks_s)
{
	uint64_t left_ms, until;
	double ticks;

	if (attr_be64(attr_find_in(elem, NFTA_SET_ELEM_EXPIRATION), &left_ms) < 0)
		return 0;
	ticks = (double)left_ms * ticks_s / 1000.;
	if (ticks >= (double)(UINT64_MAX - now))
		return 0; /* later than the last tick, which is in more than ten years */
	until = now + (uint64_t)ticks;
	return until == 0 ? 1 : until;
}

const char *
filter_element_read(const struct nlattr *elem, const struct ruleset_set *set, uint64_t now,
		    double ticks_s, struct ruleset_member *m)
{
	static const char malformed[] = "is malformed";
	const struct nlattr *end = attr_find_in(elem, NFTA_SET_ELEM_KEY_END);
	uint32_t flags = 0;
	unsigned int n = 0;
	char name[16];

	(void)attr_be32(attr_find_in(elem, NFTA_SET_ELEM_FLAGS), &flags);
	*m = (struct ruleset_member){.e = {.end = (flags & NFT_SET_ELEM_INTERVAL_END) != 0,
					   .chain = RULESET_NONE,
					   .until = expiry_of(elem, now, ticks_s)}};
	attr_text(attr_find_in(attr_find_in(elem, NFTA_SET_ELEM_EXPR), NFTA_EXPR_NAME),
		  name, sizeof(name));
	if (strcmp(name, "limit") == 0)
		return "has an element with a limit, which is not supported";
	if (strcmp(name, "quota") == 0)
		return "has an element with a quota, which is not supported";
	if (attr_find_in(elem, NFTA_SET_ELEM_EXPRESSIONS) != NULL ||
	    (name[0] != '\0' && strcmp(name, "counter") != 0))
		return "has an element with another statement than a counter, which is not "
		       "supported";
	if (attr_find_in(elem, NFTA_SET_ELEM_OBJREF) != NULL)
		return "is a map of named objects, which is not supported";
	if (m->e.until != 0 && !set->expires)
		return malformed;
	if ((flags & NFT_SET_ELEM_CATCHALL) != 0)
		return NULL;
	m->key = attr_value(attr_find_in(elem, NFTA_SET_ELEM_KEY), &n);
	if (m->key == NULL || n != set->key_len)
		return malformed;
	m->key_end = m->key;
	if (end == NULL)
		return NULL;
	m->key_end = attr_value(end, &n);
	return m->key_end == NULL || n != set->key_len || set->kind != SET_RANGES
		       ? malformed
		       : NULL;
}

/* Read the value of an element of a map. */
static int
data_read(struct build *b, const struct nlattr *data, const struct ruleset_set *set,
	  struct ruleset_element *e)
{
	unsigned int n;
	const uint8_t *value;

	if (set->has_verdicts)
		return build_verdict(b, data, &e->code, &e->chain);
	value = attr_value(data, &n);
	if (value == NULL || n != set->value_len)
		return -1;
	memcpy(e->value, value, n);
	return 0;
}

/* Read one element into the list, or as the element for all other keys. */
static int
element_take(struct build *b, const struct nlattr *elem, struct ruleset_set *set,
	     struct raw_list *list)
{
	struct ruleset_member m;
	const char *wrong =
		filter_element_read(elem, set, b->conf->now, b->conf->ticks_s, &m);

	if (wrong != NULL)
		return build_fail(b, "set %.64s %s", set->name, wrong);
	if (set->is_map && !m.e.end &&
	    data_read(b, attr_find_in(elem, NFTA_SET_ELEM_DATA), set, &m.e) < 0)
		return -1;
	if (m.key != NULL) {
		list->m = build_room(list->m, list->n, &list->room, sizeof(*list->m));
		list->m[list->n++] = m;
		return 0;
	}
	if (set->other == NULL)
		set->other = malloc(sizeof(*set->other));
	if (set->other == NULL)
		abort();
	*set->other = m.e;
	return 0;
}

int
filter_elements_each(const struct nlmsghdr *nlh,
		     int (*fn)(const struct nlattr *elem, void *ctx), void *ctx)
{
	const struct nlattr *elements = message_attr(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	const uint8_t *at;
	size_t left;

	if (elements == NULL)
		return 0;
	at = (const uint8_t *)elements + MNL_ATTR_HDRLEN;
	left = elements->nla_len - MNL_ATTR_HDRLEN;
	while (left >= MNL_ATTR_HDRLEN) {
		const struct nlattr *elem = (const struct nlattr *)at;
		size_t step = MNL_ALIGN(elem->nla_len);

		if (elem->nla_len < MNL_ATTR_HDRLEN || elem->nla_len > left ||
		    fn(elem, ctx) < 0)
			return -1;
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return 0;
}

struct set_at_work {
	struct build *b;
	struct ruleset_set *set;
	struct raw_list list;
};

static int
on_element(const struct nlattr *elem, void *ctx)
{
	struct set_at_work *w = ctx;

	return element_take(w->b, elem, w->set, &w->list);
}

/* Set the properties of a set from its flags and its type in the kernel. */
static void
set_describe(struct ruleset_set *set, const struct raw_set *raw, uint8_t table)
{
	bool fixed = (raw->flags & (NFT_SET_ANONYMOUS | NFT_SET_CONSTANT)) != 0;

	*set = (struct ruleset_set){.key_len = (uint8_t)raw->key_len,
				    .is_map = (raw->flags & NFT_SET_MAP) != 0,
				    .has_verdicts = raw->data_type == NFT_DATA_VERDICT,
				    .interval = (raw->flags & NFT_SET_INTERVAL) != 0,
				    .n_field = (uint8_t)raw->n_field,
				    .table = table,
				    .name = strdup(raw->name)};
	if (set->name == NULL)
		abort();
	set->kind = !set->interval     ? SET_EXACT
		    : raw->n_field > 1 ? SET_RANGES
				       : SET_INTERVAL;
	memcpy(set->field, raw->field, sizeof(set->field));
	set->addresses = raw->n_field <= 1 &&
			 ((raw->key_type == TYPE_IPV4_ADDR && raw->key_len == 4) ||
			  (raw->key_type == TYPE_IPV6_ADDR && raw->key_len == 16));
	/*
	 * A set of intervals with timeouts does not change in place: the kernel does not
	 * announce that an interval expires, so its start and end would stay. A map does
	 * not change in place either, because a new value can name a chain that no rule
	 * reaches yet.
	 */
	set->expires = (raw->flags & NFT_SET_TIMEOUT) != 0;
	set->changes = !fixed && !set->is_map && !(set->interval && set->expires);
}

static int
set_load(struct build *b, struct raw_set *raw)
{
	struct ruleset_set *set = &b->r->set[b->r->n_set];
	struct set_at_work work = {.b = b, .set = set};
	int rc = 0;

	set_describe(set, raw, b->conf->table->number);
	raw->number = b->r->n_set++;
	/* The kernel announces no element that a packet adds or refreshes. */
	if ((raw->flags & NFT_SET_EVAL) != 0)
		return build_fail(b,
				  "set %.64s, which packets change (flags dynamic), is not "
				  "supported",
				  raw->name);
	if ((raw->flags & NFT_SET_OBJECT) != 0)
		return build_fail(b, "a map of named objects is not supported");
	if (set->is_map && !set->has_verdicts) {
		if (raw->data_len == 0 || raw->data_len > RULESET_VALUE_MAX)
			return build_fail(b, "values of map %.64s are too long", raw->name);
		set->value_len = (uint8_t)raw->data_len;
	}
	for (uint32_t i = raw->first; i != RULESET_NONE && rc == 0; i = b->elements[i].next)
		rc = filter_elements_each(b->elements[i].nlh, on_element, &work);
	if (rc == 0) {
		/*
		 * A set with an element for all other keys does not change in place: the
		 * ruleset is built again.
		 */
		set->changes = set->changes && set->other == NULL;
		if (ruleset_members_fill(set, work.list.m, work.list.n, b->conf->reclaim) <
		    0)
			(void)build_fail(b, "out of memory");
	}
	free(work.list.m);
	return rc < 0 ? build_fail(b, "set %.64s is malformed", raw->name)
		      : -(int)b->failed;
}

int
build_set(struct build *b, const struct nlattr *name, uint32_t *number)
{
	const char *text = text_of(name);

	if (text == NULL)
		return -1;
	for (uint32_t k = 0; k < b->n_set; k++) {
		/*
		 * Rules use anonymous sets in the order of b->set[]: begin the search at
		 * the index that is the number of loaded sets.
		 */
		struct raw_set *s = &b->set[(b->r->n_set + k) % b->n_set];

		if (strcmp(s->name, text) != 0)
			continue;
		if (s->number == RULESET_NONE && set_load(b, s) < 0)
			return -1;
		*number = s->number;
		return 0;
	}
	return build_fail(b, "set %.64s is not there", text);
}
