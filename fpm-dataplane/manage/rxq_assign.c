/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply the operations of port/rxq_set.h to all queues of a port. This file has no state:
 * the assignment is read from the sets of the forwarders.
 */
#include "manage/rxq_assign.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "port/rxq.h"

static_assert(CONFIG_CORES_MAX <= RXQ_PLAN_MAX && CONFIG_PORTS_MAX <= RXQ_PLAN_MAX,
	      "struct rxq_plan is too small");

/* Return the index of the forwarder on `cpu`, which is one of `core`. */
static unsigned int
fwd_on_cpu(const unsigned int *core, unsigned int n_core, unsigned int cpu)
{
	unsigned int i = 0;

	while (i < n_core - 1 && core[i] != cpu)
		i++;
	return i;
}

/*
 * Return a score of a forwarder's NUMA node for the packets of `port`: 2 for each other
 * port on the node, because packets leave by the other ports, and 1 for `port` itself.
 */
static unsigned int
fwd_nearness(const struct rxq_plan *plan, unsigned int fwd, unsigned int port)
{
	unsigned int near = 0;

	for (unsigned int p = 0; p < plan->n_port; p++)
		if (plan->port_node[p] >= 0 && plan->port_node[p] == plan->fwd_node[fwd])
			near += p == port ? 1 : 2;
	return near;
}

unsigned int
rxq_plan_queue(struct rxq_plan *plan, unsigned int port)
{
	unsigned int best = 0;

	for (unsigned int f = 1; f < plan->n_fwd; f++)
		if (plan->n_queue[f] < plan->n_queue[best] ||
		    (plan->n_queue[f] == plan->n_queue[best] &&
		     fwd_nearness(plan, f, port) > fwd_nearness(plan, best, port)))
			best = f;
	plan->n_queue[best]++;
	return best;
}

/* Return the present assignment. Set *at to the index of `port` in it. */
static struct rxq_plan
rxq_plan_present(const struct rxq_assign *d, const struct port *port, unsigned int *at)
{
	struct rxq_plan plan = {.n_fwd = d->n_fwd};

	for (unsigned int f = 0; f < d->n_fwd; f++) {
		plan.fwd_node[f] = d->node[f];
		plan.n_queue[f] = serving_set(&d->serving[f])->n;
	}
	for (unsigned int p = 0; p < PORT_SLOTS && plan.n_port < RXQ_PLAN_MAX; p++) {
		if (!port_is_there(&d->port[p]))
			continue;
		if (&d->port[p] == port)
			*at = plan.n_port;
		plan.port_node[plan.n_port++] = d->port[p].node;
	}
	return plan;
}

int
rxq_assign_begin(const struct rxq_assign *d, const struct port *port,
		 const struct config_port *cp, bool named)
{
	unsigned int at = 0;
	struct rxq_plan plan = rxq_plan_present(d, port, &at);
	int rc = 0;

	for (uint16_t q = 0; q < port->n_rxq && rc == 0; q++) {
		struct rxq rxq;
		unsigned int f;

		if (named != (q < cp->n_core))
			continue;
		f = named ? fwd_on_cpu(d->cpu, d->n_fwd, cp->core[q])
			  : rxq_plan_queue(&plan, at);
		port_rxq(port, q, &rxq);
		rc = serving_add(&d->serving[f], &rxq);
	}
	return rc;
}

int
rxq_assign_all(const struct rxq_assign *d, const struct config_port *cp, unsigned int n)
{
	int rc = 0;

	/*
	 * The ports are in the order of the file. Ports of the file that are not open yet
	 * have no slot.
	 */
	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int p = 0, slot = 0; p < n && rc == 0; p++)
			if (strcmp(d->port[slot].name, cp[p].tap) == 0)
				rc = rxq_assign_begin(d, &d->port[slot++], &cp[p],
						      turn == 0);
	return rc;
}

void
rxq_assign_end(const struct rxq_assign *d, const struct port *port)
{
	for (uint16_t q = 0; q < port->n_rxq; q++) {
		unsigned int f = serving_index(d->serving, d->n_fwd, port->ifidx, q);

		if (f < d->n_fwd)
			(void)serving_remove(&d->serving[f], port->ifidx, q);
	}
}

/* Move a queue to forwarder `to`, if a forwarder serves it. Returns 0 or -ENOMEM. */
static int
queue_move(const struct rxq_assign *d, const struct port *port, uint16_t q, unsigned int to)
{
	unsigned int f = serving_index(d->serving, d->n_fwd, port->ifidx, q);

	return f < d->n_fwd && to < d->n_fwd
		       ? serving_move(&d->serving[f], &d->serving[to], port->ifidx, q)
		       : 0;
}

int
rxq_assign_move(const struct rxq_assign *d, const struct port *port,
		const struct config_port *cp)
{
	unsigned int was[CONFIG_CORES_MAX];
	uint16_t q = 0;
	int rc = 0;

	for (; q < port->n_rxq && q < cp->n_core && rc == 0; q++) {
		was[q] = serving_index(d->serving, d->n_fwd, port->ifidx, q);
		rc = queue_move(d, port, q, fwd_on_cpu(d->cpu, d->n_fwd, cp->core[q]));
	}
	while (rc < 0 && q-- > 0) /* forwarders have room for queues that they served */
		(void)queue_move(d, port, q, was[q]);
	return rc;
}

void
rxq_assign_save(const struct rxq_assign *d, struct rxq_assign_saved *seen)
{
	struct rxq_assign_port *at;

	seen->n_port = 0;
	for (unsigned int p = 0; p < PORT_SLOTS && seen->n_port < CONFIG_PORTS_MAX; p++) {
		const struct port *port = &d->port[p];

		if (!port_is_there(port))
			continue;
		at = &seen->port[seen->n_port++];
		memcpy(at->name, port->name, sizeof(at->name));
		at->n_rxq = 0;
		while (at->n_rxq < port->n_rxq && at->n_rxq < CONFIG_CORES_MAX) {
			at->fwd[at->n_rxq] = (uint8_t)serving_index(d->serving, d->n_fwd,
								    port->ifidx, at->n_rxq);
			at->n_rxq++;
		}
	}
}

int
rxq_assign_restore(const struct rxq_assign *d, const struct rxq_assign_saved *seen)
{
	int rc = 0;

	for (unsigned int s = 0; s < seen->n_port; s++) {
		const struct rxq_assign_port *was = &seen->port[s];
		unsigned int p = 0;

		while (p < PORT_SLOTS && !(port_is_there(&d->port[p]) &&
					   strcmp(d->port[p].name, was->name) == 0))
			p++;
		for (uint16_t q = 0;
		     p < PORT_SLOTS && q < d->port[p].n_rxq && q < was->n_rxq; q++)
			if (queue_move(d, &d->port[p], q, was->fwd[q]) < 0)
				rc = -ENOMEM;
	}
	return rc;
}
