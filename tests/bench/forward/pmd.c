/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_bench: a virtual port for benchmarks, loaded into any DPDK program (-d), so that all
 * are fed alike. It receives an endless stream of UDP frames to destinations from a file,
 * written into fresh mbufs with the packet type a NIC would set, and frees what is sent.
 *
 *   net_bench0,page=FILE,n=0,frames4=FILE,frames6=FILE,len=64   receives; both: in turn
 *   net_bench1,page=FILE,n=1                                    only sends
 *
 * Each frame has the number of the port that it should leave by in its UDP source port, so
 * that the sending side can tell (page.h: check). With a rate it is paced like a NIC of 1024
 * descriptors: what comes due while they are full is missed, and each frame knows when it
 * was due. One thread a port, no locks.
 *
 * Needs driver headers of DPDK's source. Mind: EAL takes plugins only from folders that not
 * everybody may write to.
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
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "frame.h"
#include "page.h"

#define DESCRIPTORS 1024
#define QUEUES      16
#define SPORT       0x4000 /* + the port to leave by */
#define L2_LEN      14
#define AHEAD       256 /* frames that are prefetched */

struct dev;

struct queue {
	struct dev *dev;
	struct rte_mempool *pool;
	uint32_t at4, at6, turn;
	uint32_t epoch;
	uint64_t begin_tsc, taken; /* of this epoch */
} __rte_cache_aligned;

struct dev {
	struct queue rx[QUEUES], tx[QUEUES];
	struct page *page;
	struct page_port *port;
	struct frame4 *f4;
	const struct frame6 *f6;
	uint32_t n4, n6;
	uint16_t n, port_id, len4, len6;
	struct rte_ether_addr mac;
	uint8_t head4[64] __rte_aligned(64), head6[64] __rte_aligned(64);
};

/* Where the time of arrival travels: beside the packet, in a field that nobody registered. */
static inline uint64_t *
stamp(struct rte_mbuf *m)
{
	return (uint64_t *)(uintptr_t)&m->dynfield1[1];
}

/* Bucket of a time: 16 to an octave. */
static inline unsigned int
slot(uint64_t ticks)
{
	unsigned int octave;

	if (ticks < 16)
		return (unsigned int)ticks;
	octave = 63 - (unsigned int)__builtin_clzll(ticks) - 4;
	return (octave + 1) * 16 + ((ticks >> octave) & 15);
}

static inline void
write4(struct queue *q, const struct dev *d, struct rte_mbuf *m)
{
	const struct frame4 *f = &d->f4[q->at4];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sport = rte_cpu_to_be_16(SPORT + f->port);

	rte_mov64(p, d->head4);
	memcpy(p + 24, &f->checksum, 2);
	memcpy(p + 30, f->dst, 4);
	memcpy(p + 34, &sport, 2);
	rte_prefetch0(f + AHEAD);
	m->data_len = d->len4;
	m->pkt_len = d->len4;
	m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP;
	if (++q->at4 == d->n4)
		q->at4 = 0;
}

static inline void
write6(struct queue *q, const struct dev *d, struct rte_mbuf *m)
{
	const struct frame6 *f = &d->f6[q->at6];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sport = rte_cpu_to_be_16(SPORT + f->port);

	rte_mov64(p, d->head6);
	memcpy(p + 38, f->dst, 16);
	memcpy(p + 54, &sport, 2);
	rte_prefetch0(f + AHEAD);
	m->data_len = d->len6;
	m->pkt_len = d->len6;
	m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_UDP;
	if (++q->at6 == d->n6)
		q->at6 = 0;
}

/* How many of `n` have come by now, as a NIC at this rate would have them. */
static uint16_t
due(struct queue *q, const struct page *page, uint16_t n)
{
	uint64_t now = rte_rdtsc(), have;

	if (q->epoch != page->epoch) {
		q->epoch = page->epoch;
		q->begin_tsc = now;
		q->taken = 0;
	}
	have = (uint64_t)(((unsigned __int128)(now - q->begin_tsc) << 16) / page->gap_q16);
	if (page->limit != 0 && have > page->limit)
		have = page->limit;
	have -= q->taken;
	if (have > DESCRIPTORS) {
		q->dev->port->missed += have - DESCRIPTORS;
		q->taken += have - DESCRIPTORS;
		have = DESCRIPTORS;
	}
	return have < n ? (uint16_t)have : n;
}

static uint16_t
receive(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct queue *q = queue;
	struct dev *d = q->dev;
	struct page *page = d->page;
	static __thread uint32_t tid;
	uint32_t family;
	uint64_t gap;

	if (tid == 0)
		tid = (uint32_t)syscall(SYS_gettid);
	if (page->tid != tid)
		page->tid = tid;
	if (page->run == 0)
		return 0;
	gap = page->gap_q16;
	if (gap != 0)
		n = due(q, page, n);
	if (n == 0 || rte_pktmbuf_alloc_bulk(q->pool, m, n) != 0)
		return 0;
	family = d->f6 == NULL ? 4 : d->f4 == NULL ? 6 : page->family;
	for (uint16_t i = 0; i < n; i++) {
		m[i]->port = d->port_id;
		if (family == 4 || (family == 0 && (q->turn++ & 1) == 0))
			write4(q, d, m[i]);
		else
			write6(q, d, m[i]);
	}
	if (gap != 0)
		for (uint16_t i = 0; i < n; i++)
			*stamp(m[i]) = q->begin_tsc + ((++q->taken * gap) >> 16);
	d->port->rx += n;
	return n;
}

/* A port that only sends. */
static uint16_t
receive_nothing(void *queue, struct rte_mbuf **m, uint16_t n)
{
	return 0;
}

/* Is it a frame of ours, at the right port, as a router must leave it? */
static void
check(const struct dev *d, struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	bool four = p[12] == 0x08;
	const uint8_t *udp = p + (four ? 34 : 54);
	bool good = four ? p[22] == 63 && rte_ipv4_cksum((const void *)(p + L2_LEN)) == 0
			 : p[21] == 63;

	/* The neighbour that the benchmark made for port n is 02:00:00:00:n:02. */
	good = good && p[4] == d->n && p[5] == 2 && memcmp(p + 6, &d->mac, 6) == 0;
	d->port->wrong_header += !good;
	d->port->wrong_port += udp[0] << 8 != SPORT || udp[1] != d->n;
}

static void
look(struct queue *q, struct rte_mbuf **m, uint16_t n)
{
	struct dev *d = q->dev;
	struct page *page = d->page;
	uint64_t now = rte_rdtsc();

	if (q->epoch != page->epoch) {
		q->epoch = page->epoch;
		d->port->first_tsc = now;
	}
	for (uint16_t i = 0; i < n; i++) {
		if (page->check & 1)
			check(d, m[i]);
		if (page->check & 2)
			page->latency[slot(now - *stamp(m[i]))]++;
	}
}

static uint16_t
transmit(void *queue, struct rte_mbuf **m, uint16_t n)
{
	struct queue *q = queue;

	if (q->dev->page->check != 0)
		look(q, m, n);
	rte_pktmbuf_free_bulk(m, n);
	q->dev->port->tx += n;
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

	/* Queues begin at places of their own in the stream. */
	d->rx[i] = (struct queue){.dev = d,
				  .pool = pool,
				  .at4 = (uint32_t)((uint64_t)i * d->n4 / QUEUES),
				  .at6 = (uint32_t)((uint64_t)i * d->n6 / QUEUES)};
	d->port_id = e->data->port_id;
	e->data->rx_queues[i] = &d->rx[i];
	return 0;
}

static int
tx_queue(struct rte_eth_dev *e, uint16_t i, uint16_t n_desc, unsigned int socket,
	 const struct rte_eth_txconf *conf)
{
	struct dev *d = e->data->dev_private;

	d->tx[i] = (struct queue){.dev = d};
	e->data->tx_queues[i] = &d->tx[i];
	return 0;
}

static int
info(struct rte_eth_dev *e, struct rte_eth_dev_info *i)
{
	i->max_mac_addrs = 1;
	i->max_rx_pktlen = 9216 + L2_LEN + RTE_ETHER_CRC_LEN;
	i->max_mtu = 9216;
	i->min_mtu = 68;
	i->max_rx_queues = QUEUES;
	i->max_tx_queues = QUEUES;
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

	s->ipackets = d->port->rx;
	s->opackets = d->port->tx;
	s->imissed = d->port->missed;
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

/* A whole file in huge pages, so that reading on costs little; *n elements of `each`. */
static void *
frames_read(const char *path, size_t each, uint32_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *mem = NULL;
	ssize_t got = 0;

	if (fd >= 0 && fstat(fd, &st) == 0)
		mem = rte_malloc(NULL, (size_t)st.st_size, 0);
	for (off_t at = 0; mem != NULL && at < st.st_size; at += got) {
		got = read(fd, mem + at, (size_t)(st.st_size - at));
		if (got <= 0) {
			rte_free(mem);
			mem = NULL;
		}
	}
	if (mem != NULL)
		*n = (uint32_t)((size_t)st.st_size / each);
	if (fd >= 0)
		close(fd);
	return *n == 0 ? NULL : mem;
}

static void
heads_make(struct dev *d, unsigned int len)
{
	static const uint8_t head[64] = {
		2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2,
	};
	struct rte_ipv4_hdr *ip4 = (void *)(d->head4 + L2_LEN);
	struct rte_ipv6_hdr *ip6 = (void *)(d->head6 + L2_LEN);
	struct rte_udp_hdr *udp4 = (void *)(ip4 + 1), *udp6 = (void *)(ip6 + 1);
	uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

	d->len4 = (uint16_t)(len - RTE_ETHER_CRC_LEN);
	d->len6 = RTE_MAX(d->len4, (uint16_t)(L2_LEN + sizeof(*ip6) + sizeof(*udp6)));
	memcpy(d->head4, head, sizeof(head));
	memcpy(d->head4, &d->mac, sizeof(d->mac));
	memcpy(d->head6, d->head4, sizeof(head));
	d->head4[12] = 0x08;
	d->head6[12] = 0x86;
	d->head6[13] = 0xdd;
	ip4->version_ihl = 0x45;
	ip4->total_length = rte_cpu_to_be_16((uint16_t)(d->len4 - L2_LEN));
	ip4->time_to_live = 64;
	ip4->next_proto_id = 17;
	ip4->src_addr = rte_cpu_to_be_32(RTE_IPV4(192, 0, 2, 2));
	udp4->dst_port = rte_cpu_to_be_16(9);
	udp4->dgram_len = rte_cpu_to_be_16((uint16_t)(d->len4 - L2_LEN - sizeof(*ip4)));
	ip6->vtc_flow = rte_cpu_to_be_32(6u << 28);
	ip6->payload_len = rte_cpu_to_be_16((uint16_t)(d->len6 - L2_LEN - sizeof(*ip6)));
	ip6->proto = 17;
	ip6->hop_limits = 64;
	memcpy(ip6->src_addr, src6, sizeof(src6));
	udp6->dst_port = udp4->dst_port;
	udp6->dgram_len = ip6->payload_len;
}

static void
checksums_make(struct dev *d)
{
	struct rte_ipv4_hdr ip;

	memcpy(&ip, d->head4 + L2_LEN, sizeof(ip));
	for (uint32_t i = 0; i < d->n4; i++) {
		ip.hdr_checksum = 0;
		memcpy(&ip.dst_addr, d->f4[i].dst, 4);
		d->f4[i].checksum = rte_ipv4_cksum(&ip);
	}
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
files_open(struct dev *d, const struct args *a)
{
	d->page = page_map(a->page);
	if (d->page == NULL || a->n >= PAGE_PORTS)
		return -EINVAL;
	if (a->frames4[0] != '\0') {
		d->f4 = frames_read(a->frames4, sizeof(*d->f4), &d->n4);
		if (d->f4 == NULL)
			return -EINVAL;
	}
	if (a->frames6[0] != '\0') {
		d->f6 = frames_read(a->frames6, sizeof(*d->f6), &d->n6);
		if (d->f6 == NULL)
			return -EINVAL;
	}
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
	rc = files_open(d, &a);
	if (rc < 0) {
		rte_eth_dev_release_port(e);
		return rc;
	}
	d->n = (uint16_t)a.n;
	d->port = &d->page->port[a.n];
	d->page->tsc_hz = rte_get_tsc_hz();
	d->mac = (struct rte_ether_addr){{2, 0, 0, 0, (uint8_t)a.n, 1}};
	heads_make(d, a.len);
	checksums_make(d);
	e->data->mac_addrs = &d->mac;
	e->data->dev_link = (struct rte_eth_link){.link_speed = RTE_ETH_SPEED_NUM_100G,
						  .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
						  .link_autoneg = RTE_ETH_LINK_FIXED,
						  .link_status = RTE_ETH_LINK_UP};
	e->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	e->dev_ops = &ops;
	e->rx_pkt_burst = d->n4 != 0 || d->n6 != 0 ? receive : receive_nothing;
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
RTE_PMD_REGISTER_PARAM_STRING(net_bench, "page=<file> n=<0..15> frames4=<file> "
					 "frames6=<file> len=<octets>");
