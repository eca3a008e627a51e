/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of zebra with labels, recorded with a kernel that has MPLS: LDP, segment routing,
 * L3VPN. The streams are in tests/unit/captures. Each frame is a line in hex. The line
 * below it has the events of the frame, as tests/lab/fpm_text.py decodes it.
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c fpm-dataplane/base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <glob.h>
#include <cmocka.h>

#include "test_fpm_events.h"

#define CAPTURES  "tests/unit/captures/*.hex"
#define FRAME_MAX 4096

/*
 * Counts over all captures. The test fails if a kind is missing. of_interface: hops that
 * pop the label and have an interface without a gateway.
 */
struct found {
	unsigned int frames, labels, pops, stacks, of_interface;
};

static size_t
unhex(const char *line, uint8_t *octet)
{
	unsigned int value;
	size_t n = 0;

	for (; n < FRAME_MAX && sscanf(line + 2 * n, "%2x", &value) == 1; n++)
		octet[n] = (uint8_t)value;
	return n;
}

static int
see_labels(void *arg, const struct fpm_event *ev)
{
	struct found *found = arg;

	found->labels += ev->prefix.family == FAMILY_LABEL && ev->kind == FPM_ROUTE;
	for (unsigned int i = 0; i < ev->n_hops && !ev->is_group; i++) {
		found->pops += ev->hops[i].encap == HOP_POP;
		found->stacks += ev->hops[i].n_labels > 1;
		found->of_interface += ev->hops[i].encap == HOP_POP &&
				       ev->hops[i].gw_family == 0 &&
				       ev->hops[i].ifindex != 0;
	}
	free(ev->hops);
	return 0;
}

/* Decode one frame, compare its events with `expected`, and count. */
static void
check_frame(const char *where, unsigned int line, const uint8_t *octet, size_t len,
	    const char *expected, struct found *found)
{
	struct seen seen = decode_stream(octet, len);
	struct fpm_decoded decoded = {0};
	struct fpm_frame f;

	if (strcmp(seen.text.s, expected) != 0)
		print_message("%s:%u\n", where, line);
	assert_string_equal(seen.text.s, expected);
	assert_int_equal(seen.decoded.malformed + seen.decoded.skipped_route, 0);
	free(seen.text.s);
	assert_int_equal(fpm_frame_next(octet, len, &f), len);
	assert_int_equal(fpm_decode(&f, see_labels, found, &decoded), 0);
	found->frames++;
}

static void
check_capture(const char *path, struct found *found)
{
	FILE *file = fopen(path, "r");
	uint8_t octet[FRAME_MAX];
	unsigned int at = 0;
	char *line = NULL;
	size_t size = 0, len = 0;

	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		at++;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '=' || line[0] == '\0')
			continue;
		if (line[0] != '\t') {
			len = unhex(line, octet);
			assert_int_equal(strlen(line), 2 * len);
			continue;
		}
		assert_int_not_equal(len, 0);
		check_frame(path, at, octet, len, strcmp(line, "\t-") == 0 ? "" : line + 1,
			    found);
		len = 0;
	}
	assert_int_equal(len, 0);
	free(line);
	fclose(file);
}

static void
every_frame_with_labels_decodes_as_its_text(void **state)
{
	struct found found = {0};
	glob_t files;

	assert_int_equal(glob(CAPTURES, 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_capture(files.gl_pathv[i], &found);
	globfree(&files);
	print_message(
		"%u frames: %u routes of labels, %u hops that pop, %u of them into an "
		"interface, %u stacks\n",
		found.frames, found.labels, found.pops, found.of_interface, found.stacks);
	assert_true(found.frames > 0 && found.labels > 0 && found.pops > 0);
	assert_true(found.of_interface > 0 && found.stacks > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_with_labels_decodes_as_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
