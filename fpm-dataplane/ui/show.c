/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make the answers that need no other thread: ports, counters, the FPM channel. Runs in ui.
 * Reads counters that have a single writer, and data that neigh publishes under RCU
 * (callbacks of a worker are online). The values of rib come from its last summary; this
 * file never waits for a new summary.
 */
#include "ui/internal.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/fpm_event.h"
#include "fib/fib.h"
#include "port/port.h"
#include "port/rxq_set.h"

#define LOAD(field) \
	((json_int_t)atomic_load_explicit(&fpm_status.field, memory_order_relaxed))

#define TOTAL(field, name, text, metric, labels, help)                             \
	{                                                                          \
		name, text, metric, labels, help, offsetof(struct counters, field) \
	}
const struct total totals[] = {
	TOTAL(forwarded[0], "forwarded4", "IPv4 packets forwarded",
	      "forwarded_packets_total", "family=\"ipv4\",", "Packets forwarded."),
	TOTAL(forwarded[1], "forwarded6", "IPv6 packets forwarded",
	      "forwarded_packets_total", "family=\"ipv6\",", NULL),
	TOTAL(forwarded[2], "forwarded_mpls", "packets forwarded by their MPLS label",
	      "forwarded_packets_total", "family=\"mpls\",", NULL),
	TOTAL(to_kernel, "to_kernel", "frames given to the kernel",
	      "to_kernel_packets_total", "", "Frames given to the kernel."),
	TOTAL(from_kernel, "from_kernel", "frames of the kernel sent",
	      "from_kernel_packets_total", "", "Frames of the kernel sent."),
	TOTAL(icmp_sent, "icmp_sent", "ICMP errors sent", "icmp_sent_packets_total", "",
	      "ICMP errors sent."),
	TOTAL(icmp_limited, "icmp_limited",
	      "ICMP errors not sent: rate limit, or not allowed for that packet",
	      "icmp_limited_packets_total", "",
	      "ICMP errors not sent because of a rate limit or RFC 1812."),
	TOTAL(held, "held",
	      "packets that waited and were sent when their neighbor answered",
	      "held_packets_total", "",
	      "Packets that waited and were sent when their neighbor answered."),
	TOTAL(watch_lost, "watch_lost",
	      "packets that a trace or capture missed because its ring was full", NULL,
	      NULL, NULL),
	TOTAL(bursts, NULL, NULL, "bursts_total", "", "Bursts handled."),
	TOTAL(idle_polls, NULL, NULL, "idle_polls_total", "", "Polls without packets."),
	TOTAL(sleeps, NULL, NULL, "sleeps_total", "",
	      "Times a forwarder slept because it had no work."),
	TOTAL(resyncs, "resyncs",
	      "full reads of the kernel's state after a netlink overrun", "resyncs_total",
	      "", "Full reads of the kernel's state after a netlink overrun."),
};
const unsigned int n_totals = sizeof(totals) / sizeof(totals[0]);

#define COUNT(field, what)                                       \
	{                                                        \
#field, what, offsetof(struct fpm_status, field) \
	}
const struct fpm_count fpm_counts[] = {
	COUNT(bytes, "Octets received."),
	COUNT(frames, "FPM frames received."),
	COUNT(messages, "Netlink messages received."),
	COUNT(routes, "Routes received."),
	COUNT(route_dels, "Routes withdrawn."),
	COUNT(nexthops, "Next-hop objects received."),
	COUNT(nexthop_dels, "Next-hop objects withdrawn."),
	COUNT(labels, "Routes of MPLS labels; counted as routes, too."),
	COUNT(macs, "MAC addresses of EVPN for display only; counted as routes, too."),
	COUNT(skipped_type,
	      "Messages without use: of other types, or about link-local prefixes."),
	COUNT(skipped_route, "Routes of an unsupported kind, skipped."),
	COUNT(malformed, "Truncated or inconsistent messages, skipped."),
	COUNT(bad_frames, "Sessions closed for a broken frame header."),
	COUNT(strangers, "Connections refused because of their address or user."),
	COUNT(accepts, "Sessions accepted."),
	COUNT(replaced, "Sessions replaced by a newer one."),
	COUNT(closes, "Sessions ended."),
	COUNT(feedback, "Routes acknowledged to zebra."),
	COUNT(feedback_failed, "Routes acknowledged as failed."),
	COUNT(overflows, "Sessions closed at the queue limit."),
};
const unsigned int n_fpm_counts = sizeof(fpm_counts) / sizeof(fpm_counts[0]);

uint64_t
total_read(const struct total *t, const struct counters *block)
{
	return counter_read((const uint64_t *)((const char *)block + t->offset));
}

static uint64_t
total_sum(const struct total *t)
{
	struct counters *const *block;
	unsigned int n = counters_blocks(&block);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += total_read(t, block[i]);
	return sum;
}

/* Return the families that a port forwards. */
static const char *
forwarding_text(const struct fib_iface *i)
{
	bool forward6 = i != NULL && i->forward6 && !i->ipv6_off;

	if (i == NULL || (!i->forward4 && !forward6))
		return "off";
	return !forward6 ? "ipv4" : !i->forward4 ? "ipv6" : "on";
}

static json_t *
addr_or_null(uint8_t family, const struct ipaddr *addr)
{
	static const struct ipaddr none;
	char text[PREFIX_STRLEN];

	if (ipaddr_equal(addr, &none))
		return json_null();
	return json_string(ipaddr_str(addr, family, text));
}

/* Return the CPU that serves each receive queue of a port; null: none. */
static json_t *
port_cpus(const struct ui *ui, const struct port *port)
{
	json_t *cpus = json_array();

	for (uint16_t q = 0; q < port->n_rxq; q++) {
		json_t *cpu = json_null();

		for (unsigned int f = 0; f < ui->conf.n_fwd; f++) {
			const struct rxq_set *set = serving_set(&ui->conf.serving[f]);

			for (unsigned int i = 0; i < set->n; i++)
				if (set->q[i].ifidx == port->ifidx && set->q[i].queue == q)
					cpu = json_integer(ui->conf.cpu[f]);
		}
		json_array_append_new(cpus, cpu);
	}
	return cpus;
}

/* Return the bond of a port; null: none. */
static json_t *
port_bond_row(const struct port *port)
{
	struct bond_state st = {0};
	json_t *members;

	if (port->bond == BOND_NONE)
		return json_null();
	members = json_array();
	if (port_bond(port, &st) < 0)
		st.n_member = 0;
	for (unsigned int i = 0; i < st.n_member; i++) {
		const struct bond_member *m = &st.member[i];
		char mac[MAC_STRLEN];

		mac_str(m->partner, mac);
		json_array_append_new(
			members,
			json_pack("{s:s, s:s, s:s, s:b, s:s?}", "device", m->device,
				  "driver", m->driver, "link", m->link ? "up" : "down",
				  "active", m->active, "partner", m->heard ? mac : NULL));
	}
	return json_pack("{s:s, s:o}", "mode", device_bond_mode(port->bond), "members",
			 members);
}

json_t *
show_port(const struct ui *ui, const struct port *port)
{
	const struct fib_iface *i = fib_iface(ui->conf.fib, port->ifidx);
	const uint8_t *mac = i != NULL ? i->mac : port->mac;
	struct ipaddr src4 = i != NULL ? ipaddr_from_v4(i->src4) : (struct ipaddr){0};
	struct ipaddr src6 = i != NULL ? i->src6 : (struct ipaddr){0};
	struct port_stats st = {0};
	struct if_counters c;
	uint32_t mbit = port_link_known(port).mbit_per_s;
	char text[MAC_STRLEN], rss[64], name[sizeof(i->name)];

	/* Another port may have had this ifidx before: subtract its counts. */
	counters_port(port->ifidx, &c);
	c.rx_packets -= port->base.rx_packets;
	c.rx_bytes -= port->base.rx_bytes;
	c.tx_packets -= port->base.tx_packets;
	c.tx_bytes -= port->base.tx_bytes;
	if (port_stats(port, &st) < 0)
		st = (struct port_stats){0};
	mac_str(mac, text);
	/*
	 * rx_missed: the device had no room in its ring, or no buffer of the packet pool.
	 */
	return json_pack(
		"{s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:i, s:I, s:I, s:I, s:I, "
		"s:I, s:I, s:I, "
		"s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:b, s:b, s:b, s:b, s:o, s:s?}",
		"name", port->name, "device", port->device, "driver", port->driver,
		"ifindex", i != NULL ? (int)i->ifindex : 0, "mac", text, "mtu",
		i != NULL ? (int)i->mtu_bytes : (int)port->mtu_bytes, "link",
		(i != NULL ? i->up : port_link_known(port).up) ? "up" : "down", "queues",
		(int)port->n_rxq, "rx_packets", (json_int_t)c.rx_packets, "rx_bytes",
		(json_int_t)c.rx_bytes, "tx_packets", (json_int_t)c.tx_packets, "tx_bytes",
		(json_int_t)c.tx_bytes, "rx_missed",
		(json_int_t)(st.rx_missed + st.rx_nombuf), "rx_errors",
		(json_int_t)st.rx_errors, "tx_errors", (json_int_t)st.tx_errors,
		"forwarding", forwarding_text(i), "addresses4", addr_or_null(4, &src4),
		"addresses6", addr_or_null(6, &src6), "cpus", port_cpus(ui, port), "rss",
		port_rss(port, rss), "node",
		port->node < 0 ? json_null() : json_integer(port->node), "bond",
		port_bond_row(port), "vlan_offload", port->vlan_offload, "checksum_offload",
		port->rx_cksum, "promiscuous", port_takes_all(port), "allmulticast",
		port_takes_groups(port), "speed_mbit",
		mbit == 0 ? json_null() : json_integer((json_int_t)mbit), "interface",
		i != NULL ? log_utf8(i->name, name, sizeof(name)) : NULL);
}

static int
port_order(const void *a, const void *b)
{
	const struct port *x = *(const struct port *const *)a,
			  *y = *(const struct port *const *)b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static void
show_ports(const struct ui *ui, struct rows *out)
{
	const struct port *port[PORT_SLOTS];
	unsigned int n = 0;

	for (unsigned int i = 0; i < ui->conf.n_port; i++)
		if (port_is_there(&ui->conf.port[i]))
			port[n++] = &ui->conf.port[i];
	qsort(port, n, sizeof(port[0]), port_order);
	for (unsigned int i = 0; i < n; i++)
		rows_put(out, show_port(ui, port[i]));
}

/* Add a row for each reason whose number is below `end`. */
static void
show_reasons(struct rows *out, unsigned int end)
{
	for (unsigned int r = 0; r < end; r++)
		rows_put(out, json_pack("{s:s, s:s, s:I, s:s}", "name", reason_info[r].name,
					"kind", r < N_DROP ? "drop" : "punt", "value",
					(json_int_t)counters_reason((enum reason)r), "text",
					reason_info[r].text));
}

static void
show_counters(struct rows *out)
{
	show_reasons(out, N_REASON);
	for (unsigned int t = 0; t < n_totals; t++)
		if (totals[t].name != NULL)
			rows_put(out, json_pack("{s:s, s:s, s:I, s:s}", "name",
						totals[t].name, "kind", "total", "value",
						(json_int_t)total_sum(&totals[t]), "text",
						totals[t].text));
}

/* Add a row per stage of each forwarder; zeroes while no round was timed. */
static void
show_cycles(struct rows *out)
{
	struct counters *const *block;
	unsigned int n_block = counters_blocks(&block);

	for (unsigned int i = 0; i < n_block; i++) {
		const struct counters *c = block[i];
		uint64_t packets = counter_read(&c->timed_packets);

		for (unsigned int s = 0; c->forwards && s < N_CYCLES; s++)
			rows_put(out,
				 json_pack("{s:s, s:i, s:s, s:I, s:I, s:I}", "thread",
					   c->name, "cpu", c->cpu, "stage", cycles_name[s],
					   "cycles",
					   (json_int_t)counter_read(&c->cycles[s]),
					   "packets", (json_int_t)packets, "bursts",
					   (json_int_t)counter_read(&c->timed_bursts)));
	}
}

/* Return a rate; null: unlimited. */
static json_t *
rate_or_null(uint32_t rate)
{
	return rate == POLICER_UNLIMITED ? json_null() : json_integer(rate);
}

json_t *show_class(enum punt_class class)
{
	const struct punt_class_info *info = &punt_class_info[class];
	struct class_counters n;
	struct policer_conf conf;

	policer_get(class, &conf);
	counters_class(class, &n);
	return json_pack("{s:s, s:o, s:i, s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:s}", "class",
			 info->name, "rate", rate_or_null(conf.rate), "burst",
			 (int)conf.burst, "source_rate", rate_or_null(conf.source_rate),
			 "source_burst", (int)conf.source_burst, "passed",
			 (json_int_t)n.passed, "policed", (json_int_t)n.policed,
			 "over_share", (json_int_t)n.over_share, "ring_full",
			 (json_int_t)n.ring_full, "waiting",
			 (json_int_t)(n.passed > n.taken ? n.passed - n.taken : 0), "text",
			 info->text);
}

uint64_t
fpm_count_read(const struct fpm_count *count)
{
	const char *at = (const char *)&fpm_status + count->offset;

	return atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_relaxed);
}

/*
 * Return the seconds since a CLOCK_MONOTONIC stamp in ms; null if it is 0 or not `known`.
 */
static json_t *
age_s(bool known, json_int_t stamp_ms)
{
	double age = monotonic_s() - (double)stamp_ms / 1000;

	if (!known || stamp_ms == 0)
		return json_null();
	return json_real(age > 0 ? (double)(long long)(age * 1000) / 1000 : 0);
}

const char *const channel_states[] = {
	"never-connected", "away",     "refusing", "held", "replaying",
	"holding",         "sweeping", "in-step",  NULL};

const char *
channel_state(const struct ui *ui)
{
	const json_t *phase = json_object_get(ui->summary, "phase");
	json_int_t gen = json_integer_value(json_object_get(ui->summary, "generation"));

	if (LOAD(refusing) != 0)
		return "refusing";
	if (LOAD(held) != 0)
		return "held";
	if (LOAD(connected) == 0) /* zebra may have been connected to the predecessor */
		return LOAD(gen) == 0 && LOAD(old_nl_pid) == 0 ? "never-connected" : "away";
	return gen == LOAD(gen) && json_is_string(phase) ? json_string_value(phase)
							 : "replaying";
}

uint64_t
fpm_lag_ms(void)
{
	/*
	 * The oldest event is younger than the last handled event, and younger than the
	 * time when the queue was last empty.
	 */
	uint64_t since = (uint64_t)LOAD(queue_since_ms),
		 done = (uint64_t)LOAD(handled_rx_ms);
	uint64_t now = (uint64_t)(monotonic_s() * 1000);

	if (done > since)
		since = done;
	return queue_depth() == 0 || now < since ? 0 : now - since;
}

/*
 * Return {count, sum_us, max_us, below_us: [[8, 3], ..., [null, 1]]} without empty buckets.
 */
static json_t *
histogram_json(const struct histogram *h)
{
	json_t *below = json_array();
	uint64_t count = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t n = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);

		count += n;
		if (n > 0)
			json_array_append_new(
				below,
				json_pack(
					"[o, I]",
					i + 1 == HISTOGRAM_BUCKETS
						? json_null()
						: json_integer((
							  json_int_t)histogram_below_us(i)),
					(json_int_t)n));
	}
	return json_pack("{s:I, s:I, s:I, s:o}", "count", (json_int_t)count, "sum_us",
			 (json_int_t)atomic_load_explicit(&h->sum_us, memory_order_relaxed),
			 "max_us",
			 (json_int_t)atomic_load_explicit(&h->max_us, memory_order_relaxed),
			 "below_us", below);
}

static json_t *
fpm_row(const struct ui *ui)
{
	bool connected = LOAD(connected) != 0;
	uint64_t depth = queue_depth();
	bool warning = depth > queue_warn_bytes((uint64_t)LOAD(queue_limit_bytes));
	json_t *row = json_pack(
		"{s:s, s:b, s:b, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:I, s:I}",
		"state", channel_state(ui), "listening", LOAD(listening) != 0, "connected",
		connected, "generation", LOAD(gen), "uptime_s",
		age_s(connected, LOAD(up_since_ms)), "last_rx_age_s",
		age_s(true, LOAD(last_rx_ms)), "nl_pid", LOAD(nl_pid), "queue_bytes",
		(json_int_t)depth, "queue_high_bytes", LOAD(queue_high_bytes),
		"queue_limit_bytes", LOAD(queue_limit_bytes), "queue_warning", warning,
		"lag_ms", (json_int_t)fpm_lag_ms(), "lag_high_ms", LOAD(lag_high_ms));

	for (unsigned int i = 0; i < n_fpm_counts; i++)
		json_object_set_new(
			row, fpm_counts[i].name,
			json_integer((json_int_t)fpm_count_read(&fpm_counts[i])));
	json_object_set_new(row, "commit_time", histogram_json(&fpm_status.commit));
	json_object_set_new(row, "grace_time", histogram_json(&fpm_status.grace));
	/* If both have a key (generation), keep the value of fpm, because it is newer. */
	json_object_update_missing(row, ui->summary);
	if (ui->summary != NULL)
		json_object_set_new(row, "summary_age_s",
				    age_s(true, (json_int_t)(ui->summary_s * 1000)));
	return row;
}

void
show_rows(struct ui *ui, enum show show, struct rows *out)
{
	switch (show) {
	case SHOW_PORTS:
		show_ports(ui, out);
		break;
	case SHOW_COUNTERS:
		show_counters(out);
		break;
	case SHOW_DROPS:
		show_reasons(out, N_DROP);
		break;
	case SHOW_HOOKS:
		show_hooks(ui, out);
		break;
	case SHOW_FLOWSPEC:
		rows_put(out, flowspec_row(ui));
		break;
	case SHOW_CYCLES:
		show_cycles(out);
		break;
	case SHOW_PUNT:
		for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
			rows_put(out, show_class((enum punt_class)c));
		break;
	case SHOW_FPM:
		rows_put(out, fpm_row(ui));
		break;
	case SHOW_KERNEL:
		show_kernel(ui, out);
		break;
	case SHOW_MEMORY:
		show_memory(ui, out);
		break;
	case SHOW_THREADS:
		show_threads(out);
		break;
	case SHOW_LOG:
		show_log(out);
		break;
	case SHOW_VERSION:
		show_version(ui, out);
		break;
	default: /* other threads make these rows */
		break;
	}
}
