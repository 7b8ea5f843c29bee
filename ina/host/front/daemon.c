/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.c - the thread of a context: what the backend says, what there is to copy, and sleep */
#include "base/clock.h"
#include "ina/host/front/front.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPINS 16      /* looks, with requests in the backend's hands, before it sleeps */
#define COPY_NS 20000 /* between two looks at copies that CUDA makes */
#define NONSENSE                                                                                \
	"the backend writes what cannot be into the shared memory: it must come from the same " \
	"release"
#define REASON_LOOK_MS 50 /* between two looks at groups that have ended, nobody has said why */

/* ---- what the backend says ---- */

static void handle_message(struct ha_ina *ctx, const struct ina_shm_message *m)
{
	struct ha_ina_group *g;
	struct ina_front_question *q;

	if (m->type == INA_SHM_STATE) {
		LIST_FOREACH(g, &ctx->groups.list, link)
			if (g->handle == m->state.handle && !g->coming) {
				g->coming = m->state.result;
				memcpy(g->coming_why, m->state.text, sizeof(g->coming_why));
			}
		return;
	}
	LIST_FOREACH(q, &ctx->questions.list, link)
		if (q->serial == m->serial && !q->answered) {
			q->answer = *m;
			q->answered = true;
			if (m->type == INA_SHM_JOINED && q->group)
				ina_front_joined(q->group, &m->joined);
			pthread_cond_broadcast(&ctx->changed);
			return;
		}
	if (m->type == INA_SHM_JOINED) /* whoever asked has not waited so long */
		ina_front_joined_late(ctx, m->joined.handle);
}

/* What the backend says; false: nothing more will come, and *why says why. */
static bool receive_messages(struct ha_ina *ctx, const char **why)
{
	struct ina_shm_message m;
	int file, got;

	while ((got = ina_shm_message_receive(ctx->client.fd, &m, false, &file, why)) > 0) {
		if (m.type == INA_SHM_REFUSED && !m.serial) {
			snprintf(ctx->error_why, sizeof(ctx->error_why), "%s", m.state.text);
			*why = NULL;
			return false;
		}
		handle_message(ctx, &m);
	}
	if (got == -ENOTCONN)
		*why = "the backend has gone: ha_ina_open() again when it is back";
	return !got;
}

/* Nothing comes from the backend any more, and nothing goes there. */
static void fail_context(struct ha_ina *ctx, const char *why)
{
	struct ha_ina_group *g;

	if (why && !*ctx->error_why)
		snprintf(ctx->error_why, sizeof(ctx->error_why), "%s", why);
	ctx->error = -ENOTCONN;
	LIST_FOREACH(g, &ctx->groups.list, link)
		ina_front_group_fail(g, -ENOTCONN, false, "%s", ctx->error_why);
	pthread_cond_broadcast(&ctx->changed);
}

/* The memory goes as soon as nobody copies. */
static void release_memory(struct ha_ina *ctx)
{
	if (!ctx->error || ctx->ops || !ctx->client.memory.map)
		return;
	ina_cuda_drop(&ctx->cuda);
	ina_shm_client_close(&ctx->client);
}

/* ---- a round ---- */

static void apply_states(struct ha_ina *ctx)
{
	struct ha_ina_group *g;

	ctx->groups.reason_due = false;
	LIST_FOREACH(g, &ctx->groups.list, link) {
		if (g->error || (!g->coming && !g->refused))
			continue;
		if (g->coming)
			ina_front_group_fail(g, g->coming, false, "%s", g->coming_why);
		/* of the request alone, with which no sentence comes */
		else if (g->refused == -EOPNOTSUPP)
			ina_front_group_fail(
				g, g->refused, false,
				"float32 cannot be summed with NetCCL's frames, which this group "
				"uses: start ha-backend without --old-frames");
		else if (ctx->loopback || ha_clock_now(&ha_clock_live) >= g->refused_until)
			ina_front_group_fail(g, g->refused, false,
					     "the backend ended the operation: %s",
					     strerror(-g->refused));
		else
			ctx->groups.reason_due = true;
	}
}

static void run_callbacks(struct ha_ina *ctx)
{
	struct ha_ina_op *op;

	while ((op = STAILQ_FIRST(&ctx->notify.list))) {
		STAILQ_REMOVE_HEAD(&ctx->notify.list, link_notify);
		ctx->notify.calling = op;
		pthread_mutex_unlock(&ctx->lock);
		op->notify(op->notify_arg, op->result);
		pthread_mutex_lock(&ctx->lock);
		ctx->notify.calling = NULL;
		if (ctx->forked) /* in there; this is the child */
			return;
		op->notify_set = false; /* from here on it may be freed */
		pthread_cond_broadcast(&ctx->changed);
	}
}

static bool take_from_backend(struct ha_ina *ctx)
{
	const char *why = NULL;
	bool there = ctx->loopback || receive_messages(ctx, &why);
	/* what it gave before it went, or ended a group, is good */
	int got = ina_front_responses(ctx);

	apply_states(ctx);
	if (got < 0)
		fail_context(ctx, NONSENSE);
	else if (!there)
		fail_context(ctx, why);
	return got != 0 || !there;
}

static bool do_round(struct ha_ina *ctx)
{
	bool moved = false;

	if (!ctx->error)
		moved |= take_from_backend(ctx);
	if (!ctx->error && ctx->loopback)
		moved |= ina_front_loopback(ctx);
	ctx->groups.leave_due = false;
	ina_front_send_leaves(ctx);
	moved |= ina_front_pump(ctx);
	/* found while pushing: nothing can be asked any more */
	if (!ctx->error && ctx->client.memory.requests.torn) {
		fail_context(ctx, NONSENSE);
		moved = true;
	}
	moved |= !STAILQ_EMPTY(&ctx->notify.list);
	run_callbacks(ctx);
	release_memory(ctx);
	return moved;
}

/* ---- sleep ---- */

static bool cuda_copies(const struct ha_ina *ctx)
{
	const struct ha_ina_group *g;
	const struct ha_ina_op *op;

	if (ctx->emptying)
		return true;
	LIST_FOREACH(g, &ctx->groups.list, link)
		STAILQ_FOREACH(op, &g->ops, link)
			if (op->cuda && op->filled > op->asked)
				return true;
	return false;
}

static void sleep_for_copies(struct ha_ina *ctx)
{
	const struct timespec t = { 0, COPY_NS };

	pthread_mutex_unlock(&ctx->lock);
	nanosleep(&t, NULL);
	pthread_mutex_lock(&ctx->lock);
}

static void sleep_until_woken(struct ha_ina *ctx)
{
	const short backend = ctx->groups.leave_due ? POLLIN | POLLOUT : POLLIN;
	struct pollfd p[2] = { { ctx->thread.kick, POLLIN, 0 },
			       { ctx->error ? -1 : ctx->client.fd, backend, 0 } };
	uint64_t count;

	if (!ctx->error && !ina_shm_ring_sleep(&ctx->client.memory.responses))
		return;
	ctx->thread.sleeping = true;
	pthread_mutex_unlock(&ctx->lock);
	poll(p, 2, ctx->groups.reason_due ? REASON_LOOK_MS : -1);
	pthread_mutex_lock(&ctx->lock);
	ctx->thread.sleeping = false;
	if (p[0].revents)
		(void)!read(ctx->thread.kick, &count, sizeof(count));
	if (!ctx->error)
		ina_shm_ring_awake(&ctx->client.memory.responses);
}

static void wait_for_work(struct ha_ina *ctx)
{
	if (cuda_copies(ctx)) {
		sleep_for_copies(ctx);
	} else if (ctx->slots.free_count < INA_SHM_ENTRIES && !ctx->error &&
		   ctx->thread.idle++ < SPINS) {
		pthread_mutex_unlock(&ctx->lock);
		sched_yield();
		pthread_mutex_lock(&ctx->lock);
	} else {
		sleep_until_woken(ctx);
		ctx->thread.idle = 0;
	}
}

void *ina_front_daemon(void *arg)
{
	struct ha_ina *ctx = arg;

	pthread_setname_np(pthread_self(), "hawser-ina");
	pthread_mutex_lock(&ctx->lock);
	while (!ctx->forked && (!ctx->closing || ctx->ops || !STAILQ_EMPTY(&ctx->notify.list))) {
		if (do_round(ctx))
			ctx->thread.idle = 0;
		else
			wait_for_work(ctx);
	}
	/* Here, for it changes the thread's current device: whoever closes keeps theirs. */
	ina_cuda_drop(&ctx->cuda);
	pthread_cond_broadcast(&ctx->changed);
	pthread_mutex_unlock(&ctx->lock);
	return NULL;
}
