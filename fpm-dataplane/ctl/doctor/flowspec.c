/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that fpm-flowspec runs, has a session with FRR, and that its table
 * has a rule for each flow specification.
 */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

/* Add the findings about an fpm-flowspec that works. */
static void
flows_check(struct exam *e, const json_t *row)
{
	long long refused = row_int(row, "refused"), waiting = row_int(row, "waiting");

	if (row_has(row, "frr_error")) {
		finding_add(e, VERDICT_WARN, "FRR", "%s", row_str(row, "frr_error"));
		finding_cost(e, "%s",
			     "New flow specifications are not checked, and not installed.");
		finding_fix(e, "%s", "vtysh -c 'show bgp summary'");
	}
	if (refused > 0) {
		finding_add(e, VERDICT_WARN, "refused", "%lld flow specifications",
			    refused);
		finding_cost(e, "%s", "They filter no packets.");
		finding_fix(e, "%s", "fpm-flowspec show");
	}
	if (waiting > 0) {
		finding_add(e, VERDICT_WARN, "waiting",
			    "%lld flow specifications, because there are too many",
			    waiting);
		finding_cost(e, "%s",
			     "They filter no packets until other flow specifications are "
			     "withdrawn.");
		finding_fix(e, "%s",
			    "fpm-flowspec show; raise --max-flows in "
			    "/etc/default/fpm-flowspec");
	}
}

void
check_flowspec(struct exam *e)
{
	json_t *row;
	const char *state;

	if (exam_no_daemon(e, ""))
		return;
	row = exam_ask_one(e, "flowspec");
	state = row_str(row, "state");
	if (row == NULL) {
		finding_add(e, VERDICT_NA, "", "the daemon does not answer");
	} else if (strcmp(state, "off") == 0) {
		finding_add(e, VERDICT_OK, "", "filter.table does not name inet flowspec");
	} else if (strcmp(state, "absent") == 0) {
		finding_add(e, VERDICT_FAIL, "", "fpm-flowspec does not run");
		finding_cost(e, "%s",
			     "Flow specifications of BGP peers filter no packets.");
		finding_fix(e, "%s", "systemctl enable --now fpm-flowspec");
	} else if (strcmp(state, "silent") == 0) {
		finding_add(e, VERDICT_FAIL, "", "fpm-flowspec hangs, no report for %lld s",
			    row_int(row, "age_s"));
		finding_cost(e, "%s",
			     "Its rules stay in force, also those of withdrawn flow "
			     "specifications.");
		finding_fix(e, "%s", "systemctl restart fpm-flowspec");
	} else if (strcmp(state, "failing") == 0) {
		finding_add(e, VERDICT_FAIL, "", "nft: %s", row_str(row, "nft_error"));
		finding_cost(e, "%s",
			     "The table has the rules of an earlier load, not of the "
			     "present flow specifications.");
		finding_fix(e, "%s", "journalctl -u fpm-flowspec -e");
	} else if (strcmp(state, "down") == 0) {
		finding_add(e, VERDICT_FAIL, "", "no session with FRR");
		finding_cost(e, "%s",
			     "Flow specifications of BGP peers filter no packets after "
			     "--stale-time.");
		finding_fix(e, "%s", "vtysh -c 'show bgp neighbors 127.0.0.2'");
	} else {
		finding_add(e, VERDICT_OK, "", "%lld sessions up, %lld flows installed",
			    row_int(row, "sessions_up"), row_int(row, "installed"));
		flows_check(e, row);
	}
	json_decref(row);
}
