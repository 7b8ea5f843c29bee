/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/gpu/pair.h"

#include "base/check.h"
#include "gpu/soft/lock.h"
#include "gpu/soft/posted.h"

#include <errno.h>

void pair_defaults(struct pair_config *c)
{
	memset(c, 0, sizeof(*c));
	c->nwqes = 256;
	c->proof_every = 64;
	c->chunk = 14;
	c->heap_bytes = 1 << 18;
	ha_gpu_agent_defaults(&c->agent);
}

static int queue_send(void *self, const struct ha_gpu_message *message)
{
	struct pair_queue *q = ((struct pair_channel *)self)->out;
	int result = -EPIPE;

	soft_lock(&q->lock);
	if (!q->closed && q->head - q->tail < PAIR_MESSAGES) {
		q->message[q->head % PAIR_MESSAGES] = *message;
		ha_gpu_store(&q->head, q->head + 1);
		result = 0;
	}
	soft_unlock(&q->lock);
	return result;
}

static int queue_receive(void *self, struct ha_gpu_message *message)
{
	struct pair_queue *q = ((struct pair_channel *)self)->in;
	int result = 0;

	if (ha_gpu_load(&q->head) == ha_gpu_load(&q->tail))
		return ha_gpu_load(&q->closed) ? -EPIPE : 0;
	soft_lock(&q->lock);
	if (q->head != q->tail) {
		*message = q->message[q->tail % PAIR_MESSAGES];
		ha_gpu_store(&q->tail, q->tail + 1);
		result = 1;
	}
	soft_unlock(&q->lock);
	return result;
}

static void *alloc_bytes(struct soft_fabric *f, size_t bytes)
{
	void *p = soft_alloc(f, bytes);

	CHECK(p);
	return p;
}

static uint32_t register_memory(struct soft_nic *n, const void *address, size_t bytes, bool remote)
{
	uint32_t k = soft_mr_register(n, address, bytes, remote);

	CHECK(k);
	return ha_gpu_be32(k);
}

static void make_memory(struct pair *p, unsigned e, const struct pair_config *c)
{
	struct pair_end *end = &p->end[e];
	struct ha_gpu_conn *conn = alloc_bytes(p->fabric, sizeof(*conn));

	end->conn = conn;
	end->heap = alloc_bytes(p->fabric, c->heap_bytes);
	conn->mailbox = alloc_bytes(p->fabric, sizeof(*conn->mailbox));
	conn->scratch = alloc_bytes(p->fabric, 64);
	conn->nwqes = c->nwqes;
	conn->proof_every = c->proof_every;
	conn->proxied = c->proxied;
	conn->chunk = c->chunk;
	conn->apart = c->late_ns != 0;
	if (c->late_ns)
		soft_posted_apart(p->fabric, end->heap, c->heap_bytes, c->late_ns);
	conn->local = (uint64_t)(uintptr_t)end->heap;
	conn->local_bytes = c->heap_bytes;
}

/*
 * One NIC of one end: a foreign queue pair and keys first where it is the backup's.
 */
static void make_path(struct pair *p, unsigned e, unsigned path, const struct pair_config *c,
		      uint32_t *heap_keys, uint32_t *mailbox_key)
{
	struct soft_nic *n = &p->fabric->nic[2 * e + path];
	struct pair_end *end = &p->end[e];
	struct soft_qp_attr attr = { .nwqes = c->nwqes << c->dc,
				     .cq_log = c->cq_log ? c->cq_log + c->dc : 0,
				     .dci = c->dc };
	struct ha_gpu_path *q = &end->conn->path[path];

	if (path) {
		CHECK(soft_qp_create(n, &(struct soft_qp_attr) { .nwqes = 64 }));
		register_memory(n, alloc_bytes(p->fabric, 64), 64, true);
	}
	end->nic[path] = n;
	end->path[path].qp = soft_qp_create(n, &attr);
	CHECK(end->path[path].qp);
	soft_path_describe(end->path[path].qp, q);
	*mailbox_key = register_memory(n, end->conn->mailbox, sizeof(*end->conn->mailbox), true);
	q->scratch_key = register_memory(n, end->conn->scratch, 64, false);
	q->nlkey = c->heap_bytes >> c->chunk;
	for (uint32_t i = 0; i < q->nlkey; i++)
		heap_keys[i] = register_memory(n, end->heap + ((size_t)i << c->chunk),
					       (size_t)1 << c->chunk, true);
	q->lkey = heap_keys;
}

static void connect_path(struct pair *p, unsigned path, const struct ha_gpu_path_ops *ops,
			 uint32_t *const keys[2], const uint32_t mailbox_key[2])
{
	for (unsigned e = 0; e < 2; e++) {
		struct pair_end *end = &p->end[e], *peer = &p->end[!e];
		struct ha_gpu_path *q = &end->conn->path[path];

		end->path[path].announced = 2 * e + path;
		end->path[path].peer_address = 2 * !e + path;
		end->path[path].peer_qpn = peer->path[path].qp->qpn;
		q->rkey = keys[!e];
		q->nrkey = peer->conn->path[path].nlkey;
		q->mailbox = (uint64_t)(uintptr_t)peer->conn->mailbox;
		q->mailbox_key = mailbox_key[!e];
		CHECK(!ops->connect(&end->path[path], 0));
	}
	for (unsigned e = 0; e < 2 && ops->describe; e++) {
		uint64_t word[HA_GPU_DETAILS] = { 0 };

		ops->describe(&p->end[e].path[path], word);
		CHECK(!ops->set_peer(&p->end[!e].path[path], word, &p->end[!e].conn->path[path]));
	}
}

void pair_make(struct pair *p, struct soft_fabric *fabric, const struct pair_config *c)
{
	const struct ha_gpu_path_ops *ops = c->dc ? &soft_dc_path_ops : &soft_path_ops;
	uint32_t *keys[2], mailbox_key[2];

	memset(p, 0, sizeof(*p));
	p->fabric = fabric;
	for (unsigned e = 0; e < 2; e++) {
		p->queue[e] = alloc_bytes(fabric, sizeof(*p->queue[e]));
		make_memory(p, e, c);
	}
	for (unsigned path = 0; path < HA_GPU_PATHS; path++) {
		for (unsigned e = 0; e < 2; e++) {
			keys[e] = alloc_bytes(fabric, ((c->heap_bytes >> c->chunk) + path) * 4);
			make_path(p, e, path, c, keys[e], &mailbox_key[e]);
		}
		connect_path(p, path, ops, keys, mailbox_key);
	}
	for (unsigned e = 0; e < 2; e++) {
		struct pair_end *end = &p->end[e];
		struct ha_gpu_channel channel = { &end->channel, queue_send, queue_receive };

		ha_gpu_use_path(end->conn, 0);
		end->conn->remote = (uint64_t)(uintptr_t)p->end[!e].heap;
		end->conn->remote_bytes = c->heap_bytes;
		end->channel = (struct pair_channel) { p->queue[e], p->queue[!e] };
		CHECK(!ha_gpu_agent_init(&end->agent, end->conn, ops, &end->path[0], &end->path[1],
					 &channel, &c->agent));
	}
}

void pair_free(struct pair *p)
{
	for (unsigned e = 0; e < 2; e++)
		ha_gpu_agent_end(&p->end[e].agent);
}

void *pair_agent_run(void *arg)
{
	struct pair_end *end = arg;

	while (!ha_gpu_load(&end->stop))
		if (!ha_gpu_agent_step(&end->agent))
			ha_gpu_pause();
	return NULL;
}
