/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request of fpmctl on the control socket: the rows of the answer, errors and their exit
 * codes, how long fpmctl waits, and the end by a signal. A thread takes the place of the
 * daemon; the test replaces poll() and notes the timeouts of sockets.
 *
 * link: fpm-dataplane/ctl/conn.c fpm-dataplane/ctl/cli.c fpm-dataplane/ctl/json_row.c
 * link: fpm-dataplane/ctl/text.c fpm-dataplane/base/edit_distance.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "ctl/cli.h"
#include "ctl/conn.h"
#include "daemon_fake.h"
#include "descriptors.h"
#include "patience.h"

#define END "{\"end\":true}\n"

static struct {
	int silences;     /* timeouts of poll() until the answer begins */
	int waited_ms[4]; /* timeouts that were given to poll() */
	unsigned int n_waited;
	long receive_ms; /* the last timeout of a socket; 0: none */
	long receive_ms_at_row;
	char rows[4096];     /* texts of the rows, one a line */
	char keys[256];      /* member "a" of each row, one a line */
	unsigned int n_most; /* rows to take; 0: all */
	unsigned int n_rows;
	bool stop;       /* raise SIGTERM at the first row */
	char said[1024]; /* text on standard error */
} t;

/* --- functions that this program replaces --------------------------------------------- */

int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	assert_int_equal(n, 1);
	assert_int_equal(fds[0].events, POLLIN);
	assert_true(t.n_waited < 4);
	t.waited_ms[t.n_waited++] = timeout;
	return t.silences-- > 0 ? 0 : 1;
}

int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct timeval *tv = value;

	if (level == SOL_SOCKET && name == SO_RCVTIMEO)
		t.receive_ms = tv->tv_sec * 1000 + tv->tv_usec / 1000;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

/* --- rig ------------------------------------------------------------------------------ */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	return fake_daemon_open();
}

static int
teardown(void **state)
{
	conn_patience(30000);
	return fake_daemon_close();
}

static bool
take_row(const json_t *row, const char *text, void *ctx)
{
	strcat(strcat(t.rows, text), "\n");
	strcat(strcat(t.keys, row_str(row, "a")), "\n");
	t.receive_ms_at_row = t.receive_ms;
	if (t.stop)
		raise(SIGTERM);
	return ++t.n_rows != t.n_most;
}

typedef int converse(const char *path, const json_t *request,
		     bool (*on_row)(const json_t *row, const char *text, void *ctx),
		     void *ctx);

/*
 * Send a request in JSON to the path. If there is an answer, the fake daemon gives it.
 * Return the exit code.
 */
static int
exchange(converse *how, const char *path, const char *request, const char *answer)
{
	json_t *json = json_loads(request, 0, NULL);
	unsigned int before = descriptors_open();
	FILE *err = stderr;
	int rc;

	t.rows[0] = t.keys[0] = t.said[0] = '\0';
	t.n_rows = t.n_waited = 0;
	if (answer != NULL)
		fake_daemon_answer(answer);
	stderr = fmemopen(t.said, sizeof(t.said), "w");
	rc = how(path, json, take_row, NULL);
	fclose(stderr);
	stderr = err;
	if (answer != NULL)
		fake_daemon_end();
	assert_int_equal(descriptors_open(), before);
	json_decref(json);
	return rc;
}

static int
ask(const char *request, const char *answer)
{
	return exchange(conn_ask, fake_daemon.path, request, answer);
}

/* --- tests ---------------------------------------------------------------------------- */

static void
each_row_of_the_answer_is_passed_on(void **state)
{
	assert_int_equal(ask("{\"show\": \"x\"}", "{\"a\":\"1\"}\n{\"end\":false}\n" END),
			 CTL_OK);
	assert_string_equal(fake_daemon.asked, "{\"show\":\"x\"}\n");
	assert_string_equal(t.rows, "{\"a\":\"1\"}\n{\"end\":false}\n");
	assert_string_equal(t.said, "");
	assert_int_equal(t.n_waited, 0);
	assert_int_equal(t.receive_ms_at_row, 30000);
	/* A row with a number for an error is a row. */
	assert_int_equal(ask("{}", "{\"error\":5}\n" END), CTL_OK);
	assert_int_equal(t.n_rows, 1);
	t.n_most = 1;
	assert_int_equal(ask("{}", "{\"a\":\"1\"}\n{\"a\":\"2\"}\n"), CTL_OK);
	assert_string_equal(t.keys, "1\n");
}

static void
rows_may_be_collected_or_ignored(void **state)
{
	json_t *rows = json_array();

	fake_daemon_answer("{\"a\":\"1\"}\n{\"a\":\"2\"}\n" END);
	assert_int_equal(
		conn_fetch(fake_daemon.path, json_pack("{s:s}", "show", "x"), rows),
		CTL_OK);
	fake_daemon_end();
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(row_str(json_array_get(rows, 1), "a"), "2");
	json_decref(rows);
	fake_daemon_answer(END);
	assert_int_equal(
		conn_fetch(fake_daemon.path, json_pack("{s:s}", "show", "x"), NULL),
		CTL_OK);
	fake_daemon_end();
}

static void
an_error_has_its_exit_code(void **state)
{
	static const struct {
		const char *code;
		int rc;
	} of[] = {{"", 1},
		  {",\"code\":-1", 1},
		  {",\"code\":0", 1},
		  {",\"code\":1", 1},
		  {",\"code\":2", 2},
		  {",\"code\":3", 3},
		  {",\"code\":4", 1}};
	char answer[64];

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(answer, sizeof(answer), "{\"error\":\"no port x\"%s}\n",
			 of[i].code);
		assert_int_equal(ask("{}", answer), of[i].rc);
		assert_string_equal(t.said, "fpmctl: no port x\n");
		assert_int_equal(t.n_rows, 0);
	}
	assert_int_equal(exchange(conn_try, fake_daemon.path, "{}",
				  "{\"error\":\"x\",\"code\":3}\n"),
			 3);
	assert_string_equal(t.said, "");
}

/* Names of the kernel may have any octets. U+007F to U+009F control terminals. */
static void
control_characters_do_not_reach_the_terminal(void **state)
{
	assert_int_equal(ask("{}", "{\"a\":\"\x7f\xc2\x80\xc2\x9f|\xc2\xa0\xc3\x80~\"}\n"
				   "{\"a\":\"\\u001b[2J\"}\n" END),
			 CTL_OK);
	assert_string_equal(t.rows, "{\"a\":\"\\u007f\\u0080\\u009f|\xc2\xa0\xc3\x80~\"}\n"
				    "{\"a\":\"\\u001b[2J\"}\n");
	assert_string_equal(t.keys, "?\?\?\?\?|\xc2\xa0\xc3\x80~\n?[2J\n");
}

static void
an_answer_that_is_not_complete_is_an_error(void **state)
{
	static const char *const lost[] = {"", "{\"a\":\"1\"}\n", "{\"end\":true}"};
	static const char *const strange[] = {"\n", "[]\n", "hello\n", "5\n",
					      "{\"a\":\xff}\n"};

	for (unsigned int i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		assert_int_equal(ask("{}", lost[i]), CTL_NO_DAEMON);
		assert_non_null(strstr(t.said, "was lost before the answer was complete"));
	}
	for (unsigned int i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		assert_int_equal(ask("{}", strange[i]), CTL_NO_DAEMON);
		assert_non_null(
			strstr(t.said, " is not fpm-dataplane, or has another version"));
		assert_int_equal(t.n_rows, 0);
	}
}

static void
without_a_daemon_the_reason_is_printed(void **state)
{
	char path[256];

	assert_int_equal(exchange(conn_ask, "/tmp/fdp-conn-none/sock", "{}", NULL),
			 CTL_NO_DAEMON);
	assert_string_equal(
		t.said,
		"fpmctl: no daemon answers on /tmp/fdp-conn-none/sock: No such file or "
		"directory; start fpm-dataplane, or give another socket with -s SOCKET\n");
	assert_false(conn_is_there("/tmp/fdp-conn-none/sock"));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(exchange(conn_try, "/tmp/fdp-conn-none/sock", "{}", NULL),
			 CTL_NO_DAEMON);
	assert_string_equal(t.said, "");
	/* The longest path of a socket has 107 octets. */
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[107] = '\0';
	assert_false(conn_is_there(path));
	assert_int_equal(errno, ENOENT);
	path[107] = 'x';
	path[108] = '\0';
	assert_false(conn_is_there(path));
	assert_int_equal(errno, ENAMETOOLONG);
}

/* A request of 4096 octets, with its newline, is the longest that the daemon accepts. */
static void
a_request_that_the_daemon_would_refuse_is_not_sent(void **state)
{
	char request[4200];
	int fill = 4095 - (int)strlen("{\"a\":\"\"}");

	snprintf(request, sizeof(request), "{\"a\":\"%0*d\"}", fill, 0);
	assert_int_equal(ask(request, END), CTL_OK);
	assert_int_equal(strlen(fake_daemon.asked), 4096);
	snprintf(request, sizeof(request), "{\"a\":\"%0*d\"}", fill + 1, 0);
	assert_int_equal(ask(request, NULL), CTL_USAGE);
	assert_string_equal(
		t.said,
		"fpmctl: the request is longer than the daemon accepts (4096 octets)\n");
	assert_int_equal(ask("broken", NULL), CTL_USAGE);
	assert_string_equal(t.said, "fpmctl: a word is not UTF-8\n");
}

static void
a_silent_daemon_is_not_waited_for(void **state)
{
	conn_patience(20);
	/* The listener holds the connection, and no thread accepts it. */
	assert_int_equal(ask("{}", NULL), CTL_NO_DAEMON);
	assert_non_null(
		strstr(t.said, "has not answered for 0 s; it hangs or is very busy"));
	assert_int_equal(t.receive_ms, 20);
	/* Even if the backlog is full, the daemon is there. */
	assert_true(conn_is_there(fake_daemon.path));
	assert_true(conn_is_there(fake_daemon.path));
	assert_int_equal(ask("{}", NULL), CTL_NO_DAEMON);
	assert_non_null(
		strstr(t.said, "has not answered for 0 s; it hangs or is very busy"));
}

/* A change of ports may take as long as a device may need to start. */
static void
a_slow_request_has_more_time(void **state)
{
	static const char *const slow[] = {"{\"port\":{}}", "{\"config\":{}}",
					   "{\"set\":{}}"};

	for (unsigned int i = 0; i < 3; i++) {
		t.silences = 0;
		assert_int_equal(ask(slow[i], END), CTL_OK);
		assert_int_equal(t.n_waited, 1);
		assert_int_equal(t.waited_ms[0], 30000);
		assert_string_equal(t.said, "");
		t.silences = 1;
		assert_int_equal(ask(slow[i], END), CTL_OK);
		assert_int_equal(t.n_waited, 2);
		assert_int_equal(t.waited_ms[1], 300000);
		assert_non_null(strstr(t.said, "fpmctl: the daemon is still working: "));
		assert_null(strstr(t.said, "no answer"));
	}
	t.silences = 2;
	assert_int_equal(ask("{\"do\":\"hold\"}", END), CTL_NO_DAEMON);
	assert_int_equal(t.waited_ms[0], 30000);
	assert_int_equal(t.waited_ms[1], 50000);
	assert_non_null(strstr(t.said, "fpmctl: the hold takes effect after all earlier"));
	assert_non_null(strstr(t.said, "fpmctl: no answer after 80 s; "));
	assert_int_equal(t.n_rows, 0);
	assert_int_equal(ask("{\"do\":\"other\"}", END), CTL_OK);
	assert_int_equal(t.n_waited, 0);
}

/* This test is the last one, because fpmctl does not forget the signal. */
static void
a_signal_ends_a_watch(void **state)
{
	fake_daemon.stays = t.stop = true;
	alarm(PATIENCE_S); /* end a watch that the signal does not end */
	assert_int_equal(exchange(conn_watch, fake_daemon.path, "{}", "{\"a\":\"1\"}\n"),
			 CTL_OK);
	assert_string_equal(t.keys, "1\n");
	assert_string_equal(t.said, "");
	/* After its first row, a watch waits without limit. */
	assert_int_equal(t.receive_ms_at_row, 0);
	assert_true(stop_wanted());
	assert_true(stop_now());
	/* A signal before the connection ends the command, too. */
	t.stop = false;
	assert_int_equal(exchange(conn_watch, fake_daemon.path, "{}", "{\"a\":\"1\"}\n"),
			 CTL_OK);
	assert_int_equal(exchange(conn_watch, "/tmp/fdp-conn-none/sock", "{}", NULL),
			 CTL_OK);
	assert_string_equal(t.said, "");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(each_row_of_the_answer_is_passed_on),
		test(rows_may_be_collected_or_ignored),
		test(an_error_has_its_exit_code),
		test(control_characters_do_not_reach_the_terminal),
		test(an_answer_that_is_not_complete_is_an_error),
		test(without_a_daemon_the_reason_is_printed),
		test(a_request_that_the_daemon_would_refuse_is_not_sent),
		test(a_silent_daemon_is_not_waited_for),
		test(a_slow_request_has_more_time),
		test(a_signal_ends_a_watch),
	};

	return cmocka_run_group_tests_name("ctl_conn", tests, NULL, NULL);
}
