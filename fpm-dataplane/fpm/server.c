/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread: listens for zebra and serves one client at a time. A new client replaces
 * the old client, because the old client is a zebra that died without closing its
 * connection. The thread reads everything that zebra sends and never waits for rib. It
 * acknowledges routes when rib requests it (feedback.c).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/msg_manage.h"
#include "fpm/impl.h"

static void
fpm_on_accept(struct ev_loop *loop, ev_io *io, int revents)
{
	struct fpm *fpm = io->data;
	struct sockaddr_storage peer;
	unsigned int missed;
	int fd = listen_accept(fpm, &peer);

	if (fd < 0)
		return;
	if (fpm->session.fd >= 0) {
		status_add(&fpm_status.replaced, 1);
		session_close(fpm, SESSION_REPLACED, 0);
	}
	if (session_open(fpm, fd, &peer) < 0) {
		if (log_allowed(&fpm->memory_log, &missed))
			log_error("fpm: session refused reason=no-memory missed=%u",
				  missed);
		listen_pause(fpm);
	}
}

/*
 * Begin or end a hold. Pass the query on to rib, which replies after it has handled all
 * earlier events.
 */
static void
fpm_on_hold(struct fpm *fpm, struct msg_hold *m)
{
	if (fpm_hold_select(fpm)) {
		if (m->seconds > 0)
			session_close(fpm, SESSION_HOLD, 0);
		fpm_hold_set(fpm, m->seconds);
	}
	m->q.m.type = MSG_HELD;
	worker_send(fpm->queue.rib, &m->q.m);
}

static int
fpm_init(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	ev_init(&fpm->accept, fpm_on_accept);
	fpm->accept.data = fpm;
	fpm_hold_begin(fpm);
	return fpm->conf.off ? 0 : listen_begin(fpm);
}

/* Send the events of this round to rib. */
static void
fpm_round(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	if (queue_flush(&fpm->queue) == 0)
		return;
	listen_pause(fpm); /* the timer of the pause starts a round, which flushes again */
	if (fpm->session.fd >= 0) {
		status_add(&fpm_status.overflows, 1);
		session_close(fpm, SESSION_NO_MEMORY, 0);
	}
}

static void
fpm_set_limit(struct fpm *fpm, uint64_t bytes)
{
	fpm->conf.queue_limit_bytes = fpm->queue.limit_bytes = bytes;
	atomic_store_explicit(&fpm_status.queue_limit_bytes, bytes, memory_order_relaxed);
}

static void
fpm_on_msg(struct worker *w, struct msg *m)
{
	switch (m->type) {
	case MSG_FEEDBACK:
		session_acknowledge(w->ctx, (struct msg_feedback *)m);
		break;
	case MSG_REPLAY:
		session_close(w->ctx, SESSION_REPLAY, 0); /* zebra reconnects after 3 s */
		break;
	case MSG_SETTINGS:
		fpm_set_limit(w->ctx, ((struct msg_settings *)m)->queue_limit_bytes);
		break;
	case MSG_QUERY:
		fpm_on_hold(w->ctx, (struct msg_hold *)m);
		return; /* rib owns the message now */
	default:
		assert(!"message not for fpm");
		break;
	}
	msg_free(m);
}

static void
fpm_fini(struct worker *w)
{
	struct fpm *fpm = w->ctx;

	session_close(fpm, SESSION_STOP, 0);
	queue_drop(&fpm->queue);
	fpm_hold_end(fpm);
	listen_end(fpm);
}

static const struct worker_ops fpm_ops = {
	.name = "fpm",
	.role = ROLE_FPM,
	.init = fpm_init,
	.on_msg = fpm_on_msg,
	.on_round = fpm_round,
	.fini = fpm_fini,
};

int
fpm_setup(struct worker *w, const struct fpm_conf *conf)
{
	struct fpm *fpm = calloc(1, sizeof(*fpm));

	if (fpm == NULL)
		return -ENOMEM;
	fpm->w = w;
	fpm->conf = *conf;
	if (conf->netns != NULL)
		snprintf(fpm->netns, sizeof(fpm->netns), "%s", conf->netns);
	fpm->conf.netns = fpm->netns;
	fpm->checks_users = conf->from.users == FPM_USERS_LISTED || conf->from.n_user > 0;
	fpm->all_users_mapped = peer_users_all_mapped();
	if (conf->from.users == FPM_USERS_AUTO && !fpm->checks_users)
		log_warn("fpm: users of connections not checked reason=no-user-frr "
			 "see=fpm.users");
	fpm->listen_fd = -1;
	fpm->session.fd = -1;
	fpm->queue.rib = conf->rib;
	fpm_set_limit(fpm, conf->queue_limit_bytes);
	worker_init(w, &fpm_ops, fpm);
	return 0;
}

void
fpm_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
