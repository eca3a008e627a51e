/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_dump: request a table of the kernel by rtnetlink(7), and read the whole answer. */
#ifndef CTL_KERNEL_DUMP_H
#define CTL_KERNEL_DUMP_H

#include <linux/netlink.h>
#include <stdint.h>

/* A reader of a dump. */
struct dump_reader {
	/* Called before each answer, to discard the messages of an interrupted answer. */
	void (*on_begin)(void *ctx);
	/*
	 * Called for each object. Returns 0, or -errno, which ends the dump. NULL: objects
	 * are ignored.
	 */
	int (*on_message)(const struct nlmsghdr *h, void *ctx);
	void *ctx;
};

/*
 * Request a dump in the present network namespace. `type` is RTM_GETROUTE or another
 * request whose header begins with the address family `af` and has `header_bytes`.
 *
 * Returns 0 after the whole answer. -EINTR: changes of the table have interrupted each of
 * several answers; -ENODATA: the answer has no end; -ETIMEDOUT: the kernel does not answer;
 * otherwise the -errno of the kernel or of on_message().
 */
int kernel_dump(uint16_t type, uint8_t af, unsigned int header_bytes,
		const struct dump_reader *to);

/* Request a dump of all interfaces, like kernel_dump(). */
int kernel_dump_links(const struct dump_reader *to);

/*
 * Request a dump of the routes of one of the tables 1 to 255, as kernel_dump(). Linux
 * before 4.20 shows all tables.
 */
int kernel_dump_table(uint8_t af, uint8_t table, const struct dump_reader *to);

/*
 * Look up an IPv4 address, in host order, in the routes of the kernel. The answer is one
 * message RTM_NEWROUTE, which has the number of the table. `to` and the result are those of
 * kernel_dump().
 */
int kernel_lookup4(uint32_t addr, const struct dump_reader *to);

/*
 * Read one answer to request `seq` from a socket that preserves message boundaries. Other
 * arguments and results as of kernel_dump(); -EINTR: the kernel reports that the table
 * changed.
 */
int kernel_dump_read(int fd, uint32_t seq, const struct dump_reader *to);

#endif
