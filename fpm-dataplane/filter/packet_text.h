/* SPDX-License-Identifier: BSD-3-Clause */
/* packet_text: format a packet that matched a rule with `log`. */
#ifndef FILTER_PACKET_TEXT_H
#define FILTER_PACKET_TEXT_H

#include "ruleset/logged.h"

#define PACKET_TEXT 1024 /* octets, with the terminator */

/* Describe a packet as key=value. Returns `out`.           [any thread, no side effects] */
const char *packet_text(const struct logged *l, char out[PACKET_TEXT]);

#endif
