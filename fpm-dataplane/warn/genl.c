/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests by generic netlink. The families of generic netlink have dynamic numbers: the
 * first request reads the number of a family, further requests read its values. [warn]
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>

#include "netlink/attributes.h"
#include "warn/impl.h"

const struct nlattr *
genl_attr(const struct nlmsghdr *nlh, unsigned int type)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh);

	return have < GENL_HDRLEN ? NULL
				  : attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) +
						       GENL_HDRLEN,
					       have - GENL_HDRLEN, type);
}

static void
on_family(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	const struct nlattr *id = genl_attr(nlh, CTRL_ATTR_FAMILY_ID);

	if (id != NULL)
		(void)attr_copy(id, ctx, sizeof(uint16_t));
}

int
genl_family(struct warn *w, int fd, const char *name)
{
	uint16_t family = 0;
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
		struct nlattr name;
		char text[GENL_NAMSIZ];
	} request = {.nlh = {.nlmsg_type = GENL_ID_CTRL, .nlmsg_flags = NLM_F_REQUEST},
		     .genl = {.cmd = CTRL_CMD_GETFAMILY, .version = 1},
		     .name = {.nla_type = CTRL_ATTR_FAMILY_NAME}};
	size_t len = strnlen(name, sizeof(request.text) - 1);
	int rc;

	memcpy(request.text, name, len);
	request.name.nla_len = (uint16_t)(NLA_HDRLEN + len + 1);
	request.nlh.nlmsg_len =
		(uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + NLA_ALIGN(request.name.nla_len));
	rc = ask_dump(w, fd, &request.nlh, on_family, &family);
	if (rc < 0)
		return rc;
	return family < NLMSG_MIN_TYPE ? -EPROTO : family;
}
