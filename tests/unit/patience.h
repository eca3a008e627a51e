/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience: how long a unit test waits for something before it fails. ThreadSanitizer on CPUs
 * that other programs keep busy needs a hundred times as long as usual; nothing is judged by it.
 */
#ifndef PATIENCE_H
#define PATIENCE_H

#define PATIENCE_S  120
#define PATIENCE_MS (PATIENCE_S * 1000)

#endif
