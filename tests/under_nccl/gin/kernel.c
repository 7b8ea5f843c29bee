/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/under_nccl/gin/kernel.h"

#include "base/check.h"

#include <assert.h>

#define WORDS 8
#define OP_PUT 1
#define OP_INLINE 2
#define OP_COUNTER 4
#define OP_WINDOW_SIGNAL 32

static_assert(sizeof(struct gin_device_comm) == 224, "as NCCL passes it to a kernel");
static_assert(sizeof(struct gin_window) == 72, "as NCCL has it in device memory");

/* Contexts go round the connections, of which there is one for each NIC near the GPU. */
static unsigned connection_of(const struct gin_kernel *k, int context)
{
	return (k->comm.context_base + (unsigned)context) % k->comm.connection_count;
}

static struct gin_proxy_context *context_of(const struct gin_kernel *k, int context)
{
	return (struct gin_proxy_context *)k->comm.handles[connection_of(k, context)] +
	       (k->comm.context_base + (unsigned)context) / k->comm.connection_count;
}

/* The lowest bit of each word says that it is written. */
static uint64_t mark_written(uint64_t value)
{
	return value << 1 | 1;
}

static void fill_operation(const struct gin_kernel *k, const struct gin_operation *o, uint64_t *w)
{
	uint64_t handle = (uint64_t)(uintptr_t)k->window->handle[connection_of(k, o->context)];
	uint64_t base = (uint64_t)k->window->offset_pages << 12;
	uint64_t op = o->in_window ? OP_WINDOW_SIGNAL : OP_PUT;
	uint64_t signal = k->comm.signal_base + o->signal, counter = 0;

	if (o->counter >= 0) {
		op |= OP_COUNTER;
		counter = k->comm.counter_base + (unsigned)o->counter;
	}
	if (o->is_inline)
		op |= OP_INLINE;
	op |= o->signal_op;
	w[0] = mark_written(op | (uint64_t)o->size << 6);
	if (o->in_window) {
		w[1] = mark_written(base + o->signal_offset);
		w[2] = mark_written(handle);
	} else if (o->is_inline) {
		w[1] = 1 | (o->value & 0xffffffff) << 8 | (o->value >> 32 & 0xffff) << 40;
		w[2] = 1 | (o->value >> 48) << 8;
	} else {
		w[1] = mark_written(base + o->source);
		w[2] = mark_written(handle);
	}
	w[3] = mark_written(base + o->target);
	w[4] = mark_written(handle);
	w[5] = 1 | counter << 1 | signal << 24 | (o->add & 0xffff) << 48;
	w[6] = 1 | (o->add >> 16 & 0xffff) << 8 | (o->add >> 32) << 24;
	w[7] = 1;
}

bool gin_enqueue(struct gin_kernel *k, const struct gin_operation *o)
{
	struct gin_proxy_context *c = context_of(k, o->context);
	uint32_t at = c->produced[o->peer];
	uint64_t *queue = c->queues, w[WORDS];

	if (at - __atomic_load_n(&c->consumed[o->peer], __ATOMIC_ACQUIRE) >= c->queue_size)
		return false;
	fill_operation(k, o, w);
	queue += ((size_t)o->peer * c->queue_size + (at & (c->queue_size - 1))) * WORDS;
	c->produced[o->peer] = at + 1;
	/* Release: what the operation sends is written. */
	for (int i = 0; i < WORDS; i++)
		__atomic_store_n(&queue[i], w[i], __ATOMIC_RELEASE);
	return true;
}

bool gin_is_flushed(const struct gin_kernel *k, int context, int peer)
{
	const struct gin_proxy_context *c = context_of(k, context);

	return __atomic_load_n(&c->consumed[peer], __ATOMIC_ACQUIRE) == c->produced[peer];
}

uint64_t gin_signal(const struct gin_kernel *k, int context, uint32_t signal)
{
	return __atomic_load_n(&context_of(k, context)->signals[k->comm.signal_base + signal],
			       __ATOMIC_ACQUIRE);
}

uint64_t gin_counter(const struct gin_kernel *k, int context, uint32_t counter)
{
	return __atomic_load_n(&context_of(k, context)->counters[k->comm.counter_base + counter],
			       __ATOMIC_ACQUIRE);
}
