/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl audit: compare zebra, the kernel, the RIB and the FIB, prefix by prefix and next
 * hop by next hop. The daemon compares its RIB with its FIB (rib/audit.c). audit_read.c
 * reads the RIB once. This file compares zebra's table with the RIB's routes of zebra, in
 * force or hidden by a route of the kernel. Then it compares the route that the kernel
 * would use for each prefix with the route in force. All sides change while they are read,
 * so each difference is looked up again by prefix, until both sides agree or have differed
 * ROUNDS times.
 *
 * The rules of policy routing (audit_rules.c) and the interfaces (audit_links.c) are compared
 * with the kernel's.
 *
 * All tables are compared with the kernel: main, the tables of VRFs and of rules, and their
 * source-specific routes. zebra shows main and VRFs; a VRF with routes only in zebra is a
 * difference.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctl/audit_state.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define ROUNDS   3
#define PAUSE_MS 300
/*
 * Differences that are looked up again. If there are more, SAMPLE of them are looked up
 * first: if all of these remain, a side is wrong, and the others are only counted.
 */
#define CHECK_MAX  200
#define SAMPLE     20
#define DETAIL_MAX 20

static const char *const peer_name[N_PEERS] = {"zebra", "kernel"};

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
				   "other next hops than the RIB",
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

/* --- the verdict ---------------------------------------------------------------------- */

static const char *
hops_or_none(const char *hops)
{
	return hops != NULL ? hops : "no route";
}

/* Format the source or the TOS of a place; "": all packets. Returns `text`. */
static const char *
condition_text(const struct place *at, char text[PREFIX_STRLEN])
{
	if (at->src.len > 0 && at->src.family == 6)
		return prefix_str(&at->src, text);
	text[0] = '\0';
	if (at->src.len > 0)
		snprintf(text, PREFIX_STRLEN, "0x%02x", at->src.addr.octet[0]);
	return text;
}

/*
 * Format the name of the table of a difference: "VRF red: ", "table 100 from 2001:db8::/48:
 * ", "table main tos 0x10: ".
 */
static void
place_text(const struct place *at, char *text, size_t size)
{
	char shown[IFNAMSIZ] = "", src[PREFIX_STRLEN];
	const char *table = "table main";
	char number[32];

	if (at->vrf != NULL) {
		snprintf(shown, sizeof(shown), "%s", at->vrf);
		log_harmless(shown);
		table = "VRF";
	} else if (at->table != 254) {
		snprintf(number, sizeof(number), "table %u", at->table);
		table = number;
	}
	if (at->vrf == NULL && at->table == 254 && at->src.len == 0)
		text[0] = '\0';
	else
		snprintf(text, size, "%s%s%s%s%s: ", table, at->vrf != NULL ? " " : "",
			 shown,
			 at->src.len == 0      ? ""
			 : at->src.family == 4 ? " tos "
					       : " from ",
			 condition_text(at, src));
}

/* Make the row of --json for a difference. `copy`: result of copy_alone_differs(). */
static json_t *
difference_json(const struct audit *a, const struct place *at, const struct prefix *p,
		bool copy)
{
	char text[PREFIX_STRLEN], shown[IFNAMSIZ] = "", src[PREFIX_STRLEN];
	const char *peer = peer_name[a->peer];
	json_t *row;

	if (at->vrf != NULL) {
		snprintf(shown, sizeof(shown), "%s", at->vrf);
		log_harmless(shown);
	}
	row = json_pack("{s:s, s:s?, s:o, s:s?, s:s, s:s?, s:s?}", "what", peer, "vrf",
			at->vrf != NULL ? shown : NULL, "table",
			at->table == 0 ? json_null() : json_integer(at->table), "from",
			at->src.len > 0 && at->src.family == 6 ? prefix_str(&at->src, src)
							       : NULL,
			"prefix", prefix_str(p, text), peer, a->theirs, "rib", a->one);
	if (at->src.len > 0 && at->src.family == 4)
		json_object_set_new(row, "tos", json_string(condition_text(at, src)));
	if (a->peer == PEER_KERNEL)
		json_object_set_new(row, "copy_alone", json_boolean(copy));
	return row;
}

/*
 * Return true if the kernel's route is a copy that zebra installed, and zebra's own route
 * agrees with the RIB: the kernel or zebra has changed only the copy. The dataplane writes
 * no routes to the kernel.
 */
static bool
copy_alone_differs(const struct audit *a, const struct prefix *p)
{
	const struct place *at = &a->places.v[a->asking];
	char *shown = NULL;
	bool alone;

	if (a->peer != PEER_KERNEL || !a->with[PEER_ZEBRA].done || a->theirs == NULL ||
	    !a->theirs_of_zebra || !a->one_of_zebra || !place_is_zebras(at) ||
	    zebra_prefix(a->vtysh, at->vrf, p, audit_kernels_by_zebra(a), &shown) < 0)
		return false;
	alone = shown != NULL && strcmp(shown, hops_or_none(a->one)) == 0;
	free(shown);
	return alone;
}

static void
audit_report(struct audit *a, const struct prefix *p)
{
	const struct place *at = &a->places.v[a->asking];
	char text[PREFIX_STRLEN], where[IFNAMSIZ + PREFIX_STRLEN + 32];
	bool copy = copy_alone_differs(a, p);

	a->with[a->peer].n_copies += copy;
	if (a->with[a->peer].n_found++ >= DETAIL_MAX && !a->json)
		return;
	if (a->json) {
		json_array_append_new(a->differences, difference_json(a, at, p, copy));
		return;
	}
	place_text(at, where, sizeof(where));
	line_print(4, "%sDIFFERS %s: %s%s has %s, %s %s", where, prefix_str(p, text),
		   copy                     ? "zebra's copy in the "
		   : a->peer == PEER_KERNEL ? "the "
					    : "",
		   peer_name[a->peer], hops_or_none(a->theirs),
		   copy ? "zebra and the dataplane have" : "the dataplane has",
		   hops_or_none(a->one));
}

/* Return true if the looked-up route is equal on both sides, or may differ. */
static bool
looked_up_the_same(const struct audit *a, const struct prefix *p)
{
	if (a->one_of_zebra && place_lacks_zebra(&a->places.v[a->asking], p->family))
		return true;
	/*
	 * zebra need not install its routes in the kernel, and zebra's own table was
	 * compared.
	 */
	if (a->peer == PEER_KERNEL && a->theirs == NULL && a->one_of_zebra &&
	    place_is_zebras(&a->places.v[a->asking]))
		return true;
	if (audit_hops_undecided(a->theirs))
		return true;
	if (a->peer == PEER_KERNEL && a->one_of_zebra && a->theirs != NULL)
		return a->one_copy != NULL && strcmp(a->theirs_copy, a->one_copy) == 0;
	return strcmp(hops_or_none(a->theirs), hops_or_none(a->one)) == 0;
}

/* A difference to look up again. */
struct suspect {
	struct prefix prefix;
	uint32_t place;
	bool settled; /* both sides agree */
};

/*
 * Look up the prefixes on both sides again, and report each prefix that differs in all
 * rounds.
 * All prefixes share the pauses. Returns the number of differences, or -1: no answer.
 */
static int
audit_settle(struct audit *a, struct suspect *s, size_t n)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	int left = (int)n;

	for (int round = 1; round <= ROUNDS && left > 0; round++) {
		if (round > 1)
			nanosleep(&pause, NULL);
		for (size_t i = 0; i < n; i++) {
			if (s[i].settled)
				continue;
			a->asking = s[i].place;
			if (audit_ask_theirs(a, &s[i].prefix) < 0 ||
			    audit_ask_one(a, &s[i].prefix) != CTL_OK)
				return -1;
			s[i].settled = looked_up_the_same(a, &s[i].prefix);
			left -= s[i].settled;
			if (round == ROUNDS && !s[i].settled)
				audit_report(a, &s[i].prefix);
		}
	}
	return left;
}

/*
 * Settle the differences of a comparison. There are `all` differences, of which `s` has the
 * first `n`. Returns 0, or -1 when a side stopped answering.
 */
static int
audit_settle_all(struct audit *a, struct suspect *s, size_t n, size_t all)
{
	size_t checked = all > CHECK_MAX ? SAMPLE : n;
	int differ = audit_settle(a, s, checked);

	if (differ >= 0 && differ < (int)checked) {
		differ = audit_settle(a, s + checked, n - checked);
		checked = n;
	}
	if (differ < 0)
		return -1;
	if (n == CHECK_MAX && a->with[a->peer].n_found == 0) {
		fprintf(stderr,
			"fpmctl: the table of %s cannot be parsed, or changes too "
			"fast to be compared\n",
			peer_name[a->peer]);
		return -1;
	}
	a->with[a->peer].n_found += all - checked;
	if (all > checked && !a->json)
		printf("%zu more differ%s (not verified by a second query)\n",
		       all - checked, text_noun((long long)(all - checked), "s", ""));
	return 0;
}

/*
 * Return true if the difference is no fault: one side has not decided, or need not have the
 * route.
 */
static bool
difference_is_expected(struct audit *a, const struct entry *rib, const struct entry *other)
{
	if (other != NULL && other->hops == HOPS_UNDECIDED) {
		a->with[a->peer].n_undecided++;
		return true;
	}
	/*
	 * zebra need not install its routes in the kernel, and zebra's own table was
	 * compared.
	 */
	return a->peer == PEER_KERNEL && other == NULL && rib->of_zebra &&
	       place_is_zebras(&a->places.v[rib->place]);
}

/* Return true if the route of the RIB is compared with the present side. */
static bool
entry_is_compared(const struct audit *a, const struct entry *e)
{
	return a->peer == PEER_KERNEL
		       ? !e->hidden
		       : e->of_zebra && place_is_zebras(&a->places.v[e->place]);
}

/* Return the next route of the RIB from *r on that is compared; NULL: there is none. */
static const struct entry *
next_in_rib(const struct audit *a, size_t *r)
{
	while (*r < a->rib.n && !entry_is_compared(a, &a->rib.entry[*r]))
		++*r;
	return *r < a->rib.n ? &a->rib.entry[*r] : NULL;
}

/*
 * Return true if an entry of the RIB is a route of zebra in a table that no packet uses. It
 * hides the kernel's route of the prefix in the RIB.
 */
static bool
entry_is_unused(const struct audit *a, const struct entry *e)
{
	return e->of_zebra && place_lacks_zebra(&a->places.v[e->place], e->prefix.family);
}

/* Compare the tables. Returns 0, or -1 when a side stopped answering. */
static int
audit_compare(struct audit *a)
{
	struct comparison *with = &a->with[a->peer];
	struct suspect suspect[CHECK_MAX];
	size_t r = 0, z = 0, n = 0, all = 0;

	table_sort(&a->other);
	with->n_peer = a->other.n;
	with->done = true;
	for (;;) {
		const struct entry *in_rib = next_in_rib(a, &r);
		const struct entry *other = z < a->other.n ? &a->other.entry[z] : NULL;
		int order = in_rib == NULL  ? 1
			    : other == NULL ? -1
					    : entry_order(in_rib, other);
		const struct entry *e = order <= 0 ? in_rib : other;

		if (e == NULL)
			break;
		r += order <= 0;
		z += order >= 0;
		if (order <= 0 && entry_is_unused(a, in_rib))
			continue;
		with->n_rib += order <= 0;
		if (difference_is_expected(a, order <= 0 ? in_rib : NULL,
					   order >= 0 ? other : NULL))
			continue;
		if (order == 0 && (a->peer == PEER_KERNEL && in_rib->of_zebra
					   ? in_rib->copy == other->copy
					   : in_rib->hops == other->hops))
			continue;
		all++;
		if (n < CHECK_MAX)
			suspect[n++] = (struct suspect){e->prefix, e->place, false};
	}
	return audit_settle_all(a, suspect, n, all);
}

/* Read a side and compare it with the RIB. */
static int
audit_with(struct audit *a, enum peer peer)
{
	int rc;

	a->peer = peer;
	rc = peer == PEER_ZEBRA ? audit_ask_zebra(a) : audit_ask_kernel(a);
	if (rc == CTL_OK && audit_compare(a) < 0)
		rc = CTL_NO_DAEMON;
	table_clear(&a->other);
	return rc;
}

/*
 * Print rows of differences of labels or rules. `who`: the other side, whose key is `peer`.
 */
static void
differences_print(struct audit *a, json_t *differences, const char *peer, const char *who)
{
	json_t *row;
	size_t i;

	json_array_foreach (differences, i, row) {
		const char *theirs = row_str(row, peer), *ours = row_str(row, "rib");

		if (a->json)
			json_array_append(a->differences, row);
		else if (i < DETAIL_MAX)
			line_print(4, "DIFFERS %s: %s has %s, the dataplane has %s",
				   row_str(row, "prefix"), who,
				   theirs[0] != '\0' ? theirs : "none",
				   ours[0] != '\0' ? ours : "none");
	}
}

/* Compare the labels with zebra's, and print the differences. */
static int
audit_with_labels(struct audit *a)
{
	int rc = audit_labels(a->socket, a->vtysh, &a->labels);

	differences_print(a, a->labels.differences, "zebra", "zebra");
	a->with[PEER_ZEBRA].n_found += a->labels.n_found;
	audit_labels_free(&a->labels);
	return rc;
}

/* Compare the rules of policy routing with the kernel's, and print the differences. */
static int
audit_with_rules(struct audit *a)
{
	int rc = audit_rules(a->socket, &a->rules);

	differences_print(a, a->rules.differences, "kernel", "the kernel");
	a->with[PEER_KERNEL].n_found += a->rules.n_found;
	audit_rules_free(&a->rules);
	return rc;
}

/* Compare the interfaces with the kernel's, and print the differences. */
static int
audit_with_links(struct audit *a)
{
	int rc = audit_links(a->socket, &a->interfaces);
	json_t *row;
	size_t i;

	json_array_foreach (a->interfaces.differences, i, row) {
		if (a->json)
			json_array_append(a->differences, row);
		else if (i < DETAIL_MAX)
			line_print(4,
				   "interface %s: DIFFERS %s: the kernel has %s, the "
				   "dataplane has %s",
				   row_str(row, "interface"), row_str(row, "setting"),
				   row_str(row, "kernel"), row_str(row, "rib"));
	}
	a->n_interfaces_differ = json_array_size(a->interfaces.differences);
	audit_links_free(&a->interfaces);
	return rc;
}

static bool
audit_on_warning(const json_t *row, const char *text, void *ctx)
{
	((struct audit *)ctx)->n_warnings++;
	return true;
}

/* Print the lines about interfaces, and about settings that are not obeyed. */
static void
links_conclude(const struct audit *a)
{
	size_t n = a->interfaces.n;

	printf("links   %zu interface%s compared with the kernel's: %zu setting%s "
	       "differ%s\n",
	       n, text_plural((long long)n), a->n_interfaces_differ,
	       text_plural((long long)a->n_interfaces_differ),
	       text_noun((long long)a->n_interfaces_differ, "s", ""));
	if (a->n_warnings > 0)
		printf("warning %lld setting%s of the kernel %s not obeyed: fpmctl show "
		       "warnings\n",
		       a->n_warnings, text_plural(a->n_warnings),
		       text_noun(a->n_warnings, "is", "are"));
}

static unsigned long long
differences_count(const struct audit *a)
{
	return a->with[PEER_ZEBRA].n_found + a->with[PEER_KERNEL].n_found + a->n_fib +
	       a->n_interfaces_differ;
}

static void
audit_conclude(struct audit *a, double seconds)
{
	const struct comparison *z = &a->with[PEER_ZEBRA], *k = &a->with[PEER_KERNEL];
	unsigned long long all = differences_count(a);
	long long prefixes = row_int(a->checked, "prefixes"),
		  lookups = row_int(a->checked, "lookups"),
		  groups = row_int(a->checked, "groups");

	if (a->json) {
		json_t *out = json_pack(
			"{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O, "
			"s:O, "
			"s:f}",
			"equal", all == 0, "zebra_labels", (json_int_t)a->labels.n_zebra,
			"rib_labels", (json_int_t)a->labels.n_rib, "kernel_rules",
			(json_int_t)a->rules.n_kernel, "rib_rules",
			(json_int_t)a->rules.n_rib, "zebra_routes", (json_int_t)z->n_peer,
			"undecided", (json_int_t)z->n_undecided, "rib_routes",
			(json_int_t)z->n_rib, "kernel_prefixes", (json_int_t)k->n_peer,
			"kernel_not_obeyed", (json_int_t)k->n_not_obeyed, "interfaces",
			(json_int_t)a->interfaces.n, "warnings", (json_int_t)a->n_warnings,
			"fib", a->checked, "differences", a->differences, "seconds",
			seconds);

		json_print(out);
		json_decref(out);
		return;
	}
	if (all > DETAIL_MAX)
		printf("... and more; --json lists all\n");
	if (z->done) {
		printf("zebra   %zu route%s", z->n_peer, text_plural((long long)z->n_peer));
		if (a->n_vrfs > 0)
			printf(" in table main and %u VRF%s", a->n_vrfs,
			       text_plural(a->n_vrfs));
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
	printf("kernel  %zu prefix%s", k->n_peer,
	       text_noun((long long)k->n_peer, "", "es"));
	if (k->n_undecided > 0)
		printf(", %llu of them on links without a carrier: not compared",
		       k->n_undecided);
	if (k->n_not_obeyed > 0)
		printf("; %llu route%s not obeyed (in tables that rules use): not compared",
		       k->n_not_obeyed, text_plural((long long)k->n_not_obeyed));
	printf("\n");
	if (a->labels.n_zebra + a->labels.n_rib > 0)
		printf("labels  %zu of zebra, %zu in the dataplane: %zu differ%s\n",
		       a->labels.n_zebra, a->labels.n_rib, a->labels.n_found,
		       text_noun((long long)a->labels.n_found, "s", ""));
	printf("rules   %zu of the kernel, %zu in the dataplane: %zu differ%s\n",
	       a->rules.n_kernel, a->rules.n_rib, a->rules.n_found,
	       text_noun((long long)a->rules.n_found, "s", ""));
	links_conclude(a);
	if (k->n_copies > 0)
		printf("copies  %llu route%s in the kernel differ%s from zebra's, which "
		       "the dataplane obeys: only the kernel's copy was changed\n",
		       k->n_copies, text_plural((long long)k->n_copies),
		       text_noun((long long)k->n_copies, "s", ""));
	printf("RIB     %zu route%s compared with zebra's: %llu differ%s; "
	       "%zu prefix%s compared with the kernel's: %llu differ%s\n"
	       "FIB     %lld %s, %lld lookup%s, %lld group%s of next hops: %llu differ%s\n"
	       "%s (%.1f s)\n",
	       z->n_rib, text_plural((long long)z->n_rib), z->n_found,
	       text_noun((long long)z->n_found, "s", ""), k->n_rib,
	       text_noun((long long)k->n_rib, "", "es"), k->n_found,
	       text_noun((long long)k->n_found, "s", ""), prefixes,
	       text_noun(prefixes, "prefix", "prefixes"), lookups, text_plural(lookups),
	       groups, text_plural(groups), a->n_fib,
	       text_noun((long long)a->n_fib, "s", ""), all == 0 ? "Equal." : "NOT equal.",
	       seconds);
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
 * Return true if the audit compares with zebra. Return false if all routes come from the
 * kernel, or if zebra was never connected and does not answer, as on a router without FRR.
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
 * Compare zebra, the kernel, RIB and FIB, and print the differences; with `repair` repair
 * them. Returns an exit code: CTL_DIFFERENT when anything differed.
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
	rc = audit_ask(&a, json_pack("{s:s}", "show", "version"), audit_on_version);
	/* Enter the network namespace of the TAPs, whose tables are compared. */
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
		rc = audit_ask_rib(&a);
	if (rc == CTL_OK && audit_has_zebra(&a))
		rc = audit_with(&a, PEER_ZEBRA);
	if (rc == CTL_OK && a.with[PEER_ZEBRA].done)
		rc = audit_with_labels(&a);
	if (rc == CTL_OK)
		rc = audit_with(&a, PEER_KERNEL);
	if (rc == CTL_OK)
		rc = audit_with_rules(&a);
	if (rc == CTL_OK)
		rc = audit_with_links(&a);
	/* Warnings are only counted: they do not mean that the RIB or the FIB is wrong. */
	if (rc == CTL_OK)
		rc = audit_ask(&a, json_pack("{s:s}", "show", "warnings"),
			       audit_on_warning);
	n_found = a.with[PEER_ZEBRA].n_found + a.with[PEER_KERNEL].n_found;
	if (rc == CTL_OK) {
		audit_conclude(&a, monotonic_s() - start);
		rc = differences_count(&a) == 0 ? CTL_OK : CTL_DIFFERENT;
	}
	if (rc == CTL_DIFFERENT && opt->repair && n_found > 0) {
		rc = audit_ask(&a, json_pack("{s:s}", "do", "replay"), NULL);
		if (rc == CTL_OK)
			rc = CTL_DIFFERENT;
		if (!opt->json && rc == CTL_DIFFERENT)
			puts("zebra was asked for a replay, which begins within 3 s. "
			     "Forwarding goes on meanwhile.");
	}
	json_decref(a.differences);
	json_decref(a.checked);
	table_clear(&a.rib);
	places_free(&a.places);
	free(a.one);
	free(a.one_copy);
	free(a.theirs);
	free(a.theirs_copy);
	free(a.links);
	return rc;
}

static void
audit_help(FILE *out)
{
	fputs("      audit compares table main, the tables of VRFs and of rules,\n"
	      "      source-specific routes, labels, the rules of policy routing, and\n"
	      "      settings of interfaces.\n"
	      "      --repair         write the FIB again, and ask zebra for a replay\n"
	      "      --vtysh COMMAND  the vtysh of the zebra to ask, such as 'vtysh -N "
	      "r1'.\n"
	      "                       Default: the vtysh of the zebra in the network\n"
	      "                       namespace of the TAPs\n"
	      "      If zebra does not answer for 10 s, the exit code is 1.\n"
	      "      audit enters the network namespace of the TAPs, so run it as root.\n",
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
