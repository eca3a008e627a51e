/* SPDX-License-Identifier: BSD-3-Clause */
/* Start DPDK: its arguments, and the packet buffers. [main] */
#include "start/eal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "pci/device.h"
#include "base/sysfs.h"
#include "port/nicd_client.h"
#include "port/packet_meta.h"

#define POOL "packets"

/*
 * The text of an error that is harmless. Linux's vfio refuses to disable interrupts only if
 * they are not enabled. The virtio driver of DPDK 22.11 disables them when it stops and
 * again when it closes, and for a member of a bond even before they were enabled.
 */
#define IRQ_OFF_ERROR "EAL: Error disabling MSI-X interrupts"

static void
dpdk_log_line(enum log_level level, const char *text, size_t n)
{
	if (n >= strlen(IRQ_OFF_ERROR) &&
	    memcmp(text, IRQ_OFF_ERROR, strlen(IRQ_OFF_ERROR)) == 0)
		log_debug("dpdk: message harmless=yes text=\"%.*s\"", (int)n, text);
	else
		log_write(level, "dpdk: message text=\"%.*s\"", (int)n, text);
}

/*
 * Write messages of DPDK to the log, so that they do not wait for standard error and appear
 * in `fpmctl show log`.
 */
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

/* --- hugepages that the predecessor still has ----------------------------------------- */

#define HUGE_DIR "/sys/kernel/mm/hugepages"

/*
 * Return the KiB of hugepages of a process, from its status file; 0 if that cannot be read.
 */
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

/* Return the KiB of free hugepages of all sizes, because DPDK takes any size. */
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
 * Interpret a memory error of DPDK, which returns EACCES if no hugepage is free, and ENOMEM
 * if too few are free. If the free pages and the pages of `old` together suffice, there is
 * room for one daemon but not for two (-ENOMEM).
 */
int
eal_memory_error(const struct config *conf, int rc, pid_t old)
{
	unsigned long long unused, others;

	if (!conf->hugepages || old == 0 || (rc != -EACCES && rc != -ENOMEM))
		return rc;
	unused = huge_free_kib() / 1024;
	others = huge_used_kib(old) / 1024;
	if (unused + others >= conf->memory_mib)
		return -ENOMEM;
	log_error("main: too few hugepages wanted_mib=%u free_mib=%llu after_end_mib=%llu "
		  "see=memory.size-mib",
		  conf->memory_mib, unused, unused + others);
	return -EACCES;
}

/* --- DPDK ----------------------------------------------------------------------------- */

#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1) /* admin-guide/mm/pagemap.rst of Linux */

/*
 * Return true if the kernel reports the physical addresses of this process's pages. In most
 * containers it does not.
 */
static bool
kernel_reports_addresses(void)
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

/*
 * Return the limit of the addresses of this process in MiB, if it does not permit DPDK's
 * memory, or 0. DPDK reserves addresses for more hugepages than it uses.
 */
static unsigned long long
address_space_short(const struct config *conf)
{
	size_t bytes =
		(size_t)(conf->hugepages ? RTE_MAX_MEM_MB_PER_LIST : conf->memory_mib)
		<< 20;
	struct rlimit lim;
	void *room;

	if (getrlimit(RLIMIT_AS, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY)
		return 0;
	room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	if (room == MAP_FAILED)
		return lim.rlim_cur >> 20;
	munmap(room, bytes);
	return 0;
}

/* Log that DPDK does not start. Return rc. */
static int
eal_failure_log(const struct config *conf, int rc)
{
	unsigned long long free_mib = huge_free_kib() / 1024,
			   limit_mib = address_space_short(conf);

	/* The text of EACCES, "Permission denied", would name another cause. */
	if (conf->hugepages && free_mib < conf->memory_mib)
		log_error("main: dpdk not started reason=too-few-hugepages free_mib=%llu "
			  "wanted_mib=%u see=hugepages,memory.size-mib",
			  free_mib, conf->memory_mib);
	/* DPDK's error may be "Invalid argument", because a library could not be mapped. */
	else if (limit_mib > 0)
		log_error(
			"main: dpdk not started reason=address-space-limit limit_mib=%llu "
			"see=\"ulimit -v, LimitAS of the unit, memory.size-mib\"",
			limit_mib);
	else if (conf->hugepages)
		log_error("main: dpdk not started error=\"%s\" wanted_mib=%u "
			  "see=hugepages,memory.size-mib",
			  rte_strerror(-rc), conf->memory_mib);
	else
		log_error("main: dpdk not started error=\"%s\"", rte_strerror(-rc));
	return rc;
}

static struct {
	bool active;
	char prefix[EAL_PREFIX_STRLEN];
	unsigned int client;
} joined;

void
eal_join(const char *prefix, unsigned int client)
{
	joined.active = true;
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
 * Return the main lcore. It is lcore 0 in a daemon that does not share DPDK; it runs on the
 * CPUs that cpus_layout() left, which DPDK's control threads inherit. If DPDK is shared,
 * lcore 0 belongs to fpm-nics.
 */
static unsigned int
lcore_main(void)
{
	return joined.active ? 1 + joined.client * (CONFIG_SHARED_CORES_MAX + 1) : 0;
}

static_assert(1 + NICD_CLIENTS * (CONFIG_SHARED_CORES_MAX + 1) <= RTE_MAX_LCORE,
	      "each has its own");

/*
 * Return the lcore of forwarder `i`, which is pinned to its CPU. The lcore of forwarder 0
 * follows the main lcore.
 */
unsigned int
eal_lcore(unsigned int i)
{
	return lcore_main() + 1 + i;
}

#define LCORES_STRLEN 2048

static void
lcores_text(const struct config *conf, char out[LCORES_STRLEN])
{
	cpu_set_t set;
	int n;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	n = snprintf(out, LCORES_STRLEN, "%u@(", lcore_main());
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

/* The arguments of rte_eal_init(). They begin empty, so that NULL follows the last one. */
struct eal_args {
	int n;
	const char *arg[24 + 2 * CONFIG_PLUGINS_MAX];
	char lcores[LCORES_STRLEN], mem[16];
};

static void
args_add(struct eal_args *args, const char *text)
{
	args->arg[args->n++] = text;
}

static void
args_add_common(struct eal_args *args, const struct config *conf)
{
	args_add(args, "fpm-dataplane");
	args_add(args, "--lcores");
	args_add(args, args->lcores);
	args_add(args, "--no-telemetry");
	args_add(args, "--log-level=*:error");
	/*
	 * Attach only configured devices: with an empty allow list the EAL probes all
	 * devices.
	 */
	args_add(args, "--allow=0000:00:00.0");
	/*
	 * Because of the allow list the EAL does not see that vfio devices have no IOMMU.
	 */
	if (conf->hugepages && device_vfio_is_unsafe("") && kernel_reports_addresses())
		args_add(args, "--iova-mode=pa");
	for (unsigned int i = 0; i < conf->n_plugin; i++) {
		args_add(args, "-d");
		args_add(args, conf->plugin[i]);
	}
}

/*
 * Add the amount of memory. A process that shares the memory of another process does not
 * need it.
 */
static void
args_add_memory(struct eal_args *args, const struct config *conf)
{
	snprintf(args->mem, sizeof(args->mem), "%u", conf->memory_mib);
	args_add(args, "-m");
	args_add(args, args->mem);
}

static int
eal_init(const struct config *conf, struct eal_args *args, pid_t old)
{
	dpdk_log_open();
	if (rte_eal_init(args->n, (char **)(uintptr_t)args->arg) < 0)
		return eal_failure_log(conf, eal_memory_error(conf, -rte_errno, old));
	return 0;
}

#define EMPTY_PREFIX "fpm-dataplane" /* prefix of a directory that no process uses */

int
eal_start(const struct config *conf, pid_t old)
{
	struct eal_args args = {.n = 0};
	int rc;

	lcores_text(conf, args.lcores);
	args_add_common(&args, conf);
	if (joined.active) {
		args_add(&args, "--proc-type=secondary");
		args_add(&args, "--file-prefix");
		args_add(&args, joined.prefix);
	} else {
		args_add_memory(&args, conf);
		args_add(&args, conf->hugepages ? "--in-memory" : "--no-huge");
	}
	if (!conf->hugepages) {
		args_add(&args, "--no-shconf");
		args_add(&args, "--file-prefix");
		args_add(&args, EMPTY_PREFIX);
	}
	rc = eal_init(conf, &args, old);
	/*
	 * Remove DPDK's runtime directory. Without shared configuration it stays empty, and
	 * the EAL does not remove it, not even if it fails. All daemons have the same
	 * directory, so the next start removes the directory that a killed daemon has left.
	 */
	if (!conf->hugepages)
		(void)rmdir(rte_eal_get_runtime_dir());
	return rc;
}

int
eal_start_nics(const struct config *conf)
{
	struct eal_args args = {.n = 0};

	lcores_text(NULL, args.lcores);
	args_add_common(&args, conf);
	args_add_memory(&args, conf);
	args_add(&args, "--proc-type=primary");
	args_add(&args, "--file-prefix");
	args_add(&args, eal_prefix());
	return eal_init(conf, &args, 0);
}

void
eal_end(struct rte_mempool *pool)
{
	if (!joined.active)
		rte_mempool_free(pool);
	for (unsigned int i = 0;
	     joined.active && pool != NULL && i <= CONFIG_SHARED_CORES_MAX; i++)
		rte_mempool_cache_flush(rte_mempool_default_cache(pool, lcore_main() + i),
					pool);
	rte_eal_cleanup();
}

static unsigned int
packet_room_bytes(const struct config *conf)
{
	unsigned int room = RTE_MBUF_DEFAULT_DATAROOM;

	for (unsigned int i = 0; i < conf->n_port; i++)
		if (conf->port[i].mtu_bytes + 64 > room)
			room = RTE_ALIGN(conf->port[i].mtu_bytes + 64, 64);
	return room + RTE_PKTMBUF_HEADROOM;
}

/* Extend a hash by the text and its NUL. */
static uint32_t
hash_extend(uint32_t sum, const char *text)
{
	return fnv1a(sum, text, strlen(text) + 1);
}

uint32_t
eal_hash(const struct config *conf)
{
	char numbers[64];
	uint32_t sum;

	snprintf(numbers, sizeof(numbers), "%u %u %u", conf->memory_mib,
		 packet_room_bytes(conf), (unsigned int)PACKET_PRIV_BYTES);
	sum = hash_extend(FNV1A_BEGIN, numbers);
	for (unsigned int i = 0; i < conf->n_plugin; i++)
		sum = hash_extend(sum, conf->plugin[i]);
	return sum;
}

struct rte_mempool *
eal_pool(const struct config *conf)
{
	unsigned int room = packet_room_bytes(conf), each, n;
	struct rte_mempool *pool;

	if (joined.active) {
		pool = rte_mempool_lookup(POOL);
		if (pool == NULL)
			log_error("main: packet buffers not found error=\"%s\"",
				  rte_strerror(rte_errno));
		return pool;
	}
	/* No buffer crosses a page, so without hugepages each buffer takes whole pages. */
	each = room + 256;
	if (!conf->hugepages)
		each = RTE_ALIGN(each, 4096);
	/* Packets get three quarters of the memory, queues and rings the rest. */
	n = (unsigned int)((uint64_t)conf->memory_mib * 1024 * 1024 * 3 / 4 / each);
	if (n > 262143)
		n = 262143;
	pool = rte_pktmbuf_pool_create(POOL, n, 256, PACKET_PRIV_BYTES, (uint16_t)room, 0);
	if (pool == NULL)
		log_error("main: packet buffers not created buffers=%u error=\"%s\" "
			  "size_mib=%u see=memory.size-mib",
			  n, rte_strerror(rte_errno), conf->memory_mib);
	return pool;
}
