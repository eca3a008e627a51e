/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internals of the warn thread. Private to warn/ and its tests.
 *
 *   events of the kernel, a timer -> queries to rib and neigh -> scan: rules.c, tunnels.c,
 *   sysctl.c, devices.c, netfilter.c, iptables.c, ipvs.c, addrlabel.c, ipsec.c, seg6.c,
 *   nexthops.c, outer.c -> list.c -> log, metrics, rows
 */
#ifndef WARN_IMPL_H
#define WARN_IMPL_H

#include <ev.h>
#include <jansson.h>
#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/kernel_outer.h"
#include "base/log.h"
#include "base/warning.h"
#include "warn/warn.h"

#define WARNINGS_MAX      256u /* in the list; further warnings are only counted */
#define SYSCTLS_OF_DEVICE 32u  /* largest number of sysctls per device in sysctl.c */
#define WIREGUARDS_MAX    256u /* devices of WireGuard whose ports are read */
#define UPPERS_MAX        256u /* size of upper[]; the list has no room for more */

/* A row of `show warnings`. The texts are printable UTF-8. */
struct warning {
	uint8_t kind; /* enum warning_kind */
	char where[128], in_linux[240], dataplane[160];
};

/* Two lists: the shown list, and the list of the present scan. */
struct warning_list {
	struct warning *now, *next; /* WARNINGS_MAX each; now: sorted */
	unsigned int n_now, n_next;
	uint32_t count[N_WARNING]; /* found by the scan, also those without a row */
	uint32_t shown[N_WARNING]; /* count[] of the scan that made the shown list */
};

/* The kernel's device of an interface that the forwarders serve. */
struct own {
	uint32_t ifindex;
	char name[16];
	bool ingress, clsact; /* the device has a qdisc of that kind */
	bool arp_ignore;      /* its sysctl arp_ignore is not 0 */
	bool told;            /* the warning WARNING_VRRP was given in this scan */
	uint32_t vrrp_on;     /* of a macvlan with a MAC of VRRP: IFLA_LINK; else 0 */
	uint32_t told_seq;    /* value of `seq` in the dump that reported its root qdisc */
	bool tap;             /* the device is a TAP, and in no bridge, bond or team */
	uint8_t mac[6];
};

/* A device that forwarders do not serve, above an interface that they serve. */
struct upper {
	uint32_t ifindex;
	char name[16], kind[16];
	uint8_t mac[6];
};

/* The tunnels that end in the kernel, as a scan has found them. */
struct outer_found {
	struct kernel_outer headers;
	uint32_t wireguard[WIREGUARDS_MAX]; /* ifindexes of devices */
	unsigned int n_wireguard;
	bool wireguard_full; /* there are more devices than WIREGUARDS_MAX */
	bool fou, l2tp;      /* there are tunnels of these families, which may use UDP */
	bool ipsec;          /* there are policies of IPsec */
	bool incomplete;     /* the kernel did not list all devices */
};

/*
 * Facts about outer headers by a request of their own. If the request fails, the facts of
 * the scan before stay.
 */
struct outer_asked {
	struct kernel_outer wireguard, fou, l2tp; /* UDP ports */
	bool ipsec;                               /* there are policies of IPsec */
};

struct warn {
	struct worker *w;
	struct warn_conf conf;
	struct warning_list list;
	struct own *own; /* of this scan, by ifindex */
	unsigned int n_own, room_own;
	struct upper upper[UPPERS_MAX]; /* of this scan */
	unsigned int n_upper;
	uint8_t *buffer;                     /* for answers; ASK_BUFFER_BYTES */
	uint32_t seq;                        /* of the next netlink request */
	int events, nft_events, xfrm_events; /* sockets; -1: closed */
	ev_io events_io, nft_events_io, xfrm_events_io;
	ev_timer due;                              /* starts the next scan */
	bool asked;                                /* a query has no answer yet */
	unsigned int n_asked;                      /* answered queries of this scan */
	json_t *rules, *through, *links, *tunnels; /* rows of the answers; owned here */
	double rest_s;                             /* shortest pause after a scan */
	double scanned_s;                          /* monotonic, end of the last scan */
	long long of_all[SYSCTLS_OF_DEVICE];       /* values of conf/all in this scan */
	/* Number of the family SEG6 of generic netlink; 0: unknown; -ENOENT: no SRv6. */
	int seg6_family;
	struct outer_found outer; /* of this scan */
	struct outer_asked outer_asked;
	struct log_limit netns_log;
};

/* --- list.c                                                                  [warn] */

int list_init(struct warning_list *l);
void list_free(struct warning_list *l);
void list_begin(struct warning_list *l);
/*
 * Add a warning to the list of the scan. The caller formats the texts; `where` identifies
 * the warning within its kind. Octets that are not printable are replaced.
 */
void list_add(struct warning_list *l, enum warning_kind kind, const char *where,
	      const char *in_linux, const char *dataplane);
/* Show the list of the scan from now on: log the differences, set warning_count. */
void list_end(struct warning_list *l);
/*
 * Append the rows from `*from` on, at most `max` in all, and advance `*from`. Returns true
 * after the last row.
 */
bool list_rows(const struct warning_list *l, uint64_t *from, unsigned int max,
	       json_t *rows);

/*
 * Return the present end of the scan's list. list_back() removes the warnings after that
 * end, before a dump is repeated because the tables of the kernel changed.
 */
struct list_mark {
	unsigned int n;
	uint32_t count[N_WARNING];
};
struct list_mark list_mark(const struct warning_list *l);
void list_back(struct warning_list *l, const struct list_mark *mark);

/* --- ask.c                                                                   [warn] */

/* more than two lists of 64 KiB (tap-bridge/kmon.c) */
#define ASK_BUFFER_BYTES (192u << 10)

/* Function that ask_dump() calls for each message of an answer. */
typedef void (*ask_fn)(struct warn *w, const struct nlmsghdr *nlh, void *ctx);

/*
 * Open a netlink socket for requests; the thread is in the control namespace. Returns the
 * descriptor or -errno: -EPROTONOSUPPORT if the kernel lacks the protocol.
 */
int ask_open(int protocol);
/*
 * Send a dump request and call fn() for each message of the answer. Repeats a dump that
 * changes of the tables interrupted. Returns 0, or -errno of the kernel; -ECANCELED: the
 * daemon ends.
 */
int ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx);
/* Return true if the daemon ends: the scan is then given up, and its list is not shown. */
bool ask_is_ending(const struct warn *w);
/* Add the warning that a part of the configuration could not be read. */
void unread_add(struct warn *w, const char *part, int error);

/* --- genl.c                                                                  [warn] */

/* Return an attribute of a message of generic netlink, or NULL. */
const struct nlattr *genl_attr(const struct nlmsghdr *nlh, unsigned int type);
/*
 * Request the number of a family of generic netlink. Returns it, or -errno; -ENOENT: the
 * kernel has no such family.
 */
int genl_family(struct warn *w, int fd, const char *name);

/* --- parts of a scan                                                         [warn] */

void devices_scan(struct warn *w);   /* devices.c: masters, XDP, traffic control */
void netfilter_scan(struct warn *w); /* netfilter.c: chains of nf_tables */
void iptables_scan(struct warn *w);  /* iptables.c: tables of the old iptables */
void ipsec_scan(struct warn *w);     /* ipsec.c: policies of IPsec */
void ipvs_scan(struct warn *w);      /* ipvs.c: virtual services of the load balancer */
void addrlabel_scan(struct warn *w); /* addrlabel.c: labels of addresses */
void seg6_scan(struct warn *w);      /* seg6.c: publishes the source address of SRv6 */
void nexthops_scan(struct warn *w);  /* nexthops.c: resilient groups of next hops */
void outer_scan(struct warn *w);     /* outer.c: publishes the headers of tunnels */
void sysctls_scan(struct warn *w);   /* sysctl.c: sysctls of the namespace */
void rules_scan(struct warn *w);     /* rules.c: rules and routes not used as in Linux */
void tunnels_scan(struct warn *w);   /* tunnels.c: tunnels that neigh has listed */

/* Add the warning about a tunnel that the kernel serves (tunnels.c). */
void kernel_tunnel_add(struct warn *w, const char *kind, const char *name,
		       const char *reason);

struct device_message;
/* Record the outer headers of a device, if it is a tunnel (outer.c). */
void outer_note(struct warn *w, const struct nlmsghdr *nlh, const struct device_message *m);

/* Return a text of a row of the control socket; "?" if the row has none. */
static inline const char *
row_text(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text != NULL ? text : "?";
}

/* Add a warning if the file, in the form of /proc/net/ip_vs, lists services (ipvs.c). */
void ipvs_read(struct warn *w, FILE *services);

/* Read a number below /proc/sys/net of the thread's namespace; 0: no such file. */
long long sysctl_number(const char *file);

/*
 * Add warnings about sysctls of a device, mc_forwarding of multicast included (sysctl.c).
 */
void sysctls_of_device(struct warn *w, const struct device_message *m);

/* Return the device with this index if the forwarders serve it; else NULL. */
struct own *own_find(const struct warn *w, uint32_t ifindex);

#endif
