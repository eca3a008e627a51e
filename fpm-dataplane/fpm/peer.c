/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose program has the other end of a connection within this host: FPM itself has no way to
 * tell, and whoever speaks it decides where every packet goes. The kernel is asked for the one
 * socket that a connection comes from (sock_diag(7)), and answers within the call. A socket
 * that was closed since, with what it had said still to be read, is nobody's there, which
 * reads as root's: such a peer is not known, and must not be let in.              [fpm]
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "fpm/server.h"
#include "tap-bridge/netns.h"

/* Into the two halves of an inet_diag_sockid. */
static void
end_put(const struct sockaddr_storage *a, __be16 *port, __be32 addr[4], __u32 *ifindex)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;

	if (a->ss_family == AF_INET6) {
		*port = a6->sin6_port;
		memcpy(addr, &a6->sin6_addr, sizeof(a6->sin6_addr));
		if (IN6_IS_ADDR_LINKLOCAL(&a6->sin6_addr))
			*ifindex = a6->sin6_scope_id;
		return;
	}
	*port = a4->sin_port;
	memcpy(addr, &a4->sin_addr, sizeof(a4->sin_addr));
}

static int
error_of(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	return mnl_nlmsg_get_payload_len(nlh) < sizeof(*e) || e->error >= 0 ? -EPROTO
									    : e->error;
}

/* The socket at `local` whose other end is at `remote`. Returns 0 or -errno. */
static int
ask(struct mnl_socket *nl, const struct sockaddr_storage *local,
    const struct sockaddr_storage *remote, struct inet_diag_msg *out)
{
	char buf[4096] __attribute__((aligned(8)));
	static uint32_t seq;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *req;
	ssize_t len;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++seq;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = (__u8)local->ss_family;
	req->sdiag_protocol = IPPROTO_TCP;
	req->idiag_states = UINT32_MAX;
	req->id.idiag_cookie[0] = req->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	end_put(local, &req->id.idiag_sport, req->id.idiag_src, &req->id.idiag_if);
	end_put(remote, &req->id.idiag_dport, req->id.idiag_dst, &req->id.idiag_if);
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while ((len = mnl_socket_recvfrom(nl, buf, sizeof(buf))) >= 0) {
		nlh = (struct nlmsghdr *)buf;
		if (!mnl_nlmsg_ok(nlh, (int)len) || nlh->nlmsg_seq != seq)
			continue; /* of a question before, whose answer did not come in time */
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return error_of(nlh);
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*out))
			return -EPROTO;
		memcpy(out, mnl_nlmsg_get_payload(nlh), sizeof(*out));
		return 0;
	}
	return -errno;
}

/* What passes, and says nothing of what the kernel can tell. */
static bool
is_scarcity(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

int
peer_begin(struct mnl_socket **out, const char *netns,
	   const struct sockaddr_storage *listening)
{
	const struct sockaddr_storage none = {.ss_family = listening->ss_family};
	struct mnl_socket *nl;
	struct netns_guard guard;
	struct inet_diag_msg own;
	int rc = netns_enter(netns, &guard);

	*out = NULL;
	if (rc < 0)
		return rc;
	nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC | SOCK_NONBLOCK);
	rc = nl == NULL ? -errno : 0;
	netns_leave(&guard);
	/* Of ours it must know; a kernel without tcp_diag does not, either. */
	if (rc == 0)
		rc = ask(nl, listening, &none, &own);
	if (rc == 0)
		*out = nl;
	else if (nl != NULL)
		mnl_socket_close(nl);
	return is_scarcity(-rc) ? rc : rc < 0 ? -EOPNOTSUPP : 0;
}

void
peer_end(struct mnl_socket **nl)
{
	if (*nl != NULL)
		mnl_socket_close(*nl);
	*nl = NULL;
}

int
peer_uid(struct mnl_socket *nl, const struct sockaddr_storage *peer,
	 const struct sockaddr_storage *own, uid_t *uid)
{
	struct inet_diag_msg socket = {0};
	int rc = ask(nl, peer, own, &socket);

	if (rc < 0)
		return rc;
	if (socket.idiag_state != TCP_ESTABLISHED || socket.idiag_inode == 0)
		return -ENOTCONN;
	*uid = socket.idiag_uid;
	return 0;
}

bool
peer_users_are_all_known(void)
{
	unsigned int first = 1, as = 1, n = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (f != NULL && fscanf(f, "%u %u %u", &first, &as, &n) != 3)
		n = 0;
	if (f != NULL)
		fclose(f);
	return first == 0 && as == 0 && n == UINT32_MAX;
}
