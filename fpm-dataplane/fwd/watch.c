/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the stages while a session watches packets. Frames that a filter wants are copied
 * to this forwarder's ring, with their verdict. Other frames are handled as without a
 * session. A full ring loses the record, never the packet.                      [fwd-n]
 */
#include "fwd/watch.h"

#include "base/inet.h"
#include "fib/label.h"
#include "fwd/label.h"
#include "fwd/note.h"
#include "fwd/tunnel.h"
#include "fwd/walk.h"

static_assert(WATCH_GO == VERDICT_GO && WATCH_DECAPSULATED == VERDICT_DECAPSULATED,
	      "a record has the verdicts of a burst");

static void
note_group(struct burst *b, struct watch_record *rec, uint32_t group)
{
	rec->group = group;
	rec->log2_buckets = (uint8_t)group_word_log2(
		atomic_load_explicit(&b->fwd->fib->group[group], memory_order_consume));
}

/*
 * Note group, hash and path from the lookup, before the adjacency stage changes the path.
 */
static void
note_found(struct burst *b, const struct fwd_found *found)
{
	const struct fib *fib = b->fwd->fib;

	for (unsigned int k = 0; k < found->n; k++) {
		unsigned int i = found->at[k];
		struct watch_record *rec = b->rec[i];

		if (rec == NULL)
			continue;
		fwd_note_path(b, i, rec);
		rec->looked_up = true;
		rec->vrf = b->in->vrf;
		note_group(b, rec, found->group[k]);
		rec->flow_hash = flow_hash(burst_l3(b, i), burst_l3_room(b, i),
					   b->family[i], fib->seed);
		fwd_note_rule(b, i, rec);
	}
}

static uint32_t
group_in_main(const struct burst *b, unsigned int i)
{
	const struct fib_copy *main = b->fwd->tries;
	const uint8_t *ip = burst_l3(b, i);

	return b->family[i] == 4 ? poptrie4_lookup(main->pt4, get_be32(ip + 16))
				 : poptrie6_lookup(main->pt6, ip + 24);
}

/*
 * Note the second lookup: in the VRF that the route led to, or in table main if the VRF has
 * no route.
 */
static void
note_vrfs(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct watch_record *rec = b->rec[i];

		if (rec == NULL || !rec->looked_up)
			continue;
		if (path_kind(rec->path) == PATH_VRF) {
			rec->to_vrf = (uint16_t)path_index(rec->path);
			fwd_note_path(b, i, rec);
		} else if (rec->vrf != 0 && rec->rule == 0 && path_is_no_route(rec->path)) {
			rec->to_main = path_kind(b->path[i]) != PATH_NO_FIB;
			if (rec->to_main)
				note_group(b, rec, group_in_main(b, i));
			fwd_note_path(b, i, rec);
		}
	}
}

/* Note where labels lead. They were looked up when the headers were read. */
static void
note_labels(struct burst *b)
{
	for (uint64_t rest = b->labels | b->switched; rest != 0; rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->rec[i] == NULL)
			continue;
		b->rec[i]->pops = burst_has_labels(b, i) ? b->label[i].pops : 1;
		fwd_note_path(b, i, b->rec[i]);
	}
}

/* Note how the source was checked. */
static void
note_source(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct watch_record *rec = b->rec[i];

		if (rec != NULL && (b->switched >> i & 1) == 0 &&
		    fwd_urpf_ask(b, i, &rec->back))
			rec->urpf = b->in->urpf4;
	}
}

static void
note_stage(struct burst *b, enum watch_stage stage)
{
	if (stage == STAGE_PARSE)
		note_labels(b);
	if (stage == STAGE_LOOKUP) {
		note_found(b, &b->found[0]);
		note_found(b, &b->found[1]);
	}
	if (stage == STAGE_ADJACENCY)
		note_vrfs(b);
	if (stage == STAGE_URPF)
		note_source(b);
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL && b->rec[i]->stage == STAGE_SEND &&
		    b->verdict[i] != VERDICT_GO)
			b->rec[i]->stage = (uint8_t)stage;
}

void
fwd_walk_noted(struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL) {
			b->rec[i]->stage = STAGE_SEND;
			b->rec[i]->in_ifidx = b->ifidx;
		}
	b->noted = true;
	fwd_walk(b, note_stage);
	b->noted = false;
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL)
			fwd_note_verdict(b, i, b->rec[i]);
}

void
fwd_walk_watched(struct burst *b)
{
	struct fwd *f = b->fwd;
	uint64_t now_ns = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		uint8_t was[L2_LEN];

		if (b->inside)
			fwd_tunnel_show(b, i, was);
		b->rec[i] = watch_note(f->conf->watch_ring, f->watch, WATCH_WALK, b->ifidx,
				       b->m[i], &now_ns);
		if (b->inside)
			fwd_tunnel_hide(b, i, was);
	}
	fwd_walk_noted(b);
	for (unsigned int i = 0; i < b->n; i++)
		if (b->rec[i] != NULL)
			b->rec[i]->sessions = watch_wanted_verdict(f->watch, b->rec[i]);
	watch_publish(f->conf->watch_ring);
}
