/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration values that mean something on this machine: interface names, devices,
 * CPUs, namespaces, addresses. Runs in main before any thread exists; it looks (sysfs,
 * /run/netns, the affinity mask) and never opens, makes or changes what it looks at.
 */
#include "config_check.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

/* The kernel's dev_valid_name(). */
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

void
cfg_take_tap(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);

	if (text == NULL)
		return;
	if (!ifname_valid(text))
		cfg_error(c, at->line, at->path,
			  "'%s' is not an interface name; expected %s", cfg_show(text),
			  key->expected);
	else
		snprintf(out, key->size, "%s", text);
}

/* Octets of a PCI address at the start of `s` ("0000:03:00.0" or "03:00.0"), else 0. */
static size_t
pci_len(const char *s, unsigned int bdf[4])
{
	int n = 0;

	if (sscanf(s, "%4x:%2x:%2x.%1x%n", &bdf[0], &bdf[1], &bdf[2], &bdf[3], &n) != 4) {
		bdf[0] = 0;
		if (sscanf(s, "%2x:%2x.%1x%n", &bdf[1], &bdf[2], &bdf[3], &n) != 3)
			return 0;
	}
	return s[n] == '\0' || s[n] == ',' ? (size_t)n : 0;
}

static void
check_iface(struct cfg *c, const struct cfg_at *at, const char *device)
{
	char name[IFNAMSIZ + 1];
	const char *p = strstr(device, ",iface=");

	if (p == NULL) {
		/* The drivers that stand on a kernel interface do nothing without one. */
		if (strncmp(device, "net_af_packet", 13) == 0 ||
		    strncmp(device, "net_af_xdp", 10) == 0)
			cfg_error(c, at->line, at->path,
				  "names no interface; expected %.*s,iface=NAME",
				  (int)strcspn(device, ","), device);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(p + 7, ","), p + 7);
	if (!ifname_valid(name) || if_nametoindex(name) == 0)
		cfg_error(c, at->line, at->path,
			  "no network interface '%s' here; expected one that "
			  "`ip link` shows in the daemon's network namespace",
			  cfg_show(name));
}

void
cfg_take_device(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	unsigned int bdf[4];
	size_t n;
	char pci[32], path[64];

	if (text == NULL)
		return;
	for (const char *p = text; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p)) {
			cfg_error(c, at->line, at->path,
				  "'%s' has blanks or control characters; expected %s",
				  cfg_show(text), key->expected);
			return;
		}
	n = pci_len(text, bdf);
	if (n != 0) {
		/* The full form is the name that the EAL gives to the port. */
		snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", bdf[0], bdf[1], bdf[2],
			 bdf[3]);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", pci);
		if (access(path, F_OK) < 0)
			cfg_error(c, at->line, at->path,
				  "no PCI device %s; expected one that `lspci -D` shows",
				  pci);
		else if (strlen(text + n) + strlen(pci) >= key->size)
			cfg_error(c, at->line, at->path,
				  "is too long; expected at most %zu "
				  "characters",
				  key->size - 1);
		else
			snprintf(out, key->size, "%s%s", pci, text + n);
		return;
	}
	if (strlen(text) >= key->size) {
		cfg_error(c, at->line, at->path,
			  "is too long; expected at most %zu characters", key->size - 1);
		return;
	}
	if (strncmp(text, "net_", 4) == 0) {
		snprintf(out, key->size, "%s", text);
		check_iface(c, at, text);
	} else if (ifname_valid(text) && if_nametoindex(text) != 0) {
		cfg_error(c, at->line, at->path,
			  "'%s' is a kernel interface; expected net_af_packet,iface=%s",
			  text, text);
	} else {
		cfg_error(c, at->line, at->path, "'%s' is not a device; expected %s",
			  cfg_show(text), key->expected);
	}
}

/*
 * What two ports cannot share: the interface behind them, or the device's own name. A
 * virtual device without a number is given one name a port (port/port.c).
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

void
cfg_check_tap_twin(struct cfg *c, const struct cfg_at *at, const struct config *conf,
		   const struct config_port *port)
{
	for (const struct config_port *p = conf->port; p < port && port->tap[0] != '\0';
	     p++)
		if (strcmp(p->tap, port->tap) == 0) {
			cfg_error(
				c, at->line, at->path,
				"'%s' is the name of ports[%u] too; expected another name",
				port->tap, (unsigned int)(p - conf->port));
			return;
		}
}

void
cfg_check_device_twin(struct cfg *c, const struct cfg_at *at, const struct config *conf,
		      const struct config_port *port)
{
	char mine[256], theirs[256];

	device_identity(port->device, mine, sizeof(mine));
	for (const struct config_port *p = conf->port; p < port && mine[0] != '\0'; p++) {
		device_identity(p->device, theirs, sizeof(theirs));
		if (strcmp(mine, theirs) == 0) {
			cfg_error(c, at->line, at->path,
				  "%s belongs to ports[%u] too (line %d); expected another "
				  "device",
				  mine, (unsigned int)(p - conf->port), p->line);
			return;
		}
	}
}

static bool
cpu_allowed(unsigned int cpu)
{
	static cpu_set_t set[8]; /* 8192 CPUs: more than any kernel is built for */

	return sched_getaffinity(0, sizeof(set), set) == 0 &&
	       CPU_ISSET_S(cpu, sizeof(set), set);
}

void
cfg_take_cores(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	conf->n_core = 0;
	if (n->type != YAML_SEQUENCE_NODE) {
		const char *text = cfg_text(c, key, at, NULL);

		if (text != NULL && strcmp(text, "auto") != 0)
			cfg_error(c, at->line, at->path, "'%s' is not a list; expected %s",
				  cfg_show(text), key->expected);
		return;
	}
	if (n->data.sequence.items.start == n->data.sequence.items.top)
		cfg_error(c, at->line, at->path, "is an empty list; expected %s",
			  key->expected);
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		static const struct cfg_key number = {.max = 8191,
						      .expected = "the number of a CPU"};
		char path[CFG_PATH_MAX];
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};
		unsigned int cpu, j = 0;

		item.line = (int)item.node->start_mark.line + 1;
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		if (i == CONFIG_CORES_MAX) {
			cfg_error(c, item.line, path,
				  "is one too many; expected at most %u", CONFIG_CORES_MAX);
			return;
		}
		if (cfg_number(c, &number, &item, &cpu) < 0)
			continue;
		while (j < conf->n_core && conf->core[j] != cpu)
			j++;
		if (j < conf->n_core)
			cfg_error(c, item.line, path,
				  "CPU %u is listed twice; expected once", cpu);
		else if (!cpu_allowed(cpu))
			cfg_error(
				c, item.line, path,
				"no CPU %u for this process; expected one that `nproc` and "
				"`taskset -p $$` allow",
				cpu);
		else
			conf->core[conf->n_core++] = cpu;
	}
}

void
cfg_take_netns(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	char path[128];

	if (text == NULL)
		return;
	if (strlen(text) >= key->size || strchr(text, '/') != NULL || text[0] == '.') {
		cfg_error(c, at->line, at->path,
			  "'%s' is not a namespace name; expected %s", cfg_show(text),
			  key->expected);
		return;
	}
	snprintf(path, sizeof(path), "/run/netns/%s", text);
	if (access(path, F_OK) < 0)
		cfg_error(c, at->line, at->path,
			  "no network namespace '%s'; expected one that `ip netns` shows",
			  cfg_show(text));
	else
		snprintf(out, key->size, "%s", text);
}

void
cfg_take_path(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);

	if (text == NULL)
		return;
	if (text[0] != '/' || text[strlen(text) - 1] == '/' || strlen(text) >= key->size)
		cfg_error(c, at->line, at->path, "'%s' is not usable; expected %s",
			  cfg_show(text), key->expected);
	else
		snprintf(out, key->size, "%s", text);
}

int
cfg_listen_parse(const char *text, struct sockaddr_storage *out)
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_in *sin = (struct sockaddr_in *)out;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
	char addr[INET6_ADDRSTRLEN + 2];
	unsigned long port;
	size_t n;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(addr) || colon[1] < '1' ||
	    colon[1] > '9' || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return -EINVAL;
	port = strtoul(colon + 1, NULL, 10);
	if (port > 65535)
		return -EINVAL;
	n = (size_t)(colon - text);
	memcpy(addr, text, n);
	addr[n] = '\0';
	memset(out, 0, sizeof(*out));
	if (n >= 2 && addr[0] == '[' && addr[n - 1] == ']') {
		addr[n - 1] = '\0';
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, addr + 1, &sin6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	sin->sin_family = AF_INET;
	sin->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, addr, &sin->sin_addr) == 1 ? 0 : -EINVAL;
}

void
cfg_take_listen(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	struct sockaddr_storage ss;

	if (text == NULL)
		return;
	if (cfg_listen_parse(text, &ss) < 0)
		cfg_error(c, at->line, at->path,
			  "'%s' is not an address and port; expected %s", cfg_show(text),
			  key->expected);
	else
		memcpy(out, &ss, sizeof(ss));
}
