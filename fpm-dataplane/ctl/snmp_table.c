/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/snmp_table.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <linux/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/conn.h"
#include "base/sysfs.h"

#define MAX_AGE_S   1.0
#define PATIENCE_MS 1000 /* for the daemon: snmpd waits for this program meanwhile */
#define AGAIN_S     10   /* pause after the daemon was silent */
#define JITTER      200 /* hundredths of a second: the daemon rounds its uptime to seconds */

/* --- clocks ------------------------------------------------------------------------- */

static double
boottime_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Return the CLOCK_BOOTTIME at which the parent, snmpd, started: proc(5), field 22 of stat.
 */
static double
snmpd_began_s(void)
{
	static double began = -1;
	char path[64], text[1024], *at;
	unsigned long long ticks = 0;
	FILE *f;

	if (began >= 0)
		return began;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
	f = fopen(path, "re");
	if (f != NULL && fgets(text, sizeof(text), f) != NULL) {
		at = strrchr(text, ')'); /* the name may have any octet */
		if (at != NULL)
			sscanf(at,
			       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
			       "%*d %*d %*d %*d %*d %llu",
			       &ticks);
	}
	if (f != NULL)
		fclose(f);
	began = ticks == 0 ? boottime_s() : (double)ticks / (double)sysconf(_SC_CLK_TCK);
	return began;
}

/* Convert a CLOCK_BOOTTIME to the clock of snmpd, in hundredths of a second. */
static uint32_t
sys_up_time(double at_s)
{
	double ticks = (at_s - snmpd_began_s()) * 100;

	return ticks <= 0 ? 0 : (uint32_t)(uint64_t)ticks;
}

/* --- rows ---------------------------------------------------------------------------- */

/* Return the speed of a link in Mbit/s, -1 if it has none. */
static long long
link_speed(const struct kernel_link *link)
{
	char path[64 + IF_NAMESIZE];

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", link->name);
	return sysfs_read_number(path, -1);
}

static bool
has_device(const struct kernel_link *link)
{
	char path[64 + IF_NAMESIZE];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", link->name);
	return access(path, F_OK) == 0;
}

static struct snmp_row *
row_find(const struct snmp_table *t, uint32_t ifindex)
{
	unsigned int lo = 0, hi = t->n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (t->row[mid].link.ifindex < ifindex)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->row[lo].link.ifindex == ifindex ? &t->row[lo] : NULL;
}

/* Fill the row of an interface outside of the dataplane from the kernel. */
static void
row_take_kernel(struct snmp_row *row)
{
	const struct rtnl_link_stats64 *c = &row->link.count;
	long long speed = link_speed(&row->link);

	row->has_connector = has_device(&row->link);
	row->mbit_per_s = speed > 0 ? (uint32_t)speed : 0;
	row->count = (struct snmp_count){
		.in_octets = c->rx_bytes,
		.in_packets =
			c->rx_packets > c->multicast ? c->rx_packets - c->multicast : 0,
		.in_multicast = c->multicast,
		.in_discards = c->rx_dropped + c->rx_missed_errors,
		.in_errors = c->rx_errors,
		.out_octets = c->tx_bytes,
		.out_packets = c->tx_packets,
		.out_discards = c->tx_dropped,
		.out_errors = c->tx_errors};
}

static void
row_take_ours(struct snmp_row *row)
{
	row->ours = true;
	row->has_connector = false;
	row->mbit_per_s = 0;
	memset(&row->count, 0xff, sizeof(row->count)); /* SNMP_NOT_COUNTED */
}

static void
row_take_counters(struct snmp_row *row, const json_t *of)
{
	row_take_ours(row);
	row->count.in_octets = (uint64_t)row_int(of, "rx_bytes");
	row->count.in_packets = (uint64_t)row_int(of, "rx_packets");
	row->count.out_octets = (uint64_t)row_int(of, "tx_bytes");
	row->count.out_packets = (uint64_t)row_int(of, "tx_packets");
}

static void
row_take_port(struct snmp_row *row, const json_t *port)
{
	row_take_counters(row, port);
	row->count.in_discards = (uint64_t)row_int(port, "rx_missed");
	row->count.in_errors = (uint64_t)row_int(port, "rx_errors");
	row->count.out_errors = (uint64_t)row_int(port, "tx_errors");
	row->mbit_per_s = (uint32_t)row_int(port, "speed_mbit");
	row->has_connector = strchr(row_str(port, "device"), ':') != NULL &&
			     isxdigit((unsigned char)row_str(port, "device")[0]);
	row->link.promiscuous = row_true(port, "promiscuous");
}

/*
 * Request rows from the daemon. Returns NULL if it does not answer, and pauses requests
 * after a silence.
 */
static json_t *
daemon_rows(struct snmp_table *t, const char *what)
{
	json_t *request = json_pack("{s:s}", "show", what), *rows = json_array();
	double began_s = boottime_s();

	conn_patience(PATIENCE_MS);
	if (conn_try(t->socket, request, rows_keep, rows) != 0) {
		json_decref(rows);
		rows = NULL;
		if (boottime_s() - began_s >= PATIENCE_MS / 1000.0)
			t->ask_from_s = boottime_s() + AGAIN_S;
	}
	json_decref(request);
	return rows;
}

/*
 * Print once to stderr, which snmpd logs, that this program may not connect to the daemon.
 */
static void
denied_say(const struct snmp_table *t)
{
	static bool said;

	if (said || conn_is_there(t->socket) || (errno != EACCES && errno != EPERM))
		return;
	said = true;
	fprintf(stderr,
		"fpmctl: no access to %s: ports have no counters until the user of snmpd "
		"is in "
		"its group\n",
		t->socket);
}

/* Read the rows of the daemon. Returns false if it does not answer. */
static bool
table_take_daemon(struct snmp_table *t)
{
	json_t *version = boottime_s() >= t->ask_from_s ? daemon_rows(t, "version") : NULL;
	json_t *interfaces = version == NULL ? NULL : daemon_rows(t, "interfaces");
	json_t *ports = interfaces == NULL ? NULL : daemon_rows(t, "ports");
	uint32_t began;
	struct snmp_row *row;
	json_t *of;
	size_t i;

	json_array_foreach (interfaces, i, of) {
		row = row_find(t, (uint32_t)row_int(of, "ifindex"));
		if (row != NULL && row_has(of, "rx_packets"))
			row_take_counters(row, of);
	}
	json_array_foreach (ports, i, of) {
		row = row_find(t, (uint32_t)row_int(of, "ifindex"));
		if (row != NULL)
			row_take_port(row, of);
	}
	json_array_foreach (version, i, of) {
		began = sys_up_time(boottime_s() - (double)row_int(of, "uptime_s"));
		/* An SNMP manager treats each change as a restart of the counters. */
		if (began > t->discontinuity + JITTER || began + JITTER < t->discontinuity)
			t->discontinuity = began;
	}
	json_decref(version);
	json_decref(interfaces);
	if (ports == NULL) {
		denied_say(t);
		return false;
	}
	json_decref(ports);
	return true;
}

/*
 * Without the daemon, assume that each TAP and the interfaces on it belong to the
 * dataplane, unless the daemon reported otherwise before. A TAP of another program has no
 * counters meanwhile.
 */
static void
table_guess_ours(struct snmp_table *t, const struct snmp_row *old, unsigned int n_old)
{
	struct snmp_table before = {.row = (struct snmp_row *)(uintptr_t)old, .n = n_old};

	for (unsigned int i = 0; i < t->n; i++) {
		struct snmp_row *row = &t->row[i];
		const struct snmp_row *was = row_find(&before, row->link.ifindex);
		const struct snmp_row *below = row_find(t, row->link.below);

		if (was != NULL ? was->ours
				: strcmp(row->link.kind, "tun") == 0 ||
					  (below != NULL && below->ours))
			row_take_ours(row);
	}
}

/* Give each VLAN and macvlan the speed of the interface that carries it. */
static void
table_pass_speed_on(struct snmp_table *t)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct snmp_row *below = row_find(t, t->row[i].link.below);

		if (t->row[i].mbit_per_s == 0 && below != NULL && below != &t->row[i])
			t->row[i].mbit_per_s = below->mbit_per_s;
	}
}

static bool
state_differs(const struct kernel_link *a, const struct kernel_link *b)
{
	return a->operstate != b->operstate ||
	       ((a->flags ^ b->flags) & (IFF_UP | IFF_RUNNING)) != 0;
}

/*
 * Return ifLastChange of an interface, whose earlier row is `was` (NULL: it did not exist).
 */
static uint32_t
last_change(const struct snmp_row *was, const struct kernel_link *link, bool first)
{
	if (first)
		return 0;
	return was == NULL || state_differs(&was->link, link) ? sys_up_time(boottime_s())
							      : was->changed;
}

static bool
counter_fell(uint64_t was, uint64_t is)
{
	return was != SNMP_NOT_COUNTED && is < was; /* SNMP_NOT_COUNTED is the largest */
}

/*
 * Return the time at which the counters of an interface last began again, given its earlier
 * row (NULL: it did not exist). A port whose device is opened again keeps its ifIndex, and
 * counts from 0. in_packets is left out: the kernel's value is the difference of two
 * counters that a driver may read one after the other.
 */
static uint32_t
last_restart(const struct snmp_row *was, const struct snmp_count *is)
{
	const struct snmp_count *c;

	if (was == NULL)
		return 0;
	c = &was->count;
	if (counter_fell(c->in_octets, is->in_octets) ||
	    counter_fell(c->in_discards, is->in_discards) ||
	    counter_fell(c->in_errors, is->in_errors) ||
	    counter_fell(c->out_octets, is->out_octets) ||
	    counter_fell(c->out_packets, is->out_packets) ||
	    counter_fell(c->out_discards, is->out_discards) ||
	    counter_fell(c->out_errors, is->out_errors))
		return sys_up_time(boottime_s());
	return was->restarted;
}

int
snmp_table_refresh(struct snmp_table *t)
{
	struct snmp_table old = *t;
	double now_s = boottime_s();
	bool is_valid = t->read_s != 0 && now_s - t->read_s < SNMP_KEEP_S;
	struct kernel_link *link;
	int n;

	if (is_valid && now_s - t->tried_s < MAX_AGE_S)
		return 0;
	t->tried_s = now_s;
	n = kernel_links(&link);
	if (n < 0)
		return is_valid ? 0 : n;
	t->row = calloc((size_t)n + 1, sizeof(*t->row));
	if (t->row == NULL) {
		t->row = old.row;
		free(link);
		return is_valid ? 0 : -ENOMEM;
	}
	t->n = (unsigned int)n;
	for (unsigned int i = 0; i < t->n; i++) {
		t->row[i].link = link[i];
		row_take_kernel(&t->row[i]);
		t->row[i].changed = last_change(row_find(&old, link[i].ifindex), &link[i],
						old.read_s == 0);
	}
	free(link);
	if (!table_take_daemon(t))
		table_guess_ours(t, old.row, old.n);
	table_pass_speed_on(t);
	for (unsigned int i = 0; i < t->n; i++) {
		struct snmp_row *row = &t->row[i];

		row->restarted =
			last_restart(row_find(&old, row->link.ifindex), &row->count);
	}
	free(old.row);
	t->read_s = t->tried_s = boottime_s();
	return 0;
}

/* --- values --------------------------------------------------------------------------- */

static unsigned int
if_type(const struct kernel_link *link)
{
	if (link->hardware == ARPHRD_LOOPBACK)
		return 24; /* softwareLoopback */
	if (strcmp(link->kind, "vlan") == 0)
		return 135; /* l2vlan */
	if (strcmp(link->kind, "bridge") == 0)
		return 209;
	if (strcmp(link->kind, "bond") == 0)
		return 161; /* ieee8023adLag */
	if (link->hardware == ARPHRD_PPP)
		return 23;
	if (link->hardware == ARPHRD_TUNNEL || link->hardware == ARPHRD_TUNNEL6 ||
	    link->hardware == ARPHRD_SIT || link->hardware == ARPHRD_IPGRE ||
	    link->hardware == ARPHRD_IP6GRE)
		return 131;                            /* tunnel */
	return link->hardware == ARPHRD_ETHER ? 6 : 1; /* ethernetCsmacd, other */
}

static unsigned int
if_oper_status(const struct kernel_link *link)
{
	static const uint8_t of[] = {[IF_OPER_NOTPRESENT] = 6,     [IF_OPER_DOWN] = 2,
				     [IF_OPER_LOWERLAYERDOWN] = 7, [IF_OPER_TESTING] = 3,
				     [IF_OPER_DORMANT] = 5,        [IF_OPER_UP] = 1};

	if (link->operstate < sizeof(of) && of[link->operstate] != 0)
		return of[link->operstate];
	return (link->flags & IFF_RUNNING) != 0 && (link->flags & IFF_UP) != 0 ? 1 : 2;
}

/* Write a text. Replace control characters, because a newline would end the value. */
static bool
value_text(char *out, size_t size, const char *text)
{
	int at = snprintf(out, size, "string\n%s\n", text);

	for (int i = 7; i < at - 1; i++)
		if (iscntrl((unsigned char)out[i]))
			out[i] = '?';
	return true;
}

static bool
value_number(char *out, size_t size, const char *type, unsigned long long value)
{
	snprintf(out, size, "%s\n%llu\n", type, value);
	return true;
}

/* Write a counter. Write nothing for a counter that the interface does not have. */
static bool
value_counter(char *out, size_t size, bool wide, uint64_t value)
{
	return value != SNMP_NOT_COUNTED &&
	       value_number(out, size, wide ? "counter64" : "counter",
			    wide ? value : (uint32_t)value);
}

static bool
value_mac(char *out, size_t size, const struct kernel_link *link)
{
	int at = snprintf(out, size, "%s\n", link->mac_bytes == 0 ? "string" : "octet");

	for (unsigned int i = 0; i < link->mac_bytes; i++)
		at += snprintf(out + at, size - (size_t)at, i == 0 ? "%02x" : " %02x",
			       link->mac[i]);
	snprintf(out + at, size - (size_t)at, "\n");
	return true;
}

/* Write a column of ifTable (RFC 2863). Deprecated columns are left out. */
static bool
value_of_if(unsigned int column, const struct snmp_row *row, char *out, size_t size)
{
	const struct kernel_link *link = &row->link;
	const struct snmp_count *c = &row->count;
	uint64_t bits = row->mbit_per_s * 1000000ull;

	switch (column) {
	case 1:
		return value_number(out, size, "integer", link->ifindex);
	case 2:
		return value_text(out, size, link->name);
	case 3:
		return value_number(out, size, "integer", if_type(link));
	case 4:
		return value_number(out, size, "integer", link->mtu_bytes);
	case 5:
		return value_number(out, size, "gauge",
				    bits > UINT32_MAX ? UINT32_MAX : bits);
	case 6:
		return value_mac(out, size, link);
	case 7:
		return value_number(out, size, "integer",
				    (link->flags & IFF_UP) != 0 ? 1 : 2);
	case 8:
		return value_number(out, size, "integer", if_oper_status(link));
	case 9:
		return value_number(out, size, "timeticks", row->changed);
	case 10:
		return value_counter(out, size, false, c->in_octets);
	case 11:
		return value_counter(out, size, false, c->in_packets);
	case 13:
		return value_counter(out, size, false, c->in_discards);
	case 14:
		return value_counter(out, size, false, c->in_errors);
	case 16:
		return value_counter(out, size, false, c->out_octets);
	case 17:
		return value_counter(out, size, false, c->out_packets);
	case 19:
		return value_counter(out, size, false, c->out_discards);
	case 20:
		return value_counter(out, size, false, c->out_errors);
	default:
		return false;
	}
}

static bool
value_of_ifx(const struct snmp_table *t, unsigned int column, const struct snmp_row *row,
	     char *out, size_t size)
{
	const struct kernel_link *link = &row->link;
	const struct snmp_count *c = &row->count;

	switch (column) {
	case 1:
		return value_text(out, size, link->name);
	case 2:
		return value_counter(out, size, false, c->in_multicast);
	case 6:
		return value_counter(out, size, true, c->in_octets);
	case 7:
		return value_counter(out, size, true, c->in_packets);
	case 8:
		return value_counter(out, size, true, c->in_multicast);
	case 10:
		return value_counter(out, size, true, c->out_octets);
	case 11:
		return value_counter(out, size, true, c->out_packets);
	case 14: /* this program sends no traps */
		return value_number(out, size, "integer", 2);
	case 15:
		return value_number(out, size, "gauge", row->mbit_per_s);
	case 16:
		return value_number(out, size, "integer", link->promiscuous ? 1 : 2);
	case 17:
		return value_number(out, size, "integer", row->has_connector ? 1 : 2);
	case 18:
		return value_text(out, size, link->alias);
	case 19:
		if (!row->ours || row->restarted > t->discontinuity)
			return value_number(out, size, "timeticks", row->restarted);
		return value_number(out, size, "timeticks", t->discontinuity);
	default:
		return false;
	}
}

unsigned int
snmp_columns(unsigned int table)
{
	return table == 2 ? 20 : 19;
}

bool
snmp_value(const struct snmp_table *t, unsigned int table, unsigned int column,
	   const struct snmp_row *row, char *out, size_t size)
{
	return table == 2 ? value_of_if(column, row, out, size)
			  : value_of_ifx(t, column, row, out, size);
}
