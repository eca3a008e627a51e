/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: the kernel's twin of a port. Frames are bytes; this file knows no routes, no DPDK.
 *
 * TAPs are persistent: they, their ifindex and addresses outlive the process; opening an
 * existing one re-attaches to it and changes nothing but MAC, MTU and carrier. Frames carry
 * no header of the kernel's and no unfinished checksum.
 */
#ifndef TAP_BRIDGE_TAP_H
#define TAP_BRIDGE_TAP_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tap {
	int fd;               /* non-blocking; -1: closed */
	unsigned int ifindex; /* in its own namespace */
	char name[IFNAMSIZ];  /* when it was opened: it may be renamed, see tap_name() */
	char netns[64];
};

/*
 * Create or re-attach TAP `name` in namespace `netns` (NULL or "": ours), set its MAC and
 * MTU, bring it admin-up when it is new, carrier off until tap_carrier().  [any thread]
 *
 * Returns 0 or -errno with everything undone: -EBUSY when another process holds it (a
 * second daemon), -EEXIST when an interface of that name is not a single-queue TAP, -ENOENT
 * no such namespace, -EINVAL a name, MAC or MTU the kernel refuses. `created` (may be NULL)
 * tells a new TAP from a re-attached one.
 */
int tap_open(struct tap *tap, const char *name, const char *netns, const uint8_t mac[6],
	     unsigned int mtu_bytes, bool *created);

/*
 * Go on with the descriptor `fd` of a TAP that an earlier process had from tap_open() and
 * somebody kept open: carrier never went, addresses, MAC, MTU, state and the name are as the
 * operator left them, and what the kernel sent meanwhile waits to be read. The descriptor
 * leads to the TAP that it was opened for as long as that lives, whatever it is called.
 *                                                                            [any thread]
 * Takes `fd` over. Returns 0 or -errno with it closed: -ENODEV the interface was deleted,
 * -EXDEV it is in another namespace, -EINVAL not a TAP of our kind.
 */
int tap_adopt(struct tap *tap, int fd, const char *netns);

/* What the TAP behind `fd` is called now, wherever it is. Returns 0 or -errno, -ENODEV. */
int tap_name(int fd, char name[IFNAMSIZ]);

/*
 * Put its descriptor at number `fd`, in one step for all who use that number; what was open
 * there is closed. Returns 0 or -errno with nothing changed.
 */
int tap_move(struct tap *tap, int fd);

/* Give it an MTU (SIOCSIFMTU). Returns 0 or -errno.                     [any thread] */
int tap_mtu(const struct tap *tap, unsigned int mtu_bytes);

/* Drive the kernel's carrier (TUNSETCARRIER). Returns 0 or -errno. */
int tap_carrier(struct tap *tap, bool up);

/*
 * Read one frame into buf. Returns octets, 0 when none is waiting, -errno (-EIO or -EBADFD
 * when the interface was deleted or is down: counted by the caller, tried again later).
 */
ssize_t tap_read(struct tap *tap, void *buf, size_t size);

/* Write one frame. Returns 0, or -errno: -EIO interface down, -EAGAIN queue full. */
int tap_write(struct tap *tap, const void *frame, size_t len);

/* Detach; the interface stays (persistent). */
void tap_close(struct tap *tap);

/*
 * Close and delete the interface for good, whoever else has it open: its name is free. One that
 * somebody moved to another namespace goes when nobody has it open any more. Returns 0 or -errno.
 */
int tap_destroy(struct tap *tap);

#endif
