/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warn about tunnels that forwarders leave to the kernel, and about vxlan devices with a
 * filter of VNIs. neigh has listed both. [warn]
 */
#include <stdio.h>

#include "warn/impl.h"

void
kernel_tunnel_add(struct warn *w, const char *kind, const char *name, const char *reason)
{
	char where[128];

	snprintf(where, sizeof(where), "%s %s: %s", kind, name, reason);
	list_add(&w->list, WARNING_TUNNEL, where,
		 "Linux encapsulates and decapsulates the packets of the tunnel.",
		 "The same, by the kernel, at its speed: forwarders do not serve the "
		 "tunnel.");
}

static void
vnifilter_add(struct warn *w, const json_t *row)
{
	char where[64];

	snprintf(where, sizeof(where), "vnifilter of %s", row_text(row, "name"));
	list_add(&w->list, WARNING_VNIFILTER, where,
		 "Linux drops packets whose VNI is not in the list of the device (bridge "
		 "vni).",
		 "A VNI is accepted while a VLAN has it (bridge vlan), also without an "
		 "entry in that list.");
}

void
tunnels_scan(struct warn *w)
{
	const json_t *row;
	size_t i;

	json_array_foreach (w->tunnels, i, row)
		if (json_is_string(json_object_get(row, "reason")))
			kernel_tunnel_add(w, row_text(row, "kind"), row_text(row, "name"),
					  row_text(row, "reason"));
		else
			vnifilter_add(w, row);
}
