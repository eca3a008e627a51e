/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fanout: replace setsockopt() to change how DPDK's net_af_packet joins PACKET_FANOUT
 * groups. The linker exports this symbol, see the Makefile. All other calls go through to
 * the kernel. Runs in any thread.
 *
 * The PMD joins each socket to a group with FLAG_DEFRAG, even a single one. The kernel then
 * reassembles IPv4 fragments before the port receives them, and truncates a longer packet
 * to a ring slot. A router must forward fragments unchanged. The PMD has no option for it,
 * so this function clears the flag.
 *
 * It also records which socket belongs to which queue, because the PMD does not report it.
 * The sockets join the group in the order of the queues. The PMD does not read the kernel's
 * count of frames that found no room in a ring, either. fanout_missed() reads it, so that
 * these frames are counted.
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
 * Return the group argument with a group id that no other daemon uses. The PMD derives the
 * id from process and interface. Two daemons, one after the other, may derive the same id
 * for different interfaces. So the kernel chooses the id.
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
	unsigned int fanout; /* id; type and flags in the high half: packet(7) */

	if (level != SOL_PACKET || name != PACKET_FANOUT || len != sizeof(fanout))
		return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
	memcpy(&fanout, value, sizeof(fanout));
	fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << 16);
	fanout = fanout_group(fanout);
	if (seen != NULL && seen->n < FANOUT_QUEUES)
		seen->fd[seen->n++] = fd;
	return (int)syscall(SYS_setsockopt, fd, level, name, &fanout, len);
}
