/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm_allow: who may be zebra, as the configuration says it.
 */
#ifndef BASE_FPM_ALLOW_H
#define BASE_FPM_ALLOW_H

#include <sys/socket.h>
#include <sys/types.h>

#define FPM_USERS_MAX      8
#define FPM_USER_NAME_SIZE 33 /* useradd(8): at most 32 */

enum fpm_users {
	FPM_USERS_AUTO, /* frr; everybody where there is no such user */
	FPM_USERS_ANY,
	FPM_USERS_LISTED,
};

struct fpm_from {
	struct sockaddr_storage
		peer; /* who may connect beside this host; AF_UNSPEC: nobody */
	/* Whose programs of this host may, beside root's and the daemon's own. */
	enum fpm_users users;
	unsigned int n_user;
	struct {
		char name[FPM_USER_NAME_SIZE]; /* as in the file, or a number */
		uid_t uid;
	} user[FPM_USERS_MAX];
};

#endif
