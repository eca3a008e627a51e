/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake kernel and kmon as a table in the test. It has links only and reports them when
 * the test says so. For one test program; all runs in its thread.
 */
#ifndef NEIGH_KERNEL_H
#define NEIGH_KERNEL_H

#include "kmon_fake.h"

#define LINKS_MAX 20000

static struct {
	struct {
		struct kmon_link link;
		bool told;
	} row[LINKS_MAX];
	unsigned int n;
} kernel;

static void
tell(const struct kmon_link *link, bool gone)
{
	monitor.ops.on_link(monitor.ctx, link, gone);
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

/* The kernel's state changes during the first dump, which shows nothing. */
static bool first_dump_is_disturbed;

int
kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx)
{
	monitor_open(out, ops, ctx);
	monitor_is_lost = first_dump_is_disturbed;
	return first_dump_is_disturbed ? 0 : kmon_resync(*out);
}

int
kmon_reset_link(struct kmon *km, unsigned int ifindex, bool again)
{
	for (unsigned int i = 0; i < kernel.n; i++)
		if (kernel.row[i].told && kernel.row[i].link.ifindex == ifindex) {
			kernel.row[i].told = false;
			tell(&kernel.row[i].link, true);
		}
	return again ? kmon_resync(km) : 0;
}

static unsigned int n_resolves;
static bool arp_off; /* on all links */

/* On a link of `arp off` the monitor reports the neighbor within the call. */
int
kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	struct kmon_neigh kn = {.ifindex = ifindex,
				.family = family,
				.mac = {2, 0, 0, 0, 0, 0xa},
				.has_mac = true,
				.nud = NUD_NOARP};

	n_resolves++;
	if (!arp_off)
		return 0;
	memcpy(kn.addr, addr, family == 4 ? 4 : 16);
	monitor.ops.on_neigh(monitor.ctx, &kn, false);
	return 1;
}

/* calls of kmon_operstate(); ifindex of the first */
static unsigned int n_states, first_state;

int
kmon_operstate(struct kmon *km, unsigned int ifindex, bool up)
{
	if (n_states++ == 0)
		first_state = ifindex;
	return 0;
}

bool
kmon_has_failed(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return true;
}

#endif
