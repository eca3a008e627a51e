/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ui's own: state of the thread, its clients, its text buffers. Everything here is touched
 * by the ui thread only.
 */
#ifndef UI_INTERNAL_H
#define UI_INTERNAL_H

#include <ev.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <urcu/list.h>

#include "base/manage.h"
#include "base/msg.h"
#include "port/port.h"
#include "port/watch.h"
#include "ui/ui.h"

#define UI_CLIENTS_MAX     256  /* connections, and queries of connections that are gone */
#define UI_REQUEST_MAX     4096 /* octets of a request line */
#define UI_SLICE_ROWS      256  /* rows asked of rib or neigh at a time */
#define UI_SUMMARY_WAIT_S  0.3  /* then the last summary known is shown */
#define UI_SUMMARY_EVERY_S 1.0

/* Text that grows; memory out aborts, as for messages. */
struct buf {
	char *data;
	size_t len, size;
	size_t off; /* octets already written to the client */
};

void buf_put(struct buf *b, const char *data, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json(struct buf *b, const json_t *row); /* and a newline */
void buf_reset(struct buf *b);                   /* empty; a large block is given back */
void buf_free(struct buf *b);

/* What a client asks for. */
enum show {
	SHOW_ROUTES,
	SHOW_NEXTHOPS,
	SHOW_NEIGHBORS,
	SHOW_PORTS,
	SHOW_COUNTERS,
	SHOW_FPM,
	SHOW_MEMORY,
	SHOW_VERSION,
	SHOW_AUDIT,
	SHOW_PUNT,
	SHOW_CYCLES,
	SHOW_INTERFACES,
	SHOW_FIB,
	SHOW_THREADS,
	SHOW_LOG,
	N_SHOW
};

struct request {
	enum show show;
	bool replay;               /* nothing to show: end the FPM session */
	bool restart;              /* nothing to show: end, to be started again */
	uint8_t breaking;          /* enum query_break; nothing to show either */
	struct manage_want change; /* .op: nothing to show, manage does it */
	bool has_prefix, longest, all_tables, repair;
	uint8_t family;
	struct prefix prefix;
	struct watch_want want; /* .ask: nothing to show, trace answers */
	char port[IFNAMSIZ];    /* of `want`; "": any */
};

/*
 * Understand one request line. Returns 0, or -EINVAL with a sentence in `why`: whatever
 * the octets are, nothing but the sentence comes of them.            [no side effects]
 */
int request_parse(const char *line, size_t len, struct request *req, char *why,
		  size_t why_size);

#define ONE_THING \
	"one thing at a time: show, do, set, config, port, trace, capture or explain"

/*
 * The same for the value of a key "trace", "capture" or "explain" (`ask`), from ui/watch.c;
 * the port's name remains to be looked up.
 */
int watch_parse(const char *ask, const json_t *value, struct request *req, char *why,
		size_t why_size);

/* The same for the value of a key "config" or "port" (ui/change.c). */
int change_parse(const char *key, const json_t *value, struct request *req, char *why,
		 size_t why_size);

/*
 * A query under way to rib or neigh. Its rows are ui's at all times, so that what still
 * travels when all threads have stopped can be freed.
 */
struct flight {
	struct cds_list_head list; /* ui->flights */
	struct client *client;     /* NULL: gone, or the summary */
	json_t *rows;
};

enum client_state {
	CLIENT_IDLE,    /* between requests */
	CLIENT_ASKING,  /* a query travels */
	CLIENT_SENDING, /* a slice is being written; the next is asked for when it is out */
	CLIENT_WAITING, /* for rib's summary */
};

struct client {
	struct cds_list_head list; /* ui->clients */
	struct ui *ui;
	uint64_t id;
	int fd;
	ev_io io;
	ev_timer patience; /* CLIENT_WAITING */
	enum client_state state;
	struct request req;
	struct flight *flight;   /* CLIENT_ASKING */
	struct msg_query *query; /* CLIENT_SENDING: holds the cursor */
	uint64_t n_rows;         /* answered so far */
	bool eof;                /* it asks no more */
	bool closing;            /* drop it when all is written */
	size_t in_len;
	char in[UI_REQUEST_MAX + 1];
	struct buf out;
};

struct metrics;

struct ui {
	struct ui_conf conf;
	struct worker *w;
	double started_s; /* monotonic */

	int listen_fd;
	dev_t socket_dev; /* of the socket's path, to remove our own only */
	ino_t socket_ino;
	ev_io accept;
	ev_timer accept_pause; /* out of descriptors: try again later */
	struct cds_list_head clients, flights;
	unsigned int n_client, n_flight;
	uint64_t last_id;

	ev_timer summary_timer;
	bool summary_asked; /* one travels */
	json_t *summary;    /* the last, an object */
	double summary_s;   /* when it came */
	bool neigh_asked;   /* one of neigh's travels */
	json_t *neigh_summary;

	struct metrics *metrics;
};

/* ui.c */
void ui_ask(struct ui *ui, struct msg_query *q, struct client *client);
void ui_summary_ask(struct ui *ui);
/* Nobody wants the rest of this answer. */
void query_drop(struct ui *ui, struct msg_query *q);

/* ctl_socket.c. Returns 0 or -errno. */
int ctl_socket_open(struct ui *ui);
void ctl_socket_close(struct ui *ui);
/* A slice for the client is back; the rows are the caller's, the query the client's. */
void client_reply(struct client *c, struct msg_query *q, const json_t *rows);
/* Answer everybody who waits for the summary. */
void clients_summary(struct ui *ui);

/* host.c: what the process says of itself. Append rows; return how many. */
unsigned int show_threads(struct buf *out);
unsigned int show_log(struct buf *out);

/* show.c: the answers made here. Append rows to `out`; return how many. */
unsigned int show_rows(struct ui *ui, enum show show, struct buf *out);
json_t *show_class(enum punt_class class);
json_t *show_port(const struct ui *ui, const struct port *port);
uint64_t proc_status_bytes(const char *key); /* "VmRSS"; 0 when unknown */

struct total {
	const char *name, *text;
	size_t offset; /* of the uint64_t in struct counters */
};
extern const struct total totals[];
extern const unsigned int n_totals;

/* Counters of the channel. */
struct fpm_count {
	const char *name, *text;
	size_t offset; /* of the _Atomic uint64_t in struct fpm_status */
};
extern const struct fpm_count fpm_counts[];
extern const unsigned int n_fpm_counts;
uint64_t fpm_count_read(const struct fpm_count *count);
uint64_t fpm_lag_ms(void); /* how long the oldest in the queue has waited */

/* http.c. Returns 0 or -errno. */
int metrics_open(struct ui *ui);
void metrics_close(struct ui *ui);

/* metrics.c */
void metrics_page(struct ui *ui, struct buf *out);

#endif
