/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rlimits: the limits of this process because of which it may get no thread or no memory.
 * Any thread.
 */
#ifndef BASE_RLIMITS_H
#define BASE_RLIMITS_H

#include <stddef.h>

/*
 * Write the limits of address space, data and threads as `ulimit` shows them, or "none" if
 * all of them are unlimited. Returns `text`.
 */
const char *rlimits_text(char *text, size_t size);

#endif
