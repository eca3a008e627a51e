/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serve the requests of daemons. Each connection has a thread, so that a slow device delays
 * only the connection that requested it. A device has one request at a time (port/nic.h).
 * When the last connection ends without NICD_BYE, the daemon has crashed. It may have held
 * a lock in DPDK's shared memory, so no function of DPDK is called after that.
 */
#include "nicd/nicd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>
#include <rte_ring.h>
#include <rte_version.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "base/errmsg.h"
#include "start/eal.h"
#include "port/nic.h"
#include "port/nicd_client.h"
#include "port/packet_meta.h"
#include "start/privileges.h"

struct open_nic {
	bool in_use;
	unsigned int wanted; /* bit mask of the clients that use it */
	struct port_conf conf;
	struct port port;
};

struct conn { /* a connection to a daemon */
	int sock;
	unsigned int client;
};

static struct {
	pthread_mutex_t lock; /* protects all fields below */
	struct open_nic nic[PORT_SLOTS];
	unsigned int n_conn;
	unsigned int n_conn_of[NICD_CLIENTS];
	struct rte_mempool *pool;
	uint32_t began_with;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- devices -------------------------------------------------------------------------- */

static struct open_nic *
nic_find(const char *device)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (server.nic[i].in_use && strcmp(server.nic[i].conf.device, device) == 0)
			return &server.nic[i];
	return NULL;
}

/*
 * Return true if the open device can serve `c` without being opened again. The port's name
 * is ignored.
 */
static bool
nic_fits(const struct open_nic *nic, const struct port_conf *c)
{
	const struct port_conf *is = &nic->conf;
	const struct port *port = &nic->port;

	return is->n_rxq == c->n_rxq && is->n_txq == c->n_txq &&
	       !port_options_differ(port, &is->options, &c->options) &&
	       (is->mtu_bytes == c->mtu_bytes || (c->mtu_bytes <= port->mtu_max_bytes &&
						  !port_mtu_is_beyond(port, c->mtu_bytes)));
}

/*
 * Set the MTU and read the MAC again, because the previous daemon may have given the device
 * the MTU and the MAC of its TAP.
 */
static void
nic_reset(struct port *port, const struct port_conf *c)
{
	struct rte_ether_addr mac;

	if (port_set_mtu(port, c->mtu_bytes) < 0)
		log_debug("nics: mtu not set device=%s", c->device);
	pthread_mutex_lock(&nic_control[port->port_id]);
	if (rte_eth_macaddr_get(port->port_id, &mac) == 0)
		memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	pthread_mutex_unlock(&nic_control[port->port_id]);
}

static int
nic_open_new(const struct port_conf *c, struct nicd_reply *a)
{
	struct port_conf conf = *c;
	unsigned int at = 0;
	struct port port = {.tap = {.fd = -1}};
	uint64_t begin = monotonic_ms();
	int rc;

	while (at < PORT_SLOTS && server.nic[at].in_use)
		at++;
	if (at == PORT_SLOTS)
		return why_not(a->why, sizeof(a->why), -ENOSPC, "too many devices");
	conf.shared = true;
	conf.interrupts = false; /* interrupt handlers would run in this process */
	snprintf(port.name, sizeof(port.name), "%s", c->tap);
	snprintf(port.device, sizeof(port.device), "%s", c->device);
	rc = nic_open(&port, &conf, server.pool, a->why, sizeof(a->why));
	if (rc < 0)
		return rc;
	log_info("nics: device opened device=%s took_ms=%llu", c->device,
		 (unsigned long long)(monotonic_ms() - begin));
	server.nic[at] = (struct open_nic){.in_use = true, .conf = *c, .port = port};
	a->port = port;
	return 0;
}

static int
nic_open_or_reuse(const struct port_conf *c, struct nicd_reply *a)
{
	struct open_nic *nic = nic_find(c->device);

	if (nic != NULL && nic_fits(nic, c)) {
		nic_reset(&nic->port, c);
		a->port = nic->port;
		return 0;
	}
	if (nic != NULL) {
		nic_close(&nic->port);
		nic->in_use = false;
	}
	return nic_open_new(c, a);
}

/* Close the devices that only this client used. */
static void
nics_close_unwanted(unsigned int client)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		struct open_nic *nic = &server.nic[i];

		nic->wanted &= ~(1u << client);
		if (nic->in_use && nic->wanted == 0) {
			log_info("nics: device closed device=%s", nic->conf.device);
			nic_close(&nic->port);
			nic->in_use = false;
		}
	}
}

/* --- answers -------------------------------------------------------------------------- */

static void
hello_answer(const struct conn *conn, struct nicd_reply *a)
{
	a->pid = getpid();
	a->client = conn->client;
	a->began_with = server.began_with;
	snprintf(a->dpdk, sizeof(a->dpdk), "%s", rte_version());
	snprintf(a->prefix, sizeof(a->prefix), "%s", eal_prefix());
}

/*
 * Open a device (NICD_OPEN) or check if it is open (NICD_IS_OPEN). The lock of the server
 * admits one such request at a time.
 */
static int
nic_open_or_check(const struct conn *conn, const struct nicd_request *q,
		  struct nicd_reply *a)
{
	struct open_nic *nic;
	int rc;

	pthread_mutex_lock(&server.lock);
	rc = q->op == NICD_OPEN ? nic_open_or_reuse(&q->conf, a) : 0;
	nic = nic_find(q->conf.device);
	a->yes = nic != NULL && nic_fits(nic, &q->conf);
	if (a->yes)
		nic->wanted |= 1u << conn->client;
	pthread_mutex_unlock(&server.lock);
	return rc;
}

static int
request_answer(const struct conn *conn, struct nicd_request *q, struct nicd_reply *a)
{
	struct port *port = &q->port;

	port->held = false; /* in this process port functions use the device directly */
	port->pool = server.pool;
	port->n_socket = 0;
	if (q->op >= NICD_STATS && !rte_eth_dev_is_valid_port(port->port_id))
		return -ENODEV;
	switch (q->op) {
	case NICD_HELLO:
		hello_answer(conn, a);
		return 0;
	case NICD_IS_OPEN:
	case NICD_OPEN:
		return nic_open_or_check(conn, q, a);
	case NICD_STATS:
		return port_stats(port, &a->stats);
	case NICD_LINK:
		a->link = port_link(port);
		return 0;
	case NICD_SET_MTU:
		return port_set_mtu(port, q->mtu_bytes);
	case NICD_SET_MAC:
		return port_set_mac(port, q->mac);
	case NICD_ADD_MAC:
		return port_add_mac(port, q->mac);
	case NICD_SET_LINK:
		return port_set_link(port, q->yes);
	case NICD_REMOVE_MAC:
		port_remove_mac(port, q->mac);
		return 0;
	case NICD_TAKE_TAGS:
		a->yes = port_take_tags(port);
		return 0;
	default:
		return -EPROTO;
	}
}

/* --- the end -------------------------------------------------------------------------- */

static bool
file_is_ours(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 && strncmp(name + n, "map_", 4) == 0;
}

/*
 * Remove the hugepage files of the process with this prefix of EAL. DPDK leaves the files
 * that other processes may map.
 */
static void
hugepage_files_remove(const char *prefix)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");

	for (struct mntent *m; mounts != NULL && (m = getmntent(mounts)) != NULL;) {
		DIR *dir =
			strcmp(m->mnt_type, "hugetlbfs") == 0 ? opendir(m->mnt_dir) : NULL;

		for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
			if (file_is_ours(e->d_name, prefix))
				(void)unlinkat(dirfd(dir), e->d_name, 0);
		if (dir != NULL)
			closedir(dir);
	}
	if (mounts != NULL)
		endmntent(mounts);
}

/* Remove a directory with files of the EAL. */
static void
directory_remove(const char *path)
{
	DIR *dir = opendir(path);

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	if (dir != NULL)
		closedir(dir);
	(void)rmdir(path);
}

/*
 * Return true if the primary is dead. A primary of DPDK locks its `config` file while it
 * runs.
 */
static bool
primary_is_dead(int parent, const char *name)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[300];
	bool dead;
	int fd;

	snprintf(path, sizeof(path), "%s/config", name);
	fd = openat(parent, path, O_RDWR | O_CLOEXEC);
	dead = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
	if (fd >= 0)
		close(fd);
	return dead;
}

/*
 * Remove the files of killed processes. Their directories are next to the directory of this
 * process.
 */
static void
leftovers_remove(void)
{
	char path[PATH_MAX], *slash;
	unsigned int more;
	DIR *dir;
	int pid;

	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	slash = strrchr(path, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		if (sscanf(e->d_name, EAL_PREFIX, &pid, &more) != 2 ||
		    strcmp(e->d_name, eal_prefix()) == 0 ||
		    !primary_is_dead(dirfd(dir), e->d_name))
			continue;
		hugepage_files_remove(e->d_name);
		snprintf(slash, sizeof(path) - (size_t)(slash - path), "/%.200s",
			 e->d_name);
		directory_remove(path);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Remove the files of this process. */
static void
server_files_remove(void)
{
	hugepage_files_remove(eal_prefix());
	directory_remove(rte_eal_get_runtime_dir());
}

static void __attribute__((noreturn)) server_exit(bool crashed)
{
	for (unsigned int i = 0; i < PORT_SLOTS && !crashed; i++)
		if (server.nic[i].in_use)
			nic_close(&server.nic[i].port);
	server_files_remove();
	if (crashed)
		log_warn("nics: devices closed reason=daemon-crashed");
	else
		log_info("nics: devices closed");
	_exit(0);
}

/* --- connections ---------------------------------------------------------------------- */

/* Names of the rings of a client, taken from the memzones by their suffix. */
struct rings {
	const char *suffix;
	char name[32][RTE_RING_NAMESIZE];
	unsigned int n;
};

static void
ring_collect(const struct rte_memzone *zone, void *ctx)
{
	size_t begin = strlen(RTE_RING_MZ_PREFIX), len = strlen(zone->name);
	struct rings *rings = ctx;

	if (rings->n < 32 && len > begin + 2 &&
	    strncmp(zone->name, RTE_RING_MZ_PREFIX, begin) == 0 &&
	    strcmp(zone->name + len - strlen(rings->suffix), rings->suffix) == 0)
		snprintf(rings->name[rings->n++], RTE_RING_NAMESIZE, "%s",
			 zone->name + begin);
}

/* Free the rings that a client, such as a killed successor, left in shared memory. */
static void
rings_free(unsigned int client)
{
	char suffix[RINGS_SUFFIX_STRLEN];
	struct rings rings = {.suffix = rings_suffix(client, suffix)};
	unsigned int freed;

	do {
		rings.n = freed = 0;
		rte_memzone_walk(ring_collect, &rings);
		for (unsigned int i = 0; i < rings.n; i++) {
			struct rte_ring *ring = rte_ring_lookup(rings.name[i]);

			freed += ring != NULL;
			ring_end(ring);
		}
	} while (freed > 0);
}

static void
conn_end(struct conn *conn)
{
	pthread_mutex_lock(&server.lock);
	if (--server.n_conn == 0)
		server_exit(true);
	if (server.n_conn_of[conn->client] == 1) {
		rings_free(conn->client);
		nics_close_unwanted(conn->client);
	}
	server.n_conn_of[conn->client]--;
	pthread_mutex_unlock(&server.lock);
	close(conn->sock);
	free(conn);
}

static int conn_begin(int sock, unsigned int client);

/*
 * Begin a connection on `fd`: another connection of this daemon, or with `first` the first
 * connection of its successor.
 */
static int
conn_add(const struct conn *conn, bool first, int fd)
{
	unsigned int client = conn->client;
	int rc = fd < 0 ? -EPROTO : 0;

	pthread_mutex_lock(&server.lock);
	if (first)
		for (client = 0; client < NICD_CLIENTS && server.n_conn_of[client] > 0;)
			client++;
	if (rc == 0)
		rc = client == NICD_CLIENTS ? -EBUSY : conn_begin(fd, client);
	pthread_mutex_unlock(&server.lock);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc;
}

static void *
conn_main(void *arg)
{
	struct conn *conn = arg;
	struct nicd_request q;
	struct nicd_reply a;
	int fd, rc;

	while ((rc = nicd_recv(conn->sock, &q, sizeof(q), &fd)) != -EPIPE) {
		memset(&a, 0, sizeof(a));
		a.layout = NICD_LAYOUT;
		if (rc == 0 && q.layout != NICD_LAYOUT)
			rc = -EPROTO;
		if (rc == 0 && q.op == NICD_BYE) {
			pthread_mutex_lock(&server.lock);
			server_exit(false);
		}
		if (rc == 0)
			rc = q.op == NICD_PAIR ? conn_add(conn, q.yes, fd)
					       : request_answer(conn, &q, &a);
		else if (fd >= 0)
			close(fd);
		a.rc = rc;
		if (nicd_send(conn->sock, &a, sizeof(a), -1) < 0)
			break;
	}
	conn_end(conn);
	return NULL;
}

/* Begin a connection. The caller holds the lock. */
static int
conn_begin(int sock, unsigned int client)
{
	struct conn *conn = malloc(sizeof(*conn));
	pthread_t thread;
	int rc = conn == NULL ? ENOMEM : 0;

	if (rc == 0) {
		*conn = (struct conn){sock, client};
		rc = pthread_create(&thread, NULL, conn_main, conn);
	}
	if (rc != 0) {
		free(conn);
		return -rc;
	}
	pthread_detach(thread);
	server.n_conn++;
	server.n_conn_of[client]++;
	return 0;
}

/*
 * Run fpm-nics. It exits only when its daemons have ended. It blocks all signals, because a
 * terminal or a service manager may send a signal to all processes.
 */
int
nicd_serve(const struct config *conf)
{
	int sock = sd_take(NICD_FD), rc;
	sigset_t all;

	prctl(PR_SET_NAME, "fpm-nics");
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (sock < 0) {
		fputs("fpm-dataplane: only the daemon itself may use --nics\n", stderr);
		return SD_EXIT_CONFIG;
	}
	rc = privilege_drop(false);
	if (rc == 0)
		rc = eal_start_nics(conf);
	if (rc < 0)
		return rc == -ENOMEM || rc == -EACCES ? SD_EXIT_ROOM : 1;
	leftovers_remove();
	server.began_with = eal_hash(conf);
	server.pool = eal_pool(conf);
	if (server.pool == NULL) {
		server_files_remove();
		return SD_EXIT_ROOM;
	}
	pthread_mutex_lock(&server.lock);
	rc = conn_begin(sock, 0);
	pthread_mutex_unlock(&server.lock);
	if (rc < 0) {
		log_error("nics: thread not started error=\"%s\"", strerror(-rc));
		server_files_remove();
		return 1;
	}
	for (;;)
		pause();
}
