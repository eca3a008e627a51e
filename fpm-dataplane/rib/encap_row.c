/* SPDX-License-Identifier: BSD-3-Clause */
/* Describe the labels and SRv6 segments of a next hop, for rows of the ui. [rib] */
#include "rib/encap_row.h"

#include <jansson.h>

#include "base/inet.h"
#include "base/srv6_words.h"
#include "rib/impl.h"

/* Return the labels that a next hop pushes; an empty array: it pops a label. */
static json_t *
hop_labels_json(const struct rib *rib, const struct next_hop *hop)
{
	const struct stack *s = hop->stack == 0 ? NULL : stack_at(rib, hop->stack);
	json_t *array = json_array();

	for (unsigned int i = 0; s != NULL && i < s->n; i++)
		json_array_append_new(array, json_integer(stack_labels(s)[i]));
	return array;
}

static size_t
address_text(const uint32_t word[4], const char *before, char *text, size_t size)
{
	char addr[PREFIX_STRLEN];
	struct ipaddr a;

	for (unsigned int i = 0; i < 4; i++)
		put_be32(a.octet + 4 * i, word[i]);
	return (size_t)snprintf(text, size, "%s%s", before, ipaddr_str(&a, 6, addr));
}

bool
headend_text(const uint32_t *word, unsigned int n_words, char *text, size_t size)
{
	const uint32_t *source;
	enum srv6_mode mode;
	unsigned int n = srv6_headend_unpack(word, n_words, &mode, &source);
	size_t at;

	if (n == 0)
		return false;
	at = (size_t)snprintf(text, size, "%s",
			      mode == SRV6_ENCAP ? "H.Encaps" : "H.Encaps.Red");
	while (n-- > 0)
		at += address_text(word + 1 + 4 * n, " ", text + at, size - at);
	if (source != NULL)
		address_text(source, " source ", text + at, size - at);
	return true;
}

/* Write the flavors of an end point, each behind a space. Return the number of octets. */
static size_t
flavors_text(const struct srv6_sid *sid, char *text, size_t size)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} flavor[] = {{SRV6_PSP, "PSP"}, {SRV6_USP, "USP"}, {SRV6_USD, "USD"}};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(flavor) / sizeof(flavor[0]); i++)
		if ((sid->flavors & flavor[i].bit) != 0)
			at += (size_t)snprintf(text + at, size - at, " %s", flavor[i].name);
	if ((sid->flavors & SRV6_NEXT_CSID) != 0)
		at += (size_t)snprintf(text + at, size - at, " NEXT-C-SID %u/%u",
				       sid->block_bits, sid->node_bits);
	return at;
}

/*
 * Write the action of an end point as FRR names it, with its flavors: End.DT4 table 100.
 * `link`: the interface that the end point names; NULL: none, or the kernel has not
 * reported it.
 */
static void
sid_text(const struct srv6_sid *sid, const struct link *link, char *text, size_t size)
{
	static const char *const name[] = {
		[SRV6_END] = "End",
		[SRV6_END_X] = "End.X",
		[SRV6_END_T] = "End.T",
		[SRV6_END_DX6] = "End.DX6",
		[SRV6_END_DX4] = "End.DX4",
		[SRV6_END_DT6] = "End.DT6",
		[SRV6_END_DT4] = "End.DT4",
		[SRV6_END_DT46] = "End.DT46",
		[SRV6_END_B6_ENCAPS] = "End.B6.Encaps",
	};
	const char *action =
		sid->action < sizeof(name) / sizeof(name[0]) ? name[sid->action] : NULL;
	char addr[PREFIX_STRLEN];
	size_t at;

	at = (size_t)snprintf(text, size, "%s", action == NULL ? "End.?" : action);
	at += flavors_text(sid, text + at, size - at);
	if (sid->family != 0)
		at += (size_t)snprintf(text + at, size - at, " %s",
				       ipaddr_str(&sid->hop, sid->family, addr));
	if (link != NULL && link->name[0] != '\0')
		snprintf(text + at, size - at, " oif %s", link->name);
	else if (sid->oif != 0)
		snprintf(text + at, size - at, " oif %u", sid->oif);
	else if (sid->table != 0)
		snprintf(text + at, size - at, " table %u", sid->table);
	else if (sid->n_policy != 0) {
		text[at++] = ' ';
		headend_text(sid->policy, sid->n_policy, text + at, size - at);
	}
}

static json_t *
hop_srv6_json(const struct rib *rib, const struct next_hop *hop)
{
	const struct stack *s = hop->stack == 0 ? NULL : stack_at(rib, hop->stack);
	char text[SRV6_TEXT_BYTES];
	struct srv6_sid sid;

	if (s == NULL)
		snprintf(text, sizeof(text), "%s: %s",
			 leg_is_for_kernel(rib, hop) ? "by the kernel" : "unsupported",
			 srv6_refusal_text(hop->refusal));
	else if (srv6_sid_unpack(stack_labels(s), s->n, &sid))
		sid_text(&sid, sid.oif == 0 ? NULL : rib_link_find(&rib->links, sid.oif),
			 text, sizeof(text));
	else if (!headend_text(stack_labels(s), s->n, text, sizeof(text)))
		return json_null();
	return json_string(text);
}

void
row_add_label_ttl(json_t *row, uint16_t ttl)
{
	if (ttl != 0)
		json_object_set_new(row, "label_ttl", json_integer(ttl - LABEL_TTL_OWN));
}

static void
hop_add_labels(json_t *row, const struct rib *rib, const struct next_hop *hop)
{
	json_object_set_new(row, "labels", hop_labels_json(rib, hop));
	if (hop->stack != 0)
		row_add_label_ttl(row, stack_at(rib, hop->stack)->ttl);
}

void
hop_add_encap(json_t *row, const struct rib *rib, const struct next_hop *hop)
{
	if (hop->kind != PATH_NONE)
		return;
	if (hop->encap == HOP_MPLS || hop->encap == HOP_POP)
		hop_add_labels(row, rib, hop);
	else if (hop->encap == HOP_SEG6)
		json_object_set_new(row, "srv6", hop_srv6_json(rib, hop));
}
