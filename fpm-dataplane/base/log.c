/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one writev(2) a line, so that lines of different threads never mix. Any control
 * thread; never a forwarder.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static _Atomic int max_level = LOG_LEVEL_INFO;

#define KEPT_BYTES 256 /* of a line; more is cut */

/* For `fpmctl show log`. Control threads write few lines, and may wait for one another. */
static struct {
	pthread_mutex_t lock;
	unsigned long n; /* lines ever */
	struct {
		uint16_t len;
		char text[KEPT_BYTES];
	} line[LOG_RECENT_LINES];
} recent = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
keep(const char *line, size_t len)
{
	unsigned long at;

	if (len > KEPT_BYTES)
		len = KEPT_BYTES;
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
 * Is standard error the journal's? It takes <N> at the begin of a line as its priority, which
 * `journalctl -p warning` goes by; anywhere else it would be in the way. systemd.exec(5)
 */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

/* The net under log_escape(): names of interfaces may have any octet. Ours is plain ASCII. */
static void
make_harmless(char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c >= 0x7f)
			*text = '?';
	}
}

void
log_write(enum log_level level, const char *fmt, ...)
{
	static const char tag[] = "EWID", priority[] = "3467"; /* the latter: syslog(3) */
	char line[1024], mark[3] = {'<', priority[level], '>'};
	struct iovec out[2];
	struct timespec now;
	struct tm tm;
	va_list ap;
	int n, m;

	if (!log_enabled(level))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = (int)strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += snprintf(line + n, sizeof(line) - (size_t)n, ".%03ldZ %c ",
		      now.tv_nsec / 1000000, tag[level]);
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	make_harmless(line + n);
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	keep(line, (size_t)n);
	line[n++] = '\n';
	out[0] = (struct iovec){mark, stderr_is_journal() ? sizeof(mark) : 0};
	out[1] = (struct iovec){line, (size_t)n};
	if (writev(STDERR_FILENO, out, 2) < 0)
		return; /* nowhere left to complain */
}

/* Octets of an ASCII character that may be shown as it is; 0: not this one. */
static size_t
ascii_len(const char *in)
{
	return *in >= 0x20 && *in < 0x7f && *in != '\\';
}

/* The same of any character of UTF-8 (RFC 3629, section 3); those of C1 control a terminal. */
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
		c = (unsigned char)in[i]; /* the text's end is none of these */
		if (c >> 6 != 2)
			return 0;
		code = code << 6 | (c & 0x3f);
	}
	return code >= least[n] && code <= 0x10ffff && code >> 11 != 0x1b ? n : 0;
}

/* Characters that char_len() knows go to out[] whole, each other octet as \xNN. */
static const char *
escape(const char *in, size_t len, char *out, size_t out_size,
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
	return escape(in, len, out, out_size, ascii_len);
}

const char *
log_escape_name(const char *name, char *out, size_t out_size)
{
	return escape(name, strlen(name), out, out_size, utf8_len);
}

bool
log_allowed(struct log_limit *limit, unsigned int *missed)
{
	struct timespec now;
	unsigned long long last;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	last = atomic_load_explicit(&limit->last_s, memory_order_relaxed);
	if (last == (unsigned long long)now.tv_sec + 1 ||
	    !atomic_compare_exchange_strong(&limit->last_s, &last,
					    (unsigned long long)now.tv_sec + 1)) {
		atomic_fetch_add_explicit(&limit->missed, 1, memory_order_relaxed);
		return false;
	}
	*missed = atomic_exchange(&limit->missed, 0);
	return true;
}
