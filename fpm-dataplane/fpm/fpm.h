/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm: the socket zebra connects to. Reads as fast as it can, decodes, hands on; never
 * waits for anybody.
 */
#ifndef FPM_FPM_H
#define FPM_FPM_H

#include <sys/socket.h>

#include "base/fpm_allow.h"
#include "base/worker.h"

struct fpm_conf {
	struct worker *rib; /* MSG_FPM_BATCH */
	const char *netns;  /* where to listen */
	struct sockaddr_storage listen;
	struct fpm_from from; /* who may connect */
	uint64_t queue_limit_bytes;
	bool insists; /* start without the address and try it until it can be had */
};

/*
 * Fill `w`; the listening socket is opened by the thread's init, so that worker_start()
 * returns -EADDRINUSE and the like, unless it insists. Returns 0 or -ENOMEM.                        [main]
 */
int fpm_setup(struct worker *w, const struct fpm_conf *conf);
void fpm_teardown(struct worker *w);

#endif
