/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts about BFD, the filter and sFlow, which their threads write and ui reads. */
#include "base/bfd_status.h"
#include "base/filter_status.h"
#include "base/sflow_status.h"

struct bfd_status bfd_status;
struct filter_status filter_status;
struct sflow_status sflow_status;
