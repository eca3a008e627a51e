/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write metrics in the text format of Prometheus, for the files of the metrics page. [ui]
 */
#ifndef UI_METRICS_H
#define UI_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "ui/internal.h"

#define P "fpmdp_"

/* Return the 64-bit value at an offset of a struct. */
static inline unsigned long long
value_at(const void *at, size_t offset)
{
	return *(const uint64_t *)((const char *)at + offset);
}

void metric_head(struct buf *b, const char *name, const char *type, const char *help);
/* Escape a label's value: backslash, quote and newline. */
const char *label_escape(const char *value, char out[64]);
void gauge_put(struct buf *b, const char *name, const char *help, uint64_t value);
/* Append a gauge in seconds, the base unit of the format. `ms`: its milliseconds. */
void seconds_put(struct buf *b, const char *name, const char *help, uint64_t ms);

/* A value that only grows. */
struct counted {
	const char *name, *label, *help; /* help: of the first line of a name; else NULL */
	uint64_t value;
};

void counted_put(struct buf *b, const struct counted *total, unsigned int n);

/*
 * metrics_services.c: append the metrics of the filter, flowspec, sFlow, BFD, and programs.
 * A service that is off has none.
 */
void filter_put(struct buf *b);
void flowspec_put(const struct ui *ui, struct buf *b);
void sflow_put(struct buf *b);
void hooks_put(const struct ui *ui, struct buf *b);
void bfd_put(const struct ui *ui, struct buf *b);

#endif
