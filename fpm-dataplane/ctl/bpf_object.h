/* SPDX-License-Identifier: BSD-3-Clause */
/* bpf_object: find the program in an object file that was compiled for the target bpf. */
#ifndef CTL_BPF_OBJECT_H
#define CTL_BPF_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#define BPF_OBJECT_MAX (1u << 20) /* octets of a file; debug information included */

struct bpf_object {
	const uint8_t *ins; /* in the file */
	size_t n;           /* instructions, 8 octets each */
};

/*
 * Find the only section of an ELF file that has code. `data` has `size` octets; nothing
 * beyond `size` is read, whatever the octets are. Return 0, or -EINVAL with a sentence in
 * `why`.
 */
int bpf_object_find(const uint8_t *data, size_t size, struct bpf_object *out, char *why,
		    size_t why_size);

#endif
