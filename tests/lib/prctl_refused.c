/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: in the program, prctl(2) fails for the option PRCTL_REFUSED.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
prctl(int option, ...)
{
	const char *refused = getenv("PRCTL_REFUSED");
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (refused != NULL && option == atoi(refused)) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}
