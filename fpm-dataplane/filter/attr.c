/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attr: read attributes of messages of nf_tables, which are not trusted. [filter]
 */
#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "filter/impl.h"
#include "netlink/attributes.h"

const struct nlattr *
message_attr(const struct nlmsghdr *nlh, unsigned int type)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh), head = sizeof(struct nfgenmsg);

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN || have < head)
		return NULL;
	return attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) + head, have - head,
			  type);
}

int
attr_be32(const struct nlattr *a, uint32_t *out)
{
	uint32_t net;

	if (a == NULL || attr_copy(a, &net, sizeof(net)) < 0)
		return -1;
	*out = ntohl(net);
	return 0;
}

int
attr_be64(const struct nlattr *a, uint64_t *out)
{
	uint64_t net;

	if (a == NULL || attr_copy(a, &net, sizeof(net)) < 0)
		return -1;
	*out = be64toh(net);
	return 0;
}

const uint8_t *
attr_value(const struct nlattr *data, unsigned int *len)
{
	const struct nlattr *value = attr_find_in(data, NFTA_DATA_VALUE);

	if (value == NULL || value->nla_len == MNL_ATTR_HDRLEN)
		return NULL;
	*len = value->nla_len - MNL_ATTR_HDRLEN;
	return (const uint8_t *)value + MNL_ATTR_HDRLEN;
}

const char *
attr_string(const struct nlattr *a)
{
	const char *text = a == NULL ? NULL : (const char *)a + MNL_ATTR_HDRLEN;

	if (text == NULL || a->nla_len == MNL_ATTR_HDRLEN ||
	    text[a->nla_len - MNL_ATTR_HDRLEN - 1] != '\0')
		return NULL;
	return text;
}

const struct filter_table *
filter_table_of(const struct filter_table *table, unsigned int n_table,
		const struct nlmsghdr *nlh, unsigned int attr)
{
	const char *name = attr_string(message_attr(nlh, attr));
	const struct nfgenmsg *nf = mnl_nlmsg_get_payload(nlh);

	for (unsigned int i = 0; name != NULL && i < n_table; i++)
		if (strcmp(name, table[i].name) == 0 && nf->nfgen_family == table[i].family)
			return &table[i];
	return NULL;
}
