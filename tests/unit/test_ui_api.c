/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP on the control socket: the same answers, streamed; clients without access, slow
 * readers, clients that disconnect. tests/system/test_api.py checks the answer of each
 * path.
 *
 * link: fpm-dataplane/ui/ fpm-dataplane/base/ fpm-dataplane/pci/devargs.c tap-bridge/netns.c
 * link: fpm-dataplane/fib/sid_number.c
 */
#include <microhttpd.h>

#include "test_ui.h"

#define CLOSE " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

/* Return all that the server sends until it closes, head and body. The caller frees it. */
static char *
all_of(struct peer *p)
{
	size_t len = 0, size = 8u << 20;
	char *text = malloc(size);
	ssize_t n;

	while ((n = recv(p->fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	assert_true(n == 0 || errno == ECONNRESET);
	text[len] = '\0';
	return text;
}

/* Join chunks to one text, in place. */
static void
unchunk(char *body)
{
	char *to = body, *at = body;

	for (;;) {
		unsigned long n = strtoul(at, &at, 16);

		assert_memory_equal(at, "\r\n", 2);
		if (n == 0)
			break;
		memmove(to, at + 2, n);
		to += n;
		at += 2 + n;
		assert_memory_equal(at, "\r\n", 2);
		at += 2;
	}
	*to = '\0';
}

/* Send a request. Return its status and the JSON of the answer. The caller decrefs it. */
static json_t *
http(const char *request, int *status)
{
	struct peer p = peer_open();
	char *text, *body;
	json_t *json;

	peer_say(&p, request);
	text = all_of(&p);
	assert_int_equal(sscanf(text, "HTTP/1.1 %d ", status), 1);
	assert_non_null(strstr(text, "Content-Type: application/json\r\n"));
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	if (strstr(text, "Transfer-Encoding: chunked") != NULL)
		unchunk(body + 4);
	json = json_loads(body + 4, 0, NULL);
	assert_non_null(json);
	free(text);
	peer_close(&p);
	return json;
}

static json_t *
get(const char *path)
{
	char request[512];
	int status;
	json_t *rows;

	snprintf(request, sizeof(request), "GET %s" CLOSE, path);
	rows = http(request, &status);
	assert_int_equal(status, 200);
	assert_true(json_is_array(rows));
	return rows;
}

static void
the_answers_are_those_of_the_control_protocol(void **state)
{
	static const char *const shows[] = {"routes", "nexthops", "groups", "neighbors",
					    "ports",  "counters", "drops",  "cycles"};
	struct peer p = peer_open();

	t.n_routes = 600; /* three slices */
	for (unsigned int i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		char text[64];
		json_t *lines, *rows;

		snprintf(text, sizeof(text), "{\"show\": \"%s\"}", shows[i]);
		lines = peer_ask(&p, text);
		snprintf(text, sizeof(text), "/v1/%s", shows[i]);
		rows = get(text);
		assert_true(json_equal(lines, rows));
		json_decref(lines);
		json_decref(rows);
	}
	peer_close(&p);
}

static void
a_name_in_the_path_chooses_the_row(void **state)
{
	json_t *rows = get("/v1/drops/ttl");
	int status;

	assert_int_equal(json_array_size(rows), 1);
	assert_int_equal(int_of(json_array_get(rows, 0), "value"), 17);
	json_decref(rows);
	rows = http("GET /v1/ports/eth9" CLOSE, &status);
	assert_int_equal(status, 404);
	assert_string_equal(str_of(rows, "error"), "ports has no entry eth9");
	json_decref(rows);
}

static void
nothing_is_an_empty_array(void **state)
{
	json_t *rows = get("/v1/routes");

	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
	rows = get("/v1/routes?prefix=192.0.2.0%2F24");
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
}

static size_t
count(const char *path)
{
	json_t *rows = get(path);
	size_t n = json_array_size(rows);

	json_decref(rows);
	return n;
}

static void
parameters_choose_among_rows(void **state)
{
	t.n_routes = 600; /* three slices */
	assert_int_equal(count("/v1/routes?via=10.0.1.2&dev=wan0"), 600);
	assert_int_equal(count("/v1/routes?via=10.0.1.2&dev=wan1"), 0);
	assert_int_equal(count("/v1/routes?proto=186&state=forwarding"), 600);
	assert_int_equal(count("/v1/routes?proto=187"), 0);
	assert_int_equal(count("/v1/routes?proto=ospf"), 0);
	assert_int_equal(count("/v1/groups?dev=wan1"), 600);
	t.n_routes = 0;
}

static void
an_invalid_request_gets_a_status_and_a_sentence(void **state)
{
	static const struct {
		const char *request;
		int status;
		const char *sentence;
	} bad[] = {
		{"GET /" CLOSE, 404, "no such path '/': /v1/ports is one"},
		{"GET /v1/prts" CLOSE, 404, "no such path '/v1/prts': /v1/ports is one"},
		{"GET /v1/ports/a/b" CLOSE, 404,
		 "no such path '/v1/ports/a/b': /v1/ports is one"},
		{"GET /v1/version/a" CLOSE, 404,
		 "no such path '/v1/version/a': /v1/ports is one"},
		{"GET /v1/%1b%5b1m" CLOSE, 404,
		 "no such path '/v1/\\x1b[1m': /v1/ports is one"},
		{"PUT /v1/ports" CLOSE, 405,
		 "method PUT is not allowed here; allowed are POST, GET"},
		{"OPTIONS /v1/punt/icmp" CLOSE, 405,
		 "method OPTIONS is not allowed here; allowed are PATCH, GET"},
		{"GET /v1/ports?name=a" CLOSE, 400,
		 "unknown parameter 'name': this path takes none"},
		{"GET /v1/routes?prefix" CLOSE, 400, "parameter 'prefix' has no value"},
		{"GET /v1/routes?prefix=%ff" CLOSE, 400, "parameter 'prefix' is not UTF-8"},
		{"GET /v1/routes?prefix=10.0.0.1%00x" CLOSE, 400,
		 "parameter 'prefix' is not UTF-8"},
		{"GET /v1/capture?points=rx,%ff" CLOSE, 400,
		 "parameter 'points' is not UTF-8"},
		{"GET /v1/capture?points=rx,dorp" CLOSE, 400, "points are rx, tx and drop"},
		{"GET /v1/drops/ttl%00x" CLOSE, 400, "the path is not UTF-8"},
		{"GET /v1/routes?family=4&family=6" CLOSE, 400,
		 "parameter 'family' is given twice"},
		{"GET /v1/routes?family=5" CLOSE, 400, "family is not 4, 6 or 0"},
		{"GET /v1/routes?longest=maybe" CLOSE, 400, "longest is not true or false"},
		{"GET /v1/routes?do=restart" CLOSE, 400,
		 "unknown parameter 'do'; known are prefix, longest, family, all_tables, "
		 "vrf, of, via, dev, proto, state"},
		{"GET /v1/neighbors?refix=::" CLOSE, 400,
		 "unknown parameter 'refix'; known are prefix, family, dev, state"},
		{"GET /v1/neighbors?via=10.0.0.1" CLOSE, 400,
		 "unknown parameter 'via'; known are prefix, family, dev, state"},
		{"GET /v1/groups/9?dev=wan0" CLOSE, 400,
		 "unknown parameter 'dev': this path takes none"},
		{"GET /v1/routes?via=10.0.0.0/8" CLOSE, 400,
		 "via '10.0.0.0/8' is not an address"},
		{"GET /v1/routes?dev=" CLOSE, 400, "dev needs NAME"},
		{"GET /v1/groups?state=up" CLOSE, 400,
		 "state 'up' is none of forwarding, local, onlink, broadcast, blackhole, "
		 "unreachable, prohibit, throw, foreign, through-kernel, unresolved, "
		 "unsupported, down, not-installed"},
		{"GET /v1/routes?proto=256" CLOSE, 400,
		 "proto '256' is none of unspec, redirect, kernel, boot, static, ra, "
		 "zebra, bird, dhcp, keepalived, "
		 "babel, bgp, isis, ospf, rip, ripng, nhrp, eigrp, ldp, sharp, pbr, "
		 "openfabric, srte, connected, local, nor a number below 256"},
		{"GET /v1/log?level=loud" CLOSE, 400,
		 "level 'loud' is none of error, warn, info, debug"},
		{"GET /v1/routes?prefix=10.0.0.1/8" CLOSE, 400,
		 "'10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8"},
		{"GET /v1/routes?prefix=10.0.0.0/33" CLOSE, 400,
		 "'10.0.0.0/33' is not an address or prefix"},
		{"GET /v1/trace?port=eth9" CLOSE, 404,
		 "no port or VLAN 'eth9': `fpmctl show interfaces` lists them"},
		{"GET /v1/trace?port="
		 "0123456789012345678901234567890123456789012345678901234567890123" CLOSE,
		 400, "a port's name has 1 to 63 octets"},
		{"GET /v1/trace?proto=tcp" CLOSE, 400, "proto is 0 to 255"},
		{"GET /v1/explain" CLOSE, 400, "explain needs a port"},
		{"GET /v1/config?x=1" CLOSE, 400, "this path takes no parameters"},
		{"POST /v1/replay" CLOSE, 409,
		 "zebra is not connected; it replays when it connects"},
		{"POST /v1/replay HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 2\r\n\r\n{}",
		 400, "POST takes no body"},
		{"POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 2\r\n\r\n[]",
		 400, "the body is not a JSON object"},
		{"POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 12\r\n\r\n{\"do\":\"del\"}",
		 400, "unknown key 'do' in the body"},
		{"POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 12\r\n\r\n{\"name\":\"a\"}",
		 400, "a port needs a device"},
		{"PATCH /v1/punt/none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 10\r\n\r\n{\"rate\":1}",
		 404, "no class 'none'; `fpmctl show punt` lists them"},
		{"POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: 4097\r\n\r\n",
		 413, "the body is longer than 4096 octets"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int status;
		json_t *error = http(bad[i].request, &status);

		assert_string_equal(str_of(error, "error"), bad[i].sentence);
		assert_int_equal(status, bad[i].status);
		json_decref(error);
	}
}

/* libmicrohttpd 1.0 itself answers with 400, and not in JSON. */
static void
a_body_has_a_length_or_is_chunked(void **state)
{
	struct peer p = peer_open();
	char *text;

	peer_say(&p, "POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		     "Transfer-Encoding: gzip\r\n\r\n");
	text = all_of(&p);
	if (MHD_VERSION >= 0x01000000) {
		assert_non_null(strstr(text, "HTTP/1.1 400 "));
	} else {
		assert_non_null(strstr(text, "HTTP/1.1 501 "));
		assert_non_null(strstr(text, "\"a body needs a Content-Length or chunked "
					     "coding\""));
	}
	free(text);
	peer_close(&p);
}

/*
 * With sanitizers the test has a tenth of the rows, because the same code runs for each
 * slice.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY 100000u
#else
#define MANY 1000000u
#endif

static void
a_million_rows_come_in_order_a_slice_at_a_time(void **state)
{
	struct peer p = peer_open();
	uint64_t n = 0;

	t.n_routes = MANY;
	/* HTTP/1.0 has no chunks, so that the answer is easy to parse. */
	peer_say(&p, "GET /v1/routes HTTP/1.0\r\n\r\n");
	while (getline(&p.line, &p.size, p.in) > 2)
		;
	while (getline(&p.line, &p.size, p.in) > 0) {
		char *row = p.line + (n == 0), *end = strrchr(row, '}');
		char want[32];

		/* The text is "[{...},\n{...},\n ... {...}]\n". */
		assert_true(p.line[0] == (n == 0 ? '[' : '{'));
		assert_string_equal(end + 1, n + 1 == MANY ? "]\n" : ",\n");
		snprintf(want, sizeof(want), "\"10.%u.%u.%u/32\"",
			 (unsigned int)(n >> 16 & 255), (unsigned int)(n >> 8 & 255),
			 (unsigned int)(n & 255));
		assert_non_null(strstr(row, want));
		assert_true(t.n_travelling <= 1);
		n++;
	}
	assert_int_equal(n, MANY);
	peer_close(&p);
}

static void
a_reader_that_stops_delays_no_other(void **state)
{
	struct peer stopped = peer_open(), p = peer_open();

	peer_stall(&stopped, "GET /v1/routes" CLOSE, &p);
	json_decref(get("/v1/counters"));
	peer_close(&stopped);
	peer_close(&p);
}

static void
a_client_that_disconnects_leaks_nothing(void **state)
{
	struct peer p;

	t.n_routes = 1u << 24;
	for (unsigned int i = 0; i < 20; i++) { /* between two slices */
		p = peer_open();
		peer_say(&p, "GET /v1/routes" CLOSE);
		while (getline(&p.line, &p.size, p.in) > 2)
			;
		peer_close(&p);
	}
	wait_until(t.n_travelling == 0);
	t.n_routes = 1000;
	rib_hold(true);
	for (unsigned int i = 0; i < 20; i++) { /* during a query */
		uint64_t before = t.n_asked;

		p = peer_open();
		peer_say(&p, "GET /v1/routes" CLOSE);
		wait_until(t.n_asked > before);
		peer_close(&p);
	}
	rib_hold(false);
	wait_until(t.n_travelling == 0);
	json_decref(get("/v1/nexthops"));
}

static void
the_end_may_come_while_queries_travel(void **state)
{
	struct peer p = peer_open(), half = peer_open(), fpm = peer_open();

	rib_hold(true);
	peer_say(&p, "GET /v1/routes" CLOSE);
	peer_say(&half, "GET /v1/rou");
	peer_say(&fpm, "GET /v1/fpm" CLOSE);
	wait_until(t.n_asked == 1);
	/* house_down() stops all threads now; nothing may leak. */
	worker_stop(&t.ui);
	peer_close(&p);
	peer_close(&half);
	peer_close(&fpm);
}

static void
requests_of_one_connection_are_answered_in_order(void **state)
{
	struct peer p = peer_open();
	char *text, *first, *second;

	peer_say(&p, "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n"
		     "GET /v1/fpm HTTP/1.1\r\nHost: x\r\n\r\n"
		     "GET /v1/drops/ttl" CLOSE);
	text = all_of(&p);
	first = strstr(text, "1.0-test");
	second = strstr(text, "\"routes4\":42");
	assert_true(first != NULL && second > first);
	assert_true(strstr(second, "\"value\":17") > second);
	free(text);
	peer_close(&p);
}

static void
a_request_may_come_octet_by_octet(void **state)
{
	struct peer p = peer_open();
	char *text;

	for (const char *c = "GET /v1/drops/ttl" CLOSE; *c != '\0'; c++) {
		char one[2] = {*c, '\0'};

		peer_say(&p, one);
		if (c[0] != 'G') /* wait so that the server reads it alone */
			json_decref(get("/v1/version"));
	}
	text = all_of(&p);
	assert_non_null(strstr(text, "\"value\":17"));
	free(text);
	peer_close(&p);
}

static void
a_body_in_chunks_is_too_long_when_it_ends(void **state)
{
	char request[256 + 3 * 2048];
	int len, status;
	json_t *said;

	for (int n = 2; n <= 3; n++) { /* 4096 octets are read, more are refused */
		len = sprintf(request, "POST /v1/ports HTTP/1.1\r\nHost: x\r\nConnection: "
				       "close\r\nTransfer-Encoding: Chunked\r\n\r\n");
		for (int i = 0; i < n; i++)
			len += sprintf(request + len, "800\r\n%2048s\r\n",
				       i == 0 ? "{" : "}");
		sprintf(request + len, "0\r\n\r\n");
		said = http(request, &status);
		assert_int_equal(status, n == 2 ? 400 : 413);
		assert_non_null(strstr(str_of(said, "error"),
				       n == 2 ? "port takes an object"
					      : "the body is longer than 4096 octets"));
		json_decref(said);
	}
}

static void
a_body_without_end_is_cut(void **state)
{
	struct peer p = peer_open();
	char chunk[1024] = "400\r\n";
	char *text;

	peer_say(&p, "POST /v1/ports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		     "chunked\r\n\r\n");
	memset(chunk + 5, ' ', sizeof(chunk) - 6);
	while (send(p.fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
		;
	text = all_of(&p);
	assert_null(strstr(text, " 200 "));
	free(text);
	peer_close(&p);
	json_decref(get("/v1/version"));
}

static void
garbage_never_crashes(void **state)
{
	static const char good[] = "GET /v1/routes?prefix=10.0.0.1 HTTP/1.1\r\nHost: "
				   "x\r\nConnection: close\r\n\r\n";
	unsigned int seed = (unsigned int)time(NULL) ^ (unsigned int)getpid();

	printf("seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 500; i++) {
		char text[sizeof(good)];
		struct peer p = peer_open();

		memcpy(text, good, sizeof(text));
		for (int k = rand() % 8; k >= 0; k--)
			text[4 + (size_t)rand() % (sizeof(text) - 5)] = (char)rand();
		assert_true(send(p.fd, text, (size_t)rand() % sizeof(text), MSG_NOSIGNAL) >=
			    0);
		if (rand() % 2 != 0)
			shutdown(p.fd, SHUT_WR);
		peer_close(&p);
	}
	json_decref(get("/v1/version"));
}

static void
too_many_connections_are_refused_and_room_comes_back(void **state)
{
	struct peer p[64];
	bool served = false;
	int status;
	json_t *error;

	for (int i = 0; i < 64; i++) {
		p[i] = peer_open();
		peer_say(&p[i], "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(getline(&p[i].line, &p[i].size, p[i].in) > 0);
	}
	error = http("GET /v1/version" CLOSE, &status);
	assert_int_equal(status, 503);
	assert_string_equal(str_of(error, "error"),
			    "too many clients: limits.http-clients is 64");
	json_decref(error);
	for (int i = 0; i < 64; i++)
		peer_close(&p[i]);
	while (!served) {
		error = http("GET /v1/version" CLOSE, &status);
		served = status == 200;
		json_decref(error);
	}
}

/* The control protocol and HTTP have limits of their own. */
static void
http_is_answered_when_lines_have_no_room_left(void **state)
{
	struct peer p[256];
	int status;

	for (int i = 0; i < 256; i++) {
		p[i] = peer_open();
		json_decref(peer_ask(&p[i], "{\"show\": \"version\"}"));
	}
	for (int i = 0; i < 40; i++) {
		json_t *rows = http("GET /v1/version" CLOSE, &status);

		assert_int_equal(status, 200);
		json_decref(rows);
	}
	for (int i = 0; i < 256; i++)
		peer_close(&p[i]);
}

#define api_test(name) cmocka_unit_test_setup_teardown(name, house_up, house_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		api_test(the_answers_are_those_of_the_control_protocol),
		api_test(a_name_in_the_path_chooses_the_row),
		api_test(parameters_choose_among_rows),
		api_test(nothing_is_an_empty_array),
		api_test(an_invalid_request_gets_a_status_and_a_sentence),
		api_test(a_body_has_a_length_or_is_chunked),
		api_test(a_million_rows_come_in_order_a_slice_at_a_time),
		api_test(a_reader_that_stops_delays_no_other),
		api_test(a_client_that_disconnects_leaks_nothing),
		api_test(the_end_may_come_while_queries_travel),
		api_test(requests_of_one_connection_are_answered_in_order),
		api_test(a_request_may_come_octet_by_octet),
		api_test(a_body_in_chunks_is_too_long_when_it_ends),
		api_test(a_body_without_end_is_cut),
		api_test(garbage_never_crashes),
		api_test(too_many_connections_are_refused_and_room_comes_back),
		api_test(http_is_answered_when_lines_have_no_room_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
