/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_bench: a virtual port that any DPDK program can load (-d), so that all programs get
 * the same frames. It receives an endless stream of UDP frames to destinations from a file,
 * written into fresh mbufs with the packet type of a NIC. It frees the packets that are
 * sent.
 *
 *   net_bench0,page=FILE,n=0,frames4=FILE,frames6=FILE,len=64   receives; both: in turn
 *   net_bench1,page=FILE,n=1                                    only sends
 *
 * The UDP source port of each frame has the number of the port by which it must leave. The
 * sending side checks it (page.h: check). With a rate, the port is paced like a NIC's
 * queue: a frame that is due while the descriptors are full is missed, and each frame has
 * the time at which it was due. Each queue has one thread, and there are no locks. Each
 * queue begins at its own place in the stream, as if RSS had spread it. A rate, and a
 * length other than the first (page.h: len), need a port with one queue.
 *
 * The driver needs headers of DPDK's source. EAL accepts plugins only from folders that
 * other users cannot write to.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>

#include "page.h"
#include "stream.h"

struct dev;

struct queue {
	struct dev *dev;
	struct page_queue *count;
	struct rte_mempool *pool;
	struct stream_at at;
	uint32_t epoch;
	uint64_t begin_tsc, taken, last_tsc; /* of this epoch */
} __rte_cache_aligned;

struct dev {
	struct queue rx[PAGE_QUEUES], tx[PAGE_QUEUES];
	struct page *page;
	struct page_queue *counts; /* of this port's queues */
	struct stream stream;
	uint32_t len; /* frame length of the devargs */
	uint16_t n, port_id;
};

/*
 * Return the place of the arrival time: a field of the mbuf that no program has registered.
 */
static inline uint64_t *
stamp(struct rte_mbuf *m)
{
	return (uint64_t *)(uintptr_t)&m->dynfield1[1];
}

/* Return how many of `n` frames a NIC at this rate would have by now. */
static uint16_t
due(struct queue *q, struct page *page, uint16_t n)
{
	uint64_t now = rte_rdtsc(), have;
	uint64_t depth = page->depth != 0 ? page->depth : PAGE_DEPTH;

	if (q->epoch != page->epoch) {
		q->epoch = page->epoch;
		q->begin_tsc = now;
		q->last_tsc = now;
		q->taken = 0;
	}
	page->polls[page_slot(now - q->last_tsc)]++;
	q->last_tsc = now;
	have = (uint64_t)(((unsigned __int128)(now - q->begin_tsc) << 16) / page->gap_q16);
	if (page->limit != 0 && have > page->limit)
		have = page->limit;
	have -= q->taken;
	if (have > depth) {
		q->count->missed += have - depth;
		q->taken += have - depth;
		have = depth;
	}
	return have < n ? (uint16_t)have : n;
}

/*
 * Use the frame length that the benchmark wants now. This takes long for a file of frames.
 */
static void
relen(struct dev *d)
{
	uint32_t want = d->page->len != 0 ? d->page->len : d->len;

	if (d->stream.len != want)
		stream_len(&d->stream, want);
	d->page->len_now = d->page->len;
}

static uint16_t
receive(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct queue *q = queue;
	struct dev *d = q->dev;
	struct page *page = d->page;
	static __thread uint32_t tid;
	uint64_t gap;

	if (tid == 0)
		tid = (uint32_t)syscall(SYS_gettid);
	if (q->count->tid != tid)
		q->count->tid = tid;
	if (page->run == 0)
		return 0;
	if (page->len_now != page->len)
		relen(d);
	if (page->burst != 0 && n > page->burst)
		n = (uint16_t)page->burst;
	gap = page->gap_q16;
	if (gap != 0)
		n = due(q, page, n);
	if (n == 0 || rte_pktmbuf_alloc_bulk(q->pool, m, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		m[i]->port = d->port_id;
	stream_next(&d->stream, &q->at, page->family, page->window, m, n);
	if (gap != 0)
		for (uint16_t i = 0; i < n; i++)
			*stamp(m[i]) = q->begin_tsc + ((++q->taken * gap) >> 16);
	q->count->rx += n;
	return n;
}

/* Receive no frames: the port only sends. */
static uint16_t
receive_nothing(void *queue, struct rte_mbuf **m, uint16_t n)
{
	return 0;
}

/*
 * Count the frame if its port or its headers are wrong. The stream is unicast UDP.
 * Multicast of other protocols (MLD) comes from the kernel, for seconds after a TAP came
 * up, and is skipped.
 */
static void
check(const struct queue *q, struct rte_mbuf *m)
{
	const struct dev *d = q->dev;
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	bool four = p[12] == 0x08;
	const uint8_t *udp = p + (four ? 34 : 54);
	bool good = four ? p[22] == 63 && rte_ipv4_cksum((const void *)(p + STREAM_L2)) == 0
			 : p[21] == 63;

	if ((p[0] & 1) != 0 && p[four ? 23 : 20] != IPPROTO_UDP)
		return;
	/* The benchmark made the neighbor 02:00:00:00:n:02 for port n. */
	good = good && p[4] == d->n && p[5] == 2 && memcmp(p + 6, &d->stream.mac, 6) == 0;
	q->count->wrong_header += !good;
	q->count->wrong_port += udp[0] << 8 != STREAM_SPORT || udp[1] != d->n;
}

static void
look(const struct queue *q, struct rte_mbuf **m, uint16_t n)
{
	struct page *page = q->dev->page;
	uint64_t now = rte_rdtsc();

	for (uint16_t i = 0; i < n; i++) {
		if (page->check & PAGE_LOOK)
			check(q, m[i]);
		if (page->check & PAGE_TIME)
			page->latency[page_slot(now - *stamp(m[i]))]++;
	}
}

static uint16_t
transmit(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct queue *q = queue;

	if (q->dev->page->check != 0)
		look(q, m, n);
	rte_pktmbuf_free_bulk(m, n);
	q->count->tx += n;
	return n;
}

static int
configure(struct rte_eth_dev *e)
{
	return 0;
}

static int
start(struct rte_eth_dev *e)
{
	e->data->dev_link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int
stop(struct rte_eth_dev *e)
{
	e->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

static int
rx_queue(struct rte_eth_dev *e, uint16_t i, uint16_t n_desc, unsigned int socket,
	 const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct dev *d = e->data->dev_private;
	const struct stream *s = &d->stream;

	/* Each queue begins at its own place in the stream. */
	d->rx[i] = (struct queue){
		.dev = d,
		.count = &d->counts[i],
		.pool = pool,
		.at = {.at4 = (uint32_t)((uint64_t)i * s->n4 / PAGE_QUEUES),
		       .at6 = (uint32_t)((uint64_t)i * s->n6 / PAGE_QUEUES)}};
	d->port_id = e->data->port_id;
	e->data->rx_queues[i] = &d->rx[i];
	return 0;
}

static int
tx_queue(struct rte_eth_dev *e, uint16_t i, uint16_t n_desc, unsigned int socket,
	 const struct rte_eth_txconf *conf)
{
	struct dev *d = e->data->dev_private;

	d->tx[i] = (struct queue){.dev = d, .count = &d->counts[i]};
	e->data->tx_queues[i] = &d->tx[i];
	return 0;
}

static int
info(struct rte_eth_dev *e, struct rte_eth_dev_info *i)
{
	i->max_mac_addrs = 1;
	i->max_rx_pktlen = 9216 + STREAM_L2 + RTE_ETHER_CRC_LEN;
	i->max_mtu = 9216;
	i->min_mtu = 68;
	i->max_rx_queues = PAGE_QUEUES;
	i->max_tx_queues = PAGE_QUEUES;
	i->rx_offload_capa = RTE_ETH_RX_OFFLOAD_CHECKSUM;
	i->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	i->flow_type_rss_offloads = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	i->reta_size = 128;
	return 0;
}

static int
stats(struct rte_eth_dev *e, struct rte_eth_stats *s)
{
	const struct dev *d = e->data->dev_private;

	for (int i = 0; i < PAGE_QUEUES; i++) {
		s->ipackets += d->counts[i].rx;
		s->opackets += d->counts[i].tx;
		s->imissed += d->counts[i].missed;
	}
	return 0;
}

static int
nothing(struct rte_eth_dev *e)
{
	return 0;
}

static int
link_update(struct rte_eth_dev *e, int wait)
{
	return 0;
}

static int
mtu_set(struct rte_eth_dev *e, uint16_t mtu)
{
	return 0;
}

static int
mac_set(struct rte_eth_dev *e, struct rte_ether_addr *mac)
{
	return 0;
}

static int
close_dev(struct rte_eth_dev *e)
{
	e->data->mac_addrs = NULL;
	return 0;
}

static const uint32_t *
ptypes(struct rte_eth_dev *e)
{
	static const uint32_t known[] = {RTE_PTYPE_L2_ETHER,    RTE_PTYPE_L3_IPV4,
					 RTE_PTYPE_L3_IPV4_EXT, RTE_PTYPE_L3_IPV6,
					 RTE_PTYPE_L4_UDP,      RTE_PTYPE_L4_TCP,
					 RTE_PTYPE_L3_IPV6_EXT, RTE_PTYPE_UNKNOWN};

	return known;
}

static const struct eth_dev_ops ops = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = close_dev,
	.rx_queue_setup = rx_queue,
	.tx_queue_setup = tx_queue,
	.dev_infos_get = info,
	.stats_get = stats,
	.stats_reset = nothing,
	.link_update = link_update,
	.promiscuous_enable = nothing,
	.promiscuous_disable = nothing,
	.allmulticast_enable = nothing,
	.allmulticast_disable = nothing,
	.mtu_set = mtu_set,
	.mac_addr_set = mac_set,
	.dev_supported_ptypes_get = ptypes,
};

static struct page *
page_map(const char *path)
{
	void *mem = MAP_FAILED;
	struct stat st;
	int fd = open(path, O_RDWR);

	if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(struct page))
		mem = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
	if (fd >= 0)
		close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}

struct args {
	char page[256], frames4[256], frames6[256];
	unsigned int n, len;
};

static int
take(const char *key, const char *value, void *ctx)
{
	struct args *a = ctx;

	if (strcmp(key, "page") == 0)
		snprintf(a->page, sizeof(a->page), "%s", value);
	else if (strcmp(key, "frames4") == 0)
		snprintf(a->frames4, sizeof(a->frames4), "%s", value);
	else if (strcmp(key, "frames6") == 0)
		snprintf(a->frames6, sizeof(a->frames6), "%s", value);
	else if (strcmp(key, "n") == 0)
		a->n = (unsigned int)atoi(value);
	else
		a->len = (unsigned int)atoi(value);
	return 0;
}

static int
probe(struct rte_vdev_device *vdev)
{
	static const char *const keys[] = {"page", "frames4", "frames6", "n", "len", NULL};
	struct rte_kvargs *kv = rte_kvargs_parse(rte_vdev_device_args(vdev), keys);
	struct args a = {.len = 64};
	struct rte_eth_dev *e;
	struct dev *d;
	int rc;

	if (kv == NULL || rte_kvargs_process(kv, NULL, take, &a) < 0)
		return -EINVAL;
	rte_kvargs_free(kv);
	e = rte_eth_vdev_allocate(vdev, sizeof(*d));
	if (e == NULL)
		return -ENOMEM;
	d = e->data->dev_private;
	d->page = page_map(a.page);
	rc = d->page == NULL || a.n >= PAGE_PORTS
		     ? -EINVAL
		     : stream_open(&d->stream, a.frames4, a.frames6);
	if (rc < 0) {
		rte_eth_dev_release_port(e);
		return rc;
	}
	d->n = (uint16_t)a.n;
	d->counts = d->page->port[a.n];
	d->page->tsc_hz = rte_get_tsc_hz();
	d->len = a.len;
	d->stream.mac = (struct rte_ether_addr){{2, 0, 0, 0, (uint8_t)a.n, 1}};
	stream_len(&d->stream, a.len);
	e->data->mac_addrs = &d->stream.mac;
	e->data->dev_link = (struct rte_eth_link){.link_speed = RTE_ETH_SPEED_NUM_100G,
						  .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
						  .link_autoneg = RTE_ETH_LINK_FIXED,
						  .link_status = RTE_ETH_LINK_UP};
	e->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	e->dev_ops = &ops;
	e->rx_pkt_burst =
		d->stream.n4 != 0 || d->stream.n6 != 0 ? receive : receive_nothing;
	e->tx_pkt_burst = transmit;
	rte_eth_dev_probing_finish(e);
	return 0;
}

static int
remove_dev(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *e = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	return e == NULL ? 0 : rte_eth_dev_release_port(e);
}

static struct rte_vdev_driver driver = {.probe = probe, .remove = remove_dev};
RTE_PMD_REGISTER_VDEV(net_bench, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_bench, "page=<file> n=<0..7> frames4=<file> "
					 "frames6=<file> len=<octets>");
