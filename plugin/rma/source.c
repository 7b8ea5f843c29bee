/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.c - what other ranks send us: signals to add, gets to answer, answers
 *
 * The core hands out each record once, in order, when all data before it is in memory. For GPU
 * memory that is not enough: what the NIC has written may still be on its way to the GPU, and our
 * store to a counter takes another way. So a small read goes behind the data first (ha_iflush),
 * one for all records that are there.
 */
#include "plugin/rma/comm.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

void ha_rma_source_close(struct ha_rma_source *s)
{
	ha_close_recv(s->recv);
	free(s->mr);
	free(s);
}

static int new_source(struct ha_rma *rma, struct ha_recv *recv)
{
	struct ha_rma_source *s = calloc(1, sizeof(*s));

	if (!s) {
		ha_close_recv(recv);
		return -ENOMEM;
	}
	s->recv = recv;
	TAILQ_INSERT_HEAD(&rma->sources, s, link);
	rma->nsources++;
	return ha_rma_offer_all(rma, s);
}

/* ---- records ---- */

static struct ha_rma_window *find_window(const struct ha_rma *rma, uint32_t number, uint64_t offset,
					 uint64_t size)
{
	struct ha_rma_window *w = number < rma->nwindows ? rma->window[number] : NULL;

	return w && ha_rma_within(w, offset, size) ? w : NULL;
}

/*
 * Release: the data before it is visible with it. In mapped memory another thread may reset the
 * counter while we add; through GDRCopy it must not, and NCCL's contract says that it does not
 * (resetSignal may not race with signals).
 */
static int add_to_counter(struct ha_rma_window *w, uint64_t offset, uint64_t value)
{
	uint64_t *counter = (uint64_t *)((char *)w->addr + offset);
	volatile uint64_t *word;
	char why[HA_GDR_WHY];
	int err;

	if (w->reach == HA_RMA_DIRECT) {
		__atomic_fetch_add(counter, value, __ATOMIC_RELEASE);
		return 0;
	}
	err = ha_gdr_map(&w->pages, (uintptr_t)counter, &word, why);
	if (err)
		HA_WARN(NULL,
			"one-sided: a signal for GPU memory at %p cannot be added: %s; NCCL's own "
			"transport needs no GDRCopy (HA_NCCL_GIN=0)",
			(void *)counter, why);
	else
		ha_gdr_add(word, value);
	return err;
}

static int apply_signal(const struct ha_rma *rma, const struct ha_rma_record *r)
{
	struct ha_rma_window *w = find_window(rma, r->window, r->offset, sizeof(uint64_t));

	if (!w || r->offset % sizeof(uint64_t) || w->reach == HA_RMA_UNREACHED) {
		HA_WARN(NULL,
			"one-sided: a signal came for byte %" PRIu64
			" of window %u, which is no counter of this rank: look at where the "
			"program signals",
			r->offset, r->window);
		return -EPROTO;
	}
	return add_to_counter(w, r->offset, r->value);
}

static int answer_get(struct ha_rma *rma, const struct ha_rma_record *r)
{
	struct ha_rma_window *w = r->size ? find_window(rma, r->window, r->offset, r->size) : NULL;
	struct ha_rma_op *op;

	if (r->rank >= (uint32_t)rma->nranks)
		return -EPROTO;
	op = ha_rma_op_new(rma);
	if (!op)
		return -ENOMEM;
	op->orphan = true;
	op->rank = (int)r->rank;
	op->record = (struct ha_rma_record) { .kind = HA_RMA_GOT, .id = r->id };
	if (r->size && !w) {
		op->record.value = ERANGE;
	} else {
		op->size = r->size;
		op->source = w;
		op->source_offset = r->offset;
		op->target = r->back;
		op->target_offset = r->back_offset;
	}
	ha_rma_op_start(rma, op);
	return 0;
}

static int take_answer(struct ha_rma *rma, const struct ha_rma_record *r)
{
	struct ha_rma_op *op;

	LIST_FOREACH(op, &rma->gets, gets)
		if (op->id == r->id)
			break;
	if (!op)
		return -EPROTO;
	if (r->value)
		return -ERANGE;
	LIST_REMOVE(op, gets);
	op->answered = true;
	if (op->state == HA_RMA_AWAITED)
		op->state = HA_RMA_DONE;
	return 0;
}

static int apply_record(struct ha_rma *rma, const struct ha_rma_record *r)
{
	switch (r->kind) {
	case HA_RMA_SIGNAL:
		return apply_signal(rma, r);
	case HA_RMA_GET:
		return answer_get(rma, r);
	case HA_RMA_GOT:
		return take_answer(rma, r);
	}
	return -EPROTO;
}

/* ---- one source ---- */

static struct ha_rma_window *gpu_window(const struct ha_rma *rma)
{
	for (unsigned i = 0; rma->gpu && i < rma->nwindows; i++)
		if (rma->window[i] && rma->window[i]->type != HA_MEM_HOST)
			return rma->window[i];
	return NULL;
}

static void end_flush(struct ha_rma_source *s)
{
	s->flush = NULL;
	s->through = NULL;
	s->flushed = true;
}

/* Is everything that came before these records where the GPU sees it? -EAGAIN: not yet. */
static int step_flush(struct ha_rma *rma, struct ha_rma_source *s)
{
	struct ha_rma_window *w = gpu_window(rma);
	int size = 1, done, err;

	if (!w || s->flushed)
		return 0;
	if (!s->flush) {
		err = ha_iflush(s->recv, 1, &w->addr, &size, &s->mr[w->number], &s->flush);
		if (err || !s->flush) /* none: NCCL_GDR_FLUSH_DISABLE */
			return err;
		s->through = w;
	}
	err = ha_test(s->flush, &done, NULL);
	if (err || !done)
		return err ? err : -EAGAIN;
	end_flush(s);
	return 0;
}

void ha_rma_source_leave(struct ha_rma_source *s, const struct ha_rma_window *w)
{
	int done = 0, err = 0;

	if (s->through != w)
		return;
	while (!done && !err) {
		err = ha_test(s->flush, &done, NULL);
		sched_yield();
	}
	end_flush(s);
	s->flushed = !err; /* an error is the connection's: the next look finds it again */
}

static int take_records(struct ha_rma_source *s)
{
	bool got = true;
	int err = 0;

	while (s->n < HA_RMA_BATCH && got && !err) {
		err = ha_take(s->recv, &s->record[s->n], &got);
		s->n += got;
	}
	return s->n ? 0 : err;
}

/* -ECONNRESET: it has closed, and everything that it sent is applied. */
static int source_step(struct ha_rma *rma, struct ha_rma_source *s)
{
	int err = 0;

	if (!s->n) {
		s->flushed = false;
		err = take_records(s);
	}
	if (!s->n || err)
		return err;
	err = step_flush(rma, s);
	if (err)
		return err == -EAGAIN ? 0 : err;
	for (unsigned i = 0; i < s->n && !err; i++)
		err = apply_record(rma, &s->record[i]);
	s->n = 0;
	return err;
}

static int accept_source(struct ha_rma *rma)
{
	struct ha_recv *recv;
	int err = ha_accept(rma->listen->listen, &recv);

	return err || !recv ? err : new_source(rma, recv);
}

int ha_rma_sources_step(struct ha_rma *rma)
{
	int err = accept_source(rma);

	if (err)
		return ha_rma_fail(rma, err, "a connection from another rank was not possible");
	for (unsigned n = rma->nsources < HA_RMA_SOURCES ? rma->nsources : HA_RMA_SOURCES; n; n--) {
		struct ha_rma_source *s = TAILQ_FIRST(&rma->sources);

		TAILQ_REMOVE(&rma->sources, s, link);
		err = source_step(rma, s);
		if (err == -ECONNRESET) {
			rma->nsources--;
			ha_rma_source_close(s);
			continue;
		}
		TAILQ_INSERT_TAIL(&rma->sources, s, link);
		if (err)
			return ha_rma_fail(rma, err, "what another rank sent is lost");
	}
	return 0;
}
