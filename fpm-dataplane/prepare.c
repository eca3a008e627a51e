/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpm-dataplane --prepare`, which the unit runs before each start, unbounded: hugepages are
 * reserved, NICs given to vfio-pci. [main] of a process of its own, which ends after it. It
 * must never take a NIC that the machine itself uses: whoever works by that could not come
 * back. Nor anything that is no NIC.
 */
#include "prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <ifaddrs.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define HUGE_2M   "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PCI       "/sys/bus/pci/"
#define TEXT_SIZE 256 /* an address, a driver's name */
#define PATH_SIZE 320 /* with one of those in it */

extern char **environ;

/* --- files of /sys ------------------------------------------------------------------------ */

static long
number_of(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = -1;

	if (f != NULL && fscanf(f, "%li", &n) != 1)
		n = -1;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Returns 0 or -errno, of the write as well: the kernel refuses there. */
static int
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* Name of what a symbolic link leads to; "" when there is none. */
static const char *
link_name(const char *path, char buf[TEXT_SIZE])
{
	ssize_t n = readlink(path, buf, TEXT_SIZE - 1);
	char *slash;

	buf[n < 0 ? 0 : n] = '\0';
	slash = strrchr(buf, '/');
	return slash != NULL ? slash + 1 : buf;
}

/* What modprobe thinks of it shows later, in what is or is not there. */
static void
load_module(const char *module)
{
	char *argv[] = {"modprobe", (char *)(uintptr_t)module, NULL};
	pid_t pid;

	if (posix_spawnp(&pid, "modprobe", NULL, NULL, argv, environ) == 0)
		waitpid(pid, NULL, 0);
}

/* --- hugepages ---------------------------------------------------------------------------- */

/*
 * As many free ones as the packets' memory takes; a daemon that still runs has its own, and
 * its successor wants others. More are asked for than there may be: the kernel gives what it
 * finds in one piece.
 */
static int
reserve_pages(const struct config *conf)
{
	long want = (long)(conf->memory_mib + 1) / 2;
	long total = number_of(HUGE_2M "nr_hugepages");
	long unused = number_of(HUGE_2M "free_hugepages");
	char text[32];

	if (total < 0 || unused < 0) {
		log_error("prepare: no hugepages of 2 MiB in this kernel");
		return 1;
	}
	if (unused >= want)
		return 0;
	snprintf(text, sizeof(text), "%ld", total + want - unused);
	put(HUGE_2M "nr_hugepages", text);
	unused = number_of(HUGE_2M "free_hugepages");
	log_info("prepare: hugepages reserved before=%ld now=%ld free=%ld", total,
		 number_of(HUGE_2M "nr_hugepages"), unused);
	if (unused >= want)
		return 0;
	log_error("prepare: hugepages short free=%ld wanted=%ld; memory is in pieces: "
		  "reserve them at boot, kernel parameter hugepages=%ld",
		  unused, want, want);
	return 1;
}

/* --- NICs --------------------------------------------------------------------------------- */

/* Has it an address that somebody gave it? The kernel makes fe80:: by itself. */
static bool
has_address(const char *ifname)
{
	struct ifaddrs *list, *a;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return true; /* not known: as if */
	for (a = list; a != NULL && !found; a = a->ifa_next) {
		const struct sockaddr *sa = a->ifa_addr;

		if (sa == NULL || strcmp(a->ifa_name, ifname) != 0)
			continue;
		found = sa->sa_family == AF_INET ||
			(sa->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(
				 &((const struct sockaddr_in6 *)sa)->sin6_addr));
	}
	freeifaddrs(list);
	return found;
}

/* Is it a bond's, a bridge's, a VLAN's? `dir` is the interface's in /sys. */
static bool
serves_another(const char *dir)
{
	char path[2 * PATH_SIZE];
	glob_t found = {0};
	bool any;

	snprintf(path, sizeof(path), "%s/upper_*", dir);
	any = glob(path, 0, NULL, &found) == 0;
	globfree(&found);
	return any;
}

/* Paths of a device's folder of interfaces, and `tail` behind it; globfree() is the caller's. */
static glob_t
net_glob(const char *address, const char *tail)
{
	char path[PATH_SIZE];
	glob_t found = {0};

	snprintf(path, sizeof(path), PCI "devices/%s/net%s", address, tail);
	glob(path, 0, NULL, &found);
	snprintf(path, sizeof(path), PCI "devices/%s/virtio*/net%s", address, tail);
	glob(path, GLOB_APPEND, NULL, &found);
	return found;
}

/*
 * Is its interface in another network namespace? Then the folder is there and empty: whether
 * it has addresses cannot be seen from here.
 */
static bool
is_elsewhere(const char *address)
{
	glob_t folder = net_glob(address, ""), interface = net_glob(address, "/*");
	bool elsewhere = folder.gl_pathc > 0 && interface.gl_pathc == 0;

	globfree(&folder);
	globfree(&interface);
	return elsewhere;
}

/* The interface of a device that the machine uses; "" when it uses none. */
static const char *
used_as(const char *address, char buf[TEXT_SIZE])
{
	glob_t found = net_glob(address, "/*");

	buf[0] = '\0';
	for (size_t i = 0; i < found.gl_pathc && buf[0] == '\0'; i++) {
		const char *ifname = strrchr(found.gl_pathv[i], '/') + 1;

		if (has_address(ifname) || serves_another(found.gl_pathv[i]))
			snprintf(buf, TEXT_SIZE, "%s", ifname);
	}
	globfree(&found);
	return buf;
}

/* Who mistypes an address may name the disk's. PCI Code and ID Assignment: 02, network. */
static bool
is_nic(const char *address)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), PCI "devices/%s/class", address);
	return number_of(path) >> 16 == 2;
}

/* Drivers of DPDK that work beside the kernel's, and other ways past it. */
static bool
serves_dpdk(const char *driver)
{
	static const char *const known[] = {"vfio-pci", "uio_pci_generic", "igb_uio",
					    "mlx4_core", "mlx5_core"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(driver, known[i]) == 0)
			return true;
	return false;
}

static int
give_to_vfio(const char *address)
{
	char path[PATH_SIZE], was[TEXT_SIZE], used[TEXT_SIZE], now[TEXT_SIZE];
	const char *driver;

	snprintf(path, sizeof(path), PCI "devices/%s/driver", address);
	driver = link_name(path, was);
	if (serves_dpdk(driver))
		return 0;
	if (!is_nic(address)) {
		log_error("prepare: device left alone address=%s driver=%s: it is no NIC",
			  address, driver[0] != '\0' ? driver : "none");
		return 1;
	}
	if (is_elsewhere(address)) {
		log_error("prepare: device left alone address=%s: its interface is in "
			  "another network namespace, where somebody may use it; bring it "
			  "back first (ip -n NAMESPACE link set INTERFACE netns 1)",
			  address);
		return 1;
	}
	if (used_as(address, used)[0] != '\0') {
		log_error("prepare: device left alone address=%s interface=%s: it has an "
			  "address or is part of another interface, so the machine "
			  "uses it; take that away first",
			  address, used);
		return 1;
	}
	if (driver[0] != '\0') {
		snprintf(path, sizeof(path), PCI "drivers/%s/unbind", driver);
		put(path, address);
	}
	snprintf(path, sizeof(path), PCI "devices/%s/driver_override", address);
	put(path, "vfio-pci");
	put(PCI "drivers_probe", address);
	snprintf(path, sizeof(path), PCI "devices/%s/driver", address);
	if (strcmp(link_name(path, now), "vfio-pci") != 0) {
		log_error("prepare: device not taken by vfio-pci address=%s: is there an "
			  "IOMMU? `fpmctl doctor` tells",
			  address);
		return 1;
	}
	log_info("prepare: device given to vfio-pci address=%s before=%s", address,
		 driver[0] != '\0' ? driver : "none");
	return 0;
}

int
prepare_machine(const struct config *conf)
{
	bool module = false;
	int rc = conf->hugepages ? reserve_pages(conf) : 0;

	for (unsigned int i = 0; i < conf->n_port; i++) {
		char address[sizeof(conf->port[i].device)], path[PATH_SIZE];

		snprintf(address, sizeof(address), "%s", conf->port[i].device);
		address[strcspn(address, ",")] = '\0';
		snprintf(path, sizeof(path), PCI "devices/%s", address);
		if (access(path, F_OK) < 0)
			continue; /* no PCI device: the kernel has all that it needs */
		if (!module)
			load_module("vfio-pci");
		module = true;
		rc |= give_to_vfio(address);
	}
	return rc;
}
