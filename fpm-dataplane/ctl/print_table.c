/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print tables: routes, next hops, neighbors, ports, counters. Column widths are fixed, so
 * that a million rows need no memory; 80 columns where the values allow it.
 */
#include "ctl/print_rows.h"

#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/rule_words.h"
#include "ctl/text.h"

#define WIDTH       80
#define VIA_WIDTH   43 /* "via ", and the longest IPv6 address */
#define HOPS_COLUMN 30 /* NEXT HOPS of routes */

/*
 * State of pen_write(), which prints words of a row from a column on. Words that do not fit
 * go to the next line, indented by `indent`.
 */
struct pen {
	int column, indent;
};

static void __attribute__((format(printf, 3, 4)))
pen_write(struct pen *pen, const char *gap, const char *fmt, ...)
{
	char text[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (pen->column > pen->indent && pen->column + (int)strlen(gap) + n > WIDTH) {
		printf("\n%*s", pen->indent, "");
		pen->column = pen->indent;
		gap = "";
	}
	pen->column += printf("%s%s", gap, text);
}

/* Print "label 16/17", the outermost first; "pop" if a label is only popped. */
static void
labels_print(struct pen *pen, const char *gap, const json_t *row)
{
	const json_t *labels = json_object_get(row, "labels");
	size_t n = json_array_size(labels);

	if (n == 0)
		pen_write(pen, gap, "pop");
	for (size_t i = 0; i < n; i++)
		pen_write(pen, i == 0 ? gap : "", "%s%lld%s", i == 0 ? "label " : "",
			  (long long)json_integer_value(json_array_get(labels, i)),
			  i + 1 < n ? "/" : "");
	if (row_has(row, "label_ttl"))
		pen_write(pen, " ", "ttl %lld", row_int(row, "label_ttl"));
}

/* Print the words of an end point or a headend, as many on a line as fit. */
static void
srv6_print(struct pen *pen, const char *text)
{
	const char *gap = "";

	while (*text != '\0') {
		int n = (int)strcspn(text, " ");

		pen_write(pen, gap, "%.*s", n, text);
		text += n + (text[n] == ' ');
		gap = " ";
	}
}

/* Print "label 16/17 via 10.0.1.2 dev wan0 weight 2 (dead)". */
static void
hop_print(struct pen *pen, const json_t *hop)
{
	const char *gap = "";

	if (json_is_array(json_object_get(hop, "labels"))) {
		labels_print(pen, "", hop);
		gap = " ";
	}
	if (row_has(hop, "srv6")) {
		srv6_print(pen, row_str(hop, "srv6"));
		gap = " ";
	}
	if (row_has(hop, "via")) {
		pen_write(pen, gap, "via %s", row_str(hop, "via"));
		gap = " ";
	}
	if (row_has(hop, "dev"))
		pen_write(pen, gap, "dev %s", row_str(hop, "dev"));
	if (row_int(hop, "weight") > 1)
		pen_write(pen, " ", "weight %lld", row_int(hop, "weight"));
	if (!row_true(hop, "alive"))
		pen_write(pen, " ", "(dead)");
}

/* Return a note about the state of a route or group; NULL if its next hops suffice. */
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
		{"through-kernel", "(not a port: the kernel forwards)"},
		{"unsupported", "(encapsulation not supported)"},
		{"down", "(all next hops are down)"},
	};

	for (unsigned int i = 0; i < sizeof(note) / sizeof(note[0]); i++)
		if (strcmp(state, note[i][0]) == 0)
			return note[i][1];
	return NULL;
}

/*
 * Print the next hops, one per line; the first on the current line, in which `column`
 * columns are used. Notes follow the first next hop. If a long prefix leaves no room, all
 * next hops move to the left.
 */
static void
hops_print(const json_t *row, int column)
{
	const json_t *hops = json_object_get(row, "nexthops");
	const char *note = state_note(row_str(row, "state"));
	bool more = json_array_size(hops) > 0;
	struct pen pen = {column, column + VIA_WIDTH > WIDTH ? HOPS_COLUMN : column};
	const char *gap = more ? "  " : "";

	if (more)
		hop_print(&pen, json_array_get(hops, 0));
	if (note != NULL)
		pen_write(&pen, gap, "%s", note);
	if (row_has(row, "mtu"))
		pen_write(&pen, "  ", "mtu %lld", row_int(row, "mtu"));
	if (row_has(row, "ttl_propagate"))
		pen_write(&pen, "  ", "ttl-propagate %s",
			  row_true(row, "ttl_propagate") ? "enabled" : "disabled");
	if (row_has(row, "vrf"))
		pen_write(&pen, "  ", "(vrf %s%s)", row_str(row, "vrf"),
			  strcmp(row_str(row, "state"), "not-installed") == 0
				  ? ": hidden by table local"
				  : "");
	else if (row_int(row, "table") == RT_TABLE_LOCAL)
		pen_write(&pen, "  ", "(table local)");
	else if (row_int(row, "table") != 0 && row_int(row, "table") != 254)
		pen_write(&pen, "  ", "(table %lld%s)", row_int(row, "table"),
			  strcmp(row_str(row, "state"), "not-installed") == 0
				  ? ": in no FIB"
				  : "");
	if (row_true(row, "stale"))
		pen_write(&pen, "  ", "(stale)");
	if (row_true(row, "absent")) {
		pen_write(&pen, "  ", "(deleted by FRR while in use:");
		pen_write(&pen, " ", "the last next hops stay)");
	}
	putchar('\n');
	for (size_t i = 1; i < json_array_size(hops); i++) {
		printf("%*s", pen.indent, "");
		pen.column = pen.indent;
		hop_print(&pen, json_array_get(hops, i));
		putchar('\n');
	}
}

static void
route_head(void)
{
	printf("%-19s %-9s %s\n", "PREFIX", "SOURCE", "NEXT HOPS");
}

static void
route_row(const json_t *row)
{
	const char *source = row_str(row, "source");
	int n;

	if (strcmp(source, "zebra") == 0 || strcmp(source, "kernel") == 0)
		source = row_str(row, "protocol");
	n = printf("%-19s %-9s ", row_str(row, "prefix"), source);
	if (row_has(row, "from"))
		n += printf("from %s ", row_str(row, "from"));
	if (row_has(row, "tos"))
		n += printf("tos %s ", row_str(row, "tos"));
	hops_print(row, n);
}

static void
nexthop_head(void)
{
	printf("%10s %-12s %8s %8s %s\n", "ID", "STATE", "GROUPS", "ROUTES", "NEXT HOP");
}

static void
nexthop_row(const json_t *row)
{
	struct pen pen = {.indent = HOPS_COLUMN};
	const char *gap = "";

	pen.column = printf("%10lld %-12s %8lld %8lld ", row_int(row, "nexthop_id"),
			    row_str(row, "state"), row_int(row, "groups"),
			    row_int(row, "routes"));
	if (json_is_array(json_object_get(row, "labels"))) {
		labels_print(&pen, "", row);
		gap = " ";
	}
	if (row_has(row, "via")) {
		pen_write(&pen, gap, "via %s", row_str(row, "via"));
		gap = " ";
	}
	if (row_has(row, "dev"))
		pen_write(&pen, gap, "dev %s", row_str(row, "dev"));
	if (row_true(row, "absent"))
		pen_write(&pen, "  ", "(deleted by FRR while in use)");
	putchar('\n');
}

static void
rule_head(void)
{
	printf("%-6s %10s %s\n", "FAMILY", "PREF", "RULE");
}

struct rule_pen {
	struct pen pen;
	bool begun;
};

static void
rule_on_word(void *ctx, const char *text)
{
	struct rule_pen *to = ctx;

	pen_write(&to->pen, to->begun ? " " : "", "%s", text);
	to->begun = true;
}

static void
rule_row(const json_t *row)
{
	struct rule_pen to = {.pen.indent = HOPS_COLUMN};

	to.pen.column =
		printf("%-6s %10lld ", row_str(row, "family"), row_int(row, "pref"));
	rule_words(row, rule_on_word, &to);
	if (!row_true(row, "obeyed"))
		pen_write(&to.pen, "  ", "(not obeyed: %s)", row_str(row, "lacks"));
	putchar('\n');
}

static void
group_head(void)
{
	printf("%7s %7s %8s %7s %-11s %s\n", "GROUP", "ID", "ROUTES", "BUCKETS", "STATE",
	       "NEXT HOPS");
}

static void
group_row(const json_t *row)
{
	char id[24] = "-";

	if (row_int(row, "nexthop_id") != 0)
		snprintf(id, sizeof(id), "%lld", row_int(row, "nexthop_id"));
	hops_print(row, printf("%7lld %7s %8lld %7lld %-11s ", row_int(row, "group"), id,
			       row_int(row, "routes"), row_int(row, "buckets"),
			       row_str(row, "state")));
}

static void
label_head(void)
{
	printf("%7s %-9s %s\n", "LABEL", "SOURCE", "NEXT HOPS");
}

static void
label_row(const json_t *row)
{
	hops_print(row,
		   printf("%7lld %-9s ", row_int(row, "label"), row_str(row, "protocol")));
}

static void
encap_head(void)
{
	printf("%7s %9s %s\n", "NUMBER", "NEXT HOPS", "LABELS AND NEIGHBOR");
}

static void
encap_row(const json_t *row)
{
	struct pen pen = {.indent = HOPS_COLUMN};

	pen.column =
		printf("%7lld %9lld ", row_int(row, "encap"), row_int(row, "nexthops"));
	if (row_has(row, "srv6")) {
		srv6_print(&pen, row_str(row, "srv6"));
		putchar('\n');
		return;
	}
	labels_print(&pen, "", row);
	if (row_has(row, "via"))
		pen_write(&pen, " ", "via %s", row_str(row, "via"));
	pen_write(&pen, " ", "dev %s", row_str(row, "dev"));
	if (!row_true(row, "alive"))
		pen_write(&pen, " ", "(dead)");
	putchar('\n');
}

#define NEIGHBOR_WIDTH 25 /* fe80:: and an interface identifier */

static void
neighbor_head(void)
{
	printf("%-*s %-11s %-17s %-10s %s\n", NEIGHBOR_WIDTH, "ADDRESS", "DEV", "MAC",
	       "STATE", "USE");
}

static void
neighbor_row(const json_t *row)
{
	const char *address = row_str(row, "address");

	/*
	 * A long address has a line of its own, so that the other columns stay below their
	 * headings.
	 */
	if (strlen(address) > NEIGHBOR_WIDTH) {
		puts(address);
		address = "";
	}
	printf("%-*s %-11s %-17s %-10s %s\n", NEIGHBOR_WIDTH, address, row_str(row, "dev"),
	       row_has(row, "mac") ? row_str(row, "mac") : "-", row_str(row, "state"),
	       row_str(row, "use"));
	if (row_has(row, "vtep"))
		printf("    behind the VTEP %s\n", row_str(row, "vtep"));
}

/* Return the escape sequence that begins or ends red text. */
static const char *
red_switch(bool on)
{
	static int colours = -1;

	if (colours < 0)
		colours = colours_wanted();
	return !colours ? "" : on ? "\033[31m" : "\033[0m";
}

static void
port_head(void)
{
	printf("%-15s %-4s %5s %-17s %15s %15s\n", "PORT", "LINK", "MTU", "MAC",
	       "RX PACKETS", "TX PACKETS");
}

/*
 * Format the row's rate `key` multiplied by `times`: "0 pps", "12.3 kbit/s". Returns buf.
 */
static const char *
per_s_text(const json_t *row, const char *key, double times, const char *unit, char buf[48])
{
	double per_s = row_real(row, key) * times;
	char number[32];

	snprintf(buf, 48, "%s%s%s", human_rate(per_s, number), per_s < 1000 ? " " : "",
		 unit);
	return buf;
}

static void
port_rates(const json_t *row)
{
	char rx[48], tx[48], rxb[48], txb[48];

	if (!row_has(row, "rx_packets_per_s"))
		return;
	printf("    now rx %s, %s; tx %s, %s\n",
	       per_s_text(row, "rx_packets_per_s", 1, "pps", rx),
	       per_s_text(row, "rx_bytes_per_s", 8, "bit/s", rxb),
	       per_s_text(row, "tx_packets_per_s", 1, "pps", tx),
	       per_s_text(row, "tx_bytes_per_s", 8, "bit/s", txb));
}

/* Print the device of a port and its use, in as many lines as needed. */
static void
port_device(const json_t *row)
{
	const json_t *cpu;
	char *text = NULL;
	size_t q, size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		abort(); /* out of memory for some hundred octets */
	fprintf(out, "%s, %lld queue%s", row_str(row, "device"), row_int(row, "queues"),
		text_plural(row_int(row, "queues")));
	json_array_foreach (json_object_get(row, "cpus"), q, cpu) {
		fputs(q == 0 ? " on CPU " : " ", out);
		if (json_is_integer(cpu))
			fprintf(out, "%lld", json_integer_value(cpu));
		else
			fputc('-', out); /* no CPU serves the queue */
	}
	if (row_int(row, "queues") > 1)
		fprintf(out, ", RSS %s", row_str(row, "rss"));
	if (json_is_true(json_object_get(row, "vlan_offload")))
		fprintf(out, ", VLAN tags by the NIC");
	if (json_is_true(json_object_get(row, "checksum_offload")))
		fprintf(out, ", IPv4 checksums by the NIC");
	if (row_has(row, "bond"))
		status_bond(out, json_object_get(row, "bond"));
	if (row_has(row, "forwarding") && strcmp(row_str(row, "forwarding"), "on") != 0)
		fprintf(out, ", %sforwarding %s (sysctl)%s", red_switch(true),
			row_str(row, "forwarding"), red_switch(false));
	/*
	 * The addresses may be those of another interface; `show interfaces` has the port's
	 * own.
	 */
	if (row_has(row, "addresses4") || row_has(row, "addresses6"))
		fprintf(out, ", ICMP from");
	if (row_has(row, "addresses4"))
		fprintf(out, " %s", row_str(row, "addresses4"));
	if (row_has(row, "addresses6"))
		fprintf(out, " %s", row_str(row, "addresses6"));
	fclose(out);
	wrapped_print(text, printf("    "));
	free(text);
}

static void
port_row(const json_t *row)
{
	bool down = strcmp(row_str(row, "link"), "up") != 0;
	struct pen pen = {.indent = 4};
	char rx[32], tx[32];

	printf("%-15s %s%-4s%s %5lld %-17s %15lld %15lld\n", row_str(row, "name"),
	       down ? red_switch(true) : "", row_str(row, "link"),
	       down ? red_switch(false) : "", row_int(row, "mtu"), row_str(row, "mac"),
	       row_int(row, "rx_packets"), row_int(row, "tx_packets"));
	if (row_has(row, "interface") &&
	    strcmp(row_str(row, "interface"), row_str(row, "name")) != 0)
		printf("    renamed in the kernel: interface %s\n",
		       row_str(row, "interface"));
	port_device(row);
	pen.column = printf("    rx %s, tx %s", human_bytes(row_int(row, "rx_bytes"), rx),
			    human_bytes(row_int(row, "tx_bytes"), tx));
	if (row_int(row, "rx_missed") != 0)
		pen_write(&pen, ", ", "missed %lld", row_int(row, "rx_missed"));
	if (row_int(row, "rx_errors") != 0)
		pen_write(&pen, ", ", "rx errors %lld", row_int(row, "rx_errors"));
	if (row_int(row, "tx_errors") != 0)
		pen_write(&pen, ", ", "tx errors %lld", row_int(row, "tx_errors"));
	putchar('\n');
	port_rates(row);
}

#define ADDRESS_COLUMN 45
#define CIDR_WIDTH     43 /* the longest IPv6 address, and its /128 */

static void
interface_head(void)
{
	printf("%-15s %7s %-5s %-4s %-9s %s\n", "INTERFACE", "IFINDEX", "STATE", "PORT",
	       "VLAN", "ADDRESSES");
}

static const char *
outer_end(const json_t *row, const char *key)
{
	return row_has(row, key) ? row_str(row, key) : "any";
}

/* Print the ends of a tunnel, and whether forwarders or the kernel serve it. */
static void
tunnel_row(const json_t *row)
{
	printf("    %s tunnel, local %s, remote %s", row_str(row, "tunnel"),
	       outer_end(row, "local"), outer_end(row, "remote"));
	if (row_has(row, "outer_vrf"))
		printf(", in VRF %s", row_str(row, "outer_vrf"));
	putchar('\n');
	if (row_has(row, "by_kernel"))
		printf("    served by the kernel: %s\n", row_str(row, "by_kernel"));
}

static void
interface_row(const json_t *row)
{
	bool up = row_true(row, "up");
	bool upper = row_has(row, "on"); /* a VLAN or macvlan on a port */
	const json_t *address;
	struct pen pen = {.column = ADDRESS_COLUMN - 1};
	char rx[32], tx[32];
	size_t i;

	printf("%-15s %7lld %s%-5s%s %-4s %-9s", row_str(row, "name"),
	       row_int(row, "ifindex"), up ? "" : red_switch(true), up ? "up" : "down",
	       up ? "" : red_switch(false), row_true(row, "port") ? "yes" : "no",
	       row_true(row, "macvlan") ? "macvlan"
	       : upper                  ? row_str(row, "vlan")
					: "-");
	json_array_foreach (json_object_get(row, "addresses"), i, address) {
		const char *text = item_str(address);

		/*
		 * Align addresses with the first address, except if they are too long for
		 * that column.
		 */
		pen.indent = ADDRESS_COLUMN + strlen(text) > WIDTH ? WIDTH - CIDR_WIDTH
								   : ADDRESS_COLUMN;
		pen_write(&pen, " ", "%s", text);
	}
	putchar('\n');
	if (row_has(row, "part_of"))
		printf("    member of %s, which is no port: not forwarded\n",
		       row_str(row, "part_of"));
	if (row_true(row, "mpls"))
		printf("    takes MPLS labels\n");
	if (row_has(row, "urpf") && strcmp(row_str(row, "urpf"), "off") != 0)
		printf("    checks IPv4 sources (rp_filter), %s: %lld dropped\n",
		       row_str(row, "urpf"), row_int(row, "urpf_dropped"));
	if (row_has(row, "tunnel"))
		tunnel_row(row);
	if (row_has(row, "vxlan"))
		printf("    over VXLAN: VNI %lld of %s, router MAC %s\n",
		       row_int(row, "vni"), row_str(row, "vxlan"), row_str(row, "mac"));
	if (!row_has(row, "rx_packets"))
		return;
	if (row_true(row, "macvlan"))
		printf("    mac %s\n", row_str(row, "mac"));
	printf("    ");
	if (upper)
		printf("on %s, ", row_str(row, "on"));
	printf("rx %lld (%s), tx %lld (%s)\n", row_int(row, "rx_packets"),
	       human_bytes(row_int(row, "rx_bytes"), rx), row_int(row, "tx_packets"),
	       human_bytes(row_int(row, "tx_bytes"), tx));
}

static void
fib_head(void)
{
	printf("%-6s %8s %8s %8s %9s %9s %9s %s\n", "FAMILY", "PREFIXES", "NODES", "LEAVES",
	       "MEMORY", "FREE", "WRITER", "VRF");
}

static void
fib_row(const json_t *row)
{
	char all[32], spare[32], radix[32];

	printf("%-6s %8lld %8lld %8lld %9s %9s %9s %s\n", row_str(row, "family"),
	       row_int(row, "routes"), row_int(row, "nodes"), row_int(row, "leaves"),
	       human_bytes(row_int(row, "bytes"), all),
	       human_bytes(row_int(row, "free_bytes"), spare),
	       human_bytes(row_int(row, "radix_bytes"), radix),
	       row_has(row, "vrf") ? row_str(row, "vrf") : "-");
}

#define VRF_COLUMNS "%-15s %10s %8s %8s %8s %10s %8s\n"

static void
vrf_head(void)
{
	printf(VRF_COLUMNS, "VRF", "TABLE", "IPv4", "IPv6", "RX", "OCTETS", "DROPPED");
}

/*
 * Print a VRF. Packets of a VRF are dropped until its FIB has the routes that existed
 * before the VRF.
 */
static void
vrf_row(const json_t *row)
{
	char table[32], n4[32], n6[32], rx[32], bytes[32], drops[32];

	snprintf(table, sizeof(table), "%lld", row_int(row, "table"));
	printf(VRF_COLUMNS, row_str(row, "name"), table,
	       human_count(row_int(json_object_get(row, "fib4"), "routes"), n4),
	       human_count(row_int(json_object_get(row, "fib6"), "routes"), n6),
	       human_count(row_int(row, "rx_packets"), rx),
	       human_bytes(row_int(row, "rx_bytes"), bytes),
	       human_count(row_int(row, "dropped"), drops));
	if (row_real(row, "rx_packets_per_s") + row_real(row, "dropped_per_s") > 0)
		printf(VRF_COLUMNS, "per second", "", "", "",
		       human_rate(row_real(row, "rx_packets_per_s"), rx),
		       human_rate(row_real(row, "rx_bytes_per_s"), bytes),
		       human_rate(row_real(row, "dropped_per_s"), drops));
	if (!row_true(row, "published"))
		puts("    FIB being filled: packets are dropped (vrf_no_fib)");
	if (row_int(row, "stale") > 0)
		printf("    %lld route%s stale%s\n", row_int(row, "stale"),
		       text_plural(row_int(row, "stale")),
		       row_true(row, "replayed") ? "" : ", not replayed");
}

static void
thread_head(void)
{
	printf("%-15s %8s %4s %12s %8s\n", "THREAD", "TID", "CPU", "CPU SECONDS", "NOW");
}

static void
thread_row(const json_t *row)
{
	printf("%-15s %8lld %4lld %12.2f", row_str(row, "thread"), row_int(row, "tid"),
	       row_int(row, "cpu"), row_real(row, "cpu_s"));
	if (row_has(row, "cpu_s_per_s"))
		printf(" %6.0f %%", row_real(row, "cpu_s_per_s") * 100);
	putchar('\n');
}

static void
log_row(const json_t *row)
{
	line_print(4, "%s", row_str(row, "line"));
}

static void
counter_head(void)
{
	printf("%-5s %-18s %14s  %s\n", "KIND", "NAME", "PACKETS", "MEANING");
}

static void
counter_row(const json_t *row)
{
	char rate[32];

	wrapped_print(row_str(row, "text"),
		      printf("%-5s %-18s %14lld  ", row_str(row, "kind"),
			     row_str(row, "name"), row_int(row, "value")));
	if (row_real(row, "value_per_s") != 0)
		printf("%39s%s/s\n", "", human_rate(row_real(row, "value_per_s"), rate));
}

static void
drop_head(void)
{
	printf("%-18s %14s  %s\n", "REASON", "PACKETS", "MEANING AND ADVICE");
}

static void
drop_row(const json_t *row)
{
	const char *what = advice(row_str(row, "name"));
	char rate[32];

	wrapped_print(row_str(row, "text"), printf("%-18s %14lld  ", row_str(row, "name"),
						   row_int(row, "value")));
	if (row_real(row, "value_per_s") != 0)
		printf("%35s%snow %s/s%s\n", "", red_switch(true),
		       human_rate(row_real(row, "value_per_s"), rate), red_switch(false));
	if (what != NULL)
		wrapped_print(what, printf("%35s", ""));
}

#define RATE_WIDTH 13

/* Format a rate and a burst, "1000+200", or "10.0 M+1.0 M" if the column is too narrow. */
static const char *
rate_text(const json_t *row, const char *rate, const char *burst, char buf[64])
{
	char per_s[32], more[32];

	if (!row_has(row, rate))
		snprintf(buf, 64, "unlimited");
	else if (snprintf(buf, 64, "%lld+%lld", row_int(row, rate), row_int(row, burst)) >
		 RATE_WIDTH)
		snprintf(buf, 64, "%s+%s", human_rate((double)row_int(row, rate), per_s),
			 human_rate((double)row_int(row, burst), more));
	return buf;
}

static void
punt_head(void)
{
	printf("%-13s %13s %13s %9s %9s %9s %8s\n", "CLASS", "RATE/S+BURST", "PER SOURCE",
	       "PASSED", "POLICED", "OVERSHARE", "RINGFULL");
}

static void
punt_row(const json_t *row)
{
	char rate[64], source[64], n[4][32];

	printf("%-13s %13s %13s %9s %9s %9s %8s\n", row_str(row, "class"),
	       rate_text(row, "rate", "burst", rate),
	       rate_text(row, "source_rate", "source_burst", source),
	       human_count(row_int(row, "passed"), n[0]),
	       human_count(row_int(row, "policed"), n[1]),
	       human_count(row_int(row, "over_share"), n[2]),
	       human_count(row_int(row, "ring_full"), n[3]));
	if (row_real(row, "passed_per_s") + row_real(row, "policed_per_s") +
		    row_real(row, "over_share_per_s") + row_real(row, "ring_full_per_s") >
	    0)
		printf("%13s %13s %13s %9s %9s %9s %8s\n", "per second", "", "",
		       human_rate(row_real(row, "passed_per_s"), n[0]),
		       human_rate(row_real(row, "policed_per_s"), n[1]),
		       human_rate(row_real(row, "over_share_per_s"), n[2]),
		       human_rate(row_real(row, "ring_full_per_s"), n[3]));
}

static void
cycles_head(void)
{
	printf("%-8s %4s %-10s %14s %16s\n", "THREAD", "CPU", "STAGE", "CYCLES/PACKET",
	       "PACKETS/BURST");
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
		printf("%14s %16s\n", "-", "-"); /* no packet was timed yet */
}

static void
warning_row(const json_t *row)
{
	char text[512];

	wrapped_print(row_str(row, "where"), printf("%s: ", row_str(row, "kind")));
	snprintf(text, sizeof(text), "%s %s", row_str(row, "linux"),
		 row_str(row, "dataplane"));
	wrapped_print(text, printf("%8s", ""));
}

static void
filter_ruleset_row(const json_t *row)
{
	char text[512];

	if (!row_has(row, "table")) {
		puts("filter off: the configuration has no `filter.table`");
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", row_str(row, "table"),
		 row_str(row, "state"));
	wrapped_print(text, printf("table "));
	if (row_has(row, "generation"))
		printf("  generation %lld, in force for %lld s\n",
		       row_int(row, "generation"), row_int(row, "since_s"));
	if (row_has(row, "refused"))
		wrapped_print(row_str(row, "refused"), printf("  refused: "));
	printf("%8s %-8s %14s %16s  %s\n", "HANDLE", "ACTION", "PACKETS", "OCTETS",
	       "CHAIN: COMMENT");
}

static void
filter_row(const json_t *row)
{
	char text[1024];

	if (strcmp(row_str(row, "kind"), "ruleset") == 0) {
		filter_ruleset_row(row);
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s%s%s", row_str(row, "chain"),
		 row_has(row, "to") ? " -> " : "",
		 row_has(row, "to") ? row_str(row, "to") : "",
		 row_has(row, "comment") ? ": " : "",
		 row_has(row, "comment") ? row_str(row, "comment") : "");
	wrapped_print(text, printf("%8lld %-8s %14lld %16lld  ", row_int(row, "handle"),
				   row_str(row, "action"), row_int(row, "packets"),
				   row_int(row, "octets")));
}

const struct view *
view_find(const char *show)
{
	static const struct view view[] = {
		{"routes", route_head, route_row},
		{"nexthops", nexthop_head, nexthop_row},
		{"rules", rule_head, rule_row},
		{"filter", NULL, filter_row},
		{"flowspec", NULL, flowspec_print_row},
		{"sflow", NULL, sflow_print_row},
		{"hooks", NULL, hook_print_row},
		{"bfd", bfd_table_head, bfd_table_row},
		{"warnings", NULL, warning_row},
		{"neighbors", neighbor_head, neighbor_row},
		{"ports", port_head, port_row},
		{"groups", group_head, group_row},
		{"labels", label_head, label_row},
		{"encaps", encap_head, encap_row},
		{"sids", sid_table_head, sid_table_row},
		{"counters", counter_head, counter_row},
		{"drops", drop_head, drop_row},
		{"interfaces", interface_head, interface_row},
		{"fib", fib_head, fib_row},
		{"vrfs", vrf_head, vrf_row},
		{"threads", thread_head, thread_row},
		{"log", NULL, log_row},
		{"punt", punt_head, punt_row},
		{"fpm", NULL, status_fpm},
		{"kernel", NULL, status_kernel},
		{"cycles", cycles_head, cycles_row},
		{"memory", NULL, status_memory},
		{"version", NULL, status_version},
	};

	for (unsigned int i = 0; i < sizeof(view) / sizeof(view[0]); i++)
		if (strcmp(show, view[i].show) == 0)
			return &view[i];
	return NULL;
}

void (*view_one(const char *show))(const json_t *row)
{
	return strcmp(show, "bfd") == 0 ? bfd_session_print : NULL;
}
