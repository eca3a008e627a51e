/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the CPUs that forward, and the CPUs that serve the receive queues of a port. */
#include <sched.h>
#include <string.h>
#include <yaml.h>

#include "config/check.h"
#include "config/types.h"

/*
 * Return true if this process may run on the CPU. The affinity mask is read once, at the
 * first check, because control threads are later kept off the forwarding CPUs, and a reload
 * must check against the same mask.
 */
static bool
cpu_allowed(unsigned int cpu)
{
	static cpu_set_t set[8]; /* 8192 CPUs: the largest limit of Linux, on x86-64 */
	static bool known;

	if (!known)
		known = sched_getaffinity(0, sizeof(set), set) == 0;
	return known && CPU_ISSET_S(cpu, sizeof(set), set);
}

/*
 * Read a list of CPUs; `auto` gives an empty list. With `once` a repeated CPU is an error.
 */
static void
take_cpus(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, bool once,
	  unsigned int *cpus, unsigned int *n_cpu)
{
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	*n_cpu = 0;
	if (n->type != YAML_SEQUENCE_NODE) {
		const char *text = cfg_text(c, key, at, NULL);

		if (text != NULL && strcmp(text, "auto") != 0)
			cfg_error(c, at, "'%s' is not a list; expected %s",
				  cfg_escape(text), key->expected);
		return;
	}
	if (n->data.sequence.items.start == n->data.sequence.items.top)
		cfg_error(c, at, "is an empty list; expected %s", key->expected);
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		static const struct cfg_key number = {.max = 8191,
						      .expected = "the number of a CPU"};
		char path[CFG_PATH_MAX];
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};
		unsigned int cpu, j = 0;

		cfg_place(&item, item.node);
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		if (i == CONFIG_CORES_MAX) {
			cfg_error(c, &item, "is one too many; expected at most %u",
				  CONFIG_CORES_MAX);
			return;
		}
		if (cfg_number(c, &number, &item, &cpu) < 0)
			continue;
		while (j < *n_cpu && cpus[j] != cpu)
			j++;
		if (once && j < *n_cpu)
			cfg_error(c, &item, "CPU %u is listed twice; expected once", cpu);
		else if (!cpu_allowed(cpu))
			cfg_error(
				c, &item,
				"no CPU %u for this process; expected one that `nproc` and "
				"`taskset -p $$` allow",
				cpu);
		else
			cpus[(*n_cpu)++] = cpu;
	}
}

static const char *
cpus_text(const unsigned int *cpu, unsigned int n_cpu, char buf[CFG_TEXT_MAX])
{
	size_t n = 0;

	if (n_cpu == 0)
		return "auto";
	for (unsigned int i = 0; i < n_cpu; i++)
		n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "%s%u",
				      i == 0 ? "[" : ", ", cpu[i]);
	snprintf(buf + n, CFG_TEXT_MAX - n, "]");
	return buf;
}

void
cfg_take_cores(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct config *conf = out;

	take_cpus(c, key, at, true, conf->core, &conf->n_core);
}

const char *
cfg_text_cores(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config *conf = base;

	return cpus_text(conf->core, conf->n_core, buf);
}

void
cfg_take_port_cores(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		    void *out)
{
	struct config_port *port = out;

	port->cores_pos = at->pos;
	take_cpus(c, key, at, false, port->core, &port->n_core);
}

const char *
cfg_text_port_cores(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config_port *port = base;

	return cpus_text(port->core, port->n_core, buf);
}

void
cfg_check_port_cores(struct cfg *c, const struct config *conf)
{
	/* Read the mask at the first check, even if no key names a CPU. */
	(void)cpu_allowed(0);
	for (unsigned int i = 0; i < conf->n_port; i++) {
		const struct config_port *port = &conf->port[i];
		char path[CFG_PATH_MAX];

		snprintf(path, sizeof(path), "%s.cores", c->port_path[i]);
		if (port->n_core != 0 && conf->n_core == 0) {
			cfg_error_at(c, port->cores_pos, path,
				     "names CPUs, but `cores:` is auto: one CPU serves all "
				     "queues; expected auto, or a list at `cores:`");
			continue;
		}
		if (port->n_core != 0 && port->n_rxq != 0 && port->n_core != port->n_rxq)
			cfg_error_at(c, port->cores_pos, path,
				     "has %u CPU%s for %u queue%s; expected one per queue",
				     port->n_core, port->n_core == 1 ? "" : "s",
				     port->n_rxq, port->n_rxq == 1 ? "" : "s");
		for (unsigned int q = 0; q < port->n_core; q++) {
			unsigned int k = 0;

			while (k < conf->n_core && conf->core[k] != port->core[q])
				k++;
			if (k == conf->n_core) {
				cfg_error_at(c, port->cores_pos, path,
					     "CPU %u does not forward; expected one of the "
					     "list at `cores:`",
					     port->core[q]);
				break;
			}
		}
	}
}
