/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: checks of ports, their queues, and the sysctls of their TAPs in the
 * control namespace.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/json_row.h"

#define KEY_SIZE 32
/*
 * Metric of the last route of a VRF, after all routes of zebra (Linux, networking/vrf.rst).
 */
#define VRF_LAST_METRIC 4278198272u

static bool
ports_are_untold(struct exam *e)
{
	return exam_no_daemon(e, ": ports unknown");
}

/* --- queues --------------------------------------------------------------------------- */

static void
port_check_rss(struct exam *e, const json_t *port)
{
	static const char *const want[] = {"ip", "tcp", "udp", "sctp", "l2"};
	const char *rss = row_str(port, "rss"), *name = row_str(port, "name");
	char missing[64] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (!has_word(rss, want[i]))
			n += (size_t)snprintf(missing + n, sizeof(missing) - n, " %s",
					      want[i]);
	if (row_int(port, "queues") <= 1) {
		finding_add(e, VERDICT_NA, name, "one queue: nothing to spread");
	} else if (strcmp(row_str(port, "driver"), "net_af_packet") == 0) {
		finding_add(e, VERDICT_OK, name,
			    "the kernel spreads packets (AF_PACKET fanout)");
	} else if (strcmp(rss, "unknown") == 0) {
		finding_add(e, VERDICT_NA, name,
			    "%lld queues; the driver does not report its hash",
			    row_int(port, "queues"));
	} else if (strcmp(rss, "none") == 0) {
		finding_add(e, VERDICT_FAIL, name,
			    "%lld queues, but the device does not hash",
			    row_int(port, "queues"));
		finding_cost(
			e, "All packets arrive on queue 0: one CPU works, the others "
			   "are idle. `queues: 1` frees these CPUs for other ports; until "
			   "the next start:");
		finding_fix(e, "fpmctl port set %s queues 1", name);
	} else if (n > 0) {
		finding_add(e, VERDICT_WARN, name, "hashes %s, but not:%s", rss, missing);
		finding_cost(e, "Flows that differ only in those fields share a queue and "
				"its CPU. The device or its driver cannot hash the missing "
				"fields.");
	} else {
		finding_add(e, VERDICT_OK, name, "hashes %s", rss);
	}
}

void
check_rss(struct exam *e)
{
	const json_t *port;
	size_t i;

	if (ports_are_untold(e))
		return;
	json_array_foreach (e->ports, i, port)
		port_check_rss(e, port);
}

static void
port_check_queues(struct exam *e, const json_t *port, cpu_set_t *busy)
{
	const char *name = row_str(port, "name");
	const json_t *cpu;
	char text[256] = "", orphans[128] = "";
	size_t i, n = 0, n_orphan = 0;

	json_array_foreach (json_object_get(port, "cpus"), i, cpu) {
		long long c = json_integer_value(cpu);

		if (!json_is_integer(cpu)) {
			if (n_orphan < sizeof(orphans))
				n_orphan += (size_t)snprintf(orphans + n_orphan,
							     sizeof(orphans) - n_orphan,
							     " %zu", i);
			continue;
		}
		if (c >= 0 && c < CPU_SETSIZE)
			CPU_SET((size_t)c, busy);
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %zu:%lld", i,
					      c);
	}
	if (n_orphan == 0) {
		finding_add(e, VERDICT_OK, name, "queue:CPU%s", text);
		return;
	}
	finding_add(e, VERDICT_FAIL, name, "no CPU serves the queues%s", orphans);
	finding_cost(
		e,
		"Packets in these queues are lost (rx_missed). After a change this state "
		"should end within a second; otherwise restart the daemon.");
	finding_fix(e, "systemctl restart fpm-dataplane");
}

void
check_queues(struct exam *e)
{
	char list[256];
	const json_t *port;
	cpu_set_t busy, idle;
	size_t i;

	if (ports_are_untold(e))
		return;
	CPU_ZERO(&busy);
	json_array_foreach (e->ports, i, port)
		port_check_queues(e, port, &busy);
	CPU_AND(&busy, &busy, &e->cpus);
	CPU_XOR(&idle, &busy, &e->cpus);
	if (CPU_COUNT(&idle) == 0)
		return;
	finding_add(e, VERDICT_WARN, "", "CPUs %s forward nothing: they serve no queue",
		    cpulist_text(&idle, list, sizeof(list)));
	finding_cost(
		e,
		"These CPUs are reserved without use. Give a port more `queues:`, if the "
		"device has them (until the next start, as below), or use fewer `cores:`.");
	port = json_array_get(e->ports, 0);
	finding_fix(e, "fpmctl port set %s queues %d", row_str(port, "name"),
		    CPU_COUNT(&e->cpus));
}

/* --- links ---------------------------------------------------------------------------- */

/*
 * Return the interface flags of a port's TAP; -1: unknown. Copies its current name, which
 * may have changed.
 */
static int
tap_flags(const struct exam *e, const json_t *port, char name[IFNAMSIZ])
{
	unsigned int ifindex = (unsigned int)row_int(port, "ifindex");
	struct ifreq request = {0};
	int rc = -1, fd;

	snprintf(name, IFNAMSIZ, "%s", row_str(port, "name"));
	if (e->deny != NULL || if_indextoname(ifindex, request.ifr_name) == NULL)
		return -1;
	strcpy(name, request.ifr_name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0)
		rc = (unsigned short)request.ifr_flags;
	if (fd >= 0)
		close(fd);
	return rc;
}

void
check_links(struct exam *e)
{
	const json_t *port;
	size_t i;

	if (ports_are_untold(e))
		return;
	json_array_foreach (e->ports, i, port) {
		char tap[IFNAMSIZ];
		int flags = tap_flags(e, port, tap);

		if (row_int(port, "ifindex") == 0) {
			finding_add(e, VERDICT_WARN, tap, "the TAP does not exist");
			finding_cost(
				e, "The port does not forward. The TAP was deleted, or "
				   "another interface has its name. The daemon makes it "
				   "again, without its addresses, when the name is free:");
			finding_fix(e, "%sip link show %s", e->in, tap);
		} else if (flags >= 0 && (flags & IFF_UP) == 0) {
			finding_add(e, VERDICT_WARN, tap, "shut down in the kernel");
			finding_cost(e, "The port does not forward, and no route uses it. "
					"FRR's `shutdown` does this, and a reboot without "
					"`no shutdown`, or:");
			finding_fix(e, "%sip link set %s up", e->in, tap);
		} else if (strcmp(row_str(port, "link"), "up") != 0) {
			finding_add(e, VERDICT_WARN, tap, "no link: %s",
				    row_str(port, "device"));
			finding_cost(
				e, "The port does not forward, and no route uses it. Check "
				   "the cable, the transceiver, the other end, or the "
				   "device below a virtual device. After the repair:");
			finding_fix(e, "fpmctl show ports %s", row_str(port, "name"));
		} else {
			finding_add(e, VERDICT_OK, tap, "up");
		}
	}
}

/* --- ports that are members of another kernel interface ------------------------------- */

void
check_members(struct exam *e)
{
	const json_t *row;
	size_t i;

	if (ports_are_untold(e))
		return;
	json_array_foreach (e->interfaces, i, row) {
		const char *name = row_str(row, "name"), *owner = row_str(row, "part_of");

		if (!row_has(row, "part_of")) {
			if (row_true(row, "port"))
				finding_add(e, VERDICT_OK, name, "no member");
			continue;
		}
		finding_add(e, VERDICT_WARN, name, "member of %s, which is no port", owner);
		finding_cost(e,
			     "The kernel forwards packets routed to %s, slower than a port "
			     "does (routes.through-kernel). Configure a bond as a "
			     "port (device net_bonding0,..., interfaces.md). The dataplane "
			     "has no bridges.",
			     owner);
		finding_fix(e, "%sip link set %s nomaster", e->in, name);
	}
}

/* --- VRFs ----------------------------------------------------------------------------- */

void
check_vrfs(struct exam *e)
{
	json_t *rows, *row;
	size_t i;

	if (exam_no_daemon(e, ""))
		return;
	rows = exam_ask(e, "vrfs");
	if (json_array_size(rows) == 0)
		finding_add(e, VERDICT_NA, "",
			    rows == NULL ? "the daemon does not answer" : "no VRFs");
	json_array_foreach (rows, i, row) {
		const char *name = row_str(row, "name");
		bool has4 = row_true(row, "default4"), has6 = row_true(row, "default6");

		if (has4 && has6) {
			finding_add(e, VERDICT_OK, name, "has default routes");
			continue;
		}
		finding_add(e, VERDICT_WARN, name, "no default route: %s",
			    has4   ? "IPv6"
			    : has6 ? "IPv4"
				   : "IPv4, IPv6");
		finding_cost(e, "Packets without a route in the VRF use table main, as in "
				"Linux. A default route of type unreachable keeps them in "
				"the VRF. Routes of zebra are preferred to it.");
		if (!has4)
			finding_fix(e,
				    "%sip route add vrf %s unreachable default metric %u",
				    e->in, name, VRF_LAST_METRIC);
		if (!has6)
			finding_fix(
				e, "%sip -6 route add vrf %s unreachable default metric %u",
				e->in, name, VRF_LAST_METRIC);
	}
	json_decref(rows);
}

/* --- sysctls -------------------------------------------------------------------------- */

/* Read a sysctl of the control namespace; -1: it cannot be read. */
static long long
sysctl_get(const struct exam *e, const char *family, const char *dev, const char *key)
{
	return exam_number(e, -1, "/proc/sys/net/%s/conf/%s/%s", family, dev, key);
}

/*
 * Format a name for sysctl(8), whose separator is the dot: dots in the name become slashes.
 */
static const char *
sysctl_name(const char *dev, char buf[KEY_SIZE])
{
	snprintf(buf, KEY_SIZE, "%s", dev);
	for (char *p = buf; *p != '\0'; p++)
		if (*p == '.')
			*p = '/';
	return buf;
}

static bool
netns_is_untold(struct exam *e)
{
	if (ports_are_untold(e))
		return true;
	if (e->deny != NULL)
		finding_add_denied(e);
	return e->deny != NULL;
}

/*
 * Check each interface that forwarders serve, by its name in the control namespace: TAPs,
 * VLANs, macvlans, tunnels and bridges. Only a TAP has a finding if nothing is wrong,
 * because there may be thousands of VLANs.
 */
static void
served_check(struct exam *e, void (*check)(struct exam *e, const char *dev, bool port))
{
	const json_t *row;
	size_t i;

	if (netns_is_untold(e))
		return;
	json_array_foreach (e->interfaces, i, row)
		if (row_true(row, "port") || row_has(row, "urpf"))
			check(e, row_str(row, "name"), row_true(row, "port"));
}

/*
 * Check rp_filter: the larger one of the values of `all` and of the interface counts.
 * Strict mode (1) drops a packet if the best route to its source does not leave by the
 * ingress interface (RFC 3704, 2.2).
 */
static void
dev_check_rp_filter(struct exam *e, const char *dev, bool port)
{
	long long all = sysctl_get(e, "ipv4", "all", "rp_filter");
	long long own = sysctl_get(e, "ipv4", dev, "rp_filter");
	char name[KEY_SIZE];

	if (all < 0 || own < 0) {
		if (port)
			finding_add(e, VERDICT_NA, dev,
				    "no such interface in the control namespace");
	} else if ((all > own ? all : own) != 1) {
		if (port)
			finding_add(e, VERDICT_OK, dev, "%s",
				    all > 1 || own > 1 ? "loose" : "off");
	} else {
		finding_add(e, VERDICT_WARN, dev, "strict");
		finding_cost(e, "Where the routes of the two directions differ, the kernel "
				"drops packets for the router itself (BGP sessions do not "
				"come up, pings are not answered), and the router drops "
				"packets in transit (urpf), unless the key rp-filter is "
				"ignore.");
		if (all == 1)
			finding_fix(e, "%ssysctl -w net.ipv4.conf.all.rp_filter=0", e->in);
		if (own == 1)
			finding_fix(e, "%ssysctl -w net.ipv4.conf.%s.rp_filter=0", e->in,
				    sysctl_name(dev, name));
	}
}

void
check_rp_filter(struct exam *e)
{
	served_check(e, dev_check_rp_filter);
}

/*
 * Check forwarding: for IPv4 the sysctl of the interface counts, for IPv6 that of `all`, or
 * force_forwarding of the interface (Linux 6.17).
 */
static void
dev_check_forwarding(struct exam *e, const char *dev, bool port)
{
	long long on4 = sysctl_get(e, "ipv4", dev, "forwarding");
	long long all6 = sysctl_get(e, "ipv6", "all", "forwarding");
	bool no6 = sysctl_get(e, "ipv6", dev, "disable_ipv6") != 0;
	bool forced6 = sysctl_get(e, "ipv6", dev, "force_forwarding") == 1;
	bool off4 = on4 == 0, off6 = !no6 && all6 == 0 && !forced6;
	char name[KEY_SIZE];

	sysctl_name(dev, name);
	if (on4 < 0) {
		if (port)
			finding_add(e, VERDICT_NA, dev,
				    "no such interface in the control namespace");
		return;
	}
	if (!off4 && !off6) {
		if (port)
			finding_add(e, VERDICT_OK, dev, "IPv4%s",
				    no6 ? "; it has no IPv6" : " and IPv6");
		return;
	}
	finding_add(e, off4 && (no6 || off6) ? VERDICT_FAIL : VERDICT_WARN, dev,
		    "off: %s%s%s", off4 ? "IPv4" : "", off4 && off6 ? " and " : "",
		    off6 ? "IPv6" : "");
	finding_cost(e, "Packets of that family that arrive there and are not for the "
			"router are dropped silently (`show counters`: forwarding_off).");
	if (off4 && sysctl_get(e, "ipv4", "all", "forwarding") == 0)
		finding_fix(e, "%ssysctl -w net.ipv4.ip_forward=1", e->in);
	else if (off4)
		finding_fix(e, "%ssysctl -w net.ipv4.conf.%s.forwarding=1", e->in, name);
	if (off6)
		finding_fix(e, "%ssysctl -w net.ipv6.conf.all.forwarding=1", e->in);
}

void
check_forwarding(struct exam *e)
{
	served_check(e, dev_check_forwarding);
}
