/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The warnings that the scans of the warn thread make from the kernel's answers and from
 * rows of rib and neigh: IPsec, IPVS, nf_tables, groups of next hops, SRv6, rules, tunnels.
 * The test makes the answers, so that it needs no kernel with these parts.
 *
 * link: fpm-dataplane/warn/ipsec.c fpm-dataplane/warn/netfilter.c fpm-dataplane/warn/nexthops.c
 * link: fpm-dataplane/warn/seg6.c fpm-dataplane/warn/rules.c fpm-dataplane/warn/tunnels.c fpm-dataplane/warn/genl.c
 * link: fpm-dataplane/warn/list.c fpm-dataplane/warn/ipvs.c fpm-dataplane/warn/addrlabel.c
 * link: fpm-dataplane/netlink/nft_message.c fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <linux/seg6_genl.h>
#include <linux/xfrm.h>
#include <stdalign.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/kernel_event.h"
#include "fib/headend.h"
#include "warn/impl.h"

#define ANSWERS 8
#define FAMILY  0x21              /* number of SEG6 in generic netlink */
#define KEYS    (FAMILY | 0x8000) /* the type of a request of FAMILY with NLM_F_DUMP */

/* The answers of the kernel to requests of one type. */
struct answer {
	uint16_t type; /* of the request */
	int rc;        /* of the dump */
	unsigned int n;
	alignas(8) uint8_t octet[2048]; /* n messages */
	size_t bytes;
};

static struct {
	struct warn w;
	struct fib fib;
	struct own own;
	int protocol; /* argument of the last ask_open() */
	int open_rc;  /* result of ask_open(), if negative */
	struct answer answer[ANSWERS];
	unsigned int n_answer, n_asked[ANSWERS];
	alignas(8) uint8_t request[128]; /* the last one that has an answer */
	int unread;                      /* error of unread_add(); 0: not called */
	json_t *rows;
} t;

/* --- functions that this program replaces --------------------------------------------- */

int
ask_open(int protocol)
{
	t.protocol = protocol;
	return t.open_rc < 0 ? t.open_rc : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int
ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	bool dump = (request->nlmsg_flags & NLM_F_DUMP) != 0;
	uint16_t type = dump && request->nlmsg_type == FAMILY ? KEYS : request->nlmsg_type;

	assert_ptr_equal(w, &t.w);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_in_range(request->nlmsg_len, 1, sizeof(t.request));
	for (unsigned int i = 0; i < t.n_answer; i++) {
		struct answer *a = &t.answer[i];
		size_t at = 0;

		if (a->type != type)
			continue;
		memcpy(t.request, request, request->nlmsg_len);
		t.n_asked[i]++;
		for (unsigned int k = 0; k < a->n; k++) {
			const struct nlmsghdr *nlh = (const void *)(a->octet + at);

			fn(w, nlh, ctx);
			at += MNL_ALIGN(nlh->nlmsg_len);
		}
		return a->rc;
	}
	return 0;
}

void
unread_add(struct warn *w, const char *part, int error)
{
	t.unread = error;
}

/* --- answers -------------------------------------------------------------------------- */

/* Begin a message of the answer to requests of a type, with a header of `len` octets. */
static struct nlmsghdr *
message(uint16_t request, uint16_t type, const void *head, size_t len)
{
	struct nlmsghdr *nlh;
	struct answer *a = NULL;

	for (unsigned int i = 0; i < t.n_answer; i++)
		if (t.answer[i].type == request)
			a = &t.answer[i];
	if (a == NULL) {
		assert_true(t.n_answer < ANSWERS);
		a = &t.answer[t.n_answer++];
		a->type = request;
	}
	if (a->n > 0) { /* the message before has grown since */
		size_t at = 0;

		for (unsigned int k = 0; k < a->n; k++)
			at += MNL_ALIGN(((const struct nlmsghdr *)(void *)(a->octet + at))
						->nlmsg_len);
		a->bytes = at;
	}
	assert_true(a->bytes + 512 <= sizeof(a->octet));
	nlh = mnl_nlmsg_put_header(a->octet + a->bytes);
	nlh->nlmsg_type = type;
	memcpy(mnl_nlmsg_put_extra_header(nlh, len), head, len);
	nlh->nlmsg_len = (uint32_t)(MNL_NLMSG_HDRLEN + len); /* not padded */
	a->n++;
	return nlh;
}

/* The kernel refuses requests of a type, or ends the answer with an error. */
static void
refuse(uint16_t request, int rc)
{
	assert_true(t.n_answer < ANSWERS);
	t.answer[t.n_answer++] = (struct answer){.type = request, .rc = rc};
}

static void
forget(void)
{
	memset(t.answer, 0, sizeof(t.answer));
	memset(t.n_asked, 0, sizeof(t.n_asked));
	t.n_answer = 0;
	t.unread = 0;
}

/* Run a scan. Return the number of its warnings. */
static unsigned int
scanned(void (*scan)(struct warn *w))
{
	uint64_t from = 0;

	list_begin(&t.w.list);
	scan(&t.w);
	list_end(&t.w.list);
	json_decref(t.rows);
	t.rows = json_array();
	assert_true(list_rows(&t.w.list, &from, WARNINGS_MAX, t.rows));
	return (unsigned int)json_array_size(t.rows);
}

static const char *
text(unsigned int row, const char *key)
{
	return json_string_value(json_object_get(json_array_get(t.rows, row), key));
}

static void
row_is(unsigned int row, const char *kind, const char *where)
{
	assert_string_equal(text(row, "kind"), kind);
	assert_string_equal(text(row, "where"), where);
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&kernel_status, 0, sizeof(kernel_status));
	t.w.conf = (struct warn_conf){.fib = &t.fib, .filter = ""};
	t.w.own = &t.own;
	t.w.n_own = 1;
	strcpy(t.own.name, "lan0");
	return list_init(&t.w.list);
}

static int
teardown(void **state)
{
	free(atomic_load(&t.fib.seg6));
	json_decref(t.rows);
	json_decref(t.w.rules);
	json_decref(t.w.links);
	json_decref(t.w.tunnels);
	list_free(&t.w.list);
	return 0;
}

/* --- IPVS ----------------------------------------------------------------------------- */

static const char *services; /* the content of /proc/net/ip_vs */

static void
services_scan(struct warn *w)
{
	FILE *f = fmemopen((void *)services, strlen(services), "r");

	assert_non_null(f);
	ipvs_read(w, f);
	fclose(f);
}

#define IPVS_HEAD                                       \
	"IP Virtual Server version 1.2.1 (size=4096)\n" \
	"Prot LocalAddress:Port Scheduler Flags\n"      \
	"  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n"

static void
virtual_services_of_ipvs_are_counted(void **state)
{
	services = IPVS_HEAD;
	scanned(services_scan);
	assert_int_equal(json_array_size(t.rows), 0);

	services =
		IPVS_HEAD "TCP  C0000201:0050 rr \n"
			  "  -> C0000242:0050      Masq    1      0          0         \n";
	scanned(services_scan);
	assert_int_equal(json_array_size(t.rows), 1);
	row_is(0, "nat", "1 virtual service of IPVS");

	services =
		IPVS_HEAD "UDP  [2001:0db8:0004:0000:0000:0000:0000:0001]:0035 wlc \n"
			  "FWM  00000007 rr persistent 300 FFFFFFFF\n"
			  "  -> C0000242:0050      Masq    1      0          0         \n";
	scanned(services_scan);
	row_is(0, "nat", "2 virtual services of IPVS");
}

/* --- IPsec ---------------------------------------------------------------------------- */

/* Let the kernel have these default policies and these numbers of policies. */
static void
ipsec_is(uint8_t in, uint8_t fwd, uint8_t out, uint32_t n_in, uint32_t n_out,
	 uint32_t n_fwd)
{
	struct xfrm_userpolicy_default is = {.in = in, .fwd = fwd, .out = out};
	struct xfrmu_spdinfo n = {
		.incnt = n_in, .outcnt = n_out, .fwdcnt = n_fwd, .inscnt = 9};
	uint32_t flags = 0;

	forget();
	message(XFRM_MSG_GETDEFAULT, XFRM_MSG_GETDEFAULT, &is, sizeof(is));
	mnl_attr_put(
		message(XFRM_MSG_GETSPDINFO, XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags)),
		XFRMA_SPD_INFO, sizeof(n), &n);
}

static uint8_t
tunnels_after_scan(void)
{
	atomic_store(&t.fib.tunnels_state, 0x7f);
	scanned(ipsec_scan);
	return atomic_load(&t.fib.tunnels_state);
}

static void
a_policy_of_ipsec_leaves_tunnels_to_the_kernel(void **state)
{
	enum { ACCEPT = XFRM_USERPOLICY_ACCEPT, BLOCK = XFRM_USERPOLICY_BLOCK };

	ipsec_is(ACCEPT, ACCEPT, ACCEPT, 0, 0, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_ALLOWED);
	assert_int_equal(json_array_size(t.rows), 0);
	assert_int_equal(t.protocol, NETLINK_XFRM);
	assert_int_equal(t.n_asked[0], 1);
	assert_int_equal(t.n_asked[1], 1);
	assert_int_equal(t.unread, 0);

	/* Policies of one direction. Those for incoming packets change no transit. */
	ipsec_is(ACCEPT, ACCEPT, ACCEPT, 1, 0, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 0);
	ipsec_is(ACCEPT, ACCEPT, ACCEPT, 0, 1, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 1);
	row_is(0, "ipsec", "policies of direction out");
	ipsec_is(ACCEPT, ACCEPT, ACCEPT, 0, 0, 1);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 1);
	row_is(0, "ipsec", "policies of direction fwd");

	/* The default policy blocks one direction in each step. */
	ipsec_is(BLOCK, ACCEPT, ACCEPT, 0, 0, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 0);
	ipsec_is(ACCEPT, BLOCK, ACCEPT, 0, 0, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 1);
	row_is(0, "ipsec", "default policy block");
	ipsec_is(ACCEPT, ACCEPT, BLOCK, 0, 0, 0);
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_IPSEC);
	assert_int_equal(json_array_size(t.rows), 1);
	row_is(0, "ipsec", "default policy block");
}

static void
an_ipsec_answer_that_is_cut_short_changes_nothing(void **state)
{
	struct xfrm_userpolicy_default is = {.fwd = XFRM_USERPOLICY_BLOCK};
	struct xfrmu_spdinfo n = {.fwdcnt = 1};
	uint32_t flags = 0;

	/* Each answer is one octet too short, or has no numbers, or is of another type. */
	for (unsigned int i = 0; i < 5; i++) {
		forget();
		message(XFRM_MSG_GETDEFAULT,
			i == 0 ? XFRM_MSG_NEWSPDINFO : XFRM_MSG_GETDEFAULT, &is,
			sizeof(is) - (i != 0));
		if (i == 1)
			message(XFRM_MSG_GETSPDINFO, XFRM_MSG_NEWSPDINFO, &flags,
				sizeof(flags) - 1);
		else if (i == 2)
			message(XFRM_MSG_GETSPDINFO, XFRM_MSG_NEWSPDINFO, &flags,
				sizeof(flags));
		else
			mnl_attr_put(
				message(XFRM_MSG_GETSPDINFO,
					i == 3 ? XFRM_MSG_GETDEFAULT : XFRM_MSG_NEWSPDINFO,
					&flags, sizeof(flags)),
				i == 4 ? XFRMA_SPD_UNSPEC : XFRMA_SPD_INFO, sizeof(n), &n);
		assert_int_equal(tunnels_after_scan(), i == 0 ? FIB_TUNNELS_IPSEC : 0x7f);
		assert_int_equal(json_array_size(t.rows), i == 0 ? 1 : 0);
	}
}

static void
tunnels_are_allowed_by_a_kernel_without_ipsec_only(void **state)
{
	t.open_rc = -EPROTONOSUPPORT;
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_ALLOWED);
	assert_int_equal(t.unread, 0);
	t.open_rc = -EMFILE;
	assert_int_equal(tunnels_after_scan(), 0x7f);
	assert_int_equal(t.unread, -EMFILE);
	t.open_rc = 0;
	t.unread = 0;
	refuse(XFRM_MSG_GETSPDINFO, -EPERM);
	t.w.outer_asked.ipsec = true;
	assert_int_equal(tunnels_after_scan(), 0x7f);
	assert_int_equal(t.unread, -EPERM);
	assert_true(t.w.outer_asked.ipsec);
	/* A kernel before Linux 5.15 has no default policies. */
	ipsec_is(0, 0, 0, 0, 0, 0);
	t.answer[0].n = 0;
	t.answer[0].rc = -EINVAL;
	assert_int_equal(tunnels_after_scan(), FIB_TUNNELS_ALLOWED);
	assert_false(t.w.outer_asked.ipsec);
	assert_int_equal(t.unread, 0);
}

/* --- nf_tables ------------------------------------------------------------------------ */

#define GET_CHAINS (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN)
#define NEW_CHAIN  (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN)

struct chain {
	uint8_t family;
	int hook; /* -1: no base chain */
	const char *type, *device;
	uint32_t rules, policy;
	bool many; /* the device is in a list of devices */
};

/* Make the answer about one chain "c" of table "t". */
static void
chain_is(const struct chain *c)
{
	struct nfgenmsg head = {.nfgen_family = c->family};
	struct nlattr *hook, *list;
	struct nlmsghdr *nlh;

	forget();
	nlh = message(GET_CHAINS, NEW_CHAIN, &head, sizeof(head));
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, "t");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, "c");
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TYPE, c->type != NULL ? c->type : "filter");
	mnl_attr_put_u32(nlh, NFTA_CHAIN_USE, htonl(c->rules));
	mnl_attr_put_u32(nlh, NFTA_CHAIN_POLICY, htonl(c->policy));
	if (c->hook < 0)
		return;
	hook = mnl_attr_nest_start(nlh, NFTA_CHAIN_HOOK);
	mnl_attr_put_u32(nlh, NFTA_HOOK_HOOKNUM, htonl((uint32_t)c->hook));
	if (c->many) {
		list = mnl_attr_nest_start(nlh, NFTA_HOOK_DEVS);
		mnl_attr_put_strz(nlh, NFTA_DEVICE_NAME, "other0");
		mnl_attr_put_strz(nlh, NFTA_DEVICE_NAME, c->device);
		mnl_attr_nest_end(nlh, list);
	} else if (c->device != NULL) {
		mnl_attr_put_strz(nlh, NFTA_HOOK_DEV, c->device);
	}
	mnl_attr_nest_end(nlh, hook);
}

/* Return an attribute of the chain. */
static struct nlattr *
chain_attr(uint16_t type)
{
	struct nlmsghdr *nlh = (void *)t.answer[0].octet;
	struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) ==
							       type) return a;
	fail();
	return NULL;
}

static void
attr_rename(uint16_t type)
{
	chain_attr(type)->nla_type = 99;
}

/* Make a number of the chain one octet shorter than it should be. The padding stays. */
static void
attr_cut(uint16_t type)
{
	chain_attr(type)->nla_len--;
}

static void
each_hook_of_packets_in_transit_is_told(void **state)
{
	static const struct {
		struct chain chain;
		const char *where, *at; /* NULL: no warning */
	} each[] = {
		{{NFPROTO_IPV4, 0, .rules = 1}, "table ip t, chain c", "prerouting"},
		{{NFPROTO_IPV4, 1, .rules = 1}, NULL, NULL}, /* input */
		{{NFPROTO_IPV4, 2, .rules = 1}, "table ip t, chain c", "forward"},
		{{NFPROTO_IPV4, 3, .rules = 1}, NULL, NULL}, /* output */
		{{NFPROTO_IPV4, 4, .rules = 1}, "table ip t, chain c", "postrouting"},
		{{NFPROTO_IPV4, 6, .rules = 1}, NULL, NULL},
		{{NFPROTO_IPV6, 2, .rules = 1}, "table ip6 t, chain c", "forward"},
		{{NFPROTO_INET, 2, .rules = 1}, "table inet t, chain c", "forward"},
		{{NFPROTO_ARP, 2, .rules = 1}, NULL, NULL},
		{{NFPROTO_BRIDGE, 2, .rules = 1}, NULL, NULL},
		{{NFPROTO_INET, 5, .device = "lan0", .rules = 1},
		 "table inet t, chain c",
		 "ingress"},
		{{NFPROTO_INET, 5, .device = "lan00", .rules = 1}, NULL, NULL},
		{{NFPROTO_NETDEV, 0, .device = "lan0", .rules = 1},
		 "table netdev t, chain c",
		 "ingress"},
		{{NFPROTO_NETDEV, 1, .device = "lan0", .rules = 1},
		 "table netdev t, chain c",
		 "egress"},
		{{NFPROTO_NETDEV, 2, .device = "lan0", .rules = 1}, NULL, NULL},
		{{NFPROTO_NETDEV, 0, .device = "lan0", .rules = 1, .many = true},
		 "table netdev t, chain c",
		 "ingress"},
		{{NFPROTO_NETDEV, 0, .device = "wan0", .rules = 1, .many = true},
		 NULL,
		 NULL},
		{{NFPROTO_NETDEV, 0, .rules = 1}, NULL, NULL}, /* no device */
		{{NFPROTO_INET, -1, .rules = 1}, NULL, NULL},  /* no base chain */
	};
	char at[32];

	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		struct chain c = each[i].chain;

		c.policy = NF_ACCEPT;
		chain_is(&c);
		assert_int_equal(scanned(netfilter_scan), each[i].where != NULL);
		if (each[i].where == NULL)
			continue;
		row_is(0, "nft", each[i].where);
		snprintf(at, sizeof(at), " at hook %s,", each[i].at);
		assert_non_null(strstr(text(0, "linux"), at));
	}
	assert_int_equal(t.protocol, NETLINK_NETFILTER);
	assert_int_equal(((struct nlmsghdr *)(void *)t.request)->nlmsg_flags,
			 NLM_F_REQUEST | NLM_F_DUMP);
}

static void
a_chain_is_told_by_its_rules_and_its_policy(void **state)
{
	struct chain c = {NFPROTO_IPV4, NF_INET_FORWARD, .policy = NF_ACCEPT};

	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 0);
	c.policy = NF_DROP;
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 1);
	assert_string_equal(text(0, "linux"),
			    "Linux applies 0 rules to each packet in transit at hook "
			    "forward, and then the policy drop.");
	assert_string_equal(text(0, "dataplane"),
			    "Forwarded packets do not pass the chain.");
	c = (struct chain){NFPROTO_IPV4, NF_INET_FORWARD, .policy = NF_ACCEPT, .rules = 1};
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 1);
	assert_string_equal(text(0, "linux"),
			    "Linux applies 1 rule to each packet in transit at hook "
			    "forward, and then the policy accept.");
	c.rules = 2;
	c.type = "nat";
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 1);
	row_is(0, "nat", "table ip t, chain c");
	assert_string_equal(
		text(0, "linux"),
		"Linux applies 2 rules to the first packet of each connection in "
		"transit, and translates its addresses, at hook forward, and "
		"then the policy accept.");
	assert_string_equal(text(0, "dataplane"),
			    "Forwarded packets keep their addresses.");

	/* The forwarders obey forward chains of tables of the filter. */
	t.w.conf.filter = "inet a, ip t";
	assert_int_equal(scanned(netfilter_scan), 0);
	t.w.conf.filter = "inet t, ip tt";
	assert_int_equal(scanned(netfilter_scan), 1);
	t.w.conf.filter = "ip t";
	c.hook = NF_INET_POST_ROUTING;
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 1);
	/* A chain of which the kernel reports no number of rules has none. */
	c = (struct chain){NFPROTO_IPV4, NF_INET_FORWARD, .policy = NF_ACCEPT, .rules = 1};
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 0); /* obeyed */
	t.w.conf.filter = "";
	assert_int_equal(scanned(netfilter_scan), 1);
	attr_rename(NFTA_CHAIN_USE);
	assert_int_equal(scanned(netfilter_scan), 0);
	chain_is(&c);
	attr_rename(NFTA_CHAIN_POLICY); /* accept */
	assert_int_equal(scanned(netfilter_scan), 1);
	assert_non_null(strstr(text(0, "linux"), "policy accept"));
	chain_is(&c);
	attr_cut(NFTA_CHAIN_USE);
	assert_int_equal(scanned(netfilter_scan), 0);
	/* Messages of another type. */
	c.policy = NF_DROP;
	chain_is(&c);
	assert_int_equal(scanned(netfilter_scan), 1);
	((struct nlmsghdr *)(void *)t.answer[0].octet)->nlmsg_type =
		NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELCHAIN;
	assert_int_equal(scanned(netfilter_scan), 0);
}

static void
a_kernel_without_a_part_is_no_error(void **state)
{
	static const struct {
		void (*scan)(struct warn *w);
		uint16_t type;
		int good; /* this error says that the kernel lacks the part */
	} each[] = {
		{netfilter_scan, GET_CHAINS, -EINVAL},
		{netfilter_scan, GET_CHAINS, -EOPNOTSUPP},
		{nexthops_scan, RTM_GETNEXTHOP, -EOPNOTSUPP},
		{seg6_scan, GENL_ID_CTRL, -ENOENT},
	};

	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		forget();
		refuse(each[i].type, each[i].good);
		scanned(each[i].scan);
		assert_int_equal(t.unread, 0);
		t.w.seg6_family = 0;
		forget();
		refuse(each[i].type, -EPERM);
		scanned(each[i].scan);
		assert_int_equal(t.unread, -EPERM);
	}
	t.unread = 0;
	t.open_rc = -EPROTONOSUPPORT;
	scanned(netfilter_scan);
	scanned(seg6_scan);
	assert_int_equal(t.unread, 0);
	t.open_rc = -EMFILE;
	scanned(netfilter_scan);
	assert_int_equal(t.unread, -EMFILE);
	t.unread = 0;
	scanned(nexthops_scan);
	assert_int_equal(t.unread, -EMFILE);
	t.unread = 0;
	scanned(seg6_scan);
	assert_int_equal(t.unread, -EMFILE);
}

/* --- groups of next hops -------------------------------------------------------------- */

static void
a_resilient_group_with_an_idle_timer_is_told(void **state)
{
	struct nhmsg nhm = {.nh_family = AF_UNSPEC};
	uint32_t idle[] = {0, 1, 12000};
	struct nlattr *group;
	struct nlmsghdr *nlh;

	for (unsigned int i = 0; i < 3; i++) {
		forget();
		nlh = message(RTM_GETNEXTHOP, RTM_NEWNEXTHOP, &nhm, sizeof(nhm));
		group = mnl_attr_nest_start(nlh, NHA_RES_GROUP);
		mnl_attr_put_u32(nlh, NHA_RES_GROUP_IDLE_TIMER, idle[i]);
		mnl_attr_nest_end(nlh, group);
		assert_int_equal(scanned(nexthops_scan), idle[i] != 0);
	}
	row_is(0, "resilient", "resilient groups of next hops with an idle timer");
	assert_int_equal(t.protocol, NETLINK_ROUTE);
	/* One warning for all groups, also if the last one has no timer. */
	message(RTM_GETNEXTHOP, RTM_NEWNEXTHOP, &nhm, sizeof(nhm));
	assert_int_equal(scanned(nexthops_scan), 1);
	/*
	 * There is no warning for another timer, another message, or a message that is too
	 * short.
	 */
	forget();
	nlh = message(RTM_GETNEXTHOP, RTM_NEWNEXTHOP, &nhm, sizeof(nhm));
	group = mnl_attr_nest_start(nlh, NHA_RES_GROUP);
	mnl_attr_put_u32(nlh, NHA_RES_GROUP_UNBALANCED_TIMER, 5);
	mnl_attr_nest_end(nlh, group);
	nlh = message(RTM_GETNEXTHOP, RTM_DELNEXTHOP, &nhm, sizeof(nhm));
	group = mnl_attr_nest_start(nlh, NHA_RES_GROUP);
	mnl_attr_put_u32(nlh, NHA_RES_GROUP_IDLE_TIMER, 5);
	mnl_attr_nest_end(nlh, group);
	message(RTM_GETNEXTHOP, RTM_NEWNEXTHOP, &nhm, sizeof(nhm) - 1);
	assert_int_equal(scanned(nexthops_scan), 0);
	/* The request asks for groups only. */
	assert_int_equal(((struct nlmsghdr *)(void *)t.request)->nlmsg_len,
			 NLMSG_LENGTH(sizeof(struct nhmsg)) + NLA_HDRLEN);
	assert_int_equal(
		((struct nlattr *)(void *)(t.request + NLMSG_LENGTH(sizeof(struct nhmsg))))
			->nla_type,
		NHA_GROUPS);
}

/* --- SRv6 ----------------------------------------------------------------------------- */

static void
seg6_is(uint16_t family, const uint8_t source[16])
{
	struct genlmsghdr head = {0};

	forget();
	mnl_attr_put_u16(message(GENL_ID_CTRL, GENL_ID_CTRL, &head, sizeof(head)),
			 CTRL_ATTR_FAMILY_ID, family);
	if (source != NULL)
		mnl_attr_put(message(FAMILY, FAMILY, &head, sizeof(head)), SEG6_ATTR_DST,
			     16, source);
}

static const uint8_t *
source_now(void)
{
	const struct fib_seg6 *s = atomic_load(&t.fib.seg6);

	return s == NULL ? NULL : s->source.octet;
}

static void
the_source_address_of_srv6_is_published(void **state)
{
	static const uint8_t one[16] = {0x20, 1, [15] = 1}, two[16] = {0x20, 1, [15] = 2};
	const void *before;

	seg6_is(FAMILY, one);
	assert_int_equal(scanned(seg6_scan), 0);
	assert_int_equal(t.unread, 0);
	assert_int_equal(t.protocol, NETLINK_GENERIC);
	assert_memory_equal(source_now(), one, 16);
	assert_int_equal(((struct genlmsghdr *)(void *)(t.request + NLMSG_HDRLEN))->cmd,
			 SEG6_CMD_GET_TUNSRC);

	/* The family is asked for once, and an equal address is not published again. */
	before = source_now();
	scanned(seg6_scan);
	assert_int_equal(t.n_asked[0], 1);
	assert_int_equal(t.n_asked[1], 2);
	assert_ptr_equal(source_now(), before);
	seg6_is(FAMILY, two);
	scanned(seg6_scan);
	assert_memory_equal(source_now(), two, 16);

	/* An answer without an address is an error, and the address stays. */
	forget();
	scanned(seg6_scan);
	assert_int_equal(t.unread, -EPROTO);
	assert_memory_equal(source_now(), two, 16);
	/* The daemon ends. */
	forget();
	refuse(FAMILY, -ECANCELED);
	scanned(seg6_scan);
	assert_int_equal(t.unread, 0);
}

static void
keys_for_the_hmac_of_srv6_are_told(void **state)
{
	static const uint8_t one[16] = {0x20, 1, [15] = 1};
	struct genlmsghdr head = {0};

	seg6_is(FAMILY, one);
	mnl_attr_put_u32(message(KEYS, FAMILY, &head, sizeof(head)), SEG6_ATTR_HMACKEYID,
			 7);
	assert_int_equal(scanned(seg6_scan), 1);
	assert_int_equal(((struct genlmsghdr *)(void *)(t.request + NLMSG_HDRLEN))->cmd,
			 SEG6_CMD_DUMPHMAC);

	/* A kernel that is built without HMAC has no keys. Another error is reported. */
	seg6_is(FAMILY, one);
	refuse(KEYS, -524); /* ENOTSUPP of the kernel */
	assert_int_equal(scanned(seg6_scan), 0);
	assert_int_equal(t.unread, 0);
	seg6_is(FAMILY, one);
	refuse(KEYS, -ENOMEM);
	scanned(seg6_scan);
	assert_int_equal(t.unread, -ENOMEM);
	assert_memory_equal(source_now(), one, 16);
}

static void
a_kernel_without_srv6_is_asked_once_and_has_no_source(void **state)
{
	static const uint8_t none[16] = {0};

	refuse(GENL_ID_CTRL, -ENOENT);
	scanned(seg6_scan);
	scanned(seg6_scan);
	assert_int_equal(t.n_asked[0], 1);
	assert_int_equal(t.unread, 0);
	assert_memory_equal(source_now(), none, 16);
}

static void
a_number_that_is_no_family_is_refused(void **state)
{
	seg6_is(NLMSG_MIN_TYPE - 1, NULL);
	scanned(seg6_scan);
	assert_int_equal(t.unread, -EPROTO);
	assert_int_equal(t.w.seg6_family, 0); /* the next scan asks again */
	assert_null(source_now());
	seg6_is(NLMSG_MIN_TYPE, NULL);
	scanned(seg6_scan);
	assert_int_equal(t.w.seg6_family, NLMSG_MIN_TYPE);
}

/* --- rules, routes and tunnels -------------------------------------------------------- */

static json_t *
rule(const char *family, int pref, int table)
{
	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:i, s:b, s:n, s:n, s:n, s:n, s:n, s:n}",
		"family", family, "pref", pref, "from", "all", "to", "all", "action",
		"lookup", "table", table, "obeyed", 1, "iif", "tos", "ip_protocol", "sport",
		"dport", "lacks");
}

static void
a_rule_for_main_before_local_is_told(void **state)
{
	static const char *const narrow[] = {"from",      "to",    "iif",         "oif",
					     "flowlabel", "tos",   "ip_protocol", "sport",
					     "dport",     "lacks", "not"};
	json_t *local;

	t.w.rules = json_array();
	json_array_append_new(t.w.rules, rule("ipv4", 0, RT_TABLE_LOCAL));
	json_array_append_new(t.w.rules, rule("ipv4", 32766, RT_TABLE_MAIN));
	json_array_append_new(t.w.rules, rule("ipv6", 0, RT_TABLE_LOCAL));
	json_array_append_new(t.w.rules, rule("ipv6", 5, 100));
	assert_int_equal(scanned(rules_scan), 0);
	json_array_insert_new(t.w.rules, 2, rule("ipv6", 7, RT_TABLE_MAIN));
	assert_int_equal(scanned(rules_scan), 1);
	row_is(0, "rule", "ipv6 rule 7 before table local");
	json_array_remove(t.w.rules, 2);

	/* A rule for some packets only does not put table local first. */
	local = json_array_get(t.w.rules, 0);
	for (unsigned int i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
		json_t *was = json_copy(local);

		json_object_set_new(local, narrow[i],
				    strcmp(narrow[i], "not") == 0 ? json_true()
								  : json_string("x"));
		assert_int_equal(scanned(rules_scan), 1);
		row_is(0, "rule", "ipv4 rule 32766 before table local");
		json_object_update(local, was);
		json_object_del(local, "not");
		json_decref(was);
	}
	/* A rule for main that refuses packets is no lookup. */
	json_object_set_new(local, "to", json_string("x"));
	json_object_set_new(json_array_get(t.w.rules, 1), "action",
			    json_string("prohibit"));
	assert_int_equal(scanned(rules_scan), 0);
}

static void
a_rule_that_is_not_obeyed_is_told(void **state)
{
	json_t *one = rule("ipv6", 10, 100);

	t.w.rules = json_pack("[o]", one);
	json_object_set_new(one, "from", json_string("2001:db8::/32"));
	json_object_set_new(one, "obeyed", json_false());
	json_object_set_new(one, "lacks", json_string("uidrange"));
	assert_int_equal(scanned(rules_scan), 1);
	row_is(0, "rule", "ipv6 rule 10, from 2001:db8::/32 to all");
	assert_string_equal(text(0, "dataplane"),
			    "The part uidrange is not obeyed: fpmctl show rules.");
	json_object_del(one, "to");
	assert_int_equal(scanned(rules_scan), 1);
	row_is(0, "rule", "ipv6 rule 10, from 2001:db8::/32 to ?");
}

static void
routes_that_linux_uses_otherwise_are_told_by_kind(void **state)
{
	static const struct {
		_Atomic uint32_t *count;
		const char *kind;
	} of[] = {
		{&kernel_status.short_local, "route-local"},
		{&kernel_status.expired_joined, "route-life"},
		{&kernel_status.cut_now, "route-large"},
		{&kernel_status.by_ingress, "route-order"},
		{&kernel_status.several_mtus, "route-mtu"},
		{&kernel_status.mixed, "mixed-group"},
	};

	t.w.links = json_pack("[{s:s},{s:s},{s:s,s:s},{s:s,s:s},{s:s}]", "why", "loopback",
			      "why", "encap", "why", "ipv6-off", "name", "lan1", "why",
			      "carrier", "name", "lan2", "why", "local-source");
	assert_int_equal(scanned(rules_scan), 5);
	assert_string_equal(text(0, "kind"), "route-source");
	row_is(1, "carrier", "lan2 without carrier");
	row_is(2, "loopback", "routes by the interface lo");
	row_is(3, "encap", "routes with an unsupported encapsulation");
	row_is(4, "ipv6-off", "lan1 without IPv6");
	json_array_clear(t.w.links);
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		atomic_store(of[i].count, 1);
		assert_int_equal(scanned(rules_scan), 1);
		assert_string_equal(text(0, "kind"), of[i].kind);
		atomic_store(of[i].count, 0);
	}
	assert_int_equal(scanned(rules_scan), 0);
}

static void
tunnels_of_the_kernel_and_filters_of_vnis_are_told(void **state)
{
	t.w.tunnels = json_pack("[{s:s,s:s,s:s},{s:s,s:s}]", "kind", "gre", "name", "gre1",
				"reason", "it has a key", "kind", "vxlan", "name", "vx0");
	assert_int_equal(scanned(tunnels_scan), 2);
	row_is(0, "tunnel", "gre gre1: it has a key");
	row_is(1, "vnifilter", "vnifilter of vx0");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(virtual_services_of_ipvs_are_counted),
		TEST(a_policy_of_ipsec_leaves_tunnels_to_the_kernel),
		TEST(an_ipsec_answer_that_is_cut_short_changes_nothing),
		TEST(tunnels_are_allowed_by_a_kernel_without_ipsec_only),
		TEST(each_hook_of_packets_in_transit_is_told),
		TEST(a_chain_is_told_by_its_rules_and_its_policy),
		TEST(a_kernel_without_a_part_is_no_error),
		TEST(a_resilient_group_with_an_idle_timer_is_told),
		TEST(the_source_address_of_srv6_is_published),
		TEST(keys_for_the_hmac_of_srv6_are_told),
		TEST(a_kernel_without_srv6_is_asked_once_and_has_no_source),
		TEST(a_number_that_is_no_family_is_refused),
		TEST(a_rule_for_main_before_local_is_told),
		TEST(a_rule_that_is_not_obeyed_is_told),
		TEST(routes_that_linux_uses_otherwise_are_told_by_kind),
		TEST(tunnels_of_the_kernel_and_filters_of_vnis_are_told),
	};

	return cmocka_run_group_tests_name("warn_scans", tests, NULL, NULL);
}
