/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: in the program, the kernel makes no memory executable, as under
 * MemoryDenyWriteExecute of systemd.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int
mprotect(void *addr, size_t len, int prot)
{
	if ((prot & PROT_EXEC) != 0) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, addr, len, prot);
}
