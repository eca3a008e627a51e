/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters: send the counters of ports, VLANs and macvlans, as `fpmctl show interfaces`
 * shows them. Each interface is sent in a certain second of the interval, so that the
 * datagrams are spread.                                                            [sflow]
 */
#include "fib/fib.h"
#include "port/port.h"
#include "sflow/impl.h"

static const struct port *
port_find(const struct sflow *s, unsigned int ifidx)
{
	const struct port *port = ifidx == 0 ? NULL : &s->setup.port[ifidx - 1];

	return port != NULL && port_is_there(port) ? port : NULL;
}

static void
counters_of_device(const struct port *port, struct sflow_counters *c)
{
	struct port_stats st;

	if (port_stats(port, &st) < 0)
		return;
	c->in_discards = (uint32_t)(st.rx_missed + st.rx_nombuf);
	c->in_errors = (uint32_t)st.rx_errors;
	c->out_errors = (uint32_t)st.tx_errors;
	c->promiscuous = port_takes_all(port);
}

/* Return the state of a port's link; all zero without a port. */
static struct port_link
interface_link(const struct port *port)
{
	if (port == NULL)
		return (struct port_link){0};
	return port_link_known(port);
}

/*
 * Return the number of the next counter sample of an interface. The number begins again
 * when the counters begin again at 0, because a collector would take lower counters for a
 * wrap (sFlow 5, counters_sample). A port that is opened again keeps its ifIndex, but its
 * counters begin at 0.
 */
static uint32_t
counted_next(struct counted *last, uint32_t ifindex, uint32_t opening)
{
	if (last->ifindex != ifindex || last->opening != opening)
		*last = (struct counted){.ifindex = ifindex, .opening = opening};
	return ++last->sequence;
}

static void
interface_send(struct sflow *s, const struct fib_iface *iface)
{
	const struct port *port = port_find(s, iface->port);
	bool is_port = iface->ifidx < PORT_MAX && port != NULL;
	uint32_t opening = is_port ? port->opening : 0;
	struct port_link link = interface_link(port);
	struct if_counters n;
	struct sflow_counters c = {
		.sequence =
			counted_next(&s->counted[iface->ifidx], iface->ifindex, opening),
		.ifindex = iface->ifindex,
		.speed = link.mbit_per_s * 1000000ull,
		.direction = link.mbit_per_s == 0 ? 0
			     : link.full_duplex   ? 1
						  : 2,
		/* Without a link, the administrative state of the interface is unknown. */
		.admin_up = iface->up || !link.up,
		.oper_up = iface->up};

	counters_port(iface->ifidx, &n);
	if (is_port) {
		n.rx_packets -= port->base.rx_packets;
		n.rx_bytes -= port->base.rx_bytes;
		n.tx_packets -= port->base.tx_packets;
		n.tx_bytes -= port->base.tx_bytes;
		counters_of_device(port, &c);
	}
	c.in_octets = n.rx_bytes;
	c.in_packets = (uint32_t)n.rx_packets;
	c.out_octets = n.tx_bytes;
	c.out_packets = (uint32_t)n.tx_packets;
	out_add(s, datagram_add_counters, &c);
	STATUS_ADD(counters, 1);
}

void
counters_send(struct sflow *s)
{
	uint32_t every = s->now.counters_s, turn;

	if (every == 0 || s->agent_family == 0)
		return;
	turn = s->n_seconds % every;
	for (unsigned int i = 1; i < IFIDX_MAX; i++) {
		const struct fib_iface *iface =
			i % every == turn ? fib_iface(s->setup.fib, i) : NULL;

		if (iface != NULL && iface->ifindex != 0)
			interface_send(s, iface);
	}
	out_flush(s);
}
