/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: values that mean something on this machine: names, devices, CPUs,
 * namespaces, addresses. Functions for struct cfg_key, and checks over all ports.
 * Private to config/.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/config.h"
#include "config/yaml_walk.h"

void cfg_take_tap(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_device(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_cores(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_port_cores(struct cfg *, const struct cfg_key *, const struct cfg_at *,
			 void *);
void cfg_take_plugins(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_netns(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_path(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_listen(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_peer(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_users(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);
void cfg_take_memory(struct cfg *, const struct cfg_key *, const struct cfg_at *, void *);

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

/* "127.0.0.1:2620" or "[::1]:2620". Returns 0 or -EINVAL. */
int cfg_listen_parse(const char *text, struct sockaddr_storage *out);

#endif
