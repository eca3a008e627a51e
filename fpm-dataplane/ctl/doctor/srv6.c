/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check the kernel settings that SRv6 needs, if there are headends or end
 * points.
 */
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

#define STRICT_MODE      "/proc/sys/net/vrf/strict_mode"
#define ROUTES_ASKED_MAX 256u /* routes that are looked up at most, one in each request */
#define IPV6_MIN_MTU     1280 /* RFC 8200, 5 */
#define IPV6_BYTES       40

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

/* Return the number of rules of a family with a selector; "" and "all": it has none. */
static size_t
rules_with(const json_t *rules, const char *family, const char *selector)
{
	const json_t *rule;
	size_t i, n = 0;

	json_array_foreach (rules, i, rule)
		n += strcmp(row_str(rule, "family"), family) == 0 &&
		     row_str(rule, selector)[0] != '\0' &&
		     strcmp(row_str(rule, selector), "all") != 0;
	return n;
}

/* Return true if an end point decapsulates IPv4 packets. */
static bool
decapsulates_ipv4(const struct exam *e)
{
	json_t *sids = exam_ask(e, "sids");
	const json_t *sid;
	bool found = false;
	size_t i;

	json_array_foreach (sids, i, sid) {
		const char *action = row_str(
			json_array_get(json_object_get(sid, "nexthops"), 0), "srv6");

		found |= strncmp(action, "End.DT4", strlen("End.DT4")) == 0 ||
			 strncmp(action, "End.DX4", strlen("End.DX4")) == 0;
	}
	json_decref(sids);
	return found;
}

/*
 * Report rules of policy routing that match different packets than they do in Linux. A rule
 * with a TOS is no fault, because the dataplane sets the TOS by RFC 6040. Return false if
 * no rule that selects by source matches an outer packet.
 */
static bool
rules_check(struct exam *e, long long headends, long long sids)
{
	json_t *rules = exam_ask(e, "rules");
	bool good = true;

	if (headends > 0 && rules_with(rules, "ipv6", "tos") > 0)
		finding_add(e, VERDICT_OK, "tos",
			    "rules with a TOS match outer packets by the TOS of the inner "
			    "packet; for inner IPv4 Linux uses 0");
	if (sids > 0 && rules_with(rules, "ipv4", "tos") > 0 && decapsulates_ipv4(e))
		finding_add(e, VERDICT_OK, "tos",
			    "rules with a TOS match the TOS of packets that end points "
			    "decapsulate; for IPv4 Linux uses 0");
	if (headends > 0 && rules_with(rules, "ipv6", "from") > 0 &&
	    strcmp(row_str(e->fpm, "srv6_source"), "::") == 0) {
		finding_add(e, VERDICT_WARN, "rules",
			    "there are IPv6 rules with a source, and no ip sr tunsrc");
		finding_cost(e, "No rule with a source matches the outer packets of "
				"headends. In Linux such rules match.");
		finding_fix(e, "%sip sr tunsrc set ADDRESS", e->in);
		good = false;
	}
	json_decref(rules);
	return good;
}

/* Report that the rules of the filter see another packet than in Linux. */
static void
filter_check(struct exam *e)
{
	json_t *filter = exam_ask_one(e, "filter");

	if (strcmp(row_str(filter, "state"), "in-force") == 0)
		finding_add(e, VERDICT_OK, "filter",
			    "rules see the inner packet of a headend; in Linux the hook "
			    "forward sees the outer packet");
	json_decref(filter);
}

/* Return the first segment of a headend, as a new text; NULL: not a headend. */
static char *
first_segment(const json_t *encap)
{
	const char *text = row_str(encap, "srv6"), *at = strchr(text, ' ');

	if (strncmp(text, "H.Encaps", strlen("H.Encaps")) != 0 || at == NULL)
		return NULL;
	return strndup(at + 1, strcspn(at + 1, " "));
}

/*
 * Report a VRF with a route to the first segment of a headend. Linux uses this route for
 * packets of the VRF.
 */
static void
vrfs_check(struct exam *e)
{
	json_t *vrfs = exam_ask(e, "vrfs"), *encaps = exam_ask(e, "encaps");
	const json_t *vrf, *encap;
	size_t i, k, asked = 0;
	bool found = false;

	json_array_foreach (encaps, k, encap) {
		char *segment = first_segment(encap);

		json_array_foreach (vrfs, i, vrf) {
			const char *name = row_str(vrf, "name");
			json_t *route;

			if (segment == NULL || found || ++asked > ROUTES_ASKED_MAX)
				break;
			route = exam_route(e, name, segment);
			found = route != NULL;
			json_decref(route);
			if (found)
				finding_add(
					e, VERDICT_OK, "vrf",
					"VRF %s has a route to the segment %s; headends "
					"use table main, Linux that of the VRF",
					name, segment);
		}
		free(segment);
	}
	json_decref(encaps);
	json_decref(vrfs);
}

/*
 * Return the octets of the outer headers of a headend. H.Encaps writes all segments into
 * the routing header. H.Encaps.Red leaves out the first segment, and writes no routing
 * header if there is only one segment.
 */
static long long
headend_overhead(const json_t *encap)
{
	const char *text = row_str(encap, "srv6"), *end = strstr(text, " source ");
	bool reduced = strncmp(text, "H.Encaps.Red", strlen("H.Encaps.Red")) == 0;
	long long n = 0;

	for (const char *at = text; *at != '\0' && at != end; at++)
		n += *at == ' ';
	n -= reduced;
	return IPV6_BYTES + (n > 0 ? 8 + 16 * n : 0);
}

static void
narrow_add(struct exam *e, const char *dev, const json_t *narrow)
{
	long long overhead = row_int(narrow, "overhead");

	finding_add(e, VERDICT_WARN, dev, "MTU %lld, but the path to segment %s needs %lld",
		    row_int(narrow, "mtu"), row_str(narrow, "segment"),
		    IPV6_MIN_MTU + overhead);
	finding_cost(e,
		     "Outer headers have %lld octets. An IPv6 packet of 1280 octets, which "
		     "its sender need not make smaller, does not fit and is lost.",
		     overhead);
	finding_fix(e, "%sip link set %s mtu %lld", e->in, dev, IPV6_MIN_MTU + overhead);
}

/*
 * Check that IPv6 packets of 1280 octets and their outer headers fit into the links to the
 * first segment of each headend. Report each link once, for the headend with the longest
 * headers. Return true if the packets fit.
 */
static bool
mtus_check(struct exam *e)
{
	json_t *encaps = exam_ask(e, "encaps"), *links = json_object(), *link;
	const json_t *encap;
	const char *dev;
	size_t i, asked = 0;
	bool good;

	json_array_foreach (encaps, i, encap) {
		char *segment = first_segment(encap);
		long long overhead = headend_overhead(encap);
		struct narrow narrow = {.room = 0};

		if (segment != NULL && ++asked <= ROUTES_ASKED_MAX)
			narrow_find(e, &narrow, "", segment, overhead);
		link = json_object_get(links, narrow.dev);
		if (narrow.room != 0 && narrow.room < IPV6_MIN_MTU &&
		    (link == NULL || row_int(link, "overhead") < overhead))
			json_object_set_new(links, narrow.dev,
					    json_pack("{s:I, s:I, s:s}", "mtu",
						      (json_int_t)(narrow.room + overhead),
						      "overhead", (json_int_t)overhead,
						      "segment", segment));
		free(segment);
	}
	json_object_foreach (links, dev, link)
		narrow_add(e, dev, link);
	good = json_object_size(links) == 0;
	json_decref(links);
	json_decref(encaps);
	return good;
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
	good = rules_check(e, headends, sids);
	if (headends > 0) {
		filter_check(e);
		vrfs_check(e);
		good = mtus_check(e) && good;
	}
	good = source_check(e) && good;
	if (strict_mode_check(e) && good)
		finding_add(e, VERDICT_OK, "",
			    "forwarders serve %lld headend%s and %lld end point%s",
			    headends, headends == 1 ? "" : "s", sids, sids == 1 ? "" : "s");
}
