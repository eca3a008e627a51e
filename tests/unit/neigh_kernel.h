/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel, and who tells of it (kmon), as a table in the test: links only, told when the
 * test says so. For one test program; all in its thread.
 */
#ifndef NEIGH_KERNEL_H
#define NEIGH_KERNEL_H

#include <sys/eventfd.h>
#include <unistd.h>

#include "tap-bridge/kmon.h"

#define LINKS_MAX 20000

static struct {
	struct kmon_ops ops;
	void *ctx;
	int fd;
	struct {
		struct kmon_link link;
		bool told;
	} row[LINKS_MAX];
	unsigned int n;
} kernel;

static void
tell(const struct kmon_link *link, bool gone)
{
	kernel.ops.link(kernel.ctx, link, gone);
}

int
kmon_resync(struct kmon *km)
{
	for (unsigned int i = 0; i < kernel.n; i++) {
		if (!kernel.row[i].told)
			tell(&kernel.row[i].link, false);
		kernel.row[i].told = true;
	}
	return 0;
}

int
kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx)
{
	kernel.ops = *ops;
	kernel.ctx = ctx;
	kernel.fd = eventfd(0, 0);
	*out = (struct kmon *)&kernel;
	return kmon_resync(*out);
}

void
kmon_close(struct kmon *km)
{
	if (km != NULL)
		close(kernel.fd);
}

int
kmon_fd(const struct kmon *km)
{
	return kernel.fd;
}

int
kmon_retell(struct kmon *km, unsigned int ifindex, bool again)
{
	for (unsigned int i = 0; i < kernel.n; i++)
		if (kernel.row[i].told && kernel.row[i].link.ifindex == ifindex) {
			kernel.row[i].told = false;
			tell(&kernel.row[i].link, true);
		}
	return again ? kmon_resync(km) : 0;
}

int
kmon_dispatch(struct kmon *km)
{
	return 0;
}

void
kmon_stats(const struct kmon *km, struct kmon_stats *st)
{
	*st = (struct kmon_stats){0};
}

void
kmon_tell_neighbours(struct kmon *km)
{
}

static unsigned int n_resolves;

int
kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	n_resolves++;
	return 0;
}

static unsigned int n_states, first_state; /* set since, of which ifindex */

int
kmon_operstate(struct kmon *km, unsigned int ifindex, bool up)
{
	if (n_states++ == 0)
		first_state = ifindex;
	return 0;
}

int
kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return 0;
}

bool
kmon_gave_up(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return true;
}

#endif
