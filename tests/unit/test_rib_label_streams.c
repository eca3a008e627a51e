/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feed streams of zebra with labels (tests/unit/captures: LDP, segment routing, L3VPN,
 * 6VPE, routes between two AS) to the frame cutter, the decoder, the queue and the RIB.
 * After each section of a stream, compare the paths of forwarders with those of a naive
 * model of the events: the paths of each label, and of each route in main and in the VRFs.
 * test_fpm_labels compares the events with their text.
 *
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/netlink/ fpm-dataplane/fpm/frame.c
 * link: fpm-dataplane/fpm/queue.c tests/unit/rib_rig.c tests/unit/oracle.c
 * link: tests/unit/rig_kernel.c tests/unit/rib_stream.c tests/unit/grace.c
 * link: tests/fuzz/invariants.c
 */
#include "rib_stream.h"

#include <glob.h>
#include <stdio.h>

#include "base/inet.h"
#include "oracle.h"
#include "../fuzz/invariants.h"

#define CAPTURES  "tests/unit/captures/*.hex"
#define FRAME_MAX 4096u
#define HASHES    64u
#define HOPS_MAX  8u
#define TEXT_MAX  80u
#define N_ROUTES  512u
#define N_IDS     128u
/* Interfaces of all streams: lo, the VRFs red and blue, three ports. */
#define LO         1u
#define FIRST_VRF  2u
#define FIRST_PORT 101u
#define N_PORTS    3u
#define TABLE_STEP 10u /* the table of red is 10, the table of blue 20 */

/* --- the model ------------------------------------------------------------------------ */

/* Sorted from the best to the worst. Only next hops of the best rank count. */
enum rank { ALIVE, SPECIAL, FOREIGN, UNSUPPORTED, DOWN, UNRESOLVED };

struct hop {
	bool blackhole;
	struct fpm_hop hop;
};

struct id {
	bool known, absent, is_group;
	uint32_t number;
	struct hop one;
	uint32_t member[HOPS_MAX], n_member;
};

struct entry {
	struct prefix prefix; /* family 0: not in use */
	uint32_t table, nhid, session, n_hops;
	uint8_t rtm_type;
	struct hop hop[HOPS_MAX];
};

struct model {
	struct entry entry[N_ROUTES];
	struct id id[N_IDS];
	uint32_t session;
	bool port_down[N_PORTS];
};

static struct id *
id_find(struct model *m, uint32_t number)
{
	for (unsigned int i = 0; i < N_IDS; i++)
		if (m->id[i].number == number)
			return &m->id[i];
	return NULL;
}

static struct id *
id_get(struct model *m, uint32_t number)
{
	struct id *id = id_find(m, number);

	if (id == NULL)
		id = id_find(m, 0);
	assert_non_null(id);
	id->number = number;
	return id;
}

/* Return true if a route or a group names the id. */
static bool
id_is_named(struct model *m, uint32_t number)
{
	for (unsigned int i = 0; i < N_ROUTES; i++)
		if (m->entry[i].prefix.family != 0 && m->entry[i].nhid == number)
			return true;
	for (unsigned int i = 0; i < N_IDS; i++)
		for (unsigned int k = 0; k < m->id[i].n_member; k++)
			if (m->id[i].number != 0 && m->id[i].member[k] == number)
				return true;
	return false;
}

/* Store the next hops of an id in `out`. Return their number; 0: the id has no content. */
static unsigned int
id_hops(struct model *m, uint32_t number, struct hop out[HOPS_MAX])
{
	const struct id *id = id_find(m, number), *one;
	unsigned int n = 0;

	if (id == NULL || !id->known)
		return 0;
	if (!id->is_group)
		out[n++] = id->one;
	for (unsigned int i = 0; i < id->n_member; i++) {
		one = id_find(m, id->member[i]);
		if (one != NULL && one->known)
			out[n++] = one->one;
	}
	return n;
}

static struct entry *
entry_find(struct model *m, const struct prefix *prefix, uint32_t table)
{
	for (unsigned int i = 0; i < N_ROUTES; i++)
		if (m->entry[i].prefix.family != 0 && m->entry[i].table == table &&
		    prefix_equal(&m->entry[i].prefix, prefix))
			return &m->entry[i];
	return NULL;
}

static void
route_read(struct model *m, const struct fpm_event *ev)
{
	struct entry *e = entry_find(m, &ev->prefix, ev->table);

	if (e != NULL)
		e->prefix.family = 0;
	/* Routes of protocol kernel come from the kernel itself. */
	if (ev->kind == FPM_ROUTE_DEL || ev->protocol == RTPROT_KERNEL)
		return;
	for (e = m->entry; e->prefix.family != 0;)
		assert_ptr_not_equal(++e, m->entry + N_ROUTES);
	*e = (struct entry){.prefix = ev->prefix,
			    .table = ev->table,
			    .nhid = ev->nhid,
			    .session = m->session,
			    .n_hops = ev->n_hops,
			    .rtm_type = ev->rtm_type};
	assert_true(ev->n_hops <= HOPS_MAX);
	for (unsigned int i = 0; i < ev->n_hops; i++)
		e->hop[i].hop = ev->hops[i];
}

static void
nexthop_read(struct model *m, const struct fpm_event *ev)
{
	struct id *id = id_get(m, ev->nhid);

	if (ev->kind == FPM_NEXTHOP_DEL) {
		id->absent = true;
		return;
	}
	*id = (struct id){.known = true, .is_group = ev->is_group, .number = ev->nhid};
	id->one.blackhole = ev->blackhole;
	if (!ev->is_group && ev->n_hops > 0)
		id->one.hop = ev->hops[0];
	assert_true(ev->n_hops <= HOPS_MAX);
	for (unsigned int i = 0; ev->is_group && i < ev->n_hops; i++)
		id->member[id->n_member++] = ev->hops[i].id;
}

static int
event_read(void *arg, const struct fpm_event *ev)
{
	struct model *m = arg;

	if (ev->kind == FPM_ROUTE || ev->kind == FPM_ROUTE_DEL)
		route_read(m, ev);
	else
		nexthop_read(m, ev);
	for (unsigned int i = 0; i < N_IDS; i++)
		if (m->id[i].absent && !id_is_named(m, m->id[i].number))
			m->id[i] = (struct id){0};
	free(ev->hops);
	return 0;
}

/* zebra connects again: routes keep their next hops, ids get a new meaning. */
static void
model_session(struct model *m)
{
	for (unsigned int i = 0; i < N_ROUTES; i++) {
		struct entry *e = &m->entry[i];

		if (e->prefix.family == 0 || e->nhid == 0)
			continue;
		e->n_hops = id_hops(m, e->nhid, e->hop);
		e->nhid = 0;
	}
	memset(m->id, 0, sizeof(m->id));
	m->session++;
}

static void
model_sweep(struct model *m)
{
	for (unsigned int i = 0; i < N_ROUTES; i++)
		if (m->entry[i].session != m->session)
			m->entry[i].prefix.family = 0;
}

/* --- what forwarders do --------------------------------------------------------------- */

/* A set of texts: it has each text once. */
struct texts {
	char text[HASHES][TEXT_MAX];
	unsigned int n;
};

static void
texts_add(struct texts *t, const char *text)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (strcmp(t->text[i], text) == 0)
			return;
	snprintf(t->text[t->n++], TEXT_MAX, "%s", text);
}

static int
text_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

static const char *
texts_join(struct texts *t, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	qsort(t->text, t->n, TEXT_MAX, text_order);
	for (unsigned int i = 0; i < t->n; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i == 0 ? "" : ", ",
				      t->text[i]);
	assert_true(n < size);
	return out;
}

static enum rank
hop_expect(const struct model *m, const struct hop *h, char text[TEXT_MAX])
{
	unsigned int port = h->hop.ifindex - FIRST_PORT;
	unsigned int vrf = h->hop.ifindex - LO; /* 0: lo stands for main */
	char gw[PREFIX_STRLEN];
	int n;

	snprintf(text, TEXT_MAX, "blackhole");
	if (h->blackhole)
		return SPECIAL;
	if (port >= N_PORTS && h->hop.encap == HOP_POP) {
		snprintf(text, TEXT_MAX, "vrf %u", vrf);
		return ALIVE;
	}
	if (port >= N_PORTS) { /* an address of this router */
		snprintf(text, TEXT_MAX, vrf == 0 ? "foreign" : "vrf %u", vrf);
		return vrf == 0 ? FOREIGN : ALIVE;
	}
	snprintf(text, TEXT_MAX, "down");
	if (m->port_down[port])
		return DOWN;
	snprintf(text, TEXT_MAX, "encap");
	if (h->hop.gw_family == 0 && h->hop.encap != HOP_PLAIN)
		return UNSUPPORTED;
	snprintf(text, TEXT_MAX, "onlink@%u", port + 1);
	if (h->hop.gw_family == 0)
		return ALIVE;
	n = snprintf(text, TEXT_MAX, "%s@%u", ipaddr_str(&h->hop.gw, h->hop.gw_family, gw),
		     port + 1);
	for (unsigned int i = 0; i < h->hop.n_labels; i++)
		n += snprintf(text + n, TEXT_MAX - (size_t)n, "%s%u",
			      i == 0 ? " push " : "/", h->hop.label[i]);
	return ALIVE;
}

static void
entry_expect(struct model *m, const struct entry *e, struct texts *out)
{
	struct hop hop[HOPS_MAX];
	unsigned int n = e->n_hops;
	enum rank best = UNRESOLVED, rank;
	char text[TEXT_MAX];

	out->n = 0;
	if (e->rtm_type != RTN_UNICAST) {
		texts_add(out, e->rtm_type == RTN_BLACKHOLE ? "blackhole" : "unreachable");
		return;
	}
	memcpy(hop, e->hop, sizeof(hop));
	if (e->nhid != 0)
		n = id_hops(m, e->nhid, hop);
	for (unsigned int i = 0; i < n; i++) {
		rank = hop_expect(m, &hop[i], text);
		best = rank < best ? rank : best;
	}
	for (unsigned int i = 0; i < n; i++)
		if (hop_expect(m, &hop[i], text) == best)
			texts_add(out, text);
	if (out->n == 0)
		texts_add(out, "unresolved");
}

static uint16_t
vrf_of(uint32_t table)
{
	return table == RIB_TABLE_MAIN ? 0 : (uint16_t)(table / TABLE_STEP);
}

/* Collect the paths of packets with this label, or to the first address of this prefix. */
static void
entry_see(const struct rig *g, const struct entry *e, struct texts *out)
{
	bool label = e->prefix.family == FAMILY_LABEL;
	uint32_t group =
		label ? g->fib->label[get_be32(e->prefix.addr.octet) & (LABELS_ALL - 1)]
		      : 0;
	char text[TEXT_MAX];

	out->n = 0;
	for (uint32_t i = 0; i < HASHES; i++) {
		fib_path path =
			label ? fib_group_path(g->fib, group, i << 26)
			      : fib_resolve(g->fib, vrf_of(e->table), e->prefix.family,
					    &e->prefix.addr, i << 26);

		if (path_kind(path) == PATH_VRF)
			snprintf(text, sizeof(text), "vrf %u", path_index(path));
		else
			rig_path_text(g, path, text, sizeof(text));
		texts_add(out, text);
		if (label && !group_word_is_block(g->fib->group[group]))
			return;
	}
}

/* Return true if a longer prefix of the same table covers the first address of `e`. */
static bool
entry_is_covered(const struct model *m, const struct entry *e)
{
	for (unsigned int i = 0; i < N_ROUTES; i++) {
		const struct entry *o = &m->entry[i];

		if (o->prefix.family == e->prefix.family && o->table == e->table &&
		    o->prefix.len > e->prefix.len &&
		    prefix_covers(&o->prefix, &e->prefix.addr))
			return true;
	}
	return false;
}

/*
 * Count the labels in force. Most of the table is 0, and memcmp() is fast with ASan, too.
 */
static unsigned int
labels_in_fib(const struct fib *fib)
{
	static const uint32_t none[1024];
	unsigned int n = 0;

	for (uint32_t first = 0; first < LABELS_ALL; first += 1024) {
		if (memcmp((const void *)&fib->label[first], none, sizeof(none)) == 0)
			continue;
		for (uint32_t i = 0; i < 1024; i++)
			n += fib->label[first + i] != 0;
	}
	return n;
}

/* Compare all routes. Return how many of them were labels. */
static unsigned int
assert_rig_is(struct rig *g, struct model *m, const char *where)
{
	static struct texts want, got;
	static char wanted[2048], gotten[2048], name[PREFIX_STRLEN];
	unsigned int labels = 0, in_fib;

	for (unsigned int i = 0; i < N_ROUTES; i++) {
		const struct entry *e = &m->entry[i];

		if (e->prefix.family == 0 ||
		    (e->prefix.family != FAMILY_LABEL && entry_is_covered(m, e)))
			continue;
		labels += e->prefix.family == FAMILY_LABEL;
		entry_expect(m, e, &want);
		entry_see(g, e, &got);
		texts_join(&want, wanted, sizeof(wanted));
		texts_join(&got, gotten, sizeof(gotten));
		if (strcmp(wanted, gotten) != 0)
			fail_msg("%s: %s table %u has \"%s\", expected \"%s\"", where,
				 prefix_str(&e->prefix, name), e->table, gotten, wanted);
	}
	in_fib = labels_in_fib(g->fib);
	if (in_fib != labels)
		fail_msg("%s: %u labels are in force, expected %u", where, in_fib, labels);
	rib_must_be_sound(g);
	return labels;
}

/* --- streams -------------------------------------------------------------------------- */

/* Counts of all captures, so that no kind can vanish unnoticed. */
static unsigned int n_sections, n_labels;

static struct rig *
rig_of_captures(void)
{
	struct rig *g = rig_new();

	rig_vrf(g, 1, TABLE_STEP, "red");
	rig_vrf(g, 2, 2 * TABLE_STEP, "blue");
	rig_link(g, LO, 0, true);
	for (uint16_t i = 0; i < 2; i++)
		rig_link_of_vrf(g, FIRST_VRF + i, i + 1, true);
	for (uint16_t i = 0; i < N_PORTS; i++)
		rig_link(g, FIRST_PORT + i, i + 1, true);
	rig_settle(g);
	return g;
}

struct run {
	struct stream stream;
	struct model *model;
	char section[128]; /* "": none yet */
	bool in_pieces;
};

static void
section_end(struct run *run)
{
	struct rig *g = run->stream.g;

	if (run->section[0] == '\0')
		return;
	rig_settle(g);
	n_labels += assert_rig_is(g, run->model, run->section);
	n_sections++;
	/* No message comes when a link changes: a next hop by a dead link is not used. */
	for (uint16_t i = 0; i < N_PORTS; i++) {
		for (unsigned int down = 0; down < 2; down++) {
			run->model->port_down[i] = down == 0;
			rig_link(g, FIRST_PORT + i, i + 1, down != 0);
			rig_settle(g);
			assert_rig_is(g, run->model, run->section);
		}
	}
}

static void
section_begin(struct run *run, const char *file, const char *title)
{
	section_end(run);
	snprintf(run->section, sizeof(run->section), "%s %s", file, title);
	/*
	 * A section "... alone" is a part of a replay. It lacks ids of the session, so it
	 * is no new session here.
	 */
	if (strstr(title, "replay") == NULL || strstr(title, "alone") != NULL)
		return;
	stream_close(&run->stream);
	stream_open(&run->stream, run->stream.g);
	model_session(run->model);
}

/* Feed a frame, whole or in two pieces with a round of the RIB after each. */
static void
frame_feed(struct run *run, const uint8_t *octet, size_t len)
{
	size_t cut = run->in_pieces ? (size_t)random() % len : 0;
	struct fpm_decoded decoded = {0};
	struct fpm_frame f;

	assert_int_equal(fpm_frame_next(octet, len, &f), len);
	assert_int_equal(fpm_decode(&f, event_read, run->model, &decoded), 0);
	assert_int_equal(stream_feed(&run->stream, octet, cut), 0);
	if (run->in_pieces && random() % 2 == 0)
		rig_go(run->stream.g);
	assert_int_equal(stream_feed(&run->stream, octet + cut, len - cut), 0);
	if (!run->in_pieces || random() % 2 == 0)
		rig_go(run->stream.g);
	if (run->in_pieces && random() % 8 == 0)
		rig_settle(run->stream.g);
}

static void
capture_run(const char *path, bool in_pieces)
{
	static struct model model;
	struct run run = {.model = &model, .in_pieces = in_pieces};
	FILE *file = fopen(path, "r");
	uint8_t octet[FRAME_MAX];
	char *line = NULL;
	size_t size = 0, len;

	memset(&model, 0, sizeof(model));
	model.session = 1;
	stream_open(&run.stream, rig_of_captures());
	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '=')
			section_begin(&run, strrchr(path, '/') + 1, line + 2);
		if (strchr("#=\t", line[0]) != NULL)
			continue;
		for (len = 0; len < sizeof(octet); len++)
			if (sscanf(line + 2 * len, "%2hhx", &octet[len]) != 1)
				break;
		frame_feed(&run, octet, len);
	}
	section_end(&run);
	/* A last replay without any route removes all of them. */
	model_session(run.model);
	model_sweep(run.model);
	stream_withdraw_all(run.stream.g);
	assert_int_equal(assert_rig_is(run.stream.g, run.model, path), 0);
	stream_close(&run.stream);
	rig_free(run.stream.g);
	free(line);
	fclose(file);
}

static void
captures_run(bool in_pieces)
{
	glob_t files;

	n_sections = n_labels = 0;
	assert_int_equal(glob(CAPTURES, 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		capture_run(files.gl_pathv[i], in_pieces);
	print_message("%zu streams, %u sections, %u labels\n", files.gl_pathc, n_sections,
		      n_labels);
	assert_true(files.gl_pathc >= 7 && n_sections > 50 && n_labels > 200);
	globfree(&files);
}

static void
each_section_leads_to_the_paths_of_its_events(void **state)
{
	captures_run(false);
}

static void
in_random_pieces_it_is_the_same(void **state)
{
	captures_run(true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_section_leads_to_the_paths_of_its_events),
		cmocka_unit_test(in_random_pieces_it_is_the_same),
	};

	srandom((unsigned int)rnd_seeded("rib label streams").s);
	log_set_level(LOG_LEVEL_WARN);
	return cmocka_run_group_tests_name("rib label streams", tests, NULL, NULL);
}
