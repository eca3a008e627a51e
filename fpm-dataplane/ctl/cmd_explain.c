/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl explain`: make a frame from the words, ask the daemon how it would handle the
 * frame, and print the answer. Fields that were not given are guessed, and the guess is
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/prefix.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/print_rows.h"
#include "ctl/words.h"

#define L2_LEN      14
#define HEADERS_MAX 128
#define FRAME_MAX   1984 /* dist/openapi.yaml */

struct explain {
	struct words words;
	const char *socket;
	json_t *ports;      /* rows of `show ports`; VLANs, macvlans of `show interfaces` */
	json_t *interfaces; /* rows of `show interfaces` */
	const json_t *port;
	struct prefix src, dst;
	uint8_t frame[HEADERS_MAX];
	unsigned int n_frame, frame_bytes;
	json_t *answer;
};

/*
 * Find a port or VLAN by an alternative name (`ip link property`). The daemon resolves it.
 */
static const json_t *
port_find_alternative(const struct explain *e, const char *name)
{
	static const char *const among[] = {"ports", "interfaces"};
	const json_t *port = NULL;

	for (unsigned int i = 0; i < sizeof(among) / sizeof(among[0]) && port == NULL;
	     i++) {
		json_t *rows = json_array();

		if (conn_fetch(e->socket,
			       json_pack("{s:s, s:s}", "show", among[i], "name", name),
			       rows) == CTL_OK)
			port = row_named(e->ports,
					 row_str(json_array_get(rows, 0), "name"));
		json_decref(rows);
	}
	return port;
}

static const char *
port_address(const json_t *port, uint8_t family)
{
	return row_str(port, family == 4 ? "addresses4" : "addresses6");
}

/* Return the port of the route to the source, or else the first port with an address. */
static const json_t *
port_guess(const struct explain *e, const char *src)
{
	json_t *rows = json_array();
	const json_t *hop, *port = NULL;
	size_t i;

	if (src != NULL &&
	    conn_fetch(e->socket, json_pack("{s:s, s:s}", "show", "routes", "prefix", src),
		       rows) == CTL_OK) {
		hop = json_array_get(json_object_get(json_array_get(rows, 0), "nexthops"),
				     0);
		port = row_named(e->ports, row_str(hop, "dev"));
	}
	json_decref(rows);
	if (port != NULL)
		return port;
	json_array_foreach (e->ports, i, port)
		if (port_address(port, e->dst.family)[0] != '\0')
			return port;
	return json_array_get(e->ports, 0);
}

static int
port_choose(struct explain *e)
{
	const char *name = e->words.port;

	e->port = name != NULL ? row_named(e->ports, name) : port_guess(e, e->words.src);
	if (e->port == NULL && name != NULL)
		e->port = port_find_alternative(e, name);
	if (e->port != NULL)
		return CTL_OK;
	if (name != NULL)
		fprintf(stderr,
			"fpmctl: no port or VLAN '%s'; `fpmctl show interfaces` lists "
			"them\n",
			name);
	else
		fputs("fpmctl: no port can receive the packet; see `fpmctl show log`\n",
		      stderr);
	return CTL_USAGE;
}

/*
 * Return the length of the subnet of an address of the port; 0: the address is that of
 * another interface.
 */
static unsigned int
subnet_length(const struct explain *e, const char *own)
{
	const json_t *row, *one;
	size_t i, k, n = strlen(own);

	json_array_foreach (e->interfaces, i, row) {
		if (row_int(row, "ifindex") != row_int(e->port, "ifindex"))
			continue;
		json_array_foreach (json_object_get(row, "addresses"), k, one) {
			const char *text = item_str(one);

			if (strncmp(text, own, n) == 0 && text[n] == '/')
				return (unsigned int)strtoul(text + n + 1, NULL, 10);
		}
	}
	return 0;
}

/*
 * Choose a source: an address next to the port's own. A subnet of two addresses has only
 * one (RFC 3021, RFC 6164).
 */
static int
src_choose(struct explain *e)
{
	const char *own = port_address(e->port, e->dst.family);
	uint8_t *last = &e->src.addr.octet[family_octets(e->dst.family) - 1];

	if (e->words.src != NULL)
		return prefix_parse(e->words.src, &e->src, NULL) == 0 ? CTL_OK : CTL_USAGE;
	if (prefix_parse(own, &e->src, NULL) < 0) {
		fprintf(stderr,
			"fpmctl: port %s has no IPv%d address to choose a source from: "
			"give src\n",
			row_str(e->port, "name"), e->dst.family);
		return CTL_USAGE;
	}
	if (subnet_length(e, own) == family_bits(e->dst.family) - 1)
		*last ^= 1;
	else if (*last == 0 || (*last % 2 != 0 && *last != 255))
		++*last;
	else
		--*last;
	return CTL_OK;
}

/*
 * Write the fields above IP that the flow hash and the classes read. Returns the number of
 * octets.
 */
static unsigned int
upper_put(const struct words *w, uint8_t *p, int proto, unsigned int room)
{
	memset(p, 0, 20);
	if (proto == 1 || proto == 58) {
		p[0] = proto == 1 ? 8 : 128; /* echo request */
		return 8;
	}
	if (!proto_has_ports((uint8_t)proto))
		return 0;
	put_be16(p, (uint16_t)(w->sport != 0 ? w->sport : 49152));
	put_be16(p + 2, (uint16_t)(w->dport != 0 ? w->dport : 33434));
	if (proto == 17)
		put_be16(p + 4, (uint16_t)room);
	if (proto == 6)
		p[12] = 5 << 4;
	return proto == 6 ? 20 : 8;
}

static int
frame_make(struct explain *e)
{
	const struct words *w = &e->words;
	uint8_t family = e->dst.family, *ip = e->frame + L2_LEN;
	unsigned int header = family == 4 ? 20 : 40, upper;
	unsigned int len = w->len > 0 ? (unsigned int)w->len : 84;
	int proto = w->proto >= 0 ? w->proto : 17;
	uint8_t ttl = (uint8_t)(w->ttl >= 0 ? w->ttl : 64);
	unsigned int mac[6] = {0};

	if (proto == 1 && family == 6)
		proto = 58; /* `icmp` stands for a ping, also with IPv6 */
	sscanf(row_str(e->port, "mac"), "%2x:%2x:%2x:%2x:%2x:%2x", &mac[0], &mac[1],
	       &mac[2], &mac[3], &mac[4], &mac[5]);
	for (int i = 0; i < 6; i++)
		e->frame[i] = (uint8_t)mac[i];
	e->frame[6] = 2; /* a locally administered address */
	put_be16(e->frame + 12, family == 4 ? 0x0800 : 0x86dd);
	upper = upper_put(w, ip + header, proto, len - header);
	if (len < header + upper) {
		fprintf(stderr, "fpmctl: len must be at least %u for this packet\n",
			header + upper);
		return CTL_USAGE;
	}
	if (family == 4) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)len);
		put_be16(ip + 6, w->df ? 0x4000 : 0);
		ip[8] = ttl;
		ip[9] = (uint8_t)proto;
		memcpy(ip + 12, e->src.addr.octet, 4);
		memcpy(ip + 16, e->dst.addr.octet, 4);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	} else {
		put_be32(ip, 6u << 28 | (uint32_t)(w->label > 0 ? w->label : 0));
		put_be16(ip + 4, (uint16_t)(len - 40));
		ip[6] = (uint8_t)proto;
		ip[7] = ttl;
		memcpy(ip + 8, e->src.addr.octet, 16);
		memcpy(ip + 24, e->dst.addr.octet, 16);
	}
	e->n_frame = L2_LEN + header + upper;
	e->frame_bytes = L2_LEN + len;
	return CTL_OK;
}

static char *
frame_hex(const uint8_t *data, unsigned int len)
{
	char *text = malloc(2 * len + 1);

	for (unsigned int i = 0; i < len && text != NULL; i++)
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	return text;
}

static int
packet_describe(struct explain *e)
{
	const struct words *w = &e->words;
	int rc;

	if (w->hex != NULL)
		return port_choose(e);
	(void)prefix_parse(w->dst, &e->dst, NULL); /* words_take() has checked the text */
	rc = port_choose(e);
	if (rc == CTL_OK)
		rc = src_choose(e);
	return rc == CTL_OK ? frame_make(e) : rc;
}

/* Check the words that need no daemon. Returns an exit code. */
static int
explain_check_words(const struct words *w)
{
	if (w->hex == NULL && w->dst == NULL) {
		fputs("fpmctl: explain needs dst ADDRESS, or hex OCTETS\n", stderr);
		return CTL_USAGE;
	}
	if (w->hex != NULL && w->len > 0 && (size_t)w->len < strlen(w->hex) / 2) {
		fprintf(stderr, "fpmctl: len %d is less than the %zu octets of hex\n",
			w->len, strlen(w->hex) / 2);
		return CTL_USAGE;
	}
	if (w->hex != NULL && strlen(w->hex) / 2 > FRAME_MAX) {
		fprintf(stderr,
			"fpmctl: hex has %zu octets, more than %d: use len to append "
			"zeros\n",
			strlen(w->hex) / 2, FRAME_MAX);
		return CTL_USAGE;
	}
	return CTL_OK;
}

/* Get the daemon's interfaces and ports, and the VLANs on the ports. */
static int
explain_ask_ports(struct explain *e)
{
	int rc = conn_fetch(e->socket, json_pack("{s:s}", "show", "ports"), e->ports);
	json_t *row;
	size_t i;

	if (rc == CTL_OK)
		rc = conn_fetch(e->socket, json_pack("{s:s}", "show", "interfaces"),
				e->interfaces);
	json_array_foreach (e->interfaces, i, row)
		if (row_has(row, "on"))
			json_array_append(e->ports, row);
	return rc;
}

static int
explain_ask(struct explain *e)
{
	char *made = e->words.hex == NULL ? frame_hex(e->frame, e->n_frame) : NULL;
	unsigned int bytes = e->words.hex == NULL ? e->frame_bytes
			     : e->words.len > 0   ? (unsigned int)e->words.len
						  : 0;
	json_t *request = json_pack(
		"{s:{s:s, s:s, s:i}}", "explain", "port", row_str(e->port, "name"), "frame",
		made != NULL ? made : e->words.hex, "frame_bytes", (int)bytes);
	int rc = conn_fetch(e->socket, request, e->answer);

	free(made);
	return rc;
}

static int
explain_run(const struct options *opt, int n, char **word)
{
	struct explain e = {.socket = opt->socket,
			    .ports = json_array(),
			    .interfaces = json_array(),
			    .answer = json_array()};
	const json_t *row;
	int rc = words_take(&e.words, WORDS_EXPLAIN, n, word);

	if (rc == CTL_OK)
		rc = explain_check_words(&e.words);
	if (rc == CTL_OK)
		rc = explain_ask_ports(&e);
	if (rc == CTL_OK)
		rc = packet_describe(&e);
	if (rc == CTL_OK)
		rc = explain_ask(&e);
	row = json_array_get(e.answer, 0);
	if (rc == CTL_OK && opt->json)
		json_print(e.answer);
	else if (rc == CTL_OK)
		walk_print(row);
	if (rc == CTL_OK && strcmp(row_str(row, "verdict"), "dropped") == 0)
		rc = CTL_DROPPED;
	json_decref(e.ports);
	json_decref(e.interfaces);
	json_decref(e.answer);
	return rc;
}

static void
explain_help(FILE *out)
{
	words_help(out, WORDS_EXPLAIN);
	fputs("      explain chooses values that are not given. A frame in hex that is "
	      "shorter\n"
	      "      than len is filled with zeros. Each word is given once. Words that\n"
	      "      contradict each other, or that have no effect, are refused: ports of "
	      "a\n"
	      "      protocol without ports, addresses of two families, a flow label of "
	      "IPv4.\n",
	      out);
}

static void
explain_complete(FILE *out, int n, char **word)
{
	words_complete(out, WORDS_EXPLAIN, n, word);
}

const struct command cmd_explain = {
	.name = "explain",
	.words = "dst ADDRESS | hex OCTETS [WORDS]",
	.text = "show how a packet would be handled, stage by stage; nothing is sent",
	.run = explain_run,
	.options = OPT_JSON,
	.help = explain_help,
	.complete = explain_complete,
};
