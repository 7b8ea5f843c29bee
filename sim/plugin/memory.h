/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the buffers that NCCL would own: who may write which byte, and what every byte must be
 *
 * An arena is one connection end's memory: buffers with guards between them. A receive buffer
 * belongs to a message from the moment it is posted to the moment its receive completes; everything
 * that a NIC places is checked against that and against the message's payload, byte by byte, at the
 * moment of placing. What nobody may write holds a pattern, which is checked when the buffer is
 * taken and at the end, for writes that came in another way.
 */
#ifndef HA_SIM_MEMORY_H
#define HA_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sim_world;

/* Memory that all runs of a process share, so that pages are touched once. */
struct sim_pool {
	char *base;
	size_t used;
};

struct sim_buffer {
	char *data;
	bool posted; /* a receive (or a send) uses it */
	/*
	 * its data alone says that it is complete, so a second copy of it may come until it is
	 * posted again
	 */
	bool optional;
	bool late;                    /* and has come */
	uint32_t size;                /* of it, so many bytes may be written */
	uint32_t expect;              /* and so many must */
	uint64_t key;                 /* of the payload */
	uint64_t placed;              /* bytes so far, repeated ones included */
	uint32_t message;             /* which one, for reports */
	SLIST_ENTRY(sim_buffer) free; /* in its arena's */
};

struct sim_arena {
	char *base;
	size_t size, stride;
	uint32_t capacity; /* bytes of each buffer */
	bool receives;
	unsigned conn, n, nfree;
	struct sim_buffer *buffer;
	SLIST_HEAD(, sim_buffer) free;
};

void sim_pool_open(struct sim_pool *pool);
/* capacity bytes each; receives: a NIC may place into them. */
int sim_arena_open(struct sim_arena *a, struct sim_pool *pool, unsigned conn, bool receives,
		   unsigned n, uint32_t capacity);
/* Checks the patterns of what is free. */
void sim_arena_close(struct sim_arena *a, struct sim_world *w);

/* A free buffer, the one that was given back last; NULL: none. */
struct sim_buffer *sim_buffer_take(struct sim_arena *a, struct sim_world *w);
/* It goes back, overwritten, as its owner would use it for something else. */
void sim_buffer_give(struct sim_arena *a, struct sim_buffer *b);
/* It was given back because the receive was not taken: what it had been before still counts. */
void sim_buffer_refused(struct sim_buffer *b, const struct sim_buffer *before);
/* A receive of `size` bytes, of which `expect` will come. */
void sim_buffer_post(struct sim_buffer *b, uint32_t message, uint64_t key, uint32_t size,
		     uint32_t expect);
/* A send: filled with the payload. */
void sim_buffer_fill(struct sim_buffer *b, uint32_t message, uint64_t key, uint32_t size);
/* The receive, or the send, is complete: is everything as it must be? */
void sim_buffer_check(const struct sim_arena *a, const struct sim_buffer *b, struct sim_world *w);
/* Has all of an optional receive's data come? */
bool sim_buffer_whole(const struct sim_buffer *b);

/* A NIC is about to place bytes. False: it is none of this arena's. */
bool sim_arena_placing(struct sim_arena *a, struct sim_world *w, const void *to, const void *from,
		       uint32_t len);

#endif
