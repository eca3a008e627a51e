/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of the configuration file against the machine.
 *
 * link: fpm-dataplane/config/ fpm-dataplane/pci/devargs.c
 * link: fpm-dataplane/base/ tap-bridge/netns.c tests/unit/config_said.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arch.h"
#include "config_said.h"

/* Replaces sysinfo() of libc: this machine has 8 GiB. */
int
sysinfo(struct sysinfo *info)
{
	*info = (struct sysinfo){.totalram = 8192, .mem_unit = 1 << 20};
	return 0;
}

static void
a_tap_name_is_an_interface_name(void **state)
{
	static const char *const bad[] = {
		"sixteen-letters-", "a/b", "a b", "a:b", "..", "rt%d"};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[128], want[256];

		snprintf(text, sizeof(text), "ports: [{device: net_null, tap: \"%s\"}]",
			 bad[i]);
		snprintf(
			want, sizeof(want),
			"1: ports[%s].tap: '%s' is not an interface name; expected 1 to 15 "
			"characters, no slash, blank, colon or percent, such as wan0\n",
			bad[i], bad[i]);
		says_alone(text, want);
	}
}

static void
a_device_must_be_there(void **state)
{
	says_alone(
		"ports:\n  - tap: a\n    device: net_af_packet,iface=nonesuch0\n",
		"3: ports[a].device: no network interface 'nonesuch0' here; expected one "
		"that `ip link` shows in the daemon's network namespace\n");
	says_alone(
		"ports:\n  - tap: a\n    device: net_bonding0,mode=1,member=ff1f:ff:1f.7,"
		"member=ff1f:ff:1f.6\n",
		"3: ports[a].device: no PCI device ff1f:ff:1f.7; expected one that "
		"`lspci -D` shows\n");
	says_alone("ports:\n  - tap: a\n    device: net_bonding0,mode=2\n",
		   "3: ports[a].device: mode=2 is not supported; expected mode=1 "
		   "(active-backup) or mode=4 (802.3ad)\n");
	says_alone("ports:\n  - tap: a\n    device: net_af_packet\n",
		   "3: ports[a].device: names no interface; expected "
		   "net_af_packet,iface=NAME\n");
	says_alone("ports:\n  - tap: a\n    device: lo\n",
		   "3: ports[a].device: 'lo' is a kernel interface; expected "
		   "net_af_packet,iface=lo\n");
	says_alone("ports:\n  - tap: a\n    device: ffff:ff:1f.7\n",
		   "3: ports[a].device: no PCI device ffff:ff:1f.7; expected one that "
		   "`lspci -D` shows\n");
	says_alone("ports:\n  - tap: a\n    device: ff:1e.7,opt=1\n",
		   "3: ports[a].device: no PCI device 0000:ff:1e.7; expected one that "
		   "`lspci -D` shows\n");
	says_alone("ports:\n  - tap: a\n    device: eth_nic\n",
		   "3: ports[a].device: 'eth_nic' is not a device; expected a PCI address "
		   "(0000:03:00.0) or DPDK devargs (net_af_packet,iface=veth-wan)\n");
}

/* net_vhost makes the socket, and net_tap the interface, that `iface` names. */
static void
a_driver_may_make_what_iface_names(void **state)
{
	assert_int_equal(load("ports: [{tap: a, device: \"net_tap,iface=nonesuch0\"}]\n"),
			 0);
	assert_int_equal(
		load("ports: [{tap: a, device: \"net_vhost,iface=/run/nonesuch\"}]"), 0);
}

static void
a_driver_that_blocks_is_refused(void **state)
{
	says_alone("ports: [{tap: a, device: \"net_virtio_user0,path=/run/x,server=1\"}]",
		   "1: ports[a].device: server=1 blocks until a peer connects; expected "
		   "net_vhost,iface=PATH, or a path on which the peer listens\n");
	assert_int_equal(
		load("ports: [{tap: a, device: \"net_virtio_user,path=/run/x,server=0\"}]"),
		0);
}

static void
plugins_lie_where_only_root_writes(void **state)
{
	const Elf64_Ehdr elf = {.e_ident = ELFMAG, .e_type = ET_DYN, .e_machine = ARCH_ELF};
	char file[] = "/tmp/fdp-plugin-XXXXXX", text[128], want[256];
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
	close(fd);
	says("plugins: x.so\n", "2: plugins: is not a list; expected a list of absolute "
				"paths of shared objects\n");
	says("plugins: [x.so]\n",
	     "2: plugins[0]: 'x.so' is not usable; expected an absolute "
	     "path of at most 255 characters\n");
	says("plugins: [/nonesuch/x.so]\n",
	     "2: plugins[0]: '/nonesuch/x.so' cannot be loaded: No such file or "
	     "directory; expected a shared object\n");
	says("plugins: [/etc/passwd]\n",
	     "2: plugins[0]: '/etc/passwd' cannot be loaded: not ELF for " ARCH_NAME "; "
	     "expected a shared object\n");
	says("plugins: [/etc]\n",
	     "2: plugins[0]: '/etc' cannot be loaded: not ELF for " ARCH_NAME "; "
	     "expected a shared object\n");
	snprintf(text, sizeof(text), "plugins: [%s]\n", file);
	snprintf(want, sizeof(want),
		 "2: plugins[0]: '%s' is below /tmp, which every user may write to; "
		 "expected a folder that only root may write to\n",
		 file);
	says(text, want);
	says("plugins: [/usr/bin/env]\n", "");
	unlink(file);
}

static void
cores_must_be_allowed_and_different(void **state)
{
	says("cores: 1\n",
	     "2: cores: '1' is not a list; expected a list of CPU numbers such as "
	     "[1, 2], or auto\n");
	says("cores: []\n",
	     "2: cores: is an empty list; expected a list of CPU numbers such as "
	     "[1, 2], or auto\n");
	says("cores:\n  - 8191\n  - x\n",
	     "3: cores[0]: no CPU 8191 for this process; expected one that `nproc` and "
	     "`taskset -p $$` allow\n"
	     "4: cores[1]: 'x' is not a plain number; expected the number of a CPU\n");
	says("cores: auto\n", "");
}

static void
a_repeated_core_is_reported(void **state)
{
	int cpu = sched_getcpu();
	char text[64], want[128];

	snprintf(text, sizeof(text), "cores: [%d, %d]\n", cpu, cpu);
	snprintf(want, sizeof(want), "2: cores[1]: CPU %d is listed twice; expected once\n",
		 cpu);
	says(text, want);
}

static void
a_namespace_must_be_there(void **state)
{
	says("control-netns: nonesuch\n",
	     "2: control-netns: no network namespace 'nonesuch'; "
	     "expected one that `ip netns` shows\n");
	says("control-netns: ../../etc\n",
	     "2: control-netns: '../../etc' is not a namespace name; expected a name as "
	     "`ip netns` shows it\n");
}

static void
memory_is_no_more_than_the_machine_has(void **state)
{
	says("memory: {size-mib: 1048576}\n",
	     "2: memory.size-mib: 1048576 is out of range; expected a number from 64 to "
	     "16384\n");
	says("memory:\n  size-mib: 6145\n",
	     "3: memory.size-mib: 6145 is too much for the 8192 MiB of this machine; "
	     "expected at most 6144, three quarters\n");
	says("memory: {size-mib: 6144}\n", "");
}

static void
a_tap_name_is_not_that_of_another_interface(void **state)
{
	static const char *const kernels[] = {"lo", "all", "default"};
	char text[128], want[256];
	struct if_nameindex *all = if_nameindex();

	for (unsigned int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "ports: [{device: net_null, tap: %s}]\n",
			 kernels[i]);
		snprintf(want, sizeof(want),
			 "1: ports[%s].tap: '%s' is the kernel's own name; expected "
			 "another, such as wan0\n",
			 kernels[i], kernels[i]);
		says_alone(text, want);
	}
	/*
	 * An Ethernet interface of the machine, if there is one. The system tests make one
	 * to be sure.
	 */
	for (struct if_nameindex *i = all; i->if_index != 0; i++)
		if (strncmp(i->if_name, "eth", 3) == 0) {
			snprintf(text, sizeof(text),
				 "\nports: [{device: net_null, tap: %s}]\n", i->if_name);
			snprintf(want, sizeof(want),
				 "2: ports[%s].tap: an interface '%s' exists and is not a "
				 "TAP; expected another name\n",
				 i->if_name, i->if_name);
			says_alone(text, want);
		}
	if_freenameindex(all);
}

static void
the_control_socket_has_a_place_of_its_own(void **state)
{
	char dir[] = "/tmp/test_config.XXXXXX", text[128], want[256], path[64];
	const char *const kind[] = {"a directory", "a plain file", "a symbolic link"};
	FILE *f = NULL;

	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		if (i == 0)
			assert_int_equal(mkdir(path, 0700), 0);
		else if (i == 1)
			assert_non_null(f = fopen(path, "w"));
		else
			assert_int_equal(symlink("nowhere", path), 0);
		snprintf(text, sizeof(text), "control-socket: %s\n", path);
		snprintf(want, sizeof(want),
			 "2: control-socket: '%s' is %s; expected a path where nothing is, "
			 "or a socket\n",
			 path, kind[i]);
		says(text, want);
	}
	fclose(f);
	snprintf(text, sizeof(text), "control-socket: %s/1/x\n", dir);
	snprintf(want, sizeof(want),
		 "2: control-socket: '%s/1/x' has a file in its path; expected directories "
		 "above it\n",
		 dir);
	says(text, want);
	snprintf(text, sizeof(text), "control-socket: %s/new/x\n", dir);
	says(text, "");
	for (int i = 2; i >= 0; i--) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		remove(path);
	}
	rmdir(dir);
}

static void
two_listeners_need_two_ports(void **state)
{
	says("metrics: 127.0.0.1:2620\n",
	     "2: metrics: its port is that of fpm.listen (127.0.0.1:2620); expected "
	     "another\n");
	says("fpm: {listen: 127.0.0.1:9620}\n",
	     "2: fpm.listen: its port is that of metrics (127.0.0.1:9620); expected "
	     "another\n");
	says("metrics: 0.0.0.0:2620\n",
	     "2: metrics: its port is that of fpm.listen (127.0.0.1:2620); expected "
	     "another\n");
	says("fpm: {listen: \"[::]:7\"}\nmetrics: 127.0.0.1:7\n",
	     "3: metrics: its port is that of fpm.listen ([::]:7); expected another\n");
	says("metrics: 127.0.0.2:2620\n", "");
	says("metrics: \"[::]:2620\"\n", "");
	says("fpm: {listen: 127.0.0.1:7}\nmetrics: off\n", "");
	/* An invalid value is not compared with another value. */
	says("fpm: {listen: x}\nmetrics: 127.0.0.1:2620\n",
	     "2: fpm.listen: 'x' is not an address and port; expected ADDRESS:PORT, "
	     "such as 127.0.0.1:2620 or \"[::1]:2620\"\n");
	says("fpm: {listen: 127.0.0.1:9620}\nmetrics: x\n",
	     "3: metrics: 'x' is not an address and port; expected ADDRESS:PORT, such as "
	     "127.0.0.1:2620 or \"[::1]:2620\", or off\n");
}

static void
users_are_known_here_or_numbers(void **state)
{
	says("fpm: {users: any}\n", "");
	assert_int_equal(conf.fpm_from.users, FPM_USERS_ANY);
	says("fpm: {users: [root, \"4321\", 77]}\n", "");
	assert_int_equal(conf.fpm_from.users, FPM_USERS_LISTED);
	assert_int_equal(conf.fpm_from.n_user, 3);
	assert_int_equal(conf.fpm_from.user[0].uid, 0);
	assert_int_equal(conf.fpm_from.user[1].uid, 4321);
	assert_int_equal(conf.fpm_from.user[2].uid, 77);
	says("", "");
	assert_int_equal(conf.fpm_from.users, FPM_USERS_AUTO);
	assert_in_range(conf.fpm_from.n_user, 0, 1);
	says("fpm: {users: [root, nosuchuser, \"4294967295\", \"1e3\"]}\n",
	     "2: fpm.users[1]: there is no user 'nosuchuser' here; expected a name in "
	     "/etc/passwd, or a number\n"
	     "2: fpm.users[2]: there is no user '4294967295' here; expected a name in "
	     "/etc/passwd, or a number\n"
	     "2: fpm.users[3]: there is no user '1e3' here; expected a name in "
	     "/etc/passwd, or a number\n");
	says("fpm: {users: []}\n",
	     "2: fpm.users: is an empty list; expected a list such as [frr, \"101\"], auto "
	     "or any\n");
	says("fpm: {users: frr}\n",
	     "2: fpm.users: 'frr' is not a list; expected a list such as [frr, \"101\"], "
	     "auto or any\n");
	says("fpm: {users: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n",
	     "2: fpm.users[8]: is one too many; expected at most 8\n");
}

/*
 * Without a free descriptor neither interfaces nor users can be looked up. The messages
 * report this, and not that an interface or a user does not exist.
 */
static void
the_lack_of_descriptors_is_no_lack_of_interfaces_and_users(void **state)
{
	static const char text[] =
		"ports:\n  - {tap: a, device: \"net_af_packet,iface=lo\"}\n"
		"  - {tap: b, device: lo}\n";
	static const char users[] = PORT "fpm: {users: [root]}\n";
	struct rlimit some, none;
	char *lines = NULL;
	size_t size;
	FILE *f = open_memstream(&lines, &size);
	int n[2];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &some), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = some.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	n[0] = config_parse("x", text, strlen(text), &conf, f);
	n[1] = config_parse("x", users, strlen(users), &conf, f);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &some), 0);
	fclose(f);
	assert_string_equal(
		lines,
		"x:1:1: fpm.users: /etc/passwd cannot be read: Too many open files; "
		"expected a readable file\n"
		"x:2:14: ports[a].device: the interface 'lo' cannot be looked up: Too many "
		"open files; expected a free descriptor\n"
		"x:3:14: ports[b].device: the interface 'lo' cannot be looked up: Too many "
		"open files; expected a free descriptor\n"
		"x:2:15: fpm.users[0]: /etc/passwd cannot be read: Too many open files; "
		"expected a readable file\n");
	assert_int_equal(n[0], 3);
	assert_int_equal(n[1], 1);
	free(lines);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tap_name_is_an_interface_name),
		cmocka_unit_test(a_device_must_be_there),
		cmocka_unit_test(a_driver_may_make_what_iface_names),
		cmocka_unit_test(a_driver_that_blocks_is_refused),
		cmocka_unit_test(plugins_lie_where_only_root_writes),
		cmocka_unit_test(cores_must_be_allowed_and_different),
		cmocka_unit_test(a_repeated_core_is_reported),
		cmocka_unit_test(a_namespace_must_be_there),
		cmocka_unit_test(memory_is_no_more_than_the_machine_has),
		cmocka_unit_test(a_tap_name_is_not_that_of_another_interface),
		cmocka_unit_test(the_control_socket_has_a_place_of_its_own),
		cmocka_unit_test(two_listeners_need_two_ports),
		cmocka_unit_test(users_are_known_here_or_numbers),
		cmocka_unit_test(
			the_lack_of_descriptors_is_no_lack_of_interfaces_and_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
