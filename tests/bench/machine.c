/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Describe the machine, measure how quiet it is, find the pages that a structure got, and
 * run the thread that copies through the L3 on another core. Other guests share the
 * machine. A gap detector and a pointer chase show their effect on a result.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <rte_cycles.h>
#include <rte_version.h>
#include "bench.h"

#define HOG_PIECE 4096
#define GAP_US    1.0 /* a round of the rdtsc loop takes hundredths of this */

double
tsc_us(uint64_t tsc)
{
	return (double)tsc * 1e6 / (double)rte_get_tsc_hz();
}

/* Watch a busy loop on this core, and count its interruptions. */
struct gaps
gaps_watch(double seconds)
{
	enum { MAX = 100000 };
	double *gap = malloc(MAX * sizeof(*gap));
	uint64_t start = rte_rdtsc(), last = start, now;
	struct gaps g = {0};
	size_t n = 0;

	while (gap && tsc_us(last - start) < seconds * 1e6) {
		now = rte_rdtsc();
		if (tsc_us(now - last) > GAP_US && n < MAX)
			gap[n++] = tsc_us(now - last);
		last = now;
	}
	if (n) {
		sort_doubles(gap, n);
		g.a_second = (double)n / seconds;
		g.p99_us = gap[n * 99 / 100];
		g.max_us = gap[n - 1];
	}
	free(gap);
	return g;
}

/* Return the nanoseconds for each dependent load in a random cycle through `bytes`. */
double
chase_ns(size_t bytes)
{
	enum { STEPS = 1000000 };
	size_t n = bytes / 64, at = 0;
	size_t(*line)[8] = mmap(NULL, bytes + (2 << 20), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rnd r = {.at = 1};
	uint64_t t;

	if (line == MAP_FAILED)
		return 0;
	madvise(line, bytes + (2 << 20), MADV_HUGEPAGE);
	for (size_t i = 0; i < n; i++)
		line[i][0] = i;
	/* Sattolo's shuffle: one cycle through all lines. */
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = rnd_below(&r, (uint32_t)i), x = line[i][0];

		line[i][0] = line[j][0];
		line[j][0] = x;
	}
	for (size_t i = 0; i < n; i++)
		at = line[at][0];
	t = rte_rdtsc_precise();
	for (size_t i = 0; i < STEPS; i++)
		at = line[at][0];
	t = rte_rdtsc_precise() - t;
	keep(&at);
	munmap(line, bytes + (2 << 20));
	return tsc_us(t) * 1000 / STEPS;
}

/* Print one line about how quiet the machine is now. */
void
gaps_print(const char *when)
{
	struct gaps g = gaps_watch(0.5);

	printf("{\"bench\":\"gaps\",\"when\":\"%s\",\"a_second\":%.0f,\"p99_us\":%.1f,"
	       "\"max_us\":%.1f,\"chase_l2_ns\":%.1f,\"chase_8mib_ns\":%.1f}\n",
	       when, g.a_second, g.p99_us, g.max_us, chase_ns(512 << 10),
	       chase_ns(8 << 20));
	fflush(stdout);
}

/*
 * Return the size of the L3, from /sys. sysconf() trusts the CPUID of a virtual machine,
 * which may report all of the host's L3.
 */
static size_t
l3_bytes(int cpu)
{
	char path[96];
	size_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index3/size",
		 cpu);
	f = fopen(path, "r");
	if (!f)
		return (size_t)32 << 20;
	if (fscanf(f, "%zuK", &kib) != 1)
		kib = 32 << 10;
	fclose(f);
	return kib << 10;
}

/*
 * Write the text after the colon of the first line of /proc/cpuinfo that begins with `what`
 * to `out`; "?": there is no such line.
 */
static void
cpuinfo(const char *what, char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char *line = NULL, *colon;
	size_t cap = 0;

	snprintf(out, size, "?");
	while (f && getline(&line, &cap, f) > 0) {
		if (strncmp(line, what, strlen(what)) != 0 || !(colon = strchr(line, ':')))
			continue;
		snprintf(out, size, "%s", colon + 1 + (colon[1] == ' '));
		out[strcspn(out, "\n\"\\")] = 0;
		break;
	}
	free(line);
	if (f)
		fclose(f);
}

void
machine_print(int cpu, int hog_cpu)
{
	static const char *const wanted[] = {"avx2",     "bmi2",       "avx512f",
					     "avx512bw", "avx512vbmi", "avx512_vpopcntdq"};
	char model[128], flags[8192], has[128] = "", *save, *f;
	struct gaps g = gaps_watch(0.5);
	struct utsname u;

	uname(&u);
	cpuinfo("model name", model, sizeof(model));
	cpuinfo("flags", flags, sizeof(flags));
	for (f = strtok_r(flags, " ", &save); f; f = strtok_r(NULL, " ", &save))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
			if (strcmp(f, wanted[i]) == 0)
				snprintf(has + strlen(has), sizeof(has) - strlen(has),
					 "%s%s", *has ? " " : "", f);
	printf("{\"bench\":\"machine\",\"cpu\":\"%s\",\"flags\":\"%s\",\"kernel\":\"%s\","
	       "\"dpdk\":\"%s\",\"cores\":%ld,\"tsc_mhz\":%.0f,\"l2_kib\":%ld,"
	       "\"l3_kib\":%zu,\"on_cpu\":%d,\"hog_cpu\":%d,\"gaps_a_second\":%.0f,"
	       "\"gap_max_us\":%.1f,\"chase_8mib_ns\":%.1f,\"others_busy\":%.2f}\n",
	       model, has, u.release, rte_version(), sysconf(_SC_NPROCESSORS_ONLN),
	       (double)rte_get_tsc_hz() / 1e6, sysconf(_SC_LEVEL2_CACHE_SIZE) >> 10,
	       l3_bytes(cpu) >> 10, cpu, hog_cpu, g.a_second, g.max_us, chase_ns(8 << 20),
	       others_busy(cpu, -1, false));
	fflush(stdout);
}

/*
 * Return the share of time in which the other cores were busy since the call with `start`.
 * Our own streaming thread does not count.
 */
double
others_busy(int cpu, int hog_cpu, bool start)
{
	static uint64_t busy0, all0;
	uint64_t busy = 0, all = 0;
	FILE *f = fopen("/proc/stat", "r");
	char *line = NULL;
	size_t cap = 0;
	int at;

	while (f && getline(&line, &cap, f) > 0) {
		unsigned long long v[8];

		/* The first line, "cpu ", has the sum of all CPUs. */
		if (!isdigit((unsigned char)line[3]) ||
		    sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &at,
			   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 9 ||
		    at == cpu || at == hog_cpu)
			continue;
		for (int i = 0; i < 8; i++) {
			all += v[i];
			busy += i == 3 || i == 4 ? 0 : v[i];
		}
	}
	free(line);
	if (f)
		fclose(f);
	if (start) {
		busy0 = busy;
		all0 = all;
	}
	return all > all0 ? (double)(busy - busy0) / (double)(all - all0) : 0;
}

/*
 * Write the page size of the mapping that has this address to `out`: "2M", "1G", "4k";
 * "2M thp" if the kernel put most of the mapping into transparent huge pages.
 */
void
pages_of(const void *at, char *out, size_t n)
{
	unsigned long from, to, kib, page = 0, rss = 0, huge = 0;
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool here = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (isxdigit((unsigned char)line[0]) &&
		    sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			if (here)
				break;
			here = (uintptr_t)at >= from && (uintptr_t)at < to;
		} else if (here && sscanf(line, "KernelPageSize: %lu", &kib) == 1) {
			page = kib;
		} else if (here && sscanf(line, "Rss: %lu", &kib) == 1) {
			rss = kib;
		} else if (here && sscanf(line, "AnonHugePages: %lu", &kib) == 1) {
			huge = kib;
		}
	}
	if (f)
		fclose(f);
	if (page >= 1 << 20)
		snprintf(out, n, "1G");
	else if (page >= 2048)
		snprintf(out, n, "2M");
	else if (huge * 2 > rss)
		snprintf(out, n, "2M thp");
	else
		snprintf(out, n, "4k");
}

static struct {
	pthread_t thread;
	atomic_bool stop;
	_Atomic uint64_t passes;
	uint8_t *mem;
	size_t bytes;
	int cpu;
	uint64_t since;
} hog;

static void *
hog_main(void *arg)
{
	size_t half = hog.bytes / 2;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(hog.cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	while (!atomic_load_explicit(&hog.stop, memory_order_relaxed)) {
		/* Copy in pieces, because a long memcpy() writes around the caches. */
		for (size_t at = 0; at < half; at += HOG_PIECE)
			memcpy(hog.mem + half + at, hog.mem + at, HOG_PIECE);
		keep(hog.mem);
		atomic_fetch_add_explicit(&hog.passes, 1, memory_order_relaxed);
	}
	return NULL;
}

/*
 * Copy twice the L3 to another twice the L3 on another core, again and again, as the second
 * core of a router reads and writes packets. Returns 0 or -errno.
 *
 * The effect is measured by an 8 MiB chase on the measuring core, which takes 14 ns alone.
 * The kind of stream makes no difference to it. These kinds were tried: reads from one end
 * to the other, backwards, and sixteen at a time, over 1.5, 2 and 4 times the L3, in huge
 * and small pages; random reads; copies; writes, also around the caches. At times each kind
 * takes all of the L3 (145 to 200 ns), at times none has an effect (15 ns). The change
 * comes for all kinds at once, within seconds, probably because the host of the virtual
 * machine moves the cores to other L3s. Therefore each rate is printed with a chase.
 */
int
hog_start(int cpu)
{
	if (!hog.mem) {
		hog.bytes = 4 * l3_bytes(cpu);
		hog.mem = mmap(NULL, hog.bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (hog.mem == MAP_FAILED) {
			hog.mem = NULL;
			return -ENOMEM;
		}
		madvise(hog.mem, hog.bytes, MADV_HUGEPAGE);
		memset(hog.mem, 1, hog.bytes);
	}
	hog.cpu = cpu;
	atomic_store(&hog.stop, false);
	atomic_store(&hog.passes, 0);
	hog.since = rte_rdtsc();
	return -pthread_create(&hog.thread, NULL, hog_main, NULL);
}

/* Stop the thread. Returns its rate: GB/s read and written. */
double
hog_stop(void)
{
	double us = tsc_us(rte_rdtsc() - hog.since);

	atomic_store(&hog.stop, true);
	pthread_join(hog.thread, NULL);
	return (double)atomic_load(&hog.passes) * (double)hog.bytes / us / 1e3;
}
