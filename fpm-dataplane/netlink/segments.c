/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops of SRv6 (RFC 8754, 8986, 9800): attributes in, the words of base/srv6_words.h out.
 * Any thread, no state.
 */
#include "netlink/segments.h"

#include <linux/seg6_iptunnel.h>
#include <linux/seg6_local.h>

#include "base/srv6_words.h"

static_assert(SRV6_WORDS_MAX <= FPM_WORDS_MAX, "the words fit a hop");

/*
 * Linux has some of these numbers only since 6.1, 6.6 and 7.0. End.X has LOCAL_OIF since
 * 6.17.
 */
#define LOCAL_TABLE     3
#define LOCAL_NH4       4
#define LOCAL_NH6       5
#define LOCAL_OIF       7
#define LOCAL_VRFTABLE  9
#define LOCAL_FLAVORS   11
#define FLV_OPERATION   1
#define FLV_BLOCK_BITS  2
#define FLV_NODE_BITS   3
#define IPTUNNEL_SRC    2
#define SRH_TYPE        4u
#define SRH_FIXED_BYTES 8u

/* The lengths of a SID whose message has no lengths, in RFC 9800 and Linux. */
#define BLOCK_BITS_DEFAULT 32
#define NODE_BITS_DEFAULT  16

static int
hop_refused(struct fpm_hop *hop, enum srv6_refusal refusal)
{
	hop->n_labels = 0;
	hop->refusal = (uint8_t)refusal;
	return 0;
}

/*
 * Decode a segment routing header (RFC 8754, 2) to the words of a headend. Returns the
 * number of words; 0 with a refusal; or -EBADMSG.
 */
static int
srh_decode(uint32_t mode, const uint8_t *srh, size_t len, uint32_t *word,
	   enum srv6_refusal *refusal)
{
	static const uint8_t none[3]; /* flags, tag */
	unsigned int n;

	*refusal = SRV6_TAKEN;
	if (len < SRH_FIXED_BYTES)
		return -EBADMSG;
	n = srh[4] + 1u; /* last entry */
	if (srh[2] != SRH_TYPE || len < (srh[1] + 1u) * 8 || (srh[1] + 1u) * 8 < 8 + 16 * n)
		return -EBADMSG;
	if (mode != SRV6_ENCAP && mode != SRV6_ENCAP_RED)
		*refusal = SRV6_OTHER_MODE;
	else if (40 + srv6_srh_bytes((enum srv6_mode)mode, n) > SRV6_HEAD_MAX)
		*refusal = SRV6_MANY_SEGMENTS;
	else if ((srh[1] + 1u) * 8 != SRH_FIXED_BYTES + 16 * n ||
		 memcmp(srh + 5, none, sizeof(none)) != 0)
		*refusal = SRV6_OTHER_HEADER;
	else
		return srv6_headend_pack((enum srv6_mode)mode, srh + SRH_FIXED_BYTES, n,
					 word);
	return 0;
}

static int
flavors_decode(struct srv6_sid *sid, const struct nlattr *flavors, bool *known)
{
	struct attrs nested;
	uint32_t operations = 0;

	*known = true;
	sid->block_bits = BLOCK_BITS_DEFAULT;
	sid->node_bits = NODE_BITS_DEFAULT;
	if (flavors == NULL)
		return 0;
	if (attrs_index(&nested, mnl_attr_get_payload(flavors),
			mnl_attr_get_payload_len(flavors)) < 0 ||
	    attrs_copy(&nested, FLV_OPERATION, &operations, sizeof(operations)) < 0 ||
	    attrs_copy(&nested, FLV_BLOCK_BITS, &sid->block_bits, 1) < 0 ||
	    attrs_copy(&nested, FLV_NODE_BITS, &sid->node_bits, 1) < 0)
		return -EBADMSG;
	*known = (operations &
		  ~(uint32_t)(SRV6_PSP | SRV6_USP | SRV6_USD | SRV6_NEXT_CSID)) == 0;
	sid->flavors = (uint8_t)operations;
	/* The kernel's limits: whole octets, and an argument of at least one octet. */
	if ((operations & SRV6_NEXT_CSID) != 0 &&
	    (sid->block_bits == 0 || sid->node_bits == 0 || sid->block_bits % 8 != 0 ||
	     sid->node_bits % 8 != 0 || sid->block_bits + sid->node_bits > 120))
		*known = false;
	return 0;
}

/* Set the next hop or the table that the action needs. Returns -EBADMSG without it. */
static int
action_decode(struct srv6_sid *sid, const struct attrs *attrs, bool *known)
{
	const struct nlattr *table = attr_of(attrs, LOCAL_VRFTABLE);

	*known = true;
	switch (sid->action) {
	case SRV6_END:
		return 0;
	case SRV6_END_X:
		if (attrs_copy(attrs, LOCAL_OIF, &sid->oif, sizeof(sid->oif)) < 0)
			return -EBADMSG;
		sid->family = 6;
		return attr_copy(attr_of(attrs, LOCAL_NH6), sid->hop.octet, 16);
	case SRV6_END_DX6:
		sid->family = 6;
		return attr_copy(attr_of(attrs, LOCAL_NH6), sid->hop.octet, 16);
	case SRV6_END_DX4:
		sid->family = 4;
		return attr_copy(attr_of(attrs, LOCAL_NH4), sid->hop.octet, 4);
	case SRV6_END_T:
	case SRV6_END_DT6:
	case SRV6_END_DT4:
	case SRV6_END_DT46:
		if (table == NULL)
			table = attr_of(attrs, LOCAL_TABLE);
		return attr_copy(table, &sid->table, sizeof(sid->table));
	default:
		*known = false;
		return 0;
	}
}

/* Decode the header of the policy of End.B6.Encaps. */
static int
policy_decode(struct fpm_hop *hop, struct srv6_sid *sid, const struct nlattr *srh)
{
	uint32_t word[SRV6_WORDS_MAX];
	enum srv6_refusal refusal;
	int rc = srh_decode(SRV6_ENCAP, mnl_attr_get_payload(srh),
			    mnl_attr_get_payload_len(srh), word, &refusal);

	if (rc < 0)
		return rc;
	if (refusal != SRV6_TAKEN)
		return hop_refused(hop, refusal);
	sid->policy = word;
	sid->n_policy = (uint8_t)rc;
	hop->n_labels = srv6_sid_pack(sid, hop->label);
	sid->policy = NULL;
	return 0;
}

static int
local_decode(struct fpm_hop *hop, const struct attrs *attrs)
{
	struct srv6_sid sid = {0};
	uint32_t action;
	bool known;

	if (attr_copy(attr_of(attrs, SEG6_LOCAL_ACTION), &action, sizeof(action)) < 0)
		return -EBADMSG;
	sid.action = action <= UINT8_MAX ? (uint8_t)action : 0;
	if (sid.action == SRV6_END_B6_ENCAPS && attrs_have(attrs, SEG6_LOCAL_SRH))
		return policy_decode(hop, &sid, attr_of(attrs, SEG6_LOCAL_SRH));
	if (action_decode(&sid, attrs, &known) < 0)
		return -EBADMSG;
	if (!known)
		return hop_refused(hop, SRV6_OTHER_ACTION);
	if (flavors_decode(&sid, attr_of(attrs, LOCAL_FLAVORS), &known) < 0)
		return -EBADMSG;
	if (!known)
		return hop_refused(hop, SRV6_OTHER_FLAVOR);
	/*
	 * Only End, End.X and End.T have flavors. bgpd sets NEXT-C-SID for End.DT* as well:
	 * ignore it.
	 */
	if (sid.action > SRV6_END_T)
		sid.flavors = 0;
	if (sid.action == SRV6_END_DT6 && !attrs_have(attrs, LOCAL_VRFTABLE))
		sid.flavors = SRV6_TABLE_ALONE;
	if ((sid.flavors & SRV6_NEXT_CSID) == 0)
		sid.block_bits = sid.node_bits = 0;
	hop->n_labels = srv6_sid_pack(&sid, hop->label);
	return 0;
}

/* Decode SEG6_IPTUNNEL_SRH: a mode and a segment routing header. */
static int
headend_decode(struct fpm_hop *hop, const struct attrs *attrs)
{
	const struct nlattr *tunnel = attr_of(attrs, SEG6_IPTUNNEL_SRH);
	enum srv6_refusal refusal;
	uint8_t source[16];
	uint32_t mode;
	int rc;

	if (tunnel == NULL || mnl_attr_get_payload_len(tunnel) < sizeof(mode))
		return -EBADMSG;
	memcpy(&mode, mnl_attr_get_payload(tunnel), sizeof(mode));
	rc = srh_decode(mode, (const uint8_t *)mnl_attr_get_payload(tunnel) + sizeof(mode),
			mnl_attr_get_payload_len(tunnel) - sizeof(mode), hop->label,
			&refusal);
	if (rc < 0)
		return rc;
	if (refusal != SRV6_TAKEN)
		return hop_refused(hop, refusal);
	hop->n_labels = (uint8_t)rc;
	if (!attrs_have(attrs, IPTUNNEL_SRC))
		return 0;
	if (attr_copy(attr_of(attrs, IPTUNNEL_SRC), source, sizeof(source)) < 0)
		return -EBADMSG;
	hop->n_labels = srv6_headend_add_source(hop->label, hop->n_labels, source);
	return 0;
}

int
hop_segments(struct fpm_hop *hop, const struct nlattr *encap, bool local)
{
	struct attrs nested;

	hop->encap = HOP_SEG6;
	if (encap == NULL)
		return hop_refused(hop, SRV6_OTHER_ACTION);
	if (attrs_index(&nested, mnl_attr_get_payload(encap),
			mnl_attr_get_payload_len(encap)) < 0)
		return -EBADMSG;
	return local ? local_decode(hop, &nested) : headend_decode(hop, &nested);
}
