/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the checkpoint: write records as they change, read them after a crash.
 * [rib]
 *
 * If SIGKILL stops the thread between two instructions, everything that it stored before is
 * in the memfd. So the writer needs no fsync, no log and no pause. A record is invalid (CRC
 * 0) while it is written. All new hops of a slot are written, with a new version, before
 * the old ones are dropped. If two sets are complete, the later set counts. The file has
 * room for the largest possible table; only the pages that are written use memory.
 */
#include "rib/checkpoint.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fpm_event.h"
#include "base/inet.h"
#include "base/srv6_words.h"
#include "fib/fib.h"
#include "rib/index.h"
#include "rib/order.h"
#include "rib/routes.h"
#include "rib/nh_list.h"
#include "rib/source.h"
#include "rib/stack.h"

#define MAGIC        "FPMDPCKP"
#define HEADER_BYTES 4096u
#define ROUTES_MAX   ((size_t)ROUTE_CHUNK * ROUTE_CHUNKS)
#define HOPS_MAX     ((size_t)8 << 20)
#define ROUTES_BYTES (ROUTES_MAX * sizeof(struct ckpt_route))
#define HOPS_AT      (HEADER_BYTES + CKPT_ZEBRAS * ROUTES_BYTES)
#define BYTES_2      (HOPS_AT + HOPS_MAX * sizeof(struct ckpt_hop)) /* of layout 2 */
#define KERNEL_AT    BYTES_2
#define MORE_AT      (KERNEL_AT + ROUTES_BYTES)
#define BYTES_3      (MORE_AT + ROUTES_MAX * sizeof(struct ckpt_kernel)) /* layout 3 */
#define STACKS_AT    BYTES_3
#define ALL_BYTES    (STACKS_AT + HOPS_MAX * sizeof(struct ckpt_stack))
#define ATTEMPTS_MAX 3u

/*
 * Keep the order of stores, because the memory that a killed thread leaves must have all
 * stores before its last store. The processor keeps the order; this makes the compiler keep
 * it.
 */
#define COMPILER_BARRIER() atomic_signal_fence(memory_order_seq_cst)

const char ckpt_no_memory[] = "out of memory";
const char ckpt_other_layout[] = "layout of another version";
const char ckpt_other_netns[] = "interfaces of another namespace";

static bool
ckpt_map(struct ckpt *c)
{
	void *mem = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 c->fd, 0);

	if (mem == MAP_FAILED)
		return false;
	(void)madvise(mem, c->bytes, MADV_DONTDUMP); /* mostly holes */
	c->head = mem;
	/* Numbers start at 1. */
	for (unsigned int part = 0; part < CKPT_ZEBRAS; part++)
		c->route[part] = (struct ckpt_route *)((char *)mem + HEADER_BYTES +
						       part * ROUTES_BYTES) -
				 1;
	c->hop = (struct ckpt_hop *)((char *)mem + HOPS_AT) - 1;
	if (c->bytes == BYTES_2)
		return true; /* kernel_high is 0 */
	c->route[CKPT_KERNEL] = (struct ckpt_route *)((char *)mem + KERNEL_AT) - 1;
	c->kernel = (struct ckpt_kernel *)((char *)mem + MORE_AT) - 1;
	if (c->bytes != BYTES_3)
		c->stack = (struct ckpt_stack *)((char *)mem + STACKS_AT) - 1;
	return true;
}

static struct ckpt_header
ckpt_header_for(uint64_t netns, uint32_t layout)
{
	struct ckpt_header h = {.magic = MAGIC,
				.layout = layout,
				.header_bytes = HEADER_BYTES,
				.route_bytes = sizeof(struct ckpt_route),
				.hop_bytes = sizeof(struct ckpt_hop),
				.netns = netns};

	h.crc = CKPT_CRC(&h);
	return h;
}

struct ckpt *
ckpt_new(uint64_t netns)
{
	struct ckpt *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->bytes = ALL_BYTES;
	c->fd = memfd_create("fpm-dataplane-checkpoint", MFD_CLOEXEC);
	if (c->fd < 0 || ftruncate(c->fd, (off_t)ALL_BYTES) < 0 || !ckpt_map(c)) {
		ckpt_free(c);
		return NULL;
	}
	*c->head = ckpt_header_for(netns, CKPT_LAYOUT);
	return c;
}

void
ckpt_free(struct ckpt *c)
{
	if (c == NULL)
		return;
	if (c->head != NULL)
		munmap(c->head, c->bytes);
	if (c->fd >= 0)
		close(c->fd);
	free(c->hop_next);
	free(c->hop_first);
	free(c->sorted);
	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		for (unsigned int i = 0; i < 2; i++)
			free(c->order[part].word[i]);
	free(c);
}

size_t
ckpt_file_bytes(uint32_t layout)
{
	return layout == CKPT_LAYOUT_2   ? BYTES_2
	       : layout == CKPT_LAYOUT_3 ? BYTES_3
					 : ALL_BYTES;
}

size_t
ckpt_bytes(const struct ckpt *c)
{
	struct stat st;

	return fstat(c->fd, &st) < 0 ? 0 : (size_t)st.st_blocks * 512;
}

void
ckpt_alive(struct ckpt *c, uint64_t now_ms)
{
	c->head->alive_ms = now_ms;
}

void
ckpt_zebra(struct ckpt *c, uint32_t nl_pid, uint32_t held_until_s)
{
	c->head->held_until_s = 0; /* no reader may apply the old time to a new zebra */
	COMPILER_BARRIER();
	c->head->nl_pid = nl_pid;
	COMPILER_BARRIER();
	c->head->held_until_s = held_until_s;
}

/* --- writing -------------------------------------------------------------------------- */

unsigned int
ckpt_part(uint32_t table)
{
	return table == RIB_TABLE_MAIN ? CKPT_MAIN : CKPT_OTHER;
}

static void
ckpt_write(struct ckpt *c, unsigned int part, uint32_t number, const struct ckpt_route *new)
{
	struct ckpt_route *r = &c->route[part][number];
	bool fresh = r->family == 0;

	r->crc = 0;
	COMPILER_BARRIER();
	memcpy(r, new, offsetof(struct ckpt_route, crc));
	COMPILER_BARRIER();
	if (number > *ckpt_high(c->head, part))
		*ckpt_high(c->head, part) = number;
	COMPILER_BARRIER();
	r->crc = CKPT_CRC_OF(number, new);
	COMPILER_BARRIER();
	*ckpt_n(c->head, part) += fresh;
}

static void
ckpt_erase(struct ckpt *c, unsigned int part, uint32_t number)
{
	struct ckpt_route *r = &c->route[part][number];

	if (number > *ckpt_high(c->head, part) || r->family == 0)
		return;
	r->crc = 0;
	COMPILER_BARRIER();
	*r = (struct ckpt_route){0};
	COMPILER_BARRIER();
	*ckpt_n(c->head, part) -= 1;
}

void
ckpt_put_route(struct ckpt *c, uint32_t number, const struct ckpt_route *new)
{
	ckpt_write(c, ckpt_part(new->table), number, new);
}

void
ckpt_drop_route(struct ckpt *c, uint32_t table, uint32_t number)
{
	ckpt_erase(c, ckpt_part(table), number);
}

/*
 * Write both records of a kernel route. The route is valid only while both records are
 * valid.
 */
void
ckpt_put_kernel(struct ckpt *c, uint32_t number, const struct ckpt_route *r,
		const struct ckpt_kernel *k)
{
	struct ckpt_kernel *at;

	if (number > ROUTES_MAX) { /* the next daemon reads it from the kernel */
		c->full++;
		return;
	}
	at = &c->kernel[number];
	c->route[CKPT_KERNEL][number].crc = 0;
	COMPILER_BARRIER();
	*at = *k;
	at->crc = CKPT_CRC_OF(number, k);
	COMPILER_BARRIER();
	ckpt_write(c, CKPT_KERNEL, number, r);
}

void
ckpt_drop_kernel(struct ckpt *c, uint32_t number)
{
	if (number <= ROUTES_MAX)
		ckpt_erase(c, CKPT_KERNEL, number);
}

/* Make room for index `number` in a table of the writer's own memory. */
static uint32_t *
ckpt_grow_table(uint32_t *table, uint32_t *cap, uint32_t number)
{
	uint32_t want = *cap == 0 ? 1024 : *cap;

	while (want <= number)
		want *= 2;
	if (want == *cap)
		return table;
	table = mem_or_abort(realloc(table, want * sizeof(*table)));
	memset(table + *cap, 0, (want - *cap) * sizeof(*table));
	*cap = want;
	return table;
}

/* Return the number of an unused hop record; 0: none. */
static uint32_t
ckpt_hop_take(struct ckpt *c)
{
	uint32_t number = c->hop_free;

	if (number != 0) {
		c->hop_free = c->hop_next[number];
		return number;
	}
	if (c->head->hop_high == HOPS_MAX)
		return 0;
	number = c->head->hop_high + 1;
	/* Allocate the page of the record before hop_high counts the record. */
	c->hop[number].crc = 0;
	COMPILER_BARRIER();
	c->head->hop_high = number;
	c->hop_next = ckpt_grow_table(c->hop_next, &c->hop_cap, number);
	return number;
}

static void
ckpt_hops_drop(struct ckpt *c, uint32_t first)
{
	for (uint32_t next; first != 0; first = next) {
		next = c->hop_next[first];
		c->hop[first].crc = 0;
		COMPILER_BARRIER();
		c->hop[first] = (struct ckpt_hop){0};
		c->hop_next[first] = c->hop_free;
		c->hop_free = first;
	}
}

/* Write the labels of a next hop before its record. */
static void
ckpt_stack_write(struct ckpt *c, uint32_t number, const struct next_hop *hop,
		 const struct stack *stacks)
{
	struct ckpt_stack new = {0};
	const struct stack *s = &stacks[hop->stack];

	/*
	 * A long headend has more segments than the record holds. After a restore the
	 * kernel forwards its packets until zebra sends the route again.
	 */
	if (hop->stack != 0 && (s->n <= CKPT_WORDS || hop->encap == HOP_MPLS)) {
		new.n = s->n;
		new.ttl = s->ttl;
		if (s->n <= CKPT_WORDS)
			memcpy(new.word, stack_labels(s), s->n * sizeof(new.word[0]));
		else
			labels_pack(new.word, stack_labels(s), s->n);
	}
	new.crc = CKPT_CRC_OF(c->version, &new);
	c->stack[number] = new;
	COMPILER_BARRIER();
}

static void
ckpt_hop_write(struct ckpt *c, uint32_t number, uint32_t slot, uint32_t at, uint32_t n,
	       const struct next_hop *hop, uint32_t mtu_bytes)
{
	struct ckpt_hop new = {
		.slot = slot,
		.version = c->version,
		.at = at,
		.n = n,
		.gw = hop->gw,
		.ifindex = hop->ifindex,
		.weight = hop->weight,
		.gw_family = hop->gw_family,
		.encap = hop->encap,
		.flags = (uint8_t)(hop->onlink |
				   (uint32_t)hop->vrf_subnet * CKPT_VRF_SUBNET |
				   (uint32_t)hop->dead * CKPT_DEAD |
				   (uint32_t)label_mode_of_class(hop->mtu_class)
					   << CKPT_MODE_SHIFT),
		.kind = hop->kind,
		.mtu_bytes = mtu_bytes,
		.number = number};

	c->hop[number] = new;
	COMPILER_BARRIER();
	c->hop[number].crc = CKPT_CRC(&new);
}

void
ckpt_put_slot(struct ckpt *c, uint32_t slot, const struct nh_list *hops, uint32_t mtu_bytes,
	      const struct stack *stacks)
{
	uint32_t first = 0, number, old;

	c->hop_first = ckpt_grow_table(c->hop_first, &c->slot_cap, slot);
	old = c->hop_first[slot];
	c->version++;
	for (uint32_t i = 0; i < hops->n; i++) {
		number = ckpt_hop_take(c);
		/* A restore then lacks the slot's routes: better than a wrong next hop. */
		if (number == 0) {
			c->full++;
			ckpt_hops_drop(c, first);
			first = 0;
			break;
		}
		if (hops->v[i].kind == PATH_NONE &&
		    (hops->v[i].encap == HOP_MPLS || hops->v[i].encap == HOP_SEG6))
			ckpt_stack_write(c, number, &hops->v[i], stacks);
		ckpt_hop_write(c, number, slot, i, hops->n, &hops->v[i], mtu_bytes);
		c->hop_next[number] = first;
		first = number;
	}
	COMPILER_BARRIER();
	c->hop_first[slot] = first;
	c->head->n_slots += (first != 0) - (old != 0);
	COMPILER_BARRIER();
	ckpt_hops_drop(c, old);
}

void
ckpt_drop_slot(struct ckpt *c, uint32_t slot)
{
	uint32_t old = slot < c->slot_cap ? c->hop_first[slot] : 0;

	if (old == 0)
		return;
	c->hop_first[slot] = 0;
	c->head->n_slots--;
	COMPILER_BARRIER();
	ckpt_hops_drop(c, old);
}

/* --- reading -------------------------------------------------------------------------- */

static bool
ckpt_is_label(const struct ckpt_route *r, unsigned int part)
{
	return part != CKPT_MAIN && r->family == FAMILY_LABEL && r->len == 32 &&
	       get_be32(r->addr.octet) < LABELS_ALL;
}

static bool
ckpt_route_is_valid(const struct ckpt_route *r, unsigned int part, uint32_t number)
{
	struct prefix p = {.addr = r->addr, .family = r->family, .len = r->len};

	if (r->crc != CKPT_CRC_OF(number, r) || r->slot == 0 || r->slot >= FIB_GROUP_MAX ||
	    r->rtm_type > (part == CKPT_KERNEL ? RTN_THROW : RTN_PROHIBIT) ||
	    r->table == 0 || source_is_table(r->table) ||
	    (part != CKPT_KERNEL && ckpt_part(r->table) != part) ||
	    !(r->table == FPM_TABLE_NONE ? ckpt_is_label(r, part)
					 : family_is_ip(r->family)) ||
	    r->len > family_bits(r->family))
		return false;
	prefix_mask(&p);
	return ipaddr_equal(&p.addr, &r->addr);
}

/* Return true if the second record of a kernel route is valid. */
static bool
ckpt_kernel_is_valid(const struct ckpt_route *r, const struct ckpt_kernel *k,
		     uint32_t number)
{
	unsigned int all = CKPT_IS_LOCAL | CKPT_CONNECTED | CKPT_JOINS;

	if (!family_is_ip(r->family) && (k->flags != 0 || k->metric != 0))
		/* A route of a label has no metric: Linux has one route per label. */
		return false;
	return k->crc == CKPT_CRC_OF(number, k) && (k->flags & ~all) == 0 && k->zero == 0;
}

const struct ckpt_route *
ckpt_route(const struct ckpt *c, unsigned int part, uint32_t number)
{
	const struct ckpt_route *r = &c->route[part][number];

	if (r->family == 0 || !ckpt_route_is_valid(r, part, number))
		return NULL;
	return part != CKPT_KERNEL || ckpt_kernel_is_valid(r, &c->kernel[number], number)
		       ? r
		       : NULL;
}

static bool
record_is_blank(const void *record, size_t len)
{
	const uint8_t *p = record;

	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/*
 * Accept only the values that rib makes of nexthop objects and routes (next_hop_from_fpm(),
 * nh_list_set_type()).
 */
static bool
ckpt_hop_has_valid_fields(const struct ckpt_hop *hop)
{
	switch (hop->kind) {
	case PATH_NONE:
		return (hop->gw_family == 0 || hop->gw_family == 4 ||
			hop->gw_family == 6) &&
		       hop->encap < N_HOP_ENCAP && hop->weight > 0;
	case PATH_BLACKHOLE:
	case PATH_UNREACHABLE:
	case PATH_PROHIBIT:
	case PATH_UNRESOLVED:
	case PATH_LOCAL:
	case PATH_BCAST:
	case PATH_THROW:
		return true;
	default:
		return false;
	}
}

static bool
ckpt_hop_is_valid(const struct ckpt_hop *hop, uint32_t number)
{
	return hop->crc == CKPT_CRC(hop) && hop->number == number && hop->at < hop->n &&
	       hop->slot != 0 && hop->slot < FIB_GROUP_MAX && hop->mtu_bytes < UINT16_MAX &&
	       (hop->flags & ~CKPT_DEAD) < CKPT_MODE_END && ckpt_hop_has_valid_fields(hop);
}

/* Read the s->n labels of a record, or its words of SRv6. s->n is at most LABELS_MAX. */
static void
ckpt_labels_read(const struct ckpt_stack *s, uint32_t label[LABELS_MAX])
{
	if (s->n <= CKPT_WORDS)
		memcpy(label, s->word, s->n * sizeof(*label));
	for (uint32_t i = 0; s->n > CKPT_WORDS && i < s->n; i++)
		label[i] = labels_at(s->word, i);
}

/* Return true if packed labels have no bit that labels_pack() leaves 0. */
static bool
ckpt_labels_are_packed(const struct ckpt_stack *s)
{
	uint32_t label[LABELS_MAX], word[CKPT_WORDS];

	ckpt_labels_read(s, label);
	labels_pack(word, label, s->n);
	return memcmp(word, s->word, sizeof(word)) == 0;
}

/* Return true if the labels of a valid hop are valid, or if it has none. */
static bool
ckpt_stack_is_valid(const struct ckpt *c, const struct ckpt_hop *hop, uint32_t number)
{
	const struct ckpt_stack *s;

	if (hop->kind != PATH_NONE || hop->encap != HOP_MPLS || c->stack == NULL)
		return true;
	s = &c->stack[number];
	if (s->crc != CKPT_CRC_OF(hop->version, s) || s->n > LABELS_MAX ||
	    (s->ttl != 0 && (s->ttl < LABEL_TTL_OWN || s->ttl >= LABEL_TTL_OWN_END)))
		return false;
	if (s->n > CKPT_WORDS)
		return c->head->layout == CKPT_LAYOUT && ckpt_labels_are_packed(s);
	for (uint32_t i = 0; i < CKPT_WORDS; i++)
		if (s->word[i] >= (i < s->n ? LABELS_ALL : 1))
			return false;
	return true;
}

/*
 * Return true if the record has the words of a hop of SRv6. An older writer wrote none: the
 * hop then is unsupported until zebra sends it again.
 */
static bool
ckpt_words_are_valid(const struct ckpt_hop *hop, const struct ckpt_stack *s)
{
	struct srv6_sid sid;
	enum srv6_mode mode;
	const uint32_t *source;

	if (s->crc != CKPT_CRC_OF(hop->version, s) || s->n > CKPT_WORDS || s->ttl != 0)
		return false;
	for (uint32_t i = s->n; i < CKPT_WORDS; i++)
		if (s->word[i] != 0)
			return false;
	return s->n == 0 || srv6_sid_unpack(s->word, s->n, &sid) ||
	       srv6_headend_unpack(s->word, s->n, &mode, &source) != 0;
}

unsigned int
ckpt_hop_stack(const struct ckpt *c, uint32_t at, uint32_t n, uint32_t i,
	       uint32_t label[LABELS_MAX], uint16_t *ttl)
{
	uint32_t number = c->sorted[at - n + i];
	const struct ckpt_hop *hop = &c->hop[number];
	const struct ckpt_stack *s;

	*ttl = 0;
	if (hop->kind != PATH_NONE || c->stack == NULL)
		return 0;
	s = &c->stack[number];
	if (hop->encap != HOP_MPLS &&
	    (hop->encap != HOP_SEG6 || !ckpt_words_are_valid(hop, s)))
		return 0;
	ckpt_labels_read(s, label);
	*ttl = s->ttl;
	return s->n;
}

static const struct ckpt *sorting; /* qsort() passes no context */

static int
ckpt_hop_order(const void *a, const void *b)
{
	const struct ckpt_hop *x = &sorting->hop[*(const uint32_t *)a];
	const struct ckpt_hop *y = &sorting->hop[*(const uint32_t *)b];

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	if (x->version != y->version) /* the later version first */
		return x->version > y->version ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static enum label_mode
ckpt_hop_mode(const struct ckpt_hop *hop)
{
	return (enum label_mode)((hop->flags & ~CKPT_DEAD) >> CKPT_MODE_SHIFT);
}

/* Return true if a complete set begins at index `at`. */
static bool
hop_set_is_complete(const struct ckpt *c, uint32_t at)
{
	const struct ckpt_hop *hop = &c->hop[c->sorted[at]];

	if (hop->at != 0 || hop->n > c->n_sorted - at)
		return false;
	for (uint32_t i = 1; i < hop->n; i++) {
		const struct ckpt_hop *x = &c->hop[c->sorted[at + i]];

		if (x->slot != hop->slot || x->version != hop->version || x->at != i ||
		    x->n != hop->n || x->mtu_bytes != hop->mtu_bytes ||
		    ckpt_hop_mode(x) != ckpt_hop_mode(hop))
			return false;
	}
	return true;
}

uint32_t
ckpt_next_slot(const struct ckpt *c, uint32_t *at, struct nh_list *out, uint32_t *mtu_bytes)
{
	uint32_t last = *at == 0 ? 0 : c->hop[c->sorted[*at - 1]].slot;

	for (; *at < c->n_sorted; ++*at) {
		const struct ckpt_hop *hop = &c->hop[c->sorted[*at]];

		if (hop->slot == last || !hop_set_is_complete(c, *at))
			continue; /* an older set, or an unfinished one */
		nh_list_clear(out);
		for (uint32_t i = 0; i < hop->n; i++) {
			const struct ckpt_hop *x = &c->hop[c->sorted[*at + i]];

			*nh_list_push(out) = (struct next_hop){
				.gw = x->gw,
				.ifindex = x->ifindex,
				.weight = x->weight,
				.gw_family = x->gw_family,
				.encap = x->encap,
				.onlink = x->flags & CKPT_ONLINK,
				.kind = x->kind,
				.mtu_class = class_of_label_mode(ckpt_hop_mode(x)),
				.dead = (x->flags & CKPT_DEAD) != 0,
				.vrf_subnet = (x->flags & CKPT_VRF_SUBNET) != 0};
		}
		*mtu_bytes = hop->mtu_bytes;
		*at += hop->n;
		return hop->slot;
	}
	return 0;
}

/* Verify all hops; collect and sort the valid ones. Return the fault; NULL: none. */
static const char *
ckpt_hops_verify(struct ckpt *c)
{
	struct nh_list hops = {0};
	uint32_t at = 0, n = 0, bad = 0, mtu;

	c->sorted = malloc((c->head->hop_high + 1u) * sizeof(*c->sorted));
	if (c->sorted == NULL)
		return ckpt_no_memory;
	for (uint32_t i = 1; i <= c->head->hop_high; i++) {
		if (ckpt_hop_is_valid(&c->hop[i], i) &&
		    ckpt_stack_is_valid(c, &c->hop[i], i))
			c->sorted[c->n_sorted++] = i;
		else
			bad += !record_is_blank(&c->hop[i], sizeof(c->hop[i]));
	}
	sorting = c;
	qsort(c->sorted, c->n_sorted, sizeof(*c->sorted), ckpt_hop_order);
	while (ckpt_next_slot(c, &at, &hops, &mtu) != 0)
		n++;
	free(hops.v);
	c->n_bad += bad;
	return bad <= 1 && n + 1 >= c->head->n_slots && n <= c->head->n_slots + 1
		       ? NULL
		       : "damaged next hops";
}

/* Return the position of a route in the address space, with 32 bits of precision. */
static uint64_t
route_address_key(const struct ckpt_route *r)
{
	uint64_t hi;

	memcpy(&hi, r->addr.octet, sizeof(hi));
	hi = __builtin_bswap64(hi);
	/* Most of IPv6 is 2000::/3. */
	return (r->family == 4 ? hi : hi << 3 | hi >> 61) >> 32;
}

/*
 * Verify all routes. Collect the valid ones, IPv4 from the front and IPv6 from the back,
 * and sort them. Return the fault; NULL: none.
 */
static const char *
ckpt_routes_verify(struct ckpt *c, unsigned int part)
{
	struct ckpt_order *o = &c->order[part];
	uint32_t high = *ckpt_high(c->head, part), n = 0, bad = 0, back = high;
	uint32_t present = *ckpt_n(c->head, part);

	for (unsigned int i = 0; i < 2; i++) {
		o->word[i] = malloc((high + 1u) * sizeof(uint64_t));
		if (o->word[i] == NULL)
			return ckpt_no_memory;
	}
	for (uint32_t i = 1; i <= high; i++) {
		const struct ckpt_route *r = ckpt_route(c, part, i);

		if (r != NULL)
			o->word[0][r->family == 4 ? n++ : --back] =
				route_address_key(r) << 32 | i;
		else
			bad += !record_is_blank(&c->route[part][i], sizeof(*r));
	}
	o->n[0] = n;
	o->n[1] = high - back;
	o->by[0] = order_by_key(o->word[0], o->word[1], n);
	o->by[1] = order_by_key(o->word[0] + back, o->word[1] + back, high - back);
	n += high - back;
	c->n_bad += bad;
	return bad <= 1 && n + 1 >= present && n <= present + 1 ? NULL : "damaged routes";
}

/*
 * Return true if `high` can be the highest number of an array of `max` records, that is, if
 * its record, at `at`, was ever written. Records that were never written are holes of the
 * file. A walk over holes costs memory and time for each page, so the highest numbers,
 * which no CRC protects, must not lead there.
 */
static bool
ckpt_high_is_valid(const struct ckpt *c, uint32_t high, size_t max, const void *at)
{
	off_t offset = (off_t)((const char *)at - (const char *)c->head);

	return high == 0 || (high <= max && lseek(c->fd, offset, SEEK_DATA) == offset);
}

static bool
ckpt_highs_are_valid(const struct ckpt *c)
{
	struct ckpt_header *h = c->head;

	if (c->bytes == BYTES_2 && (h->kernel_high != 0 || h->n_kernel != 0))
		return false;
	for (unsigned int part = 0; part < CKPT_PARTS; part++) {
		uint32_t high = *ckpt_high(h, part);

		if (high != 0 &&
		    !ckpt_high_is_valid(c, high, ROUTES_MAX, &c->route[part][high]))
			return false;
	}
	return ckpt_high_is_valid(c, h->hop_high, HOPS_MAX, &c->hop[h->hop_high]);
}

/*
 * Return the difference. A running predecessor may write the time after the caller has read
 * the clock, so either may be the later.
 */
static uint64_t
time_distance(uint64_t one_ms, uint64_t other_ms)
{
	return one_ms > other_ms ? one_ms - other_ms : other_ms - one_ms;
}

/* Return the fault of the checkpoint; NULL: none. */
static const char *
ckpt_verify(struct ckpt *c, uint64_t netns, uint64_t now_ms, uint64_t max_age_ms)
{
	struct ckpt_header *h = c->head;
	struct ckpt_header want = ckpt_header_for(netns, h->layout);
	const char *why;

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0)
		return "not a checkpoint";
	if (h->crc != CKPT_CRC(h))
		return "damaged header";
	if (h->netns != netns)
		return ckpt_other_netns;
	if (h->crc != want.crc)
		return ckpt_other_layout;
	if (time_distance(h->alive_ms, now_ms) > max_age_ms)
		return "too old";
	if (h->attempts >= ATTEMPTS_MAX)
		return "crash at each start with it";
	if (!ckpt_highs_are_valid(c))
		return "damaged header";
	h->attempts++;
	why = ckpt_hops_verify(c);
	for (unsigned int part = 0; part < CKPT_PARTS && why == NULL; part++)
		why = ckpt_routes_verify(c, part);
	return why;
}

static bool
layout_is_known(uint32_t layout)
{
	return layout >= CKPT_LAYOUT_2 && layout <= CKPT_LAYOUT;
}

/*
 * Return true if the checkpoint has the layout of another version, and therefore perhaps
 * another size. The header has the number of the layout.
 */
static bool
ckpt_is_other_layout(int fd)
{
	struct ckpt_header h;

	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       memcmp(h.magic, MAGIC, sizeof(h.magic)) == 0 && !layout_is_known(h.layout);
}

/* Return true if the file has the size of its layout. */
static bool
ckpt_has_right_size(const struct ckpt *c)
{
	struct ckpt_header h;

	return pread(c->fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       c->bytes == ckpt_file_bytes(h.layout);
}

struct ckpt *
ckpt_open(int fd, uint64_t netns, uint64_t now_ms, uint64_t max_age_ms, const char **why)
{
	struct ckpt *c = calloc(1, sizeof(*c));
	struct stat st;

	*why = ckpt_no_memory;
	if (c == NULL) {
		close(fd);
		return NULL;
	}
	c->fd = fd;
	c->bytes = fstat(fd, &st) < 0 ? 0 : (size_t)st.st_size;
	if (c->bytes == 0 || !S_ISREG(st.st_mode))
		*why = "not a checkpoint";
	else if (ckpt_is_other_layout(fd))
		*why = ckpt_other_layout;
	else if (!ckpt_has_right_size(c))
		*why = "not a checkpoint";
	else if (ckpt_map(c))
		*why = ckpt_verify(c, netns, now_ms, max_age_ms);
	if (*why == NULL)
		return c;
	ckpt_free(c);
	return NULL;
}

/* Read the header of a checkpoint of a known layout. */
static bool
ckpt_header_read(int fd, struct ckpt_header *h)
{
	return pread(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) &&
	       layout_is_known(h->layout) &&
	       h->crc == ckpt_header_for(h->netns, h->layout).crc;
}

unsigned int
ckpt_attempts(int fd)
{
	struct ckpt_header h;

	return ckpt_header_read(fd, &h) ? h.attempts : 0;
}

uint64_t
ckpt_alive_ms(int fd)
{
	struct ckpt_header h;

	return ckpt_header_read(fd, &h) ? h.alive_ms : 0;
}

uint64_t
ckpt_routes(int fd)
{
	struct ckpt_header h;
	uint64_t n = 0;

	for (unsigned int part = 0; ckpt_header_read(fd, &h) && part < CKPT_PARTS; part++)
		n += *ckpt_n(&h, part);
	return n;
}

void
ckpt_reset_attempts(int fd, unsigned int attempts)
{
	uint32_t before = attempts;

	if (ckpt_attempts(fd) != before + 1)
		return;
	(void)!pwrite(fd, &before, sizeof(before), offsetof(struct ckpt_header, attempts));
}

void
ckpt_empty_if_tried(int fd)
{
	if (ckpt_attempts(fd) >= ATTEMPTS_MAX)
		(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 HEADER_BYTES, (off_t)(ALL_BYTES - HEADER_BYTES));
}
