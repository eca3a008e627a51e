/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connect the threads: give each worker its configuration, the objects that it shares with
 * other threads, and the mailboxes of the workers to which it sends.          [main]
 */
#include "daemon/workers.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "base/counters.h"
#include "base/filter_tables.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "bfd/bfd.h"
#include "config/print.h"
#include "filter/filter.h"
#include "fpm/fpm.h"
#include "hook/hook.h"
#include "manage/manage.h"
#include "manage/ports.h"
#include "neigh/neigh.h"
#include "port/bfd.h"
#include "port/nic.h"
#include "port/nicd_client.h"
#include "port/packet_meta.h"
#include "port/watch.h"
#include "punt/punt.h"
#include "sflow/sflow.h"
#include "tap-bridge/netns.h"
#include "trace/trace.h"
#include "ui/ui.h"
#include "warn/warn.h"

/* Create the objects that several workers use. threads_end() frees them. */
static int
shared_objects_create(struct dataplane *dp)
{
	struct worker *w = dp->worker;

	dp->hotplug = (struct hotplug){.port = dp->port,
				       .pool = dp->pool,
				       .rxq_assign = &dp->rxq_assign,
				       .neigh = &w[W_NEIGH],
				       .punt = &w[W_PUNT]};
	dp->hooks = hooks_new(dp->fib);
	if (dp->conf.bfd.on)
		dp->bfd_table = bfd_table_create();
	dp->watch = watch_create();
	dp->sampler = watch_create();
	if (dp->hooks == NULL || (dp->conf.bfd.on && dp->bfd_table == NULL) ||
	    dp->watch == NULL || dp->sampler == NULL)
		return -ENOMEM;
	return 0;
}

/*
 * Return true if no other daemon can forward in place of this daemon. Then the start must
 * not end because an address is busy.
 */
static bool
busy_address_is_retried(const struct dataplane *dp)
{
	return sd_is_restarted() || dp->predecessor >= 0;
}

static int
neigh_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct neigh_conf neigh = {.count = counters_register("neigh"),
				   .rib = &w[W_RIB],
				   .punt = &w[W_PUNT],
				   .manage = &w[W_MANAGE],
				   .fib = dp->fib,
				   .limits = &conf->limits,
				   .netns = conf->control_netns,
				   .mpls_all = conf->mpls_all,
				   .rp_filter_ignored = conf->rp_filter_ignored,
				   .port = dp->port,
				   .n_port = PORT_SLOTS};

	return neigh_setup(&w[W_NEIGH], &neigh);
}

/*
 * Open the sockets through which punt gives the kernel ICMP errors for hosts that only the
 * kernel reaches. Without a socket these errors are dropped. With IPV6_FREEBIND the kernel
 * accepts any source address, also that of another VRF, as it does for IPv4.
 */
static void
raw_open(const struct config *conf, int raw[2])
{
	int on = 1;

	for (unsigned int i = 0; i < 2; i++) {
		raw[i] = netns_socket(conf->control_netns, i == 0 ? AF_INET : AF_INET6,
				      SOCK_RAW | SOCK_NONBLOCK, IPPROTO_RAW);
		if (raw[i] < 0 && raw[i] != -EAFNOSUPPORT)
			log_warn("main: raw socket not opened family=%s error=\"%s\"",
				 i == 0 ? "ipv4" : "ipv6", strerror(-raw[i]));
	}
	if (raw[1] >= 0)
		(void)setsockopt(raw[1], IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
}

static int
punt_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct punt_conf punt = {.count = counters_register("punt"),
				 .neigh = &w[W_NEIGH],
				 .fib = dp->fib,
				 .limits = &conf->limits,
				 .port = dp->port,
				 .n_port = PORT_SLOTS,
				 .rings = dp->rings,
				 .n_fwd = conf->n_core,
				 .no_lcore = nicd_is_connected(),
				 .pool = dp->pool,
				 .watch = dp->watch,
				 .bfd_elsewhere = conf->bfd.on};

	punt.watch_ring = watch_ring_add(dp->watch, &punt.count->watch_lost);
	if (punt.watch_ring == NULL)
		return -ENOMEM;
	raw_open(conf, punt.raw);
	return punt_setup(&w[W_PUNT], &punt);
}

static int
fpm_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct fpm_conf fpm = {.rib = &w[W_RIB],
			       .netns = conf->control_netns,
			       .listen = conf->fpm_listen,
			       .from = conf->fpm_from,
			       .off = conf->routes_from == ROUTES_FROM_KERNEL,
			       .retry_listen = busy_address_is_retried(dp),
			       .queue_limit_bytes = conf->fpm_queue_limit_bytes};

	return fpm_setup(&w[W_FPM], &fpm);
}

static int
trace_connect(struct dataplane *dp)
{
	struct worker *w = dp->worker;
	struct trace_conf trace = {.rib = &w[W_RIB],
				   .neigh = &w[W_NEIGH],
				   .fib = dp->fib,
				   .watch = dp->watch,
				   .port = dp->port,
				   .n_port = PORT_SLOTS,
				   .version = FPMDP_VERSION,
				   .explain = fwd_explain};

	return trace_setup(&w[W_TRACE], &trace);
}

static int
ui_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	/* static, because ui keeps the pointers */
	static char listen[CONFIG_LISTEN_STRLEN], flowspec[PATH_MAX];
	const char *folder = getenv("FPM_FLOWSPEC_FOLDER");
	struct worker *w = dp->worker;
	struct ui_conf ui = {.rib = &w[W_RIB],
			     .neigh = &w[W_NEIGH],
			     .fpm = &w[W_FPM],
			     .rtnl = &w[W_RTNL],
			     .trace = &w[W_TRACE],
			     .manage = &w[W_MANAGE],
			     .warn = &w[W_WARN],
			     .filter = &w[W_FILTER],
			     .sflow = &w[W_SFLOW],
			     .bfd = &w[W_BFD],
			     .fib = dp->fib,
			     .limits = &conf->limits,
			     .port = dp->port,
			     .n_port = PORT_SLOTS,
			     .serving = dp->serving,
			     .cpu = conf->core,
			     .n_fwd = conf->n_core,
			     .bfd_dplane = conf->bfd.on ? conf->bfd.name : NULL,
			     .routes_from = routes_from_name(conf->routes_from),
			     .instructions = fwd_cpu_uses(),
			     .instructions_best = fwd_cpu_best(),
			     .lookup_instructions = fwd_cpu_lookups_use(),
			     .lookup_instructions_best = fwd_cpu_lookups_best(),
			     .control_socket = conf->control_socket,
			     .metrics_on = conf->metrics_on,
			     .metrics_listen = conf->metrics_listen,
			     .metrics_retry = busy_address_is_retried(dp),
			     .netns = conf->control_netns,
			     .version = FPMDP_VERSION,
			     .dpdk = rte_version(),
			     .config_file = conf->file,
			     .fpm_listen = config_listen_str(&conf->fpm_listen, listen),
			     .hugepages = conf->hugepages,
			     .memory_mib = conf->memory_mib};

	snprintf(flowspec, sizeof(flowspec), "%s/summary.json",
		 folder != NULL ? folder : "/run/fpm-flowspec");
	if (filter_tables_has(conf->filter_table, "inet flowspec"))
		ui.flowspec = flowspec;
	return ui_setup(&w[W_UI], &ui);
}

static int
manage_connect(struct dataplane *dp)
{
	struct worker *w = dp->worker;
	struct manage_conf manage = {.running = &dp->running,
				     .poll_always = dp->poll_by_option,
				     .rib = &w[W_RIB],
				     .fpm = &w[W_FPM],
				     .sflow = &w[W_SFLOW],
				     .ports = &dp->hotplug,
				     .hooks = dp->hooks};

	return manage_setup(&w[W_MANAGE], &manage);
}

static int
warn_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct warn_conf warn = {.rib = &w[W_RIB],
				 .neigh = &w[W_NEIGH],
				 .fib = dp->fib,
				 .netns = conf->control_netns,
				 .filter = conf->filter_table,
				 .rp_filter_ignored = conf->rp_filter_ignored};

	return warn_setup(&w[W_WARN], &warn);
}

/* Return the number of ticks of policer_ticks() in a second. */
static double
ticks_s(void)
{
	return (double)rte_get_tsc_hz() * (1u << POLICER_TICK_SHIFT);
}

static int
filter_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct filter_conf filter = {.fib = dp->fib,
				     .netns = conf->control_netns,
				     .table = conf->filter_table,
				     .pass_on_error = conf->filter_pass,
				     .n_thread = conf->n_core + 2,
				     .ticks = policer_ticks,
				     .ticks_s = ticks_s};

	return filter_setup(&dp->worker[W_FILTER], &filter);
}

static int
sflow_connect(struct dataplane *dp)
{
	struct worker *w = dp->worker;
	struct sflow_setup sflow = {.rib = &w[W_RIB],
				    .fib = dp->fib,
				    .watch = dp->sampler,
				    .port = dp->port,
				    .netns = dp->conf.control_netns,
				    .conf = dp->conf.sflow};

	return sflow_setup(&w[W_SFLOW], &sflow);
}

static int
bfd_connect(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct bfd_setup bfd = {.rib = &w[W_RIB],
				.punt = &w[W_PUNT],
				.fib = dp->fib,
				.table = dp->bfd_table,
				.rings = dp->rings,
				.n_fwd = conf->n_core,
				.full_rounds = NIC_QUEUE_MAX / conf->rx_burst + 1,
				.netns = conf->control_netns,
				.conf = conf->bfd};

	return bfd_setup(&w[W_BFD], &bfd);
}

int
workers_setup(struct dataplane *dp)
{
	static int (*const connect_worker[])(struct dataplane *) = {
		neigh_connect,  punt_connect, fpm_connect,    trace_connect, ui_connect,
		manage_connect, warn_connect, filter_connect, sflow_connect, bfd_connect};
	int rc = shared_objects_create(dp);

	for (unsigned int i = 0; i < RTE_DIM(connect_worker) && rc == 0; i++)
		rc = connect_worker[i](dp);
	for (unsigned int i = W_NEIGH; i < N_WORKER && rc == 0; i++)
		rc = worker_prepare(&dp->worker[i]);
	return rc;
}
