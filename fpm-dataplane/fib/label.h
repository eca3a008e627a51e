/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * label: the tables of MPLS, and the walk over the labels of a packet (RFC 3031, 3032).
 *
 *     label --fib->label[]--> group --group word--> path
 *
 * The path of a label says what to do with the rest of the packet after the label is
 * removed: PATH_ADJ sends the rest to a neighbor (penultimate hop popping), PATH_ENCAP
 * pushes labels and sends the rest (a swap), PATH_VRF looks up the rest in a VRF (number 0:
 * in table main).
 * In the tries PATH_ENCAP pushes labels onto an IP packet.
 *
 * zebra has one label space for the router (RFC 3031, 3.14), so there is one table.
 */
#ifndef FIB_LABEL_H
#define FIB_LABEL_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mpls_entry.h"
#include "fib/fib.h"

/*
 * Labels to push, and the neighbor or the tunnel to which the packet goes. rib writes an
 * entry before it publishes a path that leads here, and does not change it later.
 *
 * An entry with more than LABEL_WORDS labels, or of a tunnel, is packed. It leads to
 * adjacency 0, which has no neighbor, so that fast code leaves the packet to the slow path
 * without a test of its own. encap_next() returns its path, and encap_label() its labels.
 */
struct fib_encap {
	alignas(64) fib_path next; /* PATH_ADJ */
	uint8_t n;                 /* labels, at most LABELS_MAX */
	bool packed;
	uint16_t ttl; /* LABEL_TTL_OWN | TTL of labels on an IP packet; 0: fib->label_ttl */
	/*
	 * Outermost first, as in a packet in network order; TC, S and TTL are 0. A packed
	 * entry has packed labels in host order (base/mpls_entry.h), and behind them its path.
	 */
	uint32_t entry[LABEL_WORDS];
};
static_assert(sizeof(struct fib_encap) == 64, "one cache line");
static_assert(offsetof(struct fib_encap, n) == 4 && offsetof(struct fib_encap, ttl) == 6,
	      "the order of encap_head()");

/* Return all members before entry[] as one number, `next` in the lower half. */
static inline uint64_t
encap_head(const struct fib_encap *e)
{
	uint64_t head;

	memcpy(&head, e, sizeof(head));
	return head;
}

static inline unsigned int
encap_head_n(uint64_t head)
{
	return head >> 32 & UINT8_MAX;
}

static inline uint16_t
encap_head_ttl(uint64_t head)
{
	return (uint16_t)(head >> 48);
}

/*
 * labels_more(entry, ENCAP_MORE_NEXT) of a packed entry is its path: the index of the
 * adjacency, or with ENCAP_TUNNEL the number of the tunnel.
 */
#define ENCAP_MORE_NEXT (LABELS_MAX - LABEL_WORDS)
#define ENCAP_TUNNEL    (PATH_INDEX_MASK + 1)
static_assert(2 * ENCAP_TUNNEL <= LABELS_ALL, "labels_more() has all bits of the path");

/*
 * Return the path of the neighbor, or of the tunnel (PATH_ONLINK); for a headend of SRv6,
 * any other path (fib/headend.h).
 */
static inline fib_path
encap_next(const struct fib_encap *e)
{
	uint32_t more;

	if (!e->packed)
		return e->next;
	more = labels_more(e->entry, ENCAP_MORE_NEXT);
	return PATH((more & ENCAP_TUNNEL) != 0 ? PATH_ONLINK : PATH_ADJ,
		    more & PATH_INDEX_MASK);
}

/* Return label `i`, which is below LABELS_MAX. */
static inline uint32_t
encap_label(const struct fib_encap *e, unsigned int i)
{
	return e->packed         ? labels_at(e->entry, i)
	       : i < LABEL_WORDS ? label_of(__builtin_bswap32(e->entry[i]))
				 : 0;
}

/*
 * Set an entry that pushes `n` labels, at most LABELS_MAX, toward `next`: an adjacency, or
 * a tunnel (PATH_ONLINK). `ttl` as in struct fib_encap.
 */
static inline void
encap_set(struct fib_encap *e, fib_path next, const uint32_t *label, unsigned int n,
	  uint16_t ttl)
{
	bool tunnel = path_kind(next) == PATH_ONLINK;

	*e = (struct fib_encap){
		.n = (uint8_t)n, .packed = tunnel || n > LABEL_WORDS, .ttl = ttl};
	labels_pack(e->entry, label, n);
	if (e->packed) {
		e->next = PATH(PATH_ADJ, 0);
		labels_add_more(e->entry, ENCAP_MORE_NEXT,
				path_index(next) | (tunnel ? ENCAP_TUNNEL : 0));
		return;
	}
	e->next = next;
	for (unsigned int i = 0; i < n; i++)
		e->entry[i] = __builtin_bswap32(e->entry[i]);
}

#define FIB_POPS_MAX 4 /* most labels of this router that a packet may have */

/* Result of a walk over the labels of a packet. */
struct label_walk {
	/*
	 * Valid if `reason` is N_REASON. PATH_ADJ and PATH_ENCAP send the packet. PATH_VRF
	 * looks up the IP packet behind the labels in that VRF. Any other path means the
	 * same as for an IP packet.
	 */
	fib_path path;
	/* enum reason: a drop; PUNT_not_ip: to the kernel; N_REASON: follow `path`. */
	uint16_t reason;
	uint8_t n;   /* labels to remove */
	uint8_t ttl; /* the lowest TTL of these labels, as received */
	/*
	 * The TTL to copy to the labels that are pushed, or else to the next header if the
	 * TTL of that header is higher. UINT8_MAX: copy none (RFC 3443, pipe model).
	 */
	uint8_t carried;
	uint8_t tc;      /* traffic class of the last removed label */
	uint8_t payload; /* 4, 6: an IP packet follows them. 0: a label, or no IP packet */
	bool bottom;     /* the last removed label had S set */
};

/*
 * Walk over the labels of a packet until one leads out of the router, or until they end.
 *
 * `p` is the first label entry, in network order. `room` octets from there on may be read.
 *
 * If a label leads to a lookup and is not the last one, the next label is looked up, too
 * (RFC 3031, 3.10). The explicit null labels are accepted at any place (RFC 4182). The TTL
 * is not checked: the packet may be for this host. [RCU reader]
 */
void fib_label_walk(const struct fib *fib, const uint8_t *p, unsigned int room,
		    struct label_walk *walk);

/*
 * Return the flow hash of a packet with labels. It covers at most four labels, without
 * special ones. It ends with the entropy label (RFC 6790, 4.3), or else includes the IP
 * packet behind the labels.
 */
uint32_t fib_label_hash(const struct fib *fib, const uint8_t *p, unsigned int room);

static inline const struct fib_encap *
fib_encap(const struct fib *fib, fib_path path)
{
	return &fib->encap[path_index(path)];
}

/* Return the MTU of the routes of a class; 0: none. */
static inline uint16_t
fib_class_mtu(const struct fib *fib, uint16_t class)
{
	uint16_t mtu = atomic_load_explicit(&fib->mtu_bytes[class], memory_order_relaxed);

	return mtu == UINT16_MAX ? 0 : mtu;
}

/* Convert the mode of a label's route to the MTU class of its paths, and back. */
static inline uint16_t
class_of_label_mode(enum label_mode mode)
{
	static const uint16_t class[] = {[LABEL_MODE_PIPE] = FIB_CLASS_PIPE,
					 [LABEL_MODE_UNIFORM] = FIB_CLASS_UNIFORM};

	return class[mode];
}

static inline enum label_mode
label_mode_of_class(uint16_t class)
{
	return class == FIB_CLASS_PIPE      ? LABEL_MODE_PIPE
	       : class == FIB_CLASS_UNIFORM ? LABEL_MODE_UNIFORM
					    : LABEL_MODE_DEFAULT;
}

/*
 * Return true if the TTL of a removed label is carried over to the next header.
 *
 * path       of the label's route
 * of_kernel  fib->label_ttl
 */
static inline bool
label_carries_ttl(fib_path path, uint8_t of_kernel)
{
	uint32_t class = path_mtu_class(path);

	return class == FIB_CLASS_UNIFORM || (class != FIB_CLASS_PIPE && of_kernel == 0);
}

/*
 * Return the TTL of labels that are pushed onto an IP packet. 0: that of the packet.
 *
 * of_kernel  fib->label_ttl
 */
static inline uint8_t
encap_pipe_ttl(const struct fib_encap *e, uint8_t of_kernel)
{
	return e->ttl != 0 ? (uint8_t)e->ttl : of_kernel;
}

/*
 * Write the labels of an encapsulation to `at`, which has room for them. The encapsulation
 * is not packed.
 *
 * bottom  no label follows
 */
static inline void
encap_write(const struct fib_encap *e, uint8_t *at, uint8_t tc, bool bottom, uint8_t ttl)
{
	uint32_t low = __builtin_bswap32(label_entry(0, tc, false, ttl)), entry;

	for (unsigned int i = 0, n = e->n; i < n; i++) {
		entry = e->entry[i] | low;
		if (i + 1 == n && bottom)
			entry |= __builtin_bswap32(label_entry(0, 0, true, 0));
		memcpy(at + i * LABEL_BYTES, &entry, LABEL_BYTES);
	}
}

/* Write the labels of any encapsulation, packed or not; for the slow path. */
static inline void
encap_write_any(const struct fib_encap *e, uint8_t *at, uint8_t tc, bool bottom,
		uint8_t ttl)
{
	uint32_t entry;

	if (!e->packed) {
		encap_write(e, at, tc, bottom, ttl);
		return;
	}
	for (unsigned int i = 0, n = e->n; i < n; i++) {
		entry = label_entry(labels_at(e->entry, i), tc, bottom && i + 1 == n, ttl);
		entry = __builtin_bswap32(entry);
		memcpy(at + i * LABEL_BYTES, &entry, LABEL_BYTES);
	}
}

#endif
