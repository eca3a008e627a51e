/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two roles in a handover: the predecessor's first, then the successor's.     [main]
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
#include "port/nicd_client.h"
#include "restart/fdstore.h"
#include "restart/restart_lock.h"
#include "restart/spawn.h"
#include "start/preflight.h"

#define LOOK_MS    10
#define SIGN_MS    1000   /* of life, to the service manager */
#define PREPARE_MS 60000u /* a successor that has not got ready by then will not */
#define END_MS     5000   /* for one that need not be killed, to end */
#define DEATH_MS   5000   /* for the kernel, to take a killed one apart */
#define SPARE_S    5      /* of one that hangs, behind what its successor gives it */

enum step { PREPARED = 1, QUIESCED, READY, COMMITTED, STOPPED, CLOSED };

static pid_t successor_pid; /* of the last one that was started */

/* Ignores errors: the wait for the next step tells whether the other process lives. */
static void
step_send(int sock, enum step step)
{
	unsigned char word = (unsigned char)step;

	(void)!send(sock, &word, sizeof(word), MSG_NOSIGNAL);
}

/* Receive a step. Returns 0, -EPIPE, -EAGAIN after `most_ms`. */
static int
step_receive(int sock, enum step step, int most_ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	unsigned char word;
	ssize_t n;

	if (poll(&p, 1, most_ms) <= 0)
		return -EAGAIN;
	n = recv(sock, &word, sizeof(word), MSG_DONTWAIT);
	return n == 1 && word == step ? 0 : -EPIPE;
}

/* Is a signal pending that ends the daemon? It stays pending. */
static bool
end_is_pending(void)
{
	sigset_t there;

	sigpending(&there);
	return sigismember(&there, SIGTERM) || sigismember(&there, SIGINT);
}

/* Await a step of the successor. Returns 0, -ETIMEDOUT, -EPIPE: it ended, -EINTR: signal. */
static int
successor_await(const struct child *s, enum step step)
{
	uint64_t begin = monotonic_ms(), sign = begin;
	int rc;

	while ((rc = step_receive(s->sock, step, LOOK_MS)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (end_is_pending())
			return -EINTR;
		if (now - begin >= PREPARE_MS)
			return -ETIMEDOUT;
		if (now - sign >= SIGN_MS) {
			sd_send_nowait("WATCHDOG=1");
			sign = now;
		}
	}
	return rc;
}

/*
 * End the successor. Returns how it ended, as wait(2) has it. One that lives ends by its socket,
 * one that hangs does not; what was killed while it had a lock in memory that we share has it
 * for ever.
 */
static int
successor_end(const struct child *s, bool shares)
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

/* Explain to clients why there is no successor. */
static void
failure_explain(int rc, int status, char why[SD_WHY_STRLEN])
{
	if (rc == -ETIMEDOUT)
		snprintf(why, SD_WHY_STRLEN, "its successor was not ready after %u s",
			 PREPARE_MS / 1000);
	else if (rc == -EAGAIN)
		snprintf(why, SD_WHY_STRLEN,
			 "the service manager does not listen, and would not know its "
			 "successor");
	else if (rc != -EPIPE)
		snprintf(why, SD_WHY_STRLEN,
			 "the service manager could not be told of its successor: %s",
			 strerror(-rc));
	else if (WIFSIGNALED(status))
		snprintf(why, SD_WHY_STRLEN, "its successor was ended by signal %d%s",
			 WTERMSIG(status),
			 WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGKILL
				 ? " (no memory?)"
				 : "");
	else if (WEXITSTATUS(status) == SD_EXIT_CONFIG)
		snprintf(why, SD_WHY_STRLEN,
			 "the configuration is wrong; `fpmctl config reload --dry-run` "
			 "tells "
			 "where");
	else
		snprintf(why, SD_WHY_STRLEN,
			 "its successor did not start, code %d; the log has the reason",
			 WEXITSTATUS(status));
}

/* Note and log why nothing has been begun. */
static enum handover
handover_refuse(const char *why)
{
	const struct timespec now = {0};
	sigset_t again;

	/* Who has asked meanwhile is told as well, and has not asked for another try. */
	sigemptyset(&again);
	sigaddset(&again, SD_SIGNAL_RESTART);
	(void)sigtimedwait(&again, NULL, &now);
	log_error("main: restart refused, this daemon forwards on: %s", why);
	sd_refusal_add(why);
	return HANDOVER_REFUSED;
}

/* Go on as before, and only then tell clients: they find all as it was. */
static enum handover
handover_cancel(const struct predecessor *old, const char *why)
{
	if (restart_unlock())
		old->reload();
	return handover_refuse(why);
}

/*
 * End first, and be started again. Without a supervisor to do that go on instead: a daemon that
 * is quiesced and cannot resume still forwards.
 */
static enum handover
handover_slow(const struct predecessor *old, bool quiesced, const char *because)
{
	char why[SD_WHY_STRLEN];

	if (sd_manager_runs())
		return HANDOVER_SLOW;
	if (quiesced)
		(void)workers_resume(&old->quiesce);
	snprintf(why, sizeof(why),
		 "%.90s, and nobody would start it again: its supervisor has ended",
		 because);
	return handover_cancel(old, why);
}

/* Resume rather than end for a successor that does not come. */
static enum handover
successor_failed(const struct child *s, const struct predecessor *old, int rc,
		 bool quiesced)
{
	int status = successor_end(s, nics_are_kept());
	char why[SD_WHY_STRLEN];

	if (rc == -EINTR) {
		log_info("main: restart given up, there is a signal to end");
		return HANDOVER_REFUSED;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == SD_EXIT_ROOM) {
		if (sd_manager_runs())
			log_warn("main: no memory for two daemons, the old one ends first");
		return handover_slow(old, quiesced, "there is no memory for two daemons");
	}
	failure_explain(rc, status, why);
	rc = quiesced ? workers_resume(&old->quiesce) : 0;
	if (rc == 0)
		return handover_cancel(old, why);
	log_error("main: successor is not ready, nor do we go on error=%s: %s",
		  strerror(-rc), why);
	return handover_slow(old, false, "its successor is not ready");
}

/* Start the successor with the TAPs, the checkpoint, and a socket to fpm-nics (-1: none). */
static int
successor_start(struct child *s, const struct predecessor *old, int nics)
{
	struct named_fd fd[FDSTORE_MAX];
	unsigned int n = fdstore_list(old->port, PORT_SLOTS, old->checkpoint_fd, fd);

	if (nics >= 0)
		fd[n++] = (struct named_fd){.name = NICS_FD, .fd = nics};
	return child_start(s, old->argv, fd, n, SD_SUCCESSOR, &old->born_with);
}

static enum handover
hand_over(const struct predecessor *old, int nics)
{
	struct child s = {.sock = -1};
	char said[SD_WHY_STRLEN];
	int rc = successor_start(&s, old, nics);

	if (rc < 0) {
		snprintf(said, sizeof(said), "its successor does not start: %s",
			 strerror(-rc));
		return handover_cancel(old, said);
	}
	successor_pid = s.pid;
	log_info("main: successor prepares pid=%d", (int)s.pid);
	rc = successor_await(&s, PREPARED);
	if (rc < 0)
		return successor_failed(&s, old, rc, false);
	rc = workers_quiesce(&old->quiesce);
	if (rc < 0) {
		successor_end(&s, nics_are_kept());
		return handover_slow(old, true, "a thread of it does not come to an end");
	}
	step_send(s.sock, QUIESCED);
	rc = successor_await(&s, READY);
	if (rc == 0 && end_is_pending()) /* all the while, not only in the waits */
		rc = -EINTR;
	if (rc == 0)
		rc = sd_set_mainpid(s.pid, haste_ms(SD_SEND_MS));
	if (rc < 0)
		return successor_failed(&s, old, rc, true);
	/* The successor sees to it that we end; this, should both hang. */
	alarm((HANDOVER_STOP_MS + HANDOVER_CLOSE_MS) / 1000 + SPARE_S);
	step_send(s.sock, COMMITTED);
	old->stop_forwarding();
	step_send(s.sock, STOPPED);
	old->close_exclusive();
	step_send(s.sock, CLOSED);
	close(s.sock);
	return HANDOVER_DONE;
}

enum handover
handover_to_successor(const struct predecessor *old)
{
	enum handover done;
	int nics;

	if (!restart_lock())
		return handover_refuse(
			"a port is being changed, or its device starts or ends");
	nics = nics_pair();
	if (nics < 0 && nics_are_kept())
		return handover_cancel(old,
				       "the daemon before this one has not quite ended");
	done = hand_over(old, nics);
	if (nics >= 0)
		close(nics);
	return done;
}

void
handover_pass_on_reload(void)
{
	sigset_t there;

	sigpending(&there);
	if (!sigismember(&there, SIGHUP))
		return;
	/*
	 * The successor may have parsed the old file. The PID cannot have been reused: we are its
	 * parent and have not reaped it.
	 */
	log_info("main: its successor reloads the configuration pid=%d",
		 (int)successor_pid);
	kill(successor_pid, SIGHUP);
}

/* --- the successor -------------------------------------------------------------------------- */

/* Packets that came until now were the predecessor's to forward: both receive each. */
static void
packets_discard(const struct successor *next)
{
	for (unsigned int i = 0; next->shared && i < next->n_port; i++)
		port_discard(&next->port[i]);
}

/*
 * Await a step of the predecessor. Returns 0, -EPIPE: it has died, -ETIMEDOUT after `most_ms`
 * (-1: never). With `discard` packets are discarded every millisecond.
 */
static int
predecessor_await(const struct successor *next, enum step step, int most_ms, bool discard)
{
	uint64_t begin = monotonic_ms(), sign = begin;
	int rc;

	while ((rc = step_receive(next->sock, step, discard ? 1 : -1)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (discard)
			packets_discard(next);
		if (most_ms >= 0 && now - begin >= (uint64_t)most_ms)
			return -ETIMEDOUT;
		if (now - sign >= SIGN_MS) { /* heard from COMMITTED on */
			sd_send_nowait("WATCHDOG=1");
			sign = now;
		}
	}
	return rc;
}

pid_t
predecessor_pid(int sock)
{
	struct ucred other;
	socklen_t len = sizeof(other);

	if (sock < 0 || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &other, &len) < 0)
		return 0;
	return other.pid;
}

/* A descriptor of the predecessor that tells of its end; -1: an old kernel. */
static int
predecessor_open(int sock)
{
	pid_t pid = predecessor_pid(sock);

	return pid == 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

/*
 * The predecessor has died (-EPIPE), or does not go on: it is gone when this returns, or cannot
 * be killed.
 */
static void
predecessor_end(int pidfd, int rc, const char *hangs)
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

/* Await the end of a process. Returns 0 or -ETIMEDOUT. */
static int
process_await_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	for (int ms = 0; pidfd >= 0 && poll(&p, 1, SIGN_MS) <= 0; ms += SIGN_MS) {
		if (ms >= HANDOVER_CLOSE_MS)
			return -ETIMEDOUT;
		sd_send_nowait("WATCHDOG=1");
	}
	return 0;
}

/*
 * All but to forward. What cannot be listened on has to be known now: from COMMITTED on no other
 * process would forward in our place. Returns 0 or -errno.
 */
static int
successor_prepare(const struct successor *next)
{
	struct worker *const settling[] = {next->rib, next->neigh};
	const struct timespec pause = {.tv_nsec = 1000000};
	int rc = preflight_listen(next->conf);

	if (rc == 0)
		rc = worker_launch(next->rib);
	if (rc < 0)
		return rc;
	while (!worker_has_begun(next->rib))
		nanosleep(&pause, NULL);
	rc = worker_start(next->rib);
	if (!next->shared)
		return rc;
	if (rc == 0)
		rc = worker_start(next->neigh);
	if (rc == 0)
		worker_settle(settling, 2);
	return rc == 0 && next->rib_was_short(next->rib) ? -ENOMEM : rc;
}

static int
take_over(const struct successor *next, int pidfd)
{
	const char *hangs = "a thread of it hangs";
	int rc = predecessor_await(next, COMMITTED, -1, true);

	if (rc < 0)
		return rc;
	sd_unmute();
	sd_send_nowait("WATCHDOG=1"); /* from here on the manager counts */
	rc = predecessor_await(next, STOPPED, (int)haste_ms(HANDOVER_STOP_MS), true);
	if (rc == 0) {
		hangs = "a device of it hangs";
		rc = predecessor_await(next, CLOSED, HANDOVER_CLOSE_MS, true);
	}
	/* fpm-nics reopens devices only when the whole predecessor is gone. */
	if (rc == 0 && nics_are_kept() && !next->shared)
		rc = process_await_end(pidfd);
	if (rc < 0) {
		predecessor_end(pidfd, rc, hangs);
		next->mistrust();
	}
	packets_discard(next);
	return 0;
}

int
handover_from_predecessor(const struct successor *next)
{
	int pidfd = predecessor_open(next->sock), rc;

	step_send(next->sock, PREPARED);
	rc = predecessor_await(next, QUIESCED, -1, false);
	if (rc == 0)
		rc = successor_prepare(next);
	if (rc == 0) {
		packets_discard(next);
		step_send(next->sock, READY);
		rc = take_over(next, pidfd);
	}
	if (pidfd >= 0)
		close(pidfd);
	if (rc == 0)
		close(next->sock);
	return rc;
}
