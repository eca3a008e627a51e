/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices that are attached to DPDK, and refusals whose sentences name the cause. The test
 * plays DPDK and /sys.
 *
 * link: fpm-dataplane/port/attach.c fpm-dataplane/pci/devargs.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "pci/device.h"
#include "port/attach.h"
#include "port/claim.h"

#define NIC         "0000:03:00.0"
#define ARGS        NIC ",queues=2"
#define PORT        7
#define PREDECESSOR 55

/* The state of DPDK and of the machine, and the calls. */
static struct {
	int probe, add, scan, bus_probe, parse; /* results */
	bool attached, valid; /* the NIC has a port; the port belongs to this process */
	bool probe_attaches;  /* rte_dev_probe() and rte_bus_probe() make a port */
	int check, read;      /* results of device_check(), device_read() */
	bool unprotected, uio, serves;
	pid_t user; /* result of device_uio_user() */
	int n_warnings;
	enum rte_iova_mode iova;
	char calls[200];
} t;
static char why[400];
static uint16_t port_id;

static void
call(const char *name, const char *with)
{
	size_t n = strlen(t.calls);

	snprintf(t.calls + n, sizeof(t.calls) - n, "%s%s(%s)", n == 0 ? "" : " ", name,
		 with);
}

int
rte_dev_probe(const char *devargs)
{
	call("probe", devargs);
	t.attached |= t.probe_attaches;
	return t.probe;
}

int
rte_devargs_add(enum rte_devtype type, const char *devargs)
{
	assert_int_equal(type, RTE_DEVTYPE_ALLOWED);
	call("add", devargs);
	return t.add;
}

int
rte_bus_scan(void)
{
	call("scan", "");
	return t.scan;
}

int
rte_bus_probe(void)
{
	call("bus", "");
	t.attached |= t.probe_attaches;
	return t.bus_probe;
}

int
rte_devargs_parse(struct rte_devargs *da, const char *dev)
{
	snprintf(da->name, sizeof(da->name), "%s", NIC);
	return t.parse;
}

int
rte_devargs_remove(struct rte_devargs *da)
{
	call("remove", da->name);
	return 0;
}

void
rte_devargs_reset(struct rte_devargs *da)
{
	call("reset", da->name);
}

int
rte_eth_dev_get_port_by_name(const char *name, uint16_t *port)
{
	if (!t.attached)
		return -ENODEV;
	*port = PORT;
	return 0;
}

int
rte_eth_dev_is_valid_port(uint16_t port)
{
	assert_int_equal(port, PORT);
	return t.valid;
}

int
rte_eth_dev_get_name_by_port(uint16_t port, char *name)
{
	if (port != PORT)
		return -ENODEV;
	strcpy(name, t.serves ? NIC : "net_tap0");
	return 0;
}

enum rte_iova_mode
rte_eal_iova_mode(void)
{
	return t.iova;
}

int
device_read(const char *root, const char *address, struct device *d)
{
	assert_string_equal(root, "");
	assert_string_equal(address, NIC);
	*d = (struct device){.vendor = 0x18086, .id = 0x21572, .driver = "vfio-pci"};
	return t.read;
}

int
device_check(const char *root, const char *address, struct device *d, char *text,
	     size_t size)
{
	(void)device_read(root, address, d);
	if (t.check < 0)
		snprintf(text, size, "the check refuses %s", address);
	return t.check;
}

bool
device_serves_dpdk(const char *driver)
{
	assert_string_equal(driver, "vfio-pci");
	return t.serves;
}

bool
device_is_uio(const struct device *d)
{
	assert_string_equal(d->driver, "vfio-pci");
	return t.uio;
}

pid_t
device_uio_user(const char *root, const struct device *d, pid_t predecessor)
{
	assert_int_equal(predecessor, PREDECESSOR);
	return t.user;
}

pid_t
claim_allowed(void)
{
	return PREDECESSOR;
}

void
log_write(enum log_level level, const char *fmt, ...)
{
	t.n_warnings += level == LOG_LEVEL_WARN;
}

bool
device_is_unprotected(const struct device *d)
{
	assert_string_equal(d->driver, "vfio-pci");
	return t.unprotected;
}

/* Set up a machine whose device is good, and a DPDK that attaches the device. */
static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.valid = t.probe_attaches = t.serves = true;
	t.iova = RTE_IOVA_VA;
	strcpy(why, "none");
	port_id = 0;
	return 0;
}

static int
attach_nic(void)
{
	return attach(ARGS, NIC, &port_id, why, sizeof(why));
}

/* --- attach() ------------------------------------------------------------------------- */

static void
a_device_is_attached_with_its_arguments(void **state)
{
	assert_int_equal(attach_nic(), 0);
	assert_int_equal(port_id, PORT);
	assert_string_equal(t.calls, "probe(" ARGS ")");
	assert_string_equal(why, "none");
}

static void
a_device_of_a_port_is_not_attached_again(void **state)
{
	t.attached = true;
	assert_int_equal(attach_nic(), -EBUSY);
	assert_string_equal(t.calls, "");
	assert_string_equal(why, NIC " is the device of a port that runs; remove that port "
				     "first (`port del`) or give it another device");
	/* The port belongs to another process that shares DPDK. */
	t.valid = false;
	t.probe = -EEXIST;
	assert_int_equal(attach_nic(), -EEXIST);
	assert_string_equal(t.calls, "probe(" ARGS ")");
}

static void
a_driver_that_makes_no_port_is_told(void **state)
{
	t.probe_attaches = false;
	assert_int_equal(attach_nic(), -ENODEV);
	assert_string_equal(why, NIC " was attached but has no port");
	t.probe_attaches = true;
	t.valid = false;
	t.attached = false;
	assert_int_equal(attach_nic(), -ENODEV);
}

static void
a_refusal_of_another_device_is_that_of_its_driver(void **state)
{
	t.probe = -ENODEV;
	t.probe_attaches = false;
	assert_int_equal(attach("net_tap0,iface=x", "net_tap0", &port_id, why, sizeof(why)),
			 -ENODEV);
	assert_string_equal(t.calls, "probe(net_tap0,iface=x)");
	assert_string_equal(why, "no such device, or its driver refuses it");
}

static void
a_refusal_of_a_nic_has_the_cause_that_sys_shows(void **state)
{
	t.probe_attaches = false;
	t.probe = -EIO;
	t.check = -EBUSY;
	assert_int_equal(attach_nic(), -EBUSY);
	assert_string_equal(why, "the check refuses " NIC);
	/* DPDK has no driver, so it did not ask vfio: the use of the group is no cause. */
	t.probe = -ENOTSUP;
	assert_int_equal(attach_nic(), -ENOTSUP);
	assert_string_equal(why,
			    "DPDK has no driver for " NIC " (8086:1572), which is bound "
			    "to vfio-pci; `plugins:` can add drivers");
	/* The NIC has a driver of the kernel, which is the cause. */
	t.serves = false;
	assert_int_equal(attach_nic(), -EBUSY);
	assert_string_equal(why, "the check refuses " NIC);
}

static void
a_refusal_that_sys_does_not_explain_is_that_of_the_driver(void **state)
{
	t.probe_attaches = false;
	t.probe = -EIO;
	assert_int_equal(attach_nic(), -EIO);
	assert_string_equal(why,
			    "DPDK's driver refuses " NIC " (8086:1572), which is bound to "
			    "vfio-pci; the log has the driver's message");
	t.unprotected = true;
	assert_int_equal(attach_nic(), -EIO);
	assert_string_equal(
		why,
		NIC " is bound to vfio-pci without an IOMMU and needs physical addresses, "
		    "but DPDK uses virtual ones, as it does without memory.hugepages or "
		    "with an IOMMU; on a machine with an IOMMU `fpmctl device bind " NIC
		    "` uses it");
	t.iova = RTE_IOVA_PA;
	assert_int_equal(attach_nic(), -EIO);
	assert_memory_equal(why, "DPDK's driver refuses", 21);
}

/* --- attach_here() -------------------------------------------------------------------- */

static int
attach_nic_here(void)
{
	return attach_here(ARGS, NIC, &port_id, why, sizeof(why));
}

static void
a_device_is_attached_as_at_the_start_of_the_eal(void **state)
{
	assert_int_equal(attach_nic_here(), 0);
	assert_int_equal(port_id, PORT);
	assert_string_equal(t.calls, "add(" ARGS ") scan() bus() reset(" NIC ")");
	assert_string_equal(why, "none");
	/* Another device of the bus fails. */
	setup(NULL);
	t.bus_probe = -EIO;
	assert_int_equal(attach_nic_here(), 0);
	assert_int_equal(port_id, PORT);
	assert_string_equal(t.calls, "add(" ARGS ") scan() bus() reset(" NIC ")");
}

static void
a_device_that_is_not_attached_leaves_no_arguments(void **state)
{
	t.probe_attaches = false;
	assert_int_equal(attach_nic_here(), -ENODEV);
	assert_string_equal(t.calls,
			    "add(" ARGS ") scan() bus() remove(" NIC ") reset(" NIC ")");
	assert_memory_equal(why, "DPDK's driver refuses", 21);
	/* The error of the bus is reported. */
	t.calls[0] = '\0';
	t.bus_probe = -EIO;
	assert_int_equal(attach_nic_here(), -EIO);
	assert_string_equal(t.calls,
			    "add(" ARGS ") scan() bus() remove(" NIC ") reset(" NIC ")");
	/* A scan that fails ends the attempt, and so do arguments that DPDK refuses. */
	t.calls[0] = '\0';
	t.scan = -ENOMEM;
	assert_int_equal(attach_nic_here(), -ENOMEM);
	assert_string_equal(t.calls, "add(" ARGS ") scan() remove(" NIC ") reset(" NIC ")");
	t.calls[0] = '\0';
	t.parse = -1;
	assert_int_equal(attach_nic_here(), -EINVAL);
	assert_string_equal(t.calls, "add(" ARGS ") scan()");
	t.calls[0] = '\0';
	t.add = -EFAULT;
	assert_int_equal(attach_nic_here(), -EFAULT);
	assert_string_equal(t.calls, "add(" ARGS ")");
}

/* --- the log -------------------------------------------------------------------------- */

static void
another_process_that_has_the_device_is_told(void **state)
{
	t.probe_attaches = true;
	assert_int_equal(attach(ARGS, NIC, &port_id, why, sizeof(why)), 0);
	assert_int_equal(t.n_warnings, 0);
	t.attached = false;
	t.user = 77;
	assert_int_equal(attach(ARGS, NIC, &port_id, why, sizeof(why)), 0);
	assert_int_equal(t.n_warnings, 1);
}

/* --- attach_is_by_uio() --------------------------------------------------------------- */

static void
only_a_nic_with_a_uio_driver_is_by_uio(void **state)
{
	assert_false(attach_is_by_uio(PORT));
	t.uio = true;
	assert_true(attach_is_by_uio(PORT));
	assert_false(attach_is_by_uio(PORT + 1)); /* no port */
	t.read = -ENODEV;
	assert_false(attach_is_by_uio(PORT));
	t.read = 0;
	t.serves = false; /* a software device */
	assert_false(attach_is_by_uio(PORT));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(a_device_is_attached_with_its_arguments),
		TEST(a_device_of_a_port_is_not_attached_again),
		TEST(a_driver_that_makes_no_port_is_told),
		TEST(a_refusal_of_another_device_is_that_of_its_driver),
		TEST(a_refusal_of_a_nic_has_the_cause_that_sys_shows),
		TEST(a_refusal_that_sys_does_not_explain_is_that_of_the_driver),
		TEST(a_device_is_attached_as_at_the_start_of_the_eal),
		TEST(a_device_that_is_not_attached_leaves_no_arguments),
		TEST(another_process_that_has_the_device_is_told),
		TEST(only_a_nic_with_a_uio_driver_is_by_uio),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
