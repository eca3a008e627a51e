/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fib: the tables that forwarders read. It has no thread of its own.
 *
 *     prefix --poptrie--> group index --group word--> path --adjacency--> MAC, interface.
 *
 * A prefix points to a group, never to rewrite data. Therefore a change of a group, a
 * neighbor or a link writes one word, however many prefixes use it. Readers follow these
 * steps under QSBR: an object that a reader found stays valid until the next quiescent
 * state of the reader.
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
 * A path: the action for a packet. It has four bits of kind, ten bits of MTU class (for
 * paths that send) and 18 bits of index. The MTU of a route (RTAX_MTU) is part of the path
 * because the read of the path then costs no additional access, and because next hops of
 * one route on different interfaces share the MTU.
 */
enum path_kind {
	PATH_NONE = 0,  /* no route */
	PATH_ADJ,       /* index: adjacency of a next hop */
	PATH_ONLINK,    /* index: ifidx; the packet's destination is itself the neighbor */
	PATH_LOCAL,     /* for this host: to the kernel; index: end point, sid.h; 0: none */
	PATH_BCAST,     /* directed broadcast of a connected subnet: dropped */
	PATH_BLACKHOLE, /* silent drop */
	PATH_UNREACHABLE, /* ICMP host unreachable */
	PATH_PROHIBIT,    /* ICMP administratively prohibited */
	PATH_UNRESOLVED,  /* the route names a next hop that zebra never announced */
	PATH_FOREIGN,     /* leaves by an interface that is not a port of the dataplane */
	/*
	 * index: labels to push, see label.h, or segments, see headend.h; 0: an
	 * encapsulation that is not supported
	 */
	PATH_ENCAP,
	PATH_DOWN, /* all its next hops are down */
	/*
	 * index: number of the VRF in which the destination is looked up. 0 (table main)
	 * occurs only in the route of a label.
	 */
	PATH_VRF,
	PATH_NO_FIB, /* never the path of a route: the VRF of the packet has no FIB (yet) */
	PATH_THROW,  /* ends the lookup in its table: the next rule of the kernel decides */
	/*
	 * leaves by an interface that only the kernel has; index: low bits of ifindex, 0:
	 * unknown
	 */
	PATH_KERNEL,
};

/* Return the drop reason for a path that sends nothing. */
static inline enum reason
path_cause(enum path_kind kind)
{
	static const uint8_t cause[] = {
		[PATH_NONE] = DROP_no_route,       [PATH_BCAST] = DROP_ip4_directed_bcast,
		[PATH_BLACKHOLE] = DROP_blackhole, [PATH_UNREACHABLE] = DROP_unreachable,
		[PATH_PROHIBIT] = DROP_prohibit,   [PATH_UNRESOLVED] = DROP_unresolved_nh,
		[PATH_FOREIGN] = DROP_foreign_oif, [PATH_ENCAP] = DROP_unsupported_encap,
		[PATH_DOWN] = DROP_egress_down,    [PATH_VRF] = DROP_vrf_again,
		[PATH_NO_FIB] = DROP_vrf_no_fib,   [PATH_THROW] = DROP_no_route,
		[PATH_KERNEL] = DROP_foreign_oif,
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

#define PATH_INDEX_MASK 0x3ffffu

static inline uint32_t
path_index(fib_path p)
{
	return p & PATH_INDEX_MASK;
}

/* Return true if the path needs an encapsulation that is not supported. */
static inline bool
path_is_unsupported(fib_path p)
{
	return path_kind(p) == PATH_ENCAP && path_index(p) == 0;
}

/*
 * Return true if the table has no route. Linux then tries the next rule. After the rule for
 * VRFs, that is the rule for table main.
 */
static inline bool
path_is_no_route(fib_path p)
{
	return path_kind(p) == PATH_NONE || path_kind(p) == PATH_THROW;
}

/*
 * The MTU class of a path is an index of fib->mtu_bytes. Class 0: only the interface's MTU
 * counts. The last two classes have no MTU, either. They are for routes of labels, and tell
 * where the TTL of the label goes. The last is also PATH_CLASS_NOT_OF_LOCAL (rules.h).
 */
#define FIB_MTU_MAX       1024u
#define FIB_CLASS_PIPE    (FIB_MTU_MAX - 2) /* LABEL_MODE_PIPE */
#define FIB_CLASS_UNIFORM (FIB_MTU_MAX - 1) /* LABEL_MODE_UNIFORM */

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
 * A group word is either one path (bits 63..48 zero, path in the low 32) or the address of
 * a block of 2^k paths, k >= 1 in bits 63..48. Slot 0 always is PATH_NONE (POPTRIE_NONE).
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

/*
 * Return the path of a flow. The high bits choose because they depend on all bits of the
 * hash.
 */
static inline fib_path
group_word_path(uint64_t w, uint32_t flow_hash)
{
	if (!group_word_is_block(w))
		return (fib_path)w;
	return group_word_buckets(w)[flow_hash >> (32 - group_word_log2(w))];
}

/*
 * An adjacency: one neighbor on one interface. Slots from 1 on (limits.adjacencies of them)
 * belong to rib, for next hops. The slots from fib->adj_hosts on (limits.hosts of them)
 * belong to neigh, for hosts of connected subnets. The owner of a slot writes the key
 * before the slot is published. Only neigh writes `hop`.
 */
#define FIB_ADJ_MAX (1u << 18)
static_assert(FIB_ADJ_MAX <= 1u << 18 && IFIDX_MAX <= 1u << 18, "an index fits a path");

struct fib_adj {
	/* W:neigh R:fwd,punt  MAC << 16 | ifidx; 0: incomplete, or see fib->vxlan_hop */
	_Atomic uint64_t hop;
	uint16_t ifidx; /* W:owner of the slot */
	uint8_t family; /* W:owner  4 or 6: family of the neighbor, not of the packet */
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
#define VLAN_TAGS   2u /* maximum: IEEE 802.1ad, service and customer */
#define VLAN_C_TYPE 0x8100u
#define VLAN_S_TYPE 0x88a8u

/* True if an EtherType, in host order, announces a tag. */
static inline bool
vlan_type_is_tag(unsigned int type)
{
	return type == VLAN_C_TYPE || type == VLAN_S_TYPE;
}

struct fib_tag {
	uint16_t type; /* VLAN_C_TYPE or VLAN_S_TYPE, host order */
	uint16_t id;   /* 0 to 4095 */
};

/* An address that may be the source of an ICMP error. No padding: copies are compared. */
struct fib_source {
	struct ipaddr addr;
	uint8_t plen; /* prefix length of its subnet */
};
static_assert(sizeof(struct fib_source) == 17, "no padding");

#define FIB_VXLAN4_BYTES    50 /* IPv4, UDP, VXLAN, Ethernet */
#define FIB_VXLAN6_BYTES    70 /* IPv6, UDP, VXLAN, Ethernet */
#define FIB_TUNNEL_HEAD_MAX 72

/* The outer header of a tunnel, see tunnel.h. No padding: copies are compared. */
struct fib_tunnel {
	uint8_t family; /* of the outer header: 4 or 6; 0: the interface is no tunnel */
	bool gre;       /* GRE; false: an IP packet follows the outer header directly */
	bool inner4, inner6; /* takes IPv4, IPv6 */
	bool has_key : 1;    /* received packets have a key */
	bool only_link : 1;  /* receives packets by `link` only, if it is not 0 */
	uint8_t no_bits : 6; /* 0, because memcmp() compares tunnels */
	bool tos_inherit, flow_inherit; /* copy TOS, flow label from the inner packet */
	bool df;                        /* set DF in each outer header */
	bool ignore_df;                 /* do not copy DF */
	bool has_limit;                 /* writes an encapsulation limit (RFC 2473) */
	uint8_t ttl;                    /* 0: copy it from the inner packet */
	uint8_t tos;                    /* without the ECN bits; unused with tos_inherit */
	uint8_t bytes;                  /* of head[] */
	uint8_t proto_at; /* offset in head[] of the type of the inner packet, by family */
	uint16_t vrf;     /* of outer packets */
	uint32_t key;     /* key of GRE, valid with has_key */
	uint32_t link; /* ifindex of the link by which outer packets must leave; 0: any */
	struct ipaddr local, remote;
	/* The outer header: length, TTL, TOS, identification, checksum, inner type are 0. */
	uint8_t head[FIB_TUNNEL_HEAD_MAX];
};
static_assert(sizeof(struct fib_tunnel) == 128, "no padding");

/* The VXLAN below an interface that is a bridge of the kernel, see vxlan.h. */
struct fib_vxlan {
	uint8_t family;     /* of outer headers: 4 or 6; 0: the interface has no VXLAN */
	uint8_t ttl;        /* of outer headers; 0: copy it from the inner packet */
	uint8_t tos;        /* without the ECN bits; unused with tos_inherit */
	bool tos_inherit;   /* copy the TOS from the inner packet */
	bool df, ignore_df; /* as in struct fib_tunnel */
	bool csum;          /* sends UDP checksums */
	bool zero_csum6;    /* accepts packets over IPv6 without a checksum */
	uint16_t port;      /* destination of its packets */
	uint16_t from_low, from_high; /* sources of its packets, both included */
	uint16_t vrf;                 /* of outer packets */
	uint32_t vni;
	uint32_t link; /* ifindex of the link by which outer packets must leave; 0: any */
	uint32_t flow_label; /* 0: from a hash */
	struct ipaddr local;
};

/* An interface of the dataplane. Immutable: neigh publishes a new copy for each change. */
struct fib_iface {
	uint16_t ifidx;     /* 1..IFIDX_MAX-1 */
	uint16_t port_id;   /* DPDK port */
	uint16_t mtu_bytes; /* IP packet, L2 header excluded */
	/*
	 * `mac` follows six octets, as in a frame, so that forwarders write header and tags
	 * as one vector.
	 */
	uint8_t mac[6];                /* own address, source and accepted destination */
	struct fib_tag tag[VLAN_TAGS]; /* outer tag first */
	bool up;                       /* admin up with carrier: may send */
	uint8_t n_tags;                /* tags of its frames; 0: a port */
	/* Tags that forwarders write; 0: none, or the device inserts it. */
	uint8_t n_written;
	/* A port whose device reports VLAN_C_TYPE for every outer tag. */
	bool tag_type_lost;
	uint16_t port; /* the port that carries the frames; for a port its own number */
	uint16_t mtu6_bytes;     /* of IPv6 packets; not above mtu_bytes */
	bool forward4, forward6; /* kernel's sysctls: received packets may pass */
	bool ipv6_off;           /* IPv6 is off: no packet may arrive or leave */
	bool rules4, rules6;     /* rules of policy routing concern received packets */
	uint16_t vrf; /* its VRF; FIB_VRF_NONE: a VRF without a number; 0: table main */
	bool member;  /* of a bridge, bond or team: the kernel forwards received packets */
	bool tagged_to_kernel; /* member, macvlan: the kernel gets unknown tags */
	bool mpls; /* accepts labels: net.mpls.conf.NAME.input, or the key mpls.input */
	/* Compared as one word, see fwd/vlan.c. */
	bool fast4, fast6; /* fast path: forwarding on, no rules, no member, IPv6 on */
	bool unnumbered4;  /* no IPv4 address of its own: a DHCP client may need one */
	uint8_t urpf4;     /* enum fib_urpf: check of the source of transit packets */
	uint32_t ifindex;  /* of the TAP, in the control namespace; 0: the TAP is gone */
	uint32_t group; /* the TAP's group in the kernel, for rules with suppress_ifgroup */
	uint32_t src4;  /* source of ICMP errors, host order, own or borrowed; 0: none */
	struct ipaddr src6;       /* global source of ICMP errors; all zero: none */
	struct ipaddr linklocal6; /* own link-local source of ICMP errors; all zero: none */
	/*
	 * Own addresses in the order of the kernel. The receiver of an ICMP error decides
	 * which of them is the source (fib/icmp.c). If there are none, the source is src4
	 * or src6.
	 */
	struct fib_source own4[FIB_ON_LINK_MAX], own6[FIB_ON_LINK_MAX];
	uint8_t n_own4, n_own6;
	/*
	 * All own link-local addresses, tentative addresses included. If n_on_link6 is
	 * larger than the array, the kernel decides.
	 */
	struct ipaddr on_link6[FIB_ON_LINK_MAX];
	uint8_t n_on_link6;
	char name[16];
	/*
	 * The ingress interface of received packets for nft: the VRF's device, or the
	 * interface.
	 */
	char hook_name[16];
	uint32_t hook_ifindex;
	struct fib_tunnel tunnel;
	struct fib_vxlan vxlan;
};

/*
 * Return true if this host has the link-local IPv6 address (16 octets, network order) on
 * this link. The host always has the subnet-router anycast address (RFC 4291, 2.6.1). If
 * n_on_link6 is above FIB_ON_LINK_MAX, every address counts as its own. [any thread]
 */
bool fib_iface_has_linklocal(const struct fib_iface *iface, const uint8_t *addr);

/*
 * The macvlans on one interface that are up, by their MAC. A hash table with open
 * addressing: an entry is in the first free place from mac_hash() on. The table is at most
 * half full. neigh changes entries in place. It publishes a new table if this one is full.
 */
struct fib_macs {
	uint32_t mask; /* number of entries less one; the number is a power of two */
	uint32_t n_up, n_used; /* W:neigh R:neigh  entries with a macvlan; used entries */
	bool shared; /* W:neigh R:neigh  another macvlan has the MAC of an entry */
	/* W:neigh R:fwd,punt  MAC << 16 | ifidx; ifidx 0: macvlan gone; all bits 0: free */
	_Atomic uint64_t entry[];
};

/*
 * The interfaces that receive the frames of VLANs, by tag type ([0] VLAN_C_TYPE, [1]
 * VLAN_S_TYPE) and id, and the macvlans that receive the frames to further MACs. One table
 * belongs to a port, or to a VLAN that carries stacked VLANs or macvlans. 0: none.
 */
struct fib_vlans {
	_Atomic uint16_t ifidx[2][4096];
	_Atomic(struct fib_macs *) macs; /* W:neigh R:fwd,punt  NULL: no macvlan is up */
	/* W:neigh R:fwd  of a port: the port, or a VLAN on it, has or had macvlans */
	atomic_bool any_macs;
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
 * Numbers of VRFs. neigh assigns them; 0 stands for table main. A member of a VRF that got
 * no number has FIB_VRF_NONE, which never has a FIB.
 */
#define FIB_VRF_MAX  ((unsigned int)VRF_MAX)
#define FIB_VRF_NONE ((uint16_t)(FIB_VRF_MAX - 1))

/*
 * Numbers from FIB_VRF_MAX on are FIBs of tables that rules name and that belong to no VRF.
 * rib assigns them.
 */
#define FIB_RULE_TABLES 1024u
#define FIB_NUMBERS     (FIB_VRF_MAX + FIB_RULE_TABLES)

#define FIB_COPIES_MAX 8

/*
 * The tries for the forwarders of one NUMA node. Only the tries have a copy for each node,
 * because they are larger than the caches: without a copy, every second packet would read
 * memory of a remote node. All copies have the same content. All other data of forwarders
 * is small and stays in their caches.
 */
struct fib_copy {
	struct poptrie *pt4, *pt6; /* values: group slots */
	int node;                  /* node for their memory; -1: any */
	int refused; /* errno of mbind(): the kernel places no memory there; 0: it does */
};

static inline struct poptrie *
fib_trie(const struct fib_copy *copy, uint8_t family)
{
	return family == 4 ? copy->pt4 : copy->pt6;
}

/*
 * The FIB of a VRF: one copy for all nodes, with tries that start in the small form.
 * Immutable: rib publishes a new struct when it replaces a small trie with a large one, or
 * when the name of the VRF changes.
 */
struct fib_vrf {
	struct fib_copy tries;
	uint32_t table; /* number in the kernel and in zebra */
	char name[16];  /* of the kernel; "table7" replaces a name that is not UTF-8 */
	struct vrf_counters base; /* counters of its number when the VRF got a FIB */
};

/*
 * The tries of a VRF as forwarders find them. They are apart from struct fib_vrf, so that a
 * cache line has the pointers of several VRFs.
 */
struct fib_vrf_tries {
	_Atomic(struct poptrie *) pt4, pt6; /* W:rib  NULL: the VRF has no FIB (yet) */
};

struct fib_encap;
struct fib_headend;
struct fib_pmtus;
struct fib_hooks;
struct fib_rules;
struct fib_seg6;
struct fib_sid_numbers;
struct fib_tunnels;
struct fib_vxlan_hop;
struct fib_vxlans;
struct ruleset;

/*
 * The permission for forwarders to write and remove the headers of tunnels. If the kernel
 * has policies of IPsec, only the kernel may, because a policy may require encrypted outer
 * packets.
 */
enum fib_tunnels_state { FIB_TUNNELS_UNKNOWN, FIB_TUNNELS_ALLOWED, FIB_TUNNELS_IPSEC };

/* Kinds of egress interfaces that need one more step. */
enum {
	FIB_OUT_TAG_BY_DEVICE = 1, /* the device inserts the tag */
	/* a macvlan: its frames have the tags of the interface below */
	FIB_OUT_MACVLAN = 2,
};

struct fib {
	/* W:main before the threads start */
	struct fib_copy copy[FIB_COPIES_MAX]; /* of table main; rib writes to all */
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	void *retire_ctx;
	unsigned int n_copies; /* at least one */
	/* W:main before the threads start: sizes, slot 0 included */
	uint32_t group_end, adj_hosts, adj_end, encap_end;
	_Atomic uint64_t *group; /* W:rib  group_end words */
	_Atomic uint64_t
		*egress;         /* W:rib  group_end words: interfaces of a group; urpf.h */
	struct fib_adj *adj;     /* adj_end */
	_Atomic uint32_t *label; /* W:rib  groups by MPLS label; 0: no route. label.h */
	struct fib_encap *encap; /* encap_end; see label.h */
	/* W:rib  encap_end entries, indexed as encap[]; see headend.h */
	struct fib_headend *headend;
	struct fib_sid *sid;                 /* W:rib  FIB_SIDS_MAX; see sid.h */
	struct fib_sid_numbers *sid_numbers; /* W:rib  see sid_number.h */
	/* W:punt,fwd  IFIDX_MAX, by the number of a tunnel: see fib_tunnel_tell() */
	_Atomic uint8_t *tunnel_told;
	_Atomic uint8_t *adj_used; /* W:fwd,punt,neigh  ADJ_UNUSED, ... */
	_Atomic(struct fib_iface *) iface[IFIDX_MAX]; /* W:neigh */
	_Atomic(struct fib_vlans *) vlans[IFIDX_MAX]; /* W:neigh once  NULL: none yet */
	_Atomic(struct fib_vrf *) vrf[FIB_NUMBERS];   /* W:rib  NULL: no FIB (yet) */
	struct fib_vrf_tries vrf_tries[FIB_NUMBERS];  /* W:rib  tries of vrf[] */
	/* W:neigh  by number of a VRF: its device, see fib_vrf_device_make() in urpf.h */
	_Atomic uint64_t vrf_device[FIB_VRF_MAX];
	/*
	 * W:rib once  true: the VRFs have the routes that existed before the start. Then a
	 * packet for which its VRF has no route is looked up in table main.
	 */
	_Atomic bool vrfs_told;
	/* W:rib once  table local, and so each VRF, had an IPv6 route that drops packets */
	_Atomic bool local_refuses6;
	_Atomic(struct fib_rules *)
		rules[2];                  /* W:rib  IPv4, IPv6; NULL: none, see rules.h */
	_Atomic(struct ruleset *) filter;  /* W:filter  NULL: off; see ruleset/ruleset.h */
	_Atomic(struct fib_hooks *) hooks; /* W:manage  NULL: no program; see hook.h */
	_Atomic(struct fib_tunnels *) tunnels; /* W:neigh  NULL: none is up; see tunnel.h */
	_Atomic uint8_t tunnels_state;         /* W:warn  enum fib_tunnels_state */
	_Atomic(struct fib_seg6 *) seg6; /* W:warn  NULL: not known (yet); see headend.h */
	_Atomic(struct fib_pmtus *) pmtus;   /* W:punt  NULL: none is known; see pmtu.h */
	_Atomic(struct fib_vxlans *) vxlans; /* W:neigh  NULL: none is up; see vxlan.h */
	/* W:neigh  array of adj_end entries, by adjacency; NULL: neighbor not behind a VXLAN */
	_Atomic(struct fib_vxlan_hop *) *vxlan_hop;
	_Atomic uint8_t out_special; /* W:neigh R:fwd  FIB_OUT_; bits are never cleared */
	struct cds_lfht *hosts;      /* W:neigh  struct fib_host */
	_Atomic uint16_t
		mtu_bytes[FIB_MTU_MAX]; /* W:rib once, before a path has the class */
	/*
	 * W:neigh  TTL of the labels that are pushed onto IP packets; 0: that of the packet.
	 * Set from the kernel's sysctls net.mpls.ip_ttl_propagate and default_ttl. With 0,
	 * the TTL of removed labels is also copied into the packet (RFC 3443, uniform
	 * model), unless the route of the label has a mode of its own: label_carries_ttl().
	 */
	_Atomic uint8_t label_ttl;
	_Atomic bool
		mpls_known; /* W:neigh  the kernel has MPLS: it reports net.mpls.conf */
	uint64_t seed;      /* of the hashes; random at each start, against polarization */
};

struct fib_conf {
	/* Take memory that the tries retire (hook of rib). NULL: only the writer reads. */
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	void *retire_ctx;
	int node[FIB_COPIES_MAX]; /* NUMA nodes that get a copy each, all different */
	unsigned int n_nodes;     /* 0: one copy, on any node */
	const struct table_limits *limits; /* NULL: the defaults */
};

/*
 * Create an empty FIB for a VRF. The caller owns it until it publishes it. `name` has at
 * most 15 octets. Return NULL if out of memory. [rib]
 */
struct fib_vrf *fib_vrf_new(const struct fib *fib, uint32_t table, const char *name);
void fib_vrf_free(struct fib_vrf *vrf); /* frees the tries, too; NULL is allowed */

/*
 * Publish `vrf` as the FIB of VRF `number`, which is not 0. NULL: the VRF has no FIB. The
 * pointers are stored one after the other, so a reader of several pointers may see old and
 * new pointers. [rib]
 */
void fib_vrf_publish(struct fib *fib, unsigned int number, struct fib_vrf *vrf);

/*
 * Create a trie of the large form, for a VRF whose small trie is too small. Return 0 or
 * -ENOMEM.
 */
int fib_trie_large(const struct fib *fib, uint8_t family, struct poptrie **out);

/* Create empty tables. Return 0, -ENOMEM or -EIO. [main] */
int fib_create(struct fib **out, const struct fib_conf *conf);
void fib_destroy(struct fib *fib);

/*
 * Configure one copy for each different node of `n` forwarders, at most FIB_COPIES_MAX.
 * [main]
 */
void fib_conf_nodes(struct fib_conf *conf, const int *node, unsigned int n);

/* Return the copy for a forwarder on `node`: the node's own, or else the first. [main] */
const struct fib_copy *fib_copy_for(const struct fib *fib, int node);

/* Return the ruleset in force, or NULL. [RCU reader] */
static inline const struct ruleset *
fib_filter(const struct fib *fib)
{
	return atomic_load_explicit(&fib->filter, memory_order_consume);
}

static inline bool
fib_tunnels_allowed(const struct fib *fib)
{
	return atomic_load_explicit(&fib->tunnels_state, memory_order_relaxed) ==
	       FIB_TUNNELS_ALLOWED;
}

/* Return the interface with this index, or NULL. [RCU reader] */
static inline const struct fib_iface *
fib_iface(const struct fib *fib, unsigned int ifidx)
{
	return atomic_load_explicit(&fib->iface[ifidx], memory_order_consume);
}

/* Return the number of the interface with this name; 0: none has it. [RCU reader] */
static inline uint16_t
fib_iface_named(const struct fib *fib, const char *name)
{
	for (uint16_t i = 1; i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(fib, i);

		if (iface != NULL && iface->ifindex != 0 && strcmp(iface->name, name) == 0)
			return i;
	}
	return 0;
}

/* Return the VRF of packets that an interface receives; 0: table main. [RCU reader] */
static inline uint16_t
fib_vrf_of(const struct fib *fib, unsigned int ifidx)
{
	const struct fib_iface *iface = fib_iface(fib, ifidx);

	return iface == NULL ? 0 : iface->vrf;
}

/* Return the FIB of `vrf`, which is not 0, or NULL if it has none (yet). [RCU reader] */
static inline const struct fib_vrf *
fib_vrf(const struct fib *fib, unsigned int vrf)
{
	return atomic_load_explicit(&fib->vrf[vrf], memory_order_consume);
}

/*
 * Return a trie of a VRF's FIB, or NULL if it has none (yet). The FIB may be replaced
 * between a call of fib_vrf() and a call of this function. [RCU reader]
 */
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

/* Return the number of the VRF with this name and a FIB; 0: none. [RCU reader] */
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

/* Return the VLANs on an interface; NULL: it never had a VLAN or a macvlan. [RCU reader] */
static inline const struct fib_vlans *
fib_vlans(const struct fib *fib, unsigned int ifidx)
{
	return atomic_load_explicit(&fib->vlans[ifidx], memory_order_consume);
}

/*
 * Return the interface on `ifidx` for frames with this tag, the four octets (type and TCI)
 * after the MAC addresses. Return 0 if there is none, or if the octets are not a tag. A tag
 * with id 0 has only a priority: IEEE 802.1Q, 9.6. [RCU reader]
 */
static inline uint16_t
fib_vlan(const struct fib *fib, unsigned int ifidx, const uint8_t tag[VLAN_BYTES])
{
	unsigned int type = tag[0] << 8 | tag[1], id = (tag[2] & 15u) << 8 | tag[3];
	const struct fib_vlans *vlans;
	uint16_t found;

	if (!vlan_type_is_tag(type))
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

static inline uint64_t
mac_word(const uint8_t mac[6])
{
	return adj_hop_make(mac, 0) >> 16;
}

/* Return the first place of a MAC in a table of macvlans. */
static inline uint32_t
mac_hash(uint64_t word)
{
	return (uint32_t)(word * 0x9e3779b97f4a7c15 >> 32);
}

/* Return the macvlan with this MAC, six octets; 0: none. [RCU reader] */
static inline uint16_t
fib_macs_find(const struct fib_macs *macs, const uint8_t *mac)
{
	uint64_t word = mac_word(mac), entry;

	for (uint32_t i = mac_hash(word);; i++) {
		entry = atomic_load_explicit(&macs->entry[i & macs->mask],
					     memory_order_consume);
		if (entry == 0 || entry >> 16 == word)
			return (uint16_t)entry;
	}
}

/* Return the macvlans on an interface that are up; NULL: none. [RCU reader] */
static inline const struct fib_macs *
fib_macs(const struct fib *fib, unsigned int ifidx)
{
	const struct fib_vlans *vlans = fib_vlans(fib, ifidx);

	return vlans == NULL ? NULL
			     : atomic_load_explicit(&vlans->macs, memory_order_consume);
}

/*
 * Return the macvlan on interface `ifidx` that has this MAC, six octets; `ifidx` itself if
 * there is none. [RCU reader]
 */
static inline uint16_t
fib_macvlan(const struct fib *fib, uint16_t ifidx, const uint8_t *mac)
{
	const struct fib_macs *macs = fib_macs(fib, ifidx);
	uint16_t found = macs == NULL ? 0 : fib_macs_find(macs, mac);

	return found != 0 ? found : ifidx;
}

/* Return the length of the tags that forwarders write before packets of an interface. */
static inline unsigned int
fib_tag_bytes(const struct fib_iface *iface)
{
	return iface->n_written * VLAN_BYTES;
}

/*
 * Return an interface of VRF `vrf` that has a source of ICMP errors of a family; 0: there
 * is none. Searches all interfaces. [RCU reader]
 */
uint16_t fib_iface_of_vrf(const struct fib *fib, uint16_t vrf, uint8_t family);

/* Hash and match functions of fib->hosts, for its writer. [neigh] */
unsigned long fib_host_hash(const struct fib *fib, const struct fib_host_key *key);
int fib_host_match(struct cds_lfht_node *node, const void *key);

/*
 * Return the adjacency slot of an on-link host; 0: unknown (slot 0 is never used).
 *                                                                             [RCU reader]
 */
uint32_t fib_host_adj(const struct fib *fib, uint16_t ifidx, uint8_t family,
		      const struct ipaddr *addr);

/*
 * Return the path of a destination on the link of interface `ifidx`: the adjacency of the
 * host, or PATH_ONLINK. [RCU reader]
 */
fib_path fib_onlink(const struct fib *fib, uint16_t ifidx, uint8_t family,
		    const struct ipaddr *dst);

/*
 * Return the path of a destination in the VRF to which a route leads, chosen and resolved
 * as by fib_resolve(), with the smaller of the MTUs of both routes. A route of that VRF
 * that leads to another VRF is not followed, so that no packet loops: it stays PATH_VRF.
 * [RCU reader]
 *
 * to         the path of the route, PATH_VRF.
 * flow_hash  the same hash as for the first choice; this choice uses other bits of it.
 */
fib_path fib_resolve_in_vrf(const struct fib *fib, fib_path to, uint8_t family,
			    const struct ipaddr *dst, uint32_t flow_hash);

/*
 * Resolve a destination to its path: look up the group and choose among equal paths by
 * `flow_hash`. An on-link destination with a known host becomes PATH_ADJ. In a VRF without
 * a FIB the path is PATH_NO_FIB. If the VRF has no route, table main is looked up, as in
 * Linux (path_is_no_route()); before the VRFs have their routes the path is PATH_NO_FIB. If
 * the route leads to a VRF, return the path there. [RCU reader]
 *
 * vrf  the VRF of the FIB: 0 for table main.
 *
 * Forwarders do the same for whole bursts; punt uses this function for packets of its own.
 */
fib_path fib_resolve(const struct fib *fib, uint16_t vrf, uint8_t family,
		     const struct ipaddr *dst, uint32_t flow_hash);

/*
 * Return the group word of the route to a destination in a VRF, 0 for table main. The word
 * has PATH_NONE if the VRF has no route or no FIB. If the path that group_word_path()
 * chooses is PATH_ADJ, fib_resolve() returns the same path for this flow. Valid until the
 * next quiescent state. [RCU reader]
 */
uint64_t fib_route_word(const struct fib *fib, uint16_t vrf, uint8_t family,
			const struct ipaddr *dst);

/*
 * Return the VRF whose table has the route that fib_resolve() uses, 0 for table main. It is
 * not `vrf` if a route leads to another VRF, or if `vrf` has no route. [RCU reader]
 */
uint16_t fib_route_vrf(const struct fib *fib, uint16_t vrf, uint8_t family,
		       const struct ipaddr *dst, uint32_t flow_hash);

/*
 * Resolve an IP packet as fib_resolve() does; `room` octets of it may be read. [RCU reader]
 */
fib_path fib_resolve_ip(const struct fib *fib, uint16_t vrf, uint8_t family,
			const uint8_t *ip, unsigned int room);

/*
 * Return the smaller of two MTUs: `mtu_bytes`, the MTU of an interface, and the MTU of a
 * path. [any thread]
 */
static inline uint16_t
fib_mtu_of_path(const struct fib *fib, fib_path path, uint16_t mtu_bytes)
{
	uint16_t limit;

	if (path_mtu_class(path) == 0)
		return mtu_bytes;
	limit = atomic_load_explicit(&fib->mtu_bytes[path_mtu_class(path)],
				     memory_order_relaxed);
	return limit < mtu_bytes ? limit : mtu_bytes;
}

/*
 * Return the length in octets of the largest packet of a family that may leave `out` by
 * `path`. [any thread]
 */
static inline uint16_t
fib_mtu(const struct fib *fib, fib_path path, const struct fib_iface *out, uint8_t family)
{
	return fib_mtu_of_path(fib, path, family == 4 ? out->mtu_bytes : out->mtu6_bytes);
}

/*
 * Return true if packets of a family may not leave by interface `ifidx`, because the kernel
 * has IPv6 off there. [RCU reader]
 */
static inline bool
fib_ipv6_is_off(const struct fib *fib, uint8_t family, unsigned int ifidx)
{
	const struct fib_iface *out = family == 6 ? fib_iface(fib, ifidx) : NULL;

	return out != NULL && out->ipv6_off;
}

/* Choose the path of one flow in a group. [RCU reader] */
static inline fib_path
fib_group_path(const struct fib *fib, uint32_t group, uint32_t flow_hash)
{
	return group_word_path(
		atomic_load_explicit(&fib->group[group], memory_order_consume), flow_hash);
}

/*
 * Values of an octet of `used` (fib->adj_used, adj_end octets), one for each adjacency. A
 * forwarder that punts a packet to wait for its neighbor sets ADJ_BEHIND; neigh sets it for
 * a new host if packets wait for it. While that packet waits, later packets go through the
 * punt thread, too, even when the MAC is known, so that no packet overtakes another. The
 * punt thread sets ADJ_OPEN when no packet waits any longer. A forwarder then sets ADJ_USED
 * as soon as none of its packets is with the punt thread.
 */
enum { ADJ_UNUSED, ADJ_USED, ADJ_BEHIND, ADJ_OPEN };

/*
 * Note that traffic used an adjacency. Return false if packets must wait (ADJ_BEHIND,
 * ADJ_OPEN).
 */
static inline bool
fib_adj_touch(_Atomic uint8_t *used, uint32_t adj)
{
	uint8_t was = atomic_load_explicit(&used[adj], memory_order_relaxed);

	if (was == ADJ_UNUSED)
		atomic_store_explicit(&used[adj], ADJ_USED, memory_order_relaxed);
	return was <= ADJ_USED;
}

/* Note that the packets which waited for the adjacency have been sent. [punt] */
static inline void
fib_adj_open(_Atomic uint8_t *used, uint32_t adj)
{
	uint8_t was = ADJ_BEHIND;

	/* Release: a forwarder that reads ADJ_OPEN also sees the injected packets. */
	atomic_compare_exchange_strong_explicit(&used[adj], &was, ADJ_OPEN,
						memory_order_release, memory_order_relaxed);
}

#endif
