/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the filter thread. Private to filter/. [filter] */
#ifndef FILTER_THREAD_H
#define FILTER_THREAD_H

#include <ev.h>

#include "base/filter_tables.h"
#include "filter/filter.h"
#include "filter/impl.h"
#include "filter/packets.h"

enum filter_state {
	FILTER_OFF,      /* the configuration names no table */
	FILTER_IN_FORCE, /* the kernel's present ruleset */
	FILTER_OLD,      /* an earlier ruleset: the present one is refused */
	FILTER_ABSENT,   /* no ruleset: all packets pass, or all are dropped */
};

struct filter {
	struct worker *w;
	struct filter_conf conf;
	struct filter_table table[FILTER_TABLES_MAX];
	char prefix[FILTER_TABLES_MAX][FILTER_TABLE_TEXT + 1];
	unsigned int n_table;
	int ask; /* socket for requests; negative: closed, or -errno */
	/* its fd is the socket for events; negative as in `ask` */
	struct filter_events events;
	ev_io events_io;
	struct ruleset_reclaim reclaim;
	ev_timer due; /* the next read */
	enum filter_state state;
	bool again;        /* read the tables although the generation is known */
	uint32_t seen;     /* generation that was read last */
	uint64_t since_ms; /* monotonic, of the present publication */
	struct packets packets;
	struct ruleset *kept; /* states of rules while there is no ruleset; NULL: none */
	char why[FILTER_WHY]; /* why the table is not in force; "": it is */
};

#endif
