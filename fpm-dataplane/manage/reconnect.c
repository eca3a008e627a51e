/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open the device of a port again, behind the same TAP. A memif client that has no link
 * is opened when its server listens. A device whose kernel interface was deleted is
 * opened when there is an interface of that name again. If the port has no link
 * afterwards, because a server with another id or secret refuses it, the next attempts
 * follow after 2, 4, ... turns, to limit the work of forwarders and the log lines.
 */
#include "manage/reconnect.h"

#include <assert.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/log.h"
#include "base/tsan.h"
#include "manage/ports.h"
#include "manage/reload_ports.h"
#include "pci/kernel_if.h"
#include "pci/memif.h"
#include "restart/fdstore.h"
#include "restart/restart_lock.h"

#define TURN_S         1.
#define WAIT_MAX_TURNS 32
#define KEPT_TURNS     4 /* turns until kept TAPs lose their carrier; NICs: LINK_WAIT_S */

static bool
port_is(const struct reconnect_of *at, const struct config_port *cp)
{
	return strcmp(at->tap, cp->tap) == 0 && strcmp(at->device, cp->device) == 0;
}

/*
 * Return the record of a port's attempts. Records are found by TAP and device, because the
 * numbers of ports change with the configuration. A new port takes over the record of a
 * port that the configuration no longer has; there are as many records as there can be
 * ports.
 */
static struct reconnect_of *
port_tries(struct reconnect *r, const struct config_port *cp)
{
	struct reconnect_of *unused = NULL;

	for (unsigned int i = 0; i < CONFIG_PORTS_MAX; i++) {
		struct reconnect_of *at = &r->port[i];
		const struct config_port *has;

		if (port_is(at, cp))
			return at;
		has = config_port(r->running, at->tap);
		if (unused == NULL && (has == NULL || !port_is(at, has)))
			unused = at;
	}
	assert(unused != NULL);
	*unused = (struct reconnect_of){0};
	snprintf(unused->tap, sizeof(unused->tap), "%s", cp->tap);
	snprintf(unused->device, sizeof(unused->device), "%s", cp->device);
	return unused;
}

/*
 * Return true if the port has its device. `kernel_if` is the name of the kernel interface
 * behind the port, or "". If the port has such an interface, its link shows nothing,
 * because net_af_packet always reports the link as up.
 */
static bool
port_has_device(const struct port *port, const char *kernel_if)
{
	if (port == NULL)
		return false;
	return kernel_if[0] != '\0' ? !port_is_without_if(port) : port_link_up(port);
}

/*
 * Return MEMIF_LISTENS if the device of the port can be opened: its kernel interface
 * exists, or its server listens.
 */
static enum memif_server
device_server(const char *device, const char *kernel_if)
{
	enum memif_server server;

	if (kernel_if[0] != '\0')
		return if_nametoindex(kernel_if) != 0 ? MEMIF_LISTENS : MEMIF_AWAY;
	/* The call may wait. Grace periods do not wait for this thread meanwhile. */
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	server = memif_server(device);
	urcu_qsbr_thread_online();
	return server;
}

static void
port_reconnect(struct reconnect *r, const struct config_port *cp, const char *kernel_if)
{
	struct reconnect_of *tries = port_tries(r, cp);
	const struct port *port = hotplug_find(r->h, cp->tap);
	enum memif_server server;
	char why[256];

	if (port_has_device(port, kernel_if)) {
		tries->wait = 0;
		tries->not_before = 0;
		return;
	}
	/* A new client gets its link after some 100 ms: check again at the next turn. */
	if (tries->wait == 0) {
		tries->wait = 1;
		tries->not_before = r->turn + 1;
	}
	if ((int32_t)(tries->not_before - r->turn) > 0)
		return;
	server = device_server(cp->device, kernel_if);
	if (server == MEMIF_AWAY)
		return;
	tries->wait *= 2;
	if (tries->wait > WAIT_MAX_TURNS)
		tries->wait = WAIT_MAX_TURNS;
	tries->not_before = r->turn + tries->wait;
	if (server == MEMIF_MUTE || !change_lock(false))
		return;
	if (reload_port_again(r->h, r->running, cp, why, sizeof(why)) < 0)
		log_warn("manage: port not opened again name=%s reason=\"%s\"", cp->tap,
			 why);
	else
		log_info("manage: port opened again name=%s reason=%s", cp->tap,
			 kernel_if[0] != '\0' ? "interface-back" : "server-back");
	change_unlock();
}

static void
reconnect_on_turn(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct reconnect *r = timer->data;
	char kernel_if[IF_NAMESIZE];

	(void)loop;
	(void)revents;
	r->turn++;
	ports_answer(r->h->port);
	for (unsigned int i = 0; i < r->running->n_port; i++) {
		const struct config_port *cp = &r->running->port[i];

		kernel_if_of(cp->device, kernel_if);
		if (kernel_if[0] != '\0' || memif_is_client(cp->device))
			port_reconnect(r, cp, kernel_if);
	}
	if (r->turn == KEPT_TURNS)
		fdstore_kept_carriers_off();
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
