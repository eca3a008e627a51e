/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets the link of a port's device as its TAP is set, and limits the log lines about links
 * of a port. [neigh]
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "neigh/internal.h"

#define LOG_BURST 3 /* log lines per port; then one a second */

bool
carrier_log_allowed(struct iface *ifc)
{
	double now_s = monotonic_s();

	ifc->log_credit += now_s - ifc->log_credit_at_s;
	ifc->log_credit_at_s = now_s;
	if (ifc->log_credit > LOG_BURST)
		ifc->log_credit = LOG_BURST;
	if (ifc->log_credit < 1)
		return false;
	ifc->log_credit--;
	return true;
}

int
device_result(struct iface *port, int rc)
{
	port->dev_due |= rc == -EMFILE || rc == -ENFILE;
	return rc;
}

/*
 * Return true if an earlier daemon may have set the link of the device down. fpm-nics may
 * have kept such a device. A new device has its link up, and is not asked to set it up,
 * because some drivers then negotiate again.
 */
static bool
carrier_may_be_taken_down(const struct port *port)
{
	return port->kernel_if[0] != '\0' || (port->held && !port_link_up(port));
}

/*
 * Set the link of the device as the TAP is set (`shutdown` in vtysh, `ip link set down`),
 * so that the peer sees a lost link, as with an interface of the kernel.
 */
void
carrier_follow_tap(struct iface *ifc, bool admin_up)
{
	const char *state = admin_up ? "up" : "down";
	bool first = !ifc->dev_told;
	int rc;

	if (!first && ifc->dev_wanted_up == admin_up)
		return;
	ifc->dev_told = true;
	ifc->dev_wanted_up = admin_up;
	if (first && admin_up && !carrier_may_be_taken_down(ifc->port))
		return;
	rc = device_result(ifc, port_set_link(ifc->port, admin_up));
	if (rc == 0 && first && admin_up)
		return;
	if (!carrier_log_allowed(ifc))
		ifc->n_unlogged++; /* the next line about the carrier counts it */
	else if (rc < 0)
		log_warn("neigh: link of device not set port=%s state=%s error=\"%s\"%s",
			 ifc->port->name, state, strerror(-rc),
			 admin_up ? "" : " effect=peer-keeps-carrier");
	else
		log_info("neigh: link of device set port=%s state=%s", ifc->port->name,
			 state);
}
