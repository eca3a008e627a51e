/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's side of fpm-nics. Only fpm-nics, the primary, may configure the devices. If
 * fpm-nics has died, the running daemon cannot repair this: the daemon exits as after a
 * crash, and the next daemon starts another fpm-nics.
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

enum channel { QUICK, SLOW, N_CHANNEL };

static struct {
	int sock[N_CHANNEL];
	pthread_mutex_t lock[N_CHANNEL];
	bool connected;
} nicd = {.sock = {-1, -1}, .lock = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}};

/* --- records -------------------------------------------------------------------------- */

int
nicd_send(int sock, const void *record, size_t len, int fd)
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
nicd_recv(int sock, void *record, size_t len, int *fd)
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

/* --- requests ------------------------------------------------------------------------- */

/* Exit, because the request gets no reply. The service manager treats this as a crash. */
static void __attribute__((noreturn)) nicd_lost(int rc)
{
	log_error("port: fpm-nics died error=\"%s\" effect=restart", strerror(-rc));
	_exit(1);
}

static void
nicd_ask_on(enum channel channel, struct nicd_request *q, int fd, struct nicd_reply *a)
{
	int rc;

	q->layout = NICD_LAYOUT;
	a->rc = -EPIPE;
	pthread_mutex_lock(&nicd.lock[channel]);
	rc = nicd_send(nicd.sock[channel], q, sizeof(*q), fd);
	if (rc == 0)
		rc = nicd_recv(nicd.sock[channel], a, sizeof(*a), NULL);
	pthread_mutex_unlock(&nicd.lock[channel]);
	if (rc < 0)
		nicd_lost(rc);
}

static int
nicd_ask(struct nicd_request *q, struct nicd_reply *a)
{
	nicd_ask_on(QUICK, q, -1, a);
	return a->rc;
}

/* Send a request that may take a driver long. On failure the reason is in `why`. */
static int
nicd_ask_slow(struct nicd_request *q, struct nicd_reply *a, char *why,
	      unsigned int why_size)
{
	nicd_ask_on(SLOW, q, -1, a);
	if (a->rc < 0)
		why_not(why, why_size, a->rc, "%s", a->why);
	return a->rc;
}

static struct nicd_request
request_for_port(enum nicd_op op, const struct port *port)
{
	return (struct nicd_request){.op = op, .port = *port};
}

static struct nicd_request
request_for_conf(enum nicd_op op, const struct port_conf *conf)
{
	return (struct nicd_request){.op = op, .conf = *conf};
}

/* --- beginning and end ---------------------------------------------------------------- */

static int
nicd_pair_new(bool first)
{
	struct nicd_request q = {.op = NICD_PAIR, .yes = first};
	struct nicd_reply a;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	nicd_ask_on(QUICK, &q, pair[1], &a);
	close(pair[1]);
	if (a.rc == 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

int
nicd_connect(int sock, struct nicd_reply *hello)
{
	struct nicd_request q = {.layout = NICD_LAYOUT, .op = NICD_HELLO};
	int rc = nicd_send(sock, &q, sizeof(q), -1);

	if (rc == 0)
		rc = nicd_recv(sock, hello, sizeof(*hello), NULL);
	if (rc == 0 && (hello->layout != NICD_LAYOUT ||
			strncmp(hello->dpdk, rte_version(), sizeof(hello->dpdk)) != 0))
		rc = -EPROTO;
	if (rc == 0)
		rc = hello->rc;
	nicd.sock[QUICK] = sock;
	if (rc == 0) {
		nicd.sock[SLOW] = nicd_pair_new(false);
		rc = nicd.sock[SLOW] < 0 ? -ENOMEM : 0;
	}
	nicd.connected = rc == 0;
	if (rc < 0)
		nicd_disconnect(false);
	return rc;
}

bool
nicd_is_connected(void)
{
	return nicd.connected;
}

int
nicd_pair(void)
{
	return nicd.connected ? nicd_pair_new(true) : -1;
}

void
nicd_disconnect(bool bye)
{
	struct nicd_request q = {.layout = NICD_LAYOUT, .op = NICD_BYE};

	if (bye && nicd.connected)
		(void)nicd_send(nicd.sock[SLOW], &q, sizeof(q), -1);
	for (unsigned int i = 0; i < N_CHANNEL; i++) {
		if (nicd.sock[i] >= 0)
			close(nicd.sock[i]);
		nicd.sock[i] = -1;
	}
	nicd.connected = false;
}

/* --- devices -------------------------------------------------------------------------- */

bool
nicd_has_open(const struct port_conf *conf)
{
	struct nicd_request q = request_for_conf(NICD_IS_OPEN, conf);
	struct nicd_reply a;

	return nicd_ask(&q, &a) == 0 && a.yes;
}

/*
 * Take over the fields of the device from fpm-nics. The daemon sets number, place, names,
 * MTU, TAP and packet buffers itself.
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
	port->kernel_ifindex = own.kernel_ifindex;
	port->tap = own.tap;
	port->pool = own.pool;
	port->n_socket = 0; /* the sockets are descriptors of fpm-nics */
	port->held = true;
}

int
nicd_open(struct port *port, const struct port_conf *conf, char *why, unsigned int why_size)
{
	struct nicd_request q = request_for_conf(NICD_OPEN, conf);
	char name[sizeof(q.conf.device)];
	struct nicd_reply a;
	uint16_t port_id;
	int rc = nicd_ask_slow(&q, &a, why, why_size);

	if (rc < 0)
		return rc;
	port_adopt(port, &a.port);
	/* The device is configured now. Attach it with the queues that it has. */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(conf->device, ","), conf->device);
	rc = attach_here(conf->device, name, &port_id, why, why_size);
	if (rc == 0 && port_id != port->port_id)
		rc = why_not(why, why_size, -EPROTO, "the device has another number here");
	return rc;
}

int
nicd_stats(const struct port *port, struct port_stats *st)
{
	struct nicd_request q = request_for_port(NICD_STATS, port);
	struct nicd_reply a;

	if (nicd_ask(&q, &a) == 0)
		*st = a.stats;
	return a.rc;
}

struct port_link
nicd_link(const struct port *port)
{
	struct nicd_request q = request_for_port(NICD_LINK, port);
	struct nicd_reply a;

	return nicd_ask(&q, &a) == 0 ? a.link : (struct port_link){0};
}

int
nicd_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	struct nicd_request q = request_for_port(NICD_SET_MTU, port);
	struct nicd_reply a;

	q.mtu_bytes = mtu_bytes;
	return nicd_ask(&q, &a);
}

static int
nicd_ask_mac(enum nicd_op op, const struct port *port, const uint8_t mac[6])
{
	struct nicd_request q = request_for_port(op, port);
	struct nicd_reply a;

	memcpy(q.mac, mac, sizeof(q.mac));
	return nicd_ask(&q, &a);
}

int
nicd_set_mac(const struct port *port, const uint8_t mac[6])
{
	return nicd_ask_mac(NICD_SET_MAC, port, mac);
}

int
nicd_add_mac(const struct port *port, const uint8_t mac[6])
{
	return nicd_ask_mac(NICD_ADD_MAC, port, mac);
}

int
nicd_set_link(const struct port *port, bool up)
{
	struct nicd_request q = request_for_port(NICD_SET_LINK, port);
	struct nicd_reply a;

	q.yes = up;
	return nicd_ask(&q, &a);
}

int
nicd_remove_mac(const struct port *port, const uint8_t mac[6])
{
	return nicd_ask_mac(NICD_REMOVE_MAC, port, mac);
}

bool
nicd_take_tags(const struct port *port)
{
	struct nicd_request q = request_for_port(NICD_TAKE_TAGS, port);
	struct nicd_reply a;

	return nicd_ask(&q, &a) == 0 && a.yes;
}
