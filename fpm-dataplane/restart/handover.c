/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process starts another and the two exchange single octets.                     [main]
 */
#include "restart/handover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "restart/spawn.h"

#define LOOK_MS    10
#define SIGN_MS    1000   /* of life, to the service manager */
#define PREPARE_MS 60000u /* a successor that has not got ready by then will not */
#define END_MS     5000   /* for one that need not be killed, to end */
#define DEATH_MS   5000   /* for the kernel, to take a killed one apart */
#define SPARE_S    5      /* of one that hangs, behind what its successor gives it */

enum step { PREPARED = 1, FROZEN, READY, NAMED, RESTED, GONE };

static pid_t successor; /* the last one that was started */

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

/* Are we to end? The signal is left to who waits for it. */
static bool
is_told_to_end(void)
{
	sigset_t there;

	sigpending(&there);
	return sigismember(&there, SIGTERM) || sigismember(&there, SIGINT);
}

/* Returns 0, -ETIMEDOUT, -EPIPE: it ended, -EINTR: we are to end. */
static int
await(const struct child *s, enum step step)
{
	uint64_t begin = monotonic_ms(), sign = begin;
	int rc;

	while ((rc = hear(s->sock, step, LOOK_MS)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (is_told_to_end())
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

/*
 * Returns how it ended, as wait(2) has it. One that lives ends by its socket, one that hangs does
 * not; what was killed while it had a lock in memory that we share has it for ever.
 */
static int
give_up(const struct child *s, bool shares)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	uint64_t begin = monotonic_ms();
	int status = 0;

	close(s->sock);
	while (shares && monotonic_ms() - begin < END_MS) {
		if (waitpid(s->pid, &status, WNOHANG) != 0)
			return status;
		nanosleep(&pause, NULL);
	}
	kill(s->pid, SIGKILL);
	waitpid(s->pid, &status, 0);
	return status;
}

/* Why there is none, for who has asked for one. */
static void
explain(int rc, int status, char why[SERVICE_WHY_STRLEN])
{
	if (rc == -ETIMEDOUT)
		snprintf(why, SERVICE_WHY_STRLEN, "its successor was not ready after %u s",
			 PREPARE_MS / 1000);
	else if (rc == -EAGAIN)
		snprintf(why, SERVICE_WHY_STRLEN,
			 "the service manager does not listen, and would not know its "
			 "successor");
	else if (rc != -EPIPE)
		snprintf(why, SERVICE_WHY_STRLEN,
			 "the service manager could not be told of its successor: %s",
			 strerror(-rc));
	else if (WIFSIGNALED(status))
		snprintf(why, SERVICE_WHY_STRLEN, "its successor was ended by signal %d%s",
			 WTERMSIG(status),
			 WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGKILL
				 ? " (no memory?)"
				 : "");
	else if (WEXITSTATUS(status) == SERVICE_EXIT_CONFIG)
		snprintf(why, SERVICE_WHY_STRLEN,
			 "the configuration is wrong; `fpmctl config reload --dry-run` "
			 "tells "
			 "where");
	else
		snprintf(why, SERVICE_WHY_STRLEN,
			 "its successor did not start, code %d; the log has the reason",
			 WEXITSTATUS(status));
}

enum handover
succeed_refuse(const char *why)
{
	const struct timespec now = {0};
	sigset_t again;

	/* Who has asked meanwhile is told as well, and has not asked for another try. */
	sigemptyset(&again);
	sigaddset(&again, SERVICE_SIGNAL_RESTART);
	(void)sigtimedwait(&again, NULL, &now);
	log_error("main: restart refused, this daemon forwards on: %s", why);
	service_refused(why);
	return HANDOVER_REFUSED;
}

/* Who hears of it finds all as it was. */
static enum handover
refuse(const struct predecessor *old, const char *why)
{
	old->go_on();
	return succeed_refuse(why);
}

/*
 * There is no way but to end first, and to be started again: by nobody, where the supervisor
 * has ended (a daemon that is frozen and cannot be thawed still forwards).
 */
static enum handover
end_first(const struct predecessor *old, bool frozen, const char *because)
{
	char why[SERVICE_WHY_STRLEN];

	if (service_is_heard())
		return HANDOVER_SLOW;
	if (frozen)
		(void)old->thaw();
	snprintf(why, sizeof(why),
		 "%.90s, and nobody would start it again: its supervisor has ended",
		 because);
	return refuse(old, why);
}

/* What is worse than to go on as we are is to end for one that does not come. */
static enum handover
failed(const struct child *s, const struct predecessor *old, int rc, bool frozen)
{
	int status = give_up(s, old->shares);
	char why[SERVICE_WHY_STRLEN];

	if (rc == -EINTR) {
		log_info("main: restart given up, there is a signal to end");
		return HANDOVER_REFUSED;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == SERVICE_EXIT_ROOM) {
		if (service_is_heard())
			log_warn("main: no memory for two daemons, the old one ends first");
		return end_first(old, frozen, "there is no memory for two daemons");
	}
	explain(rc, status, why);
	rc = frozen ? old->thaw() : 0;
	if (rc == 0)
		return refuse(old, why);
	log_error("main: successor is not ready, nor do we go on error=%s: %s",
		  strerror(-rc), why);
	return end_first(old, false, "its successor is not ready");
}

enum handover
succeed_hand_over(const struct predecessor *old)
{
	struct child s = {.sock = -1};
	char said[SERVICE_WHY_STRLEN];
	int rc = child_start(&s, old->argv, old->kept, old->n_kept, SERVICE_SUCCESSOR,
			     &old->born_with);

	if (rc < 0) {
		snprintf(said, sizeof(said), "its successor does not start: %s",
			 strerror(-rc));
		return refuse(old, said);
	}
	successor = s.pid;
	log_info("main: successor prepares pid=%d", (int)s.pid);
	rc = await(&s, PREPARED);
	if (rc < 0)
		return failed(&s, old, rc, false);
	rc = old->freeze();
	if (rc < 0) {
		give_up(&s, old->shares);
		return end_first(old, true, "a thread of it does not come to an end");
	}
	say(s.sock, FROZEN);
	rc = await(&s, READY);
	if (rc == 0 && is_told_to_end()) /* all the while, not only in the waits */
		rc = -EINTR;
	if (rc == 0)
		rc = service_succeeded_by(s.pid, haste_ms(SERVICE_TELL_MS));
	if (rc < 0)
		return failed(&s, old, rc, true);
	/* The successor sees to it that we end; this, should both hang. */
	alarm((SUCCEED_REST_MS + SUCCEED_GO_MS) / 1000 + SPARE_S);
	say(s.sock, NAMED);
	old->rest();
	say(s.sock, RESTED);
	old->let_go();
	say(s.sock, GONE);
	close(s.sock);
	return HANDOVER_DONE;
}

void
succeed_pass_on(void)
{
	sigset_t there;

	sigpending(&there);
	if (!sigismember(&there, SIGHUP))
		return;
	/* It may have read its file before that was changed. It is no other's number: its parent
	 * is who we are, and has not waited for it. */
	log_info("main: its successor reloads the configuration pid=%d", (int)successor);
	kill(successor, SIGHUP);
}

/* --- the successor -------------------------------------------------------------------------- */

/*
 * Returns 0, -EPIPE: the old one has died, -ETIMEDOUT after `most_ms` (-1: never).
 * `meanwhile` (or NULL) runs every millisecond.
 */
static int
obey(int sock, enum step step, int most_ms, void (*meanwhile)(void))
{
	uint64_t begin = monotonic_ms(), sign = begin;
	int rc;

	while ((rc = hear(sock, step, meanwhile == NULL ? -1 : 1)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (meanwhile != NULL)
			meanwhile();
		if (most_ms >= 0 && now - begin >= (uint64_t)most_ms)
			return -ETIMEDOUT;
		if (now - sign >= SIGN_MS) { /* heard from NAMED on */
			service_hint("WATCHDOG=1");
			sign = now;
		}
	}
	return rc;
}

pid_t
succeed_whom(int sock)
{
	struct ucred other;
	socklen_t len = sizeof(other);

	if (sock < 0 || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &other, &len) < 0)
		return 0;
	return other.pid;
}

/* A descriptor that tells of the old one's end, and is the old one; -1: an old kernel. */
static int
other_open(int sock)
{
	pid_t pid = succeed_whom(sock);

	return pid == 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

/*
 * It has died (-EPIPE), or does not go on: the old one is no more then, or we cannot do anything
 * about it.
 */
static void
other_end(int pidfd, int rc, const char *hangs)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (rc == -EPIPE)
		log_warn("main: predecessor has died, this daemon goes on in its place");
	else
		log_warn("main: predecessor does not end as it should, it is killed: %s",
			 hangs);
	if (pidfd < 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	/* What it had open is closed before that. */
	if (poll(&p, 1, DEATH_MS) <= 0)
		log_warn("main: predecessor is killed and still there");
}

/* Of a process. Returns 0 or -ETIMEDOUT. */
static int
await_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	for (int ms = 0; pidfd >= 0 && poll(&p, 1, SIGN_MS) <= 0; ms += SIGN_MS) {
		if (ms >= SUCCEED_GO_MS)
			return -ETIMEDOUT;
		service_hint("WATCHDOG=1");
	}
	return 0;
}

static int
take_over(int sock, int other, const struct heir *heir)
{
	const char *hangs = "a thread of it hangs";
	int rc = obey(sock, NAMED, -1, heir->discard);

	if (rc < 0)
		return rc;
	service_speak();
	service_hint("WATCHDOG=1"); /* from here on the manager counts */
	rc = obey(sock, RESTED, (int)haste_ms(SUCCEED_REST_MS), heir->discard);
	if (rc == 0) {
		hangs = "a device of it hangs";
		rc = obey(sock, GONE, SUCCEED_GO_MS, heir->discard);
	}
	if (rc == 0 && heir->apart)
		rc = await_end(other);
	if (rc < 0) {
		other_end(other, rc, hangs);
		heir->orphaned();
	}
	heir->discard(); /* what came until now was the old one's to forward */
	return 0;
}

int
succeed_to(int sock, const struct heir *heir)
{
	int other = other_open(sock), rc;

	say(sock, PREPARED);
	rc = obey(sock, FROZEN, -1, NULL);
	if (rc == 0)
		rc = heir->prepare();
	if (rc == 0) {
		heir->discard();
		say(sock, READY);
		rc = take_over(sock, other, heir);
	}
	if (other >= 0)
		close(other);
	if (rc == 0)
		close(sock);
	return rc;
}
