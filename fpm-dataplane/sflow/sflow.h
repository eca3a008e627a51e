/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sflow: the thread that sends sFlow version 5 datagrams (sflow.org/sflow_version_5.txt).
 * It empties the rings of samples and dropped packets that forwarders fill (fwd/sample.c),
 * asks rib for the prefixes, adds the counters of interfaces, and sends to the collectors
 * by UDP from the control namespace. It also gives samples to the kernel's psample. The
 * thread may be slow, because no forwarder waits for it.
 */
#ifndef SFLOW_SFLOW_H
#define SFLOW_SFLOW_H

#include "base/sflow_conf.h"
#include "base/worker.h"

struct fib;
struct port;
struct watch;

struct sflow_setup {
	const struct fib *fib;
	struct worker *rib;      /* receives MSG_QUERY, answers with MSG_REPLY */
	struct watch *watch;     /* the rings of samples */
	const struct port *port; /* array of PORT_SLOTS */
	const char *netns;       /* the control namespace */
	struct sflow_conf conf;  /* settings at the start; MSG_SFLOW brings later ones */
};

/* Fill `w`; worker_start() starts the thread. Returns 0 or -ENOMEM.              [main] */
int sflow_setup(struct worker *w, const struct sflow_setup *setup);
void sflow_teardown(struct worker *w);

#endif
