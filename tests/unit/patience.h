/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience: the time that a unit test waits before it fails. ThreadSanitizer on CPUs that
 * other programs use needs a hundred times as long as usual. This is no requirement on the
 * code: a test goes on as soon as it sees the expected event.
 */
#ifndef PATIENCE_H
#define PATIENCE_H

#define PATIENCE_S  120
#define PATIENCE_MS (PATIENCE_S * 1000)

#endif
