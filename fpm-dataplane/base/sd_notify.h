/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sd_notify: the daemon's side of the service manager's protocol, as sd_notify(3) and
 * sd_listen_fds(3) describe it. The daemon reports its state, and stores descriptors that
 * the next daemon inherits. systemd and fpm-supervise are managers. Without a manager all
 * calls here do nothing.                                                            [main]
 */
#ifndef BASE_SD_NOTIFY_H
#define BASE_SD_NOTIFY_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define SD_EXIT_CONFIG  2  /* the configuration is wrong: do not start again */
#define SD_EXIT_RESTART 75 /* start again at once: a restart was requested */
#define SD_EXIT_ROOM    76 /* a successor or fpm-nics lacks memory for two daemons */
#define SD_EXIT_LATER   77 /* as SD_EXIT_CONFIG, but start again: descriptors are stored */

#define SD_FIRST_FD  3           /* first inherited descriptor */
#define SD_SUCCESSOR "successor" /* name of a successor's socket to its predecessor */

#define SD_WHY_STRLEN 160

#define SD_SEND_MS 5000u /* time for the manager to read a datagram, on a busy machine */

#define SD_SIGNAL_RESTART SIGUSR1 /* makes this process end with SD_EXIT_RESTART */

/* A descriptor and the name by which a process inherits it. */
struct named_fd {
	char name[64];
	int fd;
};

/*
 * Read LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, NOTIFY_SOCKET and WATCHDOG_USEC, remove
 * them from the environment, and make the descriptors close-on-exec. Call once, before any
 * other call here.
 */
void sd_init(void);

/*
 * Let a successor send from now on (restart/handover.h). Before, it sends nothing, because
 * it is not the main process yet: systemd would log a warning about each datagram. No
 * effect in other daemons.
 */
void sd_unmute(void);

/*
 * Return true if there is a manager, which starts the daemon again and keeps descriptors.
 */
bool sd_has_manager(void);

/*
 * Return false if the manager has ended, or never existed. A manager that is stopped or
 * busy counts as running.
 */
bool sd_manager_runs(void);

/*
 * Return true if the manager started this daemon after a crash or a stop, with stored
 * descriptors (TAPs, the checkpoint). If this daemon ends without a restart, they are lost.
 * False in a successor until sd_unmute(), because its predecessor still forwards.
 */
bool sd_is_restarted(void);

/*
 * Take the inherited descriptor `name`, which the caller then has to close; -1: there is
 * none. If several have this name, return the last and close the others.
 */
int sd_take(const char *name);

/*
 * Find an inherited descriptor that has not been taken and for which `is_it` returns true;
 * -1: none.
 */
int sd_find(bool (*is_it)(void *ctx, const char *name, int fd), void *ctx);

/*
 * Take a descriptor that has not been taken, and copy its name to `name`; -1: none is
 * left.
 */
int sd_take_next(char *name, unsigned int size);

/*
 * Send state such as "READY=1"; several variables have newlines between them. Returns 0 or
 * -errno.
 */
int sd_send(const char *state);

/*
 * Announce `successor` to the manager as the main process from now on. Returns 0, also when
 * the manager has ended; -EAGAIN when the manager did not read within `most_ms`, or another
 * -errno. After an error the manager would treat the end of this process as the end of the
 * daemon.
 */
int sd_set_mainpid(pid_t successor, unsigned int most_ms);

/*
 * Send state without waiting, or drop it when the manager does not read. For "WATCHDOG=1",
 * which repeats, and "STOPPING=1", which the manager does not need. Logs once that the
 * manager has ended.
 */
void sd_send_nowait(const char *state);

/*
 * Report to the manager that the start reached `step`, a few words, and that this step may
 * take SD_STEP_S (EXTEND_TIMEOUT_USEC=, STATUS=). Never waits.
 */
#define SD_STEP_S 90u /* seconds; the default of systemd's TimeoutStartSec= */
void sd_start_step(const char *step);
/*
 * Report the step of a successor after MAINPID= (WATCHDOG=1, STATUS=). The step may take
 * the time of the watchdog and no longer: no process forwards meanwhile, so a successor
 * that hangs has to be replaced soon. Never waits.
 */
void sd_successor_step(const char *step);

/*
 * Record a restart that was refused, with the reason as a sentence; return the number of
 * such restarts and copy the last reason to `why`.                            [any thread]
 */
void sd_refusal_add(const char *why);
unsigned int sd_refusal_count(char why[SD_WHY_STRLEN]);

/*
 * Store a copy of `fd` under `name` (printable, no ':', at most 100 octets) with the
 * manager, until sd_fdremove(name) or until the service is stopped. Returns 0 or -errno;
 * -ENOTCONN without a manager.
 */
int sd_fdstore(const char *name, int fd);
int sd_fdremove(const char *name);

/*
 * Remove the stored descriptors of `name`, and store a copy of `fd` unless it is -1. Never
 * waits: returns -EAGAIN when the manager's queue is full, and the caller repeats the call
 * later. Otherwise 0 or -errno; -ENOTCONN without a manager.                  [any thread]
 */
int sd_fdreplace_try(const char *name, int fd);

/*
 * Remove the stored descriptors of `name`, and wait until the manager has finished
 * (BARRIER=1). Returns 0, -ETIMEDOUT after `most_ms`, or -errno.              [any thread]
 */
int sd_fdremove_wait(const char *name, unsigned int most_ms);

/*
 * Make the environment of a successor (restart/handover.h): the same manager, and `n`
 * descriptors from SD_FIRST_FD on, with their names separated by ':'. The caller
 * frees it with sd_env_free(); NULL: no memory.
 */
char **sd_env(const char *names, unsigned int n);
void sd_env_free(char **env);

/* Return the interval of WATCHDOG=1 in ms: half of WATCHDOG_USEC; 0: no watchdog. */
unsigned int sd_watchdog_ms(void);

#endif
