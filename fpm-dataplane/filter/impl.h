/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internals of the filter thread. Private to filter/ and its tests.
 *
 *   events.c: a transaction of the kernel -> dump.c: messages of one generation -> build.c,
 *   expr.c, elements.c: ruleset -> filter.c: publication; the old ruleset is freed after a
 *   grace period. A transaction that changes only elements of one set -> change.c.
 */
#ifndef FILTER_IMPL_H
#define FILTER_IMPL_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruleset/members.h"
#include "ruleset/ruleset.h"

#define FILTER_NAME     256 /* octets of a name of nf_tables, its terminator included */
#define FILTER_WHY      320 /* octets of a reason */
#define FILTER_DUMP_MAX (1u << 30) /* octets of a dump */

/* A table whose chains are obeyed. */
struct filter_table {
	uint8_t family; /* NFPROTO_INET, _IPV4, _IPV6 */
	char name[FILTER_NAME];
	const char *prefix; /* prepended to the names of its chains: "inet NAME ", or "" */
	uint8_t number;     /* number among the obeyed tables, from 0 */
};

/* The messages of one generation, one after the other, each 4-aligned. */
struct filter_dump {
	uint8_t *octet;
	size_t n, room;
	uint32_t generation;
	uint64_t table_handle; /* it differs after the table is deleted and created again */
	bool dormant;          /* flag of the table: its chains are off */
	bool missing;          /* the kernel has no table of this name */
};

/* Return true if generation `a` came after `b`. The kernel counts in 32 bits. */
static inline bool
filter_generation_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* --- events.c ----------------------------------------------------------------------- */

/* The parts of a transaction of the kernel that matter to the tables. */
struct filter_transaction {
	uint32_t generation;
	bool ours;          /* the transaction changed one of the tables */
	bool elements_only; /* nothing but elements of their sets */
	/* messages about these elements; valid until the next filter_events_next() */
	const struct filter_dump *messages;
};

/* Transactions that arrive while the tables are read. */
struct filter_gathered {
	/* from: generation when the read began; heard: of the last transaction so far */
	uint32_t from, heard;
	bool awaits_from; /* the event of generation `from` has not arrived yet */
	bool spoiled;     /* the tables changed by more than elements: read them again */
	/* messages about elements, whose changes the ruleset of this read still needs */
	struct filter_dump messages;
};

struct filter_events {
	int fd;
	const struct filter_table *table;
	unsigned int n_table;
	uint8_t *datagram;
	const struct nlmsghdr *next; /* the next message in the datagram */
	int left;                    /* octets of the datagram from `next` on */
	/* the open transaction */
	struct filter_dump messages;
	bool ours, more;         /* more: it changed more than elements */
	uint16_t generation_low; /* last 16 bits of its generation, big-endian */
	bool ended;              /* filter_events_next() has returned it */
	uint32_t heard;          /* generation of the last transaction that has ended */
	struct filter_gathered gathered;
};

/*
 * Receive events about tables from the socket `fd`, a member of NFNLGRP_NFTABLES. Returns 0
 * or -ENOMEM.
 */
int filter_events_init(struct filter_events *ev, int fd, const struct filter_table *table,
		       unsigned int n_table);
void filter_events_fini(struct filter_events *ev);

/*
 * Take the next transaction, without waiting. Returns 1; 0: none has arrived; -errno: some
 * may be lost.
 */
int filter_events_next(struct filter_events *ev, struct filter_transaction *t);

/*
 * Gather transactions while the tables are read. _begin() starts with the generation that
 * the kernel has. filter_gather() takes all transactions that have arrived. _until() waits
 * at the end for the transactions up to generation `until`; it returns 0; -EAGAIN: read the
 * tables again; -ECANCELED: `is_ending` returned true.
 */
void filter_gather_begin(struct filter_events *ev, uint32_t generation);
void filter_gather(struct filter_events *ev);
int filter_gather_until(struct filter_events *ev, uint32_t until,
			bool (*is_ending)(void *ctx), void *ctx);

/* --- dump.c ------------------------------------------------------------------------- */

/*
 * Read the tables of `events` by the socket `fd`, each to a dump; `events` shows whether
 * they change meanwhile. The first table must exist. If another table is missing, it has no
 * rules, as in the kernel. Returns 0, -EALREADY: the generation is still *known; -ENOENT:
 * there is no first table; -EAGAIN: the tables change too fast; -ECANCELED: `is_ending`
 * returned true; or -errno of the kernel. `known` may be NULL. Afterwards events->gathered
 * has the changes of elements that the caller makes in the ruleset, and the generation of
 * the ruleset with these changes. The caller frees dump[].octet in any case.
 */
int filter_dump_read(int fd, struct filter_events *events, const uint32_t *known,
		     struct filter_dump *dump, bool (*is_ending)(void *ctx), void *ctx);

/* --- messages.c -------------------------------------------------------------------- */

/* Append a message. Returns 0, -EMSGSIZE or -ENOMEM. */
int filter_dump_append(struct filter_dump *d, const struct nlmsghdr *nlh);

/* Call `fn` for each message of a dump. */
void filter_dump_each(const struct filter_dump *dump,
		      void (*fn)(const struct nlmsghdr *nlh, void *ctx), void *ctx);

/* --- attr.c ------------------------------------------------------------------------ */

/* Return an attribute of a message of nf_tables; NULL: it is absent. */
const struct nlattr *message_attr(const struct nlmsghdr *nlh, unsigned int type);

/* Numbers of attributes, which are big-endian. Return 0; -1 if missing or malformed. */
int attr_be32(const struct nlattr *a, uint32_t *out);
int attr_be64(const struct nlattr *a, uint64_t *out);

/* Return the octets of the value in a nested NFTA_DATA_; NULL: it has none. */
const uint8_t *attr_value(const struct nlattr *data, unsigned int *len);

/* Return the text of an attribute, which must have its terminator; NULL: it has none. */
const char *attr_string(const struct nlattr *a);

/*
 * Return the configured table that attribute `attr` of a message names; NULL: the table is
 * not configured.
 */
const struct filter_table *filter_table_of(const struct filter_table *table,
					   unsigned int n_table, const struct nlmsghdr *nlh,
					   unsigned int attr);

/* --- build.c ------------------------------------------------------------------------ */

struct filter_build_conf {
	const struct filter_table *table;
	/* the previous ruleset, whose rules keep their state; NULL: none */
	const struct ruleset *old;
	unsigned int n_thread;
	uint64_t now;                          /* ticks */
	double ticks_s;                        /* ticks a second */
	const struct ruleset_reclaim *reclaim; /* lives as long as the ruleset */
};

/*
 * Build the ruleset of a dump. Returns NULL, and the reason in `why`, if the dump has an
 * unknown expression or a malformed message.
 */
struct ruleset *filter_build(const struct filter_dump *dump,
			     const struct filter_build_conf *conf, char why[FILTER_WHY]);

/* --- change.c ----------------------------------------------------------------------- */

/*
 * Change sets of a ruleset by messages of elements. Returns 0, or -errno if the tables must
 * be read instead. This is so if a set does not change in place. It is also so if the
 * ruleset is `published` and the messages change several sets, because forwarders would see
 * the change of one set before the change of another.
 */
int filter_change(struct ruleset *r, const struct filter_table *table, unsigned int n_table,
		  const struct filter_dump *messages, const struct filter_build_conf *conf,
		  bool published);

/* --- merge.c ------------------------------------------------------------------------ */

/*
 * Join the rulesets of several tables: all base chains, by priority. Base chains of equal
 * priority are in the order of the tables. Frees the n rulesets, and returns the joint one.
 */
struct ruleset *filter_merge(struct ruleset **part, unsigned int n);

/* --- for the files of the builder --------------------------------------------------- */

struct raw_chain {
	const char *name; /* name as in the dump */
	uint64_t handle;
	bool is_base, drops;
	uint32_t hook;
	int32_t priority;
	char type[16];
	uint32_t first, n_rule; /* in build.rule */
	uint32_t number;        /* in the ruleset; RULESET_NONE: not reached yet */
	/*
	 * number of chains on the longest path of jumps from this chain on, itself
	 * included; 0: unknown
	 */
	uint8_t depth;
	bool in_walk; /* chain_walk() is at this chain or below it */
	/* the most rules that one packet passes in this chain and below it */
	uint64_t passes;
};

struct raw_rule {
	const struct nlmsghdr *nlh;
	uint32_t chain, seq;
};

struct raw_set {
	const char *name;
	uint32_t flags, key_type, key_len, data_type, data_len, n_field;
	uint8_t field[RULESET_FIELDS_MAX];
	uint32_t first;  /* in build.elements: the last message noted; RULESET_NONE: none */
	uint32_t number; /* in the ruleset; RULESET_NONE: not used yet */
};

struct raw_elements {
	const struct nlmsghdr *nlh;
	/* in build.elements: a message of the same set; RULESET_NONE: none */
	uint32_t next;
};

struct raw_object {
	const char *name;
	const struct nlattr *data;
	uint64_t handle; /* 0: none */
	uint32_t type;
	uint32_t number; /* in ruleset.stateful; RULESET_NONE: not used yet */
};

/* The state that a rule or a named object had in the previous ruleset. */
struct kept {
	uint64_t handle;
	struct ruleset_state *state;
	bool taken; /* the new ruleset has it */
};

struct build {
	const struct filter_build_conf *conf;
	struct ruleset *r;
	char *why;
	bool failed;
	struct raw_chain *chain;
	struct raw_rule *rule;
	struct raw_set *set;
	struct raw_elements *elements;
	struct raw_object *object;
	uint32_t n_chain, n_rule, n_set, n_elements, n_object;
	uint32_t room_chain, room_rule, room_set, room_elements, room_object;
	uint32_t room_op, room_stateful;
	uint32_t *reached; /* for each chain of the ruleset, its index in build.chain */
	/* the present rule, for messages */
	const char *at_chain;
	uint64_t at_handle;
	char at_comment[64];
	struct ruleset_limit limit[8]; /* of the rule */
	unsigned int n_limit;
	uint64_t table_handle;
	const struct ruleset *old; /* conf.old */
	struct kept *kept;         /* states of the table in `old`, sorted by handle */
	uint32_t n_kept;
};

/* Note why the ruleset is refused: the first reason counts. Always returns -1. */
int build_fail(struct build *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Grow an array so that it has room for n + 1 entries. Aborts if out of memory. */
void *build_room(void *array, uint32_t n, uint32_t *room, size_t size);

/* Compare the names of two chains, for qsort() and bsearch(). */
int build_chain_compare(const void *a, const void *b);
/*
 * Return the chain of a name, after the chains are sorted; NULL: there is none, or no name.
 */
struct raw_chain *build_chain_find(const struct build *b, const char *name);
/* Note that a chain is reached. Return its number in the ruleset. */
uint32_t build_chain_reach(struct build *b, struct raw_chain *c);
/* Find a chain by its name and note that it is reached. Returns -1 and fails, or 0. */
int build_chain_number(struct build *b, const struct nlattr *name, uint32_t *number);

/* Read NFTA_DATA_VERDICT. Returns 0 or -1. */
int build_verdict(struct build *b, const struct nlattr *data, uint8_t *code,
		  uint32_t *chain);

/* Set a limit from the attributes NFTA_LIMIT_ in `data`. Returns 0 or -1. */
int build_limit(struct build *b, const struct nlattr *data, struct ruleset_limit *limit);

/* kept.c: find the states of the table in the previous ruleset, `b->old`. */
void kept_find(struct build *b);
/*
 * Return a ruleset that has only the states of rules of `old`, to keep them while no
 * ruleset is in force. NULL: there are no states.
 */
struct ruleset *kept_copy(const struct ruleset *old);
/*
 * Return a hash of the comment and the expressions of a rule, without values of counters.
 * It tells a rule from the rule that it replaces.
 */
uint32_t kept_content(const struct build *b, const struct nlmsghdr *rule);
/*
 * Return the previous state of a rule with this handle and content, or of a named object
 * (content 0); NULL: there is none. Note that the new ruleset has taken the state.
 */
struct ruleset_state *kept_take(const struct build *b, uint64_t handle, uint32_t content,
				unsigned int n_limit);
/* Append a state to r->stateful, for a handle of the table. Returns its number. */
uint32_t kept_append(struct build *b, uint64_t handle, struct ruleset_state *state);
/*
 * Keep the states of rules and named objects that the kernel has and the ruleset does not
 * have, because no packet can reach them at present.
 */
void kept_store(struct build *b);
/* Note that the new ruleset was emptied and has taken none of the states. */
void kept_untake(struct build *b);

/* expr.c: append the operations of one expression (NFTA_LIST_ELEM). Returns 0 or -1. */
int build_expression(struct build *b, const struct nlattr *expr, struct ruleset_rule *rule);

/*
 * elements.c: find a set, load it with its elements at its first use, and store its number.
 * Returns 0 or -1.
 */
int build_set(struct build *b, const struct nlattr *name, uint32_t *number);
/*
 * Read one element (NFTA_LIST_ELEM) of a set; the value of a map is not read. m->key points
 * into the message; NULL: the element is for all other keys. Returns NULL, or a text that
 * says why the set is refused.
 */
const char *filter_element_read(const struct nlattr *elem, const struct ruleset_set *set,
				uint64_t now, double ticks_s, struct ruleset_member *m);
/* Call `fn` for each element of a message until it returns -1. Returns -1 then, else 0. */
int filter_elements_each(const struct nlmsghdr *nlh,
			 int (*fn)(const struct nlattr *elem, void *ctx), void *ctx);
/* Read a message NFT_MSG_NEWSET. */
int build_set_note(struct build *b, const struct nlmsghdr *nlh);

/* Make a state with zero counts and full buckets. */
struct ruleset_state *build_state_new(const struct build *b,
				      const struct ruleset_limit *limit,
				      unsigned int n_limit);

#endif
