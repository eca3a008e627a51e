/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse a request of the control protocol (base/rows.md). Runs in ui; no state. The input
 * is untrusted: an unknown key or value is refused with a sentence.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpm_event.h"

const struct show_info show_info[N_SHOW] = {
	[SHOW_ROUTES] = {"routes", NULL},
	[SHOW_NEXTHOPS] = {"nexthops", "nexthop_id"},
	[SHOW_NEIGHBORS] = {"neighbors", NULL},
	[SHOW_PORTS] = {"ports", "name"},
	[SHOW_COUNTERS] = {"counters", "name"},
	[SHOW_FPM] = {"fpm", NULL},
	[SHOW_MEMORY] = {"memory", NULL},
	[SHOW_VERSION] = {"version", NULL},
	[SHOW_AUDIT] = {"audit", NULL},
	[SHOW_PUNT] = {"punt", "class"},
	[SHOW_CYCLES] = {"cycles", "thread"},
	[SHOW_INTERFACES] = {"interfaces", "name"},
	[SHOW_FIB] = {"fib", "family"},
	[SHOW_VRFS] = {"vrfs", "name"},
	[SHOW_THREADS] = {"threads", "thread"},
	[SHOW_LOG] = {"log", NULL},
	[SHOW_DROPS] = {"drops", "name"},
	[SHOW_GROUPS] = {"groups", "group"},
	[SHOW_KERNEL] = {"kernel", NULL},
	[SHOW_RULES] = {"rules", NULL},
	[SHOW_WARNINGS] = {"warnings", "kind"},
	[SHOW_FILTER] = {"filter", "chain"},
	[SHOW_SFLOW] = {"sflow", NULL},
	[SHOW_BFD] = {"bfd", "peer"},
	[SHOW_LABELS] = {"labels", "label"},
	[SHOW_ENCAPS] = {"encaps", "encap"},
	[SHOW_SIDS] = {"sids", NULL},
	[SHOW_HOOKS] = {"hooks", "dev"},
	[SHOW_FLOWSPEC] = {"flowspec", NULL},
};

/* A request before its keys are checked against each other. */
struct parse {
	struct request *req;
	bool has_show, has_do, has_change, has_longest, has_tables, has_repair, has_seconds,
		was_addr;
	bool has_set, has_class, has_rate; /* of a policer; has_rate: any of its numbers */
	char *why;
	size_t why_size;
};

static int
request_refuse(struct parse *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int
request_take_show(struct parse *p, const json_t *value)
{
	char buf[128], known[512];
	size_t n = 0;

	if (!json_is_string(value))
		return request_refuse(p, "show is not a string");
	for (unsigned int i = 0; i < N_SHOW; i++)
		if (strcmp(json_string_value(value), show_info[i].name) == 0) {
			p->req->show = (enum show)i;
			p->has_show = true;
			return 0;
		}
	for (unsigned int i = 0; i < N_SHOW; i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s",
				      i > 0 ? ", " : "", show_info[i].name);
	return request_refuse(p, "cannot show '%s'; known are %s",
			      request_echo(json_string_value(value), buf), known);
}

static int
request_take_prefix(struct parse *p, const json_t *value)
{
	char buf[128];

	if (!json_is_string(value) ||
	    prefix_parse(json_string_value(value), &p->req->prefix, &p->was_addr) < 0)
		return request_refuse(p, "'%s' is not an address or prefix",
				      json_is_string(value)
					      ? request_echo(json_string_value(value), buf)
					      : "?");
	if (prefix_text_has_host_bits(json_string_value(value)))
		return request_refuse(p, "'%s' has host bits set: the prefix is %s",
				      json_string_value(value),
				      prefix_str(&p->req->prefix, buf));
	p->req->has_prefix = true;
	return 0;
}

static int
request_take_name(struct parse *p, const json_t *value)
{
	const char *name = json_is_string(value) ? json_string_value(value) : "";

	if (name[0] == '\0' || strlen(name) >= sizeof(p->req->name))
		return request_refuse(p, "name is a string of 1 to %u octets",
				      UI_NAME_MAX - 1);
	strcpy(p->req->name, name);
	return 0;
}

static int
request_take_vrf(struct parse *p, const json_t *value)
{
	const char *name = json_is_string(value) ? json_string_value(value) : "";

	if (name[0] == '\0' || strlen(name) >= sizeof(p->req->vrf))
		return request_refuse(p, "vrf is a string of 1 to %zu octets",
				      sizeof(p->req->vrf) - 1);
	strcpy(p->req->vrf, name);
	return 0;
}

static int
request_take_do(struct parse *p, const json_t *value)
{
	const char *what = json_is_string(value) ? json_string_value(value) : "";

	p->req->replay = strcmp(what, "replay") == 0;
	p->req->restart = strcmp(what, "restart") == 0;
	p->req->hold = strcmp(what, "hold") == 0;
	if (!p->req->replay && !p->req->restart && !p->req->hold)
		return request_refuse(p, "do is not 'replay', 'hold' or 'restart'");
	p->has_do = true;
	return 0;
}

static int
request_take_seconds(struct parse *p, const json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > FPM_HOLD_MAX_S)
		return request_refuse(p, "seconds is not a whole number from 0 to %u",
				      FPM_HOLD_MAX_S);
	p->req->seconds = (unsigned int)json_integer_value(value);
	p->has_seconds = true;
	return 0;
}

static int
request_take_set(struct parse *p, const json_t *value)
{
	if (!json_is_string(value) || strcmp(json_string_value(value), "policer") != 0)
		return request_refuse(p, "set takes 'policer' only");
	p->has_set = true;
	p->req->change.op = MANAGE_POLICER;
	return 0;
}

static int
request_take_class(struct parse *p, const json_t *value)
{
	const char *name = json_is_string(value) ? json_string_value(value) : "";
	char buf[128];

	p->has_class = true;
	p->req->change.class = punt_class_find(name);
	if (p->req->change.class != N_PUNT_CLASS)
		return 0;
	request_refuse(p, "no class '%s'; `fpmctl show punt` lists them",
		       request_echo(name, buf));
	return -ENOENT;
}

/* Parse a number of a policer. Returns 0, -EINVAL, or 1: `key` is not a policer number. */
static int
request_take_rate(struct parse *p, const char *key, const json_t *value)
{
	struct policer_conf *conf = &p->req->change.policer;
	const struct {
		const char *key;
		uint32_t *out, min, max;
	} of[] = {
		{"rate", &conf->rate, 0, POLICER_RATE_MAX},
		{"source_rate", &conf->source_rate, 0, POLICER_RATE_MAX},
		{"burst", &conf->burst, 1, POLICER_BURST_MAX},
		{"source_burst", &conf->source_burst, 1, POLICER_BURST_MAX},
	};
	unsigned int i = 0, n = sizeof(of) / sizeof(of[0]);

	while (i < n && strcmp(key, of[i].key) != 0)
		i++;
	if (i == n)
		return 1;
	p->has_rate = true;
	if (of[i].min == 0 && json_is_string(value) &&
	    strcmp(json_string_value(value), "unlimited") == 0) {
		*of[i].out = POLICER_UNLIMITED;
		return 0;
	}
	if (!json_is_integer(value) || json_integer_value(value) < of[i].min ||
	    json_integer_value(value) > of[i].max)
		return request_refuse(p, "%s is not a whole number from %u to %u%s", key,
				      of[i].min, of[i].max,
				      of[i].min == 0 ? ", nor unlimited" : "");
	*of[i].out = (uint32_t)json_integer_value(value);
	return 0;
}

/*
 * Parse the key by which tests break a table. Without the test hooks the daemon refuses the
 * key.
 */
static int
request_take_break(struct parse *p, const json_t *value)
{
	static const char *const name[] = {"", "route", "table", "group"};

	for (unsigned int i = BREAK_ROUTE; i <= BREAK_GROUP; i++)
		if (json_is_string(value) && strcmp(json_string_value(value), name[i]) == 0)
			p->req->breaking = (uint8_t)i;
	return p->req->breaking == BREAK_NOTHING
		       ? request_refuse(p, "break is not route, table or group")
		       : 0;
}

static int
request_take_family(struct parse *p, const json_t *value)
{
	json_int_t family = json_integer_value(value);

	if (!json_is_integer(value) || (family != 4 && family != 6 && family != 0))
		return request_refuse(p, "family is not 4, 6 or 0");
	p->req->family = (uint8_t)family;
	return 0;
}

static int
request_take_of(struct parse *p, const json_t *value)
{
	static const char *const name[] = {
		[OF_ZEBRA] = "zebra", [OF_KERNEL] = "kernel", [OF_EACH] = "each"};

	for (enum query_of of = OF_ZEBRA; of <= OF_EACH; of++)
		if (json_is_string(value) &&
		    strcmp(json_string_value(value), name[of]) == 0)
			p->req->of = (uint8_t)of;
	return p->req->of == OF_FIB ? request_refuse(p, "of is not zebra, kernel or each")
				    : 0;
}

static int
request_take_key(struct parse *p, const char *key, const json_t *value)
{
	char buf[128];
	int rc = request_take_rate(p, key, value);

	if (rc <= 0)
		return rc;
	if (strcmp(key, "set") == 0)
		return request_take_set(p, value);
	if (strcmp(key, "class") == 0)
		return request_take_class(p, value);
	if (strcmp(key, "show") == 0)
		return request_take_show(p, value);
	if (strcmp(key, "prefix") == 0)
		return request_take_prefix(p, value);
	if (strcmp(key, "name") == 0)
		return request_take_name(p, value);
	if (strcmp(key, "vrf") == 0)
		return request_take_vrf(p, value);
	if (strcmp(key, "family") == 0)
		return request_take_family(p, value);
	if (strcmp(key, "of") == 0)
		return request_take_of(p, value);
	if (strcmp(key, "do") == 0)
		return request_take_do(p, value);
	if (strcmp(key, "seconds") == 0)
		return request_take_seconds(p, value);
	if (strcmp(key, "trace") == 0 || strcmp(key, "capture") == 0 ||
	    strcmp(key, "explain") == 0)
		return watch_parse(key, value, p->req, p->why, p->why_size);
	if (strcmp(key, "config") == 0 || strcmp(key, "port") == 0 ||
	    strcmp(key, "hook") == 0) {
		if (p->has_change)
			return request_refuse(p, ONE_REQUEST);
		p->has_change = true;
		return change_parse(key, value, p->req, p->why, p->why_size);
	}
	if (strcmp(key, "break") == 0 && getenv("FPM_DATAPLANE_TEST_HOOKS") != NULL)
		return request_take_break(p, value);
	if (filter_is_word(key))
		return 0; /* request_take_choice() parses it, with the value of `show` */
	if (strcmp(key, "longest") != 0 && strcmp(key, "all_tables") != 0 &&
	    strcmp(key, "repair") != 0)
		return request_refuse(
			p,
			"unknown key '%s'; known are show, prefix, longest, family, "
			"all_tables, vrf, of, via, dev, proto, state, level, name, repair, "
			"do, seconds, config, port, hook, trace, capture, explain, set, "
			"class, rate, burst, source_rate, source_burst",
			request_echo(key, buf));
	if (!json_is_boolean(value))
		return request_refuse(p, "%s is not true or false", key);
	if (key[0] == 'r') {
		p->req->repair = json_is_true(value);
		p->has_repair = true;
	} else if (key[0] == 'l') {
		p->req->longest = json_is_true(value);
		p->has_longest = true;
	} else {
		p->req->all_tables = json_is_true(value);
		p->has_tables = true;
	}
	return 0;
}

/* Parse a word that selects rows. Which words are allowed depends on `show`. */
static int
request_take_choice(struct parse *p, const char *word, const json_t *value)
{
	const char *show = p->has_show ? show_info[p->req->show].name : "";
	int k = filter_find(show, word);
	char number[24];

	if (k < 0)
		return request_refuse(p, "%s does not go with %s", word,
				      p->has_show ? show : "a request without show");
	if (json_is_integer(value) && filter_word[k].kind == FILTER_SOURCE) {
		snprintf(number, sizeof(number), "%lld",
			 (long long)json_integer_value(value));
		return filter_take(&p->req->filter, k, number, p->why, p->why_size);
	}
	if (!json_is_string(value))
		return request_refuse(p, "%s is not a string", word);
	return filter_take(&p->req->filter, k, json_string_value(value), p->why,
			   p->why_size);
}

json_t *
request_load(const char *text, size_t len)
{
	json_error_t error;

	return json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
}

int
request_parse(const json_t *root, struct request *req, char *why, size_t why_size)
{
	struct parse p = {.req = req, .why = why, .why_size = why_size};
	json_t *value;
	const char *key;

	*req = (struct request){.change.policer = {.rate = POLICER_KEEP,
						   .burst = POLICER_KEEP,
						   .source_rate = POLICER_KEEP,
						   .source_burst = POLICER_KEEP},
				.seconds = FPM_HOLD_S};
	if (!json_is_object(root))
		return request_refuse(&p,
				      "not a JSON object, such as {\"show\": \"ports\"}");
	json_object_foreach ((json_t *)(uintptr_t)root, key, value) {
		int rc = request_take_key(&p, key, value);

		if (rc < 0)
			return rc;
	}
	json_object_foreach ((json_t *)(uintptr_t)root, key, value)
		if (filter_is_word(key) && request_take_choice(&p, key, value) < 0)
			return -EINVAL;
	if (p.has_set && (!p.has_class || !p.has_rate))
		return request_refuse(
			&p, "set needs a class, and a rate, burst, source_rate or "
			    "source_burst");
	if (!p.has_set && (p.has_class || p.has_rate))
		return request_refuse(&p, "class and rates go with set");
	if ((req->want.ask != WATCH_ASK_NONE) + p.has_show + p.has_do + p.has_set +
		    p.has_change >
	    1)
		return request_refuse(&p, ONE_REQUEST);
	if (p.has_seconds && !req->hold)
		return request_refuse(&p, "seconds goes with hold");
	if (p.has_do || req->breaking != BREAK_NOTHING ||
	    req->change.op != MANAGE_NOTHING || req->want.ask != WATCH_ASK_NONE)
		return 0;
	if (!p.has_show)
		return request_refuse(&p, "the key show is missing");
	if (req->name[0] != '\0' && show_info[req->show].key == NULL)
		return request_refuse(&p, "%s are not found by name",
				      show_info[req->show].name);
	if (p.has_repair && req->show != SHOW_AUDIT)
		return request_refuse(&p, "repair goes with audit");
	if (req->vrf[0] != '\0' && req->show != SHOW_ROUTES)
		return request_refuse(&p, "vrf goes with routes");
	if (req->of != OF_FIB && req->show != SHOW_ROUTES)
		return request_refuse(&p, "of goes with routes");
	if (req->of == OF_EACH && (req->has_prefix || req->vrf[0] != '\0'))
		return request_refuse(&p, "of each goes with no prefix and no vrf");
	if (req->has_prefix && req->show != SHOW_ROUTES && req->show != SHOW_NEIGHBORS &&
	    req->show != SHOW_SIDS)
		return request_refuse(&p, "%s are not found by prefix",
				      show_info[req->show].name);
	/* An address without a length requests the route that a packet would use. */
	if (req->has_prefix && !p.has_longest)
		req->longest = p.was_addr;
	/* A longest match is for one packet, which uses one table. */
	if (!p.has_tables)
		req->all_tables = !req->longest;
	if (req->longest && !req->has_prefix)
		return request_refuse(&p, "longest needs a prefix or address");
	if (req->has_prefix && req->family != 0 && req->family != req->prefix.family)
		return request_refuse(&p, "the prefix is not of family %u", req->family);
	return 0;
}
