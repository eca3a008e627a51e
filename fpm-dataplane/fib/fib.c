/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create and free the tables that forwarders read, and look up single destinations. No
 * thread of its own; fib.h names the writer of each field.
 */
#include "fib/fib.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/inet.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/tsan.h"
#include "fib/label.h"
#include "fib/headend.h"
#include "fib/sid_entry.h"
#include "fib/sid_number.h"

/*
 * The limits of the configuration file must fit the bit fields of a path and of rib's
 * routes.
 */
static_assert((int)TABLE_MOST_groups + 1 == FIB_GROUP_MAX &&
		      TABLE_MOST_mtus + 1 == FIB_CLASS_PIPE &&
		      TABLE_MOST_vrfs == FIB_VRF_NONE - 1 &&
		      TABLE_MOST_encaps == PATH_INDEX_MASK &&
		      TABLE_MOST_vlans == IFIDX_MAX - PORT_MAX,
	      "limits.def and the bit fields agree");

/*
 * Reserve zeroed, page-aligned memory. The kernel allocates a page when it is first
 * touched.
 */
static void *
pages_reserve(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void
pages_release(void *mem, size_t bytes)
{
	if (mem != NULL)
		munmap(mem, bytes);
}

/*
 * Test whether the kernel places memory on a node. A container may forbid it. Return errno,
 * or 0.
 */
static int
mbind_refusal(uint64_t nodes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem = pages_reserve(page);
	int error = 0;

	if (mem != NULL &&
	    syscall(SYS_mbind, mem, page, MPOL_PREFERRED, &nodes, 65ul, 0u) < 0)
		error = errno;
	pages_release(mem, page);
	return error;
}

static int
copy_create(struct fib_copy *copy, const struct fib_conf *conf, int node)
{
	struct poptrie_conf pc = {.family = POPTRIE_IP4,
				  .retire = conf->retire,
				  .ctx = conf->retire_ctx,
				  .nodes = node >= 0 && node < 64 ? 1ull << node : 0};
	int rc = poptrie_create(&copy->pt4, &pc);

	copy->node = node;
	if (pc.nodes != 0)
		copy->refused = mbind_refusal(pc.nodes);
	pc.family = POPTRIE_IP6;
	return rc < 0 ? rc : poptrie_create(&copy->pt6, &pc);
}

int
fib_trie_large(const struct fib *fib, uint8_t family, struct poptrie **out)
{
	struct poptrie_conf pc = {.family = (enum poptrie_family)family,
				  .retire = fib->retire,
				  .ctx = fib->retire_ctx};

	return poptrie_create(out, &pc);
}

struct fib_vrf *
fib_vrf_new(const struct fib *fib, uint32_t table, const char *name)
{
	struct fib_vrf *vrf = calloc(1, sizeof(*vrf));
	struct poptrie_conf pc = {.family = POPTRIE_IP4,
				  .small = true,
				  .retire = fib->retire,
				  .ctx = fib->retire_ctx};

	if (vrf == NULL)
		return NULL;
	vrf->table = table;
	vrf->tries.node = -1;
	if (log_is_utf8(name))
		snprintf(vrf->name, sizeof(vrf->name), "%s", name);
	else
		snprintf(vrf->name, sizeof(vrf->name), "table%u", table);
	if (poptrie_create(&vrf->tries.pt4, &pc) == 0) {
		pc.family = POPTRIE_IP6;
		if (poptrie_create(&vrf->tries.pt6, &pc) == 0)
			return vrf;
	}
	fib_vrf_free(vrf);
	return NULL;
}

void
fib_vrf_publish(struct fib *fib, unsigned int number, struct fib_vrf *vrf)
{
	struct fib_vrf_tries *tries = &fib->vrf_tries[number];

	/*
	 * Release: a reader that finds the FIB sees its tries and the group words that they
	 * lead to.
	 */
	atomic_store_explicit(&tries->pt4, vrf == NULL ? NULL : vrf->tries.pt4,
			      memory_order_release);
	atomic_store_explicit(&tries->pt6, vrf == NULL ? NULL : vrf->tries.pt6,
			      memory_order_release);
	atomic_store_explicit(&fib->vrf[number], vrf, memory_order_release);
}

void
fib_vrf_free(struct fib_vrf *vrf)
{
	if (vrf == NULL)
		return;
	poptrie_destroy(vrf->tries.pt6);
	poptrie_destroy(vrf->tries.pt4);
	free(vrf);
}

int
fib_create(struct fib **out, const struct fib_conf *conf)
{
	struct fib *fib = calloc(1, sizeof(*fib));
	int rc = -ENOMEM;

	if (fib == NULL)
		return -ENOMEM;
	atomic_init(&fib->mtu_bytes[0], UINT16_MAX);
	atomic_init(&fib->mtu_bytes[FIB_CLASS_PIPE], UINT16_MAX);
	atomic_init(&fib->mtu_bytes[FIB_CLASS_UNIFORM], UINT16_MAX);
	fib->retire = conf->retire;
	fib->retire_ctx = conf->retire_ctx;
	/*
	 * Add slots for connected subnets, at most one for each interface, beyond the
	 * limit.
	 */
	fib->group_end = 1 + table_limit(conf->limits, TABLE_groups) + IFIDX_MAX;
	if (fib->group_end > FIB_GROUP_MAX)
		fib->group_end = FIB_GROUP_MAX;
	fib->adj_hosts = 1 + table_limit(conf->limits, TABLE_adjacencies);
	fib->adj_end = fib->adj_hosts + table_limit(conf->limits, TABLE_hosts);
	assert(fib->adj_end <= FIB_ADJ_MAX);
	fib->encap_end = 1 + table_limit(conf->limits, TABLE_encaps);
	fib->label = pages_reserve(LABELS_ALL * sizeof(*fib->label));
	fib->encap = pages_reserve(fib->encap_end * sizeof(*fib->encap));
	fib->headend = pages_reserve(fib->encap_end * sizeof(*fib->headend));
	fib->sid = pages_reserve(FIB_SIDS_MAX * sizeof(*fib->sid));
	fib->sid_numbers = pages_reserve(sizeof(*fib->sid_numbers));
	fib->group = pages_reserve(fib->group_end * sizeof(*fib->group));
	fib->egress = pages_reserve(fib->group_end * sizeof(*fib->egress));
	fib->adj = pages_reserve(fib->adj_end * sizeof(*fib->adj));
	fib->adj_used = pages_reserve(fib->adj_end * sizeof(*fib->adj_used));
	fib->vxlan_hop = pages_reserve(fib->adj_end * sizeof(*fib->vxlan_hop));
	fib->hosts = cds_lfht_new_flavor(1024, 1024, 0, CDS_LFHT_AUTO_RESIZE,
					 &urcu_qsbr_flavor, NULL);
	fib->tunnel_told = calloc(IFIDX_MAX, sizeof(*fib->tunnel_told));
	if (fib->group == NULL || fib->adj == NULL || fib->adj_used == NULL ||
	    fib->tunnel_told == NULL || fib->hosts == NULL || fib->label == NULL ||
	    fib->encap == NULL || fib->egress == NULL || fib->sid == NULL ||
	    fib->headend == NULL || fib->sid_numbers == NULL || fib->vxlan_hop == NULL)
		goto fail;
	if (getrandom(&fib->seed, sizeof(fib->seed), 0) != sizeof(fib->seed)) {
		rc = -EIO;
		goto fail;
	}
	fib->n_copies = conf->n_nodes > 0 ? conf->n_nodes : 1;
	rc = 0;
	for (unsigned int c = 0; c < fib->n_copies && rc == 0; c++)
		rc = copy_create(&fib->copy[c], conf,
				 conf->n_nodes > 0 ? conf->node[c] : -1);
	if (rc == 0) {
		*out = fib;
		return 0;
	}
fail:
	fib_destroy(fib);
	return rc;
}

void
fib_destroy(struct fib *fib)
{
	struct fib_vlans *vlans;

	for (unsigned int c = 0; c < FIB_COPIES_MAX; c++) {
		poptrie_destroy(fib->copy[c].pt6);
		poptrie_destroy(fib->copy[c].pt4);
	}
	if (fib->hosts != NULL)
		cds_lfht_destroy(fib->hosts, NULL);
	for (unsigned int i = 0; i < IFIDX_MAX; i++) {
		free(atomic_load_explicit(&fib->iface[i], memory_order_relaxed));
		vlans = atomic_load_explicit(&fib->vlans[i], memory_order_relaxed);
		if (vlans != NULL)
			free(atomic_load_explicit(&vlans->macs, memory_order_relaxed));
		free(vlans);
	}
	free(atomic_load_explicit(&fib->tunnels, memory_order_relaxed));
	free(atomic_load_explicit(&fib->seg6, memory_order_relaxed));
	free(atomic_load_explicit(&fib->pmtus, memory_order_relaxed));
	free(atomic_load_explicit(&fib->vxlans, memory_order_relaxed));
	for (unsigned int i = 1; i < FIB_NUMBERS; i++)
		fib_vrf_free(atomic_load_explicit(&fib->vrf[i], memory_order_relaxed));
	pages_release(fib->vxlan_hop, fib->adj_end * sizeof(*fib->vxlan_hop));
	free(fib->tunnel_told);
	pages_release(fib->adj_used, fib->adj_end * sizeof(*fib->adj_used));
	pages_release(fib->adj, fib->adj_end * sizeof(*fib->adj));
	pages_release(fib->sid_numbers, sizeof(*fib->sid_numbers));
	pages_release(fib->sid, FIB_SIDS_MAX * sizeof(*fib->sid));
	pages_release(fib->headend, fib->encap_end * sizeof(*fib->headend));
	pages_release(fib->encap, fib->encap_end * sizeof(*fib->encap));
	pages_release(fib->label, LABELS_ALL * sizeof(*fib->label));
	pages_release(fib->egress, fib->group_end * sizeof(*fib->egress));
	pages_release(fib->group, fib->group_end * sizeof(*fib->group));
	free(fib);
}

void
fib_conf_nodes(struct fib_conf *conf, const int *node, unsigned int n)
{
	for (unsigned int f = 0; f < n; f++) {
		unsigned int c = 0;

		while (c < conf->n_nodes && conf->node[c] != node[f])
			c++;
		if (c == conf->n_nodes && c < FIB_COPIES_MAX)
			conf->node[conf->n_nodes++] = node[f];
	}
}

const struct fib_copy *
fib_copy_for(const struct fib *fib, int node)
{
	for (unsigned int c = 0; c < fib->n_copies; c++)
		if (fib->copy[c].node == node)
			return &fib->copy[c];
	return &fib->copy[0];
}

unsigned long
fib_host_hash(const struct fib *fib, const struct fib_host_key *key)
{
	return ipaddr_hash(&key->addr,
			   fib->seed ^ ((uint64_t)key->family << 16 | key->ifidx));
}

int
fib_host_match(struct cds_lfht_node *node, const void *key)
{
	const struct fib_host *h = caa_container_of(node, struct fib_host, node);
	const struct fib_host_key *k = key;

	GRACE_ACQUIRE(node);
	return h->ifidx == k->ifidx && h->family == k->family &&
	       ipaddr_equal(&h->addr, &k->addr);
}

uint16_t
fib_iface_of_vrf(const struct fib *fib, uint16_t vrf, uint8_t family)
{
	static const struct ipaddr none;

	for (uint16_t i = 1; i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(fib, i);

		if (iface != NULL && iface->vrf == vrf &&
		    (family == 4 ? iface->src4 != 0 : !ipaddr_equal(&iface->src6, &none)))
			return i;
	}
	return 0;
}

bool
fib_iface_has_linklocal(const struct fib_iface *iface, const uint8_t *addr)
{
	static const uint8_t anycast[16] = {0xfe, 0x80};

	if (iface->n_on_link6 > FIB_ON_LINK_MAX ||
	    memcmp(addr, anycast, sizeof(anycast)) == 0)
		return true;
	for (unsigned int i = 0; i < iface->n_on_link6; i++)
		if (memcmp(addr, iface->on_link6[i].octet, 16) == 0)
			return true;
	return false;
}

uint32_t
fib_host_adj(const struct fib *fib, uint16_t ifidx, uint8_t family,
	     const struct ipaddr *addr)
{
	struct fib_host_key key = {.ifidx = ifidx, .family = family, .addr = *addr};
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	cds_lfht_lookup(fib->hosts, fib_host_hash(fib, &key), fib_host_match, &key, &iter);
	node = cds_lfht_iter_get_node(&iter);
	return node == NULL ? 0 : caa_container_of(node, struct fib_host, node)->adj;
}

fib_path
fib_onlink(const struct fib *fib, uint16_t ifidx, uint8_t family, const struct ipaddr *dst)
{
	uint32_t adj = fib_host_adj(fib, ifidx, family, dst);

	return adj == 0 ? PATH(PATH_ONLINK, ifidx) : PATH(PATH_ADJ, adj);
}

uint64_t
fib_route_word(const struct fib *fib, uint16_t vrf, uint8_t family,
	       const struct ipaddr *dst)
{
	const struct fib_vrf *of = vrf == 0 ? NULL : fib_vrf(fib, vrf);
	const struct fib_copy *tries = of == NULL ? &fib->copy[0] : &of->tries;
	uint32_t group;

	if (vrf != 0 && of == NULL)
		return group_word_single(PATH(PATH_NONE, 0));
	group = family == 4 ? poptrie4_lookup(tries->pt4, ipaddr_v4(dst))
			    : poptrie6_lookup(tries->pt6, dst->octet);
	return atomic_load_explicit(&fib->group[group], memory_order_consume);
}

/* Resolve as fib_resolve() does, but do not follow a route that leads to a VRF. */
static fib_path
vrf_resolve(const struct fib *fib, uint16_t vrf, uint8_t family, const struct ipaddr *dst,
	    uint32_t flow_hash)
{
	const struct fib_vrf *vrf_fib = vrf == 0 ? NULL : fib_vrf(fib, vrf);
	const struct fib_copy *tries = vrf_fib == NULL ? &fib->copy[0] : &vrf_fib->tries;
	uint32_t group;
	fib_path path;

	if (vrf != 0 && vrf_fib == NULL)
		return PATH(PATH_NO_FIB, 0);
	group = family == 4 ? poptrie4_lookup(tries->pt4, ipaddr_v4(dst))
			    : poptrie6_lookup(tries->pt6, dst->octet);
	path = fib_group_path(fib, group, flow_hash);
	if (vrf != 0 && path_is_no_route(path))
		return !atomic_load_explicit(&fib->vrfs_told, memory_order_relaxed)
			       ? PATH(PATH_NO_FIB, 0)
			       : vrf_resolve(fib, 0, family, dst, flow_hash);
	if (path_kind(path) != PATH_ONLINK)
		return path;
	return path_with_mtu(fib_onlink(fib, (uint16_t)path_index(path), family, dst),
			     path_mtu_class(path));
}

/*
 * Return the hash for a second choice. The high bits of the hash made the first choice, so
 * they are equal for all flows here. Exchange them with the low bits.
 */
static uint32_t
flow_other_bits(uint32_t flow_hash)
{
	return flow_hash << 16 | flow_hash >> 16;
}

/* Return the class with the smaller MTU. Class 0 has the largest. */
static uint32_t
mtu_class_smaller(const struct fib *fib, uint32_t a, uint32_t b)
{
	return atomic_load_explicit(&fib->mtu_bytes[a], memory_order_relaxed) <
			       atomic_load_explicit(&fib->mtu_bytes[b],
						    memory_order_relaxed)
		       ? a
		       : b;
}

fib_path
fib_resolve_in_vrf(const struct fib *fib, fib_path to, uint8_t family,
		   const struct ipaddr *dst, uint32_t flow_hash)
{
	fib_path path = vrf_resolve(fib, (uint16_t)path_index(to), family, dst,
				    flow_other_bits(flow_hash));

	if (path_kind(path) != PATH_ADJ && path_kind(path) != PATH_ONLINK &&
	    path_kind(path) != PATH_ENCAP)
		return path;
	return path_with_mtu(
		PATH(path_kind(path), path_index(path)),
		mtu_class_smaller(fib, path_mtu_class(path), path_mtu_class(to)));
}

fib_path
fib_resolve(const struct fib *fib, uint16_t vrf, uint8_t family, const struct ipaddr *dst,
	    uint32_t flow_hash)
{
	fib_path path = vrf_resolve(fib, vrf, family, dst, flow_hash);

	return path_kind(path) != PATH_VRF
		       ? path
		       : fib_resolve_in_vrf(fib, path, family, dst, flow_hash);
}

/*
 * Return the VRF as fib_route_vrf() does, but do not follow a route that leads to a VRF.
 * *path: the path of the route.
 */
static uint16_t
vrf_route_vrf(const struct fib *fib, uint16_t vrf, uint8_t family, const struct ipaddr *dst,
	      uint32_t flow_hash, fib_path *path)
{
	*path = group_word_path(fib_route_word(fib, vrf, family, dst), flow_hash);
	if (vrf == 0 || !path_is_no_route(*path))
		return vrf;
	*path = group_word_path(fib_route_word(fib, 0, family, dst), flow_hash);
	return 0;
}

uint16_t
fib_route_vrf(const struct fib *fib, uint16_t vrf, uint8_t family, const struct ipaddr *dst,
	      uint32_t flow_hash)
{
	fib_path path;

	vrf = vrf_route_vrf(fib, vrf, family, dst, flow_hash, &path);
	return path_kind(path) != PATH_VRF
		       ? vrf
		       : vrf_route_vrf(fib, (uint16_t)path_index(path), family, dst,
				       flow_other_bits(flow_hash), &path);
}

fib_path
fib_resolve_ip(const struct fib *fib, uint16_t vrf, uint8_t family, const uint8_t *ip,
	       unsigned int room)
{
	struct ipaddr dst = {0};

	memcpy(dst.octet, ip + (family == 4 ? 16 : 24), family_octets(family));
	return fib_resolve(fib, vrf, family, &dst, flow_hash(ip, room, family, fib->seed));
}
