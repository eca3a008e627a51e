/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walks that bring the tries in line with the routes. [rib]
 *
 * A walk compares routes with the tries, a slice a round. One walk reads all routes. Others
 * read the routes inside a prefix. The walks take turns. resync_request.h requests them.
 */
#ifndef RIB_RESYNC_H
#define RIB_RESYNC_H

#include <stdbool.h>

struct rib;

/* Compare one slice. Return true if another round must follow at once. */
bool resync_round(struct rib *rib);

#endif
