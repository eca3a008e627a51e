/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process starts another and the two exchange single octets. posix_spawn() and not
 * fork(): that would mark all memory for copying under the forwarders' hands.      [main]
 */
#include "succeed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"
#include "plan.h"

#define LOOK_MS    10
#define SIGN_MS    1000   /* of life, to the service manager */
#define PREPARE_MS 60000u /* a successor that has not got ready by then will not */
#define NAMES      8192
#define HIGH_FD    512 /* out of the way of those that the successor inherits */

enum step { PREPARED = 1, FROZEN, READY, GONE };

struct successor {
	pid_t pid;
	int sock;
};

/* Where they are wanted: from SERVICE_FIRST_FD on, and nothing above them. */
static int
place(posix_spawn_file_actions_t *actions, const struct kept *fd, unsigned int n_fd,
      int *high)
{
	int rc = 0;

	for (unsigned int i = 0; i < n_fd && rc == 0; i++) {
		high[i] = fcntl(fd[i].fd, F_DUPFD_CLOEXEC, HIGH_FD);
		rc = high[i] < 0 ? errno
				 : posix_spawn_file_actions_adddup2(
					   actions, high[i], SERVICE_FIRST_FD + (int)i);
	}
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions,
							      SERVICE_FIRST_FD + (int)n_fd);
	return -rc;
}

/* With all CPUs and the signals that we were born with. */
static int
spawn(pid_t *pid, char *const argv[], const struct kept *fd, unsigned int n_fd,
      const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	char names[NAMES], **env;
	posix_spawnattr_t attr;
	int high[KEPT_MAX], rc;
	size_t len = 0;

	for (unsigned int i = 0; i < n_fd; i++) {
		high[i] = -1;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					i == 0 ? "" : ":", fd[i].name);
	}
	env = service_env(names, n_fd);
	if (env == NULL)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = place(&actions, fd, n_fd, high);
	if (rc == 0) {
		plan_everywhere(true);
		rc = -posix_spawnp(pid, argv[0], &actions, &attr, argv, env);
		plan_everywhere(false);
	}
	for (unsigned int i = 0; i < n_fd; i++)
		if (high[i] >= 0)
			close(high[i]);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	service_env_free(env);
	return rc;
}

static int
start(struct successor *s, const struct predecessor *old)
{
	unsigned int n = old->n_kept;
	struct kept all[KEPT_MAX];
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	memcpy(all, old->kept, n * sizeof(*all));
	all[n].fd = pair[1];
	snprintf(all[n].name, sizeof(all[n].name), SERVICE_SUCCESSOR);
	rc = spawn(&s->pid, old->argv, all, n + 1, &old->born_with);
	close(pair[1]);
	s->sock = pair[0];
	if (rc < 0)
		close(pair[0]);
	return rc;
}

/* Whether it is heard tells what the other one answers. */
static void
say(int sock, enum step step)
{
	unsigned char word = (unsigned char)step;

	(void)!send(sock, &word, sizeof(word), MSG_NOSIGNAL);
}

/* Returns 0, -EPIPE, -EAGAIN after `most_ms`. */
static int
hear(int sock, enum step step, int most_ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	unsigned char word;
	ssize_t n;

	if (poll(&p, 1, most_ms) <= 0)
		return -EAGAIN;
	n = recv(sock, &word, sizeof(word), MSG_DONTWAIT);
	return n == 1 && word == step ? 0 : -EPIPE;
}

/* Returns 0, -ETIMEDOUT, -EPIPE: it ended, -EINTR: we are to end. */
static int
await(const struct successor *s, enum step step)
{
	uint64_t begin = monotonic_ms(), sign = begin;
	int rc;

	while ((rc = hear(s->sock, step, LOOK_MS)) == -EAGAIN) {
		uint64_t now = monotonic_ms();
		sigset_t there;

		sigpending(&there);
		if (sigismember(&there, SIGTERM) || sigismember(&there, SIGINT))
			return -EINTR;
		if (now - begin >= PREPARE_MS)
			return -ETIMEDOUT;
		if (now - sign >= SIGN_MS) {
			service_hint("WATCHDOG=1");
			sign = now;
		}
	}
	return rc;
}

/* Returns its exit code, 128 and a signal's number, or -errno. */
static int
give_up(const struct successor *s)
{
	int status;

	close(s->sock); /* one that lives ends by it, one that hangs does not */
	kill(s->pid, SIGKILL);
	if (waitpid(s->pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Is there another way? */
static enum handover
failed(const struct successor *s, int rc, bool frozen)
{
	int code = give_up(s);

	log_error("main: successor is not ready error=%s code=%d", strerror(-rc), code);
	if (frozen || code != SERVICE_EXIT_CONFIG)
		return HANDOVER_SLOW;
	log_error("main: restart refused: the configuration is wrong");
	return HANDOVER_REFUSED;
}

enum handover
succeed_hand_over(const struct predecessor *old)
{
	struct successor s;
	char said[32];
	int rc = start(&s, old);

	if (rc < 0) {
		log_error("main: successor does not start error=%s", strerror(-rc));
		return HANDOVER_SLOW;
	}
	log_info("main: successor prepares pid=%d", (int)s.pid);
	rc = await(&s, PREPARED);
	if (rc < 0)
		return failed(&s, rc, false);
	rc = old->freeze();
	if (rc == 0) {
		say(s.sock, FROZEN);
		rc = await(&s, READY);
	}
	if (rc < 0)
		return failed(&s, rc, true);
	snprintf(said, sizeof(said), "MAINPID=%d", (int)s.pid);
	service_say(said);
	old->let_go();
	say(s.sock, GONE);
	close(s.sock);
	return HANDOVER_DONE;
}

/* Returns 0, -EPIPE: the old one has died. `meanwhile` (or NULL) runs every millisecond. */
static int
obey(int sock, enum step step, void (*meanwhile)(void))
{
	int rc;

	while ((rc = hear(sock, step, meanwhile == NULL ? -1 : 1)) == -EAGAIN)
		if (meanwhile != NULL)
			meanwhile();
	return rc;
}

int
succeed_to(int sock, int (*prepare)(void), void (*discard)(void))
{
	int rc;

	say(sock, PREPARED);
	rc = obey(sock, FROZEN, NULL);
	if (rc == 0)
		rc = prepare();
	if (rc < 0)
		return rc;
	discard();
	say(sock, READY);
	rc = obey(sock, GONE, discard);
	discard(); /* what came until now was the old one's to forward */
	close(sock);
	return rc;
}
