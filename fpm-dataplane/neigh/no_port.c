/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces that are not on a port: tunnels (tunnel.c), and bridges over a vxlan device
 * (vxlan.c). Give each interface its number. If the dataplane does not serve an interface
 * and leaves it to the kernel, store the reason. Runs in neigh.
 */
#include "neigh/internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"

/*
 * Store the reason. Log it, except for the tunnel without addresses that each tunnel module
 * of the kernel makes by itself.
 */
void
tunnel_refuse(struct neigh *n, struct link *l, const char *reason)
{
	static const uint8_t any[16];
	const struct kmon_tunnel *t = &l->kernel.tunnel;

	if (reason != NULL && l->tunnel_refused != reason &&
	    (memcmp(t->local, any, sizeof(any)) != 0 ||
	     memcmp(t->remote, any, sizeof(any)) != 0))
		log_warn("neigh: tunnel left to the kernel dev=%s kind=%s reason=%s",
			 l->kernel.name, tunnel_kind(&l->kernel), reason);
	l->tunnel_refused = reason;
	link_count_vxlan(n, l);
}

uint16_t
tunnel_take_number(struct neigh *n, struct link *l)
{
	uint16_t ifidx = vlan_take_number(n);

	if (ifidx == 0) {
		table_refuse(TABLE_vlans);
		n->vlan_left_out = true;
		return 0;
	}
	table_used(TABLE_vlans, ++n->n_vlans);
	n->iface[ifidx] = (struct iface){.port = &n->no_port,
					 .tunnel = true,
					 .forward4 = !l->forward4_off,
					 .kernel = l->kernel,
					 .present = true};
	counters_interface_begin(ifidx);
	if (ifidx >= n->iface_end)
		n->iface_end = ifidx + 1;
	return ifidx;
}

void
tunnel_drop_number(struct neigh *n, uint16_t ifidx)
{
	nb_forget_iface(n, ifidx);
	n->iface[ifidx].present = false;
	/*
	 * Publish the interface as down, because a forwarder that is between two stages may
	 * still read it. The forwarder then sends nothing.
	 */
	iface_refresh(n, ifidx);
	iface_lends_no_more(n, ifidx);
	vlan_retire_number(n, ifidx);
}
