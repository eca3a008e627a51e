/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_if: the interface of the kernel behind a port of net_af_packet or net_af_xdp. The
 * kernel also receives the frames of the port there. With IPv6 on, the interface would have
 * the same MAC and link-local address as the TAP, and answer in place of the port.
 */
#ifndef PCI_KERNEL_IF_H
#define PCI_KERNEL_IF_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* Copy the interface that a device of DPDK uses (`iface=`); "": none. */
void kernel_if_of(const char *device, char name[IF_NAMESIZE]);

/*
 * Replace an alternative name of an interface in this network namespace by its primary
 * name, which messages of the kernel and /proc/sys have.
 */
void kernel_if_primary(char name[IF_NAMESIZE]);

/*
 * Turn IPv6 of an interface in this network namespace off. Returns 1 if it was on; 0 if it
 * was off, or if there is no such interface; -errno if it stays on.
 */
int kernel_if_ipv6_off(const char *name);

/* Turn IPv6 of the interface on again. */
void kernel_if_ipv6_on(const char *name);

/*
 * Return the index of an interface in this network namespace, by its primary or an
 * alternative name, or -errno; -ENODEV: there is no such interface. if_nametoindex() does
 * not report the error.
 */
int kernel_if_index(const char *name);

/*
 * Set an interface in this network namespace up or down. Does nothing if it is in that
 * state already. Returns 0 or -errno; -ENODEV: there is no such interface.
 */
int kernel_if_set_up(unsigned int ifindex, bool up);

/*
 * Read speed and duplex of an interface in this network namespace. Returns 0 or -errno;
 * -ENODATA: the driver does not know the speed; -EOPNOTSUPP: the driver reports none.
 */
int kernel_if_speed(unsigned int ifindex, uint32_t *mbit_per_s, bool *full_duplex);

#endif
