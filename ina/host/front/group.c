/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - groups: asked for, joined, ended, left */
#include "ina/host/front/front.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOPBACK "hawser loopback"

/* for the controller, and whatever the backend does before it has an answer */
unsigned ina_front_time_limit_ms = 60000;

static uint32_t next_serial(struct ha_ina *ctx)
{
	return ++ctx->questions.serials ? ctx->questions.serials : ++ctx->questions.serials;
}

/* Until somebody signals `changed`, or it is time to look again. ETIMEDOUT: `until` is over. */
static int wait_some(struct ha_ina *ctx, const struct timespec *until)
{
	struct timespec t;

	if (!ctx->give_up)
		return pthread_cond_timedwait(&ctx->changed, &ctx->lock, until);
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (t.tv_sec > until->tv_sec || (t.tv_sec == until->tv_sec && t.tv_nsec >= until->tv_nsec))
		return ETIMEDOUT;
	t.tv_nsec += INA_SHM_LOOK_MS * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&ctx->changed, &ctx->lock, &t);
	return ina_shm_given_up(ctx->give_up) ? ECANCELED : 0;
}

static struct timespec time_limit(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += ina_front_time_limit_ms % 1000 * 1000000L;
	t.tv_sec += ina_front_time_limit_ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* Waits for the answer; 0, or why the wait ended. */
static int await_answer(struct ha_ina *ctx, const struct ina_front_question *q)
{
	const struct timespec until = time_limit();
	int err = 0;

	while (!q->answered && !ctx->error && !ctx->closing && err != ETIMEDOUT && err != ECANCELED)
		err = wait_some(ctx, &until);
	return err;
}

static int fail_unanswered(struct ha_ina *ctx, int err)
{
	if (err == ECANCELED)
		return ina_front_fail(ctx, -ECANCELED,
				      "given up while the backend had not answered");
	if (ctx->error || ctx->closing)
		return ina_front_fail(ctx, -ENOTCONN, "%s",
				      ctx->error ? ctx->error_why : "the context was closed");
	return ina_front_fail(ctx, -ETIMEDOUT, "the backend has not answered for %u s",
			      ina_front_time_limit_ms / 1000);
}

/*
 * With the lock, which is let go of while waiting: the answer to a question; 0 or an error that has
 * been said. group: JOIN's, else NULL.
 */
static int ina_front_ask(struct ha_ina *ctx, struct ina_shm_message *question, uint32_t type,
			 struct ha_ina_group *group, struct ina_shm_message *answer)
{
	struct ina_front_question q = { .serial = next_serial(ctx), .group = group };
	int err;

	question->serial = q.serial;
	err = ina_shm_message_send(ctx->client.fd, question, -1);
	if (err)
		return ina_front_fail(ctx, err == -EAGAIN ? err : -ENOTCONN,
				      "the backend cannot be asked: %s", strerror(-err));
	LIST_INSERT_HEAD(&ctx->questions.list, &q, link);
	err = await_answer(ctx, &q);
	LIST_REMOVE(&q, link);
	if (!q.answered)
		return fail_unanswered(ctx, err);
	if (q.answer.type == INA_SHM_REFUSED)
		return ina_front_fail(ctx, q.answer.state.result, "%s", q.answer.state.text);
	if (q.answer.type != type)
		return ina_front_fail(ctx, -EPROTO,
				      "the backend answers something else than was asked");
	*answer = q.answer;
	return 0;
}

/* The first lines of every call: 0, or the error that the context is in. */
static int check_context(struct ha_ina *ctx)
{
	ina_front_begin(ctx);
	return ctx->error ? ina_front_fail(ctx, ctx->error, "%s", ctx->error_why) : 0;
}

static int create_group(struct ha_ina *ctx, const uint32_t *member, unsigned ranks,
			const char *name, uint8_t ticket[HA_INA_TICKET])
{
	struct ina_shm_message m = { .type = INA_SHM_CREATE, .create.ranks = ranks }, answer;
	int err = check_context(ctx);

	if (err)
		return err;
	if (!member || !ticket || ranks < 2 || ranks > HA_INA_RANKS)
		return ina_front_fail(
			ctx, -EINVAL,
			"a group has 2 to %d ranks with an address each, and a ticket",
			HA_INA_RANKS);
	memset(ticket, 0, HA_INA_TICKET);
	if (ctx->loopback) {
		strcpy((char *)ticket, LOOPBACK);
		ticket[sizeof(LOOPBACK)] = (uint8_t)ranks;
		return 0;
	}
	memcpy(m.create.member, member, ranks * sizeof(*member));
	snprintf(m.create.name, sizeof(m.create.name), "%s", name ? name : "");
	for (char *c = m.create.name; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
	err = ina_front_ask(ctx, &m, INA_SHM_TICKET, NULL, &answer);
	if (!err)
		memcpy(ticket, answer.ticket, HA_INA_TICKET);
	return err;
}

int ha_ina_group_create(struct ha_ina *ctx, const uint32_t *member, unsigned ranks,
			const char *name, uint8_t ticket[HA_INA_TICKET])
{
	int err;

	pthread_mutex_lock(&ctx->lock);
	ctx->refs++; /* another thread may close it meanwhile */
	err = create_group(ctx, member, ranks, name, ticket);
	ina_front_put(ctx);
	return err;
}

static int joined_loopback(struct ha_ina *ctx, const uint8_t *ticket, unsigned rank,
			   struct ina_shm_joined *joined)
{
	unsigned ranks = ticket[sizeof(LOOPBACK)];

	if (memcmp(ticket, LOOPBACK, sizeof(LOOPBACK)) || ranks < 2 || ranks > HA_INA_RANKS ||
	    rank >= ranks)
		return ina_front_fail(
			ctx, -EINVAL,
			"the ticket is none of loopback's, or its group has no rank %u", rank);
	*joined = (struct ina_shm_joined) { ++ctx->questions.serials, rank, ranks };
	return 0;
}

void ina_front_joined(struct ha_ina_group *g, const struct ina_shm_joined *joined)
{
	struct ha_ina *ctx = g->ctx;

	g->handle = joined->handle;
	g->ranks = joined->ranks;
	g->owner = ++ctx->groups.owners;
	g->listed = true;
	LIST_INSERT_HEAD(&ctx->groups.list, g, link);
	ctx->refs++;
}

static void unlist_group(struct ha_ina_group *g)
{
	LIST_REMOVE(g, link);
	g->listed = false;
}

/* It is in no list, and has no operations: freed as soon as the LEAVE has been sent to the backend.
 */
static void let_go(struct ha_ina_group *g)
{
	struct ha_ina *ctx = g->ctx;

	if (ctx->closing || ina_front_send_leave(g)) {
		free(g);
		return;
	}
	LIST_INSERT_HEAD(&ctx->groups.leaving, g, link);
	ina_front_kick(ctx);
}

void ina_front_joined_late(struct ha_ina *ctx, uint32_t handle)
{
	struct ha_ina_group *g = calloc(1, sizeof(*g));

	if (!g) /* then it is there until the context is closed */
		return;
	g->ctx = ctx;
	g->handle = handle;
	let_go(g);
}

void ina_front_send_leaves(struct ha_ina *ctx)
{
	struct ha_ina_group *g;

	while ((g = LIST_FIRST(&ctx->groups.leaving)) && ina_front_send_leave(g)) {
		LIST_REMOVE(g, link);
		free(g);
	}
}

/* The group's memory is the caller's as long as this fails. */
static int join_group(struct ha_ina *ctx, const uint8_t *ticket, unsigned rank,
		      struct ha_ina_group *group)
{
	struct ina_shm_message m = { .type = INA_SHM_JOIN, .join.rank = rank }, answer = { 0 };
	unsigned most = ctx->buffer.segments < GROUPS_MAX ? ctx->buffer.segments : GROUPS_MAX;
	int err = check_context(ctx);

	if (err)
		return err;
	if (!ticket || rank >= HA_INA_RANKS)
		return ina_front_fail(ctx, -EINVAL, "joining takes a ticket, and a rank below %d",
				      HA_INA_RANKS);
	if (ctx->groups.count >= most)
		return ina_front_fail(ctx, -EAGAIN,
				      "a copy buffer of %u segments is enough for %u groups: leave "
				      "one, or a larger NETCCL_COPY_BUFFER",
				      ctx->buffer.segments, most);
	ctx->groups.count++; /* the lock is let go of while the backend thinks */
	memcpy(m.join.ticket, ticket, HA_INA_TICKET);
	*group = (struct ha_ina_group) { .ctx = ctx, .rank = rank };
	STAILQ_INIT(&group->ops);
	if (!ctx->loopback)
		err = ina_front_ask(ctx, &m, INA_SHM_JOINED, group, &answer);
	else if (!(err = joined_loopback(ctx, ticket, rank, &answer.joined)))
		ina_front_joined(group, &answer.joined);
	if (!err && (answer.joined.rank != rank || ctx->error || ctx->closing))
		err = ina_front_fail(ctx, -ENOTCONN, "the backend has gone, or gave another rank");
	if (err)
		ctx->groups.count--;
	return err;
}

int ha_ina_group_join(struct ha_ina *ctx, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
		      struct ha_ina_group **group)
{
	struct ha_ina_group *g = calloc(1, sizeof(*g));
	int err;

	*group = NULL;
	pthread_mutex_lock(&ctx->lock);
	ctx->refs++; /* another thread may close it meanwhile */
	err = g ? join_group(ctx, ticket, rank, g) : ina_front_fail(ctx, -ENOMEM, "out of memory");
	if (err && g && g->listed) { /* the backend has it, and the caller will not */
		unlist_group(g);
		let_go(g);
		ctx->refs--;
		g = NULL;
	}
	ina_front_put(ctx);
	if (err)
		free(g);
	else
		*group = g;
	return err;
}

void ina_front_group_fail(struct ha_ina_group *g, int err, bool own, const char *fmt, ...)
{
	va_list args;

	if (g->error)
		return;
	va_start(args, fmt);
	vsnprintf(g->why, sizeof(g->why), fmt, args);
	va_end(args);
	g->error = err;
	g->own_error = own;
}

bool ina_front_send_leave(struct ha_ina_group *g)
{
	struct ha_ina *ctx = g->ctx;
	struct ina_shm_message m = {
		.type = INA_SHM_LEAVE,
		.serial = next_serial(ctx),
		.leave = { g->handle, g->cut || !STAILQ_EMPTY(&g->ops) ? -ECANCELED : 0 }
	};

	/* LEFT is not waited for; who cannot be reached has gone, and knows. */
	if (!g->reported && !ctx->loopback && !ctx->error &&
	    ina_shm_message_send(ctx->client.fd, &m, -1) == -EAGAIN)
		ctx->groups.leave_due = true;
	else
		g->reported = true;
	return g->reported;
}

void ha_ina_group_leave(struct ha_ina_group *g)
{
	struct ha_ina *ctx;

	if (!g)
		return;
	ctx = g->ctx;
	pthread_mutex_lock(&ctx->lock);
	ina_front_group_fail(g, -ECANCELED, false, "the group was left");
	ina_front_kick(ctx);
	while (!STAILQ_EMPTY(&g->ops))
		pthread_cond_wait(&ctx->changed, &ctx->lock);
	unlist_group(g);
	ctx->groups.count--;
	let_go(g);
	ina_front_put(ctx);
}

unsigned ha_ina_group_rank(const struct ha_ina_group *g)
{
	return g->rank;
}

unsigned ha_ina_group_ranks(const struct ha_ina_group *g)
{
	return g->ranks;
}

int ha_ina_group_state(const struct ha_ina_group *g)
{
	struct ha_ina *ctx = g->ctx;
	int error;

	pthread_mutex_lock(&ctx->lock);
	error = g->error;
	if (error)
		ina_front_fail(ctx, error, "%s", g->why);
	pthread_mutex_unlock(&ctx->lock);
	return error;
}
