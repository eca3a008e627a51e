/* SPDX-License-Identifier: BSD-3-Clause */
/* Print the programs of interfaces, a paragraph each. */
#include "ctl/print_rows.h"

#include <stdio.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

/* Print the counters that are not zero, two on a line. */
static void
counters_print(const json_t *counters)
{
	const json_t *one;
	unsigned int n = 0;
	size_t i;

	json_array_foreach (counters, i, one) {
		if (json_integer_value(one) == 0)
			continue;
		fputs(n == 0 ? "  counters " : n % 2 == 0 ? "\n           " : "  ", stdout);
		printf("%zu: %lld", i, (long long)json_integer_value(one));
		n++;
	}
	if (n > 0)
		putchar('\n');
}

void
hook_print_row(const json_t *row)
{
	char rate[32];

	printf("%s: %s\n", row_str(row, "dev"), row_str(row, "file"));
	if (!row_true(row, "active"))
		puts("  no interface has this name at present");
	printf("  hash %s, %lld instructions, %s, loaded %lld s ago\n",
	       row_str(row, "hash"), row_int(row, "instructions"),
	       row_true(row, "compiled") ? "compiled" : "interpreted",
	       row_int(row, "age_s"));
	printf("  packets %lld", row_int(row, "packets"));
	if (row_real(row, "packets_per_s") != 0)
		printf(" (%s/s)", human_rate(row_real(row, "packets_per_s"), rate));
	printf(", dropped %lld\n", row_int(row, "dropped"));
	printf("  dscp set %lld, table chosen %lld\n", row_int(row, "marked"),
	       row_int(row, "moved"));
	printf("  errors %lld\n", row_int(row, "errors"));
	counters_print(json_object_get(row, "counters"));
}
