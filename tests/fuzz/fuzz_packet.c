/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any octets, as a frame from the wire, pass parse, lookup and rewrite up to the verdict,
 * by the function that all packets take (fwd_walk), without a port.
 *
 * The frame also passes the forwarder in a burst of others: packet_burst.c.
 *
 * An input is two octets and a frame. The octets select the properties of the port, its
 * VLANs and the route, and whether the frame gets our MAC and a right checksum, which
 * chance does not find. Memory behind a frame must have no effect: each frame is judged
 * twice, once with ones and once with zeros behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/policer.h"
#include "base/worker.h"
#include "fib/fib.h"
#include "fib/tunnel.h"
#include "fwd/fwd.h"
#include "must.h"
#include "packet_burst.h"
#include "packet_labels.h"
#include "packet_segments.h"
#include "packet_tunnels.h"
#include "packet_vxlan.h"
#include "port/watch.h"

#define IN             1
#define OUT            2
#define VLAN_IN        (PORT_MAX)     /* on IN */
#define VLAN_TWO       (PORT_MAX + 1) /* on VLAN_IN */
#define VLAN_OUT       (PORT_MAX + 2) /* VLAN 200 on OUT */
#define VLAN_RED       (PORT_MAX + 3) /* on IN, a member of a VRF */
#define OVER_VXLAN     (PORT_MAX + 4) /* and the next number */
#define TUNNEL_FIRST   (PORT_MAX + 6) /* the first of TUNNELS numbers */
#define VRF_RED        3
#define ADJ            7 /* this adjacency and the next one have the same content */
#define ADJ_VXLAN      9
#define GROUP          5 /* group of the routes 198.51.100.0/24 and 2001:db8:77::/48 */
#define GROUP_OWN      6
#define GROUPS         8 /* of labels */
#define GROUP_SEGMENTS 30
#define GROUP_VXLAN    31
#define GROUP_SIDS     32 /* SIDS groups */
#define ENCAP_SEGMENTS 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t mac[3][6] = {[IN] = {2, 0, 0, 0, 0, 1}, [OUT] = {2, 0, 0, 0, 1, 1}};
static const uint8_t mac_peer[6] = {2, 0, 0, 0, 1, 2};
static struct fib *fib;
static uint16_t out; /* the interface that the adjacency leads to */

static struct fib_iface *
iface_make(uint16_t ifidx, uint16_t port, uint32_t mtu_bytes)
{
	struct fib_iface *i = packet_iface(fib, ifidx, mtu_bytes);

	i->port = port;
	memcpy(i->mac, mac[port], 6);
	return i;
}

/* Make interface `ifidx`: it receives the frames of interface `on` with this tag. */
static void
vlan_make(uint16_t ifidx, uint16_t on, uint16_t type, uint16_t id)
{
	const struct fib_iface *below = fib->iface[on];
	struct fib_iface *i = iface_make(ifidx, below->port, below->mtu_bytes);

	memcpy(i->tag, below->tag, sizeof(i->tag));
	i->n_tags = below->n_tags;
	i->tag[i->n_tags++] = (struct fib_tag){.type = type, .id = id};
	i->n_written = i->n_tags;
	if (fib->vlans[on] == NULL)
		fib->vlans[on] = calloc(1, sizeof(struct fib_vlans));
	MUST(fib->vlans[on] != NULL);
	fib->vlans[on]->ifidx[type == VLAN_S_TYPE][id] = ifidx;
}

static void
tables_make(void)
{
	static const uint8_t net4[4] = {198, 51, 100}, own4[4] = {192, 0, 2, 1};
	static const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x77};
	static const uint8_t own6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};
	struct fib_vrf *red;

	urcu_qsbr_register_thread();
	policer_init(1000000000, policer_default);
	MUST(fib_create(&fib, &(struct fib_conf){.n_nodes = 0}) == 0);
	iface_make(IN, IN, 1500);
	iface_make(OUT, OUT, 1400);
	vlan_make(VLAN_IN, IN, VLAN_S_TYPE, VLAN_IN_ID);
	vlan_make(VLAN_TWO, VLAN_IN, VLAN_C_TYPE, VLAN_TWO_ID);
	vlan_make(VLAN_OUT, OUT, VLAN_C_TYPE, 200);
	vlan_make(VLAN_RED, IN, VLAN_C_TYPE, VLAN_RED_ID);
	for (unsigned int k = ADJ; k < ADJ + 2; k++) {
		fib->adj[k].ifidx = OUT;
		fib->adj[k].family = 4;
		fib->adj[k].addr = ipaddr_from_v4(0xc0000242);
	}
	fib->group[GROUP_OWN] = group_word_single(PATH(PATH_LOCAL, 0));
	packet_route(fib, 4, net4, 24, GROUP);
	packet_route(fib, 4, own4, 32, GROUP_OWN);
	packet_route(fib, 6, net6, 48, GROUP);
	packet_route(fib, 6, own6, 128, GROUP_OWN);
	labels_make(fib, ADJ, VRF_RED, GROUPS, TUNNEL_FIRST + TUNNEL_SENDS);
	segments_make(fib, GROUP_SEGMENTS, ENCAP_SEGMENTS);
	/* Some flows to the VTEP get a label. */
	vxlan_make(fib, OVER_VXLAN, ADJ_VXLAN, GROUP_VXLAN, fib->label[LABEL_ECMP]);
	tunnels_make(fib, TUNNEL_FIRST, GROUP);
	sids_make(fib, VRF_RED, PATH(PATH_ENCAP, ENCAP_SEGMENTS), GROUP_SIDS);
	MUST(poptrie_commit(fib->copy[0].pt4) == 0 &&
	     poptrie_commit(fib->copy[0].pt6) == 0);
	/*
	 * The VRF has a route of one family only, so that a lookup in table main is
	 * detected.
	 */
	red = fib_vrf_new(fib, 100, "red");
	MUST(red != NULL && poptrie_add(red->tries.pt4, net4, 24, GROUP) == 0);
	MUST(poptrie_commit(red->tries.pt4) == 0);
	fib_vrf_publish(fib, VRF_RED, red);
	fib->vrfs_told = true; /* a VRF without a route falls back to table main */
	fib->iface[VLAN_RED]->vrf = VRF_RED;
}

/* Set the properties of the port and the route. */
static void
set_up(const uint8_t *how)
{
	static const uint8_t kind[] = {PATH_ADJ,         PATH_ADJ,       PATH_ONLINK,
				       PATH_BLACKHOLE,   PATH_PROHIBIT,  PATH_LOCAL,
				       PATH_UNREACHABLE, PATH_UNRESOLVED};
	static const fib_path two[2] = {PATH(PATH_ADJ, ADJ), PATH(PATH_ADJ, ADJ + 1)};
	static const uint16_t of_in[] = {IN, VLAN_IN, VLAN_TWO, VLAN_RED};
	uint8_t k = kind[how[1] & 7];
	bool by_device = (how[1] & 32) != 0;

	fib->iface[IN]->up = (how[0] & 1) == 0;
	fib->iface[IN]->forward4 = fib->iface[IN]->fast4 = (how[0] & 2) == 0;
	fib->iface[IN]->forward6 = (how[0] & 4) == 0;
	fib->iface[IN]->ipv6_off = (how[0] & 64) != 0;
	fib->iface[IN]->fast6 = fib->iface[IN]->forward6 && !fib->iface[IN]->ipv6_off;
	fib->iface[IN]->unnumbered4 =
		!fib->iface[IN]->forward6; /* as if a DHCP client waited */
	fib->iface[IN]->tag_type_lost = (how[1] & 8) != 0;
	for (unsigned int i = 0; i < sizeof(of_in) / sizeof(of_in[0]); i++)
		fib->iface[of_in[i]]->mpls = (how[0] & 6) != 6;
	for (unsigned int i = 0; i < TUNNELS; i++)
		fib->iface[TUNNEL_FIRST + i]->mpls = (how[0] & 6) != 6;
	fib->mpls_known = (how[0] & 2) != 0;
	fib->label_ttl = (how[1] & 8) != 0 ? 255 : 0;
	out = (how[1] & 16) == 0 ? OUT : VLAN_OUT;
	fib->iface[out]->up = (how[0] & 8) == 0;
	fib->iface[out]->mtu_bytes = (how[0] & 16) == 0 ? 1400 : 68;
	fib->iface[out]->mtu6_bytes = fib->iface[out]->mtu_bytes;
	if ((how[0] & 128) != 0 && fib->iface[out]->mtu6_bytes > 1280)
		fib->iface[out]->mtu6_bytes = 1280;
	/* Select the writer of the tag of VLAN_OUT: the device or the forwarder. */
	fib->out_special = by_device ? FIB_OUT_TAG_BY_DEVICE : 0;
	fib->iface[VLAN_OUT]->n_written = by_device ? 0 : 1;
	fib->adj[ADJ].hop = (how[0] & 32) == 0 ? adj_hop_make(mac_peer, out) : 0;
	fib->adj[ADJ + 1].hop = fib->adj[ADJ].hop;
	fib->group[GROUP] = group_word_single(PATH(k, k == PATH_ADJ      ? ADJ
						      : k == PATH_ONLINK ? OUT
									 : 0));
	if ((how[1] & 7) == 1)
		fib->group[GROUP] = group_word_block(two, 1);
}

const uint8_t *
packet_of(const uint8_t *frame, uint16_t n)
{
	const uint8_t *end = frame + n;

	for (unsigned int tags = 0; tags < 3 && end - frame >= 14 + 4; tags++) {
		uint16_t type = get_be16(frame + 12);

		if (type != VLAN_C_TYPE && type != VLAN_S_TYPE)
			break;
		frame += 4;
	}
	return frame + 14;
}

void
packet_cksum(uint8_t *frame, uint16_t n)
{
	uint8_t *ip = frame + (packet_of(frame, n) - frame);
	size_t len;

	for (bool last = get_be16(ip - 2) != 0x8847; !last && ip + 24 <= frame + n; ip += 4)
		last = (ip[2] & 1) != 0;
	if (ip + 20 > frame + n)
		return;
	len = (ip[0] & 15) * 4u;
	put_be16(ip + 10, 0);
	if (ip + len <= frame + n)
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, len, 0)));
}

static struct watch_record
judge(const uint8_t *frame, uint16_t n, int behind)
{
	static uint8_t filler[FRAME_MAX];
	struct watch_record rec;

	memset(filler, behind, sizeof(filler));
	fwd_explain(fib, IN, filler, FRAME_MAX, FRAME_MAX, &rec);
	fwd_explain(fib, IN, frame, n, n, &rec);
	rec.time_ns = 0;
	return rec;
}

/* Check that a forwarded packet leaves as RFC 1812 and RFC 8200 require. */
static void
sent_on(const struct watch_record *rec, const uint8_t *frame, uint16_t n)
{
	const uint8_t *left = rec->rewritten, *ip;

	if (rec->outer_ifidx != 0) { /* an inner packet left, so judge this one */
		frame = rec->frame;
		n = (uint16_t)rec->frame_bytes;
	}
	ip = packet_of(frame, n);
	MUST(rec->stage == STAGE_SEND && rec->out_ifidx == out);
	if (rec->tunnel != 0 && path_kind(rec->path) == PATH_ENCAP) {
		MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
		/* IPv6 with the hop limit that labels get, then the encapsulation limit. */
		MUST(get_be16(left + 12) == 0x86dd && left[14] >> 4 == 6);
		MUST(left[20] == PROTO_IP6_OPTS && left[21] == FIB_TUNNEL_TTL);
		/* An IP packet gets this header, the options, GRE and one label. */
		MUST(get_be16(ip - 2) == 0x8847 ||
		     get_be16(left + 18) == 8 + 4 + LABEL_BYTES + rec->l3_bytes);
		return;
	}
	if (rec->outer_labels != 0) {
		MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
		label_outer_sent_on(fib, left);
		return;
	}
	if (get_be16(ip - 2) == 0x8847 || get_be16(left + 12) == 0x8847) {
		MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
		label_sent_on(fib, ip, frame + n, left);
		return;
	}
	MUST(n >= 34);
	if (path_is_headend(fib, rec->path)) {
		MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
		segments_sent_on(ip, rec->l3_bytes, left);
		return;
	}
	if (path_vxlan(fib, rec->path) != NULL) {
		MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
		vxlan_sent_on(ip, rec->l3_bytes, left);
		return;
	}
	MUST(rec->l3_bytes <= fib->iface[out]->mtu_bytes ||
	     fib->iface[out]->mtu_bytes < 1280);
	MUST(ip + rec->l3_bytes <= frame + n);
	MUST(memcmp(left, mac_peer, 6) == 0 && memcmp(left + 6, mac[OUT], 6) == 0);
	MUST(left[12] == ip[-2] && left[13] == ip[-1]);
	if (left[12] == 0x08) {
		MUST(left[22] == ip[8] - 1 && ip[8] > 1);
		MUST(inet_fold(inet_sum(ip, (ip[0] & 15) * 4u, 0)) == 0xffff);
	} else {
		MUST(left[21] == ip[7] - 1 && ip[7] > 1);
	}
	/* Only tags that select an interface were removed: at most two. */
	MUST(ip - frame - 14 <= 8);
}

/* Return the FNV-1a hash of the input. It seeds the burst: one input, one burst. */
static uint64_t
seed_from(const uint8_t *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 0x100000001b3;
	return h;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frame[FRAME_MAX];
	struct watch_record rec, again;
	struct packet_port port;
	uint16_t n;

	if (fib == NULL)
		tables_make();
	if (size < 2 + 14 || size > 2 + FRAME_MAX)
		return 0; /* each device drops a frame shorter than an Ethernet header */
	set_up(data);
	n = (uint16_t)(size - 2);
	memcpy(frame, data + 2, n);
	if ((data[1] & 0x80) != 0)
		memcpy(frame, mac[IN], 6);
	if ((data[1] & 0x40) != 0 && n >= 34)
		packet_cksum(frame, n);
	rec = judge(frame, n, 0xff);
	again = judge(frame, n, 0);
	MUST(rec.verdict == again.verdict && rec.stage == again.stage);
	MUST(rec.path == again.path && rec.group == again.group);
	MUST(rec.verdict == WATCH_GO || rec.verdict < N_REASON);
	if (rec.verdict == WATCH_GO)
		sent_on(&rec, frame, n);
	port = (struct packet_port){
		.ifidx = IN, .strips = (data[0] & 64) != 0, .cksum = (data[0] & 128) != 0};
	packet_burst(fib, &port, frame, n, seed_from(data, size));
	return 0;
}
