/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach: attach a device to DPDK. The EAL reports a failure by a number that several
 * causes share. For a NIC, /sys shows the cause. Runs in main at the start, in manage
 * later.
 */
#include "port/attach.h"

#include <errno.h>
#include <stdbool.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "base/errmsg.h"
#include "base/log.h"
#include "pci/device.h"
#include "port/claim.h"

static int
attach_refused(const char *name, int rc, char *why, unsigned int why_size)
{
	char address[DEVICE_ADDRESS_STRLEN];
	struct device d;
	int found;

	if (!device_address(name, address))
		return why_not(why, why_size, rc,
			       "no such device, or its driver refuses it");
	found = device_check("", address, &d, why, why_size);
	/*
	 * DPDK has no driver for the device, so it did not try to open the device by vfio.
	 * Another user of the device or of its group, which device_check() may have found,
	 * is not the cause.
	 */
	if (rc == -ENOTSUP && device_serves_dpdk(d.driver))
		return why_not(why, why_size, rc,
			       "DPDK has no driver for %s (%04x:%04x), which is bound to "
			       "%s; `plugins:` can add drivers",
			       address, d.vendor & 0xffff, d.id & 0xffff, d.driver);
	if (found < 0)
		return found;
	/* The EAL chose physical or virtual addresses once, at its start. */
	if (device_is_unprotected(&d) && rte_eal_iova_mode() != RTE_IOVA_PA)
		return why_not(
			why, why_size, rc,
			"%s is bound to %s without an IOMMU and needs physical addresses, "
			"but DPDK uses virtual ones, as it does without memory.hugepages "
			"or with an IOMMU; on a machine with an IOMMU `fpmctl device bind "
			"%s` uses it",
			address, d.driver, address);
	return why_not(why, why_size, rc,
		       "DPDK's driver refuses %s (%04x:%04x), which is bound to %s; "
		       "the log has the driver's message",
		       address, d.vendor & 0xffff, d.id & 0xffff, d.driver);
}

bool
attach_is_by_uio(uint16_t port_id)
{
	char name[RTE_ETH_NAME_MAX_LEN], address[DEVICE_ADDRESS_STRLEN];
	struct device d;

	return rte_eth_dev_get_name_by_port(port_id, name) == 0 &&
	       device_address(name, address) && device_read("", address, &d) == 0 &&
	       device_is_uio(&d);
}

/*
 * Return true if the device is attached in this process. The name alone is no proof,
 * because all processes that share DPDK know it.
 */
static bool
device_is_attached(const char *name, uint16_t *port_id)
{
	return rte_eth_dev_get_port_by_name(name, port_id) == 0 &&
	       rte_eth_dev_is_valid_port(*port_id);
}

/*
 * Log that another process has the device open. The kernel gives a device of uio to any
 * number of processes, and DPDK does not ask.
 */
static void
attach_warn_of_user(const char *name)
{
	char address[DEVICE_ADDRESS_STRLEN];
	struct device d;
	pid_t user;

	if (!device_address(name, address) || device_read("", address, &d) < 0)
		return;
	user = device_uio_user("", &d, claim_allowed());
	if (user != 0)
		log_warn("port: device open in another process device=%s pid=%d "
			 "effect=\"both drive it: frames are lost or forwarded twice\"",
			 address, user);
}

/* A function that attaches the device: 0 or -errno. */
typedef int probe_fn(const char *devargs);

static int
device_attach_by(probe_fn *probe, const char *devargs, const char *name, uint16_t *port_id,
		 char *why, unsigned int why_size)
{
	int rc;

	/*
	 * The EAL attaches no device at its start, so a device that is attached belongs to
	 * a port.
	 */
	if (device_is_attached(name, port_id))
		return why_not(
			why, why_size, -EBUSY,
			"%s is the device of a port that runs; remove that port first "
			"(`port del`) or give it another device",
			name);
	attach_warn_of_user(name);
	rc = probe(devargs);
	if (rc < 0)
		return attach_refused(name, rc, why, why_size);
	if (!device_is_attached(name, port_id))
		return why_not(why, why_size, -ENODEV, "%s was attached but has no port",
			       name);
	return 0;
}

int
attach(const char *devargs, const char *name, uint16_t *port_id, char *why,
       unsigned int why_size)
{
	return device_attach_by(rte_dev_probe, devargs, name, port_id, why, why_size);
}

/* Attach a device as the EAL does at its start with an allowed device. */
static int
probe_here(const char *devargs)
{
	struct rte_devargs da;
	uint16_t port_id;
	int rc = rte_devargs_add(RTE_DEVTYPE_ALLOWED, devargs);

	if (rc < 0)
		return rc;
	rc = rte_bus_scan();
	if (rc == 0)
		rc = rte_bus_probe();
	if (rte_devargs_parse(&da, devargs) < 0)
		return -EINVAL;
	if (device_is_attached(da.name, &port_id)) {
		rc = 0; /* the device is attached, so an error is about another device */
	} else {
		rte_devargs_remove(&da); /* else each later probe tries it again */
		rc = rc < 0 ? rc : -ENODEV;
	}
	rte_devargs_reset(&da);
	return rc;
}

int
attach_here(const char *devargs, const char *name, uint16_t *port_id, char *why,
	    unsigned int why_size)
{
	return device_attach_by(probe_here, devargs, name, port_id, why, why_size);
}
