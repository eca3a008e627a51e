/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: checks of FRR. zebra is a process of the control namespace
 * (zebra_find.c); vtysh prints its number of routes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prefix.h"
#include "ctl/doctor/exam.h"
#include "ctl/frr_version.h"
#include "ctl/json_row.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define ROUNDS   5 /* rounds of counting, because both sides change meanwhile */
#define PAUSE_MS 300

static const struct timespec between_rounds = {.tv_nsec = PAUSE_MS * 1000000};

bool
exam_no_zebra_wanted(struct exam *e)
{
	if (strcmp(row_str(e->version, "routes_from"), "kernel") != 0)
		return false;
	finding_add(e, VERDICT_NA, "",
		    "all routes come from the kernel (routes.from: kernel)");
	return true;
}

void
check_frr(struct exam *e)
{
	if (exam_no_zebra_wanted(e))
		return;
	zebra_find(e);
	if (e->zebra_loads && e->zebra_listens && row_has(e->fpm, "feedback_enabled") &&
	    !row_true(e->fpm, "feedback_enabled")) {
		finding_add(e, VERDICT_FAIL, "",
			    "zebra waits for acknowledgements, but they are off");
		finding_cost(
			e,
			"zebra, pid %d, has " ZEBRA_LISTENS
			": its routes stay queued, and with bgp suppress-fib-pending none "
			"is advertised. Set feedback: true below fpm: in %s, then:",
			(int)e->zebra, row_str(e->version, "config"));
		finding_fix(e, "fpmctl config reload");
	} else if (e->zebra_loads) {
		finding_add(e, VERDICT_OK, "", "zebra, pid %d, has -M " ZEBRA_MODULE,
			    (int)e->zebra);
	} else if (e->zebra != 0) {
		finding_add(e, VERDICT_FAIL, "", "zebra, pid %d, has no -M " ZEBRA_MODULE,
			    (int)e->zebra);
		finding_cost(e, "zebra does not connect, so there are no routes. In "
				"/etc/frr/daemons, among zebra_options:");
		finding_fix(e, "sed -i 's/^zebra_options=\"/&-M " ZEBRA_MODULE
			       " /' /etc/frr/daemons");
		finding_fix(e, "systemctl restart frr");
	} else if (row_true(e->fpm, "connected")) {
		finding_add(e, VERDICT_NA, "",
			    "zebra is connected, but its process is not visible here");
	} else {
		finding_add(e,
			    e->version != NULL && e->deny == NULL ? VERDICT_FAIL
								  : VERDICT_WARN,
			    "", "no zebra runs%s",
			    e->version != NULL ? " where the TAPs are" : "");
		finding_cost(e, "Only the kernel's routes are updated; the routes of an "
				"earlier zebra stay in force.");
		finding_fix(e, "systemctl start frr");
	}
}

/* --- the channel ---------------------------------------------------------------------- */

static void
fpm_not_connected(struct exam *e)
{
	const char *state = row_str(e->fpm, "state"),
		   *at = row_str(e->version, "fpm_listen");
	const char *colon = strrchr(at, ':');

	if (strcmp(state, "refusing") == 0) {
		finding_add(e, VERDICT_FAIL, "",
			    "zebra is refused: the RIB is too far behind");
		finding_cost(
			e,
			"The routes of the last session stay in force until half of the "
			"queue is free. If it happens again, raise fpm.queue-limit-mib.");
		finding_fix(e, "fpmctl show fpm");
		return;
	}
	if (json_is_false(json_object_get(e->fpm, "listening"))) {
		finding_add(e, VERDICT_FAIL, "",
			    "zebra cannot connect: another program has %s", at);
		finding_cost(
			e, "Forwarding goes on with the routes received so far; no updates "
			   "arrive. The daemon tries the address again until it is free.");
		finding_fix(e, "ss -tlnp");
		return;
	}
	if (strcmp(state, "held") == 0) {
		finding_add(e, VERDICT_WARN, "",
			    "a hold refuses zebra: FRR is being restarted");
		finding_cost(e, "Forwarding goes on with the routes received so far, until "
				"another zebra connects or the time is over.");
		finding_fix(e, "systemctl start frr, or fpmctl hold 0");
		return;
	}
	finding_add(e, VERDICT_FAIL, "", "zebra %s",
		    strcmp(state, "never-connected") == 0 ? "has never connected"
		    : row_int(e->fpm, "generation") == 0
			    ? "has not connected since the start of the daemon"
			    : "is disconnected");
	finding_cost(e,
		     "Forwarding goes on with the routes received so far; no updates "
		     "arrive. The daemon listens at %s, zebra tries every 3 s.",
		     at);
	if (row_int(e->fpm, "strangers") > 0)
		finding_cost(e,
			     "Connections refused: %lld; fpmctl show log has the source, "
			     "fpm.users and fpm.peer say which are accepted.",
			     row_int(e->fpm, "strangers"));
	if (colon != NULL)
		finding_fix(
			e,
			"vtysh -c 'conf t' -c 'fpm address %.*s port %s' -c end -c write",
			(int)(colon - at), at, colon + 1);
}

void
check_fpm(struct exam *e)
{
	char up[32];

	if (exam_no_daemon(e, "") || exam_no_zebra_wanted(e))
		return;
	if (!row_true(e->fpm, "connected")) {
		fpm_not_connected(e);
	} else if (row_true(e->fpm, "queue_warning")) {
		finding_add(e, VERDICT_WARN, "", "the queue is above 75 %% of its limit");
		finding_cost(e, "At the limit the session is closed and zebra replays all "
				"routes. If it happens again, raise fpm.queue-limit-mib.");
		finding_fix(e, "fpmctl show fpm");
	} else {
		finding_add(e, VERDICT_OK, "", "%s for %s", row_str(e->fpm, "state"),
			    human_seconds(row_real(e->fpm, "uptime_s"), up));
	}
}

/* --- the kernel's tables -------------------------------------------------------------- */

void
check_kernel(struct exam *e)
{
	json_t *kernel;

	if (exam_no_daemon(e, ""))
		return;
	kernel = exam_ask_one(e, "kernel");
	if (row_true(kernel, "in_step")) {
		finding_add(e, VERDICT_OK, "", "%lld route%s of the kernel",
			    row_int(kernel, "kernel_routes"),
			    text_plural(row_int(kernel, "kernel_routes")));
	} else {
		finding_add(e, VERDICT_WARN, "",
			    "the kernel's tables are being read again");
		finding_cost(e, "Events of the kernel were lost. Forwarding goes on with "
				"the routes received so far. If it happens again, fewer "
				"changes a second are needed, or a faster CPU.");
		finding_fix(e, "fpmctl show kernel");
	}
	json_decref(kernel);
}

/* --- routes --------------------------------------------------------------------------- */

/*
 * Return 1 if zebra has as many routes as the RIB, 0 if not, or the error of
 * zebra_count().
 */
static int
routes_same_count(const char *vtysh, uint8_t family, long long rib, long long *zebra)
{
	long long most;
	int rc = zebra_count(vtysh, family, false, zebra, &most);

	if (rc < 0)
		return rc;
	return rib >= *zebra && rib <= most;
}

/* Return how many routes have no next hop. */
static long long
routes_unresolved(struct exam *e)
{
	json_t *fpm = exam_ask_one(e, "fpm");
	long long n = row_int(fpm, "unresolved");

	json_decref(fpm);
	return n;
}

static void
nexthop_line(const char *line, void *ctx)
{
	bool *is_off = ctx;

	*is_off |= strcmp(line, "no zebra nexthop kernel enable") == 0;
}

/* Return true if the configuration of zebra keeps it from announcing next hops. */
static bool
zebra_announces_none(const char *vtysh)
{
	char version[FRR_VERSION_STRLEN];
	struct frr_version v;
	bool is_off = false;

	if (zebra_version(vtysh, version) < 0 || frr_version_parse(version, &v) < 0 ||
	    !frr_needs_kernel_next_hops(&v))
		return false;
	(void)zebra_lines(vtysh, "show running-config", ZEBRA_ANSWER_S, nexthop_line,
			  &is_off);
	return is_off;
}

/* Report routes without a next hop, unless they get one within ROUNDS * PAUSE_MS. */
static void
nexthops_check(struct exam *e, const char *vtysh)
{
	long long n = row_int(e->fpm, "unresolved");

	for (unsigned int round = 1; round < ROUNDS && n > 0; round++) {
		nanosleep(&between_rounds, NULL);
		n = routes_unresolved(e);
	}
	if (n <= 0)
		return;
	finding_add(e, VERDICT_FAIL, "next-hops", "%lld route%s without a next hop", n,
		    text_plural(n));
	if (zebra_announces_none(vtysh)) {
		finding_cost(e, "Packets by these routes are dropped (unresolved_nh). With "
				"the line `no zebra nexthop kernel enable`, zebra before "
				"FRR 10 announces next hops only in a replay.");
		finding_fix(e, "vtysh -c 'conf t' -c 'zebra nexthop kernel enable' -c end "
			       "-c write");
	} else {
		finding_cost(
			e,
			"Packets by these routes are dropped (unresolved_nh). zebra has "
			"not announced their next hops, or the table of groups was full. "
			"In a replay zebra announces all next hops.");
		finding_fix(e, "fpmctl show memory");
	}
	finding_fix(e, "fpmctl replay");
}

void
check_routes(struct exam *e)
{
	const char *vtysh = zebra_vtysh(e);
	long long rib[2] = {0}, zebra[2] = {0};
	bool in_step = false; /* if false, a difference is expected */
	int same = 0;

	if (exam_no_daemon(e, " to compare with"))
		return;
	if (!row_true(e->fpm, "connected") || !row_has(e->fpm, "zebra4")) {
		finding_add(e, VERDICT_NA, "", "no zebra to compare with");
		return;
	}
	for (unsigned int round = 0; round < ROUNDS && same == 0; round++) {
		json_t *fpm;
		int same6;

		if (round > 0)
			nanosleep(&between_rounds, NULL);
		fpm = round > 0 ? exam_ask_one(e, "fpm") : json_incref(e->fpm);
		rib[0] = row_int(fpm, "zebra4");
		rib[1] = row_int(fpm, "zebra6");
		in_step = strcmp(row_str(fpm, "state"), "in-step") == 0;
		json_decref(fpm);
		same = routes_same_count(vtysh, 4, rib[0], &zebra[0]);
		same6 = same < 0 ? same : routes_same_count(vtysh, 6, rib[1], &zebra[1]);
		same = same6 < 0 ? same6 : same && same6;
	}
	if (same == -ETIMEDOUT) {
		finding_add(e, VERDICT_FAIL, "",
			    "zebra does not answer: '%s' waited %d s for it", vtysh,
			    ZEBRA_ANSWER_S);
		finding_cost(
			e, "zebra or another daemon of FRR hangs; vtysh asks each of them. "
			   "No updates of routes arrive. Forwarding goes on with the "
			   "routes received so far, also during a restart of FRR.");
		finding_fix(e, "journalctl -u frr -n 50");
		finding_fix(e, "systemctl restart frr");
	} else if (same < 0) {
		finding_add(e, VERDICT_WARN, "",
			    "zebra gives no number of routes: check '%s'", vtysh);
		finding_cost(
			e, "It is unknown whether the RIB has all routes of zebra. Another "
			   "way to ask zebra, for an FRR with the path space NAME:");
		finding_fix(e, "fpmctl doctor --vtysh 'vtysh -N NAME' routes");
	} else if (same > 0) {
		finding_add(e, VERDICT_OK, "", "%lld IPv4 and %lld IPv6 on both sides",
			    rib[0], rib[1]);
	} else {
		finding_add(e, in_step ? VERDICT_FAIL : VERDICT_WARN, "",
			    "IPv4: zebra %lld, RIB %lld; IPv6: %lld, %lld", zebra[0],
			    rib[0], zebra[1], rib[1]);
		finding_cost(e, in_step ? "Packets take other routes than zebra's. audit "
					  "lists the routes that differ, replay lets zebra "
					  "send all routes again."
					: "A replay is under way: check again after it.");
		finding_fix(e, in_step ? "fpmctl audit" : "fpmctl show fpm");
		if (in_step)
			finding_fix(e, "fpmctl replay");
	}
	if (same >= 0 && in_step) /* in a replay, routes may come before their next hops */
		nexthops_check(e, vtysh);
}
