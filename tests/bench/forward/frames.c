/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_frames: write the input of a forwarding benchmark's ports and routers as files in a
 * directory: routes ("PREFIX PORT" in each line), the same for l3fwd ("RPREFIX PORT"), and
 * frames. A frame has a random destination inside a prefix, and the port by which it must
 * leave.
 *
 * The files "frames" are for the given table, "few" for four routes, "one" for a default
 * route. "set" has a destination in every /24 that has a route.
 *
 *   bench_frames DIR N_PORTS N_FRAMES4 N_FRAMES6 ROUTES4 ROUTES6 [TABLE ...]
 *
 * Without tables, ROUTES4 and ROUTES6 routes are generated. The port of a route is a hash
 * of its prefix. The answer for a destination is found by a walk over the sorted prefixes
 * and their covers. This walk shares no code with the structures that are measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"
#include "frame.h"

#define NONE        SIZE_MAX
#define REFUSED_MAX 100000u /* destinations in a row that no router forwards */

static bool
covers(const struct prefix *p, const uint8_t *addr)
{
	struct prefix host = {.len = p->len};

	memcpy(host.addr, addr, 16);
	prefix_mask(&host);
	return memcmp(host.addr, p->addr, 16) == 0;
}

/*
 * Find for each prefix the longest other prefix that covers it: the prefix before it, or a
 * cover of that prefix.
 */
static size_t *
covers_find(const struct table *t)
{
	size_t *cover = malloc((t->n + 1) * sizeof(*cover));

	for (size_t i = 0; i < t->n; i++) {
		size_t c = i == 0 ? NONE : i - 1;

		while (c != NONE && !covers(&t->p[c], t->p[i].addr))
			c = cover[c];
		cover[i] = c;
	}
	return cover;
}

/* Return the port of an address, 0 if no route covers it. */
static uint32_t
answer(const struct table *t, const size_t *cover, const uint8_t *addr)
{
	size_t lo = 0, hi = t->n, at;

	while (lo < hi) { /* find the first prefix that begins behind the address */
		size_t mid = lo + (hi - lo) / 2;

		if (memcmp(t->p[mid].addr, addr, 16) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	at = lo == 0 ? NONE : lo - 1;
	while (at != NONE && !covers(&t->p[at], addr))
		at = cover[at];
	return at == NONE ? 0 : t->p[at].value;
}

/*
 * Return true if a router does not forward to the address, or if a subnet of the benchmark
 * covers it.
 */
static bool
unfit(int family, const uint8_t *a)
{
	if (family == 6)
		return (a[0] & 0xe0) != 0x20 ||
		       memcmp(a, (const uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4) == 0;
	return a[0] == 0 || a[0] == 127 || a[0] >= 224 || (a[0] == 169 && a[1] == 254) ||
	       (a[0] == 192 && a[1] == 0 && a[2] == 2);
}

static FILE *
create(const char *dir, const char *what, int family)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s%d", dir, what, family);
	f = fopen(path, "w");
	if (f == NULL) {
		fprintf(stderr, "bench-frames: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return f;
}

static void
done(FILE *f)
{
	if (fclose(f) != 0) {
		fprintf(stderr, "bench-frames: cannot write: %s\n", strerror(errno));
		exit(1);
	}
}

/* Print a rule for l3fwd, which reads IPv6 addresses only with all eight groups. */
static void
rule_print(FILE *f, int family, const struct prefix *p)
{
	fputc('R', f);
	if (family == 4)
		fprintf(f, "%u.%u.%u.%u", p->addr[0], p->addr[1], p->addr[2], p->addr[3]);
	for (int i = 0; family == 6 && i < 16; i += 2)
		fprintf(f, "%s%02x%02x", i == 0 ? "" : ":", p->addr[i], p->addr[i + 1]);
	fprintf(f, "/%u %u\n", p->len, p->value);
}

static void
routes_write(const struct table *t, const char *dir)
{
	FILE *routes = create(dir, "routes", t->family);
	FILE *rules = create(dir, "l3fwd", t->family);
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < t->n; i++) {
		inet_ntop(t->family == 4 ? AF_INET : AF_INET6, t->p[i].addr, text,
			  sizeof(text));
		fprintf(routes, "%s/%u %u\n", text, t->p[i].len, t->p[i].value);
		rule_print(rules, t->family, &t->p[i]);
	}
	done(routes);
	done(rules);
}

static void
frames_write(const struct table *routes, const struct table *over, const char *dir,
	     const char *what, size_t n)
{
	FILE *f = create(dir, what, routes->family);
	size_t *cover = covers_find(routes);
	struct rnd r = {.at = 6};
	size_t refused = 0;

	while (n > 0) {
		uint8_t addr[16];
		uint32_t port;

		table_inside(over, &r, addr);
		if (routes->family == 4)
			memset(addr + 4, 0, 12);
		port = answer(routes, cover, addr);
		if (port == 0 || unfit(routes->family, addr)) {
			if (++refused < REFUSED_MAX)
				continue;
			fprintf(stderr,
				"bench-frames: almost no destination of the IPv%d table "
				"can be "
				"forwarded\n",
				routes->family);
			exit(1);
		}
		refused = 0;
		if (routes->family == 4) {
			struct frame4 one = {.port = (uint16_t)port};

			memcpy(one.dst, addr, 4);
			fwrite(&one, sizeof(one), 1, f);
		} else {
			struct frame6 one = {.port = (uint16_t)port};

			memcpy(one.dst, addr, 16);
			fwrite(&one, sizeof(one), 1, f);
		}
		n--;
	}
	free(cover);
	done(f);
}

/*
 * Write one frame for each /24 that has a route, in a random order. The first 2^n frames
 * are a working set of that size.
 */
static void
set_write(const struct table *t, const char *dir)
{
	FILE *f = create(dir, "set", 4);
	size_t *cover = covers_find(t);
	struct rnd r = {.at = 7};

	for (uint32_t i = 0; i < 1u << 24; i++) {
		uint32_t x = i ^ i >> 12;
		struct frame4 one = {0};
		uint8_t addr[16] = {0};

		/* x becomes a permutation of the 24-bit numbers. */
		x = (x * 0xd6e8feb9u) & 0xffffff;
		x = ((x ^ x >> 12) * 0x9e3779b1u) & 0xffffff;
		x ^= x >> 12;
		for (int k = 0; k < 3; k++)
			addr[k] = (uint8_t)(x >> (16 - 8 * k));
		addr[3] = (uint8_t)rnd_below(&r, 256);
		one.port = (uint16_t)answer(t, cover, addr);
		if (one.port == 0 || unfit(4, addr))
			continue;
		memcpy(one.dst, addr, 4);
		fwrite(&one, sizeof(one), 1, f);
	}
	free(cover);
	done(f);
}

static void
default_route(struct table *t)
{
	struct prefix p = {.value = 1};

	*t = (struct table){.family = 4};
	table_push(t, &p);
}

/*
 * Make the four routes that every program can hold: one for each quarter of the addresses.
 */
static void
quarters(struct table *t, int family, uint32_t n_ports)
{
	*t = (struct table){.family = family};
	for (uint32_t i = 0; i < 4; i++) {
		struct prefix p = {.len = family == 4 ? 2 : 5, .value = 1 + i % n_ports};

		p.addr[0] = family == 4 ? (uint8_t)(i << 6) : (uint8_t)(0x20 | i << 3);
		table_push(t, &p);
	}
	table_finish(t);
}

int
main(int argc, char **argv)
{
	struct table t[2] = {{.family = 4}, {.family = 6}}, few;
	const char *dir = argv[1];
	uint32_t n_ports;

	if (argc < 7) {
		fprintf(stderr, "usage: bench_frames DIR N_PORTS N_FRAMES4 N_FRAMES6 "
				"ROUTES4 ROUTES6 [TABLE ...]\n");
		return 2;
	}
	n_ports = (uint32_t)atoi(argv[2]);
	for (int i = 7; i < argc; i++) {
		struct table got[2] = {0};

		if (table_load(argv[i], &got[0], &got[1]) < 0) {
			fprintf(stderr, "bench-frames: %s cannot be read\n", argv[i]);
			return 1;
		}
		for (int k = 0; k < 2; k++)
			if (got[k].n > 0)
				t[k] = got[k];
	}
	for (int k = 0; k < 2; k++) {
		if (t[k].n == 0)
			table_generate(&t[k], k == 0 ? 4 : 6, (size_t)atol(argv[5 + k]), 1);
		table_values(&t[k], n_ports, false);
		routes_write(&t[k], dir);
		frames_write(&t[k], &t[k], dir, "frames", (size_t)atol(argv[3 + k]));
		quarters(&few, t[k].family, n_ports);
		frames_write(&few, &t[k], dir, "few", (size_t)atol(argv[3 + k]));
		if (t[k].family == 4) {
			default_route(&few);
			frames_write(&few, &t[k], dir, "one", (size_t)atol(argv[3 + k]));
			set_write(&t[k], dir);
		}
		printf("%s %zu\n", t[k].name, t[k].n);
	}
	return 0;
}
