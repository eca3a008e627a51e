/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listening socket of the fpm thread, and its behavior when the address is not free.
 * link: fpm-dataplane/fpm/ fpm-dataplane/netlink/ fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "descriptors.h"
#include "log_said.h"
#include "test_fpm_bench.h"

static int
start_refused(struct bench *b, const char *netns, uint16_t port)
{
	char name[64];
	struct fpm_conf conf = {
		.rib = &b->rib.w, .netns = name, .listen = loopback(AF_INET, port)};
	unsigned int before = descriptors_open();
	struct worker w = {0};
	int rc;

	snprintf(name, sizeof(name), "%s", netns);
	assert_int_equal(fpm_setup(&w, &conf), 0);
	name[0] = '?'; /* the thread has a copy */
	assert_int_equal(worker_prepare(&w), 0);
	rc = worker_start(&w);
	worker_free(&w);
	fpm_teardown(&w);
	assert_int_equal(descriptors_open(), before);
	return rc;
}

static void
start_fails_where_it_cannot_listen(void **state)
{
	struct bench *b = bench_new(1 << 20);

	assert_int_equal(start_refused(b, "", b->port), -EADDRINUSE);
	assert_int_equal(start_refused(b, "no-such-namespace", 0), -ENOENT);
	bench_free(b);
}

/* After a crash of the daemon, another process may have its address for a time. */
static void
who_insists_listens_when_it_can(void **state)
{
	struct bench *other = bench_new(1 << 20), *b = bench_start(AF_INET, 1 << 20);
	struct fpm *fpm = b->w.ctx;
	uint16_t port = other->port;

	fpm->conf.listen = loopback(AF_INET, port);
	fpm->conf.retry_listen = true;
	/*
	 * Start the thread without bench_run(), which reads the port of a thread that
	 * listens. This thread does not listen yet. It writes its port when it listens.
	 */
	assert_int_equal(worker_start(&b->w), 0);
	b->port = port;
	bench_free(other);
	eventually(fpm_status.listening == 1);
	assert_int_equal(fpm_status.refusing, 0);
	close(client_when_welcome(b));
	eventually(fpm_status.accepts == 1);
	bench_free(b);
	assert_int_equal(fpm_status.listening, 0);
}

/*
 * Make the octets that rib has not handled look like more than half the limit, or like
 * none.
 */
static void
queue_is_full(bool full)
{
	uint64_t in = atomic_load(&fpm_status.queue_bytes_in);

	atomic_store(&fpm_status.queue_bytes_out, full ? in - (1 << 20) : in);
}

/*
 * `lines`: log lines about a pause. `missed`: suppressed lines, the sum of the keys
 * missed=.
 */
struct pauses {
	unsigned int lines, missed;
};

static void
note_pauses(void *ctx, const char *line, size_t len)
{
	struct pauses *p = ctx;
	char text[512];
	const char *missed;

	snprintf(text, sizeof(text), "%.*s", (int)len, line);
	p->lines += strstr(text, "fpm: listen paused") != NULL;
	missed = strstr(text, "fpm: listen ") == NULL ? NULL : strstr(text, " missed=");
	if (missed != NULL)
		p->missed += (unsigned int)strtoul(missed + 8, NULL, 10);
}

static struct pauses
pauses_said(void)
{
	struct pauses p = {0};

	log_recent(note_pauses, &p);
	return p;
}

static void
swing(struct bench *b)
{
	queue_is_full(true);
	close(client_when_welcome(b));
	eventually(fpm_status.listening == 0);
	queue_is_full(false);
	eventually(fpm_status.listening == 1);
}

/* Note whether a line says that fpm listens. The last line counts. */
static void
note_state(void *ctx, const char *line, size_t len)
{
	bool *listens = ctx;

	if (memmem(line, len, "fpm: listen paused", 18) != NULL)
		*listens = false;
	if (memmem(line, len, "fpm: listen resumed", 19) != NULL)
		*listens = true;
}

static bool
said_to_listen(void)
{
	bool listens = true;

	log_recent(note_state, &listens);
	return listens;
}

static void
queue_that_swings_about_its_half_fills_no_log(void **state)
{
	struct bench *b = bench_start(AF_INET, 1 << 20);
	struct pauses before = pauses_said(), now = before;
	unsigned int on = log_said("fpm: listen resumed"), n = 1;
	uint64_t begin_ms = monotonic_ms(), most;

	fpm_status.queue_bytes_in = fpm_status.queue_bytes_out = 1 << 30;
	assert_int_equal(bench_run(b), 0);
	log_set_level(LOG_LEVEL_INFO);
	/*
	 * Wait for two lines of each kind, and for a pause without a line. This takes at
	 * least a second.
	 */
	while (now.lines - before.lines < 2 || now.missed == before.missed ||
	       log_said("fpm: listen resumed") - on < 2) {
		assert_in_range(monotonic_ms() - begin_ms, 0, PATIENCE_MS);
		swing(b);
		n++;
		now = pauses_said();
	}
	eventually(said_to_listen());
	queue_is_full(true);
	close(client_when_welcome(b));
	eventually(!said_to_listen());
	most = (monotonic_ms() - begin_ms) / 1000 + 1;
	now = pauses_said();
	assert_in_range(now.lines - before.lines, 2, most);
	assert_in_range(log_said("fpm: listen resumed") - on, 2, most);
	queue_is_full(false);
	eventually(said_to_listen());
	/* Each pause has a line, or a later line counts it. */
	now = pauses_said();
	assert_int_equal(now.lines - before.lines + now.missed - before.missed, n);
	log_set_level(LOG_LEVEL_ERROR);
	bench_free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_fails_where_it_cannot_listen),
		cmocka_unit_test(who_insists_listens_when_it_can),
		cmocka_unit_test(queue_that_swings_about_its_half_fills_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
