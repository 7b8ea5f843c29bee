/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.h - the memory that one client and the backend share
 *
 * One sealed memory file per client, made by the client:
 *
 *   0                  struct ina_shm_header: who made it, and where things are
 *   INA_SHM_CONTROL    struct ina_shm_control: the ends of the two rings, who sleeps
 *   INA_SHM_REQUESTS   INA_SHM_ENTRIES requests, client to backend
 *   INA_SHM_RESPONSES  as many responses, backend to client
 *   INA_SHM_BUFFER     the copy buffer: segments of HA_INA_SEGMENT bytes, to the end of the file
 *
 * All of it is written by either side at any time, whatever the rules say. So nobody believes it:
 * an index, an offset or a length is read once, into memory of one's own, and checked there. What
 * one side must rely on (its own end of a ring, who holds which part of the buffer) it keeps to
 * itself.
 *
 * The same machine on both sides: integers have its byte order.
 */
#ifndef INA_SHM_LAYOUT_H
#define INA_SHM_LAYOUT_H

#include "include/hawser/ina.h"

#include <assert.h>

#define INA_SHM_MAGIC 0x314d4853414e4948ull /* "HINASHM1" */
#define INA_SHM_VERSION 3
/* of each ring, a power of two: so many requests a client may have without their responses */
#define INA_SHM_ENTRIES 1024u
/*
 * bytes of a packet's words: requests begin at multiples of it, and all of their last block is
 * theirs
 */
#define INA_SHM_BLOCK 256u
#define INA_SHM_SEGMENTS_MAX 4096u

#define INA_SHM_CONTROL 4096u
#define INA_SHM_REQUESTS 8192u
#define INA_SHM_RESPONSES (INA_SHM_REQUESTS + INA_SHM_ENTRIES * 64)
#define INA_SHM_BUFFER HA_INA_SEGMENT

struct ina_shm_header {
	uint64_t magic;
	uint32_t version;
	uint32_t entries;
	uint64_t bytes;                                /* of the file */
	uint32_t control, requests, responses, buffer; /* where they begin */
	uint32_t segment, segments;
};
static_assert(sizeof(struct ina_shm_header) == 48, "shared memory layout");

/* A word in cache lines of its own: two, for processors fetch them in pairs. */
struct ina_shm_word {
	_Atomic uint32_t value;
	uint8_t pad[124];
};

/* What one ring's ends are: the producer writes tail, the consumer head and sleeps. */
struct ina_shm_ends {
	struct ina_shm_word tail, head;
	struct ina_shm_word sleeps; /* 1: the consumer wants to be woken after the next push */
};

struct ina_shm_control {
	struct ina_shm_ends requests, responses;
};
static_assert(sizeof(struct ina_shm_control) == 768, "shared memory layout");

/*
 * One collective on one piece of the copy buffer. What the rank brings is there; what it gets is
 * written there, in the same place.
 */
struct ina_shm_request {
	uint64_t sequence; /* the client's; comes back */
	uint64_t offset;   /* in the copy buffer, a multiple of INA_SHM_BLOCK */
	/*
	 * 1 to HA_INA_SEGMENT; a multiple of 4 unless type is HA_INA_BYTES. What fills up the last
	 * block is 0
	 */
	uint32_t bytes;
	uint32_t group; /* the handle that joining gave */
	/*
	 * HA_INA_ALL_REDUCE to HA_INA_ALL_GATHER, as the frames mean them: the last two for one
	 * root's part
	 */
	uint8_t coll;
	uint8_t type; /* enum ha_ina_type; with reductions not HA_INA_BYTES */
	uint8_t root; /* 0 with all-reduce */
	uint8_t reserved[37];
};
static_assert(sizeof(struct ina_shm_request) == 64, "shared memory layout");

/*
 * Every request has exactly one, in any order, also after its group has ended. From then on the
 * backend does not touch the piece.
 */
struct ina_shm_response {
	uint64_t sequence;
	int32_t result; /* 0 or a negative errno */
	uint32_t met;   /* HA_INA_SATURATED, HA_INA_NONFINITE */
};
static_assert(sizeof(struct ina_shm_response) == 16, "shared memory layout");
static_assert(INA_SHM_RESPONSES + INA_SHM_ENTRIES * sizeof(struct ina_shm_response) <=
		      INA_SHM_BUFFER,
	      "shared memory layout");

/* Bytes of the file with so many segments. */
static inline uint64_t ina_shm_bytes(uint32_t segments)
{
	return INA_SHM_BUFFER + (uint64_t)segments * HA_INA_SEGMENT;
}

/* Bytes of the buffer that a request of so many holds: whole blocks. */
static inline uint32_t ina_shm_blocks(uint32_t bytes)
{
	return (bytes + INA_SHM_BLOCK - 1) / INA_SHM_BLOCK * INA_SHM_BLOCK;
}

/* The header of a file of so many segments. */
void ina_shm_header_fill(struct ina_shm_header *header, uint32_t segments);
/* Of a copy. bytes: the file's size. 0 and *segments; else -EPROTO and *why. */
int ina_shm_header_check(const struct ina_shm_header *header, uint64_t bytes, uint32_t *segments,
			 const char **why);
/*
 * All that can be said without knowing the group (that handle and root are the client's is for the
 * backend to check). 0, or -EPROTO and *why.
 */
int ina_shm_request_check(const struct ina_shm_request *request, uint64_t buffer_bytes,
			  const char **why);

#endif
