/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions of FRR, their faults, and lines of vtysh. No files, no state. */
#include "ctl/frr_version.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_DIGITS 4 /* most digits of one part of a version */

/* Parse a number at *p and move *p past it; -1: none, or too long. */
static int
number_take(const char **p)
{
	size_t len = strspn(*p, "0123456789");
	int n;

	if (len == 0 || len > NUMBER_DIGITS)
		return -1;
	n = atoi(*p);
	*p += len;
	return n;
}

int
frr_version_parse(const char *text, struct frr_version *v)
{
	int major, minor = -1, patch = 0;

	*v = (struct frr_version){0};
	major = number_take(&text);
	if (major >= 0 && *text++ == '.')
		minor = number_take(&text);
	if (minor < 0)
		return -EINVAL;
	if (*text == '.') {
		text++;
		patch = number_take(&text);
	}
	if (patch < 0 || (*text != '\0' && strchr("-_+~", *text) == NULL))
		return -EINVAL;
	*v = (struct frr_version){(unsigned int)major, (unsigned int)minor,
				  (unsigned int)patch};
	return 0;
}

bool
frr_module_line(const char *line, char version[FRR_VERSION_STRLEN])
{
	char name[16], word[FRR_VERSION_STRLEN];

	_Static_assert(FRR_VERSION_STRLEN == 64, "width of the format");
	if (sscanf(line, "%15s %63s", name, word) != 2 || strcmp(name, "zebra") != 0 ||
	    !isdigit((unsigned char)word[0]))
		return false;
	strcpy(version, word);
	return true;
}

/* --- faults --------------------------------------------------------------------------- */

static bool
version_is(const struct frr_version *v, unsigned int major, unsigned int minor,
	   unsigned int last_patch)
{
	return v->major == major && v->minor == minor && v->patch <= last_patch;
}

static bool
version_is_before(const struct frr_version *v, unsigned int major, unsigned int minor)
{
	return v->major < major || (v->major == major && v->minor < minor);
}

bool
frr_keeps_dead_statics(const struct frr_version *v)
{
	return version_is(v, 10, 3, 2) || version_is(v, 10, 4, 1);
}

bool
frr_hides_kernel_routes(const struct frr_version *v)
{
	return !version_is_before(v, 10, 3);
}

bool
frr_crashes_by_evpn(const struct frr_version *v)
{
	return version_is_before(v, 10, 2);
}

bool
frr_gives_bfd_in_parts(const struct frr_version *v)
{
	return version_is_before(v, 10, 8);
}

bool
frr_announces_other_sids(const struct frr_version *v)
{
	return version_is_before(v, 8, 5);
}

bool
frr_replays_denied_routes(const struct frr_version *v)
{
	return version_is_before(v, 8, 5);
}

bool
frr_needs_kernel_next_hops(const struct frr_version *v)
{
	return version_is_before(v, 10, 0);
}

/* --- lines ---------------------------------------------------------------------------- */

/* Return true if the next word at *p is `word`, and move *p past it. */
static bool
word_take(const char **p, const char *word)
{
	size_t len = strlen(word);
	const char *at = *p + strspn(*p, " ");

	if (strncmp(at, word, len) != 0 || (at[len] != ' ' && at[len] != '\0'))
		return false;
	*p = at + len;
	return true;
}

/* Move *p past its next word. Returns false if there is none. */
static bool
word_skip(const char **p)
{
	*p += strspn(*p, " ");
	if (**p == '\0')
		return false;
	*p += strcspn(*p, " ");
	return true;
}

static bool
word_is_address(const char *word)
{
	char text[INET6_ADDRSTRLEN], octets[16];
	size_t len = strcspn(word, " ");

	if (len >= sizeof(text))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	return inet_pton(AF_INET, text, octets) == 1 ||
	       inet_pton(AF_INET6, text, octets) == 1;
}

/*
 * Return true if the word after the gateway is an option or the distance, not an interface.
 */
static bool
word_is_option(const char *word)
{
	static const char *const option[] = {"tag",      "onlink",     "label", "table",
					     "bfd",      "color",      "vrf",   "metric",
					     "segments", "nexthop-vrf"};

	for (unsigned int i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
		const char *p = word;

		if (word_take(&p, option[i]))
			return true;
	}
	return word[strspn(word, "0123456789")] == ' ' ||
	       word[strspn(word, "0123456789")] == '\0';
}

const char *
frr_static_gap(const char *line)
{
	const char *p = line, *gap;

	if ((!word_take(&p, "ip") && !word_take(&p, "ipv6")) || !word_take(&p, "route") ||
	    !word_skip(&p))
		return NULL;
	if (word_take(&p, "from") && !word_skip(&p))
		return NULL;
	p += strspn(p, " ");
	if (!word_is_address(p))
		return NULL;
	gap = p + strcspn(p, " ");
	p = gap + strspn(gap, " ");
	return word_is_option(p) ? gap : NULL;
}

bool
frr_line_denies_routes(const char *line)
{
	const char *p = line;

	return (word_take(&p, "ip") || word_take(&p, "ipv6")) &&
	       word_take(&p, "protocol") && strstr(p, " route-map ") != NULL;
}

bool
frr_line_is_l3vni(const char *line)
{
	char vni[16], type[8];

	return sscanf(line, "%15s %7s", vni, type) == 2 && strcmp(type, "L3") == 0 &&
	       vni[strspn(vni, "0123456789")] == '\0';
}

bool
frr_line_is_other_sid(const char *line)
{
	const char *word = strstr(line, "tovpn_sid: ");
	struct in6_addr sid;

	return word != NULL && inet_pton(AF_INET6, strchr(word, ' ') + 1, &sid) == 1 &&
	       sid.s6_addr[8] == 0 && sid.s6_addr[9] == 0;
}

bool
frr_line_needs_labels(const char *line)
{
	static const char *const begin[] = {
		"mpls ldp",  "mpls lsp ",          "mpls enable",
		"mpls bgp ", "segment-routing on", "label vpn export",
	};

	line += strspn(line, " ");
	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (strncmp(line, begin[i], strlen(begin[i])) == 0)
			return true;
	return false;
}
