/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon: what the kernel of one namespace knows of links, whether they forward, addresses
 * and neighbors.
 *
 * Over libnl-3. The monitor keeps a cache, so that after an overrun (ENOBUFS) or a missed
 * event a resync reports exactly the differences, deletions included. All callbacks run
 * in the thread that calls kmon_open() and kmon_dispatch().
 */
#ifndef TAP_BRIDGE_KMON_H
#define TAP_BRIDGE_KMON_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct kmon_link {
	unsigned int ifindex;
	char name[IFNAMSIZ];
	uint8_t mac[6];         /* zero when the link has no 6-octet address */
	unsigned int mtu_bytes; /* IP packet, L2 header excluded */
	bool admin_up;          /* IFF_UP */
	bool carrier;           /* IFF_LOWER_UP */
	/* Of a VLAN interface: the link it is on, in the same namespace; else 0. */
	unsigned int vlan_on;
	uint16_t vlan_type; /* 0x8100 or 0x88a8 */
	uint16_t vlan_id;   /* 0 to 4095 */
	unsigned int
		master; /* ifindex of the VRF, bridge or bond that it is a member of; 0 */
	uint32_t vrf_table; /* of a VRF: its table; else 0 */
};

struct kmon_addr {
	unsigned int ifindex;
	uint8_t family;   /* 4 or 6 */
	uint8_t plen;     /* of the connected subnet, which is peer/plen */
	uint8_t addr[16]; /* ours, network order; IPv4 in the first 4 octets */
	uint8_t peer[16]; /* point-to-point peer, or equal to addr */
	bool tentative;   /* IPv6 DAD under way or failed: not yet ours */
	bool secondary;   /* IPv4: in the subnet of an older address */
};

struct kmon_neigh {
	unsigned int ifindex;
	uint8_t family;   /* 4 or 6 */
	uint8_t addr[16]; /* network order; IPv4 in the first 4 octets */
	uint8_t mac[6];   /* valid when has_mac */
	bool has_mac;
	uint16_t nud; /* NUD_* of linux/neighbour.h; 0 when deleted */
};

/* The `forwarding` sysctl of one interface, or of all. */
struct kmon_conf {
	unsigned int ifindex; /* KMON_CONF_ALL: net.*.conf.all */
	uint8_t family;       /* 4 or 6 */
	bool forwarding;
};

#define KMON_CONF_ALL ((unsigned int)-1)

/*
 * `gone`: deleted; the struct is what was last reported (of a neighbor the key only).
 * Nothing is reported twice without a change in between, nothing on a link before the link
 * itself, and a link is reported gone after all that was on it. An IPv4 address is one of
 * its own for each mask and peer. Left out: proxy entries and the kernel's own NOARP
 * entries (loopback, multicast).
 *
 * A neighbor's INCOMPLETE and DELAY often go unannounced by the kernel; FAILED comes once
 * for each kmon_resolve() that failed. A callback may call kmon_resolve(), kmon_forget(),
 * kmon_gave_up() and kmon_operstate(), nothing else here.
 */
struct kmon_ops {
	void (*link)(void *ctx, const struct kmon_link *link, bool gone);
	void (*conf)(void *ctx, const struct kmon_conf *conf, bool gone);
	void (*addr)(void *ctx, const struct kmon_addr *addr, bool gone);
	void (*neigh)(void *ctx, const struct kmon_neigh *neigh, bool gone);
};

struct kmon_stats {
	uint64_t events;  /* messages seen, dumped ones included */
	uint64_t resyncs; /* full dumps after the first: overrun or kmon_resync() */
	uint64_t last_resync_changes; /* differences that the last one found */
};

struct kmon;

/*
 * Open a monitor in namespace `netns` (NULL or "": ours), dump once and report everything
 * found through `ops` before returning: links, then settings, addresses, neighbors. A NULL
 * op leaves that kind out entirely (not subscribed). Returns 0 or -errno.
 */
int kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx);

/* Descriptor to poll for reading. */
int kmon_fd(const struct kmon *km);

/*
 * Handle what is waiting, some thousand messages at most (the descriptor stays readable
 * when there are more); resyncs by itself after an overrun. Returns 0, or -errno when that
 * resync failed: the next call tries again, whether or not the descriptor is readable.
 */
int kmon_dispatch(struct kmon *km);

/* Dump everything again and report the differences (tests; also doubt). 0 or -errno. */
int kmon_resync(struct kmon *km);

/*
 * Report everything of link `ifindex` gone, and then again as it is: for a caller to whom it
 * means something else from now on. With `again` false only gone; what still comes of it is
 * news. Not from a callback. Returns 0 or -errno, as kmon_resync().
 */
int kmon_retell(struct kmon *km, unsigned int ifindex, bool again);

/*
 * Report every neighbor again as it was reported last: for a caller that had no room for
 * some of them. Not from a callback.
 */
void kmon_tell_neighbors(struct kmon *km);

/*
 * Ask the kernel to resolve or re-confirm a neighbor (RTM_NEWNEIGH with NTF_USE and state
 * none): it solicits on the link, three tries a second apart, then NUD_FAILED. Not waited
 * for; the answer arrives as a neigh event. Entries that are not the kernel's to resolve
 * (permanent, NOARP, externally learned, managed) are left alone.
 *
 * Returns 0 or -errno: -ENODEV link gone, -EINVAL the link does no IPv4 or IPv6.
 */
int kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family,
		 const uint8_t *addr);

/*
 * Take a question back: an entry without an answer goes, and is solicited for no longer. Any
 * other stays. Returns 0 or -errno.
 */
int kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr);

/*
 * Did who was reported FAILED not answer? A deletion by hand is told as a failure too, right
 * before the entry goes: then it is solicited anew here, which the kernel does after it has
 * gone (both under its RTNL lock; to look is no proof, since Linux 6.17 that takes no lock).
 * Returns false when it is asked for (again); true when it failed, or the kernel says no more.
 */
bool kmon_gave_up(struct kmon *km, unsigned int ifindex, uint8_t family,
		  const uint8_t *addr);

/*
 * Have the kernel tell everybody now whether link `ifindex` runs (RFC 2863, ifOperStatus;
 * IFF_RUNNING), after its carrier was set. By itself it does that for one link at once, and for
 * all that change within the same second when that is over (linkwatch): for so long zebra would
 * keep routes over a link that is lost. Until then a lost one is "dormant", and not yet "down".
 * An interface on top is a link of its own. Returns 0 or -errno: -ENODEV link gone.
 */
int kmon_operstate(struct kmon *km, unsigned int ifindex, bool up);

void kmon_stats(const struct kmon *km, struct kmon_stats *st);
void kmon_close(struct kmon *km);

#endif
