/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facts about a packet that Linux writes to its log (nf_log_ipv4, nf_log_ipv6), as
 * key=value. [any thread, no side effects]
 */
#include "filter/packet_text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"

#define PROTO_ICMP  1
#define PROTO_TCP   6
#define PROTO_UDP   17
#define PROTO_ICMP6 58

/* A text of limited size. Longer text is cut. */
struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void
text_add(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->at, t->left, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

static void
text_add_name(struct text *t, const char *key, const char name[16])
{
	char safe[64];

	text_add(t, " %s=%s", key, log_escape(name, strnlen(name, 16), safe, sizeof(safe)));
}

static void
tcp_flags(struct text *t, uint8_t flags)
{
	static const char *const name[] = {"fin", "syn", "rst", "psh",
					   "ack", "urg", "ece", "cwr"};
	const char *gap = " flags=";

	for (unsigned int i = 0; i < 8; i++)
		if ((flags >> i & 1) != 0) {
			text_add(t, "%s%s", gap, name[i]);
			gap = ",";
		}
}

/* Append the upper layer, of which `room` octets are present. */
static void
upper_text(struct text *t, uint8_t proto, const uint8_t *h, unsigned int room)
{
	const char *name = proto == PROTO_TCP     ? "tcp"
			   : proto == PROTO_UDP   ? "udp"
			   : proto == PROTO_ICMP  ? "icmp"
			   : proto == PROTO_ICMP6 ? "icmp6"
						  : NULL;

	if (name != NULL)
		text_add(t, " proto=%s", name);
	else
		text_add(t, " proto=%u", proto);
	if (h == NULL || room < 4)
		return;
	if (proto_has_ports(proto))
		text_add(t, " sport=%u dport=%u", get_be16(h), get_be16(h + 2));
	if (proto == PROTO_TCP && room >= 14)
		tcp_flags(t, h[13]);
	if (proto == PROTO_ICMP || proto == PROTO_ICMP6)
		text_add(t, " type=%u code=%u", h[0], h[1]);
}

static void
header_text(struct text *t, const struct logged *l)
{
	bool is4 = l->family == 4;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const uint8_t *ip = l->ip;
	int family = is4 ? AF_INET : AF_INET6;

	inet_ntop(family, ip + (is4 ? 12 : 8), src, sizeof(src));
	inet_ntop(family, ip + (is4 ? 16 : 24), dst, sizeof(dst));
	text_add(t, " src=%s dst=%s bytes=%u tos=0x%02x ttl=%u", src, dst, l->l3_bytes,
		 is4 ? ip[1] : (ip[0] & 15) << 4 | ip[1] >> 4,
		 ip[is4 ? 8 : 7] == 0 ? 0 : ip[is4 ? 8 : 7] - 1);
	if (is4)
		text_add(t, " id=%u%s", get_be16(ip + 4),
			 (get_be16(ip + 6) & 0x4000) != 0 ? " df=yes" : "");
	if (is4 && (get_be16(ip + 6) & 0x3fff) != 0)
		text_add(t, " fragment=%u", (get_be16(ip + 6) & 0x1fff) * 8);
}

const char *
packet_text(const struct logged *l, char out[PACKET_TEXT])
{
	struct text t = {out, PACKET_TEXT};
	bool has_upper = l->has_transport && !l->later && l->transport < l->octets;
	char prefix[4 * LOGGED_PREFIX];

	log_escape(l->log.prefix, strnlen(l->log.prefix, LOGGED_PREFIX), prefix,
		   sizeof(prefix));
	text_add(&t, "prefix=\"%s\"", prefix);
	if (l->log.has_group)
		text_add(&t, " group=%u", l->log.group);
	text_add_name(&t, "in", l->iifname);
	text_add_name(&t, "out", l->oifname);
	header_text(&t, l);
	if (l->has_transport)
		upper_text(&t, l->l4proto, has_upper ? l->ip + l->transport : NULL,
			   has_upper ? l->octets - l->transport : 0);
	return out;
}
