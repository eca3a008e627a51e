/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sFlow version 5, octet by octet: datagrams, samples of packets, dropped packets,
 * counters; and the reason of sFlow for each drop.
 *
 * link: fpm-dataplane/sflow/encode.c fpm-dataplane/sflow/reason.c fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/inet.h"
#include "base/sflow_conf.h"
#include "sflow/impl.h"

static const struct ipaddr agent4 = {{192, 0, 2, 1}};
static const struct ipaddr agent6 = {{0x20, 1, 0xd, 0xb8, [15] = 1}};
static const uint8_t header[6] = {1, 2, 3, 4, 5, 6};

#define HEAD4 28u /* octets of a datagram before its samples */
#define HEAD6 40u

static void
words_are(const struct datagram *d, unsigned int at, const uint32_t *word, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (get_be32(d->octets + at + 4 * i) != word[i])
			fail_msg("word %u at octet %u is %#x, not %#x", i, at + 4 * i,
				 get_be32(d->octets + at + 4 * i), word[i]);
	assert_int_equal(d->len, at + 4 * n);
}
#define WORDS_ARE(d, at, ...)                                              \
	do {                                                               \
		const uint32_t word_[] = {__VA_ARGS__};                    \
		words_are(d, at, word_, sizeof(word_) / sizeof(word_[0])); \
	} while (0)

static struct datagram
begun(void)
{
	struct datagram d;

	memset(&d, 0xaa, sizeof(d));
	datagram_begin(&d, &agent4, 4);
	return d;
}

static struct sflow_packet
packet(void)
{
	return (struct sflow_packet){.sequence = 7,
				     .source = 3,
				     .rate = 1000,
				     .pool = 7000,
				     .drops = 2,
				     .input = 3,
				     .output = 4,
				     .header = header,
				     .header_len = sizeof(header),
				     .frame_len = 64};
}

static void
a_datagram_has_its_agent_sequence_and_uptime(void **state)
{
	struct datagram d = begun();

	datagram_end(&d, 9, 1500);
	WORDS_ARE(&d, 0, 5, 1, 0xc0000201, 0, 9, 1500, 0);
	datagram_begin(&d, &agent6, 6);
	datagram_end(&d, 10, 1501);
	WORDS_ARE(&d, 0, 5, 2, 0x20010db8, 0, 0, 1, 0, 10, 1501, 0);
	assert_int_equal(d.len, HEAD6);
}

static void
a_sample_has_the_frame_and_the_record_of_routers(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.router_family = 4;
	p.next_hop = (struct ipaddr){{198, 51, 100, 1}};
	p.src_mask = 24;
	p.dst_mask = 8;
	assert_true(datagram_add_flow(&d, &p));
	assert_int_equal(d.n, 1);
	WORDS_ARE(&d, HEAD4, 1, 32 + 32 + 24, 7, 3, 1000, 7000, 2, 3, 4, 2, /* sample */
		  1, 24, 1, 64, 4, 6, 0x01020304, 0x05060000,               /* frame */
		  1002, 16, 1, 0xc6336401, 24, 8);
}

static void
a_next_hop_may_have_another_family(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.router_family = 4;
	p.next_hop_family = 6;
	p.next_hop = agent6;
	assert_true(datagram_add_flow(&d, &p));
	WORDS_ARE(&d, HEAD4 + 8 + 32 + 32, 1002, 28, 2, 0x20010db8, 0, 0, 1, 0, 0);
}

static void
a_tagged_packet_has_the_record_of_switches(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.tagged = true;
	p.in = (struct sflow_vlan){10, 3};
	p.out = (struct sflow_vlan){20, 5};
	p.output = SFLOW_HOST;
	assert_true(datagram_add_flow(&d, &p));
	WORDS_ARE(&d, HEAD4, 1, 32 + 32 + 24, 7, 3, 1000, 7000, 2, 3, 0x3fffffff, 2, 1, 24,
		  1, 64, 4, 6, 0x01020304, 0x05060000, 1001, 16, 10, 3, 20, 5);
}

static void
large_interface_numbers_take_the_expanded_form(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.source = p.input = 0x1000000;
	p.dropped = true;
	p.reason = 257;
	assert_true(datagram_add_flow(&d, &p));
	WORDS_ARE(&d, HEAD4, 3, 44 + 32, 7, 0, 0x1000000, 1000, 7000, 2, 0, 0x1000000, 1,
		  257, 1, 1, 24, 1, 64, 4, 6, 0x01020304, 0x05060000);
}

/* In the short form an ifIndex from 0x40000000 on would read as a reason. */
static void
a_large_output_takes_the_expanded_form(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.output = 0x40000101;
	assert_true(datagram_add_flow(&d, &p));
	WORDS_ARE(&d, HEAD4, 3, 44 + 32, 7, 0, 3, 1000, 7000, 2, 0, 3, 0, 0x40000101, 1, 1,
		  24, 1, 64, 4, 6, 0x01020304, 0x05060000);
}

static void
a_sample_of_a_dropped_packet_has_the_reason_as_output(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.output = 0x40000000;
	p.dropped = true;
	p.reason = 257;
	assert_true(datagram_add_flow(&d, &p));
	WORDS_ARE(&d, HEAD4, 1, 32 + 32, 7, 3, 1000, 7000, 2, 3, 0x40000101, 1, 1, 24, 1,
		  64, 4, 6, 0x01020304, 0x05060000);
}

static void
a_dropped_packet_has_its_reason(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();

	p.output = 0;
	p.reason = sflow_reason(DROP_ttl);
	assert_true(datagram_add_discard(&d, &p));
	WORDS_ARE(&d, HEAD4, 5, 32 + 32, 7, 0, 3, 2, 3, 0, 257, 1, 1, 24, 1, 64, 4, 6,
		  0x01020304, 0x05060000);
}

static void
counters_have_all_fields_of_the_interface(void **state)
{
	struct datagram d = begun();
	struct sflow_counters c = {.sequence = 5,
				   .ifindex = 3,
				   .speed = 25000000000,
				   .direction = 1,
				   .admin_up = true,
				   .oper_up = true,
				   .promiscuous = true,
				   .in_octets = 0x100000002,
				   .in_packets = 11,
				   .in_discards = 12,
				   .in_errors = 13,
				   .out_octets = 0x300000004,
				   .out_packets = 21,
				   .out_discards = 22,
				   .out_errors = 23};

	assert_true(datagram_add_counters(&d, &c));
	WORDS_ARE(&d, HEAD4, 2, 12 + 8 + 88, 5, 3, 1, 1, 88, 3, 6, 5, 0xd21dba00, 1, 3, 1,
		  2, 11, UINT32_MAX, UINT32_MAX, 12, 13, UINT32_MAX, 3, 4, 21, UINT32_MAX,
		  UINT32_MAX, 22, 23, 1);
	d = begun();
	c.ifindex = 0x1000000;
	assert_true(datagram_add_counters(&d, &c));
	assert_int_equal(get_be32(d.octets + HEAD4), 4);
	assert_int_equal(get_be32(d.octets + HEAD4 + 4), 16 + 8 + 88);
}

static void
a_full_datagram_takes_no_part_of_a_sample(void **state)
{
	struct datagram d = begun();
	struct sflow_packet p = packet();
	uint8_t longest[SFLOW_HEADER_MAX] = {0};
	unsigned int len;

	p.header = longest;
	p.header_len = sizeof(longest);
	p.tagged = true;
	p.router_family = p.next_hop_family = 6;
	for (len = d.len; datagram_add_flow(&d, &p); len = d.len)
		;
	assert_int_equal(d.n, 2);
	assert_int_equal(d.len, len);
	assert_true(d.len <= SFLOW_DATAGRAM_MAX);
	datagram_end(&d, 1, 1);
	assert_int_equal(get_be32(d.octets + HEAD4 - 4), 2);
	/* A smaller sample may have room. */
	p = packet();
	assert_true(datagram_add_flow(&d, &p));
}

/* sflow_drops.txt has the values 0 to 15 (codes of ICMP) and 256 to 305. */
static void
each_drop_has_a_reason_of_sflow(void **state)
{
	unsigned int unknown = 0;

	for (unsigned int r = 0; r < N_DROP; r++) {
		uint32_t value = sflow_reason((enum reason)r);

		assert_true(value <= 15 || (value >= 256 && value <= 305));
		unknown += value == 256;
		if (value == 256)
			print_error("%s is unknown\n", reason_info[r].name);
	}
	assert_int_equal(unknown, 0);
	assert_int_equal(sflow_reason(DROP_no_route), 0);
	assert_int_equal(sflow_reason(DROP_filter), 258);
	assert_int_equal(sflow_reason(PUNT_local), 256);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_has_its_agent_sequence_and_uptime),
		cmocka_unit_test(a_sample_has_the_frame_and_the_record_of_routers),
		cmocka_unit_test(a_next_hop_may_have_another_family),
		cmocka_unit_test(a_tagged_packet_has_the_record_of_switches),
		cmocka_unit_test(large_interface_numbers_take_the_expanded_form),
		cmocka_unit_test(a_large_output_takes_the_expanded_form),
		cmocka_unit_test(a_sample_of_a_dropped_packet_has_the_reason_as_output),
		cmocka_unit_test(a_dropped_packet_has_its_reason),
		cmocka_unit_test(counters_have_all_fields_of_the_interface),
		cmocka_unit_test(a_full_datagram_takes_no_part_of_a_sample),
		cmocka_unit_test(each_drop_has_a_reason_of_sflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
