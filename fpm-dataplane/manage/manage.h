/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manage: the thread that changes a running daemon: its configuration and its ports. It is
 * the only writer of the running configuration. It may wait, because no other thread waits
 * for it.
 */
#ifndef MANAGE_MANAGE_H
#define MANAGE_MANAGE_H

#include "base/worker.h"
#include "config/config.h"
#include "manage/hotplug.h"

struct hooks;

struct manage_conf {
	struct config *running; /* W:manage after start */
	bool poll_always;       /* option --poll, which a file does not override */
	struct worker *rib, *fpm, *sflow;
	struct hotplug *ports;
	struct hooks *hooks;
};

/*
 * Fill `w`; worker_start() starts the thread. It answers MSG_QUERY of base/msg_manage.h.
 * Returns 0 or -ENOMEM. [main]
 */
int manage_setup(struct worker *w, const struct manage_conf *conf);
void manage_teardown(struct worker *w);

/*
 * Ask thread manage to read its file again, as `fpmctl config reload` does.
 * [main]
 */
void manage_reload(struct worker *w);

#endif
