/* SPDX-License-Identifier: BSD-3-Clause */
/* fpmctl doctor: checks of memory, of the drivers of NICs, and of process limits. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/json_row.h"
#include "pci/device.h"

#define HUGE_DIR     "/sys/kernel/mm/hugepages"
#define MEMORY_MIB   256 /* default of memory.size-mib */
#define PROC_TEXT    8192
#define CAP_IPC_LOCK 14 /* capabilities(7) */
#define FILES_SPARE  32 /* spare descriptors for zebra, fpmctl and scrapes */

/* --- hugepages ------------------------------------------------------------------------ */

struct huge {
	unsigned long long total_mib, free_mib;
	char text[160];
};

static void
huge_on_entry(struct exam *e, const char *name, void *ctx)
{
	struct huge *huge = ctx;
	unsigned long long kib, total, unused;
	size_t n = strlen(huge->text);

	if (sscanf(name, "hugepages-%llukB", &kib) != 1)
		return;
	total = (unsigned long long)exam_number(e, 0, HUGE_DIR "/%s/nr_hugepages", name);
	unused = (unsigned long long)exam_number(e, 0, HUGE_DIR "/%s/free_hugepages", name);
	huge->total_mib += total * kib / 1024;
	huge->free_mib += unused * kib / 1024;
	if (total > 0)
		snprintf(huge->text + n, sizeof(huge->text) - n,
			 "%s%llu of %llu MiB, %llu free", n > 0 ? "; " : "", total,
			 kib / 1024, unused);
}

static void
pci_port_ignore(struct exam *e, const char *address, const char *name, const json_t *port)
{
	(void)e;
}

/* Add the command that reserves pages of 2 MiB for `mib` MiB. */
static void
hugepages_fix(struct exam *e, unsigned long long mib)
{
	finding_fix(e, "sysctl -w vm.nr_hugepages=%llu", (mib + 1) / 2);
}

/* Report the memory of a running daemon. */
static void
hugepages_of_daemon(struct exam *e, const struct huge *huge)
{
	unsigned long long mib = (unsigned long long)row_int(e->version, "memory_mib");
	unsigned long long used_kib = 0;
	char status[PROC_TEXT];

	if (row_true(e->version, "hugepages")) {
		exam_read(e, status, sizeof(status), "/proc/%d/status", (int)exam_pid(e));
		(void)status_parse(status, "HugetlbPages", &used_kib);
		finding_add(e, VERDICT_OK, "",
			    "%s; the daemon uses %llu MiB, configured are %llu",
			    huge->text[0] != '\0' ? huge->text : "reserved on demand",
			    used_kib / 1024, mib);
	} else if (exam_pci(e, pci_port_ignore) == 0) {
		finding_add(e, VERDICT_NA, "",
			    "neither the configuration nor a port needs them");
	} else {
		finding_add(e, VERDICT_WARN, "",
			    "memory.hugepages is false: small pages, %s",
			    huge->total_mib > 0 ? "though some are reserved"
						: "none is reserved");
		finding_cost(
			e,
			"TLB misses at every packet; most NICs need huge pages. Reserve "
			"them, then set memory.hugepages to true and restart the daemon.");
		hugepages_fix(e, mib);
	}
}

void
check_hugepages(struct exam *e)
{
	struct huge huge = {0};

	exam_folder(e, HUGE_DIR, huge_on_entry, &huge);
	if (e->version != NULL) {
		hugepages_of_daemon(e, &huge);
	} else if (huge.free_mib >= MEMORY_MIB) {
		finding_add(e, VERDICT_OK, "", "%s (no mount is needed)", huge.text);
	} else {
		finding_add(e, VERDICT_WARN, "",
			    "%llu MiB free, the daemon needs %d by default", huge.free_mib,
			    MEMORY_MIB);
		finding_cost(e, "With memory.hugepages: true, which most NICs need, the "
				"daemon does not start; with false there are TLB misses. "
				"No mount is needed.");
		hugepages_fix(e, huge.total_mib - huge.free_mib + MEMORY_MIB);
	}
}

/* --- drivers and the IOMMU ------------------------------------------------------------ */

static void
iommu_check_nic(struct exam *e, const char *address, const char *name, const json_t *port)
{
	const char *subject = name[0] != '\0' ? name : address;
	struct device d;
	const char *driver = d.driver;
	bool unsafe;

	(void)device_read(e->root, address, &d); /* on failure: a device without a driver */
	unsafe = d.group < 0 || d.unprotected;
	if (port == NULL && strcmp(driver, "vfio-pci") != 0) {
		finding_add(e, VERDICT_NA, subject, "driver %s, of the kernel",
			    driver[0] != '\0' ? driver : "none");
	} else if (device_is_shared(driver)) {
		finding_add(e, VERDICT_OK, subject,
			    "driver %s, which DPDK shares with the kernel", driver);
	} else if (strcmp(driver, "vfio-pci") == 0 && !unsafe) {
		finding_add(e, VERDICT_OK, subject, "driver vfio-pci, IOMMU group %d",
			    d.group);
	} else if (strcmp(driver, "vfio-pci") == 0) {
		finding_add(e, VERDICT_WARN, subject, "driver vfio-pci without an IOMMU");
		finding_cost(e, "A faulty card or driver can write to all memory. Turn on "
				"VT-d or AMD-Vi in the firmware; for a VM the hypervisor "
				"has to offer it. On Intel the kernel also needs:");
		finding_fix_kernel_words(e, "intel_iommu=on iommu=pt");
	} else if (unsafe && device_serves_dpdk(driver)) {
		finding_add(e, VERDICT_WARN, subject, "driver %s without an IOMMU", driver);
		finding_cost(e, "A faulty card or driver can write to all memory, and "
				"without an interrupt per queue an idle forwarder wakes "
				"every 0.8 ms. vfio-pci needs an IOMMU: turn on VT-d or "
				"AMD-Vi in the firmware; for a VM the hypervisor has to "
				"offer it. Then stop the daemon and move the NIC with "
				"`fpmctl device bind`. On Intel the kernel needs first:");
		finding_fix_kernel_words(e, "intel_iommu=on iommu=pt");
	} else {
		finding_add(e, VERDICT_WARN, subject, "driver %s, not vfio-pci",
			    driver[0] != '\0' ? driver : "none");
		finding_cost(e, "No protection of memory, no interrupt per queue: an idle "
				"forwarder wakes every 0.8 ms. Stop the daemon before the "
				"device changes its driver.");
		finding_fix(e, "fpmctl device bind %s", address);
	}
}

void
check_iommu(struct exam *e)
{
	if (exam_pci(e, iommu_check_nic) == 0)
		finding_add(e, VERDICT_NA, "", "no port is a PCI device");
}

/* --- limits of the process ------------------------------------------------------------ */

void
check_memlock(struct exam *e)
{
	char text[PROC_TEXT];
	unsigned long long soft, caps = 0;
	pid_t pid = exam_pid(e);

	if (exam_no_daemon(e, ""))
		return;
	if (exam_pci(e, pci_port_ignore) == 0) {
		finding_add(e, VERDICT_NA, "",
			    "no port is a NIC with direct memory access");
		return;
	}
	exam_read(e, text, sizeof(text), "/proc/%d/status", (int)pid);
	(void)status_parse_hex(text, "CapEff", &caps);
	exam_read(e, text, sizeof(text), "/proc/%d/limits", (int)pid);
	if (limit_parse(text, "Max locked memory", &soft) < 0)
		finding_add(e, VERDICT_NA, "", "/proc/%d/limits is not readable", (int)pid);
	else if ((caps >> CAP_IPC_LOCK & 1) != 0 || soft == UINT64_MAX)
		finding_add(e, VERDICT_OK, "", "no limit");
	else if (soft >> 20 >= (unsigned long long)row_int(e->version, "memory_mib"))
		finding_add(e, VERDICT_OK, "", "%llu MiB", soft >> 20);
	else {
		finding_add(e, VERDICT_FAIL, "", "%llu KiB", soft >> 10);
		finding_cost(e, "vfio cannot map the packet memory: a port fails to start. "
				"systemd: LimitMEMLOCK=infinity");
		finding_fix(e, "prlimit --pid %d --memlock=unlimited", (int)pid);
	}
}

static void
entry_count(struct exam *e, const char *name, void *n)
{
	++*(unsigned long long *)n;
}

void
check_files(struct exam *e)
{
	unsigned long long soft, used = 0;
	pid_t pid = exam_pid(e);
	char text[PROC_TEXT], path[64];

	if (exam_no_daemon(e, ""))
		return;
	exam_read(e, text, sizeof(text), "/proc/%d/limits", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	exam_folder(e, path, entry_count, &used);
	if (limit_parse(text, "Max open files", &soft) < 0)
		finding_add(e, VERDICT_NA, "", "/proc/%d/limits is not readable", (int)pid);
	else if (soft == UINT64_MAX)
		finding_add(e, VERDICT_OK, "", "%llu open, no limit", used);
	else if (soft - used >= FILES_SPARE && used < soft)
		finding_add(e, VERDICT_OK, "", "%llu open, %llu allowed", used, soft);
	else {
		finding_add(e, VERDICT_WARN, "", "%llu open, only %llu allowed", used,
			    soft);
		finding_cost(e,
			     "zebra, fpmctl and the metrics page may be refused. systemd: "
			     "LimitNOFILE=65536");
		finding_fix(e, "prlimit --pid %d --nofile=65536:65536", (int)pid);
	}
}
