/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hotplug: add and remove ports while packets pass. The threads neigh and punt and the
 * forwarders learn of a port one after the other. The queues of other ports are not
 * affected.                                     [manage; hotplug_open() also main at start]
 */
#ifndef MANAGE_HOTPLUG_H
#define MANAGE_HOTPLUG_H

#include "base/worker.h"
#include "config/config.h"
#include "manage/rxq_assign.h"
#include "port/port.h"

/* W:main at start, then manage */
struct hotplug {
	struct port *port; /* array of PORT_SLOTS, which all threads share */
	struct rte_mempool *pool;
	const struct rxq_assign *rxq_assign;
	struct worker *neigh, *punt;
	uint16_t last_ifidx; /* number of the port that was added last; 0: none */
	uint32_t n_added;    /* number of ports added since the start */
};

/*
 * The parts of a port that are reused when its device is exchanged, or by a successor of
 * the daemon.
 */
struct hotplug_reuse {
	int tap_fd;     /* -1: none */
	uint32_t place; /* place in the order of ports; 0: use its number */
};

/*
 * Open the device and the TAP of port `cp` of `conf` and publish the port in an empty slot.
 * The first port gets slot 0, the next ports get the following slots. The function takes
 * ownership of the descriptor in `reuse`. It informs no thread about the port, and no queue
 * is served yet. Returns 0 with the slot in *slot, or -errno with a sentence in `why`.
 *                                                             [main at start, then manage]
 */
int hotplug_open(struct hotplug *h, const struct config *conf, const struct config_port *cp,
		 const struct hotplug_reuse *reuse, struct port **slot, char *why,
		 unsigned int why_size);

/*
 * Add port `cp` of `conf`: device, TAP and queues. If `reuse` is not NULL, use its TAP and
 * its place, and take ownership of its descriptor. Else use the TAP that was kept for the
 * port (restart/fdstore.h). Returns 0, or -errno with nothing changed and a sentence in
 * `why`.
 */
int hotplug_add(struct hotplug *h, const struct config *conf, const struct config_port *cp,
		const struct hotplug_reuse *reuse, char *why, unsigned int why_size);

/* Process a message about a port from another thread, and free it. */
void hotplug_msg(const struct hotplug *h, struct msg *m);

/*
 * Remove the descriptor of TAP `tap` from the service manager's store, and delete a TAP
 * that is kept for the port.
 */
void hotplug_unstore(const char *tap);

/* Return the port with that name, or NULL. */
struct port *hotplug_find(const struct hotplug *h, const char *tap);

/*
 * Remove a port. Next hops by this port are dead at once, and packets in its queues are
 * dropped. If `reuse` is not NULL, the TAP stays, and the caller owns the descriptor in
 * `reuse`. Otherwise the TAP is deleted.
 */
void hotplug_del(struct hotplug *h, struct port *port, struct hotplug_reuse *reuse);

/*
 * Undo hotplug_add(). A TAP that existed before stays. If the service manager had the
 * descriptor of the TAP before, it still has it, and the TAP is kept for the port
 * (restart/fdstore.h).
 */
void hotplug_undo(struct hotplug *h, struct port *port);

#endif
