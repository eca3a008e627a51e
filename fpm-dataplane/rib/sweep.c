/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of zebra: generations, the end of a replay, the sweep of what it left out. [rib].
 *
 * FPM has neither an end mark nor a "delete all": each connect is a generation, forwarding
 * goes on with the old routes, and what the replay did not confirm is taken out when it is
 * over and rib has handled all that waited. Over is: the sentinel route ffff:...:ffff/128
 * (blackhole) after some other route; or quiet time; or the upper bound. After a restart of zebra, whose protocols learn their
 * routes again over many seconds, not before the hold time. Nothing is swept while zebra is
 * away, and nothing that is not replayed ever: tables that are neither main nor of a VRF, MACs
 * (FPM.md, 6.1). VRFs are replayed after the sentinel, so with VRFs silence alone ends a replay.
 *
 * The sweep goes in slices, so that live updates never wait for it. Nexthop ids need none:
 * they do not outlive their session (nexthop.c), and a slot goes with its last route.
 */
#include <inttypes.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "rib/checkpoint.h"
#include "rib/rib_impl.h"

void
session_up(struct rib *rib, uint32_t gen, uint32_t nl_pid)
{
	struct session *s = &rib->session;
	uint32_t was_pid = s->nl_pid;

	early_clear(rib);
	rib->n_said = rib->retell_at = 0; /* the replay will be acknowledged */
	nh_forget_all(rib);
	*s = (struct session){.gen = gen,
			      .nl_pid = nl_pid != 0 ? nl_pid : was_pid,
			      .connected = true,
			      .replaying = true,
			      /* An unknown id (0) is held as long as another one: the
			       * longer wait harms nobody, the shorter could. */
			      .restarted = was_pid != 0 && nl_pid != was_pid};
	s->up_ms = s->last_event_ms = rib->clock_ms();
	if (rib->ckpt != NULL)
		rib->ckpt->head->nl_pid = s->nl_pid;
	/* All of it, in one step: a route is stale by its generation (struct route). */
	rib->stale = s->n_before = rib->n_zebra[0] + rib->n_zebra[1] + rib->n_labels;
	log_info("rib: session up gen=%u stale=%u zebra_restarted=%d", gen, rib->stale,
		 s->restarted);
}

void
session_down(struct rib *rib)
{
	struct session *s = &rib->session;

	if (!s->connected)
		return;
	s->connected = s->replaying = s->sweeping = false;
	log_info("rib: session down gen=%u routes=%u", s->gen,
		 rib->n_zebra[0] + rib->n_zebra[1]);
}

static bool
is_sentinel(const struct fpm_event *ev)
{
	static const struct ipaddr ones = {{255, 255, 255, 255, 255, 255, 255, 255, 255,
					    255, 255, 255, 255, 255, 255, 255}};

	return ev->prefix.len == 128 && ev->rtm_type == RTN_BLACKHOLE &&
	       (ev->table == 0 || ev->table == RIB_TABLE_MAIN) &&
	       ipaddr_equal(&ev->prefix.addr, &ones);
}

void
session_event(struct rib *rib, const struct fpm_event *ev)
{
	struct session *s = &rib->session;

	s->n_events++;
	if (ev->kind != FPM_ROUTE)
		return;
	/* One that comes before any other route is a live one of a restarted staticd. */
	if (!is_sentinel(ev))
		s->n_routes++;
	else if (s->n_routes > 0)
		s->sentinel = true;
}

/*
 * When the replay counts as over, as far as can be told now: CLOCK_MONOTONIC ms.
 * Events that are still to come may move it.
 */
static uint64_t
end_ms(const struct rib *rib)
{
	const struct session *s = &rib->session;
	uint64_t quiet = s->last_event_ms + rib->conf.sweep_quiet_s * 1000ull;
	uint64_t most = s->up_ms + rib->conf.sweep_max_s * 1000ull;

	if (s->sentinel && rib->n_vrf == 0)
		return s->up_ms;
	return quiet < most ? quiet : most;
}

static uint64_t
hold_ms(const struct rib *rib)
{
	const struct session *s = &rib->session;

	return s->restarted ? s->up_ms + rib->conf.sweep_restart_s * 1000ull : 0;
}

/* Silence ends a replay that said something; a silent zebra has the hold of a restart. */
static bool
has_begun(const struct session *s)
{
	return s->n_events > 0 || s->restarted;
}

/* What still waits in the queue may be of the replay: rib's silence is not zebra's. */
static bool
is_over(const struct rib *rib)
{
	return has_begun(&rib->session) && rib->clock_ms() >= end_ms(rib) &&
	       queue_depth() == 0;
}

/* Which routes of VRFs are, nobody counts. */
static bool
may_be_stale(const struct rib *rib)
{
	return rib->stale > 0 || rib->n_vrf > 0;
}

int64_t
sweep_in_ms(const struct rib *rib, uint64_t now_ms)
{
	const struct session *s = &rib->session;
	uint64_t end, hold;

	if (!s->connected || !s->replaying || !has_begun(s) || !may_be_stale(rib))
		return -1;
	end = end_ms(rib);
	hold = hold_ms(rib);
	if (hold > end)
		end = hold;
	return end <= now_ms ? 0 : (int64_t)(end - now_ms);
}

const char *
session_phase(const struct rib *rib)
{
	const struct session *s = &rib->session;

	if (!s->connected)
		return "away";
	if (!s->replaying)
		return "in-step";
	if (s->sweeping)
		return "sweeping";
	return is_over(rib) ? "holding" : "replaying";
}

static void
replay_done(struct rib *rib, const char *by)
{
	struct session *s = &rib->session;

	s->replaying = s->sweeping = false;
	s->done_ms = rib->clock_ms();
	log_info("rib: replay done gen=%u routes=%u swept=%" PRIu64 " end=%s", s->gen,
		 rib->n_zebra[0] + rib->n_zebra[1], s->swept + s->swept_vrf, by);
}

static const char *
ended_by(const struct rib *rib)
{
	return rib->session.sentinel && rib->n_vrf == 0 ? "sentinel" : "time";
}

/* Is it time? Decides once; then the slices run. */
static void
look_for_end(struct rib *rib)
{
	struct session *s = &rib->session;
	uint64_t now = rib->clock_ms();

	if (!is_over(rib))
		return;
	if (!may_be_stale(rib) && rib->n_early == 0) {
		replay_done(rib, ended_by(rib));
		return;
	}
	if (now < hold_ms(rib))
		return;
	early_bind(rib, true);
	s->sweeping = true;
	s->sweep_at = 1;
}

bool
sweep_round(struct rib *rib)
{
	struct session *s = &rib->session;
	uint32_t end, all = rib_walk_end(rib);

	if (!s->connected || !s->replaying)
		return false;
	if (!s->sweeping)
		look_for_end(rib);
	if (!s->sweeping)
		return false;
	end = s->sweep_at + RIB_SLICE;
	for (; s->sweep_at < end && s->sweep_at <= all; s->sweep_at++) {
		struct route *r = rib_walk_at(rib, s->sweep_at);

		if (r == NULL || r->zslot == 0 || r->gen == s->gen || !is_swept(rib, r))
			continue;
		s->swept += is_replayed(r);
		s->swept_vrf += !is_replayed(r);
		zebra_withdraw(rib, r);
		rib->count.swept_routes++;
	}
	if (s->sweep_at <= all && may_be_stale(rib))
		return true;
	rib->count.sweeps++;
	replay_done(rib, ended_by(rib));
	return false;
}
