/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label: the stages for packets that come with MPLS labels, and for IP packets that get
 * some. label.c and label_tunnel.c are on the slow path, label_fast.c on the fast path.
 *
 * Private to fwd/. The functions read the packet and write the burst.           [fwd-n]
 */
#ifndef FWD_LABEL_H
#define FWD_LABEL_H

#include "fwd/burst.h"
#include "port/label_write.h"

/*
 * Parse stage: look up the labels of a frame of EtherType MPLS, and set b->path. If the
 * labels lead to a lookup of the IP packet behind them, or to a neighbor, move b->l2 so
 * that burst_l3() is that packet, and validate it.
 */
void fwd_label_parse(struct burst *b, unsigned int i);

/*
 * Rewrite stage: write a packet that came with labels, or whose path pushes some, and that
 * leaves by no tunnel.
 */
void fwd_label_rewrite(struct burst *b, unsigned int i);

/* Describe a packet that came with labels, or whose path pushes some. */
struct label_packet fwd_label_packet(const struct burst *b, unsigned int i);

/*
 * The stages for packets that come with labels or get some, and leave by a tunnel
 * (label_tunnel.c). fwd_label_outer(), of the adjacency stage, finds the path of the outer
 * packet. It returns NULL if the packet got a drop or punt reason; its result is valid
 * until the next packet. fwd_label_enter(), of the rewrite stage, writes the packet and the
 * outer headers.
 */
const struct fib_tunnel_outer *fwd_label_outer(struct burst *b, unsigned int i,
					       uint16_t ifidx);
void fwd_label_enter(struct burst *b, unsigned int i);

/*
 * Drop a packet for `cause`, and ask the punt thread for the ICMP error. If the packet came
 * with labels, the error is sent only if the packet behind all labels is IP.
 */
void fwd_label_refuse(struct burst *b, unsigned int i, enum reason punt, enum reason cause);

/*
 * Ask the punt thread for the fragments of a packet that is too big, or for the ICMP error
 * with `mtu`. Drop the packet if it came with labels and the packet behind them is not IP.
 */
void fwd_label_too_big(struct burst *b, unsigned int i, unsigned int mtu);

/*
 * Parse a packet again that label_fast.c took and cannot finish. Its path may now differ,
 * so call this before the adjacency stage of label.c.
 */
void fwd_label_again(struct burst *b, unsigned int i);

/*
 * Let label.c finish a packet of label_fast.c whose hop is already known. The packet keeps
 * its path; only the rewrite stage follows.
 */
void fwd_label_keep_path(struct burst *b, unsigned int i);

/*
 * The stages for usual packets (label_fast.c). Parse sets b->switched; the others clear the
 * bits of packets that label.c has to take. fwd_label_fast_all() parses a burst in which
 * each frame has one label and an IP packet behind it. For any other burst it returns
 * false, and has changed only members that each parser sets.
 */
bool fwd_label_fast_all(struct burst *b);
void fwd_label_fast_parse(struct burst *b);
void fwd_label_fast_adjacency(struct burst *b);
/*
 * Return a bit for each fast-path packet of `odd` whose path pushes labels and leads to a
 * resolved neighbor, and set its hop. The packets of `odd` have no plain adjacency.
 */
uint64_t fwd_push_fast_adjacency(struct burst *b, uint64_t odd);
/*
 * Write the packets of `which`, which is b->switched or b->push. Return a bit for each
 * unusual packet, which is not written.
 */
uint64_t fwd_label_fast_rewrite(struct burst *b, uint64_t which);

#endif
