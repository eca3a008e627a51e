/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check that forwarders, not the kernel, serve the tunnels of the control
 * namespace, and that their MTUs fit the links.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/json_row.h"

#define VTEPS_ASKED_MAX 256u /* VTEPs of a bridge that are looked up at most */

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
			       "VXLAN). The kernel continues to bridge");
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

void
narrow_find(struct exam *e, struct narrow *n, const char *vrf, const char *address,
	    long long overhead)
{
	json_t *route = exam_route(e, vrf, address);
	const json_t *hop;
	size_t i;

	json_array_foreach (json_object_get(route, "nexthops"), i, hop) {
		const char *dev = row_str(hop, "dev");
		long long room = mtu_of(e, dev) - overhead;

		if (room <= 0 || (n->room != 0 && n->room <= room))
			continue;
		n->room = room;
		snprintf(n->dev, sizeof(n->dev), "%s", dev);
	}
	json_decref(route);
}

static void
narrow_find_of(struct exam *e, struct narrow *n, const json_t *tunnel, const char *address)
{
	narrow_find(e, n, row_str(tunnel, "outer_vrf"), address,
		    row_int(tunnel, "overhead"));
}

/*
 * Mention a tunnel whose MTU is larger than the packets that fit into its narrowest link.
 */
static void
mtu_check(struct exam *e, const struct narrow *n, const json_t *tunnel)
{
	const char *name = row_str(tunnel, "name");
	long long mtu = row_int(tunnel, "mtu");

	if (n->room == 0 || mtu <= n->room)
		return;
	finding_add(e, VERDICT_OK, name,
		    "MTU %lld, but only %lld fit by %s; %sip link set %s mtu %lld", mtu,
		    n->room, n->dev, e->in, name, n->room);
}

/*
 * Update the narrowest link with the links to the VTEPs of all neighbors on a bridge or
 * VLAN over a vxlan device.
 */
static void
narrow_find_vteps(struct exam *e, struct narrow *n, const json_t *svi,
		  const json_t *neighbors)
{
	const char *name = row_str(svi, "name");
	json_t *asked = json_object(); /* VTEPs; many neighbors may have the same VTEP */
	const json_t *row;
	size_t i;

	json_array_foreach (neighbors, i, row) {
		const char *vtep = row_str(row, "vtep");

		if (vtep[0] == '\0' || strcmp(row_str(row, "dev"), name) != 0 ||
		    json_object_get(asked, vtep) != NULL)
			continue;
		if (json_object_size(asked) == VTEPS_ASKED_MAX)
			break;
		narrow_find_of(e, n, svi, vtep);
		json_object_set_new(asked, vtep, json_true());
	}
	json_decref(asked);
}

/* Check the MTU of each interface whose packets forwarders encapsulate. */
static void
mtus_check(struct exam *e)
{
	json_t *neighbors = NULL;
	const json_t *row;
	size_t i;

	json_array_foreach (e->interfaces, i, row) {
		struct narrow n = {.room = 0};

		if (!row_has(row, "overhead") || row_has(row, "by_kernel"))
			continue;
		if (!row_has(row, "vxlan")) {
			narrow_find_of(e, &n, row, row_str(row, "remote"));
		} else {
			if (neighbors == NULL)
				neighbors = exam_ask(e, "neighbors");
			narrow_find_vteps(e, &n, row, neighbors);
		}
		mtu_check(e, &n, row);
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
