/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the interfaces of the forwarders with those of the kernel, for `audit`: MAC, state,
 * MTUs, IPv6, forwarding, speed.
 */
#ifndef CTL_AUDIT_LINKS_H
#define CTL_AUDIT_LINKS_H

#include <jansson.h>
#include <stddef.h>

struct link_audit {
	size_t n; /* interfaces that were compared */
	/* rows with the keys what, interface, setting, kernel, rib */
	json_t *differences;
};

/*
 * Compare the interfaces in the present network namespace. While settings differ, repeat
 * the comparison up to twice, because a side may have changed during it. Print no
 * differences. Return CTL_OK, or CTL_NO_DAEMON if a side does not answer.
 */
int audit_links(const char *socket, struct link_audit *out);
void audit_links_free(struct link_audit *a);

#endif
