/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read a table of the kernel by rtnetlink(7).
 *
 * Linux ends a dump at an object that does not fit in its next message, and reports
 * success. It makes a message as large as the largest buffer of an earlier recv() with a
 * result, up to 32 KiB; at first 4 KiB (netlink_dump(), netlink_recvmsg()). So this file
 * receives one short answer into its buffer before it requests a dump. A route of 252 next
 * hops has up to 7 KiB. An interface may have more than 32 KiB: its alternative names, or
 * the source MACs of a macvlan. If the request has a mask of extensions, Linux makes its
 * messages large enough for the largest interface (rtnl_calcit()).
 */
#include "ctl/kernel_dump.h"

#include <endian.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/haste.h"

#define BUFFER_BYTES (192u << 10) /* an interface may have two lists of 64 KiB */
#define PATIENCE_MS  120000
#define TRIES_MAX    8 /* attempts at a dump that changes interrupt */

/* Return the result of NLMSG_DONE or NLMSG_ERROR: 0 or -errno. */
static int
end_result(const struct nlmsghdr *h)
{
	int error = 0;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(error)))
		return h->nlmsg_type == NLMSG_DONE ? 0 : -EBADMSG;
	memcpy(&error, NLMSG_DATA(h), sizeof(error));
	return error > 0 ? -EBADMSG : error;
}

/*
 * Take the messages of a datagram. Returns 1 after the end of the answer, 0 if more
 * follows, or -errno.
 */
static int
datagram_take(const char *buffer, size_t len, uint32_t seq, bool *interrupted,
	      const struct dump_reader *to)
{
	while (len > 0) {
		const struct nlmsghdr *h = (const struct nlmsghdr *)(uintptr_t)buffer;
		size_t step;
		int rc;

		if (len < sizeof(*h) || h->nlmsg_len < sizeof(*h) || h->nlmsg_len > len)
			return -EBADMSG;
		step = NLMSG_ALIGN((size_t)h->nlmsg_len);
		buffer += step;
		len -= step < len ? step : len;
		if (h->nlmsg_seq != seq)
			continue; /* the message answers a request that was given up */
		*interrupted |= (h->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (h->nlmsg_type == NLMSG_OVERRUN)
			return -ENOBUFS;
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
			rc = end_result(h);
			return rc < 0 ? rc : 1;
		}
		if (h->nlmsg_type < NLMSG_MIN_TYPE || to->on_message == NULL)
			continue;
		rc = to->on_message(h, to->ctx);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int
kernel_dump_read(int fd, uint32_t seq, const struct dump_reader *to)
{
	char *buffer = malloc(BUFFER_BYTES);
	bool interrupted = false;
	int rc = 0;

	if (buffer == NULL)
		return -ENOMEM;
	if (to->on_begin != NULL)
		to->on_begin(to->ctx);
	while (rc == 0) {
		ssize_t n = recv(fd, buffer, BUFFER_BYTES, MSG_TRUNC);

		if (n > (ssize_t)BUFFER_BYTES)
			rc = -EMSGSIZE;
		else if (n > 0)
			rc = datagram_take(buffer, (size_t)n, seq, &interrupted, to);
		else if (n == 0)
			rc = -ENODATA;
		else if (errno != EINTR)
			rc = errno == EAGAIN ? -ETIMEDOUT : -errno;
	}
	free(buffer);
	return rc == 1 && interrupted ? -EINTR : rc == 1 ? 0 : rc;
}

/* Send a request with a header. Returns 0 or -errno. */
static int
request_send(int fd, uint16_t type, uint16_t flags, uint32_t seq, const void *header,
	     unsigned int header_bytes)
{
	struct {
		struct nlmsghdr h;
		uint8_t header[32];
	} request = {.h = {.nlmsg_len = NLMSG_LENGTH(header_bytes),
			   .nlmsg_type = type,
			   .nlmsg_flags = NLM_F_REQUEST | flags,
			   .nlmsg_seq = seq}};

	if (header_bytes > 0)
		memcpy(request.header, header, header_bytes);
	return send(fd, &request, request.h.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Open a socket whose answers come in messages of full size. Returns it, or -errno. */
static int
socket_open(uint32_t seq)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), on = 1, rc;
	unsigned int ms = haste_ms(PATIENCE_MS);
	struct timeval patience = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/*
	 * Without this option Linux also shows its exceptions to routes. Linux before 4.20
	 * lacks the option.
	 */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	rc = request_send(fd, NLMSG_NOOP, NLM_F_ACK, seq, NULL, 0);
	if (rc == 0)
		rc = kernel_dump_read(fd, seq, &(struct dump_reader){0});
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Request a dump until no change interrupts it. Returns as kernel_dump(). */
static int
header_dump(uint16_t type, const void *header, unsigned int header_bytes,
	    const struct dump_reader *to)
{
	uint32_t seq = 1;
	int fd = socket_open(seq), rc = -EINTR;

	if (fd < 0)
		return fd;
	for (int i = 0; i < TRIES_MAX && rc == -EINTR; i++) {
		rc = request_send(fd, type, NLM_F_DUMP, ++seq, header, header_bytes);
		if (rc == 0)
			rc = kernel_dump_read(fd, seq, to);
	}
	close(fd);
	return rc;
}

int
kernel_dump(uint16_t type, uint8_t af, unsigned int header_bytes,
	    const struct dump_reader *to)
{
	const uint8_t header[32] = {af};

	return header_dump(type, header, header_bytes, to);
}

int
kernel_dump_links(const struct dump_reader *to)
{
	const struct {
		struct ifinfomsg info;
		struct nlattr attr;
		uint32_t mask;
	} header = {.attr = {.nla_len = NLA_HDRLEN + sizeof(header.mask),
			     .nla_type = IFLA_EXT_MASK},
		    /* This extension has no effect on the list of interfaces. */
		    .mask = RTEXT_FILTER_BRVLAN_COMPRESSED};

	return header_dump(RTM_GETLINK, &header, sizeof(header), to);
}

int
kernel_dump_table(uint8_t af, uint8_t table, const struct dump_reader *to)
{
	const struct rtmsg header = {.rtm_family = af, .rtm_table = table};

	return header_dump(RTM_GETROUTE, &header, sizeof(header), to);
}

int
kernel_lookup4(uint32_t addr, const struct dump_reader *to)
{
	const struct {
		struct rtmsg rtm;
		struct nlattr attr;
		uint32_t dst; /* network order */
	} request = {.rtm = {.rtm_family = AF_INET,
			     .rtm_dst_len = 32,
			     .rtm_flags = RTM_F_LOOKUP_TABLE},
		     .attr = {.nla_len = NLA_HDRLEN + sizeof(addr), .nla_type = RTA_DST},
		     .dst = htobe32(addr)};
	uint32_t seq = 1;
	int fd = socket_open(seq), rc;

	if (fd < 0)
		return fd;
	/* NLM_F_ACK: the answer ends with a result, as a dump does. */
	rc = request_send(fd, RTM_GETROUTE, NLM_F_ACK, ++seq, &request, sizeof(request));
	if (rc == 0)
		rc = kernel_dump_read(fd, seq, to);
	close(fd);
	return rc;
}
