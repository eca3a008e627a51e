/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that forwarders, not the kernel, serve the tunnels of the control
 * namespace.
 */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

/* Return true for the tunnel without addresses that each module creates by itself. */
static bool
is_fallback(const json_t *row)
{
	return !row_has(row, "local") && !row_has(row, "remote") && !row_true(row, "up");
}

static void
tunnel_check(struct exam *e, const json_t *row)
{
	const char *reason = row_str(row, "by_kernel"), *name = row_str(row, "name");
	bool ipsec = strcmp(reason, "ipsec") == 0;

	finding_add(e, ipsec ? VERDICT_OK : VERDICT_WARN, name, "served by the kernel: %s",
		    reason);
	if (ipsec) /* there is no other solution */
		return;
	finding_cost(e, "Its packets are forwarded at the speed of the kernel, within the "
			"rates of the classes kernel-route and local.");
	if (strcmp(reason, "limit") == 0)
		finding_fix(e, "raise limits.vlans, and restart");
	else if (strcmp(row_str(row, "tunnel"), "vxlan") == 0)
		finding_fix(e, "make it the only port of a bridge (manual: Interfaces, "
			       "VXLAN). The kernel goes on to bridge");
	else
		finding_fix(e, "create the tunnel without this setting (manual: "
			       "Interfaces, Tunnels)");
}

void
check_tunnels(struct exam *e)
{
	unsigned int n = 0, by_kernel = 0;
	const json_t *row;
	size_t i;

	if (exam_no_daemon(e, ""))
		return;
	json_array_foreach (e->interfaces, i, row) {
		if (!row_has(row, "tunnel") || is_fallback(row))
			continue;
		n++;
		if (!row_has(row, "by_kernel"))
			continue;
		by_kernel++;
		tunnel_check(e, row);
	}
	if (n == 0)
		finding_add(e, VERDICT_NA, "", "no tunnel");
	else if (by_kernel == 0)
		finding_add(e, VERDICT_OK, "", "forwarders serve %u", n);
}
