/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets wait in punt for a neighbor: have the kernel ask for it, once at a time, and say
 * how it went. Runs in neigh; keeps a bounded number of questions, and answers each exactly
 * once, at the latest after GLEAN_S: whatever the kernel does, no packet waits for ever.
 */
#include "neigh/internal.h"

#include "base/clock.h"
#include "base/limits.h"

static void
glean_send_answer(struct neigh *n, uint16_t ifidx, uint8_t family,
		  const struct ipaddr *addr, bool resolved)
{
	struct msg_neigh *m = msg_new(MSG_NEIGH, sizeof(*m));

	m->ifidx = ifidx;
	m->family = family;
	m->addr = *addr;
	m->resolved = resolved;
	worker_send(n->conf.punt, &m->m);
}

/* Can a forwarder find it now? A host that got no slot stays unknown. */
static bool
nb_is_published(const struct neigh *n, struct nb *nb)
{
	return nb_usable(n, nb) && (nb->host != NULL || nb_is_watched(nb));
}

static void
glean_arm_timer(struct neigh *n)
{
	struct ev_loop *loop = n->worker->loop;
	struct nb *oldest;

	ev_timer_stop(loop, &n->glean_timer);
	if (cds_list_empty(&n->gleans))
		return;
	oldest = cds_list_first_entry(&n->gleans, struct nb, glean);
	/* A moment late rather than early: an early timer would fire for nothing. */
	ev_timer_set(&n->glean_timer, oldest->glean_until - monotonic_s() + 0.01, 0.0);
	ev_timer_start(loop, &n->glean_timer);
}

void
glean_ask(struct neigh *n, const struct msg_neigh *m)
{
	struct nb *nb;

	if (m->ifidx == 0 || m->ifidx >= IFIDX_MAX || !n->iface[m->ifidx].up ||
	    n->n_gleans >= n->most_gleans) {
		if (n->n_gleans >= n->most_gleans)
			table_refuse(TABLE_asked);
		glean_send_answer(n, m->ifidx, m->family, &m->addr, false);
		return;
	}
	nb = nb_get(n, m->ifidx, m->family, &m->addr);
	if (nb == NULL) {
		glean_send_answer(n, m->ifidx, m->family, &m->addr, false);
		return;
	}
	if (nb_usable(n, nb)) {
		glean_send_answer(n, m->ifidx, m->family, &m->addr, nb_is_published(n, nb));
		nb_release(n, nb);
		return;
	}
	if (nb_is_waited_for(nb))
		return; /* the answer on its way is for all that wait */
	nb->glean_until = monotonic_s() + GLEAN_S;
	cds_list_add_tail(&nb->glean, &n->gleans);
	table_used(TABLE_asked, ++n->n_gleans);
	if (n->n_gleans == 1)
		glean_arm_timer(n);
	nb_ask(n, nb);
}

void
glean_answer(struct neigh *n, struct nb *nb, bool resolved)
{
	if (!nb_is_waited_for(nb))
		return;
	cds_list_del_init(&nb->glean);
	table_used(TABLE_asked, --n->n_gleans);
	glean_send_answer(n, nb->ifidx, nb->family, &nb->addr,
			  resolved && nb_is_published(n, nb));
}

void
glean_over(struct neigh *n, const struct msg_neigh *m)
{
	struct nb *nb = nb_find(n, m->ifidx, m->family, &m->addr);

	if (nb == NULL || !nb_is_waited_for(nb))
		return;
	cds_list_del_init(&nb->glean);
	table_used(TABLE_asked, --n->n_gleans);
	/* The kernel's table has room for a thousand by default: leave none to the scanner. */
	if (!nb_is_watched(nb) && !nb_usable(n, nb))
		kmon_forget(n->control, n->iface[m->ifidx].tap.ifindex, m->family,
			    m->addr.octet);
	nb_release(n, nb);
}

void
glean_expire(struct neigh *n)
{
	double now = monotonic_s();

	while (!cds_list_empty(&n->gleans)) {
		struct nb *nb = cds_list_first_entry(&n->gleans, struct nb, glean);

		if (nb->glean_until > now)
			break;
		glean_answer(n, nb, false);
		nb_release(n, nb);
	}
	glean_arm_timer(n);
}
