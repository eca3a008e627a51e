/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_impl: declarations that the files of kmon share. Only they include it.
 *
 * kmon.c has the sockets. kmon_parse.c turns one rtnetlink message into one change;
 * kmon_tunnel.c parses the settings of a tunnel, kmon_vxlan.c those of VXLAN. kmon_apply.c
 * compares the change with the state in kmon_mirror.c and reports differences.
 * kmon_request.c sends requests about neighbors and the operational state. All of it runs
 * in the thread that owns the monitor.
 */
#ifndef TAP_BRIDGE_KMON_IMPL_H
#define TAP_BRIDGE_KMON_IMPL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tap-bridge/kmon.h"

struct nl_msg;
struct nlmsghdr;
struct nl_sock;

enum kmon_kind {
	KMON_LINK,
	KMON_CONF,
	KMON_MPLS,
	KMON_INET6,
	KMON_ADDR,
	KMON_VNI,
	KMON_FDB,
	KMON_NEIGH,
	KMON_N_KINDS
};

union kmon_item {
	struct kmon_link link;
	struct kmon_conf conf;
	struct kmon_mpls mpls;
	struct kmon_inet6 inet6;
	struct kmon_addr addr;
	struct kmon_vni vni;
	struct kmon_fdb fdb;
	struct kmon_neigh neigh;
};

/* The content of one message. */
struct kmon_change {
	enum kmon_kind kind;
	bool gone;
	/* KMON_CONF: the message lacks this setting of the link */
	bool lacks_forwarding, lacks_linkdown, lacks_rp_filter;
	union kmon_item item; /* gone: at least its key */
};

/* The identity of an item within its kind. It is compared as octets, hence no padding. */
struct kmon_key {
	uint32_t ifindex;
	uint8_t family; /* 0 for a link, for its MPLS and inet6, and for a MAC */
	uint8_t plen;   /* IPv4 addresses only, like peer */
	uint8_t zero[2];
	uint8_t addr[16]; /* an address, a MAC, or the number of a VLAN */
	uint8_t peer[16]; /* the peer of an address, or the VNI of a MAC */
};
static_assert(sizeof(struct kmon_key) == 40, "compared with memcmp");

struct mirror_entry {
	struct mirror_entry *next;
	struct mirror_entry *on_next, **on_prev; /* in a chain of mirror.on */
	uint64_t gen; /* generation of the last dump that showed it */
	struct kmon_key key;
	union kmon_item item; /* as last reported */
	bool early;           /* its link is not known yet; it is reported with the link */
	bool doubted;         /* KMON_INET6: an event suggests that it has changed */
};

/*
 * A hash table with chains, by key and by link. It grows and never shrinks. All zero is an
 * empty table.
 */
struct mirror {
	struct mirror_entry **bucket;
	struct mirror_entry **on; /* n_buckets chains, each for links with the same hash */
	size_t n_buckets;
	size_t n_entries;
	uint64_t seed;    /* of the hash, set while the table is empty */
	uint64_t n_steps; /* entries that walks have passed, for tests */
};

/* A monitor. Only the thread of its owner reads and writes it. */
struct kmon {
	struct nl_sock *events; /* multicast only */
	struct nl_sock *dumps;
	struct nl_sock *requests; /* separate: a callback may send requests during a dump */
	struct kmon_ops ops;
	void *ctx;
	struct mirror mirror[KMON_N_KINDS];
	struct kmon_stats stats;
	uint64_t gen;       /* of the present or the last dump */
	uint64_t n_deleted; /* events about deleted neighbors and FDB entries */
	bool lost_again;    /* events were lost during the present resync */
	uint64_t n_reports; /* callbacks called */
	int apply_rc;       /* reason why a message could not be applied; 0: none */
	bool lost;          /* events were missed: the mirror may be wrong */
	bool inet6_due;     /* see kmon_inet6_is_due() */
	unsigned int n_doubted;
};

/*
 * Convert libnl's error to the -errno that callers distinguish; -EIO stands for all others.
 */
int kmon_errno(int nlerr);

/*
 * Discard the messages that wait on a socket. After an overrun the kernel delivers nothing
 * to the socket until the socket was read empty. Therefore call this before a dump, never
 * after the dump.
 */
void kmon_drain(struct nl_sock *sk);

/*
 * Send `msg`, free it, and receive the reply. The kernel handles a request within send(),
 * so the reply or the error is there at once, and no wait is needed.
 *
 * Returns the number of octets put into `buf`, 0 when the kernel did not reply, or -errno.
 */
int kmon_exchange(struct kmon *km, struct nl_msg *msg, void *buf, size_t buf_bytes);

bool kmon_is_watched(const struct kmon *km, enum kmon_kind kind);

/* Update the mirror and report the difference. Returns 0 or -ENOMEM. */
int kmon_apply(struct kmon *km, const struct kmon_change *change);

/*
 * Report that the entries of a list are gone, and free the list. Before a link, report that
 * all entries on it are gone.
 */
void kmon_report_gone(struct kmon *km, enum kmon_kind kind, struct mirror_entry *list);

/* Parse a message. Returns false if it concerns nothing that kmon watches. */
bool kmon_parse(struct nl_msg *msg, struct kmon_change *change);

/*
 * Read the settings of IPv6 from an RTM_NEWLINK of a link. Returns false if it has none:
 * the link or the kernel has no IPv6.
 */
bool kmon_parse_inet6_of_link(struct nlmsghdr *hdr, struct kmon_inet6 *inet6);

/* Read the settings of a tunnel from an RTM_NEWLINK; another link: kind KMON_NO_TUNNEL. */
void kmon_parse_tunnel(struct nlmsghdr *hdr, struct kmon_tunnel *tunnel);

/*
 * Read the settings of a vxlan or a bridge from an RTM_NEWLINK, after kmon_parse_tunnel().
 */
void kmon_parse_vxlan(struct nlmsghdr *hdr, struct kmon_link *link);

/* Parse an AF_BRIDGE neighbor. Returns false if it names no VTEP. */
bool kmon_parse_fdb(struct nlmsghdr *hdr, struct kmon_fdb *fdb);

/*
 * Apply an AF_BRIDGE link message, which has the VNIs of all VLANs of a port of a bridge.
 * Returns false for any other message. An error is in km->apply_rc.
 */
bool kmon_apply_vnis(struct kmon *km, struct nlmsghdr *hdr);
/* Ask for such messages about all ports. Returns a negative error of libnl on failure. */
int kmon_ask_vnis(struct nl_sock *sk);

struct kmon_key kmon_key_of(enum kmon_kind kind, const union kmon_item *item);
bool kmon_item_equal(enum kmon_kind kind, const union kmon_item *a,
		     const union kmon_item *b);

struct mirror_entry *mirror_find(const struct mirror *m, const struct kmon_key *key);

/* Add an entry for a key that is not in the table. Returns NULL when out of memory. */
struct mirror_entry *mirror_add(struct mirror *m, const struct kmon_key *key);

/*
 * Remove the entries that `want` selects. Returns them as a list, which the caller frees.
 */
struct mirror_entry *mirror_remove_if(struct mirror *m,
				      bool (*want)(const struct mirror_entry *e,
						   const void *arg),
				      const void *arg);

/* Remove the entries on a link, as mirror_remove_if(). */
struct mirror_entry *mirror_remove_on(struct mirror *m, uint32_t ifindex);

/*
 * Return the first entry on a link, or the next one after `e`, which is in the table. NULL:
 * none.
 */
struct mirror_entry *mirror_first_on(struct mirror *m, uint32_t ifindex);
struct mirror_entry *mirror_next_on(struct mirror *m, const struct mirror_entry *e);

/* Remove one entry; the caller frees it. */
void mirror_remove(struct mirror *m, struct mirror_entry *e);

void mirror_free(struct mirror *m);

#endif
