/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse the requests trace, capture and explain (base/rows.md). Runs in ui; no state. The
 * input is untrusted: an unknown key or value is refused with a sentence.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/inet.h"
#include "ui/internal.h"

#define SNAP_DEFAULT 1518
#define TRACE_SNAP   160 /* the headers that a row shows */

struct parse {
	struct request *req;
	bool rx, tx, drop; /* capture: requested points */
	char *why;
	size_t why_size;
};

static int
watch_refuse(struct parse *p, const char *sentence)
{
	snprintf(p->why, p->why_size, "%s", sentence);
	return -EINVAL;
}

static int
watch_take_prefix(struct parse *p, const json_t *value, struct prefix *to)
{
	if (!json_is_string(value) || prefix_parse(json_string_value(value), to, NULL) < 0)
		return watch_refuse(p, "src, dst and host are addresses or prefixes");
	p->req->want.filter.packet = true;
	return 0;
}

/* Return an integer of min..max, or -1 for any other value. */
static json_int_t
number_in_range(const json_t *value, json_int_t min, json_int_t max)
{
	json_int_t n = json_integer_value(value);

	return json_is_integer(value) && n >= min && n <= max ? n : -1;
}

static int
watch_take_port_number(struct parse *p, const json_t *value, uint16_t *to)
{
	json_int_t n = number_in_range(value, 1, 65535);

	if (n < 0)
		return watch_refuse(p, "sport and dport are 1 to 65535");
	*to = (uint16_t)n;
	p->req->want.filter.packet = true;
	return 0;
}

static int
watch_take_proto(struct parse *p, const json_t *value)
{
	json_int_t n = number_in_range(value, 0, 255);

	if (n < 0)
		return watch_refuse(p, "proto is 0 to 255");
	p->req->want.filter.proto = (uint8_t)n;
	p->req->want.filter.has_proto = p->req->want.filter.packet = true;
	return 0;
}

static int
watch_take_verdict(struct parse *p, const json_t *value)
{
	static const char *const name[] = {"forwarded", "punted", "dropped"};

	for (unsigned int i = 0; i < 3; i++)
		if (json_is_string(value) &&
		    strcmp(json_string_value(value), name[i]) == 0) {
			p->req->want.filter.verdicts = (uint8_t)(1u << i);
			return 0;
		}
	return watch_refuse(p, "verdict is forwarded, punted or dropped");
}

static int
watch_take_reason(struct parse *p, const json_t *value)
{
	char buf[128];

	for (unsigned int r = 0; r < N_REASON; r++)
		if (json_is_string(value) &&
		    strcmp(json_string_value(value), reason_info[r].name) == 0) {
			p->req->want.filter.reason = (uint8_t)r;
			return 0;
		}
	snprintf(p->why, p->why_size,
		 "no such reason '%s'; `fpmctl show counters all` lists them",
		 json_is_string(value) ? request_echo(json_string_value(value), buf) : "?");
	return -EINVAL;
}

static int
watch_take_points(struct parse *p, const json_t *value)
{
	const json_t *one;
	size_t i;

	json_array_foreach (value, i, one) {
		const char *name = json_is_string(one) ? json_string_value(one) : "";

		if (strcmp(name, "rx") == 0)
			p->rx = true;
		else if (strcmp(name, "tx") == 0)
			p->tx = true;
		else if (strcmp(name, "drop") == 0)
			p->drop = true;
		else
			return watch_refuse(p, "points are rx, tx and drop");
	}
	return json_array_size(value) > 0 ? 0
					  : watch_refuse(p, "points are rx, tx and drop");
}

static int
watch_take_frame(struct parse *p, const json_t *value)
{
	const char *hex = json_string_value(value);
	size_t len = json_string_length(value);
	unsigned int octet;

	if (hex == NULL || len % 2 != 0 || strspn(hex, "0123456789abcdefABCDEF") != len)
		return watch_refuse(p, "frame is not an even number of hexadecimal digits");
	if (len / 2 > WATCH_FRAME_MAX)
		return watch_refuse(p,
				    "frame is too long; frame_bytes adds zeros behind it");
	for (size_t i = 0; i < len / 2; i++) {
		sscanf(hex + 2 * i, "%2x", &octet);
		p->req->want.frame[i] = (uint8_t)octet;
	}
	p->req->want.n_frame = (uint16_t)(len / 2);
	return 0;
}

static int
watch_take_limit(struct parse *p, const char *key, const json_t *value)
{
	struct watch_want *want = &p->req->want;
	json_int_t n;

	if (strcmp(key, "count") == 0) {
		n = number_in_range(value, 0, 1000000000);
		want->count = (uint64_t)n;
		return n < 0 ? watch_refuse(p,
					    "count is a whole number from 0 to 1000000000")
			     : 0;
	}
	if (strcmp(key, "for_s") == 0) {
		want->for_s = json_number_value(value);
		return !json_is_number(value) || want->for_s < 0 || want->for_s > 86400
			       ? watch_refuse(
					 p, "for_s is a number of seconds from 0 to 86400")
			       : 0;
	}
	if (strcmp(key, "snap") == 0) {
		n = number_in_range(value, 14, WATCH_SNAP_MAX);
		want->filter.snap_bytes = (uint16_t)n;
		return n < 0 ? watch_refuse(p, "snap is a whole number from 14 to 1920")
			     : 0;
	}
	n = number_in_range(value, 0, WATCH_FRAME_BYTES_MAX);
	want->frame_bytes = (uint32_t)n;
	return n < 0 ? watch_refuse(p, "frame_bytes is a whole number from 0 to 65520") : 0;
}

/* Refuse a key that is unknown or belongs to another request. */
static int
watch_refuse_key(struct parse *p, const char *key)
{
	static const char *const known[] = {
		[WATCH_ASK_TRACE] = "trace has port, src, dst, host, proto, sport, dport, "
				    "verdict, reason, count and for_s",
		[WATCH_ASK_CAPTURE] = "capture has port, src, dst, host, proto, sport, "
				      "dport, points, reason, snap, count and for_s",
		[WATCH_ASK_EXPLAIN] = "explain has port, frame and frame_bytes",
	};
	char buf[128];

	snprintf(p->why, p->why_size, "unknown key '%s'; %s", request_echo(key, buf),
		 known[p->req->want.ask]);
	return -EINVAL;
}

static int
watch_take_port(struct parse *p, const json_t *value)
{
	size_t len = json_string_length(value);

	if (len == 0 || len >= sizeof(p->req->port))
		return watch_refuse(p, "a port's name has 1 to 63 octets");
	strcpy(p->req->port, json_string_value(value));
	return 0;
}

static int
watch_take_key(struct parse *p, const char *key, const json_t *value)
{
	struct watch_filter *f = &p->req->want.filter;

	if (strcmp(key, "port") == 0)
		return watch_take_port(p, value);
	if (p->req->want.ask == WATCH_ASK_EXPLAIN) {
		if (strcmp(key, "frame") == 0)
			return watch_take_frame(p, value);
		if (strcmp(key, "frame_bytes") == 0)
			return watch_take_limit(p, key, value);
		return watch_refuse_key(p, key);
	}
	if (strcmp(key, "src") == 0)
		return watch_take_prefix(p, value, &f->src);
	if (strcmp(key, "dst") == 0)
		return watch_take_prefix(p, value, &f->dst);
	if (strcmp(key, "host") == 0)
		return watch_take_prefix(p, value, &f->host);
	if (strcmp(key, "proto") == 0)
		return watch_take_proto(p, value);
	if (strcmp(key, "sport") == 0)
		return watch_take_port_number(p, value, &f->sport);
	if (strcmp(key, "dport") == 0)
		return watch_take_port_number(p, value, &f->dport);
	if (strcmp(key, "reason") == 0)
		return watch_take_reason(p, value);
	if (strcmp(key, "count") == 0 || strcmp(key, "for_s") == 0)
		return watch_take_limit(p, key, value);
	if (p->req->want.ask == WATCH_ASK_TRACE && strcmp(key, "verdict") == 0)
		return watch_take_verdict(p, value);
	if (p->req->want.ask == WATCH_ASK_CAPTURE && strcmp(key, "points") == 0)
		return watch_take_points(p, value);
	if (p->req->want.ask == WATCH_ASK_CAPTURE && strcmp(key, "snap") == 0)
		return watch_take_limit(p, key, value);
	return watch_refuse_key(p, key);
}

/* Return the reason why no packet can match the filter; NULL: packets can. */
static const char *
filter_contradiction(const struct watch_filter *f)
{
	uint8_t family[] = {f->src.family, f->dst.family, f->host.family}, first = 0;

	for (unsigned int i = 0; i < 3; i++) {
		first = first == 0 ? family[i] : first;
		if (family[i] != 0 && family[i] != first)
			return "src, dst and host are of different families";
	}
	if ((f->sport != 0 || f->dport != 0) && f->has_proto && !proto_has_ports(f->proto))
		return "sport and dport are of TCP, UDP and SCTP: that proto has none";
	if (f->verdicts == WATCH_FORWARDED && f->reason != N_REASON)
		return "a forwarded packet has no reason";
	return NULL;
}

/* Derive points and verdicts from the request. */
static void
watch_derive_points(struct parse *p)
{
	struct watch_filter *f = &p->req->want.filter;
	bool all = !p->rx && !p->tx && !p->drop;

	if (f->verdicts == 0)
		f->verdicts = WATCH_ANY;
	if (p->req->want.ask == WATCH_ASK_TRACE) {
		f->points = 1u << WATCH_WALK | 1u << WATCH_LOST;
		f->snap_bytes = TRACE_SNAP;
		return;
	}
	if (f->snap_bytes == 0)
		f->snap_bytes = SNAP_DEFAULT;
	if (all || p->rx || p->drop)
		f->points |= 1u << WATCH_WALK;
	if (all || p->drop)
		f->points |= 1u << WATCH_LOST;
	/* A packet that is sent has no reason. */
	if ((all || p->tx) && f->reason == N_REASON)
		f->points |= 1u << WATCH_SENT;
	if (!all && !p->rx)
		f->verdicts = WATCH_DROPPED;
}

int
watch_parse(const char *ask, const json_t *value, struct request *req, char *why,
	    size_t why_size)
{
	struct parse p = {.req = req, .why = why, .why_size = why_size};
	const char *key, *why_not;
	json_t *one;
	int rc = 0;

	if (req->want.ask != WATCH_ASK_NONE)
		return watch_refuse(&p, ONE_REQUEST);
	req->want.ask = ask[0] == 't'   ? WATCH_ASK_TRACE
			: ask[0] == 'c' ? WATCH_ASK_CAPTURE
					: WATCH_ASK_EXPLAIN;
	req->want.filter.reason = N_REASON;
	if (!json_is_object(value))
		return watch_refuse(&p, "trace, capture and explain take an object");
	json_object_foreach ((json_t *)(uintptr_t)value, key, one) {
		rc = watch_take_key(&p, key, one);
		if (rc < 0)
			return rc;
	}
	if (req->want.ask == WATCH_ASK_EXPLAIN) {
		if (req->port[0] == '\0')
			return watch_refuse(&p, "explain needs a port");
		if (req->want.frame_bytes < req->want.n_frame)
			req->want.frame_bytes = req->want.n_frame;
		return 0;
	}
	why_not = filter_contradiction(&req->want.filter);
	if (why_not != NULL)
		return watch_refuse(&p, why_not);
	watch_derive_points(&p);
	return req->want.filter.points != 0
		       ? 0
		       : watch_refuse(&p, "a sent packet has no reason; points rx and drop "
					  "have one");
}
