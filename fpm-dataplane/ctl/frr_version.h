/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frr_version: parse FRR's version, find the faults that it has, and parse the lines of
 * vtysh that decide whether a fault matters. Pure, no state.
 */
#ifndef CTL_FRR_VERSION_H
#define CTL_FRR_VERSION_H

#include <stdbool.h>
#include <stddef.h>

#define FRR_VERSION_STRLEN 64

struct frr_version {
	unsigned int major, minor, patch;
};

/*
 * Parse "10.3", "10.3.1", "10.5-dev" or "10.3.1-0~deb12u1"; the part after the numbers is
 * ignored. So a development version counts as the release that it becomes. Returns 0, or
 * -EINVAL with *v zero.
 */
int frr_version_parse(const char *text, struct frr_version *v);

/*
 * Parse a line of `show modules`, "zebra  10.3  zebra daemon", which zebra itself prints.
 * `show version` does not help, because vtysh then prints its own version. Returns true and
 * fills `version` for the row of zebra.
 */
bool frr_module_line(const char *line, char version[FRR_VERSION_STRLEN]);

/* --- faults; doc/fpm.md, section 9, has their sources --------------------------------- */

/*
 * Return true if zebra keeps a static route without an interface when the link of its next
 * hop is lost, while FPM is connected.
 */
bool frr_keeps_dead_statics(const struct frr_version *v);

/*
 * Return true if zebra, over FPM, announces no next hops of the kernel's routes, and sends
 * no deletes of these routes.
 */
bool frr_hides_kernel_routes(const struct frr_version *v);

/* Return true if zebra crashes at the end of a replay that has MACs of EVPN routers. */
bool frr_crashes_by_evpn(const struct frr_version *v);

/*
 * Return true if bfdd loses the sessions beyond the first 58 when a data plane connects,
 * because a buffer of bfdd overflows. Another connection gets the lost sessions.
 */
bool frr_gives_bfd_in_parts(const struct frr_version *v);

/* Return true if bgpd announces SIDs of SRv6 as if their locator had 64 bits. */
bool frr_announces_other_sids(const struct frr_version *v);

/*
 * Return true if zebra, in a replay, sends routes again that the route map of `ip protocol`
 * has made inactive while they were in force.
 */
bool frr_replays_denied_routes(const struct frr_version *v);

/*
 * Return true if zebra with `no zebra nexthop kernel enable` announces next hops only in a
 * replay.
 */
bool frr_needs_kernel_next_hops(const struct frr_version *v);

/* --- lines that decide whether a fault matters ---------------------------------------- */

/*
 * Parse a line of `show running-config`. Returns the position after the gateway of a static
 * route that names no interface; NULL for all other lines.
 */
const char *frr_static_gap(const char *line);

/* Return true for a line of `show running-config` that needs MPLS labels in the kernel. */
bool frr_line_needs_labels(const char *line);

/* Return true for a line of `show running-config`: a route map of `ip protocol`. */
bool frr_line_denies_routes(const char *line);

/* Return true for the row of a layer 3 VNI in the output of `show evpn vni`. */
bool frr_line_is_l3vni(const char *line);

/*
 * Return true for the SID of a VRF, in the output of `show bgp segment-routing srv6`, whose
 * function does not begin behind the first 64 bits.
 */
bool frr_line_is_other_sid(const char *line);

#endif
