/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read PCI devices and change their drivers, through files of /sys. Any process may read
 * these files. Only root writes them, in `fpm-dataplane --prepare` and fpmctl, never in the
 * running daemon. This code must never take a NIC that the machine itself uses, because an
 * operator connected through that NIC would be locked out. It must not take a device that
 * is not a NIC.
 */
#include "pci/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errmsg.h"
#include "base/sysfs.h"

#define PCI "/sys/bus/pci/"

extern char **environ;

/* --- paths ---------------------------------------------------------------------------- */

struct path {
	char text[PATH_MAX];
};

static struct path __attribute__((format(printf, 2, 3)))
path_of(const char *root, const char *fmt, ...)
{
	struct path path;
	va_list ap;
	size_t n = (size_t)snprintf(path.text, sizeof(path.text), "%s", root);

	va_start(ap, fmt);
	if (n < sizeof(path.text))
		vsnprintf(path.text + n, sizeof(path.text) - n, fmt, ap);
	va_end(ap);
	return path;
}

/* Load a module. The caller checks the effect; nothing reads the result of modprobe. */
static void
module_load(const char *root, const char *module)
{
	char *argv[] = {"modprobe", "-q", (char *)(size_t)module, NULL};
	pid_t pid;

	if (root[0] == '\0' &&
	    posix_spawnp(&pid, "modprobe", NULL, NULL, argv, environ) == 0)
		waitpid(pid, NULL, 0);
}

/* --- devices -------------------------------------------------------------------------- */

/*
 * Return the paths of the device's folders of interfaces, each followed by `tail`. The
 * caller calls globfree().
 */
static glob_t
net_glob(const char *root, const char *address, const char *tail)
{
	glob_t found = {0};

	glob(path_of(root, PCI "devices/%s/net%s", address, tail).text, 0, NULL, &found);
	glob(path_of(root, PCI "devices/%s/virtio*/net%s", address, tail).text, GLOB_APPEND,
	     NULL, &found);
	return found;
}

/*
 * Read the name of the interface. An interface in another namespace leaves an empty folder.
 */
static void
read_interface(const char *root, struct device *d)
{
	glob_t folder = net_glob(root, d->address, "");
	glob_t interface = net_glob(root, d->address, "/*");

	if (interface.gl_pathc > 0)
		snprintf(d->ifname, sizeof(d->ifname), "%s",
			 strrchr(interface.gl_pathv[0], '/') + 1);
	d->elsewhere = folder.gl_pathc > 0 && interface.gl_pathc == 0;
	globfree(&folder);
	globfree(&interface);
}

int
device_read(const char *root, const char *address, struct device *d)
{
	struct path path = path_of(root, PCI "devices/%s", address);
	char text[64];

	*d = (struct device){.group = -1};
	if (access(path.text, F_OK) < 0)
		return -ENODEV;
	snprintf(d->address, sizeof(d->address), "%s", address);
#define OF(name) (path = path_of(root, PCI "devices/%s/" name, address), path.text)
	d->vendor = (unsigned int)sysfs_read_number(OF("vendor"), 0);
	d->id = (unsigned int)sysfs_read_number(OF("device"), 0);
	d->class = (unsigned int)sysfs_read_number(OF("class"), 0);
	d->node = (int)sysfs_read_number(OF("numa_node"), -1);
	sysfs_read_link(OF("driver"), d->driver, sizeof(d->driver));
	sysfs_read_link(OF("iommu_group"), text, sizeof(text));
	if (text[0] != '\0')
		d->group = atoi(text);
	sysfs_read_line(OF("iommu_group/name"), text, sizeof(text));
#undef OF
	d->unprotected = strcmp(text, "vfio-noiommu") == 0;
	read_interface(root, d);
	return 0;
}

void
device_each(const char *root, void (*each)(const struct device *d, void *ctx), void *ctx)
{
	struct dirent **entry;
	struct device d;
	int n = scandir(path_of(root, PCI "devices").text, &entry, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (entry[i]->d_name[0] != '.' &&
		    device_read(root, entry[i]->d_name, &d) == 0 && device_is_nic(&d))
			each(&d, ctx);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

bool
device_is_nic(const struct device *d)
{
	return d->class >> 16 == 2;
}

static bool
driver_is_one_of(const char *driver, const char *const *known)
{
	while (*known != NULL && strcmp(driver, *known) != 0)
		known++;
	return *known != NULL;
}

bool
device_is_shared(const char *driver)
{
	return driver_is_one_of(driver,
				(const char *const[]){"mlx4_core", "mlx5_core", NULL});
}

/* Return true if the driver gives the device to a process. */
static bool
driver_is_for_processes(const char *driver)
{
	return driver_is_one_of(driver, (const char *const[]){"vfio-pci", "uio_pci_generic",
							      "igb_uio", NULL});
}

bool
device_serves_dpdk(const char *driver)
{
	return driver_is_for_processes(driver) || device_is_shared(driver);
}

bool
device_is_uio(const struct device *d)
{
	return driver_is_for_processes(d->driver) && strcmp(d->driver, "vfio-pci") != 0;
}

bool
device_is_unprotected(const struct device *d)
{
	return d->unprotected || device_is_uio(d);
}

static struct path
unsafe_mode_path(const char *root)
{
	return path_of(root, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
}

bool
device_vfio_is_unsafe(const char *root)
{
	struct path mode = unsafe_mode_path(root);
	char on[8];

	sysfs_read_line(mode.text, on, sizeof(on));
	return on[0] == 'Y';
}

/*
 * Return the path, below `root`, of the file through which a process opens the device; "":
 * none.
 */
static struct path
device_node_path(const char *root, const struct device *d)
{
	glob_t found = {0};
	struct path path;

	if (strcmp(d->driver, "vfio-pci") == 0)
		return d->group < 0 ? path_of("", "%s", "")
				    : path_of(root, "/dev/vfio/%s%d",
					      d->unprotected ? "noiommu-" : "", d->group);
	glob(path_of(root, PCI "devices/%s/uio/uio*", d->address).text, 0, NULL, &found);
	path = found.gl_pathc == 0
		       ? path_of("", "%s", "")
		       : path_of(root, "/dev/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return path;
}

/*
 * Return a process other than `but1` and `but2` that has `node` open; 0: none. Any number
 * of processes may open a uio device, so this searches all descriptors of /proc; only root
 * sees them all.
 */
static pid_t
node_opener(const char *root, const char *node, pid_t but1, pid_t but2)
{
	glob_t found = {0};
	pid_t pid = 0;

	glob(path_of(root, "/proc/[0-9]*/fd/*").text, GLOB_NOSORT, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && pid == 0; i++) {
		char to[PATH_MAX];
		ssize_t n = readlink(found.gl_pathv[i], to, sizeof(to) - 1);

		to[n < 0 ? 0 : n] = '\0';
		if (strcmp(to, node) == 0)
			pid = (pid_t)strtol(found.gl_pathv[i] + strlen(root) +
						    strlen("/proc/"),
					    NULL, 10);
		if (pid == but1 || pid == but2)
			pid = 0;
	}
	globfree(&found);
	return pid;
}

pid_t
device_uio_user(const char *root, const struct device *d, pid_t predecessor)
{
	struct path node = device_node_path(root, d);

	return node.text[0] == '\0' || !device_is_uio(d)
		       ? 0
		       : node_opener(root, node.text + strlen(root), getpid(), predecessor);
}

bool
device_is_open(const char *root, const struct device *d)
{
	struct path node = device_node_path(root, d);
	int fd;

	if (node.text[0] == '\0')
		return false;
	if (strcmp(d->driver, "vfio-pci") != 0)
		return node_opener(root, node.text + strlen(root), 0, 0) != 0;
	/* One process at a time can open a group. */
	fd = open(node.text, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EBUSY;
}

static int
check_open(const char *root, const struct device *d, char *why, size_t why_size)
{
	if (!device_is_open(root, d))
		return 0;
	return why_not(why, why_size, -EBUSY,
		       "a process has it open, such as a dataplane or a virtual machine; "
		       "end it first: fuser %s",
		       device_node_path(root, d).text + strlen(root));
}

bool
device_group_is_held(const char *root, const struct device *d, struct device *by)
{
	struct path folder =
		path_of(root, PCI "devices/%s/iommu_group/devices", d->address);
	struct dirent **entry;
	int n = scandir(folder.text, &entry, NULL, alphasort);
	bool held = false;

	for (int i = 0; i < n; i++) {
		/* Bridges may keep their driver. */
		if (!held && device_read(root, entry[i]->d_name, by) == 0)
			held = by->driver[0] != '\0' &&
			       !driver_is_for_processes(by->driver) &&
			       strcmp(by->driver, "pcieport") != 0;
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return held;
}

/*
 * Write the reason for which vfio does not give the device to a process: vfio gives all
 * devices of a group or none, and a driver of the kernel has `by`, a device of the group.
 * The advice to give `by` to vfio-pci is only for a NIC: another device must stay with the
 * kernel.
 */
static int
group_refusal(const struct device *d, const struct device *by, char *why, size_t why_size)
{
	char mend[96];

	if (device_is_nic(by))
		snprintf(mend, sizeof(mend), "`fpmctl device bind %s` gives it to vfio-pci",
			 by->address);
	else
		snprintf(mend, sizeof(mend), "another slot has another group");
	return why_not(why, why_size, -EPERM,
		       "%s is in IOMMU group %d with %s, which the kernel's driver %s has, "
		       "and vfio gives all devices of a group or none; %s",
		       d->address, d->group, by->address, by->driver, mend);
}

int
device_check(const char *root, const char *address, struct device *d, char *why,
	     size_t why_size)
{
	struct device by;

	if (device_read(root, address, d) < 0)
		return why_not(why, why_size, -ENODEV,
			       "there is no PCI device %s; `fpmctl device list` lists "
			       "the devices",
			       address);
	if (!device_is_nic(d))
		return why_not(why, why_size, -EINVAL,
			       "%s is not a NIC: its PCI class is %06x", address, d->class);
	if (d->driver[0] == '\0')
		return why_not(why, why_size, -ENXIO,
			       "no driver has %s; `fpmctl device bind %s` gives it to "
			       "vfio-pci",
			       address, address);
	if (!device_serves_dpdk(d->driver))
		return why_not(why, why_size, -EBUSY,
			       "the kernel's driver %s has %s%s%s; `fpmctl device bind %s` "
			       "gives it to vfio-pci",
			       d->driver, address, d->ifname[0] != '\0' ? " as " : "",
			       d->ifname, address);
	if (strcmp(d->driver, "vfio-pci") == 0 && device_group_is_held(root, d, &by))
		return group_refusal(d, &by, why, why_size);
	/*
	 * Several processes may open a uio device: in a handover the predecessor has it
	 * open until it ends.
	 */
	if (strcmp(d->driver, "vfio-pci") == 0 && device_is_open(root, d))
		return why_not(
			why, why_size, -EBUSY,
			"%s is open already, by a port of this dataplane in the same "
			"IOMMU group or by another process (a virtual machine?): "
			"fuser /dev/vfio/%s%d",
			address, d->unprotected ? "noiommu-" : "", d->group);
	return 0;
}

/* --- change of driver ----------------------------------------------------------------- */

/*
 * Make the kernel select a driver again: the driver `override`, or if that is "", any
 * driver.
 */
static void
device_set_driver(const char *root, struct device *d, const char *override)
{
	char address[DEVICE_ADDRESS_STRLEN];
	struct path path;

	strcpy(address, d->address);
	if (d->driver[0] != '\0') {
		path = path_of(root, PCI "drivers/%s/unbind", d->driver);
		sysfs_write(path.text, d->address);
	}
	path = path_of(root, PCI "devices/%s/driver_override", d->address);
	sysfs_write(path.text, override[0] != '\0' ? override : "\n");
	path = path_of(root, PCI "drivers_probe");
	sysfs_write(path.text, d->address);
	device_read(root, address, d);
}

/* Give the device to the kernel's own driver for it. */
static void
device_reset_driver(const char *root, struct device *d)
{
	struct path path = path_of(root, PCI "devices/%s/modalias", d->address);
	char modalias[128];

	sysfs_read_line(path.text, modalias, sizeof(modalias));
	module_load(root, modalias);
	device_set_driver(root, d, "");
}

static int
check_nic(const struct device *d, char *why, size_t why_size)
{
	if (device_is_nic(d))
		return 0;
	return why_not(why, why_size, -EINVAL, "it is not a NIC: its PCI class is %06x",
		       d->class);
}

static int
check_use(const struct device *d, char *why, size_t why_size)
{
	struct device_use use;

	if (d->elsewhere)
		return why_not(why, why_size, -EBUSY,
			       "its interface is in another network namespace, where "
			       "a process may use it; move it back first (ip -n NAMESPACE "
			       "link set INTERFACE netns 1)");
	if (d->ifname[0] == '\0')
		return 0;
	device_use_of(d->ifname, &use);
	return device_use_text(d->ifname, &use, why, why_size) ? -EBUSY : 0;
}

static int
check_vfio(const char *root, const struct device *d, char *why, size_t why_size)
{
	struct path driver = path_of(root, PCI "drivers/vfio-pci");
	struct path mode = unsafe_mode_path(root);

	if (access(driver.text, F_OK) < 0)
		module_load(root, "vfio-pci");
	if (access(driver.text, F_OK) < 0)
		return why_not(why, why_size, -ENOTSUP,
			       "this kernel has no vfio-pci: `modprobe vfio-pci` prints "
			       "the reason");
	if (d->group < 0 && !device_vfio_is_unsafe(root))
		return why_not(
			why, why_size, -ENOTSUP,
			"it is in no IOMMU group: enable VT-d or AMD-Vi in the firmware, "
			"on Intel with intel_iommu=on iommu=pt on the kernel's command "
			"line; in a VM enable an IOMMU in the hypervisor, or use %s "
			"(install.md)",
			access(mode.text, F_OK) == 0
				? "vfio's no-IOMMU mode"
				: "uio_pci_generic, because this kernel's vfio has no "
				  "no-IOMMU mode");
	return 0;
}

/* Check the device, and change nothing. */
static int
check_bind(const char *root, const struct device *d, bool force, char *why, size_t why_size)
{
	int rc = check_nic(d, why, why_size);

	if (rc == 0 && device_is_shared(d->driver))
		rc = why_not(why, why_size, -EINVAL,
			     "DPDK works beside its driver %s: name it in the "
			     "configuration as it is",
			     d->driver);
	/*
	 * Check whether a process has the device open through uio. `force` does not
	 * override this, because the process would continue to use a device that it no
	 * longer owns.
	 */
	if (rc == 0 && check_open(root, d, why, why_size) < 0)
		rc = -EPERM;
	if (rc == 0 && !force)
		rc = check_use(d, why, why_size);
	return rc;
}

int
device_bind_check(const char *root, const struct device *d, unsigned int n, bool force,
		  unsigned int *at, char *why, size_t why_size)
{
	/*
	 * The first round checks each device. The second round, which may load a module,
	 * starts only if all devices passed the first.
	 */
	for (unsigned int i = 0; i < 2 * n; i++) {
		int rc = 0;

		*at = i % n;
		if (strcmp(d[*at].driver, "vfio-pci") != 0)
			rc = i < n ? check_bind(root, &d[*at], force, why, why_size)
				   : check_vfio(root, &d[*at], why, why_size);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int
device_bind(const char *root, struct device *d, bool force, char *why, size_t why_size)
{
	unsigned int at;
	int rc = device_bind_check(root, d, 1, force, &at, why, why_size);

	if (rc < 0 || strcmp(d->driver, "vfio-pci") == 0)
		return rc;
	device_set_driver(root, d, "vfio-pci");
	if (strcmp(d->driver, "vfio-pci") == 0)
		return 0;
	device_reset_driver(root, d);
	return why_not(why, why_size, -EIO,
		       "vfio-pci does not take it (`dmesg` has the reason); its driver is "
		       "%s again",
		       d->driver[0] != '\0' ? d->driver : "none");
}

/* Return true if a driver of the kernel has the device. */
static bool
device_has_kernel_driver(const struct device *d)
{
	return d->driver[0] != '\0' && !driver_is_for_processes(d->driver);
}

int
device_unbind_check(const char *root, const struct device *d, char *why, size_t why_size)
{
	int rc = check_nic(d, why, why_size);

	if (rc == 0 && !device_has_kernel_driver(d))
		rc = check_open(root, d, why, why_size);
	return rc;
}

int
device_unbind(const char *root, struct device *d, char *why, size_t why_size)
{
	int rc = device_unbind_check(root, d, why, why_size);

	if (rc < 0 || device_has_kernel_driver(d))
		return rc;
	device_reset_driver(root, d);
	if (device_has_kernel_driver(d))
		return 0;
	return why_not(why, why_size, -EIO, "no driver of the kernel takes it: it has %s",
		       d->driver[0] != '\0' ? d->driver : "none");
}
