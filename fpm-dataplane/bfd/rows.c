/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: the rows of `show bfd` (keys: dist/openapi.yaml).                          [bfd] */
#include "bfd/rows.h"

#include <net/if.h>

#include "base/log.h"

/* Return the text of a diagnostic in RFC 5880, 4.1. */
static const char *
diag_text(uint8_t diag)
{
	static const char *const text[] = {
		"no diagnostic",
		"control detection time expired",
		"echo function failed",
		"neighbor signaled session down",
		"forwarding plane reset",
		"path down",
		"concatenated path down",
		"administratively down",
		"reverse concatenated path down",
	};

	return diag < sizeof(text) / sizeof(text[0]) ? text[diag] : "reserved";
}

/* Return a name as JSON. The kernel accepts names that are not UTF-8. */
static json_t *
name_json(const char *name)
{
	char text[2 * IFNAMSIZ];

	return name == NULL ? json_null() : json_string(log_utf8(name, text, sizeof(text)));
}

static json_t *
address_json(const struct ipaddr *address, uint8_t family)
{
	char text[PREFIX_STRLEN];

	return json_string(ipaddr_str(address, family, text));
}

static void
number_set(json_t *row, const char *key, uint64_t value)
{
	json_object_set_new(row, key, json_integer((json_int_t)value));
}

static void
timers_set(json_t *row, const struct bfd_row_in *in)
{
	number_set(row, "mult", in->mult);
	number_set(row, "remote_mult", in->remote_mult);
	number_set(row, "tx_us", in->tx_us);
	number_set(row, "rx_us", in->rx_us);
	number_set(row, "remote_tx_us", in->remote_tx_us);
	number_set(row, "remote_rx_us", in->remote_rx_us);
	number_set(row, "interval_us", in->interval_us);
	number_set(row, "detect_us", in->detect_us);
	number_set(row, "echo_us", in->echo_us);
}

static void
counters_set(json_t *row, const struct bfd_row_in *in)
{
	number_set(row, "downs", in->downs);
	number_set(row, "since_s", in->since_s);
	number_set(row, "rx_packets", in->rx_packets);
	number_set(row, "tx_packets", in->tx_packets);
	number_set(row, "rx_bytes", in->rx_bytes);
	number_set(row, "tx_bytes", in->tx_bytes);
	number_set(row, "echo_rx_packets", in->echo_rx_packets);
	number_set(row, "echo_tx_packets", in->echo_tx_packets);
	number_set(row, "echo_rx_bytes", in->echo_rx_bytes);
	number_set(row, "echo_tx_bytes", in->echo_tx_bytes);
}

void
bfd_row(json_t *rows, const struct bfd_row_in *in)
{
	json_t *row = json_pack(
		"{s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:s?, s:s?, s:I, s:I, s:I, s:b, s:b, "
		"s:b, s:b, s:b}",
		"peer", address_json(&in->peer, in->family), "local",
		in->has_local ? address_json(&in->local, in->family) : json_null(), "dev",
		name_json(in->dev), "vrf", name_json(in->vrf), "state", in->state, "diag",
		diag_text(in->diag), "remote_diag", diag_text(in->remote_diag), "by",
		in->by, "reason", in->reason, "discr", (json_int_t)in->discr,
		"remote_discr", (json_int_t)in->remote_discr, "lid", (json_int_t)in->lid,
		"multihop", in->multihop, "echo", in->echo, "passive", in->passive,
		"shutdown", in->shutdown, "pruned", in->pruned);

	timers_set(row, in);
	counters_set(row, in);
	json_array_append_new(rows, row);
}
