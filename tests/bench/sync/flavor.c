/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another flavour of liburcu: mb, memb (membarrier where the kernel has it) or signal. FLAVOR
 * is its name, HEADER its header: one a file is all that they allow.
 */
#include HEADER

#include "instead.h"
#include "sync.h"

#define JOIN(a, b, c) a##b##c
#define NAME(f, what) JOIN(urcu_, f, what)
#define OF(what)      NAME(FLAVOR, what)

void
urcu_qsbr_register_thread(void)
{
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
sync_publish(void)
{
	OF(_synchronize_rcu)();
}
