/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_fib: declarations that its files share. The process has one measuring thread. Its
 * only other thread copies through the L3 on request (machine.c).
 *
 * A *structure* is a built table (a Poptrie, an rte_fib with 4-byte entries). An *impl* is
 * one way to look up in it (scalar, AVX-512). Several impls share a structure.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_MAX 64u
#define REPS_MAX  31
#define IMPLS_MAX 24u
#define KEYS_MIN  8192u /* a chunk to warm up, and a chunk to time: see measure.c */

struct prefix {
	uint8_t addr[16]; /* network order, host bits zero; IPv4 in the first four */
	uint8_t len;
	uint32_t asn;   /* origin AS; 0 if the table has none */
	uint32_t value; /* next hop, from 1 */
};

struct table {
	char name[64];
	int family;       /* 4 or 6 */
	struct prefix *p; /* sorted by address, then length; no duplicates */
	size_t n, cap;
	bool has_asn;
};

/* Keys of one stream, in huge pages. Only the array of the stream's family exists. */
struct keys {
	const char *stream;
	size_t n;
	uint32_t *v4; /* host order */
	uint8_t (*v6)[16];
};

/* A change of the recorded update stream. */
struct change {
	struct prefix p;
	bool withdraw;
};

struct bytes {
	size_t total;  /* all memory of the structure */
	size_t lookup; /* live entries, which lookups can reach */
	size_t truth;  /* the copy of the routes that only updates need; part of total */
	char pages[16];
};

struct structure;

struct ops {
	/* Make the empty structure. Returns 0, or -errno with a reason in *why. */
	int (*open)(struct structure *s, const struct table *t, const char **why);
	/*
	 * Load all of `t` in its order. Afterwards readers see all of it. Returns 0 or
	 * -errno.
	 */
	int (*load)(struct structure *s, const struct table *t);
	void (*close)(struct structure *s);
	/* Publish one change. NULL if updates are not measured. */
	int (*add)(struct structure *s, const struct prefix *p);
	int (*del)(struct structure *s, const struct prefix *p);
	void (*bytes)(struct structure *s, struct bytes *b);
};

struct structure {
	const char *name;
	int family;
	const struct ops *ops;
	int arg;                  /* for `ops`: entry size or variant */
	unsigned int entry_bytes; /* DPDK: octets of an entry; Poptrie: 0 */
	bool update;              /* true: measure updates */
	const char *note;         /* printed with its build time */

	void *h;       /* open: the handle */
	size_t n_tbl8; /* open: groups that a DIR24-8 or 8-bit trie uses */
	size_t heap_mark;
	size_t refused; /* changes that it refused; then its answers may differ from the others */
	bool up;
};

struct impl {
	const char *name;
	struct structure *s;
	int variant;
	bool single; /* one key in each call: batch 1 only */
	/*
	 * Select the variant. Returns 0, or -errno if this CPU has not got it. NULL: no
	 * selection.
	 */
	int (*select)(const struct impl *im);
	/* The timed loop: look up all keys, `batch` at a time. */
	void (*run)(const struct impl *im, const struct keys *k, size_t n,
		    unsigned int batch);
	/* Get up to BATCH_MAX answers: next hop or 0. */
	void (*get)(const struct impl *im, const struct keys *k, size_t from,
		    unsigned int n, uint32_t *value);
};

/* One file defines each array. An array ends with an impl without a name. */
extern struct impl poptrie_impls[], fib4_impls[], fib6_impls[];

/* Keep the compiler from removing a lookup whose answers are not used. */
static inline void
keep(const void *answers)
{
	__asm__ volatile("" : : "r"(answers) : "memory");
}

/*
 * A small generator of random numbers: a counter and a finalizer. Equal on every machine.
 */
struct rnd {
	uint64_t at;
};

static inline uint64_t
mix64(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

static inline uint64_t
rnd64(struct rnd *r)
{
	return mix64(r->at += 0x9e3779b97f4a7c15ull);
}

static inline uint32_t
rnd_below(struct rnd *r, uint32_t n)
{
	return (uint32_t)((rnd64(r) >> 32) * n >> 32);
}

static inline double
rnd_unit(struct rnd *r)
{
	return (double)(rnd64(r) >> 11) * 0x1p-53;
}

static inline uint32_t
addr4(const uint8_t *a)
{
	return (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
}

static inline uint64_t
be64(const uint8_t *a)
{
	return (uint64_t)addr4(a) << 32 | addr4(a + 4);
}

/* table.c, generate.c */
int table_load(const char *path, struct table *t4, struct table *t6);
void table_finish(struct table *t);
int table_push(struct table *t, const struct prefix *p);
void table_free(struct table *t);
void table_generate(struct table *t, int family, size_t n, uint64_t seed);
void table_values(struct table *t, uint32_t n, bool by_asn);
size_t table_groups(const struct table *t, unsigned int bits);
bool prefix_parse(const char *text, struct prefix *p, int *family);
void prefix_mask(struct prefix *p);
struct change *changes_load(const char *path, int family, size_t *n);

/* impl_fib4.c: load rte_lpm with rte_lpm_add(), which takes minutes. */
void lpm_by_its_own_add(void);

/* streams.c */
enum { STREAM_RANDOM, STREAM_INPREFIX, STREAM_ZIPF, STREAM_SEQUENTIAL, N_STREAMS };
extern const char *const stream_name[N_STREAMS];
int keys_make(struct keys *k, int stream, const struct table *t, size_t n, uint64_t seed);
void keys_free(struct keys *k);
/* Make a random address inside a random prefix: 16 octets, IPv4 in the first four. */
void table_inside(const struct table *t, struct rnd *r, uint8_t *addr);

/* measure.c */
struct result {
	double median, min, max; /* million lookups a second */
};

/*
 * chase: out, the lowest and the highest latency of an 8 MiB chase around the rounds, ns.
 */
void measure(struct impl *const *im, unsigned int n, const struct keys *k,
	     unsigned int batch, unsigned int reps, bool contended, struct result *out,
	     double chase[2]);
bool verify(struct impl *const *im, unsigned int n, const struct keys *k, size_t every);
void sort_doubles(double *x, size_t n);

/* update.c */
void update_bench(struct structure *s, const struct table *t, const char *kind,
		  const struct change *c, size_t n_changes, uint32_t nexthops);
void update_worst(struct structure *s, const struct table *t);

/* lines.c */
void lines_print(const struct structure *s, const struct table *t, const struct keys *k,
		 uint32_t nexthops, const char *hash);

/* machine.c */
/* Interruptions of a busy loop: their number a second, and percentiles of their lengths. */
struct gaps {
	double a_second, p99_us, max_us;
};

void machine_print(int cpu, int hog_cpu);
void gaps_print(const char *when);
struct gaps gaps_watch(double seconds);
double chase_ns(size_t bytes);
double others_busy(int cpu, int hog_cpu, bool start);
int hog_start(int cpu);
double hog_stop(void);
void pages_of(const void *at, char *out, size_t n);
double tsc_us(uint64_t tsc);

#endif
