/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the source address of the outer headers of SRv6 (`ip sr tunsrc`), and warn of keys
 * for the HMAC of routing headers (`ip sr hmac`). The kernel has no events for them, so
 * each scan reads both. Until the source is known, the kernel handles headends. [warn]
 *
 * The requests use generic netlink. A kernel without a family searches for a module each
 * time the number of this family is requested. The family SEG6 is never a module, so its
 * number is requested once.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/seg6_genl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/tsan.h"
#include "fib/headend.h"
#include "netlink/attributes.h"
#include "warn/impl.h"

#define NOT_SUPPORTED 524 /* ENOTSUPP of the kernel: it is built without HMAC for SRv6 */

struct seg6_answer {
	bool told;            /* `source` is valid */
	bool has_key;         /* the kernel has a key for HMAC */
	struct ipaddr source; /* all zero: none */
};

static void
on_source(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct seg6_answer *answer = ctx;
	const struct nlattr *source = genl_attr(nlh, SEG6_ATTR_DST);

	answer->told = source != NULL && attr_copy(source, answer->source.octet,
						   sizeof(answer->source.octet)) == 0;
}

static void
on_key(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct seg6_answer *answer = ctx;

	answer->has_key |= genl_attr(nlh, SEG6_ATTR_HMACKEYID) != NULL;
}

/* Send a command of SEG6 with NLM_F_REQUEST and `flags`. Returns as ask_dump(). */
static int
seg6_command(struct warn *w, int fd, uint8_t cmd, uint16_t flags, ask_fn fn,
	     struct seg6_answer *answer)
{
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = (uint16_t)w->seg6_family,
			     .nlmsg_flags = NLM_F_REQUEST | flags},
		     .genl = {.cmd = cmd, .version = SEG6_GENL_VERSION}};

	return ask_dump(w, fd, &request.nlh, fn, answer);
}

static int
source_ask(struct warn *w, int fd, struct seg6_answer *answer)
{
	int rc = seg6_command(w, fd, SEG6_CMD_GET_TUNSRC, 0, on_source, answer);

	return rc == 0 && !answer->told ? -EPROTO : rc;
}

/* Request the keys for HMAC. */
static int
keys_ask(struct warn *w, int fd, struct seg6_answer *answer)
{
	int rc = seg6_command(w, fd, SEG6_CMD_DUMPHMAC, NLM_F_DUMP, on_key, answer);

	return rc == -NOT_SUPPORTED || rc == -EOPNOTSUPP ? 0 : rc;
}

/* Publish the address if it has changed. The thread is RCU-offline. */
static void
source_publish(struct warn *w, const struct ipaddr *source)
{
	_Atomic(struct fib_seg6 *) *seg6 = &w->conf.fib->seg6;
	struct fib_seg6 *old = atomic_load_explicit(seg6, memory_order_relaxed), *new;

	if (old != NULL && ipaddr_equal(&old->source, source))
		return;
	new = malloc(sizeof(*new));
	if (new == NULL)
		return; /* the next scan tries again */
	new->source = *source;
	/* Release: a forwarder that reads the new pointer also reads the new address. */
	atomic_store_explicit(seg6, new, memory_order_release);
	if (old == NULL)
		return;
	urcu_qsbr_synchronize_rcu(); /* may take long, but no thread waits for warn */
	GRACE_OVER();
	free(old);
}

/*
 * Request address and keys. If the kernel has no SRv6, returns 0 and leaves `answer` empty.
 */
static int
seg6_ask(struct warn *w, struct seg6_answer *answer)
{
	int fd = ask_open(NETLINK_GENERIC), rc = 0, keys_rc = 0;

	if (fd == -EPROTONOSUPPORT)
		return 0;
	if (fd < 0)
		return fd;
	if (w->seg6_family == 0) {
		rc = genl_family(w, fd, SEG6_GENL_NAME);
		if (rc > 0 || rc == -ENOENT)
			w->seg6_family = rc;
	}
	if (w->seg6_family > 0)
		rc = source_ask(w, fd, answer);
	if (w->seg6_family > 0 && rc == 0)
		keys_rc = keys_ask(w, fd, answer);
	close(fd);
	if (keys_rc < 0 && keys_rc != -ECANCELED)
		unread_add(w, "HMAC keys of SRv6", keys_rc);
	return rc == -ENOENT ? 0 : rc;
}

void
seg6_scan(struct warn *w)
{
	struct seg6_answer answer = {0};
	int rc = w->seg6_family == -ENOENT ? 0 : seg6_ask(w, &answer);

	if (rc == 0)
		source_publish(w, &answer.source);
	else if (rc != -ECANCELED)
		unread_add(w, "source address of SRv6", rc);
	if (answer.has_key)
		list_add(
			&w->list, WARNING_SRV6, "keys of ip sr hmac",
			"Linux drops a packet to a SID if its HMAC is wrong, or if the key "
			"is unknown.",
			"End points do not verify the HMAC: they accept the packet.");
}
