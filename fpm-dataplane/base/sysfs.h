/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs: read and write files of /sys and /proc, one value each. A file that cannot be read
 * has no value; the caller decides how to handle this. Any thread, no state.
 */
#ifndef BASE_SYSFS_H
#define BASE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* Read the first `size` - 1 octets. Returns their number, or -errno with buf "". */
int sysfs_read(const char *path, char *buf, size_t size);

/* Read the first line, without its newline; "" if there is none. */
void sysfs_read_line(const char *path, char *buf, size_t size);

/* Read a number, decimal or 0x.... Returns `otherwise` if the file has no number. */
long long sysfs_read_number(const char *path, long long otherwise);

/*
 * Read the last component of a symbolic link's target. Returns false with buf "" if none.
 */
bool sysfs_read_link(const char *path, char *buf, size_t size);

/* Write `text`. Returns 0 or -errno, also if the kernel refuses the value. */
int sysfs_write(const char *path, const char *text);

#endif
