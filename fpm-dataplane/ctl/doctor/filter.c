/* SPDX-License-Identifier: BSD-3-Clause */
/* fpmctl doctor: check that the nft ruleset that the configuration names is in force. */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

void
check_filter(struct exam *e)
{
	json_t *rows;
	const json_t *row;
	const char *state;
	bool drops;

	if (exam_no_daemon(e, ""))
		return;
	rows = exam_ask(e, "filter");
	row = json_array_get(rows, 0);
	state = row_str(row, "state");
	drops = strcmp(row_str(row, "on_error"), "drop") == 0;
	if (row == NULL) {
		finding_add(e, VERDICT_NA, "",
			    "the daemon does not answer, or builds a ruleset: "
			    "fpmctl show filter");
	} else if (strcmp(state, "off") == 0) {
		finding_add(e, VERDICT_OK, "", "the configuration names no filter");
	} else if (strcmp(state, "in-force") == 0) {
		finding_add(e, VERDICT_OK, "", "%s, generation %lld, %lld rules",
			    row_str(row, "table"), row_int(row, "generation"),
			    row_int(row, "rules"));
	} else {
		finding_add(e, VERDICT_FAIL, "", "%s: %s", row_str(row, "table"),
			    row_str(row, "refused"));
		finding_cost(e, "%s",
			     strcmp(state, "absent") != 0
				     ? "The previous ruleset stays in force."
			     : drops ? "All packets in transit are dropped."
				     : "All packets in transit pass.");
		if (strchr(row_str(row, "table"), ',') != NULL)
			finding_fix(e, "nft -a list ruleset");
		else
			finding_fix(e, "nft -a list table %s", row_str(row, "table"));
	}
	json_decref(rows);
}
