/* A flow meter at XDP as one writes it by hand: packets, bytes, first and last time by addresses,
 * ports and protocol, in a hash table of each processor. Built by `weir-bench offload-program`:
 * clang -O2 -target bpf. What it reads of a frame is what Weir's program reads. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct vlan {
	__be16 control, type;
};

struct key {
	__u8 source[16], destination[16];
	__be16 sport, dport;
	__u8 proto, has_ports, pad[2];
};

struct value {
	__u64 packets, bytes, first, last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct key);
	__type(value, struct value);
} flows SEC(".maps");

static __always_inline int is_tag(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD) ||
	       type == bpf_htons(0x9100);
}

static __always_inline void mapped(__u8 *to, __be32 address)
{
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

SEC("xdp")
int flow_meter(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct key key = {};
	struct ethhdr *eth = data;
	void *at = eth + 1;
	int later = 0;

	if (at > end)
		return XDP_PASS;
	__be16 type = eth->h_proto;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct vlan *tag = at;
		if (!is_tag(type))
			break;
		if ((void *)(tag + 1) > end)
			return XDP_PASS;
		type = tag->type;
		at = tag + 1;
	}
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = at;
		if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
			return XDP_PASS;
		if (at + bpf_ntohs(ip->tot_len) > end)
			return XDP_PASS;
		mapped(key.source, ip->saddr);
		mapped(key.destination, ip->daddr);
		key.proto = ip->protocol;
		later = ip->frag_off & bpf_htons(0x1fff);
		at += ip->ihl * 4;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = at;
		if ((void *)(ip + 1) > end || ip->version != 6)
			return XDP_PASS;
		if (at + 40 + bpf_ntohs(ip->payload_len) > end)
			return XDP_PASS;
		__builtin_memcpy(key.source, &ip->saddr, 16);
		__builtin_memcpy(key.destination, &ip->daddr, 16);
		key.proto = ip->nexthdr;
		at = ip + 1;
	} else {
		return XDP_PASS;
	}
	if (key.proto == IPPROTO_TCP && !later) {
		struct tcphdr *tcp = at;
		if ((void *)(tcp + 1) > end)
			return XDP_PASS;
		key.sport = tcp->source;
		key.dport = tcp->dest;
		key.has_ports = 1;
	} else if (key.proto == IPPROTO_UDP && !later) {
		struct udphdr *udp = at;
		if ((void *)(udp + 1) > end)
			return XDP_PASS;
		key.sport = udp->source;
		key.dport = udp->dest;
		key.has_ports = 1;
	}
	__u64 now = bpf_ktime_get_ns(), bytes = end - data;
	struct value *value = bpf_map_lookup_elem(&flows, &key);
	if (value) {
		value->packets++;
		value->bytes += bytes;
		value->last = now;
		return XDP_DROP;
	}
	struct value first = { 1, bytes, now, now };
	if (bpf_map_update_elem(&flows, &key, &first, BPF_NOEXIST))
		return XDP_PASS;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
