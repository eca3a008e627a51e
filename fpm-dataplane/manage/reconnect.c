/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port without a link whose server listens is opened again behind the same TAP. If it has
 * no link afterwards (a server with another id or secret refuses it), the next tries come
 * after 2, 4, ... turns, so that forwarders and the log are left in peace.
 */
#include "manage/reconnect.h"

#include <urcu/urcu-qsbr.h>

#include "base/log.h"
#include "base/tsan.h"
#include "manage/reload_ports.h"
#include "pci/memif.h"
#include "restart/restart_lock.h"

#define TURN_S         1.
#define WAIT_MAX_TURNS 32

bool
reconnect_waits(const struct config_port *cp)
{
	return memif_is_client(cp->device) && memif_server(cp->device) != MEMIF_LISTENS;
}

static void
port_reconnect(struct reconnect *r, unsigned int i)
{
	const struct config_port *cp = &r->running->port[i];
	const struct port *port = hotplug_find(r->h, cp->tap);
	enum memif_server server;
	char why[256];

	if (port != NULL && port_link_up(port)) {
		r->wait[i] = 0;
		r->not_before[i] = 0;
		return;
	}
	/* A new client has its link after some 100 ms: look again at the next turn. */
	if (r->wait[i] == 0) {
		r->wait[i] = 1;
		r->not_before[i] = r->turn + 1;
	}
	if ((int32_t)(r->not_before[i] - r->turn) > 0)
		return;
	/* It may wait for an answer: grace periods need not. */
	GRACE_LET_GO();
	urcu_qsbr_thread_offline();
	server = memif_server(cp->device);
	urcu_qsbr_thread_online();
	if (server == MEMIF_AWAY)
		return;
	r->wait[i] *= 2;
	if (r->wait[i] > WAIT_MAX_TURNS)
		r->wait[i] = WAIT_MAX_TURNS;
	r->not_before[i] = r->turn + r->wait[i];
	if (server == MEMIF_MUTE || !change_lock(false))
		return;
	log_info("manage: server is back, port is opened again name=%s", cp->tap);
	if (reload_port_again(r->h, r->running, cp, why, sizeof(why)) < 0)
		log_warn("manage: port not opened again name=%s reason=\"%s\"", cp->tap,
			 why);
	change_unlock();
}

static void
reconnect_on_turn(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct reconnect *r = timer->data;

	(void)loop;
	(void)revents;
	r->turn++;
	for (unsigned int i = 0; i < r->running->n_port; i++)
		if (memif_is_client(r->running->port[i].device))
			port_reconnect(r, i);
}

void
reconnect_begin(struct reconnect *r, struct ev_loop *loop, struct hotplug *h,
		const struct config *running)
{
	r->h = h;
	r->running = running;
	ev_timer_init(&r->timer, reconnect_on_turn, TURN_S, TURN_S);
	r->timer.data = r;
	ev_timer_start(loop, &r->timer);
}

void
reconnect_end(struct reconnect *r, struct ev_loop *loop)
{
	ev_timer_stop(loop, &r->timer);
}
