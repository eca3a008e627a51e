/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fwd_isas: run a group of tests once for each kind of forwarding code that this CPU can
 * run, from the scalar code on. Include cmocka.h before.
 */
#ifndef TESTS_FWD_ISAS_H
#define TESTS_FWD_ISAS_H

#include "fwd/cpu.h"

/*
 * Call cmocka_run_group_tests() for each kind from `first` on, or for the best kind if the
 * CPU cannot run `first`. The value is the result of the first run that fails, or 0.
 */
#define run_with_isas_from(first, tests, up, down)                                      \
	({                                                                              \
		int rc_ = 0;                                                            \
                                                                                        \
		fwd_isa = fwd_isa_best() < (first) ? fwd_isa_best() : (first);          \
		for (; rc_ == 0 && fwd_isa <= fwd_isa_best(); fwd_isa++)                \
			rc_ = cmocka_run_group_tests_name(fwd_isa_name(fwd_isa), tests, \
							  up, down);                    \
		rc_;                                                                    \
	})
#define run_with_each_isa(tests, up, down) run_with_isas_from(FWD_SCALAR, tests, up, down)

#endif
