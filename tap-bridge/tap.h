/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: the kernel interface of a port. This code moves frames as bytes: it knows neither
 * routes nor DPDK.
 *
 * TAPs are persistent: they, their ifindex and addresses outlive the process. Opening an
 * existing TAP reattaches to it and changes only MAC, MTU and carrier. Frames have no
 * header of the kernel and no incomplete checksum.
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
	char name[IFNAMSIZ]; /* at the time of opening; it may be renamed, see tap_name() */
	char netns[64];
};

/*
 * Create or reattach TAP `name` in namespace `netns` (NULL or "": the caller's), set its
 * MAC and MTU, and set it up when it is new. The carrier is off until tap_carrier(). [any
 * thread]
 *
 * Returns 0 or -errno with everything undone: -EBUSY when another process has it open (a
 * second daemon), -EEXIST when an interface of that name is not a single-queue TAP, -ENOENT
 * no such namespace, -EINVAL the kernel refuses the name, MAC or MTU. *created (`created`
 * may be NULL): true for a new TAP, false for a reattached one.
 */
int tap_open(struct tap *tap, const char *name, const char *netns, const uint8_t mac[6],
	     unsigned int mtu_bytes, bool *created);

/*
 * Adopt the descriptor `fd` of a TAP that an earlier process opened with tap_open() and
 * that stayed open since. The TAP has kept its carrier; name, addresses, MAC, MTU and state
 * are as the operator left them, and frames that the kernel sent meanwhile wait to be read.
 * The descriptor leads to the same TAP as long as that exists, under any name.
 *                                                                         [any thread]
 *
 * Takes `fd` over. Returns 0, or -errno with `fd` closed: -ENODEV the interface was
 * deleted, -EXDEV it is in another namespace, -EINVAL not a TAP as tap_open() makes it.
 */
int tap_adopt(struct tap *tap, int fd, const char *netns);

/*
 * Open a descriptor without a TAP, as a descriptor is after its TAP was deleted: ifindex is
 * 0, and requests and frames return -EBADFD or -ENODEV until tap_move() gives its number to
 * a TAP. Returns 0 or -errno.                                             [any thread]
 */
int tap_open_without(struct tap *tap, const char *name, const char *netns);

/*
 * Read the present name of the TAP behind `fd`, in any namespace. Returns 0 or -errno,
 * -ENODEV.
 */
int tap_name(int fd, char name[IFNAMSIZ]);

/*
 * Move the descriptor to number `fd`. A thread that uses this number finds the old or the
 * new file, never none. The file that was open at `fd` is closed. Returns 0, or -errno with
 * nothing changed.
 */
int tap_move(struct tap *tap, int fd);

/* Set the MTU (SIOCSIFMTU). Returns 0 or -errno.                        [any thread] */
int tap_mtu(const struct tap *tap, unsigned int mtu_bytes);

/* Read the present MTU (SIOCGIFMTU). Returns it or -errno.              [any thread] */
int tap_mtu_now(const struct tap *tap);

/*
 * Set the speed and the duplex that the interface reports (ETHTOOL_SLINKSETTINGS); they
 * have no effect on frames. Returns 0 or -errno: -EOPNOTSUPP the kernel cannot do it.
 *                                                                         [any thread]
 */
int tap_speed(const struct tap *tap, unsigned int mbit_per_s, bool full_duplex);

/* Set the kernel's carrier (TUNSETCARRIER). Returns 0 or -errno. */
int tap_carrier(struct tap *tap, bool up);

/*
 * Read one frame into buf. Returns the number of octets, 0 when none is waiting, or -errno
 * (-EIO or -EBADFD when the interface was deleted or is down: the caller counts it and
 * tries again later).
 */
ssize_t tap_read(struct tap *tap, void *buf, size_t size);

/* Write one frame. Returns 0, or -errno: -EIO interface down, -EAGAIN queue full. */
int tap_write(struct tap *tap, const void *frame, size_t len);

/* Close the descriptor; the interface stays (persistent). */
void tap_close(struct tap *tap);

/*
 * Set the carrier of a TAP of which only the descriptor is known. tap_fd_destroy() closes
 * the descriptor, and makes the kernel delete the interface when no process has it open.
 * Both return 0 or -errno.
 */
int tap_fd_carrier(int fd, bool up);
int tap_fd_destroy(int fd);

/*
 * Close and delete the interface, even if others have it open: its name is free then. A TAP
 * that was moved to another namespace is deleted when its last descriptor is closed.
 * Returns 0 or -errno.
 */
int tap_destroy(struct tap *tap);

#endif
