/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl audit: compare zebra, the kernel, the RIB and the FIB, prefix by prefix and next
 * hop by next hop. The daemon compares its RIB with its FIB (rib/audit.c). This file
 * compares zebra's table with the RIB's routes of zebra, in force or hidden by a route of
 * the kernel, and then the route that the kernel would use for each prefix with the one in
 * force. All sides change while they are read, so each difference is looked up again by prefix, until
 * both sides agree or have differed ROUNDS times. VRFs with a FIB are compared like main; a
 * VRF with routes only in zebra is a difference. Memory: 48 octets per route and side.
 */
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/kernel_table.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define ROUNDS   3
#define PAUSE_MS 300
/* differences that are looked up again; more show a broken channel */
#define CHECK_MAX  200
#define DETAIL_MAX 20

struct entry {
	struct prefix prefix;
	uint32_t vrf;  /* index in audit.vrfs, from 1; 0: table main */
	uint64_t hops; /* hash of the text of the next hops */
	uint64_t rank; /* of several routes of a prefix, the kernel uses the lowest */
	bool of_zebra; /* of the RIB: zebra's route is in force */
};

/* The side with which the RIB is compared. */
enum peer { PEER_ZEBRA, PEER_KERNEL, N_PEERS };

static const char *const peer_name[N_PEERS] = {"zebra", "kernel"};

struct comparison {
	size_t n_rib, n_peer;
	unsigned long long n_found, n_undecided;
	unsigned long long n_not_obeyed; /* kernel: for some sources or one TOS only */
	bool done;
};

struct table {
	struct entry *entry;
	size_t n, cap;
};

#define UNDECIDED 0 /* hash of ZEBRA_UNDECIDED; no other text has this hash */

struct audit {
	const char *socket, *vtysh;
	bool json, repair;
	char from[8];   /* routes.from of the daemon */
	enum peer peer; /* the comparison that runs */
	struct comparison with[N_PEERS];
	struct table rib, other; /* of that comparison */
	json_t *vrfs;            /* names; those from n_fibs on exist only in zebra */
	json_t *vrf_tables;      /* their tables, up to n_fibs */
	size_t n_fibs;
	uint32_t asking;     /* VRF of the current query, as struct entry.vrf */
	json_t *differences; /* rows for --json */
	unsigned long long n_fib;
	json_t *checked; /* the daemon's last row */
	/* The route that was looked up: its next hops in the RIB and the other side. */
	char *one, *theirs; /* NULL: no route */
	uint64_t theirs_rank;
};

/* --- tables ----------------------------------------------------------------------------- */

static bool
hops_are_undecided(const char *hops)
{
	return hops != NULL && strcmp(hops, ZEBRA_UNDECIDED) == 0;
}

/* Return the name of a VRF; NULL: table main. */
static const char *
vrf_name(const struct audit *a, uint32_t vrf)
{
	return vrf == 0 ? NULL : json_string_value(json_array_get(a->vrfs, vrf - 1));
}

/*
 * Return the number of a VRF, and add it if it is new. zebra's routes come VRF by VRF, so
 * the search begins at the last one.
 */
static uint32_t
vrf_number(struct audit *a, const char *name)
{
	static uint32_t last = 1;
	uint32_t n = (uint32_t)json_array_size(a->vrfs);

	if (name == NULL)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (last - 1 + i) % n + 1;

		if (strcmp(vrf_name(a, at), name) == 0)
			return last = at;
	}
	json_array_append_new(a->vrfs, json_string_nocheck(name)); /* as zebra spells it */
	return last = n + 1;
}

static struct entry *
table_add(struct table *t, uint32_t vrf, const struct prefix *p, struct hops_text *w)
{
	char *text = hops_join(w);

	if (t->n == t->cap) {
		t->cap = t->cap == 0 ? 4096 : t->cap * 2;
		t->entry = realloc(t->entry, t->cap * sizeof(*t->entry));
		if (t->entry == NULL)
			abort();
	}
	t->entry[t->n++] = (struct entry){
		.prefix = *p,
		.vrf = vrf,
		.hops = hops_are_undecided(text) ? UNDECIDED : text_hash(text) | 1};
	free(text);
	return &t->entry[t->n - 1];
}

static int
prefix_order(const void *a, const void *b)
{
	const struct prefix *p = a, *q = b;
	int rc = p->family - q->family;

	if (rc == 0)
		rc = memcmp(p->addr.octet, q->addr.octet, sizeof(p->addr.octet));
	return rc != 0 ? rc : p->len - q->len;
}

static int
entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->vrf != y->vrf)
		return x->vrf < y->vrf ? -1 : 1;
	return prefix_order(&x->prefix, &y->prefix);
}

static int
entry_rank_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int rc = entry_order(a, b);

	return rc != 0 || x->rank == y->rank ? rc : x->rank < y->rank ? -1 : 1;
}

/* Sort the entries, and keep the one of lowest rank for each prefix. */
static void
table_sort(struct table *t)
{
	size_t kept = 0;

	if (t->n == 0)
		return; /* qsort(NULL, 0) is undefined */
	qsort(t->entry, t->n, sizeof(struct entry), entry_rank_order);
	for (size_t i = 1; i < t->n; i++)
		if (entry_order(&t->entry[kept], &t->entry[i]) != 0)
			t->entry[++kept] = t->entry[i];
	t->n = kept + 1;
}

static void
table_clear(struct table *t)
{
	free(t->entry);
	*t = (struct table){0};
}

static void
audit_on_zebra(const char *vrf, const struct prefix *p, struct hops_text *w, void *ctx)
{
	struct audit *a = ctx;

	table_add(&a->other, vrf_number(a, vrf), p, w);
}

/* --- the kernel's side ------------------------------------------------------------------ */

/* Return the number of the VRF of a table, 0 for main, or UINT32_MAX if it has no FIB. */
static uint32_t
vrf_of_table(const struct audit *a, uint32_t table)
{
	if (table == 254)
		return 0;
	for (size_t i = 0; i < a->n_fibs; i++)
		if (json_integer_value(json_array_get(a->vrf_tables, i)) == table)
			return (uint32_t)i + 1;
	return UINT32_MAX;
}

/* Return true if the daemon takes the kernel's word for the route. */
static bool
kernel_route_counts(struct audit *a, const struct kernel_route *r)
{
	if (vrf_of_table(a, r->table) == UINT32_MAX)
		return false;
	if (r->by_source || r->by_tos) {
		a->with[PEER_KERNEL].n_not_obeyed++;
		return false;
	}
	return strcmp(a->from, "fpm") != 0 || r->protocol == RTPROT_KERNEL;
}

static uint64_t
kernel_route_rank(const struct audit *a, const struct kernel_route *r)
{
	/* The first one of equal metrics counts; `n` grows with each line. */
	return (r->is_local ? 0 : 1ull << 63) | (uint64_t)r->metric << 31 |
	       (uint64_t)r->preference << 29 | (a->other.n & 0x1fffffff);
}

static void
audit_on_kernel(const struct kernel_route *r, void *ctx)
{
	struct audit *a = ctx;
	struct hops_text w = r->hops;
	struct entry *e;

	if (!kernel_route_counts(a, r))
		return;
	e = table_add(&a->other, vrf_of_table(a, r->table), &r->prefix, &w);
	e->rank = kernel_route_rank(a, r);
	if (r->is_down)
		e->hops = UNDECIDED;
}

/* Keep the best route of the VRF that is asked about. */
static void
audit_on_kernel_one(const struct kernel_route *r, void *ctx)
{
	struct audit *a = ctx;
	struct hops_text w = r->hops;
	uint64_t rank = kernel_route_rank(a, r);

	if (!kernel_route_counts(a, r) || vrf_of_table(a, r->table) != a->asking ||
	    (a->theirs != NULL && rank >= a->theirs_rank))
		return;
	free(a->theirs);
	a->theirs = r->is_down ? strdup(ZEBRA_UNDECIDED) : hops_join(&w);
	a->theirs_rank = rank;
}

/* --- the RIB's side --------------------------------------------------------------------- */

/*
 * Collect the next hops of a row of `show routes` in the spelling of hops_text.h. Returns
 * false if the route is in no FIB.
 */
static bool
row_hops(const struct audit *a, const json_t *row, struct hops_text *w)
{
	const json_t *hop;
	size_t i;

	hops_reset(w);
	if (a->asking == 0 && row_int(row, "table") != 254)
		return false;
	json_array_foreach (json_object_get(row, "nexthops"), i, hop)
		hops_add(w, row_has(hop, "via") ? row_str(hop, "via") : NULL,
			 row_str(hop, "dev"), row_int(hop, "weight"));
	if (w->n == 0)
		hops_add_kind(w, row_str(row, "state")); /* blackhole, unresolved, ... */
	return true;
}

static bool
audit_on_rib(const json_t *row, const char *text, void *ctx)
{
	static struct hops_text w;
	struct audit *a = ctx;
	struct prefix p;

	if (row_hops(a, row, &w) && prefix_parse(row_str(row, "prefix"), &p, NULL) == 0)
		table_add(&a->rib, a->asking, &p, &w)->of_zebra =
			strcmp(row_str(row, "source"), "zebra") == 0;
	hops_reset(&w);
	return true;
}

static bool
audit_on_route(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	struct hops_text w = {0};

	if (row_hops(a, row, &w)) {
		free(a->one);
		a->one = hops_join(&w);
	}
	hops_free(&w);
	return true;
}

/* --- questions to the daemon ------------------------------------------------------------ */

static int
audit_ask(struct audit *a, json_t *request,
	  bool (*on_row)(const json_t *row, const char *text, void *ctx))
{
	int rc = conn_ask(a->socket, request, on_row, a);

	json_decref(request);
	return rc;
}

static bool
audit_on_vrf(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	/* Names in `row` are made safe for a terminal; requests need the original. */
	json_t *as_it_came = json_loads(text, 0, NULL);

	json_array_append_new(a->vrfs, json_string(row_str(as_it_came, "name")));
	json_array_append_new(a->vrf_tables, json_integer(row_int(row, "table")));
	json_decref(as_it_came);
	a->n_fibs++;
	return true;
}

/* Make a request for the routes of the current VRF. */
static json_t *
routes_request(const struct audit *a)
{
	json_t *request = json_pack("{s:s}", "show", "routes");

	if (a->asking != 0)
		json_object_set_new(request, "vrf", json_string(vrf_name(a, a->asking)));
	if (a->peer == PEER_ZEBRA)
		json_object_set_new(request, "of", json_string("zebra"));
	return request;
}

/* Return true if zebra relays routes of the kernel, and the daemon takes them from it. */
static bool
kernels_come_by_zebra(const struct audit *a)
{
	return strcmp(a->from, "fpm") == 0;
}

/* Read zebra's routes of table main, and of VRFs if there are some. */
static int
audit_ask_zebra(struct audit *a)
{
	long long least, most;

	/* A short query finds a zebra that hangs; the whole table may take its time. */
	if (zebra_count(a->vtysh, 4, true, &least, &most) < 0)
		return CTL_NO_DAEMON;
	for (uint8_t family = 4; family <= 6; family += 2)
		if (zebra_table(a->vtysh, a->n_fibs > 0, kernels_come_by_zebra(a), family,
				audit_on_zebra, a) < 0)
			return CTL_NO_DAEMON;
	return CTL_OK;
}

static int
audit_ask_kernel(struct audit *a)
{
	for (uint8_t family = 4; family <= 6; family += 2)
		if (kernel_table(family, NULL, audit_on_kernel, a) < 0)
			return CTL_NO_DAEMON;
	return CTL_OK;
}

/* Read the routes of the RIB. */
static int
audit_ask_rib(struct audit *a)
{
	int rc = CTL_OK;

	for (a->asking = 0; rc == CTL_OK && a->asking <= a->n_fibs; a->asking++) {
		json_t *request = routes_request(a);

		if (a->asking == 0)
			json_object_set_new(request, "all_tables", json_false());
		rc = audit_ask(a, request, audit_on_rib);
	}
	return rc;
}

static bool
audit_on_fib(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;
	const char *what = row_str(row, "what");

	if (strcmp(what, "checked") == 0) {
		json_decref(a->checked);
		a->checked = json_deep_copy(row);
		return true;
	}
	if (a->n_fib++ < DETAIL_MAX && !a->json) {
		char where[32] = "";

		if (row_has(row, "table") && row_int(row, "table") != 254)
			snprintf(where, sizeof(where),
				 "table %lld: ", row_int(row, "table"));
		if (strcmp(what, "group") == 0)
			line_print(4,
				   "%sDIFFERS next hops of group %lld: forwarders use "
				   "others than the RIB has",
				   where, row_int(row, "group"));
		else if (strcmp(what, "table") == 0)
			line_print(4,
				   "%sDIFFERS %s: group %lld in the RIB, %lld in the FIB",
				   where, row_str(row, "prefix"), row_int(row, "group"),
				   row_int(row, "found"));
		else
			line_print(
				4,
				"%sDIFFERS %s: a packet for %s takes group %lld, not %lld",
				where, row_str(row, "prefix"), row_str(row, "address"),
				row_int(row, "found"), row_int(row, "group"));
	}
	if (a->json)
		json_array_append_new(a->differences, json_deep_copy(row));
	return true;
}

/* --- the verdict ------------------------------------------------------------------------ */

static const char *
hops_or_none(const char *hops)
{
	return hops != NULL ? hops : "no route";
}

static void
audit_report(struct audit *a, uint32_t vrf, const struct prefix *p)
{
	const char *peer = peer_name[a->peer];
	const char *name = vrf_name(a, vrf);
	char text[PREFIX_STRLEN], shown[IFNAMSIZ] = "";

	if (a->with[a->peer].n_found++ >= DETAIL_MAX && !a->json)
		return;
	if (name != NULL) {
		snprintf(shown, sizeof(shown), "%s", name);
		log_harmless(shown);
		name = shown;
	}
	if (a->json)
		json_array_append_new(a->differences,
				      json_pack("{s:s, s:s?, s:s, s:s?, s:s?}", "what",
						peer, "vrf", name, "prefix",
						prefix_str(p, text), peer, a->theirs, "rib",
						a->one));
	else
		line_print(4, "%s%s%sDIFFERS %s: %s%s has %s, the dataplane has %s",
			   name == NULL ? "" : "VRF ", name == NULL ? "" : name,
			   name == NULL ? "" : ": ", prefix_str(p, text),
			   a->peer == PEER_KERNEL ? "the " : "", peer,
			   hops_or_none(a->theirs), hops_or_none(a->one));
}

/* Look up one prefix on the other side. Returns 0, or below it when there is no answer. */
static int
audit_ask_theirs(struct audit *a, const struct prefix *p)
{
	free(a->theirs);
	a->theirs = NULL;
	if (a->peer == PEER_ZEBRA)
		return zebra_prefix(a->vtysh, vrf_name(a, a->asking), p,
				    kernels_come_by_zebra(a), &a->theirs);
	return kernel_table(p->family, p, audit_on_kernel_one, a);
}

/* Look up one prefix in the RIB. */
static int
audit_ask_one(struct audit *a, const struct prefix *p)
{
	char text[PREFIX_STRLEN];
	json_t *request;

	free(a->one);
	a->one = NULL;
	if (a->asking > a->n_fibs)
		return CTL_OK;
	request = routes_request(a);
	json_object_set_new(request, "prefix", json_string(prefix_str(p, text)));
	json_object_set_new(request, "longest", json_false());
	return audit_ask(a, request, audit_on_route);
}

/* Look up one prefix on both sides again. Returns 1 same, 0 different, -1 no answer. */
static int
audit_settle(struct audit *a, uint32_t vrf, const struct prefix *p)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	bool same = false;

	a->asking = vrf;
	for (int round = 0; round < ROUNDS && !same; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		if (audit_ask_theirs(a, p) < 0 || audit_ask_one(a, p) != CTL_OK)
			return -1;
		same = hops_are_undecided(a->theirs) ||
		       strcmp(hops_or_none(a->theirs), hops_or_none(a->one)) == 0;
	}
	if (!same)
		audit_report(a, vrf, p);
	return same;
}

/* Return true if the difference says nothing: one side has not decided, or need not have it. */
static bool
difference_is_expected(struct audit *a, const struct entry *rib, const struct entry *other)
{
	if (other != NULL && other->hops == UNDECIDED) {
		a->with[a->peer].n_undecided++;
		return true;
	}
	/* zebra need not install its routes in the kernel; its own table was compared. */
	return a->peer == PEER_KERNEL && other == NULL && rib->of_zebra;
}

/* Compare the tables. Returns 0, or -1 when a side stopped answering. */
static int
audit_compare(struct audit *a)
{
	struct comparison *with = &a->with[a->peer];
	size_t r = 0, z = 0, asked = 0;

	table_sort(&a->rib);
	table_sort(&a->other);
	with->n_rib = a->rib.n;
	with->n_peer = a->other.n;
	with->done = true;
	while (r < a->rib.n || z < a->other.n) {
		const struct entry *in_rib = r < a->rib.n ? &a->rib.entry[r] : NULL;
		const struct entry *other = z < a->other.n ? &a->other.entry[z] : NULL;
		int order = in_rib == NULL  ? 1
			    : other == NULL ? -1
					    : entry_order(in_rib, other);
		const struct entry *e = order <= 0 ? in_rib : other;

		r += order <= 0;
		z += order >= 0;
		if (difference_is_expected(a, order <= 0 ? in_rib : NULL,
					   order >= 0 ? other : NULL))
			continue;
		if (order == 0 && in_rib->hops == other->hops)
			continue;
		if (asked++ >= CHECK_MAX)
			with->n_found++;
		else if (audit_settle(a, e->vrf, &e->prefix) < 0)
			return -1;
		if (asked == CHECK_MAX && with->n_found == 0) {
			fprintf(stderr,
				"fpmctl: the table of %s cannot be parsed, or changes too "
				"fast to be compared\n",
				a->peer == PEER_ZEBRA ? "vtysh" : "`ip route`");
			return -1;
		}
	}
	if (asked > CHECK_MAX && !a->json)
		printf("%zu more differ%s (not looked up again)\n", asked - CHECK_MAX,
		       noun((long long)(asked - CHECK_MAX), "s", ""));
	return 0;
}

/* Read both sides and compare them. */
static int
audit_with(struct audit *a, enum peer peer)
{
	int rc;

	a->peer = peer;
	a->asking = 0;
	rc = peer == PEER_ZEBRA ? audit_ask_zebra(a) : audit_ask_kernel(a);
	if (rc == CTL_OK)
		rc = audit_ask_rib(a);
	if (rc == CTL_OK && audit_compare(a) < 0)
		rc = CTL_NO_DAEMON;
	table_clear(&a->rib);
	table_clear(&a->other);
	return rc;
}

static void
audit_conclude(struct audit *a, double seconds)
{
	const struct comparison *z = &a->with[PEER_ZEBRA], *k = &a->with[PEER_KERNEL];
	unsigned long long all = z->n_found + k->n_found + a->n_fib;
	long long prefixes = row_int(a->checked, "prefixes"),
		  lookups = row_int(a->checked, "lookups"),
		  groups = row_int(a->checked, "groups");

	if (a->json) {
		json_t *out = json_pack(
			"{s:b, s:I, s:I, s:I, s:I, s:I, s:O, s:O, s:f}", "equal", all == 0,
			"zebra_routes", (json_int_t)z->n_peer, "undecided",
			(json_int_t)z->n_undecided, "rib_routes", (json_int_t)z->n_rib,
			"kernel_prefixes", (json_int_t)k->n_peer, "kernel_not_obeyed",
			(json_int_t)k->n_not_obeyed, "fib", a->checked, "differences",
			a->differences, "seconds", seconds);

		json_print(out);
		json_decref(out);
		return;
	}
	if (all > DETAIL_MAX)
		printf("... and more; --json lists all\n");
	if (z->done) {
		printf("zebra   %zu route%s", z->n_peer, plural((long long)z->n_peer));
		if (json_array_size(a->vrfs) > 0)
			printf(" in table main and %zu VRF%s", json_array_size(a->vrfs),
			       plural((long long)json_array_size(a->vrfs)));
		if (z->n_undecided > 0)
			printf(", %llu of them refused by the kernel or not installed yet: "
			       "not compared",
			       z->n_undecided);
		printf("\n");
	} else {
		printf("zebra   not compared: %s\n",
		       strcmp(a->from, "kernel") == 0
			       ? "all routes come from the kernel (routes.from)"
			       : "it was never connected, and does not answer");
	}
	printf("kernel  %zu prefix%s", k->n_peer, noun((long long)k->n_peer, "", "es"));
	if (k->n_undecided > 0)
		printf(", %llu of them on links without a carrier: not compared",
		       k->n_undecided);
	if (k->n_not_obeyed > 0)
		printf("; %llu route%s for some sources or one TOS only: not compared",
		       k->n_not_obeyed, plural((long long)k->n_not_obeyed));
	printf("\n"
	       "RIB     %zu route%s of zebra's: %llu differ%s; "
	       "%zu prefix%s beside the kernel's: %llu differ%s\n"
	       "FIB     %lld %s, %lld lookup%s, %lld group%s of next hops: %llu differ%s\n"
	       "%s (%.1f s)\n",
	       z->n_rib, plural((long long)z->n_rib), z->n_found,
	       noun((long long)z->n_found, "s", ""), k->n_rib,
	       noun((long long)k->n_rib, "", "es"), k->n_found,
	       noun((long long)k->n_found, "s", ""), prefixes,
	       noun(prefixes, "prefix", "prefixes"), lookups, plural(lookups), groups,
	       plural(groups), a->n_fib, noun((long long)a->n_fib, "s", ""),
	       all == 0 ? "Equal." : "NOT equal.", seconds);
}

static bool
audit_on_version(const json_t *row, const char *text, void *ctx)
{
	struct audit *a = ctx;

	snprintf(a->from, sizeof(a->from), "%s", row_str(row, "routes_from"));
	return true;
}

static bool
audit_on_fpm(const json_t *row, const char *text, void *ctx)
{
	*(long long *)ctx = row_int(row, "generation");
	return true;
}

/*
 * Return true if there is a zebra to compare with: not if all routes come from the kernel,
 * nor if zebra was never connected and does not answer, as on a router without FRR.
 */
static bool
audit_has_zebra(struct audit *a)
{
	long long generation = 0, least, most;
	json_t *request;

	if (strcmp(a->from, "kernel") == 0)
		return false;
	request = json_pack("{s:s}", "show", "fpm");
	(void)conn_ask(a->socket, request, audit_on_fpm, &generation);
	json_decref(request);
	return generation > 0 || zebra_count(a->vtysh, 4, false, &least, &most) == 0;
}

/*
 * Compare zebra, the kernel, RIB and FIB, and print the differences; with `repair` repair them.
 * Returns an exit code: CTL_DIFFERENT when anything differed.
 */
static int
audit_run(const struct options *opt, int n, char **word)
{
	struct audit a = {.socket = opt->socket, .json = opt->json, .repair = opt->repair};
	double start = monotonic_s();
	unsigned long long n_found;
	int rc;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_audit);
	a.differences = json_array();
	a.checked = json_object();
	a.vrfs = json_array();
	a.vrf_tables = json_array();
	rc = audit_ask(&a, json_pack("{s:s}", "show", "version"), audit_on_version);
	/* Enter the network namespace of the TAPs: `ip` must show its tables. */
	if (rc == CTL_OK)
		a.vtysh = zebra_vtysh_of(opt->socket);
	if (rc == CTL_OK && a.vtysh == NULL)
		rc = CTL_NO_DAEMON;
	if (opt->vtysh != NULL)
		a.vtysh = opt->vtysh;
	if (rc == CTL_OK)
		rc = audit_ask(
			&a, json_pack("{s:s, s:b}", "show", "audit", "repair", opt->repair),
			audit_on_fib);
	if (rc == CTL_OK)
		rc = audit_ask(&a, json_pack("{s:s}", "show", "vrfs"), audit_on_vrf);
	if (rc == CTL_OK && audit_has_zebra(&a))
		rc = audit_with(&a, PEER_ZEBRA);
	if (rc == CTL_OK)
		rc = audit_with(&a, PEER_KERNEL);
	n_found = a.with[PEER_ZEBRA].n_found + a.with[PEER_KERNEL].n_found;
	if (rc == CTL_OK) {
		audit_conclude(&a, monotonic_s() - start);
		rc = n_found + a.n_fib == 0 ? CTL_OK : CTL_DIFFERENT;
	}
	if (rc == CTL_DIFFERENT && opt->repair && n_found > 0) {
		rc = audit_ask(&a, json_pack("{s:s}", "do", "replay"), NULL);
		if (rc == CTL_OK)
			rc = CTL_DIFFERENT;
		if (!opt->json && rc == CTL_DIFFERENT)
			puts("zebra was asked for a replay, which begins within 3 s. "
			     "Forwarding goes on meanwhile.");
	}
	json_decref(a.vrfs);
	json_decref(a.differences);
	json_decref(a.checked);
	json_decref(a.vrf_tables);
	free(a.one);
	free(a.theirs);
	return rc;
}

static void
audit_help(FILE *out)
{
	fputs("      --repair         write the FIB again, and ask zebra for a replay\n"
	      "      --vtysh COMMAND  command that asks zebra, such as 'vtysh -N r1'; "
	      "default:\n"
	      "                       for the zebra in the network namespace of the TAPs\n"
	      "      If zebra is silent for 10 s, it counts as away: exit code 1.\n"
	      "      audit enters that namespace, so run it as root.\n",
	      out);
}

const struct command cmd_audit = {
	.name = "audit",
	.words = "[--repair] [--vtysh COMMAND]",
	.text = "compare the routes of zebra, the kernel, the RIB and the FIB",
	.run = audit_run,
	.options = OPT_JSON | OPT_REPAIR | OPT_VTYSH,
	.help = audit_help,
};
