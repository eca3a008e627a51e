/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For who is in haste: whatever poll(2) is to wait for at most, it waits for a tenth of that:
 * LD_PRELOAD this. Tests see so in seconds what a program says after half a minute.
 */
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int
poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return (int)syscall(SYS_poll, fds, n,
			    timeout_ms > 0 ? timeout_ms / 10 : timeout_ms);
}
