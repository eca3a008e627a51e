/* SPDX-License-Identifier: BSD-3-Clause */
/* Start with the checkpoint of the last daemon. [rib] */
#ifndef RIB_RESTORE_H
#define RIB_RESTORE_H

struct rib;

/*
 * Create a checkpoint, restore the old one and close `old_fd`. Return 0, -errno if the
 * checkpoint could not be created, -ENOMEM, or -EINVAL if the old one cannot be used and
 * neither the configuration nor the installation is the reason.
 */
int checkpoint_begin(struct rib *rib, int old_fd);

#endif
