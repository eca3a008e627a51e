/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of `fpmctl hook` before they run: object files, instructions that are refused,
 * parts of programs, and random programs. A program that is accepted must touch only its
 * own memory. The test prints its seed.
 *
 * link: fpm-dataplane/hook/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/ctl/bpf_object.c
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <rte_bpf.h>
#include <rte_log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/arch.h"
#include "ctl/bpf_object.h"
#include "fib/hook_list.h"
#include "hook/check.h"
#include "hook/hook.h"
#include "hook/range.h"
#include "hook/verify.h"
#include "bpf_ins.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif

/* --- instructions --------------------------------------------------------------------- */

#define SIZE ((int)sizeof(struct fpm_hook))

static char why[512];

/* Return true if the instructions are accepted. */
static bool
accepts(const struct bpf_insn *ins, unsigned int n)
{
	struct fib_hook *hook = hook_program_new(ins, n, why, sizeof(why));
	bool is = hook != NULL;

	hook_program_free(hook);
	return is;
}

#define ACCEPTS(...)                                           \
	({                                                     \
		const struct bpf_insn ins_[] = {__VA_ARGS__};  \
		accepts(ins_, sizeof(ins_) / sizeof(ins_[0])); \
	})
#define REFUSES(text, ...)                                              \
	do {                                                            \
		why[0] = '\0';                                          \
		assert_false(ACCEPTS(__VA_ARGS__));                     \
		if (strstr(why, text) == NULL)                          \
			fail_msg("'%s' does not have '%s'", why, text); \
	} while (0)

static void
a_program_that_keeps_the_rules_is_accepted(void **state)
{
	assert_true(ACCEPTS(MOV_K(0, 0), EXIT()));
	assert_true(ACCEPTS(LDX(BPF_B, 0, 1, 0), EXIT()));
	assert_true(ACCEPTS(LDX(BPF_B, 0, 1, SIZE - 1), EXIT()));
	assert_true(ACCEPTS(LDX(BPF_DW, 0, 1, SIZE - 8), EXIT()));
	/* An index with a bound. */
	assert_true(ACCEPTS(LDX(BPF_B, 2, 1, 16), ALU_K(BPF_AND, 2, 63),
			    ALU_X(BPF_ADD, 1, 2), LDX(BPF_B, 0, 1, 16), EXIT()));
	/* The stack. */
	assert_true(ACCEPTS(MOV_K(2, 7), STX(BPF_DW, 10, 2, -8), LDX(BPF_DW, 0, 10, -8),
			    EXIT()));
	/* A counter. */
	assert_true(ACCEPTS(LDX(BPF_DW, 2, 1, (int)offsetof(struct fpm_hook, counter)),
			    ALU_K(BPF_ADD, 2, 1),
			    STX(BPF_DW, 1, 2, (int)offsetof(struct fpm_hook, counter)),
			    MOV_K(0, 0), EXIT()));
}

static void
a_jump_back_is_refused(void **state)
{
	REFUSES("instruction 1 jumps back", MOV_K(0, 0), JMP_K(BPF_JEQ, 0, 1, -2), EXIT());
	REFUSES("jumps back", MOV_K(0, 0), INS(BPF_JMP | BPF_JA, 0, 0, -1, 0), EXIT());
}

static void
a_path_that_does_not_end_is_refused(void **state)
{
	REFUSES("is the last instruction, but not an exit", MOV_K(0, 0));
	REFUSES("jumps beyond the end", MOV_K(0, 0), JMP_K(BPF_JEQ, 0, 1, 1), EXIT());
	REFUSES("is the last", MOV_K(0, 0), JMP_K(BPF_JEQ, 0, 1, 1), EXIT(), MOV_K(0, 1));
	REFUSES("beyond the end", MOV_K(0, 0), INS(BPF_JMP | BPF_JA, 0, 0, 0, 0));
	why[0] = '\0';
	assert_false(accepts(NULL, 0));
	assert_non_null(strstr(why, "1 to 4096 instructions"));
}

static void
calls_are_refused(void **state)
{
	REFUSES("calls a function", INS(BPF_JMP | BPF_CALL, 0, 0, 0, 1), EXIT());
	REFUSES("calls a function", INS(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		MOV_K(0, 0), EXIT());
	REFUSES("is not known", INS(BPF_JMP | BPF_CALL | BPF_X, 0, 0, 0, 0), EXIT());
}

static void
strange_instructions_are_refused(void **state)
{
	/* The classes of jumps of 32 bits, of classic BPF, and unused operations. */
	REFUSES("-mcpu=v2", MOV_K(0, 0), INS(BPF_JMP32 | BPF_JEQ | BPF_K, 0, 0, 0, 0),
		EXIT());
	REFUSES("is not known", INS(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0), EXIT());
	REFUSES("is not known", MOV_K(0, 0), INS(BPF_ALU64 | 0xe0, 0, 0, 0, 0), EXIT());
	REFUSES("is atomic", MOV_K(0, 0), INS(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 0, 0, 0),
		EXIT());
	REFUSES("register above 10", MOV_K(11, 0), EXIT());
	REFUSES("frame pointer", ALU_K(BPF_ADD, 10, -8), MOV_K(0, 0), EXIT());
	REFUSES("frame pointer", LDX(BPF_DW, 10, 1, 0), MOV_K(0, 0), EXIT());
	REFUSES("divides by a register", MOV_K(0, 1), MOV_K(2, 0), ALU_X(BPF_DIV, 0, 2),
		EXIT());
	REFUSES("divides by 0", MOV_K(0, 1), ALU_K(BPF_MOD, 0, 0), EXIT());
	REFUSES("no second half", INS(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 7), EXIT());
	REFUSES("map or a variable", INS(BPF_LD | BPF_IMM | BPF_DW, 0, 1, 0, 7),
		INS(0, 0, 0, 0, 0), EXIT());
	REFUSES("into the middle", MOV_K(0, 0), JMP_K(BPF_JEQ, 0, 0, 1),
		INS(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 7), INS(0, 0, 0, 0, 0), EXIT());
}

static void
memory_beyond_its_own_is_refused(void **state)
{
	REFUSES("instruction 0", LDX(BPF_B, 0, 1, SIZE), EXIT());
	REFUSES("instruction 0", LDX(BPF_DW, 0, 1, SIZE - 7), EXIT());
	REFUSES("instruction 0", LDX(BPF_B, 0, 1, -1), EXIT());
	/* An index without a bound, or with a bound that is too large. */
	REFUSES("instruction 1", LDX(BPF_W, 2, 1, 16), ALU_X(BPF_ADD, 1, 2),
		LDX(BPF_B, 0, 1, 16), EXIT());
	REFUSES("instruction 3", LDX(BPF_W, 2, 1, 16), ALU_K(BPF_AND, 2, 8191),
		ALU_X(BPF_ADD, 1, 2), LDX(BPF_B, 0, 1, 16), EXIT());
	/* A number, and a register without a value, are no addresses. */
	REFUSES("instruction 1", MOV_K(2, 4096), LDX(BPF_B, 0, 2, 0), EXIT());
	REFUSES("instruction 0", LDX(BPF_B, 0, 3, 0), EXIT());
	/* The stack has 512 octets, and is empty at the start. */
	REFUSES("instruction 1", MOV_K(2, 0), STX(BPF_DW, 10, 2, -520), MOV_K(0, 0),
		EXIT());
	REFUSES("instruction 1", MOV_K(2, 0), STX(BPF_DW, 10, 2, 0), MOV_K(0, 0), EXIT());
	REFUSES("instruction 0", LDX(BPF_DW, 0, 10, -8), EXIT());
	/* A program must return a number. */
	REFUSES("", EXIT());
	REFUSES("", MOV_X(0, 1), EXIT());
}

/* The number of paths doubles with each pair of instructions; the work is bounded. */
static void
too_many_paths_are_refused_at_once(void **state)
{
	struct bpf_insn ins[2 * 40 + 2];
	unsigned int n = 0;
	clock_t begin = clock();

	ins[n++] = MOV_K(0, 0);
	for (unsigned int k = 0; k < 40; k++) {
		ins[n++] = JMP_K(BPF_JEQ, 0, (int)k, 1);
		ins[n++] = ALU_K(BPF_ADD, 0, 1);
	}
	ins[n++] = EXIT();
	assert_false(accepts(ins, n));
	assert_non_null(strstr(why, "too many paths"));
	assert_true(clock() - begin < CLOCKS_PER_SEC / 10);
}

static void
the_longest_program_is_accepted(void **state)
{
	struct bpf_insn *ins = calloc(HOOK_INSTRUCTIONS_MAX + 1, sizeof(*ins));

	assert_non_null(ins);
	for (unsigned int i = 0; i <= HOOK_INSTRUCTIONS_MAX; i++)
		ins[i] = MOV_K(0, (int)i);
	ins[HOOK_INSTRUCTIONS_MAX] = EXIT();
	assert_false(accepts(ins, HOOK_INSTRUCTIONS_MAX + 1));
	ins[HOOK_INSTRUCTIONS_MAX - 1] = EXIT();
	assert_true(accepts(ins, HOOK_INSTRUCTIONS_MAX));
	free(ins);
}

/* --- object files --------------------------------------------------------------------- */

enum { S_NULL, S_CODE, S_SYMBOLS, S_OTHER, N_SECTIONS };

static struct object {
	Elf64_Ehdr head;
	struct bpf_insn code[4];
	Elf64_Sym symbol[3];
	Elf64_Shdr section[N_SECTIONS];
} object;

static void
object_make(void)
{
	object = (struct object){
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				     ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_REL,
			 .e_machine = EM_BPF,
			 .e_shoff = offsetof(struct object, section),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = N_SECTIONS},
		.code = {MOV_K(0, 0), MOV_K(0, 0), MOV_K(0, 0), EXIT()},
		.symbol = {{0},
			   {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			    .st_shndx = S_CODE},
			   {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			    .st_shndx = S_CODE}},
		.section = {
			[S_CODE] = {.sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				    .sh_offset = offsetof(struct object, code),
				    .sh_size = sizeof(object.code)},
			[S_SYMBOLS] = {.sh_type = SHT_SYMTAB,
				       .sh_offset = offsetof(struct object, symbol),
				       .sh_size = sizeof(object.symbol)},
			[S_OTHER] = {.sh_type = SHT_PROGBITS, .sh_size = 16},
		}};
}

/* Read the first `size` octets of the object, from memory that ends there. */
static int
object_read(size_t size, struct bpf_object *found)
{
	uint8_t *copy = malloc(size + (size == 0));
	int rc;

	assert_non_null(copy);
	memcpy(copy, &object, size);
	why[0] = '\0';
	rc = bpf_object_find(copy, size, found, why, sizeof(why));
	if (rc == 0)
		found->ins = (const uint8_t *)&object + (found->ins - copy);
	free(copy);
	return rc;
}

#define OBJECT_REFUSED(text)                                                     \
	do {                                                                     \
		struct bpf_object found_;                                        \
		assert_int_equal(object_read(sizeof(object), &found_), -EINVAL); \
		if (strstr(why, text) == NULL)                                   \
			fail_msg("'%s' does not have '%s'", why, text);          \
		object_make();                                                   \
	} while (0)

static void
an_object_file_has_one_function(void **state)
{
	struct bpf_object found;

	object_make();
	assert_int_equal(object_read(sizeof(object), &found), 0);
	assert_ptr_equal(found.ins, object.code);
	assert_int_equal(found.n, 4);
	object.symbol[2].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	OBJECT_REFUSED("more than one function");
	object.section[S_OTHER].sh_flags = SHF_EXECINSTR;
	OBJECT_REFUSED("code in two sections");
	object.section[S_OTHER] = (Elf64_Shdr){
		.sh_type = SHT_REL, .sh_info = S_CODE, .sh_size = sizeof(Elf64_Rel)};
	OBJECT_REFUSED("a function or a variable outside");
	object.section[S_CODE].sh_size = 0;
	OBJECT_REFUSED("no code");
	object.section[S_CODE].sh_size--;
	OBJECT_REFUSED("cut off");
	object.section[S_CODE].sh_offset = UINT64_MAX - 8;
	OBJECT_REFUSED("cut off");
	object.section[S_SYMBOLS].sh_size = UINT64_MAX;
	OBJECT_REFUSED("table of symbols");
	object.head.e_shoff = UINT64_MAX - 64;
	OBJECT_REFUSED("table of sections");
	object.head.e_shnum = UINT16_MAX;
	OBJECT_REFUSED("table of sections");
	object.head.e_machine = EM_X86_64;
	OBJECT_REFUSED("target bpf");
	object.head.e_ident[EI_DATA] = ELFDATA2MSB;
	OBJECT_REFUSED("low octet first");
	object.head.e_ident[0] = '#';
	OBJECT_REFUSED("no ELF file");
}

/* A truncated file is refused, and nothing behind its end is read. */
static void
a_truncated_object_file_is_read_to_its_end_only(void **state)
{
	struct bpf_object found;

	object_make();
	for (size_t size = 0; size < sizeof(object); size++)
		assert_int_equal(object_read(size, &found), -EINVAL);
}

/*
 * Whichever octets are wrong, the code that is found is in the file. ASan checks the reads.
 */
static void
a_damaged_object_file_never_leads_outside(void **state)
{
	struct bpf_object found;

	for (unsigned int k = 0; k < 200000; k++) {
		object_make();
		for (unsigned int n = 0; n < 1 + k % 4; n++)
			((uint8_t *)&object)[(size_t)random() % sizeof(object)] =
				(uint8_t)random();
		if (object_read(sizeof(object), &found) < 0)
			continue;
		assert_true(found.ins >= (const uint8_t *)&object);
		assert_true(found.ins + found.n * 8 <=
			    (const uint8_t *)&object + sizeof(object));
	}
}

/* --- the list ------------------------------------------------------------------------- */

static struct fib *fib;
static struct hooks *hooks;

static int
list_up(void **state)
{
	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	for (unsigned int i = 1; i <= FIB_HOOKS_MAX + 1; i++) {
		fib->iface[i] = calloc(1, sizeof(struct fib_iface));
		assert_non_null(fib->iface[i]);
		fib->iface[i]->ifidx = (uint16_t)i;
		fib->iface[i]->ifindex = i;
		snprintf(fib->iface[i]->name, sizeof(fib->iface[i]->name), "port%u", i);
	}
	hooks = hooks_new(fib);
	assert_non_null(hooks);
	return 0;
}

static int
list_down(void **state)
{
	hooks_free(hooks);
	fib_destroy(fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

static uint32_t part_id;

/*
 * Send `n` instructions from `at` on. The program has `of` instructions and returns
 * `value`.
 */
static int
part_send(const char *dev, unsigned int at, unsigned int n, unsigned int of, int value)
{
	struct hook_want want = {.file = "p.o", .id = part_id, .at = at, .of = of, .n = n};

	snprintf(want.dev, sizeof(want.dev), "%s", dev);
	for (unsigned int i = 0; i < n; i++) {
		struct bpf_insn ins = at + i + 1 == of ? EXIT() : MOV_K(0, value);

		memcpy(want.part + i * sizeof(ins), &ins, sizeof(ins));
	}
	why[0] = '\0';
	return hooks_load(hooks, &want, why, sizeof(why));
}

static uint64_t
run(const char *dev)
{
	const struct fib_hook *hook = fib_hook_find(fib_hooks(fib), dev);

	assert_non_null(hook);
	assert_int_equal(hook->run != NULL,
			 ARCH_COMPILES_EBPF); /* the test may have compiled code */
	return hook->run != NULL ? hook->run(&hook->state[0].hook)
				 : rte_bpf_exec(hook->bpf, &hook->state[0].hook);
}

static void
a_program_comes_in_parts(void **state)
{
	assert_int_equal(part_send("port1", 0, 256, 300, 5), 0);
	assert_null(fib_hooks(fib));
	assert_int_equal(part_send("port1", 256, 44, 300, 5), 0);
	assert_int_equal(run("port1"), 5);
	assert_int_equal(fib_hook_find(fib_hooks(fib), "port1")->n_instruction, 300);
	/* Another program replaces it as a whole. */
	assert_int_equal(part_send("port1", 0, 256, 300, 6), 0);
	assert_int_equal(run("port1"), 5);
	assert_int_equal(part_send("port1", 256, 44, 300, 6), 0);
	assert_int_equal(run("port1"), 6);
	assert_int_equal(fib_hooks(fib)->n, 1);
}

static void
parts_that_do_not_fit_together_are_refused(void **state)
{
	assert_int_equal(part_send("port1", 10, 10, 20, 5), -EINVAL);
	assert_int_equal(part_send("port1", 0, 10, 30, 5), 0);
	assert_int_equal(part_send("port2", 10, 20, 30, 5), -EINVAL);
	assert_int_equal(part_send("port1", 10, 20, 30, 5),
			 -EINVAL); /* the program must be sent again from its start */
	assert_int_equal(part_send("port1", 0, 10, 30, 5), 0);
	assert_int_equal(part_send("port1", 0, 10, 30, 5), 0);
	assert_int_equal(part_send("port1", 10, 21, 30, 5), -EINVAL);
	assert_int_equal(part_send("port1", 0, 0, 30, 5), -EINVAL);
	assert_null(fib_hooks(fib));
	assert_non_null(strstr(why, "another program was loaded at the same time"));
}

static void
parts_of_two_programs_of_one_name_are_not_mixed(void **state)
{
	part_id = 1;
	assert_int_equal(part_send("port1", 0, 256, 512, 5), 0);
	part_id = 2;
	assert_int_equal(part_send("port1", 0, 256, 512, 6), 0);
	part_id = 1;
	assert_int_equal(part_send("port1", 256, 256, 512, 5), -EINVAL);
	part_id = 0;
	assert_null(fib_hooks(fib));
}

static void
a_refused_program_leaves_the_old_one(void **state)
{
	struct hook_want want = {.dev = "port1", .file = "bad.o", .of = 1, .n = 1};

	assert_int_equal(part_send("port1", 0, 2, 2, 5), 0);
	assert_int_equal(hooks_load(hooks, &want, why, sizeof(why)), -EINVAL);
	assert_int_equal(run("port1"), 5);
	assert_int_equal(part_send("portX", 0, 2, 2, 5), -ENOENT);
	assert_int_equal(hooks_unload(hooks, "port2", why, sizeof(why)), -ENOENT);
	assert_int_equal(hooks_unload(hooks, "port1", why, sizeof(why)), 0);
	assert_null(fib_hooks(fib)); /* so a burst runs no program */
}

static void
the_list_has_a_limit(void **state)
{
	char dev[16];

	for (unsigned int i = 1; i <= FIB_HOOKS_MAX; i++) {
		snprintf(dev, sizeof(dev), "port%u", i);
		assert_int_equal(part_send(dev, 0, 2, 2, (int)i), 0);
	}
	snprintf(dev, sizeof(dev), "port%u", FIB_HOOKS_MAX + 1);
	assert_int_equal(part_send(dev, 0, 2, 2, 1), -ENOSPC);
	assert_int_equal(part_send("port7", 0, 2, 2, 99), 0);
	assert_int_equal(run("port7"), 99);
	assert_int_equal(run("port64"), 64);
}

/* --- random programs ------------------------------------------------------------------ */

static struct fpm_hook *fenced; /* between pages without access */

static void
fenced_make(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (sizeof(*fenced) + page - 1) / page * page;
	uint8_t *at =
		mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + page, room, PROT_READ | PROT_WRITE), 0);
	fenced = (struct fpm_hook *)(at + page + room - sizeof(*fenced));
}

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

static int
number(void)
{
	static const int some[] = {0,   1,    -1,   7,      8,          63,        64,
				   255, 4095, 4496, 0x7fff, 0x7fffffff, INT32_MIN, -8};

	return below(3) == 0 ? (int)random() : some[below(sizeof(some) / sizeof(some[0]))];
}

/*
 * Write a random program: registers 0 and 2 to 5 have numbers, 6 has the argument, 7 has an
 * address made from the argument. All instructions are plausible, so that many programs are
 * accepted.
 */
static unsigned int
program_make(struct bpf_insn ins[64])
{
	static const uint8_t ops[] = {BPF_ADD, BPF_SUB,  BPF_MUL, BPF_OR,
				      BPF_AND, BPF_LSH,  BPF_RSH, BPF_XOR,
				      BPF_MOV, BPF_ARSH, BPF_DIV, BPF_MOD};
	static const uint8_t jumps[] = {BPF_JEQ, BPF_JGT,  BPF_JGE,  BPF_JSET,
					BPF_JNE, BPF_JSGT, BPF_JSGE, BPF_JLT,
					BPF_JLE, BPF_JSLT, BPF_JSLE};
	static const uint8_t sizes[] = {BPF_B, BPF_H, BPF_W, BPF_DW};
	static const uint8_t numbers[] = {0, 2, 3, 4, 5};
	unsigned int n = 0, end = 12 + below(40);

	ins[n++] = MOV_X(6, 1);
	ins[n++] = MOV_X(7, 1);
	for (unsigned int k = 0; k < 5; k++)
		ins[n++] = below(2) ? LDX(sizes[below(4)], numbers[k], 1, (int)below(280))
				    : MOV_K(numbers[k], number());
	while (n < end) {
		uint8_t d = numbers[below(5)], s = numbers[below(5)], op = ops[below(12)];
		bool division = op == BPF_DIV || op == BPF_MOD;
		uint8_t class = below(3) == 0 ? BPF_ALU : BPF_ALU64;
		int k = division ? 1 + (int)below(1000)
			: op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH ? (int)below(32)
									   : number();

		switch (below(8)) {
		case 0:
		case 1:
			ins[n++] = INS(class | op | BPF_K, d, 0, 0, k);
			break;
		case 2:
			if (!division)
				ins[n++] = INS(class | op | BPF_X, d, s, 0, 0);
			break;
		case 3:
			ins[n++] = JMP_K(jumps[below(11)], d, number(), (int)below(3));
			break;
		case 4:
			ins[n++] = ALU_K(BPF_AND, d, (int)((1u << below(13)) - 1));
			break;
		case 5:
			ins[n++] = MOV_X(7, 6);
			ins[n++] = ALU_X(below(4) ? BPF_ADD : BPF_SUB, 7, d);
			break;
		case 6:
			ins[n++] = LDX(sizes[below(4)], d, 7, (int)below(5000) - 200);
			break;
		default:
			ins[n++] = STX(sizes[below(4)], 7, d, (int)below(5000) - 200);
		}
	}
	for (unsigned int k = 0; k < 3; k++) /* targets of the last jumps */
		ins[n++] = MOV_K(0, (int)k);
	ins[n++] = EXIT();
	return n;
}

/* --- an interpreter that checks each access ------------------------------------------- */

struct machine {
	uint64_t reg[11];
	struct fpm_hook *argument;
	uint8_t stack[512];
};

/* Return the memory of an access; NULL: it is beyond the argument and the stack. */
static uint8_t *
machine_memory(struct machine *m, uint64_t address, size_t bytes)
{
	uint64_t argument = address - (uintptr_t)m->argument;
	uint64_t stack = address - (uintptr_t)m->stack;

	if (argument <= sizeof(*m->argument) - bytes)
		return (uint8_t *)m->argument + argument;
	return stack <= sizeof(m->stack) - bytes ? m->stack + stack : NULL;
}

static uint64_t
machine_alu(uint8_t op, bool wide, uint64_t a, uint64_t b)
{
	unsigned int bits = wide ? 64 : 32;

	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (op) {
	case BPF_ADD:
		a += b;
		break;
	case BPF_SUB:
		a -= b;
		break;
	case BPF_MUL:
		a *= b;
		break;
	case BPF_OR:
		a |= b;
		break;
	case BPF_AND:
		a &= b;
		break;
	case BPF_XOR:
		a ^= b;
		break;
	case BPF_MOV:
		a = b;
		break;
	case BPF_LSH:
		a <<= b & (bits - 1);
		break;
	case BPF_RSH:
		a >>= b & (bits - 1);
		break;
	case BPF_ARSH:
		a = wide ? (uint64_t)((int64_t)a >> (b & 63))
			 : (uint32_t)((int32_t)a >> (b & 31));
		break;
	case BPF_DIV:
		a /= b;
		break;
	case BPF_MOD:
		a %= b;
		break;
	default:
		fail();
	}
	return wide ? a : (uint32_t)a;
}

static bool
machine_jumps(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return (a & b) != 0;
	case BPF_JSGT:
		return (int64_t)a > (int64_t)b;
	case BPF_JSGE:
		return (int64_t)a >= (int64_t)b;
	case BPF_JSLT:
		return (int64_t)a < (int64_t)b;
	case BPF_JSLE:
		return (int64_t)a <= (int64_t)b;
	default:
		fail();
		return false;
	}
}

/*
 * Run a program of program_make(). Return false if it touches memory that is not its own.
 */
static bool
interpret(const struct bpf_insn *ins, struct fpm_hook *argument, uint64_t *result)
{
	static const uint8_t size[] = {
		[BPF_W >> 3] = 4, [BPF_H >> 3] = 2, [BPF_B >> 3] = 1, [BPF_DW >> 3] = 8};
	static struct machine m;

	m.argument = argument;
	m.reg[1] = (uintptr_t)argument;
	m.reg[10] = (uintptr_t)m.stack + sizeof(m.stack);
	for (const struct bpf_insn *i = ins;; i++) {
		uint64_t b = BPF_SRC(i->code) == BPF_X ? m.reg[i->src_reg]
						       : (uint64_t)(int64_t)i->imm;
		size_t bytes = size[BPF_SIZE(i->code) >> 3];
		uint8_t *at;

		switch (BPF_CLASS(i->code)) {
		case BPF_ALU:
		case BPF_ALU64:
			m.reg[i->dst_reg] = machine_alu(BPF_OP(i->code),
							BPF_CLASS(i->code) == BPF_ALU64,
							m.reg[i->dst_reg], b);
			break;
		case BPF_LDX:
			at = machine_memory(&m, m.reg[i->src_reg] + (uint64_t)i->off,
					    bytes);
			if (at == NULL)
				return false;
			m.reg[i->dst_reg] = 0;
			memcpy(&m.reg[i->dst_reg], at, bytes);
			break;
		case BPF_STX:
			at = machine_memory(&m, m.reg[i->dst_reg] + (uint64_t)i->off,
					    bytes);
			if (at == NULL)
				return false;
			memcpy(at, &m.reg[i->src_reg], bytes);
			break;
		default:
			*result = m.reg[0];
			if (BPF_OP(i->code) == BPF_EXIT)
				return true;
			if (machine_jumps(BPF_OP(i->code), m.reg[i->dst_reg], b))
				i += i->off;
		}
	}
}

/* Return a number near the limits of ranges, or any number. */
static uint64_t
edge(void)
{
	static const uint64_t edges[] = {0,        8,         63,        UINT32_MAX,
					 1u << 31, INT64_MAX, UINT64_MAX};
	uint64_t any =
		(uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();

	return below(4) == 0 ? any >> below(64) : edges[below(7)] + below(9) - 4;
}

/*
 * For each operation, the result of two numbers is in the range that range_alu() computes
 * from the ranges of the numbers.
 */
static void
each_result_is_in_its_range(void **state)
{
	static const uint8_t ops[] = {BPF_ADD, BPF_SUB, BPF_MUL,  BPF_OR,  BPF_AND, BPF_LSH,
				      BPF_RSH, BPF_XOR, BPF_ARSH, BPF_DIV, BPF_MOD};

	for (unsigned int k = 0; k < 1000000; k++) {
		uint64_t a = edge(), b = edge();
		struct range ra = {below(2) ? a : a - a % (1 + below(9)), a};
		struct range rb = {below(2) ? b : b - b % (1 + below(9)), b}, r;
		uint8_t op = ops[below(11)];
		bool wide = below(2), division = op == BPF_DIV || op == BPF_MOD;
		uint64_t result;

		if (below(2)) {
			ra.max += below(5) & (a < UINT64_MAX - 9 ? 7u : 0u);
			rb.max += below(5) & (b < UINT64_MAX - 9 ? 7u : 0u);
		}
		if (division && (wide ? b : (uint32_t)b) == 0)
			continue;
		if (division) /* programs divide only by a constant */
			rb = range_of(b);
		r = range_alu(op, wide ? 64 : 32, ra, rb);
		result = machine_alu(op, wide, a, b);
		if (result < r.min || result > r.max)
			fail_msg("operation %02x, %s bits: %llx of %llx-%llx, %llx of "
				 "%llx-%llx",
				 op, wide ? "64" : "32", (unsigned long long)a,
				 (unsigned long long)ra.min, (unsigned long long)ra.max,
				 (unsigned long long)b, (unsigned long long)rb.min,
				 (unsigned long long)rb.max);
	}
}

static void
argument_fill(struct fpm_hook *argument, unsigned int round)
{
	memset(argument, 0, sizeof(*argument));
	for (unsigned int i = 0; i < 280; i++)
		((uint8_t *)argument)[i] = round == 0   ? 0xff
					   : round == 1 ? 0
							: (uint8_t)random();
}

static unsigned int
seed_take(void)
{
	const char *given = getenv("SEED");
	unsigned int seed =
		given != NULL ? (unsigned int)atoi(given) : (unsigned int)time(NULL);

	printf("SEED=%u\n", seed);
	srandom(seed);
	return seed;
}

static bool
program_touches(const struct bpf_insn *ins, unsigned int n)
{
	for (unsigned int i = 12; i < n; i++)
		if (BPF_CLASS(ins[i].code) == BPF_LDX || BPF_CLASS(ins[i].code) == BPF_STX)
			return true;
	return false;
}

/* Our verifier alone: programs that it accepts stay in their memory, for each argument. */
static void
our_verifier_accepts_nothing_that_leaves_its_memory(void **state)
{
	static struct fpm_hook argument;
	unsigned int touching = 0;
	struct bpf_insn ins[80];
	uint64_t result;

	(void)seed_take();
	for (unsigned int k = 0; k < 80000; k++) {
		unsigned int n = program_make(ins);

		if (hook_check(ins, n, why, sizeof(why)) < 0 ||
		    hook_verify(ins, n, why, sizeof(why)) < 0)
			continue;
		touching += program_touches(ins, n);
		for (unsigned int r = 0; r < 8; r++) {
			argument_fill(&argument, r);
			if (!interpret(ins, &argument, &result))
				fail_msg("program %u leaves its memory", k);
		}
	}
	printf("%u accepted that touch memory\n", touching);
	assert_true(touching > 500);
}

/*
 * Programs that both verifiers accept have the same result when the library compiles them,
 * when it interprets them, and in the interpreter of this file. They touch no other memory:
 * the guard pages would end this program.
 */
static void
accepted_programs_do_as_they_say(void **state)
{
	static struct fpm_hook argument;
	unsigned int touching = 0;
	struct bpf_insn ins[80];
	uint64_t result;

	(void)seed_take();
	fenced_make();
	for (unsigned int k = 0; k < 25000; k++) {
		unsigned int n = program_make(ins);
		struct fib_hook *hook = hook_program_new(ins, n, why, sizeof(why));

		if (hook == NULL)
			continue;
		touching += program_touches(ins, n);
		for (unsigned int r = 0; r < 8; r++) {
			argument_fill(&argument, r);
			*fenced = argument;
			assert_true(interpret(ins, &argument, &result));
			assert_int_equal(r % 2 == 0 && hook->run != NULL
						 ? hook->run(fenced)
						 : rte_bpf_exec(hook->bpf, fenced),
					 result);
			assert_memory_equal(fenced, &argument, sizeof(argument));
		}
		hook_program_free(hook);
	}
	printf("%u accepted that touch memory\n", touching);
	assert_true(touching > 100);
}

int
main(void)
{
#define LIST(f) cmocka_unit_test_setup_teardown(f, list_up, list_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_keeps_the_rules_is_accepted),
		cmocka_unit_test(a_jump_back_is_refused),
		cmocka_unit_test(a_path_that_does_not_end_is_refused),
		cmocka_unit_test(calls_are_refused),
		cmocka_unit_test(strange_instructions_are_refused),
		cmocka_unit_test(memory_beyond_its_own_is_refused),
		cmocka_unit_test(too_many_paths_are_refused_at_once),
		cmocka_unit_test(the_longest_program_is_accepted),
		cmocka_unit_test(an_object_file_has_one_function),
		cmocka_unit_test(a_truncated_object_file_is_read_to_its_end_only),
		cmocka_unit_test(a_damaged_object_file_never_leads_outside),
		cmocka_unit_test(each_result_is_in_its_range),
		LIST(a_program_comes_in_parts),
		LIST(parts_that_do_not_fit_together_are_refused),
		LIST(parts_of_two_programs_of_one_name_are_not_mixed),
		LIST(a_refused_program_leaves_the_old_one),
		LIST(the_list_has_a_limit),
		cmocka_unit_test(our_verifier_accepts_nothing_that_leaves_its_memory),
		cmocka_unit_test(accepted_programs_do_as_they_say),
	};

	rte_log_set_global_level(RTE_LOG_EMERG); /* no lines about refused programs */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
