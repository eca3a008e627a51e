/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_object: read the sections of an ELF file without a library. The file is untrusted:
 * each offset is checked. The daemon gets only the instructions, not the file.
 */
#include "ctl/bpf_object.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef EM_BPF
#define EM_BPF 247
#endif

#define INSTRUCTION_BYTES 8

struct elf {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr head;
	char *why;
	size_t why_size;
};

static int
elf_fail(const struct elf *e, const char *text)
{
	snprintf(e->why, e->why_size, "%s", text);
	return -EINVAL;
}

/* Return true if `n` octets from `at` on are in the file. */
static bool
elf_has(const struct elf *e, uint64_t at, uint64_t n)
{
	return at <= e->size && n <= e->size - at;
}

/* Copy the header of section `i`, which is in the file. */
static Elf64_Shdr
elf_section(const struct elf *e, unsigned int i)
{
	Elf64_Shdr section;

	memcpy(&section, e->data + e->head.e_shoff + (size_t)i * sizeof(section),
	       sizeof(section));
	return section;
}

static int
elf_head_check(struct elf *e)
{
	const uint8_t *id = e->head.e_ident;

	if (e->size < sizeof(e->head) || memcmp(e->data, ELFMAG, SELFMAG) != 0)
		return elf_fail(e, "it is no ELF file");
	memcpy(&e->head, e->data, sizeof(e->head));
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
		return elf_fail(e, "it is no ELF file of 64 bits, low octet first");
	if (e->head.e_machine != EM_BPF || e->head.e_type != ET_REL)
		return elf_fail(e, "it is no object file for the target bpf");
	if (e->head.e_shnum == 0 || e->head.e_shentsize != sizeof(Elf64_Shdr) ||
	    !elf_has(e, e->head.e_shoff, (uint64_t)e->head.e_shnum * sizeof(Elf64_Shdr)))
		return elf_fail(e, "its table of sections is damaged");
	return 0;
}

/* Return the number of functions that start in section `i`, or -EINVAL. */
static int
functions_count(const struct elf *e, unsigned int i)
{
	int n = 0;

	for (unsigned int k = 0; k < e->head.e_shnum; k++) {
		Elf64_Shdr table = elf_section(e, k);
		Elf64_Sym symbol;

		if (table.sh_type != SHT_SYMTAB)
			continue;
		if (!elf_has(e, table.sh_offset, table.sh_size))
			return elf_fail(e, "its table of symbols is damaged");
		for (uint64_t at = 0; at + sizeof(symbol) <= table.sh_size;
		     at += sizeof(symbol)) {
			memcpy(&symbol, e->data + table.sh_offset + at, sizeof(symbol));
			n += symbol.st_shndx == i &&
			     ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
		}
	}
	return n;
}

/* Return true if the code of section `i` needs relocations by a loader. */
static bool
section_is_relocated(const struct elf *e, unsigned int i)
{
	for (unsigned int k = 0; k < e->head.e_shnum; k++) {
		Elf64_Shdr section = elf_section(e, k);

		if ((section.sh_type == SHT_REL || section.sh_type == SHT_RELA) &&
		    section.sh_info == i && section.sh_size > 0)
			return true;
	}
	return false;
}

int
bpf_object_find(const uint8_t *data, size_t size, struct bpf_object *out, char *why,
		size_t why_size)
{
	struct elf e = {.data = data, .size = size, .why = why, .why_size = why_size};
	unsigned int code = 0;
	Elf64_Shdr found = {0};
	int n;

	if (elf_head_check(&e) < 0)
		return -EINVAL;
	for (unsigned int i = 1; i < e.head.e_shnum; i++) {
		Elf64_Shdr section = elf_section(&e, i);

		if (section.sh_type != SHT_PROGBITS || section.sh_size == 0 ||
		    (section.sh_flags & SHF_EXECINSTR) == 0)
			continue;
		if (code != 0)
			return elf_fail(&e, "it has code in two sections; a program is one "
					    "function");
		code = i;
		found = section;
	}
	if (code == 0)
		return elf_fail(&e, "it has no code");
	if (!elf_has(&e, found.sh_offset, found.sh_size) ||
	    found.sh_size % INSTRUCTION_BYTES != 0)
		return elf_fail(&e, "its code is cut off");
	n = functions_count(&e, code);
	if (n < 0)
		return -EINVAL;
	if (n > 1)
		return elf_fail(&e, "it has more than one function; declare the others "
				    "`static inline __attribute__((always_inline))`");
	if (section_is_relocated(&e, code))
		return elf_fail(&e, "its code uses a function or a variable outside of it: "
				    "a program has no global variables, constant arrays "
				    "and texts included");
	*out = (struct bpf_object){data + found.sh_offset,
				   found.sh_size / INSTRUCTION_BYTES};
	return 0;
}
