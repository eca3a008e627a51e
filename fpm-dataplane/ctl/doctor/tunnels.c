/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that forwarders, not the kernel, serve the tunnels of the control
 * namespace, and that their MTUs fit the links.
 */
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

#define VTEPS_ASKED_MAX 256u /* VTEPs of a bridge whose route is looked up */

/* Return true for the tunnel without addresses that each module creates by itself. */
static bool
is_fallback(const json_t *row)
{
	return !row_has(row, "local") && !row_has(row, "remote") && !row_true(row, "up");
}

static void
tunnel_check(struct exam *e, const json_t *row)
{
	const char *reason = row_str(row, "by_kernel"), *name = row_str(row, "name");
	bool ipsec = strcmp(reason, "ipsec") == 0;

	finding_add(e, ipsec ? VERDICT_OK : VERDICT_WARN, name, "served by the kernel: %s",
		    reason);
	if (ipsec) /* there is no other solution */
		return;
	finding_cost(e, "Its packets are forwarded at the speed of the kernel, within the "
			"rates of the classes kernel-route and local.");
	if (strcmp(reason, "limit") == 0)
		finding_fix(e, "raise limits.vlans, and restart");
	else if (strcmp(row_str(row, "tunnel"), "vxlan") == 0)
		finding_fix(e, "make it the only port of a bridge (manual: Interfaces, "
			       "VXLAN). The kernel goes on to bridge");
	else
		finding_fix(e, "create the tunnel without this setting (manual: "
			       "Interfaces, Tunnels)");
}

/* Return the MTU of an interface, 0: unknown. */
static long long
mtu_of(const struct exam *e, const char *dev)
{
	const json_t *rows[] = {e->ports, e->interfaces}, *row;
	size_t i;

	for (unsigned int k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		json_array_foreach (rows[k], i, row)
			if (strcmp(row_str(row, "name"), dev) == 0 && row_has(row, "mtu"))
				return row_int(row, "mtu");
	return 0;
}

/*
 * Mention a tunnel whose MTU is larger than the packets that fit into the links to its far
 * end. Return true if it is.
 */
static bool
mtu_check(struct exam *e, const json_t *tunnel, const char *vrf, const char *address)
{
	json_t *route = exam_route(e, vrf, address);
	const char *name = row_str(tunnel, "name");
	long long room, mtu = row_int(tunnel, "mtu");
	const json_t *hop;
	bool found = false;
	size_t i;

	json_array_foreach (json_object_get(route, "nexthops"), i, hop) {
		room = mtu_of(e, row_str(hop, "dev")) - row_int(tunnel, "overhead");
		if (room <= 0 || mtu <= room || found)
			continue;
		found = true;
		finding_add(e, VERDICT_OK, name,
			    "MTU %lld, but only %lld fit by %s; %sip link set %s mtu %lld",
			    mtu, room, row_str(hop, "dev"), e->in, name, room);
	}
	json_decref(route);
	return found;
}

/* Check the MTU of a bridge or VLAN over a vxlan device, by the VTEPs of its neighbors. */
static void
vxlan_mtu_check(struct exam *e, const json_t *svi, const json_t *neighbors)
{
	const char *name = row_str(svi, "name");
	json_t *asked = json_object(); /* VTEPs: one may have thousands of neighbors */
	const json_t *row;
	size_t i;

	json_array_foreach (neighbors, i, row) {
		const char *vtep = row_str(row, "vtep");

		if (vtep[0] == '\0' || strcmp(row_str(row, "dev"), name) != 0 ||
		    json_object_get(asked, vtep) != NULL)
			continue;
		if (json_object_size(asked) == VTEPS_ASKED_MAX ||
		    mtu_check(e, svi, "", vtep))
			break;
		json_object_set_new(asked, vtep, json_true());
	}
	json_decref(asked);
}

/* Check the MTUs of all that forwarders encapsulate, except of vxlan devices in VRFs. */
static void
mtus_check(struct exam *e)
{
	json_t *neighbors = NULL;
	const json_t *row;
	size_t i;

	json_array_foreach (e->interfaces, i, row) {
		if (!row_has(row, "overhead") || row_has(row, "by_kernel"))
			continue;
		if (!row_has(row, "vxlan")) {
			(void)mtu_check(e, row, row_str(row, "outer_vrf"),
					row_str(row, "remote"));
			continue;
		}
		if (neighbors == NULL)
			neighbors = exam_ask(e, "neighbors");
		vxlan_mtu_check(e, row, neighbors);
	}
	json_decref(neighbors);
}

void
check_tunnels(struct exam *e)
{
	unsigned int n = 0, by_kernel = 0;
	const json_t *row;
	size_t i;

	if (exam_no_daemon(e, ""))
		return;
	json_array_foreach (e->interfaces, i, row) {
		if (!row_has(row, "tunnel") || is_fallback(row))
			continue;
		n++;
		if (!row_has(row, "by_kernel"))
			continue;
		by_kernel++;
		tunnel_check(e, row);
	}
	mtus_check(e);
	if (n == 0)
		finding_add(e, VERDICT_NA, "", "no tunnel");
	else if (by_kernel == 0)
		finding_add(e, VERDICT_OK, "", "forwarders serve %u", n);
}
