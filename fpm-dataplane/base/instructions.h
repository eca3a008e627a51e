/* SPDX-License-Identifier: BSD-3-Clause */
/* instructions: the key `instructions` of the configuration. */
#ifndef BASE_INSTRUCTIONS_H
#define BASE_INSTRUCTIONS_H

/*
 * The instructions that the code of forwarding and of lookups may use. Each set includes
 * the smaller ones.
 */
enum instructions {
	INSTRUCTIONS_AUTO, /* all instructions that the CPU has */
	INSTRUCTIONS_SCALAR,
	INSTRUCTIONS_SSE4,
	INSTRUCTIONS_AVX2,
	INSTRUCTIONS_AVX512,
};

/* Return the word of the configuration. */
static inline const char *
instructions_name(enum instructions most)
{
	static const char *const name[] = {"auto", "scalar", "sse4", "avx2", "avx512"};

	return name[most];
}

#endif
