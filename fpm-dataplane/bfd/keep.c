/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep: the sessions and partial messages in a memfd that the service manager keeps, so
 * that the next daemon continues to send at once. The times in the memfd stay valid,
 * because the next daemon uses the same clock, CLOCK_MONOTONIC. A record that was being
 * changed when the daemon was killed is dropped, because bfdd sends that session again.
 *                                                                                    [bfd]
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sd_notify.h"
#include "bfd/impl.h"

#define KEEP_VERSION 4u /* increment it when struct keep, or a struct in it, changes */
#define KEPT_BYTES   344u
#define KEEP_BYTES   sizeof(struct keep)
static_assert(sizeof(struct kept) == KEPT_BYTES, "raise KEEP_VERSION, and set KEPT_BYTES");
static_assert(sizeof(struct kept_part) == 65544 && BFD_CONNS_MAX == 48,
	      "raise KEEP_VERSION, and change test_bfd_stream");

struct keep {
	uint32_t version;
	_Atomic uint32_t at_rest; /* no step of the plan of connections was left */
	struct kept session[BFD_SESSIONS];
	struct kept_part part[BFD_CONNS_MAX];
};

static struct keep *
keep_of(const struct bfd *b)
{
	return caa_container_of(b->kept, struct keep, session[0]);
}

/* Return false if a record cannot be used. */
static bool
kept_is_sound(const struct kept *k, uint32_t number)
{
	return (k->writing & 1) == 0 && k->fsm.state <= BFD_UP &&
	       (k->fsm.my_discr & (BFD_SLOTS - 1)) == number &&
	       (k->told.family == 4 || k->told.family == 6);
}

static int
keep_map(struct bfd *b)
{
	void *mem =
		mmap(NULL, KEEP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, b->kept_fd, 0);

	if (mem == MAP_FAILED)
		return -errno;
	b->kept = ((struct keep *)mem)->session;
	return 0;
}

/* Return true if the inherited memory has the layout of this program. */
static bool
keep_is_ours(int fd)
{
	uint32_t version = 0;
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == (off_t)KEEP_BYTES &&
	       pread(fd, &version, sizeof(version), 0) == sizeof(version) &&
	       version == KEEP_VERSION;
}

int
keep_begin(struct bfd *b)
{
	const uint32_t version = KEEP_VERSION;
	int rc;

	b->kept_fd = sd_take(BFD_KEEP_FD);
	if (b->kept_fd >= 0 && !keep_is_ours(b->kept_fd)) {
		log_info("bfd: sessions not taken over reason=other-version");
		b->kept_lost = true;
		close(b->kept_fd);
		b->kept_fd = -1;
	}
	/* The manager still has memory that was inherited. */
	b->kept_to_store = b->kept_fd < 0;
	if (b->kept_fd < 0) {
		b->kept_fd = memfd_create("fpm-dataplane-bfd", MFD_CLOEXEC);
		if (b->kept_fd < 0 || ftruncate(b->kept_fd, (off_t)KEEP_BYTES) < 0 ||
		    pwrite(b->kept_fd, &version, sizeof(version), 0) != sizeof(version))
			return -errno;
	}
	rc = keep_map(b);
	for (uint32_t i = 1; rc == 0 && i < BFD_SESSIONS; i++)
		if (b->kept[i].used && !kept_is_sound(&b->kept[i], i)) {
			b->kept[i].used = false;
			b->kept_lost = true;
		}
	for (uint32_t i = 1; rc == 0 && i < BFD_SESSIONS; i++)
		b->kept[i].writing = 0;
	if (rc == 0 &&
	    atomic_load_explicit(&keep_of(b)->at_rest, memory_order_relaxed) == 0)
		b->kept_lost = true;
	return rc;
}

void
keep_store(struct bfd *b)
{
	b->kept_to_store = sd_fdreplace_try(BFD_KEEP_FD, b->kept_fd) == -EAGAIN;
}

struct kept_part *
keep_part(const struct bfd *b, unsigned int conn)
{
	return &keep_of(b)->part[conn];
}

void
keep_rest(struct bfd *b, bool at_rest)
{
	atomic_store_explicit(&keep_of(b)->at_rest, at_rest, memory_order_relaxed);
}

void
keep_end(struct bfd *b)
{
	if (b->kept != NULL)
		munmap(keep_of(b), KEEP_BYTES);
	if (b->kept_fd >= 0)
		close(b->kept_fd);
	b->kept = NULL;
	b->kept_fd = -1;
}
