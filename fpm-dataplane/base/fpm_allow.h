/* SPDX-License-Identifier: BSD-3-Clause */
/* fpm_allow: the peers that may connect as zebra, from the configuration. */
#ifndef BASE_FPM_ALLOW_H
#define BASE_FPM_ALLOW_H

#include <sys/socket.h>
#include <sys/types.h>

#define FPM_USERS_MAX      8
#define FPM_USER_NAME_SIZE 33 /* useradd(8): at most 32 octets */

enum fpm_users {
	FPM_USERS_AUTO, /* user frr; all users where no such user exists */
	FPM_USERS_ANY,
	FPM_USERS_LISTED,
};

struct fpm_from {
	/* Remote address that may connect, in addition to this host; AF_UNSPEC: none. */
	struct sockaddr_storage peer;
	/*
	 * Users whose programs on this host may connect, in addition to root and the
	 * daemon's own user.
	 */
	enum fpm_users users;
	unsigned int n_user;
	struct {
		char name[FPM_USER_NAME_SIZE]; /* as in the file: a name or a number */
		uid_t uid;
	} user[FPM_USERS_MAX];
};

#endif
