/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxq_set: sets of queues that are replaced as a whole under RCU. The thread that changes a
 * set waits for the grace period; forwarders never wait. This file does not use DPDK: a
 * queue is a number and perhaps a descriptor.
 */
#include "port/rxq_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/tsan.h"

/* Return the set as the writer sees it. */
static struct rxq_set *
serving_mine(const struct serving *s)
{
	return atomic_load_explicit(&s->set, memory_order_relaxed);
}

/* Make room for `n` queues. Returns 0 or -ENOMEM. */
static int
serving_make_room(struct serving *s, unsigned int n)
{
	struct rxq_set *old = serving_mine(s), *set, *spare;

	if (n <= old->room)
		return 0;
	set = malloc(sizeof(*set) + n * sizeof(set->q[0]));
	spare = malloc(sizeof(*spare) + n * sizeof(spare->q[0]));
	if (set == NULL || spare == NULL) {
		free(set);
		free(spare);
		return -ENOMEM;
	}
	memcpy(set, old, sizeof(*old) + old->n * sizeof(old->q[0]));
	set->room = spare->room = n;
	free(s->spare);
	s->spare = spare;
	/* Release: a reader of the new set sees its queues, the same as in the old set. */
	atomic_store_explicit(&s->set, set, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	GRACE_OVER();
	free(old);
	return 0;
}

/*
 * Return a copy of the set without `less` and with `more` (each may be NULL). There is room
 * for it.
 */
static struct rxq_set *
rxq_set_copy(const struct serving *s, const struct rxq *less, const struct rxq *more)
{
	const struct rxq_set *old = serving_mine(s);
	struct rxq_set *set = s->spare;

	set->n = 0;
	for (unsigned int i = 0; i < old->n; i++)
		if (&old->q[i] != less)
			set->q[set->n++] = old->q[i];
	if (more != NULL)
		set->q[set->n++] = *more;
	return set;
}

/* Publish `set`. Returns when the old set has no reader. */
static void
serving_publish(struct serving *s, struct rxq_set *set)
{
	struct rxq_set *old = serving_mine(s);

	/* Release: a reader of the set sees the queues in it. */
	atomic_store_explicit(&s->set, set, memory_order_release);
	idle_wake(&s->idle);
	urcu_qsbr_synchronize_rcu();
	GRACE_OVER();
	s->spare = old;
}

static const struct rxq *
serving_find(const struct serving *s, uint16_t ifidx, uint16_t queue)
{
	const struct rxq_set *set = serving_mine(s);

	for (unsigned int i = 0; i < set->n; i++)
		if (set->q[i].ifidx == ifidx && set->q[i].queue == queue)
			return &set->q[i];
	return NULL;
}

int
serving_open(struct serving *s, bool never_sleep, uint64_t *n_sleeps)
{
	struct rxq_set *set = calloc(1, sizeof(*set));
	int rc = set == NULL ? -ENOMEM : idle_open(&s->idle, never_sleep, n_sleeps);

	if (rc < 0)
		free(set);
	else
		atomic_init(&s->set, set);
	s->spare = NULL; /* an empty set needs no spare */
	return rc;
}

void
serving_close(struct serving *s)
{
	if (serving_mine(s) == NULL)
		return;
	free(serving_mine(s));
	free(s->spare);
	atomic_init(&s->set, NULL);
	s->spare = NULL;
	idle_close(&s->idle);
}

/*
 * Let the descriptor of a queue wake the forwarder. If epoll refuses the descriptor, the
 * forwarder polls the queue now and then.
 */
static void
serving_watch(struct serving *s, const struct rxq *q)
{
	(void)idle_watch(&s->idle, q->fd, q->interrupt ? IDLE_EDGE : IDLE_LEVEL);
}

int
serving_add(struct serving *s, const struct rxq *q)
{
	if (serving_make_room(s, serving_mine(s)->n + 1) < 0)
		return -ENOMEM;
	serving_watch(s, q);
	serving_publish(s, rxq_set_copy(s, NULL, q));
	return 0;
}

int
serving_remove(struct serving *s, uint16_t ifidx, uint16_t queue)
{
	const struct rxq *gone = serving_find(s, ifidx, queue);
	int fd;

	if (gone == NULL)
		return -ENOENT;
	fd = gone->fd;
	serving_publish(s, rxq_set_copy(s, gone, NULL));
	idle_unwatch(&s->idle, fd);
	return 0;
}

unsigned int
serving_index(const struct serving *s, unsigned int n, uint16_t ifidx, uint16_t queue)
{
	unsigned int i = 0;

	while (i < n && serving_find(&s[i], ifidx, queue) == NULL)
		i++;
	return i;
}

int
serving_move(struct serving *from, struct serving *to, uint16_t ifidx, uint16_t queue)
{
	const struct rxq *found = serving_find(from, ifidx, queue);
	struct rxq q;

	if (found == NULL)
		return -ENOENT;
	if (from == to)
		return 0;
	if (serving_make_room(to, serving_mine(to)->n + 1) < 0)
		return -ENOMEM;
	q = *found;
	serving_publish(from, rxq_set_copy(from, found, NULL));
	idle_unwatch(&from->idle, q.fd);
	serving_watch(to, &q);
	serving_publish(to, rxq_set_copy(to, NULL, &q));
	return 0;
}
