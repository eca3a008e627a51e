/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: one examination of a machine, and what its checks write down. A check reads
 * files below `root` and rows of the daemon; it changes nothing.
 */
#ifndef CTL_DOCTOR_EXAM_H
#define CTL_DOCTOR_EXAM_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum verdict { VERDICT_OK, VERDICT_NA, VERDICT_WARN, VERDICT_FAIL, N_VERDICT };
const char *verdict_name(enum verdict v); /* "ok", "n/a", "warn", "fail" */

struct exam {
	const char *root;   /* stands before each path; "" but in unit tests */
	const char *vtysh;  /* command that asks zebra, NULL: the usual one */
	const char *socket; /* the daemon's */
	/* Of the daemon, NULL when none answers: rows of dist/openapi.yaml. */
	json_t *version, *ports, *fpm, *interfaces;
	cpu_set_t cpus;   /* that forward, when `version` tells */
	const char *deny; /* why the control namespace could not be entered; NULL: it was */
	const char *
		in; /* words before a command that is to run there: "" or "ip netns ... " */
	/* Zebra's process there, as zebra_find() has found it; 0: none. */
	bool looked;
	pid_t zebra;
	bool zebra_loads, zebra_listens; /* our module; to acknowledgements */

	const char *check, *about; /* now running */
	bool missed; /* a check came to nothing, for only the daemon could have told */
	json_t *rows;
	unsigned int n[N_VERDICT];
};

/*
 * Write down what the running check found, of `subject` (a port, ""), in one line of text.
 * Then, of the same finding: what it costs, and a command that mends it (each call one
 * more). Texts are printf's.
 */
void finding_add(struct exam *e, enum verdict v, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void finding_cost(struct exam *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void finding_fix(struct exam *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The commands that give the kernel `words` at its next start. */
void finding_fix_kernel_words(struct exam *e, const char *words);

/* Print one finding for people: at most 80 columns, but commands stay whole. */
void finding_print(const json_t *row, bool colour);

/*
 * The first `size` - 1 octets of a file below the root, the last newline cut off.
 * Returns octets, or -errno with buf "".
 */
int exam_read(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The last part of where a link leads; false and buf "": there is none. */
bool exam_link(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A number in a file; `otherwise` when there is none. */
long long exam_number(const struct exam *e, long long otherwise, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Call each(e, name, ctx) for what is in a folder; "." and ".." left out. */
void exam_folder(struct exam *e, const char *path,
		 void (*each)(struct exam *e, const char *name, void *ctx), void *ctx);

/* NUMA node of a CPU, -1: not told. */
int exam_cpu_node(const struct exam *e, unsigned int cpu);

/* All rows of the daemon, or the first; NULL: no answer, which was said on stderr. */
json_t *exam_ask(const struct exam *e, const char *show);
json_t *exam_ask_one(const struct exam *e, const char *show);

/* The daemon's process, 0: none answers. */
pid_t exam_pid(const struct exam *e);
/*
 * Does none answer? Then that is written down, with what nobody tells (": nobody says ...", ""),
 * and that the daemon was missed: such a check is nothing that was found to be well.
 */
bool exam_no_daemon(struct exam *e, const char *untold);
/*
 * To where the TAPs are: by name, else where the daemon is. There is no way back, and no
 * need of one: sockets on paths, and all that is not /proc/sys/net, are the same there.
 */
void exam_enter(struct exam *e);

/*
 * Call each(e, address, name, port) for every PCI device the daemon has as a port; without a
 * daemon for every network controller (name "", port NULL). Returns how many.
 */
unsigned int exam_pci(struct exam *e, void (*each)(struct exam *e, const char *address,
						   const char *name, const json_t *port));

/* The checks; cmd_doctor.c has their order, names and words. */
void check_hugepages(struct exam *e);
void check_iommu(struct exam *e);
void check_memlock(struct exam *e);
void check_files(struct exam *e);
void check_pcie_link(struct exam *e);
void check_ext_tag(struct exam *e);
void check_read_request(struct exam *e);
void check_numa(struct exam *e);
void check_isolation(struct exam *e);
void check_governor(struct exam *e);
void check_smt(struct exam *e);
void check_clock(struct exam *e);
void check_rss(struct exam *e);
void check_queues(struct exam *e);
void check_links(struct exam *e);
void check_rp_filter(struct exam *e);
void check_forwarding(struct exam *e);
void check_members(struct exam *e);
void check_frr(struct exam *e);
void check_fpm(struct exam *e);
void check_routes(struct exam *e);

#endif
