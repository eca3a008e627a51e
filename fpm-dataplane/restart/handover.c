/* SPDX-License-Identifier: BSD-3-Clause */
/* The two roles in a handover: first the predecessor, then the successor.     [main] */
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

#define POLL_MS    10
#define NOTIFY_MS  1000   /* between two WATCHDOG=1 to the service manager */
#define PREPARE_MS 60000u /* for a successor to reach the next step */
#define END_MS     5000   /* for a successor to end when its socket is closed */
#define DEATH_MS   5000   /* for the kernel to end a killed process */
#define SPARE_S    5      /* for the successor to kill a predecessor that hangs */

enum step { PREPARED = 1, QUIESCED, READY, COMMITTED, STOPPED, CLOSED };

static pid_t successor_pid; /* of the last started successor */

/*
 * Send a step. Ignore errors, because the wait for the next step detects the death of the
 * other process.
 */
static void
step_send(int sock, enum step step)
{
	unsigned char word = (unsigned char)step;

	(void)!send(sock, &word, sizeof(word), MSG_NOSIGNAL);
}

/* Receive a step. Returns 0, -EPIPE, or -EAGAIN after `max_ms`. */
static int
step_receive(int sock, enum step step, int max_ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	unsigned char word;
	ssize_t n;

	if (poll(&p, 1, max_ms) <= 0)
		return -EAGAIN;
	n = recv(sock, &word, sizeof(word), MSG_DONTWAIT);
	return n == 1 && word == step ? 0 : -EPIPE;
}

/* Return true if a signal that ends the daemon is pending. The signal stays pending. */
static bool
end_signal_is_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}

/*
 * Wait for a step of the successor. Returns 0, -ETIMEDOUT, -EPIPE (the successor ended) or
 * -EINTR (signal).
 */
static int
successor_await(const struct child *child, enum step step)
{
	uint64_t begin = monotonic_ms(), notified = begin;
	int rc;

	while ((rc = step_receive(child->sock, step, POLL_MS)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (end_signal_is_pending())
			return -EINTR;
		if (now - begin >= PREPARE_MS)
			return -ETIMEDOUT;
		if (now - notified >= NOTIFY_MS) {
			sd_send_nowait("WATCHDOG=1");
			notified = now;
		}
	}
	return rc;
}

/*
 * End the successor: close its socket, and kill it. Returns its status as wait(2) does.
 * With `shares`, kill it only if it has not ended END_MS after its socket was closed,
 * because a process that is killed while it holds a lock in shared memory (fpm-nics)
 * never releases the lock.
 */
static int
successor_end(const struct child *child, bool shares)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	uint64_t begin = monotonic_ms();
	int status = 0;

	close(child->sock);
	while (shares && monotonic_ms() - begin < END_MS) {
		if (waitpid(child->pid, &status, WNOHANG) != 0)
			return status;
		nanosleep(&pause, NULL);
	}
	kill(child->pid, SIGKILL);
	waitpid(child->pid, &status, 0);
	return status;
}

/* Write the reason for which there is no successor, for clients. */
static void
failure_text(int rc, int status, char why[SD_WHY_STRLEN])
{
	if (rc == -ETIMEDOUT)
		snprintf(why, SD_WHY_STRLEN, "its successor was not ready after %u s",
			 PREPARE_MS / 1000);
	else if (rc == -EAGAIN)
		snprintf(why, SD_WHY_STRLEN,
			 "the service manager does not answer, so it would not know the "
			 "successor");
	else if (rc != -EPIPE)
		snprintf(why, SD_WHY_STRLEN,
			 "the service manager could not be notified of the successor: %s",
			 strerror(-rc));
	else if (WIFSIGNALED(status))
		snprintf(why, SD_WHY_STRLEN, "its successor was ended by signal %d%s",
			 WTERMSIG(status),
			 WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGKILL
				 ? " (perhaps no memory)"
				 : "");
	else if (WEXITSTATUS(status) == SD_EXIT_CONFIG)
		snprintf(why, SD_WHY_STRLEN,
			 "the configuration is wrong; `fpmctl config reload --dry-run` "
			 "shows where");
	else
		snprintf(why, SD_WHY_STRLEN,
			 "its successor did not start, code %d; the log has the reason",
			 WEXITSTATUS(status));
}

/* Log the refusal and note it for clients. */
static enum handover
handover_refuse(const char *why)
{
	const struct timespec now = {0};
	sigset_t requests;

	/*
	 * Consume a pending restart request: its client gets the same refusal, and no
	 * second attempt begins.
	 */
	sigemptyset(&requests);
	sigaddset(&requests, SD_SIGNAL_RESTART);
	(void)sigtimedwait(&requests, NULL, &now);
	log_error("main: restart refused reason=\"%s\"", why);
	sd_refusal_add(why);
	return HANDOVER_REFUSED;
}

/*
 * Cancel the handover: perform the delayed reload, then report the refusal. A client that
 * reads the refusal finds the daemon as before.
 */
static enum handover
handover_cancel(const struct predecessor *old, const char *why)
{
	if (restart_unlock())
		old->reload();
	return handover_refuse(why);
}

/*
 * End this daemon, so that the supervisor starts it again. Without a supervisor, resume
 * instead: even a quiesced daemon that cannot resume still forwards.
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
		 "%.90s, and its supervisor has ended, so nothing would start it again",
		 because);
	return handover_cancel(old, why);
}

/*
 * End the failed successor. Then resume, or without memory for two daemons end this daemon.
 */
static enum handover
successor_failed(const struct child *child, const struct predecessor *old, int rc,
		 bool quiesced)
{
	int status = successor_end(child, nicd_is_connected());
	char why[SD_WHY_STRLEN];

	if (rc == -EINTR) {
		log_info("main: restart cancelled reason=end-signal");
		return HANDOVER_REFUSED;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == SD_EXIT_ROOM) {
		if (sd_manager_runs())
			log_warn("main: no memory for two daemons "
				 "effect=forwarding-stops-until-successor-runs");
		return handover_slow(old, quiesced, "there is no memory for two daemons");
	}
	failure_text(rc, status, why);
	rc = quiesced ? workers_resume(&old->quiesce) : 0;
	if (rc == 0)
		return handover_cancel(old, why);
	log_error("main: handover and resume failed error=\"%s\" reason=\"%s\"",
		  strerror(-rc), why);
	return handover_slow(old, false, "its successor is not ready");
}

/*
 * Start the successor with the TAPs, the checkpoint, and a socket to fpm-nics (-1: none).
 */
static int
successor_start(struct child *child, const struct predecessor *old, int nics)
{
	struct named_fd fd[FDSTORE_MAX];
	unsigned int n = fdstore_list(old->port, PORT_SLOTS, old->checkpoint_fd, fd);

	for (unsigned int i = 0; i < old->n_thread_fd; i++)
		fd[n++] = old->thread_fd[i];
	if (nics >= 0)
		fd[n++] = (struct named_fd){.name = NICD_FD, .fd = nics};
	return child_start(child, old->argv, fd, n, SD_SUCCESSOR, &old->start_mask);
}

static enum handover
predecessor_hand_over(const struct predecessor *old, int nics)
{
	struct child child = {.sock = -1};
	char said[SD_WHY_STRLEN];
	int rc = successor_start(&child, old, nics);

	if (rc < 0) {
		snprintf(said, sizeof(said), "its successor does not start: %s",
			 strerror(-rc));
		return handover_cancel(old, said);
	}
	successor_pid = child.pid;
	log_info("main: successor started pid=%d", (int)child.pid);
	rc = successor_await(&child, PREPARED);
	if (rc < 0)
		return successor_failed(&child, old, rc, false);
	rc = workers_quiesce(&old->quiesce);
	if (rc < 0) {
		successor_end(&child, nicd_is_connected());
		return handover_slow(old, true, "a thread of the old daemon does not stop");
	}
	step_send(child.sock, QUIESCED);
	rc = successor_await(&child, READY);
	if (rc == 0 && end_signal_is_pending()) /* a signal may arrive between the waits */
		rc = -EINTR;
	if (rc == 0)
		rc = sd_set_mainpid(child.pid, haste_ms(SD_SEND_MS));
	if (rc < 0)
		return successor_failed(&child, old, rc, true);
	/*
	 * The successor kills this process when it hangs; the alarm ends it when both hang.
	 */
	alarm((HANDOVER_STOP_MS + HANDOVER_CLOSE_MS) / 1000 + SPARE_S);
	step_send(child.sock, COMMITTED);
	old->stop_forwarding();
	step_send(child.sock, STOPPED);
	old->close_exclusive();
	step_send(child.sock, CLOSED);
	close(child.sock);
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
	nics = nicd_pair();
	if (nics < 0 && nicd_is_connected())
		return handover_cancel(old, "the previous daemon has not ended yet");
	done = predecessor_hand_over(old, nics);
	if (nics >= 0)
		close(nics);
	return done;
}

void
handover_pass_reload(void)
{
	sigset_t pending;

	sigpending(&pending);
	if (!sigismember(&pending, SIGHUP))
		return;
	/*
	 * The successor may have parsed the old file. Its PID cannot have been reused: this
	 * process is its parent and has not reaped it.
	 */
	log_info("main: reload passed to successor pid=%d", (int)successor_pid);
	kill(successor_pid, SIGHUP);
}

/* --- the successor -------------------------------------------------------------------- */

/*
 * Discard the packets received until now: both daemons receive each packet, and the
 * predecessor forwards it.
 */
static void
packets_discard(const struct successor *next)
{
	for (unsigned int i = 0; next->shared && i < next->n_port; i++)
		port_discard(&next->port[i]);
}

/*
 * Wait for a step of the predecessor. Returns 0, -EPIPE (the predecessor died) or
 * -ETIMEDOUT after `max_ms` (-1: never). With `discard`, discard packets every millisecond.
 */
static int
predecessor_await(const struct successor *next, enum step step, int max_ms, bool discard)
{
	uint64_t begin = monotonic_ms(), notified = begin;
	int rc;

	while ((rc = step_receive(next->sock, step, discard ? 1 : -1)) == -EAGAIN) {
		uint64_t now = monotonic_ms();

		if (discard)
			packets_discard(next);
		if (max_ms >= 0 && now - begin >= (uint64_t)max_ms)
			return -ETIMEDOUT;
		/* The service manager ignores this until MAINPID= names the successor. */
		if (now - notified >= NOTIFY_MS) {
			sd_send_nowait("WATCHDOG=1");
			notified = now;
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

/* Open a descriptor that reports the end of the predecessor; -1: the kernel is too old. */
static int
predecessor_open(int sock)
{
	pid_t pid = predecessor_pid(sock);

	return pid == 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

/*
 * Kill a predecessor that hangs, or that has closed its connection (-EPIPE) and may not
 * have ended yet. When this returns, the process has ended or cannot be killed.
 */
static void
predecessor_end(int pidfd, int rc, const char *hanging)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (rc == -EPIPE)
		log_warn("main: predecessor died");
	else
		log_warn("main: killing predecessor hanging=%s", hanging);
	if (pidfd < 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	/* The kernel closes the descriptors of a process before it reports the end. */
	if (poll(&p, 1, DEATH_MS) <= 0)
		log_warn("main: predecessor not ended reason=kill-without-effect");
}

/* Wait for the end of a process. Returns 0 or -ETIMEDOUT. */
static int
process_await_end(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	for (int ms = 0; pidfd >= 0 && poll(&p, 1, NOTIFY_MS) <= 0; ms += NOTIFY_MS) {
		if (ms >= HANDOVER_CLOSE_MS)
			return -ETIMEDOUT;
		sd_send_nowait("WATCHDOG=1");
	}
	return 0;
}

/*
 * Prepare everything except forwarding. A listening address that cannot be used must be
 * detected here, because from COMMITTED on no other process can forward instead. Returns 0
 * or -errno.
 */
static int
successor_prepare(const struct successor *next)
{
	struct worker *const settling[] = {next->rib, next->neigh};
	const struct timespec pause = {.tv_nsec = 1000000};
	int rc = preflight_listen(next->conf, true);

	if (rc == 0)
		rc = worker_launch(next->rib);
	if (rc < 0)
		return rc;
	while (!worker_has_begun(next->rib))
		nanosleep(&pause, NULL);
	rc = worker_start(next->rib);
	if (rc == 0)
		rc = worker_start(next->rtnl);
	if (!next->shared)
		return rc;
	if (rc == 0)
		rc = worker_start(next->neigh);
	if (rc == 0)
		worker_settle(settling, 2);
	return rc == 0 && next->rib_was_short(next->rib) ? -ENOMEM : rc;
}

static int
successor_take_over(const struct successor *next, int pidfd)
{
	const char *hanging = "thread";
	int rc = predecessor_await(next, COMMITTED, -1, true);

	if (rc < 0)
		return rc;
	sd_unmute();
	sd_send_nowait("WATCHDOG=1"); /* the watchdog covers this process from now on */
	rc = predecessor_await(next, STOPPED, (int)haste_ms(HANDOVER_STOP_MS), true);
	if (rc == 0) {
		hanging = "device";
		rc = predecessor_await(next, CLOSED, HANDOVER_CLOSE_MS, true);
	}
	/* fpm-nics opens devices again only after the predecessor has ended. */
	if (rc == 0 && nicd_is_connected() && !next->shared)
		rc = process_await_end(pidfd);
	if (rc < 0) {
		predecessor_end(pidfd, rc, hanging);
		next->on_predecessor_death();
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
		rc = successor_take_over(next, pidfd);
	}
	if (pidfd >= 0)
		close(pidfd);
	if (rc == 0)
		close(next->sock);
	return rc;
}
