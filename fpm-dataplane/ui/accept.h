/* SPDX-License-Identifier: BSD-3-Clause */
/* accept: what a client asks for by Accept, RFC 9110, 12.5.1. */
#ifndef UI_ACCEPT_H
#define UI_ACCEPT_H

/* By what a media type is meant: the last counts most, whatever the others weigh. */
enum accept_by { ACCEPT_BY_NONE, ACCEPT_BY_ANY, ACCEPT_BY_RANGE, ACCEPT_BY_NAME };

/* All zero before the first line. */
struct accepted {
	enum accept_by by;
	unsigned int weight; /* thousandths; 0: it is not wanted */
};

/* Take one line of Accept, and those before it, into what is said of `type` ("text/plain"). */
void accept_add(struct accepted *of, const char *type, const char *line);

#endif
