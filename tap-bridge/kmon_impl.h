/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_impl: what kmon's own files share; nobody else includes this.
 *
 * kmon.c has the sockets, kmon_parse.c turns one rtnetlink message into one change,
 * kmon_apply.c holds it against kmon_mirror.c's memory and reports, kmon_ask.c asks for
 * neighbors and says what a carrier means.
 * Everything runs in the thread that owns the monitor.
 */
#ifndef TAP_BRIDGE_KMON_IMPL_H
#define TAP_BRIDGE_KMON_IMPL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tap-bridge/kmon.h"

struct nl_msg;
struct nl_sock;

enum kmon_kind { KMON_LINK, KMON_CONF, KMON_ADDR, KMON_NEIGH, KMON_N_KINDS };

union kmon_item {
	struct kmon_link link;
	struct kmon_conf conf;
	struct kmon_addr addr;
	struct kmon_neigh neigh;
};

/* What one message says. */
struct kmon_change {
	enum kmon_kind kind;
	bool gone;
	union kmon_item item; /* gone: at least its key */
};

/* Identity of an item within its kind: compared as octets, hence no padding. */
struct kmon_key {
	uint32_t ifindex;
	uint8_t family; /* 0 for a link */
	uint8_t plen;   /* IPv4 addresses only, like peer */
	uint8_t zero[2];
	uint8_t addr[16];
	uint8_t peer[16];
};
static_assert(sizeof(struct kmon_key) == 40, "compared with memcmp");

struct mirror_entry {
	struct mirror_entry *next;
	uint64_t gen; /* the last dump that showed it */
	struct kmon_key key;
	union kmon_item item; /* as last reported */
	bool early;           /* its link is not heard of: to be reported with that */
};

/* A hash table with chains; grows, never shrinks. All zero is an empty one. */
struct mirror {
	struct mirror_entry **bucket;
	size_t n_buckets;
	size_t n_entries;
	uint64_t seed; /* of its hash, set while it is empty */
};

/* Written and read by the thread that owns the monitor, as everything here. */
struct kmon {
	struct nl_sock *events; /* multicast only */
	struct nl_sock *dumps;
	struct nl_sock
		*asks; /* of its own: a callback may solicit in the middle of a dump */
	struct kmon_ops ops;
	void *ctx;
	struct mirror mirror[KMON_N_KINDS];
	struct kmon_stats stats;
	uint64_t gen;       /* of the dump under way or last done */
	uint64_t n_reports; /* callbacks made */
	int apply_rc;       /* why a message could not be applied; 0 */
	bool lost;          /* events were missed: the mirror cannot be trusted */
};

/* libnl's error as -errno: what a caller acts upon; the rest is a broken conversation. */
int kmon_errno(int nlerr);

/*
 * Throw away what waits on a socket. After an overrun the kernel delivers nothing more to
 * it until it has been read empty, so this comes before a dump, never after it.
 */
void kmon_drain(struct nl_sock *sk);

/*
 * Send `msg`, free it, and take what has come back. The kernel works on a request within
 * our send(), so its answer or its complaint is there already and nothing is waited for.
 *
 * Returns the octets put into `buf`, 0 when the kernel had nothing to say, or -errno.
 */
int kmon_exchange(struct kmon *km, struct nl_msg *msg, void *buf, size_t buf_bytes);

bool kmon_is_watched(const struct kmon *km, enum kmon_kind kind);

/* Bring the mirror up to date and report what that changes. Returns 0 or -ENOMEM. */
int kmon_apply(struct kmon *km, const struct kmon_change *change);

/* Report a list of entries gone and free it; a link takes with it what is on it. */
void kmon_bury(struct kmon *km, enum kmon_kind kind, struct mirror_entry *list);

/* Returns false when the message says nothing about what kmon watches. */
bool kmon_parse(struct nl_msg *msg, struct kmon_change *change);

struct kmon_key kmon_key_of(enum kmon_kind kind, const union kmon_item *item);
bool kmon_item_equal(enum kmon_kind kind, const union kmon_item *a,
		     const union kmon_item *b);

struct mirror_entry *mirror_find(const struct mirror *m, const struct kmon_key *key);

/* Add an entry for a key that is not there yet. NULL: out of memory. */
struct mirror_entry *mirror_add(struct mirror *m, const struct kmon_key *key);

/* Take out what `want` picks; returns the entries as a list, now the caller's to free. */
struct mirror_entry *
mirror_take(struct mirror *m, bool (*want)(const struct mirror_entry *e, const void *arg),
	    const void *arg);

/* Take out one entry; it is the caller's to free. */
void mirror_take_one(struct mirror *m, struct mirror_entry *e);

void mirror_free(struct mirror *m);

#endif
