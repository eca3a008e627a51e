/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the end of a replay, for which FPM has no mark. [rib]
 *
 * The replay of main is over in one of three cases: the sentinel route ffff:...:ffff/128
 * (blackhole) has arrived after some other route; no event has arrived for some time; or
 * the upper bound is reached. zebra replays VRFs after the sentinel, which is the last
 * route of main. Their end is a time without events of VRFs, or the same upper bound.
 */
#include "rib/replay.h"

#include "rib/impl.h"
#include "rib/session.h"
#include "rib/table_count.h"

static uint64_t
time_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
time_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Return the time at which the replay ends if no event comes after `since_ms`. It is never
 * later than the upper bound.
 */
static uint64_t
replay_quiet_ms(const struct rib *rib, uint64_t since_ms)
{
	return time_min(since_ms + rib->conf.sweep_quiet_s * 1000ull,
			rib->session.up_ms + rib->conf.sweep_max_s * 1000ull);
}

/*
 * Return the time (CLOCK_MONOTONIC, ms) at which the replay of main is over, or for
 * replay_vrfs_end_ms() that of VRFs, as far as it is known now. Later events may change it.
 */
static uint64_t
replay_end_ms(const struct rib *rib)
{
	const struct rib_session *s = &rib->session;

	return s->sentinel ? s->up_ms : replay_quiet_ms(rib, s->last_event_ms);
}

static uint64_t
replay_vrfs_end_ms(const struct rib *rib)
{
	const struct rib_session *s = &rib->session;

	/* Events of main do not count after the sentinel. */
	return replay_quiet_ms(rib, s->sentinel ? time_max(s->sentinel_ms, s->last_other_ms)
						: s->last_event_ms);
}

uint64_t
replay_hold_ms(const struct rib *rib)
{
	const struct rib_session *s = &rib->session;

	return s->restarted ? s->up_ms + rib->conf.sweep_restart_s * 1000ull : 0;
}

/*
 * Return true if a time without events may end the replay, that is, if the replay has
 * begun. A restarted zebra may also send nothing: replay_hold_ms() then delays the sweep.
 */
static bool
replay_has_begun(const struct rib_session *s)
{
	return s->n_events > 0 || s->restarted;
}

/*
 * Return true if the replay is over at `at_ms` and no event is queued. A queued event may
 * belong to the replay.
 */
static bool
replay_is_over(const struct rib *rib, uint64_t at_ms)
{
	return replay_has_begun(&rib->session) && rib->clock_ms() >= at_ms &&
	       queue_depth() == 0;
}

bool
replay_main_is_over(const struct rib *rib)
{
	return replay_is_over(rib, replay_end_ms(rib));
}

bool
replay_vrfs_are_over(const struct rib *rib)
{
	return replay_is_over(rib, replay_vrfs_end_ms(rib));
}

bool
replay_is_complete(const struct rib *rib)
{
	return rib->session.connected && !rib->session.replaying &&
	       replay_vrfs_are_over(rib);
}

static int64_t
sweep_left_ms(const struct rib *rib, uint64_t at_ms, uint64_t now_ms)
{
	uint64_t end = time_max(at_ms, replay_hold_ms(rib));

	if (!rib->session.connected || !replay_has_begun(&rib->session))
		return -1;
	return end <= now_ms ? 0 : (int64_t)(end - now_ms);
}

int64_t
sweep_in_ms(const struct rib *rib, uint64_t now_ms)
{
	if (!rib->session.replaying || rib->table_counts.stale == 0)
		return -1;
	return sweep_left_ms(rib, replay_end_ms(rib), now_ms);
}

int64_t
sweep_vrfs_in_ms(const struct rib *rib, uint64_t now_ms)
{
	if (!rib->session.vrfs_replaying || rib->table_counts.stale_other == 0)
		return -1;
	return sweep_left_ms(rib, replay_vrfs_end_ms(rib), now_ms);
}

static const char *
replay_phase(const struct rib *rib, bool replaying, bool sweeping, uint64_t at_ms)
{
	if (!rib->session.connected)
		return "away";
	if (!replaying)
		return "in-step";
	if (sweeping)
		return "sweeping";
	return replay_is_over(rib, at_ms) ? "holding" : "replaying";
}

const char *
session_phase(const struct rib *rib)
{
	const struct rib_session *s = &rib->session;

	return replay_phase(rib, s->replaying, s->sweeping, replay_end_ms(rib));
}

const char *
session_vrf_phase(const struct rib *rib)
{
	const struct rib_session *s = &rib->session;

	return replay_phase(rib, s->vrfs_replaying, s->sweeping && !s->replaying,
			    replay_vrfs_end_ms(rib));
}
