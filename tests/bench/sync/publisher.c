/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread in the daemon that publishes again and again, as the writer of a FIB would, and
 * records how long it takes until every reader has passed.
 */
#include "sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

struct sync_page *sync_page;

static void *
publisher_main(void *arg)
{
	struct sync_page *page = arg;

	pthread_setname_np(pthread_self(), "publisher");
	for (;;) {
		uint32_t every_us = page->every_us;
		struct timespec t = {.tv_nsec = 1000L * (every_us ? every_us : 1000)};
		uint64_t begin;

		nanosleep(&t, NULL);
		if (every_us == 0)
			continue;
		page->tsc_hz = rte_get_tsc_hz();
		begin = rte_rdtsc();
		sync_publish();
		page->took[page_slot(rte_rdtsc() - begin)]++;
		page->published++;
	}
	return NULL;
}

static __attribute__((constructor)) void
publisher_start(void)
{
	const char *path = getenv("SYNC_PAGE");
	int fd = path != NULL ? open(path, O_RDWR) : -1;
	void *mem = MAP_FAILED;
	pthread_t thread;

	if (fd >= 0)
		mem = mmap(NULL, sizeof(struct sync_page), PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	sync_page = mem;
	if (mem == MAP_FAILED || pthread_create(&thread, NULL, publisher_main, mem) != 0) {
		fprintf(stderr, "publisher: no SYNC_PAGE\n");
		exit(1);
	}
	close(fd);
}
