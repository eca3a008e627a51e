/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: checks of the PCI Express settings of NICs, from their configuration
 * space.
 */
#include <errno.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/pci.h"
#include "ctl/json_row.h"

#define READ_BYTES_MIN  512  /* the kernel's default */
#define READ_BYTES_WANT 4096 /* 5 in bits 14 to 12 of Device Control */

/*
 * Return true for a device of the hypervisor: devices of virtio and VMware have the
 * capability without a real link. A physical device with virtio's vendor id, outside a VM,
 * is checked like other devices.
 */
static bool
nic_is_paravirtual(const struct exam *e, const char *config)
{
	static const uint8_t vendor[][2] = {{0xf4, 0x1a}, {0xad, 0x15}};
	char cpu[8192];

	if (memcmp(config, vendor[0], 2) != 0 && memcmp(config, vendor[1], 2) != 0)
		return false;
	return exam_read(e, cpu, sizeof(cpu), "/proc/cpuinfo") > 0 &&
	       strstr(cpu, " hypervisor") != NULL;
}

/* Read the device's capability. Returns false, and adds a finding, if that fails. */
static bool
express_read(struct exam *e, const char *address, const char *subject,
	     struct pci_express *x)
{
	char config[PCI_CONFIG_BYTES + 1];
	int n = exam_read(e, config, sizeof(config), "/sys/bus/pci/devices/%s/config",
			  address);
	int rc = n < 0 ? n : pci_express_parse((const uint8_t *)config, (size_t)n, x);

	if (rc == 0 && !nic_is_paravirtual(e, config))
		return true;
	if (rc == 0)
		finding_add(e, VERDICT_NA, subject,
			    "a device of the hypervisor, without a slot");
	else if (rc == -ENOENT && n >= 0)
		finding_add(e, VERDICT_NA, subject,
			    "no PCI Express, perhaps a device of the hypervisor");
	else if (rc == -ENODATA)
		finding_add(e, VERDICT_NA, subject, "only root may read all of %s",
			    address);
	else if (rc == -EPROTO)
		finding_add(e, VERDICT_NA, subject, "%s: its capabilities are malformed",
			    address);
	else if (rc == -ENODEV) {
		finding_add(e, VERDICT_FAIL, subject, "%s does not answer: all ones",
			    address);
		finding_cost(e, "The device is gone or asleep: no packets pass. Messages "
				"of the kernel:");
		finding_fix(e, "dmesg | grep %s", address);
	} else
		finding_add(e, VERDICT_NA, subject, "%s: %s", address, strerror(-rc));
	return false;
}

static const char *
speed_text(unsigned int speed)
{
	static const char *const text[] = {"0", "2.5", "5", "8", "16", "32", "64"};

	return speed < sizeof(text) / sizeof(text[0]) ? text[speed] : "?";
}

static void
nic_check_link(struct exam *e, const char *address, const char *name, const json_t *port)
{
	const char *subject = name[0] != '\0' ? name : address;
	struct pci_express x;

	if (!express_read(e, address, subject, &x))
		return;
	if (x.width_max == 0 || x.width == 0) {
		finding_add(e, VERDICT_NA, subject, "no link: part of the chipset");
	} else if (x.speed >= x.speed_max && x.width >= x.width_max) {
		finding_add(e, VERDICT_OK, subject,
			    "x%u at %s GT/s, its maximum: %.0f Gbit/s", x.width,
			    speed_text(x.speed), pci_gbit_per_s(x.speed, x.width));
	} else {
		finding_add(e, VERDICT_WARN, subject,
			    "x%u at %s GT/s, the maximum is x%u at %s GT/s", x.width,
			    speed_text(x.speed), x.width_max, speed_text(x.speed_max));
		finding_cost(
			e,
			"%.0f Gbit/s of %.0f per direction, less the overhead of PCIe. "
			"Check another slot, the firmware's setting of this slot, a riser. "
			"Some cards slow down only while idle: check again under load.",
			pci_gbit_per_s(x.speed, x.width),
			pci_gbit_per_s(x.speed_max, x.width_max));
		finding_fix(e, "lspci -vv -s %s | grep Lnk", address);
	}
}

static void
nic_check_tag(struct exam *e, const char *address, const char *name, const json_t *port)
{
	const char *subject = name[0] != '\0' ? name : address;
	struct pci_express x;

	if (!express_read(e, address, subject, &x))
		return;
	if (x.tag_on) {
		finding_add(e, VERDICT_OK, subject, "on");
	} else if (!x.tag_able) {
		finding_add(e, VERDICT_NA, subject, "the device has none");
	} else {
		finding_add(e, VERDICT_WARN, subject, "off, though the device supports it");
		finding_cost(
			e, "Only 32 outstanding reads: 6 to 7 Gbit/s of 80 were lost with "
			   "128-octet frames (two 40GbE ports). Until the next boot:");
		finding_fix(e, "setpci -s %s CAP_EXP+8.w=0100:0100", address);
	}
}

static void
nic_check_read(struct exam *e, const char *address, const char *name, const json_t *port)
{
	const char *subject = name[0] != '\0' ? name : address;
	struct pci_express x;

	if (!express_read(e, address, subject, &x))
		return;
	if (x.read_bytes >= READ_BYTES_MIN) {
		finding_add(e, VERDICT_OK, subject, "%u octets", x.read_bytes);
	} else {
		finding_add(e, VERDICT_WARN, subject, "%u octets", x.read_bytes);
		finding_cost(e,
			     "A long frame needs many reads, so the port sends less than "
			     "it can. Until the next boot, to %d:",
			     READ_BYTES_WANT);
		finding_fix(e, "setpci -s %s CAP_EXP+8.w=5000:7000", address);
	}
}

static void
nics_check(struct exam *e, void (*each)(struct exam *e, const char *address,
					const char *name, const json_t *port))
{
	if (exam_pci(e, each) == 0)
		finding_add(e, VERDICT_NA, "", "no port is a PCI device");
}

void
check_pcie_link(struct exam *e)
{
	nics_check(e, nic_check_link);
}

void
check_ext_tag(struct exam *e)
{
	nics_check(e, nic_check_tag);
}

void
check_read_request(struct exam *e)
{
	nics_check(e, nic_check_read);
}
