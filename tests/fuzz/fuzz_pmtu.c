/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors about outer packets, from unknown senders: no read beyond a frame, no change
 * of it, and a table of path MTUs within its bounds.
 *
 * A libFuzzer target. An input is a script of errors. Each begins as a correct error about
 * a packet of a tunnel, a VXLAN or a headend. Then octets change, the error is cut, and its
 * checksum may be corrected. An unchanged, correct error must lower the MTU, but not below
 * the least value.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/worker.h"
#include "fib/headend.h"
#include "fib/path_mtu.h"
#include "fib/vxlan.h"
#include "must.h"
#include "punt/internal.h"
#include "punt/pmtu.h"

#define GRE_IF PORT_MAX /* over IPv4 */
#define SVI    (PORT_MAX + 1)
#define IP6_IF (PORT_MAX + 2) /* over IPv6, with an encapsulation limit */
#define ADJ    5
#define OWN    1
#define VNI    5001u
#define PORT   4789u
#define LOCAL  0xc0000201u
#define FAR    0xc0000202u
#define ROOM   160
#define QUOTED 36 /* octets of the packet that are quoted, behind its IPv4 header */

#define STEPS_MAX 12 /* the code searches all interfaces for each error */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t own6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
static const uint8_t far6[16] = {0x20, 1, 0xd, 0xb8, [15] = 2};
static struct fib *fib;
static struct worker worker;
static struct punt punt;
static struct fib_iface iface[3];
static struct fib_vxlan_hop hop;

struct script {
	const uint8_t *data;
	size_t size;
};

static uint8_t
take(struct script *s)
{
	if (s->size == 0)
		return 0;
	s->size--;
	return *s->data++;
}

static void
tables_make(void)
{
	static const struct worker_ops ops = {.name = "punt", .on_msg = worker_reclaim};
	static struct fib_seg6 seg6;

	urcu_qsbr_register_thread();
	MUST(fib_create(&fib, &(struct fib_conf){.n_nodes = 0}) == 0);
	worker_init(&worker, &ops, NULL);
	MUST(worker_prepare(&worker) == 0);
	punt = (struct punt){.fib = fib, .worker = &worker};
	for (unsigned int i = 0; i < 3; i++) {
		iface[i].ifidx = (uint16_t)(PORT_MAX + i);
		fib->iface[PORT_MAX + i] = &iface[i];
	}
	iface[0].tunnel = (struct fib_tunnel){.family = 4, .gre = true};
	iface[0].tunnel.local = ipaddr_from_v4(LOCAL);
	iface[0].tunnel.remote = ipaddr_from_v4(FAR);
	iface[1].vxlan =
		(struct fib_vxlan){.family = 4, .df = true, .port = PORT, .vni = VNI};
	iface[1].vxlan.local = ipaddr_from_v4(LOCAL);
	iface[2].tunnel = (struct fib_tunnel){.family = 6, .has_limit = true};
	memcpy(iface[2].tunnel.local.octet, own6, 16);
	memcpy(iface[2].tunnel.remote.octet, far6, 16);
	hop = (struct fib_vxlan_hop){.ifidx = SVI, .t = {.family = 4}};
	hop.t.remote = ipaddr_from_v4(FAR);
	fib->vxlan_hop[ADJ] = &hop;
	fib->seg6 = &seg6;
	fib->group[OWN] = group_word_single(PATH(PATH_LOCAL, 0));
	MUST(poptrie_add(fib->copy[0].pt6, own6, 128, OWN) == 0);
	MUST(poptrie_commit(fib->copy[0].pt6) == 0);
}

/* --- an error ------------------------------------------------------------------------- */

enum kind { OF_GRE, OF_VXLAN, OF_IP6, OF_HEADEND, N_KINDS };

/* A frame behind its Ethernet header. */
struct error {
	uint8_t ip[ROOM];
	unsigned int len;
	uint8_t family;
};

static void
error4_write(struct error *e, enum kind kind, uint16_t mtu)
{
	uint8_t *in = e->ip + 28;

	e->family = 4;
	e->len = 28 + 20 + QUOTED;
	e->ip[0] = in[0] = 0x45;
	put_be16(e->ip + 2, (uint16_t)e->len);
	e->ip[9] = 1;
	put_be32(e->ip + 12, 0xc0000209);
	put_be32(e->ip + 16, LOCAL);
	e->ip[20] = 3;
	e->ip[21] = 4;
	put_be16(e->ip + 26, mtu);
	in[6] = 0x40;
	in[9] = kind == OF_GRE ? PROTO_GRE : PROTO_UDP;
	put_be32(in + 12, LOCAL);
	put_be32(in + 16, FAR);
	if (kind == OF_VXLAN) {
		put_be16(in + 22, PORT);
		put_be32(in + 32, VNI << 8);
	}
}

static void
error6_write(struct error *e, enum kind kind, uint32_t mtu, uint8_t segment)
{
	uint8_t *in = e->ip + 48;

	e->family = 6;
	e->len = 48 + 40 + 16;
	e->ip[0] = in[0] = 0x60;
	put_be16(e->ip + 4, (uint16_t)(e->len - 40));
	e->ip[6] = 58;
	e->ip[8] = 0x20;
	memcpy(e->ip + 24, own6, 16);
	e->ip[40] = 2;
	put_be32(e->ip + 44, mtu);
	in[6] = kind == OF_IP6 ? PROTO_IP6_OPTS : 43;
	in[40] = PROTO_IP4;
	memcpy(in + 8, own6, 16);
	memcpy(in + 24, far6, 16);
	if (kind == OF_HEADEND)
		in[38] = segment; /* octet 14 of the destination, see step_fill() */
}

/* Write the checksum of the error, unless its header is cut. */
static void
checksum_write(struct error *e)
{
	unsigned int at = e->family == 4 ? (e->ip[0] & 15u) * 4 : 40;
	uint32_t sum;

	if (at + 8 > e->len)
		return;
	put_be16(e->ip + at + 2, 0);
	sum = e->family == 4 ? 0 : inet_sum(e->ip + 8, 32, e->len - at + 58);
	put_be16(e->ip + at + 2,
		 (uint16_t)~inet_fold(inet_sum(e->ip + at, e->len - at, sum)));
}

/* Give the error to the code under test, in a frame with no octet behind it. */
static void
error_look(const struct error *e, uint8_t inner_at)
{
	uint8_t *octet = malloc(inner_at + L2_LEN + e->len);
	struct {
		struct rte_mbuf m;
		struct packet_meta meta;
	} frame = {.m = {.nb_segs = 1}};

	MUST(octet != NULL);
	memset(octet, 0xff, inner_at + L2_LEN);
	memcpy(octet + inner_at + L2_LEN, e->ip, e->len);
	frame.m.buf_addr = octet;
	frame.m.data_len = (uint16_t)(inner_at + L2_LEN + e->len);
	frame.m.buf_len = frame.m.data_len;
	frame.m.pkt_len = frame.m.data_len;
	frame.meta.family = e->family;
	frame.meta.inner_at = inner_at;
	punt_pmtu_look(&punt, &frame.m);
	MUST(memcmp(octet + inner_at + L2_LEN, e->ip, e->len) == 0);
	free(octet);
}

/* --- invariants ----------------------------------------------------------------------- */

static void
table_check(void)
{
	const struct fib_pmtus *table = fib->pmtus;
	unsigned int n_unsure = 0;
	uint32_t last = (uint32_t)monotonic_s() + 601;

	for (uint32_t i = 0; table != NULL && i < table->n; i++) {
		const struct fib_pmtu *e = &table->entry[i];

		MUST(i < FIB_PMTUS_MAX && (e->family == 4 || e->family == 6) &&
		     e->vrf == 0);
		MUST(e->mtu_bytes >= (e->family == 4 ? FIB_PMTU_LEAST : 1280));
		MUST(e->mtu_bytes < FIB_PMTU_NONE && e->until_s <= last);
		n_unsure += !e->sure;
		if (e->family == 4) /* the tunnel and the VXLAN have one far end */
			MUST(e->sure && get_be32(e->dst.octet) == FAR);
		for (uint32_t j = 0; j < i; j++)
			MUST(table->entry[j].family != e->family ||
			     !ipaddr_equal(&table->entry[j].dst, &e->dst));
	}
	MUST(n_unsure <= FIB_PMTUS_HALF);
	MUST(fib->tunnel_told[GRE_IF] <= FIB_TUNNEL_TOLD_MAX);
	MUST(fib->tunnel_told[IP6_IF] <= FIB_TUNNEL_TOLD_MAX && fib->tunnel_told[SVI] == 0);
}

/* Check that a correct error about a tunnel or a VXLAN has lowered the MTU. */
static void
learned_check(enum kind kind, uint32_t told)
{
	uint32_t least = kind <= OF_VXLAN ? FIB_PMTU_LEAST : 1280;
	struct ipaddr dst = {{0}};

	if (told >= FIB_PMTU_NONE || kind == OF_HEADEND)
		return;
	if (kind <= OF_VXLAN)
		dst = ipaddr_from_v4(FAR);
	else
		memcpy(dst.octet, far6, 16);
	MUST(fib_pmtu(fib, 0, kind <= OF_VXLAN ? 4 : 6, &dst) <=
	     (told < least ? least : told));
}

/* --- scripts -------------------------------------------------------------------------- */

static void
step_error(struct script *s)
{
	uint8_t how = take(s), edits = how >> 5, inner_at = (how & 16) != 0 ? 24 : 0, cut;
	enum kind kind = how % N_KINDS;
	uint32_t mtu = (uint32_t)take(s) << 8 | take(s);
	struct error e = {0};

	if ((how & 8) != 0 && kind > OF_VXLAN)
		mtu = mtu << 16 | mtu;
	if (kind <= OF_VXLAN)
		error4_write(&e, kind, (uint16_t)mtu);
	else
		error6_write(&e, kind, mtu, take(s));
	for (unsigned int i = 0; i < edits; i++) {
		uint8_t at = take(s), value = take(s);

		e.ip[at % e.len] = value;
	}
	cut = edits == 0 ? 0 : take(s);
	if (cut < e.len && e.len - cut >= 1)
		e.len -= cut;
	if ((how & 4) == 0 || edits == 0)
		checksum_write(&e);
	error_look(&e, inner_at);
	if (edits == 0)
		learned_check(kind, mtu);
}

/* Fill the part of the table that errors about made-up segments may use. */
static void
step_fill(struct script *s)
{
	struct fib_pmtus *table = fib->pmtus != NULL ? NULL : calloc(1, sizeof(*table));
	uint32_t now = (uint32_t)monotonic_s();
	uint8_t first = take(s);

	if (table == NULL)
		return;
	for (table->n = 0; table->n < FIB_PMTUS_HALF; table->n++) {
		struct fib_pmtu *e = &table->entry[table->n];

		*e = (struct fib_pmtu){.family = 6, .mtu_bytes = 1400};
		e->until_s = now + 300 + table->n;
		memcpy(e->dst.octet, far6, 16);
		e->dst.octet[14] = (uint8_t)(first + table->n);
	}
	fib->pmtus = table;
}

/*
 * Let an entry expire, if the octet is the index of one. Then do the work of each second.
 */
static void
step_time(struct script *s)
{
	struct fib_pmtus *table = (struct fib_pmtus *)(uintptr_t)fib->pmtus;
	uint8_t which = take(s);

	if (table != NULL && which < table->n)
		table->entry[which].until_s = 0;
	punt_pmtu_expire(&punt);
	for (uint32_t i = 0; fib->pmtus != NULL && i < fib->pmtus->n; i++)
		MUST(fib->pmtus->entry[i].until_s != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int n_inputs;
	struct script s = {data, size};
	struct msg *m;

	if (fib == NULL) {
		log_set_level(LOG_LEVEL_ERROR);
		tables_make();
	}
	for (unsigned int n = 0; s.size > 0 && n < STEPS_MAX; n++) {
		uint8_t kind = take(&s) % 8;

		if (kind == 0)
			step_time(&s);
		else if (kind == 1)
			step_fill(&s);
		else
			step_error(&s);
		table_check();
	}
	/* The next input starts from the same state. */
	free((void *)(uintptr_t)fib->pmtus);
	fib->pmtus = NULL;
	memset(punt.n_told, 0, sizeof(punt.n_told));
	for (uint16_t i = 0; i < 3; i++)
		fib->tunnel_told[PORT_MAX + i] = 0;
	if (++n_inputs % 256 != 0) /* seldom: a grace period takes as long as many inputs */
		return 0;
	urcu_qsbr_barrier();
	while ((m = worker_take(&worker)) != NULL)
		worker_reclaim(&worker, m);
	return 0;
}
