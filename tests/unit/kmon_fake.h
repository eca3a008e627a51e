/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake kernel monitor (tap-bridge/kmon.h) for test programs. The test reports events by
 * `monitor.ops`; the descriptor never becomes readable. The test defines the functions that
 * differ between rigs: kmon_open(), kmon_resync(), kmon_reset_link(), kmon_resolve(),
 * kmon_operstate() and kmon_has_failed().
 */
#ifndef KMON_FAKE_H
#define KMON_FAKE_H

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tap-bridge/kmon.h"

static struct {
	struct kmon_ops ops;
	void *ctx;
	int fd;
} monitor;

/* Store the callbacks. The test's kmon_open() calls this. */
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

static bool monitor_is_lost;

bool
kmon_is_lost(const struct kmon *km)
{
	return monitor_is_lost;
}

void
kmon_stats(const struct kmon *km, struct kmon_stats *st)
{
	*st = (struct kmon_stats){0};
}

/* The fake kernel has IPv6 on all links. */
int
kmon_read_inet6(struct kmon *km)
{
	return -EOPNOTSUPP;
}

bool
kmon_inet6_is_due(const struct kmon *km)
{
	return false;
}

void
kmon_report_neighbors(struct kmon *km)
{
}

/* Calls of kmon_report_neighbors_on(). */
static struct {
	unsigned int n;
	unsigned int last; /* ifindex */
} reported;

void
kmon_report_neighbors_on(struct kmon *km, unsigned int ifindex)
{
	reported.n++;
	reported.last = ifindex;
}

int
kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	return 0;
}

/* The forwarding database of the fake kernel has the entries that the test puts there. */
static struct {
	struct kmon_fdb row[8];
	unsigned int n;
	unsigned int n_reads, n_drops; /* calls */
	void (*during_read)(void);     /* events during a read; NULL: none */
	int rc;                        /* of a read */
} fdb;

/* Report the entries of a device, if the owner wants them. */
int
kmon_read_fdb(struct kmon *km, unsigned int ifindex)
{
	fdb.n_reads++;
	for (unsigned int i = 0; i < fdb.n; i++)
		if (fdb.row[i].ifindex == ifindex &&
		    monitor.ops.wants_fdb(monitor.ctx, ifindex))
			monitor.ops.on_fdb(monitor.ctx, &fdb.row[i], false);
	if (fdb.during_read != NULL)
		fdb.during_read();
	return fdb.rc;
}

void
kmon_drop_fdb(struct kmon *km, unsigned int ifindex)
{
	fdb.n_drops++;
}

const struct kmon_fdb *
kmon_fdb_find(const struct kmon *km, unsigned int ifindex, const uint8_t mac[6],
	      uint32_t from_vni)
{
	for (unsigned int i = 0; i < fdb.n; i++)
		if (fdb.row[i].ifindex == ifindex && fdb.row[i].from_vni == from_vni &&
		    memcmp(fdb.row[i].mac, mac, 6) == 0)
			return &fdb.row[i];
	return NULL;
}

#endif
