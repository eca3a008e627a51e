/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * audit_state: the state of `fpmctl audit`, and the reading of each side: the RIB, zebra,
 * the kernel. Private to cmd_audit.c and audit_read.c.
 */
#ifndef CTL_AUDIT_STATE_H
#define CTL_AUDIT_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefix.h"
#include "ctl/audit_labels.h"
#include "ctl/audit_links.h"
#include "ctl/audit_rules.h"
#include "ctl/audit_table.h"
#include "ctl/kernel_links.h"

/* The side with which the RIB is compared. */
enum peer { PEER_ZEBRA, PEER_KERNEL, N_PEERS };

struct comparison {
	size_t n_rib, n_peer;
	unsigned long long n_found, n_undecided; /* differences; routes not compared */
	/* PEER_KERNEL: routes that the daemon does not read, in tables of rules */
	unsigned long long n_not_obeyed;
	/*
	 * PEER_KERNEL: the number of differences in n_found in which only the kernel's copy
	 * of zebra's route differs
	 */
	unsigned long long n_copies;
	bool done;
};

struct audit {
	const char *socket, *vtysh;
	bool json, repair;
	char from[8];   /* routes.from of the daemon */
	enum peer peer; /* the other side of the present comparison */
	struct comparison with[N_PEERS];
	struct label_audit labels;
	struct rule_audit rules;
	struct link_audit interfaces;
	size_t n_interfaces_differ; /* settings of interfaces that differ */
	long long n_warnings;       /* settings of the kernel that are not obeyed */
	struct table rib, other;    /* `other`: the routes of side `peer` */
	/* other.n and n_not_obeyed at the start of the kernel's present answer */
	size_t other_kept;
	unsigned long long not_obeyed_kept;
	struct kernel_link *links; /* of the kernel; NULL: not read */
	int n_links;
	struct places places; /* 0: main; then the VRFs with a FIB */
	uint32_t n_vrfs;      /* VRFs of the daemon, and VRFs that only zebra has */
	uint32_t asking;      /* the place of the current query */
	json_t *differences;  /* rows for --json */
	unsigned long long n_fib;
	json_t *checked; /* the daemon's last row */
	/* The route that was looked up: its next hops in the RIB and the other side. */
	char *one, *theirs; /* NULL: no route */
	/*
	 * the next hops of the RIB and of the kernel in the form of copies: enum spelling
	 */
	char *one_copy, *theirs_copy;
	uint64_t theirs_rank;
	bool one_of_zebra, theirs_of_zebra;
};

/*
 * Ask the daemon, and call `on_row` with the state of the audit for each row. Owns
 * `request`. This and the functions below return an exit code of fpmctl, unless stated
 * otherwise.
 */
int audit_ask(struct audit *a, json_t *request,
	      bool (*on_row)(const json_t *row, const char *text, void *ctx));
/* Read the list of tables, and the routes of the RIB. */
int audit_ask_rib(struct audit *a);
/* Read zebra's routes of table main, and of VRFs if there are some. */
int audit_ask_zebra(struct audit *a);
int audit_ask_kernel(struct audit *a);
/* Look up one prefix in the RIB. */
int audit_ask_one(struct audit *a, const struct prefix *p);
/*
 * Look up one prefix in zebra or in the kernel, by a->peer. Returns 0, or a negative value
 * when there is no answer.
 */
int audit_ask_theirs(struct audit *a, const struct prefix *p);

/* Return true if the daemon takes routes of the kernel from zebra, which relays them. */
bool audit_kernels_by_zebra(const struct audit *a);
/*
 * Return true if the text is ZEBRA_UNDECIDED: the other side has not decided. NULL: false.
 */
bool audit_hops_undecided(const char *hops);

#endif
