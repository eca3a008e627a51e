/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops of SRv6, from two recorded streams of zebra 8.4.4 (sharpd installed the
 * routes), and from built messages with the attributes of later versions of zebra.
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c
 * link: fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/srv6_words.h"
#include "fib/headend.h"
#include "test_fpm_events.h"

static const char encap_hex[] =
	"0101006c680000006800010500000000dde598ce0a000b0000000000080001001a0000001400"
	"060020010db80001000000000000000000020800050002000000060007000500310024000880"
	"20000100010000000002040000000000fc000000000100000000000000000001010100383400"
	"00001800010500000000dde598ce02200000fec200010000000008000100c612000008000600"
	"1400000008001e001a00000001010038340000001800010500000000dde598ce02200000fec2"
	"00010000000008000100c6120001080006001400000008001e001a000000";

static const char local_hex[] =
	"010100403c0000006800010500000000dde598ce0a000b000000000008000100200000000800"
	"0500020000000600070007001e000c0008800800010001000000010100444000000018000104"
	"00000000dde598ce0a800000fec200010000000014000100fc00000000090000000000000000"
	"0001080006001400000008001e002000000001010054500000006800010500000000dde598ce"
	"0a000b0000000000080001002100000008000500020000000600070007000001200008800800"
	"0100020000001400050020010db8000100000000000000000002010100444000000018000104"
	"00000000dde598ce0a800000fec200010000000014000100fc00000000090000000000000000"
	"0002080006001400000008001e002100000001010048440000006800010500000000dde598ce"
	"0a000b0000000000080001002200000008000500020000000600070007000002140008800800"
	"010008000000080009006400000001010044400000001800010400000000dde598ce0a800000"
	"fec200010000000014000100fc00000000090000000000000000000308000600140000000800"
	"1e002200000001010048440000006800010500000000dde598ce0a000b000000000008000100"
	"2300000008000500020000000600070007000003140008800800010006000000080004000a00"
	"010201010044400000001800010400000000dde598ce0a800000fec200010000000014000100"
	"fc000000000900000000000000000004080006001400000008001e0023000000010100484400"
	"00006800010500000000dde598ce0a000b000000000008000100240000000800050002000000"
	"0600070007000004140008800800010007000000080003006400000001010044400000001800"
	"010400000000dde598ce0a800000fec200010000000014000100fc0000000009000000000000"
	"00000005080006001400000008001e0024000000";

#define HOPS_MAX 16

static struct fpm_hop hop[HOPS_MAX];
static unsigned int n_hops;

static int
keep_hop(void *arg, const struct fpm_event *ev)
{
	event_is_sound(ev);
	if (ev->kind == FPM_NEXTHOP && n_hops < HOPS_MAX)
		hop[n_hops++] = ev->hops[0];
	free(ev->hops);
	return 0;
}

/*
 * Decode a stream, and keep the next hops of its objects. Return the number of malformed
 * messages.
 */
static uint64_t
decode(const uint8_t *octet, size_t len)
{
	struct fpm_decoded decoded = {0};
	struct fpm_frame f;
	int used;

	n_hops = 0;
	memset(hop, 0, sizeof(hop));
	for (; len > 0; octet += used, len -= (size_t)used) {
		used = fpm_frame_next(octet, len, &f);
		assert_true(used > 0);
		assert_int_equal(fpm_decode(&f, keep_hop, NULL, &decoded), 0);
	}
	return decoded.malformed;
}

static void
decode_hex(const char *hex)
{
	static uint8_t octet[1024];
	unsigned int value;
	size_t n = strlen(hex) / 2;

	assert_true(n <= sizeof(octet));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
		octet[i] = (uint8_t)value;
	}
	assert_int_equal(decode(octet, n), 0);
}

static const char *
sid_text(const struct fpm_hop *h)
{
	static char text[120];
	char a[PREFIX_STRLEN] = "-";
	struct srv6_sid sid;

	assert_int_equal(h->encap, HOP_SEG6);
	assert_true(srv6_sid_unpack(h->label, h->n_labels, &sid));
	if (sid.family != 0)
		ipaddr_str(&sid.hop, sid.family, a);
	snprintf(text, sizeof(text), "%u flavors %u bits %u/%u table %u hop %s", sid.action,
		 sid.flavors, sid.block_bits, sid.node_bits, sid.table, a);
	return text;
}

static void
end_points_of_zebra_have_their_action(void **state)
{
	decode_hex(local_hex);
	assert_int_equal(n_hops, 5);
	assert_string_equal(sid_text(&hop[0]), "1 flavors 0 bits 0/0 table 0 hop -");
	assert_string_equal(sid_text(&hop[1]),
			    "2 flavors 0 bits 0/0 table 0 hop 2001:db8:1::2");
	assert_string_equal(sid_text(&hop[2]), "8 flavors 0 bits 0/0 table 100 hop -");
	assert_string_equal(sid_text(&hop[3]), "6 flavors 0 bits 0/0 table 0 hop 10.0.1.2");
	/*
	 * For End.DT6 zebra sends SEG6_LOCAL_TABLE. The decoder sets the flavor
	 * SRV6_TABLE_ALONE (32).
	 */
	assert_string_equal(sid_text(&hop[4]), "7 flavors 32 bits 0/0 table 100 hop -");
}

static void
a_headend_of_zebra_has_its_segments(void **state)
{
	const uint32_t *source;
	enum srv6_mode mode;

	decode_hex(encap_hex);
	assert_int_equal(n_hops, 1);
	assert_int_equal(hop[0].encap, HOP_SEG6);
	assert_int_equal(srv6_headend_unpack(hop[0].label, hop[0].n_labels, &mode, &source),
			 1);
	assert_int_equal(mode, SRV6_ENCAP);
	assert_null(source);
	assert_int_equal(hop[0].label[1], 0xfc000000);
	assert_int_equal(hop[0].label[2], 0x00010000);
	assert_int_equal(hop[0].label[3], 0);
	assert_int_equal(hop[0].label[4], 1);
}

/* RFC 8986, 5.1: forwarders write this outer header for the headend. */
static void
a_headend_of_zebra_has_its_outer_header(void **state)
{
	static const uint8_t want[64] = {0x60,        [6] = 43, [7] = 64, [24] = 0xfc,
					 [29] = 1,    [39] = 1, /* to fc00:0:1::1 */
					 [41] = 2,    [42] = 4, /* one segment */
					 [48] = 0xfc, [53] = 1, [63] = 1};
	struct fib_headend h;

	decode_hex(encap_hex);
	assert_true(fib_headend_write(&h, hop[0].label, hop[0].n_labels));
	assert_int_equal(h.bytes, sizeof(want));
	assert_memory_equal(h.head, want, sizeof(want));
	assert_int_equal(h.next_at, 40);
	assert_false(h.has_source);
	assert_false(fib_headend_write(&h, hop[0].label, hop[0].n_labels - 1u));
}

/* --- built next hops ------------------------------------------------------------------ */

#define NESTED 0x8000u

static struct wire wire;
static size_t nested_at;

static void
hop_begin(uint16_t type)
{
	struct nhmsg nhm = {.nh_family = AF_INET6};

	memset(&wire, 0, sizeof(wire));
	frame_begin(&wire);
	msg_begin(&wire, RTM_NEWNEXTHOP);
	wire_put(&wire, &nhm, sizeof(nhm));
	attr_u32(&wire, NHA_ID, 7);
	attr_u32(&wire, NHA_OIF, 2);
	attr_u16(&wire, NHA_ENCAP_TYPE, type);
	nested_at = wire.len;
	attr(&wire, NHA_ENCAP | NESTED, "", 0);
}

/* End the message and decode it. Return the number of malformed messages. */
static uint64_t
hop_end(void)
{
	uint16_t len = (uint16_t)(wire.len - nested_at);

	memcpy(wire.octet + nested_at, &len, sizeof(len));
	msg_end(&wire);
	frame_end(&wire);
	return decode(wire.octet, wire.len);
}

static void
put_flavors(uint32_t operations, uint8_t block, uint8_t node)
{
	size_t at = wire.len;
	uint16_t len;

	attr(&wire, 11 | NESTED, "", 0);
	attr_u32(&wire, 1, operations);
	if (block != 0)
		attr(&wire, 2, &block, 1);
	if (node != 0)
		attr(&wire, 3, &node, 1);
	len = (uint16_t)(wire.len - at);
	memcpy(wire.octet + at, &len, sizeof(len));
}

static void
flavors_and_lengths_are_read(void **state)
{
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END);
	put_flavors(SRV6_PSP | SRV6_USD, 0, 0);
	assert_int_equal(hop_end(), 0);
	assert_string_equal(sid_text(&hop[0]), "1 flavors 10 bits 0/0 table 0 hop -");

	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END);
	put_flavors(SRV6_NEXT_CSID, 0, 0);
	assert_int_equal(hop_end(), 0);
	assert_string_equal(sid_text(&hop[0]), "1 flavors 16 bits 32/16 table 0 hop -");

	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END);
	put_flavors(SRV6_NEXT_CSID, 48, 24);
	assert_int_equal(hop_end(), 0);
	assert_string_equal(sid_text(&hop[0]), "1 flavors 16 bits 48/24 table 0 hop -");

	/*
	 * bgpd sets NEXT-C-SID also for End.DT46. It has no effect there, because nothing
	 * is shifted.
	 */
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_DT46);
	attr_u32(&wire, 9, 1001);
	put_flavors(SRV6_NEXT_CSID, 0, 0);
	assert_int_equal(hop_end(), 0);
	assert_string_equal(sid_text(&hop[0]), "16 flavors 0 bits 0/0 table 1001 hop -");
}

static void
end_dt6_with_vrftable_is_no_table_alone(void **state)
{
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_DT6);
	attr_u32(&wire, 9, 1001);
	assert_int_equal(hop_end(), 0);
	assert_string_equal(sid_text(&hop[0]), "7 flavors 0 bits 0/0 table 1001 hop -");
}

/*
 * Linux reads an interface for End.X only, since version 6.17. zebra sends the interface
 * since version 10.6; it may be 0.
 */
static void
end_x_has_an_interface(void **state)
{
	static const uint8_t peer[16] = {0xfe, 0x80, [15] = 9};
	struct srv6_sid sid;

	for (uint32_t oif = 0; oif < 14; oif += 13) {
		hop_begin(7);
		attr_u32(&wire, 1, SRV6_END_X);
		attr(&wire, 5, peer, sizeof(peer));
		attr_u32(&wire, 7, oif);
		assert_int_equal(hop_end(), 0);
		assert_string_equal(sid_text(&hop[0]),
				    "2 flavors 0 bits 0/0 table 0 hop fe80::9");
		assert_true(srv6_sid_unpack(hop[0].label, hop[0].n_labels, &sid));
		assert_int_equal(sid.oif, oif);
	}
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_DX6);
	attr(&wire, 5, peer, sizeof(peer));
	attr_u32(&wire, 7, 13);
	assert_int_equal(hop_end(), 0);
	assert_true(srv6_sid_unpack(hop[0].label, hop[0].n_labels, &sid));
	assert_int_equal(sid.oif, 0);
	hop_begin(7); /* an interface of two octets */
	attr_u32(&wire, 1, SRV6_END_X);
	attr(&wire, 5, peer, sizeof(peer));
	attr_u16(&wire, 7, 13);
	assert_int_equal(hop_end(), 1);
}

static void
refused(enum srv6_refusal refusal)
{
	assert_int_equal(hop_end(), 0);
	assert_int_equal(n_hops, 1);
	assert_int_equal(hop[0].encap, HOP_SEG6);
	assert_int_equal(hop[0].n_labels, 0);
	assert_int_equal(hop[0].refusal, refusal);
}

static void
put_segments(uint32_t mode, unsigned int n)
{
	uint8_t srh[4 + 8 + 16 * 8] = {0};

	memcpy(srh, &mode, 4);
	srh[5] = (uint8_t)(2 * n);
	srh[6] = 4;
	srh[7] = srh[8] = (uint8_t)(n - 1);
	for (unsigned int i = 0; i < n; i++)
		srh[12 + 16 * i] = (uint8_t)(0xf0 + i);
	attr(&wire, 1, srh, 4 + 8 + 16 * n);
}

/*
 * The headroom of a packet limits the list to four segments (H.Encaps: RFC 8986, 5.1) or
 * five (H.Encaps.Red: 5.2).
 */
static void
headends_have_up_to_five_segments_and_a_source(void **state)
{
	static const uint8_t address[16] = {0xfd, [15] = 1};
	const uint32_t *source = NULL;
	enum srv6_mode mode;

	for (unsigned int n = 1; n <= 5; n++)
		for (mode = SRV6_ENCAP; mode <= SRV6_ENCAP_RED; mode += 2) {
			enum srv6_mode was = mode;

			if (mode == SRV6_ENCAP && n == 5)
				continue;
			hop_begin(5);
			put_segments(mode, n);
			attr(&wire, 2, address, sizeof(address));
			assert_int_equal(hop_end(), 0);
			assert_int_equal(hop[0].n_labels, 1 + 4 * n + 4);
			assert_int_equal(srv6_headend_unpack(hop[0].label, hop[0].n_labels,
							     &mode, &source),
					 n);
			assert_int_equal(mode, was);
			assert_non_null(source);
			assert_int_equal(source[0], 0xfd000000);
			assert_int_equal(source[3], 1);
		}
	hop_begin(5);
	put_segments(SRV6_ENCAP, 1);
	attr(&wire, 2, address, 4);
	assert_int_equal(hop_end(), 1);
}

/* End.B6.Encaps: the attribute is the routing header of the policy, without a mode. */
static void
an_end_point_has_its_policy(void **state)
{
	uint8_t srh[8 + 16 * 5] = {
		[1] = 4, [2] = 4, [3] = 1, [4] = 1, [8] = 0xf0, [24] = 0xf1};
	const uint32_t *source;
	struct srv6_sid sid;
	enum srv6_mode mode;

	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_B6_ENCAPS);
	attr(&wire, 2, srh, 40);
	assert_int_equal(hop_end(), 0);
	assert_true(srv6_sid_unpack(hop[0].label, hop[0].n_labels, &sid));
	assert_int_equal(sid.action, SRV6_END_B6_ENCAPS);
	assert_int_equal(srv6_headend_unpack(sid.policy, sid.n_policy, &mode, &source), 2);
	assert_int_equal(mode, SRV6_ENCAP);
	assert_int_equal(sid.policy[5], 0xf1000000);
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_B6_ENCAPS);
	attr(&wire, 2, srh, 39);
	assert_int_equal(hop_end(), 1);
	srh[1] = 10;
	srh[4] = 4;
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_B6_ENCAPS);
	attr(&wire, 2, srh, sizeof(srh));
	refused(SRV6_MANY_SEGMENTS);
}

static void
what_is_not_supported_has_a_reason(void **state)
{
	hop_begin(7);
	attr_u32(&wire, 1, 4); /* End.DX2 */
	refused(SRV6_OTHER_ACTION);
	hop_begin(7);
	attr_u32(&wire, 1, 0x100 + SRV6_END);
	refused(SRV6_OTHER_ACTION);
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END);
	put_flavors(1 << 5, 0, 0);
	refused(SRV6_OTHER_FLAVOR);
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END);
	put_flavors(SRV6_NEXT_CSID, 33, 16);
	refused(SRV6_OTHER_FLAVOR);
	hop_begin(5);
	put_segments(0, 1); /* inline */
	refused(SRV6_OTHER_MODE);
	hop_begin(5);
	put_segments(SRV6_ENCAP, 5);
	refused(SRV6_MANY_SEGMENTS);
	hop_begin(5);
	put_segments(SRV6_ENCAP_RED, 6);
	refused(SRV6_MANY_SEGMENTS);
	hop_begin(5);
	put_segments(SRV6_ENCAP, 1);
	wire.octet[wire.len - 16 - 1] = 1; /* a tag */
	refused(SRV6_OTHER_HEADER);

	hop_begin(5);
	put_segments(SRV6_ENCAP_RED, 3);
	assert_int_equal(hop_end(), 0);
	assert_int_equal(hop[0].n_labels, 13);
	assert_int_equal(hop[0].label[9], 0xf2000000);
}

static void
what_is_cut_or_missing_is_malformed(void **state)
{
	uint8_t srh[28] = {1, [5] = 2, [6] = 4};

	hop_begin(7);
	assert_int_equal(hop_end(), 1);
	hop_begin(7);
	attr_u16(&wire, 1, SRV6_END);
	assert_int_equal(hop_end(), 1);
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_DT4); /* no table */
	assert_int_equal(hop_end(), 1);
	hop_begin(7);
	attr_u32(&wire, 1, SRV6_END_DX6);
	attr_u32(&wire, 5, 0);
	assert_int_equal(hop_end(), 1);
	hop_begin(5);
	attr(&wire, 1, srh, 11);
	assert_int_equal(hop_end(), 1);
	hop_begin(5);
	attr(&wire, 1, srh, 27);
	assert_int_equal(hop_end(), 1);
	hop_begin(5);
	srh[8] = 1; /* two segments in the room of one */
	attr(&wire, 1, srh, 28);
	assert_int_equal(hop_end(), 1);
	hop_begin(5);
	srh[8] = 0;
	srh[6] = 0; /* a type 0 routing header */
	attr(&wire, 1, srh, 28);
	assert_int_equal(hop_end(), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_points_of_zebra_have_their_action),
		cmocka_unit_test(a_headend_of_zebra_has_its_segments),
		cmocka_unit_test(a_headend_of_zebra_has_its_outer_header),
		cmocka_unit_test(flavors_and_lengths_are_read),
		cmocka_unit_test(end_dt6_with_vrftable_is_no_table_alone),
		cmocka_unit_test(end_x_has_an_interface),
		cmocka_unit_test(headends_have_up_to_five_segments_and_a_source),
		cmocka_unit_test(an_end_point_has_its_policy),
		cmocka_unit_test(what_is_not_supported_has_a_reason),
		cmocka_unit_test(what_is_cut_or_missing_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
