/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answer `show hooks`: the programs of interfaces, and the sums of their counters. Read the
 * list of programs under RCU, and the counters of forwarders by relaxed loads. Runs in ui.
 */
#include "ui/internal.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "fib/hook_list.h"

static_assert(sizeof(((struct hook_sum *)0)->counter) / 8 == FPM_HOOK_COUNTERS,
	      "a sum for each counter");

struct hook_sum
hook_add_up(const struct fib_hook *hook)
{
	struct hook_sum sum = {0};

	for (unsigned int i = 0; i < FIB_HOOK_THREADS; i++) {
		const struct fib_hook_state *s = &hook->state[i];

		/*
		 * Read drops before packets, so that there are never more drops than
		 * packets.
		 */
		sum.dropped += counter_read(&s->dropped);
		sum.marked += counter_read(&s->marked);
		sum.moved += counter_read(&s->moved);
		sum.errors += counter_read(&s->errors);
		sum.packets += counter_read(&s->packets);
		for (unsigned int c = 0; c < FPM_HOOK_COUNTERS; c++)
			sum.counter[c] += counter_read(&s->hook.counter[c]);
	}
	return sum;
}

static json_t *
hook_row(const struct fib *fib, const struct fib_hook *hook)
{
	char dev[4 * sizeof(hook->dev)], file[4 * sizeof(hook->file)], hash[17];
	struct hook_sum sum = hook_add_up(hook);
	json_t *counters = json_array();

	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)hook->hash);
	for (unsigned int c = 0; c < FPM_HOOK_COUNTERS; c++)
		json_array_append_new(counters, json_integer((json_int_t)sum.counter[c]));
	return json_pack(
		"{s:s, s:s, s:s, s:i, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "dev",
		log_utf8(hook->dev, dev, sizeof(dev)), "file",
		log_escape_name(hook->file, file, sizeof(file)), "hash", hash,
		"instructions", (int)hook->n_instruction, "compiled", hook->run != NULL,
		"active", fib_iface_named(fib, hook->dev) != 0, "age_s",
		(json_int_t)((monotonic_ms() - hook->loaded_ms) / 1000), "packets",
		(json_int_t)sum.packets, "dropped", (json_int_t)sum.dropped, "marked",
		(json_int_t)sum.marked, "moved", (json_int_t)sum.moved, "errors",
		(json_int_t)sum.errors, "counters", counters);
}

void
show_hooks(const struct ui *ui, struct rows *out)
{
	const struct fib_hooks *hooks =
		ui->conf.fib == NULL ? NULL : fib_hooks(ui->conf.fib);

	for (unsigned int k = 0; hooks != NULL && k < hooks->n; k++)
		rows_put(out, hook_row(ui->conf.fib, hooks->hook[k]));
}
