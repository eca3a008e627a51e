/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Use locks or nothing in place of RCU: LOCK_THREAD (each reader has a mutex; the writer
 * takes one after the other), LOCK_GLOBAL (all forwarders share one mutex), LOCK_RW
 * (forwarders read-lock one rwlock), LOCK_NONE (the writer does not synchronize).
 *
 * Control threads have a mutex each in all of these, because a global lock is meant for
 * forwarders. A mutex of glibc goes to the first thread that takes it. A forwarder that
 * unlocks and locks again at once would never let a writer in. So a writer announces that
 * it waits, and the forwarder waits for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/worker.h"
#include "instead.h"
#include "sync.h"

#define READERS 64
#define HOPE_NS 100000000L /* LOCK_NONE: longer than a forwarder ever pauses */

struct lock {
	union {
		pthread_mutex_t mutex;
		pthread_rwlock_t rw;
	};
	atomic_uint wanted; /* number of writers that wait */
} __attribute__((aligned(64)));

static struct lock lock[READERS];
#if defined(LOCK_GLOBAL) || defined(LOCK_RW)
static struct lock global; /* all zeros are an open mutex and an open rwlock */
#endif
static atomic_uint n_locks;
static __thread struct lock *mine;
static __thread bool forwarder, online;

static bool
shares_rw(void)
{
#ifdef LOCK_RW
	return forwarder;
#else
	return false;
#endif
}

static void
take(void)
{
	online = true;
#ifdef LOCK_NONE
	if (forwarder)
		return;
#endif
	while (atomic_load_explicit(&mine->wanted, memory_order_relaxed) != 0)
		__builtin_ia32_pause();
	if (shares_rw())
		pthread_rwlock_rdlock(&mine->rw);
	else
		pthread_mutex_lock(&mine->mutex);
}

static void
give(void)
{
	online = false;
#ifdef LOCK_NONE
	if (forwarder)
		return;
#endif
	if (shares_rw())
		pthread_rwlock_unlock(&mine->rw);
	else
		pthread_mutex_unlock(&mine->mutex);
}

/* Wait until no thread holds the lock since before this call. */
static void
pass(struct lock *l, bool rw)
{
	atomic_fetch_add(&l->wanted, 1);
	if (rw) {
		pthread_rwlock_wrlock(&l->rw);
		pthread_rwlock_unlock(&l->rw);
	} else {
		pthread_mutex_lock(&l->mutex);
		pthread_mutex_unlock(&l->mutex);
	}
	atomic_fetch_sub(&l->wanted, 1);
}

void
urcu_qsbr_register_thread(void)
{
	unsigned int n = atomic_fetch_add(&n_locks, 1);

	if (n >= READERS)
		abort();
	forwarder = thread_role == ROLE_FWD;
	pthread_mutex_init(&lock[n].mutex, NULL);
	mine = &lock[n];
#if defined(LOCK_GLOBAL) || defined(LOCK_RW)
	if (forwarder)
		mine = &global;
#endif
	take();
}

void
urcu_qsbr_unregister_thread(void)
{
	give();
}

void
urcu_qsbr_quiescent_state(void)
{
	give();
	take();
}

void
urcu_qsbr_thread_offline(void)
{
	give();
}

void
urcu_qsbr_thread_online(void)
{
	take();
}

void
sync_publish(void)
{
	unsigned int n = atomic_load(&n_locks);

	for (unsigned int i = 0; i < n; i++)
		pass(&lock[i], false);
#ifdef LOCK_RW
	pass(&global, true);
#elif defined(LOCK_GLOBAL)
	pass(&global, false);
#endif
}

void
urcu_qsbr_synchronize_rcu(void)
{
	bool mine_too = online;

	if (mine_too)
		give();
	sync_publish();
	if (mine_too)
		take();
}

/* call_rcu: a thread that publishes and then calls the callbacks. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t queue_empty = PTHREAD_COND_INITIALIZER;
static struct due {
	struct due *next;
	struct rcu_head *head;
	void (*func)(struct rcu_head *);
} * queue;
static bool busy, started;

static void *
reclaimer_main(void *arg)
{
	for (;;) {
		struct due *all;

		pthread_mutex_lock(&queue_lock);
		busy = false;
		while (queue == NULL) {
			pthread_cond_broadcast(&queue_empty);
			pthread_cond_wait(&queue_more, &queue_lock);
		}
		all = queue;
		queue = NULL;
		busy = true;
		pthread_mutex_unlock(&queue_lock);
		sync_publish();
#ifdef LOCK_NONE
		nanosleep(&(struct timespec){.tv_nsec = HOPE_NS}, NULL);
#endif
		while (all != NULL) {
			struct due *one = all;

			all = one->next;
			one->func(one->head);
			free(one);
		}
	}
	return NULL;
}

/* urcu_qsbr_call_rcu() makes the thread when it has the first callback. */
struct call_rcu_data *
urcu_qsbr_get_default_call_rcu_data(void)
{
	return NULL;
}

void
urcu_qsbr_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *))
{
	struct due *one = malloc(sizeof(*one));
	pthread_t thread;

	if (one == NULL)
		abort();
	one->head = head;
	one->func = func;
	pthread_mutex_lock(&queue_lock);
	one->next = queue;
	queue = one;
	if (!started && pthread_create(&thread, NULL, reclaimer_main, NULL) != 0)
		abort();
	started = true;
	pthread_cond_signal(&queue_more);
	pthread_mutex_unlock(&queue_lock);
}

void
urcu_qsbr_barrier(void)
{
	pthread_mutex_lock(&queue_lock);
	while (queue != NULL || busy)
		pthread_cond_wait(&queue_empty, &queue_lock);
	pthread_mutex_unlock(&queue_lock);
}
