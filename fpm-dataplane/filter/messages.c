/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages: keep messages of the kernel one after another. [filter]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/impl.h"

int
filter_dump_append(struct filter_dump *d, const struct nlmsghdr *nlh)
{
	size_t step = MNL_ALIGN(nlh->nlmsg_len);

	if (d->n + step > d->room) {
		size_t room = d->room == 0 ? 1u << 16 : d->room * 2;
		uint8_t *more;

		while (room < d->n + step)
			room *= 2;
		if (room > FILTER_DUMP_MAX)
			return -EMSGSIZE;
		more = realloc(d->octet, room);
		if (more == NULL)
			return -ENOMEM;
		d->octet = more;
		d->room = room;
	}
	memset(d->octet + d->n, 0, step);
	memcpy(d->octet + d->n, nlh, nlh->nlmsg_len);
	d->n += step;
	return 0;
}

void
filter_dump_each(const struct filter_dump *dump,
		 void (*fn)(const struct nlmsghdr *nlh, void *ctx), void *ctx)
{
	for (size_t at = 0; at + sizeof(struct nlmsghdr) <= dump->n;) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(dump->octet + at);

		if (nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > dump->n - at)
			return;
		fn(nlh, ctx);
		at += MNL_ALIGN(nlh->nlmsg_len);
	}
}
