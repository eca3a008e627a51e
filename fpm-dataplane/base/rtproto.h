/* SPDX-License-Identifier: BSD-3-Clause */
/* rtproto: names of route protocols, as in `show routes` and its filter words. */
#ifndef BASE_RTPROTO_H
#define BASE_RTPROTO_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Return the name of an rtm_protocol; NULL: it has none and is shown as a number. Two
 * numbers may have the same name.
 */
static inline const char *
rtproto_name(uint8_t protocol)
{
	/* From linux/rtnetlink.h and FRR's zebra/rt_netlink.h. */
	static const char *const name[256] = {
		[0] = "unspec", [1] = "redirect",    [2] = "kernel",       [3] = "boot",
		[4] = "static", [9] = "ra",          [12] = "bird",        [16] = "dhcp",
		[11] = "zebra", [18] = "keepalived", [42] = "babel",       [186] = "bgp",
		[187] = "isis", [188] = "ospf",      [189] = "rip",        [190] = "ripng",
		[191] = "nhrp", [192] = "eigrp",     [193] = "ldp",        [194] = "sharp",
		[195] = "pbr",  [196] = "static",    [197] = "openfabric", [198] = "srte",
	};

	return name[protocol];
}

/*
 * Protocol of the routes of FRR's pbrd, in tables of rules. zebra does not replay such
 * tables over FPM, so these routes come from the kernel.
 */
#define RTPROT_FRR_PBR 195

/*
 * Return true if zebra has routes of this protocol (FRR, zebra/rt_netlink.c,
 * zebra2proto()). The routes of pbrd are left out.
 */
static inline bool
rtproto_is_zebras(uint8_t protocol)
{
	return protocol == 11 || protocol == 42 ||
	       (protocol >= 186 && protocol <= 198 && protocol != RTPROT_FRR_PBR);
}

/*
 * The metric of all IP routes that zebra installs in the kernel (FRR, zebra/rt_netlink.c,
 * ROUTE_INSTALLATION_METRIC).
 */
#define ZEBRA_METRIC 20u

/*
 * Return true if zebra has installed this IP route in the kernel, so that it also arrives
 * over FPM. Other programs (babeld) and operators use numbers of these protocols, too, with
 * other metrics.
 */
static inline bool
rtproto_is_copy(uint8_t protocol, uint32_t metric)
{
	return rtproto_is_zebras(protocol) && metric == ZEBRA_METRIC;
}

#endif
