/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces, addresses and carrier: forwarders, rib and punt see the values that `ip`
 * shows for a TAP. Messages come in an order on which rib and punt can rely.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ tap-bridge/ poptrie/
 */
#include "test_neigh.h"

static void
interface_is_published_as_the_kernel_has_it(void **state)
{
	struct rig *r = rig_up(state);
	struct fib_iface fi = iface_now(r);

	assert_int_equal(fi.ifidx, IFIDX);
	assert_int_equal(fi.port_id, 7);
	assert_int_equal(fi.mtu_bytes, 1500);
	assert_memory_equal(fi.mac, mac_a, 6);
	assert_int_equal(fi.ifindex, r->port.tap.ifindex);
	assert_string_equal(fi.name, "t0");
	assert_true(fi.up && fi.forward4 && fi.forward6);
	assert_int_equal(link_said(&r->rib, "t0")->ifidx, IFIDX);
	rig_stop(r);
}

static void
mtu_and_mac_of_the_tap_reach_forwarders_and_device(void **state)
{
	static const uint8_t mac_c[6] = {0x02, 0, 0x5e, 0, 0x53, 0x0c};
	struct rig *r = rig_up(state);

	ip(r->bed, "link set t0 mtu 1400 address 02:00:5e:00:53:0c");

	wait_for(r, iface_now(r).mtu_bytes == 1400);
	wait_for(r, memcmp(iface_now(r).mac, mac_c, 6) == 0);
	assert_int_equal(atomic_load(&device.mtu_bytes), 1400);
	/* The device accepts at most 1600, so 1600 is in force. */
	ip(r->bed, "link set t0 mtu 9000");
	wait_for(r, iface_now(r).mtu_bytes == 1600);
	assert_int_equal(atomic_load(&device.mtu_bytes), 1600);
	ip(r->bed, "link set t0 mtu 1400");
	wait_for(r, iface_now(r).mtu_bytes == 1400);
	assert_int_equal(atomic_load(&device.mac), adj_hop_make(mac_c, 0));
	rig_stop(r);
}

static void
the_link_of_the_device_follows_the_tap(void **state)
{
	struct rig *r = rig_up(state);

	assert_false(atomic_load(&device.is_taken_down));
	ip(r->bed, "link set t0 down");
	wait_for(r, atomic_load(&device.is_taken_down));
	ip(r->bed, "link set t0 up");
	wait_for(r, !atomic_load(&device.is_taken_down));
	wait_for(r, iface_now(r).up);
	rig_stop(r);
}

static void
a_device_whose_link_is_refused_is_down_for_us(void **state)
{
	struct rig *r = rig_up(state);

	atomic_store(&device.set_link_rc, -ENOTSUP);
	ip(r->bed, "link set t0 down");
	wait_for(r, !iface_now(r).up);
	wait_for(r, atomic_load(&device.is_taken_down));
	ip(r->bed, "link set t0 up");
	wait_for(r, iface_now(r).up);
	rig_stop(r);
}

static void
admin_down_is_reported_and_published(void **state)
{
	struct rig *r = rig_up(state);

	ip(r->bed, "link set t0 down");
	wait_for(r, said_up(&r->rib, "t0", false) && said_up(&r->punt, "t0", false));
	assert_false(iface_now(r).up);

	ip(r->bed, "link set t0 up");
	wait_for(r, said_up(&r->rib, "t0", true) && said_up(&r->punt, "t0", true));
	assert_true(iface_now(r).up);
	rig_stop(r);
}

static bool
source6_is(struct rig *r, const char *text)
{
	struct fib_iface fi = iface_now(r);
	struct ipaddr addr = addr_of(text);

	return ipaddr_equal(&fi.src6, &addr);
}

static void
sources_of_icmp_errors_are_global_addresses(void **state)
{
	struct rig *r = rig_of(state);

	ip(r->bed, "addr flush dev t0");
	ip(r->bed, "addr add 169.254.7.7/16 dev t0");
	rig_start(r);
	wait_for(r, iface_now(r).src4 == 0xa9fe0707);
	assert_true(source6_is(r, "::"));

	ip(r->bed, "addr add 192.0.2.1/24 dev t0");
	ip(r->bed, "addr add 192.0.2.2/24 dev t0"); /* secondary */
	wait_for(r, iface_now(r).src4 == 0xc0000201);
	ip(r->bed, "addr add fd00::1/64 dev t0");
	wait_for(r, source6_is(r, "fd00::1"));
	ip(r->bed, "addr add 2001:db8::1/64 dev t0");
	wait_for(r, source6_is(r, "2001:db8::1"));
	ip(r->bed, "addr del 192.0.2.1/24 dev t0");
	wait_for(r, iface_now(r).src4 == 0xa9fe0707);
	rig_stop(r);
}

static void
deprecated_addresses_are_the_last_choice(void **state)
{
	struct rig *r = rig_up(state);

	wait_for(r, source6_is(r, "2001:db8::1"));
	ip(r->bed, "addr add fd00::1/64 dev t0 nodad");
	ip(r->bed, "addr change 2001:db8::1/64 dev t0 preferred_lft 0");
	wait_for(r, source6_is(r, "fd00::1"));
	ip(r->bed, "addr change fd00::1/64 dev t0 preferred_lft 0");
	wait_for(r, source6_is(r, "2001:db8::1"));
	/* A preferred address that can be borrowed is better. */
	ip(r->bed, "addr add fd00::2/128 dev lo");
	wait_for(r, source6_is(r, "fd00::2"));
	ip(r->bed, "addr change 2001:db8::1/64 dev t0 preferred_lft forever");
	wait_for(r, source6_is(r, "2001:db8::1"));
	ip(r->bed, "addr change 192.0.2.1/24 dev t0 preferred_lft 0");
	ip(r->bed, "addr add 198.51.100.1/24 dev t0");
	ip(r->bed, "addr change 2001:db8::1/64 dev t0 preferred_lft 0");
	wait_for(r, source6_is(r, "fd00::2"));
	assert_int_equal(iface_now(r).src4, 0xc0000201);
	rig_stop(r);
}

static void
foreign_interface_is_told_without_an_index_of_ours(void **state)
{
	struct rig *r = rig_up(state);

	ip(r->bed, "link add f0 type veth peer name f1");
	ip(r->bed, "link set f0 up");
	ip(r->bed, "addr add 198.51.100.1/24 dev f0");
	wait_for(r, said_up(&r->rib, "f0", true) && said_up(&r->punt, "f0", true));
	assert_int_equal(link_said(&r->rib, "f0")->ifidx, 0);

	ip(r->bed, "link del f0");
	wait_for(r, said_gone(&r->rib, "f0") && said_gone(&r->punt, "f0"));
	rig_stop(r);
}

static void
renamed_tap_stays_the_port(void **state)
{
	struct rig *r = rig_up(state);

	/* The link is down, because kernels before 6.2 cannot rename a link that is up. */
	ip(r->bed, "link set t0 down");
	ip(r->bed, "link set t0 name t9");
	ip(r->bed, "link set t9 up");

	wait_for(r, link_said(&r->rib, "t9") != NULL);
	assert_int_equal(link_said(&r->rib, "t9")->ifidx, IFIDX);
	wait_for(r, strcmp(iface_now(r).name, "t9") == 0);
	assert_true(iface_now(r).forward4);
	rig_stop(r);
}

/* Return the ifindex of the new TAP if `in` has a message about one, or 0. */
static uint32_t
new_tap_told(const struct inbox *in)
{
	for (unsigned int i = 0; i < in->n; i++)
		if (in->m[i]->type == MSG_TAP)
			return caa_container_of(in->m[i], struct msg_tap, m)->ifindex;
	return 0;
}

/*
 * True if punt and manage got a message about the new TAP and the port's descriptor is that
 * of the new TAP.
 */
static bool
has_new_tap(struct rig *r)
{
	uint32_t ifindex = new_tap_told(&r->punt);
	char name[IFNAMSIZ];

	if (ifindex == 0 || new_tap_told(&r->manage) != ifindex ||
	    tap_name(r->port.tap.fd, name) < 0)
		return false;
	r->port.tap.ifindex = ifindex;
	return true;
}

static bool
new_tap_is_the_ports(struct rig *r)
{
	return has_new_tap(r) && iface_now(r).ifindex == r->port.tap.ifindex &&
	       said_up(&r->rib, "t0", true) && link_said(&r->rib, "t0")->ifidx == IFIDX;
}

static void
deleted_tap_is_reported_gone_and_made_again(void **state)
{
	struct rig *r = rig_up(state);
	unsigned int old = r->port.tap.ifindex;

	ip(r->bed, "link del t0");
	wait_for(r, said_gone(&r->rib, "t0") && said_gone(&r->punt, "t0"));
	assert_int_equal(link_said(&r->rib, "t0")->ifidx, IFIDX);

	wait_for(r, new_tap_is_the_ports(r));
	assert_int_not_equal(r->port.tap.ifindex, old);
	assert_memory_equal(iface_now(r).mac, r->port.mac, 6);

	/* The new TAP works like the old one. */
	ip(r->bed, "addr add 192.0.2.1/24 dev t0");
	wait_for(r, iface_now(r).src4 == 0xc0000201);
	ip(r->bed, "link set t0 mtu 1400");
	wait_for(r, iface_now(r).mtu_bytes == 1400);
	rig_stop(r);
}

static void
tap_that_is_gone_at_the_start_is_made_again(void **state)
{
	struct rig *r = rig_of(state);
	unsigned int old = r->port.tap.ifindex;

	ip(r->bed, "link del t0");
	rig_start(r);

	wait_for(r, new_tap_is_the_ports(r));
	assert_int_not_equal(r->port.tap.ifindex, old);
	rig_stop(r);
}

static void
tap_that_was_moved_away_is_made_again(void **state)
{
	struct rig *r = rig_up(state);
	unsigned int old = r->port.tap.ifindex;
	char there[64];

	/*
	 * The name has the form of a bed's name, so that the namespace is removed if this
	 * test fails.
	 */
	snprintf(there, sizeof(there), "tb%d-%d", getpid(), 1 << 20);
	assert_int_equal(run("ip netns add %s", there), 0);
	ip(r->bed, "link set t0 down");
	assert_int_equal(run("ip -n %s link set t0 netns %s", r->bed->netns, there), 0);

	wait_for(r, new_tap_is_the_ports(r));
	assert_int_not_equal(r->port.tap.ifindex, old);
	rig_stop(r);
	run("ip netns del %s", there);
}

static void
tap_made_again_forwards_if_the_sysctls_allow_it(void **state)
{
	struct rig *r = rig_up(state);

	assert_true(iface_now(r).forward4);
	bed_sysctl(r->bed, "ipv4/conf/default/forwarding", "0");
	ip(r->bed, "link del t0");
	wait_for(r, new_tap_is_the_ports(r));
	wait_for(r, !iface_now(r).forward4);
	rig_stop(r);
}

static void
tap_that_was_deleted_waits_for_its_name(void **state)
{
	struct rig *r = rig_up(state);

	/*
	 * `ip` deletes t0 and renames t9 to t0 in one batch, so that neigh finds the name
	 * in use. The new t0 is no TAP.
	 */
	ip(r->bed, "link add t9 type veth peer name t8");
	run("printf 'link del t0\nlink set t9 name t0\n' | ip -n %s -batch -",
	    r->bed->netns);
	wait_for(r, link_said(&r->rib, "t0") != NULL && !said_gone(&r->rib, "t0") &&
			    link_said(&r->rib, "t0")->ifidx == 0);
	assert_int_equal(iface_now(r).ifindex, 0);

	ip(r->bed, "link del t0");
	wait_for(r, new_tap_is_the_ports(r));
	rig_stop(r);
}

static void
tap_that_the_operator_made_again_is_taken(void **state)
{
	struct rig *r = rig_up(state);

	run("printf 'link del t0\ntuntap add t0 mode tap\nlink set t0 up\naddr add "
	    "192.0.2.1/24 dev t0\n' | "
	    "ip -n %s -batch -",
	    r->bed->netns);

	wait_for(r, new_tap_is_the_ports(r));
	wait_for(r, iface_now(r).src4 == 0xc0000201);
	rig_stop(r);
}

static void
forwarding_sysctls_are_followed(void **state)
{
	struct rig *r = rig_up(state);

	bed_sysctl(r->bed, "ipv4/conf/t0/forwarding", "0");
	wait_for(r, !iface_now(r).forward4);
	assert_true(iface_now(r).forward6);

	/* In IPv6 the kernel forwards by the value of `all` alone. */
	bed_sysctl(r->bed, "ipv6/conf/t0/forwarding", "0");
	bed_sysctl(r->bed, "ipv4/conf/t0/forwarding", "1");
	wait_for(r, iface_now(r).forward4);
	assert_true(iface_now(r).forward6);
	bed_sysctl(r->bed, "ipv6/conf/all/forwarding", "0");
	wait_for(r, !iface_now(r).forward6);
	rig_stop(r);
}

static void
settings_of_ipv6_are_followed(void **state)
{
	struct rig *r = rig_up(state);

	assert_int_equal(iface_now(r).mtu6_bytes, 1500);
	/*
	 * When the kernel handles the carrier, it sets the MTU of IPv6 to that of the link.
	 */
	wait_for(r, run("ip -n %s link show t0 | grep -q 'state UP'", r->bed->netns) == 0);
	bed_sysctl(r->bed, "ipv6/conf/t0/mtu", "1400");
	wait_for(r, iface_now(r).mtu6_bytes == 1400);
	assert_int_equal(iface_now(r).mtu_bytes, 1500);

	bed_sysctl(r->bed, "ipv6/conf/t0/disable_ipv6", "1");
	wait_for(r, iface_now(r).ipv6_off);
	assert_true(iface_now(r).forward6 && !iface_now(r).fast6 && iface_now(r).fast4);

	bed_sysctl(r->bed, "ipv6/conf/t0/disable_ipv6", "0");
	wait_for(r, !iface_now(r).ipv6_off && iface_now(r).fast6);
	ip(r->bed, "link set t0 mtu 1279");
	wait_for(r, iface_now(r).ipv6_off && iface_now(r).mtu6_bytes == 1279);
	rig_stop(r);
}

/* True if the kernel sees carrier on t0. */
static bool
tap_has_carrier(struct rig *r)
{
	return run("ip -n %s link show t0 | grep -q LOWER_UP", r->bed->netns) == 0;
}

static void
carrier_follows_the_link_of_the_device(void **state)
{
	struct rig *r = rig_up(state);

	wait_for(r, tap_has_carrier(r));
	atomic_store(&device.link_down, true);
	wait_for(r, said_up(&r->rib, "t0", false));
	wait_for(r, !tap_has_carrier(r));
	assert_false(iface_now(r).up);

	atomic_store(&device.link_down, false);
	wait_for(r, said_up(&r->rib, "t0", true));
	wait_for(r, tap_has_carrier(r));
	rig_stop(r);
}

static bool
tap_reports_speed(struct rig *r, unsigned int mbit_per_s)
{
	return run("ip netns exec %s grep -qx %u /sys/class/net/t0/speed", r->bed->netns,
		   mbit_per_s) == 0;
}

static void
speed_of_the_tap_is_that_of_the_device(void **state)
{
	struct rig *r = rig_of(state);
	struct port_link link;

	atomic_store(&device.mbit_per_s, 25000);
	rig_start(r);
	wait_for(r, tap_reports_speed(r, 25000));
	/* ui and sflow read what neigh has read, and do not ask the device. */
	link = port_link_known(&r->port);
	assert_true(link.up && link.full_duplex);
	assert_int_equal(link.mbit_per_s, 25000);

	atomic_store(&device.mbit_per_s, 1000);
	wait_for(r, tap_reports_speed(r, 1000));
	assert_int_equal(port_link_known(&r->port).mbit_per_s, 1000);
	/* If the device does not know its speed, the TAP keeps the speed that it has. */
	atomic_store(&device.link_down, true);
	wait_for(r, said_up(&r->rib, "t0", false));
	assert_false(port_link_known(&r->port).up);
	atomic_store(&device.mbit_per_s, 0);
	atomic_store(&device.link_down, false);
	wait_for(r, said_up(&r->rib, "t0", true));
	assert_true(tap_reports_speed(r, 1000));

	ip(r->bed, "link del t0");
	wait_for(r, tap_reports_speed(r, 1000));
	rig_stop(r);
}

static void
carrier_follows_the_interface_behind_an_af_packet_port(void **state)
{
	struct rig *r = rig_of(state);

	/* The interface is in our namespace, its peer in the bed's. */
	snprintf(r->port.kernel_if, sizeof(r->port.kernel_if), "tn%d", getpid());
	assert_int_equal(run("ip link add %s up type veth peer name far netns %s",
			     r->port.kernel_if, r->bed->netns),
			 0);
	ip(r->bed, "link set far up");
	rig_start(r);
	wait_for(r, said_up(&r->rib, "t0", true) && tap_has_carrier(r));

	ip(r->bed, "link set far down");
	wait_for(r, said_up(&r->rib, "t0", false) && !tap_has_carrier(r));
	ip(r->bed, "link set far up");
	wait_for(r, said_up(&r->rib, "t0", true) && tap_has_carrier(r));
	assert_int_equal(run("ip link set %s down", r->port.kernel_if), 0);
	wait_for(r, said_up(&r->rib, "t0", false) && !tap_has_carrier(r));
	assert_int_equal(run("ip link set %s up", r->port.kernel_if), 0);
	wait_for(r, said_up(&r->rib, "t0", true) && tap_has_carrier(r));
	ip(r->bed, "link del far");
	wait_for(r, said_up(&r->rib, "t0", false) && !tap_has_carrier(r));
	rig_stop(r);
}

static void
missing_namespace_is_an_error_at_start(void **state)
{
	struct rig *r = rig_of(state);
	struct neigh_conf conf = {
		.netns = "no-such-namespace", .port = &r->port, .n_port = 1};
	struct worker w;

	assert_int_equal(fib_create(&r->fib, &(struct fib_conf){.n_nodes = 0}), 0);
	conf.fib = r->fib;
	assert_int_equal(neigh_setup(&w, &conf), 0);
	assert_int_equal(worker_prepare(&w), 0);

	assert_int_equal(worker_start(&w), -ENOENT);

	worker_stop(&w);
	urcu_qsbr_barrier();
	worker_free(&w);
	neigh_teardown(&w);
	fib_destroy(r->fib);
	tap_close(&r->port.tap);
	free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(interface_is_published_as_the_kernel_has_it),
		bed_test(mtu_and_mac_of_the_tap_reach_forwarders_and_device),
		bed_test(the_link_of_the_device_follows_the_tap),
		bed_test(a_device_whose_link_is_refused_is_down_for_us),
		bed_test(admin_down_is_reported_and_published),
		bed_test(sources_of_icmp_errors_are_global_addresses),
		bed_test(deprecated_addresses_are_the_last_choice),
		bed_test(foreign_interface_is_told_without_an_index_of_ours),
		bed_test(renamed_tap_stays_the_port),
		bed_test(deleted_tap_is_reported_gone_and_made_again),
		bed_test(tap_that_is_gone_at_the_start_is_made_again),
		bed_test(tap_that_was_moved_away_is_made_again),
		bed_test(tap_made_again_forwards_if_the_sysctls_allow_it),
		bed_test(tap_that_was_deleted_waits_for_its_name),
		bed_test(tap_that_the_operator_made_again_is_taken),
		bed_test(forwarding_sysctls_are_followed),
		bed_test(settings_of_ipv6_are_followed),
		bed_test(carrier_follows_the_link_of_the_device),
		bed_test(speed_of_the_tap_is_that_of_the_device),
		bed_test(carrier_follows_the_interface_behind_an_af_packet_port),
		bed_test(missing_namespace_is_an_error_at_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
