/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ui worker between a fake rib and a fake neigh, and a client for it. The tests run in
 * the main thread. The fakes count the queries that they get.
 */
#ifndef TEST_UI_H
#define TEST_UI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/fpm_event.h"
#include "base/worker.h"
#include "fib/fib.h"
#include "fib/sid_number.h"
#include "patience.h"
#include "port/port.h"
#include "ui/ui.h"

/* --- functions of port/ that ui calls ------------------------------------------------- */

int
port_stats(const struct port *port, struct port_stats *st)
{
	*st = (struct port_stats){.rx_missed = 7, .rx_nombuf = 1, .tx_errors = 3};
	return 0;
}

void
port_buffers(const struct port *port, unsigned int *n, unsigned int *n_free)
{
	*n = 1000;
	*n_free = 990;
}

bool
port_buffers_short(const struct port *port)
{
	return false;
}

int
port_bond(const struct port *port, struct bond_state *state)
{
	return -ENODEV;
}

bool
port_takes_all(const struct port *port)
{
	return false;
}

bool
port_takes_groups(const struct port *port)
{
	return true;
}

const char *
port_rss(const struct port *port, char buf[64])
{
	return strcpy(buf, "ip udp");
}

/* --- threads around ui ---------------------------------------------------------------- */

static struct {
	char dir[32], socket[64];
	struct worker rib, neigh, ui;
	struct worker rtnl; /* never runs: its messages stay in the mailbox */
	struct port port[2];
	struct fib fib;
	struct fib_sid_numbers sids;
	struct fib_iface iface;
	struct fib_vrf vrf;
	uint16_t metrics_port;

	/* fake rib */
	_Atomic uint64_t n_routes;     /* number of its rows */
	_Atomic uint64_t n_asked;      /* queries for routes */
	_Atomic uint64_t hold_from;    /* the first query that rib_hold() keeps */
	_Atomic uint64_t n_summaries;  /* queries for a summary: one a second */
	_Atomic uint64_t n_travelling; /* sent to rib and not answered yet */
	_Atomic uint64_t max_asked;    /* largest requested slice */
	_Atomic bool hold;             /* keep queries ... */
	_Atomic uint64_t n_held;
	struct msg *held[64]; /* ... here until MSG_RECLAIM comes: R,W: rib */
} t;

static inline json_t *
fake_route(uint64_t i)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "10.%u.%u.%u/32", (unsigned int)(i >> 16 & 255),
		 (unsigned int)(i >> 8 & 255), (unsigned int)(i & 255));
	return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:b, s:[{s:s, s:s, s:i, "
			 "s:b}, {s:n, s:s, s:i, s:b}]}",
			 "prefix", prefix, "group", (json_int_t)i, "nexthop_id",
			 (json_int_t)i, "table", (json_int_t)254, "source", "zebra",
			 "protocol", "bgp", "state", "forwarding", "stale", 0, "nexthops",
			 "via", "10.0.1.2", "dev", "wan0", "weight", 1, "alive", 1, "via",
			 "dev", "wan1", "weight", 2, "alive", 0);
}

static inline void
fake_answer(struct msg_query *q)
{
	if (q->rows == NULL)
		q->rows = json_array();
	if (q->kind == QUERY_SUMMARY) {
		json_array_append_new(
			q->rows, json_pack("{s:i, s:i, s:s, s:i, s:i, s:{s:i}, s:{s:i}}",
					   "routes4", 42, "generation", 99, "phase",
					   "holding", "stale", 5, "vrf_stale", 3, "fib4",
					   "bytes", 1000, "fib6", "bytes", 2000));
		q->done = true;
		t.n_summaries++;
	} else if (q->kind == QUERY_NEIGH_SUMMARY) {
		json_array_append_new(q->rows,
				      json_pack("{s:{s:i}, s:{s:i}, s:i}", "ipv4", "stale",
						3, "ipv6", "failed", 1, "waited_for", 2));
		q->done = true;
	} else if (q->kind == QUERY_NEIGHBORS) {
		json_array_append_new(q->rows,
				      json_pack("{s:s, s:s, s:n, s:s, s:s}", "address",
						"10.0.1.2", "dev", "wan0", "mac", "state",
						"stale", "use", "host"));
		q->done = true;
	} else {
		uint64_t n = t.n_routes;

		if (q->max > t.max_asked)
			t.max_asked = q->max;
		if (q->has_prefix)
			n = q->prefix.addr.octet[0] == 10; /* it has only 10/8 */
		for (unsigned int i = 0; i < q->max && q->cursor[0] < n; i++)
			json_array_append_new(q->rows, fake_route(q->cursor[0]++));
		q->done = q->cursor[0] >= n;
		t.n_travelling--;
	}
	q->m.type = MSG_REPLY;
	worker_send(q->from, &q->m);
}

static inline void
fake_on_msg(struct worker *w, struct msg *m)
{
	if (m->type == MSG_QUERY) {
		struct msg_query *q = caa_container_of(m, struct msg_query, m);

		if (q->kind == QUERY_ROUTES || q->kind == QUERY_NEXTHOPS ||
		    q->kind == QUERY_GROUPS || q->kind == QUERY_FILTER) {
			t.n_asked++;
			t.n_travelling++;
		}
		if (w != &t.rib || !t.hold || t.n_asked < t.hold_from || t.n_held == 64) {
			fake_answer(q);
			return;
		}
		t.held[t.n_held] = m;
		t.n_held++;
	} else { /* handle the kept queries */
		uint64_t n = t.n_held;

		for (uint64_t i = 0; i < n; i++)
			fake_answer(caa_container_of(t.held[i], struct msg_query, m));
		t.n_held = 0;
		msg_free(m);
	}
}

static const struct worker_ops fake_rib = {
	.name = "rib", .role = ROLE_RIB, .on_msg = fake_on_msg};
static const struct worker_ops fake_neigh = {
	.name = "neigh", .role = ROLE_NEIGH, .on_msg = fake_on_msg};
static const struct worker_ops fake_rtnl = {.name = "rtnl"};

static inline void
rib_hold(bool hold)
{
	t.hold = hold;
	if (!hold)
		worker_send(&t.rib, msg_new(MSG_RECLAIM, sizeof(struct msg)));
}

static inline uint16_t
free_tcp_port(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	close(fd);
	return ntohs(sin.sin_port);
}

static inline struct ui_conf
ui_conf_make(void)
{
	struct ui_conf conf = {.fib = &t.fib,
			       .rib = &t.rib,
			       .neigh = &t.neigh,
			       .rtnl = &t.rtnl,
			       .filter = &t.rib,
			       .port = t.port,
			       .n_port = 2,
			       .control_socket = t.socket,
			       .metrics_on = true,
			       .routes_from = "both",
			       .instructions = "scalar",
			       .instructions_best = "AVX-512",
			       .lookup_instructions = "scalar",
			       .lookup_instructions_best = "AVX2",
			       .version = "1.0-test"};
	struct sockaddr_in *sin = (struct sockaddr_in *)&conf.metrics_listen;

	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin->sin_port = htons(t.metrics_port);
	return conf;
}

static inline int
ui_start(struct worker *w, const struct ui_conf *conf)
{
	assert_int_equal(ui_setup(w, conf), 0);
	assert_int_equal(worker_prepare(w), 0);
	return worker_start(w);
}

static inline void
ui_end(struct worker *w)
{
	worker_stop(w);
	worker_free(w);
	ui_teardown(w, true);
}

/* `routes_from`: as in struct ui_conf. */
static inline int
house_begin(const char *routes_from)
{
	static struct counters *fwd;
	struct ui_conf conf;

	if (fwd == NULL) {
		fwd = counters_register("fwd-0");
		counter_add(&fwd->reason[DROP_ttl], 17);
		counter_add(&fwd->reason[PUNT_local], 5);
		counter_add(&fwd->port[1].rx_packets, 1234);
		counter_add(&fwd->forwarded[1], 66);
		counter_add(&fwd->vrf[7].rx_packets, 30);
		counter_add(&fwd->vrf[7].dropped, 4);
		counter_add(&fwd->sid[2].packets, 9);
	}
	memset(&t, 0, sizeof(t));
	strcpy(t.dir, "/tmp/test_ui.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.socket, sizeof(t.socket), "%s/run/control.sock", t.dir);
	t.metrics_port = free_tcp_port();
	t.iface = (struct fib_iface){.ifidx = 1,
				     .ifindex = 33,
				     .mtu_bytes = 1400,
				     .up = true,
				     .src4 = 0x0a000101};
	t.fib.iface[1] = &t.iface;
	t.vrf = (struct fib_vrf){.name = "red", .base = {.rx_packets = 10}};
	t.fib.vrf[7] = &t.vrf;
	t.sids.high = 4;
	t.sids.of[2] = (struct fib_sid_number){
		.addr = {{0xfc, [15] = 1}}, .len = 128, .base = {.packets = 1}};
	t.sids.of[3] =
		(struct fib_sid_number){.addr = {{0xfc, [15] = 1}}, .vrf = 7, .len = 128};
	t.sids.of[4] = (struct fib_sid_number){
		.addr = {{0xfc, [15] = 1}}, .table = 100, .vrf = FIB_VRF_NONE, .len = 128};
	t.fib.sid_numbers = &t.sids;
	for (int i = 0; i < 2; i++) {
		t.port[i] = (struct port){
			.ifidx = (uint16_t)(i + 1), .n_rxq = 1, .mtu_bytes = 1500};
		snprintf(t.port[i].name, sizeof(t.port[i].name),
			 i == 0 ? "wan0" : "la\"n\\0");
		strcpy(t.port[i].device, "net_null");
		port_link_publish(&t.port[i], (struct port_link){.up = true});
	}
	worker_init(&t.rib, &fake_rib, NULL);
	worker_init(&t.neigh, &fake_neigh, NULL);
	worker_init(&t.rtnl, &fake_rtnl, NULL);
	assert_int_equal(worker_prepare(&t.rib), 0);
	assert_int_equal(worker_prepare(&t.neigh), 0);
	assert_int_equal(worker_prepare(&t.rtnl), 0);
	assert_int_equal(worker_start(&t.rib), 0);
	assert_int_equal(worker_start(&t.neigh), 0);
	conf = ui_conf_make();
	conf.routes_from = routes_from;
	assert_int_equal(ui_start(&t.ui, &conf), 0);
	return 0;
}

static inline int
house_up(void **state)
{
	return house_begin("both");
}

static inline int
house_down(void **state)
{
	char path[64];

	/*
	 * The order is that of main: ui first, mailboxes last. Queries that are still kept
	 * are freed unread.
	 */
	worker_stop(&t.ui);
	worker_stop(&t.neigh);
	worker_stop(&t.rib);
	for (uint64_t i = 0; i < t.n_held; i++)
		msg_free(t.held[i]);
	worker_free(&t.ui);
	worker_free(&t.neigh);
	worker_free(&t.rtnl);
	worker_free(&t.rib);
	ui_teardown(&t.ui, true);
	assert_int_equal(access(t.socket, F_OK), -1);
	snprintf(path, sizeof(path), "%s/run", t.dir);
	rmdir(path);
	rmdir(t.dir);
	return 0;
}

/* --- client --------------------------------------------------------------------------- */

struct peer {
	int fd;
	FILE *in;
	char *line;
	size_t size;
};

static inline struct peer
peer_open(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = PATIENCE_S};
	struct peer p = {.fd = socket(AF_UNIX, SOCK_STREAM, 0)};

	strcpy(sun.sun_path, t.socket);
	setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(p.fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	p.in = fdopen(p.fd, "r");
	return p;
}

static inline void
peer_close(struct peer *p)
{
	fclose(p->in);
	free(p->line);
}

static inline void
peer_say(struct peer *p, const char *text)
{
	assert_int_equal(send(p->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/*
 * Return the next line as JSON, or NULL when the connection has ended. The caller decrefs
 * it.
 */
static inline json_t *
peer_row(struct peer *p)
{
	ssize_t n;
	json_t *row;

	errno = 0;
	n = getline(&p->line, &p->size, p->in);
	if (n < 0) {
		assert_int_not_equal(errno, EAGAIN);
		return NULL;
	}
	row = json_loads(p->line, 0, NULL);
	assert_true(json_is_object(row));
	return row;
}

/* Return the rows before `end`, which has their number. */
static inline json_t *
peer_rows(struct peer *p)
{
	json_t *rows = json_array(), *row;

	while ((row = peer_row(p)) != NULL && json_object_get(row, "end") == NULL)
		json_array_append_new(rows, row);
	assert_non_null(row);
	assert_int_equal(json_integer_value(json_object_get(row, "rows")),
			 json_array_size(rows));
	json_decref(row);
	return rows;
}

static inline json_t *
peer_ask(struct peer *p, const char *request)
{
	peer_say(p, request);
	peer_say(p, "\n");
	return peer_rows(p);
}

/*
 * `stopped` requests all routes of an endless table and reads none, so its socket fills.
 * Meanwhile `p` gets answers.
 */
static inline void
peer_stall(struct peer *stopped, const char *request, struct peer *p)
{
	uint64_t before;

	t.n_routes = 1u << 24;
	peer_say(stopped, request);
	/* The socket is full when only queries of `p` reach rib. */
	do {
		before = t.n_asked;
		for (int i = 0; i < 50; i++)
			json_decref(peer_ask(
				p, "{\"show\": \"routes\", \"prefix\": \"10.0.0.1\"}"));
	} while (t.n_asked != before + 50);
	assert_true(before < 1000); /* of 65536 slices */
}

/* Return the error that a request causes. The caller decrefs it. */
static inline json_t *
peer_error(struct peer *p, const char *request)
{
	json_t *row;

	peer_say(p, request);
	row = peer_row(p);
	assert_non_null(row);
	assert_true(json_is_string(json_object_get(row, "error")));
	return row;
}

static inline long long
int_of(const json_t *row, const char *key)
{
	assert_true(json_is_integer(json_object_get(row, key)));
	return json_integer_value(json_object_get(row, key));
}

static inline const char *
str_of(const json_t *row, const char *key)
{
	assert_true(json_is_string(json_object_get(row, key)));
	return json_string_value(json_object_get(row, key));
}

#define wait_until(condition)                              \
	do {                                               \
		time_t give_up = time(NULL) + PATIENCE_S;  \
                                                           \
		while (!(condition)) {                     \
			assert_true(time(NULL) < give_up); \
			poll(NULL, 0, 1);                  \
		}                                          \
	} while (0)

#endif
