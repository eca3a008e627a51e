/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run `ip -N rule show`, and return the tables of the rules.
 */
#include <stdlib.h>
#include <string.h>

#include "ctl/kernel_table.h"
#include "ctl/run.h"

#define PATIENCE_S 120
#define BLANKS     " \t\\\n"

/*
 * Return true if a word of a rule that has a value is a selector or an option that
 * forwarders support.
 */
static bool
rule_word_is_known(const char *word)
{
	static const char *const known[] = {"from",
					    "to",
					    "iif",
					    "tos",
					    "dsfield",
					    "dscp",
					    "ipproto",
					    "sport",
					    "dport",
					    "proto",
					    "suppress_prefixlength",
					    "suppress_ifgroup",
					    "realms"};

	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(word, known[i]) == 0)
			return true;
	return false;
}

/*
 * Parse a line such as "32764:	not from 192.0.2.2 fwmark 0x1 lookup 100", and write to it.
 * Returns the table, or 0 if the rule has no table or matches no received packet, for
 * example because it selects a mark or a user.
 */
static uint32_t
rule_take(char *text)
{
	char *save = NULL, *word, *value;
	bool invert = false, lacks = false;
	uint32_t table = 0;

	(void)strtok_r(text, BLANKS, &save); /* the preference of the rule */
	while ((word = strtok_r(NULL, BLANKS, &save)) != NULL) {
		if (strcmp(word, "not") == 0) {
			invert = true;
			continue;
		}
		if (word[0] == '[')
			continue; /* [detached]: the interface does not exist */
		value = strtok_r(NULL, BLANKS, &save);
		if (value != NULL && strcmp(word, "lookup") == 0)
			table = (uint32_t)strtoul(value, NULL, 10);
		else
			lacks |= !rule_word_is_known(word);
	}
	return lacks && !invert ? 0 : table;
}

void
kernel_rule_tables(uint8_t family, void (*on_table)(uint32_t table, void *ctx), void *ctx)
{
	struct run run = {.patience_s = PATIENCE_S, .quiet = true};
	char *line = NULL;
	size_t size = 0;
	uint32_t table;

	if (run_start(&run, family == 4 ? "ip -N -4 rule show" : "ip -N -6 rule show",
		      NULL) < 0)
		return;
	while (getline(&line, &size, run.out) > 0)
		if ((table = rule_take(line)) != 0)
			on_table(table, ctx);
	free(line);
	(void)run_end(&run);
}
