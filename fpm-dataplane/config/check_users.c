/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read `fpm.users`: the users whose programs may be zebra. Only /etc/passwd is searched,
 * because a start or a reload must not wait for a network directory whose server may be
 * behind this router.
 */
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/check.h"
#include "config/types.h"

#define PASSWD_UNREADABLE "/etc/passwd cannot be read: %s; expected a readable file"
#define FRR               "frr" /* user of the daemons in FRR's own and all distributions' builds */

/* Return 1 if /etc/passwd has the user, 0 if it does not or does not exist, or -errno. */
static int
user_find_by_name(const char *name, uid_t *uid)
{
	struct passwd entry, *found = NULL;
	FILE *f = fopen("/etc/passwd", "re");
	char room[16384];
	bool is_it = false;

	if (f == NULL)
		return errno == ENOENT ? 0 : -errno;
	while (!is_it && fgetpwent_r(f, &entry, room, sizeof(room), &found) == 0) {
		is_it = strcmp(entry.pw_name, name) == 0;
		*uid = entry.pw_uid;
	}
	fclose(f);
	return is_it;
}

/*
 * Find a user by name, or by a number that need not have a name. Return 0, -ENOENT if there
 * is no such user, or another -errno if /etc/passwd cannot be read.
 */
static int
user_find(const char *name, uid_t *uid)
{
	char *end;
	unsigned long number = strtoul(name, &end, 10);
	int rc = user_find_by_name(name, uid);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	/* UINT32_MAX is not a user: chown(2) reads it as "do not change". */
	if (name[0] < '0' || name[0] > '9' || *end != '\0' || number >= UINT32_MAX)
		return -ENOENT;
	*uid = (uid_t)number;
	return 0;
}

static void
take_user(struct cfg *c, const struct cfg_at *item, struct fpm_from *from)
{
	static const struct cfg_key user = {.expected =
						    "a name in /etc/passwd, or a number"};
	const char *name = cfg_text(c, &user, item, NULL);
	uid_t uid;
	int rc;

	if (name == NULL)
		return;
	rc = strlen(name) < FPM_USER_NAME_SIZE ? user_find(name, &uid) : -ENOENT;
	if (rc < 0 && rc != -ENOENT) {
		cfg_error(c, item, PASSWD_UNREADABLE, strerror(-rc));
		return;
	}
	if (rc < 0) {
		cfg_error(c, item, "there is no user '%s' here; expected %s",
			  cfg_escape(name), user.expected);
		return;
	}
	strcpy(from->user[from->n_user].name, name);
	from->user[from->n_user++].uid = uid;
}

static void
take_user_list(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at,
	       struct fpm_from *from)
{
	const yaml_node_t *n = at->node;
	unsigned int i = 0;

	if (n->data.sequence.items.start == n->data.sequence.items.top)
		cfg_error(c, at, "is an empty list; expected %s", key->expected);
	for (yaml_node_item_t *it = n->data.sequence.items.start;
	     it < n->data.sequence.items.top; it++, i++) {
		char path[CFG_PATH_MAX];
		struct cfg_at item = {.path = path,
				      .node = yaml_document_get_node(c->doc, *it)};

		cfg_place(&item, item.node);
		snprintf(path, sizeof(path), "%s[%u]", at->path, i);
		if (i == FPM_USERS_MAX) {
			cfg_error(c, &item, "is one too many; expected at most %u",
				  FPM_USERS_MAX);
			return;
		}
		take_user(c, &item, from);
	}
}

void
cfg_take_users(struct cfg *c, const struct cfg_key *key, const struct cfg_at *at, void *out)
{
	struct fpm_from *from = &((struct config *)c->root)->fpm_from;
	const char *text;

	from->n_user = 0;
	if (at->node->type == YAML_SEQUENCE_NODE) {
		from->users = FPM_USERS_LISTED;
		take_user_list(c, key, at, from);
		return;
	}
	text = cfg_text(c, key, at, NULL);
	if (text == NULL)
		return;
	if (strcmp(text, "any") == 0)
		from->users = FPM_USERS_ANY;
	else if (strcmp(text, "auto") == 0)
		from->users = FPM_USERS_AUTO;
	else
		cfg_error(c, at, "'%s' is not a list; expected %s", cfg_escape(text),
			  key->expected);
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
				      cfg_quoted(from->user[i].name, name));
	if (n < CFG_TEXT_MAX)
		snprintf(buf + n, CFG_TEXT_MAX - n, "]");
	return buf;
}

void
cfg_find_users(struct cfg *c, struct config *conf)
{
	static const struct config_pos top = {1, 1};
	struct fpm_from *from = &conf->fpm_from;
	int rc;

	if (from->users != FPM_USERS_AUTO)
		return;
	strcpy(from->user[0].name, FRR);
	rc = user_find(FRR, &from->user[0].uid);
	from->n_user = rc == 0;
	if (rc < 0 && rc != -ENOENT)
		cfg_error_at(c, top, "fpm.users", PASSWD_UNREADABLE, strerror(-rc));
}
