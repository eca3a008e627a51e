/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of nf_tables. A script makes messages of chains, sets, elements and rules,
 * some of them broken. The ruleset that is built from them judges packets, also after
 * elements were removed and added. Nothing may crash, leak or loop. The program is compiled
 * with sanitizers.
 *
 * A libFuzzer target. An octet chooses a message, the octets behind it are its values.
 */
#include "../unit/filter_messages.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct script {
	const uint8_t *at;
	size_t left;
};

static struct messages m;

static uint8_t
next(struct script *s)
{
	if (s->left == 0)
		return 0;
	s->left--;
	return *s->at++;
}

static const char *
name_of(uint8_t i)
{
	static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	return name[i % 8];
}

static void
put_expression(struct script *s)
{
	static const char *const plain[] = {"counter", "log",   "ct",
					    "reject",  "limit", "objref"};
	static const int code[] = {NF_ACCEPT,  NF_DROP,  NFT_CONTINUE, NFT_BREAK,
				   NFT_RETURN, NFT_JUMP, NFT_GOTO,     NF_QUEUE};
	uint8_t value[16];
	uint8_t kind = next(s), a = next(s), b = next(s);
	static const uint32_t reg[] = {1, 2, 3, 4, 8, 9, 15, 16, 23, 0};
	uint32_t of = reg[a % 10];

	for (unsigned int i = 0; i < sizeof(value); i++)
		value[i] = (uint8_t)(b + i * (a & 1));
	switch (kind % 9) {
	case 0:
		put_payload(&m, b % 4, next(s), b / 4 % 20, of);
		break;
	case 1:
		put_cmp(&m, of, b % 7, value, b / 8 % 17);
		break;
	case 2:
		put_immediate(&m, code[a % 8], a % 8 >= 5 ? name_of(b) : NULL);
		break;
	case 3:
		put_lookup(&m, name_of(b), of);
		break;
	case 4:
		put_plain(&m, plain[a % 6]);
		break;
	case 5:
		expr_begin(&m, "meta");
		put_be32_attr(&m, NFTA_META_KEY, b % 20);
		put_be32_attr(&m, b < 250 ? NFTA_META_DREG : NFTA_META_SREG, of);
		expr_end(&m);
		break;
	case 6:
		expr_begin(&m, "bitwise");
		put_be32_attr(&m, NFTA_BITWISE_SREG, of);
		put_be32_attr(&m, NFTA_BITWISE_DREG, reg[b % 10]);
		put_be32_attr(&m, NFTA_BITWISE_LEN, b % 18);
		put_be32_attr(&m, NFTA_BITWISE_OP, b / 64);
		put_value(&m, NFTA_BITWISE_MASK, value, b % 18 % 17);
		put_value(&m, NFTA_BITWISE_XOR, value, b % 18 % 17);
		put_value(&m, NFTA_BITWISE_DATA, value, 4);
		expr_end(&m);
		break;
	case 7:
		expr_begin(&m, "exthdr");
		put_be32_attr(&m, NFTA_EXTHDR_DREG, of);
		mnl_attr_put_u8(m.nlh, NFTA_EXTHDR_TYPE, next(s));
		put_be32_attr(&m, NFTA_EXTHDR_OFFSET, b);
		put_be32_attr(&m, NFTA_EXTHDR_LEN, b % 5);
		put_be32_attr(&m, NFTA_EXTHDR_FLAGS, a / 128);
		expr_end(&m);
		break;
	default:
		expr_begin(&m, "byteorder");
		put_be32_attr(&m, NFTA_BYTEORDER_SREG, of);
		put_be32_attr(&m, NFTA_BYTEORDER_DREG, reg[b % 10]);
		put_be32_attr(&m, NFTA_BYTEORDER_LEN, b % 18);
		put_be32_attr(&m, NFTA_BYTEORDER_SIZE, 1u << b / 64);
		expr_end(&m);
	}
}

static void
put_message(struct script *s, uint64_t handle)
{
	uint8_t kind = next(s), a = next(s), b = next(s);
	uint8_t key[64];

	memset(key, a, sizeof(key));
	key[0] = b;
	switch (kind % 6) {
	case 0:
		put_chain(&m, name_of(a), handle, b < 128 ? -1 : (b & 3), (int8_t)a, b & 4);
		break;
	case 1:
		put_set(&m, name_of(a), b & 15, b / 16 * 4u);
		break;
	case 2:
		put_element(&m, name_of(a), key, b / 16 * 4u, b & 3);
		break;
	case 3: /* so many elements that the set uses a Poptrie */
		for (unsigned int i = 0; i < 40 && messages_have_room(&m); i++) {
			key[1] = (uint8_t)i;
			put_element(&m, name_of(a), key, b / 16 * 4u, i & b & 1);
		}
		break;
	default:
		rule_begin(&m, name_of(a), handle);
		for (unsigned int i = 0; i < b % 8u; i++)
			put_expression(s);
		rule_end(&m);
	}
	if (kind >= 250 && m.n > 0) /* change an octet in one of the messages */
		m.octet[(a << 8 | b) % m.n] ^= (uint8_t)(1 + kind % 5);
}

/*
 * Judge a packet of `room` octets. The block ends with the packet, so that the sanitizer
 * finds an over-read.
 */
static void
judge(const struct ruleset *r, const uint8_t *octets, uint8_t family, unsigned int room)
{
	static const char name[16] = "wan0";
	uint8_t *ip = malloc(room);
	struct ruleset_packet p = {.ip = ip,
				   .room = room,
				   .l3_bytes = (uint16_t)room,
				   .family = family,
				   .iif = 3,
				   .oif = 4,
				   .iifname = name,
				   .oifname = name,
				   .now = 5000};

	MUST(ip != NULL);
	memcpy(ip, octets, room);
	ip[0] = family == 4 ? (uint8_t)(0x45 + (ip[0] & 1)) : 0x60;
	if (family == 4 && (ip[0] & 15u) * 4 > room)
		ip[0] = 0x45;
	MUST(ruleset_judge(r, &p) <= RULESET_REJECT);
	free(ip);
}

/* Add or remove elements of one set or of all sets, by the octets of the script. */
static void
change(struct ruleset *r, const uint8_t *data, size_t size)
{
	static struct messages elements;
	size_t k = 0;

	elements.n = 0;
	for (size_t at = 0; at < m.n;) {
		struct nlmsghdr *nlh = (struct nlmsghdr *)(m.octet + at);
		size_t step = MNL_ALIGN(nlh->nlmsg_len);

		if (nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > m.n - at)
			break;
		if ((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWSETELEM) {
			memcpy(elements.octet + elements.n, nlh, step);
			nlh = (struct nlmsghdr *)(elements.octet + elements.n);
			if (size > 0 && (data[k++ % size] & 1) != 0)
				nlh->nlmsg_type =
					NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELSETELEM;
			elements.n += step;
		}
		at += step;
	}
	(void)messages_change(&elements, r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {data, size};
	char why[FILTER_WHY];
	uint8_t octets[96];
	struct ruleset *r, *again;
	uint64_t handle = 1;

	m.n = 0;
	put_chain(&m, "a", 1000, NF_INET_FORWARD, 0, false);
	while (s.left > 0 && messages_have_room(&m))
		put_message(&s, handle++);
	r = messages_build(&m, NULL, 1, why);
	MUST((r == NULL) == (why[0] != '\0'));
	if (r == NULL)
		return 0;
	for (unsigned int i = 0; i < sizeof(octets); i++)
		octets[i] = size == 0 ? 0 : data[i % size];
	for (unsigned int room = 40; room <= sizeof(octets); room += 7) {
		judge(r, octets, 4, room - 20);
		judge(r, octets, 6, room);
	}
	again = messages_build(&m, r, 1, why);
	MUST(again != NULL && again->n_rule == r->n_rule);
	ruleset_free(r);
	judge(again, octets, 4, 60);
	change(again, data, size);
	judge(again, octets, 4, 60);
	judge(again, octets, 6, 60);
	ruleset_free(again);
	return 0;
}
