/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PCI devices and their drivers in a folder that stands for /: values that are read, and
 * refusals before anything is written. tests/vm shows that the kernel then acts as
 * expected.
 *
 * link: fpm-dataplane/pci/device.c fpm-dataplane/pci/devargs.c fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/pci/memif.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "pci/device.h"
#include "pci/memif.h"
#include "base/sysfs.h"
#include "root_fake.h"

#define NIC  "0000:03:00.0"
#define TWIN "0000:03:00.1" /* a virtio NIC in the same IOMMU group */
#define DISK "0000:00:1f.2"
#define DEV  "/sys/bus/pci/devices/"
#define DRV  "/sys/bus/pci/drivers/"

static struct {
	char why[400];
	struct device_use use; /* uses of each interface on the machine */
} t;

void
device_use_of(const char *ifname, struct device_use *use)
{
	*use = t.use;
}

bool
device_use_text(const char *ifname, const struct device_use *use, char *why,
		size_t why_size)
{
	snprintf(why, why_size, "%s is used", ifname);
	return use->default_route;
}

static const char *
content(const char *path)
{
	static char text[64];
	FILE *f = fopen(root_path(path), "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Two NICs and a disk. The first NIC is in IOMMU group 7. vfio-pci is loaded. */
static int
setup(void **state)
{
	t.use = (struct device_use){0};
	if (root_make() < 0)
		return -1;
	root_put(DEV NIC "/vendor", "0x8086\n");
	root_put(DEV NIC "/device", "0x10d3\n");
	root_put(DEV NIC "/class", "0x020000\n");
	root_put(DEV NIC "/numa_node", "1\n");
	root_put(DEV NIC "/driver_override", "(null)\n");
	root_put(DEV NIC "/net/eth0/mtu", "1500\n");
	root_put_link(DEV NIC "/driver", "../../drivers/e1000e");
	root_put_link(DEV NIC "/iommu_group", "../../../../kernel/iommu_groups/7");
	root_put(DEV TWIN "/class", "0x020000\n");
	root_put(DEV TWIN "/numa_node", "-1\n");
	root_put(DEV TWIN "/driver_override", "(null)\n");
	root_put(DEV TWIN "/virtio3/net/eth1/mtu", "1500\n");
	root_put_link(DEV TWIN "/driver", "../../drivers/virtio-pci");
	root_put(DEV DISK "/class", "0x010601\n");
	root_put(DEV DISK "/driver_override", "(null)\n");
	root_put_link(DEV DISK "/driver", "../../drivers/ahci");
	root_put(DRV "vfio-pci/unbind", "");
	root_put(DRV "e1000e/unbind", "");
	root_put("/sys/bus/pci/drivers_probe", "");
	return 0;
}

static int
teardown(void **state)
{
	return root_remove();
}

static int
bind_it(const char *address, bool force)
{
	struct device d;

	assert_int_equal(device_read(root, address, &d), 0);
	return device_bind(root, &d, force, t.why, sizeof(t.why));
}

static int
unbind_it(const char *address)
{
	struct device d;

	assert_int_equal(device_read(root, address, &d), 0);
	return device_unbind(root, &d, t.why, sizeof(t.why));
}

/* Assert a refusal with this code and these words, and that nothing was written. */
static void
refused(int rc, int want, const char *address, const char *words)
{
	char path[64];

	assert_int_equal(rc, want);
	if (strstr(t.why, words) == NULL)
		fail_msg("'%s' does not say '%s'", t.why, words);
	snprintf(path, sizeof(path), DEV "%s/driver_override", address);
	assert_string_equal(content(path), "(null)\n");
	assert_string_equal(content("/sys/bus/pci/drivers_probe"), "");
	assert_string_equal(content(DRV "e1000e/unbind"), "");
}

static void
on_device(const struct device *d, void *ctx)
{
	strcat(ctx, d->address);
	strcat(ctx, " ");
}

static void
values_of_sys_are_read(void **state)
{
	char all[128] = "";
	struct device d;

	device_each(root, on_device, all);
	assert_string_equal(all, NIC " " TWIN " ");
	assert_int_equal(device_read(root, NIC, &d), 0);
	assert_int_equal(d.vendor, 0x8086);
	assert_int_equal(d.id, 0x10d3);
	assert_string_equal(d.driver, "e1000e");
	assert_string_equal(d.ifname, "eth0");
	assert_int_equal(d.node, 1);
	assert_int_equal(d.group, 7);
	assert_false(d.elsewhere);
	assert_int_equal(device_read(root, TWIN, &d), 0);
	assert_string_equal(d.ifname, "eth1");
	assert_int_equal(d.node, -1);
	assert_int_equal(d.group, -1);
	assert_int_equal(device_read(root, "0000:03:00.7", &d), -ENODEV);
}

static void
a_device_that_is_no_nic_is_left_alone(void **state)
{
	refused(bind_it(DISK, true), -EINVAL, DISK, "not a NIC");
	refused(unbind_it(DISK), -EINVAL, DISK, "010601");
}

static void
a_nic_in_use_is_taken_only_by_force(void **state)
{
	t.use.default_route = true;
	refused(bind_it(NIC, false), -EBUSY, NIC, "eth0 is used");
	assert_int_equal(bind_it(NIC, true), -EIO);
	assert_string_equal(content(DRV "e1000e/unbind"), NIC);
}

/* Check several devices, as check_all() of fpmctl does. */
static int
bind_check(const char *const address[], unsigned int n, bool force, unsigned int *at)
{
	struct device d[4];

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(device_read(root, address[i], &d[i]), 0);
	return device_bind_check(root, d, n, force, at, t.why, sizeof(t.why));
}

static void
no_device_moves_if_one_is_refused(void **state)
{
	const char *const good_and_used[] = {NIC, TWIN},
			  *const good_and_disk[] = {NIC, DISK},
			  *const twin_first[] = {TWIN, NIC};
	unsigned int at = 9;

	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	assert_int_equal(bind_check(good_and_used, 2, false, &at), 0);
	refused(bind_check(good_and_disk, 2, true, &at), -EINVAL, NIC, "not a NIC");
	assert_int_equal(at, 1);
	/* `TWIN` is in use, and in another namespace. Nothing prevents a change of NIC. */
	remove(root_path(DEV TWIN "/virtio3/net/eth1/mtu"));
	remove(root_path(DEV TWIN "/virtio3/net/eth1"));
	refused(bind_check(good_and_used, 2, false, &at), -EBUSY, NIC, "another network");
	assert_int_equal(at, 1);
	refused(bind_check(twin_first, 2, false, &at), -EBUSY, NIC, "another network");
	assert_int_equal(at, 0);
	assert_int_equal(bind_check(good_and_used, 2, true, &at), 0);
	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
	refused(bind_check(good_and_used, 2, true, &at), -ENOTSUP, NIC, "no IOMMU group");
	assert_int_equal(at, 1);
	/* A device that vfio-pci has needs no change. */
	root_put_link(DEV TWIN "/driver", "../../drivers/vfio-pci");
	assert_int_equal(bind_check(good_and_used, 2, false, &at), 0);
}

static void
an_interface_in_another_namespace_is_left_alone(void **state)
{
	remove(root_path(DEV NIC "/net/eth0/mtu"));
	remove(root_path(DEV NIC "/net/eth0"));
	refused(bind_it(NIC, false), -EBUSY, NIC, "another network namespace");
}

static void
a_driver_that_dpdk_works_beside_stays(void **state)
{
	root_put_link(DEV NIC "/driver", "../../drivers/mlx5_core");
	refused(bind_it(NIC, true), -EINVAL, NIC, "mlx5_core");
}

static void
without_vfio_or_iommu_nothing_is_taken(void **state)
{
	refused(bind_it(TWIN, true), -ENOTSUP, TWIN, "no IOMMU group");
	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
	refused(bind_it(TWIN, true), -ENOTSUP, TWIN, "no IOMMU group");
	remove(root_path(DRV "vfio-pci/unbind"));
	remove(root_path(DRV "vfio-pci"));
	refused(bind_it(NIC, true), -ENOTSUP, NIC, "modprobe vfio-pci");
}

static void
a_use_that_this_kernels_vfio_cannot_have_is_not_tried(void **state)
{
	refused(bind_it(TWIN, true), -ENOTSUP, TWIN,
		"this kernel's vfio has no no-IOMMU mode");
	assert_false(device_vfio_is_unsafe(root));
	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
	refused(bind_it(TWIN, true), -ENOTSUP, TWIN, "use vfio's no-IOMMU mode");
	assert_false(device_vfio_is_unsafe(root));
	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	assert_true(device_vfio_is_unsafe(root));
}

/*
 * Any number of processes may open a device of uio. None of them may lose it without a
 * warning.
 */
static void
a_device_open_by_uio_stays(void **state)
{
	struct device d;

	root_put_link(DEV NIC "/driver", "../../../bus/pci/drivers/uio_pci_generic");
	root_put(DRV "uio_pci_generic/unbind", "");
	root_put(DEV NIC "/uio/uio3/name", "uio_pci_generic\n");
	root_put_link("/proc/77/fd/5", "/dev/uio31");
	assert_int_equal(device_read(root, NIC, &d), 0);
	assert_false(device_is_open(root, &d));
	root_put_link("/proc/77/fd/6", "/dev/uio3");
	assert_true(device_is_open(root, &d));
	assert_int_equal(device_uio_user(root, &d, 0), 77);
	assert_int_equal(device_uio_user(root, &d, 77), 0); /* the predecessor */

	refused(unbind_it(NIC), -EBUSY, NIC, "fuser /dev/uio3");
	refused(bind_it(NIC, true), -EPERM, NIC, "fuser /dev/uio3");

	assert_string_equal(content(DRV "uio_pci_generic/unbind"), "");
	/* A predecessor has the device until it ends. */
	assert_int_equal(device_check(root, NIC, &d, t.why, sizeof(t.why)), 0);
}

static void
a_device_without_an_iommu_is_unprotected(void **state)
{
	struct device d = {.driver = "vfio-pci", .group = 9};

	assert_false(device_is_unprotected(&d));
	d.unprotected = true;
	assert_true(device_is_unprotected(&d));
	d = (struct device){.driver = "uio_pci_generic", .group = 9};
	assert_true(device_is_unprotected(&d));
	/* The kernel's driver has the device, beside DPDK or instead of it. */
	strcpy(d.driver, "mlx5_core");
	assert_false(device_is_unprotected(&d));
	d.driver[0] = '\0';
	assert_false(device_is_unprotected(&d));
}

static void
a_device_that_vfio_does_not_take_is_given_back(void **state)
{
	root_put("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	assert_int_equal(bind_it(TWIN, false), -EIO);
	assert_non_null(strstr(t.why, "its driver is virtio-pci again"));
	assert_string_equal(content(DEV TWIN "/driver_override"), "\n");
	assert_string_equal(content("/sys/bus/pci/drivers_probe"), TWIN);
}

static void
a_device_with_the_right_driver_stays(void **state)
{
	assert_int_equal(unbind_it(NIC), 0);
	root_put_link(DEV NIC "/driver", "../../drivers/vfio-pci");
	assert_int_equal(bind_it(NIC, false), 0);
	assert_string_equal(content(DEV NIC "/driver_override"), "(null)\n");
	assert_string_equal(content("/sys/bus/pci/drivers_probe"), "");
}

static void
a_device_that_the_kernel_does_not_take_is_reported(void **state)
{
	root_put_link(DEV NIC "/driver", "../../drivers/vfio-pci");
	assert_int_equal(unbind_it(NIC), -EIO);
	assert_non_null(strstr(t.why, "no driver of the kernel"));
	assert_string_equal(content(DRV "vfio-pci/unbind"), NIC);
	assert_string_equal(content(DEV NIC "/driver_override"), "\n");
}

static void
the_holder_of_a_group_is_found(void **state)
{
	struct device d, by;

	remove(root_path(DEV NIC "/iommu_group"));
	root_put(DEV NIC "/iommu_group/devices/" NIC "/x", "");
	root_put_link(DEV NIC "/driver", "../../drivers/vfio-pci");
	assert_int_equal(device_read(root, NIC, &d), 0);
	assert_false(device_group_is_held(root, &d, &by));
	root_put(DEV NIC "/iommu_group/devices/" TWIN "/x", "");
	assert_true(device_group_is_held(root, &d, &by));
	assert_string_equal(by.address, TWIN);
	assert_string_equal(by.driver, "virtio-pci");
}

/* Assert the message and the code for the device at `address`. */
static void
checked(const char *address, int want, const char *words)
{
	struct device d;

	t.why[0] = '\0';
	assert_int_equal(device_check(root, address, &d, t.why, sizeof(t.why)), want);
	if (strstr(t.why, words) == NULL)
		fail_msg("'%s' does not say '%s'", t.why, words);
}

static void
the_reason_why_dpdk_gets_no_device_is_reported(void **state)
{
	checked("0000:03:00.7", -ENODEV,
		"there is no PCI device 0000:03:00.7; `fpmctl dev");
	checked(DISK, -EINVAL, DISK " is not a NIC: its PCI class is 010601");
	checked(NIC, -EBUSY,
		"the kernel's driver e1000e has " NIC " as eth0; `fpmctl device bind " NIC
		"` gives it to vfio-pci");
	remove(root_path(DEV TWIN "/virtio3/net/eth1/mtu"));
	remove(root_path(DEV TWIN "/virtio3/net/eth1"));
	checked(TWIN, -EBUSY,
		"the kernel's driver virtio-pci has " TWIN "; `fpmctl device");
	remove(root_path(DEV NIC "/driver"));
	checked(NIC, -ENXIO, "no driver has " NIC "; `fpmctl device bind " NIC "`");
	root_put_link(DEV NIC "/driver", "../../drivers/mlx5_core");
	checked(NIC, 0, "");
	root_put_link(DEV NIC "/driver", "../../drivers/vfio-pci");
	checked(NIC, 0, "");
}

static void
the_device_that_keeps_a_group_from_dpdk_is_reported(void **state)
{
	root_put("/sys/kernel/iommu_groups/7/devices/" NIC "/x", "");
	root_put("/sys/kernel/iommu_groups/7/devices/" TWIN "/x", "");
	root_put_link(DEV NIC "/driver", "../../drivers/vfio-pci");
	checked(NIC, -EPERM,
		"IOMMU group 7 with " TWIN ", which the kernel's driver virtio-pci has");
	assert_non_null(strstr(t.why, "`fpmctl device bind " TWIN "`"));
	root_put(DEV TWIN "/class", "0x010601\n");
	checked(NIC, -EPERM, "another slot");
	root_put_link(DEV TWIN "/driver", "../../drivers/vfio-pci");
	checked(NIC, 0, "");
}

static void
a_pci_device_is_told_from_others(void **state)
{
	static const char *const bad[] = {"",        "net_null", "03:00",
					  "03:00.8", "03:20.0",  "0000:03:00.0x",
					  "eth0",    "03:00.0 ", "net_af_packet,iface=e"};
	char address[DEVICE_ADDRESS_STRLEN];

	assert_true(device_address("0000:03:00.1", address));
	assert_string_equal(address, "0000:03:00.1");
	assert_true(device_address("af:1f.7,representor=[0]", address));
	assert_string_equal(address, "0000:af:1f.7");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (device_address(bad[i], address))
			fail_msg("'%s' is no PCI address", bad[i]);
}

static void
a_bond_is_read(void **state)
{
	char nic[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN], why[256];
	struct device_bond b;

	assert_int_equal(device_bond_parse("net_bonding0,mode=4,member=03:00.0,slave=" TWIN,
					   &b, why, sizeof(why)),
			 0);
	assert_int_equal(b.mode, BOND_LACP);
	assert_int_equal(b.policy, BOND_L34);
	assert_int_equal(b.n_member, 2);
	assert_string_equal(b.member[0], NIC);
	assert_string_equal(b.member[1], TWIN);
	assert_int_equal(device_bond_parse("net_bonding,mode=1,member=" NIC ",member=" TWIN
					   ",primary=03:00.1",
					   &b, why, sizeof(why)),
			 0);
	assert_int_equal(b.mode, BOND_ACTIVE_BACKUP);
	assert_int_equal(b.primary, 1);
	assert_int_equal(
		device_addresses("net_bonding,mode=1,member=" NIC ",member=" TWIN, nic), 2);
	assert_string_equal(nic[1], TWIN);
	assert_int_equal(device_addresses("03:00.1,x=y", nic), 1);
	assert_string_equal(nic[0], TWIN);
	assert_int_equal(device_addresses("net_null", nic), 0);
}

static void
faults_of_a_bond_are_reported(void **state)
{
#define TWO ",member=" NIC ",member=" TWIN
	static const char *const bad[][2] = {
		{"net_bonding0" TWO, "has no mode; expected mode=1"},
		{"net_bonding0,mode=0" TWO, "mode=0 is not supported; expected mode=1"},
		{"net_bonding0,mode=4", "has 0 members; expected at least two"},
		{"net_bonding0,mode=4,member=" NIC, "has 1 member; expected at least two"},
		{"net_bonding0,mode=4" TWO ",member=03:00.0", NIC " is a member twice"},
		{"net_bonding0,mode=1,member=eth0",
		 "'eth0' cannot be a member; expected the PCI address of a NIC"},
		{"net_bonding0,mode=1" TWO ",primary=04:00.0",
		 "primary=0000:04:00.0 is not a member"},
		{"net_bonding0,mode=1" TWO ",primary=x", "primary=x is not a member"},
		{"net_bonding0,mode=4" TWO ",primary=" NIC, "has a primary, which only"},
		{"net_bonding0,mode=4" TWO ",xmit_policy=l4", "xmit_policy=l4 is unknown"},
		{"net_bonding0,mode=4" TWO ",mac=02:00:00:00:00:01", "'mac' is unknown"},
		{"net_bonding0,mode=4" TWO ",agg", "'agg' has no value"},
	};
	struct device_bond b;
	char why[256];

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(device_bond_parse(bad[i][0], &b, why, sizeof(why)),
				 -EINVAL);
		if (strstr(why, bad[i][1]) == NULL)
			fail_msg("%s: %s", bad[i][0], why);
	}
}

/* Functions of base/sysfs.h, on which the other tests depend. */
static void
a_file_has_one_value_or_none(void **state)
{
	char text[8];

	root_put("/sys/n", "0x20\n");
	assert_int_equal(sysfs_read_number(root_path("/sys/n"), -1), 32);
	root_put("/sys/n", "-1\n");
	assert_int_equal(sysfs_read_number(root_path("/sys/n"), 7), -1);
	root_put("/sys/n", "12 kB\n");
	assert_int_equal(sysfs_read_number(root_path("/sys/n"), 7), 7);
	root_put("/sys/n", "");
	assert_int_equal(sysfs_read_number(root_path("/sys/n"), 7), 7);
	assert_int_equal(sysfs_read_number(root_path("/sys/none"), 7), 7);

	root_put("/sys/text", "one\ntwo\n");
	sysfs_read_line(root_path("/sys/text"), text, sizeof(text));
	assert_string_equal(text, "one");
	assert_int_equal(sysfs_read(root_path("/sys/text"), text, sizeof(text)), 7);
	assert_string_equal(text, "one\ntwo");
	assert_int_equal(sysfs_read(root_path("/sys/none"), text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");

	root_put_link("/sys/link", "../../drivers/vfio-pci");
	assert_true(sysfs_read_link(root_path("/sys/link"), text, sizeof(text)));
	assert_string_equal(text, "vfio-pc"); /* truncated to the size of the buffer */
	assert_false(sysfs_read_link(root_path("/sys/none"), text, sizeof(text)));
	assert_string_equal(text, "");

	assert_int_equal(sysfs_write(root_path("/sys/text"), "3"), 0);
	assert_string_equal(content("/sys/text"), "3");
	assert_int_equal(sysfs_write(root_path("/sys/none"), "3"), -ENOENT);
	assert_int_equal(sysfs_write("/dev/full", "3"), -ENOSPC);
}

static void
clients_of_memif_are_recognized(void **state)
{
	static const char *const client[] = {
		"net_memif0,role=client,socket=/run/x.sock",
		"net_memif,id=1,role=slave",
		"net_memif0", /* the default */
		"net_memif0,socket=role=server",
	};
	static const char *const other[] = {
		"net_memif0,role=server,socket=/run/x.sock",
		"net_memif0,socket=role=client,role=server",
		"net_memif0,role=clientx,rolex=client",
		"net_null0,role=client",
		"",
	};

	for (unsigned int i = 0; i < sizeof(client) / sizeof(client[0]); i++)
		assert_true(memif_is_client(client[i]));
	for (unsigned int i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(memif_is_client(other[i]));
	assert_int_equal(memif_server("net_memif0,role=client,socket=/nowhere/x"),
			 MEMIF_AWAY);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_file_has_one_value_or_none),
		TEST(values_of_sys_are_read),
		TEST(a_device_that_is_no_nic_is_left_alone),
		TEST(a_nic_in_use_is_taken_only_by_force),
		TEST(no_device_moves_if_one_is_refused),
		TEST(an_interface_in_another_namespace_is_left_alone),
		TEST(a_driver_that_dpdk_works_beside_stays),
		TEST(without_vfio_or_iommu_nothing_is_taken),
		TEST(a_use_that_this_kernels_vfio_cannot_have_is_not_tried),
		TEST(a_device_that_vfio_does_not_take_is_given_back),
		TEST(a_device_with_the_right_driver_stays),
		TEST(a_device_that_the_kernel_does_not_take_is_reported),
		TEST(the_holder_of_a_group_is_found),
		TEST(the_reason_why_dpdk_gets_no_device_is_reported),
		TEST(the_device_that_keeps_a_group_from_dpdk_is_reported),
		cmocka_unit_test(clients_of_memif_are_recognized),
		cmocka_unit_test(a_device_without_an_iommu_is_unprotected),
		TEST(a_device_open_by_uio_stays),
		cmocka_unit_test(a_pci_device_is_told_from_others),
		cmocka_unit_test(a_bond_is_read),
		cmocka_unit_test(faults_of_a_bond_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
