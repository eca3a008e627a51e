/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: libmicrohttpd in ui's loop. It has no thread of its own; the loop watches its epoll
 * descriptor and its timeout.                                                     [ui]
 */
#ifndef UI_HTTP_H
#define UI_HTTP_H

#include <microhttpd.h>

struct ui;
struct http;

/*
 * Serve with `handler`, `options` ending with MHD_OPTION_END. `listen_fd` < 0: none listens,
 * connections come by http_add(). Returns NULL when there is no room for it; the
 * listening socket is the caller's then, else its own.
 */
struct http *http_open(struct ui *ui, int listen_fd, MHD_AccessHandlerCallback handler,
		       void *ctx, const struct MHD_OptionItem *options);
void http_close(struct http *h);

/* One more connection, whose descriptor is its own from now on. */
void http_add(struct http *h, int fd);

/* Go on with one that is suspended, in the loop's next round. */
void http_resume(struct http *h, struct MHD_Connection *conn);

/*
 * The whole answer: `data` of malloc(), which it owns from now on; `allow` are the methods
 * that a status of 405 has to name, NULL with any other. Returns what a handler returns.
 */
enum MHD_Result http_answer(struct MHD_Connection *conn, unsigned int status,
			    const char *type, const char *allow, char *data, size_t len);

#endif
