/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch.bpf.c - the slot core as an XDP program
 *
 *   frame -> decode -> group -> ina/switch/step.h, the slot's lock held, and then
 *     XDP_TX, on veth a redirect   one answer, to where the frame came from
 *     broadcast into a devmap      all answers: ina_answer makes each rank's
 *     XDP_DROP                     nobody receives anything
 *     XDP_PASS                     not ours: the bridge, the router, the host
 *
 * Answer all: bpf_redirect_map() with BPF_F_BROADCAST clones the frame for each entry of the
 * group's devmap, which has one for each rank, and the devmap's egress program gives each copy its
 * rank and addresses. All in the kernel's own memory, with any driver that can redirect, and since
 * Linux 5.13; AF_XDP would bring every sum to user space, and a clone in tc a socket buffer for
 * each. Which copy is whose cannot be a matter of the entry: the kernel queues frames by port, and
 * runs the first entry's program on all that wait there. So there is one program, and copies of an
 * answer are handed to the ranks behind a port in turn: they come one after the other, on one CPU.
 *
 * Two CPUs may have packets of one slot: every slot has a bpf_spin_lock, held from the age check to
 * the last word of the sum in the packet. The kernel (6.1) allows one lock at a time and neither
 * helpers nor functions under it: what is needed there is inline, room for the sum is made before,
 * and the packet is turned into the answer after. A group is never changed but replaced, in a map
 * of maps, so a packet sees one incarnation of it, whole. A slot belongs to the latest incarnation
 * that has used it: a packet that still sees an earlier one, while another CPU is ahead, cannot
 * take it back, and user space has no slots to clear.
 */
#include "ina/switch/step.h"
#include "ina/switch/xdp/abi.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define IP_AT INA_ETHERNET_BYTES
#define INA_AT (IP_AT + INA_IP_BYTES)
#define ETHERTYPE_IPV4 0x0800
#define ETHERNET_MIN 60
#define FCS 4
#define INLINE static __always_inline

const volatile struct ina_xdp_settings settings = { 0 };

struct slot_value {
	struct bpf_spin_lock lock;
	__u32 reserved;
	__u64 incarnation;
	struct ina_slot slot;
};
_Static_assert(sizeof(struct slot_value) == sizeof(struct ina_xdp_slot), "one value, two views");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as the switch has */
	__type(key, __u32);
	__type(value, struct slot_value);
} slots SEC(".maps");

struct group_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ina_xdp_group));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, INA_GROUPS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct group_map);
} groups SEC(".maps");

/* By rank: the port, and the program that makes answers. */
struct port_map {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, INA_RANKS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, INA_GROUPS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct port_map);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, INA_XDP_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024); /* ports */
	__type(key, __u32);
	__type(value, struct ina_xdp_cursor);
} cursors SEC(".maps");

INLINE void increment_counter(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		(*n)++;
}

INLINE struct ina_xdp_group *group_find(__u32 id)
{
	void *map = bpf_map_lookup_elem(&groups, &id);
	__u32 zero = 0;

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

/* ---- a frame, as ina/frame/frame.c takes it ---- */

INLINE __u16 compute_checksum(const __u8 *ip)
{
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < INA_IP_BYTES; i += 2)
		sum += *(const __u16 *)(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/* A header without options that is whole, alive and no fragment. */
INLINE enum ina_fault check_ip(const __u8 *ip)
{
	if (ip[0] != 0x45 || !ip[8])
		return INA_FAULT_IP;
	if (compute_checksum(ip))
		return INA_FAULT_CHECKSUM;
	return ina_get16(ip + 6) != 0x4000 ? INA_FAULT_FRAGMENT : INA_FAULT_NONE;
}

/*
 * Everything up to the end of the IPv4 header; *bytes: of the frame without padding. f->dst is
 * right unless it is not ours or too short.
 */
INLINE enum ina_fault decode_ip(const __u8 *b, const __u8 *end, struct ina_frame *f, __u32 *bytes)
{
	const __u8 *ip = b + IP_AT;
	__u32 len = (__u32)(end - b), total, bare;
	enum ina_fault fault;

	if (b + IP_AT > end)
		return INA_FAULT_SHORT;
	if (ina_get16(b + 12) != ETHERTYPE_IPV4)
		return INA_FAULT_NOT_OURS;
	if (b + INA_AT > end)
		return INA_FAULT_SHORT;
	if (ip[9] != INA_PROTOCOL_OLD && ip[9] != INA_PROTOCOL_EXTENDED)
		return INA_FAULT_NOT_OURS;
	f->dst = ina_get32(ip + 16);
	fault = check_ip(ip);
	if (fault)
		return fault;
	f->extended = ip[9] == INA_PROTOCOL_EXTENDED;
	total = ina_get16(ip + 2);
	bare = INA_IP_BYTES + INA_HEADER_BYTES + (f->extended ? INA_EXTENSION_BYTES : 0);
	if (total > len - IP_AT || (total != bare && total != bare + INA_PAYLOAD_BYTES))
		return INA_FAULT_LENGTH;
	if (len > IP_AT + total + FCS && len > ETHERNET_MIN + FCS)
		return INA_FAULT_LENGTH;
	*bytes = IP_AT + total;
	f->worker = ip[1] >> 2;
	f->ecn = ip[1] & 3;
	f->src = ina_get32(ip + 12);
	return INA_FAULT_NONE;
}

INLINE enum ina_fault decode_extension(const __u8 *at, struct ina_frame *f)
{
	f->flags = at[1];
	f->exponent = at[2];
	f->epoch = ina_get32(at + 4);
	if (at[0] != INA_VERSION)
		return INA_FAULT_VERSION;
	if (at[3])
		return INA_FAULT_FLAGS;
	return INA_FAULT_NONE;
}

INLINE enum ina_fault decode_frame(const __u8 *b, const __u8 *end, struct ina_frame *f,
				   __u32 *bytes)
{
	enum ina_fault fault = decode_ip(b, end, f, bytes);
	const __u8 *at = b + INA_AT;

	if (fault)
		return fault;
	f->flags = f->exponent = 0;
	f->epoch = 0;
	if (f->extended) {
		if (at + INA_EXTENSION_BYTES + INA_HEADER_BYTES > end)
			return INA_FAULT_LENGTH; /* it cannot be: the verifier does not know */
		fault = decode_extension(at, f);
		if (!fault)
			fault = ina_frame_flags_fault(f->flags, f->exponent,
						      *bytes > INA_AT + INA_EXTENSION_BYTES +
								       INA_HEADER_BYTES);
		if (fault)
			return fault;
		at += INA_EXTENSION_BYTES;
	} else if (at + INA_HEADER_BYTES > end) {
		return INA_FAULT_LENGTH;
	}
	f->coll = at[0];
	f->group = at[1];
	f->rank = at[2];
	f->root = at[3];
	f->agg_addr = ina_get16(at + 4);
	f->psn = ina_get32(at + 6);
	if (f->coll < INA_ALL_REDUCE || f->coll >= INA_COLLS)
		return INA_FAULT_COLLECTIVE;
	if (!f->group || f->rank >= INA_RANKS_MAX || f->root >= INA_RANKS_MAX)
		return INA_FAULT_RANGE;
	return INA_FAULT_NONE;
}

/* ---- answers ---- */

/* What goes with the words of a sum; 0 with an answer that has none. */
struct sum {
	__u8 flags, exponent;
	bool marked;
};

/* The frame ends `bytes` after its beginning from now on. */
INLINE bool resize_frame(struct xdp_md *ctx, __u32 bytes)
{
	__s32 now = (__s32)(ctx->data_end - ctx->data);

	return now == (__s32)bytes || !bpf_xdp_adjust_tail(ctx, (__s32)bytes - now);
}

/*
 * What is rank's alone in an answer whose words, if it has any, all may read. false: it cannot be
 * sent.
 */
INLINE bool address_to(struct xdp_md *ctx, const struct ina_group_config *c, __u32 rank,
		       bool extended)
{
	const __u32 head = INA_AT + INA_HEADER_BYTES + (extended ? INA_EXTENSION_BYTES : 0);
	__u8 *b = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end,
	     *at = b + head - INA_HEADER_BYTES;
	__u32 bytes = head;

	if (b + head > end)
		return false;
	INA_OPAQUE(rank);
	rank %= INA_RANKS_MAX;
	__builtin_memcpy(b, c->member[rank].mac, 6);
	at[2] = (__u8)rank;
	if (end > b + head && ina_coll_gets(at[0], at[3], (__u8)rank)) {
		bytes += INA_PAYLOAD_BYTES;
	} else if (extended) {
		b[INA_AT + 1] &= (__u8) ~(INA_F_OVERFLOW | INA_F_NONFINITE);
		b[INA_AT + 2] = 0;
	}
	ina_put16(b + IP_AT + 2, (__u16)(bytes - IP_AT));
	ina_put16(b + IP_AT + 10, 0);
	ina_put32(b + IP_AT + 16, c->member[rank].addr);
	*(__u16 *)(b + IP_AT + 10) = compute_checksum(b + IP_AT);
	increment_counter(INA_XDP_ANSWERS);
	return resize_frame(ctx, bytes);
}

/*
 * The frame becomes the answer, but for what is each rank's own. Its length is that of the frame
 * with words, or without.
 */
INLINE bool turn_round(struct xdp_md *ctx, const struct ina_frame *f, const struct sum *sum,
		       __u8 flags, __u32 bytes, bool extended)
{
	__u8 *b = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end, *ip = b + IP_AT;

	if (b + INA_AT + (extended ? INA_EXTENSION_BYTES : 0) > end)
		return false;
#pragma unroll
	for (int i = 0; i < 6; i++)
		b[6 + i] = settings.mac_set ? settings.mac[i] : b[i];
	ip[1] = (__u8)(f->worker << 2 | (f->ecn == INA_CE || sum->marked ? INA_CE : INA_ECT1));
	ina_put16(ip + 4, 0);
	ip[8] = 64;
	ina_put32(ip + 12, settings.addr);
	if (extended) {
		b[INA_AT + 1] = flags | sum->flags;
		b[INA_AT + 2] = sum->exponent;
	}
	return resize_frame(ctx, bytes);
}

/* ---- the slot ---- */

/* The words of a whole sum, into the frame. */
INLINE void copy_sum(__u8 *to, const struct ina_slot *s)
{
#pragma unroll
	for (int i = 0; i < INA_WORDS; i++)
		*(__u32 *)(to + 4 * i) = (__u32)s->word[i];
}

/* What the slot must know of a frame and its group, and what it says of its sum. */
struct request {
	__u64 incarnation;
	__u32 at, each, first_psn, ranks, psn;
	__u32 words_at; /* in the frame: words, or room for a sum */
	__u8 coll, root, rank, flags, exponent, ecn, has_words;
	struct sum sum;
};

INLINE void open_slot(struct slot_value *v, const struct request *r)
{
	v->incarnation = r->incarnation;
	v->slot.psn = r->first_psn + ((r->psn - r->first_psn) & (r->each - 1));
	v->slot.seen = 0;
	v->slot.done = false;
}

/*
 * ina_step_enter() under the lock; an enum ina_reason. A function of its own and for both kinds of
 * frame: the verifier looks at it once, whatever ways lead there, which keeps it far from its
 * limit.
 */
__attribute__((noinline)) int slot_enter(struct xdp_md *ctx, struct request *r)
{
	__u8 *b = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end;
	enum ina_reason reason = INA_REASON_OVER;
	struct ina_frame f = { 0 };
	struct slot_value *v;
	__u32 ranks, at;

	if (!r || r->words_at > INA_AT + INA_EXTENSION_BYTES + INA_HEADER_BYTES)
		return INA_REASONS;
	b += r->words_at;
	at = r->at; /* a key must be on the stack: Linux 6.1 */
	v = bpf_map_lookup_elem(&slots, &at);
	if (!v || (b + INA_PAYLOAD_BYTES > end && !(r->flags & INA_F_PROBE)))
		return INA_REASONS;
	f.words = r->has_words && b + INA_PAYLOAD_BYTES <= end ? b : NULL;
	f.psn = r->psn;
	f.coll = r->coll;
	f.root = r->root;
	f.rank = r->rank;
	f.flags = r->flags;
	f.exponent = r->exponent;
	f.ecn = r->ecn;
	ranks = r->ranks;
	bpf_spin_lock(&v->lock);
	if (v->incarnation <= r->incarnation) {
		if (v->incarnation < r->incarnation)
			open_slot(v, r);
		reason = ina_step_enter(&v->slot, r->each, &f, ranks);
		if (reason == INA_REASON_COMPLETE || reason == INA_REASON_AGAIN) {
			if (b + INA_PAYLOAD_BYTES <= end) {
				copy_sum(b, &v->slot);
				r->sum.marked = v->slot.marked;
				r->sum.flags = v->slot.flags;
				r->sum.exponent = v->slot.exponent;
			} else {
				/* only a probe: its rank shall send words, there is room for a
				 * sum */
				reason = INA_REASON_NEED;
			}
		}
	}
	bpf_spin_unlock(&v->lock);
	return (int)reason;
}

/* A frame of a living group, to its slot. INA_REASONS: there is no room for a sum. */
INLINE enum ina_reason contribute_to_slot(struct xdp_md *ctx, const struct ina_xdp_group *g,
					  const struct ina_frame *f, bool has_words, __u32 head,
					  struct sum *sum)
{
	const struct ina_group_config *c = &g->group.config;
	struct request r = { .incarnation = g->incarnation,
			     .first_psn = c->first_psn,
			     .ranks = c->ranks,
			     .psn = f->psn,
			     .words_at = head,
			     .coll = f->coll,
			     .root = f->root,
			     .rank = f->rank,
			     .flags = f->flags,
			     .exponent = f->exponent,
			     .ecn = f->ecn,
			     .has_words = has_words };
	enum ina_reason reason;

	r.at = ina_step_slot(c, f, &r.each);
	if (r.at == INA_NO_SLOT)
		return INA_REASON_WRONG_SLOT;
	if (!has_words && !resize_frame(ctx, head + INA_PAYLOAD_BYTES) && !(f->flags & INA_F_PROBE))
		return INA_REASONS;
	reason = (enum ina_reason)slot_enter(ctx, &r);
	*sum = r.sum;
	return reason;
}

/* ---- the programs ---- */

INLINE int answer_frame(struct xdp_md *ctx, const struct ina_xdp_group *g, struct ina_frame *f,
			enum ina_reason reason, const struct sum *sum, bool extended)
{
	__u32 bytes = INA_AT + INA_HEADER_BYTES + (extended ? INA_EXTENSION_BYTES : 0),
	      id = f->group;
	enum ina_action action;
	__u8 flags;
	void *to;

	action = ina_step_action(reason, extended, &flags);
	if (action == INA_DROP)
		return XDP_DROP;
	if (reason == INA_REASON_COMPLETE || reason == INA_REASON_AGAIN)
		bytes += INA_PAYLOAD_BYTES;
	if (!turn_round(ctx, f, sum, flags, bytes, extended))
		return XDP_DROP;
	if (action == INA_ANSWER_ONE && !address_to(ctx, &g->group.config, f->rank, extended))
		return XDP_DROP;
	if (action == INA_ANSWER_ONE)
		return settings.redirect_one ? (int)bpf_redirect(ctx->ingress_ifindex, 0) : XDP_TX;
	to = bpf_map_lookup_elem(&ports, &id);
	return to ? (int)bpf_redirect_map(to, 0, BPF_F_BROADCAST) : XDP_DROP;
}

/* extended is a constant, so that every offset is. */
INLINE int step_frame(struct xdp_md *ctx, struct ina_xdp_group *g, struct ina_frame *f, __u32 bytes,
		      bool extended)
{
	const __u32 head = INA_AT + INA_HEADER_BYTES + (extended ? INA_EXTENSION_BYTES : 0);
	struct sum sum = { 0 };
	enum ina_reason reason = ina_step_incarnation(&g->group, bpf_ktime_get_ns(), f);

	if (reason == INA_REASON_TAKEN)
		reason = contribute_to_slot(ctx, g, f, bytes > head, head, &sum);
	if (reason >= INA_REASONS) {
		increment_counter(INA_XDP_NO_ROOM);
		return XDP_DROP;
	}
	increment_counter(INA_XDP_REASONS_AT + reason);
	return answer_frame(ctx, g, f, reason, &sum, extended);
}

/* g: the frame's group, or NULL. */
INLINE enum ina_reason check_sender(const struct ina_xdp_group *g, const struct ina_frame *f)
{
	if (f->dst != settings.addr)
		return INA_REASON_NOT_HERE;
	return g ? ina_step_sender(settings.addr, &g->group, f) : INA_REASON_NO_GROUP;
}

INLINE int switch_frame(struct xdp_md *ctx)
{
	struct ina_frame f = { 0 };
	struct ina_xdp_group *g;
	enum ina_reason reason;
	enum ina_fault fault;
	__u32 bytes = 0;

	fault = decode_frame((const __u8 *)(long)ctx->data, (const __u8 *)(long)ctx->data_end, &f,
			     &bytes);
	if (fault)
		increment_counter(INA_XDP_FAULTS_AT + fault);
	if (fault == INA_FAULT_NOT_OURS || fault == INA_FAULT_SHORT)
		return XDP_PASS;
	if (fault)
		return f.dst == settings.addr ? XDP_DROP : XDP_PASS;
	if (settings.lose && (bpf_get_prandom_u32() & 0xffff) < settings.lose) {
		increment_counter(INA_XDP_LOST);
		return XDP_DROP;
	}
	g = f.dst == settings.addr ? group_find(f.group) : NULL;
	reason = check_sender(g, &f);
	if (reason != INA_REASON_TAKEN || !g) {
		increment_counter(INA_XDP_REASONS_AT + reason);
		return reason == INA_REASON_NOT_HERE ? XDP_PASS : XDP_DROP;
	}
	if (!g->seen)
		g->seen = 1;
	return f.extended ? step_frame(ctx, g, &f, bytes, true)
			  : step_frame(ctx, g, &f, bytes, false);
}

/* 1 if x is 0, without a branch. */
INLINE __u32 is_zero(__u32 x)
{
	__u32 not = (x | -x) >> 31;

	INA_OPAQUE(not );
	return not ^1;
}

/* The number of the one bit that is set. */
INLINE __u32 bit_number(__u32 bit)
{
	return (is_zero(bit & 0xaaaaaaaa) | is_zero(bit & 0xcccccccc) << 1 |
		is_zero(bit & 0xf0f0f0f0) << 2 | is_zero(bit & 0xff00ff00) << 3 |
		is_zero(bit & 0xffff0000) << 4) ^
	       31;
}

/* The next rank behind this port that a copy of the answer is for. INA_RANKS_MAX: none is. */
INLINE __u32 next_rank(const struct ina_xdp_group *g, const struct ina_xdp_cursor *of, __u32 port)
{
	struct ina_xdp_cursor *c = bpf_map_lookup_elem(&cursors, &port);
	__u32 behind = 0, rest, rank;

	if (!c) {
		bpf_map_update_elem(&cursors, &port, of, BPF_ANY);
		c = bpf_map_lookup_elem(&cursors, &port);
		if (!c)
			return INA_RANKS_MAX;
	}
	for (__u32 r = 0; r < INA_RANKS_MAX; r++)
		behind |= is_zero(g->port[r] ^ port) << r;
	behind &= UINT32_MAX >> (32 - g->group.config.ranks);
	if (!behind)
		return INA_RANKS_MAX;
	rest = behind;
	if (c->psn == of->psn && c->epoch == of->epoch && c->agg_addr == of->agg_addr &&
	    c->group == of->group && c->next < INA_RANKS_MAX)
		rest &= ~0u << c->next;
	if (!rest)
		rest = behind;
	rank = bit_number(rest & -rest);
	*c = *of;
	c->next = (__u8)(rank + 1);
	return rank;
}

INLINE int answer_one(struct xdp_md *ctx, bool extended)
{
	const __u32 at = INA_AT + (extended ? INA_EXTENSION_BYTES : 0);
	const __u8 *b = (const __u8 *)(long)ctx->data, *end = (const __u8 *)(long)ctx->data_end;
	struct ina_xdp_cursor of = { 0 };
	struct ina_xdp_group *g;
	__u32 rank = INA_RANKS_MAX;

	if (b + at + INA_HEADER_BYTES > end)
		return XDP_DROP;
	of.group = b[at + 1];
	of.agg_addr = ina_get16(b + at + 4);
	of.psn = ina_get32(b + at + 6);
	of.epoch = extended ? ina_get32(b + INA_AT + 4) : 0;
	g = group_find(of.group);
	if (g && (!extended || of.epoch == g->group.config.epoch))
		rank = next_rank(g, &of, settings.testable ? 0 : ctx->egress_ifindex);
	if (!g || rank >= INA_RANKS_MAX) {
		increment_counter(INA_XDP_GONE);
		return XDP_DROP;
	}
	return address_to(ctx, &g->group.config, rank, extended) ? XDP_PASS : XDP_DROP;
}

/* Of an answer to all, the copy for one rank. */
SEC("xdp/devmap")
int ina_answer(struct xdp_md *ctx)
{
	const __u8 *b = (const __u8 *)(long)ctx->data, *end = (const __u8 *)(long)ctx->data_end;

	if (b + INA_AT > end)
		return XDP_DROP;
	return b[IP_AT + 9] == INA_PROTOCOL_EXTENDED ? answer_one(ctx, true)
						     : answer_one(ctx, false);
}

SEC("xdp")
int ina_switch(struct xdp_md *ctx)
{
	return switch_frame(ctx);
}

/* ---- for bench-xdp: not loaded otherwise ---- */

static __u32 turn;

/*
 * The frame becomes the next one of group 1, an extended all-reduce with words: rank after rank,
 * psn after psn.
 */
INLINE bool next_frame(struct xdp_md *ctx)
{
	__u8 *b = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end;
	__u32 ranks = settings.bench_ranks, n = turn++, rank, psn;

	if (b + INA_FRAME_MAX > end || !ranks)
		return false;
	rank = n % ranks;
	psn = n / ranks;
	b[IP_AT + 1] = INA_ECT1;
	ina_put32(b + IP_AT + 12, settings.addr - 254 + 1 + rank);
	ina_put32(b + IP_AT + 16, settings.addr);
	ina_put16(b + IP_AT + 10, 0);
	*(__u16 *)(b + IP_AT + 10) = compute_checksum(b + IP_AT);
	b[INA_AT + 1] = b[INA_AT + 2] = 0;
	b[44] = (__u8)rank;
	ina_put16(b + 46, (__u16)(psn % 64));
	ina_put32(b + 48, psn);
	return true;
}

SEC("xdp")
int bench_drop(struct xdp_md *ctx)
{
	struct ina_frame f = { 0 };
	__u32 bytes = 0;

	if (!next_frame(ctx))
		return XDP_ABORTED;
	return decode_frame((const __u8 *)(long)ctx->data, (const __u8 *)(long)ctx->data_end, &f,
			    &bytes)
		       ? XDP_PASS
		       : XDP_DROP;
}

SEC("xdp")
int bench_switch(struct xdp_md *ctx)
{
	return next_frame(ctx) ? switch_frame(ctx) : XDP_ABORTED;
}

char LICENSE[] SEC("license") = "BSD-3-Clause";
