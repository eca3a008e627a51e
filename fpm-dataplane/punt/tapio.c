/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tapio: move frames between TAPs and ports, unchanged in both directions. Frames for a TAP
 * that is down or gone are dropped and counted, and the TAP is read again when its link is
 * back.                                                                          [punt]
 */
#include <errno.h>
#include <string.h>

#include "port/vlan_tags.h"
#include "punt/internal.h"

#define L2_BYTES_MAX 22u /* Ethernet header and two VLAN tags */

void
tap_deliver(struct punt *p, struct rte_mbuf *m)
{
	const struct fib_iface *in = fib_iface(p->fib, packet_meta(m)->in_ifidx);
	/*
	 * An inner packet of a tunnel has no port. It comes here if its route went away
	 * while it waited.
	 */
	struct port *port =
		in == NULL || in->port == 0 ? NULL : &p->conf.port[in->port - 1];
	const void *frame;
	uint32_t len;

	vlan_restore(m, in);
	len = rte_pktmbuf_pkt_len(m);
	if (len > LINEAR_BYTES) {
		punt_drop(p, m, DROP_l2_short);
		return;
	}
	frame = rte_pktmbuf_read(m, 0, len, p->linear);
	/* The port may have been removed after the frame was received. */
	if (port == NULL || !port_is_there(port) || tap_write(&port->tap, frame, len) < 0) {
		punt_drop(p, m, DROP_tap_down);
		return;
	}
	counter_add(&p->count->to_kernel, 1);
	rte_pktmbuf_free(m);
}

/*
 * Return true if the port can send a frame of the kernel. The TAP's MTU may be larger than
 * the device's, and a read cuts a frame that is larger than a buffer. A truncated frame
 * must not be sent.
 */
static bool
frame_fits(const struct punt *p, const struct port *port, uint32_t len)
{
	const struct fib_iface *out = fib_iface(p->fib, port->ifidx);

	return out == NULL || len <= out->mtu_bytes + L2_BYTES_MAX;
}

static void
tap_on_frames(struct ev_loop *loop, ev_io *io, int revents)
{
	struct punt *p = io->data;
	struct port *port = &p->conf.port[io - p->tap_io];
	ssize_t len;

	for (unsigned int i = 0; i < TAP_BURST; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(p->conf.pool);

		if (m == NULL) {
			/*
			 * Read and drop the frame, because a frame in the queue of the TAP
			 * would wake the thread again and again.
			 */
			if (tap_read(&port->tap, p->linear, LINEAR_BYTES) > 0)
				counter_add(&p->count->reason[DROP_no_mbuf], 1);
			return;
		}
		len = tap_read(&port->tap, rte_pktmbuf_mtod(m, void *),
			       rte_pktmbuf_tailroom(m));
		if (len <= 0) {
			rte_pktmbuf_free(m);
			if (len < 0)
				ev_io_stop(loop, io); /* until MSG_LINK: link up */
			return;
		}
		*packet_meta(m) = (struct packet_meta){
			.fwd = (uint16_t)(port->ifidx % p->conf.n_fwd)};
		m->data_len = (uint16_t)len;
		m->pkt_len = (uint32_t)len;
		if (!frame_fits(p, port, (uint32_t)len)) {
			punt_drop(p, m, DROP_mtu);
			continue;
		}
		counter_add(&p->count->from_kernel, 1);
		punt_inject(p, m,
			    learn_peer(p, rte_pktmbuf_mtod(m, uint8_t *), (uint32_t)len,
				       port->ifidx));
	}
}

void
tap_poll(struct punt *p, unsigned int port, bool on)
{
	if (on)
		ev_io_start(p->worker->loop, &p->tap_io[port]);
	else
		ev_io_stop(p->worker->loop, &p->tap_io[port]);
}

void
tap_replace(struct punt *p, const struct msg_tap *t)
{
	unsigned int i = t->ifidx - 1u;
	struct port *port = &p->conf.port[i];
	bool polled = p->tap_io[i].data != NULL;

	if (polled)
		tap_forget(p, i);
	port->tap.ifindex = t->ifindex;
	if (polled)
		tap_begin(p, i);
}

void
tap_begin(struct punt *p, unsigned int port)
{
	ev_io_init(&p->tap_io[port], tap_on_frames, p->conf.port[port].tap.fd, EV_READ);
	p->tap_io[port].data = p;
	tap_poll(p, port, true);
}

void
tap_forget(struct punt *p, unsigned int port)
{
	if (p->tap_io[port].data == NULL)
		return;
	tap_poll(p, port, false);
	p->tap_io[port].data = NULL;
}

int
tap_start(struct punt *p)
{
	for (unsigned int i = 0; i < p->conf.n_port; i++)
		if (port_is_there(&p->conf.port[i]))
			tap_begin(p, i);
	return 0;
}

void
tap_stop(struct punt *p)
{
	for (unsigned int i = 0; i < p->conf.n_port; i++)
		tap_forget(p, i);
}
