/* SPDX-License-Identifier: BSD-3-Clause */
/* Print the state of fpm-flowspec in a paragraph. */
#include "ctl/print_rows.h"

#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

void
flowspec_print_row(const json_t *row)
{
	const char *state = row_str(row, "state");

	if (strcmp(state, "off") == 0) {
		printf("flowspec off: the key filter.table does not name inet flowspec\n");
		return;
	}
	printf("flowspec %s\n", state);
	if (!row_has(row, "age_s")) {
		printf("  fpm-flowspec does not run\n");
		return;
	}
	printf("  %lld s since its last report; %lld of %lld sessions up\n",
	       row_int(row, "age_s"), row_int(row, "sessions_up"),
	       row_int(row, "sessions"));
	if (!row_true(row, "validate"))
		printf("  announcers are not checked\n");
	printf("  flows: %lld installed, %lld refused, %lld waiting\n",
	       row_int(row, "installed"), row_int(row, "refused"), row_int(row, "waiting"));
	if (row_has(row, "nft_error"))
		wrapped_print(row_str(row, "nft_error"), printf("  nft: "));
	if (row_has(row, "frr_error"))
		wrapped_print(row_str(row, "frr_error"), printf("  FRR: "));
}
