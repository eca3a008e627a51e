/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that bfdd and the key bfd.dplane agree about the sender of BFD
 * packets. bfdd with --dplaneaddr opens no sockets for BFD, so without the key no session
 * comes up.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/frr_version.h"
#include "ctl/json_row.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define CMDLINE_MAX    4096
#define SESSIONS_BURST 58 /* sessions that a connection gets: frr_gives_bfd_in_parts() */
#define ROUNDS         5  /* rounds of counting, because both sides change meanwhile */
#define PAUSE_MS       300

/* The bfdd of the control namespace. */
struct bfdd {
	char here[64]; /* the network namespace of this process */
	pid_t pid;     /* 0: none was found */
	bool has_option;
	char option[128]; /* the value of --dplaneaddr */
};

static void
bfdd_on_process(struct exam *e, const char *name, void *ctx)
{
	struct bfdd *b = ctx;
	char cmdline[CMDLINE_MAX], netns[64];
	const char *option;
	int n;

	if (!isdigit((unsigned char)name[0]))
		return;
	n = exam_read(e, cmdline, sizeof(cmdline), "/proc/%s/cmdline", name);
	if (n <= 0 || !cmdline_is(cmdline, (size_t)n, "bfdd"))
		return;
	if (!exam_link(e, netns, sizeof(netns), "/proc/%s/ns/net", name) ||
	    strcmp(netns, b->here) != 0)
		return;
	option = cmdline_value(cmdline, (size_t)n, "--dplaneaddr");
	/* A namespace may have more than one FRR: prefer the bfdd that has the option. */
	if (b->pid != 0 && option == NULL)
		return;
	b->pid = (pid_t)strtol(name, NULL, 10);
	b->has_option = option != NULL;
	snprintf(b->option, sizeof(b->option), "%s", option != NULL ? option : "");
}

static const char *
family_word(const char *dplane)
{
	return dplane[0] == '[' ? "ipv6" : "ipv4";
}

/* Add the commands that give bfdd the option for the address of the key. */
static void
fix_option(struct exam *e, const char *dplane)
{
	finding_fix(e, "sed -i 's/^bfdd_options=\"/&--dplaneaddr %s:%s /' /etc/frr/daemons",
		    family_word(dplane), dplane);
	finding_fix(e, "systemctl restart frr");
}

/* Check bfdd without the key: bfdd has to send and receive itself. */
static void
taps_check(struct exam *e, const struct bfdd *b)
{
	char at[BFDD_AT_STRLEN];

	if (b->pid == 0) {
		finding_add(e, VERDICT_NA, "", "no bfdd runs where the TAPs are");
	} else if (!b->has_option) {
		finding_add(e, VERDICT_OK, "",
			    "bfdd, pid %d, sends and receives by the TAPs", (int)b->pid);
	} else {
		finding_add(e, VERDICT_FAIL, "",
			    "bfdd, pid %d, has --dplaneaddr; bfd.dplane is absent",
			    (int)b->pid);
		finding_cost(e,
			     "With this option bfdd opens no sockets for BFD: it gets no "
			     "packet, and no session comes up. Remove the option from "
			     "bfdd_options in /etc/frr/daemons, or let the dataplane run "
			     "the sessions. For that, write in %s: bfd: {dplane: \"%s\"}, "
			     "then:",
			     row_str(e->version, "config"),
			     bfdd_option_parse(b->option, at) == BFDD_LISTENS
				     ? at
				     : "127.0.0.1:50700");
		finding_fix(e, "fpmctl restart");
	}
}

/* Check the option of bfdd. Returns true if bfdd listens at the address of the key. */
static bool
option_check(struct exam *e, const struct bfdd *b, const char *dplane)
{
	char at[BFDD_AT_STRLEN];
	enum bfdd_option kind = bfdd_option_parse(b->option, at);

	if (b->has_option && kind == BFDD_LISTENS && bfdd_hears_at(at, dplane))
		return true;
	if (!b->has_option)
		finding_add(e, VERDICT_FAIL, "", "bfdd, pid %d, has no --dplaneaddr",
			    (int)b->pid);
	else if (kind == BFDD_CONNECTS)
		finding_add(e, VERDICT_FAIL, "", "bfdd connects to %s, and does not listen",
			    b->option);
	else
		finding_add(e, VERDICT_FAIL, "", "bfdd listens at %s, bfd.dplane is %s",
			    b->option, dplane);
	finding_cost(e, "%s",
		     b->has_option
			     ? "The dataplane cannot connect to bfdd, and with "
			       "--dplaneaddr bfdd gets no packet: no session comes up. "
			       "Remove the old option from bfdd_options, then:"
			     : "bfdd does not listen for the dataplane, and the dataplane "
			       "keeps the BFD packets: no session comes up.");
	fix_option(e, dplane);
	return false;
}

/* Report which programs may connect to bfdd. There is no password. */
static void
access_check(struct exam *e, const struct bfdd *b)
{
	char at[BFDD_AT_STRLEN];

	(void)bfdd_option_parse(b->option, at);
	if (strncmp(at, "127.", 4) == 0 || strncmp(at, "[::1]", 5) == 0) {
		finding_add(e, VERDICT_OK, "access",
			    "programs of this namespace can connect to bfdd");
		return;
	}
	finding_add(e, VERDICT_WARN, "access", "other hosts may connect to bfdd at %s", at);
	finding_cost(e, "A host that connects to bfdd controls the states of the sessions, "
			"so it can remove routes. There is no password. Use a loopback "
			"address in bfdd_options and in bfd.dplane, then:");
	finding_fix(e, "systemctl restart frr; fpmctl restart");
}

static void
count_on_line(const char *line, void *ctx)
{
	long long *n = ctx;

	if (*n < 0 && sscanf(line, "Session count: %lld", n) != 1)
		*n = -1;
}

/* Return the number of sessions of bfdd; -1: it does not answer. */
static long long
bfdd_count(struct exam *e)
{
	long long n = -1;

	if (zebra_lines(zebra_vtysh(e), "show bfd peers brief", ZEBRA_ANSWER_S,
			count_on_line, &n) < 0)
		return -1;
	return n;
}

/* Report how many sessions both sides have. `theirs` below 0: bfdd does not answer. */
static void
sessions_compare(struct exam *e, long long theirs, long long ours)
{
	if (theirs < 0 || theirs == ours) {
		finding_add(e, VERDICT_OK, "sessions", "%lld%s", ours,
			    theirs < 0 ? "; bfdd does not report its number of sessions"
				       : "");
		return;
	}
	finding_add(e, VERDICT_WARN, "sessions", "bfdd has %lld, the dataplane has %lld",
		    theirs, ours);
	finding_cost(e, "%s",
		     theirs > ours
			     ? "bfdd did not announce the other sessions, so their packets "
			       "are not sent. bfdd does not announce a session whose "
			       "interface or VRF does not exist. For other causes see "
			       "`fpmctl show log`."
			     : "bfdd no longer has the other sessions, but their packets "
			       "are still sent, so the peers see them Up. Such a session "
			       "ends ten seconds after bfdd last announced it. If the "
			       "numbers differ for longer, see `fpmctl show log`.");
	finding_fix(e, "vtysh -c 'show bfd peers brief'; fpmctl show bfd");
}

/* Compare the sessions of both sides, and find sessions that are not served. */
static void
sessions_check(struct exam *e)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	long long theirs = -1, ours = 0, unserved = 0;
	char first[256] = "";
	const json_t *row;
	json_t *rows = NULL;
	size_t i;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		json_decref(rows);
		rows = exam_ask(e, "bfd");
		ours = (long long)json_array_size(rows);
		theirs = bfdd_count(e);
		if (theirs < 0 || theirs == ours)
			break;
	}
	json_array_foreach (rows, i, row)
		if (row_has(row, "reason") && unserved++ == 0)
			snprintf(first, sizeof(first), "%s: %s", row_str(row, "peer"),
				 row_str(row, "reason"));
	json_decref(rows);
	sessions_compare(e, theirs, ours);
	if (unserved == 0)
		return;
	finding_add(e, VERDICT_WARN, "served", "%lld session%s not served", unserved,
		    unserved == 1 ? " is" : "s are");
	finding_cost(e, "Their packets are not sent, and they stay Down. The first: %s",
		     first);
	finding_fix(e, "fpmctl show bfd");
}

/* Report how many connections the sessions need with this FRR. */
static void
burst_check(struct exam *e)
{
	char version[FRR_VERSION_STRLEN];
	struct frr_version v;
	long long n = bfdd_count(e);

	if (n <= SESSIONS_BURST || zebra_version(zebra_vtysh(e), version) < 0 ||
	    frr_version_parse(version, &v) < 0 || !frr_gives_bfd_in_parts(&v))
		return;
	finding_add(e, VERDICT_OK, "frr",
		    "FRR %s announces at most %d sessions per connection; %lld connections "
		    "are open",
		    version, SESSIONS_BURST, row_int(e->version, "bfd_connections"));
}

static void
dplane_check(struct exam *e, const struct bfdd *b, const char *dplane)
{
	long long connections = row_int(e->version, "bfd_connections");

	if (b->pid == 0) {
		finding_add(e, connections > 0 ? VERDICT_NA : VERDICT_FAIL, "", "%s",
			    connections > 0
				    ? "bfdd is connected, but its process is not visible"
				    : "no bfdd runs where the TAPs are");
		if (connections == 0) {
			finding_cost(e, "The dataplane keeps the BFD packets, and has no "
					"sessions. It tries bfdd again each second.");
			finding_fix(e, "systemctl start frr");
		}
		return;
	}
	if (!option_check(e, b, dplane))
		return;
	if (connections == 0) {
		finding_add(e, VERDICT_FAIL, "", "bfdd, pid %d, is not connected",
			    (int)b->pid);
		finding_cost(e,
			     "bfdd has announced no session, so no session is up. The log "
			     "has the "
			     "error. If the fault is a BFD option of FRR: bfdd needs "
			     "--dplaneaddr %s:%s.",
			     family_word(dplane), dplane);
		finding_fix(e, "fpmctl show log");
		return;
	}
	finding_add(e, VERDICT_OK, "", "bfdd, pid %d, gives the sessions to the dataplane",
		    (int)b->pid);
	access_check(e, b);
	sessions_check(e);
	burst_check(e);
}

void
check_bfd(struct exam *e)
{
	struct bfdd b = {0};

	if (exam_no_daemon(e, ""))
		return;
	if (e->deny != NULL) {
		finding_add(e, VERDICT_NA, "", "the processes of the TAPs are not visible");
		return;
	}
	exam_link(e, b.here, sizeof(b.here), "/proc/self/ns/net");
	exam_folder(e, "/proc", bfdd_on_process, &b);
	if (row_has(e->version, "bfd_dplane"))
		dplane_check(e, &b, row_str(e->version, "bfd_dplane"));
	else
		taps_check(e, &b);
}
