/* SPDX-License-Identifier: BSD-3-Clause */
/* Backends with the slot core between them in one process: the sums, many groups at once, and what
 * happens when somebody dies or lies. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "tests/ina/host/backend/crew.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB 1024u

static const char *self;
extern char **environ;

/* ---- sums ---- */

static void all_collectives(struct rig *r, struct crew *c)
{
	static const struct {
		uint8_t coll, type;
		unsigned root;
		uint32_t bytes;
	} run[] = {
		{ HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, 64 * KB },
		{ HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 64 * KB },
		{ HA_INA_REDUCE, HA_INA_FLOAT32, 1, 10 * KB },
		{ HA_INA_REDUCE, HA_INA_INT32, 2, 4 },
		{ HA_INA_BROADCAST, HA_INA_BYTES, 1, 5001 },
		{ HA_INA_BROADCAST, HA_INA_FLOAT32, 0, 1028 },
		{ HA_INA_REDUCE_SCATTER, HA_INA_INT32, 2, 2052 },
		{ HA_INA_REDUCE_SCATTER, HA_INA_FLOAT32, 0, 772 },
		{ HA_INA_ALL_GATHER, HA_INA_BYTES, 2, 1 },
		{ HA_INA_ALL_GATHER, HA_INA_INT32, 1, 40 * KB },
	};

	for (unsigned i = 0; i < sizeof(run) / sizeof(run[0]); i++)
		crew_do(c, run[i].coll, run[i].type, run[i].root, run[i].bytes, i);
}

static void whole_segments(struct rig *r, struct crew *c)
{
	for (unsigned i = 0; i < 2; i++)
		crew_fill(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, i * (uint64_t)HA_INA_SEGMENT,
			  HA_INA_SEGMENT - i * 12, i);
	for (unsigned i = 0; i < 2; i++)
		crew_post(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, i * (uint64_t)HA_INA_SEGMENT,
			  HA_INA_SEGMENT - i * 12);
	for (unsigned i = 0; i < 2; i++)
		crew_await(c);
	for (unsigned i = 0; i < 2; i++)
		crew_check(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, i * (uint64_t)HA_INA_SEGMENT,
			   HA_INA_SEGMENT - i * 12, i);
}

static void old_frames(struct rig *r, struct crew *c)
{
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 20 * KB, 1);
	crew_do(c, HA_INA_ALL_GATHER, HA_INA_FLOAT32, 1, 20 * KB, 2);
	/* no room for exponents: said at once, and nobody waits */
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, 0, 4);
	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(rig_response(&c->client[i]).result, -EOPNOTSUPP);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4, 3);
}

/* Sums at the end of their range, and what has no value: they are reported with the response. */
static void what_sums_met(struct rig *r, struct crew *c)
{
	int32_t *n;
	float *x;

	for (unsigned i = 0; i < 2; i++) {
		n = (int32_t *)(void *)c->client[i].shm.memory.buffer;
		memset(n, 0, 256 * 5);
		n[256] = INT32_MAX - 1;
		x = (float *)(void *)(c->client[i].shm.memory.buffer + HA_INA_SEGMENT);
		memset(x, 0, 256 * 5);
		x[70] = i ? 1 : __builtin_inff();
	}
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 256 * 5);
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, HA_INA_SEGMENT, 256 * 5);
	for (unsigned i = 0; i < 2; i++) {
		struct ina_shm_response a = rig_response(&c->client[i]),
					b = rig_response(&c->client[i]);

		CHECK(!a.result && a.met == HA_INA_SATURATED && !b.result &&
		      b.met == HA_INA_NONFINITE);
		n = (int32_t *)(void *)c->client[i].shm.memory.buffer;
		x = (float *)(void *)(c->client[i].shm.memory.buffer + HA_INA_SEGMENT);
		CHECK_INT(n[256], INT32_MAX);
		CHECK(x[70] != x[70] && x[64] != x[64] && x[63] == 0 && x[128] == 0);
	}
}

/* Responses to one rank come in the order of its requests, though small ones are done sooner. */
static void responses_keep_order(struct rig *r, struct crew *c)
{
	for (unsigned round = 0; round < 100; round++)
		for (unsigned k = 0; k < 2; k++)
			crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0,
				  k * (uint64_t)HA_INA_SEGMENT, k ? 4 : 8 * KB);
	for (unsigned i = 0; i < 2; i++)
		for (uint64_t k = 1; k <= 200; k++) {
			struct ina_shm_response got = rig_response(&c->client[i]);

			CHECK(!got.result && got.sequence == k);
		}
}

/* Three groups over the same hosts, several ranks of each on each host. */
static void many_at_once(struct rig *r, struct crew *none)
{
	struct crew c[3];

	for (unsigned g = 0; g < 3; g++)
		crew_open(&c[g], r, 4 + g);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned g = 0; g < 3; g++) {
			crew_fill(&c[g], HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 32 * KB,
				  round * 8 + g);
			crew_post(&c[g], HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 32 * KB);
		}
		for (unsigned g = 0; g < 3; g++)
			crew_await(&c[g]);
		for (unsigned g = 0; g < 3; g++)
			crew_check(&c[g], HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 32 * KB,
				   round * 8 + g);
	}
	for (unsigned g = 0; g < 3; g++)
		crew_close(&c[g]);
	/* the last that left has ended them */
	for (unsigned i = 0; i < 60000 && fabric_groups(r->fabric); i++)
		rig_pause(1000);
	CHECK_INT(fabric_groups(r->fabric), 0);
}

static void eight_hosts(struct rig *r, struct crew *c)
{
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0, 64 * KB, 3);
}

static void loss_and_reordering(struct rig *r, struct crew *c)
{
	fabric_faults(r->fabric, (struct fabric_faults) { .lose = 20, .twice = 20, .late = 20 });
	for (unsigned i = 0; i < 3; i++)
		crew_do(c, HA_INA_ALL_REDUCE, i % 2 ? HA_INA_INT32 : HA_INA_FLOAT32, 0, 32 * KB, i);
	crew_do(c, HA_INA_ALL_GATHER, HA_INA_BYTES, 2, 8 * KB + 3, 9);
	CHECK(fabric_hurt(r->fabric) > 50);
	fabric_faults(r->fabric, (struct fabric_faults) { 0 });
}

/* ---- loopback ---- */

static void loopback(struct rig *r, struct crew *none)
{
	struct rig_client c;
	uint32_t member[3] = { RIG_ADDR(0), RIG_ADDR(0), RIG_ADDR(0) }, handle;
	uint8_t ticket[HA_INA_TICKET];
	float *x;

	rig_attach(r, 0, &c);
	CHECK_INT(rig_create(&c, member, 3, ticket), 0);
	CHECK_INT(rig_join(&c, ticket, 1, &handle), 0);
	CHECK_INT(rig_join(&c, ticket, 1, &handle), -EEXIST);
	x = (float *)(void *)c.shm.memory.buffer;
	for (unsigned i = 0; i < 10000; i++)
		x[i] = (float)i;
	rig_post(&c,
		 &(struct rig_request) { handle, 40000, 0, HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 0 });
	CHECK_INT(rig_response(&c).result, 0);
	for (unsigned i = 0; i < 10000; i++)
		CHECK(x[i] == 3 * (float)i);
	CHECK_INT(rig_leave(&c, handle), 0);
	rig_detach(&c);
}

/* ---- who may join ---- */

static void wrong_tickets_are_refused(struct rig *r, struct crew *c)
{
	uint8_t bad[HA_INA_TICKET];
	uint32_t handle;

	for (unsigned i = 0; i < HA_INA_TICKET; i++) {
		memcpy(bad, c->ticket, sizeof(bad));
		bad[i] ^= 0x10;
		CHECK_INT(rig_join(&c->client[0], bad, 0, &handle), -EINVAL);
	}
	CHECK_INT(rig_join(&c->client[0], c->ticket, 3, &handle), -EINVAL);
	CHECK(strstr(c->client[0].state.text, "the group has ranks 0 to 2"));
	CHECK_INT(rig_join(&c->client[0], c->ticket, 1, &handle), -EINVAL);
	CHECK(strstr(c->client[0].state.text, "rank 1 is to be on host 10.0.0.2"));
	CHECK_INT(rig_join(&c->client[0], c->ticket, 0, &handle), -EEXIST);
	CHECK_INT(rig_leave(&c->client[0], 12345), -EINVAL);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 1);
}

/* docs/ina.md, "Incarnations": what a rank has sent is not met again, whoever was restarted. */
static void restarted_rank_does_not_join_again(struct rig *r, struct crew *c)
{
	struct crew next;
	struct rig_client again;
	uint32_t handle;

	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 1);
	rig_attach(r, 1, &again);
	CHECK_INT(rig_join(&again, c->ticket, 1, &handle), -EEXIST);
	rig_detach(&again);
	/* nor does it after its whole host has begun anew */
	rig_host_stop(r, 1);
	CHECK(rig_await_end(&c->client[1]));
	rig_host_start(r, 1);
	rig_attach(r, 1, &again);
	CHECK_INT(rig_join(&again, c->ticket, 1, &handle), -EEXIST);
	rig_detach(&again);
	CHECK(rig_await_state(&c->client[0]));
	CHECK_INT(c->client[0].state.result, -ECANCELED);
	/* a new group can */
	crew_open(&next, r, 2);
	crew_do(&next, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 2);
	crew_close(&next);
	CHECK_INT(rig_leave(&c->client[0], c->handle[0]), 0);
	rig_detach(&c->client[0]);
	rig_detach(&c->client[1]);
}

/* ---- the end of a group ---- */

/* Requests in flight end with it, others are refused with it, and the handle stays until its client
 * leaves. */
static void ends_with(struct crew *c, unsigned rank, int err, unsigned in_flight)
{
	struct ina_shm_response got;

	CHECK(rig_await_state(&c->client[rank]));
	CHECK_INT(c->client[rank].state.result, err);
	CHECK_INT(c->client[rank].state.handle, c->handle[rank]);
	for (unsigned i = 0; i < in_flight; i++)
		CHECK_INT(rig_response(&c->client[rank]).result, err);
	rig_post(&c->client[rank], &(struct rig_request) { c->handle[rank], 4, 0, HA_INA_ALL_REDUCE,
							   HA_INA_INT32, 0 });
	got = rig_response(&c->client[rank]);
	CHECK_INT(got.result, err);
	CHECK_INT(rig_leave(&c->client[rank], c->handle[rank]), 0);
	rig_detach(&c->client[rank]);
}

static void switch_is_silent(struct rig *r, struct crew *c)
{
	int32_t *n;

	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 1);
	fabric_switch_down(r->fabric, true);
	crew_fill(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 5);
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 4 * KB);
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, HA_INA_SEGMENT, 4 * KB);
	for (unsigned i = 0; i < 2; i++) {
		n = (int32_t *)(void *)c->client[i].shm.memory.buffer;
		CHECK_INT(n[5], crew_integer(i, 5, 5));
		ends_with(c, i, -ETIMEDOUT, 2);
		CHECK(strstr(c->client[i].state.text, "not one packet from switch 10.255.255.254"));
	}
	fabric_switch_down(r->fabric, false);
	crew_open(c, r, 2);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 2);
}

/* Reported by the controller: with nothing in flight nobody else would report it. */
static void switch_has_lost_its_memory(struct rig *r, struct crew *c)
{
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 1);
	fabric_switch_reset(r->fabric);
	for (unsigned i = 0; i < 2; i++) {
		ends_with(c, i, -ECANCELED, 0);
		CHECK(strstr(c->client[i].state.text, "lost its memory"));
	}
}

/* A controller that is away ends nothing, and the next group is refused with what is wrong. */
static void controller_is_away(struct rig *r, struct crew *c)
{
	uint8_t ticket[HA_INA_TICKET];

	fabric_controller_down(r->fabric, true);
	for (unsigned i = 0; i < 5; i++) {
		rig_pause(150 * 1000);
		crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, i);
	}
	CHECK_INT(rig_create(&c->client[0], c->member, 2, ticket), -ECONNREFUSED);
	CHECK(strstr(c->client[0].state.text, "the controller is away"));
	fabric_controller_down(r->fabric, false);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, 9);
}

static void rank_leaves_in_the_middle(struct rig *r, struct crew *c)
{
	crew_post(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 0, 4);
	crew_await(c);
	for (unsigned i = 0; i < 2; i++) /* rank 2 posts nothing */
		rig_post(&c->client[i],
			 &(struct rig_request) { c->handle[i], 4 * KB, 0, HA_INA_ALL_REDUCE,
						 HA_INA_INT32, 0 });
	CHECK_INT(rig_leave(&c->client[1], c->handle[1]), 0);
	CHECK_INT(rig_response(&c->client[1]).result, -ECANCELED);
	ends_with(c, 0, -ECANCELED, 1);
	CHECK_INT(rig_leave(&c->client[2], c->handle[2]), 0);
	rig_detach(&c->client[1]);
	rig_detach(&c->client[2]);
}

/* What says that a group is over gets lost, several times: the others get it all the same, and not
 * their own time limit. */
static void aborts_get_lost(struct rig *r, struct crew *none)
{
	struct crew c;

	for (unsigned round = 0; round < 3; round++) {
		crew_open(&c, r, 2);
		crew_do(&c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 4 * KB, round);
		rig_post(&c.client[0],
			 &(struct rig_request) { c.handle[0], 4 * KB, 0, HA_INA_ALL_REDUCE,
						 HA_INA_INT32, 0 });
		fabric_lose_aborts(r->fabric, 3 * round);
		rig_detach(&c.client[1]); /* its process has gone */
		ends_with(&c, 0, -ECANCELED, 1);
	}
	CHECK(fabric_hurt(r->fabric) >= 9);
}

/* ---- clients that die ---- */

static pid_t client_start(const struct rig *r, unsigned host, const struct crew *c, unsigned rank)
{
	char hex[2 * HA_INA_TICKET + 1], number[16];
	char *const argv[] = { (char *)(uintptr_t)self,
			       "client",
			       (char *)(uintptr_t)r->host[host].path,
			       hex,
			       number,
			       NULL };
	pid_t pid;

	for (unsigned i = 0; i < HA_INA_TICKET; i++)
		snprintf(hex + 2 * i, 3, "%02x", c->ticket[i]);
	snprintf(number, sizeof(number), "%u", rank);
	CHECK(!posix_spawn(&pid, self, NULL, NULL, argv, environ));
	return pid;
}

/* The process: joins, and posts all-reduces until it is killed. */
static int client_run(char **argv)
{
	struct rig_client c;
	uint8_t ticket[HA_INA_TICKET];
	uint32_t handle;
	unsigned byte;
	char why[256];

	memset(&c, 0, sizeof(c));
	for (unsigned i = 0; i < HA_INA_TICKET; i++) {
		CHECK(sscanf(argv[3] + 2 * i, "%2x", &byte) == 1);
		ticket[i] = (uint8_t)byte;
	}
	CHECK(!ina_shm_client_open(&c.shm, argv[2], 4, NULL, why, sizeof(why)));
	CHECK_INT(rig_join(&c, ticket, (unsigned)atoi(argv[4]), &handle), 0);
	for (;;) {
		rig_post(&c, &(struct rig_request) { handle, 64 * KB, 0, HA_INA_ALL_REDUCE,
						     HA_INA_INT32, 0 });
		rig_response(&c);
	}
}

static void client_killed(struct rig *r, struct crew *other)
{
	struct crew c;

	for (unsigned round = 0; round < 5; round++) {
		unsigned answered = 0;
		int status;
		pid_t pid;

		memset(&c, 0, sizeof(c));
		c.ranks = 2;
		c.member[0] = RIG_ADDR(0);
		c.member[1] = RIG_ADDR(1);
		rig_attach(r, 0, &c.client[0]);
		CHECK_INT(rig_create(&c.client[0], c.member, 2, c.ticket), 0);
		CHECK_INT(rig_join(&c.client[0], c.ticket, 0, &c.handle[0]), 0);
		pid = client_start(r, 1, &c, 1);
		while (answered < 3 + round) {
			rig_post(&c.client[0],
				 &(struct rig_request) { c.handle[0], 64 * KB, 0, HA_INA_ALL_REDUCE,
							 HA_INA_INT32, 0 });
			CHECK_INT(rig_response(&c.client[0]).result, 0);
			answered++;
		}
		rig_post(&c.client[0],
			 &(struct rig_request) { c.handle[0], 64 * KB, 0, HA_INA_ALL_REDUCE,
						 HA_INA_INT32, 0 });
		rig_pause(round * 300);
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		/* it may still have brought its part of the last one; then the next one ends */
		if (!rig_response(&c.client[0]).result)
			rig_post(&c.client[0],
				 &(struct rig_request) { c.handle[0], 64 * KB, 0, HA_INA_ALL_REDUCE,
							 HA_INA_INT32, 0 });
		CHECK(c.client[0].states || rig_await_state(&c.client[0]));
		CHECK_INT(c.client[0].state.result, -ECANCELED);
		crew_do(other, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 64 * KB, round);
		CHECK_INT(rig_leave(&c.client[0], c.handle[0]), 0);
		rig_detach(&c.client[0]);
	}
}

/* A backend that stops: its clients' sockets end, the other hosts' ranks receive abort; a new one
 * serves the same clients anew. */
static void backend_stops(struct rig *r, struct crew *c)
{
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 64 * KB, 1);
	rig_post(&c->client[0], &(struct rig_request) { c->handle[0], 64 * KB, 0, HA_INA_ALL_REDUCE,
							HA_INA_INT32, 0 });
	rig_host_stop(r, 1);
	CHECK(rig_await_end(&c->client[1]));
	ends_with(c, 0, -ECANCELED, 1);
	rig_detach(&c->client[1]);
	rig_host_start(r, 1);
	crew_open(c, r, 2);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 64 * KB, 2);
}

/* ---- clients that lie ---- */

/* What ends its client, and nobody else. */
static void expect_client_ended(struct rig *r, void (*send)(struct rig_client *c, uint32_t handle))
{
	struct rig_client c;
	uint32_t member[2] = { RIG_ADDR(0), RIG_ADDR(1) }, handle;
	uint8_t ticket[HA_INA_TICKET];

	rig_attach(r, 0, &c);
	CHECK_INT(rig_create(&c, member, 2, ticket), 0);
	CHECK_INT(rig_join(&c, ticket, 0, &handle), 0);
	send(&c, handle);
	ina_shm_client_bell(&c.shm);
	CHECK(rig_await_end(&c));
	rig_detach(&c);
}

static void push_request(struct rig_client *c, struct ina_shm_request r)
{
	CHECK(!ina_shm_ring_push(&c->shm.memory.requests, &r));
}

static void lie_offset(struct rig_client *c, uint32_t handle)
{
	push_request(c, (struct ina_shm_request) { .group = handle,
						   .offset = c->shm.memory.buffer_bytes - 256,
						   .bytes = 512,
						   .coll = HA_INA_ALL_REDUCE,
						   .type = HA_INA_INT32 });
}

static void lie_offset_wraps(struct rig_client *c, uint32_t handle)
{
	push_request(c, (struct ina_shm_request) { .group = handle,
						   .offset = UINT64_MAX - 255,
						   .bytes = 512,
						   .coll = HA_INA_ALL_REDUCE,
						   .type = HA_INA_INT32 });
}

static void lie_length(struct rig_client *c, uint32_t handle)
{
	push_request(c, (struct ina_shm_request) { .group = handle,
						   .bytes = UINT32_MAX - 3,
						   .coll = HA_INA_ALL_REDUCE,
						   .type = HA_INA_INT32 });
}

static void lie_collective(struct rig_client *c, uint32_t handle)
{
	push_request(c, (struct ina_shm_request) {
				.group = handle, .bytes = 4, .coll = 77, .type = HA_INA_INT32 });
}

static void lie_tail(struct rig_client *c, uint32_t handle)
{
	struct ina_shm_control *control =
		(struct ina_shm_control *)(void *)(c->shm.memory.map + INA_SHM_CONTROL);

	atomic_fetch_add(&control->requests.tail.value, INA_SHM_ENTRIES + 1);
}

/* Everything that there is, scribbled over while a good request is in flight. */
static void lie_scribble(struct rig_client *c, uint32_t handle)
{
	push_request(c, (struct ina_shm_request) { .group = handle,
						   .bytes = 64 * KB,
						   .coll = HA_INA_ALL_REDUCE,
						   .type = HA_INA_FLOAT32 });
	ina_shm_client_bell(&c->shm);
	for (unsigned i = 0; i < 64; i++) {
		_Atomic uint64_t *at =
			(_Atomic uint64_t *)(void *)(c->shm.memory.map + INA_SHM_REQUESTS);

		for (unsigned k = 0; k < INA_SHM_ENTRIES * 8; k++)
			atomic_store_explicit(&at[k], (i + 1) * 0x9e3779b97f4a7c15ull * (k + 1),
					      memory_order_relaxed);
	}
	lie_tail(c, handle);
}

static void hostile_requests(struct rig *r, struct crew *c)
{
	static void (*const lies[])(struct rig_client * c, uint32_t handle) = {
		lie_offset, lie_offset_wraps, lie_length, lie_collective, lie_tail, lie_scribble
	};

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		expect_client_ended(r, lies[i]);
		crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 8 * KB, i);
	}
}

/* Another client's group, a root that the group has not: an error for who asks, the owner notices
 * nothing. */
static void strange_handles(struct rig *r, struct crew *c)
{
	struct rig_client other;

	rig_attach(r, 0, &other);
	for (uint32_t handle = 0; handle < 600; handle++) {
		rig_post(&other, &(struct rig_request) { handle, 4, 0, HA_INA_ALL_REDUCE,
							 HA_INA_INT32, 0 });
		CHECK_INT(rig_response(&other).result, -EINVAL);
	}
	CHECK_INT(rig_leave(&other, c->handle[0]), -EINVAL);
	rig_post(&c->client[0],
		 &(struct rig_request) { c->handle[0], 4, 0, HA_INA_BROADCAST, HA_INA_INT32, 2 });
	CHECK_INT(rig_response(&c->client[0]).result, -EINVAL);
	crew_do(c, HA_INA_ALL_REDUCE, HA_INA_INT32, 0, 8 * KB, 1);
	rig_detach(&other);
}

/* The rig that a test finds, and in it the ranks of one group, who leave behind it. */
struct backend_test {
	const char *name;
	void (*run)(struct rig *rig, struct crew *crew);
	struct rig_options options;
	unsigned ranks; /* 0: it makes groups of its own */
	bool gone;      /* the group ends, and its ranks leave, in the test */
};

static const struct backend_test tests[] = {
	{ "collectives", all_collectives, { .hosts = 3, .workers = 4 }, 3 },
	{ "whole_segments", whole_segments, { .hosts = 2, .workers = 2 }, 2 },
	{ "old_frames", old_frames, { .hosts = 2, .workers = 2, .old_frames = true }, 2 },
	{ "what_sums_met", what_sums_met, { .hosts = 2, .workers = 2 }, 2 },
	{ "order", responses_keep_order, { .hosts = 2, .workers = 4 }, 2 },
	{ "many_at_once", many_at_once, { .hosts = 2, .workers = 2 }, 0 },
	{ "eight_hosts", eight_hosts, { .hosts = 8, .workers = 2 }, 8 },
	{ "loss_and_reordering", loss_and_reordering, { .hosts = 4, .workers = 2 }, 4 },
	{ "packet_loopback", loopback, { .workers = 4, .loopback = true }, 0 },
	{ "worker_loopback", loopback, { .workers = 2, .loopback = true, .loop_worker = true }, 0 },
	{ "balancer_loopback",
	  loopback,
	  { .workers = 2, .loopback = true, .loop_balancer = true },
	  0 },
	{ "tickets", wrong_tickets_are_refused, { .hosts = 2, .workers = 2 }, 3 },
	{ "restarted_rank_does_not_join_again",
	  restarted_rank_does_not_join_again,
	  { .hosts = 2, .workers = 2 },
	  2,
	  true },
	{ "switch_is_silent",
	  switch_is_silent,
	  { .hosts = 2, .workers = 2, .switch_ms = RIG_SILENT_MS },
	  2 },
	{ "switch_has_lost_its_memory",
	  switch_has_lost_its_memory,
	  { .hosts = 2, .workers = 2 },
	  2,
	  true },
	{ "controller_is_away", controller_is_away, { .hosts = 2, .workers = 2 }, 2 },
	{ "rank_leaves_in_the_middle",
	  rank_leaves_in_the_middle,
	  { .hosts = 3, .workers = 2 },
	  3,
	  true },
	{ "aborts_get_lost", aborts_get_lost, { .hosts = 2, .workers = 2 }, 0 },
	{ "client_killed", client_killed, { .hosts = 2, .workers = 2 }, 2 },
	{ "backend_stops", backend_stops, { .hosts = 2, .workers = 2 }, 2 },
	{ "hostile_requests", hostile_requests, { .hosts = 2, .workers = 2 }, 2 },
	{ "strange_handles", strange_handles, { .hosts = 2, .workers = 2 }, 2 },
};

static void run_test(const struct backend_test *t)
{
	struct rig rig;
	struct crew crew;

	rig_open(&rig, &t->options);
	if (t->ranks)
		crew_open(&crew, &rig, t->ranks);
	t->run(&rig, &crew);
	if (t->ranks && !t->gone)
		crew_close(&crew);
	rig_close(&rig);
}

static const struct backend_test *find_test(const char *name)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, name))
			return &tests[i];
	return NULL;
}

int main(int argc, char **argv)
{
	self = "/proc/self/exe";
	if (argc == 5 && !strcmp(argv[1], "client"))
		return client_run(argv);
	ha_log_configure(NULL, NULL, 1);
	for (int i = 1; i < argc; i++) {
		const struct backend_test *t = find_test(argv[i]);

		CHECK_THAT(t, "no test is called '%s'", argv[i]);
		run_test(t);
	}
	for (size_t i = 0; argc < 2 && i < sizeof(tests) / sizeof(tests[0]); i++)
		run_test(&tests[i]);
	return 0;
}
