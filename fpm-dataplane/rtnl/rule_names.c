/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces that rules name by an alternative name. [rtnl]
 *
 * Linux looks for the interfaces of a rule (iif, oif) when the rule is added, by primary
 * and by alternative names. The rule keeps the interface when the alternative name is
 * removed, or is given to another interface. It loses the interface when that is renamed or
 * deleted, and is then marked as detached in messages. Afterwards only an interface with
 * this primary name takes the place.
 *
 * rib follows primary names. No message has the interface of a rule. So this file finds it
 * when the rule is added, and keeps it while messages do not mark the rule.
 *
 * When the event of a rule is read, the name may be another interface's already. So events
 * of links are noted: Linux sends one when an alternative name of an interface that is up
 * comes or goes. Other names are asked of the kernel.
 */
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "netlink/attributes.h"
#include "netlink/rule_message.h"
#include "rtnl/impl.h"

enum side {
	IIF,
	OIF,
};

/* Get the primary name of an interface. Returns false if it does not exist. */
static bool
device_name(const struct rtnl *r, uint32_t ifindex, char name[IFNAMSIZ])
{
	struct ifreq ask = {.ifr_ifindex = (int)ifindex};

	if (ioctl(r->dumps, SIOCGIFNAME, &ask) < 0)
		return false;
	memcpy(name, ask.ifr_name, IFNAMSIZ);
	return true;
}

/*
 * Find the interface that has an alternative name, and its primary name. Returns 1; 0 if
 * the name is a primary one, or -1 if no interface has it.
 */
static int
device_find(const struct rtnl *r, const char *name, uint32_t *ifindex,
	    char device[IFNAMSIZ])
{
	struct ifreq ask = {0};

	memcpy(ask.ifr_name, name, IFNAMSIZ);
	if (ioctl(r->dumps, SIOCGIFINDEX, &ask) < 0 ||
	    !device_name(r, (uint32_t)ask.ifr_ifindex, device))
		return -1;
	if (strcmp(device, name) == 0)
		return 0;
	*ifindex = (uint32_t)ask.ifr_ifindex;
	return 1;
}

/* Return the array `v` with room for one more entry. */
static void *
room_make(void *v, uint32_t n, uint32_t *room, size_t size)
{
	if (n < *room)
		return v;
	*room = *room == 0 ? 16 : *room * 2;
	v = realloc(v, *room * size);
	if (v == NULL)
		abort(); /* out of memory for some hundred octets an entry */
	return v;
}

/* --- alternative names that events have told ------------------------------------------ */

static void
alt_remove(struct rtnl *r, uint32_t ifindex)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->alt.n; i++)
		if (r->alt.v[i].ifindex != ifindex)
			r->alt.v[n++] = r->alt.v[i];
	r->alt.n = n;
}

/* Note a name. Names that are too long for a rule are left out. */
static void
alt_add(struct rtnl *r, uint32_t ifindex, const struct nlattr *a, const char *device)
{
	struct alt_names *to = &r->alt;
	struct alt_name *alt;

	if (a->nla_len - MNL_ATTR_HDRLEN > IFNAMSIZ)
		return;
	to->v = room_make(to->v, to->n, &to->room, sizeof(*to->v));
	alt = &to->v[to->n++];
	*alt = (struct alt_name){.ifindex = ifindex};
	attr_text(a, alt->name, sizeof(alt->name));
	memcpy(alt->device, device, sizeof(alt->device));
}

/* Note the alternative names of a link that an event tells. */
static void
alt_note(struct rtnl *r, const struct nlmsghdr *nlh, const char *device)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	size_t len = mnl_nlmsg_get_payload_len(nlh) - sizeof(*info);
	const struct nlattr *list = attrs_find(info + 1, len, IFLA_PROP_LIST), *a;

	/* Other messages, such as those of a bridge, do not have these names. */
	if (info->ifi_family != AF_UNSPEC || device[0] == '\0')
		return;
	alt_remove(r, (uint32_t)info->ifi_index);
	if (list == NULL || nlh->nlmsg_type == RTM_DELLINK ||
	    (info->ifi_flags & IFF_UP) == 0)
		return;
	mnl_attr_for_each_nested(a, list) if (mnl_attr_get_type(a) == IFLA_ALT_IFNAME)
		alt_add(r, (uint32_t)info->ifi_index, a, device);
}

void
rule_names_lost(struct rtnl *r)
{
	r->alt.n = 0;
}

/* --- rules ---------------------------------------------------------------------------- */

/* Find a rule, without regard to its interfaces; NULL: it has no alternative names. */
static struct named_rule *
named_find(struct rtnl *r, const struct rule *rule, bool also_shown)
{
	for (uint32_t i = 0; i < r->named.n; i++) {
		struct named_rule *named = &r->named.v[i];
		struct rule plain = named->rule;

		plain.iif_index = plain.oif_index = 0;
		if ((also_shown || !named->shown) &&
		    memcmp(&plain, rule, sizeof(plain)) == 0)
			return named;
	}
	return NULL;
}

static struct named_rule *
named_add(struct rtnl *r)
{
	struct named_rules *to = &r->named;

	to->v = room_make(to->v, to->n, &to->room, sizeof(*to->v));
	to->v[to->n] = (struct named_rule){0};
	return &to->v[to->n++];
}

static void
named_remove(struct rtnl *r, struct named_rule *named)
{
	uint32_t at = (uint32_t)(named - r->named.v);

	memmove(named, named + 1, (r->named.n - at - 1) * sizeof(*named));
	r->named.n--;
}

/*
 * Find the interface of one side of a rule of the kernel. Returns -1 if the rule has an
 * interface that cannot be found, or else 0.
 *
 * known  the interfaces that the rule had until now, or NULL
 * event  the message is an event, not part of a dump
 */
static int
side_find(const struct rtnl *r, const struct nlmsghdr *nlh, const struct rule *rule,
	  enum side side, const struct named_rule *known, struct named_rule *to, bool event)
{
	static const uint32_t detached[] = {FIB_RULE_IIF_DETACHED, FIB_RULE_OIF_DETACHED};
	const struct fib_rule_hdr *frh = mnl_nlmsg_get_payload(nlh);
	const char *name = side == IIF ? rule->iif : rule->oif;
	uint32_t *index = side == IIF ? &to->rule.iif_index : &to->rule.oif_index;
	char device[IFNAMSIZ];

	if (name[0] == '\0' || (frh->flags & detached[side]) != 0)
		return 0;
	for (uint32_t i = 0; event && i < r->alt.n; i++)
		if (strcmp(r->alt.v[i].name, name) == 0) {
			*index = r->alt.v[i].ifindex;
			memcpy(to->device[side], r->alt.v[i].device, IFNAMSIZ);
			return 0;
		}
	if (known != NULL) {
		*index = side == IIF ? known->rule.iif_index : known->rule.oif_index;
		memcpy(to->device[side], known->device[side], IFNAMSIZ);
		/* Linux tells that an interface is renamed before it detaches the rule. */
		if (*index != 0) {
			if (!device_name(r, *index, device) ||
			    strcmp(device, known->device[side]) != 0)
				*index = 0;
			return 0;
		}
	}
	return device_find(r, name, index, to->device[side]) < 0 ? -1 : 0;
}

void
rule_names_begin(struct rtnl *r, uint8_t family)
{
	for (uint32_t i = 0; i < r->named.n; i++)
		if (r->named.v[i].rule.family == family)
			r->named.v[i].shown = false;
	r->names_lost[family == 6] = false;
}

void
rule_names_dumped(struct rtnl *r, const struct nlmsghdr *nlh, struct rule *rule)
{
	struct named_rule *known, now = {.rule = *rule, .shown = true};

	if (rule->iif[0] == '\0' && rule->oif[0] == '\0')
		return;
	known = named_find(r, rule, false);
	if (side_find(r, nlh, rule, IIF, known, &now, false) < 0) {
		rule->lacks |= RULE_LACKS_IIF;
		r->names_lost[rule->family == 6] = true;
	}
	(void)side_find(r, nlh, rule, OIF, known, &now, false);
	rule->iif_index = now.rule.iif_index;
	rule->oif_index = now.rule.oif_index;
	if (rule->iif_index != 0 || rule->oif_index != 0)
		*(known == NULL ? named_add(r) : known) = now;
}

void
rule_names_end(struct rtnl *r, uint8_t family)
{
	for (uint32_t i = r->named.n; i > 0; i--)
		if (r->named.v[i - 1].rule.family == family && !r->named.v[i - 1].shown)
			named_remove(r, &r->named.v[i - 1]);
}

void
rule_names_event(struct rtnl *r, const struct nlmsghdr *nlh)
{
	struct named_rule *known, now = {0};

	if (rule_message_decode(nlh, &now.rule) < 0 ||
	    (now.rule.iif[0] == '\0' && now.rule.oif[0] == '\0'))
		return;
	known = named_find(r, &now.rule, true);
	if (nlh->nlmsg_type == RTM_DELRULE) {
		if (known != NULL)
			named_remove(r, known);
		return;
	}
	for (enum side side = IIF; side <= OIF; side++)
		(void)side_find(r, nlh, &now.rule, side, NULL, &now, true);
	/* A dump may have had the rule before its event was read. */
	if (now.rule.iif_index != 0 || now.rule.oif_index != 0)
		*(known == NULL ? named_add(r) : known) = now;
}

bool
rule_names_link(struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	uint32_t ifindex = (uint32_t)info->ifi_index;
	char name[IFNAMSIZ];

	attr_text(attrs_find(info + 1, mnl_nlmsg_get_payload_len(nlh) - sizeof(*info),
			     IFLA_IFNAME),
		  name, sizeof(name));
	alt_note(r, nlh, name);
	if (r->names_lost[0] || r->names_lost[1])
		return true;
	for (uint32_t i = 0; i < r->named.n; i++) {
		const struct named_rule *named = &r->named.v[i];
		bool is_iif = named->rule.iif_index == ifindex;
		bool is_oif = named->rule.oif_index == ifindex;

		if ((is_iif || is_oif) && nlh->nlmsg_type == RTM_DELLINK)
			return true;
		if ((is_iif && strcmp(name, named->device[IIF]) != 0) ||
		    (is_oif && strcmp(name, named->device[OIF]) != 0))
			return true;
	}
	return false;
}

void
rule_names_free(struct rtnl *r)
{
	free(r->named.v);
	free(r->alt.v);
	r->named = (struct named_rules){0};
	r->alt = (struct alt_names){0};
}
