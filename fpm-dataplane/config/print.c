/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Print a configuration as YAML, list the keys, and compare two configurations, using the
 * tables that also read the file. Any thread; it writes only to the stream of the caller.
 */
#include "config/print.h"

#include <stdio.h>
#include <string.h>

#include "config/load.h"
#include "config/schema.h"
#include "config/types.h"

/* --- YAML ----------------------------------------------------------------------------- */

static void
show_ports(const struct config *conf, FILE *out)
{
	char buf[CFG_TEXT_MAX];

	fputs("ports:\n", out);
	for (unsigned int i = 0; i < conf->n_port; i++)
		for (const struct cfg_key *k = cfg_port_keys; k->name != NULL; k++) {
			const char *text = k->text(k, &conf->port[i], buf);

			if (text != NULL)
				fprintf(out, "  %s %s: %s\n",
					k == cfg_port_keys ? "-" : " ", k->name, text);
		}
}

static void
show_map(const struct cfg_key *keys, const void *base, int indent, FILE *out)
{
	char buf[CFG_TEXT_MAX];

	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		const char *text;

		if (k->sub == cfg_port_keys)
			continue;
		if (k->sub != NULL) {
			fprintf(out, "%*s%s:\n", indent, "", k->name);
			show_map(k->sub, cfg_value(k, base), indent + 2, out);
			continue;
		}
		text = k->text(k, base, buf);
		if (text != NULL)
			fprintf(out, "%*s%s: %s\n", indent, "", k->name, text);
	}
}

void
config_show(const struct config *conf, FILE *out)
{
	show_ports(conf, out);
	show_map(cfg_top_keys, conf, 0, out);
}

/* --- keys ----------------------------------------------------------------------------- */

static void
keys_walk(const struct cfg_key *keys, const char *above, const void *base,
	  void (*on_key)(void *ctx, const struct config_key *key), void *ctx)
{
	char path[CFG_PATH_MAX], text[CFG_TEXT_MAX], expected[CFG_EXPECTED_MAX];
	struct config_port port;

	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		snprintf(path, sizeof(path), "%s%s%s", above, above[0] != '\0' ? "." : "",
			 k->name);
		if (k->sub == cfg_port_keys) {
			config_port_defaults(&port);
			keys_walk(k->sub, "ports[]", &port, on_key, ctx);
		} else if (k->sub != NULL) {
			keys_walk(k->sub, path, cfg_value(k, base), on_key, ctx);
		} else {
			struct config_key key = {
				.path = path,
				.value = k->required ? NULL : k->text(k, base, text),
				.expected = cfg_expected(k, expected),
				.required = k->required,
				.live = k->live};

			on_key(ctx, &key);
		}
	}
}

void
config_keys(void (*on_key)(void *ctx, const struct config_key *key), void *ctx)
{
	struct config conf;

	cfg_defaults(&conf);
	keys_walk(cfg_top_keys, "", &conf, on_key, ctx);
}

/* --- differences ---------------------------------------------------------------------- */

struct diff {
	void (*on_change)(void *ctx, const struct config_change *change);
	void *ctx;
	unsigned int n;
};

static void
diff_report(struct diff *d, const char *path, const char *from, const char *to, bool live)
{
	struct config_change change = {.path = path, .from = from, .to = to, .live = live};

	d->n++;
	d->on_change(d->ctx, &change);
}

static void
diff_map(struct diff *d, const struct cfg_key *keys, const char *above, const void *from,
	 const void *to)
{
	char path[CFG_PATH_MAX], was[CONFIG_PLUGINS_MAX * CFG_TEXT_MAX], buf[CFG_TEXT_MAX];

	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		const char *a, *b;

		if (k->sub == cfg_port_keys)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", above, above[0] != '\0' ? "." : "",
			 k->name);
		if (k->sub != NULL) {
			diff_map(d, k->sub, path, cfg_value(k, from), cfg_value(k, to));
			continue;
		}
		a = k->text(k, from, buf);
		if (a != NULL)
			a = strcpy(was, a);
		b = k->text(k, to, buf);
		if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
			diff_report(d, path, a, b, k->live);
	}
}

static void
diff_ports(struct diff *d, const struct config *from, const struct config *to)
{
	char path[CFG_PATH_MAX];

	for (unsigned int i = 0; i < from->n_port; i++) {
		const struct config_port *was = &from->port[i];
		const struct config_port *now = config_port(to, was->tap);

		snprintf(path, sizeof(path), "ports[%s]", was->tap);
		if (now == NULL)
			diff_report(d, path, was->device, NULL, true);
		else
			diff_map(d, cfg_port_keys, path, was, now);
	}
	for (unsigned int i = 0; i < to->n_port; i++) {
		snprintf(path, sizeof(path), "ports[%s]", to->port[i].tap);
		if (config_port(from, to->port[i].tap) == NULL)
			diff_report(d, path, NULL, to->port[i].device, true);
	}
}

unsigned int
config_diff(const struct config *from, const struct config *to,
	    void (*on_change)(void *ctx, const struct config_change *change), void *ctx)
{
	struct diff d = {.on_change = on_change, .ctx = ctx};

	diff_ports(&d, from, to);
	diff_map(&d, cfg_top_keys, "", from, to);
	return d.n;
}
