/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of ports and VLANs that sFlow sends, the second in which it sends them, and
 * the rows of `show sflow`. The test plays the ports and the collector.
 *
 * link: fpm-dataplane/sflow/counters.c fpm-dataplane/sflow/rows.c fpm-dataplane/sflow/sample.c
 * link: fpm-dataplane/sflow/send.c fpm-dataplane/sflow/encode.c fpm-dataplane/sflow/psample.c
 * link: fpm-dataplane/sflow/reason.c fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/fib/ poptrie/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "fib/fib.h"
#include "port/port.h"
#include "sflow/sflow.c"

#define PORT 3
#define VLAN PORT_MAX /* on the port */

static struct {
	struct sflow *sflow;
	struct counters *count; /* of a forwarder */
	struct port port[PORT_SLOTS];
	struct port_stats stats;
	int stats_rc;
	bool takes_all;
	int collector;
	uint8_t got[2048]; /* the last datagram */
} t;

/* --- functions that this program replaces --------------------------------------------- */

int
port_stats(const struct port *port, struct port_stats *st)
{
	assert_ptr_equal(port, &t.port[PORT - 1]);
	*st = t.stats;
	return t.stats_rc;
}

bool
port_takes_all(const struct port *port)
{
	return t.takes_all;
}

/* --- rig ------------------------------------------------------------------------------ */

static void
iface_make(struct fib *fib, uint16_t ifidx)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	assert_non_null(i);
	*i = (struct fib_iface){
		.ifidx = ifidx, .ifindex = 100u + ifidx, .port = PORT, .up = true};
	fib->iface[ifidx] = i;
}

static int
up(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	struct counters *count = t.count;
	struct sflow *s = calloc(1, sizeof(*s));
	struct fib *fib;

	urcu_qsbr_register_thread();
	memset(&t, 0, sizeof(t));
	t.sflow = s;
	t.count = count != NULL ? count : counters_register("fwd-0");
	memset(t.count->port, 0, sizeof(t.count->port));
	memset(&sflow_status, 0, sizeof(sflow_status));
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	iface_make(fib, PORT);
	iface_make(fib, VLAN);
	t.port[PORT - 1].ifidx = PORT;
	strcpy(t.port[PORT - 1].name, "wan0");
	port_link_publish(
		&t.port[PORT - 1],
		(struct port_link){.up = true, .full_duplex = true, .mbit_per_s = 25000});
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	t.collector = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(t.collector, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(t.collector, (struct sockaddr *)&at, &len), 0);
	s->setup.fib = fib;
	s->setup.port = t.port;
	s->now.n_collector = 1;
	s->now.rate = 1000;
	s->now.header_bytes = 128;
	s->now.counters_s = 1;
	strcpy(s->now.collector[0].name, "127.0.0.1");
	memcpy(&s->now.collector[0].addr, &at, sizeof(at));
	s->psample.fd = -1;
	for (unsigned int i = 0; i < SFLOW_COLLECTORS_MAX; i++)
		s->collector[i].fd = -1;
	s->second.data = s;
	collectors_reset(s);
	assert_int_equal(s->agent_family, 4);
	return 0;
}

static int
down(void **state)
{
	struct fib *fib = (struct fib *)(uintptr_t)t.sflow->setup.fib;

	close(t.sflow->collector[0].fd);
	close(t.collector);
	free(t.sflow);
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* Take a datagram. Returns the number of its samples; 0: there is none. */
static uint32_t
samples_got(void)
{
	memset(t.got, 0, sizeof(t.got));
	return recv(t.collector, t.got, sizeof(t.got), MSG_DONTWAIT) > 0
		       ? get_be32(t.got + 24)
		       : 0;
}

#define SAMPLE_BYTES (28 + 88) /* head, and the counters of an interface */

/* Return word `n` of the counters of sample `i` (if_counters of sFlow 5). */
static uint32_t
word(unsigned int i, unsigned int n)
{
	return get_be32(t.got + 28 + i * SAMPLE_BYTES + 28 + 4 * n);
}

static void
add(unsigned int ifidx, uint64_t n)
{
	struct if_counters *c = &t.count->port[ifidx];

	c->rx_packets += n;
	c->rx_bytes += 100 * n;
	c->tx_packets += 2 * n;
	c->tx_bytes += 300 * n;
}

/* --- tests ---------------------------------------------------------------------------- */

static void
a_port_has_its_counters_since_it_was_added_and_those_of_its_device(void **state)
{
	struct port *port = &t.port[PORT - 1];

	t.count->port[PORT].rx_packets = port->base.rx_packets = 1000;
	t.count->port[PORT].rx_bytes = port->base.rx_bytes = 2000;
	t.count->port[PORT].tx_packets = port->base.tx_packets = 3000;
	t.count->port[PORT].tx_bytes = port->base.tx_bytes = 4000;
	port->base.rx_bytes -= 1ull << 32;
	add(PORT, 5);
	add(VLAN, 7);
	t.stats = (struct port_stats){
		.rx_missed = 11, .rx_nombuf = 20, .rx_errors = 40, .tx_errors = 50};
	t.takes_all = true;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 2);
	assert_int_equal(samples_got(), 0);
	t.sflow->sequence = 0;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 2);
	assert_int_equal(get_be32(t.got + 28 + 8), 2); /* the sequence of the interface */
	assert_int_equal(word(0, 0), 100 + PORT);
	assert_int_equal(((uint64_t)word(0, 2) << 32) + word(0, 3), 25000000000);
	assert_int_equal(word(0, 4), 1); /* full duplex */
	assert_int_equal(word(0, 5), 3); /* up, up */
	assert_int_equal(word(0, 6), 1);
	assert_int_equal(word(0, 7), 500);
	assert_int_equal(word(0, 8), 5);
	assert_int_equal(word(0, 11), 31);
	assert_int_equal(word(0, 12), 40);
	assert_int_equal(word(0, 15), 1500);
	assert_int_equal(word(0, 16), 10);
	assert_int_equal(word(0, 20), 50);
	assert_int_equal(word(0, 21), 1);
	/* A VLAN has the link of its port, and no device. */
	assert_int_equal(word(1, 0), 100 + VLAN);
	assert_int_equal(word(1, 4), 1);
	assert_int_equal(word(1, 7), 700);
	assert_int_equal(word(1, 8), 7);
	assert_int_equal(word(1, 11), 0);
	assert_int_equal(word(1, 21), 2); /* false */
	assert_int_equal(sflow_status.counters, 4);
}

static void
the_state_is_that_of_link_and_interface(void **state)
{
	struct fib_iface *iface =
		(struct fib_iface *)(uintptr_t)t.sflow->setup.fib->iface[PORT];

	port_link_publish(&t.port[PORT - 1],
			  (struct port_link){.up = true, .mbit_per_s = 25000});
	iface->up = false;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 2);
	assert_int_equal(word(0, 4), 2); /* half duplex */
	assert_int_equal(word(0, 5), 0); /* a link, but admin down */
	port_link_publish(&t.port[PORT - 1], (struct port_link){0});
	t.stats = (struct port_stats){.rx_missed = 1, .rx_errors = 1, .tx_errors = 1};
	t.stats_rc = -EIO;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 2);
	assert_int_equal(word(0, 4), 0);
	assert_int_equal(word(0, 5), 1); /* no link: admin up, oper down */
	assert_int_equal(word(0, 11), 0);
	assert_int_equal(word(0, 12), 0);
	/* The port was removed. */
	t.port[PORT - 1].ifidx = 0;
	iface->port = 0;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 2);
	assert_int_equal(word(0, 3), 0);
	/* The TAP of the port is gone, and so is the VLAN. */
	iface->ifindex = 0;
	((struct fib_iface *)(uintptr_t)t.sflow->setup.fib->iface[VLAN])->ifindex = 0;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 0);
}

/* Each interface is sent in one second of the interval: its number modulo the interval. */
static void
each_interface_is_sent_once_in_an_interval(void **state)
{
	unsigned int n_port = 0, n_vlan = 0;

	t.sflow->now.counters_s = 5;
	for (unsigned int second = 1; second <= 10; second++) {
		unsigned int n, due = (second % 5 == PORT % 5) + (second % 5 == VLAN % 5);

		sflow_on_second(NULL, &t.sflow->second, 0);
		assert_int_equal(t.sflow->n_seconds, second);
		n = samples_got();
		assert_int_equal(n, due);
		for (unsigned int i = 0; i < n; i++) {
			n_port += word(i, 0) == 100 + PORT;
			n_vlan += word(i, 0) == 100 + VLAN;
		}
	}
	assert_int_equal(n_port, 2);
	assert_int_equal(n_vlan, 2);
	t.sflow->now.counters_s = 0;
	sflow_on_second(NULL, &t.sflow->second, 0);
	t.sflow->now.counters_s = 1;
	t.sflow->agent_family = 0;
	counters_send(t.sflow);
	assert_int_equal(samples_got(), 0);
}

/* Assert the row number `i` of `show sflow`, in JSON with sorted keys. */
static void
row_is(size_t i, const char *want)
{
	json_t *rows = json_array();
	char *text;

	sflow_rows(t.sflow, rows);
	text = json_dumps(json_array_get(rows, i), JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(rows);
	if (want == NULL)
		assert_null(text);
	else
		assert_string_equal(text, want);
	free(text);
}

static void
the_rows_have_settings_collectors_psample_and_ports(void **state)
{
	struct sflow *s = t.sflow;

	s->sequence = 9;
	s->now.drops = true;
	sflow_status.samples = 1;
	sflow_status.discards = 2;
	sflow_status.counters = 3;
	sflow_status.samples_over = 4;
	sflow_status.discards_over = 5;
	s->collector[0].datagrams = 6;
	s->source[PORT] = (struct source){.sequence = 11,
					  .discard_sequence = 12,
					  .over = 13,
					  .discards_over = 14,
					  .base = 15};
	t.count->port[PORT].rx_packets = 115;
	row_is(0, "{\"agent\":\"127.0.0.1\",\"counters\":3,\"counters_s\":1,\"discards\":2,"
		  "\"discards_over\":5,\"drops\":true,\"header\":128,\"kind\":\"agent\","
		  "\"rate\":1000,\"samples\":1,\"samples_over\":4,\"sequence\":9,"
		  "\"state\":\"on\"}");
	row_is(1, "{\"address\":\"127.0.0.1\",\"datagrams\":6,\"errors\":0,\"kind\":"
		  "\"collector\",\"last_error\":null,\"state\":\"open\",\"vrf\":null}");
	row_is(2, "{\"discards\":12,\"discards_dropped\":14,\"drops\":13,\"kind\":\"port\","
		  "\"name\":\"wan0\",\"pool\":100,\"samples\":11}");
	row_is(3, NULL);
	/* psample, a collector that fails in a VRF, and no agent yet. */
	s->now.psample = 7;
	s->psample.samples = 8;
	s->psample.errors = 9;
	s->psample.error = ENOENT;
	strcpy(s->collector[0].conf.vrf, "red\xff");
	s->collector[0].logged_failing = true;
	s->collector[0].error = ENODEV;
	s->collector[0].errors = 2;
	s->agent_family = 0;
	row_is(1, "{\"address\":\"127.0.0.1\",\"datagrams\":6,\"errors\":2,\"kind\":"
		  "\"collector\",\"last_error\":\"No such device\",\"state\":\"failing\","
		  "\"vrf\":\"red?\"}");
	row_is(2,
	       "{\"errors\":9,\"group\":7,\"kind\":\"psample\",\"last_error\":\"the kernel "
	       "has no psample: modprobe psample\",\"samples\":8,\"state\":\"failing\"}");
	s->psample.fd = 0;
	s->psample.error = 0;
	row_is(2, "{\"errors\":9,\"group\":7,\"kind\":\"psample\",\"last_error\":null,"
		  "\"samples\":8,\"state\":\"open\"}");
	s->collector[0].logged_failing = false;
	close(s->collector[0].fd);
	s->collector[0].fd = -1;
	row_is(1,
	       "{\"address\":\"127.0.0.1\",\"datagrams\":6,\"errors\":2,\"kind\":"
	       "\"collector\",\"last_error\":null,\"state\":\"closed\",\"vrf\":\"red?\"}");
	/* If sFlow is off, only the row of the settings is left. */
	s->now = (struct sflow_conf){0};
	row_is(0, "{\"agent\":null,\"counters\":3,\"counters_s\":0,\"discards\":2,"
		  "\"discards_over\":5,\"drops\":false,\"header\":0,\"kind\":\"agent\","
		  "\"rate\":0,\"samples\":1,\"samples_over\":4,\"sequence\":9,"
		  "\"state\":\"off\"}");
	row_is(1, NULL);
}

static void
a_collector_works_again_only_after_datagrams_without_an_error(void **state)
{
	struct sflow *s = t.sflow;
	struct collector *c = &s->collector[0];
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	uint64_t began_ms;

	setenv("FPM_DATAPLANE_HASTE", "1000", 1); /* ten seconds take 10 ms */
	assert_int_equal(getsockname(t.collector, (struct sockaddr *)&at, &len), 0);
	close(t.collector);
	s->out.n = 1;
	out_flush(s);
	collectors_look(s);
	assert_int_equal(c->error, ECONNREFUSED);
	/* No datagram is sent for a long time. */
	for (began_ms = monotonic_ms(); monotonic_ms() - began_ms < 20;)
		;
	collectors_look(s);
	assert_int_equal(c->error, ECONNREFUSED);
	t.collector = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(t.collector, (struct sockaddr *)&at, sizeof(at)), 0);
	s->out.n = 1;
	out_flush(s);
	for (began_ms = monotonic_ms(); c->error != 0; collectors_look(s))
		assert_true(monotonic_ms() - began_ms < 20000);
	assert_true(monotonic_ms() - began_ms >= 9);
	assert_false(c->logged_failing);
	assert_int_equal(c->errors, 1);
	unsetenv("FPM_DATAPLANE_HASTE");
}

#define test(name) cmocka_unit_test_setup_teardown(name, up, down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_port_has_its_counters_since_it_was_added_and_those_of_its_device),
		test(the_state_is_that_of_link_and_interface),
		test(each_interface_is_sent_once_in_an_interval),
		test(the_rows_have_settings_collectors_psample_and_ports),
		test(a_collector_works_again_only_after_datagrams_without_an_error),
	};

	return cmocka_run_group_tests_name("sflow_interfaces", tests, NULL, NULL);
}
