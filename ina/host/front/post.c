/* SPDX-License-Identifier: BSD-3-Clause */
/* post.c - operations: checked and posted */
#include "ina/host/front/front.h"

#include <errno.h>
#include <stdlib.h>

struct extent {
	const uint8_t *at;
	size_t bytes;
};

static bool is_reduction(enum ha_ina_coll coll)
{
	return coll == HA_INA_ALL_REDUCE || coll == HA_INA_REDUCE || coll == HA_INA_REDUCE_SCATTER;
}

static bool in_parts(enum ha_ina_coll coll)
{
	return coll == HA_INA_REDUCE_SCATTER || coll == HA_INA_ALL_GATHER;
}

static bool must_bring(const struct ha_ina_request *q, unsigned rank)
{
	return q->coll != HA_INA_BROADCAST || rank == q->root;
}

/* A broadcast's root may give no `out`. */
static bool must_get(const struct ha_ina_request *q, unsigned rank)
{
	return q->coll == HA_INA_REDUCE ? rank == q->root
					: q->coll != HA_INA_BROADCAST || rank != q->root;
}

static bool are_disjoint(struct extent a, struct extent b)
{
	return a.at + a.bytes <= b.at || b.at + b.bytes <= a.at;
}

/* In place, or apart. */
static bool places_are_sound(const struct ha_ina_request *q, unsigned rank, unsigned ranks)
{
	size_t part = q->bytes / ranks;
	struct extent in = { q->in, q->coll == HA_INA_ALL_GATHER ? part : q->bytes };
	struct extent out = { q->out, q->coll == HA_INA_REDUCE_SCATTER ? part : q->bytes };
	bool in_place = in.at == out.at;

	if (q->coll == HA_INA_REDUCE_SCATTER)
		in_place = out.at == in.at + rank * part;
	else if (q->coll == HA_INA_ALL_GATHER)
		in_place = in.at == out.at + rank * part;
	return !in.at || !out.at || !q->bytes || in_place || are_disjoint(in, out);
}

/* Of the collective itself: NULL, or what cannot be. */
static const char *check_shape(const struct ha_ina_request *q, unsigned ranks)
{
	size_t unit = q->type == HA_INA_BYTES ? 1 : 4;

	if ((unsigned)q->type > HA_INA_FLOAT32 ||
	    (is_reduction(q->coll) && q->type == HA_INA_BYTES))
		return "type: a switch adds HA_INA_INT32 and HA_INA_FLOAT32; HA_INA_BYTES go with "
		       "broadcast and all-gather";
	if ((q->coll == HA_INA_REDUCE || q->coll == HA_INA_BROADCAST) && q->root >= ranks)
		return "root is no rank of the group";
	if (q->bytes % (in_parts(q->coll) ? unit * ranks : unit))
		return "bytes is not whole elements, or not as many for each rank";
	if (q->bytes > (size_t)HA_INA_SEGMENT << 24)
		return "bytes is more than there can be";
	return NULL;
}

/* Of its buffers. */
static const char *check_buffers(const struct ha_ina_request *q, unsigned rank, unsigned ranks)
{
	if (q->bytes && !q->in && must_bring(q, rank))
		return "in is NULL, and this rank brings something";
	if (q->bytes && !q->out && must_get(q, rank))
		return "out is NULL, and this rank gets something";
	if (must_bring(q, rank) && !places_are_sound(q, rank, ranks))
		return "in and out overlap, and are not in place";
	if (q->memory != HA_INA_HOST && q->memory != HA_INA_CUDA)
		return "memory is neither HA_INA_HOST nor HA_INA_CUDA";
	return NULL;
}

/* NULL, or what cannot be. */
static const char *check_request(const struct ha_ina_request *q, unsigned rank, unsigned ranks)
{
	const char *why;

	if (q->coll < HA_INA_ALL_REDUCE || q->coll > HA_INA_BARRIER)
		return "coll is none of enum ha_ina_coll";
	if (q->coll == HA_INA_BARRIER)
		return NULL;
	why = check_shape(q, ranks);
	return why ? why : check_buffers(q, rank, ranks);
}

static size_t pieces_of(const struct ha_ina_request *q, unsigned ranks)
{
	size_t part = in_parts(q->coll) ? q->bytes / ranks : q->bytes,
	       per = (part + HA_INA_SEGMENT - 1) / HA_INA_SEGMENT;

	if (q->coll == HA_INA_BARRIER)
		return 1;
	return in_parts(q->coll) ? per * ranks : per;
}

static struct ha_ina_op *make_op(struct ha_ina_group *g, const struct ha_ina_request *q)
{
	struct ha_ina_op *op = calloc(1, sizeof(*op));
	size_t pieces = pieces_of(q, g->ranks);

	if (op)
		op->piece = calloc(pieces + 1, sizeof(*op->piece));
	if (!op || !op->piece) {
		free(op);
		return NULL;
	}
	op->ctx = g->ctx;
	op->group = g;
	op->request = *q;
	op->rank = g->rank;
	op->ranks = g->ranks;
	op->token = 1;
	op->pieces = pieces;
	if (q->coll == HA_INA_BARRIER) {
		op->request.memory = HA_INA_HOST;
		op->request.type = HA_INA_INT32;
	}
	return op;
}

/*
 * The caller's stream is marked here, in the caller's thread: what comes before `stream` now comes
 * before the copies.
 */
static int mark_stream(struct ha_ina_op *op)
{
	struct ha_ina *ctx = op->ctx;
	struct ina_shm_memory *m = &ctx->client.memory;
	char why[CUDA_WHY];
	int err;

	if (op->request.memory != HA_INA_CUDA || !op->pieces)
		return 0;
	err = ina_cuda_use(&ctx->cuda, m->buffer, m->buffer_bytes, &op->cuda, why);
	if (!err)
		err = ina_cuda_mark(op->request.stream, &op->ready, why);
	return err ? ina_front_fail(ctx, err, "%s", why) : 0;
}

static int post_op(struct ha_ina_group *g, const struct ha_ina_request *q, struct ha_ina_op **op)
{
	struct ha_ina *ctx = g->ctx;
	const char *what = check_request(q, g->rank, g->ranks);
	int err;

	ina_front_begin(ctx);
	if (what)
		return ina_front_fail(ctx, -EINVAL, "%s", what);
	if (g->error)
		return ina_front_fail(ctx, g->error, "%s", g->why);
	if (ctx->error || ctx->closing)
		return ina_front_fail(ctx, -ENOTCONN, "%s",
				      ctx->error ? ctx->error_why : "the context was closed");
	if (ctx->ops >= OPS_MAX)
		return ina_front_fail(ctx, -EAGAIN, "%u operations have not ended yet: test some",
				      ctx->ops);
	*op = make_op(g, q);
	if (!*op)
		return ina_front_fail(ctx, -ENOMEM, "out of memory");
	err = mark_stream(*op);
	if (err) {
		free((*op)->piece);
		free(*op);
		*op = NULL;
		return err;
	}
	STAILQ_INSERT_TAIL(&g->ops, *op, link);
	if (!g->filling)
		g->filling = *op;
	if (!g->asking)
		g->asking = *op;
	ctx->ops++;
	ctx->refs++;
	ina_front_kick(ctx);
	return 0;
}

int ha_ina_post(struct ha_ina_group *g, const struct ha_ina_request *request, struct ha_ina_op **op)
{
	int err;

	*op = NULL;
	pthread_mutex_lock(&g->ctx->lock);
	err = post_op(g, request, op);
	pthread_mutex_unlock(&g->ctx->lock);
	return err;
}
