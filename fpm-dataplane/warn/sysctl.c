/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find sysctls of the namespace and of its devices that change how Linux forwards, and that
 * forwarders do not obey. The manual (limits.md) lists them, and also sysctls without a
 * warning. [warn]
 *
 * The values of devices are in the dump of links. The values of `all` and of the namespace
 * are read from files. If a file is absent, the kernel does not have the sysctl.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdio.h>
#include <string.h>

#include "base/sysfs.h"
#include "netlink/device_message.h"
#include "warn/impl.h"

#define RATES_LINUX      "Linux limits ICMP errors by this value, more than by default."
#define RATES            "They are limited by the rates of their classes: fpmctl show punt."
#define EXTENSIONS_LINUX "Linux adds facts about the interface to ICMP errors (RFC 5837)."
#define EXTENSIONS       "Errors have no such extension."

/* The way in which the kernel combines the values of `all` and of a device. */
enum combine {
	EITHER, /* one of the two sysctls must be set */
	NOT_64, /* the device's value counts unless it is 64, the value of the dataplane */
	BOTH,   /* the sysctls of `all` and of the device must be set */
	ALONE,  /* the device's value counts */
	IS_1,   /* the device's value counts if it is 1 */
	/*
	 * The value counts if `forwarding` of IPv6 is 0 for the device and set for `all`.
	 */
	HOST,
};

static const struct device_sysctl {
	uint8_t family; /* 4 or 6 */
	uint8_t combine;
	uint8_t kind;
	unsigned int key;   /* key for device_conf4() or device_conf6() */
	const char *name;   /* name of the file in the folder of the device */
	const char *of_all; /* the file of `all` that is read; NULL: none */
	const char *in_linux, *dataplane;
} of_device[] = {
	{4, EITHER, WARNING_SYSCTL, IPV4_DEVCONF_RP_FILTER, "rp_filter", "rp_filter",
	 "Linux drops a packet in transit if no route leads back to its source (2), or "
	 "none by "
	 "the device by which it came (1).",
	 "Forwarded packets are not checked, because the key rp-filter is ignore."},
	{4, BOTH, WARNING_SYSCTL, IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, "accept_source_route",
	 "accept_source_route",
	 "Linux follows the source route in the options of a packet.",
	 "The packet takes the route of its destination."},
	{4, EITHER, WARNING_SYSCTL, IPV4_DEVCONF_ROUTE_LOCALNET, "route_localnet",
	 "route_localnet", "Linux forwards packets from and to 127/8.",
	 "They are dropped (ip4_martian_src, ip4_martian_dst)."},
	{4, BOTH, WARNING_SYSCTL, IPV4_DEVCONF_BC_FORWARDING, "bc_forwarding",
	 "bc_forwarding", "Linux forwards directed broadcasts.",
	 "They are dropped (ip4_directed_bcast)."},
	{4, EITHER, WARNING_SYSCTL, IPV4_DEVCONF_LOG_MARTIANS, "log_martians",
	 "log_martians", "Linux logs packets with impossible addresses.",
	 "They are counted only: fpmctl show drops."},
	{4, BOTH, WARNING_SYSCTL, IPV4_DEVCONF_ACCEPT_REDIRECTS, "accept_redirects",
	 "accept_redirects", "Linux forwards by the gateways that ICMP redirects name.",
	 "Packets in transit take the gateways of their routes."},
	{4, ALONE, WARNING_MULTICAST, IPV4_DEVCONF_MC_FORWARDING, "mc_forwarding", NULL,
	 "A multicast router (pimd) uses the device, and Linux forwards multicast.",
	 "Only packets that reach the kernel are forwarded, within the rate of their "
	 "class."},
	{6, ALONE, WARNING_MULTICAST, DEVCONF_MC_FORWARDING, "mc_forwarding", NULL,
	 "A multicast router (pim6d) uses the device, and Linux forwards multicast.",
	 "Only packets that reach the kernel are forwarded, within the rate of their "
	 "class."},
	{6, BOTH, WARNING_SYSCTL, DEVCONF_SEG6_ENABLED, "seg6_enabled", "seg6_enabled",
	 "Linux processes segment routing headers (SRv6) of packets to its addresses.",
	 "Only packets that reach the kernel are processed, within the rate of their "
	 "class."},
	{6, IS_1, WARNING_SYSCTL, DEVCONF_SEG6_REQUIRE_HMAC, "seg6_require_hmac", NULL,
	 "Linux drops packets to segments (SRv6) that have no valid HMAC.",
	 "End points of forwarders do not verify the HMAC."},
	{6, BOTH, WARNING_SYSCTL, DEVCONF_RPL_SEG_ENABLED, "rpl_seg_enabled",
	 "rpl_seg_enabled", "Linux processes source routes of RPL.",
	 "Only packets that reach the kernel are processed, within the rate of their "
	 "class."},
	{6, ALONE, WARNING_SYSCTL, DEVCONF_IOAM6_ENABLED, "ioam6_enabled", NULL,
	 "Linux adds its data to the IOAM option of packets in transit.",
	 "The option passes unchanged."},
	{6, HOST, WARNING_SYSCTL, DEVCONF_ACCEPT_REDIRECTS, "accept_redirects",
	 "forwarding",
	 "Linux is a host on this device (forwarding is 0) and forwards by the gateways "
	 "that ICMP redirects name.",
	 "Packets in transit take the gateways of their routes."},
	{6, EITHER, WARNING_SYSCTL, DEVCONF_USE_OIF_ADDRS_ONLY, "use_oif_addrs_only",
	 "use_oif_addrs_only",
	 "Linux takes sources of ICMP errors from the interface by which they leave.",
	 "The source is an address of the interface by which the packet came."},
	{6, NOT_64, WARNING_SYSCTL, DEVCONF_HOPLIMIT, "hop_limit", NULL,
	 "Linux sends ICMP errors by this device with this hop limit.",
	 "They have the hop limit 64."},
};
#define N_OF_DEVICE (sizeof(of_device) / sizeof(of_device[0]))

static const struct {
	const char *file; /* below /proc/sys/net */
	const char *name;
	long long from, to; /* values that need no warning */
	const char *in_linux, *dataplane;
} of_netns[] = {
	{"ipv4/fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_policy", 0, 1,
	 "Linux hashes the flows of several paths by inner headers (2) or chosen fields "
	 "(3).",
	 "Flows are hashed by addresses, protocol and ports."},
	{"ipv6/fib_multipath_hash_policy", "net.ipv6.fib_multipath_hash_policy", 0, 1,
	 "Linux hashes the flows of several paths by inner headers (2) or chosen fields "
	 "(3).",
	 "Flows are hashed by addresses, protocol, ports and flow label."},
	{"ipv4/fib_multipath_hash_seed", "net.ipv4.fib_multipath_hash_seed", 0, 0,
	 "Linux hashes flows with this seed, so that routers choose alike.",
	 "The seed is new at each start."},
	{"ipv4/ip_forward_use_pmtu", "net.ipv4.ip_forward_use_pmtu", 0, 0,
	 "Linux limits packets in transit to path MTUs that it has learned.",
	 "The MTU of the route and of the egress interface count."},
	{"ipv4/ip_default_ttl", "net.ipv4.ip_default_ttl", 64, 64,
	 "Linux sends ICMP errors with this TTL.", "They have the TTL 64."},
	{"ipv4/icmp_ratelimit", "net.ipv4.icmp_ratelimit", 0, 1000, RATES_LINUX, RATES},
	{"ipv4/icmp_ratemask", "net.ipv4.icmp_ratemask", 6168, 6168, RATES_LINUX, RATES},
	{"ipv4/icmp_msgs_per_sec", "net.ipv4.icmp_msgs_per_sec", 1000, INT_MAX, RATES_LINUX,
	 RATES},
	{"ipv4/icmp_msgs_burst", "net.ipv4.icmp_msgs_burst", 50, INT_MAX, RATES_LINUX,
	 RATES},
	{"ipv6/icmp/ratelimit", "net.ipv6.icmp.ratelimit", 0, 1000, RATES_LINUX, RATES},
	{"ipv4/icmp_errors_extension_mask", "net.ipv4.icmp_errors_extension_mask", 0, 0,
	 EXTENSIONS_LINUX, EXTENSIONS},
	{"ipv6/icmp/errors_extension_mask", "net.ipv6.icmp.errors_extension_mask", 0, 0,
	 EXTENSIONS_LINUX, EXTENSIONS},
	{"ipv6/route/skip_notify_on_dev_down", "net.ipv6.route.skip_notify_on_dev_down", 0,
	 0, "If an interface goes down, Linux deletes its IPv6 routes without a message.",
	 "These routes may stay in force until the tables are read again."},
	{"ipv6/conf/all/proxy_ndp", "net.ipv6.conf.all.proxy_ndp", 0, 0,
	 "Linux answers unicast neighbor solicitations for addresses of its proxy entries.",
	 "They are forwarded. The kernel answers only solicitations to groups."},
};
#define N_OF_NETNS (sizeof(of_netns) / sizeof(of_netns[0]))

/* Return true if forwarders obey a sysctl because of the configuration. */
static bool
sysctl_is_obeyed(const struct warn *w, const struct device_sysctl *s)
{
	return s->key == IPV4_DEVCONF_RP_FILTER && s->family == 4 &&
	       !w->conf.rp_filter_ignored;
}

static_assert(N_OF_DEVICE <= SYSCTLS_OF_DEVICE, "room in struct warn");

/*
 * Read a number below /proc/sys/net of the thread's namespace. Return `none` if the kernel
 * has no such file.
 */
static long long
sysctl_value(const char *file, long long none)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s", file);
	return sysfs_read_number(path, none);
}

long long
sysctl_number(const char *file)
{
	return sysctl_value(file, 0);
}

void
sysctls_scan(struct warn *w)
{
	char where[128], file[96];

	for (unsigned int i = 0; i < N_OF_NETNS; i++) {
		long long value = sysctl_value(of_netns[i].file, of_netns[i].from);

		if ((value >= of_netns[i].from && value <= of_netns[i].to) || value < 0)
			continue;
		snprintf(where, sizeof(where), "%s = %lld", of_netns[i].name, value);
		list_add(&w->list, WARNING_SYSCTL, where, of_netns[i].in_linux,
			 of_netns[i].dataplane);
	}
	for (unsigned int i = 0; i < N_OF_DEVICE; i++) {
		const struct device_sysctl *s = &of_device[i];

		if (s->of_all == NULL || sysctl_is_obeyed(w, s))
			continue;
		snprintf(file, sizeof(file), "ipv%u/conf/all/%s", s->family, s->of_all);
		w->of_all[i] = sysctl_number(file);
		if (s->combine != EITHER || w->of_all[i] == 0)
			continue;
		snprintf(where, sizeof(where), "net.ipv%u.conf.all.%s = %lld", s->family,
			 s->name, w->of_all[i]);
		list_add(&w->list, (enum warning_kind)s->kind, where, s->in_linux,
			 s->dataplane);
	}
}

/* Return true if the value of a device needs a warning of its own. */
static bool
value_counts(const struct device_sysctl *s, long long of_all, uint32_t value,
	     const struct device_message *m)
{
	switch (s->combine) {
	case EITHER:
		return value != 0 && of_all == 0; /* else sysctls_scan() warns of `all` */
	case BOTH:
		return value != 0 && of_all != 0;
	case IS_1:
		return value == 1;
	case HOST:
		return value != 0 && of_all != 0 &&
		       device_conf6(m, DEVCONF_FORWARDING) == 0;
	case NOT_64:
		return value != 64 && value != 0; /* 0: the device has no IPv6 */
	default:
		return value != 0;
	}
}

void
sysctls_of_device(struct warn *w, const struct device_message *m)
{
	char where[128], name[sizeof(m->name)];

	/* Write the name as sysctl(8) does: dots of the device become slashes. */
	snprintf(name, sizeof(name), "%s", m->name);
	for (char *p = name; *p != '\0'; p++)
		if (*p == '.')
			*p = '/';
	for (unsigned int i = 0; i < N_OF_DEVICE; i++) {
		const struct device_sysctl *s = &of_device[i];
		uint32_t value =
			s->family == 4 ? device_conf4(m, s->key) : device_conf6(m, s->key);

		if (sysctl_is_obeyed(w, s) || !value_counts(s, w->of_all[i], value, m))
			continue;
		snprintf(where, sizeof(where), "net.ipv%u.conf.%s.%s = %u", s->family, name,
			 s->name, value);
		list_add(&w->list, (enum warning_kind)s->kind, where, s->in_linux,
			 s->dataplane);
	}
}
