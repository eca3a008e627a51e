/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fpm_event.h"

struct fpm_status fpm_status;
