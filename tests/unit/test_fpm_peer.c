/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread accepts connections only from programs of certain users of this host. The
 * test runs real programs of other users. It needs root and is skipped otherwise.
 * link: fpm-dataplane/fpm/ fpm-dataplane/netlink/ fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "log_said.h"
#include "test_fpm_bench.h"

#define LISTED   4321u
#define STRANGER 1234u

enum goes { STAYS, CLOSES, RESETS, SHUTS };

/* Return true if a process can get this user id. In a container it may have no mapping. */
static bool
can_be(uid_t uid)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setuid(uid) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/*
 * Return true if the kernel answers a question about a TCP socket. The question is not
 * made by peer.c, so that a fault in peer.c does not skip the tests.
 */
static bool
kernel_tells(void)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req_v2 req;
	} ask = {.nlh = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		 .req = {.sdiag_family = AF_INET,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX}};
	char answer[8192] __attribute__((aligned(8)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t n = -1;

	if (fd >= 0 && send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask))
		n = recv(fd, answer, sizeof(answer), 0);
	if (fd >= 0)
		close(fd);
	return n >= (ssize_t)sizeof(struct nlmsghdr) &&
	       ((struct nlmsghdr *)answer)->nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

/* Skip the test if it cannot run programs of other users. */
static void
need_others(void)
{
	const char *why = geteuid() != 0 ? "not root"
			  : !can_be(LISTED) || !can_be(STRANGER)
				  ? "other users are not known here"
			  : !kernel_tells() ? "the kernel does not tell whose a socket is"
					    : NULL;

	if (why == NULL)
		return;
	print_message("skipped: %s\n", why);
	skip();
}

/* A bench that accepts root and the user `LISTED`. */
static struct bench *
choosy_bench(int af)
{
	struct bench *b = bench_start(af, 1 << 20);
	struct fpm *fpm = b->w.ctx;

	fpm->conf.from.users = FPM_USERS_LISTED;
	fpm->conf.from.n_user = 1;
	fpm->conf.from.user[0].uid = LISTED;
	fpm->checks_users = true;
	return b;
}

/*
 * Connect to `a` and send `said`. Then leave the connection open (STAYS), close it, reset
 * it, or shut down its sending side (SHUTS). Return the socket, or -1.
 */
static int
connected(const struct sockaddr_storage *a, const void *said, size_t len, enum goes goes)
{
	const struct linger reset = {.l_onoff = 1};
	int fd = socket(a->ss_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ||
	    send(fd, said, len, MSG_NOSIGNAL) < 0)
		return -1;
	if (goes == RESETS)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (goes == CLOSES || goes == RESETS)
		close(fd);
	if (goes == SHUTS)
		shutdown(fd, SHUT_WR);
	return fd;
}

/*
 * Start a program of user `uid`. It connects `times` times and sends a route each time.
 * With STAYS and SHUTS it then waits until the last connection is closed. Return its pid.
 * `done` becomes readable when it has sent all routes.
 */
static pid_t
program(uid_t uid, const struct sockaddr_storage *a, unsigned int times, enum goes goes,
	int *done)
{
	struct wire *w = one_frame();
	int end[2], fd = -1;
	pid_t pid;
	char c;

	put_route(w, "198.51.100.0/24", 1);
	frame_end(w);
	assert_int_equal(pipe(end), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(PATIENCE_S);
		/* Close the parent's sockets, so that the parent's close() takes effect. */
		closefrom(end[1] + 1);
		for (int i = 3; i < end[0]; i++)
			close(i);
		if (setuid(uid) < 0)
			_exit(1);
		for (unsigned int i = 0; i < times; i++)
			fd = connected(a, w->octet, w->len, goes);
		if (times == 1 && fd < 0)
			_exit(1);
		if (write(end[1], "!", 1) != 1)
			_exit(1);
		if (goes == STAYS || goes == SHUTS)
			while (recv(fd, &c, 1, 0) > 0)
				continue;
		_exit(0);
	}
	close(end[1]);
	*done = end[0];
	free(w);
	return pid;
}

static void
await(int done)
{
	char c;

	assert_int_equal(read(done, &c, 1), 1);
	close(done);
}

static void
ends(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
a_program_of_another_user_is_no_zebra(void **state)
{
	static const int family[] = {AF_INET, AF_INET6};

	need_others();
	for (unsigned int i = 0; i < 2; i++) {
		struct bench *b = choosy_bench(family[i]);
		struct sockaddr_storage a;
		unsigned int told;
		int done;
		pid_t pid;

		if (bench_run(b) < 0) { /* no IPv6 */
			bench_free(b);
			continue;
		}
		a = loopback(family[i], b->port);
		log_set_level(LOG_LEVEL_INFO);
		told = log_said("fpm: connection refused reason=user uid=1234");
		ends(program(STRANGER, &a, 1, STAYS, &done));
		await(done);
		assert_int_equal(fpm_status.strangers, 1);
		assert_int_equal(fpm_status.accepts, 0);
		assert_true(log_said("fpm: connection refused reason=user uid=1234") >
			    told);
		log_set_level(LOG_LEVEL_ERROR);

		pid = program(LISTED, &a, 1, STAYS, &done);
		rib_hears(&b->rib, "up gen1 pid4242;route 198.51.100.0/24 t254 nh1;");
		await(done);
		close(client(b)); /* a client of root, because the test runs as root */
		eventually(fpm_status.strangers + fpm_status.accepts == 3);
		bench_free(b);
		ends(pid);
	}
}

/*
 * The route, the end of the program and the question to the kernel may come in any order.
 */
static void
a_program_that_ends_before_its_user_is_known_is_ignored(void **state)
{
	static const enum goes goes[] = {CLOSES, RESETS};
	struct bench *b;
	struct sockaddr_storage a;
	int done, fd;

	need_others();
	b = choosy_bench(AF_INET);
	assert_int_equal(bench_run(b), 0);
	a = loopback(AF_INET, b->port);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t before = status_get(&fpm_status.strangers);

		ends(program(STRANGER, &a, 40, goes[i], &done));
		await(done);
		/* Some connections that were reset are never accepted. */
		eventually(status_get(&fpm_status.strangers) > before);
	}
	/* After these connections, a client of root is accepted. */
	fd = client(b);
	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	close(fd);
	bench_free(b);
}

static struct sockaddr_storage
listening(int af, int *fd)
{
	struct sockaddr_storage a = {.ss_family = (sa_family_t)af}; /* any address */
	const struct timeval most = {.tv_sec = PATIENCE_S};
	socklen_t len = sizeof(a);

	*fd = socket(af, SOCK_STREAM, 0);
	assert_true(*fd >= 0);
	/* The time limit holds for accept(), too. */
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	assert_int_equal(bind(*fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(*fd, 4), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&a, &len), 0);
	return a;
}

/*
 * Return the result of peer_uid() for a program of STRANGER that ends its connection by
 * `goes`. Its route stays readable.
 */
static int
uid_of(int af, int to_af, enum goes goes, uid_t *uid)
{
	struct sockaddr_storage a, to, peer = {0}, own = {0};
	socklen_t len = sizeof(peer), own_len = sizeof(own);
	struct mnl_socket *nl;
	int fd, conn, done, rc;
	pid_t pid;
	char c;

	a = listening(af, &fd);
	to = loopback(to_af, ntohs(((struct sockaddr_in *)&a)->sin_port));
	assert_int_equal(peer_begin(&nl, "", &a), 0);
	assert_non_null(nl);
	pid = program(STRANGER, &to, 1, goes, &done);
	await(done);
	conn = accept(fd, (struct sockaddr *)&peer, &len);
	assert_true(conn >= 0);
	assert_int_equal(getsockname(conn, (struct sockaddr *)&own, &own_len), 0);
	rc = peer_uid(nl, &peer, &own, uid);
	assert_int_equal(recv(conn, &c, 1, 0), 1);
	peer_end(&nl);
	close(conn);
	close(fd);
	ends(pid);
	return rc;
}

static bool
has_loopback6(void)
{
	struct sockaddr_storage a = loopback(AF_INET6, 0);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

static void
the_kernel_knows_whose_a_connection_is_while_it_is_open(void **state)
{
	uid_t uid = 0;

	need_others();
	assert_int_equal(uid_of(AF_INET, AF_INET, STAYS, &uid), 0);
	assert_int_equal(uid, STRANGER);
	uid = STRANGER;
	if (has_loopback6()) {
		uid = 0; /* ::ffff:127.0.0.1 */
		assert_int_equal(uid_of(AF_INET6, AF_INET, STAYS, &uid), 0);
		assert_int_equal(uid, STRANGER);
		uid = 0;
		assert_int_equal(uid_of(AF_INET6, AF_INET6, STAYS, &uid), 0);
	}
	assert_int_equal(uid, STRANGER);
	/* For a closed connection the kernel reports root or no socket. */
	assert_true(uid_of(AF_INET, AF_INET, SHUTS, &uid) < 0);
	assert_true(uid_of(AF_INET, AF_INET, CLOSES, &uid) < 0);
	assert_true(uid_of(AF_INET, AF_INET, RESETS, &uid) < 0);
}

/*
 * In a child process: allow no further descriptor, then ask the kernel for the socket at
 * `a`. Return an exit code.
 */
static int
short_of_descriptors(const struct sockaddr_storage *a)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
	struct sockaddr_storage absent = loopback(AF_INET, 1);
	struct mnl_socket *nl;
	int rc;

	/*
	 * If the kernel cannot find the socket, fpm accepts clients without asking the
	 * kernel.
	 */
	rc = peer_begin(&nl, "", &absent);
	if (rc != -EOPNOTSUPP || nl != NULL)
		return 2;
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return 3;
	return peer_begin(&nl, "", a) == -EMFILE && nl == NULL ? 0 : 4;
}

static void
a_missing_descriptor_does_not_end_the_check_of_users(void **state)
{
	struct sockaddr_storage a;
	struct mnl_socket *nl;
	int fd, status;
	pid_t child;

	need_others();
	a = listening(AF_INET, &fd);
	assert_int_equal(peer_begin(&nl, "", &a), 0);
	assert_non_null(nl);
	peer_end(&nl);
	assert_null(nl);
	peer_end(&nl); /* a second call is allowed */
	child = fork();
	if (child == 0) {
		alarm(PATIENCE_S);
		_exit(short_of_descriptors(&a));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(fd);
	assert_int_equal(status, 0);
}

static void
the_first_user_namespace_maps_all_users(void **state)
{
	char text[64] = "";
	unsigned int from = 1, to = 1, n = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_int_equal(sscanf(text, "%u %u %u", &from, &to, &n), 3);
	assert_int_equal(peer_users_all_mapped(), from == 0 && to == 0 && n == UINT32_MAX);
}

/* The child is root of a user namespace that maps only root. Return an exit code. */
static int
contained(const struct sockaddr_storage *other, int other_fd)
{
	struct sockaddr_storage peer = {0}, own = {0};
	socklen_t len = sizeof(peer), own_len = sizeof(own);
	struct mnl_socket *nl;
	uid_t uid;
	int fd, conn;

	if (!peer_users_all_mapped() || unshare(CLONE_NEWUSER) < 0)
		return 77;
	fd = open("/proc/self/uid_map", O_WRONLY);
	if (fd < 0 || write(fd, "0 0 1", 5) != 5)
		return 77;
	if (peer_users_all_mapped())
		return 2;
	conn = accept(other_fd, (struct sockaddr *)&peer, &len);
	if (getsockname(conn, (struct sockaddr *)&own, &own_len) < 0 ||
	    peer_begin(&nl, "", other) < 0 || nl == NULL)
		return 3;
	return peer_uid(nl, &peer, &own, &uid) == 0 && uid == PEER_OVERFLOW_UID ? 0 : 4;
}

static void
a_user_of_another_namespace_is_the_overflow_user(void **state)
{
	struct sockaddr_storage a, to;
	int fd, done, status;
	pid_t pid, child;

	need_others();
	a = listening(AF_INET, &fd);
	to = loopback(AF_INET, ntohs(((struct sockaddr_in *)&a)->sin_port));
	pid = program(STRANGER, &to, 1, STAYS, &done);
	await(done);
	child = fork();
	if (child == 0) {
		alarm(PATIENCE_S);
		_exit(contained(&a, fd));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		print_message("skipped: no user namespaces\n");
		skip();
	}
	ends(pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_of_another_user_is_no_zebra),
		cmocka_unit_test(a_program_that_ends_before_its_user_is_known_is_ignored),
		cmocka_unit_test(the_kernel_knows_whose_a_connection_is_while_it_is_open),
		cmocka_unit_test(a_missing_descriptor_does_not_end_the_check_of_users),
		cmocka_unit_test(the_first_user_namespace_maps_all_users),
		cmocka_unit_test(a_user_of_another_namespace_is_the_overflow_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
