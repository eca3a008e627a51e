/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook: the list of programs by interface, and the program whose parts are arriving. Thread
 * manage owns both. A change replaces the whole list. A program is freed a grace period
 * after it left the list. The programs end with the daemon, because no file has them.
 */
#include "hook/hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tsan.h"
#include "fib/hook_list.h"

struct hooks {
	struct fib *fib;
	struct fib_hooks *list; /* as published; NULL: empty */
	/* First part of the arriving program. All parts have its dev, file, id and `of`. */
	struct hook_want coming;
	unsigned int n_come; /* instructions that have arrived; 0: no program is arriving */
	uint8_t instruction[HOOK_INSTRUCTIONS_MAX * HOOK_INSTRUCTION_BYTES];
};

static_assert(HOOK_FILE_STRLEN == FIB_HOOK_STRLEN && IFNAMSIZ == 16, "names are copied");

struct hooks *
hooks_new(struct fib *fib)
{
	struct hooks *h = calloc(1, sizeof(*h));

	if (h != NULL)
		h->fib = fib;
	return h;
}

void
hooks_end(const struct hooks *h)
{
	char dev[4 * IFNAMSIZ], file[4 * HOOK_FILE_STRLEN];

	for (unsigned int k = 0; h != NULL && h->list != NULL && k < h->list->n; k++)
		log_info("manage: hook not kept reason=daemon-ends dev=%s file=%s",
			 log_escape_name(h->list->hook[k]->dev, dev, sizeof(dev)),
			 log_escape_name(h->list->hook[k]->file, file, sizeof(file)));
}

void
hooks_free(struct hooks *h)
{
	if (h == NULL)
		return;
	for (unsigned int k = 0; h->list != NULL && k < h->list->n; k++)
		hook_program_free(h->list->hook[k]);
	free(h->list);
	free(h);
}

/*
 * Publish the list without the program of `dev`, and with `more` (NULL: none). The caller
 * has checked that there is room for `more`. Wait until no forwarder runs the old program,
 * and free it.
 */
static void
hooks_publish(struct hooks *h, const char *dev, struct fib_hook *more)
{
	struct fib_hooks *old = h->list, *list = calloc(1, sizeof(*list));
	struct fib_hook *gone = NULL;

	if (list == NULL)
		abort(); /* out of memory for half a KiB */
	for (unsigned int k = 0; old != NULL && k < old->n; k++)
		if (strcmp(old->hook[k]->dev, dev) == 0)
			gone = old->hook[k];
		else
			list->hook[list->n++] = old->hook[k];
	if (more != NULL)
		list->hook[list->n++] = more;
	if (list->n == 0) {
		free(list);
		list = NULL;
	}
	h->list = list;
	/* Release: a forwarder that has the list also sees the programs in it. */
	atomic_store_explicit(&h->fib->hooks, list, memory_order_release);
	urcu_qsbr_synchronize_rcu();
	GRACE_OVER();
	hook_program_free(gone);
	free(old);
}

/* Add a part. Return 0, or -EINVAL if it is not the next part of the arriving program. */
static int
part_take(struct hooks *h, const struct hook_want *want, char *why, size_t why_size)
{
	if (want->at == 0) {
		h->coming = *want;
		h->n_come = 0;
	}
	if (want->at != h->n_come || want->of != h->coming.of || want->id != h->coming.id ||
	    want->n == 0 || want->n > want->of - want->at ||
	    strcmp(want->dev, h->coming.dev) != 0 ||
	    strcmp(want->file, h->coming.file) != 0) {
		snprintf(why, why_size,
			 "another program was loaded at the same time, or a part of this "
			 "program is missing: load it again");
		h->n_come = 0;
		return -EINVAL;
	}
	memcpy(h->instruction + (size_t)want->at * HOOK_INSTRUCTION_BYTES, want->part,
	       (size_t)want->n * HOOK_INSTRUCTION_BYTES);
	h->n_come += want->n;
	return 0;
}

static bool
list_has(const struct hooks *h, const char *dev)
{
	return h->list != NULL && fib_hook_find(h->list, dev) != NULL;
}

int
hooks_load(struct hooks *h, const struct hook_want *want, char *why, size_t why_size)
{
	char dev[4 * IFNAMSIZ], file[4 * HOOK_FILE_STRLEN];
	struct fib_hook *hook;

	if (fib_iface_named(h->fib, want->dev) == 0) {
		snprintf(why, why_size,
			 "no port or VLAN '%s': `fpmctl show interfaces` lists them",
			 log_escape_name(want->dev, dev, sizeof(dev)));
		return -ENOENT;
	}
	if (h->list != NULL && h->list->n == FIB_HOOKS_MAX && !list_has(h, want->dev)) {
		snprintf(why, why_size,
			 "%u interfaces have a program, which is the maximum",
			 FIB_HOOKS_MAX);
		return -ENOSPC;
	}
	if (part_take(h, want, why, why_size) < 0)
		return -EINVAL;
	if (h->n_come < want->of)
		return 0;
	hook = hook_program_new(h->instruction, h->n_come, why, why_size);
	h->n_come = 0;
	if (hook == NULL)
		return -EINVAL;
	memcpy(hook->dev, want->dev, sizeof(hook->dev));
	memcpy(hook->file, want->file, sizeof(hook->file));
	hook->loaded_ms = monotonic_ms();
	log_info("manage: hook loaded dev=%s file=%s hash=%016llx instructions=%u "
		 "compiled=%s",
		 log_escape_name(want->dev, dev, sizeof(dev)),
		 log_escape_name(want->file, file, sizeof(file)),
		 (unsigned long long)hook->hash, hook->n_instruction,
		 hook->run != NULL ? "yes" : "no");
	hooks_publish(h, want->dev, hook);
	return 0;
}

int
hooks_unload(struct hooks *h, const char *dev, char *why, size_t why_size)
{
	char text[4 * IFNAMSIZ];

	if (!list_has(h, dev)) {
		snprintf(why, why_size,
			 "interface '%s' has no program: `fpmctl show hooks` lists the "
			 "programs",
			 log_escape_name(dev, text, sizeof(text)));
		return -ENOENT;
	}
	hooks_publish(h, dev, NULL);
	log_info("manage: hook removed dev=%s", log_escape_name(dev, text, sizeof(text)));
	return 0;
}
