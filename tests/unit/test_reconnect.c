/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port that waits for its server of memif is tried again at intervals. Each port has its
 * own intervals, whatever its number in the configuration is. The test plays the servers
 * and the ports, and turns the timer.
 *
 * link: fpm-dataplane/manage/reconnect.c
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "manage/reconnect.h"
#include "manage/ports.h"
#include "manage/reload_ports.h"
#include "pci/kernel_if.h"
#include "pci/memif.h"
#include "restart/fdstore.h"
#include "restart/restart_lock.h"

static struct {
	struct ev_loop *loop;
	struct reconnect r;
	struct config running;
	struct hotplug h;
	struct port *port; /* result of hotplug_find(); NULL: no port is open */
	unsigned int n_tries[3], n_carriers_off; /* attempts to open a, b, c */
	unsigned int n_answers;
} t;

/* --- functions that reconnect.c calls ------------------------------------------------- */

void
kernel_if_of(const char *device, char name[IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s", device[0] == '@' ? device + 1 : "");
}

bool
memif_is_client(const char *device)
{
	return true;
}

enum memif_server
memif_server(const char *device)
{
	return MEMIF_LISTENS;
}

struct port *
hotplug_find(const struct hotplug *h, const char *tap)
{
	return t.port;
}

struct port_link
port_link(const struct port *port)
{
	return (struct port_link){.up = false};
}

/* No server accepts its client. */
int
reload_port_again(struct hotplug *h, const struct config *running,
		  const struct config_port *cp, char *why, unsigned int why_size)
{
	t.n_tries[cp->tap[0] - 'a']++;
	snprintf(why, why_size, "refused");
	return -1;
}

bool
change_lock(bool later)
{
	return true;
}

void
change_unlock(void)
{
}

void
fdstore_kept_carriers_off(void)
{
	t.n_carriers_off++;
}

void
ports_answer(struct port *port)
{
	t.n_answers++;
}

/* --- rig ------------------------------------------------------------------------------ */

static void
with_port(const char *tap, const char *device)
{
	struct config_port *cp = &t.running.port[t.running.n_port++];

	*cp = (struct config_port){0};
	snprintf(cp->tap, sizeof(cp->tap), "%s", tap);
	snprintf(cp->device, sizeof(cp->device), "%s", device);
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.loop = ev_loop_new(EVFLAG_AUTO);
	reconnect_begin(&t.r, t.loop, &t.h, &t.running);
	return t.loop == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	reconnect_end(&t.r, t.loop);
	ev_loop_destroy(t.loop);
	return 0;
}

static void
turns(unsigned int n)
{
	for (; n > 0; n--)
		ev_invoke(t.loop, &t.r.timer, EV_TIMER);
}

/* --- tests ---------------------------------------------------------------------------- */

static void
a_removed_port_leaves_the_tries_of_the_others_as_they_are(void **state)
{
	with_port("a", "one");
	with_port("b", "two");
	turns(8); /* the tries are at turns 2, 4 and 8; the next is at turn 16 */
	assert_int_equal(t.n_tries[0], 3);
	assert_int_equal(t.n_tries[1], 3);
	t.running.n_port = 0;
	with_port("b", "two"); /* b now has the number that a had */
	with_port("c", "three");
	turns(7);
	assert_int_equal(t.n_tries[1], 3);
	assert_int_equal(t.n_tries[2], 2); /* a new port is tried at once */
	turns(1);
	assert_int_equal(t.n_tries[1], 4);
	assert_int_equal(t.n_tries[0], 3);
}

static void
another_device_is_tried_at_once(void **state)
{
	with_port("a", "one");
	turns(8);
	t.running.n_port = 0;
	with_port("a", "two");
	turns(2);
	assert_int_equal(t.n_tries[0], 4);
}

static void
a_port_is_opened_again_when_its_deleted_interface_is_back(void **state)
{
	struct port port = {.ifidx = 1};

	t.port = &port;
	with_port("a", "@lo");
	with_port("b", "@nowhere0");
	turns(8);
	assert_int_equal(t.n_tries[0] + t.n_tries[1], 0);
	port.without_if = true;
	turns(3);
	assert_int_equal(t.n_tries[0], 1);
	assert_int_equal(t.n_tries[1], 0);
	port.without_if = false;
	turns(8);
	assert_int_equal(t.n_tries[0], 1);
	t.port = NULL; /* the device could not be opened */
	turns(2);
	assert_int_equal(t.n_tries[0], 2);
	assert_int_equal(t.n_tries[1], 0);
}

static void
claims_are_answered_once_a_turn(void **state)
{
	turns(3);
	assert_int_equal(t.n_answers, 3);
}

static void
kept_taps_lose_their_carrier_once_after_some_seconds(void **state)
{
	turns(3);
	assert_int_equal(t.n_carriers_off, 0);
	turns(40);
	assert_int_equal(t.n_carriers_off, 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_removed_port_leaves_the_tries_of_the_others_as_they_are),
		test(another_device_is_tried_at_once),
		test(a_port_is_opened_again_when_its_deleted_interface_is_back),
		test(claims_are_answered_once_a_turn),
		test(kept_taps_lose_their_carrier_once_after_some_seconds),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests_name("manage: reconnect", tests, NULL, NULL);
}
