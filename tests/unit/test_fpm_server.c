/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread over a real socket on loopback, with a rib that records its messages.
 * link: fpm-dataplane/fpm/ fpm-dataplane/netlink/ fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "test_fpm_bench.h"

/* Connect the first client and send a route. Return its socket when rib has the route. */
static int
client_taught(struct bench *b)
{
	int fd = client(b);

	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	return fd;
}

static void
session_is_announced_with_generation_and_port_id(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client_taught(b);

	assert_int_equal(fpm_status.connected, 1);
	assert_int_equal(fpm_status.nl_pid, ZEBRA_PID);
	close(fd);
	rib_hears(&b->rib, "down gen1 pid4242;");
	assert_int_equal(fpm_status.connected, 0);

	fd = client(b);
	send_route(fd, "192.0.2.0/24", 2);
	rib_hears(&b->rib, "up gen2 pid4242;route 192.0.2.0/24 t254 nh2;");
	close(fd);
	bench_free(b);
}

static void
silent_session_is_announced_when_it_ends(void **state)
{
	struct bench *b = bench_new(1 << 20);
	uint64_t begin_ms = monotonic_ms();
	int fd = client(b);

	eventually(fpm_status.accepts == 1);
	/* fpm announces a silent session after a second. */
	assert_true(rib_text_is(&b->rib, "") || monotonic_ms() - begin_ms >= 1000);
	close(fd);
	rib_hears(&b->rib, "up gen1 pid0;down gen1 pid0;");
	bench_free(b);
}

static void
new_client_replaces_the_old_one(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int old = client_taught(b), new;

	new = client(b);
	send_route(new, "192.0.2.0/24", 2);
	rib_hears(&b->rib, "down gen1 pid4242;"
			   "up gen2 pid4242;route 192.0.2.0/24 t254 nh2;");
	is_hung_up(old);
	assert_int_equal(fpm_status.replaced, 1);
	close(new);
	rib_hears(&b->rib, "down gen2 pid4242;");
	bench_free(b);
}

/* Send the message of `fpmctl hold SECONDS`. */
static void
hold(struct bench *b, unsigned int seconds)
{
	struct msg_hold *m = msg_new(MSG_QUERY, sizeof(*m));

	m->seconds = seconds;
	m->q.kind = QUERY_HOLD;
	worker_send(&b->w, &m->q.m);
}

/* Send a frame with one route, or one next hop, from the zebra of port id `pid`. */
static void
send_from(int fd, bool hop, uint32_t pid)
{
	struct wire *w = one_frame();

	if (hop)
		put_nexthop(w, 1, "192.0.2.1", 2);
	else
		put_route(w, "198.51.100.0/24", 1);
	((struct nlmsghdr *)(w->octet + w->msg))->nlmsg_pid = pid;
	frame_end(w);
	client_send(fd, w->octet, w->len);
	free(w);
}

static void
zebra_that_is_held_off_is_not_heard_another_one_is(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client_taught(b);

	hold(b, 600);
	rib_hears(&b->rib, "down gen1 pid4242;zebra pid4242 held;");
	is_hung_up(fd);
	eventually(fpm_status.held == 1);
	hold(b, 500); /* a second hold of the same zebra */
	rib_hears(&b->rib, "zebra pid4242 held;");
	/* The third client does not send its port id. */
	for (int i = 0; i < 3; i++) {
		fd = client(b);
		if (i < 2)
			send_from(fd, i == 1, ZEBRA_PID);
		is_hung_up(fd);
	}
	assert_true(rib_text_is(&b->rib, ""));
	assert_int_equal(fpm_status.held, 1);

	fd = client(b);
	send_from(fd, false, ZEBRA_PID + 1);
	rib_hears(&b->rib, "zebra pid4242;up gen5 pid4243;route 198.51.100.0/24 t254 nh1;");
	eventually(fpm_status.held == 0);
	close(fd);
	bench_free(b);
}

static void
a_hold_ends_in_time(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client_taught(b);

	hold(b, 3);
	rib_hears(&b->rib, "down gen1 pid4242;zebra pid4242 held;");
	eventually(fpm_status.held == 1);
	close(fd);
	eventually(fpm_status.held == 0);
	hold(b, 600);
	eventually(fpm_status.held == 1);
	hold(b, 0);
	eventually(fpm_status.held == 0);
	rib_hears(&b->rib, "zebra pid4242 held;zebra pid4242;");
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 2);
	rib_hears(&b->rib, "up gen2 pid4242;route 192.0.2.0/24 t254 nh2;");
	close(fd);
	bench_free(b);
}

/* fpm is paused for a successor that does not take over. */
static void
zebra_is_held_off_over_a_rest(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client_taught(b);

	hold(b, 5);
	rib_hears(&b->rib, "down gen1 pid4242;zebra pid4242 held;");
	close(fd);
	worker_stop(&b->w);
	assert_int_equal(worker_start(&b->w), 0);
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 1);
	is_hung_up(fd);
	assert_int_equal(fpm_status.held, 1);
	eventually(fpm_status.held == 0);
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 2);
	rib_hears(&b->rib, "up gen3 pid4242;route 192.0.2.0/24 t254 nh2;");
	close(fd);
	bench_free(b);
}

/*
 * Start fpm with the data of the previous daemon's checkpoint. `until_s`: the end of its
 * hold, in seconds of CLOCK_BOOTTIME; 0: no hold.
 */
static struct bench *
bench_after(uint32_t until_s)
{
	struct bench *b = bench_start(AF_INET, 1 << 20);

	fpm_status.old_nl_pid = ZEBRA_PID;
	fpm_status.old_held_until_s = until_s;
	assert_int_equal(bench_run(b), 0);
	return b;
}

static void
zebra_is_held_off_over_the_daemons_end(void **state)
{
	struct bench *b = bench_after((uint32_t)(boottime_ms() / 1000) + 5);
	int fd = client(b);

	send_route(fd, "192.0.2.0/24", 1);
	is_hung_up(fd);
	assert_true(rib_text_is(&b->rib, ""));
	eventually(fpm_status.held == 0);
	bench_free(b);
}

/* A hold is ignored if its end is past, or later than a client can request. */
static void
a_hold_that_is_over_or_cannot_be_is_none(void **state)
{
	uint32_t now_s = (uint32_t)(boottime_ms() / 1000);
	const uint32_t until_s[] = {now_s, now_s + FPM_HOLD_MAX_S + 5, UINT32_MAX};

	for (unsigned int i = 0; i < 3; i++) {
		struct bench *b = bench_after(until_s[i]);

		assert_int_equal(fpm_status.held, 0);
		bench_free(b);
	}
}

/* zebra tries to connect every 3 s. The operator may stop it before it has connected. */
static void
a_hold_without_a_session_holds_the_zebra_of_the_last_daemon(void **state)
{
	struct bench *b = bench_after(0);
	int fd;

	assert_int_equal(fpm_status.nl_pid, ZEBRA_PID);
	hold(b, 600);
	rib_hears(&b->rib, "zebra pid4242 held;");
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 1);
	is_hung_up(fd);
	assert_true(rib_text_is(&b->rib, ""));
	bench_free(b);
}

static void
a_zebra_that_speaks_late_is_known_from_then_on(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);

	rib_hears(&b->rib, "up gen1 pid0;");
	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "zebra pid4242;route 192.0.2.0/24 t254 nh1;");
	close(fd);
	rib_hears(&b->rib, "down gen1 pid4242;");
	bench_free(b);
}

static void
there_is_nothing_to_hold_before_zebra_was_heard(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd;

	hold(b, 600);
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	assert_int_equal(fpm_status.held, 0);
	close(fd);
	bench_free(b);
}

static void
random_octets_end_the_session_and_earlier_routes_stay(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);

	send_route(fd, "192.0.2.0/24", 1);
	client_send(fd, "GET / HTTP/1.1\r\n", 16);
	rib_hears(&b->rib,
		  "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;down gen1 pid4242;");
	is_hung_up(fd);
	assert_int_equal(fpm_status.bad_frames, 1);

	fd = client(b);
	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen2 pid4242;route 192.0.2.0/24 t254 nh1;");
	close(fd);
	bench_free(b);
}

static void
malformed_message_does_not_end_the_session(void **state)
{
	struct bench *b = bench_new(1 << 20);
	struct wire *w = one_frame();
	int fd = client(b);

	put_route(w, "192.0.2.0/24", 1);
	w->octet[w->msg] = 255;
	frame_end(w);
	client_send(fd, w->octet, w->len);
	send_route(fd, "192.0.2.0/24", 2);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh2;");
	assert_int_equal(fpm_status.malformed, 1);
	free(w);
	close(fd);
	bench_free(b);
}

static void
stream_may_be_cut_anywhere(void **state)
{
	struct bench *b = bench_new(1 << 20);
	struct wire *w = calloc(1, sizeof(*w));
	struct seen whole;
	char expected[2048];

	assert_non_null(w);
	put_samples(w);
	whole = decode_stream(w->octet, w->len);
	for (size_t cut = 1; cut < w->len; cut++) {
		uint64_t before = status_get(&fpm_status.bytes);
		int fd = client(b);

		client_send(fd, w->octet, cut);
		eventually(status_get(&fpm_status.bytes) == before + cut);
		client_send(fd, w->octet + cut, w->len - cut);
		close(fd);
		snprintf(expected, sizeof(expected),
			 "up gen%zu pid4242;%sdown gen%zu pid4242;", cut, whole.text.s,
			 cut);
		rib_hears(&b->rib, expected);
	}
	free(whole.text.s);
	free(w);
	bench_free(b);
}

static void
delete_and_route_of_one_frame_stay_in_one_batch(void **state)
{
	struct bench *b = bench_new(64 << 20);
	struct wire *w = calloc(1, sizeof(*w));
	int fd = client(b);

	assert_non_null(w);
	for (unsigned int i = 0; i < 1000; i++) {
		if (i % 3 == 0) {
			frame_begin(w);
			put_route(w, "203.0.113.0/24", 1);
			frame_end(w);
		}
		frame_begin(w);
		put_route_del(w, "192.0.2.0/24");
		if (i % 2 == 0)
			put_route(w, "203.0.113.0/24", NHID_MIDDLE);
		put_route(w, "192.0.2.0/24", i);
		frame_end(w);
		if (i % 500 == 499) { /* many frames at once fill batches completely */
			client_send(fd, w->octet, w->len);
			w->len = 0;
		}
	}
	eventually(rib_events(&b->rib) == 1 + 2834);
	pthread_mutex_lock(&b->rib.lock);
	assert_true(b->rib.n_batches >= 2834 / FPM_BATCH_MAX);
	pthread_mutex_unlock(&b->rib.lock);

	/* The largest frame: it has ten times as many events as a batch. */
	w->len = 0;
	frame_begin(w);
	put_route(w, "203.0.113.0/24", 1);
	for (unsigned int i = 0; i < 650; i++) {
		put_route_del(w, "192.0.2.0/24");
		put_route(w, "192.0.2.0/24", i);
	}
	frame_end(w);
	assert_in_range(w->len, 62000, 65535);
	client_send(fd, w->octet, w->len);
	eventually(rib_events(&b->rib) == 1 + 2834 + 1301);
	pthread_mutex_lock(&b->rib.lock);
	assert_int_equal(b->rib.torn, 0);
	pthread_mutex_unlock(&b->rib.lock);
	free(w);
	close(fd);
	bench_free(b);
}

static void
account_is_settled_when_rib_has_handled_all(void **state)
{
	struct bench *b = bench_new(64 << 20);
	struct wire *w = calloc(1, sizeof(*w));
	int fd = client(b);

	assert_non_null(w);
	for (unsigned int i = 0; i < 1000; i++) {
		w->len = 0;
		put_samples(w);
		client_send(fd, w->octet, w->len);
	}
	eventually(rib_events(&b->rib) == 1 + 12000);
	eventually(queue_depth() == 0);
	assert_true(fpm_status.queue_bytes_in >= 12000 * sizeof(struct fpm_event));
	assert_true(fpm_status.queue_high_bytes > 0);
	assert_int_equal(fpm_status.frames, 11000);
	assert_int_equal(fpm_status.routes, 5000);
	free(w);
	close(fd);
	bench_free(b);
}

static void
rib_that_is_too_far_behind_ends_the_session_until_it_caught_up(void **state)
{
	const uint64_t limit = 256 << 10;
	struct bench *b = bench_new(limit);
	struct wire *w = calloc(1, sizeof(*w));
	int fd = client(b);

	assert_non_null(w);
	rib_set_stuck(&b->rib, true);
	for (unsigned int i = 0; i < 1000; i++) {
		frame_begin(w);
		put_route(w, "192.0.2.0/24", i);
		frame_end(w);
	}
	for (unsigned int i = 0; i < 20 && fpm_status.overflows == 0; i++)
		client_send(fd, w->octet, w->len);
	is_hung_up(fd);
	eventually(fpm_status.closes == 1);
	assert_int_equal(fpm_status.overflows, 1);
	assert_true(queue_depth() > limit);
	/* The octets in the socket add at most one read beyond the limit. */
	assert_true(queue_depth() < limit + SESSION_READ_BYTES * 2);

	clients_are_refused(b);
	assert_int_equal(fpm_status.accepts, 1);

	rib_set_stuck(&b->rib, false);
	eventually(rib_text_has(&b->rib, "down gen1 pid4242;"));
	pthread_mutex_lock(&b->rib.lock);
	b->rib.text.len = 0;
	pthread_mutex_unlock(&b->rib.lock);
	fd = client_when_welcome(b);
	eventually(fpm_status.refusing == 0); /* is updated right after listen() */
	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen2 pid4242;route 192.0.2.0/24 t254 nh1;");
	assert_int_equal(fpm_status.overflows, 1);
	free(w);
	close(fd);
	bench_free(b);
}

static void
no_client_is_accepted_while_the_queue_is_above_half_its_limit(void **state)
{
	struct bench *b = bench_new(1 << 20);
	struct wire *w = calloc(1, sizeof(*w));
	int fd = client(b);

	assert_non_null(w);
	rib_set_stuck(&b->rib, true);
	for (unsigned int i = 0; i < 1500; i++) {
		frame_begin(w);
		put_route(w, "192.0.2.0/24", i);
		frame_end(w);
	}
	for (unsigned int i = 0; i < 10; i++)
		client_send(fd, w->octet, w->len);
	close(fd);
	eventually(fpm_status.closes == 1);
	assert_int_equal(fpm_status.overflows, 0);

	is_hung_up(client(b)); /* this connection makes fpm check the queue */
	clients_are_refused(b);
	assert_int_equal(fpm_status.accepts, 1);
	rib_set_stuck(&b->rib, false);
	fd = client_when_welcome(b);
	eventually(fpm_status.accepts == 2);
	free(w);
	close(fd);
	bench_free(b);
}

static void
listens_on_ipv6_too(void **state)
{
	struct bench *b = bench_start(AF_INET6, 1 << 20);
	int rc = bench_run(b), fd;

	if (rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT) {
		bench_free(b);
		print_message("skipped: no IPv6 loopback\n");
		skip();
	}
	assert_int_equal(rc, 0);
	fd = client(b);
	send_route(fd, "2001:db8::/32", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 2001:db8::/32 t254 nh1;");
	close(fd);
	bench_free(b);
}

/* Counts of the log lines about sessions, and of the suppressed lines (missed=). */
struct told {
	unsigned int up, down, missed;
};

static void
note_line(void *ctx, const char *line, size_t len)
{
	struct told *told = ctx;
	char text[512];
	const char *missed;

	snprintf(text, sizeof(text), "%.*s", (int)len, line);
	told->up += strstr(text, "fpm: session up peer=") != NULL;
	told->down += strstr(text, "fpm: session down peer=") != NULL;
	missed = strstr(text, " missed=");
	if (missed != NULL)
		told->missed += (unsigned int)strtoul(missed + 8, NULL, 10);
}

static struct told
sessions_told(void)
{
	struct told told = {0};

	log_recent(note_line, &told);
	return told;
}

static void
clients_that_connect_in_a_loop_do_not_fill_the_log(void **state)
{
	struct bench *b = bench_new(1 << 20);
	struct told before = sessions_told(), told;
	uint64_t begin_ms = monotonic_ms(), most, n = 0;

	log_set_level(LOG_LEVEL_INFO);
	do {
		close(client(b));
		n++;
		eventually(status_get(&fpm_status.closes) == n);
		told = sessions_told();
	} while (n < 200 || (told.missed == before.missed && n < 20000));
	log_set_level(LOG_LEVEL_ERROR);
	most = (monotonic_ms() - begin_ms) / 1000 + 2;
	assert_in_range(told.up - before.up, 1, most);
	assert_in_range(told.down - before.down, 1, most);
	/* The next line has the number of suppressed lines. */
	assert_true(told.missed > before.missed);
	bench_free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_is_announced_with_generation_and_port_id),
		cmocka_unit_test(silent_session_is_announced_when_it_ends),
		cmocka_unit_test(new_client_replaces_the_old_one),
		cmocka_unit_test(zebra_that_is_held_off_is_not_heard_another_one_is),
		cmocka_unit_test(a_hold_ends_in_time),
		cmocka_unit_test(zebra_is_held_off_over_a_rest),
		cmocka_unit_test(zebra_is_held_off_over_the_daemons_end),
		cmocka_unit_test(a_hold_that_is_over_or_cannot_be_is_none),
		cmocka_unit_test(
			a_hold_without_a_session_holds_the_zebra_of_the_last_daemon),
		cmocka_unit_test(a_zebra_that_speaks_late_is_known_from_then_on),
		cmocka_unit_test(there_is_nothing_to_hold_before_zebra_was_heard),
		cmocka_unit_test(random_octets_end_the_session_and_earlier_routes_stay),
		cmocka_unit_test(malformed_message_does_not_end_the_session),
		cmocka_unit_test(stream_may_be_cut_anywhere),
		cmocka_unit_test(delete_and_route_of_one_frame_stay_in_one_batch),
		cmocka_unit_test(account_is_settled_when_rib_has_handled_all),
		cmocka_unit_test(
			rib_that_is_too_far_behind_ends_the_session_until_it_caught_up),
		cmocka_unit_test(
			no_client_is_accepted_while_the_queue_is_above_half_its_limit),
		cmocka_unit_test(listens_on_ipv6_too),
		cmocka_unit_test(clients_that_connect_in_a_loop_do_not_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
