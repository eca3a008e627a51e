/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of liburcu's hash table leaves SIGUSR1 open, its own in another flavour of RCU: one
 * that comes while main does not wait for it, as in a restart, would end us. It is main's.
 */
#include "start/signals.h"

#include <pthread.h>

#include "base/sd_notify.h"

static pthread_t waiter; /* main */

static void
signals_on_restart(int sig)
{
	pthread_kill(waiter, sig);
}

void
signals_begin(sigset_t *waited, sigset_t *born_with)
{
	const struct sigaction act = {.sa_handler = signals_on_restart,
				      .sa_flags = SA_RESTART};

	sigemptyset(waited);
	sigaddset(waited, SIGINT);
	sigaddset(waited, SIGTERM);
	sigaddset(waited, SIGHUP);
	sigaddset(waited, SD_SIGNAL_RESTART);
	pthread_sigmask(SIG_BLOCK, waited, born_with);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* no checkpoint, and no end */
	waiter = pthread_self();
	sigaction(SD_SIGNAL_RESTART, &act, NULL);
}
