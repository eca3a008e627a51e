/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl doctor: ask the daemon for its state, enter the control namespace, run the checks
 * in order. It changes nothing on the machine.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/doctor/exam.h"
#include "ctl/text.h"

static void check_daemon(struct exam *e);

static const struct {
	const char *name, *about;
	void (*run)(struct exam *e);
} check[] = {
	{"daemon", "the daemon answers on its control socket", check_daemon},
	{"hugepages", "huge pages for packet memory: reserved, free", check_hugepages},
	{"iommu", "an IOMMU limits the memory that ports can access", check_iommu},
	{"memlock", "the daemon may lock the memory that NICs write to", check_memlock},
	{"files", "the daemon may open as many files as it needs", check_files},
	{"pcie-link", "lanes and speed of each port's slot", check_pcie_link},
	{"ext-tag", "PCIe Extended Tag: 256 outstanding reads instead of 32",
	 check_ext_tag},
	{"read-request", "PCIe Max Read Request Size", check_read_request},
	{"numa", "each port is served by CPUs of its own node", check_numa},
	{"isolation", "the scheduler runs no other task on forwarding CPUs",
	 check_isolation},
	{"governor", "forwarding CPUs run at full clock rate", check_governor},
	{"smt", "no other work shares a core with a forwarder", check_smt},
	{"clock", "the TSC and the kernel's clock are steady", check_clock},
	{"rss", "RSS of ports with several queues covers all protocols", check_rss},
	{"queues", "a forwarding CPU serves each receive queue", check_queues},
	{"links", "each port is up in the kernel, and has a link", check_links},
	{"rp-filter", "reverse path filter of TAPs, VLANs, tunnels", check_rp_filter},
	{"forwarding", "the kernel's forwarding sysctls of TAPs, VLANs, tunnels",
	 check_forwarding},
	{"members", "no port is a member of a bond or bridge of the kernel", check_members},
	{"obeyed", "the kernel has no configuration that the dataplane ignores",
	 check_obeyed},
	{"filter", "the ruleset of nft that the configuration names is in force",
	 check_filter},
	{"flowspec", "fpm-flowspec runs, has a session, and loads its table",
	 check_flowspec},
	{"sflow", "the collectors of sFlow and psample take the samples", check_sflow},
	{"vrfs", "packets of a VRF do not fall back to table main", check_vrfs},
	{"below", "the kernel interface below a port has IPv6 off", check_below},
	{"tunnels", "forwarders serve the tunnels of the kernel", check_tunnels},
	{"mpls", "the kernel takes MPLS labels, if there are any", check_mpls},
	{"srv6", "the kernel's settings fit SRv6, if segments are in use", check_srv6},
	{"kernel", "the RIB has read all events of the kernel's routes", check_kernel},
	{"frr", "zebra runs with -M dplane_fpm_nl", check_frr},
	{"frr-version", "known faults of this version of FRR that affect the router",
	 check_frr_version},
	{"fpm", "zebra is connected, and the RIB keeps up", check_fpm},
	{"bfd", "either bfdd or the dataplane sends BFD packets, not both", check_bfd},
	{"routes", "zebra and the RIB have the same number of routes", check_routes},
};
#define N_CHECK      (sizeof(check) / sizeof(check[0]))
#define CHECK_DAEMON 0

/* Report the instructions in use, and whether the configuration limits them. */
static void
instructions_tell(struct exam *e)
{
	const char *forwarding = row_str(e->version, "instructions");
	const char *lookups = row_str(e->version, "lookup_instructions");
	const char *best = row_str(e->version, "instructions_best");
	const char *lookups_best = row_str(e->version, "lookup_instructions_best");

	if (strcmp(forwarding, best) == 0 && strcmp(lookups, lookups_best) == 0)
		finding_add(e, VERDICT_OK, "instructions",
			    "forwarding uses %s, lookups %s, the best on this CPU",
			    forwarding, lookups);
	else
		finding_add(e, VERDICT_OK, "instructions",
			    "forwarding uses %s, lookups %s, as configured; "
			    "this CPU allows %s and %s",
			    forwarding, lookups, best, lookups_best);
}

static void
check_daemon(struct exam *e)
{
	char up[32];

	if (e->version != NULL) {
		finding_add(e, VERDICT_OK, "", "%s, pid %d, up %s",
			    row_str(e->version, "version"), (int)exam_pid(e),
			    human_seconds((double)row_int(e->version, "uptime_s"), up));
		if (row_has(e->version, "lookup_instructions"))
			instructions_tell(e);
		return;
	}
	if (conn_is_there(e->socket)) {
		finding_add(e, VERDICT_FAIL, "", "runs, but does not answer");
		finding_cost(e, "The daemon hangs or is very busy. Its supervisor ends a "
				"daemon that hangs. See the log.");
		finding_fix(e, "journalctl -u fpm-dataplane -e");
	} else if (errno == EACCES || errno == EPERM) {
		finding_add(e, VERDICT_FAIL, "",
			    "access denied: only root and the socket's group have access");
		finding_cost(e,
			     "The checks that need the daemon were skipped. Members of the "
			     "group fpm-dataplane have access, root can run all checks:");
		finding_fix(e, "sudo fpmctl -s %s doctor", e->socket);
	} else {
		finding_add(e, VERDICT_FAIL, "", "does not answer: %s", strerror(errno));
		finding_cost(e, "Without the daemon no packet is forwarded. The checks "
				"that need no daemon covered every network controller.");
		finding_fix(e, "systemctl start fpm-dataplane");
	}
}

static void
answers_free(struct exam *e)
{
	json_decref(e->version);
	json_decref(e->ports);
	json_decref(e->fpm);
	json_decref(e->interfaces);
	e->version = e->ports = e->fpm = e->interfaces = NULL;
}

static void
daemon_ask(struct exam *e)
{
	const json_t *cpu;
	size_t i;

	e->version = exam_ask_one(e, "version");
	if (e->version == NULL)
		return;
	e->ports = exam_ask(e, "ports");
	e->fpm = exam_ask_one(e, "fpm");
	e->interfaces = exam_ask(e, "interfaces");
	if (e->ports == NULL || e->fpm == NULL || e->interfaces == NULL) {
		/* A partial answer would look like missing ports. */
		answers_free(e);
		return;
	}
	json_array_foreach (json_object_get(e->version, "cpus"), i, cpu)
		if (json_integer_value(cpu) < CPU_SETSIZE)
			CPU_SET((size_t)json_integer_value(cpu), &e->cpus);
}

/* Return true if the check was named, or if no check was named. */
static bool
check_is_wanted(const char *name, int n, char **word)
{
	for (int i = 0; i < n; i++)
		if (strcmp(word[i], name) == 0)
			return true;
	return n == 0;
}

static int
words_check(int n, char **word)
{
	for (int i = 0; i < n; i++) {
		unsigned int c = 0;

		while (c < N_CHECK && strcmp(word[i], check[c].name) != 0)
			c++;
		if (c == N_CHECK) {
			fprintf(stderr,
				"fpmctl: no check '%s'; `fpmctl doctor list` lists them\n",
				word[i]);
			return CTL_USAGE;
		}
	}
	return CTL_OK;
}

static void
checks_list(bool json)
{
	json_t *rows = json_array();

	for (unsigned int c = 0; c < N_CHECK; c++)
		if (json)
			json_array_append_new(rows, json_pack("{s:s, s:s}", "check",
							      check[c].name, "about",
							      check[c].about));
		else
			printf("%-12s  %s\n", check[c].name, check[c].about);
	if (json)
		json_print(rows);
	json_decref(rows);
}

/* Print the findings from row `from` on, at once, because the next check may take long. */
static void
findings_print(const struct exam *e, size_t from)
{
	for (size_t i = from; i < json_array_size(e->rows); i++)
		finding_print(json_array_get(e->rows, i), colours_wanted());
	fflush(stdout);
}

static void
check_run(struct exam *e, unsigned int c, bool json)
{
	size_t from = json_array_size(e->rows);

	e->check = check[c].name;
	e->about = check[c].about;
	check[c].run(e);
	if (!json)
		findings_print(e, from);
}

static void
findings_conclude(const struct exam *e, bool json)
{
	if (json) {
		json_print(e->rows);
		return;
	}
	printf("%u OK, %u WARN, %u FAIL, %u not applicable\n", e->n[VERDICT_OK],
	       e->n[VERDICT_WARN], e->n[VERDICT_FAIL], e->n[VERDICT_NA]);
}

static void
doctor_help(FILE *out)
{
	fputs("      --vtysh COMMAND  the vtysh of the zebra to ask, such as 'vtysh -N "
	      "r1'\n"
	      "      Run doctor as root. It runs each CHECK that is named. If no CHECK is\n"
	      "      named, it runs all checks. If the daemon does not answer, checks "
	      "that\n"
	      "      need the daemon are n/a. Then the check `daemon` runs even if it is "
	      "not\n"
	      "      named, and fails: exit code 3.\n"
	      "      If zebra does not answer for 10 s, doctor treats it as absent.\n"
	      "      The checks:\n",
	      out);
	for (unsigned int c = 0; c < N_CHECK; c++)
		fprintf(out, "      %-12s  %s\n", check[c].name, check[c].about);
}

static void
doctor_complete(FILE *out, int n, char **word)
{
	fputs("list", out);
	for (unsigned int c = 0; c < N_CHECK; c++)
		fprintf(out, " %s", check[c].name);
	fputc('\n', out);
}

/*
 * Examine the machine. `word` has the names of checks; without names run all checks.
 * Returns an exit code: CTL_FAILED when a check failed.
 */
static int
doctor_run(const struct options *opt, int n, char **word)
{
	struct exam e = {.root = "", .vtysh = opt->vtysh, .socket = opt->socket};
	bool json = opt->json;
	int rc = CTL_OK;

	if (n > 1 && strcmp(word[0], "list") == 0)
		return cli_unexpected(word[1], &cmd_doctor);
	if (n == 1 && strcmp(word[0], "list") == 0) {
		checks_list(json);
		return CTL_OK;
	}
	rc = words_check(n, word);
	if (rc != CTL_OK)
		return rc;
	e.rows = json_array();
	e.named = n > 0;
	daemon_ask(&e);
	exam_enter(&e);
	for (unsigned int c = 0; c < N_CHECK; c++)
		if (check_is_wanted(check[c].name, n, word))
			check_run(&e, c, json);
	/*
	 * If a check has no result because the daemon does not answer, report the missing
	 * daemon, so that the exit code is a failure.
	 */
	if (e.missed && !check_is_wanted(check[CHECK_DAEMON].name, n, word))
		check_run(&e, CHECK_DAEMON, json);
	findings_conclude(&e, json);
	json_decref(e.rows);
	answers_free(&e);
	return e.n[VERDICT_FAIL] > 0 ? CTL_FAILED : CTL_OK;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.words = "[CHECK ... | list] [--vtysh COMMAND]",
	.text = "check the machine: problems, their cost, and commands that fix them",
	.run = doctor_run,
	.options = OPT_JSON | OPT_VTYSH,
	.help = doctor_help,
	.complete = doctor_complete,
};
