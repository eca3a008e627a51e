/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * psample: send samples to the programs that listen to the kernel's psample, such as
 * hsflowd. These programs are members of a multicast group of generic netlink. The kernel
 * multicasts a message of a program with CAP_NET_ADMIN to the groups in its address, which
 * has a mask of 32 groups. The kernel gets a copy of the message too, and ignores it,
 * because it is not a request (net/netlink/af_netlink.c). The numbers of the family and of
 * the group are dynamic, and may change if the module is loaded again, so they are
 * requested every 10 s. [sflow]
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/psample.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"
#include "base/tsan.h"
#include "netlink/attributes.h"
#include "sflow/impl.h"
#include "tap-bridge/netns.h"

#define LOOK_MS      10000u /* between two requests for the numbers */
#define GROUPS_MAX   32u    /* groups that an address can have */
#define IFINDEX_BITS 16     /* of an ifIndex in a sample */

/* Note the result of an attempt: 0 or -errno. Log the first failure and its end. */
static void
psample_note(struct sflow *s, int rc)
{
	struct psample *ps = &s->psample;

	if (rc < 0)
		ps->errors++;
	if (ps->error == -rc)
		return;
	ps->error = -rc;
	if (rc < 0)
		log_warn("sflow: psample fails error=\"%s\"", psample_error(ps));
	else
		log_info("sflow: psample works again");
}

const char *
psample_error(const struct psample *ps)
{
	switch (ps->error) {
	case 0:
		return NULL;
	case ENOENT:
		return "the kernel has no psample: modprobe psample";
	case ERANGE:
		return "the number of the multicast group is above 32";
	default:
		return strerror(ps->error);
	}
}

/* --- the family ----------------------------------------------------------------------- */

/* Return the number of the multicast group "packets" of an answer; 0: it has none. */
static uint32_t
group_find(const struct nlattr *groups)
{
	const uint8_t *at = (const uint8_t *)groups + MNL_ATTR_HDRLEN;
	size_t len = groups == NULL ? 0 : groups->nla_len - MNL_ATTR_HDRLEN;

	while (len >= MNL_ATTR_HDRLEN) {
		const struct nlattr *group = (const struct nlattr *)at;
		char name[GENL_NAMSIZ];
		uint32_t id = 0;
		size_t step = MNL_ALIGN(group->nla_len);

		if (group->nla_len < MNL_ATTR_HDRLEN || group->nla_len > len)
			return 0;
		attr_text(attr_find_in(group, CTRL_ATTR_MCAST_GRP_NAME), name,
			  sizeof(name));
		(void)attr_copy(attr_find_in(group, CTRL_ATTR_MCAST_GRP_ID), &id,
				sizeof(id));
		if (strcmp(name, PSAMPLE_NL_MCGRP_SAMPLE_NAME) == 0)
			return id;
		if (step >= len)
			break;
		at += step;
		len -= step;
	}
	return 0;
}

int
psample_take_family(struct psample *ps, const void *answer, size_t len)
{
	const struct nlmsghdr *nlh = answer;
	const uint8_t *attrs = (const uint8_t *)answer + NLMSG_HDRLEN + GENL_HDRLEN;
	int error;

	if (len < NLMSG_HDRLEN + sizeof(error) || nlh->nlmsg_len > len)
		return -EPROTO;
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		memcpy(&error, (const uint8_t *)answer + NLMSG_HDRLEN, sizeof(error));
		return error < 0 ? error : -EPROTO;
	}
	if (nlh->nlmsg_type != GENL_ID_CTRL || nlh->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN)
		return -EPROTO;
	len = nlh->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN;
	ps->mcast = group_find(attrs_find(attrs, len, CTRL_ATTR_MCAST_GROUPS));
	if (attr_copy(attrs_find(attrs, len, CTRL_ATTR_FAMILY_ID), &ps->family,
		      sizeof(ps->family)) < 0 ||
	    ps->family < NLMSG_MIN_TYPE || ps->mcast == 0)
		return -EPROTO;
	return ps->mcast > GROUPS_MAX ? -ERANGE : 0;
}

/*
 * Request the numbers of the family and of its group. The kernel answers within send(), and
 * may search for the module first. Returns 0 or -errno.
 */
static int
family_ask(struct psample *ps)
{
	uint8_t buf[64] = {0}, answer[4096];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;
	ssize_t n;

	nlh->nlmsg_type = GENL_ID_CTRL;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = CTRL_CMD_GETFAMILY;
	genl->version = 1;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, PSAMPLE_GENL_NAME);
	if (send(ps->fd, buf, nlh->nlmsg_len, 0) < 0)
		return -errno;
	n = recv(ps->fd, answer, sizeof(answer), MSG_DONTWAIT);
	return n < 0 ? -errno : psample_take_family(ps, answer, (size_t)n);
}

static int
psample_open(struct sflow *s)
{
	struct psample *ps = &s->psample;
	int rc = 0;

	if (ps->fd < 0)
		ps->fd = rc = netns_socket(s->setup.netns, AF_NETLINK,
					   SOCK_RAW | SOCK_NONBLOCK, NETLINK_GENERIC);
	if (rc < 0) {
		ps->fd = -1;
		return rc;
	}
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	rc = family_ask(ps);
	urcu_qsbr_thread_online();
	return rc;
}

static void
psample_close(struct psample *ps)
{
	if (ps->fd >= 0)
		close(ps->fd);
	ps->fd = -1;
}

void
psample_look(struct sflow *s)
{
	struct psample *ps = &s->psample;
	uint64_t now_ms = monotonic_ms();

	if (s->now.psample == 0 || now_ms < ps->look_ms)
		return;
	ps->look_ms = now_ms + haste_ms(LOOK_MS);
	psample_note(s, psample_open(s));
	if (ps->error != 0)
		psample_close(ps);
}

void
psample_reset(struct sflow *s)
{
	psample_close(&s->psample);
	s->psample = (struct psample){.fd = -1, .sequence = s->psample.sequence};
	psample_look(s);
}

/* --- samples -------------------------------------------------------------------------- */

size_t
psample_write(uint8_t buf[PSAMPLE_BYTES], const struct psample *ps, uint32_t group,
	      const struct sflow_packet *p)
{
	struct nlmsghdr *nlh;
	struct genlmsghdr *genl;

	memset(buf, 0, PSAMPLE_BYTES);
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = ps->family;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = PSAMPLE_CMD_SAMPLE;
	genl->version = PSAMPLE_GENL_VERSION;
	/* The kernel has 16 bits for an ifIndex, and so has hsflowd. */
	if (p->input != 0 && p->input >> IFINDEX_BITS == 0)
		mnl_attr_put_u16(nlh, PSAMPLE_ATTR_IIFINDEX, (uint16_t)p->input);
	if (!p->dropped && p->output != 0 && p->output >> IFINDEX_BITS == 0)
		mnl_attr_put_u16(nlh, PSAMPLE_ATTR_OIFINDEX, (uint16_t)p->output);
	mnl_attr_put_u32(nlh, PSAMPLE_ATTR_SAMPLE_RATE, p->rate);
	mnl_attr_put_u32(nlh, PSAMPLE_ATTR_ORIGSIZE, p->frame_len - SFLOW_FCS_BYTES);
	mnl_attr_put_u32(nlh, PSAMPLE_ATTR_SAMPLE_GROUP, group);
	mnl_attr_put_u32(nlh, PSAMPLE_ATTR_GROUP_SEQ, ps->sequence);
	mnl_attr_put(nlh, PSAMPLE_ATTR_DATA, p->header_len, p->header);
	return nlh->nlmsg_len;
}

void
psample_send(struct sflow *s, const struct sflow_packet *p, struct source *source)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	struct psample *ps = &s->psample;
	uint8_t buf[PSAMPLE_BYTES];
	size_t n;

	if (!psample_is_open(s))
		return;
	to.nl_groups = 1u << (ps->mcast - 1);
	/* A reader finds lost samples by the gap in the sequence. */
	ps->sequence += 1 + (p->drops - source->psample_drops);
	source->psample_drops = p->drops;
	n = psample_write(buf, ps, s->now.psample, p);
	if (sendto(ps->fd, buf, n, MSG_DONTWAIT, (const struct sockaddr *)&to,
		   sizeof(to)) >= 0) {
		ps->samples++;
		STATUS_ADD(psample_samples, 1);
		return;
	}
	psample_note(s, -errno);
}
