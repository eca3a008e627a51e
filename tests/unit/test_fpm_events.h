/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events as text ("route 198.51.100.0/24 t254 nh3;") and the expected events of a stream.
 * The tests of fpm share this. Include it after cmocka.h.
 */
#ifndef TEST_FPM_EVENTS_H
#define TEST_FPM_EVENTS_H

#include <stdarg.h>
#include <stdio.h>

#include "base/mpls_entry.h"
#include "fpm/decode.h"
#include "test_fpm_build.h"

struct text {
	char *s;
	size_t len, size;
};

static inline void __attribute__((format(printf, 2, 3)))
text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	char piece[256];
	int n;

	va_start(ap, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	if (t->len + (size_t)n + 1 > t->size) {
		t->size = (t->size + (size_t)n + 1) * 2;
		t->s = realloc(t->s, t->size);
		if (t->s == NULL)
			abort();
	}
	memcpy(t->s + t->len, piece, (size_t)n + 1);
	t->len += (size_t)n;
}

static inline void
text_hops(struct text *t, const struct fpm_event *ev)
{
	static const char *const encap[N_HOP_ENCAP] = {
		"", " mpls", " seg6", " other-encap", " pop", " lwtunnel"};
	char a[PREFIX_STRLEN];

	for (unsigned int i = 0; i < ev->n_hops; i++) {
		const struct fpm_hop *h = &ev->hops[i];

		if (ev->is_group) {
			text_add(t, " [id%u w%u]", h->id, h->weight);
			continue;
		}
		text_add(t, " [");
		if (h->gw_family != 0)
			text_add(t, "%s ", ipaddr_str(&h->gw, h->gw_family, a));
		text_add(t, "if%u w%u%s", h->ifindex, h->weight, encap[h->encap]);
		for (unsigned int k = 0; k < h->n_labels && h->encap != HOP_SEG6; k++)
			text_add(t, "%c%u", k == 0 ? ' ' : '/', h->label[k]);
		text_add(t, "%s]", h->onlink ? " onlink" : "");
	}
}

static inline void
text_event(struct text *t, const struct fpm_event *ev)
{
	char p[PREFIX_STRLEN];

	switch (ev->kind) {
	case FPM_SESSION_UP:
	case FPM_SESSION_DOWN:
		text_add(t, "%s gen%u pid%u", ev->kind == FPM_SESSION_UP ? "up" : "down",
			 ev->session.gen, ev->session.nl_pid);
		break;
	case FPM_ZEBRA:
		text_add(t, "zebra pid%u%s", ev->session.nl_pid,
			 ev->session.held_until_s != 0 ? " held" : "");
		break;
	case FPM_ROUTE:
		text_add(t, "route %s t%u", prefix_str(&ev->prefix, p), ev->table);
		if (ev->rtm_type != RTN_UNICAST)
			text_add(t, " type%u", ev->rtm_type);
		if (ev->mtu_bytes != 0)
			text_add(t, " mtu%u", ev->mtu_bytes);
		if (ev->nhid != 0)
			text_add(t, " nh%u", ev->nhid);
		break;
	case FPM_ROUTE_DEL:
		text_add(t, "del %s t%u", prefix_str(&ev->prefix, p), ev->table);
		break;
	case FPM_NEXTHOP:
		text_add(t, "nexthop %u%s", ev->nhid, ev->blackhole ? " blackhole" : "");
		break;
	case FPM_NEXTHOP_DEL:
		text_add(t, "nexthop-del %u", ev->nhid);
		break;
	}
	text_hops(t, ev);
	text_add(t, ";");
}

struct seen {
	struct text text;
	struct fpm_decoded decoded;
	unsigned int n;
};

/* Assert that an event is well-formed, for any octets. */
static inline void
event_is_sound(const struct fpm_event *ev)
{
	assert_true(ev->kind >= FPM_ROUTE && ev->kind <= FPM_NEXTHOP_DEL);
	assert_true((ev->n_hops == 0) == (ev->hops == NULL));
	if (ev->kind == FPM_ROUTE || ev->kind == FPM_ROUTE_DEL) {
		struct prefix masked = ev->prefix;

		assert_true(family_is_ip(masked.family) == (ev->table != FPM_TABLE_NONE));
		assert_true(family_is_ip(masked.family) || ev->kind == FPM_ROUTE_DEL ||
			    ev->n_hops > 0);
		assert_true(masked.len <= family_bits(masked.family));
		prefix_mask(&masked);
		assert_true(prefix_equal(&masked, &ev->prefix));
		assert_int_not_equal(ev->table, 0);
		assert_false(ev->is_group);
	} else {
		assert_int_not_equal(ev->nhid, 0);
	}
	for (unsigned int i = 0; i < ev->n_hops; i++) {
		assert_in_range(ev->hops[i].weight, 1, 65536);
		assert_true(ev->hops[i].encap < N_HOP_ENCAP);
		assert_true(ev->hops[i].n_labels <=
			    (ev->hops[i].encap == HOP_SEG6 ? FPM_WORDS_MAX : LABELS_MAX));
		assert_true(ev->hops[i].n_labels == 0 || ev->hops[i].encap == HOP_MPLS ||
			    ev->hops[i].encap == HOP_SEG6);
		assert_true(ev->hops[i].gw_family == 0 || ev->hops[i].gw_family == 4 ||
			    ev->hops[i].gw_family == 6);
		assert_int_equal(ev->hops[i].id != 0, ev->is_group);
	}
}

static inline int
see(void *arg, const struct fpm_event *ev)
{
	struct seen *seen = arg;

	event_is_sound(ev);
	text_event(&seen->text, ev);
	seen->n++;
	free(ev->hops);
	return 0;
}

/* Decode all frames of a stream. The stream itself must be well-formed. */
static inline struct seen
decode_stream(const uint8_t *p, size_t len)
{
	struct seen seen = {0};
	struct fpm_frame f;
	int n;

	text_add(&seen.text, "%s", "");
	for (; len > 0; p += n, len -= (size_t)n) {
		n = fpm_frame_next(p, len, &f);
		assert_true(n > 0);
		assert_int_equal(fpm_decode(&f, see, &seen, &seen.decoded), 0);
	}
	return seen;
}

/* Decode `w`, compare its events with `expected`, free all, and return the decoded. */
static inline struct fpm_decoded
becomes(struct wire *w, const char *expected)
{
	struct seen seen = decode_stream(w->octet, w->len);
	struct fpm_decoded decoded = seen.decoded;

	assert_string_equal(seen.text.s, expected);
	free(seen.text.s);
	free(w);
	return decoded;
}

static inline struct wire *
wire_new(void)
{
	struct wire *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	return w;
}

static inline struct wire *
one_frame(void)
{
	struct wire *w = wire_new();

	frame_begin(w);
	return w;
}

/* End the open message and frame. Assert that the events are `expected`. */
static inline struct fpm_decoded
last_becomes(struct wire *w, const char *expected)
{
	msg_end(w);
	frame_end(w);
	return becomes(w, expected);
}

/*
 * End the open message and frame. Assert that there is no event. The caller checks the
 * counter.
 */
static inline struct fpm_decoded
last_is_nothing(struct wire *w)
{
	struct fpm_decoded t = last_becomes(w, "");

	assert_int_equal(t.messages, 1);
	assert_int_equal(t.malformed + t.skipped_route + t.skipped_type, 1);
	return t;
}

#endif
