/* SPDX-License-Identifier: BSD-3-Clause */
/* resync_request: record which routes the walks of resync.c have to compare. [rib] */
#include "rib/resync_request.h"

uint64_t
resync_from(struct rib_resync *s, uint32_t number)
{
	if (!s->all) {
		s->due = s->all = true;
		s->next = number;
		s->again_from = 0;
		return s->laps + 1;
	}
	if (number >= s->next)
		return s->laps + 1;
	if (s->again_from == 0 || number < s->again_from)
		s->again_from = number;
	return s->laps + 2;
}

bool
resync_inside(struct rib_resync *s, const struct prefix *p)
{
	for (uint32_t i = 0; i < s->n_inside; i++)
		if (prefix_equal(&s->inside[i].of, p)) {
			s->inside[i].again = s->inside[i].begun;
			return true;
		}
	if (s->n_inside == RESYNC_INSIDE_MAX)
		return false;
	s->inside[s->n_inside++] = (struct resync_inside){.of = *p, .at = *p};
	s->due = true;
	return true;
}

void
resync_nomem(struct rib_resync *s)
{
	s->nomem_lap = resync_from(s, 1);
	s->nomem = true;
}
