/* SPDX-License-Identifier: BSD-3-Clause */
/* rlimits: see rlimits.h. */
#include "base/rlimits.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

const char *
rlimits_text(char *text, size_t size)
{
	static const struct {
		int resource;
		const char *option;
		rlim_t unit;
	} limit[] = {{RLIMIT_AS, "-v", 1024},
		     {RLIMIT_DATA, "-d", 1024},
		     {RLIMIT_NPROC, "-u", 1}};
	size_t n = 0;

	snprintf(text, size, "none");
	for (unsigned int i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		struct rlimit lim;

		if (getrlimit(limit[i].resource, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY)
			continue;
		n += (size_t)snprintf(text + n, size - n, "%sulimit %s %ju",
				      n == 0 ? "" : ", ", limit[i].option,
				      (uintmax_t)(lim.rlim_cur / limit[i].unit));
	}
	return text;
}
