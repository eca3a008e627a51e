/* SPDX-License-Identifier: BSD-3-Clause */
/* Print the path of a packet, one line per stage, for explain and trace. */
#include "ctl/print_rows.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/json_row.h"
#include "ctl/text.h"
#include "ctl/words.h"

#define STAGE_COL 11 /* column of the text of a stage */

/* Print the name of a stage and its text. */
#define line(what, fmt, ...) line_print(STAGE_COL, "%-10s " fmt, what, ##__VA_ARGS__)

static bool
stage_reached(const json_t *row, const char *stage)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(row, "stages"), i, one)
		if (strcmp(item_str(one), stage) == 0)
			return true;
	return false;
}

/* Return true if the packet passed a stage, that is, reached the stage `next`. */
static bool
stage_passed(const json_t *row, const char *next)
{
	return stage_reached(row, next);
}

#define LABELS_STRLEN 160

/* Format labels as "16/17", the outermost first; "" if there are none. */
static void
labels_text(const json_t *labels, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < json_array_size(labels) && n + 9 < size; i++)
		n += (size_t)snprintf(
			text + n, size - n, "%s%lld", i == 0 ? "" : "/",
			(long long)json_integer_value(json_array_get(labels, i)));
}

/* Return the protocol of a route of zebra or of the kernel, else its source. */
static const char *
source_of(const json_t *route)
{
	const char *source = row_str(route, "source");

	return strcmp(source, "zebra") == 0 || strcmp(source, "kernel") == 0
		       ? row_str(route, "protocol")
		       : source;
}

static void
hops_print(const json_t *route)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(route, "nexthops"), i, one) {
		const char *via = row_str(one, "via");

		line("", "  %s%s%sdev %s weight %lld%s", via[0] != '\0' ? "via " : "", via,
		     via[0] != '\0' ? " " : "", row_str(one, "dev"), row_int(one, "weight"),
		     row_true(one, "alive") ? "" : " (dead)");
	}
}

/* Explain why a packet that was received in a VRF has a route of table local. */
static void
route_table_print(const json_t *route)
{
	if (route != NULL && row_int(route, "table") == RT_TABLE_LOCAL)
		line("", "table local precedes the VRF, as its rule precedes that of VRFs");
}

/*
 * Print how many labels are popped, the route of the IP packet behind them if they end
 * here, and which labels are pushed.
 */
static void
labels_print(const json_t *row)
{
	const char *vrf = json_object_get(row, "vrf") == NULL ? NULL : row_str(row, "vrf");
	const json_t *route = json_object_get(row, "route");
	long long pops = row_int(row, "pops");
	char push[LABELS_STRLEN + 16];
	size_t n;

	labels_text(json_object_get(row, "push"), push, LABELS_STRLEN);
	n = strlen(push);
	if (row_has(row, "push_ttl"))
		snprintf(push + n, sizeof(push) - n, " ttl %lld", row_int(row, "push_ttl"));
	if (pops == 0 && push[0] != '\0')
		line("labels", "pushed: %s", push);
	if (pops == 0)
		return;
	line("labels", "%lld popped%s%s%s%s; path: %s", pops,
	     vrf == NULL      ? ""
	     : vrf[0] == '\0' ? ", looked up in table main"
			      : ", looked up in vrf ",
	     vrf == NULL ? "" : vrf, push[0] != '\0' ? ", pushed: " : "", push,
	     row_str(row, "path"));
	if (vrf == NULL)
		return;
	line("route", "%s%s%s", route == NULL ? "none" : row_str(route, "prefix"),
	     route == NULL ? "" : " ", route == NULL ? "" : source_of(route));
	route_table_print(route);
	hops_print(route);
}

/* Print the labels that the route of the outer packet pushes. */
static void
outer_labels_print(const json_t *row)
{
	char push[LABELS_STRLEN];

	labels_text(json_object_get(row, "outer_push"), push, sizeof(push));
	if (push[0] != '\0')
		line("labels", "pushed before the outer header: %s", push);
}

/* Print the segments of an outer header of SRv6, one per line, in the order of visits. */
static void
segments_print(const json_t *row)
{
	const json_t *segment;
	size_t i;

	json_array_foreach (json_object_get(row, "segments"), i, segment)
		line(i == 0 ? "segments" : "", "%s", item_str(segment));
}

static void
packet_print(const json_t *row)
{
	char buf[16], ports[32] = "", when[32] = "", labels[LABELS_STRLEN];
	long long ns = row_int(row, "time_ns");
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;

	if (ns != 0) {
		localtime_r(&s, &tm);
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
		snprintf(when + strlen(when), sizeof(when) - strlen(when), ".%06lld  ",
			 ns % 1000000000 / 1000);
	}
	if (!row_has(row, "family") && !row_has(row, "eth_type")) {
		line("packet",
		     "%sa frame of %lld octet%s, too short for an Ethernet header", when,
		     row_int(row, "frame_bytes"), text_plural(row_int(row, "frame_bytes")));
		return;
	}
	labels_text(json_object_get(row, "labels"), labels, sizeof(labels));
	if (labels[0] != '\0')
		line("labels", "%s, ttl %lld", labels, row_int(row, "label_ttl"));
	if (!row_has(row, "family")) {
		line("packet", "%sEtherType 0x%04llx from %s to %s, %lld octet%s", when,
		     row_int(row, "eth_type"), row_str(row, "eth_src"),
		     row_str(row, "eth_dst"), row_int(row, "frame_bytes"),
		     text_plural(row_int(row, "frame_bytes")));
		return;
	}
	if (row_has(row, "dport"))
		snprintf(ports, sizeof(ports), " %lld -> %lld", row_int(row, "sport"),
			 row_int(row, "dport"));
	line("packet", "%s%s -> %s, %s%s, ttl %lld, %lld octet%s%s%s", when,
	     row_str(row, "src"), row_str(row, "dst"),
	     proto_name((int)row_int(row, "proto"), buf), ports, row_int(row, "ttl"),
	     row_int(row, "length"), text_plural(row_int(row, "length")),
	     row_true(row, "df") ? ", DF" : "",
	     row_true(row, "fragment") ? ", a fragment" : "");
}

/* Print the rule of policy routing that decided, if rules apply to the packet. */
static void
rule_print(const json_t *row)
{
	if (json_object_get(row, "rule") == NULL)
		return;
	if (!row_has(row, "rule"))
		line("rule", "no rule decides");
	else if (row_has(row, "rule_table"))
		line("rule", "%lld, table %lld", row_int(row, "rule"),
		     row_int(row, "rule_table"));
	else
		line("rule", "%lld, %s", row_int(row, "rule"),
		     row_has(row, "vrf") ? "the table of the VRF" : row_str(row, "path"));
}

static void
route_print(const json_t *row)
{
	const json_t *route = json_object_get(row, "route");
	bool led = json_object_get(row, "to_vrf") != NULL; /* null: the VRF has no FIB */

	rule_print(row);
	if (row_true(row, "to_main"))
		line("vrf", "%s has no route: table main answers", row_str(row, "vrf"));
	if (route == NULL) {
		line("route", "none");
		return;
	}
	line("route", "%s %s, group %lld, %s%s", row_str(route, "prefix"), source_of(route),
	     row_int(row, "group"), led ? "vrf" : row_str(row, "path"),
	     row_true(row, "route_changed") ? " (the route has changed since)" : "");
	route_table_print(route);
	hops_print(route);
	if (row_has(row, "bucket"))
		line("choice", "flow hash 0x%08llx, bucket %lld of %lld: via %s",
		     row_int(row, "hash"), row_int(row, "bucket"), row_int(row, "buckets"),
		     led                   ? "a VRF"
		     : row_has(row, "via") ? row_str(row, "via")
					   : row_str(row, "path"));
	if (led && row_has(row, "to_vrf"))
		line("", "looked up again in vrf %s: %s", row_str(row, "to_vrf"),
		     row_str(row, "path"));
	else if (led && row_has(row, "hook_table"))
		line("", "looked up again in table %lld: %s", row_int(row, "hook_table"),
		     row_str(row, "path"));
	else if (led)
		line("", "next lookup in a VRF that has no FIB");
}

/*
 * Return true if a neighbor in this state has a MAC. The row still lacks the MAC if the
 * packet was dropped before the lookup of its neighbor.
 */
static bool
neighbor_has_mac(const char *state)
{
	static const char *const without[] = {"", "none", "incomplete", "failed"};

	for (unsigned int i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if (strcmp(state, without[i]) == 0)
			return false;
	return true;
}

static void
neighbor_print(const json_t *row)
{
	const json_t *neighbor = json_object_get(row, "neighbor");
	const char *who = row_has(row, "via") ? row_str(row, "via") : row_str(row, "dst");

	if (!row_has(row, "mac") && neighbor_has_mac(row_str(neighbor, "state")))
		line("neighbor", "%s is %s", who, row_str(neighbor, "state"));
	else if (row_has(row, "mac"))
		line("neighbor", "%s is %s%s%s%s", who, row_str(row, "mac"),
		     neighbor != NULL ? " (" : "", row_str(neighbor, "state"),
		     neighbor != NULL ? ")" : "");
	else
		line("neighbor", "%s has no MAC yet%s%s%s", who,
		     neighbor != NULL ? " (" : "", row_str(neighbor, "state"),
		     neighbor != NULL ? ")" : "");
}

/* Print the result of the source check (uRPF). */
static void
urpf_print(const json_t *row)
{
	const char *back = row_str(row, "back");

	if (row_has(row, "urpf"))
		line("source", "checked by rp_filter, %s: %s", row_str(row, "urpf"),
		     strcmp(back, "here") == 0 ? "the reverse path is by this interface"
		     : strcmp(back, "other") == 0
			     ? "the reverse path is by another interface"
			     : "no reverse path");
}

/* Print the verdict of the interface's hook program. */
static void
hook_print(const json_t *row)
{
	char dscp[32] = "", table[32] = "";

	if (!row_has(row, "hook"))
		return;
	if (row_has(row, "hook_dscp"))
		snprintf(dscp, sizeof(dscp), ", dscp %lld", row_int(row, "hook_dscp"));
	if (row_has(row, "hook_table"))
		snprintf(table, sizeof(table), ", table %lld", row_int(row, "hook_table"));
	line("hook", "%s by program %s%s%s", row_str(row, "hook"),
	     row_str(row, "hook_file"), dscp, table);
}

/* Print the verdict of the filter, and the rule that gave it. */
static void
filter_print(const json_t *row)
{
	if (!row_has(row, "filter"))
		return;
	if (!row_has(row, "filter_chain"))
		line("filter", "%s: no usable ruleset", row_str(row, "filter"));
	else if (!row_has(row, "filter_handle"))
		line("filter", "%s by the policy of chain %s", row_str(row, "filter"),
		     row_str(row, "filter_chain"));
	else
		line("filter", "%s by chain %s, handle %lld%s%s", row_str(row, "filter"),
		     row_str(row, "filter_chain"), row_int(row, "filter_handle"),
		     row_has(row, "filter_comment") ? ": " : "",
		     row_str(row, "filter_comment"));
}

/* Print advice, with the words in capitals replaced by values of the packet. */
static void
advice_print(const json_t *row, const char *text)
{
	const char *vrf = row_str(row, row_has(row, "to_vrf") ? "to_vrf" : "vrf");
	char in_vrf[24] = "", *said = NULL;
	const char *const words[][2] = {{"ADDRESS", row_str(row, "dst")},
					{"PORT", row_str(row, "port")},
					{"[vrf NAME] ", in_vrf}};
	size_t size;
	FILE *out;

	if (text == NULL)
		return;
	if (vrf[0] != '\0')
		snprintf(in_vrf, sizeof(in_vrf), "vrf %s ", vrf);
	out = open_memstream(&said, &size);
	if (out == NULL)
		abort(); /* out of memory for some hundred octets */
	while (*text != '\0') {
		size_t n = 0;

		for (unsigned int i = 0; i < 3 && n == 0; i++)
			if (strncmp(text, words[i][0], strlen(words[i][0])) == 0) {
				n = strlen(words[i][0]);
				fputs(words[i][1], out);
			}
		if (n == 0)
			putc(*text, out);
		text += n > 0 ? n : 1;
	}
	fclose(out);
	line("", "%s", said);
	free(said);
}

static void
verdict_print(const json_t *row)
{
	const char *verdict = row_str(row, "verdict"), *reason = row_str(row, "reason");

	if (strcmp(verdict, "forwarded") == 0) {
		line("rewrite", "ttl %lld, from %s to %s", row_int(row, "out_ttl"),
		     row_str(row, "out_src_mac"), row_str(row, "mac"));
		line("verdict", "FORWARDED by %s", row_str(row, "out"));
		return;
	}
	if (strcmp(verdict, "decapsulated") == 0) {
		line("verdict", "DECAPSULATED: the inner packet is received on %s",
		     row_str(row, "tunnel"));
		return;
	}
	if (strcmp(reason, "kernel_route") == 0) {
		line("verdict",
		     "THROUGH THE KERNEL, %s: the kernel forwards it by %s (class %s)",
		     reason, row_has(row, "dev") ? row_str(row, "dev") : "its own route",
		     row_str(row, "class"));
	} else if (strcmp(verdict, "punted") == 0) {
		line("verdict", "%s, %s: %s (class %s)",
		     strcmp(reason, "unresolved") == 0 ? "HELD"
		     : strcmp(reason, "too_big") == 0  ? "FRAGMENTED AND FORWARDED"
						       : "TO THE HOST",
		     reason, row_str(row, "text"), row_str(row, "class"));
	} else {
		line("verdict", "DROPPED, %s: %s", reason, row_str(row, "text"));
		if (row_has(row, "icmp_refused"))
			line("", "no ICMP error, because %s", row_str(row, "icmp_refused"));
		else if (row_true(row, "icmp"))
			line("", "an ICMP error goes to %s from %s, within its rate",
			     row_str(row, "src"), row_str(row, "icmp_src"));
	}
	advice_print(row, advice(reason));
}

/*
 * Print the ingress port; for a live frame also the MAC addresses, which identify the
 * sender if the IP addresses do not.
 */
static void
arrived_print(const json_t *row)
{
	bool macs = row_has(row, "time_ns") && row_has(row, "family");

	line("arrived", "%s%s%s%s%s%s", row_str(row, "port"), macs ? " from " : "",
	     macs ? row_str(row, "eth_src") : "", macs ? " to " : "",
	     macs ? row_str(row, "eth_dst") : "",
	     stage_passed(row, "parse") ? "" : ", which accepts no packets");
	if (row_has(row, "outer_port"))
		line("", "in a packet that arrived by %s", row_str(row, "outer_port"));
}

void
walk_print(const json_t *row)
{
	bool onward = stage_reached(row, "adjacency") &&
		      (row_has(row, "via") || row_has(row, "mac") ||
		       strcmp(row_str(row, "path"), "onlink") == 0);

	packet_print(row);
	if (strcmp(row_str(row, "point"), "lost") == 0) {
		line("arrived", "%s; dropped after forwarding",
		     row_has(row, "port") ? row_str(row, "port") : "from this router");
		verdict_print(row);
		return;
	}
	arrived_print(row);
	if (stage_reached(row, "parse"))
		line("headers", "%s",
		     stage_passed(row, "lookup") || row_has(row, "hook")
			     ? "good"
			     : "the packet ends here");
	hook_print(row);
	if (stage_reached(row, "lookup") && !row_has(row, "pops"))
		route_print(row);
	labels_print(row);
	segments_print(row);
	if (strcmp(row_str(row, "path"), "tunnel") == 0 ||
	    (strcmp(row_str(row, "path"), "labels") == 0 && row_has(row, "tunnel")))
		line("tunnel", "into %s; its outer packet is looked up again",
		     row_str(row, "tunnel"));
	outer_labels_print(row);
	if (onward)
		neighbor_print(row);
	urpf_print(row);
	filter_print(row);
	if (row_has(row, "mtu"))
		line("size", "%lld of %lld octets (MTU of %s)", row_int(row, "length"),
		     row_int(row, "mtu"),
		     row_has(row, "tunnel") ? row_str(row, "tunnel") : row_str(row, "out"));
	verdict_print(row);
}
