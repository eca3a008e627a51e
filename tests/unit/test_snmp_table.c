/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of ifTable and ifXTable: counters of the kernel and of the daemon, times on the
 * clock of snmpd, and the octets of each column. The test plays the kernel, the daemon and
 * the clock.
 *
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 * link: fpm-dataplane/base/sysfs.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/conn.h"
#include "ctl/snmp_table.h"
#include "base/sysfs.h"
#include "root_fake.h"

#define SNMPD_AT_S 100 /* snmpd began at this time */

static struct {
	double now_s;
	struct kernel_link link[8];
	int n_link;                               /* or -errno */
	const char *version, *interfaces, *ports; /* rows; NULL: no answer */
	double silence_s; /* a request without an answer takes this long */
	unsigned int n_asked, patience_ms;
	int no_access; /* errno of a connection; 0: the daemon listens */
} bed;
static struct snmp_table known;

/* --- functions that this program replaces --------------------------------------------- */

int
kernel_links(struct kernel_link **links)
{
	if (bed.n_link < 0)
		return bed.n_link;
	*links = calloc((size_t)bed.n_link + 1, sizeof(**links));
	memcpy(*links, bed.link, (size_t)bed.n_link * sizeof(**links));
	return bed.n_link;
}

void
conn_patience(unsigned int ms)
{
	bed.patience_ms = ms;
}

int
conn_try(const char *path, const json_t *request,
	 bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	const char *show = json_string_value(json_object_get(request, "show"));
	const char *rows = strcmp(show, "version") == 0      ? bed.version
			   : strcmp(show, "interfaces") == 0 ? bed.interfaces
							     : bed.ports;
	json_t *all, *row;
	size_t i;

	assert_string_equal(path, "/run/control.sock");
	assert_int_equal(bed.patience_ms, 1000);
	bed.n_asked++;
	if (rows == NULL) {
		bed.now_s += bed.silence_s;
		return 1;
	}
	all = json_loads(rows, 0, NULL);
	assert_non_null(all);
	json_array_foreach (all, i, row)
		(void)on_row(row, "", ctx);
	json_decref(all);
	return 0;
}

bool
conn_is_there(const char *path)
{
	errno = bed.no_access;
	return bed.no_access == 0;
}

static int
clock_fake(clockid_t id, struct timespec *now)
{
	assert_int_equal(id, CLOCK_BOOTTIME);
	now->tv_sec = (time_t)bed.now_s;
	now->tv_nsec = (long)((bed.now_s - (double)now->tv_sec) * 1e9);
	return 0;
}

static FILE *
file_open(const char *path, const char *mode)
{
	return fopen(root_path(path), mode);
}

static int
file_access(const char *path, int mode)
{
	return access(root_path(path), mode);
}

static long long
file_number(const char *path, long long none)
{
	return sysfs_read_number(root_path(path), none);
}

#define clock_gettime     clock_fake
#define fopen             file_open
#define access            file_access
#define sysfs_read_number file_number
#include "ctl/snmp_table.c"
#undef clock_gettime
#undef fopen
#undef access
#undef sysfs_read_number

static void
file_write(const char *path, const char *text)
{
	FILE *f = fopen(root_path_made(path), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
up(void **state)
{
	memset(&bed, 0, sizeof(bed));
	known = (struct snmp_table){.socket = "/run/control.sock"};
	bed.now_s = 1000;
	bed.n_link = 4;
	bed.version = "[{\"uptime_s\": 300}]";
	bed.interfaces = bed.ports = "[]";
	bed.link[0] = (struct kernel_link){.ifindex = 1,
					   .name = "lo",
					   .hardware = ARPHRD_LOOPBACK,
					   .mtu_bytes = 65536};
	bed.link[1] = (struct kernel_link){.ifindex = 3,
					   .name = "lan0",
					   .kind = "tun",
					   .hardware = ARPHRD_ETHER,
					   .flags = IFF_UP | IFF_RUNNING,
					   .operstate = IF_OPER_UP,
					   .mac = {2, 0, 0, 0, 0, 1},
					   .mac_bytes = 6,
					   .mtu_bytes = 1500};
	bed.link[2] = bed.link[1];
	bed.link[2].ifindex = 4;
	bed.link[2].below = 3;
	strcpy(bed.link[2].name, "lan0.5");
	strcpy(bed.link[2].kind, "vlan");
	bed.link[3] = bed.link[1];
	bed.link[3].ifindex = 9;
	strcpy(bed.link[3].name, "mgmt0");
	bed.link[3].kind[0] = '\0';
	bed.link[3].count = (struct rtnl_link_stats64){.rx_bytes = 1ull << 33,
						       .rx_packets = 20,
						       .multicast = 3,
						       .rx_dropped = 4,
						       .rx_missed_errors = 5,
						       .rx_errors = 6,
						       .tx_bytes = 7,
						       .tx_packets = 8,
						       .tx_dropped = 9,
						       .tx_errors = 10};
	return 0;
}

static int
down(void **state)
{
	free(known.row);
	return 0;
}

static const struct snmp_row *
row(uint32_t ifindex)
{
	const struct snmp_row *found = row_find(&known, ifindex);

	assert_non_null(found);
	assert_int_equal(found->link.ifindex, ifindex);
	return found;
}

/* Assert the octets of an object; NULL: there is no such object. */
static void
value(unsigned int of, unsigned int column, uint32_t ifindex, const char *want)
{
	char out[400] = "";
	bool is = snmp_value(&known, of, column, row(ifindex), out, sizeof(out));

	assert_int_equal(is, want != NULL);
	if (want != NULL)
		assert_string_equal(out, want);
}

static void
refresh(void)
{
	assert_int_equal(snmp_table_refresh(&known), 0);
}

/* --- tests ---------------------------------------------------------------------------- */

static void
rows_are_found_by_their_number(void **state)
{
	refresh();
	assert_int_equal(known.n, 4);
	for (unsigned int i = 0; i < 4; i++)
		(void)row(bed.link[i].ifindex);
	for (uint32_t none = 0; none < 12; none++)
		if (none != 1 && none != 3 && none != 4 && none != 9)
			assert_null(row_find(&known, none));
	assert_null(row_find(&(struct snmp_table){0}, 1));
}

static void
an_interface_of_the_kernel_has_its_counters(void **state)
{
	refresh();
	value(2, 1, 9, "integer\n9\n");
	value(2, 2, 9, "string\nmgmt0\n");
	value(2, 3, 9, "integer\n6\n");
	value(2, 4, 9, "integer\n1500\n");
	value(2, 5, 9, "gauge\n2500000000\n");
	value(2, 6, 9, "octet\n02 00 00 00 00 01\n");
	value(2, 6, 1, "string\n\n");
	value(2, 7, 9, "integer\n1\n");
	value(2, 7, 1, "integer\n2\n");
	value(2, 8, 9, "integer\n1\n");
	value(2, 9, 9, "timeticks\n0\n");
	value(2, 10, 9, "counter\n0\n"); /* 32 bits of 2^33 */
	value(2, 11, 9, "counter\n17\n");
	value(2, 12, 9, NULL);
	value(2, 13, 9, "counter\n9\n");
	value(2, 14, 9, "counter\n6\n");
	value(2, 15, 9, NULL);
	value(2, 16, 9, "counter\n7\n");
	value(2, 17, 9, "counter\n8\n");
	value(2, 18, 9, NULL);
	value(2, 19, 9, "counter\n9\n");
	value(2, 20, 9, "counter\n10\n");
	value(2, 21, 9, NULL);
	value(2, 0, 9, NULL);
	assert_int_equal(snmp_columns(2), 20);
	value(31, 1, 9, "string\nmgmt0\n");
	value(31, 2, 9, "counter\n3\n");
	for (unsigned int column = 3; column <= 5; column++)
		value(31, column, 9, NULL);
	value(31, 6, 9, "counter64\n8589934592\n");
	value(31, 7, 9, "counter64\n17\n");
	value(31, 8, 9, "counter64\n3\n");
	value(31, 9, 9, NULL);
	value(31, 10, 9, "counter64\n7\n");
	value(31, 11, 9, "counter64\n8\n");
	value(31, 12, 9, NULL);
	value(31, 13, 9, NULL);
	value(31, 14, 9, "integer\n2\n");
	value(31, 15, 9, "gauge\n2500\n");
	value(31, 16, 9, "integer\n2\n");
	value(31, 17, 9, "integer\n1\n");
	value(31, 17, 1, "integer\n2\n");
	value(31, 18, 9, "string\n\n");
	value(31, 19, 9, "timeticks\n0\n");
	value(31, 20, 9, NULL);
	assert_int_equal(snmp_columns(31), 19);
	/*
	 * There are fewer packets than packets to groups, because a driver may count all
	 * packets later.
	 */
	bed.link[3].count.rx_packets = 2;
	bed.now_s += 1;
	refresh();
	value(31, 7, 9, "counter64\n0\n");
}

static void
a_port_has_the_counters_of_the_dataplane(void **state)
{
	bed.ports =
		"[{\"ifindex\": 3, \"rx_bytes\": 1, \"rx_packets\": 2, \"tx_bytes\": 3, "
		"\"tx_packets\": 4, \"rx_missed\": 5, \"rx_errors\": 6, \"tx_errors\": 7, "
		"\"speed_mbit\": 100000, \"device\": \"0000:03:00.0\", \"promiscuous\": "
		"true}, {\"ifindex\": 77, \"rx_bytes\": 1}]";
	bed.interfaces =
		"[{\"ifindex\": 4, \"rx_bytes\": 11, \"rx_packets\": 12, \"tx_bytes\": "
		"13, \"tx_packets\": 14}, {\"ifindex\": 9}, {\"ifindex\": 78, "
		"\"rx_packets\": 1}]";
	refresh();
	assert_int_equal(bed.n_asked, 3);
	assert_true(row(3)->ours && row(4)->ours && !row(9)->ours && !row(1)->ours);
	value(31, 6, 3, "counter64\n1\n");
	value(31, 7, 3, "counter64\n2\n");
	value(31, 10, 3, "counter64\n3\n");
	value(31, 11, 3, "counter64\n4\n");
	value(2, 13, 3, "counter\n5\n");
	value(2, 14, 3, "counter\n6\n");
	value(2, 19, 3, NULL); /* not counted */
	value(2, 20, 3, "counter\n7\n");
	value(31, 2, 3, NULL);
	value(2, 5, 3, "gauge\n4294967295\n");
	value(31, 15, 3, "gauge\n100000\n");
	value(31, 16, 3, "integer\n1\n");
	value(31, 17, 3, "integer\n1\n");
	value(31, 19, 3, "timeticks\n60000\n"); /* 1000 - 300 - SNMPD_AT_S */
	value(31, 6, 4, "counter64\n11\n");
	value(31, 7, 4, "counter64\n12\n");
	value(31, 10, 4, "counter64\n13\n");
	value(31, 11, 4, "counter64\n14\n");
	value(2, 13, 4, NULL);
	value(31, 15, 4, "gauge\n100000\n"); /* the speed of the port that carries it */
	value(31, 17, 4, "integer\n2\n");
	value(31, 6, 9, "counter64\n8589934592\n");
	/* Only a NIC has a connector. */
	bed.ports = "[{\"ifindex\": 3, \"speed_mbit\": 100000, \"device\": "
		    "\"net_af_packet,iface=a:b\"}]";
	bed.interfaces = "[]";
	bed.now_s += 1;
	refresh();
	value(31, 17, 3, "integer\n2\n");
	value(31, 15, 4, "gauge\n10\n"); /* the kernel knows its speed */
	value(31, 16, 3, "integer\n2\n");
}

static void
the_start_of_the_daemon_does_not_jitter(void **state)
{
	refresh();
	assert_int_equal(known.discontinuity, 60000);
	/* Two seconds are within the error of the uptime, which has whole seconds. */
	bed.now_s += 2;
	refresh();
	assert_int_equal(known.discontinuity, 60000);
	bed.now_s += 1;
	refresh();
	assert_int_equal(known.discontinuity, 60300);
	bed.version = "[{\"uptime_s\": 305}]";
	refresh();
	bed.now_s += 1;
	refresh();
	assert_int_equal(known.discontinuity, 59900);
	/* A daemon that is older than snmpd. */
	bed.version = "[{\"uptime_s\": 950}]";
	bed.now_s += 1;
	refresh();
	assert_int_equal(known.discontinuity, 0);
}

/* RFC 2863, ifCounterDiscontinuityTime. */
static void
smaller_counters_are_a_discontinuity_of_their_interface(void **state)
{
	static const char *const counter[] = {"rx_bytes",  "tx_bytes",  "tx_packets",
					      "rx_missed", "rx_errors", "tx_errors"};
	char rows[200], want[40];

	refresh();
	for (unsigned int i = 0; i < sizeof(counter) / sizeof(*counter); i++) {
		for (int n = 5; n >= 4; n--) {
			snprintf(rows, sizeof(rows), "[{\"ifindex\": 3, \"%s\": %d}]",
				 counter[i], n);
			bed.ports = rows;
			bed.now_s += 10;
			refresh();
		}
		snprintf(want, sizeof(want), "timeticks\n%d\n",
			 (int)(bed.now_s - SNMPD_AT_S) * 100);
		value(31, 19, 3, want);
		/* Without an answer there is nothing to compare. */
		bed.ports = NULL;
		bed.now_s += 10;
		refresh();
		value(31, 19, 3, want);
	}
	value(31, 19, 9, "timeticks\n0\n");
	/* An interface of the kernel: a bond that loses a member. */
	bed.link[3].count.rx_bytes--;
	bed.now_s = 2100;
	refresh();
	value(31, 19, 9, "timeticks\n200000\n");
	/* An interface with the same name and another ifIndex is a new interface. */
	bed.link[3].ifindex = 10;
	bed.link[3].count.rx_bytes = 0;
	bed.now_s = 2200;
	refresh();
	value(31, 19, 10, "timeticks\n0\n");
}

static void
without_a_daemon_ports_have_no_counters(void **state)
{
	bed.version = NULL;
	bed.no_access = ECONNREFUSED;
	refresh();
	assert_int_equal(bed.n_asked, 1);
	/* A TAP and a VLAN on it are ours. A NIC is not. */
	assert_true(row(3)->ours && row(4)->ours && !row(9)->ours && !row(1)->ours);
	value(31, 6, 3, NULL);
	value(2, 20, 4, NULL);
	value(31, 6, 9, "counter64\n8589934592\n");
	/*
	 * The daemon does not list the TAP as a port, so the TAP is that of another
	 * program.
	 */
	bed.version = "[{\"uptime_s\": 1}]";
	bed.now_s += 1;
	refresh();
	assert_false(row(3)->ours);
	bed.version = NULL;
	bed.now_s += 1;
	refresh();
	assert_false(row(3)->ours || row(4)->ours);
	value(31, 6, 3, "counter64\n0\n");
	/* Any of the three requests may fail. */
	bed.version = "[{\"uptime_s\": 1}]";
	bed.ports = "[{\"ifindex\": 3}]";
	bed.now_s += 1;
	refresh();
	assert_true(row(3)->ours);
	bed.ports = NULL;
	bed.now_s += 1;
	refresh();
	value(31, 6, 3, NULL);
}

static void
a_silent_daemon_is_not_asked_for_ten_seconds(void **state)
{
	bed.version = NULL;
	bed.silence_s = 1;
	refresh();
	assert_int_equal(bed.n_asked, 1);
	bed.now_s += 9.5;
	refresh();
	assert_int_equal(bed.n_asked, 1);
	bed.now_s += 1;
	refresh();
	assert_int_equal(bed.n_asked, 2);
	/* A daemon that refuses at once is asked each time. */
	bed.silence_s = 0.9;
	bed.now_s += 20;
	refresh();
	bed.now_s += 1;
	refresh();
	assert_int_equal(bed.n_asked, 4);
}

static void
rows_are_a_second_old_at_most(void **state)
{
	refresh();
	bed.link[3].mtu_bytes = 9000;
	bed.now_s += 0.9;
	refresh();
	value(2, 4, 9, "integer\n1500\n");
	bed.now_s += 0.2;
	refresh();
	value(2, 4, 9, "integer\n9000\n");
	/* The kernel does not answer: the table is valid for ten seconds. */
	bed.n_link = -EINTR;
	bed.now_s += 2;
	refresh();
	value(2, 4, 9, "integer\n9000\n");
	bed.n_link = 3;
	bed.now_s += 0.9;
	refresh();
	assert_non_null(row_find(&known, 9));
	bed.n_link = -EINTR;
	bed.now_s += 8;
	assert_int_equal(snmp_table_refresh(&known), -EINTR);
	value(2, 4, 9, "integer\n9000\n");
	bed.n_link = 3;
	refresh();
	assert_null(row_find(&known, 9));
}

static void
the_time_of_a_change_is_that_of_state_flags_or_birth(void **state)
{
	bed.n_link = 3;
	refresh();
	bed.n_link = 4; /* a new interface */
	bed.link[1].operstate = IF_OPER_DOWN;
	bed.link[2].flags |= IFF_PROMISC; /* it is no part of the state */
	bed.now_s = 1100;
	refresh();
	value(2, 9, 9, "timeticks\n100000\n");
	value(2, 9, 3, "timeticks\n100000\n");
	value(2, 9, 4, "timeticks\n0\n");
	value(2, 9, 1, "timeticks\n0\n");
	bed.link[2].flags &= ~(unsigned int)IFF_RUNNING;
	bed.link[0].flags |= IFF_UP;
	bed.now_s = 1200.5;
	refresh();
	value(2, 9, 9, "timeticks\n100000\n");
	value(2, 9, 4, "timeticks\n110050\n");
	value(2, 9, 1, "timeticks\n110050\n");
}

static void
types_and_states_have_their_numbers(void **state)
{
	static const struct {
		const char *kind;
		uint16_t hardware;
		unsigned int type;
	} type[] = {{"", ARPHRD_LOOPBACK, 24},     {"vlan", ARPHRD_ETHER, 135},
		    {"bridge", ARPHRD_ETHER, 209}, {"bond", ARPHRD_ETHER, 161},
		    {"", ARPHRD_PPP, 23},          {"ipip", ARPHRD_TUNNEL, 131},
		    {"", ARPHRD_TUNNEL6, 131},     {"sit", ARPHRD_SIT, 131},
		    {"gre", ARPHRD_IPGRE, 131},    {"", ARPHRD_IP6GRE, 131},
		    {"tun", ARPHRD_ETHER, 6},      {"tun", ARPHRD_NONE, 1}};
	static const struct {
		uint8_t operstate;
		unsigned int flags, status;
	} oper[] = {{IF_OPER_NOTPRESENT, 0, 6},
		    {IF_OPER_DOWN, IFF_UP | IFF_RUNNING, 2},
		    {IF_OPER_LOWERLAYERDOWN, 0, 7},
		    {IF_OPER_TESTING, 0, 3},
		    {IF_OPER_DORMANT, 0, 5},
		    {IF_OPER_UP, 0, 1},
		    {IF_OPER_UNKNOWN, IFF_UP | IFF_RUNNING, 1},
		    {IF_OPER_UNKNOWN, IFF_UP, 2},
		    {IF_OPER_UNKNOWN, IFF_RUNNING, 2},
		    {IF_OPER_UP + 1, IFF_UP | IFF_RUNNING, 1}};
	char want[40];

	for (unsigned int i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
		strcpy(bed.link[3].kind, type[i].kind);
		bed.link[3].hardware = type[i].hardware;
		bed.now_s += 1;
		refresh();
		snprintf(want, sizeof(want), "integer\n%u\n", type[i].type);
		value(2, 3, 9, want);
	}
	for (unsigned int i = 0; i < sizeof(oper) / sizeof(oper[0]); i++) {
		bed.link[3].operstate = oper[i].operstate;
		bed.link[3].flags = oper[i].flags;
		bed.now_s += 1;
		refresh();
		snprintf(want, sizeof(want), "integer\n%u\n", oper[i].status);
		value(2, 8, 9, want);
	}
}

static void
texts_do_not_end_the_line(void **state)
{
	strcpy(bed.link[3].name, "a\nb\x7f");
	strcpy(bed.link[3].alias, "\rto isp\x1b");
	refresh();
	value(2, 2, 9, "string\na?b?\n");
	value(31, 18, 9, "string\n?to isp?\n");
}

static void
no_access_is_logged_once(void **state)
{
	char path[] = "/tmp/test_snmp.XXXXXX", text[400] = "";
	int fd = mkstemp(path), terminal = dup(2);

	bed.version = NULL;
	bed.no_access = ENOENT;
	dup2(fd, 2);
	refresh();
	bed.no_access = EACCES;
	for (unsigned int i = 0; i < 2; i++) {
		bed.now_s += 1;
		refresh();
	}
	dup2(terminal, 2);
	close(terminal);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	unlink(path);
	assert_string_equal(
		text, "fpmctl: no access to /run/control.sock: ports have no counters "
		      "until the user of snmpd is in its group\n");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
	static const struct CMUnitTest tests[] = {
		TEST(rows_are_found_by_their_number),
		TEST(an_interface_of_the_kernel_has_its_counters),
		TEST(a_port_has_the_counters_of_the_dataplane),
		TEST(the_start_of_the_daemon_does_not_jitter),
		TEST(smaller_counters_are_a_discontinuity_of_their_interface),
		TEST(without_a_daemon_ports_have_no_counters),
		TEST(a_silent_daemon_is_not_asked_for_ten_seconds),
		TEST(rows_are_a_second_old_at_most),
		TEST(the_time_of_a_change_is_that_of_state_flags_or_birth),
		TEST(types_and_states_have_their_numbers),
		TEST(texts_do_not_end_the_line),
		TEST(no_access_is_logged_once),
	};
	char path[64], text[300];
	int failed;

	if (root_make() < 0)
		return 1;
	/* The name of a process may have any octet; field 22 is the time of its start. */
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
	snprintf(text, sizeof(text),
		 "%d (a) R 1 (b) S 1 2 3 4 -1 5 6 7 8 9 10 11 12 13 14 15 16 0 %ld 17\n",
		 (int)getppid(), SNMPD_AT_S * sysconf(_SC_CLK_TCK));
	file_write(path, text);
	file_write("/sys/class/net/mgmt0/speed", "2500\n");
	file_write("/sys/class/net/mgmt0/device/vendor", "0x8086\n");
	file_write("/sys/class/net/lan0/speed", "-1\n");
	file_write("/sys/class/net/lan0.5/speed", "10\n");
	failed = cmocka_run_group_tests_name("snmp_table", tests, NULL, NULL);
	return root_remove() < 0 ? 1 : failed;
}
