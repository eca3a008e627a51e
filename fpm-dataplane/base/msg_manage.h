/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_manage: messages for changes of a running daemon: requests from ui to the manage
 * thread, and notifications from the manage thread to others. They extend the messages of
 * base/msg.h.
 */
#ifndef BASE_MSG_MANAGE_H
#define BASE_MSG_MANAGE_H

#include <net/if.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hook_conf.h"
#include "base/msg.h"
#include "base/policer.h"
#include "base/sflow_conf.h"

enum manage_op {
	MANAGE_NOTHING,
	MANAGE_SHOW, /* the running configuration as YAML: one row `{yaml}` */
	MANAGE_KEYS, /* all keys that a file may have, one row each */
	/* read `file`, apply the differences; a row for each difference or error */
	MANAGE_RELOAD,
	MANAGE_PORT_ADD, /* add a port with `tap`, `device`, ... */
	MANAGE_PORT_SET, /* change values of port `tap` */
	MANAGE_PORT_DEL,
	MANAGE_POLICER,     /* use `policer` for `class` from now on */
	MANAGE_HOOK_LOAD,   /* store the part of a program in `hook` */
	MANAGE_HOOK_UNLOAD, /* remove the program of `hook.dev` */
};

#define MANAGE_FILE_MAX  256
#define MANAGE_CORES_MAX 64

struct manage_want {
	enum manage_op op;
	bool dry_run;               /* RELOAD: report only */
	char file[MANAGE_FILE_MAX]; /* RELOAD; "": the file of the start */
	/* tap: 64 octets, because a client may give an alternative name: ui replaces it */
	char tap[64], device[256];           /* "": not given */
	unsigned int mtu_bytes, n_rxq;       /* 0: not given */
	bool cores_auto;                     /* cores: auto */
	unsigned int n_core;                 /* 0: not given */
	unsigned int core[MANAGE_CORES_MAX]; /* CPU that serves queue 0, 1, ... */
	enum punt_class class;
	struct policer_conf policer; /* POLICER_KEEP: the number stays */
	struct hook_want hook;
};

/* The value for a policer number that a request does not change. */
#define POLICER_KEEP (POLICER_UNLIMITED - 1)

/* MSG_QUERY of kind QUERY_MANAGE, and its MSG_REPLY: all rows in one reply. */
struct msg_manage {
	struct msg_query q;
	struct manage_want want;
	char error[512]; /* the reason why nothing was changed; "": done */
	bool is_missing; /* with `error`: no port or interface has this name */
	bool is_barred;  /* with `error`: a restart is under way (restart_lock.h) */
};

/* MSG_SETTINGS: settings of rib and fpm. */
struct msg_settings {
	struct msg m;
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	bool feedback, through_kernel;
	uint64_t queue_limit_bytes;
};

/* MSG_SFLOW: settings of sFlow. */
struct msg_sflow {
	struct msg m;
	struct sflow_conf conf;
};

/*
 * MSG_PORT: the port in slot ifidx - 1 of the receiver's array is in use from now on, or
 * `gone`. The receiver posts `done` when it has handled the message: after `gone` it no
 * longer reads the port and has released all objects of the port.
 */
struct msg_port {
	struct msg m;
	uint16_t ifidx;
	bool gone;
	sem_t *done; /* the manage thread waits for it */
};

#endif
