/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/memory.h"

#include "sim/plugin/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* of address space; what a run does not touch costs nothing */
#define POOL_SIZE (UINT64_C(512) << 20)
#define GUARD 64
#define FREE_BYTE 0xc5    /* nobody may write here */
#define PENDING_BYTE 0x3a /* a receive may write here, and has not yet */
/*
 * Of a pattern, so much is looked at while a run goes on, all of it at the end: what a NIC writes
 * is seen as it does.
 */
#define LOOK 4096

#define STEP UINT64_C(0x9e3779b97f4a7c15) /* odd: each of 2^64 words comes once */

/* Eight bytes of a payload, from (key + index) * STEP. */
static inline uint64_t payload_word(uint64_t product)
{
	return product ^ product >> 31;
}

static void payload_write(char *to, uint64_t key, uint32_t size)
{
	uint64_t product = key * STEP;
	uint32_t i;

	for (i = 0; i + 8 <= size; i += 8, product += STEP) {
		uint64_t v = payload_word(product);

		memcpy(to + i, &v, 8);
	}
	if (i < size) {
		uint64_t v = payload_word(product);

		memcpy(to + i, &v, size - i);
	}
}

static uint64_t load_word(const char *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/*
 * From the word that `product` stands for: how many bytes, in blocks of 64, are right? Most of a
 * run's time.
 */
static uint32_t payload_equal(const char *is, uint64_t product, uint32_t len)
{
	uint32_t i;

	for (i = 0; i + 64 <= len; i += 64) {
		uint64_t differs = 0;

		for (unsigned k = 0; k < 8; k++)
			differs |= load_word(is + i + 8 * k) ^ payload_word(product + k * STEP);
		if (differs)
			break;
		product += 8 * STEP;
	}
	return i;
}

/* The first byte of [offset, offset + len) of a payload that is wrong, or -1. */
static int64_t payload_differs(const char *is, uint64_t key, uint32_t offset, uint32_t len)
{
	uint32_t i = 0;

	while (i < len) {
		uint32_t at = (offset + i) % 8, n = len - i < 8 - at ? len - i : 8 - at;
		uint64_t product = (key + (offset + i) / 8) * STEP, v = payload_word(product);

		if (!at && len - i >= 64) {
			uint32_t equal = payload_equal(is + i, product, len - i);

			i += equal;
			if (equal)
				continue;
		}
		if (n == 8 ? load_word(is + i) != v : memcmp(is + i, (char *)&v + at, n) != 0) {
			for (; is[i] == ((char *)&v)[at]; at++)
				i++;
			return offset + i;
		}
		i += n;
	}
	return -1;
}

static int64_t pattern_differs(const char *is, uint8_t byte, size_t len)
{
	uint64_t word = byte * UINT64_C(0x0101010101010101);
	size_t i = 0;

	while (i + 64 <= len) {
		uint64_t differs = 0;

		for (unsigned k = 0; k < 8; k++)
			differs |= load_word(is + i + 8 * k) ^ word;
		if (differs)
			break;
		i += 64;
	}
	for (; i < len; i++)
		if ((uint8_t)is[i] != byte)
			return (int64_t)i;
	return -1;
}

void sim_pool_open(struct sim_pool *pool)
{
	static char *base;

	if (!base) {
		base = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			abort();
	}
	pool->base = base;
	pool->used = 0;
}

int sim_arena_open(struct sim_arena *a, struct sim_pool *pool, unsigned conn, bool receives,
		   unsigned n, uint32_t capacity)
{
	/* Strides that are no multiple of anything: buffers at odd addresses. */
	*a = (struct sim_arena) { .conn = conn,
				  .receives = receives,
				  .n = n,
				  .nfree = n,
				  .capacity = capacity,
				  .stride = capacity + GUARD + conn % 9 };
	a->size = a->stride * n + GUARD;
	a->base = pool->base + pool->used;
	pool->used += (a->size + 8191) & ~(size_t)4095;
	a->buffer = pool->used <= POOL_SIZE ? calloc(n, sizeof(*a->buffer)) : NULL;
	if (!a->buffer)
		return -ENOMEM;
	memset(a->base, FREE_BYTE, a->size);
	for (unsigned i = n; i--;) {
		a->buffer[i].data = a->base + GUARD + i * a->stride;
		SLIST_INSERT_HEAD(&a->free, &a->buffer[i], free);
	}
	return 0;
}

static unsigned number_of(const struct sim_arena *a, const struct sim_buffer *b)
{
	return (unsigned)(b - a->buffer);
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
	return n < most ? n : most;
}

/* The gap before the buffer, and `size` bytes of it. */
static void check_patterns(const struct sim_arena *a, const struct sim_buffer *b,
			   struct sim_world *w, uint32_t size)
{
	int64_t at;

	if (b->late && !b->posted)
		memset(b->data, FREE_BYTE, b->expect);
	at = pattern_differs(b->data - GUARD, FREE_BYTE, GUARD + size);

	if (at >= 0)
		sim_report_finding(
			w, SIM_STRAY_WRITE,
			"connection %u, %s buffer %u (message %u): byte %lld of it was written "
			"while it was free",
			a->conn, a->receives ? "receive" : "send", number_of(a, b), b->message,
			(long long)at - GUARD);
}

void sim_arena_close(struct sim_arena *a, struct sim_world *w)
{
	for (unsigned i = 0; a->buffer && i < a->n && !sim_has_finding(w); i++)
		check_patterns(a, &a->buffer[i], w, a->buffer[i].posted ? 0 : a->capacity);
	free(a->buffer);
	a->buffer = NULL;
}

struct sim_buffer *sim_buffer_take(struct sim_arena *a, struct sim_world *w)
{
	struct sim_buffer *b = SLIST_FIRST(&a->free);

	if (!b)
		return NULL;
	SLIST_REMOVE_HEAD(&a->free, free);
	a->nfree--;
	check_patterns(a, b, w, at_most(a->capacity, LOOK));
	return b;
}

void sim_buffer_give(struct sim_arena *a, struct sim_buffer *b)
{
	memset(b->data, FREE_BYTE, b->size);
	b->posted = false;
	SLIST_INSERT_HEAD(&a->free, b, free);
	a->nfree++;
}

void sim_buffer_refused(struct sim_buffer *b, const struct sim_buffer *before)
{
	b->message = before->message;
	b->key = before->key;
	b->size = before->size;
	b->expect = before->expect;
	b->optional = before->optional;
}

static void mark_posted(struct sim_buffer *b, uint32_t message, uint64_t key, uint32_t size,
			uint32_t expect)
{
	b->posted = true;
	b->message = message;
	b->key = key;
	b->size = size;
	b->expect = expect;
	b->placed = 0;
	b->optional = b->late = false;
}

void sim_buffer_post(struct sim_buffer *b, uint32_t message, uint64_t key, uint32_t size,
		     uint32_t expect)
{
	mark_posted(b, message, key, size, expect);
	memset(b->data, PENDING_BYTE, size);
}

void sim_buffer_fill(struct sim_buffer *b, uint32_t message, uint64_t key, uint32_t size)
{
	mark_posted(b, message, key, size, size);
	payload_write(b->data, key, size);
}

void sim_buffer_check(const struct sim_arena *a, const struct sim_buffer *b, struct sim_world *w)
{
	int64_t at = payload_differs(b->data, b->key, 0, b->expect);

	if (at >= 0) {
		sim_report_finding(
			w, SIM_WRONG_BYTE,
			"connection %u, message %u, %s buffer %u: byte %lld of %u is wrong at "
			"completion",
			a->conn, b->message, a->receives ? "receive" : "send", number_of(a, b),
			(long long)at, b->expect);
		return;
	}
	at = pattern_differs(b->data + b->expect, PENDING_BYTE, at_most(b->size - b->expect, LOOK));
	if (at < 0)
		at = pattern_differs(b->data + b->size, FREE_BYTE,
				     at_most(a->capacity - b->size + GUARD, LOOK));
	if (at >= 0)
		sim_report_finding(
			w, SIM_STRAY_WRITE,
			"connection %u, message %u, buffer %u: something was written behind its "
			"%u bytes",
			a->conn, b->message, number_of(a, b), b->expect);
}

bool sim_buffer_whole(const struct sim_buffer *b)
{
	return b->placed >= b->expect && payload_differs(b->data, b->key, 0, b->expect) < 0;
}

/* Which message these bytes belong to, for the report; -1: none. */
static int64_t find_message(const struct sim_arena *a, const struct sim_world *w, const void *from,
			    size_t in, uint32_t len)
{
	const struct sim_conn *c = w->conn[a->conn];
	struct sim_message m;

	for (uint32_t i = 0; in < a->capacity && i < c->messages; i++) {
		sim_message_make(c->spec, i, &m);
		for (unsigned k = 0; k < m.n; k++)
			if (payload_differs(from, m.key[k], (uint32_t)in, len) < 0)
				return i;
	}
	return -1;
}

/* The second copy of an optional receive's data. */
static bool is_late_copy(const struct sim_buffer *b, const void *from, size_t in, uint32_t len)
{
	return !b->posted && b->optional && in <= b->expect && len <= b->expect - in &&
	       payload_differs(from, b->key, (uint32_t)in, len) < 0;
}

/* `len` bytes, `in` bytes into the buffer, which is posted: they must be those that it expects. */
static void check_placed(struct sim_arena *a, struct sim_world *w, struct sim_buffer *b,
			 const void *from, size_t in, uint32_t len)
{
	int64_t at;

	if (in > b->expect || len > b->expect - in) {
		sim_report_finding(
			w, SIM_STRAY_WRITE,
			"connection %u, message %u: %u bytes of message %lld placed at %zu of %u",
			a->conn, b->message, len, (long long)find_message(a, w, from, in, len), in,
			b->expect);
		return;
	}
	at = payload_differs(from, b->key, (uint32_t)in, len);
	if (at >= 0)
		sim_report_finding(
			w, SIM_WRONG_BYTE,
			"connection %u, message %u: byte %lld arrives wrong; it is message %lld's",
			a->conn, b->message, (long long)at,
			(long long)find_message(a, w, from, in, len));
	b->placed += len;
}

bool sim_arena_placing(struct sim_arena *a, struct sim_world *w, const void *to, const void *from,
		       uint32_t len)
{
	size_t offset = (size_t)((const char *)to - a->base), index, in;
	struct sim_buffer *b;

	if ((const char *)to < a->base || offset >= a->size)
		return false;
	index = offset < GUARD ? 0 : (offset - GUARD) / a->stride;
	in = offset < GUARD ? SIZE_MAX : (offset - GUARD) % a->stride;
	if (!a->receives || index >= a->n || !a->buffer) {
		sim_report_finding(w, SIM_STRAY_WRITE,
				   "connection %u: %u bytes placed where no receive buffer is",
				   a->conn, len);
		return true;
	}
	b = &a->buffer[index];
	if (is_late_copy(b, from, in, len))
		b->late = true;
	else if (!b->posted)
		sim_report_finding(
			w, SIM_STRAY_WRITE,
			"connection %u, buffer %zu: %u bytes of message %lld placed at %zu after "
			"message %u was complete",
			a->conn, index, len, (long long)find_message(a, w, from, in, len), in,
			b->message);
	else
		check_placed(a, w, b, from, in, len);
	return true;
}
