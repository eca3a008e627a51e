/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared declarations of the ui thread's files: the thread's state, clients, answers, text
 * buffers. Only the ui thread uses them.
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
#define UI_WHY_MAX         512  /* octets of a refusal's text, its terminator included */
#define UI_NAME_MAX        64   /* of a requested row's name, its terminator included */
#define UI_SLICE_ROWS      256  /* rows per slice of rib or neigh */
#define UI_SUMMARY_WAIT_S  0.3  /* after this time the last known summary is shown */
#define UI_SUMMARY_EVERY_S 1.0

/* A growing text. The functions abort the process when memory is exhausted. */
struct buf {
	char *data;
	size_t len, size;
	size_t off; /* octets already written to the client */
};

void buf_reserve(struct buf *b, size_t more); /* room for `more` octets */
void buf_put(struct buf *b, const char *data, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json(struct buf *b, const json_t *row);
void buf_reset(struct buf *b); /* empty it and free a large block */
void buf_free(struct buf *b);

/* How rows are written for a client. */
enum rows_form {
	ROWS_LINES, /* a JSON object a line */
	ROWS_ARRAY, /* one JSON array, which rows_end() closes */
	ROWS_OCTETS /* only the octets of the key `pcapng`, decoded from base64 */
};

struct rows {
	struct buf buf;
	enum rows_form form;
	const char *key,
		*value; /* select rows whose `key` (text or number) is `value`; NULL: all */
	const struct filter *filter; /* and select by these words; NULL: all */
	uint64_t n;                  /* rows written so far */
};

/* rows.c */
void rows_put(struct rows *out, json_t *row); /* owns the row from now on */
void rows_end(struct rows *out);

/*
 * ifname.c: if `name` is an alternative name of an interface of namespace `netns`, replace
 * it by the primary name of the interface. `size` is the size of `name`, at least IFNAMSIZ.
 */
void ifname_own(const char *netns, char *name, size_t size);

/* The subject of a `show` request. */
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
	SHOW_KERNEL,
	SHOW_RULES,
	SHOW_WARNINGS,
	SHOW_FILTER,
	SHOW_SFLOW,
	SHOW_BFD,
	SHOW_LABELS,
	SHOW_ENCAPS,
	SHOW_SIDS,
	SHOW_HOOKS,
	SHOW_FLOWSPEC,
	N_SHOW
};

/* The name of a subject, and the key whose value selects rows; NULL: none. */
struct show_info {
	const char *name, *key;
};
extern const struct show_info show_info[N_SHOW];

/*
 * A parsed request. It is a `show` request unless `replay`, `hold`, `restart`, `breaking`,
 * `change.op` or `want.ask` is set.
 */
struct request {
	enum show show;
	bool replay; /* end the FPM session, and read the kernel's tables again */
	bool hold;   /* refuse the present zebra for `seconds`, and keep its routes */
	unsigned int seconds;
	bool restart;              /* restart the daemon */
	uint8_t breaking;          /* enum query_break; for tests */
	struct manage_want change; /* the manage thread carries it out */
	bool has_prefix, longest, all_tables, repair;
	uint8_t family; /* 4 or 6; 0: both */
	uint8_t of;     /* enum query_of */
	struct prefix prefix;
	char name[UI_NAME_MAX]; /* of the requested row; "": all */
	char vrf[IFNAMSIZ];     /* show the routes of this VRF; "": no VRF was given */
	struct filter filter;   /* selects rows */
	struct watch_want want; /* the trace thread answers */
	char port[UI_NAME_MAX]; /* name of the port or VLAN of `want`; "": any */
};

/* Parse untrusted octets as JSON; the caller owns the result. NULL if they are no JSON. */
json_t *request_load(const char *text, size_t len);

/* Copy untrusted text for use in a sentence, escaped and cut. Returns buf. */
static inline const char *
request_echo(const char *text, char buf[128])
{
	size_t len = strlen(text);

	return log_escape(text, len > 30 ? 30 : len, buf, 128);
}

/*
 * Parse one request (NULL: it was no JSON). Returns 0; or -EINVAL, or -ENOENT for an
 * unknown punt class, each with a sentence in `why`. [no side effects]
 */
int request_parse(const json_t *root, struct request *req, char *why, size_t why_size);

#define ONE_REQUEST                                                                    \
	"one request at a time: show, do, set, config, port, hook, trace, capture or " \
	"explain"

/*
 * Parse the value of a key "trace", "capture" or "explain" (`ask`), in ui/request_watch.c.
 * Returns as request_parse(). The caller looks up the name of the port.
 */
int watch_parse(const char *ask, const json_t *value, struct request *req, char *why,
		size_t why_size);

/*
 * Parse the value of a key "config", "port" or "hook", in ui/request_change.c. Returns as
 * request_parse().
 */
int change_parse(const char *key, const json_t *value, struct request *req, char *why,
		 size_t why_size);

/*
 * A query sent to another thread. ui always owns the rows of the query, so that they can be
 * freed when all threads have stopped.
 */
struct flight {
	struct cds_list_head list; /* ui->flights */
	/* NULL: the client has left, or the query is for a summary */
	struct answer *answer;
	json_t *rows;
};

/*
 * The reason for which a request was refused. Each has an exit code of fpmctl and an HTTP
 * status.
 */
enum refusal {
	REFUSED_NONE,    /* not refused */
	REFUSED_INVALID, /* the request is not understood */
	REFUSED_RIGHTS,  /* the client lacks the right */
	REFUSED_MISSING, /* no object has that name */
	REFUSED_CHANGE,  /* the manage thread refused the change; nothing changed */
	REFUSED_STATE,   /* not possible now, for example during a restart */
	REFUSED_BUSY,    /* too many requests */
	N_REFUSAL
};
struct refusal_info {
	int code;
	unsigned int status;
};
extern const struct refusal_info refusal_info[N_REFUSAL];

enum answer_state {
	ANSWER_DONE,    /* the answer is complete, or not started */
	ANSWER_ASKING,  /* a query has no reply yet */
	ANSWER_SLICE,   /* some rows are ready; answer_more() requests the next ones */
	ANSWER_WAITING, /* waits for rib's summary */
};

/*
 * The answer to one request of any protocol: rows go to `out`, a slice at a time, then the
 * result. It is part of the struct of the connection, which sends the octets in `out`. A
 * member that names a state in its comment is valid only in that state.
 */
struct answer {
	struct cds_list_head list; /* ui->answers */
	struct ui *ui;
	int fd; /* the client's socket, to find its user and its disconnect */
	/* Called when rows or the end arrived, but never from the functions below. */
	void (*on_progress)(struct answer *a);
	enum answer_state state;
	ev_timer timeout; /* ANSWER_WAITING; ANSWER_ASKING: of thread filter */
	struct request req;
	struct flight *flight;   /* ANSWER_ASKING */
	struct msg_query *query; /* ANSWER_SLICE: holds the cursor */
	struct rows out;
	enum refusal refused;   /* ANSWER_DONE */
	char error[UI_WHY_MAX]; /* with `refused`: one sentence */
};

/* answer.c */
void answer_init(struct answer *a, struct ui *ui, int fd,
		 void (*on_progress)(struct answer *a));
void answer_begin(struct answer *a, const json_t *request); /* NULL: it was no JSON */
void answer_more(struct answer *a);
void answer_drop(struct answer *a);              /* the client needs no more rows */
bool answer_client_left(const struct answer *a); /* the client has disconnected */
/* Take a slice. The caller keeps the rows; the answer owns the query. */
void answer_reply(struct answer *a, struct msg_query *q, const json_t *rows);
/* Continue all answers that wait for the summary. */
void answers_summary(struct ui *ui);

struct http;
struct api;

struct ui {
	struct ui_conf conf;
	struct worker *w;
	double started_s; /* monotonic */

	int listen_fd;
	dev_t socket_dev; /* these two identify our socket, the only one to remove */
	ino_t socket_ino;
	ino_t replaced_by; /* of the file at our path that is not our socket; 0: none */
	ev_io accept;
	ev_timer accept_pause; /* starts `accept` again after a lack of descriptors */
	struct cds_list_head clients, waiting, answers, flights;
	unsigned int n_client, n_waiting, n_flight;

	ev_timer summary_timer;
	bool summary_asked; /* a query has no reply yet */
	json_t *summary;    /* the last one, an object */
	double summary_s;   /* monotonic, its arrival */
	bool neigh_asked;   /* a query to neigh has no reply yet */
	json_t *neigh_summary;
	bool buffers_short; /* the last log line about buffers reported a lack */

	struct http *metrics;
	struct cds_list_head scrapes; /* its connections, the oldest last: scrape.c */
	unsigned int n_scrape;
	struct api *api;
};

/* query.c */
void query_send(struct ui *ui, struct msg_query *q, struct answer *answer);
/* Request a summary of rib or neigh, unless a request is pending. */
void query_summary(struct ui *ui);
void query_neigh_summary(struct ui *ui);
/* Free a query without an answer, or cancel the trace that it belongs to. */
void query_drop(struct ui *ui, struct msg_query *q);
/* Report the number of clients and queries to the table's statistics. */
void clients_report(const struct ui *ui);

/* ctl_socket.c. Returns 0 or -errno. */
int ctl_socket_open(struct ui *ui);
void ctl_socket_close(struct ui *ui);
void ctl_socket_renew(struct ui *ui);        /* open it again if its path was deleted */
void ctl_socket_remove(const struct ui *ui); /* remove its path if it is ours */

/* show_hooks.c: the programs of interfaces. */
void show_hooks(const struct ui *ui, struct rows *out);

struct fib_hook;
struct hook_sum {
	uint64_t packets, dropped, marked, moved, errors, counter[16];
};
/* Return the sums over all forwarders. */
struct hook_sum hook_add_up(const struct fib_hook *hook);

/* show_flowspec.c: the state of fpm-flowspec. */
json_t *flowspec_row(const struct ui *ui);

/* show_process.c: answers about the process. */
void show_threads(struct rows *out);
void show_log(struct rows *out);
void show_memory(const struct ui *ui, struct rows *out);
void show_version(const struct ui *ui, struct rows *out);
uint64_t proc_status_bytes(const char *key); /* "VmRSS"; 0 when unknown */

/* show.c: answers that ui makes itself. */
void show_rows(struct ui *ui, enum show show, struct rows *out);
json_t *show_class(enum punt_class class);
json_t *show_port(const struct ui *ui, const struct port *port);

/*
 * A counter that each thread has. A row of `show counters` has the sum over the threads;
 * the metric has a line per thread.
 */
struct total {
	const char *name, *text; /* NULL: no row */
	const char *metric, *labels,
		*help; /* NULL: no metric; `help` NULL: as the metric above */
	size_t offset; /* of the uint64_t in struct counters */
};
extern const struct total totals[];
extern const unsigned int n_totals;
uint64_t total_read(const struct total *t, const struct counters *block);

/* Counters of the FPM channel. */
struct fpm_count {
	const char *name, *text;
	size_t offset; /* of the _Atomic uint64_t in struct fpm_status */
};
extern const struct fpm_count fpm_counts[];
extern const unsigned int n_fpm_counts;
uint64_t fpm_count_read(const struct fpm_count *count);
/* Return the state of the FPM channel as one word of channel_states. */
const char *channel_state(const struct ui *ui);
extern const char *const channel_states[]; /* ends with NULL */
uint64_t fpm_lag_ms(void);                 /* age of the queue's oldest event, at most */

/* show_kernel.c: counters of the reader of the kernel's routing tables. */
struct kernel_count {
	const char *name, *text;
	size_t offset; /* of the _Atomic uint64_t in struct kernel_status */
};
extern const struct kernel_count kernel_counts[];
extern const unsigned int n_kernel_counts;
uint64_t kernel_count_read(const struct kernel_count *count);
void show_kernel(const struct ui *ui, struct rows *out);

/* scrape.c: the listener of the metrics page. Returns 0 or -errno. */
int metrics_open(struct ui *ui);
void metrics_close(struct ui *ui);

/* metrics.c */
void metrics_page(struct ui *ui, struct buf *out);

/* api.c. Returns 0 or -errno. */
int api_open(struct ui *ui);
void api_close(struct ui *ui);
/* Serve a connection that speaks HTTP. Owns the descriptor. */
void api_take(struct ui *ui, int fd);

struct api_counts {
	uint64_t requests; /* with a head of valid HTTP */
	uint64_t refused;  /* requests and connections that were refused or cut off */
	uint64_t garbage;  /* connections that ended without a request */
};
struct api_counts api_counts(const struct ui *ui);

#endif
