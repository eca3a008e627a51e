/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_fib: measure lookups, builds, updates and bytes of our Poptrie and of DPDK's
 * structures in one process, on one core, with the same keys. Writes JSON lines to stdout
 * and progress to stderr. bench_fib.py runs it, reserves huge pages and prints the table. A
 * slow result is never a failure. Different answers are.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include "bench.h"

#define SEED 20261121u

/* Options; comma-separated lists as given, each with its default. */
static struct {
	int cpu, hog_cpu; /* hog_cpu < 0: none */
	const char *family, *stream, *impl, *nexthops, *hash, *l3, *batch;
	unsigned int reps, builds;
	bool quick, cross, no_huge, no_update, only_hog;
	unsigned int bits; /* the widest vectors of all programs: 128, 256 or 512 */
	size_t routes4, routes6, keys4, keys6;
	const char *updates;
} opt = {
	.cpu = 0,
	.hog_cpu = -1,
	.family = "4,6",
	.stream = "random,inprefix,zipf,sequential",
	.impl = "*",
	.nexthops = "64,16,256",
	.hash = "prefix,as",
	.l3 = "idle,contended",
	.batch = "64,32,1",
	.reps = 7,
	.bits = 512,
	.builds = 3,
	.routes4 = 900000,
	.routes6 = 160000,
	/* Keys pass through the caches as well. More keys would not leave an idle L3. */
	.keys4 = 8 << 20,
	.keys6 = 2 << 20,
};

struct run {
	struct table *t;
	struct impl *im[IMPLS_MAX];
	unsigned int n;
	struct keys keys[N_STREAMS];
	unsigned int nexthops;
	const char *hash;
	bool main; /* the first of the next-hop variants: measure everything */
};

/* Return the i-th word of a comma-separated list, or NULL. */
static char *
word(const char *list, unsigned int i, char *buf, size_t size)
{
	for (; i > 0 && list; i--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	if (!list || !*list)
		return NULL;
	snprintf(buf, size, "%.*s", (int)strcspn(list, ","), list);
	return buf;
}

/* Return true if a word of the list matches, as a shell pattern or as a part. */
static bool
listed(const char *list, const char *name)
{
	char w[64], part[72];

	for (unsigned int i = 0; word(list, i, w, sizeof(w)); i++) {
		snprintf(part, sizeof(part), "*%s*", w);
		if (fnmatch(part, name, 0) == 0)
			return true;
	}
	return false;
}

/* Return true if the option -V permits the instructions of this implementation. */
static bool
permitted(const char *name)
{
	if (strstr(name, "avx512") != NULL)
		return opt.bits >= 512;
	return strstr(name, "avx2") == NULL || opt.bits >= 256;
}

static void
skip(const struct run *r, const char *name, const char *why)
{
	printf("{\"bench\":\"skip\",\"impl\":\"%s\",\"table\":\"%s\",\"why\":\"%s\"}\n",
	       name, r->t->name, why);
	fprintf(stderr, "bench-fib: %s left out: %s\n", name, why);
}

/* Build one structure `times` times, and keep the last one. Returns 0 or -errno. */
static int
structure_build(const struct run *r, struct structure *s, unsigned int times)
{
	double create[REPS_MAX], build[REPS_MAX];
	const char *why = "cannot be made";
	struct bytes b = {0};
	uint64_t t0, t1;
	int rc = 0;

	for (unsigned int i = 0; i < times; i++) {
		if (i > 0)
			s->ops->close(s);
		t0 = rte_rdtsc_precise();
		rc = s->ops->open(s, r->t, &why);
		if (rc < 0) {
			skip(r, s->name, why);
			return rc;
		}
		t1 = rte_rdtsc_precise();
		rc = s->ops->load(s, r->t);
		build[i] = tsc_us(rte_rdtsc_precise() - t1) / 1e3;
		create[i] = tsc_us(t1 - t0) / 1e3;
		if (rc < 0) {
			skip(r, s->name, strerror(-rc));
			s->ops->close(s);
			return rc;
		}
	}
	sort_doubles(build, times);
	sort_doubles(create, times);
	printf("{\"bench\":\"build%d\",\"impl\":\"%s\",\"table\":\"%s\",\"routes\":%zu,"
	       "\"nexthops\":%u,\"hash\":\"%s\",\"create_ms\":%.1f,\"build_ms\":%.1f,"
	       "\"min\":%.1f,\"max\":%.1f,\"builds\":%u%s%s%s}\n",
	       s->family, s->name, r->t->name, r->t->n, r->nexthops, r->hash,
	       create[times / 2], build[times / 2], build[0], build[times - 1], times,
	       s->note ? ",\"note\":\"" : "", s->note ? s->note : "", s->note ? "\"" : "");
	s->refused = 0;
	s->ops->bytes(s, &b);
	printf("{\"bench\":\"bytes%d\",\"impl\":\"%s\",\"table\":\"%s\",\"nexthops\":%u,"
	       "\"hash\":\"%s\",\"total\":%zu,\"lookup\":%zu,\"truth\":%zu,"
	       "\"pages\":\"%s\"}\n",
	       s->family, s->name, r->t->name, r->nexthops, r->hash, b.total, b.lookup,
	       b.truth, b.pages);
	fflush(stdout);
	return 0;
}

/*
 * Return the number of builds of a structure to time: several with the first assignment of
 * next hops, otherwise one. A structure with a note (rte_lpm) is always built once, and a
 * peer is built once in a quick run.
 */
static unsigned int
builds_of(const struct run *r, const struct structure *s)
{
	return r->main && !s->note && !(opt.quick && s->entry_bytes) ? opt.builds : 1;
}

/* Build the structures of the chosen impls, and keep the impls that work on this CPU. */
static void
impls_open(struct run *r)
{
	struct impl *const all[] = {poptrie_impls, fib4_impls, fib6_impls};
	const struct structure *refused = NULL;

	r->n = 0;
	for (size_t a = 0; a < sizeof(all) / sizeof(*all); a++) {
		for (struct impl *im = all[a]; im->name; im++) {
			struct structure *s = im->s;

			if (s->family != r->t->family || !listed(opt.impl, im->name) ||
			    !permitted(im->name) || s == refused)
				continue;
			if (!s->up && structure_build(r, s, builds_of(r, s)) < 0) {
				refused = s;
				continue;
			}
			s->up = true;
			if (im->select && im->select(im) < 0)
				skip(r, im->name, "not on this CPU");
			else if (r->n < IMPLS_MAX)
				r->im[r->n++] = im;
		}
	}
}

static void
impls_close(struct run *r)
{
	for (unsigned int i = 0; i < r->n; i++) {
		if (r->im[i]->s->up)
			r->im[i]->s->ops->close(r->im[i]->s);
		r->im[i]->s->up = false;
	}
}

static void
rates(struct run *r, const struct keys *k, const char *l3, unsigned int batch)
{
	bool contended = strcmp(l3, "contended") == 0;
	struct impl *im[IMPLS_MAX];
	struct result res[IMPLS_MAX];
	double hog = 0, others, chase[2];
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->n; i++)
		if (!r->im[i]->single || batch == 1)
			im[n++] = r->im[i];
	if (contended && (opt.hog_cpu < 0 || hog_start(opt.hog_cpu) < 0))
		return;
	others_busy(opt.cpu, contended ? opt.hog_cpu : -1, true);
	measure(im, n, k, batch, opt.reps, contended, res, chase);
	others = others_busy(opt.cpu, contended ? opt.hog_cpu : -1, false);
	if (contended)
		hog = hog_stop();
	for (unsigned int i = 0; i < n; i++)
		printf("{\"bench\":\"fib%d\",\"impl\":\"%s\",\"table\":\"%s\","
		       "\"stream\":\"%s\",\"nexthops\":%u,\"hash\":\"%s\",\"l3\":\"%s\","
		       "\"batch\":%u,\"mlps\":%.1f,\"min\":%.1f,\"max\":%.1f,"
		       "\"keys\":%zu,\"others_busy\":%.2f,\"hog_gbs\":%.1f,"
		       "\"chase_8mib_ns\":[%.1f,%.1f]}\n",
		       r->t->family, im[i]->name, r->t->name, k->stream, r->nexthops,
		       r->hash, l3, batch, res[i].median, res[i].min, res[i].max, k->n,
		       others, hog, chase[0], chase[1]);
	fflush(stdout);
	fprintf(stderr, "\r%-20.20s %3u next hops by %-6s %-10s %-9s batch %-2u ",
		r->t->name, r->nexthops, r->hash, k->stream, l3, batch);
}

static bool
verified(const struct run *r, struct impl *const *im, unsigned int n, size_t every,
	 const char *when)
{
	bool good = true;

	for (int s = 0; s < N_STREAMS; s++)
		if (r->keys[s].n)
			good &= verify(im, n, &r->keys[s], every);
	printf("{\"bench\":\"verify%d\",\"table\":\"%s\",\"nexthops\":%u,\"hash\":\"%s\","
	       "\"when\":\"%s\",\"impls\":%u,\"every\":%zu,\"identical\":%s}\n",
	       r->t->family, r->t->name, r->nexthops, r->hash, when, n, every,
	       good ? "true" : "false");
	fflush(stdout);
	return good;
}

/*
 * Verify after updates. A structure that refused updates (rte_fib6 loses count of its
 * groups) cannot agree and is left out.
 */
static bool
verified_again(const struct run *r, struct impl *const *im, unsigned int n,
	       const char *when)
{
	struct impl *kept[IMPLS_MAX];
	unsigned int n_kept = 0;

	for (unsigned int i = 0; i < n; i++)
		if (im[i]->s->up && im[i]->s->refused == 0)
			kept[n_kept++] = im[i];
	return verified(r, kept, n_kept, 4, when);
}

/* Measure updates. They come last, because the recorded stream leaves another table. */
static bool
updates(struct run *r)
{
	struct impl *im[IMPLS_MAX];
	const struct structure *last = NULL;
	struct change *c;
	unsigned int n = 0;
	size_t n_changes;
	bool good = true;

	for (unsigned int i = 0; i < r->n; i++) {
		struct structure *s = r->im[i]->s;

		if (!s->update)
			continue;
		im[n++] = r->im[i];
		if (s == last)
			continue;
		last = s;
		update_bench(s, r->t, "random", NULL, 0, r->nexthops);
		update_worst(s, r->t);
	}
	if (n == 0)
		return true;
	good = verified_again(r, im, n, "after random updates");
	if (!opt.updates || !(c = changes_load(opt.updates, r->t->family, &n_changes)))
		return good;
	last = NULL;
	for (unsigned int i = 0; i < n; i++) {
		if (im[i]->s != last)
			update_bench(im[i]->s, r->t, "stream", c, n_changes, r->nexthops);
		last = im[i]->s;
	}
	free(c);
	return good && verified_again(r, im, n, "after the update stream");
}

/*
 * Count cache lines. All variants of Poptrie touch the same lines, so trace one of them. A
 * quick run leaves out the peers.
 */
static void
lines(const struct run *r)
{
	const struct structure *last = NULL;

	for (unsigned int i = 0; i < r->n; i++) {
		const struct structure *s = r->im[i]->s;

		if (s == last || (last && !last->entry_bytes && !s->entry_bytes) ||
		    (opt.quick && s->entry_bytes))
			continue;
		last = s;
		for (int k = 0; k < N_STREAMS; k++)
			if (r->keys[k].n)
				lines_print(s, r->t, &r->keys[k], r->nexthops, r->hash);
	}
}

/* Run everything that the options select, with one assignment of next hops. */
static bool
variant(struct run *r)
{
	char l3[16], batch[16];
	bool good;

	table_values(r->t, r->nexthops, strcmp(r->hash, "as") == 0);
	impls_open(r);
	good = r->n && verified(r, r->im, r->n, r->main && !opt.quick ? 1 : 16, "built");
	for (int s = 0; s < N_STREAMS && good; s++) {
		if (!r->keys[s].n)
			continue;
		for (unsigned int l = 0; word(opt.l3, l, l3, sizeof(l3)); l++)
			for (unsigned int b = 0; word(opt.batch, b, batch, sizeof(batch));
			     b++)
				if (r->main || opt.cross || b == 0)
					rates(r, &r->keys[s], l3,
					      (unsigned int)atoi(batch));
	}
	fprintf(stderr, "\r%78s\r", "");
	if (good && r->main) {
		lines(r);
		if (!opt.no_update)
			good = updates(r);
	}
	impls_close(r);
	return good;
}

static bool
table_run(struct table *t)
{
	struct run r = {.t = t, .main = true};
	char hops[16], hash[16];
	bool good = true;

	printf("{\"bench\":\"table%d\",\"table\":\"%s\",\"routes\":%zu,\"origin_as\":%s}\n",
	       t->family, t->name, t->n, t->has_asn ? "true" : "false");
	gaps_print("before");
	for (int s = 0; s < N_STREAMS; s++) {
		if (!listed(opt.stream, stream_name[s]))
			continue;
		if (keys_make(&r.keys[s], s, t, t->family == 4 ? opt.keys4 : opt.keys6,
			      SEED) < 0) {
			fprintf(stderr, "bench-fib: no memory for keys\n");
			return false;
		}
	}
	for (unsigned int h = 0; word(opt.hash, h, hash, sizeof(hash)); h++) {
		if (strcmp(hash, "as") == 0 && !t->has_asn)
			continue;
		for (unsigned int n = 0; word(opt.nexthops, n, hops, sizeof(hops)); n++) {
			r.nexthops = (unsigned int)atoi(hops);
			r.hash = hash;
			good &= variant(&r);
			r.main = false;
		}
	}
	gaps_print("after");
	for (int s = 0; s < N_STREAMS; s++)
		keys_free(&r.keys[s]);
	return good;
}

static int
eal_up(char *argv0)
{
	char cpu[16], prefix[32], width[40];
	char *shared[] = {argv0,
			  "-l",
			  cpu,
			  "--no-pci",
			  "--no-telemetry",
			  "--log-level=lib.eal:error",
			  width,
			  "--in-memory",
			  NULL};
	char *alone[] = {argv0,
			 "-l",
			 cpu,
			 "--no-pci",
			 "--no-telemetry",
			 "--log-level=lib.eal:error",
			 width,
			 "--no-huge",
			 "--no-shconf",
			 "-m",
			 "3072",
			 "--file-prefix",
			 prefix,
			 NULL};

	snprintf(cpu, sizeof(cpu), "%d", opt.cpu);
	snprintf(width, sizeof(width), "--force-max-simd-bitwidth=%u", opt.bits);
	snprintf(prefix, sizeof(prefix), "bench-fib-%d", (int)getpid());
	return opt.no_huge ? rte_eal_init(13, alone) : rte_eal_init(8, shared);
}

static void
usage(void)
{
	fprintf(stderr,
		"usage: bench_fib [-c CPU] [-C CPU] [-f 4,6] [-s STREAMS] [-i IMPLS]\n"
		"  [-n NEXTHOPS] [-a prefix,as] [-l idle,contended] [-b BATCHES] [-r "
		"REPS]\n"
		"  [-u UPDATES] [-g ROUTES4] [-G ROUTES6] [-k KEYS4] [-K KEYS6] [-q] [-x] "
		"[-H] [-L] [-U] [-S] [-V 128|256|512] "
		"[TABLE...]\n"
		"-C core that copies through the L3  -q quick  -x cross all lists\n"
		"-H no huge pages  -L load rte_lpm by rte_lpm_add()  -U no updates\n"
		"-S only copy through the L3 until stdin ends\n"
		"-V the widest vectors of all implementations, in bits\n");
	exit(2);
}

static void
options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "c:C:f:s:i:n:a:l:b:r:u:g:G:k:K:qxHLUSV:")) != -1) {
		switch (c) {
		case 'c':
			opt.cpu = atoi(optarg);
			break;
		case 'C':
			opt.hog_cpu = atoi(optarg);
			break;
		case 'f':
			opt.family = optarg;
			break;
		case 's':
			opt.stream = optarg;
			break;
		case 'i':
			opt.impl = optarg;
			break;
		case 'n':
			opt.nexthops = optarg;
			break;
		case 'a':
			opt.hash = optarg;
			break;
		case 'l':
			opt.l3 = optarg;
			break;
		case 'b':
			opt.batch = optarg;
			break;
		case 'r':
			opt.reps = (unsigned int)atoi(optarg);
			break;
		case 'u':
			opt.updates = optarg;
			break;
		case 'g':
			opt.routes4 = strtoul(optarg, NULL, 10);
			break;
		case 'G':
			opt.routes6 = strtoul(optarg, NULL, 10);
			break;
		case 'k':
			opt.keys4 = strtoul(optarg, NULL, 10);
			break;
		case 'K':
			opt.keys6 = strtoul(optarg, NULL, 10);
			break;
		case 'q':
			opt.quick = true;
			break;
		case 'x':
			opt.cross = true;
			break;
		case 'H':
			opt.no_huge = true;
			break;
		case 'L':
			lpm_by_its_own_add();
			break;
		case 'V':
			opt.bits = (unsigned int)atoi(optarg);
			break;
		case 'U':
			opt.no_update = true;
			break;
		case 'S':
			opt.only_hog = opt.no_huge = true;
			break;
		default:
			usage();
		}
	}
	if (opt.reps < 1 || opt.reps > REPS_MAX || opt.keys4 < KEYS_MIN ||
	    opt.keys6 < KEYS_MIN || (opt.bits != 128 && opt.bits != 256 && opt.bits != 512))
		usage();
}

static bool
run_families(struct table t[2])
{
	bool good = true;

	for (int i = 0; i < 2; i++) {
		if (t[i].n && listed(opt.family, t[i].family == 4 ? "4" : "6"))
			good &= table_run(&t[i]);
		table_free(&t[i]);
	}
	return good;
}

/*
 * Copy through the L3 on the core of -C for another benchmark, until stdin ends. Prints the
 * time of a load on the measuring core at the start and at the end.
 */
static int
hog_run(void)
{
	double chase[2], gbs;
	char octet;

	if (opt.hog_cpu < 0 || hog_start(opt.hog_cpu) < 0)
		return 1;
	chase[0] = chase_ns(8 << 20);
	printf("{\"chase_8mib_ns\":%.1f}\n", chase[0]);
	fflush(stdout);
	while (read(STDIN_FILENO, &octet, 1) > 0)
		;
	chase[1] = chase_ns(8 << 20);
	gbs = hog_stop();
	printf("{\"chase_8mib_ns\":%.1f,\"hog_gbs\":%.1f}\n", chase[1], gbs);
	return 0;
}

int
main(int argc, char **argv)
{
	struct table t[2] = {0};
	bool good = true;

	options(argc, argv);
	for (unsigned int i = 0; i < 16; i++) {
		char b[16];

		if (word(opt.batch, i, b, sizeof(b)) &&
		    (atoi(b) < 1 || atoi(b) > (int)BATCH_MAX))
			usage();
	}
	others_busy(opt.cpu, -1, true);
	if (eal_up(argv[0]) < 0) {
		fprintf(stderr, "bench-fib: EAL does not start (huge pages? try -H)\n");
		return 1;
	}
	if (opt.only_hog) {
		int rc = hog_run();

		rte_eal_cleanup();
		return rc;
	}
	machine_print(opt.cpu, opt.hog_cpu);
	for (int i = optind; i < argc; i++) {
		int rc = table_load(argv[i], &t[0], &t[1]);

		if (rc < 0 || t[0].n + t[1].n == 0) {
			fprintf(stderr, "bench-fib: %s: %s\n", argv[i],
				rc < 0 ? strerror(-rc) : "no prefixes");
			good = false;
			continue;
		}
		good &= run_families(t);
	}
	if (optind == argc) {
		table_generate(&t[0], 4, opt.routes4, SEED);
		table_generate(&t[1], 6, opt.routes6, SEED);
		good &= run_families(t);
	}
	rte_eal_cleanup();
	return good ? 0 : 1;
}
