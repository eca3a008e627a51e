/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arch: differences between x86-64 and arm64 outside of the forwarders. poptrie/arch.h and
 * fwd/frame_header.h have the rest.
 *
 * A file that uses ARCH_ELF includes elf.h, whose EV_NONE conflicts with libev's; for
 * ARCH_AUDIT it includes linux/audit.h, for ARCH_SYS_NONE sys/syscall.h.
 */
#ifndef BASE_ARCH_H
#define BASE_ARCH_H

#include <stdint.h>

#ifdef __x86_64__

#define ARCH_NAME          "x86-64"
#define ARCH_ELF           EM_X86_64
#define ARCH_AUDIT         AUDIT_ARCH_X86_64
#define ARCH_COMPILES_EBPF 1 /* hook_compiles() in hook/check.c decides for each program */
/* A system call that no kernel for this architecture has. */
#define ARCH_SYS_NONE SYS_uselib

/* Continue a CRC-32C (RFC 3720, 12.1) with four octets in memory order. */
static inline uint32_t
arch_crc32c(uint32_t crc, uint32_t word)
{
	return __builtin_ia32_crc32si(crc, word);
}

#elif defined(__aarch64__)

#define ARCH_NAME  "arm64"
#define ARCH_ELF   EM_AARCH64
#define ARCH_AUDIT AUDIT_ARCH_AARCH64
#define ARCH_COMPILES_EBPF \
	0 /* DPDK's compiler for this CPU was not compared with the interpreter */
#define ARCH_SYS_NONE SYS_nfsservctl

static inline uint32_t
arch_crc32c(uint32_t crc, uint32_t word)
{
	return __builtin_aarch64_crc32cw(crc, word);
}

#else
#error "base/arch.h does not know this architecture"
#endif

#endif
