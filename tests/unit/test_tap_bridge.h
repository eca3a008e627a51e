/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bed for the tests of tap-bridge/: each test has a namespace of its own, which is
 * removed whether the test passes or fails. Tests are skipped if the machine cannot make
 * one.
 */
#ifndef TEST_TAP_BRIDGE_H
#define TEST_TAP_BRIDGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "patience.h"
#include "tap-bridge/netns.h"
#include "tap-bridge/tap.h"

static const uint8_t mac_a[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0a};
static const uint8_t mac_b[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0b};

struct bed {
	char netns[64];
	struct tap tap; /* "t0", opened by bed_tap() */
};

static inline int64_t
now_ms(void)
{
	/* signed, because the remaining time may be negative. */
	return (int64_t)monotonic_ms();
}

static inline int
run(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

#define ip(bed, fmt, ...) \
	assert_int_equal(run("ip -n %s " fmt, (bed)->netns, ##__VA_ARGS__), 0)

/* Return the reason why there can be no bed here, or NULL. */
static inline const char *
bed_obstacle(void)
{
	int fd;

	if (geteuid() != 0)
		return "not root";
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return "no /dev/net/tun";
	close(fd);
	if (run("ip netns list >/dev/null 2>&1") != 0)
		return "no ip(8)";
	return NULL;
}

/* Remove the namespaces of killed runs, which no other program removes. */
static inline void
beds_of_the_dead_remove(void)
{
	DIR *dir = opendir("/run/netns");
	struct dirent *d;
	int pid, n;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (sscanf(d->d_name, "tb%d-%d", &pid, &n) == 2 && kill(pid, 0) < 0 &&
		    errno == ESRCH)
			run("ip netns del tb%d-%d 2>/dev/null", pid, n);
	if (dir != NULL)
		closedir(dir);
}

static int
bed_setup(void **state)
{
	static int n_beds;
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *why = bed_obstacle();

	assert_non_null(bed);
	*state = bed;
	bed->tap.fd = -1;
	if (why == NULL) {
		if (n_beds == 0)
			beds_of_the_dead_remove();
		snprintf(bed->netns, sizeof(bed->netns), "tb%d-%d", getpid(), ++n_beds);
		if (run("ip netns add %s 2>/dev/null", bed->netns) != 0) {
			bed->netns[0] = '\0';
			why = "no network namespaces";
		}
	}
	if (why != NULL)
		print_message("skipped: %s\n", why);
	return 0;
}

static int
bed_teardown(void **state)
{
	struct bed *bed = *state;
	int rc = 0;

	tap_close(&bed->tap);
	if (bed->netns[0] != '\0')
		rc = run("ip netns del %s", bed->netns);
	free(bed);
	return rc;
}

/* Return the bed of the test. Skip the test if there is none. */
static inline struct bed *
bed_of(void **state)
{
	struct bed *bed = *state;

	if (bed->netns[0] == '\0')
		skip();
	return bed;
}

/* Make TAP t0 with MAC a, MTU 1500, and carrier. */
static inline struct tap *
bed_tap(struct bed *bed)
{
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 1500, NULL), 0);
	assert_int_equal(tap_carrier(&bed->tap, true), 0);
	return &bed->tap;
}

/* Set a sysctl in the bed's namespace; `path` is below /proc/sys/net. */
static inline void
bed_sysctl(struct bed *bed, const char *path, const char *value)
{
	struct netns_guard guard;
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "/proc/sys/net/%s", path);
	assert_int_equal(netns_enter(bed->netns, &guard), 0);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	netns_leave(&guard);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, value, strlen(value)), strlen(value));
	close(fd);
}

static inline int
n_open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/*
 * Read frames until `want` accepts one or the time is over. Return the length of the last.
 */
static inline ssize_t
tap_read_until(struct tap *tap, uint8_t *buf, size_t size,
	       bool (*want)(const uint8_t *frame, size_t len))
{
	for (int64_t end = now_ms() + PATIENCE_MS; now_ms() < end;) {
		struct pollfd pfd = {.fd = tap->fd, .events = POLLIN};
		ssize_t n;

		poll(&pfd, 1, 100);
		while ((n = tap_read(tap, buf, size)) > 0)
			if (want(buf, (size_t)n))
				return n;
		assert_int_equal(n, 0);
	}
	return 0;
}

#define bed_test(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)

#endif
