/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words that describe packets: for explain the fields of one, for trace and capture what
 * a packet must have.
 */
#ifndef CTL_WORDS_H
#define CTL_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* NULL, -1, 0 or false: not said. */
struct words {
	const char *port, *src, *dst, *host, *hex, *verdict, *reason;
	int proto, sport, dport, ttl, len, label;
	int snap;
	long long count;
	double for_s;
	bool df, rx, tx, drop;
};

enum words_of { WORDS_EXPLAIN = 1, WORDS_TRACE = 2, WORDS_CAPTURE = 4 };

/*
 * Take `n` words of a command. Returns an exit code; says on stderr which word was wrong.
 */
int words_take(struct words *w, enum words_of of, int n, char **word);

/* One line a word that the command knows, for help. */
void words_help(FILE *out, enum words_of of);
/* For the completion, on a line: what may follow these words. */
void words_complete(FILE *out, enum words_of of, int n, char **word);

/* "udp" of 17, or the number as text. Returns buf. */
const char *proto_name(int proto, char buf[16]);

#endif
