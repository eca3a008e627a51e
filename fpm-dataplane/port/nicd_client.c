/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's side of fpm-nics. Only fpm-nics, the primary, may configure the devices. If
 * it has died, the daemon cannot repair this while it runs: it exits as after a crash, and
 * the next daemon starts another fpm-nics.
 */
#include "port/nicd_client.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_version.h>

#include "base/log.h"
#include "base/errmsg.h"
#include "port/attach.h"

enum way { QUICK, SLOW, WAYS };

static struct {
	int sock[WAYS];
	pthread_mutex_t lock[WAYS];
	bool kept;
} with = {.sock = {-1, -1}, .lock = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}};

/* --- records ------------------------------------------------------------------------------- */

int
nics_send(int sock, const void *record, size_t len, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.room = {0}};
	struct iovec iov = {(void *)(uintptr_t)record, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int
nics_recv(int sock, void *record, size_t len, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {record, len};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	const struct cmsghdr *c;
	int got = -1;
	ssize_t n;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&got, CMSG_DATA(c), sizeof(got));
	if (fd != NULL)
		*fd = got;
	else if (got >= 0)
		close(got);
	if (n <= 0)
		return -EPIPE;
	return (size_t)n == len && (m.msg_flags & MSG_TRUNC) == 0 ? 0 : -EPROTO;
}

/* --- requests ------------------------------------------------------------------------------ */

/* Exit, because the request gets no reply. The service manager treats this as a crash. */
static void __attribute__((noreturn)) nics_end_without(int rc)
{
	log_error("port: the process that keeps the NICs has died error=%s; the daemon "
		  "begins "
		  "anew",
		  strerror(-rc));
	_exit(1);
}

static void
nics_ask_by(enum way way, struct nics_request *q, int fd, struct nics_reply *a)
{
	int rc;

	q->layout = NICS_LAYOUT;
	a->rc = -EPIPE;
	pthread_mutex_lock(&with.lock[way]);
	rc = nics_send(with.sock[way], q, sizeof(*q), fd);
	if (rc == 0)
		rc = nics_recv(with.sock[way], a, sizeof(*a), NULL);
	pthread_mutex_unlock(&with.lock[way]);
	if (rc < 0)
		nics_end_without(rc);
}

static int
nics_ask(struct nics_request *q, struct nics_reply *a)
{
	nics_ask_by(QUICK, q, -1, a);
	return a->rc;
}

/* Send a request that may take a driver long. On failure the reason is in `why`. */
static int
nics_ask_slow(struct nics_request *q, struct nics_reply *a, char *why,
	      unsigned int why_size)
{
	nics_ask_by(SLOW, q, -1, a);
	if (a->rc < 0)
		why_not(why, why_size, a->rc, "%s", a->why);
	return a->rc;
}

static struct nics_request
request_about(enum nics_op op, const struct port *port)
{
	return (struct nics_request){.op = op, .port = *port};
}

static struct nics_request
request_wanting(enum nics_op op, const struct port_conf *conf)
{
	return (struct nics_request){.op = op, .conf = *conf};
}

/* --- beginning and end --------------------------------------------------------------------- */

static int
nics_pair_more(bool first)
{
	struct nics_request q = {.op = NICS_PAIR, .yes = first};
	struct nics_reply a;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	nics_ask_by(QUICK, &q, pair[1], &a);
	close(pair[1]);
	if (a.rc == 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

int
nics_meet(int sock, struct nics_reply *hello)
{
	struct nics_request q = {.layout = NICS_LAYOUT, .op = NICS_HELLO};
	int rc = nics_send(sock, &q, sizeof(q), -1);

	if (rc == 0)
		rc = nics_recv(sock, hello, sizeof(*hello), NULL);
	if (rc == 0 && (hello->layout != NICS_LAYOUT ||
			strncmp(hello->dpdk, rte_version(), sizeof(hello->dpdk)) != 0))
		rc = -EPROTO;
	if (rc == 0)
		rc = hello->rc;
	with.sock[QUICK] = sock;
	if (rc == 0) {
		with.sock[SLOW] = nics_pair_more(false);
		rc = with.sock[SLOW] < 0 ? -ENOMEM : 0;
	}
	with.kept = rc == 0;
	if (rc < 0)
		nics_part(false);
	return rc;
}

bool
nics_are_kept(void)
{
	return with.kept;
}

int
nics_pair(void)
{
	return with.kept ? nics_pair_more(true) : -1;
}

void
nics_part(bool bye)
{
	struct nics_request q = {.layout = NICS_LAYOUT, .op = NICS_BYE};

	if (bye && with.kept)
		(void)nics_send(with.sock[SLOW], &q, sizeof(q), -1);
	for (unsigned int i = 0; i < WAYS; i++) {
		if (with.sock[i] >= 0)
			close(with.sock[i]);
		with.sock[i] = -1;
	}
	with.kept = false;
}

/* --- devices ------------------------------------------------------------------------------- */

bool
nics_has(const struct port_conf *conf)
{
	struct nics_request q = request_wanting(NICS_KEPT, conf);
	struct nics_reply a;

	return nics_ask(&q, &a) == 0 && a.yes;
}

/*
 * Take over the fields of the device from fpm-nics. Number, place, names, MTU, TAP and
 * packet buffers are the daemon's own.
 */
static void
port_adopt(struct port *port, const struct port *it)
{
	const struct port own = *port;

	*port = *it;
	port->ifidx = own.ifidx;
	port->place = own.place;
	port->mtu_bytes = own.mtu_bytes;
	memcpy(port->name, own.name, sizeof(port->name));
	memcpy(port->device, own.device, sizeof(port->device));
	memcpy(port->kernel_if, own.kernel_if, sizeof(port->kernel_if));
	port->tap = own.tap;
	port->pool = own.pool;
	port->n_socket = 0; /* the sockets are descriptors of fpm-nics */
	port->held = true;
}

int
nics_open(struct port *port, const struct port_conf *conf, char *why, unsigned int why_size)
{
	struct nics_request q = request_wanting(NICS_OPEN, conf);
	char name[sizeof(q.conf.device)];
	struct nics_reply a;
	uint16_t port_id;
	int rc = nics_ask_slow(&q, &a, why, why_size);

	if (rc < 0)
		return rc;
	port_adopt(port, &a.port);
	/* The device is configured now. Attach it with the queues that it has. */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(conf->device, ","), conf->device);
	rc = attach_here(conf->device, name, &port_id, why, why_size);
	if (rc == 0 && port_id != port->port_id)
		rc = why_not(why, why_size, -EPROTO, "device has another number here");
	return rc;
}

int
nics_stats(const struct port *port, struct port_stats *st)
{
	struct nics_request q = request_about(NICS_STATS, port);
	struct nics_reply a;

	if (nics_ask(&q, &a) == 0)
		*st = a.stats;
	return a.rc;
}

bool
nics_link_up(const struct port *port)
{
	struct nics_request q = request_about(NICS_LINK_UP, port);
	struct nics_reply a;

	return nics_ask(&q, &a) == 0 && a.yes;
}

int
nics_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	struct nics_request q = request_about(NICS_SET_MTU, port);
	struct nics_reply a;

	q.mtu_bytes = mtu_bytes;
	return nics_ask(&q, &a);
}

static int
nics_ask_mac(enum nics_op op, const struct port *port, const uint8_t mac[6])
{
	struct nics_request q = request_about(op, port);
	struct nics_reply a;

	memcpy(q.mac, mac, sizeof(q.mac));
	return nics_ask(&q, &a);
}

int
nics_set_mac(const struct port *port, const uint8_t mac[6])
{
	return nics_ask_mac(NICS_SET_MAC, port, mac);
}

int
nics_add_mac(const struct port *port, const uint8_t mac[6])
{
	return nics_ask_mac(NICS_ADD_MAC, port, mac);
}

bool
nics_take_tags(const struct port *port)
{
	struct nics_request q = request_about(NICS_TAKE_TAGS, port);
	struct nics_reply a;

	return nics_ask(&q, &a) == 0 && a.yes;
}
