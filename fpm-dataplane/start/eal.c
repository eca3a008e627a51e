/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's start: its arguments, and the packet buffers.                           [main]
 */
#include "start/eal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/log.h"
#include "pci/device.h"
#include "pci/sysfs.h"
#include "port/nicd_client.h"
#include "port/packet.h"

#define POOL "packets"

/*
 * An error that is none. Linux's vfio refuses to turn interrupts off when they are not on, and
 * for no other reason; the driver of virtio (22.11) turns them off when it stops and again when it
 * closes, and of a bond's member before they have ever been on.
 */
#define OFF_ALREADY "EAL: Error disabling MSI-X interrupts"

static void
dpdk_log_line(enum log_level level, const char *text, size_t n)
{
	if (n >= strlen(OFF_ALREADY) && memcmp(text, OFF_ALREADY, strlen(OFF_ALREADY)) == 0)
		log_debug("dpdk: %.*s (they were off: harmless)", (int)n, text);
	else
		log_write(level, "dpdk: %.*s", (int)n, text);
}

/* DPDK's own words are lines of the log: for who waits for nobody, and in `fpmctl show log`. */
static ssize_t
dpdk_log_write(void *cookie, const char *text, size_t n)
{
	enum log_level level = rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR
				       ? LOG_LEVEL_ERROR
				       : LOG_LEVEL_WARN;

	for (size_t at = 0, len; at < n; at += len + 1) {
		const char *end = memchr(text + at, '\n', n - at);

		len = end != NULL ? (size_t)(end - text) - at : n - at;
		if (len > 0)
			dpdk_log_line(level, text + at, len);
	}
	return (ssize_t)n;
}

static void
dpdk_log_open(void)
{
	FILE *stream =
		fopencookie(NULL, "w", (cookie_io_functions_t){.write = dpdk_log_write});

	if (stream != NULL)
		rte_openlog_stream(stream);
}

/* --- hugepages: of whom a successor takes them -------------------------------------------- */

#define HUGE_DIR "/sys/kernel/mm/hugepages"

/* Hugepages of a process, as its status file has them; 0 if it cannot be read. */
static unsigned long long
huge_used_kib(pid_t pid)
{
	static const char key[] = "\nHugetlbPages:";
	char path[64], status[8192];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	(void)sysfs_read(path, status, sizeof(status));
	line = strstr(status, key);
	return line != NULL ? strtoull(line + strlen(key), NULL, 10) : 0;
}

/* Of all sizes: DPDK takes any. */
static unsigned long long
huge_free_kib(void)
{
	DIR *dir = opendir(HUGE_DIR);
	unsigned long long kib = 0, each;
	char path[sizeof(HUGE_DIR) + 300];

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (sscanf(e->d_name, "hugepages-%llukB", &each) == 1) {
			snprintf(path, sizeof(path), HUGE_DIR "/%s/free_hugepages",
				 e->d_name);
			kib += each * (unsigned long long)sysfs_read_number(path, 0);
		}
	if (dir != NULL)
		closedir(dir);
	return kib;
}

/*
 * Why there is no memory. DPDK says EACCES where no hugepage is free, ENOMEM where too few are.
 * That is no room for two (-ENOMEM) when one alone has it: what `old` holds is free then.
 */
int
eal_no_memory(const struct config *conf, int rc, pid_t old)
{
	unsigned long long unused, others;

	if (!conf->hugepages || old == 0 || (rc != -EACCES && rc != -ENOMEM))
		return rc;
	unused = huge_free_kib() / 1024;
	others = huge_used_kib(old) / 1024;
	if (unused + others >= conf->memory_mib)
		return -ENOMEM;
	log_error("main: memory.size-mib is %u: hugepages for %llu MiB are free, and for "
		  "%llu MiB when the daemon that runs has ended",
		  conf->memory_mib, unused, unused + others);
	return -EACCES;
}

/* --- DPDK ----------------------------------------------------------------------------------- */

#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1) /* admin-guide/mm/pagemap.rst of Linux */

/* Does the kernel tell us where in memory our pages are? In most containers it tells nobody. */
static bool
kernel_tells_addresses(void)
{
	uint64_t entry = 0, in_use = 1;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	off_t at = (off_t)((uintptr_t)&in_use / (uintptr_t)sysconf(_SC_PAGESIZE) *
			   sizeof(entry));

	if (fd < 0)
		return false;
	if (pread(fd, &entry, sizeof(entry), at) != sizeof(entry))
		entry = 0;
	close(fd);
	return (entry & PAGEMAP_FRAME) != 0;
}

/* Says that DPDK does not start, and returns rc. */
static int
eal_failure_log(const struct config *conf, int rc)
{
	if (conf->hugepages)
		log_error("main: DPDK does not start error=%s; are there enough free "
			  "hugepages "
			  "for memory.size-mib (%u)?",
			  rte_strerror(-rc), conf->memory_mib);
	else
		log_error("main: DPDK does not start error=%s", rte_strerror(-rc));
	return rc;
}

static struct {
	bool is;
	char prefix[EAL_PREFIX_STRLEN];
	unsigned int client;
} joined;

void
eal_join(const char *prefix, unsigned int client)
{
	joined.is = true;
	joined.client = client;
	snprintf(joined.prefix, sizeof(joined.prefix), "%s", prefix);
}

unsigned int
eal_client(void)
{
	return joined.client;
}

const char *
eal_prefix(void)
{
	static char prefix[EAL_PREFIX_STRLEN];

	if (prefix[0] == '\0')
		snprintf(prefix, sizeof(prefix), EAL_PREFIX, (int)getpid(),
			 (unsigned int)monotonic_ns());
	return prefix;
}

/*
 * Of a daemon that shares nothing lcore 0 is main, where plan_cores() left it, and the mould of the
 * control threads. Where DPDK is shared lcore 0 is the other process's.
 */
static unsigned int
main_lcore(void)
{
	return joined.is ? 1 + joined.client * (CONFIG_SHARED_CORES_MAX + 1) : 0;
}

static_assert(1 + NICD_CLIENTS * (CONFIG_SHARED_CORES_MAX + 1) <= RTE_MAX_LCORE,
	      "each has its own");

/* Pinned; forwarder 0 is the next after main. */
unsigned int
eal_lcore(unsigned int i)
{
	return main_lcore() + 1 + i;
}

#define LCORES_STRLEN 2048

static void
lcores_say(const struct config *conf, char out[LCORES_STRLEN])
{
	cpu_set_t set;
	int n;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	n = snprintf(out, LCORES_STRLEN, "%u@(", main_lcore());
	for (unsigned int cpu = 0, first = 1; cpu < CPU_SETSIZE && n < 900; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			n += snprintf(out + n, LCORES_STRLEN - (size_t)n, "%s%u",
				      first ? "" : ",", cpu);
			first = 0;
		}
	n += snprintf(out + n, LCORES_STRLEN - (size_t)n, ")");
	for (unsigned int i = 0; conf != NULL && i < conf->n_core; i++)
		n += snprintf(out + n, LCORES_STRLEN - (size_t)n, ",%u@%u", eal_lcore(i),
			      conf->core[i]);
}

/* The words for rte_eal_init(). */
struct words {
	int n;
	const char *word[24 + 2 * CONFIG_PLUGINS_MAX];
	char lcores[LCORES_STRLEN], mem[16];
};

static void
word_add(struct words *w, const char *text)
{
	w->word[w->n++] = text;
}

static void
words_add_common(struct words *w, const struct config *conf)
{
	word_add(w, "fpm-dataplane");
	word_add(w, "--lcores");
	word_add(w, w->lcores);
	word_add(w, "--no-telemetry");
	word_add(w, "--log-level=*:error");
	/* Only configured devices are attached: an empty allow list would probe them all. */
	word_add(w, "--allow=0000:00:00.0");
	/* With our list of none it does not see that vfio's devices have no IOMMU. */
	if (conf->hugepages && device_vfio_is_unsafe("") && kernel_tells_addresses())
		word_add(w, "--iova-mode=pa");
	for (unsigned int i = 0; i < conf->n_plugin; i++) {
		word_add(w, "-d");
		word_add(w, conf->plugin[i]);
	}
}

/* Of who has the memory, and not a part in another's. */
static void
words_add_memory(struct words *w, const struct config *conf)
{
	snprintf(w->mem, sizeof(w->mem), "%u", conf->memory_mib);
	word_add(w, "-m");
	word_add(w, w->mem);
}

static int
eal_init(const struct config *conf, struct words *w, pid_t old)
{
	w->word[w->n] = NULL;
	dpdk_log_open();
	if (rte_eal_init(w->n, (char **)(uintptr_t)w->word) < 0)
		return eal_failure_log(conf, eal_no_memory(conf, -rte_errno, old));
	return 0;
}

int
eal_start(const struct config *conf, pid_t old)
{
	struct words w = {.n = 0};
	int rc;

	lcores_say(conf, w.lcores);
	words_add_common(&w, conf);
	if (joined.is) {
		word_add(&w, "--proc-type=secondary");
		word_add(&w, "--file-prefix");
		word_add(&w, joined.prefix);
	} else {
		words_add_memory(&w, conf);
		word_add(&w, conf->hugepages ? "--in-memory" : "--no-huge");
	}
	if (!conf->hugepages) {
		word_add(&w, "--no-shconf");
		word_add(&w, "--file-prefix");
		word_add(&w, eal_prefix());
	}
	rc = eal_init(conf, &w, old);
	/* Without shared configuration it stays empty, and the EAL never removes it. */
	if (rc == 0 && !conf->hugepages)
		(void)rmdir(rte_eal_get_runtime_dir());
	return rc;
}

int
eal_start_nics(const struct config *conf)
{
	struct words w = {.n = 0};

	lcores_say(NULL, w.lcores);
	words_add_common(&w, conf);
	words_add_memory(&w, conf);
	word_add(&w, "--proc-type=primary");
	word_add(&w, "--file-prefix");
	word_add(&w, eal_prefix());
	return eal_init(conf, &w, 0);
}

void
eal_end(struct rte_mempool *pool)
{
	if (!joined.is)
		rte_mempool_free(pool);
	for (unsigned int i = 0; joined.is && pool != NULL && i <= CONFIG_SHARED_CORES_MAX;
	     i++)
		rte_mempool_cache_flush(rte_mempool_default_cache(pool, main_lcore() + i),
					pool);
	rte_eal_cleanup();
}

static unsigned int
room_bytes(const struct config *conf)
{
	unsigned int room = RTE_MBUF_DEFAULT_DATAROOM;

	for (unsigned int i = 0; i < conf->n_port; i++)
		if (conf->port[i].mtu_bytes + 64 > room)
			room = RTE_ALIGN(conf->port[i].mtu_bytes + 64, 64);
	return room + RTE_PKTMBUF_HEADROOM;
}

/* FNV-1a, with the end of the text. */
static uint32_t
sum_extend(uint32_t sum, const char *text)
{
	do
		sum = (sum ^ (uint8_t)*text) * 16777619u;
	while (*text++ != '\0');
	return sum;
}

uint32_t
eal_sum(const struct config *conf)
{
	char numbers[64];
	uint32_t sum;

	snprintf(numbers, sizeof(numbers), "%u %u %u", conf->memory_mib, room_bytes(conf),
		 (unsigned int)PACKET_PRIV_BYTES);
	sum = sum_extend(2166136261u, numbers);
	for (unsigned int i = 0; i < conf->n_plugin; i++)
		sum = sum_extend(sum, conf->plugin[i]);
	return sum;
}

struct rte_mempool *
eal_pool(const struct config *conf)
{
	unsigned int room = room_bytes(conf), each, n;
	struct rte_mempool *pool;

	if (joined.is) {
		pool = rte_mempool_lookup(POOL);
		if (pool == NULL)
			log_error("main: packet buffers not found error=%s",
				  rte_strerror(rte_errno));
		return pool;
	}
	/* No packet crosses a page: without hugepages each takes whole ones. */
	each = room + 256;
	if (!conf->hugepages)
		each = RTE_ALIGN(each, 4096);
	/* Three quarters of the memory are packets; the rest is queues and rings. */
	n = (unsigned int)((uint64_t)conf->memory_mib * 1024 * 1024 * 3 / 4 / each);
	if (n > 262143)
		n = 262143;
	pool = rte_pktmbuf_pool_create(POOL, n, 256, PACKET_PRIV_BYTES, (uint16_t)room, 0);
	if (pool == NULL)
		log_error("main: packet buffers not made n=%u error=%s; is memory.size-mib "
			  "(%u) "
			  "there?",
			  n, rte_strerror(rte_errno), conf->memory_mib);
	return pool;
}
