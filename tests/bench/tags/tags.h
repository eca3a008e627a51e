/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tags: what its files share. One process and one thread: the daemon's own forwarding
 * loop between ports that are functions here (ports.c), interfaces, VLANs, VRFs and routes
 * made up without a kernel (world.c). Rows take turns; the port that receives says when.
 */
#ifndef TAGS_H
#define TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/fib.h"
#include "fwd/fwd.h"

#define IN      1  /* the port that receives */
#define N_OUT   4  /* ports 2 to 5 send */
#define N_ADJ   16 /* next hops, and VLANs to leave by: four a port */
#define MANY    256
#define N_TEN   10      /* routes of a VRF: 20.k.0.0/16 */
#define C_FIRST 100u    /* customer tag of the first VLAN to come in by */
#define S_TAG   20u     /* service tag of all that have two */
#define C_OUT   1000u   /* tag of the first VLAN to leave by */
#define URGENT  0xa000u /* priority of every other frame, as a TCI has it */

/* What comes, and how it leaves. */
struct row {
	const char *name;
	const char *base; /* the row that it is held against; NULL: none */
	unsigned int n;   /* interfaces that frames come in by */
	uint8_t tags_in, tags_out;
	bool mixed;   /* another interface each frame, else each burst */
	bool vlans;   /* the port has VLANs, though nothing has a tag */
	bool ten;     /* ten routes, else all */
	bool vrf;     /* a VRF an interface */
	bool no_walk; /* frames go from port to port: what the ports cost */
};

extern const struct row rows[];
extern const unsigned int n_rows;

/* --- world.c ------------------------------------------------------------------------ */

struct world {
	struct fib *fib;
	struct fib_copy tries; /* that forwarders read: all routes, or ten */
};

/*
 * Interfaces and next hops; ten routes in a table of their own and in MANY VRFs; and the
 * routes of a file, "PREFIX PORT" a line, ports from 1. Returns 0 or -errno.
 */
int world_make(struct world *w, const char *routes);

/* As a row wants it. Between bursts: nobody reads.                              [fwd] */
void world_turn(struct world *w, const struct row *row);

/* A port's frames come in by interface `k` of the row from now on. */
void world_in(struct world *w, const struct row *row, unsigned int k);

/* Next hop, 0 to N_ADJ - 1, of the ten's route `route`, come in by `k`. */
unsigned int world_ten(const struct row *row, unsigned int route, unsigned int k);

/* DPDK port, from 0, that a next hop is on. */
static inline unsigned int
world_port(unsigned int adj)
{
	return 1 + adj % N_OUT;
}

/* --- ports.c ------------------------------------------------------------------------ */

#define N_TURN 4 /* of a row in a round: the one it is held against, it, it, that one */

/*
 * Ports 0 (receives) to N_OUT. Destinations are a file's, of struct frame4. 0 or -errno.
 *
 * rounds   how often each row has its turns of `turn_us`
 * cycles   out: a packet's; N_TURN of a row, n_rows of a round, one round after the other.
 *          The forwarder is told to stop behind the last
 */
int ports_make(struct world *w, const char *frames, unsigned int rounds,
	       unsigned int turn_us, double *cycles, atomic_bool *stop);

/* Frames that left as they must not, in a round that is not measured. */
uint64_t ports_wrong(void);

#endif
