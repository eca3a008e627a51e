/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session: the sessions of bfdd, and the effects when the state machine changes a session:
 * bfdd gets a report (report.c), rib leaves the next hop out of its groups (hop.c), the
 * forwarders get other packets (beat.c).
 *
 * A session whose connection to bfdd has ended (an orphan) is kept for BFD_HOLD_NS. If bfdd
 * sends a session with the same addresses in this time, the kept session continues: the
 * peer sees the same discriminator and notices nothing.                              [bfd]
 */
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/bfd_status.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "bfd/impl.h"
#include "fib/fib.h"

#define SEARCHES 64u /* with more sessions, a place is searched every TURNS seconds */
#define TURNS    16u

/* Return a discriminator for a slot: its low bits are the number of the slot. */
static uint32_t
discr_draw(struct bfd *b, uint32_t slot)
{
	return (random_draw(b) & ~(BFD_SLOTS - 1)) | slot;
}

static void
slot_clear(struct bfd_slot *slot)
{
	atomic_store_explicit(&slot->heard_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->n_heard, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->n_sent, 0, memory_order_relaxed);
}

/* --- the effects of a change ---------------------------------------------------------- */

static const char *
session_text(const struct session *s, char buf[PREFIX_STRLEN + 32])
{
	ipaddr_str(&s->k->told.dst, s->k->told.family, buf);
	if (s->k->told.ifname[0] != '\0') {
		char name[4 * IFNAMSIZ];

		strcat(buf, " dev=");
		strncat(buf,
			log_escape(s->k->told.ifname,
				   strnlen(s->k->told.ifname, IFNAMSIZ - 1), name,
				   sizeof(name)),
			31 - 5);
	}
	return buf;
}

/* Return the time at which the hold of an orphan session ends. */
static uint64_t
hold_end(const struct session *s)
{
	return s->k->conn < 0 && !s->k->leaving ? s->orphan_ns + BFD_HOLD_NS : DUE_NEVER;
}

static void
timers_renew(struct bfd *b, struct session *s)
{
	const struct bfd_fsm *f = &s->k->fsm;
	uint64_t end = hold_end(s);

	/*
	 * At silent_at, a session in AdminDown stops sending, and a leaving session ends.
	 */
	if (f->silent_at < end && (s->k->leaving || f->silent_at > monotonic_ns()))
		end = f->silent_at;
	timer_set(b, s, TIMER_DETECT, bfd_fsm_expire_at(f));
	timer_set(b, s, TIMER_END, end);
}

static void
state_log(const struct session *s, bool failed)
{
	const struct bfd_fsm *f = &s->k->fsm;
	char peer[PREFIX_STRLEN + 32];

	if (f->state == BFD_UP)
		log_info("bfd: session up peer=%s detect_us=%llu", session_text(s, peer),
			 (unsigned long long)bfd_fsm_detect_us(f));
	else if (failed)
		log_warn("bfd: session down peer=%s reason=%s", session_text(s, peer),
			 bfd_diag_name(f->diag));
	else
		log_info("bfd: session %s peer=%s", bfd_state_name(f->state),
			 session_text(s, peer));
}

void
session_end_due(struct bfd *b, struct session *s)
{
	if (s->k->leaving) {
		session_end(b, s);
	} else if (monotonic_ns() >= hold_end(s)) {
		session_leave(b, s);
	} else { /* AdminDown was announced for long enough */
		beat_publish(b, s, false, false);
		timers_renew(b, s);
	}
}

void
session_obey(struct bfd *b, struct session *s, unsigned int act)
{
	bool now = (act & BFD_ACT_SEND) != 0;
	bool failed = s->k->fsm.n_downs != s->n_downs;

	/* Handle the effects on packets first, then the reports. */
	session_prune(b, s);
	if ((act & BFD_ACT_STATE) != 0)
		s->since_ms = boottime_ms();
	if (failed)
		STATUS_ADD(downs, 1);
	s->n_downs = s->k->fsm.n_downs;
	if ((act & ~(unsigned int)BFD_ACT_FOREIGN) != 0)
		beat_publish(b, s, now, (act & BFD_ACT_FINAL) != 0);
	timers_renew(b, s);
	if ((act & (BFD_ACT_STATE | BFD_ACT_REMOTE)) != 0)
		session_report(b, s);
	if ((act & BFD_ACT_STATE) != 0)
		state_log(s, failed);
}

/* --- sessions come and go ------------------------------------------------------------- */

/* Return a free number; 0: none. */
static uint32_t
number_take(struct bfd *b)
{
	for (uint32_t i = 1; i < b->high; i++)
		if (b->session[i].k == NULL)
			return i;
	return b->high < BFD_SESSIONS ? b->high++ : 0;
}

static void
peer_tell(struct bfd *b, const struct session *s)
{
	struct msg_bfd_peer *m;

	if (s->place.by == BY_NONE)
		return;
	m = msg_new(MSG_BFD_PEER, sizeof(*m));
	m->vrf = s->place.vrf;
	m->family = s->k->told.family;
	m->addr = s->k->told.dst;
	worker_send(b->setup.punt, &m->m);
}

void
sessions_tell_peers(struct bfd *b)
{
	for (uint32_t i = 1; i < b->high; i++)
		if (b->session[i].k != NULL)
			peer_tell(b, &b->session[i]);
}

static void
session_place(struct bfd *b, struct session *s)
{
	const char *reason = s->place.reason;
	char peer[PREFIX_STRLEN + 32];

	place_find(b, &s->k->told, &s->place);
	if (s->place.by == BY_NONE && s->place.reason != reason)
		log_warn("bfd: session not served peer=%s reason=\"%s\"",
			 session_text(s, peer), s->place.reason);
	peer_tell(b, s);
}

static bool
place_equal(const struct place *a, const struct place *b)
{
	return a->by == b->by && a->ifidx == b->ifidx && a->vrf == b->vrf &&
	       a->ifindex == b->ifindex && ipaddr_equal(&a->local, &b->local) &&
	       a->reason == b->reason;
}

void
sessions_place(struct bfd *b)
{
	for (uint32_t i = 1; i < b->high; i++) {
		struct session *s = &b->session[i];
		struct place was = s->place;
		bool up = s->k != NULL && s->k->fsm.state == BFD_UP;

		/* Each search makes system calls, so with many sessions they take turns. */
		if (s->k == NULL ||
		    ((s->place.by != BY_FORWARDERS || !up) && b->n_sessions > SEARCHES &&
		     (i + b->n_ticks) % TURNS != 0))
			continue;
		if (place_holds(b, &s->k->told, &s->place, up)) {
			session_prune_moved(b, s);
			continue;
		}
		session_place(b, s);
		if (place_equal(&was, &s->place))
			continue;
		kept_open(s->k);
		session_prune(b, s);
		kept_close(s->k);
		beat_publish(b, s, false, false);
		timers_renew(b, s);
	}
}

/* Return true if two messages are about the same session of the network. */
static bool
told_equal(const struct bfd_dplane_session *a, const struct bfd_dplane_session *b)
{
	return a->family == b->family && ipaddr_equal(&a->src, &b->src) &&
	       ipaddr_equal(&a->dst, &b->dst) && a->ifindex == b->ifindex &&
	       strcmp(a->ifname, b->ifname) == 0 &&
	       ((a->flags ^ b->flags) & BFD_DPLANE_MULTIHOP) == 0;
}

/* Return true if a message with a session's number can be an update of that session. */
static bool
told_is_update(const struct bfd_dplane_session *a, const struct bfd_dplane_session *b)
{
	return a->family == b->family && ipaddr_equal(&a->dst, &b->dst) &&
	       ((a->flags ^ b->flags) & BFD_DPLANE_MULTIHOP) == 0;
}

/*
 * Store a message about a session, but keep the known interface if the message has none.
 * After an interface was deleted, bfdd leaves it out of later messages, even when an
 * interface of the same name exists again.
 */
static void
told_keep(struct bfd_dplane_session *kept, const struct bfd_dplane_session *told)
{
	struct bfd_dplane_session was = *kept;

	*kept = *told;
	if (was.lid == told->lid && told->ifindex == 0 && told->ifname[0] == '\0') {
		kept->ifindex = was.ifindex;
		memcpy(kept->ifname, was.ifname, sizeof(kept->ifname));
	}
}

/* Return true if bfdd no longer has the session. */
static bool
session_waits(const struct session *s)
{
	return s->k != NULL && (s->k->conn < 0 || s->k->leaving);
}

/* Find the session that bfdd no longer has and that the message describes. */
static struct session *
session_adopt(struct bfd *b, const struct bfd_dplane_session *told)
{
	struct place place;

	for (uint32_t i = 1; i < b->high; i++)
		if (session_waits(&b->session[i]) &&
		    told_equal(&b->session[i].k->told, told))
			return &b->session[i];
	/* bfdd may send src or the interface now, and may have left it out before. */
	place_find(b, told, &place);
	for (uint32_t i = 1; i < b->high; i++) {
		struct session *s = &b->session[i];

		if (session_waits(s) && place.by != BY_NONE && s->place.by == place.by &&
		    s->k->told.family == told->family &&
		    ipaddr_equal(&s->k->told.dst, &told->dst) &&
		    ipaddr_equal(&s->place.local, &place.local) &&
		    s->place.ifidx == place.ifidx && s->place.vrf == place.vrf &&
		    s->place.ifindex == place.ifindex &&
		    ((s->k->told.flags ^ told->flags) & BFD_DPLANE_MULTIHOP) == 0)
			return s;
	}
	return NULL;
}

static struct session *
session_new(struct bfd *b, const struct bfd_dplane_session *told,
	    const struct bfd_conf *conf)
{
	uint32_t number = number_take(b);
	struct session *s = &b->session[number];

	if (number == 0)
		return NULL;
	*s = (struct session){.k = &b->kept[number],
			      .number = number,
			      .kernel_tx = -1,
			      .since_ms = boottime_ms()};
	kept_open(s->k);
	s->k->used = true;
	s->k->leaving = s->k->pruned = false;
	s->k->mac = 0;
	s->k->n_rx = s->k->n_tx = 0;
	memset(s->k->by_slots, 0, sizeof(s->k->by_slots));
	s->k->src_port = (uint16_t)(BFD_PORT_LEAST + number); /* unique: RFC 5881, 4 */
	s->k->echo_discr = discr_draw(b, BFD_SESSIONS + number);
	s->k->told = *told;
	bfd_fsm_begin(&s->k->fsm, discr_draw(b, number), conf, monotonic_ns());
	kept_close(s->k);
	slot_clear(&b->setup.table->slot[number]);
	slot_clear(&b->setup.table->slot[BFD_SESSIONS + number]);
	b->n_sessions++;
	session_place(b, s);
	return s;
}

void
session_told(struct bfd *b, int conn, const struct bfd_dplane_session *told)
{
	struct session *s = session_by_lid(b, told->lid);
	unsigned int act = 0;
	struct bfd_conf conf;

	bfd_dplane_conf(told, &conf);
	if (s != NULL && !told_is_update(&s->k->told, told)) {
		session_leave(b, s); /* the number now belongs to another session */
		s = NULL;
	}
	if (s == NULL)
		s = session_adopt(b, told);
	if (s == NULL) {
		s = session_new(b, told, &conf);
		if (s == NULL) {
			static struct log_limit limit;
			unsigned int missed;

			if (log_allowed(&limit, &missed))
				log_warn("bfd: session refused reason=too-many max=%u "
					 "missed=%u",
					 BFD_SESSIONS - 1, missed);
			return;
		}
		act = BFD_ACT_STATE;
		if (bfd_fsm_tx_us(&s->k->fsm) != 0)
			act |= BFD_ACT_SEND;
	} else {
		kept_open(s->k);
		told_keep(&s->k->told, told);
		s->k->leaving = false;
		s->k->conn = conn;
		act |= bfd_fsm_configure(&s->k->fsm, &conf, monotonic_ns());
		kept_close(s->k);
		session_place(b, s);
	}
	s->k->conn = conn;
	/* bfdd considers the session Down: report its state. */
	session_obey(b, s, act | BFD_ACT_REMOTE | BFD_ACT_TX);
}

void
session_leave(struct bfd *b, struct session *s)
{
	unsigned int act;

	kept_open(s->k);
	s->k->leaving = true;
	act = bfd_fsm_shutdown(&s->k->fsm, true, monotonic_ns());
	kept_close(s->k);
	s->k->conn = -1;
	if (s->k->fsm.your_discr == 0 || s->place.by == BY_NONE)
		session_end(b, s);
	else
		session_obey(b, s, act);
}

void
session_untold(struct bfd *b, const struct bfd_dplane_session *told)
{
	struct session *s = session_by_lid(b, told->lid);

	if (s != NULL)
		session_leave(b, s);
}

uint32_t
sessions_orphan(struct bfd *b, int conn)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < b->high; i++) {
		struct session *s = &b->session[i];

		if (s->k == NULL || s->k->conn != conn)
			continue;
		s->k->conn = -1;
		s->orphan_ns = monotonic_ns();
		timers_renew(b, s);
		n++;
	}
	return n;
}

void
session_end(struct bfd *b, struct session *s)
{
	struct bfd_dplane_counters c;

	beat_end(b, s);
	for (unsigned int t = 0; t < N_TIMER; t++)
		timer_set(b, s, (enum bfd_timer)t, DUE_NEVER);
	session_counters(b, s, &c);
	b->ended_rx += c.control_in_packets;
	b->ended_tx += c.control_out_packets;
	kept_open(s->k);
	s->k->leaving = true;
	session_prune(b, s);
	s->k->used = false;
	kept_close(s->k);
	s->k = NULL;
	b->n_sessions--;
}

/* Make a session of each record of the previous daemon. */
static void
sessions_take_over(struct bfd *b, uint64_t now)
{
	for (uint32_t i = 1; i < BFD_SESSIONS; i++) {
		struct kept *k = &b->kept[i];
		struct session *s = &b->session[i];

		if (!k->used)
			continue;
		*s = (struct session){
			.k = k, .number = i, .orphan_ns = now, .kernel_tx = -1};
		s->since_ms = boottime_ms() - (now - k->fsm.state_at) / 1000000;
		memcpy(s->before, k->by_slots, sizeof(s->before));
		s->n_downs = k->fsm.n_downs;
		b->high = i + 1;
		b->n_sessions++;
	}
}

void
sessions_resume(struct bfd *b)
{
	uint64_t now = monotonic_ns();

	/*
	 * Take over all sessions first, because session_prune() checks whether another
	 * session has the same next hop.
	 */
	sessions_take_over(b, now);
	for (uint32_t i = 1; i < b->high; i++) {
		struct session *s = &b->session[i];
		struct kept *k = s->k;

		if (k == NULL)
			continue;
		kept_open(k);
		bfd_fsm_resume(&k->fsm, now);
		if (k->conn < 0 || k->conn >= (int)BFD_CONNS_MAX || b->conn[k->conn].fd < 0)
			k->conn = -1;
		session_place(b, s);
		session_prune(b, s);
		kept_close(k);
		beat_publish(b, s, session_tx_us(s) != 0, false);
		timers_renew(b, s);
		/*
		 * The last daemon may have been killed between a change of state and its
		 * report. conn_repeat() repeats the reports of Up sessions anyway.
		 */
		if (k->fsm.state != BFD_UP)
			session_report(b, s);
	}
	if (b->n_sessions > 0)
		log_info("bfd: sessions taken over sessions=%u", b->n_sessions);
}
