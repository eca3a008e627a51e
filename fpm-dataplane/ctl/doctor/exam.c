/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the checks of fpmctl doctor share: read the machine, add findings, print
 * them. A file that cannot be read counts as absent; the check decides what that means.
 */
#include "ctl/doctor/exam.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/cli.h"
#include "ctl/conn.h"
#include "pci/device.h"
#include "base/sysfs.h"

#define COLUMNS  80
#define INDENT   8  /* indent of the cost of a finding, and of commands */
#define TEXT_COL 24 /* column of a finding's text, when its subject is short */

static const struct {
	const char *name, *head, *colour;
} verdict_info[N_VERDICT] = {
	[VERDICT_OK] = {"ok", "OK", "\033[32m"},
	[VERDICT_NA] = {"n/a", "n/a", ""},
	[VERDICT_WARN] = {"warn", "WARN", "\033[33m"},
	[VERDICT_FAIL] = {"fail", "FAIL", "\033[31m"},
};

const char *
verdict_name(enum verdict v)
{
	return verdict_info[v].name;
}

/* --- findings ------------------------------------------------------------------------- */

static json_t *
text_make(const char *fmt, va_list ap)
{
	char *text = NULL;
	json_t *json;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	/* Texts of the machine may be malformed UTF-8 or have control characters. */
	log_harmless(text);
	json = json_string(text);
	free(text);
	return json;
}

void
finding_add(struct exam *e, enum verdict v, const char *subject, const char *fmt, ...)
{
	va_list ap;
	json_t *text;

	va_start(ap, fmt);
	text = text_make(fmt, ap);
	va_end(ap);
	json_array_append_new(e->rows, json_pack("{s:s, s:s, s:s, s:s, s:o, s:n, s:[]}",
						 "check", e->check, "subject", subject,
						 "status", verdict_name(v), "about",
						 e->about, "text", text, "cost", "fix"));
	e->n[v]++;
}

void
finding_add_denied(struct exam *e)
{
	bool root_may = strcmp(e->deny, strerror(EPERM)) == 0 ||
			strcmp(e->deny, strerror(EACCES)) == 0;

	finding_add(e, VERDICT_NA, "", "no access to the control namespace: %s%s", e->deny,
		    root_may ? "; run as root" : "");
}

static json_t *
finding_latest(const struct exam *e)
{
	return json_array_get(e->rows, json_array_size(e->rows) - 1);
}

void
finding_cost(struct exam *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_object_set_new(finding_latest(e), "cost", text_make(fmt, ap));
	va_end(ap);
}

void
finding_fix(struct exam *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_array_append_new(json_object_get(finding_latest(e), "fix"),
			      text_make(fmt, ap));
	va_end(ap);
}

void
finding_fix_kernel_words(struct exam *e, const char *words)
{
	finding_fix(e, "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&%s /' /etc/default/grub", words);
	finding_fix(e, "update-grub && reboot");
}

/* Print `text` from `column` on; continue below at `indent`. */
static void
finding_wrap(const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (!first && column + 1 + len > COLUMNS) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		first = false;
		text += len;
		text += *text == ' ';
	}
	putchar('\n');
}

void
finding_print(const json_t *row, bool colour)
{
	const char *subject = row_str(row, "subject"), *costs = row_str(row, "cost");
	const json_t *command;
	size_t i;
	int column = 6;

	for (i = 0; i < N_VERDICT; i++)
		if (strcmp(row_str(row, "status"), verdict_info[i].name) == 0)
			printf("%s%-4s%s  ", colour ? verdict_info[i].colour : "",
			       verdict_info[i].head,
			       colour && verdict_info[i].colour[0] != '\0' ? "\033[0m"
									   : "");
	column += printf("%s%s%s", row_str(row, "check"), subject[0] != '\0' ? " " : "",
			 subject);
	/* The text begins at TEXT_COL, or two blanks after a longer subject. */
	i = column + 2 > TEXT_COL ? 2 : (size_t)(TEXT_COL - column);
	printf("%*s", (int)i, "");
	finding_wrap(row_str(row, "text"), (size_t)column + i, TEXT_COL);
	if (costs[0] != '\0') {
		printf("%*s", INDENT, "");
		finding_wrap(costs, INDENT, INDENT);
	}
	json_array_foreach (json_object_get(row, "fix"), i, command)
		printf("%*s%s%s\n", INDENT - 2, "", "$ ", json_string_value(command));
}

/* --- the machine ---------------------------------------------------------------------- */

static void
path_make(const struct exam *e, char path[PATH_MAX], const char *fmt, va_list ap)
{
	size_t n = (size_t)snprintf(path, PATH_MAX, "%s", e->root);

	if (n < PATH_MAX)
		vsnprintf(path + n, PATH_MAX - n, fmt, ap);
}

int
exam_read(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	path_make(e, path, fmt, ap);
	va_end(ap);
	n = sysfs_read(path, buf, size);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	return n;
}

bool
exam_link(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	path_make(e, path, fmt, ap);
	va_end(ap);
	return sysfs_read_link(path, buf, size);
}

long long
exam_number(const struct exam *e, long long otherwise, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	path_make(e, path, fmt, ap);
	va_end(ap);
	return sysfs_read_number(path, otherwise);
}

void
exam_folder(struct exam *e, const char *path,
	    void (*each)(struct exam *e, const char *name, void *ctx), void *ctx)
{
	char full[PATH_MAX];
	struct dirent **entry;
	int n;

	snprintf(full, sizeof(full), "%s%s", e->root, path);
	n = scandir(full, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (entry[i]->d_name[0] != '.')
			each(e, entry[i]->d_name, ctx);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

static void
cpu_on_entry(struct exam *e, const char *name, void *ctx)
{
	int node;

	if (sscanf(name, "node%d", &node) == 1)
		*(int *)ctx = node;
}

int
exam_cpu_node(const struct exam *e, unsigned int cpu)
{
	char path[64];
	int node = -1;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	exam_folder((struct exam *)(uintptr_t)e, path, cpu_on_entry, &node);
	return node;
}

/* --- the daemon ----------------------------------------------------------------------- */

json_t *
exam_ask(const struct exam *e, const char *show)
{
	json_t *rows = json_array();

	if (conn_fetch(e->socket, json_pack("{s:s}", "show", show), rows) == CTL_OK)
		return rows;
	json_decref(rows);
	return NULL;
}

json_t *
exam_ask_one(const struct exam *e, const char *show)
{
	json_t *rows = exam_ask(e, show);
	json_t *row = json_incref(json_array_get(rows, 0));

	json_decref(rows);
	return row;
}

json_t *
exam_route(const struct exam *e, const char *vrf, const char *address)
{
	json_t *rows = json_array(), *row = NULL, *ask;

	ask = json_pack("{s:s, s:s, s:b}", "show", "routes", "prefix", address, "longest",
			1);
	if (vrf[0] != '\0')
		json_object_set_new(ask, "vrf", json_string(vrf));
	if (conn_fetch(e->socket, ask, rows) == CTL_OK)
		row = json_incref(json_array_get(rows, 0));
	json_decref(rows);
	return row;
}

pid_t
exam_pid(const struct exam *e)
{
	return e->version != NULL ? (pid_t)row_int(e->version, "pid") : 0;
}

bool
exam_no_daemon(struct exam *e, const char *untold)
{
	if (e->version != NULL)
		return false;
	finding_add(e, VERDICT_NA, "", "no daemon%s", untold);
	e->missed = true;
	return true;
}

void
exam_enter(struct exam *e)
{
	static char path[300], words[320];
	const char *name = row_str(e->version, "control_netns");
	struct stat there, here;
	int fd;

	e->in = "";
	e->path = path;
	if (e->version == NULL)
		return;
	if (name[0] != '\0')
		snprintf(path, sizeof(path), "/run/netns/%s", name);
	else
		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)exam_pid(e));
	if (row_true(e->version, "control_netns_lost")) {
		e->deny = "the namespace of the TAPs has lost this name; fpmctl restart "
			  "moves the TAPs to the namespace that has the name now";
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &there) < 0) {
		e->deny = strerror(errno);
	} else if (stat("/proc/self/ns/net", &here) < 0 || here.st_ino != there.st_ino) {
		if (setns(fd, CLONE_NEWNET) < 0)
			e->deny = strerror(errno);
		if (name[0] != '\0')
			snprintf(words, sizeof(words), "ip netns exec %s ", name);
		else
			snprintf(words, sizeof(words), "nsenter -n -t %d ",
				 (int)exam_pid(e));
		e->in = words;
	}
	if (fd >= 0)
		close(fd);
}

/* --- PCI devices ---------------------------------------------------------------------- */

struct pci_walk {
	struct exam *e;
	void (*each)(struct exam *e, const char *address, const char *name,
		     const json_t *port);
	unsigned int n;
};

static void
pci_walk_on_nic(const struct device *d, void *ctx)
{
	struct pci_walk *walk = ctx;

	walk->n++;
	walk->each(walk->e, d->address, "", NULL);
}

unsigned int
exam_pci(struct exam *e, void (*each)(struct exam *e, const char *address, const char *name,
				      const json_t *port))
{
	struct pci_walk walk = {.e = e, .each = each};
	char nic[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN];
	const json_t *port;
	size_t i;

	if (e->version == NULL)
		device_each(e->root, pci_walk_on_nic, &walk);
	json_array_foreach (e->ports, i, port) {
		unsigned int n = device_addresses(row_str(port, "device"), nic);

		for (unsigned int m = 0; m < n; m++)
			each(e, nic[m], row_str(port, "name"), port);
		walk.n += n;
	}
	return walk.n;
}
