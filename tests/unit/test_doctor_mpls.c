/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check `mpls` of fpmctl doctor, on synthetic machines: a folder stands for /, a script
 * takes the place of vtysh, kernel_dump() of this file that of the kernel, and conn_fetch()
 * that of the daemon.
 *
 * link: fpm-dataplane/ctl/hop_push.c
 * link: fpm-dataplane/base/sysfs.c
 * link: fpm-dataplane/ctl/frr_version.c fpm-dataplane/ctl/doctor/mpls.c
 * link: fpm-dataplane/ctl/doctor/exam.c fpm-dataplane/ctl/doctor/parse.c fpm-dataplane/pci/
 * link: fpm-dataplane/ctl/zebra.c fpm-dataplane/ctl/zebra_find.c fpm-dataplane/ctl/run.c
 * link: fpm-dataplane/ctl/hops_text.c fpm-dataplane/ctl/json_row.c fpm-dataplane/ctl/text.c
 * link: fpm-dataplane/ctl/cli.c
 * link: fpm-dataplane/base/edit_distance.c fpm-dataplane/base/prefix.c
 * link: fpm-dataplane/base/log.c fpm-dataplane/base/log_out.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/cli.h"
#include "ctl/conn.h"
#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/frr_version.h"
#include "ctl/json_row.h"
#include "ctl/kernel_dump.h"
#include "root_fake.h"

#define PLATFORM_LABELS "/proc/sys/net/mpls/platform_labels"
#define MODULE          "/sys/module/mpls_iptunnel/initstate"
#define ON              "MPLS support enabled: yes\n"
#define OFF             "MPLS support enabled: no (mpls kernel extensions not detected)\n"
#define TABLE                                                         \
	" Inbound Label  Type        Nexthop      Outbound Label  \n" \
	" ------------------------------------------------------\n"   \
	" 16             LDP         10.0.1.2     implicit-null   \n" \
	" 16005          SR (IS-IS)  10.0.1.2     16005           \n" \
	" 900            LDP         192.0.2.17   99999           \n\n"
#define LDP "frr version 8.4.4\n!\nmpls ldp\n router-id 192.0.2.1\n"

static struct {
	struct exam e;
	char vtysh[128];
	const char *encaps; /* rows of `show encaps` as text; NULL: the daemon is silent */
	json_t *labels;     /* rows of `show labels`; NULL: there are none */
} t;

/* Take the place of the daemon. */
int
conn_fetch(const char *path, json_t *request, json_t *rows)
{
	json_t *answer = NULL;

	if (strcmp(row_str(request, "show"), "encaps") == 0 && t.encaps != NULL)
		answer = json_loads(t.encaps, 0, NULL);
	if (strcmp(row_str(request, "show"), "labels") == 0)
		answer = json_incref(t.labels);
	json_array_extend(rows, answer);
	json_decref(request);
	json_decref(answer);
	return t.encaps != NULL ? CTL_OK : CTL_NO_DAEMON;
}

/* A next hop of a route of labels. */
struct hop {
	uint32_t ifindex; /* 0: there is none */
	bool via, swap;
};
#define HOPS_MAX 2

/* The routes of labels in the kernel. */
static const struct lsp {
	struct hop hop[HOPS_MAX];
} * lsps;
static size_t n_lsps;

/* Append the attributes of a next hop. */
static void
hop_put(struct nlmsghdr *h, const struct hop *hop)
{
	if (hop->swap)
		mnl_attr_put_u32(h, RTA_NEWDST, 0x000c8100);
	if (hop->via)
		mnl_attr_put(h, RTA_VIA, 6, "\2\0\12\0\1\2");
}

/* Take the place of the kernel. */
int
kernel_dump(uint16_t type, uint8_t af, unsigned int header_bytes,
	    const struct dump_reader *to)
{
	char octets[256] __attribute__((aligned(8)));
	int rc = 0;

	assert_int_equal(type, RTM_GETROUTE);
	assert_int_equal(af, AF_MPLS);
	for (size_t i = 0; i < n_lsps && rc == 0; i++) {
		const struct hop *hop = lsps[i].hop;
		struct nlmsghdr *h = mnl_nlmsg_put_header(octets);
		struct nlattr *all;

		h->nlmsg_type = RTM_NEWROUTE;
		mnl_nlmsg_put_extra_header(h, header_bytes);
		if (hop[1].ifindex == 0) {
			hop_put(h, hop);
			mnl_attr_put_u32(h, RTA_OIF, hop->ifindex);
		} else {
			all = mnl_attr_nest_start(h, RTA_MULTIPATH);
			for (unsigned int k = 0; k < HOPS_MAX; k++) {
				struct rtnexthop *nh = mnl_nlmsg_get_payload_tail(h);

				memset(nh, 0, sizeof(*nh));
				nh->rtnh_ifindex = (int)hop[k].ifindex;
				h->nlmsg_len += (uint32_t)sizeof(*nh);
				hop_put(h, &hop[k]);
				nh->rtnh_len =
					(uint16_t)((char *)mnl_nlmsg_get_payload_tail(h) -
						   (char *)nh);
			}
			mnl_attr_nest_end(h, all);
		}
		rc = to->on_message(h, to->ctx);
	}
	return rc;
}

/* Set what vtysh prints for `show mpls status` and `show running-config`. */
static void
zebra_says(const char *status, const char *config)
{
	root_put("/status", status);
	root_put("/config", config);
}

/*
 * Set up an LSR with one core interface, whose kernel has MPLS and all that the LSR needs.
 */
static int
setup(void **state)
{
	char script[512];

	if (root_make() < 0)
		return -1;
	snprintf(script, sizeof(script),
		 "#!/bin/sh\ncase \"$2\" in\n*status) cat %s/status ;;\n*table) cat "
		 "%s/table ;;\n*) cat %s/config ;;\nesac\n",
		 root, root, root);
	root_put("/vtysh", script);
	snprintf(t.vtysh, sizeof(t.vtysh), "sh %s/vtysh", root);
	t.e = (struct exam){.root = root, .in = "", .check = "mpls", .about = "y"};
	t.e.vtysh = t.vtysh;
	t.e.rows = json_array();
	t.e.version = json_pack("{s:s}", "routes_from", "both");
	t.e.ports = json_loads("[{\"name\": \"wan0\"}, {\"name\": \"lan0\"}]", 0, NULL);
	t.e.fpm = json_pack("{s:i, s:i}", "label_routes", 5, "encaps", 2);
	t.e.interfaces = json_loads(
		"[{\"name\": \"lo\", \"ifindex\": 1, \"port\": false, \"mpls\": true},"
		"{\"name\": \"red\", \"ifindex\": 2, \"port\": false, \"mpls\": true},"
		"{\"name\": \"wan0\", \"ifindex\": 3, \"port\": true, \"mpls\": true},"
		"{\"name\": \"lan0\", \"ifindex\": 4, \"port\": true, \"mpls\": false}]",
		0, NULL);
	root_put(PLATFORM_LABELS, "1048575\n");
	root_put(MODULE, "live\n");
	zebra_says(ON, LDP);
	root_put("/table", TABLE);
	t.encaps = "[]";
	n_lsps = 0;
	return 0;
}

static int
teardown(void **state)
{
	json_decref(t.e.rows);
	json_decref(t.e.version);
	json_decref(t.e.ports);
	json_decref(t.e.fpm);
	json_decref(t.e.interfaces);
	return root_remove();
}

static void
mpls_set(const char *name, json_t *value)
{
	json_t *row;
	size_t i;

	json_array_foreach (t.e.interfaces, i, row)
		if (strcmp(row_str(row, "name"), name) == 0)
			json_object_set(row, "mpls", value);
	json_decref(value);
}

/* Take MPLS from the kernel, and from the interfaces that the daemon reports. */
static void
kernel_has_none(void)
{
	json_t *row;
	size_t i;

	json_array_foreach (t.e.interfaces, i, row)
		json_object_del(row, "mpls");
	remove(root_path(PLATFORM_LABELS));
	remove(root_path(MODULE));
}

static void
zebra_has(int labels, int encaps)
{
	json_object_set_new(t.e.fpm, "label_routes", json_integer(labels));
	json_object_set_new(t.e.fpm, "encaps", json_integer(encaps));
}

/* Run the check. Return its findings: "warn SUBJECT: TEXT;" each. */
static const char *
found(void)
{
	static char text[1024];
	const json_t *row;
	size_t i, n = 0;

	json_array_clear(t.e.rows);
	check_mpls(&t.e);
	text[0] = '\0';
	json_array_foreach (t.e.rows, i, row) {
		const char *status = row_str(row, "status");
		bool wrong = strcmp(status, "warn") == 0 || strcmp(status, "fail") == 0;

		assert_int_equal(row_has(row, "cost"), wrong);
		assert_int_equal(json_array_size(json_object_get(row, "fix")) > 0, wrong);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s: %s;", status,
				      row_str(row, "subject"), row_str(row, "text"));
	}
	return text;
}

static const char *
command(size_t finding, size_t n)
{
	const json_t *row = json_array_get(t.e.rows, finding);

	return json_string_value(json_array_get(json_object_get(row, "fix"), n));
}

static void
an_lsr_that_has_all_is_ok(void **state)
{
	assert_string_equal(found(), "ok : the kernel accepts labels;");
	zebra_has(0, 0);
	assert_string_equal(found(), "ok : the kernel accepts labels;");
}

static void
a_router_without_labels_is_not_spoken_of(void **state)
{
	zebra_has(0, 0);
	zebra_says(OFF, "frr version 8.4.4\nrouter bgp 65000\n");
	kernel_has_none();
	assert_string_equal(found(), "");
	t.e.named = true;
	assert_string_equal(found(), "n/a : no labels in use;");
	t.e.named = false;
	/* No zebra answers. */
	t.e.vtysh = "false";
	assert_string_equal(found(), "");
	json_object_set_new(t.e.version, "routes_from", json_string("kernel"));
	assert_string_equal(found(), "");
}

static void
a_module_that_is_loaded_and_not_used_is_not_spoken_of(void **state)
{
	zebra_has(0, 0);
	mpls_set("wan0", json_false());
	root_put(PLATFORM_LABELS, "0\n");
	zebra_says(ON, "frr version 8.4.4\n");
	assert_string_equal(found(), "");
}

static void
a_kernel_without_mpls_is_told_if_frr_needs_it(void **state)
{
	kernel_has_none();
	zebra_has(0, 0);
	zebra_says(OFF, LDP);
	assert_string_equal(found(),
			    "warn : the kernel has no MPLS: no module mpls_router;");
	assert_string_equal(command(0, 0), "modprobe -a mpls_router mpls_iptunnel");
	assert_string_equal(command(0, 2), "systemctl restart frr");
	/* The plugin that skips the kernel has sent labels. */
	zebra_has(5, 0);
	t.e.vtysh = "false";
	assert_non_null(strstr(found(), "no module mpls_router"));
	/* By the configuration all interfaces take labels, and there are no labels yet. */
	mpls_set("wan0", json_true());
	zebra_has(0, 0);
	assert_non_null(strstr(found(), "no module mpls_router"));
}

static void
a_zebra_that_was_started_too_early_is_told(void **state)
{
	zebra_has(0, 0);
	zebra_says(OFF, LDP);
	assert_string_equal(found(),
			    "warn : MPLS is off in zebra, and FRR is configured for it;");
	zebra_says(OFF, "frr version 8.4.4\n");
	assert_string_equal(found(), "ok : the kernel accepts labels;");
}

/* The module is loaded and zebra is on, but the kernel has its default of no labels. */
static void
the_default_of_the_kernel_fails_if_frr_needs_labels(void **state)
{
	root_put(PLATFORM_LABELS, "0\n");
	mpls_set("wan0", json_false());
	zebra_has(0, 0);
	zebra_says(ON, "frr version 8.4.4\n");
	assert_string_equal(found(), "");
	zebra_says(ON, LDP);
	assert_string_equal(found(),
			    "fail : the kernel accepts no labels: platform_labels is 0;"
			    "warn : no interface takes labels;");
}

static void
a_kernel_that_refuses_every_label_fails(void **state)
{
	root_put(PLATFORM_LABELS, "0\n");
	zebra_has(0, 0);
	assert_string_equal(found(),
			    "fail : the kernel accepts no labels: platform_labels is 0;");
	assert_string_equal(command(0, 0), "sysctl -w net.mpls.platform_labels=1048575");
	zebra_has(5, 0);
	assert_string_equal(found(),
			    "warn : the kernel accepts no labels: platform_labels is 0;");
	t.e.in = "ip netns exec r1 ";
	found();
	assert_string_equal(command(0, 0),
			    "ip netns exec r1 sysctl -w net.mpls.platform_labels=1048575");
}

static void
a_label_that_is_too_large_for_the_kernel_is_warned_of(void **state)
{
	root_put(PLATFORM_LABELS, "16005\n");
	assert_string_equal(found(), "warn : the kernel accepts only labels below 16005 "
				     "(platform_labels), and zebra has label 16005;");
	assert_string_equal(command(0, 0), "sysctl -w net.mpls.platform_labels=1048575");
	assert_string_equal(command(0, 1), "systemctl restart frr");
	/* The kernel has refused all labels, so the daemon has none. */
	zebra_has(0, 0);
	assert_non_null(strstr(found(), "zebra has label 16005"));
	root_put(PLATFORM_LABELS, "16006\n");
	assert_string_equal(found(), "ok : the kernel accepts labels below 16006;");
	/* Without zebra's table nothing is guessed. */
	root_put(PLATFORM_LABELS, "1000\n");
	t.e.vtysh = "false";
	assert_string_equal(found(), "ok : the kernel accepts labels below 1000;");
	t.e.vtysh = t.vtysh;
	json_object_set_new(t.e.version, "routes_from", json_string("kernel"));
	assert_string_equal(found(), "ok : the kernel accepts labels below 1000;");
}

static void
each_core_interface_without_input_is_warned_of_once(void **state)
{
	t.encaps = "[{\"encap\": 1, \"labels\": [17], \"dev\": \"wan0\"},"
		   "{\"encap\": 2, \"labels\": [18], \"dev\": \"lan0\"},"
		   "{\"encap\": 3, \"labels\": [19, 20], \"dev\": \"lan0\"},"
		   "{\"encap\": 4, \"labels\": [], \"srv6\": \"H.Encaps fc00::1\", "
		   "\"dev\": null},"
		   "{\"encap\": 5, \"labels\": [21], \"dev\": \"gone\"}]";
	assert_string_equal(
		found(), "warn lan0: packets with labels leave by this interface, but it "
			 "accepts no labels;");
	assert_string_equal(command(0, 0), "sysctl -w net/mpls/conf/lan0/input=1");
	mpls_set("lan0", json_true());
	assert_string_equal(found(), "ok : the kernel accepts labels;");
	/* If no interface takes labels, one finding suffices. */
	mpls_set("lan0", json_false());
	mpls_set("wan0", json_false());
	assert_string_equal(found(), "warn : no interface takes labels;");
	/* The daemon does not answer. */
	mpls_set("wan0", json_true());
	t.encaps = NULL;
	assert_string_equal(found(), "ok : the kernel accepts labels;");
}

/* Add a label to the rows of `show labels`. `via`: the gateway of its next hop, or NULL. */
static void
label_add(const char *source, const char *protocol, const char *via, const char *dev)
{
	json_array_append_new(t.labels, json_pack("{s:s, s:s, s:[{s:s?, s:s}]}", "source",
						  source, "protocol", protocol, "nexthops",
						  "via", via, "dev", dev));
}

/* The last label of a packet is removed here, so no packet leaves with labels. */
static void
a_core_interface_to_the_last_router_is_warned_of(void **state)
{
	t.labels = json_array();
	label_add("zebra", "bgp", "10.0.0.1", "lan0");
	label_add("zebra", "static", "10.0.0.1", "lan0");
	label_add("kernel", "4", "10.0.0.1", "lan0");
	label_add("zebra", "ldp", "10.0.0.1", "wan0");
	label_add("zebra", "ldp", NULL, "lan0");
	assert_string_equal(found(), "ok : the kernel accepts labels;");
	label_add("zebra", "ldp", "10.0.0.1", "lan0");
	label_add("zebra", "isis", "10.0.0.1", "lan0");
	assert_string_equal(
		found(),
		"warn lan0: paths of labels lead by this interface, but it accepts "
		"no labels;");
	assert_string_equal(command(0, 0), "sysctl -w net/mpls/conf/lan0/input=1");
	json_decref(t.labels);
	t.labels = NULL;
}

static void
labels_without_an_interface_that_takes_them_are_warned_of(void **state)
{
	mpls_set("wan0", json_false());
	assert_string_equal(found(), "warn : no interface takes labels;");
	assert_string_equal(command(0, 0), "sysctl -w net/mpls/conf/wan0/input=1");
	mpls_set("lan0", json_true());
	assert_string_equal(found(), "ok : the kernel accepts labels;");
}

static void
a_missing_module_for_labelled_routes_is_warned_of(void **state)
{
	remove(root_path(MODULE));
	assert_string_equal(found(), "warn : the module mpls_iptunnel is not loaded;");
	assert_string_equal(command(0, 0), "modprobe mpls_iptunnel");
	root_put("/proc/sys/kernel/osrelease", "6.1.0-x\n");
	root_put("/lib/modules/6.1.0-x/modules.builtin",
		 "kernel/net/mpls/mpls_gso.ko\nkernel/net/mpls/mpls_iptunnel.ko\n");
	assert_string_equal(found(), "ok : the kernel accepts labels;");
}

static void
a_far_end_that_takes_no_labels_is_warned_of_once(void **state)
{
	static const struct lsp routes[] = {
		{{{4, true, false}}},
		{{{4, true, true}}},
		{{{1, false, true}}}, /* the packet goes on with other labels */
		{{{2, false, false}}},
		{{{2, false, false}}},
		{{{99, false, false}}}, /* the daemon does not know this interface */
		{{{4, true, false}, {1, false, false}}},
	};

	lsps = routes;
	n_lsps = sizeof(routes) / sizeof(routes[0]);
	assert_string_equal(found(), "ok : the kernel accepts labels;");
	mpls_set("red", json_false());
	mpls_set("lo", json_false());
	assert_string_equal(found(),
			    "warn red: label routes lead to it, but it accepts no labels;"
			    "warn lo: label routes lead to it, but it accepts no labels;");
	assert_string_equal(command(0, 0), "sysctl -w net/mpls/conf/red/input=1");
}

static void
without_access_to_the_namespace_nothing_is_guessed(void **state)
{
	t.e.deny = "Operation not permitted";
	assert_string_equal(found(), "n/a : no access to the control namespace: Operation "
				     "not permitted; run as root;");
	zebra_has(0, 0);
	mpls_set("wan0", json_false());
	zebra_says(ON, "frr version 8.4.4\n");
	assert_string_equal(found(), "");
}

static void
lines_of_frr_that_need_labels(void **state)
{
	static const char *const need[] = {"mpls ldp",
					   "mpls lsp 100 10.0.0.1 200",
					   " mpls enable",
					   " mpls bgp forwarding",
					   " segment-routing on",
					   "  label vpn export auto"};
	static const char *const none[] = {"",
					   "segment-routing",
					   " srv6",
					   " segment-routing srv6 locator x",
					   "mpls label dynamic-block 100 200",
					   " no mpls enable",
					   " description mpls ldp"};

	for (unsigned int i = 0; i < sizeof(need) / sizeof(need[0]); i++)
		assert_true(frr_line_needs_labels(need[i]));
	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(frr_line_needs_labels(none[i]));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_lsr_that_has_all_is_ok),
		TEST(a_router_without_labels_is_not_spoken_of),
		TEST(a_module_that_is_loaded_and_not_used_is_not_spoken_of),
		TEST(a_kernel_without_mpls_is_told_if_frr_needs_it),
		TEST(a_zebra_that_was_started_too_early_is_told),
		TEST(the_default_of_the_kernel_fails_if_frr_needs_labels),
		TEST(a_kernel_that_refuses_every_label_fails),
		TEST(a_label_that_is_too_large_for_the_kernel_is_warned_of),
		TEST(each_core_interface_without_input_is_warned_of_once),
		TEST(a_core_interface_to_the_last_router_is_warned_of),
		TEST(labels_without_an_interface_that_takes_them_are_warned_of),
		TEST(a_missing_module_for_labelled_routes_is_warned_of),
		TEST(a_far_end_that_takes_no_labels_is_warned_of_once),
		TEST(without_access_to_the_namespace_nothing_is_guessed),
		cmocka_unit_test(lines_of_frr_that_need_labels),
	};

	return cmocka_run_group_tests_name("doctor: MPLS", tests, NULL, NULL);
}
