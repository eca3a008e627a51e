/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Use another flavor of liburcu: mb, memb (membarrier if the kernel has it) or signal.
 * FLAVOR is its name, HEADER its header; liburcu allows one of them in a file. UNBLOCK is
 * the signal that the flavor sends to readers, if it sends one. The daemon blocks SIGUSR1
 * in all threads and has a handler of its own for it.
 */
#include HEADER

#include <signal.h>
#include <stdbool.h>

#include "instead.h"
#include "sync.h"

#define JOIN(a, b, c) a##b##c
#define NAME(f, what) JOIN(urcu_, f, what)
#define OF(what)      NAME(FLAVOR, what)

#ifdef UNBLOCK
static struct sigaction flavors; /* the handler of the flavor */

static __attribute__((constructor)) void
handler_keep(void)
{
	sigaction(UNBLOCK, NULL, &flavors);
}
#endif

/*
 * Let the signal reach the flavor's handler. old: out, the mask of blocked signals before.
 */
static void
unblock(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
#ifdef UNBLOCK
	sigaction(UNBLOCK, &flavors, NULL);
	sigaddset(&set, UNBLOCK);
#endif
	pthread_sigmask(SIG_UNBLOCK, &set, old);
}

void
urcu_qsbr_register_thread(void)
{
	unblock(NULL);
	OF(_register_thread)();
	OF(_read_lock)();
}

void
urcu_qsbr_unregister_thread(void)
{
	OF(_read_unlock)();
	OF(_unregister_thread)();
}

void
urcu_qsbr_quiescent_state(void)
{
	OF(_read_unlock)();
	OF(_read_lock)();
}

void
urcu_qsbr_thread_offline(void)
{
	OF(_read_unlock)();
}

void
urcu_qsbr_thread_online(void)
{
	OF(_read_lock)();
}

void
urcu_qsbr_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *))
{
	OF(_call_rcu)(head, func);
}

void
urcu_qsbr_barrier(void)
{
	OF(_barrier)();
}

void
urcu_qsbr_synchronize_rcu(void)
{
	bool online = OF(_read_ongoing)();

	if (online)
		OF(_read_unlock)();
	OF(_synchronize_rcu)();
	if (online)
		OF(_read_lock)();
}

/* The new thread is a reader as well, so unblock the signal for it. */
struct call_rcu_data *
urcu_qsbr_get_default_call_rcu_data(void)
{
	struct call_rcu_data *data;
	sigset_t old;

	unblock(&old);
	data = OF(_get_default_call_rcu_data)();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return data;
}

void
sync_publish(void)
{
	OF(_synchronize_rcu)();
}
