/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VRFs of the kernel: each of their tables has a number, by which packets of the members
 * find their FIB. rib creates the FIB when it gets the number. Runs in neigh. Two VRFs may
 * share a table and then share the number. A number is reused as late as possible, because
 * a packet that waits for a neighbor still has it.
 */
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "neigh/internal.h"

void
vrf_device_publish(struct neigh *n, uint16_t number)
{
	const struct vrf *v = &n->vrf[number];
	const struct link *l = v->refs > 0 ? link_find(n, v->named_by) : NULL;
	uint64_t device = l == NULL ? 0 : fib_vrf_device_make(l->ifindex, link_urpf4(n, l));

	atomic_store_explicit(&n->fib->vrf_device[number], device, memory_order_relaxed);
}

static void
vrf_tell(struct neigh *n, uint16_t number, const char *name, bool gone)
{
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	m->number = number;
	m->table = n->vrf[number].table;
	m->gone = gone;
	snprintf(m->name, sizeof(m->name), "%s", name);
	worker_send(n->conf.rib, &m->m);
	vrf_device_publish(n, number);
}

/* Return the number of a table; FIB_VRF_NONE: it has none. */
static uint16_t
vrf_number(const struct neigh *n, uint32_t table)
{
	if (table == 0)
		return 0;
	for (uint16_t i = 1; i < n->vrf_end; i++)
		if (n->vrf[i].refs > 0 && n->vrf[i].table == table)
			return i;
	return FIB_VRF_NONE;
}

uint16_t
vrf_of(struct neigh *n, const struct link *l)
{
	const struct link *master = link_find(n, l->kernel.master);

	/*
	 * The master is not known (yet, or any longer): it may be a VRF, so do not use
	 * table main.
	 */
	if (l->kernel.master != 0 && (master == NULL || !master->known))
		return FIB_VRF_NONE;
	return vrf_number(n, link_table(n, l));
}

/* Return a free number; FIB_VRF_NONE: none is free. */
static uint16_t
vrf_new_number(struct neigh *n)
{
	for (unsigned int tried = 1; tried < FIB_VRF_NONE; tried++) {
		uint16_t number = n->next_vrf % (FIB_VRF_NONE - 1) + 1;

		n->next_vrf = number;
		if (n->vrf[number].refs > 0)
			continue;
		if (number >= n->vrf_end)
			n->vrf_end = number + 1;
		return number;
	}
	return FIB_VRF_NONE;
}

static void
vrf_take_number(struct neigh *n, struct link *l, uint32_t table)
{
	l->vrf = vrf_number(n, table);
	if (l->vrf != FIB_VRF_NONE) {
		n->vrf[l->vrf].refs++;
		return;
	}
	l->vrf = n->n_vrfs < n->max_vrfs ? vrf_new_number(n) : FIB_VRF_NONE;
	if (l->vrf == FIB_VRF_NONE) {
		table_refuse(TABLE_vrfs);
		n->vrf_left_out = true;
		return;
	}
	table_used(TABLE_vrfs, ++n->n_vrfs);
	n->vrf[l->vrf] = (struct vrf){.table = table, .refs = 1, .named_by = l->ifindex};
	vrf_tell(n, l->vrf, l->kernel.name, false);
}

/* Several VRFs can share a number. Name it after a VRF that still has it. */
static void
vrf_rename(struct neigh *n, uint16_t number)
{
	const struct link *named = link_find(n, n->vrf[number].named_by);

	if (named != NULL && named->vrf == number)
		return;
	named = NULL;
	for (unsigned int i = 0; i < LINK_CHAINS; i++)
		for (const struct link *l = n->link[i]; l != NULL; l = l->next)
			if (l->vrf == number &&
			    (named == NULL || l->ifindex < named->ifindex))
				named = l;
	assert(named != NULL);
	n->vrf[number].named_by = named->ifindex;
	vrf_tell(n, number, named->kernel.name, false);
}

void
vrf_release(struct neigh *n, uint16_t number)
{
	if (number == 0 || number == FIB_VRF_NONE)
		return;
	if (--n->vrf[number].refs > 0) {
		vrf_rename(n, number);
		return;
	}
	table_used(TABLE_vrfs, --n->n_vrfs);
	vrf_tell(n, number, "", true);
}

void
vrf_update(struct neigh *n, struct link *l)
{
	/*
	 * A VRF with table main is treated as none: its members are in main like all
	 * others.
	 */
	uint32_t table = l->kernel.vrf_table == RT_TABLE_MAIN ? 0 : l->kernel.vrf_table;
	uint16_t had = l->vrf;

	if (table != 0 && had != 0 && had != FIB_VRF_NONE && n->vrf[had].table == table) {
		if (n->vrf[had].named_by == l->ifindex &&
		    strcmp(l->name, l->kernel.name) != 0)
			vrf_tell(n, had, l->kernel.name, false);
		return;
	}
	l->vrf = 0;
	if (table != 0)
		vrf_take_number(n, l, table);
	l->told = l->told && l->vrf == had; /* report again: routes may lead to it */
	vrf_release(n, had);
}
