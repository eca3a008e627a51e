/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's side of the service manager's protocol: the variables, the inherited
 * descriptors, each datagram octet by octet, and the environment of a successor. The test
 * plays the manager. test_base.c has the waits for a manager that does not read.
 *
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "log_said.h"

/* Let text number `format_fails` of sd_env() fail for lack of memory. 0: none fails. */
static int formats, format_fails;

static int
format_counted(char **out, const char *fmt, va_list ap)
{
	return ++formats == format_fails ? -1 : vasprintf(out, fmt, ap);
}
#define vasprintf format_counted

#include "base/sd_notify.c"
#include "descriptors.h"

static char dir[] = "/tmp/test_sd_notify.XXXXXX";

/* --- the bed -------------------------------------------------------------------------- */

/* Forget the manager, as a process that has just begun. */
static int
begin(void **state)
{
	static const char *const names[] = {
		"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES", "WATCHDOG_PID",
		"WATCHDOG_USEC", "NOTIFY_SOCKET", FOR_SUCCESSOR};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	if (manager.fd >= 0)
		close(manager.fd);
	if (manager.path_fd >= 0)
		close(manager.path_fd);
	memset(&manager, 0, sizeof(manager));
	manager.fd = manager.path_fd = -1;
	formats = format_fails = 0;
	return 0;
}

/* Set a variable to the id of this process, plus `more`. */
static void
pid_set(const char *name, int more)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)getpid() + more);
	setenv(name, text, 1);
}

/*
 * Make `n` files with the descriptors 3, 4, ... Each has its number as content and stays
 * open across exec.
 */
static void
files_inherit(unsigned int n)
{
	for (int fd = SD_FIRST_FD; fd < SD_FIRST_FD + (int)n; fd++) {
		int made = memfd_create("file", 0);

		assert_int_equal(write(made, &fd, sizeof(fd)), sizeof(fd));
		if (made == fd)
			continue;
		assert_int_equal(dup2(made, fd), fd);
		close(made);
	}
}

/*
 * Return the number that the file of a descriptor has as content. -1: the descriptor is
 * closed.
 */
static int
file_of(int fd)
{
	int number = -1;

	(void)!pread(fd, &number, sizeof(number), 0);
	return number;
}

static void
files_close(unsigned int n)
{
	for (int fd = SD_FIRST_FD; fd < SD_FIRST_FD + (int)n; fd++)
		close(fd);
}

static void
inherit(unsigned int n, const char *fds, const char *names)
{
	files_inherit(n);
	pid_set("LISTEN_PID", 0);
	setenv("LISTEN_FDS", fds, 1);
	if (names != NULL)
		setenv("LISTEN_FDNAMES", names, 1);
	sd_init();
}

/* Make a manager: a socket at a path, or in the abstract namespace if it begins with @. */
static int
manager_at(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

/* Return a path of a socket in the directory of the test, of `len` octets in all. */
static const char *
path_of(size_t len)
{
	static char path[200];

	memset(path, 'x', sizeof(path));
	path[len] = '\0';
	memcpy(path, dir, strlen(dir));
	path[strlen(dir)] = '/';
	return path;
}

/*
 * Return the next datagram; "": there is none. *fd: the descriptor that came with it, or
 * -1.
 */
static const char *
heard(int sock, int *fd)
{
	static char text[400];
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT);

	*fd = -1;
	text[n < 0 ? 0 : n] = '\0';
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (c != NULL) {
		assert_int_equal(c->cmsg_type, SCM_RIGHTS);
		assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof(int)));
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	return text;
}

static void
hears(int sock, const char *want)
{
	int fd;

	assert_string_equal(heard(sock, &fd), want);
	assert_int_equal(fd, -1);
}

/* --- variables ------------------------------------------------------------------------ */

static void
without_variables_nothing_is_sent(void **state)
{
	unsigned int open = descriptors_open();

	sd_init();
	assert_false(sd_has_manager());
	assert_false(sd_manager_runs());
	assert_false(sd_is_restarted());
	assert_int_equal(sd_watchdog_ms(), 0);
	assert_int_equal(sd_take("tap-lan0"), -1);
	assert_int_equal(sd_send("READY=1"), -ENOTCONN);
	assert_int_equal(sd_fdstore("tap-lan0", 0), -ENOTCONN);
	assert_int_equal(sd_fdremove("tap-lan0"), -ENOTCONN);
	assert_int_equal(sd_fdreplace_try("tap-lan0", 0), -ENOTCONN);
	assert_int_equal(sd_fdremove_wait("tap-lan0", 1000), -ENOTCONN);
	assert_int_equal(sd_set_mainpid(7, 1000), 0);
	sd_send_nowait("WATCHDOG=1");
	assert_int_equal(descriptors_open(), open);
}

static void
the_variables_are_removed(void **state)
{
	inherit(1, "1", "a");
	assert_null(getenv("LISTEN_PID"));
	assert_null(getenv("LISTEN_FDS"));
	assert_null(getenv("LISTEN_FDNAMES"));
	setenv("NOTIFY_SOCKET", "/x", 1);
	setenv("WATCHDOG_PID", "1", 1);
	setenv("WATCHDOG_USEC", "1", 1);
	setenv(FOR_SUCCESSOR, "1", 1);
	sd_init();
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_PID"));
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv(FOR_SUCCESSOR));
	files_close(1);
}

static void
the_watchdog_is_half_of_the_variable(void **state)
{
	static const struct {
		const char *usec;
		int has_pid, more;
		unsigned int ms;
	} row[] = {{"30000000", 0, 0, 15000},
		   {"30000000", 1, 0, 15000},
		   {"30000000", 1, 1, 0},
		   {"1999", 0, 0, 0},
		   {"2000", 0, 0, 1},
		   {"30000000x", 0, 0, 0},
		   {"", 0, 0, 0},
		   {"99999999999999999999", 0, 0, 0}};

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(NULL);
		setenv("WATCHDOG_USEC", row[i].usec, 1);
		if (row[i].has_pid)
			pid_set("WATCHDOG_PID", row[i].more);
		sd_init();
		assert_int_equal(sd_watchdog_ms(), row[i].ms);
	}
	/*
	 * In the environment of a successor WATCHDOG_PID may be wrong, because the
	 * successor's process id was not known.
	 */
	begin(NULL);
	setenv("WATCHDOG_USEC", "30000000", 1);
	pid_set("WATCHDOG_PID", 1);
	setenv(FOR_SUCCESSOR, "1", 1);
	sd_init();
	assert_int_equal(sd_watchdog_ms(), 15000);
}

static void
only_an_absolute_name_is_a_manager(void **state)
{
	static const char *const none[] = {"",           "/", "@",        "x",
					   "run/notify", ".", "vsock:2:3"};
	char name[sizeof(manager.path) + 1];

	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		setenv("NOTIFY_SOCKET", none[i], 1);
		sd_init();
		assert_false(sd_has_manager());
	}
	/* One octet too long for an address with its NUL. */
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[sizeof(manager.path)] = '\0';
	setenv("NOTIFY_SOCKET", name, 1);
	sd_init();
	assert_false(sd_has_manager());
}

static void
a_name_may_have_107_octets(void **state)
{
	int sock = manager_at(path_of(107));

	sd_init();
	assert_true(sd_has_manager());
	assert_true(sd_manager_runs());
	assert_int_equal(sd_send("READY=1"), 0);
	hears(sock, "READY=1");
	close(sock);
	unlink(path_of(107));
	begin(NULL);
	/* In the abstract namespace each octet is a part of the name. */
	sock = manager_at("@test_sd_notify");
	sd_init();
	assert_true(sd_manager_runs());
	assert_int_equal(sd_send("READY=1"), 0);
	hears(sock, "WATCHDOG=1");
	hears(sock, "READY=1");
	hears(sock, "");
	close(sock);
}

/* --- inherited descriptors ------------------------------------------------------------ */

static void
descriptors_are_those_from_3_on_by_their_names(void **state)
{
	char name[64];

	inherit(3, "3", "tap-lan0:checkpoint:tap-wan0");
	assert_true(sd_is_restarted());
	for (int fd = 3; fd < 6; fd++)
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(sd_take("checkpoint"), 4);
	assert_int_equal(sd_take("checkpoint"), -1);
	assert_int_equal(sd_take("tap-lan"), -1);
	assert_int_equal(sd_take_next(name, sizeof(name)), 3);
	assert_string_equal(name, "tap-lan0");
	assert_int_equal(sd_take_next(name, 4), 5);
	assert_string_equal(name, "tap");
	assert_int_equal(sd_take_next(name, sizeof(name)), -1);
	for (int fd = 3; fd < 6; fd++)
		assert_int_equal(file_of(fd), fd);
	files_close(3);
}

static void
of_several_descriptors_of_a_name_the_last_is_taken(void **state)
{
	char name[64];

	inherit(5, "5", "a:b:a:b:a");
	assert_int_equal(sd_take("a"), 7);
	assert_int_equal(file_of(3), -1);
	assert_int_equal(file_of(5), -1);
	assert_int_equal(file_of(7), 7);
	assert_int_equal(file_of(4), 4);
	assert_int_equal(sd_take_next(name, sizeof(name)), 6);
	assert_string_equal(name, "b");
	assert_int_equal(file_of(4), -1);
	assert_int_equal(file_of(6), 6);
	files_close(5);
}

static bool
is_number(void *ctx, const char *name, int fd)
{
	int *want = ctx;

	return name[0] == 'b' && file_of(fd) == *want;
}

static void
a_descriptor_is_found_by_its_content(void **state)
{
	int want = 6;

	inherit(4, "4", "a:b:a:b");
	assert_int_equal(sd_find(is_number, &want), 6);
	assert_int_equal(sd_find(is_number, &want), 6); /* it is not taken */
	want = 3;
	assert_int_equal(sd_find(is_number, &want), -1);
	want = 6;
	assert_int_equal(sd_take("b"), 6);
	assert_int_equal(sd_find(is_number, &want), -1);
	files_close(4);
}

static void
names_may_be_missing_empty_or_too_long(void **state)
{
	char names[300], name[200], want[104];

	inherit(3, "3", "a::");
	assert_int_equal(sd_take("a"), 3);
	assert_int_equal(sd_take(""), 5);
	assert_int_equal(file_of(4), -1);
	files_close(3);
	begin(NULL);
	inherit(2, "2", NULL);
	assert_int_equal(sd_take_next(name, sizeof(name)), 4);
	assert_string_equal(name, "");
	files_close(2);
	begin(NULL);
	inherit(3, "3", "a:b");
	assert_int_equal(sd_take("b"), 4);
	assert_int_equal(sd_take(""), 5);
	assert_int_equal(sd_take("a"), 3);
	files_close(3);
	begin(NULL);
	memset(names, 'x', 200);
	strcpy(names + 200, ":b");
	memset(want, 'x', 103);
	want[103] = '\0';
	inherit(2, "2", names);
	assert_int_equal(sd_take_next(name, sizeof(name)), 3);
	assert_string_equal(name, want);
	assert_int_equal(sd_take("b"), 4);
	files_close(2);
}

static void
descriptors_of_other_processes_and_false_numbers_do_not_count(void **state)
{
	static const char *const bad[] = {"", "x", "1x", "-", "99999999999999999999"};

	files_inherit(1);
	/* Without LISTEN_PID, and with that of another process. */
	setenv("LISTEN_FDS", "1", 1);
	sd_init();
	assert_int_equal(sd_take(""), -1);
	setenv("LISTEN_FDS", "1", 1);
	pid_set("LISTEN_PID", 1);
	sd_init();
	assert_int_equal(sd_take(""), -1);
	assert_false(sd_is_restarted());
	files_close(1);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(NULL);
		inherit(1, bad[i], "a");
		assert_int_equal(sd_take("a"), -1);
		files_close(1);
	}
	/* LISTEN_FDS announces more descriptors than there are. */
	begin(NULL);
	inherit(2, "3", "a:b:c");
	assert_int_equal(manager.n_in, 2);
	assert_int_equal(sd_take("b"), 4);
	assert_int_equal(sd_take("c"), -1);
	files_close(2);
	/* A descriptor behind a closed one is not of the manager. */
	begin(NULL);
	files_inherit(3);
	close(4);
	pid_set("LISTEN_PID", 0);
	setenv("LISTEN_FDS", "3", 1);
	sd_init();
	assert_int_equal(manager.n_in, 1);
	assert_int_equal(fcntl(5, F_GETFD), 0);
	files_close(3);
}

static void
at_most_256_descriptors_are_inherited(void **state)
{
	inherit(FDS_MAX + 1, "257", NULL);
	assert_int_equal(manager.n_in, FDS_MAX);
	assert_int_equal(fcntl(SD_FIRST_FD + FDS_MAX - 1, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(SD_FIRST_FD + FDS_MAX, F_GETFD), 0);
	files_close(FDS_MAX + 1);
}

static void
a_successor_inherits_without_a_process_id_and_is_no_restart(void **state)
{
	files_inherit(1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", SD_SUCCESSOR, 1);
	setenv(FOR_SUCCESSOR, "1", 1);
	sd_init();
	assert_false(sd_is_restarted());
	assert_int_equal(sd_take(SD_SUCCESSOR), 3);
	sd_unmute();
	assert_true(sd_is_restarted());
	files_close(1);
}

/* --- datagrams ------------------------------------------------------------------------ */

/* Run with both kinds of managers: by path, and in the abstract namespace. */
#define FOR_MANAGERS(sock)                                                              \
	for (int kind_ = 0, sock; kind_ < 2; begin(NULL), unlink(path_of(60)), kind_++) \
		if (sock = manager_at(kind_ == 0 ? path_of(60) : "@test_sd_notify"),    \
		    sd_init(), sock >= 0)

static void
descriptors_are_stored_and_removed_by_name(void **state)
{
	static const char store[] = "FDSTORE=1\nFDNAME=tap-lan0\nFDPOLL=0",
			  removal[] = "FDSTOREREMOVE=1\nFDNAME=tap-lan0";
	int file = memfd_create("file", MFD_CLOEXEC), fd;
	struct stat is, want;

	fstat(file, &want);
	FOR_MANAGERS(sock)
	{
		unsigned int open = descriptors_open();

		assert_int_equal(sd_fdstore("tap-lan0", file), 0);
		assert_string_equal(heard(sock, &fd), store);
		assert_true(fd >= 0);
		fstat(fd, &is);
		assert_int_equal(is.st_ino, want.st_ino);
		close(fd);
		assert_int_equal(sd_fdremove("tap-lan0"), 0);
		hears(sock, removal);
		assert_int_equal(sd_fdreplace_try("tap-lan0", file), 0);
		hears(sock, removal);
		assert_string_equal(heard(sock, &fd), store);
		fstat(fd, &is);
		assert_int_equal(is.st_ino, want.st_ino);
		close(fd);
		assert_int_equal(sd_fdreplace_try("tap-lan0", -1), 0);
		hears(sock, removal);
		assert_int_equal(sd_set_mainpid(12345, 1000), 0);
		hears(sock, "MAINPID=12345");
		sd_send_nowait("STOPPING=1");
		hears(sock, "STOPPING=1");
		sd_start_step("port lan0");
		hears(sock, "WATCHDOG=1");
		hears(sock, "EXTEND_TIMEOUT_USEC=90000000\nSTATUS=starting: port lan0");
		sd_successor_step("threads");
		hears(sock, "WATCHDOG=1\nSTATUS=starting: threads");
		hears(sock, "");
		assert_int_equal(descriptors_open(), open);
		close(sock);
	}
	close(file);
}

static void
a_removal_ends_when_the_manager_closes_the_barrier(void **state)
{
	FOR_MANAGERS(sock)
	{
		unsigned int open = descriptors_open();
		int fd;

		/* The manager does not close the descriptor of the barrier in time. */
		assert_int_equal(sd_fdremove_wait("tap-lan0", 20), -ETIMEDOUT);
		hears(sock, "FDSTOREREMOVE=1\nFDNAME=tap-lan0");
		assert_string_equal(heard(sock, &fd), "BARRIER=1");
		assert_true(fd >= 0);
		close(fd);
		hears(sock, "");
		assert_int_equal(descriptors_open(), open);
		close(sock);
	}
}

static void
the_end_of_a_manager_is_found_and_logged_once(void **state)
{
	unsigned int said = log_said("main: supervisor ended effect=no-automatic-restart");

	FOR_MANAGERS(sock)
	{
		int gone = kind_ == 0 ? -ENOENT : -ECONNREFUSED;

		close(sock);
		if (kind_ == 0) {
			assert_false(sd_manager_runs());
			assert_int_equal(sd_send("READY=1"), -ECONNREFUSED);
			unlink(path_of(60));
		}
		assert_int_equal(sd_send("READY=1"), gone);
		assert_int_equal(sd_send("READY=1"), gone);
		assert_int_equal(sd_fdstore("tap-lan0", 0), gone);
		assert_int_equal(sd_fdremove_wait("tap-lan0", 1000), gone);
		assert_false(sd_manager_runs());
		assert_true(sd_has_manager());
		assert_int_equal(sd_set_mainpid(7, 1000), 0);
		sd_send_nowait("WATCHDOG=1");
		sd_send_nowait("WATCHDOG=1");
		assert_int_equal(log_said("main: supervisor ended effect="), said + 1);
	}
	/* The end is logged again if the manager was there in between. */
	FOR_MANAGERS(sock)
	{
		sd_send_nowait("WATCHDOG=1");
		hears(sock, "WATCHDOG=1");
		close(sock);
		sd_send_nowait("WATCHDOG=1");
		sd_send_nowait("WATCHDOG=1");
		assert_int_equal(log_said("main: supervisor ended effect="),
				 said + 2 + (unsigned int)kind_);
	}
}

/*
 * A daemon sends WATCHDOG=1 although no descriptor is free. Otherwise the manager would end
 * it.
 */
static void
the_watchdog_needs_no_descriptor(void **state)
{
	struct rlimit was, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	FOR_MANAGERS(sock)
	{
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		assert_true(socket(AF_UNIX, SOCK_DGRAM, 0) < 0);
		sd_send_nowait("WATCHDOG=1");
		assert_int_equal(sd_fdreplace_try("bfd-0", -1), 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		hears(sock, "WATCHDOG=1");
		hears(sock, "FDSTOREREMOVE=1\nFDNAME=bfd-0");
		close(sock);
	}
}

/* A program that takes the name of a manager that has ended gets no descriptor. */
static void
a_stranger_with_the_name_of_the_manager_hears_nothing(void **state)
{
	int sock = manager_at("@test_sd_notify"), other;

	sd_init();
	close(sock);
	other = manager_at("@test_sd_notify");
	assert_int_equal(sd_fdstore("tap-lan0", 0), -ECONNREFUSED);
	assert_int_equal(sd_send("READY=1"), -ECONNREFUSED);
	hears(other, "");
	close(other);
}

/* --- successors ----------------------------------------------------------------------- */

/* Assert the words of the environment behind those of this process. */
static void
env_adds(char *const *env, const char *const *want)
{
	unsigned int n = 0;

	while (environ[n] != NULL) {
		assert_ptr_equal(env[n], environ[n]);
		n++;
	}
	for (unsigned int i = 0; i < 5; i++)
		assert_string_equal(env[n + i], want[i]);
	assert_null(env[n + 5]);
}

static void
a_successor_gets_the_manager_and_the_descriptors(void **state)
{
	static const char *const want[] = {
		"NOTIFY_SOCKET=@test_sd_notify", "WATCHDOG_USEC=30000000", "LISTEN_FDS=3",
		"LISTEN_FDNAMES=successor:tap-lan0:checkpoint", FOR_SUCCESSOR "=1"};
	static const char *const orphan[] = {"NOTIFY_SOCKET=", "WATCHDOG_USEC=30000000",
					     "LISTEN_FDS=1", "LISTEN_FDNAMES=successor",
					     FOR_SUCCESSOR "=" ORPHAN};
	int sock = manager_at("@test_sd_notify");
	char **env;

	setenv("WATCHDOG_USEC", "30000000", 1);
	sd_init();
	env = sd_env("successor:tap-lan0:checkpoint", 3);
	assert_non_null(env);
	env_adds(env, want);
	sd_env_free(env);
	close(sock);
	env = sd_env("successor", 1);
	assert_non_null(env);
	env_adds(env, orphan);
	sd_env_free(env);
}

/* AddressSanitizer checks that the other texts are freed. */
static void
without_memory_a_successor_gets_no_environment(void **state)
{
	for (format_fails = 1; format_fails <= 5; format_fails++) {
		formats = 0;
		assert_null(sd_env("successor", 1));
		assert_int_equal(formats, 5);
	}
}

static void
a_successor_whose_manager_has_ended_has_one_that_takes_nothing(void **state)
{
	setenv(FOR_SUCCESSOR, ORPHAN, 1);
	setenv("NOTIFY_SOCKET", "", 1);
	sd_init();
	assert_true(sd_has_manager());
	assert_int_equal(sd_send("READY=1"), 0); /* it is muted and sends nothing */
	sd_unmute();
	assert_false(sd_manager_runs());
	assert_int_equal(sd_send("READY=1"), -ECONNREFUSED);
	assert_int_equal(sd_set_mainpid(7, 1000), 0);
}

static void
refusals_are_counted_and_the_last_reason_is_kept(void **state)
{
	char why[SD_WHY_STRLEN], text[SD_WHY_STRLEN + 20];
	const char *volatile too_long = text; /* avoids a warning of the compiler */
	unsigned int n = sd_refusal_count(why);

	sd_refusal_add("first");
	sd_refusal_add("second");
	assert_int_equal(sd_refusal_count(why), n + 2);
	assert_string_equal(why, "second");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	sd_refusal_add(too_long);
	assert_int_equal(sd_refusal_count(why), n + 3);
	assert_int_equal(strlen(why), SD_WHY_STRLEN - 1);
	assert_memory_equal(why, text, SD_WHY_STRLEN - 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	static const struct CMUnitTest tests[] = {
		TEST(without_variables_nothing_is_sent),
		TEST(the_variables_are_removed),
		TEST(the_watchdog_is_half_of_the_variable),
		TEST(only_an_absolute_name_is_a_manager),
		TEST(a_name_may_have_107_octets),
		TEST(descriptors_are_those_from_3_on_by_their_names),
		TEST(of_several_descriptors_of_a_name_the_last_is_taken),
		TEST(a_descriptor_is_found_by_its_content),
		TEST(names_may_be_missing_empty_or_too_long),
		TEST(descriptors_of_other_processes_and_false_numbers_do_not_count),
		TEST(at_most_256_descriptors_are_inherited),
		TEST(a_successor_inherits_without_a_process_id_and_is_no_restart),
		TEST(descriptors_are_stored_and_removed_by_name),
		TEST(a_removal_ends_when_the_manager_closes_the_barrier),
		TEST(the_end_of_a_manager_is_found_and_logged_once),
		TEST(the_watchdog_needs_no_descriptor),
		TEST(a_stranger_with_the_name_of_the_manager_hears_nothing),
		TEST(a_successor_gets_the_manager_and_the_descriptors),
		TEST(without_memory_a_successor_gets_no_environment),
		TEST(a_successor_whose_manager_has_ended_has_one_that_takes_nothing),
		TEST(refusals_are_counted_and_the_last_reason_is_kept),
	};
	int failed;

	if (mkdtemp(dir) == NULL)
		return 1;
	/* The descriptors from 3 on are free for the test. */
	for (int fd = SD_FIRST_FD; fd < SD_FIRST_FD + 32; fd++)
		close(fd);
	failed = cmocka_run_group_tests_name("sd_notify", tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
