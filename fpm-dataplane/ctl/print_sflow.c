/* SPDX-License-Identifier: BSD-3-Clause */
/* Print sFlow: its settings, its collectors, psample and its ports, a paragraph each. */
#include "ctl/print_rows.h"

#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

static void
agent_print(const json_t *row)
{
	if (strcmp(row_str(row, "state"), "off") == 0) {
		printf("sflow off: the configuration has no collector and no psample\n");
		return;
	}
	printf("agent %s\n", row_has(row, "agent") ? row_str(row, "agent") : "not known");
	printf("  1 of %lld packets, %lld octets of each; counters each %lld s\n",
	       row_int(row, "rate"), row_int(row, "header"), row_int(row, "counters_s"));
	printf("  %lld datagrams, %lld counters\n", row_int(row, "sequence"),
	       row_int(row, "counters"));
	printf("  samples: %lld sent, %lld over the limit\n", row_int(row, "samples"),
	       row_int(row, "samples_over"));
	printf("  drops: %s; %lld sent, %lld over the limit\n",
	       row_true(row, "drops") ? "on" : "off", row_int(row, "discards"),
	       row_int(row, "discards_over"));
}

static void
collector_print(const json_t *row)
{
	char text[256];

	snprintf(text, sizeof(text), "%s%s%s: %s%s%s", row_str(row, "address"),
		 row_has(row, "vrf") ? " vrf " : "",
		 row_has(row, "vrf") ? row_str(row, "vrf") : "", row_str(row, "state"),
		 row_has(row, "last_error") ? ": " : "",
		 row_has(row, "last_error") ? row_str(row, "last_error") : "");
	wrapped_print(text, printf("collector "));
	printf("  %lld datagrams, %lld errors\n", row_int(row, "datagrams"),
	       row_int(row, "errors"));
}

static void
psample_print(const json_t *row)
{
	char text[128];

	snprintf(text, sizeof(text), "%lld: %s%s%s", row_int(row, "group"),
		 row_str(row, "state"), row_has(row, "last_error") ? ": " : "",
		 row_has(row, "last_error") ? row_str(row, "last_error") : "");
	wrapped_print(text, printf("psample "));
	printf("  %lld samples, %lld errors\n", row_int(row, "samples"),
	       row_int(row, "errors"));
}

void
sflow_print_row(const json_t *row)
{
	if (strcmp(row_str(row, "kind"), "agent") == 0) {
		agent_print(row);
	} else if (strcmp(row_str(row, "kind"), "collector") == 0) {
		collector_print(row);
	} else if (strcmp(row_str(row, "kind"), "psample") == 0) {
		psample_print(row);
	} else {
		printf("port %s\n", row_str(row, "name"));
		printf("  samples: %lld of %lld packets, %lld lost\n",
		       row_int(row, "samples"), row_int(row, "pool"),
		       row_int(row, "drops"));
		printf("  drops: %lld, %lld lost\n", row_int(row, "discards"),
		       row_int(row, "discards_dropped"));
	}
}
