/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zebra: read zebra's routes through vtysh.
 *
 * The whole table is read as text of `show ip route`. With JSON this one command would make
 * zebra 8.4 grow by 7 KiB a route (6.8 GiB for a million, measured), and zebra would answer
 * no query for half a minute. Routes that seem to differ from the RIB are then looked up by
 * prefix, as JSON. So a line of text that was misunderstood costs a query and never gives a
 * wrong result.
 */
#ifndef CTL_ZEBRA_H
#define CTL_ZEBRA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/prefix.h"
#include "ctl/frr_version.h"
#include "ctl/hops_text.h"

struct exam;

/* after this many seconds of silence zebra counts as not answering */
#define ZEBRA_ANSWER_S 10
/* the same for a query of the version */
#define ZEBRA_VERSION_S 3

/*
 * The text for a route that zebra has selected and the kernel has refused or not confirmed
 * yet. FPM does not get such a route as an update, but gets it in a replay, so both
 * results are right.
 */
#define ZEBRA_UNDECIDED "undecided"

/* Receives a route; `vrf` is NULL for table main. */
typedef void zebra_on_route(const char *vrf, const struct prefix *p, struct hops_text *w,
			    void *ctx);

/*
 * Call on_route() for each route that zebra has selected, in table main and in every VRF,
 * whether the daemon has the VRF or not. Leave out the kernel's own routes: connected,
 * local, and, unless `kernels`, all of protocol kernel. `vtysh` is a command, its words
 * separated by blanks. Returns 0, -ETIMEDOUT when vtysh was silent, or -1 on another error.
 * Prints errors to stderr.
 */
int zebra_table(const char *vtysh, bool kernels, uint8_t family, zebra_on_route *on_route,
		void *ctx);

/*
 * Set the function that returns true for an interface of EVPN, which has a VNI. zebra
 * prints the VNI as a label of next hops by this interface. Without this call no interface
 * has one.
 *
 * dev  name, made safe for a terminal
 */
typedef bool zebra_is_overlay(const char *dev, void *ctx);
void zebra_set_overlay(zebra_is_overlay *is, void *ctx);
/* Return true if zebra prints VNIs of EVPN as the labels of next hops by the interface. */
bool zebra_has_vnis(const char *dev);

/*
 * Count the routes that zebra has installed, except the kernel's own. The number is from
 * *least to *most, because the summary does not show which of the kernel's routes zebra
 * passes on. Returns as zebra_table(). Unless `aloud`, neither this function nor vtysh
 * prints errors.
 */
int zebra_count(const char *vtysh, uint8_t family, bool aloud, long long *least,
		long long *most);

/*
 * Look up one prefix of one table as JSON. *hops is NULL when zebra has no such route.
 * Returns as zebra_table().
 */
int zebra_prefix(const char *vtysh, const char *vrf, const struct prefix *p, bool kernels,
		 char **hops);

/* --- lines of vtysh ------------------------------------------------------------------- */

/* Receives a line without its newline. */
typedef void zebra_on_line(const char *line, void *ctx);

/*
 * Call on_line() for each line that vtysh prints for `command`. The silence of vtysh ends
 * the call after `patience_s`. Prints no errors. Returns as zebra_table().
 */
int zebra_lines(const char *vtysh, const char *command, int patience_s,
		zebra_on_line *on_line, void *ctx);

/* Ask zebra for its version. Prints no errors. Returns 0, or -1 with `version` "". */
int zebra_version(const char *vtysh, char version[FRR_VERSION_STRLEN]);

/* --- find zebra (zebra_find.c) -------------------------------------------------------- */

#define ZEBRA_MODULE "dplane_fpm_nl"
/* makes zebra wait for acknowledgements */
#define ZEBRA_LISTENS "--asic-offload=notify_on_offload"

/*
 * Find zebra's process and fill e->zebra and the flags of its command line. Only the first
 * call searches.
 */
void zebra_find(struct exam *e);

/* Return the command that queries this zebra. Valid until the next call. */
const char *zebra_vtysh(struct exam *e);

/*
 * Enter the network namespace of the daemon's TAPs, and return the command that queries the
 * zebra there: vtysh, with options that reach its files. Valid until the next call. Returns
 * NULL if the daemon does not answer, or if this process may not enter the namespace; then
 * the reason was printed to stderr.
 */
const char *zebra_vtysh_of(const char *socket);

/*
 * Find the zebra of the daemon whose row of `show version` is `daemon`, as zebra_vtysh_of()
 * does, and read its version. Returns its process id, or 0 if this process finds no zebra
 * or gets no answer. Prints no errors.
 */
pid_t zebra_version_of(const json_t *daemon, char version[FRR_VERSION_STRLEN]);

#endif
