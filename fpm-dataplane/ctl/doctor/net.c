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

/* An interface that forwarders serve. */
struct served {
	const char *dev;
	bool port;
	bool no4, no6; /* a tunnel that takes no packets of the family */
};

/*
 * Families whose sysctl of `all` is wrong. Findings about ports say so. Other interfaces
 * have no finding about it, because there may be thousands of them.
 */
#define ALL4 1u
#define ALL6 2u
struct all_wrong {
	unsigned int said, unsaid;
	bool neither; /* an interface with `unsaid` forwards neither family */
};

/*
 * Check each interface that forwarders serve, by its name in the control namespace: TAPs,
 * VLANs, macvlans, tunnels and bridges. Only a TAP has a finding if nothing is wrong. The
 * sysctls of a member of a bridge, bond or team have no effect. Returns the families for
 * which one finding about `all` is missing.
 */
static unsigned int
served_check(struct exam *e,
	     void (*check)(struct exam *e, const struct served *s, struct all_wrong *all),
	     struct all_wrong *all)
{
	const json_t *row;
	size_t i;

	*all = (struct all_wrong){0};
	if (netns_is_untold(e))
		return 0;
	json_array_foreach (e->interfaces, i, row) {
		struct served s = {.dev = row_str(row, "name"),
				   .port = row_true(row, "port"),
				   .no4 = strcmp(row_str(row, "inner"), "ipv6") == 0,
				   .no6 = strcmp(row_str(row, "inner"), "ipv4") == 0};

		if ((s.port || row_has(row, "urpf")) && !row_has(row, "part_of"))
			check(e, &s, all);
	}
	return all->unsaid & ~all->said;
}

static void
strict_add(struct exam *e, const char *subject)
{
	finding_add(e, VERDICT_WARN, subject, "strict");
	finding_cost(e, "Where the routes of the two directions differ, the kernel drops "
			"packets for the router itself (BGP sessions do not come up, pings "
			"are not answered), and the router drops packets in transit "
			"(urpf), unless the key rp-filter is ignore.");
}

/*
 * Check rp_filter: the larger one of the values of `all` and of the interface counts.
 * Strict mode (1) drops a packet if the best route to its source does not leave by the
 * ingress interface (RFC 3704, 2.2).
 */
static void
dev_check_rp_filter(struct exam *e, const struct served *s, struct all_wrong *all)
{
	long long of_all = sysctl_get(e, "ipv4", "all", "rp_filter");
	long long own = sysctl_get(e, "ipv4", s->dev, "rp_filter");
	char name[KEY_SIZE];

	if (of_all < 0 || own < 0) {
		if (s->port)
			finding_add(e, VERDICT_NA, s->dev,
				    "no such interface in the control namespace");
		return;
	}
	if (s->no4 || (of_all > own ? of_all : own) != 1) {
		if (s->port)
			finding_add(e, VERDICT_OK, s->dev, "%s",
				    of_all > 1 || own > 1 ? "loose" : "off");
		return;
	}
	if (of_all == 1)
		*(s->port ? &all->said : &all->unsaid) |= ALL4;
	if (!s->port && own != 1)
		return;
	strict_add(e, s->dev);
	if (of_all == 1 && s->port)
		finding_fix(e, "%ssysctl -w net.ipv4.conf.all.rp_filter=0", e->in);
	if (own == 1)
		finding_fix(e, "%ssysctl -w net.ipv4.conf.%s.rp_filter=0", e->in,
			    sysctl_name(s->dev, name));
}

void
check_rp_filter(struct exam *e)
{
	struct all_wrong all;

	if (served_check(e, dev_check_rp_filter, &all) == 0)
		return;
	strict_add(e, "all");
	finding_fix(e, "%ssysctl -w net.ipv4.conf.all.rp_filter=0", e->in);
}

/* Add a finding. `by_all`: the families that the sysctls of `all` turn off. */
static void
forwarding_add(struct exam *e, bool neither, const char *subject, bool off4, bool off6,
	       unsigned int by_all)
{
	char name[KEY_SIZE];

	finding_add(e, neither ? VERDICT_FAIL : VERDICT_WARN, subject, "off: %s%s%s",
		    off4 ? "IPv4" : "", off4 && off6 ? " and " : "", off6 ? "IPv6" : "");
	finding_cost(e, "Packets of that family that arrive there and are not for the "
			"router are dropped silently (`show counters`: forwarding_off).");
	if (off4 && (by_all & ALL4) != 0)
		finding_fix(e, "%ssysctl -w net.ipv4.ip_forward=1", e->in);
	else if (off4)
		finding_fix(e, "%ssysctl -w net.ipv4.conf.%s.forwarding=1", e->in,
			    sysctl_name(subject, name));
	if (off6)
		finding_fix(e, "%ssysctl -w net.ipv6.conf.all.forwarding=1", e->in);
}

/*
 * Check forwarding: for IPv4 the sysctl of the interface counts, for IPv6 that of `all`, or
 * force_forwarding of the interface (Linux 6.17).
 */
static void
dev_check_forwarding(struct exam *e, const struct served *s, struct all_wrong *all)
{
	long long on4 = sysctl_get(e, "ipv4", s->dev, "forwarding");
	bool all4 = sysctl_get(e, "ipv4", "all", "forwarding") == 0;
	bool all6 = sysctl_get(e, "ipv6", "all", "forwarding") == 0;
	bool no6 = s->no6 || sysctl_get(e, "ipv6", s->dev, "disable_ipv6") != 0;
	bool forced6 = sysctl_get(e, "ipv6", s->dev, "force_forwarding") == 1;
	bool off4 = on4 == 0 && !s->no4, off6 = !no6 && all6 && !forced6;
	bool neither = (off4 || s->no4) && (off6 || no6);
	unsigned int by_all = (off4 && all4 ? ALL4 : 0) | (off6 ? ALL6 : 0);

	if (on4 < 0) {
		if (s->port)
			finding_add(e, VERDICT_NA, s->dev,
				    "no such interface in the control namespace");
		return;
	}
	if (!off4 && !off6) {
		if (s->port)
			finding_add(e, VERDICT_OK, s->dev, "IPv4%s",
				    no6 ? "; it has no IPv6" : " and IPv6");
		return;
	}
	*(s->port ? &all->said : &all->unsaid) |= by_all;
	if (s->port) {
		forwarding_add(e, neither, s->dev, off4, off6, by_all);
		return;
	}
	all->neither = all->neither || (neither && by_all != 0);
	if (off4 && !all4)
		forwarding_add(e, neither, s->dev, true, false, 0);
}

void
check_forwarding(struct exam *e)
{
	struct all_wrong all;
	unsigned int missing = served_check(e, dev_check_forwarding, &all);

	if (missing != 0)
		forwarding_add(e, all.neither, "all", (missing & ALL4) != 0,
			       (missing & ALL6) != 0, missing);
}
