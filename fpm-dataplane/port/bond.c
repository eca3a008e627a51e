/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bond: make and remove bonds, in main and manage. While a bond runs, DPDK's interrupt
 * thread follows the links of its members and speaks LACP (rte_eal_alarm). Forwarders send
 * the LACP frames: see rxq.lacp.
 */
#include "port/bond.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_common.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "base/errmsg.h"
#include "port/attach.h"
#include "port/dpdk_compat.h"

/* Close a stopped NIC that is in no bond, and detach it from its driver. */
static void
member_close(uint16_t port_id)
{
	struct rte_eth_dev_info info;
	struct rte_device *device =
		rte_eth_dev_info_get(port_id, &info) == 0 ? info.device : NULL;

	rte_eth_dev_close(port_id);
	if (device != NULL && rte_dev_remove(device) < 0)
		log_debug("port: device not removed port=%u", port_id);
}

/*
 * Return true if a driver promises an interrupt when the link changes but sends none (DPDK
 * 22.11, in QEMU). DPDK then neither polls the link nor allows polling, and a bond would
 * send to a member without link.
 */
static bool
member_hides_link(uint16_t port_id, char driver[32])
{
	static const char *const known[] = {"net_e1000_em", "net_vmxnet3"};
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port_id, &info) < 0)
		return true;
	snprintf(driver, 32, "%s", info.driver_name);
	for (unsigned int i = 0; i < RTE_DIM(known); i++)
		if (strcmp(driver, known[i]) == 0)
			return true;
	return false;
}

static int
member_open(const char *address, uint16_t *port_id, char *why, unsigned int why_size)
{
	char driver[32] = "";
	int rc = attach(address, address, port_id, why, why_size);

	if (rc < 0)
		return rc;
	if (member_hides_link(*port_id, driver)) {
		member_close(*port_id);
		return why_not(why, why_size, -ENOTSUP,
			       "%s cannot be in a bond: its driver (%s) does not report "
			       "a lost link",
			       address, driver);
	}
	return 0;
}

/*
 * How long a member waits for other members before LACP announces it. The partner waits as
 * well, 2 s by the standard and in Linux. If both wait, the times add up.
 */
#define AGGREGATE_WAIT_MS 500
/* The time between two LACP frames. IEEE 802.1AX, 6.4.16 allows three a second. */
#define TX_PERIOD_MS 334

/* Configure a bond that has its members. Returns 0 or -errno. */
static int
bond_adjust(uint16_t bond, const struct device_bond *words, const uint16_t *member)
{
	static const uint8_t policy[] = {
		[BOND_L2] = BALANCE_XMIT_POLICY_LAYER2,
		[BOND_L23] = BALANCE_XMIT_POLICY_LAYER23,
		[BOND_L34] = BALANCE_XMIT_POLICY_LAYER34,
	};
	struct rte_eth_bond_8023ad_conf conf;
	int rc;

	if (words->mode != BOND_LACP) {
		rc = rte_eth_bond_primary_set(bond, member[words->primary]);
		return rc < 0 ? -EINVAL : 0;
	}
	rc = rte_eth_bond_xmit_policy_set(bond, policy[words->policy]);
	if (rc == 0)
		rc = rte_eth_bond_8023ad_conf_get(bond, &conf);
	if (rc == 0) {
		conf.aggregate_wait_timeout_ms = AGGREGATE_WAIT_MS;
		conf.tx_period_ms = TX_PERIOD_MS;
		rc = rte_eth_bond_8023ad_setup(bond, &conf);
	}
	return rc < 0 ? -EINVAL : 0;
}

int
bond_open(const char *name, const char *device, uint16_t *port_id, enum bond_mode *mode,
	  char *why, unsigned int why_size)
{
	uint16_t member[BOND_MEMBERS_MAX];
	struct device_bond words;
	unsigned int n = 0;
	int bond, rc = device_bond_parse(device, &words, why, why_size);

	if (rc < 0)
		return rc;
	while (n < words.n_member) {
		rc = member_open(words.member[n], &member[n], why, why_size);
		if (rc < 0)
			goto fail_members;
		n++;
	}
	bond = rte_eth_bond_create(name, (uint8_t)words.mode, 0);
	if (bond < 0) {
		rc = why_not(why, why_size, -EINVAL,
			     "DPDK cannot create a bond of that name");
		goto fail_members;
	}
	*port_id = (uint16_t)bond;
	for (unsigned int i = 0; i < n; i++)
		if (rte_eth_bond_member_add(*port_id, member[i]) < 0) {
			rc = why_not(why, why_size, -EINVAL,
				     "DPDK cannot add %s to the bond", words.member[i]);
			goto fail_bond;
		}
	rc = bond_adjust(*port_id, &words, member);
	*mode = words.mode;
	if (rc == 0)
		return 0;
	why_not(why, why_size, rc, "DPDK refuses the configuration of the bond");
fail_bond:
	/* removes the members; otherwise the bond could not be freed */
	rte_eth_dev_close(*port_id);
	rte_eth_bond_free(name);
fail_members:
	while (n > 0)
		member_close(member[--n]);
	return rc;
}

void
bond_close(uint16_t port_id)
{
	uint16_t member[BOND_MEMBERS_MAX];
	char name[RTE_ETH_NAME_MAX_LEN] = "";
	int n = rte_eth_bond_members_get(port_id, member, BOND_MEMBERS_MAX);

	rte_eth_dev_get_name_by_port(port_id, name);
	rte_eth_dev_stop(port_id);
	rte_eth_dev_close(port_id);
	if (rte_eth_bond_free(name) < 0)
		log_debug("port: bond not removed name=%s", name);
	while (n > 0)
		member_close(member[--n]);
}

bool
bond_has_driver(uint16_t port_id, const char *driver)
{
	uint16_t member[BOND_MEMBERS_MAX];
	int n = rte_eth_bond_members_get(port_id, member, BOND_MEMBERS_MAX);

	for (int i = 0; i < n; i++) {
		struct rte_eth_dev_info info;

		if (rte_eth_dev_info_get(member[i], &info) == 0 &&
		    strcmp(info.driver_name, driver) == 0)
			return true;
	}
	return false;
}

/*
 * Fill in the LACP state of a member of an 802.3ad bond. Returns true if packets may leave
 * by it.
 */
static bool
member_partner(uint16_t bond, uint16_t port_id, struct bond_member *m)
{
	struct rte_eth_bond_8023ad_member_info lacp;

	/* This fails for a member without link. */
	if (rte_eth_bond_8023ad_member_info(bond, port_id, &lacp) < 0)
		return false;
	m->heard = (lacp.actor_state & STATE_DEFAULTED) == 0;
	memcpy(m->partner, lacp.partner.system.addr_bytes, sizeof(m->partner));
	return (lacp.actor_state & STATE_DISTRIBUTING) != 0;
}

bool
bond_lacp_up(uint16_t port_id)
{
	uint16_t member[BOND_MEMBERS_MAX];
	int n = rte_eth_bond_members_get(port_id, member, BOND_MEMBERS_MAX);
	struct bond_member m;

	while (n > 0)
		if (member_partner(port_id, member[--n], &m))
			return true;
	return false;
}

int
bond_set_link(uint16_t port_id, bool up)
{
	uint16_t member[BOND_MEMBERS_MAX];
	int n = rte_eth_bond_members_get(port_id, member, BOND_MEMBERS_MAX), rc = 0;

	for (int i = 0; i < n; i++) {
		int one = up ? rte_eth_dev_set_link_up(member[i])
			     : rte_eth_dev_set_link_down(member[i]);

		rc = rc < 0 ? rc : one;
	}
	return rc;
}

static void
member_state(uint16_t port_id, struct bond_member *m)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link;
	char name[RTE_ETH_NAME_MAX_LEN] = "";

	rte_eth_dev_get_name_by_port(port_id, name);
	snprintf(m->device, sizeof(m->device), "%.*s", (int)sizeof(m->device) - 1, name);
	if (rte_eth_dev_info_get(port_id, &info) == 0)
		snprintf(m->driver, sizeof(m->driver), "%s", info.driver_name);
	m->link = rte_eth_link_get_nowait(port_id, &link) == 0 &&
		  link.link_status == RTE_ETH_LINK_UP;
}

int
bond_state(uint16_t port_id, struct bond_state *state)
{
	uint16_t member[BOND_MEMBERS_MAX], active[BOND_MEMBERS_MAX];
	int n = rte_eth_bond_members_get(port_id, member, BOND_MEMBERS_MAX);
	int n_active = rte_eth_bond_active_members_get(port_id, active, BOND_MEMBERS_MAX);
	int mode = rte_eth_bond_mode_get(port_id);

	if (n < 0 || n_active < 0 || mode < 0)
		return -ENODEV;
	*state = (struct bond_state){.n_member = (unsigned int)n};
	for (int i = 0; i < n; i++) {
		struct bond_member *m = &state->member[i];

		member_state(member[i], m);
		if (mode == BONDING_MODE_8023AD)
			m->active = member_partner(port_id, member[i], m);
		else
			m->active = n_active > 0 &&
				    rte_eth_bond_primary_get(port_id) == member[i];
	}
	return 0;
}

/* --- room for LACP -------------------------------------------------------------------- */

/*
 * When a member of an 802.3ad bond gets its first link, DPDK 22.11 allocates packets and
 * rings for it, and ends the program if there is no memory. So the same memory is allocated
 * and freed before, as a trial. The trial runs in DPDK's interrupt thread. That thread also
 * handles links, so no link comes up during the trial.
 */

/*
 * The sizes of rte_eth_bond_8023ad.c: a frame, a cache, one packet more than descriptors.
 */
#define FRAME_BYTES (sizeof(struct slow_protocol_frame) + RTE_PKTMBUF_HEADROOM)
#define FRAME_CACHE 32
#define FRAME_MORE  1
/* Room for two small rings, and for small allocations until a link comes up. */
#define RINGS_BYTES (64u << 10)
/*
 * For a queue with 1024 descriptors. Drivers reserve up to 4096 descriptors of 32 octets.
 */
#define QUEUE_BYTES (160u << 10)

struct room_trial {
	uint16_t member[RTE_MAX_ETHPORTS]; /* members that have had no link yet */
	unsigned int n, n_packet;
	size_t other_bytes; /* per member */
	bool fits;
	sem_t done;
};

/*
 * Return true if the member has had a link. DPDK creates its packet pool with the first
 * link and keeps it.
 */
static bool
member_had_link(uint16_t member)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), DPDK_BOND_MEMBER "_port%u_pool", member);
	return rte_mempool_lookup(name) != NULL;
}

static void
room_find_members(struct room_trial *t)
{
	uint16_t bond, member[BOND_MEMBERS_MAX];

	RTE_ETH_FOREACH_DEV(bond)
	{
		int n = rte_eth_bond_members_get(bond, member, BOND_MEMBERS_MAX);

		if (n <= 0 || rte_eth_bond_mode_get(bond) != BONDING_MODE_8023AD)
			continue;
		while (n-- > 0)
			if (!member_had_link(member[n]) && t->n < RTE_MAX_ETHPORTS)
				t->member[t->n++] = member[n];
	}
}

/* Runs in DPDK's interrupt thread. */
static void
room_try(void *ctx)
{
	struct rte_mempool *pool[RTE_MAX_ETHPORTS];
	void *other[RTE_MAX_ETHPORTS];
	struct room_trial *t = ctx;
	unsigned int n = 0;

	for (t->fits = true; t->fits && n < t->n; n++) {
		int node = rte_eth_dev_socket_id(t->member[n]);
		char name[RTE_MEMPOOL_NAMESIZE];

		if (node < 0)
			node = (int)rte_socket_id();
		snprintf(name, sizeof(name), "bond_room%u", n);
		pool[n] = rte_pktmbuf_pool_create(name, t->n_packet, FRAME_CACHE, 0,
						  FRAME_BYTES, node);
		other[n] = rte_malloc_socket(NULL, t->other_bytes, 0, node);
		t->fits = pool[n] != NULL && other[n] != NULL;
	}
	while (n-- > 0) {
		rte_mempool_free(pool[n]);
		rte_free(other[n]);
	}
	sem_post(&t->done);
}

int
bond_room(unsigned int n_desc, unsigned int n_queue, char *why, unsigned int why_size)
{
	struct room_trial t = {.n_packet = n_desc + FRAME_MORE};

	room_find_members(&t);
	if (t.n == 0)
		return 0;
	t.other_bytes = RINGS_BYTES + (size_t)n_queue * QUEUE_BYTES;
	sem_init(&t.done, 0, 0);
	if (rte_eal_alarm_set(1, room_try, &t) < 0)
		t.fits = true; /* unknown: the trial is not possible */
	else
		while (sem_wait(&t.done) < 0)
			continue;
	sem_destroy(&t.done);
	if (t.fits)
		return 0;
	return why_not(
		why, why_size, -ENOMEM,
		"memory.size-mib is too small: when %u more member%s of 802.3ad bonds get "
		"a link, DPDK needs more memory than is left, and would end the program",
		t.n, t.n == 1 ? "" : "s");
}
