/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: rows of the daemon, kept.
 */
#include "ctl/ctl.h"
#include "ctl/doctor/exam.h"

json_t *
exam_ask(const struct exam *e, const char *show)
{
	json_t *request = json_pack("{s:s}", "show", show), *rows = json_array();

	if (conn_ask(e->socket, request, rows_keep, rows) != CTL_OK) {
		json_decref(rows);
		rows = NULL;
	}
	json_decref(request);
	return rows;
}

json_t *
exam_ask_one(const struct exam *e, const char *show)
{
	json_t *rows = exam_ask(e, show);
	json_t *row = json_incref(json_array_get(rows, 0));

	json_decref(rows);
	return row;
}
