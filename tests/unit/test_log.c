/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of the log may stop without blocking a thread that writes to the log. The log
 * goes to a pipe, a terminal or a socket, with the daemon's own descriptor for it
 * (log_out_open()) and without. An alarm ends a test that blocks.
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_out.h"
#include "patience.h"

#define LINES 5000 /* more than a pipe, terminal or socket holds */

static int was = -1;

static int
pipe_make(int *reader)
{
	int end[2];

	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	*reader = end[0];
	return end[1];
}

static int
terminal_make(int *reader)
{
	struct termios raw;
	int slave;

	assert_int_equal(openpty(reader, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	return slave;
}

static int
socket_make(int *reader)
{
	int end[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end), 0);
	*reader = end[0];
	return end[1];
}

static void
stderr_is(int fd)
{
	was = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static void
stderr_back(void)
{
	log_out_close();
	dup2(was, STDERR_FILENO);
	close(was);
}

/* Append the available text to `text` of `size`. */
static void
read_now(int fd, char *text, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t at = strlen(text);
	ssize_t n;

	while (poll(&p, 1, 100) > 0 && (p.revents & POLLIN) != 0 &&
	       (n = read(fd, text + at, size - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = '\0';
}

/*
 * Return the number of complete lines. Count a line only if its number is greater than the
 * numbers of all lines before.
 */
static unsigned int
lines_of(const char *text)
{
	unsigned int n = 0;
	long last = -1;

	for (const char *at = text; (at = strstr(at, " I test: count=")) != NULL; at++) {
		char *end;
		long count = strtol(strchr(at, '=') + 1, &end, 10);

		if (strncmp(end, ".\n", 2) == 0 && count > last) {
			last = count;
			n++;
		}
	}
	return n;
}

/*
 * Return the sum of the lost lines that the log reports, and the number of these reports.
 */
static unsigned long
lost_of(const char *text, unsigned int *n)
{
	static const char words[] = " W log: output resumed lost=";
	unsigned long lost = 0;

	for (*n = 0; (text = strstr(text, words)) != NULL; (*n)++) {
		text += strlen(words);
		lost += strtoul(text, NULL, 10);
	}
	return lost;
}

static void
in_the_list(void *ctx, const char *line, size_t len)
{
	unsigned int *n = ctx;

	n[0] += memmem(line, len, "output failed error=", 20) != NULL;
	n[1] += memmem(line, len, "output resumed lost=", 20) != NULL;
}

/*
 * Write all lines without a pause. Assert that the lines that were read and the lost lines
 * of the reports add up.
 */
static void
no_writer_blocks(int (*make)(int *reader), bool begin)
{
	static char text[4 << 20];
	unsigned int list[2] = {0}, taken, gaps;
	unsigned long lost;
	int reader;

	text[0] = '\0';
	stderr_is(make(&reader));
	if (begin)
		log_out_open();
	alarm(PATIENCE_S);
	for (unsigned int i = 0; i < LINES; i++)
		log_info("test: count=%u.", i);
	alarm(0);
	read_now(reader, text, sizeof(text));
	log_info("test: once more");
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	stderr_back();
	read_now(reader, text, sizeof(text));
	close(reader);
	taken = lines_of(text);
	lost = lost_of(text, &gaps);
	assert_in_range(taken, 1, LINES - 1);
	/* The end of the last line before each gap may be missing. */
	assert_in_range(lost, LINES - taken, LINES - taken + gaps);
	assert_non_null(strstr(text, " I test: once more\n"));
	log_recent(in_the_list, list);
	assert_in_range(list[1], 1, gaps);
}

static void
a_writer_to_a_pipe_does_not_block(void **state)
{
	no_writer_blocks(pipe_make, false);
	no_writer_blocks(pipe_make, true);
}

static void
a_writer_to_a_terminal_does_not_block(void **state)
{
	no_writer_blocks(terminal_make, false);
	no_writer_blocks(terminal_make, true);
}

static void
a_writer_to_a_socket_does_not_block(void **state)
{
	no_writer_blocks(socket_make, false);
	no_writer_blocks(socket_make, true);
}

static void
the_first_lost_line_has_a_note_in_the_list(void **state)
{
	unsigned int before[2] = {0}, after[2] = {0};
	int reader;

	log_recent(in_the_list, before);
	stderr_is(pipe_make(&reader));
	close(reader);
	log_info("test: the reader is away");
	log_info("test: nor now");
	stderr_back();
	log_recent(in_the_list, after);
	assert_int_equal(after[0], before[0] + 1);
	log_info("test: the reader is back");
}

/*
 * The distance is a second since the last line, not the next second of the clock. Otherwise
 * two lines that follow each other could be in two seconds of the clock.
 */
static void
lines_of_one_kind_are_a_whole_second_apart(void **state)
{
	struct log_limit limit = {0};
	unsigned int missed = 1, refused = 0;
	uint64_t first_ms = monotonic_ms();

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		while (!log_allowed(&limit, &missed)) {
			refused++;
			usleep(1000);
		}
		assert_int_equal(missed, refused);
		refused = 0;
	}
	assert_true(monotonic_ms() - first_ms >= 2000);
}

static void
control_characters_and_invalid_utf8_are_harmless(void **state)
{
	static const char *const text[][2] = {
		{"a \\ b\n\tc~", "a \\ b\n\tc~"},
		{"\x1b[2J\x07\x7f\r", "?[2J???"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		 "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xc2\x9b[\xc2\xa0", "??[\xc2\xa0"},   /* C1; no-break space is allowed */
		{"\x9b[\xe2\x82", "?[??"},              /* truncated */
		{"\xc0\x9b\xed\xa0\x80\xff", "??????"}, /* overlong, a surrogate */
	};
	char buf[64];

	for (unsigned int i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		strcpy(buf, text[i][0]);
		log_harmless(buf);
		assert_string_equal(buf, text[i][1]);
	}
}

static void
a_name_that_is_utf8_is_shown_as_it_is(void **state)
{
	static const char good[] = "lan\x01\x7f\xc3\xa9";
	char out[16];

	assert_true(log_is_utf8("") && log_is_utf8(good));
	assert_ptr_equal(log_utf8(good, out, sizeof(out)), good);
	assert_false(log_is_utf8("w\x9bn"));
	assert_string_equal(log_utf8("w\x9bn", out, sizeof(out)), "w?n");
	assert_false(log_is_utf8("w\xc3"));
	assert_true(log_is_utf8("\xc2\x9b"));
	assert_false(log_is_utf8("\xc2"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_to_a_pipe_does_not_block),
		cmocka_unit_test(a_writer_to_a_terminal_does_not_block),
		cmocka_unit_test(a_writer_to_a_socket_does_not_block),
		cmocka_unit_test(the_first_lost_line_has_a_note_in_the_list),
		cmocka_unit_test(lines_of_one_kind_are_a_whole_second_apart),
		cmocka_unit_test(control_characters_and_invalid_utf8_are_harmless),
		cmocka_unit_test(a_name_that_is_utf8_is_shown_as_it_is),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
