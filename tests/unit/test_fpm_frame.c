/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm_frame_next() waits for a whole frame, and refuses a broken header.
 * link: fpm-dataplane/fpm/frame.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fpm/frame.h"

/*
 * Return a frame of `len` octets in an allocation of its own, so that the sanitizer sees a
 * read beyond its end.
 */
static uint8_t *
frame_of(size_t len)
{
	uint8_t *p = calloc(1, len);

	assert_non_null(p);
	p[0] = p[1] = 1;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	return p;
}

static void
whole_frame_is_consumed_and_its_payload_found(void **state)
{
	uint8_t *p = frame_of(100);
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next(p, 100, &f), 100);
	assert_ptr_equal(f.payload, p + 4);
	assert_int_equal(f.len, 96);
	free(p);
}

static void
octets_behind_the_frame_are_left_alone(void **state)
{
	uint8_t two[] = {1, 1, 0, 6, 'a', 'b', 1, 1, 0, 5, 'c'};
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next(two, sizeof(two), &f), 6);
	assert_int_equal(fpm_frame_next(two + 6, sizeof(two) - 6, &f), 5);
	assert_int_equal(f.len, 1);
	assert_int_equal(f.payload[0], 'c');
}

static void
every_shorter_prefix_of_a_frame_waits_for_more(void **state)
{
	struct fpm_frame f = {.len = 7};

	for (size_t cut = 0; cut < 100; cut++) {
		uint8_t *p = frame_of(100);
		uint8_t *part = malloc(cut + (cut == 0));

		assert_non_null(part);
		memcpy(part, p, cut);
		assert_int_equal(fpm_frame_next(part, cut, &f), 0);
		free(part);
		free(p);
	}
	assert_null(f.payload);
	assert_int_equal(f.len, 7);
}

static void
largest_frame_is_65535_octets(void **state)
{
	uint8_t *p = frame_of(65535);
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next(p, 65534, &f), 0);
	assert_int_equal(fpm_frame_next(p, 65535, &f), 65535);
	assert_int_equal(f.len, 65531);
	free(p);
}

static void
empty_frame_is_a_frame(void **state)
{
	uint8_t p[] = {1, 1, 0, 4};
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next(p, 4, &f), 4);
	assert_int_equal(f.len, 0);
}

static void
wrong_version_is_refused_at_once(void **state)
{
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next((const uint8_t *)"G", 1, &f), -EPROTO);
	assert_int_equal(fpm_frame_next((const uint8_t *)"\0\1\0\4", 4, &f), -EPROTO);
}

static void
protobuf_frame_is_refused(void **state)
{
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next((const uint8_t *)"\1\2", 2, &f), -EPROTO);
}

static void
length_below_the_header_is_refused(void **state)
{
	struct fpm_frame f;

	for (uint8_t len = 0; len < 4; len++) {
		uint8_t p[] = {1, 1, 0, len};

		assert_int_equal(fpm_frame_next(p, 4, &f), -EPROTO);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_frame_is_consumed_and_its_payload_found),
		cmocka_unit_test(octets_behind_the_frame_are_left_alone),
		cmocka_unit_test(every_shorter_prefix_of_a_frame_waits_for_more),
		cmocka_unit_test(largest_frame_is_65535_octets),
		cmocka_unit_test(empty_frame_is_a_frame),
		cmocka_unit_test(wrong_version_is_refused_at_once),
		cmocka_unit_test(protobuf_frame_is_refused),
		cmocka_unit_test(length_below_the_header_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
