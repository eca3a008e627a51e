/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables for people: routes, next hops, neighbours, ports, counters. Column widths are
 * fixed, so that a million rows need no memory; 80 columns where the values allow it.
 */
#include "ctl/ctl.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 80

long long
row_int(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

double
row_real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

const char *
row_str(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s != NULL ? s : "";
}

bool
row_true(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

bool
row_has(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	return v != NULL && !json_is_null(v);
}

/* "via 10.0.1.2 dev wan0 weight 2 dead" */
static void
hop_print(const json_t *hop)
{
	const char *gap = "";

	if (row_has(hop, "via")) {
		printf("via %s", row_str(hop, "via"));
		gap = " ";
	}
	if (row_has(hop, "dev"))
		printf("%sdev %s", gap, row_str(hop, "dev"));
	if (row_int(hop, "weight") > 1)
		printf(" weight %lld", row_int(hop, "weight"));
	if (!row_true(hop, "alive"))
		fputs(" (dead)", stdout);
}

/* What the state adds to the ways out; NULL when they say it all. */
static const char *
state_note(const char *state)
{
	static const char *const note[][2] = {
		{"local", "for this router"},
		{"broadcast", "directed broadcast: dropped"},
		{"blackhole", "blackhole"},
		{"unreachable", "unreachable"},
		{"prohibit", "prohibit"},
		{"unresolved", "(next hop not announced by FRR)"},
		{"foreign", "(not a port of the dataplane)"},
		{"unsupported", "(encapsulation not supported)"},
		{"down", "(all ways out are down)"},
	};

	for (unsigned int i = 0; i < sizeof(note) / sizeof(note[0]); i++)
		if (strcmp(state, note[i][0]) == 0)
			return note[i][1];
	return NULL;
}

/* The ways out, one a line, the first on the current line; notes follow the first. */
static void
ways_print(const json_t *row, int indent)
{
	const json_t *hops = json_object_get(row, "nexthops");
	const char *note = state_note(row_str(row, "state"));
	bool more = json_array_size(hops) > 0;

	if (more)
		hop_print(json_array_get(hops, 0));
	if (note != NULL)
		printf("%s%s", more ? "  " : "", note);
	if (row_has(row, "mtu"))
		printf("  mtu %lld", row_int(row, "mtu"));
	if (row_int(row, "table") != 0 && row_int(row, "table") != 254)
		printf("  (table %lld: not forwarded by)", row_int(row, "table"));
	if (row_true(row, "stale"))
		fputs("  (stale)", stdout);
	if (row_true(row, "absent"))
		fputs("  (deleted by FRR while in use: the last way stays)", stdout);
	putchar('\n');
	for (size_t i = 1; i < json_array_size(hops); i++) {
		printf("%*s", indent, "");
		hop_print(json_array_get(hops, i));
		putchar('\n');
	}
}

static void
route_head(void)
{
	printf("%-19s %-9s %s\n", "PREFIX", "SOURCE", "WAYS OUT");
}

static void
route_row(const json_t *row)
{
	const char *source = row_str(row, "source");
	int n;

	if (strcmp(source, "zebra") == 0)
		source = row_str(row, "protocol");
	n = printf("%-19s %-9s ", row_str(row, "prefix"), source);
	/* Members stand below the first, also behind a long IPv6 prefix. */
	ways_print(row, n);
}

static void
nexthop_head(void)
{
	printf("%7s %7s %9s  %-11s %s\n", "GROUP", "ID", "ROUTES", "STATE", "WAYS OUT");
}

static void
nexthop_row(const json_t *row)
{
	char id[24] = "-";

	if (row_int(row, "nexthop_id") != 0)
		snprintf(id, sizeof(id), "%lld", row_int(row, "nexthop_id"));
	ways_print(row, printf("%7lld %7s %9lld  %-11s ", row_int(row, "group"), id,
			       row_int(row, "routes"), row_str(row, "state")));
}

static void
neighbor_head(void)
{
	printf("%-25s %-11s %-17s %-10s %s\n", "ADDRESS", "DEV", "MAC", "STATE", "USE");
}

static void
neighbor_row(const json_t *row)
{
	printf("%-25s %-11s %-17s %-10s %s\n", row_str(row, "address"), row_str(row, "dev"),
	       row_has(row, "mac") ? row_str(row, "mac") : "-", row_str(row, "state"),
	       row_str(row, "use"));
}

static void
port_head(void)
{
	printf("%-15s %-4s %5s %-17s %15s %15s\n", "PORT", "LINK", "MTU", "MAC",
	       "RX PACKETS", "TX PACKETS");
}

static void
port_row(const json_t *row)
{
	char rx[32], tx[32];
	const json_t *cpu;
	size_t q;

	printf("%-15s %-4s %5lld %-17s %15lld %15lld\n", row_str(row, "name"),
	       row_str(row, "link"), row_int(row, "mtu"), row_str(row, "mac"),
	       row_int(row, "rx_packets"), row_int(row, "tx_packets"));
	printf("    %s, %lld queue%s", row_str(row, "device"), row_int(row, "queues"),
	       row_int(row, "queues") == 1 ? "" : "s");
	json_array_foreach (json_object_get(row, "cpus"), q, cpu)
		printf("%s%lld", q == 0 ? " on CPU " : " ", json_integer_value(cpu));
	if (row_int(row, "queues") > 1)
		printf(", RSS %s", row_str(row, "rss"));
	if (row_has(row, "forwarding") && strcmp(row_str(row, "forwarding"), "on") != 0)
		printf(", forwarding %s (sysctl)", row_str(row, "forwarding"));
	if (row_has(row, "addresses4"))
		printf(", %s", row_str(row, "addresses4"));
	if (row_has(row, "addresses6"))
		printf(", %s", row_str(row, "addresses6"));
	printf("\n    rx %s, tx %s", human_bytes(row_int(row, "rx_bytes"), rx),
	       human_bytes(row_int(row, "tx_bytes"), tx));
	if (row_int(row, "rx_missed") != 0)
		printf(", missed %lld", row_int(row, "rx_missed"));
	if (row_int(row, "rx_errors") != 0)
		printf(", rx errors %lld", row_int(row, "rx_errors"));
	if (row_int(row, "tx_errors") != 0)
		printf(", tx errors %lld", row_int(row, "tx_errors"));
	putchar('\n');
}

/* Words of `text` from column `indent` on, broken before WIDTH. */
static void
wrapped_print(const char *text, int indent)
{
	int column = indent;

	while (*text != '\0') {
		int n = (int)strcspn(text, " ");

		if (column > indent && column + 1 + n > WIDTH) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		column += printf("%s%.*s", column > indent ? " " : "", n, text);
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void
counter_head(void)
{
	printf("%-5s %-18s %14s  %s\n", "KIND", "NAME", "PACKETS", "MEANING");
}

static void
counter_row(const json_t *row)
{
	wrapped_print(row_str(row, "text"),
		      printf("%-5s %-18s %14lld  ", row_str(row, "kind"),
			     row_str(row, "name"), row_int(row, "value")));
}

static const char *
rate_text(const json_t *row, const char *key, char buf[24])
{
	if (row_has(row, key))
		snprintf(buf, 24, "%lld", row_int(row, key));
	else
		snprintf(buf, 24, "unlimited");
	return buf;
}

static void
punt_head(void)
{
	printf("%-13s %9s %6s %9s %6s %12s %12s %12s %9s\n", "CLASS", "RATE/S", "BURST",
	       "SOURCE/S", "BURST", "PASSED", "POLICED", "OVER SHARE", "RING FULL");
}

static void
punt_row(const json_t *row)
{
	char rate[24], source[24];

	printf("%-13s %9s %6lld %9s %6lld %12lld %12lld %12lld %9lld\n",
	       row_str(row, "class"), rate_text(row, "rate", rate), row_int(row, "burst"),
	       rate_text(row, "source_rate", source), row_int(row, "source_burst"),
	       row_int(row, "passed"), row_int(row, "policed"), row_int(row, "over_share"),
	       row_int(row, "ring_full"));
}

static void
cycles_head(void)
{
	printf("%-8s %4s %-10s %14s %16s\n", "THREAD", "CPU", "STAGE", "CYCLES/PACKET",
	       "PACKETS A BURST");
}

static void
cycles_row(const json_t *row)
{
	double packets = row_real(row, "packets");

	printf("%-8s %4lld %-10s ", row_str(row, "thread"), row_int(row, "cpu"),
	       row_str(row, "stage"));
	if (packets > 0)
		printf("%14.1f %16.1f\n", row_real(row, "cycles") / packets,
		       packets / row_real(row, "bursts"));
	else
		printf("%14s %16s\n", "-", "-"); /* nothing was timed yet */
}

const struct view *
view_find(const char *show)
{
	static const struct view view[] = {
		{"routes", route_head, route_row},
		{"nexthops", nexthop_head, nexthop_row},
		{"neighbors", neighbor_head, neighbor_row},
		{"ports", port_head, port_row},
		{"counters", counter_head, counter_row},
		{"punt", punt_head, punt_row},
		{"fpm", NULL, status_fpm},
		{"cycles", cycles_head, cycles_row},
		{"memory", NULL, status_memory},
		{"version", NULL, status_version},
	};

	for (unsigned int i = 0; i < sizeof(view) / sizeof(view[0]); i++)
		if (strcmp(show, view[i].show) == 0)
			return &view[i];
	return NULL;
}
