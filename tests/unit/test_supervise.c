/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket by which a program reports to fpm-supervise, with datagrams of any sender, and
 * the table of stored descriptors.
 *
 * link: fpm-dataplane/supervise/notify.c fpm-dataplane/supervise/store.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/notify.h"
#include "supervise/store.h"
#include "descriptors.h"

static int sock = -1, sender = -1;
static struct sockaddr_un to = {.sun_family = AF_UNIX};
static socklen_t to_len;

static int
setup(void **state)
{
	char name[NOTIFY_NAME_BYTES];

	sock = notify_open(name);
	sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(sock >= 0 && sender >= 0);
	assert_int_equal(name[0], '@');
	assert_int_equal(strlen(name), 6); /* the kernel chooses five digits */
	memset(to.sun_path, 0, sizeof(to.sun_path));
	memcpy(to.sun_path + 1, name + 1, strlen(name) - 1);
	to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	return 0;
}

static int
teardown(void **state)
{
	close(sock);
	close(sender);
	return 0;
}

/* Send a text of `len` octets with `n` copies of a descriptor. */
static void
notice_send(const char *text, size_t len, const int *fd, unsigned int n)
{
	union {
		char buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {.buf = ""};
	struct iovec iov = {.iov_base = (char *)(uintptr_t)text, .iov_len = len};
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = to_len, .msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (n > 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	}
	assert_int_equal(sendmsg(sender, &msg, 0), (ssize_t)len);
}

static void
a_report_has_its_sender_and_its_text(void **state)
{
	struct notice n = {.from = 99, .fd = 99}; /* left by an earlier report */
	pid_t child;
	int status;

	assert_int_equal(notify_take(sock, &n), -EAGAIN);
	assert_int_equal(n.from, 0);
	assert_int_equal(n.fd, -1);
	notice_send("READY=1\nX", 9, NULL, 0);
	assert_int_equal(notify_take(sock, &n), 0);
	assert_string_equal(n.text, "READY=1\nX");
	assert_int_equal(n.from, getpid());
	assert_int_equal(n.fd, -1);
	/* The next report is shorter, and another process sends it. */
	child = fork();
	if (child == 0) {
		notice_send("A", 1, NULL, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(notify_take(sock, &n), 0);
	assert_string_equal(n.text, "A");
	assert_int_equal(n.from, child);
	assert_int_equal(notify_take(sock, &n), -EAGAIN);
}

static void
the_longest_text_is_511_octets(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int before = descriptors_open();
	struct notice n;
	char text[513];

	memset(text, 'x', sizeof(text));
	notice_send(text, 511, NULL, 0);
	assert_int_equal(notify_take(sock, &n), 0);
	assert_int_equal(strlen(n.text), 511);
	notice_send(text, 512, NULL, 0);
	assert_int_equal(notify_take(sock, &n), -EBADMSG);
	notice_send(text, 512, &null, 1);
	assert_int_equal(notify_take(sock, &n), -EBADMSG);
	assert_int_equal(n.fd, -1);
	assert_int_equal(descriptors_open(), before);
	close(null);
}

static void
a_report_has_at_most_one_descriptor(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC),
	    zero = open("/dev/zero", O_RDONLY);
	int fd[8] = {zero, null, null, null, null, null, null, null};
	unsigned int before = descriptors_open();
	struct stat is, want;
	struct notice n;

	notice_send("FDSTORE=1", 9, fd, 1);
	assert_int_equal(notify_take(sock, &n), 0);
	assert_string_equal(n.text, "FDSTORE=1");
	assert_true(n.fd > zero);
	assert_int_equal(fcntl(n.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(n.fd, &is), 0);
	assert_int_equal(fstat(zero, &want), 0);
	assert_int_equal(is.st_rdev, want.st_rdev);
	assert_int_equal(n.from, getpid());
	close(n.fd);
	for (unsigned int k = 2; k <= 8; k++) {
		notice_send("FDSTORE=1", 9, fd, k);
		assert_int_equal(notify_take(sock, &n), -EBADMSG);
		assert_int_equal(n.fd, -1);
		assert_int_equal(descriptors_open(), before);
	}
	close(null);
	close(zero);
}

/* --- the store ------------------------------------------------------------------------ */

static struct store store;

static int
null_open(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void
a_name_is_stored_once_and_a_bad_name_never(void **state)
{
	unsigned int before = descriptors_open();
	char longest[STORE_NAME_BYTES + 1];
	int fd;

	memset(longest, 'n', sizeof(longest));
	longest[STORE_NAME_BYTES - 1] = '\0';
	assert_int_equal(store_put(&store, longest, null_open()), 0);
	longest[STORE_NAME_BYTES - 1] = 'n';
	longest[STORE_NAME_BYTES] = '\0';
	assert_int_equal(store_put(&store, longest, null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "", null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "a:b", null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "a b", null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "a\x7f", null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "\xc3\xa4", null_open()), -EINVAL);
	assert_int_equal(store_put(&store, "!~", null_open()), 0);
	assert_int_equal(store.n, 2);
	assert_int_equal(descriptors_open(), before + 2);
	/* If a name is stored again, its descriptor is replaced. */
	fd = null_open();
	assert_int_equal(store_put(&store, "!~", fd), 0);
	assert_int_equal(store.n, 2);
	assert_int_equal(store.item[1].fd, fd);
	assert_int_equal(descriptors_open(), before + 2);
	/* The last entry takes the place of the removed entry. */
	assert_false(store_remove(&store, "none"));
	longest[STORE_NAME_BYTES - 1] = '\0';
	assert_true(store_remove(&store, longest));
	assert_int_equal(store.n, 1);
	assert_string_equal(store.item[0].name, "!~");
	assert_int_equal(store.item[0].fd, fd);
	assert_int_equal(descriptors_open(), before + 1);
	store_clear(&store);
	assert_int_equal(store.n, 0);
	assert_int_equal(descriptors_open(), before);
}

static void
the_store_has_256_places(void **state)
{
	unsigned int before = descriptors_open();
	char name[16];

	for (unsigned int i = 0; i <= STORE_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(store_put(&store, name, null_open()),
				 i < STORE_MAX ? 0 : -ENOSPC);
	}
	assert_int_equal(store.n, STORE_MAX);
	assert_int_equal(store_put(&store, "n7", null_open()), 0); /* in place of n7 */
	assert_int_equal(descriptors_open(), before + STORE_MAX);
	store_clear(&store);
	assert_int_equal(descriptors_open(), before);
}

/* Return the exit code of a child to which the store was exported: 0 if all is right. */
static int
export_in_child(const char *names)
{
	char want[16];
	pid_t child = fork();
	int status;

	if (child == 0) {
		const char *got;

		if (store_export(&store) != 0)
			_exit(1);
		snprintf(want, sizeof(want), "%d", (int)getpid());
		got = getenv("LISTEN_PID");
		if (got == NULL || strcmp(got, want) != 0)
			_exit(2);
		got = getenv("LISTEN_FDS");
		snprintf(want, sizeof(want), "%u", store.n);
		if (got == NULL || strcmp(got, want) != 0)
			_exit(3);
		got = getenv("LISTEN_FDNAMES");
		if (got == NULL || strcmp(got, names) != 0)
			_exit(4);
		for (unsigned int i = 0; i < store.n; i++) {
			char octet;

			/* Each descriptor is the pipe that has its number. */
			if (fcntl(3 + (int)i, F_GETFD) != 0 ||
			    read(3 + (int)i, &octet, 1) != 1 || octet != (char)i)
				_exit(5);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
stored_descriptors_are_passed_on_from_3_on_in_order(void **state)
{
	static const char *const name[] = {"a", "b", "c"};
	int pair[3][2], writer;

	/*
	 * Store the descriptors in the reverse order of their numbers, so that each gets
	 * the number that another has now.
	 */
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(pipe2(pair[i], O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 3; i++) {
		char octet = (char)i;

		writer = pair[2 - i][1];
		assert_int_equal(write(writer, &octet, 1), 1);
		close(writer);
		assert_int_equal(store_put(&store, name[i], pair[2 - i][0]), 0);
	}
	assert_int_equal(export_in_child("a:b:c"), 0);
	store_clear(&store);
	unsetenv("LISTEN_FDS");
	assert_int_equal(store_export(&store), 0); /* nothing to pass on */
	assert_null(getenv("LISTEN_FDS"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(a_report_has_its_sender_and_its_text),
		TEST(the_longest_text_is_511_octets),
		TEST(a_report_has_at_most_one_descriptor),
		cmocka_unit_test(a_name_is_stored_once_and_a_bad_name_never),
		cmocka_unit_test(the_store_has_256_places),
		cmocka_unit_test(stored_descriptors_are_passed_on_from_3_on_in_order),
	};

	return cmocka_run_group_tests_name("supervise", tests, NULL, NULL);
}
