/* SPDX-License-Identifier: BSD-3-Clause */
/* nft_message: decode messages of nf_tables about chains. */
#ifndef NETLINK_NFT_MESSAGE_H
#define NETLINK_NFT_MESSAGE_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

#define NFT_TEXT 64 /* octets of a name, its terminator included; the kernel allows 256 */

struct nft_chain {
	uint8_t family; /* NFPROTO_* */
	bool is_base;   /* the chain has a hook */
	bool drops;     /* the policy of the chain is not accept */
	uint32_t hook;  /* NF_INET_* or NF_NETDEV_*, of a base chain */
	uint32_t rules; /* number of rules, of a base chain */
	char table[NFT_TEXT], name[NFT_TEXT]; /* cut if longer; any octets */
	char type[16];                        /* "filter", "nat", "route" */
	const struct nlattr
		*at; /* NFTA_CHAIN_HOOK, inside the message; NULL: no base chain */
};

/*
 * Decode a message of the answer to NFT_MSG_GETCHAIN. `nlh` is 4-aligned and complete.
 * Returns 0 or -EBADMSG. `c` points into the message.                         [any thread]
 */
int nft_chain_decode(const struct nlmsghdr *nlh, struct nft_chain *c);

/*
 * Return true if the hook of the chain is on the device `name` (families netdev and inet).
 *                                                                          [any thread]
 */
bool nft_chain_is_at(const struct nft_chain *c, const char *name);

#endif
