/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare zebra's MPLS labels (`show mpls table`) with those of the daemon, for `audit`. */
#ifndef CTL_AUDIT_LABELS_H
#define CTL_AUDIT_LABELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct label_audit {
	size_t n_zebra, n_rib; /* labels of zebra; labels that the daemon has from zebra */
	size_t n_found;        /* labels that differ */
	json_t *differences;   /* rows with the keys of the other differences */
};

/*
 * Compare the labels. Repeat the comparison up to twice while labels differ, because both
 * sides change meanwhile. Print no differences. Return CTL_OK, or CTL_NO_DAEMON when a side
 * does not answer.
 *
 * socket  of the daemon
 * vtysh   command that asks zebra
 */
int audit_labels(const char *socket, const char *vtysh, struct label_audit *out);
void audit_labels_free(struct label_audit *a);

#endif
