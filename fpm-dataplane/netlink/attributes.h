/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attributes: index the netlink attributes of an untrusted message.
 *
 * Each length is checked against the octets that are present. libmnl walks a message up to
 * its *aligned* end, which can lie three octets past the buffer. libmnl's one-line
 * functions are also calls into a shared object, five per attribute. This file has inline
 * versions of the functions that a full table needs.
 */
#ifndef NETLINK_ATTRIBUTES_H
#define NETLINK_ATTRIBUTES_H

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <string.h>

#include "base/fpm_event.h"

/* RTA_* and NHA_* in use are below 32; higher types are skipped. */
#define ATTR_MAX 32

struct attrs {
	uint32_t have; /* one bit per type; by_type is set for these types only */
	const struct nlattr *by_type[ATTR_MAX];
};
static_assert(ATTR_MAX <= 32, "a bit a type");

static inline bool
attrs_have(const struct attrs *attrs, unsigned int type)
{
	return attrs->have >> type & 1;
}

/* Return NULL if the message has no attribute of `type`. */
static inline const struct nlattr *
attr_of(const struct attrs *attrs, unsigned int type)
{
	return attrs_have(attrs, type) ? attrs->by_type[type] : NULL;
}

/* Index `len` octets of attributes; of duplicates the last wins. Returns 0 or -EBADMSG. */
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
			break; /* the last attribute may lack its padding */
		at += step;
		len -= step;
	}
	return 0;
}

/*
 * Return the last attribute of `type`, which may be above ATTR_MAX, among `len` octets of
 * attributes; NULL if there is none or the octets are malformed.
 */
static inline const struct nlattr *
attrs_find(const void *p, size_t len, unsigned int type)
{
	const struct nlattr *found = NULL;
	const uint8_t *at = p;

	while (len > 0) {
		const struct nlattr *a = (const struct nlattr *)at;
		size_t step;

		if (len < MNL_ATTR_HDRLEN || a->nla_len < MNL_ATTR_HDRLEN ||
		    a->nla_len > len)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			found = a;
		step = MNL_ALIGN(a->nla_len);
		if (step >= len)
			break;
		at += step;
		len -= step;
	}
	return found;
}

/* Call attrs_find() for the attributes inside `outer`. Returns NULL if `outer` is NULL. */
static inline const struct nlattr *
attr_find_in(const struct nlattr *outer, unsigned int type)
{
	return outer == NULL ? NULL
			     : attrs_find((const uint8_t *)outer + MNL_ATTR_HDRLEN,
					  outer->nla_len - MNL_ATTR_HDRLEN, type);
}

/*
 * Copy the text of an attribute to `out`, cut to `size` - 1 octets and terminated. A
 * missing attribute (NULL) gives an empty text.
 */
static inline void
attr_text(const struct nlattr *a, char *out, size_t size)
{
	size_t len = a == NULL ? 0 : a->nla_len - MNL_ATTR_HDRLEN;

	out[0] = '\0';
	if (len == 0)
		return;
	len = strnlen((const char *)a + MNL_ATTR_HDRLEN, len < size ? len : size - 1);
	memcpy(out, (const char *)a + MNL_ATTR_HDRLEN, len);
	out[len] = '\0';
}

/*
 * Copy a payload of exactly `size` octets to `out`. Returns 0, or -EBADMSG if `a` is NULL
 * or its payload has another size.
 */
static inline int
attr_copy(const struct nlattr *a, void *out, size_t size)
{
	if (a == NULL || a->nla_len != MNL_ATTR_HDRLEN + size)
		return -EBADMSG;
	memcpy(out, (const uint8_t *)a + MNL_ATTR_HDRLEN, size);
	return 0;
}

/* Call attr_copy() if the attribute is present; else leave `*out` unchanged. */
static inline int
attrs_copy(const struct attrs *attrs, unsigned int type, void *out, size_t size)
{
	const struct nlattr *a = attr_of(attrs, type);

	return a == NULL ? 0 : attr_copy(a, out, size);
}

#endif
