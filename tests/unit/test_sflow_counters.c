/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sequence numbers of counter samples. The numbers of an interface begin again when its
 * counters do. They also begin again if the interface gets an ifidx that an earlier
 * interface had, as the 256th port that is opened does.
 *
 * link: fpm-dataplane/sflow/counters.c fpm-dataplane/base/ fpm-dataplane/fib/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include "fib/fib.h"
#include "port/port.h"
#include "sflow/impl.h"

#define PORT 3
#define VLAN PORT_MAX /* on the port */

static struct sflow *sflow;
static struct port ports[PORT_SLOTS];
static uint32_t sent[300]; /* number of the last sample by ifIndex */

/* --- functions that this program replaces --------------------------------------------- */

int
port_stats(const struct port *port, struct port_stats *st)
{
	*st = (struct port_stats){0};
	return 0;
}

bool
port_takes_all(const struct port *port)
{
	return false;
}

bool
datagram_add_counters(struct datagram *d, const struct sflow_counters *c)
{
	assert_in_range(c->ifindex, 0, 299);
	sent[c->ifindex] = c->sequence;
	return true;
}

void
out_flush(struct sflow *s)
{
}

/*
 * ---------------------------------------------------------------------------------------
 */

static void
iface_make(struct fib *fib, uint16_t ifidx, uint32_t ifindex)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	*i = (struct fib_iface){
		.ifidx = ifidx, .ifindex = ifindex, .port = PORT, .up = true};
	fib->iface[ifidx] = i;
}

static int
up(void **state)
{
	struct fib *fib;

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	iface_make(fib, PORT, 103);
	iface_make(fib, VLAN, 200);
	ports[PORT - 1] = (struct port){.ifidx = PORT, .opening = 1};
	sflow = calloc(1, sizeof(*sflow));
	sflow->setup.fib = fib;
	sflow->setup.port = ports;
	sflow->now.counters_s = 1;
	sflow->agent_family = 4;
	return 0;
}

static int
down(void **state)
{
	fib_destroy((struct fib *)(uintptr_t)sflow->setup.fib);
	free(sflow);
	urcu_qsbr_unregister_thread();
	return 0;
}

static void
test_numbers_begin_again_with_the_counters(void **state)
{
	for (uint32_t i = 1; i <= 3; i++) {
		counters_send(sflow);
		assert_int_equal(sent[103], i);
		assert_int_equal(sent[200], i);
	}

	/* The port is opened again: it counts from 0, and the VLAN goes on. */
	ports[PORT - 1].opening = 2;
	counters_send(sflow);
	assert_int_equal(sent[103], 1);
	assert_int_equal(sent[200], 4);
	counters_send(sflow);
	assert_int_equal(sent[103], 2);

	/* Another VLAN gets the number of the first one. */
	sflow->setup.fib->iface[VLAN]->ifindex = 201;
	counters_send(sflow);
	assert_int_equal(sent[201], 1);
	assert_int_equal(sent[103], 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers_begin_again_with_the_counters,
						up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
