/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recorded streams of FRR 8.4, 10.3 and later, compared with an independent decode.
 *
 * NAME.bin has the octets, NAME.txt the decode. The folder is $SHARED/fpm-captures. Without
 * it the tests are skipped.
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c fpm-dataplane/base/prefix.c
 * link: tests/unit/capture_file.c tests/unit/capture_model.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include "capture_file.h"
#include "test_fpm_events.h"

/*
 * The content of a stream as sums. Equal sums over more than a hundred streams are no
 * coincidence.
 */
struct sums {
	uint64_t frames, routes, dels, nexthops, nexthop_dels;
	uint64_t labels, macs; /* routes and deletions */
	uint64_t skipped_route, skipped_type;
	uint64_t nhids;                         /* next-hop ids of routes */
	uint64_t ids;                           /* ids of next-hop objects */
	uint64_t members, member_weights;       /* members of groups */
	uint64_t paths, path_weights, path_ifs; /* paths of RTA_MULTIPATH */
	uint64_t encaps, blackholes;
	uint64_t pid;
};

/* --- the independent decode ----------------------------------------------------------- */

/* Return the sum of the numbers behind each `key` in `s`. Add their count to `n`. */
static uint64_t
sum_of(const char *s, const char *key, uint64_t *n)
{
	uint64_t sum = 0;

	while ((s = strstr(s, key)) != NULL) {
		s += strlen(key);
		sum += strtoull(s, NULL, 0);
		++*n;
	}
	return sum;
}

static bool
is_link_local(const char *rtm, const char *attrs)
{
	const char *dst = strstr(attrs, "DST=fe"), *len = strstr(rtm, "dst_len=");

	return strstr(rtm, "fam=INET6") != NULL && dst != NULL &&
	       strchr("89ab", dst[6]) != NULL && strtoul(len + 8, NULL, 10) >= 10;
}

static void
expect_route(struct sums *e, bool del, const char *rtm, const char *attrs)
{
	uint64_t n = 0;

	if (is_link_local(rtm, attrs)) {
		e->skipped_type++;
		return;
	}
	if (strstr(rtm, "fam=MPLS") != NULL) {
		e->labels++;
		*(del ? &e->dels : &e->routes) += 1;
		return;
	}
	if (del) {
		e->dels++;
		return;
	}
	e->routes++;
	e->nhids += sum_of(attrs, "NH_ID=", &n);
	if (strstr(attrs, "MULTIPATH") != NULL) {
		e->path_weights += sum_of(attrs, "[hops=", &e->paths);
		n = 0;
		e->path_ifs += sum_of(attrs, "oif=", &n);
	}
	(void)sum_of(attrs, "ENCAP_TYPE=", &e->encaps);
	e->blackholes += strstr(rtm, "type=unicast") == NULL;
}

static void
expect_nexthop(struct sums *e, const char *attrs)
{
	const char *group = strstr(attrs, "GROUP=[");
	uint64_t n = 0;

	e->nexthops++;
	e->ids += strtoull(strstr(attrs, "ID=") + 3, NULL, 10);
	if (group != NULL) {
		(void)sum_of(group, "id", &e->members);
		e->member_weights += sum_of(group, "/w", &n);
	}
	(void)sum_of(attrs, "ENCAP_TYPE=", &e->encaps);
	e->blackholes += strstr(attrs, "BLACKHOLE") != NULL;
}

static void
expect_mac(struct sums *e, bool del)
{
	e->macs++;
	*(del ? &e->dels : &e->routes) += 1;
}

static void
expect_message(struct sums *e, const char *head, const char *fixed, const char *attrs)
{
	uint64_t n = 0, pid = sum_of(head, "pid=", &n);

	if (pid != 0)
		e->pid = pid;
	if (strstr(head, " NEWROUTE ") != NULL)
		expect_route(e, false, fixed, attrs);
	else if (strstr(head, " DELROUTE ") != NULL)
		expect_route(e, true, fixed, attrs);
	else if (strstr(head, " NEWNEXTHOP ") != NULL)
		expect_nexthop(e, attrs);
	else if (strstr(head, " DELNEXTHOP ") != NULL)
		e->nexthop_dels++;
	else if (strstr(fixed, "fam=BRIDGE") != NULL)
		expect_mac(e, strstr(head, " DELNEIGH ") != NULL);
	else
		e->skipped_type++;
}

/*
 * Add up an independent decode. A message has three lines: head, fixed fields, attributes.
 */
static struct sums
sums_of_text(char *text)
{
	struct sums e = {0};
	char *save = NULL, *head, *fixed, *attrs;

	for (char *l = strtok_r(text, "\n", &save); l != NULL;
	     l = strtok_r(NULL, "\n", &save)) {
		if (strncmp(l, "FPM #", 5) == 0)
			e.frames++;
		if (strncmp(l, "  +", 3) != 0)
			continue;
		head = l;
		fixed = strtok_r(NULL, "\n", &save);
		attrs = strtok_r(NULL, "\n", &save);
		assert_non_null(attrs);
		expect_message(&e, head, fixed, attrs);
	}
	return e;
}

/* --- our decoder ---------------------------------------------------------------------- */

static int
sum_event(void *arg, const struct fpm_event *ev)
{
	struct sums *s = arg;

	event_is_sound(ev);
	s->nhids += ev->kind == FPM_ROUTE ? ev->nhid : 0;
	s->ids += ev->kind == FPM_NEXTHOP ? ev->nhid : 0;
	s->blackholes +=
		ev->blackhole || (ev->kind == FPM_ROUTE && ev->rtm_type != RTN_UNICAST);
	for (unsigned int i = 0; i < ev->n_hops && ev->table != FPM_TABLE_NONE; i++) {
		const struct fpm_hop *h = &ev->hops[i];

		s->encaps += h->encap != HOP_PLAIN;
		if (ev->is_group) {
			s->members++;
			s->member_weights += h->weight;
		} else if (ev->n_hops > 1) {
			s->paths++;
			s->path_weights += h->weight - 1;
			s->path_ifs += h->ifindex;
		}
	}
	free(ev->hops);
	return 0;
}

static struct sums
sums_of_stream(const uint8_t *p, size_t len)
{
	struct fpm_decoded t = {0};
	struct sums s = {0};
	struct fpm_frame f;
	int n;

	for (; len > 0; p += n, len -= (size_t)n) {
		n = fpm_frame_next(p, len, &f);
		assert_true(n > 0);
		assert_int_equal(fpm_decode(&f, sum_event, &s, &t), 0);
		s.frames++;
	}
	assert_int_equal(t.malformed, 0);
	s.routes = t.routes;
	s.dels = t.route_dels;
	s.nexthops = t.nexthops;
	s.nexthop_dels = t.nexthop_dels;
	s.labels = t.labels;
	s.macs = t.macs;
	s.skipped_route = t.skipped_route;
	s.skipped_type = t.skipped_type;
	s.pid = t.nl_pid;
	return s;
}

static void
every_capture_decodes_as_its_text(void **state)
{
	uint64_t routes = 0;

	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i++) {
		const struct capture *c = &captures.v[i];
		struct sums expected = sums_of_text(c->text);
		struct sums got = sums_of_stream(c->bin, c->len);

		if (memcmp(&got, &expected, sizeof(got)) != 0)
			print_message("differs: %s\n", c->name);
		assert_memory_equal(&got, &expected, sizeof(got));
		routes += got.routes;
	}
	print_message("%zu captures, %llu routes\n", captures.n,
		      (unsigned long long)routes);
}

static void
every_octet_of_a_capture_may_change_and_nothing_is_read_beyond(void **state)
{
	struct seen seen = {0};

	if (captures.n == 0)
		skip();
	for (size_t i = 0; i < captures.n; i += 7) {
		const uint8_t *bin = captures.v[i].bin;
		size_t len = captures.v[i].len;

		for (size_t at = 0; at < len && at < 1500; at++) {
			uint8_t *copy = malloc(len), *p = copy;
			size_t left = len;
			struct fpm_frame f;
			int n;

			assert_non_null(copy);
			memcpy(copy, bin, len);
			copy[at] ^= (uint8_t)(0x80u >> at % 8);
			while ((n = fpm_frame_next(p, left, &f)) > 0) {
				assert_int_equal(fpm_decode(&f, see, &seen, &seen.decoded),
						 0);
				p += n;
				left -= (size_t)n;
			}
			seen.text.len = 0;
			free(copy);
		}
	}
	free(seen.text.s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_capture_decodes_as_its_text),
		cmocka_unit_test(
			every_octet_of_a_capture_may_change_and_nothing_is_read_beyond),
	};

	return cmocka_run_group_tests(tests, captures_open, captures_close);
}
