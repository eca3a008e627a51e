/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filters: rulesets of nft for the rows with rules. Each rule has a source prefix, a
 * protocol and a port, and drops. No frame of the benchmark matches one, so each passes all
 * of them.
 */
#define MESSAGES_BYTES (1u << 20)
#include "../../unit/filter_messages.h"

#include <stdio.h>

#include "ruleset/acl.h"
#include "tags.h"

static struct messages m;

/* ip saddr 100.64.0.0/24 (or another prefix) udp (or tcp) dport 1 (or another) drop */
static void
rule_add(unsigned int n)
{
	const uint8_t ipv4 = NFPROTO_IPV4, proto = n % 3 == 0 ? 6 : 17;
	const uint8_t net[] = {100, (uint8_t)(64 + n % 61), (uint8_t)(n * 7)};
	const uint8_t port[] = {(uint8_t)(n >> 8), (uint8_t)n};

	rule_begin(&m, "forward", 10 + n);
	expr_begin(&m, "meta");
	put_be32_attr(&m, NFTA_META_KEY, NFT_META_NFPROTO);
	put_be32_attr(&m, NFTA_META_DREG, NFT_REG_1);
	expr_end(&m);
	put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, &ipv4, 1);
	put_payload(&m, NFT_PAYLOAD_NETWORK_HEADER, 12, sizeof(net), NFT_REG_1);
	put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, net, sizeof(net));
	expr_begin(&m, "meta");
	put_be32_attr(&m, NFTA_META_KEY, NFT_META_L4PROTO);
	put_be32_attr(&m, NFTA_META_DREG, NFT_REG_1);
	expr_end(&m);
	put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, &proto, 1);
	put_payload(&m, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(port), NFT_REG_1);
	put_cmp(&m, NFT_REG_1, NFT_CMP_EQ, port, sizeof(port));
	put_immediate(&m, NF_DROP, NULL);
	rule_end(&m);
}

struct ruleset *
filter_make(unsigned int n)
{
	char why[FILTER_WHY];
	struct ruleset *r;

	m.n = 0;
	put_chain(&m, "forward", 1, NF_INET_FORWARD, 0, false);
	for (unsigned int i = 0; i < n; i++)
		rule_add(i);
	r = messages_build(&m, NULL, 1, why);
	if (r == NULL)
		fprintf(stderr, "bench_tags: %s\n", why);
	else if (ruleset_acl_build(r) > 0)
		fprintf(stderr, "bench_tags: no classifier\n");
	return r;
}
