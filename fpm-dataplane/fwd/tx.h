/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx: packets on their way into the transmit buffers (struct tx_buffer of burst.h).
 *
 * Private to fwd/. A forwarder fills its own buffers, and sends them.              [fwd-n]
 */
#ifndef FWD_TX_H
#define FWD_TX_H

#include "fwd/burst.h"

/* Send the buffer of a port; it is empty then. */
void fwd_tx_send(struct fwd *f, uint16_t ifidx);

/* All in the buffer leave by one VLAN; from here on each says so, for others come. */
void fwd_tx_mark_vlans(struct tx_buffer *tx) __attribute__((cold));

/* Note that a port is sent to in this round. */
static inline void
tx_list(struct fwd *f, uint16_t ifidx)
{
	struct tx_buffer *tx = &f->tx[ifidx];

	if (tx->listed)
		return;
	tx->listed = true;
	tx->port_id = fib_iface(f->fib, ifidx)->port_id;
	f->tx_used[f->n_tx_used++] = ifidx;
}

/* A frame of a port, or of a VLAN that says so, into the buffer of the port. */
static inline void
tx_put_port(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	uint16_t n;

	if (tx->vlan != 0)
		fwd_tx_mark_vlans(tx);
	n = tx->n;
	if (n == 0)
		tx_list(f, ifidx);
	tx->m[n++] = m;
	tx->n = n;
	if (n == f->tx_burst)
		fwd_tx_send(f, ifidx);
}

/* A frame of a VLAN, into the buffer of its port. */
static inline void
tx_put_vlan(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	uint16_t port = fib_iface(f->fib, ifidx)->port;

	m->port = ifidx; /* see tx_ifidx() */
	f->tx[port].has_vlans = true;
	f->tx[port].has_inserts |= (m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0;
	tx_put_port(f, port, m);
}

/* fwd_tx(), inlined where packets come one after the other. */
static inline void
fwd_tx_put(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	if (ifidx >= PORT_MAX)
		tx_put_vlan(f, ifidx, m);
	else
		tx_put_port(f, ifidx, m);
}

/* Append to the buffer of an interface's port; what that does not take is dropped. */
void fwd_tx(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m);
void fwd_tx_flush(struct fwd *f);

/*
 * The whole burst leaves: to the buffers with it. Returns entries that were left over, a bit
 * each, for no room or too many interfaces.
 */
uint64_t fwd_spread_avx512(struct burst *b);

/* Where the next `n` packets of a port go, which counts as done; NULL: there is no room. */
struct rte_mbuf **fwd_tx_room(struct fwd *f, uint16_t ifidx, unsigned int n);

/*
 * The next packets of a port all leave by `vlan`, without saying so (see tx_ifidx()); 0: those
 * that leave by VLANs do. Returns false when they have to, for others are there already.
 */
bool fwd_tx_vlan(struct fwd *f, uint16_t port, uint16_t vlan);

/* They are there: send them, if the buffer is full. */
void fwd_tx_full(struct fwd *f, uint16_t ifidx);

#endif
