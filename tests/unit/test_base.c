/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of base/: prefixes, header arithmetic, flow hashes, log escapes, workers.
 * link: fpm-dataplane/base/ fpm-dataplane/restart/restart_lock.c
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <urcu/urcu-qsbr.h>

#include "restart/restart_lock.h"
#include "base/counters.h"
#include "base/haste.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/prefix.h"
#include "base/sd_notify.h"
#include "base/worker.h"
#include "patience.h"

static struct prefix
parsed(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	return p;
}

static void
a_wait_is_as_long_as_written_unless_the_environment_divides_it(void **state)
{
	static const struct {
		const char *haste;
		unsigned int ms;
	} rows[] = {{"10", 500},    {"1", 5000}, {"1000", 5}, {"0", 5000},
		    {"1001", 5000}, {"x", 5000}, {"", 5000}};

	assert_null(getenv("FPM_DATAPLANE_HASTE"));
	assert_int_equal(haste_ms(5000), 5000);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv("FPM_DATAPLANE_HASTE", rows[i].haste, 1);
		assert_int_equal(haste_ms(5000), rows[i].ms);
	}
	unsetenv("FPM_DATAPLANE_HASTE");
}

static void
prefix_text_parses_back(void **state)
{
	static const char *const text[] = {"0.0.0.0/0", "192.0.2.0/24",  "203.0.113.7/32",
					   "::/0",      "2001:db8::/32", "2001:db8::1/128"};
	char buf[PREFIX_STRLEN];

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		struct prefix p = parsed(text[i]);

		assert_string_equal(prefix_str(&p, buf), text[i]);
	}
}

static void
prefix_parse_clears_host_bits_and_tells_addresses(void **state)
{
	struct prefix p = parsed("192.0.2.77/25");
	char buf[PREFIX_STRLEN];
	bool was_addr;

	assert_string_equal(prefix_str(&p, buf), "192.0.2.0/25");
	assert_int_equal(prefix_parse("2001:db8::5", &p, &was_addr), 0);
	assert_true(was_addr);
	assert_int_equal(p.len, 128);
}

static void
prefix_parse_refuses_nonsense(void **state)
{
	static const char *const text[] = {"",
					   "192.0.2.0/33",
					   "192.0.2/24",
					   "::/129",
					   "192.0.2.0/",
					   "192.0.2.0/ 24",
					   "192.0.2.0/-1",
					   "x",
					   "2001:db8::/64x"};
	struct prefix p;

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		assert_int_not_equal(prefix_parse(text[i], &p, NULL), 0);
}

static void
prefix_covers_its_own_addresses_only(void **state)
{
	struct prefix p = parsed("192.0.2.64/26"), in = parsed("192.0.2.127"),
		      out = parsed("192.0.2.128"), all = parsed("0.0.0.0/0");

	assert_true(prefix_covers(&p, &in.addr));
	assert_false(prefix_covers(&p, &out.addr));
	assert_true(prefix_covers(&all, &out.addr));
}

static void
header(uint8_t ip[20], uint8_t ttl, uint16_t id)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	put_be16(ip + 2, 20);
	put_be16(ip + 4, id);
	ip[8] = ttl;
	ip[9] = 17;
	put_be32(ip + 12, 0xc0000201);
	put_be32(ip + 16, 0xc6336401);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

/*
 * RFC 1624: the incremental checksum equals the computed one for all ids, and so for all
 * sums.
 */
static void
ttl_decrement_keeps_every_checksum_right(void **state)
{
	uint8_t ip[20], fresh[20];

	for (unsigned int ttl = 2; ttl < 256; ttl += 23)
		for (unsigned int id = 0; id < 65536; id++) {
			header(ip, (uint8_t)ttl, (uint16_t)id);
			assert_true(ip4_checksum_ok(ip, 20));
			ip4_ttl_dec(ip);
			assert_int_equal(ip[8], ttl - 1);
			assert_true(ip4_checksum_ok(ip, 20));
			header(fresh, (uint8_t)(ttl - 1), (uint16_t)id);
			assert_memory_equal(ip, fresh, 20);
		}
}

static void
checksum_finds_every_flipped_bit(void **state)
{
	uint8_t ip[20];

	for (unsigned int bit = 0; bit < 160; bit++) {
		header(ip, 64, 4711);
		ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(ip4_checksum_ok(ip, 20));
	}
}

/* All fragments of a datagram take one path. Only the first fragment has ports. */
static void
flow_hash_ignores_ports_of_fragments(void **state)
{
	uint8_t a[28], b[28];

	header(a, 64, 1);
	put_be32(a + 20, 0x12345678);
	put_be16(a + 6, 0x2000);
	memcpy(b, a, 28);
	put_be32(b + 20, 0x9abcdef0);
	put_be16(b + 6, 0x2005);
	assert_int_equal(ip4_flow_hash(a, 28, 7), ip4_flow_hash(b, 28, 7));
	put_be16(a + 6, 0);
	put_be16(b + 6, 0);
	assert_int_not_equal(ip4_flow_hash(a, 28, 7), ip4_flow_hash(b, 28, 7));
}

/* The flows that one router sends to one side must use both sides at the next router. */
static void
flow_hash_does_not_polarise_two_stages(void **state)
{
	unsigned int first = 0, both = 0;
	uint8_t ip[28];

	for (uint32_t port = 0; port < 20000; port++) {
		header(ip, 64, 1);
		put_be32(ip + 20, port << 16 | 53);
		if (ip4_flow_hash(ip, 28, 1) >> 31)
			continue;
		first++;
		both += ip4_flow_hash(ip, 28, 2) >> 31;
	}
	assert_in_range(first, 9700, 10300);
	assert_in_range(both, first * 48 / 100, first * 52 / 100);
}

static void
flow_hash6_uses_label_and_ports(void **state)
{
	uint8_t ip[44] = {0x60};
	uint32_t h;

	ip[6] = 17;
	h = ip6_flow_hash(ip, 44, 1);
	ip[3] = 1;
	assert_int_not_equal(ip6_flow_hash(ip, 44, 1), h);
	ip[3] = 0;
	ip[41] = 9;
	assert_int_not_equal(ip6_flow_hash(ip, 44, 1), h);
	/* The ports are cut off and are not read. */
	assert_int_equal(ip6_flow_hash(ip, 40, 1), h);
}

static void
log_escape_leaves_nothing_for_a_terminal(void **state)
{
	char out[64];

	assert_string_equal(log_escape("a\x1b[2J\n\\", 7, out, sizeof(out)),
			    "a\\x1b[2J\\x0a\\x5c");
	assert_string_equal(log_escape("abcdef", 6, out, 6), "ab");
}

static void
a_name_is_utf8_and_one_line_whatever_octets_it_has(void **state)
{
	static const char *const shown[][2] = {
		{"/etc/m\u00fcller \u20ac \U0001f427.yaml",
		 "/etc/m\u00fcller \u20ac \U0001f427.yaml"},
		{"a\xff\xfe.yaml", "a\\xff\\xfe.yaml"},
		{"a\nb\t\\", "a\\x0ab\\x09\\x5c"},
		{"\xc2\x9b[2J", "\\xc2\\x9b[2J"},             /* CSI of C1 */
		{"\xc3", "\\xc3"},                            /* truncated */
		{"\xe2\x82", "\\xe2\\x82"},                   /* truncated */
		{"\xc0\xaf", "\\xc0\\xaf"},                   /* '/', overlong */
		{"\xe0\x81\x81", "\\xe0\\x81\\x81"},          /* 'A', overlong */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* half of a UTF-16 pair */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond U+10ffff */
		{"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"},
	};
	char out[64];

	for (unsigned int i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		assert_string_equal(log_escape_name(shown[i][0], out, sizeof(out)),
				    shown[i][1]);
	/* A character that does not fit is left out as a whole. */
	assert_string_equal(log_escape_name("abc\U0001f427d", out, 7), "abc");
}

/*
 * Return the line that log_write() writes to a file. JOURNAL_STREAM names this file if
 * `named`, otherwise another file.
 */
static void
logged(bool named, enum log_level level, const char *name, char *line, size_t size)
{
	FILE *file = tmpfile();
	int was = dup(STDERR_FILENO);
	char stream[64];
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino + (named ? 0 : 1));
	setenv("JOURNAL_STREAM", stream, 1);
	dup2(fileno(file), STDERR_FILENO);
	log_write(level, "port: link up name=%s", name);
	dup2(was, STDERR_FILENO);
	close(was);
	unsetenv("JOURNAL_STREAM");
	rewind(file);
	assert_non_null(fgets(line, (int)size, file));
	fclose(file);
}

static void
only_the_journal_gets_priorities(void **state)
{
	char line[128];

	logged(true, LOG_LEVEL_WARN, "lan0", line, sizeof(line));
	assert_memory_equal(line, "<4>2", 4);
	assert_non_null(strstr(line, "Z W port: link up name=lan0\n"));
	logged(true, LOG_LEVEL_ERROR, "lan0", line, sizeof(line));
	assert_memory_equal(line, "<3>2", 4);
	logged(false, LOG_LEVEL_ERROR, "lan0", line, sizeof(line));
	assert_int_equal(line[0], '2');
}

static void
no_line_of_the_log_does_anything_to_a_terminal(void **state)
{
	char line[256];

	logged(false, LOG_LEVEL_ERROR, "\x1b[2J\nx\x7f\xc2\x9b", line, sizeof(line));
	assert_non_null(strstr(line, "name=?[2J?x???\n"));
}

static void
every_reason_has_a_name_and_a_text(void **state)
{
	for (int i = 0; i < N_REASON; i++) {
		assert_non_null(reason_info[i].name);
		assert_non_null(reason_info[i].text);
	}
}

static atomic_uint received, rounds;

static void
count_msg(struct worker *w, struct msg *m)
{
	atomic_fetch_add(&received, 1);
	msg_free(m);
}

static void
count_round(struct worker *w)
{
	atomic_fetch_add(&rounds, 1);
}

static void
worker_gets_every_message_and_stops(void **state)
{
	static const struct worker_ops ops = {
		.name = "test", .on_msg = count_msg, .on_round = count_round};
	struct worker w;
	struct timespec tick = {.tv_nsec = 1000000};

	worker_init(&w, &ops, NULL);
	assert_int_equal(worker_prepare(&w), 0);
	worker_send(&w, msg_new(MSG_GLEAN, sizeof(struct msg_neigh)));
	assert_int_equal(worker_start(&w), 0);
	for (int i = 0; i < 999; i++)
		worker_send(&w, msg_new(MSG_GLEAN, sizeof(struct msg_neigh)));
	for (int i = 0; i < PATIENCE_MS && atomic_load(&received) < 1000; i++)
		nanosleep(&tick, NULL);
	assert_int_equal(atomic_load(&received), 1000);
	assert_true(atomic_load(&rounds) > 0);
	worker_stop(&w);
	worker_send(&w, msg_new(MSG_GLEAN, sizeof(struct msg_neigh)));
	worker_free(&w);
}

#define N_EACH 1000

/* The types of messages in the order in which the worker took them. */
static enum msg_type taken[2 * N_EACH];
static atomic_uint n_taken;
static uint32_t n_of[2];

struct numbered {
	struct msg m;
	uint32_t number;
};

static void
note_msg(struct worker *w, struct msg *m)
{
	struct numbered *n = caa_container_of(m, struct numbered, m);
	unsigned int at = atomic_load(&n_taken);

	assert_int_equal(n->number, n_of[msg_is_bulk(m->type)]++);
	taken[at] = m->type;
	free(n);
	atomic_store(&n_taken, at + 1);
}

static void
worker_takes_routes_last_but_in_every_round_and_each_kind_in_order(void **state)
{
	static const struct worker_ops ops = {.name = "test", .on_msg = note_msg};
	struct worker w;
	struct timespec tick = {.tv_nsec = 1000000};
	unsigned int last = 0;

	worker_init(&w, &ops, NULL);
	assert_int_equal(worker_prepare(&w), 0);
	for (uint32_t i = 0; i < N_EACH; i++)
		for (unsigned int bulk = 0; bulk < 2; bulk++) {
			struct numbered *n =
				msg_new(bulk ? MSG_FPM_BATCH : MSG_LINK, sizeof(*n));

			n->number = i;
			worker_send(&w, &n->m);
		}
	assert_int_equal(worker_start(&w), 0);
	for (int i = 0; i < PATIENCE_MS && atomic_load(&n_taken) < 2 * N_EACH; i++)
		nanosleep(&tick, NULL);
	worker_stop(&w);
	assert_int_equal(atomic_load(&n_taken), 2 * N_EACH);
	while (taken[2 * N_EACH - 1 - last] == MSG_FPM_BATCH)
		last++;
	/* A few routes were taken before the last of the other messages. */
	assert_in_range(last, N_EACH * 49 / 50, N_EACH - 1);
	worker_free(&w);
}

static int
failing_init(struct worker *w)
{
	return -5;
}

static void
worker_start_returns_what_init_returns(void **state)
{
	static const struct worker_ops ops = {
		.name = "test", .on_msg = count_msg, .init = failing_init};
	struct worker w;

	worker_init(&w, &ops, NULL);
	assert_int_equal(worker_prepare(&w), 0);
	assert_int_equal(worker_start(&w), -5);
	worker_stop(&w);
	worker_free(&w);
}

/* A worker hangs while it handles a message, or while it ends, until `go` is posted. */
static sem_t hangs, go;
static atomic_uint n_begun;
static bool hangs_at_its_end;

static int
count_begin(struct worker *w)
{
	atomic_fetch_add(&n_begun, 1);
	return 0;
}

static void
hang(void)
{
	urcu_qsbr_thread_offline();
	sem_post(&hangs);
	sem_wait(&go);
	urcu_qsbr_thread_online();
}

static void
hang_in_message(struct worker *w, struct msg *m)
{
	bool waits = m->type == MSG_RECLAIM;

	msg_free(m);
	if (waits)
		hang();
	else
		atomic_fetch_add(&received, 1);
}

static void
hang_in_fini(struct worker *w)
{
	if (hangs_at_its_end)
		hang();
}

/*
 * A request to stop does not succeed within its time. Then the worker is started, and
 * handles messages: because the request is cancelled, or because the thread is started
 * again.
 */
static void
worker_goes_on_when_it_is_started_before_it_has_stopped(void **state)
{
	static const struct worker_ops ops = {.name = "test",
					      .init = count_begin,
					      .on_msg = hang_in_message,
					      .fini = hang_in_fini};
	struct timespec tick = {.tv_nsec = 1000000};
	struct worker w;

	assert_int_equal(sem_init(&hangs, 0, 0) | sem_init(&go, 0, 0), 0);
	worker_init(&w, &ops, NULL);
	assert_int_equal(worker_prepare(&w), 0);
	assert_int_equal(worker_start(&w), 0);
	for (unsigned int at_its_end = 0; at_its_end < 2; at_its_end++) {
		atomic_store(&received, 0);
		hangs_at_its_end = at_its_end == 1;
		if (!hangs_at_its_end)
			worker_send(&w, msg_new(MSG_RECLAIM, sizeof(struct msg)));
		else
			assert_false(worker_stop_try(&w));
		sem_wait(&hangs);
		assert_false(worker_stop_try(&w));
		assert_true(worker_is_ending(&w));
		if (hangs_at_its_end)
			sem_post(&go);
		assert_int_equal(worker_start(&w), 0);
		assert_false(worker_is_ending(&w));
		if (!hangs_at_its_end)
			sem_post(&go);
		worker_send(&w, msg_new(MSG_GLEAN, sizeof(struct msg_neigh)));
		for (int i = 0; i < PATIENCE_MS && atomic_load(&received) == 0; i++)
			nanosleep(&tick, NULL);
		assert_int_equal(atomic_load(&received), 1);
		/* A worker that had not begun to stop is not started a second time. */
		assert_int_equal(atomic_load(&n_begun), 1 + at_its_end);
	}
	hangs_at_its_end = false;
	worker_stop(&w);
	worker_free(&w);
}

/* AddressSanitizer checks that all memory is freed. */
static void
a_successors_environment_is_ours_and_five_words_more(void **state)
{
	char **env = sd_env("tap-lan0:checkpoint", 2);
	unsigned int n = 0;
	bool named = false;

	assert_non_null(env);
	for (; env[n] != NULL; n++)
		named |= strcmp(env[n], "LISTEN_FDNAMES=tap-lan0:checkpoint") == 0;
	assert_true(named);
	for (unsigned int i = 0; environ[i] != NULL; i++)
		assert_ptr_equal(env[i], environ[i]);
	assert_null(environ[n - 5]);
	sd_env_free(env);
}

/* Return the messages to the manager since the last call, each datagram in brackets. */
static const char *
manager_heard(int manager)
{
	static char text[256];
	char word[128];
	size_t at = 0;

	text[0] = '\0';
	for (ssize_t n; (n = recv(manager, word, sizeof(word), MSG_DONTWAIT)) > 0;)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[%.*s]", (int)n,
				       word);
	return text;
}

/* Make a socket that the next sd_init() uses. */
static int
manager_open(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(addr.sun_family);
	int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
	char name[sizeof(addr.sun_path) + 1];

	assert_int_equal(bind(manager, (struct sockaddr *)&addr, len), 0);
	len = sizeof(addr);
	getsockname(manager, (struct sockaddr *)&addr, &len);
	snprintf(name, sizeof(name), "@%.*s", (int)(len - sizeof(addr.sun_family)) - 1,
		 addr.sun_path + 1);
	setenv("NOTIFY_SOCKET", name, 1);
	return manager;
}

/*
 * A successor sends nothing until it has taken over. Later tests have a manager, too,
 * because sd_init() keeps the address.
 */
static void
a_successor_sends_nothing_until_it_takes_over(void **state)
{
	int manager;

	setenv("FPM_DATAPLANE_SUCCESSOR", "1", 1);
	manager = manager_open();
	sd_init();
	assert_true(sd_has_manager());
	sd_start_step("DPDK");
	assert_int_equal(sd_send("READY=1"), 0);
	assert_string_equal(manager_heard(manager), "");
	sd_unmute();
	sd_start_step("port lan0");
	/*
	 * Two datagrams: EXTEND_TIMEOUT_USEC comes after WATCHDOG=1, which would cancel it.
	 */
	assert_string_equal(
		manager_heard(manager),
		"[WATCHDOG=1][EXTEND_TIMEOUT_USEC=90000000\nSTATUS=starting: port lan0]");
	close(manager);
}

/* Read four messages. The descriptors that come with two of them are closed. */
static void *
manager_main(void *arg)
{
	const int *manager = arg;
	char word[64];

	for (unsigned int i = 0; i < 4; i++)
		recv(*manager, word, sizeof(word), 0);
	return NULL;
}

static void
a_descriptor_is_removed_when_the_manager_has_read_all(void **state)
{
	int manager = manager_open();
	pthread_t thread;

	sd_init();
	assert_int_equal(sd_fdremove_wait("tap-lan0", 10), -ETIMEDOUT);
	assert_int_equal(pthread_create(&thread, NULL, manager_main, &manager), 0);
	assert_int_equal(sd_fdremove_wait("tap-lan0", 60000), 0);
	pthread_join(thread, NULL);
	assert_string_equal(manager_heard(manager), "");
	close(manager);
}

/*
 * While the queue of the manager is full, a call with a time limit returns when the limit
 * is over. A manager that has died needs no message.
 */
static void
a_manager_that_does_not_listen_is_not_waited_for_without_end(void **state)
{
	struct sockaddr_un addr;
	socklen_t len = sizeof(addr);
	int manager = manager_open(), sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	char word;

	sd_init();
	getsockname(manager, (struct sockaddr *)&addr, &len);
	while (sendto(sock, "", 1, 0, (struct sockaddr *)&addr, len) == 1)
		continue;
	alarm(PATIENCE_S); /* a test that waits without end has failed */
	assert_int_equal(sd_set_mainpid(7, 10), -EAGAIN);
	assert_int_equal(sd_fdremove_wait("tap-lan0", 10), -ETIMEDOUT);
	/* From now on calls return at once. */
	assert_int_equal(sd_fdstore("tap-lan0", 0), -EAGAIN);
	assert_int_equal(sd_fdreplace_try("tap-lan0", 0), -EAGAIN);
	while (recv(manager, &word, 1, MSG_DONTWAIT) == 1)
		continue;
	assert_int_equal(sd_set_mainpid(7, 60000), 0);
	assert_string_equal(manager_heard(manager), "[MAINPID=7]");
	assert_int_equal(sd_fdreplace_try("tap-lan0", 0), 0);
	assert_string_equal(manager_heard(manager),
			    "[FDSTOREREMOVE=1\nFDNAME=tap-lan0]"
			    "[FDSTORE=1\nFDNAME=tap-lan0\nFDPOLL=0]");
	assert_int_equal(sd_fdreplace_try("tap-lan0", -1), 0);
	assert_string_equal(manager_heard(manager), "[FDSTOREREMOVE=1\nFDNAME=tap-lan0]");
	close(manager);
	assert_int_equal(sd_set_mainpid(7, 10), 0);
	alarm(0);
	close(sock);
}

/*
 * A restart is refused during a change, and a change during a restart. A reload during a
 * restart is remembered once.
 */
static void
a_change_and_a_restart_exclude_one_another(void **state)
{
	assert_true(change_lock(false));
	assert_false(restart_lock());
	change_unlock();
	assert_true(restart_lock());
	assert_false(change_lock(true));
	assert_false(change_lock(false));
	assert_true(restart_unlock());
	assert_true(change_lock(false));
	change_unlock();
	assert_true(restart_lock());
	assert_false(restart_unlock());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_wait_is_as_long_as_written_unless_the_environment_divides_it),
		cmocka_unit_test(prefix_text_parses_back),
		cmocka_unit_test(prefix_parse_clears_host_bits_and_tells_addresses),
		cmocka_unit_test(prefix_parse_refuses_nonsense),
		cmocka_unit_test(prefix_covers_its_own_addresses_only),
		cmocka_unit_test(ttl_decrement_keeps_every_checksum_right),
		cmocka_unit_test(checksum_finds_every_flipped_bit),
		cmocka_unit_test(flow_hash_ignores_ports_of_fragments),
		cmocka_unit_test(flow_hash_does_not_polarise_two_stages),
		cmocka_unit_test(flow_hash6_uses_label_and_ports),
		cmocka_unit_test(log_escape_leaves_nothing_for_a_terminal),
		cmocka_unit_test(a_name_is_utf8_and_one_line_whatever_octets_it_has),
		cmocka_unit_test(no_line_of_the_log_does_anything_to_a_terminal),
		cmocka_unit_test(only_the_journal_gets_priorities),
		cmocka_unit_test(every_reason_has_a_name_and_a_text),
		cmocka_unit_test(worker_gets_every_message_and_stops),
		cmocka_unit_test(
			worker_takes_routes_last_but_in_every_round_and_each_kind_in_order),
		cmocka_unit_test(worker_start_returns_what_init_returns),
		cmocka_unit_test(worker_goes_on_when_it_is_started_before_it_has_stopped),
		cmocka_unit_test(a_successors_environment_is_ours_and_five_words_more),
		cmocka_unit_test(a_change_and_a_restart_exclude_one_another),
		cmocka_unit_test(a_successor_sends_nothing_until_it_takes_over),
		cmocka_unit_test(a_descriptor_is_removed_when_the_manager_has_read_all),
		cmocka_unit_test(
			a_manager_that_does_not_listen_is_not_waited_for_without_end),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
