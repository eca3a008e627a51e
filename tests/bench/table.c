/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read routing tables and update streams from files: text (a prefix and perhaps its origin
 * AS in each line), or MRT through Debian's bgpdump. Other programs unpack .xz, .gz and
 * .bz2. No shell is used, because the user chooses the file names.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

/* The output of a program. Its input is `in` of pipe_open(), or a file that argv names. */
struct pipe {
	FILE *f;
	pid_t pid;
};

static int
pipe_open(struct pipe *p, const char *const argv[], int in)
{
	int fd[2];

	if (pipe(fd) < 0)
		return -errno;
	p->pid = fork();
	if (p->pid == 0) {
		if (in >= 0)
			dup2(in, 0);
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		execvp(argv[0], (char *const *)argv);
		fprintf(stderr, "bench-fib: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(fd[1]);
	if (p->pid < 0 || !(p->f = fdopen(fd[0], "r"))) {
		close(fd[0]);
		return -EIO;
	}
	return 0;
}

/* Returns 0 if the program ended well. */
static int
pipe_close(struct pipe *p)
{
	int status;

	fclose(p->f);
	if (waitpid(p->pid, &status, 0) < 0 || status != 0)
		return -EIO;
	return 0;
}

static bool
ends_with(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);

	return a >= b && strcmp(s + a - b, end) == 0;
}

static const char *
unpacker(const char *path)
{
	if (ends_with(path, ".xz"))
		return "xz";
	if (ends_with(path, ".gz"))
		return "gzip";
	return ends_with(path, ".bz2") ? "bzip2" : "cat";
}

static int
open_unpacked(struct pipe *p, const char *path)
{
	const char *prog = unpacker(path);
	const char *const plain[] = {"cat", "--", path, NULL};
	const char *const packed[] = {prog, "-dc", "--", path, NULL};

	if (access(path, R_OK) < 0)
		return -errno;
	return pipe_open(p, strcmp(prog, "cat") == 0 ? plain : packed, -1);
}

/*
 * Return 1 for MRT, 0 for text, or -errno. A text table begins with an address. MRT has
 * zero octets within its first twelve.
 */
static int
is_mrt(const char *path)
{
	struct pipe p;
	char head[12];
	size_t n;
	int rc = open_unpacked(&p, path);

	if (rc < 0)
		return rc;
	n = fread(head, 1, sizeof(head), p.f);
	fclose(p.f);
	waitpid(p.pid, NULL, 0);
	return memchr(head, 0, n) != NULL;
}

void
prefix_mask(struct prefix *p)
{
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int at = i * 8;

		if (at >= p->len)
			p->addr[i] = 0;
		else if (p->len - at < 8)
			p->addr[i] &= (uint8_t)(0xff00 >> (p->len - at));
	}
}

bool
prefix_parse(const char *text, struct prefix *p, int *family)
{
	const char *slash = strchr(text, '/');
	char host[64];
	unsigned long len;
	char *end;

	*family = strchr(text, ':') ? 6 : 4;
	if (!slash || (size_t)(slash - text) >= sizeof(host))
		return false;
	memcpy(host, text, (size_t)(slash - text));
	host[slash - text] = 0;
	memset(p, 0, sizeof(*p));
	len = strtoul(slash + 1, &end, 10);
	if (end == slash + 1 || *end || len > (*family == 6 ? 128 : 32))
		return false;
	if (inet_pton(*family == 6 ? AF_INET6 : AF_INET, host, p->addr) != 1)
		return false;
	p->len = (uint8_t)len;
	prefix_mask(p);
	return true;
}

int
table_push(struct table *t, const struct prefix *p)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 1 << 16;
		struct prefix *more = realloc(t->p, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->p = more;
		t->cap = cap;
	}
	t->p[t->n++] = *p;
	t->has_asn |= p->asn != 0;
	return 0;
}

void
table_free(struct table *t)
{
	free(t->p);
	memset(t, 0, sizeof(*t));
}

static int
prefix_order(const void *a, const void *b)
{
	const struct prefix *x = a, *y = b;
	int d = memcmp(x->addr, y->addr, sizeof(x->addr));

	return d ? d : (int)x->len - (int)y->len;
}

void
table_finish(struct table *t)
{
	size_t n = 0;

	qsort(t->p, t->n, sizeof(*t->p), prefix_order);
	for (size_t i = 0; i < t->n; i++)
		if (n == 0 || prefix_order(&t->p[n - 1], &t->p[i]) != 0)
			t->p[n++] = t->p[i];
	t->n = n;
}

/* Parse a line of bgpdump -m: "TABLE_DUMP2|time|B|peer|peer AS|prefix|AS path|...". */
static bool
mrt_line(char *line, char **prefix, char **asn)
{
	char *field[8], *s = line;

	for (int i = 0; i < 8; i++)
		if (!(field[i] = strsep(&s, "|")))
			return false;
	*prefix = field[5];
	*asn = strrchr(field[6], ' ');
	*asn = *asn ? *asn + 1 : field[6];
	return true;
}

static bool
text_line(char *line, char **prefix, char **asn)
{
	char *save;

	*prefix = strtok_r(line, " \t\r\n", &save);
	*asn = strtok_r(NULL, " \t\r\n", &save);
	return *prefix && (*prefix)[0] != '#';
}

static void
name_of(const char *path, char *name, size_t size)
{
	const char *base = strrchr(path, '/');
	size_t n = 0;

	for (base = base ? base + 1 : path; *base && n + 1 < size; base++)
		name[n++] =
			isalnum((unsigned char)*base) || strchr("-_.", *base) ? *base : '_';
	name[n] = 0;
	for (const char *const *end =
		     (const char *const[]){".xz", ".gz", ".bz2", ".txt", NULL};
	     *end; end++)
		if (ends_with(name, *end))
			name[strlen(name) - strlen(*end)] = 0;
}

/* Read both families from `path`. Returns 0 or -errno. */
int
table_load(const char *path, struct table *t4, struct table *t6)
{
	const char *const dump[] = {"bgpdump", "-m", "-", NULL};
	struct pipe file, mrt_out;
	int mrt = is_mrt(path), rc, family;
	char *line = NULL, *text, *asn;
	size_t cap = 0, bad = 0;
	struct prefix p;

	if (mrt < 0 || (rc = open_unpacked(&file, path)) < 0)
		return mrt < 0 ? mrt : rc;
	if (mrt && pipe_open(&mrt_out, dump, fileno(file.f)) < 0)
		return -EIO;
	memset(t4, 0, sizeof(*t4));
	memset(t6, 0, sizeof(*t6));
	rc = 0;
	while (rc == 0 && getline(&line, &cap, mrt ? mrt_out.f : file.f) > 0) {
		if (!(mrt ? mrt_line : text_line)(line, &text, &asn))
			continue;
		if (!prefix_parse(text, &p, &family)) {
			bad++;
			continue;
		}
		p.asn = asn ? (uint32_t)strtoul(asn, NULL, 10) : 0;
		rc = table_push(family == 4 ? t4 : t6, &p);
	}
	free(line);
	if (mrt && pipe_close(&mrt_out) < 0)
		rc = -EIO;
	if (pipe_close(&file) < 0 && rc == 0)
		rc = -EIO;
	if (bad)
		fprintf(stderr, "bench-fib: %s: %zu lines are no prefixes\n", path, bad);
	name_of(path, t4->name, sizeof(t4->name));
	name_of(path, t6->name, sizeof(t6->name));
	t4->family = 4;
	t6->family = 6;
	table_finish(t4);
	table_finish(t6);
	return rc;
}

/*
 * Read lines "a PREFIX NEXTHOP" and "w PREFIX". Returns the changes of one family, or NULL.
 */
struct change *
changes_load(const char *path, int family, size_t *n)
{
	struct change *c = NULL, *more;
	char *line = NULL, what, text[64];
	size_t cap = 0, room = 0;
	struct pipe file;
	unsigned int hop;
	int got, of;

	*n = 0;
	if (open_unpacked(&file, path) < 0)
		return NULL;
	while (getline(&line, &cap, file.f) > 0) {
		hop = 0;
		got = sscanf(line, "%c %63s %u", &what, text, &hop);
		if (*n == room) {
			room = room ? room * 2 : 4096;
			if (!(more = realloc(c, room * sizeof(*c))))
				break;
			c = more;
		}
		if (got < 2 || !prefix_parse(text, &c[*n].p, &of) || of != family)
			continue;
		c[*n].p.value = hop;
		c[(*n)++].withdraw = tolower((unsigned char)what) == 'w';
	}
	free(line);
	pipe_close(&file);
	return c;
}

/* Assign next hops 1..n by a hash of the prefix, or of its origin AS. */
void
table_values(struct table *t, uint32_t n, bool by_asn)
{
	for (size_t i = 0; i < t->n; i++) {
		struct prefix *p = &t->p[i];
		uint64_t h = mix64(be64(p->addr) ^ mix64(be64(p->addr + 8) + p->len));

		if (by_asn)
			h = mix64(p->asn);
		p->value = 1 + (uint32_t)((h >> 32) * n >> 32);
	}
}

/* Return the number of blocks of `bits` leading bits that have a longer prefix. */
size_t
table_groups(const struct table *t, unsigned int bits)
{
	struct prefix last = {.len = 255};
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct prefix p = t->p[i];

		if (p.len <= bits)
			continue;
		p.len = (uint8_t)bits;
		prefix_mask(&p);
		if (last.len == 255 || memcmp(p.addr, last.addr, sizeof(p.addr)) != 0)
			n++;
		last = p;
	}
	return n;
}
