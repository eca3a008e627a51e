/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one write per line, so that lines of different threads never mix. No thread
 * waits for the reader of the log (log_out.h). Any control thread; never a forwarder.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log_out.h"

static _Atomic int max_level = LOG_LEVEL_INFO;

#define RECENT_BYTES 256 /* octets of a kept line; the rest is cut */

/*
 * The last lines, for `fpmctl show log`. The lock is held for a short copy only, and no
 * thread waits for anything else while it holds the lock.
 */
static struct {
	pthread_mutex_t lock;
	unsigned long n; /* lines since the start */
	struct {
		uint16_t len;
		char text[RECENT_BYTES];
	} line[LOG_RECENT_LINES];
} recent = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
recent_add(const char *line, size_t len)
{
	unsigned long at;

	if (len > RECENT_BYTES)
		len = RECENT_BYTES;
	pthread_mutex_lock(&recent.lock);
	at = recent.n++ % LOG_RECENT_LINES;
	memcpy(recent.line[at].text, line, len);
	recent.line[at].len = (uint16_t)len;
	pthread_mutex_unlock(&recent.lock);
}

void
log_recent(void (*each)(void *ctx, const char *line, size_t len), void *ctx)
{
	pthread_mutex_lock(&recent.lock);
	for (unsigned long i = recent.n > LOG_RECENT_LINES ? recent.n - LOG_RECENT_LINES
							   : 0;
	     i < recent.n; i++)
		each(ctx, recent.line[i % LOG_RECENT_LINES].text,
		     recent.line[i % LOG_RECENT_LINES].len);
	pthread_mutex_unlock(&recent.lock);
}

void
log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

bool
log_enabled(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

/*
 * Replace control and non-ASCII octets, for callers that forgot log_escape(): names of
 * interfaces may have any octet. Our own texts are ASCII.
 */
static void
text_make_harmless(char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c >= 0x7f)
			*text = '?';
	}
}

/*
 * Format a line: time, level and text, without a newline. Returns its length, 0 on
 * failure.
 */
static size_t __attribute__((format(printf, 3, 0)))
line_format(char line[LOG_LINE_MAX], enum log_level level, const char *fmt, va_list ap)
{
	struct timespec now;
	struct tm tm;
	int n, m;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = (int)strftime(line, LOG_LINE_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	n += snprintf(line + n, LOG_LINE_MAX - (size_t)n, ".%03ldZ %c ",
		      now.tv_nsec / 1000000, "EWID"[level]);
	m = vsnprintf(line + n, LOG_LINE_MAX - (size_t)n - 1, fmt, ap);
	if (m < 0)
		return 0;
	text_make_harmless(line + n);
	n += m;
	return (size_t)(n > LOG_LINE_MAX - 2 ? LOG_LINE_MAX - 2 : n);
}

static int
line_write(enum log_level level, char *line, size_t len)
{
	line[len] = '\n';
	return log_out_write("3467"[level], line, len + 1); /* syslog(3) */
}

static size_t __attribute__((format(printf, 3, 4)))
line_format_args(char line[LOG_LINE_MAX], enum log_level level, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	len = line_format(line, level, fmt, ap);
	va_end(ap);
	return len;
}

/*
 * Write a line to the log. When lines are lost, `fpmctl show log` (which has them all)
 * gets a note with the first lost line; the log gets the number of lost lines before the
 * first line that it accepts again.
 */
static void
line_deliver(enum log_level level, char *line, size_t len)
{
	static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
	static unsigned long lost;
	char own[LOG_LINE_MAX];
	size_t own_len;
	int rc = 0;

	pthread_mutex_lock(&one_by_one);
	if (lost > 0) {
		own_len = line_format_args(own, LOG_LEVEL_WARN,
					   "log: output resumed lost=%lu", lost);
		rc = line_write(LOG_LEVEL_WARN, own, own_len);
		if (rc == 0) {
			recent_add(own, own_len);
			lost = 0;
		}
	}
	if (rc == 0)
		rc = line_write(level, line, len);
	if (rc < 0 && lost++ == 0) {
		own_len =
			line_format_args(own, LOG_LEVEL_WARN,
					 "log: output failed error=\"%s\"", strerror(-rc));
		recent_add(own, own_len);
	}
	pthread_mutex_unlock(&one_by_one);
}

void
log_write(enum log_level level, const char *fmt, ...)
{
	char line[LOG_LINE_MAX];
	va_list ap;
	size_t len;

	if (!log_enabled(level))
		return;
	va_start(ap, fmt);
	len = line_format(line, level, fmt, ap);
	va_end(ap);
	if (len == 0)
		return;
	recent_add(line, len);
	line_deliver(level, line, len);
}

/*
 * Return 1, the length, for an ASCII character that may be shown unchanged; 0: it must be
 * escaped.
 */
static size_t
ascii_len(const char *in)
{
	return *in >= 0x20 && *in < 0x7f && *in != '\\';
}

/*
 * Return the length of a UTF-8 character (RFC 3629, section 3) that may be shown unchanged;
 * 0: it must be escaped, because it is malformed or is a C1 control character.
 */
static size_t
utf8_len(const char *in)
{
	static const unsigned int least[] = {0, 0, 0xa0, 0x800, 0x10000};
	unsigned char c = (unsigned char)*in;
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
	unsigned int code = n > 0 ? c & (0x7fu >> n) : 0;

	if (n == 0 || c >= 0xf8)
		return ascii_len(in);
	for (size_t i = 1; i < n; i++) {
		c = (unsigned char)in[i]; /* the terminator is no continuation octet */
		if (c >> 6 != 2)
			return 0;
		code = code << 6 | (c & 0x3f);
	}
	return code >= least[n] && code <= 0x10ffff && code >> 11 != 0x1b ? n : 0;
}

/*
 * Copy characters for which char_len() returns a length; write each other octet as \xNN.
 */
static const char *
text_escape(const char *in, size_t len, char *out, size_t out_size,
	    size_t (*char_len)(const char *in))
{
	static const char hex[] = "0123456789abcdef";
	size_t o = 0;

	for (size_t i = 0; i < len && o + 5 <= out_size; i++) {
		unsigned char c = (unsigned char)in[i];
		size_t n = char_len(in + i);

		if (n > 0) {
			memcpy(out + o, in + i, n);
			o += n;
			i += n - 1;
			continue;
		}
		out[o++] = '\\';
		out[o++] = 'x';
		out[o++] = hex[c >> 4];
		out[o++] = hex[c & 15];
	}
	out[o] = '\0';
	return out;
}

const char *
log_escape(const char *in, size_t len, char *out, size_t out_size)
{
	return text_escape(in, len, out, out_size, ascii_len);
}

const char *
log_escape_name(const char *name, char *out, size_t out_size)
{
	return text_escape(name, strlen(name), out, out_size, utf8_len);
}

bool
log_is_utf8(const char *text)
{
	while (*text != '\0') {
		const unsigned char *u = (const unsigned char *)text;
		bool c1 = u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0;
		size_t n = u[0] < 0x80 ? 1 : c1 ? 2 : utf8_len(text);

		if (n == 0)
			return false;
		text += n;
	}
	return true;
}

const char *
log_utf8(const char *name, char *out, size_t out_size)
{
	if (log_is_utf8(name))
		return name;
	snprintf(out, out_size, "%s", name);
	log_harmless(out);
	return out;
}

void
log_harmless(char *text)
{
	while (*text != '\0') {
		bool plain =
			(*text >= ' ' && *text <= '~') || *text == '\n' || *text == '\t';
		size_t n = plain ? 1 : utf8_len(text);

		if (n == 0)
			*text = '?';
		text += n == 0 ? 1 : n;
	}
}

bool
log_allowed(struct log_limit *limit, unsigned int *missed)
{
	unsigned long long now = monotonic_ms(), next;

	next = atomic_load_explicit(&limit->next_ms, memory_order_relaxed);
	if (now < next ||
	    !atomic_compare_exchange_strong(&limit->next_ms, &next, now + 1000)) {
		atomic_fetch_add_explicit(&limit->missed, 1, memory_order_relaxed);
		return false;
	}
	*missed = atomic_exchange(&limit->missed, 0);
	return true;
}
