/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find tables of the old iptables (iptables-legacy) with rules for forwarded packets.
 * [warn]
 *
 * Only existing tables of the namespace are read, because a request for another table would
 * create it. A table has two offsets for each chain: that of the first rule, and that of
 * the policy. If both are equal, the chain has no rules.
 */
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "warn/impl.h"

#define TABLE_BYTES_MAX (4u << 20) /* larger tables are not read for their policies */

/*
 * A table of IPv4 or IPv6: its parameters, and the members of struct ipt_getinfo or
 * ip6t_getinfo, which have the same layout.
 */
struct table {
	const char *command; /* "iptables" */
	char name[XT_TABLE_MAXNAMELEN];
	int level, info, entries; /* of getsockopt(2) */
	unsigned int hooks, entry[NF_INET_NUMHOOKS], policy[NF_INET_NUMHOOKS], size;
};

static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo), "same layout");

static int
table_read(int fd, struct table *t)
{
	struct ipt_getinfo info = {0};
	socklen_t len = sizeof(info);

	memcpy(info.name, t->name, sizeof(info.name));
	if (getsockopt(fd, t->level, t->info, &info, &len) < 0)
		return -errno;
	t->hooks = info.valid_hooks;
	t->size = info.size;
	memcpy(t->entry, info.hook_entry, sizeof(t->entry));
	memcpy(t->policy, info.underflow, sizeof(t->policy));
	return 0;
}

/*
 * Return the verdict of the policy, the rule at octet `at`. NF_ACCEPT if it is malformed.
 */
static int
policy_verdict(const struct table *t, const uint8_t *rules, unsigned int at)
{
	size_t target_at = t->level == IPPROTO_IPV6
				   ? offsetof(struct ip6t_entry, target_offset)
				   : offsetof(struct ipt_entry, target_offset);
	struct xt_standard_target target;
	uint16_t offset;

	if (at > t->size || t->size - at < target_at + sizeof(offset))
		return NF_ACCEPT;
	memcpy(&offset, rules + at + target_at, sizeof(offset));
	if (t->size - at < offset || t->size - at - offset < sizeof(target))
		return NF_ACCEPT;
	memcpy(&target, rules + at + offset, sizeof(target));
	return target.target.u.user.name[0] == '\0' && target.verdict < 0
		       ? -target.verdict - 1
		       : NF_ACCEPT;
}

/*
 * Read the rules of the table; the caller frees them. Returns NULL and sets *rc on error.
 */
static struct ipt_get_entries *
rules_read(int fd, const struct table *t, int *rc)
{
	socklen_t len = (socklen_t)(sizeof(struct ipt_get_entries) + t->size);
	struct ipt_get_entries *got = t->size <= TABLE_BYTES_MAX ? calloc(1, len) : NULL;

	*rc = got == NULL ? -EFBIG : 0;
	if (got == NULL)
		return NULL;
	memcpy(got->name, t->name, sizeof(got->name));
	got->size = t->size;
	if (getsockopt(fd, t->level, t->entries, got, &len) == 0)
		return got;
	*rc = -errno;
	free(got);
	return NULL;
}

static void
chain_add(struct warn *w, const struct table *t, const char *chain, bool drops)
{
	bool nat = strcmp(t->name, "nat") == 0;
	char where[96];

	snprintf(where, sizeof(where), "%s table %s, chain %s", t->command, t->name, chain);
	list_add(&w->list, nat ? WARNING_NAT : WARNING_IPTABLES, where,
		 nat     ? "Linux translates addresses of packets in transit by the rules."
		 : drops ? "Linux drops packets in transit: the chain has no rules and the "
			   "policy DROP."
			 : "Linux applies the rules to each packet in transit.",
		 nat ? "Forwarded packets keep their addresses."
		     : "Forwarded packets do not pass the chain.");
}

static void
table_scan(struct warn *w, int fd, struct table *t)
{
	static const char *const name[NF_INET_NUMHOOKS] = {
		[NF_INET_PRE_ROUTING] = "PREROUTING",
		[NF_INET_FORWARD] = "FORWARD",
		[NF_INET_POST_ROUTING] = "POSTROUTING"};
	struct ipt_get_entries *rules = NULL;
	char part[64];
	int rc = table_read(fd, t);

	for (unsigned int h = 0; h < NF_INET_NUMHOOKS && rc == 0; h++) {
		if (name[h] == NULL || (t->hooks >> h & 1) == 0)
			continue;
		if (t->entry[h] != t->policy[h]) {
			chain_add(w, t, name[h], false);
			continue;
		}
		if (rules == NULL)
			rules = rules_read(fd, t, &rc);
		if (rules != NULL && policy_verdict(t, (const uint8_t *)rules->entrytable,
						    t->policy[h]) == NF_DROP)
			chain_add(w, t, name[h], true);
	}
	free(rules);
	/* -EAGAIN: the table changed in between; the next scan reads it. */
	if (rc == 0 || rc == -ENOENT || rc == -EAGAIN)
		return;
	snprintf(part, sizeof(part), "%s table %s", t->command, t->name);
	unread_add(w, part, rc);
}

/* Scan the tables of one family. `file` has their names. */
static void
family_scan(struct warn *w, const char *file, int family, struct table *t)
{
	FILE *names = fopen(file, "re");
	int fd = -1;

	if (names == NULL)
		return; /* the kernel has no tables of iptables */
	while (!ask_is_ending(w) && fscanf(names, "%31s", t->name) == 1) {
		if (fd < 0)
			fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			table_scan(w, fd, t);
		memset(t->name, 0, sizeof(t->name));
	}
	fclose(names);
	if (fd >= 0)
		close(fd);
}

void
iptables_scan(struct warn *w)
{
	struct table ip4 = {.command = "iptables",
			    .level = IPPROTO_IP,
			    .info = IPT_SO_GET_INFO,
			    .entries = IPT_SO_GET_ENTRIES};
	struct table ip6 = {.command = "ip6tables",
			    .level = IPPROTO_IPV6,
			    .info = IP6T_SO_GET_INFO,
			    .entries = IP6T_SO_GET_ENTRIES};

	/*
	 * Use "net" of the thread, not of the process, because only the thread has entered
	 * the namespace.
	 */
	family_scan(w, "/proc/thread-self/net/ip_tables_names", AF_INET, &ip4);
	family_scan(w, "/proc/thread-self/net/ip6_tables_names", AF_INET6, &ip6);
}
