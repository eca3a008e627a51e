/* SPDX-License-Identifier: BSD-3-Clause */
/* Start DPDK for a test with real devices: no hugepages, no NICs, two software devices. */
#ifndef TEST_EAL_H
#define TEST_EAL_H

#include <stdint.h>
#include <unistd.h>

#include <rte_eal.h>

/*
 * Start the EAL. `first` and `second` are devargs; `prefix` is unique to the test. Return
 * the result of rte_eal_init().
 */
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
	int rc;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	rc = rte_eal_init(sizeof(words) / sizeof(words[0]), argv);
	(void)rmdir(rte_eal_get_runtime_dir()); /* it stays empty */
	return rc;
}

#endif
