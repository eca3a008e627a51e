/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel monitor (tap-bridge/kmon.h), faked for a test program: the test tells what happens
 * by `monitor.ops`, and nothing comes by the descriptor. The test defines the functions that
 * differ from rig to rig: kmon_open(), kmon_resync(), kmon_reset_link(), kmon_resolve(),
 * kmon_operstate() and kmon_has_failed().
 */
#ifndef KMON_FAKE_H
#define KMON_FAKE_H

#include <sys/eventfd.h>
#include <unistd.h>

#include "tap-bridge/kmon.h"

static struct {
	struct kmon_ops ops;
	void *ctx;
	int fd;
} monitor;

/* Note who is told: for the test's kmon_open(). */
static inline void
monitor_open(struct kmon **out, const struct kmon_ops *ops, void *ctx)
{
	monitor.ops = *ops;
	monitor.ctx = ctx;
	monitor.fd = eventfd(0, 0);
	*out = (struct kmon *)&monitor;
}

void
kmon_close(struct kmon *km)
{
	if (km != NULL)
		close(monitor.fd);
}

int
kmon_fd(const struct kmon *km)
{
	return monitor.fd;
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
kmon_report_neighbors(struct kmon *km)
{
}

int
kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return 0;
}

#endif
