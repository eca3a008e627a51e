/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sampling counter: one packet of 16 is a sample and is counted by its size. So 16 times
 * a counter is about the number of packets of this size. Each forwarder counts its packets
 * to 16 by itself, in word 0. Counters: 0 samples, 1 up to 128 octets, 2 up to 512, 3 up to
 * 1024, 4 larger, 5 octets of all samples.
 */
#include <fpm_hook.h>

#define EACH 16

uint64_t
sample(struct fpm_hook *hook)
{
	if (++hook->word[0] < EACH)
		return FPM_PASS;
	hook->word[0] = 0;
	hook->counter[0]++;
	hook->counter[5] += hook->length;
	if (hook->length <= 128)
		hook->counter[1]++;
	else if (hook->length <= 512)
		hook->counter[2]++;
	else if (hook->length <= 1024)
		hook->counter[3]++;
	else
		hook->counter[4]++;
	return FPM_PASS;
}
