/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of a program that inherits named descriptors: its descriptors, names, CPUs and
 * signal mask, and the descriptors that the parent keeps.
 *
 * link: fpm-dataplane/restart/spawn.c fpm-dataplane/start/cpus.c fpm-dataplane/base/sd_notify.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restart/spawn.h"
#include "start/cpus.h"
#include "descriptors.h"

#define STRAY_FD 40 /* a descriptor of the parent, without close-on-exec */

static char said[4096]; /* output of the program */

/* Start a shell script that writes to descriptor 3, and read its output until it ends. */
static void
script_run(const char *script, const sigset_t *mask)
{
	char *const argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
	struct named_fd fd[2] = {{.name = "out"}, {.name = "null"}};
	unsigned int before = descriptors_open();
	int pair[2], status, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char message[16] = "";
	struct child child;
	size_t n = 0;
	ssize_t part;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	fd[0].fd = pair[1];
	fd[1].fd = null;
	assert_int_equal(child_start(&child, argv, fd, 2, "peer", mask), 0);
	assert_int_equal(descriptors_open(), before + 4); /* those three and the socket */
	assert_int_equal(fcntl(child.sock, F_GETFD), FD_CLOEXEC);
	close(pair[1]);
	while ((part = read(pair[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)part;
	said[n] = '\0';
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_int_equal(status, 0);
	/*
	 * The socket has the message and then the end, because this process has no copy of
	 * the child's end.
	 */
	assert_int_equal(recv(child.sock, message, sizeof(message), 0), 6);
	assert_string_equal(message, "hello\n");
	assert_int_equal(recv(child.sock, message, sizeof(message), 0), 0);
	close(child.sock);
	close(pair[0]);
	close(null);
	assert_int_equal(descriptors_open(), before);
}

static void
the_program_has_the_named_descriptors_and_no_others(void **state)
{
	sigset_t none;

	sigemptyset(&none);
	assert_int_equal(dup2(0, STRAY_FD), STRAY_FD);
	script_run("for n in 3 4 5 6 7 8 9 10 11 12 40; do [ -e /proc/$$/fd/$n ] && "
		   "printf '%s ' $n >&3; done; echo \"$LISTEN_FDS $LISTEN_FDNAMES\" >&3; "
		   "readlink /proc/$$/fd/4 >&3; echo hello >&5; exit 0",
		   &none);
	assert_string_equal(said, "3 4 5 3 out:null:peer\n/dev/null\n");
	close(STRAY_FD);
}

/* grep prints its own signal mask. A shell would change the mask. */
static void
the_program_has_the_signal_mask_of_the_start(void **state)
{
	char *const argv[] = {"grep", "SigBlk", "/proc/self/status", NULL};
	int pair[2], status, out = dup(STDOUT_FILENO);
	struct child child;
	sigset_t mask, was;
	ssize_t n;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, &was); /* the mask of this thread is not inherited */
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	dup2(pair[1], STDOUT_FILENO);
	status = child_start(&child, argv, NULL, 0, "peer", &mask);
	dup2(out, STDOUT_FILENO);
	sigprocmask(SIG_SETMASK, &was, NULL);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	n = read(pair[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = '\0';
	assert_string_equal(said, "SigBlk:\t0000000000000200\n");
	close(child.sock);
	close(pair[0]);
	close(pair[1]);
	close(out);
}

static void
the_program_has_all_cpus_and_the_parent_keeps_its_own(void **state)
{
	unsigned int core[CPU_SETSIZE] = {0}, n_core = 0;
	cpu_set_t all, kept, now;
	sigset_t none;
	char want[4096];
	FILE *f;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2) {
		puts("skipped: this needs two CPUs");
		skip();
	}
	sigemptyset(&none);
	script_run("grep Cpus_allowed: /proc/self/status >&3; echo hello >&5", &none);
	strcpy(want, said);
	cpus_layout(core, &n_core);
	assert_int_equal(n_core, 1);
	assert_true(CPU_ISSET(core[0], &all));
	assert_int_equal(sched_getaffinity(0, sizeof(kept), &kept), 0);
	assert_int_equal(CPU_COUNT(&kept), CPU_COUNT(&all) - 1);
	assert_false(CPU_ISSET(core[0], &kept));
	script_run("grep Cpus_allowed: /proc/self/status >&3; echo hello >&5", &none);
	assert_string_equal(said, want);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &kept));
	/* A program that is started otherwise has the CPUs of this thread. */
	f = popen("grep Cpus_allowed: /proc/self/status", "re");
	assert_non_null(fgets(said, sizeof(said), f));
	pclose(f);
	assert_string_not_equal(said, want);
	cpus_allow_all(true);
}

static void
a_program_that_does_not_exist_leaves_nothing_open(void **state)
{
	char *const argv[] = {"/nonexistent/program", NULL};
	unsigned int before = descriptors_open();
	struct named_fd bad = {.name = "closed", .fd = 1000000};
	struct child child;
	sigset_t none;

	sigemptyset(&none);
	assert_int_equal(child_start(&child, argv, NULL, 0, "peer", &none), -ENOENT);
	assert_int_equal(descriptors_open(), before);
	/* A descriptor that is not open. */
	assert_int_equal(child_start(&child, argv, &bad, 1, "peer", &none), -EBADF);
	assert_int_equal(descriptors_open(), before);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_has_the_named_descriptors_and_no_others),
		cmocka_unit_test(the_program_has_the_signal_mask_of_the_start),
		cmocka_unit_test(the_program_has_all_cpus_and_the_parent_keeps_its_own),
		cmocka_unit_test(a_program_that_does_not_exist_leaves_nothing_open),
	};

	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
