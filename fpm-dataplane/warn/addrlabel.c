/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find labels of addresses (`ip addrlabel`) that differ from those of a new namespace.
 * Linux prefers a source address with the label of the destination (RFC 6724, 5, rule 6).
 * The dataplane chooses the sources of ICMPv6 errors with the kernel's default labels.
 * [warn]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addrlabel.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "netlink/attributes.h"
#include "warn/impl.h"

/* Defaults of net/ipv6/addrlabel.c: the kernel reports them as entries, too. */
static const struct {
	const char *prefix;
	uint8_t plen;
	uint32_t label;
} usual[] = {
	{"::", 0, 1},       {"fc00::", 7, 5},  {"fec0::", 10, 11},   {"2002::", 16, 2},
	{"3ffe::", 16, 12}, {"2001::", 32, 6}, {"2001:10::", 28, 7}, {"::ffff:0:0", 96, 4},
	{"::", 96, 3},      {"::1", 128, 0},
};
#define N_USUAL (sizeof(usual) / sizeof(usual[0]))

struct labels {
	unsigned int n_usual, n_other;
};

static bool
label_is_usual(const uint8_t prefix[16], uint8_t plen, uint32_t label)
{
	uint8_t octet[16];

	for (unsigned int i = 0; i < N_USUAL; i++)
		if (plen == usual[i].plen && label == usual[i].label &&
		    inet_pton(AF_INET6, usual[i].prefix, octet) == 1 &&
		    memcmp(octet, prefix, sizeof(octet)) == 0)
			return true;
	return false;
}

static void
on_label(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh);
	const struct ifaddrlblmsg *m = mnl_nlmsg_get_payload(nlh);
	const uint8_t *at = (const uint8_t *)m + MNL_ALIGN(sizeof(*m));
	struct labels *labels = ctx;
	uint8_t prefix[16];
	uint32_t label;

	if (nlh->nlmsg_type != RTM_NEWADDRLABEL || have < MNL_ALIGN(sizeof(*m)) ||
	    m->ifal_family != AF_INET6)
		return;
	have -= MNL_ALIGN(sizeof(*m));
	if (attr_copy(attrs_find(at, have, IFAL_ADDRESS), prefix, sizeof(prefix)) < 0 ||
	    attr_copy(attrs_find(at, have, IFAL_LABEL), &label, sizeof(label)) < 0)
		return;
	if (m->ifal_index == 0 && label_is_usual(prefix, m->ifal_prefixlen, label))
		labels->n_usual++;
	else
		labels->n_other++;
}

void
addrlabel_scan(struct warn *w)
{
	struct {
		struct nlmsghdr nlh;
		struct ifaddrlblmsg m;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETADDRLABEL,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .m = {.ifal_family = AF_INET6}};
	struct labels labels = {0};
	int fd = ask_open(NETLINK_ROUTE), rc = fd;

	if (fd >= 0) {
		rc = ask_dump(w, fd, &request.nlh, on_label, &labels);
		close(fd);
	}
	/* -EOPNOTSUPP: a kernel without IPv6. */
	if (rc < 0 && rc != -EOPNOTSUPP)
		unread_add(w, "labels of addresses", rc);
	if (rc < 0 || (labels.n_usual == N_USUAL && labels.n_other == 0))
		return;
	list_add(&w->list, WARNING_ADDRLABEL, "ip addrlabel",
		 "Linux prefers sources of ICMPv6 errors whose label is that of the "
		 "receiver.",
		 "The dataplane uses the labels of a new namespace (RFC 6724).");
}
