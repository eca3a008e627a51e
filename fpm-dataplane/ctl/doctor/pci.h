/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pci: parse the PCI Express capability in the configuration space of a PCI function
 * (/sys/bus/pci/devices/ADDRESS/config). Pure, no state.
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
	bool tag_able, tag_on;   /* Extended Tag: 256 outstanding reads instead of 32 */
	unsigned int read_bytes; /* Max Read Request Size */
};

/*
 * Parse `len` octets of configuration space (PCI Express Base Specification 3.0, 7.8).
 *
 * Returns 0; -ENODATA if `len` is too small (only root can read more than 64 octets),
 * -ENODEV if the device does not answer (all ones), -ENOENT if it lacks the capability (as
 * devices of hypervisors do), -EPROTO if the list of capabilities is malformed. `out` is
 * written only if it returns 0.
 */
int pci_express_parse(const uint8_t *config, size_t len, struct pci_express *out);

/* Return the rate of a link in Gbit/s and direction, after line coding. */
double pci_gbit_per_s(unsigned int speed, unsigned int width);

#endif
