/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client: connections to the control socket, made by ctl_socket.c.                [ui]
 */
#ifndef UI_CLIENT_H
#define UI_CLIENT_H

struct ui;

/* Serve a new connection. Owns `fd`. */
void client_new(struct ui *ui, int fd);

/* Close all connections. */
void clients_free(struct ui *ui);

#endif
