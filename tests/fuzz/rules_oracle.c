/* SPDX-License-Identifier: BSD-3-Clause */
/* Linux' choice of a rule and a route, see rules_oracle.h. */
#include "rules_oracle.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "must.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The answer of a rule to a packet. Only a route without an error can be suppressed. */
enum says { SAYS_NEXT, SAYS_ERROR, SAYS_ROUTE };

struct answer {
	enum says says;
	int len; /* of the prefix of the route */
	char text[80];
};

struct oracle oracle;
static struct oracle_rule rule[2][ORACLE_RULES];
static struct oracle_route route[ORACLE_ROUTES];
static struct prefix net[ORACLE_ROUTES], from[ORACLE_ROUTES]; /* of the routes */
static uint32_t n_rule[2], n_route;

static const struct {
	const char *net, *own;
	unsigned int link;
} connected[] = {{"192.0.2.0/25", "192.0.2.126", 0},
		 {"192.0.2.128/25", "192.0.2.254", 1},
		 {"2001:db8:1::/64", "2001:db8:1::ff", 0},
		 {"2001:db8:2::/64", "2001:db8:2::ff", 1}};

static struct prefix
parsed(const char *text)
{
	struct prefix p;

	MUST(prefix_parse(text, &p, NULL) == 0);
	return p;
}

static bool
covers(const struct prefix *p, const struct prefix *host)
{
	return p->family == host->family && prefix_covers(p, &host->addr);
}

/* --- events --------------------------------------------------------------------------- */

void
oracle_begin(void)
{
	oracle = (struct oracle){.up = {true, true, true}};
	n_rule[0] = n_rule[1] = n_route = 0;
}

bool
oracle_rule_add(const struct oracle_rule *new)
{
	unsigned int v = new->family == 6;
	uint32_t at = n_rule[v];

	if (at == ORACLE_RULES)
		return false;
	/* Insert the rule after the rules of the same priority. */
	for (; at > 0 && rule[v][at - 1].pref > new->pref; at--)
		rule[v][at] = rule[v][at - 1];
	rule[v][at] = *new;
	n_rule[v]++;
	return true;
}

bool
oracle_rule_del(uint8_t family, unsigned int which)
{
	unsigned int v = family == 6;

	if (n_rule[v] == 0)
		return false;
	n_rule[v]--;
	for (uint32_t at = which % (n_rule[v] + 1); at < n_rule[v]; at++)
		rule[v][at] = rule[v][at + 1];
	return true;
}

void
oracle_rules_clear(void)
{
	n_rule[0] = n_rule[1] = 0;
	memset(oracle.no_main, 0, sizeof(oracle.no_main));
	oracle.no_default = false;
}

uint32_t
oracle_list(uint8_t family, const struct oracle_rule *list[ORACLE_RULES + 4])
{
#define ALWAYS .action = FR_ACT_TO_TBL, .suppress = -1, .uid = { 0, UINT32_MAX }
	/* IPv6 has no rule for table default. */
	static const struct oracle_rule base[2][4] = {
		{{.family = 4, ALWAYS, .table = RT_TABLE_LOCAL},
		 {.family = 4, ALWAYS, .pref = 1000, .l3mdev = true},
		 {.family = 4, ALWAYS, .pref = 32766, .table = RT_TABLE_MAIN},
		 {.family = 4, ALWAYS, .pref = 32767, .table = RT_TABLE_DEFAULT}},
		{{.family = 6, ALWAYS, .table = RT_TABLE_LOCAL},
		 {.family = 6, ALWAYS, .pref = 1000, .l3mdev = true},
		 {.family = 6, ALWAYS, .pref = 32766, .table = RT_TABLE_MAIN},
		 {.family = 6, ALWAYS, .pref = 32767, .table = RT_TABLE_DEFAULT}}};
#undef ALWAYS
	unsigned int v = family == 6;
	uint32_t n = 0, at = 0;

	for (unsigned int i = 0; i < 4; i++) {
		for (; at < n_rule[v] && rule[v][at].pref < base[v][i].pref; at++)
			list[n++] = &rule[v][at];
		if ((i != 1 || oracle.vrf_up) && (i != 2 || !oracle.no_main[v]) &&
		    (i != 3 || (v == 0 && !oracle.no_default)))
			list[n++] = &base[v][i];
	}
	return n;
}

static bool
text_is(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool
oracle_route_add(const struct oracle_route *new)
{
	if (n_route == ORACLE_ROUTES)
		return false;
	net[n_route] = parsed(new->net);
	from[n_route] = new->src == NULL ? (struct prefix){.family = 6} : parsed(new->src);
	route[n_route++] = *new;
	return true;
}

bool
oracle_route_take(unsigned int which, struct oracle_route *old)
{
	if (n_route == 0)
		return false;
	which %= n_route;
	*old = route[which];
	n_route--;
	route[which] = route[n_route];
	net[which] = net[n_route];
	from[which] = from[n_route];
	return true;
}

bool
oracle_route_del(const struct oracle_route *like, struct oracle_route *old)
{
	for (uint32_t i = 0; i < n_route; i++)
		if (route[i].table == like->table && route[i].zebra == like->zebra &&
		    text_is(route[i].net, like->net) && text_is(route[i].src, like->src))
			return oracle_route_take(i, old);
	return false;
}

/* --- routes --------------------------------------------------------------------------- */

/* Write the path by a link of a route with the prefix length `len`. */
static struct answer
path_text(const char *gw, unsigned int link, int len)
{
	struct answer a = {.says = SAYS_ROUTE, .len = len};

	if (!oracle.up[link])
		snprintf(a.text, sizeof(a.text), "down");
	else
		snprintf(a.text, sizeof(a.text), "%s@%u", gw == NULL ? "onlink" : gw,
			 link + 1);
	return a;
}

static struct answer
error(const char *text)
{
	struct answer a = {.says = SAYS_ERROR};

	snprintf(a.text, sizeof(a.text), "%s", text);
	return a;
}

/*
 * Return the answer of a route, as fib_props[].error of IPv4 and dst.error of IPv6 give it.
 */
static struct answer
answer_of(const struct oracle_route *r, int len)
{
	switch (r->type) {
	case RTN_UNICAST:
		return path_text(r->hop->gw, r->hop->ifindex - 11, len);
	case RTN_BLACKHOLE:
		return error("blackhole");
	case RTN_UNREACHABLE:
		return error("unreachable");
	case RTN_PROHIBIT:
		return error("prohibit");
	default:
		return (struct answer){.says = SAYS_NEXT}; /* throw */
	}
}

/*
 * Return the longest prefix length below `below` for which the table has a route to `dst`.
 * A connected subnet whose link is up is a route of table main. -1: none.
 */
static int
next_len(uint32_t table, const struct prefix *dst, int below)
{
	int len = -1;

	for (uint32_t i = 0; i < n_route; i++)
		if (route[i].table == table && net[i].len < below && net[i].len > len &&
		    covers(&net[i], dst))
			len = net[i].len;
	for (unsigned int i = 0; table == RT_TABLE_MAIN && i < COUNT(connected); i++) {
		struct prefix p = parsed(connected[i].net);

		if (oracle.up[connected[i].link] && p.len < below && p.len > len &&
		    covers(&p, dst))
			len = p.len;
	}
	return len;
}

/*
 * Return the route of the table to the prefix of length `len` around `dst`. `by_source`:
 * the source-specific route whose source prefix contains `src` and is the longest.
 * Otherwise the plain route. NULL: none.
 */
static const struct oracle_route *
best_of(uint32_t table, const struct prefix *dst, int len, const struct prefix *src,
	bool by_source)
{
	const struct oracle_route *best = NULL;
	int longest = 0;

	for (uint32_t i = 0; i < n_route; i++) {
		const struct oracle_route *r = &route[i];

		if (r->table != table || net[i].len != len || !covers(&net[i], dst) ||
		    by_source != (r->src != NULL) || (by_source && !covers(&from[i], src)))
			continue;
		if (best == NULL || from[i].len > longest ||
		    (from[i].len == longest && r->metric < best->metric)) {
			best = r;
			longest = from[i].len;
		}
	}
	return best;
}

/* Return true if the prefix has a source-specific route. */
static bool
node_has_sources(uint32_t table, const struct prefix *dst, int len)
{
	for (uint32_t i = 0; i < n_route; i++)
		if (route[i].table == table && route[i].src != NULL && net[i].len == len &&
		    covers(&net[i], dst))
			return true;
	return false;
}

/*
 * Look a packet up in a table. The route with the longest prefix counts. In IPv6 the plain
 * route of a prefix that has source-specific routes is not used, except for the default
 * route (fib6_node_lookup_1()).
 */
static struct answer
table_lookup(uint32_t table, const struct oracle_packet *k)
{
	const struct prefix *dst = &k->dst;

	for (int len = next_len(table, dst, 129); len >= 0;
	     len = next_len(table, dst, len)) {
		const struct oracle_route *r = best_of(table, dst, len, &k->src, true);

		if (r == NULL && len > 0 && node_has_sources(table, dst, len))
			continue;
		if (r == NULL)
			r = best_of(table, dst, len, &k->src, false);
		if (r != NULL)
			return answer_of(r, len);
		for (unsigned int i = 0; len > 0 && i < COUNT(connected); i++) {
			struct prefix p = parsed(connected[i].net);

			if (p.len == len && covers(&p, dst))
				return path_text(NULL, connected[i].link, len);
		}
	}
	if (table == ORACLE_VRF_TABLE && oracle.vrf_up)
		return error("unreachable");
	return (struct answer){.says = SAYS_NEXT};
}

static struct answer
local_lookup(const struct oracle_packet *k)
{
	struct answer a = {.says = SAYS_ROUTE, .len = (int)family_bits(k->family)};

	if (!k->own)
		return (struct answer){.says = SAYS_NEXT};
	snprintf(a.text, sizeof(a.text), "local");
	return a;
}

/* --- rules ---------------------------------------------------------------------------- */

static bool
port_matches(const struct oracle_ports *want, uint16_t port)
{
	if (want->last == 0)
		return true;
	return want->mask != 0 ? ((want->first ^ port) & want->mask) == 0
			       : port >= want->first && port <= want->last;
}

static bool
iif_matches(const struct oracle_rule *r, const struct oracle_packet *k)
{
	static const struct {
		const char *name;
		uint32_t ifindex;
	} link[] = {{"p1", 1}, {"p11", 11}, {"p12", 12}, {"p13", 13}};

	if (r->iif == NULL)
		return true;
	if (strcmp(r->iif, "p21") == 0)
		return oracle.vrf_up && k->vrf != 0;
	for (unsigned int i = 0; i < COUNT(link); i++)
		if (strcmp(r->iif, link[i].name) == 0)
			return link[i].ifindex == k->ifindex;
	return false;
}

/* IPv4 compares three bits of a TOS, and all six of a DSCP. */
static bool
tos_matches(const struct oracle_rule *r, const struct oracle_packet *k)
{
	if (r->has_dscp)
		return k->tos >> 2 == r->dscp;
	return r->tos == 0 || (k->tos & (r->family == 4 ? 0x1c : 0xfc)) == r->tos;
}

/* A forwarded packet has mark 0, uid 0, no tunnel and no socket. */
static bool
rule_matches(const struct oracle_rule *r, const struct oracle_packet *k)
{
	bool is = iif_matches(r, k) && r->oif == NULL &&
		  ((r->mark ^ 0u) & r->mark_mask) == 0 && r->tunnel == 0 &&
		  (!r->l3mdev || k->vrf != 0) && r->uid[0] == 0 &&
		  (r->src.len == 0 || covers(&r->src, &k->src)) &&
		  (r->dst.len == 0 || covers(&r->dst, &k->dst)) && tos_matches(r, k) &&
		  (r->ip_proto == 0 || r->ip_proto == k->proto) &&
		  port_matches(&r->sport, k->sport) && port_matches(&r->dport, k->dport);

	return is != r->invert;
}

static struct answer
rule_action(const struct oracle_rule *r, const struct oracle_packet *k)
{
	switch (r->action) {
	case FR_ACT_BLACKHOLE:
		return error("blackhole");
	case FR_ACT_UNREACHABLE:
		return error("none"); /* as if the route did not exist */
	case FR_ACT_PROHIBIT:
		return error("prohibit");
	default:
		break;
	}
	/*
	 * The table of l3mdev is the table of the packet's VRF; without a VRF it is main.
	 */
	if (r->l3mdev)
		return table_lookup(k->vrf != 0 ? ORACLE_VRF_TABLE : RT_TABLE_MAIN, k);
	return r->table == RT_TABLE_LOCAL ? local_lookup(k) : table_lookup(r->table, k);
}

/* Return the index of the first rule with priority `pref`; n: none. */
static uint32_t
target_of(const struct oracle_rule *const *list, uint32_t n, uint32_t pref)
{
	uint32_t i = 0;

	while (i < n && list[i]->pref != pref)
		i++;
	return i;
}

/* Search the rules as fib_rules_lookup() of Linux does. */
void
oracle_answer(const struct oracle_packet *k, char *out, size_t size)
{
	const struct oracle_rule *list[ORACLE_RULES + 4];
	uint32_t n = oracle_list(k->family, list), i = 0, to;

	while (i < n) {
		const struct oracle_rule *r = list[i++];
		struct answer a;

		if (!rule_matches(r, k) || r->action == FR_ACT_NOP)
			continue;
		if (r->action == FR_ACT_GOTO) {
			to = target_of(list, n, r->target);
			i = to == n ? i : to;
			continue;
		}
		a = rule_action(r, k);
		if (a.says == SAYS_NEXT || (a.says == SAYS_ROUTE && a.len <= r->suppress))
			continue;
		snprintf(out, size, "%s", a.text);
		return;
	}
	snprintf(out, size, "none");
}

/* --- packets -------------------------------------------------------------------------- */

static const char *const src_of[2][4] = {
	{"192.0.2.9", "192.0.2.20", "10.1.1.1", "203.0.113.77"},
	{"2001:db8:9:1::5", "2001:db8:9:1::6", "2001:db8:9::7", "2001:db8:8::1"}};
static const char *const dst_of[2][7] = {
	{"198.51.100.9", "198.51.100.10", "198.51.100.200", "203.0.113.9", "10.9.9.9",
	 "192.0.2.9", "192.0.2.126"},
	{"2001:db8:100::9", "2001:db8:100::a", "2001:db8:100:1::1", "2001:db8:900::9",
	 "2001:db9::1", "2001:db8:1::7", "2001:db8:1::ff"}};

unsigned int
oracle_n_packets(void)
{
	return 2 * 4 * 7;
}

struct oracle_packet
oracle_packet(unsigned int i, unsigned int seed)
{
	static const struct {
		uint8_t proto;
		uint16_t sport, dport;
		bool fragment;
	} kind[] = {{17, 1000, 53, false},
		    {6, 53, 0x1234, false},
		    {17, 2001, 1500, true},
		    {1, 0, 0, false},
		    {6, 4000, 53, false}};
	static const uint32_t ifindex[] = {11, 12, 13, 1, 11};
	static const uint8_t tos[] = {0, 0x10, 0xb8, 0x09};
	unsigned int v = i / 28 % 2, mix = (i + seed * 3) * 2654435761u >> 8;
	struct oracle_packet k = {.family = v ? 6 : 4,
				  .tos = tos[mix % 4],
				  .proto = kind[mix / 4 % 5].proto,
				  .fragment = kind[mix / 4 % 5].fragment,
				  .sport = kind[mix / 4 % 5].sport,
				  .dport = kind[mix / 4 % 5].dport,
				  .ifindex = ifindex[mix / 32 % 5],
				  .src = parsed(src_of[v][i % 4]),
				  .dst = parsed(dst_of[v][i % 28 / 4])};

	k.own = i % 28 / 4 == 6;
	k.vrf = k.ifindex == 13 && oracle.vrf_up;
	/* As the kernel dissects it, a fragment has no ports. */
	if (k.fragment)
		k.sport = k.dport = 0;
	return k;
}

void
oracle_packet_octets(const struct oracle_packet *k, uint8_t ip[64])
{
	unsigned int at = k->family == 4 ? 20 : 40;

	memset(ip, 0, 64);
	if (k->family == 4) {
		ip[0] = 0x45;
		ip[1] = k->tos;
		ip[6] = k->fragment ? 0x20 : 0; /* more fragments */
		ip[9] = k->proto;
		memcpy(ip + 12, k->src.addr.octet, 4);
		memcpy(ip + 16, k->dst.addr.octet, 4);
	} else {
		ip[0] = (uint8_t)(0x60 | k->tos >> 4);
		ip[1] = (uint8_t)(k->tos << 4);
		ip[6] = k->fragment ? 44 : k->proto;
		memcpy(ip + 8, k->src.addr.octet, 16);
		memcpy(ip + 24, k->dst.addr.octet, 16);
		ip[at] = k->fragment ? k->proto : 0;
		at += k->fragment ? 8 : 0;
	}
	ip[at] = (uint8_t)(k->sport >> 8);
	ip[at + 1] = (uint8_t)k->sport;
	ip[at + 2] = (uint8_t)(k->dport >> 8);
	ip[at + 3] = (uint8_t)k->dport;
	if (k->fragment)
		ip[at + 1] = ip[at + 3] = 53; /* no ports: a lookup must not read them */
}

void
oracle_print(void)
{
	char src[PREFIX_STRLEN], dst[PREFIX_STRLEN];

	fprintf(stderr, "links %d%d%d, VRF %d\n", oracle.up[0], oracle.up[1], oracle.up[2],
		oracle.vrf_up);
	for (unsigned int v = 0; v < 2; v++) {
		const struct oracle_rule *list[ORACLE_RULES + 4];
		uint32_t n = oracle_list(v ? 6 : 4, list);

		for (uint32_t i = 0; i < n; i++)
			fprintf(stderr,
				"rule v%d pref %u%s from %s to %s iif %s oif %s tos %u "
				"dscp %d proto %u sport %u dport %u mark %u/%u uid %u "
				"tunnel %u action %u table %u l3mdev %d target %u suppress "
				"%d\n",
				v ? 6 : 4, list[i]->pref, list[i]->invert ? " not" : "",
				prefix_str(&list[i]->src, src),
				prefix_str(&list[i]->dst, dst),
				list[i]->iif ? list[i]->iif : "any",
				list[i]->oif ? list[i]->oif : "any", list[i]->tos,
				list[i]->has_dscp ? list[i]->dscp : -1, list[i]->ip_proto,
				list[i]->sport.last, list[i]->dport.last, list[i]->mark,
				list[i]->mark_mask, list[i]->uid[0], list[i]->tunnel,
				list[i]->action, list[i]->table, list[i]->l3mdev,
				list[i]->target, list[i]->suppress);
	}
	for (uint32_t i = 0; i < n_route; i++)
		fprintf(stderr,
			"route %s from %s table %u type %u metric %u by %s dev %u%s\n",
			route[i].net, route[i].src ? route[i].src : "any", route[i].table,
			route[i].type, route[i].metric,
			route[i].hop->gw ? route[i].hop->gw : "link", route[i].hop->ifindex,
			route[i].zebra ? " zebra" : "");
}
