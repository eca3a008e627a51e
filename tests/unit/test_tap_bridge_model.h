/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A naive copy of the objects that a monitor has reported.
 *
 * Each monitor in the tests feeds a model. The model notes a report that breaks the
 * contract of kmon.h: the same report twice, a deletion of an unknown object, an object on
 * an unknown link, a link that is deleted before its addresses and neighbors. A test with
 * such a note fails.
 */
#ifndef TEST_TAP_BRIDGE_MODEL_H
#define TEST_TAP_BRIDGE_MODEL_H

#include "test_tap_bridge.h"

#include <linux/neighbour.h>

#include "tap-bridge/kmon.h"

#define MODEL_MAX 4096

struct model {
	struct kmon *km;
	const char *broken; /* the first breach of the contract */
	struct kmon_link link[16];
	struct kmon_conf conf[64];
	struct kmon_inet6 inet6[16];
	struct kmon_addr addr[32];
	struct kmon_neigh neigh[MODEL_MAX];
	size_t n_links, n_confs, n_inet6s, n_addrs, n_neighs;
	unsigned int n_failed;     /* reports of NUD_FAILED */
	unsigned int n_links_gone; /* reports */
	bool resolve_in_callback;
};

static inline void
breach(struct model *m, const char *what)
{
	if (m->broken == NULL)
		m->broken = what;
}

static inline struct kmon_link *
link_by_index(struct model *m, unsigned int ifindex)
{
	for (size_t i = 0; i < m->n_links; i++)
		if (m->link[i].ifindex == ifindex)
			return &m->link[i];
	return NULL;
}

static inline bool
is_bare(const struct model *m, unsigned int ifindex)
{
	for (size_t i = 0; i < m->n_confs; i++)
		if (m->conf[i].ifindex == ifindex)
			return false;
	for (size_t i = 0; i < m->n_inet6s; i++)
		if (m->inet6[i].ifindex == ifindex)
			return false;
	for (size_t i = 0; i < m->n_addrs; i++)
		if (m->addr[i].ifindex == ifindex)
			return false;
	for (size_t i = 0; i < m->n_neighs; i++)
		if (m->neigh[i].ifindex == ifindex)
			return false;
	return true;
}

static inline void
on_link(void *ctx, const struct kmon_link *link, bool gone)
{
	struct model *m = ctx;
	struct kmon_link *at = link_by_index(m, link->ifindex);

	if (gone) {
		m->n_links_gone++;
		if (at == NULL)
			breach(m, "unknown link gone");
		else if (!is_bare(m, link->ifindex))
			breach(m, "link gone before its addresses or neighbors");
		else
			*at = m->link[--m->n_links];
		return;
	}
	if (at == NULL)
		at = &m->link[m->n_links++];
	else if (strcmp(at->name, link->name) == 0 && memcmp(at->mac, link->mac, 6) == 0 &&
		 at->mtu_bytes == link->mtu_bytes && at->admin_up == link->admin_up &&
		 at->carrier == link->carrier && at->arp_off == link->arp_off &&
		 at->on == link->on && at->macvlan == link->macvlan &&
		 at->vlan_type == link->vlan_type && at->vlan_id == link->vlan_id &&
		 at->master == link->master && at->vrf_table == link->vrf_table)
		breach(m, "link reported twice");
	*at = *link;
}

static inline struct kmon_conf *
conf_like(struct model *m, unsigned int ifindex, uint8_t family)
{
	for (size_t i = 0; i < m->n_confs; i++)
		if (m->conf[i].ifindex == ifindex && m->conf[i].family == family)
			return &m->conf[i];
	return NULL;
}

static inline void
on_conf(void *ctx, const struct kmon_conf *conf, bool gone)
{
	struct model *m = ctx;
	struct kmon_conf *at = conf_like(m, conf->ifindex, conf->family);

	if (conf->ifindex != KMON_CONF_ALL && link_by_index(m, conf->ifindex) == NULL)
		breach(m, "setting on an unknown link");
	if (gone) {
		if (at == NULL)
			breach(m, "unknown setting gone");
		else
			*at = m->conf[--m->n_confs];
		return;
	}
	if (at == NULL)
		at = &m->conf[m->n_confs++];
	else if (at->forwarding == conf->forwarding &&
		 at->ignore_linkdown == conf->ignore_linkdown &&
		 at->rp_filter == conf->rp_filter)
		breach(m, "setting reported twice");
	*at = *conf;
}

static inline struct kmon_inet6 *
inet6_of(struct model *m, unsigned int ifindex)
{
	for (size_t i = 0; i < m->n_inet6s; i++)
		if (m->inet6[i].ifindex == ifindex)
			return &m->inet6[i];
	return NULL;
}

static inline void
on_inet6(void *ctx, const struct kmon_inet6 *inet6, bool gone)
{
	struct model *m = ctx;
	struct kmon_inet6 *at = inet6_of(m, inet6->ifindex);

	if (link_by_index(m, inet6->ifindex) == NULL)
		breach(m, "IPv6 of an unknown link");
	if (gone) {
		if (at == NULL)
			breach(m, "unknown IPv6 gone");
		else
			*at = m->inet6[--m->n_inet6s];
		return;
	}
	if (at == NULL)
		at = &m->inet6[m->n_inet6s++];
	else if (at->off == inet6->off && at->mtu_bytes == inet6->mtu_bytes &&
		 at->force_forwarding == inet6->force_forwarding)
		breach(m, "IPv6 of a link reported twice");
	*at = *inet6;
}

static inline struct kmon_addr *
addr_like(struct model *m, const struct kmon_addr *key)
{
	for (size_t i = 0; i < m->n_addrs; i++) {
		struct kmon_addr *a = &m->addr[i];

		if (a->ifindex == key->ifindex && a->family == key->family &&
		    a->plen == key->plen && memcmp(a->addr, key->addr, 16) == 0 &&
		    memcmp(a->peer, key->peer, 16) == 0)
			return a;
	}
	return NULL;
}

static inline void
on_addr(void *ctx, const struct kmon_addr *addr, bool gone)
{
	struct model *m = ctx;
	struct kmon_addr *at = addr_like(m, addr);

	if (link_by_index(m, addr->ifindex) == NULL)
		breach(m, "address on an unknown link");
	if (gone) {
		if (at == NULL)
			breach(m, "unknown address gone");
		else
			*at = m->addr[--m->n_addrs];
		return;
	}
	if (at == NULL)
		at = &m->addr[m->n_addrs++];
	else if (at->tentative == addr->tentative && at->secondary == addr->secondary &&
		 at->deprecated == addr->deprecated)
		breach(m, "address reported twice");
	*at = *addr;
}

static inline struct kmon_neigh *
neigh_like(struct model *m, unsigned int ifindex, const uint8_t addr[16])
{
	for (size_t i = 0; i < m->n_neighs; i++)
		if (m->neigh[i].ifindex == ifindex &&
		    memcmp(m->neigh[i].addr, addr, 16) == 0)
			return &m->neigh[i];
	return NULL;
}

static inline void
on_neigh(void *ctx, const struct kmon_neigh *neigh, bool gone)
{
	struct model *m = ctx;
	struct kmon_neigh *at = neigh_like(m, neigh->ifindex, neigh->addr);

	if (link_by_index(m, neigh->ifindex) == NULL)
		breach(m, "neighbor on an unknown link");
	if (gone) {
		if (at == NULL || neigh->nud != 0 || neigh->has_mac)
			breach(m, "neighbor gone that is not");
		else
			*at = m->neigh[--m->n_neighs];
		return;
	}
	m->n_failed += neigh->nud == NUD_FAILED;
	if (at == NULL)
		at = &m->neigh[m->n_neighs++];
	else if (at->nud == neigh->nud && neigh->nud != NUD_FAILED &&
		 at->has_mac == neigh->has_mac && memcmp(at->mac, neigh->mac, 6) == 0)
		breach(m, "neighbor reported twice");
	*at = *neigh;
	if (m->resolve_in_callback &&
	    kmon_resolve(m->km, neigh->ifindex, neigh->family, neigh->addr) < 0)
		breach(m, "resolve from a callback");
}

/* The kernel of the test may have the module mpls_router or not. */
static inline void
on_mpls(void *ctx, const struct kmon_mpls *mpls, bool gone)
{
	struct model *m = ctx;

	if (link_by_index(m, mpls->ifindex) == NULL)
		breach(m, "MPLS of an unknown link");
}

static const struct kmon_ops all_ops = {.on_link = on_link,
					.on_conf = on_conf,
					.on_mpls = on_mpls,
					.on_inet6 = on_inet6,
					.on_addr = on_addr,
					.on_neigh = on_neigh};

static inline struct model *
watch(struct bed *bed)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	assert_int_equal(kmon_open(&m->km, bed->netns, &all_ops, m), 0);
	return m;
}

static inline void
unwatch(struct model *m)
{
	if (m->broken != NULL)
		fail_msg("contract: %s", m->broken);
	kmon_close(m->km);
	free(m);
}

/* Wait for an event until `end` and handle it. Return false if none came. */
static inline bool
dispatch_until(struct model *m, int64_t end)
{
	struct pollfd pfd = {.fd = kmon_fd(m->km), .events = POLLIN};
	int64_t left = end - now_ms();

	if (left <= 0 || poll(&pfd, 1, (int)left) <= 0)
		return false;
	assert_int_equal(kmon_dispatch(m->km), 0);
	return true;
}

#define eventually(m, condition)                                  \
	do {                                                      \
		int64_t end_ms = now_ms() + PATIENCE_MS;          \
		while (!(condition) && dispatch_until(m, end_ms)) \
			;                                         \
		assert_true(condition);                           \
	} while (0)

/*
 * Return an address in the form of kmon. Valid until four other addresses have been parsed.
 */
static inline const uint8_t *
ip_octets(const char *text)
{
	static uint8_t ring[4][16];
	static unsigned int next;
	uint8_t *octets = ring[next++ % 4];

	memset(octets, 0, 16);
	if (strchr(text, ':') != NULL)
		assert_int_equal(inet_pton(AF_INET6, text, octets), 1);
	else
		assert_int_equal(inet_pton(AF_INET, text, octets), 1);
	return octets;
}

static inline const struct kmon_link *
find_link(struct model *m, const char *name)
{
	for (size_t i = 0; i < m->n_links; i++)
		if (strcmp(m->link[i].name, name) == 0)
			return &m->link[i];
	return NULL;
}

static inline bool
is_forwarding(struct model *m, unsigned int ifindex, uint8_t family)
{
	const struct kmon_conf *c = conf_like(m, ifindex, family);

	return c != NULL && c->forwarding;
}

static inline bool
ignores_linkdown(struct model *m, unsigned int ifindex, uint8_t family)
{
	const struct kmon_conf *c = conf_like(m, ifindex, family);

	return c != NULL && c->ignore_linkdown;
}

static inline unsigned int
rp_filter(struct model *m, unsigned int ifindex)
{
	const struct kmon_conf *c = conf_like(m, ifindex, 4);

	return c == NULL ? 0 : c->rp_filter;
}

static inline const struct kmon_addr *
find_addr(struct model *m, const char *text, uint8_t plen)
{
	const uint8_t *octets = ip_octets(text);

	for (size_t i = 0; i < m->n_addrs; i++)
		if (memcmp(m->addr[i].addr, octets, 16) == 0 && m->addr[i].plen == plen)
			return &m->addr[i];
	return NULL;
}

static inline const struct kmon_neigh *
find_neigh(struct model *m, const char *text)
{
	const uint8_t *octets = ip_octets(text);

	for (size_t i = 0; i < m->n_neighs; i++)
		if (memcmp(m->neigh[i].addr, octets, 16) == 0)
			return &m->neigh[i];
	return NULL;
}

static inline bool
neigh_is(struct model *m, const char *text, uint16_t nud, const uint8_t *mac)
{
	const struct kmon_neigh *n = find_neigh(m, text);

	return n != NULL && n->nud == nud && n->has_mac == (mac != NULL) &&
	       (mac == NULL || memcmp(n->mac, mac, 6) == 0);
}

static inline bool
has_tentative(const struct model *m)
{
	for (size_t i = 0; i < m->n_addrs; i++)
		if (m->addr[i].tentative)
			return true;
	return false;
}

/*
 * Assert that a new monitor sees the same state as `m`. Print the differences. Duplicate
 * address detection must be over: its end would come between the two.
 */
static inline void
assert_model_is_the_kernels(struct model *m, struct bed *bed)
{
	struct model *fresh;

	eventually(m, !has_tentative(m));
	fresh = watch(bed);
	assert_int_equal(m->n_links, fresh->n_links);
	assert_int_equal(m->n_addrs, fresh->n_addrs);
	assert_int_equal(m->n_neighs, fresh->n_neighs);
	for (size_t i = 0; i < fresh->n_links; i++) {
		const struct kmon_link *f = &fresh->link[i];
		const struct kmon_link *l = link_by_index(m, f->ifindex);

		assert_non_null(l);
		assert_string_equal(l->name, f->name);
		assert_int_equal(l->mtu_bytes, f->mtu_bytes);
		assert_int_equal(l->admin_up, f->admin_up);
		assert_int_equal(l->carrier, f->carrier);
		assert_int_equal(l->arp_off, f->arp_off);
		assert_memory_equal(l->mac, f->mac, 6);
	}
	for (size_t i = 0; i < fresh->n_addrs; i++) {
		const struct kmon_addr *a = addr_like(m, &fresh->addr[i]);

		assert_non_null(a);
		assert_int_equal(a->tentative, fresh->addr[i].tentative);
		assert_int_equal(a->secondary, fresh->addr[i].secondary);
	}
	for (size_t i = 0; i < fresh->n_neighs; i++) {
		const struct kmon_neigh *f = &fresh->neigh[i];
		const struct kmon_neigh *n = neigh_like(m, f->ifindex, f->addr);

		assert_non_null(n);
		assert_int_equal(n->nud, f->nud);
		assert_memory_equal(n->mac, f->mac, 6);
	}
	unwatch(fresh);
}

static inline bool
has_usable_link_local(const struct model *m)
{
	for (size_t i = 0; i < m->n_addrs; i++)
		if (m->addr[i].family == 6 && m->addr[i].addr[0] == 0xfe &&
		    !m->addr[i].tentative)
			return true;
	return false;
}

/*
 * Open TAP t0 with an address of each family, and watch it. Its neighbor timers are ten
 * times faster. The kernel does not check its addresses for duplicates, so that none comes
 * or changes during the test.
 */
static inline struct model *
watched_tap(struct bed *bed)
{
	struct model *m;

	bed_sysctl(bed, "ipv6/conf/default/accept_dad", "0");
	bed_tap(bed);
	ip(bed, "addr add 192.0.2.1/24 dev t0");
	ip(bed, "addr add 2001:db8::1/64 dev t0 nodad");
	bed_sysctl(bed, "ipv4/neigh/t0/retrans_time_ms", "100");
	bed_sysctl(bed, "ipv6/neigh/t0/retrans_time_ms", "100");
	m = watch(bed);
	eventually(m, find_link(m, "t0") != NULL && find_link(m, "t0")->carrier &&
			      find_addr(m, "2001:db8::1", 64) != NULL &&
			      !find_addr(m, "2001:db8::1", 64)->tentative &&
			      has_usable_link_local(m));
	return m;
}

#endif
