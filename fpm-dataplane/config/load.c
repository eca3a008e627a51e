/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load the configuration file: read its octets, check the syntax, and walk over the keys of
 * schema.c. Runs in main before any thread exists, in manage, and in fpmctl. It starts and
 * changes nothing, because --check uses the same code.
 */
#include "config/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/check.h"
#include "config/schema.h"

/*
 * All ports with all keys and long device arguments take 30 KiB; the rest is for comments.
 */
#define FILE_MAX_BYTES (64u << 10)
/*
 * The tables of keys have three levels. The work of libyaml per token grows with the depth.
 */
#define DEPTH_MAX 8

/* Read the whole file. Return the number of octets, or -errno after an error message. */
static ssize_t
file_read(const char *file, FILE *err, unsigned char **out)
{
	char shown[CONFIG_FILE_STRLEN];
	FILE *f = fopen(file, "re");
	unsigned char *buf = malloc(FILE_MAX_BYTES + 1);
	size_t n = 0;
	int rc = f == NULL ? -errno : buf == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		n = fread(buf, 1, FILE_MAX_BYTES + 1, f);
		rc = ferror(f) ? -errno : n > FILE_MAX_BYTES ? -EFBIG : 0;
	}
	if (f != NULL)
		fclose(f);
	if (rc == 0) {
		*out = buf;
		return (ssize_t)n;
	}
	free(buf);
	fprintf(err, "%s: cannot be read: %s; expected a YAML file of at most %u KiB\n",
		config_file_str(file, shown), strerror(-rc), FILE_MAX_BYTES >> 10);
	return rc;
}

static struct config_pos
mark_pos(const yaml_mark_t *mark)
{
	return (struct config_pos){(int)mark->line + 1, (int)mark->column + 1};
}

/* Report the error of libyaml, with a hint for the two most frequent causes. */
static void
syntax_error_report(struct cfg *c, const yaml_parser_t *p, const unsigned char *text,
		    size_t len)
{
	size_t line = p->problem_mark.line, column = p->problem_mark.column, at = 0, n;
	const char *hint = "YAML";
	char buf[256];

	if (p->error == YAML_READER_ERROR) { /* the error has an offset, not a line */
		line = column = 0;
		for (size_t i = 0; i < p->problem_offset && i < len; i++) {
			column = text[i] == '\n' ? 0 : column + 1;
			line += text[i] == '\n';
		}
	}
	for (size_t l = 0; l < line && at < len; at++)
		l += text[at] == '\n';
	for (n = 0; at + n < len && text[at + n] != '\n' && n < sizeof(buf) - 1; n++)
		buf[n] = text[at + n] != '\0' ? (char)text[at + n] : ' ';
	buf[n] = '\0';
	if (buf[strspn(buf, " ")] == '\t')
		hint = "spaces, not tabs, at the start of a line";
	else if (strstr(buf, "]:") != NULL)
		hint = "quotes around an IPv6 address: \"[::1]:2620\"";
	cfg_error_at(c, (struct config_pos){(int)line + 1, (int)column + 1}, "syntax",
		     "%s%s%s; expected %s", p->context != NULL ? p->context : "",
		     p->context != NULL ? ", " : "",
		     p->problem != NULL ? p->problem : "not readable", hint);
}

/*
 * Report an error and return true if a list or mapping is nested deeper than DEPTH_MAX.
 * Parsing stops at the first such place, because libyaml needs minutes to load a file of
 * brackets. The load that follows reports bad syntax.
 */
static bool
document_is_too_deep(struct cfg *c, const unsigned char *text, size_t len)
{
	bool more = true;
	yaml_parser_t parser;
	yaml_event_t event;
	int depth = 0;

	if (!yaml_parser_initialize(&parser))
		return false; /* out of memory; the load reports it */
	yaml_parser_set_input_string(&parser, text, len);
	while (more && depth <= DEPTH_MAX && yaml_parser_parse(&parser, &event)) {
		more = event.type != YAML_STREAM_END_EVENT;
		if (event.type == YAML_SEQUENCE_START_EVENT ||
		    event.type == YAML_MAPPING_START_EVENT)
			depth++;
		else if (event.type == YAML_SEQUENCE_END_EVENT ||
			 event.type == YAML_MAPPING_END_EVENT)
			depth--;
		if (depth > DEPTH_MAX)
			cfg_error_at(c, mark_pos(&event.start_mark), "syntax",
				     "lists and mappings are nested more than %d deep; "
				     "expected at most 3",
				     DEPTH_MAX);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return depth > DEPTH_MAX;
}

static void
document_check(struct cfg *c, struct config *conf)
{
	struct cfg_at top = {
		.pos = {1, 1}, .path = "", .node = yaml_document_get_root_node(c->doc)};

	if (top.node == NULL ||
	    (top.node->type == YAML_SCALAR_NODE && top.node->data.scalar.length == 0)) {
		cfg_error_at(c, top.pos, "ports",
			     "the file is empty; expected at least one port");
		return;
	}
	if (top.node->type != YAML_MAPPING_NODE) {
		cfg_error_at(c, mark_pos(&top.node->start_mark), "top",
			     "is not a mapping; expected keys such as `ports:`");
		return;
	}
	cfg_walk(c, cfg_top_keys, &top, conf);
	cfg_find_users(c, conf);
	cfg_check_whole(c, conf);
}

int
config_parse(const char *file, const void *octets, size_t len, struct config *conf,
	     FILE *err)
{
	struct cfg c = {.file = file, .root = conf};
	const unsigned char *text = octets;
	yaml_parser_t parser;
	yaml_document_t doc;

	cfg_defaults(conf);
	if (document_is_too_deep(&c, text, len)) {
		cfg_errors_print(&c, err);
		return (int)c.n_err;
	}
	if (!yaml_parser_initialize(&parser)) {
		fprintf(err, "%s%sout of memory\n", file != NULL ? file : "",
			file != NULL ? ": " : "");
		return 1;
	}
	yaml_parser_set_input_string(&parser, text, len);
	if (!yaml_parser_load(&parser, &doc)) {
		syntax_error_report(&c, &parser, text, len);
	} else {
		c.doc = &doc;
		document_check(&c, conf);
		yaml_document_delete(&doc);
		/*
		 * A second document, or text that is not YAML after the first, is an error.
		 */
		if (!yaml_parser_load(&parser, &doc)) {
			syntax_error_report(&c, &parser, text, len);
		} else {
			if (yaml_document_get_root_node(&doc) != NULL)
				cfg_error_at(&c, mark_pos(&doc.start_mark), "---",
					     "starts a second document; expected one");
			yaml_document_delete(&doc);
		}
	}
	cfg_errors_print(&c, err);
	yaml_parser_delete(&parser);
	return (int)c.n_err;
}

const char *
config_file_str(const char *file, char buf[CONFIG_FILE_STRLEN])
{
	return log_escape_name(file, buf, CONFIG_FILE_STRLEN);
}

int
config_load(const char *file, struct config *conf, FILE *err)
{
	unsigned char *text = NULL;
	ssize_t len = file_read(file, err, &text);
	char shown[CONFIG_FILE_STRLEN];
	int n = 1;

	if (len >= 0)
		n = config_parse(config_file_str(file, shown), text, (size_t)len, conf,
				 err);
	snprintf(conf->file, sizeof(conf->file), "%s", file);
	free(text);
	return n;
}
