/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * row: turn a record into a JSON row (keys: dist/openapi.yaml): the packet, the results of
 * the stages, the verdict. The forwarder has made all decisions.                [trace]
 */
#include <stdio.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"
#include "fib/icmp.h"
#include "fib/headend.h"
#include "fib/urpf.h"
#include "trace/internal.h"

#define L2_LEN              14
#define HEX_BYTES           128 /* of the frame, shown in hex */
#define REWRITTEN_TTL4      (L2_LEN + 8)
#define REWRITTEN_TTL6      (L2_LEN + 7)
#define REWRITTEN_TTL_LABEL (L2_LEN + 3)

static void
row_set(json_t *row, const char *key, json_t *value)
{
	json_object_set_new(row, key, value);
}

static json_t *
port_name(const struct trace *t, uint16_t ifidx)
{
	const struct fib_iface *vlan =
		ifidx < PORT_MAX ? NULL : fib_iface(t->conf.fib, ifidx);
	char text[IFNAMSIZ];

	if (vlan != NULL)
		return json_string(log_utf8(vlan->name, text, sizeof(text)));
	for (unsigned int i = 0; i < t->conf.n_port; i++)
		if (ifidx != 0 && t->conf.port[i].ifidx == ifidx)
			return json_string(t->conf.port[i].name);
	return json_null();
}

static json_t *
mac_json(const uint8_t *mac)
{
	char text[MAC_STRLEN];

	return json_string(mac_str(mac, text));
}

static json_t *
hex_json(const uint8_t *data, unsigned int len)
{
	char text[2 * HEX_BYTES + 1] = "";

	for (unsigned int i = 0; i < len && i < HEX_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	return json_string(text);
}

static json_t *
addr_json(uint8_t family, const uint8_t *octets)
{
	struct ipaddr addr = {0};
	char text[PREFIX_STRLEN];

	memcpy(addr.octet, octets, family_octets(family));
	return json_string(ipaddr_str(&addr, family, text));
}

static json_t *
via_json(const struct watch_record *rec)
{
	char text[PREFIX_STRLEN];

	return json_string(ipaddr_str(&rec->via, rec->via_family, text));
}

/* Add the fields of an IP header, as far as the frame has them. */
static void
row_add_ip(json_t *row, const uint8_t *ip, unsigned int len, uint8_t family)
{
	unsigned int off = family == 4 ? (ip[0] & 15u) * 4 : 40;
	uint8_t proto = family == 4 ? ip[9] : ip[6];
	uint16_t frag = family == 4 ? get_be16(ip + 6) : 0;

	row_set(row, "family", json_integer(family));
	row_set(row, "src", addr_json(family, family == 4 ? ip + 12 : ip + 8));
	row_set(row, "dst", addr_json(family, family == 4 ? ip + 16 : ip + 24));
	row_set(row, "proto", json_integer(proto));
	row_set(row, "ttl", json_integer(family == 4 ? ip[8] : ip[7]));
	row_set(row, "length",
		json_integer(family == 4 ? get_be16(ip + 2) : 40 + get_be16(ip + 4)));
	row_set(row, "df", json_boolean((frag & 0x4000) != 0));
	row_set(row, "fragment", json_boolean((frag & 0x3fff) != 0));
	if ((frag & 0x1fff) == 0 && proto_has_ports(proto) && len >= off + 4) {
		row_set(row, "sport", json_integer(get_be16(ip + off)));
		row_set(row, "dport", json_integer(get_be16(ip + off + 2)));
	}
}

/*
 * Return the number of octets of the labels of a frame, up to the last one or the end of
 * the copy.
 */
static unsigned int
labels_bytes(const struct watch_record *rec)
{
	const uint8_t *f = rec->frame;
	unsigned int n = 0;

	if (rec->snap_bytes < L2_LEN || get_be16(f + 12) != MPLS_TYPE)
		return 0;
	while (L2_LEN + n + LABEL_BYTES <= rec->snap_bytes) {
		n += LABEL_BYTES;
		if (label_is_bottom(get_be32(f + L2_LEN + n - LABEL_BYTES)))
			break;
	}
	return n;
}

/* Add the labels of a frame, and the TTL of the first one. */
static void
row_add_labels(json_t *row, const struct watch_record *rec, unsigned int bytes)
{
	json_t *labels = json_array();

	for (unsigned int at = 0; at < bytes; at += LABEL_BYTES)
		json_array_append_new(
			labels, json_integer(label_of(get_be32(rec->frame + L2_LEN + at))));
	row_set(row, "labels", labels);
	if (bytes > 0)
		row_set(row, "label_ttl", json_integer(rec->frame[L2_LEN + 3]));
}

static void
row_add_frame(json_t *row, const struct watch_record *rec)
{
	const uint8_t *f = rec->frame;
	unsigned int labels = labels_bytes(rec), len;
	uint16_t type;

	row_set(row, "frame_bytes", json_integer(rec->frame_bytes));
	row_set(row, "frame", hex_json(f, rec->snap_bytes));
	if (rec->snap_bytes < L2_LEN)
		return;
	type = get_be16(f + 12);
	row_set(row, "eth_dst", mac_json(f));
	row_set(row, "eth_src", mac_json(f + 6));
	row_set(row, "eth_type", json_integer(type));
	if (type == MPLS_TYPE) {
		row_add_labels(row, rec, labels);
		if (labels == 0)
			return;
		/* The version of the packet behind the last label tells its type. */
		type = f[L2_LEN + labels] >> 4 == 4   ? 0x0800
		       : f[L2_LEN + labels] >> 4 == 6 ? 0x86dd
						      : 0;
	}
	f += L2_LEN + labels;
	len = rec->snap_bytes - L2_LEN - labels;
	if (type == 0x0800 && len >= 20)
		row_add_ip(row, f, len, 4);
	else if (type == 0x86dd && len >= 40)
		row_add_ip(row, f, len, 6);
}

/* Add the source of the ICMP error, or the reason why none is sent. */
static void
row_add_refusal(json_t *row, const struct trace *t, const struct watch_record *rec)
{
	unsigned int labels = labels_bytes(rec), room = rec->snap_bytes - L2_LEN - labels;
	struct icmp_about about = {.ip = rec->frame + L2_LEN + labels,
				   .room = rec->l3_bytes < room ? rec->l3_bytes : room,
				   .family = rec->family,
				   .l2_group = (rec->frame[0] & 1) != 0,
				   .too_big = rec->cause == DROP_mtu,
				   .in_ifidx = rec->in_ifidx};
	struct icmp_labels lead;
	struct ipaddr src;
	const char *why;

	if (labels > 0) {
		lead = icmp_labels_of(t->conf.fib, rec->frame + L2_LEN, room + labels);
		about.labels = &lead;
	}
	if (rec->snap_bytes < L2_LEN + labels + (rec->family == 4 ? 20 : 40))
		return;
	if (labels == 0 && rec->icmp_vrf != fib_vrf_of(t->conf.fib, rec->in_ifidx)) {
		lead = icmp_lead_in_vrf(t->conf.fib, rec->icmp_vrf, rec->family, about.ip);
		about.labels = &lead;
	}
	why = icmp_refusal(t->conf.fib, &about, &src);
	if (why != NULL)
		row_set(row, "icmp_refused", json_string(why));
	else
		row_set(row, "icmp_src", addr_json(rec->family, src.octet));
}

static void
row_add_verdict(json_t *row, const struct trace *t, const struct watch_record *rec)
{
	enum reason reason = watch_reason(rec);

	if (rec->verdict == WATCH_GO || rec->verdict == WATCH_DECAPSULATED) {
		row_set(row, "verdict",
			json_string(rec->verdict == WATCH_GO ? "forwarded"
							     : "decapsulated"));
		return;
	}
	/* A punt for an ICMP error counts as a drop for its cause. */
	row_set(row, "verdict", json_string(reason < N_DROP ? "dropped" : "punted"));
	row_set(row, "reason", json_string(reason_info[reason].name));
	row_set(row, "text", json_string(reason_info[reason].text));
	row_set(row, "icmp", json_boolean(rec->icmp));
	if (rec->icmp)
		row_add_refusal(row, t, rec);
	if (rec->verdict >= N_DROP)
		row_set(row, "class", json_string(punt_class_info[rec->class].name));
}

/* Return the name of a VRF; null for table main and for a VRF that has no FIB (yet). */
static json_t *
vrf_json(const struct trace *t, uint16_t number)
{
	const struct fib_vrf *vrf =
		number == 0 || number >= FIB_VRF_MAX ? NULL : fib_vrf(t->conf.fib, number);

	return vrf == NULL ? json_null() : json_string(vrf->name);
}

/* Add the rule that decided, if rules concern the packet. */
static void
row_add_rule(json_t *row, const struct watch_record *rec)
{
	if (rec->rule == 0)
		return;
	row_set(row, "rule", rec->rule == 1 ? json_integer(rec->rule_pref) : json_null());
	row_set(row, "rule_table",
		rec->rule_table != 0 ? json_integer(rec->rule_table) : json_null());
}

/* Add the verdict of the filter, and the rule that decided. */
static void
row_add_filter(json_t *row, const struct watch_record *rec)
{
	static const char *const name[] = {[WATCH_FILTER_PASS] = "pass",
					   [WATCH_FILTER_DROP] = "drop",
					   [WATCH_FILTER_REJECT] = "reject"};
	char text[2 * sizeof(rec->filter_comment)];

	if (rec->filter == WATCH_FILTER_NONE)
		return;
	row_set(row, "filter", json_string(name[rec->filter]));
	if (rec->filter_chain[0] != '\0')
		row_set(row, "filter_chain",
			json_string(
				log_escape_name(rec->filter_chain, text, sizeof(text))));
	if (rec->filter_handle != 0)
		row_set(row, "filter_handle", json_integer((json_int_t)rec->filter_handle));
	if (rec->filter_comment[0] != '\0')
		row_set(row, "filter_comment",
			json_string(
				log_escape_name(rec->filter_comment, text, sizeof(text))));
}

/* Add the verdict of the interface's program. */
static void
row_add_hook(json_t *row, const struct watch_record *rec)
{
	static const char *const name[] = {[WATCH_HOOK_PASS] = "pass",
					   [WATCH_HOOK_CHANGE] = "change",
					   [WATCH_HOOK_DROP] = "drop"};
	char text[2 * sizeof(rec->hook_file)];

	if (rec->hook == WATCH_HOOK_NONE)
		return;
	row_set(row, "hook", json_string(name[rec->hook]));
	row_set(row, "hook_file",
		json_string(log_escape_name(rec->hook_file, text, sizeof(text))));
	if (rec->hook_dscp != UINT8_MAX)
		row_set(row, "hook_dscp", json_integer(rec->hook_dscp));
	if (rec->hook_table != 0)
		row_set(row, "hook_table", json_integer(rec->hook_table));
}

static const char *
path_name(const struct trace *t, const struct watch_record *rec, const char *const kind[16])
{
	enum path_kind of = path_kind(rec->path);

	if (path_is_headend(t->conf.fib, rec->path))
		return "segments";
	if (of == PATH_ENCAP && !path_is_unsupported(rec->path))
		return "labels";
	return rec->tunnel != 0 && (of == PATH_ONLINK || of == PATH_ADJ) ? "tunnel"
									 : kind[of];
}

/*
 * Add the segments of a headend, as they are now, in the order in which packets visit them.
 */
static void
row_add_segments(json_t *row, const struct trace *t, fib_path path)
{
	const struct fib_headend *h = &t->conf.fib->headend[path_index(path)];
	json_t *segments = json_array();

	json_array_append_new(segments, addr_json(6, h->head + 24));
	for (unsigned int left = fib_headend_left(h); left > 0; left--)
		json_array_append_new(segments,
				      addr_json(6, fib_headend_segment(h, left - 1)));
	row_set(row, "segments", segments);
}

bool
row_labels_end(const struct trace *t, const struct watch_record *rec, uint16_t *vrf,
	       const uint8_t **ip)
{
	unsigned int bytes = labels_bytes(rec);
	struct icmp_labels lead;

	if (rec->pops == 0 || !family_is_ip(rec->family) ||
	    rec->snap_bytes < L2_LEN + bytes + (rec->family == 4 ? 20 : 40))
		return false;
	lead = icmp_labels_of(t->conf.fib, rec->frame + L2_LEN, rec->snap_bytes - L2_LEN);
	*vrf = lead.vrf;
	*ip = rec->frame + L2_LEN + bytes;
	return lead.end_here;
}

static void
row_add_stack(json_t *row, const char *key, const struct fib_encap *e)
{
	json_t *push = json_array();

	for (unsigned int i = 0; i < e->n && i < LABELS_MAX; i++)
		json_array_append_new(push, json_integer(encap_label(e, i)));
	row_set(row, key, push);
}

/* Add the labels that the path pushes, as they are now. */
static void
row_add_push(json_t *row, const struct trace *t, fib_path path)
{
	const struct fib_encap *e = fib_encap(t->conf.fib, path);

	row_add_stack(row, "push", e);
	if (e->ttl != 0)
		row_set(row, "push_ttl", json_integer(e->ttl - LABEL_TTL_OWN));
}

static void
row_add_found(json_t *row, const struct trace *t, const struct watch_record *rec)
{
	static const char *const kind[16] = {
		[PATH_NONE] = "none",
		[PATH_ADJ] = "adjacency",
		[PATH_ONLINK] = "onlink",
		[PATH_LOCAL] = "local",
		[PATH_BCAST] = "broadcast",
		[PATH_BLACKHOLE] = "blackhole",
		[PATH_UNREACHABLE] = "unreachable",
		[PATH_PROHIBIT] = "prohibit",
		[PATH_UNRESOLVED] = "unresolved",
		[PATH_FOREIGN] = "foreign",
		[PATH_ENCAP] = "unsupported",
		[PATH_DOWN] = "down",
		[PATH_VRF] = "vrf",
		[PATH_NO_FIB] = "none",
		[PATH_THROW] = "throw",
		[PATH_KERNEL] = "through-kernel",
	};

	const uint8_t *ip;
	uint16_t vrf;

	if (rec->pops != 0) {
		row_set(row, "pops", json_integer(rec->pops));
		if (row_labels_end(t, rec, &vrf, &ip))
			row_set(row, "vrf", vrf_json(t, vrf));
		row_set(row, "path", json_string(path_name(t, rec, kind)));
		if (rec->via_family != 0)
			row_set(row, "via", via_json(rec));
	}
	if (path_is_headend(t->conf.fib, rec->path))
		row_add_segments(row, t, rec->path);
	else if (path_kind(rec->path) == PATH_ENCAP && !path_is_unsupported(rec->path))
		row_add_push(row, t, rec->path);
	if (rec->outer_labels != 0)
		row_add_stack(row, "outer_push", &t->conf.fib->encap[rec->outer_labels]);
	if (!rec->looked_up)
		return;
	row_set(row, "vrf", vrf_json(t, rec->vrf));
	row_add_rule(row, rec);
	if (rec->to_vrf != 0)
		row_set(row, "to_vrf", vrf_json(t, rec->to_vrf));
	if (rec->to_main)
		row_set(row, "to_main", json_true());
	row_set(row, "group", json_integer(rec->group));
	row_set(row, "path", json_string(path_name(t, rec, kind)));
	row_set(row, "hash", json_integer(rec->flow_hash));
	row_set(row, "buckets", json_integer((json_int_t)1 << rec->log2_buckets));
	if (rec->log2_buckets > 0)
		row_set(row, "bucket",
			json_integer(rec->flow_hash >> (32 - rec->log2_buckets)));
	if (rec->via_family != 0)
		row_set(row, "via", via_json(rec));
	if (path_kind(rec->path) == PATH_ADJ)
		row_set(row, "adj", json_integer(path_index(rec->path)));
	if (path_kind(rec->path) == PATH_ONLINK)
		row_set(row, "dev", port_name(t, (uint16_t)path_index(rec->path)));
	if (path_kind(rec->path) == PATH_KERNEL)
		row_set(row, "ifindex", json_integer(path_index(rec->path)));
}

/* Return the names of the stages up to the deciding stage. */
static json_t *
stages_json(const struct watch_record *rec)
{
	static const char *const name[N_STAGE] = {
		[STAGE_ADMIT] = "admit",     [STAGE_PARSE] = "parse",
		[STAGE_LOOKUP] = "lookup",   [STAGE_ADJACENCY] = "adjacency",
		[STAGE_URPF] = "urpf",       [STAGE_FILTER] = "filter",
		[STAGE_REWRITE] = "rewrite", [STAGE_SEND] = "send",
		[STAGE_HOOK] = "hook",
	};
	json_t *array = json_array();

	for (unsigned int i = 0; i <= rec->stage; i++)
		if ((i != STAGE_HOOK || rec->hook != WATCH_HOOK_NONE) &&
		    (i != STAGE_FILTER || rec->filter != WATCH_FILTER_NONE) &&
		    (i != STAGE_URPF || rec->urpf != FIB_URPF_OFF))
			json_array_append_new(array, json_string(name[i]));
	return array;
}

/* Add the check of the source, and its result. */
static void
row_add_urpf(json_t *row, const struct watch_record *rec)
{
	static const char *const mode[] = {
		[FIB_URPF_STRICT] = "strict", [FIB_URPF_LOOSE] = "loose"};
	static const char *const back[] = {[FIB_BACK_NONE] = "none",
					   [FIB_BACK_OTHER] = "other",
					   [FIB_BACK_HERE] = "here"};

	if (rec->urpf == FIB_URPF_OFF)
		return;
	row_set(row, "urpf", json_string(mode[rec->urpf]));
	row_set(row, "back", json_string(back[rec->back]));
}

json_t *
row_make(const struct trace *t, const struct watch_record *rec)
{
	static const char *const point[] = {
		[WATCH_WALK] = "walk", [WATCH_SENT] = "sent", [WATCH_LOST] = "lost"};
	json_t *row = json_object();
	uint64_t mac = rec->hop >> 16;
	uint8_t octets[6];

	if (rec->time_ns != 0)
		row_set(row, "time_ns", json_integer((json_int_t)rec->time_ns));
	row_set(row, "point", json_string(point[rec->point]));
	row_set(row, "port", port_name(t, rec->in_ifidx));
	if (rec->outer_ifidx != 0)
		row_set(row, "outer_port", port_name(t, rec->outer_ifidx));
	if (rec->tunnel != 0)
		row_set(row, "tunnel", port_name(t, rec->tunnel));
	row_add_frame(row, rec);
	if (rec->point == WATCH_WALK)
		row_set(row, "stages", stages_json(rec));
	row_add_hook(row, rec);
	row_add_found(row, t, rec);
	row_add_urpf(row, rec);
	row_add_filter(row, rec);
	if (rec->hop != 0) {
		for (int i = 5; i >= 0; i--, mac >>= 8)
			octets[i] = (uint8_t)mac;
		row_set(row, "mac", mac_json(octets));
		row_set(row, "out", port_name(t, rec->out_ifidx));
		row_set(row, "mtu", json_integer(rec->mtu_bytes));
	}
	if (rec->point == WATCH_WALK && rec->verdict == WATCH_GO) {
		row_set(row, "out_src_mac", mac_json(rec->rewritten + 6));
		row_set(row, "out_ttl",
			json_integer(
				rec->rewritten[get_be16(rec->rewritten + 12) == MPLS_TYPE
						       ? REWRITTEN_TTL_LABEL
					       : get_be16(rec->rewritten + 12) == 0x0800
						       ? REWRITTEN_TTL4
						       : REWRITTEN_TTL6]));
	}
	row_add_verdict(row, t, rec);
	return row;
}

/* Add the name of the kernel's interface by which the packet leaves; rib knows it. */
static void
row_add_kernel_dev(json_t *row, const json_t *route)
{
	const json_t *ifindex = json_object_get(row, "ifindex"), *hop;
	size_t i;

	if (ifindex == NULL)
		return;
	json_array_foreach (json_object_get(route, "nexthops"), i, hop) {
		json_int_t its = json_integer_value(json_object_get(hop, "ifindex"));

		if ((its & PATH_INDEX_MASK) == json_integer_value(ifindex))
			json_object_set(row, "dev", json_object_get(hop, "dev"));
	}
}

void
row_add(json_t *row, enum query_kind kind, const json_t *rows)
{
	const char *out = json_string_value(json_object_get(row, "out"));
	const char *dev = json_string_value(json_object_get(row, "dev"));
	size_t i;
	json_t *one;

	if (kind == QUERY_ROUTES) {
		one = json_array_get(rows, 0);
		if (one == NULL)
			return;
		json_object_set(row, "route", one);
		row_add_kernel_dev(row, one);
		/*
		 * rib replies after the packet was looked up, so its route may be newer.
		 * The record of a packet with labels has no group.
		 */
		if (json_object_get(row, "group") != NULL)
			row_set(row, "route_changed",
				json_boolean(
					json_integer_value(json_object_get(one, "group")) !=
					json_integer_value(json_object_get(row, "group"))));
		return;
	}
	json_array_foreach ((json_t *)(uintptr_t)rows, i, one) {
		const char *on = json_string_value(json_object_get(one, "dev"));

		if (json_object_get(row, "neighbor") == NULL || on == NULL ||
		    (out != NULL && strcmp(on, out) == 0) ||
		    (dev != NULL && strcmp(on, dev) == 0))
			json_object_set(row, "neighbor", one);
	}
}
