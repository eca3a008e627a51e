/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Note which blocks of code a program has entered. gcc's -fsanitize-coverage=trace-pc calls
 * __sanitizer_cov_trace_pc() at the start of each block. The notes are one octet for each 4
 * octets of code, in a file FOLDER/PROGRAM.PID that is mapped: they outlive a program that
 * is killed, and a reader may set them to 0 while it runs. Without FOLDER nothing is noted.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/tmp/plant-cover"

extern const char __executable_start[], etext[];

void __sanitizer_cov_trace_pc(void);

static volatile uint8_t *notes;

void
__sanitizer_cov_trace_pc(void)
{
	size_t at =
		(size_t)((const char *)__builtin_return_address(0) - __executable_start);

	/* Most blocks are entered many times: a write each time would be slower. */
	if (notes != NULL && notes[at / 4] == 0)
		notes[at / 4] = 1;
}

/* Run as the first of all constructors, before the daemon drops its privileges. */
__attribute__((constructor(101))) static void
notes_open(void)
{
	size_t bytes = (size_t)(etext - __executable_start) / 4 + 1;
	char path[256], exe[128] = "";
	const char *name;
	void *map;
	int fd;

	/* A program that starts itself again may give the new process another name. */
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return;
	name = strrchr(exe, '/');
	snprintf(path, sizeof(path), FOLDER "/%s.%d", name == NULL ? exe : name + 1,
		 (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (fchmod(fd, 0666) == 0 && ftruncate(fd, (off_t)bytes) == 0) {
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED)
			notes = map;
	}
	close(fd);
}
