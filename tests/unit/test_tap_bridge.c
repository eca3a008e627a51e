/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TAPs and namespaces: the functions of tap.h and netns.h, checked with the kernel.
 *
 * link: tap-bridge/
 */
#include "test_tap_bridge.h"

#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define ETHERTYPE_TEST 0x88b5 /* IEEE 802, local experimental */

/* Ask the kernel about interface `name` of the bed. Return 0 or -errno. */
static int
query(struct bed *bed, const char *name, unsigned long what, struct ifreq *ifr)
{
	struct netns_guard guard;
	int fd, rc;

	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	assert_int_equal(netns_enter(bed->netns, &guard), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	netns_leave(&guard);
	assert_true(fd >= 0);
	rc = ioctl(fd, what, ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static bool
is_up(struct bed *bed)
{
	struct ifreq ifr;

	assert_int_equal(query(bed, "t0", SIOCGIFFLAGS, &ifr), 0);
	return ifr.ifr_flags & IFF_UP;
}

static bool
has_mac(struct bed *bed, const uint8_t mac[6])
{
	struct ifreq ifr;

	assert_int_equal(query(bed, "t0", SIOCGIFHWADDR, &ifr), 0);
	return memcmp(ifr.ifr_hwaddr.sa_data, mac, 6) == 0;
}

static int
mtu_of(struct bed *bed)
{
	struct ifreq ifr;

	assert_int_equal(query(bed, "t0", SIOCGIFMTU, &ifr), 0);
	return ifr.ifr_mtu;
}

/* Open a packet socket on t0 within the bed. */
static int
packet_socket(struct bed *bed)
{
	struct sockaddr_ll sll = {.sll_family = AF_PACKET,
				  .sll_protocol = htons(ETHERTYPE_TEST)};
	struct netns_guard guard;
	int fd;

	assert_int_equal(netns_enter(bed->netns, &guard), 0);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	netns_leave(&guard);
	assert_true(fd >= 0);
	sll.sll_ifindex = (int)bed->tap.ifindex;
	assert_int_equal(bind(fd, (struct sockaddr *)&sll, sizeof(sll)), 0);
	return fd;
}

static size_t
test_frame(uint8_t frame[64])
{
	memset(frame, 0x5a, 64);
	memcpy(frame, mac_a, 6);
	memcpy(frame + 6, mac_b, 6);
	frame[12] = ETHERTYPE_TEST >> 8;
	frame[13] = ETHERTYPE_TEST & 0xff;
	return 64;
}

static void
a_new_tap_has_its_mac_and_mtu_and_is_up_without_carrier(void **state)
{
	struct bed *bed = bed_of(state);
	bool created = false;
	struct ifreq ifr;

	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 9000, &created), 0);

	assert_true(created);
	assert_true(has_mac(bed, mac_a));
	assert_int_equal(mtu_of(bed), 9000);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), 0);
	assert_int_equal(bed->tap.ifindex, ifr.ifr_ifindex);
	assert_string_equal(bed->tap.name, "t0");
	assert_string_equal(bed->tap.netns, bed->netns);
	assert_true(is_up(bed));
	assert_int_not_equal(run("ip -n %s link show t0 | grep -q LOWER_UP", bed->netns),
			     0);
}

static void
reattaching_keeps_ifindex_and_addresses(void **state)
{
	struct bed *bed = bed_of(state);
	unsigned int ifindex = bed_tap(bed)->ifindex;
	bool created = true;

	ip(bed, "addr add 192.0.2.1/24 dev t0");
	tap_close(&bed->tap);
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 1500, &created), 0);

	assert_false(created);
	assert_int_equal(bed->tap.ifindex, ifindex);
	ip(bed, "addr show dev t0 | grep -q 192.0.2.1/24");
	assert_true(is_up(bed));
}

static void
reattaching_changes_mac_and_mtu_of_an_interface_that_is_up(void **state)
{
	struct bed *bed = bed_of(state);

	bed_tap(bed);
	tap_close(&bed->tap);
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_b, 1400, NULL), 0);

	assert_true(has_mac(bed, mac_b));
	assert_int_equal(mtu_of(bed), 1400);
	assert_true(is_up(bed));
}

static void
reattaching_leaves_an_interface_down_that_was_down(void **state)
{
	struct bed *bed = bed_of(state);

	bed_tap(bed);
	ip(bed, "link set t0 down");
	tap_close(&bed->tap);
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 1500, NULL), 0);

	assert_false(is_up(bed));
}

static void
a_descriptor_without_a_tap_gets_one_later(void **state)
{
	struct bed *bed = bed_of(state);
	struct tap without, made;
	char name[IFNAMSIZ];
	uint8_t frame[64];

	assert_int_equal(tap_open_without(&without, "a%d", bed->netns), -EINVAL);
	assert_int_equal(tap_open_without(&without, "t0", bed->netns), 0);
	assert_int_equal(without.ifindex, 0);
	assert_int_equal(tap_name(without.fd, name), -ENODEV);
	assert_int_equal(tap_read(&without, frame, sizeof(frame)), -EBADFD);
	assert_int_equal(tap_write(&without, frame, sizeof(frame)), -EBADFD);
	assert_int_equal(tap_carrier(&without, true), -EBADFD);
	made = *bed_tap(bed);
	assert_int_equal(tap_move(&made, without.fd), 0);
	bed->tap = made;
	assert_int_equal(tap_name(without.fd, name), 0);
	assert_string_equal(name, "t0");
}

static void
a_second_open_is_busy(void **state)
{
	struct bed *bed = bed_of(state);
	struct tap second;

	bed_tap(bed);

	assert_int_equal(tap_open(&second, "t0", bed->netns, mac_b, 1400, NULL), -EBUSY);
	assert_int_equal(second.fd, -1);
	assert_true(has_mac(bed, mac_a));
	assert_int_equal(mtu_of(bed), 1500);
}

static void
a_name_that_is_not_a_tap_exists(void **state)
{
	struct bed *bed = bed_of(state);

	assert_int_equal(tap_open(&bed->tap, "lo", bed->netns, mac_a, 1500, NULL), -EEXIST);
	ip(bed, "tuntap add dev t1 mode tun");
	assert_int_equal(tap_open(&bed->tap, "t1", bed->netns, mac_a, 1500, NULL), -EEXIST);
}

static void
a_namespace_that_is_not_there_is_enoent(void **state)
{
	struct bed *bed = bed_of(state);
	struct netns_guard guard;

	assert_int_equal(tap_open(&bed->tap, "t0", "tb-no-such", mac_a, 1500, NULL),
			 -ENOENT);
	assert_int_equal(netns_enter("tb-no-such", &guard), -ENOENT);
	netns_leave(&guard);
	assert_int_equal(netns_enter("../tb", &guard), -EINVAL);
}

static void
names_that_the_kernel_would_expand_are_refused(void **state)
{
	static const char *const bad[] = {"",   "t%d",    "a/b",
					  "..", "a name", "sixteen-octets-x"};
	struct bed *bed = bed_of(state);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tap_open(&bed->tap, bad[i], bed->netns, mac_a, 1500, NULL),
				 -EINVAL);
}

static void
a_new_tap_that_cannot_be_configured_is_removed(void **state)
{
	static const uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 1};
	struct bed *bed = bed_of(state);
	struct ifreq ifr;

	assert_true(tap_open(&bed->tap, "t0", bed->netns, group, 1500, NULL) < 0);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), -ENODEV);
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 100000, NULL),
			 -EINVAL);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), -ENODEV);
}

static void
an_old_tap_that_cannot_be_configured_is_as_it_was(void **state)
{
	struct bed *bed = bed_of(state);

	bed_tap(bed);
	tap_close(&bed->tap);

	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_b, 100000, NULL),
			 -EINVAL);
	assert_true(has_mac(bed, mac_a));
	assert_int_equal(mtu_of(bed), 1500);
}

static void
a_failed_open_leaks_no_descriptor(void **state)
{
	struct bed *bed = bed_of(state);
	int before = n_open_descriptors();

	assert_true(tap_open(&bed->tap, "lo", bed->netns, mac_a, 1500, NULL) < 0);
	assert_true(tap_open(&bed->tap, "t0", bed->netns, mac_a, 100000, NULL) < 0);
	assert_true(tap_open(&bed->tap, "t0", "tb-no-such", mac_a, 1500, NULL) < 0);
	assert_int_equal(n_open_descriptors(), before);
}

static bool
is_test_frame(const uint8_t *frame, size_t len)
{
	return len == 64 && frame[12] == ETHERTYPE_TEST >> 8 &&
	       frame[13] == (ETHERTYPE_TEST & 0xff);
}

static void
a_frame_out_of_the_kernel_is_read(void **state)
{
	struct bed *bed = bed_of(state);
	struct tap *tap = bed_tap(bed);
	uint8_t sent[64], got[2048];
	size_t len = test_frame(sent);
	int fd = packet_socket(bed);
	ssize_t n = 0;

	/* The kernel drops the frames that it sends until it has handled the carrier. */
	for (int64_t end = now_ms() + PATIENCE_MS; n == 0 && now_ms() < end;) {
		struct pollfd pfd = {.fd = tap->fd, .events = POLLIN};

		assert_int_equal(send(fd, sent, len, 0), len);
		poll(&pfd, 1, 20);
		while ((n = tap_read(tap, got, sizeof(got))) > 0)
			if (is_test_frame(got, (size_t)n))
				break;
	}

	assert_int_equal(n, len);
	assert_memory_equal(got, sent, len);
	close(fd);
}

static void
a_frame_written_is_seen_by_the_kernel(void **state)
{
	struct bed *bed = bed_of(state);
	struct tap *tap = bed_tap(bed);
	uint8_t sent[64], got[2048];
	size_t len = test_frame(sent);
	int fd = packet_socket(bed);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	assert_int_equal(tap_write(tap, sent, len), 0);

	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	assert_int_equal(recv(fd, got, sizeof(got), 0), len);
	assert_memory_equal(got, sent, len);
	close(fd);
}

static bool
is_udp4(const uint8_t *frame, size_t len)
{
	return len >= 42 && frame[12] == 0x08 && frame[13] == 0 && frame[23] == IPPROTO_UDP;
}

/*
 * Return the RFC 1071 sum of the UDP datagram and its pseudo header. 0: the checksum is
 * right.
 */
static uint16_t
udp4_residue(const uint8_t *ip4)
{
	size_t ihl = (ip4[0] & 15) * 4u, len = (size_t)(ip4[2] << 8 | ip4[3]) - ihl;
	uint64_t sum = IPPROTO_UDP + len;

	for (size_t i = 12; i < 20; i += 2)
		sum += (uint64_t)(ip4[i] << 8 | ip4[i + 1]);
	for (size_t i = 0; i < len; i++)
		sum += (uint64_t)ip4[ihl + i] << (i % 2 == 0 ? 8 : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void
a_datagram_of_the_kernels_has_its_checksum_complete(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct bed *bed = bed_of(state);
	struct tap *tap = bed_tap(bed);
	struct netns_guard guard;
	uint8_t got[2048] = {0};
	int fd;

	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "neigh add 192.0.2.9 lladdr 02:00:5e:00:53:0b dev t0 nud permanent");
	assert_int_equal(netns_enter(bed->netns, &guard), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	netns_leave(&guard);
	inet_pton(AF_INET, "192.0.2.9", &to.sin_addr);
	for (int64_t end = now_ms() + PATIENCE_MS; now_ms() < end;) {
		struct pollfd pfd = {.fd = tap->fd, .events = POLLIN};

		assert_int_equal(sendto(fd, "odd", 3, 0, (void *)&to, sizeof(to)), 3);
		poll(&pfd, 1, 20);
		if (tap_read(tap, got, sizeof(got)) > 0 && is_udp4(got, sizeof(got)))
			break;
	}
	close(fd);

	assert_true(is_udp4(got, sizeof(got)));
	assert_int_equal(udp4_residue(got + 14), 0);
}

static void
reading_with_nothing_there_returns_0(void **state)
{
	struct bed *bed = bed_of(state);
	uint8_t buf[64];

	/* Without carrier the kernel sends no frames. */
	assert_int_equal(tap_open(&bed->tap, "t0", bed->netns, mac_a, 1500, NULL), 0);

	assert_int_equal(tap_read(&bed->tap, buf, sizeof(buf)), 0);
}

static void
an_interface_down_refuses_frames_and_works_again_when_up(void **state)
{
	struct bed *bed = bed_of(state);
	uint8_t frame[64];
	size_t len = test_frame(frame);

	bed_tap(bed);
	ip(bed, "link set t0 down");
	assert_int_equal(tap_write(&bed->tap, frame, len), -EIO);
	ip(bed, "link set t0 up");
	assert_int_equal(tap_write(&bed->tap, frame, len), 0);
}

static void
a_deleted_interface_is_an_error_not_a_crash(void **state)
{
	struct bed *bed = bed_of(state);
	uint8_t frame[64];
	size_t len = test_frame(frame);

	bed_tap(bed);
	ip(bed, "link del t0");

	assert_int_equal(tap_read(&bed->tap, frame, sizeof(frame)), -EBADFD);
	assert_int_equal(tap_write(&bed->tap, frame, len), -EBADFD);
	assert_int_equal(tap_carrier(&bed->tap, true), -EBADFD);
	assert_int_equal(tap_destroy(&bed->tap), 0);
}

static void
closing_keeps_the_interface_and_destroying_removes_it(void **state)
{
	struct bed *bed = bed_of(state);
	struct ifreq ifr;

	bed_tap(bed);
	tap_close(&bed->tap);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), 0);

	bed_tap(bed);
	assert_int_equal(tap_destroy(&bed->tap), 0);
	assert_int_equal(bed->tap.fd, -1);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), -ENODEV);
}

/*
 * Another process has the TAP open: a service manager, or a process that is about to end.
 */
static void
destroying_removes_a_tap_that_another_process_has_open(void **state)
{
	struct bed *bed = bed_of(state);
	struct ifreq ifr;
	int other;

	bed_tap(bed);
	other = dup(bed->tap.fd);
	assert_true(other >= 0);
	assert_int_equal(tap_destroy(&bed->tap), 0);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), -ENODEV);

	bed_tap(bed);
	assert_int_equal(close(other), 0);
	assert_int_equal(query(bed, "t0", SIOCGIFINDEX, &ifr), 0);
	assert_int_equal(tap_destroy(&bed->tap), 0);
}

/* Skip the test if the emulator that runs it does not know the requests of ethtool(8). */
static void
ethtool_needed(void)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq ifr = {.ifr_name = "lo", .ifr_data = (void *)&link};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool unknown = ioctl(fd, SIOCETHTOOL, &ifr) < 0 && errno == ENOTTY;

	close(fd);
	if (unknown) {
		print_message("skipped: qemu-user does not know SIOCETHTOOL\n");
		skip();
	}
}

/* Return the present carrier. Flags such as IFF_RUNNING may be a second late. */
static bool
has_carrier(struct bed *bed)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct netns_guard guard;
	struct ifreq ifr = {.ifr_name = "t0", .ifr_data = (void *)&link};
	int fd;

	assert_int_equal(netns_enter(bed->netns, &guard), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	netns_leave(&guard);
	assert_int_equal(ioctl(fd, SIOCETHTOOL, &ifr), 0);
	close(fd);
	return link.data != 0;
}

/* True if t0, which is up, reports this speed in Mbit/s and this duplex. */
static bool
reports_speed(struct bed *bed, unsigned int mbit_per_s, const char *duplex)
{
	return run("ip netns exec %s sh -c 'grep -qx %u /sys/class/net/t0/speed && "
		   "grep -qx %s /sys/class/net/t0/duplex'",
		   bed->netns, mbit_per_s, duplex) == 0;
}

static void
speed_and_duplex_are_as_they_were_set(void **state)
{
	struct bed *bed = bed_of(state);

	ethtool_needed();
	bed_tap(bed);
	assert_int_equal(tap_speed(&bed->tap, 25000, true), 0);
	assert_true(reports_speed(bed, 25000, "full"));
	ip(bed, "link set t0 down");
	assert_int_equal(tap_speed(&bed->tap, 100, false), 0);
	ip(bed, "link set t0 up");
	assert_true(reports_speed(bed, 100, "half"));
	ip(bed, "link set t0 name t1");
	assert_int_equal(tap_speed(&bed->tap, 400000, true), 0);
	ip(bed, "link del t1");
	assert_int_equal(tap_speed(&bed->tap, 100, true), -ENODEV);
	tap_close(&bed->tap);
}

static void
a_descriptor_kept_open_keeps_carrier_and_is_adopted_with_it(void **state)
{
	struct bed *bed = bed_of(state);
	uint8_t frame[64];
	int kept;

	ethtool_needed();
	bed_tap(bed);
	assert_int_equal(tap_carrier(&bed->tap, true), 0);
	ip(bed, "link set t0 mtu 1400");
	kept = dup(bed->tap.fd);
	tap_close(&bed->tap);
	assert_true(has_carrier(bed));

	assert_int_equal(tap_adopt(&bed->tap, kept, bed->netns), 0);

	assert_true(has_carrier(bed));
	assert_int_equal(mtu_of(bed), 1400);
	assert_true(has_mac(bed, mac_a));
	assert_int_equal(tap_write(&bed->tap, frame, test_frame(frame)), 0);
	tap_close(&bed->tap);
	assert_false(has_carrier(bed));
}

static void
a_descriptor_of_another_thing_is_not_adopted(void **state)
{
	struct bed *bed = bed_of(state);
	struct tap tap;
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(other >= 0);
	bed_tap(bed);
	assert_int_equal(tap_adopt(&tap, dup(bed->tap.fd), NULL), -EXDEV);
	assert_true(tap_adopt(&tap, other, bed->netns) < 0);
	assert_int_equal(tap.fd, -1);
	assert_int_equal(fcntl(other, F_GETFD), -1); /* it was taken over and closed */

	ip(bed, "link del t0");
	assert_int_equal(tap_adopt(&tap, dup(bed->tap.fd), bed->netns), -ENODEV);
}

static void
a_renamed_tap_is_adopted_and_obeys_under_its_new_name(void **state)
{
	struct bed *bed = bed_of(state);
	unsigned int ifindex;
	char name[IFNAMSIZ];
	int kept;

	bed_tap(bed);
	ifindex = bed->tap.ifindex;
	ip(bed, "link set t0 down");
	ip(bed, "link set t0 name t1");
	/* A new interface with the old name is not the TAP. */
	ip(bed, "link add t0 type bridge");
	assert_int_equal(tap_mtu(&bed->tap, 1300), 0);
	kept = dup(bed->tap.fd);
	tap_close(&bed->tap);

	assert_int_equal(tap_adopt(&bed->tap, kept, bed->netns), 0);

	assert_string_equal(bed->tap.name, "t1");
	assert_int_equal(bed->tap.ifindex, ifindex);
	assert_int_equal(tap_name(bed->tap.fd, name), 0);
	assert_string_equal(name, "t1");
	assert_int_equal(tap_mtu(&bed->tap, 1400), 0);
	ip(bed, "link del t0");
	ip(bed, "link set t1 name t0");
	assert_int_equal(mtu_of(bed), 1400);
}

static void
a_tap_that_is_moved_to_anothers_number_takes_its_place(void **state)
{
	struct bed *bed = bed_of(state);
	char name[IFNAMSIZ];
	struct tap tap;
	int fd;

	ethtool_needed();
	bed_tap(bed);
	fd = bed->tap.fd;
	assert_int_equal(tap_open(&tap, "t1", bed->netns, mac_b, 1500, NULL), 0);

	assert_int_equal(tap_move(&tap, fd), 0);

	assert_int_equal(tap.fd, fd);
	assert_int_equal(tap_name(fd, name), 0);
	assert_string_equal(name, "t1");
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_false(has_carrier(bed)); /* the program has no descriptor of t0 */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_new_tap_has_its_mac_and_mtu_and_is_up_without_carrier),
		bed_test(reattaching_keeps_ifindex_and_addresses),
		bed_test(reattaching_changes_mac_and_mtu_of_an_interface_that_is_up),
		bed_test(reattaching_leaves_an_interface_down_that_was_down),
		bed_test(a_second_open_is_busy),
		bed_test(a_descriptor_without_a_tap_gets_one_later),
		bed_test(a_name_that_is_not_a_tap_exists),
		bed_test(a_namespace_that_is_not_there_is_enoent),
		bed_test(names_that_the_kernel_would_expand_are_refused),
		bed_test(a_new_tap_that_cannot_be_configured_is_removed),
		bed_test(an_old_tap_that_cannot_be_configured_is_as_it_was),
		bed_test(a_failed_open_leaks_no_descriptor),
		bed_test(a_frame_out_of_the_kernel_is_read),
		bed_test(a_frame_written_is_seen_by_the_kernel),
		bed_test(a_datagram_of_the_kernels_has_its_checksum_complete),
		bed_test(reading_with_nothing_there_returns_0),
		bed_test(an_interface_down_refuses_frames_and_works_again_when_up),
		bed_test(a_deleted_interface_is_an_error_not_a_crash),
		bed_test(closing_keeps_the_interface_and_destroying_removes_it),
		bed_test(destroying_removes_a_tap_that_another_process_has_open),
		bed_test(speed_and_duplex_are_as_they_were_set),
		bed_test(a_descriptor_kept_open_keeps_carrier_and_is_adopted_with_it),
		bed_test(a_descriptor_of_another_thing_is_not_adopted),
		bed_test(a_renamed_tap_is_adopted_and_obeys_under_its_new_name),
		bed_test(a_tap_that_is_moved_to_anothers_number_takes_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
