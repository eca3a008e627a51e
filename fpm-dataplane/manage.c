/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manage thread: what runs as a configuration, and changes of it. A change is looked at
 * as a whole first; what cannot be done now refuses all of it, with each reason. Runs in
 * manage; other threads are told by message.
 */
#include "manage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "base/manage.h"

struct manage {
	struct manage_conf conf;
};

static void __attribute__((format(printf, 2, 3)))
refuse(struct msg_manage *mm, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(mm->error, sizeof(mm->error), fmt, ap);
	va_end(ap);
}

static void
row(struct msg_manage *mm, json_t *object)
{
	json_array_append_new(mm->q.rows, object);
}

/* --- what runs -------------------------------------------------------------------------- */

static void
show(struct manage *mg, struct msg_manage *mm)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		abort(); /* a few KiB */
	config_show(mg->conf.running, f);
	fclose(f);
	row(mm, json_pack("{s:s}", "yaml", text));
	free(text);
}

/* --- policers --------------------------------------------------------------------------- */

static void
policer_change(struct manage *mg, const struct manage_want *want)
{
	struct policer_conf *now = &mg->conf.running->policer[want->class];

#define CHANGE(field)                            \
	if (want->policer.field != POLICER_KEEP) \
		now->field = want->policer.field;
	CHANGE(rate)
	CHANGE(burst)
	CHANGE(source_rate)
	CHANGE(source_burst)
#undef CHANGE
	policer_set(want->class, now);
	log_info("manage: policer set class=%s rate=%d burst=%u source_rate=%d "
		 "source_burst=%u",
		 punt_class_info[want->class].name, (int)now->rate, now->burst,
		 (int)now->source_rate, now->source_burst);
}

/* --- reload ------------------------------------------------------------------------------ */

struct reload {
	struct msg_manage *mm;
	unsigned int n_impossible;
	bool apply;
};

/* Ports are made at the start only. */
static bool
is_possible(const struct config_change *change)
{
	return change->live && strncmp(change->path, "ports[", 6) != 0;
}

static const char *
note_of(const struct config_change *change)
{
	if (!is_possible(change))
		return "needs a restart of the daemon";
	if (strcmp(change->path, "fpm.feedback") == 0 && strcmp(change->to, "true") == 0)
		return "routes from now on; `fpmctl replay` brings the others";
	if (strcmp(change->path, "checkpoint-max-age-s") == 0)
		return "of the next start";
	return NULL;
}

static void
on_change(void *ctx, const struct config_change *change)
{
	struct reload *r = ctx;

	r->n_impossible += !is_possible(change);
	if (r->apply)
		log_info("manage: configuration changed key=%s from=%s to=%s", change->path,
			 change->from != NULL ? change->from : "none",
			 change->to != NULL ? change->to : "none");
	else
		row(r->mm, json_pack("{s:s, s:s?, s:s?, s:b, s:s?}", "key", change->path,
				     "from", change->from, "to", change->to, "possible",
				     is_possible(change), "note", note_of(change)));
}

/* All that is wrong with a file, a row each. */
static void
rows_of_errors(struct msg_manage *mm, char *text)
{
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0')
			row(mm, json_pack("{s:s}", "wrong", line));
}

static bool
read_file(struct manage *mg, struct msg_manage *mm, struct config *next)
{
	const char *file =
		mm->want.file[0] != '\0' ? mm->want.file : mg->conf.running->file;
	char *text = NULL;
	size_t size;
	FILE *err = open_memstream(&text, &size);
	int errors;

	if (err == NULL)
		abort();
	errors = config_load(file, next, err);
	fclose(err);
	if (errors > 0) {
		rows_of_errors(mm, text);
		refuse(mm, "%d error%s in %s, nothing changed", errors,
		       errors == 1 ? "" : "s", file);
	}
	free(text);
	return errors == 0;
}

static void
apply(struct manage *mg, const struct config *next)
{
	struct worker *const to[] = {mg->conf.rib, mg->conf.fpm};

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
		m->queue_limit_bytes = next->fpm_queue_limit_bytes;
		worker_send(to[i], &m->m);
	}
	*mg->conf.running = *next;
}

static void
reload(struct manage *mg, struct msg_manage *mm)
{
	struct reload r = {.mm = mm};
	struct config *next = calloc(1, sizeof(*next));

	if (next == NULL)
		abort(); /* 40 KiB */
	if (read_file(mg, mm, next)) {
		config_diff(mg->conf.running, next, on_change, &r);
		if (r.n_impossible > 0 && !mm->want.dry_run) {
			refuse(mm,
			       "%u of the changes cannot be made while the daemon runs; "
			       "nothing changed",
			       r.n_impossible);
		} else if (!mm->want.dry_run) {
			r.apply = true;
			config_diff(mg->conf.running, next, on_change, &r);
			apply(mg, next);
		}
	}
	free(next);
}

/* --- the thread -------------------------------------------------------------------------- */

static void
answer(struct manage *mg, struct msg_manage *mm)
{
	if (mm->q.rows == NULL)
		mm->q.rows = json_array();
	switch (mm->want.op) {
	case MANAGE_SHOW:
		show(mg, mm);
		break;
	case MANAGE_RELOAD:
		reload(mg, mm);
		break;
	case MANAGE_POLICER:
		policer_change(mg, &mm->want);
		break;
	case MANAGE_NOTHING:
		break;
	}
	mm->q.done = true;
}

/* What a person would have been told goes to the log. */
static void
rows_to_log(const struct msg_manage *mm)
{
	const json_t *object;
	size_t i;

	json_array_foreach (mm->q.rows, i, object) {
		const char *wrong = json_string_value(json_object_get(object, "wrong"));

		if (wrong != NULL)
			log_error("manage: %s", wrong);
		else if (!json_is_true(json_object_get(object, "possible")))
			log_error("manage: change is impossible key=%s: %s",
				  json_string_value(json_object_get(object, "key")),
				  json_string_value(json_object_get(object, "note")));
	}
	if (mm->error[0] != '\0')
		log_error("manage: configuration not reloaded: %s", mm->error);
}

static void
on_msg(struct worker *w, struct msg *m)
{
	struct msg_query *q = caa_container_of(m, struct msg_query, m);
	struct msg_manage *mm = caa_container_of(q, struct msg_manage, q);

	if (m->type != MSG_QUERY) {
		msg_free(m);
		return;
	}
	answer(w->ctx, mm);
	if (q->from != NULL) {
		m->type = MSG_REPLY;
		worker_send(q->from, m);
		return;
	}
	rows_to_log(mm);
	json_decref(q->rows);
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

int
manage_setup(struct worker *w, const struct manage_conf *conf)
{
	struct manage *mg = calloc(1, sizeof(*mg));

	if (mg == NULL)
		return -ENOMEM;
	mg->conf = *conf;
	w->name = "manage";
	w->role = ROLE_MANAGE;
	w->ctx = mg;
	w->on_msg = on_msg;
	return 0;
}

void
manage_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
