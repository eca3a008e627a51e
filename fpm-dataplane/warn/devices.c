/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find configuration of devices that forwarders do not obey: masters, XDP programs,
 * sysctls, MAC addresses, qdiscs and filters of traffic control. [warn]
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netlink/device_message.h"
#include "warn/impl.h"

/*
 * The parents of filters of the qdiscs ingress and clsact: TC_H_CLSACT with
 * TC_H_MIN_INGRESS or TC_H_MIN_EGRESS (linux/pkt_sched.h).
 */
#define PARENT_INGRESS 0xfffffff2u
#define PARENT_EGRESS  0xfffffff3u

/* BPF_TCX_INGRESS and BPF_TCX_EGRESS of linux/bpf.h since Linux 6.6. */
#define TCX_INGRESS 46u
#define TCX_EGRESS  47u

static int
own_order(const void *a, const void *b)
{
	const struct own *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

struct own *
own_find(const struct warn *w, uint32_t ifindex)
{
	struct own key = {.ifindex = ifindex};

	if (w->n_own == 0)
		return NULL;
	return bsearch(&key, w->own, w->n_own, sizeof(key), own_order);
}

/* --- links ---------------------------------------------------------------------------- */

static void
member_add(struct warn *w, const struct device_message *m)
{
	char master[IF_NAMESIZE] = "?", where[128], in_linux[160];
	const char *kind = m->master_kind[0] != '\0' ? m->master_kind : "master";

	if (if_indextoname(m->master, master) == NULL)
		snprintf(master, sizeof(master), "?");
	snprintf(where, sizeof(where), "%s in %s %s", m->name, kind, master);
	snprintf(in_linux, sizeof(in_linux),
		 "Linux gives the frames that %s receives to the %s %s, and forwards "
		 "packets through it.",
		 m->name, kind, master);
	list_add(&w->list, WARNING_MEMBER, where, in_linux,
		 "These packets, and packets routed to that device, have no fast path: the "
		 "kernel forwards them.");
}

/*
 * Warn about a macvlan in protodown without a reason. A macvlan with a reason causes no
 * warning, because FRR's vrrpd gives a reason in state Backup, in which the macvlan must
 * receive nothing (RFC 5798, 6.4.2).
 */
static void
protodown_add(struct warn *w, const struct device_message *m)
{
	char where[64];

	snprintf(where, sizeof(where), "%s in protodown", m->name);
	list_add(&w->list, WARNING_MACVLAN, where,
		 "Linux receives and forwards frames to the MAC of a macvlan that is in "
		 "protodown.",
		 "They are dropped (l2_foreign), as in state Backup of VRRP.");
}

/*
 * Warn about a device that a route leads through, if the kernel forwards no IPv4 packets
 * from the device. For IPv6 the kernel forwards from all devices or from none.
 */
static void
through_check(struct warn *w, const struct device_message *m)
{
	char where[64];

	if (m->conf4 == NULL || device_conf4(m, IPV4_DEVCONF_FORWARDING) != 0)
		return;
	snprintf(where, sizeof(where), "%s: off for IPv4", m->name);
	list_add(&w->list, WARNING_FORWARDING, where,
		 "Linux forwards to the device, but no packets from it: its sysctl "
		 "forwarding is 0.",
		 "As in Linux, because the kernel forwards by this device.");
}

static bool
is_through(const struct warn *w, uint32_t ifindex)
{
	const json_t *row;
	size_t i;

	json_array_foreach (w->through, i, row)
		if (json_integer_value(json_object_get(row, "ifindex")) == ifindex)
			return true;
	return false;
}

/* Record arp_ignore, and the device below a macvlan of VRRP, for vrrp_scan(). */
static void
vrrp_note(struct own *own, const struct device_message *m)
{
	static const uint8_t vrrp[4] = {0, 0, 0x5e, 0}; /* RFC 5798, 7.3 */

	own->arp_ignore = device_conf4(m, IPV4_DEVCONF_ARP_IGNORE) != 0;
	if (strcmp(m->kind, "macvlan") == 0 && memcmp(m->mac, vrrp, sizeof(vrrp)) == 0 &&
	    m->mac[4] == 1)
		own->vrrp_on = m->on;
}

/*
 * Warn about devices below VRRP macvlans without arp_ignore: such a device also answers ARP
 * for the address of the virtual router, with its own MAC (keepalived's note on virtual
 * MACs).
 */
static void
vrrp_scan(struct warn *w)
{
	char where[64];

	if (sysctl_number("ipv4/conf/all/arp_ignore") != 0)
		return;
	for (unsigned int i = 0; i < w->n_own; i++) {
		struct own *below =
			w->own[i].vrrp_on == 0 ? NULL : own_find(w, w->own[i].vrrp_on);

		if (below == NULL || below->arp_ignore || below->told)
			continue;
		below->told = true;
		snprintf(where, sizeof(where), "arp_ignore of %s is 0", below->name);
		list_add(&w->list, WARNING_VRRP, where,
			 "Linux answers ARP requests for the virtual router's address with "
			 "the MAC of this device, too.",
			 "The same, because the kernel answers: hosts may not fail over. "
			 "Set arp_ignore to 1.");
	}
}

static void
egress_qos_add(struct warn *w, const char *name)
{
	char where[64];

	snprintf(where, sizeof(where), "egress-qos-map of %s", name);
	list_add(
		&w->list, WARNING_TC, where,
		"Linux gives each packet that leaves by the VLAN a priority of this map, "
		"IPv4 by its TOS.",
		"Forwarded frames have the priority with which they came, or 0. Only those "
		"of the kernel have a priority of the map.");
}

/*
 * Record a device above an interface of the FIB, or above a recorded device. on_mac() looks
 * up the name of the device by its MAC.
 */
static void
upper_note(struct warn *w, const struct device_message *m)
{
	bool above = m->on != 0 && own_find(w, m->on) != NULL;
	struct upper *u;

	for (unsigned int i = 0; m->on != 0 && i < w->n_upper && !above; i++)
		above = w->upper[i].ifindex == m->on;
	if (!above)
		return;
	/* An interrupted dump is repeated, and shows devices again. */
	for (u = w->upper; u < w->upper + w->n_upper && u->ifindex != m->ifindex; u++)
		;
	if (u == w->upper + UPPERS_MAX)
		return;
	w->n_upper += u == w->upper + w->n_upper;
	u->ifindex = m->ifindex;
	snprintf(u->name, sizeof(u->name), "%s", m->name);
	snprintf(u->kind, sizeof(u->kind), "%s", m->kind);
	memcpy(u->mac, m->mac, sizeof(u->mac));
}

/*
 * Warn about a device that takes packets of the port below it, but has no MAC of its own:
 * ipvlan, or a macvlan in mode passthru.
 */
static void
upper_check(struct warn *w, const struct device_message *m)
{
	bool passthru = m->macvlan_mode == MACVLAN_MODE_PASSTHRU;
	const struct own *below = m->on == 0 ? NULL : own_find(w, m->on);
	char where[64];

	if (below == NULL || (!passthru && strncmp(m->kind, "ipv", 3) != 0))
		return;
	snprintf(where, sizeof(where), "%s %s on %s", m->kind, m->name, below->name);
	list_add(&w->list, WARNING_MACVLAN, where,
		 passthru ? "Linux gives the device all frames that the port receives, "
			    "whatever their MAC is."
			  : "Linux gives the device the packets to its addresses.",
		 passthru ? "Frames to other MACs than that of the port are dropped "
			    "(l2_foreign)."
			  : "They take the routes of the control namespace.");
}

/* Warn about a TAP without a queue: the kernel has no room for packets to the daemon. */
static void
txqlen_add(struct warn *w, const char *name)
{
	char where[64];

	snprintf(where, sizeof(where), "txqueuelen of %s is 0", name);
	list_add(&w->list, WARNING_TC, where,
		 "Linux sends packets of a device without a queue to the NIC at once.",
		 "All packets of the kernel are lost, those of BGP, too. Set txqueuelen "
		 "to 1000.");
}

/*
 * Warn about tunnels of a kind that forwarders do not know. neigh lists the tunnels of
 * other kinds. A device that is down causes no warning, because some modules create such a
 * device.
 */
static void
kind_check(struct warn *w, const struct device_message *m)
{
	static const char *const kinds[] = {"gretap",    "ip6gretap", "erspan",
					    "ip6erspan", "geneve",    "bareudp",
					    "vti",       "vti6",      "gtp"};

	for (unsigned int i = 0; m->admin_up && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(m->kind, kinds[i]) == 0)
			kernel_tunnel_add(w, m->kind, m->name, "kind");
}

/*
 * Warn about a VRF whose device is down. The ICMP errors of RFC 1812, 4.3.3 do not depend
 * on that device, so forwarders send them.
 */
static void
vrf_check(struct warn *w, const struct device_message *m)
{
	if (m->admin_up || strcmp(m->kind, "vrf") != 0)
		return;
	list_add(&w->list, WARNING_VRF_DOWN, m->name,
		 "Linux forwards the packets of the members of this VRF, but sends no ICMP "
		 "errors.",
		 "The router sends the errors.");
}

static void
on_link(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct device_message m;
	struct own *own;

	if (nlh->nlmsg_type != RTM_NEWLINK || device_message_decode(nlh, &m) < 0)
		return;
	outer_note(w, nlh, &m);
	own = own_find(w, m.ifindex);
	upper_check(w, &m);
	if (own == NULL) {
		upper_note(w, &m);
		kind_check(w, &m);
		vrf_check(w, &m);
		if (is_through(w, m.ifindex))
			through_check(w, &m);
		return;
	}
	snprintf(own->name, sizeof(own->name), "%s", m.name);
	vrrp_note(own, &m);
	memcpy(own->mac, m.mac, sizeof(own->mac));
	own->tap = strcmp(m.kind, "tun") == 0 &&
		   (m.master == 0 || strcmp(m.master_kind, "vrf") == 0);
	if (own->tap && m.txqlen == 0)
		txqlen_add(w, m.name);
	if (m.protodown && m.protodown_by == 0 && strcmp(m.kind, "macvlan") == 0)
		protodown_add(w, &m);
	if (m.master != 0 && strcmp(m.master_kind, "vrf") != 0)
		member_add(w, &m);
	if (m.xdp)
		list_add(&w->list, WARNING_XDP, m.name,
			 "Linux runs the XDP program on each frame that the device "
			 "receives.",
			 "The program sees only the packets that are given to the kernel.");
	if (m.egress_qos)
		egress_qos_add(w, m.name);
	sysctls_of_device(w, &m);
}

/* --- MACs of devices in other namespaces ---------------------------------------------- */

static bool
mac_is_followed(const struct warn *w, const uint8_t *mac)
{
	for (unsigned int i = 0; i < w->n_own; i++)
		if (memcmp(w->own[i].mac, mac, sizeof(w->own[i].mac)) == 0)
			return true;
	return false;
}

static const struct upper *
upper_with_mac(const struct warn *w, const uint8_t *mac)
{
	for (unsigned int i = 0; i < w->n_upper; i++)
		if (memcmp(w->upper[i].mac, mac, sizeof(w->upper[i].mac)) == 0)
			return &w->upper[i];
	return NULL;
}

static void
on_mac(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	const struct own *own = ctx;
	const struct upper *upper;
	struct mac_message m;
	char where[64], in_linux[200];

	if (nlh->nlmsg_type != RTM_NEWNEIGH || mac_message_decode(nlh, &m) < 0)
		return;
	if (m.ifindex != own->ifindex || !m.self || (m.mac[0] & 1) != 0 ||
	    mac_is_followed(w, m.mac))
		return;
	snprintf(where, sizeof(where), "%02x:%02x:%02x:%02x:%02x:%02x at %s", m.mac[0],
		 m.mac[1], m.mac[2], m.mac[3], m.mac[4], m.mac[5], own->name);
	upper = upper_with_mac(w, m.mac);
	if (upper != NULL)
		snprintf(in_linux, sizeof(in_linux),
			 "Linux delivers frames to this MAC to the %s %s.", upper->kind,
			 upper->name);
	else
		snprintf(in_linux, sizeof(in_linux),
			 "Linux receives frames to this MAC: for a device in another "
			 "network namespace (macvlan, VLAN), or for a program (packet "
			 "socket, `bridge fdb add`).");
	list_add(&w->list, WARNING_MACVLAN, where, in_linux,
		 "They are dropped (l2_foreign).");
}

/*
 * Warn about further MACs that a TAP receives. A device above the TAP adds its own MAC
 * (macvlan, macvtap, a VLAN or macsec with another MAC). If the device was moved to another
 * namespace, it is not in the dump of links, but its MAC is among the MACs of the TAP.
 * Programs add MACs by PACKET_MR_UNICAST and by RTM_NEWNEIGH. The request has the header of
 * messages about links, because the kernel reads the index only there.
 */
static void
macs_scan(struct warn *w, int fd, struct own *own)
{
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg info;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETNEIGH,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .info = {.ifi_family = AF_BRIDGE, .ifi_index = (int)own->ifindex}};
	int rc = ask_dump(w, fd, &request.nlh, on_mac, own);

	if (rc < 0 && rc != -ENODEV && rc != -EOPNOTSUPP)
		unread_add(w, "MACs of ports", rc);
}

/* --- traffic control ------------------------------------------------------------------ */

/* Return true for qdiscs that Linux attaches by default and that only order packets. */
static bool
qdisc_is_plain(const char *kind)
{
	static const char *const plain[] = {"noqueue", "mq", "fq_codel", "pfifo_fast",
					    "noop"};

	for (unsigned int i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(kind, plain[i]) == 0)
			return true;
	return false;
}

static void
on_qdisc(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct qdisc_message m;
	struct own *own;
	char where[64];

	if (nlh->nlmsg_type != RTM_NEWQDISC || qdisc_message_decode(nlh, &m) < 0)
		return;
	own = own_find(w, m.ifindex);
	if (own == NULL)
		return;
	if (m.parent == TC_H_INGRESS) {
		own->clsact = strcmp(m.kind, "clsact") == 0;
		own->ingress = !own->clsact;
		return;
	}
	/* The kernel gives a handle to qdiscs that a user made. */
	if (qdisc_is_plain(m.kind) || m.handle == 0 || own->told_seq == w->seq)
		return;
	own->told_seq = w->seq; /* report the root only, not each child */
	snprintf(where, sizeof(where), "qdisc %s at %s", m.kind, own->name);
	list_add(&w->list, WARNING_TC, where,
		 "Linux queues, shapes or drops the packets that leave by the device.",
		 "Forwarded packets do not pass the qdisc; only those of the kernel do.");
}

/* The filters of one hook of a device. */
struct hook {
	unsigned int n;
	char kind[DEVICE_NAME]; /* of the first filter, for example "flower" */
};

static void
on_filter(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct hook *hook = ctx;
	struct qdisc_message m;

	if (nlh->nlmsg_type != RTM_NEWTFILTER || qdisc_message_decode(nlh, &m) < 0)
		return;
	if (hook->n++ == 0)
		snprintf(hook->kind, sizeof(hook->kind), "%s", m.kind);
}

static void
filters_scan(struct warn *w, int fd, const struct own *own, uint32_t parent)
{
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tc;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETTFILTER,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .tc = {.tcm_ifindex = (int)own->ifindex, .tcm_parent = parent}};
	const char *hook_name = parent == PARENT_EGRESS ? "egress" : "ingress";
	struct hook hook = {0};
	char where[96];
	int rc = ask_dump(w, fd, &request.nlh, on_filter, &hook);

	snprintf(where, sizeof(where), "filter %s at %s of %s",
		 hook.kind[0] != '\0' ? hook.kind : "of tc", hook_name, own->name);
	if (rc < 0 && rc != -ENODEV)
		unread_add(w, where, rc);
	if (rc < 0 || hook.n == 0)
		return;
	list_add(&w->list, WARNING_TC, where,
		 "Linux filters, changes or redirects the packets that pass the device, by "
		 "rules or BPF programs.",
		 "Forwarded packets do not pass the filter.");
}

/*
 * Query the number of tcx programs (Linux 6.6). They are BPF links, which rtnetlink does
 * not report. A kernel without tcx refuses the attach type.
 */
static void
tcx_scan(struct warn *w, const struct own *own, unsigned int type, const char *hook)
{
	union bpf_attr attr = {.query = {.target_fd = own->ifindex, .attach_type = type}};
	char where[64];

	if (syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr.query)) < 0 ||
	    attr.query.prog_cnt == 0)
		return;
	snprintf(where, sizeof(where), "tcx programs at %s of %s", hook, own->name);
	list_add(&w->list, WARNING_TC, where,
		 "Linux filters, changes or redirects the packets that pass the device, by "
		 "BPF programs.",
		 "Forwarded packets do not pass the programs.");
}

/* --- all ------------------------------------------------------------------------------ */

static void
links_scan(struct warn *w, int fd)
{
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg info;
		struct nlattr attr;
		uint32_t mask;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETLINK,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .attr = {.nla_len = sizeof(request.attr) + sizeof(request.mask),
			      .nla_type = IFLA_EXT_MASK},
		     .mask = RTEXT_FILTER_SKIP_STATS};
	int rc = ask_dump(w, fd, &request.nlh, on_link, NULL);

	if (rc < 0) {
		w->outer.incomplete = true;
		unread_add(w, "devices", rc);
	}
	vrrp_scan(w);
}

static void
qdiscs_scan(struct warn *w, int fd)
{
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tc;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETQDISC,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int rc = ask_dump(w, fd, &request.nlh, on_qdisc, NULL);

	/* A kernel without traffic control does not know the request. */
	if (rc < 0 && rc != -EOPNOTSUPP)
		unread_add(w, "traffic control", rc);
	for (unsigned int i = 0; i < w->n_own; i++) {
		if (w->own[i].ingress || w->own[i].clsact)
			filters_scan(w, fd, &w->own[i], PARENT_INGRESS);
		if (w->own[i].clsact)
			filters_scan(w, fd, &w->own[i], PARENT_EGRESS);
		if (ask_is_ending(w))
			return;
		tcx_scan(w, &w->own[i], TCX_INGRESS, "ingress");
		tcx_scan(w, &w->own[i], TCX_EGRESS, "egress");
	}
}

void
devices_scan(struct warn *w)
{
	int fd = ask_open(NETLINK_ROUTE);

	w->n_upper = 0;
	if (w->n_own > 0)
		qsort(w->own, w->n_own, sizeof(*w->own), own_order);
	w->outer = (struct outer_found){.incomplete = fd < 0};
	if (fd < 0) {
		unread_add(w, "devices", fd);
		return;
	}
	links_scan(w, fd);
	for (unsigned int i = 0; i < w->n_own && !ask_is_ending(w); i++)
		if (w->own[i].tap)
			macs_scan(w, fd, &w->own[i]);
	qdiscs_scan(w, fd);
	close(fd);
}
