/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of SIDs. */
#include "ctl/print_rows.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

#define SID_WIDTH   25
#define SID_COLUMNS "%-25s %9s %9s %9s "

void
sid_table_head(void)
{
	printf(SID_COLUMNS "%s\n", "SID", "PACKETS", "OCTETS", "ERRORS", "ACTION");
}

void
sid_table_row(const json_t *row)
{
	const json_t *hop = json_array_get(json_object_get(row, "nexthops"), 0);
	char sid[80];
	char packets[32], bytes[32], errors[32];

	if (row_has(row, "vrf"))
		snprintf(sid, sizeof(sid), "%s vrf %s", row_str(row, "sid"),
			 row_str(row, "vrf"));
	else if (row_has(row, "table") && row_int(row, "table") != RT_TABLE_MAIN)
		snprintf(sid, sizeof(sid), "%s table %lld", row_str(row, "sid"),
			 row_int(row, "table"));
	else
		snprintf(sid, sizeof(sid), "%s", row_str(row, "sid"));
	/* A long SID has a line of its own. */
	if (strlen(sid) > SID_WIDTH) {
		puts(sid);
		sid[0] = '\0';
	}
	wrapped_print(row_str(hop, "srv6"),
		      printf(SID_COLUMNS, sid,
			     human_count(row_int(row, "packets"), packets),
			     human_bytes(row_int(row, "bytes"), bytes),
			     human_count(row_int(row, "errors"), errors)));
	if (row_real(row, "packets_per_s") + row_real(row, "errors_per_s") > 0)
		printf(SID_COLUMNS "\n", "per second",
		       human_rate(row_real(row, "packets_per_s"), packets),
		       human_rate(row_real(row, "bytes_per_s"), bytes),
		       human_rate(row_real(row, "errors_per_s"), errors));
}
