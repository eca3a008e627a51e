/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check the kernel settings that SRv6 needs, if there are headends or end
 * points.
 */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

#define STRICT_MODE "/proc/sys/net/vrf/strict_mode"

/* Check the source address of outer headers. Return true if it is right. */
static bool
source_check(struct exam *e)
{
	if (row_int(e->fpm, "headends") <= 0)
		return true;
	if (row_has(e->fpm, "srv6_source")) {
		if (strcmp(row_str(e->fpm, "srv6_source"), "::") == 0)
			finding_add(e, VERDICT_OK, "source",
				    "address of the egress interface; ip sr tunsrc sets "
				    "one for all");
		return true;
	}
	finding_add(e, VERDICT_WARN, "source", "the kernel did not report ip sr tunsrc");
	finding_cost(e,
		     "The kernel forwards the packets of headends, within the rate of the "
		     "class kernel-route.");
	finding_fix(e, "fpmctl show warnings");
	return false;
}

/* Check the sysctl strict_mode. The kernel has the file if the module vrf is loaded. */
static bool
strict_mode_check(struct exam *e)
{
	if (row_int(e->fpm, "vrfs") <= 0 || e->deny != NULL ||
	    exam_number(e, 1, STRICT_MODE) != 0)
		return true;
	finding_add(e, VERDICT_WARN, "vrf", "net.vrf.strict_mode is 0");
	finding_cost(e,
		     "The kernel refuses End.DT4 and End.DT46, and zebra does not send a "
		     "route that the kernel refused.");
	finding_fix(e, "%ssysctl -w net.vrf.strict_mode=1", e->in);
	return false;
}

/*
 * Report the TOS that rules see in outer headers, if there are headends and IPv6 rules for a
 * TOS. The dataplane chooses it (RFC 6040), so there is nothing to mend.
 */
static void
tos_check(struct exam *e)
{
	json_t *rules = row_int(e->fpm, "headends") > 0 ? exam_ask(e, "rules") : NULL;
	const json_t *rule;
	size_t i, n = 0;

	json_array_foreach (rules, i, rule)
		n += row_has(rule, "tos") && strcmp(row_str(rule, "family"), "ipv6") == 0;
	json_decref(rules);
	if (n > 0)
		finding_add(
			e, VERDICT_OK, "tos",
			"rules for a TOS see that of the packet in a headend; Linux has "
			"0 there for IPv4");
}

void
check_srv6(struct exam *e)
{
	long long headends, sids;
	bool good;

	if (exam_no_daemon(e, ""))
		return;
	headends = row_int(e->fpm, "headends");
	sids = row_int(e->fpm, "sids");
	if (headends <= 0 && sids <= 0) {
		if (e->named)
			finding_add(e, VERDICT_NA, "", "no segments in use");
		return;
	}
	tos_check(e);
	good = source_check(e);
	if (strict_mode_check(e) && good)
		finding_add(e, VERDICT_OK, "",
			    "forwarders serve %lld headend%s and %lld end point%s",
			    headends, headends == 1 ? "" : "s", sids, sids == 1 ? "" : "s");
}
