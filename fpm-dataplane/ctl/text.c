/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Format text for a reader. Numbers get a unit. Lines are broken at words before the last
 * column, but only on a terminal, because programs that read a file or a pipe search for
 * whole lines.
 */
#include "ctl/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH 80
/* fewest columns for text on a line; if fewer are left, a long word has its own line */
#define WIDTH_MIN 20

/* --- numbers -------------------------------------------------------------------------- */

const char *
human_bytes(long long bytes, char buf[32])
{
	static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)bytes / 1024;
	unsigned int u = 0;

	if (bytes < 1024) {
		snprintf(buf, 32, "%lld B", bytes);
		return buf;
	}
	for (; value >= 1024 && u < 4; u++)
		value /= 1024;
	snprintf(buf, 32, "%.1f %s", value, unit[u]);
	return buf;
}

const char *
human_rate(double per_s, char buf[32])
{
	static const char *const unit[] = {"", " k", " M", " G", " T"};
	unsigned int u = 0;

	for (; per_s >= 1000 && u < 4; u++)
		per_s /= 1000;
	snprintf(buf, 32, u == 0 ? "%.0f%s" : "%.1f%s", per_s, unit[u]);
	return buf;
}

const char *
human_count(long long n, char buf[32])
{
	if (n >= 10000000)
		return human_rate((double)n, buf);
	snprintf(buf, 32, "%lld", n);
	return buf;
}

const char *
human_seconds(double seconds, char buf[32])
{
	long long s = (long long)seconds;

	if (s < 60)
		snprintf(buf, 32, "%.1f s", seconds);
	else if (s < 3600)
		snprintf(buf, 32, "%lld min %02lld s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, 32, "%lld h %02lld min", s / 3600, s / 60 % 60);
	else
		snprintf(buf, 32, "%lld d %02lld h", s / 86400, s / 3600 % 24);
	return buf;
}

/* --- the terminal --------------------------------------------------------------------- */

bool
terminal_obeys(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) != 0 && term != NULL && term[0] != '\0' &&
	       strcmp(term, "dumb") != 0;
}

bool
colours_wanted(void)
{
	const char *no = getenv("NO_COLOR");

	return terminal_obeys() && (no == NULL || no[0] == '\0');
}

/*
 * Return the number of columns of the terminal, at least 80, the width of the tables; 0:
 * stdout is no terminal.
 */
static int
terminal_width(void)
{
	static int width = -1;
	struct winsize size;

	if (width < 0)
		width = isatty(STDOUT_FILENO) == 0                    ? 0
			: ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 ? WIDTH
			: size.ws_col > WIDTH                         ? size.ws_col
								      : WIDTH;
	return width;
}

/* --- lines ---------------------------------------------------------------------------- */

/*
 * Return the length of the first piece of a word of `n` octets when `room` octets are
 * free.
 */
static int
word_piece(const char *word, int n, int room)
{
	int at = room;

	if (n <= room)
		return n;
	while (at > 0 && strchr("/,=:", word[at - 1]) == NULL)
		at--;
	if (at > 0)
		return at;
	for (at = room; at > 1 && ((uint8_t)word[at] & 0xc0) == 0x80; at--)
		continue; /* inside a UTF-8 character */
	return at;
}

/*
 * Print `text` from column `at` on; continue below, indented by `indent`, when `width` is
 * reached. `split`: break words that are longer than a line.
 */
static void
text_wrap(FILE *out, const char *text, int at, int indent, int width, bool split)
{
	bool begun = false; /* the line has a word */

	if (width - indent < WIDTH_MIN)
		indent = 4;
	while (*text != '\0') {
		int gap = (int)strspn(text, " ");
		int n = (int)strcspn(text + gap, " ");
		int room, some;

		if (begun && at + gap + n > width &&
		    (!split || n <= width - indent || at + gap + WIDTH_MIN > width)) {
			text += gap;
			gap = 0;
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		}
		room = width - at - gap;
		some = split && room > 0 ? word_piece(text + gap, n, room) : n;
		at += fprintf(out, "%.*s", gap + some, text);
		text += gap + some;
		begun = true;
		if (some < n) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
			begun = false;
		}
	}
	putc('\n', out);
}

void
usage_print(FILE *out, const char *command, const char *words)
{
	char *text;

	if (asprintf(&text, "usage: fpmctl [OPTIONS] %s%s%s", command,
		     words[0] != '\0' ? " " : "", words) < 0)
		abort(); /* out of memory for some hundred octets */
	text_wrap(out, text, 0, 24, WIDTH, false);
	free(text);
}

void
wrapped_print(const char *text, int indent)
{
	text_wrap(stdout, text, indent, indent, WIDTH, terminal_width() > 0);
}

void
line_print(int indent, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort(); /* out of memory for some hundred octets */
	va_end(ap);
	if (terminal_width() == 0)
		puts(text);
	else
		text_wrap(stdout, text, 0, indent, terminal_width(), true);
	free(text);
}
