/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap: create, reattach, read and write the kernel interface of a port.
 *
 * One queue, no packet information header, no offloads: a frame that is read is as on the
 * wire, with complete checksums. A new TAP is made persistent last, so that until then
 * closing its descriptor undoes all.
 *
 * tap_read() and tap_write() neither block nor allocate; the other functions are for
 * set-up.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap-bridge/netns.h"
#include "tap-bridge/tap.h"

/* The kernel expands '%' in a name ("tap%d"), but a name must mean one interface. */
static bool
name_is_usable(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < IFNAMSIZ && strpbrk(name, "%/: \t\n") == NULL &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static struct ifreq
ifreq_for(const char *name)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	return ifr;
}

static int
ifreq_ioctl(int fd, unsigned long what, struct ifreq *ifr)
{
	return ioctl(fd, what, ifr) < 0 ? -errno : 0;
}

/*
 * Bind `tap->fd` to interface `name`, creating it when missing. [inside the namespace]
 *
 * ctl    a socket of the namespace. is_new  out: the interface is new.
 */
static int
tap_attach(struct tap *tap, int ctl, const char *name, bool *is_new)
{
	struct ifreq ifr = ifreq_for(name);
	int off = 0, rc;

	/*
	 * Kernels before 6.1 ignore IFF_NO_CARRIER; TUNSETCARRIER clears the carrier for
	 * them.
	 */
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_NO_CARRIER;
	rc = ifreq_ioctl(tap->fd, TUNSETIFF, &ifr);
	if (rc == -EINVAL) {
		/*
		 * The kernel returns EINVAL also when another kind of interface has the
		 * name.
		 */
		ifr = ifreq_for(name);
		return ifreq_ioctl(ctl, SIOCGIFINDEX, &ifr) == 0 ? -EEXIST : rc;
	}
	if (rc == 0)
		rc = ioctl(tap->fd, TUNSETCARRIER, &off) < 0 ? -errno : 0;
	if (rc == 0)
		rc = ioctl(tap->fd, TUNSETOFFLOAD, 0) < 0 ? -errno : 0;
	if (rc == 0)
		rc = ifreq_ioctl(tap->fd, TUNGETIFF, &ifr);
	if (rc < 0)
		return rc;
	/*
	 * A TAP that existed before is persistent, because the kernel deletes other TAPs
	 * with their owner; a new TAP is not.
	 */
	*is_new = (ifr.ifr_flags & IFF_PERSIST) == 0;
	memcpy(tap->name, ifr.ifr_name, sizeof(tap->name));
	rc = ifreq_ioctl(ctl, SIOCGIFINDEX, &ifr);
	tap->ifindex = (unsigned int)ifr.ifr_ifindex;
	return rc;
}

/* Set MAC and MTU of the interface, both or none. Equal values are not written. */
static int
tap_set_mac_and_mtu(const struct tap *tap, int ctl, const uint8_t mac[6],
		    unsigned int mtu_bytes)
{
	struct ifreq old_mac = ifreq_for(tap->name);
	struct ifreq old_mtu = ifreq_for(tap->name);
	struct ifreq new_mac = ifreq_for(tap->name);
	struct ifreq new_mtu = ifreq_for(tap->name);
	bool mac_differs;
	int rc;

	rc = ifreq_ioctl(ctl, SIOCGIFHWADDR, &old_mac);
	if (rc == 0)
		rc = ifreq_ioctl(ctl, SIOCGIFMTU, &old_mtu);
	if (rc < 0)
		return rc;

	mac_differs = memcmp(old_mac.ifr_hwaddr.sa_data, mac, 6) != 0;
	if (mac_differs) {
		new_mac.ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(new_mac.ifr_hwaddr.sa_data, mac, 6);
		rc = ifreq_ioctl(ctl, SIOCSIFHWADDR, &new_mac);
		if (rc < 0)
			return rc;
	}
	if ((unsigned int)old_mtu.ifr_mtu != mtu_bytes) {
		new_mtu.ifr_mtu = (int)mtu_bytes;
		rc = ifreq_ioctl(ctl, SIOCSIFMTU, &new_mtu);
		if (rc < 0 && mac_differs)
			ifreq_ioctl(ctl, SIOCSIFHWADDR, &old_mac);
	}
	return rc;
}

static int
tap_set_up(const struct tap *tap, int ctl)
{
	struct ifreq ifr = ifreq_for(tap->name);
	int rc = ifreq_ioctl(ctl, SIOCGIFFLAGS, &ifr);

	ifr.ifr_flags |= IFF_UP;
	return rc < 0 ? rc : ifreq_ioctl(ctl, SIOCSIFFLAGS, &ifr);
}

/* Open the TAP inside the namespace, for tap_open(). Undoes itself on an error. */
static int
tap_open_inside(struct tap *tap, const char *name, const uint8_t mac[6],
		unsigned int mtu_bytes, bool *is_new)
{
	int ctl, rc;

	ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ctl < 0)
		return -errno;
	tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	rc = tap->fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = tap_attach(tap, ctl, name, is_new);
	if (rc == 0)
		rc = tap_set_mac_and_mtu(tap, ctl, mac, mtu_bytes);
	/* An existing TAP may be down because an operator wants it. */
	if (rc == 0 && *is_new)
		rc = tap_set_up(tap, ctl);
	if (rc == 0 && *is_new)
		rc = ioctl(tap->fd, TUNSETPERSIST, 1) < 0 ? -errno : 0;
	if (rc < 0)
		tap_close(tap);
	close(ctl);
	return rc;
}

/* Clear `tap`, and check the names. Returns 0, -EINVAL or -ENAMETOOLONG. */
static int
tap_begin(struct tap *tap, const char *name, const char *netns)
{
	memset(tap, 0, sizeof(*tap));
	tap->fd = -1;
	if (!name_is_usable(name))
		return -EINVAL;
	if (netns != NULL && strlen(netns) >= sizeof(tap->netns))
		return -ENAMETOOLONG;
	return 0;
}

int
tap_open(struct tap *tap, const char *name, const char *netns, const uint8_t mac[6],
	 unsigned int mtu_bytes, bool *created)
{
	struct netns_guard guard;
	bool is_new = false;
	int rc;

	rc = tap_begin(tap, name, netns);
	if (rc < 0)
		return rc;
	rc = netns_enter(netns, &guard);
	if (rc < 0)
		return rc;
	rc = tap_open_inside(tap, name, mac, mtu_bytes, &is_new);
	netns_leave(&guard);
	if (rc < 0)
		return rc;
	if (netns != NULL)
		memcpy(tap->netns, netns, strlen(netns) + 1);
	if (created != NULL)
		*created = is_new;
	return 0;
}

/*
 * Return 0 if the device of `fd` is in the namespace of this thread, -EXDEV if not, or
 * -errno.
 */
static int
tap_is_in_this_netns(int fd)
{
	struct stat device, here;
	int ns, rc = 0;

	ns = ioctl(fd, TUNGETDEVNETNS);
	if (ns < 0)
		return -errno;
	if (fstat(ns, &device) < 0 || stat("/proc/thread-self/ns/net", &here) < 0)
		rc = -errno;
	else if (device.st_ino != here.st_ino || device.st_dev != here.st_dev)
		rc = -EXDEV;
	close(ns);
	return rc;
}

/* Read the device of `fd`, with its present name. Returns 0 or -errno. */
static int
tap_device(int fd, struct ifreq *ifr)
{
	int rc;

	memset(ifr, 0, sizeof(*ifr));
	rc = ifreq_ioctl(fd, TUNGETIFF, ifr);
	return rc == -EBADFD ? -ENODEV : rc;
}

/*
 * Check that `tap->fd` is a TAP as tap_open() makes it, and fill in `tap`.
 *                                                               [inside the namespace]
 */
static int
tap_adopt_inside(struct tap *tap)
{
	struct ifreq ifr;
	unsigned int ifindex;
	int rc;

	rc = tap_device(tap->fd, &ifr);
	if (rc < 0)
		return rc;
	if ((ifr.ifr_flags & (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE)) !=
	    (IFF_TAP | IFF_NO_PI))
		return -EINVAL;
	rc = tap_is_in_this_netns(tap->fd);
	if (rc == 0)
		rc = ioctl(tap->fd, TUNSETOFFLOAD, 0) < 0 ? -errno : 0;
	if (rc == 0 && fcntl(tap->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	ifindex = if_nametoindex(ifr.ifr_name);
	if (ifindex == 0)
		return -ENODEV;
	tap->ifindex = ifindex;
	memcpy(tap->name, ifr.ifr_name, sizeof(tap->name));
	return 0;
}

int
tap_adopt(struct tap *tap, int fd, const char *netns)
{
	struct netns_guard guard;
	int rc;

	memset(tap, 0, sizeof(*tap));
	tap->fd = fd;
	if (netns != NULL && strlen(netns) >= sizeof(tap->netns))
		rc = -ENAMETOOLONG;
	else
		rc = netns_enter(netns, &guard);
	if (rc == 0) {
		rc = tap_adopt_inside(tap);
		netns_leave(&guard);
	}
	if (rc < 0)
		tap_close(tap);
	else if (netns != NULL)
		memcpy(tap->netns, netns, strlen(netns) + 1);
	return rc;
}

int
tap_open_without(struct tap *tap, const char *name, const char *netns)
{
	int rc = tap_begin(tap, name, netns);

	if (rc < 0)
		return rc;
	tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->fd < 0)
		return -errno;
	memcpy(tap->name, name, strlen(name) + 1);
	if (netns != NULL)
		memcpy(tap->netns, netns, strlen(netns) + 1);
	return 0;
}

int
tap_name(int fd, char name[IFNAMSIZ])
{
	struct ifreq ifr;
	int rc = tap_device(fd, &ifr);

	if (rc == 0)
		memcpy(name, ifr.ifr_name, IFNAMSIZ);
	return rc;
}

int
tap_move(struct tap *tap, int fd)
{
	if (dup3(tap->fd, fd, O_CLOEXEC) < 0)
		return -errno;
	close(tap->fd);
	tap->fd = fd;
	return 0;
}

/*
 * Name the TAP in `ifr`. Return a socket of its namespace for requests about it, or -errno.
 */
static int
tap_control(const struct tap *tap, struct ifreq *ifr)
{
	int rc = tap_device(tap->fd, ifr);

	return rc < 0 ? rc : netns_socket(tap->netns, AF_INET, SOCK_DGRAM, 0);
}

int
tap_mtu(const struct tap *tap, unsigned int mtu_bytes)
{
	struct ifreq ifr;
	int rc, ctl = tap_control(tap, &ifr);

	if (ctl < 0)
		return ctl;
	ifr.ifr_mtu = (int)mtu_bytes;
	rc = ifreq_ioctl(ctl, SIOCSIFMTU, &ifr);
	close(ctl);
	return rc;
}

int
tap_mtu_now(const struct tap *tap)
{
	struct ifreq ifr;
	int rc, ctl = tap_control(tap, &ifr);

	if (ctl < 0)
		return ctl;
	rc = ifreq_ioctl(ctl, SIOCGIFMTU, &ifr);
	close(ctl);
	return rc < 0 ? rc : ifr.ifr_mtu;
}

int
tap_speed(const struct tap *tap, unsigned int mbit_per_s, bool full_duplex)
{
	/*
	 * The kernel reports the length of the masks of link modes, and expects it in the
	 * request.
	 */
	struct {
		struct ethtool_link_settings of;
		uint32_t masks[3 * INT8_MAX];
	} link = {.of = {.cmd = ETHTOOL_GLINKSETTINGS}};
	struct ifreq ifr;
	int rc, ctl = tap_control(tap, &ifr);

	if (ctl < 0)
		return ctl;
	ifr.ifr_data = (void *)&link;
	rc = ifreq_ioctl(ctl, SIOCETHTOOL, &ifr);
	if (rc == 0 && link.of.link_mode_masks_nwords < 0) {
		link.of.link_mode_masks_nwords = (int8_t)-link.of.link_mode_masks_nwords;
		rc = ifreq_ioctl(ctl, SIOCETHTOOL, &ifr);
	}
	link.of.cmd = ETHTOOL_SLINKSETTINGS;
	link.of.speed = mbit_per_s;
	link.of.duplex = full_duplex ? DUPLEX_FULL : DUPLEX_HALF;
	if (rc == 0)
		rc = ifreq_ioctl(ctl, SIOCETHTOOL, &ifr);
	close(ctl);
	return rc;
}

int
tap_fd_carrier(int fd, bool up)
{
	int on = up;

	return ioctl(fd, TUNSETCARRIER, &on) < 0 ? -errno : 0;
}

int
tap_carrier(struct tap *tap, bool up)
{
	return tap_fd_carrier(tap->fd, up);
}

ssize_t
tap_read(struct tap *tap, void *buf, size_t size)
{
	ssize_t n;

	do
		n = read(tap->fd, buf, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return n;
}

int
tap_write(struct tap *tap, const void *frame, size_t len)
{
	ssize_t n;

	do
		n = write(tap->fd, frame, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

void
tap_close(struct tap *tap)
{
	if (tap->fd >= 0)
		close(tap->fd);
	tap->fd = -1;
}

/* Delete a link (RTM_DELLINK). Returns 0 or -errno.           [inside the namespace] */
static int
link_delete(unsigned int ifindex)
{
	struct {
		struct nlmsghdr hdr;
		struct ifinfomsg link;
	} request = {.hdr = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_DELLINK,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		     .link = {.ifi_index = (int)ifindex}};
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr error;
		char request_copy[sizeof(request)];
	} answer;
	int rc = 0, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	/* When send() returns, the kernel has deleted the link and sent the reply. */
	if (send(fd, &request, sizeof(request), 0) < 0)
		rc = -errno;
	else if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) <
			 (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
		 answer.hdr.nlmsg_type != NLMSG_ERROR)
		rc = -EPROTO;
	else
		rc = answer.error.error;
	close(fd);
	return rc;
}

/*
 * Delete the interface at once, even if others have it open. Returns 0, or -errno with
 * nothing changed.
 */
static int
tap_delete_now(const struct tap *tap)
{
	struct netns_guard guard;
	struct ifreq ifr;
	int rc = netns_enter(tap->netns, &guard);

	if (rc < 0)
		return rc;
	rc = tap_device(tap->fd, &ifr);
	if (rc == 0)
		rc = tap_is_in_this_netns(tap->fd);
	/*
	 * After a move to another namespace the TAP may have another ifindex: delete it
	 * only if the interface of its name has the ifindex in `tap`.
	 */
	if (rc == 0 && if_nametoindex(ifr.ifr_name) != tap->ifindex)
		rc = -ENODEV;
	if (rc == 0)
		rc = link_delete(tap->ifindex);
	netns_leave(&guard);
	return rc;
}

int
tap_destroy(struct tap *tap)
{
	int rc = tap_delete_now(tap);

	/* Otherwise the kernel deletes the interface when its last descriptor is closed. */
	if (rc < 0)
		rc = ioctl(tap->fd, TUNSETPERSIST, 0) < 0 ? -errno : 0;
	tap_close(tap);
	/* EBADFD: the interface was already deleted. */
	return rc == -EBADFD ? 0 : rc;
}

int
tap_fd_destroy(int fd)
{
	int rc = ioctl(fd, TUNSETPERSIST, 0) < 0 ? -errno : 0;

	close(fd);
	return rc == -EBADFD ? 0 : rc;
}
