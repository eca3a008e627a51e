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

/* An element before it is sorted. Its keys are in the dump. */
struct raw_element {
	const uint8_t *key, *key_end;
	struct ruleset_element e;
};

struct raw_list {
	struct raw_element *e;
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
	(void)attr_be32(message_attr(nlh, NFTA_SET_DATA_TYPE), &s.data_type);
	(void)attr_be32(message_attr(nlh, NFTA_SET_DATA_LEN), &s.data_len);
	if (concat != NULL && fields_read(&s, concat) < 0)
		return build_fail(b, "set %.64s is malformed", s.name);
	b->set = build_room(b->set, b->n_set, &b->room_set, sizeof(*b->set));
	b->set[b->n_set++] = s;
	return 0;
}

/* Read the expiry of an element. */
static void
expiry_read(const struct build *b, const struct nlattr *elem, struct ruleset_element *e)
{
	uint64_t left_ms;

	if (attr_be64(attr_find_in(elem, NFTA_SET_ELEM_EXPIRATION), &left_ms) < 0)
		return;
	e->until = b->conf->now + (uint64_t)((double)left_ms * b->conf->ticks_s / 1000.);
	if (e->until == 0)
		e->until = 1;
}

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
element_read(struct build *b, const struct nlattr *elem, struct ruleset_set *set,
	     struct raw_list *list)
{
	const struct nlattr *data = attr_find_in(elem, NFTA_SET_ELEM_DATA);
	const struct nlattr *end = attr_find_in(elem, NFTA_SET_ELEM_KEY_END);
	struct raw_element raw = {.e.chain = RULESET_NONE};
	uint32_t flags = 0;
	unsigned int n = 0;
	char name[16];

	(void)attr_be32(attr_find_in(elem, NFTA_SET_ELEM_FLAGS), &flags);
	raw.e.end = (flags & NFT_SET_ELEM_INTERVAL_END) != 0;
	attr_text(attr_find_in(attr_find_in(elem, NFTA_SET_ELEM_EXPR), NFTA_EXPR_NAME),
		  name, sizeof(name));
	if (attr_find_in(elem, NFTA_SET_ELEM_EXPRESSIONS) != NULL ||
	    (name[0] != '\0' && strcmp(name, "counter") != 0))
		return build_fail(b, "an element of set %s with a limit is not supported",
				  set->name);
	if (attr_find_in(elem, NFTA_SET_ELEM_OBJREF) != NULL)
		return build_fail(b, "a map of named objects is not supported");
	expiry_read(b, elem, &raw.e);
	if (set->is_map && !raw.e.end && data_read(b, data, set, &raw.e) < 0)
		return -1;
	if ((flags & NFT_SET_ELEM_CATCHALL) != 0) {
		if (set->other == NULL)
			set->other = malloc(sizeof(*set->other));
		if (set->other == NULL)
			abort();
		*set->other = raw.e;
		return 0;
	}
	raw.key = attr_value(attr_find_in(elem, NFTA_SET_ELEM_KEY), &n);
	if (raw.key == NULL || n != set->key_len)
		return -1;
	raw.key_end = raw.key;
	if (end != NULL) {
		raw.key_end = attr_value(end, &n);
		if (raw.key_end == NULL || n != set->key_len || set->kind != SET_RANGES)
			return -1;
	}
	list->e = build_room(list->e, list->n, &list->room, sizeof(*list->e));
	list->e[list->n++] = raw;
	return 0;
}

static int
message_read(struct build *b, const struct nlmsghdr *nlh, struct ruleset_set *set,
	     struct raw_list *list)
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
		    element_read(b, elem, set, list) < 0)
			return -1;
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return 0;
}

static int
element_compare(const void *a, const void *b, void *ctx)
{
	const struct raw_element *x = a, *y = b;
	const struct ruleset_set *set = ctx;
	int d = memcmp(x->key, y->key, set->key_len);

	/* The end of an interval is before the begin of the next one. */
	return d != 0 ? d : (int)y->e.end - (int)x->e.end;
}

static void
list_store(struct ruleset_set *set, struct raw_list *list)
{
	size_t len = set->key_len;

	set->n = list->n;
	set->key = malloc(list->n * len + 1);
	set->element = malloc((list->n + 1) * sizeof(*set->element));
	set->key_end = set->kind == SET_RANGES ? malloc(list->n * len + 1) : NULL;
	if (set->key == NULL || set->element == NULL ||
	    (set->kind == SET_RANGES && set->key_end == NULL))
		abort();
	if (list->n > 0 && set->kind != SET_RANGES)
		qsort_r(list->e, list->n, sizeof(*list->e), element_compare, set);
	for (uint32_t i = 0; i < list->n; i++) {
		memcpy(set->key + i * len, list->e[i].key, len);
		if (set->key_end != NULL)
			memcpy(set->key_end + i * len, list->e[i].key_end, len);
		set->element[i] = list->e[i].e;
	}
}

static int
set_load(struct build *b, struct raw_set *raw)
{
	struct ruleset_set *set = &b->r->set[b->r->n_set];
	struct raw_list list = {0};
	int rc = 0;

	*set = (struct ruleset_set){.key_len = (uint8_t)raw->key_len,
				    .is_map = (raw->flags & NFT_SET_MAP) != 0,
				    .has_verdicts = raw->data_type == NFT_DATA_VERDICT,
				    .kind = (raw->flags & NFT_SET_INTERVAL) == 0 ? SET_EXACT
					    : raw->n_field > 1 ? SET_RANGES
							       : SET_INTERVAL,
				    .n_field = (uint8_t)raw->n_field,
				    .name = strdup(raw->name)};
	memcpy(set->field, raw->field, sizeof(set->field));
	if (set->name == NULL)
		abort();
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
		rc = message_read(b, b->elements[i].nlh, set, &list);
	if (rc == 0)
		list_store(set, &list);
	free(list.e);
	return rc < 0 ? build_fail(b, "set %.64s is malformed", raw->name) : 0;
}

int
build_set(struct build *b, const struct nlattr *name, uint32_t *number)
{
	const char *text = text_of(name);

	if (text == NULL)
		return -1;
	for (uint32_t k = 0; k < b->n_set; k++) {
		/* Sets without a name are used in their order. */
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
