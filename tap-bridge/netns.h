/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netns: run a step in another network namespace.
 *
 * A namespace is named as in `ip netns` (/run/netns/NAME); the empty string or NULL is the
 * caller's own. setns(2) moves the calling thread only, so any thread may do this.
 */
#ifndef TAP_BRIDGE_NETNS_H
#define TAP_BRIDGE_NETNS_H

#include <stdbool.h>
#include <stdint.h>

struct netns_guard {
	int saved_fd; /* the namespace to return to; -1: nothing to undo */
};

/*
 * Keep namespace `name` open until the process ends. From now on the name stands for this
 * namespace here, also after `ip netns` deletes the name or gives it to another namespace.
 * With the empty string, and after the first success, a call does nothing. Returns 0 or
 * -errno (-ENOENT: no such namespace).                 [main, before other threads exist]
 */
int netns_keep(const char *name);

/*
 * Return true if the namespace of netns_keep() no longer has its name `name`: no namespace
 * has this name, or another namespace has it.                              [any thread]
 */
bool netns_name_is_lost(const char *name);

/* Enter namespace `name`. Returns 0 or -errno (-ENOENT: no such namespace).  [any thread] */
int netns_enter(const char *name, struct netns_guard *guard);

/*
 * Return the inode number of namespace `name`, which no other existing namespace has; 0: no
 * such namespace, or no /proc.                                            [any thread]
 */
uint64_t netns_id(const char *name);

/*
 * Open a socket in namespace `name`, where it stays for any thread that uses it.
 * SOCK_CLOEXEC. Returns the descriptor or -errno.                          [any thread]
 */
int netns_socket(const char *name, int family, int type, int protocol);

/* Return to the namespace before netns_enter(). Aborts when that fails.  [same thread] */
void netns_leave(struct netns_guard *guard);

#endif
