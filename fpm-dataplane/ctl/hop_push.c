/* SPDX-License-Identifier: BSD-3-Clause */
/* Labels and SRv6 segments of next hops as text. */
#include "ctl/hop_push.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <libmnl/libmnl.h>
#include <linux/lwtunnel.h>
#include <linux/mpls_iptunnel.h>
#include <linux/seg6_iptunnel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mpls_entry.h"
#include "ctl/json_row.h"

#define REFUSED         "SRv6 refused"
#define SRH_FIXED_BYTES 8u
#define SEGMENTS_ALL    128u /* a routing header has at most 127 */
#define IPTUNNEL_SRC    2    /* SEG6_IPTUNNEL_SRC, since Linux 7.0 */

static void
push_text(struct hop_push *p, const char *before, const char *text)
{
	int n = snprintf(p->text + p->len, sizeof(p->text) - p->len, "%s%s", before, text);

	p->len += (size_t)n;
	if (p->len >= sizeof(p->text))
		p->len = sizeof(p->text) - 1;
}

/* --- labels --------------------------------------------------------------------------- */

void
push_label(struct hop_push *p, uint32_t label)
{
	char text[16];

	if (label == LABEL_IMPLICIT_NULL)
		return;
	snprintf(text, sizeof(text), "%u", label);
	push_text(p, p->n_labels++ == 0 ? "label " : "/", text);
}

/* Return the number of a label by FRR's word: "300", "Reserved (9)", or a name. */
static uint32_t
label_of_word(const char *word, size_t len)
{
	static const struct {
		const char *name;
		uint32_t label;
	} named[] = {
		{"IPv4 Explicit Null", LABEL_IPV4_EXPLICIT_NULL},
		{"Router Alert", LABEL_ROUTER_ALERT},
		{"IPv6 Explicit Null", LABEL_IPV6_EXPLICIT_NULL},
		{"implicit-null", LABEL_IMPLICIT_NULL},
		{"Entropy Label Indicator", LABEL_ENTROPY_INDICATOR},
		{"Generic Associated Channel", LABEL_GAL},
		{"OAM Alert", LABEL_OAM_ALERT},
		{"Extension", LABEL_EXTENSION},
	};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (strlen(named[i].name) == len && memcmp(named[i].name, word, len) == 0)
			return named[i].label;
	while (len > 0 && !isdigit((unsigned char)*word)) {
		word++;
		len--;
	}
	return (uint32_t)strtoul(word, NULL, 10);
}

void
push_label_words(struct hop_push *p, const char *words)
{
	for (size_t len;; words += len + 1) {
		len = strcspn(words, "/,\n");
		push_label(p, label_of_word(words, len));
		if (words[len] != '/')
			return;
	}
}

/* --- segments ------------------------------------------------------------------------- */

void
push_headend_refused(struct hop_push *p)
{
	*p = (struct hop_push){0};
	push_text(p, REFUSED, "");
}

void
push_headend(struct hop_push *p, uint32_t mode, const char *const *segments, unsigned int n,
	     const char *source)
{
	*p = (struct hop_push){0};
	if ((mode != SRV6_ENCAP && mode != SRV6_ENCAP_RED) || n == 0 ||
	    40 + srv6_srh_bytes((enum srv6_mode)mode, n) > SRV6_HEAD_MAX) {
		push_headend_refused(p);
		return;
	}
	push_text(p, mode == SRV6_ENCAP ? "H.Encaps" : "H.Encaps.Red", "");
	for (unsigned int i = 0; i < n; i++)
		push_text(p, " ", segments[i]);
	if (source != NULL)
		push_text(p, " source ", source);
}

/* --- rows of the daemon --------------------------------------------------------------- */

/* Return true for the daemon's text about a headend that it refuses (hop_srv6_json()). */
static bool
text_is_refused_headend(const char *text)
{
	for (int refusal = 0; refusal < SRV6_N_REFUSAL; refusal++)
		if (srv6_refusal_is_of_headend((uint8_t)refusal) &&
		    strstr(text, srv6_refusal_text((uint8_t)refusal)) != NULL)
			return true;
	return false;
}

void
push_row(struct hop_push *p, const json_t *hop)
{
	const char *srv6 = row_str(hop, "srv6");
	json_t *label;
	size_t i;

	*p = (struct hop_push){0};
	json_array_foreach (json_object_get(hop, "labels"), i, label)
		push_label(p, (uint32_t)json_integer_value(label));
	if (strncmp(srv6, "H.Encaps", strlen("H.Encaps")) == 0)
		push_text(p, srv6, "");
	else if (text_is_refused_headend(srv6))
		push_headend_refused(p);
}

/* --- the kernel ----------------------------------------------------------------------- */

/* Attributes 1 and 2 in RTA_ENCAP. The others are not used. */
struct nested {
	const struct nlattr *of[3];
};

static int
nested_take(const struct nlattr *a, void *ctx)
{
	struct nested *n = ctx;

	if (mnl_attr_get_type(a) < sizeof(n->of) / sizeof(n->of[0]))
		n->of[mnl_attr_get_type(a)] = a;
	return MNL_CB_OK;
}

static bool
push_kernel_labels(struct hop_push *p, const struct nlattr *stack)
{
	const uint8_t *at;
	size_t n;

	if (stack == NULL || mnl_attr_get_payload_len(stack) % 4 != 0)
		return false;
	at = mnl_attr_get_payload(stack);
	n = mnl_attr_get_payload_len(stack) / 4;
	for (size_t i = 0; i < n; i++)
		push_label(p, get_be32(at + 4 * i) >> 12);
	/* If a stack is longer, the daemon stores none of its labels. */
	if (p->n_labels > LABELS_MAX)
		*p = (struct hop_push){0};
	return true;
}

/* Set a headend by its mode and its routing header (RFC 8754, 2). */
static bool
push_kernel_segments(struct hop_push *p, const struct nlattr *tunnel,
		     const struct nlattr *source)
{
	static char text[SEGMENTS_ALL][INET6_ADDRSTRLEN];
	static const char *segment[SEGMENTS_ALL];
	char source_text[INET6_ADDRSTRLEN];
	const uint8_t *at, *srh;
	size_t len, bytes;
	unsigned int n;
	uint32_t mode;

	if (tunnel == NULL)
		return false;
	at = mnl_attr_get_payload(tunnel);
	len = mnl_attr_get_payload_len(tunnel);
	if (len < sizeof(mode) + SRH_FIXED_BYTES)
		return false;
	memcpy(&mode, at, sizeof(mode));
	srh = at + sizeof(mode);
	len -= sizeof(mode);
	bytes = (srh[1] + 1u) * 8;
	n = srh[4] + 1u;
	if (bytes > len || bytes < SRH_FIXED_BYTES + 16 * n ||
	    (source != NULL && mnl_attr_get_payload_len(source) != 16))
		return false;
	/* The daemon refuses flags, a tag and TLVs. */
	if (bytes != SRH_FIXED_BYTES + 16 * n || (srh[5] | srh[6] | srh[7]) != 0 ||
	    n > SEGMENTS_ALL) {
		push_headend_refused(p);
		return true;
	}
	/* The segment to visit first is the last one of the header. */
	for (unsigned int i = 0; i < n; i++)
		segment[i] = inet_ntop(AF_INET6, srh + SRH_FIXED_BYTES + 16 * (n - 1 - i),
				       text[i], sizeof(text[i]));
	if (source != NULL)
		inet_ntop(AF_INET6, mnl_attr_get_payload(source), source_text,
			  sizeof(source_text));
	push_headend(p, mode, segment, n, source == NULL ? NULL : source_text);
	return true;
}

bool
push_kernel(struct hop_push *p, uint16_t type, const uint8_t *at, size_t len)
{
	struct nested nested = {0};

	*p = (struct hop_push){0};
	if (type != LWTUNNEL_ENCAP_MPLS && type != LWTUNNEL_ENCAP_SEG6)
		return true;
	if (at == NULL || mnl_attr_parse_payload(at, len, nested_take, &nested) < 0)
		return false;
	return type == LWTUNNEL_ENCAP_MPLS
		       ? push_kernel_labels(p, nested.of[MPLS_IPTUNNEL_DST])
		       : push_kernel_segments(p, nested.of[SEG6_IPTUNNEL_SRH],
					      nested.of[IPTUNNEL_SRC]);
}
