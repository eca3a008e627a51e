/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: the thread that shows packets to users. It publishes filters, empties the rings
 * that forwarders and the punt thread fill (port/watch.h), and turns records into rows and
 * pcapng. It also passes described packets to fwd_explain(). The thread may be slow,
 * because no forwarder waits for it.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdint.h>

#include "base/worker.h"

struct fib;
struct port;
struct watch;
struct watch_record;

struct trace_conf {
	struct fib *fib;
	struct worker *rib, *neigh; /* get MSG_QUERY, reply with MSG_REPLY */
	struct watch *watch;
	const struct port *port; /* array; trace reads name, ifidx, device and mac */
	unsigned int n_port;
	const char *version;
	/* Pass one frame through the stages: fwd_explain(). */
	void (*explain)(struct fib *fib, uint16_t ifidx, const uint8_t *frame, uint16_t n,
			uint32_t frame_bytes, struct watch_record *rec);
};

/* Set up the thread, as rib_setup() does.                                         [main] */
int trace_setup(struct worker *w, const struct trace_conf *conf);
void trace_teardown(struct worker *w);

#endif
