/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run `ip -N -o route show table all` and parse its lines, such as
 *
 *     10.6.0.0/16 nhid 7 proto 3 \ nexthop via 10.1.0.9 dev d0 weight 3 \ nexthop ...
 *     2 10.1.0.1 dev d0 table 255 proto 2 scope 254 src 10.1.0.1
 *
 * that is: the type as a number (RTN_*) unless it is unicast, the prefix, then names and
 * values. Most lines of a full table differ in the prefix only. So the words after the
 * prefix are parsed once, and the result is kept (struct kept).
 */
#include "ctl/kernel_table.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel_event.h"
#include "ctl/run.h"

#define TABLE_S 120 /* as for zebra: a full table takes long */
#define BLANKS  " \t\\\n"

/* The next hop that a line is in the middle of. */
struct hop {
	const char *via, *dev;
	long long weight;
	bool down; /* without carrier, or dead */
	bool dead; /* the kernel does not use it */
};

/* The meaning of the words of a line. */
struct line {
	struct kernel_route r;
	const char *state; /* state of a route that is not unicast: "blackhole", ... */
	struct hop hop;
	bool in_encap; /* words up to `via` or `dev` are about the encapsulation */
	bool all_down, all_dead;
	bool is_over; /* it has expired: the kernel does not use it */
	bool counts;  /* a FIB may have such a route, so the audit compares it */
};

#define KEPT 4096 /* a power of two */

/* The meaning of lines with these words after the prefix. */
struct kept {
	char *words;       /* NULL: the entry is empty */
	const char *state; /* state of a route of this type */
	struct line line;
};

static void
hop_end(struct line *l)
{
	if (l->hop.dev == NULL || l->state != NULL)
		return;
	hops_add(&l->r.hops, l->hop.via, l->hop.dev, l->hop.weight);
	l->all_down &= l->hop.down;
	l->all_dead &= l->hop.dead;
	l->hop = (struct hop){0};
}

static const char unicast[] = "unicast";

/*
 * Return the word of the dataplane for a route of this type, which `ip -N` prints as a
 * number. "": no FIB has routes of the type. NULL: the word is no type. Linux forwards by IPv6
 * routes of the types for IPv4 groups and of the obsolete types: `unicast`.
 */
static const char *
type_state(const char *word, uint8_t family)
{
	static const char *const state[] = {
		[RTN_LOCAL] = "local",       [RTN_BROADCAST] = "broadcast",
		[RTN_ANYCAST] = "local",     [RTN_BLACKHOLE] = "blackhole",
		[RTN_PROHIBIT] = "prohibit", [RTN_UNREACHABLE] = "unreachable",
		[RTN_THROW] = "throw",       [RTN_MULTICAST] = "broadcast",
	};
	unsigned long type;
	char *end;

	type = strtoul(word, &end, 10);
	if (*end != '\0')
		return NULL;
	if (family == 6 && (type == RTN_BROADCAST || type == RTN_MULTICAST ||
			    type == RTN_NAT || type == RTN_XRESOLVE))
		return unicast;
	return type < sizeof(state) / sizeof(state[0]) && state[type] != NULL ? state[type]
									      : "";
}

static bool
prefix_take(struct prefix *p, uint8_t family, const char *word)
{
	if (strcmp(word, "default") == 0)
		*p = (struct prefix){.family = family};
	else if (prefix_parse(word, p, NULL) < 0)
		return false;
	return p->family == family;
}

/* Parse the TOS of an IPv4 route. Linux never uses a route whose TOS has other bits. */
static void
tos_take(struct line *l, const char *value)
{
	unsigned long tos = strtoul(value, NULL, 16);

	l->is_over |= (tos & ~(unsigned long)TOS_LOOKUP_MASK) != 0;
	l->r.src = tos_condition((uint8_t)tos);
}

/* Parse a word, and its value if it has one. */
static void
word_take(struct line *l, const char *word, char **save)
{
	const char *value;

	if (strcmp(word, "nexthop") == 0) {
		hop_end(l);
		return;
	}
	l->in_encap &= strcmp(word, "via") != 0 && strcmp(word, "dev") != 0;
	l->in_encap |= strcmp(word, "encap") == 0;
	if (l->in_encap)
		return;
	if (strcmp(word, "linkdown") == 0 || strcmp(word, "dead") == 0) {
		l->hop.down = true;
		l->hop.dead |= *word == 'd';
		return;
	}
	if (strcmp(word, "onlink") == 0 || strcmp(word, "pervasive") == 0 ||
	    strcmp(word, "offload") == 0 || strcmp(word, "trap") == 0)
		return;
	value = strtok_r(NULL, BLANKS, save);
	if (value == NULL)
		return;
	if (strcmp(word, "via") == 0) {
		if (strcmp(value, "inet") == 0 || strcmp(value, "inet6") == 0)
			value = strtok_r(NULL, BLANKS, save);
		l->hop.via = value;
	} else if (strcmp(word, "dev") == 0) {
		l->hop.dev = value;
	} else if (strcmp(word, "weight") == 0) {
		l->hop.weight = atoll(value);
	} else if (strcmp(word, "table") == 0) {
		l->r.table = (uint32_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "metric") == 0) {
		l->r.metric = (uint32_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "proto") == 0) {
		l->r.protocol = (uint8_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "from") == 0) {
		(void)prefix_parse(value, &l->r.src, NULL);
	} else if (strcmp(word, "mtu") == 0 || strcmp(word, "hoplimit") == 0) {
		if (strcmp(value, "lock") == 0)
			(void)strtok_r(NULL, BLANKS, save);
	} else if (strcmp(word, "tos") == 0 || strcmp(word, "dsfield") == 0) {
		tos_take(l, value);
	} else if (strcmp(word, "pref") == 0) {
		l->r.preference = strcmp(value, "high") == 0 ? 0 : *value == 'l' ? 2 : 1;
	} else if (strcmp(word, "expires") == 0) {
		l->is_over = atoll(value) <= 0; /* "-1sec", until the kernel frees it */
	}
}

/* Parse the words after the prefix. Writes to `words`, as strtok_r() does. */
static void
words_take(struct line *l, char *words, const char *state)
{
	char *save = NULL;

	hops_reset(&l->r.hops);
	*l = (struct line){
		.r = {.table = RT_TABLE_MAIN, .protocol = RTPROT_BOOT, .hops = l->r.hops},
		.state = state,
		.all_down = true,
		.all_dead = true};
	for (char *word = strtok_r(words, BLANKS, &save); word != NULL;
	     word = strtok_r(NULL, BLANKS, &save))
		word_take(l, word, &save);
	hop_end(l);
	if (state != NULL && state[0] != '\0')
		hops_add_kind(&l->r.hops, state);
	l->r.is_local = l->r.table == RT_TABLE_LOCAL;
	if (l->r.is_local)
		l->r.table = RT_TABLE_MAIN;
	if (l->r.src.len > 0)
		l->r.is_local = false; /* the dataplane has no such table for sources */
	/* The sysctl ignore_routes_with_linkdown makes next hops without carrier dead. */
	l->r.is_down = state == NULL &&
		       (l->all_dead || (l->all_down && l->r.protocol == RTPROT_KERNEL));
	l->counts = !l->is_over && l->r.hops.n > 0 && (state == NULL || state[0] != '\0');
}

/* Return the meaning of the words after a prefix. */
static struct line *
words_find(struct kept *kept, const char *words, const char *state)
{
	struct kept *k = &kept[text_hash(words) % KEPT];
	char *cut;

	if (k->words != NULL && k->state == state && strcmp(k->words, words) == 0)
		return &k->line;
	free(k->words);
	k->words = strdup(words);
	cut = strdup(words);
	if (k->words == NULL || cut == NULL)
		abort();
	k->state = state;
	words_take(&k->line, cut, state);
	free(cut);
	return &k->line;
}

static void
kept_free(struct kept *kept)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		free(kept[i].words);
		hops_free(&kept[i].line.r.hops);
	}
	free(kept);
}

/* Terminate the first word of a text. Returns the text after it. */
static char *
word_cut(char *text)
{
	text += strcspn(text, BLANKS);
	if (*text != '\0')
		*text++ = '\0';
	return text;
}

/*
 * Parse a line; this writes to `text`. Returns NULL if the line is not about a route of a
 * FIB.
 */
static struct kernel_route *
line_take(struct kept *kept, uint8_t family, char *text)
{
	char *word = text + strspn(text, BLANKS), *rest = word_cut(word);
	const char *state = type_state(word, family);
	struct prefix p;
	struct line *l;

	if (state != NULL) {
		word = rest + strspn(rest, BLANKS);
		rest = word_cut(word);
	}
	if (state == unicast)
		state = NULL;
	if (!prefix_take(&p, family, word) || prefix_is_in_no_fib(&p))
		return NULL;
	l = words_find(kept, rest, state);
	l->r.prefix = p;
	if (family == 6 && l->r.is_local && state != NULL && strcmp(state, "throw") == 0)
		return NULL; /* Linux then looks up main */
	return l->counts ? &l->r : NULL;
}

int
kernel_table(uint8_t family, const struct prefix *p, kernel_on_route *on_route, void *ctx)
{
	struct run run = {.patience_s = TABLE_S};
	char command[PREFIX_STRLEN + 64], text[PREFIX_STRLEN];
	struct kept *kept;
	struct kernel_route *r;
	char *line = NULL;
	size_t size = 0;
	int rc;

	snprintf(command, sizeof(command), "ip -N -o -%u route show table all%s%s",
		 family == 4 ? 4u : 6u, p == NULL ? "" : " exact ",
		 p == NULL ? "" : prefix_str(p, text));
	if (run_start(&run, command, NULL) < 0)
		return -1;
	kept = calloc(KEPT, sizeof(*kept));
	if (kept == NULL)
		abort();
	while (getline(&line, &size, run.out) > 0)
		if ((r = line_take(kept, family, line)) != NULL)
			on_route(r, ctx);
	kept_free(kept);
	free(line);
	rc = run_end(&run);
	if (rc < 0)
		fprintf(stderr, "fpmctl: '%s' gives no routes of the kernel\n", command);
	return rc;
}

/* --- rules -------------------------------------------------------------------------------- */

/*
 * Return true if a word of a rule that has a value is a selector or an option that
 * forwarders support.
 */
static bool
rule_word_is_known(const char *word)
{
	static const char *const known[] = {"from",
					    "to",
					    "iif",
					    "tos",
					    "dsfield",
					    "dscp",
					    "ipproto",
					    "sport",
					    "dport",
					    "proto",
					    "suppress_prefixlength",
					    "suppress_ifgroup",
					    "realms"};

	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(word, known[i]) == 0)
			return true;
	return false;
}

/*
 * Parse a line such as "32764:	not from 192.0.2.2 fwmark 0x1 lookup 100", and write to it.
 * Returns the table, or 0 if the rule has no table or matches no received packet, for
 * example because it selects a mark or a user.
 */
static uint32_t
rule_take(char *text)
{
	char *save = NULL, *word, *value;
	bool invert = false, lacks = false;
	uint32_t table = 0;

	(void)strtok_r(text, BLANKS, &save); /* the preference of the rule */
	while ((word = strtok_r(NULL, BLANKS, &save)) != NULL) {
		if (strcmp(word, "not") == 0) {
			invert = true;
			continue;
		}
		if (word[0] == '[')
			continue; /* [detached]: the interface does not exist */
		value = strtok_r(NULL, BLANKS, &save);
		if (value != NULL && strcmp(word, "lookup") == 0)
			table = (uint32_t)strtoul(value, NULL, 10);
		else
			lacks |= !rule_word_is_known(word);
	}
	return lacks && !invert ? 0 : table;
}

void
kernel_rule_tables(uint8_t family, void (*on_table)(uint32_t table, void *ctx), void *ctx)
{
	struct run run = {.patience_s = TABLE_S, .quiet = true};
	char *line = NULL;
	size_t size = 0;
	uint32_t table;

	if (run_start(&run, family == 4 ? "ip -N -4 rule show" : "ip -N -6 rule show",
		      NULL) < 0)
		return;
	while (getline(&line, &size, run.out) > 0)
		if ((table = rule_take(line)) != 0)
			on_table(table, ctx);
	free(line);
	(void)run_end(&run);
}
