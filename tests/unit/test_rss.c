/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port reports the RSS of its device and not the requested RSS. The devices are two
 * virtual ones of DPDK. net_null gets less than requested here; net_ring does not report
 * its RSS.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/rss.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "eal.h"
#include "port/port.h"
#include "port/rss.h"

#define N_QUEUE 2

static struct rte_mempool *pool;

/*
 * Start a device of N_QUEUE queues with RSS. It gets the part of the requested RSS that is
 * in `granted`.
 */
static struct port
started(const char *name, uint64_t granted)
{
	struct port port = {.n_rxq = N_QUEUE};
	struct rte_eth_dev_info info;
	struct rte_eth_conf eth = {0};

	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port.port_id), 0);
	assert_int_equal(rte_eth_dev_info_get(port.port_id, &info), 0);
	if (info.flow_type_rss_offloads == 0)
		info.flow_type_rss_offloads = RTE_ETH_RSS_IP;
	rss_request(&port, &info, &eth);
	assert_int_equal(eth.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	eth.rx_adv_conf.rss_conf.rss_hf &= granted;
	assert_int_equal(rte_eth_dev_configure(port.port_id, N_QUEUE, N_QUEUE, &eth), 0);
	for (uint16_t q = 0; q < N_QUEUE; q++) {
		assert_int_equal(rte_eth_rx_queue_setup(port.port_id, q, 64, SOCKET_ID_ANY,
							NULL, pool),
				 0);
		assert_int_equal(
			rte_eth_tx_queue_setup(port.port_id, q, 64, SOCKET_ID_ANY, NULL),
			0);
	}
	assert_int_equal(rte_eth_dev_start(port.port_id), 0);
	return port;
}

static void
the_setting_of_the_device_is_shown_not_the_request(void **state)
{
	struct port port = started("net_null0", RTE_ETH_RSS_IPV4);
	char text[64];

	/* Before the port reads the RSS back, it reports the requested RSS. */
	assert_string_equal(port_rss(&port, text), "ip tcp udp sctp tunnel l2");
	rss_read_back(&port);
	assert_string_equal(port_rss(&port, text), "ip");
}

static void
a_driver_that_does_not_tell_is_not_spoken_for(void **state)
{
	struct port port = started("net_ring0", 0);
	char text[64];

	rss_read_back(&port);
	assert_string_equal(port_rss(&port, text), "unknown");
}

static void
one_queue_is_not_asked(void **state)
{
	struct rte_eth_dev_info info = {.flow_type_rss_offloads = RTE_ETH_RSS_IP};
	struct port port = {.port_id = RTE_MAX_ETHPORTS, .n_rxq = 1};
	struct rte_eth_conf eth = {0};
	char text[64];

	rss_request(&port, &info, &eth);
	rss_read_back(&port);
	assert_int_equal(eth.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
	assert_string_equal(port_rss(&port, text), "none");
}

static int
eal_up(void **state)
{

	if (eal_begin("test_rss", "net_null0", "net_ring0") < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("rss", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

static int
eal_down(void **state)
{
	return rte_eal_cleanup();
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_setting_of_the_device_is_shown_not_the_request),
		cmocka_unit_test(a_driver_that_does_not_tell_is_not_spoken_for),
		cmocka_unit_test(one_queue_is_not_asked),
	};

	return cmocka_run_group_tests_name("rss", tests, eal_up, eal_down);
}
