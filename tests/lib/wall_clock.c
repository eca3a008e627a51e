/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: a test sets the wall clock of one program. WALL_CLOCK_OFFSET
 * names a file of eight octets: the seconds (host order, signed) that are added to the
 * time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("WALL_CLOCK_OFFSET");
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);

	if (map != MAP_FAILED)
		offset = map;
	if (fd >= 0)
		close(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (rc == 0 && clock == CLOCK_REALTIME && offset != NULL)
		now->tv_sec += *offset;
	return rc;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec t;
	int rc = clock_gettime(CLOCK_REALTIME, &t);

	now->tv_sec = t.tv_sec;
	now->tv_usec = t.tv_nsec / 1000;
	return rc;
}
