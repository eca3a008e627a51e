/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse the command line, and load the configuration that it names. [main] */
#include "start/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_version.h>

#include "base/sd_notify.h"
#include "config/load.h"

#define LOAD_RETRIES 10 /* 100 ms apart */

static void
usage_print(FILE *out)
{
	fprintf(out,
		"usage: fpm-dataplane [-c FILE] [--check | --prepare] [--poll] "
		"[--version]\n"
		"                     [--help]\n"
		"  -c, --config FILE  configuration; default "
		"/etc/fpm-dataplane/config.yaml\n"
		"      --check        print all errors of the configuration; start "
		"nothing\n"
		"      --prepare      reserve hugepages and give NICs to vfio-pci, as the\n"
		"                     configuration needs them; start nothing\n"
		"      --poll         forwarding CPUs never sleep, as with `idle: poll`\n"
		"      --version      print the version\n"
		"  -h, --help         print this help\n");
}

/*
 * Return true, after a message, if options exclude each other. The same file twice is
 * permitted.
 */
static bool
options_conflict(const struct options *opt, const char *file, const char *other)
{
	if (other != NULL)
		fprintf(stderr,
			"fpm-dataplane: -c is given twice, as '%s' and '%s': give one\n",
			file, other);
	else if (opt->check && opt->prepare)
		fputs("fpm-dataplane: --check and --prepare exclude each other: --check "
		      "changes nothing\n",
		      stderr);
	return other != NULL || (opt->check && opt->prepare);
}

bool
options_parse(int argc, char **argv, struct options *opt, int *code)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"prepare", no_argument, NULL, 'r'},
		{"poll", no_argument, NULL, 'p'},
		{"nics", no_argument, NULL, 'n'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *file = NULL, *other = NULL; /* a second, different file */
	int c;

	*opt = (struct options){.file = "/etc/fpm-dataplane/config.yaml"};
	*code = 0;
	while ((c = getopt_long(argc, argv, "c:h", known, NULL)) != -1) {
		switch (c) {
		case 'c':
			if (file != NULL && strcmp(file, optarg) != 0)
				other = optarg;
			else
				opt->file = file = optarg;
			break;
		case 'k':
			opt->check = true;
			break;
		case 'r':
			opt->prepare = true;
			break;
		case 'p':
			opt->poll_always = true;
			break;
		case 'n': /* an option that only nicd/launch.c uses */
			opt->nics = true;
			break;
		case 'v':
			printf("fpm-dataplane %s, %s\n", FPMDP_VERSION, rte_version());
			return false;
		case 'h':
			usage_print(stdout);
			return false;
		default:
			usage_print(stderr);
			*code = 2;
			return false;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"fpm-dataplane: unexpected word '%s'; -c FILE names the "
			"configuration\n",
			argv[optind]);
		usage_print(stderr);
	} else if (!options_conflict(opt, file, other)) {
		return true;
	}
	*code = 2;
	return false;
}

static bool
config_load_retry(const char *file, struct config *conf)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	FILE *discard = fopen("/dev/null", "w");
	int errors = 1;

	for (unsigned int i = 0; i < LOAD_RETRIES && errors > 0 && discard != NULL; i++) {
		nanosleep(&pause, NULL);
		errors = config_load(file, conf, discard);
	}
	if (discard != NULL)
		fclose(discard);
	return errors == 0;
}

/*
 * Return true for each name: fpm-nics and --prepare make no TAPs and do not know the TAPs
 * of the daemon, so they do not check the names of TAPs. The daemon checks them.
 */
static bool
tap_is_of_daemon(const char *tap)
{
	(void)tap;
	return true;
}

bool
options_load(const struct options *opt, struct config *conf, int *code)
{
	bool next = sd_is_restarted() && !opt->check && !opt->prepare;
	char file[CONFIG_FILE_STRLEN];
	int errors;

	if (opt->nics || opt->prepare)
		config_taps_held(tap_is_of_daemon);
	errors = config_load(opt->file, conf, stderr);
	config_file_str(opt->file, file);
	if (errors == 0) {
		if (opt->check)
			printf("%s: good: %u port%s\n", file, conf->n_port,
			       conf->n_port == 1 ? "" : "s");
		*code = 0;
		return !opt->check;
	}
	fprintf(stderr, "%s: %d error%s, nothing started%s\n", file, errors,
		errors == 1 ? "" : "s",
		next ? " yet: the stored descriptors wait for the next start" : "");
	*code = next ? SD_EXIT_LATER : SD_EXIT_CONFIG;
	if (!next || !config_load_retry(opt->file, conf))
		return false;
	fprintf(stderr, "%s: good now\n", file);
	return true;
}
