/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policy routing against a naive model of Linux. A script makes rules, routes, VRFs and
 * changes of links. The rules are encoded as messages of the kernel and pass the decoder.
 * After each rig_settle() the answer of the published list for a set of packets equals the
 * answer of rules_oracle.c, which keeps the same events in plain arrays. At the end all is
 * removed, and no FIB, view, source, slot or list is left.
 *
 * A libFuzzer target. An input is a script: an octet chooses a step, the octets after it
 * are the values of the step.
 */
#include "../unit/rib_rig.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>

#include "fib/rules.h"
#include "invariants.h"
#include "netlink/rule_message.h"
#include "rules_oracle.h"

#define INPUTS_A_RIG  100u
#define STEPS_MAX     120u
#define COMPARES_MAX  12u
#define PICK(pool, i) (pool)[(i) % (sizeof(pool) / sizeof((pool)[0]))]

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step {
	STEP_RULE,
	STEP_RULE_DEL,
	STEP_ROUTE,
	STEP_ROUTE_DEL,
	STEP_SOURCE,
	STEP_BASE,
	STEP_LINK,
	STEP_VRF,
	STEP_RAW,
	STEP_GO,
	STEP_SETTLE,
	STEP_N
};

static struct rig *rig;
static unsigned int n_inputs, n_compares;
static uint32_t n_routes_first, n_kroutes_first;

static const uint32_t table_of[] = {RT_TABLE_MAIN, 100, 200, ORACLE_VRF_TABLE,
				    RT_TABLE_DEFAULT};
static const char *const net_of[2][8] = {
	{"0.0.0.0/0", "198.51.100.0/24", "198.51.100.0/25", "198.51.100.9/32",
	 "203.0.113.0/24", "128.0.0.0/1", "192.0.2.0/24", "192.0.2.9/32"},
	{"::/0", "2001:db8:100::/48", "2001:db8:100:1::/64", "2001:db8:100::9/128",
	 "2001:db8:900::/40", "2000::/3", "2001:db8::/32", "2001:db8:1::7/128"},
};
static const char *const source_of_route[] = {"2001:db8:9::/48", "2001:db8:9:1::/64",
					      "2001:db8:9:1::5/128", "2001:db8::/32"};
static const uint8_t type_of[] = {RTN_UNICAST,     RTN_UNICAST, RTN_UNICAST,
				  RTN_UNICAST,     RTN_THROW,   RTN_BLACKHOLE,
				  RTN_UNREACHABLE, RTN_PROHIBIT};
static const struct oracle_hop hop_of[2][4] = {
	{{"192.0.2.1", 11}, {"192.0.2.129", 12}, {"192.0.2.130", 13}, {NULL, 12}},
	{{"2001:db8:1::1", 11}, {"2001:db8:2::1", 12}, {"2001:db8:2::2", 13}, {NULL, 12}},
};

static const uint32_t pref_of[] = {50, 100, 100, 200, 300, 1500, 32000, 32766};
static const uint8_t action_of[] = {FR_ACT_TO_TBL,    FR_ACT_TO_TBL, FR_ACT_TO_TBL,
				    FR_ACT_TO_TBL,    FR_ACT_GOTO,   FR_ACT_NOP,
				    FR_ACT_BLACKHOLE, FR_ACT_TO_TBL, FR_ACT_UNREACHABLE,
				    FR_ACT_PROHIBIT,  FR_ACT_GOTO};
static const uint32_t rule_table_of[] = {
	100, 200,  RT_TABLE_MAIN, ORACLE_VRF_TABLE, RT_TABLE_DEFAULT, RT_TABLE_LOCAL,
	100, 70000};
static const char *const from_of[2][4] = {
	{"192.0.2.0/28", "192.0.2.9/32", "10.0.0.0/8", "192.0.2.0/24"},
	{"2001:db8:9::/48", "2001:db8:9:1::/64", "2001:db8:8::1/128", "2001:db8::/29"}};
static const char *const iif_of[] = {"p11", "p12", "p13", "p21", "p1", "absent", "p11"};
static const uint8_t tos_of[] = {0x10, 0x08, 0x04};
static const uint8_t dscp_of[] = {46, 0, 4};
static const uint8_t proto_of[] = {17, 6, 1, 58};
static const struct oracle_ports ports_of[] = {
	{53, 53, 0}, {1000, 2000, 0}, {1, 65535, 0}, {0x1000, 0x1000, 0xf000}};
static const uint32_t mark_of[][2] = {{7, UINT32_MAX}, {0, 0xff}, {7, 8}, {1, 1}};
static const uint32_t uid_of[][2] = {{0, 0}, {1000, 2000}, {0, 5}, {1, 1}};
static const int32_t suppress_of[] = {0, 24, 25, 32, 48, 64, 128, 1};

/* Return the next octet of the script; 0 at its end. */
static uint8_t
octet(const uint8_t **p, const uint8_t *end)
{
	return *p < end ? *(*p)++ : 0;
}

/* --- rules ---------------------------------------------------------------------------- */

static void
put_prefix(struct nlmsghdr *nlh, uint16_t type, const struct prefix *p)
{
	if (p->len > 0)
		mnl_attr_put(nlh, type, family_octets(p->family), p->addr.octet);
}

static void
put_ports(struct nlmsghdr *nlh, uint16_t type, uint16_t mask_type,
	  const struct oracle_ports *ports)
{
	struct fib_rule_port_range range = {ports->first, ports->last};

	if (ports->last == 0)
		return;
	mnl_attr_put(nlh, type, sizeof(range), &range);
	if (ports->mask != 0)
		mnl_attr_put_u16(nlh, mask_type, ports->mask);
}

static void
put_selectors(struct nlmsghdr *nlh, const struct oracle_rule *o)
{
	struct fib_rule_uid_range uid = {o->uid[0], o->uid[1]};

	put_prefix(nlh, FRA_SRC, &o->src);
	put_prefix(nlh, FRA_DST, &o->dst);
	if (o->iif != NULL)
		mnl_attr_put_strz(nlh, FRA_IIFNAME, o->iif);
	if (o->oif != NULL)
		mnl_attr_put_strz(nlh, FRA_OIFNAME, o->oif);
	if (o->has_dscp)
		mnl_attr_put_u8(nlh, 25, o->dscp); /* FRA_DSCP, Linux 6.13 */
	if (o->ip_proto != 0)
		mnl_attr_put_u8(nlh, FRA_IP_PROTO, o->ip_proto);
	put_ports(nlh, FRA_SPORT_RANGE, 28, &o->sport); /* FRA_SPORT_MASK, Linux 6.15 */
	put_ports(nlh, FRA_DPORT_RANGE, 29, &o->dport);
	if (o->mark != 0)
		mnl_attr_put_u32(nlh, FRA_FWMARK, o->mark);
	if (o->mark_mask != 0)
		mnl_attr_put_u32(nlh, FRA_FWMASK, o->mark_mask);
	if (uid.start != 0 || uid.end != UINT32_MAX)
		mnl_attr_put(nlh, FRA_UID_RANGE, sizeof(uid), &uid);
	if (o->tunnel != 0)
		mnl_attr_put_u64(nlh, FRA_TUN_ID, o->tunnel);
}

/* Write the rule as the kernel dumps it, and decode it. */
static struct rule
rule_by_message(const struct oracle_rule *o)
{
	static _Alignas(8) uint8_t octets[512];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(octets);
	struct fib_rule_hdr *frh = mnl_nlmsg_put_extra_header(nlh, sizeof(*frh));
	struct rule rule = {0};

	nlh->nlmsg_type = RTM_NEWRULE;
	frh->family = o->family == 4 ? AF_INET : AF_INET6;
	frh->action = o->action;
	frh->src_len = o->src.len;
	frh->dst_len = o->dst.len;
	frh->tos = o->tos;
	frh->flags = o->invert ? FIB_RULE_INVERT : 0;
	frh->table = o->table < 256 ? (uint8_t)o->table : RT_TABLE_COMPAT;
	mnl_attr_put_u32(nlh, FRA_TABLE, o->table);
	mnl_attr_put_u32(nlh, FRA_SUPPRESS_PREFIXLEN, (uint32_t)o->suppress);
	mnl_attr_put_u8(nlh, FRA_PROTOCOL, RTPROT_STATIC);
	if (o->pref != 0)
		mnl_attr_put_u32(nlh, FRA_PRIORITY, o->pref);
	if (o->action == FR_ACT_GOTO)
		mnl_attr_put_u32(nlh, FRA_GOTO, o->target);
	if (o->l3mdev)
		mnl_attr_put_u8(nlh, FRA_L3MDEV, 1);
	put_selectors(nlh, o);
	MUST(nlh->nlmsg_len <= sizeof(octets));
	MUST(rule_message_decode(nlh, &rule) == 0);
	return rule;
}

/* Give rib the list of a family, in order. */
static void
rules_tell(uint8_t family)
{
	const struct oracle_rule *list[ORACLE_RULES + 4];
	uint32_t n = oracle_list(family, list);
	struct msg_rules *m = msg_new(MSG_RULES, sizeof(*m) + n * sizeof(m->rule[0]));

	rig_flush_batch(rig);
	m->family = family;
	m->n = n;
	for (uint32_t i = 0; i < n; i++)
		m->rule[i] = rule_by_message(list[i]);
	rib_on_msg(rig->rib, &m->m);
}

static void
rule_selectors(struct oracle_rule *o, uint8_t which, const uint8_t **p, const uint8_t *end)
{
	unsigned int v = o->family == 6;
	uint8_t a = octet(p, end), b;

	if ((which & 0x01) != 0)
		o->src = rig_prefix(PICK(from_of[v], a));
	if ((which & 0x02) != 0)
		o->dst = rig_prefix(net_of[v][1 + a / 4u % 7u]);
	if ((which & 0x04) != 0)
		o->iif = PICK(iif_of, a / 32u);
	if ((which & 0x08) == 0)
		return;
	a = octet(p, end);
	b = octet(p, end);
	if ((a & 0x01) != 0)
		o->tos = PICK(tos_of, b);
	else if ((a & 0x02) != 0)
		o->dscp = PICK(dscp_of, b), o->has_dscp = true;
	if ((a & 0x04) != 0)
		o->ip_proto = PICK(proto_of, b / 4u);
	if ((a & 0x08) != 0)
		o->sport = PICK(ports_of, b / 16u);
	if ((a & 0x10) != 0)
		o->dport = PICK(ports_of, b / 64u);
	if ((a & 0x20) != 0)
		o->mark = PICK(mark_of, b)[0], o->mark_mask = PICK(mark_of, b)[1];
	if ((a & 0x40) != 0)
		o->uid[0] = PICK(uid_of, b)[0], o->uid[1] = PICK(uid_of, b)[1];
	if ((a & 0x80) != 0 && b % 2 == 0)
		o->tunnel = b;
	else if ((a & 0x80) != 0)
		o->oif = "p12";
}

static void
step_rule(const uint8_t **p, const uint8_t *end)
{
	uint8_t a = octet(p, end), b = octet(p, end), which = octet(p, end);
	struct oracle_rule o = {.family = (a & 0x80) != 0 ? 6 : 4,
				.pref = PICK(pref_of, a),
				.action = PICK(action_of, b),
				.uid = {0, UINT32_MAX},
				.suppress = -1};

	o.src.family = o.dst.family = o.family;
	o.invert = (which & 0x80) != 0;
	rule_selectors(&o, which, p, end);
	if (o.action == FR_ACT_GOTO) {
		o.target = PICK(pref_of, b / 16u);
		/* The kernel refuses a jump that does not lead forward. */
		if (o.target <= o.pref)
			return;
	} else if (o.action == FR_ACT_TO_TBL && (which & 0x70) == 0x70) {
		o.l3mdev = true;
	} else if (o.action == FR_ACT_TO_TBL) {
		o.table = PICK(rule_table_of, b / 16u);
		if ((which & 0x30) == 0x30 && o.table != RT_TABLE_LOCAL)
			o.suppress = PICK(suppress_of, a / 8u);
	}
	if (oracle_rule_add(&o))
		rules_tell(o.family);
}

static void
step_rule_del(uint8_t arg)
{
	uint8_t family = (arg & 0x80) != 0 ? 6 : 4;

	if (oracle_rule_del(family, arg & 0x7f))
		rules_tell(family);
}

/* Decode any octets as a message, and check that a decoded rule is sound. */
static void
step_raw(const uint8_t **p, const uint8_t *end)
{
	size_t len = octet(p, end);
	struct nlmsghdr *nlh;
	struct rule rule = {0};
	struct prefix masked;
	int rc;

	if (len > (size_t)(end - *p))
		len = (size_t)(end - *p);
	/*
	 * The block ends with the message, so that the sanitizer finds an over-read of one
	 * octet.
	 */
	nlh = malloc(sizeof(*nlh) + len);
	MUST(nlh != NULL);
	*nlh = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof(*nlh) + len),
				 .nlmsg_type = RTM_NEWRULE};
	memcpy(nlh + 1, *p, len);
	*p += len;
	rc = rule_message_decode(nlh, &rule);
	free(nlh);
	if (rc != 0) {
		MUST(rc == -EBADMSG || rc == -EAFNOSUPPORT);
		return;
	}
	MUST(rule.family == 4 || rule.family == 6);
	MUST(rule.src.family == rule.family && rule.dst.family == rule.family);
	masked = rule.src;
	prefix_mask(&masked);
	MUST(prefix_equal(&masked, &rule.src) && masked.len <= family_bits(rule.family));
	MUST(rule.dst.len <= family_bits(rule.family));
	MUST(rule.suppress >= -1 && rule.suppress <= 128);
	MUST(memchr(rule.iif, '\0', sizeof(rule.iif)) != NULL);
}

/* --- routes, links, VRFs -------------------------------------------------------------- */

static void
route_tell(const struct oracle_route *o, bool gone)
{
	struct kernel_event *ev;

	if (o->zebra && gone) {
		rig_del(rig, o->net);
		rig->batch->ev[rig->batch->n - 1].table = o->table;
		return;
	}
	if (o->zebra) {
		rig_route_in(rig, o->table, o->net, o->hop->gw, o->hop->ifindex);
		return;
	}
	ev = rig_kernel_route(rig, gone ? KERNEL_ROUTE_DEL : KERNEL_ROUTE, o->net,
			      o->metric, NULL, 0);
	ev->route.table = o->table;
	ev->route.rtm_type = o->type;
	if (o->src != NULL)
		ev->src = rig_prefix(o->src);
	if (o->type == RTN_UNICAST)
		rig_kernel_hop(ev, o->hop->gw, o->hop->ifindex);
}

static void
route_change(const struct oracle_route *o)
{
	struct oracle_route old;

	if (oracle_route_del(o, &old))
		route_tell(&old, true);
	if (oracle_route_add(o))
		route_tell(o, false);
}

static void
step_route(const uint8_t **p, const uint8_t *end, bool has_source)
{
	uint8_t a = octet(p, end), b = octet(p, end);
	unsigned int v = has_source || (a & 0x80) != 0;
	struct oracle_route o = {.family = v ? 6 : 4,
				 .net = net_of[v][a % 8u],
				 .table = PICK(table_of, a / 8u % 16u),
				 .type = PICK(type_of, b),
				 .metric = (b & 0x20) != 0 ? 1024 : 10,
				 .hop = &hop_of[v][b / 64u]};

	if (has_source)
		o.src = PICK(source_of_route, b / 8u);
	o.zebra = !has_source && (b & 0x10) != 0 && o.type == RTN_UNICAST &&
		  (o.table == RT_TABLE_MAIN || o.table == 200) && o.hop->gw != NULL;
	if (o.zebra)
		o.metric = ZEBRA_METRIC;
	/* Without rules a VRF never falls back to main, see ORACLE_VRF_TABLE. */
	if (o.table == ORACLE_VRF_TABLE && o.type == RTN_THROW)
		o.type = RTN_PROHIBIT;
	route_change(&o);
}

static void
step_route_del(uint8_t arg)
{
	struct oracle_route old;

	if (oracle_route_take(arg, &old))
		route_tell(&old, true);
}

static void
link_set(unsigned int i, bool up)
{
	if (oracle.up[i] == up)
		return;
	rig_flush_batch(rig);
	rig_link(rig, 11 + i, (uint16_t)(1 + i), up);
	oracle.up[i] = up;
}

/*
 * Create or remove the VRF whose member is port 13. It has default routes, as the kernel's
 * manual advises.
 */
static void
vrf_set(bool up)
{
	rig_flush_batch(rig);
	if (up == oracle.vrf_up)
		return;
	oracle.vrf_up = up;
	if (up) {
		rig_link_of_vrf(rig, 21, 1, true);
		rig_vrf(rig, 1, ORACLE_VRF_TABLE, "red");
	} else {
		rig_vrf(rig, 1, ORACLE_VRF_TABLE, NULL);
		rig_link_gone(rig, 21);
	}
	for (unsigned int v = 0; v < 2; v++) {
		struct oracle_route o = {.family = v ? 6 : 4,
					 .net = net_of[v][0],
					 .table = ORACLE_VRF_TABLE,
					 .type = RTN_UNREACHABLE,
					 .metric = 4278198272u};

		struct kernel_event *ev = rig_kernel_type(
			rig, up ? KERNEL_ROUTE : KERNEL_ROUTE_DEL, o.net, o.metric, o.type);

		ev->route.table = o.table;
		rules_tell(v ? 6 : 4); /* with or without the l3mdev rule */
	}
}

static void
step_base(uint8_t arg)
{
	uint8_t family = (arg & 0x80) != 0 ? 6 : 4;

	oracle.no_main[family == 6] = (arg & 3) == 1;
	if (family == 4)
		oracle.no_default = (arg & 4) != 0;
	rules_tell(family);
}

/* --- comparison ----------------------------------------------------------------------- */

static bool
is_concerned(unsigned int v, uint32_t ifindex)
{
	const struct rule_ifaces *of =
		rig->rule_ifaces == NULL ? NULL : &rig->rule_ifaces->of[v];

	for (uint32_t i = 0; of != NULL && i < of->n; i++)
		if (of->ifindex[i] == ifindex)
			return true;
	return of != NULL && of->all;
}

static void
packet_compare(const struct oracle_packet *k)
{
	struct fib_iface in = {.ifindex = k->ifindex,
			       .hook_ifindex = k->vrf != 0 ? 21 : k->ifindex,
			       .vrf = k->vrf,
			       .rules4 = is_concerned(0, k->ifindex),
			       .rules6 = is_concerned(1, k->ifindex)};
	char want[80], got[80], src[PREFIX_STRLEN], dst[PREFIX_STRLEN];
	uint8_t ip[64];
	fib_path path;

	oracle_packet_octets(k, ip);
	path = fib_resolve_packet(rig->fib, k->ifindex == 1 ? NULL : &in, k->vrf, k->family,
				  ip, sizeof(ip));
	/*
	 * Without a list of rules, forwarders drop a packet to a throw route as a packet
	 * without a route.
	 */
	rig_path_text(rig, path_kind(path) == PATH_THROW ? PATH(PATH_NONE, 0) : path, got,
		      sizeof(got));
	oracle_answer(k, want, sizeof(want));
	if (strcmp(got, want) == 0)
		return;
	fprintf(stderr,
		"%s to %s by %u, vrf %u, tos 0x%02x, protocol %u, ports %u %u, fragment "
		"%d: \"%s\", Linux: \"%s\"\n",
		ipaddr_str(&k->src.addr, k->family, src),
		ipaddr_str(&k->dst.addr, k->family, dst), k->ifindex, k->vrf, k->tos,
		k->proto, k->sport, k->dport, k->fragment, got, want);
	oracle_print();
	MUST(!"the answer of Linux");
}

static void
compare(void)
{
	if (++n_compares > COMPARES_MAX)
		return;
	for (unsigned int i = 0; i < oracle_n_packets(); i++) {
		struct oracle_packet k = oracle_packet(i, n_compares);

		packet_compare(&k);
	}
}

/* --- the script ----------------------------------------------------------------------- */

static void
settle(void)
{
	rig_settle(rig);
	compare();
}

static void
step(enum step what, const uint8_t **p, const uint8_t *end)
{
	uint8_t arg;

	switch (what) {
	case STEP_RULE:
		step_rule(p, end);
		break;
	case STEP_RULE_DEL:
		step_rule_del(octet(p, end));
		break;
	case STEP_ROUTE:
		step_route(p, end, false);
		break;
	case STEP_SOURCE:
		step_route(p, end, true);
		break;
	case STEP_ROUTE_DEL:
		step_route_del(octet(p, end));
		break;
	case STEP_BASE:
		step_base(octet(p, end));
		break;
	case STEP_LINK:
		arg = octet(p, end);
		link_set(arg % 3u, (arg & 0x80) != 0);
		break;
	case STEP_VRF:
		vrf_set((octet(p, end) & 1) != 0);
		break;
	case STEP_RAW:
		step_raw(p, end);
		break;
	case STEP_GO:
		rig_go(rig);
		break;
	case STEP_SETTLE:
		settle();
		break;
	case STEP_N:
		break;
	}
}

static void
all_must_go(void)
{
	const struct rib *rib = rig->rib;
	struct oracle_route old;

	oracle_rules_clear();
	vrf_set(false);
	while (oracle_route_take(0, &old))
		route_tell(&old, true);
	rules_tell(4);
	rules_tell(6);
	for (unsigned int i = 0; i < 3; i++)
		link_set(i, true);
	settle();
	MUST(fib_rules(rig->fib, 4) == NULL && fib_rules(rig->fib, 6) == NULL);
	MUST(!is_concerned(0, 11) && !is_concerned(1, 11));
	MUST(rib->vrfs.n == 0 && rib->vrfs.n_for_rules == 0 && rib->vrfs.views.n == 0);
	MUST(rib->sources.n == 0 && rib->sources.n_routes == 0);
	MUST(rib->tables.main.n == n_routes_first && rib->tables.other.n == 0);
	MUST(rib->kroutes.n == n_kroutes_first && rib->adjs.n == 0);
	for (uint32_t i = FIB_VRF_MAX; i < FIB_NUMBERS; i++)
		MUST(fib_vrf_pt4(rig->fib, (uint16_t)i) == NULL);
}

static void
rig_begin(void)
{
	rig = rig_two_ports();
	rig_link(rig, 1, 0, true); /* stands for lo */
	rig_link(rig, 13, 3, true);
	rig_session(rig, 100);
	rules_tell(4);
	rules_tell(6);
	rig_settle(rig);
	n_routes_first = rig->rib->tables.main.n;
	n_kroutes_first = rig->rib->kroutes.n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;

	log_set_level(LOG_LEVEL_ERROR);
	oracle_begin();
	if (rig == NULL)
		rig_begin();
	n_compares = 0;
	for (unsigned int n = 0; data < end && n < STEPS_MAX; n++)
		step((enum step)(*data++ % STEP_N), &data, end);
	settle();
	rib_must_be_sound(rig);
	all_must_go();
	if (++n_inputs % INPUTS_A_RIG == 0) {
		rig_free(rig);
		rig = NULL;
	}
	return 0;
}
