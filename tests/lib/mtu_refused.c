/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: in the program, the kernel refuses an MTU of MTU_REFUSED
 * octets, and with SPEED_REFUSED in the environment it cannot set the speed of a link.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
ioctl(int fd, unsigned long request, ...)
{
	const char *refused = getenv("MTU_REFUSED");
	const struct ifreq *ifr;
	va_list ap;

	va_start(ap, request);
	ifr = va_arg(ap, const struct ifreq *);
	va_end(ap);
	if (request == SIOCSIFMTU && refused != NULL && ifr->ifr_mtu == atoi(refused)) {
		errno = EINVAL;
		return -1;
	}
	if (request == SIOCETHTOOL && getenv("SPEED_REFUSED") != NULL &&
	    *(const uint32_t *)ifr->ifr_data == ETHTOOL_SLINKSETTINGS) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_ioctl, fd, request, ifr);
}
