/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schema: the keys that a file may have, and their defaults. Private to config/.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include "config/yaml_walk.h"

extern const struct cfg_key cfg_top_keys[], cfg_port_keys[];

/*
 * Fill a configuration with the defaults of its optional keys. config_port_defaults() of
 * load.h does so for a port.
 */
void cfg_defaults(struct config *conf);

#endif
