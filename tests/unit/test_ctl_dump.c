/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl audit and fpmctl snmp read dumps of the kernel to their end, and say so if they
 * cannot. The test takes the place of the kernel: each recv() gets the next datagram of
 * `answer`.
 *
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/ctl/kernel_links.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

static ssize_t fake_recv(int fd, void *buf, size_t size, int flags);
static ssize_t fake_send(int fd, const void *buf, size_t size, int flags);

#define recv fake_recv
#define send fake_send
#include "ctl/kernel_dump.c"
#include "ctl/kernel_links.h"
#undef recv
#undef send

#define SEQ 7

/* A result of recv(): `n` octets, or the error `n` if it is negative. */
static struct datagram {
	ssize_t n;
	uint8_t octets[4096];
} answer[64];
static unsigned int n_answers, n_received, n_requests;
static uint32_t last_seq;
static uint16_t last_type;

static unsigned int n_begun, n_objects;
static uint16_t refused_type; /* on_message() refuses it */

static ssize_t
fake_recv(int fd, void *buf, size_t size, int flags)
{
	struct datagram *d = &answer[n_received];

	assert_true(n_received++ < n_answers);
	assert_true(size >= BUFFER_BYTES);
	assert_true((flags & MSG_TRUNC) != 0);
	if (d->n < 0) {
		errno = (int)-d->n;
		return -1;
	}
	memcpy(buf, d->octets,
	       (size_t)d->n < sizeof(d->octets) ? (size_t)d->n : sizeof(d->octets));
	return d->n;
}

static ssize_t
fake_send(int fd, const void *buf, size_t size, int flags)
{
	const struct nlmsghdr *h = buf;

	n_requests++;
	last_seq = h->nlmsg_seq;
	last_type = h->nlmsg_type;
	assert_int_equal(size, h->nlmsg_len);
	return (ssize_t)size;
}

static void
count_begin(void *ctx)
{
	n_begun++;
	n_objects = 0;
}

static int
count_object(const struct nlmsghdr *h, void *ctx)
{
	n_objects++;
	return h->nlmsg_type == refused_type ? -EBADMSG : 0;
}

static const struct dump_reader counter = {.on_begin = count_begin,
					   .on_message = count_object};

static int
setup(void **state)
{
	n_answers = n_received = n_requests = n_begun = n_objects = refused_type = 0;
	memset(answer, 0, sizeof(answer));
	return 0;
}

/* Append a message to the last datagram. */
static struct nlmsghdr *
message(uint16_t type, uint16_t flags, uint32_t seq, size_t payload)
{
	struct datagram *d = &answer[n_answers - 1];
	struct nlmsghdr *h = (struct nlmsghdr *)(d->octets + d->n);

	h->nlmsg_len = (uint32_t)NLMSG_LENGTH(payload);
	h->nlmsg_type = type;
	h->nlmsg_flags = flags | NLM_F_MULTI;
	h->nlmsg_seq = seq;
	d->n += (ssize_t)NLMSG_SPACE(payload);
	return h;
}

/* Begin a new datagram. */
static void
datagram(void)
{
	n_answers++;
}

static void
done(uint32_t seq, uint16_t flags, int error)
{
	datagram();
	memcpy(NLMSG_DATA(message(NLMSG_DONE, flags, seq, sizeof(error))), &error,
	       sizeof(error));
}

static int
result(void)
{
	return kernel_dump_read(0, SEQ, &counter);
}

static void
a_whole_answer_is_read_to_its_end(void **state)
{
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 12);
	message(RTM_NEWROUTE, 0, SEQ, 13);
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 0);
	done(SEQ, 0, 0);
	assert_int_equal(result(), 0);
	assert_int_equal(n_objects, 3);
	assert_int_equal(n_begun, 1);
	assert_int_equal(n_received, 3);
}

static void
objects_after_the_end_are_not_read(void **state)
{
	done(SEQ, 0, 0);
	message(RTM_NEWROUTE, 0, SEQ, 12);
	assert_int_equal(result(), 0);
	assert_int_equal(n_objects, 0);
}

static void
messages_of_other_requests_are_skipped(void **state)
{
	datagram();
	message(RTM_NEWROUTE, NLM_F_DUMP_INTR, SEQ - 1, 12);
	message(RTM_NEWROUTE, 0, SEQ, 12);
	done(SEQ - 1, 0, -EPERM);
	done(SEQ, 0, 0);
	assert_int_equal(result(), 0);
	assert_int_equal(n_objects, 1);
}

static void
without_a_reader_objects_are_ignored(void **state)
{
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 12);
	done(SEQ, 0, 0);
	assert_int_equal(kernel_dump_read(0, SEQ, &(struct dump_reader){0}), 0);
	assert_int_equal(n_received, 2);
}

static void
the_kernels_error_is_returned(void **state)
{
	int error = -EOPNOTSUPP;

	done(SEQ, 0, -EMSGSIZE);
	assert_int_equal(result(), -EMSGSIZE);
	datagram();
	memcpy(NLMSG_DATA(message(NLMSG_ERROR, 0, SEQ, sizeof(struct nlmsgerr))), &error,
	       sizeof(error));
	assert_int_equal(result(), -EOPNOTSUPP);
	datagram();
	answer[n_answers - 1].n = -ENOBUFS;
	assert_int_equal(result(), -ENOBUFS);
	datagram();
	message(NLMSG_OVERRUN, 0, SEQ, 4);
	assert_int_equal(result(), -ENOBUFS);
}

static void
an_answer_without_an_end_is_an_error(void **state)
{
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 12);
	datagram();
	assert_int_equal(result(), -ENODATA);
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 12);
	datagram();
	answer[n_answers - 1].n = -EAGAIN;
	assert_int_equal(result(), -ETIMEDOUT);
}

static void
a_message_that_does_not_fit_is_an_error(void **state)
{
	datagram();
	answer[0].n = BUFFER_BYTES + 1;
	assert_int_equal(result(), -EMSGSIZE);
}

static void
a_malformed_message_is_an_error(void **state)
{
	struct nlmsghdr *h;

	datagram();
	h = message(RTM_NEWROUTE, 0, SEQ, 12);
	h->nlmsg_len = sizeof(*h) - 1;
	assert_int_equal(result(), -EBADMSG);
	datagram();
	h = message(RTM_NEWROUTE, 0, SEQ, 12);
	h->nlmsg_len++;
	assert_int_equal(result(), -EBADMSG);
	datagram();
	message(RTM_NEWROUTE, 0, SEQ, 12);
	answer[n_answers - 1].n += 15; /* less than a header remains */
	assert_int_equal(result(), -EBADMSG);
	datagram();
	message(NLMSG_ERROR, 0, SEQ, 2);
	assert_int_equal(result(), -EBADMSG);
	done(SEQ, 0, 5);
	assert_int_equal(result(), -EBADMSG);
	datagram();
	refused_type = RTM_NEWROUTE;
	message(RTM_NEWROUTE, 0, SEQ, 12);
	assert_int_equal(result(), -EBADMSG);
}

static void
a_signal_does_not_end_an_answer(void **state)
{
	datagram();
	answer[0].n = -EINTR;
	done(SEQ, 0, 0);
	assert_int_equal(result(), 0);
}

/* Answer the request that makes the kernel's messages large. */
static void
acknowledge(void)
{
	datagram();
	message(NLMSG_ERROR, 0, 1, sizeof(struct nlmsgerr));
}

/* Answer with one route of a table that the kernel changed during the dump. */
static void
answer_interrupted(uint32_t seq)
{
	datagram();
	message(RTM_NEWROUTE, NLM_F_DUMP_INTR, seq, 12);
	done(seq, 0, 0);
}

static int
dump(void)
{
	return kernel_dump(RTM_GETROUTE, AF_INET, sizeof(struct rtmsg), &counter);
}

static void
an_interrupted_answer_is_requested_again(void **state)
{
	acknowledge();
	answer_interrupted(2);
	answer_interrupted(3);
	datagram();
	message(RTM_NEWROUTE, 0, 4, 12);
	done(4, NLM_F_DUMP_INTR, 0);
	datagram();
	message(RTM_NEWROUTE, 0, 5, 12);
	message(RTM_NEWROUTE, 0, 5, 12);
	done(5, 0, 0);
	assert_int_equal(dump(), 0);
	assert_int_equal(n_begun, 4);
	assert_int_equal(n_objects, 2);
	assert_int_equal(n_requests, 5);
	assert_int_equal(last_type, RTM_GETROUTE);
	assert_int_equal(last_seq, 5);
}

static void
a_dump_that_is_always_interrupted_is_an_error(void **state)
{
	acknowledge();
	for (uint32_t i = 0; i < TRIES_MAX; i++)
		answer_interrupted(2 + i);
	assert_int_equal(dump(), -EINTR);
	assert_int_equal(n_requests, 1 + TRIES_MAX);
	assert_int_equal(n_received, n_answers);
}

static void
another_error_is_not_requested_again(void **state)
{
	acknowledge();
	done(2, NLM_F_DUMP_INTR, -ENOMEM);
	assert_int_equal(dump(), -ENOMEM);
	assert_int_equal(n_requests, 2);
}

/* Append a message about the interface with this index to the last datagram. */
static void
interface(uint32_t seq, uint16_t flags, int ifindex)
{
	struct ifinfomsg info = {.ifi_index = ifindex};

	memcpy(NLMSG_DATA(message(RTM_NEWLINK, flags, seq, sizeof(info))), &info,
	       sizeof(info));
}

/*
 * An interface is deleted between two datagrams of an answer. The rest of the answer comes
 * before the next answer.
 */
static void
interfaces_that_change_are_read_again(void **state)
{
	struct kernel_link *link;

	acknowledge();
	datagram();
	interface(2, 0, 7);
	interface(2, 0, 1);
	datagram();
	interface(2, NLM_F_DUMP_INTR, 9);
	done(2, NLM_F_DUMP_INTR, 0);
	datagram();
	interface(3, 0, 9);
	interface(3, 0, 1);
	done(3, 0, 0);
	assert_int_equal(kernel_links(&link), 2);
	assert_int_equal(link[0].ifindex, 1);
	assert_int_equal(link[1].ifindex, 9);
	assert_int_equal(n_received, n_answers);
	free(link);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_whole_answer_is_read_to_its_end, setup),
		cmocka_unit_test_setup(objects_after_the_end_are_not_read, setup),
		cmocka_unit_test_setup(messages_of_other_requests_are_skipped, setup),
		cmocka_unit_test_setup(without_a_reader_objects_are_ignored, setup),
		cmocka_unit_test_setup(the_kernels_error_is_returned, setup),
		cmocka_unit_test_setup(an_answer_without_an_end_is_an_error, setup),
		cmocka_unit_test_setup(a_message_that_does_not_fit_is_an_error, setup),
		cmocka_unit_test_setup(a_malformed_message_is_an_error, setup),
		cmocka_unit_test_setup(a_signal_does_not_end_an_answer, setup),
		cmocka_unit_test_setup(an_interrupted_answer_is_requested_again, setup),
		cmocka_unit_test_setup(a_dump_that_is_always_interrupted_is_an_error,
				       setup),
		cmocka_unit_test_setup(another_error_is_not_requested_again, setup),
		cmocka_unit_test_setup(interfaces_that_change_are_read_again, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
