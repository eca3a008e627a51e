/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of thread rtnl, which reads the kernel's routing tables: the row of `show
 * kernel` and its counters. Runs in ui.
 */
#include "ui/internal.h"

#include <stddef.h>

#include "base/kernel_event.h"

#define COUNT(field, what)                                          \
	{                                                           \
#field, what, offsetof(struct kernel_status, field) \
	}
const struct kernel_count kernel_counts[] = {
	COUNT(messages, "Netlink messages of the kernel."),
	COUNT(routes, "Routes taken from the kernel, also when a dump repeats them."),
	COUNT(route_dels, "Routes that the kernel deleted."),
	COUNT(nexthops, "Next-hop objects taken from the kernel."),
	COUNT(nexthop_dels, "Next-hop objects that the kernel deleted."),
	COUNT(of_zebra, "Routes of zebra, skipped because they come by FPM."),
	COUNT(skipped,
	      "Multicast, link-local, loopback and expired routes; no FIB has them."),
	COUNT(by_source, "Routes for some source addresses only."),
	COUNT(by_tos, "Routes for one TOS only."),
	COUNT(malformed, "Messages that could not be decoded."),
	COUNT(overruns, "Times that events were lost and all tables were read again."),
	COUNT(dumps, "Completed dumps of a table."),
	COUNT(interrupted, "Dumps that were started again because the table changed."),
	COUNT(cut, "Dumps that Linux ended at a route with too many next hops."),
};
const unsigned int n_kernel_counts = sizeof(kernel_counts) / sizeof(kernel_counts[0]);

uint64_t
kernel_count_read(const struct kernel_count *c)
{
	const _Atomic uint64_t *at =
		(const _Atomic uint64_t *)((const char *)&kernel_status + c->offset);

	return atomic_load_explicit(at, memory_order_relaxed);
}

void
show_kernel(const struct ui *ui, struct rows *out)
{
	static const char *const of_rib[] = {"kernel_routes", "kernel_swept"};
	json_t *row = json_pack("{s:s, s:b, s:b, s:I, s:I}", "routes_from",
				ui->conf.routes_from, "in_step", kernel_status.in_step != 0,
				"paused", kernel_status.paused != 0, "queue_bytes",
				(json_int_t)kernel_queue_depth(), "tos_now",
				(json_int_t)kernel_status.tos_now);

	for (unsigned int i = 0; i < n_kernel_counts; i++)
		json_object_set_new(
			row, kernel_counts[i].name,
			json_integer((json_int_t)kernel_count_read(&kernel_counts[i])));
	for (unsigned int i = 0; i < 2; i++) {
		json_t *value = json_object_get(ui->summary, of_rib[i]);

		if (value != NULL)
			json_object_set(row, of_rib[i], value);
	}
	rows_put(out, row);
}
