/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that the collectors of sFlow accept datagrams, the kernel's psample
 * takes samples, and no sample is lost.
 */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

static void
collector_check(struct exam *e, const json_t *row)
{
	const char *address = row_str(row, "address");

	if (strcmp(row_str(row, "state"), "open") == 0) {
		finding_add(e, VERDICT_OK, address, "%lld datagrams sent",
			    row_int(row, "datagrams"));
		return;
	}
	finding_add(e, VERDICT_WARN, address, "%s",
		    row_has(row, "last_error") ? row_str(row, "last_error") : "no socket");
	finding_cost(e, "%s", "The collector gets no samples, or loses some.");
	finding_fix(e, "%s",
		    "fpmctl show sflow; start the collector, or correct sflow.collectors");
}

static void
psample_check(struct exam *e, const json_t *row)
{
	if (strcmp(row_str(row, "state"), "open") == 0) {
		finding_add(e, VERDICT_OK, "psample", "%lld samples sent",
			    row_int(row, "samples"));
		return;
	}
	finding_add(e, VERDICT_WARN, "psample", "%s", row_str(row, "last_error"));
	finding_cost(e, "%s", "hsflowd gets no samples.");
	finding_fix(e, "%s",
		    "fpmctl show sflow; modprobe psample, or correct sflow.psample");
}

static void
port_check(struct exam *e, const json_t *row)
{
	if (row_int(row, "drops") == 0)
		return;
	finding_add(e, VERDICT_WARN, row_str(row, "name"),
		    "%lld samples were not sent: over the limit, or sent too slowly",
		    row_int(row, "drops"));
	finding_cost(e, "%s", "Collectors see less traffic than there is.");
	finding_fix(e, "%s", "raise sflow.rate, and run fpmctl config reload");
}

void
check_sflow(struct exam *e)
{
	json_t *rows;
	const json_t *row;
	size_t i;

	if (exam_no_daemon(e, ""))
		return;
	rows = exam_ask(e, "sflow");
	if (json_array_size(rows) == 0)
		finding_add(e, VERDICT_NA, "", "the daemon does not answer");
	json_array_foreach (rows, i, row) {
		const char *kind = row_str(row, "kind");

		if (strcmp(kind, "collector") == 0)
			collector_check(e, row);
		else if (strcmp(kind, "psample") == 0)
			psample_check(e, row);
		else if (strcmp(kind, "port") == 0)
			port_check(e, row);
		else if (strcmp(row_str(row, "state"), "off") == 0)
			finding_add(e, VERDICT_OK, "",
				    "the configuration has no collector and no psample");
	}
	json_decref(rows);
}
