/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open and close all ports, one after the other. A device may need seconds to start, so the
 * service manager gets a sign of progress for each port.                          [main]
 */
#include "manage/ports.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "manage/port_conf.h"
#include "pci/memif.h"
#include "port/claim.h"
#include "port/nicd_client.h"
#include "restart/fdstore.h"

int
ports_open(struct hotplug *h, const struct config *conf, unsigned int *n)
{
	struct port *port;
	char why[256], step[64];
	int rc;

	for (unsigned int i = 0; i < conf->n_port; i++) {
		const struct config_port *cp = &conf->port[i];
		uint64_t begin = monotonic_ms();
		struct hotplug_reuse reuse;

		if (memif_waits(cp->device)) {
			log_warn("port: device not opened yet name=%s "
				 "reason=memif-server-absent",
				 cp->tap);
			fdstore_keep_tap(conf, cp->tap);
			continue;
		}
		reuse = (struct hotplug_reuse){.tap_fd = fdstore_take_tap(conf, cp->tap)};
		snprintf(step, sizeof(step), "port %s", cp->tap);
		sd_start_step(step);
		rc = hotplug_open(h, conf, cp, &reuse, &port, why, sizeof(why));
		if (rc < 0) {
			log_error("main: port not opened file=%s line=%d name=%s "
				  "device=\"%s\" reason=\"%s\"",
				  conf->file, cp->pos.line, cp->tap, cp->device, why);
			return rc;
		}
		++*n;
		log_info("main: port opened name=%s device=%s ifindex=%u queues=%u tap=%s "
			 "took_ms=%llu",
			 cp->tap, cp->device, port->tap.ifindex, port->n_rxq,
			 port->tap.ifindex == 0 ? "none"
			 : port->tap_kept       ? "kept"
			 : port->tap_new        ? "made"
						: "found",
			 (unsigned long long)(monotonic_ms() - begin));
	}
	return 0;
}

void
ports_allow(pid_t predecessor)
{
	claim_allow(predecessor);
}

void
ports_claim(struct port *port)
{
	claim_allow(0);
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&port[i]))
			port_claim(&port[i]);
}

void
ports_answer(struct port *port)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&port[i]) && port[i].claim >= 0)
			claim_answer(port[i].claim);
}

void
ports_release(struct port *port)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&port[i]))
			port_release(&port[i]);
}

void
ports_close(struct port *port, bool failed)
{
	uint64_t begin = monotonic_ms();
	unsigned int n = 0;

	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		if (!port_is_there(&port[i]))
			continue;
		if (failed && port[i].tap_new)
			tap_destroy(&port[i].tap);
		port_close(&port[i]);
		port[i].ifidx = 0; /* no other thread runs */
		n++;
	}
	if (n > 0 && !failed)
		log_info("main: ports closed ports=%u took_ms=%llu", n,
			 (unsigned long long)(monotonic_ms() - begin));
}

bool
ports_could_be_shared(const struct config *conf)
{
	bool all = true;

	for (unsigned int i = 0; i < conf->n_port; i++) {
		struct port_conf pc =
			port_conf_from_config(conf, &conf->port[i], conf->n_core);

		all &= nicd_is_connected() ? nicd_has_open(&pc) : port_is_shared(pc.device);
	}
	return all;
}

bool
ports_are_shared(const struct port *port)
{
	bool all = true;

	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (port_is_there(&port[i]))
			all &= port_is_shared(port[i].device) || port[i].held;
	return all;
}
