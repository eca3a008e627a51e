/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write the outer headers of tunnels, and decide which tunnels forwarders can serve. Runs
 * in neigh.
 */
#include "neigh/internal.h"

#include <string.h>

#include "fib/tunnel.h"

/* --- which tunnels -------------------------------------------------------------------- */

static bool
addr_is_any(const uint8_t addr[16])
{
	static const uint8_t any[16];

	return memcmp(addr, any, sizeof(any)) == 0;
}

static bool
addr_is_group(const struct kmon_tunnel *t, const uint8_t *addr)
{
	return t->family == 4 ? addr[0] >> 4 == 14 : addr[0] == 0xff;
}

static bool
addr_is_linklocal(const struct kmon_tunnel *t, const uint8_t *addr)
{
	return t->family == 6 && addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

const char *
tunnel_kind(const struct kmon_link *kl)
{
	static const char *const name[] = {
		[KMON_NO_TUNNEL] = NULL, [KMON_GRE] = "gre",       [KMON_IPIP] = "ipip",
		[KMON_SIT] = "sit",      [KMON_IP6GRE] = "ip6gre", [KMON_IP6TNL] = "ip6tnl",
		[KMON_VXLAN] = "vxlan"};

	return name[kl->tunnel.kind];
}

const char *
tunnel_refusal(const struct kmon_link *kl)
{
	static const char *const cannot[KMON_TUNNEL_N_CANNOT] = {
		[KMON_TUNNEL_CHECKSUM] = "checksum",
		[KMON_TUNNEL_SEQUENCE] = "sequence",
		[KMON_TUNNEL_EXTERNAL] = "external",
		[KMON_TUNNEL_ENCAP] = "udp",
		[KMON_TUNNEL_FWMARK] = "fwmark",
		[KMON_TUNNEL_ISATAP] = "isatap",
		[KMON_TUNNEL_MIP6] = "mobile-ipv6",
		[KMON_TUNNEL_DSCP_COPY] = "dscp-copy",
		[KMON_TUNNEL_NAMESPACE] = "namespace",
		[KMON_TUNNEL_MPLS] = "mpls",
		[KMON_TUNNEL_LEARNING] = "learning",
		[KMON_TUNNEL_GBP] = "gbp",
		[KMON_TUNNEL_GPE] = "gpe",
		[KMON_TUNNEL_REMCSUM] = "remcsum"};
	const struct kmon_tunnel *t = &kl->tunnel;

	if (t->cannot != KMON_TUNNEL_CAN)
		return cannot[t->cannot];
	if (t->kind != KMON_VXLAN && addr_is_any(t->remote))
		return "no-remote";
	if (t->kind != KMON_VXLAN && addr_is_group(t, t->remote))
		return "group-remote";
	if (addr_is_any(t->local))
		return "no-local";
	/* No FIB has link-local addresses. */
	return addr_is_linklocal(t, t->local) || addr_is_linklocal(t, t->remote)
		       ? "link-local"
		       : NULL;
}

/* --- outer headers -------------------------------------------------------------------- */

/* Write the header of IPv4, and of GRE if the tunnel has it. */
static void
head4_make(const struct kmon_tunnel *k, struct fib_tunnel *t)
{
	t->head[0] = 0x45;
	t->head[9] = t->gre ? PROTO_GRE : 0;
	memcpy(t->head + 12, k->local, 4);
	memcpy(t->head + 16, k->remote, 4);
	t->bytes = 20;
	t->proto_at = 9;
}

/* Write the header of IPv6, and that of options if the tunnel has a limit. */
static void
head6_make(const struct kmon_tunnel *k, struct fib_tunnel *t)
{
	uint8_t proto = t->gre ? PROTO_GRE : 0, *opt = t->head + 40;

	put_be32(t->head, 6u << 28 | k->flow_label);
	t->head[6] = t->has_limit ? PROTO_IP6_OPTS : proto;
	memcpy(t->head + 8, k->local, 16);
	memcpy(t->head + 24, k->remote, 16);
	t->bytes = 40;
	t->proto_at = 6;
	if (!t->has_limit)
		return;
	t->proto_at = 40;
	t->bytes = 48;
	opt[0] = proto;
	opt[2] = 4; /* tunnel encapsulation limit, and padding: RFC 2473, 4.1.1 */
	opt[3] = 1;
	opt[4] = k->encap_limit;
	opt[5] = 1;
	opt[6] = 1;
}

/* Set *vrf and *link. `dev` is a VRF, or a link that the outer packets must take. */
void
tunnel_below(struct neigh *n, uint32_t dev, uint16_t *vrf, uint32_t *link)
{
	const struct link *below = dev == 0 ? NULL : link_find(n, dev);

	if (below != NULL && below->known && below->kernel.vrf_table != 0) {
		*vrf = below->vrf;
		return;
	}
	*link = dev;
	if (below != NULL && below->known)
		*vrf = vrf_of(n, below);
}

bool
tunnel_below_changed(struct neigh *n, uint32_t dev, uint16_t vrf, uint32_t link)
{
	uint16_t vrf_now = 0;
	uint32_t link_now = 0;

	tunnel_below(n, dev, &vrf_now, &link_now);
	return vrf_now != vrf || link_now != link;
}

void
tunnel_copy(struct neigh *n, const struct iface *ifc, struct fib_iface *fi)
{
	const struct kmon_tunnel *k = &ifc->kernel.tunnel;
	struct fib_tunnel *t = &fi->tunnel;

	t->family = k->family;
	t->gre = tunnel_is_gre(k);
	t->inner4 = t->gre || k->proto != PROTO_IP6;
	/* An ipip tunnel in mode any accepts IPv4 and MPLS, not IPv6. */
	t->inner6 = t->gre || (k->kind != KMON_IPIP && k->proto != PROTO_IP4);
	t->has_key = k->has_in_key;
	/*
	 * Linux refuses packets of another link only for sit. For other kinds it prefers.
	 */
	t->only_link = k->kind == KMON_SIT;
	t->key = k->in_key;
	t->tos_inherit = k->tos_inherit;
	t->flow_inherit = k->flow_inherit;
	t->df = k->df;
	t->ignore_df = k->ignore_df;
	t->has_limit = k->has_encap_limit;
	t->ttl = k->ttl;
	t->tos = k->tos;
	memcpy(t->local.octet, k->local, family_octets(k->family));
	memcpy(t->remote.octet, k->remote, family_octets(k->family));
	tunnel_below(n, k->link, &t->vrf, &t->link);
	if (k->family == 4)
		head4_make(k, t);
	else
		head6_make(k, t);
	if (!t->gre)
		return;
	t->proto_at = t->bytes + 2;
	if (k->has_out_key) {
		t->head[t->bytes] = 0x20;
		put_be32(t->head + t->bytes + 4, k->out_key);
	}
	t->bytes += k->has_out_key ? 8 : 4;
}
