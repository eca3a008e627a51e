/* SPDX-License-Identifier: BSD-3-Clause */
/* Count the descriptors of the test program. Include cmocka.h before. */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

#include <dirent.h>

/*
 * Return the number of entries of /proc/self/fd. It is more than the number of descriptors:
 * compare it only with the result of another call.
 */
static inline unsigned int
descriptors_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

#endif
