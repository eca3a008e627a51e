/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpm-dataplane --prepare`, which the service unit runs with full privileges before each
 * start: reserve hugepages, give NICs to vfio-pci (pci/device.c), and turn IPv6 off on
 * kernel interfaces of ports. It is a process of its own, which then ends. [main]
 */
#include "start/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "pci/device.h"
#include "pci/kernel_if.h"
#include "base/sysfs.h"

#define HUGE_2M "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/* --- hugepages ------------------------------------------------------------------------ */

/*
 * Reserve as many free hugepages as `memory.size-mib` takes. Pages of a running daemon do
 * not count, because its successor needs other pages. The request may exceed the memory:
 * the kernel then reserves the contiguous pages that it finds.
 */
static int
hugepages_reserve(const struct config *conf)
{
	long long want = (long long)(conf->memory_mib + 1) / 2;
	long long total = sysfs_read_number(HUGE_2M "nr_hugepages", -1);
	long long unused = sysfs_read_number(HUGE_2M "free_hugepages", -1);
	char text[32];

	if (total < 0 || unused < 0) {
		log_error("prepare: kernel without hugepages size_mib=2");
		return 1;
	}
	if (unused >= want)
		return 0;
	snprintf(text, sizeof(text), "%lld", total + want - unused);
	/* The number of free pages shows the result. */
	(void)sysfs_write(HUGE_2M "nr_hugepages", text);
	unused = sysfs_read_number(HUGE_2M "free_hugepages", -1);
	log_info("prepare: hugepages reserved before=%lld now=%lld free=%lld", total,
		 sysfs_read_number(HUGE_2M "nr_hugepages", -1), unused);
	if (unused >= want)
		return 0;
	log_error("prepare: too few hugepages free=%lld wanted=%lld "
		  "reason=memory-fragmented see=\"kernel parameter hugepages=%lld\"",
		  unused, want, want);
	return 1;
}

/* --- NICs ----------------------------------------------------------------------------- */

static int
nic_give_to_vfio(const char *address)
{
	struct device d;
	char was[sizeof(d.driver)], why[400];

	if (device_read("", address, &d) < 0)
		return 0; /* not a PCI device: nothing to do */
	if (device_serves_dpdk(d.driver))
		return 0;
	snprintf(was, sizeof(was), "%s", d.driver[0] != '\0' ? d.driver : "none");
	if (device_bind("", &d, false, why, sizeof(why)) < 0) {
		log_error("prepare: device not bound address=%s driver=%s error=\"%s\"",
			  address, was, why);
		return 1;
	}
	log_info("prepare: device given to vfio-pci address=%s before=%s", address, was);
	return 0;
}

/* --- kernel interfaces ---------------------------------------------------------------- */

/*
 * Turn IPv6 off on the kernel interface of a port. The daemon cannot do this, because the
 * unit makes its /proc/sys read-only; so the daemon would refuse the port.
 */
static int
kernel_if_prepare(const char *device)
{
	char name[IF_NAMESIZE];
	int rc;

	kernel_if_of(device, name);
	rc = name[0] == '\0' ? 0 : kernel_if_ipv6_off(name);
	if (rc > 0)
		log_info("prepare: kernel ipv6 turned off interface=%s", name);
	if (rc < 0)
		log_error("prepare: kernel ipv6 not turned off interface=%s error=\"%s\"",
			  name, strerror(-rc));
	return rc < 0 ? 1 : 0;
}

int
prepare_machine(const struct config *conf)
{
	int rc = conf->hugepages ? hugepages_reserve(conf) : 0;

	for (unsigned int i = 0; i < conf->n_port; i++) {
		char nic[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN];
		unsigned int n = device_addresses(conf->port[i].device, nic);

		while (n > 0)
			rc |= nic_give_to_vfio(nic[--n]);
		rc |= kernel_if_prepare(conf->port[i].device);
	}
	return rc;
}
