/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces the addresses of a port that was set up, if the sysctls arp_notify and
 * ndisc_notify want it. Runs in neigh.
 *
 * The kernel sends a gratuitous ARP when a TAP is set up, and an unsolicited advertisement
 * for an IPv6 address without duplicate address detection. Both are lost, because the TAP
 * has no carrier then: the link of the device comes up later. So the same frames are sent
 * by the TAP when it has its carrier. A carrier that is lost and comes back announces
 * nothing, as in Linux.
 */
#include "neigh/internal.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/inet.h"
#include "base/log.h"
#include "base/sysfs.h"
#include "tap-bridge/netns.h"

#define FRAME_MAX 128
#define TAGS_MAX  2
#define NA_BYTES  32 /* octets of the ICMPv6 message with its option */

struct frame {
	unsigned int len;
	uint8_t octets[FRAME_MAX];
};

/* The sysctls of all interfaces: IPv4, IPv6. */
static const char *const of_all[] = {"/proc/sys/net/ipv4/conf/all/arp_notify",
				     "/proc/sys/net/ipv6/conf/all/ndisc_notify"};

/* --- frames --------------------------------------------------------------------------- */

static void
frame_put(struct frame *f, const void *octets, unsigned int n)
{
	memcpy(f->octets + f->len, octets, n);
	f->len += n;
}

static void
frame_put16(struct frame *f, unsigned int value)
{
	frame_put(f, (const uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

/* Begin a frame of the interface with its tags, the outermost first. */
static void
frame_begin(struct frame *f, const struct neigh *n, const struct iface *ifc,
	    const uint8_t to[6], unsigned int type)
{
	const struct kmon_link *tag[TAGS_MAX];
	unsigned int n_tags = 0;

	f->len = 0;
	frame_put(f, to, 6);
	frame_put(f, ifc->kernel.mac, 6);
	for (; ifc->on != 0 && n_tags < TAGS_MAX; ifc = &n->iface[ifc->on])
		tag[n_tags++] = &ifc->kernel;
	while (n_tags-- > 0) {
		frame_put16(f, tag[n_tags]->vlan_type);
		frame_put16(f, tag[n_tags]->vlan_id);
	}
	frame_put16(f, type);
}

/* Write a gratuitous ARP request (RFC 5227, 3). */
static void
frame_arp(struct frame *f, const struct neigh *n, const struct iface *ifc,
	  const uint8_t addr[4])
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, none[6];
	static const uint8_t head[] = {0, 1, 8, 0,
				       6, 4, 0, 1}; /* Ethernet, IPv4, request */

	frame_begin(f, n, ifc, all, ETH_P_ARP);
	frame_put(f, head, sizeof(head));
	frame_put(f, ifc->kernel.mac, 6);
	frame_put(f, addr, 4);
	frame_put(f, none, 6);
	frame_put(f, addr, 4);
}

/* Write an unsolicited advertisement to all nodes (RFC 4861, 7.2.6). */
static void
frame_na(struct frame *f, const struct neigh *n, const struct iface *ifc,
	 const uint8_t addr[16])
{
	static const uint8_t group[6] = {0x33, 0x33, 0, 0, 0, 1};
	static const uint8_t nodes[16] = {0xff, 2, [15] = 1};
	static const uint8_t head[] = {0x60, 0, 0, 0, 0, NA_BYTES, 58, 255};
	uint8_t flags = n->forward6_all ? 0xa0 : 0x20; /* router, override */
	unsigned int icmp;
	uint32_t sum;

	frame_begin(f, n, ifc, group, ETH_P_IPV6);
	frame_put(f, head, sizeof(head));
	frame_put(f, addr, 16);
	frame_put(f, nodes, 16);
	icmp = f->len;
	frame_put(f, (const uint8_t[]){136, 0, 0, 0, flags, 0, 0, 0}, 8);
	frame_put(f, addr, 16);
	/* Option: link-layer address of the target. */
	frame_put(f, (const uint8_t[]){2, 1}, 2);
	frame_put(f, ifc->kernel.mac, 6);
	/* The pseudo header (RFC 8200, 8.1), then the message. */
	sum = inet_sum(addr, 16, NA_BYTES + 58);
	sum = inet_sum(nodes, 16, sum);
	sum = inet_sum(f->octets + icmp, NA_BYTES, sum);
	put_be16(f->octets + icmp + 2, (uint16_t)~inet_fold(sum));
}

/* --- sending -------------------------------------------------------------------------- */

/*
 * Send a frame that bypasses the queue of the TAP, because the kernel starts the queue some
 * time after the carrier.
 */
static void
frame_send(struct neigh *n, const struct iface *ifc, const struct frame *f)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_ifindex =
					 (int)n->iface[ifc->port->ifidx].tap.ifindex};
	static struct log_limit limit;
	unsigned int missed;
	int on = 1, error = 0;

	if (n->notify_fd < 0) {
		n->notify_fd = netns_socket(n->conf.netns, AF_PACKET, SOCK_RAW, 0);
		if (n->notify_fd >= 0)
			(void)setsockopt(n->notify_fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on,
					 sizeof(on));
	}
	if (n->notify_fd < 0)
		error = -n->notify_fd;
	else if (sendto(n->notify_fd, f->octets, f->len, MSG_DONTWAIT,
			(const struct sockaddr *)&to, sizeof(to)) < 0)
		error = errno;
	if (error != 0 && log_allowed(&limit, &missed))
		log_warn("neigh: address not announced dev=%s error=\"%s\" missed=%u",
			 ifc->kernel.name, strerror(error), missed);
}

static void
notify_addresses(struct neigh *n, uint16_t ifidx, const bool all[2])
{
	struct iface *ifc = &n->iface[ifidx];
	const struct link *l = ifc->present ? link_find(n, ifc->kernel.ifindex) : NULL;
	const struct local *a;
	struct frame f;

	for (uint16_t i = iface_first_on(n, ifidx); i != 0; i = iface_next_on(n, i))
		notify_addresses(n, i, all);
	if (!ifc->notify_due || l == NULL || !ifc->kernel.admin_up)
		return;
	ifc->notify_due = false;
	cds_list_for_each_entry (a, &l->locals, list) {
		if (a->addr.family == 4 && (all[0] || ifc->kernel.arp_notify))
			frame_arp(&f, n, ifc, a->addr.addr);
		else if (a->addr.family == 6 && (all[1] || l->ndisc_notify) &&
			 !a->addr.tentative)
			frame_na(&f, n, ifc, a->addr.addr);
		else
			continue;
		frame_send(n, ifc, &f);
	}
}

void
notify_note(struct iface *ifc, const struct kmon_link *kl)
{
	if (ifc->present && kl->admin_up && !ifc->kernel.admin_up &&
	    kl->macvlan == KMON_NO_MACVLAN && !ifc->tunnel)
		ifc->notify_due = true;
}

void
notify_send(struct neigh *n, uint16_t ifidx)
{
	struct netns_guard guard;
	bool all[2];

	if (!n->iface[ifidx].notify_due || netns_enter(n->conf.netns, &guard) < 0)
		return;
	all[0] = sysfs_read_number(of_all[0], 0) != 0;
	all[1] = sysfs_read_number(of_all[1], 0) != 0;
	netns_leave(&guard);
	notify_addresses(n, ifidx, all);
}

void
notify_close(struct neigh *n)
{
	if (n->notify_fd >= 0)
		close(n->notify_fd);
	n->notify_fd = -1;
}
