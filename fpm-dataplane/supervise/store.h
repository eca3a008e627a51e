/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: descriptors that are stored for a program by name, as systemd stores them
 * (FileDescriptorStoreMax=).
 */
#ifndef SUPERVISE_STORE_H
#define SUPERVISE_STORE_H

#include <stdbool.h>

#define STORE_MAX        256
#define STORE_NAME_BYTES 101 /* with the terminating zero */

struct store {
	struct {
		int fd;
		char name[STORE_NAME_BYTES];
	} item[STORE_MAX];
	unsigned int n;
};

/*
 * Store `fd`, which the store then owns; a stored descriptor with the same name is closed.
 * Returns 0, -EINVAL for a name that cannot be passed on (empty, too long, not printable,
 * ':'), or -ENOSPC; on an error `fd` is closed.
 */
int store_put(struct store *s, const char *name, int fd);

/* Close the descriptor `name`. Returns true if it was stored. */
bool store_remove(struct store *s, const char *name);

void store_clear(struct store *s);

/*
 * Pass the descriptors on, in a child between fork and exec: put them at 3, 4, ..., without
 * close-on-exec, and set LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES. Returns 0 or -errno.
 */
int store_export(const struct store *s);

#endif
