/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and VLANs as forwarders see them. The settings of a TAP (state, MTU, MAC,
 * addresses, forwarding) become a new immutable fib_iface, and, where supported, settings
 * of the device. Runs in neigh. This file never writes to a TAP and never changes a
 * published copy.
 */
#include "neigh/internal.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rule.h"
#include "fib/urpf.h"

/* `fib` is first, because fib_destroy() frees the last copy as a fib_iface. */
struct iface_copy {
	struct fib_iface fib;
	struct retired retired;
};
static_assert(offsetof(struct iface_copy, fib) == 0, "freed as a fib_iface");

#define LENDERS_TRIED 64u

/* --- publication ---------------------------------------------------------------------- */

static void
iface_copy_free(struct neigh *n, struct retired *r)
{
	free(caa_container_of(r, struct iface_copy, retired));
}

/*
 * Return a bit for each of the 64 interfaces from number 64 * `w` on: it is set if the
 * interface may lend an address that is missing. The address of a family is missing if the
 * best rank is below global (IPv4) or below unique local (IPv6).
 */
static uint64_t
lenders_of(const struct neigh *n, unsigned int w, const struct ranks *best)
{
	return (best->v4 < RANK_GLOBAL ? n->lenders[V4].word[w] : 0) |
	       (best->v6 < RANK_ULA ? n->lenders[V6].word[w] : 0);
}

/* Take missing addresses from other interfaces with this table, by their numbers. */
static void
iface_borrow_from(struct neigh *n, uint32_t table, struct fib_iface *fi, struct ranks *best)
{
	for (unsigned int w = 0; w <= n->iface_end / 64u; w++) {
		uint64_t left = UINT64_MAX, bits;

		/* Search again after each loan, because fewer addresses may be missing. */
		while ((bits = lenders_of(n, w, best) & left) != 0) {
			unsigned int i = (unsigned int)__builtin_ctzll(bits);
			const struct iface *other = &n->iface[w * 64 + i];
			const struct link *l =
				other->present ? link_find(n, other->kernel.ifindex) : NULL;

			n->n_steps++;
			left = i == 63 ? 0 : UINT64_MAX << (i + 1);
			if (l != NULL && link_table(n, l) == table)
				link_sources(n, l, true, fi, best);
		}
	}
}

/*
 * Choose the source address of ICMP errors about packets from this interface: its own. An
 * unnumbered interface borrows one in its VRF, first from the loopback interface (RFC 1812,
 * 2.2.7: the router-id), then from any other. So does an interface whose IPv6 addresses are
 * all deprecated, as in Linux: in RFC 6724, 5, rule 3 is before rule 5. An address of
 * 169.254/16 is used only when there is no better one.
 */
static void
iface_choose_sources(struct neigh *n, struct iface *ifc, struct fib_iface *fi)
{
	const struct link *l = ifc->present ? link_find(n, ifc->kernel.ifindex) : NULL;
	const struct link *lo;
	struct ranks best = {0, 0}, lent;
	uint32_t table;

	if (l == NULL)
		return;
	table = link_table(n, l);
	lent = link_lent(l);
	/* The loopback addresses of a VRF are on the VRF device. */
	lo = link_vrf(n, l->kernel.master);
	if (lo == NULL)
		lo = link_find(n, LOOPBACK_IFINDEX);
	link_linklocals(n, l, fi);
	link_sources(n, l, false, fi, &best);
	link_own_sources(n, l, fi);
	set_put(&n->borrowers[V4], fi->ifidx, best.v4 < RANK_GLOBAL);
	set_put(&n->borrowers[V6], fi->ifidx, best.v6 < RANK_ULA);
	set_put(&n->lenders[V4], fi->ifidx, lent.v4 != 0);
	set_put(&n->lenders[V6], fi->ifidx, lent.v6 != 0);
	set_put(&n->good_lenders[V4], fi->ifidx, lent.v4 == RANK_GLOBAL);
	set_put(&n->good_lenders[V6], fi->ifidx, lent.v6 == RANK_GLOBAL);
	fi->unnumbered4 = best.v4 < RANK_GLOBAL;
	/*
	 * Keep a preferred IPv6 address. Only a preferred address replaces a deprecated
	 * one.
	 */
	if (best.v6 >= RANK_ULA)
		best.v6 = RANK_GLOBAL;
	else if (best.v6 != 0)
		best.v6 = RANK_DEPRECATED;
	if (lo != NULL)
		link_sources(n, lo, true, fi, &best);
	iface_borrow_from(n, table, fi, &best);
}

/* Copy the tags of an interface's frames: the tags of the interface below, then its own. */
static void
iface_tags(const struct neigh *n, const struct iface *ifc, struct fib_iface *fi)
{
	if (ifc->tunnel)
		return;
	if (ifc->on == 0) {
		fi->tag_type_lost = strcmp(ifc->port->driver, "net_af_packet") == 0;
		return;
	}
	iface_tags(n, &n->iface[ifc->on], fi);
	fi->tag_type_lost = false;
	if (ifc->kernel.macvlan != KMON_NO_MACVLAN) {
		atomic_fetch_or_explicit(&n->fib->out_special, FIB_OUT_MACVLAN,
					 memory_order_relaxed);
		return; /* it has no tag of its own */
	}
	fi->tag[fi->n_tags++] =
		(struct fib_tag){.type = ifc->kernel.vlan_type, .id = ifc->kernel.vlan_id};
	fi->n_written = fi->n_tags;
	if (n->iface[ifc->on].takes_tags && fi->n_tags == 1 &&
	    ifc->kernel.vlan_type == VLAN_C_TYPE) {
		fi->n_written = 0;
		atomic_fetch_or_explicit(&n->fib->out_special, FIB_OUT_TAG_BY_DEVICE,
					 memory_order_relaxed);
	}
}

/* Return true if rules concern packets from this interface; family 0: IPv4, 1: IPv6. */
static bool
iface_has_rules(const struct neigh *n, uint32_t ifindex, unsigned int family)
{
	const struct rule_ifaces *of;

	if (n->rule_ifaces == NULL || ifindex == 0)
		return false;
	of = &n->rule_ifaces->of[family];
	for (uint32_t i = 0; i < of->n; i++)
		if (of->ifindex[i] == ifindex)
			return true;
	return of->all;
}

void
iface_rules_event(struct neigh *n, struct msg_rule_ifaces *m)
{
	free(n->rule_ifaces);
	n->rule_ifaces = m;
	for (uint16_t i = 1; i < n->iface_end; i++)
		if (n->iface[i].port != NULL)
			iface_publish(n, i);
}

/* Set the interface that the hook forward of nft sees as the ingress. */
static void
iface_hook(struct neigh *n, const struct link *l, struct fib_iface *fi)
{
	const struct link *vrf = l == NULL ? NULL : link_vrf(n, l->kernel.master);

	fi->hook_ifindex = vrf != NULL ? vrf->ifindex : fi->ifindex;
	memcpy(fi->hook_name, vrf != NULL ? vrf->kernel.name : fi->name,
	       sizeof(fi->hook_name));
}

unsigned int
iface_dev_mtu(const struct iface *port)
{
	return port->below_mtu_bytes != 0 && port->below_mtu_bytes < port->dev_mtu_bytes
		       ? port->below_mtu_bytes
		       : port->dev_mtu_bytes;
}

bool
iface_publish(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];
	struct fib_iface *old =
		atomic_load_explicit(&n->fib->iface[ifidx], memory_order_relaxed);
	struct iface_copy *copy = calloc(1, sizeof(*copy));
	unsigned int mtu_bytes =
		ifc->present ? ifc->kernel.mtu_bytes : ifc->port->mtu_bytes;
	unsigned int dev_mtu_bytes = iface_dev_mtu(&n->iface[ifc->port->ifidx]);
	const struct link *l;
	struct fib_iface *fi;

	if (copy == NULL)
		abort(); /* out of memory for a few hundred octets */
	n->n_publishes++;
	fi = &copy->fib;
	fi->ifidx = ifidx;
	fi->port_id = ifc->port->port_id;
	/* The kernel's TAP accepts any MTU; the device may not. */
	if (!ifc->tunnel && mtu_bytes > dev_mtu_bytes)
		mtu_bytes = dev_mtu_bytes;
	if (mtu_bytes > UINT16_MAX) /* IPv6 tunnels may have more */
		mtu_bytes = UINT16_MAX;
	fi->port = ifc->port->ifidx;
	iface_tags(n, ifc, fi);
	fi->mtu_bytes = fi->mtu6_bytes = (uint16_t)mtu_bytes;
	memcpy(fi->mac, ifc->present ? ifc->kernel.mac : ifc->port->mac, sizeof(fi->mac));
	fi->up = ifc->up;
	fi->forward4 = ifc->forward4;
	fi->ifindex = ifc->present ? ifc->kernel.ifindex : 0;
	fi->group = ifc->present ? ifc->kernel.group : 0;
	fi->rules4 = iface_has_rules(n, fi->ifindex, 0);
	fi->rules6 = iface_has_rules(n, fi->ifindex, 1);
	l = link_find(n, fi->ifindex);
	fi->forward6 = n->forward6_all || (l != NULL && l->force_forwarding6);
	fi->vrf = l == NULL ? 0 : vrf_of(n, l);
	fi->ipv6_off = ifc->ipv6_off = l != NULL && l->ipv6_off;
	fi->member = l != NULL && l->owner != 0;
	fi->tagged_to_kernel =
		fi->member || (ifc->present && ifc->kernel.macvlan != KMON_NO_MACVLAN);
	fi->mpls = n->conf.mpls_all || (l != NULL && l->mpls);
	if (l != NULL && l->mtu6_bytes != 0 && l->mtu6_bytes < mtu_bytes)
		fi->mtu6_bytes = (uint16_t)l->mtu6_bytes;
	fi->fast4 = fi->forward4 && !fi->rules4 && !fi->member;
	fi->fast6 = fi->forward6 && !fi->rules6 && !fi->ipv6_off && !fi->member;
	memcpy(fi->name, ifc->present ? ifc->kernel.name : ifc->port->name,
	       sizeof(fi->name));
	iface_hook(n, l, fi);
	iface_choose_sources(n, ifc, fi);
	if (ifc->svi)
		svi_copy(n, ifc, fi);
	else if (ifc->tunnel)
		tunnel_copy(n, ifc, fi);
	fi->urpf4 = l == NULL || fi->member ? FIB_URPF_OFF : (uint8_t)link_urpf4(n, l);

	if (ifc->svi)
		svi_note(n, ifidx, old, fi);
	/* Padding is zero in both: calloc() clears it, and members are stored singly. */
	if (old != NULL && memcmp(old, fi, sizeof(*fi)) == 0) {
		free(copy);
		return false;
	}
	/* Release: a forwarder that reads the pointer sees the copy filled. */
	atomic_store_explicit(&n->fib->iface[ifidx], fi, memory_order_release);
	if (ifc->svi)
		svi_enter(n, old, fi);
	else if (ifc->tunnel)
		tunnel_enter(n, old, fi);
	else if (ifc->kernel.macvlan != KMON_NO_MACVLAN)
		macvlan_enter(n, ifc->on, old, fi);
	if (old != NULL)
		neigh_retire(n, &caa_container_of(old, struct iface_copy, fib)->retired,
			     iface_copy_free);
	return true;
}

void
iface_lends_no_more(struct neigh *n, uint16_t ifidx)
{
	iface_publish(n, ifidx);
	for (unsigned int v = V4; v <= V6; v++)
		n->borrow_due[v] |= set_has(&n->lenders[v], ifidx);
}

/*
 * Return true if no interface borrows from interface `l`, because an interface with a lower
 * number has an address of the best rank in the same VRF. Examine LENDERS_TRIED interfaces
 * at most; return false if they do not show it.
 */
static bool
iface_is_outranked(struct neigh *n, const struct link *l, unsigned int v)
{
	uint32_t table = link_table(n, l);
	unsigned int tries = LENDERS_TRIED;

	for (unsigned int w = 0; w <= l->ifidx / 64u; w++) {
		uint64_t bits = n->good_lenders[v].word[w];

		for (; bits != 0; bits &= bits - 1) {
			unsigned int i = w * 64 + (unsigned int)__builtin_ctzll(bits);
			const struct iface *other = &n->iface[i];
			const struct link *of =
				i < l->ifidx && other->present
					? link_find(n, other->kernel.ifindex)
					: NULL;

			n->n_steps++;
			if (of != NULL && link_table(n, of) == table)
				return true;
			if (i >= l->ifidx || --tries == 0)
				return false;
		}
	}
	return false;
}

void
iface_address_changed(struct neigh *n, const struct link *l, uint8_t family)
{
	unsigned int v = family == 4 ? V4 : V6;

	/*
	 * A link that is not ours lends addresses only if it is the loopback device or a
	 * VRF.
	 */
	if (l->ifidx == 0 ? l->ifindex == LOOPBACK_IFINDEX || l->kernel.vrf_table != 0
			  : !iface_is_outranked(n, l, v))
		n->borrow_due[v] = true;
}

/*
 * Let interfaces borrow addresses. Once per round, because thousands of VLANs may be
 * reported one by one, and each might borrow.
 */
void
iface_borrow(struct neigh *n)
{
	if (!n->borrow_due[V4] && !n->borrow_due[V6])
		return;
	for (unsigned int w = 0; w <= n->iface_end / 64u; w++) {
		uint64_t bits = (n->borrow_due[V4] ? n->borrowers[V4].word[w] : 0) |
				(n->borrow_due[V6] ? n->borrowers[V6].word[w] : 0);

		for (; bits != 0; bits &= bits - 1) {
			uint16_t i = (uint16_t)(w * 64 + __builtin_ctzll(bits));

			if (n->iface[i].port != NULL)
				iface_publish(n, i);
		}
	}
	n->borrow_due[V4] = n->borrow_due[V6] = false;
}

/* Publish the interface, report its state, and update its neighbors. */
static void
iface_refresh_one(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];
	const struct iface *on = ifc->on == 0 ? NULL : &n->iface[ifc->on];
	struct link *l = ifc->present ? link_find(n, ifc->kernel.ifindex) : NULL;
	/*
	 * In state Backup VRRP holds a macvlan in protodown. Such a macvlan must not accept
	 * frames (RFC 5798, 6.4.2). It has no carrier, but the kernel gives it one when the
	 * link below comes up.
	 */
	bool macvlan = ifc->kernel.macvlan != KMON_NO_MACVLAN;
	bool up = ifc->present && ifc->kernel.admin_up &&
		  (!macvlan || (ifc->kernel.carrier && !ifc->kernel.protodown)) &&
		  (ifc->tunnel  ? ifc->kernel.carrier
		   : on == NULL ? ifc->carrier
				: on->up);
	/*
	 * Until the TAP has its carrier, a solicitation would be lost, and the kernel sends
	 * the next solicitation after a second.
	 */
	bool can_ask = up && ifc->kernel.carrier && (on == NULL || on->can_ask);
	bool news = up != ifc->up || (can_ask && !ifc->can_ask);

	ifc->up = up;
	ifc->can_ask = can_ask;
	iface_publish(n, ifidx);
	/*
	 * rib must stop using the link before its neighbors are removed, and use it again
	 * after they are published.
	 */
	if (l != NULL && !up)
		link_tell_up(n, l, false);
	if (news)
		nb_apply_iface(n, ifidx);
	if (l != NULL && up)
		link_tell_up(n, l, true);
}

void
iface_refresh(struct neigh *n, uint16_t ifidx)
{
	iface_refresh_one(n, ifidx);
	for (uint16_t i = iface_first_on(n, ifidx); i != 0; i = iface_next_on(n, i))
		iface_refresh(n, i);
}

/* --- rp_filter ------------------------------------------------------------------------ */

static void
iface_log_urpf(const struct neigh *n, uint16_t ifidx)
{
	static const char *const name[] = {[FIB_URPF_OFF] = "off",
					   [FIB_URPF_STRICT] = "strict",
					   [FIB_URPF_LOOSE] = "loose"};
	const struct fib_iface *fi =
		atomic_load_explicit(&n->fib->iface[ifidx], memory_order_relaxed);

	log_info("neigh: source check changed dev=%s rp_filter=%s", fi->name,
		 name[fi->urpf4]);
}

/* Follow rp_filter of an interface or of all. */
static void
iface_rp_filter_event(struct neigh *n, const struct kmon_conf *kc)
{
	bool of_all = kc->ifindex == KMON_CONF_ALL;
	struct link *l = of_all ? NULL : link_find(n, kc->ifindex);
	uint8_t *set = of_all ? &n->rp_filter_all : l != NULL ? &l->rp_filter : NULL;

	if (kc->family != 4 || set == NULL || *set == kc->rp_filter)
		return;
	*set = kc->rp_filter;
	for (uint16_t i = 1; i < n->vrf_end; i++)
		if (of_all || i == l->vrf)
			vrf_device_publish(n, i);
	for (uint16_t i = 1; i < n->iface_end; i++)
		if (n->iface[i].port != NULL && (of_all || i == l->ifidx) &&
		    iface_publish(n, i))
			iface_log_urpf(n, i);
}

/* --- forwarding sysctls --------------------------------------------------------------- */

/* Log the state, because the reason of drops is otherwise hard to find. */
static void
iface_log_forwarding(struct neigh *n, uint16_t ifidx)
{
	const struct fib_iface *fi =
		atomic_load_explicit(&n->fib->iface[ifidx], memory_order_relaxed);

	if (fi->forward4 && fi->forward6)
		log_info("neigh: forwarding on dev=%s", fi->name);
	else
		log_warn("neigh: forwarding off by sysctl dev=%s ipv4=%s ipv6=%s", fi->name,
			 fi->forward4 ? "on" : "off", fi->forward6 ? "on" : "off");
}

/*
 * Follow a `forwarding` sysctl. IPv4: the kernel writes a value for all to each interface,
 * so the value of the interface decides. IPv6: the value for all decides, unless
 * `force_forwarding` of the interface is 1; `forwarding` of the interface makes it a host
 * or a router for neighbor discovery (ip-sysctl.rst).
 */
void
iface_conf_event(void *ctx, const struct kmon_conf *kc, bool gone)
{
	struct neigh *n = ctx;
	bool of_all = kc->ifindex == KMON_CONF_ALL && kc->family == 6;
	uint16_t first = of_all ? 1 : iface_by_ifindex(n, kc->ifindex);
	uint16_t end = of_all ? n->iface_end : first + 1;

	if (gone)
		return; /* the link or its IPv6 is gone as well */
	link_conf_event(n, kc);
	iface_rp_filter_event(n, kc);
	if (of_all)
		n->forward6_all = kc->forwarding;
	for (uint16_t i = first; i < end; i++) {
		struct iface *ifc = &n->iface[i];

		if (ifc->port == NULL)
			continue;
		if (kc->family == 4)
			ifc->forward4 = kc->forwarding;
		if (iface_publish(n, i))
			iface_log_forwarding(n, i);
	}
}

/* --- IPv6 of a link ------------------------------------------------------------------- */

#define IPV6_LOG_PERIODS 2

/*
 * Publish whether a link has IPv6. Forwarders see that IPv6 is off before the IPv6
 * neighbors are removed, and that it is on before the neighbors are published.
 */
static void
iface_inet6_changed(struct neigh *n, struct link *l)
{
	struct iface *ifc = &n->iface[l->ifidx];
	bool was_off = ifc->ipv6_off;

	if (l->ifidx == 0 || !iface_publish(n, l->ifidx) || ifc->ipv6_off == was_off)
		return;
	nb_apply_iface(n, l->ifidx);
	if (ifc->leaving)
		return; /* the port is removed, and its IPv6 with it */
	if (!ifc->ipv6_off && ifc->ipv6_off_wait == 0)
		log_info("neigh: ipv6 on again dev=%s", ifc->kernel.name);
	else if (ifc->ipv6_off && l->mtu6_bytes != 0)
		log_warn("neigh: ipv6 off dev=%s reason=disable_ipv6", ifc->kernel.name);
	ifc->ipv6_off_wait = ifc->ipv6_off && l->mtu6_bytes == 0 ? IPV6_LOG_PERIODS : 0;
	n->ipv6_unlogged |= ifc->ipv6_off_wait > 0;
}

/*
 * Log the loss of a link's IPv6 only if the link remains, because the kernel removes the
 * IPv6 of a link before the link, and may remove thousands of links at a time.
 */
void
iface_inet6_log(struct neigh *n)
{
	if (!n->ipv6_unlogged)
		return;
	n->ipv6_unlogged = false;
	for (uint16_t i = 1; i < n->iface_end; i++) {
		struct iface *ifc = &n->iface[i];

		if (ifc->ipv6_off_wait == 0)
			continue;
		ifc->ipv6_off_wait--;
		if (ifc->ipv6_off_wait > 0)
			n->ipv6_unlogged = true;
		else if (ifc->present && !ifc->leaving)
			log_warn("neigh: ipv6 off dev=%s "
				 "reason=none-in-kernel-or-mtu-below-1280",
				 ifc->kernel.name);
	}
}

/*
 * Handle the IPv6 settings of a link. `gone`: the kernel has no IPv6 on the link, or is
 * about to delete the link.
 */
void
iface_inet6_event(void *ctx, const struct kmon_inet6 *ki, bool gone)
{
	struct neigh *n = ctx;
	struct link *l = link_find(n, ki->ifindex);
	bool forced = !gone && ki->force_forwarding, off = gone || ki->off, switched, told;

	if (l == NULL)
		return;
	switched = l->force_forwarding6 != forced && !n->forward6_all;
	told = l->ipv6_off == off;
	l->ipv6_told = true;
	l->ipv6_off = off;
	l->mtu6_bytes = gone ? 0 : ki->mtu_bytes;
	l->ndisc_notify = !gone && ki->ndisc_notify;
	l->force_forwarding6 = forced;
	iface_inet6_changed(n, l);
	if (!told)
		link_tell_settings(n, l);
	if (switched && l->ifidx != 0 && !gone)
		iface_log_forwarding(n, l->ifidx);
}

void
iface_inet6_missing(struct neigh *n)
{
	for (uint16_t i = 1; i < n->iface_end; i++) {
		struct link *l = n->iface[i].present
					 ? link_find(n, n->iface[i].kernel.ifindex)
					 : NULL;

		if (l == NULL || l->ipv6_told)
			continue;
		l->ipv6_told = l->ipv6_off = true;
		iface_inet6_changed(n, l);
		link_tell_settings(n, l);
	}
}

/* --- TAPs ----------------------------------------------------------------------------- */

/*
 * Set the MTU of the device. If the device refuses, it keeps its MTU, and the smaller MTU
 * is in force.
 */
static void
iface_set_dev_mtu(struct iface *ifc, unsigned int mtu_bytes)
{
	const struct port *port = ifc->port;
	unsigned int want =
		mtu_bytes < port->mtu_max_bytes ? mtu_bytes : port->mtu_max_bytes;
	int rc = device_result(ifc, port_set_mtu(port, want));

	/* A device without an MTU setting accepts frames up to its longest frame. */
	if (rc == 0 || rc == -ENOTSUP)
		ifc->dev_mtu_bytes = want;
	/*
	 * The kernel interface got this MTU, too. Forget its old MTU: the next report has
	 * the new one.
	 */
	if (rc == 0)
		ifc->below_mtu_bytes = 0;
	if (rc == -EMFILE || rc == -ENFILE)
		log_warn("neigh: mtu of device not set port=%s mtu=%u error=\"%s\" "
			 "retry=yes",
			 port->name, mtu_bytes, strerror(-rc));
	else if (mtu_bytes <= ifc->dev_mtu_bytes)
		log_info("neigh: mtu changed port=%s mtu=%u", port->name, mtu_bytes);
	else
		log_warn("neigh: tap mtu above device limit port=%s tap_mtu=%u mtu=%u "
			 "mtu_max=%u",
			 port->name, mtu_bytes, ifc->dev_mtu_bytes, port->mtu_max_bytes);
}

/* Pass MTU and MAC on to the device. A refusal is logged once per change. */
static void
iface_set_dev(struct neigh *n, struct iface *ifc, const struct kmon_link *kl)
{
	static const uint8_t zero[6];
	char mac[MAC_STRLEN];
	int rc;

	if (kl->mtu_bytes != ifc->tap_mtu_bytes) {
		ifc->tap_mtu_bytes = kl->mtu_bytes;
		iface_set_dev_mtu(ifc, kl->mtu_bytes);
	}
	if (memcmp(kl->mac, zero, sizeof(zero)) != 0 &&
	    memcmp(kl->mac, ifc->dev_mac, sizeof(ifc->dev_mac)) != 0) {
		memcpy(ifc->dev_mac, kl->mac, sizeof(ifc->dev_mac));
		rc = device_result(ifc, port_set_mac(ifc->port, kl->mac));
		n->macs_due = true;
		log_info("neigh: mac changed port=%s mac=%s%s%s%s", ifc->port->name,
			 mac_str(kl->mac, mac), rc < 0 ? " error=\"" : "",
			 rc < 0 ? strerror(-rc) : "", rc < 0 ? "\"" : "");
	}
}

/* Make the port accept frames to a MAC of its VLAN that differs from its own. */
static void
iface_add_vlan_mac(struct neigh *n, const struct iface *ifc)
{
	struct iface *port = &n->iface[ifc->port->ifidx];
	int rc;

	if (memcmp(ifc->kernel.mac, port->dev_mac, sizeof(port->dev_mac)) == 0)
		return;
	rc = device_result(port, port_add_mac(ifc->port, ifc->kernel.mac));
	if (rc < 0)
		log_warn("neigh: vlan mac refused by device dev=%s port=%s error=\"%s\"",
			 ifc->kernel.name, ifc->port->name, strerror(-rc));
}

/*
 * Add the MACs at the end of the round, because VLANs with the port's MAC are reported
 * right after the port.
 */
void
iface_vlan_macs(struct neigh *n)
{
	for (uint16_t i = PORT_MAX; n->macs_due && i < n->iface_end; i++)
		if (n->iface[i].port != NULL &&
		    n->iface[i].kernel.macvlan == KMON_NO_MACVLAN && !n->iface[i].tunnel)
			iface_add_vlan_mac(n, &n->iface[i]);
	n->macs_due = false;
}

void
iface_set_dev_again(struct neigh *n, struct iface *ifc)
{
	iface_set_dev_mtu(ifc, ifc->tap_mtu_bytes);
	(void)device_result(ifc, port_set_mac(ifc->port, ifc->dev_mac));
	n->macs_due = true;
	for (uint16_t i = PORT_MAX; i < n->iface_end; i++) {
		struct iface *on = &n->iface[i];

		if (on->port != ifc->port || on->kernel.macvlan == KMON_NO_MACVLAN)
			continue;
		memset(on->dev_mac, 0, sizeof(on->dev_mac));
		macvlan_set_mac(n, i);
	}
	if (ifc->dev_told)
		(void)device_result(ifc, port_set_link(ifc->port, ifc->dev_wanted_up));
	iface_refresh(n, ifc->port->ifidx);
}

void
iface_changed(struct neigh *n, uint16_t ifidx, const struct kmon_link *kl)
{
	struct iface *ifc = &n->iface[ifidx];
	bool arp_changed = ifc->kernel.arp_off != kl->arp_off;

	notify_note(ifc, kl);
	ifc->present = true;
	ifc->kernel = *kl;
	if (!ifc->tunnel)
		mac_hold(n, ifc);
	if (ifc->tunnel)
		; /* a tunnel has no device below that must change */
	else if (ifc->on == 0)
		iface_set_dev(n, ifc, kl);
	else if (kl->macvlan != KMON_NO_MACVLAN)
		macvlan_set_mac(n, ifidx);
	else
		iface_add_vlan_mac(n, ifc);
	iface_refresh(n, ifidx);
	if (arp_changed) /* earlier calls of kmon_resolve() used the previous state */
		nb_apply_iface(n, ifidx);
	/* Forwarders stop before the peer sees the link lost. */
	if (ifc->on == 0 && !ifc->tunnel)
		carrier_follow_tap(ifc, kl->admin_up);
}

void
iface_tap_gone(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];

	if (!ifc->leaving)
		log_warn("neigh: tap deleted port=%s", ifc->port->name);
	ifc->present = false;
	ifc->lost = true;
	iface_refresh(n, ifidx);
	iface_lends_no_more(n, ifidx);
}

uint16_t
iface_of_tap(const struct neigh *n, const struct kmon_link *kl)
{
	for (uint16_t i = 1; i < PORT_MAX; i++) {
		const struct iface *ifc = &n->iface[i];

		if (ifc->port != NULL && !ifc->lost && ifc->tap.ifindex == kl->ifindex)
			return i;
	}
	return 0;
}
