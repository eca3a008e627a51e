/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The expected state after a captured stream, computed from its decode in text. Routes,
 * next-hop ids and groups are in plain arrays with linear search. The model shares no code
 * with fpm/ and rib/ except the spelling of prefixes. It follows the rules of doc/fpm.md.
 */
#ifndef CAPTURE_MODEL_H
#define CAPTURE_MODEL_H

#include "base/prefix.h"

enum cm_kind { CM_HOP, CM_BLACKHOLE, CM_UNREACHABLE, CM_PROHIBIT, CM_UNRESOLVED };

struct cm_path {
	enum cm_kind kind;
	struct ipaddr gw;
	uint8_t gw_family; /* 0: none */
	bool encap;        /* an encapsulation that is not supported */
	bool sid;          /* an end point of SRv6: packets to it are for this router */
	char labels[48];   /* of MPLS, as 16/17; "": none */
	char headend[48];  /* the first segment of a headend of SRv6; "": none */
	uint32_t ifindex;
	uint32_t weight;
};

struct cm_paths {
	struct cm_path *v;
	uint32_t n;
};

struct cm_member {
	uint32_t id, weight;
};

struct cm_nh {
	uint32_t id;
	bool known;  /* zebra has announced its content */
	bool absent; /* zebra deleted the id, but a route or a group names it */
	bool group;
	struct cm_path path;
	struct cm_member *member;
	uint32_t n_member;
};

struct cm_route {
	struct prefix prefix;
	uint32_t table, protocol, type; /* RTN_* */
	uint32_t nhid;
	uint32_t session;
	bool frozen; /* `nhid` is of an older session: `paths` has its next hops */
	struct cm_paths paths;
};

/* A port or another interface. It has one IPv4 and one IPv6 address. */
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

/* The next hops of packets as text, each once, with the sum of its weights. */
struct cm_answer {
	struct {
		char text[80];
		uint64_t weight;
	} path[300];
	uint32_t n;
};

void model_free(struct model *m);
void model_session(struct model *m);          /* zebra connects */
void model_read(struct model *m, char *text); /* `text`: a decode; it is written to */
/* remove the routes that this session has not sent */
void model_replay_over(struct model *m);

/* Return the next hops that a route has now. The caller frees `v`. */
struct cm_paths model_paths(const struct model *m, const struct cm_route *r);
bool model_nh_exists(const struct model *m, const struct cm_nh *nh);

/*
 * Return all ids with their content and all routes as `show routes` prints them, sorted.
 * The caller frees the text.
 */
char *model_text(const struct model *m);
void model_answer(const struct model *m, uint8_t family, const struct ipaddr *dst,
		  struct cm_answer *out);

/* Lines of text, to be sorted and joined. */
struct lines {
	char **v;
	uint32_t n;
};
void lines_add(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* sort the lines, join them and empty `l`; the caller frees the text */
char *lines_join(struct lines *l, const char *separator);

#endif
