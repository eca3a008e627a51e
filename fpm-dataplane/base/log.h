/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log: one line per event to stderr: "fpm: session up peer=127.0.0.1:38412 gen=3".
 *
 * The event comes first, then key=value; no prose, no trailing dot. Never under fwd/.
 * Strings from outside pass through log_escape() first.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                           \
	do {                                                     \
		if (log_enabled(LOG_LEVEL_DEBUG))                \
			log_write(LOG_LEVEL_DEBUG, __VA_ARGS__); \
	} while (0)

/* Copy `in` with control and non-ASCII octets as \xNN; always terminated. Returns out. */
const char *log_escape(const char *in, size_t len, char *out, size_t out_size);

/*
 * Escape a file name so that a reader can find the file, and so that it may go into JSON:
 * UTF-8 characters stay, except control characters and the backslash.
 */
const char *log_escape_name(const char *name, char *out, size_t out_size);

/*
 * Return true if a text is UTF-8, also with control characters. JSON and metrics need
 * UTF-8, and names of interfaces may be any octets.
 */
bool log_is_utf8(const char *text);

/* Return `name` if it is UTF-8, otherwise a copy in `out` after log_harmless(). */
const char *log_utf8(const char *name, char *out, size_t out_size);

/*
 * Make a text safe for a terminal: replace control characters and malformed UTF-8 by
 * question marks, one per octet. Newlines and tabs stay.
 */
void log_harmless(char *text);

/*
 * Call each() for the last lines, oldest first, also for lines that the log lost.
 *                                                              [any thread but forwarders]
 */
#define LOG_RECENT_LINES 512
void log_recent(void (*each)(void *ctx, const char *line, size_t len), void *ctx);

/*
 * Allow one line a second for an event that a peer can repeat at will. Returns true when
 * the line may be written; *missed is then the number of lines that were suppressed before
 * it.
 */
struct log_limit {
	_Atomic unsigned long long next_ms;
	_Atomic unsigned int missed;
};
bool log_allowed(struct log_limit *limit, unsigned int *missed);

#endif
