/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any octets as messages of the kernel: they pass the decoder and become routes and
 * next-hop objects of a RIB, while dumps begin and end, links change, and zebra has routes
 * of the same prefixes. The decoder makes sound events, the RIB stays sound (invariants.c),
 * and a dump that shows nothing leaves no record of the kernel.
 *
 * A libFuzzer target. An input is a script: an octet chooses a step, the octets after it
 * are the values of the step. STEP_MESSAGE decodes the octets as a netlink message. The
 * other steps make events with values from small pools, because only events that refer to
 * each other reach the interesting code.
 */
#include "../unit/rib_rig.h"
#include "invariants.h"
#include "netlink/kernel_message.h"

#define INPUTS_A_RIG  500u
#define STEPS_MAX     400u
#define N_LINK        3u
#define PICK(pool, i) (pool)[(i) % (sizeof(pool) / sizeof((pool)[0]))]

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step {
	STEP_ROUTE,
	STEP_DELETE,
	STEP_MESSAGE,
	STEP_NEXTHOP,
	STEP_NEXTHOP_DEL,
	STEP_DUMP,
	STEP_LINK,
	STEP_ZEBRA,
	STEP_SETTLE,
	STEP_N
};

static struct rig *rig;
static unsigned int n_inputs;

static const char *const prefix_of[] = {"198.51.100.0/24", "192.0.2.0/25",
					"192.0.2.126/32",  "0.0.0.0/0",
					"2001:db8:9::/48", "2001:db8:1::/64"};
static const uint8_t type_of[] = {RTN_UNICAST, RTN_UNICAST,   RTN_UNICAST, RTN_LOCAL,
				  RTN_ANYCAST, RTN_BROADCAST, RTN_THROW,   RTN_BLACKHOLE};
static const uint8_t protocol_of[] = {RTPROT_STATIC, RTPROT_KERNEL, RTPROT_RA, RTPROT_BOOT};
static const uint32_t metric_of[] = {0, 20, 256, 1024};
static const uint32_t table_of[] = {RT_TABLE_MAIN, RT_TABLE_MAIN, 100, 200};
static const char *const gateway_of[] = {"192.0.2.1", "192.0.2.129", "2001:db8:1::1",
					 "2001:db8:2::1"};

/* Return the next octet of the script; 0 at its end. */
static uint8_t
octet(const uint8_t **p, const uint8_t *end)
{
	return *p < end ? *(*p)++ : 0;
}

static void
step_route(const uint8_t **p, const uint8_t *end, enum kernel_event_kind kind)
{
	uint8_t a = octet(p, end), b = octet(p, end), c = octet(p, end);
	struct kernel_event *ev = rig_kernel_route(rig, kind, PICK(prefix_of, a),
						   PICK(metric_of, b), NULL, 0);
	uint8_t family = ev->route.prefix.family;

	ev->order = family == 6 && a / 8 % 4 == KERNEL_FIRST ? KERNEL_LAST : a / 8 % 4;
	ev->is_local = (b & 0x10) != 0;
	ev->route.table = ev->is_local ? RT_TABLE_MAIN : PICK(table_of, b / 32u);
	ev->route.rtm_type = PICK(type_of, c);
	ev->route.protocol = PICK(protocol_of, c / 8u);
	ev->source4 = family == 4 ? c / 128u : 0;
	ev->details = family == 4 ? b / 4u % 4 : 0; /* 0: as after a restart */
	if (ev->route.rtm_type != RTN_UNICAST)
		return;
	if ((c & 0x40) != 0) {
		ev->route.nhid = 1 + octet(p, end) % 6u;
		return;
	}
	for (unsigned int n = octet(p, end) % 3u; n > 0; n--) {
		uint8_t hop = octet(p, end);

		rig_kernel_hop(ev, (hop & 0x80) != 0 ? NULL : PICK(gateway_of, hop),
			       11 + hop / 8u % N_LINK);
	}
	if (kind == KERNEL_ROUTE && a >= 250)
		ev->kind = KERNEL_ROUTE_REPLACED;
}

static void
event_must_be_sound(const struct kernel_event *ev)
{
	struct prefix masked = ev->route.prefix;

	MUST((ev->route.n_hops == 0) == (ev->route.hops == NULL));
	if (ev->kind == KERNEL_NEXTHOP || ev->kind == KERNEL_NEXTHOP_DEL) {
		MUST(ev->route.nhid != 0);
		return;
	}
	MUST(ev->kind == KERNEL_ROUTE || ev->kind == KERNEL_ROUTE_DEL);
	MUST(family_is_ip(masked.family) || masked.family == FAMILY_LABEL);
	MUST(masked.len <= family_bits(masked.family) && ev->order <= KERNEL_LISTED);
	MUST((ev->route.table == FPM_TABLE_NONE) == (masked.family == FAMILY_LABEL));
	prefix_mask(&masked);
	MUST(prefix_equal(&masked, &ev->route.prefix));
}

/* Decode a message of the script, and give rib its event. */
static void
step_message(const uint8_t **p, const uint8_t *end)
{
	static const uint16_t type[] = {RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWNEXTHOP,
					RTM_DELNEXTHOP, RTM_NEWLINK};
	uint8_t which = octet(p, end), flags = octet(p, end);
	size_t len = octet(p, end);
	struct kernel_event ev = {0};
	struct nlmsghdr *nlh;
	uint32_t expires_ms;
	int rc;

	if (len > (size_t)(end - *p))
		len = (size_t)(end - *p);
	/*
	 * The block ends with the message, so that the sanitizer finds an over-read of one
	 * octet.
	 */
	nlh = malloc(sizeof(*nlh) + len);
	MUST(nlh != NULL);
	*nlh = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof(*nlh) + len),
				 .nlmsg_type = PICK(type, which),
				 .nlmsg_flags = (uint16_t)(flags << 8)};
	memcpy(nlh + 1, *p, len);
	*p += len;
	rc = kernel_message_decode(nlh, (which & 0x80) != 0, &ev, &expires_ms);
	free(nlh);
	if (rc != KERNEL_TAKEN) {
		MUST(rc > 0 || rc == -EBADMSG);
		fpm_event_clear(&ev.route);
		return;
	}
	event_must_be_sound(&ev);
	*rig_kernel(rig, (enum kernel_event_kind)ev.kind) = ev;
}

static void
step_nexthop(const uint8_t **p, const uint8_t *end)
{
	uint8_t a = octet(p, end), b = octet(p, end);
	uint32_t id = 1 + a % 6u;

	if ((a & 0x80) != 0)
		rig_kernel_group(rig, id, 1 + b % 6u, 1 + b / 8u % 6u);
	else
		rig_kernel_nexthop(rig, id, PICK(gateway_of, b), 11 + b / 8u % N_LINK);
}

static void
step_dump(uint8_t arg)
{
	static const uint8_t family[] = {4, 6, 0, FAMILY_LABEL};

	rig_kernel_dump(rig, (arg & 0x80) == 0, PICK(family, arg),
			(arg & 0x40) != 0 ? 0 : PICK(protocol_of, arg / 4u));
}

static void
step_zebra(uint8_t arg)
{
	if ((arg & 0x80) != 0)
		rig_del(rig, PICK(prefix_of, arg));
	else if ((arg & 0x40) != 0)
		rig_session(rig, 100);
	else
		rig_route_inline(rig, PICK(prefix_of, arg), PICK(gateway_of, arg / 8u),
				 11 + arg / 16u % N_LINK);
}

static void
step(enum step what, const uint8_t **p, const uint8_t *end)
{
	uint8_t arg;

	switch (what) {
	case STEP_ROUTE:
		step_route(p, end, KERNEL_ROUTE);
		break;
	case STEP_DELETE:
		step_route(p, end, KERNEL_ROUTE_DEL);
		break;
	case STEP_MESSAGE:
		step_message(p, end);
		break;
	case STEP_NEXTHOP:
		step_nexthop(p, end);
		break;
	case STEP_NEXTHOP_DEL:
		rig_kernel_nexthop_del(rig, 1 + octet(p, end) % 6u);
		break;
	case STEP_DUMP:
		step_dump(octet(p, end));
		break;
	case STEP_LINK:
		arg = octet(p, end);
		rig_flush_batch(rig);
		rig_link(rig, 11 + arg % N_LINK, (uint16_t)(1 + arg % N_LINK),
			 (arg & 0x80) != 0);
		break;
	case STEP_ZEBRA:
		step_zebra(octet(p, end));
		break;
	case STEP_SETTLE:
		rig_settle(rig);
		rib_must_be_sound(rig);
		break;
	case STEP_N:
		break;
	}
}

/* Give rib empty dumps, and withdraw all routes of zebra. */
static void
all_must_go(void)
{
	static const uint8_t family[] = {4, 6, FAMILY_LABEL, 0};

	for (unsigned int i = 0; i < sizeof(family); i++) {
		rig_kernel_dump(rig, true, family[i], 0);
		rig_kernel_dump(rig, false, family[i], 0);
	}
	for (unsigned int i = 0; i < sizeof(prefix_of) / sizeof(prefix_of[0]); i++)
		rig_del(rig, prefix_of[i]);
	rig_session(rig, 101);
	rig_sentinel(rig);
	rig_settle(rig);
	rig_del(rig, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
	rig_settle(rig);
	rib_must_be_sound(rig);
	MUST(rig->rib->kroutes.n == 0 && rig->rib->nhs.n == 0);
	MUST(rig->rib->tables.main.n == 0 && rig->rib->tables.other.n == 0);
	MUST(rig->rib->slots.n == rib_n_own_slots(rig->rib));
	MUST(rig->rib->adjs.n == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;

	log_set_level(LOG_LEVEL_ERROR);
	if (rig == NULL) {
		rig = rig_new();
		rig_vrf(rig, 1, 100, "red");
	}
	for (uint32_t i = 0; i < N_LINK; i++)
		rig_link(rig, 11 + i, (uint16_t)(1 + i), true);
	for (unsigned int n = 0; data < end && n < STEPS_MAX; n++)
		step((enum step)(*data++ % STEP_N), &data, end);
	rig_settle(rig);
	rib_must_be_sound(rig);
	all_must_go();
	if (++n_inputs % INPUTS_A_RIG == 0) {
		rig_free(rig);
		rig = NULL;
	}
	return 0;
}
