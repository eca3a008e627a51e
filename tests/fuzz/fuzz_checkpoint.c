/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A damaged checkpoint is refused, or the RIB that is restored from it is sound. An input
 * is a list of edits of a valid checkpoint. Most edits correct the CRC again, because this
 * fuzzer searches for damage that the CRC does not find.
 *
 *   octet 0   1: correct the counts in the header after the edits
 *   edits     kind (see below), index, offset, value: four octets each
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "invariants.h"
#include "rib/checkpoint.h"
#include "rib/routes.h"
#include "rib/stack.h"
#include "../unit/rib_rig.h"

#define NETNS 4711
#define WHICH 24u /* edits reach the records 1 to WHICH of each kind */

enum { ROUTE, ROUTE_RAW, HOP, HOP_RAW, HEADER, HEADER_RAW, ROUTE_COPY, HOP_COPY };
/*
 * Flags of an edit. ROUTE, ROUTE_RAW and ROUTE_COPY: OTHER selects the array of other
 * tables, KERNEL the array of kernel routes. ROUTE and ROUTE_RAW: KERNEL with HALF selects
 * the struct ckpt_kernel of a kernel route. HOP and HOP_RAW: HALF selects the labels.
 */
#define OTHER  8
#define KERNEL 16
#define HALF   32
#define TABLE  100u /* of the VRF */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEAL(r) ((r)->crc = CKPT_CRC(r))

/*
 * Write a slot of three next hops with labels, and over it an IP route and a label that is
 * swapped. Write a slot of one next hop, and over it a label that is removed.
 */
static void
write_labels(struct ckpt *c)
{
	static uint32_t far[LABELS_MAX];
	struct stack stack[] = {{0},
				{.n = 1, .near = {200}},
				{.n = 2, .near = {16, LABELS_ALL - 1}},
				{.n = LABELS_MAX}};
	struct nh_list hops = {0};
	struct ckpt_route r = {.slot = 5,
			       .family = FAMILY_LABEL,
			       .len = 32,
			       .protocol = 196,
			       .rtm_type = RTN_UNICAST,
			       .table = FPM_TABLE_NONE};

	for (uint32_t i = 0; i < LABELS_MAX; i++)
		far[i] = LABELS_ALL - 1 - i * 0x11111;
	stack[3].far = far;
	for (uint32_t i = 0; i < 3; i++)
		*nh_list_push(&hops) = (struct next_hop){.gw = ipaddr_from_v4(0xc0000202),
							 .gw_family = 4,
							 .ifindex = 11,
							 .weight = 1,
							 .encap = HOP_MPLS,
							 .stack = i + 1};
	ckpt_put_slot(c, 5, &hops, 0, stack);
	hops.n = 1;
	hops.v[0].encap = HOP_POP;
	hops.v[0].stack = 0;
	ckpt_put_slot(c, 6, &hops, 0, stack);
	free(hops.v);
	put_be32(r.addr.octet, 100);
	ckpt_put_route(c, 9, &r);
	put_be32(r.addr.octet, LABELS_ALL - 1);
	r.slot = 6;
	ckpt_put_route(c, 10, &r);
	r = (struct ckpt_route){.addr = ipaddr_from_v4(0xc6336300),
				.slot = 5,
				.family = 4,
				.len = 24,
				.protocol = 186,
				.rtm_type = RTN_UNICAST,
				.table = RIB_TABLE_MAIN};
	ckpt_put_route(c, 9, &r);
}

/*
 * Write four slots: a single next hop, two groups, and a group with an MTU. Write four
 * routes of each family over these slots: in table main, in the tables TABLE and TABLE + 1,
 * and as routes of the kernel, some of which are connected or local.
 */
static void
write_right(struct ckpt *c)
{
	static const uint8_t net[][2] = {{198, 51}, {203, 0}};
	struct nh_list hops = {0};

	for (uint32_t slot = 1; slot <= 4; slot++) {
		hops.n = 0;
		for (uint32_t i = 0; i < slot % 3 + 1; i++) {
			struct next_hop *w = nh_list_push(&hops);

			memset(w, 0, sizeof(*w));
			w->gw = ipaddr_from_v4(0xc0000202 + i);
			w->gw_family = 4;
			w->ifindex = 11 + i % 2;
			w->weight = 1 + i;
		}
		ckpt_put_slot(c, slot, &hops, slot == 4 ? 1400 : 0, NULL);
	}
	free(hops.v);
	for (uint32_t i = 0; i < 8; i++) {
		struct ckpt_route r = {.slot = i % 4 + 1,
				       .family = i % 2 ? 6 : 4,
				       .len = i % 2 ? 48 : 24,
				       .protocol = 186,
				       .rtm_type = RTN_UNICAST};

		memcpy(r.addr.octet, net[i / 4], 2);
		r.addr.octet[2] = (uint8_t)i;
		if (r.family == 6)
			r.addr.octet[0] = 0x20;
		r.table = RIB_TABLE_MAIN;
		ckpt_put_route(c, i + 1, &r);
		r.table = TABLE + i % 3 / 2; /* TABLE + 1 belongs to no VRF */
		ckpt_put_route(c, i + 1, &r);
		r.table = i % 4 == 3 ? TABLE : RIB_TABLE_MAIN;
		r.protocol = i % 2 == 0 ? RTPROT_KERNEL : RTPROT_STATIC;
		ckpt_put_kernel(c, i + 1, &r,
				&(struct ckpt_kernel){.metric = i % 3 * 20,
						      .order = 1000 + i,
						      .ifindex = 11 + i % 2,
						      .flags = (uint8_t)(i % 8)});
	}
}

static void
edit(struct ckpt *c, const uint8_t *e)
{
	uint32_t which = e[1] % WHICH + 1, from = e[2] % WHICH + 1;
	unsigned int part = e[0] & KERNEL  ? CKPT_KERNEL
			    : e[0] & OTHER ? CKPT_OTHER
					   : CKPT_MAIN;
	struct ckpt_route *r = &c->route[part][which];
	struct ckpt_kernel *k = &c->kernel[which];
	struct ckpt_hop *w = &c->hop[which];
	struct ckpt_stack *s = &c->stack[which];

	switch (e[0] & 7) {
	case ROUTE:
	case ROUTE_RAW:
		if ((e[0] & (KERNEL | HALF)) == (KERNEL | HALF)) {
			((uint8_t *)k)[e[2] % sizeof(*k)] = e[3];
			if ((e[0] & 7) == ROUTE)
				k->crc = CKPT_CRC_OF(which, k);
			break;
		}
		((uint8_t *)r)[e[2] % sizeof(*r)] = e[3];
		if ((e[0] & 7) == ROUTE)
			r->crc = CKPT_CRC_OF(which, r);
		break;
	case HOP:
	case HOP_RAW:
		if ((e[0] & HALF) != 0) {
			((uint8_t *)s)[e[2] % sizeof(*s)] = e[3];
			if ((e[0] & 7) == HOP)
				s->crc = CKPT_CRC_OF(w->version, s);
			break;
		}
		((uint8_t *)w)[e[2] % sizeof(*w)] = e[3];
		if ((e[0] & 7) == HOP)
			SEAL(w);
		break;
	case HEADER:
	case HEADER_RAW:
		((uint8_t *)c->head)[e[2] % sizeof(*c->head)] = e[3];
		if ((e[0] & 7) == HEADER)
			SEAL(c->head);
		break;
	case ROUTE_COPY:
		*r = c->route[part][from];
		r->addr.octet[3] = e[3];
		r->crc = CKPT_CRC_OF(which, r);
		if (part != CKPT_KERNEL)
			break;
		*k = c->kernel[from];
		k->crc = CKPT_CRC_OF(which, k);
		break;
	default:
		*w = c->hop[from];
		*s = c->stack[from];
		w->number = which;
		w->slot = e[3];
		SEAL(w);
	}
	/* A writer records the highest number in use. */
	if ((e[0] & 7) == ROUTE_COPY && *ckpt_high(c->head, part) < which)
		*ckpt_high(c->head, part) = which;
	if ((e[0] & 7) == HOP_COPY && c->head->hop_high < which)
		c->head->hop_high = which;
}

/*
 * Set the counts of routes in the header to the numbers of valid records. Then try counts
 * of slots, until the reader finds no damaged next hops or no count is left.
 */
static void
counts_set_right(struct ckpt *c)
{
	for (unsigned int part = 0; part < CKPT_PARTS; part++) {
		*ckpt_n(c->head, part) = 0;
		for (uint32_t i = 1; i <= WHICH; i++)
			*ckpt_n(c->head, part) += ckpt_route(c, part, i) != NULL;
	}
	for (c->head->n_slots = 1; c->head->n_slots < WHICH; c->head->n_slots += 3) {
		const char *why;
		struct ckpt *seen;

		c->head->attempts = 0;
		seen = ckpt_open(dup(c->fd), NETNS, boottime_ms(), 60000, &why);
		ckpt_free(seen);
		if (seen != NULL || strcmp(why, "damaged next hops") != 0)
			break;
	}
	c->head->attempts = 0;
}

/* Return how many routes of zebra the other tables have. */
static uint32_t
zebras_others(const struct rib *rib)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= rib->tables.other.high; i++)
		n += route_at(&rib->tables.other, i)->family != 0 &&
		     route_at(&rib->tables.other, i)->zslot != 0;
	return n;
}

/* Start with the checkpoint as a daemon does. */
static void
begin(int fd)
{
	static const char *const dst[] = {"198.51.0.1", "203.0.4.1", "2033:1::1",
					  "192.0.2.1"};
	struct rig *g = rig_begun(fd, NETNS);

	MUST(g->rib->count.restore_refused <= 1);
	MUST(g->rib->count.restore_refused == 0 || g->rib->count.restored == 0);
	MUST(g->rib->table_counts.n_zebra[0] + g->rib->table_counts.n_zebra[1] +
		     zebras_others(g->rib) ==
	     g->rib->count.restored);
	rib_must_be_sound(g);
	rig_vrf(g, 1, TABLE, "red");
	rig_settle(g);
	rib_must_be_sound(g);
	for (unsigned int i = 0; i < sizeof(dst) / sizeof(dst[0]); i++)
		MUST(rig_seen(g, dst[i])[0] != '\0' &&
		     rig_seen_in(g, 1, dst[i])[0] != '\0');
	/* The next replay has none of these routes: the sweep removes them. */
	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_route(g, "100.64.0.0/16", 7);
	rig_sentinel(g);
	rig_go(g);
	rig_now_ms += 600000; /* the hold time after a restart of zebra is over */
	rig_go(g);
	rig_settle(g);
	MUST(g->rib->table_counts.n_labels == 0);
	MUST(g->rib->table_counts.n_zebra[0] == 1 &&
	     g->rib->table_counts.n_zebra[1] == 1); /* the sentinel */
	rib_must_be_sound(g);
	/* The kernel's routes must be gone, too. */
	for (uint8_t family = 4; family <= FAMILY_LABEL; family += 2) {
		rig_kernel_dump(g, true, family, 0);
		rig_kernel_dump(g, false, family, 0);
	}
	rig_settle(g);
	MUST(g->rib->kroutes.n == 0 && g->rib->encaps.n == 0);
	rib_must_be_sound(g);
	rig_free(g);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ckpt *c;
	int fd;

	log_set_level(LOG_LEVEL_ERROR);
	if (size < 1 || size > 401)
		return 0;
	c = ckpt_new(NETNS);
	MUST(c != NULL);
	ckpt_alive(c, boottime_ms());
	write_right(c);
	write_labels(c);
	for (size_t at = 1; at + 4 <= size; at += 4)
		edit(c, data + at);
	if ((data[0] & 1) != 0)
		counts_set_right(c);
	fd = dup(c->fd);
	MUST(fd >= 0);
	ckpt_free(c);
	begin(fd);
	return 0;
}
