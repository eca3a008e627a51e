/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sd_notify: the daemon's side of the service manager's protocol, as sd_notify(3) and
 * sd_listen_fds(3) describe it: it says how it is, and gives descriptors away for safe
 * keeping, which its next incarnation is born with. systemd speaks the other side, and so
 * does our own fpm-supervise. Without either every call here does nothing.      [main]
 */
#ifndef BASE_SD_NOTIFY_H
#define BASE_SD_NOTIFY_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define SERVICE_EXIT_CONFIG  2  /* the configuration is wrong: do not start it again */
#define SERVICE_EXIT_RESTART 75 /* start it again at once: it was asked for */
#define SERVICE_EXIT_ROOM    76 /* a successor's, to its predecessor: no memory for two */
#define SERVICE_EXIT_LATER   77 /* as 2, but something is kept for us: try again */

#define SERVICE_FIRST_FD  3           /* of those inherited */
#define SERVICE_SUCCESSOR "successor" /* one of them: the way to whose place we take */

#define SERVICE_WHY_STRLEN 160

#define SERVICE_TELL_MS 5000u /* the manager's, to hear a word: as busy as that it is not */

#define SERVICE_SIGNAL_RESTART SIGUSR1 /* to ourselves: end with SERVICE_EXIT_RESTART */

/* A descriptor and the name that a process inherits it by. */
struct named_fd {
	char name[64];
	int fd;
};

/*
 * Read and remove LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, NOTIFY_SOCKET of the environment,
 * make the descriptors close-on-exec. Before any other call here, once.
 */
void service_init(void);

/*
 * A successor (restart/handover.h) says nothing until it counts: the manager would hear a
 * stranger, and systemd warns of each word. From here on it does; who is none always did.
 */
void service_speak(void);

/* Does somebody listen, who starts us again and keeps descriptors? */
bool service_is_kept(void);

/*
 * Does it still? One that is stopped, or too busy to read, does: only its end is told. False
 * where nobody ever did.
 */
bool service_is_heard(void);

/*
 * Are we the next after one that has crashed or was stopped, and born with what is kept of it?
 * If we end for good, so does that: carriers of TAPs, what zebra taught. False of a successor,
 * in whose place another forwards on.
 */
bool service_is_next(void);

/*
 * The inherited descriptor `name`, now the caller's to close; -1: there is none. Of several
 * of one name the last.
 */
int service_take(const char *name);

/* An inherited descriptor that nobody took yet, and that `is_it` says yes to; -1: none. */
int service_find(bool (*is_it)(void *ctx, const char *name, int fd), void *ctx);

/* The name of a descriptor that nobody took, into `name`; returns it or -1. Repeat. */
int service_take_rest(char *name, unsigned int size);

/* "READY=1", several with newlines between. 0 or -errno. */
int service_say(const char *state);

/*
 * Another process is the daemon from now on. Returns 0, where nobody listens any more as well;
 * -EAGAIN: nobody has heard within `most_ms`, or another -errno: to whom our end would be the
 * daemon's.
 */
int service_mainpid(pid_t successor, unsigned int most_ms);

/*
 * The same, or nothing when the manager does not listen: never waits. For "WATCHDOG=1", of
 * which it then has enough before it, and "STOPPING=1", which is so whether heard or not. The
 * manager's end is logged, once.
 */
void service_hint(const char *state);

/*
 * A start has come a step further, and the next one may take SERVICE_STEP_S: whoever would
 * end one that hangs counts from here (EXTEND_TIMEOUT_USEC=). Never waits.
 */
#define SERVICE_STEP_S 90u /* as systemd gives the first one: DefaultTimeoutStartSec= */
void service_goes_on(void);

/*
 * Of restarts that were asked for and did not come about: note why, a sentence; how many there
 * were, and the last one's sentence into `why`.                             [any thread]
 */
void service_refused(const char *why);
unsigned int service_refusals(char why[SERVICE_WHY_STRLEN]);

/*
 * Have a copy of `fd` kept under `name` (printable, no ':', at most 100 octets) until
 * service_forget(name), or until the service is stopped for good. 0 or -errno, -ENOTCONN
 * when nobody listens.
 */
int service_keep(const char *name, int fd);
int service_forget(const char *name);

/*
 * Have what is kept under `name` let go of, and wait until it is: the manager closes another
 * descriptor then (BARRIER=1). Returns 0, -ETIMEDOUT after `most_ms`, or -errno. [any thread]
 */
int service_let_go(const char *name, unsigned int most_ms);

/*
 * The environment of a process that is to take our place (restart/handover.h): the same
 * manager, and `n` descriptors from SERVICE_FIRST_FD on, their names with ':' between. The
 * caller's, to be freed by service_env_free(); NULL: no memory.
 */
char **service_env(const char *names, unsigned int n);
void service_env_free(char **env);

/* How often WATCHDOG=1 is to be said, ms: half of what was asked for; 0: never. */
unsigned int service_watchdog_ms(void);

#endif
