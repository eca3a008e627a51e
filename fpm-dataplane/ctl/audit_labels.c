/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the labels of both sides as objects: the key is the label as text, the value has its
 * next hops as one text, "via 10.0.1.2 label 200; dev red". There are few labels, so each
 * round reads all.
 */
#include "ctl/audit_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mpls_entry.h"
#include "base/prefix.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/json_row.h"
#include "ctl/zebra.h"

#define ROUNDS     3
#define PAUSE_MS   300
#define PATIENCE_S 10
#define HOP_STRLEN 256

static bool
is_linklocal(const char *via)
{
	struct prefix p;

	return via[0] != '\0' && prefix_parse(via, &p, NULL) == 0 &&
	       prefix_is_linklocal6(&p);
}

/*
 * Return the next hop as text: gateway, or else interface, and labels without implicit
 * null. A link-local gateway also has its interface, because several links may have it.
 */
static json_t *
hop_text(const char *via, const char *dev, const json_t *labels)
{
	char text[HOP_STRLEN];
	bool any = false;
	size_t n, i;
	json_t *one;

	if (is_linklocal(via))
		n = (size_t)snprintf(text, sizeof(text), "via %s dev %s", via, dev);
	else
		n = (size_t)snprintf(text, sizeof(text), "%s %s",
				     via[0] != '\0' ? "via" : "dev",
				     via[0] != '\0' ? via : dev);
	json_array_foreach ((json_t *)(uintptr_t)labels, i, one) {
		if (json_integer_value(one) == LABEL_IMPLICIT_NULL || n + 16 > sizeof(text))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld",
				      any ? "/" : " label ",
				      (long long)json_integer_value(one));
		any = true;
	}
	return json_string(text);
}

static int
text_order(const void *a, const void *b)
{
	return strcmp(json_string_value(*(json_t *const *)a),
		      json_string_value(*(json_t *const *)b));
}

/* Join the texts of next hops to one text, in sorted order. Steals `hops`. */
static json_t *
hops_join_json(json_t *hops)
{
	size_t n = json_array_size(hops), size = 1;
	json_t **all = calloc(n + 1, sizeof(json_t *)), *joined;
	char *text;

	if (all == NULL)
		abort();
	for (size_t i = 0; i < n; i++) {
		all[i] = json_array_get(hops, i);
		size += json_string_length(all[i]) + 2;
	}
	qsort(all, n, sizeof(json_t *), text_order);
	text = calloc(1, size);
	if (text == NULL)
		abort();
	for (size_t i = 0; i < n; i++) {
		strcat(text, i == 0 ? "" : "; ");
		strcat(text, json_string_value(all[i]));
	}
	joined = json_string(text);
	free(text);
	free(all);
	json_decref(hops);
	return joined;
}

/* --- zebra ---------------------------------------------------------------------------- */

struct text {
	char *s;
	size_t n;
};

static void
text_on_line(const char *line, void *ctx)
{
	struct text *t = ctx;
	size_t len = strlen(line);

	t->s = realloc(t->s, t->n + len + 2);
	if (t->s == NULL)
		abort();
	memcpy(t->s + t->n, line, len);
	t->n += len;
	t->s[t->n++] = '\n';
	t->s[t->n] = '\0';
}

/*
 * Return the installed next hops of a label of zebra as one text; NULL if none is
 * installed.
 */
static json_t *
zebra_hops(const json_t *row)
{
	json_t *hops = json_array(), *hop;
	size_t i;

	json_array_foreach (json_object_get(row, "nexthops"), i, hop) {
		json_t *stack = json_object_get(hop, "outLabelStack");
		json_t *one = json_pack("[I]", (json_int_t)row_int(hop, "outLabel"));

		if (row_true(hop, "installed"))
			json_array_append_new(hops,
					      hop_text(row_str(hop, "nexthop"),
						       row_str(hop, "interface"),
						       json_is_array(stack) ? stack : one));
		json_decref(one);
	}
	if (json_array_size(hops) == 0) {
		json_decref(hops);
		return NULL;
	}
	return hops_join_json(hops);
}

/* Read zebra's labels. Return NULL if it does not answer. */
static json_t *
zebra_labels(const char *vtysh)
{
	json_t *table, *labels = json_object(), *row, *hops;
	struct text text = {0};
	const char *label;

	if (zebra_lines(vtysh, "show mpls table json", PATIENCE_S, text_on_line, &text) <
	    0) {
		free(text.s);
		json_decref(labels);
		return NULL;
	}
	/* zebra prints nothing, or a sentence, if it has no labels. */
	table = text.s == NULL ? NULL : json_loads(text.s, 0, NULL);
	json_object_foreach (table, label, row) {
		hops = zebra_hops(row);
		if (hops != NULL)
			json_object_set_new(labels, label, hops);
	}
	json_decref(table);
	free(text.s);
	return labels;
}

/* --- the daemon ----------------------------------------------------------------------- */

static bool
rib_on_row(const json_t *row, const char *text, void *ctx)
{
	json_t *labels = ctx, *hops = json_array(), *hop;
	char label[16];
	size_t i;

	json_array_foreach (json_object_get(row, "nexthops"), i, hop)
		json_array_append_new(hops,
				      hop_text(row_str(hop, "via"), row_str(hop, "dev"),
					       json_object_get(hop, "labels")));
	snprintf(label, sizeof(label), "%lld", row_int(row, "label"));
	/* null: the kernel's route is in force, so zebra's route, if any, is not shown. */
	if (strcmp(row_str(row, "source"), "kernel") == 0) {
		json_decref(hops);
		json_object_set_new(labels, label, json_null());
	} else {
		json_object_set_new(labels, label, hops_join_json(hops));
	}
	return true;
}

/* Read the labels of the daemon. Return NULL if it does not answer. */
static json_t *
rib_labels(const char *socket)
{
	json_t *request = json_pack("{s:s}", "show", "labels"), *labels = json_object();
	int rc = conn_ask(socket, request, rib_on_row, labels);

	json_decref(request);
	if (rc == 0)
		return labels;
	json_decref(labels);
	return NULL;
}

/* --- comparison ----------------------------------------------------------------------- */

static void
difference_add(json_t *differences, const char *label, const json_t *zebra,
	       const json_t *rib)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "label %s", label);
	json_array_append_new(differences,
			      json_pack("{s:s, s:n, s:n, s:n, s:s, s:O?, s:O?}", "what",
					"zebra", "vrf", "table", "from", "prefix", prefix,
					"zebra", (json_t *)(uintptr_t)zebra, "rib",
					(json_t *)(uintptr_t)rib));
}

/*
 * Remove labels for which the kernel's route is in force, because they cannot be compared.
 */
static void
kernels_labels_remove(json_t *zebra, json_t *rib)
{
	const char *label;
	json_t *hops;
	void *next;

	json_object_foreach_safe(rib, next, label, hops)
	{
		if (!json_is_null(hops))
			continue;
		json_object_del(zebra, label);
		json_object_del(rib, label); /* frees `label` */
	}
}

/* Return rows for the labels that differ. */
static json_t *
labels_compare(json_t *zebra, json_t *rib)
{
	json_t *differences = json_array(), *hops, *others;
	const char *label;

	json_object_foreach (zebra, label, hops) {
		others = json_object_get(rib, label);
		if (others == NULL || !json_equal(hops, others))
			difference_add(differences, label, hops, others);
	}
	json_object_foreach (rib, label, hops)
		if (json_object_get(zebra, label) == NULL)
			difference_add(differences, label, NULL, hops);
	return differences;
}

int
audit_labels(const char *socket, const char *vtysh, struct label_audit *out)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

	*out = (struct label_audit){.differences = json_array()};
	for (int round = 0; round < ROUNDS; round++) {
		json_t *rib = rib_labels(socket), *zebra;

		if (rib == NULL)
			return CTL_NO_DAEMON;
		zebra = zebra_labels(vtysh);
		if (zebra == NULL) {
			json_decref(rib);
			return CTL_NO_DAEMON;
		}
		kernels_labels_remove(zebra, rib);
		json_decref(out->differences);
		out->differences = labels_compare(zebra, rib);
		out->n_zebra = json_object_size(zebra);
		out->n_rib = json_object_size(rib);
		out->n_found = json_array_size(out->differences);
		json_decref(zebra);
		json_decref(rib);
		if (out->n_found == 0)
			break;
		nanosleep(&pause, NULL);
	}
	return CTL_OK;
}

void
audit_labels_free(struct label_audit *a)
{
	json_decref(a->differences);
}
