/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What port/serve.h can do, done for whole ports. Keeps nothing: who serves what is read off
 * the sets that forwarders go by.
 */
#include "deal.h"

#include <assert.h>

#include "plan.h"
#include "port/rxq.h"

static_assert(CONFIG_CORES_MAX <= PLAN_MAX && CONFIG_PORTS_MAX <= PLAN_MAX,
	      "all have room");

/* How things stand. *at becomes the number of `port` among the ports there are. */
static struct plan
plan_of(const struct deal *d, const struct port *port, unsigned int *at)
{
	struct plan plan = {.n_fwd = d->n_fwd};

	for (unsigned int f = 0; f < d->n_fwd; f++) {
		plan.fwd_node[f] = d->node[f];
		plan.n_queue[f] = serve_set(&d->serving[f])->n;
	}
	for (unsigned int p = 0; p < PORT_SLOTS && plan.n_port < PLAN_MAX; p++) {
		if (!port_is_there(&d->port[p]))
			continue;
		if (&d->port[p] == port)
			*at = plan.n_port;
		plan.port_node[plan.n_port++] = d->port[p].node;
	}
	return plan;
}

int
deal_begin(const struct deal *d, const struct port *port, const struct config_port *cp,
	   bool named)
{
	unsigned int at = 0;
	struct plan plan = plan_of(d, port, &at);
	int rc = 0;

	for (uint16_t q = 0; q < port->n_rxq && rc == 0; q++) {
		struct rxq rxq;
		unsigned int f;

		if (named != (q < cp->n_core))
			continue;
		f = named ? plan_on(d->cpu, d->n_fwd, cp->core[q]) : plan_queue(&plan, at);
		port_rxq(port, q, &rxq);
		rc = serve_begin(&d->serving[f], &rxq);
	}
	return rc;
}

void
deal_end(const struct deal *d, const struct port *port)
{
	for (uint16_t q = 0; q < port->n_rxq; q++) {
		unsigned int f = serve_who(d->serving, d->n_fwd, port->ifidx, q);

		if (f < d->n_fwd)
			(void)serve_end(&d->serving[f], port->ifidx, q);
	}
}

int
deal_move(const struct deal *d, const struct port *port, const struct config_port *cp)
{
	int rc = 0;

	for (uint16_t q = 0; q < port->n_rxq && q < cp->n_core && rc == 0; q++) {
		unsigned int f = serve_who(d->serving, d->n_fwd, port->ifidx, q);

		if (f < d->n_fwd)
			rc = serve_move(&d->serving[f],
					&d->serving[plan_on(d->cpu, d->n_fwd, cp->core[q])],
					port->ifidx, q);
	}
	return rc;
}
