/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read and check configuration values that depend on this machine: plugins, namespaces,
 * paths, memory. Check values of the whole file against each other. This code runs in main
 * before any thread exists, in manage, and in fpmctl. It reads sysfs, /run/netns and the
 * drivers of interfaces, and changes none of them. The start makes the checks that need
 * root.
 */
#include "config/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <yaml.h>

#include "base/arch.h"
#include "config/load.h"
#include "config/print.h"
#include "config/types.h"
#include "pci/devargs.h"
#include "tap-bridge/netns.h"

/*
 * Return the innermost folder above `path` that every user may write to, in `dir`; NULL:
 * none. The EAL refuses a plugin below such a folder without a message, because every user
 * could put code there.
 */
static const char *
folder_open_to_all(const char *path, char dir[256])
{
	struct stat st;

	snprintf(dir, 256, "%s", path);
	for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
		slash[slash == dir] = '\0';
		if (stat(dir, &st) == 0 && (st.st_mode & S_IWOTH) != 0)
			return dir;
		if (slash == dir)
			break;
	}
	return NULL;
}

/*
 * Check the ELF header of a plugin. Return the reason why the plugin cannot be loaded;
 * NULL: there is none. No code of the plugin runs.
 */
static const char *
plugin_fault(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf64_Ehdr elf = {.e_type = ET_NONE};
	ssize_t n;

	if (fd < 0)
		return strerror(errno);
	n = read(fd, &elf, sizeof(elf));
	close(fd);
	return n != sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
			       elf.e_type != ET_DYN || elf.e_machine != ARCH_ELF
		       ? "not ELF for " ARCH_NAME
		       : NULL;
}

void
cfg_take_plugins(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		 void *out)
{
	struct config *conf = out;
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	if (n->type != YAML_SEQUENCE_NODE) {
		cfg_error(c, at, "is not a list; expected %s", key->expected);
		return;
	}
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		static const struct cfg_key file = {
			.expected = "an absolute path of at most 255 characters"};
		char path[CFG_PATH_MAX], dir[256];
		const char *text, *why;
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};

		cfg_place(&item, item.node);
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		text = cfg_text(c, &file, &item, NULL);
		if (text == NULL)
			continue;
		if (conf->n_plugin == CONFIG_PLUGINS_MAX)
			cfg_error(c, &item, "is one too many; expected at most %u",
				  CONFIG_PLUGINS_MAX);
		else if (text[0] != '/' || strlen(text) >= sizeof(conf->plugin[0]))
			cfg_error(c, &item, "'%s' is not usable; expected %s",
				  cfg_escape(text), file.expected);
		else if ((why = plugin_fault(text)) != NULL)
			cfg_error(c, &item,
				  "'%s' cannot be loaded: %s; expected a shared object",
				  cfg_escape(text), why);
		else if (folder_open_to_all(text, dir) != NULL)
			cfg_error(c, &item,
				  "'%s' is below %s, which every user may write to; "
				  "expected a folder that only root may write to",
				  cfg_escape(text), cfg_escape(dir));
		else
			snprintf(conf->plugin[conf->n_plugin++], sizeof(conf->plugin[0]),
				 "%s", text);
	}
}

/*
 * Write the list of plugins. It can be longer than CFG_TEXT_MAX, so it has its own buffer.
 */
const char *
cfg_text_plugins(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	static __thread char all[CONFIG_PLUGINS_MAX * CFG_TEXT_MAX];
	const struct config *conf = base;
	size_t n = 0;

	if (conf->n_plugin == 0)
		return NULL;
	for (unsigned int i = 0; i < conf->n_plugin; i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i == 0 ? "[" : ", ",
				      cfg_quoted(conf->plugin[i], buf));
	snprintf(all + n, sizeof(all) - n, "]");
	return all;
}

void
cfg_take_netns(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	char path[128];

	c->netns_bad = true;
	if (text == NULL)
		return;
	if (strlen(text) >= key->size || strchr(text, '/') != NULL || text[0] == '.') {
		cfg_error(c, at, "'%s' is not a namespace name; expected %s",
			  cfg_escape(text), key->expected);
		return;
	}
	snprintf(path, sizeof(path), "/run/netns/%s", text);
	if (access(path, F_OK) < 0)
		cfg_error(c, at,
			  "no network namespace '%s'; expected one that `ip netns` shows",
			  cfg_escape(text));
	else {
		snprintf(out, key->size, "%s", text);
		c->netns_bad = false;
	}
}

void
cfg_take_path(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	struct stat st;

	if (text == NULL)
		return;
	if (text[0] != '/' || text[strlen(text) - 1] == '/' || strlen(text) >= key->size)
		cfg_error(c, at, "'%s' is not usable; expected %s", cfg_escape(text),
			  key->expected);
	else if (lstat(text, &st) == 0 && !S_ISSOCK(st.st_mode))
		cfg_error(c, at,
			  "'%s' is %s; expected a path where nothing is, or a socket",
			  cfg_escape(text),
			  S_ISDIR(st.st_mode)   ? "a directory"
			  : S_ISREG(st.st_mode) ? "a plain file"
			  : S_ISLNK(st.st_mode) ? "a symbolic link"
						: "not a socket");
	else if (stat(text, &st) < 0 && errno == ENOTDIR)
		cfg_error(c, at,
			  "'%s' has a file in its path; expected directories above it",
			  cfg_escape(text));
	else
		snprintf(out, key->size, "%s", text);
}

/*
 * Read the amount of memory for DPDK. Compare it with the memory of the machine: if the
 * machine has too little, the EAL fails late and without a message.
 */
void
cfg_take_memory(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	unsigned long long ram_mib;
	struct sysinfo info;
	unsigned int mib;

	if (cfg_number(c, key, at, &mib) < 0 || sysinfo(&info) < 0)
		return;
	ram_mib = (unsigned long long)info.totalram * info.mem_unit >> 20;
	if (mib > ram_mib / 4 * 3)
		cfg_error(c, at,
			  "%u is too much for the %llu MiB of this machine; expected at "
			  "most %llu, three quarters",
			  mib, ram_mib, ram_mib / 4 * 3);
	else
		*(unsigned int *)out = mib;
}

/* Return true if the device is a NIC, not a bond of NICs. */
static bool
devargs_is_nic(const char *device)
{
	char address[DEVICE_ADDRESS_STRLEN];

	return !device_is_bond(device) && device_address(device, address);
}

/* Check the limits of `keep-nics`, with which two processes share DPDK. */
void
cfg_check_keep_nics(struct cfg *c, const struct config *conf)
{
	char path[CFG_PATH_MAX];

	if (!conf->keep_nics)
		return;
	if (!conf->hugepages)
		cfg_error_at(c, c->keep_nics_pos, "keep-nics",
			     "two processes can share only hugepages; expected "
			     "memory.hugepages: true");
	if (conf->n_core > CONFIG_SHARED_CORES_MAX)
		cfg_error_at(c, c->keep_nics_pos, "keep-nics",
			     "%u cores forward; expected at most %u", conf->n_core,
			     CONFIG_SHARED_CORES_MAX);
	for (unsigned int i = 0; i < conf->n_port; i++) {
		snprintf(path, sizeof(path), "%s.device", c->port_path[i]);
		if (conf->port[i].device[0] != '\0' &&
		    !devargs_is_nic(conf->port[i].device))
			cfg_error_at(c, conf->port[i].pos, path,
				     "'%s' cannot be kept over a restart; expected a NIC's "
				     "PCI address, or keep-nics: false",
				     conf->port[i].device);
	}
}

/* Return true if the two listeners cannot both be bound in one namespace. */
static bool
listeners_clash(const struct sockaddr_storage *fpm, const struct sockaddr_storage *metrics)
{
	const struct sockaddr_in6 *f6 = (const struct sockaddr_in6 *)fpm;
	const struct sockaddr_in6 *m6 = (const struct sockaddr_in6 *)metrics;
	const struct sockaddr_in *f4 = (const struct sockaddr_in *)fpm;
	const struct sockaddr_in *m4 = (const struct sockaddr_in *)metrics;

	if (f4->sin_port != m4->sin_port) /* same offset in sockaddr_in6 */
		return false;
	if (fpm->ss_family != metrics->ss_family) /* "::" of fpm accepts IPv4, too */
		return fpm->ss_family == AF_INET6 &&
		       IN6_IS_ADDR_UNSPECIFIED(&f6->sin6_addr);
	if (fpm->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&f6->sin6_addr) ||
		       IN6_IS_ADDR_UNSPECIFIED(&m6->sin6_addr) ||
		       IN6_ARE_ADDR_EQUAL(&f6->sin6_addr, &m6->sin6_addr);
	return f4->sin_addr.s_addr == 0 || m4->sin_addr.s_addr == 0 ||
	       f4->sin_addr.s_addr == m4->sin_addr.s_addr;
}

static void
check_listeners(struct cfg *c, const struct config *conf)
{
	char text[CONFIG_LISTEN_STRLEN];

	if (!conf->metrics_on || c->listen_pos.line < 0 || c->metrics_pos.line < 0 ||
	    !listeners_clash(&conf->fpm_listen, &conf->metrics_listen))
		return;
	if (c->metrics_pos.line > 0)
		cfg_error_at(c, c->metrics_pos, "metrics",
			     "its port is that of fpm.listen (%s); expected another",
			     config_listen_str(&conf->fpm_listen, text));
	else
		cfg_error_at(c, c->listen_pos, "fpm.listen",
			     "its port is that of metrics (%s); expected another",
			     config_listen_str(&conf->metrics_listen, text));
}

static bool (*tap_is_held)(const char *tap); /* W:main before threads */

void
config_taps_held(bool (*is_held)(const char *tap))
{
	tap_is_held = is_held;
}

/*
 * Return true if an interface has the port's TAP name and is not a TAP. The interface of
 * the port's own NIC does not count, because a router keeps the names of its interfaces
 * when it moves to the dataplane, and the name becomes free when DPDK takes the NIC. The
 * interface counts if the kernel's driver keeps the NIC while DPDK uses it (mlx). Call this
 * inside the control namespace.
 */
static bool
ifname_taken(const struct config_port *port)
{
	const char *name = port->tap;
	size_t pci = strcspn(port->device, ",");
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};
	int fd, rc;

	if (if_nametoindex(name) == 0 || (tap_is_held != NULL && tap_is_held(name)))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	memcpy(ifr.ifr_name, name, strlen(name) + 1);
	rc = ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	if (rc == 0 && pci > 0 && strlen(info.bus_info) == pci &&
	    memcmp(info.bus_info, port->device, pci) == 0 &&
	    strncmp(info.driver, "mlx", 3) != 0)
		return false;
	return rc < 0 || strcmp(info.driver, "tun") != 0 ||
	       strcmp(info.bus_info, "tap") != 0;
}

void
cfg_check_whole(struct cfg *c, const struct config *conf)
{
	struct netns_guard guard;
	char path[CFG_PATH_MAX];

	cfg_check_port_cores(c, conf);
	cfg_check_keep_nics(c, conf);
	if (c->netns_bad)
		return;
	check_listeners(c, conf);
	if (netns_enter(conf->control_netns, &guard) < 0)
		return; /* not root; the start reports it */
	for (unsigned int i = 0; i < conf->n_port; i++) {
		snprintf(path, sizeof(path), "%s.tap", c->port_path[i]);
		if (conf->port[i].tap[0] != '\0' && ifname_taken(&conf->port[i]))
			cfg_error_at(c, conf->port[i].tap_pos, path,
				     "an interface '%s' exists and is not a TAP; expected "
				     "another name",
				     conf->port[i].tap);
	}
	netns_leave(&guard);
}
