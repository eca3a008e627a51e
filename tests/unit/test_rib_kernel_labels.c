/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes of MPLS labels of the kernel in the RIB: in force before zebra's, replaced, deleted,
 * removed by a dump, restored from the checkpoint, shown.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "ckpt_rig.h"

#include <jansson.h>
#include <unistd.h>

#include "../fuzz/invariants.h"
#include "base/inet.h"
#include "fib/label.h"
#include "rib/restore.h"

#define NEW   KERNEL_ROUTE
#define DEL   KERNEL_ROUTE_DEL
#define GW(n) "192.0.2." #n

static void
label_fill(struct fpm_event *ev, uint32_t label)
{
	ev->table = FPM_TABLE_NONE;
	ev->prefix = (struct prefix){.family = FAMILY_LABEL, .len = 32};
	put_be32(ev->prefix.addr.octet, label);
}

static void
hop_fill(struct fpm_hop *hop, uint32_t new_label)
{
	hop->encap = new_label == 0 ? HOP_POP : HOP_MPLS;
	hop->n_labels = new_label != 0;
	hop->label[0] = new_label;
}

/*
 * Queue an event about a label route of the kernel. It swaps for `new_label` (0: it pops).
 */
static struct kernel_event *
kernel_label(struct rig *g, enum kernel_event_kind kind, uint32_t label, const char *gw,
	     uint32_t ifindex, uint32_t new_label)
{
	struct kernel_event *ev = rig_kernel(g, kind);

	ev->order = KERNEL_REPLACE;
	ev->route.protocol = RTPROT_BOOT;
	label_fill(&ev->route, label);
	if (kind == KERNEL_ROUTE) {
		rig_kernel_hop(ev, gw, ifindex);
		hop_fill(ev->route.hops, new_label);
		ev->ifindex = 0;
	}
	return ev;
}

static void
zebra_label(struct rig *g, uint32_t label, const char *gw, uint32_t ifindex)
{
	struct fpm_event *ev = rig_event(g, FPM_ROUTE);

	label_fill(ev, label);
	ev->rtm_type = RTN_UNICAST;
	ev->protocol = 193;
	ev->hops = calloc(1, sizeof(*ev->hops));
	ev->n_hops = 1;
	rig_set_hop(ev->hops, gw, ifindex);
	hop_fill(ev->hops, 0);
}

static void
go(struct rig *g)
{
	rig_settle(g);
	rib_must_be_sound(g);
}

static void
end(struct rig *g)
{
	go(g);
	rig_free(g);
}

/* Return what forwarders do with a label. */
static const char *
label_seen(const struct rig *g, uint32_t label)
{
	static char out[80];
	uint32_t group = atomic_load(&g->fib->label[label]);

	if (group == 0)
		return "none";
	rig_path_text(g, fib_group_path(g->fib, group, 0), out, sizeof(out));
	return out;
}

#define assert_label(g, label, want) assert_string_equal(label_seen(g, label), want)

static void
a_label_is_forwarded_until_its_route_is_deleted(void **state)
{
	struct rig *g = rig_two_ports();

	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	(void)kernel_label(g, NEW, 101, GW(200), 12, 16000);
	go(g);
	assert_label(g, 100, "192.0.2.1@1");
	assert_label(g, 101, "192.0.2.200@2 push 16000");
	assert_int_equal(g->rib->tables.n_not_ip, 2);
	assert_int_equal(rig_summary_int(g, "other_tables"), 0);
	assert_int_equal(g->rib->table_counts.n_labels, 0);
	(void)kernel_label(g, DEL, 101, NULL, 0, 0);
	(void)kernel_label(g, DEL, 102, NULL, 0, 0);
	go(g);
	assert_label(g, 100, "192.0.2.1@1");
	assert_label(g, 101, "none");
	(void)kernel_label(g, DEL, 100, NULL, 0, 0);
	go(g);
	assert_label(g, 100, "none");
	assert_int_equal(g->rib->tables.n_not_ip, 0);
	assert_int_equal(g->rib->tables.other.n, 0);
	end(g);
}

static void
a_label_has_one_route(void **state)
{
	struct rig *g = rig_two_ports();

	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	(void)kernel_label(g, NEW, 100, GW(200), 12, 300);
	go(g);
	assert_label(g, 100, "192.0.2.200@2 push 300");
	(void)kernel_label(g, DEL, 100, NULL, 0, 0);
	go(g);
	assert_label(g, 100, "none");
	/* zebra replaced the route in the kernel. */
	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	(void)kernel_label(g, KERNEL_ROUTE_REPLACED, 100, NULL, 0, 0);
	go(g);
	assert_label(g, 100, "none");
	end(g);
}

static void
the_kernels_route_is_before_zebras_and_leaves_it(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	zebra_label(g, 100, GW(2), 11);
	go(g);
	assert_label(g, 100, "192.0.2.2@1");
	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	go(g);
	assert_label(g, 100, "192.0.2.1@1");
	assert_int_equal(g->rib->table_counts.n_labels, 1);
	(void)kernel_label(g, DEL, 100, NULL, 0, 0);
	go(g);
	assert_label(g, 100, "192.0.2.2@1");

	/* A new session without the label withdraws zebra's route alone. */
	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	rig_session(g, 100);
	rig_route_type(g, "10.0.0.0/8", RTN_BLACKHOLE);
	rig_sentinel(g);
	go(g);
	assert_label(g, 100, "192.0.2.1@1");
	assert_int_equal(g->rib->table_counts.n_labels, 0);
	end(g);
}

static void
a_link_without_carrier_drops_packets_of_a_label(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	zebra_label(g, 100, GW(200), 12);
	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	go(g);
	rig_link_ignoring(g, 11, 1, false, 4);
	go(g);
	assert_label(g, 100, "down");
	rig_link(g, 11, 1, true);
	assert_label(g, 100, "192.0.2.1@1");
	end(g);
}

static void
a_dump_removes_the_labels_that_it_does_not_show(void **state)
{
	struct rig *g = rig_two_ports();

	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	(void)kernel_label(g, NEW, 101, GW(1), 11, 0);
	go(g);
	rig_kernel_dump(g, true, 4, RTPROT_BOOT);
	rig_kernel_dump(g, false, 4, RTPROT_BOOT);
	go(g);
	assert_label(g, 101, "192.0.2.1@1");
	rig_kernel_dump(g, true, FAMILY_LABEL, 0);
	(void)kernel_label(g, NEW, 100, GW(2), 11, 0); /* the change was lost */
	rig_kernel_dump(g, false, FAMILY_LABEL, 0);
	go(g);
	assert_label(g, 100, "192.0.2.2@1");
	assert_label(g, 101, "none");
	assert_seen(g, "192.0.2.126", "local");
	end(g);
}

static void
a_label_leads_to_the_table_of_a_vrf(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_link_of_vrf(g, 20, 1, true);
	(void)kernel_label(g, NEW, 100, NULL, 20, 0);
	(void)kernel_label(g, NEW, 101, NULL, 11, 0); /* not supported */
	go(g);
	assert_label(g, 100, "vrf");
	assert_label(g, 101, "encap");
	end(g);
}

/* Queue a route of the kernel for IP packets, with `encap mpls NEW_LABEL ttl N`. */
static void
kernel_push(struct rig *g, const char *prefix, uint32_t new_label, uint16_t ttl)
{
	struct kernel_event *ev = rig_kernel_route(g, NEW, prefix, 0, GW(1), 11);

	hop_fill(ev->route.hops, new_label);
	ev->route.hops[0].label_ttl = ttl;
}

static void
ttls_push(struct rig *g)
{
	kernel_push(g, "10.0.0.0/24", 300, 0);
	kernel_push(g, "10.0.1.0/24", 300, LABEL_TTL_OWN | 7);
	kernel_push(g, "10.0.2.0/24", 300, LABEL_TTL_OWN);
	kernel_push(g, "10.0.3.0/24", 300, LABEL_TTL_OWN | 7);
}

static void
ttls_must_be_there(struct rig *g)
{
	assert_seen(g, "10.0.0.1", "192.0.2.1@1 push 300");
	assert_seen(g, "10.0.1.1", "192.0.2.1@1 push 300 ttl 7");
	assert_seen(g, "10.0.2.1", "192.0.2.1@1 push 300 ttl 0");
	assert_seen(g, "10.0.3.1", "192.0.2.1@1 push 300 ttl 7");
	assert_int_equal(g->rib->encaps.n, 3);
}

/* Make a rib that keeps a checkpoint, with one link. */
static struct rig *
rig_with_checkpoint(void)
{
	struct rig *g = rig_new();

	g->rib->conf.checkpoint = true;
	g->rib->conf.checkpoint_max_age_s = 60;
	g->rib->conf.netns_id = NETNS;
	checkpoint_begin(g->rib, -1);
	rig_link(g, 11, 1, true);
	return g;
}

static void
equal_labels_with_another_ttl_are_another_stack(void **state)
{
	struct rig *g = rig_with_checkpoint();

	ttls_push(g);
	go(g);
	ttls_must_be_there(g);

	g = rig_begun(ckpt_of_killed(g), NETNS);
	go(g);
	assert_int_equal(g->rib->count.restore_lost, 0);
	ttls_must_be_there(g);
	end(g);
}

static void
modes_add(struct rig *g)
{
	for (unsigned int mode = 0; mode <= LABEL_MODE_UNIFORM; mode++) {
		kernel_label(g, NEW, 100 + mode, GW(1), 11, 0)->route.label_mode =
			(uint8_t)mode;
		kernel_label(g, NEW, 200 + mode, GW(1), 11, 300)->route.label_mode =
			(uint8_t)mode;
	}
}

static void
modes_must_be_there(struct rig *g)
{
	assert_label(g, 100, "192.0.2.1@1");
	assert_label(g, 101, "192.0.2.1@1 pipe");
	assert_label(g, 102, "192.0.2.1@1 uniform");
	assert_label(g, 200, "192.0.2.1@1 push 300");
	assert_label(g, 201, "192.0.2.1@1 push 300 pipe");
	assert_label(g, 202, "192.0.2.1@1 push 300 uniform");
}

static void
a_label_keeps_its_mode(void **state)
{
	struct rig *g = rig_with_checkpoint();

	modes_add(g);
	go(g);
	modes_must_be_there(g);

	g = rig_begun(ckpt_of_killed(g), NETNS);
	go(g);
	assert_int_equal(g->rib->count.restore_lost, 0);
	modes_must_be_there(g);
	kernel_label(g, NEW, 101, GW(1), 11, 0)->route.label_mode = LABEL_MODE_UNIFORM;
	(void)kernel_label(g, NEW, 102, GW(1), 11, 0);
	go(g);
	assert_label(g, 101, "192.0.2.1@1 uniform");
	assert_label(g, 102, "192.0.2.1@1");
	end(g);
}

static json_t *
labels_shown(struct rig *g)
{
	struct msg_query q = {.kind = QUERY_LABELS, .max = 100};

	return rig_ask(g, &q, NULL);
}

static void
the_route_in_force_is_shown_with_its_source(void **state)
{
	struct rig *g = rig_two_ports();
	const char *source[2];
	json_int_t label[2];
	json_t *rows;

	rig_session(g, 100);
	zebra_label(g, 100, GW(2), 11);
	zebra_label(g, 101, GW(2), 11);
	(void)kernel_label(g, NEW, 101, GW(1), 11, 0);
	(void)kernel_label(g, NEW, 102, GW(1), 11, 0);
	go(g);
	rows = labels_shown(g);
	assert_int_equal(json_array_size(rows), 3);
	for (unsigned int i = 0; i < 2; i++) {
		json_t *row = json_array_get(rows, i);

		assert_int_equal(json_unpack(row, "{s:I, s:s}", "label", &label[i],
					     "source", &source[i]),
				 0);
		assert_int_equal(label[i], 100 + i);
	}
	assert_string_equal(source[0], "zebra");
	assert_string_equal(source[1], "kernel");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rows, 1), "protocol")),
		"boot");
	json_decref(rows);
	end(g);
}

static void
a_checkpoint_has_them_and_the_first_dump_confirms_them(void **state)
{
	struct rig *g = rig_with_checkpoint();

	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	(void)kernel_label(g, NEW, 101, GW(1), 11, 300);
	go(g);

	g = rig_begun(ckpt_of_killed(g), NETNS);
	go(g);
	assert_int_equal(g->rib->count.restore_lost, 0);
	assert_label(g, 100, "192.0.2.1@1");
	assert_label(g, 101, "192.0.2.1@1 push 300");
	rig_kernel_dump(g, true, FAMILY_LABEL, 0);
	(void)kernel_label(g, NEW, 101, GW(1), 11, 300);
	rig_kernel_dump(g, false, FAMILY_LABEL, 0);
	go(g);
	assert_label(g, 100, "none");
	assert_label(g, 101, "192.0.2.1@1 push 300");
	end(g);
}

/* rib never writes a record of a label that has a metric, or that says connected subnet. */
static void
a_record_that_no_label_has_is_not_believed(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	struct ckpt *c, *seen;
	struct ckpt_kernel *k;
	uint32_t number = 1;
	int fd;

	(void)kernel_label(g, NEW, 100, GW(1), 11, 0);
	go(g);
	fd = ckpt_of_killed(g);
	c = ckpt_opened(fd);
	while (c->route[CKPT_KERNEL][number].family != FAMILY_LABEL)
		number++;
	k = &c->kernel[number];
	for (unsigned int i = 0; i < 3; i++) {
		k->metric = i == 1;
		k->flags = i == 2 ? CKPT_CONNECTED : 0;
		k->crc = CKPT_CRC_OF(number, k);
		seen = ckpt_opened(fd);
		assert_int_equal(seen->n_bad, i > 0);
		ckpt_free(seen);
	}
	ckpt_free(c);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_is_forwarded_until_its_route_is_deleted),
		cmocka_unit_test(a_label_has_one_route),
		cmocka_unit_test(the_kernels_route_is_before_zebras_and_leaves_it),
		cmocka_unit_test(a_link_without_carrier_drops_packets_of_a_label),
		cmocka_unit_test(a_dump_removes_the_labels_that_it_does_not_show),
		cmocka_unit_test(a_label_leads_to_the_table_of_a_vrf),
		cmocka_unit_test(equal_labels_with_another_ttl_are_another_stack),
		cmocka_unit_test(a_label_keeps_its_mode),
		cmocka_unit_test(the_route_in_force_is_shown_with_its_source),
		cmocka_unit_test(a_checkpoint_has_them_and_the_first_dump_confirms_them),
		cmocka_unit_test(a_record_that_no_label_has_is_not_believed),
	};

	return cmocka_run_group_tests_name("kernel labels", tests, NULL, NULL);
}
