/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predecessor in a handover: its steps, the reasons for which there is no successor,
 * and its wait. While the predecessor waits, it sends WATCHDOG=1 to the service manager
 * each second. The test plays the successor, the manager and the kernel. Time passes only
 * while poll() or nanosleep() of the test waits.
 *
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 * link: fpm-dataplane/restart/restart_lock.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>

#include "log_said.h"
#include "restart/handover.c"

static struct {
	uint64_t now_ms;
	uint64_t comes_ms; /* from this time on the step can be read; 0: never */
	uint64_t ends_ms;  /* the successor ends at this time */
	unsigned int n_alive, n_discarded;
	uint64_t alive_ms[70]; /* times of WATCHDOG=1 */
	int sock[2];           /* the predecessor's end, the successor's */
	bool nics, both;       /* fpm-nics runs; it serves two daemons already */
	bool has_manager, had_nics;
	bool has_late_reload; /* a reload is requested while the predecessor quiesces */
	unsigned int n_fd, alarm_s;
	int start_rc, quiesce_rc, resume_rc, mainpid_rc;
	int status, killed; /* of the successor */
	char did[128];      /* the calls, in order */
	char why[256];      /* the reason that clients get */
} t;

/* --- functions that this program replaces --------------------------------------------- */

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	*now = (struct timespec){(time_t)(t.now_ms / 1000),
				 (long)(t.now_ms % 1000) * 1000000};
	return 0;
}

int
poll(struct pollfd *fds, nfds_t n, int max_ms)
{
	uint64_t end_ms = t.now_ms + (uint64_t)max_ms;

	if (t.comes_ms != 0 && end_ms >= t.comes_ms) {
		t.now_ms = t.comes_ms > t.now_ms ? t.comes_ms : t.now_ms;
		return 1;
	}
	t.now_ms += (uint64_t)max_ms;
	return 0;
}

void
sd_send_nowait(const char *state)
{
	assert_string_equal(state, "WATCHDOG=1");
	assert_true(t.n_alive < 70);
	t.alive_ms[t.n_alive++] = t.now_ms;
}

void
port_discard(const struct port *port)
{
	t.n_discarded++;
}

/* --- the other functions that handover.c calls ---------------------------------------- */

bool
nicd_is_connected(void)
{
	return t.nics;
}

int
nicd_pair(void)
{
	return t.nics && !t.both ? fcntl(t.sock[0], F_DUPFD, 0) : -1;
}

int
child_start(struct child *child, char *const argv[], const struct named_fd *fd,
	    unsigned int n, const char *sock_name, const sigset_t *start_mask)
{
	assert_string_equal(sock_name, SD_SUCCESSOR);
	t.n_fd = n;
	for (unsigned int i = 0; i < n; i++)
		t.had_nics |= strcmp(fd[i].name, NICD_FD) == 0;
	*child = (struct child){.pid = 77, .sock = t.sock[0]};
	return t.start_rc;
}

unsigned int
fdstore_list(const struct port *port, unsigned int n_port, int checkpoint_fd,
	     struct named_fd *out)
{
	assert_int_equal(n_port, PORT_SLOTS);
	out[0] = (struct named_fd){.name = "tap", .fd = 5};
	out[1] = (struct named_fd){.name = "checkpoint", .fd = checkpoint_fd};
	return 2;
}

pid_t
waitpid(pid_t pid, int *status, int options)
{
	assert_int_equal(pid, 77);
	*status = t.status;
	return (options & WNOHANG) != 0 && t.now_ms < t.ends_ms ? 0 : pid;
}

int
nanosleep(const struct timespec *pause, struct timespec *rest)
{
	t.now_ms += (uint64_t)pause->tv_nsec / 1000000;
	return 0;
}

int
kill(pid_t pid, int sig)
{
	assert_int_equal(pid, 77);
	t.killed = sig;
	return 0;
}

unsigned int
alarm(unsigned int seconds)
{
	t.alarm_s = seconds;
	return 0;
}

int
workers_quiesce(const struct quiesce *q)
{
	strcat(t.did, "quiesce ");
	assert_int_equal(t.has_late_reload && change_lock(true), 0);
	return t.quiesce_rc;
}

int
workers_resume(const struct quiesce *q)
{
	strcat(t.did, "resume ");
	return t.resume_rc;
}

bool
sd_manager_runs(void)
{
	return t.has_manager;
}

int
sd_set_mainpid(pid_t successor, unsigned int most_ms)
{
	assert_int_equal(successor, 77);
	strcat(t.did, "mainpid ");
	return t.mainpid_rc;
}

void
sd_refusal_add(const char *why)
{
	snprintf(t.why, sizeof(t.why), "%s", why);
}

/* Only a successor calls these. */
#define NOT_CALLED(type, name, args) \
	type name args               \
	{                            \
		abort();             \
	}
NOT_CALLED(int, preflight_listen, (const struct config *conf, bool successor))
NOT_CALLED(int, worker_launch, (struct worker * w))
NOT_CALLED(int, worker_start, (struct worker * w))
NOT_CALLED(bool, worker_has_begun, (const struct worker *w))
NOT_CALLED(void, worker_settle, (struct worker *const *w, unsigned int n))
NOT_CALLED(void, sd_unmute, (void))

/* --- tests ---------------------------------------------------------------------------- */

static void
stop_forwarding(void)
{
	strcat(t.did, "stop ");
}

static void
close_exclusive(void)
{
	strcat(t.did, "close ");
}

static void
reload(void)
{
	strcat(t.did, "reload ");
}

static const struct predecessor old = {.checkpoint_fd = 6,
				       .stop_forwarding = stop_forwarding,
				       .close_exclusive = close_exclusive,
				       .reload = reload,
				       .thread_fd = {{.name = "bfd", .fd = 7}},
				       .n_thread_fd = 1};

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.comes_ms = 1;
	t.has_manager = true;
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, t.sock);
}

static int
teardown(void **state)
{
	close(t.sock[0]);
	close(t.sock[1]);
	return 0;
}

static void
successor_says(enum step step)
{
	step_send(t.sock[1], step);
}

/* Return the steps that the successor has got, as digits. */
static const char *
successor_got(char buf[8])
{
	unsigned char step;
	unsigned int n = 0;

	while (n < 7 && recv(t.sock[1], &step, 1, MSG_DONTWAIT) == 1)
		buf[n++] = (char)('0' + step);
	buf[n] = '\0';
	return buf;
}

static void
the_manager_hears_each_second_that_the_predecessor_waits(void **state)
{
	struct child child = {.sock = t.sock[0]};

	t.comes_ms = 0;
	assert_int_equal(successor_await(&child, READY), -ETIMEDOUT);
	assert_int_equal(t.now_ms, 60000);
	assert_int_equal(t.n_alive, 59);
	for (unsigned int i = 0; i < t.n_alive; i++)
		assert_int_equal(t.alive_ms[i], 1000 * (i + 1));
	/* A step that comes soon is heard at once. */
	t.comes_ms = t.now_ms + 995;
	t.n_alive = 0;
	successor_says(READY);
	assert_int_equal(successor_await(&child, READY), 0);
	assert_int_equal(t.n_alive, 0);
	successor_says(PREPARED);
	assert_int_equal(successor_await(&child, READY), -EPIPE);
}

static void
the_manager_hears_each_second_that_the_successor_waits(void **state)
{
	const struct port port = {.ifidx = 1};
	struct successor next = {.sock = t.sock[0], .port = (struct port *)&port};

	t.comes_ms = 0;
	next.n_port = 1;
	next.shared = true;
	assert_int_equal(predecessor_await(&next, STOPPED, 3000, true), -ETIMEDOUT);
	assert_int_equal(t.now_ms, 3000);
	assert_int_equal(t.n_alive, 2);
	assert_int_equal(t.alive_ms[0], 1000);
	assert_int_equal(t.alive_ms[1], 2000);
	assert_int_equal(t.n_discarded, 3000);
	next.shared = false;
	assert_int_equal(predecessor_await(&next, STOPPED, 10, true), -ETIMEDOUT);
	assert_int_equal(t.n_discarded, 3000);
	t.n_alive = 0;
	assert_int_equal(process_await_end(-1), 0);
	assert_int_equal(process_await_end(3), -ETIMEDOUT);
	assert_int_equal(t.n_alive, 30);
}

static void
a_handover_has_its_steps_in_order(void **state)
{
	char got[8];

	successor_says(PREPARED);
	successor_says(READY);
	t.nics = true;
	assert_int_equal(handover_to_successor(&old), HANDOVER_DONE);
	assert_string_equal(t.did, "quiesce mainpid stop close ");
	assert_string_equal(successor_got(got), "2456");
	assert_int_equal(t.n_fd, 4);
	assert_true(t.had_nics);
	assert_int_equal(t.alarm_s, 38);
	assert_int_equal(t.killed, 0);
	assert_false(change_lock(false)); /* nothing changes until this process ends */
	restart_unlock();
}

static void
a_successor_that_does_not_come_is_a_refusal_with_its_reason(void **state)
{
	static const struct {
		int status;
		const char *why;
	} row[] = {
		{SIGABRT, "its successor was ended by signal 6 (perhaps no memory)"},
		{SIGKILL, "its successor was ended by signal 9 (perhaps no memory)"},
		{SIGSEGV, "its successor was ended by signal 11"},
		{SD_EXIT_CONFIG << 8, "the configuration is wrong; `fpmctl config reload "
				      "--dry-run` shows where"},
		{3 << 8, "its successor did not start, code 3; the log has the reason"},
	};

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		t.status = row[i].status;
		t.did[0] = '\0';
		successor_says(READY); /* not PREPARED */
		assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
		assert_string_equal(t.why, row[i].why);
		assert_string_equal(t.did, "");
		assert_int_equal(recv(t.sock[1], t.did, 1, MSG_DONTWAIT), 0); /* closed */
		assert_true(change_lock(false)); /* changes are possible again */
		change_unlock();
		teardown(state);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, t.sock), 0);
	}
	t.start_rc = -ENOENT;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.why,
			    "its successor does not start: No such file or directory");
}

static void
a_successor_that_is_silent_is_killed_and_the_predecessor_resumes(void **state)
{
	successor_says(PREPARED);
	successor_says(PREPARED); /* not READY */
	t.status = 1 << 8;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.did, "quiesce resume ");
	assert_int_equal(t.killed, SIGKILL);
	teardown(state);
	setup(state);
	t.comes_ms = 0;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.why, "its successor was not ready after 60 s");
	teardown(state);
	setup(state);
	successor_says(PREPARED);
	successor_says(READY);
	t.mainpid_rc = -EAGAIN;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.did, "quiesce mainpid resume ");
	assert_string_equal(t.why,
			    "the service manager does not answer, so it would not know "
			    "the successor");
	teardown(state);
	setup(state);
	successor_says(PREPARED);
	successor_says(READY);
	t.mainpid_rc = -EIO;
	t.resume_rc = -ENOMEM;
	assert_int_equal(handover_to_successor(&old), HANDOVER_SLOW);
	assert_int_equal(
		log_said("handover and resume failed error=\"Cannot allocate memory"), 1);
	restart_unlock();
	teardown(state);
	setup(state);
	successor_says(PREPARED);
	successor_says(PREPARED);
	t.has_manager = false;
	t.resume_rc = -ENOMEM;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.did, "quiesce resume ");
	assert_string_equal(t.why,
			    "its successor is not ready, and its supervisor has ended, "
			    "so nothing would start it again");
}

static void
without_memory_for_two_the_predecessor_ends_if_it_is_started_again(void **state)
{
	successor_says(READY);
	t.status = SD_EXIT_ROOM << 8;
	assert_int_equal(handover_to_successor(&old), HANDOVER_SLOW);
	restart_unlock();
	teardown(state);
	setup(state);
	successor_says(PREPARED);
	successor_says(PREPARED);
	t.status = SD_EXIT_ROOM << 8;
	t.has_manager = false;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.did, "quiesce resume ");
	assert_string_equal(t.why,
			    "there is no memory for two daemons, and its supervisor has "
			    "ended, so nothing would start it again");
	teardown(state);
	setup(state);
	successor_says(PREPARED);
	t.quiesce_rc = -ETIMEDOUT;
	assert_int_equal(handover_to_successor(&old), HANDOVER_SLOW);
	assert_string_equal(t.did, "quiesce ");
	assert_int_equal(t.killed, SIGKILL);
	restart_unlock();
}

/*
 * A process that is killed while it holds a lock in shared memory never releases the lock.
 */
static void
a_successor_that_shares_dpdk_has_time_to_end(void **state)
{
	successor_says(READY);
	t.nics = true;
	t.ends_ms = 4000;
	t.status = 3 << 8;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_int_equal(t.killed, 0);
	assert_int_equal(t.now_ms, 4001);
	teardown(state);
	setup(state);
	successor_says(READY);
	t.nics = true;
	t.ends_ms = 100000;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_int_equal(t.killed, SIGKILL);
	assert_int_equal(t.now_ms, 5001);
	t.both = true;
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.why, "the previous daemon has not ended yet");
}

static void
a_restart_waits_for_no_change_and_a_delayed_reload_follows(void **state)
{
	assert_true(change_lock(false));
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.why, "a port is being changed, or its device starts or ends");
	change_unlock();
	t.has_late_reload = true;
	successor_says(PREPARED);
	successor_says(PREPARED); /* not READY */
	assert_int_equal(handover_to_successor(&old), HANDOVER_REFUSED);
	assert_string_equal(t.did, "quiesce resume reload ");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_manager_hears_each_second_that_the_predecessor_waits),
		TEST(the_manager_hears_each_second_that_the_successor_waits),
		TEST(a_handover_has_its_steps_in_order),
		TEST(a_successor_that_does_not_come_is_a_refusal_with_its_reason),
		TEST(a_successor_that_is_silent_is_killed_and_the_predecessor_resumes),
		TEST(without_memory_for_two_the_predecessor_ends_if_it_is_started_again),
		TEST(a_successor_that_shares_dpdk_has_time_to_end),
		TEST(a_restart_waits_for_no_change_and_a_delayed_reload_follows),
	};

	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
