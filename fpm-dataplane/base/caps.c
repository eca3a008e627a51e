/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Change capabilities by direct system calls. A library for two calls would be more code
 * that runs as root.                                                                [main]
 */
#include "base/caps.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
caps_keep(uint64_t kept, uint64_t inherited)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[2];

	/*
	 * This needs CAP_SETPCAP, so do it before capset(). A capability that leaves the
	 * bounding set cannot come back.
	 */
	for (unsigned int cap = 0; cap < 64; cap++)
		if ((kept >> cap & 1) == 0 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (syscall(SYS_capget, &head, set) < 0)
		return -errno;
	for (unsigned int i = 0; i < 2; i++) {
		set[i].permitted &= (uint32_t)(kept >> 32 * i);
		set[i].effective = set[i].permitted;
		set[i].inheritable &= (uint32_t)(inherited >> 32 * i);
	}
	return syscall(SYS_capset, &head, set) < 0 ? -errno : 0;
}
