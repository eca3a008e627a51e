/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes and restarts exclude each other. One lock guards all flags, so that when a change
 * and a restart begin at the same time, one of them sees the other. It is held only to read
 * and write the flags.
 */
#include "restart/restart_lock.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	bool busy;       /* W:manage */
	bool restarting; /* W:main */
	bool reload_due; /* W:manage sets, main clears */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
change_lock(bool later)
{
	bool locked;

	pthread_mutex_lock(&state.lock);
	locked = !state.restarting;
	state.busy |= locked;
	state.reload_due |= !locked && later;
	pthread_mutex_unlock(&state.lock);
	return locked;
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
	bool locked;

	pthread_mutex_lock(&state.lock);
	locked = !state.busy;
	state.restarting |= locked;
	pthread_mutex_unlock(&state.lock);
	return locked;
}

bool
restart_unlock(void)
{
	bool reload_due;

	pthread_mutex_lock(&state.lock);
	reload_due = state.reload_due;
	state.restarting = state.reload_due = false;
	pthread_mutex_unlock(&state.lock);
	return reload_due;
}
