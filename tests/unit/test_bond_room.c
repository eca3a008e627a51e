/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bond_room() checks the room for LACP before a link goes up. The test defines the
 * functions of DPDK itself; they take precedence over the library.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/bond.c fpm-dataplane/port/attach.c
 * link: fpm-dataplane/port/claim.c
 * link: fpm-dataplane/pci/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "port/bond.h"
#include "port/dpdk_compat.h"

/* Port 0 is a bond of ports 1 and 2, port 3 of ports 4 and 5. Port 6 is no bond. */
#define N_PORT 7

static struct {
	int mode[N_PORT];
	bool had_link[N_PORT];
	unsigned int room;           /* number of pools that there is memory for */
	unsigned int n_made, n_here; /* pools made, pools that exist */
	size_t other_room; /* octets that rte_malloc_socket() can still allocate */
	unsigned int n_packet;
	char why[256];
} t;

uint64_t
rte_eth_find_next_owned_by(uint16_t port_id, const uint64_t owner_id)
{
	return port_id < N_PORT ? port_id : RTE_MAX_ETHPORTS;
}

int
rte_eth_bond_members_get(uint16_t bond, uint16_t members[], uint16_t len)
{
	if (t.mode[bond] == 0)
		return -1;
	members[0] = (uint16_t)(bond + 1);
	members[1] = (uint16_t)(bond + 2);
	return 2;
}

int
rte_eth_bond_mode_get(uint16_t bond)
{
	return t.mode[bond];
}

int
rte_eth_dev_socket_id(uint16_t port_id)
{
	return 0;
}

struct rte_mempool *
rte_mempool_lookup(const char *name)
{
	unsigned int port;

	assert_int_equal(sscanf(name, DPDK_BOND_MEMBER "_port%u_pool", &port), 1);
	return t.had_link[port] ? (struct rte_mempool *)&t : NULL;
}

struct rte_mempool *
rte_pktmbuf_pool_create(const char *name, unsigned int n, unsigned int cache_size,
			uint16_t priv_size, uint16_t data_room_size, int socket_id)
{
	if (t.n_here == t.room)
		return NULL;
	t.n_made++;
	t.n_here++;
	t.n_packet = n;
	return (struct rte_mempool *)&t;
}

void
rte_mempool_free(struct rte_mempool *pool)
{
	t.n_here -= pool != NULL;
}

void *
rte_malloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	bool fits = size <= t.other_room;

	t.other_room -= fits ? size : 0;
	return fits ? malloc(1) : NULL;
}

void
rte_free(void *p)
{
	free(p);
}

int
rte_eal_alarm_set(uint64_t us, rte_eal_alarm_callback cb, void *arg)
{
	cb(arg);
	return 0;
}

/* --- tests ---------------------------------------------------------------------------- */

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.mode[0] = t.mode[3] = BONDING_MODE_8023AD;
	t.other_room = SIZE_MAX;
	t.room = 4;
	return 0;
}

static int
asked(unsigned int n_queue)
{
	return bond_room(2048, n_queue, t.why, sizeof(t.why));
}

static void
memory_of_a_successful_check_is_freed(void **state)
{
	assert_int_equal(asked(0), 0);
	assert_int_equal(t.n_made, 4);
	assert_int_equal(t.n_here, 0);
	assert_int_equal(t.n_packet, 2049);
}

static void
one_member_too_many_is_refused(void **state)
{
	t.room = 3;
	assert_int_equal(asked(0), -ENOMEM);
	assert_int_equal(t.n_here, 0);
	assert_non_null(strstr(t.why, "memory.size-mib is too small"));
	assert_non_null(strstr(t.why, "4 more members"));
}

static void
members_that_had_a_link_have_theirs(void **state)
{
	t.room = 1;
	t.had_link[1] = t.had_link[2] = t.had_link[4] = true;
	assert_int_equal(asked(0), 0);
	t.room = 0;
	assert_int_equal(asked(0), -ENOMEM);
	assert_non_null(strstr(t.why, "1 more member of"));
	t.had_link[5] = true;
	assert_int_equal(asked(0), 0);
}

static void
a_bond_of_another_mode_takes_none(void **state)
{
	t.room = 0;
	t.mode[0] = t.mode[3] = BONDING_MODE_ACTIVE_BACKUP;
	assert_int_equal(asked(0), 0);
}

static void
queues_to_be_made_count(void **state)
{
	t.other_room = 3 << 20;
	assert_int_equal(asked(4), 0);
	t.other_room = 3 << 20;
	assert_int_equal(asked(8), -ENOMEM);
	assert_int_equal(t.n_here, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
	static const struct CMUnitTest tests[] = {
		TEST(memory_of_a_successful_check_is_freed),
		TEST(one_member_too_many_is_refused),
		TEST(members_that_had_a_link_have_theirs),
		TEST(a_bond_of_another_mode_takes_none),
		TEST(queues_to_be_made_count),
	};

	return cmocka_run_group_tests_name("bond_room", tests, NULL, NULL);
}
