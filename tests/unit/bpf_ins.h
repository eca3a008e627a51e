/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_ins: write instructions of eBPF as in an assembler: destination, source, offset,
 * constant.
 */
#ifndef TESTS_BPF_INS_H
#define TESTS_BPF_INS_H

#include <linux/bpf.h>

#define INS(c, d, s, o, i)  \
	((struct bpf_insn){ \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define EXIT()             INS(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define MOV_K(d, k)        INS(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, k)
#define MOV_X(d, s)        INS(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ALU_K(op, d, k)    INS(BPF_ALU64 | (op) | BPF_K, d, 0, 0, k)
#define ALU_X(op, d, s)    INS(BPF_ALU64 | (op) | BPF_X, d, s, 0, 0)
#define LDX(w, d, s, o)    INS(BPF_LDX | BPF_MEM | (w), d, s, o, 0)
#define STX(w, d, s, o)    INS(BPF_STX | BPF_MEM | (w), d, s, o, 0)
#define JMP_K(op, d, k, o) INS(BPF_JMP | (op) | BPF_K, d, 0, o, k)

#endif
