/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: its path in the file system, and its accept. Runs in ui.
 * ctl_socket_open() replaces a socket on which no process answers. It never replaces a
 * socket on which a daemon answers, or a file that is no socket.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "ui/client.h"

#define BACKLOG        64
#define ACCEPT_PAUSE_S 0.2

/* Create the directories above `path`. Returns 0 or -errno. */
static int
path_make_parents(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = dir; (slash = strchr(slash + 1, '/')) != NULL;) {
		*slash = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/*
 * Remove a stale socket. Returns 0, -EADDRINUSE when a process answers, -EEXIST: not a
 * socket.
 */
static int
socket_remove_stale(const struct sockaddr_un *sun)
{
	struct stat st;
	int fd, rc;

	if (lstat(sun->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) < 0 ? -errno : 0;
	close(fd);
	/*
	 * Only ECONNREFUSED proves that no process listens. With a full backlog a process
	 * listens. EACCES: an operator has given the socket of the last daemon to another
	 * user (start/preflight.c refuses a socket that may be another daemon's).
	 */
	if (rc == 0 || rc == -EAGAIN)
		return -EADDRINUSE;
	if (rc != -ECONNREFUSED && rc != -EACCES)
		return rc;
	return unlink(sun->sun_path) < 0 ? -errno : 0;
}

static void
socket_on_accept(struct ev_loop *loop, ev_io *io, int revents)
{
	static struct log_limit paused;
	struct ui *ui = io->data;
	unsigned int missed;
	int fd = accept4(ui->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		client_new(ui, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		   errno == ENOBUFS) {
		if (log_allowed(&paused, &missed))
			log_warn("ui: accept paused error=\"%s\" missed=%u",
				 strerror(errno), missed);
		ev_io_stop(loop, io);
		ev_timer_set(&ui->accept_pause, ACCEPT_PAUSE_S, 0);
		ev_timer_start(loop, &ui->accept_pause);
	}
}

static void
socket_on_accept_pause(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct ui *ui = t->data;

	ev_io_start(loop, &ui->accept);
}

int
ctl_socket_open(struct ui *ui)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, rc;

	if (strlen(ui->conf.control_socket) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, ui->conf.control_socket);
	rc = path_make_parents(sun.sun_path);
	if (rc == 0)
		rc = socket_remove_stale(&sun);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/*
	 * Set the mode before bind(), which uses it for the path, so that the path is never
	 * open to others.
	 */
	if (fchmod(fd, 0660) < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		goto undo_fd;
	if (chmod(sun.sun_path, 0660) < 0 || stat(sun.sun_path, &st) < 0 ||
	    listen(fd, BACKLOG) < 0)
		goto undo_path;
	ui->socket_dev = st.st_dev;
	ui->socket_ino = st.st_ino;
	ui->listen_fd = fd;
	ev_io_init(&ui->accept, socket_on_accept, fd, EV_READ);
	ev_timer_init(&ui->accept_pause, socket_on_accept_pause, 0, 0);
	ui->accept.data = ui->accept_pause.data = ui;
	ev_io_start(ui->w->loop, &ui->accept);
	return 0;
undo_path:
	rc = -errno;
	unlink(sun.sun_path);
	close(fd);
	return rc;
undo_fd:
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * Log once that another program has put a file of its own at the path of our socket. Only
 * an operator knows whether it may be removed.
 */
static void
socket_replaced(struct ui *ui, const struct stat *st)
{
	bool ours = st->st_dev == ui->socket_dev && st->st_ino == ui->socket_ino;

	if (!ours && st->st_ino != ui->replaced_by)
		log_error(
			"ui: control socket replaced path=%s by=%s "
			"hint=\"remove this path, the daemon then opens its socket again\"",
			ui->conf.control_socket,
			S_ISSOCK(st->st_mode)  ? "another-socket"
			: S_ISDIR(st->st_mode) ? "a-folder"
					       : "a-file");
	ui->replaced_by = ours ? 0 : st->st_ino;
}

void
ctl_socket_renew(struct ui *ui)
{
	static struct log_limit refused;
	int old = ui->listen_fd, rc;
	unsigned int missed;
	struct stat st;

	if (old < 0)
		return;
	if (lstat(ui->conf.control_socket, &st) == 0) {
		socket_replaced(ui, &st);
		return;
	}
	if (errno != ENOENT)
		return;
	ev_io_stop(ui->w->loop, &ui->accept);
	ev_timer_stop(ui->w->loop, &ui->accept_pause);
	rc = ctl_socket_open(ui);
	if (rc == 0) {
		close(old);
		log_warn("ui: control socket opened again path=%s reason=deleted",
			 ui->conf.control_socket);
		return;
	}
	ev_io_start(ui->w->loop, &ui->accept);
	if (log_allowed(&refused, &missed))
		log_error("ui: control socket deleted path=%s error=\"%s\" retry=yes "
			  "missed=%u",
			  ui->conf.control_socket, strerror(-rc), missed);
}

/*
 * Close the listening socket. Keep the path, because another daemon may use it, or this
 * daemon may listen again.
 */
void
ctl_socket_close(struct ui *ui)
{
	if (ui->listen_fd < 0)
		return;
	clients_free(ui);
	ev_io_stop(ui->w->loop, &ui->accept);
	ev_timer_stop(ui->w->loop, &ui->accept_pause);
	close(ui->listen_fd);
	ui->listen_fd = -1;
}

void
ctl_socket_remove(const struct ui *ui)
{
	struct stat st;

	if (ui->socket_ino != 0 && stat(ui->conf.control_socket, &st) == 0 &&
	    st.st_dev == ui->socket_dev && st.st_ino == ui->socket_ino)
		unlink(ui->conf.control_socket);
}
