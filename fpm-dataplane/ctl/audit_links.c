/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare interfaces. A row of `show interfaces` has the settings that forwarders obey in
 * the object `forwarders`. The kernel's settings are read by rtnetlink, with code that the
 * daemon does not use. There are some thousand interfaces at most, so each round reads all.
 */
#include "ctl/audit_links.h"

#include <linux/ethtool.h>
#include <net/if_arp.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/prefix.h"
#include "base/sysfs.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/json_row.h"
#include "ctl/kernel_links.h"

#define ROUNDS   3
#define PAUSE_MS 300
/* IFF_LOWER_UP of linux/if.h, which cannot be included together with net/if.h. */
#define LOWER_UP (1u << 16)

/* The interfaces of both sides in one round. */
struct sides {
	struct kernel_link *link; /* by ascending ifindex */
	int n_links;
	/* for each link its row with `forwarders`; NULL: the kernel alone has the link */
	const json_t **row;
	bool forwarding6; /* the sysctl net.ipv6.conf.all.forwarding */
	json_t *rows;     /* of `show interfaces` */
	struct link_audit *out;
};

static int
link_order(const void *key, const void *link)
{
	long long x = *(const long long *)key,
		  y = ((const struct kernel_link *)link)->ifindex;

	return (x > y) - (x < y);
}

/* Return a link of the kernel, or NULL. */
static const struct kernel_link *
side_link(const struct sides *s, long long ifindex)
{
	return s->n_links == 0 ? NULL
			       : bsearch(&ifindex, s->link, (size_t)s->n_links,
					 sizeof(*s->link), link_order);
}

/* Return the row of a link of the kernel that forwarders serve, or NULL. */
static const json_t *
side_row(const struct sides *s, const struct kernel_link *link)
{
	return link == NULL ? NULL : s->row[link - s->link];
}

/* Return true for an interface without a port: a tunnel, or a bridge or VLAN over VXLAN. */
static bool
row_is_tunnel(const json_t *row)
{
	return row_has(row, "tunnel") || row_has(row, "vxlan");
}

/* --- differences ---------------------------------------------------------------------- */

static void
text_compare(const struct sides *s, const char *name, const char *setting,
	     const char *kernel, const char *rib)
{
	if (strcmp(kernel, rib) != 0)
		json_array_append_new(s->out->differences,
				      json_pack("{s:s, s:s, s:s, s:s, s:s}", "what",
						"interface", "interface", name, "setting",
						setting, "kernel", kernel, "rib", rib));
}

static void
number_compare(const struct sides *s, const char *name, const char *setting,
	       long long kernel, long long rib)
{
	char theirs[24], ours[24];

	snprintf(theirs, sizeof(theirs), "%lld", kernel);
	snprintf(ours, sizeof(ours), "%lld", rib);
	text_compare(s, name, setting, theirs, ours);
}

static void
switch_compare(const struct sides *s, const char *name, const char *setting, bool kernel,
	       bool rib)
{
	text_compare(s, name, setting, kernel ? "on" : "off", rib ? "on" : "off");
}

/* --- one interface -------------------------------------------------------------------- */

/*
 * Return true if packets may pass a link in its state in the kernel. A VLAN that is set up
 * is up while the link below it is up. Its own carrier does not count, because the kernel
 * sets it later.
 */
static bool
link_is_up(const struct sides *s, const struct kernel_link *link, bool on_port)
{
	const struct kernel_link *below =
		on_port && link->below != 0 ? side_link(s, link->below) : NULL;

	if ((link->flags & IFF_UP) == 0)
		return false;
	if (below == NULL)
		return (link->flags & LOWER_UP) != 0;
	if (strcmp(link->kind, "macvlan") == 0 &&
	    ((link->flags & LOWER_UP) == 0 || link->proto_down))
		return false;
	return link_is_up(s, below, true);
}

static void
mac_compare(const struct sides *s, const char *name, const struct kernel_link *link,
	    const json_t *have)
{
	char mac[MAC_STRLEN];

	/* A tunnel has no MAC of six octets. */
	if (link->hardware == ARPHRD_ETHER && link->mac_bytes == 6)
		text_compare(s, name, "mac", mac_str(link->mac, mac), row_str(have, "mac"));
}

static void
mtu_compare(const struct sides *s, const char *name, const struct kernel_link *link,
	    const json_t *have)
{
	uint32_t mtu_bytes = link->mtu_bytes, max = UINT16_MAX;

	if (row_has(have, "mtu_max") && row_int(have, "mtu_max") < max)
		max = (uint32_t)row_int(have, "mtu_max");
	if (mtu_bytes > max)
		mtu_bytes = max;
	number_compare(s, name, "mtu", mtu_bytes, row_int(have, "mtu"));
	if (!link->has_ipv6 || link->ipv6_off)
		return;
	if (link->mtu6_bytes != 0 && link->mtu6_bytes < mtu_bytes)
		mtu_bytes = link->mtu6_bytes;
	number_compare(s, name, "ipv6-mtu", mtu_bytes, row_int(have, "mtu6"));
}

/* Return the speed of an interface in Mbit/s; 0: unknown. */
static long long
speed_mbit(const struct kernel_link *link)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq request = {.ifr_data = (void *)&cmd};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", link->name);
	rc = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return rc < 0 || ethtool_cmd_speed(&cmd) == (uint32_t)SPEED_UNKNOWN
		       ? 0
		       : ethtool_cmd_speed(&cmd);
}

/* Compare the TAP with the device of its port. */
static void
device_compare(const struct sides *s, const char *name, const struct kernel_link *link,
	       const json_t *have)
{
	if (row_has(have, "speed_mbit") && (link->flags & LOWER_UP) != 0)
		number_compare(s, name, "speed", speed_mbit(link),
			       row_int(have, "speed_mbit"));
	/* While a TAP is down, the daemon keeps the interface below the port down, too. */
	if (row_has(have, "link") && (link->flags & IFF_UP) == 0)
		switch_compare(s, name, "link-below", false, row_true(have, "link"));
}

static void
row_compare(struct sides *s, const json_t *row)
{
	const json_t *have = json_object_get(row, "forwarders");
	const struct kernel_link *link;
	const char *name = row_str(row, "name");

	if (!json_is_object(have))
		return; /* the kernel alone has the interface */
	s->out->n++;
	link = side_link(s, row_int(row, "ifindex"));
	if (link == NULL) {
		switch_compare(s, name, "present", false, true);
		return;
	}
	s->row[link - s->link] = row;
	mac_compare(s, name, link, have);
	text_compare(s, name, "up",
		     link_is_up(s, link, !row_is_tunnel(row)) ? "up" : "down",
		     row_true(have, "up") ? "up" : "down");
	mtu_compare(s, name, link, have);
	switch_compare(s, name, "ipv6", link->has_ipv6 && !link->ipv6_off,
		       row_true(have, "ipv6"));
	if (link->has_ipv4)
		switch_compare(s, name, "forwarding4", link->forwarding4,
			       row_true(have, "forwarding4"));
	if (link->has_ipv6)
		switch_compare(s, name, "forwarding6",
			       s->forwarding6 || link->force_forwarding6,
			       row_true(have, "forwarding6"));
	device_compare(s, name, link, have);
}

/* --- interfaces that forwarders lack -------------------------------------------------- */

static bool
kind_is(const struct kernel_link *link, const char *kind)
{
	return strcmp(link->kind, kind) == 0;
}

/*
 * Return true if forwarders never serve such a VLAN or macvlan (manual/interfaces.md): a
 * macvlan of mode source, a priority tag, a third tag, a VLAN on a macvlan.
 */
static bool
link_is_never_served(const struct sides *s, const struct kernel_link *link)
{
	const struct kernel_link *below = side_link(s, link->below), *lowest;

	if (kind_is(link, "macvlan"))
		return link->macvlan_mode == MACVLAN_MODE_SOURCE;
	if (link->vlan_id == 0 || below == NULL || kind_is(below, "macvlan"))
		return true;
	lowest = kind_is(below, "vlan") ? side_link(s, below->below) : NULL;
	return lowest != NULL && kind_is(lowest, "vlan");
}

/*
 * Report VLANs and macvlans of the kernel that are on an interface of the forwarders and
 * that forwarders lack.
 */
static void
absent_find(const struct sides *s)
{
	char name[IF_NAMESIZE];
	const json_t *below;

	for (int i = 0; i < s->n_links; i++) {
		const struct kernel_link *link = &s->link[i];

		if (link->below == 0 || side_row(s, link) != NULL)
			continue;
		below = side_row(s, side_link(s, link->below));
		if (below == NULL || row_is_tunnel(below) || link_is_never_served(s, link))
			continue;
		memcpy(name, link->name, sizeof(name));
		log_harmless(name);
		switch_compare(s, name, "present", true, false);
	}
}

/* --- rounds --------------------------------------------------------------------------- */

/* Compare all interfaces once. Returns false if a side does not answer. */
static bool
links_compare(const char *socket, struct link_audit *out)
{
	struct sides s = {.rows = json_array(), .out = out};
	json_t *request = json_pack("{s:s}", "show", "interfaces"), *row;
	bool answered;
	size_t i;

	json_decref(out->differences);
	*out = (struct link_audit){.differences = json_array()};
	answered = conn_ask(socket, request, rows_keep, s.rows) == CTL_OK;
	json_decref(request);
	s.n_links = answered ? kernel_links(&s.link) : 0;
	if (s.n_links < 0) {
		fprintf(stderr, "fpmctl: cannot read the kernel's interfaces: %s\n",
			strerror(-s.n_links));
		answered = false;
	}
	s.forwarding6 = sysfs_read_number("/proc/sys/net/ipv6/conf/all/forwarding", 0) != 0;
	s.row = calloc((size_t)(s.n_links > 0 ? s.n_links : 1), sizeof(*s.row));
	if (s.row == NULL)
		abort();
	if (answered) {
		json_array_foreach (s.rows, i, row)
			row_compare(&s, row);
		absent_find(&s);
	}
	free(s.link);
	free(s.row);
	json_decref(s.rows);
	return answered;
}

int
audit_links(const char *socket, struct link_audit *out)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

	*out = (struct link_audit){.differences = json_array()};
	for (int round = 0; round < ROUNDS; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		if (!links_compare(socket, out))
			return CTL_NO_DAEMON;
		if (json_array_size(out->differences) == 0)
			break;
	}
	return CTL_OK;
}

void
audit_links_free(struct link_audit *a)
{
	json_decref(a->differences);
}
