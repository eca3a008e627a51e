/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check of FRR's version. A fault of the version is a finding only if it
 * affects the configuration of FRR or of the daemon.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/frr_version.h"
#include "ctl/json_row.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define LINE_MAX_SHOWN 256

/* Static routes that name no interface. */
struct statics {
	unsigned int n;
	char vrf[64]; /* name of the VRF whose block is being read; "": none */
	/* the first such route: its VRF, and its line up to the place of the interface */
	char first_vrf[64], first[LINE_MAX_SHOWN];
	int gap;
};

static void
statics_on_line(const char *line, void *ctx)
{
	struct statics *s = ctx;
	const char *gap = frr_static_gap(line);

	if (line[0] != ' ' && sscanf(line, "vrf %63s", s->vrf) != 1)
		s->vrf[0] = '\0';
	if (gap == NULL || s->n++ > 0)
		return;
	line += strspn(line, " ");
	if ((size_t)(gap - line) >= sizeof(s->first))
		gap = line; /* no line of FRR is that long */
	snprintf(s->first, sizeof(s->first), "%s", line);
	s->gap = (int)(gap - line);
	strcpy(s->first_vrf, s->vrf);
}

/* Check static routes without an interface. Returns 1 if a fault was found, else 0. */
static unsigned int
statics_check(struct exam *e, const char *vtysh, const char *version)
{
	struct statics s = {0};
	char vrf[96] = "";

	if (zebra_lines(vtysh, "show running-config", ZEBRA_ANSWER_S, statics_on_line, &s) <
	    0) {
		finding_add(e, VERDICT_WARN, "static-routes",
			    "FRR %s fails with some static routes; the static routes of "
			    "this router are not known",
			    version);
		finding_cost(e,
			     "'%s' gives no configuration. A static route of this FRR "
			     "must name its interface, or it stays when its link is lost.",
			     vtysh);
		finding_fix(e, "vtysh -c 'show running-config' | grep -w route");
		return 1;
	}
	if (s.n == 0)
		return 0;
	if (s.first_vrf[0] != '\0')
		snprintf(vrf, sizeof(vrf), " -c 'vrf %s'", s.first_vrf);
	finding_add(e, VERDICT_WARN, "static-routes",
		    "%u static route%s without an interface", s.n, text_plural(s.n));
	finding_cost(e,
		     "When the link of such a route is lost, FRR %s keeps the route and "
		     "uses no other route, so packets are dropped. Name the interface in "
		     "each, or "
		     "install FRR 10.4.2 or later. The first of them, with the name of its "
		     "interface in place of INTERFACE:",
		     version);
	finding_fix(e,
		    "vtysh -c 'conf t'%s -c 'no %s' -c '%.*s INTERFACE%s' -c end -c write",
		    vrf, s.first, s.gap, s.first, s.first + s.gap);
	return 1;
}

static unsigned int
kernel_routes_check(struct exam *e, const char *version)
{
	if (strcmp(row_str(e->version, "routes_from"), "fpm") != 0)
		return 0;
	finding_add(e, VERDICT_WARN, "kernel-routes",
		    "FRR %s does not pass the kernel's routes on", version);
	finding_cost(e,
		     "zebra announces no next hops of the kernel's routes and sends no "
		     "deletes of them, so a new `ip route` is not used and a deleted one "
		     "stays. Write `from: both` below routes: in %s, then:",
		     row_str(e->version, "config"));
	finding_fix(e, "fpmctl restart");
	return 1;
}

static void
evpn_on_line(const char *line, void *ctx)
{
	bool *has_l3vni = ctx;

	*has_l3vni |= frr_line_is_l3vni(line);
}

static unsigned int
evpn_check(struct exam *e, const char *vtysh, const char *version)
{
	bool has_l3vni = false;

	/* No answer means no EVPN, because zebra has just reported its version. */
	(void)zebra_lines(vtysh, "show evpn vni", ZEBRA_ANSWER_S, evpn_on_line, &has_l3vni);
	if (!has_l3vni)
		return 0;
	finding_add(e, VERDICT_WARN, "evpn", "zebra %s may crash with EVPN", version);
	finding_cost(e,
		     "A VRF has a VNI. If zebra knows the MAC of a router of that VNI, it "
		     "crashes at the end of each replay. Install FRR 10.2 or later, or "
		     "let zebra connect first: 'timers delayopen 10' at both ends of the "
		     "BGP sessions (manual: FRR). The MACs that zebra knows:");
	finding_fix(e, "vtysh -c 'show evpn rmac vni all'");
	return 1;
}

static void
sids_on_line(const char *line, void *ctx)
{
	unsigned int *n = ctx;

	*n += frr_line_is_other_sid(line);
}

static unsigned int
sids_check(struct exam *e, const char *vtysh, const char *version)
{
	unsigned int n = 0;

	(void)zebra_lines(vtysh, "show bgp segment-routing srv6", ZEBRA_ANSWER_S,
			  sids_on_line, &n);
	if (n == 0)
		return 0;
	finding_add(e, VERDICT_WARN, "srv6", "bgpd %s announces %u wrong SID%s", version, n,
		    text_plural(n));
	finding_cost(
		e, "It announces SIDs as if their locator had 64 bits, so other routers "
		   "send packets to addresses that are no SIDs. Give the locator a prefix "
		   "of 64 bits, or install a later FRR.");
	finding_fix(e, "vtysh -c 'show segment-routing srv6 locator'");
	return 1;
}

static void
route_maps_on_line(const char *line, void *ctx)
{
	unsigned int *n = ctx;

	*n += frr_line_denies_routes(line);
}

static unsigned int
denied_routes_check(struct exam *e, const char *vtysh, const char *version)
{
	unsigned int n = 0;

	(void)zebra_lines(vtysh, "show running-config", ZEBRA_ANSWER_S, route_maps_on_line,
			  &n);
	if (n == 0)
		return 0;
	finding_add(e, VERDICT_WARN, "denied-routes",
		    "zebra %s may send routes that a route map denies", version);
	finding_cost(e, "The configuration has route maps of `ip protocol`. If such a map "
			"denies routes that were in force, zebra sends them when it "
			"connects again, and the router forwards by them. Deny the routes "
			"in their routing daemon instead (BGP: with a route map of the "
			"neighbor). fpmctl audit reports such routes: zebra has no route.");
	finding_fix(e, "fpmctl audit");
	return 1;
}

void
check_frr_version(struct exam *e)
{
	char version[FRR_VERSION_STRLEN];
	struct frr_version v;
	unsigned int n = 0;
	const char *vtysh;

	if (exam_no_zebra_wanted(e))
		return;
	zebra_find(e);
	vtysh = zebra_vtysh(e);
	if (zebra_version(vtysh, version) < 0) {
		finding_add(e, VERDICT_NA, "", "no zebra reports its version");
		return;
	}
	if (frr_version_parse(version, &v) < 0) {
		finding_add(e, VERDICT_NA, "", "FRR %s: fpmctl cannot parse this version",
			    version);
		return;
	}
	if (frr_keeps_dead_statics(&v))
		n += statics_check(e, vtysh, version);
	if (frr_hides_kernel_routes(&v))
		n += kernel_routes_check(e, version);
	if (frr_crashes_by_evpn(&v))
		n += evpn_check(e, vtysh, version);
	if (frr_announces_other_sids(&v))
		n += sids_check(e, vtysh, version);
	if (frr_replays_denied_routes(&v))
		n += denied_routes_check(e, vtysh, version);
	if (n == 0)
		finding_add(e, VERDICT_OK, "",
			    "FRR %s, no known fault concerns this router", version);
}
