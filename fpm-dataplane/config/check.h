/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: read values that depend on this machine (names, devices, CPUs, namespaces), and
 * check values against each other. types.h declares the readers that rows of struct cfg_key
 * name. Private to config/.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/config.h"
#include "config/yaml_walk.h"

/*
 * Fill the list of users for `fpm.users: auto`: frr if /etc/passwd has it, else none.
 * Report an error if /etc/passwd exists and cannot be read.
 */
void cfg_find_users(struct cfg *, struct config *);

/*
 * Report an error for each port whose `cores` list names a CPU that does not forward, or
 * does not have one CPU for each queue.
 */
void cfg_check_port_cores(struct cfg *, const struct config *);

/*
 * Report an error for each reason why `keep-nics` cannot work: no hugepages, too many
 * cores, a port that is not a NIC.
 */
void cfg_check_keep_nics(struct cfg *, const struct config *);

/*
 * Check values that depend on other values of the file: cores, `keep-nics`, listeners, and
 * TAP names in the control namespace.
 */
void cfg_check_whole(struct cfg *, const struct config *);

#endif
