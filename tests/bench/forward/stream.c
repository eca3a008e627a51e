/* SPDX-License-Identifier: BSD-3-Clause */
/* Read the files of frames, and make headers and checksums, before any frame is sent. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_udp.h>

/* Read a whole file into huge pages; *n elements of `each`. NULL: no file, or an error. */
static void *
frames_read(const char *path, size_t each, uint32_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *mem = NULL;
	ssize_t got = 0;

	*n = 0;
	if (fd >= 0 && fstat(fd, &st) == 0)
		mem = rte_malloc(NULL, (size_t)st.st_size, 0);
	for (off_t at = 0; mem != NULL && at < st.st_size; at += got) {
		got = read(fd, mem + at, (size_t)(st.st_size - at));
		if (got <= 0) {
			rte_free(mem);
			mem = NULL;
		}
	}
	if (mem != NULL)
		*n = (uint32_t)((size_t)st.st_size / each);
	if (fd >= 0)
		close(fd);
	return *n == 0 ? NULL : mem;
}

int
stream_open(struct stream *s, const char *frames4, const char *frames6)
{
	if (frames4[0] != '\0') {
		s->f4 = frames_read(frames4, sizeof(*s->f4), &s->n4);
		if (s->f4 == NULL)
			return -EINVAL;
	}
	if (frames6[0] != '\0') {
		s->f6 = frames_read(frames6, sizeof(*s->f6), &s->n6);
		if (s->f6 == NULL)
			return -EINVAL;
	}
	return 0;
}

static void
heads_make(struct stream *s, uint32_t len)
{
	static const uint8_t head[64] = {
		2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2,
	};
	struct rte_ipv4_hdr *ip4 = (void *)(s->head4 + STREAM_L2);
	struct rte_ipv6_hdr *ip6 = (void *)(s->head6 + STREAM_L2);
	struct rte_udp_hdr *udp4 = (void *)(ip4 + 1), *udp6 = (void *)(ip6 + 1);
	uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

	s->len4 = (uint16_t)(len - RTE_ETHER_CRC_LEN);
	s->len6 = RTE_MAX(s->len4, (uint16_t)(STREAM_L2 + sizeof(*ip6) + sizeof(*udp6)));
	memcpy(s->head4, head, sizeof(head));
	memcpy(s->head4, &s->mac, sizeof(s->mac));
	memcpy(s->head6, s->head4, sizeof(head));
	s->head4[12] = 0x08;
	s->head6[12] = 0x86;
	s->head6[13] = 0xdd;
	ip4->version_ihl = 0x45;
	ip4->total_length = rte_cpu_to_be_16((uint16_t)(s->len4 - STREAM_L2));
	ip4->time_to_live = 64;
	ip4->next_proto_id = 17;
	ip4->src_addr = rte_cpu_to_be_32(RTE_IPV4(192, 0, 2, 2));
	udp4->dst_port = rte_cpu_to_be_16(9);
	udp4->dgram_len = rte_cpu_to_be_16((uint16_t)(s->len4 - STREAM_L2 - sizeof(*ip4)));
	ip6->vtc_flow = rte_cpu_to_be_32(6u << 28);
	ip6->payload_len = rte_cpu_to_be_16((uint16_t)(s->len6 - STREAM_L2 - sizeof(*ip6)));
	ip6->proto = 17;
	ip6->hop_limits = 64;
	memcpy(&ip6->src_addr, src6, sizeof(src6));
	udp6->dst_port = udp4->dst_port;
	udp6->dgram_len = ip6->payload_len;
}

void
stream_len(struct stream *s, uint32_t len)
{
	struct rte_ipv4_hdr ip;

	heads_make(s, len);
	s->len = len;
	memcpy(&ip, s->head4 + STREAM_L2, sizeof(ip));
	for (uint32_t i = 0; i < s->n4; i++) {
		ip.hdr_checksum = 0;
		memcpy(&ip.dst_addr, s->f4[i].dst, 4);
		s->f4[i].checksum = rte_ipv4_cksum(&ip);
	}
}
