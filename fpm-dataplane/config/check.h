/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: values that mean something on this machine: names, devices, CPUs, namespaces; and
 * checks over all ports. Readers that struct cfg_key names are in types.h. Private to config/.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/config.h"
#include "config/yaml_walk.h"

/* Values of types.c's types that are looked up. */
cfg_take_fn cfg_take_tap, cfg_take_device;

/* Who is meant when the file does not say whose programs may be zebra. */
void cfg_find_users(struct config *);

/* Has a port before `port` the same TAP name, the same device? Then one error. */
void cfg_check_tap_twin(struct cfg *, const struct cfg_at *, const struct config *,
			const struct config_port *port);
void cfg_check_device_twin(struct cfg *, const struct cfg_at *, const struct config *,
			   const struct config_port *port);

/* Do the cores of ports forward, one a queue? Else an error each. */
void cfg_check_port_cores(struct cfg *, const struct config *);

/* Can all NICs be kept, where they are to be? Else an error each. */
void cfg_check_keep_nics(struct cfg *, const struct config *);

/* What shows only when the whole file is known: names in the control namespace, twins. */
void cfg_check_whole(struct cfg *, const struct config *);

#endif
