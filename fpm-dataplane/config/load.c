/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file: which keys there are, their defaults and bounds, and the file
 * itself. Runs in main before any thread exists. A new key is one line in a table here, one
 * in config/config.h, one in dist/fpm-dataplane.yaml. Nothing here starts or changes
 * anything: the same code serves --check.
 */
#include "config/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/check.h"

/* All ports with all keys and long device arguments are 30 KiB; the rest is for comments. */
#define FILE_MAX_BYTES (64u << 10)
/* The tables go three deep. What libyaml does for a token grows with the depth. */
#define DEPTH_MAX 8
/* 1.2 million routes of 48 octets, should rib not have digested one of them: 55 MiB. */
#define QUEUE_MIN_MIB 64
/* Buffers for all packets that there can be (eal_pool()) are 4 GiB. */
#define MEMORY_MAX_MIB 16384
/* fib/fib.h: FIB_ADJ_MAX less the number 0, which means none. */
#define LIMIT_ADJ_HOSTS 262143u

#define AT(member)                                 \
	.offset = offsetof(struct config, member), \
	.size = sizeof(((struct config *)0)->member)
#define P_AT(member)                                    \
	.offset = offsetof(struct config_port, member), \
	.size = sizeof(((struct config_port *)0)->member)
/* The same, given to functions that look at the whole port. */
#define P_OF(member)  .size = sizeof(((struct config_port *)0)->member)
#define LISTEN_WANTED "ADDRESS:PORT, 127.0.0.1:2620 or \"[::1]:2620\""

/* One word of several. */
static int
take_word(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
	  const char *const *word)
{
	const char *text = cfg_text(c, key, at, NULL);

	for (int i = 0; text != NULL && word[i] != NULL; i++)
		if (strcmp(text, word[i]) == 0)
			return i;
	if (text != NULL)
		cfg_error(c, at, "'%s' is none of them; expected %s", cfg_show(text),
			  key->expected);
	return -EINVAL;
}

static void
take_idle(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	int i = take_word(c, key, at, (const char *const[]){"adaptive", "poll", NULL});

	if (i >= 0)
		*(bool *)out = i == 1;
}

static void
take_fib_copies(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	int i = take_word(c, key, at, (const char *const[]){"one", "per-node", NULL});

	if (i >= 0)
		*(bool *)out = i == 1;
}

static void
take_offload(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	int i = take_word(c, key, at, (const char *const[]){"auto", "off", NULL});

	if (i >= 0)
		*(bool *)out = i == 1;
}

static void
take_log_level(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	int i = take_word(c, key, at,
			  (const char *const[]){"error", "warn", "info", "debug", NULL});

	if (i >= 0)
		*(enum log_level *)out = (enum log_level)i;
}

static void
take_metrics(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = c->root;
	unsigned int n_err = c->n_err;

	conf->metrics_on = at->node->type != YAML_SCALAR_NODE ||
			   strcmp((const char *)at->node->data.scalar.value, "off") != 0;
	if (conf->metrics_on)
		cfg_take_listen(c, key, at, out);
	c->metrics_pos = at->pos;
	if (n_err != c->n_err)
		c->metrics_pos.line = -1;
}

static void
take_keep_nics(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	cfg_take_bool(c, key, at, out);
	c->keep_nics_pos = at->pos;
}

static void
take_fpm_listen(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	unsigned int n_err = c->n_err;

	cfg_take_listen(c, key, at, out);
	c->listen_pos = at->pos;
	if (n_err != c->n_err)
		c->listen_pos.line = -1;
}

static void
take_tap(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config_port *port = out;

	port->tap_pos = at->pos;
	cfg_take_tap(c, key, at, port->tap);
	cfg_check_tap_twin(c, at, c->root, port);
}

static void
take_device(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config_port *port = out;

	port->pos = at->pos;
	cfg_take_device(c, key, at, port->device);
	cfg_check_device_twin(c, at, c->root, port);
}

const struct cfg_key cfg_port_keys[] = {
	{"tap", take_tap, P_OF(tap), .required = true,
	 .expected = "1 to 15 characters, no slash, blank, colon or percent, such as wan0",
	 .text = cfg_text_tap, .live = true},
	{"device", take_device, P_OF(device), .required = true,
	 .expected = "a PCI address (0000:03:00.0) or DPDK devargs "
		     "(net_af_packet,iface=veth-wan)",
	 .text = cfg_text_device, .live = true},
	{"mtu", cfg_take_uint, P_AT(mtu_bytes), .min = CONFIG_MTU_MIN,
	 .max = CONFIG_MTU_MAX, .text = cfg_text_uint, .live = true},
	{"queues", cfg_take_uint, P_AT(n_rxq), .min = 1, .max = 64, .text = cfg_text_queues,
	 .live = true},
	{"cores", cfg_take_port_cores, .expected = "a CPU a queue, such as [1, 2], or auto",
	 .text = cfg_text_port_cores, .live = true},
	{"vlan-offload", take_offload, P_AT(vlan_off), .expected = "auto or off",
	 .text = cfg_text_offload, .live = true},
	{"checksum-offload", take_offload, P_AT(cksum_off), .expected = "auto or off",
	 .text = cfg_text_offload, .live = true},
	{NULL},
};

/*
 * A port as messages call it: by its name in the file, be that good or not, else by its
 * device, else by which of them it is.
 */
static void
port_path(struct cfg *c, const struct cfg_at *item, unsigned int i)
{
	const char *word = cfg_peek(c, item, "tap");

	if (word == NULL)
		word = cfg_peek(c, item, "device");
	if (word != NULL)
		snprintf(c->port_path[i], CFG_PATH_MAX, "ports[%s]", cfg_show(word));
	else
		snprintf(c->port_path[i], CFG_PATH_MAX, "ports[%u]", i);
}

static void
take_ports(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;
	const yaml_node_t *n = at->node;

	if (n->type != YAML_SEQUENCE_NODE ||
	    n->data.sequence.items.start == n->data.sequence.items.top) {
		cfg_error(c, at, "is no list or an empty one; expected %s", key->expected);
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
		cfg_port_defaults(port);
		port->pos = item.pos;
		cfg_walk(c, cfg_port_keys, &item, port);
	}
}

static const struct cfg_key fpm_keys[] = {
	{"listen", take_fpm_listen, AT(fpm_listen), .expected = LISTEN_WANTED,
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

/* Packets a second. */
static void
take_rate(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	if (at->node->type == YAML_SCALAR_NODE &&
	    strcmp((const char *)at->node->data.scalar.value, "unlimited") == 0)
		*(uint32_t *)out = POLICER_UNLIMITED;
	else
		cfg_take_uint(c, key, at, out);
}

#define C_AT(member) .offset = offsetof(struct policer_conf, member)
#define RATE_WANTED  "a number from 0 to 10000000, or unlimited"
static const struct cfg_key policer_keys[] = {
	{"rate", take_rate, C_AT(rate), .max = POLICER_RATE_MAX, .expected = RATE_WANTED,
	 .text = cfg_text_rate, .live = true},
	{"burst", cfg_take_uint, C_AT(burst), .min = 1, .max = POLICER_BURST_MAX,
	 .text = cfg_text_uint, .live = true},
	{"source-rate", take_rate, C_AT(source_rate), .max = POLICER_RATE_MAX,
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
	{"fib-copies", take_fib_copies, AT(fib_per_node), .expected = "one or per-node",
	 .text = cfg_text_copies},
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

/* Both have numbers of one space, which forwarders read. */
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
	{"fpm", take_fpm, .sub = fpm_keys},
	{"policers", cfg_take_map, .sub = class_keys},
	{"control-socket", cfg_take_path, AT(control_socket),
	 .expected = "an absolute path of at most 107 characters", .text = cfg_text_string},
	{"metrics", take_metrics, AT(metrics_listen), .expected = LISTEN_WANTED ", or off",
	 .text = cfg_text_metrics},
	{"checkpoint-max-age-s", cfg_take_uint, AT(checkpoint_max_age_s), .min = 0,
	 .max = 3600, .text = cfg_text_uint, .live = true},
	{"keep-nics", take_keep_nics, AT(keep_nics), .expected = "true or false",
	 .text = cfg_text_bool},
	{"memory", cfg_take_map, .sub = memory_keys},
	{"limits", take_limits, .sub = limit_keys},
	{"plugins", cfg_take_plugins,
	 .expected = "a list of absolute paths of shared objects",
	 .text = cfg_text_plugins},
	{"idle", take_idle, AT(poll_always), .expected = "adaptive or poll",
	 .text = cfg_text_idle},
	{"rx-burst", cfg_take_uint, AT(rx_burst), .min = 1, .max = CONFIG_BURST_MAX,
	 .text = cfg_text_uint},
	{"tx-burst", cfg_take_uint, AT(tx_burst), .min = 1, .max = CONFIG_BURST_MAX,
	 .text = cfg_text_uint},
	{"log-level", take_log_level, AT(log_level),
	 .expected = "error, warn, info or debug", .text = cfg_text_level, .live = true},
	{NULL},
};

void
cfg_port_defaults(struct config_port *port)
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
	conf->fpm_queue_limit_bytes = 512u << 20;
	conf->sweep_quiet_s = 5;
	conf->sweep_max_s = 120;
	conf->sweep_restart_s = 120;
	memcpy(conf->policer, policer_default, sizeof(conf->policer));
	for (unsigned int t = 0; t < N_TABLE; t++)
		conf->limits.max[t] = table_limit(NULL, (enum table)t);
	conf->checkpoint_max_age_s = 60;
	conf->memory_mib = 256;
	conf->rx_burst = conf->tx_burst = 64;
	conf->log_level = LOG_LEVEL_INFO;
}

/* Read all of it. Returns octets, or -errno after an error message. */
static ssize_t
slurp(const char *file, FILE *err, unsigned char **out)
{
	char shown[CONFIG_FILE_STRLEN];
	FILE *f = fopen(file, "re");
	unsigned char *buf = malloc(FILE_MAX_BYTES + 1);
	size_t n = 0;
	int rc = f == NULL ? -errno : buf == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		n = fread(buf, 1, FILE_MAX_BYTES + 1, f);
		rc = ferror(f) ? -errno : n > FILE_MAX_BYTES ? -EFBIG : 0;
	}
	if (f != NULL)
		fclose(f);
	if (rc == 0) {
		*out = buf;
		return (ssize_t)n;
	}
	free(buf);
	fprintf(err, "%s: cannot be read: %s; expected a YAML file of at most %u KiB\n",
		config_file_str(file, shown), strerror(-rc), FILE_MAX_BYTES >> 10);
	return rc;
}

static struct config_pos
pos_of(const yaml_mark_t *mark)
{
	return (struct config_pos){(int)mark->line + 1, (int)mark->column + 1};
}

/* What libyaml stumbled over, and the two commonest reasons in plain words. */
static void
syntax_error(struct cfg *c, const yaml_parser_t *p, const unsigned char *text, size_t len)
{
	size_t line = p->problem_mark.line, column = p->problem_mark.column, at = 0, n;
	const char *hint = "YAML";
	char buf[256];

	if (p->error == YAML_READER_ERROR) { /* knows an offset, not a line */
		line = column = 0;
		for (size_t i = 0; i < p->problem_offset && i < len; i++) {
			column = text[i] == '\n' ? 0 : column + 1;
			line += text[i] == '\n';
		}
	}
	for (size_t l = 0; l < line && at < len; at++)
		l += text[at] == '\n';
	for (n = 0; at + n < len && text[at + n] != '\n' && n < sizeof(buf) - 1; n++)
		buf[n] = text[at + n] != '\0' ? (char)text[at + n] : ' ';
	buf[n] = '\0';
	if (buf[strspn(buf, " ")] == '\t')
		hint = "spaces, not tabs, at the start of a line";
	else if (strstr(buf, "]:") != NULL)
		hint = "quotes around an IPv6 address: \"[::1]:2620\"";
	cfg_error_at(c, (struct config_pos){(int)line + 1, (int)column + 1}, "syntax",
		     "%s%s%s; expected %s", p->context != NULL ? p->context : "",
		     p->context != NULL ? ", " : "",
		     p->problem != NULL ? p->problem : "not readable", hint);
}

/*
 * Is anything nested deeper than DEPTH_MAX? Looked for event by event, so that reading ends
 * there: a file of nothing but brackets costs libyaml minutes to load. Bad syntax is left
 * to be told by the load.
 */
static bool
too_deep(struct cfg *c, const unsigned char *text, size_t len)
{
	bool more = true;
	yaml_parser_t parser;
	yaml_event_t event;
	int depth = 0;

	if (!yaml_parser_initialize(&parser))
		return false; /* out of memory: the load tells */
	yaml_parser_set_input_string(&parser, text, len);
	while (more && depth <= DEPTH_MAX && yaml_parser_parse(&parser, &event)) {
		more = event.type != YAML_STREAM_END_EVENT;
		if (event.type == YAML_SEQUENCE_START_EVENT ||
		    event.type == YAML_MAPPING_START_EVENT)
			depth++;
		else if (event.type == YAML_SEQUENCE_END_EVENT ||
			 event.type == YAML_MAPPING_END_EVENT)
			depth--;
		if (depth > DEPTH_MAX)
			cfg_error_at(c, pos_of(&event.start_mark), "syntax",
				     "lists and mappings stand one in another more than %d "
				     "deep; expected at most 3",
				     DEPTH_MAX);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return depth > DEPTH_MAX;
}

static void
check_document(struct cfg *c, struct config *conf)
{
	struct cfg_at top = {
		.pos = {1, 1}, .path = "", .node = yaml_document_get_root_node(c->doc)};

	if (top.node == NULL ||
	    (top.node->type == YAML_SCALAR_NODE && top.node->data.scalar.length == 0)) {
		cfg_error_at(c, top.pos, "ports",
			     "the file is empty; expected at least one port");
		return;
	}
	if (top.node->type != YAML_MAPPING_NODE) {
		cfg_error_at(c, pos_of(&top.node->start_mark), "top",
			     "is not a mapping; expected keys such as `ports:`");
		return;
	}
	cfg_walk(c, cfg_top_keys, &top, conf);
	cfg_find_users(conf);
	cfg_check_whole(c, conf);
}

int
config_parse(const char *file, const void *octets, size_t len, struct config *conf,
	     FILE *err)
{
	struct cfg c = {.file = file, .root = conf};
	const unsigned char *text = octets;
	yaml_parser_t parser;
	yaml_document_t doc;

	cfg_defaults(conf);
	if (too_deep(&c, text, len)) {
		cfg_errors_print(&c, err);
		return (int)c.n_err;
	}
	if (!yaml_parser_initialize(&parser)) {
		fprintf(err, "%s%sout of memory\n", file != NULL ? file : "",
			file != NULL ? ": " : "");
		return 1;
	}
	yaml_parser_set_input_string(&parser, text, len);
	if (!yaml_parser_load(&parser, &doc)) {
		syntax_error(&c, &parser, text, len);
	} else {
		c.doc = &doc;
		check_document(&c, conf);
		yaml_document_delete(&doc);
		/* A second document, or rubbish behind the first, is never read silently. */
		if (!yaml_parser_load(&parser, &doc)) {
			syntax_error(&c, &parser, text, len);
		} else {
			if (yaml_document_get_root_node(&doc) != NULL)
				cfg_error_at(&c, pos_of(&doc.start_mark), "---",
					     "starts a second document; expected one");
			yaml_document_delete(&doc);
		}
	}
	cfg_errors_print(&c, err);
	yaml_parser_delete(&parser);
	return (int)c.n_err;
}

const char *
config_file_str(const char *file, char buf[CONFIG_FILE_STRLEN])
{
	return log_escape_name(file, buf, CONFIG_FILE_STRLEN);
}

int
config_load(const char *file, struct config *conf, FILE *err)
{
	unsigned char *text = NULL;
	ssize_t len = slurp(file, err, &text);
	char shown[CONFIG_FILE_STRLEN];
	int n = 1;

	if (len >= 0)
		n = config_parse(config_file_str(file, shown), text, (size_t)len, conf,
				 err);
	snprintf(conf->file, sizeof(conf->file), "%s", file);
	free(text);
	return n;
}
