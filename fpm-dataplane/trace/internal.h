/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal: the declarations that the files of the trace thread share. All functions are
 * for [trace].
 */
#ifndef TRACE_INTERNAL_H
#define TRACE_INTERNAL_H

#include <ev.h>
#include <jansson.h>
#include <stddef.h>
#include <urcu/list.h>

#include "base/msg.h"
#include "fib/fib.h"
#include "port/port.h"
#include "port/watch.h"
#include "trace/trace.h"

#define TICK_S      0.001
#define SILENCE_S   0.05       /* then ui gets an empty reply, and checks its client */
#define ROWS_MAX    256        /* rows per session that are not complete or not taken */
#define CHUNK_BYTES 49152      /* bytes of pcapng in one row */
#define PCAPNG_MAX  (1u << 20) /* bytes of pcapng not yet taken; then records are lost */

/* The ports that have an interface block in the file. */
struct pcapng_ports {
	unsigned int n;
	uint16_t block[PORT_MAX]; /* by ifidx: number of its block from 1; 0: none */
};

/* A buffer that grows. The program aborts if out of memory, as for messages. */
struct octets {
	uint8_t *data;
	size_t len, size;
};

/* A session: one `fpmctl trace` or `fpmctl capture`. */
struct session {
	uint64_t id;    /* 0: free place */
	uint32_t epoch; /* of its first set; older records are of earlier sessions */
	struct watch_filter filter;
	bool capture;
	bool ended;               /* accepts no records; stored records are still sent */
	uint64_t n_seen, n_max;   /* packets; n_max 0: no limit */
	double until_s;           /* monotonic time; 0: no limit */
	uint64_t lost_before;     /* records lost in all rings before the session */
	uint64_t n_lost;          /* records lost because this session has no room */
	struct msg_watch *query;  /* the request to reply to; NULL: ui waits for no reply */
	double asked_s;           /* monotonic time of the request */
	struct cds_list_head row; /* struct subject, in order of arrival */
	unsigned int n_row;
	struct octets pcapng;
	struct pcapng_ports ports;
};

/* A packet that becomes a row. rib and neigh are asked about it. */
struct subject {
	struct cds_list_head list; /* session->row, or trace->explained */
	struct session *session;   /* NULL: explain, or the session has ended */
	struct msg_watch *explain; /* NULL: not explain */
	json_t *row;
	unsigned int n_waiting; /* replies to come */
};

/* A query to rib or neigh. trace owns its rows, as ui owns the rows of its queries. */
struct question {
	struct cds_list_head list; /* trace->questions */
	struct subject *subject;
	json_t *rows;
};

struct trace {
	struct trace_conf conf;
	struct worker *w;
	ev_timer tick;  /* runs while a session is open */
	uint32_t epoch; /* of the set published last */
	struct session session[WATCH_SESSIONS];
	uint64_t last_id;
	struct cds_list_head explained, questions;
};

/* Make the row of a record (dist/openapi.yaml). The caller frees it. */
json_t *row_make(const struct trace *t, const struct watch_record *rec);
/*
 * Return true if the labels of a packet end on this router, by the labels that the FIB has
 * now. *vrf: the number of the VRF in which the IP packet behind them is looked up, 0:
 * table main. *ip: that packet, of which the record has the fixed header.      [RCU reader]
 */
bool row_labels_end(const struct trace *t, const struct watch_record *rec, uint16_t *vrf,
		    const uint8_t **ip);
/* Add the reply of rib or neigh to a row. */
void row_add(json_t *row, enum query_kind kind, const json_t *rows);

/* session.c */
void session_ask(struct trace *t, struct msg_watch *mw);
void session_record(struct trace *t, struct session *s, const struct watch_record *rec);
void sessions_tick(struct trace *t);
void sessions_end(struct trace *t); /* remove all filters */
void sessions_free(struct trace *t);
/* Reply to ui, if it waits, after a row of the session is complete. */
void session_row_done(struct trace *t, struct session *s);

/* subject.c */
/*
 * Make the subject of a packet. Asks rib for its route and, for explain, neigh for its
 * neighbor.
 */
struct subject *subject_make(struct trace *t, const struct watch_record *rec,
			     struct session *s, struct msg_watch *explain);
/* Add a reply to the row of its packet and free the reply. Returns the packet. */
struct subject *subject_answered(struct msg_query *q);
void subject_free(struct subject *u);
/* Free the packets that wait for replies, after all threads have stopped. */
void subjects_free(struct trace *t);
void trace_reply(struct msg_watch *mw, bool done);

/* pcapng.c: append to `out`. */
void octets_put(struct octets *out, const void *data, size_t len);
void pcapng_header(struct octets *out, struct pcapng_ports *known,
		   const struct trace_conf *conf);
void pcapng_packet(struct octets *out, struct pcapng_ports *known,
		   const struct trace_conf *conf, const struct watch_record *rec,
		   uint16_t snap);

#endif
