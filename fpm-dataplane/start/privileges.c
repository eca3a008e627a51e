/* SPDX-License-Identifier: BSD-3-Clause */
/* Drop privileges before the first thread is created. [main] */
#include "start/privileges.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/caps.h"
#include "base/log.h"
#include "base/sched.h"
#include "start/seccomp.h"

static int
capabilities_drop(bool real_time)
{
	uint64_t kept = CAPS_DAEMON;

	if (!sched_real_time_permit() && real_time)
		kept |= CAP_BIT(CAP_SYS_NICE);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return caps_keep(kept, 0);
}

int
privilege_drop(bool real_time)
{
	int rc = capabilities_drop(real_time);

	if (rc < 0) {
		log_error("main: privileges not dropped error=\"%s\"", strerror(-rc));
		return rc;
	}
	rc = syscalls_refuse();
	if (rc < 0)
		log_warn("main: system call filter not installed error=\"%s\"",
			 strerror(-rc));
	return 0;
}
