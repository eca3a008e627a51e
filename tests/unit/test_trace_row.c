/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows that `trace` and `explain` show: each field of a frame, the results of the
 * stages, and the ICMP error about a packet that is dropped. The row has the source of the
 * error, or the reason why the punt thread sends none.
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
#include "fib/headend.h"
#include "fib/label.h"
#include "fib/urpf.h"
#include "trace/internal.h"

#define LAN   1
#define LABEL 100u

static const uint8_t own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
static const uint8_t host6[16] = {0x20, 1, 0xd, 0xb8, [15] = 9};

static struct fib *fib;
static struct fib_iface lan;
static struct fib_iface vlan = {.ifidx = PORT_MAX, .name = "lan0.5"};
static const struct port ports[] = {{.ifidx = LAN + 1, .name = "wan0"},
				    {.ifidx = LAN, .name = "lan0"}};
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
	trace.conf.port = ports;
	trace.conf.n_port = 2;
	atomic_store(&fib->iface[PORT_MAX], &vlan);
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
	atomic_store(&fib->iface[PORT_MAX], NULL);
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
	rec.frame[0] = 2; /* a local address of one host */
	json_decref(row);
	row = row_make(&trace, &rec);
	sends();
	/*
	 * If the label leads to another router, the error goes there, too. It needs no
	 * route back to the sender.
	 */
	fib->encap[1] = (struct fib_encap){.next = PATH(PATH_ADJ, 1), .n = 1};
	fib->group[11] = group_word_single(PATH(PATH_ENCAP, 1));
	fib->group[10] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	row_of(true, false, PUNT_ttl_expired, DROP_ttl);
	sends();
	fib->group[10] = group_word_single(PATH(PATH_ONLINK, LAN));
	/* The interface has no address. Then there is no route back, either. */
	memset(&lan.src6, 0, sizeof(lan.src6));
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	refuses("the interface has no address from which to send it");
	fib->group[10] = group_word_single(PATH(PATH_BLACKHOLE, 0));
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	refuses("no route leads back to its source");
}

/* An end point of SRv6 has put the packet in a VRF: the source is an address of the VRF. */
static void
the_source_of_an_error_in_the_vrf_of_a_sid_is_of_the_vrf(void **state)
{
	static struct fib_iface member = {.ifidx = LAN + 1, .up = true, .vrf = 5};
	struct fib_vrf *red = fib_vrf_new(fib, 1001, "red");

	assert_non_null(red);
	memcpy(member.src6.octet, own6, 16);
	member.src6.octet[5] = 5;
	atomic_store(&fib->iface[LAN + 1], &member);
	fib->group[12] = group_word_single(PATH(PATH_ONLINK, LAN + 1));
	assert_int_equal(poptrie_add(red->tries.pt6, host6, 64, 12), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	fib_vrf_publish(fib, 5, red);
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	sends();
	rec.icmp_vrf = 5;
	json_decref(row);
	row = row_make(&trace, &rec);
	assert_string_equal(json_string_value(json_object_get(row, "icmp_src")),
			    "2001:db8:5::1");
	atomic_store(&fib->iface[LAN + 1], NULL);
}

/*
 * In these stages only packets behind labels have a multicast destination. "Packet too big"
 * is sent about them, because multicast needs path MTU discovery, too (RFC 4443, 2.4
 * (e.3)). Other errors are not sent.
 */
static void
only_packet_too_big_is_sent_about_groups(void **state)
{
	row_of(true, true, PUNT_too_big, DROP_mtu);
	sends();
	row_of(true, true, PUNT_ttl_expired, DROP_ttl);
	refuses("it was sent to more than one host (RFC 4443, 2.4 (e))");
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	rec.frame[0] = 1; /* the address of the frame, not of the packet */
	json_decref(row);
	row = row_make(&trace, &rec);
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

/* --- fields of the row ---------------------------------------------------------------- */

/* Make the row of the present record again. */
static void
row_again(void)
{
	json_decref(row);
	row = row_make(&trace, &rec);
	assert_non_null(row);
}

static void
number_is(const char *key, long long value)
{
	const json_t *is = json_object_get(row, key);

	if (!json_is_integer(is) || json_integer_value(is) != value)
		fail_msg("%s is %lld, not %lld", key, (long long)json_integer_value(is),
			 value);
}

/* Assert that the text of a key is `value`. NULL: there is no such key. */
static void
text_is(const char *key, const char *value)
{
	const char *is = json_string_value(json_object_get(row, key));

	if (value == NULL ? json_object_get(row, key) != NULL
			  : is == NULL || strcmp(is, value) != 0)
		fail_msg("%s is %s, not %s", key, is == NULL ? "absent" : is,
			 value == NULL ? "absent" : value);
}

static void
flag_is(const char *key, bool value)
{
	assert_true(json_is_boolean(json_object_get(row, key)));
	assert_int_equal(json_is_true(json_object_get(row, key)), value);
}

/* Assert the JSON text of a key. */
static void
json_is(const char *key, const char *value)
{
	char *is = json_dumps(json_object_get(row, key), JSON_ENCODE_ANY | JSON_COMPACT);

	if (is == NULL || strcmp(is, value) != 0)
		fail_msg("%s is %s, not %s", key, is == NULL ? "absent" : is, value);
	free(is);
}

/*
 * Write a record of a frame with an IPv4 packet of UDP behind `n` labels. Return the
 * packet.
 */
static uint8_t *
record4(unsigned int n)
{
	static const uint8_t eth[12] = {2, 0, 0, 0, 0, 0x0a, 2, 0, 0, 0, 0, 0x0b};
	static const uint8_t ip4[24] = {0x45, 0, 0, 28, 0,   0, 0x40, 0, 7, 17, 0, 0,
					10,   1, 2, 3,  192, 0, 2,    9, 1, 2,  3, 4};
	uint8_t *ip = rec.frame + 14 + 4 * n;

	memset(&rec, 0, sizeof(rec));
	memcpy(rec.frame, eth, sizeof(eth));
	put_be16(rec.frame + 12, n > 0 ? MPLS_TYPE : 0x0800);
	for (unsigned int i = 0; i < n; i++)
		put_be32(rec.frame + 14 + 4 * i,
			 (LABEL + i) << 12 | (uint32_t)(i + 1 == n) << 8 | (60 + i));
	memcpy(ip, ip4, sizeof(ip4));
	rec.snap_bytes = (uint16_t)(ip + 24 - rec.frame);
	rec.frame_bytes = (uint32_t)(ip + 28 - rec.frame);
	rec.l3_bytes = 28;
	rec.family = 4;
	rec.verdict = WATCH_GO;
	rec.hook_dscp = UINT8_MAX;
	return ip;
}

static void
the_source_of_an_ipv4_error_is_shown(void **state)
{
	lan.src4 = 0xc0000201;
	fib->group[12] = group_word_single(PATH(PATH_ONLINK, LAN));
	assert_int_equal(
		poptrie_add(fib->copy[0].pt4, (const uint8_t[4]){10, 1, 2, 3}, 32, 12), 0);
	assert_int_equal(poptrie_commit(fib->copy[0].pt4), 0);
	(void)record4(0);
	rec.in_ifidx = LAN;
	rec.icmp = true;
	rec.verdict = PUNT_ttl_expired;
	rec.cause = DROP_ttl;
	row_again();
	text_is("verdict", "dropped");
	text_is("icmp_src", "192.0.2.1");
	rec.frame[0] = 1; /* a group of Ethernet */
	row_again();
	text_is("icmp_src", NULL);
	refuses("it came in a broadcast or multicast frame (RFC 1812, 4.3.2.7)");
}

static void
each_field_of_a_frame_is_in_its_row(void **state)
{
	uint8_t *ip = record4(0);

	row_again();
	number_is("frame_bytes", 42);
	text_is("frame", "02000000000a02000000000b0800450000"
			 "1c00004000071100000a010203c000020901020304");
	text_is("eth_dst", "02:00:00:00:00:0a");
	text_is("eth_src", "02:00:00:00:00:0b");
	number_is("eth_type", 0x0800);
	number_is("family", 4);
	text_is("src", "10.1.2.3");
	text_is("dst", "192.0.2.9");
	number_is("proto", 17);
	number_is("ttl", 7);
	number_is("length", 28);
	flag_is("df", true);
	flag_is("fragment", false);
	number_is("sport", 0x102);
	number_is("dport", 0x304);
	assert_null(json_object_get(row, "labels"));
	/*
	 * The ports are behind the options of the header. The copy has to have both ports.
	 */
	ip[0] = 0x46;
	row_again();
	assert_null(json_object_get(row, "sport"));
	memcpy(ip + 24, "\x05\x06\x07\x08", 4);
	rec.snap_bytes += 4;
	row_again();
	number_is("sport", 0x506);
	number_is("dport", 0x708);
	rec.snap_bytes--;
	row_again();
	assert_null(json_object_get(row, "sport"));
	/* A first fragment has ports. A later fragment has none, and ICMP has none. */
	ip = record4(0);
	put_be16(ip + 6, 0x2000);
	row_again();
	flag_is("df", false);
	flag_is("fragment", true);
	number_is("sport", 0x102);
	put_be16(ip + 6, 1);
	row_again();
	flag_is("fragment", true);
	assert_null(json_object_get(row, "sport"));
	ip = record4(0);
	ip[9] = 1;
	row_again();
	assert_null(json_object_get(row, "sport"));
	/*
	 * The copy lacks a part of the IP header, then of the Ethernet header. Then the
	 * type is another.
	 */
	rec.snap_bytes = 14 + 20;
	row_again();
	number_is("proto", 1);
	rec.snap_bytes--;
	row_again();
	assert_null(json_object_get(row, "proto"));
	text_is("eth_dst", "02:00:00:00:00:0a");
	rec.snap_bytes = 14;
	row_again();
	number_is("eth_type", 0x0800);
	rec.snap_bytes = 13;
	row_again();
	text_is("frame", "02000000000a02000000000b08");
	assert_null(json_object_get(row, "eth_type"));
	(void)record4(0);
	put_be16(rec.frame + 12, 0x0806);
	row_again();
	number_is("eth_type", 0x0806);
	assert_null(json_object_get(row, "src"));
}

static void
an_ipv6_packet_and_a_long_frame_are_shown(void **state)
{
	row_of(false, false, PUNT_ttl_expired, DROP_ttl);
	number_is("family", 6);
	text_is("src", "2001:db8::9");
	text_is("dst", "2001:db8::9");
	number_is("proto", 17);
	number_is("ttl", 64);
	number_is("length", 1040);
	flag_is("df", false);
	number_is("sport", 0);
	rec.snap_bytes = 14 + 43;
	row_again();
	assert_null(json_object_get(row, "sport"));
	/* 128 octets of the frame are shown. */
	rec.snap_bytes = 128;
	row_again();
	assert_int_equal(json_string_length(json_object_get(row, "frame")), 256);
	rec.snap_bytes = 129;
	row_again();
	assert_int_equal(json_string_length(json_object_get(row, "frame")), 256);
}

static void
labels_are_shown_up_to_the_last_one(void **state)
{
	uint8_t *ip = record4(3);

	row_again();
	json_is("labels", "[100,101,102]");
	number_is("label_ttl", 60);
	text_is("src", "10.1.2.3");
	number_is("sport", 0x102);
	ip[0] = 0x15; /* no IP packet */
	row_again();
	json_is("labels", "[100,101,102]");
	assert_null(json_object_get(row, "src"));
	/* The copy ends in a label. */
	rec.snap_bytes = 14 + 8;
	row_again();
	json_is("labels", "[100,101]");
	rec.snap_bytes = 14 + 7;
	row_again();
	json_is("labels", "[100]");
	rec.snap_bytes = 14 + 3;
	row_again();
	json_is("labels", "[]");
	assert_null(json_object_get(row, "label_ttl"));
	assert_null(json_object_get(row, "src"));
}

/*
 * Find the packet behind labels that end here, and the VRF in which it is looked up again.
 */
static void
the_packet_behind_labels_that_end_here_is_found(void **state)
{
	static const uint8_t *const nowhere = (const uint8_t *)"";
	const uint8_t *found = nowhere;
	uint16_t vrf = 99;
	uint8_t *ip;

	for (unsigned int six = 0; six < 2; six++) {
		unsigned int head = six ? 40 : 20;

		if (six) {
			row_of(true, false, PUNT_ttl_expired, DROP_ttl);
			ip = rec.frame + 18;
		} else {
			ip = record4(1);
		}
		rec.pops = 1;
		rec.snap_bytes = (uint16_t)(18 + head);
		found = nowhere;
		vrf = 99;
		assert_true(row_labels_end(&trace, &rec, &vrf, &found));
		assert_int_equal(vrf, 0);
		assert_ptr_equal(found, ip);
		row_again();
		number_is("pops", 1);
		assert_true(json_is_null(json_object_get(row, "vrf")));
		/*
		 * No VRF is found if the header is cut, if no label is popped, or if there
		 * is no IP packet.
		 */
		rec.snap_bytes--;
		assert_false(row_labels_end(&trace, &rec, &vrf, &found));
		row_again();
		assert_null(json_object_get(row, "vrf"));
		rec.snap_bytes++;
		rec.pops = 0;
		assert_false(row_labels_end(&trace, &rec, &vrf, &found));
		row_again();
		assert_null(json_object_get(row, "pops"));
		rec.pops = 1;
		rec.family = 0;
		assert_false(row_labels_end(&trace, &rec, &vrf, &found));
		/* The label ends in a VRF. */
		rec.family = six ? 6 : 4;
		fib->group[11] = group_word_single(PATH(PATH_VRF, 3));
		assert_true(row_labels_end(&trace, &rec, &vrf, &found));
		assert_int_equal(vrf, 3);
		/* The label leads to another router. */
		fib->group[11] = group_word_single(PATH(PATH_ADJ, 1));
		assert_false(row_labels_end(&trace, &rec, &vrf, &found));
		fib->group[11] = group_word_single(PATH(PATH_VRF, 0));
	}
}

static void
each_kind_of_path_has_its_name(void **state)
{
	static const char *const name[] = {
		[PATH_NONE] = "none",
		[PATH_ADJ] = "adjacency",
		[PATH_ONLINK] = "onlink",
		[PATH_LOCAL] = "local",
		[PATH_BCAST] = "broadcast",
		[PATH_BLACKHOLE] = "blackhole",
		[PATH_UNREACHABLE] = "unreachable",
		[PATH_PROHIBIT] = "prohibit",
		[PATH_UNRESOLVED] = "unresolved",
		[PATH_FOREIGN] = "foreign",
		[PATH_DOWN] = "down",
		[PATH_VRF] = "vrf",
		[PATH_NO_FIB] = "none",
		[PATH_THROW] = "throw",
		[PATH_KERNEL] = "through-kernel",
	};

	for (unsigned int k = 0; k < sizeof(name) / sizeof(name[0]); k++) {
		if (name[k] == NULL)
			continue;
		(void)record4(0);
		rec.looked_up = true;
		rec.path = PATH(k, 5);
		rec.group = 77;
		rec.flow_hash = 0x60000000;
		rec.log2_buckets = 3;
		row_again();
		text_is("path", name[k]);
		number_is("group", 77);
		number_is("hash", 0x60000000);
		number_is("buckets", 8);
		number_is("bucket", 3);
		assert_int_equal(json_object_get(row, "adj") != NULL, k == PATH_ADJ);
		assert_int_equal(json_object_get(row, "dev") != NULL, k == PATH_ONLINK);
		assert_int_equal(json_object_get(row, "ifindex") != NULL, k == PATH_KERNEL);
		if (k == PATH_ADJ)
			number_is("adj", 5);
		if (k == PATH_KERNEL)
			number_is("ifindex", 5);
		assert_null(json_object_get(row, "via"));
		assert_null(json_object_get(row, "rule"));
		/* Into a tunnel. */
		rec.tunnel = 7;
		row_again();
		text_is("path", k == PATH_ADJ || k == PATH_ONLINK ? "tunnel" : name[k]);
		assert_non_null(json_object_get(row, "tunnel"));
	}
	/* One bucket; a next hop; rules; the fall back to table main. */
	rec.log2_buckets = 0;
	rec.via_family = 4;
	rec.via = (struct ipaddr){{192, 0, 2, 1}};
	rec.rule = 1;
	rec.rule_pref = 1000;
	rec.rule_table = 50;
	rec.to_main = true;
	row_again();
	number_is("buckets", 1);
	assert_null(json_object_get(row, "bucket"));
	text_is("via", "192.0.2.1");
	number_is("rule", 1000);
	number_is("rule_table", 50);
	flag_is("to_main", true);
	text_is("to_vrf", NULL);
	rec.to_vrf = 3;
	row_again();
	json_is("to_vrf", "null"); /* a VRF without a FIB has no name */
	rec.to_vrf = 0;
	rec.rule = 2;
	rec.rule_table = 0;
	rec.to_main = false;
	row_again();
	json_is("rule", "null");
	json_is("rule_table", "null");
	assert_null(json_object_get(row, "to_main"));
	/* Labels that are pushed, with a TTL of their own. */
	fib->encap[1] = (struct fib_encap){
		.next = PATH(PATH_ADJ, 1),
		.n = 2,
		.ttl = LABEL_TTL_OWN | 44,
		.entry = {__builtin_bswap32(16u << 12), __builtin_bswap32(17u << 12)}};
	rec.path = PATH(PATH_ENCAP, 1);
	row_again();
	text_is("path", "labels");
	json_is("push", "[16,17]");
	number_is("push_ttl", 44);
	fib->encap[1].ttl = 0;
	rec.outer_labels = 1; /* those of an outer packet */
	row_again();
	json_is("outer_push", "[16,17]");
	assert_null(json_object_get(row, "push_ttl"));
	rec.outer_labels = 0;
	row_again();
	assert_null(json_object_get(row, "outer_push"));
	fib->encap[1] = (struct fib_encap){0};
}

static void
the_results_of_stages_are_shown_if_they_ran(void **state)
{
	(void)record4(0);
	rec.stage = STAGE_SEND;
	row_again();
	text_is("point", "walk");
	text_is("verdict", "forwarded");
	json_is("stages", "[\"admit\",\"parse\",\"lookup\",\"adjacency\",\"rewrite\","
			  "\"send\"]");
	text_is("urpf", NULL);
	text_is("filter", NULL);
	text_is("hook", NULL);
	text_is("mac", NULL);
	text_is("time_ns", NULL);
	rec.urpf = FIB_URPF_LOOSE;
	rec.back = FIB_BACK_OTHER;
	rec.filter = WATCH_FILTER_REJECT;
	strcpy(rec.filter_chain, "forward");
	strcpy(rec.filter_comment, "no \"web\"");
	rec.filter_handle = 12;
	rec.hook = WATCH_HOOK_CHANGE;
	strcpy(rec.hook_file, "a.o");
	rec.hook_dscp = 46;
	rec.hook_table = 51;
	rec.time_ns = 1234567890123456789u;
	rec.hop = 0x02000000000cull << 16 | LAN;
	rec.out_ifidx = LAN;
	rec.mtu_bytes = 1400;
	memcpy(rec.rewritten, "\2\0\0\0\0\x0c\2\0\0\0\0\x0d\x08\0\x45", 15);
	rec.rewritten[14 + 8] = 33; /* TTL of IPv4 */
	rec.rewritten[14 + 7] = 34; /* hop limit of IPv6 */
	rec.rewritten[14 + 3] = 35; /* TTL of a label */
	row_again();
	json_is("stages", "[\"admit\",\"parse\",\"hook\",\"lookup\",\"adjacency\",\"urpf\","
			  "\"filter\",\"rewrite\",\"send\"]");
	text_is("urpf", "loose");
	text_is("back", "other");
	text_is("filter", "reject");
	text_is("filter_chain", "forward");
	number_is("filter_handle", 12);
	assert_non_null(json_object_get(row, "filter_comment"));
	text_is("hook", "change");
	text_is("hook_file", "a.o");
	number_is("hook_dscp", 46);
	rec.hook_dscp = 0; /* 0 is a value, too */
	row_again();
	number_is("hook_dscp", 0);
	number_is("hook_table", 51);
	number_is("time_ns", 1234567890123456789);
	text_is("mac", "02:00:00:00:00:0c");
	number_is("mtu", 1400);
	text_is("out_src_mac", "02:00:00:00:00:0d");
	number_is("out_ttl", 33);
	put_be16(rec.rewritten + 12, 0x86dd);
	row_again();
	number_is("out_ttl", 34);
	put_be16(rec.rewritten + 12, MPLS_TYPE);
	row_again();
	number_is("out_ttl", 35);
	/* Only a forwarded packet was rewritten, and only a walk has stages. */
	rec.verdict = WATCH_DECAPSULATED;
	row_again();
	text_is("verdict", "decapsulated");
	text_is("out_src_mac", NULL);
	rec.verdict = WATCH_GO;
	rec.point = WATCH_SENT;
	row_again();
	text_is("point", "sent");
	text_is("out_src_mac", NULL);
	assert_null(json_object_get(row, "stages"));
	rec.point = WATCH_LOST;
	rec.verdict = DROP_tx_full;
	row_again();
	text_is("point", "lost");
	text_is("verdict", "dropped");
	text_is("reason", "tx_full");
	flag_is("icmp", false);
	text_is("class", NULL);
	rec.point = WATCH_WALK;
	rec.verdict = PUNT_kernel_route;
	row_again();
	text_is("verdict", "punted");
	text_is("class", punt_class_info[rec.class].name);
}

static void
interfaces_are_shown_by_their_names(void **state)
{
	(void)record4(0);
	row_again();
	json_is("port", "null"); /* of no interface */
	text_is("outer_port", NULL);
	text_is("tunnel", NULL);
	rec.in_ifidx = LAN;
	rec.outer_ifidx = LAN + 1;
	rec.tunnel = PORT_MAX;
	rec.hop = 1;
	rec.out_ifidx = LAN + 2;
	row_again();
	text_is("port", "lan0");
	text_is("outer_port", "wan0");
	text_is("tunnel", "lan0.5");
	json_is("out", "null"); /* an interface that is gone */
	rec.out_ifidx = PORT_MAX;
	row_again();
	text_is("out", "lan0.5");
	atomic_store(&fib->iface[PORT_MAX], NULL);
	row_again();
	json_is("out", "null");
	rec.hop = 0;
	rec.tunnel = 0;
	rec.looked_up = true;
	rec.path = PATH(PATH_ONLINK, LAN + 1);
	row_again();
	text_is("dev", "wan0");
}

static void
replies_of_rib_and_neigh_are_added(void **state)
{
	json_t *routes = json_pack("[{s:i, s:[{s:i,s:s},{s:i,s:s}]}]", "group", 77,
				   "nexthops", "ifindex", 4, "dev", "x4", "ifindex", 5,
				   "dev", "x5"),
	       *hosts =
		       json_pack("[{s:s},{s:s},{s:s}]", "dev", "a", "dev", "b", "dev", "c"),
	       *none = json_array();

	(void)record4(0);
	rec.looked_up = true;
	rec.path = PATH(PATH_KERNEL, 5);
	rec.group = 77;
	row_again();
	row_add(row, QUERY_ROUTES, none);
	assert_null(json_object_get(row, "route"));
	row_add(row, QUERY_ROUTES, routes);
	assert_ptr_equal(json_object_get(row, "route"), json_array_get(routes, 0));
	text_is("dev", "x5");
	flag_is("route_changed", false);
	json_object_set_new(row, "group", json_integer(78));
	row_add(row, QUERY_ROUTES, routes);
	flag_is("route_changed", true);
	/*
	 * The row gets the neighbor on the link of the packet, otherwise the first
	 * neighbor.
	 */
	row_add(row, QUERY_NEIGHBORS, hosts);
	assert_ptr_equal(json_object_get(row, "neighbor"), json_array_get(hosts, 0));
	json_object_set_new(row, "out", json_string("b"));
	row_add(row, QUERY_NEIGHBORS, hosts);
	assert_ptr_equal(json_object_get(row, "neighbor"), json_array_get(hosts, 1));
	json_object_del(row, "out");
	json_object_set_new(row, "dev", json_string("c"));
	row_add(row, QUERY_NEIGHBORS, hosts);
	assert_ptr_equal(json_object_get(row, "neighbor"), json_array_get(hosts, 2));
	json_decref(routes);
	json_decref(hosts);
	json_decref(none);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
	static const struct CMUnitTest tests[] = {
		TEST(the_source_of_an_error_is_shown),
		TEST(the_source_of_an_error_in_the_vrf_of_a_sid_is_of_the_vrf),
		TEST(only_packet_too_big_is_sent_about_groups),
		TEST(a_frame_that_is_too_short_has_neither),
		TEST(the_source_of_an_ipv4_error_is_shown),
		TEST(each_field_of_a_frame_is_in_its_row),
		TEST(an_ipv6_packet_and_a_long_frame_are_shown),
		TEST(labels_are_shown_up_to_the_last_one),
		TEST(the_packet_behind_labels_that_end_here_is_found),
		TEST(each_kind_of_path_has_its_name),
		TEST(the_results_of_stages_are_shown_if_they_ran),
		TEST(interfaces_are_shown_by_their_names),
		TEST(replies_of_rib_and_neigh_are_added),
	};

	return cmocka_run_group_tests_name("trace_row", tests, NULL, NULL);
}
