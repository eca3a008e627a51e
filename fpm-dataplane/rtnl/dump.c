/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dumps of the kernel's tables: the jobs of plan.c, one request each. [rtnl]
 *
 * The kernel sends the next part of an answer when the last part was read, so a dump never
 * overruns a buffer, and the thread can pause in it. Each job begins and ends with a mark
 * for rib, which then removes the objects that the dump did not show. Rules come first and
 * without marks: each family has one list, which replaces its earlier list. Before them
 * lookups show if Linux has split the tables local and main of IPv4, and if it obeys the
 * rules of IPv6. It begins to obey these when the first rule is added
 * (fib6_has_custom_rules).
 *
 * If a route is added during an IPv6 dump, Linux begins again, and passes over as many
 * routes as it has shown. If some of these were deleted meanwhile, it passes over other
 * routes that it has not shown, and does not set NLM_F_DUMP_INTR. An answer is complete if
 * no route was deleted in its time (changes.c). Else the thread requests the dump again, up
 * to ANSWERS_MAX answers, and rib removes only routes that no answer showed. If many routes
 * were deleted, all answers may lack the same route: rib removes no route then, and the
 * thread reads all tables again later.
 *
 * Linux continues a dump of rules by the number of rules that it has shown, too. An answer
 * in whose time a rule was deleted is requested again, up to ANSWERS_MAX answers. After the
 * last one the event of the deletion makes the thread read the rules once more.
 *
 * Linux ends a dump at a route that does not fit in a datagram, and reports success. It
 * dumps table local last. So an answer of all tables without a route of table local is
 * incomplete if table local alone has routes. Then rib removes no routes, and the thread
 * reads those of the commonest protocols by requests of their own: only the answer for the
 * protocol of the large route ends early, too. Dumps of labels are not cut: a route of
 * labels has 4096 octets at most (MAX_MPLS_ROUTE_MEM), which a datagram has room for.
 *
 * A kernel without MPLS answers a dump of labels with the routes of all other families.
 * Beside a large IPv6 route this answer has no end (Linux 6.18: empty datagrams). So a
 * lookup shows first if the kernel has MPLS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "rtnl/impl.h"

#define TRIES_MAX   8u /* attempts at a dump that changes of the tables interrupt */
#define ANSWERS_MAX 4u /* to a dump of IPv6 routes during which routes are deleted */
/*
 * Deleted routes are few if the answer has at least FEW times as many. Then at most one
 * route in FEW is missing in an answer, and about one in FEW ^ ANSWERS_MAX in all answers.
 */
#define FEW 100u

#ifndef RTPROT_KEEPALIVED
#define RTPROT_KEEPALIVED 18
#endif

static uint8_t
af_of_family(uint8_t family)
{
	return family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_MPLS;
}

/*
 * Return true if rib gets marks for the job, and removes the objects that the job does not
 * show.
 */
static bool
job_has_marks(const struct dump_job *job)
{
	return job->kind == DUMP_ROUTES || job->kind == DUMP_NEXTHOPS;
}

/* Return true if the job looks up one address. */
static bool
job_is_lookup(const struct dump_job *job)
{
	return job->kind == DUMP_SPLIT || job->kind == DUMP_LOCAL6 ||
	       job->kind == DUMP_MAIN6 || job->kind == DUMP_HAS_LABELS;
}

/*
 * Write the request of a lookup. The answer comes from routes that Linux makes: ::1 in
 * table local when lo is up, and fe80::/64 in table main for an interface with IPv6.
 */
static void
lookup_ask(struct nlmsghdr *nlh, const struct dump_job *job)
{
	struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct in6_addr dst = in6addr_loopback;

	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_len = NLMSG_LENGTH(sizeof(*rtm));
	rtm->rtm_family = af_of_family(job->scope.family);
	if (job->kind == DUMP_HAS_LABELS)
		/*
		 * Without a label the request is invalid: a kernel with MPLS answers EINVAL,
		 * another one EOPNOTSUPP.
		 */
		return;
	rtm->rtm_dst_len = job->scope.family == 4 ? 32 : 128;
	if (job->kind == DUMP_SPLIT) {
		/*
		 * Linux answers with table main for its own address until the rules of IPv4
		 * are changed for the first time, then with table local (fib_lookup()).
		 */
		rtm->rtm_flags = RTM_F_LOOKUP_TABLE;
		mnl_attr_put_u32(nlh, RTA_DST, htonl(INADDR_LOOPBACK));
		return;
	}
	if (job->kind == DUMP_MAIN6)
		inet_pton(AF_INET6, "fe80::ffff:ffff:ffff:fffe", &dst);
	mnl_attr_put(nlh, RTA_DST, sizeof(dst), &dst);
}

/* Store which table answered the lookup of the present job. */
static void
lookup_done(struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	uint8_t table = nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*rtm)) ? RT_TABLE_UNSPEC
								    : rtm->rtm_table;

	switch (r->job[r->at].kind) {
	case DUMP_SPLIT:
		r->split4 |= table == RT_TABLE_LOCAL;
		break;
	case DUMP_LOCAL6:
		r->local6 = table == RT_TABLE_LOCAL;
		break;
	case DUMP_MAIN6:
		r->main6 = table == RT_TABLE_MAIN;
		break;
	default:
		break;
	}
}

/* Return true if deletions can make Linux skip entries in the answer to the present job. */
static bool
answer_may_skip(const struct rtnl *r)
{
	const struct dump_job *job = &r->job[r->at];

	return job->kind == DUMP_RULES ||
	       (job->kind == DUMP_ROUTES && job->scope.family == 6 && !r->checking);
}

/* Send the request of the present job to the kernel. Returns 0 or -errno. */
static int
job_ask(struct rtnl *r)
{
	const struct dump_job *job = &r->job[r->at];
	struct {
		struct nlmsghdr nlh;
		union {
			struct rtmsg rtm;
			struct nhmsg nhm;
			struct fib_rule_hdr frh;
			uint8_t room[NLMSG_ALIGN(sizeof(struct rtmsg)) + NLA_HDRLEN + 16];
		};
	} request = {
		.nlh = {.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = ++r->seq}};
	uint8_t af = af_of_family(job->scope.family);
	int rc;

	switch (job->kind) {
	case DUMP_NEXTHOPS:
		request.nlh.nlmsg_type = RTM_GETNEXTHOP;
		request.nlh.nlmsg_len = NLMSG_LENGTH(sizeof(request.nhm));
		break;
	case DUMP_RULES:
		request.nlh.nlmsg_type = RTM_GETRULE;
		request.nlh.nlmsg_len = NLMSG_LENGTH(sizeof(request.frh));
		request.frh.family = af;
		pass_rules_begin(r, job->scope.family);
		break;
	case DUMP_SPLIT:
	case DUMP_LOCAL6:
	case DUMP_MAIN6:
	case DUMP_HAS_LABELS:
		lookup_ask(&request.nlh, job);
		break;
	case DUMP_ROUTES:
		request.nlh.nlmsg_type = RTM_GETROUTE;
		request.nlh.nlmsg_len = NLMSG_LENGTH(sizeof(request.rtm));
		request.rtm.rtm_family = af;
		request.rtm.rtm_protocol = job->scope.protocol;
		if (job->scope.table != 0 || r->checking)
			mnl_attr_put_u32(&request.nlh, RTA_TABLE,
					 r->checking ? RT_TABLE_LOCAL : job->scope.table);
		break;
	}
	if (job->kind == DUMP_LOCAL6)
		r->local6 = false;
	if (job->kind == DUMP_MAIN6)
		r->main6 = false;
	if (job->kind == DUMP_HAS_LABELS)
		r->no_labels = false;
	if (job_has_marks(job) && r->n_answers == 0 && !r->checking)
		pass_mark(r, KERNEL_DUMP_BEGIN, &job->scope);
	if (r->n_answers == 0 || r->checking)
		r->local_shown = false;
	r->n_messages = 0;
	r->interrupted = false;
	r->asked = true;
	rc = answer_may_skip(r) ? changes_begin(r) : 0;
	if (rc < 0)
		return rc;
	return send(r->dumps, &request, request.nlh.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* --- dumps that Linux cuts ------------------------------------------------------------ */

/* Return true if a complete answer to the job has the routes of table local. */
static bool
job_has_local(const struct dump_job *job)
{
	return job->kind == DUMP_ROUTES && job->scope.table == 0 &&
	       (job->scope.family == 4 || job->scope.family == 6) &&
	       (job->scope.protocol == 0 || job->scope.protocol == RTPROT_KERNEL);
}

/* Store if Linux has cut the dumps of a family, and log a change. */
static void
cut_store(struct rtnl *r, uint8_t family, bool cut)
{
	unsigned int v = family == 6, bit = 1u << v;
	uint32_t now = atomic_load_explicit(&kernel_status.cut_now, memory_order_relaxed);

	r->cut[v] = cut;
	if (((now & bit) != 0) == cut)
		return;
	atomic_store_explicit(&kernel_status.cut_now, now ^ bit, memory_order_relaxed);
	if (cut)
		log_error("rtnl: list of routes incomplete family=ipv%u "
			  "reason=route-with-too-many-next-hops "
			  "effect=rest-of-list-missing-after-restart",
			  family);
	else
		log_info("rtnl: list of routes complete again family=ipv%u", family);
}

/*
 * Handle an answer of all tables that was cut: read the routes of the kernel's own
 * protocol, which has the connected subnets, and those of other common protocols.
 */
static void
cut_add_jobs(struct rtnl *r, const struct dump_job *cut)
{
	static const uint8_t protocols[] = {RTPROT_KERNEL,    RTPROT_BOOT, RTPROT_STATIC,
					    RTPROT_RA,        RTPROT_DHCP, RTPROT_BIRD,
					    RTPROT_KEEPALIVED};

	kernel_count(&kernel_status.cut, 1);
	if (cut->scope.protocol != 0)
		return;
	for (unsigned int i = 0; i < sizeof(protocols) && r->n_jobs < JOBS_MAX; i++)
		r->job[r->n_jobs++] = (struct dump_job){
			.kind = DUMP_ROUTES,
			.scope = {.family = cut->scope.family, .protocol = protocols[i]}};
}

/*
 * Find out if Linux sent a complete answer to the present job. Returns false if this is not
 * known until the thread has requested table local alone. `*complete`: rib may remove the
 * routes that the answer lacks.
 */
static bool
answer_judge(struct rtnl *r, bool *complete)
{
	const struct dump_job job = r->job[r->at];
	uint8_t family = job.scope.family;

	*complete =
		job.kind != DUMP_ROUTES || family == FAMILY_LABEL || !r->cut[family == 6];
	if (!job_has_local(&job))
		return true;
	if (!r->checking && !r->local_shown) {
		*complete = false;
		if (r->interrupted)
			return true; /* all tables are read again */
		r->checking = true;
		return false;
	}
	/*
	 * If table local has no routes, only an event shows that Linux may have cut the
	 * answer.
	 */
	*complete = !r->checking || (!r->local_shown && !r->has_large[family == 6]);
	r->checking = false;
	if (!*complete)
		cut_add_jobs(r, &job);
	if (!*complete || job.scope.protocol == 0)
		cut_store(r, family, !*complete);
	return true;
}

/* --- jobs ----------------------------------------------------------------------------- */

/*
 * Handle the end of an answer in which Linux may have skipped entries. Returns true if the
 * dump is requested again.
 */
static bool
answer_skipped(struct rtnl *r)
{
	uint32_t deleted = changes_end(r);

	if (deleted == 0) {
		r->many_deleted = false;
		return false;
	}
	r->many_deleted |= deleted > r->n_messages / FEW;
	if (++r->n_answers < ANSWERS_MAX) {
		kernel_count(&kernel_status.interrupted, 1);
		return true;
	}
	r->interrupted |= r->many_deleted;
	return false;
}

/* Go to the next job, or repeat the present job if it was interrupted. */
static void
job_done(struct rtnl *r)
{
	const struct dump_job *job = &r->job[r->at];
	bool complete;

	r->asked = false;
	if (r->interrupted && ++r->tries < TRIES_MAX) {
		kernel_count(&kernel_status.interrupted, 1);
		r->checking = false;
		return;
	}
	if (answer_may_skip(r) && answer_skipped(r))
		return;
	if (!answer_judge(r, &complete))
		return;
	if (job->kind == DUMP_RULES)
		pass_rules_end(r, job->scope.family);
	else if (!job_has_marks(job))
		; /* the list of rules that follows depends on the result */
	else if (r->interrupted)
		r->all_due = true; /* a later dump shows which routes to remove */
	else if (complete)
		pass_mark(r, KERNEL_DUMP_END, &job->scope);
	r->n_answers = r->tries = 0;
	r->many_deleted = false;
	kernel_count(&kernel_status.dumps, 1);
	r->at++;
}

static bool
job_is_labels(const struct dump_job *job)
{
	return job->kind == DUMP_ROUTES && job->scope.family == FAMILY_LABEL;
}

/* Return true if the answer of a dump of labels has a message about another family. */
static bool
answer_is_foreign(const struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	return job_is_labels(&r->job[r->at]) &&
	       (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*rtm)) || rtm->rtm_family != AF_MPLS);
}

/*
 * Return the kernel's error in the last message of a dump, or 0. Kernels without next-hop
 * objects (before 5.3), or without policy routing, answer -EOPNOTSUPP: they have no such
 * objects. The answer is -EAFNOSUPPORT if one family alone has no policy routing. A kernel
 * without MPLS answers a dump of labels with any error, or with routes of other families.
 * For a table that has no route the answer is -ENOENT.
 */
static int
job_error(struct rtnl *r, const struct nlmsghdr *nlh)
{
	int error = 0;

	if (nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
	if (r->job[r->at].kind == DUMP_HAS_LABELS)
		r->no_labels = error == -EOPNOTSUPP;
	if (job_is_lookup(&r->job[r->at]))
		return 0; /* no route, for example because lo is down */
	if (job_is_labels(&r->job[r->at]) && error != -ENOMEM && error != -ENOBUFS)
		return 0;
	if (r->job[r->at].kind == DUMP_RULES &&
	    (error == -EOPNOTSUPP || error == -EAFNOSUPPORT)) {
		r->no_rules = true;
		return 0;
	}
	if (r->job[r->at].kind == DUMP_NEXTHOPS && error == -EOPNOTSUPP)
		return 0;
	return (r->checking || r->job[r->at].scope.table != 0) && error == -ENOENT ? 0
										   : error;
}

/* Return true if the message is a route of table local. */
static bool
message_is_local(const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	return nlh->nlmsg_type == RTM_NEWROUTE &&
	       nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(*rtm)) &&
	       rtm->rtm_table == RT_TABLE_LOCAL;
}

/* Handle one datagram of an answer. Returns 1 at its end, 0 if more follows, or -errno. */
static int
answer_take(struct rtnl *r, size_t len)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)r->buffer;
	int left = (int)len;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_seq != r->seq)
			continue; /* answers a request that was given up */
		r->interrupted |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (nlh->nlmsg_type == NLMSG_DONE || nlh->nlmsg_type == NLMSG_ERROR) {
			int error = job_error(r, nlh);

			return error < 0 ? error : 1;
		}
		if (job_is_lookup(&r->job[r->at])) {
			lookup_done(r, nlh);
			return 1;
		}
		if (answer_is_foreign(r, nlh))
			continue;
		r->n_shown++;
		r->n_messages++;
		r->local_shown |= message_is_local(nlh);
		if (r->job[r->at].kind == DUMP_RULES)
			pass_rule(r, nlh);
		else
			pass_message(r, nlh, true);
	}
	return 0;
}

/* End a dump of labels that was not requested, because the kernel has no MPLS. */
static void
labels_skip(struct rtnl *r)
{
	pass_mark(r, KERNEL_DUMP_BEGIN, &r->job[r->at].scope);
	r->interrupted = false;
	job_done(r);
}

int
dump_continue(struct rtnl *r)
{
	while (dump_runs(r)) {
		ssize_t n;
		int rc;

		if (!r->asked && r->no_labels && job_is_labels(&r->job[r->at])) {
			labels_skip(r);
			continue;
		}
		rc = r->asked ? 0 : job_ask(r);
		if (rc < 0)
			return rc;
		n = recv(r->dumps, r->buffer, DUMP_BUFFER_BYTES, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if ((size_t)n > DUMP_BUFFER_BYTES)
			return -EMSGSIZE;
		if (n == 0)
			return -ENODATA; /* such an answer has no end */
		rc = answer_take(r, (size_t)n);
		if (rc < 0)
			return rc;
		if (rc == 1)
			job_done(r);
		/*
		 * Pause only within a job: between two jobs no datagram would wake this
		 * thread.
		 */
		else if (kernel_queue_depth() > KERNEL_QUEUE_PAUSE_BYTES)
			return 0;
	}
	return 1;
}
