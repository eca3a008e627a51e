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
capabilities_drop(void)
{
	uint64_t kept = CAPS_DAEMON;

	/* Thread bfd needs the one or the other for its priority. */
	if (!sched_real_time_permit())
		kept |= CAP_BIT(CAP_SYS_NICE);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return caps_keep(kept, 0);
}

int
privilege_drop(void)
{
	int rc = capabilities_drop();

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
