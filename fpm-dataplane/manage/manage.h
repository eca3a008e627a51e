/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manage: the thread that changes a running daemon: its configuration, its ports. The only
 * writer of what runs; it may wait, for it holds up nobody.
 */
#ifndef MANAGE_MANAGE_H
#define MANAGE_MANAGE_H

#include "base/worker.h"
#include "config/config.h"
#include "manage/hotplug.h"

struct manage_conf {
	struct config *running; /* W:manage after start  what runs */
	bool poll_always;       /* by the command line, whatever a file says */
	struct worker *rib, *fpm;
	struct hotplug *ports;
};

/* As rib_setup(). Answers MSG_QUERY of base/msg_manage.h.                        [main] */
int manage_setup(struct worker *w, const struct manage_conf *conf);
void manage_teardown(struct worker *w);

/* Have it read its file again, as if asked for by `fpmctl config reload`.        [main] */
void manage_reload(struct worker *w);

#endif
