/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run the corpus of the fuzzer once, with any compiler: inputs that found a fault still
 * pass, and the RIB is consistent after each input. The invariants are tested, too: they
 * must find a RIB that is not consistent.
 *
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c
 * link: fpm-dataplane/fpm/queue.c tests/unit/rib_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c
 * link: tests/unit/rib_stream.c tests/unit/grace.c tests/unit/rib_print.c
 * link: tests/fuzz/fuzz_fpm_rib.c tests/fuzz/invariants.c
 */
#include "rib_rig.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fuzz/invariants.h"
#include "grace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void fuzz_end(void);

/* Convert hex digits to octets in place. Return their number. */
static size_t
unhex(char *line)
{
	size_t n = 0;
	unsigned int octet;

	for (; sscanf(line + 2 * n, "%2x", &octet) == 1; n++)
		line[n] = (char)octet;
	return n;
}

static unsigned int
play_file(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned int inputs = 0;
	char *line = NULL;
	size_t size = 0;

	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		uint8_t *input;
		size_t n;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		n = unhex(line);
		assert_int_not_equal(n, 0);
		/* Exact size: the sanitizer sees a read beyond the end. */
		input = malloc(n);
		assert_non_null(input);
		memcpy(input, line, n);
		assert_int_equal(LLVMFuzzerTestOneInput(input, n), 0);
		free(input);
		inputs++;
	}
	free(line);
	fclose(f);
	return inputs;
}

static void
the_corpus_leaves_the_rib_sound_and_empty(void **state)
{
	unsigned int inputs = play_file("tests/fuzz/corpus/fpm_rib.hex");

	fuzz_end();
	print_message("%u inputs\n", inputs);
	assert_true(inputs > 50);
}

static bool
is_sound(struct rig *g)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		rib_must_be_sound(g);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Each of these is a mistake that the code could make. */
static void
an_inconsistent_rib_is_found(void **state)
{
	struct rig *g = rig_two_ports();
	struct slot *s;
	struct nh *nh;
	uint64_t word;

	rig_session(g, 1);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_hop(g, 2, "192.0.2.129", 12);
	rig_group(g, 3, 2, 1u, 1u, 2u, 1u);
	rig_route(g, "198.51.100.0/24", 3);
	rig_settle(g);
	assert_true(is_sound(g));
	nh = nh_find(g->rib, 3);
	s = slot_at(&g->rib->slots, nh->slot);

	s->refs++; /* a reference too many */
	assert_false(is_sound(g));
	s->refs--;
	nh->slot = 0; /* an id without its slot */
	assert_false(is_sound(g));
	nh->slot = s->number;
	g->rib->adjs.v[s->leg[0].adj].refs++;
	assert_false(is_sound(g));
	g->rib->adjs.v[s->leg[0].adj].refs--;
	word = g->fib->group[s->number]; /* a word that leads elsewhere */
	g->fib->group[s->number] = group_word_single(PATH(PATH_LOCAL, 0));
	assert_false(is_sound(g));
	g->fib->group[s->number] = word;
	g->rib->table_counts.stale++;
	assert_false(is_sound(g));
	g->rib->table_counts.stale--;
	assert_true(is_sound(g));
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_corpus_leaves_the_rib_sound_and_empty),
		cmocka_unit_test(an_inconsistent_rib_is_found),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("rib corpus", tests, NULL, NULL);
}
