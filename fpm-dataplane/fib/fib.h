/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib: the tables that forwarders read; no thread of its own.
 *
 * prefix --poptrie--> group index --group word--> path --adjacency--> MAC, interface.
 *
 * A prefix points at a group, never at rewrite data; a change of a group, a neighbor or a
 * link touches one word, whatever the number of prefixes behind it. Readers follow all of
 * this under QSBR: what a reader found stays valid until its next quiescent state.
 */
#ifndef FIB_FIB_H
#define FIB_FIB_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <urcu/rculfhash.h>

#include "base/counters.h"
#include "base/prefix.h"
#include "poptrie/poptrie.h"

struct table_limits;

/*
 * A path: what to do with a packet. Four bits of kind, ten of MTU class (paths that send),
 * 18 of index. The MTU of a route (RTAX_MTU) is here because here it costs nothing: the word
 * that chooses the way says it, and ways of one route on different interfaces share it.
 */
enum path_kind {
	PATH_NONE = 0,    /* no route */
	PATH_ADJ,         /* index: adjacency of a next hop */
	PATH_ONLINK,      /* index: ifidx; the destination itself is the neighbor */
	PATH_LOCAL,       /* ours: to the kernel */
	PATH_BCAST,       /* directed broadcast of a connected subnet: dropped */
	PATH_BLACKHOLE,   /* silent drop */
	PATH_UNREACHABLE, /* ICMP host unreachable */
	PATH_PROHIBIT,    /* ICMP administratively prohibited */
	PATH_UNRESOLVED,  /* the route names a next hop never announced */
	PATH_FOREIGN,     /* leaves by an interface that is no port of ours */
	PATH_ENCAP,       /* needs an encapsulation that is not supported */
	PATH_DOWN,        /* all its ways out are down */
	PATH_VRF,         /* index: number of a VRF, where the destination is looked up */
	PATH_NO_FIB,      /* of no route: the VRF to look in has no FIB (yet) */
};

/* Why a packet is dropped that was led to a path which sends nothing on. */
static inline enum reason
path_cause(enum path_kind kind)
{
	static const uint8_t cause[] = {
		[PATH_NONE] = DROP_no_route,       [PATH_BCAST] = DROP_ip4_directed_bcast,
		[PATH_BLACKHOLE] = DROP_blackhole, [PATH_UNREACHABLE] = DROP_unreachable,
		[PATH_PROHIBIT] = DROP_prohibit,   [PATH_UNRESOLVED] = DROP_unresolved_nh,
		[PATH_FOREIGN] = DROP_foreign_oif, [PATH_ENCAP] = DROP_unsupported_encap,
		[PATH_DOWN] = DROP_egress_down,    [PATH_VRF] = DROP_vrf_again,
		[PATH_NO_FIB] = DROP_vrf_no_fib,
	};

	return (enum reason)cause[kind];
}

typedef uint32_t fib_path;

#define PATH(kind, index) ((fib_path)(kind) << 28 | (fib_path)(index))

static inline enum path_kind
path_kind(fib_path p)
{
	return (enum path_kind)(p >> 28);
}

static inline uint32_t
path_index(fib_path p)
{
	return p & 0x3ffff;
}

/* Index of fib->mtu_bytes; 0: the interface's MTU alone counts. */
#define FIB_MTU_MAX 1024u

static inline uint32_t
path_mtu_class(fib_path p)
{
	return p >> 18 & (FIB_MTU_MAX - 1);
}

static inline fib_path
path_with_mtu(fib_path p, uint32_t mtu_class)
{
	return p | mtu_class << 18;
}

/*
 * A group word: either one path (bits 63..48 zero, path in the low 32), or the address of a
 * block of 2^k paths, k >= 1 in bits 63..48. Slot 0 is PATH_NONE for ever (POPTRIE_NONE).
 */
#define FIB_GROUP_MAX (1u << 20)

static inline uint64_t
group_word_single(fib_path p)
{
	return p;
}

static inline uint64_t
group_word_block(const fib_path *bucket, unsigned int log2_n)
{
	return (uint64_t)log2_n << 48 | (uint64_t)(uintptr_t)bucket;
}

static inline bool
group_word_is_block(uint64_t w)
{
	return w >> 48 != 0;
}

static inline unsigned int
group_word_log2(uint64_t w)
{
	return (unsigned int)(w >> 48);
}

static inline const fib_path *
group_word_buckets(uint64_t w)
{
	return (const fib_path *)(uintptr_t)(w & 0xffffffffffffu);
}

/* The path of one flow. The high bits choose: they depend on all bits of the hash. */
static inline fib_path
group_word_path(uint64_t w, uint32_t flow_hash)
{
	if (!group_word_is_block(w))
		return (fib_path)w;
	return group_word_buckets(w)[flow_hash >> (32 - group_word_log2(w))];
}

/*
 * An adjacency: one neighbor on one interface. Slots from 1 on, as many as limits.adjacencies,
 * are given out by rib (next hops), those behind (from fib->adj_hosts), limits.hosts, by neigh
 * (hosts of connected subnets). The key is written by whoever gives the slot out, before the
 * slot is published anywhere; `hop` only by neigh.
 */
#define FIB_ADJ_MAX (1u << 18)
static_assert(FIB_ADJ_MAX <= 1u << 18 && IFIDX_MAX <= 1u << 18, "an index fits a path");

struct fib_adj {
	_Atomic uint64_t hop; /* W:neigh R:fwd,punt  MAC << 16 | ifidx; 0: incomplete */
	uint16_t ifidx;       /* W:owner of the slot */
	uint8_t family;       /* W:owner  4 or 6: of the neighbor, not of the packet */
	uint8_t reserved[5];
	struct ipaddr addr; /* W:owner */
};
static_assert(sizeof(struct fib_adj) == 32, "two adjacencies per 64-byte cache line");

static inline uint64_t
adj_hop_make(const uint8_t mac[6], uint16_t ifidx)
{
	uint64_t h = 0;

	for (int i = 0; i < 6; i++)
		h = h << 8 | mac[i];
	return h << 16 | ifidx;
}

#define FIB_ON_LINK_MAX 8

#define VLAN_BYTES  4u /* of a tag: type and TCI */
#define VLAN_TAGS   2u /* at most: IEEE 802.1ad, service and customer */
#define VLAN_C_TYPE 0x8100u
#define VLAN_S_TYPE 0x88a8u

struct fib_tag {
	uint16_t type; /* VLAN_C_TYPE or VLAN_S_TYPE, host order */
	uint16_t id;   /* 0 to 4095 */
};

/* An interface of the dataplane. Immutable: neigh publishes a new copy for each change. */
struct fib_iface {
	uint16_t ifidx;     /* 1..IFIDX_MAX-1 */
	uint16_t port_id;   /* DPDK port */
	uint16_t mtu_bytes; /* IP packet, L2 header excluded */
	/* As in a frame, behind six octets: what forwarders write is one vector. */
	uint8_t mac[6]; /* ours: the source of what we send, the destination we accept */
	struct fib_tag tag[VLAN_TAGS]; /* the outer one first */
	bool up;                       /* admin up with carrier: may send */
	uint8_t n_tags;                /* of its frames; 0: a port */
	uint8_t n_written;  /* of them: none where the device puts in the one there is */
	bool tag_type_lost; /* a port whose device shows any outer tag as VLAN_C_TYPE */
	uint16_t port;      /* the port whose frames these are; of a port its own number */
	bool forward4, forward6; /* what comes in may pass: the kernel's sysctls */
	uint16_t vrf;     /* that it is a member of, or FIB_VRF_NONE; 0: none, table main */
	bool unnumbered4; /* no IPv4 address of its own: a DHCP client may want one */
	uint32_t ifindex; /* of the TAP, in the control namespace; 0: TAP is gone */
	uint32_t src4;    /* source of ICMP errors, host order, own or borrowed; 0: none */
	struct ipaddr src6;       /* global one, all zero: none */
	struct ipaddr linklocal6; /* of ours on this link the one for errors, zero: none */
	/* All of ours on this link; more than there is room for: the kernel decides. */
	struct ipaddr on_link6[FIB_ON_LINK_MAX];
	uint8_t n_on_link6;
	char name[16];
};

/*
 * Is an IPv6 address of link scope (16 octets, network order) ours on this link, the
 * routers' anycast address of RFC 4291, 2.6.1 included?               [any thread]
 */
bool fib_iface_has_linklocal(const struct fib_iface *iface, const uint8_t *addr);

/*
 * Which interface has the frames of a VLAN, by tag type ([0] VLAN_C_TYPE, [1] VLAN_S_TYPE)
 * and id: those of one port, or of one VLAN that others are stacked on. 0: none.
 */
struct fib_vlans {
	_Atomic uint16_t ifidx[2][4096];
};

/* A neighbor of a connected subnet, found by address. */
struct fib_host {
	struct cds_lfht_node node;
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	uint32_t adj; /* slot >= fib->adj_hosts */
};

struct fib_host_key {
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
};

/*
 * Numbers of VRFs, neigh's to give out; 0 stands for table main. A member of a VRF that found
 * no number has FIB_VRF_NONE, which never has a FIB.
 */
#define FIB_VRF_MAX  ((unsigned int)VRF_MAX)
#define FIB_VRF_NONE (FIB_VRF_MAX - 1)

#define FIB_COPIES_MAX 8

/*
 * The tries as forwarders of one NUMA node read them: what is larger than any cache, so that
 * a node far away would be asked for every other packet. All copies say the same; all else
 * that forwarders read is small and stays in their caches.
 */
struct fib_copy {
	struct poptrie *pt4, *pt6; /* values: group slots */
	int node;                  /* where their memory is to be; -1: wherever */
	int refused; /* errno of the kernel, which places none there; 0: it does */
};

static inline struct poptrie *
fib_trie(const struct fib_copy *copy, uint8_t family)
{
	return family == 4 ? copy->pt4 : copy->pt6;
}

/*
 * The FIB of a VRF: one copy for all nodes, of tries that begin small. Immutable; rib
 * publishes a new one when a trie has outgrown that, or the VRF has another name.
 */
struct fib_vrf {
	struct fib_copy tries;
	uint32_t table; /* of the kernel, and zebra's */
	char name[16];
	struct vrf_counters base; /* of its number, when it came: not its own */
};

/*
 * Its tries as forwarders find them: of hundreds of VRFs those on one line, not a line for each.
 */
struct fib_vrf_tries {
	_Atomic(struct poptrie *) pt4, pt6; /* W:rib  NULL: the VRF has no FIB (yet) */
};

struct fib {
	/* W:main before the threads start */
	struct fib_copy copy[FIB_COPIES_MAX]; /* of table main; rib writes to all */
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	void *retire_ctx;
	unsigned int n_copies; /* at least one */
	/* W:main before the threads start: room, the slots 0 included */
	uint32_t group_end, adj_hosts, adj_end;
	_Atomic uint64_t *group;   /* W:rib  group_end words */
	struct fib_adj *adj;       /* adj_end */
	_Atomic uint8_t *adj_used; /* W:fwd,punt,neigh  ADJ_UNUSED, ... */
	_Atomic(struct fib_iface *) iface[IFIDX_MAX]; /* W:neigh */
	_Atomic(struct fib_vlans *) vlans[IFIDX_MAX]; /* W:neigh once  NULL: never any */
	_Atomic(struct fib_vrf *) vrf[FIB_VRF_MAX];   /* W:rib  NULL: no FIB (yet) */
	struct fib_vrf_tries vrf_tries[FIB_VRF_MAX];  /* of vrf[], by fib_vrf_publish() */
	atomic_bool tags_by_device; /* W:neigh  of some interface; never false again */
	struct cds_lfht *hosts;     /* W:neigh  struct fib_host */
	_Atomic uint16_t
		mtu_bytes[FIB_MTU_MAX]; /* W:rib once, before a path has the class */
	uint64_t seed; /* of hashes, fresh at each start: no polarisation */
};

struct fib_conf {
	/* What rib gives to the tries; NULL: no reader but the writer. */
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	void *retire_ctx;
	int node[FIB_COPIES_MAX]; /* NUMA nodes that get a copy each, all different */
	unsigned int n_nodes;     /* 0: one copy, wherever */
	const struct table_limits *limits; /* groups, adjacencies, hosts; NULL: the usual */
};

/*
 * An empty FIB for a VRF, the caller's until it is published. `name` of 15 octets at most.
 * Returns NULL when memory is out.                                                [rib]
 */
struct fib_vrf *fib_vrf_new(const struct fib *fib, uint32_t table, const char *name);
void fib_vrf_free(struct fib_vrf *vrf); /* with its tries; NULL is fine */

/* The FIB of VRF `number`, not 0, from now on; NULL: it has none any more. Not whole: a reader
 * of more than one of its pointers may have one of before.                        [rib] */
void fib_vrf_publish(struct fib *fib, unsigned int number, struct fib_vrf *vrf);

/* A trie of the large form, for the VRF's that has outgrown the small one. 0 or -ENOMEM. */
int fib_trie_large(const struct fib *fib, uint8_t family, struct poptrie **out);

/* Make empty tables. Returns 0, -ENOMEM or -EIO.                                 [main] */
int fib_create(struct fib **out, const struct fib_conf *conf);
void fib_destroy(struct fib *fib);

/* Copies for the nodes of `n` forwarders, one a node, as many as there may be.   [main] */
void fib_conf_nodes(struct fib_conf *conf, const int *node, unsigned int n);

/* What a forwarder on `node` reads: the node's copy, or the first.              [main] */
const struct fib_copy *fib_copy_for(const struct fib *fib, int node);

/* Interface by index, NULL when there is none.                       [RCU reader] */
static inline const struct fib_iface *
fib_iface(const struct fib *fib, unsigned int ifidx)
{
	return atomic_load_explicit(&fib->iface[ifidx], memory_order_consume);
}

/* Which VRF has what comes in by an interface; 0: none, table main.       [RCU reader] */
static inline uint16_t
fib_vrf_of(const struct fib *fib, unsigned int ifidx)
{
	const struct fib_iface *iface = fib_iface(fib, ifidx);

	return iface == NULL ? 0 : iface->vrf;
}

/* The FIB of a VRF, not 0; NULL: it has none (yet).                     [RCU reader] */
static inline const struct fib_vrf *
fib_vrf(const struct fib *fib, unsigned int vrf)
{
	return atomic_load_explicit(&fib->vrf[vrf], memory_order_consume);
}

/* Tries of that FIB, which may be replaced between the one and the other; NULL: it has none. */
static inline const struct poptrie *
fib_vrf_pt4(const struct fib *fib, unsigned int vrf)
{
	return atomic_load_explicit(&fib->vrf_tries[vrf].pt4, memory_order_consume);
}

static inline const struct poptrie *
fib_vrf_pt6(const struct fib *fib, unsigned int vrf)
{
	return atomic_load_explicit(&fib->vrf_tries[vrf].pt6, memory_order_consume);
}

/* Number of the VRF of this name; 0: none that has a FIB.              [RCU reader] */
static inline uint16_t
fib_vrf_named(const struct fib *fib, const char *name)
{
	for (uint16_t i = 1; i < FIB_VRF_NONE; i++) {
		const struct fib_vrf *vrf = fib_vrf(fib, i);

		if (vrf != NULL && strcmp(vrf->name, name) == 0)
			return i;
	}
	return 0;
}

/* VLANs on an interface; NULL: it never had any.                       [RCU reader] */
static inline const struct fib_vlans *
fib_vlans(const struct fib *fib, unsigned int ifidx)
{
	return atomic_load_explicit(&fib->vlans[ifidx], memory_order_consume);
}

/*
 * The interface on `ifidx` whose frames have, after their MACs, these four octets, type and
 * TCI of a tag; 0: none, or they are no tag. A tag with id 0 only has a priority: IEEE 802.1Q,
 * 9.6.                                                                 [RCU reader]
 */
static inline uint16_t
fib_vlan(const struct fib *fib, unsigned int ifidx, const uint8_t tag[VLAN_BYTES])
{
	unsigned int type = tag[0] << 8 | tag[1], id = (tag[2] & 15u) << 8 | tag[3];
	const struct fib_vlans *vlans;
	uint16_t found;

	if (type != VLAN_C_TYPE && type != VLAN_S_TYPE)
		return 0;
	vlans = fib_vlans(fib, ifidx);
	if (vlans == NULL)
		return 0;
	found = atomic_load_explicit(&vlans->ifidx[type == VLAN_S_TYPE][id],
				     memory_order_consume);
	if (found == 0 && type == VLAN_C_TYPE && fib_iface(fib, ifidx)->tag_type_lost)
		found = atomic_load_explicit(&vlans->ifidx[1][id], memory_order_consume);
	return found;
}

/* Octets of tags that are written before the packets of an interface. */
static inline unsigned int
fib_tag_bytes(const struct fib_iface *iface)
{
	return iface->n_written * VLAN_BYTES;
}

/* Hash and match of fib->hosts, for its writer. */
unsigned long fib_host_hash(const struct fib *fib, const struct fib_host_key *key);
int fib_host_match(struct cds_lfht_node *node, const void *key);

/* Adjacency slot of an on-link host, 0 when unknown (slot 0 is never used). [RCU reader] */
uint32_t fib_host_adj(const struct fib *fib, uint16_t ifidx, uint8_t family,
		      const struct ipaddr *addr);

/* A destination on the link of interface `ifidx`: its host, or PATH_ONLINK. [RCU reader] */
fib_path fib_onlink(const struct fib *fib, uint16_t ifidx, uint8_t family,
		    const struct ipaddr *dst);

/*
 * The path of a destination in the VRF that a route leads to, chosen and resolved as
 * fib_resolve() does, with the smaller one of both routes' MTUs. A route there that leads to
 * another VRF is not followed: it stays PATH_VRF, so that no packet goes round. [RCU reader]
 *
 * to         the path of the route, PATH_VRF.
 * flow_hash  as the first choice was made by it: this one is by other bits of it.
 */
fib_path fib_resolve_in_vrf(const struct fib *fib, fib_path to, uint8_t family,
			    const struct ipaddr *dst, uint32_t flow_hash);

/*
 * Resolve a destination to its path: lookup and choice among equals by `flow_hash`; an
 * on-link destination with a known host becomes PATH_ADJ. In a VRF without a FIB nothing
 * leads anywhere (PATH_NO_FIB). Where the route leads to a VRF, the path there.  [RCU reader]
 *
 * vrf    whose FIB: 0 for table main.
 *
 * The slow twin of what forwarders do in bulk: punt uses it for packets of its own.
 */
fib_path fib_resolve(const struct fib *fib, uint16_t vrf, uint8_t family,
		     const struct ipaddr *dst, uint32_t flow_hash);

/* Octets of the largest packet that may leave `out` by `path`. [any thread] */
static inline uint16_t
fib_mtu(const struct fib *fib, fib_path path, const struct fib_iface *out)
{
	uint16_t most;

	if (path_mtu_class(path) == 0)
		return out->mtu_bytes;
	most = atomic_load_explicit(&fib->mtu_bytes[path_mtu_class(path)],
				    memory_order_relaxed);
	return most < out->mtu_bytes ? most : out->mtu_bytes;
}

/* Choose the path of one flow in a group. [RCU reader] */
static inline fib_path
fib_group_path(const struct fib *fib, uint32_t group, uint32_t flow_hash)
{
	return group_word_path(
		atomic_load_explicit(&fib->group[group], memory_order_consume), flow_hash);
}

/*
 * What a byte of `used` (fib->adj_used, of adj_end) says of an adjacency. A forwarder that
 * sends a packet to wait for it makes it ADJ_BEHIND: while that packet is on its way, others
 * that come when the MAC is there follow it by the punt thread, so that none is overtaken. That one
 * makes it ADJ_OPEN when nobody waits any more; a forwarder none of whose packets are still
 * with the punt thread then makes it ADJ_USED.
 */
enum { ADJ_UNUSED, ADJ_USED, ADJ_BEHIND, ADJ_OPEN };

/* Note that traffic used it. True for ADJ_USED: nothing to wait for. */
static inline bool
fib_adj_touch(_Atomic uint8_t *used, uint32_t adj)
{
	uint8_t was = atomic_load_explicit(&used[adj], memory_order_relaxed);

	if (was == ADJ_UNUSED)
		atomic_store_explicit(&used[adj], ADJ_USED, memory_order_relaxed);
	return was <= ADJ_USED;
}

/* Who waited has been sent. */
static inline void
fib_adj_open(_Atomic uint8_t *used, uint32_t adj)
{
	uint8_t was = ADJ_BEHIND;

	/* Release: with it forwarders see what was injected. */
	atomic_compare_exchange_strong_explicit(&used[adj], &was, ADJ_OPEN,
						memory_order_release, memory_order_relaxed);
}

#endif
