/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send frames by an interface, as fast as one core can or at a rate:
 *
 *     flood INTERFACE FILE SECONDS FRAMES [RATE]
 *
 * FILE holds the frames, each after its length (two octets, most significant first). They
 * are sent in turn, past the queueing discipline, for at least SECONDS and until the
 * interface has taken FRAMES: a machine with other work takes longer. At the end flood
 * prints how many frames the interface took, how often it took none, and the seconds.
 * SIGTERM ends flood early.
 *
 * With RATE (frames a second) flood sends BATCH frames at a time and never makes up for
 * lost time: after a stall it sends no faster than before. It ends when the interface has
 * taken exactly FRAMES frames, or after SECONDS. RATE 0 is the same as no RATE.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define FRAMES_MAX 65536
#define BATCH      64

static volatile sig_atomic_t ended;

static void
on_term(int number)
{
	ended = 1;
}

static int
fail(const char *what)
{
	fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Read the frames of a file. They are never freed. Return their number; 0: an error. */
static unsigned int
frames_read(FILE *f, struct iovec *frame)
{
	unsigned int n = 0;
	uint16_t len;

	while (n < FRAMES_MAX && fread(&len, sizeof(len), 1, f) == 1) {
		frame[n].iov_len = ntohs(len);
		frame[n].iov_base = malloc(frame[n].iov_len);
		if (frame[n].iov_base == NULL ||
		    fread(frame[n].iov_base, frame[n].iov_len, 1, f) != 1)
			return 0;
		n++;
	}
	return n;
}

static int
socket_open(const char *interface)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_ifindex = (int)if_nametoindex(interface)};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	if (fd < 0 || to.sll_ifindex == 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -1;
	return fd;
}

/* Sleep until `next`, the time of the next batch; returns the time of the one after it. */
static double
turn_wait(double next, double rate)
{
	double left = next - monotonic_s();
	const struct timespec rest = {.tv_nsec = (long)(left * 1e9)};

	if (left > 0 && left < 1)
		nanosleep(&rest, NULL);
	return (left > 0 ? next : next - left) + BATCH / rate;
}

int
main(int argc, char **argv)
{
	static struct iovec frame[FRAMES_MAX];
	static struct mmsghdr msg[FRAMES_MAX];
	unsigned long long sent = 0, refused = 0, frames;
	double begin, end, next, rate = 0;
	unsigned int n, at = 0;
	FILE *file;
	int fd;

	if (argc != 5 && argc != 6) {
		fputs("usage: flood INTERFACE FILE SECONDS FRAMES [RATE]\n", stderr);
		return 2;
	}
	file = fopen(argv[2], "re");
	if (file == NULL)
		return fail(argv[2]);
	n = frames_read(file, frame);
	fclose(file);
	fd = socket_open(argv[1]);
	if (n == 0 || fd < 0)
		return fail(n == 0 ? argv[2] : argv[1]);
	for (unsigned int i = 0; i < n; i++)
		msg[i].msg_hdr = (struct msghdr){.msg_iov = &frame[i], .msg_iovlen = 1};
	signal(SIGTERM, on_term);
	if (argc == 6)
		rate = atof(argv[5]);
	begin = next = monotonic_s();
	end = begin + atof(argv[3]);
	frames = strtoull(argv[4], NULL, 10);
	while (!ended && (rate > 0 ? monotonic_s() < end && sent < frames
				   : monotonic_s() < end || sent < frames)) {
		unsigned int batch = n - at < BATCH ? n - at : BATCH;
		int rc;

		if (rate > 0) {
			next = turn_wait(next, rate);
			batch = frames - sent < batch ? (unsigned int)(frames - sent)
						      : batch;
		}
		rc = sendmmsg(fd, msg + at, batch, 0);
		if (rc < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			return fail("sendmmsg");
		/* If there is no room for a frame, the frame is lost, as on a wire. */
		at = (at + (rc > 0 ? (unsigned int)rc : 1)) % n;
		sent += rc > 0 ? (unsigned int)rc : 0;
		refused += rc <= 0;
	}
	printf("%llu %llu %.3f\n", sent, refused, monotonic_s() - begin);
	return 0;
}
