/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_resolve: ask the kernel to solicit a neighbor. kmon_forget: stop the solicitations.
 * kmon_has_failed: report whether the resolution failed. kmon_operstate: set the
 * operational state with the carrier, before the kernel's linkwatch does.
 *
 * Runs in the monitor's thread, also in its callbacks; never waits. These functions look an
 * entry up before they change it, because a change would destroy some entries.
 */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "tap-bridge/kmon_impl.h"

int
kmon_exchange(struct kmon *km, struct nl_msg *msg, void *buf, size_t buf_bytes)
{
	const struct nlmsghdr *hdr = buf;
	ssize_t n;
	int rc;

	kmon_drain(km->requests);
	km->stats.requests++;
	rc = nl_send_auto(km->requests, msg);
	nlmsg_free(msg);
	if (rc < 0)
		return kmon_errno(rc);
	do
		n = recv(nl_socket_get_fd(km->requests), buf, buf_bytes, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (!nlmsg_ok(hdr, (int)n))
		return -EPROTO;
	if (hdr->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)nlmsg_data(hdr))->error;
	return (int)n;
}

static struct nl_msg *
neigh_request(int type, int flags, const struct kmon_neigh *neigh, uint8_t ndm_flags)
{
	struct ndmsg ndm = {
		.ndm_family = neigh->family == 4 ? AF_INET : AF_INET6,
		.ndm_ifindex = (int)neigh->ifindex,
		.ndm_state = NUD_NONE,
		.ndm_flags = ndm_flags,
	};
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags);

	if (msg == NULL)
		return NULL;
	if (nlmsg_append(msg, &ndm, sizeof(ndm), NLMSG_ALIGNTO) < 0 ||
	    nla_put(msg, NDA_DST, neigh->family == 4 ? 4 : 16, neigh->addr) < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* Return the flags of the entry that are in NDA_FLAGS_EXT. */
static uint32_t
neigh_ext_flags(struct nlmsghdr *hdr)
{
	struct nlattr *ext = nlmsg_find_attr(hdr, sizeof(struct ndmsg), NDA_FLAGS_EXT);

	return ext == NULL ? 0 : nla_get_u32(ext);
}

/*
 * Return true if NTF_USE must not be applied to the entry. NTF_USE turns a permanent entry
 * into an incomplete entry without a MAC, and clears the flags that neigh_solicit() does
 * not send again.
 */
static bool
neigh_is_protected(struct nlmsghdr *hdr)
{
	const struct ndmsg *ndm = nlmsg_data(hdr);

	if (hdr->nlmsg_type != RTM_NEWNEIGH || !nlmsg_valid_hdr(hdr, sizeof(*ndm)))
		return true;
	return (ndm->ndm_state & (NUD_PERMANENT | NUD_NOARP)) ||
	       (neigh_ext_flags(hdr) & ~(uint32_t)NTF_EXT_MANAGED) != 0;
}

/*
 * Return true if another program wrote the entry and wants it to stay: the entry is
 * externally learned or managed. It is solicited, but never deleted.
 */
static bool
neigh_is_of_program(struct nlmsghdr *hdr)
{
	const struct ndmsg *ndm = nlmsg_data(hdr);

	return (ndm->ndm_flags & NTF_EXT_LEARNED) || neigh_ext_flags(hdr) != 0;
}

/*
 * Note in the mirror that the kernel tries a failed entry again, because the kernel
 * announces only the next failure. Without the note that failure would look like no change.
 */
static void
neigh_note_attempt(struct kmon *km, const struct kmon_neigh *neigh)
{
	union kmon_item item = {.neigh = *neigh};
	struct kmon_key key = kmon_key_of(KMON_NEIGH, &item);
	struct mirror_entry *e = mirror_find(&km->mirror[KMON_NEIGH], &key);

	if (e != NULL && e->item.neigh.nud == NUD_FAILED)
		e->item.neigh.nud = NUD_INCOMPLETE;
}

/*
 * Look the neighbor up in the kernel. Returns the number of octets in `answer`, or -errno;
 * -ENOENT: no entry.
 */
static int
neigh_get(struct kmon *km, const struct kmon_neigh *neigh, void *answer,
	  size_t answer_bytes)
{
	struct nl_msg *msg = neigh_request(RTM_GETNEIGH, NLM_F_REQUEST, neigh, 0);

	return msg == NULL ? -ENOMEM : kmon_exchange(km, msg, answer, answer_bytes);
}

/*
 * Make the kernel solicit the neighbor, in the existing entry `was` or in a new one (NULL).
 * The entry keeps the flags "externally learned" and "managed", which NTF_USE alone would
 * clear. Returns 0 or -errno.
 */
static int
neigh_solicit(struct kmon *km, const struct kmon_neigh *neigh, int flags,
	      struct nlmsghdr *was)
{
	const struct ndmsg *ndm = was == NULL ? NULL : nlmsg_data(was);
	uint8_t kept = ndm == NULL ? 0 : ndm->ndm_flags & NTF_EXT_LEARNED;
	uint32_t ext = was == NULL ? 0 : neigh_ext_flags(was) & NTF_EXT_MANAGED;
	struct nl_msg *msg =
		neigh_request(RTM_NEWNEIGH, NLM_F_REQUEST | flags, neigh, NTF_USE | kept);
	uint32_t answer[1024];
	int rc;

	if (msg == NULL)
		return -ENOMEM;
	if (ext != 0 && nla_put_u32(msg, NDA_FLAGS_EXT, ext) < 0) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	rc = kmon_exchange(km, msg, answer, sizeof(answer));
	if (rc < 0)
		return rc;
	neigh_note_attempt(km, neigh);
	return 0;
}

/*
 * Report the entry in `hdr` if the kernel made it with state NOARP, because the link has
 * `arp off`. The kernel announces no such entry. Returns 1 if it is such an entry, which is
 * reported if it is new; 0 if not; or -errno.
 */
static int
neigh_report_noarp(struct kmon *km, struct nlmsghdr *hdr)
{
	const struct ndmsg *ndm = nlmsg_data(hdr);
	struct kmon_change change;
	struct nl_msg *msg;
	int rc = 0;

	if (hdr->nlmsg_type != RTM_NEWNEIGH || !nlmsg_valid_hdr(hdr, sizeof(*ndm)) ||
	    (ndm->ndm_state & NUD_NOARP) == 0)
		return 0;
	msg = nlmsg_convert(hdr);
	if (msg == NULL)
		return -ENOMEM;
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	if (kmon_parse(msg, &change)) {
		rc = kmon_apply(km, &change);
		rc = rc < 0 ? rc : 1;
	}
	nlmsg_free(msg);
	return rc;
}

/* Return true if the kernel may give a new neighbor on this link state NOARP. */
static bool
link_may_be_noarp(const struct kmon *km, unsigned int ifindex)
{
	struct kmon_key key = {.ifindex = ifindex};
	const struct mirror_entry *e = mirror_find(&km->mirror[KMON_LINK], &key);

	return e == NULL || e->item.link.arp_off;
}

int
kmon_resolve(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	struct kmon_neigh neigh = {.ifindex = ifindex, .family = family};
	uint32_t answer[1024];
	int rc;

	if (ifindex == 0 || (family != 4 && family != 6))
		return -EINVAL;
	memcpy(neigh.addr, addr, family == 4 ? 4 : 16);

	rc = neigh_get(km, &neigh, answer, sizeof(answer));
	if (rc > 0 && neigh_is_protected((struct nlmsghdr *)answer))
		return neigh_report_noarp(km, (struct nlmsghdr *)answer);
	if (rc < 0 && rc != -ENOENT)
		return rc;

	/*
	 * NLM_F_EXCL: an entry that another process adds now is not overwritten. An entry
	 * that another process deletes now, which the lookup cannot detect, is created
	 * again.
	 */
	if (rc > 0)
		rc = neigh_solicit(km, &neigh, NLM_F_CREATE | NLM_F_REPLACE,
				   (struct nlmsghdr *)answer);
	else
		rc = neigh_solicit(km, &neigh, NLM_F_CREATE | NLM_F_EXCL, NULL);
	if (rc < 0)
		return rc == -EEXIST ? 0 : rc;
	if (!link_may_be_noarp(km, ifindex))
		return 0;
	rc = neigh_get(km, &neigh, answer, sizeof(answer));
	return rc > 0 ? neigh_report_noarp(km, (struct nlmsghdr *)answer) : 0;
}

int
kmon_forget(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	struct kmon_neigh neigh = {.ifindex = ifindex, .family = family};
	uint32_t answer[1024];
	const struct ndmsg *ndm;
	struct nl_msg *msg;
	int rc;

	memcpy(neigh.addr, addr, family == 4 ? 4 : 16);
	rc = neigh_get(km, &neigh, answer, sizeof(answer));
	if (rc <= 0)
		return rc == -ENOENT ? 0 : rc;
	ndm = nlmsg_data((struct nlmsghdr *)answer);
	if (neigh_is_protected((struct nlmsghdr *)answer) ||
	    neigh_is_of_program((struct nlmsghdr *)answer) ||
	    (ndm->ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) == 0)
		return 0;
	msg = neigh_request(RTM_DELNEIGH, NLM_F_REQUEST, &neigh, 0);
	if (msg == NULL)
		return -ENOMEM;
	rc = kmon_exchange(km, msg, answer, sizeof(answer));
	return rc < 0 && rc != -ENOENT ? rc : 0;
}

bool
kmon_has_failed(struct kmon *km, unsigned int ifindex, uint8_t family, const uint8_t *addr)
{
	struct kmon_neigh neigh = {.ifindex = ifindex, .family = family};
	uint32_t answer[1024];
	const struct ndmsg *ndm;
	int rc;

	memcpy(neigh.addr, addr, family == 4 ? 4 : 16);
	/*
	 * This waits for the RTNL lock, under which the kernel reports the failure and
	 * removes the entry.
	 */
	rc = neigh_solicit(km, &neigh, NLM_F_CREATE | NLM_F_EXCL, NULL);
	if (rc != -EEXIST)
		return rc < 0;
	rc = neigh_get(km, &neigh, answer, sizeof(answer));
	if (rc <= 0)
		return rc != -ENOENT;
	ndm = nlmsg_data((struct nlmsghdr *)answer);
	return (ndm->ndm_state & NUD_FAILED) != 0;
}

/* IF_OPER_* of linux/if.h, which cannot be included together with net/if.h. */
enum { OPER_DORMANT = 5, OPER_UP = 6 };

int
kmon_operstate(struct kmon *km, unsigned int ifindex, bool up)
{
	/*
	 * The kernel ignores the request for a link that is down. Later linkwatch sets the
	 * state by the carrier, so nothing has to be undone.
	 */
	struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK);
	uint32_t answer[64];

	if (msg == NULL)
		return -ENOMEM;
	if (nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u8(msg, IFLA_OPERSTATE, up ? OPER_UP : OPER_DORMANT) < 0) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	return kmon_exchange(km, msg, answer, sizeof(answer));
}
