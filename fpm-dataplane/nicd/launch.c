/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start fpm-nics, or connect to the fpm-nics of the predecessor, and end it.       [main]
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sd_notify.h"
#include "start/eal.h"
#include "nicd/nicd.h"
#include "restart/spawn.h"
#include "port/nicd_client.h"

#define END_MS   8000 /* for fpm-nics to close its devices; systemd kills after 20 s */
#define ALONE_MS 1000 /* for fpm-nics to exit by itself; it closes no device then */

static int nicd_pidfd = -1; /* a descriptor of fpm-nics: pidfd_open(2) */
static pid_t nicd_pid;      /* its process id, if it is a child of this process */

static int
nicd_has_exited(int max_ms)
{
	struct pollfd p = {.fd = nicd_pidfd, .events = POLLIN};

	return nicd_pidfd < 0 || poll(&p, 1, max_ms) > 0;
}

static void
nicd_kill(void)
{
	if (!nicd_has_exited(0)) {
		(void)syscall(SYS_pidfd_send_signal, nicd_pidfd, SIGKILL, NULL, 0);
		(void)nicd_has_exited(END_MS);
	}
	if (nicd_pidfd >= 0)
		close(nicd_pidfd);
	nicd_pidfd = -1;
}

/*
 * End the fpm-nics of a daemon that crashed. fpm-nics exits by itself, but holds the NICs
 * until then: wait ALONE_MS for it, then kill it.
 */
static void
crashed_nicd_end(void)
{
	nicd_pidfd = sd_take(NICD_PIDFD_NAME);
	(void)nicd_has_exited(ALONE_MS);
	nicd_kill();
}

static int
nicd_spawn(const struct config *conf, char *const argv[], const sigset_t *start_mask,
	   int *sock)
{
	char *const args[] = {argv[0], (char *)(uintptr_t) "-c",
			      (char *)(uintptr_t)conf->file, (char *)(uintptr_t) "--nics",
			      NULL};
	struct child nicd;
	int rc = child_start(&nicd, args, NULL, 0, NICD_FD, start_mask);

	if (rc < 0)
		return rc;
	nicd_pidfd = (int)syscall(SYS_pidfd_open, nicd.pid, 0);
	nicd_pid = nicd.pid;
	*sock = nicd.sock;
	return 0;
}

static int
nicd_refuse(const char *why)
{
	log_warn("main: fpm-nics not taken over reason=\"%s\"", why);
	nicd_disconnect(false);
	return -ENOMEM;
}

static int
nicd_take_over(const struct config *conf, int sock, struct nicd_reply *hello)
{
	int rc = nicd_connect(sock, hello);

	if (rc == -EPROTO)
		return nicd_refuse("it has another version");
	if (rc < 0)
		return nicd_refuse(strerror(-rc));
	if (!conf->keep_nics)
		return nicd_refuse("keep-nics is false now");
	if (hello->began_with != eal_hash(conf))
		return nicd_refuse(
			"memory.size-mib, the largest MTU or plugins have changed");
	nicd_pidfd = (int)syscall(SYS_pidfd_open, hello->pid, 0);
	return 0;
}

/*
 * Log the reason why the started fpm-nics has exited or does not answer correctly. Return
 * `rc`, or the code of eal_memory_error() if fpm-nics had too little memory.
 */
static int
nicd_failure_log(const struct config *conf, int rc, pid_t old)
{
	int status = 0;

	if (rc == -EPIPE && nicd_pid != 0 && waitpid(nicd_pid, &status, 0) == nicd_pid &&
	    WIFEXITED(status) && WEXITSTATUS(status) == SD_EXIT_ROOM)
		rc = eal_memory_error(conf, -ENOMEM, old);
	if (rc != -ENOMEM || old == 0)
		log_error("main: fpm-nics not started error=\"%s\"",
			  rc == -EPIPE ? "it has exited" : strerror(-rc));
	return rc;
}

/* Start fpm-nics, if the configuration wants it. */
static int
nicd_launch(const struct config *conf, char *const argv[], pid_t old,
	    const sigset_t *start_mask, struct nicd_reply *hello)
{
	int sock = -1, rc;

	if (old == 0)
		crashed_nicd_end();
	if (!conf->keep_nics)
		return 0;
	rc = nicd_spawn(conf, argv, start_mask, &sock);
	if (rc == 0)
		rc = nicd_connect(sock, hello);
	return rc < 0 ? nicd_failure_log(conf, rc, old) : 0;
}

int
nicd_start(const struct config *conf, char *const argv[], pid_t old,
	   const sigset_t *start_mask)
{
	int sock = sd_take(NICD_FD), rc;
	struct nicd_reply hello = {0};

	if (sock >= 0)
		rc = nicd_take_over(conf, sock, &hello);
	else
		rc = nicd_launch(conf, argv, old, start_mask, &hello);
	if (rc == 0 && conf->keep_nics)
		eal_join(hello.prefix, hello.client);
	return rc;
}

void
nicd_store_pidfd(void)
{
	sd_fdremove(NICD_PIDFD_NAME);
	if (nicd_pidfd >= 0)
		sd_fdstore(NICD_PIDFD_NAME, nicd_pidfd);
}

void
nicd_abandon(void)
{
	if (!nicd_is_connected())
		return;
	log_error("main: predecessor died while sharing dpdk effect=restart");
	_exit(1); /* the service manager treats this as a crash */
}

void
nicd_stop(void)
{
	nicd_disconnect(true);
	if (!nicd_has_exited(END_MS))
		log_warn("main: fpm-nics killed reason=does-not-exit");
	nicd_kill();
}
