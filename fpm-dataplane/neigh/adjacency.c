/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbor events of the kernel, applied to the adjacencies of watched next hops, the host
 * entry, and waiting packets. Runs in neigh, the only writer of fib_adj.hop. This file
 * resolves nothing itself: it asks the kernel, which sends the solicitations. It never
 * changes an entry that an operator has set.
 *
 * When the kernel's GC evicts a watched next hop or a host in use (a scan fills the
 * kernel's table), the neighbor has not failed. Its MAC address stays in use while the
 * kernel resolves the neighbor again (`grace`).
 */
#include "neigh/internal.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/limits.h"

#define ASKS_PER_ROUND 512

/* --- requests to the kernel ----------------------------------------------------------- */

/*
 * Log a refusal once, because a next hop is requested every second while the cause lasts.
 */
static void
nb_log_refusal(const struct neigh *n, struct nb *nb, int rc)
{
	static struct log_limit limit;
	bool off = nb->family == 6 && rc == -EINVAL;
	char addr[PREFIX_STRLEN];
	unsigned int missed;

	if (nb->refused || !log_allowed(&limit, &missed))
		return;
	nb->refused = true;
	log_warn("neigh: kernel refuses to resolve address=%s dev=%s error=\"%s\"%s "
		 "missed=%u",
		 ipaddr_str(&nb->addr, nb->family, addr), n->iface[nb->ifidx].kernel.name,
		 strerror(-rc), off ? " hint=ipv6-off-or-mtu-below-1280" : "", missed);
}

static void
nb_ask_now(struct neigh *n, struct nb *nb)
{
	const struct iface *ifc = &n->iface[nb->ifidx];
	int rc;

	if (!ifc->can_ask)
		return;
	rc = kmon_resolve(n->control, ifc->kernel.ifindex, nb->family, nb->addr.octet);
	if (rc > 0) /* neigh_event() ran, which may have freed the neighbor */
		return;
	if (rc == 0) {
		nb->refused = false;
		/*
		 * The kernel restarts the resolution, and sends no event before the result.
		 */
		if (nb->known && nb->nud == NUD_FAILED)
			nb->nud = NUD_INCOMPLETE;
		return;
	}
	/*
	 * The kernel's table is full, or the TAP was just deleted. The timer retries next
	 * hops.
	 */
	nb_log_refusal(n, nb, rc);
	glean_answer(n, nb, false);
	nb_release(n, nb);
}

void
nb_ask_flush(struct neigh *n)
{
	for (int i = 0; !cds_list_empty(&n->to_ask); i++) {
		struct nb *nb = cds_list_first_entry(&n->to_ask, struct nb, to_ask);

		if (i == ASKS_PER_ROUND) {
			worker_wake(n->worker); /* continue after other waiting events */
			return;
		}
		cds_list_del_init(&nb->to_ask);
		nb_ask_now(n, nb);
	}
}

void
nb_retry(struct neigh *n)
{
	struct nb *nb;

	cds_list_for_each_entry (nb, &n->retry, retry)
		nb_ask(n, nb);
}

/* --- watched next hops ---------------------------------------------------------------- */

/* Return the present or the last known MAC address of a watched neighbor; 0: none yet. */
static uint64_t
watch_mac(const struct neigh *n, const struct watch *w)
{
	uint64_t hop = nb_hop(n, w->nb);

	return hop != 0 ? hop >> 16 : w->mac;
}

static void
watch_tell(struct neigh *n, struct watch *w, bool alive, bool resolved)
{
	uint64_t mac = watch_mac(n, w);
	struct msg_adj *m;

	if (w->alive == alive && w->resolved == resolved && w->mac == mac)
		return;
	w->alive = alive;
	w->resolved = resolved;
	w->mac = mac;
	m = msg_new(MSG_ADJ_STATE, sizeof(*m));
	m->adj = w->adj;
	m->ifidx = w->nb->ifidx;
	m->ifindex = n->iface[w->nb->ifidx].kernel.ifindex;
	m->family = w->nb->family;
	m->addr = w->nb->addr;
	m->alive = alive;
	m->resolved = resolved;
	m->mac = mac;
	worker_send(n->conf.rib, &m->m);
}

static void
watches_apply(struct neigh *n, struct nb *nb, uint64_t hop)
{
	struct watch *w;
	bool unsettled = nb->grace || (nb_is_watched(nb) && hop == 0);
	bool off = nb->family == 6 && n->iface[nb->ifidx].ipv6_off;
	bool up = n->iface[nb->ifidx].up; /* if not, rib knows that no packet may leave */

	cds_list_for_each_entry (w, &nb->watches, list) {
		nb_publish(n, nb, w->adj, hop);
		watch_tell(n, w, hop != 0 || off ? !off : w->alive,
			   up ? hop != 0 : w->resolved);
	}
	if (unsettled && cds_list_empty(&nb->retry)) {
		cds_list_add_tail(&nb->retry, &n->retry);
		nb_ask(n, nb);
	} else if (!unsettled) {
		cds_list_del_init(&nb->retry);
	}
}

static void
watch_forget(struct neigh *n, struct watch *w)
{
	struct nb *nb = w->nb;

	nb_publish(n, nb, w->adj, 0);
	n->watch[w->adj] = NULL;
	cds_list_del(&w->list);
	free(w);
	if (!nb_is_watched(nb))
		nb->grace = false;
	nb_apply(n, nb);
}

/* Reply in any case, because rib publishes nothing before the reply. */
void
watch_add(struct neigh *n, struct msg_adj *m)
{
	char addr[PREFIX_STRLEN];
	struct watch *w;
	struct nb *nb;

	assert(m->adj > 0 && m->adj < n->fib->adj_hosts && m->ifidx < IFIDX_MAX);
	if (n->watch[m->adj] != NULL)
		watch_forget(n, n->watch[m->adj]);
	nb = nb_get(n, m->ifidx, m->family, &m->addr);
	w = nb == NULL ? NULL : calloc(1, sizeof(*w));
	if (w == NULL) {
		log_error("neigh: next hop not resolved reason=no-room address=%s dev=%s",
			  ipaddr_str(&m->addr, m->family, addr),
			  n->iface[m->ifidx].kernel.name);
		if (nb != NULL)
			nb_release(n, nb);
	} else {
		w->nb = nb;
		w->adj = m->adj;
		w->alive = true;
		m->resolved = w->resolved = nb_hop(n, nb) != 0;
		m->mac = w->mac = watch_mac(n, w);
		n->watch[m->adj] = w;
		atomic_store_explicit(&n->fib->adj_used[m->adj], ADJ_UNUSED,
				      memory_order_relaxed);
		cds_list_add_tail(&w->list, &nb->watches);
		nb_apply(n, nb);
		if (nb->nud & NUD_STALE)
			nb_ask(n, nb);
	}
	m->m.type = MSG_ADJ_READY;
	worker_send(n->conf.rib, &m->m);
}

void
watch_remove(struct neigh *n, struct msg_adj *m)
{
	assert(m->adj > 0 && m->adj < n->fib->adj_hosts);
	if (n->watch[m->adj] != NULL)
		watch_forget(n, n->watch[m->adj]);
	m->m.type = MSG_ADJ_FREED;
	worker_send(n->conf.rib, &m->m);
}

/* --- events of the kernel ------------------------------------------------------------- */

void
nb_apply(struct neigh *n, struct nb *nb)
{
	uint64_t hop = nb_hop(n, nb);

	nb_renew_hop(n, nb, hop != 0 && n->iface[nb->ifidx].svi);
	watches_apply(n, nb, hop);
	host_update(n, nb);
	nb_release(n, nb);
}

/*
 * Call fn() for each neighbor of an interface. fn() may free that neighbor, and no other.
 * Count the steps for tests.
 */
static void
nb_each(struct neigh *n, uint16_t ifidx, void (*fn)(struct neigh *n, struct nb *nb))
{
	struct cds_hlist_node *next;

	for (struct cds_hlist_node *at = n->nb_on[ifidx].next; at != NULL; at = next) {
		next = at->next;
		n->n_steps++;
		fn(n, caa_container_of(at, struct nb, on));
	}
}

static void
nb_reapply(struct neigh *n, struct nb *nb)
{
	const struct iface *ifc = &n->iface[nb->ifidx];
	uint32_t slot = nb->slot;

	if (!ifc->up || (nb->family == 6 && ifc->ipv6_off)) {
		nb->grace = false;
		glean_answer(n, nb, false);
	}
	nb_apply(n, nb);
	if (n->nb_slot[slot] == nb && (!cds_list_empty(&nb->retry) || nb_is_waited_for(nb)))
		nb_ask(n, nb);
}

void
nb_apply_iface(struct neigh *n, uint16_t ifidx)
{
	nb_each(n, ifidx, nb_reapply);
}

static void
nb_forget(struct neigh *n, struct nb *nb)
{
	nb->known = nb->has_mac = nb->grace = false;
	nb->nud = NUD_NONE;
	glean_answer(n, nb, false);
	nb_apply(n, nb);
}

void
nb_forget_iface(struct neigh *n, uint16_t ifidx)
{
	nb_each(n, ifidx, nb_forget);
}

static void
nb_on_failed(struct neigh *n, struct nb *nb)
{
	struct watch *w;

	nb->grace = false;
	nb_apply(n, nb);
	/*
	 * The kernel reports FAILED also for an entry that is deleted during its
	 * resolution. Such a neighbor may still reply, because nb_on_gone() makes the
	 * kernel ask again. So the packets wait on, unless the resolution has failed.
	 */
	if (nb_is_waited_for(nb) &&
	    kmon_has_failed(n->control, n->iface[nb->ifidx].kernel.ifindex, nb->family,
			    nb->addr.octet))
		glean_answer(n, nb, false);
	/* On a link that is down no request was sent, and rib knows the link's state. */
	if (!n->iface[nb->ifidx].up)
		return;
	cds_list_for_each_entry (w, &nb->watches, list)
		watch_tell(n, w, false, false);
}

static void
nb_on_gone(struct neigh *n, struct nb *nb)
{
	bool waited_for = nb_is_waited_for(nb);

	/*
	 * The kernel reports an entry that is deleted by hand as failed before it reports
	 * the deletion. So an entry that was usable until now was evicted by garbage
	 * collection.
	 *
	 * A noarp entry gets no grace, because the kernel makes such entries on a link with
	 * `arp off`, with the MAC of the link itself.
	 */
	nb->grace = (nb->nud & NUD_NOARP) == 0 &&
		    (nb_is_watched(nb) || host_in_use(n, nb)) && nb_usable(n, nb);
	nb->known = nb->has_mac = false;
	nb->nud = NUD_NONE;
	nb_apply(n, nb);
	/*
	 * Ask again, because the packets began to wait after a failure, and their request
	 * may have been deleted with the entry.
	 */
	if (waited_for)
		nb_ask(n, nb);
}

static bool
kneigh_is_group(const struct kmon_neigh *kn)
{
	return kn->family == 4 ? kn->addr[0] >= 224 : kn->addr[0] == 0xff;
}

void
neigh_event(void *ctx, const struct kmon_neigh *kn, bool gone)
{
	struct neigh *n = ctx;
	uint16_t ifidx = iface_by_ifindex(n, kn->ifindex);
	struct ipaddr addr = {{0}};
	struct nb *nb;

	if (ifidx == 0 || kneigh_is_group(kn))
		return;
	memcpy(addr.octet, kn->addr, family_octets(kn->family));
	nb = nb_find(n, ifidx, kn->family, &addr);
	if (gone) {
		if (nb != NULL)
			nb_on_gone(n, nb);
		return;
	}
	/*
	 * Next hops and awaited neighbors have room beyond the limit of the kernel's
	 * neighbors.
	 */
	if (nb == NULL && n->n_nb < n->max_known)
		nb = nb_get(n, ifidx, kn->family, &addr);
	if (nb == NULL) {
		table_refuse(TABLE_neighbors);
		n->nb_left_out = true;
		return;
	}
	nb->known = true;
	nb->nud = kn->nud;
	nb->has_mac = kn->has_mac;
	if (kn->has_mac)
		memcpy(nb->mac, kn->mac, sizeof(nb->mac));
	if (kn->nud & NUD_FAILED) {
		nb_on_failed(n, nb);
		return;
	}
	if (kn->has_mac && (kn->nud & NUD_USABLE))
		nb->grace = false;
	nb_apply(n, nb);
	/* The kernel sees no traffic that would confirm the neighbor. */
	if ((kn->nud & NUD_STALE) && nb_is_watched(nb))
		nb_ask(n, nb);
}
