/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of keys: a row per key, with its type and its bounds; the mappings and lists
 * that contain keys; the defaults. design.md lists the places to change for a new key of a
 * port.
 */
#include "config/schema.h"

#include <string.h>
#include <yaml.h>

#include "config/load.h"
#include "config/types.h"

/*
 * 1.2 million routes of 48 octets are 55 MiB: the queue has room for them even if rib has
 * handled none.
 */
#define QUEUE_MIN_MIB 64
/* The largest number of packet buffers (eal_pool()) takes about 4 GiB. */
#define MEMORY_MAX_MIB 16384
/* FIB_ADJ_MAX of fib/fib.h less the number 0, which means none. */
#define LIMIT_ADJ_HOSTS 262143u

#define AT(member)                                 \
	.offset = offsetof(struct config, member), \
	.size = sizeof(((struct config *)0)->member)
#define P_AT(member)                                    \
	.offset = offsetof(struct config_port, member), \
	.size = sizeof(((struct config_port *)0)->member)
/* The size alone, for functions that get the whole port. */
#define P_OF(member) .size = sizeof(((struct config_port *)0)->member)
/* The words of a key, in the order of their values. */
#define WORDS(...)                     \
	.words = (const char *const[]) \
	{                              \
		__VA_ARGS__, NULL      \
	}
#define ADDRESS_WANTED "an address, or auto"
#define LISTEN_WANTED  "ADDRESS:PORT, such as 127.0.0.1:2620 or \"[::1]:2620\""

const struct cfg_key cfg_port_keys[] = {
	{"tap", cfg_take_port_tap, P_OF(tap), .required = true,
	 .expected = "1 to 15 characters, no slash, blank, colon or percent, such as wan0",
	 .text = cfg_text_tap, .live = true},
	{"device", cfg_take_port_device, P_OF(device), .required = true,
	 .expected = "a PCI address (0000:03:00.0) or DPDK devargs "
		     "(net_af_packet,iface=veth-wan)",
	 .text = cfg_text_device, .live = true},
	{"mtu", cfg_take_uint, P_AT(mtu_bytes), .min = CONFIG_MTU_MIN,
	 .max = CONFIG_MTU_MAX, .text = cfg_text_uint, .live = true},
	{"queues", cfg_take_uint, P_AT(n_rxq), .min = 1, .max = 64, .text = cfg_text_queues,
	 .live = true},
	{"cores", cfg_take_port_cores,
	 .expected = "one CPU per queue, such as [1, 2], or auto",
	 .text = cfg_text_port_cores, .live = true},
	{"vlan-offload", cfg_take_word, P_AT(options.vlan_off), WORDS("auto", "off"),
	 .text = cfg_text_word, .live = true},
	{"checksum-offload", cfg_take_word, P_AT(options.cksum_off), WORDS("auto", "off"),
	 .text = cfg_text_word, .live = true},
	{NULL},
};

/*
 * Write the name of a port for messages: its `tap` as the file has it, valid or not; else
 * its `device`; else its index.
 */
static void
port_path(struct cfg *c, const struct cfg_at *item, unsigned int i)
{
	const char *word = cfg_peek(c, item, "tap");

	if (word == NULL)
		word = cfg_peek(c, item, "device");
	if (word != NULL)
		snprintf(c->port_path[i], sizeof(c->port_path[i]), "ports[%s]",
			 cfg_escape(word));
	else
		snprintf(c->port_path[i], sizeof(c->port_path[i]), "ports[%u]", i);
}

static void
take_ports(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;
	const yaml_node_t *n = at->node;

	if (n->type != YAML_SEQUENCE_NODE ||
	    n->data.sequence.items.start == n->data.sequence.items.top) {
		cfg_error(c, at, "is not a list, or is empty; expected %s", key->expected);
		return;
	}
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++) {
		struct cfg_at item = {.path = c->port_path[conf->n_port],
				      .node = yaml_document_get_node(c->doc, *it)};
		struct config_port *port;

		cfg_place(&item, item.node);
		port_path(c, &item, conf->n_port);
		if (conf->n_port == CONFIG_PORTS_MAX) {
			cfg_error(c, &item, "is one too many; expected at most %u",
				  CONFIG_PORTS_MAX);
			return;
		}
		port = &conf->port[conf->n_port++];
		config_port_defaults(port);
		port->pos = item.pos;
		cfg_walk(c, cfg_port_keys, &item, port);
	}
}

static const struct cfg_key routes_keys[] = {
	{"from", cfg_take_word, AT(routes_from), WORDS("both", "fpm", "kernel"),
	 .text = cfg_text_word},
	{"through-kernel", cfg_take_bool, AT(through_kernel), .expected = "true or false",
	 .text = cfg_text_bool, .live = true},
	{NULL},
};

static const struct cfg_key mpls_keys[] = {
	{"input", cfg_take_word, AT(mpls_all), WORDS("kernel", "all"),
	 .text = cfg_text_word},
	{NULL},
};

static const struct cfg_key filter_keys[] = {
	{"table", cfg_take_filter_tables, AT(filter_table),
	 .expected =
		 "a table of nft as FAMILY NAME, such as \"inet transit\", or a list of "
		 "at most 4",
	 .text = cfg_text_filter_tables},
	{"on-error", cfg_take_word, AT(filter_pass), WORDS("drop", "pass"),
	 .text = cfg_text_word},
	{NULL},
};

static const struct cfg_key sflow_keys[] = {
	{"collectors", cfg_take_collectors,
	 .expected = "a list such as [\"192.0.2.9:6343\"]", .text = cfg_text_collectors,
	 .live = true},
	{"rate", cfg_take_uint, AT(sflow.rate), .min = 1, .max = SFLOW_RATE_MAX,
	 .text = cfg_text_uint, .live = true},
	{"agent", cfg_take_address, AT(sflow.agent), .expected = ADDRESS_WANTED,
	 .text = cfg_text_address, .live = true},
	{"source", cfg_take_address, AT(sflow.source), .expected = ADDRESS_WANTED,
	 .text = cfg_text_address, .live = true},
	{"counters-s", cfg_take_uint, AT(sflow.counters_s), .max = 3600,
	 .text = cfg_text_uint, .live = true},
	{"drops", cfg_take_bool, AT(sflow.drops), .expected = "true or false",
	 .text = cfg_text_bool, .live = true},
	{"header", cfg_take_uint, AT(sflow.header_bytes), .min = SFLOW_HEADER_MIN,
	 .max = SFLOW_HEADER_MAX, .text = cfg_text_uint, .live = true},
	{"psample", cfg_take_uint, AT(sflow.psample), .max = SFLOW_PSAMPLE_MAX,
	 .text = cfg_text_uint, .live = true},
	{NULL},
};

static const struct cfg_key bfd_keys[] = {
	{"dplane", cfg_take_dplane,
	 .expected = "ADDRESS or ADDRESS:PORT, such as 127.0.0.1:50700 or \"[::1]:50700\"",
	 .text = cfg_text_dplane},
	{NULL},
};

static const struct cfg_key fpm_keys[] = {
	{"listen", cfg_take_fpm_listen, AT(fpm_listen), .expected = LISTEN_WANTED,
	 .text = cfg_text_listen},
	{"peer", cfg_take_peer, AT(fpm_from.peer), .expected = "an address, or self",
	 .text = cfg_text_peer},
	{"users", cfg_take_users, .expected = "a list such as [frr, \"101\"], auto or any",
	 .text = cfg_text_users},
	{"feedback", cfg_take_bool, AT(fpm_feedback), .expected = "true or false",
	 .text = cfg_text_bool, .live = true},
	{"queue-limit-mib", cfg_take_mib, AT(fpm_queue_limit_bytes), .min = QUEUE_MIN_MIB,
	 .max = 65536, .text = cfg_text_mib, .live = true},
	{"sweep-quiet-s", cfg_take_uint, AT(sweep_quiet_s), .min = 1, .max = 3600,
	 .text = cfg_text_uint, .live = true},
	{"sweep-max-s", cfg_take_uint, AT(sweep_max_s), .min = 1, .max = 86400,
	 .text = cfg_text_uint, .live = true},
	{"sweep-restart-s", cfg_take_uint, AT(sweep_restart_s), .min = 1, .max = 86400,
	 .text = cfg_text_uint, .live = true},
	{NULL},
};

static void
take_fpm(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;

	cfg_take_map(c, key, at, out);
	if (conf->sweep_max_s < conf->sweep_quiet_s)
		cfg_error_at(c, at->pos, "fpm.sweep-max-s",
			     "%u is less than sweep-quiet-s; expected at least %u",
			     conf->sweep_max_s, conf->sweep_quiet_s);
}

#define C_AT(member) .offset = offsetof(struct policer_conf, member)
#define RATE_WANTED  "a number from 0 to 10000000, or unlimited"
static const struct cfg_key policer_keys[] = {
	{"rate", cfg_take_rate, C_AT(rate), .max = POLICER_RATE_MAX,
	 .expected = RATE_WANTED, .text = cfg_text_rate, .live = true},
	{"burst", cfg_take_uint, C_AT(burst), .min = 1, .max = POLICER_BURST_MAX,
	 .text = cfg_text_uint, .live = true},
	{"source-rate", cfg_take_rate, C_AT(source_rate), .max = POLICER_RATE_MAX,
	 .expected = RATE_WANTED, .text = cfg_text_rate, .live = true},
	{"source-burst", cfg_take_uint, C_AT(source_burst), .min = 1,
	 .max = POLICER_BURST_MAX, .text = cfg_text_uint, .live = true},
	{NULL},
};

static const struct cfg_key class_keys[] = {
#define CLASS(id, name, key, rate, burst, source_rate, source_burst, text)           \
	{name, cfg_take_map, .offset = offsetof(struct config, policer[CLASS_##id]), \
	 .sub = policer_keys},
#include "base/punt_class.def"
#undef CLASS
	{NULL},
};

static const struct cfg_key memory_keys[] = {
	{"hugepages", cfg_take_bool, AT(hugepages), .expected = "true or false",
	 .text = cfg_text_bool},
	{"size-mib", cfg_take_memory, AT(memory_mib), .min = 64, .max = MEMORY_MAX_MIB,
	 .text = cfg_text_uint},
	{"fib-copies", cfg_take_word, AT(fib_per_node), WORDS("one", "per-node"),
	 .text = cfg_text_word},
	{NULL},
};

static const struct cfg_key limit_keys[] = {
#define TABLE(name, room, max, about)
#define LIMIT(name, key, room, least, usual, most, about) \
	{key,                                             \
	 cfg_take_uint,                                   \
	 AT(limits.max[TABLE_##name]),                    \
	 .min = (least),                                  \
	 .max = (most),                                   \
	 .text = cfg_text_uint,                           \
	 .old_name = TABLE_##name == TABLE_neighbors ? "neighbours" : NULL},
#include "base/limits.def"
#undef LIMIT
#undef TABLE
	{NULL},
};

/*
 * Read the limits. Check the sum of the limits for adjacencies and for hosts, because these
 * share the numbers that forwarders read.
 */
static void
take_limits(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;
	const unsigned int *max = conf->limits.max;

	cfg_take_map(c, key, at, out);
	if (max[TABLE_adjacencies] + max[TABLE_hosts] > LIMIT_ADJ_HOSTS)
		cfg_error_at(c, at->pos, "limits.hosts",
			     "%u and adjacencies, %u, are more than %u together; expected "
			     "at most %u",
			     max[TABLE_hosts], max[TABLE_adjacencies], LIMIT_ADJ_HOSTS,
			     LIMIT_ADJ_HOSTS - max[TABLE_adjacencies]);
}

const struct cfg_key cfg_top_keys[] = {
	{"ports", take_ports, .required = true, .sub = cfg_port_keys,
	 .expected = "a list of ports, each with tap and device"},
	{"cores", cfg_take_cores,
	 .expected = "a list of CPU numbers such as [1, 2], or auto",
	 .text = cfg_text_cores},
	{"control-netns", cfg_take_netns, AT(control_netns),
	 .expected = "a name as `ip netns` shows it", .text = cfg_text_string},
	{"routes", cfg_take_map, .sub = routes_keys},
	{"mpls", cfg_take_map, .sub = mpls_keys},
	{"rp-filter", cfg_take_word, AT(rp_filter_ignored), WORDS("obey", "ignore"),
	 .text = cfg_text_word},
	{"filter", cfg_take_map, .sub = filter_keys},
	{"sflow", cfg_take_map, .sub = sflow_keys},
	{"bfd", cfg_take_map, .sub = bfd_keys},
	{"fpm", take_fpm, .sub = fpm_keys},
	{"policers", cfg_take_map, .sub = class_keys},
	{"control-socket", cfg_take_path, AT(control_socket),
	 .expected = "an absolute path of at most 107 characters", .text = cfg_text_string},
	{"metrics", cfg_take_metrics, AT(metrics_listen),
	 .expected = LISTEN_WANTED ", or off", .text = cfg_text_metrics},
	{"checkpoint-max-age-s", cfg_take_uint, AT(checkpoint_max_age_s), .min = 0,
	 .max = 3600, .text = cfg_text_uint, .live = true},
	{"keep-nics", cfg_take_keep_nics, AT(keep_nics), .expected = "true or false",
	 .text = cfg_text_bool},
	{"memory", cfg_take_map, .sub = memory_keys},
	{"limits", take_limits, .sub = limit_keys},
	{"plugins", cfg_take_plugins,
	 .expected = "a list of absolute paths of shared objects",
	 .text = cfg_text_plugins},
	{"idle", cfg_take_word, AT(poll_always), WORDS("adaptive", "poll"),
	 .text = cfg_text_word},
	{"instructions", cfg_take_word, AT(instructions),
	 WORDS("auto", "scalar", "sse4", "avx2", "avx512"), .text = cfg_text_word},
	{"rx-burst", cfg_take_uint, AT(rx_burst), .min = 1, .max = CONFIG_BURST_MAX,
	 .text = cfg_text_uint},
	{"tx-burst", cfg_take_uint, AT(tx_burst), .min = 1, .max = CONFIG_BURST_MAX,
	 .text = cfg_text_uint},
	{"log-level", cfg_take_word, AT(log_level), WORDS("error", "warn", "info", "debug"),
	 .text = cfg_text_word, .live = true},
	{NULL},
};

void
config_port_defaults(struct config_port *port)
{
	*port = (struct config_port){.mtu_bytes = 1500};
}

void
cfg_defaults(struct config *conf)
{
	memset(conf, 0, sizeof(*conf));
	snprintf(conf->control_socket, sizeof(conf->control_socket),
		 "/run/fpm-dataplane/control.sock");
	cfg_listen_parse("127.0.0.1:2620", &conf->fpm_listen);
	cfg_listen_parse("127.0.0.1:9620", &conf->metrics_listen);
	conf->metrics_on = true;
	conf->through_kernel = true;
	conf->fpm_queue_limit_bytes = 512u << 20;
	conf->sweep_quiet_s = 5;
	conf->sweep_max_s = 120;
	conf->sweep_restart_s = 120;
	memcpy(conf->policer, policer_default, sizeof(conf->policer));
	for (unsigned int t = 0; t < N_TABLE; t++)
		conf->limits.max[t] = table_limit(NULL, (enum table)t);
	conf->sflow.rate = 1000;
	conf->sflow.header_bytes = 128;
	conf->sflow.counters_s = 20;
	conf->checkpoint_max_age_s = 60;
	conf->memory_mib = 256;
	conf->rx_burst = conf->tx_burst = 64;
	conf->log_level = LOG_LEVEL_INFO;
}
