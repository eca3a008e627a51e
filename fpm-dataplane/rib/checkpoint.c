/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checkpoint's memory: writing records as they change, reading them after a crash. [rib].
 *
 * kill -9 stops a thread between two instructions, and what it had stored is there: no
 * fsync, no log, no pause. A record is invalid (CRC 0) while it is written. A slot's new
 * ways are all written, under a new turn, before its old ones are dropped; of two complete
 * sets the later counts. The memory is reserved for the largest table there can be and
 * costs what is written of it.
 */
#include "rib/checkpoint.h"

#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fpm_event.h"
#include "fib/fib.h"
#include "rib/index.h"
#include "rib/order.h"
#include "rib/routes.h"
#include "rib/ways.h"

#define MAGIC        "FPMDPCKP"
#define HEADER_BYTES 4096u
#define ROUTES       ((size_t)ROUTE_CHUNK * ROUTE_CHUNKS)
#define WAYS         ((size_t)8 << 20)
#define ROUTES_BYTES (ROUTES * sizeof(struct ckpt_route))
#define WAYS_AT      (HEADER_BYTES + CKPT_PARTS * ROUTES_BYTES)
#define ALL_BYTES    (WAYS_AT + WAYS * sizeof(struct ckpt_way))
#define TRIES_MAX    3u

/* The order of stores as a killed thread leaves them: the processor keeps it, so must gcc. */
#define IN_ORDER() atomic_signal_fence(memory_order_seq_cst)

const char ckpt_no_memory[] = "out of memory";
const char ckpt_other_layout[] = "another version's layout";
const char ckpt_other_netns[] = "another namespace's interfaces";

static bool
ckpt_map(struct ckpt *c)
{
	void *mem = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, c->fd, 0);

	if (mem == MAP_FAILED)
		return false;
	(void)madvise(mem, ALL_BYTES, MADV_DONTDUMP); /* reserved, hardly any of it there */
	c->head = mem;
	/* Numbers are from 1. */
	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		c->route[part] = (struct ckpt_route *)((char *)mem + HEADER_BYTES +
						       part * ROUTES_BYTES) -
				 1;
	c->way = (struct ckpt_way *)((char *)mem + WAYS_AT) - 1;
	return true;
}

static struct ckpt_header
ckpt_header_for(uint64_t netns)
{
	struct ckpt_header h = {.magic = MAGIC,
				.layout = CKPT_LAYOUT,
				.header_bytes = HEADER_BYTES,
				.route_bytes = sizeof(struct ckpt_route),
				.way_bytes = sizeof(struct ckpt_way),
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
	c->fd = memfd_create("fpm-dataplane-checkpoint", MFD_CLOEXEC);
	if (c->fd < 0 || ftruncate(c->fd, (off_t)ALL_BYTES) < 0 || !ckpt_map(c)) {
		ckpt_free(c);
		return NULL;
	}
	*c->head = ckpt_header_for(netns);
	return c;
}

void
ckpt_free(struct ckpt *c)
{
	if (c == NULL)
		return;
	if (c->head != NULL)
		munmap(c->head, ALL_BYTES);
	if (c->fd >= 0)
		close(c->fd);
	free(c->next_way);
	free(c->first_way);
	free(c->sorted);
	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		for (unsigned int i = 0; i < 2; i++)
			free(c->order[part].word[i]);
	free(c);
}

size_t
ckpt_bytes(const struct ckpt *c)
{
	size_t bytes = HEADER_BYTES + c->head->way_high * sizeof(struct ckpt_way);

	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		bytes += c->head->route_high[part] * sizeof(struct ckpt_route);
	return bytes;
}

void
ckpt_alive(struct ckpt *c, uint64_t now_ms)
{
	c->head->alive_ms = now_ms;
}

void
ckpt_zebra(struct ckpt *c, uint32_t nl_pid, uint32_t held_until_s)
{
	c->head->held_until_s = 0; /* never another one's */
	IN_ORDER();
	c->head->nl_pid = nl_pid;
	IN_ORDER();
	c->head->held_until_s = held_until_s;
}

/* --- writing ------------------------------------------------------------------------------ */

unsigned int
ckpt_part(uint32_t table)
{
	return table == RIB_TABLE_MAIN ? CKPT_MAIN : CKPT_OTHER;
}

void
ckpt_put_route(struct ckpt *c, uint32_t number, const struct ckpt_route *new)
{
	unsigned int part = ckpt_part(new->table);
	struct ckpt_route *r = &c->route[part][number];
	bool fresh = r->family == 0;

	r->crc = 0;
	IN_ORDER();
	memcpy(r, new, offsetof(struct ckpt_route, crc));
	IN_ORDER();
	if (number > c->head->route_high[part])
		c->head->route_high[part] = number;
	IN_ORDER();
	r->crc = CKPT_CRC_OF(number, new);
	IN_ORDER();
	c->head->n_routes[part] += fresh;
}

void
ckpt_drop_route(struct ckpt *c, uint32_t table, uint32_t number)
{
	unsigned int part = ckpt_part(table);
	struct ckpt_route *r = &c->route[part][number];

	if (number > c->head->route_high[part] || r->family == 0)
		return;
	r->crc = 0;
	IN_ORDER();
	*r = (struct ckpt_route){0};
	IN_ORDER();
	c->head->n_routes[part]--;
}

/* Room in the writer's own tables for that number. */
static uint32_t *
ckpt_grow_table(uint32_t *table, uint32_t *cap, uint32_t number)
{
	uint32_t want = *cap == 0 ? 1024 : *cap;

	while (want <= number)
		want *= 2;
	if (want == *cap)
		return table;
	table = must(realloc(table, want * sizeof(*table)));
	memset(table + *cap, 0, (want - *cap) * sizeof(*table));
	*cap = want;
	return table;
}

/* A free way's number, taken; 0: none. */
static uint32_t
way_take(struct ckpt *c)
{
	uint32_t number = c->free_way;

	if (number != 0) {
		c->free_way = c->next_way[number];
		return number;
	}
	if (c->head->way_high == WAYS)
		return 0;
	number = c->head->way_high + 1;
	c->way[number].crc = 0; /* its page is there before anybody counts on it */
	IN_ORDER();
	c->head->way_high = number;
	c->next_way = ckpt_grow_table(c->next_way, &c->cap_way, number);
	return number;
}

static void
ways_drop(struct ckpt *c, uint32_t first)
{
	for (uint32_t next; first != 0; first = next) {
		next = c->next_way[first];
		c->way[first].crc = 0;
		IN_ORDER();
		c->way[first] = (struct ckpt_way){0};
		c->next_way[first] = c->free_way;
		c->free_way = first;
	}
}

static void
way_write(struct ckpt *c, uint32_t number, uint32_t slot, uint32_t at, uint32_t n,
	  const struct way *w, uint32_t mtu_bytes)
{
	struct ckpt_way new = {.slot = slot,
			       .turn = c->turn,
			       .at = at,
			       .n = n,
			       .gw = w->gw,
			       .ifindex = w->ifindex,
			       .weight = w->weight,
			       .gw_family = w->gw_family,
			       .encap = w->encap,
			       .onlink = w->onlink,
			       .kind = w->kind,
			       .mtu_bytes = mtu_bytes,
			       .number = number};

	c->way[number] = new;
	IN_ORDER();
	c->way[number].crc = CKPT_CRC(&new);
}

void
ckpt_put_slot(struct ckpt *c, uint32_t slot, const struct ways *ways, uint32_t mtu_bytes)
{
	uint32_t first = 0, number, old;

	c->first_way = ckpt_grow_table(c->first_way, &c->cap_slot, slot);
	old = c->first_way[slot];
	c->turn++;
	for (uint32_t i = 0; i < ways->n; i++) {
		number = way_take(c);
		if (number == 0) { /* its routes will be missed, not misled */
			c->full++;
			ways_drop(c, first);
			first = 0;
			break;
		}
		way_write(c, number, slot, i, ways->n, &ways->v[i], mtu_bytes);
		c->next_way[number] = first;
		first = number;
	}
	IN_ORDER();
	c->first_way[slot] = first;
	c->head->n_slots += (first != 0) - (old != 0);
	IN_ORDER();
	ways_drop(c, old);
}

void
ckpt_drop_slot(struct ckpt *c, uint32_t slot)
{
	uint32_t old = slot < c->cap_slot ? c->first_way[slot] : 0;

	if (old == 0)
		return;
	c->first_way[slot] = 0;
	c->head->n_slots--;
	IN_ORDER();
	ways_drop(c, old);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool
route_is_good(const struct ckpt_route *r, unsigned int part, uint32_t number)
{
	struct prefix p = {.addr = r->addr, .family = r->family, .len = r->len};

	if (r->crc != CKPT_CRC_OF(number, r) || r->slot == 0 || r->slot >= FIB_GROUP_MAX ||
	    r->rtm_type > RTN_PROHIBIT || r->table == 0 || r->table == FPM_TABLE_NONE ||
	    ckpt_part(r->table) != part || (r->family != 4 && r->family != 6) ||
	    r->len > family_bits(r->family))
		return false;
	prefix_mask(&p);
	return ipaddr_equal(&p.addr, &r->addr);
}

const struct ckpt_route *
ckpt_route(const struct ckpt *c, unsigned int part, uint32_t number)
{
	const struct ckpt_route *r = &c->route[part][number];

	return r->family != 0 && route_is_good(r, part, number) ? r : NULL;
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

/* What rib makes of nexthop objects and routes, and nothing else (way_of_hop()). */
static bool
way_makes_sense(const struct ckpt_way *w)
{
	switch (w->kind) {
	case PATH_NONE:
		return (w->gw_family == 0 || w->gw_family == 4 || w->gw_family == 6) &&
		       w->encap <= HOP_OTHER_ENCAP && w->onlink <= 1 && w->weight > 0;
	case PATH_BLACKHOLE:
	case PATH_UNREACHABLE:
	case PATH_PROHIBIT:
	case PATH_UNRESOLVED:
		return true;
	default:
		return false;
	}
}

static bool
way_is_good(const struct ckpt_way *w, uint32_t number)
{
	return w->crc == CKPT_CRC(w) && w->number == number && w->at < w->n &&
	       w->slot != 0 && w->slot < FIB_GROUP_MAX && w->mtu_bytes < UINT16_MAX &&
	       way_makes_sense(w);
}

static const struct ckpt *sorting; /* qsort() has no argument for it */

static int
way_set_order(const void *a, const void *b)
{
	const struct ckpt_way *x = &sorting->way[*(const uint32_t *)a];
	const struct ckpt_way *y = &sorting->way[*(const uint32_t *)b];

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	if (x->turn != y->turn) /* the later one first */
		return x->turn > y->turn ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Is there a whole set from `at` on? */
static bool
way_set_is_whole(const struct ckpt *c, uint32_t at)
{
	const struct ckpt_way *w = &c->way[c->sorted[at]];

	if (w->at != 0 || w->n > c->n_sorted - at)
		return false;
	for (uint32_t i = 1; i < w->n; i++) {
		const struct ckpt_way *x = &c->way[c->sorted[at + i]];

		if (x->slot != w->slot || x->turn != w->turn || x->at != i ||
		    x->n != w->n || x->mtu_bytes != w->mtu_bytes)
			return false;
	}
	return true;
}

uint32_t
ckpt_next_slot(const struct ckpt *c, uint32_t *at, struct ways *out, uint32_t *mtu_bytes)
{
	uint32_t last = *at == 0 ? 0 : c->way[c->sorted[*at - 1]].slot;

	for (; *at < c->n_sorted; ++*at) {
		const struct ckpt_way *w = &c->way[c->sorted[*at]];

		if (w->slot == last || !way_set_is_whole(c, *at))
			continue; /* an older set, or an unfinished one */
		ways_clear(out);
		for (uint32_t i = 0; i < w->n; i++) {
			const struct ckpt_way *x = &c->way[c->sorted[*at + i]];

			*ways_push(out) = (struct way){.gw = x->gw,
						       .ifindex = x->ifindex,
						       .weight = x->weight,
						       .gw_family = x->gw_family,
						       .encap = x->encap,
						       .onlink = x->onlink,
						       .kind = x->kind};
		}
		*mtu_bytes = w->mtu_bytes;
		*at += w->n;
		return w->slot;
	}
	return 0;
}

/* All ways: good ones are noted and sorted. Returns what is wrong; NULL: nothing. */
static const char *
ways_verify(struct ckpt *c)
{
	struct ways ways = {0};
	uint32_t at = 0, n = 0, bad = 0, mtu;

	c->sorted = malloc((c->head->way_high + 1u) * sizeof(*c->sorted));
	if (c->sorted == NULL)
		return ckpt_no_memory;
	for (uint32_t i = 1; i <= c->head->way_high; i++) {
		if (way_is_good(&c->way[i], i))
			c->sorted[c->n_sorted++] = i;
		else
			bad += !record_is_blank(&c->way[i], sizeof(c->way[i]));
	}
	sorting = c;
	qsort(c->sorted, c->n_sorted, sizeof(*c->sorted), way_set_order);
	while (ckpt_next_slot(c, &at, &ways, &mtu) != 0)
		n++;
	free(ways.v);
	c->n_bad += bad;
	return bad <= 1 && n + 1 >= c->head->n_slots && n <= c->head->n_slots + 1
		       ? NULL
		       : "damaged next hops";
}

/* Where a route is in the address space, as exactly as 32 bits can say it. */
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
 * All routes: good ones are noted, IPv4 from the front and IPv6 from the back, and sorted.
 * Returns what is wrong; NULL: nothing.
 */
static const char *
routes_verify(struct ckpt *c, unsigned int part)
{
	struct ckpt_order *o = &c->order[part];
	uint32_t high = c->head->route_high[part], n = 0, bad = 0, back = high;

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
	return bad <= 1 && n + 1 >= c->head->n_routes[part] &&
			       n <= c->head->n_routes[part] + 1
		       ? NULL
		       : "damaged routes";
}

/*
 * Can that be the highest number of an array, of `most`: was its record, at `at`, ever written?
 * What was not is a hole, and reading holes would cost memory and time for each page: the
 * highest numbers, which no CRC covers, must not lead there.
 */
static bool
ckpt_high_is_good(const struct ckpt *c, uint32_t high, size_t most, const void *at)
{
	off_t offset = (off_t)((const char *)at - (const char *)c->head);

	return high == 0 || (high <= most && lseek(c->fd, offset, SEEK_DATA) == offset);
}

static bool
ckpt_highs_are_good(const struct ckpt *c)
{
	const struct ckpt_header *h = c->head;

	for (unsigned int part = 0; part < CKPT_PARTS; part++)
		if (!ckpt_high_is_good(c, h->route_high[part], ROUTES,
				       &c->route[part][h->route_high[part]]))
			return false;
	return ckpt_high_is_good(c, h->way_high, WAYS, &c->way[h->way_high]);
}

/* A predecessor that lives may have written it after the caller looked at the clock. */
static uint64_t
time_distance(uint64_t one_ms, uint64_t other_ms)
{
	return one_ms > other_ms ? one_ms - other_ms : other_ms - one_ms;
}

/* What is wrong with it; NULL: nothing. */
static const char *
ckpt_verify(struct ckpt *c, uint64_t netns, uint64_t now_ms, uint64_t max_age_ms)
{
	struct ckpt_header want = ckpt_header_for(netns);
	struct ckpt_header *h = c->head;
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
	if (h->tries >= TRIES_MAX)
		return "every start with it has crashed";
	if (!ckpt_highs_are_good(c))
		return "damaged header";
	h->tries++;
	why = ways_verify(c);
	for (unsigned int part = 0; part < CKPT_PARTS && why == NULL; part++)
		why = routes_verify(c, part);
	return why;
}

/* Another version's may be of another size: its header says what it is. */
static bool
ckpt_is_other_layout(int fd)
{
	struct ckpt_header h;

	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       memcmp(h.magic, MAGIC, sizeof(h.magic)) == 0 && h.layout != CKPT_LAYOUT;
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
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		*why = "not a checkpoint";
	else if (ckpt_is_other_layout(fd))
		*why = ckpt_other_layout;
	else if ((size_t)st.st_size != ALL_BYTES)
		*why = "not a checkpoint";
	else if (ckpt_map(c))
		*why = ckpt_verify(c, netns, now_ms, max_age_ms);
	if (*why == NULL)
		return c;
	ckpt_free(c);
	return NULL;
}

unsigned int
ckpt_tries(int fd)
{
	struct ckpt_header h;

	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
			       h.crc == ckpt_header_for(h.netns).crc
		       ? h.tries
		       : 0;
}

void
ckpt_forgive(int fd, unsigned int tries)
{
	uint32_t before = tries;

	if (ckpt_tries(fd) != before + 1)
		return;
	(void)!pwrite(fd, &before, sizeof(before), offsetof(struct ckpt_header, tries));
}
