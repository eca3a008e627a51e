/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of fpmctl doctor on synthetic machines: a folder stands for /.
 *
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/doctor/exam.c fpm-dataplane/ctl/doctor/pci.c
 * link: fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/ctl/doctor/pcie.c
 * link: fpm-dataplane/ctl/doctor/cpu.c fpm-dataplane/ctl/doctor/memory.c
 * link: fpm-dataplane/ctl/doctor/net.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/conn.c fpm-dataplane/ctl/cli.c fpm-dataplane/base/edit_distance.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"
#include "root_fake.h"

#define NIC   "/sys/bus/pci/devices/0000:03:00.0"
#define CPU   "/sys/devices/system/cpu"
#define GROUP "../../../../kernel/iommu_groups/9" /* link target in NIC */

static struct {
	struct exam e;
} t;

/* A router whose port wan0 is the NIC: two queues, CPUs 2 and 3, node 0. */
static int
setup(void **state)
{
	if (root_make() < 0)
		return -1;
	t.e = (struct exam){.root = root, .in = "", .check = "x", .about = "y"};
	t.e.rows = json_array();
	t.e.version = json_loads("{\"pid\": 77, \"hugepages\": false, \"memory_mib\": 256,"
				 "\"cpus\": [2, 3]}",
				 0, NULL);
	t.e.ports = json_loads("[{\"name\": \"wan0\", \"device\": \"0000:03:00.0\","
			       "\"driver\": \"net_x\", \"queues\": 2, \"cpus\": [2, 3],"
			       "\"rss\": \"ip tcp udp sctp l2\", \"node\": 0}]",
			       0, NULL);
	CPU_SET(2, &t.e.cpus);
	CPU_SET(3, &t.e.cpus);
	return 0;
}

static int
teardown(void **state)
{
	json_decref(t.e.rows);
	json_decref(t.e.version);
	json_decref(t.e.ports);
	json_decref(t.e.interfaces);
	return root_remove();
}

/*
 * A row with a problem has a cost. It also has a command, unless the operator cannot solve
 * the problem on this machine.
 */
static void
found_well(const json_t *row, bool mends)
{
	const char *status = row_str(row, "status");
	bool wrong = strcmp(status, "warn") == 0 || strcmp(status, "fail") == 0;

	assert_int_equal(row_has(row, "cost"), wrong);
	assert_int_equal(json_array_size(json_object_get(row, "fix")) > 0, wrong && mends);
}

static const char *
verdict_of(void (*check)(struct exam *e), bool mends)
{
	json_array_clear(t.e.rows);
	check(&t.e);
	assert_int_equal(json_array_size(t.e.rows), 1);
	found_well(json_array_get(t.e.rows, 0), mends);
	return row_str(json_array_get(t.e.rows, 0), "status");
}

/* Run a check that finds one problem. Return its verdict. */
static const char *
verdict(void (*check)(struct exam *e))
{
	return verdict_of(check, true);
}

/* Return a text of the row of the last check. */
static const char *
told(const char *key)
{
	return row_str(json_array_get(t.e.rows, 0), key);
}

static const char *
command(void)
{
	const json_t *fix = json_object_get(json_array_get(t.e.rows, 0), "fix");
	const char *text = json_string_value(json_array_get(fix, 0));

	return text != NULL ? text : "";
}

static void
port_set(const char *key, json_t *value)
{
	json_object_set_new(json_array_get(t.e.ports, 0), key, value);
}

static void
a_nic_with_a_poor_slot_is_warned_of(void **state)
{
	uint8_t c[256] = {0x86, 0x80, [0x06] = 0x10, [0x34] = 0x40, [0x40] = 0x10};

	c[0x44] = 0x20; /* Extended Tag is supported and off; reads of 128 octets */
	c[0x4c] = 0x83; /* 8 GT/s x8 */
	c[0x52] = 0x42; /* 5 GT/s x4 */
	root_put_octets(NIC "/config", c, sizeof(c));

	assert_string_equal(verdict(check_pcie_link), "warn");
	assert_string_equal(verdict(check_ext_tag), "warn");
	assert_string_equal(command(), "setpci -s 0000:03:00.0 CAP_EXP+8.w=0100:0100");
	assert_string_equal(verdict(check_read_request), "warn");
	assert_string_equal(command(), "setpci -s 0000:03:00.0 CAP_EXP+8.w=5000:7000");

	c[0x49] = 0x51; /* the value that both commands write */
	c[0x4d] = 0x00;
	c[0x52] = 0x83;
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_ext_tag), "ok");
	assert_string_equal(verdict(check_read_request), "ok");
	root_put_octets(NIC "/config", c, 64);
	assert_string_equal(verdict(check_ext_tag), "n/a");
	assert_string_equal(verdict(check_pcie_link), "n/a");
	memset(c, 0xff, sizeof(c));
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_pcie_link), "fail");
}

/* The width and the speed of a link count, and each text has the values of the device. */
static void
a_link_is_judged_by_its_width_and_its_speed(void **state)
{
	static const struct {
		uint8_t max, now; /* width << 4 | generation */
		const char *verdict, *text, *cost;
	} each[] = {
		{0x83, 0x83, "ok", "x8 at 8 GT/s, its maximum: 63 Gbit/s", ""},
		{0x83, 0x43, "warn", "x4 at 8 GT/s, the maximum is x8 at 8 GT/s",
		 "32 Gbit/s of 63 "},
		{0x83, 0x82, "warn", "x8 at 5 GT/s, the maximum is x8 at 8 GT/s",
		 "32 Gbit/s of 63 "},
		{0x41, 0x11, "warn", "x1 at 2.5 GT/s, the maximum is x4 at 2.5 GT/s",
		 "2 Gbit/s of 8 "},
		{0x14, 0x14, "ok", "x1 at 16 GT/s, its maximum: 16 Gbit/s", ""},
		{0x15, 0x15, "ok", "x1 at 32 GT/s, its maximum: 32 Gbit/s", ""},
		{0x16, 0x16, "ok", "x1 at 64 GT/s, its maximum: 60 Gbit/s", ""},
		{0x17, 0x17, "ok", "x1 at ? GT/s, its maximum: 0 Gbit/s", ""},
		{0x03, 0x83, "n/a", "no link: part of the chipset", ""},
		{0x83, 0x03, "n/a", "no link: part of the chipset", ""},
	};
	uint8_t c[256] = {0x86, 0x80, [0x06] = 0x10, [0x34] = 0x40, [0x40] = 0x10};

	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		c[0x4c] = each[i].max;
		c[0x52] = each[i].now;
		root_put_octets(NIC "/config", c, sizeof(c));
		assert_string_equal(verdict(check_pcie_link), each[i].verdict);
		assert_string_equal(told("text"), each[i].text);
		assert_string_equal(told("subject"), "wan0");
		if (each[i].cost[0] != '\0')
			assert_memory_equal(told("cost"), each[i].cost,
					    strlen(each[i].cost));
	}
	assert_string_equal(verdict(check_ext_tag), "n/a");
	assert_string_equal(told("text"), "the device has none");
	/* Requests of 256 and of 512 octets. */
	c[0x49] = 0x10;
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_read_request), "warn");
	assert_string_equal(told("text"), "256 octets");
	c[0x49] = 0x20;
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_read_request), "ok");
	assert_string_equal(told("text"), "512 octets");
	assert_string_equal(told("subject"), "wan0");
	assert_string_equal(verdict(check_ext_tag), "n/a");
	assert_string_equal(told("subject"), "wan0");
	/* A port without a name is called by its address. */
	port_set("name", json_string(""));
	for (unsigned int i = 0; i < 3; i++) {
		(void)verdict(i == 0   ? check_pcie_link
			      : i == 1 ? check_ext_tag
				       : check_read_request);
		assert_string_equal(told("subject"), "0000:03:00.0");
	}
}

/* A guest ignores the PCI Express values of virtio and vmxnet3. */
static void
a_hypervisors_nic_has_no_slot(void **state)
{
	uint8_t c[256] = {0xf4, 0x1a, [0x06] = 0x10, [0x34] = 0x40, [0x40] = 0x10};

	c[0x4c] = c[0x52] = 0x11;
	root_put_octets(NIC "/config", c, sizeof(c));
	root_put("/proc/cpuinfo", "flags\t\t: fpu vme\n");
	assert_string_equal(verdict(check_pcie_link), "ok");
	assert_string_equal(verdict(check_read_request), "warn");
	root_put("/proc/cpuinfo", "flags\t\t: fpu hypervisor vme\n");
	assert_string_equal(verdict(check_pcie_link), "n/a");
	assert_string_equal(told("text"), "a device of the hypervisor, without a slot");
	assert_string_equal(verdict(check_read_request), "n/a");
	c[0] = 0xad; /* VMware's vendor id */
	c[1] = 0x15;
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_read_request), "n/a");
	c[0] = 0x86; /* Intel: a NIC that is passed through to the guest, or emulated */
	c[1] = 0x80;
	root_put_octets(NIC "/config", c, sizeof(c));
	assert_string_equal(verdict(check_read_request), "warn");
}

static void
cpus_of_another_node_are_warned_of(void **state)
{
	root_put("/sys/devices/system/node/node0/cpulist", "0-2\n");
	assert_string_equal(verdict(check_numa), "ok");
	root_put("/sys/devices/system/node/node1/cpulist", "3-5\n");
	root_put(CPU "/cpu2/node0/x", "");
	root_put(CPU "/cpu3/node1/x", "");
	assert_string_equal(verdict(check_numa), "warn");
	assert_string_equal(command(), "fpmctl port set wan0 cores 2,2");
	CPU_CLR(2, &t.e.cpus);
	assert_string_equal(verdict(check_numa), "warn");
	assert_string_equal(command(), "fpmctl restart");
	port_set("cpus", json_pack("[i]", 2));
	assert_string_equal(verdict(check_numa), "ok");
	port_set("node", json_null());
	assert_string_equal(verdict(check_numa), "n/a");
}

static void
forwarding_cpus_want_isolation_clock_rate_and_their_core(void **state)
{
	/* The kernel obeys only the new words: they have the CPUs isolated before, too. */
	root_put(CPU "/isolated", "2,6\n");
	assert_string_equal(verdict(check_isolation), "warn");
	assert_string_equal(
		command(),
		"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=managed_irq,domain,2-3,6 "
		"nohz_full=2-3,6 rcu_nocbs=2-3,6 /' /etc/default/grub");
	root_put(CPU "/isolated", "2-3\n");
	assert_string_equal(verdict(check_isolation), "ok");

	assert_string_equal(verdict(check_governor), "n/a");
	root_put(CPU "/cpu2/cpufreq/scaling_governor", "performance\n");
	root_put(CPU "/cpu3/cpufreq/scaling_governor", "powersave\n");
	assert_string_equal(verdict(check_governor), "warn");
	assert_string_equal(command(), "cpupower -c 3 frequency-set -g performance");

	assert_string_equal(verdict(check_smt), "ok");
	root_put(CPU "/cpu3/topology/thread_siblings_list", "3,7\n");
	json_array_clear(t.e.rows);
	check_smt(&t.e);
	assert_string_equal(row_str(json_array_get(t.e.rows, 0), "status"), "warn");
	assert_string_equal(command(), "echo 0 > " CPU "/cpu7/online");
	root_put(CPU "/cpu2/topology/thread_siblings_list", "2-3\n");
	json_array_clear(t.e.rows);
	check_smt(&t.e);
	assert_string_equal(command(), "fpmctl restart");
	found_well(json_array_get(t.e.rows, 0), true);
}

static void
the_clock_is_the_tsc(void **state)
{
	root_put("/proc/cpuinfo", "flags\t\t: tsc constant_tsc nonstop_tsc\n");
	root_put("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		 "tsc\n");
	assert_string_equal(verdict(check_clock), "ok");
	root_put("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		 "hpet\n");
	assert_string_equal(verdict(check_clock), "warn");
	root_put("/proc/cpuinfo", "flags\t\t: tsc\n");
	assert_string_equal(verdict_of(check_clock, false), "warn");
	/* arm64 has no TSC. Its counter is steady. */
	root_put("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		 "arch_sys_counter\n");
	root_put("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd crc32\n");
	assert_string_equal(verdict(check_clock), "ok");
}

static void
several_queues_want_a_hash(void **state)
{
	assert_string_equal(verdict(check_rss), "ok");
	port_set("rss", json_string("ip"));
	assert_string_equal(verdict_of(check_rss, false), "warn");
	port_set("rss", json_string("none"));
	assert_string_equal(verdict(check_rss), "fail");
	assert_string_equal(command(), "fpmctl port set wan0 queues 1");
	port_set("rss", json_string("unknown")); /* its driver does not report it */
	assert_string_equal(verdict(check_rss), "n/a");
	port_set("rss", json_string("none"));
	port_set("queues", json_integer(1));
	assert_string_equal(verdict(check_rss), "n/a");
}

static void
a_queue_without_a_forwarder_fails(void **state)
{
	assert_string_equal(verdict(check_queues), "ok");
	port_set("cpus", json_pack("[i, i, n]", 2, 3));
	assert_string_equal(verdict(check_queues), "fail");
}

static void
a_cpu_without_a_queue_is_warned_of(void **state)
{
	port_set("cpus", json_pack("[i]", 2));
	json_array_clear(t.e.rows);
	check_queues(&t.e);
	/* Remove the row of the port, which is well served. */
	json_array_remove(t.e.rows, 0);
	found_well(json_array_get(t.e.rows, 0), true);
	assert_string_equal(command(), "fpmctl port set wan0 queues 2");
}

static void
memory_is_judged_by_the_configured_size(void **state)
{
	assert_string_equal(verdict(check_hugepages), "warn");
	assert_string_equal(command(), "sysctl -w vm.nr_hugepages=128");
	root_put("/proc/77/status",
		 "CapEff:\t0000000000000000\nHugetlbPages:\t262144 kB\n");
	json_object_set_new(t.e.version, "hugepages", json_true());
	assert_string_equal(verdict(check_hugepages), "ok");

	assert_string_equal(verdict(check_memlock), "n/a");
	root_put("/proc/77/limits", "Max locked memory         65536   65536   bytes\n");
	assert_string_equal(verdict(check_memlock), "fail");
	root_put("/proc/77/status", "CapEff:\t0000000000004000\n");
	assert_string_equal(verdict(check_memlock), "ok");
}

static void
a_daemon_without_spare_descriptors_is_warned_of(void **state)
{
	char path[32];

	assert_string_equal(verdict(check_files), "n/a");
	root_put("/proc/77/limits", "Max open files            64   4096   files\n");
	for (unsigned int i = 0; i < 32; i++) {
		snprintf(path, sizeof(path), "/proc/77/fd/%u", i);
		root_put(path, "");
	}
	assert_string_equal(verdict(check_files), "ok");
	assert_string_equal(row_str(json_array_get(t.e.rows, 0), "text"),
			    "32 open, 64 allowed");
	root_put("/proc/77/fd/32", "");
	assert_string_equal(verdict(check_files), "warn");
	assert_string_equal(row_str(json_array_get(t.e.rows, 0), "text"),
			    "33 open, only 64 allowed");
	assert_string_equal(row_str(json_array_get(t.e.rows, 0), "cost"),
			    "zebra, fpmctl and the metrics page may be refused. systemd: "
			    "LimitNOFILE=65536");
	assert_string_equal(command(), "prlimit --pid 77 --nofile=65536:65536");
	/* More open files than allowed: the limit was lowered later. */
	root_put("/proc/77/limits", "Max open files            16   4096   files\n");
	assert_string_equal(verdict(check_files), "warn");
	root_put("/proc/77/limits",
		 "Max open files            unlimited unlimited files\n");
	assert_string_equal(verdict(check_files), "ok");
}

static void
a_port_without_iommu_is_warned_of(void **state)
{
	root_put(NIC "/class", "0x020000\n");
	root_put_link(NIC "/driver", "../../drivers/vfio-pci");
	assert_string_equal(verdict(check_iommu), "warn");
	root_put("/sys/kernel/iommu_groups/9/name", "vfio-noiommu\n");
	root_put_link(NIC "/iommu_group", GROUP);
	assert_string_equal(verdict(check_iommu), "warn");
	root_put("/sys/kernel/iommu_groups/9/name", "\n");
	assert_string_equal(verdict(check_iommu), "ok");
}

/* The advice must help: vfio-pci does not accept a device without an IOMMU. */
static void
a_port_of_uio_is_for_vfio_where_that_can_take_it(void **state)
{
	root_put(NIC "/class", "0x020000\n");
	root_put_link(NIC "/driver", "../../drivers/uio_pci_generic");
	assert_string_equal(verdict(check_iommu), "warn");
	assert_null(strstr(command(), "device bind"));
	assert_non_null(strstr(command(), "intel_iommu=on"));
	root_put("/sys/kernel/iommu_groups/9/name", "\n");
	root_put_link(NIC "/iommu_group", GROUP);
	assert_string_equal(verdict(check_iommu), "warn");
	assert_non_null(strstr(command(), "fpmctl device bind "));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void
a_port_that_a_bond_has_taken_is_warned_of(void **state)
{
	t.e.interfaces =
		json_loads("[{\"name\": \"lo\", \"port\": false, \"part_of\": null},"
			   "{\"name\": \"wan0\", \"port\": true, \"part_of\": null}]",
			   0, NULL);
	assert_string_equal(verdict(check_members), "ok");
	json_object_set_new(json_array_get(t.e.interfaces, 1), "part_of",
			    json_string("bond0"));
	assert_string_equal(verdict(check_members), "warn");
	assert_string_equal(command(), "ip link set wan0 nomaster");
}

/* The port of a renamed TAP is still wan0. */
static void
a_renamed_tap_is_looked_at_by_its_new_name(void **state)
{
	t.e.interfaces = json_loads("[{\"name\": \"lo\", \"port\": false},"
				    "{\"name\": \"uplink\", \"port\": true}]",
				    0, NULL);
	root_put("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
	root_put("/proc/sys/net/ipv4/conf/uplink/rp_filter", "1\n");
	assert_string_equal(verdict(check_rp_filter), "warn");
	assert_string_equal(command(), "sysctl -w net.ipv4.conf.uplink.rp_filter=0");
}

/* Packets of a VLAN obey the settings of the VLAN. Those of its port do not count. */
static void
the_vlans_on_ports_are_looked_at(void **state)
{
	t.e.interfaces = json_loads("[{\"name\": \"wan0.5\", \"port\": false, "
				    "\"on\": \"wan0\", \"urpf\": \"off\"}]",
				    0, NULL);
	root_put("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
	root_put("/proc/sys/net/ipv4/conf/wan0.5/rp_filter", "1\n");
	assert_string_equal(verdict(check_rp_filter), "warn");
	assert_string_equal(command(), "sysctl -w net.ipv4.conf.wan0/5.rp_filter=0");
	root_put("/proc/sys/net/ipv4/conf/all/forwarding", "1\n");
	root_put("/proc/sys/net/ipv4/conf/wan0.5/forwarding", "0\n");
	root_put("/proc/sys/net/ipv6/conf/all/forwarding", "1\n");
	root_put("/proc/sys/net/ipv6/conf/wan0.5/disable_ipv6", "0\n");
	assert_string_equal(verdict(check_forwarding), "warn");
	assert_string_equal(command(), "sysctl -w net.ipv4.conf.wan0/5.forwarding=1");
}

/* Write the sysctls of a VLAN or tunnel. */
static void
sysctls_put(const char *dev, const char *rp_filter, const char *forwarding)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", dev);
	root_put(path, rp_filter);
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/forwarding", dev);
	root_put(path, forwarding);
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", dev);
	root_put(path, "0\n");
}

static size_t
n_found(void (*check)(struct exam *e))
{
	json_array_clear(t.e.rows);
	check(&t.e);
	return json_array_size(t.e.rows);
}

static void
sysctls_without_effect_are_not_looked_at(void **state)
{
	t.e.interfaces =
		json_loads("[{\"name\": \"wan0.10\", \"port\": false, \"urpf\": \"off\","
			   " \"part_of\": \"br10\"},"
			   "{\"name\": \"six\", \"port\": false, \"urpf\": \"strict\","
			   " \"part_of\": null, \"tunnel\": \"sit\", \"inner\": \"ipv6\"}]",
			   0, NULL);
	root_put("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
	root_put("/proc/sys/net/ipv4/conf/all/forwarding", "1\n");
	root_put("/proc/sys/net/ipv6/conf/all/forwarding", "1\n");
	sysctls_put("wan0.10", "1\n", "0\n");
	sysctls_put("six", "1\n", "0\n");
	assert_int_equal(n_found(check_rp_filter), 0);
	assert_int_equal(n_found(check_forwarding), 0);
	root_put("/proc/sys/net/ipv6/conf/all/forwarding", "0\n");
	assert_string_equal(verdict(check_forwarding), "fail");
	assert_string_equal(told("text"), "off: IPv6");
}

/* There may be thousands of VLANs, and one command mends them all. */
static void
a_sysctl_of_all_is_told_of_once(void **state)
{
	t.e.interfaces =
		json_loads("[{\"name\": \"wan0.5\", \"port\": false, \"urpf\": \"strict\"},"
			   "{\"name\": \"wan0.6\", \"port\": false, \"urpf\": \"strict\"}]",
			   0, NULL);
	root_put("/proc/sys/net/ipv4/conf/all/rp_filter", "1\n");
	root_put("/proc/sys/net/ipv4/conf/all/forwarding", "0\n");
	root_put("/proc/sys/net/ipv6/conf/all/forwarding", "1\n");
	sysctls_put("wan0.5", "0\n", "0\n");
	sysctls_put("wan0.6", "0\n", "0\n");
	assert_string_equal(verdict(check_rp_filter), "warn");
	assert_string_equal(told("subject"), "all");
	assert_string_equal(command(), "sysctl -w net.ipv4.conf.all.rp_filter=0");
	assert_string_equal(verdict(check_forwarding), "warn");
	assert_string_equal(told("subject"), "all");
	assert_string_equal(command(), "sysctl -w net.ipv4.ip_forward=1");
	root_put("/proc/sys/net/ipv6/conf/all/forwarding", "0\n");
	assert_string_equal(verdict(check_forwarding), "fail");
	assert_string_equal(told("text"), "off: IPv4 and IPv6");
	/* The finding about a port has the same command. */
	json_array_append_new(t.e.interfaces,
			      json_pack("{s:s, s:b}", "name", "wan0", "port", true));
	sysctls_put("wan0", "0\n", "0\n");
	assert_string_equal(verdict(check_rp_filter), "warn");
	assert_string_equal(told("subject"), "wan0");
	assert_string_equal(verdict(check_forwarding), "fail");
	assert_string_equal(told("subject"), "wan0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_nic_with_a_poor_slot_is_warned_of),
		TEST(a_link_is_judged_by_its_width_and_its_speed),
		TEST(a_hypervisors_nic_has_no_slot),
		TEST(cpus_of_another_node_are_warned_of),
		TEST(forwarding_cpus_want_isolation_clock_rate_and_their_core),
		TEST(the_clock_is_the_tsc),
		TEST(several_queues_want_a_hash),
		TEST(a_queue_without_a_forwarder_fails),
		TEST(a_cpu_without_a_queue_is_warned_of),
		TEST(memory_is_judged_by_the_configured_size),
		TEST(a_daemon_without_spare_descriptors_is_warned_of),
		TEST(a_port_without_iommu_is_warned_of),
		TEST(a_port_of_uio_is_for_vfio_where_that_can_take_it),
		TEST(a_port_that_a_bond_has_taken_is_warned_of),
		TEST(a_renamed_tap_is_looked_at_by_its_new_name),
		TEST(the_vlans_on_ports_are_looked_at),
		TEST(sysctls_without_effect_are_not_looked_at),
		TEST(a_sysctl_of_all_is_told_of_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
