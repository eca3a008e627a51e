/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl device`: the NIC that a word names, refusals before the first NIC is moved, and
 * the rows. The test plays the machine and the daemon.
 *
 * link: fpm-dataplane/ctl/cmd_device.c fpm-dataplane/ctl/cli.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/json_row.c fpm-dataplane/pci/devargs.c fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "pci/device.h"

#define A "0000:03:00.0"
#define B "0000:03:00.1"
#define C "0000:04:00.0"

static struct {
	struct device nic[3];
	struct device_use use; /* of each interface */
	const char *ports;     /* the daemon's ports as JSON; NULL: no daemon runs */
	uid_t uid;
	bool is_open, group_is_held;
	int check_rc, move_rc;  /* results of the checks, of the move that fails */
	unsigned int at;        /* index of the NIC that check_rc is about */
	unsigned int fails;     /* the move that fails, from 1; 0: none */
	unsigned int n_checked; /* NICs that were checked before the first move */
	const char *reason;     /* of a refusal */
	bool forced;
	char moved[128];
	char out[4096], err[4096];
} t;

/* --- functions that this program replaces --------------------------------------------- */

uid_t
geteuid(void)
{
	return t.uid;
}

int
device_read(const char *root, const char *address, struct device *d)
{
	for (unsigned int i = 0; i < 3; i++)
		if (strstr(address, t.nic[i].address + 5) != NULL) {
			*d = t.nic[i];
			return 0;
		}
	return -ENODEV;
}

void
device_each(const char *root, void (*each)(const struct device *d, void *ctx), void *ctx)
{
	for (unsigned int i = 0; i < 3 && t.nic[i].address[0] != '\0'; i++)
		each(&t.nic[i], ctx);
}

bool
device_serves_dpdk(const char *driver)
{
	return strcmp(driver, "vfio-pci") == 0;
}

bool
device_is_open(const char *root, const struct device *d)
{
	return t.is_open;
}

bool
device_group_is_held(const char *root, const struct device *d, struct device *by)
{
	*by = t.nic[1];
	return t.group_is_held;
}

void
device_use_of(const char *ifname, struct device_use *use)
{
	*use = t.use;
}

static int
move(struct device *d, const char *driver, char *why, size_t why_size)
{
	if (t.fails > 0 && --t.fails == 0) {
		snprintf(why, why_size, "%s", t.reason);
		return t.move_rc;
	}
	snprintf(d->driver, sizeof(d->driver), "%s", driver);
	strcat(strcat(t.moved, d->address), " ");
	return 0;
}

int
device_bind(const char *root, struct device *d, bool force, char *why, size_t why_size)
{
	t.forced = force;
	return move(d, "vfio-pci", why, why_size);
}

int
device_unbind(const char *root, struct device *d, char *why, size_t why_size)
{
	return move(d, "ice", why, why_size);
}

int
device_bind_check(const char *root, const struct device *d, unsigned int n, bool force,
		  unsigned int *at, char *why, size_t why_size)
{
	t.n_checked = n;
	*at = t.at;
	snprintf(why, why_size, "%s", t.reason);
	return force && t.check_rc == -EBUSY ? 0 : t.check_rc;
}

int
device_unbind_check(const char *root, const struct device *d, char *why, size_t why_size)
{
	snprintf(why, why_size, "%s", t.reason);
	return t.n_checked++ == t.at ? t.check_rc : 0;
}

bool
conn_is_there(const char *path)
{
	return t.ports != NULL;
}

int
conn_fetch(const char *path, json_t *request, json_t *rows)
{
	json_t *found = json_loads(t.ports, 0, NULL);

	json_decref(request);
	assert_non_null(found);
	json_array_extend(rows, found);
	json_decref(found);
	return CTL_OK;
}

/* --- rig ------------------------------------------------------------------------------ */

static int
setup(void **state)
{
	static const char *const address[] = {A, B, C}, *const ifname[] = {"eth0", "eth1",
									   ""};

	memset(&t, 0, sizeof(t));
	t.reason = "it is so";
	for (unsigned int i = 0; i < 3; i++) {
		t.nic[i] = (struct device){.vendor = 0x8086, .id = 0x1592, .node = -1};
		t.nic[i].group = (int)i + 7;
		snprintf(t.nic[i].address, sizeof(t.nic[i].address), "%s", address[i]);
		snprintf(t.nic[i].ifname, sizeof(t.nic[i].ifname), "%s", ifname[i]);
		snprintf(t.nic[i].driver, sizeof(t.nic[i].driver), "%s",
			 i < 2 ? "ice" : "vfio-pci");
	}
	return 0;
}

static int
fpmctl_with(struct options opt, const char *text)
{
	FILE *out = stdout, *err = stderr;
	char copy[256], *word[16], *rest;
	int n = 0, rc;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = strtok_r(copy, " ", &rest); at != NULL;
	     at = strtok_r(NULL, " ", &rest))
		word[n++] = at;
	t.moved[0] = t.out[0] = t.err[0] = '\0';
	t.n_checked = 0;
	stdout = fmemopen(t.out, sizeof(t.out), "w");
	stderr = fmemopen(t.err, sizeof(t.err), "w");
	rc = cmd_device.run(&opt, n, word);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	return rc;
}

static int
fpmctl(const char *text)
{
	return fpmctl_with((struct options){0}, text);
}

static void
refused(const char *text, const char *why)
{
	char line[400];

	assert_int_equal(fpmctl(text), CTL_USAGE);
	snprintf(line, sizeof(line), "fpmctl: %s\n", why);
	assert_string_equal(t.err, line);
	assert_string_equal(t.moved, "");
	assert_string_equal(t.out, "");
}

/* --- tests ---------------------------------------------------------------------------- */

static void
a_nic_is_named_by_its_address_or_its_interface(void **state)
{
	assert_int_equal(fpmctl("bind eth1 03:00.0"), CTL_OK);
	assert_string_equal(t.moved, B " " A " ");
	assert_string_equal(t.out, B ": driver vfio-pci, before ice\n" A
				     ": driver vfio-pci, before ice\n");
	assert_string_equal(t.err, "");
	assert_int_equal(t.n_checked, 2);
	assert_false(t.forced);
	assert_int_equal(fpmctl("unbind " C), CTL_OK);
	assert_string_equal(t.moved, C " ");
	assert_string_equal(t.out, C ": driver ice, before vfio-pci\n");
	refused("bind 09:00.0", "there is no PCI device 0000:09:00.0; `fpmctl device list` "
				"lists them");
	refused("bind eth9",
		"'eth9' is neither a PCI address (0000:03:00.0) nor the interface of a PCI "
		"device; `fpmctl device list` lists them");
	refused("bind eth0 eth1 " A, A " is named twice");
}

static void
a_nic_of_a_port_stays(void **state)
{
	t.ports = "[{\"name\": \"wan0\", \"device\": \"net_bonding0,mode=4,member=" A
		  ",member=" C "\"}, {\"name\": \"lan0\", \"device\": "
		  "\"net_af_packet,iface=eth1,qpairs=1\"}]";
	refused("bind " A,
		A " is port wan0 of the running dataplane: `fpmctl port del wan0` first");
	refused("bind " B,
		B " is port lan0 of the running dataplane: `fpmctl port del lan0` first");
	refused("unbind " C,
		C " is port wan0 of the running dataplane: `fpmctl port del wan0` first");
	/* C has the driver vfio-pci already. */
	assert_int_equal(fpmctl("bind " C), CTL_OK);
	t.ports = "[{\"name\": \"lan0\", \"device\": \"net_af_packet,iface=eth10\"}, "
		  "{\"name\": \"wan0\", \"device\": \"net_af_packet,iface=eth\"}]";
	assert_int_equal(fpmctl("bind " B), CTL_OK);
	t.ports = "[{\"name\": \"lan0\", \"device\": \"net_af_packet,iface=eth7\"}, "
		  "{\"name\": \"wan0\", \"device\": \"net_af_packet,iface=\"}]";
	assert_int_equal(fpmctl("bind " B), CTL_OK);
	assert_int_equal(fpmctl("unbind " C), CTL_OK);
	t.ports = "[{\"name\": \"lan0\", \"device\": \"net_af_packet,iface=eth1\"}]";
	refused("bind " B,
		B " is port lan0 of the running dataplane: `fpmctl port del lan0` first");
}

static void
all_nics_are_checked_before_the_first_is_moved(void **state)
{
	t.at = 1;
	t.check_rc = -EBUSY;
	refused("bind " A " " B, B ": it is so; or --force");
	assert_int_equal(t.n_checked, 2);
	refused("unbind " A " " B, B ": it is so");
	assert_int_equal(t.n_checked, 2);
	t.at = 0;
	refused("unbind " A " " B, A ": it is so");
	t.at = 1;
	assert_int_equal(fpmctl_with((struct options){.force = true}, "bind " A), CTL_OK);
	assert_true(t.forced);
	t.check_rc = -EIO;
	assert_int_equal(fpmctl("bind " A " " B), CTL_FAILED);
	assert_string_equal(t.err, "fpmctl: " B ": it is so\n");
	/* The reason may have the name of an interface, which may have any octets. */
	t.reason = "\x1b[2J is used";
	assert_int_equal(fpmctl("bind " A " " B), CTL_FAILED);
	assert_null(strchr(t.err, '\x1b'));
	assert_non_null(strstr(t.err, "[2J is used\n"));
}

static void
an_error_names_the_nics_that_were_moved_before(void **state)
{
	t.fails = 2;
	t.move_rc = -EIO;
	assert_int_equal(fpmctl("bind " A " " B), CTL_FAILED);
	assert_string_equal(t.moved, A " ");
	assert_string_equal(t.out, A ": driver vfio-pci, before ice\n");
	assert_string_equal(t.err, "fpmctl: the driver of " A
				   " was changed before the error, and stays changed\n"
				   "fpmctl: " B ": it is so\n");
}

static void
a_nic_that_shares_its_group_is_told(void **state)
{
	t.group_is_held = true;
	assert_int_equal(fpmctl("bind " A), CTL_OK);
	assert_string_equal(t.err,
			    "fpmctl: " A " shares IOMMU group 7 with " B
			    ", which has driver ice: no process can use either before "
			    "both have vfio-pci\n");
	assert_int_equal(fpmctl("unbind " A), CTL_OK);
	assert_string_equal(t.err, "");
}

static void
rows_of_moved_nics_are_json(void **state)
{
	json_t *rows;

	t.nic[0].driver[0] = '\0';
	assert_int_equal(fpmctl_with((struct options){.json = true}, "bind " A), CTL_OK);
	rows = json_loads(t.out, 0, NULL);
	assert_non_null(rows);
	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "address")), A);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 0), "driver")),
		"vfio-pci");
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "before")));
	json_decref(rows);
	assert_int_equal(fpmctl("bind " A), CTL_OK);
	assert_string_equal(t.out, A ": driver vfio-pci, before -\n");
}

static void
words_and_rights_are_checked(void **state)
{
	assert_int_equal(fpmctl(""), CTL_USAGE);
	assert_non_null(strstr(t.err, "device needs list, bind or unbind"));
	assert_int_equal(fpmctl("bind"), CTL_USAGE);
	assert_non_null(strstr(t.err, "device bind needs a DEVICE"));
	assert_int_equal(fpmctl("unbind"), CTL_USAGE);
	assert_non_null(strstr(t.err, "device unbind needs a DEVICE"));
	assert_int_equal(fpmctl("lsit"), CTL_USAGE);
	assert_non_null(strstr(t.err, "'lsit'"));
	assert_int_equal(fpmctl("list all"), CTL_USAGE);
	assert_non_null(strstr(t.err, "'all'"));
	assert_int_equal(fpmctl_with((struct options){.force = true}, "unbind " A),
			 CTL_USAGE);
	assert_non_null(strstr(t.err, "--force is for device bind"));
	t.uid = 1000;
	refused("bind " A, "only root may give a device to another driver");
	refused("unbind " A, "only root may give a device to another driver");
	assert_int_equal(fpmctl("list"), CTL_OK);
}

/* Return the last column of the line of A in the list. */
static const char *
use_shown(void)
{
	static char use[64];
	const char *line;

	assert_int_equal(fpmctl("list"), CTL_OK);
	line = strstr(t.out, "\n" A);
	assert_non_null(line);
	/* ADDRESS, ID, DRIVER, INTERFACE, NODE, GROUP */
	snprintf(use, sizeof(use), "%.*s", (int)strcspn(line + 62, "\n"), line + 62);
	return use;
}

static void
the_list_shows_the_most_important_use(void **state)
{
	assert_string_equal(use_shown(), "-");
	assert_non_null(
		strstr(t.out, A " 8086:1592 ice        eth0               -     7 -\n"));
	assert_non_null(
		strstr(t.out, C " 8086:1592 vfio-pci   -                  -     9 -\n"));
	t.is_open = true;
	assert_string_equal(use_shown(), "another process");
	t.nic[0].elsewhere = true;
	assert_string_equal(use_shown(), "other namespace");
	strcpy(t.use.upper, "br0");
	assert_string_equal(use_shown(), "br0");
	t.use.address = true;
	assert_string_equal(use_shown(), "an address");
	t.use.default_route = true;
	assert_string_equal(use_shown(), "default route");
	t.use.ssh = true;
	assert_string_equal(use_shown(), "SSH session");
	t.ports = "[{\"name\": \"wan0\", \"device\": \"03:00.0\"}]";
	assert_string_equal(use_shown(), "port wan0");
	t.nic[0].node = 1;
	(void)use_shown();
	assert_non_null(strstr(t.out, " eth0               1     7 port wan0\n"));
	t.nic[0].address[0] = '\0';
	assert_int_equal(fpmctl("list"), CTL_NOT_FOUND);
	assert_string_equal(t.out, "no PCI network devices\n");
}

static const char *
completed(int n, const char *first)
{
	char *word[] = {(char *)(uintptr_t)first};
	FILE *to = fmemopen(t.out, sizeof(t.out), "w");

	cmd_device.complete(to, n, word);
	fclose(to);
	return t.out;
}

static void
addresses_complete_bind_and_unbind(void **state)
{
	assert_string_equal(completed(0, NULL), "list bind unbind\n");
	assert_string_equal(completed(1, "bind"), A " " B " " C " \n");
	assert_string_equal(completed(1, "unbind"), A " " B " " C " \n");
	t.out[0] = '\0';
	assert_string_equal(completed(1, "list"), "");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(a_nic_is_named_by_its_address_or_its_interface),
		TEST(a_nic_of_a_port_stays),
		TEST(all_nics_are_checked_before_the_first_is_moved),
		TEST(an_error_names_the_nics_that_were_moved_before),
		TEST(a_nic_that_shares_its_group_is_told),
		TEST(rows_of_moved_nics_are_json),
		TEST(words_and_rights_are_checked),
		TEST(the_list_shows_the_most_important_use),
		TEST(addresses_complete_bind_and_unbind),
	};

	return cmocka_run_group_tests_name("ctl_device", tests, NULL, NULL);
}
