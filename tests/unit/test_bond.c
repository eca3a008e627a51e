/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bonds of DPDK's net_bonding with two net_null devices, which stand for NICs: their
 * configuration, their state, and that a closed bond leaves nothing. The test attaches the
 * devices itself. It plays LACP of DPDK, because net_null has no partner.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/bond.c fpm-dataplane/pci/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/errmsg.h"
#include "eal.h"
#include "patience.h"
#include "port/attach.h"
#include "port/bond.h"
#include "port/dpdk_compat.h"

#define NIC(mode) "net_bonding0,mode=" mode ",member=0000:0a:00.0,member=0000:0b:00.0"

static struct {
	unsigned int n_attached;
	unsigned int refuse;   /* the NIC that cannot be attached, from 1; 0: none */
	const char *driver;    /* of all devices; NULL: net_null */
	int up_rc[3], down_rc; /* results of setting a link up (by member), down */
	unsigned int n_up, n_down;
	uint8_t actor[2]; /* LACP: the state of each member */
	bool no_lacp[2];
	/* DPDK refuses the second member of the bond, the configuration of LACP. */
	bool second_refused, conf_refused;
	char why[256];
	uint16_t first; /* port of the first member */
} t;

static uint16_t bond;
static enum bond_mode mode;

/* --- functions that this program replaces --------------------------------------------- */

#define NAME(name) #name /* the name of a function in this version of DPDK */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, NAME(name)))

int
attach(const char *devargs, const char *name, uint16_t *port_id, char *why,
       unsigned int why_size)
{
	char device[32];

	assert_string_equal(devargs, name);
	if (t.n_attached + 1 == t.refuse)
		return why_not(why, why_size, -ENODEV, "%s is not there", name);
	snprintf(device, sizeof(device), "net_null_%s", t.n_attached == 0 ? "a" : "b");
	assert_int_equal(rte_dev_probe(device), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(device, port_id), 0);
	if (t.n_attached++ == 0)
		t.first = *port_id;
	return 0;
}

int
rte_eth_dev_info_get(uint16_t port_id, struct rte_eth_dev_info *info)
{
	int rc = REAL(rte_eth_dev_info_get)(port_id, info);

	if (rc == 0 && t.driver != NULL && t.n_attached == 2 && port_id != t.first)
		info->driver_name = t.driver;
	return rc;
}

int
rte_eth_dev_set_link_up(uint16_t port_id)
{
	t.n_up++;
	return t.up_rc[port_id != t.first];
}

int
rte_eth_dev_set_link_down(uint16_t port_id)
{
	t.n_down++;
	return t.down_rc;
}

int
rte_eth_bond_8023ad_member_info(uint16_t bond_, uint16_t port_id,
				struct rte_eth_bond_8023ad_member_info *lacp)
{
	unsigned int i = port_id != t.first;

	assert_int_equal(bond_, bond);
	memset(lacp, 0, sizeof(*lacp));
	lacp->actor_state = t.actor[i];
	lacp->partner.system.addr_bytes[5] = (uint8_t)(0x10 + i);
	return t.no_lacp[i] ? -EINVAL : 0;
}

int
rte_eth_bond_member_add(uint16_t bond_, uint16_t port_id)
{
	if (t.second_refused && port_id != t.first)
		return -EINVAL;
	return REAL(rte_eth_bond_member_add)(bond_, port_id);
}

int
rte_eth_bond_8023ad_setup(uint16_t bond_, struct rte_eth_bond_8023ad_conf *conf)
{
	return t.conf_refused ? -EINVAL : REAL(rte_eth_bond_8023ad_setup)(bond_, conf);
}

/* --- tests ---------------------------------------------------------------------------- */

static int
reset(void **state)
{
	memset(&t, 0, sizeof(t));
	mode = BOND_NONE;
	return 0;
}

static int
open_as(const char *device)
{
	return bond_open("net_bonding0", device, &bond, &mode, t.why, sizeof(t.why));
}

static void
closed_without_rest(void)
{
	bond_close(bond);
	assert_int_equal(rte_eth_dev_count_avail(), 0);
}

static void
a_bond_of_active_backup_prefers_its_primary(void **state)
{
	uint16_t second;

	assert_int_equal(open_as(NIC("1") ",primary=0000:0b:00.0"), 0);
	assert_int_equal(mode, BOND_ACTIVE_BACKUP);
	assert_int_equal(rte_eth_bond_mode_get(bond), BONDING_MODE_ACTIVE_BACKUP);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null_b", &second), 0);
	assert_int_equal(rte_eth_bond_primary_get(bond), second);
	closed_without_rest();
}

static void
a_bond_of_lacp_has_our_times_and_policy(void **state)
{
	static const struct {
		const char *words;
		int policy;
	} row[] = {
		{NIC("4"), BALANCE_XMIT_POLICY_LAYER34},
		{NIC("4") ",xmit_policy=l2", BALANCE_XMIT_POLICY_LAYER2},
		{NIC("4") ",xmit_policy=l23", BALANCE_XMIT_POLICY_LAYER23},
		{NIC("4") ",xmit_policy=l34", BALANCE_XMIT_POLICY_LAYER34},
	};
	struct rte_eth_bond_8023ad_conf conf;

	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		reset(state);
		assert_int_equal(open_as(row[i].words), 0);
		assert_int_equal(mode, BOND_LACP);
		assert_int_equal(rte_eth_bond_mode_get(bond), BONDING_MODE_8023AD);
		assert_int_equal(rte_eth_bond_xmit_policy_get(bond), row[i].policy);
		assert_int_equal(rte_eth_bond_8023ad_conf_get(bond, &conf), 0);
		assert_int_equal(conf.aggregate_wait_timeout_ms, 500);
		assert_int_equal(conf.tx_period_ms, 334);
		closed_without_rest();
	}
}

static void
a_bond_that_fails_leaves_nothing(void **state)
{
	int other;

	assert_int_equal(open_as("net_bonding0,mode=1,member=0000:0a:00.0"), -EINVAL);
	assert_int_equal(t.n_attached, 0);
	t.refuse = 2;
	assert_int_equal(open_as(NIC("1")), -ENODEV);
	assert_string_equal(t.why, "0000:0b:00.0 is not there");
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	reset(state);
	t.second_refused = true;
	assert_int_equal(open_as(NIC("1")), -EINVAL);
	assert_string_equal(t.why, "DPDK cannot add 0000:0b:00.0 to the bond");
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	reset(state);
	t.conf_refused = true;
	assert_int_equal(open_as(NIC("4")), -EINVAL);
	assert_string_equal(t.why, "DPDK refuses the configuration of the bond");
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	/* The name is in use. */
	reset(state);
	other = rte_eth_bond_create("net_bonding0", BONDING_MODE_BALANCE, 0);
	assert_true(other >= 0);
	assert_int_equal(open_as(NIC("1")), -EINVAL);
	assert_string_equal(t.why, "DPDK cannot create a bond of that name");
	assert_int_equal(rte_eth_dev_count_avail(), 1);
	rte_eth_dev_close((uint16_t)other);
	assert_int_equal(rte_eth_bond_free("net_bonding0"), 0);
	assert_int_equal(rte_eth_dev_count_avail(), 0);
}

static void
a_driver_that_hides_a_lost_link_is_refused(void **state)
{
	static const char *const driver[] = {"net_e1000_em", "net_vmxnet3"};
	char wanted[128];

	for (unsigned int i = 0; i < 2; i++) {
		reset(state);
		t.driver = driver[i];
		snprintf(wanted, sizeof(wanted),
			 "0000:0b:00.0 cannot be in a bond: its driver (%s) does not "
			 "report a lost link",
			 driver[i]);
		assert_int_equal(open_as(NIC("4")), -ENOTSUP);
		assert_string_equal(t.why, wanted);
		t.driver = NULL;
		assert_int_equal(rte_eth_dev_count_avail(), 0);
	}
}

static void
a_bond_has_the_drivers_of_its_members(void **state)
{
	assert_int_equal(open_as(NIC("1")), 0);
	assert_true(bond_has_driver(bond, "net_null"));
	assert_false(bond_has_driver(bond, "net_virtio"));
	t.driver = "net_virtio";
	assert_true(bond_has_driver(bond, "net_virtio"));
	assert_true(bond_has_driver(bond, "net_null"));
	assert_false(bond_has_driver(t.first, "net_null")); /* no bond */
	t.driver = NULL;
	closed_without_rest();
}

static void
the_link_of_each_member_is_set(void **state)
{
	assert_int_equal(open_as(NIC("1")), 0);
	assert_int_equal(bond_set_link(bond, true), 0);
	assert_int_equal(t.n_up, 2);
	assert_int_equal(t.n_down, 0);
	assert_int_equal(bond_set_link(bond, false), 0);
	assert_int_equal(t.n_down, 2);
	/* The first error is the result, and the other links are set, too. */
	t.up_rc[0] = -EIO;
	t.up_rc[1] = -ENOTSUP;
	assert_int_equal(bond_set_link(bond, true), -EIO);
	t.up_rc[0] = 0;
	assert_int_equal(bond_set_link(bond, true), -ENOTSUP);
	assert_int_equal(t.n_up, 6);
	t.down_rc = -EIO;
	assert_int_equal(bond_set_link(bond, false), -EIO);
	closed_without_rest();
}

/* Start the bond, with one queue. */
static void
bond_start(void)
{
	static struct rte_mempool *pool;
	struct rte_eth_conf conf = {0};

	if (pool == NULL)
		pool = rte_pktmbuf_pool_create("packets", 1023, 0, 0, 2176, 0);
	assert_int_equal(rte_eth_dev_configure(bond, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(bond, 0, 64, 0, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(bond, 0, 64, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(bond), 0);
}

static void
the_state_of_active_backup_is_that_of_its_links(void **state)
{
	struct bond_state s;

	assert_int_equal(open_as(NIC("1") ",primary=0000:0b:00.0"), 0);
	assert_int_equal(bond_state(t.first, &s), -ENODEV);
	/* Before the start no member is active: no packets leave. */
	assert_int_equal(bond_state(bond, &s), 0);
	assert_int_equal(s.n_member, 2);
	assert_string_equal(s.member[0].device, "net_null_a");
	assert_string_equal(s.member[1].device, "net_null_b");
	assert_string_equal(s.member[1].driver, "net_null");
	assert_false(s.member[0].link || s.member[1].link);
	assert_false(s.member[0].active || s.member[1].active);
	bond_start();
	/*
	 * DPDK polls the links of net_null one after the other. The first member may be
	 * active until the link of the primary is seen.
	 */
	for (unsigned int i = 0; i < PATIENCE_MS; i++, usleep(1000)) {
		assert_int_equal(bond_state(bond, &s), 0);
		if (s.member[1].active)
			break;
	}
	assert_true(s.member[0].link && s.member[1].link);
	assert_false(s.member[0].active);
	assert_true(s.member[1].active);
	assert_false(s.member[1].heard);
	closed_without_rest();
}

static void
the_state_of_lacp_is_that_of_the_partners(void **state)
{
	struct bond_state s;

	assert_int_equal(open_as(NIC("4")), 0);
	t.actor[0] = STATE_DEFAULTED;
	t.actor[1] = (uint8_t) ~(STATE_DISTRIBUTING | STATE_DEFAULTED);
	assert_int_equal(bond_state(bond, &s), 0);
	assert_int_equal(s.n_member, 2);
	assert_false(s.member[0].heard || s.member[0].active || s.member[1].active);
	assert_true(s.member[1].heard);
	assert_int_equal(s.member[0].partner[5], 0x10);
	assert_int_equal(s.member[1].partner[5], 0x11);
	assert_false(bond_lacp_up(bond));
	t.actor[0] = STATE_DISTRIBUTING;
	assert_int_equal(bond_state(bond, &s), 0);
	assert_true(s.member[0].active && s.member[0].heard);
	assert_true(bond_lacp_up(bond));
	/* A member without link has no answer. */
	t.no_lacp[0] = true;
	assert_int_equal(bond_state(bond, &s), 0);
	assert_false(s.member[0].active || s.member[0].heard);
	assert_false(bond_lacp_up(bond));
	t.actor[1] = STATE_DISTRIBUTING;
	assert_true(bond_lacp_up(bond));
	assert_false(bond_lacp_up(t.first)); /* no bond */
	closed_without_rest();
}

static int
eal_up(void **state)
{
	uint16_t port_id;

	if (eal_begin("test_bond_state", "net_null_x", "net_null_y") < 0)
		return -1;
	/* Only the tests' own devices are counted. */
	RTE_ETH_FOREACH_DEV(port_id)
	rte_eth_dev_close(port_id);
	return 0;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, reset)
	const struct CMUnitTest tests[] = {
		TEST(a_bond_of_active_backup_prefers_its_primary),
		TEST(a_bond_of_lacp_has_our_times_and_policy),
		TEST(a_bond_that_fails_leaves_nothing),
		TEST(a_driver_that_hides_a_lost_link_is_refused),
		TEST(a_bond_has_the_drivers_of_its_members),
		TEST(the_link_of_each_member_is_set),
		TEST(the_state_of_active_backup_is_that_of_its_links),
		TEST(the_state_of_lacp_is_that_of_the_partners),
	};

	return cmocka_run_group_tests_name("bond", tests, eal_up, NULL);
}
