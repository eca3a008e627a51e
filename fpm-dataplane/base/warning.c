/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and numbers of warnings. Any thread. */
#include "base/warning.h"

_Atomic uint32_t warning_count[N_WARNING];

const char *
warning_kind_name(enum warning_kind kind)
{
	static const char *const name[N_WARNING] = {
#define WARNING_NAME(kind, text) [WARNING_##kind] = text,
		WARNING_KINDS(WARNING_NAME)
#undef WARNING_NAME
	};

	return name[kind];
}
