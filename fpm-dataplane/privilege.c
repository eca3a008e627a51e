/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities by the bare system calls (capabilities(7)): a library for two of them would
 * be one more thing that runs as root.                                           [main]
 */
#include "privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "syscalls.h"

/* Why each: SECURITY.md, "What it may do". */
static const uint64_t kept = 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW |
			     1ull << CAP_SYS_ADMIN | 1ull << CAP_IPC_LOCK |
			     1ull << CAP_SYS_RAWIO;

static int
drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[2];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* While we still may: what is out of the bounding set never comes back. */
	for (unsigned int cap = 0; cap < 64; cap++)
		if ((kept >> cap & 1) == 0 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (syscall(SYS_capget, &head, set) < 0)
		return -errno;
	for (unsigned int i = 0; i < 2; i++) {
		set[i].permitted &= (uint32_t)(kept >> 32 * i);
		set[i].effective = set[i].permitted;
		set[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, set) < 0 ? -errno : 0;
}

int
privilege_drop(void)
{
	int rc = drop();

	if (rc < 0) {
		log_error("main: privileges not dropped error=%s", strerror(-rc));
		return rc;
	}
	rc = syscalls_refuse();
	if (rc < 0)
		log_warn("main: system calls not refused error=%s", strerror(-rc));
	return 0;
}
