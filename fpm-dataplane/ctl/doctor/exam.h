/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exam: an examination of a machine by fpmctl doctor, and the findings of its checks. A
 * check reads files below `root` and rows of the daemon; it changes nothing.
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
	const char *root;   /* prefix of each path; "" except in unit tests */
	const char *vtysh;  /* command that queries zebra; NULL: the default */
	const char *socket; /* socket of the daemon */
	/* Rows of the daemon (dist/openapi.yaml); NULL: it does not answer. */
	json_t *version, *ports, *fpm, *interfaces;
	cpu_set_t cpus; /* CPUs that forward, if `version` has them */
	/* reason why the control namespace was not entered; NULL: it was entered */
	const char *deny;
	const char *path; /* file of the control namespace; set by exam_enter() */
	const char *in;   /* prefix of commands for that namespace: "" or "ip netns ... " */
	/*
	 * Set by zebra_find(). `looked`: it was called. `zebra`: the process of zebra in
	 * the namespace; 0: there is none.
	 */
	bool looked;
	pid_t zebra;
	/*
	 * zebra_loads: zebra loads the module. zebra_listens: zebra waits for
	 * acknowledgements.
	 */
	bool zebra_loads, zebra_listens;

	const char *check, *about; /* the running check */
	bool named;                /* checks were chosen by name */
	bool missed;               /* a check had no result because there is no daemon */
	json_t *rows;
	unsigned int n[N_VERDICT];
};

/*
 * Add a finding of the running check about `subject` (a port, or ""), in one line of text.
 * finding_cost() then sets the cost of this finding, and each call of finding_fix() adds a
 * command that repairs it. Texts are formats of printf().
 */
void finding_add(struct exam *e, enum verdict v, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Add that the control namespace was not entered, with the reason `deny`. */
void finding_add_denied(struct exam *e);
void finding_cost(struct exam *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void finding_fix(struct exam *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Add the commands that add `words` to the kernel's command line, for the next boot. */
void finding_fix_kernel_words(struct exam *e, const char *words);

/* Print a finding, at most 80 columns wide; commands are not broken. */
void finding_print(const json_t *row, bool colour);

/*
 * Read the first `size` - 1 octets of a file below the root, without the last newline.
 * Returns the number of octets, or -errno with buf "".
 */
int exam_read(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Read the last component of a symbolic link; false and buf "": there is none. */
bool exam_link(const struct exam *e, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Read a number from a file; `otherwise` when there is none. */
long long exam_number(const struct exam *e, long long otherwise, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Call each(e, name, ctx) for each entry of a folder, except names that begin with a dot.
 */
void exam_folder(struct exam *e, const char *path,
		 void (*each)(struct exam *e, const char *name, void *ctx), void *ctx);

/* Return the NUMA node of a CPU, -1: unknown. */
int exam_cpu_node(const struct exam *e, unsigned int cpu);

/*
 * Request all rows, or the first row, from the daemon. NULL: no answer; the error was
 * printed to stderr.
 */
json_t *exam_ask(const struct exam *e, const char *show);
json_t *exam_ask_one(const struct exam *e, const char *show);
/*
 * Request the route to an address in a VRF, "": table main. NULL: there is none, or no
 * answer.
 */
json_t *exam_route(const struct exam *e, const char *vrf, const char *address);

/* The narrowest link to far ends that get packets with outer headers. */
struct narrow {
	char dev[64];
	long long room; /* octets of the largest inner packet that fits; 0: no link known */
};
/*
 * Look up the route to a far end, and update the narrowest link with the links of all its
 * next hops (tunnels.c).
 *
 * vrf       VRF of the lookup; "": table main
 * overhead  octets of the outer headers
 */
void narrow_find(struct exam *e, struct narrow *n, const char *vrf, const char *address,
		 long long overhead);

/* Return the daemon's process id, 0: no answer. */
pid_t exam_pid(const struct exam *e);
/*
 * Return true if the daemon does not answer. Then it adds a finding, with `untold` after
 * "no daemon" (": forwarding CPUs unknown", or ""), and notes that the check had no result.
 */
bool exam_no_daemon(struct exam *e, const char *untold);
/* Return true, and add a finding, if zebra is not needed by the configuration. */
bool exam_no_zebra_wanted(struct exam *e);
/*
 * Enter the network namespace of the TAPs, by its name or else by the daemon's process.
 * The process stays there until it ends, because socket paths and all files except
 * /proc/sys/net are the same in both namespaces.
 */
void exam_enter(struct exam *e);

/*
 * Call each(e, address, name, port) for each PCI device that the daemon has as a port;
 * without a daemon for each network controller (name "", port NULL). Returns the number of
 * devices.
 */
unsigned int exam_pci(struct exam *e, void (*each)(struct exam *e, const char *address,
						   const char *name, const json_t *port));

/* The checks. cmd_doctor.c has their order, names and descriptions. */
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
void check_obeyed(struct exam *e);
void check_filter(struct exam *e);
void check_flowspec(struct exam *e);
void check_sflow(struct exam *e);
void check_bfd(struct exam *e);
void check_vrfs(struct exam *e);
void check_below(struct exam *e);
void check_mpls(struct exam *e);
void check_srv6(struct exam *e);
void check_tunnels(struct exam *e);
void check_kernel(struct exam *e);
void check_frr(struct exam *e);
void check_frr_version(struct exam *e);
void check_fpm(struct exam *e);
void check_routes(struct exam *e);

#endif
