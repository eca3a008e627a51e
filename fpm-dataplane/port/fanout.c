/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's net_af_packet joins its sockets to a PACKET_FANOUT group with FLAG_DEFRAG, even a
 * single one: the kernel then reassembles IPv4 fragments before the port sees them, and cuts
 * to a ring slot what is then longer. A router must pass fragments on as they come. The PMD
 * has no option for it, so the program stands between it and libc (the linker exports this
 * symbol, see the Makefile) and takes the flag away; every other call goes through. Standing
 * there it also learns which socket is behind which queue, for the PMD tells nobody: each
 * queue's socket joins the group in turn. Nor does the PMD ask the kernel what found no room
 * in a ring: frames would be lost of which no counter tells. Any thread.
 */
#include "port/fanout.h"

#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread struct fanout_seen *seen;

void
fanout_learn(struct fanout_seen *into)
{
	seen = into;
	if (into != NULL)
		into->n = 0;
}

uint64_t
fanout_missed(int fd)
{
	struct tpacket_stats st = {0};
	socklen_t len = sizeof(st);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) < 0 ? 0
									    : st.tp_drops;
}

/*
 * The PMD makes the group's number of process and interface, and two daemons in a row (as when
 * one takes the place of another) may make the same of different ones: the kernel chooses.
 */
static unsigned int
fanout_group(unsigned int fanout)
{
	unsigned int first;
	socklen_t len = sizeof(first);

	if (seen == NULL)
		return fanout;
	if (seen->n == 0)
		return (fanout & 0xffff0000) | (unsigned int)PACKET_FANOUT_FLAG_UNIQUEID
						       << 16;
	if (getsockopt(seen->fd[0], SOL_PACKET, PACKET_FANOUT, &first, &len) < 0)
		return fanout;
	return (fanout & 0xffff0000) | (first & 0xffff);
}

int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	unsigned int fanout; /* id, and type and flags in the high half: packet(7) */

	if (level != SOL_PACKET || name != PACKET_FANOUT || len != sizeof(fanout))
		return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
	memcpy(&fanout, value, sizeof(fanout));
	fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << 16);
	fanout = fanout_group(fanout);
	if (seen != NULL && seen->n < FANOUT_QUEUES)
		seen->fd[seen->n++] = fd;
	return (int)syscall(SYS_setsockopt, fd, level, name, &fanout, len);
}
