/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_out: where the log's lines go, standard error, and nobody ever waits for it: whoever reads
 * the other end may have stopped. A line that is not taken at once is lost.    [any thread]
 */
#ifndef BASE_LOG_OUT_H
#define BASE_LOG_OUT_H

#include <stddef.h>

#define SINK_LINE_MAX \
	1024 /* octets: less than PIPE_BUF, so that a pipe takes all or nothing */

/*
 * First of all: who is started with descriptors 0 to 2 closed has /dev/null there, or a TAP, or a
 * socket of zebra's would be standard error.                                        [main]
 */
void sink_stand_in(void);

/*
 * Have a way to a pipe or a terminal that does not block, while rights suffice to open it;
 * without it, it is asked before each line. One thread is there.                    [main]
 */
void sink_begin(void);

/* Forget that way: in a child whose descriptors become others.                     [child] */
void sink_forget(void);

/*
 * Write `n` octets, newline included, behind the journal's mark of priority `digit` where
 * standard error is the journal's. Returns 0, or -errno: the line is lost.
 */
int sink_write(char digit, const char *line, size_t n);

#endif
