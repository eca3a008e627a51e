/* SPDX-License-Identifier: BSD-3-Clause */
/* sflow_conf: the settings of sFlow, as the file has them. */
#ifndef BASE_SFLOW_CONF_H
#define BASE_SFLOW_CONF_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>

#define SFLOW_COLLECTORS_MAX 8
#define SFLOW_RATE_MAX       1000000u
#define SFLOW_HEADER_MIN     64u
#define SFLOW_HEADER_MAX     512u
#define SFLOW_PSAMPLE_MAX    0x7fffffffu

struct sflow_collector {
	struct sockaddr_storage addr; /* with its port */
	char name[56];                /* "192.0.2.9:6343", for messages */
	char vrf[IFNAMSIZ];           /* device of the VRF that leads to it; "": none */
};

/* Addresses have the family AF_UNSPEC if the daemon selects them. */
struct sflow_conf {
	struct sflow_collector collector[SFLOW_COLLECTORS_MAX];
	unsigned int n_collector;
	unsigned int rate;              /* one packet in `rate` is sampled */
	unsigned int header_bytes;      /* octets of a frame in a sample, at most */
	unsigned int counters_s;        /* seconds between counters; 0: none are sent */
	bool drops;                     /* dropped packets are reported to collectors */
	unsigned int psample;           /* group of the kernel's psample; 0: none */
	struct sockaddr_storage agent;  /* the address that names this router */
	struct sockaddr_storage source; /* the source of the datagrams */
};

static inline bool
sflow_is_on(const struct sflow_conf *conf)
{
	return conf->n_collector != 0 || conf->psample != 0;
}

#endif
