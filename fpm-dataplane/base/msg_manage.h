/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_manage: what changes while the daemon runs, asked for by ui, done by the manage thread,
 * and what it tells others of it. The messages of base/msg.h that carry it.
 */
#ifndef BASE_MSG_MANAGE_H
#define BASE_MSG_MANAGE_H

#include <net/if.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/msg.h"
#include "base/policer.h"

enum manage_op {
	MANAGE_NOTHING,
	MANAGE_SHOW, /* what runs, as YAML: one row `{yaml}` */
	MANAGE_KEYS, /* all keys that a file may have, a row each */
	MANAGE_RELOAD, /* read `file`, apply what differs; rows of what differs, or is wrong */
	MANAGE_PORT_ADD, /* a port of `tap`, `device`, ... */
	MANAGE_PORT_SET, /* other values for port `tap` */
	MANAGE_PORT_DEL,
	MANAGE_POLICER, /* `policer` is in force for `class` from now on */
};

#define MANAGE_FILE_MAX  256
#define MANAGE_CORES_MAX 64

struct manage_want {
	enum manage_op op;
	bool dry_run;                        /* RELOAD: only tell */
	char file[MANAGE_FILE_MAX];          /* RELOAD; "": the one of the start */
	char tap[IFNAMSIZ], device[256];     /* "": not given */
	unsigned int mtu_bytes, n_rxq;       /* 0: not given */
	bool cores_auto;                     /* whoever serves a queue may go on */
	unsigned int n_core;                 /* 0: not given */
	unsigned int core[MANAGE_CORES_MAX]; /* CPU that serves queue 0, 1, ... */
	enum punt_class class;
	struct policer_conf policer; /* a number is POLICER_KEEP: as it is */
};

/* A number of a policer that a request leaves as it is. */
#define POLICER_KEEP (POLICER_UNLIMITED - 1)

/* MSG_QUERY of kind QUERY_MANAGE, and its MSG_REPLY: done at once, as one row or many. */
struct msg_manage {
	struct msg_query q;
	struct manage_want want;
	char error[512]; /* why nothing was changed; "": done */
	bool is_missing; /* with it: because there is no port of that name */
	bool is_barred;  /* with it: because a restart is under way (restart_lock.h) */
};

/* MSG_SETTINGS: numbers that rib and fpm go by. */
struct msg_settings {
	struct msg m;
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	bool feedback;
	uint64_t queue_limit_bytes;
};

/*
 * MSG_PORT: the port in slot ifidx - 1 of everybody's array is there from now on, or `gone`:
 * who posts `done` looks at it no more, and has let go of what hung on it.
 */
struct msg_port {
	struct msg m;
	uint16_t ifidx;
	bool gone;
	sem_t *done; /* manage waits for it */
};

#endif
