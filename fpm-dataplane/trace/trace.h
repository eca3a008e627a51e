/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: who looks at packets. It publishes what is looked for, empties the rings that
 * forwarders and the punt thread fill (port/watch.h), and turns records into rows and pcapng;
 * it has packets explained that nobody sent. It may be slow; nobody waits for it.
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
	struct worker *rib, *neigh; /* MSG_QUERY goes there, MSG_REPLY comes back */
	struct watch *watch;
	const struct port *port; /* array; name, ifidx and device are read here */
	unsigned int n_port;
	const char *version;
	/* fwd_explain(): the stages of the forwarders, for one frame. */
	void (*explain)(struct fib *fib, uint16_t ifidx, const uint8_t *frame, uint16_t n,
			uint32_t frame_bytes, struct watch_record *rec);
};

/* As rib_setup().                                                                [main] */
int trace_setup(struct worker *w, const struct trace_conf *conf);
void trace_teardown(struct worker *w);

#endif
