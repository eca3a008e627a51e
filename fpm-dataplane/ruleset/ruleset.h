/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ruleset: a compiled nft ruleset, and the evaluation of one packet by it.
 *
 * A rule is a list of operations on registers, the same as in the kernel (nf_tables). So a
 * packet is compared in the same order as in a Linux router. A published ruleset is
 * immutable, except for sets that change in place, and for the state of its rules: counters
 * and limits. The state belongs to the rule and outlives the ruleset while the kernel keeps
 * the rule, even while no packet can reach the rule.
 *
 * ruleset_judge() does not allocate, lock or make system calls, because forwarders call it.
 * A rule with `log` copies the packet into a ring (logged.h).
 */
#ifndef RULESET_RULESET_H
#define RULESET_RULESET_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULESET_JUMPS_MAX 16 /* nested jumps to a rule; the kernel has the same limit */
/* Rules that one packet may pass because of jumps, beyond the number of rules. */
#define RULESET_PASSES_MAX 1000000
#define RULESET_WORDS      20 /* registers of four octets, as in the kernel */
#define RULESET_FIELDS_MAX 16 /* fields of a concatenation */
#define RULESET_KEY_MAX    64 /* octets of a key in a set */
#define RULESET_VALUE_MAX  16 /* octets of a comparison, of a value in a map */
#define RULESET_NONE       UINT32_MAX

enum ruleset_kind {
	OP_PAYLOAD, /* octets of the packet into a register */
	OP_META,    /* a fact about the packet into a register */
	OP_EXTHDR,  /* octets of an extension header of IPv6, or whether it is present */
	OP_FIB,     /* whether a route leads back to the source, into a register */
	OP_VALUE,   /* a constant into a register */
	OP_MASK,    /* register = (register & a) ^ b */
	OP_SHIFT,   /* register = register << n, or >> n, as one number in host order */
	OP_SWAP,    /* byte order of each number in a register */
	OP_COMPARE, /* a register with a constant */
	OP_RANGE,   /* a register with two constants */
	OP_LOOKUP,  /* a register in a set or a map */
	OP_VERDICT,
	OP_REJECT,
	OP_COUNT, /* a named counter */
	OP_COUNT_RULE,
	OP_LIMIT,
	OP_MARK, /* write the traffic class */
	OP_LOG,  /* copy the packet for the log */
};

struct logged_ring;
struct ruleset_log;

enum ruleset_base { BASE_NETWORK, BASE_TRANSPORT };

enum ruleset_meta {
	META_LENGTH,
	META_PROTOCOL, /* EtherType */
	META_FAMILY,
	META_L4PROTO,
	META_IIF,
	META_OIF,
	META_IIFNAME,
	META_OIFNAME,
};

enum ruleset_compare {
	COMPARE_EQ,
	COMPARE_NE,
	COMPARE_LT,
	COMPARE_LE,
	COMPARE_GT,
	COMPARE_GE
};

/* The verdict of a rule, or of an element of a verdict map. */
enum ruleset_code {
	CODE_CONTINUE, /* the next operation */
	CODE_BREAK,    /* the next rule */
	CODE_ACCEPT,
	CODE_DROP,
	CODE_JUMP,
	CODE_GOTO,
	CODE_RETURN,
	CODE_REJECT, /* decided by OP_REJECT only */
};

/*
 * A limit: a bucket that all threads share, stored as the time at which it is full again.
 */
struct ruleset_limit {
	_Atomic uint64_t full_at; /* W:fwd,punt  ticks */
	uint64_t room;            /* ticks that a full bucket holds */
	double cost;              /* ticks for a packet, or for an octet */
	bool by_octets, over;     /* over: matches packets above the limit */
};

/* Packets and octets, counted by one thread: a cache line of its own. */
struct ruleset_count {
	alignas(64) uint64_t packets;
	uint64_t octets;
};

/* The state of a rule, or of a named counter or limit. [filter] allocates and frees it. */
struct ruleset_state {
	struct ruleset_limit *limit; /* of the rule's operations, in their order */
	unsigned int n_limit;
	unsigned int n_used;         /* W:filter  rulesets that name it */
	uint32_t content;            /* kept_content() of the rule; 0: a named object */
	struct ruleset_count *count; /* W:fwd,punt  by thread */
};

/* A named counter or limit, or a rule that no packet can reach at present. */
struct ruleset_stateful {
	uint64_t table_handle, handle; /* numbers of the kernel */
	struct ruleset_state *state;
};

struct ruleset_op {
	uint8_t kind;     /* enum ruleset_kind */
	uint8_t from, to; /* words of the registers */
	uint8_t len;      /* octets */
	/* ruleset_base, ruleset_meta or ruleset_compare; OP_EXTHDR: type of the header */
	uint8_t what;
	/* OP_LOOKUP: inverted; OP_SHIFT: right; OP_EXTHDR: presence; OP_FIB: only by iif */
	uint8_t flag;
	uint16_t at; /* offset in the header; OP_SHIFT: bits; OP_SWAP: octets of a number */
	union {
		struct {
			uint8_t a[RULESET_VALUE_MAX], b[RULESET_VALUE_MAX];
		};
		struct {
			uint8_t code; /* enum ruleset_code */
			uint32_t chain;
		} verdict;
		struct {
			uint8_t type[2], code[2]; /* of ICMP, of ICMPv6 */
		} reject;
		uint32_t set;
		struct ruleset_limit *limit;
		struct ruleset_count *count;
		struct ruleset_log *log;
	};
};

struct ruleset_rule {
	uint32_t op, n_op; /* in ruleset.op */
	uint32_t chain;
	bool counts; /* it has OP_COUNT_RULE; else it counts after its last operation */
	/*
	 * `sure`: families (bit 0: IPv4, bit 1: IPv6) for which the conditions of the
	 * classifier are exact. If the classifier names the rule for a packet of such a
	 * family that has both ports, the rule matches the packet, and only counts it and
	 * gives the verdict `sure_code`.
	 */
	uint8_t sure, sure_code;
	uint64_t handle; /* of the kernel */
	char *comment;   /* NULL: none; any octets but 0 */
	struct ruleset_state *state;
};

struct ruleset_chain {
	uint32_t rule, n_rule; /* in ruleset.rule */
	bool drops;            /* policy of a base chain */
	bool dormant;          /* of a dormant table: no packet reaches it */
	uint8_t family;        /* 4, 6, or 0: of a table inet */
	int32_t priority;
	uint64_t table_handle; /* of the kernel */
	uint64_t handle;
	char *name;
	struct ruleset_acl *acl[2]; /* classifiers of IPv4, IPv6; NULL: rules are walked */
};

struct ruleset_element {
	uint8_t code;                     /* verdict map: the verdict, enum ruleset_code */
	bool end;                         /* interval: the key is the first key after it */
	uint32_t chain;                   /* verdict map: the chain of a jump or goto */
	uint64_t until;                   /* ticks of its expiry; 0: it does not expire */
	uint8_t value[RULESET_VALUE_MAX]; /* map: the value of the key */
};

enum ruleset_set_kind {
	SET_EXACT,    /* sorted keys */
	SET_INTERVAL, /* sorted begins and ends */
	SET_RANGES,   /* one range for each field of a concatenation */
	SET_PREFIXES, /* addresses, in a Poptrie */
};

/*
 * The elements of a set, except for elements in a Poptrie. Immutable while readers have it.
 */
struct ruleset_content {
	uint32_t n, room;
	uint8_t *key;     /* n * key_len */
	uint8_t *key_end; /* SET_RANGES */
	struct ruleset_element *element;
};

struct ruleset_set {
	uint8_t kind, key_len, value_len;
	bool is_map, has_verdicts;
	bool interval;  /* the elements are begins and ends, or ranges */
	bool addresses; /* each key is one IPv4 or IPv6 address */
	bool changes;   /* elements are added and removed while the ruleset stays */
	bool expires;   /* the elements have expiry times */
	bool small;     /* SET_PREFIXES: the Poptrie has its small form */
	uint8_t table;  /* number of its table */
	/* SET_RANGES: octets of each field, without padding */
	uint8_t n_field, field[RULESET_FIELDS_MAX];
	struct ruleset_content
		*_Atomic content;      /* W:filter; SET_PREFIXES: readers use pt */
	struct poptrie *pt;            /* SET_PREFIXES: each member has the value 1 */
	struct ruleset_element *other; /* for all other keys; NULL: none */
	char *name;
};

struct ruleset {
	uint32_t n_base, n_chain, n_rule, n_op, n_set, n_stateful;
	uint32_t *base; /* base chains at the hook forward, in their order */
	struct ruleset_chain *chain;
	struct ruleset_rule *rule;
	struct ruleset_op *op;
	struct ruleset_set *set;
	struct ruleset_stateful *stateful; /* [filter] */
	bool absent;    /* in place of a ruleset that could not be read: drops all */
	bool asks_back; /* some rule has OP_FIB: packets need `back` */
	bool logs;      /* some rule has OP_LOG */
	struct logged_ring *logged; /* by thread; NULL: OP_LOG does nothing */
	uint32_t generation;        /* W:filter; changes also when elements change */
};

/* The result of the check of the route back to the source, as enum fib_back. */
enum ruleset_back {
	RULESET_BACK_NONE,
	RULESET_BACK_OTHER, /* not through the interface that received the packet */
	RULESET_BACK_HERE,
};

/* A packet at the hook forward. */
struct ruleset_packet {
	uint8_t *ip;                   /* IP header; the hop count is not reduced yet */
	unsigned int room;             /* octets that can be read; 20 or 40 at least */
	uint16_t l3_bytes;             /* of the whole packet */
	uint8_t family;                /* 4 or 6 */
	bool dry;                      /* change no counter and no limit, log nothing */
	uint32_t iif, oif;             /* interface indexes of the kernel */
	const char *iifname, *oifname; /* 16 octets, zeros after the name */
	uint64_t now;                  /* ticks */
	unsigned int thread;           /* index of its counters */
	/*
	 * Return the result for the route back to the source. `iif`: policy rules apply as
	 * if the packet was received from `oif`; else as if this router sent it. NULL: no
	 * rule with OP_FIB matches.
	 */
	enum ruleset_back (*back)(const struct ruleset_packet *p, bool iif);
	const void *back_of; /* for `back`: data of the caller */
	/* W:ruleset_look() */
	bool looked;        /* the next four members are valid */
	bool has_transport; /* l4proto and transport are known */
	bool later;         /* a later fragment: no transport header */
	uint8_t l4proto;
	unsigned int transport; /* offset */
	/* result of ruleset_acl_classify() for the first base chain; NULL: unknown */
	const uint32_t *begins;
	/* out */
	bool marked;                  /* the traffic class was written */
	uint8_t icmp_type, icmp_code; /* RULESET_REJECT */
	uint32_t rule;  /* the rule that decided; RULESET_NONE: the policy of a chain */
	uint32_t chain; /* of the rule or of the policy; RULESET_NONE: no chain */
};

enum ruleset_verdict { RULESET_PASS, RULESET_DROP, RULESET_REJECT };

/* Find the upper layer of a packet. ruleset_judge() calls this if it was not called. */
void ruleset_look(struct ruleset_packet *p);

/*
 * Count a packet of `l3_bytes` for a rule that is `sure` for its family, in the counters of
 * `thread`. Returns true if it passes, false if it is dropped. [RCU reader]
 */
bool ruleset_decide(const struct ruleset_rule *rule, unsigned int thread,
		    uint16_t l3_bytes);

/* Judge a packet, as the hook forward of the kernel does. [RCU reader] */
enum ruleset_verdict ruleset_judge(const struct ruleset *r, struct ruleset_packet *p);

/*
 * Find the element of `key` in a set at time `now`. Returns NULL if there is none. The key
 * has key_len octets.
 */
const struct ruleset_element *ruleset_find(const struct ruleset_set *set,
					   const uint8_t *key, uint64_t now);

/* Free a ruleset that no thread reads; the state of a rule is freed with its last user. */
void ruleset_free(struct ruleset *r);
void ruleset_state_drop(struct ruleset_state *state);

#endif
