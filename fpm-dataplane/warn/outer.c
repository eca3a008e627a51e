/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the outer headers of tunnels that end in the kernel, and publish them for the
 * forwarders (base/kernel_outer.h). [warn]
 *
 * The kind and the message of a device tell most headers. The kernel reports the UDP ports
 * of WireGuard, FOU and L2TP only by generic netlink and without events, so each scan asks
 * for them. It has the families of generic netlink while it has such devices. If a request
 * fails, the ports of its family stay as they are until a later scan reads them. A device
 * that is not up receives nothing, so it is left out. The headers of IPsec are added while
 * the kernel has policies of IPsec.
 */
#include <netinet/in.h> /* before linux/in.h, which then leaves out the same definitions */

#include <errno.h>
#include <linux/fou.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/l2tp.h>
#include <linux/rtnetlink.h>
#include <linux/wireguard.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "netlink/attributes.h"
#include "netlink/device_message.h"
#include "warn/impl.h"

#define GTP_U_PORT 2152 /* 3GPP TS 29.281, 4.4.2 */
#define IPSEC_PORT 4500 /* RFC 3948, 2.1 */
#define IPCOMP     108  /* RFC 3173, 2 */
#define L2TP       115  /* RFC 3931, 4.1.1 */

/* A kind of tunnel devices. A member that is 0 does not apply. */
struct tunnel_kind {
	char name[12];
	uint8_t protocol, other; /* IP protocols of outer packets */
	uint8_t port_attr;       /* data of the device: the UDP port, in network order */
	uint8_t encap_attr;      /* data of the device: type of its encapsulation in UDP */
	uint16_t port;           /* the UDP port of all devices */
};

static const struct tunnel_kind tunnel_kinds[] = {
	{.name = "gre", .protocol = IPPROTO_GRE, .encap_attr = IFLA_GRE_ENCAP_TYPE},
	{.name = "gretap", .protocol = IPPROTO_GRE, .encap_attr = IFLA_GRE_ENCAP_TYPE},
	{.name = "erspan", .protocol = IPPROTO_GRE},
	{.name = "ip6gre", .protocol = IPPROTO_GRE, .encap_attr = IFLA_GRE_ENCAP_TYPE},
	{.name = "ip6gretap", .protocol = IPPROTO_GRE, .encap_attr = IFLA_GRE_ENCAP_TYPE},
	{.name = "ip6erspan", .protocol = IPPROTO_GRE},
	{.name = "ipip", .protocol = IPPROTO_IPIP, .encap_attr = IFLA_IPTUN_ENCAP_TYPE},
	{.name = "sit",
	 .protocol = IPPROTO_IPV6,
	 .other = IPPROTO_IPIP,
	 .encap_attr = IFLA_IPTUN_ENCAP_TYPE},
	{.name = "ip6tnl",
	 .protocol = IPPROTO_IPV6,
	 .other = IPPROTO_IPIP,
	 .encap_attr = IFLA_IPTUN_ENCAP_TYPE},
	{.name = "l2tpeth", .protocol = L2TP},
	{.name = "vxlan", .port_attr = IFLA_VXLAN_PORT},
	{.name = "geneve", .port_attr = IFLA_GENEVE_PORT},
	{.name = "bareudp", .port_attr = IFLA_BAREUDP_PORT},
	{.name = "gtp", .port = GTP_U_PORT},
};

/* --- devices -------------------------------------------------------------------------- */

/* Return a 16-bit attribute of the data of a device, in its own byte order; 0: none. */
static uint16_t
data_u16(const struct nlmsghdr *nlh, unsigned int type)
{
	size_t at = NLMSG_ALIGN(sizeof(struct ifinfomsg));
	const struct nlattr *info =
		attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) + at,
			   mnl_nlmsg_get_payload_len(nlh) - at, IFLA_LINKINFO);
	uint16_t value = 0;

	(void)attr_copy(attr_find_in(attr_find_in(info, IFLA_INFO_DATA), type), &value,
			sizeof(value));
	return value;
}

/*
 * Store a WireGuard device once: an interrupted dump is repeated, and shows devices again.
 */
static void
wireguard_note(struct outer_found *found, uint32_t ifindex)
{
	unsigned int i = 0;

	while (i < found->n_wireguard && found->wireguard[i] != ifindex)
		i++;
	if (i == WIREGUARDS_MAX)
		found->wireguard_full = true;
	else if (i == found->n_wireguard)
		found->wireguard[found->n_wireguard++] = ifindex;
}

static void
kind_note(struct outer_found *found, const struct nlmsghdr *nlh,
	  const struct tunnel_kind *kind)
{
	uint16_t port = kind->port;

	if (kind->protocol != 0)
		kernel_outer_add_protocol(&found->headers, kind->protocol);
	if (kind->other != 0)
		kernel_outer_add_protocol(&found->headers, kind->other);
	if (kind->port_attr != 0)
		port = ntohs(data_u16(nlh, kind->port_attr));
	if (port != 0)
		kernel_outer_add_udp(&found->headers, port);
	if (kind->encap_attr != 0 && data_u16(nlh, kind->encap_attr) != TUNNEL_ENCAP_NONE)
		found->fou = true;
	found->l2tp |= kind->protocol == L2TP;
}

void
outer_note(struct warn *w, const struct nlmsghdr *nlh, const struct device_message *m)
{
	struct outer_found *found = &w->outer;

	if (!m->admin_up)
		return;
	if (strcmp(m->kind, "wireguard") == 0)
		wireguard_note(found, m->ifindex);
	found->headers.pppoe |= strcmp(m->kind, "ppp") == 0;
	for (unsigned int i = 0; i < sizeof(tunnel_kinds) / sizeof(tunnel_kinds[0]); i++)
		if (strcmp(m->kind, tunnel_kinds[i].name) == 0)
			kind_note(found, nlh, &tunnel_kinds[i]);
}

/* --- UDP ports by generic netlink ----------------------------------------------------- */

/* A request for the UDP ports of a family, and the attribute that has the port. */
struct port_request {
	const char *family;
	uint8_t cmd, version;
	bool network_order;
	uint16_t attr;
};

struct port_answer {
	const struct port_request *request;
	struct kernel_outer *headers;
};

static void
on_port(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	const struct port_answer *a = ctx;
	uint16_t port = 0;

	(void)attr_copy(genl_attr(nlh, a->request->attr), &port, sizeof(port));
	if (port != 0)
		kernel_outer_add_udp(a->headers,
				     a->request->network_order ? ntohs(port) : port);
}

/* Ask for the ports of a family, or of its device `ifindex` if this is not 0. */
static int
ports_dump(struct warn *w, int fd, int family, struct port_answer *answer, uint32_t ifindex)
{
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
		struct nlattr attr;
		uint32_t ifindex;
	} request = {
		.nlh = {.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = (uint16_t)family,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.genl = {.cmd = answer->request->cmd, .version = answer->request->version},
		.attr = {.nla_len = NLA_HDRLEN + sizeof(uint32_t),
			 .nla_type = WGDEVICE_A_IFINDEX},
		.ifindex = ifindex};

	if (ifindex != 0)
		request.nlh.nlmsg_len = sizeof(request);
	return ask_dump(w, fd, &request.nlh, on_port, answer);
}

/*
 * Ask for the ports of `n` devices, or of the whole family if `device` is NULL. A device
 * may disappear before the request. The ports replace `known`; after an error they are
 * added to it.
 */
static void
ports_ask(struct warn *w, int fd, const struct port_request *of, const uint32_t *device,
	  unsigned int n, struct kernel_outer *known)
{
	struct kernel_outer headers = {0};
	struct port_answer answer = {of, &headers};
	int family = fd < 0 ? fd : genl_family(w, fd, of->family);
	int rc = family < 0 ? family : 0;

	for (unsigned int i = 0; i < n && rc == 0 && !ask_is_ending(w); i++) {
		rc = ports_dump(w, fd, family, &answer, device == NULL ? 0 : device[i]);
		if (rc == -ENODEV || rc == -EOPNOTSUPP)
			rc = 0;
	}
	if (rc < 0 && rc != -ENOENT) {
		kernel_outer_add(&headers, known);
		if (rc != -ECANCELED)
			unread_add(w, of->family, rc);
	}
	*known = headers;
}

/*
 * Ask for the ports of WireGuard. The answer also has the keys of the devices and of their
 * peers, which must not stay in memory.
 */
static void
wireguard_ask(struct warn *w, int fd)
{
	static const struct port_request of = {.family = WG_GENL_NAME,
					       .cmd = WG_CMD_GET_DEVICE,
					       .version = WG_GENL_VERSION,
					       .attr = WGDEVICE_A_LISTEN_PORT};

	ports_ask(w, fd, &of, w->outer.wireguard, w->outer.n_wireguard,
		  &w->outer_asked.wireguard);
	explicit_bzero(w->buffer, ASK_BUFFER_BYTES);
	if (w->outer.wireguard_full)
		unread_add(w, "further devices of WireGuard", -E2BIG);
}

/* Ask for the ports of the families that have devices, and add them to the headers. */
static void
ports_scan(struct warn *w)
{
	static const struct port_request fou = {.family = FOU_GENL_NAME,
						.cmd = FOU_CMD_GET,
						.version = FOU_GENL_VERSION,
						.network_order = true,
						.attr = FOU_ATTR_PORT};
	static const struct port_request l2tp = {.family = L2TP_GENL_NAME,
						 .cmd = L2TP_CMD_TUNNEL_GET,
						 .version = L2TP_GENL_VERSION,
						 .attr = L2TP_ATTR_UDP_SPORT};
	struct outer_asked *asked = &w->outer_asked;
	int fd = ask_open(NETLINK_GENERIC);

	if (w->outer.n_wireguard > 0) {
		wireguard_ask(w, fd);
		kernel_outer_add(&w->outer.headers, &asked->wireguard);
	}
	if (w->outer.fou) {
		ports_ask(w, fd, &fou, NULL, 1, &asked->fou);
		kernel_outer_add(&w->outer.headers, &asked->fou);
	}
	if (w->outer.l2tp) {
		ports_ask(w, fd, &l2tp, NULL, 1, &asked->l2tp);
		kernel_outer_add(&w->outer.headers, &asked->l2tp);
	}
	if (fd >= 0)
		close(fd);
}

/* Add the outer headers of IPsec. */
static void
ipsec_add(struct kernel_outer *headers)
{
	kernel_outer_add_protocol(headers, IPPROTO_ESP);
	kernel_outer_add_protocol(headers, IPPROTO_AH);
	kernel_outer_add_protocol(headers, IPCOMP);
	kernel_outer_add_udp(headers, IPSEC_PORT);
}

void
outer_scan(struct warn *w)
{
	if (w->outer.incomplete)
		return; /* the published headers stay */
	if (w->outer_asked.ipsec)
		ipsec_add(&w->outer.headers);
	if (w->outer.n_wireguard > 0 || w->outer.fou || w->outer.l2tp)
		ports_scan(w);
	if (!ask_is_ending(w))
		kernel_outer_publish(&w->outer.headers);
}
