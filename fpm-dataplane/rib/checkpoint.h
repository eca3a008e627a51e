/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint: all routes and next hops, copied record by record into memory that outlives
 * the process (a memfd that the service manager keeps). [rib]. The next daemon forwards by
 * it until zebra has connected and replayed its routes, and until rtnl has read the
 * kernel's tables.
 *
 *     page 0      header
 *     routes      32 octets each, by the route's number: of zebra, of table main
 *     routes      32 octets each, of zebra, of all other tables. Some belong to VRFs; a
 *                 record has the kernel's table number, because numbers of VRFs are valid
 *                 in one process only
 *     hops        56 octets each: next hop `at` of `n` of a slot, written as a set with one
 *                 `version`
 *     routes      of the kernel, of all tables, by the number of the record (kroute.h)
 *     kernel      24 octets each: the other fields of a route of the kernel
 *     stacks      64 octets each: the labels of a next hop, by the number of its record
 *
 * Source-specific routes are left out: rtnl reads them again.
 *
 * All numbers are in host order, because the memory stays on the machine and is lost at a
 * reboot. Each record has a CRC over itself and its own number. A killed writer leaves at
 * most one record of a kind, or the set of one slot, unfinished. A reader accepts this and
 * no other fault.
 */
#ifndef RIB_CHECKPOINT_H
#define RIB_CHECKPOINT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arch.h"
#include "base/prefix.h"
#include "fib/label.h"

struct next_hop;
struct nh_list;
struct stack;

/* Increment this number when a record, or the meaning of an octet in it, changes. */
#define CKPT_LAYOUT 5u
/*
 * Older layouts that a reader accepts. Layout 2 ends after the hops, and layout 3 after the
 * kernel's records. Layout 4 has at most CKPT_WORDS labels of a hop.
 */
#define CKPT_LAYOUT_2 2u
#define CKPT_LAYOUT_3 3u
#define CKPT_LAYOUT_4 4u

/* Arrays of routes: zebra's as in struct rib_tables, and the kernel's. */
enum { CKPT_MAIN, CKPT_OTHER, CKPT_ZEBRAS, CKPT_KERNEL = CKPT_ZEBRAS, CKPT_PARTS };

struct ckpt_header {
	char magic[8];
	uint32_t layout, header_bytes, route_bytes, hop_bytes;
	uint64_t netns; /* namespace of the TAPs, to which the interface numbers belong */
	uint32_t crc;   /* of all above */
	/*
	 * Each field below is stored on its own, without CRC. The reader compares the
	 * counts with the records.
	 */
	uint32_t attempts;                          /* starts that have begun to read it */
	uint32_t route_high[CKPT_ZEBRAS], hop_high; /* highest number ever in use */
	uint32_t n_routes[CKPT_ZEBRAS], n_slots;    /* present numbers */
	/* Netlink port id of the zebra that was connected last. */
	uint32_t nl_pid;
	/*
	 * CLOCK_BOOTTIME until which fpm refuses this zebra (`fpmctl hold`). 0: fpm accepts
	 * it. A writer of a version without this field leaves 0 here.
	 */
	uint32_t held_until_s;
	uint64_t alive_ms;              /* CLOCK_BOOTTIME when the writer last ran */
	uint32_t kernel_high, n_kernel; /* as route_high, n_routes; layout 2 has 0 */
};
static_assert(offsetof(struct ckpt_header, alive_ms) == 72, "as in layout 2");

struct ckpt_route {
	struct ipaddr addr;
	uint32_t slot;
	uint8_t family, len, protocol, rtm_type; /* family 0: free, all octets zero */
	uint32_t table;
	uint32_t crc; /* of all above and the number; never 0 */
};
static_assert(sizeof(struct ckpt_route) == 32, "two records a cache line");

/* Members of a route of the kernel, see struct kroute. */
struct ckpt_kernel {
	uint32_t metric, order, ifindex, source4;
	uint8_t scope, preference, flags, zero;
	uint32_t crc; /* of all above and the number; never 0 */
};
static_assert(sizeof(struct ckpt_kernel) == 24, "no padding");

enum { CKPT_IS_LOCAL = 1, CKPT_CONNECTED = 2, CKPT_JOINS = 4 };

struct ckpt_hop {
	uint32_t slot, version, at, n; /* n 0: free, all octets zero */
	struct ipaddr gw;
	uint32_t ifindex, weight;
	uint8_t gw_family, encap;
	uint8_t flags; /* CKPT_ONLINK..., label mode << CKPT_MODE_SHIFT */
	uint8_t kind;  /* enum path_kind; it and enum hop_encap are part of the layout */
	uint32_t mtu_bytes; /* of the slot's routes, 0: none; the same in a whole set */
	uint32_t number;
	uint32_t crc; /* of all above; never 0 */
};
static_assert(sizeof(struct ckpt_hop) == 56, "no padding");

enum {
	CKPT_ONLINK = 1,
	CKPT_VRF_SUBNET = 2, /* next_hop.vrf_subnet; its meaning depends on the kind */
	CKPT_MODE_SHIFT = 2, /* enum label_mode; the same in a whole set */
	CKPT_MODE_END = (LABEL_MODE_UNIFORM + 1) << CKPT_MODE_SHIFT,
	CKPT_DEAD = 16, /* next_hop.dead; a version without this flag ignores the hop */
};

#define CKPT_WORDS LABEL_WORDS

/* Labels of a hop whose encap is HOP_MPLS, or words of base/srv6_words.h of HOP_SEG6. */
struct ckpt_stack {
	uint16_t n;   /* 0: the hop is unsupported */
	uint16_t ttl; /* as in struct stack; 0 in older layouts */
	/*
	 * The labels as stack_labels() returns them; unused words are 0. If there are more
	 * labels than words, labels_pack() has packed them.
	 */
	uint32_t word[CKPT_WORDS];
	uint32_t crc; /* of all above and the version of the hop; never 0 */
};
static_assert(sizeof(struct ckpt_stack) == 64, "one cache line");

struct ckpt {
	int fd;
	size_t bytes;                         /* of the mapping */
	struct ckpt_header *head;             /* the mapping */
	struct ckpt_route *route[CKPT_PARTS]; /* each by number, from 1 */
	struct ckpt_kernel *kernel;           /* by number, from 1 */
	struct ckpt_hop *hop;                 /* by number, from 1 */
	struct ckpt_stack *stack; /* by number of the hop; NULL: an older layout */
	/* Writer, in its own memory. */
	bool quiesced; /* a successor reads it: only alive_ms is still written */
	uint32_t version;
	uint32_t *hop_next; /* by hop number: next hop of the slot, or next free record */
	uint32_t hop_cap, hop_free;
	uint32_t *hop_first; /* by slot */
	uint32_t slot_cap;
	uint64_t full; /* writes of a slot or of a kernel route that found no room */
	/* Reader: the numbers of the valid hops, sorted by set, and the valid routes. */
	uint32_t *sorted;
	uint32_t n_sorted;
	struct ckpt_order {
		uint64_t *word[2];     /* two arrays for sorting */
		const uint64_t *by[2]; /* IPv4, IPv6: in the order of their addresses */
		uint32_t n[2];
	} order[CKPT_PARTS];
	uint32_t n_bad; /* invalid records that the reader accepted */
};

/* Return true if a writer exists and is quiesced. */
static inline bool
ckpt_is_quiesced(const struct ckpt *c)
{
	return c != NULL && c->quiesced;
}

/*
 * Return the CRC-32C (RFC 3720, 12.1) of `len` octets, a multiple of 4, begun with `seed`.
 * It is never 0.
 */
static inline uint32_t
ckpt_crc(uint32_t seed, const void *record, size_t len)
{
	const uint8_t *p = record;
	uint32_t crc = ~seed, word;

	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, 4);
		crc = arch_crc32c(crc, word);
	}
	return crc == 0 ? 1 : crc;
}
/* CRC of all members of a record before its member `crc`. */
#define CKPT_CRC_OF(seed, r) ckpt_crc(seed, r, offsetof(__typeof__(*(r)), crc))
#define CKPT_CRC(r)          CKPT_CRC_OF(0, r)

/*
 * Create an empty checkpoint. Return NULL if out of memory or if the kernel has no memfd.
 */
struct ckpt *ckpt_new(uint64_t netns);

/*
 * Open the checkpoint of an earlier process for reading, and verify all of it. `fd` is
 * closed with the checkpoint, or at once if this fails. Return NULL if the checkpoint
 * cannot be used, and set *why to the reason in a few words: other layout, other namespace,
 * older than `max_age_ms` at `now_ms` (CLOCK_BOOTTIME), damaged, or used by three starts
 * that all crashed.
 */
struct ckpt *ckpt_open(int fd, uint64_t netns, uint64_t now_ms, uint64_t max_age_ms,
		       const char **why);
extern const char ckpt_no_memory[]; /* a reason; the checkpoint itself is intact */
/*
 * Reasons that come from an installation or a configuration: the checkpoint itself is
 * intact.
 */
extern const char ckpt_other_layout[], ckpt_other_netns[];
void ckpt_free(struct ckpt *c);
/* See rib_checkpoint_attempts(), _alive_ms() and _reset_attempts() in rib.h. */
unsigned int ckpt_attempts(int fd);
uint64_t ckpt_alive_ms(int fd);
/* Return the size of a file of a known layout. */
size_t ckpt_file_bytes(uint32_t layout);
/* Return how many routes the checkpoint claims to have; 0: it is unreadable. */
uint64_t ckpt_routes(int fd);
void ckpt_reset_attempts(int fd, unsigned int attempts);
/*
 * Free the memory of the records if each start with the checkpoint crashed. No process may
 * still write it.
 */
void ckpt_empty_if_tried(int fd);

/* Return the array that has the routes of a table. */
unsigned int ckpt_part(uint32_t table);
/* Write `r`, except for its CRC, as route `number` of the array of its table. */
void ckpt_put_route(struct ckpt *c, uint32_t number, const struct ckpt_route *r);
void ckpt_drop_route(struct ckpt *c, uint32_t table, uint32_t number);
/* Write `r` and `k`, except for their CRCs, as route `number` of the kernel. */
void ckpt_put_kernel(struct ckpt *c, uint32_t number, const struct ckpt_route *r,
		     const struct ckpt_kernel *k);
void ckpt_drop_kernel(struct ckpt *c, uint32_t number);
/* Write the next hops of a slot. `stacks` has the label stacks by number. */
void ckpt_put_slot(struct ckpt *c, uint32_t slot, const struct nh_list *hops,
		   uint32_t mtu_bytes, const struct stack *stacks);
void ckpt_drop_slot(struct ckpt *c, uint32_t slot);
void ckpt_alive(struct ckpt *c, uint64_t now_ms);
void ckpt_zebra(struct ckpt *c, uint32_t nl_pid, uint32_t held_until_s);
/* Return the memory that the kernel has allocated for the checkpoint. */
size_t ckpt_bytes(const struct ckpt *c);

/* Return the address of the highest number ever in use, or of the count, of an array. */
static inline uint32_t *
ckpt_high(struct ckpt_header *h, unsigned int part)
{
	return part == CKPT_KERNEL ? &h->kernel_high : &h->route_high[part];
}
static inline uint32_t *
ckpt_n(struct ckpt_header *h, unsigned int part)
{
	return part == CKPT_KERNEL ? &h->n_kernel : &h->n_routes[part];
}
/* Return the valid route with this number, from 1 to ckpt_high(), or NULL. */
const struct ckpt_route *ckpt_route(const struct ckpt *c, unsigned int part,
				    uint32_t number);
/*
 * Return valid route `i` of a family (v 0: IPv4, 1: IPv6), for a reader. `i` goes from 0 to
 * order[part].n[v] - 1 in the order of addresses, so that neighbors in the tries follow
 * each other: IPv4 by the whole address, IPv6 by the 32 bits that follow the first 3 bits.
 */
static inline const struct ckpt_route *
ckpt_route_by_address(const struct ckpt *c, unsigned int part, unsigned int v, uint32_t i)
{
	return &c->route[part][(uint32_t)c->order[part].by[v][i]];
}
/*
 * Return the number of the next complete slot, or 0 after the last one. Put its next hops
 * into `out`, with the class of the label mode only, and its MTU into *mtu_bytes. *at is 0
 * before the first call.
 */
uint32_t ckpt_next_slot(const struct ckpt *c, uint32_t *at, struct nh_list *out,
			uint32_t *mtu_bytes);
/*
 * Get the labels, or the words of SRv6, of next hop `i` of the `n` next hops that the last
 * call of ckpt_next_slot() returned. `at` has the value that this call left. Return the
 * number of labels or words; 0: none. *ttl: as in struct stack.
 */
unsigned int ckpt_hop_stack(const struct ckpt *c, uint32_t at, uint32_t n, uint32_t i,
			    uint32_t label[LABELS_MAX], uint16_t *ttl);

#endif
