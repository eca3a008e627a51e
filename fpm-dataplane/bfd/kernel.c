/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel: sessions over interfaces that are not ports of the dataplane. Their packets go
 * through UDP sockets in the control namespace. While bfdd leaves its sessions to a data
 * plane, bfdd has no sockets, so only this thread can serve these sessions. Their packets
 * wait for this thread, so their timing depends on the load of the host, as with bfdd.
 *                                                                                    [bfd]
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "bfd/impl.h"

#define PORT_TRIES 16u /* attempts to find a free source port */

union control {
	struct cmsghdr align;
	char octets[128];
};

static const struct {
	sa_family_t family;
	uint16_t port;
} rx_kinds[BFD_KERNEL_SOCKETS] = {
	{AF_INET, BFD_PORT},
	{AF_INET, BFD_PORT_MULTI},
	{AF_INET6, BFD_PORT},
	{AF_INET6, BFD_PORT_MULTI},
};

/* --- the receiving sockets ------------------------------------------------------------ */

static void
kernel_on_packet(struct ev_loop *loop, ev_io *io, int revents)
{
	struct bfd *b = io->data;

	/* The end of the round reads the packets. */
	b->kernel_ready = true;
}

/* Open the receiving sockets, if they are not open yet. */
static void
receive_begin(struct bfd *b)
{
	static const struct ipaddr any;

	for (unsigned int kind = 0; kind < BFD_KERNEL_SOCKETS; kind++) {
		sa_family_t family = rx_kinds[kind].family;
		struct sockaddr_storage at;
		socklen_t len;
		int fd, rc = 0;

		if (b->kernel_rx[kind] >= 0)
			continue;
		fd = netif_socket(b, family);
		len = netif_address(family, &any, rx_kinds[kind].port, 0, &at);
		if (fd >= 0 && bind(fd, (struct sockaddr *)&at, len) < 0) {
			rc = -errno;
			close(fd);
		}
		if (fd < 0 || rc < 0) {
			static struct log_limit limit;
			unsigned int missed;

			if (log_allowed(&limit, &missed))
				log_error("bfd: socket not opened port=%u error=\"%s\" "
					  "missed=%u",
					  rx_kinds[kind].port, strerror(fd < 0 ? -fd : -rc),
					  missed);
			continue;
		}
		b->kernel_rx[kind] = fd;
		ev_io_init(&b->kernel_io[kind], kernel_on_packet, fd, EV_READ);
		b->kernel_io[kind].data = b;
		ev_io_start(b->w->loop, &b->kernel_io[kind]);
	}
}

static void
receive_end(struct bfd *b)
{
	for (unsigned int kind = 0; kind < BFD_KERNEL_SOCKETS; kind++) {
		if (b->kernel_rx[kind] < 0)
			continue;
		ev_io_stop(b->w->loop, &b->kernel_io[kind]);
		close(b->kernel_rx[kind]);
		b->kernel_rx[kind] = -1;
	}
}

/* Read the control messages of a packet. Returns false if one is missing. */
static bool
control_read(struct msghdr *h, struct received *r)
{
	struct in6_pktinfo six;
	struct in_pktinfo four;
	bool has_local = false, has_ttl = false;
	int ttl;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&four, CMSG_DATA(c), sizeof(four));
			r->ifindex = (uint32_t)four.ipi_ifindex;
			memcpy(r->local.octet, &four.ipi_addr, 4);
			has_local = true;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&six, CMSG_DATA(c), sizeof(six));
			r->ifindex = six.ipi6_ifindex;
			memcpy(r->local.octet, &six.ipi6_addr, 16);
			has_local = true;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 &&
			    c->cmsg_type == IPV6_HOPLIMIT)) {
			memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
			r->ttl = (uint8_t)ttl;
			has_ttl = true;
		}
	}
	return has_local && has_ttl;
}

int
kernel_read(struct bfd *b, unsigned int kind, uint8_t octets[BFD_KERNEL_OCTETS],
	    struct received *r)
{
	struct sockaddr_storage from;
	union control control;
	struct iovec io = {octets, BFD_KERNEL_OCTETS};
	struct msghdr h = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.octets,
		.msg_controllen = sizeof(control.octets),
	};
	ssize_t n =
		b->kernel_rx[kind] < 0 ? -1 : recvmsg(b->kernel_rx[kind], &h, MSG_DONTWAIT);

	if (n < 0)
		return 0;
	*r = (struct received){
		.multihop = rx_kinds[kind].port == BFD_PORT_MULTI,
		.family = rx_kinds[kind].family == AF_INET ? 4 : 6,
		.octets = octets,
		.n = (unsigned int)n,
	};
	if (r->family == 4)
		memcpy(r->remote.octet, &((struct sockaddr_in *)&from)->sin_addr, 4);
	else
		memcpy(r->remote.octet, &((struct sockaddr_in6 *)&from)->sin6_addr, 16);
	return control_read(&h, r) ? 1 : -EBADMSG;
}

/* --- sending -------------------------------------------------------------------------- */

/* Open the socket of a session at its source port, or at another free port. */
static void
session_open(struct bfd *b, struct session *s)
{
	static const struct ipaddr any;
	sa_family_t family = s->k->told.family == 4 ? AF_INET : AF_INET6;
	int fd = netif_socket(b, family);

	for (unsigned int i = 0; fd >= 0 && i < PORT_TRIES; i++) {
		struct sockaddr_storage at;
		socklen_t len = netif_address(family, &any, s->k->src_port, 0, &at);

		if (bind(fd, (struct sockaddr *)&at, len) == 0) {
			s->kernel_tx = fd;
			return;
		}
		s->k->src_port = src_port_draw(b);
	}
	if (fd >= 0)
		close(fd);
}

/* Write one control message. Returns its length in octets. */
static size_t
control_put(union control *control, int level, int type, const void *data, size_t n)
{
	struct cmsghdr *c = &control->align;

	memset(control, 0, sizeof(*control));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), data, n);
	return CMSG_SPACE(n);
}

/*
 * Write the control messages with source address and interface of a packet. Returns their
 * length in octets.
 */
static size_t
control_write(const struct session *s, union control *control)
{
	struct in6_pktinfo six = {.ipi6_ifindex = s->place.ifindex};
	struct in_pktinfo four = {.ipi_ifindex = (int)s->place.ifindex};

	if (s->k->told.family == 6) {
		memcpy(&six.ipi6_addr, s->place.local.octet, 16);
		return control_put(control, IPPROTO_IPV6, IPV6_PKTINFO, &six, sizeof(six));
	}
	memcpy(&four.ipi_spec_dst, s->place.local.octet, 4);
	return control_put(control, IPPROTO_IP, IP_PKTINFO, &four, sizeof(four));
}

static void
packet_send(struct bfd *b, struct session *s, bool final)
{
	sa_family_t family = s->k->told.family == 4 ? AF_INET : AF_INET6;
	uint16_t port = s->k->fsm.conf.multihop ? BFD_PORT_MULTI : BFD_PORT;
	uint8_t octets[BFD_PACKET_BYTES];
	struct iovec io = {octets, sizeof(octets)};
	struct sockaddr_storage to;
	union control control;
	struct msghdr h = {
		.msg_name = &to,
		.msg_namelen =
			netif_address(family, &s->k->told.dst, port, s->place.ifindex, &to),
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.octets,
		.msg_controllen = control_write(s, &control),
	};
	static struct log_limit limit;
	unsigned int missed;

	bfd_fsm_packet(&s->k->fsm, final, octets);
	/*
	 * Announce that echo packets of IPv6 do not come back: bfdd of the peer would send
	 * them to our address, where no program returns them. The kernel itself forwards
	 * those of IPv4.
	 */
	if (family == AF_INET6)
		memset(octets + BFD_MIN_ECHO_RX, 0, 4);
	if (s->kernel_tx < 0)
		session_open(b, s);
	if (s->kernel_tx >= 0 && sendmsg(s->kernel_tx, &h, MSG_DONTWAIT) >= 0)
		s->k->n_tx++;
	else if (log_allowed(&limit, &missed))
		log_info("bfd: packet not sent by=kernel error=\"%s\" missed=%u",
			 strerror(errno), missed);
}

/* Return the time of the next packet; DUE_NEVER: no packet is sent. */
static uint64_t
next_send(struct bfd *b, const struct session *s)
{
	uint32_t tx_us = session_tx_us(s);

	return tx_us == 0 ? DUE_NEVER
			  : monotonic_ns() + 1000ull * bfd_jitter_us(tx_us,
								     s->k->fsm.conf.mult,
								     random_draw(b));
}

void
kernel_send(struct bfd *b, struct session *s)
{
	packet_send(b, s, false);
	timer_set(b, s, TIMER_SEND, next_send(b, s));
}

void
kernel_publish(struct bfd *b, struct session *s, bool now, bool final)
{
	uint64_t next = next_send(b, s), was = timer_when(b, s, TIMER_SEND);

	if (plan_is_connected(&b->plan))
		receive_begin(b);
	if (final)
		packet_send(b, s, true);
	if (now)
		kernel_send(b, s);
	else
		timer_set(b, s, TIMER_SEND, next == DUE_NEVER || next < was ? next : was);
}

void
kernel_end(struct bfd *b, struct session *s)
{
	timer_set(b, s, TIMER_SEND, DUE_NEVER);
	if (s->kernel_tx >= 0)
		close(s->kernel_tx);
	s->kernel_tx = -1;
}

void
kernel_begin(struct bfd *b)
{
	for (unsigned int kind = 0; kind < BFD_KERNEL_SOCKETS; kind++)
		b->kernel_rx[kind] = -1;
}

/*
 * Return true if packets of the session may arrive at an interface that is not a port.
 * Those of a session over several hops may, even if forwarders send its packets: the peer
 * chooses their way.
 */
static bool
session_needs_sockets(const struct session *s)
{
	return s->k != NULL && (s->place.by == BY_KERNEL ||
				(s->place.by == BY_FORWARDERS && s->place.ifidx == 0));
}

void
kernel_tick(struct bfd *b)
{
	bool needed = false;

	for (uint32_t i = 1; i < b->high; i++)
		needed = needed || session_needs_sockets(&b->session[i]);
	if (!needed || !plan_is_connected(&b->plan))
		receive_end(b);
	else
		receive_begin(b);
}

void
kernel_close(struct bfd *b)
{
	receive_end(b);
	for (uint32_t i = 1; i < b->high; i++)
		if (b->session[i].k != NULL && b->session[i].kernel_tx >= 0)
			close(b->session[i].kernel_tx);
}
