/* SPDX-License-Identifier: BSD-3-Clause */
/* Write metrics, and append the metrics of services that can be off. [ui] */
#include "ui/metrics.h"

#include <stdatomic.h>
#include <string.h>

#include "base/bfd_status.h"
#include "base/filter_status.h"
#include "base/sflow_status.h"
#include "fib/fib.h"
#include "fib/hook_list.h"

void
metric_head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP " P "%s %s\n# TYPE " P "%s %s\n", name, help, name, type);
}

const char *
label_escape(const char *value, char out[64])
{
	size_t o = 0;

	for (; *value != '\0' && o < 60; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			out[o++] = '\\';
		out[o++] = *value == '\n' ? 'n' : *value;
	}
	out[o] = '\0';
	return out;
}

void
gauge_put(struct buf *b, const char *name, const char *help, uint64_t value)
{
	metric_head(b, name, "gauge", help);
	buf_printf(b, P "%s %llu\n", name, (unsigned long long)value);
}

void
counted_put(struct buf *b, const struct counted *total, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (total[i].help != NULL)
			metric_head(b, total[i].name, "counter", total[i].help);
		buf_printf(b, P "%s%s %llu\n", total[i].name, total[i].label,
			   (unsigned long long)total[i].value);
	}
}

void
seconds_put(struct buf *b, const char *name, const char *help, uint64_t ms)
{
	metric_head(b, name, "gauge", help);
	buf_printf(b, P "%s %llu.%03llu\n", name, (unsigned long long)ms / 1000,
		   (unsigned long long)ms % 1000);
}

/* Append the metrics of the filter, if the configuration names a table. */
void
filter_put(struct buf *b)
{
#define FILTER(field) atomic_load_explicit(&filter_status.field, memory_order_relaxed)
	const struct counted total[] = {
		{"filter_refusals_total", "", "Rulesets that were refused.",
		 FILTER(refusals)},
		{"filter_logged_packets_total", "",
		 "Packets that rules with log wrote to the log.", FILTER(logged)},
		{"filter_log_lost_packets_total", "",
		 "Packets that rules with log did not write, because there were too many.",
		 FILTER(log_lost)},
	};

	if (!FILTER(configured))
		return;
	gauge_put(b, "filter_in_force",
		  "1: the present ruleset of the kernel is in force; 0: it is refused, or "
		  "the kernel has no ruleset (fpmctl show filter).",
		  FILTER(in_force));
	gauge_put(b, "filter_generation", "Generation of the ruleset in force.",
		  FILTER(generation));
	gauge_put(b, "filter_rules", "Rules of the ruleset in force.", FILTER(rules));
	counted_put(b, total, sizeof(total) / sizeof(total[0]));
#undef FILTER
}

/* Append the metrics of flowspec, if the configuration names its table. */
void
flowspec_put(const struct ui *ui, struct buf *b)
{
	static const char *const flows[] = {"installed", "refused", "waiting"};
	static const char name[] = "flowspec_flows";
	json_t *row;
	const char *state;

	if (ui->conf.flowspec == NULL)
		return;
	row = flowspec_row(ui);
	state = json_string_value(json_object_get(row, "state"));
	gauge_put(
		b, "flowspec_up",
		"1: fpm-flowspec runs, has a session, and its table is loaded; 0: it does "
		"not (fpmctl show flowspec).",
		strcmp(state, "running") == 0);
	gauge_put(b, "flowspec_sessions_up", "Sessions of ExaBGP with FRR that are up.",
		  (uint64_t)json_integer_value(json_object_get(row, "sessions_up")));
	metric_head(b, name, "gauge", "Flow specifications, by state.");
	for (unsigned int i = 0; i < 3; i++)
		buf_printf(b, P "%s{state=\"%s\"} %lld\n", name, flows[i],
			   json_integer_value(json_object_get(row, flows[i])));
	json_decref(row);
}

/* Append the metrics of sFlow, if it is on. */
void
sflow_put(struct buf *b)
{
#define SFLOW(field) atomic_load_explicit(&sflow_status.field, memory_order_relaxed)
	const struct counted total[] = {
		{"sflow_samples_total", "{kind=\"packet\"}", "Samples sent, by kind.",
		 SFLOW(samples)},
		{"sflow_samples_total", "{kind=\"drop\"}", NULL, SFLOW(discards)},
		{"sflow_samples_total", "{kind=\"counters\"}", NULL, SFLOW(counters)},
		{"sflow_over_limit_total", "{kind=\"packet\"}",
		 "Samples that were not sent: over the limit, or no address of the agent.",
		 SFLOW(samples_over)},
		{"sflow_over_limit_total", "{kind=\"drop\"}", NULL, SFLOW(discards_over)},
		{"sflow_datagrams_total", "", "Datagrams sent to all collectors.",
		 SFLOW(datagrams)},
		{"sflow_send_errors_total", "", "Errors when datagrams were sent.",
		 SFLOW(send_errors)},
		{"sflow_psample_samples_total", "",
		 "Samples given to the kernel's psample.", SFLOW(psample_samples)},
	};

	if (SFLOW(rate) == 0)
		return;
	gauge_put(b, "sflow_rate", "One of this number of packets is a sample.",
		  SFLOW(rate));
	gauge_put(b, "sflow_collectors", "Collectors that are configured.",
		  SFLOW(collectors));
	gauge_put(b, "sflow_collectors_failing",
		  "Collectors that had an error recently (fpmctl show sflow).",
		  SFLOW(failing));
	counted_put(b, total, sizeof(total) / sizeof(total[0]));
#undef SFLOW
}

/* Append a metric with one line for each program. */
static void
hook_put(struct buf *b, const struct fib_hooks *hooks, const char *name, const char *help,
	 size_t offset)
{
	char dev[64];

	metric_head(b, name, "counter", help);
	for (unsigned int k = 0; k < hooks->n; k++) {
		struct hook_sum sum = hook_add_up(hooks->hook[k]);

		buf_printf(b, P "%s{port=\"%s\"} %llu\n", name,
			   label_escape(hooks->hook[k]->dev, dev), value_at(&sum, offset));
	}
}

/* Append the metrics of hook programs, if an interface has one. */
void
hooks_put(const struct ui *ui, struct buf *b)
{
	const struct fib_hooks *hooks =
		ui->conf.fib == NULL ? NULL : fib_hooks(ui->conf.fib);
	char dev[64];

	if (hooks == NULL)
		return;
	hook_put(b, hooks, "hook_packets_total", "Packets that a program got.",
		 offsetof(struct hook_sum, packets));
	hook_put(b, hooks, "hook_dropped_total", "Packets that a program dropped.",
		 offsetof(struct hook_sum, dropped));
	hook_put(b, hooks, "hook_errors_total", "Undefined verdicts of a program.",
		 offsetof(struct hook_sum, errors));
	metric_head(b, "hook_counter_total", "counter",
		    "Counters that the programs define.");
	for (unsigned int k = 0; k < hooks->n; k++) {
		struct hook_sum sum = hook_add_up(hooks->hook[k]);

		for (unsigned int c = 0; c < FPM_HOOK_COUNTERS; c++)
			buf_printf(b,
				   P "hook_counter_total{port=\"%s\",counter=\"%u\"} "
				     "%llu\n",
				   label_escape(hooks->hook[k]->dev, dev), c,
				   (unsigned long long)sum.counter[c]);
	}
}

/* Append the metrics of BFD, if the dataplane runs the sessions. */
void
bfd_put(const struct ui *ui, struct buf *b)
{
#define BFD(field) atomic_load_explicit(&bfd_status.field, memory_order_relaxed)
	static const char *const state[] = BFD_STATUS_STATES;
	const struct counted total[] = {
		{"bfd_downs_total", "", "Sessions that went from Up to Down.", BFD(downs)},
		{"bfd_prunes_total", "",
		 "Next hops that were taken out of all groups because a session went down.",
		 BFD(prunes)},
		{"bfd_lends_total", "",
		 "Times that a forwarder without CPU time got the real-time priority of "
		 "thread "
		 "bfd.",
		 BFD(lends)},
		{"bfd_packets_total", "{direction=\"rx\"}",
		 "Control packets of all sessions, by direction.", BFD(rx_packets)},
		{"bfd_packets_total", "{direction=\"tx\"}", NULL, BFD(tx_packets)},
	};

	if (ui->conf.bfd_dplane == NULL)
		return;
	gauge_put(b, "bfd_connected",
		  "1: a connection to bfdd is open; 0: no connection (fpmctl doctor bfd).",
		  BFD(connections) > 0);
	gauge_put(b, "bfd_connections", "Connections to bfdd that are open.",
		  BFD(connections));
	metric_head(b, "bfd_sessions", "gauge", "Sessions, by state.");
	for (unsigned int i = 0; i < sizeof(state) / sizeof(state[0]); i++)
		buf_printf(b, P "bfd_sessions{state=\"%s\"} %u\n", state[i],
			   BFD(sessions[i]));
	gauge_put(b, "bfd_sessions_not_served",
		  "Sessions that are not served (fpmctl show bfd has the reasons).",
		  BFD(not_served));
	counted_put(b, total, sizeof(total) / sizeof(total[0]));
#undef BFD
}
