/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: descriptors kept for a program by name, as FileDescriptorStoreMax= of systemd does.
 */
#ifndef SUPERVISE_STORE_H
#define SUPERVISE_STORE_H

#include <stdbool.h>

#define STORE_MAX        256
#define STORE_NAME_BYTES 101 /* with the final zero */

struct store {
	struct {
		int fd;
		char name[STORE_NAME_BYTES];
	} item[STORE_MAX];
	unsigned int n;
};

/*
 * Keep `fd`, now the store's; one of the same name is closed. Returns 0, -EINVAL for a name
 * that cannot be passed on (empty, longer, not printable, ':'), -ENOSPC; `fd` is then closed.
 */
int store_put(struct store *s, const char *name, int fd);

/* Close what is called `name`. Returns whether there was such a one. */
bool store_drop(struct store *s, const char *name);

void store_clear(struct store *s);

/*
 * In a child between fork and exec: put the descriptors at 3, 4, ..., open over exec, and
 * say so in LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES. Returns 0 or -errno.
 */
int store_pass_on(const struct store *s);

#endif
