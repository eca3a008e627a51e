/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yaml_walk: a table-driven walk over a YAML document. A table of keys says what a
 * mapping may hold; each key has a function that takes its value. Errors are told, counted
 * and walked past, so that one run names them all. Private to config/.
 */
#ifndef CONFIG_YAML_WALK_H
#define CONFIG_YAML_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"

#define CFG_PATH_MAX 256 /* "ports[wan0].device", octets */
#define CFG_TEXT_MAX 768 /* a path of 255 octets, each escaped */

struct yaml_document_s; /* yaml.h: yaml_document_t */
struct yaml_node_s;     /* yaml.h: yaml_node_t */

/* One load. */
struct cfg {
	const char *file;
	unsigned int n_err;
	struct cfg_wrong *wrong; /* the first CFG_ERRORS_SHOWN of them */
	struct yaml_document_s *doc;
	void *root; /* the struct being filled */
	/* "ports[wan0]", of each port, and of the one too many. */
	char port_path[CONFIG_PORTS_MAX + 1][CFG_PATH_MAX];

	/* Of two keys that are held against each other; line 0: not given, < 0: bad. */
	struct config_pos listen_pos, metrics_pos, keep_nics_pos;
	bool netns_bad; /* control-netns is not known */
};

/* A value and where it stands. */
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
	size_t size;               /* of `out`, where the function has to know */
	unsigned int min, max;     /* of numbers */
	const char *expected;      /* ends the messages; NULL: made from min and max */
	const struct cfg_key *sub; /* keys of a mapping below; ends with a NULL name */
	bool required;

	/*
	 * The value in `base`, which the mapping fills, as YAML into `buf`; NULL: it has none,
	 * the key is left out. Not of keys with a `sub`.
	 */
	cfg_text_fn *text;
	bool live;            /* a running daemon takes another value */
	const char *old_name; /* taken, too, with a warning; NULL: it never had another */
};

/* The values that a key takes, in words. */
#define CFG_EXPECTED_MAX 64
const char *cfg_expected(const struct cfg_key *key, char buf[CFG_EXPECTED_MAX]);

/* Where `node` begins. */
void cfg_place(struct cfg_at *at, const struct yaml_node_s *node);

/* Note one error; past CFG_ERRORS_SHOWN, more than a file by hand has, it is only counted. */
#define CFG_ERRORS_SHOWN 1000
void cfg_error(struct cfg *c, const struct cfg_at *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void cfg_error_at(struct cfg *c, struct config_pos pos, const char *path, const char *fmt,
		  ...) __attribute__((format(printf, 4, 5)));

/* Print what was told, by line and column, and forget it. */
void cfg_errors_print(struct cfg *c, FILE *err);

/* Check a mapping against `keys` and fill `base`. */
void cfg_walk(struct cfg *c, const struct cfg_key *keys, const struct cfg_at *at,
	      void *base);

/*
 * Text of a scalar that is neither empty nor null; else one error and NULL. `quoted` (may
 * be NULL) tells a string in quotes from a bare word.
 */
const char *cfg_text(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		     bool *quoted);

/* Text of a mapping's key, unchecked and not to be kept; NULL: it has none. */
const char *cfg_peek(const struct cfg *c, const struct cfg_at *at, const char *key);

/* Value of a key made printable and short, for messages; valid until the next call. */
const char *cfg_show(const char *text);

/* `take` of a mapping: `out` is the struct that the keys below fill. */
cfg_take_fn cfg_take_map;

#endif
