/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon has a process keep its NICs: starts it, meets that of its predecessor, has it end.
 *                                                                                   [main]
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

#define END_MS   8000 /* for drivers, to close; systemd kills after 20 s */
#define ALONE_MS 1000 /* for one that ends by itself and asks no driver */

static int process = -1; /* a descriptor of it: pidfd_open(2) */
static pid_t child;      /* its id, where it is ours to wait for */

static int
process_has_ended(int most_ms)
{
	struct pollfd p = {.fd = process, .events = POLLIN};

	return process < 0 || poll(&p, 1, most_ms) > 0;
}

static void
process_kill(void)
{
	if (!process_has_ended(0)) {
		(void)syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0);
		(void)process_has_ended(END_MS);
	}
	if (process >= 0)
		close(process);
	process = -1;
}

/* One that a daemon that crashed has left ends by itself, and has the NICs until it has. */
static void
last_process_end(void)
{
	process = sd_take(NICS_LIFE);
	(void)process_has_ended(ALONE_MS);
	process_kill();
}

static int
process_start(const struct config *conf, char *const argv[], const sigset_t *born_with,
	      int *sock)
{
	char *const words[] = {argv[0], (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t)conf->file, (char *)(uintptr_t) "--nics",
			       NULL};
	struct child nicd;
	int rc = child_start(&nicd, words, NULL, 0, NICS_FD, born_with);

	if (rc < 0)
		return rc;
	process = (int)syscall(SYS_pidfd_open, nicd.pid, 0);
	child = nicd.pid;
	*sock = nicd.sock;
	return 0;
}

static int
take_over_refuse(const char *why)
{
	log_warn("main: the process that keeps the NICs cannot be taken over: %s", why);
	nics_part(false);
	return -ENOMEM;
}

static int
process_take_over(const struct config *conf, int sock, struct nics_reply *hello)
{
	int rc = nics_meet(sock, hello);

	if (rc == -EPROTO)
		return take_over_refuse("it is of another version");
	if (rc < 0)
		return take_over_refuse(strerror(-rc));
	if (!conf->keep_nics)
		return take_over_refuse("keep-nics is false now");
	if (hello->began_with != eal_hash(conf))
		return take_over_refuse(
			"memory.size-mib, the largest MTU or plugins are others now");
	process = (int)syscall(SYS_pidfd_open, hello->pid, 0);
	return 0;
}

/* One that was started has ended, or does not speak as it should: because of what? */
static int
nicd_failure_log(const struct config *conf, int rc, pid_t old)
{
	int status = 0;

	if (rc == -EPIPE && child != 0 && waitpid(child, &status, 0) == child &&
	    WIFEXITED(status) && WEXITSTATUS(status) == SD_EXIT_ROOM)
		rc = eal_memory_error(conf, -ENOMEM, old);
	if (rc != -ENOMEM || old == 0)
		log_error("main: no process that keeps the NICs error=%s",
			  rc == -EPIPE ? "it has ended" : strerror(-rc));
	return rc;
}

/* A new one. */
static int
process_begin(const struct config *conf, char *const argv[], pid_t old,
	      const sigset_t *born_with, struct nics_reply *hello)
{
	int sock = -1, rc;

	if (old == 0)
		last_process_end();
	if (!conf->keep_nics)
		return 0;
	rc = process_start(conf, argv, born_with, &sock);
	if (rc == 0)
		rc = nics_meet(sock, hello);
	return rc < 0 ? nicd_failure_log(conf, rc, old) : 0;
}

int
nics_begin(const struct config *conf, char *const argv[], pid_t old,
	   const sigset_t *born_with)
{
	int sock = sd_take(NICS_FD), rc;
	struct nics_reply hello = {0};

	if (sock >= 0)
		rc = process_take_over(conf, sock, &hello);
	else
		rc = process_begin(conf, argv, old, born_with, &hello);
	if (rc == 0 && conf->keep_nics)
		eal_join(hello.prefix, hello.client);
	return rc;
}

void
nics_keep(void)
{
	sd_fdremove(NICS_LIFE);
	if (process >= 0)
		sd_fdstore(NICS_LIFE, process);
}

void
nics_mistrust(void)
{
	if (!nics_are_kept())
		return;
	log_error("main: DPDK is shared with a daemon that has died: this one begins anew");
	_exit(1); /* a crash, to the service manager */
}

void
nics_end(void)
{
	nics_part(true);
	if (!process_has_ended(END_MS))
		log_warn(
			"main: the process that keeps the NICs does not end, it is killed");
	process_kill();
}
