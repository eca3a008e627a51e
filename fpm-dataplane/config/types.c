/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The types of values: for each type the function that reads it from the file, then the
 * function that prints it. The files check*.c read and print values that depend on this
 * machine. Readers run in main before any thread exists, in manage, and in fpmctl; printers
 * run in any thread.
 */
#include "config/types.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/filter_tables.h"
#include "config/print.h"

/* --- text --------------------------------------------------------------------------- */

/*
 * Return true if a YAML reader may read the text as another type than a string, because the
 * text is a word of YAML 1.1, or a number.
 */
static bool
text_is_reserved(const char *text)
{
	static const char *const word[] = {"null", "true", "false", "yes", "no",
					   "on",   "off",  "y",     "n"};

	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (strcasecmp(text, word[i]) == 0)
			return true;
	return strspn(text, "0123456789_.eE+-xabcdefABCDEF") == strlen(text) &&
	       text[0] >= '0' && text[0] <= '9';
}

/*
 * Return the text without quotes if each YAML reader reads it as a string, else in quotes.
 */
const char *
cfg_quoted(const char *text, char buf[CFG_TEXT_MAX])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_/.,=-";
	const char *in = text;
	size_t n = 0;

	if (strspn(text, plain) == strlen(text) && strchr("-.,=", text[0]) == NULL &&
	    !text_is_reserved(text))
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
cfg_text_string(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const char *text = cfg_value(key, base);

	return text[0] == '\0' ? NULL : cfg_quoted(text, buf);
}

/*
 * Read the family and the name of a table of nft, and append it to the list `out`. Rules of
 * other families get no IP packets.
 */
static void
filter_table_take(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		  char *out)
{
	static const char *const family[] = {"inet ", "ip ", "ip6 "};
	static const char octets[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_./\\-";
	const char *text = cfg_text(c, key, at, NULL), *name = NULL;

	if (text == NULL)
		return;
	for (unsigned int i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		if (strncmp(text, family[i], strlen(family[i])) == 0)
			name = text + strlen(family[i]);
	if (name == NULL || name[0] == '\0' || strspn(name, octets) != strlen(name) ||
	    strlen(name) > 255)
		cfg_error(c, at, "'%s' names no table; expected %s", cfg_escape(text),
			  key->expected);
	else if (filter_tables_has(out, text))
		cfg_error(c, at, "'%s' is in the list twice", cfg_escape(text));
	else if (strlen(out) + strlen(text) + 3 > key->size)
		cfg_error(c, at, "is too long; expected at most %zu characters in all",
			  key->size - 1);
	else
		snprintf(out + strlen(out), key->size - strlen(out), "%s%s",
			 out[0] == '\0' ? "" : ", ", text);
}

void
cfg_take_filter_tables(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		       void *out)
{
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	((char *)out)[0] = '\0';
	if (n->type != YAML_SEQUENCE_NODE) {
		filter_table_take(c, key, at, out);
		return;
	}
	if (n->data.sequence.items.start == n->data.sequence.items.top)
		cfg_error(c, at, "is an empty list; expected %s", key->expected);
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		char path[CFG_PATH_MAX];
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};

		cfg_place(&item, item.node);
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		if (i == FILTER_TABLES_MAX) {
			cfg_error(c, &item, "is one too many; expected at most %u",
				  FILTER_TABLES_MAX);
			return;
		}
		filter_table_take(c, key, &item, out);
	}
}

const char *
cfg_text_filter_tables(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const char *list = cfg_value(key, base);
	char table[FILTER_TABLE_TEXT], quoted[CFG_TEXT_MAX];
	size_t n = 0;

	/* Each octet may need an escape, and each name quotes. */
	static_assert(2 * FILTER_TABLES_TEXT + 2 * FILTER_TABLES_MAX + 2 < CFG_TEXT_MAX,
		      "a list is never cut");

	if (strchr(list, ',') == NULL)
		return cfg_text_string(key, base, buf);
	while ((list = filter_tables_next(list, table)) != NULL && n < CFG_TEXT_MAX)
		n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "%s%s",
				      n == 0 ? "[" : ", ", cfg_quoted(table, quoted));
	if (n < CFG_TEXT_MAX)
		snprintf(buf + n, CFG_TEXT_MAX - n, "]");
	return buf;
}

/* --- numbers ------------------------------------------------------------------------ */

int
cfg_number(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
	   unsigned int *out)
{
	bool quoted;
	const char *text = cfg_text(c, key, at, &quoted);
	size_t digits;
	unsigned long n;
	char buf[CFG_EXPECTED_MAX];

	if (text == NULL)
		return -EINVAL;
	digits = strspn(text, "0123456789");
	/* Refuse "010": YAML 1.1 readers read it as eight, people as ten. */
	if (quoted || digits != strlen(text) || (digits > 1 && text[0] == '0')) {
		cfg_error(c, at, "'%s' is %s; expected %s", cfg_escape(text),
			  quoted ? "a string" : "not a plain number",
			  cfg_expected(key, buf));
		return -EINVAL;
	}
	errno = 0;
	n = strtoul(text, NULL, 10);
	if (errno != 0 || n < key->min || n > key->max) {
		cfg_error(c, at, "%s is out of range; expected %s", cfg_escape(text),
			  cfg_expected(key, buf));
		return -EINVAL;
	}
	*out = (unsigned int)n;
	return 0;
}

void
cfg_take_uint(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	cfg_number(c, key, at, out);
}

const char *
cfg_text_uint(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	unsigned int value;

	memcpy(&value, cfg_value(key, base), sizeof(value));
	snprintf(buf, CFG_TEXT_MAX, "%u", value);
	return buf;
}

/* Read a number of MiB, and store it in octets. */
void
cfg_take_mib(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	unsigned int mib;

	if (cfg_number(c, key, at, &mib) == 0)
		*(uint64_t *)out = (uint64_t)mib << 20;
}

const char *
cfg_text_mib(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	uint64_t value;

	memcpy(&value, cfg_value(key, base), sizeof(value));
	snprintf(buf, CFG_TEXT_MAX, "%llu", (unsigned long long)(value >> 20));
	return buf;
}

/* Read a number of packets per second, or `unlimited`. */
void
cfg_take_rate(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	if (at->node->type == YAML_SCALAR_NODE &&
	    strcmp((const char *)at->node->data.scalar.value, "unlimited") == 0)
		*(uint32_t *)out = POLICER_UNLIMITED;
	else
		cfg_take_uint(c, key, at, out);
}

const char *
cfg_text_rate(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const uint32_t *rate = cfg_value(key, base);

	return *rate == POLICER_UNLIMITED ? "unlimited" : cfg_text_uint(key, base, buf);
}

/* --- words -------------------------------------------------------------------------- */

void
cfg_take_word(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	char buf[CFG_EXPECTED_MAX];

	if (text == NULL)
		return;
	for (unsigned int i = 0; key->words[i] != NULL; i++)
		if (strcmp(text, key->words[i]) == 0) {
			if (key->size == sizeof(bool))
				*(bool *)out = i != 0;
			else
				*(unsigned int *)out = i;
			return;
		}
	cfg_error(c, at, "'%s' is unknown; expected %s", cfg_escape(text),
		  cfg_expected(key, buf));
}

const char *
cfg_text_word(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const void *value = cfg_value(key, base);

	return key->words[key->size == sizeof(bool) ? *(const bool *)value
						    : *(const unsigned int *)value];
}

void
cfg_take_bool(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	static const char *const word[] = {"false", "true", "no", "yes", "off", "on"};
	bool quoted;
	const char *text = cfg_text(c, key, at, &quoted);

	if (text == NULL)
		return;
	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]) && !quoted; i++)
		if (strcmp(text, word[i]) == 0) {
			*(bool *)out = i % 2 != 0;
			return;
		}
	cfg_error(c, at, "'%s' is %s; expected %s", cfg_escape(text),
		  quoted ? "a string" : "no boolean", key->expected);
}

void
cfg_take_keep_nics(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		   void *out)
{
	cfg_take_bool(c, key, at, out);
	c->keep_nics_pos = at->pos;
}

const char *
cfg_text_bool(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return *(const bool *)cfg_value(key, base) ? "true" : "false";
}

/* --- addresses ---------------------------------------------------------------------- */

int
cfg_listen_parse(const char *text, struct sockaddr_storage *out)
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_in *sin = (struct sockaddr_in *)out;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
	char addr[INET6_ADDRSTRLEN + 2];
	unsigned long port;
	size_t n;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(addr) || colon[1] < '1' ||
	    colon[1] > '9' || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return -EINVAL;
	port = strtoul(colon + 1, NULL, 10);
	if (port > 65535)
		return -EINVAL;
	n = (size_t)(colon - text);
	memcpy(addr, text, n);
	addr[n] = '\0';
	memset(out, 0, sizeof(*out));
	if (n >= 2 && addr[0] == '[' && addr[n - 1] == ']') {
		addr[n - 1] = '\0';
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, addr + 1, &sin6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	sin->sin_family = AF_INET;
	sin->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, addr, &sin->sin_addr) == 1 ? 0 : -EINVAL;
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

static void
take_listen(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	const char *text = cfg_text(c, key, at, NULL);
	struct sockaddr_storage ss;

	if (text == NULL)
		return;
	if (cfg_listen_parse(text, &ss) < 0)
		cfg_error(c, at, "'%s' is not an address and port; expected %s",
			  cfg_escape(text), key->expected);
	else
		memcpy(out, &ss, sizeof(ss));
}

void
cfg_take_fpm_listen(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		    void *out)
{
	unsigned int n_err = c->n_err;

	take_listen(c, key, at, out);
	c->listen_pos = at->pos;
	if (n_err != c->n_err)
		c->listen_pos.line = -1;
}

const char *
cfg_text_listen(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	char text[CONFIG_LISTEN_STRLEN];

	/* An IPv6 address needs quotes, because YAML reads `[` as the start of a list. */
	config_listen_str(cfg_value(key, base), text);
	if (text[0] == '[')
		return cfg_quoted(text, buf);
	return strcpy(buf, text);
}

void
cfg_take_metrics(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		 void *out)
{
	struct config *conf = c->root;
	unsigned int n_err = c->n_err;

	conf->metrics_on = at->node->type != YAML_SCALAR_NODE ||
			   strcmp((const char *)at->node->data.scalar.value, "off") != 0;
	if (conf->metrics_on)
		take_listen(c, key, at, out);
	c->metrics_pos = at->pos;
	if (n_err != c->n_err)
		c->metrics_pos.line = -1;
}

const char *
cfg_text_metrics(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct config *conf = base;

	return conf->metrics_on ? cfg_text_listen(key, base, buf) : "off";
}

/*
 * Return true if no single host can have the address: 0.0.0.0/8, 224.0.0.0 and above, ::
 * and ff00::/8.
 */
static bool
address_has_no_host(const struct sockaddr_storage *ss)
{
	const struct in6_addr *ip6 = &((const struct sockaddr_in6 *)ss)->sin6_addr;
	uint32_t ip = ntohl(((const struct sockaddr_in *)ss)->sin_addr.s_addr);

	if (ss->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(ip6) || IN6_IS_ADDR_MULTICAST(ip6);
	return ss->ss_family == AF_INET && (ip >> 24 == 0 || ip >> 28 >= 0xe);
}

/* Read the address of a host, or `word`, which is stored as AF_UNSPEC. */
static void
take_host(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out,
	  const char *word)
{
	const char *text = cfg_text(c, key, at, NULL);
	struct sockaddr_storage ss = {0};

	if (text == NULL)
		return;
	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&ss)->sin_addr) == 1)
		ss.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&ss)->sin6_addr) == 1)
		ss.ss_family = AF_INET6;
	else if (strcmp(text, word) != 0)
		cfg_error(c, at, "'%s' is not an address; expected %s", cfg_escape(text),
			  key->expected);
	if (address_has_no_host(&ss))
		cfg_error(c, at, "%s cannot be the address of a %s; expected %s",
			  cfg_escape(text), strcmp(word, "self") == 0 ? "peer" : "host",
			  key->expected);
	memcpy(out, &ss, sizeof(ss));
}

void
cfg_take_peer(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	take_host(c, key, at, out, "self");
}

void
cfg_take_address(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		 void *out)
{
	take_host(c, key, at, out, "auto");
}

/* Write the address of a host, or `word` for AF_UNSPEC. */
static const char *
host_text(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX],
	  const char *word)
{
	const struct sockaddr_storage *ss = cfg_value(key, base);
	char text[INET6_ADDRSTRLEN];

	if (ss->ss_family == AF_INET)
		return strcpy(buf, inet_ntop(AF_INET,
					     &((const struct sockaddr_in *)ss)->sin_addr,
					     text, sizeof(text)));
	if (ss->ss_family != AF_INET6)
		return word;
	return cfg_quoted(inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)ss)->sin6_addr,
				    text, sizeof(text)),
			  buf);
}

const char *
cfg_text_peer(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return host_text(key, base, buf, "self");
}

const char *
cfg_text_address(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	return host_text(key, base, buf, "auto");
}

/* --- collectors ----------------------------------------------------------------------- */

#define COLLECTOR_WANTED "ADDRESS:PORT, or \"ADDRESS:PORT vrf NAME\""

/* Read "192.0.2.9:6343" or "[2001:db8::9]:6343 vrf mgmt". Return 0 or -EINVAL. */
static int
collector_parse(const char *text, struct sflow_collector *out)
{
	static const char word[] = " vrf ";
	const char *vrf = strstr(text, word);
	size_t n = vrf == NULL ? strlen(text) : (size_t)(vrf - text);
	char addr[CONFIG_LISTEN_STRLEN];

	*out = (struct sflow_collector){0};
	if (n >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, n);
	addr[n] = '\0';
	if (cfg_listen_parse(addr, &out->addr) < 0 || address_has_no_host(&out->addr))
		return -EINVAL;
	config_listen_str(&out->addr, addr);
	memcpy(out->name, addr, strlen(addr));
	if (vrf == NULL)
		return 0;
	vrf += strlen(word);
	if (vrf[0] == '\0' || strlen(vrf) >= sizeof(out->vrf) ||
	    strpbrk(vrf, "/ \t:%") != NULL)
		return -EINVAL;
	memcpy(out->vrf, vrf, strlen(vrf));
	return 0;
}

void
cfg_take_collectors(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		    void *out)
{
	static const struct cfg_key one = {.expected = COLLECTOR_WANTED};
	struct sflow_conf *conf = &((struct config *)c->root)->sflow;
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	if (n->type != YAML_SEQUENCE_NODE) {
		cfg_error(c, at, "is not a list; expected %s", key->expected);
		return;
	}
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		char path[CFG_PATH_MAX];
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};
		const char *text;

		cfg_place(&item, item.node);
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		if (i == SFLOW_COLLECTORS_MAX) {
			cfg_error(c, &item, "is one too many; expected at most %u",
				  SFLOW_COLLECTORS_MAX);
			return;
		}
		text = cfg_text(c, &one, &item, NULL);
		if (text == NULL)
			continue;
		if (collector_parse(text, &conf->collector[conf->n_collector]) < 0)
			cfg_error(c, &item, "'%s' is not a collector; expected %s",
				  cfg_escape(text), one.expected);
		else
			conf->n_collector++;
	}
}

const char *
cfg_text_collectors(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct sflow_conf *conf = &((const struct config *)base)->sflow;
	char text[sizeof(conf->collector[0].name) + IFNAMSIZ + 8], quoted[CFG_TEXT_MAX];
	size_t n = 0;

	for (unsigned int i = 0; i < conf->n_collector && n < CFG_TEXT_MAX; i++) {
		const struct sflow_collector *c = &conf->collector[i];

		snprintf(text, sizeof(text), "%s%s%s", c->name,
			 c->vrf[0] != '\0' ? " vrf " : "", c->vrf);
		n += (size_t)snprintf(buf + n, CFG_TEXT_MAX - n, "%s%s",
				      i == 0 ? "[" : ", ", cfg_quoted(text, quoted));
	}
	if (n < CFG_TEXT_MAX)
		snprintf(buf + n, CFG_TEXT_MAX - n, "%s]", n == 0 ? "[" : "");
	return buf;
}

/* --- bfdd ----------------------------------------------------------------------------- */

/*
 * Read an address and a port. Without a port, use the default port of bfdd. Return 0 or
 * -EINVAL.
 */
static int
dplane_parse(const char *text, struct sockaddr_storage *out)
{
	char with_port[CONFIG_LISTEN_STRLEN];
	struct in6_addr ip6;

	if (cfg_listen_parse(text, out) == 0)
		return 0;
	if (strlen(text) > INET6_ADDRSTRLEN + 2)
		return -EINVAL;
	snprintf(with_port, sizeof(with_port),
		 inet_pton(AF_INET6, text, &ip6) == 1 ? "[%s]:%u" : "%s:%u", text,
		 BFD_DPLANE_PORT);
	return cfg_listen_parse(with_port, out);
}

void
cfg_take_dplane(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
		void *out)
{
	struct bfd_setup_conf *conf = &((struct config *)c->root)->bfd;
	const char *text = cfg_text(c, key, at, NULL);
	char name[CONFIG_LISTEN_STRLEN];

	if (text == NULL)
		return;
	if (dplane_parse(text, &conf->dplane) < 0 || address_has_no_host(&conf->dplane)) {
		cfg_error(c, at, "'%s' is not the address of bfdd; expected %s",
			  cfg_escape(text), key->expected);
		return;
	}
	config_listen_str(&conf->dplane, name);
	memcpy(conf->name, name, strlen(name) + 1);
	conf->on = true;
}

const char *
cfg_text_dplane(const struct cfg_key *key, const void *base, char buf[CFG_TEXT_MAX])
{
	const struct bfd_setup_conf *conf = &((const struct config *)base)->bfd;

	if (!conf->on)
		return NULL;
	return conf->name[0] == '[' ? cfg_quoted(conf->name, buf) : strcpy(buf, conf->name);
}
