/* SPDX-License-Identifier: BSD-3-Clause */
/* crew.h - the ranks of one group, each a client of its own, and what their sums must be */
#ifndef HA_TESTS_BACKEND_CREW_H
#define HA_TESTS_BACKEND_CREW_H

#include "tests/ina/host/backend/rig.h"

struct crew {
	unsigned ranks;
	struct rig_client client[INA_RANKS_MAX];
	uint32_t handle[INA_RANKS_MAX], member[INA_RANKS_MAX];
	uint8_t ticket[HA_INA_TICKET];
};

/* Rank i on host i % hosts. */
void crew_open(struct crew *c, struct rig *r, unsigned ranks);
/* All leave, then detach. */
void crew_close(struct crew *c);

/* What rank r brings in element i: of INT32, FLOAT32 and BYTES. */
int32_t crew_integer(unsigned rank, size_t i, unsigned salt);
float crew_float(unsigned rank, size_t i, unsigned salt);

/* Fills the piece at `offset` of each rank's buffer, as coll and type want it. */
void crew_fill(struct crew *c, uint8_t coll, uint8_t type, uint64_t offset, uint32_t bytes,
	       unsigned salt);
void crew_post(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint64_t offset,
	       uint32_t bytes);
/* Every rank has result 0 for its next response. */
void crew_await(struct crew *c);
/* What everybody has there is right. */
void crew_check(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint64_t offset,
		uint32_t bytes, unsigned salt);
/* All of it, at offset 0. */
void crew_do(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint32_t bytes,
	     unsigned salt);

#endif
