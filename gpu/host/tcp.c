/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.c - the bootstrap over TCP: a star round rank 0, which passes on what the others send each
 * other
 */
#include "gpu/host/bootstrap.h"

#include "base/log.h"
#include "gpu/host/door.h"
#include "gpu/host/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x48414247u /* "HABG" */

struct hello {
	uint32_t magic, version;
	uint64_t job;
	uint32_t rank, size;
};

struct round {
	uint32_t magic, number;
	uint64_t bytes; /* to each */
};

struct star {
	int rank, size, broken;
	unsigned limit_ms;
	uint32_t rounds;
	int *fd; /* at rank 0 one per rank; elsewhere fd[0] is rank 0 */
};

static int fail_star(struct star *s, int r, int rank)
{
	char who[32];

	snprintf(who, sizeof(who), "rank %d", rank);
	HA_WARN(who, "does not answer in the bootstrap (%s): set-up ends; look for that process",
		strerror(-r));
	s->broken = r;
	return r;
}

static int send_round(struct star *s, int fd, const void *data, size_t bytes)
{
	struct round h = { MAGIC, s->rounds, bytes / (size_t)s->size };
	int r = ha_gpu_stream_send(fd, &h, sizeof(h), s->limit_ms);

	return r ? r : ha_gpu_stream_send(fd, data, bytes, s->limit_ms);
}

/* Both ends must be at the same call: else the program's ranks have taken different ways. */
static int receive_round(struct star *s, int fd, void *data, size_t bytes)
{
	struct round h;
	int r = ha_gpu_stream_receive(fd, &h, sizeof(h), s->limit_ms);

	if (r)
		return r;
	if (h.magic != MAGIC || h.number != s->rounds || h.bytes != bytes / (size_t)s->size)
		return -EPROTO;
	return ha_gpu_stream_receive(fd, data, bytes, s->limit_ms);
}

static int find_ended_rank(void *self)
{
	const struct star *s = self;

	for (int i = 0; i < (s->rank ? 1 : s->size); i++)
		if (s->fd[i] >= 0 && ha_gpu_stream_ended(s->fd[i]))
			return i;
	return -1;
}

static int relay_round(struct star *s, const char *send, char *receive, size_t bytes)
{
	size_t all = bytes * (size_t)s->size, n = (size_t)s->size;
	/* the others are notified without waiting for all of them first */
	int r = find_ended_rank(s);
	char *in, *out;

	if (r >= 0)
		return fail_star(s, -EPIPE, r);
	r = 0;
	in = malloc(2 * n * all + 1);
	out = in + n * all;
	if (!in)
		return s->broken = -ENOMEM;
	memcpy(in, send, all);
	for (int i = 1; i < s->size && !r; i++)
		if ((r = receive_round(s, s->fd[i], in + (size_t)i * all, all)))
			fail_star(s, r, i);
	for (size_t to = 0; to < n; to++)
		for (size_t from = 0; from < n; from++)
			memcpy(out + to * all + from * bytes, in + from * all + to * bytes, bytes);
	for (int i = 1; i < s->size && !r; i++)
		if ((r = send_round(s, s->fd[i], out + (size_t)i * all, all)))
			fail_star(s, r, i);
	memcpy(receive, out, all);
	free(in);
	return r;
}

static int alltoall(void *self, const void *send, void *receive, size_t bytes)
{
	struct star *s = self;
	size_t all = bytes * (size_t)s->size;
	int r;

	if (s->broken)
		return s->broken;
	s->rounds++;
	if (!s->rank)
		return relay_round(s, send, receive, bytes);
	r = send_round(s, s->fd[0], send, all);
	if (!r)
		r = receive_round(s, s->fd[0], receive, all);
	return r ? fail_star(s, r, 0) : 0;
}

static void close_star(void *self)
{
	struct star *s = self;

	for (int i = 0; i < (s->rank ? 1 : s->size); i++)
		if (s->fd[i] >= 0)
			close(s->fd[i]);
	free(s->fd);
	free(s);
}

static struct star *make_star(int rank, int size, unsigned limit_ms)
{
	struct star *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->rank = rank;
	s->size = size;
	s->limit_ms = limit_ms;
	s->fd = malloc((size_t)size * sizeof(int));
	if (!s->fd) {
		free(s);
		return NULL;
	}
	for (int i = 0; i < size; i++)
		s->fd[i] = -1;
	return s;
}

struct gathering {
	struct star *star;
	uint64_t job;
};

static bool is_rank(void *self, int fd, const void *shown)
{
	const struct gathering *g = self;
	const struct hello *h = shown;
	struct star *s = g->star;

	if (h->magic != MAGIC || h->version != 1 || h->job != g->job ||
	    h->size != (uint32_t)s->size || !h->rank || h->rank >= (uint32_t)s->size ||
	    s->fd[h->rank] >= 0)
		return false;
	s->fd[h->rank] = fd;
	return true;
}

static int gather_ranks(struct star *s, const char *root, uint64_t job, char address[64])
{
	struct gathering gathering = { s, job };
	int listener = ha_gpu_stream_listen(root), missing, r;

	if (listener < 0) {
		HA_WARN(root,
			"cannot listen there for the other ranks: %s; give an address of this host "
			"and a free port",
			strerror(-listener));
		return listener;
	}
	ha_gpu_stream_own(listener, address, NULL);
	r = ha_gpu_door_open(listener, sizeof(struct hello), s->size - 1, s->limit_ms, is_rank,
			     NULL, &gathering, &missing);
	if (r)
		HA_WARN(root,
			"%d of %d ranks have not dialled in time; look whether they run and reach "
			"this address",
			missing, s->size);
	close(listener);
	return r;
}

static int join_star(struct star *s, const char *root, uint64_t job, char address[64])
{
	struct hello h = { MAGIC, 1, job, (uint32_t)s->rank, (uint32_t)s->size };
	int fd = ha_gpu_stream_connect(root, s->limit_ms);

	if (fd < 0) {
		HA_WARN(root, "rank 0 is not reached there: %s", strerror(-fd));
		return fd;
	}
	s->fd[0] = fd;
	ha_gpu_stream_own(fd, address, NULL);
	return ha_gpu_stream_send(fd, &h, sizeof(h), s->limit_ms);
}

int ha_gpu_bootstrap_tcp(struct ha_gpu_bootstrap *b, const char *root, int rank, int size,
			 uint64_t job, unsigned limit_ms)
{
	struct star *s;
	int r;

	if (size < 1 || rank < 0 || rank >= size)
		return -EINVAL;
	s = make_star(rank, size, limit_ms);
	if (!s)
		return -ENOMEM;
	memset(b, 0, sizeof(*b));
	r = rank ? join_star(s, root, job, b->address) : gather_ranks(s, root, job, b->address);
	if (r) {
		close_star(s);
		return r;
	}
	b->self = s;
	b->rank = rank;
	b->size = size;
	b->alltoall = alltoall;
	b->close = close_star;
	b->ended_rank = find_ended_rank;
	return 0;
}
