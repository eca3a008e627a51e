/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel and FRR write for people, to values. Pure, no state; what is not
 * understood is refused, never guessed.
 */
#ifndef CTL_DOCTOR_PARSE_H
#define CTL_DOCTOR_PARSE_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* "0,2-3" to CPUs; "" and "(null)" are none. Returns 0, or -EINVAL: `out` is then empty. */
int cpulist_parse(const char *text, cpu_set_t *out);
/* And back. Returns buf, the list cut after its last whole word that fits. */
const char *cpulist_text(const cpu_set_t *cpus, char *buf, size_t size);

/* Is `word` among the words of `text`, which blanks, tabs and newlines separate? */
bool has_word(const char *text, const char *word);

/*
 * The soft limit of a row of /proc/PID/limits, such as "Max open files". UINT64_MAX:
 * unlimited. Returns 0, or -ENOENT when there is no such row or it has no number.
 */
int limit_parse(const char *text, const char *row, unsigned long long *soft);

/* The number of a row "KEY: 123 kB" (/proc/PID/status). Returns 0 or -ENOENT. */
int status_parse(const char *text, const char *key, unsigned long long *value);
/* The same for a hexadecimal row, CapEff. */
int status_parse_hex(const char *text, const char *key, unsigned long long *value);

/*
 * Does the command line of a program (/proc/PID/cmdline: words that end with a zero) load
 * a module: -M NAME[:ARGUMENTS], -MNAME, --module NAME, --module=NAME?
 */
bool cmdline_loads(const char *cmdline, size_t len, const char *module);
/* Is `word` one of its words? */
bool cmdline_has(const char *cmdline, size_t len, const char *word);
/* Is the program's name, without folders, `name`? */
bool cmdline_is(const char *cmdline, size_t len, const char *name);

/*
 * Routes that zebra says it installed and that are not the kernel's own, from `show ip route
 * summary json`: at least *least, and *most when all it has of protocol kernel are ones with
 * a gateway, which it passes on (the summary does not tell them apart). Returns 0 or -EPROTO.
 */
int summary_parse(const json_t *summary, long long *least, long long *most);

#endif
