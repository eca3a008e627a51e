/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flag that signals set. Who waits does so with them let in at that moment alone: one that
 * comes just before is not slept through.
 */
#include "ctl/stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t wanted;
static volatile sig_atomic_t connection = -1; /* to be ended */
static bool cut_off;

static void
end_connection(void)
{
	if (cut_off && connection >= 0)
		shutdown(connection, SHUT_RD); /* may be used in a handler: POSIX */
}

static void
on_signal(int number)
{
	int error = errno;

	wanted = 1;
	end_connection();
	errno = error;
}

void
stop_ends(int fd)
{
	connection = fd;
	if (wanted) /* before that */
		end_connection();
}

void
stop_begin(bool at_once)
{
	struct sigaction end = {.sa_handler = on_signal};

	/* Without SA_RESTART: where it writes to a pipe that nobody reads, that ends, too. */
	if (!at_once)
		end.sa_flags = SA_RESTART | (int)SA_RESETHAND;
	cut_off = at_once;
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
}

bool
stop_wanted(void)
{
	return wanted != 0;
}

bool
stop_now(void)
{
	return cut_off && wanted != 0;
}

void
stop_pause(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds};
	struct pollfd out = {.fd = STDOUT_FILENO};
	sigset_t both, before;

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, &before);
	/* No event but that the reader has gone, which the next write is told. */
	if (!stop_wanted())
		ppoll(&out, 1, &t, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
