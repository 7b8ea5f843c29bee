/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_ranks SCENARIO RANKS SOCKET...: ranks of one group over living backends, rank i at socket
 * i % sockets
 *
 *   sums     every collective and type, twice; 0 when all was right
 *   endless  all-reduces that are each checked, a line "running" after the first, until the group
 *            ends or a backend goes; then a line for each rank:
 *            its errno and its reason, or "gone"
 */
#include "tests/ina/host/backend/crew.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define KB 1024u

static int check_sums(struct crew *c)
{
	static const uint8_t coll[] = { HA_INA_ALL_REDUCE, HA_INA_REDUCE, HA_INA_BROADCAST,
					HA_INA_REDUCE_SCATTER, HA_INA_ALL_GATHER };

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < sizeof(coll); i++)
			for (uint8_t type = HA_INA_BYTES; type <= HA_INA_FLOAT32; type++) {
				bool adds =
					coll[i] != HA_INA_BROADCAST && coll[i] != HA_INA_ALL_GATHER;

				if (adds && type == HA_INA_BYTES)
					continue;
				crew_do(c, coll[i], type, i ? round % c->ranks : 0,
					round ? 100 * KB : 12, i + round);
			}
	crew_close(c);
	printf("right\n");
	return 0;
}

/* What the rank's response is, or -ENOTCONN when its backend has gone; 1: none came. */
static int result_of(struct rig_client *c)
{
	uint64_t turns = RIG_TURNS;
	struct ina_shm_response r;

	while (turns--) {
		struct pollfd p = { c->shm.fd, POLLIN, 0 };

		if (ina_shm_ring_pop(&c->shm.memory.responses, &r) == 1)
			return r.result;
		if (poll(&p, 1, 0) > 0 && p.revents & POLLHUP)
			return -ENOTCONN;
		rig_pause(RIG_TURN_US);
	}
	return 1;
}

static void print_result(struct crew *c, unsigned rank, int result)
{
	CHECK(result < 0);
	if (result == -ENOTCONN ||
	    (!c->client[rank].states && !rig_await_state(&c->client[rank]))) {
		printf("rank %u: gone\n", rank);
		return;
	}
	printf("rank %u: %d %s\n", rank, c->client[rank].state.result, c->client[rank].state.text);
}

static int sum_until_failure(struct crew *c)
{
	int result[INA_RANKS_MAX];

	for (unsigned n = 0;; n++) {
		bool failed = false;

		crew_fill(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 32 * KB, n);
		crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 32 * KB);
		for (unsigned r = 0; r < c->ranks; r++) {
			result[r] = result_of(&c->client[r]);
			failed |= result[r] != 0;
		}
		if (!failed) {
			crew_check(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 32 * KB, n);
			if (!n)
				printf("running\n");
			fflush(stdout);
			continue;
		}
		for (unsigned r = 0; r < c->ranks; r++) {
			if (!result[r]) { /* this one was whole for it: it receives with its next */
				rig_post(&c->client[r],
					 &(struct rig_request) { c->handle[r], 32 * KB, 0,
								 HA_INA_ALL_REDUCE, HA_INA_INT32,
								 0 });
				result[r] = result_of(&c->client[r]);
			}
			print_result(c, r, result[r]);
		}
		return 0;
	}
}

int main(int argc, char **argv)
{
	static struct crew c;
	static struct rig r;
	unsigned ranks;

	CHECK(argc >= 4);
	ranks = (unsigned)atoi(argv[2]);
	CHECK(ranks >= 2 && ranks <= INA_RANKS_MAX);
	rig_adopt(&r, argv + 3, (unsigned)argc - 3);
	crew_open(&c, &r, ranks);
	return strcmp(argv[1], "sums") ? sum_until_failure(&c) : check_sums(&c);
}
