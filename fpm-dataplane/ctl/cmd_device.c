/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl device`: list NICs with their drivers, and change the driver of a NIC. If the
 * daemon runs, the command asks it only for its ports.
 */
#include "pci/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/text.h"

#define PCI_IDS   "/usr/share/misc/pci.ids"
#define MODEL_COL 13 /* column of the model */

struct listing {
	const json_t *ports; /* ports of the daemon */
	json_t *rows;
};

static void
device_help(FILE *out)
{
	fputs("      list     list PCI network devices, with driver and use\n"
	      "      bind     give DEVICE to vfio-pci, for DPDK. The systemd unit does so "
	      "at\n"
	      "               each start with the devices of the configuration\n"
	      "      unbind   give DEVICE to the kernel's driver\n"
	      "      --force  bind: take the device although the machine uses it\n"
	      "      DEVICE is an address, 0000:03:00.0 or 03:00.0, or the kernel's "
	      "interface.\n"
	      "      A port of the running dataplane is refused. bind also refuses a "
	      "device\n"
	      "      with an SSH session, the default route or an address.\n",
	      out);
}

/* --- ports of the daemon -------------------------------------------------------------- */

/*
 * Get the ports of the daemon. Returns an exit code; without a daemon there are no ports.
 */
static int
ports_ask(const char *socket, json_t *rows)
{
	if (!conn_is_there(socket))
		return CTL_OK;
	return conn_fetch(socket, json_pack("{s:s}", "show", "ports"), rows);
}

/* Return true if the devargs (net_af_packet and similar) name the interface. */
static bool
devargs_name_interface(const char *devargs, const char *ifname)
{
	const char *p = strstr(devargs, "iface=");
	size_t len = strlen(ifname);

	return p != NULL && len > 0 && strncmp(p + 6, ifname, len) == 0 &&
	       (p[6 + len] == '\0' || p[6 + len] == ',');
}

/* Return the name of the port that has the device; "": none. */
static const char *
device_port(const json_t *ports, const struct device *d)
{
	char nic[BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN];
	const json_t *port;
	size_t i;

	json_array_foreach (ports, i, port) {
		const char *devargs = row_str(port, "device");
		unsigned int n = device_addresses(devargs, nic);
		bool is = devargs_name_interface(devargs, d->ifname);

		while (n > 0)
			is |= strcmp(nic[--n], d->address) == 0;
		if (is)
			return row_str(port, "name");
	}
	return "";
}

/* --- list ----------------------------------------------------------------------------- */

/* Return "Vendor Model" from pci.ids, which need not be installed; "": unknown. */
static void
device_model(const struct device *d, char *buf, size_t size)
{
	FILE *f = fopen(PCI_IDS, "re");
	char line[256];
	unsigned int vendor = 0, id;
	int at;

	buf[0] = '\0';
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		at = 0;
		if (line[0] != '\t' && sscanf(line, "%4x  %n", &vendor, &at) == 1 &&
		    at > 0 && vendor == d->vendor)
			snprintf(buf, size, "%s", line + at);
		if (vendor != d->vendor || line[0] != '\t' || line[1] == '\t')
			continue;
		if (sscanf(line, "\t%4x  %n", &id, &at) == 1 && at > 0 && id == d->id) {
			size_t n = strlen(buf);

			snprintf(buf + n, size - n, " %s", line + at);
			break;
		}
	}
	if (f != NULL)
		fclose(f);
}

static void
listing_add(const struct device *d, void *ctx)
{
	struct listing *list = ctx;
	struct device_use use = {0};
	char vendor[8], id[8], model[160];
	json_t *row;

	if (d->ifname[0] != '\0')
		device_use_of(d->ifname, &use);
	snprintf(vendor, sizeof(vendor), "%04x", d->vendor & 0xffff);
	snprintf(id, sizeof(id), "%04x", d->id & 0xffff);
	device_model(d, model, sizeof(model));
	row = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "address", d->address, "vendor",
			vendor, "device", id, "model", text_or_null(model), "driver",
			text_or_null(d->driver), "interface", text_or_null(d->ifname));
	json_object_set_new(row, "node", number_or_null(d->node));
	json_object_set_new(row, "iommu_group", number_or_null(d->group));
	json_object_set_new(row, "port", text_or_null(device_port(list->ports, d)));
	json_object_set_new(row, "ssh", json_boolean(use.ssh));
	json_object_set_new(row, "default_route", json_boolean(use.default_route));
	json_object_set_new(row, "has_address", json_boolean(use.address));
	json_object_set_new(row, "part_of", text_or_null(use.upper));
	json_object_set_new(row, "elsewhere", json_boolean(d->elsewhere));
	json_object_set_new(row, "open", json_boolean(device_is_open("", d)));
	json_array_append_new(list->rows, row);
}

/* Print the most important use of a device. */
static void
use_print(const json_t *row)
{
	if (row_has(row, "port"))
		printf("port %s", row_str(row, "port"));
	else if (row_true(row, "ssh"))
		printf("SSH session");
	else if (row_true(row, "default_route"))
		printf("default route");
	else if (row_true(row, "has_address"))
		printf("an address");
	else if (row_has(row, "part_of"))
		printf("%s", row_str(row, "part_of"));
	else if (row_true(row, "elsewhere"))
		printf("other namespace");
	else if (row_true(row, "open"))
		printf("another process");
	else
		putchar('-');
	putchar('\n');
}

static const char *
text_or_dash(const char *text)
{
	return text[0] != '\0' ? text : "-";
}

static void
number_print(const json_t *row, const char *key, int width)
{
	if (row_has(row, key))
		printf("%*lld ", width, row_int(row, key));
	else
		printf("%*s ", width, "-");
}

static void
listing_print(const json_t *rows)
{
	const json_t *row;
	size_t i;

	printf("%-12s %-9s %-10s %-15s %4s %5s %s\n", "ADDRESS", "ID", "DRIVER",
	       "INTERFACE", "NODE", "GROUP", "USED BY");
	json_array_foreach (rows, i, row) {
		printf("%-12s %s:%s %-10s %-15s ", row_str(row, "address"),
		       row_str(row, "vendor"), row_str(row, "device"),
		       text_or_dash(row_str(row, "driver")),
		       text_or_dash(row_str(row, "interface")));
		number_print(row, "node", 4);
		number_print(row, "iommu_group", 5);
		use_print(row);
		if (row_has(row, "model"))
			line_print(MODEL_COL, "%*s%s", MODEL_COL, "",
				   row_str(row, "model"));
	}
}

static int
device_list(bool json, const json_t *ports)
{
	struct listing list = {.ports = ports, .rows = json_array()};
	bool none;

	device_each("", listing_add, &list);
	none = json_array_size(list.rows) == 0;
	if (json) {
		json_print(list.rows);
	} else if (none) {
		puts("no PCI network devices");
	} else {
		rows_harmless(list.rows);
		listing_print(list.rows);
	}
	json_decref(list.rows);
	return none ? CTL_NOT_FOUND : CTL_OK;
}

static void
address_print(const struct device *d, void *ctx)
{
	fprintf(ctx, "%s ", d->address);
}

static void
device_complete(FILE *out, int n, char **word)
{
	if (n == 0)
		fputs("list bind unbind\n", out);
	if (n == 0 || strcmp(word[0], "list") == 0)
		return;
	device_each("", address_print, out);
	fputc('\n', out);
}

/* --- bind and unbind ------------------------------------------------------------------ */

struct search {
	const char *ifname;
	struct device *found;
};

static void
search_look(const struct device *d, void *ctx)
{
	struct search *s = ctx;

	if (strcmp(d->ifname, s->ifname) == 0)
		*s->found = *d;
}

/* Find a device by its address or interface. Returns an exit code. */
static int
device_find(const char *word, struct device *d)
{
	struct search s = {.ifname = word, .found = d};
	char address[DEVICE_ADDRESS_STRLEN];

	*d = (struct device){0};
	if (device_address(word, address)) {
		if (device_read("", address, d) == 0)
			return CTL_OK;
		fprintf(stderr,
			"fpmctl: there is no PCI device %s; `fpmctl device list` lists "
			"them\n",
			address);
		return CTL_USAGE;
	}
	if (word[0] != '\0')
		device_each("", search_look, &s);
	if (d->address[0] != '\0')
		return CTL_OK;
	fprintf(stderr,
		"fpmctl: '%s' is neither a PCI address (0000:03:00.0) nor the interface of "
		"a PCI device; `fpmctl device list` lists them\n",
		word);
	return CTL_USAGE;
}

/* Find all devices before the first of them is moved. Returns an exit code. */
static int
devices_find(const json_t *ports, bool to_vfio, int n, char **word, struct device *d)
{
	for (int i = 0; i < n; i++) {
		int rc = device_find(word[i], &d[i]);
		const char *port;

		if (rc != CTL_OK)
			return rc;
		for (int k = 0; k < i; k++)
			if (strcmp(d[k].address, d[i].address) == 0) {
				fprintf(stderr, "fpmctl: %s is named twice\n",
					d[i].address);
				return CTL_USAGE;
			}
		port = device_port(ports, &d[i]);
		if (port[0] == '\0' || (to_vfio && device_serves_dpdk(d[i].driver)))
			continue;
		fprintf(stderr,
			"fpmctl: %s is port %s of the running dataplane: `fpmctl port del "
			"%s` first\n",
			d[i].address, port, port);
		return CTL_USAGE;
	}
	return CTL_OK;
}

/*
 * Print the reason why a device is not moved. The reason may have names of interfaces.
 * Returns an exit code.
 */
static int
device_refuse(const struct device *d, bool to_vfio, int rc, char *why)
{
	log_harmless(why);
	fprintf(stderr, "fpmctl: %s: %s%s\n", d->address, why,
		rc == -EBUSY && to_vfio ? "; or --force" : "");
	return rc == -EIO ? CTL_FAILED : CTL_USAGE;
}

/*
 * Check that every device can be moved, before the first is moved. Returns an exit code.
 */
static int
devices_check(bool to_vfio, bool force, const struct device *d, unsigned int n)
{
	unsigned int at = 0;
	char why[400];
	int rc = 0;

	if (to_vfio)
		rc = device_bind_check("", d, n, force, &at, why, sizeof(why));
	for (unsigned int i = 0; i < n && !to_vfio && rc == 0; i++) {
		at = i;
		rc = device_unbind_check("", &d[i], why, sizeof(why));
	}
	return rc < 0 ? device_refuse(&d[at], to_vfio, rc, why) : CTL_OK;
}

/* Move a device and append a row to `rows`. Returns an exit code. */
static int
device_move(bool to_vfio, bool force, struct device *d, json_t *rows)
{
	char was[sizeof(d->driver)], why[400];
	struct device other;
	int rc;

	snprintf(was, sizeof(was), "%s", d->driver);
	rc = to_vfio ? device_bind("", d, force, why, sizeof(why))
		     : device_unbind("", d, why, sizeof(why));
	if (rc < 0) {
		const json_t *moved;
		size_t i;

		json_array_foreach (rows, i, moved)
			fprintf(stderr,
				"fpmctl: the driver of %s was changed before the error, "
				"and stays changed\n",
				row_str(moved, "address"));
		return device_refuse(d, to_vfio, rc, why);
	}
	json_array_append_new(rows, json_pack("{s:s, s:o, s:o}", "address", d->address,
					      "driver", text_or_null(d->driver), "before",
					      text_or_null(was)));
	if (to_vfio && device_group_is_held("", d, &other))
		fprintf(stderr,
			"fpmctl: %s shares IOMMU group %d with %s, which has driver %s: no "
			"process can use either before both have vfio-pci\n",
			d->address, d->group, other.address, other.driver);
	return CTL_OK;
}

/* Move the devices in `word` to vfio-pci or to the kernel. Returns an exit code. */
static int
devices_move(const struct options *opt, const json_t *ports, bool to_vfio, int n,
	     char **word)
{
	struct device *d = calloc((size_t)n, sizeof(*d));
	json_t *rows = json_array(), *row;
	size_t i;
	int rc;

	if (d == NULL)
		abort();
	rc = devices_find(ports, to_vfio, n, word, d);
	if (rc == CTL_OK)
		rc = devices_check(to_vfio, opt->force, d, (unsigned int)n);
	for (int k = 0; k < n && rc == CTL_OK; k++)
		rc = device_move(to_vfio, opt->force, &d[k], rows);
	if (!opt->json)
		json_array_foreach (rows, i, row)
			printf("%s: driver %s, before %s\n", row_str(row, "address"),
			       text_or_dash(row_str(row, "driver")),
			       text_or_dash(row_str(row, "before")));
	else if (json_array_size(rows) > 0)
		json_print(rows);
	json_decref(rows);
	free(d);
	return rc;
}

static int
device_run(const struct options *opt, int n, char **word)
{
	bool bind = n > 0 && strcmp(word[0], "bind") == 0;
	bool unbind = n > 0 && strcmp(word[0], "unbind") == 0;
	json_t *ports;
	int rc;

	if (n == 0) {
		fputs("fpmctl: device needs list, bind or unbind\n", stderr);
		return cli_usage(&cmd_device);
	}
	if (!bind && !unbind && strcmp(word[0], "list") != 0)
		return cli_unexpected(word[0], &cmd_device);
	if (!bind && !unbind && n > 1)
		return cli_unexpected(word[1], &cmd_device);
	if (!bind && opt->force) {
		fputs("fpmctl: --force is for device bind\n", stderr);
		return cli_usage(&cmd_device);
	}
	if ((bind || unbind) && n == 1) {
		fprintf(stderr, "fpmctl: device %s needs a DEVICE\n", word[0]);
		return cli_usage(&cmd_device);
	}
	if ((bind || unbind) && geteuid() != 0) {
		fputs("fpmctl: only root may give a device to another driver\n", stderr);
		return CTL_USAGE;
	}
	ports = json_array();
	rc = ports_ask(opt->socket, ports);
	if (rc == CTL_OK)
		rc = bind || unbind ? devices_move(opt, ports, bind, n - 1, word + 1)
				    : device_list(opt->json, ports);
	json_decref(ports);
	return rc;
}

const struct command cmd_device = {
	.name = "device",
	.words = "list | bind DEVICE ... | unbind DEVICE ... [--force]",
	.text = "list NICs and their drivers; move NICs to vfio-pci, or to the kernel",
	.run = device_run,
	.options = OPT_JSON | OPT_FORCE,
	.help = device_help,
	.complete = device_complete,
};
