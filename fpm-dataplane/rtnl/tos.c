/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's routes for one TOS, which forwarders do not obey. They are recorded only so
 * that a warning ends when the last of them is deleted. Two routes that differ only in the
 * gateway count as one. [rtnl]
 */
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "rtnl/rtnl_impl.h"

#define TOS_MAX 4096u /* the largest count; further routes are not recorded */

struct tos_route {
	struct prefix prefix;
	uint32_t table, metric;
	uint8_t tos, protocol;
};

static bool
tos_is(const struct tos_route *a, const struct tos_route *b)
{
	return prefix_equal(&a->prefix, &b->prefix) && a->table == b->table &&
	       a->metric == b->metric && a->tos == b->tos;
}

void
tos_event(struct rtnl *r, const struct nlmsghdr *nlh, const struct kernel_event *ev)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct tos_route new = {.prefix = ev->route.prefix,
				.table = ev->route.table,
				.metric = ev->metric,
				.tos = rtm->rtm_tos,
				.protocol = ev->route.protocol};
	uint32_t i = 0;

	while (i < r->n_tos && !tos_is(&r->tos[i], &new))
		i++;
	if (ev->kind == KERNEL_ROUTE_DEL) {
		if (i < r->n_tos)
			r->tos[i] = r->tos[--r->n_tos];
		return;
	}
	r->held[new.protocol] = true; /* the kernel may delete it without an event */
	if (i == r->n_tos && i < TOS_MAX) {
		if (r->n_tos == r->room_tos) {
			uint32_t room = r->room_tos == 0 ? 16 : r->room_tos * 2;
			struct tos_route *more = realloc(r->tos, room * sizeof(*more));

			if (more == NULL)
				return; /* the next dump shows it again */
			r->tos = more;
			r->room_tos = room;
		}
		r->tos[r->n_tos++] = new;
	}
}

void
tos_dump_begin(struct rtnl *r, const struct kernel_scope *scope)
{
	uint32_t n = 0;

	if (scope->family != 4)
		return;
	for (uint32_t i = 0; i < r->n_tos; i++)
		if ((scope->protocol != 0 && r->tos[i].protocol != scope->protocol) ||
		    (scope->table != 0 && r->tos[i].table != scope->table))
			r->tos[n++] = r->tos[i];
	r->n_tos = n;
}

void
tos_publish(struct rtnl *r)
{
	atomic_store_explicit(&kernel_status.tos_now, r->n_tos, memory_order_relaxed);
}
