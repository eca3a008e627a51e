/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces of the control namespace, and stubs of interfaces that a leg names and the
 * kernel has not reported (yet). [rib]. link_change.c applies changes of links.
 */
#include "rib/link.h"

#include <stdlib.h>

#include "rib/index.h"

struct link *
rib_link_find(const struct rib_links *links, uint32_t ifindex)
{
	for (uint32_t i = hidx_first(&links->by_ifindex, hash32(ifindex)); i != 0;
	     i = hidx_next(&links->by_ifindex, i))
		if (links->v[i]->ifindex == ifindex)
			return links->v[i];
	return NULL;
}

struct link *
rib_link_get(struct rib_links *links, uint32_t ifindex)
{
	struct link *link = rib_link_find(links, ifindex);

	if (link != NULL)
		return link;
	link = mem_or_abort(calloc(1, sizeof(*link)));
	link->ifindex = ifindex;
	CDS_INIT_LIST_HEAD(&link->legs);
	link->number = number_get(&links->unused, &links->high);
	links->v = table_grow(links->v, &links->cap, link->number, sizeof(*links->v));
	links->v[link->number] = link;
	hidx_add(&links->by_ifindex, hash32(ifindex), link->number);
	return link;
}

void
rib_link_maybe_free(struct rib_links *links, struct link *link)
{
	if (link->known || !cds_list_empty(&link->legs))
		return;
	hidx_del(&links->by_ifindex, link->number);
	links->v[link->number] = NULL;
	vec32_push(&links->unused, link->number);
	free(link);
}

void
links_free(struct rib_links *links)
{
	for (uint32_t i = 1; i <= links->high; i++)
		free(links->v[i]);
	free(links->v);
	vec32_free(&links->unused);
	hidx_free(&links->by_ifindex);
}
