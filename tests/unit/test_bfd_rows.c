/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of `show bfd`: each field; unknown fields are null.
 *
 * link: fpm-dataplane/bfd/rows.c fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bfd/rows.h"

/*
 * Make the row of a session, and check that it has the keys and values of `text`, no
 * others.
 */
static void
row_is(const struct bfd_row_in *in, const char *text)
{
	json_t *rows = json_array(), *wanted = json_loads(text, 0, NULL);
	char *is;

	assert_non_null(wanted);
	bfd_row(rows, in);
	is = json_dumps(json_array_get(rows, 0), JSON_SORT_KEYS);
	if (!json_equal(json_array_get(rows, 0), wanted))
		fail_msg("%s", is);
	free(is);
	json_decref(rows);
	json_decref(wanted);
}

static void
each_field_has_its_key(void **state)
{
	const struct bfd_row_in in = {.peer = {{192, 0, 2, 2}},
				      .local = {{192, 0, 2, 1}},
				      .family = 4,
				      .has_local = true,
				      .dev = "wan0",
				      .vrf = "red",
				      .state = "up",
				      .by = "forwarders",
				      .diag = 1,
				      .remote_diag = 8,
				      .discr = UINT32_MAX,
				      .remote_discr = 2,
				      .lid = 3,
				      .mult = 4,
				      .remote_mult = 5,
				      .tx_us = 6,
				      .rx_us = 7,
				      .remote_tx_us = 8,
				      .remote_rx_us = 9,
				      .interval_us = 10,
				      .detect_us = 1ull << 40,
				      .echo_us = 12,
				      .multihop = true,
				      .echo = true,
				      .passive = true,
				      .shutdown = true,
				      .pruned = true,
				      .downs = 13,
				      .since_s = 14,
				      .rx_packets = 15,
				      .tx_packets = 16,
				      .rx_bytes = 17,
				      .tx_bytes = 18,
				      .echo_rx_packets = 19,
				      .echo_tx_packets = 20,
				      .echo_rx_bytes = 21,
				      .echo_tx_bytes = 22};

	row_is(&in,
	       "{\"peer\": \"192.0.2.2\", \"local\": \"192.0.2.1\", \"dev\": \"wan0\", "
	       "\"vrf\": \"red\", \"state\": \"up\", \"by\": \"forwarders\", "
	       "\"diag\": \"control detection time expired\", "
	       "\"remote_diag\": \"reverse concatenated path down\", \"reason\": null, "
	       "\"discr\": 4294967295, \"remote_discr\": 2, \"lid\": 3, \"mult\": 4, "
	       "\"remote_mult\": 5, \"tx_us\": 6, \"rx_us\": 7, \"remote_tx_us\": 8, "
	       "\"remote_rx_us\": 9, \"interval_us\": 10, \"detect_us\": 1099511627776, "
	       "\"echo_us\": 12, \"multihop\": true, \"echo\": true, \"passive\": true, "
	       "\"shutdown\": true, \"pruned\": true, \"downs\": 13, \"since_s\": 14, "
	       "\"rx_packets\": 15, \"tx_packets\": 16, \"rx_bytes\": 17, "
	       "\"tx_bytes\": 18, \"echo_rx_packets\": 19, \"echo_tx_packets\": 20, "
	       "\"echo_rx_bytes\": 21, \"echo_tx_bytes\": 22}");
}

static void
unknown_fields_are_null(void **state)
{
	const struct bfd_row_in in = {.peer = {{0x20, 1, 0xd, 0xb8, [15] = 1}},
				      .family = 6,
				      .state = "down",
				      .diag = 9,
				      .reason = "no port has the address"};

	row_is(&in,
	       "{\"peer\": \"2001:db8::1\", \"local\": null, \"dev\": null, "
	       "\"vrf\": null, \"state\": \"down\", \"by\": null, "
	       "\"diag\": \"reserved\", \"remote_diag\": \"no diagnostic\", "
	       "\"reason\": \"no port has the address\", \"discr\": 0, "
	       "\"remote_discr\": 0, \"lid\": 0, \"mult\": 0, \"remote_mult\": 0, "
	       "\"tx_us\": 0, \"rx_us\": 0, \"remote_tx_us\": 0, \"remote_rx_us\": 0, "
	       "\"interval_us\": 0, \"detect_us\": 0, \"echo_us\": 0, "
	       "\"multihop\": false, \"echo\": false, \"passive\": false, "
	       "\"shutdown\": false, \"pruned\": false, \"downs\": 0, \"since_s\": 0, "
	       "\"rx_packets\": 0, \"tx_packets\": 0, \"rx_bytes\": 0, \"tx_bytes\": 0, "
	       "\"echo_rx_packets\": 0, \"echo_tx_packets\": 0, \"echo_rx_bytes\": 0, "
	       "\"echo_tx_bytes\": 0}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_has_its_key),
		cmocka_unit_test(unknown_fields_are_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
