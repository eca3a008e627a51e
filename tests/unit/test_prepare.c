/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpm-dataplane --prepare`: the hugepages that it asks for, the NICs that it gives to
 * vfio-pci, IPv6 of kernel interfaces, and its lines in the log. The test plays the
 * machine.
 *
 * link: fpm-dataplane/start/prepare.c fpm-dataplane/pci/devargs.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_said.h"
#include "pci/device.h"
#include "pci/kernel_if.h"
#include "base/sysfs.h"
#include "start/prepare.h"

static struct {
	long long total, unused; /* hugepages of 2 MiB; -1: the kernel has none */
	long long most;          /* that the kernel can reserve in all */
	unsigned int n_written;
	char bound[128]; /* the NICs given to vfio-pci */
	int bind_rc, ipv6_rc;
} t;

static struct config conf;

/* --- functions that this program replaces --------------------------------------------- */

long long
sysfs_read_number(const char *path, long long none)
{
	if (strcmp(path, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") == 0)
		return t.total < 0 ? none : t.total;
	assert_string_equal(path,
			    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
	return t.unused < 0 ? none : t.unused;
}

int
sysfs_write(const char *path, const char *text)
{
	long long wanted = atoll(text), now = wanted < t.most ? wanted : t.most;

	assert_string_equal(path, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
	t.unused += now - t.total;
	t.total = now;
	t.n_written++;
	return 0;
}

int
device_read(const char *root, const char *address, struct device *d)
{
	static const char *const driver[] = {"ice", "", "vfio-pci"};
	int function = address[11] - '0'; /* 0000:03:00.N */

	if (function > 2)
		return -ENODEV;
	*d = (struct device){0};
	snprintf(d->driver, sizeof(d->driver), "%s", driver[function]);
	snprintf(d->address, sizeof(d->address), "%s", address);
	return 0;
}

bool
device_serves_dpdk(const char *driver)
{
	return strcmp(driver, "vfio-pci") == 0;
}

int
device_bind(const char *root, struct device *d, bool force, char *why, size_t why_size)
{
	assert_false(force);
	snprintf(why, why_size, "it is so");
	if (t.bind_rc == 0)
		strcat(strcat(t.bound, d->address), " ");
	return t.bind_rc;
}

void
kernel_if_of(const char *device, char name[IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s", strchr(device, '=') != NULL ? "eth7" : "");
}

int
kernel_if_ipv6_off(const char *name)
{
	assert_string_equal(name, "eth7");
	return t.ipv6_rc;
}

/* --- tests ---------------------------------------------------------------------------- */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&conf, 0, sizeof(conf));
	t.most = 1000;
	conf.memory_mib = 101;
	return 0;
}

static void
with_port(const char *device)
{
	struct config_port *port = &conf.port[conf.n_port++];

	snprintf(port->device, sizeof(port->device), "%s", device);
}

static void
missing_hugepages_are_reserved_beside_those_in_use(void **state)
{
	assert_int_equal(prepare_machine(&conf), 0); /* the configuration wants none */
	assert_int_equal(t.n_written, 0);
	conf.hugepages = true;
	t.total = 60;
	t.unused = 51; /* 102 MiB */
	assert_int_equal(prepare_machine(&conf), 0);
	assert_int_equal(t.n_written, 0);
	t.unused = 50;
	assert_int_equal(prepare_machine(&conf), 0);
	assert_int_equal(t.n_written, 1);
	assert_int_equal(t.total, 61);
	assert_int_equal(log_said("hugepages reserved before=60 now=61 free=51"), 1);
	conf.memory_mib = 102;
	assert_int_equal(prepare_machine(&conf), 0);
	assert_int_equal(t.n_written, 1);
	/* The kernel finds too few pages. */
	conf.memory_mib = 300;
	t.most = 159;
	assert_int_equal(prepare_machine(&conf), 1);
	assert_int_equal(t.n_written, 2);
	assert_int_equal(log_said("too few hugepages free=149 wanted=150 "), 1);
	assert_int_equal(log_said("see=\"kernel parameter hugepages=150\""), 1);
	t.most = 160;
	assert_int_equal(prepare_machine(&conf), 0);
	assert_int_equal(log_said("too few hugepages"), 1);
}

static void
a_kernel_without_hugepages_is_reported(void **state)
{
	conf.hugepages = true;
	t.total = 5;
	t.unused = -1;
	assert_int_equal(prepare_machine(&conf), 1);
	t.total = -1;
	t.unused = 100;
	assert_int_equal(prepare_machine(&conf), 1);
	assert_int_equal(log_said("kernel without hugepages size_mib=2"), 2);
	assert_int_equal(t.n_written, 0);
}

static void
nics_of_ports_are_given_to_vfio(void **state)
{
	with_port("net_null0");
	with_port("0000:03:00.7"); /* there is no such device */
	with_port("0000:03:00.2"); /* vfio-pci has it */
	with_port("net_bonding0,mode=4,member=0000:03:00.0,member=0000:03:00.1");
	assert_int_equal(prepare_machine(&conf), 0);
	assert_string_equal(t.bound, "0000:03:00.1 0000:03:00.0 ");
	assert_int_equal(
		log_said("device given to vfio-pci address=0000:03:00.0 before=ice"), 1);
	assert_int_equal(
		log_said("device given to vfio-pci address=0000:03:00.1 before=none"), 1);
	t.bind_rc = -EBUSY;
	assert_int_equal(prepare_machine(&conf), 1);
	assert_int_equal(log_said("device not bound address=0000:03:00.0 driver=ice "
				  "error=\"it is so\""),
			 1);
	assert_int_equal(log_said("device not bound"), 2);
	/* If the NICs are bound, the result still says that there are no hugepages. */
	t.bind_rc = 0;
	conf.hugepages = true;
	t.total = -1;
	assert_int_equal(prepare_machine(&conf), 1);
}

static void
ipv6_of_kernel_interfaces_is_turned_off(void **state)
{
	with_port("net_af_packet,iface=eth7");
	assert_int_equal(prepare_machine(&conf), 0); /* it was off */
	assert_int_equal(log_said("kernel ipv6"), 0);
	t.ipv6_rc = 1;
	assert_int_equal(prepare_machine(&conf), 0);
	assert_int_equal(log_said("kernel ipv6 turned off interface=eth7"), 1);
	t.ipv6_rc = -EROFS;
	assert_int_equal(prepare_machine(&conf), 1);
	assert_int_equal(
		log_said("kernel ipv6 not turned off interface=eth7 error=\"Read-only"), 1);
	/* A later success does not hide the failure of an earlier port. */
	with_port("net_null0");
	assert_int_equal(prepare_machine(&conf), 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(missing_hugepages_are_reserved_beside_those_in_use),
		TEST(a_kernel_without_hugepages_is_reported),
		TEST(nics_of_ports_are_given_to_vfio),
		TEST(ipv6_of_kernel_interfaces_is_turned_off),
	};

	return cmocka_run_group_tests_name("prepare", tests, NULL, NULL);
}
