/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metrics page: counters by reason and thread, ports, the FPM channel, tables. Runs in
 * ui. Each row of an array of this file is a metric. The names of metrics end in their
 * unit; counters are never reset. The code reads counters, fpm_status and the last
 * summaries; it writes nothing and never waits.
 */
#include "ui/metrics.h"

#include <net/if.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/fpm_event.h"
#include "base/kernel_event.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/warning.h"
#include "fib/fib.h"
#include "fib/sid_number.h"
#include "port/port.h"

/* A metric. Each of its samples has a struct, in which the value is at `offset`. */
struct metric {
	const char *name, *type, *help;
	size_t offset; /* of a uint64_t */
};
#define METRIC(name, type, of, field, help)                  \
	{                                                    \
		name, type, help, offsetof(struct of, field) \
	}

static void
reasons_put(struct buf *b, const char *name, const char *help, unsigned int from,
	    unsigned int to)
{
	struct counters *const *block;
	unsigned int n = counters_blocks(&block);
	char lcore[64];

	metric_head(b, name, "counter", help);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int r = from; r < to; r++)
			buf_printf(b, P "%s{reason=\"%s\",lcore=\"%s\"} %llu\n", name,
				   reason_info[r].name, label_escape(block[i]->name, lcore),
				   (unsigned long long)counter_read(&block[i]->reason[r]));
}

static void
punt_classes_put(struct buf *b)
{
	static const struct {
		const char *verdict;
		size_t offset; /* of the uint64_t in struct class_counters */
	} verdict[] = {
		{"passed", offsetof(struct class_counters, passed)},
		{"policed", offsetof(struct class_counters, policed)},
		{"over_share", offsetof(struct class_counters, over_share)},
		{"ring_full", offsetof(struct class_counters, ring_full)},
	};
	static const char name[] = "punt_class_packets_total";

	metric_head(b, name, "counter",
		    "Packets for the host, by class and verdict of its policer.");
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
		struct class_counters sum;

		counters_class((enum punt_class)c, &sum);
		for (unsigned int v = 0; v < sizeof(verdict) / sizeof(verdict[0]); v++)
			buf_printf(b, P "%s{class=\"%s\",verdict=\"%s\"} %llu\n", name,
				   punt_class_info[c].name, verdict[v].verdict,
				   value_at(&sum, verdict[v].offset));
	}
}

static void
policers_put(struct buf *b)
{
	static const struct {
		const char *name, *help;
		size_t offset; /* of the uint32_t in struct policer_conf */
	} metric[] = {
		{"policer_rate_packets_per_second",
		 "Rate of a punt class; +Inf: unlimited.",
		 offsetof(struct policer_conf, rate)},
		{"policer_burst_packets", "Burst of a punt class.",
		 offsetof(struct policer_conf, burst)},
		{"policer_source_rate_packets_per_second",
		 "Rate of each source in a punt class; +Inf: unlimited.",
		 offsetof(struct policer_conf, source_rate)},
		{"policer_source_burst_packets", "Burst of each source in a punt class.",
		 offsetof(struct policer_conf, source_burst)},
	};
	struct policer_conf conf;

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		metric_head(b, metric[m].name, "gauge", metric[m].help);
		for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
			uint32_t value;

			policer_get((enum punt_class)c, &conf);
			memcpy(&value, (const char *)&conf + metric[m].offset,
			       sizeof(value));
			buf_printf(b, P "%s{class=\"%s\"} ", metric[m].name,
				   punt_class_info[c].name);
			if (value == POLICER_UNLIMITED)
				buf_printf(b, "+Inf\n");
			else
				buf_printf(b, "%u\n", value);
		}
	}
}

static void
thread_counters_put(struct buf *b)
{
	struct counters *const *block;
	unsigned int n = counters_blocks(&block);
	char lcore[64];

	for (const struct total *t = totals; t < totals + n_totals; t++) {
		if (t->help != NULL)
			metric_head(b, t->metric, "counter", t->help);
		for (unsigned int i = 0; i < n && t->metric != NULL; i++)
			buf_printf(b, P "%s{%slcore=\"%s\"} %llu\n", t->metric, t->labels,
				   label_escape(block[i]->name, lcore),
				   (unsigned long long)total_read(t, block[i]));
	}
}

/* Append the time of forwarders by stage, in the timed rounds (base/counters.h). */
static void
cycles_put(struct buf *b)
{
	struct counters *const *block;
	unsigned int n = counters_blocks(&block);
	char lcore[64];

	metric_head(b, "lcore_timed_cycles_total", "counter",
		    "TSC ticks by stage, in the rounds that were timed.");
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int s = 0; block[i]->forwards && s < N_CYCLES; s++)
			buf_printf(b,
				   P "lcore_timed_cycles_total{lcore=\"%s\",stage=\"%s\"} "
				     "%llu\n",
				   label_escape(block[i]->name, lcore), cycles_name[s],
				   (unsigned long long)counter_read(&block[i]->cycles[s]));
	metric_head(b, "lcore_timed_packets_total", "counter",
		    "Packets received in the rounds that were timed.");
	for (unsigned int i = 0; i < n; i++)
		if (block[i]->forwards)
			buf_printf(
				b, P "lcore_timed_packets_total{lcore=\"%s\"} %llu\n",
				label_escape(block[i]->name, lcore),
				(unsigned long long)counter_read(&block[i]->timed_packets));
}

static const char *
port_label(const json_t *row, char out[64])
{
	return label_escape(json_string_value(json_object_get(row, "name")), out);
}

/*
 * Append packets by queue, if the driver counts them, and the CPU that serves each queue.
 */
static void
queues_put(const struct ui *ui, struct buf *b, const json_t *rows)
{
	struct port_stats st;
	const json_t *row, *cpu;
	char name[64];
	size_t i, q;

	metric_head(b, "port_queue_rx_packets_total", "counter",
		    "Frames of a receive queue; absent if the driver does not count them.");
	for (unsigned int p = 0; p < ui->conf.n_port; p++)
		if (port_is_there(&ui->conf.port[p]) &&
		    port_stats(&ui->conf.port[p], &st) == 0)
			for (q = 0; q < st.n_queue; q++)
				buf_printf(b,
					   P "port_queue_rx_packets_total{port=\"%s\","
					     "queue=\"%zu\"} %llu\n",
					   label_escape(ui->conf.port[p].name, name), q,
					   (unsigned long long)st.queue_rx_packets[q]);
	metric_head(b, "port_queue_info", "gauge",
		    "Always 1; the labels name the CPU of a queue.");
	json_array_foreach (rows, i, row)
		json_array_foreach (json_object_get(row, "cpus"), q, cpu)
			if (json_is_integer(cpu))
				buf_printf(b,
					   P "port_queue_info{port=\"%s\",queue=\"%zu\","
					     "cpu=\"%lld\"} "
					     "1\n",
					   port_label(row, name), q,
					   (long long)json_integer_value(cpu));
}

static void
limits_put(struct buf *b)
{
	static const struct metric metric[] = {
		METRIC("table_used", "gauge", table_state, used, "Entries in tables."),
		METRIC("table_max", "gauge", table_state, max,
		       "Limit of a table; 0: limited by memory only."),
		METRIC("table_refused_total", "counter", table_state, refused,
		       "Entries refused because the table was full."),
	};

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		metric_head(b, metric[m].name, metric[m].type, metric[m].help);
		for (unsigned int t = 0; t < N_TABLE; t++) {
			struct table_state s = table_state((enum table)t);

			buf_printf(b, P "%s{table=\"%s\"} %llu\n", metric[m].name, s.name,
				   value_at(&s, metric[m].offset));
		}
	}
}

static void
ports_put(const struct ui *ui, struct buf *b)
{
	static const struct {
		const char *name, *key, *help;
	} metric[] = {
		{"port_rx_packets_total", "rx_packets", "Frames taken from the port."},
		{"port_rx_bytes_total", "rx_bytes", "Octets taken from the port."},
		{"port_tx_packets_total", "tx_packets", "Frames given to the port."},
		{"port_tx_bytes_total", "tx_bytes", "Octets given to the port."},
		{"port_rx_missed_packets_total", "rx_missed",
		 "Frames that the device had no room for."},
		{"port_rx_errors_total", "rx_errors", "Receive errors of the device."},
		{"port_tx_errors_total", "tx_errors", "Transmit errors of the device."},
	};
	json_t *rows = json_array();
	json_t *row;
	char name[64];
	size_t i;

	for (unsigned int p = 0; p < ui->conf.n_port; p++)
		if (port_is_there(&ui->conf.port[p]))
			json_array_append_new(rows, show_port(ui, &ui->conf.port[p]));
	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		metric_head(b, metric[m].name, "counter", metric[m].help);
		json_array_foreach (rows, i, row)
			buf_printf(b, P "%s{port=\"%s\"} %lld\n", metric[m].name,
				   port_label(row, name),
				   (long long)json_integer_value(
					   json_object_get(row, metric[m].key)));
	}
	metric_head(b, "port_up", "gauge",
		    "1 if the port is administratively up and has a carrier, else 0.");
	json_array_foreach (rows, i, row)
		buf_printf(b, P "port_up{port=\"%s\"} %d\n", port_label(row, name),
			   strcmp(json_string_value(json_object_get(row, "link")), "up") ==
				   0);
	queues_put(ui, b, rows);
	json_decref(rows);
}

/* Return the name of an interface of the FIB as a label; NULL: no interface has the number. */
static const char *
interface_label(const struct ui *ui, unsigned int ifidx, char out[64])
{
	const struct fib_iface *iface = fib_iface(ui->conf.fib, ifidx);
	char shown[IFNAMSIZ];

	return iface == NULL || iface->ifindex == 0
		       ? NULL
		       : label_escape(log_utf8(iface->name, shown, sizeof(shown)), out);
}

/* Append the counters of interfaces that are no ports. limits.vlans limits their number. */
static void
interfaces_put(const struct ui *ui, struct buf *b)
{
	static const struct metric metric[] = {
		METRIC("interface_rx_packets_total", "counter", if_counters, rx_packets,
		       "Packets received by an interface that is no port."),
		METRIC("interface_rx_bytes_total", "counter", if_counters, rx_bytes,
		       "Octets received by an interface that is no port."),
		METRIC("interface_tx_packets_total", "counter", if_counters, tx_packets,
		       "Packets sent by an interface that is no port."),
		METRIC("interface_tx_bytes_total", "counter", if_counters, tx_bytes,
		       "Octets sent by an interface that is no port."),
	};
	struct if_counters sum;
	char name[64];

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		metric_head(b, metric[m].name, metric[m].type, metric[m].help);
		for (unsigned int i = PORT_MAX; i < IFIDX_MAX; i++) {
			if (interface_label(ui, i, name) == NULL)
				continue;
			counters_interface(i, &sum);
			buf_printf(b, P "%s{interface=\"%s\"} %llu\n", metric[m].name, name,
				   value_at(&sum, metric[m].offset));
		}
	}
}

static void
urpf_put(const struct ui *ui, struct buf *b)
{
	char name[64];

	metric_head(b, "urpf_dropped_packets_total", "counter",
		    "Packets that rp_filter dropped (part of reason urpf), by interface.");
	for (unsigned int i = 1; i < IFIDX_MAX; i++)
		if (interface_label(ui, i, name) != NULL)
			buf_printf(b, P "urpf_dropped_packets_total{port=\"%s\"} %llu\n",
				   name, (unsigned long long)counters_urpf(i));
}

static void
histogram_put(struct buf *b, const char *name, const char *help, const struct histogram *h)
{
	uint64_t n = 0, us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);

	metric_head(b, name, "histogram", help);
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		n += atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
		if (i + 1 < HISTOGRAM_BUCKETS)
			buf_printf(b, P "%s_bucket{le=\"%g\"} %llu\n", name,
				   (double)histogram_below_us(i) / 1e6,
				   (unsigned long long)n);
	}
	/* All digits: the sum of days must still grow by the microseconds of a commit. */
	buf_printf(b,
		   P "%s_bucket{le=\"+Inf\"} %llu\n" P "%s_sum %llu.%06llu\n" P
		     "%s_count %llu\n",
		   name, (unsigned long long)n, name, (unsigned long long)us / 1000000,
		   (unsigned long long)us % 1000000, name, (unsigned long long)n);
}

/* Append a field of fpm_status as a gauge of the same name. */
#define STATUS_GAUGE(b, field, help) gauge_put(b, "fpm_" #field, help, fpm_status.field)

static void
channel_put(const struct ui *ui, struct buf *b)
{
	const char *now = channel_state(ui);
	char name[64];

	STATUS_GAUGE(b, listening,
		     "1 while zebra can connect; 0: the daemon refuses zebra, or does not "
		     "listen.");
	/* Without FPM there is no zebra whose loss an alert could report. */
	if (strcmp(ui->conf.routes_from, "kernel") != 0)
		STATUS_GAUGE(b, connected,
			     "1 while zebra is connected; absent with "
			     "routes.from: kernel.");
	gauge_put(b, "fpm_generation", "Number of the session; 0: no session yet.",
		  fpm_status.gen);
	gauge_put(b, "fpm_queue_bytes",
		  "Octets of received events that rib has not handled yet.", queue_depth());
	STATUS_GAUGE(b, queue_high_bytes, "Highest value of fpm_queue_bytes.");
	STATUS_GAUGE(b, queue_limit_bytes, "Limit at which the session is closed.");
	STATUS_GAUGE(b, refusing, "1 while zebra is refused: the RIB is too far behind.");
	STATUS_GAUGE(b, held, "1 while a hold is in force: FRR is being restarted.");
	metric_head(b, "fpm_state", "gauge",
		    "1 for the present state of show fpm, 0 for others.");
	for (unsigned int i = 0; channel_states[i] != NULL; i++)
		buf_printf(b, P "fpm_state{state=\"%s\"} %d\n", channel_states[i],
			   strcmp(now, channel_states[i]) == 0);
	seconds_put(b, "fpm_lag_seconds", "Age of the oldest event that waits for the RIB.",
		    fpm_lag_ms());
	seconds_put(b, "fpm_lag_high_seconds",
		    "Longest time from the receipt of an event to the FIB.",
		    fpm_status.lag_high_ms);
	histogram_put(b, "rib_commit_seconds", "Duration of commits to the FIB.",
		      &fpm_status.commit);
	histogram_put(b, "rib_grace_seconds",
		      "Time after a commit until no forwarder used the replaced objects.",
		      &fpm_status.grace);
	for (unsigned int i = 0; i < n_fpm_counts; i++) {
		snprintf(name, sizeof(name), "fpm_%s_total", fpm_counts[i].name);
		metric_head(b, name, "counter", fpm_counts[i].text);
		buf_printf(b, P "%s %llu\n", name,
			   (unsigned long long)fpm_count_read(&fpm_counts[i]));
	}
}

/* Append the metrics of rtnl, the reader of the kernel's routing tables. */
static void
kernel_put(struct buf *b)
{
	char name[64];

	gauge_put(b, "kernel_in_step",
		  "1 if all tables of the kernel were read since events were lost.",
		  kernel_status.in_step);
	gauge_put(b, "kernel_queue_bytes",
		  "Octets of events of the kernel that rib has not handled yet.",
		  kernel_queue_depth());
	for (unsigned int i = 0; i < n_kernel_counts; i++) {
		snprintf(name, sizeof(name), "kernel_%s_total", kernel_counts[i].name);
		metric_head(b, name, "counter", kernel_counts[i].text);
		buf_printf(b, P "%s %llu\n", name,
			   (unsigned long long)kernel_count_read(&kernel_counts[i]));
	}
}

/* Append the counts of kernel configuration that forwarders do not obey. */
static void
warnings_put(struct buf *b)
{
	static const char name[] = "kernel_not_obeyed";

	metric_head(b, name, "gauge",
		    "Parts of the kernel's configuration that a Linux router obeys and the "
		    "dataplane does not, by kind: fpmctl show warnings.");
	for (unsigned int k = 0; k < N_WARNING; k++)
		buf_printf(b, P "%s{kind=\"%s\"} %u\n", name,
			   warning_kind_name((enum warning_kind)k),
			   atomic_load_explicit(&warning_count[k], memory_order_relaxed));
}

/* Append values of rib's summary. A missing key makes no line. */
static void
tables_put(const struct ui *ui, struct buf *b)
{
	static const struct {
		const char *name, *type, *key, *labels, *help;
	} metric[] = {
		{"rib_routes", "gauge", "routes4", "{family=\"ipv4\"}",
		 "Prefixes of table main, from all sources."},
		{"rib_routes", "gauge", "routes6", "{family=\"ipv6\"}", NULL},
		{"rib_zebra_routes", "gauge", "zebra4", "{family=\"ipv4\"}",
		 "Prefixes of table main that zebra has sent."},
		{"rib_zebra_routes", "gauge", "zebra6", "{family=\"ipv6\"}", NULL},
		{"rib_kernel_routes", "gauge", "kernel_routes", "",
		 "Routes of the kernel's tables, in force or hidden by better ones."},
		{"rib_other_table_routes", "gauge", "other_tables", "",
		 "Prefixes of other tables."},
		{"rib_unresolved_routes", "gauge", "unresolved", "",
		 "Routes whose next hop was never announced."},
		{"rib_unsupported_routes", "gauge", "unsupported", "",
		 "Routes with an encapsulation that is not supported, such as some modes "
		 "of "
		 "SRv6."},
		{"rib_groups", "gauge", "groups", "", "Next-hop groups in use."},
		{"rib_flows_moved_total", "counter", "flows_moved", "",
		 "Route changes that moved flows of next hops that stay, because their "
		 "group could get no further row."},
		{"rib_nexthop_ids", "gauge", "nexthop_ids", "",
		 "Next-hop ids zebra has announced."},
		{"rib_adjacencies", "gauge", "adjacencies", "",
		 "Next hops with an adjacency."},
		{"rib_stale_routes", "gauge", "stale", "",
		 "Routes of table main not yet confirmed by the replay."},
		{"rib_vrf_stale_routes", "gauge", "vrf_stale", "",
		 "Routes of VRFs not yet confirmed by the replay."},
		{"rib_sweeps_total", "counter", "sweeps", "", "Sweeps after a replay."},
		{"rib_swept_routes_total", "counter", "swept_routes", "",
		 "Routes removed by sweeps."},
		{"rib_commits_total", "counter", "commits", "", "Commits to the FIB."},
		{"rib_reclaim_pending", "gauge", "reclaim_pending", "",
		 "Grace periods that have not ended."},
		{"rib_bytes", "gauge", "rib_bytes", "", "Memory of the route tables."},
	};
	static const char *const of_fib[][2] = {
		{"routes", "Prefixes in the trie."},
		{"nodes", "Inner nodes of the trie."},
		{"leaves", "Leaves of the trie."},
		{"bytes", "Memory of the trie that forwarders read."},
		{"free_bytes", "Free memory of the trie."},
		{"retired_bytes", "Memory of the trie that waits for a grace period."},
		{"radix_bytes", "Memory of the writer's own tree."},
	};
	char name[64];

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		const json_t *v = json_object_get(ui->summary, metric[m].key);

		if (!json_is_integer(v))
			continue;
		if (metric[m].help != NULL)
			metric_head(b, metric[m].name, metric[m].type, metric[m].help);
		buf_printf(b, P "%s%s %lld\n", metric[m].name, metric[m].labels,
			   (long long)json_integer_value(v));
	}
	for (unsigned int m = 0; m < sizeof(of_fib) / sizeof(of_fib[0]); m++) {
		const char *key = of_fib[m][0];
		const json_t *v4 =
			json_object_get(json_object_get(ui->summary, "fib4"), key);
		const json_t *v6 =
			json_object_get(json_object_get(ui->summary, "fib6"), key);

		if (!json_is_integer(v4) || !json_is_integer(v6))
			continue;
		snprintf(name, sizeof(name), "fib_%s", key);
		metric_head(b, name, "gauge", of_fib[m][1]);
		buf_printf(b, P "%s{family=\"ipv4\"} %lld\n" P "%s{family=\"ipv6\"} %lld\n",
			   name, (long long)json_integer_value(v4), name,
			   (long long)json_integer_value(v6));
	}
}

/* Append metrics of VRFs with a FIB. Without such a VRF the page has no such lines. */
static void
vrfs_put(const struct ui *ui, struct buf *b)
{
	static const struct metric metric[] = {
		METRIC("vrf_rx_packets_total", "counter", vrf_counters, rx_packets,
		       "Frames received by members of a VRF."),
		METRIC("vrf_rx_bytes_total", "counter", vrf_counters, rx_bytes,
		       "Octets received by members of a VRF."),
		METRIC("vrf_drop_packets_total", "counter", vrf_counters, dropped,
		       "Frames received by members of a VRF and then dropped."),
	};
	struct vrf_counters sum;
	char name[64];

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		bool any = false;

		for (unsigned int i = 1; i < FIB_VRF_NONE; i++) {
			const struct fib_vrf *vrf = fib_vrf(ui->conf.fib, i);

			if (vrf == NULL)
				continue;
			if (!any)
				metric_head(b, metric[m].name, metric[m].type,
					    metric[m].help);
			any = true;
			counters_vrf(i, &vrf->base, &sum);
			buf_printf(b, P "%s{vrf=\"%s\"} %llu\n", metric[m].name,
				   label_escape(vrf->name, name),
				   value_at(&sum, metric[m].offset));
		}
	}
}

/*
 * Return the label for the table of a SID, with a comma before it: "vrf" if the table is of
 * a VRF, else "table". For table main return "".
 */
static const char *
sid_table_label(const struct ui *ui, const struct fib_sid_number *of, char *text,
		size_t size)
{
	uint16_t number = atomic_load_explicit(&of->vrf, memory_order_relaxed);
	const struct fib_vrf *vrf = number == 0 || number == FIB_VRF_NONE
					    ? NULL
					    : fib_vrf(ui->conf.fib, number);
	char name[64];

	if (number == 0)
		return "";
	if (vrf != NULL)
		snprintf(text, size, ",vrf=\"%s\"", label_escape(vrf->name, name));
	else
		snprintf(text, size, ",table=\"%u\"", of->table);
	return text;
}

/* Append metrics of the SIDs of SRv6. Without a SID the page has no such lines. */
static void
sids_put(const struct ui *ui, struct buf *b)
{
	static const struct metric metric[] = {
		METRIC("srv6_sid_packets_total", "counter", sid_counters, packets,
		       "Packets that the end point of a SID accepted."),
		METRIC("srv6_sid_bytes_total", "counter", sid_counters, bytes,
		       "Octets that the end point of a SID accepted."),
		METRIC("srv6_sid_errors_total", "counter", sid_counters, errors,
		       "Packets that the end point of a SID dropped or refused."),
	};
	const struct fib_sid_numbers *t = ui->conf.fib->sid_numbers;
	uint32_t high = atomic_load_explicit(&t->high, memory_order_relaxed);
	struct sid_counters sum;
	char text[PREFIX_STRLEN], label[80];

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		bool any = false;

		for (uint32_t i = 1; i <= high; i++) {
			const struct prefix p = fib_sid_number_prefix(ui->conf.fib, i);

			if (p.len == 0)
				continue;
			if (!any)
				metric_head(b, metric[m].name, metric[m].type,
					    metric[m].help);
			any = true;
			counters_sid(i, &t->of[i].base, &sum);
			buf_printf(b, P "%s{sid=\"%s\"%s} %llu\n", metric[m].name,
				   prefix_str(&p, text),
				   sid_table_label(ui, &t->of[i], label, sizeof(label)),
				   value_at(&sum, metric[m].offset));
		}
	}
}

/* Append values of neigh's summary. */
static void
neighbors_put(const struct ui *ui, struct buf *b)
{
	static const char *const family[] = {"ipv4", "ipv6"};
	const char *state;
	json_t *of, *n;

	if (ui->neigh_summary == NULL)
		return;
	metric_head(b, "neighbors", "gauge",
		    "Known neighbors, by their state in the kernel.");
	for (unsigned int f = 0; f < 2; f++) {
		of = json_object_get(ui->neigh_summary, family[f]);
		json_object_foreach (of, state, n)
			buf_printf(b, P "neighbors{family=\"%s\",state=\"%s\"} %lld\n",
				   family[f], state, (long long)json_integer_value(n));
	}
	gauge_put(b, "neighbors_waited_for", "Neighbors that packets wait for.",
		  (uint64_t)json_integer_value(
			  json_object_get(ui->neigh_summary, "waited_for")));
}

static void
api_put(const struct ui *ui, struct buf *b)
{
	static const struct metric metric[] = {
		METRIC("api_requests_total", "counter", api_counts, requests,
		       "HTTP requests on the control socket."),
		METRIC("api_refused_total", "counter", api_counts, refused,
		       "Requests answered with an error or cut off, and connections "
		       "beyond the limit."),
		METRIC("api_garbage_total", "counter", api_counts, garbage,
		       "Connections to the control socket that ended without a "
		       "request."),
	};
	struct api_counts n = api_counts(ui);

	for (unsigned int m = 0; m < sizeof(metric) / sizeof(metric[0]); m++) {
		metric_head(b, metric[m].name, metric[m].type, metric[m].help);
		buf_printf(b, P "%s %llu\n", metric[m].name,
			   value_at(&n, metric[m].offset));
	}
}

void
metrics_page(struct ui *ui, struct buf *b)
{
	char version[64];
	unsigned int n, n_free;

	metric_head(b, "build_info", "gauge", "Always 1; the labels name the build.");
	buf_printf(b,
		   P
		   "build_info{version=\"%s\",instructions=\"%s\",instructions_best=\"%s\","
		   "lookup_instructions=\"%s\",lookup_instructions_best=\"%s\"} 1\n",
		   label_escape(ui->conf.version, version), ui->conf.instructions,
		   ui->conf.instructions_best, ui->conf.lookup_instructions,
		   ui->conf.lookup_instructions_best);
	gauge_put(b, "uptime_seconds", "Time since the start.",
		  (uint64_t)(monotonic_s() - ui->started_s));
	gauge_put(b, "resident_memory_bytes", "Memory of the process.",
		  proc_status_bytes("VmRSS"));
	gauge_put(b, "resident_memory_peak_bytes",
		  "Largest resident memory since the start.", proc_status_bytes("VmHWM"));
	port_buffers(&ui->conf.port[0], &n, &n_free);
	gauge_put(b, "packet_buffers", "All packet buffers.", n);
	gauge_put(b, "packet_buffers_free", "Free packet buffers.", n_free);
	reasons_put(b, "drop_packets_total", "Packets dropped, by reason.", 0, N_DROP);
	reasons_put(b, "punt_packets_total",
		    "Packets that forwarders neither sent nor dropped, by reason.", N_DROP,
		    N_REASON);
	punt_classes_put(b);
	policers_put(b);
	api_put(ui, b);
	thread_counters_put(b);
	cycles_put(b);
	ports_put(ui, b);
	interfaces_put(ui, b);
	urpf_put(ui, b);
	channel_put(ui, b);
	kernel_put(b);
	warnings_put(b);
	filter_put(b);
	flowspec_put(ui, b);
	sflow_put(b);
	hooks_put(ui, b);
	bfd_put(ui, b);
	limits_put(b);
	tables_put(ui, b);
	vrfs_put(ui, b);
	sids_put(ui, b);
	neighbors_put(ui, b);
}
