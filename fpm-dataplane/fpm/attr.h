/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attr: netlink attributes of a message nobody vouches for. Private to fpm/.
 *
 * Lengths are checked against what is really there, exactly: libmnl walks a message up to
 * its *aligned* end, which can lie three octets past the buffer. Its one-line functions are
 * calls into a shared object, five an attribute: what a full table needs of them is here.
 */
#ifndef FPM_ATTR_H
#define FPM_ATTR_H

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <string.h>

#include "base/fpm_event.h"

/* RTA_* and NHA_* of interest are below 32; those above are skipped. */
#define ATTR_MAX 32

struct attrs {
	uint32_t have; /* a bit a type: the others of by_type are not set */
	const struct nlattr *by_type[ATTR_MAX];
};
static_assert(ATTR_MAX <= 32, "a bit a type");

static inline bool
attrs_have(const struct attrs *attrs, unsigned int type)
{
	return attrs->have >> type & 1;
}

/* NULL when there is none. */
static inline const struct nlattr *
attr_of(const struct attrs *attrs, unsigned int type)
{
	return attrs_have(attrs, type) ? attrs->by_type[type] : NULL;
}

/* Index `len` octets of attributes; the last of a kind counts. Returns 0 or -EBADMSG. */
static inline int
attrs_index(struct attrs *attrs, const void *p, size_t len)
{
	const uint8_t *at = p;

	attrs->have = 0;
	while (len > 0) {
		const struct nlattr *a = (const struct nlattr *)at;
		unsigned int type;
		size_t step;

		if (len < MNL_ATTR_HDRLEN || a->nla_len < MNL_ATTR_HDRLEN ||
		    a->nla_len > len)
			return -EBADMSG;
		type = a->nla_type & NLA_TYPE_MASK;
		if (type < ATTR_MAX) {
			attrs->by_type[type] = a;
			attrs->have |= 1u << type;
		}
		step = MNL_ALIGN(a->nla_len);
		if (step >= len)
			break; /* the last one may lack its padding */
		at += step;
		len -= step;
	}
	return 0;
}

/* Payload of exactly `size` octets, into `out`. Returns 0 or -EBADMSG. */
static inline int
attr_copy(const struct nlattr *a, void *out, size_t size)
{
	if (a->nla_len != MNL_ATTR_HDRLEN + size)
		return -EBADMSG;
	memcpy(out, (const uint8_t *)a + MNL_ATTR_HDRLEN, size);
	return 0;
}

/* As attr_copy() when the attribute is there; `*out` stays as it is when not. */
static inline int
attrs_copy(const struct attrs *attrs, unsigned int type, void *out, size_t size)
{
	const struct nlattr *a = attr_of(attrs, type);

	return a == NULL ? 0 : attr_copy(a, out, size);
}

#endif
