/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ICMP error that `trace` and `explain` show for a packet that is dropped: its source,
 * or the reason why the punt thread sends none.
 *
 * link: fpm-dataplane/trace/row.c fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "fib/label.h"
#include "trace/internal.h"

#define LAN   1
#define LABEL 100u

static const uint8_t own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
static const uint8_t host6[16] = {0x20, 1, 0xd, 0xb8, [15] = 9};

static struct fib *fib;
static struct fib_iface lan;
static struct trace trace;
static struct watch_record rec;
static json_t *row;

static int
up(void **state)
{
	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	lan = (struct fib_iface){.ifidx = LAN, .up = true};
	memcpy(lan.src6.octet, own6, 16);
	atomic_store(&fib->iface[LAN], &lan);
	trace.conf.fib = fib;
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, LAN));
	assert_int_equal(poptrie_add(fib->copy[0].pt6, host6, 64, 10), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt6), 0);
	fib->label[LABEL] = 11;
	fib->group[11] = group_word_single(PATH(PATH_VRF, 0));
	return 0;
}

static int
down(void **state)
{
	json_decref(row);
	row = NULL;
	atomic_store(&fib->iface[LAN], NULL);
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

/*
 * Make the row of an IPv6 packet from host6, behind a label if `label`, to a group or to a
 * host. The forwarder punted it for an ICMP error.
 */
static void
row_of(bool label, bool to_group, enum reason verdict, enum reason cause)
{
	uint8_t *ip = rec.frame + 14;

	memset(&rec, 0, sizeof(rec));
	put_be16(rec.frame + 12, label ? MPLS_TYPE : 0x86dd);
	if (label) {
		put_be32(ip, LABEL << 12 | 0x100 | 64);
		ip += LABEL_BYTES;
	}
	put_be32(ip, 6u << 28);
	put_be16(ip + 4, 1000);
	ip[6] = 17;
	ip[7] = 64;
	memcpy(ip + 8, host6, 16);
	memcpy(ip + 24, host6, 16);
	ip[24] = to_group ? 0xff : 0x20;
	rec.snap_bytes = (uint16_t)(ip + 60 - rec.frame);
	rec.frame_bytes = (uint32_t)(ip + 1040 - rec.frame);
	rec.l3_bytes = 1040;
	rec.in_ifidx = LAN;
	rec.family = 6;
	rec.icmp = true;
	rec.verdict = (uint8_t)verdict;
	rec.cause = (uint8_t)cause;
	json_decref(row);
	row = row_make(&trace, &rec);
	assert_non_null(row);
	assert_string_equal(json_string_value(json_object_get(row, "verdict")), "dropped");
	assert_string_equal(json_string_value(json_object_get(row, "reason")),
			    reason_info[cause].name);
	assert_true(json_is_true(json_object_get(row, "icmp")));
}

static void
sends(void)
{
	assert_string_equal(json_string_value(json_object_get(row, "icmp_src")),
			    "2001:db8::1");
	assert_null(json_object_get(row, "icmp_refused"));
}

static void
refuses(const char *why)
{
	assert_string_equal(json_string_value(json_object_get(row, "icmp_refused")), why);
	assert_null(json_object_get(row, "icmp_src"));
}

static void
the_source_of_an_error_is_shown(void **state)
{
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	sends();
	row_of(true, false, PUNT_ttl_expired, DROP_ttl);
	sends();
	row_of(false, false, PUNT_too_big, DROP_mtu);
	sends();
	/* Labels that lead on lead the error, too: it needs no route back. */
	fib->encap[1] = (struct fib_encap){.next = PATH(PATH_ADJ, 1), .n = 1};
	fib->group[11] = group_word_single(PATH(PATH_ENCAP, 1));
	fib->group[10] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	row_of(true, false, PUNT_ttl_expired, DROP_ttl);
	sends();
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, LAN));
	/* No address, and no route back. */
	memset(&lan.src6, 0, sizeof(lan.src6));
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	refuses("the interface has no address from which to send it");
	fib->group[10] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	refuses("no route leads back to its source");
}

/*
 * Packets to groups come to the stages behind labels only. RFC 4443, 2.4 (e.3): packet too big is
 * sent about them, because multicast needs path MTU discovery, too; other errors are not.
 */
static void
only_packet_too_big_is_sent_about_groups(void **state)
{
	row_of(true, true, PUNT_too_big, DROP_mtu);
	sends();
	row_of(true, true, PUNT_ttl_expired, DROP_ttl);
	refuses("it was sent to more than one host (RFC 4443, 2.4 (e))");
}

static void
a_frame_that_is_too_short_has_neither(void **state)
{
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	json_decref(row);
	rec.snap_bytes = 14 + 39;
	row = row_make(&trace, &rec);
	assert_null(json_object_get(row, "icmp_src"));
	assert_null(json_object_get(row, "icmp_refused"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
	static const struct CMUnitTest tests[] = {
		TEST(the_source_of_an_error_is_shown),
		TEST(only_packet_too_big_is_sent_about_groups),
		TEST(a_frame_that_is_too_short_has_neither),
	};

	return cmocka_run_group_tests_name("trace_row", tests, NULL, NULL);
}
