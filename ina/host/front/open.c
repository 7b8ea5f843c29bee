/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - contexts: opened, closed, and what becomes of them in a forked child */
#include "ina/host/front/front.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SOCKET "/run/hawser/ina.sock"
#define BUFFER (64u << 20)

/* All contexts of this process, for fork. all_lock is taken before any context's. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ha_ina) all = LIST_HEAD_INITIALIZER(all);
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/*
 * ---- fork: the child has neither the daemon nor the memory, and its copy of the socket would hide
 * the parent's end ----
 */

static void before_fork(void)
{
	struct ha_ina *ctx;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(ctx, &all, link)
		pthread_mutex_lock(&ctx->lock);
}

static void in_parent(void)
{
	struct ha_ina *ctx;

	LIST_FOREACH(ctx, &all, link)
		pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&all_lock);
}

static void locks_init(struct ha_ina *ctx)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&ctx->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void in_child(void)
{
	struct ha_ina *ctx;

	pthread_mutex_init(&all_lock, NULL);
	LIST_FOREACH(ctx, &all, link) {
		struct ha_ina_group *g;
		struct ha_ina_op *op;

		locks_init(ctx);
		if (ctx->client.fd >= 0)
			close(ctx->client.fd);
		close(ctx->thread.kick);
		ctx->client.fd = ctx->thread.kick = -1;
		ctx->client.memory = ctx->other = (struct ina_shm_memory) { 0 };
		/* CUDA does not work after fork either */
		ctx->cuda = (struct ina_cuda_buffer) { 0 };
		ctx->forked = true;
		ctx->thread.runs = false;
		ctx->error = -ENOTCONN;
		snprintf(ctx->error_why, sizeof(ctx->error_why),
			 "this process was forked from the one that attached: ha_ina_open() again");
		LIST_FOREACH(g, &ctx->groups.list, link) {
			ina_front_group_fail(g, -ENOTCONN, false, "%s", ctx->error_why);
			while ((op = STAILQ_FIRST(&g->ops)))
				ina_front_end(op, -ENOTCONN);
		}
		STAILQ_FOREACH(op, &ctx->notify.list, link_notify)
			op->notify_set = false; /* that is the parent's */
		if (ctx->notify.calling)
			ctx->notify.calling->notify_set = false; /* and this call is */
		STAILQ_INIT(&ctx->notify.list);
	}
	LIST_INIT(&all);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void list_context(struct ha_ina *ctx)
{
	pthread_once(&fork_once, watch_fork);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, ctx, link);
	pthread_mutex_unlock(&all_lock);
}

/* In a forked child the parent's are not listed. */
static void unlist_context(const struct ha_ina *ctx)
{
	struct ha_ina *listed;

	pthread_mutex_lock(&all_lock);
	LIST_FOREACH(listed, &all, link)
		if (listed == ctx)
			break;
	if (listed)
		LIST_REMOVE(listed, link);
	pthread_mutex_unlock(&all_lock);
}

/* ---- open ---- */

/* A size in bytes, with K, M or G. 0 where there is none. */
static uint64_t size_of(const char *text)
{
	static const char units[] = "kKmMgG";
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned shift = unit ? (unsigned)(unit - units) / 2 * 10 + 10 : 0;

	if (end == text || *text == '-' || (shift ? end[1] : *end) || n > UINT64_MAX >> 31)
		return 0;
	return n << shift;
}

/* Segments of the copy buffer; 0 and why. */
static uint32_t segments_of(const struct ha_ina_options *options, char *why, size_t size)
{
	const char *set = getenv("NETCCL_COPY_BUFFER");
	uint64_t bytes = BUFFER;

	if (options && options->buffer)
		bytes = options->buffer;
	else if (set && *set)
		bytes = size_of(set);
	if (bytes && bytes <= (uint64_t)INA_SHM_SEGMENTS_MAX * HA_INA_SEGMENT)
		return (uint32_t)((bytes + HA_INA_SEGMENT - 1) / HA_INA_SEGMENT);
	snprintf(why, size,
		 "the copy buffer (NETCCL_COPY_BUFFER) is to have 1 byte to 8 GiB: a number, with "
		 "K, M or G after it");
	return 0;
}

/* As NetCCL has it: the variable is set, to whatever; 0 or nothing says no. */
static bool is_enabled(const char *name)
{
	const char *set = getenv(name);

	return set && *set && strcmp(set, "0");
}

static int attach_backend(struct ha_ina *ctx, const struct ha_ina_options *options,
			  uint32_t segments, char *why, size_t size)
{
	const char *set = getenv("NETCCL_BACKEND"), *backend = set && *set ? set : SOCKET;
	int file = -1, err;

	if (options && options->backend)
		backend = options->backend;
	if (!ctx->loopback) {
		err = ina_shm_client_open(&ctx->client, backend, segments, ctx->give_up, why, size);
		ctx->address = ctx->client.address;
		return err;
	}
	ctx->address = 0x7f000001;
	ctx->client.fd = -1;
	err = ina_shm_memory_make(&ctx->client.memory, segments, &file, why, size);
	if (err)
		return err;
	close(file);
	ctx->other = ctx->client.memory; /* the other end of the same rings */
	return 0;
}

static int start_daemon(struct ha_ina *ctx, char *why, size_t size)
{
	sigset_t every, before;
	int err;

	ctx->thread.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->thread.kick < 0) {
		err = -errno;
		snprintf(why, size, "eventfd: %s", strerror(-err));
		return err;
	}
	sigfillset(&every); /* signals are the program's, but those of a thread's own faults */
	sigdelset(&every, SIGSEGV);
	sigdelset(&every, SIGBUS);
	sigdelset(&every, SIGFPE);
	sigdelset(&every, SIGILL);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	err = -pthread_create(&ctx->thread.id, NULL, ina_front_daemon, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ctx->thread.runs = !err;
	if (err)
		snprintf(why, size, "no thread: %s", strerror(-err));
	return err;
}

static void slots_init(struct ha_ina *ctx)
{
	for (uint32_t i = 0; i < INA_SHM_ENTRIES; i++)
		ctx->slots.free[i] = i;
	ctx->slots.free_count = INA_SHM_ENTRIES;
}

int ha_ina_open(struct ha_ina **ina, const struct ha_ina_options *options, char *why, size_t size)
{
	uint32_t segments = segments_of(options, why, size);
	struct ha_ina *ctx;
	int err = -ENOMEM;

	*ina = NULL;
	if (!segments)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (ctx)
		ctx->segment = calloc(segments, sizeof(*ctx->segment));
	if (!ctx || !ctx->segment) {
		snprintf(why, size, "out of memory");
		free(ctx);
		return err;
	}
	locks_init(ctx);
	ctx->refs = 1;
	STAILQ_INIT(&ctx->notify.list);
	ctx->thread.kick = ctx->client.fd = -1;
	ctx->give_up = options ? options->give_up : NULL;
	ctx->loopback = (options && options->loopback) || is_enabled("NETCCL_FRONTEND_LOOPBACK");
	ina_shm_buffer_init(&ctx->buffer, ctx->segment, segments);
	slots_init(ctx);
	err = attach_backend(ctx, options, segments, why, size);
	if (!err)
		err = start_daemon(ctx, why, size);
	if (err) {
		ina_shm_client_close(&ctx->client);
		if (ctx->thread.kick >= 0)
			close(ctx->thread.kick);
		ina_front_free(ctx);
		return err;
	}
	ina_front_begin(ctx); /* one that was at this address has said its last */
	list_context(ctx);
	*ina = ctx;
	return 0;
}

void ha_ina_close(struct ha_ina *ctx)
{
	struct ha_ina_group *g;

	if (!ctx)
		return;
	unlist_context(ctx);
	pthread_mutex_lock(&ctx->lock);
	ctx->closing = true;
	LIST_FOREACH(g, &ctx->groups.list, link)
		ina_front_group_fail(g, -ECANCELED, true, "the context was closed");
	ina_front_kick(ctx);
	pthread_mutex_unlock(&ctx->lock);
	if (ctx->thread.runs)
		pthread_join(ctx->thread.id, NULL);
	ctx->thread.runs = false;
	ina_shm_client_close(&ctx->client);
	if (ctx->thread.kick >= 0)
		close(ctx->thread.kick);
	pthread_mutex_lock(&ctx->lock);
	ctx->thread.kick = -1;
	if (!ctx->error) {
		ctx->error = -ENOTCONN;
		snprintf(ctx->error_why, sizeof(ctx->error_why), "the context was closed");
	}
	ina_front_put(ctx);
}

uint32_t ha_ina_address(const struct ha_ina *ctx)
{
	return ctx->address;
}
