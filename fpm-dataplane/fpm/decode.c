/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder: one frame in, events out. Any thread, no state, no log. It never reads past
 * the frame and trusts no length in it; tests/fuzz/fuzz_fpm.c checks that.
 *
 * Messages are 4-aligned if the frame is. A frame that is not 4-aligned is copied once, so
 * that the functions below may load words. zebra sends no odd lengths, so this is rare.
 */
#include "fpm/decode.h"

#include "netlink/message.h"

static void
decoded_count(struct fpm_decoded *decoded, const struct fpm_event *ev)
{
	enum fpm_event_kind kind = (enum fpm_event_kind)ev->kind;

	if (kind == FPM_ROUTE || kind == FPM_ROUTE_DEL) {
		decoded->labels += ev->prefix.family == FAMILY_LABEL;
		decoded->macs += ev->prefix.family == FAMILY_MAC;
	}
	if (kind == FPM_ROUTE)
		decoded->routes++;
	else if (kind == FPM_ROUTE_DEL)
		decoded->route_dels++;
	else if (kind == FPM_NEXTHOP)
		decoded->nexthops++;
	else
		decoded->nexthop_dels++;
}

static int
decode_message(const struct nlmsghdr *nlh, fpm_on_event *on_event, void *arg,
	       struct fpm_decoded *decoded)
{
	struct fpm_event ev = {0};
	int rc;

	decoded->messages++;
	if (nlh->nlmsg_pid != 0)
		decoded->nl_pid = nlh->nlmsg_pid;
	rc = message_decode(nlh, &ev);
	switch (rc) {
	case TAKEN:
		decoded_count(decoded, &ev);
		return on_event(arg, &ev);
	case SKIP_TYPE:
		decoded->skipped_type++;
		return 0;
	case SKIP_ROUTE:
		decoded->skipped_route++;
		return 0;
	case -EBADMSG:
		fpm_event_clear(&ev);
		decoded->malformed++;
		return 0;
	default:
		return rc;
	}
}

static int
decode_aligned(const uint8_t *p, size_t left, fpm_on_event *on_event, void *arg,
	       struct fpm_decoded *decoded)
{
	int rc;

	while (left > 0) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)p;
		size_t step;

		/*
		 * mnl_nlmsg_ok() alone is not enough: libmnl 1.0.4 accepts a length above
		 * 2^31.
		 */
		if (left < sizeof(*nlh) || nlh->nlmsg_len > left ||
		    !mnl_nlmsg_ok(nlh, (int)left)) {
			decoded->malformed++;
			return 0; /* the start of the next message is unknown */
		}
		rc = decode_message(nlh, on_event, arg, decoded);
		if (rc < 0)
			return rc;
		step = MNL_ALIGN(nlh->nlmsg_len);
		if (step >= left)
			break;
		p += step;
		left -= step;
	}
	return 0;
}

static __attribute__((noinline)) int
decode_unaligned(const struct fpm_frame *frame, fpm_on_event *on_event, void *arg,
		 struct fpm_decoded *decoded)
{
	uint32_t copy[(FPM_FRAME_MAX + 3) / 4];
	size_t len = frame->len <= FPM_FRAME_MAX ? frame->len : FPM_FRAME_MAX;

	memcpy(copy, frame->payload, len);
	return decode_aligned((const uint8_t *)copy, len, on_event, arg, decoded);
}

int
fpm_decode(const struct fpm_frame *frame, fpm_on_event *on_event, void *arg,
	   struct fpm_decoded *decoded)
{
	if ((uintptr_t)frame->payload % 4 != 0)
		return decode_unaligned(frame, on_event, arg, decoded);
	return decode_aligned(frame->payload, frame->len, on_event, arg, decoded);
}
