/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h - ranks that put, signal and get among each other, all in one thread, and what must be
 * true of it at every moment
 *
 * Each rank sends a stream to each rank, itself too: puts into cells, each covered by a signal,
 * its own or a later one. The receiver looks at its counters whenever it likes: none is ahead of
 * what was sent, and every cell that a counter covers is whole. Then it spoils the cell, and
 * looks at it again much later: nothing may have been written there since.
 */
#ifndef HA_TESTS_RMA_TEAM_H
#define HA_TESTS_RMA_TEAM_H

#include "plugin/rma/rma.h"
#include "tests/plugin/rma/fake_gdr.h"

#define TEAM_RANKS 6
#define TEAM_CELLS 64
#define TEAM_INFLIGHT                                                              \
	96 /* operations of one stream that were begun and not tested to their end \
	    */

struct team_stream {
	uint64_t begun, covered;        /* puts; of them, those that a signal follows */
	uint64_t signals, added;        /* signals begun; what they add to the sum */
	uint64_t cover[4 * TEAM_CELLS]; /* puts that signal n (modulo) covers */
	uint64_t consumed, seen;        /* puts; signals */
	uint64_t looked;                /* puts whose spoiled cell was looked at again */
	uint64_t finished;              /* operations tested to their end */
	bool getting;                   /* one get at a time */
	unsigned n;
	struct {
		struct ha_rma_op *op;
		uint8_t *source; /* spoiled when it is done; NULL: nothing to spoil */
		size_t size;
		const uint8_t *expected; /* a get's, from byte `at` of what is there */
		size_t at;
	} flight[TEAM_INFLIGHT];
};

struct team_rank {
	struct ha_rma_listen *listen;
	struct ha_rma *rma;
	struct ha_rma_window *cells, *counters, *sources, *gotten;
	uint8_t *cell_memory, *source_memory, *gotten_memory, *flushed_memory;
	uint64_t *counter_memory;
	struct team_stream to[TEAM_RANKS];
};

struct team {
	int n;
	size_t cell; /* bytes */
	int memory;  /* enum ha_mem_type of cells and counters */
	/* whose memory these are, and what is gotten; NULL: mapped memory */
	struct fake_gdr *gdr;
	uint64_t random;
	struct ha_ctx *ctx;
	struct team_rank rank[TEAM_RANKS];
};

void team_open(struct team *t, int ranks, size_t cell, int memory, uint64_t seed);
/* The same with cells, counters and what is gotten in the memory of that GPU. */
void team_open_gdr(struct team *t, int ranks, size_t cell, struct fake_gdr *gdr, uint64_t seed);
/* One operation of a random rank to a random one, if there is room. */
void team_begin(struct team *t);
/* Everybody makes progress, tests, looks. */
void team_step(struct team *t);
/* `puts` more, in all; all of them complete. */
void team_flow(struct team *t, unsigned puts);
void team_finish(struct team *t);
void team_close(struct team *t);
/* The cable of this process's NIC soft<nic>. */
void team_cut(int nic, bool is_cut);
/* It fails (DEVICE_FATAL); and is listed again, under this name. */
void team_kill(const char *nic);
void team_restore(const char *nic, const char *name);
/* Traffic until every connection has rails that no single NIC takes along, or (false) none has. */
void team_await_protection(struct team *t, bool all);
uint64_t team_random(struct team *t, uint64_t below);

#endif
