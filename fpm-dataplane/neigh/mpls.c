/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPLS of the kernel: the links that accept labels, and the TTL of labels that are pushed.
 * Runs in neigh.
 *
 * The kernel reports net.mpls.conf.NAME.input of each link, as netconf of family AF_MPLS. A
 * kernel that reports it of no link, not even of `lo`, has no MPLS. The kernel has no event
 * for net.mpls.ip_ttl_propagate and net.mpls.default_ttl. A thread finds these files only
 * in its own namespace, but may read an open file in any namespace. Hence the files stay
 * open.
 */
#include "neigh/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "tap-bridge/netns.h"

#define SYSCTLS "/proc/sys/net/mpls"
#define TTL_MAX 255

/* --- the TTL of labels ---------------------------------------------------------------- */

void
mpls_close(struct neigh *n)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (n->mpls_file[i] >= 0)
			close(n->mpls_file[i]);
		n->mpls_file[i] = -1;
	}
}

/*
 * Open the two files. Linux before 4.10 does not have them, and copies the TTL of the
 * packet.
 */
void
mpls_open(struct neigh *n)
{
	static const char *const name[] = {"ip_ttl_propagate", "default_ttl"};
	const char *folder = n->conf.mpls_sysctls != NULL ? n->conf.mpls_sysctls : SYSCTLS;
	struct netns_guard guard;
	char path[256];

	if (n->n_mpls == 0 || n->mpls_file[0] >= 0 ||
	    netns_enter(n->conf.netns, &guard) < 0)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, name[i]);
		n->mpls_file[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	netns_leave(&guard);
}

/* Return the number in an open file; `none` if it cannot be read. */
static int
file_number(int fd, int none)
{
	char text[16] = "";
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	return len > 0 ? (int)strtol(text, NULL, 10) : none;
}

void
mpls_read_ttl(struct neigh *n)
{
	int ttl = 0;

	if (file_number(n->mpls_file[0], 1) == 0) {
		ttl = file_number(n->mpls_file[1], TTL_MAX);
		if (ttl < 1 || ttl > TTL_MAX)
			ttl = TTL_MAX;
	}
	atomic_store_explicit(&n->fib->label_ttl, (uint8_t)ttl, memory_order_relaxed);
}

/* --- links ---------------------------------------------------------------------------- */

/* Count the links of which the kernel reports MPLS. */
static void
mpls_count(struct neigh *n, struct link *l, bool told)
{
	if (l->mpls_told == told)
		return;
	l->mpls_told = told;
	if (told)
		n->n_mpls++;
	else
		n->n_mpls--;
	if (n->n_mpls != told)
		return; /* neither the first link nor the last one */
	log_info("neigh: kernel mpls changed present=%s", told ? "yes" : "no");
	atomic_store_explicit(&n->fib->mpls_known, told || n->conf.mpls_all,
			      memory_order_relaxed);
	if (told)
		mpls_open(n);
	else
		mpls_close(n);
	mpls_read_ttl(n);
}

void
mpls_event(void *ctx, const struct kmon_mpls *km, bool gone)
{
	struct neigh *n = ctx;
	struct link *l = link_find(n, km->ifindex);

	if (l == NULL)
		return;
	l->mpls = !gone && km->input;
	if (l->ifidx != 0 && iface_publish(n, l->ifidx))
		log_info("neigh: mpls input %s dev=%s", l->mpls ? "on" : "off", l->name);
	mpls_count(n, l, !gone);
}
