/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint: what zebra taught, mirrored into memory that outlives the process (a memfd,
 * kept by the service manager), record by record as it changes. [rib]. The next daemon
 * forwards by it until zebra has come and said all again.
 *
 *   page 0      header
 *   routes      32 octets each, by the route's number; zebra's only; of table main
 *   routes      the same of all other tables, which may be of VRFs: those have numbers of
 *               this process only, so what is kept is the kernel's number of the table
 *   ways        56 octets each: way `at` of `n` of a slot, written as a set of one `turn`
 *
 * All in host order: it never leaves the machine, nor outlives its boot. Each record has a
 * CRC over itself and its own number; a writer that is killed leaves at most one record of
 * a kind, or one slot's set, unfinished, and that is all that a reader forgives.
 */
#ifndef RIB_CHECKPOINT_H
#define RIB_CHECKPOINT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/prefix.h"

struct next_hop;
struct nh_list;

/* Counts up whenever a record, or the meaning of an octet in it, changes. */
#define CKPT_LAYOUT 2u

/* Two arrays of routes, as rib has them. */
enum { CKPT_MAIN, CKPT_OTHER, CKPT_PARTS };

struct ckpt_header {
	char magic[8];
	uint32_t layout, header_bytes, route_bytes, hop_bytes;
	uint64_t netns; /* of the TAPs: what interface numbers refer to */
	uint32_t crc;   /* of all above */
	/* Each one a store of its own, no CRC: the records are counted against them. */
	uint32_t attempts; /* how many starts have begun to read it */
	uint32_t route_high[CKPT_PARTS], hop_high; /* highest number ever in use */
	uint32_t n_routes[CKPT_PARTS], n_slots;    /* there now */
	uint32_t nl_pid;                           /* of the last zebra */
	/* It is not let in before: CLOCK_BOOTTIME. 0: it is, also of a writer that knew none. */
	uint32_t held_until_s;
	uint64_t alive_ms; /* CLOCK_BOOTTIME of the last sign of life */
};
static_assert(offsetof(struct ckpt_header, alive_ms) == 72, "as before held_until_s");

struct ckpt_route {
	struct ipaddr addr;
	uint32_t slot;
	uint8_t family, len, protocol, rtm_type; /* family 0: free, all octets zero */
	uint32_t table;
	uint32_t crc; /* of all above and the number; never 0 */
};
static_assert(sizeof(struct ckpt_route) == 32, "two records a cache line");

struct ckpt_hop {
	uint32_t slot, version, at, n; /* n 0: free, all octets zero */
	struct ipaddr gw;
	uint32_t ifindex, weight;
	uint8_t gw_family, encap, onlink,
		kind;       /* enum hop_encap, path_kind: part of the layout */
	uint32_t mtu_bytes; /* of the slot's routes, 0: none; the same in a whole set */
	uint32_t number;
	uint32_t crc; /* of all above; never 0 */
};
static_assert(sizeof(struct ckpt_hop) == 56, "no padding");

struct ckpt {
	int fd;
	struct ckpt_header *head;             /* the mapping */
	struct ckpt_route *route[CKPT_PARTS]; /* each by number, from 1 */
	struct ckpt_hop *hop;                 /* by number, from 1 */
	/* A writer's, in its own memory. */
	bool frozen; /* a successor reads it: only the sign of life is still written */
	uint32_t version;
	uint32_t *hop_next; /* by way number: next of the same slot, or of the free ones */
	uint32_t hop_cap, hop_free;
	uint32_t *hop_first; /* by slot */
	uint32_t slot_cap;
	uint64_t full; /* slots that found no room */
	/* A reader's: numbers of the good ways, sets together, in order; of the good routes. */
	uint32_t *sorted;
	uint32_t n_sorted;
	struct ckpt_order {
		uint64_t *word[2];     /* room; where they were sorted from */
		const uint64_t *by[2]; /* IPv4, IPv6: in the order of their addresses */
		uint32_t n[2];
	} order[CKPT_PARTS];
	uint32_t n_bad; /* records that did not verify, forgiven */
};

/* Of a writer that has one, or NULL. */
static inline bool
ckpt_is_frozen(const struct ckpt *c)
{
	return c != NULL && c->frozen;
}

/* CRC-32C (RFC 3720, 12.1) of `len` octets, a multiple of 4, begun with `seed`; never 0. */
static inline uint32_t
ckpt_crc(uint32_t seed, const void *record, size_t len)
{
	const uint8_t *p = record;
	uint32_t crc = ~seed, word;

	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, 4);
		crc = __builtin_ia32_crc32si(crc, word);
	}
	return crc == 0 ? 1 : crc;
}
/* Of a record: all before its member `crc`. */
#define CKPT_CRC_OF(seed, r) ckpt_crc(seed, r, offsetof(__typeof__(*(r)), crc))
#define CKPT_CRC(r)          CKPT_CRC_OF(0, r)

/* An empty one. NULL: out of memory, or the kernel has no memfd. */
struct ckpt *ckpt_new(uint64_t netns);

/*
 * That of an earlier process, for reading; takes `fd` over. Everything is verified. NULL
 * when it is not to be used, and `why` has the reason in a few words: other layout, other
 * namespace, older than `max_age_ms` at `now_ms` (CLOCK_BOOTTIME), damaged, or tried three
 * times, each of which ended in a crash.
 */
struct ckpt *ckpt_open(int fd, uint64_t netns, uint64_t now_ms, uint64_t max_age_ms,
		       const char **why);
extern const char ckpt_no_memory[]; /* one of the reasons, which is none against it */
/* And these are of an installation or a configuration: there is nothing wrong with it. */
extern const char ckpt_other_layout[], ckpt_other_netns[];
void ckpt_free(struct ckpt *c);
/* As rib_checkpoint_attempts() and rib_checkpoint_reset_attempts() of rib.h. */
unsigned int ckpt_attempts(int fd);
void ckpt_reset_attempts(int fd, unsigned int attempts);

/* In which of the arrays routes of a table are. */
unsigned int ckpt_part(uint32_t table);
/* All of `r` but its CRC, as route `number` of those of its part. */
void ckpt_put_route(struct ckpt *c, uint32_t number, const struct ckpt_route *r);
void ckpt_drop_route(struct ckpt *c, uint32_t table, uint32_t number);
void ckpt_put_slot(struct ckpt *c, uint32_t slot, const struct nh_list *hops,
		   uint32_t mtu_bytes);
void ckpt_drop_slot(struct ckpt *c, uint32_t slot);
void ckpt_alive(struct ckpt *c, uint64_t now_ms);
void ckpt_zebra(struct ckpt *c, uint32_t nl_pid, uint32_t held_until_s);
size_t ckpt_bytes(const struct ckpt *c);

/* The good route of that number, from 1 to head->route_high[part]; NULL: none. */
const struct ckpt_route *ckpt_route(const struct ckpt *c, unsigned int part,
				    uint32_t number);
/*
 * A reader's: good routes of a family (0: IPv4, 1: IPv6), from 0 to order[part].n[v] - 1, so
 * that neighbors in the address space, which are neighbors in the tries, follow each other:
 * IPv4 by all of the address, IPv6 by 32 bits behind the first three.
 */
static inline const struct ckpt_route *
ckpt_route_by_address(const struct ckpt *c, unsigned int part, unsigned int v, uint32_t i)
{
	return &c->route[part][(uint32_t)c->order[part].by[v][i]];
}
/*
 * The next complete slot: its number, its ways into `out` (without MTU class), its MTU; 0: no
 * more. *at is 0 at first.
 */
uint32_t ckpt_next_slot(const struct ckpt *c, uint32_t *at, struct nh_list *out,
			uint32_t *mtu_bytes);

#endif
