/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * At all times the service manager has the TAP of each kept port, and a checkpoint. So
 * nothing is lost if the next daemon crashes while it stores its TAPs and its checkpoint.
 * The test plays the service manager. Like systemd, it keeps several descriptors of one
 * name.
 *
 * link: fpm-dataplane/restart/fdstore.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/load.h"
#include "descriptors.h"
#include "port/port.h"
#include "restart/fdstore.h"

#define STORED_MAX 16u

/*
 * The service manager. Each descriptor is of a file that contains a number. `file` is this
 * number; it stands for a TAP or a checkpoint. `stored`: descriptors that the manager has;
 * `in`: descriptors that the present daemon inherited and has not taken yet (name "":
 * taken).
 */
static struct {
	struct {
		char name[32];
		int file;
	} stored[STORED_MAX], in[STORED_MAX];
	unsigned int n, n_in;
	void (*check)(void); /* is called after each message of the daemon */
} m;

static int
file_new(int number)
{
	int fd = memfd_create("file", 0);

	assert_int_equal(write(fd, &number, sizeof(number)), sizeof(number));
	return fd;
}

static int
file_of(int fd)
{
	int number = -1;

	(void)!pread(fd, &number, sizeof(number), 0);
	return number;
}

static uint64_t
alive_ms(int fd)
{
	return (uint64_t)file_of(fd);
}

static bool
has(const char *prefix, int file)
{
	for (unsigned int i = 0; i < m.n; i++)
		if (strncmp(m.stored[i].name, prefix, strlen(prefix)) == 0 &&
		    (file < 0 || m.stored[i].file == file))
			return true;
	return false;
}

/* --- the calls of fdstore.c ----------------------------------------------------------- */

int
sd_fdstore(const char *name, int fd)
{
	int file = file_of(fd);

	for (unsigned int i = 0; i < m.n; i++)
		if (m.stored[i].file == file)
			return 0; /* the file is stored already, maybe under another name */
	assert_true(m.n < STORED_MAX);
	snprintf(m.stored[m.n].name, sizeof(m.stored[0].name), "%s", name);
	m.stored[m.n++].file = file;
	m.check();
	return 0;
}

int
sd_fdremove(const char *name)
{
	for (unsigned int i = m.n; i-- > 0;)
		if (strcmp(m.stored[i].name, name) == 0)
			m.stored[i] = m.stored[--m.n];
	m.check();
	return 0;
}

int
sd_fdremove_wait(const char *name, unsigned int ms)
{
	return sd_fdremove(name);
}

int
sd_take(const char *name)
{
	int fd = -1;

	for (unsigned int i = 0; i < m.n_in; i++) {
		if (strcmp(m.in[i].name, name) != 0)
			continue;
		if (fd >= 0)
			close(fd);
		fd = file_new(m.in[i].file);
		m.in[i].name[0] = '\0';
	}
	return fd;
}

int
sd_take_next(char *name, unsigned int size)
{
	for (unsigned int i = 0; i < m.n_in; i++) {
		if (m.in[i].name[0] == '\0')
			continue;
		snprintf(name, size, "%s", m.in[i].name);
		return sd_take(name);
	}
	return -1;
}

int
sd_find(bool (*is_it)(void *ctx, const char *name, int fd), void *ctx)
{
	static int fd = -1; /* stays open, as an inherited descriptor does */

	for (unsigned int i = 0; i < m.n_in; i++) {
		if (m.in[i].name[0] == '\0')
			continue;
		if (fd >= 0)
			close(fd);
		fd = file_new(m.in[i].file);
		if (is_it(ctx, m.in[i].name, fd))
			return fd;
	}
	return -1;
}

static bool (*is_held)(const char *tap); /* the function that fdstore.c has set */

void
config_taps_held(bool (*function)(const char *tap))
{
	is_held = function;
}

/*
 * Return the name of a TAP in the kernel. The operator has renamed the TAP of wan0 (file
 * 102), and has deleted a TAP (file 103).
 */
int
tap_name(int fd, char name[IFNAMSIZ])
{
	if (file_of(fd) == 103)
		return -ENODEV;
	snprintf(name, IFNAMSIZ, "%s", file_of(fd) == 102 ? "wan1" : "lan0");
	return 0;
}

int
tap_fd_destroy(int fd)
{
	return 0;
}

int
tap_fd_carrier(int fd, bool on)
{
	return 0;
}

/* --- a daemon ------------------------------------------------------------------------- */

static void
check_nothing(void)
{
}

static void
check_nothing_is_lost(void)
{
	assert_true(has("tap-lan0", 101));
	assert_true(has("tap-wan0", 102));
	assert_true(has("checkpoint", -1));
}

/*
 * Start a daemon with the ports lan0 and `second`. Its checkpoint is `file`. Return the
 * checkpoint of the last daemon that it found, or -1.
 */
static int
daemon_start_as(const char *second, int file)
{
	static const struct config conf; /* without ports: no old TAP has a port */
	struct port port[2];
	int last, checkpoint = file_new(file), found = -1;

	memcpy(m.in, m.stored, sizeof(m.in));
	m.n_in = m.n;
	memset(port, 0, sizeof(port));
	snprintf(port[0].name, sizeof(port[0].name), "lan0");
	snprintf(port[1].name, sizeof(port[1].name), "%s", second);
	for (unsigned int i = 0; i < 2; i++) {
		int fd = fdstore_take_tap(&conf, port[i].name);

		port[i].tap_kept = fd >= 0;
		port[i].tap.fd = fd >= 0 ? fd : file_new(101 + (int)i);
		port[i].ifidx = (uint16_t)(i + 1);
	}
	last = fdstore_take_checkpoint(alive_ms);
	if (last >= 0) {
		found = file_of(last);
		close(last);
	}
	fdstore_put_all(port, 2, checkpoint);
	close(checkpoint);
	for (unsigned int i = 0; i < 2; i++)
		close(port[i].tap.fd);
	return found;
}

static int
daemon_start(int file)
{
	return daemon_start_as("wan0", file);
}

static int
manager_new(void **state)
{
	memset(&m, 0, sizeof(m));
	m.check = check_nothing;
	assert_int_equal(daemon_start(1), -1);
	check_nothing_is_lost();
	return 0;
}

static void
nothing_is_missing_while_the_next_daemon_stores_its_own(void **state)
{
	m.check = check_nothing_is_lost;
	for (int k = 2; k < 6; k++) {
		assert_int_equal(daemon_start(k), k - 1);
		assert_int_equal(m.n, 3);
	}
}

/*
 * A daemon that crashes after it has stored its checkpoint, and before it has removed the
 * old checkpoint, leaves both.
 */
static void
of_two_checkpoints_the_later_one_is_taken_and_one_stays(void **state)
{
	for (int k = 0; k < 2; k++) {
		int both = file_new(200 + k);

		sd_fdstore(has("checkpoint-2", -1) ? "checkpoint" : "checkpoint-2", both);
		close(both);
		m.check = check_nothing_is_lost;
		assert_int_equal(daemon_start(10 + k), 200 + k);
		assert_int_equal(m.n, 3);
		assert_int_equal(daemon_start(20 + k), 10 + k);
		m.check = check_nothing;
	}
}

static void
a_name_that_no_port_has_is_removed(void **state)
{
	unsigned int open;
	int fd;

	assert_int_equal(daemon_start(2), 1); /* sd_find() above leaves a descriptor open */
	open = descriptors_open();
	fd = file_new(200);
	sd_fdstore("tap-old0", fd);
	sd_fdstore("other", fd);
	close(fd);
	assert_int_equal(m.n, 4);
	assert_int_equal(daemon_start(3), 2);
	assert_int_equal(m.n, 3);
	check_nothing_is_lost();
	assert_int_equal(descriptors_open(), open);
}

/* systemd stores a file only once, so the old name must be removed first. */
static void
a_tap_that_was_renamed_is_stored_under_its_new_name(void **state)
{
	assert_int_equal(daemon_start_as("wan1", 2), 1);
	assert_true(has("tap-wan1", 102));
	assert_false(has("tap-wan0", -1));
	assert_int_equal(m.n, 3);
}

/* The check of the configuration asks with the name of the port, not of the TAP. */
static void
a_renamed_tap_is_held_for_its_port(void **state)
{
	struct port port = {.ifidx = 1, .name = "dmz0", .tap.fd = file_new(102)};
	int deleted = file_new(103);

	fdstore_begin(&port, 1);
	sd_fdstore("tap-old0", deleted);
	memcpy(m.in, m.stored, sizeof(m.in));
	m.n_in = m.n;
	assert_true(is_held("wan0")); /* inherited */
	assert_true(is_held("dmz0")); /* open */
	assert_false(is_held("wan1") || is_held("new0") || is_held("old0"));
	close(port.tap.fd);
	port.tap.fd = deleted;
	assert_false(is_held("dmz0"));
	close(deleted);
	fdstore_begin(NULL, 0);
}

#define STORE(f) cmocka_unit_test_setup(f, manager_new)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORE(nothing_is_missing_while_the_next_daemon_stores_its_own),
		STORE(of_two_checkpoints_the_later_one_is_taken_and_one_stays),
		STORE(a_name_that_no_port_has_is_removed),
		STORE(a_tap_that_was_renamed_is_stored_under_its_new_name),
		STORE(a_renamed_tap_is_held_for_its_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
