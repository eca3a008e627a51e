/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows: the rows of `show sflow` (keys: dist/openapi.yaml): the settings, the collectors,
 * psample, the ports.                                                           [sflow]
 */
#include <string.h>

#include "base/inet.h"
#include "base/log.h"
#include "port/port.h"
#include "sflow/impl.h"

static json_int_t
status_sum(const _Atomic uint64_t *field)
{
	return (json_int_t)atomic_load_explicit(field, memory_order_relaxed);
}

static json_t *
agent_json(const struct sflow *s)
{
	char text[PREFIX_STRLEN];

	return s->agent_family == 0
		       ? json_null()
		       : json_string(ipaddr_str(&s->agent, s->agent_family, text));
}

static json_t *
settings_row(const struct sflow *s)
{
	return json_pack(
		"{s:s, s:s, s:o, s:i, s:i, s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "kind",
		"agent", "state", sflow_is_on(&s->now) ? "on" : "off", "agent",
		agent_json(s), "rate", (int)s->now.rate, "header", (int)s->now.header_bytes,
		"counters_s", (int)s->now.counters_s, "drops", s->now.drops, "sequence",
		(json_int_t)s->sequence, "samples", status_sum(&sflow_status.samples),
		"discards", status_sum(&sflow_status.discards), "counters",
		status_sum(&sflow_status.counters), "samples_over",
		status_sum(&sflow_status.samples_over), "discards_over",
		status_sum(&sflow_status.discards_over));
}

static json_t *
collector_row(const struct collector *c)
{
	char vrf[2 * IFNAMSIZ];

	return json_pack("{s:s, s:s, s:o, s:s, s:s?, s:I, s:I}", "kind", "collector",
			 "address", c->conf.name, "vrf",
			 c->conf.vrf[0] == '\0'
				 ? json_null()
				 : json_string(log_utf8(c->conf.vrf, vrf, sizeof(vrf))),
			 "state",
			 c->logged_failing ? "failing"
			 : c->fd >= 0      ? "open"
					   : "closed",
			 "last_error", c->logged_failing ? strerror(c->error) : NULL,
			 "datagrams", (json_int_t)c->datagrams, "errors",
			 (json_int_t)c->errors);
}

static json_t *
psample_row(const struct sflow *s)
{
	const struct psample *ps = &s->psample;

	return json_pack("{s:s, s:I, s:s, s:s?, s:I, s:I}", "kind", "psample", "group",
			 (json_int_t)s->now.psample, "state",
			 psample_is_open(s) ? "open" : "failing", "last_error",
			 psample_error(ps), "samples", (json_int_t)ps->samples, "errors",
			 (json_int_t)ps->errors);
}

static json_t *
port_row(const struct sflow *s, const struct port *port)
{
	const struct source *source = &s->source[port->ifidx];

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "kind", "port", "name",
			 port->name, "samples", (json_int_t)source->sequence, "pool",
			 (json_int_t)source_pool(s, port->ifidx), "drops",
			 (json_int_t)source_lost(s, port->ifidx, false), "discards",
			 (json_int_t)source->discard_sequence, "discards_dropped",
			 (json_int_t)source_lost(s, port->ifidx, true));
}

void
sflow_rows(const struct sflow *s, json_t *rows)
{
	json_array_append_new(rows, settings_row(s));
	for (unsigned int i = 0; i < s->now.n_collector; i++)
		json_array_append_new(rows, collector_row(&s->collector[i]));
	if (s->now.psample != 0)
		json_array_append_new(rows, psample_row(s));
	for (unsigned int i = 0; i < PORT_SLOTS && sflow_is_on(&s->now); i++)
		if (port_is_there(&s->setup.port[i]))
			json_array_append_new(rows, port_row(s, &s->setup.port[i]));
}
