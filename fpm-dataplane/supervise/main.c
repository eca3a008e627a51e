/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-supervise: runs fpm-dataplane where there is no systemd (containers, labs) and is to
 * it what systemd is: it keeps the descriptors that the program gives it, so that TAPs do
 * not lose their carrier while the program is away, and starts it again when it crashed.
 * The protocol is systemd's (sd_notify(3)); the program cannot tell the two apart.
 *
 * It never touches a packet, allocates nothing while it runs, has one thread, and waits for
 * nobody who reads its log: what holds the others up must itself not fall. What ends and what
 * starts again:
 *
 *   exit code 0, or asked to stop   ends, with that code
 *   a code before the first READY=1 ends with that code: 2 is a wrong configuration
 *   exit code 75 after READY=1      starts again at once: a restart that was asked for
 *   exit code 2, 77 after it        starts again every second: with its TAPs would end what
 *                                   stays up by them, and a file or a device comes back
 *   MAINPID=                        another takes its place (restart/handover.h): that one counts
 *   anything else, or a signal      starts again: at once, then after 100 ms, 200 ms, ... 10 s,
 *                                   for ever; ten good seconds and it begins with "at once"
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "base/log_out.h"
#include "supervise/notify.h"
#include "supervise/store.h"

#define BACKOFF_MIN_MS 100u
#define BACKOFF_MAX_MS 10000u
#define GOOD_RUN_MS    10000u /* after which a crash counts as the first one */
#define EXTEND_MAX_US  3600000000ull
#define STOP_MS        10000u /* between SIGTERM, or SIGABRT, and SIGKILL */
#define REFUSED_MS     1000u  /* between starts that the configuration does not allow */
#define NOTICES_MAX    1024u  /* at a time; net.unix.max_dgram_qlen is 10 to 512 */
#define NEVER          UINT64_MAX

static struct {
	char **argv;
	int signal_fd, notify_fd;
	char notify_name[NOTIFY_NAME_BYTES];
	unsigned int watchdog_ms, start_ms; /* between signs of life; until READY=1 */
	sigset_t old_mask;
	struct store store;

	pid_t pid, pid_before; /* 0: it does not run; there was none */
	bool ready, was_ready;
	bool successor; /* it took another's place: from then on its signs of life count */
	uint64_t ready_ms;
	uint64_t next_ms; /* when to start it, or what the next line is about */
	enum { DO_NOTHING, DO_START, DO_ABORT, DO_KILL } next;
	unsigned int backoff_ms;
	unsigned int restarts;
	unsigned int strangers; /* heard since its last sign of life */
	bool stopping;
} sup;

static void
next_plan(int what, uint64_t in_ms)
{
	sup.next = what;
	sup.next_ms = what == DO_NOTHING ? NEVER : monotonic_ms() + in_ms;
}

/* --- the child ---------------------------------------------------------------------------- */

static void
child_run(void)
{
	char text[24];

	log_out_close();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	if (store_pass_on(&sup.store) < 0 ||
	    setenv("NOTIFY_SOCKET", sup.notify_name, 1) < 0 ||
	    (sup.watchdog_ms != 0 && setenv("WATCHDOG_PID", text, 1) < 0))
		goto failed;
	snprintf(text, sizeof(text), "%llu", sup.watchdog_ms * 1000ull);
	if (sup.watchdog_ms != 0 && setenv("WATCHDOG_USEC", text, 1) < 0)
		goto failed;
	sigprocmask(SIG_SETMASK, &sup.old_mask, NULL);
	execvp(sup.argv[0], sup.argv);
failed:
	log_error("supervise: %s cannot be run: %s", sup.argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void
child_start(void)
{
	sup.ready = sup.successor = false;
	sup.pid = fork();
	if (sup.pid == 0)
		child_run();
	if (sup.pid < 0) { /* out of processes or memory: that may pass */
		log_error("supervise: fork failed error=%s", strerror(errno));
		sup.pid = 0;
		next_plan(DO_START, BACKOFF_MAX_MS);
		return;
	}
	next_plan(DO_ABORT, sup.start_ms);
	log_info("supervise: started pid=%d restarts=%u kept=%u", (int)sup.pid,
		 sup.restarts, sup.store.n);
}

static void
child_start_again(const char *why, int number, bool asked_for)
{
	if (sup.ready && monotonic_ms() - sup.ready_ms >= GOOD_RUN_MS)
		sup.backoff_ms = 0;
	if (asked_for)
		log_info("supervise: restart asked for");
	else
		log_error("supervise: ended %s=%d, next start in_ms=%u", why, number,
			  sup.backoff_ms);
	next_plan(DO_START, asked_for ? 0 : sup.backoff_ms);
	sup.restarts++;
	if (!asked_for)
		sup.backoff_ms = sup.backoff_ms == 0                   ? BACKOFF_MIN_MS
				 : sup.backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
								       : sup.backoff_ms * 2;
}

/* The program ended. Returns the exit code for ourselves, or -1 to go on. */
static int
child_ended(int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	sup.pid_before = sup.pid;
	sup.pid = 0;
	next_plan(DO_NOTHING, 0);
	if (sup.stopping)
		return code;
	if (WIFSIGNALED(status)) {
		child_start_again("signal", WTERMSIG(status), false);
		return -1;
	}
	if (code == 0 || !sup.was_ready) {
		if (code != 0)
			log_error("supervise: ended code=%d, not started again", code);
		return code;
	}
	if (code == SD_EXIT_CONFIG || code == SD_EXIT_LATER) {
		log_error("supervise: ended code=%d, not with this configuration, which is "
			  "tried again in_ms=%u",
			  code, haste_ms(REFUSED_MS));
		next_plan(DO_START, haste_ms(REFUSED_MS));
		sup.restarts++;
		return -1;
	}
	child_start_again("code", code, code == SD_EXIT_RESTART && sup.ready);
	return -1;
}

/* --- what it says ------------------------------------------------------------------------- */

static void
fd_put(const char *name, int fd)
{
	int rc = store_put(&sup.store, name, fd);

	if (rc < 0)
		log_warn("supervise: descriptor not kept error=%s", strerror(-rc));
}

static void
on_ready(void)
{
	if (!sup.ready)
		sup.ready_ms = monotonic_ms();
	sup.ready = sup.was_ready = true;
}

/*
 * The program has prepared another to take its place: from now on that one counts, and has no
 * more time for each sign of life than any that runs, for nobody forwards meanwhile.
 */
static void
on_successor(const char *number)
{
	char *end;
	long pid = strtol(number, &end, 10);

	if (pid <= 1 || *end != '\0')
		return;
	sup.pid_before = sup.pid;
	sup.pid = (pid_t)pid;
	sup.ready = false;
	sup.successor = true;
	sup.restarts++;
	if (sup.stopping) { /* a stop that has met the handing over is this one's, too */
		kill(sup.pid, SIGTERM);
		next_plan(DO_KILL, haste_ms(STOP_MS));
	} else {
		next_plan(DO_ABORT, sup.watchdog_ms != 0 ? sup.watchdog_ms : sup.start_ms);
	}
	log_info("supervise: succeeded by pid=%ld restarts=%u kept=%u", pid, sup.restarts,
		 sup.store.n);
}

/* A start that may take so long from here is given more time, never less. */
static void
start_extend(uint64_t in_ms)
{
	uint64_t then = monotonic_ms() + in_ms;

	if (!sup.ready && sup.next == DO_ABORT && then > sup.next_ms)
		sup.next_ms = then;
}

static void
on_extend(const char *usec)
{
	char *end;
	unsigned long long more = strtoull(usec, &end, 10);

	if (*usec >= '0' && *usec <= '9' && *end == '\0' && more <= EXTEND_MAX_US)
		start_extend(more / 1000);
}

static void
on_alive(void)
{
	sup.strangers = 0;
	if (sup.ready && sup.next != DO_KILL)
		next_plan(sup.watchdog_ms != 0 ? DO_ABORT : DO_NOTHING, sup.watchdog_ms);
	else if (sup.successor)
		start_extend(sup.watchdog_ms);
}

/* One datagram: lines of VARIABLE=value; `fd` (or -1) is ours. */
static void
notice_understand(char *text, int fd)
{
	const char *name = "stored";
	bool keep = false, drop = false, alive = false;
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		keep |= strcmp(line, "FDSTORE=1") == 0;
		drop |= strcmp(line, "FDSTOREREMOVE=1") == 0;
		alive |= strcmp(line, "WATCHDOG=1") == 0;
		if (strncmp(line, "FDNAME=", 7) == 0)
			name = line + 7;
		if (strncmp(line, "MAINPID=", 8) == 0)
			on_successor(line + 8);
		if (strncmp(line, "EXTEND_TIMEOUT_USEC=", 20) == 0)
			on_extend(line + 20);
		if (strcmp(line, "READY=1") == 0)
			on_ready();
		if (strcmp(line, "READY=1") == 0)
			alive = true;
		if (strcmp(line, "STOPPING=1") == 0)
			next_plan(DO_KILL, haste_ms(STOP_MS));
	}
	if (alive)
		on_alive();
	if (drop)
		store_drop(&sup.store, name);
	if (fd >= 0 && keep)
		fd_put(name, fd);
	else if (fd >= 0)
		close(fd); /* of BARRIER=1: all that was said before has been done by now */
}

/*
 * Only the program is listened to. What its predecessor still says is no news; strangers, who
 * may be anybody, are told of.
 */
static void
on_notify(void)
{
	static struct log_limit strangers;
	struct notice n;
	unsigned int missed;
	int rc = notify_take(sup.notify_fd, &n);

	if (rc == -EAGAIN)
		return;
	if (rc == 0 && sup.pid != 0 && n.from == sup.pid) {
		notice_understand(n.text, n.fd);
		return;
	}
	if (n.fd >= 0)
		close(n.fd);
	sup.strangers++;
	if ((n.from == 0 || n.from != sup.pid_before) && log_allowed(&strangers, &missed))
		log_warn("supervise: not listened to pid=%d missed=%u", (int)n.from,
			 missed);
}

/* --- signals, times ----------------------------------------------------------------------- */

/* Returns an exit code, or -1 to go on. */
static int
on_signal(void)
{
	struct signalfd_siginfo info;
	int status, code = -1;

	if (read(sup.signal_fd, &info, sizeof(info)) != sizeof(info))
		return -1;
	if (info.ssi_signo == SIGCHLD) {
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
			if (pid == sup.pid)
				code = child_ended(status);
		return code;
	}
	if (info.ssi_signo == SIGHUP) {
		if (sup.pid != 0)
			kill(sup.pid, SIGHUP);
		return -1;
	}
	if (sup.pid == 0)
		return 0;
	kill(sup.pid, (int)info.ssi_signo);
	if (!sup.stopping)
		next_plan(DO_KILL, haste_ms(STOP_MS));
	sup.stopping = true;
	return -1;
}

/* Have others filled the queue, in which its signs of life find no room then? */
static bool
child_is_drowned(void)
{
	if (!sup.ready || sup.strangers < NOTICES_MAX)
		return false;
	log_warn("supervise: no sign of life among words of others, it is given another "
		 "while pid=%d of_others=%u",
		 (int)sup.pid, sup.strangers);
	sup.strangers = 0;
	return true;
}

static void
on_time(void)
{
	switch (sup.next) {
	case DO_START:
		child_start();
		break;
	case DO_ABORT:
		if (child_is_drowned()) {
			next_plan(DO_ABORT, sup.watchdog_ms);
			break;
		}
		kill(sup.pid, SIGABRT);
		next_plan(DO_KILL, haste_ms(STOP_MS));
		log_error("supervise: no sign of life pid=%d ready=%d, it is aborted",
			  (int)sup.pid, sup.ready);
		break;
	case DO_KILL:
		kill(sup.pid, SIGKILL);
		next_plan(DO_NOTHING, 0);
		log_error("supervise: does not end pid=%d, it is killed", (int)sup.pid);
		break;
	default:
		break;
	}
}

static int
next_wait_ms(void)
{
	uint64_t now = monotonic_ms();

	if (sup.next_ms == NEVER)
		return -1;
	return sup.next_ms <= now ? 0 : (int)(sup.next_ms - now);
}

static int
events_loop(void)
{
	struct pollfd p[] = {{.fd = sup.signal_fd, .events = POLLIN},
			     {.fd = sup.notify_fd, .events = POLLIN}};
	int code = -1;

	child_start();
	while (code < 0) {
		p[0].revents = p[1].revents = 0;
		if (poll(p, 2, next_wait_ms()) < 0 && errno != EINTR)
			return 1;
		/* What it said before it died is heard before its death; who says more than
		 * the kernel has wait holds up no death and no stop. */
		for (unsigned int i = 0; i < NOTICES_MAX && p[1].revents != 0; i++)
			if (poll(&p[1], 1, 0) > 0)
				on_notify();
		if (p[0].revents != 0)
			code = on_signal();
		if (code < 0 && sup.next_ms <= monotonic_ms())
			on_time();
	}
	return code;
}

/*
 * It needs none itself. What the daemon keeps passes through here, and what its start has a use
 * for: to read a file and to open a terminal that are not root's, and to give up the rest.
 */
static void
privileges_limit(void)
{
	const uint64_t kept =
		CAPS_DAEMON | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_SETPCAP);
	int rc = caps_keep(kept, kept);

	/* The daemon, which somebody may take over, insists on it itself. */
	if (rc < 0)
		log_warn("supervise: capabilities not given up error=%s", strerror(-rc));
}

static int
signals_open(void)
{
	static const int ours[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (unsigned int i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigaddset(&set, ours[i]);
	sigprocmask(SIG_BLOCK, &set, &sup.old_mask);
	sup.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return sup.signal_fd < 0 ? -errno : 0;
}

static void
usage_print(FILE *out)
{
	fprintf(out,
		"usage: fpm-supervise [--watchdog SECONDS] [--start SECONDS] PROGRAM "
		"[ARGUMENT...]\n"
		"Runs `fpm-dataplane -c FILE`, keeps its TAPs while it is away, starts it\n"
		"again when it crashes. SIGTERM and SIGINT end both, SIGHUP is passed on.\n"
		"      --watchdog SECONDS  abort a program that shows no sign of life for "
		"so\n"
		"                          long; default 30, 0: never\n"
		"      --start SECONDS     abort one that starts and comes no step further "
		"in\n"
		"                          that time, such as a device; default 90\n");
}

/* Returns the number, -1 after a sentence. */
static int
option_seconds(const char *option, const char *text, unsigned long min)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && n >= min && n <= 3600)
		return (int)n;
	fprintf(stderr,
		"fpm-supervise: %s '%s' is not a whole number of seconds from %lu to "
		"3600\n",
		option, text, min);
	return -1;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"watchdog", required_argument, NULL, 'w'},
		{"start", required_argument, NULL, 's'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int watchdog_s = 30, start_s = 90;
	int opt, rc;

	log_out_use_null();
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (opt) {
		case 'w':
			watchdog_s = option_seconds("--watchdog", optarg, 0);
			break;
		case 's':
			start_s = option_seconds("--start", optarg, 1);
			break;
		case 'v':
			printf("fpm-supervise %s\n", FPMDP_VERSION);
			return 0;
		case 'h':
			usage_print(stdout);
			return 0;
		default:
			usage_print(stderr);
			return 2;
		}
		if (watchdog_s < 0 || start_s < 0)
			return 2;
	}
	if (optind == argc) {
		usage_print(stderr);
		return 2;
	}
	sup.argv = argv + optind;
	sup.watchdog_ms = (unsigned int)watchdog_s * 1000;
	sup.start_ms = (unsigned int)start_s * 1000;
	next_plan(DO_NOTHING, 0);
	log_out_open();
	privileges_limit();
	/* Nobody reads the log any more, or it may grow no further: no reason to end. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* A successor is its predecessor's child at first, and then ours. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rc = signals_open();
	if (rc == 0)
		rc = sup.notify_fd = notify_open(sup.notify_name);
	if (rc < 0) {
		log_error("supervise: does not start error=%s", strerror(-rc));
		return 1;
	}
	rc = events_loop();
	store_clear(&sup.store);
	return rc;
}
