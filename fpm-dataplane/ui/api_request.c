/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translate method, path, parameters and body of HTTP to a request of the control protocol,
 * which request.c checks. Runs in ui; no state. The input is untrusted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/api.h"

#define ROOT "/v1/"

static void __attribute__((format(printf, 3, 4)))
output_refuse(struct api_output *out, unsigned int status, const char *fmt, ...)
{
	va_list ap;

	out->status = status;
	va_start(ap, fmt);
	vsnprintf(out->why, sizeof(out->why), fmt, ap);
	va_end(ap);
}

/* --- parameters to JSON --------------------------------------------------------------- */

/* Convert a parameter that is no string to its JSON type. */
static json_t *
arg_typed(const char *key, const char *value)
{
	static const char *const flags[] = {"longest", "all_tables"};
	static const char *const numbers[] = {"family", "proto", "sport", "dport",
					      "count",  "for_s", "snap",  "frame_bytes"};
	char *end;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(key, flags[i]) == 0 && strcmp(value, "true") == 0)
			return json_true();
		else if (strcmp(key, flags[i]) == 0 && strcmp(value, "false") == 0)
			return json_false();
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(key, numbers[i]) != 0)
			continue;
		/* Any other text stays a string, and request.c refuses it. */
		if (value[0] != '\0' && strlen(value) <= 12 &&
		    strspn(value, "0123456789") == strlen(value))
			return json_integer(strtoll(value, NULL, 10));
		if (value[0] >= '0' && value[0] <= '9' && strlen(value) <= 12 &&
		    strspn(value, "0123456789.") == strlen(value)) {
			double real = strtod(value, &end);

			if (*end == '\0')
				return json_real(real);
		}
	}
	return json_string(value); /* NULL: invalid UTF-8 */
}

/* Convert "rx,drop" to a list. NULL: invalid UTF-8. */
static json_t *
arg_listed(const char *value)
{
	json_t *list = json_array();

	for (const char *at = value;; at++) {
		size_t n = strcspn(at, ",");

		if (json_array_append_new(list, json_stringn(at, n)) < 0) {
			json_decref(list);
			return NULL;
		}
		at += n;
		if (*at == '\0')
			return list;
	}
}

/* Convert `known` for a sentence: "a b " to "a, b". */
static const char *
known_list(const char *known, char buf[128])
{
	size_t n = 0;

	for (; *known != '\0' && n + 3 < 128; known++) {
		if (*known != ' ')
			buf[n++] = *known;
		else if (known[1] != '\0')
			n += (size_t)sprintf(buf + n, ", ");
	}
	buf[n] = '\0';
	return buf;
}

/*
 * Copy all parameters to `to`; refuse parameters that are not in `known` (NULL: all are
 * known).
 */
static bool
args_take(const struct api_input *in, const char *known, json_t *to, struct api_output *out)
{
	char buf[128], words[128];

	for (unsigned int i = 0; i < in->n_arg; i++) {
		const char *key = in->arg[i].key, *value = in->arg[i].value;
		size_t len = strlen(key);
		const char *at = known != NULL ? strstr(known, key) : NULL;
		json_t *json;

		if (known != NULL && (len == 0 || at == NULL || at[len] != ' ' ||
				      (at > known && at[-1] != ' '))) {
			if (known[0] == '\0')
				output_refuse(
					out, 400,
					"unknown parameter '%s': this path takes none",
					request_echo(key, buf));
			else
				output_refuse(
					out, 400, "unknown parameter '%s'; known are %s",
					request_echo(key, buf), known_list(known, words));
			return false;
		}
		if (json_object_get(to, key) != NULL) {
			output_refuse(out, 400, "parameter '%s' is given twice",
				      request_echo(key, buf));
			return false;
		}
		json = value == NULL                ? NULL
		       : strcmp(key, "points") == 0 ? arg_listed(value)
						    : arg_typed(key, value);
		if (json == NULL || json_object_set_new(to, key, json) < 0) {
			output_refuse(out, 400, "parameter '%s' %s", request_echo(key, buf),
				      value == NULL ? "has no value" : "is not UTF-8");
			return false;
		}
	}
	return true;
}

/* --- request of each path ------------------------------------------------------------- */

/* Load the body as an object; an empty body is an empty object. NULL: refused. */
static json_t *
body_load(const struct api_input *in, struct api_output *out)
{
	json_t *body = in->n_body == 0 ? json_object() : request_load(in->body, in->n_body);

	if (json_is_object(body))
		return body;
	json_decref(body);
	output_refuse(out, 400, "the body is not a JSON object");
	return NULL;
}

/* Add a key that comes from the path; refuse a body that has it. */
static bool
body_put(json_t *body, const char *key, const char *value, struct api_output *out)
{
	if (json_object_get(body, key) != NULL)
		output_refuse(out, 400, "unknown key '%s' in the body", key);
	else if (json_object_set_new(body, key, json_string(value)) < 0)
		output_refuse(out, 400, "the path is not UTF-8");
	return out->status == 0;
}

/* Make {"port": {"do": `what`, "name": `name`, ...}}. */
static json_t *
request_port(const struct api_input *in, const char *what, const char *name,
	     struct api_output *out)
{
	json_t *body = body_load(in, out);

	if (body == NULL)
		return NULL;
	if (body_put(body, "do", what, out) &&
	    (name == NULL || body_put(body, "name", name, out)))
		return json_pack("{s:o}", "port", body);
	json_decref(body);
	return NULL;
}

static json_t *
request_port_add(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_port(in, "add", NULL, out);
}

static json_t *
request_port_set(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_port(in, "set", name, out);
}

static json_t *
request_port_del(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_port(in, "del", name, out);
}

/* Make {"hook": {"do": `what`, "dev": `name`, ...}}. */
static json_t *
request_hook(const struct api_input *in, const char *what, const char *name,
	     struct api_output *out)
{
	json_t *body = body_load(in, out);

	if (body == NULL)
		return NULL;
	if (body_put(body, "do", what, out) && body_put(body, "dev", name, out))
		return json_pack("{s:o}", "hook", body);
	json_decref(body);
	return NULL;
}

static json_t *
request_hook_load(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_hook(in, "load", name, out);
}

static json_t *
request_hook_unload(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_hook(in, "unload", name, out);
}

static json_t *
request_punt_set(const struct api_input *in, const char *name, struct api_output *out)
{
	json_t *body = body_load(in, out);

	if (body == NULL)
		return NULL;
	if (body_put(body, "set", "policer", out) && body_put(body, "class", name, out))
		return body;
	json_decref(body);
	return NULL;
}

static json_t *
request_config_show(const struct api_input *in, const char *name, struct api_output *out)
{
	return json_pack("{s:{s:s}}", "config", "do", "show");
}

static json_t *
request_config_keys(const struct api_input *in, const char *name, struct api_output *out)
{
	return json_pack("{s:{s:s}}", "config", "do", "keys");
}

static json_t *
request_config_reload(const struct api_input *in, const char *name, struct api_output *out)
{
	json_t *body = body_load(in, out);

	if (body == NULL)
		return NULL;
	if (body_put(body, "do", "reload", out))
		return json_pack("{s:o}", "config", body);
	json_decref(body);
	return NULL;
}

static json_t *
request_replay(const struct api_input *in, const char *name, struct api_output *out)
{
	return json_pack("{s:s}", "do", "replay");
}

static json_t *
request_hold(const struct api_input *in, const char *name, struct api_output *out)
{
	json_t *body = body_load(in, out);

	if (body != NULL && body_put(body, "do", "hold", out))
		return body;
	json_decref(body);
	return NULL;
}

static json_t *
request_restart(const struct api_input *in, const char *name, struct api_output *out)
{
	return json_pack("{s:s}", "do", "restart");
}

static json_t *
request_audit_repair(const struct api_input *in, const char *name, struct api_output *out)
{
	return json_pack("{s:s, s:b}", "show", "audit", "repair", 1);
}

/* Make {"trace": {PARAMETERS}}, or capture, or explain. */
static json_t *
request_watch(const struct api_input *in, const char *what, struct api_output *out)
{
	json_t *args = json_object();

	if (args_take(in, NULL, args, out))
		return json_pack("{s:o}", what, args);
	json_decref(args);
	return NULL;
}

static json_t *
request_trace(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_watch(in, "trace", out);
}

static json_t *
request_capture(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_watch(in, "capture", out);
}

static json_t *
request_explain(const struct api_input *in, const char *name, struct api_output *out)
{
	return request_watch(in, "explain", out);
}

/* Make {"show": ..., PARAMETERS}. */
static json_t *
request_show(const struct api_input *in, enum show what, const char *name,
	     struct api_output *out)
{
	json_t *request = json_pack("{s:s}", "show", show_info[what].name);
	char known[128], words[FILTER_WORDS];

	snprintf(known, sizeof(known), "%s%s",
		 what == SHOW_ROUTES      ? "prefix longest family all_tables vrf of "
		 : what == SHOW_NEIGHBORS ? "prefix family "
		 : what == SHOW_SIDS      ? "prefix "
					  : "",
		 /* A name in the path selects the row; words are then refused. */
		 name == NULL ? filter_words(show_info[what].name, words) : "");
	if (args_take(in, known, request, out) &&
	    (name == NULL || body_put(request, "name", name, out)))
		return request;
	json_decref(request);
	return NULL;
}

#define BODY  1u /* has a body; else it must be empty */
#define NAMED 2u /* has a name at the end of the path */
#define ASKED 4u /* has parameters; else there must be none */

static const struct call {
	const char *method, *path;
	json_t *(*make)(const struct api_input *in, const char *name,
			struct api_output *out);
	unsigned int has;
	enum rows_form form;
} call[] = {
	{"POST", "ports", request_port_add, BODY, ROWS_ARRAY},
	{"PATCH", "ports", request_port_set, BODY | NAMED, ROWS_ARRAY},
	{"DELETE", "ports", request_port_del, NAMED, ROWS_ARRAY},
	{"PUT", "hooks", request_hook_load, BODY | NAMED, ROWS_ARRAY},
	{"DELETE", "hooks", request_hook_unload, NAMED, ROWS_ARRAY},
	{"PATCH", "punt", request_punt_set, BODY | NAMED, ROWS_ARRAY},
	{"GET", "config", request_config_show, 0, ROWS_ARRAY},
	{"GET", "config/keys", request_config_keys, 0, ROWS_ARRAY},
	{"POST", "config/reload", request_config_reload, BODY, ROWS_ARRAY},
	{"POST", "replay", request_replay, 0, ROWS_ARRAY},
	{"POST", "hold", request_hold, BODY, ROWS_ARRAY},
	{"POST", "restart", request_restart, 0, ROWS_ARRAY},
	{"POST", "audit/repair", request_audit_repair, 0, ROWS_ARRAY},
	{"GET", "trace", request_trace, ASKED, ROWS_LINES},
	{"GET", "capture", request_capture, ASKED, ROWS_OCTETS},
	{"GET", "explain", request_explain, ASKED, ROWS_ARRAY},
};

/*
 * Return true if `path` equals `words`; with `named`, if it is `words`, a slash and a name.
 * *name then points to the name; without `named` it is NULL.
 */
static bool
path_matches(const char *path, const char *words, bool named, const char **name)
{
	size_t len = strlen(words);

	*name = NULL;
	if (strncmp(path, words, len) != 0)
		return false;
	if (!named)
		return path[len] == '\0';
	*name = path + len + 1;
	return path[len] == '/' && (*name)[0] != '\0' && strchr(*name, '/') == NULL;
}

/* Return true if the method is right; otherwise add the right method to `allow`. */
static bool
method_matches(const struct api_input *in, const char *method, struct api_output *out)
{
	size_t n = strlen(out->allow);

	if (strcmp(in->method, method) == 0)
		return true;
	snprintf(out->allow + n, sizeof(out->allow) - n, "%s%s", n > 0 ? ", " : "", method);
	return false;
}

/* Refuse a body or parameters that would be ignored. Returns true if refused. */
static bool
input_refuse_surplus(const struct api_input *in, unsigned int has, struct api_output *out)
{
	if (in->n_body > 0 && (has & BODY) == 0)
		output_refuse(out, 400, "%s takes no body", in->method);
	else if (in->n_arg > 0 && (has & ASKED) == 0)
		output_refuse(out, 400, "this path takes no parameters");
	return out->status != 0;
}

static bool
show_match(const struct api_input *in, const char *path, struct api_output *out)
{
	const char *name;

	for (unsigned int i = 0; i < N_SHOW; i++) {
		bool all = path_matches(path, show_info[i].name, false, &name);

		if (!all && (show_info[i].key == NULL ||
			     !path_matches(path, show_info[i].name, true, &name)))
			continue;
		if (!method_matches(in, "GET", out) || input_refuse_surplus(in, ASKED, out))
			return false;
		out->form = ROWS_ARRAY;
		out->request = request_show(in, (enum show)i, name, out);
		return true;
	}
	return false;
}

static bool
call_match(const struct api_input *in, const char *path, struct api_output *out)
{
	const char *name;

	for (unsigned int i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		if (!path_matches(path, call[i].path, (call[i].has & NAMED) != 0, &name) ||
		    !method_matches(in, call[i].method, out))
			continue;
		out->form = call[i].form;
		if (!input_refuse_surplus(in, call[i].has, out))
			out->request = call[i].make(in, name, out);
		return true;
	}
	return false;
}

void
api_request(const struct api_input *in, struct api_output *out)
{
	const char *path = in->path + sizeof(ROOT) - 1;
	char buf[128];

	*out = (struct api_output){0};
	if (strncmp(in->path, ROOT, sizeof(ROOT) - 1) == 0 &&
	    (call_match(in, path, out) || show_match(in, path, out) || out->status != 0))
		return;
	if (out->allow[0] != '\0')
		output_refuse(out, 405, "method %s is not allowed here; allowed are %s",
			      request_echo(in->method, buf), out->allow);
	else
		output_refuse(out, 404, "no such path '%s': " ROOT "ports is one",
			      request_echo(in->path, buf));
}
