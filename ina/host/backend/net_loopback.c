/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NETCCL_PACKET_LOOPBACK: frames are encoded, decoded, added up and answered in the worker's own
 * thread.
 */
#include "ina/host/backend/net.h"
#include "ina/switch/enter.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS 4096u /* answers that wait, of each worker; more are lost */

struct queue {
	_Alignas(128) uint32_t head, tail, given;
	uint16_t len[PACKETS];
	uint8_t (*packet)[INA_FRAME_MAX];
};

struct loopback {
	struct ha_net net;
	struct queue *queue;
	_Atomic uint64_t lost;
	_Atomic uint8_t ranks[256]; /* of each group, 0: none */
};

static struct loopback *to_loopback(struct ha_net *net)
{
	return (struct loopback *)net;
}

static unsigned receive(struct ha_net *net, unsigned worker, struct ha_net_packet *packet,
			unsigned n)
{
	struct queue *q = &to_loopback(net)->queue[worker];
	unsigned i;

	q->head += q->given;
	for (i = 0; i < n && q->head + i != q->tail; i++) {
		uint32_t at = (q->head + i) % PACKETS;

		packet[i] = (struct ha_net_packet) { q->packet[at], q->len[at] };
	}
	q->given = i;
	return i;
}

/*
 * The block of this rank as often as there are ranks; where another one is the root, what that
 * would bring is zeros.
 */
static void add_up(const struct ina_frame *f, unsigned ranks, struct ina_slot *slot)
{
	static const uint8_t nothing[INA_PAYLOAD_BYTES];
	struct ina_frame each = *f;

	slot->psn = f->psn; /* and open: the first block sets all else */
	slot->seen = 0;
	for (unsigned i = 0; i < ranks; i++) {
		each.rank = (uint8_t)i;
		each.words = NULL;
		if (ina_coll_brings(f->coll, f->root, each.rank))
			each.words = f->words ? f->words : nothing;
		(void)ina_enter(slot, 1, &each, ranks);
	}
}

/* slot: has the words while the answer is there. */
static void put_sum(const struct ina_frame *f, unsigned ranks, struct ina_slot *slot,
		    struct ina_frame *answer)
{
	add_up(f, ranks, slot);
	answer->words =
		ina_coll_gets(f->coll, f->root, f->rank) ? (const uint8_t *)slot->word : NULL;
	answer->flags = f->extended ? slot->flags | INA_F_ANSWER : 0;
	answer->exponent = f->extended && answer->words ? slot->exponent : 0;
}

static void send(struct ha_net *net, unsigned worker, const struct ina_frame *f)
{
	struct loopback *l = to_loopback(net);
	struct queue *q = &l->queue[worker];
	unsigned ranks = atomic_load_explicit(&l->ranks[f->group], memory_order_relaxed);
	struct ina_frame answer = *f;
	struct ina_slot slot;

	if ((f->flags & INA_F_BARE && !(f->flags & INA_F_ABORT)) || !ranks)
		return;
	if (q->tail - q->head == PACKETS) {
		atomic_fetch_add_explicit(&l->lost, 1, memory_order_relaxed);
		return;
	}
	answer.dst = f->src;
	answer.src = f->dst;
	memcpy(answer.dst_mac, f->src_mac, 6);
	memcpy(answer.src_mac, f->dst_mac, 6);
	if (f->flags & INA_F_ABORT)
		answer.flags = INA_F_ABORT | INA_F_ANSWER;
	else
		put_sum(f, ranks, &slot, &answer);
	q->len[q->tail % PACKETS] =
		(uint16_t)ina_frame_encode(&answer, q->packet[q->tail % PACKETS]);
	q->tail++;
}

static void flush(struct ha_net *net, unsigned worker)
{
}

static int fd(struct ha_net *net, unsigned worker)
{
	return -1;
}

static int neighbour(struct ha_net *net, uint32_t addr, uint8_t mac[6], char *why, size_t size)
{
	memcpy(mac, net->mac, 6);
	return 0;
}

static uint64_t lost(struct ha_net *net)
{
	return atomic_load_explicit(&to_loopback(net)->lost, memory_order_relaxed);
}

static void close_it(struct ha_net *net)
{
	struct loopback *l = to_loopback(net);

	for (unsigned i = 0; l->queue && i < net->workers; i++)
		free(l->queue[i].packet);
	free(l->queue);
	free(l);
}

static const struct ha_net_ops ops = {
	.name = "loopback",
	.receive = receive,
	.send = send,
	.flush = flush,
	.fd = fd,
	.neighbour = neighbour,
	.lost = lost,
	.close = close_it,
};

void ha_net_loopback_group(struct ha_net *net, uint8_t group, unsigned ranks)
{
	atomic_store_explicit(&to_loopback(net)->ranks[group], (uint8_t)ranks,
			      memory_order_relaxed);
}

struct ha_net *ha_net_loopback_open(unsigned workers, uint32_t addr, char *why, size_t size)
{
	struct loopback *l = calloc(1, sizeof(*l));

	if (!l)
		goto failed;
	l->net = (struct ha_net) { .ops = &ops,
				   .workers = workers,
				   .addr = addr,
				   .mac = { 2 },
				   .node = -1,
				   .loopback = true,
				   .device = "loopback" };
	l->queue = aligned_alloc(128, workers * sizeof(*l->queue));
	if (!l->queue)
		goto failed;
	memset(l->queue, 0, workers * sizeof(*l->queue));
	for (unsigned i = 0; i < workers; i++) {
		l->queue[i].packet = malloc(PACKETS * sizeof(*l->queue[i].packet));
		if (!l->queue[i].packet)
			goto failed;
	}
	return &l->net;
failed:
	if (l)
		close_it(&l->net);
	snprintf(why, size, "no memory");
	return NULL;
}
