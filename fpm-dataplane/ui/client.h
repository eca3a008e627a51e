/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client: connections to the control socket, made by ctl_socket.c.                [ui]
 */
#ifndef UI_CLIENT_H
#define UI_CLIENT_H

struct ui;

/* Serve a new connection; `fd` is the client's from now on. */
void client_new(struct ui *ui, int fd);

/* Drop them all. */
void clients_free(struct ui *ui);

#endif
