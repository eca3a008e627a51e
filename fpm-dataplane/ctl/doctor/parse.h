/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse: read values from texts of the kernel and FRR. Pure, no state. Malformed text is
 * refused.
 */
#ifndef CTL_DOCTOR_PARSE_H
#define CTL_DOCTOR_PARSE_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Parse a list of CPUs, "0,2-3"; "" and "(null)" are empty. Returns 0, or -EINVAL with
 * `out` empty.
 */
int cpulist_parse(const char *text, cpu_set_t *out);
/* Format a list of CPUs. Returns buf; the list is cut after the last word that fits. */
const char *cpulist_text(const cpu_set_t *cpus, char *buf, size_t size);

/*
 * Return true if `word` is one of the words of `text`, which blanks, tabs and newlines
 * separate.
 */
bool has_word(const char *text, const char *word);

/*
 * Parse the soft limit of a row of /proc/PID/limits, such as "Max open files". UINT64_MAX:
 * unlimited. Returns 0, or -ENOENT when the row or its number is missing.
 */
int limit_parse(const char *text, const char *row, unsigned long long *soft);

/* Parse the number of a row "KEY: 123 kB" (/proc/PID/status). Returns 0 or -ENOENT. */
int status_parse(const char *text, const char *key, unsigned long long *value);
/* Parse a hexadecimal row, such as CapEff. Returns 0 or -ENOENT. */
int status_parse_hex(const char *text, const char *key, unsigned long long *value);

/*
 * Return true if a command line (/proc/PID/cmdline: words that end with a zero) loads a
 * module: -M NAME[:ARGUMENTS], -MNAME, --module NAME, --module=NAME.
 */
bool cmdline_loads(const char *cmdline, size_t len, const char *module);
/* Return true if `word` is one of the words of the command line. */
bool cmdline_has(const char *cmdline, size_t len, const char *word);
/* Return the value of `option` ("--x y" or "--x=y"), in `cmdline`; NULL: there is none. */
const char *cmdline_value(const char *cmdline, size_t len, const char *option);
/* Return true if the name of the program, without folders, is `name`. */
bool cmdline_is(const char *cmdline, size_t len, const char *name);

#define BFDD_AT_STRLEN 56
#define BFDD_PORT      50700
/* The way in which bfdd uses the address of its option --dplaneaddr. */
enum bfdd_option { BFDD_INVALID, BFDD_LISTENS, BFDD_LISTENS_UNIX, BFDD_CONNECTS };
/*
 * Parse the value, "ipv4:127.0.0.1" or "ipv6:[::1]:50700"; a type that ends in c makes bfdd
 * connect. If bfdd listens by TCP, `at` gets the address in the form of the key bfd.dplane,
 * "127.0.0.1:50700"; else "".
 */
enum bfdd_option bfdd_option_parse(const char *value, char at[BFDD_AT_STRLEN]);
/* Return true if a bfdd that listens at `at` accepts connections to `dplane`. */
bool bfdd_hears_at(const char *at, const char *dplane);

/*
 * Count the routes of `show ip route summary json` that zebra has installed and that are
 * not the kernel's own. zebra passes on only those routes of protocol kernel that have a
 * gateway. The summary does not show how many they are. So *least counts no route of
 * protocol kernel, and *most counts all of them. Returns 0 or -EPROTO.
 */
int summary_parse(const json_t *summary, long long *least, long long *most);

#endif
