/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report: send messages to bfdd, and report the states of sessions. A connection that takes
 * no whole message is marked as broken. conn.c closes it at the end of the round, so a caller
 * of these functions keeps its sessions and connections.                              [bfd]
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "bfd/impl.h"

void
conn_send(struct conn *c, const uint8_t *octets, size_t n)
{
	ssize_t sent;

	if (c->fd < 0 || c->broken)
		return;
	/* bfdd would wait for the rest of a truncated message. */
	sent = send(c->fd, octets, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == (ssize_t)n)
		return;
	log_warn("bfd: connection closed reason=bfdd-does-not-read error=\"%s\"",
		 sent < 0 ? strerror(errno) : "message cut");
	c->broken = true;
}

void
session_report(struct bfd *b, const struct session *s)
{
	uint8_t octets[BFD_DPLANE_STATE_BYTES];
	struct bfd_dplane_state state;

	if (s->k->conn < 0 || b->plan.conn[s->k->conn].connecting)
		return;
	bfd_dplane_state_of(&s->k->fsm, s->k->told.lid, &state);
	conn_send(&b->conn[s->k->conn], octets, bfd_dplane_write_state(&state, octets));
}
