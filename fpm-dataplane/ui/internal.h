/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ui's own: state of the thread, its clients, answers, text buffers. Everything here is touched
 * by the ui thread only.
 */
#ifndef UI_INTERNAL_H
#define UI_INTERNAL_H

#include <ev.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <urcu/list.h>

#include "base/filter.h"
#include "base/log.h"
#include "base/msg_manage.h"
#include "base/msg.h"
#include "port/port.h"
#include "port/watch.h"
#include "ui/ui.h"

#define UI_REQUEST_MAX     4096 /* octets of a request line, or of an HTTP request's body */
#define UI_WHY_MAX         512  /* octets of a sentence, its end included */
#define UI_NAME_MAX        64   /* of a row that is asked for, its end included */
#define UI_SLICE_ROWS      256  /* rows asked of rib or neigh at a time */
#define UI_SUMMARY_WAIT_S  0.3  /* then the last summary known is shown */
#define UI_SUMMARY_EVERY_S 1.0

/* Text that grows; memory out aborts, as for messages. */
struct buf {
	char *data;
	size_t len, size;
	size_t off; /* octets already written to the client */
};

void buf_reserve(struct buf *b, size_t more); /* room for so many octets behind it */
void buf_put(struct buf *b, const char *data, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json(struct buf *b, const json_t *row);
void buf_reset(struct buf *b); /* empty; a large block is given back */
void buf_free(struct buf *b);

/* Rows on their way out, as whoever asked wants them. */
enum rows_form {
	ROWS_LINES, /* a JSON object a line */
	ROWS_ARRAY, /* one JSON array, which rows_end() closes */
	ROWS_OCTETS /* what is base64 under `pcapng` */
};

struct rows {
	struct buf buf;
	enum rows_form form;
	const char *key,
		*value; /* only rows whose `key`, text or number, is this; NULL: all */
	const struct filter *choose; /* and only those; NULL: all */
	uint64_t n;                  /* put so far */
};

/* rows.c */
void rows_put(struct rows *out, json_t *row); /* the row is theirs from now on */
void rows_end(struct rows *out);

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
	SHOW_VRFS,
	SHOW_THREADS,
	SHOW_LOG,
	SHOW_DROPS,
	SHOW_GROUPS,
	N_SHOW
};

/* How it is asked for, and the key by whose value rows are chosen: NULL, by none. */
struct show_info {
	const char *name, *key;
};
extern const struct show_info show_info[N_SHOW];

struct request {
	enum show show;
	bool replay; /* nothing to show: end the FPM session */
	bool hold;   /* nothing to show: let zebra go, for `seconds` */
	unsigned int seconds;
	bool restart;              /* nothing to show: end, to be started again */
	uint8_t breaking;          /* enum query_break; nothing to show either */
	struct manage_want change; /* .op: nothing to show, manage does it */
	bool has_prefix, longest, all_tables, repair;
	uint8_t family;
	struct prefix prefix;
	char name[UI_NAME_MAX]; /* of the row to show; "": all */
	char vrf[IFNAMSIZ];     /* whose routes; "": those of main, and others */
	struct filter choose;   /* which rows */
	struct watch_want want; /* .ask: nothing to show, trace answers */
	char port[IFNAMSIZ];    /* of `want`; "": any */
};

/* Octets of a stranger as JSON, the caller's; NULL when they are none. */
json_t *request_load(const char *text, size_t len);

/* What a stranger said, printable and short, to be told in a sentence. Returns buf. */
static inline const char *
request_echo(const char *text, char buf[128])
{
	size_t len = strlen(text);

	return log_escape(text, len > 30 ? 30 : len, buf, 128);
}

/*
 * Understand one request (NULL: no JSON). Returns 0, or with a sentence in `why` -EINVAL, or
 * -ENOENT when it asks for a punt class that is none: whatever it is, nothing but the sentence
 * comes of it.                                                        [no side effects]
 */
int request_parse(const json_t *root, struct request *req, char *why, size_t why_size);

#define ONE_THING \
	"one thing at a time: show, do, set, config, port, trace, capture or explain"

/*
 * The same for the value of a key "trace", "capture" or "explain" (`ask`), from
 * ui/request_watch.c; the port's name remains to be looked up.
 */
int watch_parse(const char *ask, const json_t *value, struct request *req, char *why,
		size_t why_size);

/* The same for the value of a key "config" or "port" (ui/request_change.c). */
int change_parse(const char *key, const json_t *value, struct request *req, char *why,
		 size_t why_size);

/*
 * A query under way to rib or neigh. Its rows are ui's at all times, so that what still
 * travels when all threads have stopped can be freed.
 */
struct flight {
	struct cds_list_head list; /* ui->flights */
	struct answer *answer;     /* NULL: gone, or the summary */
	json_t *rows;
};

/* Why something was not done: an exit code of fpmctl and a status of HTTP each. */
enum refusal {
	REFUSED_NOT,     /* it was done */
	REFUSED_WORDS,   /* not understood */
	REFUSED_RIGHTS,  /* not for whom it was */
	REFUSED_MISSING, /* there is nothing of that name */
	REFUSED_CHANGE,  /* impossible as things are; nothing changed */
	REFUSED_STATE,   /* it would come to nothing now */
	REFUSED_BUSY,    /* too much at once */
	N_REFUSAL
};
struct refusal_info {
	int code;
	unsigned int status;
};
extern const struct refusal_info refusal_info[N_REFUSAL];

enum answer_state {
	ANSWER_DONE,    /* or not begun */
	ANSWER_ASKING,  /* a query travels */
	ANSWER_SLICE,   /* some rows are there; answer_more() has the next ones asked for */
	ANSWER_WAITING, /* for rib's summary */
};

/*
 * One request, whoever asked it: rows to `out`, a slice at a time, and what came of it. It
 * lies in the struct of the connection, which takes what is in `out`.
 */
struct answer {
	struct cds_list_head list; /* ui->answers */
	struct ui *ui;
	int fd; /* of the asker: tells who that is, and whether it is still there */
	/* Called when something came, rows or the end, but never from within the calls below. */
	void (*moved)(struct answer *a);
	enum answer_state state;
	ev_timer patience; /* ANSWER_WAITING */
	struct request req;
	struct flight *flight;   /* ANSWER_ASKING */
	struct msg_query *query; /* ANSWER_SLICE: holds the cursor */
	struct rows out;
	enum refusal refused;   /* ANSWER_DONE */
	char error[UI_WHY_MAX]; /* with it: one sentence */
};

/* answer.c */
void answer_init(struct answer *a, struct ui *ui, int fd, void (*moved)(struct answer *a));
void answer_begin(struct answer *a, const json_t *request); /* NULL: it was no JSON */
void answer_more(struct answer *a);
void answer_drop(struct answer *a);             /* nobody wants the rest */
bool answer_is_unheard(const struct answer *a); /* the asker has gone */
/* A slice is back; the rows are the caller's, the query the answer's. */
void answer_reply(struct answer *a, struct msg_query *q, const json_t *rows);
/* Go on with all that wait for the summary. */
void answers_summary(struct ui *ui);

struct http;
struct api;

struct ui {
	struct ui_conf conf;
	struct worker *w;
	double started_s; /* monotonic */

	int listen_fd;
	dev_t socket_dev; /* of the socket's path, to remove our own only */
	ino_t socket_ino;
	ev_io accept;
	ev_timer accept_pause; /* out of descriptors: try again later */
	struct cds_list_head clients, waiting, answers, flights;
	unsigned int n_client, n_waiting, n_flight;

	ev_timer summary_timer;
	bool summary_asked; /* one travels */
	json_t *summary;    /* the last, an object */
	double summary_s;   /* when it came */
	bool neigh_asked;   /* one of neigh's travels */
	json_t *neigh_summary;
	bool buffers_short; /* as the log says */

	struct http *metrics;
	struct api *api;
};

/* query.c */
void query_send(struct ui *ui, struct msg_query *q, struct answer *answer);
/* Have rib, or neigh, sum up what it has, unless it does so already. */
void query_summary(struct ui *ui);
void query_neigh_summary(struct ui *ui);
/* Nobody wants the rest of this answer. */
void query_drop(struct ui *ui, struct msg_query *q);
/* There are more or fewer clients, or questions under way: says so. */
void clients_told(const struct ui *ui);

/* ctl_socket.c. Returns 0 or -errno. */
int ctl_socket_open(struct ui *ui);
void ctl_socket_close(struct ui *ui);
void ctl_socket_remove(const struct ui *ui); /* its path, when it is ours */

/* show_process.c: what the process says of itself. */
void show_threads(struct rows *out);
void show_log(struct rows *out);
void show_memory(const struct ui *ui, struct rows *out);
void show_version(const struct ui *ui, struct rows *out);
uint64_t proc_status_bytes(const char *key); /* "VmRSS"; 0 when unknown */

/* show.c: the answers made here. */
void show_rows(struct ui *ui, enum show show, struct rows *out);
json_t *show_class(enum punt_class class);
json_t *show_port(const struct ui *ui, const struct port *port);

/* What each thread counts: a row of `show counters`, the sum of all; a metric, by thread. */
struct total {
	const char *name, *text; /* NULL: no row */
	const char *metric, *labels,
		*help; /* NULL: no metric; `help`: the one above goes on */
	size_t offset; /* of the uint64_t in struct counters */
};
extern const struct total totals[];
extern const unsigned int n_totals;
uint64_t total_read(const struct total *t, const struct counters *block);

/* Counters of the channel. */
struct fpm_count {
	const char *name, *text;
	size_t offset; /* of the _Atomic uint64_t in struct fpm_status */
};
extern const struct fpm_count fpm_counts[];
extern const unsigned int n_fpm_counts;
uint64_t fpm_count_read(const struct fpm_count *count);
/* The channel in one word, of those: rib's counts when it has heard of this session. */
const char *channel_state(const struct ui *ui);
extern const char *const channel_states[]; /* NULL ends them */
uint64_t fpm_lag_ms(void);                 /* how long the oldest in the queue has waited */

/* scrape.c: the listener of the metrics page. Returns 0 or -errno. */
int metrics_open(struct ui *ui);
void metrics_close(struct ui *ui);

/* metrics.c */
void metrics_page(struct ui *ui, struct buf *out);

/* api.c. Returns 0 or -errno. */
int api_open(struct ui *ui);
void api_close(struct ui *ui);
/* A connection that speaks HTTP; the descriptor is the API's from now on. */
void api_take(struct ui *ui, int fd);

struct api_counts {
	uint64_t requests; /* whose head was understood as HTTP */
	uint64_t refused;  /* of those, and of connections: an error, or cut off */
	uint64_t garbage;  /* connections that ended without one */
};
struct api_counts api_counts(const struct ui *ui);

#endif
