/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of the forwarding benchmark: forward IPv4 in XDP with the kernel's routing table,
 * as the kernel's documentation of bpf_fib_lookup() does it. forward() is for the port that
 * receives, sink() for the far end of the port that sends. Compiled with clang -target bpf.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2

SEC("xdp")
int
forward(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct bpf_fib_lookup look = {.family = AF_INET, .ifindex = ctx->ingress_ifindex};
	__u32 sum;

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ttl <= 1)
		return XDP_PASS;
	look.tos = ip->tos;
	look.l4_protocol = ip->protocol;
	look.tot_len = bpf_ntohs(ip->tot_len);
	look.ipv4_src = ip->saddr;
	look.ipv4_dst = ip->daddr;
	if (bpf_fib_lookup(ctx, &look, sizeof(look), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	sum = (__u32)ip->check + bpf_htons(0x0100); /* RFC 1624 */
	ip->check = (__u16)(sum + (sum >= 0xffff));
	ip->ttl--;
	__builtin_memcpy(eth->h_dest, look.dmac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, look.smac, ETH_ALEN);
	return bpf_redirect(look.ifindex, 0);
}

SEC("xdp")
int
sink(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
