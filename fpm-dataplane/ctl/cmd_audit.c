/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl audit: compare zebra, the RIB and the FIB, prefix by prefix and next hop by next
 * hop. The daemon compares its RIB with its FIB (rib/audit.c). This file compares zebra's
 * table with the RIB. Both change while they are read, so each difference is looked up
 * again by prefix, until both sides agree or have differed ROUNDS times. VRFs with a FIB
 * are compared like main; a VRF with routes only in zebra is a difference. Memory: 32
 * octets per route and side.
 */
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
};

struct table {
	struct entry *entry;
	size_t n, cap;
};

#define UNDECIDED 0 /* hash of ZEBRA_UNDECIDED; no other text has this hash */

struct audit {
	const char *socket, *vtysh;
	bool json, repair;
	struct table rib, zebra;
	json_t *vrfs; /* names; those from n_fibs on exist only in zebra */
	size_t n_fibs;
	uint32_t asking;     /* VRF of the current query, as struct entry.vrf */
	json_t *differences; /* rows for --json */
	unsigned long long n_found, n_fib, n_undecided;
	json_t *checked; /* the daemon's last row */
	char *one;       /* next hops of the route that was looked up; NULL: no route */
};

/* --- tables ----------------------------------------------------------------------------- */

static uint64_t
text_hash(const char *text)
{
	uint64_t h = 1;

	for (; *text != '\0'; text++)
		h = mix64(h + (unsigned char)*text);
	return h;
}

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

static void
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

static void
audit_on_zebra(const char *vrf, const struct prefix *p, struct hops_text *w, void *ctx)
{
	struct audit *a = ctx;

	table_add(&a->zebra, vrf_number(a, vrf), p, w);
}

/*
 * Collect the next hops of a row of `show routes` in the spelling of zebra.h. Returns
 * false if the route is not zebra's.
 */
static bool
row_hops(const struct audit *a, const json_t *row, struct hops_text *w)
{
	const json_t *hop;
	size_t i;

	hops_reset(w);
	if (strcmp(row_str(row, "source"), "zebra") != 0 ||
	    (a->asking == 0 && row_int(row, "table") != 254))
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
		table_add(&a->rib, a->asking, &p, &w);
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
	return request;
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
		if (zebra_table(a->vtysh, a->n_fibs > 0, family, audit_on_zebra, a) < 0)
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
audit_report(struct audit *a, uint32_t vrf, const struct prefix *p, const char *zebra,
	     const char *rib)
{
	const char *name = vrf_name(a, vrf);
	char text[PREFIX_STRLEN], shown[IFNAMSIZ] = "";

	if (a->n_found++ >= DETAIL_MAX && !a->json)
		return;
	if (name != NULL) {
		snprintf(shown, sizeof(shown), "%s", name);
		log_harmless(shown);
		name = shown;
	}
	if (a->json)
		json_array_append_new(a->differences,
				      json_pack("{s:s, s:s?, s:s, s:s?, s:s?}", "what",
						"zebra", "vrf", name, "prefix",
						prefix_str(p, text), "zebra", zebra, "rib",
						rib));
	else
		line_print(4, "%s%s%sDIFFERS %s: zebra has %s, the dataplane has %s",
			   name == NULL ? "" : "VRF ", name == NULL ? "" : name,
			   name == NULL ? "" : ": ", prefix_str(p, text),
			   hops_or_none(zebra), hops_or_none(rib));
}

/* Look up one prefix on both sides again. Returns 1 same, 0 different, -1 no answer. */
static int
audit_settle(struct audit *a, uint32_t vrf, const struct prefix *p)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	char text[PREFIX_STRLEN], *zebra = NULL;
	bool same = false;
	int rc;

	a->asking = vrf;
	for (int round = 0; round < ROUNDS && !same; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		free(zebra);
		free(a->one);
		a->one = NULL;
		json_t *request = routes_request(a);

		if (zebra_prefix(a->vtysh, vrf_name(a, vrf), p, &zebra) < 0) {
			json_decref(request);
			return -1;
		}
		json_object_set_new(request, "prefix", json_string(prefix_str(p, text)));
		json_object_set_new(request, "longest", json_false());
		rc = vrf > a->n_fibs ? CTL_OK : audit_ask(a, request, audit_on_route);
		if (vrf > a->n_fibs)
			json_decref(request);
		if (rc != CTL_OK) {
			free(zebra);
			return -1;
		}
		same = hops_are_undecided(zebra) ||
		       strcmp(hops_or_none(zebra), hops_or_none(a->one)) == 0;
	}
	if (!same)
		audit_report(a, vrf, p, zebra, a->one);
	free(zebra);
	return same;
}

/* Compare the tables. Returns 0, or -1 when a side stopped answering. */
static int
audit_compare(struct audit *a)
{
	size_t r = 0, z = 0, asked = 0;

	/* qsort(NULL, 0) is undefined. */
	if (a->rib.n > 0)
		qsort(a->rib.entry, a->rib.n, sizeof(struct entry), entry_order);
	if (a->zebra.n > 0)
		qsort(a->zebra.entry, a->zebra.n, sizeof(struct entry), entry_order);
	while (r < a->rib.n || z < a->zebra.n) {
		const struct entry *in_rib = r < a->rib.n ? &a->rib.entry[r] : NULL;
		const struct entry *in_zebra = z < a->zebra.n ? &a->zebra.entry[z] : NULL;
		int order = in_rib == NULL     ? 1
			    : in_zebra == NULL ? -1
					       : entry_order(in_rib, in_zebra);
		const struct entry *e = order <= 0 ? in_rib : in_zebra;

		r += order <= 0;
		z += order >= 0;
		if (order >= 0 && in_zebra->hops == UNDECIDED) {
			a->n_undecided++;
			continue;
		}
		if (order == 0 && in_rib->hops == in_zebra->hops)
			continue;
		if (asked++ >= CHECK_MAX)
			a->n_found++;
		else if (audit_settle(a, e->vrf, &e->prefix) < 0)
			return -1;
		if (asked == CHECK_MAX && a->n_found == 0) {
			fputs("fpmctl: the table of vtysh cannot be parsed, or changes too "
			      "fast to be compared\n",
			      stderr);
			return -1;
		}
	}
	if (asked > CHECK_MAX && !a->json)
		printf("%zu more differ%s (not looked up again)\n", asked - CHECK_MAX,
		       noun((long long)(asked - CHECK_MAX), "s", ""));
	return 0;
}

static void
audit_conclude(struct audit *a, double seconds)
{
	unsigned long long all = a->n_found + a->n_fib;
	long long prefixes = row_int(a->checked, "prefixes"),
		  lookups = row_int(a->checked, "lookups"),
		  groups = row_int(a->checked, "groups");

	if (a->json) {
		json_t *out =
			json_pack("{s:b, s:I, s:I, s:I, s:O, s:O, s:f}", "equal", all == 0,
				  "zebra_routes", (json_int_t)a->zebra.n, "undecided",
				  (json_int_t)a->n_undecided, "rib_routes",
				  (json_int_t)a->rib.n, "fib", a->checked, "differences",
				  a->differences, "seconds", seconds);

		json_print(out);
		json_decref(out);
		return;
	}
	if (all > DETAIL_MAX)
		printf("... and more; --json lists all\n");
	printf("zebra   %zu route%s", a->zebra.n, plural((long long)a->zebra.n));
	if (json_array_size(a->vrfs) > 0)
		printf(" in table main and %zu VRF%s", json_array_size(a->vrfs),
		       plural((long long)json_array_size(a->vrfs)));
	if (a->n_undecided > 0)
		printf(", %llu of them refused by the kernel or not installed yet: not "
		       "compared",
		       a->n_undecided);
	printf("\n"
	       "RIB     %zu route%s of zebra's: %llu differ%s\n"
	       "FIB     %lld %s, %lld lookup%s, %lld group%s of next hops: %llu differ%s\n"
	       "%s (%.1f s)\n",
	       a->rib.n, plural((long long)a->rib.n), a->n_found,
	       noun((long long)a->n_found, "s", ""), prefixes,
	       noun(prefixes, "prefix", "prefixes"), lookups, plural(lookups), groups,
	       plural(groups), a->n_fib, noun((long long)a->n_fib, "s", ""),
	       all == 0 ? "Equal." : "NOT equal.", seconds);
}

/*
 * Compare zebra, RIB and FIB, and print the differences; with `repair` repair them.
 * Returns an exit code: CTL_DIFFERENT when anything differed.
 */
static int
audit_run(const struct options *opt, int n, char **word)
{
	struct audit a = {.socket = opt->socket, .json = opt->json, .repair = opt->repair};
	double start = monotonic_s();
	int rc;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_audit);
	a.differences = json_array();
	a.checked = json_object();
	a.vrfs = json_array();
	rc = audit_ask(&a, json_pack("{s:s, s:b}", "show", "audit", "repair", opt->repair),
		       audit_on_fib);
	a.vtysh = opt->vtysh;
	if (rc == CTL_OK && a.vtysh == NULL)
		a.vtysh = zebra_vtysh_of(opt->socket);
	if (rc == CTL_OK)
		rc = audit_ask(&a, json_pack("{s:s}", "show", "vrfs"), audit_on_vrf);
	if (rc == CTL_OK)
		rc = audit_ask_zebra(&a);
	if (rc == CTL_OK)
		rc = audit_ask_rib(&a);
	if (rc == CTL_OK && audit_compare(&a) < 0)
		rc = CTL_NO_DAEMON;
	if (rc == CTL_OK) {
		audit_conclude(&a, monotonic_s() - start);
		rc = a.n_found + a.n_fib == 0 ? CTL_OK : CTL_DIFFERENT;
	}
	if (rc == CTL_DIFFERENT && opt->repair && a.n_found > 0) {
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
	free(a.one);
	free(a.rib.entry);
	free(a.zebra.entry);
	return rc;
}

static void
audit_help(FILE *out)
{
	fputs("      --repair          write the FIB again, and ask zebra for a replay\n"
	      "      --vtysh COMMAND   command to ask zebra, such as 'vtysh -N r1'; "
	      "default:\n"
	      "                        for the zebra in the network namespace of the "
	      "TAPs\n",
	      out);
}

const struct command cmd_audit = {
	.name = "audit",
	.words = "[--repair] [--vtysh COMMAND]",
	.text = "compare the routes of zebra, the RIB and the FIB",
	.run = audit_run,
	.options = OPT_JSON | OPT_REPAIR | OPT_VTYSH,
	.help = audit_help,
};
