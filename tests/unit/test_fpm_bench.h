/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread between clients on loopback and a rib that records its messages. Include
 * this after cmocka.h.
 */
#ifndef TEST_FPM_BENCH_H
#define TEST_FPM_BENCH_H

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "fpm/impl.h"
#include "patience.h"
#include "test_fpm_events.h"

/* Id of a route that is neither the first nor the last of its frame. */
#define NHID_MIDDLE 999999u

/* A rib that records its messages. It does not handle them while it is `stuck`. */
struct rib {
	struct worker w;
	pthread_mutex_t lock;
	struct text text; /* all events as text */
	unsigned int n_events, n_batches, torn;
	bool stuck;
	uint64_t owed_bytes;
};

struct bench {
	struct worker w;
	struct rib rib;
	int listen_af;
	/* The port of the thread. The thread writes it when it starts to listen. */
	uint16_t port;
};

static inline void
rib_on_msg(struct worker *w, struct msg *m)
{
	struct rib *rib = w->ctx;
	struct msg_fpm_batch *b = (struct msg_fpm_batch *)m;
	const struct fpm_event *last;

	/* Not assert_*(): they leave by longjmp, and this is not the test's thread. */
	if (m->type == MSG_HELD) { /* the test waits for no reply */
		msg_free(m);
		return;
	}
	if (m->type != MSG_FPM_BATCH || b->n == 0 || b->n > FPM_BATCH_MAX)
		abort();
	pthread_mutex_lock(&rib->lock);
	rib->n_batches++;
	rib->n_events += b->n;
	/* A route deletion and NHID_MIDDLE are never the last of a frame. */
	last = &b->ev[b->n - 1];
	rib->torn += last->kind == FPM_ROUTE_DEL || last->nhid == NHID_MIDDLE;
	for (unsigned int i = 0; i < b->n; i++)
		text_event(&rib->text, &b->ev[i]);
	rib->owed_bytes += b->bytes;
	if (!rib->stuck) {
		atomic_fetch_add(&fpm_status.queue_bytes_out, rib->owed_bytes);
		rib->owed_bytes = 0;
	}
	pthread_mutex_unlock(&rib->lock);
	msg_free(m);
}

static inline void
rib_set_stuck(struct rib *rib, bool stuck)
{
	pthread_mutex_lock(&rib->lock);
	rib->stuck = stuck;
	if (!stuck) {
		atomic_fetch_add(&fpm_status.queue_bytes_out, rib->owed_bytes);
		rib->owed_bytes = 0;
	}
	pthread_mutex_unlock(&rib->lock);
}

/* Evaluate `expression` until it is true; fail when patience is over. */
#define eventually(expression)                                     \
	do {                                                       \
		uint64_t until_ms = monotonic_ms() + PATIENCE_MS;  \
		while (!(expression) && monotonic_ms() < until_ms) \
			poll(NULL, 0, 1);                          \
		assert_true(expression);                           \
	} while (0)

static inline bool
rib_text_is(struct rib *rib, const char *expected)
{
	bool same;

	pthread_mutex_lock(&rib->lock);
	same = rib->text.len == strlen(expected) &&
	       memcmp(rib->text.s != NULL ? rib->text.s : "", expected, rib->text.len) == 0;
	pthread_mutex_unlock(&rib->lock);
	return same;
}

static inline bool
rib_text_has(struct rib *rib, const char *words)
{
	bool has;

	pthread_mutex_lock(&rib->lock);
	has = rib->text.s != NULL && strstr(rib->text.s, words) != NULL;
	pthread_mutex_unlock(&rib->lock);
	return has;
}

/* Assert that rib gets exactly these messages, now or soon. Then clear them. */
static inline void
rib_hears(struct rib *rib, const char *expected)
{
	uint64_t end_ms = monotonic_ms() + PATIENCE_MS;

	while (!rib_text_is(rib, expected) && monotonic_ms() < end_ms)
		poll(NULL, 0, 1);
	pthread_mutex_lock(&rib->lock);
	assert_string_equal(rib->text.s != NULL ? rib->text.s : "", expected);
	rib->text.len = 0;
	pthread_mutex_unlock(&rib->lock);
}

static inline unsigned int
rib_events(struct rib *rib)
{
	unsigned int n;

	pthread_mutex_lock(&rib->lock);
	n = rib->n_events;
	pthread_mutex_unlock(&rib->lock);
	return n;
}

static inline struct sockaddr_storage
loopback(int af, uint16_t port)
{
	struct sockaddr_storage a = {.ss_family = (sa_family_t)af};
	struct sockaddr_in *a4 = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&a;

	if (af == AF_INET) {
		a4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a4->sin_port = htons(port);
	} else {
		a6->sin6_addr = in6addr_loopback;
		a6->sin6_port = htons(port);
	}
	return a;
}

static inline struct bench *
bench_start(int af, uint64_t limit)
{
	static const struct worker_ops rib_ops = {
		.name = "rib", .role = ROLE_RIB, .on_msg = rib_on_msg};
	struct bench *b = calloc(1, sizeof(*b));
	struct fpm_conf conf = {.listen = loopback(af, 0), .queue_limit_bytes = limit};

	assert_non_null(b);
	memset(&fpm_status, 0, sizeof(fpm_status));
	log_set_level(LOG_LEVEL_ERROR);
	b->listen_af = af;
	worker_init(&b->rib.w, &rib_ops, &b->rib);
	pthread_mutex_init(&b->rib.lock, NULL);
	assert_int_equal(worker_prepare(&b->rib.w), 0);
	assert_int_equal(worker_start(&b->rib.w), 0);
	conf.rib = &b->rib.w;
	assert_int_equal(fpm_setup(&b->w, &conf), 0);
	assert_int_equal(worker_prepare(&b->w), 0);
	return b;
}

/* Start the thread. It listens when this returns. Return 0 or -errno. */
static inline int
bench_run(struct bench *b)
{
	int rc = worker_start(&b->w);

	b->port = ((struct fpm *)b->w.ctx)->port;
	return rc;
}

static inline struct bench *
bench_new(uint64_t limit)
{
	struct bench *b = bench_start(AF_INET, limit);

	assert_int_equal(bench_run(b), 0);
	return b;
}

static inline void
bench_free(struct bench *b)
{
	worker_stop(&b->w);
	worker_free(&b->w);
	fpm_teardown(&b->w);
	worker_stop(&b->rib.w);
	worker_free(&b->rib.w);
	free(b->rib.text.s);
	free(b);
}

/* Connect a client. Return its socket or -errno. */
static inline int
client_try(struct bench *b)
{
	struct sockaddr_storage a = loopback(b->listen_af, b->port);
	int fd = socket(b->listen_af, SOCK_STREAM, 0), rc;

	assert_true(fd >= 0);
	rc = connect(fd, (struct sockaddr *)&a,
		     b->listen_af == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6));
	if (rc == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static inline int
client(struct bench *b)
{
	int fd = client_try(b);

	assert_true(fd >= 0);
	return fd;
}

/* Assert that clients are refused during three checks of the queue. */
static inline void
clients_are_refused(struct bench *b)
{
	uint64_t end_ms = monotonic_ms() + 300;

	while (monotonic_ms() < end_ms) {
		assert_int_equal(client_try(b), -ECONNREFUSED);
		assert_int_equal(fpm_status.refusing, 1);
		poll(NULL, 0, 10);
	}
}

static inline int
client_when_welcome(struct bench *b)
{
	int fd = -1;

	eventually(fd >= 0 || (fd = client_try(b)) >= 0);
	return fd;
}

/* Send all. is_hung_up() detects that the peer has closed the connection. */
static inline void
client_send(int fd, const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0)
			return;
		at += n;
		len -= (size_t)n;
	}
}

static inline void
is_hung_up(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_true(recv(fd, &c, 1, 0) <= 0);
	close(fd);
}

static inline void
send_route(int fd, const char *prefix, uint32_t nhid)
{
	struct wire *w = one_frame();

	put_route(w, prefix, nhid);
	frame_end(w);
	client_send(fd, w->octet, w->len);
	free(w);
}

#endif
