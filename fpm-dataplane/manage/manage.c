/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manage thread: the running configuration, and changes to it. A change is first
 * checked as a whole. If any part of it cannot be made now, all of it is refused. Other
 * threads get messages about changes.
 */
#include "manage/manage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "restart/restart_lock.h"
#include "base/log.h"
#include "base/msg_manage.h"
#include "config/load.h"
#include "config/print.h"
#include "hook/hook.h"
#include "manage/reconnect.h"
#include "manage/reload_ports.h"

struct manage {
	struct manage_conf conf;
	struct reconnect reconnect;
};

static void __attribute__((format(printf, 2, 3)))
change_refuse(struct msg_manage *mm, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(mm->error, sizeof(mm->error), fmt, ap);
	va_end(ap);
}

/*
 * Begin a change, or refuse it during a restart. A change ends with change_unlock(). It may
 * take seconds, because a device is slow, and is incomplete until then. A reload without a
 * client, which a signal requested, is made when the restart is over.
 */
static bool
change_begin(struct msg_manage *mm)
{
	mm->is_barred = !change_lock(mm->q.from == NULL);
	if (mm->is_barred)
		change_refuse(mm, "%s", CHANGE_REFUSED);
	return !mm->is_barred;
}

static void
row_add(struct msg_manage *mm, json_t *object)
{
	json_array_append_new(mm->q.rows, object);
}

/* --- running configuration ------------------------------------------------------------ */

static void
show_running(struct manage *mg, struct msg_manage *mm)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		abort(); /* out of memory for a few KiB */
	config_show(mg->conf.running, f);
	fclose(f);
	row_add(mm, json_pack("{s:s}", "yaml", text));
	free(text);
}

static void
row_add_key(void *ctx, const struct config_key *key)
{
	row_add(ctx, json_pack("{s:s, s:s?, s:s, s:b, s:b}", "key", key->path, "default",
			       key->value, "values", key->expected, "required",
			       key->required, "reload", key->live));
}

/* --- policers ------------------------------------------------------------------------- */

static const char *
rate_str(uint32_t rate, char buf[16])
{
	if (rate == POLICER_UNLIMITED)
		return "unlimited";
	snprintf(buf, 16, "%u", rate);
	return buf;
}

static void
policer_change(struct manage *mg, struct msg_manage *mm)
{
	const struct manage_want *want = &mm->want;
	struct policer_conf *now = &mg->conf.running->policer[want->class];
	char rate[16], source_rate[16];

	if (!change_begin(mm))
		return;
#define CHANGE(field)                            \
	if (want->policer.field != POLICER_KEEP) \
		now->field = want->policer.field;
	CHANGE(rate)
	CHANGE(burst)
	CHANGE(source_rate)
	CHANGE(source_burst)
#undef CHANGE
	policer_set(want->class, now);
	change_unlock();
	log_info("manage: policer set class=%s rate=%s burst=%u source_rate=%s "
		 "source_burst=%u",
		 punt_class_info[want->class].name, rate_str(now->rate, rate), now->burst,
		 rate_str(now->source_rate, source_rate), now->source_burst);
}

/* --- programs ------------------------------------------------------------------------- */

static void
hook_change(struct manage *mg, struct msg_manage *mm)
{
	const struct hook_want *want = &mm->want.hook;
	int rc;

	if (!change_begin(mm))
		return;
	if (mm->want.op == MANAGE_HOOK_LOAD)
		rc = hooks_load(mg->conf.hooks, want, mm->error, sizeof(mm->error));
	else
		rc = hooks_unload(mg->conf.hooks, want->dev, mm->error, sizeof(mm->error));
	mm->is_missing = rc == -ENOENT;
	change_unlock();
}

/* --- reload --------------------------------------------------------------------------- */

struct reload {
	struct msg_manage *mm;
	const struct config *next;
	unsigned int n_impossible;
	bool apply;
};

/*
 * Return true if the change moves the MTU of a TAP below the minimum of IPv6 (with `up`:
 * from below the minimum to at least the minimum). A new port counts as if its earlier MTU
 * was the minimum.
 */
static bool
mtu_passes_ip6_min(const struct config *next, const struct config_change *change, bool up)
{
	const char *key = strrchr(change->path, '.');
	unsigned int was = 0, now = 0;
	char path[64];

	if (key != NULL && strcmp(key, ".mtu") == 0) {
		was = (unsigned int)atoi(change->from);
		now = (unsigned int)atoi(change->to);
	}
	for (unsigned int i = 0; i < next->n_port && change->from == NULL; i++) {
		snprintf(path, sizeof(path), "ports[%s]", next->port[i].tap);
		if (strcmp(path, change->path) == 0) {
			was = CONFIG_MTU_IP6_MIN;
			now = next->port[i].mtu_bytes;
		}
	}
	return up ? was < CONFIG_MTU_IP6_MIN && now >= CONFIG_MTU_IP6_MIN
		  : was >= CONFIG_MTU_IP6_MIN && now < CONFIG_MTU_IP6_MIN;
}

static const char *
change_note(const struct config *next, const struct config_change *change)
{
	if (mtu_passes_ip6_min(next, change, false))
		return "below an MTU of 1280 the kernel removes the IPv6 addresses and "
		       "routes of the TAP, RFC 8200 section 5";
	if (mtu_passes_ip6_min(next, change, true))
		return "the kernel restores only the link-local IPv6 address; add the "
		       "other addresses again";
	if (!change->live)
		return "needs a restart of the daemon";
	if (strcmp(change->path, "fpm.feedback") == 0 && strcmp(change->to, "true") == 0)
		return "applies to routes received from now on; `fpmctl replay` gets the "
		       "others again";
	if (strcmp(change->path, "checkpoint-max-age-s") == 0)
		return "used at the next start";
	return NULL;
}

static void
reload_report(void *ctx, const struct config_change *change)
{
	struct reload *r = ctx;

	r->n_impossible += !change->live;
	if (r->apply && mtu_passes_ip6_min(r->next, change, false))
		log_warn("manage: ipv6 disabled reason=mtu-below-1280 key=%s",
			 change->path);
	if (r->apply)
		log_info("manage: configuration changed key=%s from=\"%s\" to=\"%s\"",
			 change->path, change->from != NULL ? change->from : "none",
			 change->to != NULL ? change->to : "none");
	else
		row_add(r->mm,
			json_pack("{s:s, s:s?, s:s?, s:b, s:s?}", "key", change->path,
				  "from", change->from, "to", change->to, "possible",
				  change->live, "note", change_note(r->next, change)));
}

/* Add a row for each error of a file, from lines of `text`. */
static void
rows_add_errors(struct msg_manage *mm, char *text)
{
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0')
			row_add(mm, json_pack("{s:s}", "wrong", line));
}

static bool
config_read(struct manage *mg, struct msg_manage *mm, struct config *next)
{
	const char *file =
		mm->want.file[0] != '\0' ? mm->want.file : mg->conf.running->file;
	char shown[400], *text = NULL; /* a long name is cut, as in mm->error */
	size_t size;
	FILE *err = open_memstream(&text, &size);
	struct stat st;
	int errors = 1;

	if (err == NULL)
		abort();
	log_escape_name(file, shown, sizeof(shown));
	/* Reading a pipe or a terminal could block until the watchdog ends the daemon. */
	if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
		fprintf(err, "%s: is no regular file; expected a YAML file\n", shown);
	else
		errors = config_load(file, next, err);
	next->poll_always |= mg->conf.poll_always;
	fclose(err);
	if (errors > 0) {
		rows_add_errors(mm, text);
		change_refuse(mm, REFUSED "%d error%s in %s", errors,
			      errors == 1 ? "" : "s", shown);
	}
	free(text);
	return errors == 0;
}

static void
settings_apply(struct manage *mg, const struct config *next)
{
	struct worker *const to[] = {mg->conf.rib, mg->conf.fpm};
	struct msg_sflow *sflow;

	for (unsigned int c = 0; c < N_PUNT_CLASS; c++)
		if (memcmp(&next->policer[c], &mg->conf.running->policer[c],
			   sizeof(next->policer[c])) != 0)
			policer_set((enum punt_class)c, &next->policer[c]);
	log_set_level(next->log_level);
	for (unsigned int i = 0; i < 2; i++) {
		struct msg_settings *m = msg_new(MSG_SETTINGS, sizeof(*m));

		m->sweep_quiet_s = next->sweep_quiet_s;
		m->sweep_max_s = next->sweep_max_s;
		m->sweep_restart_s = next->sweep_restart_s;
		m->feedback = next->fpm_feedback;
		m->through_kernel = next->through_kernel;
		m->queue_limit_bytes = next->fpm_queue_limit_bytes;
		worker_send(to[i], &m->m);
	}
	if (memcmp(&next->sflow, &mg->conf.running->sflow, sizeof(next->sflow)) == 0)
		return;
	sflow = msg_new(MSG_SFLOW, sizeof(*sflow));
	sflow->conf = next->sflow;
	worker_send(mg->conf.sflow, &sflow->m);
}

/* Make a change, from `now` to `next`, that change_lock() has admitted. */
static void
change_apply(struct manage *mg, struct msg_manage *mm, const struct config *now,
	     struct config *next, struct reload *r)
{
	char why[sizeof(mm->error)];

	if (reload_ports(mg->conf.ports, now, next, why, sizeof(why)) < 0) {
		change_refuse(mm, "%s", why);
		return;
	}
	r->apply = true;
	config_diff(now, next, reload_report, r);
	settings_apply(mg, next);
	/* A reload without a file name reads the file that the daemon started with. */
	memcpy(next->file, mg->conf.running->file, sizeof(next->file));
	*mg->conf.running = *next;
}

/*
 * Change the running configuration to `next` as a whole, or refuse with a reason. `now`:
 * the settings in force. They are the running configuration, except for the MTU of a port
 * that port_change() changes.
 */
static void
change_make(struct manage *mg, struct msg_manage *mm, const struct config *now,
	    struct config *next)
{
	struct reload r = {.mm = mm, .next = next};

	config_diff(now, next, reload_report, &r);
	if (mm->want.dry_run)
		return;
	if (r.n_impossible > 0) {
		change_refuse(mm,
			      REFUSED
			      "%u of the changes cannot be made while the daemon runs",
			      r.n_impossible);
		return;
	}
	if (!change_begin(mm))
		return;
	change_apply(mg, mm, now, next, &r);
	change_unlock();
}

static struct config *
config_new(void)
{
	struct config *conf = calloc(1, sizeof(*conf));

	if (conf == NULL)
		abort(); /* out of memory for 40 KiB */
	return conf;
}

static void
reload_file(struct manage *mg, struct msg_manage *mm)
{
	struct config *next = config_new();

	if (config_read(mg, mm, next))
		change_make(mg, mm, mg->conf.running, next);
	free(next);
}

/* --- ports ---------------------------------------------------------------------------- */

/*
 * Return true if a file could have this configuration. The code that loads files checks it:
 * the configuration is printed as YAML and parsed again.
 */
static bool
config_would_load(const struct config *next, struct msg_manage *mm)
{
	char *yaml = NULL, *said = NULL;
	size_t len, size;
	FILE *out = open_memstream(&yaml, &len), *err = open_memstream(&said, &size);
	struct config *again = config_new();
	int errors;

	if (out == NULL || err == NULL)
		abort();
	config_show(next, out);
	fclose(out);
	errors = config_parse(NULL, yaml, len, again, err);
	fclose(err);
	if (errors > 0) {
		said[strcspn(said, "\n")] = '\0';
		change_refuse(mm, REFUSED "%s", said);
	}
	free(yaml);
	free(said);
	free(again);
	return errors == 0;
}

static void
config_port_set(const struct manage_want *want, struct config_port *cp)
{
	snprintf(cp->tap, sizeof(cp->tap), "%.*s", (int)sizeof(cp->tap) - 1, want->tap);
	if (want->device[0] != '\0')
		memcpy(cp->device, want->device, sizeof(cp->device));
	if (want->mtu_bytes != 0)
		cp->mtu_bytes = want->mtu_bytes;
	if (want->n_rxq != 0)
		cp->n_rxq = want->n_rxq;
	if (want->n_core != 0 || want->cores_auto) {
		cp->n_core = want->n_core;
		memcpy(cp->core, want->core, sizeof(want->core));
	}
}

/*
 * Refuse an MTU that is out of range. For an existing port, name the limit of its device.
 */
static bool
mtu_could_be(const struct manage *mg, struct msg_manage *mm)
{
	const struct port *port = hotplug_find(mg->conf.ports, mm->want.tap);
	unsigned int mtu = mm->want.mtu_bytes;

	if (mtu == 0 || port == NULL || (mtu >= CONFIG_MTU_MIN && mtu <= CONFIG_MTU_MAX))
		return true;
	change_refuse(mm,
		      REFUSED
		      "mtu: %u is out of range; expected a number from %u to %u, and the "
		      "device of %s (%s) takes %u at most",
		      mtu, CONFIG_MTU_MIN, CONFIG_MTU_MAX, mm->want.tap, port->driver,
		      port->mtu_max_bytes < CONFIG_MTU_MAX ? port->mtu_max_bytes
							   : CONFIG_MTU_MAX);
	return false;
}

/*
 * Change a port, or add it. `ip link set mtu` may have changed the MTU of the TAP after the
 * daemon set it. Compare the wanted MTU with the MTU of the TAP, so that it is set again
 * then.
 */
static void
port_change(struct manage *mg, struct msg_manage *mm, struct config *next, unsigned int i)
{
	struct config *now = config_new();
	const struct port *port = NULL;
	int mtu = 0;

	*now = *mg->conf.running;
	if (i < now->n_port && now->port[i].mtu_bytes == mm->want.mtu_bytes)
		port = hotplug_find(mg->conf.ports, now->port[i].tap);
	if (port != NULL)
		mtu = tap_mtu_now(&port->tap);
	if (mtu > 0)
		now->port[i].mtu_bytes = (unsigned int)mtu;
	change_make(mg, mm, now, next);
	free(now);
}

static void
port_request(struct manage *mg, struct msg_manage *mm)
{
	const struct manage_want *want = &mm->want;
	struct config *next = config_new();
	unsigned int i = 0;

	*next = *mg->conf.running;
	while (i < next->n_port && strcmp(next->port[i].tap, want->tap) != 0)
		i++;
	if (want->op == MANAGE_PORT_ADD && i < next->n_port) {
		change_refuse(mm, "port %s exists already; `port set` changes it",
			      want->tap);
	} else if (want->op != MANAGE_PORT_ADD && i == next->n_port) {
		mm->is_missing = true;
		change_refuse(mm, "no port %s; `fpmctl show ports` lists them", want->tap);
	} else if (i == CONFIG_PORTS_MAX) {
		change_refuse(mm, "there are %u ports, which is the maximum", i);
	} else if (want->op == MANAGE_PORT_DEL && next->n_port == 1) {
		change_refuse(mm, "%s is the last port, and a router needs at least one",
			      want->tap);
	} else {
		if (want->op == MANAGE_PORT_DEL) {
			memmove(&next->port[i], &next->port[i + 1],
				(--next->n_port - i) * sizeof(next->port[0]));
		} else {
			if (want->op == MANAGE_PORT_ADD)
				config_port_defaults(&next->port[next->n_port++]);
			config_port_set(want, &next->port[i]);
		}
		if (want->op == MANAGE_PORT_DEL)
			change_make(mg, mm, mg->conf.running, next);
		else if (mtu_could_be(mg, mm) && config_would_load(next, mm))
			port_change(mg, mm, next, i);
	}
	free(next);
}

/* --- the thread ----------------------------------------------------------------------- */

static void
request_run(struct manage *mg, struct msg_manage *mm)
{
	if (mm->q.rows == NULL)
		mm->q.rows = json_array();
	switch (mm->want.op) {
	case MANAGE_KEYS:
		config_keys(row_add_key, mm);
		break;
	case MANAGE_SHOW:
		show_running(mg, mm);
		break;
	case MANAGE_RELOAD:
		reload_file(mg, mm);
		break;
	case MANAGE_PORT_ADD:
	case MANAGE_PORT_SET:
	case MANAGE_PORT_DEL:
		port_request(mg, mm);
		break;
	case MANAGE_POLICER:
		policer_change(mg, mm);
		break;
	case MANAGE_HOOK_LOAD:
	case MANAGE_HOOK_UNLOAD:
		hook_change(mg, mm);
		break;
	case MANAGE_NOTHING:
		break;
	}
	mm->q.done = true;
}

/* Log the result of a change that no client waits for. */
static void
rows_to_log(const struct msg_manage *mm)
{
	const json_t *object;
	size_t i;

	json_array_foreach (mm->q.rows, i, object) {
		const char *wrong = json_string_value(json_object_get(object, "wrong"));

		if (wrong != NULL)
			log_error("manage: configuration not read reason=\"%s\"", wrong);
		else if (!json_is_true(json_object_get(object, "possible")))
			log_error("manage: change refused key=%s reason=\"%s\"",
				  json_string_value(json_object_get(object, "key")),
				  json_string_value(json_object_get(object, "note")));
	}
	if (mm->is_barred)
		log_info("manage: reload delayed reason=restart");
	else if (mm->error[0] != '\0')
		log_error("manage: configuration not reloaded reason=\"%s\"", mm->error);
}

static void
manage_on_msg(struct worker *w, struct msg *m)
{
	struct msg_manage *mm = caa_container_of(m, struct msg_manage, q.m);
	struct manage *mg = w->ctx;

	if (m->type != MSG_QUERY) {
		hotplug_msg(mg->conf.ports, m);
		return;
	}
	request_run(mg, mm);
	if (mm->q.from != NULL) {
		m->type = MSG_REPLY;
		worker_send(mm->q.from, m);
		return;
	}
	rows_to_log(mm);
	json_decref(mm->q.rows);
	msg_free(m);
}

void
manage_reload(struct worker *w)
{
	struct msg_manage *mm = msg_new(MSG_QUERY, sizeof(*mm));

	mm->q.kind = QUERY_MANAGE;
	mm->want.op = MANAGE_RELOAD;
	worker_send(w, &mm->q.m);
}

static int
manage_init(struct worker *w)
{
	struct manage *mg = w->ctx;

	reconnect_begin(&mg->reconnect, w->loop, mg->conf.ports, mg->conf.running);
	return 0;
}

static void
manage_fini(struct worker *w)
{
	reconnect_end(&((struct manage *)w->ctx)->reconnect, w->loop);
}

static const struct worker_ops manage_ops = {
	.name = "manage",
	.role = ROLE_MANAGE,
	.init = manage_init,
	.on_msg = manage_on_msg,
	.fini = manage_fini,
};

int
manage_setup(struct worker *w, const struct manage_conf *conf)
{
	struct manage *mg = calloc(1, sizeof(*mg));

	if (mg == NULL)
		return -ENOMEM;
	mg->conf = *conf;
	worker_init(w, &manage_ops, mg);
	return 0;
}

void
manage_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
