/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A configuration as YAML, and what two of them do not have in common: the tables that read
 * the file, walked the other way. Any thread; only writes to the stream it is given.
 */
#include "config/print.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/yaml_walk.h"

/* --- values --------------------------------------------------------------------------- */

static const void *
at(const struct cfg_key *key, const void *base)
{
	return (const char *)base + key->offset;
}

/* What some reader of YAML, be it ours or another's, takes for no text: YAML 1.1's words. */
static bool
is_reserved(const char *text)
{
	static const char *const word[] = {"null", "true", "false", "yes", "no",
					   "on",   "off",  "y",     "n"};

	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (strcasecmp(text, word[i]) == 0)
			return true;
	return strspn(text, "0123456789_.eE+-xabcdefABCDEF") == strlen(text) &&
	       text[0] >= '0' && text[0] <= '9';
}

/* A word that YAML reads as nothing else stands as it is, all others in quotes. */
static const char *
quoted(const char *text, char buf[CFG_TEXT_MAX])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_/.,=-";
	const char *in = text;
	size_t n = 0;

	if (strspn(text, plain) == strlen(text) && strchr("-.,=", text[0]) == NULL &&
	    !is_reserved(text))
		return strcpy(buf, text);
	buf[n++] = '"';
	for (; *in != '\0' && n < CFG_TEXT_MAX - 6; in++) {
		if ((unsigned char)*in < ' ' || (unsigned char)*in == 0x7f)
			n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "\\x%02x",
					      (unsigned char)*in);
		else if (*in == '"' || *in == '\\')
			n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "\\%c", *in);
		else
			buf[n++] = *in;
	}
	buf[n++] = '"';
	buf[n] = '\0';
	return buf;
}

const char *
cfg_text_uint(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	unsigned int value;

	memcpy(&value, at(key, base), sizeof(value));
	snprintf(buf, CFG_TEXT_MAX, "%u", value);
	return buf;
}

const char *
cfg_text_mib(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	uint64_t value;

	memcpy(&value, at(key, base), sizeof(value));
	snprintf(buf, CFG_TEXT_MAX, "%llu", (unsigned long long)(value >> 20));
	return buf;
}

const char *
cfg_text_rate(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const uint32_t *rate = at(key, base);

	return *rate == POLICER_UNLIMITED ? "unlimited" : cfg_text_uint(key, base, buf);
}

const char *
cfg_text_bool(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return *(const bool *)at(key, base) ? "true" : "false";
}

const char *
cfg_text_string(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const char *text = at(key, base);

	return text[0] == '\0' ? NULL : quoted(text, buf);
}

const char *
config_listen_str(const struct sockaddr_storage *addr, char buf[CONFIG_LISTEN_STRLEN])
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	char text[INET6_ADDRSTRLEN];

	if (addr->ss_family == AF_INET6)
		snprintf(buf, CONFIG_LISTEN_STRLEN, "[%s]:%u",
			 inet_ntop(AF_INET6, &sin6->sin6_addr, text, sizeof(text)),
			 ntohs(sin6->sin6_port));
	else
		snprintf(buf, CONFIG_LISTEN_STRLEN, "%s:%u",
			 inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)),
			 ntohs(sin->sin_port));
	return buf;
}

const char *
cfg_text_listen(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	char text[CONFIG_LISTEN_STRLEN];

	/* An IPv6 address begins with a bracket, which begins a list. */
	config_listen_str(at(key, base), text);
	if (text[0] == '[')
		return quoted(text, buf);
	return strcpy(buf, text);
}

const char *
cfg_text_peer(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct sockaddr_storage *ss = at(key, base);
	char text[INET6_ADDRSTRLEN];

	if (ss->ss_family == AF_INET)
		return strcpy(buf, inet_ntop(AF_INET,
					     &((const struct sockaddr_in *)ss)->sin_addr,
					     text, sizeof(text)));
	if (ss->ss_family != AF_INET6)
		return "self";
	return quoted(inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)ss)->sin6_addr,
				text, sizeof(text)),
		      buf);
}

const char *
cfg_text_users(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct fpm_from *from = &((const struct config *)base)->fpm_from;
	char name[CFG_TEXT_MAX];
	size_t n = 0;

	if (from->users != FPM_USERS_LISTED)
		return from->users == FPM_USERS_ANY ? "any" : "auto";
	for (unsigned int i = 0; i < from->n_user && n < CFG_TEXT_MAX; i++)
		n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "%s%s",
				      i == 0 ? "[" : ", ",
				      quoted(from->user[i].name, name));
	if (n < CFG_TEXT_MAX)
		snprintf(buf + n, CFG_TEXT_MAX - n, "]");
	return buf;
}

const char *
cfg_text_metrics(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config *conf = base;

	return conf->metrics_on ? cfg_text_listen(key, base, buf) : "off";
}

const char *
cfg_text_tap(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return quoted(((const struct config_port *)base)->tap, buf);
}

const char *
cfg_text_device(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return quoted(((const struct config_port *)base)->device, buf);
}

const char *
cfg_text_queues(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config_port *port = base;

	return port->n_rxq == 0 ? NULL : cfg_text_uint(key, base, buf);
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

const char *
cfg_text_cores(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config *conf = base;

	return cpus_text(conf->core, conf->n_core, buf);
}

const char *
cfg_text_port_cores(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config_port *port = base;

	return cpus_text(port->core, port->n_core, buf);
}

/* As many as there may be are longer than other values: in a buffer of their own. */
const char *
cfg_text_plugins(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	static __thread char all[CONFIG_PLUGINS_MAX * CFG_TEXT_MAX];
	const struct config *conf = base;
	size_t n = 0;

	if (conf->n_plugin == 0)
		return NULL;
	for (unsigned int i = 0; i < conf->n_plugin; i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i == 0 ? "[" : ", ",
				      quoted(conf->plugin[i], buf));
	snprintf(all + n, sizeof(all) - n, "]");
	return all;
}

const char *
cfg_text_idle(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return *(const bool *)at(key, base) ? "poll" : "adaptive";
}

const char *
cfg_text_copies(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return *(const bool *)at(key, base) ? "per-node" : "one";
}

const char *
cfg_text_offload(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return *(const bool *)at(key, base) ? "off" : "auto";
}

const char *
cfg_text_level(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	static const char *const name[] = {"error", "warn", "info", "debug"};

	return name[*(const enum log_level *)at(key, base)];
}

/* --- the whole ------------------------------------------------------------------------ */

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
			show_map(k->sub, at(k, base), indent + 2, out);
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

/* --- the keys -------------------------------------------------------------------------- */

static void
keys_map(const struct cfg_key *keys, const char *above, const void *base,
	 void (*tell)(void *ctx, const struct config_key *key), void *ctx)
{
	char path[CFG_PATH_MAX], text[CFG_TEXT_MAX], expected[CFG_EXPECTED_MAX];
	struct config_port port;

	for (const struct cfg_key *k = keys; k->name != NULL; k++) {
		snprintf(path, sizeof(path), "%s%s%s", above, above[0] != '\0' ? "." : "",
			 k->name);
		if (k->sub == cfg_port_keys) {
			cfg_port_defaults(&port);
			keys_map(k->sub, "ports[]", &port, tell, ctx);
		} else if (k->sub != NULL) {
			keys_map(k->sub, path, at(k, base), tell, ctx);
		} else {
			struct config_key key = {
				.path = path,
				.value = k->required ? NULL : k->text(k, base, text),
				.expected = cfg_expected(k, expected),
				.required = k->required,
				.live = k->live};

			tell(ctx, &key);
		}
	}
}

void
config_keys(void (*tell)(void *ctx, const struct config_key *key), void *ctx)
{
	struct config conf;

	cfg_defaults(&conf);
	keys_map(cfg_top_keys, "", &conf, tell, ctx);
}

/* --- differences ---------------------------------------------------------------------- */

struct diff {
	void (*tell)(void *ctx, const struct config_change *change);
	void *ctx;
	unsigned int n;
};

static void
tell(struct diff *d, const char *path, const char *from, const char *to, bool live)
{
	struct config_change change = {.path = path, .from = from, .to = to, .live = live};

	d->n++;
	d->tell(d->ctx, &change);
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
			diff_map(d, k->sub, path, at(k, from), at(k, to));
			continue;
		}
		a = k->text(k, from, buf);
		if (a != NULL)
			a = strcpy(was, a);
		b = k->text(k, to, buf);
		if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
			tell(d, path, a, b, k->live);
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
			tell(d, path, was->device, NULL, true);
		else
			diff_map(d, cfg_port_keys, path, was, now);
	}
	for (unsigned int i = 0; i < to->n_port; i++) {
		snprintf(path, sizeof(path), "ports[%s]", to->port[i].tap);
		if (config_port(from, to->port[i].tap) == NULL)
			tell(d, path, NULL, to->port[i].device, true);
	}
}

unsigned int
config_diff(const struct config *from, const struct config *to,
	    void (*fn)(void *ctx, const struct config_change *change), void *ctx)
{
	struct diff d = {.tell = fn, .ctx = ctx};

	diff_ports(&d, from, to);
	diff_map(&d, cfg_top_keys, "", from, to);
	return d.n;
}
