/* SPDX-License-Identifier: BSD-3-Clause */
/* Next hops as text: collected, sorted, joined. */
#include "ctl/hops_text.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/log.h"

#define DEAD " dead"

void
hops_reset(struct hops_text *w)
{
	while (w->n > 0)
		free(w->hop[--w->n]);
	w->mtu_bytes = 0;
}

void
hops_free(struct hops_text *w)
{
	hops_reset(w);
	free(w->hop);
	*w = (struct hops_text){0};
}

static void
hops_push(struct hops_text *w, char *hop)
{
	if (w->n == w->cap) {
		w->cap = w->cap == 0 ? 8 : w->cap * 2;
		w->hop = realloc(w->hop, w->cap * sizeof(*w->hop));
	}
	if (w->hop == NULL || hop == NULL)
		abort();
	w->hop[w->n++] = hop;
}

void
hops_add_kind(struct hops_text *w, const char *kind)
{
	hops_push(w, strdup(kind));
}

/* Spell an IPv4-mapped address as the daemon does. zebra writes it in hexadecimal. */
static const char *
via_of_one_spelling(const char *via, char text[INET6_ADDRSTRLEN])
{
	struct in6_addr addr;

	if (via == NULL || strncmp(via, "::ffff:", 7) != 0 ||
	    inet_pton(AF_INET6, via, &addr) != 1)
		return via;
	return inet_ntop(AF_INET6, &addr, text, INET6_ADDRSTRLEN);
}

void
hops_add(struct hops_text *w, const char *via, const char *dev, const char *push,
	 long long weight)
{
	bool pushes = push != NULL && push[0] != '\0';
	char text[INET6_ADDRSTRLEN], *hop;

	via = via_of_one_spelling(via, text);
	if (asprintf(&hop, "%s%s%sdev %s%s%s weight %lld", via != NULL ? "via " : "",
		     via != NULL ? via : "", via != NULL ? " " : "", dev, pushes ? " " : "",
		     pushes ? push : "", weight > 0 ? weight : 1) < 0)
		abort();
	/*
	 * Rows of the daemon are made safe for a terminal as well, so both sides can be
	 * compared.
	 */
	log_harmless(hop);
	hops_push(w, hop);
}

void
hops_mark_dead(struct hops_text *w)
{
	char *hop;

	if (asprintf(&hop, "%s" DEAD, w->hop[w->n - 1]) < 0)
		abort();
	free(w->hop[w->n - 1]);
	w->hop[w->n - 1] = hop;
}

void
hops_drop_dead(struct hops_text *w)
{
	for (unsigned int i = 0; i < w->n; i++) {
		size_t len = strlen(w->hop[i]), mark = strlen(DEAD);

		if (len > mark && strcmp(w->hop[i] + len - mark, DEAD) == 0)
			w->hop[i][len - mark] = '\0';
	}
}

void
hops_set_mtu(struct hops_text *w, bool ip6, uint32_t mtu_bytes)
{
	uint32_t least = ip6 ? 1280 : 68; /* RFC 8200, 5; RFC 791, 3.2 */

	w->mtu_bytes = mtu_bytes == 0 || mtu_bytes >= UINT16_MAX ? 0
		       : mtu_bytes < least                       ? least
								 : mtu_bytes;
}

void
hops_drop_bare_push(struct hops_text *w)
{
	for (unsigned int i = 0; i < w->n; i++) {
		char *name = w->hop[i] + strlen("dev "), *weight;

		if (strncmp(w->hop[i], "dev ", strlen("dev ")) != 0)
			continue;
		weight = strstr(name, " weight ");
		if (weight != NULL)
			memmove(name + strcspn(name, " "), weight, strlen(weight) + 1);
	}
}

static int
text_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *
hops_join(struct hops_text *w)
{
	size_t size = sizeof(", mtu 65535");
	char *text, *end;

	if (w->n == 0)
		return NULL;
	/* A single next hop gets all packets, whatever its weight in the group was. */
	if (w->n == 1 && (end = strstr(w->hop[0], " weight ")) != NULL)
		strcpy(end, " weight 1");
	qsort(w->hop, w->n, sizeof(*w->hop), text_order);
	for (unsigned int i = 0; i < w->n; i++)
		size += strlen(w->hop[i]) + 2;
	end = text = malloc(size);
	if (text == NULL)
		abort();
	for (unsigned int i = 0; i < w->n; i++)
		end += sprintf(end, "%s%s", i == 0 ? "" : "; ", w->hop[i]);
	if (w->mtu_bytes != 0)
		sprintf(end, ", mtu %u", w->mtu_bytes);
	return text;
}

uint64_t
text_hash(const char *text)
{
	size_t left = strlen(text);
	uint64_t h = left;

	for (; left > 0; left -= left < 8 ? left : 8) {
		uint64_t w = 0;

		memcpy(&w, text, left < 8 ? left : 8);
		h = mix64(h + w);
		text += 8;
	}
	return h;
}

uint64_t
hops_hash(const char *text)
{
	return text_hash(text) | 1;
}
