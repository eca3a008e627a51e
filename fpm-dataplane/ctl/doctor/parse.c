/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse texts of /proc, /sys and vtysh. No files, no state, so unit tests can pass texts
 * of other machines.
 */
#include "ctl/doctor/parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse a CPU number at *p and move *p past it; -1: none, or too large for a set. */
static int
cpu_take(const char **p)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**p))
		return -1;
	n = strtoul(*p, &end, 10);
	*p = end;
	return n < CPU_SETSIZE ? (int)n : -1;
}

int
cpulist_parse(const char *text, cpu_set_t *out)
{
	const char *p = text;

	CPU_ZERO(out);
	if (strcmp(text, "(null)") == 0) /* nohz_full without CPUs */
		return 0;
	while (*p != '\0' && *p != '\n') {
		int first = cpu_take(&p), last = first;

		if (first >= 0 && *p == '-') {
			p++;
			last = cpu_take(&p);
		}
		if (last < first || first < 0 || (*p != ',' && *p != '\n' && *p != '\0')) {
			CPU_ZERO(out);
			return -EINVAL;
		}
		for (int cpu = first; cpu <= last; cpu++)
			CPU_SET(cpu, out);
		p += *p == ',';
	}
	return 0;
}

const char *
cpulist_text(const cpu_set_t *cpus, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		char word[32];
		int last = cpu;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		if (last > cpu)
			snprintf(word, sizeof(word), "%s%d-%d", n > 0 ? "," : "", cpu,
				 last);
		else
			snprintf(word, sizeof(word), "%s%d", n > 0 ? "," : "", cpu);
		if (n + strlen(word) >= size)
			break;
		n += (size_t)snprintf(buf + n, size - n, "%s", word);
		cpu = last;
	}
	return buf;
}

bool
has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; len > 0 && (p = strstr(p, word)) != NULL; p += len)
		if ((p == text || isspace((unsigned char)p[-1])) &&
		    (p[len] == '\0' || isspace((unsigned char)p[len])))
			return true;
	return false;
}

/* Return the rest of the line that begins with `key`; NULL: there is none. */
static const char *
line_find(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text != NULL && *text != '\0') {
		if (strncmp(text, key, len) == 0)
			return text + len;
		text = strchr(text, '\n');
		text = text != NULL ? text + 1 : NULL;
	}
	return NULL;
}

int
limit_parse(const char *text, const char *row, unsigned long long *soft)
{
	const char *p = line_find(text, row);

	if (p == NULL)
		return -ENOENT;
	p += strspn(p, " \t");
	if (strncmp(p, "unlimited", strlen("unlimited")) == 0) {
		*soft = UINT64_MAX;
		return 0;
	}
	return sscanf(p, "%llu", soft) == 1 && isdigit((unsigned char)*p) ? 0 : -ENOENT;
}

static int
line_number(const char *text, const char *key, const char *format,
	    unsigned long long *value)
{
	const char *p = line_find(text, key);

	return p != NULL && *p == ':' && sscanf(p + 1, format, value) == 1 ? 0 : -ENOENT;
}

int
status_parse(const char *text, const char *key, unsigned long long *value)
{
	return line_number(text, key, "%llu", value);
}

int
status_parse_hex(const char *text, const char *key, unsigned long long *value)
{
	return line_number(text, key, "%llx", value);
}

/*
 * Return the next word and move *p past it; NULL at the end. A last word without its zero
 * does not count.
 */
static const char *
word_next(const char **p, const char *end)
{
	const char *word = *p;
	size_t len = word < end ? strnlen(word, (size_t)(end - word)) : 0;

	if (word >= end || word + len == end)
		return NULL;
	*p = word + len + 1;
	return word;
}

static bool
word_names_module(const char *word, const char *module)
{
	size_t len = strlen(module);

	return strncmp(word, module, len) == 0 && (word[len] == '\0' || word[len] == ':');
}

bool
cmdline_loads(const char *cmdline, size_t len, const char *module)
{
	const char *p = cmdline, *end = cmdline + len, *word;

	while ((word = word_next(&p, end)) != NULL) {
		if (strcmp(word, "-M") == 0 || strcmp(word, "--module") == 0) {
			word = word_next(&p, end);
			if (word == NULL || word_names_module(word, module))
				return word != NULL;
		} else if (strncmp(word, "--module=", 9) == 0) {
			if (word_names_module(word + 9, module))
				return true;
		} else if (strncmp(word, "-M", 2) == 0 &&
			   word_names_module(word + 2, module)) {
			return true;
		}
	}
	return false;
}

bool
cmdline_has(const char *cmdline, size_t len, const char *word)
{
	const char *p = cmdline, *end = cmdline + len, *at;

	while ((at = word_next(&p, end)) != NULL)
		if (strcmp(at, word) == 0)
			return true;
	return false;
}

const char *
cmdline_value(const char *cmdline, size_t len, const char *option)
{
	const char *p = cmdline, *end = cmdline + len, *at;
	size_t n = strlen(option);

	while ((at = word_next(&p, end)) != NULL) {
		if (strcmp(at, option) == 0)
			return word_next(&p, end);
		if (strncmp(at, option, n) == 0 && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

bool
cmdline_is(const char *cmdline, size_t len, const char *name)
{
	const char *p = cmdline, *word = word_next(&p, cmdline + len), *slash;

	if (word == NULL)
		return false;
	slash = strrchr(word, '/');
	return strcmp(slash != NULL ? slash + 1 : word, name) == 0;
}

/* Parse a port; "" is the default port of bfdd. Returns 0 if it is no port. */
static unsigned int
bfdd_port(const char *text)
{
	if (text[0] == '\0')
		return BFDD_PORT;
	if (text[0] != ':' || text[1] == '\0' || strlen(text) > 6 ||
	    strspn(text + 1, "0123456789") != strlen(text + 1))
		return 0;
	return (unsigned int)strtoul(text + 1, NULL, 10) <= 65535
		       ? (unsigned int)strtoul(text + 1, NULL, 10)
		       : 0;
}

/*
 * Parse "ADDRESS[:PORT]", for IPv6 "[ADDRESS][:PORT]", and write it to `at` with its port.
 * Return false if it is neither.
 */
static bool
bfdd_address(const char *text, int family, char at[BFDD_AT_STRLEN])
{
	const char *begin = text + (family == AF_INET6), *end;
	char address[INET6_ADDRSTRLEN];
	uint8_t octets[16];
	unsigned int port;

	if (family == AF_INET6 && text[0] != '[')
		return false;
	end = begin + strcspn(begin, family == AF_INET6 ? "]" : ":");
	if ((family == AF_INET6 && *end != ']') || (size_t)(end - begin) >= sizeof(address))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int)(end - begin), begin);
	port = bfdd_port(end + (family == AF_INET6));
	if (port == 0 || inet_pton(family, address, octets) != 1)
		return false;
	inet_ntop(family, octets, address, sizeof(address));
	snprintf(at, BFDD_AT_STRLEN, family == AF_INET6 ? "[%s]:%u" : "%s:%u", address,
		 port);
	return true;
}

enum bfdd_option
bfdd_option_parse(const char *value, char at[BFDD_AT_STRLEN])
{
	static const struct {
		const char *type;
		enum bfdd_option is;
		int family;
	} known[] = {
		{"ipv4:", BFDD_LISTENS, AF_INET}, {"ipv6:", BFDD_LISTENS, AF_INET6},
		{"unix:", BFDD_LISTENS_UNIX, 0},  {"ipv4c:", BFDD_CONNECTS, 0},
		{"ipv6c:", BFDD_CONNECTS, 0},     {"unixc:", BFDD_CONNECTS, 0},
	};

	at[0] = '\0';
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].type);

		if (strncmp(value, known[i].type, n) != 0)
			continue;
		if (known[i].is == BFDD_LISTENS &&
		    !bfdd_address(value + n, known[i].family, at))
			return BFDD_INVALID;
		return known[i].is;
	}
	return BFDD_INVALID;
}

bool
bfdd_hears_at(const char *at, const char *dplane)
{
	const char *port = strrchr(at, ':'), *wanted = strrchr(dplane, ':');
	bool any = strncmp(at, "0.0.0.0:", 8) == 0 || strncmp(at, "[::]:", 5) == 0;

	if (!any || port == NULL || wanted == NULL)
		return strcmp(at, dplane) == 0;
	return (at[0] == '[') == (dplane[0] == '[') && strcmp(port, wanted) == 0;
}

int
summary_parse(const json_t *summary, long long *least, long long *most)
{
	const json_t *rows = json_object_get(summary, "routes"), *row;
	size_t i;

	*least = *most = 0;
	if (!json_is_array(rows))
		return -EPROTO;
	json_array_foreach (rows, i, row) {
		const char *type = json_string_value(json_object_get(row, "type"));
		const json_t *fib = json_object_get(row, "fib");

		if (type == NULL || !json_is_integer(fib))
			return -EPROTO;
		if (strcmp(type, "connected") == 0 || strcmp(type, "local") == 0)
			continue;
		*most += json_integer_value(fib);
		if (strcmp(type, "kernel") != 0)
			*least += json_integer_value(fib);
	}
	return 0;
}
