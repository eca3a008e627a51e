/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the sessions of BFD: a table of at most 80 columns, or all facts about one session.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/print_rows.h"
#include "ctl/text.h"

#define WIDTH         80
#define ADDRESS_WIDTH 15
#define DEV_WIDTH     8
#define BFD_COLUMNS   " %-10s %9s %6s %6s %4s\n"

/*
 * Format a time for a narrow column: milliseconds without a unit ("33.3", "300"), from ten
 * seconds on in seconds ("60s"), then in minutes ("71m"). Returns buf.
 */
static const char *
ms_text(long long us, char buf[32])
{
	if (us >= 1000000000)
		snprintf(buf, 32, "%lldm", us / 60000000);
	else if (us >= 10000000)
		snprintf(buf, 32, "%llds", us / 1000000);
	else if (us % 1000 != 0 && us < 100000)
		snprintf(buf, 32, "%.1f", (double)us / 1000);
	else
		snprintf(buf, 32, "%lld", us / 1000);
	return buf;
}

/* Format an age in at most four columns: "59s", "59m", "47h", "999d". Returns buf. */
static const char *
age_text(long long s, char buf[32])
{
	if (s < 60)
		snprintf(buf, 32, "%llds", s);
	else if (s < 3600)
		snprintf(buf, 32, "%lldm", s / 60);
	else if (s < 48 * 3600)
		snprintf(buf, 32, "%lldh", s / 3600);
	else
		snprintf(buf, 32, "%lldd", s / 86400);
	return buf;
}

static const char *
text_or_dash(const json_t *row, const char *key)
{
	return row_has(row, key) ? row_str(row, key) : "-";
}

void
bfd_table_head(void)
{
	printf("%-*s %-*s %-*s" BFD_COLUMNS, ADDRESS_WIDTH, "PEER", ADDRESS_WIDTH, "LOCAL",
	       DEV_WIDTH, "DEV", "STATE", "TX/RX ms", "DETECT", "DOWNS", "AGE");
}

/* Print the words that name a session. Long words have their own lines. */
static void
session_print(const json_t *row)
{
	const char *peer = row_str(row, "peer"), *local = text_or_dash(row, "local"),
		   *dev = text_or_dash(row, "dev");
	int room = WIDTH;

	if (strlen(peer) <= ADDRESS_WIDTH && strlen(local) <= ADDRESS_WIDTH &&
	    strlen(dev) <= DEV_WIDTH) {
		printf("%-*s %-*s %-*s", ADDRESS_WIDTH, peer, ADDRESS_WIDTH, local,
		       DEV_WIDTH, dev);
		return;
	}
	room -= printf("%s %s", peer, local);
	printf("%s%s\n", (int)strlen(dev) < room ? " " : "\n    ", dev);
	printf("%*s", ADDRESS_WIDTH + 1 + ADDRESS_WIDTH + 1 + DEV_WIDTH, "");
}

void
bfd_table_row(const json_t *row)
{
	/* The interval of the peer's packets is the larger value of both sides. */
	long long rx_us = row_int(row, "remote_tx_us") > row_int(row, "rx_us")
				  ? row_int(row, "remote_tx_us")
				  : row_int(row, "rx_us");
	char tx[32], rx[32], both[80], detect[32], downs[32], age[32];

	session_print(row);
	snprintf(both, sizeof(both), "%s/%s", ms_text(row_int(row, "interval_us"), tx),
		 ms_text(rx_us, rx));
	printf(BFD_COLUMNS, row_str(row, "state"), both,
	       row_int(row, "detect_us") == 0 ? "-"
					      : ms_text(row_int(row, "detect_us"), detect),
	       human_count(row_int(row, "downs"), downs),
	       age_text(row_int(row, "since_s"), age));
	if (row_has(row, "reason"))
		wrapped_print(row_str(row, "reason"), printf("    not served: "));
	if (row_true(row, "pruned"))
		puts("    its next hop was removed from all groups");
}

/* --- one session ---------------------------------------------------------------------- */

static void
counts_print(const json_t *row, const char *what, const char *const key[4])
{
	char rx[32], tx[32];

	printf("  %s: rx %lld (%s), tx %lld (%s)\n", what, row_int(row, key[0]),
	       human_bytes(row_int(row, key[1]), rx), row_int(row, key[2]),
	       human_bytes(row_int(row, key[3]), tx));
}

void
bfd_session_print(const json_t *row)
{
	static const char *const control[] = {"rx_packets", "rx_bytes", "tx_packets",
					      "tx_bytes"};
	static const char *const echo[] = {"echo_rx_packets", "echo_rx_bytes",
					   "echo_tx_packets", "echo_tx_bytes"};
	char age[32];

	printf("peer %s, %s%s%s\n", row_str(row, "peer"),
	       row_true(row, "multihop") ? "several hops" : "one hop",
	       row_true(row, "passive") ? ", passive" : "",
	       row_true(row, "shutdown") ? ", shut down" : "");
	printf("  local %s\n  dev %s, vrf %s\n", text_or_dash(row, "local"),
	       text_or_dash(row, "dev"), text_or_dash(row, "vrf"));
	printf("  state %s for %s; went down %lld time%s\n", row_str(row, "state"),
	       human_seconds((double)row_int(row, "since_s"), age), row_int(row, "downs"),
	       text_plural(row_int(row, "downs")));
	if (row_has(row, "reason"))
		wrapped_print(row_str(row, "reason"), printf("  not served: "));
	else
		printf("  the %s send%s its packets\n", text_or_dash(row, "by"),
		       strcmp(row_str(row, "by"), "kernel") == 0 ? "s" : "");
	if (row_true(row, "pruned"))
		puts("  its next hop was removed from all groups");
	printf("  diagnostic: %s\n  diagnostic of the peer: %s\n", row_str(row, "diag"),
	       row_str(row, "remote_diag"));
	printf("  discriminators: %lld, of the peer %lld, of bfdd %lld\n",
	       row_int(row, "discr"), row_int(row, "remote_discr"), row_int(row, "lid"));
	printf("  sends each %g ms, detection time %g ms\n",
	       row_real(row, "interval_us") / 1000, row_real(row, "detect_us") / 1000);
	printf("  configured: tx %g ms, rx %g ms, multiplier %lld\n",
	       row_real(row, "tx_us") / 1000, row_real(row, "rx_us") / 1000,
	       row_int(row, "mult"));
	printf("  peer: tx %g ms, rx %g ms, multiplier %lld\n",
	       row_real(row, "remote_tx_us") / 1000, row_real(row, "remote_rx_us") / 1000,
	       row_int(row, "remote_mult"));
	counts_print(row, "control", control);
	if (!row_true(row, "echo"))
		return;
	if (row_int(row, "echo_us") > 0)
		printf("  echo each %g ms\n", row_real(row, "echo_us") / 1000);
	else
		puts("  echo configured, none sent now");
	counts_print(row, "echo", echo);
}
