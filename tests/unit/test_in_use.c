/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the host uses an interface: device_use_of() with the addresses, routes and TCP
 * connections of the kernel in a network namespace of this process.
 *
 * link: fpm-dataplane/pci/in_use.c fpm-dataplane/base/sysfs.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pci/device.h"

static bool has_bed; /* this process may make a namespace */

static void
run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* Make two interfaces without any use: va and vb. */
static int
setup(void **state)
{
	unsetenv("SSH_CONNECTION");
	if (!has_bed)
		return 0;
	run("ip link add va type veth peer vb && ip link set va up && ip link set vb up && "
	    "ip link set lo up && echo 0 >/proc/sys/net/ipv6/conf/va/accept_dad");
	return 0;
}

static int
teardown(void **state)
{
	if (has_bed)
		run("ip link del va; ip link del br0 2>/dev/null; true");
	return 0;
}

static void
bed_needed(void)
{
	if (has_bed)
		return;
	puts("skipped: needs root, or the kernel makes no veth");
	skip();
}

/* Return the uses of the interface: "ssh default address by=va upper=br0", or "". */
static const char *
used(const char *ifname)
{
	static char text[128];
	struct device_use use;

	device_use_of(ifname, &use);
	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", use.ssh ? "ssh " : "",
		 use.default_route ? "default " : "", use.address ? "address " : "",
		 use.by[0] != '\0' ? "by=" : "", use.by,
		 use.upper[0] != '\0' ? " upper=" : "", use.upper);
	return text;
}

/* A TCP connection with both ends in this process. */
struct session {
	int listening, client, server;
};

static void
session_begin(struct session *s, int family, const char *addr, uint16_t port)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr *a =
		family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
	socklen_t len = family == AF_INET ? sizeof(a4) : sizeof(a6);
	int one = 1;

	assert_int_equal(
		inet_pton(family, addr,
			  family == AF_INET ? (void *)&a4.sin_addr : (void *)&a6.sin6_addr),
		1);
	s->listening = socket(family, SOCK_STREAM, 0);
	s->client = socket(family, SOCK_STREAM, 0);
	setsockopt(s->listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(s->listening, a, len), 0);
	assert_int_equal(listen(s->listening, 1), 0);
	assert_string_equal(used("va"), "address by=va"); /* without a client */
	assert_int_equal(connect(s->client, a, len), 0);
	s->server = accept(s->listening, NULL, NULL);
	assert_true(s->server >= 0);
}

static void
session_end(struct session *s)
{
	/* Reset the connection, so that no socket stays in the state TIME-WAIT. */
	const struct linger now = {.l_onoff = 1};

	setsockopt(s->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(s->client);
	close(s->server);
	close(s->listening);
}

/* --- tests ---------------------------------------------------------------------------- */

static void
an_address_is_a_use_but_not_one_that_the_kernel_makes(void **state)
{
	bed_needed();
	assert_string_equal(used("va"), "");
	run("ip -6 addr add fe80::77/64 dev va");
	assert_string_equal(used("va"), "");
	run("ip -6 addr add 2001:db8::1/64 dev va");
	assert_string_equal(used("va"), "address by=va");
	assert_string_equal(used("vb"), "");
	run("ip -6 addr flush dev va && ip addr add 192.0.2.1/24 dev va");
	assert_string_equal(used("va"), "address by=va");
	assert_string_equal(used("vb"), "");
}

static void
a_default_route_of_any_table_is_a_use(void **state)
{
	bed_needed();
	run("ip route add 203.0.113.0/24 dev va && ip -6 route add 2001:db8:7::/48 dev va");
	assert_string_equal(used("va"), "");
	run("ip route add default dev va table 77");
	assert_string_equal(used("va"), "default by=va");
	assert_string_equal(used("vb"), "");
	run("ip route del default dev va table 77 && ip -6 route add default dev va");
	assert_string_equal(used("va"), "default by=va");
	assert_string_equal(used("vb"), "");
}

static void
uses_of_an_interface_above_count(void **state)
{
	bed_needed();
	run("ip link add br0 type bridge && ip link set va master br0 && ip link set br0 "
	    "up");
	assert_string_equal(used("va"), " upper=br0");
	assert_string_equal(used("br0"), "");
	run("ip addr add 192.0.2.1/24 dev br0");
	assert_string_equal(used("va"), "address by=br0 upper=br0");
	run("ip route add default dev va");
	assert_string_equal(used("va"), "default address by=va upper=br0");
}

static void
a_session_to_the_port_of_ssh_is_a_use(void **state)
{
	static const struct {
		int family;
		const char *addr;
	} row[] = {
		{AF_INET, "192.0.2.1"},
		{AF_INET6, "2001:db8::1"},
		{AF_INET6, "::ffff:192.0.2.1"},
	};
	struct session s;

	bed_needed();
	run("ip addr add 192.0.2.1/24 dev va && ip -6 addr add 2001:db8::1/64 dev va "
	    "nodad");
	for (unsigned int i = 0; i < 3; i++) {
		session_begin(&s, row[i].family, row[i].addr, 22);
		assert_string_equal(used("va"), "ssh address by=va");
		assert_string_equal(used("vb"), "");
		session_end(&s);
	}
	session_begin(&s, AF_INET, "192.0.2.1", 2222);
	assert_string_equal(used("va"), "address by=va");
	/* The daemon of SSH may listen on another port. */
	assert_int_equal(prctl(PR_SET_NAME, "sshd"), 0);
	assert_string_equal(used("va"), "ssh address by=va");
	assert_int_equal(prctl(PR_SET_NAME, "dropbear"), 0);
	assert_string_equal(used("va"), "ssh address by=va");
	assert_int_equal(prctl(PR_SET_NAME, "test_in_use"), 0);
	assert_string_equal(used("va"), "address by=va");
	session_end(&s);
}

static void
our_own_session_is_a_use_by_its_address_or_its_route(void **state)
{
	bed_needed();
	run("ip addr add 192.0.2.1/24 dev va && ip -6 addr add 2001:db8::1/64 dev va nodad "
	    "&& "
	    "ip addr add 198.51.100.1/24 dev vb");
	setenv("SSH_CONNECTION", "203.0.113.9 1022 192.0.2.1 22", 1);
	assert_string_equal(used("va"), "ssh address by=va");
	assert_string_equal(used("vb"), "address by=vb");
	setenv("SSH_CONNECTION", "2001:db8:9::9 1022 2001:db8::1 22", 1);
	assert_string_equal(used("va"), "ssh address by=va");
	/* No interface has the address, but the answers leave by va. */
	setenv("SSH_CONNECTION", "192.0.2.9 1022 203.0.113.1 22", 1);
	assert_string_equal(used("va"), "ssh address by=va");
	assert_string_equal(used("vb"), "address by=vb");
	setenv("SSH_CONNECTION", "2001:db8::9 1022 2001:db8:1::1 22", 1);
	assert_string_equal(used("va"), "ssh address by=va");
	/* No route leads to the client. */
	setenv("SSH_CONNECTION", "203.0.113.9 1022 203.0.113.1 22", 1);
	assert_string_equal(used("va"), "address by=va");
	setenv("SSH_CONNECTION", "nonsense 1022 192.0.2.1 22", 1);
	assert_string_equal(used("va"), "address by=va");
	setenv("SSH_CONNECTION", "192.0.2.9 1022 nonsense 22", 1);
	assert_string_equal(used("va"), "address by=va");
	setenv("SSH_CONNECTION", "192.0.2.9", 1);
	assert_string_equal(used("va"), "address by=va");
}

static void
each_use_has_its_sentence_the_worst_first(void **state)
{
	struct device_use use = {.ssh = true,
				 .default_route = true,
				 .address = true,
				 .by = "bond0",
				 .upper = "br0"};
	char why[256] = "";

	assert_true(device_use_text("va", &use, why, sizeof(why)));
	assert_string_equal(why, "an SSH session comes in by bond0");
	use.ssh = false;
	assert_true(device_use_text("va", &use, why, sizeof(why)));
	assert_string_equal(why, "bond0 carries the default route; give that to another "
				 "interface first");
	use.default_route = false;
	assert_true(device_use_text("va", &use, why, sizeof(why)));
	assert_string_equal(why,
			    "bond0 has an address, so the machine uses it; take that away "
			    "first (ip addr flush dev bond0)");
	use.address = false;
	assert_true(device_use_text("va", &use, why, sizeof(why)));
	assert_string_equal(why,
			    "va is part of br0, so the machine uses it; take it out there "
			    "first");
	use.upper[0] = '\0';
	assert_false(device_use_text("va", &use, why, sizeof(why)));
}

/* Enter a new network namespace, with its own /sys. */
static int
bed_enter(void **state)
{
	has_bed = unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
		  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		  mount("sysfs", "/sys", "sysfs", 0, NULL) == 0 &&
		  system("ip link add va type veth peer vb && ip link del va") == 0;
	return 0;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_address_is_a_use_but_not_one_that_the_kernel_makes),
		TEST(a_default_route_of_any_table_is_a_use),
		TEST(uses_of_an_interface_above_count),
		TEST(a_session_to_the_port_of_ssh_is_a_use),
		TEST(our_own_session_is_a_use_by_its_address_or_its_route),
		cmocka_unit_test(each_use_has_its_sentence_the_worst_first),
	};

	return cmocka_run_group_tests_name("in_use", tests, bed_enter, NULL);
}
