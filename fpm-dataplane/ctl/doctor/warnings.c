/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: configuration of the kernel that works against the dataplane. The daemon
 * finds such configuration in the control namespace. The kernel interfaces below ports
 * (net_af_packet) are in the daemon's own namespace, which this file enters. The daemon
 * turns their IPv6 off, but its /proc/sys may be read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"
#include "pci/kernel_if.h"

/* --- configuration that is not obeyed ------------------------------------------------- */

/*
 * Report how forwarders hash flows if the kernel hashes fewer fields: with the default 0 no
 * ports, with 1 no flow labels of IPv6. This is no warning, because each router would have
 * it, and more fields only spread flows more evenly. The daemon warns of the values 2 and
 * 3.
 */
static void
multipath_check(struct exam *e)
{
	static const char *const family[] = {"ipv4", "ipv6"};

	for (unsigned int i = 0; i < sizeof(family) / sizeof(family[0]) && e->deny == NULL;
	     i++) {
		long long policy = exam_number(
			e, -1, "/proc/sys/net/%s/fib_multipath_hash_policy", family[i]);

		if (policy == 0)
			finding_add(
				e, VERDICT_OK, "multipath",
				"flows are hashed by ports, too, and ICMP errors by their "
				"own header, as with 1; "
				"net.%s.fib_multipath_hash_policy is 0",
				family[i]);
		else if (policy == 1 && i == 1)
			finding_add(e, VERDICT_OK, "multipath",
				    "flows are hashed by their flow label, too; "
				    "net.%s.fib_multipath_hash_policy is 1",
				    family[i]);
	}
}

/*
 * State the source address of ICMP errors, unless the sysctl makes the kernel select the
 * same address. This is no warning, because each router would have it.
 */
static void
icmp_source_check(struct exam *e)
{
	if (e->deny == NULL &&
	    exam_number(e, -1, "/proc/sys/net/ipv4/icmp_errors_use_inbound_ifaddr") == 0)
		finding_add(e, VERDICT_OK, "icmp",
			    "ICMP errors have an address of the ingress interface and TTL "
			    "64; src and hoplimit of routes have no effect");
}

/*
 * State which sysctls have values that forwarders do not obey, although these values are
 * the kernel's defaults. These are no warnings, because each router would have them.
 */
static void
defaults_check(struct exam *e)
{
	static const struct {
		const char *key;    /* below net, with slashes */
		long long from, to; /* values with which Linux differs from forwarders */
		const char *text;
	} of[] = {
		{"ipv4/conf/all/accept_local", 0, 0,
		 "packets from addresses of this router are forwarded without rp_filter"},
		{"ipv4/conf/all/send_redirects", 1, INT_MAX, "no ICMP redirects are sent"},
		{"ipv4/fib_multipath_use_neigh", 0, 0,
		 "next hops without a known neighbor carry no flows"},
		{"ipv4/ip_forward_update_priority", 1, INT_MAX,
		 "no queue prefers packets by their TOS"},
		{"ipv6/auto_flowlabels", 1, 1, "ICMPv6 errors have the flow label 0"},
		{"ipv6/auto_flowlabels", 3, INT_MAX, "ICMPv6 errors have the flow label 0"},
		{"ipv6/max_hbh_opts_number", INT_MIN, INT_MAX - 1,
		 "packets pass with any number of hop-by-hop options"},
		{"ipv6/max_hbh_length", INT_MIN, INT_MAX - 1,
		 "packets pass with hop-by-hop options of any length"},
	};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]) && e->deny == NULL; i++) {
		long long value = exam_number(e, LLONG_MIN, "/proc/sys/net/%s", of[i].key);
		char name[64];

		if (value < of[i].from || value > of[i].to)
			continue;
		snprintf(name, sizeof(name), "%s", of[i].key);
		for (char *p = name; *p != '\0'; p++)
			if (*p == '/')
				*p = '.';
		finding_add(e, VERDICT_OK, "sysctl", "%s; net.%s is %lld", of[i].text, name,
			    value);
	}
	if (e->deny != NULL)
		return;
	finding_add(e, VERDICT_OK, "sysctl",
		    "ICMP errors have the rates of `fpmctl show punt`; the ratemask of "
		    "net.ipv6.icmp and error_cost, error_burst of net.ipv4.route have no "
		    "effect");
	finding_add(e, VERDICT_OK, "sysctl",
		    "at most 64 packets wait for each neighbor; unres_qlen and "
		    "unres_qlen_bytes have no effect on packets in transit");
}

void
check_obeyed(struct exam *e)
{
	json_t *rows, *row;
	unsigned int n = 0;
	size_t i;

	if (exam_no_daemon(e, ""))
		return;
	rows = exam_ask(e, "warnings");
	if (rows == NULL) {
		finding_add(e, VERDICT_NA, "", "the daemon does not answer");
		return;
	}
	json_array_foreach (rows, i, row) {
		const char *kind = row_str(row, "kind");

		if (strcmp(kind, "member") == 0)
			continue; /* the check `members` reports these */
		if (strcmp(kind, "carrier") == 0) {
			/* A link without carrier is no fault of the configuration. */
			finding_add(e, VERDICT_OK, kind,
				    "%s: other routes take over its subnets",
				    row_str(row, "where"));
			continue;
		}
		finding_add(e, VERDICT_WARN, kind, "%s", row_str(row, "where"));
		finding_cost(e, "%s %s", row_str(row, "linux"), row_str(row, "dataplane"));
		finding_fix(e, "fpmctl show warnings %s", kind);
		n++;
	}
	if (n == 0)
		finding_add(e, VERDICT_OK, "",
			    "no filter, NAT or sysctl that the dataplane ignores");
	multipath_check(e);
	icmp_source_check(e);
	defaults_check(e);
	json_decref(rows);
}

/* --- the kernel below ----------------------------------------------------------------- */

static void
below_add(struct exam *e, char name[IF_NAMESIZE])
{
	long long off;

	kernel_if_primary(name);
	off = exam_number(e, -1, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	if (if_nametoindex(name) == 0) {
		finding_add(e, VERDICT_WARN, name, "this interface does not exist");
		finding_cost(e, "The port does not forward. The daemon opens it again when "
				"an interface of this name exists.");
		return;
	}
	if (off != 0) {
		finding_add(e, VERDICT_OK, name, "%s",
			    off < 0 ? "this kernel has no IPv6" : "IPv6 is off");
		return;
	}
	finding_add(e, VERDICT_WARN, name, "IPv6 is on in the kernel below the port");
	finding_cost(
		e, "That kernel gets a copy of each frame and has the same MAC address and "
		   "link-local address. It answers for the router: TCP sessions are "
		   "reset, and BGP unnumbered does not come up.");
	finding_fix(e, "nsenter -n -t %d sysctl -w net/ipv6/conf/%s/disable_ipv6=1",
		    (int)exam_pid(e), name);
}

/*
 * Enter the network namespace of the daemon. Returns a descriptor of the previous
 * namespace, or -errno.
 */
static int
below_enter(const struct exam *e)
{
	char path[64];
	int here, there, rc;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)exam_pid(e));
	here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	there = open(path, O_RDONLY | O_CLOEXEC);
	rc = here < 0 || there < 0 || setns(there, CLONE_NEWNET) < 0 ? -errno : here;
	if (there >= 0)
		close(there);
	if (rc < 0 && here >= 0)
		close(here);
	return rc;
}

void
check_below(struct exam *e)
{
	char name[IF_NAMESIZE];
	const json_t *port;
	bool any = false;
	int back = 0;
	size_t i;

	if (exam_no_daemon(e, ": ports unknown"))
		return;
	json_array_foreach (e->ports, i, port) {
		kernel_if_of(row_str(port, "device"), name);
		if (name[0] == '\0')
			continue;
		if (!any)
			back = below_enter(e);
		any = true;
		if (back < 0)
			finding_add(e, VERDICT_NA, name,
				    "no access to the daemon's namespace: %s",
				    strerror(-back));
		else
			below_add(e, name);
	}
	if (!any)
		finding_add(e, VERDICT_NA, "", "no port uses an interface of the kernel");
	if (any && back >= 0) {
		if (setns(back, CLONE_NEWNET) < 0)
			e->deny = strerror(errno); /* not in the control namespace */
		close(back);
	}
}
