/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoints of daemons that have died, see ckpt_rig.h.
 */
#include "ckpt_rig.h"

#include <unistd.h>

#include "base/clock.h"

int
ckpt_of_killed(struct rig *g)
{
	int fd = dup(g->rib->ckpt->fd);

	assert_true(fd >= 0);
	rig_free(g);
	return fd;
}

struct ckpt *
ckpt_opened(int fd)
{
	const char *why;
	struct ckpt *c = ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why);

	assert_non_null(c);
	c->head->attempts = 0;
	return c;
}

struct ckpt_route *
ckpt_nth(struct ckpt *c, unsigned int part, unsigned int n)
{
	uint32_t i = 0;

	while (n > 0)
		n -= ckpt_route(c, part, ++i) != NULL;
	return &c->route[part][i];
}

void
ckpt_octets_count(int fd, uint8_t *one, uint8_t *other, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		struct ckpt *c;
		const char *why;

		one[i] ^= 0x21;
		c = ckpt_opened(fd);
		assert_int_equal(c->n_bad, 1);
		ckpt_free(c);
		other[bytes - 1 - i] ^= 0x21;
		assert_null(ckpt_open(dup(fd), NETNS, boottime_ms(), 60000, &why));
		one[i] ^= 0x21;
		other[bytes - 1 - i] ^= 0x21;
		c = ckpt_opened(fd); /* the record is good again */
		assert_int_equal(c->n_bad, 0);
		ckpt_free(c);
	}
}

void
ckpt_teach(struct rig *g)
{
	rig_session(g, 100);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_group(g, 9, 2, 7, 1, 8, 3);
	rig_route(g, "198.51.100.0/24", 7);
	rig_route(g, "2001:db8:77::/48", 8);
	rig_route(g, "203.0.113.0/24", 9);
	rig_route_type(g, "198.51.100.128/25", RTN_BLACKHOLE);
	rig_route_inline(g, "203.0.113.128/25", "192.0.2.2", 11);
	g->batch->ev[g->batch->n - 1].mtu_bytes = 1400;
	rig_sentinel(g);
	rig_go(g);
	rig_settle(g);
}
