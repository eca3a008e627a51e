/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes and restarts exclude each other. One lock guards all flags, so that of a change
 * and a restart that begin at the same time, one sees the other. It is held only to read
 * and write the flags.
 */
#include "restart/restart_lock.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	bool busy;       /* W:manage */
	bool restarting; /* W:main */
	bool due;        /* W:manage sets, main clears */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
change_lock(bool later)
{
	bool may;

	pthread_mutex_lock(&state.lock);
	may = !state.restarting;
	state.busy |= may;
	state.due |= !may && later;
	pthread_mutex_unlock(&state.lock);
	return may;
}

void
change_unlock(void)
{
	pthread_mutex_lock(&state.lock);
	state.busy = false;
	pthread_mutex_unlock(&state.lock);
}

bool
restart_lock(void)
{
	bool may;

	pthread_mutex_lock(&state.lock);
	may = !state.busy;
	state.restarting |= may;
	pthread_mutex_unlock(&state.lock);
	return may;
}

bool
restart_unlock(void)
{
	bool due;

	pthread_mutex_lock(&state.lock);
	due = state.due;
	state.restarting = state.due = false;
	pthread_mutex_unlock(&state.lock);
	return due;
}
