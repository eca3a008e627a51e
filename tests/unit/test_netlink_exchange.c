/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to the kernel and their complete answers, with the links and routes of this
 * namespace.
 * link: fpm-dataplane/netlink/exchange.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "netlink/exchange.h"

#define N_ENDS 2u /* calls of is_ending() until it returns true */

struct bed {
	struct nl_exchange x;
	uint8_t buffer[65536] __attribute__((aligned(8)));
	uint8_t octets[64] __attribute__((aligned(8)));
	unsigned int n_taken, n_asked;
	bool ends;
	int refuses; /* the result of take(); 0: it accepts */
};

static bool
is_ending(void *ctx)
{
	struct bed *bed = ctx;

	return ++bed->n_asked >= N_ENDS && bed->ends;
}

static int
take(const struct nlmsghdr *nlh, void *ctx)
{
	struct bed *bed = ctx;

	assert_int_equal(nlh->nlmsg_seq, bed->x.seq);
	bed->n_taken++;
	return bed->refuses;
}

static struct nlmsghdr *
request(struct bed *bed, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bed->octets);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	ifi->ifi_index = flags == 0 ? 1 : 0;
	return nlh;
}

static void
bed_up(struct bed *bed)
{
	const struct timeval wait = {.tv_usec = 20000};

	*bed = (struct bed){.x = {.buffer = bed->buffer,
				  .buffer_bytes = sizeof(bed->buffer),
				  .wait_ms = 100,
				  .seq = 41,
				  .is_ending = is_ending,
				  .take = take,
				  .ctx = bed}};
	bed->x.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	assert_true(bed->x.fd >= 0);
	assert_int_equal(
		setsockopt(bed->x.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
}

static void
a_dump_and_a_single_answer_are_taken_to_their_end(void **state)
{
	static struct bed bed;

	bed_up(&bed);
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, NLM_F_DUMP)), 0);
	assert_true(bed.n_taken >= 1); /* lo */
	assert_int_equal(bed.x.seq, 42);
	assert_false(bed.x.changed);
	bed.n_taken = 0;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, 0)), 0);
	assert_int_equal(bed.n_taken, 1);
	close(bed.x.fd);
}

static void
the_error_of_the_kernel_and_that_of_the_caller_end_an_exchange(void **state)
{
	static struct bed bed;

	bed_up(&bed);
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_MAX + 4, 0)), -EOPNOTSUPP);
	assert_int_equal(bed.n_taken, 0);
	bed.refuses = -EBADMSG;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, NLM_F_DUMP)),
			 -EBADMSG);
	assert_int_equal(bed.n_taken, 1);
	close(bed.x.fd);
}

/* take() ends a dump early, so the rest of the dump is still in the socket. */
static void
the_answer_of_an_earlier_request_is_skipped(void **state)
{
	static struct bed bed;

	bed_up(&bed);
	bed.refuses = -EBADMSG;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, NLM_F_DUMP)),
			 -EBADMSG);
	bed.refuses = 0;
	bed.n_taken = 0;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, 0)), 0);
	assert_int_equal(bed.n_taken, 1);
	close(bed.x.fd);
}

static void
a_thread_that_ends_does_not_wait(void **state)
{
	static struct bed bed;

	bed_up(&bed);
	bed.ends = true;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, NLM_F_DUMP)),
			 -ECANCELED);
	assert_int_equal(bed.n_taken, 0);
	bed.n_asked = N_ENDS;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, NLM_F_DUMP)),
			 -ECANCELED);
	close(bed.x.fd);
}

static void
a_missing_answer_and_a_small_buffer_are_errors(void **state)
{
	static struct bed bed;
	struct nlmsghdr *nlh;

	bed_up(&bed);
	nlh = request(&bed, NLMSG_NOOP, 0); /* the kernel does not answer it */
	assert_int_equal(nl_exchange(&bed.x, nlh), -ETIMEDOUT);
	bed.x.buffer_bytes = 64;
	assert_int_equal(nl_exchange(&bed.x, request(&bed, RTM_GETLINK, 0)), -EMSGSIZE);
	close(bed.x.fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dump_and_a_single_answer_are_taken_to_their_end),
		cmocka_unit_test(
			the_error_of_the_kernel_and_that_of_the_caller_end_an_exchange),
		cmocka_unit_test(the_answer_of_an_earlier_request_is_skipped),
		cmocka_unit_test(a_thread_that_ends_does_not_wait),
		cmocka_unit_test(a_missing_answer_and_a_small_buffer_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
