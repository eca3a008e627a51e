/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outer headers of tunnels that end in the kernel, as the warn thread learns them from
 * messages about devices and from answers by generic netlink. The test makes the messages,
 * because kernels without WireGuard or PPP have no such devices.
 *
 * link: fpm-dataplane/warn/outer.c fpm-dataplane/warn/genl.c
 * link: fpm-dataplane/netlink/device_message.c fpm-dataplane/base/kernel_outer.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <net/if.h> /* both before headers of linux/ that have the same definitions */
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fou.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/l2tp.h>
#include <linux/rtnetlink.h>
#include <linux/wireguard.h>
#include <stdalign.h>
#include <string.h>
#include <unistd.h>

#include "base/kernel_outer.h"
#include "netlink/device_message.h"
#include "warn/impl.h"

#define FAMILY 0x21 /* number of each family in generic netlink */
#define SECRET "a private key of 32 octets......"

static struct {
	struct warn w;
	uint8_t buffer[ASK_BUFFER_BYTES];
	char asked[256];                   /* "family; ifindex; ..." of the requests */
	uint16_t attr, port;               /* the answer to requests of FAMILY */
	int family_rc, dump_rc;            /* results of ask_dump() */
	int open_rc;                       /* not 0: the result of ask_open() */
	unsigned int fails_after, n_dumps; /* not 0: the requests of a scan that succeed */
	int unread;
} t;

/* --- functions that this program replaces --------------------------------------------- */

int
ask_open(int protocol)
{
	assert_int_equal(protocol, NETLINK_GENERIC);
	t.n_dumps = 0;
	if (t.open_rc < 0)
		return t.open_rc;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool
ask_is_ending(const struct warn *w)
{
	return false;
}

void
unread_add(struct warn *w, const char *part, int error)
{
	t.unread = error;
}

static void
answer(ask_fn fn, void *ctx, uint16_t attr, uint16_t value)
{
	alignas(8) uint8_t octet[128] = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(octet);

	mnl_nlmsg_put_extra_header(nlh, GENL_HDRLEN);
	mnl_attr_put_u16(nlh, attr, value);
	memcpy(t.buffer, SECRET, sizeof(SECRET));
	fn(&t.w, nlh, ctx);
}

int
ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	const struct nlattr *attr =
		(void *)((uint8_t *)request + NLMSG_HDRLEN + GENL_HDRLEN);
	size_t n = strlen(t.asked);
	uint32_t ifindex = 0;

	if (request->nlmsg_type == GENL_ID_CTRL) {
		snprintf(t.asked + n, sizeof(t.asked) - n, "%s; ",
			 (const char *)mnl_attr_get_payload(attr));
		answer(fn, ctx, CTRL_ATTR_FAMILY_ID, FAMILY);
		return t.family_rc;
	}
	assert_int_equal(request->nlmsg_type, FAMILY);
	assert_int_equal(request->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
	if (request->nlmsg_len > NLMSG_LENGTH(GENL_HDRLEN)) {
		assert_int_equal(attr->nla_type, WGDEVICE_A_IFINDEX);
		ifindex = mnl_attr_get_u32(attr);
	}
	snprintf(t.asked + n, sizeof(t.asked) - n, "%u; ", ifindex);
	if (t.fails_after != 0 && t.n_dumps++ == t.fails_after)
		return -ENOBUFS;
	if (t.dump_rc == 0)
		answer(fn, ctx, t.attr, (uint16_t)(t.port + ifindex));
	return t.dump_rc;
}

/* --- devices -------------------------------------------------------------------------- */

/*
 * The kernel lists a device. It is up, unless `flags` is 0. Attribute `attr` of its data
 * has `value`, as it is in memory; 0: no data.
 */
static void
device(uint32_t ifindex, const char *kind, unsigned int flags, uint16_t attr,
       uint16_t value)
{
	alignas(8) uint8_t octet[256] = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(octet);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	struct nlattr *nest, *data;
	struct device_message m;

	nlh->nlmsg_type = RTM_NEWLINK;
	info->ifi_index = (int)ifindex;
	info->ifi_flags = flags;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "tunnel");
	nest = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, kind);
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	if (attr != 0)
		mnl_attr_put_u16(nlh, attr, value);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, nest);
	assert_int_equal(device_message_decode(nlh, &m), 0);
	outer_note(&t.w, nlh, &m);
}

/* The next scan begins; the kernel has listed no device yet. */
static void
scan_again(void)
{
	t.w.outer = (struct outer_found){0};
}

static void
publish(void)
{
	t.asked[0] = '\0';
	t.unread = 0;
	outer_scan(&t.w);
}

/* Return the number of UDP ports and IP protocols that are known. */
static unsigned int
known(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 65536; i++)
		n += kernel_outer_has_udp((uint16_t)i);
	for (unsigned int i = 0; i < 256; i++)
		n += kernel_outer_has_protocol((uint8_t)i);
	return n;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.w.buffer = t.buffer;
	kernel_outer_publish(&t.w.outer.headers);
	return 0;
}

/* --- tests ---------------------------------------------------------------------------- */

static void
the_kind_of_a_device_tells_its_outer_headers(void **state)
{
	static const struct {
		const char *kind;
		uint16_t attr, udp;
		uint8_t protocol, other;
	} row[] = {
		{"vxlan", IFLA_VXLAN_PORT, 4789, 0, 0},
		{"geneve", IFLA_GENEVE_PORT, 6081, 0, 0},
		{"bareudp", IFLA_BAREUDP_PORT, 6635, 0, 0},
		{"gtp", 0, 2152, 0, 0},
		{"gre", 0, 0, 47, 0},
		{"gretap", 0, 0, 47, 0},
		{"erspan", 0, 0, 47, 0},
		{"ip6gre", 0, 0, 47, 0},
		{"ip6gretap", 0, 0, 47, 0},
		{"ip6erspan", 0, 0, 47, 0},
		{"ipip", 0, 0, 4, 0},
		{"sit", 0, 0, 41, 4},
		{"ip6tnl", 0, 0, 41, 4},
	};

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		setup(NULL);
		/* A device that is not up receives nothing. */
		device(5, row[i].kind, 0, row[i].attr, htons(row[i].udp));
		publish();
		assert_int_equal(known(), 0);
		device(5, row[i].kind, IFF_UP, row[i].attr, htons(row[i].udp));
		publish();
		assert_int_equal(known(), (row[i].udp != 0) + (row[i].protocol != 0) +
						  (row[i].other != 0));
		assert_true(row[i].udp == 0 || kernel_outer_has_udp(row[i].udp));
		assert_true(row[i].protocol == 0 ||
			    kernel_outer_has_protocol(row[i].protocol));
		assert_true(row[i].other == 0 || kernel_outer_has_protocol(row[i].other));
		assert_false(kernel_outer_has_pppoe());
		assert_string_equal(t.asked, "");
	}
}

static void
devices_that_are_no_tunnels_have_no_outer_headers(void **state)
{
	static const char *const kind[] = {"", "veth", "bridge", "dummy", "tun", "vxlanx"};

	for (unsigned int i = 0; i < sizeof(kind) / sizeof(kind[0]); i++)
		device(5 + i, kind[i], IFF_UP, IFLA_VXLAN_PORT, htons(4789));
	publish();
	assert_int_equal(known(), 0);
	assert_false(kernel_outer_has_pppoe());
}

static void
a_device_of_ppp_may_have_sessions_of_pppoe(void **state)
{
	device(5, "ppp", 0, 0, 0);
	publish();
	assert_false(kernel_outer_has_pppoe());
	device(5, "ppp", IFF_UP, 0, 0);
	publish();
	assert_true(kernel_outer_has_pppoe());
	assert_int_equal(known(), 0);
	scan_again();
	publish();
	assert_false(kernel_outer_has_pppoe());
}

static void
policies_of_ipsec_have_outer_headers(void **state)
{
	t.w.outer_asked.ipsec = true; /* ipsec.c has found policies */
	publish();
	assert_int_equal(known(), 4);
	assert_true(kernel_outer_has_protocol(IPPROTO_ESP));
	assert_true(kernel_outer_has_protocol(IPPROTO_AH));
	assert_true(kernel_outer_has_protocol(108));
	assert_true(kernel_outer_has_udp(4500));
}

static void
wireguard_is_asked_for_the_port_of_each_device(void **state)
{
	t.attr = WGDEVICE_A_LISTEN_PORT;
	t.port = 51800;
	device(20, "wireguard", IFF_UP, 0, 0);
	device(21, "wireguard", 0, 0, 0);
	device(22, "wireguard", IFF_UP, 0, 0);
	device(20, "wireguard", IFF_UP, 0, 0); /* the dump is repeated */
	publish();
	assert_string_equal(t.asked, "wireguard; 20; 22; ");
	assert_int_equal(known(), 2);
	assert_true(kernel_outer_has_udp(51820));
	assert_true(kernel_outer_has_udp(51822));
	/* The answer had the keys of the device: they are overwritten. */
	assert_null(memmem(t.buffer, sizeof(t.buffer), SECRET, strlen(SECRET)));
	assert_int_equal(t.unread, 0);

	/* The devices disappear before the request about them. */
	t.w.outer.headers = (struct kernel_outer){0};
	t.dump_rc = -ENODEV;
	publish();
	assert_string_equal(t.asked, "wireguard; 20; 22; ");
	assert_int_equal(known(), 0);
	assert_int_equal(t.unread, 0);
}

static void
an_answer_that_is_missing_is_told(void **state)
{
	device(20, "wireguard", IFF_UP, 0, 0);
	t.dump_rc = -EPERM;
	publish();
	assert_int_equal(t.unread, -EPERM);
	t.dump_rc = 0;
	t.family_rc = -ENOMEM;
	publish();
	assert_string_equal(t.asked, "wireguard; ");
	assert_int_equal(t.unread, -ENOMEM);
	t.family_rc = -ENOENT; /* the last device and the module are gone */
	publish();
	assert_int_equal(t.unread, 0);

	t.family_rc = 0;
	for (unsigned int i = 0; i < WIREGUARDS_MAX; i++)
		device(20 + i, "wireguard", IFF_UP, 0, 0);
	publish();
	assert_int_equal(t.unread, 0);
	device(20 + WIREGUARDS_MAX, "wireguard", IFF_UP, 0, 0);
	publish();
	assert_int_equal(t.unread, -E2BIG);
}

static void
tunnels_in_udp_are_asked_for_their_ports(void **state)
{
	t.attr = FOU_ATTR_PORT;
	t.port = htons(5555);
	device(5, "gre", IFF_UP, IFLA_GRE_ENCAP_TYPE, TUNNEL_ENCAP_FOU);
	publish();
	assert_string_equal(t.asked, "fou; 0; ");
	assert_int_equal(known(), 2);
	assert_true(kernel_outer_has_protocol(47));
	assert_true(kernel_outer_has_udp(5555));

	setup(NULL);
	device(5, "ipip", IFF_UP, IFLA_IPTUN_ENCAP_TYPE, TUNNEL_ENCAP_NONE);
	publish();
	assert_string_equal(t.asked, "");

	setup(NULL);
	t.attr = L2TP_ATTR_UDP_SPORT;
	t.port = 1701; /* in host order */
	device(5, "l2tpeth", IFF_UP, 0, 0);
	publish();
	assert_string_equal(t.asked, "l2tp; 0; ");
	assert_int_equal(known(), 2);
	assert_true(kernel_outer_has_protocol(115));
	assert_true(kernel_outer_has_udp(1701));
}

static void
a_list_of_devices_that_is_cut_short_changes_nothing(void **state)
{
	device(5, "vxlan", IFF_UP, IFLA_VXLAN_PORT, htons(4789));
	publish();
	assert_true(kernel_outer_has_udp(4789));
	t.w.outer = (struct outer_found){.incomplete = true};
	publish();
	assert_true(kernel_outer_has_udp(4789));
	scan_again();
	publish();
	assert_false(kernel_outer_has_udp(4789));
}

/*
 * The ports stay while the kernel does not tell them, also while it tells only those of
 * some devices. They go with the next answer, or with the last device.
 */
static void
ports_stay_while_the_kernel_does_not_tell_them(void **state)
{
	static const int error[] = {-EINTR, -ENOBUFS, -EPERM};

	t.attr = WGDEVICE_A_LISTEN_PORT;
	t.port = 51800;
	device(20, "wireguard", IFF_UP, 0, 0);
	publish();
	for (unsigned int i = 0; i < 6; i++) {
		*(i % 2 == 0 ? &t.dump_rc : &t.family_rc) = error[i / 2];
		scan_again();
		device(20, "wireguard", IFF_UP, 0, 0);
		publish();
		t.dump_rc = t.family_rc = 0;
		assert_int_equal(t.unread, error[i / 2]);
		assert_int_equal(known(), 1);
		assert_true(kernel_outer_has_udp(51820));
	}
	t.open_rc = -EMFILE;
	scan_again();
	device(20, "wireguard", IFF_UP, 0, 0);
	publish();
	assert_int_equal(t.unread, -EMFILE);
	assert_true(kernel_outer_has_udp(51820));

	/* A second device is read, the first is not. */
	t.open_rc = 0;
	t.fails_after = 1;
	scan_again();
	device(22, "wireguard", IFF_UP, 0, 0);
	device(20, "wireguard", IFF_UP, 0, 0);
	publish();
	assert_int_equal(t.unread, -ENOBUFS);
	assert_true(kernel_outer_has_udp(51820) && kernel_outer_has_udp(51822));

	t.fails_after = 0;
	scan_again();
	device(22, "wireguard", IFF_UP, 0, 0);
	publish();
	assert_int_equal(known(), 1);
	assert_true(kernel_outer_has_udp(51822));
	scan_again();
	publish();
	assert_int_equal(known(), 0);
}

/* A request that fails keeps the ports of its own family only. */
static void
the_ports_of_a_family_do_not_depend_on_other_families(void **state)
{
	t.attr = FOU_ATTR_PORT;
	t.port = htons(5555);
	device(5, "gre", IFF_UP, IFLA_GRE_ENCAP_TYPE, TUNNEL_ENCAP_FOU);
	publish();
	assert_true(kernel_outer_has_udp(5555));
	scan_again();
	t.dump_rc = -ENOBUFS;
	device(6, "l2tpeth", IFF_UP, 0, 0);
	publish();
	assert_int_equal(known(), 1); /* the IP protocol */
	scan_again();
	device(5, "gre", IFF_UP, IFLA_GRE_ENCAP_TYPE, TUNNEL_ENCAP_FOU);
	publish();
	assert_true(kernel_outer_has_udp(5555));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(the_kind_of_a_device_tells_its_outer_headers),
		TEST(devices_that_are_no_tunnels_have_no_outer_headers),
		TEST(a_device_of_ppp_may_have_sessions_of_pppoe),
		TEST(policies_of_ipsec_have_outer_headers),
		TEST(wireguard_is_asked_for_the_port_of_each_device),
		TEST(an_answer_that_is_missing_is_told),
		TEST(tunnels_in_udp_are_asked_for_their_ports),
		TEST(ports_stay_while_the_kernel_does_not_tell_them),
		TEST(the_ports_of_a_family_do_not_depend_on_other_families),
		TEST(a_list_of_devices_that_is_cut_short_changes_nothing),
	};

	return cmocka_run_group_tests_name("warn_outer", tests, NULL, NULL);
}
