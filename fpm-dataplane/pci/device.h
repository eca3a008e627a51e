/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: PCI network devices and their drivers, as /sys shows them. `fpm-dataplane
 * --prepare` and `fpmctl device` give a device to vfio-pci, and fpmctl gives it back to the
 * kernel.
 *
 * `root` is the prefix of each path of /sys, /dev and /proc; it is "" except in unit tests.
 */
#ifndef PCI_DEVICE_H
#define PCI_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "pci/devargs.h"

struct device {
	char address[DEVICE_ADDRESS_STRLEN]; /* 0000:03:00.0 */
	unsigned int vendor, id;
	unsigned int class;       /* PCI Code and ID Assignment: 0x02.... is a NIC */
	char driver[64];          /* "": none */
	char ifname[IF_NAMESIZE]; /* the kernel's interface; "": none in this namespace */
	bool elsewhere;           /* the interface is in another network namespace */
	int node;                 /* NUMA node, -1: unknown */
	int group;                /* IOMMU group, -1: none */
	bool unprotected;         /* its group is in vfio's no-IOMMU mode */
};

/* The use that the machine makes of an interface, or of the interfaces above it. */
struct device_use {
	bool ssh, default_route, address;
	char by[IF_NAMESIZE];    /* the first interface with a use that bind refuses */
	char upper[IF_NAMESIZE]; /* first bond, bridge, VLAN, VRF above; "": none */
};

/* Read a PCI device from /sys. Return 0, or -ENODEV if it does not exist. */
int device_read(const char *root, const char *address, struct device *d);

/* Call each(d, ctx) for each PCI network device, in the order of addresses. */
void device_each(const char *root, void (*each)(const struct device *d, void *ctx),
		 void *ctx);

bool device_is_nic(const struct device *d);
/*
 * Return true if DPDK uses the device together with this driver, and the kernel keeps the
 * device.
 */
bool device_is_shared(const char *driver);
/* Return true if DPDK can use a device that has this driver. */
bool device_serves_dpdk(const char *driver);
/*
 * Return true if a uio driver has the device. uio has one interrupt per device, none per
 * queue.
 */
bool device_is_uio(const struct device *d);
/*
 * Return true if the device writes to physical addresses and no IOMMU translates or
 * restricts them: it has a uio driver, or is in vfio's no-IOMMU mode.
 */
bool device_is_unprotected(const struct device *d);
/* Return true if vfio is configured to give processes devices without an IOMMU. */
bool device_vfio_is_unsafe(const char *root);
/*
 * Return true if a process has the device open, through vfio or uio. Only root can check
 * this; for other users the result is false.
 */
bool device_is_open(const char *root, const struct device *d);
/*
 * Return a process other than this one and `predecessor` (0: none) that has the device open
 * through uio; 0: none is found, or the driver is another one. vfio refuses a second
 * process.
 */
pid_t device_uio_user(const char *root, const struct device *d, pid_t predecessor);

/*
 * Return true if a driver of the kernel has a device of the same IOMMU group, with that
 * device in `by`. vfio then gives no device of the group to a process.
 */
bool device_group_is_held(const char *root, const struct device *d, struct device *by);

/*
 * Check in /sys whether DPDK can use the device at `address`, and read the device into `d`.
 *
 * Return 0, or with a sentence in `why`
 *   -ENODEV  there is no such PCI device
 *   -EINVAL  it is not a NIC
 *   -EBUSY   a driver of the kernel has it, or it is open already
 *   -ENXIO   no driver has it
 *   -EPERM   vfio does not give its IOMMU group to a process
 */
int device_check(const char *root, const char *address, struct device *d, char *why,
		 size_t why_size);

/*
 * Find the uses of an interface of this network namespace. An address or a route that
 * cannot be examined counts as a use. An SSH session counts only if this process can see
 * it.
 */
void device_use_of(const char *ifname, struct device_use *use);
/*
 * Write a sentence with the reason not to take the interface to `why`. Return false if the
 * machine does not use it.
 */
bool device_use_text(const char *ifname, const struct device_use *use, char *why,
		     size_t why_size);

/*
 * Give a device to vfio-pci, and read it into `d` again. vfio-pci may be a module that has
 * to be loaded. `force`: even if the machine uses the interface of the device. [root]
 *
 * Return 0 (also if vfio-pci has it already), or with a sentence in `why`
 *   -EINVAL   it is not a NIC, or does not need vfio-pci
 *   -EBUSY    the machine uses it, as far as this process can see
 *   -EPERM    a process has it open through uio, whatever `force` is
 *   -ENOTSUP  there is no vfio-pci, or no IOMMU for the device
 *   -EIO      vfio-pci did not take it; the kernel's driver was asked to take it back
 * Only -EIO means that something has changed.
 */
int device_bind(const char *root, struct device *d, bool force, char *why, size_t why_size);

/*
 * Check whether device_bind() can start with all `n` devices of `d`. Return 0, or the error
 * that it would return for the device with index *at. No device changes its driver.
 * vfio-pci is loaded if no device is refused for its kind or its use. [root]
 */
int device_bind_check(const char *root, const struct device *d, unsigned int n, bool force,
		      unsigned int *at, char *why, size_t why_size);

/*
 * Give a device back to the kernel's driver for it, which may be a module, too. [root]
 *
 * Return 0 (also if the kernel has it already), or with a sentence in `why`
 *   -EINVAL  it is not a NIC
 *   -EBUSY   a process has it open: the kernel would wait until that process ends
 *   -EIO     no driver of the kernel took it
 */
int device_unbind(const char *root, struct device *d, char *why, size_t why_size);

/*
 * Check whether device_unbind() can start. Return 0 or its error. No device changes its
 * driver. [root]
 */
int device_unbind_check(const char *root, const struct device *d, char *why,
			size_t why_size);

#endif
