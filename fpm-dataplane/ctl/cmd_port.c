/* SPDX-License-Identifier: BSD-3-Clause */
/* `fpmctl port`: add, change and remove ports of a running daemon. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "ctl/change.h"
#include "ctl/cmd.h"

static void
port_help(FILE *out)
{
	fputs("      device DEVICE  a PCI address, or DPDK devargs; add needs it\n"
	      "      mtu N          largest IP packet in octets (1500); below 1280 the "
	      "kernel\n"
	      "                     removes IPv6 and its addresses from the TAP\n"
	      "      queues N       number of receive queues (one per forwarding CPU)\n"
	      "      cores N,N,...  the CPU that serves each queue. A queue moves without "
	      "loss.\n"
	      "                     If the number of CPUs changes, the device is opened "
	      "again.\n"
	      "                     auto: the daemon selects the CPU of each queue\n"
	      "      add makes the TAP, set keeps it with its addresses, del deletes it. "
	      "The\n"
	      "      change lasts until the daemon ends. To keep it, add it to the\n"
	      "      configuration file. `fpmctl config show` prints the running\n"
	      "      configuration.\n"
	      "      Examples:\n"
	      "      fpmctl port add wan1 device 0000:03:00.0 mtu 9000\n"
	      "      fpmctl port add wan1 device net_af_packet,iface=eth1\n",
	      out);
}

/* Parse "1,2,1" to a JSON array and "auto" to a string; NULL: malformed. */
static json_t *
cores_parse(const char *text)
{
	char copy[CONFIG_CORES_MAX * 8], *rest = copy;
	json_t *cores;

	if (strcmp(text, "auto") == 0)
		return json_string(text);
	if (strlen(text) >= sizeof(copy))
		return NULL;
	strcpy(copy, text);
	cores = json_array();
	for (char *one; (one = strsep(&rest, ",")) != NULL;) {
		long long cpu;

		if (!number_whole(one, &cpu)) {
			json_decref(cores);
			return NULL;
		}
		json_array_append_new(cores, json_integer(cpu));
	}
	return cores;
}

/* The numbers of a port. The daemon decides which values its device accepts. */
static const struct {
	const char *word;
	int min, max; /* shown in the error; the daemon checks the value */
} port_number[] = {
	{"mtu", CONFIG_MTU_MIN, CONFIG_MTU_MAX},
	{"queues", 1, CONFIG_CORES_MAX},
};
#define N_PORT_NUMBER (sizeof(port_number) / sizeof(port_number[0]))

/*
 * Add a word and its value to the request. Returns CTL_OK, or another exit code after
 * printing an error.
 */
static int
port_pair(json_t *what, const char *word, const char *value)
{
	unsigned int i = 0;
	char want[64];
	json_t *json;
	long long n;

	while (i < N_PORT_NUMBER && strcmp(word, port_number[i].word) != 0)
		i++;
	if (i == N_PORT_NUMBER && strcmp(word, "device") != 0 && strcmp(word, "cores") != 0)
		return cli_unexpected(word, &cmd_port);
	if (json_object_get(what, word) != NULL)
		return cli_twice(word, &cmd_port);
	if (i < N_PORT_NUMBER && !number_whole(value, &n)) {
		snprintf(want, sizeof(want), "a whole number from %d to %d",
			 port_number[i].min, port_number[i].max);
		return number_refused(word, value, want);
	}
	if (i < N_PORT_NUMBER)
		json = json_integer(n);
	else if (strcmp(word, "cores") == 0)
		json = cores_parse(value);
	else
		json = json_string(value);
	if (json == NULL) /* words are UTF-8 here, so `cores` is malformed */
		return number_refused(word, value,
				      "a list of CPUs by number such as 1,2, nor auto");
	json_object_set_new(what, word, json);
	return CTL_OK;
}

static int
port_run(const struct options *opt, int n, char **word)
{
	json_t *what;
	int rc = CTL_OK;

	if (n > 0 && strcmp(word[0], "add") != 0 && strcmp(word[0], "set") != 0 &&
	    strcmp(word[0], "del") != 0)
		return cli_unexpected(word[0], &cmd_port);
	if (n < 2) {
		fputs("fpmctl: port needs add, set or del, a NAME, then pairs such as `mtu "
		      "1400`\n",
		      stderr);
		return cli_usage(&cmd_port);
	}
	if (n > 2 && strcmp(word[0], "del") == 0) {
		fputs("fpmctl: port del takes only a NAME\n", stderr);
		return cli_usage(&cmd_port);
	}
	if (n % 2 != 0)
		return cli_no_value(word[n - 1], &cmd_port);
	what = json_pack("{s:s, s:s}", "do", word[0], "name", word[1]);
	for (int i = 2; i < n && rc == CTL_OK; i += 2)
		rc = port_pair(what, word[i], word[i + 1]);
	if (rc != CTL_OK) {
		json_decref(what);
		return rc;
	}
	return change_ask(opt, json_pack("{s:o}", "port", what), NULL, CHANGE_LASTS);
}

static void
port_complete(FILE *out, int n, char **word)
{
	fputs(n == 0 ? "add set del\n" : "device mtu queues cores\n", out);
}

const struct command cmd_port = {
	.name = "port",
	.words = "add|set|del NAME [device D] [mtu N] [queues N] [cores N,N]",
	.text = "add, change or remove a port while others forward",
	.run = port_run,
	.options = OPT_JSON,
	.help = port_help,
	.complete = port_complete,
};
