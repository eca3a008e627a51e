/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a change of ports is refused late, all queues are served as before, whatever steps
 * were done by then. This holds also when memory runs out at any point. The test plays the
 * devices.
 *
 * link: fpm-dataplane/manage/reload_ports.c
 * link: fpm-dataplane/manage/rxq_assign.c
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "descriptors.h"
#include "manage/reconnect.h"
#include "manage/reload_ports.h"
#include "pci/memif.h"
#include "port/rxq.h"

#define N_FWD 3

/* Allocations that still succeed in rxq_set.c; < 0: all. */
static int n_until_none;

static void *
scarce(size_t bytes)
{
	if (n_until_none == 0)
		return NULL;
	n_until_none -= n_until_none > 0;
	return malloc(bytes);
}

#define malloc(bytes) scarce(bytes)
#include "port/rxq_set.c"
#undef malloc

static struct {
	struct port slot[PORT_SLOTS];
	struct serving serving[N_FWD];
	unsigned int cpu[N_FWD];
	struct rxq_assign rxq_assign;
	struct hotplug h;
	uint64_t n_sleeps;
	unsigned int mtu_bytes; /* the last one that a TAP got */
	bool once_was; /* the device "once" has been closed and does not open again */
	char unstored[2 * IFNAMSIZ]; /* names of TAPs that are kept no longer */
} t;

/* --- functions that reload_ports.c calls ---------------------------------------------- */

void
port_rxq(const struct port *port, uint16_t queue, struct rxq *q)
{
	*q = (struct rxq){.ifidx = port->ifidx, .queue = queue, .fd = -1};
}

struct port *
hotplug_find(const struct hotplug *h, const char *tap)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&h->port[i]) && strcmp(h->port[i].name, tap) == 0)
			return &h->port[i];
	return NULL;
}

/* The device "later" cannot be opened yet. */
bool
memif_waits(const char *device)
{
	return strcmp(device, "later") == 0;
}

int
hotplug_add(struct hotplug *h, const struct config *conf, const struct config_port *cp,
	    const struct hotplug_reuse *rest, char *why, unsigned int why_size)
{
	struct port *slot;
	int rc;

	if (rest != NULL) /* this function takes the descriptor, also if it fails */
		assert_int_equal(close(rest->tap_fd), 0);
	if (strcmp(cp->device, "none") == 0 ||
	    (strcmp(cp->device, "once") == 0 && t.once_was)) {
		snprintf(why, why_size, "no such device");
		return -ENODEV;
	}
	h->last_ifidx++;
	slot = &h->port[h->last_ifidx - 1];
	snprintf(slot->name, sizeof(slot->name), "%s", cp->tap);
	snprintf(slot->device, sizeof(slot->device), "%s", cp->device);
	slot->n_rxq = (uint16_t)config_port_queues(cp);
	if (slot->n_rxq == 0)
		slot->n_rxq = N_FWD;
	slot->ifidx = h->last_ifidx;
	rc = rxq_assign_begin(h->rxq_assign, slot, cp, true);
	return rc == 0 ? rxq_assign_begin(h->rxq_assign, slot, cp, false) : rc;
}

void
hotplug_del(struct hotplug *h, struct port *port, struct hotplug_reuse *rest)
{
	rxq_assign_end(h->rxq_assign, port);
	t.once_was |= strcmp(port->device, "once") == 0;
	port->ifidx = 0;
	if (rest != NULL) {
		*rest = (struct hotplug_reuse){
			.tap_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
		assert_true(rest->tap_fd >= 0);
	}
}

void
hotplug_undo(struct hotplug *h, struct port *port)
{
	hotplug_del(h, port, NULL);
}

int
tap_mtu(const struct tap *tap, unsigned int mtu_bytes)
{
	t.mtu_bytes = mtu_bytes;
	return mtu_bytes == 666 ? -EINVAL : 0;
}

int
port_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
	      char *why, unsigned int why_size)
{
	return 0;
}

bool
port_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes)
{
	return false;
}

void
hotplug_unstore(const char *tap)
{
	strcat(strcat(t.unstored, tap), " ");
}

/* --- rig ------------------------------------------------------------------------------ */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	n_until_none = -1;
	for (unsigned int f = 0; f < N_FWD; f++) {
		t.cpu[f] = f + 1;
		t.rxq_assign.node[f] = -1;
		assert_int_equal(serving_open(&t.serving[f], true, &t.n_sleeps), 0);
	}
	t.rxq_assign.serving = t.serving;
	t.rxq_assign.cpu = t.cpu;
	t.rxq_assign.n_fwd = N_FWD;
	t.rxq_assign.port = t.slot;
	t.h.port = t.slot;
	t.h.rxq_assign = &t.rxq_assign;
	return 0;
}

static int
teardown(void **state)
{
	for (unsigned int f = 0; f < N_FWD; f++)
		serving_close(&t.serving[f]);
	return 0;
}

/* Add a port to a configuration. Its cores are auto. */
static struct config_port *
with_port(struct config *conf, const char *tap, const char *device, unsigned int n_rxq)
{
	struct config_port *cp = &conf->port[conf->n_port++];

	*cp = (struct config_port){.mtu_bytes = 1500, .n_rxq = n_rxq};
	snprintf(cp->tap, sizeof(cp->tap), "%s", tap);
	snprintf(cp->device, sizeof(cp->device), "%s", device);
	return cp;
}

static void
with_cores(struct config_port *cp, unsigned int n, unsigned int cpu)
{
	cp->n_core = n;
	for (unsigned int q = 0; q < n; q++)
		cp->core[q] = cpu;
}

/* Return the CPU of each queue of each existing port of `conf`: "a 1 2 3|b 1 2 -|". */
static const char *
served(const struct config *conf, char *buf)
{
	char *at = buf;

	*buf = '\0';
	for (unsigned int i = 0; i < conf->n_port; i++) {
		const struct port *port = hotplug_find(&t.h, conf->port[i].tap);

		if (port == NULL)
			continue;
		at += sprintf(at, "%s", port->name);
		for (uint16_t q = 0; q < port->n_rxq; q++) {
			unsigned int f = serving_index(t.serving, N_FWD, port->ifidx, q);

			at += sprintf(at, f < N_FWD ? " %u" : " -", f + 1);
		}
		at += sprintf(at, "|");
	}
	return buf;
}

static void
start(const struct config *conf)
{
	static const struct config nothing;
	char why[512];

	assert_int_equal(reload_ports(&t.h, &nothing, conf, why, sizeof(why)), 0);
}

/* --- tests ---------------------------------------------------------------------------- */

static void
a_queue_that_a_forwarder_had_needs_no_memory_again(void **state)
{
	struct rxq q = {.ifidx = 1, .fd = -1};

	for (q.queue = 0; q.queue < 5; q.queue++)
		assert_int_equal(serving_add(&t.serving[0], &q), 0);
	n_until_none = 0;
	assert_int_equal(serving_add(&t.serving[0], &q), -ENOMEM);
	for (uint16_t n = 0; n < 5; n++)
		assert_int_equal(serving_remove(&t.serving[0], 1, n), 0);
	assert_int_equal(serving_set(&t.serving[0])->n, 0);
	for (q.queue = 0; q.queue < 5; q.queue++)
		assert_int_equal(serving_add(&t.serving[0], &q), 0);
	assert_int_equal(serving_add(&t.serving[0], &q), -ENOMEM);
	assert_int_equal(serving_set(&t.serving[0])->n, 5);
}

static void
queues_move_all_or_none_wherever_memory_ends(void **state)
{
	static struct config conf;
	struct config_port wanted;
	char before[256], after[256];
	int n = 0;

	conf.n_port = 0;
	with_port(&conf, "a", "nic", 6);
	start(&conf);
	served(&conf, before);
	wanted = conf.port[0];
	with_cores(&wanted, 6, 2);
	wanted.core[5] = 3;
	for (;; n++) {
		n_until_none = n;
		if (rxq_assign_move(&t.rxq_assign, hotplug_find(&t.h, "a"), &wanted) == 0)
			break;
		assert_string_equal(served(&conf, after), before);
	}
	assert_true(n >= 3); /* several queues had moved by then */
	assert_string_equal(served(&conf, after), "a 2 2 2 2 2 3|");
}

static void
a_port_whose_queues_have_no_memory_keeps_its_mtu(void **state)
{
	static struct config now, next;
	char before[256], after[256], why[512] = "";

	now.n_port = 0;
	with_port(&now, "a", "nic", 6);
	start(&now);
	served(&now, before);
	next = now;
	with_cores(&next.port[0], 6, 2);
	next.port[0].mtu_bytes = 1400;
	n_until_none = 0;

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENOMEM);

	assert_string_equal(why, "refused, nothing changed: port a device nic: not enough "
				 "memory to move its queues");
	assert_int_equal(t.mtu_bytes, 1500);
	assert_string_equal(served(&now, after), before);
}

static void
a_refused_change_leaves_queues_that_were_dealt_where_they_were(void **state)
{
	static struct config now, next;
	char before[256], after[256], why[512];

	now.n_port = next.n_port = 0;
	with_cores(with_port(&now, "a", "nic", 3), 3, 1);
	with_port(&now, "b", "nic", 3);
	with_port(&now, "c", "nic", 2);
	start(&now);
	served(&now, before);
	with_port(&next, "a", "nic", 3); /* its cores are auto: its queues stay */
	with_cores(with_port(&next, "b", "nic", 3), 3, 2);
	with_cores(with_port(&next, "c", "other", 2), 2, 3);
	with_port(&next, "d", "nic", 1);
	with_port(&next, "e", "none", 1);

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENODEV);

	assert_string_equal(why,
			    "refused, nothing changed: port e device none: no such device");
	assert_string_equal(served(&now, after), before);
	assert_null(hotplug_find(&t.h, "d"));
	assert_string_equal(hotplug_find(&t.h, "c")->device, "nic");
}

static void
a_port_whose_nic_is_kept_open_does_not_go_by_reload(void **state)
{
	static struct config now, next;
	char why[512] = "";

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "nic", 1);
	with_port(&now, "b", "nic", 1);
	with_port(&next, "a", "nic", 1);
	start(&now);
	now.keep_nics = next.keep_nics = true;

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENOTSUP);

	assert_non_null(strstr(why, "refused, nothing changed: "));
	assert_non_null(strstr(why, "restart"));
	assert_non_null(hotplug_find(&t.h, "b"));
	now.keep_nics = next.keep_nics = false;
}

static void
a_device_that_does_not_come_leaves_the_others_queues_where_they_were(void **state)
{
	static struct config now, next;
	char before[256], after[256], why[512];

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "nic", 2);
	with_port(&now, "b", "nic", 2);
	with_port(&now, "c", "nic", 3);
	start(&now);
	/* c is moved by hand, so that an assignment now would give another result. */
	with_cores(&now.port[2], 3, 1);
	assert_int_equal(
		rxq_assign_move(&t.rxq_assign, hotplug_find(&t.h, "c"), &now.port[2]), 0);
	now.port[2].n_core = 0;
	served(&now, before);
	next = now;
	/* The old device comes back, and its queues are assigned again. */
	strcpy(next.port[1].device, "none");

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENODEV);

	assert_string_equal(served(&now, after), before);
}

static void
a_lost_port_stays_lost_after_a_refusal(void **state)
{
	static struct config now, next;
	char why[512];

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "nic", 1);
	start(&now);
	with_port(&now, "b", "once", 1); /* configured, but not open */
	next = now;
	strcpy(next.port[1].device, "nic");
	with_port(&next, "c", "none", 1);

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENODEV);

	assert_string_equal(why,
			    "refused, nothing changed: port c device none: no such device");
	assert_null(hotplug_find(&t.h, "b"));
}

static void
a_port_that_waits_for_its_server_bars_no_other_change(void **state)
{
	static struct config now, next;
	char why[512];

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "nic", 1);
	start(&now);
	with_port(&now, "b", "later", 1); /* not open yet */
	next = now;
	with_port(&next, "c", "nic", 1);

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), 0);

	assert_null(hotplug_find(&t.h, "b"));
	assert_non_null(hotplug_find(&t.h, "c"));
}

/* fpm-nics has the device of the port open, so the daemon would open it twice. */
static void
a_port_is_not_opened_again_with_keep_nics(void **state)
{
	static struct config now;
	char why[512];

	now.n_port = 0;
	with_port(&now, "a", "nic", 1);
	start(&now);
	now.keep_nics = true;
	assert_int_equal(reload_port_again(&t.h, &now, &now.port[0], why, sizeof(why)),
			 -ENOTSUP);
	assert_non_null(strstr(why, "restart"));
	assert_non_null(hotplug_find(&t.h, "a"));
	now.keep_nics = false;
}

static void
a_change_that_cannot_be_undone_is_reported(void **state)
{
	static struct config now, next;
	char why[512];

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "once", 1);
	start(&now);
	next = now;
	strcpy(next.port[0].device, "nic");
	with_port(&next, "b", "none", 1);

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENODEV);

	assert_string_equal(why,
			    "refused, but not everything could be restored (port a: no "
			    "such device): port b device none: no such device");
	assert_string_equal(hotplug_find(&t.h, "a")->device, "nic");
}

/* Neither the new device nor the old one opens. The descriptors of its TAP are closed. */
static void
a_port_that_is_lost_keeps_no_tap(void **state)
{
	static struct config now, next;
	unsigned int before;
	char why[512];

	now.n_port = next.n_port = 0;
	with_port(&now, "a", "nic", 1);
	with_port(&now, "b", "once", 1);
	start(&now);
	next = now;
	strcpy(next.port[1].device, "none");
	before = descriptors_open();

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -ENODEV);

	assert_non_null(strstr(why, "the port is lost until `port set` names a device"));
	assert_null(hotplug_find(&t.h, "b"));
	assert_string_equal(t.unstored, "b ");
	assert_int_equal(descriptors_open(), before);
	/* A configuration without ports removes b, which has no open port, and a. */
	next.n_port = 0;
	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), 0);
	assert_string_equal(t.unstored, "b b ");
	assert_null(hotplug_find(&t.h, "a"));
}

/* The new device opens, but its TAP refuses the MTU: the old device gets the TAP back. */
static void
a_device_whose_tap_refuses_the_mtu_goes_again(void **state)
{
	static struct config now, next;
	unsigned int before;
	char why[512];

	now.n_port = 0;
	with_port(&now, "a", "nic", 1);
	start(&now);
	next = now;
	strcpy(next.port[0].device, "other");
	next.port[0].mtu_bytes = 666;
	before = descriptors_open();

	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), -EINVAL);

	assert_string_equal(why,
			    "refused, nothing changed: port a device other: mtu not set: "
			    "Invalid argument");
	assert_string_equal(hotplug_find(&t.h, "a")->device, "nic");
	assert_string_equal(t.unstored, "");
	assert_int_equal(descriptors_open(), before);
	next.port[0].mtu_bytes = 1400;
	assert_int_equal(reload_ports(&t.h, &now, &next, why, sizeof(why)), 0);
	assert_string_equal(hotplug_find(&t.h, "a")->device, "other");
	assert_int_equal(t.mtu_bytes, 1400);
	assert_int_equal(descriptors_open(), before);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_queue_that_a_forwarder_had_needs_no_memory_again),
		test(queues_move_all_or_none_wherever_memory_ends),
		test(a_port_whose_queues_have_no_memory_keeps_its_mtu),
		test(a_refused_change_leaves_queues_that_were_dealt_where_they_were),
		test(a_port_whose_nic_is_kept_open_does_not_go_by_reload),
		test(a_device_that_does_not_come_leaves_the_others_queues_where_they_were),
		test(a_lost_port_stays_lost_after_a_refusal),
		test(a_port_that_waits_for_its_server_bars_no_other_change),
		test(a_port_is_not_opened_again_with_keep_nics),
		test(a_change_that_cannot_be_undone_is_reported),
		test(a_port_that_is_lost_keeps_no_tap),
		test(a_device_whose_tap_refuses_the_mtu_goes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
