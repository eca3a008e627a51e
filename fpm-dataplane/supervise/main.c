/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm-supervise: run fpm-dataplane as systemd would, where there is no systemd (containers,
 * labs). It stores the descriptors that the program sends, so that TAPs keep their carrier
 * while the program does not run, and it starts the program again after a crash. The
 * protocol is systemd's (sd_notify(3)), so the program sees no difference.
 *
 * It must not crash, because it holds the descriptors. Therefore it never handles a packet,
 * allocates nothing while it runs, has one thread, and never blocks on its log. The
 * program's actions have these effects:
 *
 *   exit code 0, or end after a stop     fpm-supervise ends, with that code
 *   exit code before the first READY=1   fpm-supervise ends, with that code (2: the
 *                                        configuration is wrong)
 *   exit code 75 after READY=1           the program starts again at once, because a restart
 *                                        was requested
 *   exit code 2 or 77 after READY=1      the program starts again every second: an end
 *                                        would close the TAPs, and the file or device may
 *                                        become available
 *   MAINPID=                             a successor (restart/handover.h) is the program now
 *   any other exit code, or a signal     the program starts again: at once, then after 100 ms,
 *                                        200 ms, ... 10 s, without end; after 10 s of READY=1
 *                                        it begins with "at once"
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
#include "base/sched.h"
#include "base/sd_notify.h"
#include "base/log_out.h"
#include "supervise/notify.h"
#include "supervise/store.h"

#define BACKOFF_MIN_MS 100u
#define BACKOFF_MAX_MS 10000u
#define GOOD_RUN_MS    10000u /* a crash after a run this long counts as the first */
#define EXTEND_MAX_US  3600000000ull
#define STOP_MS        10000u /* between SIGTERM or SIGABRT, and SIGKILL */
#define REFUSED_MS     1000u  /* between starts after exit code 2 or 77 */
#define NOTICES_MAX    1024u  /* in a round; net.unix.max_dgram_qlen is less: 10 to 512 */
#define TURN_MS        1000u  /* longest wait while the program is watched */
#define NEVER          UINT64_MAX

static struct {
	char **argv;
	int signal_fd, notify_fd;
	char notify_name[NOTIFY_NAME_BYTES];
	/* longest time between two WATCHDOG=1; longest time of a start until READY=1 */
	unsigned int watchdog_ms, start_ms;
	sigset_t old_mask;
	struct store store;

	pid_t pid, predecessor; /* 0: no process runs; no process ran before */
	bool ready, was_ready;
	bool successor; /* a successor took over: WATCHDOG=1 counts even before READY=1 */
	uint64_t ready_ms;
	uint64_t next_ms; /* the time of `next` */
	enum { DO_NOTHING, DO_START, DO_ABORT, DO_KILL } next;
	unsigned int backoff_ms;
	unsigned int restarts;
	unsigned int n_foreign; /* other processes' notices since the last WATCHDOG=1 */
	char status[64];        /* the last STATUS= of the program: the step of its start */
	bool stopping;
} sup;

static void
timer_set(int what, uint64_t in_ms)
{
	sup.next = what;
	sup.next_ms = what == DO_NOTHING ? NEVER : monotonic_ms() + in_ms;
}

/* --- the child ------------------------------------------------------------------------ */

static void
child_exec(void)
{
	char text[24];

	log_out_close();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	if (store_export(&sup.store) < 0 ||
	    setenv("NOTIFY_SOCKET", sup.notify_name, 1) < 0 ||
	    (sup.watchdog_ms != 0 && setenv("WATCHDOG_PID", text, 1) < 0))
		goto failed;
	snprintf(text, sizeof(text), "%llu", sup.watchdog_ms * 1000ull);
	if (sup.watchdog_ms != 0 && setenv("WATCHDOG_USEC", text, 1) < 0)
		goto failed;
	sigprocmask(SIG_SETMASK, &sup.old_mask, NULL);
	execvp(sup.argv[0], sup.argv);
failed:
	log_error("supervise: cannot run program=%s error=\"%s\"", sup.argv[0],
		  strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void
child_start(void)
{
	sup.ready = sup.successor = false;
	sup.status[0] = '\0';
	sup.pid = fork();
	if (sup.pid == 0)
		child_exec();
	if (sup.pid < 0) { /* no process or memory left: this may be temporary */
		log_error("supervise: fork failed error=\"%s\"", strerror(errno));
		sup.pid = 0;
		timer_set(DO_START, BACKOFF_MAX_MS);
		return;
	}
	timer_set(DO_ABORT, sup.start_ms);
	log_info("supervise: program started pid=%d restarts=%u stored=%u", (int)sup.pid,
		 sup.restarts, sup.store.n);
}

static void
child_start_again(const char *why, int number, bool asked_for)
{
	if (sup.ready && monotonic_ms() - sup.ready_ms >= GOOD_RUN_MS)
		sup.backoff_ms = 0;
	if (asked_for)
		log_info("supervise: restart requested");
	else
		log_error("supervise: program ended %s=%d next_start_in_ms=%u", why, number,
			  sup.backoff_ms);
	timer_set(DO_START, asked_for ? 0 : sup.backoff_ms);
	sup.restarts++;
	if (!asked_for)
		sup.backoff_ms = sup.backoff_ms == 0                   ? BACKOFF_MIN_MS
				 : sup.backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
								       : sup.backoff_ms * 2;
}

/*
 * Handle the end of the program. Returns the exit code for fpm-supervise, or -1 to
 * continue.
 */
static int
child_ended(int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	sup.predecessor = sup.pid;
	sup.pid = 0;
	timer_set(DO_NOTHING, 0);
	if (sup.stopping)
		return code;
	if (WIFSIGNALED(status)) {
		child_start_again("signal", WTERMSIG(status), false);
		return -1;
	}
	if (code == 0 || !sup.was_ready) {
		if (code != 0)
			log_error("supervise: program ended code=%d restart=no", code);
		return code;
	}
	if (code == SD_EXIT_CONFIG || code == SD_EXIT_LATER) {
		log_error("supervise: program refused its configuration code=%d "
			  "retry_in_ms=%u",
			  code, haste_ms(REFUSED_MS));
		timer_set(DO_START, haste_ms(REFUSED_MS));
		sup.restarts++;
		return -1;
	}
	child_start_again("code", code, code == SD_EXIT_RESTART && sup.ready);
	return -1;
}

/* --- notices of the program ----------------------------------------------------------- */

static void
fd_put(const char *name, int fd)
{
	int rc = store_put(&sup.store, name, fd);

	if (rc < 0)
		log_warn("supervise: descriptor not stored error=\"%s\"", strerror(-rc));
}

static void
child_on_ready(void)
{
	if (!sup.ready)
		sup.ready_ms = monotonic_ms();
	sup.ready = sup.was_ready = true;
}

/*
 * Handle MAINPID=: the program has prepared a successor, which is the program from now on.
 * The successor gets the watchdog's time until its first WATCHDOG=1, not the time of a
 * start, because no process forwards meanwhile.
 */
static void
child_on_successor(const char *number)
{
	char *end;
	long pid = strtol(number, &end, 10);

	if (pid <= 1 || *end != '\0')
		return;
	sup.predecessor = sup.pid;
	sup.pid = (pid_t)pid;
	sup.ready = false;
	sup.successor = true;
	sup.restarts++;
	if (sup.stopping) { /* a stop during the handover also stops the successor */
		kill(sup.pid, SIGTERM);
		timer_set(DO_KILL, haste_ms(STOP_MS));
	} else {
		timer_set(DO_ABORT, sup.watchdog_ms != 0 ? sup.watchdog_ms : sup.start_ms);
	}
	log_info("supervise: successor took over pid=%ld restarts=%u stored=%u", pid,
		 sup.restarts, sup.store.n);
}

/* Extend the time of a start. Never shorten it. */
static void
start_extend(uint64_t in_ms)
{
	uint64_t then = monotonic_ms() + in_ms;

	if (!sup.ready && sup.next == DO_ABORT && then > sup.next_ms)
		sup.next_ms = then;
}

static void
child_on_extend(const char *usec)
{
	char *end;
	unsigned long long more = strtoull(usec, &end, 10);

	if (*usec >= '0' && *usec <= '9' && *end == '\0' && more <= EXTEND_MAX_US)
		start_extend(more / 1000);
}

static void
on_watchdog(void)
{
	sup.n_foreign = 0;
	if (sup.ready && sup.next != DO_KILL)
		timer_set(sup.watchdog_ms != 0 ? DO_ABORT : DO_NOTHING, sup.watchdog_ms);
	else if (sup.successor)
		start_extend(sup.watchdog_ms);
}

/* Keep the text of STATUS= for the log. Replace octets with a meaning in log lines. */
static void
child_on_status(const char *text)
{
	snprintf(sup.status, sizeof(sup.status), "%s", text);
	for (char *c = sup.status; *c != '\0'; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
}

/* Handle one datagram: lines of VARIABLE=value. Takes ownership of `fd` (-1: none). */
static void
notice_handle(char *text, int fd)
{
	const char *name = "stored";
	bool keep = false, drop = false, watchdog = false;
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		keep |= strcmp(line, "FDSTORE=1") == 0;
		drop |= strcmp(line, "FDSTOREREMOVE=1") == 0;
		watchdog |= strcmp(line, "WATCHDOG=1") == 0;
		if (strncmp(line, "FDNAME=", 7) == 0)
			name = line + 7;
		if (strncmp(line, "MAINPID=", 8) == 0)
			child_on_successor(line + 8);
		if (strncmp(line, "EXTEND_TIMEOUT_USEC=", 20) == 0)
			child_on_extend(line + 20);
		if (strncmp(line, "STATUS=", 7) == 0)
			child_on_status(line + 7);
		if (strcmp(line, "READY=1") == 0)
			child_on_ready();
		if (strcmp(line, "READY=1") == 0)
			watchdog = true;
		if (strcmp(line, "STOPPING=1") == 0)
			timer_set(DO_KILL, haste_ms(STOP_MS));
	}
	if (watchdog)
		on_watchdog();
	if (drop)
		store_remove(&sup.store, name);
	if (fd >= 0 && keep)
		fd_put(name, fd);
	else if (fd >= 0)
		close(fd); /* BARRIER=1: all earlier datagrams have been handled */
}

/*
 * Read a notice. Obey only the program. Ignore a notice of the predecessor. Log other
 * senders, which may be any process.
 */
static void
notify_on_readable(void)
{
	static struct log_limit foreign_limit;
	struct notice n;
	unsigned int missed;
	int rc = notify_take(sup.notify_fd, &n);

	if (rc == -EAGAIN)
		return;
	if (rc == 0 && sup.pid != 0 && n.from == sup.pid) {
		notice_handle(n.text, n.fd);
		return;
	}
	if (n.fd >= 0)
		close(n.fd);
	sup.n_foreign++;
	if ((n.from == 0 || n.from != sup.predecessor) &&
	    log_allowed(&foreign_limit, &missed))
		log_warn("supervise: notification refused pid=%d missed=%u", (int)n.from,
			 missed);
}

/* --- signals, timer ------------------------------------------------------------------- */

/* Handle a signal. Returns an exit code, or -1 to continue. */
static int
signals_on_readable(void)
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
		timer_set(DO_KILL, haste_ms(STOP_MS));
	sup.stopping = true;
	return -1;
}

/*
 * Return true if other processes may have filled the queue, so that it had no room for
 * WATCHDOG=1 of the program.
 */
static bool
notify_is_flooded(void)
{
	if (!sup.ready || sup.n_foreign < NOTICES_MAX)
		return false;
	log_warn("supervise: watchdog extended reason=notify-socket-flooded pid=%d "
		 "foreign=%u",
		 (int)sup.pid, sup.n_foreign);
	sup.n_foreign = 0;
	return true;
}

static void
on_timer(void)
{
	switch (sup.next) {
	case DO_START:
		child_start();
		break;
	case DO_ABORT:
		if (notify_is_flooded()) {
			timer_set(DO_ABORT, sup.watchdog_ms);
			break;
		}
		kill(sup.pid, SIGABRT);
		timer_set(DO_KILL, haste_ms(STOP_MS));
		log_error("supervise: program hangs pid=%d ready=%d status=\"%s\" "
			  "signal=ABRT",
			  (int)sup.pid, sup.ready, sup.status);
		break;
	case DO_KILL:
		kill(sup.pid, SIGKILL);
		timer_set(DO_NOTHING, 0);
		log_error("supervise: program does not end pid=%d signal=KILL",
			  (int)sup.pid);
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
	if (sup.next_ms <= now)
		return 0;
	/* A short wait, so that pause_extend() sees each pause. */
	return sup.next == DO_ABORT && sup.next_ms - now > TURN_MS
		       ? (int)TURN_MS
		       : (int)(sup.next_ms - now);
}

/*
 * Check whether the wait of `wait_ms` that began at `began_ms` has ended late. If so, the
 * virtual machine or the container was paused, and the program with it: extend the watchdog
 * by the delay.
 */
static void
pause_extend(uint64_t began_ms, int wait_ms)
{
	uint64_t late_ms = monotonic_ms() - began_ms;

	if (wait_ms < 0 || sup.next != DO_ABORT || late_ms < (uint64_t)wait_ms + TURN_MS)
		return;
	late_ms -= (uint64_t)wait_ms;
	sup.next_ms += late_ms;
	log_warn("supervise: watchdog extended reason=paused pid=%d paused_ms=%llu",
		 (int)sup.pid, (unsigned long long)late_ms);
}

static int
events_loop(void)
{
	struct pollfd p[] = {{.fd = sup.signal_fd, .events = POLLIN},
			     {.fd = sup.notify_fd, .events = POLLIN}};
	int code = -1;

	child_start();
	while (code < 0) {
		uint64_t began_ms = monotonic_ms();
		int wait_ms = next_wait_ms();

		p[0].revents = p[1].revents = 0;
		if (poll(p, 2, wait_ms) < 0 && errno != EINTR)
			return 1;
		pause_extend(began_ms, wait_ms);
		/*
		 * First handle the notices that a program sent before it died. The limit
		 * keeps a sender that is faster than this loop from delaying a death or a
		 * stop.
		 */
		for (unsigned int i = 0; i < NOTICES_MAX && p[1].revents != 0; i++)
			if (poll(&p[1], 1, 0) > 0)
				notify_on_readable();
		if (p[0].revents != 0)
			code = signals_on_readable();
		if (code < 0 && sup.next_ms <= monotonic_ms())
			on_timer();
	}
	return code;
}

/*
 * Drop capabilities. fpm-supervise needs none for itself. For the daemon, which inherits
 * them, it keeps the capabilities that the daemon keeps, and two more that only the start
 * of the daemon needs: CAP_DAC_OVERRIDE to read a file and to open a terminal that root
 * does not own, and CAP_SETPCAP to drop the other capabilities.
 */
static void
privileges_limit(void)
{
	uint64_t kept = CAPS_DAEMON | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_SETPCAP);
	int rc;

	/* Without it thread bfd of the daemon needs CAP_SYS_NICE: privileges.c. */
	if (!sched_real_time_permit())
		kept |= CAP_BIT(CAP_SYS_NICE);
	rc = caps_keep(kept, kept);
	/*
	 * A warning suffices, because the daemon, which is exposed to attackers, ends if it
	 * cannot drop its own capabilities.
	 */
	if (rc < 0)
		log_warn("supervise: capabilities not dropped error=\"%s\"", strerror(-rc));
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
		"Run PROGRAM, such as `fpm-dataplane -c FILE`. Start it again after a "
		"crash, and\n"
		"keep its TAPs open until it runs again. SIGTERM and SIGINT end both "
		"programs,\n"
		"SIGHUP is passed to PROGRAM.\n"
		"      --watchdog SECONDS  abort PROGRAM if it hangs for this time;\n"
		"                          default 30, 0: never\n"
		"      --start SECONDS     abort a start that makes no progress for this "
		"time;\n"
		"                          each step, such as the start of a device, "
		"counts\n"
		"                          as progress; default 90\n"
		"      --version           print the version\n"
		"  -h, --help              print this help\n");
}

/* Parse an option. Returns the number, or -1 after an error message. */
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
	timer_set(DO_NOTHING, 0);
	log_out_open();
	privileges_limit();
	/* A log without a reader, or at its size limit, must not end the process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/*
	 * A successor is a child of its predecessor. When the predecessor has ended, it
	 * must become a child of this process.
	 */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rc = signals_open();
	if (rc == 0)
		rc = sup.notify_fd = notify_open(sup.notify_name);
	if (rc < 0) {
		log_error("supervise: start failed error=\"%s\"", strerror(-rc));
		return 1;
	}
	rc = events_loop();
	store_clear(&sup.store);
	return rc;
}
