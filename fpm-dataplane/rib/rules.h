/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of policy routing: from the kernel's lists to those of forwarders. [rib] */
#ifndef RIB_RULES_H
#define RIB_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rule.h"

struct fib_rules;
struct link;
struct rib;

struct rule_list {
	struct rule *v; /* in the kernel's order */
	uint32_t n;
	bool known; /* read from the kernel; before that forwarders use no list */
};

struct rib_rules {
	struct rule_list list[2]; /* IPv4, IPv6 */
	bool due;                 /* something changed on which the lists depend */
	bool publish_due;         /* the FIBs exist: publish when they are complete */
	bool default_used[2];     /* table default had a route at the last check */
	bool vrfs_exist;          /* the kernel had a VRF at the last check */
	bool refused;             /* some table got no FIB; this was logged */
	uint64_t retry_ms;        /* 0: no retry is due */
	bool nomem;               /* a FIB got no memory: the published lists stay */
	struct fib_rules *published[2];
	uint32_t n_published;       /* lists published since the start */
	uint64_t n_rounds;          /* times that both lists were compiled */
	struct rule_ifaces told[2]; /* content of the last message to neigh */
};

/* Take a list from rtnl. */
void rules_event(struct rib *rib, const struct msg_rules *m);
/* Once a round: create the FIBs that the rules need. */
void rules_round(struct rib *rib);
/* Within a commit, after the FIBs were published: publish the lists. */
void rules_publish(struct rib *rib);
/*
 * After the grace period of a round: free the FIBs that no list has named since that round.
 * FIBs that only a later round dropped stay, because readers may still use them.
 */
void rules_reclaim(struct rib *rib, uint64_t round);
/*
 * Before a VRF is removed: keep its FIB if a published list names it. Otherwise packets of
 * the rule would take the next rule until the next list is published.
 */
void rules_keep_fib(struct rib *rib, uint16_t number);
/*
 * Return true if a family has only the rules that every kernel has, or if its rules are not
 * known.
 */
bool rules_are_default(const struct rib *rib, unsigned int family6);
/* Return the part of a rule that forwarders do not support; NULL: they obey the rule. */
const char *rule_lacks(const struct rule *rule);
/*
 * Return true if the rule is not obeyed because all numbers of FIBs for rules are in use.
 */
bool rule_lacks_fib(const struct rib *rib, const struct rule *rule);
/* Return the interface of a rule's `iif`; NULL: there is no `iif`, or no such interface. */
const struct link *rule_iif(const struct rib *rib, const struct rule *rule);
/* Return true if the rule has `oif`, and this interface does not exist. */
bool rule_oif_is_absent(const struct rib *rib, const struct rule *rule);
void rules_free(struct rib *rib);

#endif
