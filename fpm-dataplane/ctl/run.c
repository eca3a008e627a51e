/* SPDX-License-Identifier: BSD-3-Clause */
/* Run a program and read its output, with a limit on its silence. */
#include "ctl/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/haste.h"

#define WORDS_MAX  32
#define PIPE_BYTES (1 << 20)
#define READ_BYTES (1 << 16)
#define END_MS     1000 /* time for the program to end its own children after SIGTERM */

extern char **environ;

/*
 * If there is less output than a read takes, wait two milliseconds for more. A program may
 * write each line separately. If each line were read at once, both programs would need a
 * context switch per line.
 */
static void
run_let_write(const struct run *run)
{
	static const struct timespec some_lines = {.tv_nsec = 2000000};
	struct pollfd p = {.fd = run->fd, .events = POLLIN};
	int there = 0;

	if (poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) == 0 &&
	    ioctl(run->fd, FIONREAD, &there) == 0 && there < READ_BYTES)
		nanosleep(&some_lines, NULL);
}

/*
 * Read the output. After patience_s without output kill the program, for example a vtysh
 * that waits for a zebra that hangs; the output ends then.
 */
static ssize_t
run_read(void *cookie, char *buf, size_t size)
{
	struct run *run = cookie;
	struct pollfd p = {.fd = run->fd, .events = POLLIN};
	int rc = run->silent
			 ? 0
			 : poll(&p, 1, (int)haste_ms((unsigned int)run->patience_s * 1000));

	if (rc > 0) {
		run_let_write(run);
		return read(run->fd, buf, size);
	}
	if (rc < 0 || run->silent)
		return rc;
	run->silent = true;
	/*
	 * If sudo or `ip netns exec` runs the program, it passes on SIGTERM, but not
	 * SIGKILL.
	 */
	kill(run->pid, SIGTERM);
	if (poll(&p, 1, END_MS) == 0)
		kill(run->pid, SIGKILL);
	return 0;
}

static int
run_close(void *cookie)
{
	return close(((struct run *)cookie)->fd);
}

int
run_start(struct run *run, const char *program, const char *command)
{
	char *words = strdup(program), *save = NULL, *argv[WORDS_MAX];
	posix_spawn_file_actions_t actions;
	int fd[2], n = 0, rc;

	if (words == NULL)
		abort(); /* out of memory for some octets */
	for (char *w = strtok_r(words, " ", &save); w != NULL && n < WORDS_MAX - 3;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	if (command != NULL) {
		argv[n++] = (char *)(uintptr_t) "-c";
		argv[n++] = (char *)(uintptr_t)command;
	}
	argv[n] = NULL;
	rc = argv[0] == NULL ? EINVAL : pipe(fd) < 0 ? errno : 0;
	if (rc == 0) {
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, fd[1], 1);
		posix_spawn_file_actions_addclose(&actions, fd[0]);
		posix_spawn_file_actions_addclose(&actions, fd[1]);
		if (run->quiet)
			posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY,
							 0);
		rc = posix_spawnp(&run->pid, argv[0], &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
		close(fd[1]);
		run->fd = fd[0];
		run->out = fopencookie(
			run, "r",
			(cookie_io_functions_t){.read = run_read, .close = run_close});
		if (run->out == NULL)
			abort(); /* out of memory for some hundred octets */
		(void)fcntl(fd[0], F_SETPIPE_SZ, PIPE_BYTES);
		setvbuf(run->out, NULL, _IOFBF, READ_BYTES);
		if (rc != 0)
			fclose(run->out);
	}
	if (rc != 0 && !run->quiet)
		fprintf(stderr, "fpmctl: cannot run '%s': %s\n", program, strerror(rc));
	free(words);
	return rc == 0 ? 0 : -1;
}

int
run_end(struct run *run)
{
	int status = 0;

	fclose(run->out);
	while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return run->silent ? -ETIMEDOUT : -1;
}
