/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of nf_tables, see linux/netfilter/nf_tables.h. Numbers are in network order. Any
 * thread, no state, no log.
 *
 * No rule can jump to a base chain. So the use count of a base chain is the number of its
 * rules.
 */
#include "netlink/nft_message.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "netlink/attributes.h"

#define DEVICE_PREFIX 2 /* NFTA_DEVICE_PREFIX, Linux 6.18: the start of names */

/* Copy a number if the attribute is present. Returns 0 or -EBADMSG. */
static int
number_copy(const struct nlattr *a, uint32_t *out)
{
	uint32_t net;

	if (a == NULL)
		return 0;
	if (attr_copy(a, &net, sizeof(net)) < 0)
		return -EBADMSG;
	*out = ntohl(net);
	return 0;
}

int
nft_chain_decode(const struct nlmsghdr *nlh, struct nft_chain *c)
{
	const struct nfgenmsg *head = mnl_nlmsg_get_payload(nlh);
	size_t have = mnl_nlmsg_get_payload_len(nlh), len;
	const uint8_t *at = (const uint8_t *)head + sizeof(*head);
	uint32_t policy = NF_ACCEPT;

	*c = (struct nft_chain){0};
	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN || have < sizeof(*head))
		return -EBADMSG;
	len = have - sizeof(*head);
	c->family = head->nfgen_family;
	attr_text(attrs_find(at, len, NFTA_CHAIN_TABLE), c->table, sizeof(c->table));
	attr_text(attrs_find(at, len, NFTA_CHAIN_NAME), c->name, sizeof(c->name));
	attr_text(attrs_find(at, len, NFTA_CHAIN_TYPE), c->type, sizeof(c->type));
	c->at = attrs_find(at, len, NFTA_CHAIN_HOOK);
	c->is_base = c->at != NULL;
	if (number_copy(attr_find_in(c->at, NFTA_HOOK_HOOKNUM), &c->hook) < 0 ||
	    number_copy(attrs_find(at, len, NFTA_CHAIN_POLICY), &policy) < 0 ||
	    number_copy(attrs_find(at, len, NFTA_CHAIN_USE), &c->rules) < 0)
		return -EBADMSG;
	c->drops = policy != NF_ACCEPT;
	return 0;
}

/* Return true if the text of `a` is `name` or, with `prefix`, the beginning of `name`. */
static bool
device_is(const struct nlattr *a, const char *name, bool prefix)
{
	char text[NFT_TEXT];

	attr_text(a, text, sizeof(text));
	return prefix ? strncmp(name, text, strlen(text)) == 0 : strcmp(name, text) == 0;
}

bool
nft_chain_is_at(const struct nft_chain *c, const char *name)
{
	const struct nlattr *one = attr_find_in(c->at, NFTA_HOOK_DEV);
	const struct nlattr *many = attr_find_in(c->at, NFTA_HOOK_DEVS);
	const uint8_t *at;
	size_t left;

	if (one != NULL && device_is(one, name, false))
		return true;
	if (many == NULL)
		return false;
	at = (const uint8_t *)many + MNL_ATTR_HDRLEN;
	left = many->nla_len - MNL_ATTR_HDRLEN;
	while (left >= MNL_ATTR_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)at;
		unsigned int type = a->nla_type & NLA_TYPE_MASK;
		size_t step = MNL_ALIGN(a->nla_len);

		if (a->nla_len < MNL_ATTR_HDRLEN || a->nla_len > left)
			return false;
		if ((type == NFTA_DEVICE_NAME || type == DEVICE_PREFIX) &&
		    device_is(a, name, type == DEVICE_PREFIX))
			return true;
		if (step >= left)
			return false;
		at += step;
		left -= step;
	}
	return false;
}
