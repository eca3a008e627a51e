/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of threads to a running device. The test defines the functions of DPDK itself; they
 * take precedence over the library.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/port.c fpm-dataplane/port/nic.c
 * link: fpm-dataplane/port/nicd_client.c fpm-dataplane/port/fanout.c
 * link: fpm-dataplane/port/claim.c
 * link: fpm-dataplane/port/bond.c fpm-dataplane/port/attach.c fpm-dataplane/port/rss.c
 * link: fpm-dataplane/pci/ tap-bridge/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>

#include "port/nic.h"
#include "port/port.h"

/* A call takes this long, so that other calls can begin meanwhile. */
#define INSIDE_NS 20000000

static atomic_int inside, most;
static int link_status;
static uint32_t link_speed;
static int vlan_offloads; /* RTE_ETH_VLAN_..., or -errno if the device refuses */

static int
inside_for_a_while(void)
{
	struct timespec while_ns = {.tv_nsec = INSIDE_NS};
	int n = atomic_fetch_add(&inside, 1) + 1;

	if (n > atomic_load(&most))
		atomic_store(&most, n);
	nanosleep(&while_ns, NULL);
	atomic_fetch_sub(&inside, 1);
	return 0;
}

int
rte_eth_stats_get(uint16_t port_id, struct rte_eth_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	return inside_for_a_while();
}

int
rte_eth_link_get_nowait(uint16_t port_id, struct rte_eth_link *link)
{
	*link = (struct rte_eth_link){.link_status = link_status & 1,
				      .link_speed = link_speed,
				      .link_duplex = RTE_ETH_LINK_FULL_DUPLEX};
	return inside_for_a_while();
}

int
rte_eth_dev_get_mtu(uint16_t port_id, uint16_t *mtu)
{
	*mtu = 1500;
	return 0;
}

int
rte_eth_dev_set_mtu(uint16_t port_id, uint16_t mtu)
{
	return inside_for_a_while();
}

int
rte_eth_dev_default_mac_addr_set(uint16_t port_id, struct rte_ether_addr *addr)
{
	return inside_for_a_while();
}

int
rte_eth_dev_get_vlan_offload(uint16_t port_id)
{
	return vlan_offloads < 0 ? 0 : vlan_offloads;
}

int
rte_eth_dev_set_vlan_offload(uint16_t port_id, int offloads)
{
	if (vlan_offloads < 0)
		return vlan_offloads;
	vlan_offloads = offloads;
	return 0;
}

/* --- tests ---------------------------------------------------------------------------- */

static void *
ask_stats(void *port)
{
	struct port_stats st;

	port_stats(port, &st);
	return NULL;
}

static void *
ask_link(void *port)
{
	port_link_up(port);
	return NULL;
}

static void *
change_mtu(void *port)
{
	port_set_mtu(port, 1500);
	return NULL;
}

static void *
change_mac(void *port)
{
	port_set_mac(port, (const uint8_t[6]){2});
	return NULL;
}

/*
 * Make all four calls at once, for two ports. Return the largest number of calls at the
 * same time.
 */
static int
ask_all(struct port *a, struct port *b)
{
	static void *(*const ask[])(void *) = {ask_stats, ask_link, change_mtu, change_mac};
	pthread_t t[4];

	atomic_store(&most, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask[i], i % 2 == 0 ? a : b),
				 0);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return atomic_load(&most);
}

static void
a_device_is_asked_one_thing_at_a_time(void **state)
{
	struct port port = {.port_id = 0};

	assert_int_equal(ask_all(&port, &port), 1);
}

static void
devices_do_not_wait_for_each_other(void **state)
{
	struct port a = {.port_id = 0}, b = {.port_id = 1};
	int together = 0;

	/* On one core the calls sometimes run one after the other. */
	for (unsigned int i = 0; i < 50 && together < 2; i++)
		together = ask_all(&a, &b);
	assert_int_equal(together, 2);
}

static void
the_link_is_as_the_device_reports(void **state)
{
	struct port port = {.port_id = 0};

	link_status = RTE_ETH_LINK_UP;
	link_speed = RTE_ETH_SPEED_NUM_25G;
	assert_true(port_link_up(&port));
	assert_int_equal(port_link(&port).mbit_per_s, 25000);
	assert_true(port_link(&port).full_duplex);
	link_speed = RTE_ETH_SPEED_NUM_UNKNOWN;
	assert_int_equal(port_link(&port).mbit_per_s, 0);
	link_status = RTE_ETH_LINK_DOWN;
	link_speed = RTE_ETH_SPEED_NUM_25G;
	assert_false(port_link_up(&port));
	assert_int_equal(port_link(&port).mbit_per_s, 0);
}

/* Other drivers insert tags in software or at a cost. */
static void
tags_are_the_devices_where_that_is_tried(void **state)
{
	struct rte_eth_dev_info info = {.driver_name = "net_e1000_em",
					.rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_STRIP,
					.tx_offload_capa = RTE_ETH_TX_OFFLOAD_VLAN_INSERT};

	assert_true(nic_takes_tags(&info));
	info.driver_name = "net_virtio";
	assert_false(nic_takes_tags(&info));
	info.driver_name = "net_vmxnet3";
	assert_false(nic_takes_tags(&info));
	info.driver_name = "net_e1000_em";
	info.tx_offload_capa = 0;
	assert_false(nic_takes_tags(&info));
}

static void
a_device_takes_tags_only_when_it_may(void **state)
{
	struct port port = {.port_id = 0};

	vlan_offloads = RTE_ETH_VLAN_FILTER_OFFLOAD;
	assert_false(port_take_tags(&port));
	assert_int_equal(vlan_offloads, RTE_ETH_VLAN_FILTER_OFFLOAD);
	port.vlan_offload = true;
	assert_true(port_take_tags(&port));
	assert_int_equal(vlan_offloads,
			 RTE_ETH_VLAN_FILTER_OFFLOAD | RTE_ETH_VLAN_STRIP_OFFLOAD);
	vlan_offloads = -EIO;
	assert_false(port_take_tags(&port));
}

static void
a_device_that_keeps_its_mtu_is_opened_again_for_more(void **state)
{
	static const char *const fixed[] = {"net_vmxnet3", "net_e1000_em"};
	struct port keeps = {0}, takes = {.driver = "net_virtio"};

	for (unsigned int i = 0; i < 2; i++) {
		strcpy(keeps.driver, fixed[i]);
		assert_true(port_mtu_is_beyond(&keeps, 1501));
		assert_false(port_mtu_is_beyond(&keeps, 1500));
		assert_int_equal(port_set_mtu(&keeps, 1501), -EBUSY);
		assert_int_equal(port_set_mtu(&keeps, 1500), 0);
		assert_int_equal(port_set_mtu(&keeps, 1280), 0);
	}
	assert_false(port_mtu_is_beyond(&takes, 9000));
	assert_int_equal(port_set_mtu(&takes, 9000), 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_asked_one_thing_at_a_time),
		cmocka_unit_test(devices_do_not_wait_for_each_other),
		cmocka_unit_test(the_link_is_as_the_device_reports),
		cmocka_unit_test(a_device_that_keeps_its_mtu_is_opened_again_for_more),
		cmocka_unit_test(tags_are_the_devices_where_that_is_tried),
		cmocka_unit_test(a_device_takes_tags_only_when_it_may),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
