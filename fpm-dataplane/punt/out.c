/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out: end the work of the punt thread on a packet: give it to a forwarder or to the
 * kernel, or drop and count it. The other files of punt/ call these functions. The
 * functions call none of those files.                                            [punt]
 */
#include <netinet/in.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>

#include "base/idle.h"
#include "port/watch.h"
#include "punt/internal.h"

void
punt_lost(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	const struct watch_set *set = watch_set(p->conf.watch);

	counter_add(&p->count->reason[reason], 1);
	counter_vrf_drop(p->count, packet_meta(m)->vrf);
	if (set != NULL)
		watch_lost(p->conf.watch_ring, set, packet_meta(m)->in_ifidx, m, reason);
}

void
punt_drop(struct punt *p, struct rte_mbuf *m, enum reason reason)
{
	punt_lost(p, m, reason);
	rte_pktmbuf_free(m);
}

/*
 * If the packet is of table main, the kernel looks up the route as for its own packets. If
 * it is of a VRF, the egress interface is given, and the kernel uses the table of the VRF
 * of this interface. The index of the path has only the low 18 bits of the ifindex, so an
 * interface with a larger number is not found. Without an index (a headend of SRv6) the
 * kernel would use table main, so the packet is dropped.
 *
 * The kernel does not read the source in the IP header for the lookup. It gets the source
 * as ancillary data, so that it obeys rules by source and source-specific routes. A
 * link-local source is left out, because without an interface the kernel refuses it
 * (EINVAL). No rule or route selects by a link-local source.
 */
void
punt_originate(struct punt *p, struct rte_mbuf *m, uint8_t family, fib_path path)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} to = {0};
	int oif = packet_meta(m)->vrf == 0 ? 0 : (int)path_index(path);
	struct in_pktinfo info4 = {.ipi_ifindex = oif};
	struct in6_pktinfo info6 = {.ipi6_ifindex = (unsigned int)oif};
	struct in6_addr src6;
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(info6))] = {0};
	uint8_t *ip = l3_of(m);
	struct iovec iov = {ip, rte_pktmbuf_data_len(m) - L2_LEN};
	struct msghdr msg = {
		.msg_name = &to, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control};
	struct cmsghdr *c = (struct cmsghdr *)control;

	if (packet_meta(m)->vrf != 0 && oif == 0) {
		punt_drop(p, m, DROP_foreign_oif);
		return;
	}
	if (family == 4) {
		memcpy(&info4.ipi_spec_dst, ip + 12, 4);
		to.in4.sin_family = AF_INET;
		memcpy(&to.in4.sin_addr, ip + 16, 4);
		msg.msg_namelen = sizeof(to.in4);
		msg.msg_controllen = CMSG_SPACE(sizeof(info4));
		*c = (struct cmsghdr){CMSG_LEN(sizeof(info4)), IPPROTO_IP, IP_PKTINFO};
		memcpy(CMSG_DATA(c), &info4, sizeof(info4));
	} else {
		memcpy(&src6, ip + 8, 16);
		if (oif != 0 || !IN6_IS_ADDR_LINKLOCAL(&src6))
			info6.ipi6_addr = src6;
		to.in6.sin6_family = AF_INET6;
		memcpy(&to.in6.sin6_addr, ip + 24, 16);
		msg.msg_namelen = sizeof(to.in6);
		msg.msg_controllen = CMSG_SPACE(sizeof(info6));
		*c = (struct cmsghdr){CMSG_LEN(sizeof(info6)), IPPROTO_IPV6, IPV6_PKTINFO};
		memcpy(CMSG_DATA(c), &info6, sizeof(info6));
	}
	if (p->conf.raw[family == 6] < 0 ||
	    sendmsg(p->conf.raw[family == 6], &msg, MSG_DONTWAIT) < 0) {
		punt_drop(p, m, DROP_foreign_oif);
		return;
	}
	rte_pktmbuf_free(m);
}

void
punt_inject(struct punt *p, struct rte_mbuf *m, uint16_t ifidx)
{
	struct fwd_rings *r = &p->conf.rings[packet_meta(m)->fwd];

	packet_meta(m)->out_ifidx = ifidx;
	if (rte_ring_sp_enqueue(r->inject, m) < 0)
		punt_drop(p, m, DROP_inject_ring_full);
	idle_wake(r->idle);
}
