/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: the declarations that the files of the sflow thread share. All functions are for
 * [sflow], unless stated otherwise.
 */
#ifndef SFLOW_IMPL_H
#define SFLOW_IMPL_H

#include <jansson.h>

#include "base/counters.h"
#include "base/msg.h"
#include "base/policer.h"
#include "base/sflow_status.h"
#include "port/watch.h"
#include "sflow/encode.h"
#include "sflow/sflow.h"

#define SAMPLES_A_SECOND  4000u           /* samples a second; counters are not limited */
#define DISCARDS_A_SECOND 1000u           /* dropped packets that are reported a second */
#define BATCH_MAX         (MASKS_MAX / 2) /* a packet has a source and a destination */

/* A sample that waits for rib's answer. */
struct item {
	struct sflow_packet packet; /* batch_answered() sets packet.header */
	uint8_t header[SFLOW_HEADER_MAX];
	unsigned int port; /* ifidx of the source */
	bool discard;
};

/* Records that wait for their masks. masks.of[2 * i] and [2 * i + 1] belong to item[i]. */
struct batch {
	struct msg_masks masks; /* first: msg_free() gets its address */
	unsigned int n;
	struct item item[BATCH_MAX];
};

/* A port as a source of samples. */
struct source {
	uint32_t sequence, discard_sequence;
	/*
	 * Numbers of records not sent, because they are above the limit, rib is slow, or
	 * no address of the agent is known.
	 */
	uint64_t over, discards_over;
	uint64_t base; /* packets that the port had received when sFlow was turned on */
	uint32_t psample_drops; /* lost samples that psample.sequence already includes */
};

/* The counter samples of an interface: their number since its counters began at 0. */
struct counted {
	uint32_t ifindex, opening; /* of the last sample; opening 0: no port */
	uint32_t sequence;
};

/* A limit of samples; the clock is monotonic_ns(). */
struct limit {
	struct bucket_rate rate;
	_Atomic uint64_t full_at;
};

struct collector {
	struct sflow_collector conf;
	int fd;    /* connected; -1: none */
	int error; /* errno of the last failure; 0: none, or it works again */
	bool logged_failing;
	uint64_t datagrams, errors; /* errors: datagrams not sent, failed sockets */
	uint64_t sent_ms;  /* monotonic: first datagram since the last failure; 0: none */
	uint64_t retry_ms; /* monotonic: next attempt to open the socket */
};

/* The kernel's psample, for programs such as hsflowd. */
struct psample {
	int fd;    /* of generic netlink; -1: none */
	int error; /* errno of the last attempt; 0: samples leave */
	/* number of the family; family and mcast are valid if error is 0 */
	uint16_t family;
	uint32_t mcast;   /* multicast group, from 1 */
	uint64_t look_ms; /* monotonic: the next request for these numbers */
	uint32_t sequence;
	uint64_t samples, errors;
};

struct sflow {
	struct sflow_setup setup;
	struct sflow_conf now;
	struct worker *w;
	ev_timer tick;   /* rings; runs while sFlow is on */
	ev_timer second; /* counters, collectors; runs while sFlow is on */
	uint32_t epoch;  /* of the last struct watch_set for the forwarders */
	uint64_t began_ms;
	uint32_t sequence; /* of datagrams */
	struct limit samples, discards;
	unsigned int n_asked;              /* batches that rib has not answered */
	uint32_t n_seconds;                /* since sFlow was turned on */
	struct counted counted[IFIDX_MAX]; /* by ifidx */
	struct source source[PORT_MAX];    /* by ifidx of the port; 0: unknown */
	struct collector collector[SFLOW_COLLECTORS_MAX];
	struct psample psample;
	struct ipaddr agent;
	uint8_t agent_family; /* 0: not known yet, nothing is sent */
	struct datagram out;
};

/* --- sample.c --- */
/* Set the limits of samples and dropped packets. */
void limits_set(struct sflow *s);
/*
 * Take the records of all rings, and ask rib for the masks of the samples. `now_ns` is
 * monotonic_ns().
 */
void records_take(struct sflow *s, uint64_t now_ns);
/* Drop the records of all rings: they are older than the time when sFlow was turned on. */
void records_drop(struct sflow *s);
/* Send the packets of a batch that rib has answered. Frees it. */
void batch_answered(struct sflow *s, struct batch *b);
/* Return the number of packets that a port has received since sFlow was turned on. */
uint64_t source_pool(const struct sflow *s, unsigned int port);
/*
 * Return the number of samples (with `discards`: dropped packets) of a port that were not
 * sent.
 */
uint64_t source_lost(const struct sflow *s, unsigned int port, bool discards);

/* --- counters.c --- */
/* Send the counters of the interfaces whose turn is in this second. */
void counters_send(struct sflow *s);

/* --- send.c --- */
/* Close all sockets and use the collectors in s->now. */
void collectors_reset(struct sflow *s);
/* Open the sockets that are not open, at most once a second each. */
void collectors_open(struct sflow *s);
/* Note errors since the last call, and log collectors that fail or work again. */
void collectors_look(struct sflow *s);
/* Append a sample `arg` to the datagram with `add`, a datagram_add_...() of encode.h. */
#define out_add(s, add, arg)                         \
	do {                                         \
		if (!add(&(s)->out, (arg))) {        \
			out_flush(s);                \
			(void)add(&(s)->out, (arg)); \
		}                                    \
	} while (0)
/* Send the datagram, if it has samples, and begin the next one. */
void out_flush(struct sflow *s);

/* --- psample.c --- */
#define PSAMPLE_BYTES (SFLOW_HEADER_MAX + 128u)
/* Use the group in s->now. */
void psample_reset(struct sflow *s);
/* Open the socket, and request the numbers of the family, at most once in ten seconds. */
void psample_look(struct sflow *s);
/* Return the reason why no samples leave, or NULL.                        [any thread] */
const char *psample_error(const struct psample *ps);
/*
 * Take the numbers of the family from `len` octets that the kernel answered to
 * CTRL_CMD_GETFAMILY. Returns 0, -ENOENT without the module, -ERANGE if no program can send to
 * the group, -EPROTO, or another error of the kernel.                     [any thread]
 */
int psample_take_family(struct psample *ps, const void *answer, size_t len);
/*
 * Write the message of a sample. Returns its length in octets.                 [any thread]
 */
size_t psample_write(uint8_t buf[PSAMPLE_BYTES], const struct psample *ps, uint32_t group,
		     const struct sflow_packet *p);
/* Send a sample of `source`, if the kernel takes samples. */
void psample_send(struct sflow *s, const struct sflow_packet *p, struct source *source);

static inline bool
psample_is_open(const struct sflow *s)
{
	return s->psample.fd >= 0 && s->psample.error == 0;
}

/* --- reason.c --- */
/* Return the value of sFlow for a reason of drops.                         [any thread] */
uint32_t sflow_reason(enum reason reason);

/* --- rows.c --- */
void sflow_rows(const struct sflow *s, json_t *rows);

#define STATUS_ADD(field, n) \
	atomic_fetch_add_explicit(&sflow_status.field, (n), memory_order_relaxed)
#define STATUS_SET(field, value) \
	atomic_store_explicit(&sflow_status.field, (value), memory_order_relaxed)

#endif
