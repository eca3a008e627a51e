/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: run libmicrohttpd in ui's loop, without a thread of its own. The loop watches the
 * epoll descriptor and the timeout of libmicrohttpd. [ui]
 */
#ifndef UI_HTTP_H
#define UI_HTTP_H

#include <microhttpd.h>

struct ui;
struct http;

/*
 * Serve with `handler`; `options` end with MHD_OPTION_END. `listen_fd` < 0: no socket
 * listens, connections are added by http_add(). On success the server owns the listening
 * socket. Returns NULL on failure, for example without memory; the caller then keeps the
 * socket.
 */
struct http *http_open(struct ui *ui, int listen_fd, MHD_AccessHandlerCallback handler,
		       void *ctx, const struct MHD_OptionItem *options);
void http_close(struct http *h);

/* Call fn(ctx) after each run of libmicrohttpd. */
void http_after_run(struct http *h, void (*fn)(void *ctx), void *ctx);

/* Add a connection. Owns the descriptor. */
void http_add(struct http *h, int fd);

/* Resume a suspended connection in the next round of the loop. */
void http_resume(struct http *h, struct MHD_Connection *conn);

/*
 * Send a complete answer. The answer owns `data`, which was allocated with malloc().
 * `allow` lists the methods for a status of 405, else it is NULL. Returns the result for a
 * handler.
 */
enum MHD_Result http_answer(struct MHD_Connection *conn, unsigned int status,
			    const char *type, const char *allow, char *data, size_t len);

#endif
