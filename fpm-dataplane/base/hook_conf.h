/* SPDX-License-Identifier: BSD-3-Clause */
/* hook_conf: the request of `fpmctl hook`, from ui to manage. */
#ifndef BASE_HOOK_CONF_H
#define BASE_HOOK_CONF_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define HOOK_INSTRUCTIONS_MAX  4096u
#define HOOK_INSTRUCTION_BYTES 8u
#define HOOK_FILE_STRLEN       64 /* octets of a file name, its terminator included */
/* Instructions in one request. A longer program is sent in parts, in order. */
#define HOOK_PART_MAX 256u

struct hook_want {
	char dev[64]; /* room for an alternative name: ui replaces it by the primary name */
	char file[HOOK_FILE_STRLEN];
	uint32_t id;     /* equal in all parts of a program */
	unsigned int at; /* index of the first instruction in `part` */
	unsigned int of; /* number of instructions of the whole program */
	unsigned int n;  /* number of instructions in `part` */
	uint8_t part[HOOK_PART_MAX * HOOK_INSTRUCTION_BYTES];
};

#endif
