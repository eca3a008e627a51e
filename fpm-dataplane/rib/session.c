/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of zebra: generations, and the meaning of each event for the replay. [rib]
 *
 * FPM has neither an end mark nor a "delete all". Therefore each connection is a
 * generation, and forwarding continues with the old routes. replay.c finds the end of the
 * replay. sweep.c then removes the routes that the replay did not confirm.
 */
#include "rib/session.h"

#include <linux/rtnetlink.h>

#include "base/fpm_event.h"
#include "base/log.h"
#include "rib/content.h"
#include "rib/early.h"
#include "rib/feedback.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/table_count.h"
#include "rib/words.h"

void
session_up(struct rib *rib, uint32_t gen, uint32_t nl_pid)
{
	static struct log_limit limit; /* for a peer that reconnects in a loop */
	struct rib_session *s = &rib->session;
	uint32_t was_pid = s->nl_pid;
	unsigned int missed;

	early_clear(rib);
	feedback_clear(rib);
	/*
	 * Slots take the last changes of the ended session. commit.c publishes them when
	 * neigh is ready; their legs stay as they are.
	 */
	slots_bind(rib);
	slots_orphan(rib);
	nhs_end_session(rib);
	*s = (struct rib_session){.gen = gen,
				  .nl_pid = nl_pid != 0 ? nl_pid : was_pid,
				  .connected = true,
				  .replaying = true,
				  .vrfs_replaying = true,
				  /*
				   * An unknown id (0) counts as a restart: a late sweep
				   * does no harm, an early sweep could.
				   */
				  .restarted = was_pid != 0 && nl_pid != was_pid};
	s->up_ms = s->last_event_ms = rib->clock_ms();
	mirror_zebra(rib, s->nl_pid, 0);
	/* All routes become stale in one step, by their generation (struct route). */
	table_counts_begin_session(rib);
	s->n_before = rib->table_counts.stale;
	if (log_allowed(&limit, &missed))
		log_info("rib: session up gen=%u stale=%u stale_other_tables=%u "
			 "zebra_restarted=%d missed=%u",
			 gen, rib->table_counts.stale, rib->table_counts.stale_other,
			 s->restarted, missed);
}

void
session_down(struct rib *rib)
{
	static struct log_limit limit;
	struct rib_session *s = &rib->session;
	unsigned int missed;

	if (!s->connected)
		return;
	s->connected = s->replaying = s->vrfs_replaying = s->sweeping = false;
	if (log_allowed(&limit, &missed))
		log_info("rib: session down gen=%u routes=%u missed=%u", s->gen,
			 rib->table_counts.n_zebra[0] + rib->table_counts.n_zebra[1],
			 missed);
}

static bool
event_is_of_main(const struct fpm_event *ev)
{
	return ev->table == 0 || ev->table == RIB_TABLE_MAIN;
}

static bool
event_is_sentinel(const struct fpm_event *ev)
{
	static const struct ipaddr ones = {{255, 255, 255, 255, 255, 255, 255, 255, 255,
					    255, 255, 255, 255, 255, 255, 255}};

	return ev->prefix.len == 128 && ev->rtm_type == RTN_BLACKHOLE &&
	       event_is_of_main(ev) && ipaddr_equal(&ev->prefix.addr, &ones);
}

void
session_event(struct rib *rib, const struct fpm_event *ev)
{
	struct rib_session *s = &rib->session;

	s->n_events++;
	if (ev->kind != FPM_ROUTE && ev->kind != FPM_ROUTE_DEL)
		return;
	if (!event_is_of_main(ev) && ev->table != FPM_TABLE_NONE) {
		s->last_other_ms = s->last_event_ms;
		table_count_mention(rib, ev->table);
	}
	if (ev->kind != FPM_ROUTE)
		return;
	/* A sentinel before any other route is a live route of a restarted staticd. */
	if (!event_is_sentinel(ev)) {
		s->n_routes++;
	} else if (s->n_routes > 0 && !s->sentinel) {
		s->sentinel = true;
		s->sentinel_ms = s->last_event_ms;
	}
}
