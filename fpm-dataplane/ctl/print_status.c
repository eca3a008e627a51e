/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print the state of the FPM channel, of memory, and the version. Each is one row, printed
 * as paragraphs with a subject. Missing members print no paragraph.
 */
#include "ctl/print_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

/* Print a paragraph about `subject`, in as many lines as needed. */
static void __attribute__((format(printf, 2, 3)))
paragraph_print(const char *subject, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wrapped_print(text, printf("%-10s ", subject));
}

/* Format a count of the row, "1 route", "2 routes". Returns buf. */
static const char *
count_text(const json_t *row, const char *key, const char *one, char buf[48])
{
	snprintf(buf, 48, "%lld %s%s", row_int(row, key), one,
		 text_plural(row_int(row, key)));
	return buf;
}

static const char *
prefixes_text(const json_t *row, const char *key, char buf[48])
{
	snprintf(buf, 48, "%lld %s", row_int(row, key),
		 text_noun(row_int(row, key), "prefix", "prefixes"));
	return buf;
}

static void
session_print(const json_t *row)
{
	static const char *const meaning[][2] = {
		{"in-step", "; in step"},
		{"replaying", "; a replay is running"},
		{"holding", "; replay over, zebra was restarted: waiting for its peers"},
		{"sweeping", "; replay over, removing stale routes"},
	};
	const char *state = row_str(row, "state"), *more = "";
	char text[32];

	for (unsigned int i = 0; i < sizeof(meaning) / sizeof(meaning[0]); i++)
		if (strcmp(state, meaning[i][0]) == 0)
			more = meaning[i][1];
	if (strcmp(state, "never-connected") == 0)
		paragraph_print("Session", "zebra has never connected; it needs the option "
					   "`-M dplane_fpm_nl`");
	else if (strcmp(state, "held") == 0)
		paragraph_print("Session",
				"a hold refuses zebra while FRR is restarted (generation "
				"%lld); its routes stay in force",
				row_int(row, "generation"));
	else if (!row_true(row, "connected") && row_int(row, "generation") == 0)
		paragraph_print("Session", "zebra has not connected since the start; its "
					   "routes of the checkpoint stay in force");
	else if (!row_true(row, "connected"))
		paragraph_print(
			"Session",
			"zebra is disconnected (generation %lld); its routes stay in force",
			row_int(row, "generation"));
	else
		paragraph_print("Session", "zebra is connected, generation %lld, up %s%s",
				row_int(row, "generation"),
				human_seconds(row_real(row, "uptime_s"), text), more);
}

static void
queue_print(const json_t *row)
{
	char now[32], high[32], limit[32];

	paragraph_print("Queue", "%s now, %s at most, limit %s",
			human_bytes(row_int(row, "queue_bytes"), now),
			human_bytes(row_int(row, "queue_high_bytes"), high),
			human_bytes(row_int(row, "queue_limit_bytes"), limit));
	paragraph_print("Lag",
			"%lld ms now, %lld ms at most, from zebra's update to the FIB",
			row_int(row, "lag_ms"), row_int(row, "lag_high_ms"));
	if (strcmp(row_str(row, "state"), "refusing") == 0)
		paragraph_print("WARNING",
				"the RIB is too far behind: the session was closed, and "
				"zebra is refused until the queue is down to half of its "
				"limit; zebra then replays all routes");
	else if (json_is_false(json_object_get(row, "listening")))
		paragraph_print(
			"WARNING",
			"the address fpm.listen is not available, perhaps another program "
			"has it (ss -tlnp): zebra cannot connect; the daemon tries again");
	else if (row_true(row, "queue_warning"))
		paragraph_print("WARNING",
				"the RIB is behind, the queue is above 75 %% of its limit "
				"(fpm.queue-limit-mib); at the limit the session is "
				"closed, and zebra replays all routes");
	else if (!row_true(row, "connected") && row_int(row, "strangers") > 0)
		paragraph_print(
			"WARNING",
			"%lld connection%s refused, perhaps zebra's: the log has the "
			"source; fpm.users and fpm.peer say which connections are accepted",
			row_int(row, "strangers"),
			text_noun(row_int(row, "strangers"), " was", "s were"));
}

/*
 * Return the time in us that at most one in `of` entries exceeds: with 100 the 99th
 * percentile. Return the longest time if the result is in the last bucket.
 */
static double
histogram_all_but(const json_t *h, long long of)
{
	const json_t *below = json_object_get(h, "below_us"), *bucket;
	long long n = 0, count = row_int(h, "count");
	size_t i;

	json_array_foreach (below, i, bucket) {
		const json_t *bound = json_array_get(bucket, 0);

		n += json_integer_value(json_array_get(bucket, 1));
		if (n >= count - count / of && json_is_integer(bound))
			return (double)json_integer_value(bound);
	}
	return (double)row_int(h, "max_us");
}

/* Format a time, "0.512 ms" or from ten seconds on "51.1 s". Returns buf. */
static const char *
us_text(double us, char buf[32])
{
	if (us < 1e7)
		snprintf(buf, 32, "%.4g ms", us / 1e3);
	else
		snprintf(buf, 32, "%.1f s", us / 1e6);
	return buf;
}

static void
times_print(const json_t *row, const char *key, const char *name)
{
	const json_t *h = json_object_get(row, key);
	char half[32], most[32], max[32];

	if (row_int(h, "count") > 0)
		paragraph_print(name, "%lld; half below %s, 99 %% below %s, longest %s",
				row_int(h, "count"), us_text(histogram_all_but(h, 2), half),
				us_text(histogram_all_but(h, 100), most),
				us_text((double)row_int(h, "max_us"), max));
}

/*
 * Print the state of replays of VRFs. Only a time without events shows their end, and some
 * versions of zebra do not replay them.
 */
static void
vrf_replay_print(const json_t *row)
{
	char text[32], sweep[64] = "", n[48];

	if (row_has(row, "vrf_sweep_in_s"))
		snprintf(sweep, sizeof(sweep), ", sweep in %s",
			 human_seconds(row_real(row, "vrf_sweep_in_s"), text));
	if (row_int(row, "vrfs") > 0)
		paragraph_print("VRFs", "%s (ends after silence): %s stale%s",
				row_str(row, "vrf_phase"),
				count_text(row, "vrf_stale", "route", n), sweep);
	if (row_int(row, "no_vrf_routes") > 0)
		paragraph_print(
			"Tables",
			"%s in tables without a VRF: not in the FIB, and zebra does "
			"not replay them",
			count_text(row, "no_vrf_routes", "route", n));
	if (row_int(row, "vrfs_not_replayed") > 0)
		paragraph_print("WARNING",
				"zebra has not replayed %s; the old routes stay in force "
				"(`fpmctl show vrfs` lists them)",
				count_text(row, "vrfs_not_replayed", "VRF", n));
}

static void
replay_print(const json_t *row)
{
	/* After the replay of a restarted zebra, stale routes still wait for its peers. */
	bool replaying = row_true(row, "replaying");
	bool waits = replaying && (strcmp(row_str(row, "state"), "holding") == 0 ||
				   strcmp(row_str(row, "state"), "sweeping") == 0);
	char text[32], sweep[64] = "", n[2][48];

	if (!row_has(row, "replaying"))
		return;
	if (row_has(row, "sweep_in_s"))
		snprintf(sweep, sizeof(sweep), ", sweep in %s",
			 human_seconds(row_real(row, "sweep_in_s"), text));
	if (row_has(row, "replay_s"))
		paragraph_print(
			"Replay",
			"%s %s%s: %lld of %s confirmed, %lld stale%s; %s removed %lld",
			waits       ? "began"
			: replaying ? "running for"
				    : "took",
			human_seconds(row_real(row, "replay_s"), text), waits ? " ago" : "",
			row_int(row, "replay_confirmed"),
			count_text(row, "replay_before", "earlier route", n[0]),
			row_int(row, "stale"), sweep,
			count_text(row, "sweeps", "sweep", n[1]),
			row_int(row, "swept_routes"));
	else
		paragraph_print("Replay", "none yet%s; %s removed %lld", sweep,
				count_text(row, "sweeps", "sweep", n[0]),
				row_int(row, "swept_routes"));
	vrf_replay_print(row);
	paragraph_print("Timers",
			"stale routes are removed at the end of the replay (sentinel), or "
			"after %lld s without updates, at most %lld s; after a restart of "
			"zebra not before %lld s",
			row_int(row, "sweep_quiet_s"), row_int(row, "sweep_max_s"),
			row_int(row, "sweep_restart_s"));
	if (row_true(row, "feedback_enabled"))
		paragraph_print("Feedback", "%s acknowledged, %lld of them as failed",
				count_text(row, "feedback", "route", n[0]),
				row_int(row, "feedback_failed"));
	else
		paragraph_print("Feedback", "off (fpm.feedback)");
}

static void
checkpoint_print(const json_t *row)
{
	const json_t *c = json_object_get(row, "checkpoint");
	char text[32], n[3][48];

	if (!json_is_object(c))
		paragraph_print("Checkpoint", "none: it is off, or no supervisor "
					      "(fpm-supervise, systemd) stores it");
	else
		paragraph_print(
			"Checkpoint",
			"%s and %lld of other tables, %lld of the kernel, %s, %s; this "
			"start restored %s and %lld of the kernel, lost %lld%s",
			count_text(c, "routes", "route", n[0]), row_int(c, "other_tables"),
			row_int(c, "kernel_routes"), count_text(c, "groups", "group", n[1]),
			human_bytes(row_int(c, "bytes"), text),
			count_text(c, "restored", "route", n[2]),
			row_int(c, "restored_kernel"), row_int(c, "restore_lost"),
			row_int(c, "discarded") > 0 ? "; the old checkpoint was discarded"
						    : "");
}

/*
 * Print the counts of refused objects, if any: the part of `show memory` that affects
 * routes.
 */
static void
no_room_print(const json_t *row)
{
	static const struct {
		const char *key, *what;
	} lack[] = {
		{"out_of_memory", "out of memory"},
		{"routes_full", "beyond limits.routes"},
		{"groups_full", "beyond limits.groups"},
		{"adjacencies_full", "gateways beyond limits.adjacencies"},
		{"mtus_full", "MTUs beyond the maximum"},
		{"flows_moved", "route changes that moved flows of next hops that stay"},
	};
	char text[384] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < sizeof(lack) / sizeof(lack[0]); i++)
		if (row_int(row, lack[i].key) > 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld %s",
					      n > 0 ? ", " : "", row_int(row, lack[i].key),
					      lack[i].what);
	if (n > 0)
		paragraph_print("Limits hit", "%s", text);
}

void
status_fpm(const json_t *row)
{
	char text[32], age[32], last[64] = "", n[3][48];

	if (row_has(row, "last_rx_age_s"))
		snprintf(last, sizeof(last), "; the last %s ago",
			 human_seconds(row_real(row, "last_rx_age_s"), age));
	session_print(row);
	paragraph_print("Received", "%s in %s, %s%s",
			count_text(row, "messages", "message", n[0]),
			count_text(row, "frames", "frame", n[1]),
			human_bytes(row_int(row, "bytes"), text), last);
	paragraph_print("Routes", "%lld added, %lld withdrawn", row_int(row, "routes"),
			row_int(row, "route_dels"));
	paragraph_print("Next hops", "%lld added, %lld withdrawn", row_int(row, "nexthops"),
			row_int(row, "nexthop_dels"));
	paragraph_print("Ignored", "%s, %s, %lld malformed, %s",
			count_text(row, "skipped_type", "unused message", n[0]),
			count_text(row, "skipped_route", "unsupported route", n[1]),
			row_int(row, "malformed"),
			count_text(row, "bad_frames", "bad frame", n[2]));
	paragraph_print(
		"Sessions",
		"%lld accepted, %lld replaced, %lld ended, %lld over the queue limit",
		row_int(row, "accepts"), row_int(row, "replaced"), row_int(row, "closes"),
		row_int(row, "overflows"));
	queue_print(row);
	times_print(row, "commit_time", "Commits");
	times_print(row, "grace_time", "Grace");
	replay_print(row);
	if (!row_has(row, "routes4"))
		return;
	paragraph_print("Table IPv4", "%s, %lld of them from zebra",
			prefixes_text(row, "routes4", n[0]), row_int(row, "zebra4"));
	paragraph_print("Table IPv6", "%s, %lld of them from zebra",
			prefixes_text(row, "routes6", n[0]), row_int(row, "zebra6"));
	paragraph_print("Objects",
			"%s, %s (%lld deleted while in use), %lld %s, %s unresolved, %lld "
			"unsupported",
			count_text(row, "groups", "group", n[0]),
			count_text(row, "nexthop_ids", "next-hop id", n[1]),
			row_int(row, "nexthop_ids_absent"), row_int(row, "adjacencies"),
			text_noun(row_int(row, "adjacencies"), "adjacency", "adjacencies"),
			count_text(row, "unresolved", "route", n[2]),
			row_int(row, "unsupported"));
	no_room_print(row);
	checkpoint_print(row);
}

void
status_kernel(const json_t *row)
{
	char text[32], n[3][48];
	const char *from = row_str(row, "routes_from");

	paragraph_print("Source", "%s",
			strcmp(from, "kernel") == 0
				? "all routes come from the kernel (routes.from: kernel)"
			: strcmp(from, "fpm") == 0
				? "own addresses and connected subnets (routes.from: fpm)"
				: "all routes but those of zebra's protocols (routes.from: "
				  "both)");
	paragraph_print("State", "%s%s",
			row_true(row, "in_step") ? "in step with the kernel"
						 : "reading all tables again",
			row_true(row, "paused") ? "; paused until the RIB has caught up"
						: "");
	if (row_has(row, "kernel_routes"))
		paragraph_print("Table", "%s, in force or hidden by better ones",
				count_text(row, "kernel_routes", "route", n[0]));
	paragraph_print("Received", "%s: %lld routes and %s added, %lld and %lld deleted",
			count_text(row, "messages", "message", n[0]),
			row_int(row, "routes"),
			count_text(row, "nexthops", "next-hop object", n[1]),
			row_int(row, "route_dels"), row_int(row, "nexthop_dels"));
	paragraph_print("Left out",
			"%lld of zebra's protocols, %lld in no FIB, %lld malformed",
			row_int(row, "of_zebra"), row_int(row, "skipped"),
			row_int(row, "malformed"));
	if (row_int(row, "tos_now") > 0)
		paragraph_print("By TOS", "%s", count_text(row, "tos_now", "route", n[0]));
	paragraph_print("Dumps", "%lld ended, %lld started again, %s",
			row_int(row, "dumps"), row_int(row, "interrupted"),
			count_text(row, "overruns", "overrun", n[0]));
	if (row_int(row, "cut") > 0)
		paragraph_print("Cut",
				"%s that Linux ended at a route with too many next "
				"hops",
				count_text(row, "cut", "dump", n[0]));
	paragraph_print("Queue", "%s", human_bytes(row_int(row, "queue_bytes"), text));
	if (row_has(row, "kernel_swept"))
		paragraph_print("Swept", "%s that the kernel deleted without an event",
				count_text(row, "kernel_swept", "route", n[0]));
}

static void
fib_print(const json_t *row, const char *key, const char *name)
{
	const json_t *fib = json_object_get(row, key);
	char all[32], radix[32], spare[32], n[48];

	if (!json_is_object(fib))
		return;
	paragraph_print(name, "%s; forwarders read %s, of which %s free; writer's tree %s",
			prefixes_text(fib, "routes", n),
			human_bytes(row_int(fib, "bytes"), all),
			human_bytes(row_int(fib, "free_bytes"), spare),
			human_bytes(row_int(fib, "radix_bytes"), radix));
}

/* Print the copies of the FIB if there are several; each copy is complete. */
static void
fib_copies_print(const json_t *row)
{
	const json_t *copies = json_object_get(row, "fib_copies");
	size_t c;
	json_t *copy;

	json_array_foreach (copies, c, copy) {
		const char *const family[] = {"fib4", "fib6"};
		long long read = 0, radix = 0;
		char name[32], one[32], two[32];

		if (!row_has(copy, "node"))
			continue;
		for (unsigned int v = 0; v < 2; v++) {
			const json_t *fib = json_object_get(copy, family[v]);

			read += row_int(fib, "bytes");
			radix += row_int(fib, "radix_bytes");
		}
		snprintf(name, sizeof(name), "FIB node %lld", row_int(copy, "node"));
		paragraph_print(name,
				"copy of both tables: forwarders on it read %s; writer's "
				"trees %s%s",
				human_bytes(read, one), human_bytes(radix, two),
				row_true(copy, "placed")
					? ""
					: "; the kernel refused to place the memory");
	}
}

void
status_memory(const json_t *row)
{
	char now[32], peak[32], n[48];
	const json_t *table;
	size_t i;

	paragraph_print("Process", "%s, at most %s",
			human_bytes(row_int(row, "rss_bytes"), now),
			human_bytes(row_int(row, "peak_rss_bytes"), peak));
	fib_print(row, "fib4", "FIB IPv4");
	fib_print(row, "fib6", "FIB IPv6");
	fib_copies_print(row);
	if (row_has(row, "rib_bytes"))
		paragraph_print("RIB", "%s", human_bytes(row_int(row, "rib_bytes"), now));
	paragraph_print("FPM queue", "%s", human_bytes(row_int(row, "queue_bytes"), now));
	paragraph_print("Packets", "%lld of %s in use",
			row_int(row, "packet_buffers") -
				row_int(row, "packet_buffers_free"),
			count_text(row, "packet_buffers", "buffer", n));
	printf("\n%-14s %10s %10s %10s  %s\n", "Table", "used", "of", "refused", "set by");
	json_array_foreach (json_object_get(row, "tables"), i, table) {
		const char *key = row_str(table, "key");
		char max[24] = "no limit";

		if (row_int(table, "max") != 0)
			snprintf(max, sizeof(max), "%lld", row_int(table, "max"));
		printf("%-14s %10lld %10s %10lld  %s\n", row_str(table, "table"),
		       row_int(table, "used"), max, row_int(table, "refused"),
		       key[0] != '\0'               ? key
		       : row_int(table, "max") == 0 ? "grows"
						    : "fixed");
	}
}

void
status_version(const json_t *row)
{
	const char *dpdk = row_str(row, "dpdk");
	char up[32];

	line_print(4, "fpm-dataplane %s%s%s, pid %lld, up %s", row_str(row, "version"),
		   dpdk[0] != '\0' ? ", " : "", dpdk, row_int(row, "pid"),
		   human_seconds((double)row_int(row, "uptime_s"), up));
	if (row_has(row, "config"))
		line_print(4, "    %s", row_str(row, "config"));
	if (row_has(row, "lookup_instructions")) {
		line_print(4, "    forwarding uses %s, at most %s on this CPU",
			   row_str(row, "instructions"), row_str(row, "instructions_best"));
		line_print(4, "    lookups use %s, at most %s on this CPU",
			   row_str(row, "lookup_instructions"),
			   row_str(row, "lookup_instructions_best"));
	}
	if (row_has(row, "restart_refused"))
		line_print(4, "    restart refused: %s", row_str(row, "restart_refused"));
}

void
status_bond(FILE *out, const json_t *bond)
{
	const json_t *m;
	size_t i;

	fprintf(out, ", %s", row_str(bond, "mode"));
	json_array_foreach (json_object_get(bond, "members"), i, m) {
		bool up = strcmp(row_str(m, "link"), "up") == 0;

		fprintf(out, ", %s %s", row_str(m, "device"),
			!up                     ? "down"
			: row_true(m, "active") ? "active"
						: "idle");
		if (row_has(m, "partner"))
			fprintf(out, " with %s", row_str(m, "partner"));
	}
}
