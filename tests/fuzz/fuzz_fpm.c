/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any octets into the frame cutter and the decoder: no crash, no over-read, sound events.
 *
 * A libFuzzer target (clang, -fsanitize=fuzzer,address,undefined). Built with
 * -DFUZZ_STANDALONE by any compiler, it is a program that replays the files FILE...:
 *
 *   gcc -DFUZZ_STANDALONE -fsanitize=address,undefined -D_GNU_SOURCE -Ifpm-dataplane \
 *       tests/fuzz/fuzz_fpm.c fpm-dataplane/fpm/{frame,decode}.c \
 *       fpm-dataplane/netlink/{hops,segments,message,kernel_message,rule_message}.c \
 *       fpm-dataplane/base/prefix.c -lmnl -o build/fuzz_fpm && build/fuzz_fpm FILE...
 *
 * An input is taken twice: as a stream of frames, and as the payload of one frame, so that
 * the fuzzer need not discover the header to reach netlink. Captured streams are a corpus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpm/decode.h"
#include "fpm/frame.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
sound(void *arg, const struct fpm_event *ev)
{
	struct prefix masked = ev->prefix;

	MUST(ev->kind >= FPM_ROUTE && ev->kind <= FPM_NEXTHOP_DEL);
	MUST((ev->n_hops == 0) == (ev->hops == NULL));
	if (ev->kind == FPM_ROUTE || ev->kind == FPM_ROUTE_DEL) {
		MUST(family_is_ip(masked.family) == (ev->table != FPM_TABLE_NONE));
		MUST(masked.len <= family_bits(masked.family));
		prefix_mask(&masked);
		MUST(prefix_equal(&masked, &ev->prefix));
	} else {
		MUST(ev->nhid != 0);
	}
	for (unsigned int i = 0; i < ev->n_hops; i++) {
		MUST(ev->hops[i].weight >= 1 && ev->hops[i].weight <= 65536);
		MUST(ev->hops[i].gw_family == 0 || ev->hops[i].gw_family == 4 ||
		     ev->hops[i].gw_family == 6);
	}
	free(ev->hops);
	++*(uint64_t *)arg;
	return 0;
}

/* Check that each message is counted: as an event, as skipped or as malformed. */
static void
decode(const struct fpm_frame *frame)
{
	struct fpm_decoded t = {0};
	uint64_t events = 0;

	MUST(fpm_decode(frame, sound, &events, &t) == 0);
	MUST(events == t.routes + t.route_dels + t.nexthops + t.nexthop_dels);
	MUST(t.messages <= events + t.skipped_route + t.skipped_type + t.malformed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/*
	 * `data` ends with its block, so that the sanitizer finds an over-read of one
	 * octet.
	 */
	struct fpm_frame frame = {.payload = data, .len = size};
	int n;

	if (size <= FPM_FRAME_MAX - FPM_HEADER_BYTES)
		decode(&frame);
	while ((n = fpm_frame_next(data, size, &frame)) > 0) {
		MUST((size_t)n <= size && frame.len + FPM_HEADER_BYTES == (size_t)n);
		decode(&frame);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

#ifdef FUZZ_STANDALONE
static int
replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (f == NULL || fseek(f, 0, SEEK_END) < 0 || (size = ftell(f)) < 0) {
		perror(path);
		return 1;
	}
	rewind(f);
	data = malloc(size > 0 ? (size_t)size : 1);
	if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size) {
		perror(path);
		return 1;
	}
	fclose(f);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 0;
}

int
main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	printf("replayed %d files\n", argc - 1);
	return failed;
}
#endif
