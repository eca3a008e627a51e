/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run vtysh and parse its output. Lines that are not understood are skipped, because a
 * route that is missing here is looked up again as JSON.
 */
#include "ctl/zebra.h"

#include "base/log.h"
#include "ctl/doctor/parse.h"
#include "ctl/hop_push.h"
#include "ctl/json_row.h"
#include "ctl/run.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_S 120 /* zebra formats a million routes before it prints the first */

/*
 * Wait for the end of vtysh. Returns 0 if it succeeded and `said` is true, -ETIMEDOUT if it
 * was silent, else -1.
 */
static int
vtysh_end(struct run *run, const char *vtysh, bool said)
{
	if (run_end(run) == 0 && said)
		return 0;
	if (run->silent && !run->quiet)
		fprintf(stderr,
			"fpmctl: zebra does not answer: '%s' has been silent for %d s; it, "
			"or another daemon of FRR, hangs or is very busy: see FRR's log\n",
			vtysh, run->patience_s);
	else if (!run->quiet)
		fprintf(stderr,
			"fpmctl: '%s' gives no routes of zebra; is zebra running? --vtysh "
			"names another command\n",
			vtysh);
	return run->silent ? -ETIMEDOUT : -1;
}

/* --- the table, as text -------------------------------------------------------------- */

/*
 * A line such as "B>* 1.0.0.0/13 [20/0] via 192.0.2.2, wan0, weight 1, 00:00:33": code,
 * selected, state. Further next hops are below, in lines that begin with blanks. A next hop
 * in use has the state "*". It is also in use with "t" or "o": then it is installed in the
 * kernel, but the dataplane reported another result.
 */
#define HOP_STATE_COLUMN 2

static bool
hop_is_in_use(char state)
{
	return state == '*' || state == 't' || state == 'o';
}

static bool
hop_is_undecided(char state)
{
	return state == 'r' || state == 'q';
}

static zebra_is_overlay *is_overlay;
static void *is_overlay_ctx;

void
zebra_set_overlay(zebra_is_overlay *is, void *ctx)
{
	is_overlay = is;
	is_overlay_ctx = ctx;
}

bool
zebra_has_vnis(const char *dev)
{
	char name[IFNAMSIZ];

	if (is_overlay == NULL)
		return false;
	snprintf(name, sizeof(name), "%s", dev);
	log_harmless(name);
	return is_overlay(name, is_overlay_ctx);
}

#define SEGMENTS_MAX 16 /* FRR: 8 */

/*
 * Set the headend of a next hop. FRR 8.4 writes the segment "::" for the route of an end
 * point, which pushes nothing.
 *
 * behavior  FRR's word; NULL: H.Encaps
 * source    of the outer header, as text; NULL: that of the router
 */
static void
headend_take(struct hop_push *push, const char *const *segments, unsigned int n,
	     const char *behavior, const char *source)
{
	if (n == 0 || strcmp(segments[0], "::") == 0)
		return;
	if (behavior == NULL || strcmp(behavior, "H.Encaps") == 0)
		push_headend(push, SRV6_ENCAP, segments, n, source);
	else if (strcmp(behavior, "H.Encaps.Red") == 0)
		push_headend(push, SRV6_ENCAP_RED, segments, n, source);
	else
		push_headend_refused(push);
}

/* Copy the word behind `key` in a line. Returns NULL if the line has no such key. */
static const char *
word_find(const char *line, const char *key, char *word, size_t size)
{
	const char *at = strstr(line, key);
	size_t len;

	if (at == NULL)
		return NULL;
	at += strlen(key);
	len = strcspn(at, " \n");
	if (len > 0 && at[len - 1] == ',')
		len--;
	if (len >= size)
		len = size - 1;
	memcpy(word, at, len);
	word[len] = '\0';
	return word;
}

/*
 * Parse the labels or the headend of a next hop: ", label 17/implicit-null", or
 * ", seg6 2001:db8::1,2001:db8::2, encap behavior H.Encaps.Red, encap source 2001:db8::9".
 */
static void
push_parse(const char *line, const char *dev, struct hop_push *push)
{
	char segs[SEGMENTS_MAX * 40], behavior[32], source[48], *rest = segs;
	const char *label = strstr(line, ", label "), *segment[SEGMENTS_MAX];
	unsigned int n = 0;

	*push = (struct hop_push){0};
	if (label != NULL && !zebra_has_vnis(dev))
		push_label_words(push, label + strlen(", label "));
	if (word_find(line, ", seg6 ", segs, sizeof(segs)) == NULL)
		return;
	while (n < SEGMENTS_MAX && (segment[n] = strsep(&rest, ",")) != NULL)
		n++;
	headend_take(push, segment, n,
		     word_find(line, ", encap behavior ", behavior, sizeof(behavior)),
		     word_find(line, ", encap source ", source, sizeof(source)));
}

/* Parse a next hop: "via ", "is directly connected" or "unreachable". Cuts the line. */
static void
hop_parse(char *line, struct hops_text *w)
{
	char *via = strstr(line, " via "), *dev, *end, *weight;
	char name[IFNAMSIZ];
	struct hop_push push;

	if (strstr(line, " unreachable") != NULL) {
		hops_add_kind(w, strstr(line, "(blackhole)") != NULL  ? "blackhole"
				 : strstr(line, "prohibited") != NULL ? "prohibit"
								      : "unreachable");
		return;
	}
	weight = strstr(line, ", weight ");
	if (via != NULL) {
		via += strlen(" via ");
		dev = strstr(via, ", ");
	} else {
		dev = strstr(line, " is directly connected, ");
		if (dev != NULL)
			dev += strlen(" is directly connected");
	}
	if (dev == NULL)
		return;
	*dev = '\0';
	dev += 2;
	end = dev + strcspn(dev, ", \n"); /* "wan0 onlink, weight 1" */
	snprintf(name, sizeof(name), "%.*s", (int)(end - dev), dev);
	push_parse(end, name, &push);
	*end = '\0';
	hops_add(w, via, dev, push.text,
		 weight != NULL ? atoll(weight + strlen(", weight ")) : 1);
}

/* A cache of parsed next hops, because most lines have one of a few next hops. */
static struct {
	char *said; /* the words of the line, without the age of the route; NULL: none */
	char *hop;
} kept[1024];

/* Add the next hop of a line. Cuts the line. */
static void
hop_take(char *line, struct hops_text *w)
{
	char *said = strstr(line, "] "), *age = strrchr(line, ',');
	unsigned int before = w->n, at;

	if (said == NULL)
		said = line + HOP_STATE_COLUMN;
	if (age == NULL || age < said) {
		hop_parse(line, w);
		return;
	}
	*age = '\0';
	at = (unsigned int)(text_hash(said) % (sizeof(kept) / sizeof(kept[0])));
	if (kept[at].said == NULL || strcmp(kept[at].said, said) != 0) {
		free(kept[at].said);
		free(kept[at].hop);
		kept[at].said = strdup(said);
		*age = ',';
		hop_parse(said, w);
		kept[at].hop = w->n > before ? strdup(w->hop[w->n - 1]) : NULL;
	} else if (kept[at].hop != NULL) {
		hops_add_kind(w, kept[at].hop);
	}
}

/* Return true if the line begins a route that is compared, and fill the prefix. */
static bool
head_take(const char *line, bool kernels, struct prefix *p)
{
	char text[PREFIX_STRLEN], code = line[0];
	size_t len;

	if (line[1] != '>' || code == 'C' || code == 'L')
		return false;
	line += HOP_STATE_COLUMN + 1;
	line += strspn(line, " ");
	len = strcspn(line, " \n");
	if (len >= sizeof(text))
		return false;
	memcpy(text, line, len);
	text[len] = '\0';
	/*
	 * Leave out the kernel's own routes. With `kernels`, keep routes with a gateway and
	 * routes that reject packets.
	 */
	if (code == 'K' && (!kernels || strstr(line, " is directly connected") != NULL))
		return false;
	/* The dataplane takes source-specific routes only from the kernel. */
	if (strstr(line, " from ") != NULL)
		return false;
	return strchr(text, '/') != NULL && prefix_parse(text, p, NULL) == 0;
}

/*
 * Return true for a line "VRF red:" (from FRR 10 on "IPv4 unicast VRF red:"), and copy the
 * name.
 */
static bool
vrf_line_take(const char *line, char vrf[IFNAMSIZ])
{
	const char *at = strstr(line, "VRF ");
	size_t len = at == NULL ? 0 : strcspn(at + 4, ":\n");

	if (len == 0 || len >= IFNAMSIZ || strcmp(at + 4 + len, ":\n") != 0)
		return false;
	memcpy(vrf, at + 4, len);
	vrf[len] = '\0';
	if (strcmp(vrf, "default") == 0)
		vrf[0] = '\0';
	return true;
}

int
zebra_table(const char *vtysh, bool kernels, uint8_t family, zebra_on_route *on_route,
	    void *ctx)
{
	static const char *const command[2] = {"show ip route vrf all",
					       "show ipv6 route vrf all"};
	char vrf[IFNAMSIZ] = "", next[IFNAMSIZ];
	struct hops_text w = {0};
	struct prefix p = {0};
	char *line = NULL;
	size_t size = 0;
	struct run run = {.patience_s = TABLE_S};
	bool open = false, is_table = false;
	long long least, most;
	int rc;

	if (run_start(&run, vtysh, command[family == 6]) < 0)
		return -1;
	while (getline(&line, &size, run.out) > 0) {
		if (strlen(line) <= HOP_STATE_COLUMN)
			continue;
		if (line[0] != ' ') {
			is_table |= strncmp(line, "Codes:", 6) == 0;
			if (open && w.n > 0)
				on_route(vrf[0] == '\0' ? NULL : vrf, &p, &w, ctx);
			hops_reset(&w);
			if (vrf_line_take(line, next))
				strcpy(vrf, next);
			open = isalnum((unsigned char)line[0]) &&
			       head_take(line, kernels, &p);
		}
		if (open && hop_is_in_use(line[HOP_STATE_COLUMN]))
			hop_take(line, &w);
		else if (open && hop_is_undecided(line[HOP_STATE_COLUMN]) && w.n == 0)
			hops_add_kind(&w, ZEBRA_UNDECIDED);
	}
	if (open && w.n > 0)
		on_route(vrf[0] == '\0' ? NULL : vrf, &p, &w, ctx);
	hops_free(&w);
	free(line);
	rc = vtysh_end(&run, vtysh, true);
	if (rc < 0)
		return rc;
	/*
	 * vtysh prints nothing for an empty table. The summary distinguishes it from a
	 * missing answer.
	 */
	return is_table ? 0 : zebra_count(vtysh, family, true, &least, &most);
}

/* --- one prefix, as JSON -------------------------------------------------------------- */

/* Read all output as JSON; names of interfaces may be malformed UTF-8. NULL: no JSON. */
static json_t *
json_read(FILE *f)
{
	char *text = NULL;
	size_t size = 0;
	json_t *root = NULL;

	if (getdelim(&text, &size, '\0', f) > 0) {
		log_harmless(text);
		root = json_loads(text, 0, NULL);
	}
	free(text);
	return root;
}

static const char *
member_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/*
 * Set the labels or the headend of a next hop. A single segment is an object,
 * {"segs": "2001:db8::1"}. Several segments are an array, to which FRR 10 adds one address
 * too many (nexthop_json_helper()).
 */
static void
push_take(const json_t *hop, const char *dev, struct hop_push *push)
{
	const json_t *seg6 = json_object_get(hop, "seg6");
	const char *segment[SEGMENTS_MAX], *one = member_text(seg6, "segs");
	size_t n = json_array_size(seg6), i;
	json_t *label;

	*push = (struct hop_push){0};
	if (!zebra_has_vnis(dev))
		json_array_foreach (json_object_get(hop, "labels"), i, label)
			push_label(push, (uint32_t)json_integer_value(label));
	if (n > 2)
		n--;
	if (n > SEGMENTS_MAX)
		n = SEGMENTS_MAX;
	for (i = 0; i < n; i++) {
		segment[i] = json_string_value(json_array_get(seg6, i));
		if (segment[i] == NULL)
			return;
	}
	if (one != NULL)
		segment[n++] = one;
	headend_take(push, segment, (unsigned int)n, member_text(hop, "srv6EncapBehavior"),
		     member_text(hop, "srv6EncapSource"));
}

static void
nexthop_take(const json_t *hop, struct hops_text *w)
{
	const char *dev = member_text(hop, "interfaceName");
	struct hop_push push;

	if (!row_true(hop, "fib") || row_true(hop, "recursive"))
		return;
	if (row_true(hop, "unreachable"))
		hops_add_kind(w, row_true(hop, "blackhole")         ? "blackhole"
				 : row_true(hop, "adminProhibited") ? "prohibit"
								    : "unreachable");
	else if (dev != NULL) {
		push_take(hop, dev, &push);
		hops_add(w, member_text(hop, "ip"), dev, push.text,
			 json_integer_value(json_object_get(hop, "weight")));
	}
}

static bool
route_is_kernels(const json_t *route, bool kernels, const struct hops_text *w)
{
	const char *protocol = member_text(route, "protocol");

	if (protocol == NULL || strcmp(protocol, "connected") == 0 ||
	    strcmp(protocol, "local") == 0)
		return true;
	if (strcmp(protocol, "kernel") != 0)
		return false;
	if (!kernels)
		return true;
	for (unsigned int i = 0; i < w->n; i++)
		if (strncmp(w->hop[i], "dev ", 4) != 0)
			return false;
	return true;
}

int
zebra_prefix(const char *vtysh, const char *vrf, const struct prefix *p, bool kernels,
	     char **hops)
{
	struct hops_text w = {0};
	char text[PREFIX_STRLEN], command[PREFIX_STRLEN + 64];
	json_t *root, *route, *hop;
	struct run run = {.patience_s = ZEBRA_ANSWER_S};
	size_t i, j;
	int rc;

	*hops = NULL;
	snprintf(command, sizeof(command), "show %s route %s%s%s%s json",
		 p->family == 4 ? "ip" : "ipv6", vrf == NULL ? "" : "vrf ",
		 vrf == NULL ? "" : vrf, vrf == NULL ? "" : " ", prefix_str(p, text));
	if (run_start(&run, vtysh, command) < 0)
		return -1;
	root = json_read(run.out);
	json_array_foreach (json_object_get(root, text), i, route) {
		if (!row_true(route, "selected"))
			continue;
		if (!row_true(route, "installed")) {
			hops_add_kind(&w, ZEBRA_UNDECIDED);
			continue;
		}
		json_array_foreach (json_object_get(route, "nexthops"), j, hop)
			nexthop_take(hop, &w);
		if (route_is_kernels(route, kernels, &w))
			hops_reset(&w);
	}
	*hops = hops_join(&w);
	hops_free(&w);
	rc = vtysh_end(&run, vtysh, root != NULL);
	json_decref(root);
	return rc;
}

/* --- number of routes ------------------------------------------------------------- */

int
zebra_count(const char *vtysh, uint8_t family, bool aloud, long long *least,
	    long long *most)
{
	struct run run = {.quiet = !aloud, .patience_s = ZEBRA_ANSWER_S};
	json_t *root;
	bool said;

	if (run_start(&run, vtysh,
		      family == 4 ? "show ip route summary json"
				  : "show ipv6 route summary json") < 0)
		return -1;
	root = json_read(run.out);
	said = summary_parse(root, least, most) == 0;
	json_decref(root);
	return vtysh_end(&run, vtysh, said);
}

/* --- lines -------------------------------------------------------------------------- */

int
zebra_lines(const char *vtysh, const char *command, int patience_s, zebra_on_line *on_line,
	    void *ctx)
{
	struct run run = {.quiet = true, .patience_s = patience_s};
	char *line = NULL;
	size_t size = 0;
	bool said = false;

	if (run_start(&run, vtysh, command) < 0)
		return -1;
	while (getline(&line, &size, run.out) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		log_harmless(line);
		on_line(line, ctx);
		said = true;
	}
	free(line);
	return vtysh_end(&run, vtysh, said);
}

static void
version_on_line(const char *line, void *ctx)
{
	(void)frr_module_line(line, ctx);
}

int
zebra_version(const char *vtysh, char version[FRR_VERSION_STRLEN])
{
	version[0] = '\0';
	/* If another daemon of FRR hangs, the answer of zebra still counts. */
	(void)zebra_lines(vtysh, "show modules", ZEBRA_VERSION_S, version_on_line, version);
	return version[0] != '\0' ? 0 : -1;
}
