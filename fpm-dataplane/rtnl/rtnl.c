/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rtnl thread: handle events as they arrive, and dump tables when events do not
 * suffice. [rtnl]
 *
 * The kernel deletes some objects without an event: IPv4 routes of a link that is set down
 * or whose source address is removed, next-hop objects of a link that is down or lost its
 * carrier, and IPv4 routes of a deleted next-hop object. After such a cause the thread
 * dumps next-hop objects and the protocols of which rib has routes. The kernel also renews
 * or shortens the lifetime of a route without an event, and gives a new lifetime to an
 * expired route that it has not deleted yet. So while routes have a limited lifetime, the
 * thread reads their lifetimes at the end of the shortest one, and at the latest after
 * LIFE_MS.
 */
#include "rtnl/rtnl.h"

#include <assert.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "rtnl/impl.h"

/*
 * The time from the event of a link, an address or a next-hop object to the dump. The
 * kernel may send the event before it deletes the routes, but does both in one system call.
 */
#define SILENT_MS 2u
/*
 * The least time between two dumps, as a multiple of the time that the earlier dump took.
 */
#define DUMP_REST 4u
#define QUICK_MS  30u   /* CPU time; a walk over tables that are not large takes less */
#define RETRY_MS  1000u /* after a failed dump */
/* The time until all tables are read again after Linux has cut a dump, without an event. */
#define CUT_MS       5000u
#define CUT_LARGE_MS 60000u
/* The time until limited lifetimes, and until expired routes, are read again. */
#define LIFE_MS          2000u
#define LIFE_LARGE_MS    60000u
#define EXPIRED_MS       100u
#define EXPIRED_LARGE_MS 5000u

static void
rtnl_schedule(struct rtnl *r, uint64_t in_ms)
{
	uint64_t now = monotonic_ms(), at = now + in_ms;

	if (at < r->next_resync_ms)
		at = r->next_resync_ms;
	if (ev_is_active(&r->resync))
		return;
	ev_timer_set(&r->resync, (double)(at - now) / 1000., 0.);
	ev_timer_start(r->w->loop, &r->resync);
}

/*
 * Decide that the tables are large if rib got many routes since all were read: from the
 * events of the kernel, or from zebra, which also gives them to the kernel.
 */
static void
rtnl_note_growth(struct rtnl *r)
{
	r->large |= table_state(TABLE_routes).used > r->n_routes_then + KERNEL_LARGE;
}

/* --- causes of a dump ----------------------------------------------------------------- */

/*
 * Handle an address. The kernel deletes IPv4 routes with a deleted address, and it limits
 * the lifetime of the route of an IPv6 address's subnet, without messages. If the tables
 * are large, known lifetimes are read again at intervals anyway.
 *
 * A link loses its link-local address when IPv6 ends there: disable_ipv6, or an MTU below
 * 1280. With skip_notify_on_dev_down the kernel sends no message about the IPv6 routes of
 * the link, which it then deletes.
 */
static void
rtnl_on_address(struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifa))
		return;
	if (nlh->nlmsg_type == RTM_DELADDR) {
		r->silent_due |=
			ifa->ifa_family != AF_INET6 || ifa->ifa_scope == RT_SCOPE_LINK;
		return;
	}
	if (ifa->ifa_family != AF_INET6) {
		r->silent_due |= r->has_dead; /* Linux uses its next hops again */
		return;
	}
	rtnl_note_growth(r);
	if (r->large && ev_is_active(&r->expiry))
		return;
	mnl_attr_for_each(attr, nlh, sizeof(*ifa))
	{
		struct ifa_cacheinfo info;

		if (mnl_attr_get_type(attr) != IFA_CACHEINFO ||
		    mnl_attr_get_payload_len(attr) < sizeof(info))
			continue;
		memcpy(&info, mnl_attr_get_payload(attr), sizeof(info));
		if (info.ifa_valid != UINT32_MAX)
			r->mortal[RTPROT_KERNEL] = r->lives_due = true;
	}
}

/*
 * Handle a change of a route that may cut dumps: read all tables, which shows if it does.
 */
static void
rtnl_on_large_route(struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	if (rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6)
		return;
	r->cut[rtm->rtm_family == AF_INET6] = r->silent_due = true;
	r->has_large[rtm->rtm_family == AF_INET6] = nlh->nlmsg_type == RTM_NEWROUTE;
}

static void
rtnl_on_event(struct rtnl *r, const struct nlmsghdr *nlh)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct ifinfomsg))
			break;
		r->silent_due |=
			link_may_have_lost(r, nlh) || link_may_have_revived(r, nlh);
		r->rules_due |= rule_names_link(r, nlh);
		break;
	case RTM_NEWNEXTHOP:
		new_links_forget(r);
		pass_message(r, nlh, false);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		rtnl_on_address(r, nlh);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
		rule_names_event(r, nlh);
		r->rules_due = true;
		break;
	default:
		if (nlh->nlmsg_len > ROUTE_LARGE_BYTES)
			rtnl_on_large_route(r, nlh);
		pass_message(r, nlh, false);
		break;
	}
}

/* --- dumps ---------------------------------------------------------------------------- */

/* Read events only while no dump runs and rib keeps up. */
static void
rtnl_watch(struct rtnl *r)
{
	bool behind = kernel_queue_depth() >
		      (atomic_load_explicit(&kernel_status.paused, memory_order_relaxed)
			       ? KERNEL_QUEUE_RESUME_BYTES
			       : KERNEL_QUEUE_PAUSE_BYTES);

	atomic_store_explicit(&kernel_status.paused, behind, memory_order_relaxed);
	if (behind || dump_runs(r))
		ev_io_stop(r->w->loop, &r->events_io);
	else
		ev_io_start(r->w->loop, &r->events_io);
	if (behind || !dump_runs(r))
		ev_io_stop(r->w->loop, &r->dumps_io);
	else
		ev_io_start(r->w->loop, &r->dumps_io);
}

/*
 * Start the timer of the shortest lifetime, or restart it if a shorter lifetime is known.
 */
static void
expiry_arm(struct rtnl *r)
{
	struct ev_loop *loop = r->w->loop;

	if (r->expires_ms == 0 ||
	    (ev_is_active(&r->expiry) &&
	     ev_timer_remaining(loop, &r->expiry) * 1000. <= r->expires_ms))
		return;
	ev_timer_stop(loop, &r->expiry);
	/* A timer that fires early would dump a route that has not expired yet. */
	ev_now_update(loop);
	ev_timer_set(&r->expiry, r->expires_ms / 1000., 0.);
	ev_timer_start(loop, &r->expiry);
}

/*
 * Return the time until the expired routes are read again: an eighth of the time since the
 * last route expired, within the limits. So this thread notices soon if a route gets a new
 * lifetime, and reads rarely if the kernel never deletes an expired route.
 */
static uint32_t
expired_again_ms(struct rtnl *r, uint32_t least_ms, uint32_t most_ms)
{
	uint64_t for_ms;

	if (r->n_expired > r->n_expired_was)
		r->expired_since_ms = r->dump_begin_ms;
	r->n_expired_was = r->n_expired;
	for_ms = r->n_expired > 0 ? r->dump_begin_ms - r->expired_since_ms : 0;
	return for_ms / 8 > most_ms    ? most_ms
	       : for_ms / 8 > least_ms ? (uint32_t)(for_ms / 8)
				       : least_ms;
}

/*
 * Limit the time until the next dump of routes whose lifetimes the kernel may change
 * without an event. The kernel reports no lifetime if it is below one tick. So if a dump
 * shows no route with a lifetime, but an earlier dump did, the thread repeats the dump. The
 * last repetition begins at least EXPIRED_MS, which is longer than a tick, after the first
 * dump without lifetimes.
 */
static void
expiry_limit(struct rtnl *r)
{
	uint32_t life_ms = r->large ? LIFE_LARGE_MS : LIFE_MS;
	uint32_t expired_ms =
		expired_again_ms(r, r->large ? EXPIRED_LARGE_MS : EXPIRED_MS, life_ms);
	bool lives = r->expires_ms != 0 || r->n_expired > 0;

	if (lives)
		r->lifeless_since_ms = 0;
	else if (r->had_lives && r->lifeless_since_ms == 0)
		r->lifeless_since_ms = r->dump_begin_ms;
	r->had_lives = lives || (r->had_lives &&
				 r->dump_begin_ms - r->lifeless_since_ms < expired_ms);
	if (r->expires_ms > life_ms)
		r->expires_ms = life_ms;
	if ((r->n_expired > 0 || (r->had_lives && !lives)) &&
	    (r->expires_ms == 0 || r->expires_ms > expired_ms))
		r->expires_ms = expired_ms;
}

/*
 * Start the timer after which all tables are read again if Linux has cut a dump. It is not
 * the timer of the next dump, which other events start with a shorter time.
 */
static void
cut_arm(struct rtnl *r)
{
	if ((!r->cut[0] && !r->cut[1]) || ev_is_active(&r->cut_again))
		return;
	ev_now_update(r->w->loop);
	ev_timer_set(&r->cut_again, (r->large ? CUT_LARGE_MS : CUT_MS) / 1000., 0.);
	ev_timer_start(r->w->loop, &r->cut_again);
}

static void
routes_dump_finished(struct rtnl *r)
{
	uint64_t now = monotonic_ms();

	if (r->whole) {
		r->n_routes_then = table_state(TABLE_routes).used;
		/* A dump that Linux has cut may show few of many routes. */
		r->large = r->n_shown > KERNEL_LARGE ||
			   ((r->cut[0] || r->cut[1]) && r->n_routes_then > KERNEL_LARGE);
	}
	r->next_resync_ms = now + DUMP_REST * (now - r->dump_begin_ms);
	atomic_store_explicit(&kernel_status.expired_joined, r->n_joined,
			      memory_order_relaxed);
	if (!r->all_due)
		atomic_store_explicit(&kernel_status.in_step, 1, memory_order_relaxed);
	/*
	 * Keep a timer that runs: a lifetime below one tick looks like none, so the dump
	 * may not show it.
	 */
	expiry_limit(r);
	expiry_arm(r);
}

static void
dump_finished(struct rtnl *r)
{
	r->n_jobs = r->at = 0;
	if (!r->rules_only)
		routes_dump_finished(r);
	r->rules_only = false;
	if (r->all_due || r->silent_due || r->lives_due)
		rtnl_schedule(r, 0);
	cut_arm(r);
}

/* Give up a dump whose answer may not have ended. */
static void
dump_failed(struct rtnl *r, int error)
{
	unsigned int missed;

	ev_io_stop(r->w->loop, &r->dumps_io);
	if (dumps_open(r) == 0) /* else the next request fails, which is tried again */
		ev_io_set(&r->dumps_io, r->dumps, EV_READ);
	if (log_allowed(&r->dump_log, &missed))
		log_error("rtnl: routing tables not read error=\"%s\" missed=%u",
			  strerror(-error), missed);
	(void)changes_end(r);
	r->n_jobs = r->at = 0;
	r->rules_only = false;
	r->all_due = true;
	r->next_resync_ms = monotonic_ms() + RETRY_MS;
	rtnl_schedule(r, RETRY_MS);
}

static void
dump_advance(struct rtnl *r)
{
	int rc = dump_continue(r);

	if (rc < 0)
		dump_failed(r, rc);
	else if (rc > 0)
		dump_finished(r);
}

static void
rtnl_on_dumps(struct ev_loop *loop, ev_io *io, int revents)
{
	dump_advance(io->data);
}

/*
 * Read waiting events. If some were lost, note that everything must be read again:
 * forwarding continues with the old routes. Return what events_read() returns.
 */
static int
rtnl_read_events(struct rtnl *r)
{
	int rc = events_read(r, rtnl_on_event);
	unsigned int missed;

	if (rc >= 0)
		return rc;
	kernel_count(&kernel_status.overruns, 1);
	new_links_forget(r);
	rule_names_lost(r);
	atomic_store_explicit(&kernel_status.in_step, 0, memory_order_relaxed);
	if (log_allowed(&r->overrun_log, &missed))
		log_warn("rtnl: route events lost effect=tables-read-again missed=%u",
			 missed);
	r->all_due = true;
	r->rules_due = true; /* the next dump of routes may be seconds away */
	return rc;
}

/* Read the rules again as soon as no other dump runs. The read takes little time. */
static void
rtnl_read_rules(struct rtnl *r)
{
	if (!r->rules_due || dump_runs(r))
		return;
	dump_plan_rules(r);
	dump_advance(r);
}

static void
rtnl_on_events(struct ev_loop *loop, ev_io *io, int revents)
{
	struct rtnl *r = io->data;

	(void)rtnl_read_events(r);
	expiry_arm(r);
	if (r->all_due || r->silent_due || r->lives_due)
		rtnl_schedule(r, r->all_due ? 0 : SILENT_MS);
	rtnl_read_rules(r);
}

/* Handle the waiting events, then start a dump: the dump is newer than these events. */
static void
rtnl_on_resync(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct rtnl *r = timer->data;
	int rc;

	ev_timer_stop(loop, timer);
	if (dump_runs(r))
		return; /* dump_finished() schedules the next dump */
	do
		rc = rtnl_read_events(r);
	while (rc != 0 && kernel_queue_depth() <= KERNEL_QUEUE_PAUSE_BYTES);
	if (rc != 0) {
		rtnl_schedule(r, SILENT_MS); /* rib is behind */
		return;
	}
	rtnl_note_growth(r);
	if (r->all_due)
		dump_plan(r, DUMP_ALL);
	else if (r->silent_due)
		dump_plan_held(r);
	else
		dump_plan_mortal(r);
	r->all_due = r->silent_due = r->lives_due = false;
	dump_advance(r);
}

static void
rtnl_on_expiry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct rtnl *r = timer->data;

	ev_timer_stop(loop, timer);
	r->expires_ms = 0;
	r->lives_due = true;
	rtnl_schedule(r, 0);
}

static void
rtnl_on_cut(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct rtnl *r = timer->data;

	ev_timer_stop(loop, timer);
	if (!r->cut[0] && !r->cut[1])
		return;
	r->silent_due = true;
	rtnl_schedule(r, 0);
}

/* --- the thread ----------------------------------------------------------------------- */

/* Make the planned dump before the thread's first wait. Returns 0 or -errno. */
static int
dump_now(struct rtnl *r)
{
	struct pollfd wait = {.fd = r->dumps, .events = POLLIN};
	int rc;

	while ((rc = dump_continue(r)) == 0) {
		pass_flush(r);
		if (poll(&wait, 1, 1) < 0 && errno != EINTR)
			return -errno;
	}
	pass_flush(r);
	return rc < 0 ? rc : 0;
}

/*
 * Read the routes that forwarding needs at its start. With a large table in the kernel even
 * a dump of few routes takes long, and packets wait for it. In this case read only
 * connected subnets and own addresses, or only the rules if a checkpoint had the routes.
 * The other routes are read later.
 */
static int
dump_first(struct rtnl *r)
{
	double begin_s = thread_cpu_s();
	int rc;

	r->large = atomic_load_explicit(&kernel_status.restored, memory_order_relaxed) != 0;
	if (r->large) {
		dump_plan_rules(r);
		return dump_now(r);
	}
	dump_plan(r, DUMP_CONNECTED);
	rc = dump_now(r);
	if (rc < 0)
		return rc;
	r->large = (thread_cpu_s() - begin_s) * 1000 > QUICK_MS;
	if (r->large) {
		r->all_due = true; /* the other routes follow at once */
		return 0;
	}
	dump_plan(r, DUMP_ALL);
	return dump_now(r);
}

static void
rtnl_init_watchers(struct rtnl *r)
{
	ev_io_init(&r->events_io, rtnl_on_events, r->events, EV_READ);
	ev_io_init(&r->dumps_io, rtnl_on_dumps, r->dumps, EV_READ);
	ev_init(&r->resync, rtnl_on_resync);
	ev_init(&r->expiry, rtnl_on_expiry);
	ev_init(&r->cut_again, rtnl_on_cut);
	r->events_io.data = r->dumps_io.data = r->resync.data = r->expiry.data = r;
	r->cut_again.data = r;
}

static void
rtnl_end(struct rtnl *r)
{
	sockets_close(r);
	free(r->buffer);
	free(r->burst);
	free(r->rule);
	rule_names_free(r);
	tables_free(r);
	r->buffer = r->burst = NULL;
	r->rule = NULL;
	r->n_rules = r->room_rules = 0;
	for (unsigned int i = 0; i < r->n_ev; i++)
		fpm_event_clear(&r->ev[i].route);
	r->n_ev = 0;
}

static int
rtnl_init(struct worker *w)
{
	struct rtnl *r = w->ctx;
	int rc;

	r->buffer = malloc(DUMP_BUFFER_BYTES);
	r->burst = malloc((size_t)BURST * DUMP_BUFFER_BYTES);
	rc = r->buffer == NULL || r->burst == NULL ? -ENOMEM : sockets_open(r);
	if (rc == 0) {
		rtnl_init_watchers(r);
		r->starting = true;
		rc = dump_first(r);
		r->starting = false;
	}
	if (rc < 0) {
		log_error("rtnl: routing tables not read netns=%s error=\"%s\"", r->netns,
			  strerror(-rc));
		rtnl_end(r);
		return rc;
	}
	r->dump_begin_ms = monotonic_ms();
	dump_finished(r);
	rtnl_watch(r);
	return 0;
}

static void
rtnl_round(struct worker *w)
{
	struct rtnl *r = w->ctx;

	rtnl_read_rules(r);
	pass_flush(r);
	rtnl_watch(r);
}

static void
rtnl_on_msg(struct worker *w, struct msg *m)
{
	struct rtnl *r = w->ctx;

	switch (m->type) {
	case MSG_REPLAY:
		r->all_due = true;
		rtnl_schedule(r, 0);
		break;
	default:
		assert(!"message not for rtnl");
		break;
	}
	msg_free(m);
}

static void
rtnl_fini(struct worker *w)
{
	struct rtnl *r = w->ctx;

	ev_io_stop(w->loop, &r->events_io);
	ev_io_stop(w->loop, &r->dumps_io);
	ev_timer_stop(w->loop, &r->resync);
	ev_timer_stop(w->loop, &r->expiry);
	ev_timer_stop(w->loop, &r->cut_again);
	rtnl_end(r);
}

static const struct worker_ops rtnl_ops = {
	.name = "rtnl",
	.role = ROLE_RTNL,
	.init = rtnl_init,
	.on_msg = rtnl_on_msg,
	.on_round = rtnl_round,
	.fini = rtnl_fini,
};

int
rtnl_setup(struct worker *w, const struct rtnl_conf *conf)
{
	struct rtnl *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->w = w;
	r->conf = *conf;
	r->events = r->dumps = r->changes = -1;
	if (conf->netns != NULL)
		snprintf(r->netns, sizeof(r->netns), "%s", conf->netns);
	worker_init(w, &rtnl_ops, r);
	return 0;
}

void
rtnl_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
