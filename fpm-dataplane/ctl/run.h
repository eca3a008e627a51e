/* SPDX-License-Identifier: BSD-3-Clause */
/* run: run a program and read its output. */
#ifndef CTL_RUN_H
#define CTL_RUN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct run {
	bool quiet;     /* print no errors, and hide the errors of the program */
	int patience_s; /* end the program after this time without output */
	bool silent;    /* the program was ended because of such a silence */
	pid_t pid;
	int fd;    /* of the pipe from the program's output */
	FILE *out; /* reads the output */
};

/*
 * Start `program -c command`, or only `program` if `command` is NULL, to read its output
 * from run->out. `program` has words separated by blanks. Returns 0, or -1 after printing
 * an error.
 */
int run_start(struct run *run, const char *program, const char *command);

/* Wait for the end. Returns 0 if it succeeded, -ETIMEDOUT if it was silent, else -1. */
int run_end(struct run *run);

#endif
