/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK for a test of its real devices: no hugepages, no NICs, two devices of software. */
#ifndef TEST_EAL_H
#define TEST_EAL_H

#include <stdint.h>

#include <rte_eal.h>

/* `first` and `second` are devargs; `prefix` is the test's own. Returns what the EAL does. */
static inline int
eal_begin(const char *prefix, const char *first, const char *second)
{
	const char *words[] = {"test",
			       "--no-huge",
			       "-m",
			       "64",
			       "--no-shconf",
			       "--no-telemetry",
			       "--file-prefix",
			       prefix,
			       "--no-pci",
			       "--lcores",
			       "0",
			       "--log-level=*:critical",
			       "--vdev",
			       first,
			       "--vdev",
			       second};
	char *argv[sizeof(words) / sizeof(words[0])];

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	return rte_eal_init(sizeof(words) / sizeof(words[0]), argv);
}

#endif
