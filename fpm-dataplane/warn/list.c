/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of warnings. A scan makes a new list. The end of the scan compares it with the
 * old list, so that each warning is logged only when it appears and when it disappears.
 * [warn]
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "warn/impl.h"

#define LINES_MAX 16u /* lines that one scan writes to the log */

int
list_init(struct warning_list *l)
{
	l->now = calloc(WARNINGS_MAX, sizeof(*l->now));
	l->next = calloc(WARNINGS_MAX, sizeof(*l->next));
	return l->now == NULL || l->next == NULL ? -ENOMEM : 0;
}

void
list_free(struct warning_list *l)
{
	free(l->now);
	free(l->next);
	*l = (struct warning_list){0};
}

void
list_begin(struct warning_list *l)
{
	l->n_next = 0;
	memset(l->count, 0, sizeof(l->count));
}

/*
 * Copy a text for logs and JSON. Cut it before log_harmless() replaces malformed UTF-8,
 * because the cut may split a character.
 */
static void
text_copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
	for (char *p = out; *p != '\0'; p++)
		if (*p == '\n' || *p == '\t' || *p == '"')
			*p = '?';
	log_harmless(out);
}

void
list_add(struct warning_list *l, enum warning_kind kind, const char *where,
	 const char *in_linux, const char *dataplane)
{
	struct warning *new;

	l->count[kind]++;
	if (l->n_next == WARNINGS_MAX)
		return;
	new = &l->next[l->n_next++];
	new->kind = (uint8_t)kind;
	text_copy(new->where, sizeof(new->where), where);
	text_copy(new->in_linux, sizeof(new->in_linux), in_linux);
	text_copy(new->dataplane, sizeof(new->dataplane), dataplane);
}

struct list_mark
list_mark(const struct warning_list *l)
{
	struct list_mark mark = {.n = l->n_next};

	memcpy(mark.count, l->count, sizeof(mark.count));
	return mark;
}

void
list_back(struct warning_list *l, const struct list_mark *mark)
{
	l->n_next = mark->n;
	memcpy(l->count, mark->count, sizeof(l->count));
}

/* --- the end of a scan ---------------------------------------------------------------- */

static int
warning_order(const void *a, const void *b)
{
	const struct warning *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->where, y->where);
}

static void
warning_log(const struct warning *x, bool gone, unsigned int *lines)
{
	const char *kind = warning_kind_name(x->kind);

	if (++*lines > LINES_MAX)
		return;
	if (gone)
		log_info("warn: configuration removed kind=%s where=\"%s\"", kind,
			 x->where);
	else
		log_warn("warn: configuration not obeyed kind=%s where=\"%s\"", kind,
			 x->where);
}

/* Log the warnings that only one of the sorted lists has. */
static void
changes_log(const struct warning_list *l)
{
	unsigned int i = 0, k = 0, lines = 0;

	while (i < l->n_now || k < l->n_next) {
		int order = i == l->n_now    ? 1
			    : k == l->n_next ? -1
					     : warning_order(&l->now[i], &l->next[k]);

		if (order < 0)
			warning_log(&l->now[i], true, &lines);
		else if (order > 0)
			warning_log(&l->next[k], false, &lines);
		i += order <= 0;
		k += order >= 0;
	}
	if (lines > LINES_MAX)
		log_warn("warn: further changes not logged changes=%u see=\"fpmctl show "
			 "warnings\"",
			 lines - LINES_MAX);
}

void
list_end(struct warning_list *l)
{
	struct warning *swap = l->now;

	qsort(l->next, l->n_next, sizeof(*l->next), warning_order);
	changes_log(l);
	l->now = l->next;
	l->next = swap;
	l->n_now = l->n_next;
	memcpy(l->shown, l->count, sizeof(l->shown));
	for (unsigned int k = 0; k < N_WARNING; k++)
		atomic_store_explicit(&warning_count[k], l->count[k], memory_order_relaxed);
}

/* --- rows ----------------------------------------------------------------------------- */

/*
 * Append the row about the warnings for which the list has no room. Returns as list_rows().
 */
static bool
rest_row(const struct warning_list *l, uint64_t *from, unsigned int max, json_t *rows)
{
	uint32_t n = 0;
	char text[64];

	for (unsigned int k = 0; k < N_WARNING; k++)
		n += l->shown[k];
	if (n <= l->n_now || *from > l->n_now)
		return true;
	if (json_array_size(rows) >= max)
		return false;
	snprintf(text, sizeof(text), "%u more are not listed.", n - l->n_now);
	json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "kind", "more",
					      "where", "", "linux", text, "dataplane", ""));
	(*from)++;
	return true;
}

bool
list_rows(const struct warning_list *l, uint64_t *from, unsigned int max, json_t *rows)
{
	for (; *from < l->n_now; (*from)++) {
		const struct warning *x = &l->now[*from];

		if (json_array_size(rows) >= max)
			return false;
		json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s}", "kind",
						      warning_kind_name(x->kind), "where",
						      x->where, "linux", x->in_linux,
						      "dataplane", x->dataplane));
	}
	return rest_row(l, from, max, rows);
}
