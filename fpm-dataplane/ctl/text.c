/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines for people: broken at words before the last column, never on the way to a file or to
 * another program, where a line is what is looked for and nothing may be cut.
 */
#include "ctl/ctl.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH     80
#define WIDTH_MIN 20 /* of what is left of the indent: for words beyond it, a line each */

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

/* Columns of the terminal, at least 80, for tables take so many; 0: it is none. */
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

/* Octets of a word of `n`, of which `room` have it, that stand together. */
static int
piece(const char *word, int n, int room)
{
	int at = room;

	if (n <= room)
		return n;
	while (at > 0 && strchr("/,=:", word[at - 1]) == NULL)
		at--;
	if (at > 0)
		return at;
	for (at = room; at > 1 && ((uint8_t)word[at] & 0xc0) == 0x80; at--)
		continue; /* inside of a character */
	return at;
}

/*
 * `text` from column `at` on, what does not fit `width` below, `indent` from the left.
 * `split`: words too, of which a line is too short.
 */
static void
wrap(FILE *out, const char *text, int at, int indent, int width, bool split)
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
		some = split && room > 0 ? piece(text + gap, n, room) : n;
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
		abort(); /* some hundred octets */
	wrap(out, text, 0, 24, WIDTH, false);
	free(text);
}

void
wrapped_print(const char *text, int indent)
{
	wrap(stdout, text, indent, indent, WIDTH, terminal_width() > 0);
}

void
line_print(int indent, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort(); /* some hundred octets */
	va_end(ap);
	if (terminal_width() == 0)
		puts(text);
	else
		wrap(stdout, text, 0, indent, terminal_width(), true);
	free(text);
}
