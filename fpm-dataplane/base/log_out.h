/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_out: write lines of the log to standard error without ever blocking, because its
 * reader may have stopped. A line that cannot be written at once is lost.     [any thread]
 */
#ifndef BASE_LOG_OUT_H
#define BASE_LOG_OUT_H

#include <stddef.h>

#define LOG_LINE_MAX \
	1024 /* octets: less than PIPE_BUF, so that a pipe accepts all or nothing */

/*
 * Open /dev/null in place of each closed descriptor of 0 to 2. Otherwise a TAP or zebra's
 * socket could become standard error. Call before any other open.                   [main]
 */
void log_out_use_null(void);

/*
 * If standard error is a pipe or a terminal, open it a second time, non-blocking, while the
 * process still has the permission. Without the second descriptor each line needs a
 * poll(2). Only one thread may exist.
 *                                                                                   [main]
 */
void log_out_open(void);

/* Close the second descriptor, in a child whose descriptors change.             [child] */
void log_out_close(void);

/*
 * Write a line of `n` octets, newline included. If standard error is the journal's socket,
 * write the mark of priority `digit` before the line. Returns 0, or -errno: the line is
 * lost.
 */
int log_out_write(char digit, const char *line, size_t n);

#endif
