/* SPDX-License-Identifier: BSD-3-Clause */
/* masks: the lengths of the prefixes by which addresses are routed, for sFlow.    [rib] */
#include "rib/masks.h"

#include "fib/fib.h"
#include "rib/impl.h"

void
masks_fill(const struct rib *rib, struct msg_masks *masks)
{
	for (unsigned int i = 0; i < masks->n; i++) {
		struct mask_want *want = &masks->of[i];
		const struct vrf *vrf = want->vrf == 0 ? NULL : rib->vrfs.v[want->vrf];
		uint8_t family = want->prefix.family;
		const struct poptrie *pt =
			vrf == NULL ? NULL : fib_trie(&vrf->fib->tries, family);
		unsigned int bits = family_bits(family), len;
		bool found;

		if (family == 0)
			continue;
		found = pt != NULL && poptrie_match(pt, want->prefix.addr.octet, bits,
						    &len) != POPTRIE_NONE;
		if (!found)
			found = poptrie_match(fib_trie(rib->fib->copy, family),
					      want->prefix.addr.octet, bits,
					      &len) != POPTRIE_NONE;
		want->prefix.len = found ? (uint8_t)len : 0;
		want->prefix.family = found ? family : 0;
	}
}
