/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements as zebra reads them: one RTM_NEWROUTE per frame, with the table and
 * protocol of the route. A table above 255 does not fit in rtm_table, so it is in the
 * attribute RTA_TABLE.
 * link: fpm-dataplane/fpm/ fpm-dataplane/netlink/ fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "base/inet.h"
#include "test_fpm_bench.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdalign.h>

/* Read a frame from the connection. Return its length without the FPM header. */
static size_t
frame_read(int fd, uint8_t octet[256])
{
	uint16_t be16;
	size_t len;

	assert_int_equal(recv(fd, octet, 4, MSG_WAITALL), 4);
	assert_int_equal(octet[0], 1);
	assert_int_equal(octet[1], 1);
	memcpy(&be16, octet + 2, sizeof(be16));
	len = ntohs(be16) - 4u;
	assert_in_range(len, sizeof(struct nlmsghdr), 256);
	assert_int_equal(recv(fd, octet, len, MSG_WAITALL), (ssize_t)len);
	return len;
}

/* Check a frame as zebra reads it: the table is rtm_table, unless there is RTA_TABLE. */
static void
frame_says(int fd, const struct fpm_feedback *want)
{
	alignas(4) uint8_t octet[256];
	const struct nlmsghdr *nl = (const struct nlmsghdr *)octet;
	const struct rtmsg *rtm = (const struct rtmsg *)(octet + NLMSG_HDRLEN);
	const struct rtattr *attr = RTM_RTA(rtm);
	size_t len = frame_read(fd, octet);
	size_t left = RTM_PAYLOAD(nl);
	uint32_t table = rtm->rtm_table;
	unsigned int n_dst = 0, n_table = 0;

	assert_int_equal(nl->nlmsg_len, len);
	assert_int_equal(nl->nlmsg_type, RTM_NEWROUTE);
	assert_int_equal(nl->nlmsg_flags, NLM_F_REQUEST);
	assert_int_equal(rtm->rtm_family, want->prefix.family == 4 ? AF_INET : AF_INET6);
	assert_int_equal(rtm->rtm_dst_len, want->prefix.len);
	assert_int_equal(rtm->rtm_protocol, want->protocol);
	assert_int_equal(rtm->rtm_type, want->rtm_type);
	assert_int_equal(rtm->rtm_flags, want->failed ? 0x20000000 : 0x4000);
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == RTA_DST) {
			n_dst++;
			assert_int_equal(RTA_PAYLOAD(attr),
					 family_octets(want->prefix.family));
			assert_memory_equal(RTA_DATA(attr), want->prefix.addr.octet,
					    RTA_PAYLOAD(attr));
		} else {
			n_table++;
			assert_int_equal(attr->rta_type, RTA_TABLE);
			assert_int_equal(RTA_PAYLOAD(attr), sizeof(table));
			assert_int_equal(rtm->rtm_table, RT_TABLE_UNSPEC);
			memcpy(&table, RTA_DATA(attr), sizeof(table));
		}
	}
	assert_int_equal(left, 0);
	assert_int_equal(n_dst, 1);
	assert_int_equal(n_table, want->table > 255);
	assert_int_equal(table, want->table);
}

static void
each_table_is_where_zebra_reads_it(void **state)
{
	static const uint32_t table[] = {254, 1, 100, 255, 256, 2000, 70000, 0xfffffffe};
	static const char *const text[] = {"198.51.100.0/24", "2001:db8:7::/48",
					   "0.0.0.0/0"};
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);
	struct msg_feedback *m = msg_new(MSG_FEEDBACK, sizeof(*m));
	struct fpm_feedback sent[24];

	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	m->gen = 1;
	for (unsigned int i = 0; i < 24; i++) {
		struct fpm_feedback *f = &m->route[m->n++];

		assert_int_equal(prefix_parse(text[i % 3], &f->prefix, NULL), 0);
		f->table = table[i / 3];
		f->protocol = (uint8_t)(186 + i % 2);
		f->rtm_type = i % 5 == 0 ? RTN_BLACKHOLE : RTN_UNICAST;
		f->failed = i % 4 == 3;
		sent[i] = *f;
	}
	worker_send(&b->w, &m->m);
	for (unsigned int i = 0; i < 24; i++)
		frame_says(fd, &sent[i]);
	assert_int_equal(status_get(&fpm_status.feedback), 24);
	assert_int_equal(status_get(&fpm_status.feedback_failed), 6);
	close(fd);
	rib_hears(&b->rib, "down gen1 pid4242;");
	bench_free(b);
}

static void
a_closed_session_gets_no_acknowledgement(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);
	struct fpm_feedback f = {.table = 2000, .protocol = 186, .rtm_type = RTN_UNICAST};

	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	assert_int_equal(prefix_parse("198.51.100.0/24", &f.prefix, NULL), 0);
	for (uint32_t gen = 0; gen <= 1; gen++) { /* 1: the present session */
		struct msg_feedback *m = msg_new(MSG_FEEDBACK, sizeof(*m));

		m->gen = gen;
		m->n = 1;
		m->route[0] = f;
		f.table++;
		worker_send(&b->w, &m->m);
	}
	f.table = 2001;
	frame_says(fd, &f);
	close(fd);
	bench_free(b);
}

/*
 * The acknowledgements of a replay wait until zebra reads them. Then a large buffer is
 * freed.
 */
static void
the_buffer_of_many_acknowledgements_is_freed(void **state)
{
	enum { N = 100 };
	struct fpm *fpm = calloc(1, sizeof(*fpm));
	struct msg_feedback *m =
		msg_new(MSG_FEEDBACK, sizeof(*m) + N * sizeof(m->route[0]));
	struct fpm_session *s = &fpm->session;
	int pair[2];
	char sink[65536];

	fpm->conf.queue_limit_bytes = 64 << 20;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	s->fd = pair[0];
	m->n = N;
	for (unsigned int i = 0; i < N; i++)
		m->route[i] = (struct fpm_feedback){
			.table = 254, .protocol = 186, .prefix = {.family = 4, .len = 24}};
	for (unsigned int many = 0; many < 2; many++) {
		for (unsigned int i = 0; i < (many ? 400 : 1); i++)
			assert_int_equal(feedback_add(fpm, m), 0);
		if (many)
			assert_true(s->out_size > 1 << 20);
		do {
			assert_int_equal(feedback_push(s), 0);
			while (recv(pair[1], sink, sizeof(sink), MSG_DONTWAIT) > 0)
				;
		} while (s->out_len > 0);
		assert_int_equal(s->out_size == 0, many);
	}
	close(pair[0]);
	close(pair[1]);
	msg_free(&m->m);
	free(fpm);
}

/* Acknowledgements that zebra has read make room. The rest keeps its order. */
static void
acknowledgements_keep_their_order_when_zebra_reads_slowly(void **state)
{
	enum { N = 50, ROUNDS = 60 };
	struct fpm *fpm = calloc(1, sizeof(*fpm));
	struct msg_feedback *m =
		msg_new(MSG_FEEDBACK, sizeof(*m) + N * sizeof(m->route[0]));
	struct fpm_session *s = &fpm->session;
	unsigned int n_sent = 0, n_read = 0, moved = 0;
	int pair[2], few = 1;

	fpm->conf.queue_limit_bytes = 64 << 20;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	s->fd = pair[0];
	m->n = N;
	for (unsigned int round = 0; round < ROUNDS || s->out_len > 0; round++) {
		size_t at = s->out_at;

		for (unsigned int i = 0; i < N && round < ROUNDS; i++) {
			m->route[i] =
				(struct fpm_feedback){.table = 254,
						      .protocol = 186,
						      .rtm_type = RTN_UNICAST,
						      .prefix = {.family = 4, .len = 32}};
			put_be32(m->route[i].prefix.addr.octet, n_sent++);
		}
		if (round < ROUNDS)
			assert_int_equal(feedback_add(fpm, m), 0);
		moved += at > 0 && s->out_at == 0;
		assert_true(s->out_len <= s->out_size);
		assert_int_equal(feedback_push(s), 0);
		for (unsigned int i = 0; i < (round < ROUNDS ? N - 10 : N); i++) {
			struct fpm_feedback f = m->route[0];

			if (n_read == n_sent)
				break;
			put_be32(f.prefix.addr.octet, n_read++);
			frame_says(pair[1], &f);
			assert_int_equal(feedback_push(s), 0);
		}
	}
	assert_int_equal(n_sent, N * ROUNDS);
	assert_in_range(n_read, 1, n_sent);
	while (n_read < n_sent) {
		struct fpm_feedback f = m->route[0];

		put_be32(f.prefix.addr.octet, n_read++);
		frame_says(pair[1], &f);
	}
	assert_true(moved > 0); /* the room was used again */
	assert_int_equal(recv(pair[1], &few, 1, MSG_DONTWAIT), -1);
	close(pair[0]);
	close(pair[1]);
	feedback_free(s);
	msg_free(&m->m);
	free(fpm);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_table_is_where_zebra_reads_it),
		cmocka_unit_test(a_closed_session_gets_no_acknowledgement),
		cmocka_unit_test(the_buffer_of_many_acknowledgements_is_freed),
		cmocka_unit_test(acknowledgements_keep_their_order_when_zebra_reads_slowly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
