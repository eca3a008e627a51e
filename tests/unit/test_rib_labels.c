/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes of MPLS labels, and next hops with labels: what forwarders see, which entries and
 * stacks exist, what a session's end, a restart and a full table do to them.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c tests/unit/ckpt_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c tests/fuzz/invariants.c
 */
#include "ckpt_rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/limits.h"
#include "fib/headend.h"
#include "rib/kernel.h"
#include "rib/link_change.h"
#include "log_said.h"
#include "../fuzz/invariants.h"

static int
no_limit(void **state)
{
	rig_limits = NULL;
	return 0;
}

static struct fpm_event *
label_event(struct rig *g, enum fpm_event_kind kind, uint32_t label)
{
	struct fpm_event *ev = rig_event(g, kind);

	ev->table = FPM_TABLE_NONE;
	ev->prefix = (struct prefix){.family = FAMILY_LABEL, .len = 32};
	put_be32(ev->prefix.addr.octet, label);
	return ev;
}

/*
 * Let the next hop push a label. 0: it has MPLS without labels, as if they were too many.
 */
static void
hop_push(struct fpm_hop *hop, uint32_t label)
{
	hop->encap = HOP_MPLS;
	hop->n_labels = label != 0;
	hop->label[0] = label;
}

/*
 * Announce a route of a label. It pops the label, or swaps it for `push` if that is not 0.
 */
static void
label_route(struct rig *g, uint32_t label, const char *gw, uint32_t ifindex, uint32_t push)
{
	struct fpm_event *ev = label_event(g, FPM_ROUTE, label);

	ev->n_hops = 1;
	ev->hops = calloc(1, sizeof(*ev->hops));
	rig_set_hop(ev->hops, gw, ifindex);
	ev->hops->encap = HOP_POP;
	if (push != 0)
		hop_push(ev->hops, push);
}

/* An IP route whose next hop pushes a label. */
static void
ip_route(struct rig *g, const char *prefix, const char *gw, uint32_t ifindex, uint32_t push)
{
	rig_route_inline(g, prefix, gw, ifindex);
	hop_push(g->batch->ev[g->batch->n - 1].hops, push);
}

static void
hop_with_label(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex, uint32_t push)
{
	rig_hop(g, id, gw, ifindex);
	hop_push(g->batch->ev[g->batch->n - 1].hops, push);
}

/* Return what becomes of a packet with the label. Valid until the next call. */
static const char *
label_seen(const struct rig *g, uint32_t label)
{
	static char text[80];
	uint32_t group = g->fib->label[label];
	fib_path path;

	if (group == 0)
		return "no label";
	path = fib_group_path(g->fib, group, 0);
	if (path_kind(path) == PATH_VRF)
		snprintf(text, sizeof(text), "vrf %u", path_index(path));
	else
		rig_path_text(g, path, text, sizeof(text));
	return text;
}

#define assert_label(g, label, want) assert_string_equal(label_seen(g, label), want)

static void
a_label_is_swapped_or_comes_off_and_follows_its_interface(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	label_route(g, 100, "192.0.2.1", 11, 200);
	label_route(g, 1048575, "192.0.2.1", 11, 0);
	rig_settle(g);
	assert_label(g, 100, "192.0.2.1@1 push 200");
	assert_label(g, 1048575, "192.0.2.1@1");
	assert_label(g, 101, "no label");
	rib_must_be_sound(g);

	rig_link(g, 11, 1, false);
	rig_settle(g);
	assert_label(g, 100, "down");
	assert_label(g, 1048575, "down");
	rig_link(g, 11, 1, true);
	label_route(g, 100, "192.0.2.129", 12, 300);
	label_event(g, FPM_ROUTE_DEL, 1048575);
	rig_settle(g);
	assert_label(g, 100, "192.0.2.129@2 push 300");
	assert_label(g, 1048575, "no label");
	assert_int_equal(g->rib->encaps.n, 1);
	rib_must_be_sound(g);
	rig_free(g);
}

/* RFC 4023. Forwarders write labels into tunnels of GRE; the kernel does into others. */
static void
labels_go_into_a_tunnel_of_gre(void **state)
{
	struct rig *g = rig_two_ports();

	links_set_through_kernel(g->rib, true);
	rig_tunnel(g, 3, 300, true);
	rig_tunnel_of_ip(g, 4, 301, true);
	rig_session(g, 100);
	label_route(g, 100, "10.9.0.2", 3, 200);
	label_route(g, 101, "10.9.0.2", 3, 0); /* an IP packet goes into the tunnel */
	label_route(g, 102, NULL, 3, 0);       /* a tunnel needs no gateway */
	label_route(g, 103, NULL, 3, 201);
	label_route(g, 104, "10.9.1.2", 4, 200);
	ip_route(g, "198.51.100.0/24", "10.9.0.2", 3, 200);
	rig_settle(g);
	assert_label(g, 100, "onlink@300 push 200");
	assert_label(g, 101, "onlink@300");
	assert_label(g, 102, "onlink@300");
	assert_label(g, 103, "onlink@300 push 201");
	assert_label(g, 104, "kernel@4");
	assert_seen(g, "198.51.100.1", "onlink@300 push 200");
	assert_int_equal(g->rib->encaps.n, 2);
	rib_must_be_sound(g);
	rig_tunnel(g, 3, 300, false);
	rig_settle(g);
	assert_label(g, 100, "down");
	assert_seen(g, "198.51.100.1", "down");
	rig_tunnel(g, 3, 302, true); /* made again */
	rig_settle(g);
	assert_label(g, 100, "onlink@302 push 200");
	assert_seen(g, "198.51.100.1", "onlink@302 push 200");
	assert_int_equal(g->rib->encaps.n, 2);
	rib_must_be_sound(g);
	rig_free(g);
}

static void
a_label_leads_to_the_table_of_its_interface(void **state)
{
	struct rig *g = rig_two_vrfs();

	rig_link(g, 1, 0, true); /* lo */
	rig_session(g, 100);
	label_route(g, 100, NULL, 1, 0);
	label_route(g, 101, NULL, 50, 0); /* before the kernel reports the device */
	label_route(g, 102, NULL, 13, 0); /* a port is no table */
	label_route(g, 103, "192.0.2.7", 11, 0);
	label_route(g, 104, NULL, 13, 200);
	rig_settle(g);
	assert_label(g, 100, "vrf 0");
	assert_label(g, 101, "down");
	assert_label(g, 102, "encap");
	assert_label(g, 103, "192.0.2.7@1"); /* to a CE: a port of the VRF */
	assert_label(g, 104, "encap");

	rig_link_of_vrf(g, 50, 1, true);
	rig_settle(g);
	assert_label(g, 101, "vrf 1");
	rig_link_of_vrf(g, 50, 1, false);
	rig_link(g, 1, 0, false);
	rig_settle(g);
	assert_label(g, 100, "down");
	assert_label(g, 101, "down");
	rig_link_of_vrf(g, 50, 2, true); /* another VRF has the number now */
	rig_settle(g);
	assert_label(g, 101, "vrf 2");
	rig_link_gone(g, 50);
	rig_settle(g);
	assert_label(g, 101, "down");
	rib_must_be_sound(g);
	rig_free(g);
}

static void
equal_labels_over_a_neighbor_are_one_entry(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	label_route(g, 100, "192.0.2.1", 11, 200);
	ip_route(g, "198.51.100.0/24", "192.0.2.1", 11, 200);
	hop_with_label(g, 7, "192.0.2.1", 11, 200);
	rig_route(g, "203.0.113.0/24", 7);
	ip_route(g, "203.0.114.0/24", "192.0.2.129", 12, 200);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1 push 200");
	assert_seen(g, "203.0.113.1", "192.0.2.1@1 push 200");
	assert_seen(g, "203.0.114.1", "192.0.2.129@2 push 200");
	assert_int_equal(g->rib->encaps.n, 2);
	assert_int_equal(g->rib->stacks.n, 1);

	/* Only the next hop of the id changes. */
	hop_with_label(g, 7, "192.0.2.1", 11, 201);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1 push 201");
	assert_seen(g, "198.51.100.1", "192.0.2.1@1 push 200");
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1");
	rib_must_be_sound(g);
	rig_free(g);
}

/* A packet in transit may still read the entry of the old path. */
static void
an_entry_is_written_again_only_after_the_grace_period(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t first;

	rig_session(g, 100);
	label_route(g, 100, "192.0.2.1", 11, 200);
	rig_settle(g);
	first = path_index(fib_group_path(g->fib, g->fib->label[100], 0));
	for (uint32_t push = 201; push < 230; push++) {
		label_route(g, 100, "192.0.2.1", 11, push);
		rig_go(g);
		assert_int_equal(label_of(__builtin_bswap32(g->fib->encap[first].entry[0])),
				 200);
	}
	rig_settle(g);
	assert_int_equal(g->rib->encaps.n, 1);
	rib_must_be_sound(g);
	rig_free(g);
}

static void
next_hops_without_an_entry_get_one_when_it_is_free(void **state)
{
	struct rig *g;

	rig_limit(TABLE_encaps, 2);
	g = rig_two_ports();
	rig_session(g, 100);
	rig_route_inline(g, "192.88.99.0/24", "192.0.2.1", 11); /* keeps the neighbor */
	for (uint32_t i = 0; i < 5; i++)
		label_route(g, 100 + i, "192.0.2.1", 11, 200 + i);
	ip_route(g, "198.51.100.0/24", "192.0.2.1", 11, 204); /* shares with label 104 */
	rig_settle(g);
	assert_label(g, 100, "192.0.2.1@1 push 200");
	assert_label(g, 101, "192.0.2.1@1 push 201");
	for (uint32_t i = 2; i < 5; i++)
		assert_label(g, 100 + i, "encap");
	assert_int_equal(table_state(TABLE_encaps).used, 2);
	assert_true(table_state(TABLE_encaps).refused > 0);
	rib_must_be_sound(g);

	label_event(g, FPM_ROUTE_DEL, 100);
	rig_settle(g);
	assert_label(g, 102, "192.0.2.1@1 push 202");
	label_event(g, FPM_ROUTE_DEL, 101);
	rig_settle(g);
	assert_label(g, 103, "192.0.2.1@1 push 203");
	label_event(g, FPM_ROUTE_DEL, 102);
	rig_settle(g);
	assert_label(g, 104, "192.0.2.1@1 push 204");
	assert_seen(g, "198.51.100.1", "192.0.2.1@1 push 204");
	assert_int_equal(table_state(TABLE_encaps).used, 2);
	rib_must_be_sound(g);
	rig_free(g);
}

/* Return the last report about a prefix: "forwarded", "failed" or "none". */
static const char *
told(struct rig *g, const char *text)
{
	struct prefix p = rig_prefix(text);
	const char *last = "none";
	struct msg *m;

	while ((m = worker_take(&g->fpm)) != NULL) {
		const struct msg_feedback *f = (const struct msg_feedback *)m;

		for (uint32_t i = 0; m->type == MSG_FEEDBACK && i < f->n; i++) {
			assert_int_not_equal(f->route[i].prefix.family, FAMILY_LABEL);
			if (prefix_equal(&f->route[i].prefix, &p))
				last = f->route[i].failed ? "failed" : "forwarded";
		}
		msg_free(m);
	}
	return last;
}

static void
zebra_is_told_which_routes_with_labels_are_forwarded(void **state)
{
	struct rig *g;

	rig_limit(TABLE_encaps, 1);
	g = rig_two_ports();
	g->rib->conf.fpm = &g->fpm;
	g->rib->conf.feedback = true;
	rig_session(g, 100);
	rig_route_inline(g, "192.88.99.0/24", "192.0.2.1", 11);
	ip_route(g, "198.51.100.0/24", "192.0.2.1", 11, 200);
	label_route(g, 100, "192.0.2.1", 11, 200);
	rig_sentinel(g);
	rig_settle(g);
	assert_string_equal(told(g, "198.51.100.0/24"), "forwarded");

	ip_route(g, "203.0.113.0/24", "192.0.2.1", 11, 0); /* with too many labels */
	rig_settle(g);
	assert_string_equal(told(g, "203.0.113.0/24"), "failed");
	ip_route(g, "203.0.113.0/24", "192.0.2.1", 11, 201);
	rig_settle(g);
	assert_string_equal(told(g, "203.0.113.0/24"), "failed"); /* no entry is left */
	rig_del(g, "198.51.100.0/24");
	label_event(g, FPM_ROUTE_DEL, 100);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1 push 201");
	assert_string_equal(told(g, "203.0.113.0/24"), "forwarded");
	rig_free(g);
}

/* zebra numbers its ids again, and sends all labels but one. */
static void
labels_stay_through_the_end_of_a_session_and_are_swept_after_the_next(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t group, writes;

	rig_session(g, 100);
	hop_with_label(g, 7, "192.0.2.1", 11, 200);
	rig_route(g, "198.51.100.0/24", 7);
	label_route(g, 100, "192.0.2.1", 11, 300);
	label_route(g, 101, "192.0.2.1", 11, 0);
	rig_sentinel(g);
	rig_settle(g);
	group = rig_group_of(g, "198.51.100.1");

	rig_session_down(g);
	rig_settle(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1 push 200");
	assert_label(g, 100, "192.0.2.1@1 push 300");
	writes = (uint32_t)g->rib->count.word_writes;

	rig_session(g, 200);
	hop_with_label(g, 33, "192.0.2.1", 11, 200);
	rig_route(g, "198.51.100.0/24", 33);
	label_route(g, 100, "192.0.2.1", 11, 300);
	rig_settle(g);
	assert_int_equal(rig_group_of(g, "198.51.100.1"), group);
	assert_int_equal(g->rib->count.word_writes, writes);
	assert_label(g, 101, "192.0.2.1@1");
	rig_sentinel(g);
	rig_go(g);
	rig_later(g, 1000); /* past the hold time after a restart of zebra */
	assert_label(g, 100, "192.0.2.1@1 push 300");
	assert_label(g, 101, "no label");
	rib_must_be_sound(g);
	rig_free(g);
}

static void
teach(struct rig *g)
{
	rig_session(g, 100);
	hop_with_label(g, 7, "192.0.2.1", 11, 200);
	hop_with_label(g, 8, "192.0.2.129", 12, 201);
	rig_group(g, 9, 2, 7, 1, 8, 1);
	rig_route(g, "198.51.100.0/24", 9);
	rig_hop(g, 10, "192.0.2.2", 11);
	rig_route(g, "203.0.113.0/24", 10);
	label_route(g, 100, "192.0.2.1", 11, 300);
	label_route(g, 101, "192.0.2.1", 11, 0);
	rig_sentinel(g);
	rig_settle(g);
}

static void
labels_are_in_force_after_a_restart_and_the_replay_rewrites_nothing(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	const char *want = "192.0.2.129@2 push 201*2048 192.0.2.1@1 push 200*2048";
	uint64_t writes;

	teach(g);
	assert_seen(g, "198.51.100.1", want);
	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(g->rib->count.restored, 5);
	assert_int_equal(g->rib->count.restore_lost, 0);
	assert_seen(g, "198.51.100.1", want);
	assert_label(g, 100, "192.0.2.1@1 push 300");
	assert_label(g, 101, "192.0.2.1@1");
	rig_settle(g);
	rib_must_be_sound(g);
	writes = g->rib->count.word_writes;
	teach(g);
	assert_int_equal(g->rib->count.word_writes, writes);
	assert_seen(g, "198.51.100.1", want);
	rib_must_be_sound(g);

	/* The checkpoint of the successor has them, too. */
	g = rig_begun(ckpt_of_killed(g), NETNS);
	assert_int_equal(g->rib->count.restored, 5);
	assert_label(g, 100, "192.0.2.1@1 push 300");
	rig_free(g);
}

/* Give a checkpoint the number and the size of an older layout. */
static void
ckpt_become(int fd, uint32_t layout)
{
	struct ckpt *c = ckpt_opened(fd);

	c->head->layout = layout;
	c->head->crc = CKPT_CRC(c->head);
	ckpt_free(c);
	assert_int_equal(ftruncate(fd, (off_t)ckpt_file_bytes(layout)), 0);
}

/*
 * Layout 3 has the next hops that push labels, but not the labels. These next hops are
 * unsupported until the replay, as they were for the daemon that wrote layout 3.
 */
static void
the_layout_before_labels_is_read(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	int fd;

	rig_session(g, 100);
	hop_with_label(g, 7, "192.0.2.1", 11, 200);
	rig_route(g, "198.51.100.0/24", 7);
	rig_hop(g, 10, "192.0.2.2", 11);
	rig_route(g, "203.0.113.0/24", 10);
	rig_sentinel(g);
	rig_settle(g);
	fd = ckpt_of_killed(g);
	ckpt_become(fd, CKPT_LAYOUT_3);
	g = rig_begun(fd, NETNS);
	assert_int_equal(g->rib->count.restored, 3);
	assert_seen(g, "198.51.100.1", "encap");
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	rib_must_be_sound(g);
	teach(g);
	assert_seen(g, "198.51.100.1",
		    "192.0.2.129@2 push 201*2048 192.0.2.1@1 push 200*2048");
	assert_label(g, 100, "192.0.2.1@1 push 300");
	rib_must_be_sound(g);
	g = rig_begun(ckpt_of_killed(g), NETNS); /* its own file has the present layout */
	assert_label(g, 100, "192.0.2.1@1 push 300");
	rig_free(g);
}

#define LONG_FIRST 1048560u /* the first label of a stack of teach_stack() */

/*
 * Announce a route over a next hop that pushes `n` labels, and a label that is swapped for
 * the same `n` labels.
 */
static void
teach_stack(struct rig *g, unsigned int n)
{
	struct fpm_hop *hop[2];

	rig_session(g, 100);
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.1", 11);
	hop[0] = g->batch->ev[g->batch->n - 1].hops;
	label_route(g, 100, "192.0.2.129", 12, 1);
	hop[1] = g->batch->ev[g->batch->n - 1].hops;
	for (unsigned int k = 0; k < 2; k++) {
		hop_push(hop[k], LONG_FIRST);
		hop[k]->n_labels = (uint8_t)n;
		for (unsigned int i = 0; i < n; i++)
			hop[k]->label[i] = LONG_FIRST + i;
	}
	hop_with_label(g, 7, "192.0.2.1", 11, 200);
	rig_route(g, "203.0.113.0/24", 7);
	rig_sentinel(g);
	rig_settle(g);
}

/*
 * Check that a group leads to an adjacency of an interface, behind `n` labels of
 * teach_stack().
 */
static void
stack_is_pushed(const struct rig *g, uint32_t group, unsigned int n, uint32_t ifidx)
{
	fib_path path = fib_group_path(g->fib, group, 0);
	const struct fib_encap *e = fib_encap(g->fib, path);
	/* As large as the type of `n` allows, because gcc 14 warns of a smaller one. */
	uint8_t out[(UINT8_MAX + 1) * LABEL_BYTES] = {[LABELS_MAX * LABEL_BYTES] = 0xa5};

	assert_int_equal(path_kind(path), PATH_ENCAP);
	assert_int_equal(e->n, n);
	assert_int_equal(path_kind(encap_next(e)), PATH_ADJ);
	assert_int_equal(g->fib->adj[path_index(encap_next(e))].ifidx, ifidx);
	assert_false(path_is_headend(g->fib, path));
	encap_write_any(e, out, 5, true, 63);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(get_be32(out + i * LABEL_BYTES),
				 label_entry(LONG_FIRST + i, 5, i + 1 == n, 63));
	assert_int_equal(out[LABELS_MAX * LABEL_BYTES], 0xa5);
}

static void
stacks_are_pushed(struct rig *g, unsigned int n)
{
	stack_is_pushed(g, rig_group_of(g, "198.51.100.1"), n, 1);
	stack_is_pushed(g, g->fib->label[100], n, 2);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1 push 200");
	rib_must_be_sound(g);
}

/*
 * Stacks of LABEL_WORDS to 16 labels are in force after a restart. zebra sends 16 at most.
 */
static void
stacks_of_sixteen_labels_are_in_force_after_a_restart(void **state)
{
	for (unsigned int n = LABEL_WORDS; n <= LABELS_MAX; n++) {
		struct rig *g = rig_begun(-1, NETNS);
		uint64_t writes;

		teach_stack(g, n);
		stacks_are_pushed(g, n);
		g = rig_begun(ckpt_of_killed(g), NETNS);
		assert_int_equal(g->rib->count.restored, 4);
		stacks_are_pushed(g, n);
		writes = g->rib->count.word_writes;
		teach_stack(g, n);
		assert_int_equal(g->rib->count.word_writes, writes);
		assert_int_equal(g->rib->encaps.n, 3);
		rig_free(g);
	}
}

/* Layout 4 has room for 14 labels of a next hop. Its writer wrote a next hop with more labels
 * without labels. */
static void
the_layout_before_sixteen_labels_is_read(void **state)
{
	for (unsigned int n = LABEL_WORDS; n <= LABELS_MAX; n++) {
		struct rig *g = rig_begun(-1, NETNS);
		const char *why;
		int fd;

		teach_stack(g, n);
		fd = ckpt_of_killed(g);
		if (n > LABEL_WORDS) {
			struct ckpt *c = ckpt_opened(fd);

			c->head->layout = CKPT_LAYOUT_4;
			c->head->crc = CKPT_CRC(c->head);
			ckpt_free(c);
			assert_null(ckpt_open(fd, NETNS, boottime_ms(), 60000, &why));
			assert_string_equal(why, "damaged next hops");
			continue;
		}
		ckpt_become(fd, CKPT_LAYOUT_4);
		g = rig_begun(fd, NETNS);
		assert_int_equal(g->rib->count.restored, 4);
		stacks_are_pushed(g, n);
		rig_free(g);
	}
}

/* No octet of a record with 16 labels is unused: each is under its CRC. */
static void
each_octet_of_sixteen_labels_counts(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	uint32_t number[2], n = 0;
	struct ckpt_stack *s;
	struct ckpt *c;
	int fd;

	teach_stack(g, LABELS_MAX);
	fd = ckpt_of_killed(g);
	c = ckpt_opened(fd);
	for (uint32_t i = 1; i <= c->head->hop_high; i++)
		if (c->hop[i].slot != 0 && c->stack[i].n == LABELS_MAX)
			number[n++] = i;
	assert_int_equal(n, 2);
	s = &c->stack[number[0]];
	ckpt_octets_count(fd, (uint8_t *)s, (uint8_t *)&c->stack[number[1]], sizeof(*s));
	/* Bits that packed labels leave 0. */
	s->word[LABEL_WORDS - 1] |= 1;
	s->crc = CKPT_CRC_OF(c->hop[number[0]].version, s);
	ckpt_free(c);
	g = rig_begun(fd, NETNS);
	assert_int_equal(g->rib->count.restored, 3);
	rib_must_be_sound(g);
	rig_free(g);
}

/* A damaged record of labels costs the routes of its slot. It leads to no wrong label. */
static void
each_octet_of_the_labels_counts(void **state)
{
	struct rig *g = rig_begun(-1, NETNS);
	uint32_t number = 0, other = 0;
	struct ckpt *c;
	int fd;

	teach(g);
	fd = ckpt_of_killed(g);
	c = ckpt_opened(fd);
	for (uint32_t i = 1; i <= c->head->hop_high; i++)
		if (c->hop[i].slot != 0 && c->hop[i].encap == HOP_MPLS) {
			other = number;
			number = i;
		}
	assert_int_not_equal(other, 0);
	ckpt_octets_count(fd, (uint8_t *)&c->stack[number], (uint8_t *)&c->stack[other],
			  sizeof(c->stack[number]));
	c->stack[number].word[0] ^= 1;
	ckpt_free(c);
	g = rig_begun(fd, NETNS);
	assert_true(g->rib->count.restored < 5);
	assert_seen(g, "203.0.113.1", "192.0.2.2@1");
	rib_must_be_sound(g);
	rig_free(g);
}

/* Labels come and go while ids and slots name others. */
static void
stacks_that_nothing_names_are_freed_and_others_stay(void **state)
{
	struct rig *g = rig_two_ports();

	rig_session(g, 100);
	label_route(g, 100, "192.0.2.1", 11, 16);
	hop_with_label(g, 7, "192.0.2.1", 11, 17); /* without a route */
	hop_with_label(g, 8, "192.0.2.1", 11, 18);
	rig_route(g, "198.51.100.0/24", 8);
	for (uint32_t push = 1000; push < 3500; push++) {
		label_route(g, 101, "192.0.2.1", 11, push);
		rig_settle(g);
		assert_true(g->rib->stacks.n < 1100);
	}
	assert_label(g, 100, "192.0.2.1@1 push 16");
	assert_label(g, 101, "192.0.2.1@1 push 3499");
	assert_seen(g, "198.51.100.1", "192.0.2.1@1 push 18");
	rig_route(g, "203.0.113.0/24", 7);
	rig_settle(g);
	assert_seen(g, "203.0.113.1", "192.0.2.1@1 push 17");
	assert_int_equal(g->rib->encaps.n, 4);
	rib_must_be_sound(g);
	rig_free(g);
}

/* A record has room for three labels, and longer stacks have memory of their own. */
static void
stacks_of_each_length_are_written_found_again_and_freed(void **state)
{
	struct rig *g = rig_two_ports();
	struct rib_stacks *s = &g->rib->stacks;
	const struct fib_encap *e;
	uint32_t label[LABELS_MAX + 1], number, first[LABELS_MAX + 1];

	for (unsigned int turn = 0; turn < 2; turn++) {
		for (unsigned int n = 1; n <= LABELS_MAX; n++) {
			for (unsigned int i = 0; i < n; i++)
				label[i] = 16 + 100 * n + i;
			first[n] = stack_number(g->rib, label, n, 0);
			number = encap_get(g->rib, PATH(PATH_ADJ, 1), first[n]);
			e = &g->fib->encap[number];
			assert_int_equal(e->n, n);
			for (unsigned int i = 0; i < n; i++)
				assert_int_equal(encap_label(e, i), label[i]);
			for (unsigned int i = 0; n <= LABEL_WORDS && i < n; i++)
				assert_int_equal(e->entry[i],
						 __builtin_bswap32(label[i] << 12));
			/* With more labels `next` has no adjacency for the fast path. */
			assert_int_equal(path_index(e->next), n > LABEL_WORDS ? 0 : 1);
			assert_int_equal(encap_next(e), PATH(PATH_ADJ, 1));
			assert_int_equal(stack_number(g->rib, label, n, 0), first[n]);
			label[n - 1]++; /* the last label counts, too */
			assert_int_not_equal(stack_number(g->rib, label, n, 0), first[n]);
			encap_put(g->rib, number);
		}
		assert_int_equal(stack_number(g->rib, label, LABELS_MAX + 1, 0), 0);
		assert_int_equal(s->n, 2 * LABELS_MAX);
		assert_true(s->n_far > 0);
		for (uint32_t i = 1; s->n < 1024; i++)
			assert_int_not_equal(stack_number(g->rib, &i, 1, 0), 0);
		s->collect_at = 0;
		stacks_collect(g->rib);
		assert_int_equal(s->n, 0);
		assert_int_equal(s->n_far, 0);
	}
	rig_free(g);
}

/* Return the number of differences that the audit finds. */
static json_int_t
n_different(struct rig *g, bool repair)
{
	struct msg_query q = {.kind = QUERY_AUDIT, .repair = repair, .max = 16};
	json_t *rows = rig_ask(g, &q, NULL);
	const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
	json_int_t n = json_integer_value(json_object_get(last, "differences"));

	assert_int_equal(json_array_size(rows), n + 1);
	json_decref(rows);
	rig_settle(g);
	return n;
}

static void
the_audit_finds_wrong_labels_and_mends_them(void **state)
{
	struct rig *g = rig_two_ports();
	uint32_t group;

	rig_session(g, 100);
	assert_int_equal(n_different(g, false), 0);
	label_route(g, 100, "192.0.2.1", 11, 200);
	label_route(g, 1048575, "192.0.2.1", 11, 0);
	rig_settle(g);
	assert_int_equal(n_different(g, false), 0);

	/*
	 * The route of 100 is missing, that of 1048575 is wrong. 101 and 2047 must have
	 * none.
	 */
	group = g->fib->label[100];
	g->fib->label[100] = 0;
	g->fib->label[1048575] = group;
	g->fib->label[101] = group;
	g->fib->label[2047] = group;
	assert_int_equal(n_different(g, false), 4);
	assert_int_equal(n_different(g, true), 4);
	assert_int_equal(n_different(g, false), 0);
	assert_label(g, 100, "192.0.2.1@1 push 200");
	assert_label(g, 1048575, "192.0.2.1@1");
	assert_label(g, 101, "no label");
	g->rib->labels.want[100] = 0;
	assert_int_equal(n_different(g, true), 1); /* the repair also mends `want` */
	assert_int_equal(n_different(g, false), 0);
	assert_label(g, 100, "192.0.2.1@1 push 200");
	rib_must_be_sound(g);
	rig_free(g);
}

/*
 * Even if most numbers are in use, rib looks for unused stacks before the numbers run out.
 */
static void
unused_stacks_are_looked_for_before_the_numbers_run_out(void **state)
{
	assert_int_equal(stacks_collect_next(1024), 2048);
	for (uint32_t n = 1; n < STACKS_MAX - 2; n += 1000) {
		assert_in_range(stacks_collect_next(n), n + 1, STACKS_MAX - 2);
		assert_true(stacks_collect_next(n) <= 2 * n);
	}
	assert_int_equal(stacks_collect_next(STACKS_MAX - 1), STACKS_MAX - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_is_swapped_or_comes_off_and_follows_its_interface),
		cmocka_unit_test(labels_go_into_a_tunnel_of_gre),
		cmocka_unit_test(a_label_leads_to_the_table_of_its_interface),
		cmocka_unit_test(equal_labels_over_a_neighbor_are_one_entry),
		cmocka_unit_test(an_entry_is_written_again_only_after_the_grace_period),
		cmocka_unit_test_teardown(
			next_hops_without_an_entry_get_one_when_it_is_free, no_limit),
		cmocka_unit_test_teardown(
			zebra_is_told_which_routes_with_labels_are_forwarded, no_limit),
		cmocka_unit_test(
			labels_stay_through_the_end_of_a_session_and_are_swept_after_the_next),
		cmocka_unit_test(
			labels_are_in_force_after_a_restart_and_the_replay_rewrites_nothing),
		cmocka_unit_test(the_layout_before_labels_is_read),
		cmocka_unit_test(stacks_of_sixteen_labels_are_in_force_after_a_restart),
		cmocka_unit_test(the_layout_before_sixteen_labels_is_read),
		cmocka_unit_test(each_octet_of_sixteen_labels_counts),
		cmocka_unit_test(each_octet_of_the_labels_counts),
		cmocka_unit_test(stacks_that_nothing_names_are_freed_and_others_stay),
		cmocka_unit_test(stacks_of_each_length_are_written_found_again_and_freed),
		cmocka_unit_test(the_audit_finds_wrong_labels_and_mends_them),
		cmocka_unit_test(unused_stacks_are_looked_for_before_the_numbers_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
