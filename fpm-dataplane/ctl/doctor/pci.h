/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration space of a PCI function, as /sys/bus/pci/devices/ADDRESS/config has it:
 * what its PCI Express capability says. Pure, no state.
 */
#ifndef CTL_DOCTOR_PCI_H
#define CTL_DOCTOR_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCI_CONFIG_BYTES 256

struct pci_express {
	unsigned int speed,
		speed_max; /* generation, 1: 2.5 GT/s ... 6: 64 GT/s; 0: no link */
	unsigned int width, width_max; /* lanes */
	bool tag_able, tag_on;         /* Extended Tag: 256 reads under way, not 32 */
	unsigned int read_bytes;       /* Max Read Request Size */
};

/*
 * Understand `len` octets of configuration space (PCI Express Base Specification 3.0, 7.8).
 *
 * Returns 0; -ENODATA when too little was read (only root gets more than 64 octets), -ENODEV
 * when the device does not answer (all ones), -ENOENT without such a capability (a device of a
 * hypervisor), -EPROTO when the list of capabilities is broken. `out` is untouched unless 0.
 */
int pci_express_parse(const uint8_t *config, size_t len, struct pci_express *out);

/* What a link of that generation and width carries, a direction, after line coding. */
double pci_gbit_per_s(unsigned int speed, unsigned int width);

#endif
