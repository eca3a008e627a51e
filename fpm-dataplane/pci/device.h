/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: PCI network devices, as /sys has them, and which driver each has. To give one to
 * vfio-pci and back to the kernel is `fpm-dataplane --prepare`'s and `fpmctl device`'s.
 *
 * `root` stands before each path of /sys and /dev; it is "" but in unit tests.
 */
#ifndef PCI_DEVICE_H
#define PCI_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "pci/devargs.h"

struct device {
	char address[DEVICE_ADDRESS_STRLEN]; /* 0000:03:00.0 */
	unsigned int vendor, id;
	unsigned int class;       /* PCI Code and ID Assignment: 0x02.... is a NIC */
	char driver[64];          /* "": none */
	char ifname[IF_NAMESIZE]; /* the kernel's interface; "": none here */
	bool elsewhere;           /* the interface is in another network namespace */
	int node;                 /* NUMA, -1: not told */
	int group;                /* IOMMU group, -1: none */
	bool unprotected;         /* a group of vfio's no-IOMMU mode */
};

/* What the machine itself uses an interface for, or whatever stands above it. */
struct device_use {
	bool ssh, default_route, address;
	char by[IF_NAMESIZE]; /* the interface of which that is true */
	char upper
		[IF_NAMESIZE]; /* bond, bridge, VLAN, VRF ... of which it is part; "": none */
};

/* What /sys tells of a PCI device. Returns 0, or -ENODEV when there is none. */
int device_read(const char *root, const char *address, struct device *d);

/* Call each(d, ctx) for every network device on PCI, in the order of their addresses. */
void device_each(const char *root, void (*each)(const struct device *d, void *ctx),
		 void *ctx);

bool device_is_nic(const struct device *d);
/* Does the driver leave the device to the kernel, and DPDK works beside it? */
bool device_is_shared(const char *driver);
/* Is it, as it is now, a driver that DPDK works with? */
bool device_serves_dpdk(const char *driver);
/* Has a driver of Linux's uio it? That one has an interrupt a device, none a queue. */
bool device_is_uio(const struct device *d);
/*
 * Does it write where it is told, by physical addresses, with no IOMMU that translates or
 * forbids? As it is now: uio, or vfio in its no-IOMMU mode.
 */
bool device_is_unprotected(const struct device *d);
/* Would vfio, as it is set now, give away devices without an IOMMU? */
bool device_vfio_is_unsafe(const char *root);
/* Has a process opened it, by vfio or uio? Only root finds out: to others it never is. */
bool device_is_open(const char *root, const struct device *d);

/*
 * Is there another device in its IOMMU group that a driver of the kernel has? Then vfio gives
 * no process any of them.
 */
bool device_group_is_held(const char *root, const struct device *d, struct device *by);

/*
 * What stands against the device at `address` being DPDK's, as /sys has it; `d` is what is
 * known of it. Returns 0 when nothing does, or with a sentence in `why`
 *   -ENODEV  there is no such PCI device
 *   -EINVAL  it is no NIC
 *   -EBUSY   a driver of the kernel has it, or another process
 *   -ENXIO   no driver has it
 *   -EPERM   vfio gives nobody its IOMMU group
 */
int device_check(const char *root, const char *address, struct device *d, char *why,
		 size_t why_size);

/* What an interface of this network namespace is used for; what cannot be seen counts. */
void device_use_of(const char *ifname, struct device_use *use);
/* One sentence of it, why the interface should be left alone; false: nothing uses it. */
bool device_use_text(const char *ifname, const struct device_use *use, char *why,
		     size_t why_size);

/*
 * Give a device to vfio-pci, which may be a module that has to be loaded; `d` is then as it
 * is now. With `force` even when the machine uses its interface.                     [root]
 *
 * Returns 0 (so, too, when vfio-pci has it already), or with a sentence in `why`
 *   -EINVAL   it is no NIC, or needs no vfio-pci
 *   -EBUSY    the machine uses it, as far as can be seen
 *   -EPERM    a process has it by uio, --force or not
 *   -ENOTSUP  there is no vfio-pci, or no IOMMU for the device
 *   -EIO      vfio-pci did not take it; it has been given back
 * Nothing has changed but after -EIO.
 */
int device_bind(const char *root, struct device *d, bool force, char *why, size_t why_size);

/*
 * Would device_bind() begin with all `n` of `d`? Returns 0, or what it would return for the
 * one with index *at. Moves none; vfio-pci is loaded when none is refused for what it is or
 * is used for.                                                                     [root]
 */
int device_bind_check(const char *root, const struct device *d, unsigned int n, bool force,
		      unsigned int *at, char *why, size_t why_size);

/*
 * Give it to the driver that the kernel has for it, which may be a module as well. [root]
 *
 * Returns 0 (so, too, when the kernel has it already), or with a sentence in `why`
 *   -EINVAL  it is no NIC
 *   -EBUSY   a process has it open: the kernel would wait for that one to end
 *   -EIO     no driver of the kernel took it
 */
int device_unbind(const char *root, struct device *d, char *why, size_t why_size);

/* Would that begin? Returns 0 or as it would; moves nothing.                       [root] */
int device_unbind_check(const char *root, const struct device *d, char *why,
			size_t why_size);

#endif
