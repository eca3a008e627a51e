/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon: compare the kernel's state with the reported state, and report the differences.
 *
 * A monitor has three sockets, opened inside the namespace. `events` joins the groups
 * before the first dump, so no change is missed: a change during a dump is in the dump and
 * in an event, and the second message about it changes nothing. `dumps` and `requests` are
 * separate, because a callback may solicit a neighbor during a dump.
 *
 * A dump marks the entries that it shows with its generation; entries with an older
 * generation are gone. Hence the first dump, a resync and the recovery from an overrun are
 * the same code, and a resync reports exactly the differences.
 *
 * The kernel continues a dump of the forwarding database (FDB) of a VXLAN device by the
 * number of entries that it has shown. For each shown entry that is deleted meanwhile, it
 * passes over another one that it has not shown, and it does not set NLM_F_DUMP_INTR. So
 * after such a dump the monitor handles the waiting events, and dumps again if one shows a
 * deletion.
 *
 * Runs in its owner's thread. kmon_dispatch() and kmon_resolve() never wait for an answer
 * that the kernel has not yet given.
 */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/rtnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tap-bridge/kmon_impl.h"
#include "tap-bridge/netns.h"

#define EVENT_BUFFER_BYTES (4 << 20)
/*
 * The largest datagram. Linux packs messages of dumps into datagrams of 32 KiB, but never
 * splits a message. The message about a port of a bridge with 4094 VLANs, each with a VNI
 * of its own, has 144 KiB. The message about a link has two lists of at most 64 KiB: the
 * alternative names, and settings of its kind, such as the source MACs of a macvlan.
 */
#define MSG_BUFFER_BYTES (256 << 10)
#define DUMP_TRIES       8
#define ANSWERS_MAX      4    /* to a dump during which entries are deleted */
#define DISPATCH_BURST   4096 /* datagrams in a call: a storm must not starve the owner */

int
kmon_errno(int nlerr)
{
	switch (nlerr < 0 ? -nlerr : nlerr) {
	case 0:
		return 0;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_DUMP_INTR:
		return -EAGAIN;
	case NLE_AGAIN: /* of a socket that waits: the kernel has not answered in time */
		return -ETIMEDOUT;
	case NLE_BUSY:
		return -EBUSY;
	case NLE_OPNOTSUPP:
	case NLE_PROTO_MISMATCH:
	case NLE_AF_NOSUPPORT:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

void
kmon_drain(struct nl_sock *sk)
{
	char octet;

	while (recv(nl_socket_get_fd(sk), &octet, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
}

/* --- IPv6 of a link: the kernel has events for few of its changes --------------------- */

static struct mirror_entry *
inet6_of(const struct kmon *km, unsigned int ifindex)
{
	struct kmon_key key = {.ifindex = ifindex};

	return mirror_find(&km->mirror[KMON_INET6], &key);
}

/*
 * Note that an IPv6 address was added or deleted, if this suggests that IPv6 of the link
 * has changed. A link that is deleted loses its addresses, too; then its entry with the
 * mark `doubted` is soon removed.
 */
static void
inet6_doubt(struct kmon *km, const struct kmon_change *addr)
{
	struct mirror_entry *e = inet6_of(km, addr->item.addr.ifindex);

	if (!addr->gone) {
		km->inet6_due |= e == NULL || e->item.inet6.off;
	} else if (e != NULL && !e->doubted) {
		e->doubted = true;
		km->n_doubted++;
	}
}

/*
 * Take the IPv6 settings of a new link from the message about the link. For a known link,
 * if the settings in the message differ, only note that the settings must be read again.
 * Those in the message may be older than the last reading, and a message about a new MTU
 * may have the old MTU of IPv6.
 */
static void
inet6_follow(struct kmon *km, struct nlmsghdr *hdr, unsigned int was_mtu_bytes)
{
	struct kmon_change change = {.kind = KMON_INET6};
	const struct mirror_entry *e, *link;
	struct kmon_key key;
	int rc;

	if (!kmon_parse_inet6_of_link(hdr, &change.item.inet6)) {
		km->inet6_due = true;
		return;
	}
	key = (struct kmon_key){.ifindex = change.item.inet6.ifindex};
	link = mirror_find(&km->mirror[KMON_LINK], &key);
	e = inet6_of(km, key.ifindex);
	if (link == NULL)
		return; /* the callback has reset the link */
	if (e == NULL && was_mtu_bytes == 0) {
		rc = kmon_apply(km, &change);
		if (rc < 0)
			km->apply_rc = rc;
		return;
	}
	km->inet6_due |= e == NULL || was_mtu_bytes != link->item.link.mtu_bytes ||
			 !kmon_item_equal(KMON_INET6, &e->item, &change.item);
}

static void
message_apply(struct kmon *km, struct nlmsghdr *hdr, const struct kmon_change *change)
{
	bool link = change->kind == KMON_LINK && !change->gone &&
		    kmon_is_watched(km, KMON_INET6);
	struct kmon_key key = {.ifindex = link ? change->item.link.ifindex : 0};
	const struct mirror_entry *was =
		link ? mirror_find(&km->mirror[KMON_LINK], &key) : NULL;
	unsigned int was_mtu_bytes = was == NULL ? 0 : was->item.link.mtu_bytes;
	int rc;

	if (change->kind == KMON_ADDR && change->item.addr.family == 6 &&
	    kmon_is_watched(km, KMON_INET6))
		inet6_doubt(km, change);
	rc = kmon_apply(km, change);
	if (rc < 0)
		km->apply_rc = rc;
	if (link)
		inet6_follow(km, hdr, was_mtu_bytes);
}

static int
kmon_on_message(struct nl_msg *msg, void *arg)
{
	struct kmon *km = arg;
	struct kmon_change change;

	/*
	 * Every process with CAP_NET_ADMIN may send to this port; accept messages of the
	 * kernel only.
	 */
	if (nlmsg_get_src(msg)->nl_pid != 0)
		return NL_SKIP;
	km->stats.events++;
	km->n_deleted += nlmsg_hdr(msg)->nlmsg_type == RTM_DELNEIGH;
	if (kmon_is_watched(km, KMON_VNI) && kmon_apply_vnis(km, nlmsg_hdr(msg)))
		return NL_OK;
	if (kmon_parse(msg, &change))
		message_apply(km, nlmsg_hdr(msg), &change);
	return NL_OK;
}

/* --- dumps ---------------------------------------------------------------------------- */

static bool
entry_is_stale(const struct mirror_entry *e, const void *arg)
{
	return e->gen != *(const uint64_t *)arg;
}

/* Return true for the errors of a kernel that does not know the request or its family. */
static bool
error_is_refusal(int nlerr)
{
	return nlerr == -NLE_OPNOTSUPP || nlerr == -NLE_AF_NOSUPPORT ||
	       nlerr == -NLE_PROTO_MISMATCH || nlerr == -NLE_INVAL;
}

/*
 * Ask for all links. With a mask of extensions the kernel makes its messages large enough
 * for the largest link. Without a mask it ends the list at a link that needs more than 32
 * KiB, and reports success (rtnl_calcit()).
 */
static int
links_request(struct nl_sock *sk)
{
	struct {
		struct ifinfomsg info;
		struct nlattr attr;
		uint32_t mask;
	} all = {.attr = {.nla_len = sizeof(all.attr) + sizeof(all.mask),
			  .nla_type = IFLA_EXT_MASK},
		 .mask = RTEXT_FILTER_SKIP_STATS};

	return nl_send_simple(sk, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all));
}

/* Ask for all forwarding databases. Here the kernel refuses the short header of a dump. */
static int
fdb_request(struct nl_sock *sk)
{
	struct ndmsg ndm = {.ndm_family = AF_BRIDGE};

	return nl_send_simple(sk, RTM_GETNEIGH, NLM_F_DUMP, &ndm, sizeof(ndm));
}

/*
 * Ask for the forwarding database of one device. The kernel reads the index of the device
 * only in this header.
 */
static int
fdb_request_of(struct nl_sock *sk, unsigned int ifindex)
{
	struct ifinfomsg of = {.ifi_family = AF_BRIDGE, .ifi_index = (int)ifindex};

	return nl_send_simple(sk, RTM_GETNEIGH, NLM_F_DUMP, &of, sizeof(of));
}

/*
 * Handle the waiting events, after an answer. Return true if the answer may lack entries,
 * because some were deleted meanwhile, or because events were lost.
 */
static bool
answer_may_lack(struct kmon *km)
{
	uint64_t before = km->n_deleted;
	int rc = 0;

	for (int i = 0; i < DISPATCH_BURST && rc >= 0; i++)
		rc = nl_recvmsgs_default(km->events);
	if (rc < 0 && rc != -NLE_AGAIN)
		km->lost_again = true;
	return rc != -NLE_AGAIN || km->n_deleted != before;
}

/*
 * Send the request for a dump of one kind of state. `ifindex`: of one device, for its
 * forwarding database; 0: of all.
 */
static int
dump_request(struct nl_sock *sk, enum kmon_kind kind, unsigned int ifindex)
{
	static const int request[KMON_N_KINDS] = {[KMON_CONF] = RTM_GETNETCONF,
						  [KMON_MPLS] = RTM_GETNETCONF,
						  [KMON_INET6] = RTM_GETLINK,
						  [KMON_ADDR] = RTM_GETADDR,
						  [KMON_NEIGH] = RTM_GETNEIGH};
	static const int family[KMON_N_KINDS] = {
		[KMON_MPLS] = AF_MPLS, [KMON_INET6] = AF_INET6};

	if (kind == KMON_LINK)
		return links_request(sk);
	if (kind == KMON_FDB)
		return ifindex == 0 ? fdb_request(sk) : fdb_request_of(sk, ifindex);
	if (kind == KMON_VNI)
		return kmon_ask_vnis(sk);
	return nl_rtgen_request(sk, request[kind], family[kind], NLM_F_DUMP);
}

/*
 * Dump one kind of state once. A kernel without MPLS sends the settings of all other
 * families when it is asked for those of MPLS (rtnl_get_link() in net/core/rtnetlink.c).
 * They are applied, and change nothing.
 */
static int
kmon_dump_once(struct kmon *km, enum kmon_kind kind, unsigned int ifindex)
{
	int rc;

	for (int i = 0; i < DUMP_TRIES; i++) {
		kmon_drain(km->dumps);
		rc = dump_request(km->dumps, kind, ifindex);
		if (rc >= 0)
			rc = nl_recvmsgs_default(km->dumps);
		/*
		 * Interrupted: the tables changed during the dump, so it may be incomplete.
		 */
		if (rc != -NLE_DUMP_INTR)
			break;
	}
	if (rc < 0 && !((kind == KMON_MPLS || kind == KMON_FDB || kind == KMON_VNI) &&
			error_is_refusal(rc)))
		return kmon_errno(rc);
	return km->apply_rc;
}

/* Dump one kind of state until an answer lacks nothing. Return -EAGAIN if none does. */
static int
kmon_dump_whole(struct kmon *km, enum kmon_kind kind, unsigned int ifindex)
{
	int rc;

	for (unsigned int i = 0; i < ANSWERS_MAX; i++) {
		rc = kmon_dump_once(km, kind, ifindex);
		if (rc < 0 || kind != KMON_FDB || !answer_may_lack(km))
			return rc;
	}
	return -EAGAIN;
}

/* Dump one kind of state. Entries that no answer has shown are gone. */
static int
kmon_dump(struct kmon *km, enum kmon_kind kind)
{
	int rc;

	km->gen++;
	rc = kmon_dump_whole(km, kind, 0);
	if (rc < 0)
		return rc;
	kmon_report_gone(km, kind,
			 mirror_remove_if(&km->mirror[kind], entry_is_stale, &km->gen));
	return 0;
}

static int
kmon_dump_all(struct kmon *km)
{
	int rc = 0;

	km->apply_rc = 0;
	km->lost = true;
	km->lost_again = false;
	kmon_drain(km->events);
	/* A kind that has no whole answer yet must not delay the others. */
	for (int kind = 0; (rc == 0 || rc == -EAGAIN) && kind < KMON_N_KINDS; kind++)
		if (kmon_is_watched(km, kind)) {
			int error = kmon_dump(km, kind);

			rc = error != 0 ? error : rc;
		}
	if (rc == 0)
		km->lost = km->lost_again;
	return rc;
}

int
kmon_resync(struct kmon *km)
{
	uint64_t before = km->n_reports;
	int rc = kmon_dump_all(km);

	if (rc < 0)
		return rc;
	km->stats.resyncs++;
	km->stats.last_resync_changes = km->n_reports - before;
	return 0;
}

int
kmon_read_inet6(struct kmon *km)
{
	km->inet6_due = false;
	km->apply_rc = 0;
	return kmon_dump(km, KMON_INET6);
}

/*
 * Read the forwarding database of one device. No entries are swept, because an event
 * reports each deletion.
 */
int
kmon_read_fdb(struct kmon *km, unsigned int ifindex)
{
	int rc;

	km->apply_rc = 0;
	rc = kmon_dump_whole(km, KMON_FDB, ifindex);
	km->lost |= km->lost_again;
	return rc;
}

bool
kmon_inet6_is_due(const struct kmon *km)
{
	return km->inet6_due || km->n_doubted > 0;
}

bool
kmon_is_lost(const struct kmon *km)
{
	return km->lost;
}

int
kmon_reset_link(struct kmon *km, unsigned int ifindex, bool again)
{
	struct kmon_key key = {.ifindex = ifindex};
	struct mirror_entry *e = mirror_find(&km->mirror[KMON_LINK], &key);

	if (e != NULL) {
		mirror_remove(&km->mirror[KMON_LINK], e);
		kmon_report_gone(km, KMON_LINK, e);
	}
	return again ? kmon_resync(km) : 0;
}

int
kmon_dispatch(struct kmon *km)
{
	for (int i = 0; i < DISPATCH_BURST && !km->lost; i++) {
		int rc = nl_recvmsgs_default(km->events);

		if (rc == -NLE_AGAIN)
			return 0;
		/* Mostly ENOBUFS. After any error, messages may be missing. */
		if (rc < 0 || km->apply_rc < 0)
			km->lost = true;
	}
	return km->lost ? kmon_resync(km) : 0;
}

/* --- opening and closing -------------------------------------------------------------- */

static int
socket_open(struct nl_sock **out, struct kmon *km)
{
	struct nl_sock *sk = nl_socket_alloc();
	int rc;

	if (sk == NULL)
		return -ENOMEM;
	/* No ACKs; the kernel reports errors without them. */
	nl_socket_disable_auto_ack(sk);
	/*
	 * Sequence numbers are not checked: events have none, and drained messages leave
	 * gaps.
	 */
	nl_socket_disable_seq_check(sk);
	rc = nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, kmon_on_message, km);
	if (rc >= 0)
		rc = nl_connect(sk, NETLINK_ROUTE);
	/* A fixed size also avoids a recv() with MSG_PEEK before each message in libnl. */
	if (rc >= 0)
		rc = nl_socket_set_msg_buf_size(sk, MSG_BUFFER_BYTES);
	if (rc < 0) {
		nl_socket_free(sk);
		return kmon_errno(rc);
	}
	*out = sk;
	return 0;
}

static int
events_open(struct kmon *km)
{
	static const int group[KMON_N_KINDS][2] = {
		[KMON_LINK] = {RTNLGRP_LINK, 0},
		[KMON_CONF] = {RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF},
		[KMON_MPLS] = {RTNLGRP_MPLS_NETCONF, 0},
		[KMON_INET6] = {RTNLGRP_IPV6_IFINFO, 0},
		[KMON_ADDR] = {RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR},
		[KMON_VNI] = {RTNLGRP_LINK, 0},
		[KMON_FDB] = {RTNLGRP_NEIGH, 0},
		[KMON_NEIGH] = {RTNLGRP_NEIGH, 0},
	};
	int size = EVENT_BUFFER_BYTES, fd, rc;

	rc = socket_open(&km->events, km);
	if (rc < 0)
		return rc;
	fd = nl_socket_get_fd(km->events);
	/* Exceed rmem_max if permitted; a smaller buffer only means earlier resyncs. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	rc = nl_socket_set_nonblocking(km->events);
	for (int kind = 0; rc >= 0 && kind < KMON_N_KINDS; kind++)
		if (kmon_is_watched(km, kind))
			rc = nl_socket_add_memberships(km->events, group[kind][0],
						       group[kind][1], 0);
	return kmon_errno(rc);
}

static int
requests_open(struct kmon *km)
{
	struct timeval limit = {.tv_sec = 10};
	int rc = socket_open(&km->dumps, km);

	/* A dump ends by itself; the limit is for a kernel that does not end it. */
	if (rc == 0 && setsockopt(nl_socket_get_fd(km->dumps), SOL_SOCKET, SO_RCVTIMEO,
				  &limit, sizeof(limit)) < 0)
		rc = -errno;
	if (rc == 0)
		rc = socket_open(&km->requests, km);
	return rc;
}

int
kmon_open(struct kmon **out, const char *netns, const struct kmon_ops *ops, void *ctx)
{
	struct netns_guard guard;
	struct kmon *km;
	int rc;

	km = calloc(1, sizeof(*km));
	if (km == NULL)
		return -ENOMEM;
	km->ops = *ops;
	km->ctx = ctx;
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		if (getrandom(&km->mirror[kind].seed, sizeof(km->mirror[kind].seed), 0) <
		    0) {
			rc = -errno;
			free(km);
			return rc;
		}
	rc = netns_enter(netns, &guard);
	if (rc == 0) {
		rc = events_open(km);
		if (rc == 0)
			rc = requests_open(km);
		netns_leave(&guard);
	}
	if (rc == 0)
		rc = kmon_dump_all(km);
	/* The state changes all the time. The event of a change leads to a new dump. */
	if (rc == -EAGAIN)
		rc = 0;
	if (rc < 0) {
		kmon_close(km);
		return rc;
	}
	*out = km;
	return 0;
}

int
kmon_fd(const struct kmon *km)
{
	return nl_socket_get_fd(km->events);
}

const struct kmon_fdb *
kmon_fdb_find(const struct kmon *km, unsigned int ifindex, const uint8_t mac[6],
	      uint32_t from_vni)
{
	union kmon_item item = {.fdb = {.ifindex = ifindex, .from_vni = from_vni}};
	const struct mirror_entry *e;
	struct kmon_key key;

	memcpy(item.fdb.mac, mac, sizeof(item.fdb.mac));
	key = kmon_key_of(KMON_FDB, &item);
	e = mirror_find(&km->mirror[KMON_FDB], &key);
	return e == NULL ? NULL : &e->item.fdb;
}

void
kmon_stats(const struct kmon *km, struct kmon_stats *st)
{
	*st = km->stats;
}

void
kmon_close(struct kmon *km)
{
	if (km == NULL)
		return;
	nl_socket_free(km->events);
	nl_socket_free(km->dumps);
	nl_socket_free(km->requests);
	for (int kind = 0; kind < KMON_N_KINDS; kind++)
		mirror_free(&km->mirror[kind]);
	free(km);
}
