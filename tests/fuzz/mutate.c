/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mutator of fuzz_fpm_rib: it knows frames, messages and attributes, changes their
 * content, and corrects every length afterwards, so that an input reaches the RIB and is
 * not refused at the first wrong length. New material is from fresh.c. In one of sixteen
 * cases libFuzzer mutates the raw octets.
 */
#include "control.h"
#include "fresh.h"

#define MAX_FRAME 4000u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b,
				 size_t b_len, uint8_t *out, size_t max_size,
				 unsigned int seed);

struct piece {
	const uint8_t *p;
	size_t len;
};

#define MAX_PIECES 512u

/* --- changes of the input ------------------------------------------------------------- */

static size_t
fixed_octets(uint16_t type)
{
	switch (type) {
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return sizeof(struct rtmsg);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		return sizeof(struct nhmsg);
	default:
		return 12; /* struct ndmsg */
	}
}

/* Find the attributes in `len` octets. Returns their number. */
static unsigned int
split_attrs(const uint8_t *p, size_t len, struct piece *out, unsigned int max)
{
	unsigned int n = 0;

	while (n < max && len >= sizeof(struct nlattr)) {
		struct nlattr a;
		size_t step;

		memcpy(&a, p, sizeof(a));
		if (a.nla_len < sizeof(a) || a.nla_len > len)
			break;
		out[n++] = (struct piece){p, a.nla_len};
		step = NLA_ALIGN(a.nla_len);
		step = step > len ? len : step;
		p += step;
		len -= step;
	}
	return n;
}

static void
put_same_attr(struct wire *w, const struct piece *a)
{
	struct nlattr head;

	memcpy(&head, a->p, sizeof(head));
	attr(w, head.nla_type, a->p + sizeof(head), a->len - sizeof(head));
}

/*
 * Write an attribute with one change: of its type, of its length, of some octets, or of a
 * field of 4 octets, which becomes the id of another next hop, group or interface.
 */
static void
put_changed_attr(struct wire *w, struct rnd *r, const struct piece *a)
{
	uint8_t value[512];
	size_t len = a->len - sizeof(struct nlattr);
	struct nlattr head;
	uint32_t v;

	memcpy(&head, a->p, sizeof(head));
	if (len > sizeof(value) - 64) {
		attr(w, head.nla_type, a->p + sizeof(head), len);
		return;
	}
	memcpy(value, a->p + sizeof(head), len);
	v = once_in(r, 3) ? some_id(r) : once_in(r, 2) ? some_group(r) : some_oif(r);
	switch (rnd_below(r, 6)) {
	case 0:
		head.nla_type = (uint16_t)rnd_below(r, 34);
		break;
	case 1:
		len = rnd_below(r, (uint32_t)len + 12);
		break;
	case 2:
		if (len > 0)
			len = LLVMFuzzerMutate(value, len, sizeof(value));
		break;
	case 3: /* add or remove a member of a group, or two labels of a stack */
		len = len >= 8 && once_in(r, 2) ? len - 8 : len + 8;
		break;
	default:
		if (len >= 4)
			memcpy(value + rnd_below(r, (uint32_t)len / 4) * 4, &v, 4);
	}
	attr(w, head.nla_type, value, len);
}

static void
change_fixed(uint8_t *p, uint16_t type, struct rnd *r)
{
	static const uint8_t family[] = {AF_INET, AF_INET6, AF_UNSPEC, 28};
	static const uint8_t table[] = {254, 0, 100, 255};
	static const uint8_t protocol[] = {2, 11, 186, 196};
	struct rtmsg *rtm = (struct rtmsg *)p;

	if (type != RTM_NEWROUTE && type != RTM_DELROUTE) {
		p[rnd_below(r, sizeof(struct nhmsg))] = (uint8_t)rnd_next(r);
		return;
	}
	switch (rnd_below(r, 5)) {
	case 0:
		rtm->rtm_family = PICK(r, family);
		break;
	case 1:
		rtm->rtm_table = PICK(r, table);
		break;
	case 2:
		rtm->rtm_protocol = PICK(r, protocol);
		break;
	case 3:
		rtm->rtm_type = (uint8_t)rnd_below(r, 12);
		break;
	default:
		rtm->rtm_dst_len = (uint8_t)rnd_below(r, 130);
	}
}

/* Write one message again with one change. */
static void
put_changed_message(struct wire *w, struct rnd *r, const uint8_t *p, size_t len)
{
	static const uint16_t types[] = {RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWNEXTHOP,
					 RTM_DELNEXTHOP, RTM_NEWNEIGH};
	struct nlmsghdr h;
	struct piece a[64];
	unsigned int n, at, what = rnd_below(r, 8);
	uint8_t fixed[16] __attribute__((aligned(4))) = {0};
	size_t n_fixed;

	memcpy(&h, p, sizeof(h));
	n_fixed = fixed_octets(h.nlmsg_type);
	w->msg = w->len;
	if (len < sizeof(h) + n_fixed) {
		wire_put(w, p, len);
		msg_end(w);
		return;
	}
	n = split_attrs(p + sizeof(h) + n_fixed, len - sizeof(h) - n_fixed, a, 64);
	at = n == 0 ? 0 : rnd_below(r, n);
	memcpy(fixed, p + sizeof(h), n_fixed);
	if (what == 0)
		change_fixed(fixed, h.nlmsg_type, r);
	else if (what == 1 && once_in(r, 2))
		h.nlmsg_type = PICK(r, types);
	else if (what == 1)
		h.nlmsg_pid = 1 + rnd_below(r, 2);
	wire_put(w, &h, sizeof(h));
	wire_put(w, fixed, n_fixed);
	for (unsigned int i = 0; i < n; i++) {
		struct piece *twin = &a[rnd_below(r, n)];

		if (i != at || what < 2 || what == 5)
			put_same_attr(w, &a[i]);
		else if (what == 2)
			continue; /* gone */
		else if (what == 3)
			put_changed_attr(w, r, twin); /* another attribute instead */
		else
			put_changed_attr(w, r, &a[i]);
	}
	if (what == 5)
		put_hop(w, r, fixed_octets(h.nlmsg_type) == sizeof(struct nhmsg));
	msg_end(w);
}

/* Write a frame again. Change, drop or double one of its messages, or add a new message. */
static void
put_changed_frame(struct wire *w, struct rnd *r, const struct piece *f)
{
	struct piece m[32];
	unsigned int n = 0, at, what = rnd_below(r, 8);
	size_t left = f->len - 4;
	struct nlmsghdr h;

	for (const uint8_t *p = f->p + 4; n < 32 && left >= sizeof(h);) {
		size_t step;

		memcpy(&h, p, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > left)
			break;
		m[n++] = (struct piece){p, h.nlmsg_len};
		step = NLMSG_ALIGN(h.nlmsg_len);
		step = step > left ? left : step;
		p += step;
		left -= step;
	}
	if (n == 0) {
		put_fresh(w, r);
		return;
	}
	at = rnd_below(r, n);
	frame_begin(w);
	for (unsigned int i = 0; i < n; i++) {
		if (i == at && what == 0 && n > 1)
			continue;
		if (i == at && what >= 2) {
			put_changed_message(w, r, m[i].p, m[i].len);
			continue;
		}
		for (unsigned int times = i == at && what == 1 ? 2 : 1; times > 0;
		     times--) {
			w->msg = w->len;
			wire_put(w, m[i].p, m[i].len);
			msg_end(w);
		}
	}
	if (once_in(r, 8) && w->len - w->frame < MAX_FRAME)
		put_fresh_message(w, r);
	frame_end(w);
}

/* --- whole inputs --------------------------------------------------------------------- */

/* Find the frames of an input, up to the first octets that are no frame. */
static unsigned int
split_frames(const uint8_t *p, size_t left, struct piece *out)
{
	unsigned int n = 0;

	while (n < MAX_PIECES && left >= 4) {
		size_t len = (size_t)p[2] << 8 | p[3];

		if (p[0] != 1 || (p[1] != 1 && p[1] != CONTROL_TYPE) || len < 4 ||
		    len > left)
			break;
		out[n++] = (struct piece){p, len};
		p += len;
		left -= len;
	}
	return n;
}

static bool
is_control(const struct piece *f)
{
	return f->p[1] == CONTROL_TYPE;
}

static void
put_frames(struct wire *w, struct rnd *r, const struct piece *f, unsigned int n)
{
	unsigned int at = n == 0 ? 0 : rnd_below(r, n),
		     other = n == 0 ? 0 : rnd_below(r, n);
	unsigned int what = n == 0 ? 0 : rnd_below(r, 12);

	for (unsigned int i = 0; i <= n; i++) {
		if (i == at && what < 3) /* insert a new frame here */
			put_fresh(w, r);
		if (i == n)
			break;
		if (i != at || what < 3)
			wire_put(w, f[i].p, f[i].len);
		else if (what == 3)
			continue;   /* gone */
		else if (what == 4) /* replace the frame by a copy of another frame */
			wire_put(w, f[other].p, f[other].len);
		else if (what == 5 && i + 1 < n) { /* exchange two frames */
			wire_put(w, f[i + 1].p, f[i + 1].len);
			wire_put(w, f[i].p, f[i].len);
			i++;
		} else if (is_control(&f[i]))
			put_control(w, r);
		else
			put_changed_frame(w, r, &f[i]);
	}
}

static size_t
deliver(const struct wire *w, uint8_t *out, size_t max_size)
{
	struct piece f[MAX_PIECES];
	unsigned int n = split_frames(w->octet, w->len, f);
	size_t len = 0;

	for (unsigned int i = 0; i < n && len + f[i].len <= max_size; i++) {
		memcpy(out + len, f[i].p, f[i].len);
		len += f[i].len;
	}
	return len;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static struct wire w[2];
	struct rnd r = {seed * 0x9e3779b97f4a7c15u + 1};
	struct piece f[MAX_PIECES];
	unsigned int n, which = 0;

	rnd_next(&r);
	if (once_in(&r, 16) || size > sizeof(w[0].octet) / 2)
		return LLVMFuzzerMutate(data, size, max_size);
	n = split_frames(data, size, f);
	for (uint32_t times = 1 + rnd_below(&r, 4); times > 0; times--, which ^= 1) {
		w[which].len = 0;
		put_frames(&w[which], &r, f, n);
		if (w[which].len > sizeof(w[0].octet) / 2)
			break;
		n = split_frames(w[which].octet, w[which].len, f);
	}
	return deliver(&w[which ^ 1], data, max_size);
}

/*
 * Take a few frames of each input in turn, so that messages of one input refer to ids of
 * the other.
 */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
			  uint8_t *out, size_t max_size, unsigned int seed)
{
	struct rnd r = {seed * 0x9e3779b97f4a7c15u + 1};
	struct piece f[2][MAX_PIECES];
	unsigned int n[2], at[2] = {0}, from = rnd_below(&r, 2);
	size_t len = 0;

	n[0] = split_frames(a, a_len, f[0]);
	n[1] = split_frames(b, b_len, f[1]);
	while (at[from] < n[from]) {
		const struct piece *p = &f[from][at[from]++];

		if (len + p->len > max_size)
			break;
		memcpy(out + len, p->p, p->len);
		len += p->len;
		if (once_in(&r, 4))
			from ^= 1;
	}
	return len;
}
