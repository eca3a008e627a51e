/* SPDX-License-Identifier: BSD-3-Clause */
/* A start with the checkpoint of the last daemon. [rib]. */
#ifndef RIB_RESTORE_H
#define RIB_RESTORE_H

struct rib;

/* Begin one of our own and take over the old one and its memfd; 0, -errno, -EINVAL: damaged. */
int checkpoint_begin(struct rib *rib, int old_fd);

#endif
