/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a captured stream must lead to, by its decode in text alone: routes, nexthop ids and
 * groups in plain arrays, searched from one end to the other. Shares no code with fpm/ and
 * rib/ but the spelling of prefixes; the rules are those of FPM.md.
 */
#ifndef CAPTURE_MODEL_H
#define CAPTURE_MODEL_H

#include "base/prefix.h"

enum cm_kind { CM_HOP, CM_BLACKHOLE, CM_UNREACHABLE, CM_PROHIBIT, CM_UNRESOLVED };

struct cm_way {
	enum cm_kind kind;
	struct ipaddr gw;
	uint8_t gw_family; /* 0: none */
	bool encap;
	uint32_t ifindex;
	uint32_t weight;
};

struct cm_ways {
	struct cm_way *v;
	uint32_t n;
};

struct cm_member {
	uint32_t id, weight;
};

struct cm_nh {
	uint32_t id;
	bool known;  /* has content */
	bool absent; /* DELNEXTHOP came, somebody still names it */
	bool group;
	struct cm_way way;
	struct cm_member *member;
	uint32_t n_member;
};

struct cm_route {
	struct prefix prefix;
	uint32_t table, protocol, type; /* RTN_* */
	uint32_t nhid;
	uint32_t session;
	bool frozen; /* its id was an older session's: `ways` is what that meant */
	struct cm_ways ways;
};

/* A port or another interface, with the one IPv4 and the one IPv6 address that it has. */
struct cm_link {
	uint32_t ifindex, ifidx;
	bool up;
	const char *addr[2];
};

struct model {
	struct cm_link link[8];
	uint32_t n_link;
	uint32_t session;
	struct cm_route *route;
	uint32_t n_route;
	struct cm_nh *nh;
	uint32_t n_nh;
};

/* Ways that packets take, as text with the share of each, sorted. */
struct cm_answer {
	struct {
		char text[80];
		uint64_t weight;
	} way[300];
	uint32_t n;
};

void model_free(struct model *m);
void model_session(struct model *m);          /* zebra connects */
void model_read(struct model *m, char *text); /* a decode; written to */
void model_replay_over(struct model *m);      /* what this session did not say goes */

/* What a route comes to by now; the caller frees `v`. Is an id still of any use? */
struct cm_ways model_ways(const struct model *m, const struct cm_route *r);
bool model_nh_exists(const struct model *m, const struct cm_nh *nh);

/* All ids with their content, all routes as `show routes` has them, sorted. malloc'ed. */
char *model_text(const struct model *m);
void model_answer(const struct model *m, uint8_t family, const struct ipaddr *dst,
		  struct cm_answer *out);

/* Lines sorted, as one malloc'ed text. */
struct lines {
	char **v;
	uint32_t n;
};
void lines_add(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *lines_join(struct lines *l, const char *separator); /* sorts and empties */

#endif
