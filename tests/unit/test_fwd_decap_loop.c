/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of a forwarder in rounds whose packets all match patterns (fwd/decap_fast.c). No
 * outer packet is left for the stages, but the round has packets. Injected frames of this
 * router leave before these packets.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <stdatomic.h>
#include <stdio.h>

#include <rte_ethdev.h>

#include "fwd/cycles.h"
#include "port/rxq.h"
#include "port/watch.h"

#include "decap_flows.h"

#define BEHIND  (SVI + 1) /* a VLAN on WAN */
#define VLAN_ID 5
#define LONG    (2 * BURST_MAX) /* packets of a received burst that is handled in parts */

static const struct bed {
	struct flow flow;
	uint16_t rx_burst;
	bool vlans; /* every fourth packet comes by the VLAN */
} beds[] = {
	{{.kind = FLOW_T4, .inner = 4}, BURST_MAX, false},
	{{.kind = FLOW_T4, .inner = 6}, LONG, false},
	{{.kind = FLOW_SID, .inner = 4}, BURST_MAX, false},
	{{.kind = FLOW_SID, .inner = 6, .n_segments = 1}, LONG, false},
	{{.kind = FLOW_T4, .inner = 4}, BURST_MAX, true},
	{{.kind = FLOW_SID, .inner = 4}, LONG, true},
};

static struct {
	const struct bed *bed;
	unsigned int round, n_round; /* the present round, and the number of all rounds */
	unsigned int sent[CYCLES_EVERY + 2];
	struct rte_ring *inject;
	struct rte_mbuf *first[CYCLES_EVERY + 2];
	atomic_bool stop;
} loop;

/*
 * Return true for rounds in which only patterns decapsulate. None of them is the first
 * round after a quiescent state. The last of them is timed.
 */
static bool
round_has_patterns_alone(unsigned int round)
{
	return round == 2 || round == 3 || round == CYCLES_EVERY + 1;
}

static struct {
	struct rte_mbuf m;
	struct packet_meta meta;
} own;

/*
 * Inject a frame of this router. The next round sends it by LAN, as the packets in transit.
 */
static void
own_inject(void)
{
	packet_meta(&own.m)->out_ifidx = LAN;
	assert_int_equal(rte_ring_enqueue(loop.inject, &own.m), 0);
}

static bool
is_tagged(unsigned int i)
{
	return loop.bed->vlans && i % 4 == 3;
}

/*
 * Return the number of packets of a round that leave. The only pattern is one of WAN, so
 * packets of the VLAN do not match it, and do not leave in rounds with patterns alone.
 */
static unsigned int
round_sends(unsigned int round)
{
	unsigned int n = loop.bed->rx_burst;

	return round_has_patterns_alone(round) && loop.bed->vlans ? n - n / 4 : n;
}

static void
tag_put(struct rte_mbuf *m)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(eth - VLAN_BYTES, eth, 12);
	put_be16(eth + 12 - VLAN_BYTES, VLAN_C_TYPE);
	put_be16(eth + 14 - VLAN_BYTES, VLAN_ID);
	m->data_off -= VLAN_BYTES;
	m->data_len += VLAN_BYTES;
	m->pkt_len += VLAN_BYTES;
}

/* The packets beyond BURST_MAX are in the memory of the second router. */
static struct rte_mbuf *
packet_give(unsigned int i)
{
	struct rte_mbuf *m = &fast.packet[i % BURST_MAX].m;

	flow_write(i % BURST_MAX, &loop.bed->flow);
	if (is_tagged(i))
		tag_put(m);
	if (i < BURST_MAX)
		return m;
	flow_copy(i % BURST_MAX);
	return &slow.packet[i % BURST_MAX].m;
}

static uint16_t
device_gives(void *queue, struct rte_mbuf **m, uint16_t n)
{
	fib_path local;

	loop.round++;
	assert_int_equal(n, loop.bed->rx_burst);
	for (unsigned int i = n; i-- > 0;)
		m[i] = packet_give(i);
	/* In rounds with patterns alone, the stages would drop the outer packets. */
	local = PATH(round_has_patterns_alone(loop.round) ? PATH_BLACKHOLE : PATH_LOCAL, 0);
	fib->group[12] = group_word_single(local);
	fib->group[20] = group_word_single(
		path_kind(local) == PATH_LOCAL ? PATH(PATH_LOCAL, 1) : local);
	loop.stop = loop.round == loop.n_round;
	own_inject();
	return n;
}

static uint16_t
device_takes(void *queue, struct rte_mbuf **m, uint16_t n)
{
	if (loop.sent[loop.round] == 0)
		loop.first[loop.round] = m[0];
	loop.sent[loop.round] += n;
	return n;
}

static struct rte_ring *
ring_make(void)
{
	struct rte_ring *r =
		aligned_alloc(64, RTE_ALIGN((size_t)rte_ring_get_memsize(BURST_MAX), 64));

	assert_non_null(r);
	assert_int_equal(rte_ring_init(r, "inject", BURST_MAX, RING_F_SC_DEQ), 0);
	return r;
}

static void
vlan_make(void)
{
	struct fib_iface *i = iface_make(BEHIND, wan_mac);

	i->port = WAN;
	i->n_tags = i->n_written = 1;
	i->tag[0] = (struct fib_tag){.type = VLAN_C_TYPE, .id = VLAN_ID};
	fib->vlans[WAN] = calloc(1, sizeof(struct fib_vlans));
	assert_non_null(fib->vlans[WAN]);
	fib->vlans[WAN]->ifidx[0][VLAN_ID] = BEHIND;
}

/*
 * If all packets of a burst match, no outer packet is left for the stages, and fwd_main()
 * still passes the inner packets through the stages. It also does so for a burst that is
 * handled in parts, and for untagged packets of a port in a burst with packets of a VLAN.
 */
static void
bed_passes(const struct bed *bed)
{
	void *queues[RTE_MAX_QUEUES_PER_PORT] = {NULL}, *calls[1] = {NULL};
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[0], was = *ops;
	struct rxq_set *set = calloc(1, sizeof(*set) + sizeof(set->q[0]));
	struct serving serving = {.set = set, .idle = {.never_sleep = true}};
	struct watch *watch = watch_create();
	struct fwd_conf conf = {.fib = fib,
				.tries = &fib->copy[0],
				.count = &fast.count,
				.rings = {.inject = ring_make()},
				.watch = watch,
				.sampler = watch,
				.rx_burst = bed->rx_burst,
				.tx_burst = BURST_MAX,
				.serving = &serving,
				.stop = &loop.stop};
	int role = thread_role;

	tables_make(0);
	gre4(0);
	table_make();
	fib->sid[1] = (struct fib_sid){.action = SRV6_END_DT46};
	if (bed->vlans)
		vlan_make();
	assert_true(set != NULL && watch != NULL);
	set->n = 1;
	set->q[0] = (struct rxq){.ifidx = WAN, .fd = -1};
	ops->rx_pkt_burst = device_gives;
	ops->tx_pkt_burst = device_takes;
	ops->rxq.data = ops->txq.data = queues;
	ops->rxq.clbk = ops->txq.clbk = calls;
	memset(&loop, 0, sizeof(loop));
	memset(&fast.count, 0, sizeof(fast.count));
	loop.bed = bed;
	loop.n_round = CYCLES_EVERY + 1;
	loop.inject = conf.rings.inject;
	urcu_qsbr_unregister_thread();
	fwd_main(&conf);
	urcu_qsbr_register_thread();
	thread_role = role;
	*ops = was;
	for (unsigned int k = 1; k <= loop.n_round; k++) {
		assert_int_equal(loop.sent[k], round_sends(k) + (k > 1));
		assert_true((loop.first[k] == &own.m) == (k > 1));
	}
	assert_int_equal(fast.count.idle_polls, 0); /* no round is without packets */
	watch_free(watch);
	free(conf.rings.inject);
	free(set);
	free(fib->vlans[WAN]);
	fib->vlans[WAN] = NULL;
}

static void
bursts_may_have_patterns_alone(void **state)
{
	for (unsigned int k = 0; k < sizeof(beds) / sizeof(beds[0]); k++)
		bed_passes(&beds[k]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bursts_may_have_patterns_alone, decap_up,
						down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
