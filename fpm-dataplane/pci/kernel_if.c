/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set the state of kernel interfaces behind ports. ioctl() sets it, because such an
 * interface is in the network namespace of the daemon, where the daemon has no netlink
 * socket.
 *
 * The sysctl disable_ipv6 is the only method to turn off IPv6 on one interface, because
 * netlink has no request for it. /proc/sys shows the network namespace of the thread.
 */
#include "pci/kernel_if.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pci/devargs.h"
#include "base/sysfs.h"

#define PATH_SIZE 64

void
kernel_if_of(const char *device, char name[IF_NAMESIZE])
{
	const char *p = strstr(device, "iface=");

	name[0] = '\0';
	if (p != NULL && !device_makes_iface(device))
		snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(p + 6, ","), p + 6);
}

void
kernel_if_primary(char name[IF_NAMESIZE])
{
	unsigned int ifindex = if_nametoindex(name);
	char primary[IF_NAMESIZE];

	if (ifindex != 0 && if_indextoname(ifindex, primary) != NULL)
		snprintf(name, IF_NAMESIZE, "%s", primary);
}

/* /proc/sys has primary names only. */
static void
sysctl_path(const char *name, char path[PATH_SIZE])
{
	char primary[IF_NAMESIZE];

	snprintf(primary, sizeof(primary), "%s", name);
	kernel_if_primary(primary);
	snprintf(path, PATH_SIZE, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", primary);
}

int
kernel_if_ipv6_off(const char *name)
{
	char path[PATH_SIZE];
	int rc;

	/*
	 * An interface named "all" or "default" has no IPv6, and no directory of its own.
	 */
	if (strchr(name, '/') != NULL || if_nametoindex(name) == 0 ||
	    strcmp(name, "all") == 0 || strcmp(name, "default") == 0)
		return 0;
	sysctl_path(name, path);
	if (sysfs_read_number(path, 1) != 0)
		return 0;
	rc = sysfs_write(path, "1");
	return rc < 0 ? rc : 1;
}

void
kernel_if_ipv6_on(const char *name)
{
	char path[PATH_SIZE];

	sysctl_path(name, path);
	(void)sysfs_write(path, "0");
}

int
kernel_if_index(const char *name)
{
	struct ifreq ifr = {.ifr_ifindex = 0};
	int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	rc = ioctl(sock, SIOCGIFINDEX, &ifr) < 0 ? -errno : ifr.ifr_ifindex;
	close(sock);
	return rc;
}

int
kernel_if_set_up(unsigned int ifindex, bool up)
{
	struct ifreq ifr = {.ifr_ifindex = (int)ifindex};
	int rc = 0, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	if (ioctl(sock, SIOCGIFNAME, &ifr) < 0 || ioctl(sock, SIOCGIFFLAGS, &ifr) < 0) {
		rc = -errno;
	} else if (((ifr.ifr_flags & IFF_UP) != 0) != up) {
		ifr.ifr_flags ^= IFF_UP;
		rc = ioctl(sock, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
	}
	close(sock);
	return rc;
}

/* Read the settings of the link of `ifr`. Returns 0 or -errno. */
static int
link_settings_read(int sock, struct ifreq *ifr, struct ethtool_link_settings *of)
{
	*of = (struct ethtool_link_settings){.cmd = ETHTOOL_GLINKSETTINGS};
	ifr->ifr_data = (void *)of;
	/* The first answer has only the length of the masks, as a negative number. */
	if (ioctl(sock, SIOCETHTOOL, ifr) < 0)
		return -errno;
	if (of->link_mode_masks_nwords >= 0)
		return -EPROTO;
	of->link_mode_masks_nwords = (int8_t)-of->link_mode_masks_nwords;
	return ioctl(sock, SIOCETHTOOL, ifr) < 0 ? -errno : 0;
}

int
kernel_if_speed(unsigned int ifindex, uint32_t *mbit_per_s, bool *full_duplex)
{
	struct {
		struct ethtool_link_settings of;
		uint32_t masks[3 * INT8_MAX];
	} link = {.of = {0}};
	struct ifreq ifr = {.ifr_ifindex = (int)ifindex};
	int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	rc = ioctl(sock, SIOCGIFNAME, &ifr) < 0 ? -errno
						: link_settings_read(sock, &ifr, &link.of);
	close(sock);
	if (rc == 0 && (link.of.speed == 0 || link.of.speed == (uint32_t)SPEED_UNKNOWN))
		return -ENODATA;
	if (rc == 0) {
		*mbit_per_s = link.of.speed;
		*full_duplex = link.of.duplex == DUPLEX_FULL;
	}
	return rc;
}
