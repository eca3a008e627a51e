/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find chains of nf_tables that forwarded packets pass. Debian's iptables creates such
 * chains, too. A chain without rules and with the policy accept changes nothing, so it
 * causes no warning. [warn]
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/filter_tables.h"
#include "base/log.h"
#include "netlink/nft_message.h"
#include "warn/impl.h"

#define HOOK_INGRESS 5 /* NF_INET_INGRESS, of the family inet */

static const char *
family_name(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_IPV6:
		return "ip6";
	case NFPROTO_NETDEV:
		return "netdev";
	default:
		return NULL; /* the kernel handles ARP; devices.c warns of bridge members */
	}
}

/* Return the name of the chain's hook; NULL: forwarded packets do not pass the chain. */
static const char *
hook_name(const struct warn *w, const struct nft_chain *c)
{
	static const char *const of_ip[] = {[NF_INET_PRE_ROUTING] = "prerouting",
					    [NF_INET_FORWARD] = "forward",
					    [NF_INET_POST_ROUTING] = "postrouting",
					    [HOOK_INGRESS] = "ingress"};
	static const char *const of_device[] = {"ingress", "egress"};
	bool at_device = c->family == NFPROTO_NETDEV || c->hook == HOOK_INGRESS;
	bool is_own = !at_device;

	for (unsigned int i = 0; i < w->n_own && !is_own; i++)
		is_own = nft_chain_is_at(c, w->own[i].name);
	if (!is_own)
		return NULL;
	if (c->family == NFPROTO_NETDEV)
		return c->hook < 2 ? of_device[c->hook] : NULL;
	return c->hook <= HOOK_INGRESS ? of_ip[c->hook] : NULL;
}

/*
 * Return true if the forwarders obey the chain: it is a forward chain of a table of the
 * filter.
 */
static bool
is_obeyed(const struct warn *w, const char *family, const struct nft_chain *c)
{
	char table[NFT_TEXT + 8];

	snprintf(table, sizeof(table), "%s %s", family, c->table);
	return c->hook == NF_INET_FORWARD && filter_tables_has(w->conf.filter, table);
}

static void
on_chain(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	char where[128], in_linux[200], table[2 * NFT_TEXT], name[2 * NFT_TEXT];
	const char *family, *hook;
	struct nft_chain c;
	bool nat;

	if ((nlh->nlmsg_type & 0xff) != NFT_MSG_NEWCHAIN || nft_chain_decode(nlh, &c) < 0 ||
	    !c.is_base || (c.rules == 0 && !c.drops))
		return;
	family = family_name(c.family);
	hook = family == NULL ? NULL : hook_name(w, &c);
	if (hook == NULL)
		return;
	if (is_obeyed(w, family, &c))
		return;
	nat = strcmp(c.type, "nat") == 0;
	snprintf(where, sizeof(where), "table %s %s, chain %s", family,
		 log_escape_name(c.table, table, sizeof(table)),
		 log_escape_name(c.name, name, sizeof(name)));
	snprintf(in_linux, sizeof(in_linux),
		 "Linux applies %u rule%s to %s at hook %s, and then the policy %s.",
		 c.rules, c.rules == 1 ? "" : "s",
		 nat ? "the first packet of each connection in transit, and translates its "
		       "addresses,"
		     : "each packet in transit",
		 hook, c.drops ? "drop" : "accept");
	list_add(&w->list, nat ? WARNING_NAT : WARNING_NFT, where, in_linux,
		 nat ? "Forwarded packets keep their addresses."
		     : "Forwarded packets do not pass the chain.");
}

void
netfilter_scan(struct warn *w)
{
	struct {
		struct nlmsghdr nlh;
		struct nfgenmsg nf;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .nf = {.nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0}};
	int fd = ask_open(NETLINK_NETFILTER), rc = fd;

	if (fd >= 0) {
		rc = ask_dump(w, fd, &request.nlh, on_chain, NULL);
		close(fd);
	}
	/* -EINVAL: the kernel has nfnetlink, but no nf_tables. */
	if (rc < 0 && rc != -EPROTONOSUPPORT && rc != -EINVAL && rc != -EOPNOTSUPP)
		unread_add(w, "nftables", rc);
}
