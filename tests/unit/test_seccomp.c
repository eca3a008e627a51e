/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter refuses each system call that security.md lists as refused. The test may run
 * as root: without the filter, the kernel would give root other answers. Each test is a
 * process of its own, because a filter cannot be removed.
 *
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "start/seccomp.c"

#define CALL(name)                \
	{                         \
		SYS_##name, #name \
	}

/* The order is that of the table in security.md. */
static const struct {
	uint16_t number;
	const char *name;
} named[] = {
#ifndef __SANITIZE_ADDRESS__
	CALL(ptrace),
#endif
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(process_madvise),
	CALL(pidfd_getfd),
	CALL(kcmp),
	CALL(perf_event_open),
	CALL(lookup_dcookie),
	CALL(init_module),
	CALL(finit_module),
	CALL(delete_module),
	CALL(kexec_load),
	CALL(kexec_file_load),
	CALL(reboot),
	CALL(swapon),
	CALL(swapoff),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(acct),
	CALL(syslog),
	CALL(vhangup),
	CALL(mount),
	CALL(umount2),
	CALL(move_mount),
	CALL(open_tree),
	CALL(fsopen),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fspick),
	CALL(mount_setattr),
	CALL(chroot),
	CALL(pivot_root),
	CALL(unshare),
	CALL(open_by_handle_at),
	CALL(fanotify_init),
	CALL(settimeofday),
	CALL(clock_settime),
	CALL(adjtimex),
	CALL(clock_adjtime),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(add_key),
	CALL(request_key),
	CALL(keyctl),
	CALL(userfaultfd),
	CALL(io_uring_setup),
	CALL(io_uring_enter),
	CALL(io_uring_register),
};

static_assert(COUNT(named) == COUNT(refused), "each refused call is tried");

/* Run `try` in a process with the filter. Return the number of failed checks. */
static int
filtered(int (*try)(void))
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscalls_refuse() < 0
				 ? 99
				 : try();

		fflush(NULL);
		_exit(rc);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Return 0 if the call has failed with this error. Otherwise print it and return 1. */
static int
must_fail(const char *name, long rc, int error)
{
	if (rc < 0 && errno == error)
		return 0;
	print_message("%s: %s, not %s\n", name, rc < 0 ? strerror(errno) : "done",
		      strerror(error));
	return 1;
}

/* The arguments have no effect if a call is allowed. */
static int
try_all(void)
{
	int wrong = 0;

	for (size_t i = 0; i < COUNT(named); i++) {
		long rc = syscall(named[i].number, -1L, -1L, -1L, -1L, -1L, -1L);

		wrong += must_fail(named[i].name, rc, EPERM);
	}
	return wrong;
}

static void
each_call_that_is_named_is_refused(void **state)
{
	assert_int_equal(filtered(try_all), 0);
}

static int
try_spaces(void)
{
	static const struct {
		int flag;
		const char *name;
	} space[] = {{CLONE_NEWNS, "mnt"},  {CLONE_NEWUTS, "uts"},
		     {CLONE_NEWIPC, "ipc"}, {CLONE_NEWUSER, "user"},
		     {CLONE_NEWPID, "pid"}, {CLONE_NEWCGROUP, "cgroup"}};
	int wrong = 0;

	for (size_t i = 0; i < COUNT(space); i++) {
		char path[64];
		int fd;

		wrong += must_fail(space[i].name,
				   syscall(SYS_clone, (long)space[i].flag, 0L, 0L, 0L, 0L),
				   EPERM);
		snprintf(path, sizeof(path), "/proc/self/ns/%s", space[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		wrong +=
			must_fail(path, syscall(SYS_setns, fd, (long)space[i].flag), EPERM);
		wrong += must_fail(path, syscall(SYS_setns, fd, 0L), EPERM);
		close(fd);
	}
	wrong += must_fail("clone, network",
			   syscall(SYS_clone, (long)CLONE_NEWNET, 0L, 0L, 0L, 0L), EPERM);
	wrong += must_fail("clone3", syscall(SYS_clone3, 0L, 0L), ENOSYS);
	/*
	 * setns() into a network namespace is allowed, so the kernel itself refuses the
	 * missing descriptor.
	 */
	wrong += must_fail("setns, network", syscall(SYS_setns, -1L, (long)CLONE_NEWNET),
			   EBADF);
	return wrong;
}

static void
other_namespaces_than_networks_are_neither_made_nor_entered(void **state)
{
	assert_int_equal(filtered(try_spaces), 0);
}

static int
try_sockets(void)
{
	int wrong = 0;

	for (int family = 1; family < 46; family++) {
		bool used = false;

		for (size_t i = 0; i < COUNT(families); i++)
			used |= families[i] == family;
		if (!used)
			wrong += must_fail("socket", socket(family, SOCK_DGRAM, 0),
					   EAFNOSUPPORT);
	}
	for (size_t i = 0; i < 3; i++) { /* UNIX, INET and INET6 need no privilege */
		int fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		wrong += fd < 0 && errno != EAFNOSUPPORT;
		if (fd >= 0)
			close(fd);
	}
	return wrong;
}

static void
sockets_are_of_the_families_it_has_a_use_for(void **state)
{
	assert_int_equal(filtered(try_sockets), 0);
}

/* The same calls by x32 numbers are other calls for the filter. */
static int
try_x32(void)
{
	int wrong = must_fail("getpid of x32", syscall(0x40000000L + SYS_getpid), EPERM);

	return wrong +
	       must_fail("mount of x32", syscall(0x40000000L + SYS_mount, 0, 0), EPERM);
}

static void
no_call_has_a_second_number(void **state)
{
	assert_int_equal(filtered(try_x32), 0);
}

static unsigned int
filters(void)
{
	char line[128];
	unsigned int n = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "Seccomp_filters: %u", &n);
	if (f != NULL)
		fclose(f);
	return n;
}

static int
try_again(void)
{
	unsigned int before = filters();

	return syscalls_refuse() != 0 || filters() != before;
}

static void
a_process_with_the_filter_takes_no_second_one(void **state)
{
	assert_int_equal(filtered(try_again), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_that_is_named_is_refused),
		cmocka_unit_test(
			other_namespaces_than_networks_are_neither_made_nor_entered),
		cmocka_unit_test(sockets_are_of_the_families_it_has_a_use_for),
		cmocka_unit_test(no_call_has_a_second_number),
		cmocka_unit_test(a_process_with_the_filter_takes_no_second_one),
	};

	return cmocka_run_group_tests_name("system calls", tests, NULL, NULL);
}
