/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How sFlow makes samples from the records of forwarders: the limits, the port that is the
 * source, samples that no collector can get, and the messages of psample. The test plays
 * rib: it takes the questions and answers them.
 *
 * link: fpm-dataplane/sflow/sample.c fpm-dataplane/sflow/send.c fpm-dataplane/sflow/encode.c
 * link: fpm-dataplane/sflow/psample.c
 * link: fpm-dataplane/sflow/reason.c fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/fib/ poptrie/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/psample.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/worker.h"
#include "fib/fib.h"
#include "netlink/attributes.h"
#include "sflow/impl.h"

#define PORT 3
#define VLAN PORT_MAX /* on the port */

#define SECOND_NS 1000000000ull
#define TICK_NS   10000000ull

static struct sflow *sflow;
static struct watch_ring *ring;
static struct worker rib;
static uint64_t now_ns;
static const struct worker_ops rib_ops = {.name = "rib"};

static void
iface_make(struct fib *fib, uint16_t ifidx)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	i->ifidx = ifidx;
	i->ifindex = 100u + ifidx;
	i->port = PORT;
	fib->iface[ifidx] = i;
}

static int
up(void **state)
{
	struct fib *fib;

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	iface_make(fib, PORT);
	iface_make(fib, VLAN);
	worker_init(&rib, &rib_ops, NULL);
	assert_int_equal(worker_prepare(&rib), 0);
	now_ns = 5 * SECOND_NS;
	sflow = calloc(1, sizeof(*sflow));
	sflow->setup.fib = fib;
	sflow->setup.rib = &rib;
	sflow->setup.watch = watch_create();
	ring = watch_ring_add(sflow->setup.watch, NULL);
	sflow->epoch = 1;
	sflow->now.n_collector = 1;
	sflow->now.rate = 1;
	sflow->collector[0].fd = sflow->psample.fd = -1;
	sflow->agent_family = 4;
	datagram_begin(&sflow->out, &sflow->agent, sflow->agent_family);
	limits_set(sflow);
	memset(&sflow_status, 0, sizeof(sflow_status));
	return 0;
}

/* Answer all questions. Then sFlow sends the batches, or counts them as lost. */
static void
answer(void)
{
	struct msg *m;

	while ((m = worker_take(&rib)) != NULL)
		batch_answered(sflow, caa_container_of(m, struct batch, masks.q.m));
}

static int
down(void **state)
{
	struct fib *fib = (struct fib *)(uintptr_t)sflow->setup.fib;

	answer();
	watch_free(sflow->setup.watch);
	free(sflow);
	worker_free(&rib);
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/* Let a forwarder write `n` records of `point`. */
static void
write_records(unsigned int n, enum watch_point point, uint16_t in, uint16_t out)
{
	uint64_t n_lost = 0;

	ring->n_lost = &n_lost;
	for (unsigned int i = 0; i < n; i++) {
		struct watch_record *rec = watch_open(ring);

		assert_non_null(rec);
		rec->epoch = sflow->epoch;
		rec->point = (uint8_t)point;
		rec->verdict = DROP_tx_full;
		rec->in_ifidx = in;
		rec->out_ifidx = out;
	}
	watch_publish(ring);
}

/* Take `n` new records at the time now_ns. Returns the number that passed. */
static unsigned int
take(unsigned int n, enum watch_point point)
{
	struct source *source = &sflow->source[PORT];
	unsigned int before = source->sequence + source->discard_sequence;

	while (n > 0) {
		unsigned int part = n < 1000 ? n : 1000;

		write_records(part, point, PORT, 0);
		records_take(sflow, now_ns);
		answer();
		n -= part;
	}
	return source->sequence + source->discard_sequence - before;
}

static void
samples_over_the_limit_are_spread_over_the_second(void **state)
{
	assert_int_equal(take(6000, WATCH_WALK), 4000);
	assert_int_equal(sflow->source[PORT].over, 2000);
	assert_int_equal(sflow_status.samples_over, 2000);
	for (unsigned int tick = 0; tick < 200; tick++) {
		now_ns += TICK_NS;
		assert_int_equal(take(100, WATCH_WALK), 40);
	}
	now_ns += 10 * SECOND_NS;
	assert_int_equal(take(6000, WATCH_WALK), 4000);
}

static void
dropped_packets_leave_room_for_samples(void **state)
{
	assert_int_equal(take(3000, WATCH_LOST), 1000);
	assert_int_equal(sflow->source[PORT].discards_over, 2000);
	assert_int_equal(take(4000, WATCH_WALK), 3000);
	now_ns += TICK_NS;
	assert_int_equal(take(100, WATCH_LOST), 10);
	assert_int_equal(take(100, WATCH_WALK), 30);
}

/* A frame that a port did not take has no input: the port of the output is the source. */
static void
a_lost_report_counts_for_the_source_of_a_sent_one(void **state)
{
	struct source *source = &sflow->source[PORT];

	write_records(600, WATCH_LOST, 0, VLAN);
	write_records(600, WATCH_LOST, 0, PORT);
	records_take(sflow, now_ns);
	answer();
	assert_int_equal(source->discard_sequence, 1000);
	assert_int_equal(source->discards_over, 200);
	assert_int_equal(sflow->source[0].discards_over, 0);
}

static void
a_datagram_without_a_socket_is_an_error_of_each_collector(void **state)
{
	sflow->now.n_collector = 2;
	sflow->collector[0].error = sflow->collector[1].error = ENODEV;
	sflow->collector[1].fd = -1;
	assert_int_equal(take(1, WATCH_WALK), 1);
	assert_int_equal(take(1, WATCH_WALK), 1);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sflow->collector[i].errors, 2);
		assert_int_equal(sflow->collector[i].error, ENODEV);
	}
	assert_int_equal(sflow_status.send_errors, 4);
	assert_int_equal(sflow_status.datagrams, 0);
}

/* Without an agent nothing counts as sent, also if the agent is lost before rib answers. */
static void
samples_without_an_agent_are_counted_as_lost(void **state)
{
	struct source *source = &sflow->source[PORT];

	write_records(5, WATCH_WALK, PORT, 0);
	write_records(2, WATCH_LOST, PORT, 0);
	records_take(sflow, now_ns);
	sflow->agent_family = 0;
	answer();
	assert_int_equal(source->over, 5);
	assert_int_equal(source->discards_over, 2);
	assert_int_equal(take(3, WATCH_WALK), 0);
	assert_int_equal(source->over, 8);
	assert_int_equal(sflow_status.samples, 0);
	assert_int_equal(sflow_status.discards, 0);
	assert_int_equal(sflow_status.samples_over, 8);
}

/* Write the kernel's answer about the family psample. Returns its octets. */
static size_t
write_family(uint8_t *buf, uint16_t family, uint32_t packets)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *groups, *group;

	nlh->nlmsg_type = GENL_ID_CTRL;
	mnl_nlmsg_put_extra_header(nlh, GENL_HDRLEN);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, PSAMPLE_GENL_NAME);
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, family);
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	group = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 9);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, PSAMPLE_NL_MCGRP_CONFIG_NAME);
	mnl_attr_nest_end(nlh, group);
	group = mnl_attr_nest_start(nlh, 2);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, packets);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, PSAMPLE_NL_MCGRP_SAMPLE_NAME);
	mnl_attr_nest_end(nlh, group);
	mnl_attr_nest_end(nlh, groups);
	return nlh->nlmsg_len;
}

static void
the_numbers_of_psample_are_taken_from_the_answer(void **state)
{
	uint8_t buf[256];
	struct psample ps = {0};
	size_t n = write_family(buf, 30, 32);
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr error;
	} refused = {.nlh = {sizeof(refused), NLMSG_ERROR, 0, 0, 0},
		     .error = {.error = -ENOENT}};

	assert_int_equal(psample_take_family(&ps, buf, n), 0);
	assert_int_equal(ps.family, 30);
	assert_int_equal(ps.mcast, 32);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(psample_take_family(&ps, buf, cut), -EPROTO);
	assert_int_equal(psample_take_family(&ps, buf, write_family(buf, 30, 33)), -ERANGE);
	assert_int_equal(psample_take_family(&ps, buf, write_family(buf, 30, 0)), -EPROTO);
	assert_int_equal(psample_take_family(&ps, buf, write_family(buf, 3, 5)), -EPROTO);
	assert_int_equal(psample_take_family(&ps, &refused, sizeof(refused)), -ENOENT);
}

/*
 * The module psample may have been loaded again, with other numbers. The test plays the
 * kernel.
 */
static void
the_numbers_of_psample_are_asked_for_again_by_the_same_socket(void **state)
{
	uint8_t buf[256];
	int end[2];
	size_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end), 0);
	sflow->now.psample = 7;
	sflow->psample.fd = end[0];
	for (uint16_t family = 30; family < 33; family++) {
		n = write_family(buf, family, 32);
		assert_int_equal(send(end[1], buf, n, 0), n);
		sflow->psample.look_ms = 0; /* it is time */
		psample_look(sflow);
		assert_int_equal(sflow->psample.fd, end[0]);
		assert_int_equal(sflow->psample.error, 0);
		assert_int_equal(sflow->psample.family, family);
	}
	assert_int_equal(sflow->psample.errors, 0);
	close(end[1]);
	sflow->psample.look_ms = 0;
	psample_look(sflow);
	assert_int_equal(sflow->psample.fd, -1);
	assert_int_equal(sflow->psample.errors, 1);
	assert_int_not_equal(sflow->psample.error, 0);
	assert_int_equal(fcntl(end[0], F_GETFD), -1);
}

/*
 * A sample that the kernel does not take is an error, and no sample. The next samples wait
 * for the next request of the numbers, which is no error if it succeeds.
 */
static void
a_sample_that_psample_does_not_take_is_an_error(void **state)
{
	const struct sflow_packet p = {.rate = 1, .frame_len = 64};
	struct source *source = &sflow->source[PORT];
	struct psample *ps = &sflow->psample;
	uint8_t buf[256];
	int end[2];
	size_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
	sflow->now.psample = 7;
	*ps = (struct psample){.fd = end[0], .family = 30, .mcast = 32};
	psample_send(sflow, &p, source); /* a stream takes no address */
	assert_int_equal(ps->samples, 0);
	assert_int_equal(ps->errors, 1);
	assert_int_not_equal(ps->error, 0);
	assert_non_null(psample_error(ps));
	psample_send(sflow, &p, source);
	assert_int_equal(ps->errors, 1);
	n = write_family(buf, 30, 32);
	assert_int_equal(send(end[1], buf, n, 0), n);
	psample_look(sflow);
	assert_null(psample_error(ps));
	assert_int_equal(ps->errors, 1);
	close(end[0]);
	close(end[1]);
}

/*
 * psample has 16 bits for an interface. A larger ifIndex, the host and a reason of sFlow
 * are left out, because hsflowd would take them for interfaces.
 */
static void
a_message_of_psample_has_the_attributes_of_the_kernel(void **state)
{
	static const uint8_t frame[5] = {1, 2, 3, 4, 5};
	const struct psample ps = {.family = 30, .sequence = 7};
	struct sflow_packet p = {.input = 3,
				 .output = 4,
				 .rate = 1000,
				 .frame_len = 68,
				 .header = frame,
				 .header_len = sizeof(frame)};
	uint8_t buf[PSAMPLE_BYTES];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
	const uint8_t *at = buf + NLMSG_HDRLEN + GENL_HDRLEN;
	static const uint32_t words[][2] = {{PSAMPLE_ATTR_SAMPLE_RATE, 1000},
					    {PSAMPLE_ATTR_ORIGSIZE, 64},
					    {PSAMPLE_ATTR_SAMPLE_GROUP, 5},
					    {PSAMPLE_ATTR_GROUP_SEQ, 7}};
	struct attrs attrs;
	uint8_t data[5];
	uint32_t word;
	uint16_t index;
	size_t n = psample_write(buf, &ps, 5, &p);

	assert_int_equal(nlh->nlmsg_len, n);
	assert_int_equal(nlh->nlmsg_type, 30);
	assert_int_equal(nlh->nlmsg_flags, 0); /* no request: the kernel ignores its copy */
	assert_int_equal(buf[NLMSG_HDRLEN], PSAMPLE_CMD_SAMPLE);
	assert_int_equal(buf[NLMSG_HDRLEN + 1], PSAMPLE_GENL_VERSION);
	assert_int_equal(attrs_index(&attrs, at, n - NLMSG_HDRLEN - GENL_HDRLEN), 0);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(attr_copy(attr_of(&attrs, words[i][0]), &word, 4), 0);
		assert_int_equal(word, words[i][1]);
	}
	assert_int_equal(attr_copy(attr_of(&attrs, PSAMPLE_ATTR_IIFINDEX), &index, 2), 0);
	assert_int_equal(index, 3);
	assert_int_equal(attr_copy(attr_of(&attrs, PSAMPLE_ATTR_OIFINDEX), &index, 2), 0);
	assert_int_equal(index, 4);
	assert_int_equal(attr_copy(attr_of(&attrs, PSAMPLE_ATTR_DATA), data, 5), 0);
	assert_memory_equal(data, frame, sizeof(frame));

	p.input = 0x10000;
	p.output = SFLOW_HOST;
	n = psample_write(buf, &ps, 5, &p);
	assert_int_equal(attrs_index(&attrs, at, n - NLMSG_HDRLEN - GENL_HDRLEN), 0);
	assert_false(attrs_have(&attrs, PSAMPLE_ATTR_IIFINDEX));
	assert_false(attrs_have(&attrs, PSAMPLE_ATTR_OIFINDEX));
	p.header_len = SFLOW_HEADER_MAX;
	assert_true(NLMSG_HDRLEN + GENL_HDRLEN + 6 * 8 + MNL_ATTR_HDRLEN + p.header_len <=
		    sizeof(buf));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbers_of_psample_are_taken_from_the_answer),
		cmocka_unit_test_setup_teardown(
			the_numbers_of_psample_are_asked_for_again_by_the_same_socket, up,
			down),
		cmocka_unit_test_setup_teardown(
			a_sample_that_psample_does_not_take_is_an_error, up, down),
		cmocka_unit_test(a_message_of_psample_has_the_attributes_of_the_kernel),
		cmocka_unit_test_setup_teardown(
			samples_over_the_limit_are_spread_over_the_second, up, down),
		cmocka_unit_test_setup_teardown(dropped_packets_leave_room_for_samples, up,
						down),
		cmocka_unit_test_setup_teardown(
			a_lost_report_counts_for_the_source_of_a_sent_one, up, down),
		cmocka_unit_test_setup_teardown(
			a_datagram_without_a_socket_is_an_error_of_each_collector, up,
			down),
		cmocka_unit_test_setup_teardown(
			samples_without_an_agent_are_counted_as_lost, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
