/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm: the thread that accepts zebra's FPM connection. It reads as fast as it can, decodes
 * the messages and sends the events to rib. It never waits for another thread.
 */
#ifndef FPM_FPM_H
#define FPM_FPM_H

#include <sys/socket.h>

#include "base/fpm_allow.h"
#include "base/worker.h"

struct fpm_conf {
	struct worker *rib; /* receives MSG_FPM_BATCH */
	const char *netns;  /* namespace to listen in */
	struct sockaddr_storage listen;
	struct fpm_from from; /* peers and users that may connect */
	uint64_t queue_limit_bytes;
	bool off; /* zebra cannot connect: all routes come from the kernel */
	/* start even if the address is in use, and retry until it is free */
	bool retry_listen;
};

/*
 * Fill `w`. The init of the thread opens the listening socket, so that worker_start()
 * returns its error (-EADDRINUSE), unless `retry_listen` is set. Returns 0 or -ENOMEM.
 * [main]
 */
int fpm_setup(struct worker *w, const struct fpm_conf *conf);
void fpm_teardown(struct worker *w);

#endif
