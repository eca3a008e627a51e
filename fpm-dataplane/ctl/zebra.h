/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What zebra has, asked through vtysh.
 *
 * The whole table is read from `show ip route` as text: as JSON one command makes zebra 8.4
 * grow by 7 KiB a route (6.8 GiB for a million, measured) and answer nobody for half a
 * minute. What looks different is then asked for by prefix, as JSON; so a line of text that
 * was misunderstood costs a question, never a wrong verdict.
 */
#ifndef CTL_ZEBRA_H
#define CTL_ZEBRA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/prefix.h"

struct exam;

#define ZEBRA_ANSWER_S 10 /* silence of vtysh after which zebra is said not to answer */

/* The ways of one route in one spelling: "via 10.0.1.2 dev wan0 weight 1", sorted. */
struct ways_text {
	unsigned int n, cap;
	char **way;
};
void ways_reset(struct ways_text *w);
void ways_add(struct ways_text *w, const char *via, const char *dev, long long weight);
void ways_add_kind(struct ways_text *w, const char *kind); /* "blackhole", ... */
/* All of them, "; " between; NULL when there are none. The caller frees. */
char *ways_join(struct ways_text *w);
void ways_free(struct ways_text *w);

/*
 * The one way of a route that zebra has selected and the kernel refused, or has not answered
 * for yet: a live update then does not reach FPM, a replay does, so either is right.
 */
#define ZEBRA_UNDECIDED "undecided"

/* One route; `vrf` is NULL for table main. */
typedef void zebra_on_route(const char *vrf, const struct prefix *p, struct ways_text *w,
			    void *ctx);

/*
 * Call on_route() for each route that zebra has selected and that is not the kernel's own
 * (connected, local): of table main, with `all_vrfs` of every VRF as well. `vtysh` is a command
 * with its words separated by blanks. Returns 0, -ETIMEDOUT when vtysh was silent, or -1 when it
 * failed otherwise (said on stderr).
 */
int zebra_table(const char *vtysh, bool all_vrfs, uint8_t family, zebra_on_route *on_route,
		void *ctx);

/*
 * How many routes zebra has installed that are not the kernel's own: from *least to *most, for
 * its summary does not tell which of the kernel's it passes on. Returns as zebra_table() (said on stderr
 * when `aloud`; else vtysh is kept silent, too).
 */
int zebra_count(const char *vtysh, uint8_t family, bool aloud, long long *least,
		long long *most);

/*
 * The same as zebra_table() for one prefix of one table, asked as JSON. *ways is NULL when zebra
 * has no such route.
 */
int zebra_prefix(const char *vtysh, const char *vrf, const struct prefix *p, char **ways);

/* --- which zebra (zebra_find.c) ----------------------------------------------------------- */

#define ZEBRA_MODULE  "dplane_fpm_nl"
#define ZEBRA_LISTENS "--asic-offload=notify_on_offload" /* to acknowledgements */

/* Find its process, whatever check is the first to need it: e->zebra and what it has. */
void zebra_find(struct exam *e);

/* The command that asks the zebra that runs there. Valid until the next call. */
const char *zebra_vtysh(struct exam *e);

/*
 * The command that asks the zebra where the daemon's TAPs are: vtysh, with what reaches its
 * own files. We are in its network namespace from then on. Valid until the next call.
 */
const char *zebra_vtysh_of(const char *socket);

#endif
