/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_ports: read the names and the devices of ports, and check them against this machine and
 * each other. It reads sysfs and the drivers of interfaces, and changes none of them.
 *                                                                   [main, manage, fpmctl]
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "config/print.h"
#include "config/types.h"
#include "pci/devargs.h"

/* Return true if the kernel's dev_valid_name() accepts the name. */
static bool
ifname_valid(const char *s)
{
	if (s[0] == '\0' || strlen(s) >= IFNAMSIZ || strcmp(s, ".") == 0 ||
	    strcmp(s, "..") == 0)
		return false;
	for (; *s != '\0'; s++)
		if (*s == '/' || *s == ':' || isspace((unsigned char)*s) ||
		    !isprint((unsigned char)*s))
			return false;
	return true;
}

static void
take_tap(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);

	if (text == NULL)
		return;
	/* The kernel replaces "%d" by a number, and sysctl uses "all" and "default". */
	if (!ifname_valid(text) || strchr(text, '%') != NULL)
		cfg_error(c, at, "'%s' is not an interface name; expected %s",
			  cfg_escape(text), key->expected);
	else if (strcmp(text, "lo") == 0 || strcmp(text, "all") == 0 ||
		 strcmp(text, "default") == 0)
		cfg_error(c, at,
			  "'%s' is the kernel's own name; expected another, such as wan0",
			  text);
	else
		snprintf(out, key->size, "%s", text);
}

/* Return true if this machine has the PCI device; else report an error. */
static bool
check_pci(struct cfg *c, const struct cfg_at *at, const char *address)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", address);
	if (access(path, F_OK) == 0)
		return true;
	cfg_error(c, at, "no PCI device %s; expected one that `lspci -D` shows", address);
	return false;
}

/*
 * Return 1 if this network namespace has the interface, else 0. If the kernel cannot be
 * asked, for example without a free descriptor, print an error and return -errno.
 */
static int
ifname_look_up(struct cfg *c, const struct cfg_at *at, const char *name)
{
	struct ifreq ifr = {.ifr_ifindex = 0};
	int fd, rc;

	if (!ifname_valid(name))
		return 0;
	/* if_nametoindex(3) does not report that no descriptor is free. */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	rc = fd >= 0 && ioctl(fd, SIOCGIFINDEX, &ifr) == 0 ? 1 : -errno;
	if (fd >= 0)
		close(fd);
	if (rc > 0 || rc == -ENODEV)
		return rc > 0;
	cfg_error(c, at,
		  "the interface '%s' cannot be looked up: %s; expected a free "
		  "descriptor",
		  name, strerror(-rc));
	return rc;
}

static void
check_iface(struct cfg *c, const struct cfg_at *at, const char *device)
{
	char name[IFNAMSIZ + 1];
	const char *p = strstr(device, ",iface=");

	if (device_makes_iface(device))
		return;
	if (p == NULL) {
		/* These drivers need a kernel interface. */
		if (strncmp(device, "net_af_packet", 13) == 0 ||
		    strncmp(device, "net_af_xdp", 10) == 0)
			cfg_error(c, at, "names no interface; expected %.*s,iface=NAME",
				  (int)strcspn(device, ","), device);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p + 7, ","), p + 7);
	if (ifname_look_up(c, at, name) == 0)
		cfg_error(c, at,
			  "no network interface '%s' here; expected one that "
			  "`ip link` shows in the daemon's network namespace",
			  cfg_escape(name));
}

/*
 * Refuse a server of net_virtio_user, because its driver blocks until a peer connects. Until
 * then a start makes no progress, and a running daemon changes no port.
 */
static bool
check_virtio_user(struct cfg *c, const struct cfg_at *at, const char *device)
{
	if (strncmp(device, "net_virtio_user", 15) != 0 ||
	    strstr(device, ",server=1") == NULL)
		return true;
	cfg_error(
		c, at,
		"server=1 blocks until a peer connects; expected net_vhost,iface=PATH, or "
		"a path on which the peer listens");
	return false;
}

static bool
check_bond(struct cfg *c, const struct cfg_at *at, const char *device)
{
	struct device_bond bond;
	char why[256];

	if (device_bond_parse(device, &bond, why, sizeof(why)) < 0) {
		cfg_error(c, at, "%s", why);
		return false;
	}
	for (unsigned int i = 0; i < bond.n_member; i++)
		if (!check_pci(c, at, bond.member[i]))
			return false;
	return true;
}

static void
take_device(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	char address[DEVICE_ADDRESS_STRLEN];
	int is_if;

	if (text == NULL)
		return;
	for (const char *p = text; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p)) {
			cfg_error(c, at,
				  "'%s' has blanks or control characters; expected %s",
				  cfg_escape(text), key->expected);
			return;
		}
	if (device_address(text, address)) {
		const char *rest = text + strcspn(text, ",");

		/* The EAL names the port by the full form of the address. */
		if (!check_pci(c, at, address))
			return;
		if (strlen(rest) + strlen(address) >= key->size)
			cfg_error(c, at,
				  "is too long; expected at most %zu "
				  "characters",
				  key->size - 1);
		else
			snprintf(out, key->size, "%s%s", address, rest);
		return;
	}
	if (strlen(text) >= key->size) {
		cfg_error(c, at, "is too long; expected at most %zu characters",
			  key->size - 1);
		return;
	}
	if (device_is_bond(text)) {
		if (check_bond(c, at, text))
			snprintf(out, key->size, "%s", text);
		return;
	}
	if (strncmp(text, "net_", 4) == 0) {
		if (!check_virtio_user(c, at, text))
			return;
		snprintf(out, key->size, "%s", text);
		check_iface(c, at, text);
		return;
	}
	is_if = ifname_look_up(c, at, text);
	if (is_if > 0) {
		cfg_error(c, at,
			  "'%s' is a kernel interface; expected net_af_packet,iface=%s",
			  text, text);
	} else if (is_if == 0) {
		cfg_error(c, at, "'%s' is not a device; expected %s", cfg_escape(text),
			  key->expected);
	}
}

/*
 * Write to `out` the part of a device that two ports cannot share: its kernel interface, or
 * its name. Write "" for a virtual device without a number, because port/nic.c adds the
 * name of the port to it.
 */
static void
device_identity(const char *device, char *out, size_t size)
{
	const char *p = strstr(device, ",iface=");
	size_t n = strcspn(device, ",");

	out[0] = '\0';
	if (n == 0)
		return;
	if (p != NULL)
		snprintf(out, size, "iface %.*s", (int)strcspn(p + 7, ","), p + 7);
	else if (strncmp(device, "net_", 4) != 0 || isdigit((unsigned char)device[n - 1]))
		snprintf(out, size, "%.*s", (int)n, device);
}

/*
 * Write to `out` the NIC, interface or name that both devices need. Return false if there
 * is none.
 */
static bool
device_conflict(const char *one, const char *other, char *out, size_t size)
{
	char nic[2][BOND_MEMBERS_MAX][DEVICE_ADDRESS_STRLEN], theirs[256];
	unsigned int n[2] = {device_addresses(one, nic[0]),
			     device_addresses(other, nic[1])};

	for (unsigned int i = 0; i < n[0]; i++)
		for (unsigned int k = 0; k < n[1]; k++)
			if (strcmp(nic[0][i], nic[1][k]) == 0) {
				snprintf(out, size, "%s", nic[0][i]);
				return true;
			}
	device_identity(one, out, size);
	device_identity(other, theirs, sizeof(theirs));
	return out[0] != '\0' && strcmp(out, theirs) == 0;
}

static void
check_tap_duplicate(struct cfg *c, const struct cfg_at *at, const struct config *conf,
		    const struct config_port *port)
{
	for (const struct config_port *p = conf->port; p < port && port->tap[0] != '\0';
	     p++)
		if (strcmp(p->tap, port->tap) == 0) {
			cfg_error(c, at,
				  "'%s' is the name of the port on line %d too; expected "
				  "another name",
				  port->tap, p->tap_pos.line);
			return;
		}
}

static void
check_device_duplicate(struct cfg *c, const struct cfg_at *at, const struct config *conf,
		       const struct config_port *port)
{
	char both[256];

	for (const struct config_port *p = conf->port; p < port; p++) {
		if (device_conflict(port->device, p->device, both, sizeof(both))) {
			char place[32] = "";

			if (c->file != NULL)
				snprintf(place, sizeof(place), " (line %d)", p->pos.line);
			cfg_error(c, at, "%s belongs to %s too%s; expected another device",
				  both, c->port_path[p - conf->port], place);
			return;
		}
	}
}

void
cfg_take_port_tap(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		  void *out)
{
	struct config_port *port = out;

	port->tap_pos = at->pos;
	take_tap(c, key, at, port->tap);
	check_tap_duplicate(c, at, c->root, port);
}

const char *
cfg_text_tap(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return cfg_quoted(((const struct config_port *)base)->tap, buf);
}

void
cfg_take_port_device(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		     void *out)
{
	struct config_port *port = out;

	port->pos = at->pos;
	take_device(c, key, at, port->device);
	check_device_duplicate(c, at, c->root, port);
}

const char *
cfg_text_device(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return cfg_quoted(((const struct config_port *)base)->device, buf);
}

const char *
cfg_text_queues(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config_port *port = base;

	return port->n_rxq == 0 ? NULL : cfg_text_uint(key, base, buf);
}
