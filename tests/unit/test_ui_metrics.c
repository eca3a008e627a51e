/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page of metrics. The test reads it like a scraper.
 *
 * link: fpm-dataplane/ui/ fpm-dataplane/base/ fpm-dataplane/pci/devargs.c tap-bridge/netns.c
 * link: fpm-dataplane/fib/sid_number.c
 */
#include "test_ui.h"

#include <ctype.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/clock.h"

static _Atomic bool no_files; /* accept4() fails with ENFILE */

/* Replace the function of the C library. libmicrohttpd calls this function. */
int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	if (no_files) {
		errno = ENFILE;
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, address, len, flags);
}

int
eventfd(unsigned int count, int flags)
{
	if (no_files) {
		errno = ENFILE;
		return -1;
	}
	return (int)syscall(SYS_eventfd2, count, flags);
}

static void
http_connect(int fd)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(t.metrics_port)};
	struct timeval limit = {.tv_sec = PATIENCE_S};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
}

static int
http_open(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	http_connect(fd);
	return fd;
}

/*
 * Return the answer to a request, head and body, until the server closes. The caller frees
 * it.
 */
static char *
http(const char *request)
{
	int fd = http_open();
	size_t len = 0, size = 1 << 20;
	char *text = calloc(1, size);
	ssize_t n;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	while ((n = recv(fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)n;
	assert_true(n == 0 || errno == ECONNRESET); /* refused because of the limit */
	close(fd);
	return text;
}

static char *
page(void)
{
	char *text = http("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	char *body = strstr(text, "\r\n\r\n");

	assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
	assert_non_null(strstr(text, "Content-Type: text/plain; version=0.0.4"));
	assert_non_null(body);
	memmove(text, body + 4, strlen(body + 4) + 1);
	return text;
}

/* Skip {name="value",...}. Return NULL if it is malformed. */
static const char *
skip_labels(const char *p)
{
	if (*p != '{')
		return p;
	do {
		p++;
		if (!isalpha((unsigned char)*p))
			return NULL;
		p += strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
		if (p[0] != '=' || p[1] != '"')
			return NULL;
		for (p += 2; *p != '"'; p++)
			if (*p == '\0' || (*p == '\\' && strchr("\\\"n", *++p) == NULL))
				return NULL;
		p++;
	} while (*p == ',');
	return *p == '}' ? p + 1 : NULL;
}

/* Return true if `rest` may follow the name of a metric family of this type. */
static bool
is_part_of(const char *type, const char *rest)
{
	if (strcmp(type, "histogram") != 0)
		return *rest == '{' || *rest == ' ';
	return strncmp(rest, "_bucket{le=\"", 12) == 0 || strncmp(rest, "_sum ", 5) == 0 ||
	       strncmp(rest, "_count ", 7) == 0;
}

static void
every_line_is_a_sample_under_its_help_and_type(void **state)
{
	char *text = page(), *save = NULL;
	char family[128] = "", type[16] = "", *samples[2000];
	unsigned int n = 0, n_family = 0;

	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *p = line;
		char *end;
		size_t len;

		if (strncmp(line, "# HELP fpmdp_", 13) == 0) {
			snprintf(family, sizeof(family), "%.*s",
				 (int)strcspn(line + 7, " "), line + 7);
			assert_int_equal(line[strlen(line) - 1], '.');
			n_family++;
			continue;
		}
		if (line[0] == '#') {
			char name[128];

			assert_int_equal(sscanf(line, "# TYPE %127s %15s", name, type), 2);
			assert_string_equal(name, family);
			if (strcmp(type, "counter") == 0)
				assert_string_equal(family + strlen(family) - 6, "_total");
			else if (strcmp(type, "histogram") != 0)
				assert_string_equal(type, "gauge");
			continue;
		}
		len = strcspn(line, "{ ");
		assert_int_equal(strncmp(line, family, strlen(family)), 0);
		assert_true(is_part_of(type, line + strlen(family)));
		p = skip_labels(line + len);
		assert_non_null(p);
		assert_int_equal(*p, ' ');
		strtod(p + 1, &end);
		assert_int_equal(*end, '\0');
		line[p - line] = '\0'; /* name and labels occur once */
		for (unsigned int i = 0; i < n; i++)
			assert_string_not_equal(samples[i], line);
		assert_true(n < 2000);
		samples[n++] = line;
	}
	assert_true(n_family > 30);
	assert_true(n > N_REASON + 30);
	free(text);
}

static unsigned int
n_lines(const char *text)
{
	unsigned int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

/*
 * Compare the page of OpenMetrics line by line with the plain page. Only the family names
 * of counters differ: OpenMetrics has them without _total.
 */
static void
openmetrics_is_served_on_request(void **state)
{
	struct peer p = peer_open();
	char *text = NULL, *plain = NULL, *before;
	char *save[2] = {NULL, NULL}, *line[2], *body;
	unsigned int n_counter = 0;

	json_decref(peer_ask(&p, "{\"show\": \"fpm\"}")); /* the summary is known now */
	peer_close(&p);
	/*
	 * On a slow machine rows may appear meanwhile. Both pages are the same if the plain
	 * page is equal before and after.
	 */
	for (bool same = false; !same; free(before)) {
		before = page();
		text = http(
			"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: "
			"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;"
			"version=0.0.4;q=0.2,*/*;q=0.1\r\n\r\n");
		plain = page();
		same = n_lines(before) == n_lines(plain);
		if (!same) {
			free(text);
			free(plain);
		}
	}
	assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
	assert_non_null(strstr(text, "Content-Type: application/openmetrics-text; "
				     "version=1.0.0; charset=utf-8\r\n"));
	body = strstr(text, "\r\n\r\n") + 4;
	line[0] = strtok_r(plain, "\n", &save[0]);
	line[1] = strtok_r(body, "\n", &save[1]);
	for (; line[0] != NULL; line[0] = strtok_r(NULL, "\n", &save[0])) {
		char name[128], *total;

		assert_non_null(line[1]);
		if (line[0][0] == '#') {
			assert_int_equal(sscanf(line[1] + 7, "%127s", name), 1);
			assert_null(strstr(name, "_total"));
			assert_null(strpbrk(line[1], "\"\\")); /* would need escapes */
			total = strstr(line[0], "_total ");
			if (total != NULL) {
				memmove(total, total + 6, strlen(total + 6) + 1);
				n_counter++;
			}
			assert_string_equal(line[1], line[0]);
		} else {
			size_t len = strcspn(line[0], "{ ");

			assert_int_equal(strncmp(line[1], line[0], len + 1), 0);
		}
		line[1] = strtok_r(NULL, "\n", &save[1]);
	}
	assert_true(n_counter > 2 * 30); /* HELP and TYPE of each */
	assert_string_equal(line[1], "# EOF");
	assert_null(strtok_r(NULL, "\n", &save[1]));
	free(text);
	free(plain);
}

static void
the_form_is_the_one_that_accept_prefers(void **state)
{
#define OM "application/openmetrics-text"
	static const struct {
		const char *accept; /* lines of the Accept header */
		bool open;
	} c[] = {
		{"", false},
		{"Accept: */*\r\n", false},
		{"Accept: " OM "\r\n", true},
		{"Accept: Application/OpenMetrics-Text; Version=1.0.0\r\n", true},
		{"Accept: " OM ";version=0.0.1,text/plain;version=0.0.4;q=0.5\r\n", true},
		{"Accept: text/plain;q=0.5 , " OM " ; q=0.5\r\n", true},
		{"Accept: text/plain," OM ";q=0.9\r\n", false},
		{"Accept: " OM ";q=0.2, */*;q=0.3\r\n", false},
		{"Accept: " OM ";q=0\r\n", false},
		{"Accept: " OM ";q=0.000, text/plain;q=0\r\n", false},
		{"Accept: " OM ";Q=0, */*\r\n", false},
		{"Accept: " OM ";q=half\r\n", false},
		{"Accept: " OM ";q=0.500, text/plain;q=0.1\r\n", true},
		{"Accept: " OM ";q=0.5000, text/plain;q=0.1\r\n", false},
		{"Accept: " OM ";q=1.1, text/plain;q=0.1\r\n", false},
		{"Accept: x" OM ", " OM "x\r\n", false},
		{"Accept: text/html;x=\"a," OM ",b\"\r\n", false},
		{"Accept: text/html;x=\"a\\\",b\"," OM "\r\n", true},
		{"Accept: text/html;x=\"" OM "\r\n", false},
		{"Accept: application/*\r\n", true},
		{"Accept: application/*;q=0.5, text/*;q=0.5\r\n", false},
		{"Accept: text/plain;q=0, */*\r\n", true},
		{"Accept: ,;,q=1,;;q=1,\r\n", false},
		{"Accept: text/plain;q=0.1\r\nAccept: " OM "\r\n", true},
		{"Accept: " OM "\r\naccept: */*;q=0.1\r\n", true},
		{"Accept: text/plain\r\nAccept: " OM ";q=0.5\r\n", false},
	};
#undef OM

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		char request[256], *text;

		snprintf(request, sizeof(request),
			 "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: "
			 "close\r\n%s\r\n",
			 c[i].accept);
		text = http(request);
		assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
		if ((strstr(text, "Content-Type: application/") != NULL) != c[i].open)
			fail_msg("the answer has the other form: %s", c[i].accept);
		free(text);
	}
}

static void
values_are_those_of_the_counters(void **state)
{
	struct peer p = peer_open();
	char *text;

	json_decref(peer_ask(&p, "{\"show\": \"fpm\"}")); /* the summary is known now */
	peer_close(&p);
	fpm_status.connected = 1;
	histogram_add(&fpm_status.commit, 7);
	histogram_add(&fpm_status.commit, 8);
	histogram_add(&fpm_status.commit, 31);
	histogram_add(&fpm_status.commit, 5000000);
	text = page();
	assert_non_null(
		strstr(text, "\nfpmdp_rib_commit_seconds_bucket{le=\"8e-06\"} 1\n"));
	assert_non_null(
		strstr(text, "\nfpmdp_rib_commit_seconds_bucket{le=\"1.6e-05\"} 2\n"));
	assert_non_null(
		strstr(text, "\nfpmdp_rib_commit_seconds_bucket{le=\"3.2e-05\"} 3\n"));
	assert_non_null(
		strstr(text, "\nfpmdp_rib_commit_seconds_bucket{le=\"0.524288\"} 3\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_commit_seconds_bucket{le=\"+Inf\"} 4\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_commit_seconds_count 4\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_commit_seconds_sum 5.000046\n"));
	assert_non_null(strstr(
		text, "\nfpmdp_drop_packets_total{reason=\"ttl\",lcore=\"fwd-0\"} 17\n"));
	assert_non_null(strstr(
		text, "\nfpmdp_punt_packets_total{reason=\"local\",lcore=\"fwd-0\"} 5\n"));
	assert_non_null(
		strstr(text, "\nfpmdp_port_rx_packets_total{port=\"wan0\"} 1234\n"));
	assert_non_null(strstr(text, "\nfpmdp_port_up{port=\"la\\\"n\\\\0\"} 1\n"));
	assert_non_null(strstr(
		text,
		"\nfpmdp_forwarded_packets_total{family=\"ipv6\",lcore=\"fwd-0\"} 66\n"));
	assert_non_null(strstr(text, "\nfpmdp_vrf_rx_packets_total{vrf=\"red\"} 20\n"));
	assert_non_null(strstr(text, "\nfpmdp_vrf_drop_packets_total{vrf=\"red\"} 4\n"));
	assert_non_null(
		strstr(text, "\nfpmdp_srv6_sid_packets_total{sid=\"fc00::1/128\"} 8\n"));
	assert_non_null(strstr(
		text,
		"\nfpmdp_srv6_sid_packets_total{sid=\"fc00::1/128\",vrf=\"red\"} 0\n"));
	assert_non_null(strstr(
		text,
		"\nfpmdp_srv6_sid_packets_total{sid=\"fc00::1/128\",table=\"100\"} 0\n"));
	assert_non_null(strstr(text, "\nfpmdp_fpm_connected 1\n"));
	assert_non_null(strstr(text, "\nfpmdp_fpm_messages_total 0\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_routes{family=\"ipv4\"} 42\n"));
	assert_non_null(strstr(text, "\nfpmdp_fib_bytes{family=\"ipv6\"} 2000\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_stale_routes 5\n"));
	assert_non_null(strstr(text, "\nfpmdp_rib_vrf_stale_routes 3\n"));
	assert_non_null(strstr(
		text, "\nfpmdp_build_info{version=\"1.0-test\",instructions=\"scalar\","
		      "instructions_best=\"AVX-512\",lookup_instructions=\"scalar\","
		      "lookup_instructions_best=\"AVX2\"} 1\n"));
	free(text);
}

/* The sum of a router that has run for weeks has all microseconds. */
static void
the_sum_of_durations_keeps_its_digits(void **state)
{
	char *text;

	atomic_store(&fpm_status.grace.sum_us, 1234567000009);
	text = page();
	assert_non_null(strstr(text, "\nfpmdp_rib_grace_seconds_sum 1234567.000009\n"));
	free(text);
	atomic_store(&fpm_status.grace.sum_us, 0);
}

/* A router that takes all routes from the kernel has no zebra, and is not disconnected. */
static void
without_fpm_no_zebra_is_disconnected(void **state)
{
	char *text = page();

	assert_non_null(strstr(text, "\nfpmdp_fpm_connected "));
	free(text);
	assert_int_equal(house_down(state), 0);
	assert_int_equal(house_begin("kernel"), 0);
	text = page();
	assert_null(strstr(text, "fpmdp_fpm_connected"));
	assert_non_null(strstr(text, "\nfpmdp_fpm_listening "));
	free(text);
}

/* The present state is 1. All other states exist and are 0. */
static void
the_state_of_the_channel_is_one_of_a_set(void **state)
{
	static const char *const word[] = {
		"never-connected", "away",    "refusing", "held",
		"replaying",       "holding", "sweeping", "in-step"};
	static const struct {
		uint64_t gen, connected, refusing, held;
		const char *word;    /* the state; rib is at session 99 */
		uint32_t old_nl_pid; /* port id of the predecessor's zebra; 0: none */
	} now[] = {
		{0, 0, 0, 0, "never-connected", 0},
		{0, 0, 0, 0, "away", 7},
		{3, 0, 0, 0, "away", 0},
		{3, 0, 1, 0, "refusing", 0},
		{3, 0, 0, 1, "held", 0},
		{3, 1, 0, 0, "replaying", 0},
		{99, 1, 0, 0, "holding", 0},
	};
	struct peer p = peer_open();

	json_decref(peer_ask(&p, "{\"show\": \"fpm\"}")); /* the summary is known now */
	peer_close(&p);
	for (unsigned int i = 0; i < sizeof(now) / sizeof(now[0]); i++) {
		char *text;

		fpm_status.gen = now[i].gen;
		fpm_status.connected = now[i].connected;
		fpm_status.refusing = now[i].refusing;
		fpm_status.held = now[i].held;
		fpm_status.old_nl_pid = now[i].old_nl_pid;
		text = page();
		for (unsigned int w = 0; w < sizeof(word) / sizeof(word[0]); w++) {
			char line[64];

			snprintf(line, sizeof(line), "\nfpmdp_fpm_state{state=\"%s\"} %d\n",
				 word[w], strcmp(word[w], now[i].word) == 0);
			assert_non_null(strstr(text, line));
		}
		free(text);
	}
}

static void
all_else_is_refused(void **state)
{
	static const char *const request[][2] = {
		{"GET / HTTP/1.0\r\n\r\n", " 404 "},
		{"GET /metrics/x HTTP/1.0\r\n\r\n", " 404 "},
		{"PUT /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", " 405 "},
		{"PUT /metrics HTTP/1.0\r\n\r\n", "\r\nAllow: GET, HEAD\r\n"},
		{"rubbish\r\n\r\n", " 400 "},
	};

	for (unsigned int i = 0; i < sizeof(request) / sizeof(request[0]); i++) {
		char *text = http(request[i][0]);

		/*
		 * The server may close the connection without an answer to an invalid
		 * request.
		 */
		assert_true(strstr(text, request[i][1]) != NULL ||
			    (i == 4 && *text == '\0'));
		free(text);
	}
}

static void
silent_connections_delay_no_other(void **state)
{
	struct peer p = peer_open();
	int fd[64];

	for (int i = 0; i < 64; i++)
		fd[i] = http_open();
	for (int i = 0; i < 50; i++)
		json_decref(peer_ask(&p, "{\"show\": \"ports\"}"));
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	for (bool served = false; !served;) { /* as soon as they have ended */
		char *text = http("GET /metrics HTTP/1.0\r\n\r\n");

		served = strstr(text, " 200 ") != NULL;
		free(text);
	}
	peer_close(&p);
}

#define N_HALF   65
#define AWAKE_MS 9000 /* the server ends a client that is idle for 10 s */

/*
 * Connect clients that send half a request and then single octets, and a client that sends
 * a whole request. Set over[] for the clients that the server has ended afterwards. Return
 * false if this took so long that the server may have ended clients because they were idle.
 */
static bool
half_requests(bool over[N_HALF])
{
	static const char head[] = "GET /metrics HTTP/1.1\r\nHost: ",
			  request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct pollfd whole = {.events = POLLIN};
	uint64_t begin_ms = monotonic_ms();
	int fd[N_HALF], came = 0;
	char first[13], rest[4096];
	bool awake;

	for (int i = 0; i < N_HALF; i++) {
		fd[i] = http_open();
		assert_int_equal(send(fd[i], head, strlen(head), MSG_NOSIGNAL),
				 strlen(head));
	}
	whole.fd = http_open();
	assert_int_equal(send(whole.fd, request, strlen(request), MSG_NOSIGNAL),
			 strlen(request));
	for (int ms = 0; ms < PATIENCE_MS && came == 0; ms += 100) {
		came = poll(&whole, 1, 100);
		for (int i = 0; i < N_HALF; i++) /* fails when the server has closed */
			(void)!send(fd[i], "x", 1, MSG_NOSIGNAL);
	}
	assert_int_equal(came, 1);
	assert_int_equal(recv(whole.fd, first, sizeof(first), MSG_WAITALL), sizeof(first));
	assert_memory_equal(first, "HTTP/1.1 200 ", sizeof(first));
	while (recv(whole.fd, rest, sizeof(rest), 0) > 0)
		continue;
	close(whole.fd);
	for (int i = 0; i < N_HALF; i++) {
		struct pollfd half = {.fd = fd[i], .events = POLLRDHUP};

		over[i] = poll(&half, 1, i <= N_HALF - 32 ? PATIENCE_MS : 0) == 1;
		assert_true(over[i] || i > N_HALF - 32);
	}
	awake = monotonic_ms() - begin_ms < AWAKE_MS;
	for (int i = 0; i < N_HALF; i++)
		close(fd[i]);
	return awake;
}

/*
 * Clients that send endless requests octet by octet do not keep other clients from the
 * page. For each new connection the server ends the oldest connection.
 */
static void
half_requests_delay_no_page(void **state)
{
	bool over[N_HALF], awake = false;

	for (int i = 0; i < 5 && !awake; i++)
		awake = half_requests(over);
	assert_true(awake);
	for (int i = 0; i < N_HALF; i++)
		assert_true(over[i] == (i <= N_HALF - 32));
}

/* Send a request to the API, and read until the server closes. */
static void
api_ask(const char *request)
{
	struct peer p = peer_open();
	char rest[4096];

	peer_say(&p, request);
	while (recv(p.fd, rest, sizeof(rest), 0) > 0)
		;
	peer_close(&p);
}

/*
 * A connection waits, and the process may open no further descriptor. Between two queries
 * for a summary, a second or more, the thread tries only a few times to accept it. When
 * there are descriptors again, the connection is served.
 */
static void
lack_is_waited_for(bool of_the_system)
{
	static const char request[] =
		"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct rlimit was, none;
	unsigned long rounds;
	char answer[16] = "";
	uint64_t seen;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	/* The descriptors below are in use. poll() takes as many as the limit. */
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
	no_files = of_the_system;
	if (!of_the_system)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	http_connect(fd);
	send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
	seen = t.n_summaries;
	for (int ms = 0; ms < PATIENCE_MS && t.n_summaries == seen; ms++)
		usleep(1000);
	rounds = worker_rounds(&t.ui);
	for (int ms = 0; ms < PATIENCE_MS && t.n_summaries < seen + 2; ms++)
		usleep(1000);
	rounds = worker_rounds(&t.ui) - rounds;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	no_files = false;
	assert_true(t.n_summaries >= seen + 2);
	assert_true(rounds < 100);
	assert_int_equal(recv(fd, answer, 13, MSG_WAITALL), 13);
	assert_string_equal(answer, "HTTP/1.1 200 ");
	close(fd);
}

static void
a_lack_of_descriptors_is_waited_for(void **state)
{
	lack_is_waited_for(false);
}

static void
a_lack_of_files_of_the_system_is_waited_for(void **state)
{
	lack_is_waited_for(true);
}

/*
 * If a client closes its connection within a request, the server ends it at once, not after
 * the timeout of 10 s, even if the client closes before the server accepts. A client that
 * closes its side after a request gets the answer.
 */
static void
a_client_that_closes_is_gone_at_once(void **state)
{
	static const char request[] =
		"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	static const size_t octets[] = {sizeof(request) - 1, 0, 1, 8, 30, 50};
	uint64_t begin_ms = monotonic_ms();
	int fd[6];

	no_files = true;
	for (int i = 0; i < 6; i++) {
		fd[i] = http_open();
		send(fd[i], request, octets[i], MSG_NOSIGNAL);
		assert_int_equal(shutdown(fd[i], SHUT_WR), 0);
	}
	no_files = false;
	for (int i = 0; i < 6; i++) {
		char answer[16] = "";

		if (i == 0) {
			assert_int_equal(recv(fd[i], answer, 13, MSG_WAITALL), 13);
			assert_string_equal(answer, "HTTP/1.1 200 ");
		}
		while (recv(fd[i], answer, sizeof(answer), 0) > 0)
			;
		close(fd[i]);
	}
	assert_true(monotonic_ms() - begin_ms < 9000);
}

static void
every_request_of_the_api_is_counted_once(void **state)
{
	static char chunked[8192] =
		"POST /v1/ports HTTP/1.1\r\nHost: x\r\n"
		"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n";
	static char endless[70000] = "POST /v1/ports HTTP/1.1\r\nHost: x\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n10100\r\n";
	char *text;

	memset(chunked + strlen(chunked), ' ', 4097);
	strcat(chunked, "\r\n0\r\n\r\n");
	memset(endless + strlen(endless), ' ', 0x10100);
	api_ask("GET /v1/version HTTP/1.0\r\n\r\n");
	api_ask("GET /v1/nothing HTTP/1.0\r\n\r\n");
	api_ask("POST /v1/ports HTTP/1.0\r\nContent-Length: 4097\r\n\r\n");
	api_ask(chunked);
	api_ask(endless);
	api_ask("GET \r\n\r\n");
	text = page();
	assert_non_null(strstr(text, "\nfpmdp_api_requests_total 5\n"));
	assert_non_null(strstr(text, "\nfpmdp_api_refused_total 4\n"));
	assert_non_null(strstr(text, "\nfpmdp_api_garbage_total 1\n"));
	free(text);
}

static void
a_connection_without_room_is_a_refusal_and_no_request(void **state)
{
	struct peer p[64];
	char *text;

	for (int i = 0; i < 64; i++) {
		p[i] = peer_open();
		peer_say(&p[i], "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(getline(&p[i].line, &p[i].size, p[i].in) > 0);
	}
	api_ask("GET /v1/version HTTP/1.0\r\n\r\n");
	text = page();
	assert_non_null(strstr(text, "\nfpmdp_api_requests_total 64\n"));
	assert_non_null(strstr(text, "\nfpmdp_api_refused_total 1\n"));
	free(text);
	for (int i = 0; i < 64; i++)
		peer_close(&p[i]);
}

#define ui_test(name) cmocka_unit_test_setup_teardown(name, house_up, house_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ui_test(every_line_is_a_sample_under_its_help_and_type),
		ui_test(openmetrics_is_served_on_request),
		ui_test(the_form_is_the_one_that_accept_prefers),
		ui_test(values_are_those_of_the_counters),
		ui_test(the_sum_of_durations_keeps_its_digits),
		ui_test(without_fpm_no_zebra_is_disconnected),
		ui_test(the_state_of_the_channel_is_one_of_a_set),
		ui_test(all_else_is_refused),
		ui_test(a_lack_of_descriptors_is_waited_for),
		ui_test(a_lack_of_files_of_the_system_is_waited_for),
		ui_test(a_client_that_closes_is_gone_at_once),
		ui_test(every_request_of_the_api_is_counted_once),
		ui_test(a_connection_without_room_is_a_refusal_and_no_request),
		ui_test(silent_connections_delay_no_other),
		ui_test(half_requests_delay_no_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
