/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walk over the YAML document, and check each mapping against its table of keys. Runs in
 * main before any thread exists, in manage, and in fpmctl. It continues after an error,
 * follows the document no deeper than the tables, and escapes all text of the file that it
 * prints.
 */
#include "config/yaml_walk.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/edit_distance.h"
#include "base/log.h"

void
cfg_place(struct cfg_at *at, const yaml_node_t *node)
{
	at->pos.line = (int)node->start_mark.line + 1;
	at->pos.column = (int)node->start_mark.column + 1;
}

/*
 * An error. All errors are kept until the end and then printed by place, because
 * contradictions between values are found last.
 */
struct cfg_error_entry {
	struct config_pos pos;
	unsigned int n; /* number of the error, in the order found */
	char *text;     /* "ports[wan0].mtu: 9 is out of range" */
};

static void
error_record(struct cfg *c, struct config_pos pos, const char *path, const char *fmt,
	     va_list ap)
{
	struct cfg_error_entry *entry;
	size_t size;
	FILE *text;

	if (++c->n_err > CFG_ERRORS_SHOWN)
		return;
	entry = reallocarray(c->errors, c->n_err, sizeof(*entry));
	if (entry == NULL)
		abort(); /* out of memory for some KiB */
	c->errors = entry;
	entry += c->n_err - 1;
	*entry = (struct cfg_error_entry){.pos = pos, .n = c->n_err};
	text = open_memstream(&entry->text, &size);
	if (text == NULL)
		abort();
	fprintf(text, "%s: ", path);
	vfprintf(text, fmt, ap);
	fclose(text);
}

static int
error_compare_place(const void *a, const void *b)
{
	const struct cfg_error_entry *x = a, *y = b;

	if (x->pos.line != y->pos.line)
		return x->pos.line < y->pos.line ? -1 : 1;
	if (x->pos.column != y->pos.column)
		return x->pos.column < y->pos.column ? -1 : 1;
	return x->n < y->n ? -1 : 1;
}

void
cfg_errors_print(struct cfg *c, FILE *err)
{
	unsigned int n = c->n_err < CFG_ERRORS_SHOWN ? c->n_err : CFG_ERRORS_SHOWN;

	if (n > 1)
		qsort(c->errors, n, sizeof(*c->errors), error_compare_place);
	for (unsigned int i = 0; i < n; i++) {
		const struct cfg_error_entry *w = &c->errors[i];

		if (c->file != NULL)
			fprintf(err, "%s:%d:%d: ", c->file, w->pos.line, w->pos.column);
		fprintf(err, "%s\n", w->text);
		free(w->text);
	}
	if (c->n_err > n)
		fprintf(err, "%s%s%u more error%s not shown\n",
			c->file != NULL ? c->file : "", c->file != NULL ? ": " : "",
			c->n_err - n, c->n_err - n == 1 ? "" : "s");
	free(c->errors);
	c->errors = NULL;
}

void
cfg_error(struct cfg *c, const struct cfg_at *at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	error_record(c, at->pos, at->path, fmt, ap);
	va_end(ap);
}

void
cfg_error_at(struct cfg *c, struct config_pos pos, const char *path, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	error_record(c, pos, path, fmt, ap);
	va_end(ap);
}

const char *
cfg_escape(const char *text)
{
	static __thread char buf[2][200];
	static __thread unsigned int turn;
	char *out = buf[turn++ % 2]; /* one message can contain two escaped texts */
	size_t len = strlen(text);

	log_escape(text, len > 40 ? 40 : len, out, sizeof(buf[0]) - 3);
	if (len > 40)
		strcat(out, "...");
	return out;
}

static void
unknown_key_report(struct cfg *c, const struct cfg_key *keys, const struct cfg_at *at)
{
	const struct cfg_key *nearest = NULL;
	unsigned int best = EDIT_WORD_MAX;
	char all[1024] = "";
	size_t n = 0;

	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		unsigned int d =
			edit_distance((const char *)at->node->data.scalar.value, k->name);

		if (d < best && d <= 1 + strlen(k->name) / 4) {
			best = d;
			nearest = k;
		}
		if (n < sizeof(all))
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
					      k == keys ? "" : ", ", k->name);
	}
	if (nearest != NULL)
		cfg_error(c, at, "unknown key; expected a known key, such as %s",
			  nearest->name);
	else
		cfg_error(c, at, "unknown key; expected one of %s", all);
}

static const char *
node_kind(const yaml_node_t *node)
{
	return node->type == YAML_SEQUENCE_NODE  ? "a list"
	       : node->type == YAML_MAPPING_NODE ? "a mapping"
						 : "a single value";
}

/* Return true if the node is a scalar without a value: `key:`, `key: ~` or `key: null`. */
static bool
node_is_null(const yaml_node_t *node)
{
	const char *s = (const char *)node->data.scalar.value;

	return node->type == YAML_SCALAR_NODE &&
	       node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (s[0] == '\0' || strcmp(s, "~") == 0 || strcmp(s, "null") == 0);
}

const char *
cfg_expected(const struct cfg_key *key, char buf[CFG_EXPECTED_MAX])
{
	size_t n = 0;

	if (key->expected != NULL)
		return key->expected;
	if (key->words == NULL)
		snprintf(buf, CFG_EXPECTED_MAX, "a number from %u to %u", key->min,
			 key->max);
	for (unsigned int i = 0; key->words != NULL && key->words[i] != NULL; i++)
		n += (size_t)snprintf(buf + n, CFG_EXPECTED_MAX - n, "%s%s",
				      i == 0                      ? ""
				      : key->words[i + 1] == NULL ? " or "
								  : ", ",
				      key->words[i]);
	return buf;
}

/*
 * Return the key with this name or this old name; NULL: there is none. Log a warning for an
 * old name.
 */
static const struct cfg_key *
key_by_name(const struct cfg_key *keys, const char *name, const char *path)
{
	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		if (strcmp(k->name, name) == 0)
			return k;
		if (k->old_name != NULL && strcmp(k->old_name, name) == 0) {
			log_warn("main: configuration key renamed key=%s new=%s "
				 "accepted=one-more-release",
				 path, k->name);
			return k;
		}
	}
	return NULL;
}

void
cfg_walk(struct cfg *c, const struct cfg_key *keys, const struct cfg_at *at, void *base)
{
	const yaml_node_t *map = at->node;
	int seen[64] = {0}; /* line of key i; 0: not seen. No table has so many keys */

	if (map->type != YAML_MAPPING_NODE) {
		cfg_error(c, at, "is %s; expected keys such as `%s:`", node_kind(map),
			  keys->name);
		return;
	}
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(c->doc, p->key);
		const struct cfg_key *k;
		char path[CFG_PATH_MAX];
		struct cfg_at sub = {.path = path};

		cfg_place(&sub, key);
		if (key->type != YAML_SCALAR_NODE) {
			cfg_error_at(c, sub.pos, at->path[0] != '\0' ? at->path : "top",
				     "key is %s; expected a word", node_kind(key));
			continue;
		}
		snprintf(path, sizeof(path), "%s%s%s", at->path,
			 at->path[0] != '\0' ? "." : "",
			 cfg_escape((const char *)key->data.scalar.value));
		k = key_by_name(keys, (const char *)key->data.scalar.value, path);
		if (k == NULL) {
			sub.node = key;
			unknown_key_report(c, keys, &sub);
			continue;
		}
		if (seen[k - keys] != 0) {
			cfg_error(c, &sub, "given twice, first on line %d; expected once",
				  seen[k - keys]);
			continue;
		}
		seen[k - keys] = sub.pos.line;
		sub.node = yaml_document_get_node(c->doc, p->value);
		k->take(c, k, &sub, (char *)base + k->offset);
	}
	for (const struct cfg_key *k = keys; k->name != NULL; k++)
		if (k->required && seen[k - keys] == 0) {
			char path[CFG_PATH_MAX], buf[64];

			snprintf(path, sizeof(path), "%s%s%s", at->path,
				 at->path[0] != '\0' ? "." : "", k->name);
			cfg_error_at(c, at->pos, path, "is missing; expected %s",
				     cfg_expected(k, buf));
		}
}

const char *
cfg_text(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, bool *quoted)
{
	const yaml_node_t *n = at->node;
	char buf[CFG_EXPECTED_MAX];

	if (n->type != YAML_SCALAR_NODE) {
		cfg_error(c, at, "is %s; expected %s", node_kind(n),
			  cfg_expected(key, buf));
		return NULL;
	}
	if (node_is_null(n) || n->data.scalar.length == 0) {
		cfg_error(c, at, "has no value; expected %s", cfg_expected(key, buf));
		return NULL;
	}
	if (strlen((const char *)n->data.scalar.value) != n->data.scalar.length) {
		cfg_error(c, at, "has a zero octet inside; expected %s",
			  cfg_expected(key, buf));
		return NULL;
	}
	if (quoted != NULL)
		*quoted = n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return (const char *)n->data.scalar.value;
}

const char *
cfg_peek(const struct cfg *c, const struct cfg_at *at, const char *key)
{
	const yaml_node_t *map = at->node;

	if (map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = yaml_document_get_node(c->doc, p->key);
		const yaml_node_t *v = yaml_document_get_node(c->doc, p->value);

		if (k->type == YAML_SCALAR_NODE && v->type == YAML_SCALAR_NODE &&
		    strcmp((const char *)k->data.scalar.value, key) == 0)
			return node_is_null(v) || v->data.scalar.length == 0
				       ? NULL
				       : (const char *)v->data.scalar.value;
	}
	return NULL;
}

/*
 * Read a mapping into `out`, the struct that its keys fill. The value is null if all its
 * keys are commented out.
 */
void
cfg_take_map(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	if (!node_is_null(at->node))
		cfg_walk(c, key->sub, at, out);
}
