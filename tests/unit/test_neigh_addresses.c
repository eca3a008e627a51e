/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random addresses of one interface come, change and go. After each event, the interface is
 * published with the sources that a walk over all addresses in the kernel's order chooses.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/grace.c tap-bridge/netns.c
 */
#include "neigh_bed.h"

#define ADDRESSES_MAX 64u
#define EVENTS        20000u

/* The addresses in the order of the kernel. */
static struct kmon_addr list[ADDRESSES_MAX];
static unsigned int n_list;

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint32_t
random_below(uint32_t n)
{
	random_state = mix64(random_state + 1);
	return (uint32_t)(random_state >> 32) % n;
}

/* --- the walk ------------------------------------------------------------------------- */

/* Return the rank of an address as a source, 1 to 5. 0: it is never a source. */
static int
rank_of(const struct kmon_addr *ka)
{
	if (ka->tentative)
		return 0;
	if (ka->family == 4)
		return ka->addr[0] == 127 || ka->secondary ? 0 : ka->addr[0] == 169 ? 1 : 5;
	if (ka->addr[0] == 0x20)
		return ka->deprecated ? 3 : 5;
	if (ka->addr[0] == 0xfd)
		return ka->deprecated ? 2 : 4;
	return 0;
}

/* Write the sources that the interface must have. */
static void
walk(struct fib_iface *want)
{
	int best[2] = {0, 0};

	memset(want, 0, sizeof(*want));
	for (unsigned int i = 0; i < n_list; i++) {
		const struct kmon_addr *ka = &list[i];
		bool v4 = ka->family == 4;
		uint8_t *n = v4 ? &want->n_own4 : &want->n_own6;
		struct fib_source *own = v4 ? want->own4 : want->own6;
		int rank = rank_of(ka);
		struct ipaddr addr;

		memcpy(addr.octet, ka->addr, sizeof(addr.octet));
		if (rank > best[v4]) {
			best[v4] = rank;
			if (v4)
				want->src4 = ipaddr_v4(&addr);
			else
				want->src6 = addr;
		}
		if (rank >= 4 && *n < FIB_ON_LINK_MAX) {
			own[*n].addr = addr;
			own[(*n)++].plen = ka->plen;
		}
		if (v4 || ka->addr[0] != 0xfe)
			continue;
		if (!ka->tentative && want->linklocal6.octet[0] == 0)
			want->linklocal6 = addr;
		if (want->n_on_link6 < FIB_ON_LINK_MAX)
			want->on_link6[want->n_on_link6] = addr;
		if (want->n_on_link6 <= FIB_ON_LINK_MAX)
			want->n_on_link6++;
	}
	want->unnumbered4 = best[1] < 5;
}

static void
assert_published(void)
{
	const struct fib_iface *fi = fib_iface(fib, PORT);
	struct fib_iface want;

	walk(&want);
	assert_int_equal(fi->src4, want.src4);
	assert_memory_equal(&fi->src6, &want.src6, sizeof(want.src6));
	assert_memory_equal(&fi->linklocal6, &want.linklocal6, sizeof(want.linklocal6));
	assert_int_equal(fi->unnumbered4, want.unnumbered4);
	assert_int_equal(fi->n_own4, want.n_own4);
	assert_int_equal(fi->n_own6, want.n_own6);
	assert_memory_equal(fi->own4, want.own4, sizeof(want.own4));
	assert_memory_equal(fi->own6, want.own6, sizeof(want.own6));
	assert_int_equal(fi->n_on_link6, want.n_on_link6);
	assert_memory_equal(fi->on_link6, want.on_link6, sizeof(want.on_link6));
}

/* --- events --------------------------------------------------------------------------- */

static bool
same_address(const struct kmon_addr *a, const struct kmon_addr *b)
{
	return a->family == b->family && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 &&
	       (a->family == 6 || a->plen == b->plen);
}

/* Return the index of an address in the list, or n_list if it is not in the list. */
static unsigned int
place_of(const struct kmon_addr *ka)
{
	unsigned int i = 0;

	while (i < n_list && !same_address(&list[i], ka))
		i++;
	return i;
}

static struct kmon_addr
random_address(void)
{
	static const uint8_t first4[] = {10, 10, 10, 127, 169},
			     first6[] = {0x20, 0xfd, 0xfe, 0x3f, 0};
	struct kmon_addr ka = {.ifindex = TAP, .family = random_below(2) ? 4 : 6};
	unsigned int last = ka.family == 4 ? 3 : 15;

	ka.addr[0] = ka.family == 4 ? first4[random_below(5)] : first6[random_below(4)];
	if (ka.addr[0] == 0x3f)
		ka.addr[0] = 0x20;
	if (ka.addr[0] == 169)
		ka.addr[1] = 254;
	if (ka.addr[0] == 0xfe)
		ka.addr[1] = 0x80;
	ka.addr[last] = (uint8_t)(1 + random_below(12));
	ka.plen = (uint8_t)(ka.family == 4 ? 24 + random_below(2) : 64);
	memcpy(ka.peer, ka.addr, sizeof(ka.peer));
	ka.secondary = ka.family == 4 && random_below(3) == 0;
	ka.tentative = ka.family == 6 && random_below(4) == 0;
	ka.deprecated = random_below(4) == 0;
	return ka;
}

static void
say(const struct kmon_addr *ka, bool gone)
{
	unsigned int at = place_of(ka);

	if (gone && at < n_list) {
		memmove(&list[at], &list[at + 1], (--n_list - at) * sizeof(list[0]));
	} else if (!gone && at < n_list) {
		list[at] = *ka;
	} else if (!gone && ka->family == 4) {
		list[n_list++] = *ka;
	} else if (!gone) {
		memmove(&list[1], &list[0], n_list++ * sizeof(list[0]));
		list[0] = *ka;
	}
	monitor.ops.on_addr(monitor.ctx, ka, gone);
	round_over();
}

static void
random_addresses_give_the_sources_of_a_walk(void **state)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < EVENTS; i++) {
		struct kmon_addr ka = random_address();

		/* The list grows for 500 events and shrinks in the next 500. */
		say(&ka,
		    n_list == ADDRESSES_MAX || random_below(100) < (i / 500 % 2 ? 75 : 25));
		assert_published();
		most = n_list > most ? n_list : most;
	}
	assert_true(most > 3 * FIB_ON_LINK_MAX);
	while (n_list > 0) {
		struct kmon_addr ka = list[random_below(n_list)];

		say(&ka, true);
		assert_published();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(random_addresses_give_the_sources_of_a_walk),
	};

	urcu_qsbr_register_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
