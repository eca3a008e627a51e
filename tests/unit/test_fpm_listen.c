/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the fpm thread listens, and what it does when it cannot.
 * link: fpm-dataplane/fpm/ fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "test_fpm_bench.h"

static int
start_refused(struct bench *b, const char *netns, uint16_t port)
{
	struct fpm_conf conf = {
		.rib = &b->rib.w, .netns = netns, .listen = loopback(AF_INET, port)};
	struct worker w = {0};
	int rc;

	assert_int_equal(fpm_setup(&w, &conf), 0);
	assert_int_equal(worker_prepare(&w), 0);
	rc = worker_start(&w);
	worker_free(&w);
	fpm_teardown(&w);
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

/* After a crash: somebody else has the address for a while. */
static void
who_insists_listens_when_it_can(void **state)
{
	struct bench *other = bench_new(1 << 20), *b = bench_start(AF_INET, 1 << 20);
	struct fpm *fpm = b->w.ctx;
	uint16_t port = other->port;

	fpm->conf.listen = loopback(AF_INET, port);
	fpm->conf.insists = true;
	/* Not bench_run(): it has not listened yet, and will write its port when it does. */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_fails_where_it_cannot_listen),
		cmocka_unit_test(who_insists_listens_when_it_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
