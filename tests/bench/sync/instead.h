/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declare the functions of liburcu's QSBR that the daemon calls, for files that replace
 * them.
 */
#ifndef INSTEAD_H
#define INSTEAD_H

struct rcu_head;
struct call_rcu_data;

void urcu_qsbr_register_thread(void);
void urcu_qsbr_unregister_thread(void);
void urcu_qsbr_quiescent_state(void);
void urcu_qsbr_thread_offline(void);
void urcu_qsbr_thread_online(void);
void urcu_qsbr_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *));
void urcu_qsbr_barrier(void);
void urcu_qsbr_synchronize_rcu(void); /* a reader may call it, online or not */
struct call_rcu_data *urcu_qsbr_get_default_call_rcu_data(void);

#endif
