/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the user of the program at the other end of a connection within this host, and
 * accept or refuse clients by that user, `fpm.peer` and `fpm.users`. FPM has no
 * authentication, and an FPM client decides where every packet goes.                 [fpm]
 *
 * The kernel looks up the one socket that a connection comes from (sock_diag(7)) and
 * answers within the call. For a socket that was closed while its data was still unread the
 * kernel reports inode 0 and user 0. The user of such a peer is unknown, so it must be
 * refused.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fpm/impl.h"
#include "tap-bridge/netns.h"

/* Fill one side of an inet_diag_sockid. */
static void
sockid_fill(const struct sockaddr_storage *a, __be16 *port, __be32 addr[4], __u32 *ifindex)
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
socket_query_error(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	return mnl_nlmsg_get_payload_len(nlh) < sizeof(*e) || e->error >= 0 ? -EPROTO
									    : e->error;
}

/* Ask for the socket at `local` whose other end is at `remote`. Returns 0 or -errno. */
static int
socket_query(struct mnl_socket *nl, const struct sockaddr_storage *local,
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
	sockid_fill(local, &req->id.idiag_sport, req->id.idiag_src, &req->id.idiag_if);
	sockid_fill(remote, &req->id.idiag_dport, req->id.idiag_dst, &req->id.idiag_if);
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while ((len = mnl_socket_recvfrom(nl, buf, sizeof(buf))) >= 0) {
		nlh = (struct nlmsghdr *)buf;
		if (!mnl_nlmsg_ok(nlh, (int)len) || nlh->nlmsg_seq != seq)
			continue; /* a late answer to an earlier request */
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return socket_query_error(nlh);
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*out))
			return -EPROTO;
		memcpy(out, mnl_nlmsg_get_payload(nlh), sizeof(*out));
		return 0;
	}
	return -errno;
}

/* Return true if the error is temporary and does not show that sock_diag is missing. */
static bool
error_is_temporary(int error)
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
	/* Test with our own listening socket: a kernel without tcp_diag fails here. */
	if (rc == 0)
		rc = socket_query(nl, listening, &none, &own);
	if (rc == 0)
		*out = nl;
	else if (nl != NULL)
		mnl_socket_close(nl);
	return error_is_temporary(-rc) ? rc : rc < 0 ? -EOPNOTSUPP : 0;
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
	int rc = socket_query(nl, peer, own, &socket);

	if (rc < 0)
		return rc;
	if (socket.idiag_state != TCP_ESTABLISHED || socket.idiag_inode == 0)
		return -ENOTCONN;
	*uid = socket.idiag_uid;
	return 0;
}

bool
peer_users_all_mapped(void)
{
	unsigned int first = 1, as = 1, n = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (f != NULL && fscanf(f, "%u %u %u", &first, &as, &n) != 3)
		n = 0;
	if (f != NULL)
		fclose(f);
	return first == 0 && as == 0 && n == UINT32_MAX;
}

int
peer_query_begin(struct fpm *fpm)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	int rc;

	if (!fpm->checks_users || fpm->no_sock_diag)
		return 0;
	if (getsockname(fpm->listen_fd, (struct sockaddr *)&own, &len) < 0)
		return -errno;
	rc = peer_begin(&fpm->peers, fpm->netns, &own);
	if (rc != -EOPNOTSUPP)
		return rc;
	/* Stop these requests, because each one makes the kernel search for a module. */
	fpm->no_sock_diag = true;
	log_warn("fpm: users of connections not checked reason=no-sock-diag");
	return 0;
}

/* Write the 16 octets of an address, IPv4 as ::ffff:0:0/96 (RFC 4291, 2.5.5.2). */
static void
peer_octets(const struct sockaddr_storage *ss, uint8_t out[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (ss->ss_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)ss)->sin6_addr, 16);
		return;
	}
	memcpy(out, mapped, 12);
	memcpy(out + 12, &((const struct sockaddr_in *)ss)->sin_addr, 4);
}

/* Return true if zebra may run as that user. */
static bool
peer_user_is_allowed(struct fpm *fpm, uid_t uid)
{
	const struct fpm_from *from = &fpm->conf.from;
	unsigned int missed;

	if (uid == 0 || uid == geteuid())
		return true;
	for (unsigned int i = 0; i < from->n_user; i++)
		if (uid == from->user[i].uid)
			return true;
	if (uid == PEER_OVERFLOW_UID && !fpm->all_users_mapped) {
		if (log_allowed(&fpm->foreign_log, &missed))
			log_info("fpm: user of another namespace accepted uid=%u missed=%u",
				 uid, missed);
		return true;
	}
	if (log_allowed(&fpm->user_log, &missed))
		log_warn("fpm: connection refused reason=user uid=%u see=fpm.users "
			 "missed=%u",
			 uid, missed);
	return false;
}

/* Return true if a peer on this host may be zebra, by its user. */
static bool
peer_local_is_allowed(struct fpm *fpm, const struct sockaddr_storage *peer,
		      const struct sockaddr_storage *own)
{
	unsigned int missed;
	uid_t uid;
	int rc;

	if (fpm->peers == NULL)
		return true;
	rc = peer_uid(fpm->peers, peer, own, &uid);
	if (rc == 0)
		return peer_user_is_allowed(fpm, uid);
	/*
	 * The peer may have sent data before it closed, and the sender of that data is
	 * unknown.
	 */
	if (log_allowed(&fpm->closed_log, &missed))
		log_warn("fpm: connection refused reason=peer-closed uid=unknown "
			 "error=\"%s\" "
			 "missed=%u",
			 strerror(-rc), missed);
	return false;
}

bool
peer_is_allowed(struct fpm *fpm, int fd, const struct sockaddr_storage *peer)
{
	const struct sockaddr_storage *zebra = &fpm->conf.from.peer;
	uint8_t from[16], to[16] = {0}, listed[16];
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	unsigned int missed;

	peer_octets(peer, from);
	if (getsockname(fd, (struct sockaddr *)&own, &len) == 0)
		peer_octets(&own, to);
	if (memcmp(from, to, sizeof(to)) == 0)
		return peer_local_is_allowed(fpm, peer, &own);
	peer_octets(zebra, listed);
	if (zebra->ss_family != AF_UNSPEC && memcmp(from, listed, sizeof(listed)) == 0)
		return true;
	if (log_allowed(&fpm->address_log, &missed))
		log_warn("fpm: connection refused reason=address see=fpm.peer missed=%u",
			 missed);
	return false;
}

void
peer_address(char *out, size_t size, const struct sockaddr_storage *peer)
{
	char host[48], port[8];

	if (getnameinfo((const struct sockaddr *)peer, sizeof(*peer), host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, peer->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
			 port);
}
