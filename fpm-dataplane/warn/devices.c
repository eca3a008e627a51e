/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices of the kernel that are ports or VLANs of ports: their masters, XDP programs,
 * sysctls, qdiscs and filters of traffic control. [warn]
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netlink/device_message.h"
#include "warn/warn_impl.h"

/* Filters of ingress and clsact; TC_H_MIN_INGRESS and TC_H_MIN_EGRESS of linux/pkt_sched.h. */
#define PARENT_INGRESS 0xfffffff2u
#define PARENT_EGRESS  0xfffffff3u

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
		 "packets "
		 "through it.",
		 m->name, kind, master);
	list_add(&w->list, WARNING_MEMBER, where, in_linux,
		 "Packets routed to that device have no fast path: the kernel forwards "
		 "them.");
}

static void
on_link(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct device_message m;
	struct own *own;

	if (nlh->nlmsg_type != RTM_NEWLINK || device_message_decode(nlh, &m) < 0)
		return;
	own = own_find(w, m.ifindex);
	if (own == NULL)
		return;
	snprintf(own->name, sizeof(own->name), "%s", m.name);
	if (m.master != 0 && strcmp(m.master_kind, "vrf") != 0)
		member_add(w, &m);
	if (m.xdp)
		list_add(&w->list, WARNING_XDP, m.name,
			 "Linux runs the XDP program on each frame that the device "
			 "receives.",
			 "The program sees only the packets that are given to the kernel.");
	sysctls_of_device(w, &m);
}

/* --- traffic control ------------------------------------------------------------------ */

/* Return true for the kinds that Linux attaches by itself, and that only order packets. */
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
	own->told_seq = w->seq; /* and not each of its children */
	snprintf(where, sizeof(where), "qdisc %s at %s", m.kind, own->name);
	list_add(&w->list, WARNING_TC, where,
		 "Linux queues, shapes or drops the packets that leave by the device.",
		 "Forwarded packets do not pass the qdisc; only those of the kernel do.");
}

/* The filters of one hook of a device. */
struct hook {
	unsigned int n;
	char kind[DEVICE_NAME]; /* of the first */
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

	if (rc < 0)
		unread_add(w, "devices", rc);
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

	/* A kernel without traffic control has no such request. */
	if (rc < 0 && rc != -EOPNOTSUPP)
		unread_add(w, "traffic control", rc);
	for (unsigned int i = 0; i < w->n_own; i++) {
		if (w->own[i].ingress || w->own[i].clsact)
			filters_scan(w, fd, &w->own[i], PARENT_INGRESS);
		if (w->own[i].clsact)
			filters_scan(w, fd, &w->own[i], PARENT_EGRESS);
	}
}

void
devices_scan(struct warn *w)
{
	int fd = ask_open(NETLINK_ROUTE);

	if (w->n_own > 0)
		qsort(w->own, w->n_own, sizeof(*w->own), own_order);
	if (fd < 0) {
		unread_add(w, "devices", fd);
		return;
	}
	links_scan(w, fd);
	qdiscs_scan(w, fd);
	close(fd);
}
