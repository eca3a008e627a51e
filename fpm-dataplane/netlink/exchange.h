/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange: send a request to the kernel, and take the whole answer. Any thread that may
 * wait.
 */
#ifndef NETLINK_EXCHANGE_H
#define NETLINK_EXCHANGE_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nl_exchange {
	/*
	 * a netlink socket with SO_RCVTIMEO, the longest time between calls of is_ending()
	 */
	int fd;
	uint8_t *buffer; /* for one datagram of an answer */
	size_t buffer_bytes;
	unsigned int wait_ms; /* the longest wait for a datagram */
	uint32_t seq;         /* number of the last request */
	/* Return true if the thread ends, so that the exchange ends, too. */
	bool (*is_ending)(void *ctx);
	/* Take a message of the answer. Returns 0, or -errno to end the exchange. */
	int (*take)(const struct nlmsghdr *nlh, void *ctx);
	void *ctx;
	bool changed; /* out: the tables changed during the dump, which may lack entries */
};

/*
 * Send a request, and call take() for each message of the answer. Sets the sequence number
 * of the request. Returns 0, -ECANCELED if is_ending(), -ETIMEDOUT, -EMSGSIZE if a datagram
 * is larger than the buffer, the error of the kernel or that of take().
 */
int nl_exchange(struct nl_exchange *x, struct nlmsghdr *request);

#endif
