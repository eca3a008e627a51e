/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts about sFlow. */
#include "base/sflow_status.h"

struct sflow_status sflow_status;
