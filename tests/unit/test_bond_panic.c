/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for LACP, checked with DPDK's own bond of two devices that are up at once. If
 * bond_room() accepts, the bond starts. If it refuses, the bond would end the program or
 * come close to that. Each try runs in a process of its own.
 *
 * link: fpm-dataplane/base/ fpm-dataplane/port/bond.c fpm-dataplane/port/attach.c
 * link: fpm-dataplane/port/claim.c
 * link: fpm-dataplane/pci/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "eal.h"
#include "patience.h"
#include "port/bond.h"
#include "port/dpdk_compat.h"

#define N_DESC 1024
/*
 * bond_room() may refuse although there is so much more memory than needed, for each
 * member.
 */
#define SLACK_KIB 96

enum ended { FITS, REFUSED, PANIC, REFUSED_AND_PANIC, BROKEN };

/* Allocate all memory of DPDK except for `kib` KiB. */
static void
leave(size_t kib)
{
	struct rte_malloc_socket_stats st;

	for (size_t piece = 64 << 20; piece >= 4096; piece /= 2) {
		do
			rte_malloc_get_socket_stats(0, &st);
		while (st.heap_freesz_bytes > (kib << 10) + piece &&
		       rte_malloc(NULL, piece, 0) != NULL);
	}
}

/* Make a bond of two members, ready to start. Return its port number, or -1. */
static int
bond_make(void)
{
	struct rte_eth_conf conf = {0};
	struct rte_mempool *pool;
	uint16_t member;
	int bond;

	if (eal_begin("test_bond", "net_null0,no-rx=1", "net_null1,no-rx=1") < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("packets", 1023, 0, 0, 2176, 0);
	bond = rte_eth_bond_create("net_bonding0", BONDING_MODE_8023AD, 0);
	for (unsigned int i = 0; i < 2 && bond >= 0; i++) {
		char name[16];

		snprintf(name, sizeof(name), "net_null%u", i);
		if (rte_eth_dev_get_port_by_name(name, &member) < 0 ||
		    rte_eth_bond_member_add((uint16_t)bond, member) < 0)
			return -1;
	}
	if (bond < 0 || rte_eth_dev_configure((uint16_t)bond, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup((uint16_t)bond, 0, N_DESC, 0, NULL, pool) < 0 ||
	    rte_eth_tx_queue_setup((uint16_t)bond, 0, N_DESC, 0, NULL) < 0)
		return -1;
	return bond;
}

/*
 * Be the child: report whether bond_room() refused, start the bond anyway, and exit with 0
 * or BROKEN. DPDK may end the child before that.
 */
static void
start_with(size_t kib, int say)
{
	struct rlimit none = {0};
	int bond, null = open("/dev/null", O_WRONLY);
	char why[256], said;

	setrlimit(RLIMIT_CORE, &none);
	dup2(null, STDERR_FILENO);
	dup2(null, STDOUT_FILENO);
	bond = bond_make();
	if (bond < 0)
		_exit(BROKEN);
	leave(kib);
	said = (char)(bond_room(N_DESC, 0, why, sizeof(why)) < 0);
	if (write(say, &said, 1) != 1 || rte_eth_dev_start((uint16_t)bond) < 0)
		_exit(BROKEN);
	/*
	 * DPDK has seen links that were up at the start by now, or its alarm will see them.
	 * For each link it creates the ring for sending last, and a ring can be looked up
	 * only when it is complete. The pool of packets can be looked up before it has
	 * memory.
	 */
	for (unsigned int i = 0; i < PATIENCE_MS / 10; i++) {
		if (rte_ring_lookup(DPDK_BOND_MEMBER "_1_tx") != NULL &&
		    rte_ring_lookup(DPDK_BOND_MEMBER "_0_tx") != NULL)
			_exit(0);
		usleep(10000);
	}
	_exit(BROKEN);
}

static enum ended
tried(size_t kib)
{
	int end[2], status;
	char said = 0;
	pid_t pid;

	assert_int_equal(pipe(end), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		start_with(kib, end[1]);
	close(end[1]);
	if (read(end[0], &said, 1) != 1)
		said = BROKEN;
	close(end[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (said == BROKEN || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
		return BROKEN;
	if (WIFSIGNALED(status))
		return said ? REFUSED_AND_PANIC : PANIC;
	return said ? REFUSED : FITS;
}

/* --- tests ---------------------------------------------------------------------------- */

static void
a_bond_that_fits_starts_and_one_that_would_end_dpdk_is_refused(void **state)
{
	size_t low = 256, high = 16384;

	assert_int_equal(tried(high), FITS);
	assert_int_equal(tried(low), REFUSED_AND_PANIC);
	/* Find the size at which bond_room() begins to refuse. */
	while (high - low > 16) {
		size_t kib = (low + high) / 2;
		enum ended ended = tried(kib);

		assert_int_not_equal(ended, PANIC);
		assert_int_not_equal(ended, BROKEN);
		if (ended == FITS)
			high = kib;
		else
			low = kib;
	}
	/* The refusal is necessary: with a little less memory DPDK ends the program. */
	assert_int_equal(tried(low - 2 * SLACK_KIB), REFUSED_AND_PANIC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_bond_that_fits_starts_and_one_that_would_end_dpdk_is_refused),
	};

	return cmocka_run_group_tests_name("bond_panic", tests, NULL, NULL);
}
