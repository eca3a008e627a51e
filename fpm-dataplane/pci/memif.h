/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memif: check whether the server of a port runs, if the port is a client of net_memif
 * (`role=client`, the default). DPDK's client connects when its device is started, and
 * never again.
 */
#ifndef PCI_MEMIF_H
#define PCI_MEMIF_H

#include <stdbool.h>
#include <stddef.h>

/* Return true if the device is a client of net_memif. */
bool memif_is_client(const char *device);

/*
 * Write the path of the socket that the device makes to `path`. Return false if it is no
 * server of net_memif, or if its socket is abstract, and so has no path.
 */
bool memif_server_path(const char *device, char *path, size_t size);

enum memif_server {
	MEMIF_AWAY,    /* no program listens */
	MEMIF_MUTE,    /* a program listens, but sent nothing */
	MEMIF_LISTENS, /* a server has sent its first message */
};

/*
 * Connect to the server of the client `device`, wait up to 200 ms for the server's first
 * message, and close the connection. A server of DPDK 22.11 panics if a client closes the
 * connection before that message.                                             [any thread]
 */
enum memif_server memif_server(const char *device);

/*
 * Return true if the device is a client that cannot be opened yet, because its server does
 * not run, or does not send its first message.
 */
bool memif_waits(const char *device);

#endif
