/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon: monitor the links, IP settings, addresses and neighbors of one namespace.
 *
 * It uses libnl-3. The monitor keeps a mirror of the kernel's state, so that after an
 * overrun (ENOBUFS) or a missed event a resync reports exactly the differences, deletions
 * included. All callbacks run in the thread that calls kmon_open() and kmon_dispatch().
 */
#ifndef TAP_BRIDGE_KMON_H
#define TAP_BRIDGE_KMON_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum kmon_macvlan {
	KMON_NO_MACVLAN,
	KMON_MACVLAN_BY_MAC,    /* receives frames to its own MAC */
	KMON_MACVLAN_BY_SOURCE, /* mode source: frames from listed MACs, to any MAC */
};

enum kmon_tunnel_kind {
	KMON_NO_TUNNEL,
	KMON_GRE,  /* gre: over IPv4 */
	KMON_IPIP, /* ipip, sit: an IP packet directly behind an IPv4 header */
	KMON_SIT,
	KMON_IP6GRE, /* ip6gre: over IPv6 */
	KMON_IP6TNL, /* ip6tnl: an IP packet directly behind an IPv6 header */
	KMON_VXLAN, /* vxlan: Ethernet over UDP. A bridge above it is the tunnel's interface */
};

/* Reasons why only the kernel can serve a tunnel. */
enum kmon_tunnel_cannot {
	KMON_TUNNEL_CAN,
	KMON_TUNNEL_CHECKSUM,
	KMON_TUNNEL_SEQUENCE,
	KMON_TUNNEL_EXTERNAL, /* `external`: a route gives the addresses (collect_md) */
	KMON_TUNNEL_ENCAP,    /* in UDP: FOU, GUE */
	KMON_TUNNEL_FWMARK,   /* a mark chooses the route of its packets */
	KMON_TUNNEL_ISATAP,
	KMON_TUNNEL_MIP6,
	KMON_TUNNEL_DSCP_COPY, /* the DSCP of the outer header is copied into the packet */
	KMON_TUNNEL_NAMESPACE, /* its outer packets are in another namespace */
	KMON_TUNNEL_MPLS,      /* carries no IP packets */
	KMON_TUNNEL_LEARNING,  /* vxlan: the kernel learns VTEPs from packets */
	KMON_TUNNEL_GBP,       /* vxlan: headers have a group policy */
	KMON_TUNNEL_GPE,       /* vxlan: headers have the generic protocol extension */
	KMON_TUNNEL_REMCSUM,   /* vxlan: remote checksum offload */
	KMON_TUNNEL_N_CANNOT
};

/* The settings of a tunnel. Compared as octets, so all fields that are not set are zero. */
struct kmon_tunnel {
	enum kmon_tunnel_kind kind;
	enum kmon_tunnel_cannot cannot;
	uint32_t in_key, out_key; /* GRE; valid if has_... */
	uint32_t link;            /* egress link of outer packets, or their VRF; 0: any */
	uint32_t flow_label;      /* of the outer IPv6 header; 0: from a hash */
	uint8_t local[16], remote[16]; /* outer; IPv4 in the first 4 octets; zero: any */
	uint8_t family;                /* of the outer header: 4 or 6 */
	uint8_t proto;                 /* of its packets: 4, 41 (IPv6), or 0: both */
	uint8_t ttl;                   /* of the outer header; 0: from the inner packet */
	uint8_t tos;                   /* ... without ECN; valid if not tos_inherit */
	uint8_t encap_limit;           /* RFC 2473; valid if has_encap_limit */
	bool tos_inherit, flow_inherit, has_in_key, has_out_key, has_encap_limit;
	bool df;        /* pmtudisc: set DF in the outer header */
	bool ignore_df; /* do not copy DF of the inner packet */
	/* of a vxlan */
	uint32_t vni;
	bool external;                /* its bridge has a VNI for each VLAN */
	bool vnifilter;               /* the kernel accepts only VNIs of `bridge vni` */
	uint16_t port;                /* UDP destination port of its packets */
	uint16_t from_low, from_high; /* UDP source ports, both included; 0: not set */
	bool csum;                    /* sends UDP checksums */
	bool zero_csum6;              /* accepts packets over IPv6 without a checksum */
	/* if ttl is 0, outer packets get the TTL of the inner packet, not the default */
	bool ttl_inherit;
};

struct kmon_link {
	unsigned int ifindex;
	char name[IFNAMSIZ];
	uint8_t mac[6];         /* zero when the link has no 6-octet address */
	unsigned int mtu_bytes; /* IP packet, L2 header excluded */
	bool admin_up;          /* IFF_UP */
	bool carrier;           /* IFF_LOWER_UP */
	bool protodown;         /* IFLA_PROTO_DOWN: a program holds the link down */
	bool dormant; /* IFLA_LINKMODE: despite a carrier, up only when a program says so */
	bool arp_off; /* IFF_NOARP: the kernel solicits no neighbor on it */
	bool arp_notify; /* sysctl; a change of it alone is not reported */
	/* VLAN or macvlan: the link below it, if that is in the same namespace; else 0. */
	unsigned int on;
	enum kmon_macvlan macvlan;
	uint16_t vlan_type;  /* of a VLAN: 0x8100 or 0x88a8; else 0 */
	uint16_t vlan_id;    /* 0 to 4095 */
	unsigned int master; /* ifindex of its VRF, bridge or bond; 0: none */
	uint32_t vrf_table;  /* of a VRF: its table; else 0 */
	uint32_t group;      /* of interfaces, `ip link set ... group` */
	struct kmon_tunnel tunnel;
	/* bridge: a bridge of the kernel; vlan_filtering: a bridge with VLANs */
	bool bridge, vlan_filtering;
};

struct kmon_addr {
	unsigned int ifindex;
	uint8_t family;   /* 4 or 6 */
	uint8_t plen;     /* of the connected subnet, which is peer/plen */
	uint8_t addr[16]; /* local address, network order; IPv4 in the first 4 octets */
	uint8_t peer[16]; /* point-to-point peer, or equal to addr */
	bool tentative;   /* IPv6 DAD under way or failed: not usable */
	bool secondary;   /* IPv4: in the subnet of an older address */
	bool deprecated;  /* its preferred lifetime has ended */
	/*
	 * IPv4: RT_SCOPE_ of linux/rtnetlink.h; RT_SCOPE_HOST: no packet has it as source
	 */
	uint8_t scope;
};

struct kmon_neigh {
	unsigned int ifindex;
	uint8_t family;   /* 4 or 6 */
	uint8_t addr[16]; /* network order; IPv4 in the first 4 octets */
	uint8_t mac[6];   /* valid when has_mac */
	bool has_mac;
	uint16_t nud; /* NUD_* of linux/neighbour.h; 0 when deleted */
};

/* An entry of the forwarding database of a vxlan device: the VTEP of frames to a MAC. */
struct kmon_fdb {
	unsigned int ifindex; /* of the vxlan device */
	uint32_t from_vni;    /* VNI of the frames, if the device has several; else 0 */
	uint8_t mac[6];
	uint8_t family;     /* of the VTEP: 4 or 6 */
	uint8_t remote[16]; /* the VTEP, network order; IPv4 in the first 4 octets */
	uint32_t vni;       /* 0: that of the device */
	uint32_t link;      /* the outer packets must leave by this link; 0: any */
	uint16_t port;      /* 0: that of the device */
};

/* The VNI of a VLAN, at the port of a bridge that is an external vxlan device. */
struct kmon_vni {
	unsigned int ifindex; /* of the port */
	uint16_t vlan;
	uint32_t vni;
};

/* Sysctls of one interface, or of all. */
struct kmon_conf {
	unsigned int ifindex; /* KMON_CONF_ALL: net.*.conf.all */
	uint8_t family;       /* 4 or 6 */
	bool forwarding;
	bool ignore_linkdown; /* ignore_routes_with_linkdown */
	uint8_t rp_filter;    /* IPv4: 0 off, 1 strict, 2 loose; of this link or of all */
};

#define KMON_CONF_ALL ((unsigned int)-1)

/* MPLS of one link. Without the kernel module mpls_router this is reported for no link. */
struct kmon_mpls {
	unsigned int ifindex;
	bool input; /* sysctl net.mpls.conf.NAME.input: the link accepts labels */
};

/* IPv6 of one link. A link with an MTU below 1280 octets has no IPv6. */
struct kmon_inet6 {
	unsigned int ifindex;
	bool off;               /* sysctl disable_ipv6 */
	bool ndisc_notify;      /* sysctl */
	bool force_forwarding;  /* forwards even if `forwarding` of all is 0; Linux 6.17 */
	unsigned int mtu_bytes; /* sysctl mtu, also set by router advertisements */
};

/*
 * The callbacks of the owner. `gone`: the item was deleted; the struct has the state that
 * was last reported (for a neighbor only the key). Without a change nothing is reported
 * twice. A link is reported before all items on it, and reported gone after all items on
 * it. An IPv4 address with several masks or peers is reported once for each of them. Not
 * reported: proxy entries, and NOARP entries of groups, of broadcasts and of loopback,
 * which the kernel itself makes.
 *
 * The kernel often does not announce INCOMPLETE and DELAY of a neighbor. FAILED comes once
 * for each kmon_resolve() that failed. A callback may call kmon_resolve(), kmon_forget(),
 * kmon_has_failed(), kmon_operstate() and kmon_fdb_find(). A callback about a link may also
 * call kmon_drop_fdb(). Callbacks may call no other function of this file.
 */
struct kmon_ops {
	void (*on_link)(void *ctx, const struct kmon_link *link, bool gone);
	void (*on_conf)(void *ctx, const struct kmon_conf *conf, bool gone);
	void (*on_mpls)(void *ctx, const struct kmon_mpls *mpls, bool gone);
	void (*on_inet6)(void *ctx, const struct kmon_inet6 *inet6, bool gone);
	void (*on_addr)(void *ctx, const struct kmon_addr *addr, bool gone);
	void (*on_vni)(void *ctx, const struct kmon_vni *vni, bool gone);
	void (*on_fdb)(void *ctx, const struct kmon_fdb *fdb, bool gone);
	/*
	 * Return false for a vxlan device whose entries the owner does not need; they may
	 * be many. The monitor does not keep them. NULL: all are needed.
	 */
	bool (*wants_fdb)(void *ctx, unsigned int ifindex);
	void (*on_neigh)(void *ctx, const struct kmon_neigh *neigh, bool gone);
};

struct kmon_stats {
	uint64_t events;   /* messages received, dumped ones included */
	uint64_t requests; /* messages sent about one neighbor or link */
	uint64_t resyncs;  /* full dumps after the first: by an overrun or kmon_resync() */
	uint64_t last_resync_changes; /* differences that the last resync found */
};

struct kmon;

/*
 * Open a monitor in namespace `netns` (NULL or "": the caller's), dump once, and report all
 * that is found through `ops` before returning: links, then settings, addresses, VNIs of
 * VLANs, forwarding databases, neighbors. A NULL op leaves that kind out entirely (not
 * subscribed). If the kernel's state changed during each try of a dump, entries may be
 * missing until kmon_dispatch() handles the next event. Returns 0 or -errno.
 */
int kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx);

/* Return the descriptor to poll for reading. */
int kmon_fd(const struct kmon *km);

/*
 * Handle the waiting messages, some thousand at most (the descriptor stays readable when
 * there are more). Resyncs after an overrun. Returns 0, or -errno when that resync failed:
 * the next call tries again, even if the descriptor is not readable.
 */
int kmon_dispatch(struct kmon *km);

/*
 * Return true if events were lost and no resync has succeeded since, or if events were lost
 * during the last resync. The state may then be wrong until the next kmon_dispatch() or
 * kmon_resync(). Do not wait for the descriptor: it may not become readable.
 */
bool kmon_is_lost(const struct kmon *km);

/*
 * Read `inet6` of all links and report the differences. The kernel has no events for these
 * settings, so the caller does this periodically. Returns 0 or -errno.
 */
int kmon_read_inet6(struct kmon *km);

/*
 * Return true if an event since the last reading suggests a change of `inet6`. Such events
 * are:
 * - a message about a known link that has other IPv6 settings than the last reading, or no
 *   such settings, or another MTU than before;
 * - the deletion of an IPv6 address, because a link that loses IPv6 loses its addresses;
 * - a new IPv6 address on a link whose IPv6 was off or not known.
 * The first message about a new link has the settings of IPv6, so they need not be read.
 */
bool kmon_inet6_is_due(const struct kmon *km);

/*
 * Dump all state again and report the differences. Returns 0 or -errno: -EAGAIN if the
 * kernel's state changed during each try of a dump, so that entries may be missing. Then no
 * entry of that kind was reported as gone, and the caller calls this again later.
 */
int kmon_resync(struct kmon *km);

/*
 * Report link `ifindex`, and all links, addresses and neighbors on it, as removed. With
 * `again`, then report their present state, for a caller that uses the link in another way
 * from now on. Without `again`, only later changes are reported. Not from a callback.
 * Returns 0 or -errno, as kmon_resync().
 */
int kmon_reset_link(struct kmon *km, unsigned int ifindex, bool again);

/*
 * Report every neighbor again as it was reported last, for a caller that had no room for
 * some of them. Not from a callback.
 */
void kmon_report_neighbors(struct kmon *km);
/*
 * Report the neighbors on one link again, for a caller that ignored those of the link
 * before.
 */
void kmon_report_neighbors_on(struct kmon *km, unsigned int ifindex);

/*
 * Ask the kernel to resolve or confirm a neighbor (RTM_NEWNEIGH with NTF_USE and state
 * none). The kernel solicits the neighbor three times, at intervals of a second, and then
 * reports NUD_FAILED. This function does not wait; the result arrives as a neigh event. It
 * does not touch entries that the kernel does not resolve (permanent, NOARP). The flags
 * "externally learned" and "managed" of an entry stay.
 *
 * On a link with `arp off` the kernel gives a neighbor the MAC of the link and state NOARP,
 * without an event. This function then calls the neigh callback itself, if the entry is
 * new. If the monitor has not yet reported `arp off` of the link, the next call of this
 * function calls the callback.
 *
 * Returns 0, 1 if the entry is NOARP and the callback may have run, or -errno: -ENODEV the
 * link is gone, -EINVAL the link has no IPv4 or IPv6.
 */
int kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family,
		 const uint8_t *addr);

/*
 * Cancel a resolution: the kernel removes an entry without a reply and stops soliciting the
 * neighbor. All other entries stay, and so do entries that are externally learned or
 * managed. Returns 0 or -errno.
 */
int kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr);

/*
 * Return true if a neighbor that was reported FAILED did not reply. The kernel also reports
 * a failure just before it removes an entry that a user deletes. For that case this
 * function solicits the neighbor again. The request needs the RTNL lock, under which the
 * kernel reports and removes the entry, so it is handled after the removal. (A lookup alone
 * is no proof, because since Linux 6.17 it takes no lock.) Returns false when the kernel
 * solicits the neighbor (again); true when it failed, or on an error.
 */
bool kmon_has_failed(struct kmon *km, unsigned int ifindex, uint8_t family,
		     const uint8_t *addr);

/*
 * Make the kernel announce now whether link `ifindex` runs (RFC 2863, ifOperStatus;
 * IFF_RUNNING), after its carrier was set. The kernel itself (linkwatch) announces one link
 * at once, and all links that change within the same second at the end of that second;
 * until then zebra would keep routes over a lost link. Until linkwatch runs, a lost link is
 * "dormant" and not yet "down". An interface on top of the link needs a call of its own.
 * Returns 0 or -errno: -ENODEV the link is gone.
 */
int kmon_operstate(struct kmon *km, unsigned int ifindex, bool up);

/*
 * Find the entry of the forwarding database of vxlan device `ifindex` for a MAC, as
 * reported last. `from_vni` is 0 for a device with one VNI. Returns NULL if there is none.
 */
const struct kmon_fdb *kmon_fdb_find(const struct kmon *km, unsigned int ifindex,
				     const uint8_t mac[6], uint32_t from_vni);

/*
 * Read the forwarding database of a device for which `wants_fdb` returned false before,
 * and report its entries. Returns 0 or -errno, as kmon_resync().
 */
int kmon_read_fdb(struct kmon *km, unsigned int ifindex);
/* Remove the entries of a device that the owner no longer needs, without a report. */
void kmon_drop_fdb(struct kmon *km, unsigned int ifindex);

void kmon_stats(const struct kmon *km, struct kmon_stats *st);
void kmon_close(struct kmon *km);

#endif
