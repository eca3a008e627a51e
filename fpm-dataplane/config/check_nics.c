/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `keep-nics`: what DPDK's processes can share.                                  [main]
 */
#include "config/check.h"
#include "pci/devargs.h"

/* A NIC, and no bond of some. */
static bool
is_nic(const char *device)
{
	char address[DEVICE_ADDRESS_STRLEN];

	return !device_is_bond(device) && device_address(device, address);
}

void
cfg_check_keep_nics(struct cfg *c, const struct config *conf)
{
	char path[CFG_PATH_MAX];

	if (!conf->keep_nics)
		return;
	if (!conf->hugepages)
		cfg_error_at(c, c->keep_nics_pos, "keep-nics",
			     "two processes share hugepages only; expected "
			     "memory.hugepages: true beside it");
	if (conf->n_core > CONFIG_SHARED_CORES_MAX)
		cfg_error_at(c, c->keep_nics_pos, "keep-nics",
			     "%u cores forward; expected at most %u", conf->n_core,
			     CONFIG_SHARED_CORES_MAX);
	for (unsigned int i = 0; i < conf->n_port; i++) {
		snprintf(path, sizeof(path), "%s.device", c->port_path[i]);
		if (conf->port[i].device[0] != '\0' && !is_nic(conf->port[i].device))
			cfg_error_at(c, conf->port[i].pos, path,
				     "'%s' cannot be kept over a restart; expected a NIC's "
				     "PCI address, or keep-nics: false",
				     conf->port[i].device);
	}
}
