/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook: run the program of the ingress interface on the packets of a burst. A program gets
 * a copy of the first octets and no pointer to the packet. So it can neither change a
 * packet unseen by the stages nor read beyond the packet. A packet keeps the fast path
 * unless it is dropped or looked up in another table.                           [fwd-n]
 */
#include "fwd/hook.h"

#include <rte_bpf.h>
#include <string.h>

#include "base/inet.h"
#include "fib/hook_list.h"
#include "fib/vxlan.h"
#include "fwd/vlan.h"

/* The state of a program that explain runs; cleared before each packet. */
static struct fib_hook_state explain_state;

/* Describe a packet to a program. */
static inline void
packet_describe(const struct burst *b, unsigned int i, struct fpm_hook *to)
{
	unsigned int n = burst_l3_room(b, i);

	if (n > FPM_HOOK_OCTETS)
		n = FPM_HOOK_OCTETS;
	to->length = b->l3_len[i];
	to->octets = n;
	to->family = b->family[i];
	to->ifindex = b->in->ifindex;
	memcpy(to->packet, burst_l3(b, i), n);
	memset(to->packet + n, 0, FPM_HOOK_OCTETS - n);
}

/*
 * Adjust the UDP checksum of a VXLAN packet, if it has one, after a word of the inner
 * packet has changed, because the kernel may get the whole packet. An inner IPv4 packet
 * needs no adjustment: its header checksum balances the change.
 */
static void
outer_sum_adjust(const struct burst *b, unsigned int i, uint16_t was, uint16_t now)
{
	uint8_t *udp = burst_l3(b, i) - VXLAN_HEAD_BYTES;
	uint16_t sum = get_be16(udp + 6);

	if (sum == 0 || was == now)
		return;
	/* RFC 1624, eqn. 3 */
	sum = (uint16_t)~inet_fold((uint16_t)~sum + (uint32_t)(uint16_t)~was + now);
	put_be16(udp + 6, sum == 0 ? 0xffff : sum);
}

/* Write a DSCP into a packet, and keep its ECN field. */
static void
packet_mark(struct burst *b, unsigned int i, uint8_t dscp)
{
	uint8_t *ip = burst_l3(b, i);
	uint16_t was = get_be16(ip), now;

	if (b->family[i] == 6) {
		now = (uint16_t)((was & 0xf03f) | dscp << 6);
		put_be16(ip, now);
		if (b->inside && b->in->vxlan.family != 0)
			outer_sum_adjust(b, i, was, now);
		return;
	}
	now = (uint16_t)((was & 0xff03) | dscp << 2);
	put_be16(ip, now);
	/* RFC 1624, eqn. 3 */
	put_be16(ip + 10, (uint16_t)~inet_fold((uint16_t)~get_be16(ip + 10) +
					       (uint32_t)(uint16_t)~was + now));
	if ((b->fast4 >> i & 1) != 0)
		b->hop_octets[i] = ip4_hop_spent(ip);
}

/*
 * Return the number of the FIB of a routing table: the table of a VRF, or a table that
 * rules name. FIB_VRF_NONE: the table has no FIB. Results are kept until the next quiescent
 * state.
 */
static uint16_t
table_number(struct fwd *f, uint32_t table)
{
	struct fwd_hook_table *last = &f->hook_table[table % FWD_HOOK_TABLES];

	if (table == FIB_HOOK_MAIN)
		return 0;
	if (last->valid && last->epoch == f->outer_epoch && last->table == table)
		return last->number;
	*last = (struct fwd_hook_table){.valid = true,
					.epoch = f->outer_epoch,
					.table = table,
					.number = FIB_VRF_NONE};
	for (uint32_t i = 1; i < FIB_NUMBERS; i++) {
		const struct fib_vrf *vrf = fib_vrf(f->fib, (uint16_t)i);

		if (vrf != NULL && vrf->table == table) {
			last->number = (uint16_t)i;
			break;
		}
	}
	return last->number;
}

static void
packet_drop(struct burst *b, unsigned int i, enum reason reason)
{
	burst_to_slow(b, 1ull << i);
	burst_leave(b, i, reason);
}

/* Let the packet be looked up in another table. */
static void
packet_move(struct burst *b, unsigned int i, uint32_t table)
{
	struct fwd *f = b->fwd;

	f->hook_vrf[i] = table_number(f, table);
	if (f->hook_vrf[i] == FIB_VRF_NONE)
		packet_drop(b, i, DROP_vrf_no_fib);
	else
		f->hook_moved |= 1ull << i;
}

/* Note the verdict in the record for a session that watches. */
static void
packet_note(const struct burst *b, unsigned int i, const struct fib_hook *hook,
	    uint64_t verdict)
{
	struct watch_record *rec = b->rec[i];

	rec->hook = WATCH_HOOK_PASS;
	if ((verdict & FPM_DROP) != 0)
		rec->hook = WATCH_HOOK_DROP;
	else if ((verdict & (FPM_SET_DSCP | FPM_SET_TABLE)) != 0)
		rec->hook = WATCH_HOOK_CHANGE;
	rec->hook_dscp =
		(verdict & FPM_SET_DSCP) != 0 ? (uint8_t)(verdict >> 8 & 63) : UINT8_MAX;
	rec->hook_table = (verdict & FPM_SET_TABLE) != 0 ? (uint32_t)(verdict >> 32) : 0;
	memcpy(rec->hook_file, hook->file, sizeof(rec->hook_file));
}

/* Carry out a verdict. */
static inline void
packet_obey(struct burst *b, unsigned int i, struct fib_hook_state *s, uint64_t verdict)
{
	if (__builtin_expect(verdict == FPM_PASS, 1))
		return;
	if ((verdict & FPM_DROP) != 0) {
		packet_drop(b, i, DROP_hook);
		counter_add(&s->dropped, 1);
		return;
	}
	if ((verdict & FPM_SET_DSCP) != 0) {
		packet_mark(b, i, verdict >> 8 & 63);
		counter_add(&s->marked, 1);
	}
	if ((verdict & FPM_SET_TABLE) != 0) {
		packet_move(b, i, (uint32_t)(verdict >> 32));
		counter_add(&s->moved, 1);
	}
}

/* Return a bit mask of the packets on which the program is run. */
static uint64_t
burst_to_ask(const struct burst *b)
{
	uint64_t ask = b->fast4 | b->fast6;

	for (uint64_t rest = burst_all(b) & ~(ask | b->labels | b->switched); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		ask |= (uint64_t)(b->verdict[i] == VERDICT_GO && b->family[i] != 0) << i;
	}
	return ask;
}

void
fwd_hook(struct burst *b)
{
	const struct fib_hook *hook = fib_hook_find(b->fwd->hooks, b->in->name);
	/*
	 * Run no program on a packet that an end point sends through the stages again. The
	 * program saw it before the end point changed it, and the end point has chosen its
	 * VRF.
	 */
	bool is_again = b->inside && b->by_sid;
	uint64_t ask = hook == NULL || is_again ? 0 : burst_to_ask(b);
	struct fib_hook_state *s = &explain_state;

	if (ask == 0)
		return;
	if (b->fwd->conf != NULL)
		s = &hook->state[b->fwd->conf->index];
	else
		memset(s, 0, sizeof(*s));
	counter_add(&s->packets, (uint64_t)__builtin_popcountll(ask));
	for (uint64_t rest = ask; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);
		uint64_t verdict;

		packet_describe(b, i, &s->hook);
		verdict = hook->run != NULL ? hook->run(&s->hook)
					    : rte_bpf_exec(hook->bpf, &s->hook);
		if (__builtin_expect((verdict & ~FIB_HOOK_KNOWN) != 0, 0)) {
			counter_add(&s->errors, 1);
			verdict = FPM_DROP;
		}
		if (b->noted && b->rec[i] != NULL)
			packet_note(b, i, hook, verdict);
		packet_obey(b, i, s, verdict);
	}
}

void
fwd_hook_paths(struct burst *b)
{
	for (uint64_t rest = b->fwd->hook_moved; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] != VERDICT_GO)
			continue;
		if (path_kind(b->path[i]) == PATH_LOCAL ||
		    path_kind(b->path[i]) == PATH_BCAST)
			/* The packet is for this host, so it may go to the kernel. */
			b->fwd->hook_moved &= ~(1ull << i);
		else
			b->path[i] = PATH(PATH_VRF, b->fwd->hook_vrf[i]);
	}
}

void
fwd_hook_keep(struct burst *b)
{
	for (uint64_t rest = b->fwd->hook_moved; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] == PUNT_kernel_route || b->verdict[i] == PUNT_local ||
		    b->verdict[i] == PUNT_local_control)
			burst_leave(b, i, DROP_foreign_oif);
	}
}
