/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tags: declarations that its files share. One process with one thread runs the
 * daemon's forwarding loop. The ports are functions (ports.c). Interfaces, VLANs, VRFs and
 * routes are made without a kernel (world.c). Rows take turns, and the receiving port ends
 * the turns.
 */
#ifndef TAGS_H
#define TAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/counters.h"
#include "fib/fib.h"
#include "fwd/fwd.h"

#define IN         1  /* the port that receives */
#define N_OUT      4  /* ports 2 to 5 send */
#define N_ADJ      16 /* next hops and egress VLANs: four on each port */
#define MANY       256
#define FEW_RULES  10
#define MANY_RULES 1000
#define N_VRRP     255   /* virtual routers of a link (RFC 5798), each has a macvlan */
#define N_TEN      10    /* routes of a VRF: 20.k.0.0/16 */
#define C_FIRST    100u  /* customer tag of the first ingress VLAN */
#define S_TAG      20u   /* service tag of all frames with two tags */
#define C_OUT      1000u /* tag of the first egress VLAN */
#define LABEL      1000u /* plus the egress port: the label of a frame */
#define VPN        2000u /* the label that leads to VRF 1 */
#define PUSHED     3000u /* plus the number of the label: labels that leave */
/*
 * HERE: the local address of all tunnels, 198.18.0.1. THERE plus the number of a next hop:
 * the far end of its tunnel. The IPv6 address of each has these 32 bits behind fc00::/16.
 */
#define HERE   0xc6120001u
#define THERE  0xc6130000u
#define URGENT 0xa000u /* priority of every other frame, as in a TCI */

/*
 * How a packet is in another one: not at all, with GRE without a key, directly in IPv4,
 * with VXLAN over IPv4, behind a list of one segment, behind IPv6 alone (one segment,
 * reduced), or behind a list of two segments, of which this router is the first.
 */
enum tunnelled { BARE, GRE, IPIP, VXLAN, SRV6, SRV6_RED, SRV6_TWO, N_TUNNELLED };

static inline bool
is_srv6(enum tunnelled how)
{
	return how >= SRV6;
}

#define OUTER_MAX 80u

static inline unsigned int
tunnel_bytes(enum tunnelled how)
{
	static const uint8_t bytes[N_TUNNELLED] = {0, 24, 20, 50, 64, 40, OUTER_MAX};

	return bytes[how];
}

/* A row of the results: the frames, and how they leave. */
struct row {
	const char *name;
	const char *base; /* the row that it is compared with; NULL: none */
	unsigned int n;   /* number of ingress interfaces */
	uint8_t tags_in, tags_out;
	bool mixed; /* true: another interface for each frame; false: for each burst */
	bool vlans; /* the port has VLANs, but frames have no tags */
	/*
	 * macvlans: the port has this number of them. to_macvlans: the frames have their
	 * MACs, and not that of the port.
	 */
	unsigned int macvlans;
	bool to_macvlans;
	bool ten; /* true: ten routes; false: all */
	bool vrf; /* each interface is in a VRF of its own */
	/*
	 * MPLS. label: frames have a label that leads to a neighbor; with `push` 0 it is
	 * removed. label_vrf: the label leads to VRF 1. push: number of labels of the
	 * frames that leave.
	 */
	bool label, label_vrf;
	uint8_t push;
	/*
	 * into: kind of encapsulation, with a tunnel, VTEP or segment for each next hop.
	 * out_of: kind of decapsulation, with one tunnel, VNI or end point, or if `mixed`,
	 * `n` tunnels or VNIs; with SRV6_TWO the end point (End) leaves the outer header.
	 */
	enum tunnelled into, out_of;
	bool unused; /* there are tunnels, VNIs, headends and end points, and no frame uses them */
	unsigned int rules;  /* of a filter; 0: none */
	bool ip_rules;       /* rules of policy routing concern other interfaces */
	const char *hook;    /* example of hook/examples that is loaded; NULL: none */
	bool hook_elsewhere; /* the program belongs to another interface */
	/*
	 * true: each frame has another source, from all routes; false: all have the same
	 * source
	 */
	bool sources;
	/* Enum fib_urpf; the route to each source leaves by the ingress interface. */
	uint8_t urpf;
	bool bfd;            /* the dataplane serves BFD */
	uint16_t session_ms; /* interval of N_SESSIONS sessions of BFD; 0: there are none */
	/* Frames go from port to port without forwarding: the cost of the ports. */
	bool no_walk;
};

extern const struct row rows[];
extern const unsigned int n_rows;
/* Return true if a row is measured: its name matches one of the patterns of the command. */
bool row_is_asked(const struct row *row);

/* --- world.c ------------------------------------------------------------------------ */

struct world {
	struct fib *fib;
	struct fib_copy tries;      /* the tries that forwarders read: all routes, or ten */
	struct ruleset *few, *many; /* FEW_RULES and MANY_RULES of a filter */
};

/*
 * Make interfaces and next hops; ten routes in a table of their own and in MANY VRFs; and
 * the routes of a file, "PREFIX PORT" in each line, ports from 1. Returns 0 or -errno.
 */
int world_make(struct world *w, const char *routes);

/* Make an interface; `port` carries its frames. */
struct fib_iface *world_iface(uint16_t ifidx, uint16_t port);

/* Set up everything for a row. Called between bursts, when no thread reads.        [fwd] */
void world_turn(struct world *w, const struct row *row);

/* Write the MAC of macvlan `k`. */
static inline void
world_mac(unsigned int k, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[6]){0, 0, 0x5e, 0, 1, (uint8_t)(1 + k)}, 6);
}

/* Let the frames of a port come in by interface `k` of the row from now on. */
void world_in(struct world *w, const struct row *row, unsigned int k);

/*
 * Return the next hop, 0 to N_ADJ - 1, of route `route` of the ten for frames of interface
 * `k`.
 */
unsigned int world_ten(const struct row *row, unsigned int route, unsigned int k);

/* Return the DPDK port, from 0, of a next hop. */
static inline unsigned int
world_port(unsigned int adj)
{
	return 1 + adj % N_OUT;
}

/* --- outer.c ------------------------------------------------------------------------ */

/*
 * Write the outer headers of a packet of `len` octets. The TTL is 64, and DF is set except
 * for VXLAN. The fields that differ for each packet are zero: identification, source port,
 * flow label.
 */
void outer_write(uint8_t *head, enum tunnelled how, uint32_t from, uint32_t to,
		 unsigned int len);

/* Offset of the number of the second segment of SRV6_TWO, from the outer header on. */
#define SECOND_AT 50u
/* Offset and number of the octets that depend on the source of an outer IPv4 header. */
#define FROM_AT    10u
#define FROM_BYTES 6u
/* Offset of the VNI of VXLAN, from the outer header on, and the first VNI. */
#define VNI_AT    32u
#define VNI_FIRST 5001u

/* Return true if the outer headers at `ip`, of a packet of `len` octets, are right. */
bool outer_right(enum tunnelled how, const uint8_t *ip, unsigned int port,
		 unsigned int len);

/*
 * Make the objects that VXLAN and SRv6 need: MANY interfaces from `svi` on, the neighbors
 * behind the first, headends, an end point, and their routes. Group `far` plus the number
 * of a next hop leads to it; group `own` is free.
 */
int outer_make(struct fib *fib, uint16_t svi, uint32_t far, uint32_t own);

/* Let all routes lead to VTEPs or segments, if the row wants it. Called by world_turn(). */
void outer_turn(struct fib *fib, const struct row *row);

/* --- filters.c ---------------------------------------------------------------------- */

/*
 * Make a ruleset of `n` rules that match no frame. Returns NULL after a message on stderr
 * if it fails.
 */
struct ruleset *filter_make(unsigned int n);

/* --- hooks.c ------------------------------------------------------------------------ */

/*
 * Load the programs of all rows, for the interface `dev`. Returns 0, or -1 after a message
 * on stderr.
 */
int hooks_make(const char *dev);

/* Put the program of a row in force, or none. */
void hooks_turn(struct fib *fib, const struct row *row);

/* --- sessions.c --------------------------------------------------------------------- */

#define N_SESSIONS 1000 /* of BFD */

/*
 * Create the table of the sessions, their pace and the frames of their peers. `head`: the
 * Ethernet header of these frames. Returns 0 or -ENOMEM.
 */
int sessions_make(struct rte_mempool *pool, const uint8_t head[14]);

/* Let the sessions of a row begin. Called as world_turn() is. */
void sessions_turn(struct fwd_conf *conf, const struct row *row);

/*
 * Write the packets of peers that are due into the first of these frames. Returns how many.
 */
unsigned int sessions_receive(struct rte_mbuf **m, unsigned int n);

/* Return true if a frame that is sent is a packet of our sessions. */
bool sessions_sent(const struct rte_mbuf *m);

/*
 * Return true if sessions that ran have sent and received packets, and the forwarder has
 * counted all received ones.
 */
bool sessions_right(const struct counters *c);

/* --- ports.c ------------------------------------------------------------------------ */

#define N_TURN 4 /* turns of a row in a round: base, row, row, base */

/*
 * Make ports 0 (receives) to N_OUT. `frames` is a file of struct frame4. Returns 0 or
 * -errno.
 *
 * conf     of the forwarder; a row with BFD changes it
 * rounds   number of rounds; each row has its turns of `turn_us` in each
 * cycles   out: cycles a packet; N_TURN for each row, n_rows for each round, in order
 * stop     set after the last turn, to stop the forwarder
 */
int ports_make(struct world *w, struct fwd_conf *conf, const char *frames,
	       unsigned int rounds, unsigned int turn_us, double *cycles,
	       atomic_bool *stop);

/* Begin the first turn, when `conf` is complete. */
void ports_begin(void);

/* Return the number of wrong frames in the first round, which is not measured. */
uint64_t ports_wrong(void);

#endif
