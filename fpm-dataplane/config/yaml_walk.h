/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yaml_walk: a table-driven walk over a YAML document. A table lists the keys that a
 * mapping may have; each key has a function that reads its value. The walk counts errors
 * and continues, so that one run reports them all. Private to config/.
 */
#ifndef CONFIG_YAML_WALK_H
#define CONFIG_YAML_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"

#define CFG_PATH_MAX      256  /* "ports[wan0].device", octets */
#define CFG_PORT_PATH_MAX 216  /* "ports[wan0]": a key behind it fits into a path */
#define CFG_TEXT_MAX      1056 /* a list of 511 octets, all escaped: filter.table */

struct yaml_document_s; /* yaml.h: yaml_document_t */
struct yaml_node_s;     /* yaml.h: yaml_node_t */

/* The state of one load. */
struct cfg {
	const char *file;
	unsigned int n_err;
	struct cfg_error_entry *errors; /* the first CFG_ERRORS_SHOWN errors */
	struct yaml_document_s *doc;
	void *root; /* the struct config that the load fills */
	/* "ports[wan0]" for each port, and for the first port beyond the limit. */
	char port_path[CONFIG_PORTS_MAX + 1][CFG_PORT_PATH_MAX];

	/*
	 * Places of keys that are checked against each other. Line 0: the key is not given;
	 * line < 0: its value was refused.
	 */
	struct config_pos listen_pos, metrics_pos, keep_nics_pos;
	bool netns_bad; /* control-netns was refused */
};

/* A value and its place. */
struct cfg_at {
	struct config_pos pos; /* of its key, or of the list item */
	const char *path;      /* "fpm.listen" */
	const struct yaml_node_s *node;
};

struct cfg_key;
typedef void cfg_take_fn(struct cfg *, const struct cfg_key *, const struct cfg_at *,
			 void *out);
typedef const char *cfg_text_fn(const struct cfg_key *, const void *, char[CFG_TEXT_MAX]);

struct cfg_key {
	const char *name;
	cfg_take_fn *take;         /* checks the value and stores it at `out` */
	size_t offset;             /* of `out` in the struct that the mapping fills */
	size_t size;               /* of `out`, if `take` needs it */
	unsigned int min, max;     /* bounds of a number */
	const char *const *words;  /* accepted words, by their values; the last is NULL */
	const char *expected;      /* end of messages; NULL: made of min, max and words */
	const struct cfg_key *sub; /* keys of the mapping below it; the last has no name */
	bool required;

	/*
	 * Write the value in `base`, the struct that the mapping fills, as YAML to `buf`.
	 * NULL: no value, and the key is left out. Unset in keys with a `sub`.
	 */
	cfg_text_fn *text;
	bool live;            /* a reload applies a new value */
	const char *old_name; /* name that is accepted with a warning; NULL: none */
};

/* Return the permitted values of a key, in words. */
#define CFG_EXPECTED_MAX 64
const char *cfg_expected(const struct cfg_key *key, char buf[CFG_EXPECTED_MAX]);

/* Set the place of `at` to the start of `node`. */
void cfg_place(struct cfg_at *at, const struct yaml_node_s *node);

/*
 * Record an error. A file written by hand has fewer than CFG_ERRORS_SHOWN errors. Further
 * errors are only counted.
 */
#define CFG_ERRORS_SHOWN 1000
void cfg_error(struct cfg *c, const struct cfg_at *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void cfg_error_at(struct cfg *c, struct config_pos pos, const char *path, const char *fmt,
		  ...) __attribute__((format(printf, 4, 5)));

/* Print the recorded errors by line and column, and free them. */
void cfg_errors_print(struct cfg *c, FILE *err);

/* Check a mapping against `keys`, and fill `base`. */
void cfg_walk(struct cfg *c, const struct cfg_key *keys, const struct cfg_at *at,
	      void *base);

/*
 * Return the text of a scalar that is neither empty nor null; else record an error and
 * return NULL. `*quoted` (NULL: not needed) is true for a string in quotes.
 */
const char *cfg_text(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		     bool *quoted);

/*
 * Return the text of a key in a mapping, unchecked; NULL: none. The document owns the text.
 */
const char *cfg_peek(const struct cfg *c, const struct cfg_at *at, const char *key);

/*
 * Return `text` escaped and shortened, for messages. Valid until the second
 * call after this one in the same thread.
 */
const char *cfg_escape(const char *text);

/* Read a value that is a mapping (`take`). The keys of the mapping fill `out`. */
cfg_take_fn cfg_take_map;

#endif
