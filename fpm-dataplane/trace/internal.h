/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the trace thread share. Everything here is [trace]. */
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
#define SILENCE_S   0.05  /* then ui hears from us, to see whether its client is there */
#define ROWS_MAX    256   /* of a session, on their way */
#define CHUNK_BYTES 49152 /* of pcapng in one row */
#define PCAPNG_MAX  (1u << 20) /* not yet taken; more is lost */

/* Ports that a file has a block of already. */
struct pcapng_ports {
	unsigned int n;
	uint16_t block[PORT_MAX]; /* by ifidx: number of its block from 1, 0: none */
};

/* Octets that grow; memory out aborts, as for messages. */
struct octets {
	uint8_t *data;
	size_t len, size;
};

/* One `fpmctl trace` or `fpmctl capture`. */
struct session {
	uint64_t id;    /* 0: free */
	uint32_t epoch; /* records of older sets were not for us */
	struct watch_filter filter;
	bool capture;
	bool ended;               /* takes no more records; what it has goes out */
	uint64_t n_seen, n_max;   /* packets; n_max 0: no limit */
	double until_s;           /* monotonic; 0: no limit */
	uint64_t lost_before;     /* of all rings */
	uint64_t n_lost;          /* for want of room here */
	struct msg_watch *query;  /* ui waits for an answer; NULL: ui has it */
	double asked_s;           /* since */
	struct cds_list_head row; /* struct subject, in order */
	unsigned int n_row;
	struct octets pcapng;
	struct pcapng_ports ports;
};

/* A packet on its way to a row: rib and neigh are asked about it. */
struct subject {
	struct cds_list_head list; /* session->row, or trace->explained */
	struct session *session;   /* NULL: explain, or the session is gone */
	struct msg_watch *explain; /* NULL: not explain */
	json_t *row;
	unsigned int n_waiting; /* answers to come */
};

/* A question that travels; its rows are ours, as ui's are. */
struct question {
	struct cds_list_head list; /* trace->questions */
	struct subject *subject;
	json_t *rows;
};

struct trace {
	struct trace_conf conf;
	struct worker *w;
	ev_timer tick;  /* only while a session is open */
	uint32_t epoch; /* of the set published last */
	struct session session[WATCH_SESSIONS];
	uint64_t last_id;
	struct cds_list_head explained, questions;
};

/* The row of a record (dist/openapi.yaml); the caller's. */
json_t *row_make(const struct trace *t, const struct watch_record *rec);
/* Take what rib or neigh answered into a row. */
void row_add(json_t *row, enum query_kind kind, const json_t *rows);

/* session.c */
void session_ask(struct trace *t, struct msg_watch *mw);
void session_record(struct trace *t, struct session *s, const struct watch_record *rec);
void sessions_tick(struct trace *t);
void sessions_end(struct trace *t); /* stop looking at packets */
void sessions_free(struct trace *t);
/* All answers about this subject of a session are in. */
void session_row_done(struct trace *t, struct session *s);

/* subject.c */
/* A packet to be told about; rib is asked for its route, neigh (explain) for its neighbor. */
struct subject *subject_make(struct trace *t, const struct watch_record *rec,
			     struct session *s, struct msg_watch *explain);
/* Take an answer about a packet into its row, and free it. Returns the packet. */
struct subject *subject_answered(struct msg_query *q);
void subject_free(struct subject *u);
/* Those that wait for answers, when no thread answers any more. */
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
