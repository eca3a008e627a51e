/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder does not trust its peer: a broken message is counted and gives no event. No
 * octets make it read beyond the buffer (asan checks that).
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <cmocka.h>

#include "test_fpm_events.h"

/*
 * Make one message by `build`. Assert that it is malformed and that the route behind it is
 * decoded.
 */
static void
is_malformed(void (*build)(struct wire *w))
{
	struct wire *w = one_frame();
	struct fpm_decoded t;

	build(w);
	msg_end(w);
	put_route(w, "192.0.2.0/24", 1);
	frame_end(w);
	t = becomes(w, "route 192.0.2.0/24 t254 nh1;");
	assert_int_equal(t.malformed, 1);
	assert_int_equal(t.messages, 2);
}

static void
raw_route(struct wire *w, uint8_t af, uint8_t len, const char *dst)
{
	struct rtmsg rtm = {.rtm_family = af,
			    .rtm_dst_len = len,
			    .rtm_table = RT_TABLE_MAIN,
			    .rtm_type = RTN_UNICAST};

	msg_begin(w, RTM_NEWROUTE);
	wire_put(w, &rtm, sizeof(rtm));
	if (dst != NULL)
		attr_addr(w, RTA_DST, dst);
	attr_u32(w, RTA_NH_ID, 7);
}

static void
host_bits(struct wire *w)
{
	raw_route(w, AF_INET, 24, "192.0.2.1");
}

static void
host_bits6(struct wire *w)
{
	raw_route(w, AF_INET6, 32, "2001:db8::1");
}

static void
too_long(struct wire *w)
{
	raw_route(w, AF_INET, 33, "192.0.2.1");
}

static void
too_long6(struct wire *w)
{
	raw_route(w, AF_INET6, 129, "2001:db8::1");
}

static void
wrong_size(struct wire *w)
{
	raw_route(w, AF_INET, 24, "2001:db8::");
}

static void
no_destination(struct wire *w)
{
	raw_route(w, AF_INET, 24, NULL);
}

static void
short_header(struct wire *w)
{
	msg_begin(w, RTM_NEWROUTE);
	wire_put(w, "\2\0\0", 3);
}

static void
no_header(struct wire *w)
{
	msg_begin(w, RTM_NEWNEXTHOP);
}

static void
attr_of_length_3(struct wire *w)
{
	route_begin(w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
	wire_put(w, "\3\0\36\0", 4);
}

static void
attr_beyond_the_message(struct wire *w)
{
	route_begin(w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
	wire_put(w, "\14\0\36\0\1\0\0\0", 8);
}

static void
stray_octet(struct wire *w)
{
	route_begin(w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
	wire_put(w, "x", 1);
}

static void
gateway_of_other_family(struct wire *w)
{
	route_begin(w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
	attr_addr(w, RTA_GATEWAY, "2001:db8::1");
}

static void
next_hop_without_id(struct wire *w)
{
	struct nhmsg nhm = {.nh_family = AF_INET};

	msg_begin(w, RTM_NEWNEXTHOP);
	wire_put(w, &nhm, sizeof(nhm));
	attr_u32(w, NHA_OIF, 1);
}

static void
next_hop_of_id_0(struct wire *w)
{
	nexthop_begin(w, RTM_DELNEXTHOP, AF_UNSPEC, 0);
}

static void
next_hop_to_nowhere(struct wire *w)
{
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 4);
}

static void
gateway_of_no_length_known(struct wire *w)
{
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, 4);
	attr(w, NHA_GATEWAY, "\300\0\2\1\0\0\0\0", 8);
}

static void
group_that_is_a_blackhole(struct wire *w)
{
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, 4);
	attr(w, NHA_BLACKHOLE, NULL, 0);
	attr(w, NHA_GROUP, "\1\0\0\0\0\0\0\0", 8);
}

static void
contradictions_are_counted_and_no_neighbor_is_lost(void **state)
{
	void (*const build[])(struct wire * w) = {
		host_bits,
		host_bits6,
		too_long,
		too_long6,
		wrong_size,
		no_destination,
		short_header,
		no_header,
		attr_of_length_3,
		attr_beyond_the_message,
		stray_octet,
		gateway_of_other_family,
		next_hop_without_id,
		next_hop_of_id_0,
		next_hop_to_nowhere,
		gateway_of_no_length_known,
		group_that_is_a_blackhole,
	};

	for (size_t i = 0; i < sizeof(build) / sizeof(build[0]); i++)
		is_malformed(build[i]);
}

/* An attribute that makes a good message malformed. */
static const struct {
	uint16_t type;
	uint16_t len;
	const char *payload;
} broken_route_attr[] =
	{
		{RTA_NH_ID, 2, "\1\0"},
		{RTA_OIF, 8, "\1\0\0\0\1\0\0\0"},
		{RTA_TABLE, 0, ""},
		{RTA_ENCAP_TYPE, 4, "\1\0\0\0"},
		{RTA_VIA, 6, "\7\0\1\2\3\4"},  /* no such family */
		{RTA_VIA, 1, "\2"},            /* no address */
		{RTA_VIA, 6, "\12\0\1\2\3\4"}, /* IPv6 of four octets */
		{RTA_MULTIPATH, 0, ""},
		{RTA_MULTIPATH, 7, "\7\0\0\0\2\0\0"},
		{RTA_MULTIPATH, 8, "\0\0\0\0\2\0\0\0"}, /* an entry of length 0 */
		/* The second entry reaches beyond the end of the attribute. */
		{RTA_MULTIPATH, 16, "\10\0\0\0\2\0\0\0\20\0\0\0\2\0\0\0"},
		/* The attribute in the entry has a length of 65535. */
		{RTA_MULTIPATH, 12, "\14\0\0\0\2\0\0\0\377\377\5\0"},
		{RTA_METRICS, 4, "\377\0\2\0"},
		{RTA_METRICS, 6, "\6\0\2\0\1\0"}, /* an MTU of two octets */
},
  broken_group[] = {
	  {NHA_GROUP, 0, ""},
	  {NHA_GROUP, 12, "\1\0\0\0\0\0\0\0\2\0\0\0"},
	  {NHA_GROUP, 8, "\0\0\0\0\0\0\0\0"}, /* member 0 */
};

static void
broken_attributes_are_counted(void **state)
{
	struct wire *w;

	for (size_t i = 0; i < sizeof(broken_route_attr) / sizeof(broken_route_attr[0]);
	     i++) {
		w = one_frame();
		route_begin(w, RTM_NEWROUTE, "198.51.100.0/24", RTN_UNICAST);
		attr(w, broken_route_attr[i].type, broken_route_attr[i].payload,
		     broken_route_attr[i].len);
		assert_int_equal(last_is_nothing(w).malformed, 1);
	}
	for (size_t i = 0; i < sizeof(broken_group) / sizeof(broken_group[0]); i++) {
		w = one_frame();
		nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, 4);
		attr(w, broken_group[i].type, broken_group[i].payload, broken_group[i].len);
		assert_int_equal(last_is_nothing(w).malformed, 1);
	}
}

static void
message_length_that_lies_costs_the_rest_of_its_frame_only(void **state)
{
	static const uint32_t lie[] = {0, 1, 15, 10000, 0x7fffffff, 0x80000000, 0xffffffff};

	for (size_t i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
		struct wire *w = one_frame();
		struct fpm_decoded t;

		put_route(w, "192.0.2.0/24", 1);
		put_route(w, "198.51.100.0/24", 2);
		memcpy(w->octet + w->msg, &lie[i], 4);
		put_route(w, "203.0.113.0/24", 3);
		frame_end(w);
		frame_begin(w);
		put_route(w, "203.0.113.0/24", 4);
		frame_end(w);
		t = becomes(w,
			    "route 192.0.2.0/24 t254 nh1;route 203.0.113.0/24 t254 nh4;");
		assert_int_equal(t.malformed, 1);
	}
}

/* --- random octets ------------------------------------------------------------------- */

/*
 * Decode `len` octets as the payload of a frame, from an allocation that ends behind them.
 */
static void
decode_payload(const uint8_t *p, size_t len, unsigned int shift)
{
	uint8_t *copy = malloc(shift + len + 1);
	struct fpm_frame f;
	struct seen seen = {0};

	assert_non_null(copy);
	copy = realloc(copy, shift + len + (shift + len == 0));
	assert_non_null(copy);
	f = (struct fpm_frame){.payload = copy + shift, .len = len};
	memcpy(copy + shift, p, len);
	assert_int_equal(fpm_decode(&f, see, &seen, &seen.decoded), 0);
	assert_true(seen.n <= seen.decoded.messages);
	free(seen.text.s);
	free(copy);
}

static void
every_single_octet_change_of_the_samples_is_survived(void **state)
{
	struct wire *w = wire_new();
	struct fpm_frame f;
	size_t at = 0;

	put_samples(w);
	while (at < w->len) {
		int n = fpm_frame_next(w->octet + at, w->len - at, &f);
		uint8_t *p = w->octet + at + FPM_HEADER_BYTES;

		assert_true(n > 0);
		for (size_t i = 0; i < f.len; i++) {
			uint8_t was = p[i];

			for (unsigned int v = 0; v < 256; v++) {
				p[i] = (uint8_t)v;
				decode_payload(p, f.len, 0);
			}
			p[i] = was;
		}
		at += (size_t)n;
	}
	free(w);
}

static void
every_cut_of_a_frame_is_survived(void **state)
{
	struct wire *w = wire_new();
	struct fpm_frame f;

	put_samples(w);
	for (size_t at = 0; at < w->len;) {
		at += (size_t)fpm_frame_next(w->octet + at, w->len - at, &f);
		for (size_t len = 0; len <= f.len; len++)
			decode_payload(f.payload, len, (unsigned int)len % 4);
	}
	free(w);
}

/* Make octets that look like messages often enough to pass the first checks. */
static size_t
garbage(uint8_t *p, size_t max, unsigned int *seed)
{
	static const uint16_t type[] = {RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWNEXTHOP,
					RTM_DELNEXTHOP};
	size_t len = (size_t)rand_r(seed) % max;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(rand_r(seed) >> 8) & (rand_r(seed) % 3 != 0 ? 0x1f : 0xff);
	if (len >= 20 && rand_r(seed) % 8 != 0) {
		uint32_t nl_len = (uint32_t)len - (rand_r(seed) % 4 == 0);

		memcpy(p, &nl_len, 4);
		memcpy(p + 4, &type[rand_r(seed) % 4], 2);
		p[16] = rand_r(seed) % 2 == 0 ? AF_INET : AF_INET6;
	}
	return len;
}

static void
random_octets_are_survived(void **state)
{
	const char *env = getenv("SEED");
	unsigned int seed = env != NULL ? (unsigned int)strtoul(env, NULL, 0)
					: (unsigned int)time(NULL);
	uint8_t p[512];

	print_message("SEED=%u\n", seed);
	for (unsigned int i = 0; i < 200000; i++) {
		size_t len = garbage(p, sizeof(p), &seed);

		decode_payload(p, len, i % 4);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contradictions_are_counted_and_no_neighbor_is_lost),
		cmocka_unit_test(broken_attributes_are_counted),
		cmocka_unit_test(message_length_that_lies_costs_the_rest_of_its_frame_only),
		cmocka_unit_test(every_single_octet_change_of_the_samples_is_survived),
		cmocka_unit_test(every_cut_of_a_frame_is_survived),
		cmocka_unit_test(random_octets_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
