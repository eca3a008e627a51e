/* SPDX-License-Identifier: BSD-3-Clause */
/* Connect the threads; start them in order and end them in reverse.           [main] */
#include "daemon/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_version.h>
#include <urcu/urcu-qsbr.h>

#include "base/counters.h"
#include "base/log.h"
#include "base/sd_notify.h"
#include "bfd/bfd.h"
#include "config/print.h"
#include "daemon/forwarders.h"
#include "fib/fib.h"
#include "filter/filter.h"
#include "fpm/fpm.h"
#include "hook/hook.h"
#include "manage/manage.h"
#include "manage/ports.h"
#include "neigh/neigh.h"
#include "port/bfd.h"
#include "port/nic.h"
#include "port/nicd_client.h"
#include "port/packet.h"
#include "port/watch.h"
#include "punt/punt.h"
#include "restart/fdstore.h"
#include "rib/rib.h"
#include "rtnl/rtnl.h"
#include "sflow/sflow.h"
#include "start/cpus.h"
#include "tap-bridge/netns.h"
#include "trace/trace.h"
#include "ui/ui.h"
#include "warn/warn.h"

/* Take the checkpoint of the last daemon, which rib reads and closes; -1: none. */
static int
last_checkpoint_take(struct dataplane *dp)
{
	int fd = fdstore_take_checkpoint(rib_checkpoint_alive_ms);

	dp->last_checkpoint.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	dp->last_checkpoint.tries = rib_checkpoint_attempts(dp->last_checkpoint.fd);
	return fd;
}

/*
 * Start to read the kernel's routes. Like rib, rtnl needs neither DPDK nor ports. Its
 * messages wait until rib has read the checkpoint.
 */
static int
rtnl_begin(struct dataplane *dp)
{
	struct rtnl_conf rtnl = {.rib = &dp->worker[W_RIB],
				 .netns = dp->conf.control_netns,
				 .from = dp->conf.routes_from};
	int rc = rtnl_setup(&dp->worker[W_RTNL], &rtnl);

	if (rc == 0)
		rc = worker_prepare(&dp->worker[W_RTNL]);
	/*
	 * With a large checkpoint, start rtnl after rib, so that rtnl knows whether rib
	 * could use the checkpoint.
	 */
	if (rc < 0 || rib_checkpoint_routes(dp->last_checkpoint.fd) > KERNEL_LARGE)
		return rc;
	return worker_launch(&dp->worker[W_RTNL]);
}

/*
 * Start rib first, because to read the checkpoint of a large table takes longer than to
 * start DPDK and the ports, and needs neither of them. threads_start() waits for rib and
 * reports its errors.
 */
int
rib_begin(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	struct worker *w = dp->worker;
	struct rib_conf rib = {.neigh = &w[W_NEIGH],
			       .fpm = &w[W_FPM],
			       .rtnl = &w[W_RTNL],
			       .from = conf->routes_from,
			       .feedback = conf->fpm_feedback,
			       .through_kernel = conf->through_kernel,
			       .sweep_quiet_s = conf->sweep_quiet_s,
			       .sweep_max_s = conf->sweep_max_s,
			       .sweep_restart_s = conf->sweep_restart_s,
			       .checkpoint = sd_has_manager(),
			       .checkpoint_fd = last_checkpoint_take(dp),
			       .successor = dp->predecessor >= 0,
			       .checkpoint_max_age_s = conf->checkpoint_max_age_s,
			       .netns_id = netns_id(conf->control_netns),
			       .limits = &dp->conf.limits};
	struct fib_conf fib = {
		.retire = rib_retire, .retire_ctx = &w[W_RIB], .limits = &dp->conf.limits};
	int rc = rib_setup(&w[W_RIB], &rib);

	if (conf->fib_per_node)
		fib_conf_nodes(&fib, dp->rxq_assign.node, conf->n_core);
	if (rc == 0)
		rc = fib_create(&dp->fib, &fib);
	if (rc < 0)
		return rc;
	for (unsigned int c = 0; c < fib.n_nodes; c++)
		log_info("main: fib created node=%d%s%s%s", fib.node[c],
			 dp->fib->copy[c].refused != 0 ? " bind_error=\"" : "",
			 dp->fib->copy[c].refused != 0 ? strerror(dp->fib->copy[c].refused)
						       : "",
			 dp->fib->copy[c].refused != 0 ? "\"" : "");
	rib_set_fib(&w[W_RIB], dp->fib);
	rc = worker_prepare(&w[W_RIB]);
	if (rc == 0)
		rc = rtnl_begin(dp);
	/* A predecessor still writes the checkpoint: then start rib later. */
	return rc < 0 || dp->predecessor >= 0 ? rc : worker_launch(&w[W_RIB]);
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

/* Return the ticks a second of policer_ticks(). */
static double
ticks_s(void)
{
	return (double)rte_get_tsc_hz() * (1u << POLICER_TICK_SHIFT);
}

int
workers_setup(struct dataplane *dp)
{
	const struct config *conf = &dp->conf;
	static char listen[CONFIG_LISTEN_STRLEN]; /* static, because ui keeps the pointer */
	/*
	 * True if no other daemon can forward instead of this daemon: then a busy address
	 * must not end the start.
	 */
	bool next = sd_is_restarted() || dp->predecessor >= 0;
	struct worker *w = dp->worker;
	struct neigh_conf neigh = {.count = counters_register("neigh"),
				   .rib = &w[W_RIB],
				   .punt = &w[W_PUNT],
				   .manage = &w[W_MANAGE],
				   .netns = conf->control_netns,
				   .mpls_all = conf->mpls_all,
				   .rp_filter_ignored = conf->rp_filter_ignored,
				   .port = dp->port,
				   .n_port = PORT_SLOTS};
	struct punt_conf punt = {.neigh = &w[W_NEIGH],
				 .port = dp->port,
				 .n_port = PORT_SLOTS,
				 .rings = dp->rings,
				 .n_fwd = conf->n_core,
				 .no_lcore = nicd_is_connected(),
				 .pool = dp->pool};
	struct fpm_conf fpm = {.rib = &w[W_RIB],
			       .netns = conf->control_netns,
			       .listen = conf->fpm_listen,
			       .from = conf->fpm_from,
			       .off = conf->routes_from == ROUTES_FROM_KERNEL,
			       .retry_listen = next,
			       .queue_limit_bytes = conf->fpm_queue_limit_bytes};
	struct trace_conf trace = {.rib = &w[W_RIB],
				   .neigh = &w[W_NEIGH],
				   .port = dp->port,
				   .n_port = PORT_SLOTS,
				   .version = FPMDP_VERSION,
				   .explain = fwd_explain};
	struct ui_conf ui = {.rib = &w[W_RIB],
			     .neigh = &w[W_NEIGH],
			     .fpm = &w[W_FPM],
			     .rtnl = &w[W_RTNL],
			     .bfd_dplane = conf->bfd.on ? conf->bfd.name : NULL,
			     .routes_from = routes_from_name(conf->routes_from),
			     .instructions = fwd_cpu_uses(),
			     .instructions_best = fwd_cpu_best(),
			     .trace = &w[W_TRACE],
			     .manage = &w[W_MANAGE],
			     .warn = &w[W_WARN],
			     .filter = &w[W_FILTER],
			     .sflow = &w[W_SFLOW],
			     .bfd = &w[W_BFD],
			     .port = dp->port,
			     .n_port = PORT_SLOTS,
			     .serving = dp->serving,
			     .cpu = dp->conf.core,
			     .n_fwd = conf->n_core,
			     .control_socket = conf->control_socket,
			     .metrics_on = conf->metrics_on,
			     .metrics_listen = conf->metrics_listen,
			     .metrics_retry = next,
			     .netns = conf->control_netns,
			     .version = FPMDP_VERSION,
			     .dpdk = rte_version(),
			     .config_file = conf->file,
			     .fpm_listen = config_listen_str(&conf->fpm_listen, listen),
			     .hugepages = conf->hugepages,
			     .memory_mib = conf->memory_mib};
	struct warn_conf warn = {.rib = &w[W_RIB],
				 .neigh = &w[W_NEIGH],
				 .netns = conf->control_netns,
				 .filter = conf->filter_table,
				 .rp_filter_ignored = conf->rp_filter_ignored};
	struct filter_conf filter = {.netns = conf->control_netns,
				     .table = conf->filter_table,
				     .pass_on_error = conf->filter_pass,
				     .n_thread = conf->n_core + 2,
				     .ticks = policer_ticks,
				     .ticks_s = ticks_s};
	struct sflow_setup sflow = {.rib = &w[W_RIB],
				    .port = dp->port,
				    .netns = conf->control_netns,
				    .conf = conf->sflow};
	struct bfd_setup bfd = {.rib = &w[W_RIB],
				.punt = &w[W_PUNT],
				.rings = dp->rings,
				.n_fwd = conf->n_core,
				.full_rounds = NIC_QUEUE_MAX / conf->rx_burst + 1,
				.netns = conf->control_netns,
				.conf = conf->bfd};
	struct manage_conf manage = {.running = &dp->running,
				     .poll_always = dp->poll_by_option,
				     .rib = &w[W_RIB],
				     .fpm = &w[W_FPM],
				     .sflow = &w[W_SFLOW],
				     .ports = &dp->hotplug};
	int rc;

	dp->hotplug = (struct hotplug){.port = dp->port,
				       .pool = dp->pool,
				       .rxq_assign = &dp->rxq_assign,
				       .neigh = &w[W_NEIGH],
				       .punt = &w[W_PUNT]};
	manage.hooks = dp->hooks = hooks_new(dp->fib);
	if (dp->hooks == NULL)
		return -ENOMEM;
	neigh.fib = punt.fib = ui.fib = trace.fib = dp->fib;
	warn.fib = filter.fib = dp->fib;
	sflow.fib = bfd.fib = dp->fib;
	if (conf->bfd.on) {
		bfd.table = dp->bfd_table = bfd_table_create();
		punt.bfd_elsewhere = true;
		if (bfd.table == NULL)
			return -ENOMEM;
	}
	neigh.limits = punt.limits = ui.limits = &dp->conf.limits;
	punt.count = counters_register("punt");
	punt.watch = trace.watch = dp->watch = watch_create();
	sflow.watch = dp->sampler = watch_create();
	if (dp->watch == NULL || dp->sampler == NULL)
		return -ENOMEM;
	punt.watch_ring = watch_ring_add(dp->watch, &punt.count->watch_lost);
	if (punt.watch_ring == NULL)
		return -ENOMEM;
	rc = neigh_setup(&w[W_NEIGH], &neigh);
	raw_open(conf, punt.raw);
	if (rc == 0)
		rc = punt_setup(&w[W_PUNT], &punt);
	if (rc == 0)
		rc = fpm_setup(&w[W_FPM], &fpm);
	if (rc == 0)
		rc = trace_setup(&w[W_TRACE], &trace);
	if (rc == 0)
		rc = ui_setup(&w[W_UI], &ui);
	if (rc == 0)
		rc = manage_setup(&w[W_MANAGE], &manage);
	if (rc == 0)
		rc = warn_setup(&w[W_WARN], &warn);
	if (rc == 0)
		rc = filter_setup(&w[W_FILTER], &filter);
	if (rc == 0)
		rc = sflow_setup(&w[W_SFLOW], &sflow);
	if (rc == 0)
		rc = bfd_setup(&w[W_BFD], &bfd);
	for (unsigned int i = W_NEIGH; i < N_WORKER && rc == 0; i++)
		rc = worker_prepare(&w[i]);
	return rc;
}

/* Wait until the FIB has all that rtnl and neigh have learned from the kernel. */
static void
kernel_state_await(struct dataplane *dp)
{
	/*
	 * rtnl has sent all routes that forwarding needs before its first wait, and may now
	 * continue to read: do not wait for it.
	 */
	struct worker *const settling[] = {&dp->worker[W_RIB], &dp->worker[W_NEIGH]};

	worker_settle(settling, 2);
}

/*
 * Let rtnl read the tables that it has not read because a checkpoint had their routes. No
 * packet waits for them.
 */
static void
kernel_state_confirm(struct dataplane *dp)
{
	if (atomic_load_explicit(&kernel_status.restored, memory_order_relaxed) != 0)
		worker_send(&dp->worker[W_RTNL], msg_new(MSG_REPLAY, sizeof(struct msg)));
}

/*
 * Start the forwarders when the FIB has the kernel's state: with only the routes of a
 * checkpoint, without connected routes, packets would be misrouted. Start the threads for
 * clients and zebra last, because no packet waits for them.
 */
int
threads_start(struct dataplane *dp)
{
	/* bfd follows neigh, because the interfaces of its sessions have to be in the FIB. */
	static const int start_order[] = {W_RIB,   W_RTNL,   W_PUNT,  W_FILTER,
					  W_NEIGH, W_BFD,    W_TRACE, W_SFLOW,
					  W_FPM,   W_MANAGE, W_WARN,  W_UI};
	int rc;

	for (unsigned int i = 0; i < N_WORKER; i++) {
		struct worker *w = &dp->worker[start_order[i]];

		rc = worker_start(w);
		sd_send_nowait("WATCHDOG=1"); /* a successor sends it from COMMITTED on */
		if (rc < 0)
			log_error("main: thread does not start thread=%s error=\"%s\"",
				  w->ops->name, strerror(-rc));
		if (rc < 0)
			return rc;
		if (start_order[i] == W_PUNT)
			cpus_allow_forwarding(w->thread);
		if (start_order[i] != W_NEIGH)
			continue;
		rc = bfd_take_over(&dp->worker[W_BFD]);
		if (rc < 0)
			log_error("main: sessions of bfd not taken over error=\"%s\"",
				  strerror(-rc));
		if (rc < 0)
			return rc;
		kernel_state_await(dp);
		forwarders_launch(dp);
		kernel_state_confirm(dp);
	}
	return 0;
}

/*
 * The order in which the workers end. warn, filter and rib are the last, because they do
 * not use ports.
 */
static const int end_order[N_WORKER] = {W_UI,    W_MANAGE, W_FPM,    W_TRACE,
					W_SFLOW, W_BFD,    W_NEIGH,  W_PUNT,
					W_RTNL,  W_WARN,   W_FILTER, W_RIB};
#define N_WITH_PORTS (N_WORKER - 3)

/*
 * End all threads that use a port, and free the devices, because a successor waits only for
 * this. Request the end of warn and filter first: a scan or read may wait for the kernel,
 * and ends meanwhile.
 */
void
ports_end(struct dataplane *dp, enum end end)
{
	worker_stop_ask(&dp->worker[W_WARN]);
	worker_stop_ask(&dp->worker[W_FILTER]);
	for (unsigned int i = 0; i < 3; i++)
		worker_stop(&dp->worker[end_order[i]]);
	hooks_end(dp->hooks);
	forwarders_end(dp);
	for (unsigned int i = 3; i < N_WITH_PORTS; i++)
		worker_stop(&dp->worker[end_order[i]]);
	ports_close(dp->port, end == END_FAILED);
}

unsigned int
threads_descriptors(const struct dataplane *dp, struct named_fd *into)
{
	static_assert(BFD_DESCRIPTORS <= FDSTORE_THREADS, "there is room for them");

	return bfd_descriptors(&dp->worker[W_BFD], into);
}

void
threads_end(struct dataplane *dp, enum end end)
{
	ports_end(dp, end);
	for (unsigned int i = N_WITH_PORTS; i < N_WORKER; i++)
		worker_stop(&dp->worker[end_order[i]]);
	/*
	 * Wait until all RCU callbacks have sent their reclaims, before the mailboxes are
	 * freed.
	 */
	urcu_qsbr_barrier();
	for (unsigned int i = 0; i < N_WORKER; i++)
		worker_free(&dp->worker[end_order[i]]);
	ui_teardown(&dp->worker[W_UI], end != END_RESTART);
	warn_teardown(&dp->worker[W_WARN]);
	filter_teardown(&dp->worker[W_FILTER]);
	manage_teardown(&dp->worker[W_MANAGE]);
	bfd_teardown(&dp->worker[W_BFD]);
	sflow_teardown(&dp->worker[W_SFLOW]);
	trace_teardown(&dp->worker[W_TRACE]);
	fpm_teardown(&dp->worker[W_FPM]);
	punt_teardown(&dp->worker[W_PUNT]);
	neigh_teardown(&dp->worker[W_NEIGH]);
	rtnl_teardown(&dp->worker[W_RTNL]);
	rib_teardown(&dp->worker[W_RIB]);
	hooks_free(dp->hooks);
	if (dp->fib != NULL)
		fib_destroy(dp->fib);
	watch_free(dp->watch);
	watch_free(dp->sampler);
	forwarders_free(dp);
	bfd_table_free(dp->bfd_table);
}
