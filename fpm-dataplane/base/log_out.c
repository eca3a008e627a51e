/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write to standard error without blocking. Its open file description is shared with other
 * processes (the shell, the supervisor), so it must not be made non-blocking. A pipe or a
 * terminal is opened a second time, non-blocking. If this open is refused, poll(2) reports
 * whether there is room, but another process may fill it first. A socket gets MSG_DONTWAIT;
 * a file never blocks.                                    [any thread, under log.c's lock]
 */
#include "base/log_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int own_fd = -1; /* W:main once  second descriptor of a pipe or terminal; -1: none */
static bool is_cut;     /* the last line was written in part */

void
log_out_use_null(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void
log_out_open(void)
{
	struct stat st;

	log_out_close();
	if (fstat(STDERR_FILENO, &st) == 0 &&
	    (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO)))
		own_fd = open("/proc/self/fd/2",
			      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void
log_out_close(void)
{
	if (own_fd >= 0)
		close(own_fd);
	own_fd = -1;
}

/*
 * Return true if standard error is the journal's socket. The journal reads <N> at the start
 * of a line as its priority, for `journalctl -p warning`. Other readers do not understand
 * the mark. systemd.exec(5)
 */
static bool
stderr_is_journal(const struct stat *st)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];

	if (stream == NULL)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
	return strcmp(stream, own) == 0;
}

/*
 * Write where poll() reports room. Returns the number of octets written, or -1 and errno.
 */
static ssize_t
poll_and_write(const struct iovec *out, int n_out)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&room, 1, 0) > 0)
		return writev(STDERR_FILENO, out, n_out);
	errno = EAGAIN;
	return -1;
}

/*
 * Write octet by octet: a terminal reports room when it has room for one octet, and blocks
 * on a longer line.
 */
static ssize_t
line_put_by_octets(const struct iovec *out, int n_out)
{
	ssize_t sent = 0;

	for (int i = 0; i < n_out; i++)
		for (size_t at = 0; at < out[i].iov_len; at++, sent++) {
			struct iovec one = {(char *)out[i].iov_base + at, 1};

			if (poll_and_write(&one, 1) != 1)
				return sent > 0 ? sent : -1;
		}
	return sent;
}

/* Write to standard error. Returns the number of octets written, or -1 and errno. */
static ssize_t
line_put(mode_t kind, struct iovec *out, int n_out)
{
	struct msghdr msg = {.msg_iov = out, .msg_iovlen = (size_t)n_out};

	if (S_ISSOCK(kind))
		return sendmsg(STDERR_FILENO, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (own_fd >= 0)
		return writev(own_fd, out, n_out);
	if (S_ISCHR(kind) && isatty(STDERR_FILENO))
		return line_put_by_octets(out, n_out);
	return poll_and_write(out, n_out);
}

int
log_out_write(char digit, const char *line, size_t n)
{
	char mark[4] = {'\n', '<', digit, '>'};
	struct stat st;
	struct iovec out[3];
	ssize_t sent;

	if (fstat(STDERR_FILENO, &st) < 0)
		return -errno;
	out[0] = (struct iovec){mark, is_cut ? 1 : 0};
	out[1] = (struct iovec){mark + 1, stderr_is_journal(&st) ? 3 : 0};
	out[2] = (struct iovec){(void *)(uintptr_t)line, n};
	sent = line_put(st.st_mode, out, 3);
	if (sent < 0)
		return -errno;
	is_cut = (size_t)sent < out[0].iov_len + out[1].iov_len + n;
	return is_cut ? -EAGAIN : 0;
}
