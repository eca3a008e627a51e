/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the zebra of the control namespace among its processes, and the vtysh command that
 * reaches it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/zebra.h"

#define CMDLINE_MAX 4096

/*
 * Note the process if it is a zebra. `here`: the network namespace of this process; "":
 * accept any namespace.
 */
static void
zebra_on_process(struct exam *e, const char *name, void *here)
{
	char cmdline[CMDLINE_MAX], netns[64];
	int n;

	if (!isdigit((unsigned char)name[0]))
		return;
	n = exam_read(e, cmdline, sizeof(cmdline), "/proc/%s/cmdline", name);
	if (n <= 0 || !cmdline_is(cmdline, (size_t)n, "zebra"))
		return;
	if (*(const char *)here != '\0' &&
	    (!exam_link(e, netns, sizeof(netns), "/proc/%s/ns/net", name) ||
	     strcmp(netns, here) != 0))
		return;
	/*
	 * A namespace may have more than one FRR: prefer the zebra that loads the module.
	 */
	if (e->zebra == 0 || cmdline_loads(cmdline, (size_t)n, ZEBRA_MODULE)) {
		e->zebra = (pid_t)strtol(name, NULL, 10);
		e->zebra_loads = cmdline_loads(cmdline, (size_t)n, ZEBRA_MODULE);
		e->zebra_listens = cmdline_has(cmdline, (size_t)n, ZEBRA_LISTENS);
	}
}

void
zebra_find(struct exam *e)
{
	char here[64] = "";

	if (e->looked)
		return;
	e->looked = true;
	/* Without a daemon the namespace of zebra is unknown. */
	if (e->version != NULL)
		exam_link(e, here, sizeof(here), "/proc/self/ns/net");
	if (e->deny == NULL)
		exam_folder(e, "/proc", zebra_on_process, here);
}

/*
 * Return true if the found zebra has another mount namespace, as in a container or a lab.
 */
static bool
zebra_has_own_files(const struct exam *e)
{
	char ours[64], its[64];

	return e->zebra != 0 && exam_link(e, ours, sizeof(ours), "/proc/self/ns/mnt") &&
	       exam_link(e, its, sizeof(its), "/proc/%d/ns/mnt", (int)e->zebra) &&
	       strcmp(ours, its) != 0;
}

/*
 * Return the command for the found zebra. Its command line, or its mount namespace, may
 * need additional words.
 */
const char *
zebra_vtysh(struct exam *e)
{
	static char command[32 + CMDLINE_MAX];
	char cmdline[CMDLINE_MAX];
	int n;

	if (e->vtysh != NULL)
		return e->vtysh;
	zebra_find(e);
	n = e->zebra != 0 ? exam_read(e, cmdline, sizeof(cmdline), "/proc/%d/cmdline",
				      (int)e->zebra)
			  : 0;
	for (const char *p = cmdline; n > 0 && p < cmdline + n; p += strlen(p) + 1) {
		const char *value = p + strlen(p) + 1;

		if (value < cmdline + n && strchr(value, ' ') == NULL &&
		    (strcmp(p, "-N") == 0 || strcmp(p, "--pathspace") == 0 ||
		     strcmp(p, "--vty_socket") == 0)) {
			snprintf(command, sizeof(command), "vtysh %s %s",
				 strcmp(p, "--vty_socket") == 0 ? p : "-N", value);
			return command;
		}
	}
	if (!zebra_has_own_files(e))
		return "vtysh";
	snprintf(command, sizeof(command), "vtysh --vty_socket /proc/%d/root/run/frr",
		 (int)e->zebra);
	return command;
}

const char *
zebra_vtysh_of(const char *socket)
{
	struct exam e = {.root = "", .socket = socket, .check = "", .about = ""};
	const char *command = NULL;

	e.rows = json_array();
	e.version = exam_ask_one(&e, "version");
	exam_enter(&e);
	if (e.deny != NULL)
		fprintf(stderr,
			"fpmctl: cannot enter the network namespace of the TAPs (%s): %s\n",
			e.path, e.deny);
	else if (e.version != NULL)
		command = zebra_vtysh(&e);
	json_decref(e.rows);
	json_decref(e.version);
	return command;
}

pid_t
zebra_version_of(const json_t *daemon, char version[FRR_VERSION_STRLEN])
{
	struct exam e = {
		.root = "", .version = json_deep_copy(daemon), .check = "", .about = ""};
	pid_t pid = 0;

	exam_enter(&e);
	zebra_find(&e);
	if (e.zebra != 0 && zebra_version(zebra_vtysh(&e), version) == 0)
		pid = e.zebra;
	json_decref(e.version);
	return pid;
}
