/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that takes the place of the daemon: it reads one request from the control
 * socket, and answers. Include cmocka.h before.
 */
#ifndef DAEMON_FAKE_H
#define DAEMON_FAKE_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	char path[64]; /* of the control socket */
	int listener;
	pthread_t thread;
	const char *answer;
	bool stays;       /* keep the connection open after the answer */
	char asked[8192]; /* the request */
} fake_daemon;

static inline int
fake_daemon_open(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	memset(&fake_daemon, 0, sizeof(fake_daemon));
	snprintf(fake_daemon.path, sizeof(fake_daemon.path), "/tmp/fdp-daemon-%d.sock",
		 (int)getpid());
	strcpy(sun.sun_path, fake_daemon.path);
	unlink(fake_daemon.path);
	fake_daemon.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fake_daemon.listener, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -1;
	return listen(fake_daemon.listener, 1);
}

static inline int
fake_daemon_close(void)
{
	close(fake_daemon.listener);
	return unlink(fake_daemon.path);
}

static inline void *
fake_daemon_run(void *ctx)
{
	int fd = accept(fake_daemon.listener, NULL, NULL);
	size_t n = 0;
	char octet;

	while (n + 1 < sizeof(fake_daemon.asked) && read(fd, &octet, 1) == 1) {
		fake_daemon.asked[n++] = octet;
		if (octet == '\n')
			break;
	}
	fake_daemon.asked[n] = '\0';
	/* The program may have closed the connection. */
	(void)send(fd, fake_daemon.answer, strlen(fake_daemon.answer), MSG_NOSIGNAL);
	while (fake_daemon.stays && read(fd, &octet, 1) == 1)
		;
	close(fd);
	return NULL;
}

/*
 * Give this answer to the next request. fake_daemon_end() waits for the end of the
 * connection.
 */
static inline void
fake_daemon_answer(const char *answer)
{
	fake_daemon.answer = answer;
	assert_int_equal(pthread_create(&fake_daemon.thread, NULL, fake_daemon_run, NULL),
			 0);
}

static inline void
fake_daemon_end(void)
{
	assert_int_equal(pthread_join(fake_daemon.thread, NULL), 0);
}

#endif
