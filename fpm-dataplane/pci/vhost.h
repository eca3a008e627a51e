/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost: the socket of net_vhost, on which DPDK listens for a virtual machine. */
#ifndef PCI_VHOST_H
#define PCI_VHOST_H

#include <stddef.h>

/*
 * Prepare the path of the socket that a device of net_vhost makes. Remove a socket on which
 * no process listens. A daemon that was killed leaves one, and DPDK reports it as an error.
 * Returns 0, also for other devices; or -EBUSY with a sentence in `why` if a process
 * listens.
 */
int vhost_prepare(const char *device, char *why, size_t why_size);

#endif
