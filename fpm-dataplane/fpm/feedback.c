/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements to zebra: one RTM_NEWROUTE per frame, with RTM_F_OFFLOAD or
 * RTM_F_OFFLOAD_FAILED. fpm's thread only. FRR 8.5 to 10.2, and 10.4 and later, read them
 * when zebra runs with --asic-offload=notify_on_offload; FRR 8.4 ignores them (doc/fpm.md,
 * 8).
 *
 * This file never waits: octets that the socket does not take are kept and sent later.
 * zebra reads slowly while it sends a full table, so the limit of the kept octets is as
 * high as that of the queue (queue.c). Above the limit the session ends, and the next
 * session acknowledges the replay.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fpm/impl.h"

#ifndef RTM_F_OFFLOAD_FAILED
#define RTM_F_OFFLOAD_FAILED 0x20000000
#endif

#define SEND_BYTES (256u << 10) /* per call; then other sockets are served */
#define KEEP_BYTES (1u << 20)   /* a larger buffer is freed when it is empty */

/* Table of a route, when it does not fit into rtmsg. */
struct table {
	struct rtattr attr;
	uint32_t table;
};

/* One acknowledgement on the wire, in host order except frame length and address. */
struct ack {
	uint8_t version, type;
	uint16_t len;
	struct nlmsghdr nl;
	struct rtmsg rtm;
	struct rtattr dst;
	uint8_t addr[16 + sizeof(struct table)]; /* RTA_TABLE may follow the address */
};

static size_t
ack_make(struct ack *a, const struct fpm_feedback *f)
{
	unsigned int octets = family_octets(f->prefix.family);
	size_t nl = sizeof(a->nl) + sizeof(a->rtm) + sizeof(a->dst) + octets;
	struct table table = {.attr = {.rta_len = sizeof(table), .rta_type = RTA_TABLE},
			      .table = f->table};
	bool small = f->table < 256;
	size_t len;

	nl += small ? 0 : sizeof(table);
	len = nl + offsetof(struct ack, nl);
	*a = (struct ack){
		.version = 1,
		.type = 1,
		.len = htons((uint16_t)len),
		.nl = {.nlmsg_len = (uint32_t)nl,
		       .nlmsg_type = RTM_NEWROUTE,
		       .nlmsg_flags = NLM_F_REQUEST},
		.rtm = {.rtm_family = f->prefix.family == 4 ? AF_INET : AF_INET6,
			.rtm_dst_len = f->prefix.len,
			.rtm_table = small ? (uint8_t)f->table : RT_TABLE_UNSPEC,
			.rtm_protocol = f->protocol,
			.rtm_type = f->rtm_type,
			.rtm_flags = f->failed ? RTM_F_OFFLOAD_FAILED : RTM_F_OFFLOAD},
		.dst = {.rta_len = (uint16_t)(sizeof(a->dst) + octets),
			.rta_type = RTA_DST},
	};
	memcpy(a->addr, f->prefix.addr.octet, octets);
	if (!small)
		memcpy(a->addr + octets, &table, sizeof(table));
	return len;
}

void
feedback_free(struct fpm_session *s)
{
	free(s->out);
	s->out = NULL;
	s->out_at = s->out_len = s->out_size = 0;
}

/* Make room for `more` octets. Returns 0 or -ENOMEM. */
static int
feedback_make_room(struct fpm_session *s, size_t more)
{
	size_t size = s->out_size == 0 ? 64u << 10 : s->out_size;
	uint8_t *out;

	if (s->out_at > 0 && s->out_len + more > s->out_size) {
		s->out_len -= s->out_at;
		memmove(s->out, s->out + s->out_at, s->out_len);
		s->out_at = 0;
	}
	while (size < s->out_len + more)
		size *= 2;
	if (size == s->out_size)
		return 0;
	out = realloc(s->out, size);
	if (out == NULL)
		return -ENOMEM;
	s->out = out;
	s->out_size = size;
	return 0;
}

int
feedback_add(struct fpm *fpm, const struct msg_feedback *m)
{
	struct fpm_session *s = &fpm->session;
	uint64_t failed = 0;
	struct ack ack;

	if (feedback_make_room(s, m->n * sizeof(ack)) < 0 ||
	    s->out_len - s->out_at > fpm->conf.queue_limit_bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		size_t len = ack_make(&ack, &m->route[i]);

		memcpy(s->out + s->out_len, &ack, len);
		s->out_len += len;
		failed += m->route[i].failed;
	}
	status_add(&fpm_status.feedback, m->n);
	status_add(&fpm_status.feedback_failed, failed);
	return 0;
}

int
feedback_push(struct fpm_session *s)
{
	size_t round = 0;

	while (s->out_at < s->out_len && round < SEND_BYTES) {
		ssize_t n = send(s->fd, s->out + s->out_at, s->out_len - s->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		s->out_at += (size_t)n;
		round += (size_t)n;
	}
	if (s->out_at < s->out_len)
		return 0;
	s->out_at = s->out_len = 0;
	if (s->out_size > KEEP_BYTES) { /* the buffer grew during a replay */
		free(s->out);
		s->out = NULL;
		s->out_size = 0;
	}
	return 0;
}
