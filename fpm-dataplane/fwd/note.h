/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note: write parts of a record.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_NOTE_H
#define FWD_NOTE_H

#include "fwd/burst.h"

/*
 * Note the path of a packet and its next hop, the policy rule that decided it, and the
 * verdict. fwd_note_path() also notes the labels before an outer packet to a VTEP, which
 * needs a lookup. sFlow does not send these labels.
 */
void fwd_note_path(const struct burst *b, unsigned int i, struct watch_record *rec);
void fwd_note_next_hop(const struct burst *b, unsigned int i, struct watch_record *rec);
void fwd_note_rule(const struct burst *b, unsigned int i, struct watch_record *rec);
void fwd_note_verdict(struct burst *b, unsigned int i, struct watch_record *rec);

#endif
