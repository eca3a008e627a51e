/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types: functions that read a value from the file (`take` of struct cfg_key) and print a
 * value (`text`). Private to config/.
 */
#ifndef CONFIG_TYPES_H
#define CONFIG_TYPES_H

#include "config/yaml_walk.h"

/* Return the field of a key in `base`, the struct that its mapping fills. */
static inline const void *
cfg_value(const struct cfg_key *key, const void *base)
{
	return (const char *)base + key->offset;
}

/*
 * Write the text to `buf`: without quotes if each YAML reader reads it as a string, else in
 * quotes. Return buf.
 */
const char *cfg_quoted(const char *text, char buf[CFG_TEXT_MAX]);

/* Read a number within the bounds of the key. Record an error and return -EINVAL, or 0. */
int cfg_number(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
	       unsigned int *out);

/* Read "127.0.0.1:2620" or "[::1]:2620". Return 0 or -EINVAL. */
int cfg_listen_parse(const char *text, struct sockaddr_storage *out);

/* types.c */
cfg_take_fn cfg_take_uint;
cfg_text_fn cfg_text_uint;
cfg_take_fn cfg_take_mib;
cfg_text_fn cfg_text_mib;
cfg_take_fn cfg_take_rate;
cfg_text_fn cfg_text_rate;
cfg_take_fn cfg_take_bool, cfg_take_keep_nics;
cfg_text_fn cfg_text_bool;
cfg_take_fn cfg_take_filter_tables;
cfg_text_fn cfg_text_filter_tables;
cfg_take_fn cfg_take_word; /* one of key->words, as a bool or an enum */
cfg_text_fn cfg_text_word;
cfg_take_fn cfg_take_fpm_listen;
cfg_text_fn cfg_text_listen;
cfg_take_fn cfg_take_metrics;
cfg_text_fn cfg_text_metrics;
cfg_take_fn cfg_take_peer;
cfg_text_fn cfg_text_peer;
cfg_take_fn cfg_take_address; /* an address of one host, or auto: AF_UNSPEC */
cfg_text_fn cfg_text_address;
cfg_take_fn cfg_take_collectors;
cfg_text_fn cfg_text_collectors;
cfg_take_fn cfg_take_dplane; /* into conf->bfd */
cfg_text_fn cfg_text_dplane;

/* check_ports.c */
cfg_take_fn cfg_take_port_tap;
cfg_text_fn cfg_text_tap;
cfg_take_fn cfg_take_port_device;
cfg_text_fn cfg_text_device;
cfg_text_fn cfg_text_queues; /* read by cfg_take_uint */

/* check.c: values that depend on this machine */
cfg_take_fn cfg_take_netns, cfg_take_path;
cfg_text_fn cfg_text_string; /* in types.c */
cfg_take_fn cfg_take_memory; /* printed by cfg_text_uint */
cfg_take_fn cfg_take_plugins;
cfg_text_fn cfg_text_plugins;

/* check_cores.c */
cfg_take_fn cfg_take_cores;
cfg_text_fn cfg_text_cores;
cfg_take_fn cfg_take_port_cores;
cfg_text_fn cfg_text_port_cores;

/* check_users.c */
cfg_take_fn cfg_take_users;
cfg_text_fn cfg_text_users;

#endif
