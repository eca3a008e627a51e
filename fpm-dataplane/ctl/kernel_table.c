/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the routes of the kernel. */
#include "ctl/kernel_table.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/kernel_dump.h"

struct table_read {
	const struct prefix *only; /* NULL: all prefixes */
	const struct route_reader *to;
	struct route_decoder *decoder;
};

static void
table_on_begin(void *ctx)
{
	const struct table_read *t = ctx;

	if (t->to->on_begin != NULL)
		t->to->on_begin(t->to->ctx);
}

static int
table_on_message(const struct nlmsghdr *h, void *ctx)
{
	const struct table_read *t = ctx;
	int rc = 0;
	struct kernel_route *r =
		h->nlmsg_type == RTM_NEWROUTE ? route_decode(t->decoder, h, &rc) : NULL;

	if (r != NULL && (t->only == NULL || prefix_equal(t->only, &r->prefix)))
		t->to->on_route(r, t->to->ctx);
	return rc;
}

int
kernel_table(uint8_t family, const struct prefix *p, const struct route_reader *to)
{
	struct table_read t = {.only = p, .to = to};
	struct kernel_nexthops nexthops = {0};
	struct kernel_link *links = NULL;
	int rc = kernel_nexthops_read(&nexthops);

	if (rc == 0)
		rc = kernel_links(&links);
	if (rc >= 0) {
		t.decoder = route_decoder_new(links, rc);
		route_decoder_set_nexthops(t.decoder, &nexthops);
		rc = kernel_dump(RTM_GETROUTE, family == 4 ? AF_INET : AF_INET6,
				 sizeof(struct rtmsg),
				 &(struct dump_reader){.on_begin = table_on_begin,
						       .on_message = table_on_message,
						       .ctx = &t});
		route_decoder_free(t.decoder);
		free(links);
	}
	kernel_nexthops_free(&nexthops);
	if (rc < 0)
		fprintf(stderr, "fpmctl: the kernel's IPv%u routes cannot be read: %s\n",
			family == 4 ? 4u : 6u,
			rc == -EINTR ? "they change too fast" : strerror(-rc));
	return rc < 0 ? -1 : 0;
}
