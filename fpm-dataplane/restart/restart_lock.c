/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes and restarts exclude one another. Under one lock, so that of a change and a restart
 * that begin at the same time one is told of the other; nobody waits in it.
 */
#include "restart/restart_lock.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	bool busy;   /* W:manage */
	bool barred; /* W:main */
	bool due;    /* W:manage, and taken back by main */
} change = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
change_begin(bool later)
{
	bool may;

	pthread_mutex_lock(&change.lock);
	may = !change.barred;
	change.busy |= may;
	change.due |= !may && later;
	pthread_mutex_unlock(&change.lock);
	return may;
}

void
change_end(void)
{
	pthread_mutex_lock(&change.lock);
	change.busy = false;
	pthread_mutex_unlock(&change.lock);
}

bool
change_bar(void)
{
	bool may;

	pthread_mutex_lock(&change.lock);
	may = !change.busy;
	change.barred |= may;
	pthread_mutex_unlock(&change.lock);
	return may;
}

bool
change_unbar(void)
{
	bool due;

	pthread_mutex_lock(&change.lock);
	due = change.due;
	change.barred = change.due = false;
	pthread_mutex_unlock(&change.lock);
	return due;
}
