/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: with SYSCTL_REFUSED in the environment, files below /proc/sys
 * are read-only for the program, as in the service unit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
open(const char *path, int flags, ...)
{
	unsigned int mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, unsigned int);
	va_end(ap);
	if (getenv("SYSCTL_REFUSED") != NULL && (flags & O_ACCMODE) != O_RDONLY &&
	    strncmp(path, "/proc/sys/", 10) == 0) {
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
