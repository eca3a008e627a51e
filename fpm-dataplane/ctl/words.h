/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words: words that describe packets: for explain the fields of a packet, for trace and
 * capture the packets to select.
 */
#ifndef CTL_WORDS_H
#define CTL_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* NULL, -1, 0 or false: not given. */
struct words {
	const char *port, *src, *dst, *host, *hex, *verdict, *reason;
	int proto, sport, dport, ttl, len, label;
	int snap;
	long long count;
	double for_s;
	bool df, rx, tx, drop;
};

enum words_of { WORDS_EXPLAIN = 1, WORDS_TRACE = 2, WORDS_CAPTURE = 4 };

/* Parse `n` words of a command. Returns an exit code; prints the error to stderr. */
int words_take(struct words *w, enum words_of of, int n, char **word);

/* Print a line for each word of the command, for help. */
void words_help(FILE *out, enum words_of of);
/* Print on a line, for the completion, the words that may follow. */
void words_complete(FILE *out, enum words_of of, int n, char **word);

/* Return "udp" for 17, or the number as text, in buf. */
const char *proto_name(int proto, char buf[16]);

#endif
