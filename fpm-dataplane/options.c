/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line: what is asked of this start, and no more.                    [main]
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>

#include <rte_version.h>

static void
usage(FILE *out)
{
	fprintf(out,
		"usage: fpm-dataplane [-c FILE] [--check | --prepare] [--poll] "
		"[--version]\n"
		"                     [--help]\n"
		"  -c, --config FILE  default /etc/fpm-dataplane/config.yaml\n"
		"      --check        read and check the configuration, start nothing\n"
		"      --prepare      reserve hugepages and give NICs to vfio-pci as it "
		"says\n"
		"      --poll         never sleep, as `idle: poll` in the file\n");
}

bool
options_parse(int argc, char **argv, struct options *opt, int *code)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"prepare", no_argument, NULL, 'r'},
		{"poll", no_argument, NULL, 'p'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*opt = (struct options){.file = "/etc/fpm-dataplane/config.yaml"};
	*code = 0;
	while ((c = getopt_long(argc, argv, "c:h", known, NULL)) != -1) {
		switch (c) {
		case 'c':
			opt->file = optarg;
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
		case 'v':
			printf("fpm-dataplane %s, %s\n", FPMDP_VERSION, rte_version());
			return false;
		case 'h':
			usage(stdout);
			return false;
		default:
			usage(stderr);
			*code = 2;
			return false;
		}
	}
	if (optind == argc)
		return true;
	fprintf(stderr, "fpm-dataplane: unexpected word '%s'\n", argv[optind]);
	usage(stderr);
	*code = 2;
	return false;
}
