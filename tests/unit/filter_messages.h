/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of nf_tables as the kernel sends them, for tests and the fuzzer of the filter.
 */
#ifndef TESTS_FILTER_MESSAGES_H
#define TESTS_FILTER_MESSAGES_H

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"

#ifndef MESSAGES_BYTES
#define MESSAGES_BYTES (1u << 17)
#endif
#define MESSAGES_ROOM 2048u /* octets that one message may need */

struct messages {
	alignas(8) uint8_t octet[MESSAGES_BYTES];
	size_t n;
	struct nlmsghdr *nlh;
	struct nlattr *list, *elem, *data;
};

static inline bool
messages_have_room(const struct messages *m)
{
	return m->n + MESSAGES_ROOM <= MESSAGES_BYTES;
}

static inline void
message_begin(struct messages *m, unsigned int type)
{
	struct nfgenmsg *nf;

	memset(m->octet + m->n, 0, MESSAGES_ROOM);
	m->nlh = mnl_nlmsg_put_header(m->octet + m->n);
	m->nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nf = mnl_nlmsg_put_extra_header(m->nlh, sizeof(*nf));
	nf->nfgen_family = NFPROTO_INET;
	mnl_attr_put_strz(m->nlh, 1, "t"); /* the table, in messages of all kinds */
}

static inline void
message_end(struct messages *m)
{
	m->n += MNL_ALIGN(m->nlh->nlmsg_len);
}

static inline void
put_be32_attr(struct messages *m, uint16_t type, uint32_t value)
{
	mnl_attr_put_u32(m->nlh, type, htonl(value));
}

/* Add a chain. `hook` below 0: it is not a base chain. */
static inline void
put_chain(struct messages *m, const char *name, uint64_t handle, int hook, int priority,
	  bool drops)
{
	struct nlattr *nest;

	message_begin(m, NFT_MSG_NEWCHAIN);
	mnl_attr_put_strz(m->nlh, NFTA_CHAIN_NAME, name);
	mnl_attr_put_u64(m->nlh, NFTA_CHAIN_HANDLE, htobe64(handle));
	if (hook >= 0) {
		nest = mnl_attr_nest_start(m->nlh, NFTA_CHAIN_HOOK);
		put_be32_attr(m, NFTA_HOOK_HOOKNUM, (uint32_t)hook);
		put_be32_attr(m, NFTA_HOOK_PRIORITY, (uint32_t)priority);
		mnl_attr_nest_end(m->nlh, nest);
		mnl_attr_put_strz(m->nlh, NFTA_CHAIN_TYPE, "filter");
		put_be32_attr(m, NFTA_CHAIN_POLICY, drops ? NF_DROP : NF_ACCEPT);
	}
	message_end(m);
}

static inline void
rule_begin(struct messages *m, const char *chain, uint64_t handle)
{
	message_begin(m, NFT_MSG_NEWRULE);
	mnl_attr_put_strz(m->nlh, NFTA_RULE_CHAIN, chain);
	mnl_attr_put_u64(m->nlh, NFTA_RULE_HANDLE, htobe64(handle));
	m->list = mnl_attr_nest_start(m->nlh, NFTA_RULE_EXPRESSIONS);
}

static inline void
rule_end(struct messages *m)
{
	mnl_attr_nest_end(m->nlh, m->list);
	message_end(m);
}

static inline void
expr_begin(struct messages *m, const char *name)
{
	m->elem = mnl_attr_nest_start(m->nlh, NFTA_LIST_ELEM);
	mnl_attr_put_strz(m->nlh, NFTA_EXPR_NAME, name);
	m->data = mnl_attr_nest_start(m->nlh, NFTA_EXPR_DATA);
}

static inline void
expr_end(struct messages *m)
{
	mnl_attr_nest_end(m->nlh, m->data);
	mnl_attr_nest_end(m->nlh, m->elem);
}

static inline void
put_value(struct messages *m, uint16_t type, const void *value, size_t len)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, type);

	mnl_attr_put(m->nlh, NFTA_DATA_VALUE, len, value);
	mnl_attr_nest_end(m->nlh, nest);
}

static inline void
put_verdict(struct messages *m, uint16_t type, int code, const char *chain)
{
	struct nlattr *nest = mnl_attr_nest_start(m->nlh, type), *verdict;

	verdict = mnl_attr_nest_start(m->nlh, NFTA_DATA_VERDICT);
	put_be32_attr(m, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain != NULL)
		mnl_attr_put_strz(m->nlh, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(m->nlh, verdict);
	mnl_attr_nest_end(m->nlh, nest);
}

static inline void
put_immediate(struct messages *m, int code, const char *chain)
{
	expr_begin(m, "immediate");
	put_be32_attr(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	put_verdict(m, NFTA_IMMEDIATE_DATA, code, chain);
	expr_end(m);
}

static inline void
put_payload(struct messages *m, uint32_t base, uint32_t at, uint32_t len, uint32_t reg)
{
	expr_begin(m, "payload");
	put_be32_attr(m, NFTA_PAYLOAD_DREG, reg);
	put_be32_attr(m, NFTA_PAYLOAD_BASE, base);
	put_be32_attr(m, NFTA_PAYLOAD_OFFSET, at);
	put_be32_attr(m, NFTA_PAYLOAD_LEN, len);
	expr_end(m);
}

static inline void
put_cmp(struct messages *m, uint32_t reg, uint32_t op, const void *value, size_t len)
{
	expr_begin(m, "cmp");
	put_be32_attr(m, NFTA_CMP_SREG, reg);
	put_be32_attr(m, NFTA_CMP_OP, op);
	put_value(m, NFTA_CMP_DATA, value, len);
	expr_end(m);
}

/* Set the DSCP of IPv4 packets, as `ip dscp set` does. */
static inline void
put_dscp_set(struct messages *m, uint8_t dscp)
{
	const uint8_t mask[2] = {0xff, 0x03}, value[2] = {0, (uint8_t)(dscp << 2)};

	put_payload(m, NFT_PAYLOAD_NETWORK_HEADER, 0, 2, NFT_REG_1);
	expr_begin(m, "bitwise");
	put_be32_attr(m, NFTA_BITWISE_SREG, NFT_REG_1);
	put_be32_attr(m, NFTA_BITWISE_DREG, NFT_REG_1);
	put_be32_attr(m, NFTA_BITWISE_LEN, 2);
	put_value(m, NFTA_BITWISE_MASK, mask, 2);
	put_value(m, NFTA_BITWISE_XOR, value, 2);
	expr_end(m);
	expr_begin(m, "payload");
	put_be32_attr(m, NFTA_PAYLOAD_SREG, NFT_REG_1);
	put_be32_attr(m, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	put_be32_attr(m, NFTA_PAYLOAD_OFFSET, 0);
	put_be32_attr(m, NFTA_PAYLOAD_LEN, 2);
	put_be32_attr(m, NFTA_PAYLOAD_CSUM_TYPE, NFT_PAYLOAD_CSUM_INET);
	put_be32_attr(m, NFTA_PAYLOAD_CSUM_OFFSET, 10);
	expr_end(m);
}

static inline void
put_fib(struct messages *m, uint32_t result, uint32_t flags, uint32_t reg)
{
	expr_begin(m, "fib");
	put_be32_attr(m, NFTA_FIB_DREG, reg);
	put_be32_attr(m, NFTA_FIB_RESULT, result);
	put_be32_attr(m, NFTA_FIB_FLAGS, flags);
	expr_end(m);
}

static inline void
put_plain(struct messages *m, const char *name)
{
	expr_begin(m, name);
	expr_end(m);
}

static inline void
put_lookup(struct messages *m, const char *set, uint32_t reg)
{
	expr_begin(m, "lookup");
	mnl_attr_put_strz(m->nlh, NFTA_LOOKUP_SET, set);
	put_be32_attr(m, NFTA_LOOKUP_SREG, reg);
	expr_end(m);
}

static inline void
put_set(struct messages *m, const char *name, uint32_t flags, uint32_t key_len)
{
	message_begin(m, NFT_MSG_NEWSET);
	mnl_attr_put_strz(m->nlh, NFTA_SET_NAME, name);
	put_be32_attr(m, NFTA_SET_FLAGS, flags);
	put_be32_attr(m, NFTA_SET_KEY_LEN, key_len);
	/* nft's numbers of types: 7 is an IPv4 address, 8 an IPv6 address. */
	put_be32_attr(m, NFTA_SET_KEY_TYPE, key_len == 4 ? 7 : key_len == 16 ? 8 : 0);
	message_end(m);
}

/* Add an element to a set, in a message of its own. */
static inline void
put_element(struct messages *m, const char *set, const void *key, size_t len,
	    uint32_t flags)
{
	struct nlattr *list, *elem;

	message_begin(m, NFT_MSG_NEWSETELEM);
	mnl_attr_put_strz(m->nlh, NFTA_SET_ELEM_LIST_SET, set);
	list = mnl_attr_nest_start(m->nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	elem = mnl_attr_nest_start(m->nlh, NFTA_LIST_ELEM);
	put_value(m, NFTA_SET_ELEM_KEY, key, len);
	put_be32_attr(m, NFTA_SET_ELEM_FLAGS, flags);
	mnl_attr_nest_end(m->nlh, elem);
	mnl_attr_nest_end(m->nlh, list);
	message_end(m);
}

/*
 * Add an element that expires in `left_ms` to a set, in a message of its own. `key` NULL:
 * the element is for all other keys.
 */
static inline void
put_timed_element(struct messages *m, const char *set, const void *key, size_t len,
		  uint64_t left_ms)
{
	const uint32_t catchall = 2; /* NFT_SET_ELEM_CATCHALL of newer headers */
	struct nlattr *list, *elem;

	message_begin(m, NFT_MSG_NEWSETELEM);
	mnl_attr_put_strz(m->nlh, NFTA_SET_ELEM_LIST_SET, set);
	list = mnl_attr_nest_start(m->nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	elem = mnl_attr_nest_start(m->nlh, NFTA_LIST_ELEM);
	if (key != NULL)
		put_value(m, NFTA_SET_ELEM_KEY, key, len);
	else
		put_be32_attr(m, NFTA_SET_ELEM_FLAGS, catchall);
	mnl_attr_put_u64(m->nlh, NFTA_SET_ELEM_EXPIRATION, htobe64(left_ms));
	mnl_attr_nest_end(m->nlh, elem);
	mnl_attr_nest_end(m->nlh, list);
	message_end(m);
}

static inline struct filter_build_conf
messages_conf(const struct ruleset *old)
{
	static const struct filter_table table = {NFPROTO_INET, "t", "", 0};
	static const struct ruleset_reclaim at_once;

	return (struct filter_build_conf){.table = &table,
					  .old = old,
					  .n_thread = 1,
					  .now = 1000,
					  .ticks_s = 1e9,
					  .reclaim = &at_once};
}

/* Build the ruleset of the messages; `old` may be NULL. */
static inline struct ruleset *
messages_build(struct messages *m, const struct ruleset *old, uint64_t table_handle,
	       char why[FILTER_WHY])
{
	struct filter_dump dump = {
		.octet = m->octet, .n = m->n, .table_handle = table_handle};
	struct filter_build_conf conf = messages_conf(old);

	return filter_build(&dump, &conf, why);
}

/* Change sets of a ruleset by messages of elements. Returns 0 or -errno. */
static inline int
messages_change(const struct messages *m, struct ruleset *r)
{
	struct filter_dump dump = {.octet = (uint8_t *)m->octet, .n = m->n};
	struct filter_build_conf conf = messages_conf(r);

	return filter_change(r, conf.table, 1, &dump, &conf, true);
}

#endif
