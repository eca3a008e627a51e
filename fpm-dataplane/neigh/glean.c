/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that wait in punt for a neighbor: ask the kernel once for all of them, and report
 * the result to punt. Runs in neigh. The number of requests is bounded. Each is answered
 * exactly once, after GLEAN_S at the latest, so no packet waits forever.
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

/*
 * Return true if forwarders can find the neighbor now. They do not find a host without a
 * slot.
 */
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
	/* Add 10 ms, because a timer that fires too early has to be started again. */
	ev_timer_set(&n->glean_timer, oldest->glean_until - monotonic_s() + 0.01, 0.0);
	ev_timer_start(loop, &n->glean_timer);
}

void
glean_ask(struct neigh *n, const struct msg_neigh *m)
{
	struct nb *nb;

	if (m->ifidx == 0 || m->ifidx >= IFIDX_MAX || !n->iface[m->ifidx].up ||
	    n->n_gleans >= n->max_gleans) {
		if (n->n_gleans >= n->max_gleans)
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
		return; /* one answer is for all packets that wait */
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
	/*
	 * The kernel's table has room for a thousand entries by default. Remove unanswered
	 * entries, so that a scan does not fill the table.
	 */
	if (!nb_is_watched(nb) && !nb_usable(n, nb))
		kmon_forget(n->control, n->iface[m->ifidx].kernel.ifindex, m->family,
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
