/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that one thread publishes while another thread reads them: blocks of counters,
 * logged packets, the source address of SRv6, programs of hooks. The thread sanitizer
 * reports accesses that are not ordered by a release and an acquire.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/ruleset/logged.c
 * link: fpm-dataplane/warn/seg6.c fpm-dataplane/warn/genl.c fpm-dataplane/warn/list.c
 * link: fpm-dataplane/hook/ fpm-dataplane/fib/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/genetlink.h>
#include <linux/seg6_genl.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/counters.h"
#include "base/tsan.h"
#include "bpf_ins.h"
#include "fib/headend.h"
#include "fib/hook_list.h"
#include "hook/hook.h"
#include "ruleset/logged.h"
#include "ruleset/ruleset.h"
#include "warn/impl.h"

#define BLOCKS  8u
#define PACKETS (4 * LOGGED_SLOTS)
#define SOURCES 20u
#define LOADS   20u
#define FAMILY  0x21 /* number of SEG6 in generic netlink */

/* --- blocks of counters --------------------------------------------------------------- */

/* Read all blocks until there are BLOCKS. Returns the number of names that were wrong. */
static void *
blocks_read(void *arg)
{
	struct counters *const *b;
	uintptr_t wrong = 0;
	unsigned int n;

	do {
		n = counters_blocks(&b);
		for (unsigned int i = 0; i < n; i++) {
			char name[16];

			snprintf(name, sizeof(name), "fwd%u", i);
			wrong += strcmp(b[i]->name, name) != 0;
		}
		sched_yield();
	} while (n < BLOCKS);
	return (void *)wrong;
}

static void
a_reader_of_the_number_of_blocks_sees_the_blocks(void **state)
{
	pthread_t reader;
	void *wrong;

	assert_int_equal(pthread_create(&reader, NULL, blocks_read, NULL), 0);
	for (unsigned int i = 0; i < BLOCKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "fwd%u", i);
		counters_register(name);
		sched_yield();
	}
	pthread_join(reader, &wrong);
	assert_null(wrong);
}

/* --- logged packets ------------------------------------------------------------------- */

static struct logged_ring ring;

/* Put PACKETS packets into the ring; the length of each is its number. */
static void *
packets_put(void *arg)
{
	static const struct ruleset_log log = {.level = 4};
	static const char lan[16] = "lan0", wan[16] = "wan0";
	uint8_t ip[LOGGED_OCTETS] = {0x45};
	struct ruleset_packet p = {
		.iifname = lan, .oifname = wan, .ip = ip, .room = sizeof(ip)};

	while (p.l3_bytes < PACKETS) {
		uint64_t lost = ring.n_lost;

		logged_put(&ring, &log, &p);
		if (ring.n_lost == lost)
			p.l3_bytes++;
		else
			sched_yield();
	}
	return NULL;
}

/* The ring goes around several times, so that each slot is used again. */
static void
a_slot_of_the_ring_of_logged_packets_is_copied_before_it_is_used_again(void **state)
{
	pthread_t producer;
	struct logged l;

	assert_int_equal(pthread_create(&producer, NULL, packets_put, NULL), 0);
	for (unsigned int i = 0; i < PACKETS; i++) {
		while (!logged_take(&ring, &l))
			sched_yield();
		assert_int_equal(l.l3_bytes, i);
		assert_string_equal(l.iifname, "lan0");
		assert_string_equal(l.oifname, "wan0");
	}
	pthread_join(producer, NULL);
	assert_false(logged_take(&ring, &l));
}

/* --- the source address of SRv6 ------------------------------------------------------- */

static struct fib fib;
static uint8_t source[16] = {0x20, 1}; /* the address of the kernel */

/* The functions of thread warn that ask the kernel. The test answers. */

int
ask_open(int protocol)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int
ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	alignas(8) uint8_t buf[64];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	mnl_nlmsg_put_extra_header(nlh, GENL_HDRLEN);
	nlh->nlmsg_type = request->nlmsg_type;
	if ((request->nlmsg_flags & NLM_F_DUMP) != 0)
		return 0; /* there are no keys */
	if (request->nlmsg_type == GENL_ID_CTRL)
		mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, FAMILY);
	else
		mnl_attr_put(nlh, SEG6_ATTR_DST, sizeof(source), source);
	fn(w, nlh, ctx);
	return 0;
}

void
unread_add(struct warn *w, const char *part, int error)
{
	fail();
}

/*
 * Read the address like a forwarder until it ends with SOURCES. Returns the number of
 * addresses with wrong octets.
 */
static void *
sources_read(void *arg)
{
	uintptr_t wrong = 0;
	uint8_t last = 0;

	urcu_qsbr_register_thread();
	while (last < SOURCES) {
		const struct fib_seg6 *s =
			atomic_load_explicit(&fib.seg6, memory_order_consume);

		if (s != NULL) {
			wrong += s->source.octet[15] < last || s->source.octet[0] != 0x20;
			last = s->source.octet[15];
		}
		GRACE_QUIESCENT();
		urcu_qsbr_quiescent_state();
		sched_yield();
	}
	urcu_qsbr_unregister_thread();
	return (void *)wrong;
}

static void
a_reader_of_the_source_of_srv6_sees_whole_addresses(void **state)
{
	struct warn w = {.conf = {.fib = &fib}};
	pthread_t reader;
	void *wrong;

	assert_int_equal(pthread_create(&reader, NULL, sources_read, NULL), 0);
	for (source[15] = 1; source[15] <= SOURCES; source[15]++)
		seg6_scan(&w);
	pthread_join(reader, &wrong);
	assert_null(wrong);
	free(atomic_load(&fib.seg6));
}

/* --- programs of hooks ---------------------------------------------------------------- */

static atomic_bool loaded; /* all LOADS programs were published */

/*
 * Read the program of port1 like a forwarder. Returns the number of programs that were not
 * whole.
 */
static void *
hooks_read(void *arg)
{
	const struct fib *of = arg;
	uintptr_t wrong = 0;

	urcu_qsbr_register_thread();
	while (!atomic_load_explicit(&loaded, memory_order_relaxed)) {
		const struct fib_hooks *list = fib_hooks(of);

		if (list != NULL)
			wrong += list->n != 1 || strcmp(list->hook[0]->dev, "port1") != 0 ||
				 list->hook[0]->n_instruction != 2;
		GRACE_QUIESCENT();
		urcu_qsbr_quiescent_state();
		sched_yield();
	}
	urcu_qsbr_unregister_thread();
	return (void *)wrong;
}

static void
a_reader_of_the_hooks_sees_whole_programs(void **state)
{
	struct hook_want want = {.dev = "port1", .file = "p.o", .of = 2, .n = 2};
	struct fib *of;
	struct hooks *hooks;
	pthread_t reader;
	char why[256];
	void *wrong;

	assert_int_equal(fib_create(&of, &(struct fib_conf){0}), 0);
	of->iface[1] = calloc(1, sizeof(struct fib_iface));
	assert_non_null(of->iface[1]);
	of->iface[1]->ifidx = 1;
	of->iface[1]->ifindex = 1;
	strcpy(of->iface[1]->name, "port1");
	hooks = hooks_new(of);
	assert_non_null(hooks);
	assert_int_equal(pthread_create(&reader, NULL, hooks_read, of), 0);
	for (unsigned int i = 0; i < LOADS; i++) {
		const struct bpf_insn ins[2] = {MOV_K(0, (int)i), EXIT()};

		memcpy(want.part, ins, sizeof(ins));
		assert_int_equal(hooks_load(hooks, &want, why, sizeof(why)), 0);
	}
	atomic_store_explicit(&loaded, true, memory_order_relaxed);
	pthread_join(reader, &wrong);
	assert_null(wrong);
	hooks_free(hooks);
	fib_destroy(of);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_of_the_number_of_blocks_sees_the_blocks),
		cmocka_unit_test(
			a_slot_of_the_ring_of_logged_packets_is_copied_before_it_is_used_again),
		cmocka_unit_test(a_reader_of_the_source_of_srv6_sees_whole_addresses),
		cmocka_unit_test(a_reader_of_the_hooks_sees_whole_programs),
	};

	return cmocka_run_group_tests_name("published", tests, NULL, NULL);
}
