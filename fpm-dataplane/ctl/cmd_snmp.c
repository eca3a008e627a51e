/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl snmp`: serve ifTable and ifXTable (RFC 2863) to snmpd. snmpd starts this program
 * and speaks pass_persist with it (snmpd.conf(5)). A request is a line with the command and
 * a line with the object. The answer is the object, its type and its value, or NONE.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cmd.h"
#include "ctl/snmp_table.h"

#define OID_MAX   64 /* numbers; longer identifiers name no object of this table */
#define VALUE_MAX 512

struct oid {
	unsigned int n;
	uint32_t at[OID_MAX];
};

/* The entries of the two tables: mib-2.2.2.1 and mib-2.31.1.1.1. */
static const struct oid entry[] = {
	{9, {1, 3, 6, 1, 2, 1, 2, 2, 1}},
	{10, {1, 3, 6, 1, 2, 1, 31, 1, 1, 1}},
};
#define N_ENTRY (sizeof(entry) / sizeof(entry[0]))

/* Parse ".1.3.6". Returns false if it is no object identifier. */
static bool
oid_parse(const char *text, struct oid *oid)
{
	oid->n = 0;
	while (*text != '\0') {
		unsigned long long number;
		char *end;

		if (*text == '.')
			text++;
		if (*text < '0' || *text > '9' || oid->n == OID_MAX)
			return false;
		errno = 0;
		number = strtoull(text, &end, 10);
		if (errno != 0 || number > UINT32_MAX || (*end != '.' && *end != '\0'))
			return false;
		oid->at[oid->n++] = (uint32_t)number;
		text = end;
	}
	return oid->n > 0;
}

/*
 * Compare an identifier with an entry, up to the length of the shorter. Return -1, 0 or 1.
 */
static int
oid_order(const struct oid *oid, unsigned int k)
{
	for (unsigned int i = 0; i < oid->n && i < entry[k].n; i++)
		if (oid->at[i] != entry[k].at[i])
			return oid->at[i] < entry[k].at[i] ? -1 : 1;
	return 0;
}

/* Answer with the object, its type and its value. Returns false if there is none. */
static bool
object_answer(const struct snmp_table *t, unsigned int k, unsigned int column,
	      const struct snmp_row *row)
{
	char value[VALUE_MAX];

	if (!snmp_value(t, entry[k].at[6], column, row, value, sizeof(value)))
		return false;
	for (unsigned int i = 0; i < entry[k].n; i++)
		printf(".%u", entry[k].at[i]);
	printf(".%u.%u\n%s", column, row->link.ifindex, value);
	return true;
}

/* Answer the request "get": for exactly this object. */
static bool
answer_get(const struct snmp_table *t, const struct oid *oid)
{
	for (unsigned int k = 0; k < N_ENTRY; k++) {
		unsigned int n = entry[k].n;

		if (oid->n != n + 2 || oid_order(oid, k) != 0)
			continue;
		for (unsigned int i = 0; i < t->n; i++)
			if (t->row[i].link.ifindex == oid->at[n + 1])
				return object_answer(t, k, oid->at[n], &t->row[i]);
	}
	return false;
}

/* Answer with the first object of table `k` after this identifier. */
static bool
answer_next_in(const struct snmp_table *t, const struct oid *oid, unsigned int k)
{
	unsigned int n = entry[k].n;
	int order = oid_order(oid, k);
	bool inside = order == 0 && oid->n > n;
	uint32_t column = inside ? oid->at[n] : 0;
	/* The next object after .column.5.1 is .column.6, as after .column.5. */
	uint64_t from = inside && oid->n > n + 1 ? oid->at[n + 1] + 1ull : 0;

	if (order > 0)
		return false;
	for (; column <= snmp_columns(entry[k].at[6]); column++, from = 0)
		for (unsigned int i = 0; i < t->n; i++)
			if (t->row[i].link.ifindex >= from &&
			    object_answer(t, k, column, &t->row[i]))
				return true;
	return false;
}

/*
 * Answer the request "getnext": for the first object after this identifier. After the last
 * object of a table answer NONE, because snmpd requests each table separately.
 */
static bool
answer_next(const struct snmp_table *t, const struct oid *oid)
{
	for (unsigned int k = 0; k < N_ENTRY; k++)
		if (oid->n > 6 && oid->at[6] == entry[k].at[6])
			return answer_next_in(t, oid, k);
	for (unsigned int k = 0; k < N_ENTRY; k++)
		if (answer_next_in(t, oid, k))
			return true;
	return false;
}

/* Read a line without its end. Returns false at the end of the input. */
static bool
line_read(char **line, size_t *room)
{
	ssize_t len = getline(line, room, stdin);

	if (len <= 0)
		return false;
	(*line)[strcspn(*line, "\r\n")] = '\0';
	return true;
}

/* Handle a request that has an object on the next line. */
static void
request_handle(struct snmp_table *t, const char *request, const char *object)
{
	struct oid oid;
	bool found = false;

	if (oid_parse(object, &oid) && snmp_table_refresh(t) == 0)
		found = strcmp(request, "get") == 0 ? answer_get(t, &oid)
						    : answer_next(t, &oid);
	if (!found)
		puts("NONE");
}

static int
snmp_run(const struct options *opt, int n, char **word)
{
	struct snmp_table t = {.socket = opt->socket};
	char *request = NULL, *object = NULL;
	size_t request_room = 0, object_room = 0;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_snmp);
	if (isatty(STDIN_FILENO))
		fputs("fpmctl: snmpd starts this command; it reads requests such as PING, "
		      "get and getnext\n",
		      stderr);
	/* An empty line ends the session. */
	while (line_read(&request, &request_room) && request[0] != '\0') {
		if (strcmp(request, "PING") == 0)
			puts("PONG");
		else if (strcmp(request, "get") == 0 || strcmp(request, "getnext") == 0) {
			if (!line_read(&object, &object_room))
				break;
			request_handle(&t, request, object);
		} else if (strcmp(request, "set") == 0) {
			/* Two lines follow: the object, then a type with a value. */
			if (!line_read(&object, &object_room) ||
			    !line_read(&object, &object_room))
				break;
			puts("not-writable");
		} else {
			puts("NONE");
		}
		if (fflush(stdout) != 0)
			break;
	}
	free(request);
	free(object);
	free(t.row);
	return CTL_OK;
}

static void
snmp_help(FILE *out)
{
	fputs("      A line pass_persist in snmpd.conf(5) makes snmpd start this command. "
	      "snmpd\n"
	      "      exchanges requests and answers with it on standard input and output.\n"
	      "      The page Monitoring of the manual has the lines. snmpd must run in "
	      "the\n"
	      "      control namespace, and its user must be in the group fpm-dataplane.\n",
	      out);
}

const struct command cmd_snmp = {
	.name = "snmp",
	.words = "",
	.text = "serve the counters of interfaces to snmpd (pass_persist)",
	.run = snmp_run,
	.help = snmp_help,
};
