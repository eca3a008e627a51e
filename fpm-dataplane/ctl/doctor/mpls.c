/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: check the kernel's settings for MPLS. zebra sends only label routes that
 * the kernel has accepted, and the forwarders accept labels only on interfaces on which the
 * kernel accepts them. A router without labels has no finding, unless the check was named.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/json_row.h"
#include "ctl/kernel_dump.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

/* The largest value of platform_labels: the kernel accepts labels below it. */
#define ALL_LABELS        1048575
#define SYSCTL_ALL_LABELS "net.mpls.platform_labels=1048575"

struct mpls {
	bool in_kernel; /* the kernel has the module mpls_router */
	bool taken;     /* a port, VLAN or macvlan accepts labels */
	/* label routes of zebra, next hops with labels */
	long long labels, encaps;
	long long platform_labels; /* the sysctl; -1: unknown */
	long long largest;         /* the largest incoming label of zebra; -1: none */
	bool zebra_off;            /* zebra reports that MPLS is off */
	bool configured;           /* the configuration of FRR needs labels */
};

/* --- facts ---------------------------------------------------------------------------- */

static void
status_on_line(const char *line, void *ctx)
{
	bool *off = ctx;

	*off |= strncmp(line, "MPLS support enabled: no", 24) == 0;
}

static void
config_on_line(const char *line, void *ctx)
{
	bool *needs = ctx;

	*needs |= frr_line_needs_labels(line);
}

static void
label_on_line(const char *line, void *ctx)
{
	long long *largest = ctx, label;
	char *end;

	label = strtoll(line, &end, 10);
	if (end != line && label > *largest)
		*largest = label;
}

static bool
zebra_is_asked(const struct exam *e)
{
	return strcmp(row_str(e->version, "routes_from"), "kernel") != 0;
}

/*
 * Find the largest incoming label of zebra. zebra's table also has the labels that the
 * kernel has refused. If the kernel accepts all labels or none, do not ask zebra.
 */
static void
largest_label_ask(struct exam *e, struct mpls *m)
{
	if (m->platform_labels <= 0 || m->platform_labels >= ALL_LABELS ||
	    !zebra_is_asked(e))
		return;
	zebra_find(e);
	(void)zebra_lines(zebra_vtysh(e), "show mpls table", ZEBRA_ANSWER_S, label_on_line,
			  &m->largest);
}

/*
 * Read the facts from zebra. Without an answer they stay unset, because other checks report
 * that zebra does not answer.
 */
static void
zebra_ask(struct exam *e, struct mpls *m)
{
	const char *vtysh;

	if (!zebra_is_asked(e))
		return;
	zebra_find(e);
	vtysh = zebra_vtysh(e);
	if (zebra_lines(vtysh, "show mpls status", ZEBRA_VERSION_S, status_on_line,
			&m->zebra_off) < 0)
		m->zebra_off = false;
	if (zebra_lines(vtysh, "show running-config", ZEBRA_ANSWER_S, config_on_line,
			&m->configured) < 0)
		m->configured = false;
}

static struct mpls
mpls_facts(struct exam *e)
{
	struct mpls m = {.labels = row_int(e->fpm, "label_routes"),
			 .encaps = row_int(e->fpm, "encaps") - row_int(e->fpm, "headends"),
			 .platform_labels = -1,
			 .largest = -1};
	const json_t *row;
	size_t i;

	json_array_foreach (e->interfaces, i, row) {
		m.in_kernel |= row_has(row, "mpls");
		m.taken |= row_true(row, "mpls") &&
			   (row_true(row, "port") || row_has(row, "on"));
	}
	if (e->deny == NULL) {
		m.platform_labels =
			exam_number(e, -1, "/proc/sys/net/mpls/platform_labels");
		/* With mpls.input: all, interfaces accept labels without the kernel. */
		m.in_kernel = m.platform_labels >= 0;
	}
	if (!m.in_kernel || m.labels == 0)
		zebra_ask(e, &m);
	largest_label_ask(e, &m);
	return m;
}

/* Return true if the kernel has the module, loaded or built in. */
static bool
module_is_there(const struct exam *e, const char *name)
{
	static char list[1 << 18];
	char release[64], loaded[16], file[96];

	if (exam_read(e, loaded, sizeof(loaded), "/sys/module/%s/initstate", name) >= 0)
		return true;
	exam_read(e, release, sizeof(release), "/proc/sys/kernel/osrelease");
	exam_read(e, list, sizeof(list), "/lib/modules/%s/modules.builtin", release);
	snprintf(file, sizeof(file), "/%s.ko", name);
	return strstr(list, file) != NULL;
}

/* --- findings ------------------------------------------------------------------------- */

static void
kernel_add_missing(struct exam *e, const struct mpls *m)
{
	finding_add(e, VERDICT_WARN, "", "the kernel has no MPLS: no module mpls_router");
	if (m->configured)
		finding_cost(e, "FRR is configured for labels, but zebra starts without "
				"MPLS. Then it ignores the labels of its daemons and logs "
				"no error.");
	else
		finding_cost(e, "Frames with labels %sare lost.",
			     m->taken ? "for the router itself, such as BGP over a label, "
				      : "");
	finding_fix(e, "modprobe -a mpls_router mpls_iptunnel");
	finding_fix(e, "%ssysctl -w " SYSCTL_ALL_LABELS, e->in);
	finding_fix(e, "systemctl restart frr");
}

static void
zebra_add_off(struct exam *e)
{
	finding_add(e, VERDICT_WARN, "",
		    "MPLS is off in zebra, and FRR is configured for it");
	finding_cost(e,
		     "zebra started before the module mpls_router was loaded. It ignores "
		     "the labels of its daemons and logs no error.");
	finding_fix(e, "systemctl restart frr");
}

static void
refused_labels_cost(struct exam *e, const char *refused)
{
	finding_cost(
		e,
		"The kernel refuses %s, and zebra does not send a route that the kernel "
		"refused. zebra tries again only when it starts.",
		refused);
	finding_fix(e, "%ssysctl -w " SYSCTL_ALL_LABELS, e->in);
	finding_fix(e, "systemctl restart frr");
}

static void
platform_labels_check(struct exam *e, const struct mpls *m)
{
	if (m->platform_labels > 0 && m->largest >= m->platform_labels) {
		finding_add(e, VERDICT_WARN, "",
			    "the kernel accepts only labels below %lld (platform_labels), "
			    "and zebra has label %lld",
			    m->platform_labels, m->largest);
		refused_labels_cost(e, "the routes of other labels");
	}
	if (m->platform_labels != 0)
		return;
	/*
	 * If there are label routes, zebra sends them without writing them to the kernel.
	 */
	finding_add(e, m->labels > 0 ? VERDICT_WARN : VERDICT_FAIL, "",
		    "the kernel accepts no labels: platform_labels is 0");
	refused_labels_cost(e, "each label route");
}

/*
 * Report an interface towards the core if it accepts no labels. `seen` has the names of the
 * interfaces that this function has seen, so that each is reported once.
 */
static void
core_interface_check(struct exam *e, json_t *seen, const char *name, const char *why)
{
	const json_t *row = row_named(e->interfaces, name);

	if (row == NULL || row_true(row, "mpls") || json_object_get(seen, name) != NULL)
		return;
	json_object_set_new(seen, name, json_true());
	finding_add(e, VERDICT_WARN, name, "%s, but it accepts no labels", why);
	finding_cost(e, "Packets with labels that arrive at this interface are dropped "
			"(mpls_off), such as those of the opposite direction.");
	finding_fix(e, "%ssysctl -w net/mpls/conf/%s/input=1", e->in, name);
}

/*
 * Return true if the next hops of a label are routers of the core. The labels of BGP end at
 * routers of customers, and a static label may do so.
 */
static bool
label_is_of_core(const json_t *label)
{
	const char *protocol = row_str(label, "protocol");

	return strcmp(row_str(label, "source"), "zebra") == 0 &&
	       strcmp(protocol, "bgp") != 0 && strcmp(protocol, "static") != 0;
}

/*
 * Check that each interface towards the core accepts labels: if packets leave by it with
 * labels, or if it leads to the next hop of a label of LDP or of segment routing. This
 * router may be the last but one of all paths, and then its packets leave without labels.
 */
static void
core_interfaces_check(struct exam *e, const struct mpls *m)
{
	json_t *encaps = m->encaps > 0 ? exam_ask(e, "encaps") : NULL;
	json_t *labels = m->labels > 0 ? exam_ask(e, "labels") : NULL;
	json_t *seen = json_object();
	const json_t *row, *hop;
	size_t i, k;

	json_array_foreach (encaps, i, row)
		if (json_array_size(json_object_get(row, "labels")) > 0)
			core_interface_check(e, seen, row_str(row, "dev"),
					     "packets with labels leave by this interface");
	json_array_foreach (labels, i, row) {
		if (!label_is_of_core(row))
			continue;
		json_array_foreach (json_object_get(row, "nexthops"), k, hop)
			if (row_has(hop, "via"))
				core_interface_check(
					e, seen, row_str(hop, "dev"),
					"paths of labels lead by this interface");
	}
	json_decref(seen);
	json_decref(labels);
	json_decref(encaps);
}

static void
input_check(struct exam *e, const struct mpls *m)
{
	const char *name = row_str(json_array_get(e->ports, 0), "name");

	if (m->labels == 0 && !m->configured)
		return;
	if (m->taken) {
		core_interfaces_check(e, m);
		return;
	}
	finding_add(e, VERDICT_WARN, "", "no interface takes labels");
	finding_cost(e,
		     "All frames with labels are dropped (mpls_off). For each interface "
		     "towards the core, such as %s:",
		     name);
	finding_fix(e, "%ssysctl -w net/mpls/conf/%s/input=1", e->in, name);
}

/* Check the module for tunnels. The kernel loads it itself, except for a container. */
static void
tunnel_module_check(struct exam *e, const struct mpls *m)
{
	if ((m->labels == 0 && m->encaps == 0) || module_is_there(e, "mpls_iptunnel"))
		return;
	finding_add(e, VERDICT_WARN, "", "the module mpls_iptunnel is not loaded");
	finding_cost(e, "The kernel refuses IP routes that push labels, and zebra does not "
			"send a route that the kernel refused. A router that only switches "
			"labels does not need the module.");
	finding_fix(e, "modprobe mpls_iptunnel");
}

static void
far_end_add(struct exam *e, const char *name)
{
	finding_add(e, VERDICT_WARN, name,
		    "label routes lead to it, but it accepts no labels");
	finding_cost(e, "If a frame for the router itself has two labels, the kernel drops "
			"the frame at this interface. Frames that the router forwards are "
			"not affected.");
	finding_fix(e, "%ssysctl -w net/mpls/conf/%s/input=1", e->in, name);
}

struct far_ends {
	struct exam *e;
	json_t *seen; /* names of the reported interfaces */
};

/* A next hop, or a route, which may have several next hops. */
struct hop {
	bool goes_on;                   /* it has a gateway or a new label */
	uint32_t ifindex;               /* 0: none */
	const struct nlattr *multipath; /* NULL: it has one next hop */
};

static int
attribute_take(const struct nlattr *a, void *data)
{
	struct hop *hop = data;

	switch (mnl_attr_get_type(a)) {
	case RTA_VIA:
	case RTA_NEWDST:
		hop->goes_on = true;
		break;
	case RTA_OIF:
		if (mnl_attr_validate(a, MNL_TYPE_U32) < 0)
			return MNL_CB_ERROR;
		hop->ifindex = mnl_attr_get_u32(a);
		break;
	case RTA_MULTIPATH:
		hop->multipath = a;
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

/* Report the interface of a next hop if a label ends there and it accepts no labels. */
static void
hop_check(struct far_ends *f, const struct hop *hop)
{
	const json_t *row =
		hop->goes_on ? NULL : row_of_ifindex(f->e->interfaces, hop->ifindex);
	const char *name = row_str(row, "name");

	/* If the last label leads to a tunnel, the packet is sent into the tunnel. */
	if (row == NULL || row_true(row, "mpls") || row_has(row, "tunnel") ||
	    json_object_get(f->seen, name) != NULL)
		return;
	json_object_set_new(f->seen, name, json_true());
	far_end_add(f->e, name);
}

/* Check each next hop of RTA_MULTIPATH. Returns 0 or -EBADMSG. */
static int
hops_check(struct far_ends *f, const struct nlattr *multipath)
{
	const uint8_t *at = mnl_attr_get_payload(multipath);
	size_t left = mnl_attr_get_payload_len(multipath), step;
	struct rtnexthop nh;

	for (; left >= sizeof(nh); at += step, left -= step) {
		struct hop hop = {0};

		memcpy(&nh, at, sizeof(nh));
		if (nh.rtnh_len < sizeof(nh) || nh.rtnh_len > left ||
		    mnl_attr_parse_payload(at + sizeof(nh), nh.rtnh_len - sizeof(nh),
					   attribute_take, &hop) < 0)
			return -EBADMSG;
		hop.ifindex = (uint32_t)nh.rtnh_ifindex;
		hop_check(f, &hop);
		step = RTNH_ALIGN((size_t)nh.rtnh_len);
		step = step < left ? step : left;
	}
	return 0;
}

static int
route_on_message(const struct nlmsghdr *h, void *ctx)
{
	struct far_ends *f = ctx;
	struct hop hop = {0};

	if (h->nlmsg_type != RTM_NEWROUTE)
		return 0;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)) ||
	    mnl_attr_parse(h, sizeof(struct rtmsg), attribute_take, &hop) < 0)
		return -EBADMSG;
	if (hop.multipath != NULL)
		return hops_check(f, hop.multipath);
	hop_check(f, &hop);
	return 0;
}

/*
 * Check the interfaces where labels of the kernel end: VRFs and lo. Report each interface
 * once. Only query a kernel with MPLS, because other kernels list all routes. Without an
 * answer nothing is reported.
 */
static void
far_ends_check(struct exam *e)
{
	struct far_ends f = {.e = e, .seen = json_object()};

	(void)kernel_dump(RTM_GETROUTE, AF_MPLS, sizeof(struct rtmsg),
			  &(struct dump_reader){.on_message = route_on_message, .ctx = &f});
	json_decref(f.seen);
}

void
check_mpls(struct exam *e)
{
	size_t before = json_array_size(e->rows);
	struct mpls m;

	if (exam_no_daemon(e, ""))
		return;
	m = mpls_facts(e);
	if (m.labels == 0 && m.encaps == 0 && !m.taken && !m.configured) {
		if (e->named)
			finding_add(e, VERDICT_NA, "", "no labels in use");
		return;
	}
	if (!m.in_kernel) {
		kernel_add_missing(e, &m);
		return;
	}
	if (e->deny != NULL) {
		finding_add_denied(e);
		return;
	}
	if (m.zebra_off && m.configured)
		zebra_add_off(e);
	platform_labels_check(e, &m);
	input_check(e, &m);
	tunnel_module_check(e, &m);
	if (m.platform_labels >= 0)
		far_ends_check(e);
	if (json_array_size(e->rows) != before)
		return;
	if (m.platform_labels > 0 && m.platform_labels < ALL_LABELS)
		finding_add(e, VERDICT_OK, "", "the kernel accepts labels below %lld",
			    m.platform_labels);
	else
		finding_add(e, VERDICT_OK, "", "the kernel accepts labels");
}
