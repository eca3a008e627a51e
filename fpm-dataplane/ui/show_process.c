/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make the answers about the process: its threads as the kernel sees them, memory and
 * tables, version, and the last lines of the log. Runs in ui. The values of rib come from
 * its last summary.
 */
#include "ui/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bfd_status.h"
#include "base/clock.h"
#include "base/fpm_event.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "port/port.h"
#include "tap-bridge/netns.h"

/*
 * Fields of /proc/PID/stat, counted from 0 at the state, which follows the name. proc(5)
 * gives the state the number 3, and the CPU the number 39.
 */
#define FIELD_UTIME 11
#define FIELD_STIME 12
#define FIELD_CPU   36

/* Make the row of a thread; NULL when it has ended. */
static json_t *
thread_row(const char *tid)
{
	char path[64], text[1024], *at, *name;
	double tick = (double)sysconf(_SC_CLK_TCK);
	unsigned long long utime = 0, stime = 0, cpu = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	name = strchr(text, '(');
	at = strrchr(text, ')'); /* a name may contain any character */
	if (name == NULL || at == NULL)
		return NULL;
	*at = '\0';
	at += 2;
	for (unsigned int i = 0; i <= FIELD_CPU && at != NULL; i++) {
		if (i == FIELD_UTIME)
			utime = strtoull(at, NULL, 10);
		else if (i == FIELD_STIME)
			stime = strtoull(at, NULL, 10);
		else if (i == FIELD_CPU)
			cpu = strtoull(at, NULL, 10);
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return json_pack("{s:s, s:I, s:I, s:f}", "thread", name + 1, "tid",
			 (json_int_t)atoll(tid), "cpu", (json_int_t)cpu, "cpu_s",
			 (double)(utime + stime) / tick);
}

void
show_threads(struct rows *out)
{
	DIR *dir = opendir("/proc/self/task");

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		json_t *row = e->d_name[0] == '.' ? NULL : thread_row(e->d_name);

		if (row != NULL)
			rows_put(out, row);
	}
	if (dir != NULL)
		closedir(dir);
}

static void
show_log_line(void *out, const char *line, size_t len)
{
	json_t *text = json_stringn(line, len);

	if (text != NULL) /* NULL: invalid UTF-8, cut within a character */
		rows_put(out, json_pack("{s:o}", "line", text));
}

void
show_log(struct rows *out)
{
	log_recent(show_log_line, out);
}

uint64_t
proc_status_bytes(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t n = strlen(key);
	unsigned long long kib = 0;
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, n) == 0 && line[n] == ':') {
			kib = strtoull(line + n + 1, NULL, 10);
			break;
		}
	if (f != NULL)
		fclose(f);
	return kib << 10;
}

static json_t *
tables_json(void)
{
	json_t *rows = json_array();

	for (unsigned int t = 0; t < N_TABLE; t++) {
		struct table_state s = table_state((enum table)t);

		json_array_append_new(
			rows, json_pack("{s:s, s:I, s:I, s:I, s:s?, s:s}", "table", s.name,
					"used", (json_int_t)s.used, "max",
					(json_int_t)s.max, "refused", (json_int_t)s.refused,
					"key", s.key, "text", s.text));
	}
	return rows;
}

static json_t *
memory_row(const struct ui *ui)
{
	static const char *const of_rib[] = {"rib_bytes", "fib4", "fib6", "fib_copies"};
	json_t *row = json_pack("{s:I, s:I, s:I}", "rss_bytes",
				(json_int_t)proc_status_bytes("VmRSS"), "peak_rss_bytes",
				(json_int_t)proc_status_bytes("VmHWM"), "queue_bytes",
				(json_int_t)queue_depth());
	unsigned int n, n_free;

	port_buffers(&ui->conf.port[0], &n, &n_free);
	json_object_set_new(row, "packet_buffers", json_integer(n));
	json_object_set_new(row, "packet_buffers_free", json_integer(n_free));
	json_object_set_new(row, "tables", tables_json());
	for (unsigned int i = 0; i < 4; i++) {
		json_t *value = json_object_get(ui->summary, of_rib[i]);

		if (value != NULL)
			json_object_set(row, of_rib[i], value);
	}
	return row;
}

static json_t *
version_row(const struct ui *ui)
{
	const char *netns = ui->conf.netns;
	char why[SD_WHY_STRLEN];
	unsigned int refused = sd_refusal_count(why);
	json_t *cpus = json_array();

	for (unsigned int i = 0; i < ui->conf.n_fwd; i++)
		json_array_append_new(cpus, json_integer(ui->conf.cpu[i]));
	return json_pack(
		"{s:s, s:s?, s:i, s:I, s:s?, s:s?, s:b, s:s?, s:s, s:s, s:s, s:s, s:s, "
		"s:b, s:i, s:o, "
		"s:i, s:s?, s:s?, s:i}",
		"version", ui->conf.version, "dpdk", ui->conf.dpdk, "pid", (int)getpid(),
		"uptime_s", (json_int_t)(monotonic_s() - ui->started_s), "config",
		ui->conf.config_file, "control_netns",
		netns != NULL && netns[0] != '\0' ? netns : NULL, "control_netns_lost",
		netns_name_is_lost(netns), "fpm_listen", ui->conf.fpm_listen, "routes_from",
		ui->conf.routes_from, "instructions", ui->conf.instructions,
		"instructions_best", ui->conf.instructions_best, "lookup_instructions",
		ui->conf.lookup_instructions, "lookup_instructions_best",
		ui->conf.lookup_instructions_best, "hugepages", ui->conf.hugepages,
		"memory_mib", (int)ui->conf.memory_mib, "cpus", cpus, "restarts_refused",
		(int)refused, "restart_refused", refused > 0 ? why : NULL, "bfd_dplane",
		ui->conf.bfd_dplane, "bfd_connections",
		(int)atomic_load_explicit(&bfd_status.connections, memory_order_relaxed));
}

void
show_memory(const struct ui *ui, struct rows *out)
{
	rows_put(out, memory_row(ui));
}

void
show_version(const struct ui *ui, struct rows *out)
{
	rows_put(out, version_row(ui));
}
