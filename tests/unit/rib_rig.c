/* SPDX-License-Identifier: BSD-3-Clause */
/* A RIB without its thread, see rib_rig.h. */
#include "rib_rig.h"

#include <stdio.h>
#include <urcu/urcu-qsbr.h>

#include "fib/headend.h"
#include "rib/restore.h"

struct table_limits *rig_limits;

void
rig_limit(enum table table, unsigned int max)
{
	static struct table_limits limits;

	for (unsigned int t = 0; t < N_TABLE; t++)
		limits.max[t] = table_limit(NULL, (enum table)t);
	limits.max[table] = max;
	rig_limits = &limits;
}
uint64_t rig_now_ms = 1000000;

static uint64_t
rig_clock(void)
{
	return rig_now_ms;
}

/*
 * Make a rig with a copy of the tries for each of `n_nodes` NUMA nodes. 1: one copy, on any
 * node.
 */
static struct rig *
rig_make(unsigned int n_nodes)
{
	static __thread bool registered;
	struct rig *g = calloc(1, sizeof(*g));
	struct rib_conf conf = {.limits = rig_limits,
				.sweep_quiet_s = 5,
				.sweep_max_s = 120,
				.sweep_restart_s = 60,
				.checkpoint_fd = -1};
	struct fib_conf fc = {.retire = rib_retire, .limits = rig_limits};

	if (!registered)
		urcu_qsbr_register_thread();
	registered = true;
	conf.neigh = &g->neigh;
	conf.fpm = &g->fpm;
	conf.rtnl = &g->rtnl;
	assert_int_equal(worker_prepare(&g->neigh), 0);
	assert_int_equal(worker_prepare(&g->ui), 0);
	assert_int_equal(worker_prepare(&g->fpm), 0);
	assert_int_equal(worker_prepare(&g->rtnl), 0);
	assert_int_equal(rib_setup(&g->w, &conf), 0);
	assert_int_equal(worker_prepare(&g->w), 0);
	g->rib = g->w.ctx;
	g->rib->clock_ms = rig_clock;
	fc.retire_ctx = &g->w;
	for (; n_nodes > 1 && fc.n_nodes < n_nodes; fc.n_nodes++)
		fc.node[fc.n_nodes] = (int)fc.n_nodes;
	assert_int_equal(fib_create(&g->fib, &fc), 0);
	rib_set_fib(&g->w, g->fib);
	g->rib->vrfs.told = true; /* there is nothing to wait for */
	g->fib->vrfs_told = true;
	return g;
}

struct rig *
rig_new(void)
{
	return rig_make(1);
}

struct rig *
rig_begun(int fd, uint64_t netns)
{
	struct rig *g = rig_new();

	g->rib->conf.checkpoint = true;
	g->rib->conf.checkpoint_max_age_s = 60;
	g->rib->conf.netns_id = netns;
	checkpoint_begin(g->rib, fd);
	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_addr(g, 11, "192.0.2.126/25", false);
	rig_addr(g, 12, "192.0.2.254/25", false);
	rig_settle(g);
	return g;
}

void
rig_free(struct rig *g)
{
	if (g->batch != NULL)
		msg_free(&g->batch->m);
	if (g->kernel_batch != NULL)
		msg_free(&g->kernel_batch->m);
	g->rib->stopping = true;
	urcu_qsbr_barrier();
	GRACE_ACQUIRE(g->rib);
	worker_free(&g->w);
	worker_free(&g->neigh);
	worker_free(&g->ui);
	worker_free(&g->fpm);
	worker_free(&g->rtnl);
	free(g->rule_ifaces);
	rib_teardown(&g->w);
	fib_destroy(g->fib);
	free(g->entry);
	vec32_free(&g->entry_unused);
	hidx_free(&g->by_prefix);
	free(g);
}

struct fpm_event *
rig_event(struct rig *g, enum fpm_event_kind kind)
{
	struct fpm_event *ev;

	if (g->kernel_batch != NULL || (g->batch != NULL && g->batch->n == FPM_BATCH_MAX))
		rig_flush_batch(g);
	if (g->batch == NULL)
		g->batch = msg_new(MSG_FPM_BATCH, sizeof(*g->batch));
	ev = &g->batch->ev[g->batch->n++];
	ev->kind = (uint8_t)kind;
	ev->rtm_type = RTN_UNICAST;
	ev->protocol = 186;
	ev->table = 254;
	g->batch->bytes += 56;
	return ev;
}

void
rig_flush_batch(struct rig *g)
{
	struct msg_fpm_batch *b = g->batch;
	struct msg_kernel_batch *k = g->kernel_batch;

	g->batch = NULL;
	g->kernel_batch = NULL;
	if (b != NULL)
		rib_on_msg(g->rib, &b->m);
	if (k != NULL)
		rib_on_msg(g->rib, &k->m);
}

void
rig_go(struct rig *g)
{
	uint32_t asked;

	rig_flush_batch(g);
	do {
		while (rib_round(g->rib))
			;
		asked = g->rib->adjs.n_asked;
		rig_neigh_serve(g);
	} while (g->rib->adjs.n_asked < asked);
}

void
rig_ready(struct rig *g, const char *gw, uint32_t ifindex)
{
	struct msg_adj *m = msg_new(MSG_ADJ_READY, sizeof(*m));

	m->adj = rig_adj(g, gw, ifindex);
	m->resolved = true;
	rib_on_msg(g->rib, &m->m);
	rig_go(g);
}

void
rig_session(struct rig *g, uint32_t nl_pid)
{
	struct fpm_event *ev = rig_event(g, FPM_SESSION_UP);

	ev->session.gen = ++g->gen;
	ev->session.nl_pid = nl_pid;
}

void
rig_session_down(struct rig *g)
{
	rig_event(g, FPM_SESSION_DOWN)->session.gen = g->gen;
}

struct prefix
rig_prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	return p;
}

void
rig_route(struct rig *g, const char *text, uint32_t nhid)
{
	struct fpm_event *ev = rig_event(g, FPM_ROUTE);

	ev->prefix = rig_prefix(text);
	ev->nhid = nhid;
}

void
rig_set_hop(struct fpm_hop *h, const char *gw, uint32_t ifindex)
{
	*h = (struct fpm_hop){.ifindex = ifindex, .weight = 1};
	if (gw != NULL) {
		struct prefix p = rig_prefix(gw);

		h->gw_family = p.family;
		h->gw = p.addr;
	}
}

void
rig_route_inline(struct rig *g, const char *text, const char *gw, uint32_t ifindex)
{
	struct fpm_event *ev = rig_event(g, FPM_ROUTE);

	ev->prefix = rig_prefix(text);
	ev->n_hops = 1;
	ev->hops = calloc(1, sizeof(*ev->hops));
	rig_set_hop(ev->hops, gw, ifindex);
}

void
rig_route_in(struct rig *g, uint32_t table, const char *text, const char *gw,
	     uint32_t ifindex)
{
	rig_route_inline(g, text, gw, ifindex);
	g->batch->ev[g->batch->n - 1].table = table;
}

void
rig_route_type(struct rig *g, const char *text, uint8_t rtm_type)
{
	struct fpm_event *ev = rig_event(g, FPM_ROUTE);

	ev->prefix = rig_prefix(text);
	ev->rtm_type = rtm_type;
}

const char *
rig_net(unsigned int i)
{
	static char text[32];

	snprintf(text, sizeof(text), "10.%u.%u.0/24", i >> 8, i & 255);
	return text;
}

void
rig_routes(struct rig *g, unsigned int n, uint32_t nhid)
{
	for (unsigned int i = 0; i < n; i++)
		rig_route(g, rig_net(i), nhid);
}

void
rig_del(struct rig *g, const char *text)
{
	rig_event(g, FPM_ROUTE_DEL)->prefix = rig_prefix(text);
}

void
rig_sentinel(struct rig *g)
{
	rig_route_type(g, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", RTN_BLACKHOLE);
}

void
rig_hop(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex)
{
	struct fpm_event *ev = rig_event(g, FPM_NEXTHOP);

	ev->nhid = id;
	ev->n_hops = 1;
	ev->hops = calloc(1, sizeof(*ev->hops));
	rig_set_hop(ev->hops, gw, ifindex);
}

void
rig_group(struct rig *g, uint32_t id, unsigned int n, ...)
{
	struct fpm_event *ev = rig_event(g, FPM_NEXTHOP);
	va_list ap;

	ev->nhid = id;
	ev->is_group = true;
	ev->n_hops = (uint16_t)n;
	ev->hops = calloc(n, sizeof(*ev->hops));
	va_start(ap, n);
	for (unsigned int i = 0; i < n; i++) {
		ev->hops[i].id = va_arg(ap, uint32_t);
		ev->hops[i].weight = va_arg(ap, uint32_t);
	}
	va_end(ap);
}

void
rig_nh_del(struct rig *g, uint32_t id)
{
	rig_event(g, FPM_NEXTHOP_DEL)->nhid = id;
}

/* Send rib the state of a link, whose name is `letter` and its ifindex. */
static void
link_heard(struct rig *g, char letter, const struct msg_link *state)
{
	struct msg_link *m = msg_new(MSG_LINK, sizeof(*m));
	struct msg head = m->m;

	*m = *state;
	m->m = head;
	snprintf(m->name, sizeof(m->name), "%c%u", letter, m->ifindex);
	rib_on_msg(g->rib, &m->m);
	rig_go(g);
}

void
rig_tunnel(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up)
{
	link_heard(g, 't',
		   &(struct msg_link){.ifindex = ifindex,
				      .ifidx = ifidx,
				      .tunnel = true,
				      .gre = true,
				      .up = up});
}

void
rig_tunnel_of_ip(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up)
{
	link_heard(g, 't',
		   &(struct msg_link){
			   .ifindex = ifindex, .ifidx = ifidx, .tunnel = true, .up = up});
}

void
rig_link(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up)
{
	link_heard(g, 'p',
		   &(struct msg_link){.ifindex = ifindex, .ifidx = ifidx, .up = up});
}

void
rig_link_ignoring(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool up, uint8_t family)
{
	struct msg_link state = {.ifindex = ifindex, .ifidx = ifidx, .up = up};

	state.ignore_linkdown[family == 6] = true;
	link_heard(g, 'p', &state);
}

void
rig_link_ipv6(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool off)
{
	link_heard(
		g, 'p',
		&(struct msg_link){
			.ifindex = ifindex, .ifidx = ifidx, .up = true, .ipv6_off = off});
}

void
rig_link_ipv4(struct rig *g, uint32_t ifindex, uint16_t ifidx, bool has_address)
{
	link_heard(g, 'p',
		   &(struct msg_link){.ifindex = ifindex,
				      .ifidx = ifidx,
				      .up = true,
				      .no_ipv4 = !has_address});
}

void
rig_link_of_vrf(struct rig *g, uint32_t ifindex, uint16_t vrf, bool up)
{
	link_heard(g, 'p', &(struct msg_link){.ifindex = ifindex, .vrf = vrf, .up = up});
}

void
rig_vrf(struct rig *g, uint16_t number, uint32_t table, const char *name)
{
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	m->number = number;
	m->table = table;
	m->gone = name == NULL;
	snprintf(m->name, sizeof(m->name), "%s", name == NULL ? "" : name);
	rib_on_msg(g->rib, &m->m);
	rig_go(g);
}

void
rig_link_gone(struct rig *g, uint32_t ifindex)
{
	struct msg_link *m = msg_new(MSG_LINK, sizeof(*m));

	m->ifindex = ifindex;
	m->gone = true;
	rib_on_msg(g->rib, &m->m);
	rig_addrs_gone(g, ifindex);
	rig_go(g);
}

uint32_t
rig_adj(struct rig *g, const char *gw, uint32_t ifindex)
{
	struct prefix p = rig_prefix(gw);

	for (uint32_t i = 1; i <= g->rib->adjs.high; i++) {
		const struct adj *a = &g->rib->adjs.v[i];

		if (a->state == ADJ_WATCHED && a->ifindex == ifindex &&
		    a->family == p.family && ipaddr_equal(&a->addr, &p.addr))
			return i;
	}
	return 0;
}

static void
rig_adj_state(struct rig *g, const char *gw, uint32_t ifindex, bool alive, uint64_t mac)
{
	struct msg_adj *m = msg_new(MSG_ADJ_STATE, sizeof(*m));
	struct prefix p = rig_prefix(gw);

	m->adj = rig_adj(g, gw, ifindex);
	assert_int_not_equal(m->adj, 0);
	m->ifindex = ifindex;
	m->family = p.family;
	m->addr = p.addr;
	m->alive = m->resolved = alive;
	m->mac = mac;
	rib_on_msg(g->rib, &m->m);
	rig_go(g);
}

void
rig_alive(struct rig *g, const char *gw, uint32_t ifindex, bool alive)
{
	rig_adj_state(g, gw, ifindex, alive, 0);
}

void
rig_mac(struct rig *g, const char *gw, uint32_t ifindex, uint64_t mac)
{
	rig_adj_state(g, gw, ifindex, true, mac);
}

void
rig_neigh_serve(struct rig *g)
{
	struct msg *m;

	while ((m = worker_take(&g->neigh)) != NULL) {
		if (m->type == MSG_RULE_IFACES) {
			free(g->rule_ifaces);
			g->rule_ifaces = (struct msg_rule_ifaces *)m;
			continue;
		}
		if (m->type == MSG_ADJ_WATCH) {
			g->n_watch++;
			m->type = MSG_ADJ_READY;
			((struct msg_adj *)m)->resolved = !g->unresolved;
		} else {
			g->n_unwatch++;
			m->type = MSG_ADJ_FREED;
		}
		if (m->type == MSG_ADJ_READY ? g->hold_ready : g->hold_freed)
			msg_free(m);
		else
			rib_on_msg(g->rib, m);
	}
}

void
rig_settle(struct rig *g)
{
	struct msg *m;
	bool more;

	do {
		more = false;
		rig_go(g);
		urcu_qsbr_barrier();
		for (; (m = worker_take(&g->w)) != NULL; more = true)
			rib_on_msg(g->rib, m);
		rig_neigh_serve(g);
	} while (more || g->rib->reclaims.n > 0 || g->rib->reclaims.open != NULL ||
		 g->rib->adjs.freed);
}

void
rig_later(struct rig *g, unsigned int s)
{
	rig_now_ms += s * 1000;
	rig_settle(g);
}

struct rig *
rig_two_ports(void)
{
	struct rig *g = rig_new();

	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_addr(g, 11, "192.0.2.126/25", false);
	rig_addr(g, 12, "192.0.2.254/25", false);
	rig_addr(g, 11, "2001:db8:1::ff/64", false);
	rig_addr(g, 12, "2001:db8:2::ff/64", false);
	return g;
}

struct rig *
rig_two_vrfs(void)
{
	struct rig *g = rig_new();

	rig_vrf(g, RIG_RED, "red");
	rig_vrf(g, RIG_BLUE, "blue");
	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_link(g, 13, 3, true);
	rig_addr_in(g, 100, 11, "192.0.2.1/24", false);
	rig_addr_in(g, 2000, 12, "192.0.2.1/24", false);
	return g;
}

bool rig_no_memory;

static void *
poor_alloc(void *ctx, size_t bytes, size_t align)
{
	void *mem = NULL;

	if (rig_no_memory || posix_memalign(&mem, align < 8 ? 8 : align, bytes) != 0)
		return NULL;
	return mem;
}

static void
poor_free(void *ctx, void *mem)
{
	free(mem);
}

/*
 * Replace an IPv4 trie without routes by one that gets no memory while rig_no_memory is
 * set.
 */
static void
trie_make_poor(struct rig *g, struct poptrie **pt, bool small)
{
	struct poptrie_conf conf = {.family = POPTRIE_IP4,
				    .small = small,
				    .alloc = poor_alloc,
				    .free = poor_free,
				    .retire = rib_retire,
				    .ctx = &g->w};

	rig_no_memory = false;
	poptrie_destroy(*pt);
	assert_int_equal(poptrie_create(pt, &conf), 0);
}

void
rig_vrf_poor(struct rig *g, uint16_t number, uint32_t table, const char *name)
{
	struct msg_vrf *m = msg_new(MSG_VRF, sizeof(*m));

	m->number = number;
	m->table = table;
	snprintf(m->name, sizeof(m->name), "%s", name);
	rib_on_msg(g->rib, &m->m);
	trie_make_poor(g, &g->rib->vrfs.v[number]->fib->tries.pt4, true);
}

struct rig *
rig_poor(unsigned int n_nodes)
{
	struct rig *g = rig_make(n_nodes);

	trie_make_poor(g, &g->fib->copy[n_nodes - 1].pt4, false);
	rig_link(g, 11, 1, true);
	rig_link(g, 12, 2, true);
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_hop(g, 8, "192.0.2.129", 12);
	return g;
}

void
rig_path_text(const struct rig *g, fib_path path, char *out, size_t size)
{
	static const char *const name[] = {
		[PATH_NONE] = "none",
		[PATH_LOCAL] = "local",
		[PATH_BCAST] = "bcast",
		[PATH_BLACKHOLE] = "blackhole",
		[PATH_UNREACHABLE] = "unreachable",
		[PATH_PROHIBIT] = "prohibit",
		[PATH_UNRESOLVED] = "unresolved",
		[PATH_FOREIGN] = "foreign",
		[PATH_ENCAP] = "encap",
		[PATH_DOWN] = "down",
		[PATH_VRF] = "vrf",
		[PATH_NO_FIB] = "no fib",
		[PATH_THROW] = "throw",
	};
	char buf[PREFIX_STRLEN];
	int n;

	if (path_is_headend(g->fib, path)) {
		const struct fib_headend *h = &g->fib->headend[path_index(path)];
		struct ipaddr first;

		memcpy(first.octet, h->head + 24, sizeof(first.octet));
		n = snprintf(out, size, "headend %s", ipaddr_str(&first, 6, buf));
	} else if (path_kind(path) == PATH_ENCAP && !path_is_unsupported(path)) {
		const struct fib_encap *e = fib_encap(g->fib, path);
		fib_path next = encap_next(e);
		bool tunnel = path_kind(next) == PATH_ONLINK;
		const struct fib_adj *a = &g->fib->adj[tunnel ? 0 : path_index(next)];

		n = snprintf(out, size, "%s@%u",
			     tunnel ? "onlink" : ipaddr_str(&a->addr, a->family, buf),
			     tunnel ? path_index(next) : a->ifidx);
		for (unsigned int i = 0; i < e->n; i++)
			n += snprintf(out + n, size - (size_t)n, "%s%u",
				      i == 0 ? " push " : "/", encap_label(e, i));
		if (e->ttl != 0)
			n += snprintf(out + n, size - (size_t)n, " ttl %u",
				      e->ttl - LABEL_TTL_OWN);
	} else if (path_kind(path) == PATH_ADJ) {
		const struct fib_adj *a = &g->fib->adj[path_index(path)];

		n = snprintf(out, size, "%s@%u", ipaddr_str(&a->addr, a->family, buf),
			     a->ifidx);
	} else if (path_kind(path) == PATH_ONLINK) {
		n = snprintf(out, size, "onlink@%u", path_index(path));
	} else if (path_kind(path) == PATH_KERNEL) {
		n = snprintf(out, size, "kernel@%u", path_index(path));
	} else {
		n = snprintf(out, size, "%s", name[path_kind(path)]);
	}
	/* Only rules distinguish PATH_CLASS_NOT_OF_LOCAL. */
	if (path_kind(path) == PATH_LOCAL || path_kind(path) == PATH_BCAST)
		return;
	if (path_mtu_class(path) == FIB_CLASS_PIPE)
		snprintf(out + n, size - (size_t)n, " pipe");
	else if (path_mtu_class(path) == FIB_CLASS_UNIFORM)
		snprintf(out + n, size - (size_t)n, " uniform");
	else if (path_mtu_class(path) != 0)
		snprintf(out + n, size - (size_t)n, " mtu %u",
			 g->fib->mtu_bytes[path_mtu_class(path)]);
}

static int
text_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *
rig_seen(const struct rig *g, const char *dst)
{
	return rig_seen_in(g, 0, dst);
}

const char *
rig_seen_in(const struct rig *g, uint16_t vrf, const char *dst)
{
	static char out[8192], seen[4096][80];
	struct prefix p = rig_prefix(dst);
	size_t n = 0;

	for (unsigned int i = 0; i < 4096; i++)
		rig_path_text(g, fib_resolve(g->fib, vrf, p.family, &p.addr, i << 20),
			      seen[i], sizeof(seen[i]));
	qsort(seen, 4096, sizeof(seen[0]), text_order);
	if (strcmp(seen[0], seen[4095]) == 0)
		return seen[0];
	for (unsigned int i = 0, j; i < 4096; i = j) {
		for (j = i; j < 4096 && strcmp(seen[i], seen[j]) == 0;)
			j++;
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s*%u",
				      i == 0 ? "" : " ", seen[i], j - i);
		assert_true(n < sizeof(out));
	}
	return out;
}

uint32_t
rig_group_of(const struct rig *g, const char *dst)
{
	struct prefix p = rig_prefix(dst);

	return p.family == 4 ? poptrie4_lookup(g->fib->copy[0].pt4, ipaddr_v4(&p.addr))
			     : poptrie6_lookup(g->fib->copy[0].pt6, p.addr.octet);
}

json_t *
rig_ask(struct rig *g, const struct msg_query *proto, unsigned int *slices)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));
	json_t *all = json_array();
	struct msg *m = &q->m;

	*q = *proto;
	q->m.type = MSG_QUERY;
	q->from = &g->ui;
	if (slices != NULL)
		*slices = 0;
	for (;;) {
		if (slices != NULL)
			++*slices;
		m->type = MSG_QUERY;
		rib_on_msg(g->rib, m);
		rib_round(g->rib);
		m = worker_take(&g->ui);
		assert_non_null(m);
		assert_int_equal(m->type, MSG_REPLY);
		q = (struct msg_query *)m;
		assert_true(json_array_size(q->rows) <= q->max);
		json_array_extend(all, q->rows);
		json_decref(q->rows);
		q->rows = NULL;
		if (q->done)
			break;
	}
	msg_free(m);
	return all;
}

json_t *
rig_summary(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_SUMMARY, .max = 1};
	json_t *rows = rig_ask(g, &q, NULL), *row = json_array_get(rows, 0);

	json_incref(row);
	json_decref(rows);
	return row;
}

json_int_t
rig_summary_int(struct rig *g, const char *key)
{
	json_t *row = rig_summary(g), *value = json_object_get(row, key);
	json_int_t n = json_integer_value(value);

	assert_true(json_is_integer(value));
	json_decref(row);
	return n;
}
