/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts about the filter. */
#include "base/filter_status.h"

struct filter_status filter_status;
