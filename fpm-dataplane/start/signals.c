/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set up signals. A thread of liburcu's hash table unblocks SIGUSR1, because another flavor
 * of RCU uses this signal. Without a handler, a SIGUSR1 that arrives while main does not
 * wait for it, for example during a restart, would end the process. The handler passes the
 * signal to main.
 */
#include "start/signals.h"

#include <pthread.h>

#include "base/sd_notify.h"

static pthread_t main_thread;

static void
signals_on_restart(int sig)
{
	pthread_kill(main_thread, sig);
}

void
signals_begin(sigset_t *waited, sigset_t *mask_before)
{
	const struct sigaction act = {.sa_handler = signals_on_restart,
				      .sa_flags = SA_RESTART};

	sigemptyset(waited);
	sigaddset(waited, SIGINT);
	sigaddset(waited, SIGTERM);
	sigaddset(waited, SIGHUP);
	sigaddset(waited, SD_SIGNAL_RESTART);
	pthread_sigmask(SIG_BLOCK, waited, mask_before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* at a limit of file sizes only the checkpoint fails */
	main_thread = pthread_self();
	sigaction(SD_SIGNAL_RESTART, &act, NULL);
}
