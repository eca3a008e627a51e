/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attr: netlink attributes of a message nobody vouches for. Private to fpm/.
 *
 * Lengths are checked against what is really there, exactly: libmnl walks a message up to
 * its *aligned* end, which can lie three octets past the buffer.
 */
#ifndef FPM_ATTR_H
#define FPM_ATTR_H

#include <errno.h>
#include <libmnl/libmnl.h>
#include <string.h>

#include "base/fpm_event.h"

/* RTA_* and NHA_* of interest are below 32; those above are skipped. */
#define ATTR_MAX 32

struct attrs {
	const struct nlattr *by_type[ATTR_MAX];
};

/* Index `len` octets of attributes; the last of a kind counts. Returns 0 or -EBADMSG. */
int attrs_index(struct attrs *attrs, const void *p, size_t len);

/* Payload of exactly `size` octets, into `out`. Returns 0 or -EBADMSG. */
static inline int
attr_copy(const struct nlattr *a, void *out, size_t size)
{
	if (mnl_attr_get_payload_len(a) != size)
		return -EBADMSG;
	memcpy(out, mnl_attr_get_payload(a), size);
	return 0;
}

/* As attr_copy() when the attribute is there; `*out` stays as it is when not. */
static inline int
attrs_copy(const struct attrs *attrs, unsigned int type, void *out, size_t size)
{
	const struct nlattr *a = attrs->by_type[type];

	return a == NULL ? 0 : attr_copy(a, out, size);
}

#endif
