/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the kernel's next-hop objects. */
#include "ctl/kernel_nexthop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/hop_push.h"
#include "ctl/kernel_dump.h"

/* The object that is being decoded. */
struct decoded {
	struct kernel_nexthop *nh;
	const struct nlattr *encap;
	uint16_t encap_type; /* LWTUNNEL_ENCAP_*; 0: none */
};

static int
attribute_take(const struct nlattr *a, void *ctx)
{
	struct decoded *d = ctx;
	struct kernel_nexthop *nh = d->nh;
	size_t len = mnl_attr_get_payload_len(a);
	const void *value = mnl_attr_get_payload(a);

	switch (mnl_attr_get_type(a)) {
	case NHA_ID:
		if (len != sizeof(nh->id))
			return MNL_CB_ERROR;
		memcpy(&nh->id, value, sizeof(nh->id));
		break;
	case NHA_OIF:
		if (len != sizeof(nh->ifindex))
			return MNL_CB_ERROR;
		memcpy(&nh->ifindex, value, sizeof(nh->ifindex));
		break;
	case NHA_GATEWAY:
		if (len != 4 && len != 16)
			return MNL_CB_ERROR;
		inet_ntop(len == 4 ? AF_INET : AF_INET6, value, nh->via, sizeof(nh->via));
		break;
	case NHA_GROUP:
		if (len % sizeof(*nh->member) != 0 || nh->member != NULL)
			return MNL_CB_ERROR;
		nh->n_members = len / sizeof(*nh->member);
		nh->member = malloc(len + 1);
		if (nh->member == NULL)
			abort();
		memcpy(nh->member, value, len);
		break;
	case NHA_ENCAP:
		d->encap = a;
		break;
	case NHA_ENCAP_TYPE:
		if (len != sizeof(d->encap_type))
			return MNL_CB_ERROR;
		memcpy(&d->encap_type, value, sizeof(d->encap_type));
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

static void
all_on_begin(void *ctx)
{
	kernel_nexthops_free(ctx);
}

static int
all_on_message(const struct nlmsghdr *h, void *ctx)
{
	struct kernel_nexthops *all = ctx;
	const struct nhmsg *nhm = mnl_nlmsg_get_payload(h);
	struct decoded d = {0};
	struct hop_push push;

	if (h->nlmsg_type != RTM_NEWNEXTHOP)
		return 0;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*nhm)))
		return -EBADMSG;
	all->v = realloc(all->v, (all->n + 1) * sizeof(*all->v));
	if (all->v == NULL)
		abort();
	d.nh = &all->v[all->n++];
	*d.nh = (struct kernel_nexthop){.flags = (uint8_t)nhm->nh_flags};
	if (mnl_attr_parse(h, sizeof(*nhm), attribute_take, &d) < 0 ||
	    !push_kernel(&push, d.encap_type,
			 d.encap == NULL ? NULL : mnl_attr_get_payload(d.encap),
			 d.encap == NULL ? 0 : mnl_attr_get_payload_len(d.encap)))
		return -EBADMSG;
	if (push.text[0] != '\0' && (d.nh->push = strdup(push.text)) == NULL)
		abort();
	return 0;
}

static int
id_order(const void *a, const void *b)
{
	const struct kernel_nexthop *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int
kernel_nexthops_read(struct kernel_nexthops *all)
{
	int rc;

	*all = (struct kernel_nexthops){0};
	rc = kernel_dump(RTM_GETNEXTHOP, AF_UNSPEC, sizeof(struct nhmsg),
			 &(struct dump_reader){.on_begin = all_on_begin,
					       .on_message = all_on_message,
					       .ctx = all});
	if (rc < 0)
		kernel_nexthops_free(all);
	if (all->n > 0)
		qsort(all->v, all->n, sizeof(*all->v), id_order);
	return rc == -EOPNOTSUPP ? 0 : rc;
}

const struct kernel_nexthop *
kernel_nexthop_find(const struct kernel_nexthops *all, uint32_t id)
{
	const struct kernel_nexthop key = {.id = id};

	return all->n == 0 ? NULL
			   : bsearch(&key, all->v, all->n, sizeof(*all->v), id_order);
}

void
kernel_nexthops_free(struct kernel_nexthops *all)
{
	for (size_t i = 0; i < all->n; i++) {
		free(all->v[i].member);
		free(all->v[i].push);
	}
	free(all->v);
	*all = (struct kernel_nexthops){0};
}
