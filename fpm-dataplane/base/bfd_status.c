/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts about BFD in the dataplane. */
#include "base/bfd_status.h"

struct bfd_status bfd_status;
