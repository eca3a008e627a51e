/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread a connection, so that a device that takes its time holds up nobody but who asked for
 * it; devices themselves are asked one thing at a time (port/nic.h). When the last connection
 * ends without a word, the daemon has crashed: what it had in its hands, a lock of DPDK's shared
 * memory perhaps, stays as it was, so nothing is asked of DPDK any more.
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
#include "port/packet.h"
#include "start/privileges.h"

struct open_nic {
	bool is;
	unsigned int wanted; /* bits: by which clients */
	struct port_conf conf;
	struct port port;
};

struct line { /* to a daemon */
	int sock;
	unsigned int client;
};

static struct {
	pthread_mutex_t lock; /* of all below */
	struct open_nic nic[PORT_SLOTS];
	unsigned int n_line;
	unsigned int lines_of[NICS_CLIENTS];
	struct rte_mempool *pool;
	uint32_t began_with;
} serve = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- devices ------------------------------------------------------------------------------- */

static struct open_nic *
nic_of(const char *device)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++)
		if (serve.nic[i].is && strcmp(serve.nic[i].conf.device, device) == 0)
			return &serve.nic[i];
	return NULL;
}

/* Could it be as it is wanted without being opened anew? How the port is called does not matter. */
static bool
nic_can_be(const struct open_nic *nic, const struct port_conf *c)
{
	const struct port_conf *is = &nic->conf;
	const struct port *port = &nic->port;

	return is->n_rxq == c->n_rxq && is->n_txq == c->n_txq &&
	       !port_options_differ(port, &is->options, &c->options) &&
	       (is->mtu_bytes == c->mtu_bytes || (c->mtu_bytes <= port->mtu_max_bytes &&
						  !port_mtu_is_beyond(port, c->mtu_bytes)));
}

/* The last daemon may have given it another MTU and MAC, as its TAP had. */
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
nic_reopen(const struct port_conf *c, struct nics_reply *a)
{
	struct port_conf conf = *c;
	unsigned int at = 0;
	struct port port = {.tap = {.fd = -1}};
	uint64_t begin = monotonic_ms();
	int rc;

	while (at < PORT_SLOTS && serve.nic[at].is)
		at++;
	if (at == PORT_SLOTS)
		return why_not(a->why, sizeof(a->why), -ENOSPC, "too many devices");
	conf.shared = true;
	conf.interrupts = false; /* their handlers would be this process's */
	snprintf(port.name, sizeof(port.name), "%s", c->tap);
	snprintf(port.device, sizeof(port.device), "%s", c->device);
	rc = nic_open(&port, &conf, serve.pool, a->why, sizeof(a->why));
	if (rc < 0)
		return rc;
	log_info("nics: device opened device=%s took_ms=%llu", c->device,
		 (unsigned long long)(monotonic_ms() - begin));
	serve.nic[at] = (struct open_nic){.is = true, .conf = *c, .port = port};
	a->port = port;
	return 0;
}

static int
nic_serve_open(const struct port_conf *c, struct nics_reply *a)
{
	struct open_nic *nic = nic_of(c->device);

	if (nic != NULL && nic_can_be(nic, c)) {
		nic_reset(&nic->port, c);
		a->port = nic->port;
		return 0;
	}
	if (nic != NULL) {
		nic_close(&nic->port);
		nic->is = false;
	}
	return nic_reopen(c, a);
}

/* A daemon has ended, and with it what it wanted and no other one does. */
static void
nics_release(unsigned int client)
{
	for (unsigned int i = 0; i < PORT_SLOTS; i++) {
		struct open_nic *nic = &serve.nic[i];

		nic->wanted &= ~(1u << client);
		if (nic->is && nic->wanted == 0) {
			log_info("nics: device let go device=%s", nic->conf.device);
			nic_close(&nic->port);
			nic->is = false;
		}
	}
}

/* --- answers ------------------------------------------------------------------------------- */

static void
hello_answer(const struct line *line, struct nics_reply *a)
{
	a->pid = getpid();
	a->client = line->client;
	a->began_with = serve.began_with;
	snprintf(a->dpdk, sizeof(a->dpdk), "%s", rte_version());
	snprintf(a->prefix, sizeof(a->prefix), "%s", eal_prefix());
}

/* What there is of devices is for one at a time. */
static int
nic_open_or_ask(const struct line *line, const struct nics_request *q, struct nics_reply *a)
{
	struct open_nic *nic;
	int rc;

	pthread_mutex_lock(&serve.lock);
	rc = q->op == NICS_OPEN ? nic_serve_open(&q->conf, a) : 0;
	nic = nic_of(q->conf.device);
	a->yes = nic != NULL && nic_can_be(nic, &q->conf);
	if (a->yes)
		nic->wanted |= 1u << line->client;
	pthread_mutex_unlock(&serve.lock);
	return rc;
}

static int
request_answer(const struct line *line, struct nics_request *q, struct nics_reply *a)
{
	struct port *port = &q->port;

	port->held = false; /* of us it is asked here */
	port->pool = serve.pool;
	port->n_socket = 0;
	if (q->op >= NICS_STATS && !rte_eth_dev_is_valid_port(port->port_id))
		return -ENODEV;
	switch (q->op) {
	case NICS_HELLO:
		hello_answer(line, a);
		return 0;
	case NICS_KEPT:
	case NICS_OPEN:
		return nic_open_or_ask(line, q, a);
	case NICS_STATS:
		return port_stats(port, &a->stats);
	case NICS_LINK_UP:
		a->yes = port_link_up(port);
		return 0;
	case NICS_SET_MTU:
		return port_set_mtu(port, q->mtu_bytes);
	case NICS_SET_MAC:
		return port_set_mac(port, q->mac);
	case NICS_ADD_MAC:
		return port_add_mac(port, q->mac);
	case NICS_TAKE_TAGS:
		a->yes = port_take_tags(port);
		return 0;
	default:
		return -EPROTO;
	}
}

/* --- the end ------------------------------------------------------------------------------- */

static bool
file_is_ours(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 && strncmp(name + n, "map_", 4) == 0;
}

/* Of hugepages that others were to map, too, DPDK leaves the names. */
static void
pages_remove(const char *prefix)
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

/* The EAL's own files. */
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

/* DPDK's primary has its configuration locked while it lives. */
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

/* What processes have left that were killed: beside our directory. */
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
		pages_remove(e->d_name);
		snprintf(slash, sizeof(path) - (size_t)(slash - path), "/%.200s",
			 e->d_name);
		directory_remove(path);
	}
	if (dir != NULL)
		closedir(dir);
}

static void __attribute__((noreturn)) end(bool crashed)
{
	for (unsigned int i = 0; i < PORT_SLOTS && !crashed; i++)
		if (serve.nic[i].is)
			nic_close(&serve.nic[i].port);
	pages_remove(eal_prefix());
	directory_remove(rte_eal_get_runtime_dir());
	if (crashed)
		log_warn("nics: the daemon is gone without a word, NICs are let go");
	else
		log_info("nics: devices closed");
	_exit(0);
}

/* --- connections --------------------------------------------------------------------------- */

/* Names of rings, from memzones, that end as those of a client do. */
struct rings {
	const char *suffix;
	char name[32][RTE_RING_NAMESIZE];
	unsigned int n;
};

static void
ring_look(const struct rte_memzone *zone, void *ctx)
{
	size_t begin = strlen(RTE_RING_MZ_PREFIX), len = strlen(zone->name);
	struct rings *rings = ctx;

	if (rings->n < 32 && len > begin + 2 &&
	    strncmp(zone->name, RTE_RING_MZ_PREFIX, begin) == 0 &&
	    strcmp(zone->name + len - strlen(rings->suffix), rings->suffix) == 0)
		snprintf(rings->name[rings->n++], RTE_RING_NAMESIZE, "%s",
			 zone->name + begin);
}

/* One that never got as far as to end had rings in the common memory: a successor given up. */
static void
rings_free(unsigned int client)
{
	char suffix[RINGS_SUFFIX_STRLEN];
	struct rings rings = {.suffix = rings_suffix(client, suffix)};
	unsigned int freed;

	do {
		rings.n = freed = 0;
		rte_memzone_walk(ring_look, &rings);
		for (unsigned int i = 0; i < rings.n; i++) {
			struct rte_ring *ring = rte_ring_lookup(rings.name[i]);

			freed += ring != NULL;
			ring_end(ring);
		}
	} while (freed > 0);
}

static void
line_end(struct line *line)
{
	pthread_mutex_lock(&serve.lock);
	if (--serve.n_line == 0)
		end(true);
	if (serve.lines_of[line->client] == 1) {
		rings_free(line->client);
		nics_release(line->client);
	}
	serve.lines_of[line->client]--;
	pthread_mutex_unlock(&serve.lock);
	close(line->sock);
	free(line);
}

static int line_begin(int sock, unsigned int client);

/* One more: of the daemon that brings it, or the first one of its successor. */
static int
line_more(const struct line *line, bool first, int fd)
{
	unsigned int client = line->client;
	int rc = fd < 0 ? -EPROTO : 0;

	pthread_mutex_lock(&serve.lock);
	if (first)
		for (client = 0; client < NICS_CLIENTS && serve.lines_of[client] > 0;)
			client++;
	if (rc == 0)
		rc = client == NICS_CLIENTS ? -EBUSY : line_begin(fd, client);
	pthread_mutex_unlock(&serve.lock);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc;
}

static void *
line_main(void *arg)
{
	struct line *line = arg;
	struct nics_request q;
	struct nics_reply a;
	int fd, rc;

	while ((rc = nics_recv(line->sock, &q, sizeof(q), &fd)) != -EPIPE) {
		memset(&a, 0, sizeof(a));
		a.layout = NICS_LAYOUT;
		if (rc == 0 && q.layout != NICS_LAYOUT)
			rc = -EPROTO;
		if (rc == 0 && q.op == NICS_BYE) {
			pthread_mutex_lock(&serve.lock);
			end(false);
		}
		if (rc == 0)
			rc = q.op == NICS_PAIR ? line_more(line, q.yes, fd)
					       : request_answer(line, &q, &a);
		else if (fd >= 0)
			close(fd);
		a.rc = rc;
		if (nics_send(line->sock, &a, sizeof(a), -1) < 0)
			break;
	}
	line_end(line);
	return NULL;
}

/* [with lock] */
static int
line_begin(int sock, unsigned int client)
{
	struct line *line = malloc(sizeof(*line));
	pthread_t thread;
	int rc = line == NULL ? ENOMEM : 0;

	if (rc == 0) {
		*line = (struct line){sock, client};
		rc = pthread_create(&thread, NULL, line_main, line);
	}
	if (rc != 0) {
		free(line);
		return -rc;
	}
	pthread_detach(thread);
	serve.n_line++;
	serve.lines_of[client]++;
	return 0;
}

/* It ends when its daemons have, not before: not by a signal to all of a terminal or a unit. */
int
nics_serve(const struct config *conf)
{
	int sock = sd_take(NICS_FD), rc;
	sigset_t all;

	prctl(PR_SET_NAME, "fpm-nics");
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (sock < 0) {
		fputs("fpm-dataplane: --nics is for the daemon itself to say\n", stderr);
		return SD_EXIT_CONFIG;
	}
	rc = privilege_drop();
	if (rc == 0)
		rc = eal_start_nics(conf);
	if (rc < 0)
		return rc == -ENOMEM || rc == -EACCES ? SD_EXIT_ROOM : 1;
	leftovers_remove();
	serve.began_with = eal_hash(conf);
	serve.pool = eal_pool(conf);
	if (serve.pool == NULL)
		end(true);
	pthread_mutex_lock(&serve.lock);
	rc = line_begin(sock, 0);
	pthread_mutex_unlock(&serve.lock);
	if (rc < 0) {
		log_error("nics: no thread error=%s", strerror(-rc));
		end(true);
	}
	for (;;)
		pause();
}
