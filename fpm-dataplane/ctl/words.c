/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of words of explain, trace and capture, which help, parser and errors share.
 */
#include "ctl/words.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/prefix.h"
#include "ctl/cli.h"

#define PROTO_ICMP  1
#define COUNT_MAX   1000000000 /* as dist/openapi.yaml */
#define SECONDS_MAX 86400

enum kind { TEXT, ADDRESS, PREFIX, PROTO, NUMBER, COUNT, SECONDS, FLAG, VERDICT, HEX };

static const struct word {
	const char *word, *value, *text;
	unsigned int of; /* the commands that have the word: bits of enum words_of */
	enum kind kind;
	size_t offset; /* in struct words */
	int min, max;
} known[] = {
#define AT(field) offsetof(struct words, field)
	{"port", "NAME", "received on this port, or on this VLAN (wan0.10)", 7, TEXT,
	 AT(port), 0, 0},
	{"src", "ADDRESS", "source", WORDS_EXPLAIN, ADDRESS, AT(src), 0, 0},
	{"dst", "ADDRESS", "destination", WORDS_EXPLAIN, ADDRESS, AT(dst), 0, 0},
	{"src", "PREFIX", "source", 6, PREFIX, AT(src), 0, 0},
	{"dst", "PREFIX", "destination", 6, PREFIX, AT(dst), 0, 0},
	{"host", "PREFIX", "source or destination", 6, PREFIX, AT(host), 0, 0},
	{"proto", "NAME", "tcp, udp, icmp, icmp6, ospf, ... or a number", 7, PROTO,
	 AT(proto), 0, 255},
	{"sport", "N", "source port", 7, NUMBER, AT(sport), 1, 65535},
	{"dport", "N", "destination port", 7, NUMBER, AT(dport), 1, 65535},
	{"ttl", "N", "time to live or hop limit (64)", 1, NUMBER, AT(ttl), 0, 255},
	{"len", "N", "octets of the IP packet (84), or of the frame in hex", 1, NUMBER,
	 AT(len), 1, 65500},
	{"df", NULL, "do not fragment", 1, FLAG, AT(df), 0, 0},
	{"label", "N", "IPv6 flow label (0)", 1, NUMBER, AT(label), 0, 0xfffff},
	{"hex", "OCTETS", "the whole frame; may be combined with port and len only", 1, HEX,
	 AT(hex), 0, 0},
	{"forwarded", NULL, "only forwarded packets", 2, VERDICT, AT(verdict), 0, 0},
	{"punted", NULL, "only packets that forwarders neither sent nor dropped", 2,
	 VERDICT, AT(verdict), 0, 0},
	{"dropped", NULL, "only dropped packets", 2, VERDICT, AT(verdict), 0, 0},
	{"reason", "NAME", "only packets with this reason (`show counters all`)", 6, TEXT,
	 AT(reason), 0, 0},
	{"rx", NULL, "received packets", 4, FLAG, AT(rx), 0, 0},
	{"tx", NULL, "sent packets", 4, FLAG, AT(tx), 0, 0},
	{"drop", NULL, "dropped packets (default: rx, tx and drop)", 4, FLAG, AT(drop), 0,
	 0},
	{"snap", "N", "octets kept of each frame (1518)", 4, NUMBER, AT(snap), 14, 1920},
	{"count", "N", "stop after N packets", 6, COUNT, AT(count), 0, 0},
	{"for", "S", "stop after S seconds", 6, SECONDS, AT(for_s), 0, 0},
#undef AT
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

/* As in /etc/protocols, which a small container image may lack. */
static const struct {
	const char *name;
	int number;
} protocol[] = {
	{"icmp", 1},  {"igmp", 2},   {"tcp", 6},    {"udp", 17},   {"rsvp", 46},
	{"gre", 47},  {"esp", 50},   {"icmp6", 58}, {"eigrp", 88}, {"ospf", 89},
	{"pim", 103}, {"vrrp", 112}, {"sctp", 132},
};
#define N_PROTOCOL (sizeof(protocol) / sizeof(protocol[0]))

const char *
proto_name(int proto, char buf[16])
{
	for (unsigned int i = 0; i < N_PROTOCOL; i++)
		if (protocol[i].number == proto)
			return protocol[i].name;
	snprintf(buf, 16, "proto %d", proto);
	return buf;
}

static int
word_take_number(const struct word *k, const char *value, int *to)
{
	char want[160];
	long long n;
	int at = 0;

	for (unsigned int i = 0; k->kind == PROTO && i < N_PROTOCOL; i++)
		at += sprintf(want + at, "%s%s", i == 0 ? "one of " : ", ",
			      protocol[i].name);
	snprintf(want + at, sizeof(want) - (size_t)at, "%sa whole number from %d to %d",
		 at > 0 ? ", nor " : "", k->min, k->max);
	if (!number_whole(value, &n) || n < k->min || n > k->max)
		return number_refused(k->word, value, want);
	*to = (int)n;
	return CTL_OK;
}

static int
word_take_address(const struct word *k, const char *value, const char **to)
{
	struct prefix p;
	bool is_addr;

	if (prefix_parse(value, &p, &is_addr) < 0 || (k->kind == ADDRESS && !is_addr))
		return number_refused(k->word, value,
				      k->kind == ADDRESS ? "an address"
							 : "an address or prefix");
	*to = value;
	return CTL_OK;
}

static int
word_take_count(const struct word *k, const char *value, long long *to)
{
	long long n;

	if (!number_whole(value, &n) || n < 1 || n > COUNT_MAX)
		return number_refused(k->word, value,
				      "a whole number from 1 to 1000000000");
	*to = n;
	return CTL_OK;
}

static int
word_take_seconds(const struct word *k, const char *value, double *to)
{
	double n;

	if (!number_decimal(value, &n) || n <= 0 || n > SECONDS_MAX)
		return number_refused(k->word, value,
				      "a number of seconds above 0, 86400 at most");
	*to = n;
	return CTL_OK;
}

static int
word_take_hex(const struct word *k, const char *value, const char **to)
{
	size_t n = strspn(value, "0123456789abcdefABCDEF");

	if (n == 0 || n % 2 != 0 || value[n] != '\0')
		return number_refused(k->word, value,
				      "a frame: an even number of hexadecimal digits");
	*to = value;
	return CTL_OK;
}

static int
word_take_value(const struct word *k, const char *value, void *to)
{
	switch (k->kind) {
	case TEXT:
		if (value[0] == '\0') {
			fprintf(stderr, "fpmctl: %s needs %s\n", k->word, k->value);
			return CTL_USAGE;
		}
		*(const char **)to = value;
		return CTL_OK;
	case HEX:
		return word_take_hex(k, value, to);
	case ADDRESS:
	case PREFIX:
		return word_take_address(k, value, to);
	case PROTO:
		for (unsigned int i = 0; i < N_PROTOCOL; i++)
			if (strcmp(protocol[i].name, value) == 0) {
				*(int *)to = protocol[i].number;
				return CTL_OK;
			}
		return word_take_number(k, value, to);
	case NUMBER:
		return word_take_number(k, value, to);
	case COUNT:
		return word_take_count(k, value, to);
	case SECONDS:
		return word_take_seconds(k, value, to);
	case FLAG:
		*(bool *)to = true;
		return CTL_OK;
	case VERDICT:
		*(const char **)to = k->word;
		return CTL_OK;
	}
	return CTL_USAGE;
}

static const struct word *
word_find(const char *word, enum words_of of)
{
	for (unsigned int i = 0; i < N_KNOWN; i++)
		if ((known[i].of & of) != 0 && strcmp(known[i].word, word) == 0)
			return &known[i];
	return NULL;
}

/* Return the earlier word that sets the same field; NULL: none. */
static const struct word *
word_taken_before(const struct word *const taken[], unsigned int n, const struct word *k)
{
	for (unsigned int i = 0; i < n; i++)
		if (taken[i]->offset == k->offset)
			return taken[i];
	return NULL;
}

/* Return the family of an address or prefix, 0: not given. */
static uint8_t
text_family(const char *text)
{
	struct prefix p;

	return text != NULL && prefix_parse(text, &p, NULL) == 0 ? p.family : 0;
}

/*
 * Return the reason why no packet can match, or the word that has no effect; NULL: the
 * words agree.
 */
static const char *
words_contradiction(const struct words *w, enum words_of of)
{
	uint8_t said[] = {text_family(w->src), text_family(w->dst), text_family(w->host)};
	uint8_t family = said[0] != 0 ? said[0] : said[1] != 0 ? said[1] : said[2];
	bool ports = w->sport != 0 || w->dport != 0;

	if (w->hex != NULL && (family != 0 || ports || w->proto >= 0 || w->ttl >= 0 ||
			       w->df || w->label >= 0))
		return "hex is the whole frame: it may be combined with port and len only";
	for (unsigned int i = 0; i < 3; i++)
		if (said[i] != 0 && said[i] != family)
			return "src, dst and host are of different families";
	if (ports && w->proto >= 0 && !proto_has_ports((uint8_t)w->proto))
		return "only tcp, udp and sctp have sport and dport";
	if (family == 4 && w->label >= 0)
		return "label is for IPv6, but the addresses are IPv4";
	if (family == 6 && w->df)
		return "df is for IPv4, but the addresses are IPv6";
	if (of != WORDS_EXPLAIN && family == 6 && w->proto == PROTO_ICMP)
		return "proto icmp is for IPv4, but the addresses are IPv6: use icmp6";
	if (w->reason != NULL && w->verdict != NULL && strcmp(w->verdict, "forwarded") == 0)
		return "forwarded packets have no reason: give dropped or punted, or "
		       "neither";
	return NULL;
}

int
words_take(struct words *w, enum words_of of, int n, char **word)
{
	const struct word *taken[N_KNOWN];
	unsigned int n_taken = 0;
	const char *why;

	*w = (struct words){.proto = -1, .ttl = -1, .label = -1};
	for (int i = 0; i < n; i++) {
		const struct word *k = word_find(word[i], of), *was;
		const char *value = "";

		if (k == NULL) {
			fprintf(stderr, "fpmctl: unexpected word '%s'; the words are\n",
				word[i]);
			words_help(stderr, of);
			return CTL_USAGE;
		}
		was = word_taken_before(taken, n_taken, k);
		if (was != NULL) {
			fprintf(stderr, "fpmctl: %s after %s: give one of them, once\n",
				k->word, was->word);
			return CTL_USAGE;
		}
		taken[n_taken++] = k;
		if (k->value != NULL && ++i == n) {
			fprintf(stderr, "fpmctl: %s needs %s\n", k->word, k->value);
			return CTL_USAGE;
		}
		if (k->value != NULL)
			value = word[i];
		if (word_take_value(k, value, (char *)w + k->offset) != CTL_OK)
			return CTL_USAGE;
	}
	why = words_contradiction(w, of);
	if (why != NULL)
		fprintf(stderr, "fpmctl: %s\n", why);
	return why != NULL ? CTL_USAGE : CTL_OK;
}

void
words_help(FILE *out, enum words_of of)
{
	for (unsigned int i = 0; i < N_KNOWN; i++)
		if ((known[i].of & of) != 0)
			fprintf(out, "      %-9s %-8s %s\n", known[i].word,
				known[i].value != NULL ? known[i].value : "",
				known[i].text);
}

void
words_complete(FILE *out, enum words_of of, int n, char **word)
{
	const struct word *k = n > 0 ? word_find(word[n - 1], of) : NULL;
	bool value = k != NULL && k->value != NULL; /* the next word is a value */

	for (unsigned int i = 0; i < N_PROTOCOL && value && k->kind == PROTO; i++)
		fprintf(out, "%s ", protocol[i].name);
	for (unsigned int i = 0; i < N_KNOWN && !value; i++)
		if ((known[i].of & of) != 0)
			fprintf(out, "%s ", known[i].word);
	fputc('\n', out);
}
