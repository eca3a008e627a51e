/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hotplug: ports that come and go. While packets pass, forwarders, neigh and punt are brought
 * round one after the other; no other port's queue is touched. All is [manage], but what a
 * start needs too: hotplug_open().
 */
#ifndef MANAGE_HOTPLUG_H
#define MANAGE_HOTPLUG_H

#include "base/worker.h"
#include "config/config.h"
#include "manage/rxq_assign.h"
#include "port/port.h"

/* W:main at start, then manage */
struct hotplug {
	struct port *port; /* PORT_SLOTS of them, shared with all */
	struct rte_mempool *pool;
	const struct deal *deal;
	struct worker *neigh, *punt;
	/* Given out last, 0: none; a number rests before it is used again. */
	uint16_t last_ifidx;
	uint32_t n_come; /* ports that came after the start */
};

/* What stays of a port whose device is exchanged, or of the same port of the last daemon. */
struct hotplug_rest {
	int tap_fd;     /* -1: none */
	uint32_t place; /* 0: as its number */
};

/*
 * Open the device and the TAP of port `cp` of `conf` and publish the port in an empty slot. The
 * first port gets slot 0, the next ones follow. Ownership of the descriptor in `rest` passes.
 * No thread is told of the port and no queue is served yet. Returns 0 with the slot in *slot, or
 * -errno with a sentence in `why`.                              [main at start, then manage]
 */
int hotplug_open(struct hotplug *h, const struct config *conf, const struct config_port *cp,
		 const struct hotplug_rest *rest, struct port **slot, char *why,
		 unsigned int why_size);

/*
 * Make a port as configured in `conf`, and its TAP; with `rest` (not NULL) that one, in the
 * place where it was, its descriptor is ours then. Returns 0, or -errno with all as before
 * and a sentence in `why`.
 */
int hotplug_add(struct hotplug *h, const struct config *conf, const struct config_port *cp,
		const struct hotplug_rest *rest, char *why, unsigned int why_size);

/* What other threads tell of ports; takes the message. */
void hotplug_msg(const struct hotplug *h, struct msg *m);

/* Nobody keeps the TAP of that port any more; it has been closed here. */
void hotplug_forget(const char *tap);

/* The port of that name, or NULL. */
struct port *hotplug_find(const struct hotplug *h, const char *tap);

/*
 * Take a port out: next hops by it are dead at once, what is on its way in it is dropped.
 * With `rest` (not NULL) the TAP stays and its descriptor there is the caller's; else it is
 * deleted.
 */
void hotplug_del(struct hotplug *h, struct port *port, struct hotplug_rest *rest);

/* As if it had not come: a TAP that was there before stays, and nobody keeps it. */
void hotplug_undo(struct hotplug *h, struct port *port);

#endif
