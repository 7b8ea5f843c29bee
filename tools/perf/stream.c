/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/fault.h"
#include "tools/perf/options.h"
#include "tools/perf/proxy.h"
#include "tools/perf/stream.h"

/* a piece this long makes at least two slices, so that copying and sending overlap */
#define HALVE_FROM 65536u
#define SLICE_ALIGN 64u
/* actions up to this size use LL when the choice is automatic: one slot's payload */
#define LL_AUTO_BYTES 8192u
#define IDLE_CALLS 64u /* passes without progress between two calls of the idle function */

/* ---- LL: 4 bytes of payload and a flag in 8 bytes, written and read as one ---- */

static size_t ll_wire_bytes(size_t bytes)
{
	return (bytes + 3) / 4 * 8;
}

static void ll_encode(char *slot, const char *src, size_t bytes, uint32_t flag)
{
	uint64_t *line = (uint64_t *)slot;
	uint32_t word;
	size_t n;

	for (; bytes; bytes -= n, src += n) {
		n = bytes < 4 ? bytes : 4;
		word = 0;
		memcpy(&word, src, n);
		__atomic_store_n(line++, (uint64_t)flag << 32 | word, __ATOMIC_RELAXED);
	}
}

/* false: a flag is not there yet. Relaxed loads suffice: each line carries its own flag. */
static bool ll_decode(char *dst, const char *slot, size_t bytes, uint32_t flag)
{
	const uint64_t *line = (const uint64_t *)slot;
	uint64_t value;
	uint32_t word;
	size_t n;

	for (; bytes; bytes -= n, dst += n) {
		n = bytes < 4 ? bytes : 4;
		value = __atomic_load_n(line++, __ATOMIC_RELAXED);
		if (value >> 32 != flag)
			return false;
		word = (uint32_t)value;
		memcpy(dst, &word, n);
	}
	return true;
}

/* ---- slices ---- */

/* Both ends cut an action of the same size into the same slices. */
static void slices_of(size_t bytes, size_t slot, size_t *slices, size_t *slice_bytes)
{
	size_t n = (bytes + slot - 1) / slot;

	if (n == 1 && bytes >= HALVE_FROM)
		n = 2;
	*slice_bytes =
		n ? ((bytes + n - 1) / n + SLICE_ALIGN - 1) / SLICE_ALIGN * SLICE_ALIGN : slot;
	/* nothing is sent as an empty message */
	*slices = bytes ? (bytes + *slice_bytes - 1) / *slice_bytes : 1;
}

static void action_load(struct ha_job *job, struct ha_stream *s)
{
	if (s->done == s->plan.actions)
		return;
	s->plan.action(&job->shape, &s->plan, s->done, &s->action);
	slices_of(s->action.bytes, job->shape.slot_bytes, &s->slices, &s->slice_bytes);
	s->slice = 0;
}

static size_t slot_index(const struct ha_job *job, const struct ha_lane *lane, uint64_t step)
{
	return (size_t)((lane->base + step) % (uint64_t)job->mesh->steps);
}

static char *slot_memory(const struct ha_job *job, const struct ha_lane *lane, uint64_t step)
{
	const struct ha_bank *bank = &lane->banks[job->protocol];

	return bank->memory + slot_index(job, lane, step) * bank->slot;
}

static uint32_t ll_flag(const struct ha_lane *lane, uint64_t step)
{
	return (uint32_t)(lane->base + step + 1);
}

/* The received payload of the slice; *ready is false when it is not all there. */
static int slice_receive(struct ha_job *job, struct ha_stream *s, size_t bytes, const char **data,
			 bool *ready)
{
	struct ha_lane *lane = s->in;
	char *memory;
	size_t size;

	*ready = lane->consumed < lane->produced;
	if (!*ready)
		return 0;
	memory = slot_memory(job, lane, lane->consumed);
	if (job->protocol == HA_LL) {
		*data = job->scratch;
		*ready = ll_decode(job->scratch, memory, bytes, ll_flag(lane, lane->consumed));
		return 0;
	}
	size = lane->sizes[slot_index(job, lane, lane->consumed)];
	*data = memory;
	/* test reports an int: of a message beyond 2 GiB, the low 32 bits */
	if ((uint32_t)size != (uint32_t)bytes)
		return ha_fault(
			-EPROTO,
			"test: plugin '%s' says %zu bytes arrived from rank %d where %zu were sent",
			job->mesh->plugin.name, size, s->plan.from, bytes);
	return 0;
}

/* Copies or reduces one slice to where it belongs. */
static void slice_work(struct ha_job *job, const struct ha_action *a, size_t at, size_t bytes,
		       const char *received, char *sent)
{
	const struct ha_datatype *type = job->shape.type;
	const char *data = a->receive ? received : a->src + at;
	char *target = a->dst ? a->dst + at : sent;

	if (a->receive && a->reduce) {
		type->reduce(job->shape.redop, target, a->src + at, received, bytes / type->size);
		if (a->finish && job->shape.redop == HA_AVG)
			type->divide(target, bytes / type->size, job->shape.ranks);
		if (sent && target != sent)
			memcpy(sent, target, bytes);
		return;
	}
	if (sent)
		memcpy(sent, data, bytes);
	if (a->dst && a->dst + at != data)
		memcpy(a->dst + at, data, bytes);
}

/* Does the next slice if it can be done: *moved says whether. */
static int slice_try(struct ha_job *job, struct ha_stream *s, bool *moved)
{
	const struct ha_action *a = &s->action;
	size_t at = s->slice * s->slice_bytes,
	       bytes = a->bytes - at < s->slice_bytes ? a->bytes - at : s->slice_bytes;
	bool ready = true, ll = job->protocol == HA_LL;
	const char *received = NULL;
	char *slot = NULL, *sent = NULL;
	int err;

	if (a->send && s->out->produced >= s->out->consumed + (uint64_t)job->mesh->steps)
		return 0;
	if (a->receive) {
		err = slice_receive(job, s, bytes, &received, &ready);
		if (err || !ready)
			return err;
	}
	if (a->send) {
		slot = slot_memory(job, s->out, s->out->produced);
		sent = ll ? job->scratch + job->shape.slot_bytes : slot;
	}
	slice_work(job, a, at, bytes, received, sent);
	if (a->send) {
		if (ll)
			ll_encode(slot, sent, bytes, ll_flag(s->out, s->out->produced));
		s->out->sizes[slot_index(job, s->out, s->out->produced)] =
			ll ? ll_wire_bytes(bytes) : bytes;
		s->out->produced++;
	}
	if (a->receive)
		s->in->consumed++;
	if (++s->slice == s->slices) {
		s->done++;
		action_load(job, s);
	}
	*moved = true;
	return 0;
}

/* ---- jobs ---- */

/* NULL: there is none. */
static const struct ha_conn *any_conn(const struct ha_mesh *mesh)
{
	if (mesh->senders_count)
		return &mesh->senders[0];
	return mesh->receivers_count ? &mesh->receivers[0] : NULL;
}

static void protocol_choose(struct ha_job *job)
{
	const struct perf_options *o = job->mesh->options;
	struct ha_shape *shape = &job->shape;
	enum ha_protocol_choice choice = job->operation->raw ? HA_PROTOCOL_SIMPLE : o->protocol;
	const struct ha_conn *any = any_conn(job->mesh);

	job->protocol =
		choice == HA_PROTOCOL_LL ||
				(choice == HA_PROTOCOL_AUTO &&
				 ha_operation_action_bytes(job->operation, shape) <= LL_AUTO_BYTES)
			? HA_LL
			: HA_SIMPLE;
	/* all lanes have slots of the same size; a rank without any has no streams either */
	shape->slot_bytes = SLICE_ALIGN;
	if (any)
		shape->slot_bytes = any->lanes[0].banks[job->protocol].slot;
	if (job->protocol == HA_LL)
		shape->slot_bytes /= 2;
	shape->steps = job->mesh->steps;
}

/* Counts the steps that the plan will make on its lanes. */
static void steps_count(struct ha_job *job, struct ha_stream *s)
{
	struct ha_action action;
	size_t slices, bytes;

	for (uint64_t k = 0; k < s->plan.actions; k++) {
		s->plan.action(&job->shape, &s->plan, k, &action);
		slices_of(action.bytes, job->shape.slot_bytes, &slices, &bytes);
		if (action.receive)
			s->in->total += slices;
		if (action.send) {
			s->out->total += slices;
			job->messages += slices;
		}
	}
}

static void totals_clear(struct ha_conn *conns, int count)
{
	for (int i = 0; i < count; i++)
		for (int l = 0; l < conns[i].lanes_count; l++)
			conns[i].lanes[l].total = 0;
}

static int stream_attach(struct ha_job *job, struct ha_stream *s, int channel)
{
	if (s->plan.from >= 0)
		s->in = ha_mesh_lane(job->mesh, false, s->plan.from, channel, &s->from);
	if (s->plan.to >= 0)
		s->out = ha_mesh_lane(job->mesh, true, s->plan.to, channel, &s->to);
	if ((s->plan.from >= 0 && !s->in) || (s->plan.to >= 0 && !s->out))
		return ha_fault(-ENOTCONN, "no connection between ranks %d, %d and %d",
				s->plan.from, job->shape.rank, s->plan.to);
	return 0;
}

int ha_job_prepare(struct ha_job *job, struct ha_mesh *mesh, const struct ha_operation *operation,
		   const struct ha_shape *shape)
{
	struct ha_plan *plans = calloc(2 * (size_t)shape->ranks, sizeof(*plans));
	int err = 0;

	*job = (struct ha_job) { .mesh = mesh, .operation = operation, .shape = *shape };
	protocol_choose(job);
	job->scratch = malloc(2 * job->shape.slot_bytes);
	job->streams =
		calloc(2 * (size_t)shape->ranks * (size_t)shape->channels, sizeof(*job->streams));
	if (!plans || !job->scratch || !job->streams)
		err = ha_fault(-ENOMEM, "out of memory");
	for (int c = 0; c < shape->channels && !err; c++) {
		size_t first = shape->block * (size_t)c / (size_t)shape->channels;
		size_t end = shape->block * (size_t)(c + 1) / (size_t)shape->channels;
		int n = end > first ? operation->plans(&job->shape, first, end - first, plans) : 0;

		for (int i = 0; i < n && !err; i++) {
			struct ha_stream *s = &job->streams[job->streams_count++];

			s->plan = plans[i];
			err = stream_attach(job, s, c);
		}
	}
	free(plans);
	if (err)
		return err;
	totals_clear(mesh->senders, mesh->senders_count);
	totals_clear(mesh->receivers, mesh->receivers_count);
	for (int i = 0; i < job->streams_count; i++)
		steps_count(job, &job->streams[i]);
	return 0;
}

static void job_start(struct ha_job *job)
{
	job->mesh->protocol = job->protocol;
	ha_proxy_start(job->mesh);
	if (job->operation->prologue)
		job->operation->prologue(&job->shape);
	for (int i = 0; i < job->streams_count; i++) {
		job->streams[i].done = 0;
		action_load(job, &job->streams[i]);
	}
}

/* One pass of the streams and of the proxy; *left counts the streams that are not through. */
static int job_pass(struct ha_job *job, bool *moved, int *left)
{
	int err = 0;

	*left = 0;
	for (int i = 0; i < job->streams_count && !err; i++) {
		struct ha_stream *s = &job->streams[i];

		if (s->done < s->plan.actions) {
			err = slice_try(job, s, moved);
			*left += s->done < s->plan.actions;
		}
	}
	return err ? err : ha_proxy_progress(job->mesh, moved);
}

int ha_job_run(struct ha_job *job, ha_job_idle idle, void *context)
{
	unsigned passes = 0, stalled = 0;
	int left = 0, err;
	bool moved;

	job_start(job);
	for (;;) {
		moved = false;
		err = job_pass(job, &moved, &left);
		if (err || (!left && ha_proxy_idle(job->mesh)))
			break;
		stalled = moved ? 0 : stalled + 1;
		if (++passes % IDLE_CALLS == 0) {
			err = idle(context, job, stalled < IDLE_CALLS);
			if (err)
				break;
		}
		if (!moved)
			/* NCCL's proxy thread yields too when a pass changed nothing */
			sched_yield();
	}
	ha_proxy_finish(job->mesh);
	return err;
}

void ha_job_release(struct ha_job *job)
{
	free(job->streams);
	free(job->scratch);
	*job = (struct ha_job) { 0 };
}
