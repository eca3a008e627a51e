/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx: put packets into the transmit buffers (struct tx_buffer of burst.h).
 *
 * Private to fwd/. A forwarder fills and sends its own buffers.                 [fwd-n]
 */
#ifndef FWD_TX_H
#define FWD_TX_H

#include "fwd/burst.h"

/* Send the buffer of a port. Afterwards it has only the frames that fwd_tx_own() keeps. */
void fwd_tx_send(struct fwd *f, uint16_t ifidx);

/*
 * Write tx->vlan, by which all frames of the buffer leave, into each m->port, see
 * tx_ifidx().
 */
void fwd_tx_mark_vlans(struct tx_buffer *tx) __attribute__((cold));

/* Note that the port has frames in this round. */
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

/* Put a frame of a port, or of a VLAN that m->port names, into the buffer of the port. */
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

/* Put a frame of a VLAN into the buffer of its port. */
static inline void
tx_put_vlan(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	uint16_t port = fib_iface(f->fib, ifidx)->port;

	m->port = ifidx; /* see tx_ifidx() */
	f->tx[port].has_vlans = true;
	f->tx[port].has_inserts |= (m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0;
	tx_put_port(f, port, m);
}

/* fwd_tx(), inlined for loops over packets. */
static inline void
fwd_tx_put(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	if (ifidx >= PORT_MAX)
		tx_put_vlan(f, ifidx, m);
	else
		tx_put_port(f, ifidx, m);
}

/*
 * Put a frame into the buffer of an interface's port. A frame that the port does not take
 * is dropped when the buffer is sent.
 */
void fwd_tx(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m);
/* Send all buffers at the end of a round. */
void fwd_tx_flush(struct fwd *f);

/*
 * Begin a round with the frames of this router: those of the kernel, of the punt thread and
 * of BFD. All frames that are put into the buffers before fwd_tx_own_end() are frames of
 * this router; later frames are in transit.
 *
 * If the device does not take all frames of a buffer, frames of this router are kept at the
 * front of the buffer for the next round, at most half of a buffer. They are dropped when
 * the device has taken no frame for TX_KEEP_MS. Frames in transit are dropped. So a frame
 * of this router waits only for the frames in the device's ring, and is not lost.
 */
void fwd_tx_own(struct fwd *f);
void fwd_tx_own_end(struct fwd *f);
/* Drop the frames that are kept: the forwarder ends. */
void fwd_tx_drop(struct fwd *f);
#define TX_KEEP_MS 100u

/*
 * Put a whole burst into the buffers. Returns a bit for each entry that is left over,
 * because a buffer is full or the burst leaves by too many ports.
 */
uint64_t fwd_spread_avx512(struct burst *b);
uint64_t fwd_spread_avx2(struct burst *b);
uint64_t fwd_spread_sse4(struct burst *b);

/*
 * Reserve room for the next `n` packets of a port, as if they were there already. Returns
 * NULL if there is no room.
 */
struct rte_mbuf **fwd_tx_room(struct fwd *f, uint16_t ifidx, unsigned int n);

/*
 * Announce packets of a port that leave by `vlan`; their m->port does not name it (see
 * tx_ifidx()). If `vlan` is 0, m->port names the VLAN of each packet that leaves by one.
 * Returns false if m->port has to name the VLAN, because the buffer has frames of another
 * interface.
 */
bool fwd_tx_vlan(struct fwd *f, uint16_t port, uint16_t vlan);

/* Send the buffer if it is full. Call this after the packets are in it. */
void fwd_tx_full(struct fwd *f, uint16_t ifidx);

#endif
