/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: the path of a socket on which DPDK listens: of net_vhost, for a virtual machine,
 * and of a server of net_memif (`role=server,socket-abstract=no`).
 */
#ifndef PCI_VHOST_H
#define PCI_VHOST_H

#include <stddef.h>

/*
 * Prepare the path of the socket that a device makes. Remove a socket that no process has.
 * A daemon that was killed leaves one, which DPDK does not replace. Returns 0, also for
 * other devices; or -errno with a sentence in `why` if DPDK cannot make the socket.
 */
int listener_prepare(const char *device, char *why, size_t why_size);

#endif
