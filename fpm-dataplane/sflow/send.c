/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send: the sockets of the collectors. A socket is connected, so that the kernel reports
 * ICMP errors. After other errors the socket is opened again, because addresses and routes
 * may have changed. No call waits. A datagram that cannot be sent is counted.      [sflow]
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "sflow/impl.h"
#include "tap-bridge/netns.h"

#define RETRY_MS 1000u
/* Time after a datagram during which no error comes, until a collector works again. */
#define QUIET_MS 10000u

static void
collector_fail(struct collector *c, int error)
{

	c->error = error;
	c->sent_ms = 0;
	c->errors++;
	STATUS_ADD(send_errors, 1);
	if (c->logged_failing)
		return;
	c->logged_failing = true;
	STATUS_ADD(failing, 1);
	log_warn("sflow: collector fails collector=%s error=\"%s\"", c->conf.name,
		 strerror(error));
}

static void
collector_close(struct collector *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Connect a new socket. Returns 0 or -errno. */
static int
collector_connect(const struct sflow *s, struct collector *c, int fd)
{
	const struct sockaddr_storage *source = &s->now.source;
	int least = 1; /* nothing is read: the kernel keeps as little as it can */

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	if (c->conf.vrf[0] != '\0' &&
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, c->conf.vrf,
		       (socklen_t)strlen(c->conf.vrf) + 1) < 0)
		return -errno;
	if (source->ss_family == c->conf.addr.ss_family &&
	    bind(fd, (const struct sockaddr *)source, sockaddr_bytes(source)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&c->conf.addr,
		    sockaddr_bytes(&c->conf.addr)) < 0)
		return -errno;
	return 0;
}

static void
collector_open(const struct sflow *s, struct collector *c)
{
	int rc;

	c->retry_ms = monotonic_ms() + RETRY_MS;
	c->fd = netns_socket(s->setup.netns, c->conf.addr.ss_family,
			     SOCK_DGRAM | SOCK_NONBLOCK, 0);
	rc = c->fd < 0 ? c->fd : collector_connect(s, c, c->fd);
	if (rc == 0)
		return;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	collector_fail(c, -rc);
}

/* Take the agent's address from `ss`. Returns false if it has none. */
static bool
agent_take(struct sflow *s, const struct sockaddr_storage *ss)
{
	s->agent = (struct ipaddr){0};
	if (ss->ss_family == AF_INET)
		memcpy(s->agent.octet, &((const struct sockaddr_in *)ss)->sin_addr, 4);
	else if (ss->ss_family == AF_INET6)
		memcpy(s->agent.octet, &((const struct sockaddr_in6 *)ss)->sin6_addr, 16);
	s->agent_family = ss->ss_family == AF_INET ? 4 : ss->ss_family == AF_INET6 ? 6 : 0;
	return s->agent_family != 0;
}

/*
 * Choose the agent's address: as configured, or the source of the datagrams, or the address
 * from which the kernel sends to the first collector that has a socket. The address stays
 * until the next reload.
 */
static void
agent_choose(struct sflow *s)
{
	if (s->agent_family != 0 || s->now.n_collector == 0)
		return;
	if (!agent_take(s, &s->now.agent) && !agent_take(s, &s->now.source)) {
		for (unsigned int i = 0; i < s->now.n_collector; i++) {
			struct sockaddr_storage own = {0};
			socklen_t n = sizeof(own);

			if (s->collector[i].fd >= 0 &&
			    getsockname(s->collector[i].fd, (struct sockaddr *)&own, &n) ==
				    0 &&
			    agent_take(s, &own))
				break;
		}
	}
	if (s->agent_family != 0)
		datagram_begin(&s->out, &s->agent, s->agent_family);
}

void
collectors_reset(struct sflow *s)
{
	for (unsigned int i = 0; i < SFLOW_COLLECTORS_MAX; i++) {
		collector_close(&s->collector[i]);
		s->collector[i] = (struct collector){.fd = -1};
		if (i < s->now.n_collector)
			s->collector[i].conf = s->now.collector[i];
	}
	s->agent_family = 0;
	STATUS_SET(collectors, s->now.n_collector);
	STATUS_SET(failing, 0);
	collectors_open(s);
}

void
collectors_open(struct sflow *s)
{
	uint64_t now_ms = monotonic_ms();

	for (unsigned int i = 0; i < s->now.n_collector; i++)
		if (s->collector[i].fd < 0 && now_ms >= s->collector[i].retry_ms)
			collector_open(s, &s->collector[i]);
	agent_choose(s);
}

void
collectors_look(struct sflow *s)
{
	uint64_t now_ms = monotonic_ms();

	for (unsigned int i = 0; i < s->now.n_collector; i++) {
		struct collector *c = &s->collector[i];
		socklen_t n = sizeof(int);
		int error = 0;

		if (c->fd < 0)
			continue;
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error != 0)
			collector_fail(c, error);
		if (c->error == 0 || c->sent_ms == 0 ||
		    now_ms - c->sent_ms < haste_ms(QUIET_MS))
			continue;
		c->error = 0;
		c->logged_failing = false;
		atomic_fetch_sub_explicit(&sflow_status.failing, 1, memory_order_relaxed);
		log_info("sflow: collector works again collector=%s", c->conf.name);
	}
}

static void
collector_send(struct collector *c, const struct datagram *d)
{
	if (c->fd < 0) { /* c->error has the reason of the last attempt to open it */
		collector_fail(c, c->error);
		return;
	}
	if (send(c->fd, d->octets, d->len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
		if (c->error != 0 && c->sent_ms == 0)
			c->sent_ms = monotonic_ms();
		c->datagrams++;
		STATUS_ADD(datagrams, 1);
		return;
	}
	/* ECONNREFUSED is about an earlier datagram; the socket stays usable. */
	if (errno != ECONNREFUSED && errno != EAGAIN && errno != ENOBUFS) {
		collector_fail(c, errno);
		collector_close(c);
		return;
	}
	collector_fail(c, errno);
}

void
out_flush(struct sflow *s)
{
	struct datagram *d = &s->out;

	if (d->n == 0)
		return;
	datagram_end(d, ++s->sequence, (uint32_t)(monotonic_ms() - s->began_ms));
	for (unsigned int i = 0; i < s->now.n_collector; i++)
		collector_send(&s->collector[i], d);
	datagram_begin(d, &s->agent, s->agent_family);
}
